package rocev2

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// ICRCResult is the result of checking an invariant CRC.
type ICRCResult uint8

// The results of checking a CRC. The result is ICRCUnchecked if the packet was truncated, or if the
// headers below it are unknown.
const (
	ICRCUnchecked ICRCResult = iota
	ICRCOk
	ICRCBad
)

// String returns the result as records show it, such as "ok".
func (r ICRCResult) String() string { return [...]string{"unchecked", "ok", "bad"}[r] }

// ICRC computes invariant CRCs. It contains the buffer for the masked headers, so that reusing an
// ICRC allocates nothing per packet. The zero value is ready.
//
// The ICRC covers the headers from the network layer on, and the transport packet. The fields that
// switches and routers may change read as ones. They depend on the link:
//
//	link                  before the headers  fields that read as ones                                  section
//	RoCEv2 over IPv4      8 bytes of ones     TOS, TTL, header checksum; UDP checksum; BTH byte 4       annex A17.3.3
//	RoCEv2 over IPv6      8 bytes of ones     traffic class, flow label, hop limit; UDP checksum;       annex A17.3.3
//	                                          BTH byte 4
//	RoCEv1                8 bytes of ones     GRH traffic class, flow label, hop limit; BTH byte 4      annex A16
//	native, without GRH   nothing             LRH VL; BTH byte 4                                        volume 1, 7.8.1
//	native, with GRH      nothing             the whole LRH; GRH traffic class, flow label, hop limit;  volume 1, 7.8.1
//	                                          BTH byte 4
//
// The 8 bytes of ones stand for an LRH that is not there. So a packet with a GRH has the same ICRC
// on a native link as in RoCEv1.
//
// The CRC function is fast for blocks of 64 bytes and slow for the rest. Hence a packet is preceded
// by zeros that make its length a multiple of 64. The zeros do not change the result if the CRC
// register starts at zero instead of ones; to compensate for that, the first 32 bits are inverted.
type ICRC struct {
	buf [block + scratch]byte
}

const (
	block = 64 // bytes
	// scratch is the size of the buffer for the masked headers (8 bytes of ones, an IPv4 header
	// with options or a GRH with an LRH, UDP, BTH). It is large enough for a whole small packet,
	// because one long CRC is faster than two short ones.
	scratch = 640
)

// masked returns the buffer for the masked packet.
func (c *ICRC) masked() []byte { return c.buf[block:] }

// RoCEv2 computes the invariant CRC of a RoCEv2 packet (IBTA annex A17.3.3).
// ip is the IP header without IPv6 extension headers, udp the 8 bytes of UDP
// header, transport the BTH and everything up to the ICRC, that excluded. The
// fields that routers may change read as ones: IPv4 TOS, TTL and checksum; IPv6
// traffic class, flow label and hop limit; the UDP checksum; BTH byte 4. It
// returns 0, false when a header is too short or of no known version.
func (c *ICRC) RoCEv2(ip, udp, transport []byte) (uint32, bool) {
	if len(ip) < 20 || len(ip) > 60 || len(udp) < 8 || len(transport) < BTHLen {
		return 0, false
	}
	masked := c.masked()
	be.PutUint64(masked, math.MaxUint64)
	n := 8 + copy(masked[8:], ip)
	switch h := masked[8:n]; {
	case ip[0]>>4 == 4:
		h[1], h[8], h[10], h[11] = 0xff, 0xff, 0xff, 0xff
	case ip[0]>>4 == 6 && len(ip) == 40:
		maskIPv6(h)
	default:
		return 0, false
	}
	be.PutUint64(masked[n:], be.Uint64(udp)|0xffff)
	return c.sum(n+8, transport), true
}

