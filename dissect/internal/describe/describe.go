// Package describe makes the record of a packet: a tree of the packet's headers with their fields,
// and a one-line summary.
package describe

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// packet is a packet record that is being filled. Its methods add only the parts that wants
// contains, so that callers need not check.
type packet struct {
	record.Packet
	wants field.Set
}

// Describer describes packets one after the other. The record that Describe returns is valid until
// the next call.
type Describer struct {
	Only field.Set // the parts of Nodes and Summary that are needed

	packet packet
	in     *Input
	header rpcrdma.Header
	rpc    oncrpc.Header
	ops    nfs.Message // used without values
	names  []string    // operation names of the COMPOUND in ops
	holes  [8]nfs.Hole
	mad    rocev2.MAD
	req    rocev2.REQ
	mpa    iwarp.MPA
	pool   []*nfs.Message // messages for Packet.Messages, reused for each packet
}

// Input is the information about a frame that Describe needs.
type Input struct {
	Frame     *capture.Frame
	Link      *link.Decoder
	Transport string         // empty if the frame carries no RDMA
	Packet    *rocev2.Packet // the decoded InfiniBand packet
	Err       error          // error of decoding Packet
	ICRC      rocev2.ICRCResult
	TCP       *link.TCP     // the decoded segment of iWARP, or of RPC over TCP
	FPDUs     []iwarp.Noted // FPDUs that the segment completes
	Records   []Record      // RPC over TCP: the record marks in the segment
	RPC, NFS4 bool          // whether the connection carries RPC, and NFSv4
	// Guarded lists the Calls of those Replies in the frame that are protected by RPCSEC_GSS or
	// answer Calls of the server.
	Guarded []Guarded

	// Tree asks for credentials, arguments and results as well. If it is set, Said holds the Sends
	// that the frame completed, and Asked returns the Call for a Reply that is not in Said.
	Tree  bool
	Said  []Said
	Asked func(xid uint32) Asked
}

// Said is a complete Send (see package transaction), with the Call that it answers if it is a
// Reply.
type Said struct {
	Data   []byte
	Length int64
	Asked  Asked
}

// Asked describes a Call, as far as decoding its Reply requires.
type Asked struct {
	Known                       bool
	Program, Version, Procedure uint32
	Service                     oncrpc.Service
	Control                     bool // the Call establishes or destroys an RPCSEC_GSS context
}

// Guarded is the Call that a Reply answers. It is given if the Call is protected by RPCSEC_GSS or
// was sent by the server.
type Guarded struct {
	XID   uint32
	Asked Asked
}

// Describe returns the packet record of a frame. The caller fills in the connection, the operation
// and the transaction.
func (d *Describer) Describe(in *Input) *record.Packet {
	d.in = in
	l, f := in.Link, in.Frame
	p := &d.packet
	p.wants = d.Only
	p.Number, p.Time, p.Length, p.Captured, p.Data = f.Number, record.Time(f.Time), l.WireLength, l.Captured, f.Data
	p.Src, p.Dst, p.SrcLID, p.DstLID = l.Src, l.Dst, l.SrcLID, l.DstLID
	p.Transport, p.ICRC, p.StoredICRC = in.Transport, record.Check(in.ICRC.String()), record.Opt[record.Hex32]{}
	p.Summary, p.Nodes, p.Messages = p.Summary[:0], p.Nodes[:0], p.Messages[:0]
	if p.wants.Has(forLinks) {
		p.links(l.Headers(), f.Data)
	}
	if l.InIPoIB() {
		p.addSummary("IPoIB | ")
	}
	switch l.Carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		d.describeTransport(p, in.Err)
		if in.Err == nil && in.Packet.HasICRC {
			p.StoredICRC = record.Some(record.Hex32(bits.ReverseBytes32(in.Packet.ICRC)))
		}
		if vcrc := l.CheckVCRC(); vcrc != rocev2.ICRCUnchecked {
			p.text("vcrc", "VCRC", vcrc.String(), l.Offset+l.Length, rocev2.VCRCLen)
		}
	case link.CarriesTCP:
		if in.Transport != "" {
			d.describeTCP(p)
			break
		}
		fallthrough
	default:
		if l.Carries == link.CarriesUDP && in.Transport != "" {
			d.describeDatagram(p)
			break
		}
		if p.wants.Has(field.Summary) {
			p.Summary = link.AppendProtocol(p.Summary, l.Protocol, l.Number)
		}
		if l.Paused != 0 && l.Protocol == "PFC pause" { // A pause frame of Ethernet has no priorities.
			p.addPriorities(l.Paused)
		}
		if l.SrcPort != 0 || l.DstPort != 0 {
			if l.Number != 0 {
				p.addSummary(",")
			}
			p.addSummary(" port ")
			p.addPorts(l)
		}
	case link.CarriesMalformed:
		p.addSummary("malformed headers")
	case link.CarriesUnknownLink:
		p.addSummary("unknown link type ")
		p.addSummaryNumber(uint64(f.LinkType))
	}
	return &p.Packet
}

