package diagnose

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/docs/problems"
)

// kind is a kind of problem.
type kind struct {
	id    string
	says  string // what the headlines of the kind say, for lists
	needs order
	find  func(*diagnosis)
}

// order tells the kinds that need packets in the order of their times from the others.
type order bool

// The values of order.
const (
	anyOrder order = false
	ordered  order = true
)

// kinds lists the kinds in the order of causes. They run in this order; each claims what it explains, and later kinds see only what is left.
// Those that observe look at everything, claim what is free, and name the problems that have the rest.
// To add one, see the package.
var kinds = []kind{
	{"capture-gap", "the capture lacks packets", anyOrder, captureGap},
	{"server-gone", "the server closed the connection, then refused all reconnects", ordered, serverGone},
	{"server-restarted", "the server restarted: it lost its connections and the state of its clients", ordered, serverRestarted},
	{"mount-failed", "a step of mounting was refused, and the client did not mount", anyOrder, mountFailed},
	{"client-restarted", "the client restarted without taking leave", ordered, clientRestarted},
	{"client-gave-up", "the client withdrew its memory and closed the connection", ordered, clientGaveUp},
	{"inline-overrun", "a message was longer than its receiver takes", anyOrder, inlineOverrun},
	{"memory-violation", "memory was accessed that was not exposed for it", anyOrder, memoryViolation},
	{"no-receive-buffer", "a receiver had posted no buffer", anyOrder, noReceiveBuffer},
	{"rdma-error", "an RDMA_ERROR answered Calls", anyOrder, rdmaErrors},
	{"terminate", "a Terminate, or a NAK that cannot be recovered from, ended a connection", anyOrder, terminates},
	{"outage", "no packet came from a host although answers were due", ordered, outage},
	{"retransmission-storm", "the same packets were sent over and over", ordered, retransmissionStorm},
	{"corruption", "packets were damaged or changed on their way", anyOrder, corruption},
	{"connection-lost", "a connection ended with Calls in flight", ordered, connectionLost},
	{"recall", "tasks waited until a client returned a delegation", ordered, recall},
	{"grace-period", "the server waits for clients to reclaim their state, and puts others off", ordered, gracePeriod},
	{"put-off", "the server asked to try again, at once or later", ordered, putOffOtherwise},
	{"promise-broken", "the server did not complete what it promised, or reports broken callbacks or revoked state", ordered, promiseBroken},
	{"retransmission", "RPCs waited until packets were sent again", ordered, retransmission},
	{"credits", "Calls waited for a credit", ordered, credits},
	{"congestion", "switches marked packets, or hosts were told so", anyOrder, congestion},
	{"path-slower", "round trips became several times as long for a while", ordered, pathSlower},
	{"executed-twice", "a request that is not idempotent was probably executed twice", ordered, executedTwice},
	{"unanswered", "RPCs were never answered", ordered, unanswered},
	{"rpc-failed", "the server answered with an error", anyOrder, rpcFailed},
	{"protocol-violation", "a message broke a rule", anyOrder, protocolViolation},
	{"slow-server", "the server takes long for everything", ordered, slowServer},
	{"slow-rpc", "RPCs took long, for no reason that an earlier kind has", ordered, slowRPC},
	{"slow-client", "the client acknowledges late", ordered, slowClient},
	{record.Quirk, "something is unusual and harms nobody", anyOrder, quirks},
}

// IDs returns the ids of all kinds, in the order of causes.
func IDs() (ids []string) {
	for _, k := range kinds {
		ids = append(ids, k.id)
	}
	return ids
}

// Says returns what the headlines of a kind say, in general. It returns nothing for an unknown id.
func Says(id string) string {
	for _, k := range kinds {
		if k.id == id {
			return k.says
		}
	}
	return ""
}

// Page returns the page of a kind, as Markdown: what it means, what proves it, usual causes, and what to look at. It returns nothing for an
// unknown id.
func Page(id string) string {
	page, err := problems.Pages.ReadFile(id + ".md")
	if err != nil {
		return ""
	}
	return string(page)
}
