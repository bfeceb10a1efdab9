package analyze

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestPercents: shares that are all known exactly add up to 100. Otherwise what a side took at least is rounded down, and what it took at
// most up.
func TestPercents(t *testing.T) {
	exact := ShareSums{RPCs: 2, Exact: 2, TotalNS: 10000, ServerNS: record.Bounds{Min: 8454, Max: 8454}, ClientNS: record.Bounds{Min: 284, Max: 284}, NetworkNS: record.Bounds{Min: 1262, Max: 1262}}
	bounded := exact
	bounded.Exact, bounded.ClientNS.Min, bounded.ServerNS.Max = 1, 0, 8738
	for _, c := range []struct {
		name  string
		sums  ShareSums
		total int64
		want  [3]record.Bounds // server, client, network
	}{
		{"exact", exact, 10000, [3]record.Bounds{{Min: 84, Max: 84}, {Min: 3, Max: 3}, {Min: 13, Max: 13}}},
		{"bounds", bounded, 10000, [3]record.Bounds{{Min: 84, Max: 88}, {Min: 0, Max: 3}, {Min: 12, Max: 13}}},
		{"of more latencies", exact, 20000, [3]record.Bounds{{Min: 42, Max: 43}, {Min: 1, Max: 2}, {Min: 6, Max: 7}}},
		{"nothing", ShareSums{}, 0, [3]record.Bounds{}},
	} {
		if got := c.sums.Percents(c.total); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
