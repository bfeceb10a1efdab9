package analyze

import (
	"reflect"
	"slices"
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
		r.Client, r.Server, r.ClientKnown = record.Endpoint{Address: record.Some(client)}, record.Endpoint{Address: record.Some(server), Port: record.Some(uint16(20049))}, true
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
		{"GRACE after a silence", "NFS4ERR_GRACE", []record.Time{40 * s}, true, false, true, InServer, "the server 10.0.0.2 restarted between 9.00s and 29.00s (NFS4ERR_GRACE in packet 40); it was last heard of at 7.00s (packet 9); the last RPC that it answered before was NFS4 READ, XID 0x00000007; 1 RPC was in flight; afterwards it answered with 2 NFS4ERR_BAD_STATEID, 1 NFS4ERR_GRACE"},
		{"GRACE after a rejection", "NFS4ERR_GRACE", []record.Time{40 * s}, false, true, true, InServer, "the server 10.0.0.2 restarted between 8.00s and 29.00s (NFS4ERR_GRACE in packet 40): 1 connection rejected, another one accepted 3.000s after the rejection; it was last heard of at 6.00s (packet 70); the last RPC that it answered before"},
		{"GRACE before, too", "NFS4ERR_GRACE", []record.Time{5 * s, 40 * s}, true, false, true, Unproven, "no packet from 10.0.0.2 was captured between 9.00s and 29.00s, although 7 packets of 10.0.0.1 needed an answer; the network lost packets, or the server sent none"},
		{"an expired lease", "NFS4ERR_BADSESSION", []record.Time{40 * s}, true, false, true, Unproven, "no packet from 10.0.0.2 was captured between 9.00s and 29.00s"},
		{"BADSESSION after a rejection", "NFS4ERR_BADSESSION", []record.Time{40 * s}, true, true, true, InServer, "the server 10.0.0.2 restarted between 9.00s and 29.00s (NFS4ERR_BADSESSION in packet 40)"},
		{"no silence and no rejection", "NFS4ERR_GRACE", []record.Time{40 * s}, false, false, false, Unproven, "no fault proven: 3 of 6 RPCs failed or were put off (2 NFS4ERR_BAD_STATEID, 1 NFS4ERR_GRACE); 1 RPC without a Reply up to the end of the capture"},
		{"a server that stops", "", nil, false, true, false, InServer, "1 connection rejected: invalid service ID; none accepted afterwards"},
	} {
		col := NewCollector()
		rpc := func(connection int, at record.Time, xid record.Hex32, status string) *record.Transaction {
			r := &record.Transaction{
				Status: record.Complete, Direction: record.Forward, Connection: connection, XID: xid, Client: record.Some(client), Server: record.Some(server), NFSStatus: record.SomeIf(status, status != ""),
				Program: record.Some(uint32(100003)), ProgramName: record.Some("NFS"), Version: record.Some(uint32(4)), Operation: record.Some("READ"),
				Call: &record.Message{Time: at - 1}, Reply: &record.Message{Time: at, Packet: int64(at / s * 10)},
			}
			return r
		}
		col.Transaction(rpc(0, 6*s, 6, ""))
		col.Transaction(rpc(0, 7*s, 7, ""))
		lost := rpc(0, 8*s, 8, "")
		lost.Status, lost.Reply = record.NoReply, nil
		col.Transaction(lost)
		for range 2 {
			col.Transaction(rpc(2, 41*s, 9, "NFS4ERR_BAD_STATEID"))
		}
		for _, at := range c.at {
			r := rpc(2, at, 10, c.status)
			r.Reply.Packet = int64(at / s)
			col.Transaction(r)
		}
		closed := 9 * s
		if c.silent {
			closed = 25 * s
		}
		if c.rejected || c.silent {
			col.Connection(ends(&record.Connection{
				ClientKnown: true,
				ID:          0, First: s, Last: closed, Established: record.Some(s), Closed: record.Some(closed), Ended: record.Some(record.Ended{How: record.EndDisconnect}),
			}))
		}
		if c.rejected {
			col.Connection(ends(&record.Connection{
				ClientKnown: true,
				ID:          1, First: 30 * s, Last: 30 * s, Closed: record.Some(30 * s),
				Ended: record.Some(record.Ended{How: record.EndRejected, By: record.Some(record.Server), Reason: record.Some("invalid service ID")}),
			}))
		}
		if c.accepted {
			col.Connection(ends(&record.Connection{ClientKnown: true, ID: 2, First: 33 * s, Last: 50 * s, Established: record.Some(33 * s)}))
		}
		sum := &record.Summary{RDMA: 1, First: record.Some(s), Last: record.Some(50 * s)}
		if c.silent {
			sum.Silences = []record.Silence{{Address: server, Peer: client, From: 10 * s, To: record.Some(30 * s), Packets: 7, Last: 9, LastTime: 8 * s, Next: record.Some(int64(30))}}
		}
		if v := col.Finish(sum).Verdict; v.Where != c.where || !strings.HasPrefix(v.Text, c.text) || len(v.Restarts) > 0 != strings.Contains(c.text, "restarted") {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, v.Where, v.Text, c.where, c.text)
		}
	}
}