// linkTables maps each kind of header that package link decodes to its table.
var linkTables = [link.HeaderKinds]*field.Header{
	link.HeaderEthernet: &header.Ethernet, link.HeaderVLAN: &header.VLAN, link.HeaderSLL: &header.SLL, link.HeaderSLL2: &header.SLL2,
	link.HeaderERF: &header.ERF, link.HeaderIPv4: &header.IPv4, link.HeaderIPv6: &header.IPv6, link.HeaderUDP: &header.UDP,
	link.HeaderLRH: &header.LRH, link.HeaderGRH: &header.GRH, link.HeaderIPoIB: &header.IPoIB, link.HeaderVXLAN: &header.VXLAN, link.HeaderGRE: &header.GRE,
	link.HeaderGeneve: &header.Geneve, link.HeaderGeneveOption: &header.GeneveOption,
	link.HeaderGREChecksum: &header.GREChecksum, link.HeaderGREKey: &header.GREKey, link.HeaderGRESequence: &header.GRESequence,
	link.HeaderERSPAN2: &header.ERSPAN2, link.HeaderERSPAN3: &header.ERSPAN3, link.HeaderERSPANPlatform: &header.ERSPANPlatform,
	link.HeaderMPLS: &header.MPLS, link.HeaderControlWord: &header.ControlWord,
	link.HeaderPFC: &header.PFC, link.HeaderPause: &header.Pause,
}

// links adds the headers that package link decoded.
func (p *packet) links(headers []link.Header, data []byte) {
	for i, h := range headers {
		count := 1
		for _, outer := range headers[:i] {
			if outer.Kind == h.Kind || outer.Kind.String() == h.Kind.String() {
				count++
			}
		}
		first := len(p.Nodes)
		if table := linkTables[h.Kind]; table != nil {
			p.header(table, h.Offset, data[h.Offset:h.Offset+h.Length])
		} else {
			p.open(record.NodeObject, h.Kind.String(), h.Kind.String(), h.Offset, h.Length)
			p.close()
		}
		if count > 1 && len(p.Nodes) > first { // number nested tags and tunnels: "vlan", "vlan_2"
			p.Nodes[first].Name = h.Kind.String() + "_" + strconv.Itoa(count)
		}
	}
}

// addSummary appends text to the summary.
func (p *packet) addSummary(s string) {
	if p.wants.Has(field.Summary) {
		p.Summary = append(p.Summary, s...)
	}
}

func (p *packet) addSummaryNumber(v uint64) {
	if p.wants.Has(field.Summary) {
		p.Summary = strconv.AppendUint(p.Summary, v, 10)
	}
}

func (p *packet) addSummaryHex(v uint64, digits int) {
	if p.wants.Has(field.Summary) {
		p.Summary = field.AppendHex(p.Summary, v, digits)
	}
}

// addPorts adds both ports to the summary.
func (p *packet) addPorts(l *link.Decoder) {
	p.addSummaryNumber(uint64(l.SrcPort))
	p.addSummary(" > ")
	p.addSummaryNumber(uint64(l.DstPort))
}

// addPriorities adds the paused priorities to the summary.
func (p *packet) addPriorities(paused uint8) {
	word := " of priority "
	for priority := range 8 {
		if paused>>priority&1 != 0 {
			p.addSummary(word)
			p.addSummaryNumber(uint64(priority))
			word = ", "
		}
	}
}

// add appends a node that is in no table.
func (p *packet) add(n record.Node) {
	if p.wants.Has(field.Other) {
		p.Nodes = append(p.Nodes, n)
	}
}

func (p *packet) open(kind record.NodeKind, name, label string, offset, length int) {
	p.add(record.Node{Kind: kind, Name: name, Label: label, Offset: offset, Length: length})
}

