package transaction_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestRepeatsBelong: every retransmission is counted once, on the transaction that it belongs to
// or on none, and the sum is the number that the connections count.
func TestRepeatsBelong(t *testing.T) {
	for name, want := range map[string]int64{
		"rocev2-loss42.pcap.zst": 6038, "lab-loss3.pcap.zst": 12567, "rocev2-storm41.pcap.zst": 2065, "lab-iwarploss41.pcap.zst": 19,
		"lab-retries42.pcap.zst": 72, "iwarp-nfs41.pcap.zst": 13, "rocev2-nfs41.pcap.zst": 0,
	} {
		t.Run(name, func(t *testing.T) {
			transactions, connections := look.Records(t, captures+name)
			var mine, nobodys, all int64
			for _, r := range transactions {
				mine += int64(r.Retransmitted)
			}
			for _, c := range connections {
				all += c.Retransmitted
				nobodys += c.RetransmittedUnassigned
			}
			if mine+nobodys != all || all != want {
				t.Errorf("%d repeats of transactions and %d of nobody, the connections count %d, want %d", mine, nobodys, all, want)
			}
			if nobodys*100 > all {
				t.Errorf("%d of %d repeats are nobody's", nobodys, all)
			}
		})
	}
}

// TestPacketsBelong: the number of packets that are marked as retransmitted is the number that
// the connections count, and these packets name the transactions that count them.
func TestPacketsBelong(t *testing.T) {
	for _, name := range []string{"rocev2-loss42.pcap.zst", "rocev2-storm41.pcap.zst", "lab-iwarploss41.pcap.zst"} {
		t.Run(name, func(t *testing.T) {
			frames, _ := testkit.Frames(t, captures+name)
			marked := map[int64]int{}
			var unnamed, all int
			d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
				if p.Marks&record.Retransmitted == 0 {
					return nil
				}
				all++
				if id, known := p.Transaction.Get(); known {
					marked[id]++
				} else {
					unnamed++
				}

				return nil
			}}, dissect.Options{})
			for i := range frames {
				d.Frame(&frames[i])
			}
			d.Finish()
			transactions, connections := look.Records(t, captures+name)
			var want int64
			for _, c := range connections {
				want += c.Retransmitted
			}
			if int64(all) != want {
				t.Errorf("%d packets are marked as repeated, the connections count %d", all, want)
			}
			differ := 0
			for _, r := range transactions {
				if missing := r.Retransmitted - marked[r.ID]; missing != 0 {
					differ += max(missing, -missing)
				}
			}
			if differ > unnamed { // A retransmission that precedes the processing of the original has no transaction yet.
				t.Errorf("%d repeats are of other transactions than their packets say, %d packets say none", differ, unnamed)
			}
		})
	}
}

// waits returns the sums of the waits of a capture, by reason.
func waits(transactions []*record.Transaction) map[record.WaitReason]int {
	n := map[record.WaitReason]int{}
	for _, r := range transactions {
		for i := range r.Waits {
			n[r.Waits[i].Reason]++
		}
	}
	return n
}

// TestWaits: retransmission timeouts, credit stalls and slow servers are distinguished.
func TestWaits(t *testing.T) {
	repeats := []record.WaitReason{record.RetransmitTimeout, record.RetransmitGap, record.RetransmitNak, record.RNRNak}
	for _, c := range []struct {
		name string
		some []record.WaitReason // reasons that occur
		none []record.WaitReason // reasons that do not occur
	}{
		{"rocev2-loss42.pcap.zst", []record.WaitReason{record.RetransmitTimeout, record.RetransmitGap}, []record.WaitReason{record.CreditLimit, record.RNRNak}},
		{"rocev2-storm41.pcap.zst", []record.WaitReason{record.RetransmitTimeout, record.RetransmitNak}, nil},
		{"lab-iwarploss41.pcap.zst", []record.WaitReason{record.RetransmitGap}, []record.WaitReason{record.RetransmitNak, record.CreditLimit}},
		{"lab-retries42.pcap.zst", []record.WaitReason{record.RetransmitTimeout}, []record.WaitReason{record.CreditLimit, record.RetransmitNak}},
		{"lab-inline16.pcap.zst", []record.WaitReason{record.CreditLimit}, repeats},
		{"lab-slowserver41.pcap.zst", nil, append(repeats, record.CreditLimit)},
		{"rocev2-nfs41.pcap.zst", nil, append(repeats, record.CreditLimit)},
		{"rocev2-nconnect41.pcapng.zst", nil, append(repeats, record.CreditLimit)},
		{"lab-nfs40.pcap.zst", nil, append(repeats, record.CreditLimit)},
	} {
		t.Run(c.name, func(t *testing.T) {
			transactions, _ := look.Records(t, captures+c.name)
			got := waits(transactions)
			for _, reason := range c.some {
				if got[reason] == 0 {
					t.Errorf("no wait for %s: %v", reason, got)
				}
			}
			for _, reason := range c.none {
				if got[reason] > 0 {
					t.Errorf("%d waits for %s", got[reason], reason)
				}
			}
			for _, r := range transactions { // The latency is the sum of phases and waits.
				p, known := r.Phases.Get()
				if !known {
					continue
				}
				sum := p.WaitNS + p.ToReadNS.Or(0) + p.ReadNS.Or(0) + p.ToWriteNS.Or(0) + p.WriteNS.Or(0) + p.ToReplyNS.Or(0)
				if latency := r.LatencyNS.Or(0); sum != latency && latency >= 0 {
					t.Errorf("%v: phases are %d of %d ns: %+v", r.XID, sum, latency, p)
				}
			}
		})
	}
}