// TestWriteVerifiers: a server that rejects connections on a port on which it accepted some, and sends another write verifier
// afterwards, had restarted. A verifier that a later Reply has, too, is that of another file system, and one without an
// interruption may follow an error of its storage.
func TestWriteVerifiers(t *testing.T) {
	const s = record.Time(1e9)
	const server = "10.0.0.2"
	for _, c := range []struct {
		name      string
		verifiers []record.Hex64 // of Replies at 5 s, 40 s, 45 s
		rejected  bool           // at 30 s
		restarted bool
	}{
		{"another one", []record.Hex64{1, 2, 2}, true, true},
		{"the same", []record.Hex64{1, 1, 1}, true, false},
		{"of two file systems", []record.Hex64{1, 2, 1}, true, false},
		{"without an interruption", []record.Hex64{1, 2, 2}, false, false},
		{"only afterwards", []record.Hex64{2, 2, 2}, true, false},
	} {
		col := NewCollector()
		for i, at := range []record.Time{5 * s, 40 * s, 45 * s} {
			col.Transaction(&record.Transaction{
				Status: record.Complete, Direction: record.Forward, Server: record.Some(server), WriteVerifier: record.Some(c.verifiers[i]),
				Call: &record.Message{Time: at}, Reply: &record.Message{Time: at, Packet: int64(at / s)},
			})
		}
		port := record.Endpoint{Address: record.Some(server), Port: record.Some(uint16(20049))}
		col.Connection(&record.Connection{Server: port, First: s, Last: 9 * s, Established: record.Some(s), Closed: record.Some(9 * s), Ended: record.Some(record.Ended{How: record.EndDisconnect})})
		if c.rejected {
			end := record.Ended{How: record.EndRejected, By: record.Some(record.Server), Reason: record.Some("invalid service ID")}
			col.Connection(&record.Connection{Server: port, First: 30 * s, Last: 30 * s, Closed: record.Some(30 * s), Ended: record.Some(end)})
		}
		col.Connection(&record.Connection{Server: port, First: 33 * s, Last: 50 * s, Established: record.Some(33 * s)})
		v := col.Finish(&record.Summary{RDMA: 1, First: record.Some(s), Last: record.Some(50 * s)}).Verdict
		const want = "the server 10.0.0.2 restarted between 8.00s and 29.00s (another write verifier in packet 40)"
		if restarted := strings.HasPrefix(v.Text, want); restarted != c.restarted || len(v.Restarts) > 0 != restarted {
			t.Errorf("%s: %s, restarts %+v", c.name, v.Text, v.Restarts)
		}
	}
}

// TestManyRestarts: the sentence about the first of several restarts says how many there were.
func TestManyRestarts(t *testing.T) {
	restart := Restart{Address: "10.0.0.2", From: 8e9, To: 9e9, ShownBy: "NFS4ERR_BADSESSION", Packet: record.Some[int64](40)}
	for _, c := range []struct {
		role record.End
		says func(j *facts) said
		n    int
		want string
	}{
		{record.Server, serverRestarted, 1, "the server 10.0.0.2 restarted between 8.00s and 9.00s (NFS4ERR_BADSESSION in packet 40)"},
		{record.Server, serverRestarted, 3, "the server 10.0.0.2 restarted between 8.00s and 9.00s (NFS4ERR_BADSESSION in packet 40; 3 restarts of servers in all)"},
		{record.Client, clientRestarted, 2, "the client 10.0.0.2 restarted between 8.00s and 9.00s: it named itself with the same owner and another boot verifier (packet 40); 2 restarts of clients in all"},
	} {
		j := &facts{s: &record.Summary{First: record.Some(record.Time(0))}}
		restart.Role = c.role
		for range c.n {
			j.restarts = append(j.restarts, restart)
		}
		if got := c.says(j).text; got != c.want {
			t.Errorf("%d: %s, want %s", c.n, got, c.want)
		}
	}
}

