package memory

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// exposedRegions returns the regions of a Call with two Read chunks, three Write chunks of which the second is empty,
// and a Reply chunk, and what they are exposed in.
func exposedRegions() (*Regions[int], *Exposure[int]) {
	r, e := new(Regions[int]), new(Exposure[int])
	r.List(new(int), &rpcrdma.Header{
		Reads: []rpcrdma.ReadSegment{
			{Position: 40, Segment: rpcrdma.Segment{Handle: 1, Offset: 1100, Length: 50}},
			{Segment: rpcrdma.Segment{Handle: 1, Offset: 1000, Length: 100}},
			{Position: 40, Segment: rpcrdma.Segment{Handle: 2, Offset: 5000, Length: 11}},
		},
		ReadOrder: []int{1, 0, 2},
		Writes:    []rpcrdma.Segment{{Handle: 3, Offset: 300, Length: 100}, {Handle: 3, Offset: 400, Length: 60}, {Handle: 4, Length: 20}},
		WriteEnds: []int{2, 2, 3},
		Reply:     []rpcrdma.Segment{{Handle: 5, Length: 200}},
		HasReply:  true,
	}, true)
	r.Expose(e)
	return r, e
}

// TestRegionsList: the segments of a Call, their places in the chunks, and what the Call offers with them.
func TestRegionsList(t *testing.T) {
	r, _ := exposedRegions()
	var got []string
	for i := range r.Segments {
		s := &r.Segments[i]
		got = append(got, fmt.Sprintf("%s %d.%d position %d: %d at %d+%d, total %d, seen %t, last %d",
			s.Kind.Name(), s.Chunk, s.Index, s.Position, s.Handle, s.at, s.Length, s.Total, s.HandleSeen, r.last(s).Number))
	}
	want := []string{
		"read 0.0 position 0: 1 at 0+100, total 100, seen false, last 0",
		"read 1.0 position 40: 1 at 0+50, total 150, seen true, last 2",
		"read 1.1 position 40: 2 at 50+11, total 11, seen false, last 2",
		"write 0.0 position 0: 3 at 0+100, total 100, seen false, last 4",
		"write 0.1 position 0: 3 at 100+60, total 160, seen true, last 4",
		"write 2.0 position 0: 4 at 0+20, total 20, seen false, last 5",
		"reply 0.0 position 0: 5 at 0+200, total 200, seen false, last 6",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if r.Writes != 3 || !r.ReplyChunk || !r.Incomplete {
		t.Errorf("%d Write chunks, Reply chunk %t, incomplete %t", r.Writes, r.ReplyChunk, r.Incomplete)
	}
	offered := [...]int64{r.Offered(ReadChunk, 0), r.Offered(ReadChunk, 1), r.Offered(ReadChunk, 2), r.Offered(WriteChunk, 0), r.Offered(WriteChunk, 1), r.Offered(WriteChunk, 2), r.Offered(ReplyChunk, 0)}
	if offered != [...]int64{100, 61, 0, 160, 0, 20, 200} {
		t.Errorf("the chunks have %d bytes", offered)
	}
	if n := r.ReadBytes(); n != 164 { // with the pad of the reduced item
		t.Errorf("the Read chunks have %d bytes of the stream, want 164", n)
	}
	if holes := r.Holes([]nfs.Hole{{Position: 90, Length: 1}}); !slices.Equal(holes, []nfs.Hole{{Position: 40, Length: 61}, {Position: 90, Length: 1}}) {
		t.Errorf("the holes are %v", holes)
	}
	cut := r.Emptied()
	if len(cut.Segments) != 0 || cap(cut.Segments) != cap(r.Segments) || cut.Writes != 0 || cut.ReplyChunk || cut.Incomplete {
		t.Errorf("emptied regions: %+v", cut)
	}
	if r.Trim(); r.Segments == nil {
		t.Error("the storage of a small Call was freed")
	}
	large := Regions[int]{Segments: make([]Segment[int], 17)}
	if large.Trim(); large.Segments != nil {
		t.Error("the storage of a large Call was kept")
	}
}

// TestRegionsExposed: memory is exposed under its handles until it is hidden.
func TestRegionsExposed(t *testing.T) {
	r, e := exposedRegions()
	for handle, want := range map[uint32]struct {
		first, latest  int32
		exposes, reads bool
	}{1: {0, 1, true, true}, 2: {2, 2, true, true}, 3: {3, 4, true, false}, 4: {5, 5, true, false}, 5: {6, 6, true, false}, 6: {-1, -1, false, false}} {
		first, latest := int32(-1), int32(-1)
		if s := r.Handle(handle); s != nil {
			first = s.Number
		}
		if s := e.Latest(handle); s != nil {
			latest = s.Number
		}
		if first != want.first || latest != want.latest || r.Exposes(handle) != want.exposes || r.Reads(handle) != want.reads {
			t.Errorf("handle %d: first %d, latest %d, exposes %t, reads %t, want %+v", handle, first, latest, r.Exposes(handle), r.Reads(handle), want)
		}
	}
	other := new(Regions[int])
	other.List(new(int), &rpcrdma.Header{Reply: []rpcrdma.Segment{{Handle: 5, Length: 30}}, HasReply: true}, false)
	if other.Expose(e); other.Segments[0].HandleSeen || other.Segments[0].Total != 30 {
		t.Errorf("the handle of another Call counts for this one: %+v", other.Segments[0])
	}
	if r.Hide(e); e.Latest(1) != nil || e.Latest(3) != nil || e.Latest(5) != &other.Segments[0] {
		t.Error("after the end of the exposure, the wrong memory is exposed")
	}
	if s := &r.Segments[0]; !s.Invalidate() || s.Invalidate() || !s.Invalidated {
		t.Error("the first invalidation by another Reply is not told from the second")
	}
}

// TestRegionsFind: an operation continues into the segment that follows in memory, and no further.
func TestRegionsFind(t *testing.T) {
	r, _ := exposedRegions()
	for _, test := range []struct {
		in, start int32 // the segment that the operation was in, and from which on it is searched
		offset    uint64
		n         int
		want      int32
		fit       int
	}{
		{3, 3, 300, 500, 3, 100},
		{3, 3, 399, 500, 3, 1},
		{3, 3, 400, 500, 4, 60},
		{3, 3, 410, 20, 4, 20},
		{3, 3, 460, 1, 4, 0},
		{4, 3, 300, 5, 3, 5},  // a response to an earlier part
		{0, 0, 1120, 5, 1, 5}, // another chunk, but the memory continues
		{1, 0, 1000, 5, 0, 5},
		{1, 0, 1150, 5, 1, 0}, // the next segment has another handle
		{3, 3, 299, 5, 3, 0},
		{5, 5, 20, 1, 5, 0},
	} {
		s := r.Start(&r.Segments[test.in], test.offset)
		if test.offset >= r.Segments[test.in].Offset {
			test.start = test.in
		}
		got, fit := r.Find(s, test.offset, test.n)
		if s.Number != test.start || got.Number != test.want || fit != test.fit {
			t.Errorf("%+v: started at %d, found %d and %d", test, s.Number, got.Number, fit)
		}
	}
	for _, test := range []struct {
		in     int
		target Target
		want   bool
	}{
		{3, Target{Handle: 3, Offset: 350, Length: 110}, true},
		{3, Target{Handle: 3, Offset: 350, Length: 111}, false},
		{3, Target{Handle: 3, Offset: 299, Length: 1}, false},
		{3, Target{Handle: 3, Offset: 401, Length: 1}, false},
		{0, Target{Handle: 1, Offset: 1000, Length: 150}, true},
		{6, Target{Handle: 5, Offset: 0, Length: 200}, true},
	} {
		if got := r.Reaches(&r.Segments[test.in], test.target); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
	for _, test := range []struct {
		in       int
		from, to uint64
		want     record.Part
	}{
		{4, 350, 450, record.Part{Chunk: record.WriteList, Segment: 0, Length: 160, From: 50, To: 150}},
		{4, 400, 460, record.Part{Chunk: record.WriteList, Segment: 1, Length: 160, From: 100, To: 160}},
		{4, 400, 461, record.Part{Chunk: record.WriteList, Segment: 1, Length: 160}},
		{1, 1000, 1050, record.Part{Chunk: record.ReadList, Index: 1, Length: 61}}, // it is no other chunk
	} {
		if got := r.Part(&r.Segments[test.in], test.from, test.to); got != test.want {
			t.Errorf("%+v: %+v", test, got)
		}
	}
	// An empty segment does not connect its neighbors, and addresses end.
	var empty, top Regions[int]
	empty.List(nil, &rpcrdma.Header{Reply: []rpcrdma.Segment{{Handle: 1, Length: 10}, {Handle: 1, Offset: 10}, {Handle: 1, Offset: 10, Length: 10}}}, false)
	if s, fit := empty.Find(&empty.Segments[0], 10, 1); s.Number != 0 || fit != 0 {
		t.Errorf("an operation continued after an empty segment: %d, %d", s.Number, fit)
	}
	top.List(nil, &rpcrdma.Header{Reply: []rpcrdma.Segment{{Handle: 1, Offset: 1<<64 - 10, Length: 20}}}, false)
	if s, fit := top.Find(&top.Segments[0], 0, 1); s.Number != 0 || fit != 0 {
		t.Errorf("an operation continued after the last address: %d, %d", s.Number, fit)
	}
}

// TestRegionsMove: the bytes that moved, those that are kept, those that a Reply returns, and those that are missing.
func TestRegionsMove(t *testing.T) {
	r, _ := exposedRegions()
	var storage Transfers
	data := bytes.Repeat([]byte{7}, 50)
	r.Keep(1000, false) // the message at Position 0 and the Reply chunk
	for _, move := range []struct {
		segment int
		offset  uint64
		n       int
		bytes   int64
		first   bool
	}{
		{3, 300, 40, 0, false},
		{0, 1000, 50, 62, true},
		{6, 0, 8, 10, false},
		{4, 400, 10, 0, false},
		{0, 1090, 10, 0, false}, // its bytes were not captured
	} {
		captured := data[:move.n]
		if move.offset == 1090 {
			captured = nil
		}
		if cost, first := r.Move(&storage, &r.Segments[move.segment], move.offset, captured, move.n); cost.Bytes != move.bytes || first != move.first {
			t.Errorf("%+v: cost %+v, first %t", move, cost, first)
		}
	}
	if r.kept != 72 {
		t.Errorf("%d bytes are kept, want 72", r.kept)
	}
	if length, moved, known := r.Read(0); length != 100 || moved != 60 || !known {
		t.Errorf("of the Read chunk, %d of %d bytes were read, known %t", moved, length, known)
	}
	if got := r.Gather([]byte{1}, ReadChunk, 0); !bytes.Equal(got, append([]byte{1}, data...)) {
		t.Errorf("gathered %v", got)
	}
	if end := r.Written(WriteChunk, 0); end != 110 {
		t.Errorf("Write chunk 0 was written up to %d, want 110", end)
	}
	if r.Unwrite(3, 310, 340); r.Segments[3].Transferred().Moved() != 10 || r.Segments[4].Transferred().Moved() != 10 {
		t.Error("a refused Write leaves other bytes than those that were taken")
	}
	r.Returns(&rpcrdma.Header{Writes: []rpcrdma.Segment{{Length: 70}, {Length: 30}, {Length: 5}}, WriteEnds: []int{2, 2, 3}, Reply: []rpcrdma.Segment{{Length: 8}}})
	// 40 of 100 bytes and 61 were not read, and 10 were not captured; of 70, 30 and 5 bytes, 10, 10 and 0 were written.
	if call, reply := r.Missing(); call != 40+10+61 || reply != 60+20+5 {
		t.Errorf("%d bytes of the Call and %d of the Reply are missing", call, reply)
	}
	if got := r.Gather(nil, ReplyChunk, 0); !bytes.Equal(got, data[:8]) {
		t.Errorf("gathered %v of the Reply chunk", got)
	}
	if r.Unwrite(3, 300, 340); r.Segments[3].Transferred().Moved() != 0 {
		t.Error("a Write that came after the refused one leaves bytes")
	}
	if n := r.Drop(); n != 72 || r.kept != 0 || len(r.Gather(nil, ReadChunk, 0)) != 0 || r.Segments[0].Keeps() {
		t.Errorf("dropped %d bytes, %d are kept", n, r.kept)
	}
	r.Keep(1000, true)
	if !r.Segments[5].Keeps() {
		t.Error("not all data is kept")
	}
	if r.Release(&storage); r.Segments[0].Transferred().Moved() != 0 {
		t.Error("the bytes that moved are known after the end")
	}
}
