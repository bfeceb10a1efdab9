package dissect

import (
	"errors"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Messages: a whole Send is an RPC-over-RDMA message, or somebody else's
// business.

// message is a whole Send.
type message struct {
	data       []byte // what was captured, from its start
	length     int    // bytes on the wire
	whole      bool   // length is known: no packet of it was lost
	invalidate *uint32
	first      stamp
	last       stamp
	psn        uint32 // of its last packet
}

// message takes a whole Send: an RPC-over-RDMA message, or somebody else's
// business.
func (d *Dissector) message(f *flow, m *message) {
	c := f.conn
	if !c.isRPC {
		if !c.undecided || !d.recognise(f, m) {
			return
		}
	}
	h := &d.header
	err := h.Decode(m.data)
	if h.Length < 4 {
		d.find(ruleHeaderTruncated, c, nil, nil, m.first, "Send of %d bytes is too short for an XID", m.length)
		return
	}
	rpc := &d.rpc
	*rpc = oncrpc.Header{}
	rpcErr := oncrpc.ErrTruncated
	var payload []byte
	inline := err == nil && h.Vers == rpcrdma.Version && (h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.MsgP)
	if inline {
		payload = m.data[h.Length:]
		if h.Proc == rpcrdma.Msg {
			rpcErr = rpc.Decode(payload)
		}
	}
	if c.client < 0 {
		c.client = d.guessClient(f, h, rpc, inline)
	}
	if d.isCall(f, h, rpc, inline && rpc.Length >= 8, err) {
		d.call(f, m, h, err, rpc, rpcErr, payload)
	} else {
		d.reply(f, m, h, err, rpc, rpcErr, payload)
	}
}

// recognise decides whether the Sends of a connection are RPC-over-RDMA: when
// neither service ID nor private data told.
func (d *Dissector) recognise(f *flow, m *message) bool {
	c := f.conn
	if looksLikeRPC(&d.header, &d.rpc, m) {
		c.isRPC, c.undecided, c.record.UpperLayer = true, false, upperRPC
		return true
	}
	if c.strangers++; c.strangers >= 64 {
		c.undecided = false
	}
	return false
}

// looksLikeRPC is strict: every word that can be wrong has to be right.
func looksLikeRPC(h *rpcrdma.Header, rpc *oncrpc.Header, m *message) bool {
	if err := h.Decode(m.data); err != nil || h.Vers != rpcrdma.Version || h.XID == 0 || h.Credits > 1<<16 {
		return false
	}
	switch h.Proc {
	case rpcrdma.Msg:
		err := rpc.Decode(m.data[h.Length:])
		if err != nil && !(errors.Is(err, oncrpc.ErrTruncated) && len(m.data) < m.length) || rpc.Length < 12 || rpc.XID != h.XID {
			return false
		}
		return rpc.Type == oncrpc.Reply || rpc.RPCVersion == 2
	case rpcrdma.NoMsg:
		return h.HasChunks() && m.length == h.Length
	case rpcrdma.Error:
		return m.length == h.Length
	}
	return false
}

// guessClient says which side is the client when the handshake was missed: the
// one whose Calls are not to a callback program, and who exposes memory.
func (d *Dissector) guessClient(f *flow, h *rpcrdma.Header, rpc *oncrpc.Header, inline bool) int {
	switch {
	case !inline:
		if len(h.Reads) > 0 {
			return f.side
		}
		if h.Proc == rpcrdma.NoMsg && h.HasReply {
			return other(f.side)
		}
		return -1
	case rpc.Type == oncrpc.Call && rpc.Length >= 16:
		if nfs.IsCallback(rpc.Program) {
			return other(f.side)
		}
		return f.side
	case rpc.Type == oncrpc.Reply && h.HasChunks():
		return other(f.side)
	}
	return -1
}

// isCall says whether a message is a Call. The RPC header tells; where there is
// none, an open Call of the other side with this XID makes it a Reply; and else
// the client calls.
func (d *Dissector) isCall(f *flow, h *rpcrdma.Header, rpc *oncrpc.Header, hasRPC bool, err error) bool {
	c := f.conn
	if hasRPC {
		return rpc.Type == oncrpc.Call
	}
	if h.Length >= rpcrdma.FixedLen && h.Proc == rpcrdma.Error {
		return false
	}
	if err == nil && h.Proc == rpcrdma.NoMsg && len(h.Reads) > 0 {
		return true
	}
	if c.open[other(f.side)][h.XID] != nil {
		return false
	}
	return f.side == c.client || c.client < 0
}
