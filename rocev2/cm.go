package rocev2

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/gopacket"
)

// CMSize is the length in bytes of every connection manager message, which is a MAD without its
// common header.
const CMSize = MADSize - MADLen

// CMAttribute is the attribute ID of a connection manager MAD. It identifies the message (IBTA
// volume 1, section 16.7.1).
type CMAttribute uint16

// The messages of the connection manager.
const (
	CMReq     CMAttribute = 0x0010
	CMMra     CMAttribute = 0x0011
	CMRej     CMAttribute = 0x0012
	CMRep     CMAttribute = 0x0013
	CMRtu     CMAttribute = 0x0014
	CMDreq    CMAttribute = 0x0015
	CMDrep    CMAttribute = 0x0016
	CMSidrReq CMAttribute = 0x0017
	CMSidrRep CMAttribute = 0x0018
	CMLap     CMAttribute = 0x0019
	CMApr     CMAttribute = 0x001a
)

// cmMessages maps each attribute ID to the name of its message, and to its layer type if this package decodes it.
var cmMessages = map[CMAttribute]struct {
	name  string
	layer func() gopacket.LayerType
}{
	CMReq:     {"REQ", func() gopacket.LayerType { return LayerTypeREQ }},
	CMMra:     {"MRA", func() gopacket.LayerType { return LayerTypeMRA }},
	CMRej:     {"REJ", func() gopacket.LayerType { return LayerTypeREJ }},
	CMRep:     {"REP", func() gopacket.LayerType { return LayerTypeREP }},
	CMRtu:     {"RTU", func() gopacket.LayerType { return LayerTypeRTU }},
	CMDreq:    {"DREQ", func() gopacket.LayerType { return LayerTypeDREQ }},
	CMDrep:    {"DREP", func() gopacket.LayerType { return LayerTypeDREP }},
	CMSidrReq: {name: "SIDR_REQ"},
	CMSidrRep: {name: "SIDR_REP"},
	CMLap:     {name: "LAP"},
	CMApr:     {name: "APR"},
}

// String returns the name of the message, such as "REQ".
func (a CMAttribute) String() string {
	if row, known := cmMessages[a]; known {
		return row.name
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(a))
}

// RejectReason is the reason in a REJ (IBTA volume 1, table 110).
type RejectReason uint16

var rejectReasons = map[RejectReason]string{
	1: "no QP available", 2: "no EEC available", 3: "no resources available", 4: "timeout",
	5: "unsupported request", 6: "invalid communication ID", 7: "invalid communication instance",
	8: "invalid service ID", 9: "invalid transport service type", 10: "stale connection",
	11: "RDC does not exist", 12: "primary remote port GID rejected", 13: "primary remote port LID rejected",
	14: "invalid primary SL", 15: "invalid primary traffic class", 16: "invalid primary hop limit",
	17: "invalid primary packet rate", 18: "alternate remote port GID rejected",
	19: "alternate remote port LID rejected", 20: "invalid alternate SL", 21: "invalid alternate traffic class",
	22: "invalid alternate hop limit", 23: "invalid alternate packet rate", 24: "port and CM redirection",
	25: "port redirection", 26: "invalid path MTU", 27: "insufficient responder resources",
	28: "consumer reject", 29: "RNR retry count reject", 30: "duplicate local communication ID",
	31: "invalid class version", 32: "invalid primary flow label", 33: "invalid alternate flow label",
	65: "vendor option not supported",
}

// String returns the reason in words.
func (r RejectReason) String() string {
	if name, known := rejectReasons[r]; known {
		return name
	}
	return fmt.Sprintf("reason %d", uint16(r))
}

// codec decodes or encodes the fields of a message, so that each field is listed only once.
// Decoding copies each field from the wire and clears its bits in left, so that left finally holds
// the bits that belong to no field. Encoding writes the fields over those bits.
type codec struct {
	wire     []byte
	left     [CMSize]byte
	encoding bool
}

// codecs is a pool of codecs, so that decoding a message allocates nothing.
var codecs = sync.Pool{New: func() any { return new(codec) }}

// bits decodes or encodes an unsigned field of width bits at bit offset at. Bits are counted from
// the most significant bit of the first byte.
func bits[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *codec, at, width int, v *T) {
	var value uint64
	if !c.encoding && (at|width)%8 == 0 { // the common case of whole bytes
		from, to := at/8, (at+width)/8
		for _, b := range c.wire[from:to] {
			value = value<<8 | uint64(b)
		}
		clear(c.left[from:to])
		*v = T(value)
		return
	}
	for width > 0 { // the part of the field in one byte
		index, n := at/8, min(8-at%8, width)
		low := 8 - at%8 - n
		mask := byte(1<<n-1) << low
		at, width = at+n, width-n
		if c.encoding {
			c.wire[index] = c.wire[index]&^mask | byte(uint64(*v)>>width)<<low&mask
			continue
		}
		value = value<<n | uint64(c.wire[index]&mask>>low)
		c.left[index] &^= mask
	}
	if !c.encoding {
		*v = T(value)
	}
}

