package synth

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
)

// The TCP flags (RFC 9293 s.3.1), for [Side.TCP].
const (
	tcpFIN = 0x01
	tcpSYN = 0x02
	tcpRST = 0x04
	tcpPSH = 0x08
	tcpACK = 0x10
)

// maxSegment is the maximum number of data bytes in a TCP segment. It is what fits in an IP
// packet, because a capture sees packets before segmentation offload splits them.
const maxSegment = 65000

// tcp sends the segments of a side of an iWARP connection.
type tcp struct{ side *Side }

// TCP sends one TCP segment at the side's Sequence, and advances Sequence by its data, SYN
// and FIN. The flags are those of the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
func (s *Side) TCP(flags uint8, data []byte) *Frame {
	s.Conn.only(true, "TCP")
	if !s.Conn.Options.ManualAck {
		s.Acked = s.Peer.Sequence
	}
	w := s.Conn.Wire
	must(w.buf.Clear())
	body, err := w.buf.AppendBytes(len(data))
	must(err)
	copy(body, data)
	w.tcp = layers.TCP{
		SrcPort: layers.TCPPort(s.Port), DstPort: layers.TCPPort(s.Peer.Port), Seq: s.Sequence, Window: 0xfff0,
		FIN: flags&tcpFIN != 0, SYN: flags&tcpSYN != 0, RST: flags&tcpRST != 0, PSH: flags&tcpPSH != 0, ACK: flags&tcpACK != 0,
	}
	s.Sequence += uint32(len(data)) + uint32(flags&tcpFIN) + uint32(flags&tcpSYN)>>1
	if w.tcp.ACK {
		w.tcp.Ack = s.Acked
	}
	if w.tcp.SYN {
		w.tcp.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: []byte{0x05, 0xb4}}}
	}
	must(w.tcp.SerializeTo(w.buf, gopacket.SerializeOptions{FixLengths: true}))
	s.prepend(layers.IPProtocolTCP)
	fixChecksum(w.buf.Bytes())
	return s.emit()
}

// Stream appends bytes to the TCP stream. They need not be FPDUs.
func (s *Side) Stream(data []byte) {
	if s.corked {
		s.pending = append(s.pending, data...)
		return
	}
	for {
		n := min(len(data), maxSegment)
		s.TCP(tcpACK|tcpPSH, data[:n])
		if data = data[n:]; len(data) == 0 {
			return
		}
	}
}

// Cork holds back the bytes of the stream until Uncork is called.
func (s *Side) Cork() { s.corked = true }

// Uncork sends the bytes that were held back, in TCP segments of the given size regardless
// of FPDU boundaries.
func (s *Side) Uncork(bytes int) []*Frame {
	mark := len(s.Conn.Wire.Frames)
	data := s.pending
	s.corked, s.pending = false, nil
	for len(data) > 0 {
		n := min(len(data), bytes)
		s.TCP(tcpACK|tcpPSH, data[:n])
		data = data[n:]
	}
	return s.Conn.Wire.since(mark)
}

// Open does the TCP handshake.
func (c *Conn) Open() []*Frame {
	mark := len(c.Wire.Frames)
	c.Client.TCP(tcpSYN, nil)
	c.Server.Acked = c.Client.Sequence
	c.Server.TCP(tcpSYN|tcpACK, nil)
	c.Client.Ack()
	return c.Wire.since(mark)
}

// FIN closes the TCP stream of this side.
func (s *Side) FIN() *Frame { return s.TCP(tcpFIN|tcpACK, nil) }

// RST aborts the connection.
func (s *Side) RST() *Frame { return s.TCP(tcpRST|tcpACK, nil) }

// MPARequest sends the client's MPA request.
func (c *Conn) MPARequest(edits ...func(*iwarp.MPA)) { tcp{c.Client}.mpa(edits) }

// MPAReply sends the server's MPA reply. The FPDUs of the stream begin after it.
func (c *Conn) MPAReply(edits ...func(*iwarp.MPA)) { tcp{c.Server}.mpa(edits) }

// mpa sends an MPA frame. It asks for markers if the peer's stream has them.
func (t tcp) mpa(edits []func(*iwarp.MPA)) {
	t.side.Conn.only(true, "MPA")
	m := iwarp.MPA{
		Reply: t.side == t.side.Conn.Server, Markers: t.side.Peer.Markers, CRC: !t.side.Conn.Options.NoCRC, Revision: 1, PrivateData: t.side.PrivateData,
	}
	t.side.Stream(edited(&m, edits).Append(nil))
}

// FPDU frames a ULPDU and appends it to the stream, with markers if the stream has them.
func (s *Side) FPDU(ulpdu []byte) {
	w := s.Conn.Wire
	b := iwarp.AppendFPDU(w.segment[:0], ulpdu)
	w.segment = b[:0]
	if s.Markers {
		b = tcp{s}.marked(b[:len(b)-iwarp.CRCLen])
	}
	if s.Conn.Options.NoCRC {
		clear(b[len(b)-iwarp.CRCLen:])
	}
	s.Stream(b)
}

