package analyze

import (
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

// TestStatuses: transactions that failed are counted by their outermost status.
func TestStatuses(t *testing.T) {
	c := NewCollector()
	for range 3 {
		c.Transaction(&record.Transaction{Status: record.Complete, RPCStatus: record.Some("SUCCESS"), NFSStatus: record.Some("NFS4ERR_MINOR_VERS_MISMATCH")})
	}
	c.Transaction(&record.Transaction{Status: record.Complete, RPCStatus: record.Some("PROG_MISMATCH")})
	c.Transaction(&record.Transaction{Status: record.Complete, RPCStatus: record.Some("SUCCESS"), NFSStatus: record.Some("NFS4_OK")})
	got := c.Finish(nil).RPCs.Statuses
	want := []StatusCount{{"NFS4ERR_MINOR_VERS_MISMATCH", 3}, {"PROG_MISMATCH", 1}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v, want %v", got, want)
	}
}
