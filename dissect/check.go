package dissect

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// find reports that a rule was broken. The message is only worded when somebody
// listens. Each rule is noted once on a transaction.
func (d *Dissector) find(r rule, c *conn, t *txn, xid *uint32, at stamp, format string, args ...any) {
	d.summary.Findings[record.Severity(r.severity)]++
	if t != nil && !slices.Contains(t.rec.Findings, r.id) {
		t.rec.Findings = append(t.rec.Findings, r.id)
	}
	if d.handler.Finding == nil {
		return
	}
	f := record.Finding{Type: "finding", Rule: r.id, Severity: record.Severity(r.severity), Section: r.section, Message: fmt.Sprintf(format, args...)}
	if c != nil {
		f.Connection = record.Some(c.id)
	}
	if t != nil {
		f.XID = record.Some(t.rec.XID)
	} else if xid != nil {
		f.XID = record.Some(Hex32(*xid))
	}
	if at.packet != 0 {
		f.Packet, f.Time = record.Some(at.packet), record.Some(at.time)
	}
	d.handler.Finding(&f)
}

// limit reports that something reached its limit, once each.
func (d *Dissector) limit(what string) {
	if d.summary.Limits[what]++; d.summary.Limits[what] == 1 {
		d.find(ruleTooLarge, nil, nil, nil, stamp{}, "%s: the limit is reached, what is beyond it is not kept", what)
	}
}

// checkMessage holds what Calls and Replies have in common against the rules.
func (d *Dissector) checkMessage(f *flow, t *txn, m *message, h *rpcrdma.Header, err error, rpc *oncrpc.Header, rpcErr error) {
	c := f.conn
	report := func(r rule, format string, args ...any) { d.find(r, c, t, nil, m.first, format, args...) }
	captured := len(m.data) == m.length && m.whole
	switch {
	case err == nil:
	case errors.Is(err, rpcrdma.ErrTruncated):
		if captured {
			report(ruleHeaderTruncated, "%v", err)
		}
	case h.Proc > rpcrdma.Error:
		report(ruleProc, "%v", err)
	default:
		report(ruleHeaderMalformed, "%v", err)
	}
	if h.Length < rpcrdma.FixedLen {
		return
	}
	switch {
	case h.Vers != rpcrdma.Version && h.Proc != rpcrdma.Error:
		report(ruleVersion, "rdma_vers is %d, only 1 is defined", h.Vers)
	case h.Proc == rpcrdma.MsgP:
		report(ruleMsgP, "RDMA_MSGP must not be sent")
	case h.Proc == rpcrdma.Done:
		report(ruleDone, "RDMA_DONE must not be sent")
	case h.Proc == rpcrdma.NoMsg && err == nil && !h.HasChunks():
		report(ruleNoMsgEmpty, "RDMA_NOMSG without any chunk carries no RPC message")
	case h.Proc == rpcrdma.Msg && err == nil:
		switch {
		case rpc.Length >= 4 && rpc.XID != h.XID:
			report(ruleXIDMismatch, "rdma_xid is 0x%08x, the RPC message's XID 0x%08x", h.XID, rpc.XID)
		case rpcErr != nil && captured:
			report(ruleRPCHeader, "%v", rpcErr)
		}
	}
	if c.negotiated() && m.whole {
		limit := c.thresholds().ClientToServer
		if f.side != c.clientSide() {
			limit = c.thresholds().ServerToClient
		}
		if m.length > limit {
			report(ruleInline, "Send of %d bytes, the inline threshold is %d", m.length, limit)
		}
	}
	if c.direction(t.side) == Backward && h.HasChunks() {
		report(ruleBackwardChunks, "a message in the backward direction has chunks")
	}
}

