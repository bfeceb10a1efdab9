package rocev2

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
)

// Packet is one transport packet: BTH, extended headers, payload, pad and ICRC. The zero value is
// ready. Decoding into the same Packet repeatedly allocates nothing.
type Packet struct {
	BTH
	Headers      Headers // extended headers that were decoded
	RDETH        RDETH
	DETH         DETH
	XRCETH       XRCETH
	FETH         FETH
	RETH         RETH
	AtomicETH    AtomicETH
	AETH         AETH
	AtomicAckETH AtomicAckETH
	ImmDt        ImmDt
	IETH         IETH

	// Payload holds the captured bytes of the payload, without the pad.
	Payload []byte
	// PayloadLength is the number of payload bytes on the wire.
	PayloadLength int
	// HasICRC reports whether the ICRC was captured.
	HasICRC bool

	contents []byte // of the BTH
}

// LayerType returns LayerTypeBTH.
func (p *Packet) LayerType() gopacket.LayerType { return LayerTypeBTH }

// CanDecode returns LayerTypeBTH.
func (p *Packet) CanDecode() gopacket.LayerClass { return LayerTypeBTH }

// LayerContents returns the bytes of the BTH. With [gopacket.NewPacket], the extended headers are
// layers of their own, too.
func (p *Packet) LayerContents() []byte { return p.contents }

// DecodeFromBytes decodes a packet that was captured completely, from the BTH to the ICRC.
func (p *Packet) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	err := p.Decode(data, len(data))
	if err != nil {
		df.SetTruncated()
	}
	return err
}

// Decode decodes a packet. The argument data holds the captured bytes, and length is the number of
// bytes on the wire, from the BTH to the ICRC. Slices in p alias data. If the packet was truncated
// to a snapshot length, every complete header is decoded: the error is nil if all headers are
// complete, and Payload is then shorter than PayloadLength.
//
// If an extended header is truncated, Headers lists the headers before it. Errors wrap
// [ErrTruncated].
//
// The pad count of an operation without a payload, such as an Acknowledge, should be 0. If it is not,
// Decode accepts the packet, and Pad holds only the pad bytes that exist; see [Packet.StrayPad].
func (p *Packet) Decode(data []byte, length int) error {
	p.Headers, p.Payload, p.PayloadLength, p.HasICRC = 0, nil, 0, false
	p.Pad, p.ICRC = nil, 0
	if length < len(data) {
		data = data[:max(length, 0)]
	}
	if len(data) < BTHLen {
		return short("BTH", BTHLen, len(data))
	}
	p.BTH.decode(data)
	p.contents = data[:BTHLen]
	info := p.Opcode.Info()
	at := BTHLen
	for want := info.Headers; want != 0; want &= want - 1 {
		h, size := want&-want, want.firstLen()
		if len(data)-at < size {
			return fmt.Errorf("rocev2: %v needs %d bytes of extended header at offset %d, %d left: %w", p.Opcode, size, at, len(data)-at, ErrTruncated)
		}
		p.extended(h).decode(data[at:])
		p.Headers |= h
		at += size
	}
	pad := int(p.PadCount)
	if left := length - ICRCLen - at; left >= 0 && !info.hasPayload() {
		pad = min(pad, left) // without a payload, the pad count says nothing
	}
	end := length - ICRCLen - pad
	if end < at {
		return fmt.Errorf("rocev2: %v of %d bytes is too short for %d bytes of headers, %d of pad and the ICRC: %w", p.Opcode, length, at, p.PadCount, ErrTruncated)
	}
	p.PayloadLength = end - at
	if len(data) < end {
		p.Payload = data[at:]
		return nil
	}
	p.Payload = data[at:end]
	if len(data) >= length {
		p.Pad = data[end : end+pad]
		p.ICRC = binary.LittleEndian.Uint32(data[length-ICRCLen:])
		p.HasICRC = true
	}
	return nil
}

// StrayPad reports whether the pad count is not 0 although the operation has no payload.
func (p *Packet) StrayPad() bool { return p.PadCount != 0 && !p.Opcode.Info().hasPayload() }

// Plausible reports whether data looks like the start of a RoCEv2 packet of length bytes, from the
// BTH to the ICRC. It recognises packets that the UDP destination port does not identify. The whole
// BTH must be captured. The opcode must be defined, the header version must be 0, and the reserved
// bits must be 0. The length must be a multiple of 4 and must fit the extended headers, the pad and
// the ICRC. About one in a million random datagrams passes these checks.
func Plausible(data []byte, length int) bool {
	if len(data) < BTHLen || length%4 != 0 {
		return false
	}
	var b BTH
	b.decode(data)
	info := b.Opcode.Info()
	need := BTHLen + info.HeadLen + ICRCLen
	if info.hasPayload() {
		need += int(b.PadCount)
	}
	return info.Known && b.TVer == 0 && b.Reserved6 == 0 && b.Reserved7 == 0 && length >= need
}

// extended returns the field of p for one header.
func (p *Packet) extended(h Headers) fixed {
	switch h {
	case HasRDETH:
		return &p.RDETH
	case HasDETH:
		return &p.DETH
	case HasXRCETH:
		return &p.XRCETH
	case HasFETH:
		return &p.FETH
	case HasRETH:
		return &p.RETH
	case HasAtomicETH:
		return &p.AtomicETH
	case HasAETH:
		return &p.AETH
	case HasAtomicAckETH:
		return &p.AtomicAckETH
	case HasImmDt:
		return &p.ImmDt
	}
	return &p.IETH
}

// IsMAD reports whether the packet is a datagram to the subnet management interface (queue pair 0) or
// to the general services interface (queue pair 1), which receive only management datagrams.
func (p *Packet) IsMAD() bool { return p.DestQPN <= 1 && p.Opcode.Transport() == UD }

// NextLayerType returns LayerTypeMAD for a management datagram, and gopacket.LayerTypePayload
// otherwise.
func (p *Packet) NextLayerType() gopacket.LayerType {
	if p.IsMAD() && len(p.Payload) >= MADLen {
		return LayerTypeMAD
	}
	return gopacket.LayerTypePayload
}

// LayerPayload returns the bytes after the last header.
func (p *Packet) LayerPayload() []byte { return p.Payload }

// SerializeTo prepends BTH and extended headers to the payload in buf, and appends pad and ICRC.
// With FixLengths it computes the pad. It writes the ICRC of the struct, because the ICRC also
// covers the IP and UDP headers; [FixICRC] computes the ICRC of the finished packet.
func (p *Packet) SerializeTo(buf gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	if opts.FixLengths {
		p.PadCount = uint8(-len(buf.Bytes()) & 3)
		p.Pad = make([]byte, p.PadCount)
	}
	if stray := !p.Opcode.Info().hasPayload() && len(p.Pad) < int(p.PadCount); len(p.Pad) != int(p.PadCount) && !stray {
		return fmt.Errorf("rocev2: the pad count of the BTH is %d, but Pad has %d bytes", p.PadCount, len(p.Pad))
	}
	tail, err := buf.AppendBytes(len(p.Pad) + ICRCLen)
	if err != nil {
		return err
	}
	copy(tail, p.Pad)
	binary.LittleEndian.PutUint32(tail[len(p.Pad):], p.ICRC)
	at := BTHLen
	head, err := buf.PrependBytes(BTHLen + p.Headers.Len())
	if err != nil {
		return err
	}
	p.BTH.encode(head)
	for have := p.Headers; have != 0; have &= have - 1 {
		h := have & -have
		p.extended(h).encode(head[at:])
		at += h.Len()
	}
	return nil
}
