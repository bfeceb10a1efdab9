package transaction

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/internal/queue"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Answers: the rules about RDMA_ERROR and about Replies to broken Calls (RFC 8166 s.4.5).

// answersDone reports whether m is an RDMA_ERROR that answers an RDMA_DONE for an outstanding Call.
// Such an RDMA_ERROR does not answer the Call.
func answersDone(cs *connState, m *message) bool {
	h := m.header
	x := cs.open[m.side.Other()][h.XID]
	if x == nil || !x.checks.header.doneSent || h.Length < rpcrdma.FixedLen || h.Proc != rpcrdma.Error || h.Err != rpcrdma.ErrChunk {
		return false
	}
	x.checks.header.doneSent = false
	m.Tag = x.tag(partReply)
	return true
}

// discardsError reports whether m is an RDMA_ERROR that the requester discards, because it cannot
// be decoded although all of it was captured. The requester still waits for the Reply.
func discardsError(cs *connState, m *message) bool {
	h := m.header
	x := cs.open[m.side.Other()][h.XID]
	if x == nil || m.err == nil || !m.captured() || h.Length < rpcrdma.FixedLen || h.Proc != rpcrdma.Error {
		return false
	}
	m.Tag = x.tag(partReply)
	checkMessage(cs, x, m)
	return true
}

// answersNothing reports whether m is an RDMA_DONE from the responder of an outstanding Call, which is no Reply.
func answersNothing(cs *connState, m *message) bool {
	h := m.header
	x := cs.open[m.side.Other()][h.XID]
	if x == nil || h.Length < rpcrdma.FixedLen || h.Proc != rpcrdma.Done || h.Vers != rpcrdma.Version {
		return false
	}
	m.Tag = x.tag(partReply)
	checkMessage(cs, x, m)
	return true
}

// checkError compares an RDMA_ERROR with the Call that it answers.
func checkError(c checker, m *message, withoutCall bool) {
	h, x := m.header, c.x
	errors := &c.cs.rare().errors
	answersError := errors[m.side.Other()].Has(h.XID)
	noteXID(&errors[m.side], h.XID)
	if withoutCall {
		switch about := answeredBefore(c.cs, m.side, h.XID); {
		case answersError:
			c.report(rule.ErrorAnswered, "an RDMA_ERROR answers an RDMA_ERROR, which must be discarded without an answer")
		case wasRepeated(c.cs, m.side.Other(), h.XID):
		case about != nil:
			see := ""
			if broken := about.checks.header.replyBroken; broken != nil {
				see = ": see the finding " + broken.ID
			}
			c.unattributed().report(rule.RDMAError, "the requester rejected a Reply with %s%s", errorCode(h), see)
			c.checkRejection(m, "Reply", about.answer.RDMAVers, about.checks.header.replyBroken)
		case c.cs.proves(rule.ErrorUnknownXID, m.side):
			c.report(rule.ErrorUnknownXID, "RDMA_ERROR %s has the XID of no Call in flight%s", errorCode(h), misaddressed(c.cs, m.side.Other()))
		default:
			c.unattributed().report(rule.RDMAError, "%s in an RDMA_ERROR whose Call is not in the capture", errorCode(h))
		}
		return
	}
	broken, verb, rejects := x.checks.header.broken, "rejected the Call", rule.RDMAError
	by := c.unattributed()
	if wrong, wrongVersion := wrongCode(c.cs, m, x.call.RDMAVers.Or(0), broken); m.err == nil && wrong == "" && !wrongVersion {
		if broken != nil && (h.Err == rpcrdma.ErrVers) == (broken == rule.RDMAVersion) {
			verb = "correctly rejected the Call"
			if broken != rule.RDMAVersion { // asking for a version that a responder may not know is no violation
				by = c.attributedTo(x.side)
			}
		}
		if isProbed(c.cs, x, m) != nil {
			rejects = rule.ProbeRefused
		}
	}
	by.report(rejects, "the responder %s with %s%s", verb, errorCode(h), rejectionText(x, h))
	if x.rec.Call == nil {
		return
	}
	c.checkRejection(m, "Call", x.call.RDMAVers, broken)
	if m.err == nil {
		checkFits(c, m)
	}
}