// TestClientRestarted: a client that names itself with the same owner and another verifier had restarted. If it had taken
// leave before, or the capture shows that two clients have the same owner, the capture does not show that.
func TestClientRestarted(t *testing.T) {
	const s = record.Time(1e9)
	const client, server = "10.0.0.1", "10.0.0.2"
	rpc := func(connection int, at record.Time, operation string) *record.Transaction {
		return &record.Transaction{
			Status: record.Complete, Direction: record.Forward, Client: record.Some(client), Server: record.Some(server), Connection: connection,
			Operations: []string{operation}, Call: &record.Message{Time: at, Packet: int64(at / s)}, Reply: &record.Message{Time: at},
		}
	}
	named := func(connection int, at record.Time, owner string, verifier record.Hex64) *record.Transaction {
		r := rpc(connection, at, "EXCHANGE_ID")
		r.ClientOwner, r.BootVerifier = record.Some(owner), record.Some(verifier)
		return r
	}
	ended := func(how record.Ending, by record.End) *record.Connection {
		return &record.Connection{
			ClientKnown: true,
			Client:      record.Endpoint{Address: record.Some(client)}, Server: record.Endpoint{Address: record.Some(server)}, First: s, Last: 45 * s,
			Closed: record.Some(45 * s), Ended: record.Some(record.Ended{How: how, By: record.Some(by)}),
		}
	}
	elsewhere := named(1, 101*s, "aa", 2)
	elsewhere.Client = record.Some("10.0.0.3")
	const told = "the client 10.0.0.1 restarted between 40.00s and 100.00s: it named itself with the same owner and another boot verifier (packet 101)"
	for _, c := range []struct {
		name       string
		list       []*record.Transaction // besides Calls at 2 s and 41 s on connection 0
		connection *record.Connection
		unselected bool // what the list has
		text       string
	}{
		{"another verifier", []*record.Transaction{named(1, 101*s, "aa", 2), rpc(1, 102*s, "READ")}, nil, false, told},
		{"the server disconnected", []*record.Transaction{named(1, 101*s, "aa", 2)}, ended(record.EndDisconnect, record.Server), false, told},
		{"trunking discovery", []*record.Transaction{named(1, 101*s, "aa", 2), named(1, 102*s, "aa", 2)}, nil, false, told},
		{"the same verifier", []*record.Transaction{named(1, 101*s, "aa", 1)}, nil, false, ""},
		{"another owner", []*record.Transaction{named(1, 101*s, "bb", 2)}, nil, false, ""},
		{"another client", []*record.Transaction{elsewhere}, nil, false, ""},
		{"the session was destroyed", []*record.Transaction{rpc(0, 42*s, "DESTROY_SESSION"), named(1, 101*s, "aa", 2)}, nil, false, ""},
		{"the client ID was destroyed", []*record.Transaction{rpc(0, 42*s, "DESTROY_CLIENTID"), named(1, 101*s, "aa", 2)}, nil, false, ""},
		{"the client disconnected", []*record.Transaction{named(1, 101*s, "aa", 2)}, ended(record.EndDisconnect, record.Client), false, ""},
		{"the client reset the connection", []*record.Transaction{named(1, 101*s, "aa", 2)}, ended(record.EndReset, record.Client), false, ""},
		{"both verifiers later", []*record.Transaction{named(1, 101*s, "aa", 2), named(2, 103*s, "aa", 1)}, nil, false, ""},
		{"the connection is used later", []*record.Transaction{named(1, 101*s, "aa", 2), rpc(0, 102*s, "READ")}, nil, false, ""},
		{"the same connection", []*record.Transaction{named(0, 101*s, "aa", 2)}, nil, false, ""},
		{"the state is purged", []*record.Transaction{named(1, 101*s, "aa", 1_000_000_001)}, nil, false, ""},
		{"the state is purged by a newer client", []*record.Transaction{named(1, 101*s, "aa", 1<<64-1)}, nil, false, ""},
		{"leave that is not selected", []*record.Transaction{rpc(0, 42*s, "DESTROY_SESSION"), named(1, 101*s, "aa", 2)}, nil, true, ""},
		{"a disconnect that is not selected", []*record.Transaction{named(1, 101*s, "aa", 2)}, ended(record.EndDisconnect, record.Client), true, ""},
	} {
		col := NewCollector()
		col.Transaction(named(0, 2*s, "aa", 1))
		col.Transaction(rpc(0, 41*s, "READ"))
		for _, r := range c.list {
			if c.unselected && !r.BootVerifier.Known() {
				col.UnselectedRPC(r)
			} else {
				col.Transaction(r)
			}
		}
		switch {
		case c.connection == nil:
		case c.unselected:
			col.Unselected(c.connection)
		default:
			col.Connection(c.connection)
		}
		v := col.Finish(&record.Summary{RDMA: 1, First: record.Some(s), Last: record.Some(110 * s)}).Verdict
		if c.text == "" {
			if len(v.Restarts) > 0 || strings.Contains(v.Text, "restarted") {
				t.Errorf("%s: the verdict speaks of a restart, which nothing proves: %s; %d restarts", c.name, v.Text, len(v.Restarts))
			}
			continue
		}
		want := Restart{
			Address: client, Role: record.Client, From: 41 * s, To: 101 * s, ShownBy: "another boot verifier", Packet: record.Some(int64(101)),
			LastHeard: record.Some(41 * s), LastPacket: record.Some(int64(41)), LastRPC: record.Some(LastRPC{0, "(not decoded)", 41 * s, 41}), Refused: map[string]int64{},
		}
		if v.Where != InClient || v.ID != "client-restarted" || !strings.HasPrefix(v.Text, c.text) || len(v.Restarts) != 1 || !reflect.DeepEqual(v.Restarts[0], want) {
			t.Errorf("%s: %s: %s: %+v, want %s", c.name, v.Where, v.Text, v.Restarts, c.text)
		}
	}
}

// TestSlowServer: the verdict names the server if the capture proves that it took at least half of the latency, and says where the
// capture was taken. Late packets of the server refute that.
func TestSlowServer(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		serverNS int64
		point    record.PointFacts
		late     int64
		where    Place
		text     string
		capture  string
	}{
		{60 * ms, record.PointFacts{At: record.Some(record.AtServer), How: record.Some("option")}, 0, InServer, "the server took 60% to 100% of the total latency (at least 60.00ms of 100.00ms; captured at the server, as --at says)", "taken at the server (--at)"},
		{40 * ms, record.PointFacts{At: record.Some(record.AtServer), How: record.Some("interface")}, 0, Unproven, "no fault proven: at least 40% of the total latency (40.00ms of 100.00ms) is the server's, and up to 60% more of it (60.00ms) the server's, or the network's", "taken at the server (its interface says which packets it sent)"},
		{60 * ms, record.PointFacts{}, 0, InServer, "the server took 60% to 100% of the total latency (at least 60.00ms of 100.00ms; as the capture proves)", ""},
		{0, record.PointFacts{Refuted: record.Some(record.AtServer), How: record.Some("option")}, 6, Unproven, "no fault proven: up to 100% of the total latency (100.00ms of 100.00ms) is the server's, or the network's;", "not taken at the server (--at): 6 packets of it came late"},
	} {
		col := NewCollector()
		col.Transaction(&record.Transaction{
			Status: record.Complete, Direction: record.Forward, LatencyNS: record.Some(100 * ms), Call: &record.Message{Time: 1}, Reply: &record.Message{Time: record.Time(100 * ms)},
			Shares: record.Some(record.Shares{ServerNS: record.Bounds{Min: c.serverNS, Max: 100 * ms}}),
		})
		end := record.Some(record.Ended{How: record.EndDisconnect})
		col.Connection(&record.Connection{Handshake: "seen", Ended: end, Packets: 9, Path: record.ConnectionPath{Point: c.point, Late: record.FromPair{FromServer: c.late}}})
		o := col.Finish(&record.Summary{RDMA: 1})
		if v := &o.Verdict; v.Where != c.where || !strings.HasPrefix(v.Text, c.text) || strings.Join(o.Capture, "; ") != c.capture {
			t.Errorf("%s: %s (%v), want %s: %s (%s)", v.Where, v.Text, o.Capture, c.where, c.text, c.capture)
		}
		if line := o.Verdict.Line; !strings.HasPrefix(line, "no fault proven: ") || strings.Count(line, "no fault proven") != 1 {
			t.Errorf("a share of the server begins with a fault: %s", line)
		}
	}
}

