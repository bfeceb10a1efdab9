package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export/trace"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// The formats.
const (
	perfettoFormat = "perfetto"
	chromeFormat   = "chrome-trace"
)

// newWriter returns a Writer that keeps its items in a temporary file.
func newWriter(t testing.TB) *trace.Writer {
	t.Helper()
	items, err := os.CreateTemp(t.TempDir(), "items")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { items.Close() })
	return trace.New(items)
}

// writeFrom writes the trace of a capture, and passes each transaction to also, if it is not nil.
func writeFrom(t testing.TB, source *capture.File, format string, also func(*record.Transaction)) []byte {
	t.Helper()
	w := newWriter(t)
	h := w.Handler()
	if add := h.Transaction; also != nil {
		h.Transaction = func(r *record.Transaction) error {
			also(r)
			return add(r)
		}
	}
	dissect.New(h, dissect.Options{}).Run(context.Background(), source) // of a damaged capture, as far as it can be read
	var out bytes.Buffer
	var err error
	if format == perfettoFormat {
		_, err = w.Perfetto(&out)
	} else {
		_, err = w.Chrome(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t testing.TB, path, format string) []byte {
	t.Helper()
	f := testkit.Open(t, path)
	defer f.Close()
	return writeFrom(t, f, format, nil)
}

// captures returns the paths of all captures of the tests.
func captures(t testing.TB) []string {
	t.Helper()
	samples, _ := filepath.Glob("../../../samples/*.pcap*")
	others, _ := filepath.Glob("../../../testdata/captures/*.pcap*")
	if len(samples) == 0 || len(others) == 0 {
		t.Fatal("there are no captures")
	}
	return append(samples, others...)
}

// TestPerfetto: the traces of all captures are valid, and their RPCs last as long as the records say.
func TestPerfetto(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := testkit.Open(t, path)
			defer f.Close()
			var rpcs, complete int
			var latency int64
			file := writeFrom(t, f, perfettoFormat, func(r *record.Transaction) {
				rpcs++
				if ns, known := r.LatencyNS.Get(); known && !r.ReplyLost {
					complete++
					latency += ns - int64(r.Start()-r.Sent())
				}
			})
			r := readPerfetto(t, file)
			r.check(t)
			slicesSeen, taken := 0, int64(0)
			began := map[uint64]event{} // outermost slice of each track
			depth := map[uint64]int{}
			for _, e := range r.events {
				if !strings.HasPrefix(r.tracks[e.track].name, "RPC ") {
					continue
				}
				switch e.kind {
				case 1:
					if depth[e.track]++; depth[e.track] == 1 {
						began[e.track] = e
						slicesSeen++
					}
				case 2:
					if depth[e.track]--; depth[e.track] == 0 && began[e.track].numbers["latency_ns"] > 0 {
						if got, want := int64(e.at-began[e.track].at), began[e.track].numbers["latency_ns"]-began[e.track].numbers["first_sent_before_ns"]; got != want {
							t.Errorf("XID %s lasts %d ns, and its latency is %d", began[e.track].texts["xid"], got, want)
						}
						taken += int64(e.at - began[e.track].at)
					}
				case 3:
					slicesSeen++ // it lasts no time
				}
			}
			if slicesSeen != rpcs {
				t.Errorf("the trace has %d RPCs, the capture %d", slicesSeen, rpcs)
			}
			if taken != latency {
				t.Errorf("the RPCs take %d ns, the latencies are %d", taken, latency)
			}
		})
	}
}

