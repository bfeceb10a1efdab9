package cause

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

const ms = record.Time(1e6)

// gaps are the sequence numbers of which responses show that they are missing.
type gaps map[uint32]bool

func (g gaps) GapShown(seq uint32) bool { return g[seq] }

// script is what happens to a sender, one step after the other. Each step has a time in milliseconds.
type script struct {
	t     *testing.T
	s     Sender
	timer Timer
	gaps  gaps
	said  []string
}

func newScript(t *testing.T, c order.Circle, timer Timer) *script {
	return &script{t: t, s: NewSender(c, new(Numbers)), timer: timer, gaps: gaps{}}
}

// sends makes new requests with sequence numbers up to seq.
func (x *script) sends(at record.Time, seq uint32) *script {
	x.s.New(seq, at*ms)
	x.s.Busy = at * ms
	return x
}

func (x *script) nak(at record.Time, seq uint32, rnr bool) *script {
	x.s.Refused(Nak{Seq: seq, At: record.Stamp{Time: at * ms, Packet: int64(at)}, RNR: rnr})
	return x
}

func (x *script) acks(at record.Time) *script { x.s.Progress(at * ms); return x }
func (x *script) gap(seq uint32) *script      { x.gaps[seq] = true; return x }

// again retransmits the requests from one sequence number to another. It notes the number of the burst, its cause, the NAK,
// and the range of the burst.
func (x *script) again(at record.Time, from, to uint32) *script {
	a := Again{Run: order.Run{From: from, To: to}, At: record.Stamp{Time: at * ms, Packet: int64(at)}, Sent: at * ms, First: uint64(from), Timer: x.timer}
	b := x.s.Burst(&a, x.gaps)
	said := fmt.Sprintf("%d %s %d-%d", b.Number, b.Cause, b.From, b.Latest)
	if b.Nak.Packet != 0 {
		said += fmt.Sprintf(" nak@%d", b.Nak.Packet)
	}
	x.said = append(x.said, said)
	x.s.Busy = at * ms
	return x
}

func announced(n record.Time) Timer { return Timer{Announced: record.Some(n * ms)} }

