package points

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Hosts merge and split TCP segments (TSO, GRO), so that frames of two points do not correspond. Bytes do. The bytes
// of an arrival take those of the latest transmission of them that are not taken yet, or of the one whose header it has.

// reach is a range of sequence numbers that was sent, and not taken completely.
type reach struct {
	from, to uint32 // the part that is not taken
	at       uint64 // position of the frame
	time     int64
}

// stream is one direction of a TCP connection on one hop.
type stream struct {
	open     []reach // by sequence number, without overlaps
	head     int     // the first one in use
	replaced []reach // ranges that were sent once more before they were taken, oldest first
	acked    uint32  // what the receiver acknowledged
	hasAck   bool
	counted  bool    // it carries RDMA or RPC
	got      extents // what the capture at the receiver has
	twice    extents // what the receiver says that it got twice
}

// extent is a range of sequence numbers.
type extent struct{ from, to uint32 }

// extents are ranges in their order; the first ones are forgotten.
type extents []extent

// maxExtents limits the number of ranges that a receiver got, with gaps between them.
const maxExtents = 32

// add adds a range.
func (x *extents) add(from, to uint32) {
	list := *x
	i := len(list)
	for i > 0 && octets(list[i-1].from, to) > 0 {
		i--
	}
	j := i
	for j > 0 && octets(list[j-1].to, from) >= 0 {
		if j--; octets(list[j].from, from) < 0 {
			from = list[j].from
		}
		if octets(list[j].to, to) > 0 {
			to = list[j].to
		}
	}
	if *x = slices.Replace(list, j, i, extent{from, to}); len(*x) > maxExtents {
		*x = slices.Delete(*x, 0, 1)
	}
}

// acknowledged reports whether the receiver acknowledged the bytes of a segment.
func (f *stream) acknowledged(e *entry) bool { return f.hasAck && octets(f.acked, e.seq+e.bytes) >= 0 }

// has reports whether a range is one of the extents, or a part of one.
func (x extents) has(from, to uint32) bool {
	for _, r := range x {
		if octets(from, r.from) >= 0 && octets(to, r.to) <= 0 {
			return true
		}
	}
	return false
}

// streamKey is one direction of a TCP connection on one hop.
type streamKey struct {
	dir, hop int32
	src, dst uint16
}

// on returns the stream of a segment on a hop.
func (e *entry) on(hop int) streamKey {
	return streamKey{e.path.dir, int32(hop), e.ports[0], e.ports[1]}
}

// streams has all streams.
type streams struct {
	all   map[streamKey]*stream
	limit int
}

const (
	streamBytes  = 4096
	maxReplaced  = 64
	maxSegment   = 9216 // bytes of the longest packets that networks carry; hosts merge longer ones
	mergedWithin = 5e6  // time in nanoseconds within which hosts merge segments, whose frame has the time of the first
	portNFSRDMA  = 20049
	mpaRequestID = "MPA ID Req Frame"
	mpaReplyID   = "MPA ID Rep Frame"
)

func (s *streams) of(key streamKey) *stream {
	f := s.all[key]
	if f == nil && len(s.all) < s.limit {
		f = &stream{counted: key.src == portNFSRDMA || key.dst == portNFSRDMA}
		s.all[key] = f
	}
	return f
}

func (k streamKey) reversed(back *path, hops int) streamKey {
	return streamKey{back.dir, int32(hops) - 1 - k.hop, k.dst, k.src}
}

// octets returns the signed distance of two sequence numbers.
func octets(a, b uint32) int32 { return int32(a - b) }

// segment takes a TCP segment with data, and reports whether it carries RDMA or RPC. It is matched by its bytes, unless there are too many streams.
func (m *matcher) segment(e *entry, t *link.TCP) (counted bool) {
	w := e.path
	_, counts := oncrpc.PlausibleRecord(t.Payload)
	if !counts && len(t.Payload) >= len(mpaRequestID) {
		id := string(t.Payload[:len(mpaRequestID)])
		counts = id == mpaRequestID || id == mpaReplyID
	}
	e.seq, e.bytes = t.Seq, uint32(t.Length)
	e.ports = [2]uint16{t.SrcPort, t.DstPort}
	e.answers = answersOf(t)
	e.key = mix(e.key, e.answers) // Copies that a host sent at different times differ.
	for hop := range w.hops {
		f := m.streams.of(e.on(hop))
		if f == nil {
			return false
		}
		if counts && !f.counted {
			f.counted = true
			if w.back != nil {
				if g := m.streams.of(e.on(hop).reversed(w.back, len(w.hops))); g != nil {
					g.counted = true
				}
			}
		}
		counted = f.counted
	}
	e.stream = true
	e.unseen = int(e.hop) == len(w.hops) && m.streams.all[e.on(int(e.hop)-1)].acknowledged(e)
	return counted
}

