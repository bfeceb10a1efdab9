package rdma_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// kernelLatencies returns what the client's kernel measured of each RPC, by XID.
func kernelLatencies(t *testing.T, name string) map[string]time.Duration {
	t.Helper()
	text, err := os.ReadFile(captures + name)
	if err != nil {
		t.Fatal(err)
	}
	var truth struct {
		Transactions []struct {
			XID       string
			Direction string
			RTT       *int64 `json:"rtt_us"`
		}
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	latencies := map[string]time.Duration{}
	for _, x := range truth.Transactions {
		if x.RTT != nil && x.Direction == "forward" {
			latencies[x.XID] = time.Duration(*x.RTT) * time.Microsecond
		}
	}
	return latencies
}

// TestLatencies compares latencies with what the client's kernel measured, at the
// client's end of lossy wires. A Reply ends its RPC with the copy that the client
// accepted, however often it was sent before.
func TestLatencies(t *testing.T) {
	for name, least := range map[string]int{"ends-stormall42-client": 218, "ends-twoclock42-client": 121} {
		t.Run(name, func(t *testing.T) {
			kernel := kernelLatencies(t, name+".truth.json")
			transactions, _ := look.Records(t, captures+name+".pcap.zst")
			compared := 0
			for _, r := range transactions {
				want, known := kernel[r.XID.String()]
				if !known || r.Status != record.Complete {
					continue
				}
				compared++
				got := time.Duration(r.LatencyNS.Or(0))
				if off := (got - want).Abs(); off > max(want*15/100, 130*time.Millisecond) {
					t.Errorf("%v took %v, the kernel measured %v", r.XID, got, want)
				}
			}
			if compared < least {
				t.Errorf("%d latencies were compared, want %d", compared, least)
			}
		})
	}
}

// TestLostReply: the Reply in packet 571 was dropped by the client, which missed
// what came before it. The RPC ends with the copy that the client accepted.
func TestLostReply(t *testing.T) {
	transactions, _ := look.Records(t, captures+"ends-stormall42-client.pcap.zst")
	for _, r := range transactions {
		if r.XID != 0x3e2c34fc {
			continue
		}
		if ms := r.LatencyNS.Or(0) / 1e6; ms < 700 || ms > 760 {
			t.Errorf("it took %d ms, the kernel measured 728", ms)
		}
		first, known := r.Reply.FirstSent.Get()
		if !known || first >= r.Reply.Time || r.Reply.Delivery != record.DeliveryCertain || r.Reply.Delivered.Or(0) != r.Reply.LastTime {
			t.Errorf("first sent at %v, accepted at %v, %s", first, r.Reply.Delivered, r.Reply.Delivery)
		}
		return
	}
	t.Error("the RPC is not there")
}

// TestAcceptedCopies compares, at both ends of a lossy wire, which copy of a
// message was accepted with the capture of the other end: the first copy that
// arrived there undamaged and in order.
func TestAcceptedCopies(t *testing.T) {
	text, err := os.ReadFile(captures + "ends-stormall42.join.json")
	if err != nil {
		t.Fatal(err)
	}
	type frame struct {
		From string
		Sent int64
	}
	var join struct{ Lost, Corrupted []frame }
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	for key, to := range map[string]*[]frame{"lost": &join.Lost, "corrupted_between": &join.Corrupted} {
		if err := json.Unmarshal(raw[key], to); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []string{"client", "server"} {
		t.Run(end, func(t *testing.T) {
			dropped := map[int64]bool{} // frames that this end sent and the other did not get
			for _, f := range append(join.Lost, join.Corrupted...) {
				if f.From == end {
					dropped[f.Sent] = true
				}
			}
			transactions, _ := look.Records(t, captures+"ends-stormall42-"+end+".pcap.zst")
			certain := 0
			for _, r := range transactions {
				sent := r.Call
				if end == "server" {
					sent = r.Reply
				}
				if sent == nil || sent.Delivery != record.DeliveryCertain || sent.Packet != sent.LastPacket {
					continue
				}
				certain++
				if end == "server" && dropped[sent.LastPacket] {
					t.Errorf("%v: the Reply in packet %d never arrived, and is said to be accepted", r.XID, sent.LastPacket)
				}
			}
			if certain < 150 {
				t.Errorf("%d messages are certain", certain)
			}
		})
	}
}

// TestBursts: packets that are sent again for one reason are one burst, whether requests or responses repeat; and Calls of which several
// copies were captured are certain if a receiver accepts only one of them.
func TestBursts(t *testing.T) {
	for name, want := range map[string]string{
		"rocev2-storm41.pcap.zst": "bursts 125, certain Calls 321 of 335",
		"lab-iwarpdata3.pcap.zst": "bursts 0 0 0 0 0 15 0 0 0 0 0 4, certain Calls 93 of 93",
	} {
		transactions, connections := look.Records(t, captures+name)
		got, certain, calls := "bursts", 0, 0
		for _, c := range connections {
			got += fmt.Sprint(" ", c.Path.Bursts)
		}
		for _, r := range transactions {
			if r.Call != nil {
				calls++
				if r.Call.Delivery == record.DeliveryCertain {
					certain++
				}
			}
		}
		if got += fmt.Sprintf(", certain Calls %d of %d", certain, calls); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestTimeoutPackets: a retransmission timeout is reported for each burst of
// retransmissions that follows the idle time of a timer, once, and for no other.
func TestTimeoutPackets(t *testing.T) {
	for name, want := range map[string]string{
		"ends-stormall42-client.pcap.zst": "118 170 429 570 1163 1268",
		"rocev2-loss42.pcap.zst":          "7291",
		"rocev2-storm41.pcap.zst":         "2888 3202 3208",
		"rocev2-nfs41.pcap.zst":           "",
		"lab-iwarploss41.pcap.zst":        "", // its TCP probes for lost tails, long before a timer expires
	} {
		t.Run(name, func(t *testing.T) {
			frames, _ := testkit.Frames(t, captures+name)
			var at []string
			d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
				if f.Rule == "retransmission-timeout" {
					packet, _ := json.Marshal(f.Packet)
					at = append(at, string(packet))
				}
				return nil
			}}, dissect.Options{})
			for i := range frames {
				d.Frame(&frames[i])
			}
			d.Finish()
			if got := strings.Join(at, " "); got != want {
				t.Errorf("timeouts in packets %s, want %s", got, want)
			}
		})
	}
}

// TestRefusedWrites: nothing of an RDMA Write whose first packet is refused for
// good has moved, not even what its sender had sent before it knew.
func TestRefusedWrites(t *testing.T) {
	transactions, _ := look.Records(t, captures+"rocev2-chimera-overrun42.pcap.zst")
	refused := 0
	for _, r := range transactions {
		for _, e := range r.Timeline {
			if e.Event == record.EventNak && e.Of == record.EventWrite {
				refused++
				for _, c := range r.WriteChunks {
					for _, s := range c.Segments {
						if s.MovedBytes != 0 {
							t.Errorf("%v: %d bytes moved", r.XID, s.MovedBytes)
						}
					}
				}
			}
		}
	}
	if refused != 11 {
		t.Errorf("%d RDMA Writes were refused", refused)
	}
}

// TestReplyLost: a Reply that nothing acknowledged was lost if its Call is retransmitted
// on the next connection, also if the capture has no acknowledgement of an earlier Reply. A missing
// acknowledgement by itself proves nothing.
func TestReplyLost(t *testing.T) {
	for _, again := range []bool{true, false} {
		for _, first := range []bool{true, false} {
			look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
				c.Connect()
				if !first {
					c.Client.Call(synth.Call{XID: 4})
					c.Server.Ack()
					c.Server.Reply(synth.Reply{XID: 4})
					c.Client.Ack()
				}
				c.Client.Call(synth.Call{XID: 5})
				c.Server.Ack()
				c.Server.Reply(synth.Reply{XID: 5})
				if c.IWARP() { // an orderly end acknowledges the Reply
					c.Client.RST()
				} else {
					c.Disconnect(c.Client)
				}
				next := c.Another(synth.Options{Client: synth.End{Addr: c.Client.Addr}, Server: synth.End{Addr: c.Server.Addr}})
				next.Connect()
				if again {
					next.RPC(synth.Call{XID: 5}, synth.NullReply())
				}
				next.RPC(synth.Call{XID: 6}, synth.NullReply())
				w.Advance(20 * time.Second)
				next.RPC(synth.Call{XID: 7}, synth.NullReply())
				complete := 0
				for _, r := range look.At(w).Transactions {
					if r.XID != 5 {
						continue
					}
					if r.Status == record.Complete {
						complete++
					}
					if r.Connection == 0 && r.ReplyLost != again {
						t.Errorf("retransmitted: %t, first: %t, reply_lost: %t, %s", again, first, r.ReplyLost, r.Status)
					}
				}
				if complete != 1 {
					t.Errorf("retransmitted: %t, first: %t; %d transactions are complete", again, first, complete)
				}
			})
		}
	}
}

