package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// names has the names of the facts in the tests.
var names = [...]string{"begun", "unordered", "extended", "accepted", "filled", "released", "missing", "again", "late", "waits", "acked", "covered", "acked again"}

// facts returns the text of facts. Requests that have to wait are held, as the items PSN*10, unless they wait already.
func facts(o *Order[int], mtu int, all []Fact[int]) string {
	var list []string
	for _, f := range all {
		s := names[f.Kind]
		switch f.Kind {
		case Begun:
			s += fmt.Sprintf(" %d known %t acked %d", f.From, f.Known, f.N)
		case Extended, Missing:
			s += fmt.Sprintf(" %d-%d n %d", f.From, f.To, f.N)
		case Accepted:
			if s += fmt.Sprintf(" %d-%d", f.From, f.To); f.Item != nil {
				s += fmt.Sprintf(" item %d", *f.Item)
			}
		case Released:
			s += fmt.Sprintf(" item %d", *f.Item)
		case Late:
			s += fmt.Sprintf(" %d counted %t", f.From, f.Known)
		case AckedTo, Covered:
			s += fmt.Sprint(" ", f.To)
		case Again, Waits:
			s += fmt.Sprint(" ", f.From)
		}
		if list = append(list, s); f.Kind == Waits && o.Window().Item(PSNs, f.From) == nil {
			if more := facts(o, mtu, o.Hold(1, int(f.From)*10, mtu)); more != "" {
				list = append(list, more)
			}
		}
	}
	return strings.Join(list, ", ")
}

