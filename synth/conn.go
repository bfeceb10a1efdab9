package synth

import (
	"cmp"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

var be = binary.BigEndian

// NFSPort is the registered port of NFS over RDMA.
const NFSPort = 20049

// Options describe a connection. The zero value describes a healthy connection. Each
// connection of a Wire gets its own queue pairs, ports and communication IDs.
type Options struct {
	Client, Server End
	IPv6           bool   // use IPv6, which an IPv6 address of either end implies
	VLAN           uint16 // 802.1Q tag; 0 for none
	Link           uint16 // link type; 0 for LinkEthernet
	// MTU is the RoCE path MTU in bytes, or 0 for 1024. On iWARP it is the number of data
	// bytes in a full DDP segment, or 0 for 1400.
	MTU int

	// The following options are for iWARP only.
	Markers   bool // both sides ask for MPA markers
	NoCRC     bool // do not use CRCs: their fields are zero
	ManualAck bool // TCP acknowledges only when [Side.Ack] is called; the default is with every segment
}

// End is one end of a connection. A zero field is replaced by a default.
type End struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
	Port uint16 // 0 is NFSPort at the server
	// PrivateData is the consumer's private data in the REQ or REP, or in the MPA request
	// or reply. Nil stands for Inline(4096, 4096, true); an empty slice is no private data.
	PrivateData []byte

	QPN    uint32 // RoCE: queue pair
	PSN    uint32 // RoCE: PSN of its first request; use 1<<24 for PSN 0
	CommID uint32 // RoCE: communication ID
	Seq    uint32 // iWARP: initial TCP sequence number
}

// Inline returns private data with inline thresholds, in bytes, and the R bit, which announces
// support of remote invalidation (RFC 8797).
func Inline(send, receive int, invalidate bool) []byte {
	return rpcrdma.PrivateData{Version: 1, RemoteInvalidation: invalidate, SendSize: send, ReceiveSize: receive}.Append(nil)
}

// NoPrivateData returns the PrivateData of an end that sends none.
func NoPrivateData() []byte { return []byte{} }

// Conn is a connection. A new Conn has sent nothing.
type Conn struct {
	Client, Server *Side
	Options        Options // the options in effect, with all defaults filled in; MTU, NoCRC and ManualAck may be changed at any time

	Wire  *Wire // which records its frames
	iwarp bool
}

// Side is one end of a connection, with methods that send its packets. The methods advance
// its numbers, which may be set at any time.
type Side struct {
	End
	Conn *Conn
	Peer *Side
	TOS  uint8 // TOS or traffic class of its IP packets; the two lowest bits are ECN, and 3 is "congestion experienced"

	NextPSN  uint32 // RoCE: PSN of its next request
	Messages uint32 // RoCE: number of its requests so far, which is the MSN in the peer's AETHs
	lastPSN  uint32 // RoCE: PSN of the first packet of its last request

	Sequence uint32 // iWARP: TCP sequence number of its next byte
	Acked    uint32 // iWARP: TCP acknowledgement number of its next segment
	SendMSN  uint32 // iWARP: MSN of its last Send
	ReadMSN  uint32 // iWARP: MSN of its last RDMA Read Request
	Markers  bool   // iWARP: its stream has markers, because the peer asked for them
	position int    // iWARP: bytes since its first FPDU, modulo MarkerEvery
	corked   bool
	pending  []byte        // bytes of the stream that Cork holds back
	sink     uint32        // sink STag of its last RDMA Read Request
	last     iwarp.Segment // first segment of its last operation, which the peer's Terminate may quote

	transport transport
	lastXID   uint32 // XID of its last Call
	ip        net.IP
	link      []byte // the headers below IP in its frames
	cmPSN     uint32
}

// RoCE returns a new connection between two RoCEv2 queue pairs.
func (w *Wire) RoCE(o Options) *Conn { return w.conn(o, false) }

// IWARP returns a new iWARP connection.
func (w *Wire) IWARP(o Options) *Conn { return w.conn(o, true) }

// IWARP reports whether this is an iWARP connection; otherwise it uses RoCEv2.
func (c *Conn) IWARP() bool { return c.iwarp }