// send adds a range.
func (f *stream) send(r reach) {
	n := len(f.open)
	if n == f.head || octets(r.from, f.open[n-1].to) >= 0 {
		if f.head > 64 && 2*f.head > n {
			f.open = slices.Delete(f.open, 0, f.head)
			f.head = 0
		}
		f.open = append(f.open, r)
		return
	}
	f.remove(r.from, r.to, func(old reach) bool {
		if f.replaced = append(f.replaced, old); len(f.replaced) > maxReplaced {
			f.replaced = f.replaced[1:]
		}
		return true
	})
	f.insert(r)
}

// insert adds a range that overlaps no other one.
func (f *stream) insert(r reach) {
	i, _ := slices.BinarySearchFunc(f.open[f.head:], r, func(a, b reach) int { return cmp.Compare(octets(a.from, b.from), 0) })
	f.open = slices.Insert(f.open, f.head+i, r)
}

// remove removes what is open from a range, if accept returns true for it.
func (f *stream) remove(from, to uint32, accept func(reach) bool) {
	i, _ := slices.BinarySearchFunc(f.open[f.head:], from, func(a reach, seq uint32) int {
		if octets(a.to, seq) <= 0 {
			return -1
		}
		return 1
	})
	for i += f.head; i < len(f.open) && octets(f.open[i].from, to) < 0; {
		r := f.open[i]
		part := r
		if octets(from, part.from) > 0 {
			part.from = from
		}
		if octets(to, part.to) < 0 {
			part.to = to
		}
		if !accept(part) {
			i++
			continue
		}
		switch {
		case part.from == r.from && part.to == r.to:
			if i == f.head {
				f.open[i] = reach{}
				f.head++
				i++
			} else {
				f.open = slices.Delete(f.open, i, i+1)
			}
		case part.from == r.from:
			f.open[i].from = part.to
			i++
		case part.to == r.to:
			f.open[i].to = part.from
			i++
		default:
			f.open[i].to = part.from
			r.from = part.to
			f.open = slices.Insert(f.open, i+1, r)
			i += 2
		}
	}
	if f.head == len(f.open) {
		f.open, f.head = f.open[:0], 0
	}
}

// arriveBytes matches the bytes of an arrival.
func (m *matcher) arriveBytes(at uint64, e *entry) {
	w, own := e.path, int(e.hop)-1
	h, hop := w.hops[own], own
	f := m.streams.all[e.on(own)]
	from, to := e.seq, e.seq+e.bytes
	mayBeDamaged := e.icrc == rocev2.ICRCBad && e.length <= maxSegment // Hosts merge segments without computing the checksum.
	if mayBeDamaged && f.waits(m, e) {
		m.suspect(at, e)
		return
	}
	taken, newest, limit := uint32(0), reach{}, e.time+m.slack
	copied := true // of all transmissions with the bytes
	parts := parts{known: e.proves()}
	var accept func(t *entry) bool
	take := func(r reach) bool {
		if r.time > limit || !m.ring.has(r.at) {
			return false
		}
		t := m.ring.at(r.at)
		if !accept(t) {
			return false
		}
		n := r.to - r.from
		taken += n
		copied = copied && t.copied
		e.changed = e.changed || t.changed
		if parts.known = parts.known && n == t.bytes && t.proves(); parts.known {
			parts.add(t.sum, t.seq-e.seq)
		}
		t.isNoTwin()
		if t.left += n; t.left >= t.bytes && t.sending == notYet {
			t.sending, t.mate = matched, at+1
		}
		if hop < own && !e.control { // The points in between lack it.
			w.hops[hop].BytesNotCaptured += int64(n)
			if t.sending == matched {
				w.hops[hop].NotCaptured++
			}
		}
		if newest.at == 0 && newest.time == 0 || octets(r.to, newest.to) > 0 {
			newest = r
			e.follows(t)
		}
		return true
	}
	search := func(f *stream) {
		for _, accept = range []func(t *entry) bool{ // The first that arrives is not the copy that the network made.
			func(t *entry) bool { return e.hasHeaderOf(&t.header) && !t.copied }, func(t *entry) bool { return e.hasHeaderOf(&t.header) }, func(*entry) bool { return true },
		} {
			if taken < e.bytes {
				f.remove(from, to, take)
			}
			for i := len(f.replaced) - 1; i >= 0 && taken < e.bytes; i-- {
				if r := f.replaced[i]; octets(r.from, to) < 0 && octets(r.to, from) > 0 && take(r) {
					f.replaced = slices.Delete(f.replaced, i, i+1)
				}
			}
		}
	}
	for ; hop >= 0; hop-- {
		for range 2 { // The frame may have the time of the first of several segments, but what was sent before it comes first.
			if taken < e.bytes {
				search(m.streams.all[e.on(hop)])
				limit += mergedWithin
			}
		}
		limit -= 2 * mergedWithin
	}
	if taken == 0 && mayBeDamaged { // Its sequence number may be damaged.
		m.suspect(at, e)
		return
	}
	e.second = f.got.has(from, to)
	if e.unseen && !e.second { // The receiver had an earlier copy.
		for _, list := range [][]reach{f.open[f.head:], f.replaced} {
			for _, r := range list {
				if m.ring.has(r.at) && r.time < e.time && octets(r.from, to) < 0 && octets(r.to, from) > 0 {
					m.ring.at(r.at).unseen = true
				}
			}
		}
	}
	f.got.add(from, to)
	if _, sent := m.buckets[keyOn(e.key, own)]; taken == 0 && !sent { // The capture at its sender lacks it, and how often it was sent.
		e.arriving = unexplained
		return
	}
	e.arriving, e.copied = duplicate, copied
	if taken > 0 {
		e.arriving = matched
		h.delays.add(e.time - newest.time)
		h.course.at(newest.time).delay(e.time - newest.time)
	}
	differs := parts.known && taken == e.bytes && parts.sum != e.sum
	if e.changed = e.changed || differs; e.control {
		return
	}
	if differs {
		h.damaged(newest.time)
		h.Changed++
	}
	switch rest := e.bytes - taken; {
	case e.twin || rest == 0:
	case taken > 0: // Some of its bytes had arrived before.
		h.BytesDuplicated += int64(rest)
	case e.second:
		h.duplicate(rest)
	}
}

