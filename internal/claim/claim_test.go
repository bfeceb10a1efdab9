package claim_test

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/claim"
)

// sentences returns the sentences about an RPC.
func sentences(r *record.Transaction) []string {
	r.Cause = claim.Of(r)
	return claim.Lines(r)
}

// TestManyWaits: short waits that together are most of the latency are its cause. Without a Reply, the longest one is
// described in the same way.
func TestManyWaits(t *testing.T) {
	r := &record.Transaction{
		Call: &record.Message{}, Reply: &record.Message{LastTime: 100e6}, LatencyNS: record.Some[int64](100e6),
		Phases: record.Some(record.Phases{WaitNS: 90e6, ToWriteNS: record.Some[int64](8e6), ToReplyNS: record.Some[int64](2e6)}),
	}
	for i := range record.Time(9) {
		r.Waits = append(r.Waits, record.Wait{
			From: i * 10e6, To: i*10e6 + 10e6, NS: 10e6, Reason: record.RetransmitNak, Waiting: record.Server, Event: record.EventReply, Packets: []int64{5, 6},
		})
	}
	longest := "In the longest stall, there was no progress for 10.00 ms, until the server retransmitted the Reply, in packet 6, because the NAK in packet 5 asked for it."
	want := "90.00 ms of 100.00 ms passed in 9 stalls. " + longest
	if got := sentences(r); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	if c := r.Cause.Or(record.Cause{}); c.ID != "stalled-nak" || c.NS != 90e6 || c.Side.Known() {
		t.Errorf("%+v", c)
	}
	r.Status, r.Reply, r.LatencyNS = record.NoReply, nil, record.Opt[int64]{}
	stalls := "It stalled 9 times, for 90.00 ms in total. " + longest
	sent := record.Event{Event: record.EventReply, Packet: 4}
	for _, c := range []struct {
		lost     bool
		timeline []record.Event
		opening  string
	}{
		{false, nil, "It has no Reply. "},
		{true, nil, "Nothing shows that its Reply was received. "},
		{true, []record.Event{sent, {Event: record.EventRetransmit, Of: record.EventReply, Packet: 6}}, "The server sent its Reply, in packet 4, but nothing shows that the client received it. "},
		{true, []record.Event{sent, {Event: record.EventNak, Of: record.EventReply, Packet: 5}}, "The server sent its Reply, in packet 4, but the client rejected it (NAK in packet 5). "},
	} {
		r.ReplyLost, r.Timeline = c.lost, c.timeline
		if got := sentences(r); len(got) != 1 || got[0] != c.opening+stalls {
			t.Errorf("%q, want %q", got, c.opening+stalls)
		}
	}
}

