package order

import (
	"math"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Kind is what a fact says. The list is closed: a new kind needs a row in the table of
// docs/architecture.md that says which packets cause it.
type Kind uint8

// The kinds of facts.
const (
	Begun      Kind = iota // the first request was captured; Known is set if it is the first one that was sent
	Unordered              // the packets in the capture are in an order in which they cannot have been sent
	Extended               // the latest request, a Read, has N PSNs
	Accepted               // the receiver accepts the request of the current packet, or the item that waited
	Filled                 // items wait for the request that was accepted
	Released               // the item waits no longer
	Missing                // the sequence numbers of the run were not captured; N requests, or bytes, are missing
	Again                  // a further copy of a request
	Late                   // a request comes late that may be the first copy of it; Known is set if it was counted as missing
	Waits                  // the last fact: the request is ahead of the next one, and the caller has to call Hold if the window lacks it
	AckedTo                // the other side has accepted the requests up to a new PSN
	Covered                // and all facts that follow from that are reported
	AckedAgain             // TCP: the other side acknowledges the same bytes once more
)

// Fact is something that a packet shows about the requests of one sender.
type Fact[T any] struct {
	Kind
	Run                // the sequence numbers that the fact is about
	Item  *T           // Accepted, Released: the item that waited; nil for the request of the current packet
	N     uint32       // Missing: requests, or bytes; Extended, Accepted: PSNs of a Read, 0 if that is unknown
	At    record.Stamp // Missing: the packet that shows it
	Known bool
}

// Request is what the order of requests depends on: of packets, or of segments.
type Request struct {
	PSN  uint32
	Read bool
	Size uint32 // bytes that a Read requests, or that a segment has
	At   record.Stamp
}

// progress is what the expected sequence number of an Order means.
type progress uint8

const (
	idle      progress = iota // nothing: no request was captured
	announced                 // the handshake contained it
	exact                     // the next request has it
	atLeast                   // the next request has it or a later one, because the latest is a Read of unknown extent
)

// acks is what the acknowledged sequence number of an Order means.
type acks uint8

const (
	nothing acks = iota
	early        // PSNs: the latest one before the first request; the next state is nothing
	upTo         // the other side has accepted all requests before it
)

// MaxJump is the maximum distance of the PSNs of one connection. A PSN farther away
// belongs to another connection that reuses the number of the queue pair.
const MaxJump = 1 << 20

// Near is the maximum distance of PSNs that belong together. It is small enough to
// distinguish two connections between the same ends, because initial PSNs are random.
const Near = 1 << 12

// Order is the order of the requests of one sender: of the packets of InfiniBand's transport, each of which has one PSN, or of the
// segments of one direction of a TCP connection, each of which has as many sequence numbers as bytes. T is what its owner keeps of a
// request that waits for earlier ones. A method that takes something returns the facts that follow from it, in the order in
// which they hold. They, and the items in them, are valid until the next such method. mtu is the path MTU, 0 if it is not known.
type Order[T any] struct {
	Circle
	progress  progress
	acks      acks
	ended     bool   // TCP: a FIN was captured
	next      uint32 // the sequence number of the next request, or the first one that it can have; see progress
	acked     uint32 // see acks
	end       uint32 // TCP: the sequence number of the FIN
	read      Request
	unmatched Run // PSNs of the latest responses to Read Requests that were not captured
	gaps      Gaps
	window    *Window[T] // the requests that wait
	taking    Request    // the latest one that has to wait
	facts     []Fact[T]
}

// begin begins a list of facts.
func (o *Order[T]) begin() {
	o.facts = o.facts[:0]
	o.window.reclaim()
}

func (o *Order[T]) add(f Fact[T]) { o.facts = append(o.facts, f) }

// Window returns the requests that wait. It may be nil.
func (o *Order[T]) Window() *Window[T] { return o.window }

// Size returns the memory of the gaps.
func (o *Order[T]) Size() int64 { return o.gaps.Bytes() }

// Known reports whether the sequence number of the next request is known, and Begun whether a request was captured.
func (o *Order[T]) Known() bool { return o.progress != idle }
func (o *Order[T]) Begun() bool { return o.progress >= exact }

// Expected returns the sequence number of the next request.
func (o *Order[T]) Expected() uint32 { return o.next }

// IsNew reports whether no request that begins with a sequence number, or after it, was taken before.
func (o *Order[T]) IsNew(seq uint32) bool { return !o.Begun() || o.Delta(seq, o.next) >= 0 }

// AtLeast reports whether Expected is a lower bound, because the latest request is a Read of unknown extent.
func (o *Order[T]) AtLeast() bool { return o.progress == atLeast }

// Acknowledged reports whether an acknowledgement was captured, and IsAcked whether the other side has shown that it accepted a
// sequence number.
func (o *Order[T]) Acknowledged() bool { return o.acks == upTo }

func (o *Order[T]) IsAcked(seq uint32) bool {
	return o.acks == upTo && o.Delta(o.acked, seq) > 0
}

// AckedFrom returns how many bytes from a sequence number on the other side of a TCP connection has acknowledged.
func (o *Order[T]) AckedFrom(seq uint32) int32 {
	if o.acks != upTo {
		return 0
	}
	to := o.acked
	if o.ended && o.Delta(to, o.end) > 0 { // the FIN takes a sequence number
		to = o.end
	}
	return max(0, o.Delta(to, seq))
}

// End notes a FIN, and its sequence number. Ended reports whether there was one, and EndIsAcked whether the other side has received it.
func (o *Order[T]) End(seq uint32)   { o.ended, o.end = true, seq }
func (o *Order[T]) Ended() bool      { return o.ended }
func (o *Order[T]) EndIsAcked() bool { return o.ended && o.IsAcked(o.end) }

// Awaits reports whether a request was acknowledged that was not captured yet.
func (o *Order[T]) Awaits() bool {
	if !o.Begun() {
		return o.progress == announced && o.acks == early && o.Delta(o.acked, o.next) > 0
	}
	return o.IsAcked(o.next)
}

// Lacks reports whether a PSN was counted as not captured, or comes before the first captured one and after a later
// one that was captured.
func (o *Order[T]) Lacks(psn uint32) bool { return o.gaps.lacks(o.Circle, One(psn)) }

// Announce notes the sequence number of the first request in the handshake.
func (o *Order[T]) Announce(seq uint32) {
	if !o.Begun() {
		o.next, o.progress = seq, announced
		o.gaps.Begin(seq)
	}
}

// Run returns the sequence numbers of a request. Those of a Read follow from the path MTU; see extent.
func (o *Order[T]) Run(r *Request) Run {
	if o.Circle == PSNs {
		return One(r.PSN)
	}
	return Run{r.PSN, r.PSN + r.Size}
}

// Take takes a request. If only a part of a segment came before, that part is a fact, and the rest is accepted.
func (o *Order[T]) Take(r Request, mtu int) []Fact[T] {
	o.begin()
	if !o.Begun() {
		o.first(r.PSN)
	}
	o.learn(r.PSN, mtu)
	run := o.Run(&r)
	switch delta := o.Delta(r.PSN, o.next); {
	case delta > 0:
		o.taking = r
		o.add(Fact[T]{Kind: Waits, Run: run})
	case delta < 0:
		known := run
		if o.Delta(run.To, o.next) > 0 {
			known.To = o.next
		}
		again := Fact[T]{Kind: Again, Run: known}
		if late, counted := o.gaps.Late(o.Circle, known, o.IsAcked(r.PSN), r.Read); late {
			again.Kind, again.Known = Late, counted
		}
		if o.add(again); known != run {
			o.accept(r, nil, mtu)
			o.drain(mtu, false)
		}
	default:
		if o.IsAcked(r.PSN) { // the acknowledgement came first
			o.add(Fact[T]{Kind: Unordered})
		}
		if o.accept(r, nil, mtu); !o.window.Empty() {
			o.add(Fact[T]{Kind: Filled, Run: run})
			o.drain(mtu, false)
		}
	}
	return o.facts
}

// Begin takes only the PSN of a request, which may be the first one.
func (o *Order[T]) Begin(psn uint32) []Fact[T] {
	if o.begin(); !o.Begun() {
		o.first(psn)
	}
	return o.facts
}

// TakeOnce takes a request of an unreliable connection, whose requests are sent once.
func (o *Order[T]) TakeOnce(r Request, mtu int) []Fact[T] {
	if !o.Begun() {
		o.next, o.progress = r.PSN, exact
	}
	if o.Delta(r.PSN, o.next) < 0 {
		o.begin()
		o.add(Fact[T]{Kind: Filled, Run: One(r.PSN)})
		return o.facts
	}
	return o.Insist(r, mtu)
}

// Insist takes a request that is accepted although requests before it may be missing.
func (o *Order[T]) Insist(r Request, mtu int) []Fact[T] {
	o.begin()
	o.skipTo(r.PSN, r.At)
	o.accept(r, nil, mtu)
	o.drain(mtu, false)
	return o.facts
}

// Hold keeps an item of a number of bytes for the request of which Take said that it waits, and which the window lacks.
func (o *Order[T]) Hold(bytes int, item T, mtu int) []Fact[T] {
	o.begin()
	o.window = o.window.With(o.Circle, o.taking, bytes, item)
	o.drain(mtu, o.shown())
	return o.facts
}

// Lengthen notes that the segment of which Take said that it waits is a longer copy of the one that the window has, and takes a
// number of bytes more.
func (o *Order[T]) Lengthen(bytes int) []Fact[T] {
	o.begin()
	o.window.lengthen(o.Circle, o.taking, bytes)
	o.drain(0, o.shown())
	return o.facts
}

// shown reports whether the other side has accepted the request before the earliest one that waits, or of a segment its first byte.
func (o *Order[T]) shown() bool {
	if o.window.Empty() || o.acks != upTo {
		return false
	}
	ahead := o.Delta(o.acked, o.window.Seq(0))
	return ahead > 0 || ahead == 0 && o.Circle == PSNs
}

// Acknowledge notes that the other side has accepted all requests before a sequence number.
func (o *Order[T]) Acknowledge(seq uint32, mtu int) []Fact[T] {
	to := Run{To: seq}
	switch o.begin(); {
	case !o.Begun() && o.Circle == PSNs:
		o.acks, o.acked = early, seq
	case o.acks == upTo && o.Delta(seq, o.acked) <= 0:
		if seq == o.acked && o.Circle == Octets {
			o.add(Fact[T]{Kind: AckedAgain, Run: to})
		}
	case o.Circle == Octets || o.Delta(seq, o.next) <= MaxJump+1:
		o.acks, o.acked = upTo, seq
		o.add(Fact[T]{Kind: AckedTo, Run: to})
		o.drain(mtu, o.shown())
		o.add(Fact[T]{Kind: Covered, Run: to})
	}
	return o.facts
}

// Drain accepts the requests that wait and are next, after Extend.
func (o *Order[T]) Drain(mtu int) []Fact[T] {
	o.begin()
	o.drain(mtu, false)
	return o.facts
}

// SkipGap counts what is missing before the earliest request that waits as not captured.
func (o *Order[T]) SkipGap(mtu int) []Fact[T] {
	o.begin()
	o.drain(mtu, true)
	return o.facts
}

// SkipAcked counts the requests that were acknowledged and not captured, at the end.
func (o *Order[T]) SkipAcked(at record.Stamp) []Fact[T] {
	if o.begin(); o.Begun() && o.acks == upTo {
		o.skipTo(o.acked, at)
	}
	return o.facts
}

// Extend sets the number of PSNs of the latest request, a Read.
func (o *Order[T]) Extend(from, n uint32) { o.next, o.progress = o.Add(from, n), exact }

// HasResponse takes a response to a Read Request that belongs to no known operation, and reports whether the capture has
// an earlier copy of it: the request was captured, and its operation is complete and forgotten, or the response is
// one of the latest that belong to a request that was not captured.
func (o *Order[T]) HasResponse(psn uint32) bool {
	if o.Begun() && o.Delta(psn, o.next) < 0 && o.gaps.Has(o.Circle, One(psn)) {
		return true
	}
	n := o.Delta(o.unmatched.To, o.unmatched.From)
	switch after := o.Delta(psn, o.unmatched.From); {
	case n > 0 && after >= 0 && after < n:
		return true
	case n > 0 && after == n:
		o.unmatched = Run{o.unmatched.From, o.Add(psn, 1)}
	default:
		o.unmatched = One(psn)
	}
	return false
}

// first takes the sequence number of the first request.
func (o *Order[T]) first(seq uint32) {
	was := o.progress
	if o.progress = exact; was == announced && o.Circle == Octets {
		return
	}
	n, known, delta := uint32(0), was == announced && seq == o.next, o.Delta(seq, o.next)
	if was == idle || delta < 0 || delta > Near {
		o.next = seq
	}
	if after := o.Delta(o.acked, seq); o.acks == early && after > 0 && after <= MaxJump {
		n = 1 // the acknowledgement came first
	}
	o.add(Fact[T]{Kind: Begun, Run: Run{o.next, o.Add(o.next, 1)}, N: n, Known: known})
	o.gaps.Begin(o.next)
	o.acks = nothing
}

// accept accepts a request that is next, or the bytes of a segment that are.
func (o *Order[T]) accept(r Request, item *T, mtu int) {
	n, known := o.extent(&r, mtu)
	to := o.Add(r.PSN, max(n, 1))
	if o.Delta(to, o.next) <= 0 || r.PSN != o.next && o.Circle == PSNs {
		return
	}
	o.add(Fact[T]{Kind: Accepted, Run: Run{o.next, to}, Item: item, N: n})
	o.next, o.progress = to, exact
	if o.gaps.Forget(o.Circle, to); !known {
		o.read, o.progress = r, atLeast
	}
}

// extent returns how many sequence numbers a request has, and whether that is known.
func (o *Order[T]) extent(r *Request, mtu int) (n uint32, known bool) {
	switch {
	case o.Circle == Octets:
		return r.Size, true
	case !r.Read || r.Size <= smallest:
		return 1, true
	case mtu != 0:
		return min(Packets(r.Size, mtu), MaxJump), true
	}
	return 0, false
}

// smallest is the smallest path MTU.
const smallest = 256

// Packets returns the number of packets that carry n bytes, at least one.
func Packets(n uint32, mtu int) uint32 {
	return uint32(min(max(1, (uint64(n)+uint64(mtu)-1)/uint64(mtu)), math.MaxInt32))
}

// Most returns the maximum number of PSNs of a Read of a number of bytes.
func Most(size uint32, mtu int) uint32 {
	if mtu == 0 {
		mtu = smallest
	}
	return min(Packets(size, mtu), MaxJump)
}

// learn sets the expected PSN after a Read of unknown extent: the PSN of the request that follows it shows its extent.
func (o *Order[T]) learn(psn uint32, mtu int) {
	if o.progress != atLeast || o.Delta(psn, o.next) <= 0 {
		return
	}
	o.progress = exact
	if n := o.Delta(psn, o.read.PSN); n > 0 && uint32(n) <= Most(o.read.Size, mtu) {
		o.next = psn
		o.add(Fact[T]{Kind: Extended, Run: Run{o.read.PSN, psn}, N: uint32(n)})
	}
}

// skipTo moves the expected sequence number forward over what was not captured. The PSNs of one Read Request whose
// responses were captured are one request.
func (o *Order[T]) skipTo(seq uint32, at record.Stamp) {
	n := o.Delta(seq, o.next)
	if n <= 0 {
		return
	}
	missing := Run{o.next, seq}
	if ahead, all := o.Delta(o.unmatched.From, o.next), o.Delta(o.unmatched.To, o.unmatched.From); all > 0 && ahead >= 0 && ahead+all <= n {
		n -= all - 1
	}
	o.add(Fact[T]{Kind: Missing, Run: missing, N: uint32(n), At: at})
	o.gaps.Missing(missing)
	o.unmatched, o.next, o.progress = Run{}, seq, exact
}

// drain accepts the requests that wait and are next. skips is set if what is missing before the first one of them was not captured.
func (o *Order[T]) drain(mtu int, skips bool) {
	for !o.window.Empty() {
		p := o.window.order[0]
		if o.learn(p.PSN, mtu); o.Delta(p.PSN, o.next) > 0 {
			if !skips && !o.window.Full() {
				return
			}
			o.skipTo(p.PSN, p.At)
		}
		skips = skips && p.PSN != o.next
		item := o.window.takeFirst()
		o.accept(p.Request, item, mtu)
		o.add(Fact[T]{Kind: Released, Run: o.Run(&p.Request), Item: item})
	}
}