// Another returns a new connection with the same transport on the same Wire.
func (c *Conn) Another(o Options) *Conn { return c.Wire.conn(o, c.iwarp) }

// The addresses and ports of connections: a client address has this many connections, and
// then the next address is used.
const (
	portsEach = 50000
	firstPort = 10000
)

func (w *Wire) conn(o Options, iwarp bool) *Conn {
	n := w.conns
	w.conns++
	host := uint32(n/portsEach) + 1
	if o.IPv6 || o.Client.Addr.Is6() || o.Server.Addr.Is6() {
		o.Client.Addr = orAddr(o.Client.Addr, netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(host >> 8), 15: byte(host)}))
		o.Server.Addr = orAddr(o.Server.Addr, netip.MustParseAddr("2001:db8::ffff"))
	} else {
		o.Client.Addr = orAddr(o.Client.Addr, netip.AddrFrom4([4]byte{10, 1, byte(host >> 8), byte(host)}))
		o.Server.Addr = orAddr(o.Server.Addr, netip.AddrFrom4([4]byte{10, 2, 0, 1}))
	}
	o.Client.Port = cmp.Or(o.Client.Port, uint16(firstPort+n%portsEach))
	o.Server.Port = cmp.Or(o.Server.Port, NFSPort)
	o.Link = cmp.Or(o.Link, LinkEthernet)
	if iwarp {
		o.MTU = cmp.Or(o.MTU, 1400)
	}
	o.MTU = cmp.Or(o.MTU, 1024)
	c := &Conn{Wire: w, iwarp: iwarp}
	for i, e := range []*End{&o.Client, &o.Server} {
		e.QPN = cmp.Or(e.QPN, uint32(0x100+n))
		e.PSN = cmp.Or(e.PSN, uint32(0x1000<<i)) & 0xffffff
		e.CommID = cmp.Or(e.CommID, uint32(i+1)<<28+uint32(n))
		e.Seq = cmp.Or(e.Seq, uint32(0x10000000<<i))
		if e.PrivateData == nil {
			e.PrivateData = Inline(4096, 4096, true)
		}
		if e.MAC == nil {
			e.MAC = net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}
		}
	}
	c.Options = o
	c.Client, c.Server = newSide(c, o.Client), newSide(c, o.Server)
	c.Client.Peer, c.Server.Peer = c.Server, c.Client
	for _, s := range []*Side{c.Client, c.Server} {
		s.link = linkHeader(o, s.MAC, s.Peer.MAC)
	}
	return c
}

func orAddr(a, otherwise netip.Addr) netip.Addr {
	if a.IsValid() {
		return a
	}
	return otherwise
}

func newSide(c *Conn, e End) *Side {
	s := &Side{End: e, Conn: c, NextPSN: e.PSN, Sequence: e.Seq, Markers: c.Options.Markers, ip: e.Addr.AsSlice()}
	s.transport = roce{s}
	if c.iwarp {
		s.transport = tcp{s}
	}
	return s
}

// linkHeader returns the headers below the IP header.
func linkHeader(o Options, src, dst net.HardwareAddr) []byte {
	if o.Link == LinkRaw {
		return nil
	}
	kind := layers.EthernetTypeIPv4
	if o.Client.Addr.Is6() {
		kind = layers.EthernetTypeIPv6
	}
	below := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: src, DstMAC: dst, EthernetType: kind}}
	size := 14
	if o.VLAN != 0 {
		below = []gopacket.SerializableLayer{
			&layers.Ethernet{SrcMAC: src, DstMAC: dst, EthernetType: layers.EthernetTypeDot1Q},
			&layers.Dot1Q{VLANIdentifier: o.VLAN, Type: kind},
		}
		size += 4
	}
	buf := gopacket.NewSerializeBuffer()
	must(gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, below...))
	return slices.Clone(buf.Bytes()[:size]) // without the padding to the minimum frame size
}

// must panics if a serializer failed.
func must(err error) {
	if err != nil {
		panic("synth: " + err.Error())
	}
}