// RoCEv1 computes the invariant CRC of a RoCEv1 packet (IBTA annex A16). The argument grh is the 40
// bytes of the GRH, and transport the bytes from the BTH up to the ICRC, excluding the ICRC. Traffic
// class, flow label and hop limit of the GRH and BTH byte 4 read as ones. RoCEv1 returns 0, false if
// a header has the wrong length.
func (c *ICRC) RoCEv1(grh, transport []byte) (uint32, bool) {
	if len(grh) != GRHLen || len(transport) < BTHLen {
		return 0, false
	}
	masked := c.masked()
	be.PutUint64(masked, math.MaxUint64)
	maskIPv6(masked[8 : 8+copy(masked[8:], grh)])
	return c.sum(8+GRHLen, transport), true
}

// Native computes the invariant CRC of a packet on an InfiniBand link (IBTA volume 1, section
// 7.8.1). The argument lrh is the 8 bytes of the LRH, grh the 40 bytes of the GRH or nil, and
// transport the bytes from the BTH up to the ICRC, excluding the ICRC. Without a GRH, the VL of the
// LRH and BTH byte 4 read as ones. With a GRH, a router may replace the LRH, so all eight bytes of
// the LRH read as ones, as do traffic class, flow label and hop limit of the GRH and BTH byte 4.
// Native returns 0, false if a header has the wrong length.
func (c *ICRC) Native(lrh, grh, transport []byte) (uint32, bool) {
	switch {
	case len(lrh) != LRHLen || len(transport) < BTHLen:
		return 0, false
	case len(grh) != 0:
		return c.RoCEv1(grh, transport)
	}
	masked := c.masked()
	n := copy(masked, lrh)
	masked[0] |= 0xf0
	return c.sum(n, transport), true
}

// sum computes the CRC of the n bytes that are already masked, followed by the transport packet.
// sum masks the BTH itself.
func (c *ICRC) sum(n int, transport []byte) uint32 {
	masked := c.masked()
	copied := len(transport)
	if copied > scratch-n { // too long for the buffer: copy a part that contains the BTH and leaves whole blocks
		copied = (copied-BTHLen)%block + BTHLen
	}
	copy(masked[n:], transport[:copied])
	masked[n+4] = 0xff
	be.PutUint32(masked, ^be.Uint32(masked))
	n += copied
	const zero = math.MaxUint32 // initial register for hash/crc32, which inverts it
	crc := crc32.Update(zero, crc32.IEEETable, c.buf[block-(-n&(block-1)):block+n])
	if copied < len(transport) {
		crc = crc32.Update(crc, crc32.IEEETable, transport[copied:])
	}
	return crc
}

// maskIPv6 sets traffic class, flow label and hop limit to ones.
func maskIPv6(h []byte) {
	h[0] |= 0x0f
	h[1], h[2], h[3], h[7] = 0xff, 0xff, 0xff, 0xff
}

// FixICRC computes the ICRC of a finished RoCEv2 packet and stores it in the last four bytes. The
// packet starts with its IP header. IPv6 must have no extension headers.
func FixICRC(packet []byte) error {
	if len(packet) < 1 {
		return short("IP header", 20, 0)
	}
	size := 40
	if packet[0]>>4 == 4 {
		size = int(packet[0]&15) * 4
	}
	if need := size + 8 + BTHLen + ICRCLen; len(packet) < need {
		return short("RoCEv2 packet", need, len(packet))
	}
	end := len(packet) - ICRCLen
	crc, ok := new(ICRC).RoCEv2(packet[:size], packet[size:size+8], packet[size+8:end])
	if !ok {
		return fmt.Errorf("rocev2: cannot compute the ICRC of a packet with IP version %d and an IP header of %d bytes", packet[0]>>4, size)
	}
	binary.LittleEndian.PutUint32(packet[end:], crc)
	return nil
}

// VCRC computes the variant CRC of a native link (IBTA volume 1, section
// 7.8.2): CRC-16 with polynomial 0x100B over the packet from LRH through ICRC,
// stored least significant byte first.
func VCRC(packet []byte) uint16 {
	crc := uint16(0xffff)
	for _, b := range packet {
		crc = crc>>8 ^ vcrcTable[byte(crc)^b]
	}
	return ^crc
}

var vcrcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ 0xd008
			} else {
				crc >>= 1
			}
		}
		table[i] = crc
	}
	return table
}()