// chromeEvent is an event of Chrome's format.
type chromeEvent struct {
	Phase string         `json:"ph"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Name  string         `json:"name"`
	Cat   string         `json:"cat"`
	TS    json.Number    `json:"ts"`
	ID    uint64         `json:"id"`
	Args  map[string]any `json:"args"`
}

func readChrome(t testing.TB, file []byte) []chromeEvent {
	t.Helper()
	var all struct {
		TraceEvents []chromeEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	return all.TraceEvents
}

// nanoseconds returns a time of Chrome's format, which has at most three decimals.
func nanoseconds(t testing.TB, n json.Number) (ns int64) {
	t.Helper()
	whole, part, _ := strings.Cut(string(n), ".")
	if _, err := fmt.Sscan(whole+(part + "000")[:3], &ns); err != nil || len(part) > 3 {
		t.Fatalf("the time %s has more than three decimals", n)
	}
	return ns
}

// TestChrome: the slices of each row nest, last longer than nothing, and are the same RPCs.
func TestChrome(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := testkit.Open(t, path)
			defer f.Close()
			rpcs := 0
			events := readChrome(t, writeFrom(t, f, chromeFormat, func(*record.Transaction) { rpcs++ }))
			type span struct {
				from int64
				name string
			}
			type row struct{ pid, tid int }
			open, ended := map[row][]span{}, map[row]int64{}
			names := map[row]string{}
			flows := map[uint64]map[string]int{}
			seen := 0
			for _, e := range events {
				l := row{e.PID, e.TID}
				switch e.Phase {
				case "M":
					if e.Name == "thread_name" {
						names[l] = e.Args["name"].(string)
					}
				case "B":
					from := nanoseconds(t, e.TS)
					stack := open[l]
					if len(stack) > 0 && (from < stack[len(stack)-1].from || e.Cat != "phase") || from < ended[l] {
						t.Fatalf("%s: %s overlaps another slice", names[l], e.Name)
					}
					open[l] = append(stack, span{from, e.Name})
					if strings.HasPrefix(names[l], "RPC ") && e.Cat != "phase" {
						seen++
					}
				case "E":
					stack := open[l]
					if len(stack) == 0 || stack[len(stack)-1].name != e.Name {
						t.Fatalf("%s: the end of %s is not that of the slice that began last", names[l], e.Name)
					}
					if ended[l] = nanoseconds(t, e.TS); ended[l] <= stack[len(stack)-1].from {
						t.Fatalf("%s: a slice of no length", e.Name)
					}
					open[l] = stack[:len(stack)-1]
				case "i":
					if strings.HasPrefix(names[l], "RPC ") {
						seen++
					}
				case "s", "t", "f":
					if flows[e.ID] == nil {
						flows[e.ID] = map[string]int{}
					}
					flows[e.ID][e.Phase]++
				}
			}
			if seen != rpcs {
				t.Errorf("the trace has %d RPCs, the capture %d", seen, rpcs)
			}
			for id, f := range flows {
				if f["s"] > 1 || f["f"] > 1 {
					t.Errorf("flow %d begins %d times and ends %d times", id, f["s"], f["f"])
				}
			}
		})
	}
}

// TestRPC: the trace of one RPC with Read chunks has what its record says.
func TestRPC(t *testing.T) {
	f := testkit.Open(t, "../../../testdata/captures/rocev2-nfs41.pcap.zst")
	defer f.Close()
	var want record.Transaction
	r := readPerfetto(t, writeFrom(t, f, perfettoFormat, func(r *record.Transaction) {
		if r.Operation.Or("") == "WRITE" && len(r.ReadChunks) > 0 && want.ID == 0 {
			want = *r.Clone()
		}
	}))
	if want.ID == 0 {
		t.Fatal("the capture has no WRITE with Read chunks")
	}
	var phases, operations []string
	var flows int
	for _, e := range r.events {
		if e.id != uint64(want.ID) && e.category != "phase" {
			continue
		}
		switch name := r.tracks[e.track].name; {
		case name == "RPC forward" && e.kind == 1 && e.category == "complete":
			if e.name != "WRITE" || e.texts["xid"] != fmt.Sprint(want.XID) || e.at != uint64(want.Call.Time) {
				t.Errorf("the RPC is %q, XID %s, at %d", e.name, e.texts["xid"], e.at)
			}
		case e.category == "phase" && e.at >= uint64(want.Call.Time) && e.at < uint64(want.Reply.LastTime):
			phases = append(phases, e.name)
			flows += len(e.flows) + len(e.ends)
		case name == "RDMA Read" && e.kind == 1:
			operations = append(operations, e.texts["handle"])
		}
	}
	if want := []string{"to read", "read", "to reply"}; !slices.Equal(phases, want) {
		t.Errorf("the phases are %q, not %q", phases, want)
	}
	reads := 0
	for _, e := range want.Timeline {
		if e.Event == record.EventReadDone {
			reads++
		}
	}
	if len(operations) != reads || reads == 0 {
		t.Errorf("the trace has %d Reads, the record %d", len(operations), reads)
	}
	slices.Sort(operations)
	if handles := len(slices.Compact(operations)); flows != 2*handles {
		t.Errorf("the RPC has %d ends of flows for %d handles", flows, handles)
	}
}

// TestHostile: damaged captures give valid traces, in both formats.
func TestHostile(t *testing.T) {
	for _, path := range []string{"../../../samples/rocev2-callback41.pcap", "../../../samples/rocev2-errors.pcap"} {
		frames, _ := testkit.Frames(t, path)
		for seed := range uint64(40) {
			file, done := testkit.Damage(seed, frames, frames)
			for _, format := range []string{perfettoFormat, chromeFormat} {
				f, err := capture.NewFile("damaged", bytes.NewReader(file))
				if err != nil {
					continue
				}
				out := writeFrom(t, f, format, nil)
				f.Close()
				if format == perfettoFormat {
					readPerfetto(t, out).check(t)
				} else {
					readChrome(t, out)
				}
				if t.Failed() {
					t.Fatalf("%s, damage %d (%s)", path, seed, done)
				}
			}
		}
	}
}

// TestEndOfCalls: a Call without a Reply is in flight until its connection begins to close, as in all other numbers.
// Packets may follow.
func TestEndOfCalls(t *testing.T) {
	w := newWriter(t)
	h := w.Handler()
	if err := h.Transaction(&record.Transaction{
		ID: 1, Direction: record.Forward, Status: record.NoReply,
		Call: &record.Message{Time: 10e6, Packet: 1, Credits: record.Some[uint32](32)},
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.Connection(&record.Connection{Closed: record.Some[record.Time](30e6), Last: 1e9}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := w.Chrome(&b); err != nil {
		t.Fatal(err)
	}
	last := map[string]int64{}
	for _, e := range readChrome(t, b.Bytes()) {
		if e.TS != "" && e.TS != "0" {
			last[e.Phase] = max(last[e.Phase], nanoseconds(t, e.TS))
		}
	}
	if last["e"]+last["E"] != 20e6 || last["C"] != 20e6 {
		t.Errorf("the last events by phase are at %v, want the ends of the slice and of the counter 20 ms after the Call", last)
	}
}
