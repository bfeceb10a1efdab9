package dissect_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
	"github.com/rdmadump/rdmadump/synth/cases"
)

var update = flag.Bool("update", false, "rewrite testdata/gaps.txt")

// gapMakers put a gap into the capture of a connection right after its handshake. Each is for one
// side, or with sides false for the connection.
var gapMakers = []struct {
	name  string
	sides bool
	make  func(w *synth.Wire, c *synth.Conn, s *synth.Side)
}{
	{"no handshake", false, func(w *synth.Wire, c *synth.Conn, _ *synth.Side) {
		w.Keep(func(f *synth.Frame) bool { return f.From.Conn != c })
	}},
	{"no private data", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		// The private data ends 4 bytes before the frame, and of 196 bytes in a REP, or
		// 92 in a REQ, the first 8 are used.
		missing := 8
		if !c.IWARP() {
			if missing = 96; s == c.Server {
				missing = 200
			}
		}
		for _, f := range w.Frames {
			if f.From == s && (!c.IWARP() || strings.Contains(string(f.Data), "MPA ID")) {
				f.Truncate(f.Length - missing)
			}
		}
	}},
	{"late", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) { without1(w, c, s) }},
	{"missing", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		c.RPC(synth.Null(), oneCredit)
		without1(w, c, s)
		c.RPC(synth.Null(), oneCredit)
	}},
	{"missing, and 2 s later", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		c.RPC(synth.Null(), oneCredit)
		without1(w, c, s)
		w.Advance(2 * time.Second)
		c.RPC(synth.Null(), oneCredit)
	}},
	{"acknowledged, but not captured", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		c.RPC(synth.Null(), oneCredit)
		lost := s.Write(0xdead, 0, data100)
		s.Peer.Ack()
		w.Drop(lost...)
	}},
	{"no handshake message", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		first := true
		w.Keep(func(f *synth.Frame) bool {
			if f.From.Conn == c && f.From == s && first {
				first = false
				return false
			}
			return true
		})
	}},
	{"silent", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		c.RPC(synth.Null(), oneCredit)
		mark := len(w.Frames)
		for range 17 {
			s.Peer.Write(0xdead, 0, data100)
		}
		sent := slices.Clone(w.Frames[mark:])
		w.Keep(func(f *synth.Frame) bool { return f.From != s || !slices.Contains(sent, f) })
	}},
	{"a message truncated", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		for _, f := range s.Call(synth.Call{XID: 0xe0}.Offer(synth.Mem(0xe1, 100), synth.Mem(0xe2, 100))) {
			f.Truncate(f.Length - 60)
		}
	}},
	{"a message truncated before its XID", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		for _, f := range s.Call(synth.Null()) {
			f.Truncate(f.Length - 70)
		}
	}},
	{"a truncated Call retransmitted", false, func(w *synth.Wire, c *synth.Conn, _ *synth.Side) {
		call := c.Client.Call(synth.Null())
		for _, f := range call {
			f.Truncate(f.Length - 20)
		}
		w.Retransmit(call...)
		c.Server.Reply(oneCredit)
	}},
	{"a Reply truncated", true, func(_ *synth.Wire, c *synth.Conn, s *synth.Side) {
		call := synth.Call{XID: 0xe0}.Offer(synth.Mem(0xe1, 100), synth.Mem(0xe2, 100))
		s.Peer.Call(call)
		for _, f := range s.Reply(oneCredit.To(call)) {
			f.Truncate(f.Length - 60)
		}
	}},
	{"an XID reused", true, func(_ *synth.Wire, c *synth.Conn, s *synth.Side) {
		s.Call(synth.Call{XID: 0xe0, Program: 100003, Version: 3})
		s.Call(synth.Call{XID: 0xe0, Program: 100003, Version: 3, Procedure: 1})
	}},
	{"unordered", false, func(w *synth.Wire, c *synth.Conn, _ *synth.Side) {
		call := c.Client.Call(synth.Null())
		reply := c.Server.Reply(oneCredit)
		w.Swap(call[0], reply[len(reply)-1])
	}},
	{"a bad checksum", true, func(w *synth.Wire, c *synth.Conn, s *synth.Side) {
		call := s.Call(synth.Null())
		w.Retransmit(call...)
		for _, f := range call {
			f.Data = slices.Clone(f.Data)
			f.Data[len(f.Data)-20] ^= 1
		}
		s.Peer.Reply(oneCredit)
	}},
	{evicted, false, func(_ *synth.Wire, c *synth.Conn, _ *synth.Side) {
		for i := range uint32(300) {
			c.Client.Call(synth.Call{XID: 0xe000 + i}.Offer(synth.Mem(0xe000+i, 100)))
			c.Server.Ack()
		}
	}},
	{"closing", true, func(_ *synth.Wire, c *synth.Conn, s *synth.Side) {
		if c.IWARP() {
			s.FIN()
		} else {
			s.DREQ()
		}
	}},
}