// TestClockSteps: a clock that is set back does not change what comes after the step.
func TestClockSteps(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"rocev2-nfs41.pcap.zst")
	latencies := func(step int64) map[record.Hex32]int64 {
		found := map[record.Hex32]int64{}
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			found[r.XID] = r.LatencyNS.Or(-1)
			return nil
		}}, dissect.Options{})
		for i := range frames {
			f := frames[i]
			if i > len(frames)/2 {
				f.Time += step
			}
			d.Frame(&f)
		}
		d.Finish()
		return found
	}
	want := latencies(0)
	for _, step := range []int64{-1e9, -3600e9} {
		changed := 0
		for xid, ns := range latencies(step) {
			if ns != want[xid] {
				changed++
			}
			if ns < -1 {
				t.Errorf("%v took %d ns", xid, ns)
			}
		}
		if changed > 2 { // the RPCs during which the clock was set back
			t.Errorf("a step of %d s changes %d latencies", step/1e9, changed)
		}
	}
}

// TestLateReplies: while the server retransmits, the Reply may still be on its way. The latency is
// that of the client's kernel (2743 and 6278 ms) although the acknowledgement came seconds later.
func TestLateReplies(t *testing.T) {
	for name, want := range map[string]struct {
		xid     record.Hex32
		latency int64 // in milliseconds
	}{
		"late-reply-outage": {0xd953f8a3, 2734},
		"late-reply-loss":   {0x516745c0, 6277},
	} {
		transactions, _ := look.Records(t, "../../testdata/"+name+".pcap.zst")
		i := slices.IndexFunc(transactions, func(r *record.Transaction) bool { return r.XID == want.xid })
		if i < 0 {
			t.Fatalf("%s: no transaction %v", name, want.xid)
		}
		if got := transactions[i].LatencyNS.Or(0) / 1e6; got != want.latency {
			t.Errorf("%s: %v took %d ms, want %d", name, want.xid, got, want.latency)
		}
	}
}

