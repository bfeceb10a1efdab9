package synth

import (
	"cmp"
	"math/bits"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/rocev2"
)

// roce sends the packets of a side of a RoCEv2 connection.
type roce struct{ side *Side }

// Packet sends one RoCEv2 packet as given, with a correct ICRC. Its opcode determines its
// extended headers. A zero P_Key or destination QPN is replaced by the usual one. No PSN is
// counted.
func (s *Side) Packet(p rocev2.Packet, payload []byte) *Frame {
	s.Conn.only(false, "InfiniBand packets")
	w := s.Conn.Wire
	w.packet = p
	return roce{s}.packet(payload)
}

// packet sends the packet in the Wire, with a payload.
func (t roce) packet(payload []byte) *Frame {
	w := t.side.Conn.Wire
	must(w.buf.Clear())
	body, err := w.buf.AppendBytes(len(payload))
	must(err)
	copy(body, payload)
	return t.wrap()
}

// wrap sends the packet in the Wire. Its payload is in the Wire's buffer.
func (t roce) wrap() *Frame {
	w := t.side.Conn.Wire
	p := &w.packet
	p.Headers = p.Opcode.Info().Headers
	p.PKey = cmp.Or(p.PKey, 0xffff)
	p.DestQPN = cmp.Or(p.DestQPN, t.side.Peer.QPN)
	fix := gopacket.SerializeOptions{FixLengths: true}
	must(p.SerializeTo(w.buf, fix))
	w.udp = layers.UDP{SrcPort: layers.UDPPort(0xc000 | t.side.QPN&0x3fff), DstPort: rocev2.UDPPort}
	must(w.udp.SerializeTo(w.buf, fix))
	t.side.prepend(layers.IPProtocolUDP)
	must(rocev2.FixICRC(w.buf.Bytes()))
	if t.side.Addr.Is6() {
		fixChecksum(w.buf.Bytes())
	}
	return t.side.emit()
}

// opcodes are the opcodes of an operation that may take several packets.
type opcodes struct{ first, middle, last, only uint8 }

var (
	sendOpcodes     = opcodes{rocev2.OpSendFirst, rocev2.OpSendMiddle, rocev2.OpSendLast, rocev2.OpSendOnly}
	writeOpcodes    = opcodes{rocev2.OpWriteFirst, rocev2.OpWriteMiddle, rocev2.OpWriteLast, rocev2.OpWriteOnly}
	responseOpcodes = opcodes{rocev2.OpReadResponseFirst, rocev2.OpReadResponseMid, rocev2.OpReadResponseLast, rocev2.OpReadResponseOnly}
)

// at returns the opcode of packet i of n.
func (o opcodes) at(i, n int) uint8 {
	switch {
	case n == 1:
		return o.only
	case i == 0:
		return o.first
	case i == n-1:
		return o.last
	}
	return o.middle
}

// packetsFor returns the number of packets for length bytes of data.
func packetsFor(length, size int) int { return max(1, (length+size-1)/size) }

// number returns the first PSN of a request, and advances the PSN by its packets.
func (t roce) number(h *how, packets int) uint32 {
	if h.psn != nil {
		return *h.psn
	}
	t.side.lastPSN = t.side.NextPSN
	t.side.NextPSN = (t.side.NextPSN + uint32(packets)) & rocev2.PSNMask
	t.side.Messages++
	return t.side.lastPSN
}

// request sends a Send or Write. The extended headers are already in the packet of the
// Wire.
func (t roce) request(o opcodes, data []byte, h *how) {
	w := t.side.Conn.Wire
	n := packetsFor(len(data), h.size)
	psn := t.number(h, n)
	for i := range n {
		if i < h.from || i >= h.to {
			continue
		}
		last := i == n-1
		op := o.at(i, n)
		switch {
		case last && h.invalidate != nil && o == sendOpcodes && n == 1:
			op = rocev2.OpSendOnlyInv
		case last && h.invalidate != nil && o == sendOpcodes:
			op = rocev2.OpSendLastInv
		case last && h.immediate != nil:
			op++ // the opcode With Immediate follows the one without
		}
		p := &w.packet
		p.BTH = rocev2.BTH{
			Opcode: rocev2.Opcode(uint8(h.transport) | op), PSN: (psn + uint32(i)) & rocev2.PSNMask,
			AckReq: last, SolicitedEvent: last && h.solicited,
		}
		t.packet(data[i*h.size : min(len(data), (i+1)*h.size)])
	}
}

func (t roce) send(data []byte, h *how) {
	w := t.side.Conn.Wire
	if h.invalidate != nil {
		w.packet.IETH.RKey = *h.invalidate
	}
	if h.immediate != nil {
		w.packet.ImmDt.Immediate = *h.immediate
	}
	t.request(sendOpcodes, data, h)
}

func (t roce) write(handle uint32, offset uint64, data []byte, h *how) {
	w := t.side.Conn.Wire
	if h.immediate != nil {
		w.packet.ImmDt.Immediate = *h.immediate
	}
	length := uint32(len(data))
	if h.length != nil {
		length = *h.length
	}
	w.packet.RETH = rocev2.RETH{VirtualAddress: offset, RKey: handle, DMALength: length}
	t.request(writeOpcodes, data, h)
}

