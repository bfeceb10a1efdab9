package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The limits of the search for a path that became slower: what is remembered of each pair of hosts, what a time in which it was slower has at least,
// and how many times longer its shortest round trip is than the usual shortest one.
const (
	maxTrips     = 64                   // pairs of hosts
	maxTripBins  = 1024                 // of each
	firstTripBin = record.Time(1) << 26 // time of a bin, about 67 ms, doubled if there are too many
	slowerRPCs   = 8
	slowerFor    = int64(500e6)
	slowerTimes  = 4
)

// trips has the shortest round trips around the RPCs of a pair of hosts over time.
type trips struct {
	from, width record.Time
	bins        []tripBin
}

// tripBin has the shortest round trips around the RPCs whose Calls were sent in a time: the shortest and the longest of these.
type tripBin struct {
	rpcs     int64
	min, max int64 // in nanoseconds
}

// add adds the shortest round trip around an RPC.
func (t *trips) add(at record.Time, ns int64) {
	if at < t.from {
		return
	}
	for (at-t.from)/t.width >= maxTripBins {
		for i := range t.bins {
			if i%2 == 0 {
				t.bins[i/2] = t.bins[i]
			} else {
				t.bins[i/2].join(t.bins[i])
			}
		}
		t.bins, t.width = t.bins[:(len(t.bins)+1)/2], 2*t.width
	}
	n := int((at - t.from) / t.width)
	for len(t.bins) <= n {
		t.bins = append(t.bins, tripBin{})
	}
	t.bins[n].join(tripBin{1, ns, ns})
}

// join adds what another bin has.
func (b *tripBin) join(o tripBin) {
	switch {
	case o.rpcs == 0:
	case b.rpcs == 0:
		*b = o
	default:
		*b = tripBin{b.rpcs + o.rpcs, min(b.min, o.min), max(b.max, o.max)}
	}
}

// tripsAround notes the shortest round trip from a client to its server around an RPC. Over TCP, acknowledgments are delayed.
func (f *facts) tripsAround(r *record.Transaction) {
	m, known := r.Meanwhile.Get()
	around, measured := m.RoundTrips.Get()
	if !known || !measured || r.Call == nil || r.Direction == record.Backward || r.Transport == "iWARP" || r.Transport == "TCP" {
		return
	}
	t := entry(&f.trips, pairOf(r), maxTrips)
	if t == nil {
		return
	}
	if t.width == 0 {
		t.from, t.width = r.Call.Time, firstTripBin
	}
	t.add(r.Call.Time, around.MinNS)
}

// slower is a time in which even the shortest round trips were longer than usual.
type slower struct {
	span
	shortest, usual int64 // in nanoseconds
}

// slower returns the longest time in which the path was slower. Each round trip of it took several times as long as the shortest ones usually do, and
// longer than nearly all of these.
func (t *trips) slower() (worst slower, found bool) {
	var list []tripBin
	var at []record.Time
	var shortest []int64
	for i, b := range t.bins {
		if b.rpcs > 0 {
			list, at, shortest = append(list, b), append(at, t.from+record.Time(i)*t.width), append(shortest, b.min)
		}
	}
	slices.Sort(shortest)
	for i, b := range list {
		if b.min < slowerTimes*shortest[0] {
			continue
		}
		from, to, rpcs := i, i, b.rpcs
		for from > 0 && list[from-1].min >= b.min {
			from--
			rpcs += list[from].rpcs
		}
		for to+1 < len(list) && list[to+1].min >= b.min {
			to++
			rpcs += list[to].rpcs
		}
		in := span{at[from], at[to] + t.width}
		if rpcs < slowerRPCs || in.ns() < slowerFor || found && in.ns() <= worst.ns() {
			continue
		}
		others := len(list) - (to + 1 - from)
		usual := shortest[others/2] // of the others, because those that are shorter than in this time are all among them
		if others < slowerRPCs || b.min < slowerTimes*usual {
			continue
		}
		var longest []int64
		for _, o := range slices.Concat(list[:from], list[to+1:]) {
			longest = append(longest, o.max)
		}
		if slices.Sort(longest); b.min > longest[(others*99-1)/100] {
			worst, found = slower{in, b.min, usual}, true
		}
	}
	return worst, found
}

// pathSlower finds times in which the path between two hosts was slower than before or after.
func pathSlower(d *diagnosis) {
	for _, key := range sortedKeys(d.trips) {
		t := d.trips[key]
		s, found := t.slower()
		if !found || d.wasAway(key.server, s.span) {
			continue
		}
		p := d.begin(record.Note, record.InNetwork, record.InServer)
		p.about(key)
		p.during(s.from, s.to)
		p.Headline = fmt.Sprintf("round trips %s, then >= %s, %s", field.Brief(s.usual), field.Brief(s.shortest), d.span(s.from, s.to))
		if s.from == t.from {
			p.Headline = fmt.Sprintf("round trips >= %s, then %s, %s", field.Brief(s.shortest), field.Brief(s.usual), d.span(s.from, s.to))
		}
		for _, c := range d.connections {
			if c.pair == key && c.First <= s.to && c.Last >= s.from {
				p.conns[c.ID] = 1
			}
		}
		for _, r := range d.rpcs {
			if r.pair != key || r.backward || !s.touches(span{r.sent, r.sent}) {
				continue
			}
			if r.latency >= slow && r.slowly.free() && 2*r.crossings(s.shortest) >= r.least {
				p.latency(r)
			} else if by := r.slowly.by; r.latency >= slow && by != nil && by != p && !slices.Contains(p.beside, by) {
				p.beside = append(p.beside, by)
			}
		}
		n := d.answers[key].count(s.span)
		p.longer = min(n*(s.shortest-s.usual), s.ns())
		p.Effect = fmt.Sprintf("%s took >= %s longer each", number(n, "RPC"), field.Brief(s.shortest-s.usual))
		if len(p.rpcs) > 0 || n*(s.shortest-s.usual) >= 1e9 {
			p.Severity = record.Warning
		}
		every := time.Millisecond
		for by := []time.Duration{2, 5, 10}; d.last.Sub(d.first)/int64(every) > 40; by = append(by[1:], 10*by[0]) { // 1, 2 or 5 of a unit
			every = by[0] * time.Millisecond
		}
		hosts := fmt.Sprintf("client == %s and server == %s", key.client, key.server)
		p.Command = []string{"stats", "--every", every.String(), "--columns", "TIME,RPCS,RTT SERVER,P50,WORST", "-Y", hosts}
	}
}

// crossings returns how long an RPC was on its way, in nanoseconds, if each round trip took so long: the Call and the first answer to it, and each
// transfer that the responder asked for.
func (r *rpc) crossings(trip int64) (ns int64) {
	for _, phase := range [...]record.Opt[int64]{r.phases.ToReadNS, r.phases.ReadNS, r.phases.ToWriteNS, r.phases.ToReplyNS} {
		if phase.Or(0) >= trip {
			ns += trip
		}
	}
	return ns
}