// checkCall holds a Call against the rules.
func (d *Dissector) checkCall(f *flow, t *txn, m *message, h *rpcrdma.Header, err error, rpc *oncrpc.Header, rpcErr error) {
	d.checkMessage(f, t, m, h, err, rpc, rpcErr)
	c := f.conn
	if h.Length < rpcrdma.FixedLen {
		return
	}
	if h.Credits == 0 {
		d.find(ruleZeroCreditsAsked, c, t, nil, m.first, "the Call asks for 0 credits")
	}
	for _, r := range h.Reads {
		if r.Position%4 != 0 {
			d.find(rulePosition, c, t, nil, m.first, "Read chunk at Position %d, which is no multiple of 4", r.Position)
			break
		}
	}
	limit := uint32(1) // until the first Reply (RFC 8166 s.3.3.3)
	if granted := c.granted[f.side]; granted != nil {
		limit = *granted
	} else if !c.handshake {
		return
	}
	if n := len(c.open[f.side]); c.record.Lost == 0 && uint32(n) > limit && limit > 0 {
		d.find(ruleCreditLimit, c, t, nil, m.first, "%d Calls are in flight, %d credits are granted", n, limit)
	}
}

// checkReply holds a Reply against the rules, and against its Call.
func (d *Dissector) checkReply(f *flow, t *txn, m *message, h *rpcrdma.Header, err error, rpc *oncrpc.Header, rpcErr error, orphan bool) {
	d.checkMessage(f, t, m, h, err, rpc, rpcErr)
	c := f.conn
	if h.Length < rpcrdma.FixedLen {
		return
	}
	report := func(r rule, format string, args ...any) { d.find(r, c, t, nil, m.last, format, args...) }
	if h.Credits == 0 {
		report(ruleZeroCredits, "the Reply grants 0 credits")
	}
	if len(h.Reads) > 0 {
		report(ruleReplyRead, "the Reply has a Read list of %d segments", len(h.Reads))
	}
	if m.invalidate != nil {
		if agreed := c.remoteInvalidation(); agreed != nil && !*agreed && !c.invalidateTold {
			c.invalidateTold = true // once: who does it does it with every Reply
			report(ruleInvalidateDenied, "Send With Invalidate of 0x%08x, though not both sides set the R bit in their private data (Linux servers do this)", *m.invalidate)
		}
	}
	if orphan {
		if c.handshake && c.record.Lost == 0 {
			report(ruleUnsolicitedReply, "no Call with this XID is without a Reply")
		}
		return
	}
	if h.Proc == rpcrdma.Error {
		report(ruleRDMAError, "the responder answers %v", h.Err)
		return
	}
	if m.invalidate != nil && t.invalidation.Chunk == nil {
		report(ruleInvalidateForeign, "Send With Invalidate of 0x%08x, a handle that this Call did not expose", *m.invalidate)
	}
	if err == nil && h.Vers == rpcrdma.Version && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.NoMsg) {
		d.checkChunks(t, h, report)
	}
}

// checkChunks holds the chunk lists of a Reply against those of its Call.
func (d *Dissector) checkChunks(t *txn, h *rpcrdma.Header, report func(rule, string, ...any)) {
	if len(h.WriteEnds) != t.writes {
		report(ruleWriteListCopied, "the Call offered %d Write chunks, the Reply returns %d", t.writes, len(h.WriteEnds))
	}
	if h.HasReply != t.hasReply {
		report(ruleReplyChunkCopied, "the Call's Reply chunk (offered: %t) is not what the Reply returns (present: %t)", t.hasReply, h.HasReply)
	}
	for i := range t.segments {
		s := &t.segments[i]
		if s.kind == readChunk {
			continue
		}
		if s.returned > s.length {
			report(ruleReturnedTooLong, "segment 0x%08x of %d bytes returned with %d", s.handle, s.length, s.returned)
		}
		if moved := s.moved.total(); moved < int64(s.returned) && t.conn.record.Lost == 0 && t.conn.handshake {
			report(ruleMovedShort, "segment 0x%08x returned with %d bytes, %d were seen to move", s.handle, s.returned, moved)
		}
	}
}