// With this memory, in bytes, the connection with the gap evicted loses state.
const (
	evicted  = "evicted"
	fewBytes = 256 << 10
)

// oneCredit grants one credit, so that a violation of the grant is one with the gap, too.
var oneCredit = synth.Reply{Credits: 1}

var data100 = []byte(strings.Repeat("0123456789", 10))

// without1 makes an RPC whose message from a side is not in the capture.
func without1(w *synth.Wire, c *synth.Conn, s *synth.Side) {
	call, reply := c.Client.Call(synth.Null()), c.Server.Reply(oneCredit)
	for _, f := range append(slices.Clone(call), reply...) {
		if f.From == s && len(f.Data) > 100 {
			w.Drop(f)
		}
	}
}

// verdictOf returns why the violation in a case is not reported: the reason in the summary, or
// "no reason" if the summary has none. It returns "" if the violation is reported.
func verdictOf(c *cases.Case, transport string, memory int64, established func(*synth.Wire, *synth.Conn)) string {
	w := synth.New()
	type span struct{ from, to int64 }
	var made []span // the times of the frames that make gaps
	w.Established = func(c *synth.Conn) {
		from := w.Now
		established(w, c)
		made = append(made, span{from, w.Now})
	}
	c.Play(w, transport, true)
	var found []record.Finding
	d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
		packet, known := f.Packet.Get()
		if !known || !slices.ContainsFunc(made, func(s span) bool { at := w.Frames[packet-1].Time; return s.from <= at && at < s.to }) {
			found = append(found, *f)
		}
		return nil
	}}, dissect.Options{Memory: memory})
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	s, _ := d.Finish()
	if caught(c, found) {
		return ""
	}
	said := "no reason"
	if slices.ContainsFunc(found, func(f record.Finding) bool { return f.Rule == c.Rule && f.Severity == record.Error }) {
		said = "nobody at fault"
	}
	for _, n := range s.NotJudged {
		if n.Rule == c.Rule {
			said = n.Gap
		}
	}
	return said
}

// gapsOf returns a line for each reason why the violation in a case is not reported, with the gaps
// that have this effect.
func gapsOf(t *testing.T, c *cases.Case, transport string) string {
	t.Helper()
	if said := verdictOf(c, transport, 0, func(*synth.Wire, *synth.Conn) {}); said != "" {
		t.Errorf("%s, %s, %s: not reported without a gap: %s", c.Rule, c.Name, transport, said)
	}
	effects := map[string][]string{}
	for _, m := range gapMakers {
		for _, side := range []string{"client", "server"} {
			name := m.name + " (" + side + ")"
			if !m.sides {
				if name = m.name; side == "server" {
					continue
				}
			}
			memory := int64(0)
			if m.name == evicted {
				memory = fewBytes
			}
			said := verdictOf(c, transport, memory, func(w *synth.Wire, c *synth.Conn) {
				s := c.Client
				if side == "server" {
					s = c.Server
				}
				m.make(w, c, s)
			})
			effects[said] = append(effects[said], name)
		}
	}
	delete(effects, "")
	var b strings.Builder
	for _, said := range slices.Sorted(maps.Keys(effects)) {
		fmt.Fprintf(&b, "  %s: %s\n", said, strings.Join(effects[said], ", "))
	}
	return b.String()
}

// TestGaps compares which gaps of a capture prevent that the violation of a case is reported with
// testdata/gaps.txt, which -update rewrites. A rule that needs more or less of a capture than before
// changes that file.
func TestGaps(t *testing.T) {
	const golden = "testdata/gaps.txt"
	var b strings.Builder
	b.WriteString("The gaps because of which the violation in a case of synth/cases is not reported, by the reason\n" +
		"in summary.not_judged. The summary has no reason if the violation is not recognized.\n")
	for _, c := range cases.All() {
		if c.HalfOpen { // There is no time between its handshake and its violation.
			continue
		}
		effects := map[string]string{}
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if c.On(transport) {
				effects[transport] = gapsOf(t, &c, transport)
			}
		}
		if effects[cases.RoCE] == effects[cases.IWARP] {
			effects = map[string]string{"both transports": effects[cases.RoCE]}
		}
		for _, transport := range slices.Sorted(maps.Keys(effects)) {
			fmt.Fprintf(&b, "\n%s, %s, %s\n%s", c.Rule, c.Name, transport, effects[transport])
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("go test ./dissect -run TestGaps -update accepts these changes:\n%s", diff.Diff(golden, want, "now", []byte(b.String())))
	}
}

