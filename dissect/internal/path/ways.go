package path

import (
	"encoding/binary"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Ways are what the packets of both sides of a connection show.
type Ways struct {
	FromClient, FromServer *Way
	Pauses                 PauseCounts // of the capture so far
	PausesBefore           int64       // frames that had paused a link before the connection
}

// Counts are counters of signals of congestion at a time, those of the client first.
type Counts struct {
	marked, notified [2]int64
	pauses           PauseCounts
	known            bool
}

// Counts returns the signals of congestion so far.
func (w *Ways) Counts() Counts {
	a, b := w.FromClient, w.FromServer
	return Counts{[2]int64{a.Marked, b.Marked}, [2]int64{a.CNPs, b.CNPs}, w.Pauses, true}
}

// before is the time before a span of time whose round trips are of interest, too.
const before = record.Time(1e9)

// Meanwhile returns what happened on the connection in a span of time that ends now, since its signals were counted; it is
// unknown if they were not. The round trips are those of the requests of a side; they may have ended up to a second before.
func (w *Ways) Meanwhile(since *Counts, caller *Way, from, to record.Time) record.Opt[record.Meanwhile] {
	if !since.known {
		return record.Opt[record.Meanwhile]{}
	}
	now := w.Counts()
	m := record.Meanwhile{
		RoundTrips: caller.Trips().Between(from-before, to), ECN: w.ecn(),
		CEToServer: now.marked[0] - since.marked[0], CEToClient: now.marked[1] - since.marked[1],
		CNPFromClient: now.notified[0] - since.notified[0], CNPFromServer: now.notified[1] - since.notified[1],
	}
	m.Pauses, m.PausePort, m.PausedNS = now.pauses.since(&since.pauses)
	return record.Some(m)
}

// ecn returns whether switches can mark the packets.
func (w *Ways) ecn() record.ECN {
	switch a, b := w.FromClient.Capable > 0, w.FromServer.Capable > 0; {
	case a && b:
		return record.ECNOn
	case a || b:
		return record.ECNPartly
	}
	return record.ECNOff
}

// Record returns what the packets of the connection show about their way.
func (w *Ways) Record() (p record.ConnectionPath) {
	ways := [2]*Way{w.FromClient, w.FromServer}
	p.RoundTrips = record.RoundTripPair{ToServer: ways[0].Trips().Record(), ToClient: ways[1].Trips().Record()}
	p.Late = record.FromPair{FromClient: ways[0].Late, FromServer: ways[1].Late}
	p.Repeated = record.FromPair{FromClient: ways[0].Repeated, FromServer: ways[1].Repeated}
	p.RetransmittedFrom, p.Bursts = record.FromPair{FromClient: ways[0].Again, FromServer: ways[1].Again}, ways[0].Bursts+ways[1].Bursts
	p.Congestion = record.PathCongestion{
		ECN: w.ecn(), CEToServer: ways[0].Marked, CEToClient: ways[1].Marked, CNPFromClient: ways[0].CNPs, CNPFromServer: ways[1].CNPs,
		PauseFrames: w.Pauses.frames - w.PausesBefore, DSCP: []int{},
	}
	for _, way := range ways {
		for _, class := range way.Classes() {
			if !slices.Contains(p.Congestion.DSCP, int(class)) {
				p.Congestion.DSCP = append(p.Congestion.DSCP, int(class))
			}
		}
	}
	p.Point.NotAt = []record.End{}
	for i, end := range []record.End{record.Client, record.Server} {
		if ways[i].IsElsewhere() {
			p.Point.NotAt = append(p.Point.NotAt, end)
		}
	}
	p.Point.Nearer = Nearer(ways[0].Trips(), ways[1].Trips())
	return p
}

// IsElsewhere reports whether two packets of the sender came late, or more, so that the capture was not taken at the sender.
func (w *Way) IsElsewhere() bool { return w.Late >= fewLate }

// fewLate is the number of packets of a host that came late to a point and prove that the point is not at this host: a host
// sends in order, and a single packet may be an accident of the capture.
const fewLate = 2

// Timestamp returns the value of the timestamp option in the options of a TCP header (RFC 7323 s.3.2).
func Timestamp(list []byte) (value uint32, known bool) {
	const end, filler, timestamp = 0, 1, 8
	for len(list) > 0 {
		switch size := 1; list[0] {
		case end:
			return 0, false
		case filler:
			list = list[size:]
		default:
			if len(list) < 2 || int(list[1]) < 2 || int(list[1]) > len(list) {
				return 0, false
			}
			if size = int(list[1]); list[0] == timestamp && size == 10 {
				return binary.BigEndian.Uint32(list[2:]), true
			}
			list = list[size:]
		}
	}
	return 0, false
}
