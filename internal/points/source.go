package points

import (
	"bytes"
	"context"
	"io"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Source provides the packets of all points as one capture: each packet once, with the times of the reference clock,
// in the order in which the packets came to their receivers. A packet that was lost comes at the time at which it was
// sent. See [capture.Seen].
//
// It reads the files twice at the same time. One reader is ahead of the other by the time that it takes to
// find out what happened to a packet. Both read the same frames in the same order.
type Source struct {
	plan    *Plan
	ahead   *capture.Merged // provides frames to the matcher
	frames  *capture.Merged // provides frames to the caller
	batch   capture.Batch   // of ahead
	at      int             // index of the next frame in batch
	ended   bool            // ahead has no more frames
	copies  bool            // frames for which others stand are provided, too
	better  map[uint64]better
	kept    int64 // bytes of these
	matcher *matcher

	parts           []part  // of the two readers
	taken, provided []int64 // by point: the frames of the two readers so far
}

// part is a file of a source.
type part struct {
	*source
	base int64 // number of frames in the files of the source before it
}

// number returns the number of a frame at its point. The frames of a series are numbered one after the other, and those of several
// sources as they come. counts has the frames of a reader so far.
func (s *Source) number(counts []int64, f *capture.Frame) int64 {
	of := s.parts[f.Input]
	if counts[of.point]++; s.plan.Points[of.point].counts {
		return counts[of.point]
	}
	return of.base + f.Number
}

// WithCopies makes the source provide all frames, also those for which others stand; see [capture.Copy]. The function
// must be called before the first frame is read.
func (s *Source) WithCopies() { s.copies = true }

// Open opens the files again.
func (p *Plan) Open(ctx context.Context) (*Source, error) {
	s := &Source{plan: p, matcher: newMatcher(p)}
	parts, of := p.parts()
	var err error
	s.parts, s.taken, s.provided = of, make([]int64, len(p.Points)), make([]int64, len(p.Points))
	if s.ahead, err = capture.OpenParts(ctx, parts); err != nil {
		return nil, err
	}
	if s.frames, err = capture.OpenParts(ctx, parts); err != nil {
		s.ahead.Close()
		return nil, err
	}
	return s, nil
}

// parts returns a part for each file of each source, which corrects the times of its frames.
func (p *Plan) parts() (parts []capture.Part, of []part) {
	several := map[int]int{}
	for _, src := range p.sources {
		several[src.file]++
	}
	for i, src := range p.sources {
		first := i == 0 || p.sources[i-1].file != src.file
		for _, piece := range src.pieces {
			file := p.files[piece.file]
			of = append(of, part{src, piece.base})
			parts = append(parts, capture.Part{Path: file.Path, Name: file.Name, Take: func(f *capture.Frame) bool {
				if src.leftOut {
					return false
				}
				if several[src.file] > 1 && f.From != nil && f.From.Index != src.origin && !(first && p.isExtra(src.file, f.From.Index)) {
					return false
				}
				f.Time = src.time(piece.base+f.Number, f.Time)
				return true
			}})
		}
	}
	return parts, of
}

// isExtra reports whether an interface of a file is not a source, because there were too many.
func (p *Plan) isExtra(file, origin int) bool {
	for _, src := range p.sources {
		if src.file == file && src.origin == origin {
			return false
		}
	}
	return true
}

// step lets the matcher take the next frame.
func (s *Source) step(ctx context.Context) {
	if s.at == len(s.batch.Frames) {
		if s.at = 0; s.ahead.ReadBatch(ctx, &s.batch) != nil { // The other reader reports an error.
			s.ended = true
			s.matcher.finish()
			return
		}
	}
	f := &s.batch.Frames[s.at]
	s.at++
	f.Number = s.number(s.taken, f)
	s.matcher.add(s.parts[f.Input].source, f)
	if m := s.matcher; m.ring.len() > m.limit {
		for at := m.ring.head; at < m.ring.tail && at < m.ring.head+uint64(m.limit)/16; at++ {
			if !m.decided(at) {
				m.relieve(at)
			}
		}
	}
}

// ReadBatch implements [capture.Source].
func (s *Source) ReadBatch(ctx context.Context, b *capture.Batch) error {
	for {
		if err := s.frames.ReadBatch(ctx, b); err != nil {
			return err
		}
		kept := b.Frames[:0]
		for i := range b.Frames {
			f := &b.Frames[i]
			f.Number = s.number(s.provided, f)
			r := &s.matcher.ring
			for !s.ended && (r.head == r.tail || !s.matcher.decided(r.head)) {
				if s.step(ctx); ctx.Err() != nil {
					b.Release()
					return io.EOF
				}
			}
			if r.head == r.tail { // A file grew since it was read ahead.
				break
			}
			if e := r.at(r.head); s.shows(e) {
				if f.Seen = nil; len(s.plan.Points) > 1 || s.plan.same {
					f.Seen = s.describe(e, f)
					s.improve(r.head, f)
				}
				kept = append(kept, *f)
			} else if s.copies {
				f.Seen = s.describeCopy(e)
				kept = append(kept, *f)
			} else {
				s.keep(r.head, e, f)
			}
			s.matcher.pop()
		}
		if b.Frames = kept; len(kept) > 0 {
			return nil
		}
		if s.ended && s.matcher.ring.len() == 0 {
			b.Release()
		}
	}
}

// better is the frame of another point that has more of a packet than the frame that stands for the packet.
type better struct {
	link   capture.LinkType
	length int
	data   []byte
	held   int32
	blind  bool
}

// keep keeps a frame for the next point that the packet passed, if that captured less of the packet, or without ICRCs.
func (s *Source) keep(at uint64, e *entry, f *capture.Frame) {
	b, has := s.better[at]
	if has {
		s.drop(at)
	} else {
		b = better{f.LinkType, f.Length, f.Data, e.held, e.blind}
	}
	if e.sending != matched || e.mate == 0 || !s.matcher.ring.has(e.mate-1) {
		return
	}
	next := s.matcher.ring.at(e.mate - 1)
	if e.stream && (next.seq != e.seq || next.bytes != e.bytes) { // hosts merged or split the segment
		return
	}
	if next.arriving != matched || e.icrc == rocev2.ICRCBad || next.icrc == rocev2.ICRCBad || b.held <= next.held && b.blind == next.blind || b.blind && !next.blind || b.held < next.held {
		return
	}
	if n := int64(len(b.data)); s.kept+n <= s.plan.memory/4 {
		if !has {
			b.data = bytes.Clone(b.data)
		}
		if s.better == nil {
			s.better = map[uint64]better{}
		}
		s.kept += n
		s.better[e.mate-1] = b
	}
}

// drop forgets a frame that was kept.
func (s *Source) drop(at uint64) {
	s.kept -= int64(len(s.better[at].data))
	delete(s.better, at)
}

// improve gives a frame the bytes of the point that captured most of its packet.
func (s *Source) improve(at uint64, f *capture.Frame) {
	if b, has := s.better[at]; has {
		f.LinkType, f.Length, f.Data = b.link, b.length, b.data
		f.Seen.Unchecked = b.blind
		s.drop(at)
	}
}

// shows reports whether a frame is the one that stands for its packet.
func (s *Source) shows(e *entry) bool {
	return e.sending != matched && e.arriving != secondCopy && e.arriving != damagedThere
}

// describeCopy returns what is known of a frame for which another stands.
func (s *Source) describeCopy(e *entry) *capture.Seen {
	v := &capture.Seen{Point: int(e.point), Key: e.base}
	for stands := range s.matcher.onward(e) {
		v.Sent, v.SentPoint, v.SentNumber = stands.sent, int(stands.sentPoint), stands.sentNumber
	}
	switch {
	case e.arriving == secondCopy:
		v.Copy = capture.CopyMirror
	case e.arriving == damagedThere:
		v.Copy = capture.CopyDamaged
	default:
		v.Copy = capture.CopySent
	}
	return v
}

// describe returns what is known of the packet of a frame.
func (s *Source) describe(e *entry, f *capture.Frame) *capture.Seen {
	v := new(capture.Seen)
	v.Point, v.Key, v.Unchecked = int(e.point), e.base, e.blind
	switch {
	case e.path == nil:
		return v
	case e.sentNumber != 0:
		v.Sent, v.SentPoint, v.SentNumber = e.sent, int(e.sentPoint), e.sentNumber
	}
	v.SentBetween, v.ArrivedBetween = !s.plan.atSender(e.path.dir, e.path.points[0]), !s.plan.atReceiver(e.path.dir, e.path.points[len(e.path.points)-1])
	v.ArrivedBetween = v.ArrivedBetween || e.arriving == matched && e.isRefused() // It was damaged before its first point.
	v.Changed = e.changed
	v.Duplicate = e.copied && e.sending != none
	switch e.sending {
	case lost:
		v.Fate, v.ArrivedPoint = capture.FateLost, e.path.points[e.hop+1]
	case damagedOn:
		v.Fate, v.ArrivedPoint, v.BadChecksum = capture.FateCorrupted, e.path.points[e.hop+1], e.badSum
	case notCaptured:
		v.Fate = capture.FateNotCaptured
	case missing:
		v.Fate = capture.FateMissing
	}
	if e.sending == none {
		v.Arrived, v.ArrivedPoint, v.ArrivedNumber = e.time, int(e.point), e.number
		switch {
		case e.arriving == duplicate, e.arriving == matched && e.copied && e.second:
			v.Fate = capture.FateDuplicated
		case e.arriving == matched:
			v.Fate = capture.FateDelivered
		case e.arriving == damagedOn:
			v.Fate, v.BadChecksum = capture.FateCorrupted, true
		}
		if v.Fate != capture.FateDelivered && v.Fate != capture.FateCorrupted {
			v.Sent, v.SentPoint, v.SentNumber = 0, 0, 0
		}
	}
	return v
}

// Again opens the files once more, from their beginning.
func (s *Source) Again(ctx context.Context) (*Source, error) { return s.plan.Open(ctx) }

// Points returns the capture points.
func (s *Source) Points() []Point { return s.plan.Points }

// Matched returns the number of packets that a point and the reference point captured. It is complete when the last frame was read.
func (s *Source) Matched(point int) int64 { return s.matcher.common[point] }

// LeftOut returns the names of the files whose packets are not used; see [Plan.LeftOut].
func (s *Source) LeftOut() []string { return s.plan.LeftOut() }

// Hops returns what happened between the points. It is complete when the last frame was read.
func (s *Source) Hops() []*Hop { return s.matcher.hops }

// Progress returns the number of bytes that were read, and the size of the files. The total is 0 if the size of one of them is unknown.
func (s *Source) Progress() (read, total int64) { return s.frames.Progress() }

// MissingFiles returns which files of a ring are missing; see [capture.Merged.MissingFiles].
func (s *Source) MissingFiles() []capture.MissingFiles { return s.frames.MissingFiles() }

// Beyond describes the files with times that do not fit; see [capture.Merged.Beyond].
func (s *Source) Beyond() []capture.Beyond { return s.frames.Beyond() }

// Dropped returns the number of packets that the files report as dropped.
func (s *Source) Dropped() (n uint64) { return s.frames.Dropped() }

// Close closes the files.
func (s *Source) Close() error {
	s.batch.Release()
	s.ahead.Close()
	return s.frames.Close()
}
