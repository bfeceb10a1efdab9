package points

import (
	"iter"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The second pass matches the packets of the points, in the order of corrected times. An arrival takes the
// latest transmission of the same packet before it that is not taken yet. An arrival whose transmissions
// are all taken is a duplicate that the network made. A transmission that nothing takes was lost.

// Limits of the time for which transmissions wait for their arrival, in nanoseconds.
const (
	minWindow = 2e9
	maxWindow = 10e9
)

// duplicatesWithin is the time for which a transmission that is taken is remembered, in nanoseconds.
const duplicatesWithin = 1e9

// outcome is what became of a packet on one side of a frame.
type outcome uint8

const (
	notYet       outcome = iota // it may still be matched
	none                        // there is nothing to match
	matched                     // an arrival and a transmission belong together
	lost                        // nothing arrived
	notCaptured                 // it arrived, but was not captured there
	unknown                     // the other capture does not cover the time, or proves to be incomplete
	missing                     // the other capture lacks it, and nothing shows why
	damagedOn                   // it arrived damaged
	duplicate                   // an arrival whose transmissions are all taken
	unexplained                 // an arrival without a transmission
	secondCopy                  // the second copy of a mirror port, or of a file given twice
	damagedThere                // an arrival that is a damaged copy of another packet
)

// entry is a frame that is not forgotten yet.
type entry struct {
	header
	fate
	trace
	links
}

// header is what the frame shows.
type header struct {
	key, lanes uint64
	base       uint64 // key without the IP identification
	time       int64
	number     int64
	answers    uint64 // TCP: hash of what the segment acknowledges, and of its options, which have the time of its sender
	psn, qpn   uint32
	length     int32
	held       int32     // captured bytes from the network header on
	seq, bytes uint32    // TCP: the range of the frame
	sum        uint32    // ICRC that the packet should have; TCP: of the payload
	ports      [2]uint16 // TCP
	check      uint16    // UDP checksum
	id         uint16
	point      uint16
	opcode     rocev2.Opcode
	icrc       rocev2.ICRCResult
	ip         rocev2.ICRCResult // of verifying the checksum of the IPv4 header
	udp        rocev2.ICRCResult // of an arrival: of verifying its UDP checksum
	summed     bool              // sum is known
	blind      bool              // the ICRCs of the capture prove nothing
	cut        bool              // the capture has not all headers, so damage is not recognized
	control    bool              // TCP: the frame has no data, so its loss does not matter
	stream     bool              // TCP: the frame is matched by its bytes
	astray     bool              // its Ethernet destination is damaged
	refuses    bool              // it is a NAK because of a PSN
	acks       bool              // it is an acknowledgement that is not a NAK
}

// fate is what is known of the packet at the frame.
type fate struct {
	sending  outcome // of the packet after this point
	arriving outcome // of the packet before this point
	left     uint32  // TCP: number of bytes that arrived
	unseen   bool    // the receiver had the packet, but did not capture it
	again    bool    // the packet was sent once more later
	copied   bool    // the network made this copy before this point
	changed  bool    // TCP: the payload was changed before this point, and the checksum with it
	badSum   bool    // the frame that arrived damaged has a bad ICRC, or a bad TCP or UDP checksum
	twin     bool    // or the point captured the packet twice: nothing that arrived at the next point has shown which
	second   bool    // an equal packet arrived at this point before
}

// links are to other frames, as their positions plus 1, or 0.
type links struct {
	mate       uint64 // the arrival that took a transmission, or its last bytes
	refused    uint64 // the copy of a transmission that arrived with a damaged header
	prev, next uint64 // transmissions of the same packet that are not taken
	earlier    uint64 // the transmission of the packet before this one, with any IP identification
	path       *path
	hop        int8 // index in the path
}

// trace is where a packet was captured on its way until a point.
type trace struct {
	sent       int64  // time at the first point
	sentNumber int64  // number at the first point
	passed     uint64 // the points, as bits by their places on the path
	sentPoint  uint16 // the first point
}

// follows notes that a frame is of the packet of a frame at a point before.
func (e *entry) follows(t *entry) {
	passed := e.passed | t.passed
	e.trace = t.trace
	e.passed = passed
}

// entryBytes is the memory of an entry and of what refers to it.
const entryBytes = 256

// path is the way of the packets of one direction.
type path struct {
	points   []int
	hops     []*Hop
	back     *path // of the opposite direction; nil if that has none
	dir      int32
	longest  int64 // longest delay in the samples
	shortest int64 // shortest delay, less the error of the clocks
	trusted  bool  // the IP identification does not change on the way
	position map[int]int

	reference uint64 // the place of the reference point, as a bit; 0 if the packets do not pass it
}

// roundTrip returns the shortest time in which an answer can come back, without the error of the clocks.
func (w *path) roundTrip() int64 {
	if w.back == nil {
		return 0
	}
	return max((w.shortest+w.back.shortest)/2, 0)
}

// Hop is what happened to the packets of one direction between two points.
type Hop struct {
	From, To         int // indexes of the points
	Packets          int64
	Lost             int64
	NotCaptured      int64
	Reordered        int64
	Corrupted        int64
	Changed          int64 // of these, TCP segments with a right checksum
	Duplicated       int64
	MirrorDuplicates int64
	Bytes            int64 // that TCP segments carried
	BytesLost        int64
	BytesNotCaptured int64
	BytesDuplicated  int64
	Unknown          int64 // packets of which the capture does not show whether they arrived

	delays histogram
	course course
	quiet  *quiet          // of the point that the packets come to
	lostIn map[int64]int64 // lost packets by the beginning of the time in which that point captured nothing
}

// Delay returns the distribution of the one-way delays.
func (h *Hop) Delay() Delay { return h.delays.delay() }

// Course returns the traffic over time.
func (h *Hop) Course() []Interval { return h.course.list() }

// count counts a packet that left the sender's point of the hop n times; -1 takes that back.
func (h *Hop) count(e *entry, n int64) {
	h.Packets += n
	h.Bytes += n * int64(e.bytes)
	h.course.at(e.time).packets += n
}

// duplicate counts a packet that arrived although it had arrived before, or bytes of it.
func (h *Hop) duplicate(bytes uint32) {
	h.Duplicated++
	h.BytesDuplicated += int64(bytes)
}

// damaged counts a packet that was sent at a time and damaged on the way.
func (h *Hop) damaged(sent int64) {
	h.Corrupted++
	h.course.at(sent).damaged++
}

// bucket has the transmissions of one packet.
type bucket struct {
	head, tail uint64 // those that are not taken, oldest first: positions plus 1
	latest     uint64 // the latest one, taken or not: its position plus 1
	live       int32  // those that are remembered
	arrived    bool   // one of them arrived
	taken      uint64 // the latest one that an arrival took: its position plus 1
}

// recent is a packet that is remembered.
type recent struct {
	key  uint64
	time int64
}

// waiting is an arrival that is matched when transmissions that were sent before it are known.
type waiting struct {
	at  uint64
	due int64
}

// matcher matches packets.
type matcher struct {
	plan  *Plan
	eye   eye
	dirs  directions // those of the plan, and further ones
	seen  sight
	hops  []*Hop
	paths map[int32]*path

	ring   ring
	now    int64
	window int64
	late   int64 // by how much a frame may come after later ones
	slack  int64 // by how much an arrival may seem to be before its transmission

	buckets  map[uint64]bucket
	sends    map[uint64]uint64 // by packet without the IP identification: its latest transmission, as its position plus 1
	recent   queue[recent]
	open     queue[uint64] // transmissions that wait, oldest first
	asleep   queue[uint64] // those that may wait at a machine that stands still
	unproven queue[uint64] // datagrams that did not arrive, and wait until they are sent again
	arrivals queue[waiting]
	damage   damage
	twins    map[*source]*twins
	same     sameness
	flows    flows
	streams  streams
	limit    int // maximum number of entries
	Evicted  int64
	quiet    []quiet // by point
	frames   []int64 // by point: of known paths
	lacks    []lacks // by point
	common   []int64 // by point: packets that the reference point captured, too
}

// lacks are the packets that the capture of a point proves to lack, although they passed the point.
type lacks struct {
	n     int64
	times []lackTime // the latest ones
}

// lackTime is a time in which packets were sent that a capture lacks.
type lackTime struct{ first, last, n int64 }

const (
	nearLack  = 100e6 // nanoseconds
	mostLacks = 64
	fewLacks  = 3 // that do not show that a capture lacks others
)

// add adds a packet that was sent at a time.
func (l *lacks) add(at int64) {
	l.n++
	if n := len(l.times); n == 0 || !l.times[n-1].isNear(at) {
		if n == mostLacks {
			l.times = slices.Delete(l.times, 0, 1)
		}
		l.times = append(l.times, lackTime{at, at, 0})
	}
	t := &l.times[len(l.times)-1]
	t.first, t.last, t.n = min(t.first, at), max(t.last, at), t.n+1
}

func (t *lackTime) isNear(at int64) bool { return t.first-nearLack <= at && at <= t.last+nearLack }

// about reports whether a capture lacks more than a few of the packets that were sent about a time.
func (l *lacks) about(at int64) bool {
	return slices.ContainsFunc(l.times, func(t lackTime) bool { return t.n > fewLacks && t.isNear(at) })
}

func newMatcher(p *Plan) *matcher {
	m := &matcher{plan: p, buckets: map[uint64]bucket{}, sends: map[uint64]uint64{}, paths: map[int32]*path{}, window: minWindow, twins: map[*source]*twins{}}
	m.dirs = p.dirs.clone() // Matchers of one plan may work at the same time.
	m.eye.dirs, m.eye.link.Tunnels = &m.dirs, p.tunnels
	m.quiet, m.frames, m.lacks = make([]quiet, len(p.Points)), make([]int64, len(p.Points)), make([]lacks, len(p.Points))
	m.common = make([]int64, len(p.Points))
	m.limit = int(max(p.memory/entryBytes, 1<<10))
	m.flows.all, m.flows.limit = map[flowKey]*flow{}, int(max(p.memory/4/flowBytes, 64))
	m.streams = streams{map[streamKey]*stream{}, int(max(p.memory/4/streamBytes, 64))}
	of := map[[2]int]*Hop{}
	for dir, points := range p.paths {
		w := &path{points: points, dir: dir, longest: p.longest[dir], shortest: p.shortest[dir], trusted: true, position: map[int]int{}}
		for i, point := range points {
			w.position[point] = i
			if p.Points[point].Reference {
				w.reference = 1 << i
			}
			if i == 0 {
				continue
			}
			w.trusted = w.trusted && p.trusted[[2]int{points[i-1], point}]
			at := [2]int{points[i-1], point}
			if of[at] == nil {
				of[at] = &Hop{From: at[0], To: at[1], quiet: &m.quiet[at[1]]}
			}
			w.hops = append(w.hops, of[at])
		}
		m.paths[dir] = w
		m.window = min(max(m.window, 4*w.longest), maxWindow)
	}
	for dir, w := range m.paths {
		if back := p.dirs.find(p.dirs.list[dir].reversed()); back >= 0 {
			w.back = m.paths[back]
		}
	}
	for a := range p.Points {
		for b := range p.Points {
			if h := of[[2]int{a, b}]; h != nil {
				m.hops = append(m.hops, h)
			}
		}
	}
	m.slack = 1000
	for i := range p.Points {
		m.slack = max(m.slack, p.Points[i].gap)
	}
	m.slack = min(m.slack, 100e6)
	for _, src := range p.sources {
		if !src.steps() {
			m.late = max(m.late, src.disorder)
		}
	}
	m.window += min(m.late, maxWindow)
	return m
}

// steps reports whether the clock of a source stepped, which explains frames that are earlier than those before
// them.
func (src *source) steps() bool {
	return len(src.jumps) > 0 || slices.ContainsFunc(src.chain, func(c *clock) bool { return len(c.segments) > 1 })
}

// add takes the next frame. Its time is corrected already.
func (m *matcher) add(src *source, f *capture.Frame) {
	v := &m.seen
	m.eye.look(f, v, true)
	if src.unchecked {
		v.icrc = rocev2.ICRCUnchecked
	}
	at, e := m.ring.push()
	*e = entry{fate: fate{sending: none, arriving: none}, header: header{
		time: f.Time, number: f.Number, point: uint16(src.point), id: v.id, psn: v.psn, qpn: v.qpn, opcode: v.opcode, length: v.length,
		icrc: v.icrc, ip: src.ipSums.of(v.ip), check: v.check, sum: v.sum, summed: v.summed, held: int32(len(f.Data) - max(v.network, 0)), blind: src.unchecked,
	}}
	m.now = max(m.now, f.Time)
	m.hear(src.point, f.Time)
	switch {
	case m.plan.same && m.same.repeated(src, f):
		e.arriving = secondCopy
	default:
		m.take(src, f, at, e)
	}
	m.settle()
}

// take matches a frame that is not a copy.
func (m *matcher) take(src *source, f *capture.Frame, at uint64, e *entry) {
	v := &m.seen
	w := m.paths[v.dir]
	position, on := 0, false
	if w != nil && v.key != 0 {
		position, on = w.position[src.point]
	}
	if v.cut && w != nil {
		if _, passes := w.position[src.point]; passes { // The frame of another point stands for the packet.
			e.arriving = secondCopy
			return
		}
	}
	if !on {
		if src.strays[v.dir] { // The points that it passes have it.
			e.arriving = secondCopy
			return
		}
		if len(m.hops) > 0 && v.carries != link.CarriesTCP {
			m.lookAtDamaged(src, f, at, e)
		}
		return
	}
	e.path = w
	m.frames[e.point]++
	if e.key, e.base = v.key, v.base; w.trusted {
		e.key = mix(e.key, uint64(v.id)<<1|1)
	}
	// A host gives each packet that it sends an IP identification of its own, so a twin of one was captured twice, or the network
	// made it before this point. What arrives at the next point more than once shows the latter.
	// Without an identification, only a copy that comes sooner than an answer to the first one can is no retransmission.
	// Behind the first point, only a copy with the same time may be one that the capture made, and not if something between the hosts made
	// the capture, which has the time of its switching.
	within := int64(twinsWithin)
	if !src.mirror[v.dir] {
		switch {
		case position > 0:
			within = 0
		case !w.trusted || e.id == 0:
			within = min(within, w.roundTrip())
		}
	}
	twin := (src.mirror[v.dir] || position < len(w.hops) || m.plan.atReceiver(v.dir, src.point)) && m.isTwin(src, &e.header, within)
	e.copied = twin && !src.mirror[v.dir] && position < len(w.hops)
	if e.twin = e.copied && (position > 0 || m.plan.atSender(v.dir, src.point)); twin && !e.copied {
		e.arriving = secondCopy
		for i, h := range w.hops {
			if i == position || i == position-1 {
				h.MirrorDuplicates++
			}
		}
		return
	}
	if v.network >= 0 && v.network <= len(f.Data) {
		e.lanes = m.eye.lanesOf(f.Data[v.network:], v.v6)
		e.cut = !hasHeaders(f.Data[v.network:], v.v6, int(v.length))
	}
	if to, has := ethernetDestination(f); has {
		e.astray = src.destinations[v.dir].isDamaged(to)
	}
	e.hop = int8(min(position, 100))
	e.trace = trace{sent: e.time, sentPoint: e.point, sentNumber: e.number, passed: 1 << e.hop}
	if v.carries == link.CarriesTCP {
		m.acknowledgeBytes(w, &v.tcp)
		e.control = v.tcp.Length == 0 || !m.segment(e, &v.tcp)
	}
	if position < len(w.hops) {
		m.transmit(at, e)
	}
	if position == 0 && e.icrc == rocev2.ICRCBad && !e.cut { // Damaged addresses make a path of their own.
		m.suspect(at, e)
	}
	if position > 0 {
		e.arriving = notYet
		if e.icrc != rocev2.ICRCBad {
			e.udp = src.udpSums.of(m.eye.checkUDP(v))
		}
		due := e.time + m.slack + min(m.late, maxWindow)
		if e.stream {
			due += mergedWithin
		}
		m.arrivals.push(waiting{at, due})
	}
	if !e.copied { // its sender did not send it
		m.flows.note(at, e, v)
	}
}

// keyOn returns the key of a packet on one hop of its path.
func keyOn(key uint64, hop int) uint64 { return key + uint64(hop)*0x9e3779b97f4a7c15 }

// transmit notes a packet that leaves a point.
func (m *matcher) transmit(at uint64, e *entry) {
	hop := int(e.hop)
	if !e.control && !e.twin {
		e.path.hops[hop].count(e, 1)
	}
	key := keyOn(e.key, hop)
	b := m.buckets[key]
	if b.live > 0 && b.latest == 0 && !e.stream { // It arrived before it was sent: a clock stepped. The arrival stands for the packet.
		if e.sending, e.arriving = unknown, secondCopy; !e.twin {
			e.path.hops[hop].Unknown++
		}
		return
	}
	e.sending = notYet
	m.open.push(at)
	b.live++
	if e.stream {
		m.streams.all[e.on(hop)].send(reach{e.seq, e.seq + e.bytes, at, e.time})
	} else {
		if !e.copied {
			m.repeat(at, e)
		}
		if b.tail != 0 {
			m.ring.at(b.tail - 1).next = at + 1
			e.prev = b.tail
		} else {
			b.head = at + 1
		}
		b.tail, b.latest = at+1, at+1
	}
	m.buckets[key] = b
	m.recent.push(recent{key, e.time})
}

// repeat notes that a packet was sent, and that those sent before it were sent once more.
func (m *matcher) repeat(at uint64, e *entry) {
	base := keyOn(e.base, int(e.hop))
	e.earlier = m.sends[base]
	for i, n := e.earlier, 0; i != 0 && m.ring.has(i-1) && n < searched; n++ {
		t := m.ring.at(i - 1)
		t.again, i = true, t.earlier
	}
	m.sends[base] = at + 1
}

// settle decides what the time that has passed allows to decide.
func (m *matcher) settle() {
	for m.arrivals.len() > 0 && m.arrivals.first().due <= m.now {
		a := m.arrivals.pop()
		m.flows.settle(m, a.due-1)
		m.arrive(a.at)
	}
	m.flows.settle(m, m.now)
	m.expire(m.now - m.window)
	for m.recent.len() > 0 && (m.recent.first().time < m.now-duplicatesWithin || m.recent.len() > m.limit) {
		m.forget(m.recent.pop().key)
	}
	m.damage.expire(m, m.oldest())
}

// oldest returns the time before which nothing waits for its arrival.
func (m *matcher) oldest() int64 {
	if m.asleep.len() > 0 {
		return min(m.now-m.window, m.ring.at(*m.asleep.first()).time)
	}
	return m.now - m.window
}

// expire decides the transmissions before a time that nothing has taken.
func (m *matcher) expire(before int64) {
	m.decide(&m.open, func(e *entry) bool { return e.time >= before }, func(at uint64, e *entry) {
		if m.mayWake(e, before) {
			m.asleep.push(at)
		} else {
			m.miss(at, e, false)
		}
	})
	m.decide(&m.asleep, func(e *entry) bool { return m.mayWake(e, before) }, func(at uint64, e *entry) { m.miss(at, e, false) })
	m.decide(&m.unproven, func(e *entry) bool { return !e.again && e.time >= before-maxWindow+m.window }, func(at uint64, e *entry) { m.miss(at, e, true) })
}

// decide calls miss for the first transmissions of a queue that nothing has taken, until one has to wait.
func (m *matcher) decide(q *queue[uint64], waits func(e *entry) bool, miss func(at uint64, e *entry)) {
	for q.len() > 0 {
		at := *q.first()
		e := m.ring.at(at)
		open := m.ring.has(at) && e.sending == notYet
		if open && waits(e) {
			return
		}
		if q.pop(); open {
			miss(at, e)
		}
	}
}

// forget forgets a transmission of a packet.
func (m *matcher) forget(key uint64) {
	b, known := m.buckets[key]
	if !known {
		return
	}
	if b.live--; b.live <= 0 && b.head == 0 {
		delete(m.buckets, key)
		return
	}
	m.buckets[key] = b
}

// pop forgets the oldest frame.
func (m *matcher) pop() {
	e := m.ring.at(m.ring.head)
	m.ring.head++
	if w := e.path; w != nil && w.reference&e.passed != 0 && e.sending != matched && (e.arriving == matched || e.arriving == none) {
		for i, point := range w.points {
			if e.passed>>i&1 != 0 {
				m.common[point]++
			}
		}
	}
	if base := keyOn(e.base, int(e.hop)); e.sending != none && m.sends[base] == m.ring.head {
		delete(m.sends, base)
	}
}

// searched is the number of transmissions of one packet among which an arrival searches its own.
const searched = 8

// arrive matches an arrival.
func (m *matcher) arrive(at uint64) {
	e := m.ring.at(at)
	if e.stream {
		m.arriveBytes(at, e)
		return
	}
	w, own := e.path, int(e.hop)-1
	h, hop := w.hops[own], own
	key := keyOn(e.key, hop)
	b, known := m.buckets[key]
	best := m.choose(&b, e, w)
	e.second = b.arrived
	for far := own - 1; best == 0 && far >= 0; far-- { // The points in between may lack the packet.
		key = keyOn(e.key, far)
		if before, has := m.buckets[key]; has {
			b, known = before, true
			best, hop = m.choose(&b, e, w), far
		}
	}
	switch {
	case best != 0:
	case known:
		if e.arriving, e.copied = duplicate, true; !e.control && !e.twin {
			h.duplicate(0)
		}
		if b.taken != 0 && m.ring.has(b.taken-1) {
			e.follows(m.ring.at(b.taken - 1))
		}
		return
	default:
		e.arriving = unexplained
		if e.icrc == rocev2.ICRCOk && !e.control && own == 0 {
			if m.flows.unsent(e); w.trusted && e.id != 0 { // the network makes equal ones of it
				m.buckets[key] = bucket{live: 1}
				m.recent.push(recent{key, e.time})
			}
		}
		if e.icrc != rocev2.ICRCOk && !e.control && !e.cut {
			m.suspect(at, e)
		}
		return
	}
	h = w.hops[hop]
	t := m.ring.at(best - 1)
	t.isNoTwin()
	e.isNoTwin()
	if e.refusedAfter(&t.header) {
		if t.refused == 0 {
			e.arriving, t.refused = notYet, at+1
			return
		}
		e.arriving = damagedThere
		h.Duplicated++
		return
	}
	possible := transmissions{oldest: b.head, latest: best}
	b.arrived, b.taken = true, best
	if latest := b.latest - 1; m.ring.has(latest) && m.ring.at(latest).time <= e.time+m.slack {
		possible.latest = max(best, b.latest)
	}
	m.unlink(key, &b, best, t)
	if t.refused != 0 { // The network made a copy, which was damaged.
		m.hide(t.refused - 1)
		h.Duplicated++
	}
	e.arriving, t.sending, t.mate = matched, matched, at+1
	e.follows(t)
	e.copied = t.copied
	if hop < own {
		possible = transmissions{}
	}
	m.measure(h, e, t, possible)
}

// isNoTwin notes that something of a packet arrived, or that another transmission explains it, so that its point did not capture one packet
// twice: if it looked so, the network made the copy.
func (e *entry) isNoTwin() {
	if !e.twin {
		return
	}
	if e.twin = false; e.control {
		return
	}
	if e.path.hops[e.hop].count(e, 1); e.arriving == duplicate {
		e.path.hops[e.hop-1].duplicate(e.bytes)
	}
}

// choose returns the transmission of an arrival, as its position plus 1, or 0 if there is none. It is the
// latest one before the arrival. But if several equal packets are on the way at the same time, it is the oldest
// one, and if the network made the latest one before this hop, it is the packet of which that is a copy: nothing
// tells the two apart, and the first that arrives is not the copy.
func (m *matcher) choose(b *bucket, e *entry, w *path) (best uint64) {
	oldest, onTheWay := uint64(0), 0
	if b.tail == 0 {
		return 0
	}
	for i, n := b.tail, 0; i != 0 && n < searched; n++ {
		t := m.ring.at(i - 1)
		switch delay := e.time - t.time; {
		case delay < -m.slack:
			i = t.prev
			continue
		case delay < w.shortest:
			if best == 0 {
				oldest = i
			}
		case best == 0:
			best = i
		}
		if e.time-t.time > w.longest {
			break
		}
		oldest = i
		onTheWay++
		i = t.prev
	}
	switch {
	case onTheWay >= pipelined && e.time-m.ring.at(b.head-1).time <= w.longest:
		return b.head
	case best == 0 || onTheWay >= pipelined:
		return oldest
	}
	for i := best; m.ring.at(i - 1).copied; {
		if i = m.ring.at(i - 1).prev; i == 0 || m.ring.at(best-1).time-m.ring.at(i-1).time > w.longest {
			return best
		}
		if !m.ring.at(i - 1).copied {
			return i
		}
	}
	return best
}

// pipelined is a number of equal packets that are on the way at the same time because their sender did not wait
// for an answer.
const pipelined = 3

// unlink removes a transmission from those that are not taken.
func (m *matcher) unlink(key uint64, b *bucket, at uint64, t *entry) {
	if t.prev != 0 {
		m.ring.at(t.prev - 1).next = t.next
	} else {
		b.head = t.next
	}
	if t.next != 0 {
		m.ring.at(t.next - 1).prev = t.prev
	} else {
		b.tail = t.prev
	}
	t.prev, t.next = 0, 0
	if b.live <= 0 && b.head == 0 {
		delete(m.buckets, key)
		return
	}
	m.buckets[key] = *b
}

// measure counts a packet that arrived.
func (m *matcher) measure(h *Hop, e, t *entry, possible transmissions) {
	if e.control {
		return
	}
	near := possible.latest != 0 // no point lacks the packet in between
	if near {
		h.delays.add(e.time - t.time)
		h.course.at(t.time).delay(e.time - t.time)
	}
	if e.icrc == rocev2.ICRCBad && t.icrc != rocev2.ICRCBad || e.summed && t.summed && e.sum != t.sum && e.id == t.id {
		h.damaged(t.time)
		e.arriving = damagedOn
	} else if !near {
		h.NotCaptured++
	}
	if m.flows.arrived(e, possible) && near {
		h.Reordered++
	}
}

// refusedAfter reports whether the header of an arrival was damaged after its transmission: the frame goes astray, or a checksum
// is wrong that the ICRC does not cover. A receiver drops such a packet.
func (h *header) refusedAfter(t *header) bool {
	if h.icrc == rocev2.ICRCBad { // The packet shows that it is damaged.
		return false
	}
	return h.astray && !t.astray || h.ip == rocev2.ICRCBad && t.ip == rocev2.ICRCOk || h.udp == rocev2.ICRCBad && t.check != h.check
}

// isRefused reports whether the header of a packet is damaged so that its receiver drops it: the frame goes astray, or a checksum
// is wrong that the ICRC does not cover.
func (h *header) isRefused() bool {
	return h.astray || h.ip == rocev2.ICRCBad || h.udp == rocev2.ICRCBad
}

// damagedBefore reports whether a packet was damaged when it came to the point that transmits it. The checksum of an RPC over UDP
// proves nothing at its sender, whose adapter may compute it.
func (e *entry) damagedBefore() bool {
	return e.arriving == damagedThere || e.arriving == damagedOn || e.astray || e.ip == rocev2.ICRCBad || e.icrc == rocev2.ICRCBad && !e.cut && (e.hop > 0 || e.opcode != udSendOnly)
}

// hide marks an arrival, and its copies at the points after it, as damaged copies of another packet.
func (m *matcher) hide(at uint64) {
	if m.ring.has(at) {
		for e := range m.onward(m.ring.at(at)) {
			e.arriving = damagedThere
		}
	}
}

// onward yields the entries of a packet from one point to the last one that captured it on its way.
func (m *matcher) onward(e *entry) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for yield(e) && e.sending == matched && e.mate != 0 && m.ring.has(e.mate-1) {
			e = m.ring.at(e.mate - 1)
		}
	}
}

