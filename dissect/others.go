package dissect

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// What else is in the capture: the packets that no view of RPCs and connections shows.

// maxOthers limits the protocols that are distinguished; all further ones are counted together.
const maxOthers = 64

// otherKey identifies a protocol that is not analyzed. Number is that of a protocol whose name is not known, or a port.
type otherKey struct {
	name   string
	number uint16
}

// other counts the packets of a protocol.
type other struct {
	packets int64
	first   record.Stamp
}

// others counts packets that are not analyzed, by protocol.
type others struct {
	counts  map[otherKey]*other
	servers map[netip.AddrPort]bool // of TCP, as SYNs and RPCs show; true if clients start TLS there (RFC 9289)
}

// maxServers limits the TCP servers that are remembered.
const maxServers = 1 << 10

// note counts a packet.
func (o *others) note(k otherKey, at record.Stamp) {
	if o.counts == nil {
		o.counts = map[otherKey]*other{}
	}
	n := o.counts[k]
	if n == nil {
		if len(o.counts) >= maxOthers {
			if k = (otherKey{name: "further protocols"}); o.counts[k] != nil {
				o.counts[k].packets++
				return
			}
		}
		n = &other{first: at}
		o.counts[k] = n
	}
	n.packets++
}

// watch notes which end of a TCP segment is the server, if the segment shows it: a SYN, or a message that starts TLS.
func (o *others) watch(src, dst netip.AddrPort, s *link.TCP) {
	server, tls := dst, false
	switch kind, starts := oncrpc.TLSRecord(s.Payload); {
	case starts:
		if tls = true; kind == oncrpc.Reply {
			server = src
		}
	case s.Flags&(link.TCPSYN|link.TCPACK) != link.TCPSYN:
		return
	}
	if _, known := o.servers[server]; !known && len(o.servers) >= maxServers || known && !tls {
		return
	}
	if o.servers == nil {
		o.servers = map[netip.AddrPort]bool{}
	}
	o.servers[server] = tls
}

// portOf returns the port that says what two ports of TCP carry: that of the server, if it is known. Usually it is the lower one.
func (o *others) portOf(src, dst netip.AddrPort) uint16 {
	_, from := o.servers[src]
	_, to := o.servers[dst]
	switch {
	case from && !to:
		return src.Port()
	case to && !from:
		return dst.Port()
	}
	return min(src.Port(), dst.Port())
}

// list returns the protocols with the most packets first.
func (o *others) list() []record.OtherProtocol {
	list, of := []record.OtherProtocol{}, o.counts
	for _, k := range slices.SortedFunc(maps.Keys(of), func(a, b otherKey) int {
		return cmp.Or(cmp.Compare(of[b].packets, of[a].packets), cmp.Compare(of[a].first.Packet, of[b].first.Packet))
	}) {
		n := of[k]
		list = append(list, record.OtherProtocol{
			Protocol: string(link.AppendProtocol(nil, k.name, k.number)), Packets: n.packets, First: n.first.Packet,
			Tunnel: k.isTunnel(), Port: record.SomeIf(k.number, k.name == link.VXLANPort),
		})
	}
	return list
}

// tunnels are the tunnels that package link does not open, by the names that it gives to them. Where a name has numbers, only the
// protocols with these numbers are tunnels.
var tunnels = map[string][]uint16{
	"GRE with protocol": nil, "Geneve with protocol": nil, "Geneve version": nil, "ERSPAN version": nil, "ERSPAN with frame type": nil,
	"MPLS": nil, link.VXLANPort: nil,
	"IP protocol": {50, 94, 97, 98, 115, 137, 143},          // ESP, IPIP, EtherIP, ENCAP, L2TP, MPLS, Ethernet
	"EtherType":   {0x8864, 0x88e5, 0x88e7, 0x8926, 0x894f}, // PPPoE, MACsec, PBB, VN-Tag, NSH
	// L2TP, GTP-U, Teredo, LISP, ESP, VXLAN-GPE, GUE, MPLS, TZSP
	"UDP port": {1701, 2152, 3544, 4341, 4500, 4790, 6080, 6635, 37008},
}

// isTunnel reports whether a protocol is a tunnel.
func (k *otherKey) isTunnel() bool {
	numbers, named := tunnels[k.name]
	return named && (numbers == nil || slices.Contains(numbers, k.number))
}

// portNFS is the port of NFS without RDMA.
const portNFS = 2049

// isTLS reports whether the payload of a TCP segment begins with a TLS record (RFC 8446 s.5.1): its type, a version, and a length that is
// allowed. RPC begins with a record mark, which for a message of at most 16 MiB has other bytes there.
func isTLS(payload []byte) bool {
	return len(payload) >= 5 && payload[0] >= 20 && payload[0] <= 23 && payload[1] == 3 && payload[2] <= 4 && int(payload[3])<<8|int(payload[4]) <= 1<<14+256
}

// unlisted notes a packet that no view of RPCs and connections shows. S is its TCP segment, nil if it has none;
// taken reports whether the tracker used it.
func (d *Dissector) unlisted(l *layers, now record.Stamp, s *link.TCP, taken bool) {
	switch l.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		if l.err == nil && l.packet.Opcode.Transport() == rocev2.UD && l.packet.DestQPN > 1 {
			d.others.note(otherKey{name: "UD datagrams"}, now)
		}
	case link.CarriesTCP, link.CarriesUDP:
		src, dst := netip.AddrPortFrom(l.datagram.Src.IP, l.srcPort), netip.AddrPortFrom(l.datagram.Dst.IP, l.dstPort)
		if s != nil {
			d.others.watch(src, dst, s)
			if isTLS(s.Payload) && (l.srcPort == portNFS || l.dstPort == portNFS || d.others.servers[src] || d.others.servers[dst]) {
				d.others.note(otherKey{name: record.RPCWithTLS}, now)
				return
			}
		}
		if taken {
			return
		}
		name, port := "TCP port", d.others.portOf(src, dst)
		if l.carries == link.CarriesUDP {
			name, port = "UDP port", min(l.srcPort, l.dstPort)
		}
		if l.protocolNumber != 0 {
			d.others.note(otherKey{l.protocol, l.protocolNumber}, now)
			return
		}
		d.others.note(otherKey{name, port}, now)
	case link.CarriesOther:
		d.others.note(otherKey{l.protocol, l.protocolNumber}, now)
	}
}
