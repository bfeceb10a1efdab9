package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"

	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Positions and contents of packets, for programs that rewrite captures. The content of
// each packet or FPDU is reported once, with its position in its direction;
// retransmissions have the same position.

// contents reports the positions and the contents of packets and FPDUs.
type contents struct {
	tracker *Tracker

	payload   wiremap.Payload // of the current packet or FPDU
	tag       Tag             // of the memory that the payload belongs to
	streamIDs int64
}

// offsets converts sequence numbers of a flow to positions that do not wrap.
type offsets struct {
	id    int64
	ref   uint32 // a sequence number; at is its position, from which nearby positions are computed
	at    int64
	known bool
}

// newStreamOffsets returns the offsets of a new flow, nil if no positions are wanted. A
// flow has two IDs: one for its requests, and one for the responses to them.
func (ct *contents) newStreamOffsets() *offsets {
	if !ct.wantsOffsets() {
		return nil
	}
	ct.streamIDs += 2
	return &offsets{id: ct.streamIDs - 1}
}

// wantsOffsets reports whether positions are used.
func (ct *contents) wantsOffsets() bool { return ct.tracker.Offsets || ct.tracker.Payload != nil }

// requests returns the position of a request of the flow, or of a byte of its stream.
func (l *offsets) requests(c order.Circle, seq uint32) wiremap.StreamOffset {
	if l == nil {
		return wiremap.StreamOffset{}
	}
	if !l.known {
		l.ref, l.known = seq, true
	}
	return wiremap.StreamOffset{StreamID: l.id, At: l.at + int64(c.Delta(seq, l.ref))}
}

// responses returns the position of a response to a request of the flow.
func (l *offsets) responses(psn uint32) wiremap.StreamOffset {
	p := l.requests(order.PSNs, psn)
	if l != nil {
		p.StreamID++
	}
	return p
}

// advance notes the latest sequence number of the flow.
func (l *offsets) advance(c order.Circle, seq uint32) {
	if l == nil {
		return
	}
	l.at, l.ref = l.requests(c, seq).At, seq
}

// offsetOf returns the position of a packet of the flow.
func (f *flow) offsetOf(p *rocev2.Packet) (at wiremap.StreamOffset) {
	if p.Opcode.Info().Request || p.Opcode.Transport() == rocev2.UC {
		return f.offsets.requests(order.PSNs, p.PSN)
	}
	if asker := f.peer(); asker != nil {
		at = asker.offsets.responses(p.PSN)
	}
	return at
}

// beginPayloadPacket starts the content report of a packet of InfiniBand's transport.
func (ct *contents) beginPayloadPacket(at wiremap.StreamOffset) {
	if ct.tracker.Payload != nil {
		ct.payload, ct.tag = wiremap.Payload{StreamOffset: at, Count: 1}, 0
	}
}

// notePayload sets which bytes of which operation the packet or FPDU carries.
func (ct *contents) notePayload(o *Operation, offset uint64, size int) {
	c := &ct.payload
	if c.StreamID == 0 {
		return
	}
	c.Offset, c.Bytes = offset, size
	if o.Kind == Send {
		c.Send = o.Number
	} else {
		c.Handle, ct.tag = o.Handle, o.Tag
	}
}

// reportPayload ends and passes the content report of the current packet or FPDU.
func (ct *contents) reportPayload() {
	c := &ct.payload
	if c.StreamID != 0 && (c.Send != 0 || ct.tag != 0 || c.Frame != nil) {
		ct.tracker.Payload(c, ct.tag)
	}
	c.StreamID = 0
}

// beginPart starts the content report of a part of a record of RPC over TCP, of size bytes.
func (ct *contents) beginPart(at wiremap.StreamOffset, size int) {
	if ct.tracker.Payload != nil {
		ct.begin(wiremap.Payload{StreamOffset: at, Count: int64(size), Record: true})
	}
}

// reportMark reports a record mark at a position.
func (ct *contents) reportMark(at wiremap.StreamOffset, mark []byte) {
	if ct.tracker.Payload != nil {
		ct.tracker.Payload(&wiremap.Payload{StreamOffset: at, Count: int64(len(mark)), Record: true, Frame: mark}, 0)
	}
}

// begin starts the content report of an FPDU.
func (ct *contents) begin(p wiremap.Payload) { ct.payload, ct.tag = p, 0 }

// reportPayloadMPA reports an MPA request or reply at a position.
func (ct *contents) reportPayloadMPA(at wiremap.StreamOffset, frame []byte) {
	if ct.tracker.Payload != nil {
		ct.tracker.Payload(&wiremap.Payload{StreamOffset: at, Count: int64(len(frame)), Frame: frame, MPA: true}, 0)
	}
}
