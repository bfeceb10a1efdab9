package claim

import (
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Facts that follow a sentence. They prove nothing about the time, and name no host that took it.

// mostTrips is the number of round trips that a record keeps at most.
const mostTrips = 64

// appendEndings appends the facts that follow a sentence.
func (f *facts) appendEndings(b []byte, id string) []byte {
	if before, known := f.BehindReads.Get(); known && before.NS >= least && strings.HasPrefix(id, "client-") {
		b = field.AppendDuration(append(b, " For "...), before.NS)
		b, _ = before.XID.AppendText(append(b, ", its RDMA Reads stood behind those of other RPCs: XID "...))
		b = append(b, '.')
	}
	m, known := f.Meanwhile.Get()
	if !known {
		return b
	}
	if trips, measured := m.RoundTrips.Get(); measured && strings.HasPrefix(id, "server-or-") {
		b = f.appendTrips(b, &trips)
	}
	b = appendCongestion(b, record.Server, m.CEToServer, m.CNPFromServer)
	b = appendCongestion(b, record.Client, m.CEToClient, m.CNPFromClient)
	if m.WasPaused() {
		b = appendPauses(append(b, ' '), &m)
	}
	return b
}

// appendPauses appends how often, and for how long, a link was paused.
func appendPauses(b []byte, m *record.Meanwhile) []byte {
	if m.Pauses == 0 {
		b = append(b, "A link was still paused by an earlier frame"...)
	} else {
		b = appendCount(b, m.Pauses, "frame", "")
		switch port := m.PausePort.Or(""); port {
		case record.PausedByClient, record.PausedByServer:
			b = append(append(append(b, " of the "...), port...), "'s port"...)
		case record.PausedByOther:
			b = append(b, " of another port, such as a switch's,"...)
		}
		b = append(b, " paused a link meanwhile"...)
	}
	if ns, known := m.PausedNS.Get(); known {
		b = field.AppendDuration(append(b, ", for "...), ns.Min)
		b = field.AppendDuration(append(b, " to "...), ns.Max)
	}
	return append(b, " (PFC)."...)
}

// appendTrips appends the round trips of the time before the Reply.
func (f *facts) appendTrips(b []byte, t *record.RecentTrips) []byte {
	if b = append(b, ' '); t.Count == mostTrips {
		b = append(b, "The latest "...)
	} else {
		b = append(b, "From a second before the Call until the Reply, "...)
	}
	b = appendCount(b, t.Count, "round trip", " took ")
	if t.MinNS != t.MaxNS {
		b = append(field.AppendDuration(b, t.MinNS), " to "...)
	}
	b = field.AppendDuration(b, t.MaxNS)
	if 5*t.LastBeforeEndNS >= f.latency {
		if t.Count > 1 {
			b = append(b, ", none"...)
		} else {
			b = append(b, ", but not"...)
		}
		b = field.AppendDuration(append(b, " in the last "...), t.LastBeforeEndNS)
	}
	return append(b, '.')
}

// appendCongestion appends the signals of congestion on the way to a side: marks of packets to it, and notifications that it sent.
func appendCongestion(b []byte, to record.End, marked, notified int64) []byte {
	if marked+notified == 0 {
		return b
	}
	b = append(b, ' ')
	if marked > 0 {
		b = append(appendCount(b, marked, "packet", " to the "), to...)
		b = append(append(append(b, ' '), record.Were(marked)...), " marked (CE)"...)
	}
	if notified > 0 {
		if marked > 0 {
			b = append(b, ", and the "...)
		} else {
			b = append(b, "The "...)
		}
		b = appendCount(append(append(b, to...), " sent "...), notified, "CNP", "")
	}
	return append(append(append(b, ": congestion on the way to the "...), to...), '.')
}

// appendCount appends a number of things, and what follows.
func appendCount(b []byte, n int64, noun, then string) []byte {
	b = append(append(strconv.AppendInt(b, n, 10), ' '), noun...)
	if n != 1 {
		b = append(b, 's')
	}
	return append(b, then...)
}
