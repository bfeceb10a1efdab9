package analyze

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestProvenShares: a comparison says that a side took longer, or less time, only if its bounds before and after do not overlap. The server
// is the caller of a Call in backward direction.
func TestProvenShares(t *testing.T) {
	const ms = int64(1e6)
	side := func(direction record.Direction, rpcs int, server, client record.Bounds) *Side {
		s := NewSide(NewTable(ByOperation))
		for range rpcs {
			s.Transaction(&record.Transaction{
				Direction: direction, LatencyNS: record.Some(10 * ms),
				Shares: record.Some(record.Shares{ServerNS: server, ClientNS: client, NetworkNS: record.Bounds{Max: 10*ms - server.Min - client.Min}}),
			})
		}
		return s
	}
	exactly := func(ns int64) record.Bounds { return record.Bounds{Min: ns, Max: ns} }
	unknown := record.Bounds{Max: 10 * ms}
	for _, c := range []struct {
		name           string
		before, after  *Side
		server, client int
		exact          int64 // before
	}{
		{"longer", side(record.Forward, 3, exactly(2*ms), exactly(8*ms)), side(record.Forward, 1, record.Bounds{Min: 2*ms + 1, Max: 10 * ms}, unknown), 1, 0, 3},
		{"less", side(record.Forward, 3, exactly(2*ms), exactly(8*ms)), side(record.Forward, 5, record.Bounds{Min: 0, Max: 2*ms - 5}, exactly(8*ms)), -1, 0, 3},
		{"overlapping", side(record.Forward, 3, record.Bounds{Min: ms, Max: 2 * ms}, exactly(0)), side(record.Forward, 3, record.Bounds{Min: 2 * ms, Max: 3 * ms}, exactly(0)), 0, 0, 0},
		{"a hundredth", side(record.Forward, 3, record.Bounds{Min: 2 * ms, Max: 2*ms + ms/10}, exactly(8*ms-ms/10)), side(record.Forward, 3, unknown, unknown), 0, 0, 3},
		{"backward", side(record.Backward, 3, exactly(2*ms), exactly(8*ms)), side(record.Backward, 3, exactly(4*ms), exactly(6*ms)), -1, 1, 3},
	} {
		list := shares(c.before, c.after)
		if len(list) != 3 || list[0].Proven() != c.server || list[1].Proven() != c.client || list[0].Before.Exact != record.Some(c.exact) {
			t.Errorf("%s: %+v", c.name, list)
		}
	}
	if list := shares(NewSide(NewTable(ByOperation)), side(record.Forward, 1, unknown, unknown)); list != nil {
		t.Errorf("a capture without RPCs has shares: %+v", list)
	}
	var unknowns ShareSums
	unknowns.add(&record.Transaction{LatencyNS: record.Some(ms)})
	if want := (ShareSums{RPCs: 1, TotalNS: ms, ClientNS: record.Bounds{Max: ms}, ServerNS: record.Bounds{Max: ms}, NetworkNS: record.Bounds{Max: ms}}); unknowns != want {
		t.Errorf("without shares, each side may have taken all: %+v, want %+v", unknowns, want)
	}
}
