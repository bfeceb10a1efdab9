package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Credits describes the credits of one direction of a connection over time (RFC 8166 s.3.3.1,
// RFC 8167 s.4).
type Credits struct {
	Type                 string            `json:"type" doc:"The record's type, always \"credits\"." values:"credits"`
	Connection           int               `json:"connection" doc:"Connection number, as in the table of connections."`
	Direction            record.Direction  `json:"direction" doc:"Direction of the Calls: forward from client to server, backward from server to client."`
	PeakInFlight         record.Opt[int]   `json:"peak_in_flight" doc:"Largest number of Calls that were outstanding at once; null if the capture does not prove it, as in credits of the connection. A Call without a Reply is outstanding until its connection begins to close or, if the capture does not show that, until the last packet of the connection."`
	Requested            []uint32          `json:"requested" doc:"Numbers of credits that Calls requested, one for each change."`
	Grants               []Grant           `json:"grants" doc:"Changes of the number of granted credits, in order."`
	CreditLimitReached   record.Opt[int]   `json:"all_in_use" doc:"Number of times that as many Calls were outstanding as credits were granted; null as peak_in_flight."`
	CreditLimitReachedNS record.Opt[int64] `json:"all_in_use_ns" doc:"Total time for which as many Calls were outstanding as credits were granted, in nanoseconds; null as peak_in_flight."`
	Points               []CreditPoint     `json:"changes" doc:"Changes of the number of outstanding Calls or granted credits, in order."`
	Evicted              int               `json:"evicted" doc:"Number of transactions that are not included because there were too many."`
}

// Grant is a change of the number of granted credits.
type Grant struct {
	Time    record.Time `json:"time" doc:"Time of the Reply that changed the grant."`
	Packet  int64       `json:"packet" doc:"Packet number: the packet of the Reply."`
	Point   string      `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points."`
	Granted uint32      `json:"granted" doc:"Number of credits that the Reply granted."`
}

// CreditPoint contains the credits in use and granted from a moment on.
type CreditPoint struct {
	Time     record.Time        `json:"time" doc:"Time from which the values hold."`
	InFlight record.Opt[int]    `json:"in_flight" doc:"Number of outstanding Calls; null as peak_in_flight."`
	Granted  record.Opt[uint32] `json:"granted" doc:"Number of granted credits; null before the first Reply."`
}

// CreditTimeline collects the transactions of one direction of a connection.
type CreditTimeline struct {
	steps     []creditStep
	requested []uint32
	evicted   int          // transactions beyond the limit
	open      []creditStep // the Calls without a Reply
	earlier   creditStep   // the last Reply before the timeline, if earlier.reply is set
}

// creditStep is a Call that was sent, a Reply that was received, or the end of a Call without a
// Reply.
type creditStep struct {
	time    record.Time
	packet  int64
	point   *string // its capture point, if there are several
	delta   int8
	reply   bool
	granted uint32
}

// Add adds a transaction. It does not keep r.
func (c *CreditTimeline) Add(r *record.Transaction) {
	if r.Call == nil || !r.Call.Credits.Known() {
		return
	}
	if len(c.steps) >= 2*maxTransactions {
		c.evicted++
		return
	}
	requested := r.Call.Credits.Or(0)
	if n := len(c.requested); n == 0 || c.requested[n-1] != requested {
		c.requested = append(c.requested, requested)
	}
	c.steps = append(c.steps, creditStep{time: r.Call.Time, packet: r.Call.Packet, delta: 1})
	if !r.LatencyNS.Known() {
		c.open = append(c.open, c.steps[len(c.steps)-1])
		return
	}
	_, to := r.Outstanding(0)
	c.steps = append(c.steps, creditStep{time: to, packet: r.Reply.LastPacket, point: r.Reply.LastPoint, delta: -1, reply: true, granted: r.Reply.Credits.Or(0)})
}

// Earlier takes a transaction that ended before the timeline begins, because its Reply granted the credits that hold
// at the beginning.
func (c *CreditTimeline) Earlier(r *record.Transaction) {
	if r.Call == nil || !r.LatencyNS.Known() {
		return
	}
	granted, known := r.Reply.Credits.Get()
	if _, at := r.Outstanding(0); known && (!c.earlier.reply || at >= c.earlier.time) {
		c.earlier = creditStep{time: at, reply: true, granted: granted}
	}
}

// Finish returns the timeline of a connection. If its record does not say how many Calls were outstanding, neither does
// the timeline: Calls whose Replies are missing would pile up in it.
func (c *CreditTimeline) Finish(of *record.Connection, direction record.Direction) *Credits {
	end := of.EndOfCalls()
	use := of.Credits.Or(record.CreditPair{}).Forward
	if direction == record.Backward {
		use = of.Credits.Or(record.CreditPair{}).Backward
	}
	proven := use.PeakInFlight.Known()
	for _, call := range c.open { // the sort keeps the end after the Call
		c.steps = append(c.steps, creditStep{time: max(call.time, end), packet: call.packet, delta: -1})
	}
	slices.SortStableFunc(c.steps, func(a, b creditStep) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.packet, b.packet))
	})
	out := &Credits{
		Type: "credits", Connection: of.ID, Direction: direction, Requested: c.requested, Evicted: c.evicted,
		Grants: []Grant{}, Points: make([]CreditPoint, 0, len(c.steps)),
	}
	if out.Requested == nil {
		out.Requested = []uint32{}
	}
	inFlight, peak, reached, reachedNS := 0, 0, 0, int64(0)
	var granted record.Opt[uint32]
	var since record.Time // time at which the limit was reached
	atLimit := false
	if e := &c.earlier; e.reply {
		granted = record.Some(e.granted)
		out.Points = append(out.Points, CreditPoint{e.time, record.SomeIf(0, proven), granted})
	}
	for _, s := range c.steps {
		inFlight += int(s.delta)
		if s.reply && granted != record.Some(s.granted) {
			granted = record.Some(s.granted)
			g := Grant{Time: s.time, Packet: s.packet, Granted: s.granted}
			if s.point != nil {
				g.Point = *s.point
			}
			out.Grants = append(out.Grants, g)
		}
		peak = max(peak, inFlight)
		limit, known := granted.Get()
		now := known && inFlight >= int(limit)
		if now && !atLimit {
			reached++
			since = s.time
		} else if !now && atLimit {
			reachedNS += s.time.Sub(since)
		}
		atLimit = now
		out.Points = append(out.Points, CreditPoint{s.time, record.SomeIf(inFlight, proven), granted})
	}
	if atLimit && end > since {
		reachedNS += end.Sub(since)
	}
	if u, known := use.Usage.Get(); known && !c.earlier.reply && c.evicted == 0 && int64(reached) == u.AllInUse {
		reachedNS = u.AllInUseNS // The timeline of a whole connection has the figure of its record.
	}
	out.PeakInFlight, out.CreditLimitReached, out.CreditLimitReachedNS = record.SomeIf(peak, proven), record.SomeIf(reached, proven), record.SomeIf(reachedNS, proven)
	return out
}
