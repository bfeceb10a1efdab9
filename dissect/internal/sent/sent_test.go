package sent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/cause"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// at is a packet at a time, which is its number, too.
func at(n int64) record.Stamp { return record.Stamp{Packet: n, Time: record.Time(n)} }

// missing is a copy that left its sender, and that the capture of its receiver lacks.
func missing(n int64) Path {
	p := left(n)
	p.Lost, p.Missing = true, true
	return p
}

func left(n int64) Path    { return Path{Joined: true, Sent: at(n), Arrived: true} }
func gone(n int64) Path    { return Path{Joined: true, Sent: at(n), Lost: true, Gone: true} }
func damaged(n int64) Path { return Path{Joined: true, Sent: at(n), Lost: true} }
func passing(p Path) Path  { p.Passing = true; return p }
func arrived() Path        { return Path{Joined: true, Arrived: true} }
func copied(p Path) Path   { p.Copy = true; return p }
func sender(ps ...Path) (s *Sender) {
	s = New(order.PSNs)
	for i, p := range ps {
		s.Sent(order.One(uint32(i)), p)
	}
	return s
}

// TestFirst: when a packet first left its sender, and what is forgotten with it.
func TestFirst(t *testing.T) {
	for name, c := range map[string]struct {
		sent []Path // of the packets 0, 1, 2
		more []Path // copies of the packet 1
		want string
	}{
		"at both ends":                     {[]Path{left(1), left(2), left(3)}, nil, "2 seen"},
		"only when it came":                {[]Path{left(1), arrived(), left(3)}, nil, "99"},
		"a later copy":                     {[]Path{left(1), left(2), left(3)}, []Path{left(7)}, "2 seen"},
		"a lost copy":                      {[]Path{left(1), gone(2), left(3)}, []Path{left(7)}, "2 seen gone hurt again"},
		"a damaged copy":                   {[]Path{left(1), damaged(2), left(3)}, []Path{left(7)}, "2 seen hurt again"},
		"a copy of which nothing is known": {[]Path{left(1), missing(2), left(3)}, []Path{left(7)}, "2 seen again"},
		"two lost copies":                  {[]Path{left(1), gone(2), left(3)}, []Path{damaged(7), left(8)}, "2 seen gone hurt again again"},
		"lost behind a switch":             {[]Path{left(1), passing(gone(2)), left(3)}, []Path{arrived()}, "2 gone hurt again"},
		"a later copy is lost":             {[]Path{left(1), left(2), left(3)}, []Path{gone(7), left(8)}, "2 seen again"},
		"the network's copy":               {[]Path{left(1), copied(left(2)), left(3)}, nil, "99"},
		"a copy of a lost copy":            {[]Path{left(1), gone(2), left(3)}, []Path{copied(left(7))}, "2 seen gone hurt"},
	} {
		s := sender(c.sent...)
		var again []string
		for _, p := range c.more {
			before := s.Bytes()
			if s.Sent(order.One(1), p) {
				again = append(again, "again")
			}
			if s.Bytes() != before {
				t.Errorf("%s: %d bytes for a copy", name, s.Bytes()-before)
			}
		}
		first, seen := s.First(1, at(99))
		got := fmt.Sprint(first.At.Packet)
		for text, is := range map[string]bool{" seen": seen} {
			if is {
				got += text
			}
		}
		if first.Gone {
			got += " gone"
		}
		if first.Hurt {
			got += " hurt"
		}
		if got = strings.Join(append([]string{got}, again...), " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if _, seen := s.First(0, at(99)); seen {
			t.Errorf("%s: the packet before is known still", name)
		}
		if first, seen := s.First(2, at(99)); !seen || first.At != at(3) {
			t.Errorf("%s: the packet after it left at %d, %t", name, first.At.Packet, seen)
		}
	}
}

// TestFirstOfRuns: a segment may be in the middle of one that left its sender, and of two of which one left earlier.
func TestFirstOfRuns(t *testing.T) {
	s := New(order.Octets)
	s.Sent(order.Run{From: 100, To: 200}, left(5))
	s.Sent(order.Run{From: 150, To: 300}, left(3))
	for _, c := range []struct {
		seq  uint32
		want int64
	}{{100, 5}, {149, 5}, {150, 3}, {199, 3}, {200, 3}, {299, 3}, {300, 99}} {
		if first, seen := s.First(c.seq, at(99)); first.At.Packet != c.want || seen != (c.want != 99) {
			t.Errorf("%d left at %d, %t, want %d", c.seq, first.At.Packet, seen, c.want)
		}
	}
	s = New(order.Octets)
	s.Sent(order.Run{From: 0xffffff00, To: 0x10}, left(5))
	if _, seen := s.First(8, at(99)); !seen {
		t.Error("a segment after the highest sequence number is not found")
	}
}

