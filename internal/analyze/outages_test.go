package analyze

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestTimesWithoutConnection: after a lost connection, the client has no connection until the next one of the same mount is established. A disconnect
// of the client without outstanding Calls is no loss, and neither is one if another connection stays open.
func TestTimesWithoutConnection(t *testing.T) {
	const s = record.Time(1e9)
	opened := func(id int, from, to record.Time, end record.Opt[record.Ended]) *record.Connection {
		c := &record.Connection{
			ID: id, UpperLayer: "rpcrdma", Handshake: "seen", Transactions: 1, ClientKnown: true, First: from - 1, Last: to, Established: record.Some(from),
			Client: record.Endpoint{Address: record.Some("c")}, Server: record.Endpoint{Address: record.Some("s"), Port: record.Some[uint16](20049)}, Ended: end,
		}
		if end.Known() {
			c.Closed = record.Some(to)
		}
		return c
	}
	ended := func(how record.Ending, by record.End, calls int64) record.Opt[record.Ended] {
		return record.Some(record.Ended{How: how, By: record.Some(by), OutstandingCalls: calls})
	}
	rejected := opened(9, 6*s, 6*s, ended(record.EndRejected, record.Server, 0))
	rejected.Established, rejected.First, rejected.Transactions = record.Opt[record.Time]{}, 6*s, 0
	open := record.Opt[record.Ended]{}
	lost := ended(record.EndRetries, record.Client, 2)
	orderly := ended(record.EndDisconnect, record.Client, 0)
	incomplete := opened(0, 1*s, 5*s, ended(record.EndDisconnect, record.Client, 2))
	incomplete.NotCaptured = 1
	lateNext := opened(1, 8*s, 9*s, open)
	lateNext.Established = record.Opt[record.Time]{}
	for _, c := range []struct {
		name        string
		connections []*record.Connection
		atOnce      int
		want        []Outage
	}{
		{"one after another", []*record.Connection{opened(0, 1*s, 5*s, lost), rejected, opened(1, 8*s, 9*s, open)}, 1, []Outage{
			{From: 5 * s, LastReply: record.Some(5 * s), To: record.Some(8 * s), NS: record.Some[int64](3e9), Next: record.Some(1), How: record.EndRetries, By: record.Some(record.Client), OutstandingCalls: 2, Rejected: 1},
		}},
		{"none afterwards", []*record.Connection{opened(0, 1*s, 5*s, lost)}, 1, []Outage{{From: 5 * s, LastReply: record.Some(5 * s), How: record.EndRetries, By: record.Some(record.Client), OutstandingCalls: 2}}},
		{"the handshake of the next one is missing", []*record.Connection{opened(0, 1*s, 5*s, lost), lateNext}, 1, []Outage{
			{From: 5 * s, LastReply: record.Some(5 * s), To: record.Some(8*s - 1), NS: record.Some[int64](3e9 - 1), AtMost: true, Next: record.Some(1), How: record.EndRetries, By: record.Some(record.Client), OutstandingCalls: 2},
		}},
		{"another one stays open", []*record.Connection{opened(0, 1*s, 5*s, lost), opened(1, 2*s, 9*s, open)}, 2, nil},
		{"unmounted and mounted again", []*record.Connection{opened(0, 1*s, 5*s, orderly), opened(1, 8*s, 9*s, open)}, 1, nil},
		{"Replies may be missing", []*record.Connection{incomplete, opened(1, 8*s, 9*s, open)}, 1, nil},
		{"the server disconnected", []*record.Connection{opened(0, 1*s, 5*s, ended(record.EndDisconnect, record.Server, 0)), opened(1, 6*s, 9*s, open)}, 1, []Outage{
			{From: 5 * s, LastReply: record.Some(5 * s), To: record.Some(6 * s), NS: record.Some[int64](1e9), Next: record.Some(1), How: record.EndDisconnect, By: record.Some(record.Server)},
		}},
	} {
		var m Mounts
		for _, r := range c.connections {
			if r.Transactions > 0 {
				rpc := moving("c", "READ", r.First, r.Last, 1000)
				rpc.Connection = r.ID
				m.Transaction(rpc)
			}
		}
		for _, r := range c.connections {
			m.Connection(r)
		}
		list := m.List()
		if len(list) != 1 || list[0].AtOnce != c.atOnce || len(list[0].Outages) != len(c.want) {
			t.Errorf("%s: %+v, want %d at once and %d outages", c.name, list, c.atOnce, len(c.want))
			continue
		}
		for i, want := range c.want {
			if got := list[0].Outages[i]; got != want {
				t.Errorf("%s: %+v, want %+v", c.name, got, want)
			}
		}
		if m.Partial(); len(m.List()[0].Outages) > 0 {
			t.Errorf("%s: other connections are not known, but there are outages", c.name)
		}
	}
}
