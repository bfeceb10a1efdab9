package synth

import (
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The work requests that both transports have.

// Send sends a message, cut into packets.
func (s *Side) Send(message []byte, options ...Option) []*Frame {
	w := s.Conn.wire
	mark := len(w.Frames)
	h := s.Conn.how(options)
	if s.Conn.iwarp {
		s.ddpSend(message, &h)
	} else {
		s.roceSend(message, &h)
	}
	return w.since(mark)
}

// Write writes into the peer's memory.
func (s *Side) Write(handle uint32, offset uint64, data []byte, options ...Option) []*Frame {
	w := s.Conn.wire
	mark := len(w.Frames)
	h := s.Conn.how(options)
	if s.Conn.iwarp {
		s.ddpWrite(handle, offset, data, &h)
	} else {
		s.roceWrite(handle, offset, data, &h)
	}
	return w.since(mark)
}

// Read is an RDMA Read whose request was sent.
type Read struct {
	By      *Side
	Handle  uint32
	Offset  uint64
	Length  uint32
	PSN     uint32 // RoCE: of the request and the first response
	Sink    uint32 // iWARP: where the responses go
	Request *Frame

	size      int
	message   uint32
	transport rocev2.Transport
}

// Read reads the peer's memory: request and responses. Data is what is found
// there.
func (s *Side) Read(handle uint32, offset uint64, data []byte, options ...Option) []*Frame {
	mark := len(s.Conn.wire.Frames)
	s.ReadRequest(handle, offset, uint32(len(data)), options...).Respond(data)
	return s.Conn.wire.since(mark)
}

// ReadRequest sends the request of an RDMA Read alone. With AtPSN it is one that
// is repeated, or resumed.
func (s *Side) ReadRequest(handle uint32, offset uint64, length uint32, options ...Option) *Read {
	w := s.Conn.wire
	h := s.Conn.how(options)
	r := &Read{By: s, Handle: handle, Offset: offset, Length: length, size: h.size, transport: h.transport}
	if s.Conn.iwarp {
		s.ddpRead(r)
	} else {
		s.roceRead(r, &h)
	}
	r.message = s.Messages
	if w.Sink == nil {
		r.Request = w.Last()
	}
	return r
}

// Respond sends all responses to a Read.
func (r *Read) Respond(data []byte) []*Frame { return r.RespondPackets(data, 0, 1<<30) }

// RespondPackets sends some of the responses, packets from <= i < to of those
// that all of the data takes.
func (r *Read) RespondPackets(data []byte, from, to int) []*Frame {
	w := r.By.Conn.wire
	mark := len(w.Frames)
	if r.By.Conn.iwarp {
		r.By.Peer.ddpRespond(r, data, from, to)
	} else {
		r.By.Peer.roceRespond(r, data, from, to)
	}
	return w.since(mark)
}

// Ack acknowledges all that the peer has sent: an Acknowledge packet, or a TCP
// segment without data. AtPSN acknowledges up to another PSN.
func (s *Side) Ack(options ...Option) *Frame {
	if s.Conn.iwarp {
		s.Acked = s.Peer.Sequence
		return s.TCP(tcpACK, nil)
	}
	return s.acknowledge(ack, s.Peer.NextPSN-1, s.Peer.Messages, options)
}

// Refuse refuses the peer's last operation for good, as one does that touches
// memory which is not exposed: a NAK, "remote access error", or a Terminate,
// "invalid STag".
func (s *Side) Refuse() *Frame {
	if s.Conn.iwarp {
		return s.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 1, Code: 0, HasLength: true, HasDDP: true})
	}
	return s.Nak(rocev2.NakRemoteAccessError)
}

// NotReady says that no receive was posted for the peer's last Send: an RNR NAK,
// after which it is to be repeated, or a Terminate, "no buffer available".
func (s *Side) NotReady() *Frame {
	if s.Conn.iwarp {
		return s.Terminate(iwarp.TerminateHeader{Layer: 1, Type: 2, Code: 2, HasLength: true, HasDDP: true})
	}
	return s.RNR(1)
}
