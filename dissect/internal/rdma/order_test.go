package rdma_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// TestPathMTUOfWaiting: a packet that waited shows the path MTU, and so that the Reply after an RDMA Read of the other direction does
// not wait for a packet. Each of the two Sends keeps its own bytes.
func TestPathMTUOfWaiting(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{MTU: 4096, ManualAck: true})
	c.Connect()
	c.Options.MTU = 1024 // less than the handshake says
	c.Client.Call(synth.Call{XID: 5, Reads: synth.ReadChunk(0, synth.Mem(0xa1, 3*1024)), Proc: rpcrdma.NoMsg})
	c.Server.Ack()
	c.Server.ReadRequest(0xa1, 0, 3*1024)
	c.Server.Reply(synth.Reply{XID: 5})
	w.Drop(c.Client.Call(synth.Call{XID: 6})...)
	c.Client.Call(synth.Call{XID: 7, Args: synth.XDR{}.Data(make([]byte, 1500))})
	c.Server.Ack()
	s := look.At(w)
	tells(t, s, "capture-incomplete path-mtu-unused", "5 complete, 7 no_reply")
	for _, r := range s.Transactions {
		if got := r.Call.SendBytes.Or(0); r.XID == 7 && got != 28+40+1504 {
			t.Errorf("the Call has %d bytes", got)
		}
	}
}

// TestUnprovenFaults: healthy traffic of which the capture lacks a packet, a session or an earlier
// connection, or has packets in another order, causes no finding that names a side at fault, and no
// error.
func TestUnprovenFaults(t *testing.T) {
	data := bytes.Repeat([]byte("rdmadump"), 512) // 4096 bytes
	mem := synth.Mem(0xa1, 4096)
	for name, traffic := range map[string]func(w *synth.Wire, c *synth.Conn){
		"the first Call is missing": func(w *synth.Wire, c *synth.Conn) {
			call := synth.Read3(0, 4096).Offer(mem)
			call.XID = 77
			missing := c.Client.Call(call)
			c.Server.Ack()
			reply := synth.Read3Reply(data).To(call)
			c.Server.Push(reply)
			c.Server.Reply(reply)
			c.Client.Ack()
			w.Drop(missing...)
		},
		"an RDMA Read is captured before its Call": func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			call := synth.Write3(0, data).Reduce(0xa1)
			call.XID = 77
			read := c.Server.ReadRequest(0xa1, call.Reads[0].Offset, 4096)
			c.Client.Call(call)
			read.Respond(data)
			c.Server.Reply(synth.Write3Reply(4096).To(call))
			c.Client.Ack()
			c.RPC(synth.Null(), synth.NullReply())
		},
		"RDMA Writes are captured before their Call": func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			call := synth.Read3(0, 4096).Offer(mem)
			call.XID = 77
			reply := synth.Read3Reply(data).To(call)
			c.Server.Push(reply)
			c.Client.Call(call)
			c.Server.Reply(reply)
			c.Client.Ack()
			c.RPC(synth.Null(), synth.NullReply())
		},
		"a Reply is captured before its Call": func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			call := synth.Getattr3()
			call.XID = 77
			c.Server.Reply(synth.Getattr3Reply().To(call))
			c.Client.Call(call)
			c.Client.Ack()
			for range 45 {
				w.Advance(time.Second)
				c.RPC(synth.Getattr3(), synth.Getattr3Reply())
			}
		},
		"the session was created before the capture": func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			c.RPC(synth.Compound(synth.OpSequence(1), synth.OpPutFH(), synth.OpReadDir(8192)), synth.CompoundReply(synth.ResSequence(1), synth.ResPutFH(), synth.ResReadDir("a")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
				c.Connect()
				traffic(w, c)
				for _, f := range look.At(w).Findings {
					if f.Severity == record.Error || f.AtFault.Known() {
						t.Errorf("%s %s, at fault %s: %s", f.Severity, f.Rule, f.AtFault.Or("-"), f.Message)
					}
				}
			})
		})
	}
}

