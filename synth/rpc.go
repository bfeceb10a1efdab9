package synth

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Zero is a 0 on the wire, in fields whose 0 means that the usual value is
// filled in.
const Zero uint32 = 0xffffffff

// credits are what a Call asks for and a Reply grants.
const credits = 32

func usual(v, otherwise uint32) uint32 {
	if v == Zero {
		return 0
	}
	return cmp.Or(v, otherwise)
}

// programNFS is NFS, and programCallback what a client calls its callback
// program.
const (
	programNFS      = 100003
	programCallback = 0x40000000
)

// Mem is a piece of a requester's memory, at an address of its own.
func Mem(handle, length uint32) rpcrdma.Segment {
	return rpcrdma.Segment{Handle: handle, Length: length, Offset: uint64(handle) << 24}
}

// Chunk is a Write or Reply chunk.
func Chunk(segments ...rpcrdma.Segment) []rpcrdma.Segment {
	return append([]rpcrdma.Segment{}, segments...) // there is one, though it may be empty
}

// ReadChunk is a Read chunk: segments of one Position.
func ReadChunk(position uint32, segments ...rpcrdma.Segment) (list []rpcrdma.ReadSegment) {
	for _, s := range segments {
		list = append(list, rpcrdma.ReadSegment{Position: position, Segment: s})
	}
	return list
}

// Call is a Call. Of what is zero, the usual is filled in when it is sent; any
// field may be wrong.
type Call struct {
	XID        uint32       // the next of the Wire when 0
	Vers       uint32       // rdma_vers; 1 when 0; with 2 the form of the remote invalidation draft
	Credits    uint32       // asked for; 32 when 0
	Proc       rpcrdma.Proc // RDMA_MSG
	Reads      []rpcrdma.ReadSegment
	Writes     [][]rpcrdma.Segment
	ReplyChunk []rpcrdma.Segment // none when nil
	InvHandle  uint32            // rdma_inv_handle, version 2 alone

	RPCXID                      uint32 // in the RPC message; XID when 0
	Program, Version, Procedure uint32 // NFS version 3 when 0
	Cred, Verf                  oncrpc.Auth
	Args                        XDR
	RPC                         *XDR   // the RPC message, in place of these
	Tail                        []byte // what the Send carries behind it all
}

// Offer is the Call with one more Write chunk.
func (c Call) Offer(segments ...rpcrdma.Segment) Call {
	c.Writes = append(slices.Clip(c.Writes), segments)
	return c
}

// OfferReply is the Call with a Reply chunk.
func (c Call) OfferReply(segments ...rpcrdma.Segment) Call {
	c.ReplyChunk = Chunk(segments...)
	return c
}

// Reduce is the Call with its DDP-eligible data items in Read chunks, of one
// segment each.
func (c Call) Reduce(handles ...uint32) Call {
	c.Args = c.Args.reduce(len(handles))
	m := c.Message()
	for i, handle := range handles {
		c.Reads = append(slices.Clip(c.Reads), ReadChunk(m.Position(i), Mem(handle, uint32(len(m.Items[i].Data))))...)
	}
	return c
}

// Long is a Long Call: all that is not reduced in a Position Zero Read chunk, of
// one segment. Reduce comes before it.
func (c Call) Long(handle uint32) Call {
	c.Proc = rpcrdma.NoMsg
	c.Reads = append(ReadChunk(0, Mem(handle, uint32(len(c.Message().Inline())))), c.Reads...)
	return c
}

// Message is the RPC message: the Payload stream, with its data items.
func (c Call) Message() XDR {
	if c.RPC != nil {
		return *c.RPC
	}
	program, version := usual(c.Program, programNFS), usual(c.Version, 3)
	return XDR{}.Word(cmp.Or(c.RPCXID, c.XID), uint32(oncrpc.Call), 2, program, version, c.Procedure).auth(c.Cred).auth(c.Verf).Append(c.Args)
}

// Bytes is what the Send carries.
func (c Call) Bytes() []byte {
	h := rpcrdma.Header{XID: c.XID, Vers: usual(c.Vers, 1), Credits: usual(c.Credits, credits), Proc: c.Proc, InvHandle: c.InvHandle, Reads: c.Reads}
	offer(&h, c.Writes, c.ReplyChunk)
	return message(h, c.Message(), c.Tail)
}

