package path

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Pause is a frame that pauses a link, or ends pauses: of priority flow control (IEEE 802.1Qbb), or of Ethernet (IEEE 802.3, annex 31B).
type Pause struct {
	Port    [6]byte   // MAC address of the port that sent it
	Enabled uint8     // priorities that the frame is about, priority 0 in bit 0; of a frame of Ethernet, all
	Quanta  [8]uint16 // times of the priorities, in units of 512 bit times; 0 ends a pause
}

// Paused reports whether the frame pauses at least one priority.
func (p *Pause) Paused() bool {
	for i, quanta := range p.Quanta {
		if p.Enabled>>i&1 != 0 && quanta > 0 {
			return true
		}
	}
	return false
}

// quantum is the least and the most that 512 bit times can be, in picoseconds: on links of 400 and of 10 Gbit/s.
var quantum = [2]int64{512 * 1000 / 400, 512 * 1000 / 10}

// maxPaused is the number of ports and priorities whose pauses are followed at a time.
const maxPaused = 256

// Pauses sums up the frames of a capture that paused links. The time for which links were paused has bounds, because the capture does not
// show how fast a link is. Pauses of several priorities and ports that overlap count once. The zero value is ready for use.
type Pauses struct {
	Frames int64
	of     map[netip.Addr]int64 // frames by the host whose port sent them
	until  map[pausing][2]record.Time
	end    [2]record.Time // the latest of until
	ns     [2]int64       // paused before at
	at     record.Time
}

// pausing is a priority of a port.
type pausing struct {
	port     [6]byte
	priority int
}

// Take notes a frame of the port of a host, which is not valid if the port is not known to be that of a host.
func (p *Pauses) Take(f *Pause, host netip.Addr, now record.Time) {
	p.ns, p.at = p.sums(now), max(now, p.at)
	if f.Paused() {
		if p.Frames++; p.of == nil {
			p.of, p.until = map[netip.Addr]int64{}, map[pausing][2]record.Time{}
		}
		if _, had := p.of[host]; had || len(p.of) < maxPaused {
			p.of[host]++
		}
	}
	for i, quanta := range f.Quanta {
		if f.Enabled>>i&1 == 0 {
			continue
		}
		key := pausing{f.Port, i}
		if _, had := p.until[key]; quanta == 0 {
			delete(p.until, key)
		} else if had || len(p.until) < maxPaused {
			p.until[key] = [2]record.Time{now + record.Time(int64(quanta)*quantum[0]/1000), now + record.Time((int64(quanta)*quantum[1]+999)/1000)}
		}
	}
	p.end = [2]record.Time{}
	for key, ends := range p.until {
		if ends[1] <= now {
			delete(p.until, key)
		}
		p.end = [2]record.Time{max(p.end[0], ends[0]), max(p.end[1], ends[1])}
	}
}

// sums returns the least and the most time for which links were paused before a time.
func (p *Pauses) sums(now record.Time) (ns [2]int64) {
	for i := range ns {
		ns[i] = p.ns[i] + max(0, min(now, p.end[i]).Sub(p.at))
	}
	return ns
}

// Summary returns the frames by the host whose port sent them, those with the most frames first, and the time for which links were paused.
func (p *Pauses) Summary(now record.Time) (list []record.PausePorts, ns record.Opt[record.Bounds]) {
	list = []record.PausePorts{}
	for host, n := range p.of {
		list = append(list, record.PausePorts{Address: record.SomeIf(host.String(), host.IsValid()), Frames: n})
	}
	slices.SortFunc(list, func(a, b record.PausePorts) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), cmp.Compare(a.Address.Or(""), b.Address.Or("")))
	})
	sums := p.sums(now)
	return list, record.SomeIf(record.Bounds{Min: sums[0], Max: sums[1]}, p.Frames > 0)
}

// PauseCounts are the counters of Pauses at a time, as a connection sees them.
type PauseCounts struct {
	frames int64
	of     [2]int64 // of the client's port, and of the server's
	ns     [2]int64
}

// Counts returns the counters at a time.
func (p *Pauses) Counts(client, server netip.Addr, now record.Time) PauseCounts {
	if p.Frames == 0 {
		return PauseCounts{}
	}
	return PauseCounts{p.Frames, [2]int64{p.of[client], p.of[server]}, p.sums(now)}
}

// since returns the frames between two counts, the port that sent them, and the time for which they paused links.
func (c *PauseCounts) since(before *PauseCounts) (frames int64, port record.Opt[record.PausePort], ns record.Opt[record.Bounds]) {
	frames = c.frames - before.frames
	least, most := c.ns[0]-before.ns[0], c.ns[1]-before.ns[1]
	if frames == 0 && most == 0 {
		return 0, port, ns
	}
	switch client, server := c.of[0]-before.of[0], c.of[1]-before.of[1]; {
	case frames == 0: // they came before
	case client == frames:
		port = record.Some(record.PausedByClient)
	case server == frames:
		port = record.Some(record.PausedByServer)
	case client+server == 0:
		port = record.Some(record.PausedByOther)
	default:
		port = record.Some(record.PausedBySeveral)
	}
	return frames, port, record.Some(record.Bounds{Min: least, Max: most})
}