func (t roce) read(r *Read, h *how) {
	p := &t.side.Conn.Wire.packet
	r.PSN = t.number(h, packetsFor(int(r.Length), h.size))
	p.BTH = rocev2.BTH{Opcode: rocev2.Opcode(uint8(h.transport) | rocev2.OpReadRequest), PSN: r.PSN, AckReq: true}
	p.RETH = rocev2.RETH{VirtualAddress: r.Offset, RKey: r.Handle, DMALength: r.Length}
	t.packet(nil)
}

func (t roce) respond(r *Read, data []byte, from, to int) {
	p := &t.side.Conn.Wire.packet
	n := packetsFor(len(data), r.size)
	for i := max(from, 0); i < min(to, n); i++ {
		p.BTH = rocev2.BTH{Opcode: rocev2.Opcode(uint8(r.transport) | responseOpcodes.at(i, n)), PSN: (r.PSN + uint32(i)) & rocev2.PSNMask}
		p.AETH = aeth(ack, r.message)
		t.packet(data[i*r.size : min(len(data), (i+1)*r.size)])
	}
}

// FetchAdd adds to eight bytes of the peer's memory: it sends the request, and the response
// with the previous value.
func (s *Side) FetchAdd(handle uint32, offset, add, before uint64, options ...Option) []*Frame {
	s.Conn.only(false, "atomics")
	w := s.Conn.Wire
	mark := len(w.Frames)
	h := s.Conn.how(options)
	p := &w.packet
	psn := roce{s}.number(&h, 1)
	p.BTH = rocev2.BTH{Opcode: rocev2.Opcode(uint8(h.transport) | rocev2.OpFetchAdd), PSN: psn, AckReq: true}
	p.AtomicETH = rocev2.AtomicETH{VirtualAddress: offset, RKey: handle, SwapAdd: add}
	roce{s}.packet(nil)
	p.BTH = rocev2.BTH{Opcode: rocev2.Opcode(uint8(h.transport) | rocev2.OpAtomicAcknowledge), PSN: psn}
	p.AETH = aeth(ack, s.Messages)
	p.AtomicAckETH.Original = before
	roce{s.Peer}.packet(nil)
	return w.since(mark)
}

// The syndromes, and the credit count that means no limit.
const (
	ack = 0x1f
	rnr = 0x20
	nak = 0x60
)

// aeth returns an extended header with the syndrome and the number of messages so far.
func aeth(syndrome uint8, messages uint32) rocev2.AETH {
	return rocev2.AETH{Syndrome: rocev2.Syndrome(syndrome), MSN: messages & 0xffffff}
}

// acknowledge sends an Acknowledge packet for a PSN, unless the options give another PSN.
func (t roce) acknowledge(syndrome uint8, psn, messages uint32, options []Option) *Frame {
	h := t.side.Conn.how(options)
	if h.psn != nil {
		psn = *h.psn
	}
	p := &t.side.Conn.Wire.packet
	p.BTH = rocev2.BTH{Opcode: rocev2.OpAcknowledge, PSN: psn & rocev2.PSNMask}
	p.AETH = aeth(syndrome, messages)
	return t.packet(nil)
}

// Nak sends a NAK of the peer's last request, or of the PSN given by AtPSN, with one of the
// NAK codes of rocev2. [Side.Refuse] exists on both transports.
func (s *Side) Nak(code uint8, options ...Option) *Frame {
	s.Conn.only(false, "NAK")
	return roce{s}.acknowledge(nak|code&0x1f, s.Peer.lastPSN, s.Peer.Messages-1, options)
}

// RNR sends an RNR NAK with the 5-bit code of a timer, after which the peer retransmits its
// last request. [Side.NotReady] exists on both transports.
func (s *Side) RNR(timer uint8, options ...Option) *Frame {
	s.Conn.only(false, "RNR NAK")
	return roce{s}.acknowledge(rnr|timer&0x1f, s.Peer.lastPSN, s.Peer.Messages-1, options)
}

// CNP sends a congestion notification packet.
func (s *Side) CNP() *Frame {
	s.Conn.only(false, "CNP")
	p := &s.Conn.Wire.packet
	p.BTH = rocev2.BTH{Opcode: rocev2.OpcodeCNP, BECN: true}
	return roce{s}.packet(make([]byte, 16))
}

// The methods below send messages of the connection manager. An edit changes a message
// before it is sent.

