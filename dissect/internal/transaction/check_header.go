package transaction

import (
	"errors"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Headers: the RPC-over-RDMA header (RFC 8166 s.4) and the RPC header.

// headerRules is what the rules about headers remember of a transaction.
type headerRules struct {
	broken       *rule.Rule         // first rule that obliges the responder to answer with RDMA_ERROR
	replyBroken  *rule.Rule         // first rule that allows the requester to reject the Reply with RDMA_ERROR
	callBroke    *rule.Rule         // first rule that the requester broke before the Reply
	doneSent     bool               // the requester sent RDMA_DONE for it
	misaddressed bool               // the Call had to be rejected, and the RDMA_ERROR for it has another XID
	rpcXID       record.Opt[uint32] // of the RPC message of the Call; unknown if it was not captured
}

// breaks notes a rule that obliges the responder to answer with RDMA_ERROR. The first one counts.
func (r *headerRules) breaks(broken *rule.Rule) {
	if r.broken == nil {
		r.broken = broken
	}
}

// replyBreaks notes a rule that allows the requester to reject the Reply. The first one counts.
func (r *headerRules) replyBreaks(broken *rule.Rule) {
	if r.replyBroken == nil {
		r.replyBroken = broken
	}
}

// callBreaks notes a rule that the requester broke before the Reply. The first one counts.
func (r *headerRules) callBreaks(broken *rule.Rule) {
	if r.callBroke == nil {
		r.callBroke = broken
	}
}

// checkHeader checks the header of a message.
func checkHeader(c checker, m *message) {
	h, truncated, malformed := m.header, rule.HeaderTruncated, rule.HeaderMalformed
	if h.Proc == rpcrdma.Error {
		truncated, malformed = rule.DiscardedTruncated, rule.DiscardedMalformed
	}
	switch {
	case m.err == nil:
	case errors.Is(m.err, rpcrdma.ErrTruncated):
		if m.captured() {
			c.broken(truncated, "%v", m.err)
		}
	case h.Proc > rpcrdma.Error:
		c.broken(rule.RDMAProcUnknown, "%v", m.err)
	default:
		c.broken(malformed, "%v", m.err)
	}
	if h.Length < rpcrdma.FixedLen {
		return
	}
	switch {
	case m.unknownVersion() && h.Vers == 0: // no answer can excuse it
		c.report(rule.VersionZero, "rdma_vers is 0, but only version 1 is defined")
		c.noteBroken(rule.RDMAVersion)
	case m.unknownVersion() && (c.cs.checks.usedVersion.Known() || m.side == c.x.side && c.cs.mayUse(m.side.Other(), h.Vers)):
	case m.unknownVersion() && m.side != c.x.side && !c.x.call.RDMAVers.Known() && (c.x.rec.Call != nil || !c.cs.proves(rule.ReplyWithoutCall, m.side)): // its Call, whose version the capture lacks, may have the same one
	case m.unknownVersion() && h.Vers == rpcrdma.Draft && !m.captured(): // it may have the layout of the draft
	case m.side != c.x.side && h.Understood() && h.Proc != rpcrdma.Error && isUnderstood(c.x.call.RDMAVers) && c.x.call.RDMAVers.Or(0) != h.Vers:
		c.report(rule.VersionOfReply, "rdma_vers of the Reply is %d, but that of its Call is %d", h.Vers, c.x.call.RDMAVers.Or(0))
	case m.unknownVersion() && m.side != c.x.side:
		c.report(rule.VersionOfReply, "rdma_vers is %d, but only version 1 is defined", h.Vers)
		c.noteBroken(rule.RDMAVersion)
	case m.unknownVersion():
		c.broken(rule.RDMAVersion, "rdma_vers is %d, but only version 1 is defined", h.Vers)
	case h.Proc == rpcrdma.MsgP:
		c.broken(rule.RDMAMsgP, "the message is RDMA_MSGP, which must not be sent")
	case h.Proc == rpcrdma.Done:
		c.broken(rule.RDMADone, "the message is RDMA_DONE, which must not be sent")
	case h.Proc == rpcrdma.Msg && m.err == nil:
		if m.side == c.x.side {
			c.x.checks.header.rpcXID = record.SomeIf(m.rpc.XID, m.rpc.Length >= 4)
		}
		switch {
		case m.rpc.Length >= 4 && m.rpc.XID != h.XID:
			c.mismatched(m.rpc.XID, m.side == c.x.side, "")
		case m.rpcErr != nil && m.captured() && !m.headerReduced():
			c.report(rule.RPCHeaderMalformed, "%v", m.rpcErr)
		case m.rpcErr == nil && !m.headerReduced():
			c.checkRPC(m.rpc)
			c.checkHasResults(m)
		}
	}
	if isCall := m.side == c.x.side; h.IsDraft && h.Proc != rpcrdma.Error && isCall != (h.Direction == 0) {
		c.report(rule.HeaderMalformed, "rdma_direction is %d, but the message is a %v", h.Direction, map[bool]string{true: "Call", false: "Reply"}[isCall])
	}
	if (h.Proc == rpcrdma.NoMsg && h.Understood() || h.Proc == rpcrdma.Error) && m.err == nil && m.whole && m.Length > int64(h.Length) {
		c.report(rule.NoMsgWithPayload, "%d bytes follow the header of an %v message, which must not contain a Payload stream", m.Length-int64(h.Length), h.Proc)
	}
	if h.Proc == rpcrdma.NoMsg && m.err == nil && h.Understood() {
		c.checkNoMsg(m)
	}
}

// noteVersion decides, by the answer to a Call, whether the version of the Call is a violation. It is
// none if a Call of a version that this program does not know got a Reply of the same version: both
// sides use it. Then nothing is known of the memory that is exposed. Versions count from 1, so that no
// document can define version 0.
func noteVersion(cs *connState, x *txn, m *message) {
	if m.unknownVersion() && m.header.Vers != 0 && x.rec.Call != nil && x.call.RDMAVers == record.Some(m.header.Vers) {
		cs.checks.usedVersion = record.Some(m.header.Vers)
		cs.doubts.notRead(true)
	}
	known := m.header.Length >= rpcrdma.FixedLen && (m.header.Proc != rpcrdma.Error || m.err == nil || m.captured()) && // Which error it is may be cut off.
		!cs.mayUse(m.side, x.call.RDMAVers.Or(0))
	shows := violated
	if !known {
		shows = neither
	}
	cs.answerSeen(rule.RDMAVersion, isProbed(cs, x, m), x.tag(partCall), shows)
}

// versionsTold is the latest ERR_VERS that told a side which versions there are.
type versionsTold struct {
	packet    int64 // 0 for none
	low, high uint32
}

// lists reports whether a version is among those that are supported.
func (v *versionsTold) lists(vers uint32) bool { return v.low <= vers && vers <= v.high }

// isProbed returns the rule for a Call whose version is refused: its sender found out which versions there are (RFC 8166
// s.4.5.1), unless it was told before that there is no such version. It returns nil for other Calls.
func isProbed(cs *connState, x *txn, m *message) *rule.Rule {
	h, vers := m.header, x.call.RDMAVers.Or(0)
	if h.Proc != rpcrdma.Error || h.Err != rpcrdma.ErrVers || m.err != nil || vers == 0 {
		return nil
	}
	told := &cs.rare().told[x.side]
	if told.packet != 0 && x.call.Packet > told.packet && !told.lists(vers) {
		return nil
	}
	if now := (versionsTold{m.Last.Packet, h.VersLow, h.VersHigh}); !now.lists(vers) {
		*told = now
	}
	return rule.VersionProbe
}

// noteFallback decides about the versions that the sender of a Call has tried: it uses one now of which it was told.
func noteFallback(cs *connState, m *message) {
	if s := cs.rareState; s != nil && s.told[m.side].packet != 0 && s.told[m.side].lists(m.header.Vers) {
		cs.answerSeen(rule.ProbeRefused, rule.ProbeFellBack, 0, violated)
	}
}

// isUnderstood reports whether a version is one whose layout this program knows.
func isUnderstood(vers record.Opt[uint32]) bool {
	return vers == record.Some[uint32](rpcrdma.Version) || vers == record.Some[uint32](rpcrdma.Draft)
}

// refusable returns the rule that obliges the responder to answer the Call with RDMA_ERROR, or nil.
func (x *txn) refusable() *rule.Rule {
	if broken := x.checks.header.broken; broken != rule.RDMAVersion || x.call.RDMAVers != x.cs.checks.usedVersion {
		return broken
	}
	return nil
}

// broken reports an error that the receiver has to answer with RDMA_ERROR.
func (c checker) broken(r *rule.Rule, format string, args ...any) {
	c.report(r, format, args...)
	c.noteBroken(r)
}

// noteBroken notes that the receiver has to answer with RDMA_ERROR because of a rule.
func (c checker) noteBroken(r *rule.Rule) {
	switch side, known := c.atFault.Get(); {
	case !known:
	case side == c.x.side:
		c.x.checks.header.breaks(r)
	default:
		c.x.checks.header.replyBreaks(r)
	}
}

// checkNoMsg reports an RDMA_NOMSG message without the chunk that has to contain its Payload
// stream.
func (c checker) checkNoMsg(m *message) {
	h := m.header
	isCall := m.side == c.x.side
	long, has := h.PositionZero()
	switch {
	case !h.HasChunks():
		c.broken(rule.NoMsgWithoutChunk, "an RDMA_NOMSG message without any chunk contains no RPC message")
	case isCall && !has:
		c.broken(rule.NoMsgWithoutChunk, "an RDMA_NOMSG Call has no Position Zero Read chunk for its RPC message")
	case isCall && long == 0:
		c.broken(rule.NoMsgWithoutChunk, "the Position Zero Read chunk of an RDMA_NOMSG Call has no bytes, so it contains no RPC message")
	case !isCall && !h.HasReply:
		c.report(rule.NoMsgWithoutChunk, "an RDMA_NOMSG Reply has no Reply chunk for its RPC message")
	case !isCall && rpcrdma.Length(h.Reply) == 0:
		c.report(rule.NoMsgWithoutChunk, "an RDMA_NOMSG Reply returns an empty Reply chunk, so it contains no RPC message")
	}
}

// positionZero reports whether the header has a Position Zero Read chunk.
func positionZero(h *rpcrdma.Header) bool {
	_, has := h.PositionZero()
	return has
}

// headerReduced reports whether a Read chunk may contain part of the RPC header: whether it begins before the end of what was
// decoded, or before the end of the Payload stream if the header is longer than that.
func (m *message) headerReduced() bool {
	end := m.rpc.Length
	if errors.Is(m.rpcErr, oncrpc.ErrTruncated) {
		end = len(m.payload) + 1
	}
	return slices.ContainsFunc(m.header.Reads, func(r rpcrdma.ReadSegment) bool { return r.Position != 0 && int64(r.Position) < int64(end) })
}

// checkCallHeader checks the credits and the lists of a Call.
func checkCallHeader(c checker, m *message) {
	h := m.header
	noteFallback(c.cs, m)
	if h.Credits == 0 && h.Proc != rpcrdma.Done && !m.unknownVersion() {
		if c.cs.direction(m.side) == backward && c.cs.link.Setup().Handshake {
			c.report(rule.BackwardRequestedZero, "a Call in the backward direction requests 0 credits")
		} else {
			c.report(rule.CreditsRequestedZero, "the Call requests 0 credits")
		}
	}
	if m.Invalidates.Known() && isSurelyCall(c.cs, m) {
		c.report(rule.InvalidationOnCall, "a Call was sent with Send With Invalidate (handle 0x%08x), which only Replies may use", m.Invalidates.Or(0))
		noteInvalidated(c, m)
	}
	for _, r := range h.Reads {
		if r.Position%4 != 0 {
			c.report(rule.PositionUnaligned, "the Position of a Read chunk is %d, which is not a multiple of 4", r.Position)
			break
		}
	}
	if h.Proc == rpcrdma.Msg && m.err == nil && h.Understood() && positionZero(h) {
		c.report(rule.LongCallPosition, "an RDMA_MSG message has a Position Zero Read chunk, although the Send contains its RPC message")
	}
}

// isSurelyCall reports whether the contents of a message show that it is a Call, and not only its
// sender.
func isSurelyCall(cs *connState, m *message) bool {
	h := m.header
	return m.inline && m.rpc.Length >= 8 && m.rpc.Type == oncrpc.Call || h.IsDraft && h.Direction == 0 || h.Proc == rpcrdma.NoMsg && positionZero(h)
}

// checkLong checks the RPC header of a message of a type that was transferred in a chunk.
func checkLong(c checker, rpc *oncrpc.Header, err error, whole bool, want oncrpc.MessageType) {
	if want == oncrpc.Call {
		c.x.checks.header.rpcXID = record.SomeIf(rpc.XID, rpc.Length >= 4)
	}
	switch {
	case rpc.Length >= 4 && rpc.XID != uint32(c.x.rec.XID):
		c.mismatched(rpc.XID, want == oncrpc.Call, " in the chunk")
	case rpc.Length >= 8 && rpc.Type != want:
		c.report(rule.RPCHeaderMalformed, "the RPC message in the chunk is of type %v, but it has to be a %v", rpc.Type, want)
	case err != nil && whole:
		c.report(rule.RPCHeaderMalformed, "the RPC message in the chunk is malformed: %v", err)
	case err == nil:
		c.checkRPC(rpc)
	}
}

// mismatched reports an RPC message, in the Send or where it says, with another XID than its header. A Reply with both XIDs of its Call returns
// what the responder got, and may do so if that of the Call's RPC message was not captured.
func (c checker) mismatched(xid uint32, isCall bool, where string) {
	if of, known := c.x.checks.header.rpcXID.Get(); isCall || known && of != xid {
		c.broken(rule.XIDMismatch, "rdma_xid is 0x%08x, but the XID of the RPC message%s is 0x%08x", uint32(c.x.rec.XID), where, xid)
	}
}

// checkHasResults checks that a Reply that reports success has results, if those of its procedure begin with a status.
func (c checker) checkHasResults(m *message) {
	if p := &c.x.procedure; m.rpc.Succeeded() && p.known && p.hasStatus() && p.flavor != record.Some(oncrpc.AuthRPCSECGSS) && m.captured() {
		if n := m.Length - int64(m.header.Length+m.rpc.Length); n < 4 {
			c.report(rule.RPCHeaderMalformed, "the Reply reports SUCCESS, and %d bytes follow, but the results of %s begin with a status", n, p.name())
		}
	}
}

// checkMismatch checks the versions that a Reply lists as supported. Those between the lowest and the highest may be missing.
func (c checker) checkMismatch(rpc *oncrpc.Header) {
	low, high, _, is := rpc.Mismatch()
	of, refused := "program", c.x.procedure.version
	if rpc.Status() == "RPC_MISMATCH" {
		of, refused = "RPC", c.x.procedure.rpc
	}
	switch {
	case !is:
	case low > high:
		c.report(rule.RPCHeaderMalformed, "%s lists the versions %d to %d, but the lowest is above the highest", rpc.Status(), low, high)
	case c.x.procedure.known && c.x.checks.header.callBroke == nil && (refused == low || refused == high):
		c.report(rule.RPCHeaderMalformed, "%s refuses version %d of the %s, which it lists as supported (%d to %d)", rpc.Status(), refused, of, low, high)
	}
}

// checkRPC checks the values in an RPC header that was decoded.
func (c checker) checkRPC(rpc *oncrpc.Header) {
	if err := rpc.Undefined(); err != nil {
		c.report(rule.RPCHeaderMalformed, "%v", err)
	}
	if rpc.Type != oncrpc.Call {
		c.checkMismatch(rpc)
		c.checkVerifier(rpc)
		return
	}
	broken := rule.CredentialTooLong
	if rpc.Credential.Flavor == oncrpc.AuthRPCSECGSS {
		broken = rule.GSSCredential
	}
	if err := rpc.Credential.Misfit(); err != nil {
		c.report(broken, "%v", err)
	}
}

// checkVerifier checks that the verifier of a Reply with results fits the credential of its Call.
func (c checker) checkVerifier(rpc *oncrpc.Header) {
	const text = "the verifier of the Reply has the flavor %v, but the credential of its Call has %v"
	switch asked, got := c.x.procedure.flavor.Or(oncrpc.AuthNone), rpc.Verifier.Flavor; {
	case !rpc.Succeeded():
	case c.x.gssProcedure == record.Some[uint32](0) && got != oncrpc.AuthRPCSECGSS: // RPCSEC_GSS_DATA
		c.report(rule.VerifierUnfit, text, got, asked)
	case asked == oncrpc.AuthSys && got != oncrpc.AuthNone && got != oncrpc.AuthShort:
		c.report(rule.CredentialTooLong, text, got, asked)
	}
}