// TestFacts: what each packet shows. A number is the PSN of a request, r the PSN of a Read Request of 1000 bytes, a that
// of an acknowledgement, h that in a handshake, g skips a gap, and o is a request of an unreliable connection.
func TestFacts(t *testing.T) {
	for _, c := range []struct {
		name, packets, want string
		mtu                 int
	}{
		{"in order", "5 6 a6", "begun 5 known false acked 0, accepted 5-6; accepted 6-7; acked 7, covered 7", 0},
		{"announced", "h5 5", "; begun 5 known true acked 0, accepted 5-6", 0},
		{"announced, the first is missing", "h5 6 a6", "; begun 5 known false acked 0, waits 6; acked 7, missing 5-6 n 1, accepted 6-7 item 60, released item 60, covered 7", 0},
		{"announced, and far away", "h5 50000", "; begun 50000 known false acked 0, accepted 50000-50001", 0},
		{"acknowledged before the first", "a5 5 a5", "; begun 5 known false acked 1, accepted 5-6; acked 6, covered 6", 0},
		{"an acknowledgement of something else before the first", "a4 5", "; begun 5 known false acked 0, accepted 5-6", 0},
		{"acknowledged before it was captured", "5 a6 6", "begun 5 known false acked 0, accepted 5-6; acked 7, covered 7; unordered, accepted 6-7", 0},
		{"again", "5 5", "begun 5 known false acked 0, accepted 5-6; again 5", 0},
		{"early", "5 7 6", "begun 5 known false acked 0, accepted 5-6; waits 7; accepted 6-7, filled, accepted 7-8 item 70, released item 70", 0},
		{"early twice", "5 7 7 6", "begun 5 known false acked 0, accepted 5-6; waits 7; waits 7; accepted 6-7, filled, accepted 7-8 item 70, released item 70", 0},
		{"filled in part", "5 7 9 6", "begun 5 known false acked 0, accepted 5-6; waits 7; waits 9; accepted 6-7, filled, accepted 7-8 item 70, released item 70", 0},
		{"missing, and late", "5 7 a7 6 6", "begun 5 known false acked 0, accepted 5-6; waits 7; acked 8, missing 6-7 n 1, accepted 7-8 item 70, released item 70, covered 8; late 6 counted true; again 6", 0},
		{"acknowledged, and then held", "5 a7 7", "begun 5 known false acked 0, accepted 5-6; acked 8, covered 8; waits 7, missing 6-7 n 1, accepted 7-8 item 70, released item 70", 0},
		{"the one before is acknowledged", "5 7 a6", "begun 5 known false acked 0, accepted 5-6; waits 7; acked 7, missing 6-7 n 1, accepted 7-8 item 70, released item 70, covered 7", 0},
		{"an old acknowledgement", "5 6 a6 a5 a6", "begun 5 known false acked 0, accepted 5-6; accepted 6-7; acked 7, covered 7; ; ", 0},
		{"an acknowledgement too far away", "5 a1100000", "begun 5 known false acked 0, accepted 5-6; ", 0},
		{"skipped", "5 7 8 g", "begun 5 known false acked 0, accepted 5-6; waits 7; waits 8; missing 6-7 n 1, accepted 7-8 item 70, released item 70, accepted 8-9 item 80, released item 80", 0},
		{"before the first", "5 4 4 3", "begun 5 known false acked 0, accepted 5-6; late 4 counted false; again 4; late 3 counted false", 0},
		{"before the first, and acknowledged", "5 a5 4", "begun 5 known false acked 0, accepted 5-6; acked 6, covered 6; again 4", 0},
		{"a Read", "r5 9", "begun 5 known false acked 0, accepted 5-9; accepted 9-10", 256},
		{"a Read of unknown extent", "r5 9", "begun 5 known false acked 0, accepted 5-6; extended 5-9 n 4, accepted 9-10", 0},
		{"a Read of unknown extent, too far", "r5 10 a10", "begun 5 known false acked 0, accepted 5-6; waits 10; acked 11, missing 6-10 n 4, accepted 10-11 item 100, released item 100, covered 11", 0},
		{"a Read of unknown extent that has one PSN, and a lost packet", "r5 6 8 a8", "begun 5 known false acked 0, accepted 5-6; accepted 6-7; waits 8; acked 9, missing 7-8 n 1, accepted 8-9 item 80, released item 80, covered 9", 0},
		{"a Read that waited", "5 r7 6 8", "begun 5 known false acked 0, accepted 5-6; waits 7; accepted 6-7, filled, accepted 7-8 item 70, released item 70; accepted 8-9", 0},
		{"a Read that waited, and what waited for it", "5 r7 9 6", "begun 5 known false acked 0, accepted 5-6; waits 7; waits 9; accepted 6-7, filled, accepted 7-8 item 70, released item 70, extended 7-9 n 2, accepted 9-10 item 90, released item 90", 0},
		{"the last PSN", "16777215 0 1", "begun 16777215 known false acked 0, accepted 16777215-0; accepted 0-1; accepted 1-2", 0},
		{"unreliable", "o5 o7 o6 o7", "accepted 5-6; missing 6-7 n 1, accepted 7-8; filled; filled", 0},
		{"acknowledged to the end", "5 a7 e", "begun 5 known false acked 0, accepted 5-6; acked 8, covered 8; missing 6-8 n 2", 0},
	} {
		o := Order[int]{Circle: PSNs}
		var got []string
		for i, p := range strings.Fields(c.packets) {
			var kind byte
			if p[0] > '9' {
				kind, p = p[0], p[1:]
			}
			var psn uint32
			fmt.Sscan(p, &psn)
			at := record.Stamp{Packet: int64(i + 1)}
			var all []Fact[int]
			switch kind {
			case 'a':
				all = o.Acknowledge(psn+1, c.mtu)
			case 'h':
				o.Announce(psn)
			case 'g':
				all = o.SkipGap(c.mtu)
			case 'e':
				all = o.SkipAcked(at)
			case 'o':
				all = o.TakeOnce(Request{PSN: psn, At: at}, c.mtu)
			default:
				all = o.Take(Request{PSN: psn, Read: kind == 'r', Size: 1000, At: at}, c.mtu)
			}
			got = append(got, facts(&o, c.mtu, all))
		}
		if all := strings.Join(got, "; "); all != c.want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.name, c.packets, all, c.want)
		}
	}
}

// TestResponses: responses to Read Requests that were not captured are one missing request, and a copy of one of them is
// recognized.
func TestResponses(t *testing.T) {
	o := Order[int]{Circle: PSNs}
	o.Take(Request{PSN: 100}, 1024)
	for i, want := range []bool{false, false, true, false, true} {
		if got := o.HasResponse([]uint32{101, 102, 101, 103, 103}[i]); got != want {
			t.Errorf("response %d: %t", i, got)
		}
	}
	facts(&o, 1024, o.Take(Request{PSN: 106}, 1024))
	if got := facts(&o, 1024, o.Acknowledge(107, 1024)); !strings.HasPrefix(got, "acked 107, missing 101-106 n 3,") {
		t.Error(got) // of 101 to 105, the Read Request with PSN 101 takes three
	}
	for psn, want := range map[uint32]bool{100: true, 101: false, 106: true, 99: false} {
		copied := o
		if got := copied.HasResponse(psn); got != want {
			t.Errorf("PSN %d: %t", psn, got)
		}
	}
	if !o.Lacks(103) || o.Lacks(106) || o.Size() == 0 {
		t.Error("PSN 103 is missing, and 106 is not")
	}
}