// TestUnacceptedCopies: the timeline contains the copies that their receiver did not accept: a
// complete RDMA Read response that was requested again, a damaged first copy of a Call or a Reply,
// and a damaged NAK.
func TestUnacceptedCopies(t *testing.T) {
	event := func(packet int64, kind, of record.EventKind, from record.Role) record.Event {
		return record.Event{Packet: packet, Event: kind, Of: of, From: from}
	}
	for _, tt := range []struct {
		capture string
		xid     record.Hex32
		want    record.Event
		bytes   int64 // of a Read response that were requested again
	}{
		{"ends-stormall42-client", 0xb22599c4, event(169, record.EventReadAgain, "", record.Requester), 8192},
		{"ends-stormall42-client", 0xc52599c4, event(568, record.EventReadAgain, "", record.Requester), 15 << 10},
		{"rocev2-storm41", 0x0651d79c, event(2876, record.EventDamaged, record.EventCall, record.Requester), 0},
		{"rocev2-storm41", 0x0651d79c, event(2889, record.EventRetransmit, record.EventCall, record.Requester), 0},
		{"rocev2-storm41", 0x0751d79c, event(2880, record.EventDamaged, record.EventNak, record.Responder), 0},
	} {
		t.Run(fmt.Sprintf("%v in packet %d", tt.xid, tt.want.Packet), func(t *testing.T) {
			transactions, _ := look.Records(t, captures+tt.capture+".pcap.zst")
			for _, r := range transactions {
				if r.XID != tt.xid {
					continue
				}
				found := slices.IndexFunc(r.Timeline, func(e record.Event) bool { return e.Packet == tt.want.Packet && e.Event == tt.want.Event })
				if found < 0 {
					t.Fatalf("the timeline lacks the %s of packet %d: %s", tt.want.Event, tt.want.Packet, events(r.Timeline))
				}
				e := r.Timeline[found]
				if e.Of != tt.want.Of || e.From != tt.want.From || e.Event == record.EventReadAgain && e.Bytes.Or(-1) != tt.bytes {
					t.Errorf("the event %s of packet %d is about the %s, from the %s, %d bytes; want the %s, the %s, %d bytes", e.Event, e.Packet, e.Of, e.From, e.Bytes.Or(-1), tt.want.Of, tt.want.From, tt.bytes)
				}
				return
			}
			t.Error("the RPC is not there")
		})
	}
}

