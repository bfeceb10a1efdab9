package analyze

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestRestarted: a server that stopped answering, rejected connections and then sent Replies with NFS4ERR_GRACE had
// restarted. Without these Replies, the capture does not show that.
func TestRestarted(t *testing.T) {
	const s = record.Time(1e9)
	for _, graceAt := range []record.Time{0, 5 * s, 40 * s} {
		c := NewCollector()
		server := record.Some("10.0.0.2")
		reply := func(at record.Time, status string) {
			r := &record.Transaction{
				Status: record.Complete, Direction: record.Forward, Server: server, NFSStatus: record.Some(status),
				Call: &record.Message{Time: at}, Reply: &record.Message{Time: at},
			}
			r.Complete(record.Stamp{Time: at, Packet: 1}, 1)
			c.Transaction(r)
		}
		reply(s, "NFS4_OK")
		if graceAt == 5*s {
			reply(graceAt, "NFS4ERR_GRACE")
		}
		c.Transaction(&record.Transaction{
			Status: record.NoReply, Direction: record.Forward, Server: server, Call: &record.Message{Time: 10 * s},
			Waits: []record.Wait{{From: 10 * s, To: 12 * s, NS: 2e9, Reason: record.RetransmitTimeout, Waiting: record.Client}},
		})
		c.Connection(&record.Connection{
			Server: record.Endpoint{Address: server}, Last: 30 * s,
			Ended: record.Some(record.Ended{How: record.EndRejected, By: record.Some(record.Server), Reason: record.Some("invalid service ID")}),
		})
		if graceAt == 40*s {
			reply(graceAt, "NFS4ERR_GRACE")
		}
		v := c.Finish(&record.Summary{RDMA: 1}).Verdict
		if v.Where != InServer || !strings.Contains(v.Text, "then rejects connections") || strings.Contains(v.Text, "it had restarted") != (graceAt == 40*s) {
			t.Errorf("GRACE at %v: %s: %s", graceAt, v.Where, v.Text)
		}
	}
}
