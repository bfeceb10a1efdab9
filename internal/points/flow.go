package points

import "github.com/rdmadump/rdmadump/rocev2"

// A packet that is missing at its receiver's point was not necessarily lost: that capture may have dropped
// it. If the receiver acknowledges a request before any copy of it was captured there, the receiver had the
// request. A response was received if the requester goes on without requesting it again.

// flowKey is a queue pair that receives packets.
type flowKey struct {
	dir int32
	qpn uint32
}

// flow is the traffic to one queue pair.
type flow struct {
	newest   []uint64     // by hop: the newest transmission that certainly arrived, as its position plus 1
	requests queue[asked] // requests that are not acknowledged yet
	arrived  receipt      // of requests
	got      receipt      // of responses
	highest  uint32       // highest PSN of a request that was sent
	started  bool

	answered  uint32 // highest PSN of a response to them; a Read has several
	hasAnswer bool

	response   uint32 // highest PSN of a response that arrived
	responseAt int64

	peer   uint32 // responses: the queue pair to which the requests go
	votes  int32
	back   *flow  // requests: of the responses
	before uint32 // PSN of the last request that was sent
	again  bool   // that request was a retransmission
}

// asked is a request.
type asked struct {
	at  uint64
	psn uint32
}

// receipt is what arrived of the requests or responses of a flow.
type receipt struct {
	psnSet
	holes [16]hole // the latest ones
	holed int
}

// hole is a range of PSNs that a receiver had not got when it asked for the first of them, or when its sender repeated it: none if it had
// dropped that one, too. What comes after a packet that arrived meanwhile may have arrived, too, and is repeated all the same: receivers drop
// what comes after a gap.
type hole struct {
	from, to uint32
	time     int64
	late     bool // the first one came late: what is after it may have come late, too
}

// turn is what one side shows of what it got.
type turn struct {
	key  flowKey // of the requests
	psn  uint32
	time int64
	what turnKind
}

type turnKind uint8

const (
	acknowledges turnKind = iota // the receiver had the requests up to the PSN
	refuses                      // the receiver has not taken the request
	repeats                      // the sender of the requests goes back to the PSN
)

const (
	flowPSNs       = 4096
	flowBytes      = 3072
	searchedCopies = 1 << 9  // requests among which a later copy is searched
	maxRequests    = 1 << 14 // that wait for their acknowledgement
	pairCache      = 1 << 12
	trustVotes     = 2
	maxVotes       = 8
)

// flows has all flows.
type flows struct {
	all    map[flowKey]*flow
	limit  int
	turns  queue[turn]
	latest [pairCache]struct {
		key flowKey
		psn uint32
	}
}

// of returns the flow of a queue pair, or nil if there are too many.
func (s *flows) of(key flowKey) *flow {
	f := s.all[key]
	if f == nil && len(s.all) < s.limit {
		f = new(flow)
		s.all[key] = f
	}
	return f
}

// slot returns the index of a PSN of a direction in the cache of requests.
func slotOf(dir int32, psn uint32) int { return int(mix(uint64(dir)+1, uint64(psn)) % pairCache) }

// note takes a packet of a path at its first point.
func (s *flows) note(at uint64, e *entry, v *sight) {
	e.acks = e.opcode.Info().Kind == rocev2.KindAcknowledge && v.hasAETH && v.aeth.IsAck()
	e.refuses = v.hasAETH && v.aeth.IsNak() && v.aeth.Code() == 0
	if e.opcode.Transport() != rocev2.RC || e.hop != 0 {
		return
	}
	info := e.opcode.Info()
	switch {
	case info.Request:
		s.request(at, e)
	case e.path.back != nil:
		s.respond(e)
	}
}

// unsent takes a packet that came to its receiver's point, and that the capture at its sender's point lacks.
func (s *flows) unsent(e *entry) {
	switch {
	case e.opcode.Transport() != rocev2.RC:
	case e.opcode.Info().Request:
		c := &s.latest[slotOf(e.path.dir, e.psn)]
		c.key, c.psn = flowKey{e.path.dir, e.qpn}, e.psn
	case e.path.back != nil:
		s.respond(e)
	}
}

// request takes a request that leaves its sender's point.
func (s *flows) request(at uint64, e *entry) {
	c := &s.latest[slotOf(e.path.dir, e.psn)]
	c.key, c.psn = flowKey{e.path.dir, e.qpn}, e.psn
	f := s.of(c.key)
	if f == nil {
		return
	}
	again := f.started && (rocev2.PSNDelta(e.psn, f.highest) <= 0 || f.hasAnswer && rocev2.PSNDelta(e.psn, f.answered) <= 0)
	if again && !(f.again && e.psn == (f.before+1)&rocev2.PSNMask) {
		s.turns.push(turn{c.key, e.psn, e.time, repeats})
	}
	if f.again, f.before = again, e.psn; !again {
		f.started, f.highest = true, e.psn
	}
	if f.requests.len() >= maxRequests {
		f.requests.pop()
	}
	f.requests.push(asked{at, e.psn})
}