// unneeded lists the needs of rules that no case of TestGaps depends on, with the reason.
var unneeded = map[string]string{
	"inline-threshold-exceeded connection no_handshake":      "without the private data there is no threshold",
	"inline-threshold-exceeded connection no_private_data":   "without the private data there is no threshold",
	"receive-too-small connection no_handshake":              "without the private data there is no threshold",
	"receive-too-small connection no_private_data":           "without the private data there is no threshold",
	"reply-chunk-missing connection no_handshake":            "without the private data there is no threshold",
	"reply-chunk-missing connection no_private_data":         "without the private data there is no threshold",
	"invalidation-not-negotiated connection no_handshake":    "without the private data it is unknown what was negotiated",
	"invalidation-not-negotiated connection no_private_data": "without the private data it is unknown what was negotiated",
	"backward-with-chunks connection no_handshake":           "without the handshake it is unknown which side is the client",
	"backward-not-msg connection no_handshake":               "without the handshake it is unknown which side is the client",
	"error-unknown-xid other no_handshake":                   "the check reports rdma-error instead",
	"receive-not-posted connection closing":                  "the check does not regard a NAK after the end as one of a Receive",
	"receive-not-posted connection unordered":                "with packets out of order, who used the buffer is unknown, and there is no finding",
	"call-not-answered own awaited":                          "the finding is reported at the end, when nothing is awaited",
	"short-message-dropped own no_handshake":                 "without the handshake it is unknown which side is the client",
}

// TestNeeds: each need of each rule prevents a finding of a case of TestGaps, except for the needs
// in unneeded. A gap of the connection, or a packet that is awaited, is of both sides, and so are
// the needs for it. With -all, the test includes both transports.
func TestNeeds(t *testing.T) {
	both := rule.Evicted | rule.NoHandshake | rule.Unordered | rule.TruncatedAgain | rule.Closing | rule.Awaited
	all := cases.All()
	for _, r := range rule.All {
		own := slices.DeleteFunc(slices.Clone(all), func(c cases.Case) bool { return c.Rule != r.ID || c.HalfOpen })
		effects := func(c *cases.Case) (list []string) {
			for _, transport := range []string{cases.RoCE, cases.IWARP} {
				if c.On(transport) && (transport == cases.RoCE || c.Transport == transport || testkit.All()) {
					list = append(list, gapsOf(t, c, transport))
				}
			}
			return list
		}
		before := map[string][]string{}
		for i := range own {
			before[own[i].Name] = effects(&own[i])
		}
		needs := r.Needs
		sets := []*rule.Gap{&r.Needs.Own, &r.Needs.Other, &r.Needs.Connection}
		for i, set := range sets {
			for g := rule.Gap(1); g != 0; g <<= 1 {
				if *set&g == 0 {
					continue
				}
				for j, other := range sets {
					if i == j || g&both != 0 {
						*other &^= g
					}
				}
				matters := slices.ContainsFunc(own, func(c cases.Case) bool { return !slices.Equal(effects(&c), before[c.Name]) })
				name := r.ID + " " + []string{"own", "other", "connection"}[i] + " " + g.Name()
				if _, known := unneeded[name]; matters == known {
					t.Errorf("%s: whether the need matters: %t", name, matters)
				}
				r.Needs = needs
			}
		}
	}
}

// TestGapBeforeDelivery: a finding about a truncated Send waits until the Send was delivered. If a
// packet turns out to be missing before, it is not reported: the packet may have been another copy.
func TestGapBeforeDelivery(t *testing.T) {
	for _, missing := range []bool{false, true} {
		w := synth.New()
		c := w.RoCE(synth.Options{ManualAck: true})
		c.Connect()
		for _, f := range c.Client.Call(synth.Call{Vers: 3}) {
			f.Truncate(f.Length - 4)
		}
		second := c.Client.Call(synth.Null())
		c.Client.Call(synth.Null())
		if missing {
			w.Drop(second...)
		}
		c.Server.Ack()
		var found []string
		d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
			found = append(found, f.Rule)
			return nil
		}}, dissect.Options{})
		for f := range testkit.Made(w.Frames) {
			d.Frame(f)
		}
		s, _ := d.Finish()
		dropped := slices.ContainsFunc(s.NotJudged, func(n record.NotJudged) bool { return n.Rule == "rdma-version" && n.Gap == "missing" })
		if slices.Contains(found, "rdma-version") == missing || dropped != missing {
			t.Errorf("a packet is missing: %t; findings %q, not reported %+v", missing, found, s.NotJudged)
		}
	}
}

