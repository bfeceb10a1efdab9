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

// waited says of each transaction in which packet each of its waits ended, the reason of the wait,
// the NAK that asked for the retransmission, and the transaction that the burst began with. The operation waited, but no RPC,
// if it belongs to none, or if that was over.
func (s *stage) waited() string {
	var said []string
	seen := look.At(s.w)
	transactions, ends := seen.Transactions, map[record.Time]bool{}
	xids := map[int64]record.Hex32{}
	for _, r := range transactions {
		xids[r.ID] = r.XID
	}
	for _, r := range transactions {
		for i := range r.Waits {
			w := &r.Waits[i]
			ends[w.To] = true
			text := fmt.Sprintf("%s %s", s.names[int64(w.To)], strings.TrimPrefix(string(w.Reason), "retransmit_"))
			if nak, known := w.NakPacket.Get(); known {
				text += " " + s.names[s.w.Frames[nak-1].Time]
			}
			if id, known := w.BlockingTransaction.Get(); known {
				text += fmt.Sprintf(" behind %d", uint32(xids[id]))
			}
			said = append(said, text)
		}
	}
	for _, o := range seen.Operations {
		for _, w := range o.Waits {
			if !ends[w.To] {
				said = append(said, fmt.Sprintf("%s %s of no RPC", s.names[int64(w.To)], strings.TrimPrefix(string(w.Reason), "retransmit_")))
			}
		}
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// Pauses between packets: one after which a burst continues, but no network copies a packet; one
// after which only the next packet continues it; and one that is longer than the timer.
const (
	soon    = 6 * time.Millisecond
	later   = 30 * time.Millisecond
	expired = 3 * time.Second
)

// after advances the clock before the next packet.
func (s *stage) after(d time.Duration) *stage {
	s.w.Advance(d - pause)
	return s
}

// rnr refuses a Reply for lack of a buffer.
func (s *stage) rnr(x byte) {
	s.w.Advance(pause)
	s.nameAs("rnr", s.c.Client.RNR(10, synth.AtPSN(s.psn[x])))
}

func (s *stage) nameAs(name string, f *synth.Frame) { s.names[f.Time] = name }

// read requests the data of the Call 6 in 3 packets, and returns the request. Its PSN is that of 6.
func (s *stage) read() *synth.Read {
	s.psn['6'] = s.c.Server.NextPSN
	r := s.c.Server.ReadRequest(dataOf6, s.call6.Reads[0].Offset, 3*1024)
	s.name('6', r.Request)
	return r
}

// readAgain requests it again, without the first packets.
func (s *stage) readAgain(without uint32) {
	s.w.Advance(pause)
	r := s.c.Server.ReadRequest(dataOf6, s.call6.Reads[0].Offset+1024*uint64(without), (3-without)*1024, synth.AtPSN(s.psn['6']+without))
	s.name('6', r.Request)
}

// TestCauses: why a sender retransmitted, and which packets it retransmitted for the same reason.
func TestCauses(t *testing.T) {
	data := make([]byte, 3*1024)
	for name, test := range map[string]struct {
		play func(s *stage)
		want string
	}{
		"a NAK": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
		}, "8b nak nak, 9b nak nak behind 8"},
		"the next packet, later": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("78")
			s.after(later).again("9")
		}, "7b nak nak, 8b nak nak behind 7, 9b nak nak behind 7"},
		"a packet after a gap": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("7")
			s.after(soon).again("9")
		}, "7b nak nak, 9b nak nak behind 7"},
		"a packet after a gap, later": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("7")
			s.after(later).again("9")
		}, "7b nak nak, 9b unknown"},
		"out of order": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("79")
			s.after(soon).again("8")
			s.after(soon).again("8")
		}, "7b nak nak, 8b nak nak behind 7, 8c unknown, 9b nak nak behind 7"},
		"out of order, later": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("79")
			s.after(later).again("8")
		}, "7b nak nak, 8b unknown, 9b nak nak behind 7"},
		"out of order, before the first": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("8")
			s.after(soon).again("7")
			s.after(soon).again("7")
		}, "7b nak nak behind 8, 7c unknown, 8b nak nak"},
		"one packet twice": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("8")
			s.after(soon).again("8")
		}, "8b nak nak, 8c unknown"},
		"a NAK that was heeded already": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("89")
			s.after(later).again("8")
		}, "8b nak nak, 8c unknown, 9b nak nak behind 8"},
		"a copy of the NAK": {func(s *stage) {
			s.reply("789")
			f := s.nak('8')
			s.after(time.Millisecond).again("89")
			s.w.Duplicate(f, 2*time.Millisecond)
			s.after(later).again("8")
		}, "8b nak nak, 8c unknown, 9b nak nak behind 8"},
		"a second NAK": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("7")
			s.nameAs("nak 2", s.nak('8'))
			s.after(soon).again("89")
		}, "7b nak nak, 8b nak nak 2, 9b nak nak 2 behind 8"},
		"a second NAK, too late": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("7")
			s.nameAs("nak 2", s.nak('8'))
			s.after(500 * time.Microsecond).again("89")
		}, "7b nak nak, 8b nak nak behind 7, 9b nak nak behind 7"},
		"back to the second NAK": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("79")
			s.nameAs("nak 2", s.nak('8'))
			s.after(500 * time.Microsecond).again("8")
			s.after(soon).again("9")
		}, "7b nak nak, 8b nak nak 2, 9b nak nak behind 7, 9c nak nak 2 behind 8"},
		"before the NAK": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.again("7")
		}, "7b unknown of no RPC"},
		"a timeout": {func(s *stage) {
			s.reply("789")
			s.after(expired).again("89")
		}, "8b timeout, 9b timeout behind 8"},
		"a timeout in a burst": {func(s *stage) {
			s.reply("789")
			s.nak('7')
			s.again("7")
			s.after(expired).again("89")
		}, "7b nak nak, 8b timeout, 9b timeout behind 8"},
		"a NAK that was not heeded": {func(s *stage) {
			s.reply("789")
			s.nak('8')
			s.after(expired).again("89")
		}, "8b timeout nak, 9b timeout nak behind 8"},
		"soon after an acknowledgement": {func(s *stage) {
			s.reply("789")
			s.w.Advance(expired)
			s.ack('7')
			s.after(soon).again("8")
		}, "8b unknown"},
		"soon after a request": {func(s *stage) {
			s.reply("78")
			s.w.Advance(expired)
			s.reply("9")
			s.after(soon).again("8")
		}, "8b unknown"},
		"no buffer": {func(s *stage) {
			s.reply("789")
			s.rnr('8')
			s.again("89")
		}, "8b rnr_nak rnr, 9b rnr_nak rnr behind 8"},
		"no buffer, for long": {func(s *stage) {
			s.reply("789")
			s.rnr('8')
			s.after(expired).again("8")
		}, "8b rnr_nak rnr"},
		"no buffer, and another packet": {func(s *stage) {
			s.reply("789")
			s.rnr('8')
			s.again("9")
		}, "9b unknown"},
		"copied by the network": {func(s *stage) {
			s.reply("789")
			s.after(2 * time.Millisecond).again("9")
		}, ""},
		"a Read without a response": {func(s *stage) {
			s.read()
			s.reply("8")
			s.readAgain(0)
			s.after(soon).again("8")
		}, "6b unknown, 8b unknown behind 6"},
		"a Read that what follows overtook": {func(s *stage) {
			s.read()
			s.reply("8")
			s.ack('8')
			s.readAgain(0)
			s.after(soon).again("8")
		}, "6b gap, 8b gap of no RPC"},
		"a Send behind a Read": {func(s *stage) {
			s.read()
			s.reply("89")
			s.ack('9')
			s.again("8")
		}, "8b gap of no RPC"},
		"a Send without a Read": {func(s *stage) {
			s.reply("789")
			s.ack('9')
			s.again("8")
		}, "8b unknown of no RPC"},
		"a missing response": {func(s *stage) {
			s.read().RespondPackets(data, 1, 2)
			s.readAgain(0)
		}, "6b gap"},
		"a missing response between others": {func(s *stage) {
			r := s.read()
			r.RespondPackets(data, 2, 3)
			r.RespondPackets(data, 0, 1)
			s.readAgain(1)
		}, "6b gap"},
		"a missing response twice": {func(s *stage) {
			r := s.read()
			r.RespondPackets(data, 2, 3)
			s.readAgain(0)
			r.RespondPackets(data, 0, 1)
			s.after(soon).readAgain(1)
		}, "6b gap, 6c gap"},
		"no response after the first": {func(s *stage) {
			s.read().RespondPackets(data, 0, 1)
			s.readAgain(0)
		}, "6b unknown"},
		"all responses": {func(s *stage) {
			s.read().Respond(data)
			s.readAgain(1)
		}, "6b gap"},
		"an Atomic without a response": {func(s *stage) {
			psn := s.c.Server.NextPSN
			f := s.c.Server.FetchAdd(dataOf6, 0, 1, 0)
			s.w.Drop(f[1])
			s.reply("8")
			s.ack('8')
			s.w.Advance(pause)
			s.nameAs("atomic", s.c.Server.FetchAdd(dataOf6, 0, 1, 0, synth.AtPSN(psn))[0])
			s.w.Drop(s.w.Last())
			s.after(soon).again("8")
		}, "8b gap of no RPC, atomic gap of no RPC"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(synth.Options{})
			test.play(s)
			if got := s.waited(); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestTimers: the idle time after which a retransmission is one of the timer, for each timer.
func TestTimers(t *testing.T) {
	const none = -1
	for _, test := range []struct {
		exponent int // the Local ACK Timeout of the REQ, or none if the REQ is not captured
		idle     time.Duration
		want     string
	}{
		{17, 530 * time.Millisecond, "8b timeout"},
		{17, 500 * time.Millisecond, "8b unknown"},
		{14, 70 * time.Millisecond, "8b timeout"},
		{14, 60 * time.Millisecond, "8b unknown"},
		{0, expired, "8b unknown"},
		{none, 110 * time.Millisecond, "8b timeout"},
		{none, 90 * time.Millisecond, "8b unknown"},
	} {
		s := newStage(synth.Options{}, func(r *rocev2.REQ) { r.Primary.LocalACKTimeout = uint8(max(test.exponent, 0)) })
		if test.exponent == none {
			s.w.Drop(s.w.Frames[:3]...)
		}
		s.reply("789")
		s.after(test.idle).again("8")
		if got := s.waited(); got != test.want {
			t.Errorf("Local ACK Timeout %d, idle for %v: %s, want %s", test.exponent, test.idle, got, test.want)
		}
	}
}
