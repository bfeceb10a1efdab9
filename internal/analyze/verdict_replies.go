package analyze

import (
	"fmt"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// RPCs and their Replies: those without one, and those that the capture does not have completely.

// lostReplies is for Replies that did not reach the client: the server had executed the Calls that the client retransmitted, and
// retransmissions were not acknowledged. That does not prove that the server had sent the Replies. A connection that a NAK ended
// lacks Replies for that reason.
func lostReplies(j *facts) said {
	if j.repeats == 0 || j.nakEnds > 0 || j.o.Time.Unanswered.Stalled == 0 {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InNetwork, InServer},
		fmt.Sprintf("Replies did not reach the client, which retransmitted %s that the server had executed: the server or the network", plural(j.repeats, "Call")),
		[]Evidence{{plural(j.repeats, "RPC") + " that the server had executed before", "FILE -Y 'status == NFS4ERR_RETRY_UNCACHED_REP'"}},
	}
}

// neverAnswered counts the RPCs that were never answered.
func neverAnswered(j *facts) said {
	n := j.counts.Unanswered
	if n == 0 {
		return said{}
	}
	text := plural(n, "RPC") + " never answered"
	switch sent := j.outcomes.sent; {
	case sent == n:
		text = plural(n, "RPC") + " whose Reply was sent, and is not known to be accepted"
	case sent > 0:
		text = fmt.Sprintf("%s without a Reply that is known to be accepted (that of %d was sent)", plural(n, "RPC"), sent)
	}
	return said{
		Unproven,
		[]Place{InNetwork, InClient, InServer},
		text + j.which(func(t *tally) int64 { return t.unanswered }),
		[]Evidence{{text, "FILE -Y 'status == no_reply'"}},
	}
}

// answeredAgain counts the RPCs without a Reply whose later copies were answered.
func answeredAgain(j *facts) said {
	const words = " got one when retransmitted on a later connection"
	return countOf(j.outcomes.repaired, "RPC without a Reply"+words, "RPCs without a Reply"+words, "FILE -Y 'status == no_reply'")
}

// ranges counts the latencies that are upper bounds.
func ranges(j *facts) said {
	return countOf(j.ranges, "latency is an upper bound", "latencies are upper bounds", "FILE -Y 'latency_min_ns != null'")
}

// outstanding counts the RPCs that had no Reply when the capture ended, which it did before their connections.
func outstanding(j *facts) said {
	n := j.outcomes.outstanding
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	text := plural(n, "RPC") + " without a Reply up to the end of the capture"
	if ns := j.end.Sub(j.outcomes.since); j.end != 0 && ns >= int64(time.Second) {
		text += fmt.Sprintf(" (%s after the first)", field.Duration(ns))
	}
	return said{Unproven, nil, text, []Evidence{{text, "FILE -Y 'status == no_reply'"}}}
}

// replyUnknown counts the RPCs whose Replies the capture may lack.
func replyUnknown(j *facts) said {
	if j.oneWay != "" {
		return said{}
	}
	return countOf(j.outcomes.unknown, "RPC whose Reply may not have been captured", "RPCs whose Replies may not have been captured", "FILE -Y 'status == no_reply'")
}

// replyTruncated counts the Replies that do not show whether the RPC succeeded.
func replyTruncated(j *facts) said {
	const words = " captured too short to say whether the RPC succeeded"
	return countOf(j.o.RPCs.Answered, "Reply"+words, "Replies"+words, "FILE -Y 'status == answered'")
}

// noCall counts the Replies whose Calls are not in the capture.
func noCall(j *facts) said {
	if j.oneWay != "" {
		return said{}
	}
	return countOf(j.o.RPCs.NoCall, "Reply without a Call in the capture", "Replies without a Call in the capture", "FILE -Y 'status == no_call'")
}