// respond takes a response that leaves its sender's point: it shows which requests the sender had.
func (s *flows) respond(e *entry) {
	f := s.of(flowKey{e.path.dir, e.qpn})
	if f == nil {
		return
	}
	if c := &s.latest[slotOf(e.path.back.dir, e.psn)]; c.psn == e.psn && c.key.dir == e.path.back.dir {
		switch {
		case c.key.qpn == f.peer:
			f.votes = min(f.votes+1, maxVotes)
		case f.votes > 0:
			f.votes--
		default:
			f.peer, f.votes = c.key.qpn, 1
		}
	}
	if f.votes < trustVotes || e.icrc == rocev2.ICRCBad {
		return
	}
	requests := flowKey{e.path.back.dir, f.peer}
	if q := s.all[requests]; q != nil {
		if q.back = f; !q.hasAnswer || rocev2.PSNDelta(e.psn, q.answered) > 0 {
			q.hasAnswer, q.answered = true, e.psn
		}
	}
	if s.turns.push(turn{requests, e.acknowledges(), e.time, acknowledges}); e.refuses {
		s.turns.push(turn{requests, e.psn, e.time, refuses})
	}
}

// settle takes the turns before which all arrivals are matched.
func (s *flows) settle(m *matcher, now int64) {
	for s.turns.len() > 0 && s.turns.first().time+m.slack+min(m.late, maxWindow) <= now {
		n := s.turns.pop()
		f := s.all[n.key]
		if f == nil {
			continue
		}
		switch n.what {
		case acknowledges:
			f.acknowledge(m, n.psn, n.time)
		case refuses:
			f.arrived.miss(n)
		case repeats:
			f.arrived.miss(n)
			f.arrived.forget(n.psn, f.highest)
			if f.back != nil {
				f.back.got.miss(n)
				f.back.got.forget(n.psn, f.back.response)
			}
		}
	}
}

// miss notes that the receiver has not got a packet, nor those directly after it that did not arrive.
func (r *receipt) miss(n turn) {
	h := hole{from: n.psn, to: n.psn, time: n.time}
	for i := 0; i < flowPSNs/2 && !r.has(h.to); i++ {
		h.to = (h.to + 1) & rocev2.PSNMask
	}
	r.holes[r.holed%len(r.holes)] = h
	r.holed++
}

// take notes that a packet arrived.
func (r *receipt) take(e *entry) {
	for i := range min(r.holed, len(r.holes)) {
		if h := &r.holes[i]; h.from == e.psn && e.sent < h.time && h.time < e.time {
			h.late = true
		}
	}
	r.add(e.psn)
}

// after returns the first hole since a time that begins at a PSN or before it, or nil; late says whether those count whose first packet came late.
func (r *receipt) after(time int64, psn uint32, late bool) (first *hole) {
	for i := range min(r.holed, len(r.holes)) {
		if h := &r.holes[i]; h.time > time && (late || !h.late) && rocev2.PSNDelta(psn, h.from) >= 0 && (first == nil || h.time < first.time) {
			first = h
		}
	}
	return first
}

// missed reports whether a packet is in the first hole since it was sent.
func (r *receipt) missed(e *entry) bool {
	h := r.after(e.time, e.psn, false)
	return h != nil && rocev2.PSNDelta(e.psn, h.to) < 0
}

// forgot reports whether there were so many holes since a packet was sent that the first ones are forgotten.
func (r *receipt) forgot(e *entry) bool {
	return r.holed > len(r.holes) && r.holes[r.holed%len(r.holes)].time > e.time
}

// acknowledge notes that the receiver had all requests up to a PSN at a time.
func (f *flow) acknowledge(m *matcher, upTo uint32, now int64) {
	for f.requests.len() > 0 {
		a := *f.requests.first()
		if d := rocev2.PSNDelta(a.psn, upTo); d > 0 && d < flowPSNs {
			return
		}
		if m.ring.has(a.at) {
			t := m.ring.at(a.at)
			if t.time > now { // It was sent later, because clocks have an error.
				return
			}
			for t = range m.onward(t) { // The last point that captured it decides.
			}
			if t.sending == notYet && !f.arrived.has(a.psn) && !t.unseen {
				for t = range m.onward(f.lastCopy(m, a.psn, now)) {
				}
				if t.sending == notYet && !t.unseen {
					t.unseen = true
					m.lacks[t.path.points[t.hop+1]].add(t.time)
				}
			}
		}
		f.requests.pop()
	}
}

