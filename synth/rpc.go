package synth

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// Zero stands for a 0 on the wire in fields whose zero value is replaced by a default.
const Zero uint32 = 0xffffffff

// credits is the default number of credits that a Call requests and a Reply grants.
const credits = 32

func usual(v, otherwise uint32) uint32 {
	if v == Zero {
		return 0
	}
	return cmp.Or(v, otherwise)
}

// programNFS is the program number of NFS. programCallback is the number that the client
// chooses for its callback program.
const (
	programNFS      = 100003
	programCallback = 0x40000000
)

// Mem returns a segment of a requester's memory. Each handle has its own address range.
func Mem(handle, length uint32) rpcrdma.Segment {
	return rpcrdma.Segment{Handle: handle, Length: length, Offset: uint64(handle) << 24}
}

// Chunk returns a Write chunk or Reply chunk.
func Chunk(segments ...rpcrdma.Segment) []rpcrdma.Segment {
	return append([]rpcrdma.Segment{}, segments...) // not nil, even if it is empty
}

// ReadChunk returns a Read chunk: segments with the same Position.
func ReadChunk(position uint32, segments ...rpcrdma.Segment) (list []rpcrdma.ReadSegment) {
	for _, s := range segments {
		list = append(list, rpcrdma.ReadSegment{Position: position, Segment: s})
	}
	return list
}

// Call is an RPC Call and its RPC-over-RDMA header. Zero fields are replaced by their
// usual values when the Call is sent. Any field may be set to an invalid value.
type Call struct {
	XID        uint32       // 0 for the next XID of the Wire
	Vers       uint32       // rdma_vers; 0 for 1; 2 selects the layout of the remote invalidation draft
	Credits    uint32       // requested credits; 0 for 32
	Proc       rpcrdma.Proc // RDMA_MSG
	Reads      []rpcrdma.ReadSegment
	Writes     [][]rpcrdma.Segment
	ReplyChunk []rpcrdma.Segment // nil for none
	InvHandle  uint32            // rdma_inv_handle, in version 2 only

	RPCXID                      uint32 // XID in the RPC message; 0 for XID
	Program, Version, Procedure uint32 // zero program and version stand for NFS version 3
	Cred, Verf                  oncrpc.Auth
	Args                        XDR
	RPC                         *XDR   // if not nil, the RPC message, which replaces RPCXID to Args
	Tail                        []byte // more bytes at the end of the Send
}

// Offer returns the Call with one more Write chunk.
func (c Call) Offer(segments ...rpcrdma.Segment) Call {
	c.Writes = append(slices.Clip(c.Writes), segments)
	return c
}

// OfferReply returns the Call with a Reply chunk.
func (c Call) OfferReply(segments ...rpcrdma.Segment) Call {
	c.ReplyChunk = Chunk(segments...)
	return c
}

// Reduce returns the Call with its DDP-eligible data items in Read chunks of one segment
// each. Only as many items are reduced as there are handles.
func (c Call) Reduce(handles ...uint32) Call {
	c.Args = c.Args.reduce(len(handles))
	m := c.Message()
	for i, handle := range handles {
		c.Reads = append(slices.Clip(c.Reads), ReadChunk(m.Position(i), Mem(handle, uint32(len(m.Items[i].Data))))...)
	}
	return c
}

// Long returns the Call as a Long Call: everything that is not reduced is in a Position Zero
// Read chunk of one segment. Call Reduce before Long.
func (c Call) Long(handle uint32) Call {
	c.Proc = rpcrdma.NoMsg
	c.Reads = append(ReadChunk(0, Mem(handle, uint32(len(c.Message().Inline())))), c.Reads...)
	return c
}

// Message returns the RPC message: the Payload stream with its data items.
func (c Call) Message() XDR {
	if c.RPC != nil {
		return *c.RPC
	}
	program, version := usual(c.Program, programNFS), usual(c.Version, 3)
	return XDR{}.Word(cmp.Or(c.RPCXID, c.XID), uint32(oncrpc.Call), 2, program, version, c.Procedure).auth(c.Cred).auth(c.Verf).Append(c.Args)
}

// Bytes returns the payload of the Send.
func (c Call) Bytes() []byte {
	h := rpcrdma.Header{XID: c.XID, Vers: usual(c.Vers, 1), Credits: usual(c.Credits, credits), Proc: c.Proc, InvHandle: c.InvHandle, Reads: c.Reads}
	offer(&h, c.Writes, c.ReplyChunk)
	return message(h, c.Message(), c.Tail)
}