// decideRefused decides a transmission whose copy arrived with a damaged header, and reports whether there is such a copy. If the
// receiver shows that it had the packet, it ignores the checksum.
func (m *matcher) decideRefused(h *Hop, t *entry) bool {
	if t.refused == 0 || !m.ring.has(t.refused-1) {
		return false
	}
	e := m.ring.at(t.refused - 1)
	h.delays.add(e.time - t.time)
	h.course.at(t.time).delay(e.time - t.time)
	if t.unseen || m.flows.wasAnswered(t) {
		e.arriving, t.sending, t.mate = matched, matched, t.refused
		for e := range m.onward(e) {
			e.follows(t)
		}
		return true
	}
	t.sending = damagedOn
	h.damaged(t.time)
	m.hide(t.refused - 1)
	return true
}

// miss decides what happened to a transmission that nothing took, or not all of it. A datagram waits to be sent again, unless this is the
// last chance.
func (m *matcher) miss(at uint64, e *entry, last bool) {
	w, h := e.path, e.path.hops[e.hop]
	left := e.bytes - e.left
	had := e.unseen || m.flows.wasAnswered(e)
	again := m.flows.wasMissed(e)
	key := keyOn(e.key, int(e.hop))
	if e.stream {
		again, had = m.streams.all[e.on(int(e.hop))].forget(at, e)
	} else if b, known := m.buckets[key]; known {
		m.unlink(key, &b, at+1, e)
	}
	switch {
	case m.decideRefused(h, e):
	case e.twin && e.left == 0: // the point captured the packet twice
		e.sending, e.arriving = none, secondCopy
		h.MirrorDuplicates++
	case e.control:
		e.sending = unknown
	case e.damagedBefore(): // Whether the damaged frame came any farther does not matter.
		e.sending = unknown
		h.count(e, -1)
	case m.late > maxWindow || !m.covered(h.To, e.time, w.longest) || m.cutAt(h.To, e.opcode): // or the frames are in disorder
		e.sending = unknown
		h.Unknown++
	case !e.cut && e.left == 0 && m.damage.take(m, h.To, e, w.longest):
		e.sending = damagedOn
		h.damaged(e.time)
	case had:
		if e.stream || !e.unseen {
			m.lacks[h.To].add(e.time)
		}
		e.sending = notCaptured
		h.NotCaptured++
		h.BytesNotCaptured += int64(left)
	case again && !m.lacks[h.To].about(e.time) && !m.incomplete(h.To):
		e.sending = lost
		h.Lost++
		h.BytesLost += int64(left)
		h.course.at(e.time).lost++
		m.lostInQuiet(h, e.time, w.longest)
	case e.opcode.Transport() == rocev2.UD && !e.stream && !last:
		m.unproven.push(at)
	default: // Nothing shows that the receiver had it, or that it missed it: the capture may lack it.
		e.sending = missing
		h.Unknown++
		if !e.copied && (m.incomplete(h.To) || m.lacks[h.To].about(e.time)) { // A copy that the network made is no packet that came.
			e.sending = unknown
		}
	}
}