// TestSlowNetwork: the verdict names the network, or the client, if both ends prove that it took at least half of the latency. What
// passed until a retransmission, or while a host was perhaps down, is said otherwise.
func TestSlowNetwork(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		name    string
		shares  record.Shares
		stalled int64
		lost    int64 // in a quiet time
		latency int64
		where   Place
		line    string
	}{
		{"network", record.Shares{NetworkNS: record.Bounds{Min: 74 * ms, Max: 74 * ms}, ServerNS: record.Bounds{Min: 26 * ms, Max: 26 * ms}}, 0, 0, 100 * ms, InNetwork, "no fault proven: the network took 74% of the total latency (74.00ms of 100.00ms; seen at both ends)"},
		{"client", record.Shares{ClientNS: record.Bounds{Min: 60 * ms, Max: 70 * ms}}, 0, 0, 100 * ms, InClient, "no fault proven: the client took 60% to 70% of the total latency (at least 60.00ms of 100.00ms; seen at both ends)"},
		{"no side", record.Shares{NetworkNS: record.Bounds{Min: 49 * ms, Max: 49 * ms}}, 0, 0, 100 * ms, Clear, "1 RPC, all answered"},
		{"fast RPCs", record.Shares{NetworkNS: record.Bounds{Min: 70_000, Max: 70_000}}, 0, 0, 100_000, Clear, "1 RPC, all answered"},
		{"a retransmission", record.Shares{NetworkNS: record.Bounds{Min: 74 * ms, Max: 74 * ms}}, 70 * ms, 0, 100 * ms, Unproven, "no fault proven: "},
		{"a host that was down", record.Shares{NetworkNS: record.Bounds{Min: 74 * ms, Max: 74 * ms}}, 0, 3, 100 * ms, Unproven, "3 packets did not reach server"},
	} {
		col := NewCollector()
		network := &record.Network{To: "server", Packets: 9, Lost: c.lost}
		if c.lost > 0 {
			network.Quiet = []record.QuietTime{{From: 1, To: 2e9, Lost: c.lost}}
		}
		col.Network([]*record.Point{{Name: "client"}, {Name: "server"}}, []*record.Network{network})
		r := &record.Transaction{
			Status: record.Complete, Direction: record.Forward, LatencyNS: record.Some(c.latency), Call: &record.Message{Time: 1}, Reply: &record.Message{Time: record.Time(c.latency)},
			Shares: record.Some(c.shares),
		}
		if c.stalled > 0 {
			r.Waits = []record.Wait{{Reason: record.RetransmitTimeout, From: 1, NS: c.stalled}}
		}
		col.Transaction(r)
		end := record.Some(record.Ended{How: record.EndDisconnect})
		col.Connection(&record.Connection{Handshake: "seen", Ended: end, Packets: 9, Retransmitted: min(c.stalled, 1)})
		if v := col.Finish(&record.Summary{RDMA: 1}).Verdict; v.Where != c.where || !strings.HasPrefix(v.Line, c.line) || strings.Contains(v.Text, " took ") != strings.Contains(c.line, " took ") {
			t.Errorf("%s: %s (%s), want %s: %s", c.name, v.Where, v.Line, c.where, c.line)
		}
	}
}

// TestRejectedThenAccepted: a rejection is a count if the server accepts the same client afterwards, on any port, and the verdict
// if it does not.
func TestRejectedThenAccepted(t *testing.T) {
	const ms = record.Time(1e6)
	connection := func(client string, port uint16, at record.Time, accepted bool) *record.Connection {
		r := &record.Connection{
			ClientKnown: true,
			Client:      record.Endpoint{Address: record.Some(client)}, Server: record.Endpoint{Address: record.Some("10.0.0.9"), Port: record.Some(port)}, First: at, Last: at,
		}
		if accepted {
			r.Established = record.Some(at)
		} else {
			r.Closed, r.Ended = record.Some(at), record.Some(record.Ended{How: record.EndRejected, By: record.Some(record.Server), Reason: record.Some("invalid service ID")})
		}
		return r
	}
	for _, c := range []struct {
		name     string
		list     []*record.Connection
		other    *record.Connection // not selected
		where    Place
		text     string
		rejected int64
		repaired int64
	}{
		{"on another port", []*record.Connection{connection("10.0.0.1", 5445, 0, false), connection("10.0.0.1", 445, 474*ms, true)}, nil, Unproven, "no fault proven: 1 connection rejected, another one accepted 474.00ms after the rejection on port 445", 0, 1},
		{"records in another order", []*record.Connection{connection("10.0.0.1", 445, 474*ms, true), connection("10.0.0.1", 5445, 0, false)}, nil, Unproven, "no fault proven: 1 connection rejected, another one accepted 474.00ms after the rejection on port 445", 0, 1},
		{"by a connection that is not selected", []*record.Connection{connection("10.0.0.1", 5445, 0, false)}, connection("10.0.0.1", 445, 474*ms, true), Unproven, "no fault proven: 1 connection rejected, another one accepted 474.00ms after the rejection on port 445", 0, 1},
		{"accepted before", []*record.Connection{connection("10.0.0.1", 5445, 0, true), connection("10.0.0.1", 5445, 474*ms, false)}, nil, InServer, "1 connection rejected: invalid service ID; none accepted afterwards", 1, 0},
		{"nothing serves the port", []*record.Connection{connection("10.0.0.1", 5445, 0, false)}, nil, InConfiguration, "1 connection rejected: invalid service ID; none accepted afterwards", 1, 0},
		{"of another client", []*record.Connection{connection("10.0.0.1", 5445, 0, false), connection("10.0.0.2", 445, 474*ms, true)}, nil, InConfiguration, "1 connection rejected: invalid service ID; none accepted afterwards (client 10.0.0.1)", 1, 0},
	} {
		col := NewCollector()
		for _, r := range c.list {
			col.Connection(r)
		}
		if c.other != nil {
			col.Unselected(c.other)
		}
		v := col.Finish(&record.Summary{RDMA: 1}).Verdict
		if v.Where != c.where || !strings.HasPrefix(v.Text, c.text) || v.Counts.Rejected != c.rejected || v.Counts.RejectedThenAccepted != c.repaired {
			t.Errorf("%s: %s: %s (%d, %d), want %s: %s", c.name, v.Where, v.Text, v.Counts.Rejected, v.Counts.RejectedThenAccepted, c.where, c.text)
		}
	}
}

