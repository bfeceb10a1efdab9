package rdma_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestSilences: a host is silent from the first packet that asks it for an answer until its next packet. A host of which no
// packet is in the capture is not silent, and neither is one that nobody asks.
func TestSilences(t *testing.T) {
	again := func(w *synth.Wire, frames []*synth.Frame, times int) {
		for range times {
			w.Advance(500 * time.Millisecond)
			w.Retransmit(frames...)
		}
	}
	for _, c := range []struct {
		name       string
		do         func(w *synth.Wire, c *synth.Conn)
		directions string
		packets    int64 // that the first silence had; 0 if there is none
		lasts      time.Duration
		ended      bool
	}{
		{"an answer after two seconds", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			again(w, c.Client.Call(synth.Getattr3()), 4)
			c.Server.Ack()
		}, "both", 5, 2 * time.Second, true},
		{"no answer", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			again(w, c.Client.Call(synth.Getattr3()), 4)
		}, "both", 5, 0, false},
		{"no answer, and nothing retransmitted", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			for range 4 {
				w.Advance(500 * time.Millisecond)
				c.Client.Call(synth.Getattr3())
			}
		}, "both", 0, 0, false},
		{"answers that were not captured", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			again(w, c.Client.Call(synth.Getattr3()), 4)
			lost := len(w.Frames)
			for range 3 {
				c.Server.Reply(synth.Getattr3Reply())
				c.Client.Call(synth.Getattr3())
			}
			again(w, c.Client.Call(synth.Getattr3()), 4)
			w.Frames = append(w.Frames[:lost], w.Frames[lost+6:]...)
			c.Server.Ack()
			c.Client.Ack()
		}, "both", 0, 0, false},
		{"answers on another connection", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			other := c.Another(synth.Options{})
			other.Connect()
			call := c.Client.Call(synth.Getattr3())
			for range 4 {
				again(w, call, 1)
				other.RPC(synth.Getattr3(), synth.Getattr3Reply())
			}
		}, "both", 0, 0, false},
		{"a host that nobody asks", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			w.Advance(time.Hour)
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
		}, "both", 0, 0, false},
		{"two questions at once", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			again(w, c.Client.Call(synth.Getattr3()), 1)
			w.Advance(time.Hour)
			c.Server.Ack()
		}, "both", 0, 0, false},
		{"the packets of the client alone", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			again(w, c.Client.Call(synth.Getattr3()), 4)
			w.Keep(func(f *synth.Frame) bool { return f.From == c.Client })
		}, "10.1.0.1", 0, 0, false},
		{"requests to open a connection", func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			c.Disconnect(c.Client)
			for range 4 {
				w.Advance(time.Second)
				c.Another(synth.Options{}).REQ()
			}
		}, "both", 4, 0, false},
	} {
		w := synth.New()
		conn := w.RoCE(synth.Options{})
		conn.Connect()
		c.do(w, conn)
		d := dissect.New(dissect.Handler{}, dissect.Options{})
		for f := range testkit.Made(w.Frames) {
			d.Frame(f)
		}
		s, _ := d.Finish()
		if got := s.Directions.Or(""); got != c.directions {
			t.Errorf("%s: directions %q, want %q", c.name, got, c.directions)
		}
		if (len(s.Silences) == 0) != (c.packets == 0) {
			t.Errorf("%s: silences %+v", c.name, s.Silences)
			continue
		} else if c.packets == 0 {
			continue
		}
		x := s.Silences[0]
		to, ended := x.To.Get()
		if len(s.Silences) > 1 || x.Packets != c.packets || ended != c.ended || ended && to.Sub(x.From) < int64(c.lasts) || ended && x.Next != record.Some(s.Packets) || x.Address == x.Peer || (x.LastTime != 0) != (x.Last != 0) || x.LastTime > x.From {
			t.Errorf("%s: silences %+v of %d packets", c.name, s.Silences, s.Packets)
		}
	}
}

// TestNaksOfOneDirection: NAKs are counted although the requests that they refuse are not in the capture.
func TestNaksOfOneDirection(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	for range 3 {
		c.Client.Call(synth.Getattr3())
		c.Server.Nak(0)
		c.Server.RNR(1)
		c.Server.Ack()
	}
	w.Keep(func(f *synth.Frame) bool { return f.From == c.Server })
	var naks, rnr int64
	d := dissect.New(dissect.Handler{Connection: func(r *record.Connection) error {
		naks += r.Naks
		rnr += r.RNRNaks
		return nil
	}}, dissect.Options{})
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	if d.Finish(); naks != 3 || rnr != 3 {
		t.Errorf("%d NAKs and %d RNR NAKs, want 3 and 3", naks, rnr)
	}
}

