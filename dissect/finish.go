package dissect

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// What becomes of a transaction at its end: its record.

// emit completes the record and hands it out.
func (d *Dissector) emit(t *txn) {
	if t.emitted {
		return
	}
	t.emitted = true
	r := &t.rec
	r.Direction = t.conn.direction(t.side)
	if r.Call != nil {
		t.chunks()
	}
	t.events()
	t.phase()
	if t.operation = nfs.Principal(r.Operations); t.operation != "" {
		r.Operation = &t.operation
	}
	d.summary.Transactions[record.Status(r.Status)]++
	if d.handler.Payload != nil && d.options.Rebuild {
		d.rebuild(t)
	}
	if d.handler.Transaction != nil {
		d.handler.Transaction(d.converter.record(r))
	}
}

// release gives the storage of a transaction back.
func (d *Dissector) release(t *txn) {
	d.kept -= t.kept
	t.rec.ID = 0
	if t.kept > 1<<16 || cap(t.rec.Timeline) > 256 { // do not hoard what one large transaction needed
		return
	}
	d.free = append(d.free, t)
}

// chunks fills in the chunk lists and what was left to invalidate.
func (t *txn) chunks() {
	r := &t.rec
	reads, writes := 0, 0
	for i := range t.segments {
		if t.segments[i].kind == readChunk {
			reads++
		} else {
			writes++
		}
	}
	t.readSegs, t.writeSegs = slices.Grow(t.readSegs[:0], reads), slices.Grow(t.writeSegs[:0], writes)
	if r.ReadChunks = r.ReadChunks[:0]; r.ReadChunks == nil {
		r.ReadChunks = []ReadChunk{}
	}
	if r.WriteChunks = r.WriteChunks[:0]; r.WriteChunks == nil {
		r.WriteChunks = []WriteChunk{}
	}
	if r.NotInvalidated = r.NotInvalidated[:0]; r.NotInvalidated == nil {
		r.NotInvalidated = []Hex32{}
	}
	for range t.writes { // a chunk may have no segments
		r.WriteChunks = append(r.WriteChunks, WriteChunk{Segments: t.writeSegs[:0]})
	}
	reply := len(t.segments)
	for i := range t.segments {
		s := &t.segments[i]
		if !(r.Invalidation != nil && uint32(r.Invalidation.Handle) == s.handle) && !slices.Contains(r.NotInvalidated, Hex32(s.handle)) {
			r.NotInvalidated = append(r.NotInvalidated, Hex32(s.handle))
		}
		if s.kind == readChunk {
			t.readSegs = append(t.readSegs, Segment{Handle: Hex32(s.handle), Length: s.length, Offset: Hex64(s.offset), MovedBytes: s.moved.total()})
			n := len(t.readSegs)
			if s.index == 0 {
				r.ReadChunks = append(r.ReadChunks, ReadChunk{Position: s.position, Segments: t.readSegs[n-1:]})
			}
			last := &r.ReadChunks[len(r.ReadChunks)-1]
			last.Segments = last.Segments[:s.index+1]
			continue
		}
		w := WriteSegment{Hex32(s.handle), s.length, Hex64(s.offset), nil, s.moved.total()}
		if r.Reply != nil && r.Status == StatusComplete {
			w.ReturnedLength = &s.returned
		}
		t.writeSegs = append(t.writeSegs, w)
		n := len(t.writeSegs)
		if s.kind == replyChunk {
			reply = min(reply, n-1)
			continue
		}
		last := &r.WriteChunks[s.chunk]
		if s.index == 0 {
			last.Segments = t.writeSegs[n-1 : n-1]
		}
		last.Segments = last.Segments[:s.index+1]
	}
	r.ReplyChunk = nil
	if t.hasReply {
		t.replyChunk.Segments = t.writeSegs[min(reply, len(t.writeSegs)):]
		r.ReplyChunk = &t.replyChunk
	}
}

// events sorts the timeline by packet and points the optional fields at their
// numbers.
func (t *txn) events() {
	for i := range t.rec.Timeline {
		e, n := &t.rec.Timeline[i], &t.eventNumbers[i]
		switch e.Event {
		case EventRead, EventReadDone, EventWriteFirst, EventWriteLast:
			e.Handle, e.Offset = &n.handle, &n.offset
		case EventInvalidate:
			e.Handle = &n.handle
		}
		if n.bytes >= 0 {
			e.Bytes = &n.bytes
		}
		if n.packets > 0 {
			e.Packets = &n.packets
		}
		if n.last > 0 {
			e.LastPacket = &n.last
		}
	}
	slices.SortStableFunc(t.rec.Timeline, func(a, b Event) int { return int(a.Packet - b.Packet) })
}

// phase splits the latency by the timeline. Each phase begins where the one
// before it ended, so that they add up even where Reads and Writes overlap.
func (t *txn) phase() {
	r := &t.rec
	if r.LatencyNS == nil {
		return
	}
	var first, last [2]*Time // of Reads and Writes
	for i := range r.Timeline {
		e := &r.Timeline[i]
		switch e.Event {
		case EventRead, EventWriteFirst:
			if kind := oneIf(e.Event == EventWriteFirst); first[kind] == nil {
				first[kind] = &e.Time
			}
		case EventReadDone, EventWriteLast:
			kind := oneIf(e.Event == EventWriteLast)
			if last[kind] == nil || e.Time > *last[kind] {
				last[kind] = &e.Time
			}
		}
	}
	at, n := t.call.Time, 0
	step := func(end *Time, to **int64) {
		if end != nil {
			t.phaseNS[n] = int64(max(*end, at) - at)
			at = max(*end, at)
			*to = &t.phaseNS[n]
		}
		n++
	}
	t.phases = Phases{}
	step(first[0], &t.phases.ToReadNS)
	step(last[0], &t.phases.ReadNS)
	step(first[1], &t.phases.ToWriteNS)
	step(last[1], &t.phases.WriteNS)
	step(&t.answer.lastTime, &t.phases.ToReplyNS)
	r.Phases = &t.phases
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