// TestReplyFromMemory: a server may answer a retransmitted WRITE without reading its data again. If
// the capture lacks the first copy of the Call, the finding names nobody.
func TestReplyFromMemory(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.RPC(synth.Null(), synth.NullReply())
		call := synth.Write3(0, make([]byte, 4096)).Reduce(0xa1)
		call.XID = 5
		c.Client.Call(call)
		c.Server.Ack()
		c.Server.Reply(synth.Write3Reply(4096).To(call))
		c.Client.Ack()
		c.RPC(synth.Null(), synth.NullReply())
		s := look.At(w)
		if s.Rules() != "read-chunk-not-read" || s.Findings[0].AtFault.Known() {
			t.Errorf("the findings are %s; want read-chunk-not-read without a side at fault", s.Rules())
		}
	})
}

// TestDisplacedResponse: a Read response that was captured after the Reply and its acknowledgement,
// and was not requested again, shows that the capture is not in order.
func TestDisplacedResponse(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	data := make([]byte, 4096)
	call := synth.Write3(0, data).Reduce(0xa1)
	call.XID = 77
	c.Client.Call(call)
	c.Server.Ack()
	read := c.Server.ReadRequest(0xa1, call.Reads[0].Offset, 4096)
	read.RespondPackets(data, 0, 2)
	read.RespondPackets(data, 3, 4)
	c.Server.Reply(synth.Write3Reply(4096).To(call))
	c.Client.Ack()
	read.RespondPackets(data, 2, 3)
	c.RPC(synth.Null(), synth.NullReply())
	for _, f := range look.At(w).Findings {
		if f.Severity == record.Error {
			t.Errorf("responses came out of order, but somebody is accused: %s: %s", f.Rule, f.Message)
		}
	}
}

// TestNoEarlierCopy: a packet is marked as retransmitted only if the capture shows that it was sent before.
func TestNoEarlierCopy(t *testing.T) {
	marks := func(s *look.Seen, last int) (all []string) {
		for _, p := range s.Packets[len(s.Packets)-last:] {
			all = append(all, strings.Join(slices.Collect(p.Marks.Names()), " "))
		}
		return all
	}
	look.Both(t, synth.Options{ManualAck: true}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.RPC(synth.Null(), synth.NullReply())
		missing := c.Client.Call(synth.Getattr3())
		c.Client.Call(synth.Null())
		c.Server.Ack()
		w.Drop(missing...)
		w.Retransmit(missing...) // the first copy that is captured
		w.Retransmit(missing...)
		s := look.At(w)
		if got := marks(s, 2*len(missing)); !slices.Equal(got, []string{"late", "retransmitted"}) || s.Connections[0].Retransmitted != 1 {
			t.Errorf("a packet that was counted as missing comes twice: %q, %d retransmitted", got, s.Connections[0].Retransmitted)
		}
	})
	t.Run("another opcode", func(t *testing.T) {
		w := synth.New()
		c := w.RoCE(synth.Options{ManualAck: true})
		c.Connect()
		c.RPC(synth.Null(), synth.NullReply())
		read := func(psn uint32) {
			c.Client.Packet(rocev2.Packet{BTH: rocev2.BTH{Opcode: rocev2.OpReadRequest, PSN: psn}, RETH: rocev2.RETH{RKey: 1, DMALength: 8}}, nil)
		}
		psn := c.Client.NextPSN
		c.Client.Call(synth.Null())
		read(psn) // after the Send was accepted
		w.Drop(c.Client.Call(synth.Null())...)
		w.Retransmit(c.Client.Call(synth.Null())...)
		read(psn + 2) // while the Send waits for the packet before it
		s := look.At(w)
		if got := marks(s, 4); !slices.Equal(got, []string{"", "after_gap", "retransmitted after_gap", "after_gap"}) || s.Connections[0].Retransmitted != 1 {
			t.Errorf("another request with the PSN of a Send: %q, %d retransmitted", got, s.Connections[0].Retransmitted)
		}
	})
}

// TestLossAfterRead: a packet that is missing after a Read whose extent is not known is counted, although the Read
// might have had its PSN: a request that was captured in between shows that it had only one.
func TestLossAfterRead(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Client.ReadRequest(0xa1, 0, 1000)
	c.Client.Call(synth.Null())
	missing := c.Client.Call(synth.Getattr3())
	w.Drop(missing...)
	c.Client.Call(synth.Null())
	c.Server.Ack()
	s := look.At(w)
	if n := s.Connections[0].NotCaptured; n != 1 || s.Rules() != "capture-incomplete" {
		t.Errorf("%d packets are missing, findings %s", n, s.Rules())
	}
}

