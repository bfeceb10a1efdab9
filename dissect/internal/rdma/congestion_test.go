package rdma_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// pauseFrame returns a frame of priority flow control of a port, for one class; the MAC addresses of the hosts of synthetic connections
// end in 1 (client) and 2 (server).
func pauseFrame(port byte, class int, quanta uint16) []byte {
	frame := make([]byte, 60)
	copy(frame, []byte{0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, port, 0x88, 0x08, 0x01, 0x01, 0, 1 << class})
	binary.BigEndian.PutUint16(frame[18+2*class:], quanta)
	return frame
}

// TestCongestion: the signals of congestion while an RPC lasts are those of its connection, on both transports, and each is passed to the
// handler. A capture at the server proves that it took the time only if no link was paused meanwhile.
func TestCongestion(t *testing.T) {
	const ms = time.Millisecond
	pause := func(port byte, class int, quanta uint16) func(w *synth.Wire, c *synth.Conn) {
		return func(w *synth.Wire, _ *synth.Conn) { w.Other(synth.LinkEthernet, pauseFrame(port, class, quanta)) }
	}
	for _, x := range []struct {
		name          string
		before, while func(w *synth.Wire, c *synth.Conn) // before the Call, and 20 ms after it
		want          record.Meanwhile                   // without round trips and ECN
		blamed        bool
		text          string
		signals       [3]int // CE, CNP, pauses
	}{
		{"nothing", nil, nil, record.Meanwhile{}, true, "The server took ", [3]int{}},
		{
			"a switch pauses class 3", nil, pause(9, 3, 0xffff),
			record.Meanwhile{Pauses: 1, PausePort: record.Some(record.PausedByOther), PausedNS: record.Some(record.Bounds{Min: 83_884, Max: 3_355_392})},
			false, "1 frame of another port, such as a switch's, paused a link meanwhile, for 83.9 us to 3.36 ms (PFC).",
			[3]int{2: 1},
		},
		{
			"a switch pauses class 5", nil, pause(9, 5, 0xffff),
			record.Meanwhile{Pauses: 1, PausePort: record.Some(record.PausedByOther), PausedNS: record.Some(record.Bounds{Min: 83_884, Max: 3_355_392})},
			false, "The server, or a paused link, took ",
			[3]int{2: 1},
		},
		{
			"the client's port", nil, pause(1, 3, 1000),
			record.Meanwhile{Pauses: 1, PausePort: record.Some(record.PausedByClient), PausedNS: record.Some(record.Bounds{Min: 1280, Max: 51_200})},
			false, "1 frame of the client's port paused a link meanwhile, for 1.3 us to 51.2 us (PFC).",
			[3]int{2: 1},
		},
		{
			"the server's port", nil, pause(2, 3, 1000),
			record.Meanwhile{Pauses: 1, PausePort: record.Some(record.PausedByServer), PausedNS: record.Some(record.Bounds{Min: 1280, Max: 51_200})},
			false, "1 frame of the server's port paused a link meanwhile",
			[3]int{2: 1},
		},
		{
			"both ports", nil, func(w *synth.Wire, c *synth.Conn) { pause(1, 3, 1000)(w, c); pause(2, 5, 1000)(w, c) },
			record.Meanwhile{Pauses: 2, PausePort: record.Some(record.PausedBySeveral), PausedNS: record.Some(record.Bounds{Min: 2280, Max: 52_200})},
			false, "2 frames paused a link meanwhile, for 2.3 us to 52.2 us (PFC).",
			[3]int{2: 2},
		},
		{
			"a pause of before", pause(9, 3, 0xffff), nil,
			record.Meanwhile{PausedNS: record.Some(record.Bounds{Min: 82_884, Max: 3_354_392})},
			false, "A link was still paused by an earlier frame, for 82.9 us to 3.35 ms (PFC).",
			[3]int{2: 1},
		},
		{"the end of pauses", nil, pause(9, 3, 0), record.Meanwhile{}, true, "The server took ", [3]int{}},
		{
			"marks and notifications", nil, func(_ *synth.Wire, c *synth.Conn) {
				c.Client.TOS, c.Server.TOS = 3, 2
				if !c.IWARP() {
					c.Server.CNP()
				}
				c.Client.Call(synth.Getattr3())
			}, record.Meanwhile{CEToServer: 1}, true, "The server took ", [3]int{1},
		},
		{
			"a flipped bit in the place of FECN, which no ICRC covers", nil, func(w *synth.Wire, c *synth.Conn) {
				if c.Client.Call(synth.Getattr3()); !c.IWARP() {
					w.Last().Data[14+20+8+4] ^= 0x80
				}
			}, record.Meanwhile{}, true, "The server took ", [3]int{},
		},
	} {
		for _, transport := range []string{"RoCE", "iWARP"} {
			w := synth.New()
			c := w.RoCE(synth.Options{})
			if transport == "iWARP" {
				c = w.IWARP(synth.Options{})
			}
			c.Connect()
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			if x.before != nil {
				x.before(w, c)
			}
			call := synth.Getattr3()
			call.XID = 0x77
			c.Client.Call(call)
			w.Advance(20 * ms)
			if x.while != nil {
				x.while(w, c)
			}
			c.Client.TOS, c.Server.TOS = 0, 0
			w.Advance(80 * ms)
			reply := synth.Getattr3Reply()
			reply.XID = 0x77
			c.Server.Reply(reply)
			c.Client.Ack()
			want := x.want
			signals := x.signals
			if x.signals[0] > 0 && !c.IWARP() {
				want.CNPFromServer, signals[1] = 1, 1
			}
			var got [3]int
			said, say := "", ""
			if signals[0]+signals[1] > 0 {
				say = fmt.Sprintf("the network was congested: receivers sent %d congestion notification packets, and switches marked %d packets", signals[1], signals[0])
			}
			var r *record.Transaction
			d := dissect.New(dissect.Handler{
				Signal: func(s record.Signal) error {
					got[s.Kind]++
					if id, known := s.Connection.Get(); known != (s.Kind != record.SignalPause) || id != 0 {
						t.Errorf("%s, %s: %+v", transport, x.name, s)
					}
					return nil
				},
				Finding: func(f *record.Finding) error {
					said += f.Message
					return nil
				},
				Transaction: func(v *record.Transaction) error {
					if v.XID == 0x77 {
						r = v.Clone()
					}
					return nil
				},
			}, dissect.Options{At: record.Position{Place: record.AtServer}})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			s, _ := d.Finish()
			m := r.Meanwhile.Or(record.Meanwhile{})
			m.RoundTrips, m.ECN = want.RoundTrips, want.ECN
			if ports := s.PausePorts; len(ports) != min(len(ports), 2) || (len(ports) > 0) != s.PausedNS.Known() || s.PFCPauses == 0 && len(ports) > 0 ||
				len(ports) == 1 && ports[0].Address.Known() != (x.want.PausePort == record.Some(record.PausedByClient) || x.want.PausePort == record.Some(record.PausedByServer)) {
				t.Errorf("%s, %s: ports %+v, paused for %+v", transport, x.name, ports, s.PausedNS)
			}
			cause := r.Cause.Or(record.Cause{})
			if m != want || got != signals || said != say || int64(signals[2]) != s.PFCPauses {
				t.Errorf("%s, %s: meanwhile %+v, signals %v, finding %q, want %+v, %v, %q", transport, x.name, m, got, said, want, signals, say)
			}
			if cause.Side.Known() != x.blamed || !strings.Contains(cause.Text, x.text) {
				t.Errorf("%s, %s: side %v: %s, want %s", transport, x.name, cause.Side, cause.Text, x.text)
			}
		}
	}
}

