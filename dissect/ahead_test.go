package dissect_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/synth"
)

// cores makes sure that there are several cores.
func cores(t *testing.T) {
	before := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestAheadError: after a handler has returned an error, no handler is called and no goroutine
// runs any more.
func TestAheadError(t *testing.T) {
	cores(t)
	enough := errors.New("enough")
	for stop := 1; stop < 600; stop += 37 {
		n := 0
		d := dissect.New(dissect.Handler{Packet: func(*record.Packet) error {
			if n++; n == stop {
				return enough
			}
			return nil
		}}, dissect.Options{Ahead: true})
		s, err := d.Run(t.Context(), open(t, "rocev2-loss42.pcap.zst"))
		if err != enough || n != stop || d.Number() != int64(stop) || s.Packets < int64(stop) {
			t.Errorf("error %v after %d packets of %d, the last %d; the summary has %d", err, n, stop, d.Number(), s.Packets)
		}
	}
}

// TestAheadPanic: the panic of a handler reaches the caller of Run, and no goroutine is left.
func TestAheadPanic(t *testing.T) {
	cores(t)
	before := runtime.NumGoroutine()
	for range 20 {
		var d *dissect.Dissector
		n := 0
		func() {
			defer func() {
				if v := recover(); fmt.Sprint(v) != "oops" || d.Number() != 300 {
					t.Errorf("panic %v at packet %d", v, d.Number())
				}
			}()
			d = dissect.New(dissect.Handler{Packet: func(*record.Packet) error {
				if n++; n == 300 {
					panic("oops")
				}
				return nil
			}}, dissect.Options{Ahead: true})
			source := open(t, "rocev2-loss42.pcap.zst")
			defer source.Close()
			d.Run(t.Context(), source)
		}()
		d.Summary() // No other goroutine reads or writes it.
	}
	for wait := 0; runtime.NumGoroutine() > before && wait < 100; wait++ {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// TestAheadMemory: the records on their way to the handlers take little memory, whatever they
// contain.
func TestAheadMemory(t *testing.T) {
	cores(t)
	for name, chunks := range map[string]func(int) [][]rpcrdma.Segment{
		"empty chunks": func(int) [][]rpcrdma.Segment { return make([][]rpcrdma.Segment, 20000) },
		"segments":     func(n int) [][]rpcrdma.Segment { return [][]rpcrdma.Segment{floods.Segments(20000, floods.OwnHandle)} },
	} {
		const rpcs = 150
		w := synth.New()
		c := floods.RoCE(w)
		for i := range rpcs {
			c.Client.Call(synth.Call{XID: uint32(i) + 1, Program: 100003, Version: 3, Procedure: 6, Writes: chunks(i)})
			reply := synth.NullReply()
			reply.XID = uint32(i) + 1
			c.Server.Reply(reply)
			w.Advance(3 * time.Second) // The record is complete after that.
		}
		source := testkit.Source(t, w)
		n := 0
		var most, begin uint64
		live := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		begin = live()
		d := dissect.New(dissect.Handler{Transaction: func(*record.Transaction) error {
			if n++; n%25 == 0 {
				most = max(most, live())
			}
			return nil
		}}, dissect.Options{Ahead: true})
		if _, err := d.Run(t.Context(), source); err != nil || n != rpcs {
			t.Fatal(n, err)
		}
		if most > begin+64<<20 {
			t.Errorf("%s: %d MiB live, %d before", name, most>>20, begin>>20)
		}
	}
}

// TestAheadRecords: the records of packets do not depend on whether a goroutine dissects ahead, also those of packets that
// a capture has twice. Only RoCE says without a connection what a packet carries.
func TestAheadRecords(t *testing.T) {
	cores(t)
	for _, name := range []string{"rocev2-mixed.pcap.zst", "iwarp-nfs41.pcap.zst"} {
		for _, variant := range testkit.Variants {
			path := filepath.Join(t.TempDir(), "variant.pcap")
			variant.Write(t, captures+name, path)
			var records [2][]string
			for i := range records {
				d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
					records[i] = append(records[i], fmt.Sprintf("%d %s %s %s", p.Number, p.Transport, p.Summary, p.NoTransactionReason))
					if p.Marks&record.Duplicated != 0 && p.Transport != "" && !strings.HasPrefix(string(p.Summary), "RC ") && !strings.HasPrefix(string(p.Summary), "UD ") {
						t.Errorf("%s of %s: packet %d, %s, is said to be %s", variant.Name, name, p.Number, p.Summary, p.Transport)
					}
					return nil
				}}, dissect.Options{Ahead: i == 1})
				if _, err := d.Run(t.Context(), testkit.Open(t, path)); err != nil {
					t.Fatal(err)
				}
			}
			if len(records[0]) < 1000 || !slices.Equal(records[0], records[1]) {
				t.Errorf("%s of %s: %d records, and %d others if dissected ahead", variant.Name, name, len(records[0]), len(records[1]))
			}
		}
	}
}
