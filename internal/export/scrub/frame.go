package scrub

import (
	"hash/crc32"
	"hash/maphash"
	"net/netip"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// frame writes one scrubbed frame: first it replaces all bytes, then it restores the
// known structure, and last it computes the checksums.
type frame struct {
	s       *Scrubber
	link    link.Decoder
	check   link.Decoder // decodes the scrubbed frame
	packet  rocev2.Packet
	other   rocev2.Packet // packet of the scrubbed frame
	tcp     link.TCP
	in, out []byte
	at      wiremap.StreamOffset // of its payload
	raw     []byte               // the FPDU as it is in its TCP stream
	plain   []byte               // the FPDU without markers
	icrc    rocev2.ICRC
	try     int64
	notRoCE bool // the frame is a datagram to RoCE's port that is not a RoCE packet
	firsts  firsts
}

// maxTries limits how often a frame is written with other random bytes, which is
// needed if the bytes that replace damaged ones happen to be valid.
const maxTries = 16

// maxFrame is larger than any frame, in bytes.
const maxFrame = 1 << 24

// Frame returns the scrubbed bytes of a frame of the second run, whose payload is at an
// offset. The slice is valid
// until the next call. The error is that of reading the temporary file.
func (s *Scrubber) Frame(f *capture.Frame, p *record.Packet, at wiremap.StreamOffset) ([]byte, error) {
	w := &s.frame
	w.link.Decode(f)
	if again := w.firsts.find(&w.link, f, p, at); again != nil {
		same := *f
		same.Number = again.number
		f, at = &same, again.at
		p = &record.Packet{Transport: again.transport, ICRC: again.icrc, Connection: again.connection}
	}
	w.at = at
	before := s.Report
	for try := int64(0); ; try++ {
		s.Report = before
		w.write(f, p, try)
		if try == maxTries || w.same(f) {
			break
		}
	}
	s.Report.Packets++
	return w.out, s.failed()
}

// firsts holds the latest packets, because a capture may have packets twice. The dissector
// does not take the second copy, so that only the first one shows where its bytes belong. The
// second copy is written like the first one, so that it is one in the scrubbed capture, too.
type firsts struct {
	seed   maphash.Seed
	begun  bool
	packet [1 << 11]first // as many as the dissector remembers
	next   int
}

// first is what is written of a packet depends on, apart from its bytes.
type first struct {
	key        uint64
	number     int64
	at         wiremap.StreamOffset
	transport  string
	icrc       record.Check
	connection record.Opt[int]
}

// find returns the first copy of a packet if the packet is the second one. Otherwise it
// remembers the packet and returns nil.
func (s *firsts) find(d *link.Decoder, f *capture.Frame, p *record.Packet, at wiremap.StreamOffset) *first {
	if !s.begun {
		s.seed, s.begun = maphash.MakeSeed(), true
	}
	var h maphash.Hash
	h.SetSeed(s.seed)
	h.Write(d.Transport)
	maphash.WriteComparable(&h, [...]netip.Addr{d.Src, d.Dst})
	maphash.WriteComparable(&h, [...]int{d.Length, int(d.SrcLID), int(d.DstLID), int(d.SrcPort), int(d.DstPort)})
	key := h.Sum64()
	if p.Marks&record.Duplicated != 0 && at.StreamID == 0 && !p.Connection.Known() {
		for i := range s.packet {
			if c := &s.packet[(s.next-1-i)&(len(s.packet)-1)]; c.number != 0 && c.key == key {
				return c
			}
		}
		return nil
	}
	s.packet[s.next&(len(s.packet)-1)] = first{key, f.Number, at, p.Transport, p.ICRC, p.Connection}
	s.next++
	return nil
}

// HidesXID reports whether the XID of a packet must not be shown: its transaction has no
// message whose header was recognized, so the XID may be any bytes. It can be called in
// the second run.
func (s *Scrubber) HidesXID(p *record.Packet) bool {
	id, known := p.Transaction.Get()
	return !known || !s.recognized(id)
}

// tables has the fields of headers, if every byte of the header belongs to a field.
var tables = [link.HeaderKinds]*field.Header{
	link.HeaderEthernet: &header.Ethernet, link.HeaderIPv4: &header.IPv4, link.HeaderIPv6: &header.IPv6, link.HeaderGRH: &header.GRH,
}

// write writes the scrubbed frame to w.out; each try uses other random bytes.
func (w *frame) write(f *capture.Frame, p *record.Packet, try int64) {
	w.in, w.notRoCE, w.try = f.Data, false, try
	w.out = slices.Grow(w.out[:0], len(f.Data))[:len(f.Data)]
	own := stream{"frame", f.Number, try}
	clear(w.out)
	if carriesRDMA(p) || try > 0 { // zeros replace all other traffic but the messages of RPC, because programs do not complain about them
		from, to := w.payload(p)
		w.random(f, 0, from)
		w.random(f, to, len(w.out))
	}
	for _, h := range w.link.Headers() {
		w.header(h)
	}
	d := &w.link
	end := len(w.in)
	if d.Protocol == "ARP" {
		w.arp()
	}
	switch d.Carries {
	case link.CarriesTCP:
		w.segment(p, own)
		end = d.Offset + d.Length
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		w.transport(p, own)
		end = d.Offset + d.Length
	case link.CarriesUDP:
		if p.Transport == "UDP" && w.at.StreamID != 0 {
			w.s.packet(w.out[d.Offset:d.Offset+len(d.Transport)], w.at, own)
		}
	}
	if end < len(w.in) && zero(w.in[end:]) { // padding of a short frame
		clear(w.out[end:])
	}
	w.checksums()
}

// random writes pseudorandom bytes to [from, to) of the frame, which depend only on its number and the place.
func (w *frame) random(f *capture.Frame, from, to int) {
	w.s.key.fill(w.out[from:to], stream{"frames", w.try, 0}, f.Number*maxFrame+int64(from)) // one stream for all frames, because a new one takes time
}

// payload returns the range of a packet's payload that is written completely by what its stream contains, so that nothing else
// needs to be written to it: that would make a cipher object and encrypt the bytes for nothing.
func (w *frame) payload(p *record.Packet) (from, to int) {
	d, t := &w.link, &w.packet
	switch d.Carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		err := t.Decode(d.Transport, d.Length)
		if kind := t.Opcode.Info().Kind; err != nil || !w.isRoCE(err) || t.Opcode.Transport() == rocev2.UD || kind == rocev2.KindCongestion {
			return 0, 0
		}
		from = w.afterHeaders()
		return from, from + len(t.Payload)
	case link.CarriesTCP:
		w.tcp.Src, w.tcp.Dst = d.Src, d.Dst
		if carriesRDMA(p) && w.at.StreamID != 0 && w.tcp.Decode(d.Transport, d.Length, d.Offset) {
			return w.tcp.Offset, w.tcp.Offset + len(w.tcp.Payload)
		}
	}
	return 0, 0
}

