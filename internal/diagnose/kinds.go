package diagnose

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/docs/problems"
)

// kind is a kind of problem.
type kind struct {
	id    string
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
	{"capture-gap", anyOrder, captureGap},                  // the capture lacks packets
	{"server-gone", ordered, serverGone},                   // the server closed the connection, then refused all reconnects
	{"server-restarted", ordered, serverRestarted},         // the server restarted: it lost its connections and the state of its clients
	{"mount-failed", anyOrder, mountFailed},                // a step of mounting was refused, and the client did not mount
	{"client-restarted", ordered, clientRestarted},         // the client restarted without taking leave
	{"client-gave-up", ordered, clientGaveUp},              // the client withdrew its memory and closed the connection
	{"inline-overrun", anyOrder, inlineOverrun},            // a message was longer than its receiver takes
	{"memory-violation", anyOrder, memoryViolation},        // memory was accessed that was not exposed for it
	{"no-receive-buffer", anyOrder, noReceiveBuffer},       // a receiver had posted no buffer
	{"rdma-error", anyOrder, rdmaErrors},                   // an RDMA_ERROR answered Calls
	{"terminate", anyOrder, terminates},                    // a Terminate, or a NAK that cannot be recovered from, ended a connection
	{"outage", ordered, outage},                            // no packet came from a host although answers were due
	{"retransmission-storm", ordered, retransmissionStorm}, // the same packets were sent over and over
	{"corruption", anyOrder, corruption},                   // packets were damaged or changed on their way
	{"connection-lost", ordered, connectionLost},           // a connection ended with Calls in flight
	{"recall", ordered, recall},                            // tasks waited until a client returned a delegation
	{"grace-period", ordered, gracePeriod},                 // the server waits for clients to reclaim their state, and puts others off
	{"put-off", ordered, putOffOtherwise},                  // the server asked to try again, at once or later
	{"promise-broken", ordered, promiseBroken},             // the server did not complete what it promised, or reports broken callbacks or revoked state
	{"retransmission", ordered, retransmission},            // RPCs waited until packets were sent again
	{"credits", ordered, credits},                          // Calls waited for a credit
	{"congestion", anyOrder, congestion},                   // switches marked packets, or hosts were told so
	{"path-slower", ordered, pathSlower},                   // round trips became several times as long for a while
	{"executed-twice", ordered, executedTwice},             // a request that is not idempotent was probably executed twice
	{"unanswered", ordered, unanswered},                    // RPCs were never answered
	{"rpc-failed", anyOrder, rpcFailed},                    // the server answered with an error
	{"protocol-violation", anyOrder, protocolViolation},    // a message broke a rule
	{"slow-server", ordered, slowServer},                   // the server takes long for everything
	{"slow-rpc", ordered, slowRPC},                         // RPCs took long, for no reason that an earlier kind has
	{"slow-client", ordered, slowClient},                   // the client acknowledges late
	{record.Quirk, anyOrder, quirks},                       // something is unusual and harms nobody
}

// IDs returns the ids of all kinds, in the order of causes.
func IDs() (ids []string) {
	for _, k := range kinds {
		ids = append(ids, k.id)
	}
	return ids
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
