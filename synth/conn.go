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

// NFSPort is the port of NFS over RDMA.
const NFSPort = 20049

// Options say what a connection is like. The zero value is a healthy one; each
// connection of a Wire gets queue pairs, ports and communication IDs of its own.
type Options struct {
	Client, Server End
	IPv6           bool   // over IPv6, which an IPv6 address at either end says, too
	VLAN           uint16 // 802.1Q tag; none when 0
	Link           uint16 // LinkEthernet when 0
	// MTU is the RoCE path MTU, 1024 when 0; of iWARP, the bytes of data in a
	// full DDP segment, 1400 when 0.
	MTU int

	// iWARP alone.
	Markers   bool // both sides want markers
	NoCRC     bool // CRCs are off: their fields are zero
	ManualAck bool // TCP acknowledges when [Side.Ack] says so; else with every segment
}

// End is one end of a connection. What is zero is chosen.
type End struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
	Port uint16 // NFSPort at the server
	// PrivateData is the consumer's in REQ or REP, MPA request or reply. Nil is
	// Inline(4096, 4096, true); empty but not nil is none.
	PrivateData []byte

	QPN    uint32 // RoCE: queue pair
	PSN    uint32 // RoCE: of its first request; 1<<24 is 0
	CommID uint32 // RoCE: communication ID
	Seq    uint32 // iWARP: initial TCP sequence number
}

// Inline is private data that states inline thresholds, in bytes, and whether
// remote invalidation is supported (RFC 8797).
func Inline(send, receive int, invalidate bool) []byte {
	return rpcrdma.PrivateData{Version: 1, RemoteInvalidation: invalidate, SendSize: send, ReceiveSize: receive}.Append(nil)
}

// NoPrivateData is that of an end which sends none.
func NoPrivateData() []byte { return []byte{} }

// Conn is a connection. It has sent nothing yet when it is made.
type Conn struct {
	Client, Server *Side
	Options        Options // what is in force, nothing left zero; MTU, CRCs and acknowledging may be changed under way

	wire  *Wire
	iwarp bool
}

// Side is one end of a connection, and does what that end does. Its numbers are
// counted on with everything that it sends; they may be set at any time.
type Side struct {
	End
	Conn *Conn
	Peer *Side
	TOS  uint8 // of its IP packets, or IPv6 traffic class; 3 is "congestion experienced"

	NextPSN  uint32 // RoCE: of its next request
	Messages uint32 // RoCE: its requests so far, which the peer's AETHs count as MSN
	lastPSN  uint32 // of the first packet of its last request

	Sequence uint32 // iWARP: TCP sequence number of its next byte
	Acked    uint32 // iWARP: what it acknowledges
	SendMSN  uint32 // iWARP: of its last Send
	ReadMSN  uint32 // iWARP: of its last RDMA Read Request
	Markers  bool   // iWARP: its stream has markers, as the peer asked
	position int    // bytes since its FPDUs began, modulo MarkerEvery
	corked   bool
	pending  []byte        // the stream that is held back
	sink     uint32        // STag of its last Read's sink
	last     iwarp.Segment // the first of its last operation, which a Terminate may blame

	lastXID uint32 // of its last Call
	ip      net.IP
	link    []byte // the headers below IP of what it sends
	cmPSN   uint32
}

// RoCE makes a connection of RoCEv2 queue pairs.
func (w *Wire) RoCE(o Options) *Conn { return w.conn(o, false) }

// IWARP makes an iWARP connection.
func (w *Wire) IWARP(o Options) *Conn { return w.conn(o, true) }

// IWARP says whether the connection is one of iWARP, and not of RoCEv2.
func (c *Conn) IWARP() bool { return c.iwarp }

// Another makes a connection of the same transport on the same Wire.
func (c *Conn) Another(o Options) *Conn { return c.wire.conn(o, c.iwarp) }

// The addresses and ports that connections get: so many to an address of a
// client, which then gets the next.
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
	c := &Conn{wire: w, iwarp: iwarp}
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
	return &Side{End: e, Conn: c, NextPSN: e.PSN, Sequence: e.Seq, Markers: c.Options.Markers, ip: e.Addr.AsSlice()}
}

// linkHeader is what stands below the IP header.
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
	return slices.Clone(buf.Bytes()[:size]) // without the pad of a frame that is too short
}

// must panics with what a serializer refused.
func must(err error) {
	if err != nil {
		panic("synth: " + err.Error())
	}
}

// only panics when an operation is not one of the connection's transport.
func (c *Conn) only(iwarp bool, what string) {
	if c.iwarp != iwarp {
		panic("synth: " + map[bool]string{false: "RoCE", true: "iWARP"}[c.iwarp] + " has no " + what)
	}
}

// Connect makes the connection: REQ, REP and RTU; or the TCP handshake, MPA
// request and reply.
func (c *Conn) Connect() []*Frame {
	mark := len(c.wire.Frames)
	if c.iwarp {
		c.Open()
		c.MPARequest()
		c.MPAReply()
	} else {
		c.REQ()
		c.REP()
		c.RTU()
	}
	return c.wire.since(mark)
}

// Reject is a connection that the server refuses: REQ and REJ, with the reason
// "consumer reject"; or TCP handshake, MPA request and rejecting reply.
func (c *Conn) Reject() []*Frame {
	mark := len(c.wire.Frames)
	if c.iwarp {
		c.Open()
		c.MPARequest()
		c.MPAReply(func(m *iwarp.MPA) { m.Reject = true })
	} else {
		c.REQ()
		c.Server.REJ(28)
	}
	return c.wire.since(mark)
}

// Disconnect ends the connection: one side's DREQ and the other's DREP; or a FIN
// from each.
func (c *Conn) Disconnect(by *Side) []*Frame {
	mark := len(c.wire.Frames)
	if c.iwarp {
		by.FIN()
		by.Peer.FIN()
		by.Ack()
	} else {
		by.DREQ()
		by.Peer.DREP()
	}
	return c.wire.since(mark)
}

// prepend puts the IP header in front of the transport in the Wire's buffer.
func (s *Side) prepend(protocol layers.IPProtocol) {
	w := s.Conn.wire
	fix := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if s.Addr.Is4() {
		w.ip4 = layers.IPv4{Version: 4, TOS: s.TOS, TTL: 64, Flags: layers.IPv4DontFragment, Protocol: protocol, SrcIP: s.ip, DstIP: s.Peer.ip}
		must(w.ip4.SerializeTo(w.buf, fix))
		return
	}
	w.ip6 = layers.IPv6{Version: 6, TrafficClass: s.TOS, HopLimit: 64, NextHeader: protocol, SrcIP: s.ip, DstIP: s.Peer.ip}
	must(w.ip6.SerializeTo(w.buf, fix))
}

// emit puts the link's header in front of the IP packet in the Wire's buffer, and
// records the frame.
func (s *Side) emit() *Frame {
	w := s.Conn.wire
	head, err := w.buf.PrependBytes(len(s.link))
	must(err)
	copy(head, s.link)
	return w.add(s.Conn.Options.Link, w.buf.Bytes(), s)
}

// fixChecksum makes the checksum of the TCP or UDP header in a finished IP
// packet right (RFC 9293 s.3.1). IPv6 must have no extension headers.
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

// words sums 16-bit words; four bytes at a time, which comes to the same.
func words(b []byte) (sum uint64) {
	for ; len(b) >= 4; b = b[4:] {
		sum += uint64(be.Uint32(b))
	}
	for i, v := range b {
		sum += uint64(v) << (8 * (3 - i))
	}
	return sum>>16&0xffff_ffff + sum&0xffff
}
