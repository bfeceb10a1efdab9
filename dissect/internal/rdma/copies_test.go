package rdma_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// stage is a connection on which a server sends Replies of one packet, some of them more than once.
// Each frame of a Reply has a name: the digit of its XID, and a, b or c for the copy.
type stage struct {
	w     *synth.Wire
	c     *synth.Conn
	call6 synth.Call
	psn   map[byte]uint32
	names map[int64]string // by time
	times map[byte]int     // number of copies
}

// dataOf6 is the handle of the memory that the Call 6 exposes.
const dataOf6 = 0xa6

// newStage returns a stage with the outstanding Calls 6 to 9, of which 6 exposes data.
func newStage(o synth.Options, edits ...func(*rocev2.REQ)) *stage {
	o.ManualAck = true
	s := &stage{w: synth.New(), psn: map[byte]uint32{}, names: map[int64]string{}, times: map[byte]int{}}
	s.c = s.w.RoCE(o)
	s.c.REQ(edits...)
	s.c.REP()
	s.c.RTU()
	s.c.RPC(synth.Null(), synth.NullReply())
	s.call6 = synth.Write3(0, make([]byte, 3*1024)).Reduce(dataOf6)
	s.call6.XID = 6
	s.c.Client.Call(s.call6)
	for _, x := range "789" {
		s.c.Client.Call(synth.Call{XID: uint32(x - '0')})
	}
	s.c.Server.Ack()
	return s
}

// reply sends the first copies of Replies.
func (s *stage) reply(xids string) {
	for i := range len(xids) {
		x := xids[i]
		s.psn[x] = s.c.Server.NextPSN
		s.name(x, s.c.Server.Reply(synth.Reply{XID: uint32(x - '0')})[0])
	}
}

// again sends further copies of Replies, sometime after what came before.
func (s *stage) again(xids string) {
	s.w.Advance(pause)
	for i := range len(xids) {
		x := xids[i]
		s.name(x, s.c.Server.Reply(synth.Reply{XID: uint32(x - '0')}, synth.AtPSN(s.psn[x]))[0])
	}
}

// pause is longer than a network takes to duplicate a packet, and shorter than a timer.
const pause = 10 * time.Millisecond

func (s *stage) name(x byte, f *synth.Frame) {
	s.names[f.Time] = string(x) + string(rune('a'+s.times[x]))
	s.times[x]++
}

func (s *stage) nak(x byte) *synth.Frame {
	s.w.Advance(pause)
	f := s.c.Client.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(s.psn[x]))
	s.nameAs("nak", f)
	return f
}

func (s *stage) ack(x byte) {
	s.w.Advance(pause)
	s.c.Client.Ack(synth.AtPSN(s.psn[x]))
}

