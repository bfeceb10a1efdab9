package transaction

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// endText returns the sentence that says how a connection ended.
func endText(cs *connState, e *rdma.Ending) string {
	how := strings.ReplaceAll(string(e.How), "_", " ")
	by, known := e.By.Get()
	if !known {
		switch e.How {
		case record.EndSilence:
			return fmt.Sprintf("%s until the end of the capture", record.Plural(e.Repeats, "unacknowledged retransmission"))
		case record.EndReused:
			return "the queue pair was used for a new connection"
		}
		return "the connection ended (" + how + ")"
	}
	reason := ""
	if e.Reason != "" {
		reason = " (" + e.Reason + ")"
	}
	side := string(cs.link.Setup().End(by))
	switch e.How {
	case record.EndDisconnect:
		return side + " disconnected"
	case record.EndReset:
		return side + " reset the connection"
	case record.EndNak:
		return side + " closed the connection with a NAK" + reason
	case record.EndTerminate:
		return side + " closed the connection with a Terminate" + reason
	case record.EndRejected:
		return side + " rejected the connection" + reason
	case record.EndRetries:
		return fmt.Sprintf("%s closed the connection after %s", side, record.Plural(e.Repeats, "unacknowledged retransmission"))
	}
	return side + " ended the connection (" + how + ")" + reason
}

// outstandingText returns a number of outstanding Calls, and the XID of the first one.
func outstandingText(n int, first uint32) string {
	more := ""
	if n > 1 {
		more = ", ..."
	}
	return fmt.Sprintf("%s in flight (0x%08x%s)", record.Plural(n, "Call"), first, more)
}