// Reply is a Reply. Of what is zero, the usual is filled in when it is sent; any
// field may be wrong. [Reply.To] fills in what a healthy responder takes from the
// Call.
type Reply struct {
	XID        uint32       // of the peer's last Call when 0
	Vers       uint32       // 1 when 0; with 2 the form of the remote invalidation draft
	Credits    uint32       // granted; 32 when 0
	Proc       rpcrdma.Proc // RDMA_MSG
	Reads      []rpcrdma.ReadSegment
	Writes     [][]rpcrdma.Segment // with returned lengths
	ReplyChunk []rpcrdma.Segment   // none when nil
	InvHandle  uint32              // rdma_inv_handle, version 2 alone
	Invalidate uint32              // by Send With Invalidate, when not 0

	Err       rpcrdma.ErrCode // of an RDMA_ERROR
	Low, High uint32          // and its versions

	RPCXID  uint32   // in the RPC message; XID when 0
	Accept  uint32   // accept state
	Deny    []uint32 // the words behind MSG_DENIED, in place of all from here on
	Verf    oncrpc.Auth
	Results XDR
	RPC     *XDR   // the RPC message, in place of these
	Tail    []byte // what the Send carries behind it all
}

// ErrChunk is an RDMA_ERROR that refuses chunks, ErrVers one that refuses a
// version.
func ErrChunk() Reply { return Reply{Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk} }

// ErrVers is an RDMA_ERROR that refuses a version and says which it takes.
func ErrVers(low, high uint32) Reply {
	return Reply{Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: low, High: high}
}

// Invalidating is the Reply sent With Invalidate of a handle.
func (r Reply) Invalidating(handle uint32) Reply {
	r.Invalidate = handle
	return r
}

// Long is the Reply as a Long Reply, in the Reply chunk. To comes after it.
func (r Reply) Long() Reply {
	r.Proc = rpcrdma.NoMsg
	return r
}

// To is the Reply to a Call, as a healthy responder fills it in: the XID, the
// Call's Write chunks with the data items in them, its Reply chunk, filled by a
// Long Reply.
func (r Reply) To(c Call) Reply {
	r.XID, r.Vers, r.InvHandle = cmp.Or(r.XID, c.XID), cmp.Or(r.Vers, c.Vers), c.InvHandle
	if r.Proc == rpcrdma.Error {
		return r
	}
	r.Results = r.Results.reduce(len(c.Writes))
	r.Writes = nil
	for i, chunk := range c.Writes {
		size := 0
		if i < len(r.Results.Items) {
			size = len(r.Results.Items[i].Data)
		}
		r.Writes = append(r.Writes, filled(chunk, size))
	}
	if r.ReplyChunk = nil; c.ReplyChunk != nil {
		size := 0
		if r.Proc == rpcrdma.NoMsg {
			size = len(r.Message().Inline())
		}
		r.ReplyChunk = filled(c.ReplyChunk, size)
	}
	return r
}

// filled is a chunk with the lengths that so many bytes leave: each segment full
// before the next. What does not fit is in the last.
func filled(chunk []rpcrdma.Segment, size int) []rpcrdma.Segment {
	chunk = Chunk(chunk...)
	for i := range chunk {
		n := size
		if i < len(chunk)-1 {
			n = min(n, int(chunk[i].Length))
		}
		chunk[i].Length = uint32(n)
		size -= n
	}
	return chunk
}

// Message is the RPC message: the Payload stream, with its data items.
func (r Reply) Message() XDR {
	if r.RPC != nil {
		return *r.RPC
	}
	x := XDR{}.Word(cmp.Or(r.RPCXID, r.XID), uint32(oncrpc.Reply))
	if r.Deny != nil {
		return x.Word(1).Word(r.Deny...)
	}
	return x.Word(0).auth(r.Verf).Word(r.Accept).Append(r.Results)
}

// Bytes is what the Send carries.
func (r Reply) Bytes() []byte {
	h := rpcrdma.Header{
		XID: r.XID, Vers: usual(r.Vers, 1), Credits: usual(r.Credits, credits), Proc: r.Proc, Direction: 1, InvHandle: r.InvHandle, Reads: r.Reads,
		Err: r.Err, VersLow: r.Low, VersHigh: r.High,
	}
	offer(&h, r.Writes, r.ReplyChunk)
	return message(h, r.Message(), r.Tail)
}

// offer puts the Write list and the Reply chunk into a header.
func offer(h *rpcrdma.Header, writes [][]rpcrdma.Segment, reply []rpcrdma.Segment) {
	for _, chunk := range writes {
		h.Writes = append(h.Writes, chunk...)
		h.WriteEnds = append(h.WriteEnds, len(h.Writes))
	}
	h.Reply, h.HasReply = reply, reply != nil
}

// message is a header, laid out as version 1 says whatever version it names, and
// the RPC message behind it when it is one that carries any. Version 2 has the
// layout of the remote invalidation draft (s.5.3).
func message(h rpcrdma.Header, rpc XDR, tail []byte) []byte {
	vers := h.Vers
	h.Vers, h.IsDraft = rpcrdma.Version, vers == rpcrdma.Draft
	b := h.Append(nil)
	be.PutUint32(b[4:], vers)
	if h.Proc == rpcrdma.Msg || h.Proc == rpcrdma.MsgP {
		b = append(b, rpc.Inline()...)
	}
	return append(b, tail...)
}