func (p *packet) close() { p.add(record.Node{Kind: record.NodeEndObject}) }

func (p *packet) closeList() { p.add(record.Node{Kind: record.NodeEndList}) }

func (p *packet) text(name, label, value string, offset, length int) {
	p.add(record.Node{Kind: record.NodeText, Name: name, Label: label, Text: value, Offset: offset, Length: length})
}

func (p *packet) number(name, label string, value int64, offset, length int) {
	p.add(record.Node{Kind: record.NodeNumber, Name: name, Label: label, Number: value, Offset: offset, Length: length})
}

func (p *packet) null(name, label string, offset, length int) {
	p.add(record.Node{Kind: record.NodeNull, Name: name, Label: label, Offset: offset, Length: length})
}

// fields appends a node for the complete fields of a table to the open object.
func (p *packet) fields(table *field.Header, offset int, data []byte) {
	if p.wants.Has(table.Member) {
		p.Nodes = append(p.Nodes, record.Node{Kind: record.NodeFields, Offset: offset, Length: len(data), Table: table, Data: data})
	}
}

// header appends a header of fixed layout.
func (p *packet) header(table *field.Header, offset int, data []byte) {
	p.named(table.Name, table, offset, data)
}

// named appends a header under another name.
func (p *packet) named(name string, table *field.Header, offset int, data []byte) {
	if p.wants.Has(table.Member) {
		p.Nodes = append(p.Nodes, record.Node{
			Kind: record.NodeHeader, Name: name, Label: table.Label, Offset: offset, Length: len(data), Table: table, Data: data,
		})
	}
}

// extendedTables lists the tables of the extended headers in the order of the bits of
// [rocev2.Headers].
var extendedTables = [...]*field.Header{
	&header.RDETH, &header.DETH, &header.XRCETH, &header.FETH, &header.RETH, &header.AtomicETH, &header.AETH, &header.AtomicAckETH, &header.ImmDt, &header.IETH,
}

// The parts of a record for which each group of headers is decoded. If none of them is wanted, the
// group is skipped.
var (
	forLinks   = members(linkTables[:]) | field.Other
	forRPC     = header.RPC.Member | field.Summary
	forRPCRDMA = header.RPCRDMA.Member | header.Segment.Member | forRPC
	forMAD     = header.MAD(0).Member | header.CM[rocev2.CMReq].Member | header.IPCM.Member | header.PrivateData.Member | field.Summary
)

func members(tables []*field.Header) (set field.Set) {
	for _, table := range tables {
		if table != nil {
			set |= table.Member
		}
	}
	return set
}

// describeTransport adds the BTH, the extended headers and the payload.
func (d *Describer) describeTransport(p *packet, err error) {
	t, l := d.in.Packet, d.in.Link
	if len(l.Transport) >= rocev2.BTHLen {
		at := l.Offset
		p.header(&header.BTH, at, l.Transport[:rocev2.BTHLen])
		at += rocev2.BTHLen
		for left := t.Headers; left != 0; left &= left - 1 {
			table := extendedTables[bits.TrailingZeros16(uint16(left))]
			p.header(table, at, l.Transport[at-l.Offset:at-l.Offset+table.Length])
			at += table.Length
		}
		if p.wants.Has(field.Summary) {
			p.addTransportSummary(t, err == nil)
		}
		if err == nil {
			if t.StrayPad() {
				p.text("note", "Note", strayPadNotes[t.PadCount], -1, 0)
			}
			d.describePayload(p, at)
		}
	}
	if err != nil {
		p.addSummary(" malformed: ")
		p.addSummary(err.Error())
		p.text("error", "Error", err.Error(), -1, 0)
	}
}

// strayPadNotes lists, by pad count, the notes on packets with a pad count but no payload.
var strayPadNotes = [4]string{
	1: "The pad count is 1, but this operation has no payload.",
	2: "The pad count is 2, but this operation has no payload.",
	3: "The pad count is 3, but this operation has no payload.",
}