// TestManyPackets: the oldest half is forgotten, and the memory of the rest is charged.
func TestManyPackets(t *testing.T) {
	s := New(order.PSNs)
	for i := range int64(maxPackets) + 1 {
		s.Sent(order.One(uint32(i)), left(i+1))
	}
	if len(s.packets) != maxPackets/2+1 || s.Bytes() != senderCost+int64(cap(s.packets))*packetCost {
		t.Errorf("%d packets, %d bytes for %d", len(s.packets), s.Bytes(), cap(s.packets))
	}
	if first, seen := s.First(maxPackets/2, at(0)); !seen || first.At != at(maxPackets/2+1) {
		t.Errorf("the oldest one that is kept left at %d, %t", first.At.Packet, seen)
	}
}

// TestCurrent: what is known of the current packet, and of a sender whose packets were captured at one point.
func TestCurrent(t *testing.T) {
	s := sender(left(5))
	if s.Time(at(9)) != 5 || !s.Arrived() || s.Only() {
		t.Errorf("left at %d, arrived: %t, only sent: %t", s.Time(at(9)), s.Arrived(), s.Only())
	}
	if s.Takes(Path{Joined: true}); s.Time(at(9)) != 9 || s.Arrived() {
		t.Errorf("captured on the way: left at %d, arrived: %t", s.Time(at(9)), s.Arrived())
	}
	s.Takes(left(5))
	if s.AcceptOnly(true); !s.Only() || s.Arrived() || s.Time(at(9)) != 9 {
		t.Errorf("only sent: %t, arrived: %t, left at %d", s.Only(), s.Arrived(), s.Time(at(9)))
	}
	s.Takes(left(5))
	if s.MayHaveLost() {
		t.Error("what is missing may have been lost before the sender's own point")
	}
	s.Sent(order.One(90), passing(gone(91)))
	if s.Takes(left(5)); !s.MayHaveLost() {
		t.Error("nothing may have been lost before a switch")
	}
	if s.AcceptOnly(false); s.MayHaveLost() || s.Only() || !s.Arrived() {
		t.Errorf("only sent: %t, arrived: %t", s.Only(), s.Arrived())
	}
	if s = nil; s.Time(at(9)) != 9 || s.Arrived() || s.Only() || s.LossesBefore(Before{Until: 99}) != nil {
		t.Error("something is known of no sender")
	}
	s.Report(9, 0, func(*Loss) bool { t.Error("a loss of no sender"); return true })
}

// TestMarks: what the path of a packet is shown as, and where its loss is.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		path Path
		mark record.Marks
		at   int64
	}{
		{left(5), 0, 9},
		{gone(5), record.LostOnPath, 5},
		{damaged(5), record.DamagedOnPath, 9},
		{copied(left(5)), record.Duplicated, 9},
		{copied(damaged(5)), record.DamagedOnPath | record.Duplicated, 9},
	} {
		if mark, harmed := c.path.Mark(), c.path.Harmed(at(9)); mark != c.mark || harmed.Packet != c.at {
			t.Errorf("%+v: %v, at %d", c.path, mark, harmed.Packet)
		}
	}
}

// TestMessages: a datagram has no sequence number, so its XID shows that an earlier copy was lost.
func TestMessages(t *testing.T) {
	s := New(order.Octets)
	s.LoseMessage(7, at(1))
	s.LoseMessage(7, at(2))
	s.LoseMessage(8, at(3))
	if none := (*Sender)(nil); len(s.messages) != 2 || s.Bytes() != senderCost+int64(cap(s.messages))*packetCost || none.Bytes() != 0 {
		t.Errorf("%d messages, %d bytes for %d", len(s.messages), s.Bytes(), cap(s.messages))
	}
	for i, c := range []struct {
		xid  uint32
		want int64
	}{{7, 1}, {7, 12}, {9, 13}, {8, 3}} {
		s.Sent(order.One(uint32(i)), left(11+int64(i)))
		if first := s.Message(c.xid); first != at(c.want) {
			t.Errorf("message %d first left at %d, want %d", c.xid, first.Packet, c.want)
		}
		if first, _ := s.First(uint32(i), at(99)); first.At != at(c.want) {
			t.Errorf("the packet of message %d left at %d, want %d", c.xid, first.At.Packet, c.want)
		}
	}
	for i := range uint32(maxMessages) + 1 {
		s.LoseMessage(100+i, at(1))
	}
	s.Sent(order.One(9), left(50))
	if len(s.messages) != maxMessages || s.Message(100) != at(50) || s.Message(101) != at(1) {
		t.Errorf("of more than %d messages, %d are kept", maxMessages, len(s.messages)+1)
	}
}

