// Package rule is the table of the rules that RDMA storage traffic can violate: their
// ids, severities and sources. The code that checks a rule is in the package that has
// the data for it, and reports a finding with a rule of this table.
//
// To add a rule: add its row here, write its page in docs/rules, report it in the code
// that checks it, and add a row to the table of test cases (package synth/cases).
package rule

import (
	"slices"

	"github.com/rdmadump/rdmadump/dissect/internal/evidence"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Rule is one requirement that traffic can violate. Its page in docs/rules explains it.
type Rule struct {
	ID       string // in kebab case; it does not change, because tools match on it
	Severity record.Severity
	Section  string  // section of the document with the requirement, such as "RFC 8166 s.3.3.1"
	TCP      string  // section that applies to connections over TCP; empty if Section does
	RPC      string  // section that applies to RPC over TCP and UDP, without RDMA; empty if TCP or Section does
	variants []*Rule // the same rule in cases with another severity or section

	// Needs names the gaps of a capture that prevent a finding; Until is the time for which
	// a finding waits.
	Needs evidence.Needs
	Until evidence.Until
	// Malforms means that an error of this rule proves that its message cannot be decoded.
	Malforms bool
	// CallMayFollow means that a finding is wrong if the Call comes later in the capture than
	// its answer.
	CallMayFollow bool
}

// All lists all rules in the order of the table.
var All []*Rule

// Sets of gaps that many rules have in common.
const (
	missing = evidence.Missing | evidence.Awaited | evidence.Evicted
	unseen  = missing | evidence.Silent | evidence.Late | evidence.NoHandshake
	terms   = evidence.NoHandshake | evidence.NoPrivateData
)

// needs sets the gaps that prevent a finding; see [evidence.Needs].
func (r *Rule) needs(own, other, connection evidence.Gap) *Rule {
	r.Needs = evidence.Needs{Own: own, Other: other, Connection: connection}
	return r
}

// until sets how long a finding waits.
func (r *Rule) until(u evidence.Until) *Rule {
	r.Until = u
	return r
}

// callMayFollow sets CallMayFollow.
func (r *Rule) callMayFollow() *Rule {
	r.CallMayFollow = true
	return r
}

// malforms sets Malforms.
func (r *Rule) malforms(does bool) *Rule {
	r.Malforms = does
	return r
}

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

// overRPC sets the section that applies to RPC over TCP and UDP, without RDMA, and returns r.
func (r *Rule) overRPC(section string) *Rule {
	r.RPC = section
	return r
}

// as returns a copy of r for cases in which its severity or section differs.
func (r *Rule) as(severity record.Severity, section string) *Rule {
	v := *r
	v.Severity, v.Section, v.variants = severity, section, nil
	r.variants = append(r.variants, &v)
	return &v
}

// Severities returns the severities that findings of the rule can have, without repetition. The
// first is the rule's own.
func (r *Rule) Severities() []record.Severity {
	list := []record.Severity{r.Severity}
	for _, v := range r.variants {
		if !slices.Contains(list, v.Severity) {
			list = append(list, v.Severity)
		}
	}
	return list
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

// These rules are in the order in which commands list them: connection setup, credits,
// headers, chunks, answers, the backward direction, the remote invalidation draft and
// the RDMA transport.
var (
	PrivateDataUnusable        = define("private-data-unusable", record.Note, "RFC 8797 s.5.2")
	PrivateDataReserved        = define("private-data-reserved-bits", record.Warning, "RFC 8797 s.4")
	InlineThresholdExceeded    = define("inline-threshold-exceeded", record.Error, "RFC 8166 s.3.3.2").needs(0, 0, terms).until(evidence.Delivered)
	InvalidationNegotiated     = define("invalidation-not-negotiated", record.Error, "RFC 8797 s.4.1").needs(0, 0, terms).until(evidence.Delivered)
	InvalidatedUnexposedHandle = define("invalidated-unexposed-handle", record.Error, "RFC 8797 s.4.1").needs(0, missing, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	InvalidationOnCall         = define("invalidation-on-call", record.Error, "RFC 8797 s.4.1").until(evidence.Delivered)
	InvalidatedHandleUsed      = define("invalidated-handle-used", record.Error, "draft-cel-nfsv4-reminv-design s.2.2").needs(missing, unseen|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.TruncatedAgain|evidence.Closing).until(evidence.Next)

	CreditLimitExceeded  = define("credit-limit-exceeded", record.Error, "RFC 8166 s.3.3.1").needs(evidence.HalfRead, unseen|evidence.HalfRead, evidence.Unordered|evidence.XIDReused|evidence.Closing|evidence.TruncatedAgain).until(evidence.Next)
	CreditsGrantedZero   = define("credits-granted-zero", record.Error, "RFC 8166 s.3.3.1").until(evidence.Delivered)
	CreditsRequestedZero = define("credits-requested-zero", record.Warning, "RFC 8166 s.3.3.1").until(evidence.Delivered)
	ReceiveNotPosted     = define("receive-not-posted", record.Error, "RFC 8166 s.3.3.1").needs(unseen|evidence.HalfRead, unseen|evidence.HalfRead, evidence.Unordered|evidence.XIDReused|evidence.Closing)
	ReceiveTooSmall      = define("receive-too-small", record.Error, "RFC 8166 s.3.3.3").needs(0, 0, terms)

	HeaderTruncated    = define("header-truncated", record.Error, "RFC 8166 s.4.5.2").until(evidence.Delivered).malforms(true)
	HeaderMalformed    = define("header-malformed", record.Error, "RFC 8166 s.4.5.2").until(evidence.Delivered).malforms(true)
	RDMAVersion        = define("rdma-version", record.Error, "RFC 8166 s.4.2.2").until(evidence.Answered)
	RDMAProcUnknown    = define("rdma-proc-unknown", record.Error, "RFC 8166 s.4.2.4").until(evidence.Delivered)
	RDMAMsgP           = define("rdma-msgp", record.Error, "RFC 8166 s.4.6.1").until(evidence.Delivered)
	RDMADone           = define("rdma-done", record.Error, "RFC 8166 s.4.6.2").needs(0, 0, evidence.XIDReused).until(evidence.Delivered)
	XIDMismatch        = define("xid-mismatch", record.Error, "RFC 8166 s.4.2.1").until(evidence.Delivered)
	RPCHeaderMalformed = define("rpc-header-malformed", record.Error, "RFC 5531 s.9").until(evidence.Delivered).malforms(true)
	RPCRecordTruncated = define("rpc-record-truncated", record.Error, "RFC 5531 s.11").until(evidence.Delivered).malforms(true)
	NoMsgWithoutChunk  = define("nomsg-without-chunk", record.Error, "RFC 8166 s.4.2.4").until(evidence.Delivered).malforms(true)
	NoMsgWithPayload   = define("nomsg-with-payload", record.Error, "RFC 8166 s.4.2.4").until(evidence.Delivered)
	LongCallPosition   = define("long-call-position", record.Error, "RFC 8166 s.3.5.3").until(evidence.Delivered)

	OutsideExposedMemory = define("rdma-outside-exposed-memory", record.Error, "RFC 8166 s.3.4.3").needs(missing, unseen|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.Closing|evidence.TruncatedAgain).until(evidence.Next)
	WrongDirection       = define("rdma-wrong-direction", record.Error, "RFC 8166 s.3.4.5").needs(missing, unseen|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.Closing|evidence.TruncatedAgain).until(evidence.Next)
	MemoryExposedTwice   = define("memory-exposed-twice", record.Warning, "RFC 8166 s.8.1.2").needs(0, missing|evidence.Silent|evidence.Late|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.Closing).until(evidence.Next)
	EmptySegment         = define("empty-segment", record.Note, "RFC 8166 s.3.4.3").until(evidence.Delivered)
	PositionUnaligned    = define("read-position-unaligned", record.Error, "RFC 8166 s.3.4.5").until(evidence.Delivered)
	PositionInvalid      = define("read-position-invalid", record.Error, "RFC 8166 s.3.4.5").until(evidence.Delivered).malforms(true)
	ChunkLengthMismatch  = define("chunk-length-mismatch", record.Error, "RFC 8166 s.3.4.4").until(evidence.Delivered).malforms(true)
	ReducedPadLeft       = define("reduced-pad-left", record.Error, "RFC 8166 s.3.4.5").until(evidence.Delivered).malforms(true)
	PadWritten           = define("pad-written", record.Error, "RFC 8166 s.3.4.6").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	ReplyBeforeReads     = define("reply-before-reads-done", record.Error, "RFC 8166 s.3.4.5").needs(missing, missing, evidence.Unordered|evidence.TruncatedAgain).until(evidence.Next)
	ReadChunkNotRead     = define("read-chunk-not-read", record.Error, "RFC 8166 s.3.4.5").needs(unseen, unseen|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.TruncatedAgain).until(evidence.Next)
	ReplyWithReadList    = define("reply-with-read-list", record.Error, "RFC 8166 s.4.3.1").until(evidence.Delivered)
	WriteListNotCopied   = define("write-list-not-copied", record.Error, "RFC 8166 s.4.3.2").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	ReplyChunkNotCopied  = define("reply-chunk-not-copied", record.Error, "RFC 8166 s.4.3.3").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	ReturnedTooLong      = define("returned-length-exceeds-chunk", record.Error, "RFC 8166 s.3.4.6").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	ReturnedNotSeen      = define("returned-bytes-not-seen", record.Warning, "RFC 8166 s.3.4.6").needs(unseen, 0, evidence.XIDReused|evidence.Unordered|evidence.TruncatedAgain).until(evidence.Next)
	FilledOutOfOrder     = define("segments-filled-out-of-order", record.Error, "RFC 8166 s.3.4.6").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	WriteChunkUnused     = define("write-chunk-unused", record.Error, "RFC 8166 s.4.3.2").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	UnusedChunkLength    = define("unused-chunk-length", record.Error, "RFC 8166 s.3.4.6").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	WriteChunkTooShort   = define("write-chunk-too-short", record.Warning, "RFC 8166 s.3.4.6").until(evidence.Delivered)
	WriteChunkRoomForPad = define("write-chunk-room-for-pad", record.Note, "RFC 8166 s.3.4.6").until(evidence.Delivered)
	ReplyChunkMissing    = define("reply-chunk-missing", record.Error, "RFC 8166 s.4.3.3").needs(0, 0, terms).until(evidence.Delivered)
	ReducedIneligible    = define("reduced-ineligible-item", record.Error, "RFC 8166 s.3.4.2").until(evidence.Delivered)
	ReducedUnderGSS      = define("reduced-under-gss", record.Error, "RFC 8166 s.8.2.2").until(evidence.Delivered)

	RDMAError         = define("rdma-error", record.Error, "RFC 8166 s.4.5").until(evidence.Delivered)
	ErrorNotAnswered  = define("error-not-answered", record.Error, "RFC 8166 s.4.5").needs(0, missing, evidence.XIDReused).until(evidence.Delivered)
	ErrorWrongCode    = define("error-wrong-code", record.Error, "RFC 8166 s.4.5.1").needs(0, missing, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	ErrorWrongVersion = define("error-wrong-version", record.Error, "RFC 8166 s.4.5").needs(0, missing, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	ErrorUnknownXID   = define("error-unknown-xid", record.Warning, "RFC 8166 s.4.5").needs(0, unseen|evidence.NoXID, evidence.Unordered|evidence.XIDReused|evidence.Closing).until(evidence.Next).callMayFollow()
	ErrorAnswered     = define("error-answered", record.Error, "RFC 8166 s.4.5").needs(0, missing, evidence.Unordered).until(evidence.Delivered)
	CallNotAnswered   = define("call-not-answered", record.Warning, "RFC 8166 s.4.5.4").overRPC("RFC 5531 s.4").needs(unseen|evidence.NoXID, 0, evidence.XIDReused|evidence.Unordered)
	RPCRejected       = define("rpc-rejected", record.Warning, "RFC 8166 s.4.5.2").overRPC("RFC 5531 s.9").until(evidence.Delivered)
	ReplyWithoutCall  = define("reply-without-call", record.Note, "RFC 5531 s.9").needs(0, unseen|evidence.NoXID, evidence.Unordered|evidence.XIDReused|evidence.Closing).until(evidence.Next).callMayFollow()
	XIDInUse          = define("xid-in-use", record.Warning, "RFC 5531 s.9").needs(0, missing|evidence.Silent|evidence.Late|evidence.HalfRead, evidence.Unordered).until(evidence.Next)

	BackwardWithChunks = define("backward-with-chunks", record.Warning, "draft-cel-nfsv4-rpcrdma-bidirection s.2.4").needs(0, 0, evidence.NoHandshake).until(evidence.Delivered)
	BackwardNotMsg     = define("backward-not-msg", record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.4").needs(0, 0, evidence.NoHandshake).until(evidence.Delivered)
	BackwardUnexpected = define("backward-unexpected", record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.2.3").needs(unseen, unseen|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.TruncatedAgain).until(evidence.Next)

	ShortMessageDropped = define("short-message-dropped", record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.3").needs(unseen, missing, evidence.Unordered)

	InvHandleUnknown    = define("inv-handle-unknown", record.Error, "draft-cel-nfsv4-reminv-design s.5.3").until(evidence.Delivered)
	InvHandleNotCopied  = define("inv-handle-not-copied", record.Error, "draft-cel-nfsv4-reminv-design s.5.3").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)
	InvHandleNotHonored = define("inv-handle-not-honored", record.Error, "draft-cel-nfsv4-reminv-design s.5.3").needs(0, missing|evidence.HalfRead, evidence.XIDReused|evidence.Unordered).until(evidence.Delivered)

	RemoteErrorNak        = define("remote-error-nak", record.Error, "IBTA vol. 1 s.9.7.5")
	ReplyNotDelivered     = define("reply-not-delivered", record.Error, "IBTA vol. 1 s.9.9.3").overTCP("RFC 5040 s.4.8")
	ConnectionRejected    = define("connection-rejected", record.Warning, "IBTA vol. 1 s.12.6.7").overTCP("RFC 5044 s.7.1").overRPC("RFC 9293 s.3.5.2")
	ConnectionLost        = define("connection-lost", record.Warning, "RFC 8166 s.4.5.5").overRPC("RFC 5531 s.4").needs(0, missing|evidence.NoXID, evidence.Unordered)
	Terminate             = define("terminate", record.Error, "RFC 5040 s.4.8")
	TerminateBitsReversed = define("terminate-bits-reversed", record.Note, "RFC 5040 s.4.8")
	MPACRCBad             = define("mpa-crc-bad", record.Error, "RFC 5044 s.4.4")
	MPAFraming            = define("mpa-framing", record.Error, "RFC 5044 s.4.1")
	ICRCBad               = define("icrc-bad", record.Warning, "IBTA vol. 1 s.7.8.1")
	ChangedOnPath         = define("changed-on-path", record.Error, "RFC 9293 s.3.1")
	RetransmissionTimeout = define("retransmission-timeout", record.Warning, "IBTA vol. 1 s.9.7.6.1.3").overTCP("RFC 6298 s.5")
	PathMTUUnused         = define("path-mtu-unused", record.Note, "IBTA vol. 1 s.12.7.8")
	UnfilledPacket        = define("unfilled-packet", record.Note, "IBTA vol. 1 s.9.7.4.1.6")
	Congestion            = define("congestion", record.Note, "IBTA vol. 1 annex A17")
	CaptureIncomplete     = define("capture-incomplete", record.Note, "IBTA vol. 1 s.9.7").overTCP("RFC 9293 s.3.4")
	MemoryLimitReached    = define("memory-limit-reached", record.Note, "rdmadump")
)

// These variants have the id and page of their rule, and another severity or section:
//   - InvalidationUnannounced: only the responder did not announce remote invalidation.
//   - InvalidatedForeignHandle: another outstanding Call exposes the handle.
//   - BackwardRequestedZero: the Call that requests zero credits is from the server.
//   - ElementNotRefused: the message without RDMA_ERROR is an RDMA_MSGP or RDMA_DONE.
//   - ExposedTwiceInCall: one Call exposes the memory twice.
//   - PersistentlyExposed: the handle is registered persistently.
//   - UnusedReplyChunkLength: the unused chunk is the Reply chunk.
//   - DiscardedTruncated, DiscardedMalformed: the message is an RDMA_ERROR, which its receiver discards, so that the Reply may follow.
//   - CredentialTooLong: an AUTH_SYS credential exceeds its limits, which most receivers reject.
//   - GSSCredential: an RPCSEC_GSS credential is malformed; VerifierUnfit: the verifier of a Reply does not fit the credential of its Call.
//   - CallDiscarded: the server may have discarded the Call because of its RPCSEC_GSS sequence number.
//   - ProbeRefused: an ERR_VERS that rejects a Call of a version that its sender tried; ProbeFellBack: and it fell back to one that is listed.
//   - FirstNotPosted: the Call is the first request of the connection.
//   - VersionZero: the version is 0, which no document can define.
//   - InvHandleUnused: the Reply invalidated nothing although its Call named a handle.
//   - RPCRecordUnfinished: a side ended its TCP stream inside a record, as a program that is stopped does.
var (
	InvalidationUnannounced  = InvalidationNegotiated.as(record.Note, "RFC 8797 s.4.1")
	InvalidatedForeignHandle = InvalidatedUnexposedHandle.as(record.Error, "RFC 8797 s.4.1").needs(missing|evidence.Late|evidence.Silent, unseen|evidence.HalfRead, evidence.XIDReused|evidence.Unordered|evidence.TruncatedAgain|evidence.Closing).until(evidence.Next).callMayFollow()
	BackwardRequestedZero    = CreditsRequestedZero.as(record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.1.2")
	ElementNotRefused        = ErrorNotAnswered.as(record.Warning, "RFC 8166 s.4.6")
	ExposedTwiceInCall       = MemoryExposedTwice.as(record.Warning, "RFC 8166 s.8.1.2").needs(0, 0, 0).until(evidence.Now)
	PersistentlyExposed      = MemoryExposedTwice.as(record.Note, "RFC 8166 s.8.1.2")
	UnusedReplyChunkLength   = UnusedChunkLength.as(record.Error, "RFC 8166 s.4.3.3")
	DiscardedTruncated       = HeaderTruncated.as(record.Error, "RFC 8166 s.4.5.2").malforms(false)
	DiscardedMalformed       = HeaderMalformed.as(record.Error, "RFC 8166 s.4.5.2").malforms(false)
	CredentialTooLong        = RPCHeaderMalformed.as(record.Warning, "RFC 5531 appendix A")
	GSSCredential            = RPCHeaderMalformed.as(record.Warning, "RFC 2203 s.5")
	VerifierUnfit            = RPCHeaderMalformed.as(record.Warning, "RFC 2203 s.5.3.3.2")
	CallDiscarded            = CallNotAnswered.as(record.Warning, "RFC 2203 s.5.3.3.1")
	VersionProbe             = RDMAVersion.as(record.Note, "RFC 8166 s.4.5.1")
	ProbeRefused             = RDMAError.as(record.Error, "RFC 8166 s.4.5").until(evidence.FellBack)
	ProbeFellBack            = RDMAError.as(record.Note, "RFC 8166 s.4.5.1")
	FirstNotPosted           = ReceiveNotPosted.as(record.Error, "RFC 8166 s.3.3.3").needs(0, evidence.Late|evidence.NoHandshake, evidence.Unordered|evidence.Evicted|evidence.TruncatedAgain)
	VersionZero              = RDMAVersion.as(record.Error, "RFC 8166 s.4.2.2").until(evidence.Delivered)
	InvHandleUnused          = InvHandleNotHonored.as(record.Warning, "draft-cel-nfsv4-reminv-design s.5.3")
	RPCRecordUnfinished      = RPCRecordTruncated.as(record.Warning, "RFC 5531 s.11")
)