// addTransportSummary summarizes the BTH and, if they are complete, the extended headers.
func (p *packet) addTransportSummary(t *rocev2.Packet, whole bool) {
	p.addSummary(t.Opcode.String())
	p.addSummary(" QPN ")
	p.addSummaryHex(uint64(t.DestQPN), 6)
	p.addSummary(" PSN ")
	p.addSummaryNumber(uint64(t.PSN))
	if whole && t.Headers&rocev2.HasRETH != 0 {
		p.addSummary(" R_Key ")
		p.addSummaryHex(uint64(t.RETH.RKey), 8)
		p.addSummary(" length ")
		p.addSummaryNumber(uint64(t.RETH.DMALength))
	}
	if whole && t.Headers&rocev2.HasAETH != 0 && t.Opcode.Info().Kind == rocev2.KindAcknowledge {
		p.addSummary(" ")
		if s := t.AETH.Syndrome; s.IsAck() {
			p.addSummary("ACK")
		} else {
			p.addSummary(s.String())
		}
	}
	if whole && t.Headers&rocev2.HasIETH != 0 {
		p.addSummary(" invalidates ")
		p.addSummaryHex(uint64(t.IETH.RKey), 8)
	}
	if whole && t.StrayPad() {
		p.addSummary(", pad count ")
		p.addSummaryNumber(uint64(t.PadCount))
		p.addSummary(" without payload")
	}
}

func (d *Describer) describePayload(p *packet, at int) {
	t := d.in.Packet
	info := t.Opcode.Info()
	switch {
	case t.IsMAD():
		if p.wants.Has(forMAD) {
			d.describeMAD(p, at)
		}
		return
	case d.in.Link.Carries == link.CarriesInfiniBand && link.IsIPoIB(d.in.Link.Transport, t.Payload):
		p.header(&header.IPoIB, at, t.Payload[:header.IPoIB.Length])
		p.addSummary(" | IPoIB ")
		p.addSummary(header.IPoIB.Fields[0].Names(uint64(binary.BigEndian.Uint16(t.Payload))))
	case info.Kind == rocev2.KindSend && info.First && d.in.RPC && p.wants.Has(forRPCRDMA):
		d.describeRPCRDMA(p, at, t.Payload, "", !info.Last && len(t.Payload) == t.PayloadLength)
	}
	if d.in.Tree && d.in.RPC && info.Kind == rocev2.KindSend {
		d.describeSend(p, sendPart{data: t.Payload, at: at, size: t.PayloadLength, first: info.First, last: info.Last})
	}
	if t.PayloadLength > 0 {
		p.number("payload_bytes", "Payload bytes", int64(t.PayloadLength), at, len(t.Payload))
	}
}

// describeMAD adds a management datagram.
func (d *Describer) describeMAD(p *packet, at int) {
	data := d.in.Packet.Payload
	m := &d.mad
	if rocev2.Decode(data, m) != nil {
		return
	}
	p.header(header.MAD(m.Class), at, data[:rocev2.MADLen])
	p.addSummary(" MAD ")
	table := header.CM[m.Attribute]
	if m.Class != rocev2.ClassCM || table == nil {
		p.addSummary(m.Name())
		return
	}
	at += rocev2.MADLen
	body := data[rocev2.MADLen:min(len(data), rocev2.MADSize)]
	p.open(record.NodeObject, "cm", table.Label, at, len(body))
	p.text("message", "Message", m.Attribute.String(), at, 0)
	p.fields(table, at, body)
	p.addSummary("CM ")
	p.addSummary(m.Attribute.String())
	private := table.Field("private_data")
	if private.Whole(body) {
		raw, offset := private.Raw(body), at+private.Bit/8
		if m.Attribute == rocev2.CMReq && rocev2.Decode(body, &d.req) == nil {
			id := d.req.ServiceID
			switch {
			case rocev2.IsIPoIB(id):
				p.addSummary(" IPoIB QPN ")
				p.addSummaryHex(id&0xffffff, 6)
			case id>>24 == 1:
				p.addSummary(" port ")
				p.addSummaryNumber(id & 0xffff)
				table := &header.IPCM
				if raw[1]>>4 == 4 { // the IP version
					table = &header.IPCMv4
				}
				p.header(table, offset, raw[:rocev2.IPCMLen])
				raw, offset = raw[rocev2.IPCMLen:], offset+rocev2.IPCMLen
			}
		}
		if m.Attribute == rocev2.CMReq || m.Attribute == rocev2.CMRep {
			if found, ok, _ := rpcrdma.FindPrivateData(raw); ok {
				p.header(&header.PrivateData, offset+found.Offset, raw[found.Offset:found.Offset+rpcrdma.PrivateDataLen])
			}
		}
	}
	p.close()
}