// marked inserts the markers into an FPDU without CRC, and appends the CRC. There is a
// marker every 512 bytes of the stream, also between FPDUs. It contains the distance back
// to the FPDU's length field (RFC 5044 s.4.3).
func (t tcp) marked(fpdu []byte) []byte {
	out := make([]byte, 0, len(fpdu)+len(fpdu)/100+16)
	start := -1 // offset of the FPDU's length field
	put := func(data []byte) {
		for len(data) > 0 {
			if t.side.position == 0 {
				back := 0
				if start >= 0 {
					back = len(out) - start
				}
				out = be.AppendUint32(out, uint32(back&0xffff))
				t.side.position = iwarp.MarkerLen
			}
			if start < 0 {
				start = len(out)
			}
			n := min(len(data), iwarp.MarkerEvery-t.side.position)
			out = append(out, data[:n]...)
			data = data[n:]
			t.side.position = (t.side.position + n) % iwarp.MarkerEvery
		}
	}
	put(fpdu)
	if t.side.position == 0 { // the CRC covers a marker directly before it
		out = be.AppendUint32(out, uint32((len(out)-start)&0xffff))
		t.side.position = iwarp.MarkerLen
	}
	put(iwarp.AppendCRC(nil, out))
	return out
}

// Segment sends one DDP segment as given; zero versions are replaced by the usual ones.
func (s *Side) Segment(seg iwarp.Segment) {
	s.Conn.only(true, "DDP segments")
	if seg.DDPVersion == 0 {
		seg.DDPVersion = 1
	}
	if seg.RDMAPVersion == 0 {
		seg.RDMAPVersion = 1
	}
	s.FPDU(seg.Append(nil))
}

// message sends a message in segments. seg has the Offset of the first one.
func (t tcp) message(seg iwarp.Segment, data []byte, size, from, to int) {
	n := packetsFor(len(data), size)
	start := seg.Offset
	t.side.last = seg
	t.side.last.DDPVersion, t.side.last.RDMAPVersion, t.side.last.Last = 1, 1, n == 1
	for i := max(from, 0); i < min(n, to); i++ {
		seg.Offset = start + uint64(i*size)
		seg.Last = i == n-1
		seg.Payload = data[i*size : min(len(data), (i+1)*size)]
		if i == 0 {
			t.side.last.Payload = seg.Payload
		}
		t.side.Segment(seg)
	}
}

func (t tcp) send(data []byte, h *how) {
	if h.immediate != nil || h.psn != nil {
		panic("synth: iWARP has no Immediate and no PSN")
	}
	seg := iwarp.Segment{Opcode: iwarp.Send, Queue: iwarp.QueueSend}
	if h.invalidate != nil {
		seg.Opcode, seg.STag = iwarp.SendInvalidate, *h.invalidate
	}
	if h.solicited {
		seg.Opcode += iwarp.SendSE - iwarp.Send
	}
	t.side.SendMSN++
	seg.Sequence = t.side.SendMSN
	t.message(seg, data, h.size, h.from, h.to)
}

func (t tcp) write(handle uint32, offset uint64, data []byte, h *how) {
	if h.immediate != nil || h.psn != nil {
		panic("synth: iWARP has no Immediate and no PSN")
	}
	t.message(iwarp.Segment{Tagged: true, Opcode: iwarp.Write, STag: handle, Offset: offset}, data, h.size, h.from, h.to)
}

// read sends a Read Request. Each has its own sink STag.
func (t tcp) read(r *Read, _ *how) {
	t.side.ReadMSN++
	t.side.sink++
	r.Sink = 0x51000000 + t.side.sink
	body := iwarp.ReadRequestHeader{SinkSTag: r.Sink, Size: r.Length, SourceSTag: r.Handle, SourceOffset: r.Offset}
	t.message(iwarp.Segment{Opcode: iwarp.ReadRequest, Queue: iwarp.QueueReadRequest, Sequence: t.side.ReadMSN}, body.Append(nil), iwarp.ReadRequestLen, 0, 1)
}

func (t tcp) respond(r *Read, data []byte, from, to int) {
	t.message(iwarp.Segment{Tagged: true, Opcode: iwarp.ReadResponse, STag: r.Sink}, data, r.size, from, to)
}

// Terminate sends a Terminate. If HasDDP is set and no DDP header is given, the Terminate
// quotes the peer's last operation.
func (s *Side) Terminate(h iwarp.TerminateHeader) *Frame {
	s.Conn.only(true, "Terminate")
	if h.HasDDP && h.DDP.DDPVersion == 0 {
		h.DDP = s.Peer.last
		if h.DDP.Opcode == iwarp.ReadRequest {
			h.HasRDMAP = h.Read.Decode(h.DDP.Payload) == nil
		}
		if h.SegmentLength == 0 {
			h.SegmentLength = uint16(iwarp.UntaggedLen + len(h.DDP.Payload))
			if h.DDP.Tagged {
				h.SegmentLength -= iwarp.UntaggedLen - iwarp.TaggedLen
			}
		}
	}
	s.Segment(iwarp.Segment{Last: true, Opcode: iwarp.Terminate, Queue: iwarp.QueueTerminate, Sequence: 1, Payload: terminate(h)})
	if w := s.Conn.Wire; w.Sink == nil {
		return w.Last()
	}
	return nil
}

// terminate returns the payload of a Terminate as [iwarp.TerminateHeader] describes it,
// with the bits of each byte of the control word reversed if Swapped.
func terminate(h iwarp.TerminateHeader) []byte {
	kind, flags := h.Layer<<4|h.Type&15, byte(0)
	for i, set := range []bool{h.HasLength, h.HasDDP, h.HasRDMAP} {
		switch {
		case set && h.Swapped:
			flags |= 1 << i
		case set:
			flags |= 0x80 >> i
		}
	}
	if h.Swapped {
		kind = h.Type<<4 | h.Layer&15
	}
	b := []byte{kind, h.Code, flags, 0}
	if h.HasLength {
		b = be.AppendUint16(b, h.SegmentLength)
	}
	if h.HasDDP {
		h.DDP.Payload = nil
		b = h.DDP.Append(b)
	}
	if h.HasRDMAP {
		b = h.Read.Append(b)
	}
	return b
}
