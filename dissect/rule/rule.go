// Package rule is the table of the rules that RDMA storage traffic can violate: their
// ids, severities and sources, and what a finding needs: see [Needs] and [Until]. The code that checks a rule is in the package that has
// the data for it, and reports a finding with a rule of this table.
//
// To add a rule: add its row here, write its page in docs/rules, report it in the code
// that checks it, and add a row to the table of test cases (package synth/cases).
package rule

import (
	"slices"

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
	Needs Needs
	Until Until
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
	missing   = Missing | Awaited | Evicted
	unseen    = missing | Silent | Late | NoHandshake
	unread    = missing | HalfRead
	unknown   = unseen | HalfRead
	terms     = NoHandshake | NoPrivateData
	confused  = XIDReused | Unordered
	disturbed = confused | TruncatedAgain
	ending    = disturbed | Closing
)

// For how long most findings wait.
const (
	delivered = Delivered
	next      = Next
)

// needs sets the gaps that prevent a finding; see [Needs].
func (r *Rule) needs(own, other, connection Gap) *Rule {
	r.Needs = Needs{Own: own, Other: other, Connection: connection}
	return r
}

// until sets how long a finding waits.
func (r *Rule) until(u Until) *Rule {
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

// failure, warning and note add a row to the table, named after its severity: an id and the section of its source.
func failure(id, section string) *Rule { return define(id, section, record.Error) }
func warning(id, section string) *Rule { return define(id, section, record.Warning) }
func note(id, section string) *Rule    { return define(id, section, record.Note) }

func define(id, section string, severity record.Severity) *Rule {
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
	PrivateDataUnusable        = note("private-data-unusable", "RFC 8797 s.5.2")
	PrivateDataReserved        = warning("private-data-reserved-bits", "RFC 8797 s.4")
	InlineThresholdExceeded    = failure("inline-threshold-exceeded", "RFC 8166 s.3.3.2").needs(0, 0, terms).until(delivered)
	InvalidationNegotiated     = failure("invalidation-not-negotiated", "RFC 8797 s.4.1").needs(0, 0, terms).until(delivered)
	InvalidatedUnexposedHandle = failure("invalidated-unexposed-handle", "RFC 8797 s.4.1").needs(0, missing, confused).until(delivered)
	InvalidationOnCall         = failure("invalidation-on-call", "RFC 8797 s.4.1").until(delivered)
	InvalidatedHandleUsed      = failure("invalidated-handle-used", "draft-cel-nfsv4-reminv-design s.2.2").needs(missing, unknown, ending).until(next)

	CreditLimitExceeded  = failure("credit-limit-exceeded", "RFC 8166 s.3.3.1").needs(HalfRead, unknown, ending).until(next)
	CreditsGrantedZero   = failure("credits-granted-zero", "RFC 8166 s.3.3.1").until(delivered)
	CreditsRequestedZero = warning("credits-requested-zero", "RFC 8166 s.3.3.1").until(delivered)
	ReceiveNotPosted     = failure("receive-not-posted", "RFC 8166 s.3.3.1").needs(unknown, unknown, confused|Closing)
	ReceiveTooSmall      = failure("receive-too-small", "RFC 8166 s.3.3.3").needs(0, 0, terms)

	HeaderTruncated    = failure("header-truncated", "RFC 8166 s.4.5.2").until(delivered).malforms(true)
	HeaderMalformed    = failure("header-malformed", "RFC 8166 s.4.5.2").until(delivered).malforms(true)
	RDMAVersion        = failure("rdma-version", "RFC 8166 s.4.2.2").until(Answered)
	RDMAProcUnknown    = failure("rdma-proc-unknown", "RFC 8166 s.4.2.4").until(delivered)
	RDMAMsgP           = failure("rdma-msgp", "RFC 8166 s.4.6.1").until(delivered)
	RDMADone           = failure("rdma-done", "RFC 8166 s.4.6.2").needs(0, 0, XIDReused).until(delivered)
	XIDMismatch        = failure("xid-mismatch", "RFC 8166 s.4.2.1").until(delivered)
	RPCHeaderMalformed = failure("rpc-header-malformed", "RFC 5531 s.9").until(delivered).malforms(true)
	RPCRecordTruncated = failure("rpc-record-truncated", "RFC 5531 s.11").until(delivered).malforms(true)
	NoMsgWithoutChunk  = failure("nomsg-without-chunk", "RFC 8166 s.4.2.4").until(delivered).malforms(true)
	NoMsgWithPayload   = failure("nomsg-with-payload", "RFC 8166 s.4.2.4").until(delivered)
	LongCallPosition   = failure("long-call-position", "RFC 8166 s.3.5.3").until(delivered)

	OutsideExposedMemory = failure("rdma-outside-exposed-memory", "RFC 8166 s.3.4.3").needs(missing, unknown, ending).until(next)
	WrongDirection       = failure("rdma-wrong-direction", "RFC 8166 s.3.4.5").needs(missing, unknown, ending).until(next)
	MemoryExposedTwice   = warning("memory-exposed-twice", "RFC 8166 s.8.1.2").needs(0, unread|Late|Silent, confused|Closing).until(next)
	EmptySegment         = note("empty-segment", "RFC 8166 s.3.4.3").until(delivered)
	PositionUnaligned    = failure("read-position-unaligned", "RFC 8166 s.3.4.5").until(delivered)
	PositionInvalid      = failure("read-position-invalid", "RFC 8166 s.3.4.5").until(delivered).malforms(true)
	ChunkLengthMismatch  = failure("chunk-length-mismatch", "RFC 8166 s.3.4.4").until(delivered).malforms(true)
	ReducedPadLeft       = failure("reduced-pad-left", "RFC 8166 s.3.4.5").until(delivered).malforms(true)
	PadWritten           = failure("pad-written", "RFC 8166 s.3.4.6").needs(0, unread, confused).until(delivered)
	ReplyBeforeReads     = failure("reply-before-reads-done", "RFC 8166 s.3.4.5").needs(missing, missing, TruncatedAgain|Unordered).until(next)
	ReadChunkNotRead     = failure("read-chunk-not-read", "RFC 8166 s.3.4.5").needs(unseen, unknown, disturbed).until(next)
	ReplyWithReadList    = failure("reply-with-read-list", "RFC 8166 s.4.3.1").until(delivered)
	WriteListNotCopied   = failure("write-list-not-copied", "RFC 8166 s.4.3.2").needs(0, unread, confused).until(delivered)
	ReplyChunkNotCopied  = failure("reply-chunk-not-copied", "RFC 8166 s.4.3.3").needs(0, unread, confused).until(delivered)
	ReturnedTooLong      = failure("returned-length-exceeds-chunk", "RFC 8166 s.3.4.6").needs(0, unread, confused).until(delivered)
	ReturnedNotSeen      = warning("returned-bytes-not-seen", "RFC 8166 s.3.4.6").needs(unseen, 0, disturbed).until(next)
	FilledOutOfOrder     = failure("segments-filled-out-of-order", "RFC 8166 s.3.4.6").needs(0, unread, confused).until(delivered)
	WriteChunkUnused     = failure("write-chunk-unused", "RFC 8166 s.4.3.2").needs(0, unread, confused).until(delivered)
	UnusedChunkLength    = failure("unused-chunk-length", "RFC 8166 s.3.4.6").needs(0, unread, confused).until(delivered)
	WriteChunkTooShort   = warning("write-chunk-too-short", "RFC 8166 s.3.4.6").until(delivered)
	WriteChunkRoomForPad = note("write-chunk-room-for-pad", "RFC 8166 s.3.4.6").until(delivered)
	ReplyChunkMissing    = failure("reply-chunk-missing", "RFC 8166 s.4.3.3").needs(0, 0, terms).until(delivered)
	ReducedIneligible    = failure("reduced-ineligible-item", "RFC 8166 s.3.4.2").until(delivered)
	ReducedUnderGSS      = failure("reduced-under-gss", "RFC 8166 s.8.2.2").until(delivered)

	RDMAError         = failure("rdma-error", "RFC 8166 s.4.5").until(delivered)
	ErrorNotAnswered  = failure("error-not-answered", "RFC 8166 s.4.5").needs(0, missing, XIDReused).until(delivered)
	ErrorWrongCode    = failure("error-wrong-code", "RFC 8166 s.4.5.1").needs(0, missing, confused).until(delivered)
	ErrorWrongVersion = failure("error-wrong-version", "RFC 8166 s.4.5").needs(0, missing, confused).until(delivered)
	ErrorUnknownXID   = warning("error-unknown-xid", "RFC 8166 s.4.5").needs(0, unseen|NoXID, confused|Closing).until(next).callMayFollow()
	ErrorAnswered     = failure("error-answered", "RFC 8166 s.4.5").needs(0, missing, Unordered).until(delivered)
	CallNotAnswered   = warning("call-not-answered", "RFC 8166 s.4.5.4").overRPC("RFC 5531 s.4").needs(unseen|NoXID, 0, confused)
	RPCRejected       = warning("rpc-rejected", "RFC 8166 s.4.5.2").overRPC("RFC 5531 s.9").until(delivered)
	ReplyWithoutCall  = note("reply-without-call", "RFC 5531 s.9").needs(0, unseen|NoXID, confused|Closing).until(next).callMayFollow()
	XIDInUse          = warning("xid-in-use", "RFC 5531 s.9").needs(0, unread|Late|Silent, Unordered).until(next)

	BackwardWithChunks = warning("backward-with-chunks", "draft-cel-nfsv4-rpcrdma-bidirection s.2.4").needs(0, 0, NoHandshake).until(delivered)
	BackwardNotMsg     = failure("backward-not-msg", "draft-cel-nfsv4-rpcrdma-bidirection s.2.4").needs(0, 0, NoHandshake).until(delivered)
	BackwardUnexpected = failure("backward-unexpected", "draft-cel-nfsv4-rpcrdma-bidirection s.2.2.3").needs(unseen, unknown, disturbed).until(next)

	ShortMessageDropped = failure("short-message-dropped", "draft-cel-nfsv4-rpcrdma-bidirection s.2.3").needs(unseen, missing, Unordered)

	InvHandleUnknown    = failure("inv-handle-unknown", "draft-cel-nfsv4-reminv-design s.5.3").until(delivered)
	InvHandleNotCopied  = failure("inv-handle-not-copied", "draft-cel-nfsv4-reminv-design s.5.3").needs(0, unread, confused).until(delivered)
	InvHandleNotHonored = failure("inv-handle-not-honored", "draft-cel-nfsv4-reminv-design s.5.3").needs(0, unread, confused).until(delivered)

	RemoteErrorNak        = failure("remote-error-nak", "IBTA vol. 1 s.9.7.5")
	ReplyNotDelivered     = failure("reply-not-delivered", "IBTA vol. 1 s.9.9.3").overTCP("RFC 5040 s.4.8")
	ConnectionRejected    = warning("connection-rejected", "IBTA vol. 1 s.12.6.7").overTCP("RFC 5044 s.7.1").overRPC("RFC 9293 s.3.5.2")
	ConnectionLost        = warning("connection-lost", "RFC 8166 s.4.5.5").overRPC("RFC 5531 s.4").needs(0, missing|NoXID, Unordered)
	Terminate             = failure("terminate", "RFC 5040 s.4.8")
	TerminateBitsReversed = note("terminate-bits-reversed", "RFC 5040 s.4.8")
	MPACRCBad             = failure("mpa-crc-bad", "RFC 5044 s.4.4")
	MPAFraming            = failure("mpa-framing", "RFC 5044 s.4.1")
	ICRCBad               = warning("icrc-bad", "IBTA vol. 1 s.7.8.1")
	ChangedOnPath         = failure("changed-on-path", "RFC 9293 s.3.1")
	RetransmissionTimeout = warning("retransmission-timeout", "IBTA vol. 1 s.9.7.6.1.3").overTCP("RFC 6298 s.5")
	PathMTUUnused         = note("path-mtu-unused", "IBTA vol. 1 s.12.7.8")
	UnfilledPacket        = note("unfilled-packet", "IBTA vol. 1 s.9.7.4.1.6")
	Congestion            = note("congestion", "IBTA vol. 1 annex A17")
	CaptureIncomplete     = note("capture-incomplete", "IBTA vol. 1 s.9.7").overTCP("RFC 9293 s.3.4")
	MemoryLimitReached    = note("memory-limit-reached", "rdmadump")
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
//   - VersionOfReply: the message is a Reply, which nothing answers.
//   - InvHandleUnused: the Reply invalidated nothing although its Call named a handle.
//   - RPCRecordUnfinished: a side ended its TCP stream inside a record, as a program that is stopped does.
var (
	InvalidationUnannounced  = InvalidationNegotiated.as(record.Note, "RFC 8797 s.4.1")
	InvalidatedForeignHandle = InvalidatedUnexposedHandle.as(record.Error, "RFC 8797 s.4.1").needs(missing|Late|Silent, unknown, ending).until(next).callMayFollow()
	BackwardRequestedZero    = CreditsRequestedZero.as(record.Error, "draft-cel-nfsv4-rpcrdma-bidirection s.2.1.2")
	ElementNotRefused        = ErrorNotAnswered.as(record.Warning, "RFC 8166 s.4.6")
	ExposedTwiceInCall       = MemoryExposedTwice.as(record.Warning, "RFC 8166 s.8.1.2").needs(0, 0, 0).until(Now)
	PersistentlyExposed      = MemoryExposedTwice.as(record.Note, "RFC 8166 s.8.1.2")
	UnusedReplyChunkLength   = UnusedChunkLength.as(record.Error, "RFC 8166 s.4.3.3")
	DiscardedTruncated       = HeaderTruncated.as(record.Error, "RFC 8166 s.4.5.2").malforms(false)
	DiscardedMalformed       = HeaderMalformed.as(record.Error, "RFC 8166 s.4.5.2").malforms(false)
	CredentialTooLong        = RPCHeaderMalformed.as(record.Warning, "RFC 5531 appendix A")
	GSSCredential            = RPCHeaderMalformed.as(record.Warning, "RFC 2203 s.5")
	VerifierUnfit            = RPCHeaderMalformed.as(record.Warning, "RFC 2203 s.5.3.3.2")
	CallDiscarded            = CallNotAnswered.as(record.Warning, "RFC 2203 s.5.3.3.1")
	VersionProbe             = RDMAVersion.as(record.Note, "RFC 8166 s.4.5.1")
	ProbeRefused             = RDMAError.as(record.Error, "RFC 8166 s.4.5").needs(0, 0, Evicted).until(FellBack)
	ProbeFellBack            = RDMAError.as(record.Note, "RFC 8166 s.4.5.1")
	FirstNotPosted           = ReceiveNotPosted.as(record.Error, "RFC 8166 s.3.3.3").needs(0, Late|NoHandshake, Evicted|TruncatedAgain|Unordered)
	VersionZero              = RDMAVersion.as(record.Error, "RFC 8166 s.4.2.2").until(delivered)
	VersionOfReply           = RDMAVersion.as(record.Error, "RFC 8166 s.4.2.2").until(delivered)
	InvHandleUnused          = InvHandleNotHonored.as(record.Warning, "draft-cel-nfsv4-reminv-design s.5.3")
	RPCRecordUnfinished      = RPCRecordTruncated.as(record.Warning, "RFC 5531 s.11")
)