// describeRPCRDMA adds the RPC-over-RDMA header at the start of a Send and the RPC header after it,
// as far as this packet contains them. Continues is set if the Send has more packets.
func (d *Describer) describeRPCRDMA(p *packet, at int, data []byte, suffix string, continues bool) {
	h := &d.header
	err := h.Decode(data)
	p.open(record.NodeObject, "rpcrdma"+suffix, "RPC-over-RDMA", at, h.Length)
	p.fields(&header.RPCRDMA, at, data[:min(len(data), rpcrdma.FixedLen)])
	if h.Length >= rpcrdma.FixedLen {
		p.addSummary(" | ")
		p.addSummary(h.Proc.String())
		p.addSummary(" XID ")
		p.addSummaryHex(uint64(h.XID), 8)
		p.addSummary(" credits ")
		p.addSummaryNumber(uint64(h.Credits))
		switch h.Proc {
		case rpcrdma.Error:
			p.addSummary(" ")
			p.addSummary(h.Err.String())
			p.text("rdma_err", "Error", h.Err.String(), at+16, 4)
			if h.Err == rpcrdma.ErrVers {
				p.number("vers_low", "Lowest version", int64(h.VersLow), at+20, 4)
				p.number("vers_high", "Highest version", int64(h.VersHigh), at+24, 4)
			}
		case rpcrdma.Msg, rpcrdma.NoMsg, rpcrdma.MsgP:
			lists := at + rpcrdma.FixedLen
			if !h.Understood() {
				break
			}
			if h.IsDraft {
				p.text("rdma_direction", "Direction", directions[h.Direction], lists, 4)
				p.text("rdma_inv_handle", "Handle to invalidate", record.Hex32(h.InvHandle).String(), lists+4, 4)
				if h.InvHandle != 0 {
					p.addSummary(" rdma_inv_handle ")
					p.addSummaryHex(uint64(h.InvHandle), 8)
				}
				lists += 8
			}
			if h.Proc == rpcrdma.MsgP {
				p.number("align", "Alignment", int64(h.Align), lists, 4)
				p.number("thresh", "Threshold", int64(h.Thresh), lists+4, 4)
				lists += 8
			}
			p.chunkLists(h, data, lists-at, at)
		}
	}
	if p.undecoded(err, rpcrdma.ErrTruncated, continues) {
		p.addSummary(" malformed")
	}
	p.number("header_bytes", "Header bytes", int64(h.Length), at, h.Length)
	p.close()
	if err == nil && h.Understood() && h.Proc == rpcrdma.Msg && len(data) > h.Length && p.wants.Has(forRPC) {
		d.describeRPC(p, at+h.Length, data[h.Length:], suffix, continues)
	}
}

// directions are the names of rdma_direction of the remote invalidation draft.
var directions = [...]string{"Call", "Reply"}

// chunkLists adds the three chunk lists, which start at byte n of data. The offset of data in the
// frame is base.
func (p *packet) chunkLists(h *rpcrdma.Header, data []byte, n, base int) {
	p.open(record.NodeList, "read_chunks", "Read list", base+n, 0)
	for k, i := range h.ReadOrder {
		at := n + i*rpcrdma.ReadSegmentLen
		if s := &h.Reads[i]; k == 0 || s.Position != h.Reads[h.ReadOrder[k-1]].Position {
			if k > 0 {
				p.closeList()
				p.close()
			}
			p.open(record.NodeObject, "", "Read chunk", base+at+4, 0)
			p.number("position", "Position", int64(s.Position), base+at+4, 4)
			p.open(record.NodeList, "segments", "Segments", base+at+8, 0)
		}
		p.segment(data, at+8, base)
	}
	n += len(h.Reads) * rpcrdma.ReadSegmentLen
	if len(h.Reads) > 0 {
		p.closeList()
		p.close()
	}
	p.closeList()
	n += 4
	p.open(record.NodeList, "write_chunks", "Write list", base+n, 0)
	for i := range h.WriteEnds {
		n = p.chunk("", len(h.WriteChunk(i)), data, n, base)
	}
	p.closeList()
	n += 4
	if !h.HasReply {
		p.null("reply_chunk", "Reply chunk", base+n, 4)
		return
	}
	p.chunk("reply_chunk", len(h.Reply), data, n, base)
}