// TestBursts: each retransmitted request belongs to a burst with a cause.
func TestBursts(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(*testing.T) *script
		want string
	}{
		{"nothing explains it", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6)
		}, "1 unknown 5-5"},
		{"a timer", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(501, 5, 6)
		}, "1 timeout 5-5"},
		{"not the timer yet", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(480, 5, 6)
		}, "1 unknown 5-5"},
		{"97 hundredths of the timer", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(486, 5, 6)
		}, "1 timeout 5-5"},
		{"no timer", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(0)).sends(1, 9).again(9000, 5, 6)
		}, "1 unknown 5-5"},
		{"a timer that is not known", func(t *testing.T) *script { return newScript(t, order.PSNs, Timer{}).sends(1, 9).again(101, 5, 6) }, "1 timeout 5-5"},
		{"sooner than a timer that is not known", func(t *testing.T) *script { return newScript(t, order.PSNs, Timer{}).sends(1, 9).again(100, 5, 6) }, "1 unknown 5-5"},
		{"the timer of a TCP", func(t *testing.T) *script {
			return newScript(t, order.Octets, Timer{TCP: true}).sends(1, 9).again(196, 5, 6)
		}, "1 timeout 5-5"},
		{"sooner than the timer of a TCP", func(t *testing.T) *script {
			return newScript(t, order.Octets, Timer{TCP: true}).sends(1, 9).again(195, 5, 6)
		}, "1 unknown 5-5"},
		{"an acknowledgement since the latest request", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).acks(300).again(501, 5, 6)
		}, "1 unknown 5-5"},
		{"a gap", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).gap(5).again(2, 5, 6)
		}, "1 gap 5-5"},
		{"a NAK of it", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, false).again(3, 5, 6)
		}, "1 nak 5-5 nak@2"},
		{"a NAK of an earlier one", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 4, false).again(3, 5, 6)
		}, "1 nak 5-5 nak@2"},
		{"a NAK of a later one", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 6, false).again(3, 5, 6)
		}, "1 unknown 5-5"},
		{"a NAK, and then the timer", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, false).again(501, 5, 6)
		}, "1 timeout 5-5 nak@2"},
		{"an RNR NAK", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, true).again(3, 5, 6)
		}, "1 rnr_nak 5-5 nak@2"},
		{"an RNR NAK comes before the timer", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, true).again(501, 5, 6)
		}, "1 rnr_nak 5-5 nak@2"},
		{"an RNR NAK of an earlier one", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 4, true).again(3, 5, 6)
		}, "1 unknown 5-5"},
		{"a burst goes on", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, false).again(3, 5, 6).again(3, 6, 7).again(20, 7, 8)
		}, "1 nak 5-5 nak@2, 1 nak 5-6 nak@2, 1 nak 5-7 nak@2"},
		{"a burst with a gap goes on soon", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(3, 8, 9)
		}, "1 unknown 5-5, 1 unknown 5-8"},
		{"not after a while", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(12, 8, 9)
		}, "1 unknown 5-5, 2 unknown 8-8"},
		{"a request that the burst lacks", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(3, 8, 9).again(3, 6, 7)
		}, "1 unknown 5-5, 1 unknown 5-8, 1 unknown 5-6"},
		{"a request that the burst has", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(2, 6, 7).again(3, 5, 6)
		}, "1 unknown 5-5, 1 unknown 5-6, 2 unknown 5-5"},
		{"a request before the burst", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(3, 4, 5)
		}, "1 unknown 5-5, 1 unknown 4-4"},
		{"a request before the burst, which a gap explains", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).gap(4).again(3, 4, 5)
		}, "1 unknown 5-5, 2 gap 4-4"},
		{"what the burst lacks does not move its end", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(3, 4, 5).again(20, 6, 7)
		}, "1 unknown 5-5, 1 unknown 4-4, 1 unknown 4-6"},
		{"a NAK while a burst goes on", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).nak(2, 6, false).again(2, 6, 7)
		}, "1 unknown 5-5, 1 unknown 5-6"},
		{"a NAK, and a pause", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).nak(3, 6, false).again(4, 6, 7)
		}, "1 unknown 5-5, 2 nak 6-6 nak@3"},
		{"no gap in a burst while a NAK is open", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).nak(3, 9, false).again(3, 8, 9)
		}, "1 unknown 5-5, 2 unknown 8-8"},
		{"the timer ends a burst", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).again(2, 5, 6).again(502, 6, 7)
		}, "1 unknown 5-5, 2 timeout 6-6"},
		{"a new request after a while ends a burst", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 5).again(2, 5, 6).sends(20, 6).again(21, 6, 7)
		}, "1 unknown 5-5, 2 unknown 6-6"},
		{"a new request at once does not", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 5).again(2, 5, 6).sends(3, 6).again(4, 6, 7)
		}, "1 unknown 5-5, 1 unknown 5-6"},
		{"nor one below its end", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 5).again(2, 5, 6).sends(20, 5).again(21, 6, 7)
		}, "1 unknown 5-5, 1 unknown 5-6"},
		{"a new request before all bursts", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(20, 5).again(21, 5, 6).again(22, 6, 7)
		}, "1 unknown 5-5, 1 unknown 5-6"},
		{"a NAK is followed by one burst", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, false).again(3, 5, 6).sends(20, 9).again(21, 7, 8)
		}, "1 nak 5-5 nak@2, 2 unknown 7-7"},
		{"a NAK that another one follows", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, false).nak(3, 8, false).again(4, 5, 6).sends(20, 9).again(21, 8, 9)
		}, "1 nak 5-5 nak@2, 2 nak 8-8 nak@3"},
		{"a timer answers both NAKs", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 9).nak(2, 5, false).nak(3, 8, false).again(504, 4, 5).sends(520, 9).again(521, 8, 9)
		}, "1 timeout 4-4, 2 unknown 8-8"},
		{"sequence numbers wrap", func(t *testing.T) *script {
			return newScript(t, order.PSNs, announced(500)).sends(1, 1).again(2, 1<<24-1, 0).again(3, 0, 1)
		}, "1 unknown 16777215-16777215, 1 unknown 16777215-0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(tt.make(t).said, ", "); got != strings.NewReplacer(
				"unknown", string(record.RetransmitUnknown), "timeout", string(record.RetransmitTimeout), "gap", string(record.RetransmitGap),
				"rnr_nak", string(record.RNRNak), " nak ", " "+string(record.RetransmitNak)+" ",
			).Replace(tt.want) {
				t.Errorf("bursts %s, want %s", got, tt.want)
			}
		})
	}
}

// TestBurst: a burst has the time since the latest request, the announced timer, and the tag of its first request.
func TestBurst(t *testing.T) {
	s := NewSender(order.PSNs, new(Numbers))
	s.Busy = 3 * ms
	for _, timer := range []Timer{announced(7), {}} {
		b := s.Burst(&Again{Run: order.One(5), At: record.Stamp{Time: 9 * ms, Packet: 4}, Sent: 8 * ms, First: 6, Timer: timer}, gaps{})
		want := record.Opt[int64]{}
		if n, known := timer.Announced.Get(); known {
			want = record.Some(int64(n))
		}
		if b.Idle != 5*ms || b.Timer != want || b.First != 6 || b.At.Packet != 4 {
			t.Errorf("idle %d, timer %v, first %d, at %d", b.Idle, b.Timer, b.First, b.At.Packet)
		}
		s.New(50, 30*ms) // ends the burst
	}
}

// TestExpired: a timer runs from the latest request or acknowledgement, whichever is later.
func TestExpired(t *testing.T) {
	s := NewSender(order.PSNs, new(Numbers))
	s.Busy = 10 * ms
	for _, progress := range []record.Time{5, 20} {
		s.Progress(progress * ms)
		from := max(progress, 10)
		if s.Expired((from+6)*ms, announced(7)) || !s.Expired((from+7)*ms, announced(7)) {
			t.Errorf("the timer does not run from %d ms on", from)
		}
	}
}