// TestCulprits: if a capture has several clients, the verdict says how much of the trouble each of them has, the worst first.
// Ordinary answers are no trouble.
func TestCulprits(t *testing.T) {
	type trouble struct {
		retransmitted, naks int64
		status              string // of an RPC
		stalled             int64  // of an RPC, in seconds
	}
	for _, c := range []struct {
		clients []trouble // of 10.0.0.0, 10.0.0.1, ...
		text    string
		shares  [4]float64 // of the worst client
	}{
		{[]trouble{{60, 3, "", 0}}, "network: 60 of 100 packets retransmitted, 3 NAKs", [4]float64{1, 1, 0, 0}},
		{[]trouble{{}, {60, 9, "", 0}, {}}, "network: 60 of 300 packets retransmitted, 9 NAKs. By client, the most affected first: 10.0.0.1 has all 60 retransmissions and all 9 NAKs", [4]float64{1, 1, 0, 0}},
		{
			[]trouble{{5, 0, "", 0}, {60, 3, "NFS4ERR_IO", 3}, {7, 9, "", 0}, {1, 0, "", 1}, {2, 0, "NFS4ERR_NOENT", 0}},
			"By client, the most affected first: 10.0.0.1 has 60 of 75 retransmissions, 3 of 12 NAKs, the only unusual failure and 3.000s of 4.000s of stalls; 10.0.0.2 has 7 of 75 retransmissions and 9 of 12 NAKs; 10.0.0.3 has 1 of 75 retransmissions and 1.000s of 4.000s of stalls; 2 others the rest",
			[4]float64{0.8, 0.25, 1, 0.75},
		},
		{[]trouble{{}, {0, 0, "NFS4ERR_NOENT", 0}}, "1 of 2 RPCs failed (1 NFS4ERR_NOENT), all of client 10.0.0.1; no packet lost, repeated or refused", [4]float64{}},
	} {
		col := NewCollector()
		for i, x := range c.clients {
			address := record.Some("10.0.0." + string(rune('0'+i)))
			r := &record.Transaction{
				Status: record.Complete, Direction: record.Forward, Client: address, Call: &record.Message{}, Reply: &record.Message{}, NFSStatus: record.SomeIf(x.status, x.status != ""),
				LatencyNS: record.Some(int64(4e9)), Phases: record.Some(record.Phases{WaitNS: x.stalled * 1e9}),
			}
			col.Transaction(r)
			col.Connection(&record.Connection{
				ClientKnown: true, ID: i, Client: record.Endpoint{Address: address}, Packets: 100, Retransmitted: x.retransmitted, Naks: x.naks,
				Handshake: "seen", Ended: record.Some(record.Ended{How: record.EndDisconnect}),
			})
		}
		v := col.Finish(&record.Summary{RDMA: 1}).Verdict
		if !strings.HasSuffix(v.Line, c.text) {
			t.Errorf("%v: %s, want %s", c.clients, v.Line, c.text)
		}
		if c.shares == [4]float64{} {
			if len(v.Clients) > 0 {
				t.Errorf("%v: clients %+v, want none", c.clients, v.Clients)
			}
			continue
		}
		for i, p := range v.Clients[0].parts() {
			if p.Share != c.shares[i] {
				t.Errorf("%v: share %d of the first client is %v, want %v", c.clients, i, p.Share, c.shares[i])
			}
		}
	}
}

// TestOutcomes: an RPC without a Reply is never answered only if its connection ended, no copy of it was answered later, and
// the capture lacks nothing of the connection.
func TestOutcomes(t *testing.T) {
	rpc := func(id int64, conn int, of int64, status record.Status) *record.Transaction {
		return &record.Transaction{
			ID: id, Connection: conn, Status: status, Direction: record.Forward, Call: &record.Message{Time: 1}, RetransmitOf: record.SomeIf(of, of > 0),
		}
	}
	ended := record.Some(record.Ended{How: record.EndRetries, OutstandingCalls: 1})
	col := NewCollector()
	for _, r := range []*record.Transaction{
		rpc(1, 0, 0, record.NoReply),  // retransmitted by 2, 3 and answered
		rpc(2, 1, 1, record.NoReply),  // the same
		rpc(3, 2, 2, record.Complete), // the answer
		rpc(4, 1, 0, record.NoReply),  // never answered
		rpc(5, 3, 0, record.NoReply),  // on a connection that did not end
		rpc(6, 4, 0, record.NoReply),  // on a connection of which packets are missing
		rpc(7, 0, 0, record.NoReply),  // retransmitted by 8
		rpc(8, 1, 7, record.NoReply),  // never answered
	} {
		col.Transaction(r)
	}
	for i, r := range []*record.Connection{{Ended: ended}, {Ended: ended}, {}, {}, {Ended: ended, NotCaptured: 5}} {
		r.ID = i
		col.Connection(r)
	}
	n := col.Finish(&record.Summary{RDMA: 1}).Verdict.Counts
	if n.Unanswered != 2 || n.AnsweredAgain != 2 || n.Outstanding != 1 || n.Unknown != 1 {
		t.Errorf("%d unanswered, %d answered again, %d outstanding, %d unknown; want 2, 2, 1, 1", n.Unanswered, n.AnsweredAgain, n.Outstanding, n.Unknown)
	}
}