// TestDamagedFirstCall: the latency of an RPC counts from the first copy of its Call, even if that
// copy was damaged, as in the client's kernel.
func TestDamagedFirstCall(t *testing.T) {
	kernel := kernelLatencies(t, "rocev2-storm41.truth.json")
	transactions, _ := look.Records(t, captures+"rocev2-storm41.pcap.zst")
	for _, r := range transactions {
		if r.XID != 0x0651d79c {
			continue
		}
		got, want := time.Duration(r.LatencyNS.Or(0)), kernel[r.XID.String()]
		if (got - want).Abs() > 20*time.Millisecond {
			t.Errorf("it took %v, the kernel measured %v", got, want)
		}
		if r.Call.Packet != 2876 || r.Call.Delivered.Or(0) <= r.Call.Time || r.Call.Delivery != record.DeliveryCertain {
			t.Errorf("the Call is in packet %d, delivered %v after it (%s)", r.Call.Packet, r.Call.Delivered.Or(0)-r.Call.Time, r.Call.Delivery)
		}
		return
	}
	t.Error("the RPC is not there")
}

// TestMissingFirstCopy: if the first copy of a Reply is missing, and a retransmission of it came after the client had
// acknowledged the Reply, the time until the retransmission is only an upper bound of the latency. With the first copy,
// a retransmission tells the two copies apart.
func TestMissingFirstCopy(t *testing.T) {
	const reply, after = 763, 764 // packets: the Reply, and its ACK
	const late = 45_000_000       // nanoseconds from the Reply to the retransmission
	all, _ := testkit.Frames(t, captures+"rocev2-nfs41.pcap.zst")
	for _, c := range []struct {
		name                string
		missing, again      bool
		latency, least, min int64 // least and min are -1 if they are unknown
	}{
		{"healthy", false, false, 1_469_000, -1, -1},
		{"retransmitted after the ACK", false, true, 1_469_000, -1, -1},
		{"without the first copy", true, true, 46_469_000, 0, -1},
	} {
		var frames []capture.Frame
		for i := range all {
			number := i + 1
			if number != reply || !c.missing {
				frames = append(frames, all[i])
			}
			if number == after && c.again {
				again := all[reply-1]
				again.Time += late
				frames = append(frames, again)
			}
		}
		found := false
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			if r.XID != 0x74c9dbf7 {
				return nil
			}
			found = true
			if r.LatencyNS.Or(-1) != c.latency || r.LatencyMinNS.Or(-1) != c.least || r.LatencyMinPacket.Or(-1) != c.min {
				t.Errorf("%s: latency %d, at least %d, until packet %d", c.name, r.LatencyNS.Or(-1), r.LatencyMinNS.Or(-1), r.LatencyMinPacket.Or(-1))
			}
			return nil
		}}, dissect.Options{})
		for i := range frames {
			frames[i].Number = int64(i + 1)
			d.Frame(&frames[i])
		}
		if _, err := d.Finish(); err != nil || !found {
			t.Errorf("%s: there is the RPC: %t, want true; error %v", c.name, found, err)
		}
	}
}

// TestReplyLostInCaptures: reply_lost says what check says, in all captures, whole and harmed: a Reply that cannot have been received is
// lost, and a lost Reply makes no RPC complete.
func TestReplyLostInCaptures(t *testing.T) {
	var paths []string
	for _, dir := range []string{"captures", "ends", "other"} {
		list, err := filepath.Glob("../../../testdata/" + dir + "/*.zst")
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, list...)
	}
	refused, lost := 0, 0
	for _, path := range testkit.Short(t, paths) {
		if strings.Contains(path, "derived-cut") { // It ends in the middle of a packet.
			continue
		}
		frames, _ := testkit.Frames(t, path)
		for _, harm := range []string{"", "drop", "late", "snaplen"} {
			list := frames
			if harm != "" {
				list = testkit.Apply(7, frames, harm)
			}
			d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
				if slices.Contains(r.Findings, rule.ReplyNotDelivered.ID) {
					if refused++; !r.ReplyLost {
						t.Errorf("%s, %s: XID %v: the Reply cannot have been received, and reply_lost is false (%s)", path, harm, r.XID, r.Status)
					}
				}
				if r.ReplyLost {
					if lost++; r.Status != record.NoReply && (r.Status != record.NoCall || r.Call != nil) || r.LatencyNS.Known() {
						t.Errorf("%s, %s: XID %v: a lost Reply, and %s after %v", path, harm, r.XID, r.Status, r.LatencyNS)
					}
				}
				return nil
			}}, dissect.Options{})
			for i := range list {
				d.Frame(&list[i])
			}
			d.Finish()
		}
	}
	if refused < 30 || lost < refused {
		t.Errorf("%d Replies were refused, and %d lost", refused, lost)
	}
}