// TestAwaits: a packet is awaited if it was acknowledged and not captured.
func TestAwaits(t *testing.T) {
	o := Order[int]{Circle: PSNs}
	await := func(want bool) {
		t.Helper()
		if o.Awaits() != want {
			t.Errorf("awaits %t", !want)
		}
	}
	o.Acknowledge(6, 0)
	await(false) // nothing says that it belongs to the connection
	o.Announce(5)
	await(true)
	o.Take(Request{PSN: 5}, 0)
	await(false)
	o.Acknowledge(6, 0)
	await(false)
	o.Acknowledge(7, 0)
	await(true)
	o.Take(Request{PSN: 6}, 0)
	await(false)
	if !o.Acknowledged() || o.IsAcked(7) || !o.IsAcked(6) {
		t.Error("6 was acknowledged, and 7 was not")
	}
	o.Announce(1) // a handshake that is captured again
	if o.Expected() != 7 {
		t.Errorf("PSN %d is expected", o.Expected())
	}
}

// TestBegin: only the first request of a connection begins it, and what waits is accepted when the extent of a Read
// becomes known.
func TestBegin(t *testing.T) {
	o := Order[int]{Circle: PSNs}
	for _, c := range []struct {
		psn  uint32
		want string
	}{{5, "begun 5 known false acked 0"}, {9, ""}} {
		if facts(&o, 0, o.Begin(c.psn)) != c.want || o.Expected() != 5 {
			t.Errorf("PSN %d: %d is expected", c.psn, o.Expected())
		}
	}
	o.Take(Request{PSN: 5, Read: true, Size: 1000}, 0)
	facts(&o, 0, o.Take(Request{PSN: 11}, 0)) // it waits: a Read of this size has at most 4 PSNs
	o.Extend(5, 6)
	if got := facts(&o, 0, o.Drain(0)); got != "accepted 11-12 item 110, released item 110" {
		t.Error(got)
	}
}

// TestModel: whatever the order, the losses and the copies of packets, each request that was captured is accepted once,
// in order, unless it came after it was counted as missing, and what is not accepted was missing.
func TestModel(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		start := uint32(r.IntN(1 << 24))
		var packets []uint32
		const n = 60
		for i := range uint32(n) {
			for range r.IntN(3) {
				packets = append(packets, i)
			}
		}
		if len(packets) == 0 {
			continue
		}
		for range r.IntN(40) {
			i, j := r.IntN(len(packets)), r.IntN(len(packets))
			packets[i], packets[j] = packets[j], packets[i]
		}
		o := Order[int]{Circle: PSNs}
		o.Announce(start)
		accepted, missing, came := map[uint32]int{}, map[uint32]bool{}, map[uint32]bool{}
		last := -1
		var apply func(all []Fact[int])
		apply = func(all []Fact[int]) {
			for _, f := range all {
				switch at := PSNs.Delta(f.From, start); f.Kind {
				case Accepted:
					if accepted[uint32(at)]++; int(at) <= last {
						t.Fatalf("seed %d: %d is accepted after %d", seed, at, last)
					}
					last = int(at)
				case Missing:
					for i := at; i < PSNs.Delta(f.To, start); i++ {
						missing[uint32(i)] = true
					}
				case Waits:
					if o.Window().Item(PSNs, f.From) == nil {
						apply(o.Hold(1, 0, 1024))
					}
				case Late:
					if f.Known != missing[uint32(at)] {
						t.Fatalf("seed %d: %d is late", seed, at)
					}
				case Again:
					if !came[uint32(at)] {
						t.Fatalf("seed %d: no earlier copy of %d was captured", seed, at)
					}
				}
			}
		}
		for _, p := range packets {
			apply(o.Take(Request{PSN: PSNs.Add(start, p)}, 1024))
			if came[p] = true; r.IntN(4) == 0 {
				apply(o.Acknowledge(PSNs.Add(start, 1+uint32(r.IntN(int(slices.Max(packets))+1))), 1024))
			}
		}
		for !o.Window().Empty() {
			apply(o.SkipGap(1024))
		}
		for i := range uint32(last + 1) {
			if accepted[i] > 1 || accepted[i] == 1 == missing[i] {
				t.Fatalf("seed %d: %d was accepted %d times, missing %t", seed, i, accepted[i], missing[i])
			}
		}
	}
}