// errorCode returns the error code of an RDMA_ERROR, if it was captured.
func errorCode(h *rpcrdma.Header) string {
	if h.Length <= rpcrdma.FixedLen {
		return "an error code that was not captured"
	}
	return h.Err.String()
}

// checkRejection compares the version and the code of an RDMA_ERROR with the message that it rejects, a Call or a Reply.
// broken is the rule that this message breaks, as far as the capture shows it.
func (c checker) checkRejection(m *message, what string, rejected record.Opt[uint32], broken *rule.Rule) {
	vers, read := rejected.Get()
	if m.err != nil || !read {
		return
	}
	wrong, wrongVersion := wrongCode(c.cs, m, vers, broken)
	if wrongVersion {
		c.report(rule.ErrorWrongVersion, "the RDMA_ERROR has rdma_vers %d, but the %s that it answers has rdma_vers %d", m.header.Vers, what, vers)
	}
	if wrong != "" {
		c.report(rule.ErrorWrongCode, "%s", wrong)
	} else {
		c.cs.checks.versionUse[m.side].refuse(c, m.header)
	}
}

// wrongCode returns what is wrong with the code and the versions that an RDMA_ERROR lists, or "", and whether it has
// another version than the message that it rejects, whose version is vers.
func wrongCode(cs *connState, m *message, vers uint32, broken *rule.Rule) (text string, wrongVersion bool) {
	h, used := m.header, cs.checks.versionUse[m.side].used
	switch {
	case h.Err == rpcrdma.ErrChunk && broken == rule.RDMAVersion && !cs.mayUse(m.side, vers):
		text = fmt.Sprintf("ERR_CHUNK answers a message of version %d, but only ERR_VERS tells its sender which versions are supported", vers)
	case h.Err != rpcrdma.ErrVers:
	case h.VersLow > h.VersHigh:
		text = fmt.Sprintf("ERR_VERS lists the versions %d to %d, but the lowest version is above the highest", h.VersLow, h.VersHigh)
	case h.VersLow <= vers && vers <= h.VersHigh:
		text = fmt.Sprintf("ERR_VERS rejects version %d, although it lists versions %d to %d as supported", vers, h.VersLow, h.VersHigh)
	case h.VersHigh == 0:
		text = "ERR_VERS lists only version 0 as supported, but versions count from 1"
	case used.has(vers):
		text = fmt.Sprintf("ERR_VERS rejects version %d, which this side uses itself", vers)
	default:
		if other := used.outside(h.VersLow, h.VersHigh); other != 0 {
			text = fmt.Sprintf("ERR_VERS lists the versions %d to %d as supported, but this side also uses version %d", h.VersLow, h.VersHigh, other)
		}
	}
	return text, h.Vers != vers
}

// versions is a set of versions below 64.
type versions uint64

func (v versions) has(vers uint32) bool { return v>>vers&1 != 0 }

// outside returns the lowest version in the set that is not in a range, or 0.
func (v versions) outside(low, high uint32) uint32 {
	if v &^= 1<<(min(high, 63)+1) - 1<<low; v == 0 {
		return 0
	}
	return uint32(bits.TrailingZeros64(uint64(v)))
}

// versionUse is what a side has shown about versions: those that it uses, and an ERR_VERS before it did.
type versionUse struct {
	used    versions
	refusal *refusal // the first ERR_VERS; nil for none
}

// refusal is an ERR_VERS.
type refusal struct {
	where     rdma.Where
	tag       rdma.Tag // of its transaction
	low, high uint32
}

// refuse notes an ERR_VERS.
func (s *versionUse) refuse(c checker, h *rpcrdma.Header) {
	if h.Err == rpcrdma.ErrVers && s.refusal == nil {
		s.refusal = &refusal{c.where(), c.x.tag(partReply), h.VersLow, h.VersHigh}
	}
}

// join adds what the side has shown on another connection.
func (s *versionUse) join(o versionUse) {
	s.used, s.refusal = s.used|o.used, cmp.Or(s.refusal, o.refusal)
}

// mayUse reports whether a side has used a version, as far as its messages were read.
func (cs *connState) mayUse(s rdma.Side, vers uint32) bool {
	return cs.checks.versionUse[s].used.has(vers) || cs.doubts.halfRead[s]
}