// Reply is an RPC Reply and its RPC-over-RDMA header. Zero fields are replaced by their
// usual values when the Reply is sent. Any field may be set to an invalid value.
// [Reply.To] sets the fields that a healthy responder copies from the Call.
type Reply struct {
	XID        uint32       // 0 for the XID of the peer's last Call
	Vers       uint32       // rdma_vers; 0 for 1; 2 selects the layout of the remote invalidation draft
	Credits    uint32       // granted credits; 0 for 32
	Proc       rpcrdma.Proc // RDMA_MSG
	Reads      []rpcrdma.ReadSegment
	Writes     [][]rpcrdma.Segment // with returned lengths
	ReplyChunk []rpcrdma.Segment   // nil for none
	InvHandle  uint32              // rdma_inv_handle, in version 2 only
	Invalidate uint32              // if not 0, the Reply is a Send With Invalidate of this handle

	Err       rpcrdma.ErrCode // error code of an RDMA_ERROR
	Low, High uint32          // version range of an ERR_VERS

	RPCXID  uint32   // XID in the RPC message; 0 for XID
	Accept  uint32   // accept state
	Deny    []uint32 // if not nil, the words after MSG_DENIED, which replace Verf, Accept and Results
	Verf    oncrpc.Auth
	Results XDR
	RPC     *XDR   // if not nil, the RPC message, which replaces RPCXID to Results
	Tail    []byte // more bytes at the end of the Send
}

// ErrChunk returns an RDMA_ERROR that rejects the chunks of a Call.
func ErrChunk() Reply { return Reply{Proc: rpcrdma.Error, Err: rpcrdma.ErrChunk} }

// ErrVers returns an RDMA_ERROR that rejects a version and gives the supported range.
func ErrVers(low, high uint32) Reply {
	return Reply{Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: low, High: high}
}

// Invalidating returns the Reply with Invalidate set, so that it is sent With Invalidate.
func (r Reply) Invalidating(handle uint32) Reply {
	r.Invalidate = handle
	return r
}

// Long returns the Reply as a Long Reply, in the Reply chunk. Call Long before To.
func (r Reply) Long() Reply {
	r.Proc = rpcrdma.NoMsg
	return r
}

// To returns the Reply to a Call as a healthy responder fills it in: with the XID of the
// Call, a verifier of RPCSEC_GSS if its credential is one and the Reply has none, its Write
// chunks with the data items in them, and its Reply chunk, which a Long Reply fills.
func (r Reply) To(c Call) Reply {
	r.XID, r.Vers, r.InvHandle = cmp.Or(r.XID, c.XID), cmp.Or(r.Vers, c.Vers), c.InvHandle
	if r.Proc == rpcrdma.Error {
		return r
	}
	if c.Cred.Flavor == oncrpc.AuthRPCSECGSS && r.Verf.Flavor == oncrpc.AuthNone {
		r.Verf = oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: make([]byte, 28)}
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

// filled returns a chunk with the returned lengths for size bytes: each segment is filled
// before the next one. The last segment gets the remainder, even if it is too long.
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

// Message returns the RPC message: the Payload stream with its data items.
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

// Bytes returns the payload of the Send.
func (r Reply) Bytes() []byte {
	h := rpcrdma.Header{
		XID: r.XID, Vers: usual(r.Vers, 1), Credits: usual(r.Credits, credits), Proc: r.Proc, Direction: 1, InvHandle: r.InvHandle, Reads: r.Reads,
		Err: r.Err, VersLow: r.Low, VersHigh: r.High,
	}
	offer(&h, r.Writes, r.ReplyChunk)
	return message(h, r.Message(), r.Tail)
}

// offer sets the Write list and the Reply chunk of a header.
func offer(h *rpcrdma.Header, writes [][]rpcrdma.Segment, reply []rpcrdma.Segment) {
	for _, chunk := range writes {
		h.Writes = append(h.Writes, chunk...)
		h.WriteEnds = append(h.WriteEnds, len(h.Writes))
	}
	h.Reply, h.HasReply = reply, reply != nil
}

// message returns an encoded header, and the RPC message after it if the procedure carries
// one. The header has the layout of version 1 whatever version it names, except that
// version 2 has the layout of the remote invalidation draft (s.5.3).
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

// AuthSys returns a credential with a machine name, a user and a group.
func AuthSys(uid, gid uint32) oncrpc.Auth {
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: XDR{}.Word(1).String("client").Word(uid, gid, 0).Bytes}
}