// CM sends any message of the connection manager.
func (s *Side) CM(attribute rocev2.CMAttribute, message rocev2.Header) *Frame {
	s.Conn.only(false, "connection manager")
	w := s.Conn.Wire
	mad := rocev2.MAD{
		BaseVersion: 1, Class: rocev2.ClassCM, ClassVersion: 2, Method: 3,
		TransactionID: uint64(s.Conn.Client.CommID), Attribute: attribute,
	}
	if attribute == rocev2.CMDreq || attribute == rocev2.CMDrep {
		mad.TransactionID |= 1 << 32 // it begins another MAD transaction
	}
	must(w.buf.Clear())
	datagram, err := w.buf.AppendBytes(rocev2.MADSize)
	must(err)
	copy(datagram, rocev2.Append(rocev2.Append(nil, &mad), message))
	p := &w.packet
	p.BTH = rocev2.BTH{Opcode: rocev2.Opcode(uint8(rocev2.UD) | rocev2.OpSendOnly), DestQPN: 1, PSN: s.cmPSN, AckReq: true}
	p.DETH = rocev2.DETH{QKey: 0x80010000, SourceQPN: 1}
	s.cmPSN++
	return roce{s}.wrap()
}

func edited[M any](m *M, edits []func(*M)) *M {
	for _, edit := range edits {
		edit(m)
	}
	return m
}

// REQ sends the client's request for a connection. The PSN in it is the first PSN of the
// server.
func (c *Conn) REQ(edits ...func(*rocev2.REQ)) *Frame {
	ipcm := rocev2.IPCM{
		IPVersion: 4, SourcePort: c.Client.Port,
		Source: embedded(c.Client.ip), Destination: embedded(c.Server.ip),
	}
	if c.Client.Addr.Is6() {
		ipcm.IPVersion = 6
	}
	m := &rocev2.REQ{
		LocalCommID: c.Client.CommID, ServiceID: 0x0000000001060000 | uint64(c.Server.Port), LocalCAGUID: 0x0200000000000001,
		LocalQPN: c.Client.QPN, ResponderResources: 16, InitiatorDepth: 16, RemoteCMTimeout: 20, FlowControl: true,
		StartingPSN: c.Server.NextPSN, LocalCMTimeout: 20, RetryCount: 7, PKey: 0xffff,
		PathMTU: uint8(bits.Len(uint(c.Options.MTU)) - 8), RNRRetryCount: 7, MaxCMRetries: 15,
		Primary: rocev2.Path{
			LocalLID: 0xffff, RemoteLID: 0xffff, // as Linux has it on Ethernet, and tshark expects it
			LocalGID: c.Client.Addr, RemoteGID: c.Server.Addr, PacketRate: 3, HopLimit: 64, LocalACKTimeout: 19,
		},
	}
	m.PrivateData = append(rocev2.Append(nil, &ipcm), c.Client.PrivateData...)
	return c.Client.CM(rocev2.CMReq, edited(m, edits))
}

// embedded returns an address in the form of the IP CM header.
func embedded(ip []byte) (a [16]byte) {
	copy(a[16-len(ip):], ip)
	return a
}

// REP sends the server's acceptance. The PSN in it is the first PSN of the client.
func (c *Conn) REP(edits ...func(*rocev2.REP)) *Frame {
	m := &rocev2.REP{
		LocalCommID: c.Server.CommID, RemoteCommID: c.Client.CommID, LocalQPN: c.Server.QPN, StartingPSN: c.Client.NextPSN,
		ResponderResources: 16, InitiatorDepth: 16, TargetACKDelay: 15, FlowControl: true, RNRRetryCount: 7, LocalCAGUID: 0x0200000000000002,
	}
	m.PrivateData = c.Server.PrivateData
	return c.Server.CM(rocev2.CMRep, edited(m, edits))
}

// RTU sends the client's message that the connection is ready.
func (c *Conn) RTU(edits ...func(*rocev2.RTU)) *Frame {
	return c.Client.CM(rocev2.CMRtu, edited(&rocev2.RTU{LocalCommID: c.Client.CommID, RemoteCommID: c.Server.CommID}, edits))
}

// MRA announces that the answer to the peer's message will take longer.
func (s *Side) MRA(edits ...func(*rocev2.MRA)) *Frame {
	m := &rocev2.MRA{LocalCommID: s.CommID, RemoteCommID: s.Peer.CommID, ServiceTimeout: 20}
	if s == s.Conn.Client {
		m.Message = 1
	}
	return s.CM(rocev2.CMMra, edited(m, edits))
}

// REJ rejects the peer's REQ or REP.
func (s *Side) REJ(reason rocev2.RejectReason, edits ...func(*rocev2.REJ)) *Frame {
	m := &rocev2.REJ{RemoteCommID: s.Peer.CommID, Reason: reason}
	if s == s.Conn.Client {
		m.LocalCommID, m.Message = s.CommID, 1
	}
	return s.CM(rocev2.CMRej, edited(m, edits))
}

// DREQ sends a request to end the connection.
func (s *Side) DREQ(edits ...func(*rocev2.DREQ)) *Frame {
	return s.CM(rocev2.CMDreq, edited(&rocev2.DREQ{LocalCommID: s.CommID, RemoteCommID: s.Peer.CommID, RemoteQPN: s.Peer.QPN}, edits))
}

// DREP sends the answer to a DREQ.
func (s *Side) DREP(edits ...func(*rocev2.DREP)) *Frame {
	return s.CM(rocev2.CMDrep, edited(&rocev2.DREP{LocalCommID: s.CommID, RemoteCommID: s.Peer.CommID}, edits))
}
