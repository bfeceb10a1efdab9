package analyze

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestRestarted: a server that did not answer, and then sent a status that a server sends only after a restart, had restarted.
// If it sent the status before, or sends one that follows from a lease that expired, too, the capture does not show that.
func TestRestarted(t *testing.T) {
	const s = record.Time(1e9)
	const server, client = "10.0.0.2", "10.0.0.1"
	ends := func(r *record.Connection) *record.Connection {
		r.Client, r.Server = record.Endpoint{Address: record.Some(client)}, record.Endpoint{Address: record.Some(server), Port: record.Some(uint16(20049))}
		return r
	}
	for _, c := range []struct {
		name     string
		status   string
		at       []record.Time // Replies with the status
		silent   bool          // from 10 s to 30 s
		rejected bool          // at 30 s
		accepted bool          // at 33 s
		where    Place
		text     string
	}{
		{"GRACE after a silence", "NFS4ERR_GRACE", []record.Time{40 * s}, true, false, true, InServer, "the server restarted between 9.00s and 29.00s (NFS4ERR_GRACE in packet 40)"},
		{"GRACE after a rejection", "NFS4ERR_GRACE", []record.Time{40 * s}, false, true, true, InServer, "the server restarted between 8.00s and 29.00s (NFS4ERR_GRACE in packet 40): 1 connection rejected, accepted 3s later"},
		{"GRACE before, too", "NFS4ERR_GRACE", []record.Time{5 * s, 40 * s}, true, false, true, Unproven, "10.0.0.2 silent from 9.00s to 29.00s: 7 packets of 10.0.0.1 asked for an answer; the network or the server"},
		{"an expired lease", "NFS4ERR_BADSESSION", []record.Time{40 * s}, true, false, true, Unproven, "10.0.0.2 silent from 9.00s to 29.00s"},
		{"BADSESSION after a rejection", "NFS4ERR_BADSESSION", []record.Time{40 * s}, true, true, true, InServer, "the server restarted between 9.00s and 29.00s (NFS4ERR_BADSESSION in packet 40)"},
		{"no silence and no rejection", "NFS4ERR_GRACE", []record.Time{40 * s}, false, false, false, Unproven, "no fault proven: 1 of 1 RPC failed (1 NFS4ERR_GRACE)"},
		{"a server that stops", "", nil, false, true, false, InServer, "1 connection rejected: invalid service ID; none accepted afterwards"},
	} {
		col := NewCollector()
		for _, at := range c.at {
			col.Transaction(&record.Transaction{
				Status: record.Complete, Direction: record.Forward, Client: record.Some(client), Server: record.Some(server), NFSStatus: record.Some(c.status),
				Call: &record.Message{Time: at}, Reply: &record.Message{Time: at, Packet: int64(at / s)},
			})
		}
		if c.rejected || c.silent {
			col.Connection(ends(&record.Connection{
				ID: 0, First: s, Last: 9 * s, Established: record.Some(s), Closed: record.Some(9 * s), Ended: record.Some(record.Ended{How: record.EndDisconnect}),
			}))
		}
		if c.rejected {
			col.Connection(ends(&record.Connection{
				ID: 1, First: 30 * s, Last: 30 * s, Closed: record.Some(30 * s),
				Ended: record.Some(record.Ended{How: record.EndRejected, By: record.Some(record.Server), Reason: record.Some("invalid service ID")}),
			}))
		}
		if c.accepted {
			col.Connection(ends(&record.Connection{ID: 2, First: 33 * s, Last: 50 * s, Established: record.Some(33 * s)}))
		}
		sum := &record.Summary{RDMA: 1, First: record.Some(s), Last: record.Some(50 * s)}
		if c.silent {
			sum.Silences = []record.Silence{{Address: server, Peer: client, From: 10 * s, To: record.Some(30 * s), Packets: 7, Last: 9, Next: record.Some(int64(30))}}
		}
		if v := col.Finish(sum).Verdict; v.Where != c.where || !strings.HasPrefix(v.Text, c.text) || len(v.Restarts) > 0 != strings.Contains(c.text, "restarted") {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, v.Where, v.Text, c.where, c.text)
		}
	}
}
