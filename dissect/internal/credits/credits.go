// Package credits follows the credits of one side of a connection (RFC 8166 s.3.3): how many Calls it may have
// outstanding, and how many it had. This package knows neither messages nor connections.
package credits

import "github.com/rdmadump/rdmadump/dissect/record"

// Allowance limits the number of Calls that a side may have outstanding.
type Allowance struct {
	asked record.Opt[uint32] // credits that the last Call but the current one requested
	grant record.Opt[uint32] // the current grant
	lower record.Opt[uint32] // a lower grant that may not have reached the side yet
	by    uint64             // Seq of the Send that carries the lower grant
	binds record.Time        // time from which the side must know the lower grant; 0 while unknown
	dones int                // number of open transactions that are RDMA_DONEs
	// unread is set if the latest Reply was captured without its credits, so the grant is unknown until the next Reply.
	unread bool
}

// leastRoundTrip is the shortest time in which a requester has to learn of a lower grant.
const leastRoundTrip = record.Time(1e6)

// Limit returns the number of Calls that may be outstanding, and false if the capture does not show
// it.
func (a *Allowance) Limit(handshake bool) (n uint32, known bool) {
	grant, granted := a.grant.Get()
	switch {
	case granted:
		return max(1, min(grant, a.asked.Or(grant))), true
	case handshake && !a.unread:
		return 1, true // until the first Reply (RFC 8166 s.3.3.3)
	}
	return 0, false
}

// Request notes the credits that a Call requested.
func (a *Allowance) Request(credits uint32) { a.asked = record.Some(max(credits, 1)) }

// Begin and End count an open transaction that is an RDMA_DONE.
func (a *Allowance) Begin() { a.dones++ }
func (a *Allowance) End()   { a.dones-- }

// Take takes the credits that the Send with a Seq grants. A higher grant is valid at
// once, a lower one when it has reached the requester.
func (a *Allowance) Take(grant uint32, seq uint64) {
	a.unread = false
	now, known := a.grant.Get()
	switch {
	case !known || grant >= now:
		a.grant, a.lower = record.Some(grant), record.Opt[uint32]{}
	case a.lower != record.Some(grant):
		a.lower, a.by, a.binds = record.Some(grant), seq, 0
	}
}

// Lose notes a Reply that was captured without its credits, which may have raised the grant.
func (a *Allowance) Lose() {
	a.grant, a.lower, a.unread = record.Opt[uint32]{}, record.Opt[uint32]{}, true
}

// Deliver notes that a Send that was sent at a time was delivered to the side no later than at.
func (a *Allowance) Deliver(seq uint64, sent, at record.Time) {
	if a.lower.Known() && seq >= a.by && a.binds == 0 {
		a.binds = at + max(at-sent, leastRoundTrip)
	}
}

// Join takes over what is known of another connection.
func (a *Allowance) Join(b *Allowance) {
	a.asked, a.grant, a.lower = either(a.asked, b.asked), either(a.grant, b.grant), either(a.lower, b.lower)
	a.by, a.binds = max(a.by, b.by), max(a.binds, b.binds)
	a.dones, a.unread = a.dones+b.dones, a.unread || b.unread
}

// Grant returns the current grant, and Dones the number of open transactions that are RDMA_DONEs.
func (a *Allowance) Grant() record.Opt[uint32] { return a.grant }
func (a *Allowance) Dones() int                { return a.dones }

// Promises reports whether no grant that the capture shows, in force or on its way, is below a number of Calls.
func (a *Allowance) Promises(calls uint32) bool {
	return calls <= max(1, min(a.grant.Or(calls), a.lower.Or(calls)))
}

// either returns the first value that is known.
func either[T any](a, b record.Opt[T]) record.Opt[T] {
	if a.Known() {
		return a
	}
	return b
}

// Peak is the largest number of Calls of a side that were outstanding at once.
type Peak struct {
	proven   int32 // where the capture proves that none of them was answered before
	doubtful int32 // where a Reply may be missing
}

// Exceeded reports whether more Calls are outstanding than the capture has proven so far.
func (p *Peak) Exceeded(calls int32) bool { return calls > p.proven }

// Count notes how many Calls are outstanding.
func (p *Peak) Count(calls int32, proven bool) {
	if proven {
		p.proven = max(p.proven, calls)
	} else {
		p.doubtful = max(p.doubtful, calls)
	}
}

// Join adds what was counted on another connection.
func (p *Peak) Join(o Peak) {
	p.proven, p.doubtful = max(p.proven, o.proven), max(p.doubtful, o.doubtful)
}

// Learn makes a lower grant the current one if the side must know it when it sends a Call. The
// side must know it one round trip after the grant was delivered. An acknowledgement by its adapter
// or its TCP does not show that the side has read the Reply.
func (a *Allowance) Learn(at record.Time) {
	if lower, known := a.lower.Get(); known && a.binds != 0 && at >= a.binds {
		a.grant, a.lower = record.Some(lower), record.Opt[uint32]{}
	}
}

// Proven returns the peak. It is false if more Calls may have been outstanding where the capture proves nothing.
func (p *Peak) Proven() (calls int, proven bool) { return int(p.proven), p.doubtful <= p.proven }