// TestOneDirection: the packets of one side are those of the connection that its handshake began, also without the handshake of
// the other side. Without both, the client is the end whose memory the server reads and writes.
func TestOneDirection(t *testing.T) {
	for _, c := range []struct {
		name   string
		from   int // address of the only sender, in the last byte
		skip   int // packets at the start of the capture
		layer  string
		number int
		known  bool
	}{
		{"rocev2-nvmeloss", 1, 0, "unknown", 3, true},
		{"rocev2-nvmeloss", 2, 0, "nvme", 3, true},
		{"rocev2-nvmeloss", 1, 1400, "unknown", 2, false},
		{"rocev2-reboot41", 1, 0, "rpcrdma", 0, true},
		{"rocev2-reboot41", 2, 0, "rpcrdma", 0, true},
	} {
		connections := 0
		h := dissect.Handler{Connection: func(r *record.Connection) error {
			if end, ended := r.Ended.Get(); ended && end.How == record.EndRejected || r.Packets < 4 {
				return nil
			}
			connections++
			if r.Client.Address.Or("") != "192.168.77.2" || r.Server.Address.Or("") != "192.168.77.1" || r.ClientKnown != c.known || r.UpperLayer != c.layer {
				t.Errorf("%s from %d: client %s, server %s, known %t, %s", c.name, c.from, r.Client.Address.Or(""), r.Server.Address.Or(""), r.ClientKnown, r.UpperLayer)
			}
			return nil
		}}
		d := dissect.New(h, dissect.Options{})
		frames, _ := testkit.Frames(t, "../../../testdata/other/"+c.name+".pcap.zst")
		for i := range frames {
			if f := &frames[i]; f.Number > int64(c.skip) && len(f.Data) > 29 && f.Data[12] == 8 && int(f.Data[29]) == c.from {
				d.Frame(f)
			}
		}
		if d.Finish(); c.number > 0 && connections != c.number {
			t.Errorf("%s from %d: %d connections, want %d", c.name, c.from, connections, c.number)
		}
	}
}

// TestLocated: a capture that says which packets its computer sent was taken at the host that sent all of its packets and received
// all others. A computer that forwards packets is at neither host.
func TestLocated(t *testing.T) {
	original, _ := testkit.Frames(t, "../../../testdata/captures/rocev2-callback41.pcap.zst")
	for _, c := range []struct {
		name  string
		sends func(client bool) []byte // packet types with which each packet is in the capture
		at    record.Place
	}{
		{"the client", func(client bool) []byte { return map[bool][]byte{true: {4}, false: {0}}[client] }, record.AtClient},
		{"the server", func(client bool) []byte { return map[bool][]byte{true: {0}, false: {4}}[client] }, record.AtServer},
		{"a computer that forwards", func(bool) []byte { return []byte{3, 4} }, ""},
		{"a mirror", func(bool) []byte { return []byte{3} }, ""},
	} {
		var frames []capture.Frame
		for _, f := range original {
			if len(f.Data) < 30 || f.Data[12] != 8 || f.Data[13] != 0 {
				continue
			}
			for _, kind := range c.sends(f.Data[29] == 2) {
				cooked := f
				cooked.LinkType = capture.LinkSLL2
				cooked.Data = append([]byte{8, 0, 0, 0, 0, 0, 0, 1, 0, 1, kind, 6, 0, 0, 0, 0, 0, 0, 0, 0}, f.Data[14:]...)
				cooked.Length += 6
				frames = append(frames, cooked)
			}
		}
		n := 0
		d := dissect.New(dissect.Handler{Connection: func(r *record.Connection) error {
			n++
			want := record.SomeIf("interface", c.at != "")
			if point := &r.Path.Point; point.At.Or("") != c.at || point.How != want {
				t.Errorf("%s: connection %d was captured at %v, %v", c.name, r.ID, point.At, point.How)
			}
			return nil
		}}, dissect.Options{})
		for i := range frames {
			frames[i].Number = int64(i + 1)
			d.Frame(&frames[i])
		}
		if d.Finish(); n != 2 {
			t.Errorf("%s: %d connections", c.name, n)
		}
	}
}

