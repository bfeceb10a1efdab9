package rdma_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// timed is a burst of retransmissions as the test finds it in the bytes of the packets, without the
// parsers under test.
type timed struct {
	packets []int64
	behind  int32         // distance of the latest packet to the highest request, which is 0
	idle    time.Duration // of its sender, before its first packet
}

// requester is what the test knows of one direction of a connection.
type requester struct {
	highest, acked     uint32
	began, progressed  bool // highest and acked are set
	requested, advance int64
	burst              *timed
	damaged            map[uint32]bool // sequence numbers of its Sends with bad ICRCs
}

// bursts finds the bursts of retransmissions of a capture. A burst begins with a request before the
// highest one of its direction, or with a Send of which a damaged copy was sent before, and ends if the sender goes back, pauses, or sends something new. The sender was idle since the latest request of this direction, or
// the latest response that acknowledged something new.
func bursts(t *testing.T, frames []capture.Frame) (all []*timed) {
	t.Helper()
	const pause = 100e6 // No burst of the captures has a longer one.
	directions := map[string]*requester{}
	of := func(key string) *requester {
		if directions[key] == nil {
			directions[key] = &requester{damaged: map[uint32]bool{}}
		}
		return directions[key]
	}
	send := func(r *requester, at, number int64, behind int32, beyond uint32) {
		switch {
		case r.began && (behind < 0 || r.damaged[(beyond-1)&0xffffff]):
			if r.burst == nil || behind <= r.burst.behind || at-r.requested > pause {
				r.burst = &timed{idle: time.Duration(at - max(r.requested, r.advance))}
				all = append(all, r.burst)
			}
			r.burst.packets, r.burst.behind = append(r.burst.packets, number), behind
		default:
			r.burst = nil
		}
		if !r.began || behind >= 0 {
			r.highest, r.began = beyond, true
		}
		r.requested = at
	}
	acknowledge := func(r *requester, at int64, ack uint32, ahead int32) {
		if !r.progressed || ahead > 0 {
			r.acked, r.progressed, r.advance = ack, true, at
		}
	}
	var l link.Decoder
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		id, known := p.Connection.Get()
		if !known {
			return nil
		}
		f := &frames[p.Number-1]
		carries := l.Decode(f)
		own, peer := of(fmt.Sprint(id, p.Src)), of(fmt.Sprint(id, p.Dst))
		b := l.Transport
		if p.ICRC == record.Bad {
			if psn := binary.BigEndian.Uint32(b[8:]) & 0xffffff; b[0] == 4 || b[0] == 23 { // RC SEND Only, or with Invalidate
				own.damaged[psn] = true
				own.requested = f.Time
			}
			return nil
		}
		if carries == link.CarriesTCP {
			seq, ack, length := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), uint32(l.Length-int(b[12]>>4)*4)
			acknowledge(peer, f.Time, ack, int32(ack-peer.acked))
			if length > 0 {
				send(own, f.Time, p.Number, int32(seq-own.highest), seq+length)
			}
			return nil
		}
		const responses = 13 // The opcodes 13 to 18 are responses and acknowledgements.
		psn := binary.BigEndian.Uint32(b[8:]) & 0xffffff
		delta := func(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }
		switch opcode := b[0]; {
		case opcode > 0x17: // a datagram, or a notification
		case opcode >= responses && opcode <= 18:
			acknowledge(peer, f.Time, psn, delta(psn, peer.acked))
		default:
			packets := uint32(1)
			if opcode == 12 {
				const mtu = 1024
				packets = max(1, (binary.BigEndian.Uint32(b[24:])+mtu-1)/mtu)
			}
			send(own, f.Time, p.Number, delta(psn, own.highest), (psn+packets)&0xffffff)
		}
		return nil
	}}, dissect.Options{})
	for i := range frames {
		d.Frame(&frames[i])
	}
	d.Finish()
	return all
}

// checkTimeouts compares the findings of retransmission timeouts with the bursts: at least 95% of those
// after the idle time of a timer are reported, each once, and no other. The test knows no burst whose
// idle time is between unlikely and the timer.
func checkTimeouts(t *testing.T, frames []capture.Frame, unlikely, timer time.Duration) (timers, others int) {
	t.Helper()
	reported := map[int64]bool{}
	d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
		if f.Rule == "retransmission-timeout" {
			reported[f.Packet.Or(0)] = true
		}
		return nil
	}}, dissect.Options{})
	for i := range frames {
		d.Frame(&frames[i])
	}
	d.Finish()
	found := 0
	for _, b := range bursts(t, frames) {
		n := 0
		for _, packet := range b.packets {
			if reported[packet] {
				n++
				delete(reported, packet)
			}
		}
		switch {
		case b.idle >= timer:
			timers++
			found += min(n, 1)
			if n > 1 {
				t.Errorf("the burst in packet %d is reported %d times", b.packets[0], n)
			}
		case b.idle > unlikely:
			t.Errorf("the burst in packet %d followed %v: is that a timer?", b.packets[0], b.idle)
		default:
			others++
			if n > 0 {
				t.Errorf("the burst in packet %d followed %v, and is reported as a timeout", b.packets[0], b.idle)
			}
		}
	}
	if found*100 < timers*95 {
		t.Errorf("%d of %d timeouts are reported", found, timers)
	}
	for packet := range reported {
		t.Errorf("packet %d begins no burst, and is reported as a timeout", packet)
	}
	return timers, others
}

// TestTimeouts: a retransmission timeout is reported for the bursts that follow the idle time of the
// sender's timer, and for no other.
func TestTimeouts(t *testing.T) {
	const timer = 97 * (4096 << 17) / 100 // The REQs of these captures have the Local ACK Timeout 17: 537 ms.
	for _, c := range []struct {
		name           string
		timers, others int
	}{
		{"rocev2-storm41.pcap.zst", 3, 170},
		{"rocev2-loss42.pcap.zst", 1, 43},
		{"lab-loss3.pcap.zst", 2, 99},
		{"lab-retries42.pcap.zst", 6, 0},
		{"ends-stormall42-client.pcap.zst", 6, 13},
		{"ends-stormall42-server.pcap.zst", 5, 9},
		{"ends-twoclock42-client.pcap.zst", 1, 0},
		{"lab-iwarploss41.pcap.zst", 0, 47},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames, _ := testkit.Frames(t, captures+c.name)
			timers, others := checkTimeouts(t, frames, timer*9/10, timer)
			if timers != c.timers || others != c.others {
				t.Errorf("%d timeouts and %d other bursts, want %d and %d", timers, others, c.timers, c.others)
			}
		})
	}
}

// TestTCPTimeouts is the same for TCP, whose timer expires after 200 ms or more: no capture has one.
func TestTCPTimeouts(t *testing.T) {
	w := synth.New()
	c := w.IWARP(synth.Options{ManualAck: true})
	c.Connect()
	for _, idle := range []time.Duration{time.Millisecond, 60 * time.Millisecond, 150 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second} {
		c.Client.Call(synth.Null())
		c.Server.Reply(synth.NullReply())
		c.Client.Ack()
		call := c.Client.Call(synth.Null())
		w.Advance(idle)
		w.Retransmit(call...)
		c.Server.Reply(synth.NullReply())
		c.Client.Ack()
	}
	var frames []capture.Frame
	for f := range testkit.Made(slices.Clone(w.Frames)) {
		frames = append(frames, *f)
	}
	if timers, others := checkTimeouts(t, frames, 195*time.Millisecond, 195*time.Millisecond); timers != 3 || others != 3 {
		t.Errorf("%d timeouts and %d other bursts", timers, others)
	}
}
