package points

import "github.com/rdmadump/rdmadump/capture"

// twins finds the second copies in the capture of a mirror port.
type twins struct {
	open  map[uint64]int64 // times of the packets whose second copy has not come
	order queue[recent]
}

// isTwin reports whether a frame is the second copy of one that the source showed just before, within a time.
func (m *matcher) isTwin(src *source, h *header, within int64) bool {
	t := m.twins[src]
	if t == nil {
		t = &twins{open: map[uint64]int64{}}
		m.twins[src] = t
	}
	for t.order.len() > 0 && t.order.first().time < h.time-twinsWithin {
		if old := t.order.pop(); t.open[old.key] == old.time {
			delete(t.open, old.key)
		}
	}
	if at, is := t.open[h.key]; is && h.time-at <= within {
		delete(t.open, h.key)
		return true
	}
	t.open[h.key] = h.time
	t.order.push(recent{key: h.key, time: h.time})
	return false
}

// sameness finds the frames that several files have with the same times.
type sameness struct {
	copies map[uint64]int32 // by frame, and by frame and source: how many times it was there
	order  queue[recent]
}

// repeated reports whether another source had the same frame as many times.
func (s *sameness) repeated(src *source, f *capture.Frame) bool {
	if s.copies == nil {
		s.copies = map[uint64]int32{}
	}
	for s.order.len() > 0 && s.order.first().time < f.Time-twinsWithin {
		delete(s.copies, s.order.pop().key)
	}
	add := func(key uint64) int32 {
		n := s.copies[key] + 1
		if s.copies[key] = n; n == 1 {
			s.order.push(recent{key: key, time: f.Time})
		}
		return n
	}
	frame := mix(hashBytes(uint64(f.Length), f.Data[:min(len(f.Data), maxMasked)]), uint64(f.Time)^uint64(src.point)<<48)
	if add(mix(frame, uint64(src.file)<<16|uint64(src.origin)|1<<63)) <= s.copies[frame] {
		return true
	}
	add(frame)
	return false
}