// delivered says of each Reply in which packet it was accepted; at which time, if that is the time
// of another packet; and, if it is uncertain, since when it may have been.
func (s *stage) delivered() string {
	var said []string
	for _, r := range look.At(s.w).Transactions {
		if r.Reply == nil || s.times[byte('0'+r.XID)] == 0 {
			continue
		}
		if r.Reply.Delivery == record.DeliveryUnknown {
			text := fmt.Sprintf("%d unknown", r.XID)
			if !r.LatencyNS.Known() {
				text += ", no latency"
			}
			said = append(said, text)
			continue
		}
		packet := s.names[s.w.Frames[r.Reply.LastPacket-1].Time]
		at := s.names[int64(r.Reply.Delivered.Or(0))]
		text := packet
		if at != packet {
			text += " at " + at
		}
		if r.Reply.Delivery == record.DeliveryUncertain {
			text += "?"
		}
		if least, known := r.LatencyMinNS.Get(); known {
			text += " since " + s.names[int64(r.Call.Time)+least]
		}
		said = append(said, text)
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// TestCopies: which of several captured copies of a Reply its receiver accepted.
func TestCopies(t *testing.T) {
	for name, test := range map[string]struct {
		play func(s *stage)
		want string
	}{
		"once": {func(s *stage) {
			s.reply("789")
			s.ack('9')
		}, "7a, 8a, 9a"},
		"a retransmission before the acknowledgement": {func(s *stage) {
			s.reply("78")
			s.again("8")
			s.ack('8')
		}, "7a, 8b? since 8a"},
		"of three copies, the latest": {func(s *stage) {
			s.reply("78")
			s.again("8")
			s.again("8")
			s.ack('8')
		}, "7a, 8c? since 8a"},
		"a retransmission after the acknowledgement": {func(s *stage) {
			s.reply("78")
			s.ack('8')
			s.again("8")
		}, "7a, 8a"},
		"a retransmission after what follows it": {func(s *stage) {
			s.reply("78")
			s.again("7")
			s.ack('8')
		}, "7a, 8a"},
		"a retransmission that the network copied": {func(s *stage) {
			s.reply("78")
			s.again("8")
			s.w.Duplicate(s.w.Last(), 2*time.Millisecond)
			s.ack('8')
		}, "7a, 8b? since 8a"},
		"go back": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
			s.ack('9')
		}, "7a, 8b, 9b"},
		"go back twice": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
			s.nak('8')
			s.again("89")
			s.ack('9')
		}, "7a, 8c, 9c"},
		"go back, and a copy of the NAK": {func(s *stage) {
			s.reply("789")
			f := s.nak('8')
			s.w.Advance(time.Millisecond - pause)
			s.again("89")
			s.w.Duplicate(f, 2*time.Millisecond)
			s.w.Advance(time.Millisecond)
			s.ack('9')
		}, "7a, 8b, 9b"},
		"an old NAK": {func(s *stage) {
			s.reply("789")
			s.ack('9')
			s.nak('8')
			s.again("8")
		}, "7a, 8a, 9a"},
		"only the lost one again": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("8")
			s.ack('9')
		}, "7a, 8b, 9a at 8b?"},
		"a later one again before the lost one": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("9")
			s.again("8")
			s.ack('9')
		}, "7a, 8b, 9b at 8b?"},
		"again after a retransmission that was early": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("9")
			s.again("89")
			s.ack('9')
		}, "7a, 8b, 9c"},
		"go back twice, the second time without the last one": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
			s.nak('8')
			s.again("8")
			s.ack('9')
		}, "7a, 8c, 9b at 8c?"},
		"what was retransmitted before a NAK was refused": {func(s *stage) {
			s.reply("789")
			s.again("9")
			s.nak('8')
			s.again("8")
			s.ack('9')
		}, "7a, 8b, 9a at 8b?"},
		"retransmitted after it went back": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
			s.again("9")
			s.ack('9')
		}, "7a, 8b, 9c? since 9b"},
		"the lost one again, which was not captured": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("9")
			s.ack('9')
		}, "7a, 8a?, 9b?"},
		"not acknowledged": {func(s *stage) {
			s.reply("78")
			s.ack('7')
		}, "7a, 8 unknown"},
		"refused, and nothing after": {func(s *stage) {
			s.reply("789")
			s.nak('8')
		}, "7a, 8 unknown, no latency, 9 unknown, no latency"},
		"sent again before the lost one, and nothing after": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("9")
		}, "7a, 8 unknown, no latency, 9 unknown, no latency"},
		"go back, not acknowledged": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
		}, "7a, 8b? since 8a, 9b? since 9a"},
		"a retransmission, not acknowledged": {func(s *stage) {
			s.reply("78")
			s.ack('7')
			s.again("8")
		}, "7a, 8b? since 8a"},
	} {
		for _, o := range []synth.Options{{}, {IPv6: true}} {
			t.Run(fmt.Sprintf("%s, IPv6 %t", name, o.IPv6), func(t *testing.T) {
				s := newStage(o)
				test.play(s)
				if got := s.delivered(); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
			})
		}
	}
}

// TestCopiesTCP is the same for TCP, which shows only that some copy was accepted.
func TestCopiesTCP(t *testing.T) {
	for _, test := range []struct {
		again, acknowledged bool
		want                record.Delivery
	}{
		{false, true, record.DeliveryCertain}, {true, true, record.DeliveryUncertain}, {false, false, record.DeliveryUnknown},
	} {
		w := synth.New()
		c := w.IWARP(synth.Options{ManualAck: true})
		c.Connect()
		c.Client.Call(synth.Null())
		reply := c.Server.Reply(synth.NullReply())
		if test.again {
			w.Advance(pause)
			reply = w.Retransmit(reply...)
		}
		if test.acknowledged {
			c.Client.Ack()
		}
		r := look.At(w).Transactions[0].Reply
		if r.Delivery != test.want || test.acknowledged && int64(r.Delivered.Or(0)) != reply[0].Time {
			t.Errorf("again %t, acknowledged %t: %s at %v", test.again, test.acknowledged, r.Delivery, r.Delivered)
		}
	}
}