// TestRepeatedAfterClose: a Reply that nothing acknowledged was not taken if its Call comes again on another connection, even
// if the client opens that a while after both sides have closed the first one. One that was acknowledged was taken.
func TestRepeatedAfterClose(t *testing.T) {
	for _, acked := range []bool{false, true} {
		look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
			call := synth.Call{XID: 0x77, Program: 100003, Version: 3, Procedure: 1}
			reply := synth.Reply{XID: 0x77}
			c.Connect()
			c.RPC(synth.Null(), synth.Reply{Credits: 1})
			c.Client.Ack()
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Reply(reply)
			if acked {
				c.Client.Ack()
			}
			w.Advance(10 * time.Millisecond)
			if c.IWARP() {
				c.Client.RST()
			} else {
				c.Disconnect(c.Client)
			}
			w.Advance(400 * time.Millisecond)
			next := c.Another(synth.Options{ManualAck: true})
			next.Connect()
			next.RPC(synth.Null(), synth.Reply{Credits: 1})
			w.Advance(100 * time.Millisecond)
			next.Client.Call(call)
			next.Server.Ack()
			next.Server.Reply(reply)
			next.Client.Ack()
			got := map[int]record.Transaction{}
			d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
				if r.XID == 0x77 {
					got[r.Connection] = *r.Clone()
				}
				return nil
			}}, dissect.Options{})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			d.Finish()
			first, again := got[0], got[1]
			status, of := record.NoReply, first.ID
			if acked {
				status, of = record.Complete, 0
			}
			if first.Status != status || first.LatencyNS.Known() != acked || again.Status != record.Complete || again.RetransmitOf.Or(0) != of {
				t.Errorf("acknowledged: %t: the first is %s with a latency (%t), the second %s of %d; want %s of %d", acked, first.Status, first.LatencyNS.Known(), again.Status, again.RetransmitOf.Or(0), status, of)
			}
		})
	}
}

// TestIdentification: the IP identification distinguishes a copy that the network made from a retransmission, unless a sender gives
// its packets none, or all the same one. The latencies are those of the kernels, and of the same packets with their own identifications.
func TestIdentification(t *testing.T) {
	for _, c := range []struct {
		name         string
		xid          record.Hex32
		latency, min int64
		delivery     record.Delivery
		marked       []string // packets with a mark
	}{
		{"rocev2-sameid", 0x426a73d5, 780589000, 217363000, record.DeliveryUncertain, []string{"13 retransmitted"}},
		{"rocev2-noid-nak", 0x492c34fc, 19824000, -1, record.DeliveryCertain, nil},
		{"rocev2-netdup", 0xea8ba522, 7207000, -1, record.DeliveryCertain, []string{"5 duplicated"}},
	} {
		var marked []string
		found := false
		d := dissect.New(dissect.Handler{
			Transaction: func(r *record.Transaction) error {
				if r.XID == c.xid {
					found = true
					if r.LatencyNS.Or(-1) != c.latency || r.LatencyMinNS.Or(-1) != c.min || r.Reply.Delivery != c.delivery {
						t.Errorf("%s: %v to %v ns, %v; want %d to %d, %v", c.name, r.LatencyMinNS, r.LatencyNS, r.Reply.Delivery, c.min, c.latency, c.delivery)
					}
				}
				return nil
			},
			Packet: func(r *record.Packet) error {
				for m := range r.Marks.Names() {
					marked = append(marked, fmt.Sprint(r.Number, " ", m))
				}
				return nil
			},
		}, dissect.Options{})
		if _, err := d.Run(t.Context(), testkit.Open(t, "../../../testdata/other/"+c.name+".pcap.zst")); err != nil || !found {
			t.Errorf("%s: there is the RPC: %t; %v", c.name, found, err)
		}
		if c.marked != nil && !slices.Equal(marked, c.marked) {
			t.Errorf("%s: packets %q, want %q", c.name, marked, c.marked)
		}
	}
}
