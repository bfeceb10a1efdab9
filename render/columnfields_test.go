package render

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/query"
)

// TestColumnFields: each heading of each table is a name of a field, and -o csv prints fields that exist.
func TestColumnFields(t *testing.T) {
	fields := map[string]query.Fields{
		"transactions": query.Transactions, "connections": query.Connections, "packets": query.Packets, "findings": query.Findings,
		"rdma_operations": OperationFields, "rdma_stats": OperationSumFields, "tasks": TaskFields, "stats": StatsFields, "rates": RateFields,
		"files": FileFields, "comparisons": ComparisonFields, "network": NetworkFields, "lost packets": LostPacketFields,
	}
	for of, columns := range tableColumns {
		if fields[of].Of() != of {
			t.Fatalf("the fields of %s are called %q", of, fields[of].Of())
		}
		for i := range columns {
			for _, f := range columns[i].columnFields() {
				if !fields[of].Has(f.path) {
					t.Errorf("%s: column %s: there is no field %s", of, columns[i].name, f.path)
				}
				if f.name == "" || strings.Contains(f.name, "/") {
					continue
				}
				if path, err := query.Resolve(f.name, fields[of]); err != nil {
					t.Errorf("%s: heading %s: %v", of, f.name, err)
				} else if path != f.path && !strings.HasPrefix(f.path, path+".") && of != "transactions" && of != "connections" {
					t.Errorf("%s: heading %s is the field %s, but the column shows %s", of, f.name, path, f.path)
				}
			}
		}
	}
}

// TestCSVFields: -o csv prints the fields in the order of the columns, each once, and no objects.
func TestCSVFields(t *testing.T) {
	for of, want := range map[string]string{
		"files":      "file file_handle server requests attempts failed no_reply bytes_read bytes_written latency.p50_ns latency.p90_ns latency.p99_ns latency.max_ns total_ns created.time created.client created.uid renamed.time renamed.client renamed.uid renamed.from removed.time removed.client removed.uid",
		"rdma_stats": "name count bytes retransmitted stalled stalled_ns latency.p50_ns latency.p90_ns latency.p99_ns latency.max_ns",
		"stats":      "name requests attempts failed no_reply retransmitted latency.p50_ns latency.p90_ns latency.p99_ns latency.max_ns total_ns phases.stalled_ns bytes call_bytes.short call_bytes.chunked call_bytes.long reply_bytes.short reply_bytes.chunked reply_bytes.long split.client_ns split.request_network_ns split.server_ns split.reply_network_ns shares.client_ns.min shares.network_ns.min shares.server_ns.min shares.server_ns.max congested phases.read_ns phases.write_ns explicit_rdma",
	} {
		if got := strings.Join(CSVFields(of), " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", of, got, want)
		}
	}
	if got := CSVFields("overviews"); got != nil {
		t.Errorf("an overview has no table, but %v", got)
	}
}

// TestArrowLines: arrows and stalls of a ladder are as wide as its heading, so that the bars of handles stand below each other.
func TestArrowLines(t *testing.T) {
	for _, unicode := range []bool{false, true} {
		theme := NewLook(Look{Unicode: unicode})
		for width := 30; width < 130; width++ {
			for _, g := range []rung{{text: "a Call"}, {text: "a Reply", toRight: true}, {text: "a Read", double: true}, {text: "a stall", pause: true}} {
				if got := wide(theme.arrowLine(&g, width)); got != width {
					t.Errorf("%s has %d characters, want %d", g.text, got, width)
				}
			}
		}
	}
}
