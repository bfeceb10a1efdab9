// Package rule is the table of what can be wrong with RDMA storage traffic: ids,
// severities, sections. The checks stand beside what they check; they name a row
// of this table.
//
// To add a rule, add its row here, and report it where it shows.
package rule

import "github.com/rdmadump/rdmadump/dissect/record"

// Rule is one thing that can be wrong.
type Rule struct {
	ID       string // stable: tools and people match on it
	Severity record.Severity
	Section  string // of the document that says so
}

// All is the whole table, in its order.
var All []*Rule

func define(id string, severity record.Severity, section string) *Rule {
	r := &Rule{id, severity, section}
	All = append(All, r)
	return r
}

// The rules.
var (
	PrivateDataUnusable      = define("private-data-unusable", record.Note, "RFC 8797 s.5.2")
	InlineThresholdExceeded  = define("inline-threshold-exceeded", record.Error, "RFC 8166 s.3.3.2")
	InvalidationNegotiated   = define("invalidation-not-negotiated", record.Error, "RFC 8797 s.4.1")
	InvalidationUnannounced  = &Rule{"invalidation-not-negotiated", record.Warning, "RFC 8797 s.4.1"}
	InvalidatedForeignHandle = define("invalidated-foreign-handle", record.Error, "RFC 8797 s.4.1")

	CreditLimitExceeded  = define("credit-limit-exceeded", record.Error, "RFC 8166 s.3.3.1")
	CreditsGrantedZero   = define("credits-granted-zero", record.Error, "RFC 8166 s.3.3.1")
	CreditsRequestedZero = define("credits-requested-zero", record.Warning, "RFC 8166 s.3.3.1")

	HeaderTruncated    = define("header-truncated", record.Error, "RFC 8166 s.4.5.2")
	HeaderMalformed    = define("header-malformed", record.Error, "RFC 8166 s.4.5.2")
	RDMAVersion        = define("rdma-version", record.Error, "RFC 8166 s.4.2.2")
	RDMAProcUnknown    = define("rdma-proc-unknown", record.Error, "RFC 8166 s.4.2.4")
	RDMAMsgP           = define("rdma-msgp", record.Error, "RFC 8166 s.4.6.1")
	RDMADone           = define("rdma-done", record.Error, "RFC 8166 s.4.6.2")
	XIDMismatch        = define("xid-mismatch", record.Error, "RFC 8166 s.4.2.1")
	RPCHeaderMalformed = define("rpc-header-malformed", record.Error, "RFC 5531 s.9")
	NoMsgWithoutChunk  = define("nomsg-without-chunk", record.Error, "RFC 8166 s.4.2.4")

	OutsideExposedMemory = define("rdma-outside-exposed-memory", record.Error, "RFC 8166 s.3.4.3")
	PositionUnaligned    = define("read-position-unaligned", record.Error, "RFC 8166 s.3.4.5")
	ReplyWithReadList    = define("reply-with-read-list", record.Error, "RFC 8166 s.4.3.1")
	WriteListNotCopied   = define("write-list-not-copied", record.Error, "RFC 8166 s.4.3.2")
	ReplyChunkNotCopied  = define("reply-chunk-not-copied", record.Error, "RFC 8166 s.4.3.3")
	ReturnedTooLong      = define("returned-length-exceeds-chunk", record.Error, "RFC 8166 s.3.4.6")
	ReturnedNotSeen      = define("returned-bytes-not-seen", record.Warning, "RFC 8166 s.3.4.6")

	RDMAError        = define("rdma-error", record.Error, "RFC 8166 s.4.5")
	ReplyWithoutCall = define("reply-without-call", record.Note, "RFC 5531 s.9")
	XIDInUse         = define("xid-in-use", record.Warning, "RFC 5531 s.9")

	BackwardWithChunks = define("backward-with-chunks", record.Error, "RFC 8167 s.5.3")

	RemoteErrorNak        = define("remote-error-nak", record.Error, "IBTA vol. 1 s.9.7.5")
	ReplyRefused          = define("reply-refused", record.Error, "IBTA vol. 1 s.9.9.3")
	ConnectionRejected    = define("connection-rejected", record.Warning, "IBTA vol. 1 s.12.6.7")
	ConnectionRejectedMPA = &Rule{"connection-rejected", record.Warning, "RFC 5044 s.7.1"}
	Terminate             = define("terminate", record.Error, "RFC 5040 s.4.8")
	TerminateBitsReversed = define("terminate-bits-reversed", record.Error, "RFC 5040 s.4.8")
	MPACRCBad             = define("mpa-crc-bad", record.Error, "RFC 5044 s.4.4")
	MPAFraming            = define("mpa-framing", record.Error, "RFC 5044 s.4.1")
	ICRCBad               = define("icrc-bad", record.Warning, "IBTA vol. 1 s.7.8.1")
	CaptureLostPackets    = define("capture-lost-packets", record.Note, "IBTA vol. 1 s.9.7")
	LimitReached          = define("limit-reached", record.Note, "rdmadump")
)
