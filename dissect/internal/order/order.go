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

// Request is what the order of requests, or of segments, depends on.
type Request struct {
	PSN  uint32
	Read bool
	Size uint32 // bytes that a Read requests, or that a segment has
	At   record.Stamp
}

// progress is what the expected PSN of an Order means.
type progress uint8

const (
	idle      progress = iota // nothing: no request was captured
	announced                 // the handshake contained it
	exact                     // the next request has it
	atLeast                   // the next request has it or a later one, because the latest is a Read of unknown extent
)

// event is what changes the progress.
type event uint8

const (
	announce event = iota // the handshake contains a PSN
	first                 // the first request was captured
	accept                // a request was accepted
	unknown               // a Read of unknown extent was accepted
	learn                 // the extent of the latest Read is known, or PSNs were skipped
	events
)

// transitions has the progress after each event. The other events do not happen: the first request comes before all
// others, and a handshake counts only before it.
var transitions = [...][events]progress{
	idle:      {announce: announced, first: exact},
	announced: {announce: announced, first: exact},
	exact:     {accept: exact, unknown: atLeast, learn: exact},
	atLeast:   {accept: exact, unknown: atLeast, learn: exact},
}

// acks is what the acknowledged PSN of an Order means.
type acks uint8

const (
	nothing acks = iota
	early        // the latest one before the first request; the next state is nothing
	upTo         // the other side has accepted all requests up to it
)

// MaxJump is the maximum distance of the PSNs of one connection. A PSN farther away
// belongs to another connection that reuses the number of the queue pair.
const MaxJump = 1 << 20

// Near is the maximum distance of PSNs that belong together. It is small enough to
// distinguish two connections between the same ends, because initial PSNs are random.
const Near = 1 << 12

// list is what the orders of both transports have in common: what the capture lacks, what waits, and the facts that a method returns.
type list[T any] struct {
	gaps   Gaps
	window *Window[T] // the requests, or segments, that wait
	taking Request    // the latest one that has to wait
	facts  []Fact[T]
}

// begin begins a list of facts.
func (l *list[T]) begin() {
	l.facts = l.facts[:0]
	l.window.reclaim()
}

func (l *list[T]) add(f Fact[T]) { l.facts = append(l.facts, f) }

// Window returns the requests, or segments, that wait. It may be nil.
func (l *list[T]) Window() *Window[T] { return l.window }

// Size returns the memory of the gaps.
func (l *list[T]) Size() int64 { return l.gaps.Bytes() }

// Order is the order of the requests of one sender of InfiniBand's transport. T is what its owner keeps of a
// request that waits for earlier ones. A method that takes something returns the facts that follow from it, in the order in
// which they hold. They, and the items in them, are valid until the next such method. mtu is the path MTU, 0 if it is not known.
type Order[T any] struct {
	progress progress
	acks     acks
	next     uint32 // the PSN of the next request, or the first one that it can have; see progress
	acked    uint32 // see acks
	read     Request

	unmatched Run // PSNs of the latest responses to Read Requests that were not captured

	list[T]
}

// Begun reports whether a request was captured.
func (o *Order[T]) Begun() bool { return o.progress >= exact }

// Expected returns the PSN of the next request.
func (o *Order[T]) Expected() uint32 { return o.next }

// AtLeast reports whether Expected is a lower bound, because the latest request is a Read of unknown extent.
func (o *Order[T]) AtLeast() bool { return o.progress == atLeast }

// IsAcked reports whether the other side has shown that it accepted a request.
func (o *Order[T]) IsAcked(psn uint32) bool {
	return o.acks == upTo && PSNs.Delta(o.acked, psn) >= 0
}

// Acked returns the highest PSN that the other side has accepted, and whether it is known.
func (o *Order[T]) Acked() (psn uint32, known bool) { return o.acked, o.acks == upTo }

// Awaits reports whether a request was acknowledged that was not captured yet.
func (o *Order[T]) Awaits() bool {
	if !o.Begun() {
		return o.progress == announced && o.acks == early && PSNs.Delta(o.acked, o.next) >= 0
	}
	return o.IsAcked(o.next)
}

