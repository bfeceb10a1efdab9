package points

import (
	"math/rand/v2"
	"testing"
)

// TestExtents: extents are the bytes that a capture has, also across the end of the sequence
// numbers.
func TestExtents(t *testing.T) {
	base := uint32(0xfffffff0)
	var list extents
	list.add(base+10, base+20)
	list.add(base+30, base+40)
	for _, c := range []struct {
		from, to uint32
		has      bool
	}{{10, 20, true}, {12, 18, true}, {5, 15, false}, {15, 35, false}, {30, 40, true}, {40, 41, false}} {
		if got := list.has(base+c.from, base+c.to); got != c.has {
			t.Errorf("the bytes from %d to %d arrived: %v, want %v", c.from, c.to, got, c.has)
		}
	}
	list.add(base+18, base+32)
	if len(list) != 1 || !list.has(base+10, base+40) {
		t.Errorf("after the gap was closed: %v", list)
	}
	list.add(base, base+5)
	if len(list) != 2 || list[0] != (extent{base, base + 5}) || list.has(base, base+40) {
		t.Errorf("an earlier range: %v", list)
	}
	for i := range uint32(2 * maxExtents) {
		list.add(base+100+2*i, base+101+2*i)
	}
	if len(list) != maxExtents || list.has(base, base+5) || !list.has(base+100+4*maxExtents-2, base+100+4*maxExtents-1) {
		t.Errorf("%d ranges", len(list))
	}
}

// TestPayloadSum: the sums of parts make the sum of a payload, wherever it is divided.
func TestPayloadSum(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		b := make([]byte, random.IntN(40))
		for i := range b {
			b[i] = byte(random.UintN(3)) * 0x7f // many sums are 0 or 0xffff
		}
		var all parts
		for from := 0; from < len(b); {
			to := from + 1 + random.IntN(len(b)-from)
			all.add(payloadSum(b[from:to]), uint32(from))
			from = to
		}
		if want := payloadSum(b); len(b) > 0 && all.sum != want {
			t.Fatalf("%x: parts add up to %#x, want %#x", b, all.sum, want)
		}
	}
}
