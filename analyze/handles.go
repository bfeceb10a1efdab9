package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// How the exposure of a handle ended.
const (
	ByResponder = "responder" // by its Send With Invalidate
	ByRequester = "requester" // left to it, after the Reply
	ByNobody    = "nobody"    // no Reply was seen
)

// Handles is which handles a connection exposed, for how long, and who
// invalidated them.
type Handles struct {
	Type                string              `json:"type" doc:"handles"`
	Connection          int                 `json:"connection" doc:"number of the connection"`
	Exposures           int                 `json:"exposures" doc:"how often a handle was exposed"`
	Distinct            int                 `json:"distinct" doc:"handles"`
	Exposed             Quantiles           `json:"exposed" doc:"how long"`
	RemoteShare         record.Opt[float64] `json:"remote_share" doc:"of the exposures that the responder ended"`
	ChunkReplies        int                 `json:"chunk_replies" doc:"Replies to Calls with chunks"`
	InvalidatingReplies int                 `json:"invalidating_replies" doc:"those of them that carried an invalidation"`
	InvalidatingShare   record.Opt[float64] `json:"invalidating_share" doc:"their share"`
	LeftOver            int                 `json:"left_over" doc:"handles that a Reply left because one Send invalidates but one"`
	LeftAll             int                 `json:"left_all" doc:"handles of Replies that invalidated none"`
	Reused              int                 `json:"reused" doc:"exposures of a handle that was exposed before"`
	ReuseAfter          Quantiles           `json:"reuse_after" doc:"how long after"`
	NeverInvalidated    int                 `json:"never_invalidated" doc:"exposures without Reply"`
	Bars                []Exposure          `json:"bars" doc:"the exposures, in order"`
	Dropped             int                 `json:"dropped" doc:"exposures beyond what is remembered"`
}

// Exposure is a handle from the Call that exposed it to its end.
type Exposure struct {
	Handle      record.Hex32            `json:"handle" doc:"STag, R_key"`
	Transaction int64                   `json:"transaction" doc:"id of the transaction that exposed it"`
	XID         record.Hex32            `json:"xid" doc:"its XID"`
	Chunk       record.Chunk            `json:"chunk" doc:"the list that the handle stands in"`
	From        record.Time             `json:"from" doc:"the Call"`
	To          record.Time             `json:"to" doc:"the Reply, or the end of the connection"`
	EndedBy     string                  `json:"ended_by" doc:"who ended it" values:"responder,requester,nobody"`
	MovedBytes  int64                   `json:"moved_bytes" doc:"bytes that were seen to move"`
	MovedFrom   record.Opt[record.Time] `json:"moved_from" doc:"when data moved first, null when none did"`
	MovedTo     record.Opt[record.Time] `json:"moved_to" doc:"when data moved last, null when none did"`
}

// Exposures lists the handles that a transaction exposed, in the order of its
// chunk lists; end stands in for a Reply that there is not. A handle that several
// segments share is one exposure.
func Exposures(r *record.Transaction, end record.Time) []Exposure {
	if r.Call == nil {
		return nil
	}
	from, to := interval(r, end)
	invalidation, invalidated := r.Invalidation.Get()
	var all []Exposure
	index := map[record.Hex32]int{} // in all; a Call may expose 65,000
	for chunk, s := range r.Segments() {
		if i, again := index[s.Handle]; again {
			all[i].MovedBytes += s.MovedBytes
			continue
		}
		index[s.Handle] = len(all)
		e := Exposure{Handle: s.Handle, Transaction: r.ID, XID: r.XID, Chunk: chunk, From: from, To: to, MovedBytes: s.MovedBytes, EndedBy: ByRequester}
		switch {
		case !r.LatencyNS.Known():
			e.EndedBy = ByNobody
		case invalidated && invalidation.Handle == s.Handle:
			e.EndedBy = ByResponder
		}
		all = append(all, e)
	}
	for i := range r.Timeline { // when data moved
		e := &r.Timeline[i]
		handle, known := e.Handle.Get()
		if !known || e.Event == record.EventInvalidate {
			continue
		}
		if j, exposed := index[handle]; exposed {
			x := &all[j]
			x.MovedFrom = record.Some(min(x.MovedFrom.Or(e.Time), e.Time))
			x.MovedTo = record.Some(max(x.MovedTo.Or(e.Time), e.Time))
		}
	}
	return all
}

// HandleTimeline collects the transactions of a connection.
type HandleTimeline struct {
	bars                         []Exposure
	chunkReplies, invalidating   int
	leftOver, leftAll, exposures int
	dropped                      int
}

// Add takes one transaction.
func (h *HandleTimeline) Add(r *record.Transaction) {
	all := Exposures(r, 0)
	if len(all) == 0 {
		return
	}
	h.exposures += len(all)
	if r.LatencyNS.Known() {
		h.chunkReplies++
		if r.Invalidation.Known() {
			h.invalidating++
			h.leftOver += len(r.NotInvalidated)
		} else {
			h.leftAll += len(r.NotInvalidated)
		}
	}
	if len(h.bars)+len(all) > maxBars {
		h.dropped += len(all)
		return
	}
	h.bars = append(h.bars, all...)
}

// Finish works the figures out; end is when the connection was last seen.
func (h *HandleTimeline) Finish(connection int, end record.Time) *Handles {
	out := &Handles{
		Type: "handles", Connection: connection, Exposures: h.exposures, ChunkReplies: h.chunkReplies, InvalidatingReplies: h.invalidating,
		InvalidatingShare: share(h.invalidating, h.chunkReplies), LeftOver: h.leftOver, LeftAll: h.leftAll, Bars: h.bars, Dropped: h.dropped,
	}
	if out.Bars == nil {
		out.Bars = []Exposure{}
	}
	slices.SortStableFunc(out.Bars, func(a, b Exposure) int { return cmp.Compare(a.From, b.From) })
	last := map[record.Hex32]record.Time{}
	remote := 0
	var exposed, reuse []int64
	for i := range out.Bars {
		b := &out.Bars[i]
		if b.EndedBy == ByNobody {
			b.To = max(end, b.From)
			out.NeverInvalidated++
		}
		if b.EndedBy == ByResponder {
			remote++
		}
		exposed = append(exposed, b.To.Sub(b.From))
		if before, known := last[b.Handle]; known {
			out.Reused++
			reuse = append(reuse, b.From.Sub(before))
		}
		last[b.Handle] = b.To
	}
	out.Distinct = len(last)
	out.RemoteShare = share(remote, len(out.Bars))
	out.Exposed, out.ReuseAfter = quantiles(exposed), quantiles(reuse)
	return out
}