// noteVersionUse notes that the sender of a message uses its version. Its earlier ERR_VERS is reported if the message contradicts it.
func noteVersionUse(cs *connState, m *message) {
	h, s := m.header, &cs.checks.versionUse[m.side]
	if h.Length < rpcrdma.FixedLen || h.Proc == rpcrdma.Error || s.used.has(h.Vers) {
		return
	}
	s.used |= 1 << h.Vers
	if e := s.refusal; e != nil && !m.guessed && (h.Vers < e.low || h.Vers > e.high) {
		s.refusal = nil
		x, _ := cs.table.tagged(e.tag)
		cs.report(violation{rule: rule.ErrorWrongCode, x: x, where: e.where}, "ERR_VERS lists the versions %d to %d as supported, but this side uses version %d in packet %s", e.low, e.high, h.Vers, record.PacketText(m.First.Packet))
	}
}

// misaddressed looks for an outstanding Call of a side that had to be rejected, to which an RDMA_ERROR with another XID
// belongs. It notes that this Call was rejected, and returns a clause that names it, or "".
func misaddressed(cs *connState, side rdma.Side) string {
	n := 0
	for x := cs.calls.first; x != nil && n < lookAt; x, n = x.next, n+1 {
		if x.side == side && x.refusable() != nil && !x.checks.header.misaddressed {
			x.checks.header.misaddressed = true
			return fmt.Sprintf("; the Call with XID 0x%08x had to be rejected, and got no RDMA_ERROR", uint32(x.rec.XID))
		}
	}
	return ""
}

// rejectionText returns the reason why an RDMA_ERROR may have rejected the Call, as far as the
// capture shows it.
func rejectionText(x *txn, h *rpcrdma.Header) string {
	switch {
	case x.checks.header.broken != nil:
		return ": consequence of the finding " + x.checks.header.broken.ID
	case x.checks.header.callBroke != nil:
		return ": consequence of the finding " + x.checks.header.callBroke.ID
	case h.Err == rpcrdma.ErrChunk && x.call.Form == record.Long:
		return ": a Long Call in which the capture shows no error"
	case h.Err == rpcrdma.ErrChunk && len(x.memory.Segments) > 0:
		return ": a Call with chunks in which the capture shows no error"
	case h.Err == rpcrdma.ErrChunk && x.procedure.known:
		return ": a Call without chunks, whose Reply may have been too long"
	}
	return ""
}

// answeredBefore returns the transaction of a side's own Call with this XID that has a Reply, or nil.
func answeredBefore(cs *connState, s rdma.Side, xid uint32) *txn {
	n := 0
	for x := cs.finished.last; x != nil && n < 1024; x, n = x.prev, n+1 {
		if x.side == s && uint32(x.rec.XID) == xid && x.state.hasReply() {
			return x
		}
	}
	return nil
}

// noteAnswered records that a Call was answered: the responder did not close the connection because
// of an earlier broken Call.
func noteAnswered(cs *connState, x *txn, m *message) {
	j := &cs.checks
	noteBuffersPosted(cs, x, false)
	j.answered[x.side] = record.Some(m.Last.Time)
	j.newestAnswered[x.side] = max(j.newestAnswered[x.side], x.rec.ID)
}

// checkAnswered reports a Reply to a Call that had to be rejected with RDMA_ERROR, and a Call that
// the RPC layer rejected.
func checkAnswered(c checker, h *rpcrdma.Header) {
	if broken := c.x.refusable(); broken != nil && broken != rule.XIDMismatch && c.x.rec.Call != nil { // RFC 8166 s.4.2.1 allows the responder to ignore the XID of the RPC message
		c.report(notRefused(broken), "the responder answered a broken Call with a Reply instead of RDMA_ERROR: see the finding %s", broken.ID)
	}
	if status, known := c.x.rpcStatus.Get(); known && status != "SUCCESS" && !isProbe(c.x, status) && c.cs.table.rpc.Undefined() == nil {
		if status == "GARBAGE_ARGS" && h.Proc == rpcrdma.NoMsg {
			c.report(rule.RPCRejected, "GARBAGE_ARGS is in an RDMA_NOMSG, but it should be in an RDMA_MSG")
		}
		chunks := ""
		if len(c.x.memory.Segments) > 0 && status == "GARBAGE_ARGS" {
			chunks = " (the Call has chunks: check the data items that were reduced)"
		}
		c.unattributed().report(rule.RPCRejected, "the responder rejected the RPC with %s%s", status, chunks)
	}
}

