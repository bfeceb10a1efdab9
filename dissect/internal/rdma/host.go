package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Hosts and the routes between them. Each is one object, so that pointers to it can be
// compared.

// Host is an address that packets come from or go to.
type Host struct {
	Address
	name string // written form, computed on first use
	uses int    // number of flows, communication IDs and other holders

	// FillsICRC is set when the host has sent a packet with a good ICRC. Receivers then drop
	// its packets with a bad ICRC.
	FillsICRC bool

	known           bool  // it sent or received a packet with a good checksum
	tcpGood, tcpBad int64 // TCP segments with data and a good checksum; complete segments with a wrong one
}

// String returns the IP address, or the LID if there is no IP address.
func (h *Host) String() string {
	if h.name == "" {
		h.name = h.Address.String()
	}
	return h.name
}

// Known returns the address or LID as text. It is unknown if the host is nil or has neither.
func (h *Host) Known() (address record.Opt[string]) {
	if h != nil && h.Address != (Address{}) {
		address = record.Some(h.String())
	}
	return address
}

// IPAddress returns the IP address, which is not valid if the host is nil or has none.
func (h *Host) IPAddress() (ip netip.Addr) {
	if h != nil {
		ip = h.IP
	}
	return ip
}

// Hold prevents the host from being forgotten until LetGo was called as often as Hold,
// so that pointers to it stay comparable. The host may be nil.
func (h *Host) Hold() {
	if h != nil {
		h.uses++
	}
}

// LetGo reverts one call of Hold.
func (h *Host) LetGo() {
	if h != nil {
		h.uses--
	}
}

// maxHosts is the number of hosts above which hosts without holders are forgotten. A
// host that is forgotten has to show again that it fills ICRCs in.
const maxHosts = 1 << 14

// checked notes a TCP segment with a good or a wrong checksum; good says that it counts as good, and bad that it is wrong.
// It reports whether the receiver of the segment drops it.
func (h *Host) checked(right, good, bad bool) (drops bool) {
	h.known = true
	if good {
		h.tcpGood++
	} else if bad {
		h.tcpBad++
	}
	return bad && (h.tcpBad <= maxBadChecksums || h.tcpGood >= h.tcpBad)
}

// maxBadChecksums is the number of wrong checksums of a sender that are taken for
// damage. If it is exceeded, and more checksums are wrong than right, the capture is
// taken to contain checksums that the adapter had not filled in.
const maxBadChecksums = 8

// hosts contains the hosts that are remembered.
type hosts struct {
	all  map[Address]*Host
	full int // number of hosts at which those without holders are forgotten
}

func newHosts() hosts { return hosts{all: map[Address]*Host{}, full: maxHosts} }

// find returns the host of an address, nil if it is not remembered.
func (s *hosts) find(a *Address) *Host {
	return s.all[*a]
}

// ends returns the hosts of two addresses.
func (s *hosts) ends(src, dst *Address) ends {
	from := s.get(src)
	from.Hold() // so that get does not forget it
	e := ends{from, s.get(dst)}
	from.LetGo()
	return e
}

// get returns the host of an address, and remembers it if it is new. The next call of
// get may forget it if it has no holder.
func (s *hosts) get(a *Address) *Host {
	if h := s.find(a); h != nil {
		return h
	}
	if len(s.all) >= s.full {
		for a, h := range s.all {
			if h.uses == 0 {
				delete(s.all, a)
			}
		}
		s.full = max(maxHosts, 2*len(s.all))
	}
	h := &Host{Address: *a}
	s.all[*a] = h
	return h
}

// route is the path from one host to another. It exists while flows use it, and lists
// those without another direction.
type route struct {
	src, dst *Host
	back     *route // the opposite route, nil if it has no flows
	uses     int    // number of flows
	unpaired
}

// queueKey identifies one direction of an InfiniBand connection: its route, and the
// queue pair that its packets go to.
type queueKey struct {
	route *route
	qpn   uint32
}

// ends are the hosts at both ends of a route.
type ends struct{ src, dst *Host }

// routes contains the routes with flows.
type routes struct {
	all map[ends]*route
}

// find returns the route between two hosts, nil if it has no flows.
func (s *routes) find(e ends) *route {
	return s.all[e]
}

// take returns the route of a new flow, and counts the flow.
func (s *routes) take(e ends) *route {
	r := s.find(e)
	if r == nil {
		r = &route{src: e.src, dst: e.dst, back: s.all[ends{e.dst, e.src}]}
		if e.src == e.dst {
			r.back = r
		} else if r.back != nil {
			r.back.back = r
		}
		s.all[e] = r
	}
	r.uses++
	return r
}

// leave notes that a flow of the route ended.
func (s *routes) leave(r *route) {
	if r.uses--; r.uses > 0 {
		return
	}
	delete(s.all, ends{r.src, r.dst})
	if r.back != nil {
		r.back.back = nil
	}
}

// reverse returns the route in the opposite direction, nil if it has no flows.
func (s *routes) reverse(e ends) *route {
	if r := s.find(e); r != nil {
		return r.back
	}
	return s.all[ends{e.dst, e.src}]
}