// TestSlowest: in the slowest RPC of a lossy capture, 560 of 612 ms passed before the server
// requested 10 bytes again, whose response had arrived out of order.
func TestSlowest(t *testing.T) {
	transactions, _ := look.Records(t, captures+"rocev2-loss42.pcap.zst")
	slowest := slices.MaxFunc(transactions, func(a, b *record.Transaction) int { return int(a.LatencyNS.Or(0) - b.LatencyNS.Or(0)) })
	if slowest.XID != 0x4a5eb126 || len(slowest.Waits) != 1 || slowest.Retransmitted != 2 {
		t.Fatalf("%v with waits %+v, %d repeats", slowest.XID, slowest.Waits, slowest.Retransmitted)
	}
	w := slowest.Waits[0]
	got := fmt.Sprintf("%dms %s, %s, %d bytes of %s, early %d, filled %d, packets %v", w.NS/1e6, w.Reason, w.Waiting, w.Bytes.Or(0), w.Event, w.OutOfOrderPacket.Or(0), w.GapFilledBy.Or(0), w.Packets)
	if want := "560ms retransmit_timeout, server, 10 bytes of read_request, early 7285, filled 7290, packets [7285 7290 7291]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// The Read ends with the response that was requested again, 2 ms before the Reply.
	p := slowest.Phases.Or(record.Phases{})
	got = fmt.Sprintf("until Read %d us, Read %d us, until Reply %d us, waits %d us", p.ToReadNS.Or(0)/1e3, p.ReadNS.Or(0)/1e3, p.ToReplyNS.Or(0)/1e3, p.WaitNS/1e3)
	if want := "until Read 1530 us, Read 48816 us, until Reply 1978 us, waits 560262 us"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWaitsOfNaks: the packets of a wait for a retransmission that a NAK requested begin with the
// NAK, also if the NAK had no effect, and only one wait is attributed to a packet that arrived early. Of the first capture, 16
// Calls that are retransmitted after their Reply was accepted wait for nothing.
func TestWaitsOfNaks(t *testing.T) {
	for name, want := range map[string]map[record.WaitReason]int{
		"rocev2-storm41.pcap.zst":         {record.RetransmitNak: 99},
		"ends-stormall42-client.pcap.zst": {record.RetransmitNak: 6, record.RetransmitTimeout: 1},
	} {
		transactions, _ := look.Records(t, captures+name)
		frames, _ := testkit.Frames(t, captures+name)
		naks := map[record.WaitReason]int{}
		for _, r := range transactions {
			early := map[int64]bool{}
			for _, w := range r.Waits {
				if packet, known := w.OutOfOrderPacket.Get(); known {
					if early[packet] {
						t.Errorf("%s: %v: two waits are for packet %d", name, r.XID, packet)
					}
					early[packet] = true
				}
				nak, known := w.NakPacket.Get()
				if !known {
					continue
				}
				naks[w.Reason]++
				if p := r.Reply; p != nil && p.Delivery == record.DeliveryCertain && !r.LatencyMinNS.Known() && w.From >= p.LastTime {
					t.Errorf("%s: %v: the wait until %v began after the Reply was accepted", name, r.XID, w.To)
				}
				const bth = 14 + 20 + 8
				if data := frames[nak-1].Data; data[bth] != 17 || data[bth+12]>>5 != 3 || w.Packets[0] != nak { // An Acknowledge with a NAK.
					t.Errorf("%s: %v: packet %d of %v is no NAK", name, r.XID, nak, w.Packets)
				}
			}
		}
		if !maps.Equal(naks, want) {
			t.Errorf("%s: waits for what a NAK requested: %v, want %v", name, naks, want)
		}
	}
}

// TestEnds: how connections end, by which side, in which packet, and with which outstanding
// Calls.
func TestEnds(t *testing.T) {
	for name, want := range map[string][]string{
		"lab-retries42.pcap.zst": {
			"0 client retries_exhausted 908: 4 died, 6 repeats", "1 client disconnect 1339: 1 died, 0 repeats", "2 client disconnect 1662: 2 died, 0 repeats",
		},
		"rocev2-nfs41.pcap.zst": {"0 client disconnect 1583: 0 died, 0 repeats", "1 client disconnect 2581: 0 died, 0 repeats"},
	} {
		_, connections := look.Records(t, captures+name)
		var got []string
		for _, c := range connections {
			e, known := c.Ended.Get()
			if !known {
				got = append(got, fmt.Sprintf("%d open", c.ID))
				continue
			}
			got = append(got, fmt.Sprintf("%d %s %s %d: %d died, %d repeats", c.ID, e.By.Or("?"), e.How, e.Packet.Or(0), e.OutstandingCalls, e.Retransmissions.Or(0)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	ways := map[string]int{}
	for _, name := range []string{"rocev2-errors.pcap.zst", "lab-iwarperrors.pcap.zst"} {
		_, connections := look.Records(t, captures+name)
		for _, c := range connections {
			if e, known := c.Ended.Get(); known {
				ways[fmt.Sprintf("%s %s %s", e.By.Or("?"), e.How, e.Reason.Or("-"))]++
			}
		}
	}
	want := map[string]int{
		"client disconnect -": 32, "client nak remote access error": 2, "server nak remote operational error": 1,
		"server terminate DDP untagged buffer error: no buffer available": 1, "client terminate DDP tagged buffer error: invalid STag": 1,
		"client terminate remote protection error: invalid STag": 1,
	}
	if !maps.Equal(ways, want) {
		t.Errorf("ends %v, want %v", ways, want)
	}
}

// TestWaitBeforeNak: a wait for a retransmission that a NAK requested begins with the copy that the
// NAK refused. The receiver had not accepted that copy, so the time until the NAK is no progress.
func TestWaitBeforeNak(t *testing.T) {
	transactions, _ := look.Records(t, captures+"rocev2-storm41.pcap.zst")
	for _, r := range transactions {
		if r.XID != 0x0951d79c {
			continue
		}
		var got []string
		for _, w := range r.Waits {
			got = append(got, fmt.Sprintf("%s %d us %v", w.Reason, w.NS/1e3, w.Packets))
		}
		want := []string{"retransmit_timeout 555077 us [2886 2889 2888]", "retransmit_nak 63148 us [2904 2909]"}
		if !slices.Equal(got, want) {
			t.Errorf("waits %v, want %v", got, want)
		}
		if p := r.Phases.Or(record.Phases{}); p.ToReplyNS.Or(0) > 3e6 {
			t.Errorf("until Reply %d us", p.ToReplyNS.Or(0)/1e3)
		}
		return
	}
	t.Error("the RPC is not there")
}

// TestRestOfReads: a Read of which the rest was requested once more, although later responses had been sent and the timer had not
// expired, has a gap at its requester. The capture of the other end has all responses, and shows it, too.
func TestRestOfReads(t *testing.T) {
	for _, c := range []struct {
		name string
		gaps int
	}{{"roce-burst41-client", 2}, {"roce-burst41-server", 2}, {"roce-reorder42-client", 3}, {"roce-reorder42-server", 3}} {
		gaps, unknown := 0, 0
		h := dissect.Handler{Transaction: func(r *record.Transaction) error {
			for i := range r.Waits {
				w := &r.Waits[i]
				switch {
				case w.Event != record.EventRead:
				case w.Reason == record.RetransmitGap:
					gaps++
				case w.Reason == record.RetransmitUnknown:
					unknown++
				}
				within, known := w.WithinNS.Get()
				if known != r.LatencyNS.Known() || within > w.NS || within < 0 {
					t.Errorf("%s: XID %v: %d of %d ns within the latency, known: %t", c.name, r.XID, within, w.NS, known)
				}
			}
			return nil
		}}
		if _, err := dissect.New(h, dissect.Options{}).Run(t.Context(), testkit.Open(t, "../../../testdata/ends/"+c.name+".pcap.zst")); err != nil {
			t.Fatal(err)
		}
		if gaps != c.gaps || unknown != 0 {
			t.Errorf("%s: %d Reads have gaps, want %d; %d have no known reason", c.name, gaps, c.gaps, unknown)
		}
	}
}

// TestBehindReads: RDMA Reads are answered in the order of their requests, so that those of one RPC stand behind those of another until
// these are answered. An RPC does not stand behind itself, and not behind Reads that were answered before.
func TestBehindReads(t *testing.T) {
	for name, open := range look.Transports {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := open(w, synth.Options{})
			c.Connect()
			c.RPC(synth.Null(), synth.NullReply()) // grants credits
			var calls []synth.Call
			for i := range uint32(3) {
				call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa0 + i)
				call.XID = 0x10 + i
				c.Client.Call(call)
				calls = append(calls, call)
			}
			at := func(frames []*synth.Frame) int64 { return frames[len(frames)-1].Time }
			ask := func(i, half int) *synth.Read {
				s := calls[i].Reads[0]
				return c.Server.ReadRequest(s.Handle, s.Offset+uint64(half)*2048, 2048)
			}
			respond := func(r *synth.Read) int64 {
				w.Advance(3 * time.Millisecond)
				return at(r.Respond(make([]byte, r.Length)))
			}
			a, b, b2, e := ask(0, 0), ask(1, 0), ask(1, 1), ask(0, 1)
			aEnd, _, b2End, _ := respond(a), respond(b), respond(b2), respond(e)
			f := ask(2, 0) // nothing is left before it
			respond(f)
			f2 := ask(2, 1)
			respond(f2)
			for i := range calls {
				reply := synth.Write3Reply(4096)
				reply.XID = calls[i].XID
				c.Server.Reply(reply)
			}
			c.Client.Ack()
			got := map[record.Hex32]record.BehindReads{}
			for _, r := range look.At(w).Transactions {
				if b, known := r.BehindReads.Get(); known {
					got[r.XID] = b
				}
			}
			want := map[record.Hex32]record.BehindReads{ // the first RPC begins, and its second Read stands behind those of the second RPC
				0x10: {From: record.Time(e.Request.Time), NS: b2End - e.Request.Time, Transaction: 3, XID: 0x11},
				0x11: {From: record.Time(b.Request.Time), NS: aEnd - b.Request.Time, Transaction: 2, XID: 0x10},
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestArrived: with captures at both ends, a Call was delivered when it came to the server's end, if the server acknowledged it, although
// the acknowledgement was lost on the way.
func TestArrived(t *testing.T) {
	for _, acknowledged := range []bool{true, false} {
		w := synth.New()
		c := w.RoCE(synth.Options{})
		c.Connect()
		c.RPC(synth.Null(), synth.NullReply())
		sent := c.Client.Call(synth.Call{XID: 0x7001})[0]
		lost, want := map[*synth.Frame]bool{}, record.Opt[record.Time]{}
		if acknowledged {
			lost[c.Server.Ack()], want = true, record.Some(record.Time(sent.Time+1e5)) // after the way
		}
		s := look.AtBothEnds(t, w, lost)
		call := s.Transactions[len(s.Transactions)-1].Call
		if call.Delivered != want || call.Time != record.Time(sent.Time) {
			t.Errorf("sent at %v, acknowledged: %t; delivered at %v, want %v", call.Time, acknowledged, call.Delivered, want)
		}
	}
}

// TestMostWaits: an RPC has at most 64 waits, and one of 64 has all of them.
func TestMostWaits(t *testing.T) {
	for _, repeats := range []int{1, 64, 70} {
		w := synth.New()
		c := w.RoCE(synth.Options{})
		c.Connect()
		c.RPC(synth.Null(), synth.NullReply())
		call := synth.Call{XID: 0x7001}
		sent := c.Client.Call(call)
		for range repeats {
			w.Advance(time.Second)
			w.Retransmit(sent...)
		}
		c.Server.Reply(synth.Reply{XID: 0x7001})
		c.Client.Ack()
		r := look.At(w).Transactions[1]
		if len(r.Waits) != min(repeats, 64) || r.Retransmitted != repeats {
			t.Errorf("%d repeats: %d waits, %d retransmitted", repeats, len(r.Waits), r.Retransmitted)
		}
	}
}
