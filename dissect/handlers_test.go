package dissect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// The record types.
const (
	packetRecords = iota
	connectionRecords
	transactionRecords
	findingRecords
	recordKinds
)

// wording returns a handler for the record types in a set of bits, which stores the records as
// text.
func wording(kinds int, words *[recordKinds]strings.Builder) (h dissect.Handler) {
	var b []byte
	put := func(kind int, line []byte) error {
		b = line
		words[kind].Write(line)
		return nil
	}
	if kinds>>packetRecords&1 != 0 {
		h.Packet = func(r *record.Packet) error { return put(packetRecords, render.AppendPacketJSON(b[:0], r, true)) }
	}
	if kinds>>connectionRecords&1 != 0 {
		h.Connection = func(r *record.Connection) error { return put(connectionRecords, render.AppendJSON(b[:0], r)) }
	}
	if kinds>>transactionRecords&1 != 0 {
		h.Transaction = func(r *record.Transaction) error { return put(transactionRecords, render.AppendJSON(b[:0], r)) }
	}
	if kinds>>findingRecords&1 != 0 {
		h.Finding = func(r *record.Finding) error { return put(findingRecords, render.AppendJSON(b[:0], r)) }
	}
	return h
}

// TestHandlersChangeNothing: no record, finding or id depends on which handlers are set, on the
// number of cores, on Options.Ahead, or on the goroutine that reads the source.
func TestHandlersChangeNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const all = 1<<recordKinds - 1
	for _, name := range short(t, "*.zst") {
		if strings.Contains(name, "cut") {
			continue // The capture is damaged, which Frames does not support.
		}
		frames, _ := testkit.Frames(t, captures+name)
		var want [recordKinds]strings.Builder
		d := dissect.New(wording(all, &want), dissect.Options{})
		for i := range frames {
			if err := d.Frame(&frames[i]); err != nil {
				t.Fatal(err)
			}
		}
		summary, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		for _, kinds := range []int{all, all &^ (1 << packetRecords), 1 << packetRecords, 1 << connectionRecords, 1 << transactionRecords, 1 << findingRecords, 0} {
			for cores := range 5 {
				if kinds != all && cores < 3 { // on several cores, without Ahead and with it
					continue
				}
				runtime.GOMAXPROCS(max(cores, 1))
				var got [recordKinds]strings.Builder
				d := dissect.New(wording(kinds, &got), dissect.Options{Ahead: cores%2 == 0})
				s, err := d.Run(t.Context(), open(t, name))
				if err != nil {
					t.Fatal(err)
				}
				for kind := range recordKinds {
					if kinds>>kind&1 != 0 && got[kind].String() != want[kind].String() {
						t.Errorf("%s, handlers %04b, %d cores: %d bytes of records of kind %d, want %d", name, kinds, cores, got[kind].Len(), kind, want[kind].Len())
					}
				}
				s.CaptureDrops = 0 // Only a source knows it.
				if a, b := render.AppendJSON(nil, s), render.AppendJSON(nil, summary); !bytes.Equal(a, b) {
					t.Errorf("%s, handlers %04b, %d cores: %s, want %s", name, kinds, cores, a, b)
				}
			}
		}
	}
}

// TestHandlerError: Run returns the error of a handler unchanged, on one core and on several, and
// calls no handler after it.
func TestHandlerError(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 4} {
		runtime.GOMAXPROCS(cores)
		enough := errors.New("enough")
		var xids []string
		began := 0
		d := dissect.New(dissect.Handler{
			Begin: func(first record.Time) error {
				if began++; first == 0 {
					t.Error("no time")
				}
				return nil
			},
			Transaction: func(r *record.Transaction) error {
				if xids = append(xids, r.XID.String()); len(xids) == 3 {
					return enough
				}
				return nil
			},
			Connection: func(*record.Connection) error {
				t.Error("a connection after the error")
				return nil
			},
		}, dissect.Options{})
		s, err := d.Run(t.Context(), open(t, "rocev2-callback41.pcap.zst"))
		if err != enough || strings.Join(xids, " ") != "0x3da94e54 0x3ea94e54 0x3fa94e54" || began != 1 {
			t.Errorf("error %v, %v, began %d times", err, xids, began)
		}
		if s.Packets == 0 || s.Packets >= 322 || d.Number() != s.Packets {
			t.Errorf("%d packets read, the last of them %d", s.Packets, d.Number())
		}
		if err := d.Frame(&capture.Frame{}); err != enough {
			t.Errorf("then %v", err)
		}
	}
}

// TestBrokenSource: the records before the damage reach the handlers, and the summary has the
// error.
func TestBrokenSource(t *testing.T) {
	n := 0
	d := dissect.New(dissect.Handler{Packet: func(*record.Packet) error {
		n++
		return nil
	}}, dissect.Options{})
	s, err := d.Run(t.Context(), open(t, "derived-cut-callback41.pcap.zst"))
	var broken *capture.BrokenError
	if !errors.As(err, &broken) || broken.Frames != 240 || n != 240 || s.InputError.Or("") != err.Error() {
		t.Errorf("error %v, %d packets, summary says %v", err, n, s.InputError)
	}
}

// stalling is a source that returns some frames and then waits until ctx ends.
type stalling struct {
	frames []capture.Frame
	waits  chan bool
}

func (s *stalling) ReadBatch(ctx context.Context, b *capture.Batch) error {
	b.Release()
	if len(s.frames) == 0 {
		close(s.waits)
		<-ctx.Done()
		return io.EOF
	}
	b.Frames = append(b.Frames, s.frames...)
	s.frames = nil
	return nil
}

// TestLiveSource: while a live source is silent, time advances and waiting records become
// complete. Run ends with its context or with the error of a handler, and no goroutine is left.
func TestLiveSource(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"rocev2-callback41.pcap.zst")
	frames = frames[:28] // The last frame is a Reply that waits for its acknowledgement.
	before := runtime.NumGoroutine()
	for _, how := range []string{"context", "error"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := fmt.Errorf("stopped by its %s", how)
		transactions, silent := 0, 0
		source := &stalling{frames, make(chan bool)}
		d := dissect.New(dissect.Handler{
			Transaction: func(*record.Transaction) error {
				transactions++
				return nil
			},
			Tick: func() error {
				if transactions == 0 {
					return nil
				}
				<-source.waits
				if silent++; silent < 3 {
					return nil
				}
				if how == "error" {
					return stop
				}
				cancel(stop)
				return nil
			},
		}, dissect.Options{Live: true, Linger: 1e6})
		s, err := d.Run(ctx, source)
		if err != stop || transactions != 1 || s.Packets != 28 {
			t.Errorf("%s: error %v, %d transactions, %d packets", how, err, transactions, s.Packets)
		}
		cancel(nil)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// faulty is a source that panics when it is read.
type faulty struct{ capture.Source }

func (f faulty) ReadBatch(ctx context.Context, b *capture.Batch) error { panic("faulty") }

// TestPanicOfTheReader: a panic of the reading goroutine reaches the caller of Run.
func TestPanicOfTheReader(t *testing.T) {
	defer func() {
		if p, ok := recover().(*capture.Panic); !ok || p.Value != "faulty" || !bytes.Contains(p.Stack, []byte("faulty")) {
			t.Errorf("Run panics with %v; want a *capture.Panic with the value and the stack of the reader", p)
		}
	}()
	dissect.New(dissect.Handler{}, dissect.Options{}).Run(t.Context(), faulty{})
}