// Lacks reports whether a PSN was counted as not captured, or comes before the first captured one and after a later
// one that was captured.
func (o *Order[T]) Lacks(psn uint32) bool { return o.gaps.lacks(PSNs, One(psn)) }

// Announce notes the PSN of the first request in the handshake.
func (o *Order[T]) Announce(psn uint32) {
	if !o.Begun() {
		o.next = psn
		o.after(announce)
	}
}

// after changes the progress after an event.
func (o *Order[T]) after(e event) { o.progress = transitions[o.progress][e] }

// Take takes a request of a reliable connection.
func (o *Order[T]) Take(r Request, mtu int) []Fact[T] {
	o.begin()
	if !o.Begun() {
		o.first(r.PSN)
	}
	o.learn(r.PSN, mtu)
	switch delta := PSNs.Delta(r.PSN, o.next); {
	case delta > 0:
		o.taking = r
		o.add(Fact[T]{Kind: Waits, Run: One(r.PSN)})
	case delta < 0:
		if late, counted := o.gaps.Late(PSNs, One(r.PSN), o.IsAcked(r.PSN), r.Read); late {
			o.add(Fact[T]{Kind: Late, Run: One(r.PSN), Known: counted})
		} else {
			o.add(Fact[T]{Kind: Again, Run: One(r.PSN)})
		}
	default:
		if o.IsAcked(r.PSN) { // the acknowledgement came first
			o.add(Fact[T]{Kind: Unordered})
		}
		if o.accept(r, nil, mtu); !o.window.Empty() {
			o.add(Fact[T]{Kind: Filled})
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
	switch o.begin(); {
	case !o.Begun():
		o.next = r.PSN
		o.after(first)
	case PSNs.Delta(r.PSN, o.next) < 0:
		o.add(Fact[T]{Kind: Filled})
		return o.facts
	}
	return o.insist(r, mtu)
}

// Insist takes a request that is accepted although requests before it may be missing.
func (o *Order[T]) Insist(r Request, mtu int) []Fact[T] {
	o.begin()
	return o.insist(r, mtu)
}

func (o *Order[T]) insist(r Request, mtu int) []Fact[T] {
	o.skipTo(r.PSN, r.At)
	o.accept(r, nil, mtu)
	o.drain(mtu, false)
	return o.facts
}

// Hold keeps an item of a number of bytes for the request of which Take said that it waits, and which the window lacks.
func (o *Order[T]) Hold(bytes int, item T, mtu int) []Fact[T] {
	o.begin()
	o.window = o.window.With(PSNs, o.taking, bytes, item)
	o.drain(mtu, o.shown())
	return o.facts
}

// shown reports whether the other side has accepted the request before the earliest one that waits.
func (o *Order[T]) shown() bool {
	return !o.window.Empty() && o.acks == upTo && PSNs.Delta(o.acked, o.window.Seq(0)) >= -1
}

// Acknowledge notes that the other side has accepted all requests up to a PSN.
func (o *Order[T]) Acknowledge(psn uint32, mtu int) []Fact[T] {
	switch o.begin(); {
	case !o.Begun():
		o.acks, o.acked = early, psn
	case o.IsAcked(psn) || PSNs.Delta(psn, o.next) > MaxJump:
	default:
		o.acks, o.acked = upTo, psn
		to := Run{To: PSNs.Add(psn, 1)}
		o.add(Fact[T]{Kind: AckedTo, Run: to})
		if o.shown() {
			o.drain(mtu, true)
		}
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

// SkipGap counts the requests before the earliest one that waits as not captured.
func (o *Order[T]) SkipGap(mtu int) []Fact[T] {
	o.begin()
	o.drain(mtu, true)
	return o.facts
}

// SkipAcked counts the requests that were acknowledged and not captured, at the end.
func (o *Order[T]) SkipAcked(at record.Stamp) []Fact[T] {
	if o.begin(); o.Begun() && o.acks == upTo {
		o.skipTo(PSNs.Add(o.acked, 1), at)
	}
	return o.facts
}

// Extend sets the number of PSNs of the latest request, a Read.
func (o *Order[T]) Extend(from, n uint32) {
	o.next = PSNs.Add(from, n)
	o.after(learn)
}

// HasResponse takes a response to a Read Request that belongs to no known operation, and reports whether the capture has
// an earlier copy of it: the request was captured, and its operation is complete and forgotten, or the response is
// one of the latest that belong to a request that was not captured.
func (o *Order[T]) HasResponse(psn uint32) bool {
	if o.Begun() && PSNs.Delta(psn, o.next) < 0 && o.gaps.Has(PSNs, One(psn)) {
		return true
	}
	n := PSNs.Delta(o.unmatched.To, o.unmatched.From)
	switch after := PSNs.Delta(psn, o.unmatched.From); {
	case n > 0 && after >= 0 && after < n:
		return true
	case n > 0 && after == n:
		o.unmatched = Run{o.unmatched.From, PSNs.Add(psn, 1)}
	default:
		o.unmatched = One(psn)
	}
	return false
}

// first takes the PSN of the first request.
func (o *Order[T]) first(psn uint32) {
	n, known := uint32(0), o.progress == announced && psn == o.next
	if delta := PSNs.Delta(psn, o.next); o.progress == idle || delta < 0 || delta > Near {
		o.next = psn
	}
	if after := PSNs.Delta(o.acked, psn); o.acks == early && after >= 0 && after < MaxJump {
		n = 1 // the acknowledgement came first
	}
	o.add(Fact[T]{Kind: Begun, Run: One(o.next), N: n, Known: known})
	o.gaps.Begin(o.next)
	o.acks = nothing
	o.after(first)
}

// accept accepts a request, which has the PSN next.
func (o *Order[T]) accept(r Request, item *T, mtu int) {
	n, known := uint32(1), true
	if r.Read {
		n, known = r.extent(mtu)
	}
	o.next = PSNs.Add(r.PSN, max(n, 1))
	o.add(Fact[T]{Kind: Accepted, Run: Run{r.PSN, o.next}, Item: item, N: n})
	if o.gaps.Forget(PSNs, o.next); known {
		o.after(accept)
		return
	}
	o.read = r
	o.after(unknown)
}

// extent returns the number of PSNs of a Read, and whether it is known.
func (r *Request) extent(mtu int) (n uint32, known bool) {
	switch {
	case r.Size <= smallest:
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
	if o.progress != atLeast || PSNs.Delta(psn, o.next) <= 0 {
		return
	}
	o.after(learn)
	if n := PSNs.Delta(psn, o.read.PSN); n > 0 && uint32(n) <= Most(o.read.Size, mtu) {
		o.next = psn
		o.add(Fact[T]{Kind: Extended, Run: Run{o.read.PSN, psn}, N: uint32(n)})
	}
}

// skipTo moves the expected PSN forward over requests that were not captured. The PSNs of one Read Request whose
// responses were captured are one request.
func (o *Order[T]) skipTo(psn uint32, at record.Stamp) {
	n := PSNs.Delta(psn, o.next)
	if n <= 0 {
		return
	}
	missing := Run{o.next, psn}
	if ahead, all := PSNs.Delta(o.unmatched.From, o.next), PSNs.Delta(o.unmatched.To, o.unmatched.From); all > 0 && ahead >= 0 && ahead+all <= n {
		n -= all - 1
	}
	o.add(Fact[T]{Kind: Missing, Run: missing, N: uint32(n), At: at})
	o.unmatched = Run{}
	o.gaps.Missing(missing)
	o.next = psn
	o.after(learn)
}

// drain accepts the requests that wait and are next. skips is set if what is missing before the first one of them was not captured.
func (o *Order[T]) drain(mtu int, skips bool) {
	for !o.window.Empty() {
		p := o.window.order[0]
		o.learn(p.PSN, mtu)
		delta := PSNs.Delta(p.PSN, o.next)
		if delta > 0 {
			if !skips && !o.window.Full() {
				return
			}
			o.skipTo(p.PSN, p.At)
		}
		item := o.window.takeFirst()
		if delta >= 0 {
			skips = false
			o.accept(p.Request, item, mtu)
		}
		o.add(Fact[T]{Kind: Released, Run: One(p.PSN), Item: item})
	}
}
