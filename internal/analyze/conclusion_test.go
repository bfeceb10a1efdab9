package analyze

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestConclusion checks the sentence about what changed.
func TestConclusion(t *testing.T) {
	group := func(name string, before, after int64, p50, p float64) *Comparison {
		return &Comparison{
			Kind: ComparedGroup, Name: name, Before: Measured{Errors: record.Some(before)}, After: Measured{Errors: record.Some(after)},
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
		{"by chance", []*Comparison{untested, group("NFS4 READ", 0, 0, 0.5, 0.2)}, "no latency changed by more than chance explains"},
		{"slower, and stalls", []*Comparison{group("NFS4 READ", 0, 3, 0.5, 1e-5), wait, found}, "slower by more than chance explains: NFS4 READ (p50 +50%); failed RPCs 0 > 3; stalls took 0% > 28% of all latencies; 1 rule with findings only after"},
		{"both", []*Comparison{group("NFS4 READ", 0, 0, 0.5, 1e-5), group("NFS4 OPEN", 0, 0, 0.9, 1e-5), group("NFS4 CLOSE", 2, 2, -0.2, 1e-5)}, "slower by more than chance explains: NFS4 OPEN (p50 +90%), NFS4 READ (p50 +50%); faster by more than chance explains: NFS4 CLOSE (p50 -20%)"},
	} {
		if got := Conclusion(c.list); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