// isProbe reports whether a rejection may answer a NULL Call with which a client asks for the programs
// and versions of a server. A Call whose procedure was not captured may be one.
func isProbe(x *txn, status string) bool {
	return (!x.procedure.known || x.procedure.procedure == 0) && (status == "PROG_UNAVAIL" || status == "PROG_MISMATCH")
}

// notRefused returns the rule for a responder that does not reject a Call that breaks a rule.
func notRefused(broken *rule.Rule) *rule.Rule {
	if broken == rule.RDMAMsgP || broken == rule.RDMADone {
		return rule.ElementNotRefused
	}
	return rule.ErrorNotAnswered
}

// patience is the time within which a broken Call has to be rejected.
const patience = record.Time(1e9)

// checkUnanswered checks a Call that is still outstanding when its connection or the capture ends.
func checkUnanswered(cs *connState, x *txn, end record.Stamp, how *rdma.Ending) {
	j := &cs.checks
	if x.rec.Call == nil || x.call.LastTime == 0 {
		return
	}
	c := x.checker(record.Stamp{Time: x.call.Time, Packet: x.call.Packet}).attributedTo(x.side.Other())
	since := x.call.LastTime
	if broken := x.refusable(); broken != nil {
		wentOn := j.newestAnswered[x.side] > x.rec.ID
		if how != nil {
			end = how.At
			wentOn = wentOn || end.Time-since >= patience && how.By == record.Some(x.side) && how.How == record.EndDisconnect
		} else {
			wentOn = wentOn || end.Time-since >= patience
		}
		if wentOn && !x.checks.header.misaddressed && cs.proves(rule.CallNotAnswered, x.side.Other()) {
			c.report(notRefused(broken), "a broken Call got no RDMA_ERROR, although the connection stayed open: see the finding %s", broken.ID)
		}
		return
	}
	last, known := j.answered[x.side].Get()
	if !known || j.newestAnswered[x.side] <= x.rec.ID || last-since < cs.table.options.Unanswered || x.checks.credits.isDone {
		return
	}
	const text = "this Call was not answered, although later Calls were answered for %s"
	waited := field.Duration(int64(last - since))
	if x.procedure.flavor.Or(oncrpc.AuthRPCSECGSS) == oncrpc.AuthRPCSECGSS { // Its sequence number may have been used on another connection.
		x.checker(c.at).report(rule.CallDiscarded, text+"; a server discards a Call whose RPCSEC_GSS sequence number is not new in its window", waited)
		return
	}
	c.report(rule.CallNotAnswered, text, waited)
}

// checkLost reports the Calls that were outstanding when the connection ended.
func checkLost(cs *connState, how *rdma.Ending) {
	if how == nil || !cs.upper.IsRPC() {
		return
	}
	n := 0
	var first *txn
	proven := rule.ConnectionLost.Needs.Blocks(cs.sides(record.Opt[rdma.Side]{})) == 0
	for x := cs.calls.first; x != nil; x = x.next {
		if x.checks.credits.isDone || x.checks.guessed || x.refusable() != nil || isWithdrawn(cs, x, how) {
			continue
		}
		if n++; first == nil {
			first = x
		}
		if proven {
			x.rec.found(rule.ConnectionLost, false)
		}
	}
	if n == 0 {
		return
	}
	where := first.where(how.At)
	where.Operation = first.operation()
	cs.report(violation{rule: rule.ConnectionLost, where: where}, "%s; %s", endText(cs, how), outstandingText(n, uint32(first.rec.XID)))
}

// isWithdrawn reports whether a server closed the connection before it got the answer to a CB_NULL, which nobody needs then.
func isWithdrawn(cs *connState, x *txn, how *rdma.Ending) bool {
	return how.How == record.EndDisconnect && how.By == record.Some(x.side) && cs.direction(x.side) == record.Backward && x.procedure.known && x.procedure.procedure == 0
}

