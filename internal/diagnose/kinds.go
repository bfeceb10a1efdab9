package diagnose

import "github.com/rdmadump/rdmadump/docs/problems"

// kind is a kind of problem.
type kind struct {
	id   string
	says string // what the headlines of the kind say, for lists
	find func(*diagnosis)
}

// kinds lists the kinds in the order of causes. They run in this order; each claims what it explains, and later kinds see only what is left.
// Those that observe look at everything, claim what is free, and name the problems that have the rest.
// To add one, see the package.
var kinds = []kind{
	{"capture-gap", "the capture lacks packets", captureGap},
	{"server-gone", "the server closed the connection, then refused all reconnects", serverGone},
	{"server-restarted", "the server restarted: it lost its connections and the state of its clients", serverRestarted},
	{"mount-failed", "a step of mounting was refused, and the client did not mount", mountFailed},
	{"client-restarted", "the client restarted without taking leave", clientRestarted},
	{"client-gave-up", "the client withdrew its memory and closed the connection", clientGaveUp},
	{"inline-overrun", "a message was longer than its receiver takes", inlineOverrun},
	{"memory-violation", "memory was accessed that was not exposed for it", memoryViolation},
	{"no-receive-buffer", "a receiver had posted no buffer", noReceiveBuffer},
	{"rdma-error", "an RDMA_ERROR answered Calls", rdmaErrors},
	{"terminate", "a Terminate, or a NAK that cannot be recovered from, ended a connection", terminates},
	{"outage", "no packet came from a host although answers were due", outage},
	{"retransmission-storm", "the same packets were sent over and over", retransmissionStorm},
	{"corruption", "packets were damaged or changed on their way", corruption},
	{"connection-lost", "a connection ended with Calls in flight", connectionLost},
	{"grace-period", "the server waits for clients to reclaim their state, and puts others off", gracePeriod},
	{"put-off", "the server asked to try again, at once or later", putOffOtherwise},
	{"retransmission", "RPCs waited until packets were sent again", retransmission},
	{"credits", "Calls waited for a credit", credits},
	{"congestion", "switches marked packets, or hosts were told so", congestion},
	{"executed-twice", "a request that is not idempotent was probably executed twice", executedTwice},
	{"unanswered", "RPCs were never answered", unanswered},
	{"rpc-failed", "the server answered with an error", rpcFailed},
	{"protocol-violation", "a message broke a rule", protocolViolation},
	{"slow-server", "the server takes long for everything", slowServer},
	{"slow-rpc", "RPCs took long, for no reason that an earlier kind has", slowRPC},
	{"slow-client", "the client acknowledges late", slowClient},
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