// TestRows: what a packet causes, as packets --why tells it: one test for each row of the table in docs/architecture.md, which has the same
// names. A row that has a test of its own names it. The functions that it names exist.
func TestRows(t *testing.T) {
	page, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(page), "## What each packet causes")
	tables, _, _ = strings.Cut(tables, "\n## Terms")
	table, _, _ := strings.Cut(tables, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " |"); len(cells) == 6 && cells[0] != "| packet" {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[3]
		}
	}
	call := func(c *synth.Conn, xid uint32) *synth.Frame { return c.Client.Call(synth.Call{XID: xid})[0] }
	tested := map[string]bool{}
	for _, row := range []struct {
		name, roce, iwarp string // the packet, and what it causes on each transport; - if there is no such packet
		play              func(w *synth.Wire, c *synth.Conn) *synth.Frame
	}{
		{"request in order", "begun accepted receiver complete", "acked-to covered accepted complete", func(w *synth.Wire, c *synth.Conn) *synth.Frame { return call(c, 1) }},
		{"request that others wait for", "accepted receiver complete filled accepted complete released", "acked-again accepted complete filled accepted complete released", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			a := call(c, 2)
			w.Swap(a, call(c, 3))
			return a
		}},
		{"request, early", "waits", "acked-again waits", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			w.Drop(call(c, 2))
			return call(c, 3)
		}},
		{"request, early and acknowledged, or the window is full", "waits missing accepted complete released", "acked-again waits missing accepted complete released", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			w.Drop(call(c, 2))
			early := call(c, 3)
			w.Swap(early, c.Server.Ack())
			return early
		}},
		{"request, old", "again receiver retransmitted", "acked-again again retransmitted", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			again := call(c, 1)
			w.Advance(time.Second)
			return w.Retransmit(again)[0]
		}},
		{"request, late, that may be the first copy", "late", "acked-again late", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			late := call(c, 2)
			call(c, 3)
			w.Delay(late, time.Millisecond)
			w.Swap(late, c.Server.Ack())
			return late
		}},
		{"acknowledgement", "acked-to covered acknowledged", "acked-to covered acknowledged", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			return c.Server.Ack()
		}},
		{"acknowledgement after a gap", "acked-to missing accepted complete released covered acknowledged acknowledged", "acked-to missing accepted complete released covered acknowledged acknowledged", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			w.Drop(call(c, 2))
			call(c, 3)
			return c.Server.Ack()
		}},
		{"acknowledgement, not new", "", "acked-again", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			c.Server.Ack()
			return c.Server.Ack()
		}},
		{"Read response, Atomic response", "acked-to covered response moved complete", "acked-again accepted moved complete", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			c.Client.Call(synth.Call{XID: 1, Reads: synth.ReadChunk(0, synth.Mem(0xa1, 1000)), Proc: rpcrdma.NoMsg})
			c.Server.Ack()
			return c.Server.Read(0xa1, synth.Mem(0xa1, 1000).Offset, make([]byte, 1000))[1]
		}},
		{"NAK, RNR NAK, Terminate", "acked-to covered refused", "acked-again accepted refused", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			call(c, 1)
			return c.Server.Refuse()
		}},
		{"packet with a bad ICRC", "dropped", "-", func(w *synth.Wire, c *synth.Conn) *synth.Frame {
			damaged := call(c, 1)
			damaged.Corrupt(8*len(damaged.Data) - 60)
			return damaged
		}},
	} {
		tested[row.name] = true
		for _, iwarp := range []bool{false, true} {
			w := synth.New()
			c, want := w.RoCE(synth.Options{ManualAck: true}), row.roce
			if iwarp {
				w = synth.New()
				c, want = w.IWARP(synth.Options{ManualAck: true}), row.iwarp
			}
			c.Connect()
			if want == "-" {
				continue
			}
			packet := int64(slices.Index(w.Frames, row.play(w, c)) + 1)
			c.Another(synth.Options{}).Connect() // what the end of the capture causes is not the packet's doing
			var got []string
			d := dissect.New(dissect.Handler{
				Transaction: func(*record.Transaction) error { return nil },
				Why: func(by, what, _ string) {
					if by == fmt.Sprintf("#%d", packet) {
						got = append(got, what)
					}
				},
			}, dissect.Options{Why: record.PacketRef{Packet: packet}})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			d.Finish()
			if all := strings.Join(got, " "); all != want {
				t.Errorf("%s, iWARP %t: %q, want %q", row.name, iwarp, all, want)
			}
		}
	}
	text := sources(t, "*_test.go")
	for name, test := range rows {
		if own, is := strings.CutPrefix(strings.Trim(test, "` "), "Test"); tested[name] == is || is && !strings.Contains(text, "\nfunc Test"+own+"(") {
			t.Errorf("the row %q needs one test", name)
		}
		delete(tested, name)
	}
	for name := range tested {
		t.Errorf("%q is no row", name)
	}
	text = sources(t, "../*/*.go") + sources(t, "../../../internal/points/*.go")
	for _, f := range regexp.MustCompile("`(\\w+)\\.(\\w+)`[^.|]*[|(,]").FindAllStringSubmatch(tables, -1) {
		if f[2] == "go" {
			continue
		}
		if !regexp.MustCompile(`\nfunc \(\w+ \*?` + f[1] + `(\[T\])?\) ` + f[2] + `\(`).MatchString(text) {
			t.Errorf("the tables name %s.%s, which does not exist", f[1], f[2])
		}
	}
}

