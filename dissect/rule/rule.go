// Package rule is the table of the rules that RDMA storage traffic can violate: their
// ids, severities and sources. The code that checks a rule is in the package that has
// the data for it, and reports a finding with a rule of this table.
//
// To add a rule: add its row here, write its page in docs/rules, report it in the code
// that checks it, and add a row to the table of test cases (package synth/cases).
package rule

import "github.com/rdmadump/rdmadump/dissect/record"

// Rule is one requirement that traffic can violate. Its page in docs/rules explains it.
type Rule struct {
	ID       string // in kebab case; if it changes, Renamed needs the old one, because tools match on it
	Severity record.Severity
	Section  string  // section of the document with the requirement, such as "RFC 8166 s.3.3.1"
	TCP      string  // section that applies to connections over TCP; empty if Section does
	variants []*Rule // the same rule in cases with another severity or section
}

// All lists all rules in the order of the table.
var All []*Rule

// define adds a row to the table.
func define(id string, severity record.Severity, section string) *Rule {
	r := &Rule{ID: id, Severity: severity, Section: section}
	All = append(All, r)
	return r
}

// overTCP sets the section that applies to connections over TCP, and returns r.
func (r *Rule) overTCP(section string) *Rule {
	r.TCP = section
	return r
}

// as returns a copy of r for cases in which its severity or section differs.
func (r *Rule) as(severity record.Severity, section string) *Rule {
	v := *r
	v.Severity, v.Section, v.variants = severity, section, nil
	r.variants = append(r.variants, &v)
	return &v
}

