package synth

import (
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/rocev2"
)

// transport sends the work requests of a side.
type transport interface {
	send(message []byte, h *how)
	write(handle uint32, offset uint64, data []byte, h *how)
	read(r *Read, h *how)
	// respond sends the response packets from <= i < to of a Read by the peer.
	respond(r *Read, data []byte, from, to int)
}

// The methods below are work requests that both transports have.

// Send sends a message, split into packets.
func (s *Side) Send(message []byte, options ...Option) []*Frame {
	w := s.Conn.Wire
	mark := len(w.Frames)
	h := s.Conn.how(options)
	s.transport.send(message, &h)
	return w.since(mark)
}

// Write writes data to the peer's memory.
func (s *Side) Write(handle uint32, offset uint64, data []byte, options ...Option) []*Frame {
	w := s.Conn.Wire
	mark := len(w.Frames)
	h := s.Conn.how(options)
	s.transport.write(handle, offset, data, &h)
	return w.since(mark)
}

// Read is an RDMA Read whose request was sent.
type Read struct {
	By      *Side
	Handle  uint32
	Offset  uint64
	Length  uint32
	PSN     uint32 // RoCE: PSN of the request and of the first response
	Sink    uint32 // iWARP: STag of the memory that the responses go to
	Request *Frame

	size      int
	message   uint32
	transport rocev2.Transport
}

// Read reads from the peer's memory: it sends the request and the peer's responses. Data is
// the content of that memory.
func (s *Side) Read(handle uint32, offset uint64, data []byte, options ...Option) []*Frame {
	mark := len(s.Conn.Wire.Frames)
	s.ReadRequest(handle, offset, uint32(len(data)), options...).Respond(data)
	return s.Conn.Wire.since(mark)
}

// ReadRequest sends only the request of an RDMA Read. With AtPSN it is a retransmission, or
// a request for the rest of the data.
func (s *Side) ReadRequest(handle uint32, offset uint64, length uint32, options ...Option) *Read {
	w := s.Conn.Wire
	h := s.Conn.how(options)
	r := &Read{By: s, Handle: handle, Offset: offset, Length: length, size: h.size, transport: h.transport}
	s.transport.read(r, &h)
	r.message = s.Messages
	if w.Sink == nil {
		r.Request = w.Last()
	}
	return r
}

// Respond sends all responses to a Read.
func (r *Read) Respond(data []byte) []*Frame { return r.RespondPackets(data, 0, 1<<30) }

// RespondPackets sends the response packets from <= i < to of all packets that the data
// needs.
func (r *Read) RespondPackets(data []byte, from, to int) []*Frame {
	w := r.By.Conn.Wire
	mark := len(w.Frames)
	r.By.Peer.transport.respond(r, data, from, to)
	return w.since(mark)
}

// Ack acknowledges everything that the peer has sent, with an Acknowledge packet or a TCP
// segment without data. With AtPSN it acknowledges up to another PSN.
func (s *Side) Ack(options ...Option) *Frame {
	if s.Conn.iwarp {
		s.Acked = s.Peer.Sequence
		return s.TCP(tcpACK, nil)
	}
	return roce{s}.acknowledge(ack, s.Peer.NextPSN-1, s.Peer.Messages, options)
}

// Refuse rejects the peer's last operation as an access to memory that is not exposed: with
// a NAK, "remote access error", or a Terminate, "invalid STag".
func (s *Side) Refuse() *Frame {
	if s.Conn.iwarp {
		return s.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 1, Code: 0, HasLength: true, HasDDP: true})
	}
	return s.Nak(rocev2.NakRemoteAccessError)
}

// NotReady reports that no receive was posted for the peer's last Send: with an RNR NAK, after
// which the peer retransmits, or with a Terminate, "no buffer available".
func (s *Side) NotReady() *Frame {
	if s.Conn.iwarp {
		return s.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 2, Code: 2, HasLength: true, HasDDP: true})
	}
	return s.RNR(1)
}