// TestExplainAfterReply: a wait after the Reply is not part of the latency.
func TestExplainAfterReply(t *testing.T) {
	wait := func(from, to record.Time) record.Wait {
		return record.Wait{From: from, To: to, NS: int64(to - from), Reason: record.RetransmitTimeout, Waiting: record.Server, Event: record.EventReply, Packets: []int64{1, 2}}
	}
	for _, c := range []struct {
		waits []record.Wait
		want  string
	}{
		{[]record.Wait{wait(124e6, 149e6)}, ""},
		{[]record.Wait{wait(110e6, 149e6)}, "For 14.00 ms of 24.00 ms there was no progress"},
		{[]record.Wait{wait(101e6, 111e6), wait(124e6, 149e6)}, "For 10.00 ms of 24.00 ms there was no progress"},
	} {
		r := &record.Transaction{Call: &record.Message{Time: 100e6}, Reply: &record.Message{}, LatencyNS: record.Some[int64](24e6), Waits: c.waits}
		got := strings.Join(sentences(r), " ")
		if c.want == "" && strings.Contains(got, "passed") || !strings.Contains(got, c.want) || strings.Contains(got, "stalls in all") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestAtWork: one capture gives no host a time that the network may have taken.
func TestAtWork(t *testing.T) {
	some := record.Some[int64]
	ack := func(after record.Time) record.Event {
		return record.Event{Time: 1e9 + after, Packet: 12, Event: record.EventAck, Of: record.EventCall}
	}
	ack1 := []record.Event{ack(1e6)}
	const unknown = 100e6 // The client may have taken all of the latency.
	for _, c := range []struct {
		phases   record.Phases
		timeline []record.Event
		client   int64 // the most that the client took
		want     string
	}{
		{record.Phases{ToReplyNS: some(100e6)}, []record.Event{ack(2e6), ack(90e6)}, 0, "The server, or the way back, took at least 98.00 ms of 100.00 ms: the Call had arrived after at most 2.00 ms (ACK, packet 12)."},
		{record.Phases{ToReplyNS: some(100e6)}, []record.Event{ack(20e6)}, 0, "The server, or the way back, took at least 80.00 ms of 100.00 ms: the Call had arrived after at most 20.00 ms (ACK, packet 12)."},
		{record.Phases{ToReplyNS: some(100e6)}, []record.Event{ack(21e6)}, 0, "The server or the network took 100.00 ms; the ACK of the Call came after 21.00 ms (packet 12)."},
		{record.Phases{ToReplyNS: some(100e6)}, []record.Event{ack(130e6)}, 0, "The server or the network took 100.00 ms; the ACK of the Call came after 130.00 ms (packet 12)."},
		{record.Phases{ToReplyNS: some(100e6)}, nil, 0, "The server or the network took 100.00 ms; no ACK of the Call was captured."},
		{record.Phases{ToWriteNS: some(60e6), WriteNS: some(30e6), ToReplyNS: some(10e6)}, []record.Event{ack(5e6)}, 0, "The server, or the way back, took at least 65.00 ms of 100.00 ms: the Call had arrived after at most 5.00 ms (ACK, packet 12)."},
		{record.Phases{ToReadNS: some(10e6), ReadNS: some(60e6), ToReplyNS: some(30e6)}, ack1, 60e6, "The client, or the network, took 60.00 ms of 100.00 ms to answer RDMA Reads."},
		{record.Phases{ToReadNS: some(10e6), ReadNS: some(60e6), ToReplyNS: some(30e6)}, ack1, unknown, "No part took most of 100.00 ms: waiting for the first RDMA Read 10.00 ms, in RDMA Reads 60.00 ms, waiting for the Reply 30.00 ms."}, // the end of the Reads is not known
		{record.Phases{ToReadNS: some(10e6), ReadNS: some(10e6), ToReplyNS: some(80e6)}, ack1, 60e6, "The server or the network took 90.00 ms of 100.00 ms; no packet shows when the responses to its RDMA Reads arrived."},
		{record.Phases{ToReadNS: some(70e6), ReadNS: some(10e6), ToReplyNS: some(20e6)}, ack1, 0, "The server, or the way back, took at least 69.00 ms of 100.00 ms: the Call had arrived after at most 1.00 ms (ACK, packet 12)."},
		{record.Phases{ToWriteNS: some(10e6), WriteNS: some(80e6), ToReplyNS: some(10e6)}, nil, 0, "The RDMA Writes to the client's memory took 80.00 ms of 100.00 ms; the capture does not show what limited them."},
		{record.Phases{ToWriteNS: some(45e6), WriteNS: some(50e6), ToReplyNS: some(5e6)}, nil, 0, "No part took most of 100.00 ms: waiting for the first RDMA Write 45.00 ms, in RDMA Writes 50.00 ms, waiting for the Reply 5.00 ms."}, // each is half at most
	} {
		r := &record.Transaction{
			Call: &record.Message{Time: 1e9, Packet: 11, LastPacket: 11}, Reply: &record.Message{}, Direction: record.Forward,
			LatencyNS: some(100e6), Phases: record.Some(c.phases), Timeline: c.timeline, Shares: record.Some(record.Shares{ClientNS: record.Bounds{Max: c.client}}),
		}
		if got := strings.Join(sentences(r), " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.phases, got, c.want)
		}
		r.LatencyMinNS = some(1e6) // the latency may be another
		if got := strings.Join(sentences(r), " "); !strings.HasPrefix(got, "The Reply was accepted after 1.00 ms to 100.00 ms; the capture does not prove when") || r.Cause.Or(record.Cause{}).ID != "range" {
			t.Errorf("an uncertain latency: %q", got)
		}
	}
	// The client sends a Call of several packets in 40 ms.
	r := &record.Transaction{
		Call: &record.Message{Time: 1e9, LastTime: 1e9 + 40e6, Packet: 11, LastPacket: 14}, Reply: &record.Message{}, Direction: record.Forward,
		LatencyNS: some(100e6), Phases: record.Some(record.Phases{ToReplyNS: some(100e6)}), Retransmitted: 1,
	}
	want := "The server or the network took 60.00 ms of 100.00 ms; no ACK of the Call was captured. 1 packet of this RPC was retransmitted."
	if got := strings.Join(sentences(r), " "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Direction = record.Backward
	if got := strings.Join(sentences(r), " "); got != strings.Replace(want, "server", "client", 1) {
		t.Errorf("a Call of the server: %q", got)
	}
	if id := r.Cause.Or(record.Cause{}).ID; id != "responder-or-network" || claim.Find(id) == nil || claim.Find(id).ID != "server-or-network" {
		t.Errorf("a Call of the server has the id %s", id)
	}
	r.Shares = record.Some(record.Shares{Point: record.AtBothEnds, ServerNS: record.Bounds{Min: 20e6, Max: 20e6}, ClientNS: record.Bounds{Min: 80e6, Max: 80e6}})
	want = "The server took 80.00 ms of 100.00 ms to answer RDMA Reads (seen at both ends); 1 packet of this RPC was retransmitted."
	if got := strings.Join(sentences(r), " "); got != want {
		t.Errorf("both ends: %q, want %q", got, want)
	}
	if id := r.Cause.Or(record.Cause{}).ID; id != "requester-proven" {
		t.Errorf("RDMA Reads of the server have the id %s", id)
	}
}