// TestWindow: the window is limited, and shrinks after a burst.
func TestWindow(t *testing.T) {
	o := Order[int]{Circle: PSNs}
	o.Take(Request{PSN: 0}, 0)
	for psn := uint32(2); psn <= maxHeld+2; psn++ {
		got := facts(&o, 0, o.Take(Request{PSN: psn}, 0))
		if psn == maxHeld+2 {
			if !strings.Contains(got, "missing 1-2 n 1") {
				t.Error("the window has no limit")
			}
		} else if o.Window().Len() != int(psn)-1 {
			t.Fatalf("%d items after PSN %d: %s", o.Window().Len(), psn, got)
		}
	}
	o.Drain(0)
	if w := o.Window(); !w.Empty() || cap(w.items) > 64 || w.bytes != 0 {
		t.Errorf("%d items, %d bytes of storage, %d bytes are left", w.Len(), cap(w.items), w.bytes)
	}
	if n := testing.AllocsPerRun(100, func() { // each time, a request waits for another one
		next := o.Expected()
		o.Take(Request{PSN: next + 1}, 0)
		o.Hold(1, 1, 0)
		o.Take(Request{PSN: next}, 0)
	}); n > 0 {
		t.Errorf("a window that is used again needs %v allocations", n)
	}
	o.Take(Request{PSN: o.Expected() + 3}, 0)
	if o.Hold(maxHeldBytes+1, 1, 0); !o.Window().Empty() {
		t.Error("the bytes of the window have no limit")
	}
}

// TestGaps: sequence numbers that the capture lacks may be those of first copies, until they are captured.
func TestGaps(t *testing.T) {
	var g Gaps
	g.Begin(100)
	g.Missing(Run{110, 115})
	g.Missing(Run{120, 121})
	for _, s := range []struct {
		psn           uint32
		late, counted bool
	}{
		{105, false, false},
		{112, true, true},
		{112, false, false}, // the second copy
		{110, true, true},
		{111, true, true},
		{114, true, true},
		{113, true, true},
		{113, false, false},
		{120, true, true},
		{120, false, false},
		{98, true, false}, // before the first
		{98, false, false},
		{99, true, false},
		{97, true, false},
		{97, false, false},
	} {
		if late, counted := g.Late(PSNs, One(s.psn), false, false); late != s.late || counted != s.counted {
			t.Errorf("PSN %d: late %t, counted %t; gaps %v", s.psn, late, counted, g)
		}
	}
	if len(g.list) > 0 || g.from != 97 {
		t.Errorf("the gaps are filled, but these are left: %v, from %d on; want none, from 97 on", g.list, g.from)
	}
	for range 2 { // an operation that stays unknown
		if late, _ := g.Late(PSNs, One(90), false, true); !late {
			t.Error("the second copy of a Read Request shows that its responses were captured")
		}
	}
	if late, _ := g.Late(PSNs, One(94), true, false); late {
		t.Error("94 was acknowledged before")
	}
	for i := range uint32(2 * maxGaps) {
		g.Missing(Run{1000 + 10*i, 1005 + 10*i})
	}
	if len(g.list) != maxGaps || g.list[0] != (gap{Run{1000, 1000 + 10*maxGaps + 5}, true}) || g.Bytes() < gapCost*maxGaps {
		t.Errorf("%d gaps, the first is %v", len(g.list), g.list[0])
	}
	g.Late(PSNs, One(1000+10*(2*maxGaps-1)+2), false, false) // it divides the last gap
	if !slices.IsSortedFunc(g.list, func(a, b gap) int { return int(PSNs.Delta(a.From, b.From)) }) || len(g.list) != maxGaps {
		t.Errorf("gaps are not in order: %v", g)
	}
	if g.Forget(PSNs, 97+1<<22); len(g.list) == 0 {
		t.Error("gaps are forgotten too early")
	}
	if g.Forget(PSNs, 97+1<<22+1); g.from != 97+1<<21+1 || len(g.list) > 0 {
		t.Errorf("%v after many PSNs", g)
	}
}