// lastCopy returns the last copy of the first request that is not acknowledged yet, of those that were sent before a time. It is the one
// that the receiver had: its sender missed the earlier ones, perhaps only their acknowledgement.
func (f *flow) lastCopy(m *matcher, psn uint32, before int64) (last *entry) {
	for _, a := range f.requests.items[f.requests.head:min(len(f.requests.items), f.requests.head+searchedCopies)] {
		if a.psn == psn && m.ring.has(a.at) && m.ring.at(a.at).time <= before {
			last = m.ring.at(a.at)
		}
	}
	return last
}

// psnSet is a set of recent PSNs.
type psnSet [flowPSNs / 64]uint64

func (s *psnSet) has(psn uint32) bool { return s[psn%flowPSNs/64]>>(psn%64)&1 != 0 }

// forget removes the PSNs of a range: the receiver has not taken them, nor any copy that arrived before.
func (s *psnSet) forget(from, to uint32) {
	for i := 0; rocev2.PSNDelta(to, from) >= 0 && i < flowPSNs/2; i++ {
		s[from%flowPSNs/64] &^= 1 << (from % 64)
		from = (from + 1) & rocev2.PSNMask
	}
}

// add adds a PSN, and forgets one that is far from it.
func (s *psnSet) add(psn uint32) {
	s[psn%flowPSNs/64] |= 1 << (psn % 64)
	far := (psn + flowPSNs/2) & rocev2.PSNMask
	s.forget(far, far)
}

// transmissions are those of which an arrival may be, as their positions plus 1: equal packets cannot be distinguished.
type transmissions struct{ oldest, latest uint64 }

// arrived notes that a packet came to the next point of its path, and reports whether it was overtaken on this hop by
// one that was sent later. A further copy has no order.
func (s *flows) arrived(e *entry, of transmissions) (overtaken bool) {
	f := s.of(flowKey{e.path.dir, e.qpn})
	if f == nil {
		return false
	}
	hop := int(e.hop) - 1
	for len(f.newest) <= hop {
		f.newest = append(f.newest, 0)
	}
	overtaken = !e.second && of.latest < f.newest[hop]
	f.newest[hop] = max(f.newest[hop], of.oldest)
	if hop+1 < len(e.path.hops) || e.icrc == rocev2.ICRCBad || e.isRefused() || e.opcode.Transport() != rocev2.RC {
		return overtaken
	}
	if e.opcode.Info().Request {
		f.arrived.take(e)
		return overtaken
	}
	if f.got.take(e); f.responseAt == 0 || rocev2.PSNDelta(e.psn, f.response) > 0 {
		f.response, f.responseAt = e.psn, e.time
	}
	return overtaken
}

// wasAnswered reports whether the requester has shown that it had a response to a Read: it got later
// responses, and did not request this one again. If another copy of the response arrived, nothing shows that this one
// did.
func (s *flows) wasAnswered(e *entry) bool {
	if e.opcode.Transport() != rocev2.RC || e.opcode.Info().Kind != rocev2.KindReadResponse || e.path.back == nil {
		return false
	}
	f := s.all[flowKey{e.path.dir, e.qpn}]
	if f == nil || f.got.has(e.psn) || f.votes < trustVotes || rocev2.PSNDelta(f.response, e.psn) <= 0 || f.responseAt < e.time {
		return false
	}
	return !f.got.forgot(e) && f.got.after(e.time, e.psn, true) == nil
}

// wasMissed reports whether something shows that the receiver missed a packet: it asked for a request or response once more, or its
// sender repeated it; and later ones only if nothing that came in between arrived. The requester sent once more what an acknowledgement
// acknowledges. Any other packet was sent once more. Of the last copy of a packet, nothing shows that.
func (s *flows) wasMissed(e *entry) bool {
	f := s.all[flowKey{e.path.dir, e.qpn}]
	info := e.opcode.Info()
	switch {
	case f == nil || e.opcode.Transport() != rocev2.RC:
		return e.again
	case info.Request:
		return f.arrived.missed(e)
	case info.Kind == rocev2.KindReadResponse:
		return f.got.missed(e)
	}
	return f.got.after(e.time+e.path.longest, e.acknowledges(), true) != nil
}

// acknowledges returns the PSN up to which a response acknowledges requests.
func (h *header) acknowledges() uint32 {
	if h.acks {
		return h.psn
	}
	return (h.psn - 1) & rocev2.PSNMask
}