// TestReplySent: an RPC is not said to be never answered if its Reply was sent and not accepted.
func TestReplySent(t *testing.T) {
	for _, c := range []struct {
		lost []bool
		want string
	}{
		{[]bool{false, false}, "2 RPCs never answered"},
		{[]bool{true, false}, "2 RPCs without a Reply that is known to be accepted (that of 1 was sent)"},
		{[]bool{true}, "1 RPC whose Reply was sent, and is not known to be accepted"},
	} {
		col := NewCollector()
		for i, lost := range c.lost {
			col.Transaction(&record.Transaction{ID: int64(i + 1), Status: record.NoReply, Direction: record.Forward, Call: &record.Message{Time: 1}, ReplyLost: lost})
		}
		col.Connection(&record.Connection{Ended: record.Some(record.Ended{How: record.EndRetries, OutstandingCalls: 1})})
		if v := col.Finish(&record.Summary{RDMA: 1}).Verdict; !strings.Contains(v.Text, c.want) || strings.Contains(v.Text, "never answered") != !slices.Contains(c.lost, true) {
			t.Errorf("%v: %s, want %s", c.lost, v.Text, c.want)
		}
	}
}

// TestCallbackShares: the client took the time of a callback that a server of NFS 4.0 sent on a connection of its own.
func TestCallbackShares(t *testing.T) {
	for program, want := range map[string]ShareSums{
		"NFS_CB": {RPCs: 1, Exact: 1, LatencyNS: 100, ClientMinNS: 90, ClientMaxNS: 90, NetworkMinNS: 10, NetworkMaxNS: 10},
		"NFS":    {RPCs: 1, Exact: 1, LatencyNS: 100, ServerMinNS: 90, ServerMaxNS: 90, NetworkMinNS: 10, NetworkMaxNS: 10},
	} {
		var got ShareSums
		got.addHosts(&record.Transaction{
			ProgramName: record.Some(program), Direction: record.Forward, LatencyNS: record.Some[int64](100),
			Shares: record.Some(record.Shares{ServerNS: record.Bounds{Min: 90, Max: 90}, NetworkNS: record.Bounds{Min: 10, Max: 10}}),
		})
		if got != want {
			t.Errorf("%s: %+v, want %+v", program, got, want)
		}
	}
}

// TestCallbackClients: a server that sends callbacks on a connection of its own is not one of several clients.
func TestCallbackClients(t *testing.T) {
	for program, want := range map[string]bool{"NFS_CB": false, "NFS": true} {
		list := NewClients(nil)
		for _, x := range []struct{ client, program string }{{"10.0.0.1", "NFS"}, {"10.0.0.9", program}} {
			list.Transaction(&record.Transaction{Client: record.Some(x.client), ProgramName: record.Some(x.program), Direction: record.Forward, Status: record.Complete})
		}
		if list.Several() != want {
			t.Errorf("%s: several clients: %v, want %v", program, list.Several(), want)
		}
	}
}

// TestPutOff: an RPC that the server asks to come later has not failed.
func TestPutOff(t *testing.T) {
	for want, list := range map[string][]StatusCount{
		"failed":                 {{Status: "NFS4ERR_NOENT"}, {Status: "GARBAGE_ARGS"}},
		"put off":                {{Status: "NFS4ERR_GRACE"}, {Status: "NFS4ERR_DELAY"}, {Status: "NFS3ERR_JUKEBOX"}},
		"failed or were put off": {{Status: "NFS4ERR_GRACE"}, {Status: "NFS4ERR_BADSESSION"}},
	} {
		if got := became(list); got != want {
			t.Errorf("%v: %s, want %s", list, got, want)
		}
	}
}

// TestFaultless: a share of the latency and a limit are no faults, unless something else has a proven place.
func TestFaultless(t *testing.T) {
	for _, c := range []struct {
		v    Verdict
		want bool
	}{
		{Verdict{ID: "slow-server"}, true},
		{Verdict{ID: "slow-network"}, true},
		{Verdict{ID: "few-credits"}, true},
		{Verdict{ID: "few-credits", faults: true}, false},
		{Verdict{ID: "lost"}, false},
	} {
		if got := c.v.Faultless(); got != c.want {
			t.Errorf("%+v: %t", c.v, got)
		}
	}
}