// TestGapAtEnd: packets that the receiver said to lack until the connection, or the capture, ended are not said to have been
// captured incompletely, because the network may have lost them, and neither is a packet that is in its place with a bad ICRC. But they
// prevent findings about what follows them. If an acknowledgement covers them, or if nothing shows that the receiver lacked them, they
// count as not captured.
func TestGapAtEnd(t *testing.T) {
	for _, end := range []string{"connection", "capture"} {
		for _, last := range []string{"lacked", "acknowledged", "silent", "damaged", "damaged and acknowledged"} {
			look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
				c.Connect()
				c.RPC(synth.Null(), oneCredit)
				c.Client.Ack()
				c.Server.Ack()
				acked, psn := c.Server.Acked, c.Client.NextPSN
				gone := c.Client.Call(synth.Null())
				c.Client.Call(synth.Null())
				if damaged := strings.HasPrefix(last, "damaged"); damaged && !c.IWARP() {
					gone[0].Data[len(gone[0].Data)-1] ^= 1 // a bit of the ICRC
				} else if w.Drop(gone...); damaged {
					return
				}
				switch {
				case last == "acknowledged", last == "damaged and acknowledged":
					c.Server.Ack()
				case last == "silent", last == "damaged":
				case c.IWARP():
					c.Server.Acked = acked
					c.Server.TCP(0x10, nil)
				default:
					c.Server.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(psn))
				}
				switch {
				case end == "capture":
				case c.IWARP():
					c.Client.RST()
				default:
					c.Disconnect(c.Client)
				}
				var rules []string
				calls, want := 0, int64(1)
				if last == "lacked" || last == "damaged" {
					want = 0
				}
				d := dissect.New(dissect.Handler{
					Finding: func(f *record.Finding) error {
						rules = append(rules, f.Rule)
						return nil
					},
					Connection: func(r *record.Connection) error {
						if r.NotCaptured != want {
							t.Errorf("end of the %s, %s: %d packets of the connection not captured, want %d", end, last, r.NotCaptured, want)
						}
						return nil
					},
					Transaction: func(r *record.Transaction) error {
						calls++
						return nil
					},
				}, dissect.Options{})
				for f := range testkit.Made(w.Frames) {
					d.Frame(f)
				}
				s, _ := d.Finish()
				if incomplete := slices.Contains(rules, "capture-incomplete"); s.NotCaptured != want || incomplete != (want == 1) || calls != 2 {
					t.Errorf("end of the %s, %s: %d packets not captured, want %d; findings %q; %d RPCs, want 2", end, last, s.NotCaptured, want, rules, calls)
				}
			})
		}
	}
}

// TestDamagedAtEnd: a request that captures at both ends show damaged is not missing from the capture if the connection ended
// before a good copy came.
func TestDamagedAtEnd(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	c.RPC(synth.Null(), oneCredit)
	c.Client.Ack()
	c.Server.Ack()
	damaged := c.Client.Call(synth.Null())[0]
	damaged.Data[len(damaged.Data)-1] ^= 1 // a bit of the ICRC
	c.Client.Call(synth.Null())
	c.Disconnect(c.Client)
	s := look.AtBothEnds(t, w, nil, damaged)
	if s.Summary.NotCaptured != 0 || strings.Contains(s.Rules(), "capture-incomplete") {
		t.Errorf("%d packets not captured; findings %q", s.Summary.NotCaptured, s.Rules())
	}
}

// TestNothingClosesGap: a packet that was lost on the way closed no gap, nor did the end of the connection.
func TestNothingClosesGap(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	c.RPC(synth.Null(), oneCredit)
	c.Client.Ack()
	c.Server.Ack()
	psn := c.Client.NextPSN
	gone := c.Client.Call(synth.Null())
	c.Client.Call(synth.Null())
	c.Server.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(psn))
	c.Disconnect(c.Client)
	check := func(from string, events []record.Event) (after int) {
		for _, e := range events {
			if e.Event == record.EventOutOfOrder {
				if after++; e.LastPacket.Known() {
					t.Errorf("%s: packet %d is said to have closed the gap", from, e.LastPacket.Or(0))
				}
			}
		}
		return after
	}
	got := look.AtBothEnds(t, w, map[*synth.Frame]bool{gone[0]: true}).Transactions
	after := 0
	for i := range got {
		after += check("both ends", got[i].Timeline)
	}
	w.Drop(gone...)
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		after += check("one end", r.Timeline)
		return nil
	}}, dissect.Options{})
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	d.Finish()
	if after != 2 {
		t.Errorf("%d packets came after a gap, want one at both ends, and one at one end", after)
	}
}
