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
func writeFrom(t testing.TB, source *capture.File, also func(*record.Transaction)) []byte {
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
	if _, err := w.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
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

// TestTraces: the slices of each row nest, last longer than nothing, and are the same RPCs; they last as long as the records say.
func TestTraces(t *testing.T) {
	for _, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := testkit.Open(t, path)
			defer f.Close()
			rpcs, latency := 0, int64(0)
			events := readChrome(t, writeFrom(t, f, func(r *record.Transaction) {
				rpcs++
				if ns, known := r.LatencyNS.Get(); known && !r.ReplyLost {
					latency += ns - int64(r.Start()-r.Sent())
				}
			}))
			type span struct {
				from int64
				name string
				args map[string]any
			}
			taken := int64(0)
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
					open[l] = append(stack, span{from, e.Name, e.Args})
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
					if began := stack[len(stack)-1]; len(stack) == 1 && strings.HasPrefix(names[l], "RPC ") {
						if ns, _ := began.args["latency_ns"].(float64); ns > 0 {
							sent, _ := began.args["first_sent_before_ns"].(float64)
							if got, want := ended[l]-began.from, int64(ns-sent); got != want {
								t.Errorf("XID %s lasts %d ns, and its latency is %d", began.args["xid"], got, want)
							}
							taken += ended[l] - began.from
						}
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
			if taken != latency {
				t.Errorf("the RPCs take %d ns, the latencies are %d", taken, latency)
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
	var first, want *record.Transaction
	events := readChrome(t, writeFrom(t, f, func(r *record.Transaction) {
		if first == nil || r.Call.Time < first.Call.Time {
			first = r.Clone()
		}
		if want == nil && r.Operation.Or("") == "WRITE" && len(r.ReadChunks) > 0 {
			want = r.Clone()
		}
	}))
	if want == nil {
		t.Fatal("the capture has no WRITE with Read chunks")
	}
	type row struct{ pid, tid int }
	names := map[row]string{}
	var own row // of the RPC
	var phases, handles []string
	flows := 0
	for _, e := range events {
		l := row{e.PID, e.TID}
		if e.Phase == "M" && e.Name == "thread_name" {
			names[l] = e.Args["name"].(string)
		}
		if e.TS == "" || e.PID != want.Connection+1 {
			continue
		}
		from, to := int64(want.Call.Time-first.Call.Time), int64(want.Reply.LastTime-first.Call.Time)
		at := nanoseconds(t, e.TS)
		switch {
		case e.Phase == "B" && e.Args["xid"] == fmt.Sprint(want.XID) && names[l] == "RPC forward":
			if own = l; e.Name != "WRITE" || at != from {
				t.Errorf("the RPC is %q at %d, want WRITE at %d", e.Name, at, from)
			}
		case at < from || at > to:
		case e.Phase == "B" && e.Cat == "phase" && l == own:
			phases = append(phases, e.Name)
		case e.Phase == "B" && names[l] == "RDMA Read":
			handles = append(handles, e.Args["handle"].(string))
		case (e.Phase == "s" || e.Phase == "f") && l == own:
			flows++
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
	if len(handles) != reads || reads == 0 {
		t.Errorf("the trace has %d Reads, the record %d", len(handles), reads)
	}
	slices.Sort(handles)
	if n := len(slices.Compact(handles)); flows != 2*n {
		t.Errorf("the RPC has %d ends of flows for %d handles", flows, n)
	}
}

// TestHostile: damaged captures give valid traces.
func TestHostile(t *testing.T) {
	for _, path := range []string{"../../../samples/rocev2-callback41.pcap", "../../../samples/rocev2-errors.pcap"} {
		frames, _ := testkit.Frames(t, path)
		for seed := range uint64(40) {
			file, done := testkit.Damage(seed, frames, frames)
			f, err := capture.NewFile("damaged", bytes.NewReader(file))
			if err != nil {
				continue
			}
			readChrome(t, writeFrom(t, f, nil))
			f.Close()
			if t.Failed() {
				t.Fatalf("%s, damage %d (%s)", path, seed, done)
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
	if _, err := w.Write(&b); err != nil {
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