// TestLostInQuiet: packets to a host whose capture has no frame at all in that time are not proven to be lost in the network. A
// restart of the host explains them. Those that were lost at other times are the network's.
func TestLostInQuiet(t *testing.T) {
	const s = record.Time(1e9)
	const server, client = "10.0.0.2", "10.0.0.1"
	for _, c := range []struct {
		name    string
		network record.Network
		restart bool
		where   Place
		text    string
	}{
		{
			"all of them",
			record.Network{To: "server", Packets: 1000, Lost: 31, Quiet: []record.QuietTime{{From: 19 * s, To: 78 * s, Lost: 31}}},
			false, Unproven,
			"31 packets did not reach 10.0.0.2 while its capture has no packet at all (from 18.00s to 77.00s): the network, or the host was down. 23 of 1000 packets retransmitted; RPCs stalled for 97% of the total latency (2.000s) until a retransmission",
		},
		{
			"the server restarted",
			record.Network{To: "server", Packets: 1000, Lost: 31, Quiet: []record.QuietTime{{From: 19 * s, To: 78 * s, Lost: 31}}},
			true, InServer,
			"the server 10.0.0.2 restarted between 18.00s and 79.00s (NFS4ERR_GRACE in packet 81); ",
		},
		{
			"most at other times",
			record.Network{To: "server", Packets: 1000, Lost: 31, Quiet: []record.QuietTime{{From: 19 * s, To: 21 * s, Lost: 4}, {From: 30 * s, To: 39 * s, Lost: 2}}},
			false, InNetwork,
			"25 packets lost between the capture points, 23 of 1000 packets retransmitted. 6 packets did not reach 10.0.0.2 while its capture has no packet at all (at 2 times, the longest from 29.00s to 38.00s): the network, or the host was down; RPCs stalled for 97% of the total latency (2.000s) until a retransmission",
		},
		{
			"none",
			record.Network{To: "server", Packets: 1000, Lost: 31},
			false, InNetwork,
			"31 packets lost between the capture points, 23 of 1000 packets retransmitted; RPCs stalled for 97% of the total latency (2.000s) until a retransmission",
		},
	} {
		col := NewCollector()
		col.Network([]*record.Point{{Name: "client", Address: record.Some(client)}, {Name: "server", Address: record.Some(server)}}, []*record.Network{&c.network})
		status := ""
		if c.restart {
			status = "NFS4ERR_GRACE"
		}
		for i, status := range []string{"", status} {
			at := record.Time(10+71*i) * s
			col.Transaction(&record.Transaction{
				Status: record.Complete, Direction: record.Forward, Client: record.Some(client), Server: record.Some(server), NFSStatus: record.SomeIf(status, status != ""), LatencyNS: record.Some(int64(1e9)),
				Call: &record.Message{Time: at - s}, Reply: &record.Message{Time: at, Packet: int64(at / s)},
				Waits: []record.Wait{{Reason: record.RetransmitTimeout, From: at - s, NS: 97e7}},
			})
		}
		col.Connection(&record.Connection{
			Client: record.Endpoint{Address: record.Some(client)}, Server: record.Endpoint{Address: record.Some(server)}, ClientKnown: true, Handshake: "seen",
			First: s, Last: 19 * s, Packets: 1000, Retransmitted: 23, Closed: record.Some(19 * s), Ended: record.Some(record.Ended{How: record.EndDisconnect}),
		})
		if c.restart {
			col.Connection(&record.Connection{
				Client: record.Endpoint{Address: record.Some(client)}, Server: record.Endpoint{Address: record.Some(server)}, ClientKnown: true, Handshake: "seen",
				ID: 1, First: 80 * s, Last: 82 * s, Established: record.Some(80 * s), Closed: record.Some(82 * s), Ended: record.Some(record.Ended{How: record.EndDisconnect}),
			})
		}
		v := col.Finish(&record.Summary{RDMA: 1, First: record.Some(s), Last: record.Some(90 * s)}).Verdict
		if v.Where != c.where || !strings.HasPrefix(v.Text, c.text) || c.restart && (v.faults && strings.Contains(v.Text, "network") || !strings.Contains(v.Text, "31 packets did not reach 10.0.0.2 while its capture has no packet at all (from 18.00s to 77.00s). 23 of")) {
			t.Errorf("%s: %s: %s\nwant %s: %s", c.name, v.Where, v.Text, c.where, c.text)
		}
	}
}

