package analyze

import (
	"fmt"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestSlowest: the retransmissions of an RPC on other connections take one place among the slowest, and RPCs of mounting take
// none.
func TestSlowest(t *testing.T) {
	c := NewCollector()
	add := func(xid record.Hex32, operation string, latency int64) {
		c.Transaction(&record.Transaction{
			XID: xid, Direction: record.Forward, Status: record.Complete, Operation: record.Some(operation), LatencyNS: record.Some(latency),
			Reply: &record.Message{},
		})
	}
	for i := range int64(6) {
		add(7, "WRITE", 100+i)
		add(8+record.Hex32(i), "RECLAIM_COMPLETE", 1000+i)
	}
	add(20, "READ", 50)
	add(21, "READ", 60)
	add(7, "GETATTR", 70) // The XID is used for another RPC.
	o := c.Finish(nil)
	for _, list := range []struct {
		name string
		got  []Slow
		want [][3]int64 // XID, latency, count
	}{
		{"slowest", o.Slowest, [][3]int64{{7, 105, 6}, {7, 70, 1}, {21, 60, 1}, {20, 50, 1}}},
		{"mounting", o.SlowestMounting, [][3]int64{{13, 1005, 1}, {12, 1004, 1}, {11, 1003, 1}, {10, 1002, 1}, {9, 1001, 1}}},
	} {
		if len(list.got) != len(list.want) {
			t.Errorf("%s: %d RPCs, want %d", list.name, len(list.got), len(list.want))
			continue
		}
		for i, s := range list.got {
			if got := [3]int64{int64(s.Transaction.XID), s.Transaction.LatencyNS.Or(0), int64(s.Count)}; got != list.want[i] {
				t.Errorf("%s: RPC %d is %v, want %v", list.name, i, got, list.want[i])
			}
		}
	}
}

// TestSlowestRanges: latencies that are upper bounds follow the others, if they may be longer than the last of these.
func TestSlowestRanges(t *testing.T) {
	c := NewCollector()
	add := func(xid record.Hex32, latency int64, least record.Opt[int64]) {
		c.Transaction(&record.Transaction{
			XID: xid, Direction: record.Forward, Status: record.Complete, Operation: record.Some("READ"), LatencyNS: record.Some(latency), LatencyMinNS: least,
			Reply: &record.Message{},
		})
	}
	for i, ns := range []int64{900, 800, 700, 650} {
		add(record.Hex32(i), ns, record.Some[int64](10))
	}
	xids := func() (list []record.Hex32) {
		for _, s := range c.slowest.all() {
			list = append(list, s.Transaction.XID)
		}
		return list
	}
	if got := fmt.Sprint(xids()); got != "[0x00000000 0x00000001]" {
		t.Errorf("only upper bounds: %s", got)
	}
	for i := range record.Hex32(6) {
		add(10+i, 850-int64(i), record.Opt[int64]{})
	}
	if got := fmt.Sprint(xids()); got != "[0x0000000a 0x0000000b 0x0000000c 0x0000000d 0x0000000e 0x00000000]" { // 800 is not longer than 846
		t.Errorf("with proven latencies: %s", got)
	}
}

// TestStatuses: transactions that failed are counted by their outermost status.
func TestStatuses(t *testing.T) {
	c := NewCollector()
	for range 3 {
		c.Transaction(&record.Transaction{Reply: &record.Message{}, Status: record.Complete, RPCStatus: record.Some("SUCCESS"), NFSStatus: record.Some("NFS4ERR_MINOR_VERS_MISMATCH")})
	}
	c.Transaction(&record.Transaction{Reply: &record.Message{}, Status: record.Complete, RPCStatus: record.Some("PROG_MISMATCH")})
	c.Transaction(&record.Transaction{Reply: &record.Message{}, Status: record.Complete, RPCStatus: record.Some("SUCCESS"), NFSStatus: record.Some("NFS4_OK")})
	got := c.Finish(nil).RPCs.Statuses
	want := []StatusCount{{"NFS4ERR_MINOR_VERS_MISMATCH", 3}, {"PROG_MISMATCH", 1}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v, want %v", got, want)
	}
}