// chunk adds a Write chunk or Reply chunk whose "present" word is at byte n of data. It returns the
// offset of the byte after the chunk.
func (p *packet) chunk(name string, segments int, data []byte, n, base int) int {
	label := "Write chunk"
	if name != "" {
		label = "Reply chunk"
	}
	p.open(record.NodeObject, name, label, base+n, 8+segments*rpcrdma.SegmentLen)
	p.open(record.NodeList, "segments", "Segments", base+n+4, 0)
	n += 8
	for range segments {
		p.segment(data, n, base)
		n += rpcrdma.SegmentLen
	}
	p.closeList()
	p.close()
	return n
}

// segment adds the segment at byte n of data.
func (p *packet) segment(data []byte, n, base int) {
	if n+rpcrdma.SegmentLen > len(data) {
		return
	}
	p.named("", &header.Segment, base+n, data[n:n+rpcrdma.SegmentLen]) // members of a list have no name
}

// describeRPC adds an RPC header.
func (d *Describer) describeRPC(p *packet, at int, data []byte, suffix string, continues bool) {
	r := &d.rpc
	err := r.Decode(data)
	if r.Length < 8 {
		return
	}
	d.ops.Limit = -1
	p.open(record.NodeObject, "rpc"+suffix, "Remote Procedure Call", at, r.Length)
	p.fields(&header.RPC, at, data[:header.RPC.Length])
	switch {
	case !p.wants.Has(field.Other | field.Summary):
	case r.Type == oncrpc.Call && r.Length >= 24:
		d.describeCall(p, at, data, err == nil)
	case r.Type == oncrpc.Reply && err == nil:
		p.text("rpc_status", "Status", r.Status(), at+8, r.Length-8)
		p.addSummary(" Reply ")
		p.addSummary(r.Status())
		if low, high, offset, ok := r.Mismatch(); ok {
			p.number("low", "Lowest version", int64(low), at+offset, 4)
			p.number("high", "Highest version", int64(high), at+offset+4, 4)
		}
		d.describeReply(p, at, data)
	}
	p.undecoded(err, oncrpc.ErrTruncated, continues)
	p.close()
}

// undecoded adds why a header cannot be decoded, and returns true. It returns false if err is nil, and if the header is only cut because it
// continues in the next packet of the message.
func (p *packet) undecoded(err, cut error, continues bool) bool {
	switch {
	case err == nil:
		return false
	case continues && errors.Is(err, cut):
		p.text("continues", "Continues", "in the following packets", -1, 0)
		return false
	}
	p.text("error", "Error", err.Error(), -1, 0)
	return true
}

// describeCall adds the fields of a Call. If the header is not complete, the start of the arguments
// is unknown, so the operations are not added.
func (d *Describer) describeCall(p *packet, at int, data []byte, whole bool) {
	r, h := &d.rpc, &d.header
	p.number("rpc_vers", "RPC version", int64(r.RPCVersion), at+8, 4)
	p.number("program", "Program", int64(r.Program), at+12, 4)
	program, procedure := nfs.ProgramName(r.Program), nfs.ProcedureName(r.Program, r.Version, r.Procedure)
	p.textOrNull("program_name", "Program name", program, at+12)
	p.number("version", "Program version", int64(r.Version), at+16, 4)
	p.number("procedure", "Procedure", int64(r.Procedure), at+20, 4)
	p.textOrNull("procedure_name", "Procedure name", procedure, at+20)
	if r.Length > 24 {
		p.text("credential", "Credential", r.Credential.Flavor.String(), at+24, 8+len(r.Credential.Body))
	}
	if verifier := 32 + (len(r.Credential.Body)+3)&^3; r.Length > verifier {
		p.text("verifier", "Verifier", r.Verifier.Flavor.String(), at+verifier, 8+len(r.Verifier.Body))
	}
	p.addSummary(" Call ")
	p.addSummary(program)
	p.addSummaryNumber(uint64(r.Version))
	p.addSummary(" ")
	p.addSummary(procedure)
	if !whole || !nfs.IsCompound(r.Program, r.Version, r.Procedure) {
		return
	}
	g, _ := r.Credential.GSS()
	body, ok := g.Service.Plain(data[r.Length:])
	if !ok {
		return
	}
	// A data item that was moved to a Read chunk shifts the data after it.
	holes, n := &d.holes, 0
	before := int64(-1)
	for _, i := range h.ReadOrder {
		position := int64(h.Reads[i].Position) - int64(len(data)-len(body))
		if position <= before || n == len(holes) {
			continue
		}
		holes[n], before = nfs.Hole{Position: position}, position
		n++
	}
	d.ops.Call(r.Program, r.Version, r.Procedure, nfs.NewStream(body, holes[:n]))
	d.operations(p)
}