// TestDSCP: the differentiated services code points of a message are those of its own packet, also if it came out of order. A
// transport without an IP header has none.
func TestDSCP(t *testing.T) {
	transactions := func(frames iter.Seq[*capture.Frame]) (got string) {
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			got += fmt.Sprintf(" %v,%v", r.Call.DSCP.Any(), r.Reply.DSCP.Any())
			return nil
		}}, dissect.Options{})
		for f := range frames {
			d.Frame(f)
		}
		d.Finish()
		return got
	}
	for _, transport := range []string{"RoCE", "iWARP"} {
		w := synth.New()
		c := w.RoCE(synth.Options{IPv6: true})
		if transport == "iWARP" {
			c = w.IWARP(synth.Options{})
		}
		c.Connect()
		c.Client.TOS, c.Server.TOS = 26<<2|2, 10<<2
		c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		first, second := synth.Getattr3(), synth.Getattr3()
		first.XID, second.XID = 0x77, 0x78
		c.Client.Call(first)
		early := w.Last()
		c.Client.TOS = 46 << 2
		c.Client.Call(second)
		w.Swap(early, w.Last())
		for _, xid := range []uint32{0x77, 0x78} {
			reply := synth.Getattr3Reply()
			reply.XID = xid
			c.Server.Reply(reply)
		}
		if got, want := transactions(testkit.Made(w.Frames)), " 26,10 26,10 46,10"; got != want {
			t.Errorf("%s: DSCP%s, want%s", transport, got, want)
		}
	}
	frames, _ := testkit.Frames(t, filepath.Join(captures, "derived-rocev1-callback41.pcap.zst"))
	got := transactions(func(yield func(*capture.Frame) bool) {
		for i := range frames {
			if !yield(&frames[i]) {
				return
			}
		}
	})
	if n := strings.Count(got, " <nil>,<nil>"); n != 64 || len(got) != n*len(" <nil>,<nil>") {
		t.Errorf("RoCEv1: %d without DSCP, want 64 and no others:%s", n, got)
	}
}
