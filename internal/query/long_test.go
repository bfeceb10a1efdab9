package query_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestLong: any expression of 100 KB is compiled, or found wrong, in a time that grows with its
// length and not with its square. The limit is in processor time, so that it holds on a busy
// machine: it is ten times what the slowest took on one, and a hundredth of what a square would.
func TestLong(t *testing.T) {
	const size = 100_000
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for _, c := range []struct{ before, part, after string }{
		{"", "not ", "xid"},
		{"", "!", "xid"},
		{"", "(", "xid"},
		{"", "xid and ", "xid"},
		{"", "xid == 1 or ", "xid"},
		{"", "xid == 1 or not id == 2 and ", "xid"},
		{"", "1+", "1 == 1"},
		{"", "-", "1 == 1"},
		{"", "id+", "1 == 1"},
		{"", " ", "xid"},
		{"", "x", " == 1"},
		{"", "a.", ""},
		{"", "1.", ""},
		{"", "id-", "id > 1"},
		{"", "abc-", "id == status"},
		{"", "id < ", "1"},
		{"", "1..", "1"},
		{"xid in {", "1 ", "}"},
		{"xid in {", "-1,", "}"},
		{"status in {", "ok ", "}"},
		{"status in {", "NFS4ERR_IO,", "}"},
		{"operations in {", "READ ", "}"},
		{"procedure_name in {", "WRITE ", "}"},
		{"nfs.status in {", "NFS4ERR_IO ", "}"},
		{"direction in {", "back ", "}"},
		{"", "status == ok or ", "xid"},
		{"", "client == 10.0.0.1 or ", "xid"},
		{"", "XID or ", "xid"},
		{"", "credential == w or ", "xid"},
		{"", `nfs.name == "a" or `, "xid"},
		{"timeline", "[0]", " == 1"},
		{"(timeline[0])", ".a", " == 1"},
		{"xid in ", "[", ""},
		{`file == "`, "x", `"`},
		{`file == "`, `\"`, ""},
		{"xid == ", "8", ""},
		{"nfs.fh == ", "8f", ""},
		{"", "8f:", ""},
		{"", ":", ""},
		{"latency > ", "1s", ""},
		{"latency > ", "1s", "x"},
		{"", "any(timeline, ", "xid"},
		{"", "any(timeline, .event == nak) or ", "xid"},
		{`file matches "`, "a", `"`},
		{`file matches "`, `\pL`, `"`},
		{`file matches "(?i)`, `\pL`, `"`},
		{`file matches "`, "a{1000}", `"`},
		{"", `file matches "a{1000}" or `, "xid"},
		{"", `file matches "\pL{900}" or `, "xid"},
		{`file matches "`, "(", `"`},
		{"", "é", ""},
		{"", "eq ", ""},
		{"", "#", ""},
		{"", "fe80::1 ", ""},
		{"", "2026-11-21 ", ""},
	} {
		source := c.before + repeat(c.part) + c.after
		for _, fields := range []query.Fields{query.Transactions, query.Packets} {
			began := testkit.CPU()
			query.Compile(source, fields)
			if took := testkit.CPU() - began; took > time.Second {
				t.Errorf("%s%s... (100 KB) takes %v for %s", c.before, c.part, took, fields.Of())
			}
		}
	}
}
