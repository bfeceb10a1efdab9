package order

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// byteFacts returns the text of facts about a stream. Segments that have to wait are held, as items that are their lengths; of a
// longer copy of a segment that is held, the length counts.
func byteFacts(b *Order[uint32], all []Fact[uint32]) string {
	var list []string
	for _, f := range all {
		s := fmt.Sprintf("%s %d-%d", names[f.Kind], f.From, f.To)
		switch f.Kind {
		case Unordered, Begun:
			s = names[f.Kind]
		case AckedTo, AckedAgain, Covered:
			s = fmt.Sprintf("%s %d", names[f.Kind], f.To)
		case Missing:
			s += fmt.Sprintf(" n %d by %d", f.N, f.At.Packet)
		case Late:
			s += fmt.Sprintf(" counted %t", f.Known)
		case Accepted, Released:
			if f.Item != nil {
				s += fmt.Sprintf(" item %d", *f.Item)
			}
		case Waits:
			var all []Fact[uint32]
			if held := b.Window().Item(Octets, f.From); held == nil {
				all = b.Hold(1, f.To-f.From, 0)
			} else if f.To-f.From > *held {
				*held = f.To - f.From
				all = b.Lengthen(2)
			}
			if more := byteFacts(b, all); more != "" {
				s += ", " + more
			}
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// TestByteFacts: what each segment shows. S+N is a segment of N bytes from the sequence number S on, a an acknowledgement
// of the bytes before one, h is in a handshake, f is a FIN, g skips a gap, and S!N is a segment that is accepted although
// bytes before it are missing.
func TestByteFacts(t *testing.T) {
	for _, c := range []struct {
		name, segments, want string
		awaited              int32 // bytes that were acknowledged and not taken, at the end
	}{
		{"in order", "5+2 7+3 a10", "begun, accepted 5-7; accepted 7-10; acked 10, covered 10", 0},
		{"announced", "h5 5+2", "; accepted 5-7", 0},
		{"announced, and nothing follows", "h5 a9", "; acked 9, covered 9", 4},
		{"announced, the first bytes are missing", "h5 7+2 a7 a8", "; waits 7-9; acked 7, covered 7; acked 8, missing 5-7 n 2 by 2, accepted 7-9 item 2, released 7-9 item 2, covered 8", 0},
		{"announced again", "h5 5+2 h9 7+1", "; accepted 5-7; ; accepted 7-8", 0},
		{"announced twice", "h5 h6 6+1", "; ; accepted 6-7", 0},
		{"acknowledged before it was captured", "5+2 a9 7+2", "begun, accepted 5-7; acked 9, covered 9; unordered, accepted 7-9", 0},
		{"acknowledged up to it", "5+2 a7 7+2", "begun, accepted 5-7; acked 7, covered 7; accepted 7-9", 0},
		{"again", "5+2 5+2", "begun, accepted 5-7; again 5-7", 0},
		{"a part of it again", "5+4 5+2 7+2", "begun, accepted 5-9; again 5-7; again 7-9", 0},
		{"a part again, and new bytes", "5+2 5+4", "begun, accepted 5-7; again 5-7, accepted 7-9", 0},
		{"a part again, and new bytes that others wait for", "5+2 9+1 5+4", "begun, accepted 5-7; waits 9-10; again 5-7, accepted 7-9, accepted 9-10 item 1, released 9-10 item 1", 0},
		{"early", "5+2 9+2 7+2", "begun, accepted 5-7; waits 9-11; accepted 7-9, filled 7-9, accepted 9-11 item 2, released 9-11 item 2", 0},
		{"early twice", "5+2 9+2 9+2 7+2", "begun, accepted 5-7; waits 9-11; waits 9-11; accepted 7-9, filled 7-9, accepted 9-11 item 2, released 9-11 item 2", 0},
		{"early, and longer", "5+2 9+2 9+4 7+2", "begun, accepted 5-7; waits 9-11; waits 9-13; accepted 7-9, filled 7-9, accepted 9-13 item 4, released 9-13 item 4", 0},
		{"early, and overlapped in part", "5+2 9+3 7+3", "begun, accepted 5-7; waits 9-12; accepted 7-10, filled 7-10, accepted 10-12 item 3, released 9-12 item 3", 0},
		{"early, and overlapped", "5+2 9+2 7+4", "begun, accepted 5-7; waits 9-11; accepted 7-11, filled 7-11, released 9-11 item 2", 0},
		{"filled in part", "5+2 9+2 12+1 7+2", "begun, accepted 5-7; waits 9-11; waits 12-13; accepted 7-9, filled 7-9, accepted 9-11 item 2, released 9-11 item 2", 0},
		{"the gap is acknowledged", "5+2 9+2 a9", "begun, accepted 5-7; waits 9-11; acked 9, covered 9", 2},
		{"what waits is acknowledged", "5+2 9+2 a10", "begun, accepted 5-7; waits 9-11; acked 10, missing 7-9 n 2 by 2, accepted 9-11 item 2, released 9-11 item 2, covered 10", 0},
		{"a new acknowledgement skips one gap, and a new segment another one", "5+2 9+2 13+2 a14 a14 17+1", "begun, accepted 5-7; waits 9-11; waits 13-15; acked 14, missing 7-9 n 2 by 2, accepted 9-11 item 2, released 9-11 item 2, covered 14; acked again 14; " +
			"waits 17-18, missing 11-13 n 2 by 3, accepted 13-15 item 2, released 13-15 item 2", 0},
		{"acknowledged, and then early", "5+2 a10 9+2", "begun, accepted 5-7; acked 10, covered 10; waits 9-11, missing 7-9 n 2 by 3, accepted 9-11 item 2, released 9-11 item 2", 0},
		{"skipped", "5+2 9+2 12+1 g g g", "begun, accepted 5-7; waits 9-11; waits 12-13; missing 7-9 n 2 by 2, accepted 9-11 item 2, released 9-11 item 2; missing 11-12 n 1 by 3, accepted 12-13 item 1, released 12-13 item 1; ", 0},
		{"missing, and late", "5+2 9+2 g 7+2 7+2", "begun, accepted 5-7; waits 9-11; missing 7-9 n 2 by 2, accepted 9-11 item 2, released 9-11 item 2; late 7-9 counted true; again 7-9", 0},
		{"missing, late, and new bytes", "5+2 9+2 g 7+5", "begun, accepted 5-7; waits 9-11; missing 7-9 n 2 by 2, accepted 9-11 item 2, released 9-11 item 2; late 7-11 counted true, accepted 11-12", 0},
		{"before the first", "5+2 3+2 3+2", "begun, accepted 5-7; late 3-5 counted false; again 3-5", 0},
		{"before the first, and acknowledged", "5+2 a6 3+2", "begun, accepted 5-7; acked 6, covered 6; again 3-5", 0},
		{"an old acknowledgement", "5+2 a7 a6 a7", "begun, accepted 5-7; acked 7, covered 7; ; acked again 7", 0},
		{"the end of the circle", "4294967294+2 0+1 a1", "begun, accepted 4294967294-0; accepted 0-1; acked 1, covered 1", 0},
		{"acknowledged to the end", "5+2 a9", "begun, accepted 5-7; acked 9, covered 9", 2},
		{"the FIN is acknowledged", "5+2 f7 a8", "begun, accepted 5-7; ; acked 8, covered 8", 0},
		{"the FIN is acknowledged, and bytes are missing", "5+2 f9 a10", "begun, accepted 5-7; ; acked 10, covered 10", 2},
		{"one byte before the FIN is acknowledged", "5+2 f9 a8", "begun, accepted 5-7; ; acked 8, covered 8", 1},
		{"accepted although bytes are missing", "5+2 9!2 11+1", "begun, accepted 5-7; missing 7-9 n 2 by 2, accepted 9-11; accepted 11-12", 0},
		{"accepted although it came before", "5+2 5!2 5!3 9+1 8!1", "begun, accepted 5-7; ; accepted 7-8; waits 9-10; accepted 8-9, accepted 9-10 item 1, released 9-10 item 1", 0},
	} {
		b := Order[uint32]{Circle: Octets}
		var got []string
		for i, s := range strings.Fields(c.segments) {
			r := Request{At: record.Stamp{Packet: int64(i + 1)}}
			var all []Fact[uint32]
			switch s[0] {
			case 'a':
				fmt.Sscan(s[1:], &r.PSN)
				all = b.Acknowledge(r.PSN, 0)
			case 'h':
				fmt.Sscan(s[1:], &r.PSN)
				b.Announce(r.PSN)
			case 'f':
				fmt.Sscan(s[1:], &r.PSN)
				b.End(r.PSN)
			case 'g':
				all = b.SkipGap(0)
			default:
				var kind byte
				fmt.Sscanf(s, "%d%c%d", &r.PSN, &kind, &r.Size)
				if kind == '!' {
					all = b.Insist(r, 0)
				} else {
					all = b.Take(r, 0)
				}
			}
			got = append(got, byteFacts(&b, all))
		}
		if all := strings.Join(got, "; "); all != c.want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.name, c.segments, all, c.want)
		}
		if n := b.AckedFrom(b.Expected()); n != c.awaited {
			t.Errorf("%s: %s: %d bytes are awaited, want %d", c.name, c.segments, n, c.awaited)
		}
	}
}

// TestBytesKnown: what is known of a stream before and after its first segment, its first acknowledgement, and its FIN.
func TestBytesKnown(t *testing.T) {
	b := Order[uint32]{Circle: Octets}
	state := func(known, acked, ended bool) {
		t.Helper()
		if b.Known() != known || b.Acknowledged() != acked || b.Ended() != ended {
			t.Errorf("known %t, acknowledged %t, ended %t; want %t, %t, %t", b.Known(), b.Acknowledged(), b.Ended(), known, acked, ended)
		}
	}
	state(false, false, false)
	if !b.IsNew(1<<31) || b.AckedFrom(0) != 0 || b.IsAcked(0) {
		t.Error("before the first segment, each byte is new, and none is acknowledged")
	}
	b.Announce(100)
	state(true, false, false)
	b.Take(Request{PSN: 100, Size: 10}, 0)
	state(true, false, false)
	if b.IsNew(109) || !b.IsNew(110) || b.Expected() != 110 {
		t.Error("byte 110 is the next one")
	}
	b.Acknowledge(105, 0)
	state(true, true, false)
	if !b.IsAcked(104) || b.IsAcked(105) || b.AckedFrom(103) != 2 || b.AckedFrom(106) != 0 {
		t.Error("the bytes before 105 are acknowledged")
	}
	b.End(110)
	state(true, true, true)
	if byteFacts(&b, b.Take(Request{PSN: 120, Size: 5}, 0)); b.Window().Len() != 1 || b.Size() != 0 {
		t.Errorf("%d segments wait, and gaps take %d bytes", b.Window().Len(), b.Size())
	}
	if b.SkipGap(0); !b.Window().Empty() || b.Size() == 0 {
		t.Error("the gap was skipped")
	}
}

// TestBytesWindow: the segments that wait are limited, and so are their bytes, those of longer copies, too.
func TestBytesWindow(t *testing.T) {
	b := Order[uint32]{Circle: Octets}
	b.Take(Request{PSN: 0, Size: 1}, 0)
	for i := range uint32(maxHeld + 1) {
		if got := byteFacts(&b, b.Take(Request{PSN: 10 + 2*i, Size: 1}, 0)); strings.Contains(got, "missing") != (i == maxHeld) {
			t.Fatalf("segment %d: %s", i, got)
		}
	}
	if n := b.Window().Len(); n != maxHeld {
		t.Errorf("%d segments wait", n)
	}
	for _, longer := range []bool{false, true} {
		b := Order[uint32]{Circle: Octets}
		for i, seq := range []uint32{0, 10, 10} {
			all := b.Take(Request{PSN: seq, Size: 1}, 0)
			switch {
			case i == 1:
				all = b.Hold(maxHeldBytes, 0, 0)
			case i == 2 && longer:
				all = b.Lengthen(1)
			case i == 2:
				all = nil
			}
			if skipped := i > 0 && len(all) > 0; skipped != (longer && i == 2) {
				t.Errorf("segment %d: longer copy %t: bytes are skipped: %t", i, longer, skipped)
			}
		}
		if b.Window().Empty() != longer {
			t.Errorf("longer copy %t: the window is empty: %t", longer, b.Window().Empty())
		}
	}
}

// TestBytesModel: whatever the order, the overlaps, the losses and the copies of segments, each byte is accepted once and
// in order, or counted as missing, and an item that waited is released once, after its new bytes were accepted.
func TestBytesModel(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		first := r.Uint32()
		b := Order[int]{Circle: Octets}
		b.Announce(first)
		position, held, released := first, 0, 0
		captured := map[uint32]bool{}
		var apply func(all []Fact[int])
		apply = func(all []Fact[int]) {
			for _, f := range all {
				switch f.Kind {
				case Accepted, Missing:
					if f.From != position || f.From == f.To {
						t.Fatalf("seed %d: fact %s %d-%d at %d", seed, names[f.Kind], f.From, f.To, position)
					}
					position = f.To
					for seq := f.From; seq != f.To; seq++ {
						if captured[seq] != (f.Kind == Accepted) {
							t.Fatalf("seed %d: byte %d was captured: %t, and is %s", seed, seq, captured[seq], names[f.Kind])
						}
					}
				case Waits:
					if b.Window().Item(Octets, f.From) == nil {
						apply(b.Hold(1, 0, 0))
						held++
					} else if i, _ := b.Window().find(Octets, f.From); b.Window().order[i].Size < f.To-f.From {
						apply(b.Lengthen(1))
					}
				case Released:
					released++
				case Again, Late:
					if Octets.Delta(f.To, position) > 0 {
						t.Fatalf("seed %d: bytes up to %d come again at %d", seed, f.To, position)
					}
				}
			}
			if position != b.Expected() {
				t.Fatalf("seed %d: %d is expected at %d", seed, b.Expected(), position)
			}
		}
		for range 40 {
			at, n := uint32(max(0, int(position-first)-10+r.IntN(30))), 1+uint32(r.IntN(8))
			s := Request{PSN: first + at, Size: n}
			for i := range n {
				captured[s.PSN+i] = true
			}
			apply(b.Take(s, 0))
			switch r.IntN(6) {
			case 0:
				apply(b.Acknowledge(position+uint32(r.IntN(12)), 0))
			case 1:
				apply(b.SkipGap(0))
			}
		}
		for !b.Window().Empty() {
			apply(b.SkipGap(0))
		}
		if held != released || b.Window() != nil && b.Window().bytes != 0 {
			t.Fatalf("seed %d: %d of %d items were released, %d bytes are left", seed, released, held, b.Window().bytes)
		}
	}
}
