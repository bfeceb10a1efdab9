package analyze

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestConclusion checks the sentence about what changed.
func TestConclusion(t *testing.T) {
	group := func(name string, before, after int64, p50, p float64) *Comparison {
		return &Comparison{
			Kind: ComparedGroup, Name: name,
			Before: Measured{Errors: record.Some(before), Latency: Quantiles{P50: record.Some[int64](2e6)}},
			After:  Measured{Errors: record.Some(after), Latency: Quantiles{P50: record.Some(int64(2e6 * (1 + p50)))}},
			Change: Changes{P50: record.Some(p50)}, PValues: PValues{P50: record.Some(p)}, Significant: record.Some(p < significance),
		}
	}
	untested := &Comparison{Kind: ComparedGroup, Name: "NFS4 LINK", Before: Measured{Errors: record.Some[int64](0)}, After: Measured{Errors: record.Some[int64](0)}, Change: Changes{P50: record.Some(3.0)}}
	wait := &Comparison{Kind: ComparedWait, Name: "retransmit_timeout", After: Measured{Share: record.Some(0.279)}}
	found := &Comparison{Kind: ComparedFinding, Name: "retransmission-timeout", After: Measured{Count: record.Some[int64](1)}}
	for _, c := range []struct {
		name string
		list []*Comparison
		want string
	}{
		{"nothing tested", []*Comparison{untested}, "no change of a latency was tested, because no group has 30 latencies in both captures"},
		{"by chance", []*Comparison{untested, group("NFS4 READ", 0, 0, 0.5, 0.2)}, "no latency that was tested changed by more than chance explains"},
		{"slower, and stalls", []*Comparison{group("NFS4 READ", 0, 3, 0.5, 1e-5), wait, found}, "slower by more than chance explains: NFS4 READ (p50 2.00ms > 3.00ms, +50%); failed RPCs: 0 before, 3 after; RPCs stalled for 0% of all latencies before, 28% after; 1 rule of check with findings only after"},
		{"both", []*Comparison{group("NFS4 READ", 0, 0, 0.5, 1e-5), group("NFS4 OPEN", 0, 0, 0.9, 1e-5), group("NFS4 CLOSE", 2, 2, -0.2, 1e-5)}, "slower by more than chance explains: NFS4 OPEN (p50 2.00ms > 3.80ms, +90%), NFS4 READ (p50 2.00ms > 3.00ms, +50%); faster by more than chance explains: NFS4 CLOSE (p50 2.00ms > 1.60ms, -20%)"},
	} {
		if got := Conclusion(c.list); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

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
		if text := Conclusion(list); strings.Contains(text, "the server provably took longer") != (c.server > 0) || strings.Contains(text, "the server provably took less") != (c.server < 0) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
	if list := shares(NewSide(NewTable(ByOperation)), side(record.Forward, 1, unknown, unknown)); list != nil {
		t.Errorf("a capture without RPCs has shares: %+v", list)
	}
	var unknowns ShareSums
	unknowns.add(&record.Transaction{LatencyNS: record.Some(ms)})
	if want := (ShareSums{RPCs: 1, LatencyNS: ms, ClientMaxNS: ms, ServerMaxNS: ms, NetworkMaxNS: ms}); unknowns != want {
		t.Errorf("without shares, each side may have taken all: %+v, want %+v", unknowns, want)
	}
}