// TestReport: each lost packet of the sender is reported once, after a later copy was accepted; answers are not.
func TestReport(t *testing.T) {
	s := New(order.PSNs)
	for _, l := range []Loss{{Seq: 5, At: at(1)}, {Seq: 6, Response: true}, {Seq: 6, Nak: true}, {Seq: 6, Ack: true}, {Seq: 6, At: at(2)}, {Seq: 9, At: at(3)}} {
		s.Lose(l)
	}
	report := func(before uint32, yes bool) (seqs []uint32) {
		s.Report(before, 0, func(l *Loss) bool {
			seqs = append(seqs, l.Seq)
			return yes
		})
		return seqs
	}
	for i, c := range []struct {
		before uint32
		yes    bool
		want   string
	}{{5, true, "[]"}, {6, false, "[5]"}, {6, true, "[5]"}, {9, true, "[6]"}, {9, true, "[]"}, {10, true, "[9]"}, {99, true, "[]"}} {
		if got := fmt.Sprint(report(c.before, c.yes)); got != c.want {
			t.Errorf("%d: losses before %d: %s, want %s", i, c.before, got, c.want)
		}
	}
	if s.open != 0 {
		t.Errorf("%d are to be reported still", s.open)
	}
	s = New(order.PSNs)
	for i := range uint32(maxLosses) + 1 {
		if i == 1 {
			report(1, true) // the first one
		}
		s.Lose(Loss{Seq: i, Response: i == 2})
	}
	if len(s.losses) != maxLosses/2+1 || s.open != maxLosses/2+1 || s.Bytes() != senderCost+int64(cap(s.losses))*lossCost {
		t.Errorf("%d losses, %d to be reported, %d bytes for %d", len(s.losses), s.open, s.Bytes(), cap(s.losses))
	}
}