// TestStalledUntilReconnected: the verdict says that RPCs stalled until their Calls were retransmitted on a new connection, also if no
// packet of the old connection was retransmitted, because the client waited for a Reply and not for an acknowledgement.
func TestStalledUntilReconnected(t *testing.T) {
	for _, c := range []struct {
		name          string
		waits         map[record.WaitReason]int64 // of an RPC of 10 s, in seconds
		retransmitted int64
		want          string
	}{
		{"only that", map[record.WaitReason]int64{record.NewConnection: 5}, 0, "no fault proven: RPCs stalled for 50% of the total latency (10.000s) until Calls were retransmitted on a new connection"},
		{"with retransmissions", map[record.WaitReason]int64{record.NewConnection: 5, record.RetransmitTimeout: 1}, 3, "3 of 1000 packets retransmitted; RPCs stalled for 60% of the total latency (10.000s) until a retransmission, including 50% until Calls were retransmitted on a new connection"},
		{"retransmissions", map[record.WaitReason]int64{record.RetransmitTimeout: 1}, 3, "3 of 1000 packets retransmitted; RPCs stalled for 10% of the total latency (10.000s) until a retransmission"},
		{"other waits", map[record.WaitReason]int64{record.CreditLimit: 5}, 0, ""},
	} {
		col := NewCollector()
		r := &record.Transaction{Status: record.Complete, Direction: record.Forward, LatencyNS: record.Some(int64(10e9)), Call: &record.Message{Time: 1}, Reply: &record.Message{Time: 10e9}}
		from := record.Time(1)
		for reason, s := range c.waits {
			r.Waits = append(r.Waits, record.Wait{Reason: reason, From: from, NS: s * 1e9})
			from += record.Time(s * 1e9)
		}
		col.Transaction(r)
		col.Connection(&record.Connection{Handshake: "seen", Packets: 1000, Retransmitted: c.retransmitted, Ended: record.Some(record.Ended{How: record.EndDisconnect})})
		if text := col.Finish(&record.Summary{RDMA: 1}).Verdict.Text; !strings.Contains(text, c.want) || strings.Contains(text, "stalled") != (c.want != "") || strings.Contains(text, "new connection") != strings.Contains(c.want, "new connection") {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}

// TestSilencesOfPoints: what captures at both ends show about the packets that got no answer decides whose silence it is. The client of
// callbacks over TCP is the server of the connections of RDMA.
func TestSilencesOfPoints(t *testing.T) {
	const s = record.Time(1e9)
	const server, client = "10.0.0.2", "10.0.0.1"
	said := func(lost, arrived record.Opt[int64], drops uint64, quiet bool) said {
		j := &facts{
			suspicion: &suspicion{}, s: &record.Summary{First: record.Some(record.Time(0)), CaptureDrops: drops}, end: 60 * s,
			silences: []record.Silence{{Address: server, Peer: client, From: 10 * s, To: record.Some(30 * s), Packets: 7, Lost: lost, Arrived: arrived}},
			o: &Overview{Groups: []Group{
				{Client: record.Some(client), Server: record.Some(server), UpperLayer: "rpcrdma", ClientsKnown: 1},
				{Client: record.Some(server), Server: record.Some(client), UpperLayer: "rpc", ClientsKnown: 1},
			}},
		}
		if quiet {
			j.o.Network = []*record.Network{{To: "server", Lost: 7, Quiet: []record.QuietTime{{From: 9 * s, To: 30 * s, Lost: 7}}}}
		}
		return silent(j)
	}
	n := record.Some[int64]
	for _, c := range []struct {
		name          string
		lost, arrived record.Opt[int64]
		drops         uint64
		quiet         bool
		where         Place
		want          string
	}{
		{"one point", record.Opt[int64]{}, record.Opt[int64]{}, 0, false, Unproven, "; the network lost packets, or the server sent none"},
		{"one point that lacks packets", record.Opt[int64]{}, record.Opt[int64]{}, 2, false, Unproven, "; the network lost packets, or the server sent none, or the capture lacks them"},
		{"all were lost", n(7), n(0), 0, false, InNetwork, ", and all of them were lost between the capture points"},
		{"all were lost while the capture of the server has nothing", n(7), n(0), 0, true, "", ""},
		{"all came", n(0), n(7), 0, false, Unproven, ", and all of them came to the capture point at 10.0.0.2; the server, or what is between it and this point"},
		{"all came, and the capture lacks packets", n(0), n(7), 2, false, Unproven, " (7 came to the capture point at 10.0.0.2, and 0 were lost before); the network or the server, or the capture lacks them"},
		{"some came", n(3), n(4), 0, false, Unproven, " (4 came to the capture point at 10.0.0.2, and 3 were lost before); the network or the server"},
		{"none came, to a point between the hosts", n(0), n(0), 0, false, Unproven, "; the network lost packets, or the server sent none"},
	} {
		want := "no packet from 10.0.0.2 was captured between 10.00s and 30.00s, although 7 packets of 10.0.0.1 needed an answer" + c.want
		if c.want == "" {
			want = ""
		}
		if got := said(c.lost, c.arrived, c.drops, c.quiet); got.text != want || got.where != c.where {
			t.Errorf("%s: %s: %s, want %s: %s", c.name, got.where, got.text, c.where, want)
		}
	}
}

// TestBeginnings: a verdict that begins with no trouble has other words if it proves a fault that delayed little.
func TestBeginnings(t *testing.T) {
	for _, c := range []struct {
		network       record.Network
		retransmitted int64
		status        string
		want          string
	}{
		{record.Network{}, 0, "", "1 RPC, all answered"},
		{record.Network{}, 1, "", "no fault proven: 1 of 8000 packets retransmitted"},
		{record.Network{}, 0, "NFS4ERR_STALE", "no fault proven: 1 of 1 RPC failed"},
		{record.Network{Lost: 30}, 31, "", "no fault proven that delayed much: 30 packets lost between the capture points, 31 of 8000 packets retransmitted"},
		{record.Network{Lost: 1}, 0, "NFS4ERR_STALE", "no fault proven that delayed much: 1 of 1 RPC failed (1 NFS4ERR_STALE); 1 packet lost between the capture points"},
		{record.Network{Duplicated: 206}, 0, "", "no fault proven that delayed much: the network made 206 additional copies of packets"},
		{record.Network{Lost: 3, Duplicated: 1}, 2, "", "no fault proven that delayed much: 3 packets lost between the capture points, 2 of 8000 packets retransmitted; the network made 1 additional copy of a packet"},
	} {
		col := NewCollector()
		c.network.Packets = 8000
		col.Network([]*record.Point{{Name: "client"}, {Name: "server"}}, []*record.Network{&c.network})
		col.Transaction(&record.Transaction{
			Status: record.Complete, Direction: record.Forward, LatencyNS: record.Some(int64(1e5)), Call: &record.Message{Time: 1}, Reply: &record.Message{Time: 1e5},
			NFSStatus: record.SomeIf(c.status, c.status != ""),
		})
		end := record.Some(record.Ended{How: record.EndDisconnect})
		col.Connection(&record.Connection{Handshake: "seen", Ended: end, Packets: 8000, Retransmitted: c.retransmitted})
		if v := col.Finish(&record.Summary{RDMA: 1}).Verdict; v.Where.proven() || !strings.HasPrefix(v.Line, c.want) {
			t.Errorf("%s: %s\nwant %s", v.Where, v.Line, c.want)
		}
	}
}

// TestFailures: the sentence about a violation says which RPCs and connections failed. If the capture lacks packets, the Replies may be
// among them.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		rpcs    RPCs
		nakEnds int64
		lacks   int64
		want    string
	}{
		{RPCs{Complete: 9}, 0, 0, ""},
		{RPCs{NoReply: 1}, 0, 0, "1 RPC without a Reply"},
		{RPCs{NoReply: 1}, 0, 2, ""},
		{RPCs{NoReply: 3, RDMAError: 2}, 1, 0, "2 RPCs answered by RDMA_ERROR, 1 connection ended by a NAK, 3 RPCs without a Reply"},
	} {
		j := &facts{suspicion: &suspicion{nakEnds: c.nakEnds}, o: &Overview{RPCs: c.rpcs, Health: Health{NotCaptured: c.lacks}}, s: &record.Summary{}}
		if got := j.failures(); got != c.want || j.harmed() != (c.want != "") {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
	for n, want := range map[int64]string{1: "1 RPC without a Reply got one when retransmitted on a later connection", 2: "2 RPCs without a Reply got one when retransmitted on a later connection"} {
		if got := answeredAgain(&facts{outcomes: outcomes{repaired: n}}).text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEndsEarly: a file that ends in a packet hides what came later in it, and nothing of the other files.
func TestEndsEarly(t *testing.T) {
	for file, want := range map[record.Opt[string]]string{
		{}:                     "the file ends in the middle of packet 8 (byte 99): what came later is unknown",
		record.Some("b.pcap3"): "the file b.pcap3 ends in the middle of a packet (byte 99): what came later in it is unknown",
	} {
		s := &record.Summary{RDMA: 7, Packets: 7, InputError: record.Some("it is truncated"), EndsInPacket: record.Some(int64(99)), EndsInFile: file}
		if v := NewCollector().Finish(s).Verdict; !strings.Contains(v.Text, want) {
			t.Errorf("%q, want %q", v.Text, want)
		}
	}
}
