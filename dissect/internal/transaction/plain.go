package transaction

import (
	"errors"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// RPC over TCP and UDP: a Send is an RPC message, without an RPC-over-RDMA header, chunks,
// credits and private data. No rule of RPC-over-RDMA applies, only those of RPC itself.

// plainMessage takes a Send that contains an RPC message and nothing else.
func (cs *connState) plainMessage(o *rdma.Operation) {
	t := cs.table
	m := message{Operation: o, side: o.Side, data: o.Payload, payload: o.Payload, whole: !o.Broken, header: &t.plain, rpc: &t.rpc, inline: true, plain: true}
	m.rpcErr = m.rpc.Decode(m.data)
	t.plain = rpcrdma.Header{XID: m.rpc.XID, Vers: rpcrdma.Version, Proc: rpcrdma.Msg}
	if m.rpc.Length < 8 || m.rpc.Type > oncrpc.Reply {
		o.Word = record.Opt[uint32]{}
		switch where := (rdma.Where{At: o.First, AtFault: record.Some(m.side)}); {
		case !m.captured():
			cs.doubts.halfRead[m.side] = true
		case m.rpc.Length < 8:
			cs.report(violation{rule: rule.RPCRecordTruncated, where: where}, "an RPC record of %d bytes is too short for the header of an RPC message", o.Length)
		default:
			cs.report(violation{rule: rule.RPCHeaderMalformed, where: where}, "%v", m.rpcErr)
		}
		return
	}
	if m.rpc.Type == oncrpc.Call {
		if cs.messages.transactions == 0 && m.rpc.Length >= 16 && nfs.IsCallback(m.rpc.Program) { // NFS 4.0: the server opened the connection
			cs.link.SetClient(m.side.Other())
		}
		cs.call(&m)
	} else {
		cs.reply(&m)
	}
	t.mapMessage(&m)
	if t.options.Tree && m.whole && !t.Undescribed {
		t.keepSend(&m)
	}
}

// mayRepeat reports whether a Call may be a retransmission of an outstanding Call with its XID, as far as both were
// captured: RPC permits that (RFC 5531 s.4), and the transports need not be unreliable.
func mayRepeat(old *txn, m *message) bool {
	if size, known := old.call.SendBytes.Get(); known && m.whole && int64(size) != m.Length {
		return false
	}
	p := &old.procedure
	return !p.known || m.rpc.Length < 24 || p.program == m.rpc.Program && p.version == m.rpc.Version && p.procedure == m.rpc.Procedure
}

// noteSentAgain records that RPC, and not the transport, retransmitted a message of a transaction.
func noteSentAgain(x *txn, m *message, of record.EventKind) {
	part := partCall
	if of == record.EventReply {
		part = partReply
	}
	m.Tag = x.tag(part)
	x.rec.Retransmitted[m.side]++
	e := x.event(m.Last, record.EventRetransmit, x.role(m.side))
	e.Of, e.Packets, e.LastPacket = of, record.Some[int64](1), record.Some(m.Last.Packet)
}

// answersAgain reports whether a Reply belongs to a transaction that has its Reply, because the server answered
// a retransmitted Call, too.
func answersAgain(cs *connState, m *message) bool {
	side, xid := m.side.Other(), m.rpc.XID
	if cs.open[side][xid] != nil {
		return false
	}
	n := 0
	for x := cs.finished.last; x != nil && n < lookAt; x, n = x.prev, n+1 {
		if x.side == side && uint32(x.rec.XID) == xid && x.state.hasReply() && x.rec.Call != nil && x.answer.SendBytes == record.SomeIf(int(m.Length), m.whole) {
			noteSentAgain(x, m, record.EventReply)
			return true
		}
	}
	return false
}

// callAccepted returns when the Call that a Reply answers was accepted, and whether the capture shows it. Over
// UDP, the Reply says nothing about other Calls.
func callAccepted(cs *connState, x *txn, m *message) (d rdma.Delivery, known bool) {
	if cs.link.Setup().Transport != rdma.UDPTransport {
		return cs.link.Accepted(x.side, x.callSeq, m.First)
	}
	arrived, seen := x.call.Delivered.Get()
	at := record.Stamp{Time: x.call.Time, Packet: x.call.Packet}
	if seen {
		at.Time = arrived
	}
	return rdma.Delivery{At: at, Earliest: at, Certain: seen || x.rec.Retransmitted == [2]uint32{}}, true
}

// checkPlainReply checks a Reply over TCP or UDP.
func checkPlainReply(cs *connState, x *txn, m *message, withoutCall bool) {
	checkPlainHeader(cs, x, m)
	c := x.checker(m.Last).attributedTo(m.side)
	switch {
	case !withoutCall:
		noteAnswered(cs, x, m)
		checkAnswered(c, m.header)
	case !wasRepeated(cs, m.side.Other(), m.rpc.XID):
		c.report(rule.ReplyWithoutCall, "no Call in flight has this XID")
	}
}

// checkPlainHeader checks the RPC header of a message.
func checkPlainHeader(cs *connState, x *txn, m *message) {
	c := x.checker(m.First).attributedTo(m.side)
	switch {
	case m.rpcErr == nil:
		c.checkRPC(m.rpc)
	case !m.captured():
	case errors.Is(m.rpcErr, oncrpc.ErrTruncated):
		c.report(rule.RPCRecordTruncated, "an RPC record of %d bytes ends inside the header of its message: %v", m.Length, m.rpcErr)
	default:
		c.report(rule.RPCHeaderMalformed, "%v", m.rpcErr)
	}
}