// afterHeaders returns the offset after the headers of the decoded packet of the InfiniBand transport.
func (w *frame) afterHeaders() int {
	at := w.link.Offset + rocev2.BTHLen
	for rest := w.packet.Headers; rest != 0; rest &= rest - 1 {
		at += (rest & -rest).Len()
	}
	return at
}

// carriesRDMA reports whether a packet carries RDMA.
func carriesRDMA(p *record.Packet) bool {
	return p.Transport != "" && p.Transport != "TCP" && p.Transport != "UDP"
}

// keep copies the bytes [from, to) of the original frame.
func (w *frame) keep(from, to int) {
	if to = min(to, len(w.in)); from < to {
		copy(w.out[from:to], w.in[from:to])
	}
}

// zero reports whether all bytes are 0.
func zero(b []byte) bool {
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// header writes a scrubbed header below the transport layer.
func (w *frame) header(h link.Header) {
	at, end := h.Offset, h.Offset+h.Length
	w.keep(at, end)
	switch h.Kind {
	case link.HeaderSLL:
		w.cooked(at+4, 2, at+6)
	case link.HeaderSLL2:
		w.cooked(at+11, 1, at+12)
	case link.HeaderERFExtension: // it may identify the capturing host
		clear(w.out[at+1 : end])
	case link.HeaderGeneveOption: // its data may name hosts and users
		clear(w.out[at+4 : end])
	case link.HeaderERSPANPlatform: // it may identify the switch
		clear(w.out[at+1 : end])
	case link.HeaderIPv4:
		w.options(at+20, end, false)
	case link.HeaderIPv6Extension:
		if !w.fragments(at) {
			clear(w.out[at+2 : end])
		}
	}
	if t := tables[h.Kind]; t != nil {
		w.fields(t, at)
	}
}

// fields replaces the addresses of a header.
func (w *frame) fields(t *field.Header, at int) {
	in, out := w.in[at:min(at+t.Length, len(w.in))], w.out[at:]
	for i := range t.Fields {
		v := &t.Fields[i]
		if !v.Whole(in) {
			continue
		}
		from := v.Bit / 8
		switch v.Format {
		case field.MAC:
			copy(out[from:], w.s.key.mac(v.Raw(in)))
		case field.IPv4, field.IPv6:
			w.s.key.ip(out[from:], v.Raw(in))
		default:
			continue
		}
		w.s.Report.Addresses++
	}
}

// ip writes the pseudonym of an IP address or GID.
func (k *key) ip(to, raw []byte) {
	a, _ := netip.AddrFromSlice(raw)
	copy(to, k.address(a).AsSlice())
}

// cooked replaces the address at an offset of a Linux cooked header. The length of
// the address is in the header, in a field at the offset length that has 1 or 2 bytes.
func (w *frame) cooked(length, bytes, at int) {
	address := w.in[at : at+8]
	n := int(w.in[length+bytes-1])
	if bytes == 2 {
		n |= int(w.in[length]) << 8
	}
	w.s.Report.Addresses++
	switch {
	case n == 0:
		clear(w.out[at : at+8])
	case n == 6:
		clear(w.out[at : at+8])
		copy(w.out[at:], w.s.key.mac(address[:6]))
	case !zero(address):
		copy(w.out[at:], w.s.key.opaque("link address", address))
	}
}

// harmless reports whether a TCP option of n bytes is well-formed and is of a kind
// that contains no address: MSS, window scale, SACK permitted, SACK, timestamps.
func harmless(kind byte, n int) bool {
	switch kind {
	case 2:
		return n == 4
	case 3:
		return n == 3
	case 4:
		return n == 2
	case 5:
		return n%8 == 2
	case 8:
		return n == 10
	}
	return false
}

// options clears the contents of IP and TCP options, except harmless TCP options.
func (w *frame) options(at, end int, tcp bool) {
	end = min(end, len(w.in))
	for at < end && w.in[at] > 0 {
		n := 1
		if w.in[at] != 1 {
			if at+1 >= end {
				break
			}
			if n = int(w.in[at+1]); n < 2 || at+n > end {
				break
			}
			if !tcp || !harmless(w.in[at], n) {
				clear(w.out[at+2 : at+n])
			}
		}
		at += n
	}
	clear(w.out[min(at+1, end):end]) // options that cannot be decoded, or bytes after the end of the list
}

// fragments reports whether the IPv6 extension header at an offset is a fragment
// header.
func (w *frame) fragments(at int) bool {
	kind := byte(fragmentHeader)
	for _, h := range w.link.Headers() {
		if h.Offset+h.Length == at {
			if h.Kind == link.HeaderIPv6 {
				kind = w.in[h.Offset+6]
			} else {
				kind = w.in[h.Offset]
			}
		}
	}
	return kind == fragmentHeader
}

const fragmentHeader = 44 // IPv6 Fragment header (RFC 8200 s.4.5)

// segment writes a scrubbed TCP segment.
func (w *frame) segment(p *record.Packet, own stream) {
	d, t := &w.link, &w.tcp
	t.Src, t.Dst = d.Src, d.Dst
	if !t.Decode(d.Transport, d.Length, d.Offset) {
		size := 0
		if len(d.Transport) > 12 {
			size = int(d.Transport[12]>>4) * 4
		}
		if len(d.Transport) <= 12 || size >= 20 && size <= d.Length { // the header is truncated, but valid so far
			w.keep(d.Offset, min(d.Offset+20, d.Offset+len(d.Transport)))
		} else { // only the ports are certain
			w.keep(d.Offset, d.Offset+4)
		}
		return
	}
	w.keep(d.Offset, t.Offset)
	w.options(d.Offset+20, t.Offset, true)
	out := w.out[t.Offset : t.Offset+len(t.Payload)]
	w.s.Report.Payload += int64(len(out))
	switch {
	case p.Transport == "TCP":
		w.s.records(out, w.at)
	case !carriesRDMA(p):
	case w.at.StreamID == 0:
		w.mpaHead(out)
	default:
		w.s.fpdus(out, w.at, &w.raw, &w.plain, w)
	}
}

// mpaHead keeps the fixed part of an MPA Request or Reply Frame.
func (w *frame) mpaHead(out []byte) {
	if iwarp.IsMPA(w.tcp.Payload) {
		copy(out, w.tcp.Payload[:min(len(w.tcp.Payload), iwarp.MPALen)])
	}
}

// fpdus writes scrubbed bytes of a TCP stream, beginning at a place.
func (s *Scrubber) fpdus(out []byte, at wiremap.StreamOffset, raw, plain *[]byte, w *frame) {
	s.key.fill(out, stream{"stream", at.StreamID, 0}, at.At)
	w.mpaHead(out)
	end := at.At + int64(len(out))
	for i := s.firstFPDU(at.StreamID, at.At); ; i++ {
		f, same := s.fpduAt(i, at.StreamID)
		if !same || f.at >= end {
			break
		}
		if f.at+f.count <= at.At {
			continue
		}
		*raw = s.rawFPDU((*raw)[:0], plain, &f, at.StreamID)
		if from := at.At - f.at; from >= 0 {
			copy(out, (*raw)[min(from, int64(len(*raw))):])
		} else {
			copy(out[-from:], *raw)
		}
	}
}

// records writes scrubbed bytes of a TCP stream of RPC records, beginning at a place. Zeros replace what is in no record.
func (s *Scrubber) records(out []byte, at wiremap.StreamOffset) {
	clear(out)
	end := at.At + int64(len(out))
	for i := s.firstFPDU(at.StreamID, at.At); at.StreamID != 0; i++ {
		f, same := s.fpduAt(i, at.StreamID)
		if !same || f.at >= end {
			break
		}
		from, to := max(f.at, at.At), min(f.at+f.count, end)
		switch part := out[min(from-at.At, int64(len(out))):]; {
		case from >= to:
		case f.length > 0: // a record mark
			mark := make([]byte, f.length)
			s.file.Read(mark, f.head)
			copy(part, mark[from-f.at:])
		default:
			s.content(part[:to-from], f.owner, f.offset+from-f.at, stream{})
		}
	}
}

// rawFPDU appends a scrubbed FPDU as it is in its TCP stream, with markers and CRC.
func (s *Scrubber) rawFPDU(raw []byte, scratch *[]byte, f *fpdu, flow int64) []byte {
	head := make([]byte, f.length)
	s.file.Read(head, f.head)
	if f.mpa || len(head) < iwarp.LengthLen {
		return append(raw, head...)
	}
	ulpdu := int(be.Uint16(head))
	size := iwarp.FPDULen(ulpdu)
	plain := slices.Grow((*scratch)[:0], size)[:size]
	*scratch = plain
	copy(plain, head)
	stop := max(iwarp.LengthLen+ulpdu, len(head))
	clear(plain[stop:])
	s.content(plain[len(head):stop], f.owner, f.offset, stream{"fpdu", flow, f.at})
	body := plain[:size-iwarp.CRCLen]
	raw = f.mark(raw, body)
	if f.hasCRC {
		// The CRC covers all markers, even one directly before it.
		if f.markers && (f.position+len(raw))%iwarp.MarkerEvery == 0 {
			raw = be.AppendUint32(raw, uint32(len(raw)))
		}
		sum := crc32.Checksum(raw, iwarp.Castagnoli)
		if f.wrongCRC != 0 {
			sum ^= s.wrongCRC(f, flow, sum)
		}
		return f.mark(raw, le.AppendUint32(nil, sum))
	}
	return f.mark(raw, plain[size-iwarp.CRCLen:])
}

// wrongCRC returns the difference between the right CRC of a scrubbed FPDU and the one
// to write, if that of the original was wrong. It is not 0 and depends on the key.
func (s *Scrubber) wrongCRC(f *fpdu, flow int64, right uint32) uint32 {
	value := be.AppendUint32(be.AppendUint64(be.AppendUint64(nil, uint64(flow)), uint64(f.at)), f.wrongCRC)
	for salt := byte(0); ; salt++ {
		sum := s.key.hash("wrong MPA CRC", append(value, salt))
		if v := be.Uint32(sum[:]); v != 0 && v != right { // a CRC of 0 would mean that there is none
			return v
		}
	}
}

// mark appends bytes of an FPDU and inserts the markers. A marker contains the
// distance to the beginning of the FPDU (RFC 5044 s.4.3).
func (f *fpdu) mark(raw, plain []byte) []byte {
	if !f.markers {
		return append(raw, plain...)
	}
	for len(plain) > 0 {
		at := (f.position + len(raw)) % iwarp.MarkerEvery
		if at == 0 {
			raw = be.AppendUint32(raw, uint32(len(raw)))
			at = iwarp.MarkerLen
		}
		n := min(iwarp.MarkerEvery-at, len(plain))
		raw, plain = append(raw, plain[:n]...), plain[n:]
	}
	return raw
}

// transport writes a scrubbed packet of the InfiniBand transport.
func (w *frame) transport(p *record.Packet, own stream) {
	d, t := &w.link, &w.packet
	raw := d.Transport
	at := d.Offset
	if len(raw) < rocev2.BTHLen {
		return
	}
	err := t.Decode(raw, d.Length)
	if w.notRoCE = !w.isRoCE(err); w.notRoCE {
		w.out[at] = reserved
		w.s.Report.Payload += int64(len(raw))
		return
	}
	w.keep(at, at+rocev2.BTHLen)
	if err != nil {
		return
	}
	payload := w.afterHeaders()
	if !w.at.Dropped || t.PayloadLength == 0 { // the opcode of a dropped packet may be damaged, and the bytes may be data
		w.keep(at+rocev2.BTHLen, payload)
		w.atomics(at)
	}
	out := w.out[payload : payload+len(t.Payload)]
	end := payload + len(t.Payload)
	switch kind := t.Opcode.Info().Kind; {
	case t.Opcode.Transport() == rocev2.UD && t.DestQPN == 1:
		w.datagram(payload, end)
	case kind == rocev2.KindCongestion && zero(t.Payload):
		clear(out)
	default:
		if !w.s.packet(out, w.at, own) && kind == rocev2.KindSend && t.Opcode.Info().First && p.ICRC == record.Good && w.carriesRPC(p) {
			w.s.unassigned(out, t.Payload)
		}
	}
	clear(w.out[end:min(end+len(t.Pad), len(w.out))])
}

// reserved is an opcode that is not defined.
const reserved = 0xff

// isRoCE reports whether a datagram to RoCE's port is a RoCE packet: its ICRC is
// good or, if the ICRC is bad or cannot be verified, it is not a fragment, its opcode
// is defined, and its reserved bits are 0. err is the error of decoding its headers.
func (w *frame) isRoCE(err error) bool {
	d, t := &w.link, &w.packet
	if d.Carries != link.CarriesRoCEv2 || err == nil && d.CheckICRC(t) == rocev2.ICRCOk {
		return true
	}
	headers := d.Headers()
	for i := len(headers) - 1; i >= 0; i-- {
		h := headers[i]
		if h.Kind == link.HeaderIPv6Extension && w.fragments(h.Offset) || h.Kind == link.HeaderIPv4 && be.Uint16(w.in[h.Offset+6:])&0x2000 != 0 {
			return false
		}
		if h.Kind == link.HeaderIPv4 || h.Kind == link.HeaderIPv6 {
			break
		}
	}
	return t.Opcode.Info().Known && t.Opcode.Transport() != rocev2.RD && d.Transport[1]&0xf == 0 && d.Transport[8]&0x7f == 0
}

// arp writes a scrubbed ARP packet of IPv4 on Ethernet.
func (w *frame) arp() {
	at := 0
	for _, h := range w.link.Headers() {
		at = h.Offset + h.Length
	}
	if len(w.in) < at+28 || be.Uint64(w.in[at:])>>16 != 0x000108000604 {
		return
	}
	w.keep(at, at+8)
	for _, at := range []int{at + 8, at + 18} {
		copy(w.out[at:], w.s.key.mac(w.in[at:at+6]))
		w.s.key.ip(w.out[at+6:], w.in[at+6:at+10])
		w.s.Report.Addresses += 2
	}
}

// atomics replaces the operands and results of atomic operations, because they are
// contents of memory, and immediate data, because it belongs to the application.
func (w *frame) atomics(at int) {
	at += rocev2.BTHLen
	for rest := w.packet.Headers; rest != 0; rest &= rest - 1 {
		h := rest & -rest
		switch h {
		case rocev2.HasAtomicETH:
			w.s.key.fill(w.out[at+12:at+rocev2.AtomicETHLen], stream{"atomic", int64(w.packet.PSN), 0}, 0)
		case rocev2.HasAtomicAckETH:
			w.s.key.fill(w.out[at:at+rocev2.AtomicAckETHLen], stream{"atomic", int64(w.packet.PSN), 1}, 0)
		case rocev2.HasImmDt:
			w.s.key.fill(w.out[at:at+h.Len()], stream{"immediate", int64(w.packet.PSN), 0}, 0)
		}
		at += h.Len()
	}
}

// packet writes the scrubbed payload of a packet at a place, and reports whether the
// first run decoded all of it.
func (s *Scrubber) packet(out []byte, at wiremap.StreamOffset, own stream) (known bool) {
	if at.StreamID != 0 {
		own = stream{"packet", at.StreamID, at.At}
	}
	s.Report.Payload += int64(len(out))
	if r, found := s.find(at.StreamID, at.At); found {
		s.content(out, r.owner, r.offset+(at.At-r.at)*r.stride, own)
		return r.owner.send == 0 || s.holds(r.owner.send) >= len(out) // otherwise the decoded copy was truncated
	}
	s.key.fill(out, own, 0)
	return false
}

// holds returns the length of the plan for a Send that was just written.
func (s *Scrubber) holds(send int64) int {
	if at := s.planOf(send); at == 0 || s.cached != at {
		return 0
	}
	return len(s.plan.out)
}

// carriesRPC reports whether a packet belongs to a connection that carries
// RPC-over-RDMA, even if that was only known after the packet.
func (w *frame) carriesRPC(p *record.Packet) bool {
	return w.s.rpcFlows.has(w.at.StreamID) || w.s.rpc.has(int64(p.Connection.Or(-1)))
}

// unassigned writes the scrubbed beginning of a Send that the first run did not
// assign to an operation, for example because the capture begins with
// retransmissions, or because another copy of the packet is truncated. On an RPC
// connection, a Send begins with the header of RPC-over-RDMA.
func (s *Scrubber) unassigned(out, in []byte) {
	h := &s.header
	if h.Decode(in) != nil || !h.Understood() || h.Proc > rpcrdma.Error {
		return
	}
	r := wiremap.Message{Header: in[:h.Length], Payload: in[h.Length:], RPC: h.Proc == rpcrdma.Msg}
	for _, i := range h.ReadOrder {
		g := &h.Reads[i]
		if n := len(r.Holes); n > 0 && r.Holes[n-1].Position == int64(g.Position) {
			r.Holes[n-1].Length += int64(g.Length)
		} else if g.Position > 0 {
			r.Holes = append(r.Holes, nfs.Hole{Position: int64(g.Position), Length: int64(g.Length)})
		}
	}
	m := &s.message
	m.stream(&r)
	for i, known := range m.known {
		if known {
			out[i] = m.out[i]
		}
	}
}

// same reports whether the scrubbed frame decodes like the original one.
func (w *frame) same(f *capture.Frame) bool {
	c, d := &w.check, &w.link
	other := *f
	other.Data = w.out
	c.Decode(&other)
	if c.Carries != d.Carries || c.Offset != d.Offset || c.Length != d.Length || len(c.Headers()) != len(d.Headers()) {
		return false
	}
	switch d.Carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		a, b := w.packet.Decode(d.Transport, d.Length), w.other.Decode(c.Transport, c.Length)
		if w.notRoCE {
			return b != nil || c.CheckICRC(&w.other) != rocev2.ICRCOk
		}
		return (a == nil) == (b == nil) && (a != nil || d.CheckICRC(&w.packet) == c.CheckICRC(&w.other))
	case link.CarriesTCP:
		var s link.TCP
		s.Src, s.Dst = c.Src, c.Dst
		if !s.Decode(c.Transport, c.Length, c.Offset) {
			return len(w.tcp.Header) == 0 || !w.tcp.Decode(d.Transport, d.Length, d.Offset)
		}
		w.tcp.Src, w.tcp.Dst = d.Src, d.Dst
		if !w.tcp.Decode(d.Transport, d.Length, d.Offset) {
			return false
		}
		return sound(&s) == sound(&w.tcp)
	}
	return true
}

// soundness is the result of verifying a TCP checksum.
type soundness struct{ right, known, unfinished bool }

// sound verifies the checksum of a segment.
func sound(s *link.TCP) (c soundness) {
	c.right, c.known = s.Checksum()
	c.unfinished = !c.right && s.Unfinished()
	return c
}