func (d *Describer) describeReply(p *packet, at int, data []byte) {
	r, h := &d.rpc, &d.header
	if !d.in.NFS4 || !r.Succeeded() {
		return
	}
	body, program, readable := d.results(data[r.Length:])
	if !readable {
		return
	}
	holes, n := &d.holes, 0
	for i := range h.WriteEnds {
		if n == len(holes) {
			break
		}
		holes[n] = nfs.Hole{Position: -1, Length: rpcrdma.Length(h.WriteChunk(i))}
		n++
	}
	o := &d.ops
	if o.Results(program, 4, nfs.ProcedureCompound, body, holes[:n], false); !o.Named || o.Count == 0 {
		return
	}
	p.text("nfs_status", "NFS status", nfs.StatusName(4, o.Status), at+len(data)-len(body), 4)
	p.addSummary(" ")
	p.addSummary(nfs.StatusName(4, o.Status))
	d.operations(p)
}

// results returns the results of a COMPOUND or CB_COMPOUND in the body of a Reply, without the
// fields that RPCSEC_GSS adds. The program is known only from the Call.
func (d *Describer) results(body []byte) (plain []byte, program uint32, readable bool) {
	program = nfs.ProgramNFS
	for i := range d.in.Guarded {
		if g := &d.in.Guarded[i]; g.XID == d.rpc.XID {
			if a := &g.Asked; a.Control || a.Known && !nfs.IsCompound(a.Program, a.Version, a.Procedure) {
				return nil, 0, false
			} else if a.Known {
				program = a.Program
			}
			plain, readable = g.Asked.Service.Plain(body)
			return plain, program, readable
		}
	}
	return body, program, d.rpc.Verifier.Flavor != oncrpc.AuthRPCSECGSS
}

// operations adds the operation names of the COMPOUND in d.ops.
func (d *Describer) operations(p *packet) {
	d.names = d.ops.AppendNames(d.names[:0])
	p.open(record.NodeList, "operations", "Operations", -1, 0)
	for i, name := range d.names {
		p.text("", "Operation", name, -1, 0)
		if i == 0 {
			p.addSummary(" ")
		} else {
			p.addSummary("+")
		}
		p.addSummary(name)
	}
	p.closeList()
}

func (p *packet) textOrNull(name, label, value string, at int) {
	if value == "" {
		p.null(name, label, at, 4)
		return
	}
	p.text(name, label, value, at, 4)
}

// describeTCP adds the TCP header of an iWARP segment and the FPDUs that the segment completes.
func (d *Describer) describeTCP(p *packet) {
	s, l := d.in.TCP, d.in.Link
	p.header(&header.TCP, l.Offset, s.Header)
	p.addSummary("TCP ")
	p.addPorts(l)
	for _, flag := range []struct {
		bit  uint8
		name string
	}{{link.TCPSYN, " SYN"}, {link.TCPFIN, " FIN"}, {link.TCPRST, " RST"}} {
		if s.Flags&flag.bit != 0 {
			p.addSummary(flag.name)
		}
	}
	if d.in.Transport == overTCP {
		d.describeRecords(p)
		p.payloadBytes(s)
		return
	}
	if iwarp.IsMPA(s.Payload) && d.mpa.Decode(s.Payload) == nil {
		d.describeMPA(p)
		return
	}
	for i := range d.in.FPDUs {
		d.describeFPDU(p, i)
	}
	if len(d.in.FPDUs) == 0 && s.Length > 0 {
		p.addSummary(" data")
	}
	p.payloadBytes(s)
}

// payloadBytes adds the number of bytes in a segment.
func (p *packet) payloadBytes(s *link.TCP) {
	if s.Length > 0 {
		p.number("payload_bytes", "Payload bytes", int64(s.Length), s.Offset, len(s.Payload))
	}
}