// cutAt reports whether a point captured so few bytes of some packets like one with an opcode that they cannot be recognized.
func (m *matcher) cutAt(point int, op rocev2.Opcode) bool {
	return slices.ContainsFunc(m.plan.Points[point].sources, func(src *source) bool { return src.cut[kindOfCut(op)] > 0 })
}

// incomplete reports whether the capture of a point proves to lack more than a few of the packets that passed the point, or says that it dropped
// some: it may lack any packet that its sender sent again, or its receiver asked for again, because it came late.
func (m *matcher) incomplete(point int) bool {
	n := m.lacks[point].n
	return n > fewLacks && n*200 > m.frames[point] ||
		slices.ContainsFunc(m.plan.Points[point].sources, func(src *source) bool { return src.drops })
}

// covered reports whether the capture of a point covers a time, with a margin.
func (m *matcher) covered(point int, t, margin int64) bool {
	for _, src := range m.plan.Points[point].sources {
		if slices.ContainsFunc(src.spans, func(s capture.Span) bool { return s.First <= t && t+margin <= s.Last }) {
			return true
		}
	}
	return false
}

// finish decides everything at the end of the capture.
func (m *matcher) finish() {
	for m.arrivals.len() > 0 {
		m.arrive(m.arrivals.pop().at)
	}
	m.expire(1<<63 - 1)
	m.damage.expire(m, 1<<63-1)
}

// relieve frees memory: it decides the oldest frame although more time might change the decision.
func (m *matcher) relieve(at uint64) {
	m.Evicted++
	e := m.ring.at(at)
	for e.arriving == notYet && m.arrivals.len() > 0 && m.arrivals.first().at <= at {
		m.arrive(m.arrivals.pop().at)
	}
	if e.arriving == notYet {
		e.arriving = unexplained
	}
	m.expire(e.time + 1)
	if e.sending == notYet {
		m.miss(at, e, true)
	}
}

// decided reports whether nothing changes a frame any more, nor those of its packet at the points behind, which an acknowledgement finds by the
// first one while there is memory.
func (m *matcher) decided(at uint64) bool {
	e := m.ring.at(at)
	return e.sending != notYet && e.arriving != notYet && (e.sending != matched || !m.ring.has(e.mate-1) || m.ring.len() > m.limit || m.decided(e.mate-1))
}