// TestWindow: the packets of a connection in a span of time are counted, each with its marks, however the spans divide the
// capture.
func TestWindow(t *testing.T) {
	for _, name := range []string{"rocev2-storm41.pcap.zst", "lab-iwarploss41.pcap.zst"} {
		counts := func(from, to record.Time) (sum record.PacketCounts) {
			h := dissect.Handler{Connection: func(r *record.Connection) error {
				n := r.Counts()
				sum.AddSince(&record.PacketCounts{}, &n)
				return nil
			}}
			o := dissect.Options{Window: func(first record.Time) (record.Time, record.Time) { return first + from, first + to }}
			if _, err := dissect.New(h, o).Run(t.Context(), testkit.Open(t, "../../../testdata/captures/"+name)); err != nil {
				t.Fatal(err)
			}
			return sum
		}
		const end = record.Time(1e12)
		whole := counts(0, end)
		var parts record.PacketCounts
		for _, from := range []record.Time{0, 3e9, 9e9, 11e9} {
			to := map[record.Time]record.Time{0: 3e9 - 1, 3e9: 9e9 - 1, 9e9: 11e9 - 1, 11e9: end}[from]
			part := counts(from, to)
			parts.AddSince(&record.PacketCounts{}, &part)
		}
		if whole.Retransmitted == 0 || whole.OutOfOrder == 0 || parts != whole {
			t.Errorf("%s: the parts have %+v, the whole capture has %+v", name, parts, whole)
		}
	}
}

// TestPositionRefuted: the summary says which place packets refute. The server's packets come late in the client's capture, so that
// it is not the server's.
func TestPositionRefuted(t *testing.T) {
	for _, c := range []struct {
		capture string
		at      record.Place
		want    []record.RefutedPosition
	}{
		{"roce-burst41-client", record.AtServer, []record.RefutedPosition{{Place: record.AtServer, How: "option", Connections: 3}}},
		{"roce-burst41-client", record.AtClient, []record.RefutedPosition{}},
		{"roce-burst41-server", record.AtServer, []record.RefutedPosition{}},
	} {
		for _, h := range []dissect.Handler{{}, {Connection: func(*record.Connection) error { return nil }}} {
			s, err := dissect.New(h, dissect.Options{At: record.Position{Place: c.at}}).Run(t.Context(), testkit.Open(t, "../../../testdata/ends/"+c.capture+".pcap.zst"))
			if err != nil || !slices.Equal(s.PositionRefuted, c.want) || s.PositionRefuted == nil {
				t.Errorf("%s at the %s: %+v, %v, want %+v", c.capture, c.at, s.PositionRefuted, err, c.want)
			}
		}
	}
}

// TestSilencesOfPoints: with captures at both ends, a silence says how many of the packets that got no answer were lost on the way, and how
// many came to the point of the silent host. The packet that the host answered at last does not count.
func TestSilencesOfPoints(t *testing.T) {
	for _, c := range []struct {
		name                   string
		lost                   []bool // of a Call and its copies
		packets, gone, arrived int64
	}{
		{"all of them came", []bool{false, false, false, false, false}, 5, 0, 5},
		{"all of them were lost", []bool{true, true, true, true, true}, 5, 5, 0},
		{"the last one came, and was answered", []bool{true, true, true, true, false}, 4, 4, 0},
		{"the last two came, and were answered", []bool{true, true, true, true, false, false}, 4, 4, 0},
		{"the last three came, and the first of them was not answered", []bool{true, true, true, false, false, false}, 6, 3, 3},
		{"the first one came", []bool{false, true, true, true, true}, 5, 4, 1},
	} {
		w := synth.New()
		conn := w.RoCE(synth.Options{})
		conn.Connect()
		conn.RPC(synth.Getattr3(), synth.Getattr3Reply())
		conn.Client.Call(synth.Getattr3())
		first := w.Last()
		lost := map[*synth.Frame]bool{first: c.lost[0]}
		for _, gone := range c.lost[1:] {
			w.Advance(500 * time.Millisecond)
			lost[w.Retransmit(first)[0]] = gone
		}
		w.Advance(time.Millisecond)
		conn.Server.Ack()
		s := look.AtBothEnds(t, w, lost).Summary
		if len(s.Silences) != 1 {
			t.Errorf("%s: silences %+v", c.name, s.Silences)
			continue
		}
		if x := s.Silences[0]; x.Packets != c.packets || x.Lost != record.Some(c.gone) || x.Arrived != record.Some(c.arrived) {
			t.Errorf("%s: %+v", c.name, x)
		}
	}
}