func (d *Describer) describeMPA(p *packet) {
	s, m := d.in.TCP, &d.mpa
	p.open(record.NodeObject, "mpa", "MPA", s.Offset, m.Length)
	word := "request"
	if m.Reply {
		word = "reply"
	}
	p.text("frame", "Frame", word, s.Offset, len(iwarp.RequestKey))
	p.fields(&header.MPAFrame, s.Offset, s.Payload[:iwarp.MPALen])
	if m.Enhanced && m.Revision >= 2 {
		p.number("ird", "IRD", int64(m.IRD&0x3fff), s.Offset+iwarp.MPALen, 2)
		p.number("ord", "ORD", int64(m.ORD&0x3fff), s.Offset+iwarp.MPALen+2, 2)
	}
	at := s.Offset + m.Length - len(m.PrivateData)
	if found, ok, _ := rpcrdma.FindPrivateData(m.PrivateData); ok {
		p.header(&header.PrivateData, at+found.Offset, m.PrivateData[found.Offset:found.Offset+rpcrdma.PrivateDataLen])
	}
	p.close()
	p.addSummary(" MPA ")
	p.addSummary(word)
	if m.Reject {
		p.addSummary(" rejected")
	}
}

// describeFPDU adds one FPDU: MPA, DDP, RDMAP, and the contents of a Send.
func (d *Describer) describeFPDU(p *packet, index int) {
	note := &d.in.FPDUs[index]
	var s iwarp.Segment
	data := note.Head
	if len(data) < iwarp.LengthLen || s.Decode(data[iwarp.LengthLen:]) != nil {
		return
	}
	suffix := ""
	if index > 0 {
		suffix = "_" + strconv.Itoa(index+1)
	}
	at := func(n int) int { return within(note.Offset, n) }
	p.open(record.NodeObject, "mpa"+suffix, "MPA FPDU", at(0), iwarp.FPDULen(note.ULPDU))
	p.number("ulpdu_length", "ULPDU length", int64(note.ULPDU), at(0), 2)
	p.text("crc", "CRC-32C", [...]string{"bad", "ok", "off"}[note.CRC], -1, 0)
	p.close()
	head := data[iwarp.LengthLen : iwarp.LengthLen+s.HeaderLength]
	table := &header.DDPUntagged
	if s.Tagged {
		table = &header.DDPTagged
	}
	p.open(record.NodeObject, "ddp"+suffix, "DDP", at(2), len(head))
	p.fields(table, at(2), head)
	p.close()
	p.open(record.NodeObject, "rdmap"+suffix, "RDMAP", at(3), 1)
	p.fields(&header.RDMAP, at(3), head[1:2])
	body := iwarp.LengthLen + s.HeaderLength
	switch {
	case s.Opcode == iwarp.ReadRequest && len(s.Payload) >= iwarp.ReadRequestLen:
		p.fields(&header.ReadRequest, at(body), s.Payload[:iwarp.ReadRequestLen])
	case s.Opcode == iwarp.Terminate:
		var h iwarp.TerminateHeader
		if h.Decode(s.Payload) == nil {
			p.fields(&header.Terminate, at(body), s.Payload[:iwarp.TerminateLen])
			p.text("error", "Error", h.String(), at(body), 4)
		}
	case s.Opcode.Invalidates():
		p.fields(&header.InvalidateSTag, at(4), head[2:6])
	}
	p.close()
	p.addSummary(" | ")
	p.addSummary(s.Opcode.String())
	if s.Tagged || s.Opcode.Invalidates() {
		p.addSummary(" STag ")
		p.addSummaryHex(uint64(s.STag), 8)
	}
	if s.Opcode.IsSend() && s.Offset == 0 && d.in.RPC && p.wants.Has(forRPCRDMA) {
		d.describeRPCRDMA(p, at(body), s.Payload[:min(len(s.Payload), max(note.ULPDU-s.HeaderLength, 0))], suffix, !s.Last && len(s.Payload) >= note.ULPDU-s.HeaderLength)
	}
	if d.in.Tree && d.in.RPC && s.Opcode.IsSend() && note.CRC != iwarp.CRCBad {
		size := max(note.ULPDU-s.HeaderLength, 0)
		d.describeSend(p, sendPart{
			data: s.Payload[:min(len(s.Payload), size)], at: at(body), before: int64(s.Offset), size: size, first: s.Offset == 0, last: s.Last, suffix: suffix,
		})
	}
}

// within returns offset+n, or -1 if offset is -1, which means that the data is not contiguous in
// the frame.
func within(offset, n int) int {
	if offset < 0 {
		return -1
	}
	return offset + n
}