// checkReuse reports that the XID of an outstanding Call is reused. It is unknown then which Calls and
// memory are current, unless the RPC was retransmitted as it was. It proves nothing if the capture may
// lack the Reply.
func checkReuse(c checker, m *message) {
	if m.header.Length < rpcrdma.FixedLen && !m.captured() { // it may be an RDMA_DONE
		c.cs.checks.xidReused = true
		return
	}
	if repeatsCall(c.x, m) {
		c.report(rule.XIDInUse, "another Call with this XID, of the same procedure and length, is in flight: the RPC was probably retransmitted")
		noteXID(&c.cs.rare().repeated[m.side], m.header.XID)
		return
	}
	c.report(rule.XIDInUse, "another Call with this XID is in flight")
	s := c.cs.rare()
	if !c.cs.checks.xidReused {
		s.reusedXID, s.reusedLeft = m.header.XID, 1
	} else if s.reusedLeft++; s.reusedXID != m.header.XID {
		s.reusedLeft = math.MaxInt // not all of them are counted
	}
	c.cs.checks.xidReused = true
}

// noteReused notes a Reply that answers no open Call. If the XID was reused, it answers one of the earlier Calls. Once all are answered,
// it is known again which Calls and memory are current.
func noteReused(cs *connState, xid uint32) {
	if s := cs.rareState; s != nil && s.reusedLeft > 0 && s.reusedXID == xid {
		s.reusedLeft--
		cs.checks.xidReused = s.reusedLeft > 0
	}
}

// repeatsCall reports whether a Call has the procedure and the length of an outstanding Call with its
// XID, and neither exposes memory.
func repeatsCall(old *txn, m *message) bool {
	p := old.procedure
	return p.known && m.inline && m.rpcErr == nil && len(old.memory.Segments) == 0 && !old.memory.Incomplete && !m.header.HasChunks() &&
		old.call.SendBytes == record.Some(int(m.Length)) && p.program == m.rpc.Program && p.version == m.rpc.Version && p.procedure == m.rpc.Procedure
}

// noteXID adds an XID to a list that is allocated when it is needed.
func noteXID(to **queue.Recent, xid uint32) {
	if *to == nil {
		*to = new(queue.Recent)
	}
	(*to).Add(xid)
}

// wasRepeated reports whether a Call of a side with this XID was retransmitted while it was
// outstanding, so that it may get more than one Reply.
func wasRepeated(cs *connState, side rdma.Side, xid uint32) bool {
	return cs.rareState != nil && cs.rareState.repeated[side].Has(xid)
}

// tooShortText returns the message for a Send that is too short to have an XID.
func tooShortText(cs *connState, o *rdma.Operation) string {
	what := fmt.Sprintf("a Send of %d bytes is too short for an RPC-over-RDMA header", o.Length)
	if o.Length == 0 {
		what = "a Send of 0 bytes has no RPC-over-RDMA header and no RPC message"
	}
	if only := cs.open[o.Side.Other()].only(); only != nil {
		what += fmt.Sprintf("; it cannot answer the only Call in flight, which has XID 0x%08x", uint32(only.rec.XID))
	}
	return what
}

// checkBurst reports a burst of retransmissions that a timer caused, when its first packet is
// captured. x may be nil.
func checkBurst(cs *connState, x *txn, e rdma.Event) {
	o, at, b := e.Op, e.At, e.Burst
	if b == nil || b.Cause != record.RetransmitTimeout || b.At != at {
		return
	}
	of := record.EventWrite
	switch {
	case x != nil:
		_, part := cs.table.tagged(o.Tag)
		of = kindOf(o, part)
	case o.Kind == rdma.Read:
		of = record.EventRead
	case o.Kind == rdma.Send:
		of = ""
	}
	sent := "request"
	if !cs.link.Setup().RoCE() {
		sent = "data"
	}
	text := fmt.Sprintf("the %s retransmitted its %s after a timeout: for %s it sent no %s, and the capture has no new acknowledgement", cs.link.Setup().End(e.By), eventNames[of], field.Duration(int64(b.Idle)), sent)
	if timer, known := b.Timer.Get(); known && timer > 0 {
		text += fmt.Sprintf("; the connection request of the client (CM REQ) announced a timeout of %s", field.Duration(int64(timer)))
	}
	if x != nil {
		x.checker(at).report(rule.RetransmissionTimeout, "%s", text)
		return
	}
	cs.report(violation{rule: rule.RetransmissionTimeout, where: rdma.Where{At: at}}, "%s", text)
}

var eventNames = map[record.EventKind]string{
	"": "Send", record.EventCall: "Call", record.EventReply: "Reply", record.EventRead: "RDMA Read request", record.EventWrite: "RDMA Write", record.EventReadDone: "RDMA Read response",
}