// only panics if the transport does not have the operation.
func (c *Conn) only(iwarp bool, what string) {
	if c.iwarp != iwarp {
		panic("synth: " + map[bool]string{false: "RoCE", true: "iWARP"}[c.iwarp] + " has no " + what)
	}
}

// Connect establishes the connection: with REQ, REP and RTU, or with the TCP handshake, MPA
// request and MPA reply.
func (c *Conn) Connect() []*Frame {
	mark := len(c.Wire.Frames)
	if c.iwarp {
		c.Open()
		c.MPARequest()
		c.MPAReply()
	} else {
		c.REQ()
		c.REP()
		c.RTU()
	}
	established := c.Wire.since(mark)
	if c.Wire.Established != nil {
		c.Wire.Established(c)
	}
	return established
}

// Reject attempts the connection, and the server rejects it: with REQ and REJ, whose reason
// is "consumer reject", or with TCP handshake, MPA request and rejecting MPA reply.
func (c *Conn) Reject() []*Frame {
	mark := len(c.Wire.Frames)
	if c.iwarp {
		c.Open()
		c.MPARequest()
		c.MPAReply(func(m *iwarp.MPA) { m.Reject = true })
	} else {
		c.REQ()
		c.Server.REJ(28)
	}
	return c.Wire.since(mark)
}

// Disconnect ends the connection: with a DREQ of one side and a DREP of the other, or with
// a FIN of each side.
func (c *Conn) Disconnect(by *Side) []*Frame {
	mark := len(c.Wire.Frames)
	if c.iwarp {
		by.FIN()
		by.Peer.FIN()
		by.Ack()
	} else {
		by.DREQ()
		by.Peer.DREP()
	}
	return c.Wire.since(mark)
}

// prepend puts the IP header before the transport header in the Wire's buffer.
func (s *Side) prepend(protocol layers.IPProtocol) {
	w := s.Conn.Wire
	fix := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if s.Addr.Is4() {
		w.ip4 = layers.IPv4{Version: 4, TOS: s.TOS, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: protocol, SrcIP: s.ip, DstIP: s.Peer.ip}
		must(w.ip4.SerializeTo(w.buf, fix))
		return
	}
	w.ip6 = layers.IPv6{Version: 6, TrafficClass: s.TOS, HopLimit: 64, NextHeader: protocol, SrcIP: s.ip, DstIP: s.Peer.ip}
	must(w.ip6.SerializeTo(w.buf, fix))
}

// emit puts the link header before the IP packet in the Wire's buffer, and records the
// frame.
func (s *Side) emit() *Frame {
	w := s.Conn.Wire
	head, err := w.buf.PrependBytes(len(s.link))
	must(err)
	copy(head, s.link)
	return w.add(s.Conn.Options.Link, w.buf.Bytes(), s)
}

// fixChecksum corrects the checksum of the TCP or UDP header in a complete IP packet (RFC
// 9293 s.3.1). IPv6 must have no extension headers.
func fixChecksum(packet []byte) {
	size, addresses, protocol := 40, packet[8:40], packet[6]
	if packet[0]>>4 == 4 {
		size, addresses, protocol = int(packet[0]&15)*4, packet[12:20], packet[9]
	}
	segment := packet[size:]
	field := segment[16:18]
	if protocol == byte(layers.IPProtocolUDP) {
		field = segment[6:8]
	}
	field[0], field[1] = 0, 0
	sum := uint64(protocol) + uint64(len(segment)) + words(addresses) + words(segment)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0xffff && protocol == byte(layers.IPProtocolUDP) {
		sum = 0 // a sum of zero is sent as ones
	}
	be.PutUint16(field, ^uint16(sum))
}

// words returns the sum of 16-bit words. Adding four bytes at a time gives the same
// checksum.
func words(b []byte) (sum uint64) {
	for ; len(b) >= 4; b = b[4:] {
		sum += uint64(be.Uint32(b))
	}
	for i, v := range b {
		sum += uint64(v) << (8 * (3 - i))
	}
	return sum>>16&0xffff_ffff + sum&0xffff
}