// flag decodes or encodes one bit.
func (c *codec) flag(at int, v *bool) {
	value := bit(*v, 0)
	bits(c, at, 1, &value)
	*v = value != 0
}

// ids decodes or encodes the communication IDs with which most messages begin.
func (c *codec) ids(local, remote *uint32) {
	bits(c, 0, 32, local)
	bits(c, 4*8, 32, remote)
}

// gid decodes or encodes 16 bytes at byte offset at.
func (c *codec) gid(at int, v *netip.Addr) {
	if c.encoding {
		raw := v.As16()
		copy(c.wire[at:at+16], raw[:])
		return
	}
	*v = netip.AddrFrom16([16]byte(c.wire[at : at+16]))
	clear(c.left[at : at+16])
}

// bytes decodes or encodes n bytes at byte offset at. The decoded slice aliases the input.
func (c *codec) bytes(at, n int, v *[]byte) {
	if c.encoding {
		copy(c.wire[at:at+n], *v)
		return
	}
	*v = c.wire[at : at+n : at+n]
	clear(c.left[at : at+n])
}

// cm holds the common parts of all connection manager messages.
type cm struct {
	// PrivateData holds the consumer's private data, which extends to the end of the message.
	PrivateData []byte
	// Reserved is a copy of the message in which all known fields are zero. It is nil if all
	// reserved bits are zero.
	Reserved []byte
}

// common returns m, so that functions reach it in every message.
func (m *cm) common() *cm { return m }

// next returns gopacket.LayerTypeZero, because the format of the private data is the consumer's.
func (m *cm) next() gopacket.LayerType { return gopacket.LayerTypeZero }

// payload returns the private data.
func (m *cm) payload([]byte) []byte { return m.PrivateData }

// message is a message of the connection manager.
type message interface {
	Header
	common() *cm
	fields(c *codec)
}

// decodeMessage decodes a message, whose length the caller has checked.
func decodeMessage(data []byte, h message) {
	c := codecs.Get().(*codec)
	defer codecs.Put(c)
	c.wire, c.encoding = data[:CMSize], false
	copy(c.left[:], data)
	h.fields(c)
	m := h.common()
	if m.Reserved = nil; c.left != [CMSize]byte{} {
		m.Reserved = slices.Clone(c.left[:])
	}
	c.wire = nil
}

// encodeMessage encodes a message.
func encodeMessage(data []byte, h message) {
	clear(data[copy(data, h.common().Reserved):])
	h.fields(&codec{wire: data, encoding: true})
}

// isIPCM reports whether a service ID belongs to the RDMA IP CM service (IBTA annex A11). If so,
// the private data begins with an [IPCM] header.
func isIPCM(serviceID uint64) bool { return serviceID>>24 == 1 }

// IsIPoIB reports whether a service ID belongs to the connected mode of IP over InfiniBand (RFC 4755,
// section 5). The lower 24 bits of such a service ID are the QPN of the interface's datagram queue
// pair.
func IsIPoIB(serviceID uint64) bool { return serviceID>>24 == 0x1000000000 }

// Path is the primary or alternate path in a REQ.
type Path struct {
	LocalLID, RemoteLID uint16
	LocalGID, RemoteGID netip.Addr
	FlowLabel           uint32 // 20 bits
	PacketRate          uint8
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8
	SubnetLocal         bool
	LocalACKTimeout     uint8 // 4.096 us * 2^n
}

func (p *Path) fields(c *codec, at int) {
	bits(c, at*8, 16, &p.LocalLID)
	bits(c, at*8+16, 16, &p.RemoteLID)
	c.gid(at+4, &p.LocalGID)
	c.gid(at+20, &p.RemoteGID)
	bits(c, (at+36)*8, 20, &p.FlowLabel)
	bits(c, (at+39)*8+2, 6, &p.PacketRate)
	bits(c, (at+40)*8, 8, &p.TrafficClass)
	bits(c, (at+41)*8, 8, &p.HopLimit)
	bits(c, (at+42)*8, 4, &p.SL)
	c.flag((at+42)*8+4, &p.SubnetLocal)
	bits(c, (at+43)*8, 5, &p.LocalACKTimeout)
}