// hasHeaderOf reports whether an arrival has the TCP header of a transmission, and, unless a host merged or split one of them, its
// IP identification. Something on the way may have changed them.
func (h *header) hasHeaderOf(t *header) bool {
	return h.answers == t.answers && (h.id == t.id || h.seq != t.seq || h.bytes != t.bytes)
}

// parts is the sum of the transmissions that an arrival consists of, which hosts may have merged.
type parts struct {
	sum   uint32
	known bool
}

// add adds the sum of a part that begins at an offset in the arrival, in bytes.
func (p *parts) add(sum, offset uint32) {
	if offset%2 != 0 {
		sum = sum<<8&0xff00 | sum>>8
	}
	p.sum += sum
	p.sum = p.sum&0xffff + p.sum>>16
}

// proves reports whether the payload of a segment is known, and that its checksum is right.
func (h *header) proves() bool { return h.summed && h.icrc == rocev2.ICRCOk }

// payloadSum returns the sum of the words of 16 bits of a payload, as the checksum of TCP counts them, with 0xffff for 0.
func payloadSum(b []byte) uint32 {
	var sum uint64
	for ; len(b) >= 4; b = b[4:] {
		sum += uint64(be.Uint32(b))
	}
	switch len(b) {
	case 3:
		sum += uint64(be.Uint16(b)) + uint64(b[2])<<8
	case 2:
		sum += uint64(be.Uint16(b))
	case 1:
		sum += uint64(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0 {
		sum = 0xffff // the other zero of sums of this kind
	}
	return uint32(sum)
}

// waits reports whether a frame with just the bytes of an arrival was sent, and nothing took it.
func (f *stream) waits(m *matcher, e *entry) (waits bool) {
	look := func(r reach) bool {
		t := m.ring.at(r.at)
		waits = waits || m.ring.has(r.at) && t.seq == e.seq && t.bytes == e.bytes && t.left == 0 && t.icrc != rocev2.ICRCBad
		return false
	}
	f.remove(e.seq, e.seq+e.bytes, look)
	for _, r := range f.replaced {
		look(r)
	}
	return waits
}

// acknowledgeBytes notes an acknowledgement at any point: that of its sender may lack it.
func (m *matcher) acknowledgeBytes(w *path, t *link.TCP) {
	if w.back == nil || t.Flags&link.TCPACK == 0 {
		return
	}
	f := m.streams.all[streamKey{w.back.dir, int32(len(w.back.hops)) - 1, t.DstPort, t.SrcPort}]
	if f == nil {
		return
	}
	if !f.hasAck || octets(t.Ack, f.acked) > 0 {
		f.hasAck, f.acked = true, t.Ack
	}
	for from, to := range t.Selective() {
		if octets(to, t.Ack) <= 0 {
			f.twice.add(from, to)
		}
	}
}

// forget forgets a segment that nothing took, or not all of it. It reports whether it was sent again, or its receiver had it. If both, it had one
// of the copies, perhaps the other one: hosts send segments again whose acknowledgement is late.
func (f *stream) forget(at uint64, e *entry) (again, had bool) {
	is := func(r reach) bool { return r.at == at }
	again = slices.ContainsFunc(f.replaced, is)
	had = e.unseen || f.twice.has(e.seq, e.seq+e.bytes) || f.acknowledged(e) && !f.got.has(e.seq, e.seq+e.bytes)
	f.remove(e.seq, e.seq+e.bytes, is)
	f.replaced = slices.DeleteFunc(f.replaced, is)
	return again && !had, had && !again
}
