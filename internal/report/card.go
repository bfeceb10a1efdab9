package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
)

// card collects what the pictures of one connection show.
type card struct {
	forward, backward analyze.CreditTimeline
	handles           analyze.HandleTimeline
	spans             []span
	marks             []mark
	flows             []flow
	every             time.Duration // of flows
	leftOut           int64         // RPCs that are not drawn
	notMarked         int64         // marks and stalls that are not drawn
}

// span is an RPC in flight.
type span struct {
	from, to record.Time // to is before from if there is no Reply
	kind     kind
	stalls   []stall
}

// stall is a time in which an RPC made no progress.
type stall struct{ from, to record.Time }

// kind is how a picture draws an RPC. Where there is space for only one, the highest is drawn.
type kind byte

// The kinds.
const (
	nothing  kind = iota
	inFlight      // answered
	found         // has findings
	failed        // has another outcome than ok
	stalled       // made no progress
)

// mark is a packet that was retransmitted or rejected.
type mark struct {
	at  record.Time
	nak bool
}

// flow is the number of bytes in one interval.
type flow struct{ toServer, toClient int64 }

// card returns the card of a connection, or nil if there are too many.
func (p *Report) card(conn int) *card {
	c := p.cards[conn]
	if c == nil && len(p.cards) < p.maxCards {
		c = &card{every: p.rates.Every()}
		c.forward.Shared, c.backward.Shared, c.handles.Shared = &p.creditsLeft, &p.creditsLeft, &p.handlesLeft
		p.cards[conn] = c
	}
	return c
}

// add adds a transaction. It does not keep r.
func (c *card) add(p *Report, r *record.Transaction) {
	if r.Direction == record.Backward {
		c.backward.Add(r)
	} else {
		c.forward.Add(r)
	}
	c.handles.Add(r)
	c.flow(p, r)
	for i := range r.Timeline {
		e := &r.Timeline[i]
		if e.Event != record.EventRetransmit && e.Event != record.EventNak {
			continue
		}
		if p.marksLeft == 0 {
			c.notMarked++
			continue
		}
		p.marksLeft--
		c.marks = append(c.marks, mark{e.Time, e.Event == record.EventNak})
	}
	if r.Call == nil { // the capture does not show when it was sent
		return
	}
	if p.spansLeft == 0 {
		c.leftOut++
		return
	}
	p.spansLeft--
	s := span{from: r.Call.Time, to: r.Call.Time - 1, kind: inFlight}
	if r.LatencyNS.Known() {
		s.to = r.End()
	}
	switch {
	case query.Outcome(r) != "ok":
		s.kind = failed
	case len(r.Findings) > 0:
		s.kind = found
	}
	for w, ns := range r.Stalls() {
		if p.marksLeft == 0 {
			c.notMarked++
			continue
		}
		p.marksLeft--
		s.stalls = append(s.stalls, stall{w.From, w.From + record.Time(ns)})
	}
	c.spans = append(c.spans, s)
}

// flow adds the bytes of a transaction to its interval. The intervals are those of the rates.
func (c *card) flow(p *Report, r *record.Transaction) {
	every := max(p.rates.Every(), c.every)
	at := int(max(r.End()-p.start, 0) / record.Time(every))
	if at >= intervals { // The rates get this transaction next, and then have longer intervals.
		every = analyze.Fitting(every, r.End()-p.start, intervals)
		at = int(max(r.End()-p.start, 0) / record.Time(every))
	}
	c.lengthen(every)
	if more := at + 1 - len(c.flows); more > 0 {
		c.flows = append(c.flows, make([]flow, more)...)
	}
	f := &c.flows[at]
	to, from := &f.toServer, &f.toClient
	if r.Direction == record.Backward {
		to, from = from, to
	}
	*to += max(payload(r.Call), 0)
	*from += max(payload(r.Reply), 0)
}

// lengthen merges the intervals of the bytes until they have a length.
func (c *card) lengthen(every time.Duration) {
	if every <= c.every {
		return
	}
	factor := int(every / c.every)
	c.every = every
	merged := c.flows[:0]
	for i, f := range c.flows {
		if i%factor == 0 {
			merged = append(merged, f)
			continue
		}
		last := &merged[len(merged)-1]
		last.toServer += f.toServer
		last.toClient += f.toClient
	}
	c.flows = merged
}

// maxSlots is the number of RPCs in flight at once that a picture draws apart from each other.
const maxSlots = 24

// slots gives each RPC in flight the lowest slot that is free. It returns the number of slots that
// are used, and the number of RPCs for which there is none.
func slots(spans []span, end record.Time, put func(slot int, s *span, to record.Time)) (used, none int) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var busy [maxSlots]record.Time // until when; only valid below used
	for i := range spans {
		s := &spans[i]
		to := s.to
		if to < s.from { // no Reply
			to = max(end, s.from)
		}
		slot := 0
		for slot < used && busy[slot] > s.from {
			slot++
		}
		if slot == maxSlots {
			none++
			continue
		}
		busy[slot] = to
		used = max(used, slot+1)
		put(slot, s, to)
	}
	return used, none
}

// level is the smallest and the largest value in one column of a picture.
type level struct{ least, most int }

// levels returns the number of things that exist at the time of each column, from the times at which
// they begin and end.
func levels(x axis, each func(func(from, to record.Time))) []level {
	type step struct {
		at record.Time
		by int
	}
	var steps []step
	each(func(from, to record.Time) { steps = append(steps, step{from, 1}, step{to, -1}) })
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	columns := make([]level, columnsWide)
	now, next := 0, 0
	for i := range columns {
		columns[i] = level{now, now}
		for next < len(steps) && (x.column(steps[next].at) <= i || i == columnsWide-1) {
			now += steps[next].by
			columns[i].least, columns[i].most = min(columns[i].least, now), max(columns[i].most, now)
			next++
		}
	}
	return columns
}
