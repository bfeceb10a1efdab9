package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
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
	Exposures           []record.Exposure   `json:"exposures" doc:"The exposures, in order."`
	Evicted             int                 `json:"evicted" doc:"Number of exposures that are not listed because there were too many."`
}

// HandleTimeline collects the transactions of a connection.
type HandleTimeline struct {
	exposures                   []record.Exposure
	count                       int // of exposures, including evicted ones
	chunkReplies, invalidating  int
	localExtra, localAfterNoInv int // handles for local invalidation, after a Reply with and without remote invalidation
	evicted                     int // exposures beyond the limit
}

// Add adds a transaction. It does not keep r.
func (h *HandleTimeline) Add(r *record.Transaction) {
	all := r.Exposures(0)
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
	if len(h.exposures)+len(all) > maxExposures {
		h.evicted += len(all)
		return
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
		out.Exposures = []record.Exposure{}
	}
	slices.SortStableFunc(out.Exposures, func(a, b record.Exposure) int { return cmp.Compare(a.From, b.From) })
	last := map[record.Hex32]record.Time{}
	remote := 0
	var exposed, reuse []int64
	for i := range out.Exposures {
		e := &out.Exposures[i]
		if e.EndedBy == record.ByNobody {
			e.To = max(end, e.From)
			out.NeverInvalidated++
		}
		if e.EndedBy == record.ByResponder {
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
