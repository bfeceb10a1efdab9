package transaction

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// exposedRegions returns the regions of a Call with two Read chunks, three Write chunks of which the second is empty,
// and a Reply chunk, and what they are exposed in.
func exposedRegions() (*regions, *exposure) {
	r, e := new(regions), new(exposure)
	r.list(new(txn), &rpcrdma.Header{
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
	r.expose(e)
	return r, e
}

// TestRegionsList: the segments of a Call, their places in the chunks, and what the Call offers with them.
func TestRegionsList(t *testing.T) {
	r, _ := exposedRegions()
	var got []string
	for i := range r.segments {
		s := &r.segments[i]
		got = append(got, fmt.Sprintf("%s %d.%d position %d: %d at %d+%d, total %d, seen %t, last %d",
			chunkNames[s.kind], s.chunk, s.index, s.position, s.Handle, s.at, s.Length, s.total, s.handleSeen, r.last(s).number))
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
	if r.writes != 3 || !r.replyChunk || !r.incomplete {
		t.Errorf("%d Write chunks, Reply chunk %t, incomplete %t", r.writes, r.replyChunk, r.incomplete)
	}
	offered := [...]int64{r.offered(readChunk, 0), r.offered(readChunk, 1), r.offered(readChunk, 2), r.offered(writeChunk, 0), r.offered(writeChunk, 1), r.offered(writeChunk, 2), r.offered(replyChunk, 0)}
	if offered != [...]int64{100, 61, 0, 160, 0, 20, 200} {
		t.Errorf("the chunks have %d bytes", offered)
	}
	if n := r.readBytes(); n != 164 { // with the pad of the reduced item
		t.Errorf("the Read chunks have %d bytes of the stream, want 164", n)
	}
	if holes := r.holes([]nfs.Hole{{Position: 90, Length: 1}}); !slices.Equal(holes, []nfs.Hole{{Position: 40, Length: 61}, {Position: 90, Length: 1}}) {
		t.Errorf("the holes are %v", holes)
	}
	cut := r.emptied()
	if len(cut.segments) != 0 || cap(cut.segments) != cap(r.segments) || cut.writes != 0 || cut.replyChunk || cut.incomplete {
		t.Errorf("emptied regions: %+v", cut)
	}
	if r.trim(); r.segments == nil {
		t.Error("the storage of a small Call was freed")
	}
	large := regions{segments: make([]segment, 17)}
	if large.trim(); large.segments != nil {
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
		if s := r.handle(handle); s != nil {
			first = s.number
		}
		if s := e.Latest(handle); s != nil {
			latest = s.number
		}
		if first != want.first || latest != want.latest || r.exposes(handle) != want.exposes || r.reads(handle) != want.reads {
			t.Errorf("handle %d: first %d, latest %d, exposes %t, reads %t, want %+v", handle, first, latest, r.exposes(handle), r.reads(handle), want)
		}
	}
	other := new(regions)
	other.list(new(txn), &rpcrdma.Header{Reply: []rpcrdma.Segment{{Handle: 5, Length: 30}}, HasReply: true}, false)
	if other.expose(e); other.segments[0].handleSeen || other.segments[0].total != 30 {
		t.Errorf("the handle of another Call counts for this one: %+v", other.segments[0])
	}
	if r.hide(e); e.Latest(1) != nil || e.Latest(3) != nil || e.Latest(5) != &other.segments[0] {
		t.Error("after the end of the exposure, the wrong memory is exposed")
	}
	if s := &r.segments[0]; !s.invalidate() || s.invalidate() || !s.invalidated {
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
		s := r.start(&r.segments[test.in], test.offset)
		if test.offset >= r.segments[test.in].Offset {
			test.start = test.in
		}
		got, fit := r.find(s, test.offset, test.n)
		if s.number != test.start || got.number != test.want || fit != test.fit {
			t.Errorf("%+v: started at %d, found %d and %d", test, s.number, got.number, fit)
		}
	}
	for _, test := range []struct {
		in     int
		target target
		want   bool
	}{
		{3, target{Handle: 3, Offset: 350, Length: 110}, true},
		{3, target{Handle: 3, Offset: 350, Length: 111}, false},
		{3, target{Handle: 3, Offset: 299, Length: 1}, false},
		{3, target{Handle: 3, Offset: 401, Length: 1}, false},
		{0, target{Handle: 1, Offset: 1000, Length: 150}, true},
		{6, target{Handle: 5, Offset: 0, Length: 200}, true},
	} {
		if got := r.reaches(&r.segments[test.in], test.target); got != test.want {
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
		if got := r.part(&r.segments[test.in], test.from, test.to); got != test.want {
			t.Errorf("%+v: %+v", test, got)
		}
	}
	// An empty segment does not connect its neighbors, and addresses end.
	var empty, top regions
	empty.list(nil, &rpcrdma.Header{Reply: []rpcrdma.Segment{{Handle: 1, Length: 10}, {Handle: 1, Offset: 10}, {Handle: 1, Offset: 10, Length: 10}}}, false)
	if s, fit := empty.find(&empty.segments[0], 10, 1); s.number != 0 || fit != 0 {
		t.Errorf("an operation continued after an empty segment: %d, %d", s.number, fit)
	}
	top.list(nil, &rpcrdma.Header{Reply: []rpcrdma.Segment{{Handle: 1, Offset: 1<<64 - 10, Length: 20}}}, false)
	if s, fit := top.find(&top.segments[0], 0, 1); s.number != 0 || fit != 0 {
		t.Errorf("an operation continued after the last address: %d, %d", s.number, fit)
	}
}

// TestRegionsMove: the bytes that moved, those that are kept, those that a Reply returns, and those that are missing.
func TestRegionsMove(t *testing.T) {
	r, _ := exposedRegions()
	var storage memory.Transfers
	data := bytes.Repeat([]byte{7}, 50)
	r.keep(1000, false) // the message at Position 0 and the Reply chunk
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
		if cost, first := r.move(&storage, &r.segments[move.segment], move.offset, captured, move.n); cost.Bytes != move.bytes || first != move.first {
			t.Errorf("%+v: cost %+v, first %t", move, cost, first)
		}
	}
	if r.kept != 72 {
		t.Errorf("%d bytes are kept, want 72", r.kept)
	}
	if length, moved, known := r.read(0); length != 100 || moved != 60 || !known {
		t.Errorf("of the Read chunk, %d of %d bytes were read, known %t", moved, length, known)
	}
	if got := r.gather([]byte{1}, readChunk, 0); !bytes.Equal(got, append([]byte{1}, data...)) {
		t.Errorf("gathered %v", got)
	}
	if end := r.written(0); end != 110 {
		t.Errorf("Write chunk 0 was written up to %d, want 110", end)
	}
	refused := rdma.Refusal{Op: &rdma.Operation{Handle: 3, Offset: 300, Length: 40}, Taken: 10}
	if r.unwrite(&refused); r.segments[3].Transferred().Moved() != 10 || r.segments[4].Transferred().Moved() != 10 {
		t.Error("a refused Write leaves other bytes than those that were taken")
	}
	r.returns(&rpcrdma.Header{Writes: []rpcrdma.Segment{{Length: 70}, {Length: 30}, {Length: 5}}, WriteEnds: []int{2, 2, 3}, Reply: []rpcrdma.Segment{{Length: 8}}})
	// 40 of 100 bytes and 61 were not read, and 10 were not captured; of 70, 30 and 5 bytes, 10, 10 and 0 were written.
	if call, reply := r.missing(); call != 40+10+61 || reply != 60+20+5 {
		t.Errorf("%d bytes of the Call and %d of the Reply are missing", call, reply)
	}
	if got := r.gather(nil, replyChunk, 0); !bytes.Equal(got, data[:8]) {
		t.Errorf("gathered %v of the Reply chunk", got)
	}
	refused.Later = true
	if r.unwrite(&refused); r.segments[3].Transferred().Moved() != 0 {
		t.Error("a Write that came after the refused one leaves bytes")
	}
	if n := r.drop(); n != 72 || r.kept != 0 || len(r.gather(nil, readChunk, 0)) != 0 || r.segments[0].Keeps() {
		t.Errorf("dropped %d bytes, %d are kept", n, r.kept)
	}
	r.keep(1000, true)
	if !r.segments[5].Keeps() {
		t.Error("not all data is kept")
	}
	if r.release(&storage); r.segments[0].Transferred().Moved() != 0 {
		t.Error("the bytes that moved are known after the end")
	}
}