// auth appends a credential or verifier.
func (x XDR) auth(a oncrpc.Auth) XDR { return x.Word(uint32(a.Flavor)).Opaque(a.Body) }

// AuthSys is a credential with a machine name, a user and a group.
func AuthSys(uid, gid uint32) oncrpc.Auth {
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: XDR{}.Word(1).String("client").Word(uid, gid, 0).Bytes}
}

// GSS is an RPCSEC_GSS credential of a data exchange.
func GSS(service oncrpc.Service, sequence uint32) oncrpc.Auth {
	return oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: XDR{}.Word(1, 0, sequence, uint32(service)).Opaque([]byte{1, 2, 3, 4}).Bytes}
}

// Call sends a Call, and nothing of what follows from it.
func (s *Side) Call(c Call, options ...Option) []*Frame {
	c.XID = s.number32(c.XID)
	return s.Send(c.Bytes(), options...)
}

// number32 is the XID of a Call, the Wire's next when it has none.
func (s *Side) number32(xid uint32) uint32 {
	if xid == 0 {
		s.Conn.wire.xid++
		xid = s.Conn.wire.xid
	}
	s.lastXID = xid
	return xid
}

// Reply sends a Reply, and nothing of what goes before it.
func (s *Side) Reply(r Reply, options ...Option) []*Frame {
	r.XID = cmp.Or(r.XID, s.Peer.lastXID)
	if r.Invalidate != 0 {
		options = append(slices.Clip(options), Invalidate(r.Invalidate))
	}
	return s.Send(r.Bytes(), options...)
}

// Pull moves what a responder fetches for a Call: all segments of its Read
// chunks, by RDMA Read.
func (s *Side) Pull(c Call, options ...Option) []*Frame {
	mark := len(s.Conn.wire.Frames)
	c.XID = cmp.Or(c.XID, s.Peer.lastXID)
	m := c.Message()
	for i := 0; i < len(c.Reads); {
		position := c.Reads[i].Position
		data := m.at(position, c.Proc == rpcrdma.NoMsg)
		for ; i < len(c.Reads) && c.Reads[i].Position == position; i++ {
			var piece []byte
			piece, data = take(data, c.Reads[i].Length)
			if len(piece) > 0 {
				s.Read(c.Reads[i].Handle, c.Reads[i].Offset, piece, options...)
			}
		}
	}
	return s.Conn.wire.since(mark)
}

// at is what a Read chunk of a Position holds; nothing where no item begins.
func (x XDR) at(position uint32, long bool) []byte {
	if position == 0 && long {
		return x.Inline()
	}
	for i, item := range x.Items {
		if x.Position(i) == position {
			return item.Data
		}
	}
	return nil
}

// take cuts so many bytes off data, with zeros for those that it has not.
func take(data []byte, n uint32) (piece, rest []byte) {
	if int(n) <= len(data) {
		return data[:n], data[n:]
	}
	return append(slices.Clip(data), make([]byte, int(n)-len(data))...), nil
}

// Push moves what a responder returns in chunks: as much as the returned lengths
// of the Reply say, by RDMA Write.
func (s *Side) Push(r Reply, options ...Option) []*Frame {
	mark := len(s.Conn.wire.Frames)
	r.XID = cmp.Or(r.XID, s.Peer.lastXID)
	m := r.Message()
	for i, chunk := range r.Writes {
		var data []byte
		if i < len(m.Items) {
			data = m.Items[i].Data
		}
		s.fill(chunk, data, options)
	}
	if r.Proc == rpcrdma.NoMsg {
		s.fill(r.ReplyChunk, m.Inline(), options)
	}
	return s.Conn.wire.since(mark)
}

// fill writes data into the segments of a chunk, by their lengths.
func (s *Side) fill(chunk []rpcrdma.Segment, data []byte, options []Option) {
	for _, segment := range chunk {
		var piece []byte
		if piece, data = take(data, segment.Length); len(piece) > 0 {
			s.Write(segment.Handle, segment.Offset, piece, options...)
		}
	}
}

// RPC is a whole, healthy exchange that this side begins: the Call, the RDMA
// Reads and Writes that it asks for, the Reply, and the acknowledgements of both.
func (s *Side) RPC(c Call, r Reply) []*Frame {
	mark := len(s.Conn.wire.Frames)
	c.XID = s.number32(c.XID)
	r = r.To(c)
	s.Call(c)
	s.Peer.Ack()
	s.Peer.Pull(c)
	s.Peer.Push(r)
	s.Peer.Reply(r)
	s.Ack()
	return s.Conn.wire.since(mark)
}

// RPC is [Side.RPC] of the client.
func (c *Conn) RPC(call Call, reply Reply) []*Frame { return c.Client.RPC(call, reply) }

// Null is the NULL Call of NFS.
func Null() Call { return Call{} }

// NullReply is the Reply to any NULL Call.
func NullReply() Reply { return Reply{} }
