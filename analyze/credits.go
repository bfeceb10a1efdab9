package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Credits is the credits of one direction of a connection over time (RFC 8166
// s.3.3.1, RFC 8167 s.4).
type Credits struct {
	Type         string           `json:"type" doc:"credits"`
	Connection   int              `json:"connection" doc:"number of the connection"`
	Direction    record.Direction `json:"direction" doc:"who calls: forward is the client, backward the server"`
	PeakInFlight int              `json:"peak_in_flight" doc:"most Calls without Reply at once"`
	Requested    []uint32         `json:"requested" doc:"what Calls asked for, each change"`
	Grants       []Grant          `json:"grants" doc:"each change of what was granted"`
	LimitReached int              `json:"limit_reached" doc:"how often as many Calls were in flight as credits granted"`
	LimitNS      int64            `json:"limit_reached_ns" doc:"for how long together"`
	Points       []CreditPoint    `json:"points" doc:"what holds from a moment on"`
	Dropped      int              `json:"dropped" doc:"transactions beyond what is remembered"`
}

// Grant is a change of the granted value.
type Grant struct {
	Time    record.Time `json:"time" doc:"when"`
	Packet  int64       `json:"packet" doc:"the Reply that said so"`
	Granted uint32      `json:"granted" doc:"credits"`
}

// CreditPoint is what holds from a moment on.
type CreditPoint struct {
	Time     record.Time        `json:"time" doc:"when"`
	InFlight int                `json:"in_flight" doc:"Calls without Reply"`
	Granted  record.Opt[uint32] `json:"granted" doc:"credits, null before the first Reply"`
}

// CreditTimeline collects the transactions of one direction of a connection.
type CreditTimeline struct {
	steps   []creditStep
	asked   []uint32
	dropped int
}

// creditStep is a Call sent or a Reply received.
type creditStep struct {
	time    record.Time
	packet  int64
	delta   int8
	granted uint32
}

// Add takes one transaction.
func (c *CreditTimeline) Add(r *record.Transaction) {
	if r.Call == nil {
		return
	}
	if len(c.steps) >= 2*maxKept {
		c.dropped++
		return
	}
	if n := len(c.asked); n == 0 || c.asked[n-1] != r.Call.Credits {
		c.asked = append(c.asked, r.Call.Credits)
	}
	c.steps = append(c.steps, creditStep{r.Call.Time, r.Call.Packet, 1, 0})
	if !r.LatencyNS.Known() {
		return
	}
	_, to := interval(r, 0)
	c.steps = append(c.steps, creditStep{to, r.Reply.LastPacket, -1, r.Reply.Credits})
}

// Finish works the timeline out; end is when the connection was last seen.
func (c *CreditTimeline) Finish(connection int, direction record.Direction, end record.Time) *Credits {
	slices.SortStableFunc(c.steps, func(a, b creditStep) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.packet, b.packet))
	})
	out := &Credits{
		Type: "credits", Connection: connection, Direction: direction, Requested: c.asked, Dropped: c.dropped,
		Grants: []Grant{}, Points: make([]CreditPoint, 0, len(c.steps)),
	}
	if out.Requested == nil {
		out.Requested = []uint32{}
	}
	inFlight := 0
	var granted record.Opt[uint32]
	var since record.Time // when the limit was reached
	atLimit := false
	for _, s := range c.steps {
		inFlight += int(s.delta)
		if s.delta < 0 && granted != record.Some(s.granted) {
			granted = record.Some(s.granted)
			out.Grants = append(out.Grants, Grant{s.time, s.packet, s.granted})
		}
		out.PeakInFlight = max(out.PeakInFlight, inFlight)
		limit, known := granted.Get()
		now := known && inFlight >= int(limit)
		if now && !atLimit {
			out.LimitReached++
			since = s.time
		} else if !now && atLimit {
			out.LimitNS += int64(s.time - since)
		}
		atLimit = now
		out.Points = append(out.Points, CreditPoint{s.time, inFlight, granted})
	}
	if atLimit && end > since {
		out.LimitNS += int64(end - since)
	}
	return out
}
