package points

import "github.com/rdmadump/rdmadump/capture"

// twins finds the second copies in the capture of a mirror port.
type twins struct {
	open  map[uint64]int64 // times of the packets whose second copy has not come
	order queue[recent]
}

// isTwin reports whether a frame is the second copy of one that the mirror port showed just before.
func (m *matcher) isTwin(src *source, e *entry) bool {
	t := m.twins[src]
	if t == nil {
		t = &twins{open: map[uint64]int64{}}
		m.twins[src] = t
	}
	for t.order.len() > 0 && t.order.first().time < e.time-twinsWithin {
		if old := t.order.pop(); t.open[old.key] == old.time {
			delete(t.open, old.key)
		}
	}
	if at, is := t.open[e.key]; is && e.time-at <= twinsWithin {
		delete(t.open, e.key)
		return true
	}
	t.open[e.key] = e.time
	t.order.push(recent{e.key, e.time})
	return false
}

// sameness finds the frames that several files have with the same times.
type sameness struct {
	frames map[uint64]holder
	order  queue[recent]
}

// holder is the source that has a frame, and how many times.
type holder struct {
	src *source
	n   int32
}

// repeated reports whether another source had the same frame.
func (s *sameness) repeated(src *source, f *capture.Frame) bool {
	if s.frames == nil {
		s.frames = map[uint64]holder{}
	}
	for s.order.len() > 0 && s.order.first().time < f.Time-twinsWithin {
		delete(s.frames, s.order.pop().key)
	}
	key := mix(hashBytes(uint64(f.Length), f.Data[:min(len(f.Data), maxMasked)]), uint64(f.Time)^uint64(src.point)<<48)
	h, known := s.frames[key]
	switch {
	case !known:
		s.order.push(recent{key, f.Time})
		h.src = src
	case h.src != src && h.n > 0:
		h.n--
		s.frames[key] = h
		return true
	case h.src != src:
		h.src = src
	}
	h.n++
	s.frames[key] = h
	return false
}