// GSS returns an RPCSEC_GSS credential for a data exchange.
func GSS(service oncrpc.Service, sequence uint32) oncrpc.Auth {
	return oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: XDR{}.Word(1, 0, sequence, uint32(service)).Opaque([]byte{1, 2, 3, 4}).Bytes}
}

// Call sends only a Call, without the RDMA Reads and the Reply that follow it.
func (s *Side) Call(c Call, options ...Option) []*Frame {
	c.XID = s.number32(c.XID)
	return s.Send(c.Bytes(), options...)
}

// number32 returns the XID of a Call. If xid is 0, it is the next XID of the Wire.
func (s *Side) number32(xid uint32) uint32 {
	if xid == 0 {
		s.Conn.Wire.xid++
		xid = s.Conn.Wire.xid
	}
	s.lastXID = xid
	return xid
}

// Reply sends only a Reply, without the RDMA Writes that precede it.
func (s *Side) Reply(r Reply, options ...Option) []*Frame {
	r.XID = cmp.Or(r.XID, s.Peer.lastXID)
	if r.Invalidate != 0 {
		options = append(slices.Clip(options), Invalidate(r.Invalidate))
	}
	return s.Send(r.Bytes(), options...)
}

// Pull does the RDMA Reads of a responder for a Call: it reads all segments of the Call's
// Read chunks.
func (s *Side) Pull(c Call, options ...Option) []*Frame {
	mark := len(s.Conn.Wire.Frames)
	c.XID = cmp.Or(c.XID, s.Peer.lastXID)
	m := c.Message()
	left := map[uint32][]byte{} // of each Read chunk, by Position
	for _, r := range c.Reads {
		data, begun := left[r.Position]
		if !begun {
			data = m.at(r.Position, c.Proc == rpcrdma.NoMsg)
		}
		var piece []byte
		if piece, left[r.Position] = take(data, r.Length); len(piece) > 0 {
			s.Read(r.Handle, r.Offset, piece, options...)
		}
	}
	return s.Conn.Wire.since(mark)
}

// at returns the data of a Read chunk with that Position, or nil if no item begins there.
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

// take splits data after n bytes. If data is shorter, piece is padded with zeros.
func take(data []byte, n uint32) (piece, rest []byte) {
	if int(n) <= len(data) {
		return data[:n], data[n:]
	}
	return append(slices.Clip(data), make([]byte, int(n)-len(data))...), nil
}

// Push does the RDMA Writes of a responder for a Reply: it writes as many bytes to each
// segment as the Reply's returned lengths say.
func (s *Side) Push(r Reply, options ...Option) []*Frame {
	mark := len(s.Conn.Wire.Frames)
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
	return s.Conn.Wire.since(mark)
}

// fill writes data to the segments of a chunk, up to their lengths.
func (s *Side) fill(chunk []rpcrdma.Segment, data []byte, options []Option) {
	for _, segment := range chunk {
		var piece []byte
		if piece, data = take(data, segment.Length); len(piece) > 0 {
			s.Write(segment.Handle, segment.Offset, piece, options...)
		}
	}
}

// RPC sends a complete healthy exchange that this side starts: the Call, the RDMA Reads and
// Writes that it asks for, the Reply, and the acknowledgements of both.
func (s *Side) RPC(c Call, r Reply) []*Frame {
	mark := len(s.Conn.Wire.Frames)
	c.XID = s.number32(c.XID)
	r = r.To(c)
	s.Call(c)
	s.Peer.Ack()
	s.Peer.Pull(c)
	s.Peer.Push(r)
	s.Peer.Reply(r)
	s.Ack()
	return s.Conn.Wire.since(mark)
}

// RPC is the [Side.RPC] of the client.
func (c *Conn) RPC(call Call, reply Reply) []*Frame { return c.Client.RPC(call, reply) }

// Null returns the NULL Call of NFS.
func Null() Call { return Call{} }

// NullReply returns the Reply to a NULL Call of any program.
func NullReply() Reply { return Reply{} }