// REQ asks for a connection (IBTA volume 1, section 12.6.5). The private data is the 92 bytes from
// offset 140. Decode returns an error that wraps [ErrTruncated] for fewer than 232 bytes.
type REQ struct {
	cm
	LocalCommID        uint32
	VendorID           uint32 // 24 bits
	ServiceID          uint64 // for the IP CM service: 0x0000000001, protocol, port
	LocalCAGUID        uint64
	LocalQKey          uint32
	LocalQPN           uint32 // 24 bits
	ResponderResources uint8  // number of RDMA Reads that the sender accepts at once
	LocalEECN          uint32 // 24 bits
	InitiatorDepth     uint8  // number of RDMA Reads that the sender issues at once
	RemoteEECN         uint32 // 24 bits
	RemoteCMTimeout    uint8  // 4.096 us * 2^n
	ServiceType        uint8  // 0 RC, 1 UC, 2 RD, 3 extended
	FlowControl        bool   // end-to-end flow control
	StartingPSN        uint32 // 24 bits
	LocalCMTimeout     uint8  // 4.096 us * 2^n
	RetryCount         uint8
	PKey               uint16
	PathMTU            uint8 // 1 means 256 bytes, 5 means 4096 bytes
	RDCExists          bool
	RNRRetryCount      uint8
	MaxCMRetries       uint8
	SRQ                bool
	ExtendedTransport  uint8 // 1 means XRC
	Primary            Path
	Alternate          Path
}

func (*REQ) layout() layout { return layout{LayerTypeREQ, CMSize} }

func (m *REQ) fields(c *codec) {
	bits(c, 0*8, 32, &m.LocalCommID)
	bits(c, 5*8, 24, &m.VendorID)
	bits(c, 8*8, 64, &m.ServiceID)
	bits(c, 16*8, 64, &m.LocalCAGUID)
	bits(c, 28*8, 32, &m.LocalQKey)
	bits(c, 32*8, 24, &m.LocalQPN)
	bits(c, 35*8, 8, &m.ResponderResources)
	bits(c, 36*8, 24, &m.LocalEECN)
	bits(c, 39*8, 8, &m.InitiatorDepth)
	bits(c, 40*8, 24, &m.RemoteEECN)
	bits(c, 43*8, 5, &m.RemoteCMTimeout)
	bits(c, 43*8+5, 2, &m.ServiceType)
	c.flag(43*8+7, &m.FlowControl)
	bits(c, 44*8, 24, &m.StartingPSN)
	bits(c, 47*8, 5, &m.LocalCMTimeout)
	bits(c, 47*8+5, 3, &m.RetryCount)
	bits(c, 48*8, 16, &m.PKey)
	bits(c, 50*8, 4, &m.PathMTU)
	c.flag(50*8+4, &m.RDCExists)
	bits(c, 50*8+5, 3, &m.RNRRetryCount)
	bits(c, 51*8, 4, &m.MaxCMRetries)
	c.flag(51*8+4, &m.SRQ)
	bits(c, 51*8+5, 3, &m.ExtendedTransport)
	m.Primary.fields(c, 52)
	m.Alternate.fields(c, 96)
	c.bytes(140, CMSize-140, &m.PrivateData)
}

func (m *REQ) next() gopacket.LayerType {
	if isIPCM(m.ServiceID) {
		return LayerTypeIPCM
	}
	return gopacket.LayerTypeZero
}

// MRA acknowledges a message whose answer will take a while (IBTA volume 1, section 12.6.6). The
// private data is the 222 bytes from offset 10. Decode returns an error that wraps
// [ErrTruncated] for fewer than 232 bytes.
type MRA struct {
	cm
	LocalCommID    uint32
	RemoteCommID   uint32
	Message        uint8 // 0 REQ, 1 REP, 2 LAP
	ServiceTimeout uint8 // 4.096 us * 2^n
}

func (*MRA) layout() layout { return layout{LayerTypeMRA, CMSize} }

func (m *MRA) fields(c *codec) {
	c.ids(&m.LocalCommID, &m.RemoteCommID)
	bits(c, 8*8, 2, &m.Message)
	bits(c, 9*8, 5, &m.ServiceTimeout)
	c.bytes(10, CMSize-10, &m.PrivateData)
}

// REJ refuses a connection (IBTA volume 1, section 12.6.7). The private data is the 148 bytes from
// offset 84. Decode returns an error that wraps [ErrTruncated] for fewer than 232 bytes.
type REJ struct {
	cm
	LocalCommID  uint32
	RemoteCommID uint32
	Message      uint8 // 0 REQ, 1 REP, 2 neither
	InfoLength   uint8 // bytes of Info that count
	Reason       RejectReason
	Info         []byte // additional information, 72 bytes
}

