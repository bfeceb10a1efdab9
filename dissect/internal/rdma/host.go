package rdma

// Addresses and ways between them are looked up for every packet whose queue pair
// was not seen lately: each stands here once, and is told by its pointer.

// Host is an address that packets come from or go to.
type Host struct {
	Address
	name string // how it is written, once that was asked for
	uses int    // halves, communication IDs, and whoever holds it

	known           bool  // a packet that is good has said something of it
	good            bool  // it has sent a packet with a good ICRC
	tcpGood, tcpBad int64 // TCP segments with data and a good checksum; those with one that is wrong, and finished
}

// String is the IP address, or the LID.
func (h *Host) String() string {
	if h.name == "" {
		h.name = h.Address.String()
	}
	return h.name
}

// Hold keeps it from being forgotten, until as many times as that it was let go:
// others could not tell it by its pointer. It may be nil.
func (h *Host) Hold() {
	if h != nil {
		h.uses++
	}
}

// LetGo is the end of a Hold.
func (h *Host) LetGo() {
	if h != nil {
		h.uses--
	}
}

// maxHosts bounds how many are remembered that nothing has. Beyond it they have to
// prove themselves anew.
const maxHosts = 1 << 14

// hosts is those that are remembered.
type hosts struct {
	all  map[Address]*Host
	full int // when there are so many, look for those that nothing has
}

func newHosts() hosts { return hosts{all: map[Address]*Host{}, full: maxHosts} }

// find is the host of an address, nil for one that is not remembered.
func (s *hosts) find(a *Address) *Host {
	return s.all[*a]
}

// ends are the hosts of two addresses.
func (s *hosts) ends(src, dst *Address) ends {
	from := s.get(src)
	from.Hold() // the other may push it out
	e := ends{from, s.get(dst)}
	from.LetGo()
	return e
}

// get is find that remembers an address. What it returns may be forgotten with the
// next.
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

// route is the way from one host to another, as long as halves go it, and those
// of them that have no other direction.
type route struct {
	src, dst *Host
	back     *route // the other way, nil while nothing goes it
	uses     int    // halves
	unpaired
}

// queueKey identifies one direction of an InfiniBand connection: its route, and the
// queue pair that its packets go to.
type queueKey struct {
	route *route
	qpn   uint32
}

// ends are those of a route.
type ends struct{ src, dst *Host }

// routes is the routes that are gone.
type routes struct {
	all map[ends]*route
}

// find is the route between two hosts, nil where nothing goes it.
func (s *routes) find(e ends) *route {
	return s.all[e]
}

// take is find for a half that goes the route.
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

// leave tells that a half goes it no more.
func (s *routes) leave(r *route) {
	if r.uses--; r.uses > 0 {
		return
	}
	delete(s.all, ends{r.src, r.dst})
	if r.back != nil {
		r.back.back = nil
	}
}

// across is the route the other way, nil where nothing goes it.
func (s *routes) reverse(e ends) *route {
	if r := s.find(e); r != nil {
		return r.back
	}
	return s.all[ends{e.dst, e.src}]
}
