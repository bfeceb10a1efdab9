package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Connections that were rejected, not answered, or ended.

// rejectedEvidence shows the connections that servers rejected.
func rejectedEvidence(n int) []Evidence {
	return []Evidence{{plural(int64(n), "connection") + " rejected by the server", "connections FILE -Y 'ended.how == rejected'"}}
}

// rejected is for connections that the server rejected for good.
func rejected(j *facts) said {
	list := j.repairs.rejected
	if len(list) == 0 {
		return said{}
	}
	first := list[0]
	text := plural(int64(len(list)), "connection") + " rejected: " + first.reason
	if slices.ContainsFunc(list, func(h handshake) bool { return h.reason != first.reason }) {
		text += " and others"
	}
	text += "; none accepted afterwards"
	clients := map[string]bool{}
	for _, h := range list {
		clients[h.client] = true
	}
	if j.severalClients() && len(clients) == 1 && first.client != "" {
		text += " (client " + first.client + ")"
	}
	where := InServer
	if first.reason == "invalid service ID" && !slices.ContainsFunc(j.accepted, func(a handshake) bool { return a.server == first.server && a.port == first.port }) {
		where = InConfiguration // Nothing serves this port, and the capture does not show that anything ever did.
	}
	return said{where, nil, text, rejectedEvidence(len(list))}
}

// rejectedStale is for connections that the server rejected because earlier messages were lost. It does not say who lost
// them.
func rejectedStale(j *facts) said {
	n := len(j.repairs.stale)
	if n == 0 {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InNetwork, InClient, InServer},
		fmt.Sprintf("%s rejected: %s, which follows from the loss of earlier messages; none accepted afterwards", plural(int64(n), "connection"), j.repairs.stale[0].reason), rejectedEvidence(n),
	}
}

// rejectedThenAccepted counts the rejections that were made good.
func rejectedThenAccepted(j *facts) said {
	if j.repairs.repaired == 0 || len(j.restarts) > 0 {
		return said{}
	}
	return said{Unproven, nil, j.acceptedLater(), rejectedEvidence(int(j.repairs.repaired))}
}

// acceptedLater says how long after each rejection the server accepted another connection of the same client.
func (j *facts) acceptedLater() string {
	r := &j.repairs
	after := field.Duration(r.most)
	if field.Duration(r.least) != after {
		after = field.Duration(r.least) + " to " + after
	}
	text := fmt.Sprintf("%s rejected, another one accepted %s after each rejection", plural(r.repaired, "connection"), after)
	if r.repaired == 1 {
		text = "1 connection rejected, another one accepted " + after + " after the rejection"
	}
	if r.port != 0 {
		text += fmt.Sprintf(" on port %d", r.port)
	}
	return text
}

// unansweredRequest is for requests to open a connection that got no answer.
func unansweredRequest(j *facts) said {
	n := j.o.Health.UnansweredRequests
	if n == 0 || j.oneWay != "" {
		return said{}
	}
	return said{
		Unproven,
		[]Place{InServer, InNetwork},
		plural(n, "connection request") + " without an answer in the capture; the server or the network",
		[]Evidence{{plural(n, "connection request") + " without an answer", "connections FILE -Y 'established == null and ended == null'"}},
	}
}

// endings are the causes of the ends of connections.
var endings = map[record.Ending]string{
	record.EndDisconnect: "disconnect", record.EndReset: "reset", record.EndNak: "NAK", record.EndTerminate: "Terminate",
	record.EndRetries: "retransmissions never acknowledged", record.EndSilence: "retransmissions never acknowledged", record.EndReused: "queue pair used again",
}

// endedConnections counts the connections that ended with outstanding Calls, or not in an orderly way.
func endedConnections(j *facts) said {
	var parts []string
	calls, notAccepted, n := int64(0), int64(0), int64(0)
	for _, e := range j.o.Ended {
		if e.How == record.EndRejected {
			continue
		}
		if n += e.Count; e.OutstandingCalls == 0 { // TCP connections of RPC without RDMA often end with a reset.
			n -= e.plain
		}
		if e.OutstandingCalls == 0 && e.plain == e.Count {
			continue
		}
		calls += e.OutstandingCalls
		notAccepted += e.NotAccepted
		if text := endings[e.How]; !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	if n == 0 {
		return said{}
	}
	text := fmt.Sprintf("%s ended (%s)", plural(n, "connection"), strings.Join(parts, ", "))
	if calls > 0 {
		text += " with " + record.CallsAtEnd(calls, notAccepted)
	}
	return said{Unproven, []Place{InNetwork, InClient, InServer}, text, []Evidence{{plural(n, "connection") + " ended", "connections FILE -Y 'ended != null'"}}}
}