func (*REJ) layout() layout { return layout{LayerTypeREJ, CMSize} }

func (m *REJ) fields(c *codec) {
	c.ids(&m.LocalCommID, &m.RemoteCommID)
	bits(c, 8*8, 2, &m.Message)
	bits(c, 9*8, 7, &m.InfoLength)
	bits(c, 10*8, 16, &m.Reason)
	c.bytes(12, 72, &m.Info)
	c.bytes(84, CMSize-84, &m.PrivateData)
}

// REP accepts a connection (IBTA volume 1, section 12.6.8). The private data is the 196 bytes from
// offset 36. Decode returns an error that wraps [ErrTruncated] for fewer than 232 bytes.
type REP struct {
	cm
	LocalCommID        uint32
	RemoteCommID       uint32
	LocalQKey          uint32
	LocalQPN           uint32 // 24 bits
	LocalEECN          uint32 // 24 bits
	StartingPSN        uint32 // 24 bits
	ResponderResources uint8  // RDMA Reads it accepts at once
	InitiatorDepth     uint8  // RDMA Reads it sends at once
	TargetACKDelay     uint8  // 4.096 us * 2^n
	FailoverAccepted   uint8
	FlowControl        bool // end to end
	RNRRetryCount      uint8
	SRQ                bool
	LocalCAGUID        uint64
}

func (*REP) layout() layout { return layout{LayerTypeREP, CMSize} }

func (m *REP) fields(c *codec) {
	c.ids(&m.LocalCommID, &m.RemoteCommID)
	bits(c, 8*8, 32, &m.LocalQKey)
	bits(c, 12*8, 24, &m.LocalQPN)
	bits(c, 16*8, 24, &m.LocalEECN)
	bits(c, 20*8, 24, &m.StartingPSN)
	bits(c, 24*8, 8, &m.ResponderResources)
	bits(c, 25*8, 8, &m.InitiatorDepth)
	bits(c, 26*8, 5, &m.TargetACKDelay)
	bits(c, 26*8+5, 2, &m.FailoverAccepted)
	c.flag(26*8+7, &m.FlowControl)
	bits(c, 27*8, 3, &m.RNRRetryCount)
	c.flag(27*8+3, &m.SRQ)
	bits(c, 28*8, 64, &m.LocalCAGUID)
	c.bytes(36, CMSize-36, &m.PrivateData)
}

// RTU confirms that the connection is ready to use (IBTA volume 1, section 12.6.9). The private
// data is the 224 bytes from offset 8. Decode returns an error that wraps [ErrTruncated]
// for fewer than 232 bytes.
type RTU struct {
	cm
	LocalCommID  uint32
	RemoteCommID uint32
}

func (*RTU) layout() layout { return layout{LayerTypeRTU, CMSize} }

func (m *RTU) fields(c *codec) {
	c.ids(&m.LocalCommID, &m.RemoteCommID)
	c.bytes(8, CMSize-8, &m.PrivateData)
}

// DREQ asks to close a connection (IBTA volume 1, section 12.6.10). The private data is the 220
// bytes from offset 12. Decode returns an error that wraps [ErrTruncated] for fewer than
// 232 bytes.
type DREQ struct {
	cm
	LocalCommID  uint32
	RemoteCommID uint32
	RemoteQPN    uint32 // 24 bits
}

func (*DREQ) layout() layout { return layout{LayerTypeDREQ, CMSize} }

func (m *DREQ) fields(c *codec) {
	c.ids(&m.LocalCommID, &m.RemoteCommID)
	bits(c, 8*8, 24, &m.RemoteQPN)
	c.bytes(12, CMSize-12, &m.PrivateData)
}

// DREP agrees to close a connection (IBTA volume 1, section 12.6.11). The private data is the 224
// bytes from offset 8. Decode returns an error that wraps [ErrTruncated] for fewer than
// 232 bytes.
type DREP struct {
	cm
	LocalCommID  uint32
	RemoteCommID uint32
}

func (*DREP) layout() layout { return layout{LayerTypeDREP, CMSize} }

func (m *DREP) fields(c *codec) {
	c.ids(&m.LocalCommID, &m.RemoteCommID)
	c.bytes(8, CMSize-8, &m.PrivateData)
}

// MTU returns the path MTU in bytes, or 0 if the code in the REQ is invalid.
func (m *REQ) MTU() int {
	if m.PathMTU < 1 || m.PathMTU > 5 {
		return 0
	}
	return 128 << m.PathMTU
}