// TestAnswered: the highest response counts, on the circle of sequence numbers.
func TestAnswered(t *testing.T) {
	s := NewSender(order.PSNs, new(Numbers))
	if s.AnsweredBeyond(1 << 23) { // 0 is beyond it, and was not answered
		t.Error("a response without any")
	}
	s.Answered(1<<24 - 1)
	s.Answered(2)
	s.Answered(1)
	for seq, want := range map[uint32]bool{0: true, 1: true, 2: false, 3: false} {
		if got := s.AnsweredBeyond(seq); got != want {
			t.Errorf("answered beyond %d: %t", seq, got)
		}
	}
}

// TestGaps: the sender of a TCP stream knows of a gap from the first acknowledgement that shows it until the next one of
// something new. The latest gaps are remembered.
func TestGaps(t *testing.T) {
	s := NewSender(order.Octets, new(Numbers))
	knew := func(want string) {
		t.Helper()
		got := ""
		for at := record.Time(1); at < 10; at++ {
			if s.KnewOfGap(at) {
				got += strconv.Itoa(int(at))
			}
		}
		if got != want {
			t.Errorf("the sender knew of gaps at %q, want %q", got, want)
		}
	}
	knew("")
	s.Progress(1)
	knew("")
	s.ShowsGap(3)
	s.ShowsGap(4)
	knew("3456789")
	s.Progress(6)
	s.Progress(7)
	knew("345")
	s.ShowsGap(8)
	knew("34589")
	s.Progress(9)
	knew("3458")
}

// TestLacked: a NAK of a request or of an earlier one, or an acknowledgement in a TCP stream that shows a gap, says that the receiver
// lacks the request, from a time on.
func TestLacked(t *testing.T) {
	nak := func(seq uint32, rnr bool) func(s *Sender) {
		return func(s *Sender) { s.Refused(Nak{Seq: seq, At: record.Stamp{Time: 5, Packet: 1}, RNR: rnr}) }
	}
	shows := func(at record.Time) func(s *Sender) { return func(s *Sender) { s.ShowsGap(at) } }
	for name, c := range map[string]struct {
		happens []func(s *Sender)
		since   record.Time
		want    bool
	}{
		"nothing":                       {},
		"a NAK of it":                   {[]func(*Sender){nak(7, false)}, 5, true},
		"a NAK of an earlier one":       {[]func(*Sender){nak(6, false)}, 0, true},
		"a NAK of a later one":          {[]func(*Sender){nak(8, false)}, 0, false},
		"a NAK before that time":        {[]func(*Sender){nak(7, false)}, 6, false},
		"an RNR NAK":                    {[]func(*Sender){nak(7, true)}, 0, false},
		"a gap":                         {[]func(*Sender){shows(5)}, 5, true},
		"a gap before that time":        {[]func(*Sender){shows(5)}, 6, false},
		"a gap that is shown again":     {[]func(*Sender){shows(5), shows(8)}, 6, true},
		"a gap that has been filled":    {[]func(*Sender){shows(5), func(s *Sender) { s.Progress(6) }}, 0, false},
		"another gap after one of them": {[]func(*Sender){shows(5), func(s *Sender) { s.Progress(6) }, shows(7)}, 6, true},
	} {
		s := NewSender(order.Octets, new(Numbers))
		for _, happen := range c.happens {
			happen(&s)
		}
		if got := s.Lacked(7, c.since); got != c.want {
			t.Errorf("%s: lacked since %d: %t", name, c.since, got)
		}
	}
}

// TestExhausted: a sender stops after three retransmissions of the oldest request that is not acknowledged.
func TestExhausted(t *testing.T) {
	type retry struct {
		seq   uint32
		acked bool
	}
	for _, tt := range []struct {
		retries []retry
		want    int64
	}{
		{[]retry{{5, false}, {5, false}}, 2},
		{[]retry{{5, false}, {5, false}, {5, false}}, 3},
		{[]retry{{5, false}, {6, false}, {5, false}, {6, false}, {5, false}}, 3},
		{[]retry{{5, false}, {5, false}, {4, false}}, 1},
		{[]retry{{5, false}, {5, false}, {5, true}}, 0},
	} {
		s := NewSender(order.PSNs, new(Numbers))
		at, last := record.Stamp{}, record.Stamp{}
		for _, r := range tt.retries {
			at.Packet++
			if s.Retry(r.seq, r.acked, at); !r.acked && (r.seq <= 5) {
				last = at
			}
		}
		repeats, latest, exhausted := s.Exhausted()
		if repeats != tt.want || exhausted != (tt.want >= 3) || tt.want > 0 && latest != last {
			t.Errorf("%v: %d retransmissions, the latest at %d, exhausted: %t", tt.retries, repeats, latest.Packet, exhausted)
		}
		if s.Progress(1); tt.want > 0 {
			if repeats, _, _ := s.Exhausted(); repeats != 0 {
				t.Errorf("%v: %d retransmissions after progress", tt.retries, repeats)
			}
		}
	}
}