// TestManyHalves: of many connections between two hosts without handshakes, each finds its other direction by the PSNs of acknowledgements,
// whichever comes first.
func TestManyHalves(t *testing.T) {
	for _, acksFirst := range []bool{false, true} {
		w := synth.New()
		var all []*synth.Conn
		for i := range uint32(100) {
			o := synth.Options{ManualAck: true, Client: synth.End{QPN: 0x1000 + i, PSN: 1 + i<<16}, Server: synth.End{QPN: 0x2000 + i, PSN: 0x8000 + i<<16}}
			if i > 0 {
				o.Client.Addr, o.Server.Addr = all[0].Client.Addr, all[0].Server.Addr
			}
			all = append(all, w.RoCE(o))
		}
		for _, c := range all {
			if c.Client.Call(synth.Null()); acksFirst { // the capture begins after the first Call
				w.Drop(w.Last())
				c.Server.Ack()
			}
		}
		for _, c := range slices.Backward(all) {
			if acksFirst {
				c.Client.Call(synth.Null())
			} else {
				c.Server.Ack()
			}
		}
		s := look.At(w)
		for _, r := range s.Connections {
			if r.Packets != 2 {
				t.Fatalf("acknowledgements first: %t: %d connections, one of %d packets", acksFirst, len(s.Connections), r.Packets)
			}
		}
	}
}

// TestWhy: what packets --why says of packets, in full: nothing that others cause, unless it is about the one that is asked for.
func TestWhy(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	first := c.Client.Call(synth.Call{XID: 1})
	w.Drop(c.Client.Call(synth.Call{XID: 2})...)
	c.Client.Call(synth.Call{XID: 3})
	w.Retransmit(first...)
	c.Server.Ack()
	for packet, want := range map[int64]string{
		5: `#5 waits: PSN 4098: an earlier one is missing
#7 accepted: PSN 4098: next in the order of the capture; it is packet #5
#7 complete: Send, rdma ID 2, RPC #2
#7 released: PSN 4098: waits no longer; it is packet #5
#7 acknowledged: Send, rdma ID 2, RPC #2; its receiver accepted the copy in #5 or an earlier one
`,
		7: `#7 acked-to: PSN 4099: acknowledges all before it
#7 missing: PSN 4097: not in the capture
#7 accepted: PSN 4098: next in the order of the capture; it is packet #5
#7 complete: Send, rdma ID 2, RPC #2
#7 released: PSN 4098: waits no longer; it is packet #5
#7 covered: PSN 4099: acknowledges the operations before it
#7 acknowledged: Send, rdma ID 1, RPC #1; its receiver accepted the copy in #4
#7 acknowledged: Send, rdma ID 2, RPC #2; its receiver accepted the copy in #5 or an earlier one
`,
	} {
		got := ""
		d := dissect.New(dissect.Handler{
			Transaction: func(*record.Transaction) error { return nil },
			Why:         func(by, what, text string) { got += by + " " + what + ": " + text + "\n" },
		}, dissect.Options{Why: record.PacketRef{Packet: packet}})
		for f := range testkit.Made(w.Frames) {
			d.Frame(f)
		}
		d.Finish()
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// sources returns the text of files.
func sources(t *testing.T, pattern string) (text string) {
	files, _ := filepath.Glob(pattern)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}
