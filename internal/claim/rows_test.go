package claim_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/claim"
)

var update = flag.Bool("update", false, "write docs/causes.md")

// TestPage: the page of the sentences is that of the table.
func TestPage(t *testing.T) {
	const page = "../../docs/causes.md"
	if *update {
		if err := os.WriteFile(page, []byte(claim.Page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(page); err != nil || string(b) != claim.Page() {
		t.Errorf("%s differs from the table (go test ./internal/claim -update writes it anew): %v", page, err)
	}
}

// example is an RPC that took 100 ms, until the Reply.
func example(change func(r *record.Transaction)) *record.Transaction {
	some := record.Some[int64]
	r := &record.Transaction{
		Status: record.Complete, Direction: record.Forward, LatencyNS: some(100e6), Phases: record.Some(record.Phases{ToReplyNS: some(100e6)}),
		Call: &record.Message{Time: 1e9, LastTime: 1e9, Packet: 11, LastPacket: 11, Delivery: record.DeliveryCertain}, Reply: &record.Message{Packet: 20, LastPacket: 20},
		Shares: record.Some(record.Shares{ServerNS: record.Bounds{Max: 100e6}, NetworkNS: record.Bounds{Max: 100e6}, Point: record.PlaceUnknown}),
	}
	change(r)
	return r
}

// share changes the shares of an RPC.
func share(r *record.Transaction, change func(s *record.Shares)) {
	s := r.Shares.Or(record.Shares{})
	change(&s)
	r.Shares = record.Some(s)
}

// stall adds a wait of 60 ms with a reason.
func stall(r *record.Transaction, reason record.WaitReason) {
	r.Waits = append(r.Waits, record.Wait{From: 1e9 + 10e6, To: 1e9 + 70e6, NS: 60e6, Reason: reason, Waiting: record.Server, Event: record.EventReply, Packets: []int64{12, 20}})
	r.Phases = record.Some(record.Phases{ToReplyNS: record.Some[int64](40e6), WaitNS: 60e6})
}

// phases sets the phases of an RPC, in milliseconds and in their order. The client may have taken the time in RDMA Reads.
func phases(r *record.Transaction, lengths ...int64) {
	opt := func(ms int64) record.Opt[int64] { return record.SomeIf(ms*1e6, ms > 0) }
	r.Phases = record.Some(record.Phases{ToReadNS: opt(lengths[0]), ReadNS: opt(lengths[1]), ToWriteNS: opt(lengths[2]), WriteNS: opt(lengths[3]), ToReplyNS: opt(lengths[4])})
	share(r, func(s *record.Shares) { s.ClientNS.Max = lengths[1] * 1e6 })
}

// at moves the capture to a place, as its interface says, at which bounds of a side are exact.
func at(r *record.Transaction, place record.Place, ns int64) { atBy(r, place, ns, "interface") }

// atBy moves the capture as at does; how says from where the place is known.
func atBy(r *record.Transaction, place record.Place, ns int64, how string) {
	share(r, func(s *record.Shares) {
		exact := record.Bounds{Min: ns, Max: ns}
		if s.Point = place; place == record.AtClient {
			s.ClientNS = exact
		} else {
			s.ServerNS = exact
		}
		s.Proofs = append(s.Proofs, record.Proof{Proof: record.ProofPosition, How: how})
	})
}

// TestRows: each sentence has an RPC for which it is said, and a twin for which another one is said. A sentence whose side is
// not known does not have one host as its only subject.
func TestRows(t *testing.T) {
	ack := func(r *record.Transaction, after record.Time) {
		r.Timeline = append(r.Timeline, record.Event{Time: 1e9 + after, Packet: 12, Event: record.EventAck, Of: record.EventCall, From: record.Responder})
	}
	reads := func(r *record.Transaction) { phases(r, 10, 80, 0, 0, 10) }
	stalled := func(reason record.WaitReason) func(r *record.Transaction) {
		return func(r *record.Transaction) { stall(r, reason) }
	}
	after := func(reason record.WaitReason) func(r *record.Transaction) { // the Reply
		return func(r *record.Transaction) {
			r.Waits = []record.Wait{{From: 1e9 + 100e6, To: 1e9 + 160e6, NS: 60e6, Reason: reason, Waiting: record.Server, Event: record.EventReply, Packets: []int64{12, 20}}}
		}
	}
	const timer, unproven = "stalled-timer", "server-or-network"
	for id, c := range map[string]struct {
		speaks, twin func(r *record.Transaction)
		instead      string // sentence of the twin
	}{
		"range": {func(r *record.Transaction) {
			r.LatencyMinNS, r.LatencyMinPacket = record.Some[int64](2e6), record.Some[int64](18)
		}, func(*record.Transaction) {}, unproven},
		"unanswered": {func(r *record.Transaction) {
			stall(r, record.RetransmitTimeout)
			r.Status, r.LatencyNS = record.NoReply, record.Opt[int64]{}
		}, func(r *record.Transaction) { r.Status, r.LatencyNS = record.NoReply, record.Opt[int64]{} }, ""},
		"busy":              {stalled(record.HeadOfLine), after(record.HeadOfLine), unproven},
		"receiver":          {stalled(record.RNRNak), after(record.RNRNak), unproven},
		timer:               {stalled(record.RetransmitTimeout), func(r *record.Transaction) { stall(r, record.RetransmitTimeout); at(r, record.AtServer, 90e6) }, "server-proven"},
		"stalled-nak":       {stalled(record.RetransmitNak), after(record.RetransmitNak), unproven},
		"stalled-gap":       {stalled(record.RetransmitGap), after(record.RetransmitGap), unproven},
		"stalled-unknown":   {stalled(record.RetransmitUnknown), after(record.RetransmitUnknown), unproven},
		"stalled-reconnect": {stalled(record.NewConnection), after(record.NewConnection), unproven},
		"server-or-pause": {func(r *record.Transaction) {
			at(r, record.AtServer, 90e6)
			r.Meanwhile = record.Some(record.Meanwhile{Pauses: 12})
		}, func(r *record.Transaction) { at(r, record.AtServer, 90e6) }, "server-proven"},
		"server-proven": {func(r *record.Transaction) { at(r, record.AtServer, 90e6) }, func(r *record.Transaction) { at(r, record.AtServer, 40e6) }, unproven},
		"client-proven": {func(r *record.Transaction) { reads(r); at(r, record.AtClient, 70e6) }, reads, "client-or-network"},
		"network-proven": {func(r *record.Transaction) {
			share(r, func(s *record.Shares) {
				s.Point, s.NetworkNS, s.ToClientNS = record.AtBothEnds, record.Bounds{Min: 80e6, Max: 80e6}, record.Bounds{Min: 70e6, Max: 70e6}
			})
		}, func(r *record.Transaction) { ack(r, 90e6) }, unproven},
		"client-or-network":  {reads, func(r *record.Transaction) { phases(r, 40, 20, 0, 0, 40) }, unproven},
		"transfer":           {func(r *record.Transaction) { phases(r, 0, 0, 10, 80, 10) }, func(r *record.Transaction) { phases(r, 0, 0, 60, 30, 10) }, unproven},
		"server-or-way-back": {func(r *record.Transaction) { ack(r, 2e6) }, func(r *record.Transaction) { ack(r, 2e6); at(r, record.AtServer, 90e6) }, "server-proven"},
		unproven:             {func(*record.Transaction) {}, func(r *record.Transaction) { ack(r, 2e6) }, "server-or-way-back"},
		"mixed":              {func(r *record.Transaction) { phases(r, 0, 0, 45, 50, 5) }, func(*record.Transaction) {}, unproven},
	} {
		said := claim.Of(example(c.speaks)).Or(record.Cause{})
		if said.ID != id {
			t.Errorf("%s: %q is said: %s", id, said.ID, said.Text)
		}
		if twin := claim.Of(example(c.twin)).Or(record.Cause{}); twin.ID != c.instead {
			t.Errorf("the twin of %s: %q is said, want %q: %s", id, twin.ID, c.instead, twin.Text)
		}
		for _, host := range []string{"The server took", "The client took"} {
			if strings.HasPrefix(said.Text, host) && !said.Side.Known() {
				t.Errorf("%s: %q has one host as its subject, and its side is not known", id, said.Text)
			}
		}
	}
	for _, s := range claim.All {
		if s.Like == "" || s.Proves == "" || s.Brief == "" {
			t.Errorf("%s lacks an example, a condition or its words for lists", s.ID)
		}
	}
}

// TestSides: stalls name the network only if the capture proves a loss, and a Call that a timer retransmits proves none; a host
// without receive buffers is named if that took half of the latency; and no host is named while a link was paused.
func TestSides(t *testing.T) {
	lost := func(r *record.Transaction) {
		share(r, func(s *record.Shares) { s.Proofs = []record.Proof{{Proof: record.ProofRetransmit}} })
	}
	for name, c := range map[string]struct {
		change func(r *record.Transaction)
		want   record.Opt[record.Side]
		text   string
	}{
		"a timer":           {func(r *record.Transaction) { stall(r, record.RetransmitTimeout) }, record.Opt[record.Side]{}, "For 60.00 ms of 100.00 ms there was no progress"},
		"a timer, and loss": {func(r *record.Transaction) { stall(r, record.RetransmitTimeout); lost(r) }, record.Some(record.SideNetwork), "until then. A packet was lost, damaged or delayed on the way: in the network, or in the adapter of a host."},
		"a gap, and loss":   {func(r *record.Transaction) { stall(r, record.RetransmitGap); lost(r) }, record.Some(record.SideNetwork), "accepted. A packet was lost, damaged or delayed on the way: in the network, or in the adapter of a host."},
		"a gap":             {func(r *record.Transaction) { stall(r, record.RetransmitGap) }, record.Opt[record.Side]{}, "had not been accepted."},
		"no buffer":         {func(r *record.Transaction) { stall(r, record.RNRNak) }, record.Some(record.SideClient), "the client had no receive buffer"},
		"a pause": {func(r *record.Transaction) {
			at(r, record.AtServer, 90e6)
			r.Meanwhile = record.Some(record.Meanwhile{Pauses: 420})
		}, record.Opt[record.Side]{}, "The server, or a paused link, took 90.00 ms of 100.00 ms. 420 frames paused a link meanwhile (PFC)."},
		"marks": {func(r *record.Transaction) {
			r.Meanwhile = record.Some(record.Meanwhile{CEToServer: 512, CNPFromServer: 128})
		}, record.Opt[record.Side]{}, "512 packets to the server were marked (CE), and the server sent 128 CNPs: congestion on the way to the server."},
		"Reads of others": {func(r *record.Transaction) {
			phases(r, 10, 80, 0, 0, 10)
			r.BehindReads = record.Some(record.BehindReads{From: 1e9 + 10e6, NS: 70e6, Transaction: 3, XID: 8})
		}, record.Opt[record.Side]{}, "The client, or the network, took 80.00 ms of 100.00 ms to answer RDMA Reads. For 70.00 ms, its RDMA Reads stood behind those of other RPCs: XID 0x00000008."},
		"round trips": {func(r *record.Transaction) {
			r.Meanwhile = record.Some(record.Meanwhile{RoundTrips: record.Some(record.RecentTrips{Count: 21, MinNS: 844_000, MaxNS: 53_720_000, LastBeforeEndNS: 42_858_000})})
		}, record.Opt[record.Side]{}, "From a second before the Call until the Reply, 21 round trips took 844.0 us to 53.72 ms, none in the last 42.86 ms."},
		"a later Call": {func(r *record.Transaction) {
			share(r, func(s *record.Shares) {
				s.ServerNS.Min = 60e6
				s.Proofs = []record.Proof{{Proof: record.ProofLaterCall, XID: record.Some[record.Hex32](7), NS: record.Some[int64](70e6)}}
			})
		}, record.Some(record.SideServer), "The server took at least 60.00 ms of 100.00 ms (it had the Call of XID 0x00000007, sent 70.00 ms later, before it answered this one)."},
	} {
		got := claim.Of(example(c.change)).Or(record.Cause{})
		if got.Side != c.want || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: side %v, want %v; %q, want %q", name, got.Side, c.want, got.Text, c.text)
		}
	}
}

// TestPositionSaid: a sentence adds "as --at says" if nothing else shows where the capture was taken.
func TestPositionSaid(t *testing.T) {
	reads := func(r *record.Transaction) { phases(r, 10, 80, 0, 0, 10) }
	for _, c := range []struct {
		place record.Place
		how   string
		want  string
	}{
		{record.AtServer, "option", "The server took 90.00 ms of 100.00 ms (captured at the server, as --at says)."},
		{record.AtServer, "interface", "The server took 90.00 ms of 100.00 ms (captured at the server)."},
		{record.AtClient, "option", "The client took 90.00 ms of 100.00 ms to answer RDMA Reads (captured at the client, as --at says)."},
		{record.AtClient, "interface", "The client took 90.00 ms of 100.00 ms to answer RDMA Reads (captured at the client)."},
	} {
		r := example(func(r *record.Transaction) { reads(r); atBy(r, c.place, 90e6, c.how) })
		if got := claim.Of(r).Or(record.Cause{}).Text; got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.place, c.how, got, c.want)
		}
		r.Retransmitted = 2
		if got := claim.Of(r).Or(record.Cause{}).Text; strings.Contains(got, "as --at says") != (c.how == "option") {
			t.Errorf("%s, %s, with retransmissions: %q", c.place, c.how, got)
		}
	}
}
