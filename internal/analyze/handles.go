package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// These values name the side that ended the exposure of a handle.
const (
	ByResponder = "responder" // by remote invalidation: Send With Invalidate
	ByRequester = "requester" // by local invalidation, after the Reply
	ByNobody    = "nobody"    // the capture contains no Reply
)

// Handles describes the handles that a connection exposed: for how long, and which side
// invalidated them.
type Handles struct {
	Type                string              `json:"type" doc:"The record's type, always \"handles\"." values:"handles"`
	Connection          int                 `json:"connection" doc:"Connection number, as in the table of connections."`
	ExposureCount       int                 `json:"exposure_count" doc:"Number of times that a handle was exposed."`
	Distinct            int                 `json:"distinct" doc:"Number of different handles."`
	Exposure            Quantiles           `json:"exposure" doc:"Distribution of the time that handles were exposed."`
	RemoteShare         record.Opt[float64] `json:"remote_share" doc:"Share of the exposures that the responder ended by remote invalidation, from 0 to 1."`
	ChunkReplies        int                 `json:"chunk_replies" doc:"Number of Replies to Calls with chunks."`
	InvalidatingReplies int                 `json:"invalidating_replies" doc:"Number of Replies that answered a Call with chunks and invalidated a handle."`
	InvalidatingShare   record.Opt[float64] `json:"invalidating_share" doc:"Value of invalidating_replies divided by chunk_replies, from 0 to 1."`
	LocalInvExtra       int                 `json:"local_inv_extra" doc:"Number of handles that the requester had to invalidate because their Reply could invalidate only one."`
	LocalInvNoRemote    int                 `json:"local_inv_no_remote" doc:"Number of handles that the requester had to invalidate because their Reply invalidated none."`
	Reused              int                 `json:"reused" doc:"Number of exposures of a handle that had been exposed before."`
	ReuseInterval       Quantiles           `json:"reuse_interval" doc:"Distribution of the time between the end of an exposure and the next exposure of the same handle."`
	NeverInvalidated    int                 `json:"never_invalidated" doc:"Number of exposures whose Call got no Reply, so that the capture does not show an invalidation."`
	Exposures           []Exposure          `json:"exposures" doc:"The exposures, in order."`
	Evicted             int                 `json:"evicted" doc:"Number of exposures that are not listed because there were too many."`
}

// Exposure is one exposure of a handle, from the Call that exposed it to the Reply.
type Exposure struct {
	Handle      record.Hex32            `json:"handle" doc:"Handle (STag or R_key) that was exposed."`
	Transaction int64                   `json:"transaction" doc:"Transaction number (id): the transaction that exposed the handle."`
	XID         record.Hex32            `json:"xid" doc:"XID of the transaction that exposed the handle."`
	Chunk       record.Chunk            `json:"chunk" doc:"Chunk list that contains the handle."`
	From        record.Time             `json:"from" doc:"Time of the Call that exposed the handle."`
	To          record.Time             `json:"to" doc:"Time of the Reply, or of the connection's end."`
	EndedBy     string                  `json:"ended_by" doc:"The side that ended the exposure: responder (remote invalidation by the Reply), requester (local invalidation after the Reply), or nobody (there was no Reply)." values:"responder,requester,nobody"`
	MovedBytes  int64                   `json:"moved_bytes" doc:"Number of bytes that the capture shows being transferred."`
	MovedFrom   record.Opt[record.Time] `json:"moved_from" doc:"Time of the first data transfer; null if there was none."`
	MovedTo     record.Opt[record.Time] `json:"moved_to" doc:"Time of the last data transfer; null if there was none."`
}

// Exposures returns the exposures of a transaction, in the order of its chunk lists. Segments
// with the same handle are one exposure. Without a Reply, the exposures end at end, which is [record.Connection.EndOfCalls].
func Exposures(r *record.Transaction, end record.Time) []Exposure {
	if r.Call == nil {
		return nil
	}
	from, to := interval(r, end)
	invalidation, invalidated := r.Invalidation.Get()
	var all []Exposure
	index := map[record.Hex32]int{} // index in all by handle; a Call may expose 65,000 handles
	for chunk, s := range r.Segments() {
		if i, shared := index[s.Handle]; shared {
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
	for i := range r.Timeline { // for the times of data transfers
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
	// Shared is the number of exposures that this and other timelines may still keep. If it is
	// nil, the only limit is that of a timeline.
	Shared *int

	exposures                   []Exposure
	count                       int // of exposures, including evicted ones
	chunkReplies, invalidating  int
	localExtra, localAfterNoInv int // handles for local invalidation, after a Reply with and without remote invalidation
	evicted                     int // exposures beyond the limit
}

// Add adds a transaction. It does not keep r.
func (h *HandleTimeline) Add(r *record.Transaction) {
	all := Exposures(r, 0)
	if len(all) == 0 {
		return
	}
	h.count += len(all)
	if r.LatencyNS.Known() {
		h.chunkReplies++
		if r.Invalidation.Known() {
			h.invalidating++
			h.localExtra += len(r.NotInvalidated)
		} else {
			h.localAfterNoInv += len(r.NotInvalidated)
		}
	}
	if len(h.exposures)+len(all) > maxExposures || h.Shared != nil && len(all) > *h.Shared {
		h.evicted += len(all)
		return
	}
	if h.Shared != nil {
		*h.Shared -= len(all)
	}
	h.exposures = append(h.exposures, all...)
}

// Finish returns the figures of a connection that was last seen at end.
func (h *HandleTimeline) Finish(connection int, end record.Time) *Handles {
	out := &Handles{
		Type: "handles", Connection: connection, ExposureCount: h.count, ChunkReplies: h.chunkReplies, InvalidatingReplies: h.invalidating,
		InvalidatingShare: share(h.invalidating, h.chunkReplies), LocalInvExtra: h.localExtra, LocalInvNoRemote: h.localAfterNoInv, Exposures: h.exposures, Evicted: h.evicted,
	}
	if out.Exposures == nil {
		out.Exposures = []Exposure{}
	}
	slices.SortStableFunc(out.Exposures, func(a, b Exposure) int { return cmp.Compare(a.From, b.From) })
	last := map[record.Hex32]record.Time{}
	remote := 0
	var exposed, reuse []int64
	for i := range out.Exposures {
		e := &out.Exposures[i]
		if e.EndedBy == ByNobody {
			e.To = max(end, e.From)
			out.NeverInvalidated++
		}
		if e.EndedBy == ByResponder {
			remote++
		}
		exposed = append(exposed, e.To.Sub(e.From))
		if before, known := last[e.Handle]; known {
			out.Reused++
			reuse = append(reuse, e.From.Sub(before))
		}
		last[e.Handle] = e.To
	}
	out.Distinct = len(last)
	out.RemoteShare = share(remote, len(out.Exposures))
	out.Exposure, out.ReuseInterval = quantiles(exposed), quantiles(reuse)
	return out
}
