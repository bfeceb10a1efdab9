package transaction

import (
	"errors"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// checker reports what a message of a transaction breaks.
type checker struct {
	f     *follower
	x     *txn
	where rdma.Where
}

func (c checker) report(r *rule.Rule, format string, args ...any) {
	c.x.found(r)
	c.f.conn.Report(r, c.where, format, args...)
}

// check holds what Calls and Replies have in common against the rules.
func (f *follower) check(x *txn, m *message) {
	h := m.header
	c := checker{f, x, x.where(m.First)}
	c.where.Blames = record.Some(m.side)
	switch {
	case m.err == nil:
	case errors.Is(m.err, rpcrdma.ErrTruncated):
		if m.captured() {
			c.report(rule.HeaderTruncated, "%v", m.err)
		}
	case h.Proc > rpcrdma.Error:
		c.report(rule.RDMAProcUnknown, "%v", m.err)
	default:
		c.report(rule.HeaderMalformed, "%v", m.err)
	}
	if h.Length < rpcrdma.FixedLen {
		return
	}
	switch {
	case h.Vers != rpcrdma.Version && h.Proc != rpcrdma.Error:
		c.report(rule.RDMAVersion, "rdma_vers is %d, only 1 is defined", h.Vers)
	case h.Proc == rpcrdma.MsgP:
		c.report(rule.RDMAMsgP, "RDMA_MSGP must not be sent")
	case h.Proc == rpcrdma.Done:
		c.report(rule.RDMADone, "RDMA_DONE must not be sent")
	case h.Proc == rpcrdma.NoMsg && m.err == nil && !h.HasChunks():
		c.report(rule.NoMsgWithoutChunk, "RDMA_NOMSG without any chunk carries no RPC message")
	case h.Proc == rpcrdma.Msg && m.err == nil:
		switch {
		case m.rpc.Length >= 4 && m.rpc.XID != h.XID:
			c.report(rule.XIDMismatch, "rdma_xid is 0x%08x, the RPC message's XID 0x%08x", h.XID, m.rpc.XID)
		case m.rpcErr != nil && m.captured():
			c.report(rule.RPCHeaderMalformed, "%v", m.rpcErr)
		}
	}
	if f.negotiated() && m.whole {
		limits := f.thresholds()
		limit := limits.ClientToServer
		if client, _ := f.conn.Client(); m.side != client {
			limit = limits.ServerToClient
		}
		if m.Length > int64(limit) {
			c.report(rule.InlineThresholdExceeded, "Send of %d bytes, the inline threshold is %d", m.Length, limit)
		}
	}
	if f.direction(x.side) == record.Backward && h.HasChunks() {
		c.report(rule.BackwardWithChunks, "a message in the backward direction has chunks")
	}
}

// checkCall holds a Call against the rules.
func (f *follower) checkCall(x *txn, m *message) {
	f.check(x, m)
	h := m.header
	if h.Length < rpcrdma.FixedLen {
		return
	}
	c := checker{f, x, x.where(m.First)}
	c.where.Blames = record.Some(m.side)
	if h.Credits == 0 {
		c.report(rule.CreditsRequestedZero, "the Call asks for 0 credits")
	}
	for _, r := range h.Reads {
		if r.Position%4 != 0 {
			c.report(rule.PositionUnaligned, "Read chunk at Position %d, which is no multiple of 4", r.Position)
			break
		}
	}
	limit, granted := f.granted[m.side].Get()
	if !granted {
		if !f.conn.Proves() {
			return
		}
		limit = 1 // until the first Reply (RFC 8166 s.3.3.3)
	}
	if n := len(f.open[m.side]); f.conn.Lost() == 0 && uint32(n) > limit && limit > 0 { // or a Reply is missing
		f.suspect(rule.CreditLimitExceeded, x, m.side.Other(), c.where, "%d Calls are in flight, %d credits are granted", n, limit)
	}
}

// checkReply holds a Reply against the rules, and against its Call.
func (f *follower) checkReply(x *txn, m *message, orphan bool) {
	f.check(x, m)
	h := m.header
	if h.Length < rpcrdma.FixedLen {
		return
	}
	c := checker{f, x, x.where(m.Last)}
	c.where.Blames = record.Some(m.side)
	if h.Credits == 0 {
		c.report(rule.CreditsGrantedZero, "the Reply grants 0 credits")
	}
	if len(h.Reads) > 0 {
		c.report(rule.ReplyWithReadList, "the Reply has a Read list of %d segments", len(h.Reads))
	}
	handle, invalidates := m.Invalidates.Get()
	if invalidates {
		f.checkLeave(c, handle)
	}
	if orphan {
		if f.conn.Proves() {
			c.report(rule.ReplyWithoutCall, "no Call with this XID is without a Reply")
		}
		return
	}
	if h.Proc == rpcrdma.Error {
		c.report(rule.RDMAError, "the responder answers %v", h.Err)
		return
	}
	if i, _ := x.rec.Invalidation.Get(); invalidates && !i.Chunk.Known() && !x.cut {
		c.report(rule.InvalidatedForeignHandle, "Send With Invalidate of 0x%08x, a handle that this Call did not expose", handle)
	}
	if m.err == nil && h.Vers == rpcrdma.Version && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.NoMsg) && !x.cut {
		f.checkChunks(c, h)
	}
}

// checkLeave holds a Send With Invalidate against what both sides said that they
// support. A requester that takes it is in no danger, though the responder did
// not say that it does it: that is a warning.
func (f *follower) checkLeave(c checker, handle uint32) {
	if f.remoteInvalidation().Or(true) || f.invalidateTold {
		return
	}
	f.invalidateTold = true // once: who does it does it with every Reply
	if f.private[c.x.side].Or(rpcrdma.PrivateData{}).RemoteInvalidation {
		c.report(rule.InvalidationUnannounced, "Send With Invalidate of 0x%08x, though the responder itself did not set the R bit in its private data; the requester did (Linux servers do this)", handle)
		return
	}
	c.report(rule.InvalidationNegotiated, "Send With Invalidate of 0x%08x, though the requester did not set the R bit in its private data: it need not take it", handle)
}

// checkChunks holds the chunk lists of a Reply against those of its Call.
func (f *follower) checkChunks(c checker, h *rpcrdma.Header) {
	x := c.x
	if len(h.WriteEnds) != x.writes {
		c.report(rule.WriteListNotCopied, "the Call offered %d Write chunks, the Reply returns %d", x.writes, len(h.WriteEnds))
	}
	if h.HasReply != x.hasReply {
		c.report(rule.ReplyChunkNotCopied, "the Call's Reply chunk (offered: %t) is not what the Reply returns (present: %t)", x.hasReply, h.HasReply)
	}
	for i := range x.segments {
		s := &x.segments[i]
		returned, known := s.returned.Get()
		if !known {
			continue
		}
		if returned > s.length {
			c.report(rule.ReturnedTooLong, "segment 0x%08x of %d bytes returned with %d", s.handle, s.length, returned)
		}
		if moved := s.moved.Total(); moved < int64(returned) && f.conn.Proves() {
			c.report(rule.ReturnedNotSeen, "segment 0x%08x returned with %d bytes, %d were seen to move", s.handle, returned, moved)
		}
	}
}
