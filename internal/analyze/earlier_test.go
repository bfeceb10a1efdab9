package analyze

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestEarlier: a timeline that begins late knows the grant of the last Reply before it.
func TestEarlier(t *testing.T) {
	rpc := func(at, latency int64, granted uint32) *record.Transaction {
		return &record.Transaction{
			Call: &record.Message{Time: record.Time(at), Credits: record.Some[uint32](9)}, Reply: &record.Message{Credits: record.Some(granted), LastPacket: at}, LatencyNS: record.Some(latency),
		}
	}
	var c CreditTimeline
	c.Earlier(rpc(10, 5, 32))
	c.Earlier(rpc(5, 2, 16)) // its record comes later
	c.Add(rpc(20, 5, 32))
	out := c.Finish(withCredits(100), record.Forward)
	if len(out.Grants) != 0 || len(out.Points) != 3 || out.Points[0] != (CreditPoint{15, record.Some(0), record.Some[uint32](32)}) || out.PeakInFlight != record.Some(1) {
		t.Errorf("the timeline has %d grants, the points %v and a peak of %v; want none, three from 15 on, and 1", len(out.Grants), out.Points, out.PeakInFlight)
	}
}