// Find returns the rule with this id, or nil if there is none.
func Find(id string) *Rule {
	for _, r := range All {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// Renamed maps the old id of each renamed rule to its new id. Commands use it to give
// the new id in an error message.
var Renamed = map[string]string{
	"garbage-args":               "rpc-rejected",
	"inv-handle-disobeyed":       "inv-handle-not-honored",
	"inv-handle-foreign":         "inv-handle-unknown",
	"invalidated-foreign-handle": "invalidated-unexposed-handle",
	"limit-reached":              "memory-limit-reached",
	"reply-refused":              "reply-not-delivered",
}

// These rules are in the order in which commands list them: connection setup, credits,
// headers, chunks, answers, the backward direction, the remote invalidation draft and
// the RDMA transport.
var (
	PrivateDataUnusable        = define("private-data-unusable", record.Note, "RFC 8797 s.5.2")
	PrivateDataReserved        = define("private-data-reserved-bits", record.Warning, "RFC 8797 s.4")
	InlineThresholdExceeded    = define("inline-threshold-exceeded", record.Error, "RFC 8166 s.3.3.2")
	InvalidationNegotiated     = define("invalidation-not-negotiated", record.Error, "RFC 8797 s.4.1")
	InvalidatedUnexposedHandle = define("invalidated-unexposed-handle", record.Error, "RFC 8797 s.4.1")
	InvalidationOnCall         = define("invalidation-on-call", record.Error, "RFC 8797 s.4.1")
	InvalidatedHandleUsed      = define("invalidated-handle-used", record.Error, "draft-cel-nfsv4-reminv-design s.2.2")

	CreditLimitExceeded  = define("credit-limit-exceeded", record.Error, "RFC 8166 s.3.3.1")
	CreditsGrantedZero   = define("credits-granted-zero", record.Error, "RFC 8166 s.3.3.1")
	CreditsRequestedZero = define("credits-requested-zero", record.Warning, "RFC 8166 s.3.3.1")
	ReceiveNotPosted     = define("receive-not-posted", record.Error, "RFC 8166 s.3.3.1")
	ReceiveTooSmall      = define("receive-too-small", record.Error, "RFC 8166 s.3.3.3")

	HeaderTruncated    = define("header-truncated", record.Error, "RFC 8166 s.4.5.2")
	HeaderMalformed    = define("header-malformed", record.Error, "RFC 8166 s.4.5.2")
	RDMAVersion        = define("rdma-version", record.Error, "RFC 8166 s.4.2.2")
	RDMAProcUnknown    = define("rdma-proc-unknown", record.Error, "RFC 8166 s.4.2.4")
	RDMAMsgP           = define("rdma-msgp", record.Error, "RFC 8166 s.4.6.1")
	RDMADone           = define("rdma-done", record.Error, "RFC 8166 s.4.6.2")
	XIDMismatch        = define("xid-mismatch", record.Error, "RFC 8166 s.4.2.1")
	RPCHeaderMalformed = define("rpc-header-malformed", record.Error, "RFC 5531 s.9")
	NoMsgWithoutChunk  = define("nomsg-without-chunk", record.Error, "RFC 8166 s.4.2.4")
	NoMsgWithPayload   = define("nomsg-with-payload", record.Error, "RFC 8166 s.4.2.4")
	LongCallPosition   = define("long-call-position", record.Error, "RFC 8166 s.3.5.3")

	OutsideExposedMemory = define("rdma-outside-exposed-memory", record.Error, "RFC 8166 s.3.4.3")
	WrongDirection       = define("rdma-wrong-direction", record.Error, "RFC 8166 s.3.4.5")
	PositionUnaligned    = define("read-position-unaligned", record.Error, "RFC 8166 s.3.4.5")
	PositionInvalid      = define("read-position-invalid", record.Error, "RFC 8166 s.3.4.5")
	ChunkLengthMismatch  = define("chunk-length-mismatch", record.Error, "RFC 8166 s.3.4.4")
	ReducedPadLeft       = define("reduced-pad-left", record.Error, "RFC 8166 s.3.4.5")
	PadWritten           = define("pad-written", record.Error, "RFC 8166 s.3.4.6")
	ReplyBeforeReads     = define("reply-before-reads-done", record.Error, "RFC 8166 s.3.4.5")
	ReplyWithReadList    = define("reply-with-read-list", record.Error, "RFC 8166 s.4.3.1")
	WriteListNotCopied   = define("write-list-not-copied", record.Error, "RFC 8166 s.4.3.2")
	ReplyChunkNotCopied  = define("reply-chunk-not-copied", record.Error, "RFC 8166 s.4.3.3")
	ReturnedTooLong      = define("returned-length-exceeds-chunk", record.Error, "RFC 8166 s.3.4.6")
	ReturnedNotSeen      = define("returned-bytes-not-seen", record.Warning, "RFC 8166 s.3.4.6")
	FilledOutOfOrder     = define("segments-filled-out-of-order", record.Error, "RFC 8166 s.3.4.6")
	WriteChunkUnused     = define("write-chunk-unused", record.Error, "RFC 8166 s.4.3.2")
	WriteChunkTooShort   = define("write-chunk-too-short", record.Warning, "RFC 8166 s.3.4.6")
	WriteChunkRoomForPad = define("write-chunk-room-for-pad", record.Note, "RFC 8166 s.3.4.6")
	ReplyChunkMissing    = define("reply-chunk-missing", record.Warning, "RFC 8166 s.4.3.3")
	ReducedIneligible    = define("reduced-ineligible-item", record.Error, "RFC 8166 s.3.4.2")
	ReducedUnderGSS      = define("reduced-under-gss", record.Error, "RFC 8166 s.8.2.2")

	RDMAError         = define("rdma-error", record.Error, "RFC 8166 s.4.5")
	ErrorNotAnswered  = define("error-not-answered", record.Error, "RFC 8166 s.4.5")
	ErrorWrongCode    = define("error-wrong-code", record.Error, "RFC 8166 s.4.5.1")
	ErrorWrongVersion = define("error-wrong-version", record.Error, "RFC 8166 s.4.5")
	ErrorUnknownXID   = define("error-unknown-xid", record.Warning, "RFC 8166 s.4.5")
	ErrorAnswered     = define("error-answered", record.Error, "RFC 8166 s.4.5")
	CallNotAnswered   = define("call-not-answered", record.Warning, "RFC 8166 s.4.5.4")
	RPCRejected       = define("rpc-rejected", record.Warning, "RFC 8166 s.4.5.2")
	ReplyWithoutCall  = define("reply-without-call", record.Note, "RFC 5531 s.9")
	XIDInUse          = define("xid-in-use", record.Warning, "RFC 5531 s.9")

	BackwardWithChunks = define("backward-with-chunks", record.Warning, "draft-cel-nfsv4-rpcrdma-bidirection s.2.4")
	BackwardNotMsg     = define("backward-not-msg", record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.4")
	BackwardUnexpected = define("backward-unexpected", record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.2.3")

	InvHandleUnknown    = define("inv-handle-unknown", record.Error, "draft-cel-nfsv4-reminv-design s.5.3")
	InvHandleNotCopied  = define("inv-handle-not-copied", record.Error, "draft-cel-nfsv4-reminv-design s.5.3")
	InvHandleNotHonored = define("inv-handle-not-honored", record.Error, "draft-cel-nfsv4-reminv-design s.5.3")

	RemoteErrorNak        = define("remote-error-nak", record.Error, "IBTA vol. 1 s.9.7.5")
	ReplyNotDelivered     = define("reply-not-delivered", record.Error, "IBTA vol. 1 s.9.9.3").overTCP("RFC 5040 s.4.8")
	ConnectionRejected    = define("connection-rejected", record.Warning, "IBTA vol. 1 s.12.6.7").overTCP("RFC 5044 s.7.1")
	ConnectionLost        = define("connection-lost", record.Warning, "RFC 8166 s.4.5.5")
	Terminate             = define("terminate", record.Error, "RFC 5040 s.4.8")
	TerminateBitsReversed = define("terminate-bits-reversed", record.Error, "RFC 5040 s.4.8")
	MPACRCBad             = define("mpa-crc-bad", record.Error, "RFC 5044 s.4.4")
	MPAFraming            = define("mpa-framing", record.Error, "RFC 5044 s.4.1")
	ICRCBad               = define("icrc-bad", record.Warning, "IBTA vol. 1 s.7.8.1")
	RetransmissionTimeout = define("retransmission-timeout", record.Warning, "IBTA vol. 1 s.9.7.6.1.3").overTCP("RFC 6298 s.5")
	PathMTUUnused         = define("path-mtu-unused", record.Note, "IBTA vol. 1 s.12.7.8")
	Congestion            = define("congestion", record.Note, "IBTA vol. 1 annex A17")
	CaptureLostPackets    = define("capture-lost-packets", record.Note, "IBTA vol. 1 s.9.7").overTCP("RFC 9293 s.3.4")
	MemoryLimitReached    = define("memory-limit-reached", record.Note, "rdmadump")
)

// These variants have the id and page of their rule, and another severity or section:
//   - InvalidationUnannounced: only the responder did not announce remote invalidation.
//   - BackwardRequestedZero: the Call that requests zero credits is from the server.
//   - ElementNotRefused: the message without RDMA_ERROR is an RDMA_MSGP or RDMA_DONE.
//   - InvHandleUnused: the Reply invalidated nothing although its Call named a handle.
var (
	InvalidationUnannounced = InvalidationNegotiated.as(record.Note, "RFC 8797 s.4.1")
	BackwardRequestedZero   = CreditsRequestedZero.as(record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.1.2")
	ElementNotRefused       = ErrorNotAnswered.as(record.Warning, "RFC 8166 s.4.6")
	InvHandleUnused         = InvHandleNotHonored.as(record.Warning, "draft-cel-nfsv4-reminv-design s.5.3")
)
