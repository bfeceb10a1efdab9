package dissect

import (
	"cmp"
	"maps"
	"slices"

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
type others map[otherKey]*other

// note counts a packet.
func (o *others) note(k otherKey, at record.Stamp) {
	if *o == nil {
		*o = others{}
	}
	n := (*o)[k]
	if n == nil {
		if len(*o) >= maxOthers {
			if k = (otherKey{name: "further protocols"}); (*o)[k] != nil {
				(*o)[k].packets++
				return
			}
		}
		n = &other{first: at}
		(*o)[k] = n
	}
	n.packets++
}

// list returns the protocols with the most packets first.
func (o others) list() []record.OtherProtocol {
	list := []record.OtherProtocol{}
	for _, k := range slices.SortedFunc(maps.Keys(o), func(a, b otherKey) int {
		return cmp.Or(cmp.Compare(o[b].packets, o[a].packets), cmp.Compare(o[a].first.Packet, o[b].first.Packet))
	}) {
		n := o[k]
		list = append(list, record.OtherProtocol{
			Protocol: string(link.AppendProtocol(nil, k.name, k.number)), Packets: n.packets, First: n.first.Packet,
			Tunnel: slices.Contains(tunnelNames[:], k.name), Port: record.SomeIf(k.number, k.name == link.VXLANPort),
		})
	}
	return list
}

// tunnelNames are the names that package link gives to tunnels that it does not open.
var tunnelNames = [...]string{"GRE with protocol", "Geneve with protocol", "Geneve version", "ERSPAN version", "ERSPAN with frame type", "MPLS", "IP protocol", link.VXLANPort}

// unlisted notes a packet that no view of RPCs and connections shows. Taken reports whether the tracker used it.
func (d *Dissector) unlisted(l *layers, now record.Stamp, taken bool) {
	switch l.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		if l.err == nil && l.packet.Opcode.Transport() == rocev2.UD && l.packet.DestQPN > 1 {
			d.others.note(otherKey{name: "UD datagrams"}, now)
		}
	case link.CarriesTCP, link.CarriesUDP:
		if taken {
			return
		}
		name, ports := "TCP port", [2]uint16{l.srcPort, l.dstPort}
		if l.carries == link.CarriesUDP {
			name = "UDP port"
		}
		if l.protocolNumber != 0 {
			d.others.note(otherKey{l.protocol, l.protocolNumber}, now)
			return
		}
		d.others.note(otherKey{name, min(ports[0], ports[1])}, now) // The lower one is usually that of the server.
	case link.CarriesOther:
		d.others.note(otherKey{l.protocol, l.protocolNumber}, now)
	}
}
