package describe

import (
	"encoding/binary"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
)

// RPC over TCP and UDP: record marks, and the messages that follow them.

// overTCP is the transport of RPC over TCP.
const overTCP = "TCP"

// Record is a record mark in a TCP segment.
type Record struct {
	Offset    int  // of the mark, in the frame
	Continues bool // the fragment after it is not the first one of its record
}

// describeRecords adds the record marks of a segment, and the RPC messages after them.
func (d *Describer) describeRecords(p *packet) {
	s := d.in.TCP
	messages := 0
	for _, r := range d.in.Records {
		at := r.Offset - s.Offset
		if at < 0 || at+oncrpc.RecordMarkLen > len(s.Payload) {
			continue
		}
		word := s.Payload[at : at+oncrpc.RecordMarkLen]
		mark := oncrpc.RecordMark(binary.BigEndian.Uint32(word))
		messages++
		suffix := ""
		if messages > 1 {
			suffix = "_" + strconv.Itoa(messages)
		}
		p.named(header.RecordMark.Name+suffix, &header.RecordMark, r.Offset, word)
		if r.Continues {
			p.addSummary(" | RPC fragment")
			continue
		}
		data := s.Payload[at+oncrpc.RecordMarkLen:]
		left := s.Length - at - oncrpc.RecordMarkLen // bytes of the segment after the mark, on the wire
		size := min(left, mark.Length())
		d.describePlain(p, sendPart{
			data: data[:min(len(data), size)], at: r.Offset + oncrpc.RecordMarkLen, size: size, first: true,
			last: mark.Last() && mark.Length() <= left, plain: true, suffix: suffix,
		})
	}
	if messages == 0 && s.Length > 0 {
		p.addSummary(" data")
	}
	if !d.in.Tree {
		return
	}
	for i := range d.in.Said { // messages that begin in earlier segments
		said := &d.in.Said[i]
		if said.Length < 0 {
			continue
		}
		messages++
		t := rpcMessage{data: said.Data, from: len(said.Data), asked: said.Asked, first: false, plain: true}
		if messages > 1 {
			t.suffix = "_" + strconv.Itoa(messages)
		}
		if int64(len(said.Data)) < said.Length {
			t.why = "the capture does not contain the whole message"
		}
		d.describeMessage(p, t)
	}
}

// describeDatagram adds the RPC message of a UDP datagram.
func (d *Describer) describeDatagram(p *packet) {
	l := d.in.Link
	p.addSummary("UDP ")
	p.addPorts(l)
	d.describePlain(p, sendPart{data: l.Transport, at: l.Offset, size: l.Length, first: true, last: true, plain: true})
	p.number("payload_bytes", "Payload bytes", int64(l.Length), l.Offset, len(l.Transport))
}

// describePlain adds an RPC message that has no RPC-over-RDMA header.
func (d *Describer) describePlain(p *packet, s sendPart) {
	d.noChunks()
	if len(s.data) >= 4 {
		p.addSummary(" | RPC XID ")
		p.addSummaryHex(uint64(binary.BigEndian.Uint32(s.data)), 8)
	}
	if p.wants.Has(forRPC) {
		d.describeRPC(p, s.at, s.data, s.suffix, false)
	}
	if d.in.Tree {
		d.describeSend(p, s)
	}
}

// noChunks empties the header of the message that was described before.
func (d *Describer) noChunks() {
	h := &d.header
	h.Length, h.Reads, h.ReadOrder, h.WriteEnds = 0, h.Reads[:0], h.ReadOrder[:0], h.WriteEnds[:0]
}