// TestLossesBefore: which lost packets may have caused a wait.
func TestLossesBefore(t *testing.T) {
	s := New(order.PSNs)
	for _, l := range []Loss{{Seq: 4, At: at(10)}, {Seq: 5, At: at(20)}, {Seq: 6, At: at(30), Response: true}, {Seq: 6, At: at(35), Ack: true}, {Seq: 7, At: at(40), Nak: true}, {Seq: 8, At: at(50)}} {
		s.Lose(l)
	}
	s.Report(6, 25, func(*Loss) bool { return false }) // copies of 4 and 5 were taken at 25
	s.Report(6, 99, func(*Loss) bool { return true })  // the first of them counts
	again := func(seq uint32) *cause.Burst {
		again := cause.NewSender(order.PSNs, new(cause.Numbers))
		again.New(8, 50)
		return again.Burst(&cause.Again{Run: order.One(seq), At: at(60), Sent: 60}, none{})
	}
	for name, c := range map[string]struct {
		of   Before
		want string
	}{
		"a wait from the beginning":    {Before{Until: 99, Most: 9}, "4 5 6 7 8"},
		"not what was repaired before": {Before{Since: 26, Until: 99, Most: 9}, "6 7 8"},
		"not what was sent before":     {Before{Since: 15, Until: 99, Most: 9}, "5 6 7 8"},
		"not what was sent later":      {Before{Until: 40, Most: 9}, "4 5 6 7"},
		"the first ones":               {Before{Until: 99, Most: 2}, "4 5"},
		"from a burst on":              {Before{Burst: again(7), Since: 26, Until: 99, Most: 9}, "7 8 later"},
		"a burst that was repaired":    {Before{Burst: again(4), Since: 26, Until: 99, Most: 9}, "6 later 7 later 8 later"},
		"before a burst":               {Before{Burst: again(6), Since: 26, Until: 99, Most: 9}, "6 7 later 8 later"},
	} {
		var got []string
		for _, l := range s.LossesBefore(c.of) {
			text := fmt.Sprint(l.Seq)
			if l.Later {
				text += " later"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
	if s.FirstLoss(8, at(45)) != at(50) || s.FirstLoss(8, at(51)) != at(51) || s.FirstLoss(3, at(1)) != at(1) {
		t.Error("the first loss of a packet is not the one after it left its sender")
	}
}

// TestLostResponse: only responses that were lost in the time between are earlier copies.
func TestLostResponse(t *testing.T) {
	s := New(order.PSNs)
	for _, l := range []Loss{{Seq: 4, At: at(10)}, {Seq: 5, At: at(20), Response: true}, {Seq: 6, At: at(30), Nak: true}} {
		s.Lose(l)
	}
	for _, c := range []struct {
		seq          uint32
		from, before record.Time
		want         bool
	}{{5, 20, 21, true}, {5, 21, 30, false}, {5, 0, 20, false}, {4, 0, 99, false}, {6, 0, 99, false}, {7, 0, 99, false}} {
		if got := s.LostResponse(c.seq, c.from, c.before); got != c.want {
			t.Errorf("response %d, sent from %d, before %d: %t", c.seq, c.from, c.before, got)
		}
	}
	if s = nil; s.LostResponse(5, 0, 99) {
		t.Error("no sender lost a response")
	}
}

// none shows no gap.
type none struct{}

func (none) GapShown(uint32) bool { return false }

// TestReadTimes: when a Read was done at both ends.
func TestReadTimes(t *testing.T) {
	for name, c := range map[string]struct {
		play func(r *ReadTimes)
		want string
	}{
		"in order": {func(r *ReadTimes) {
			r.Deliver(2)
			r.Deliver(3)
			for i := range int64(3) {
				p := left(10 + i)
				r.Respond(&p)
				r.Arrive(i, i == 2, true, record.Time(20+i))
			}
		}, "2 10 22 false"},
		"a response is missing": {func(r *ReadTimes) {
			r.Arrive(0, false, true, 20)
			r.Arrive(2, true, true, 22)
		}, "0 0 0 false"},
		"requested again": {func(r *ReadTimes) {
			r.Arrive(0, false, true, 20)
			r.Arrive(1, true, true, 21)
			r.Expect(2)
			r.Expect(1)
			r.Arrive(0, false, true, 29)
			r.Arrive(1, true, true, 30)
		}, "0 0 30 false"},
		"the rest is requested, which has come": {func(r *ReadTimes) {
			r.Arrive(0, true, true, 20)
			r.Expect(1)
		}, "0 0 20 false"},
		"one end": {func(r *ReadTimes) {
			p := arrived()
			r.Respond(&p)
			r.Arrive(0, true, true, 20)
		}, "0 0 20 true"},
		"the other end":        {func(r *ReadTimes) { r.Arrive(0, true, false, 20) }, "0 0 20 true"},
		"lost behind a switch": {func(r *ReadTimes) { p := passing(gone(9)); r.Respond(&p) }, "0 0 0 true"},
		"the network's copy":   {func(r *ReadTimes) { p := copied(arrived()); r.Respond(&p) }, "0 0 0 false"},
		"an earlier response": {func(r *ReadTimes) {
			for _, n := range []int64{10, 9, 11} {
				p := left(n)
				r.Respond(&p)
			}
		}, "0 9 0 false"},
		"a stream": {func(r *ReadTimes) {
			r.ArriveInOrder(10, 20, true, true)
			r.ArriveInOrder(9, 21, true, true)
			r.ArriveInOrder(11, 22, true, true)
		}, "0 9 22 false"},
		"a stream, one end":       {func(r *ReadTimes) { r.ArriveInOrder(10, 20, false, true) }, "0 0 20 true"},
		"a stream, the other end": {func(r *ReadTimes) { r.ArriveInOrder(10, 20, true, false) }, "0 10 20 true"},
		"a stream, both at once": {func(r *ReadTimes) {
			r.ArriveInOrder(10, 20, true, false)
			r.ArriveInOrder(11, 21, true, true)
		}, "0 10 21 true"},
	} {
		var r ReadTimes
		c.play(&r)
		if got := fmt.Sprint(int64(r.Delivered), int64(r.Responded), int64(r.Done), r.OneSided); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	(*ReadTimes)(nil).Expect(1)
}
