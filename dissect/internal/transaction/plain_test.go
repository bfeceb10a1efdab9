package transaction_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// RPC over TCP and UDP.

// overTCP is a connection of NFS over TCP.
func overTCP(w *synth.Wire) *synth.Conn {
	return w.IWARP(synth.Options{Client: synth.End{Port: 900}, Server: synth.End{Port: 2049}})
}

// plainCall returns a Call of NFS version 3, whose arguments have size bytes in addition to the file handle.
func plainCall(xid, procedure uint32, size int) synth.XDR {
	args := synth.XDR{}.Opaque([]byte("handle12")).Opaque(bytes.Repeat([]byte("x"), size))
	return synth.Call{XID: xid, Procedure: procedure, Cred: synth.AuthSys(1, 2), Args: args}.Message()
}

// plainReply returns a Reply whose results have size bytes in addition to the status.
func plainReply(xid uint32, size int) synth.XDR {
	return synth.Reply{XID: xid, Results: synth.XDR{}.Word(0).Opaque(bytes.Repeat([]byte("y"), size))}.Message()
}

// plainRPCs returns a line for each transaction without RDMA.
func plainRPCs(t testing.TB, w *synth.Wire) (lines []string, findings []string) {
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			lines = append(lines, plainLine(r))
			return nil
		},
		Finding: func(f *record.Finding) error {
			if f.Severity != record.Note {
				findings = append(findings, f.Rule)
			}
			return nil
		},
	}
	d := dissect.New(h, dissect.Options{})
	for f := range testkit.Made(w.Frames) {
		if err := d.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	return lines, findings
}

// plainLine describes a transaction: transport, XID, status, packets and length of Call and Reply, and
// retransmissions.
func plainLine(r *record.Transaction) string {
	message := func(m *record.Message) string {
		if m == nil {
			return "-"
		}
		size := "?"
		if n, known := m.SendBytes.Get(); known {
			size = strconv.Itoa(n)
		}
		return fmt.Sprintf("%d-%d/%s", m.Packet, m.LastPacket, size)
	}
	s := fmt.Sprintf("%s %x %s %s %s", r.Transport, uint32(r.XID), r.Status, message(r.Call), message(r.Reply))
	if r.Retransmitted > 0 {
		s += fmt.Sprintf(" again %d", r.Retransmitted)
	}
	return s
}

// plainStreams are TCP connections and UDP datagrams, and the transactions that they contain.
var plainStreams = []struct {
	name   string
	play   func(w *synth.Wire, c *synth.Conn)
	want   []string
	tshark string // the reason for which tshark does not show the same; empty if it does
}{
	{"one RPC", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Records(plainCall(1, 1, 0))
		c.Server.Records(plainReply(1, 8))
		c.Client.Ack()
	}, []string{"TCP 1 complete 4-4/84 5-5/40"}, ""},
	{"several RPCs in a segment", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Cork()
		c.Client.Records(plainCall(1, 1, 0), plainCall(2, 1, 0), plainCall(3, 1, 0))
		c.Client.Uncork(1400)
		c.Server.Cork()
		c.Server.Records(plainReply(3, 8), plainReply(1, 8), plainReply(2, 8))
		c.Server.Uncork(1400)
		c.Client.Ack()
	}, []string{"TCP 3 complete 4-4/84 5-5/40", "TCP 1 complete 4-4/84 5-5/40", "TCP 2 complete 4-4/84 5-5/40"}, ""},
	{"an RPC in segments of 3 bytes", func(_ *synth.Wire, c *synth.Conn) { // the first is not recognized by its first bytes
		c.Open()
		c.Client.Records(plainCall(9, 1, 0))
		c.Server.Records(plainReply(9, 8))
		c.Client.Cork()
		c.Client.Records(plainCall(1, 1, 0))
		c.Client.Uncork(3)
		c.Server.Cork()
		c.Server.Records(plainReply(1, 8))
		c.Server.Uncork(3)
		c.Client.Ack()
	}, []string{"TCP 9 complete 4-4/84 5-5/40", "TCP 1 complete 6-35/84 36-50/40"}, "it does not recognize a record whose mark is split"},
	{"an RPC of several fragments", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Stream(synth.Record(plainCall(1, 7, 3000), 100, 1000))
		c.Server.Stream(synth.Record(plainReply(1, 8), 30, 4))
		c.Client.Ack()
	}, []string{"TCP 1 complete 4-4/3084 5-5/40"}, "its heuristic does not accept records of several fragments"},
	{"an RPC longer than a segment, then another one in its last segment", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Cork()
		c.Client.Records(plainCall(1, 7, 5000), plainCall(2, 1, 0))
		c.Client.Uncork(1400)
		c.Server.Records(plainReply(1, 8), plainReply(2, 8))
		c.Client.Ack()
	}, []string{"TCP 1 complete 4-7/5084 8-8/40", "TCP 2 complete 7-7/84 9-9/40"}, ""},
	{"a segment is retransmitted", func(w *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Records(plainCall(1, 1, 0))
		w.Advance(300 * time.Millisecond)
		w.Retransmit(w.Last())
		c.Server.Records(plainReply(1, 8))
		c.Client.Ack()
	}, []string{"TCP 1 complete 4-4/84 6-6/40 again 1"}, ""},
	{"segments are in another order", func(w *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Cork()
		c.Client.Records(plainCall(1, 7, 5000), plainCall(2, 1, 0))
		f := c.Client.Uncork(1400)
		w.Swap(f[1], f[2])
		c.Server.Records(plainReply(1, 8), plainReply(2, 8))
		c.Client.Ack()
	}, []string{"TCP 1 complete 4-7/5084 8-8/40", "TCP 2 complete 7-7/84 9-9/40"}, ""},
	{"a segment inside an RPC is missing from the capture", func(w *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Cork()
		c.Client.Records(plainCall(1, 7, 5000), plainCall(2, 1, 0))
		f := c.Client.Uncork(1400)
		c.Server.Ack()
		c.Server.Records(plainReply(1, 8), plainReply(2, 8))
		c.Client.Ack()
		w.Drop(f[1])
	}, []string{"TCP 1 complete 4-6/? 8-8/40", "TCP 2 complete 6-6/84 9-9/40"}, "it does not reassemble a record after a gap"},
	{"the segment with the end of an RPC and the mark of another is missing", func(w *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Cork()
		c.Client.Records(plainCall(1, 7, 5000), plainCall(2, 7, 3000))
		f := c.Client.Uncork(1400)
		c.Server.Ack()
		c.Server.Records(plainReply(1, 8), plainReply(2, 8))
		c.Client.Ack()
		c.Client.Records(plainCall(3, 1, 0))
		c.Server.Records(plainReply(3, 8))
		c.Client.Ack()
		w.Drop(f[3])
	}, []string{"TCP 1 complete 4-6/? 10-10/40", "TCP 2 no_call - 11-11/40", "TCP 3 complete 13-13/84 14-14/40"}, "it does not reassemble a record after a gap"},
	{"the capture has 96 bytes of each packet", func(w *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Records(plainCall(1, 7, 2000), plainCall(2, 1, 0))
		c.Server.Records(plainReply(1, 8), plainReply(2, 3000))
		c.Client.Ack()
		w.Truncate(96)
	}, []string{"TCP 1 complete 4-4/2084 6-6/40", "TCP 2 complete 5-5/84 7-7/3032"}, "it does not reassemble truncated segments"},
	{"the capture starts in the middle", func(w *synth.Wire, c *synth.Conn) {
		f := c.Open()
		f = append(f, c.Client.TCP(0x18, synth.Record(plainCall(1, 7, 900))[100:]))
		c.Server.Records(plainReply(1, 8))
		c.Client.Records(plainCall(2, 1, 0))
		c.Server.Records(plainReply(2, 8))
		c.Client.Ack()
		w.Drop(f...)
	}, []string{"TCP 1 no_call - 1-1/40", "TCP 2 complete 2-2/84 3-3/40"}, "it does not show a Reply without its Call"},
	{"RPC retransmits a Call, and gets two Replies", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Records(plainCall(1, 1, 0), plainCall(1, 1, 0))
		c.Server.Records(plainReply(1, 8), plainReply(1, 8))
		c.Client.Ack()
	}, []string{"TCP 1 complete 4-4/84 6-6/40 again 2"}, ""},
	{"the ports are used for another connection", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		c.Client.Records(plainCall(1, 1, 0))
		c.Server.Ack()
		c.Client.Sequence, c.Server.Sequence = 0x77000000, 0x88000000
		c.Open()
		c.Client.Records(plainCall(1, 1, 0))
		c.Server.Records(plainReply(1, 8))
		c.Client.Ack()
	}, []string{"TCP 1 no_reply 4-4/84 -", "TCP 1 complete 9-9/84 10-10/40"}, ""},
	{"the server's SYN is captured after the first Call", func(w *synth.Wire, c *synth.Conn) {
		f := c.Open()
		c.Client.Records(plainCall(1, 1, 0))
		w.Swap(f[1], w.Last())
		c.Server.Records(plainReply(1, 8))
		c.Client.Ack()
	}, []string{"TCP 1 complete 2-2/84 5-5/40"}, ""},
	{"UDP", func(w *synth.Wire, c *synth.Conn) {
		c.Client.Datagram(plainCall(1, 1, 0))
		w.Advance(700 * time.Millisecond)
		c.Client.Datagram(plainCall(1, 1, 0))
		c.Server.Datagram(plainReply(1, 8))
		c.Server.Datagram(plainReply(1, 8))
		c.Client.Datagram(plainCall(2, 1, 0))
	}, []string{"UDP 1 complete 1-1/84 3-3/40 again 2", "UDP 2 no_reply 5-5/84 -"}, ""},
	{"other traffic to the port of NFS", func(_ *synth.Wire, c *synth.Conn) {
		c.Open()
		for range 10 {
			c.Client.Stream(bytes.Repeat([]byte("\x16\x03\x01\x02\x00"), 400))
			c.Server.Stream(make([]byte, 2000))
		}
	}, nil, ""},
}

// TestPlainStreams: the transactions of streams that need each part of record marking.
func TestPlainStreams(t *testing.T) {
	for _, c := range plainStreams {
		t.Run(c.name, func(t *testing.T) {
			w := synth.New()
			c.play(w, overTCP(w))
			got, findings := plainRPCs(t, w)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			for _, f := range findings {
				if f != "retransmission-timeout" && f != "connection-lost" {
					t.Errorf("finding %s", f)
				}
			}
		})
	}
}

// TestPlainLong: the whole of READ and WRITE with more than 1 MiB of file data is kept.
func TestPlainLong(t *testing.T) {
	w := synth.New()
	c := overTCP(w)
	c.Open()
	call, reply := plainCall(1, 7, 1<<20), plainReply(1, 4<<20)
	c.Client.Cork()
	c.Client.Records(call)
	c.Client.Uncork(1448)
	c.Server.Cork()
	c.Server.Records(reply)
	c.Server.Uncork(1448)
	c.Client.Ack()
	n := 0
	h := dissect.Handler{
		Payload: func(r *record.Transaction, gotCall, gotReply *record.Payload) error {
			if gotCall == nil || gotReply == nil || !bytes.Equal(gotCall.Data, call.Inline()) || !bytes.Equal(gotReply.Data, reply.Inline()) {
				t.Error("the messages are not those that were sent")
			}
			return nil
		},
		Transaction: func(r *record.Transaction) error {
			n++
			if r.Call.MissingBytes != record.Some[int64](0) || r.Reply.MissingBytes != record.Some[int64](0) {
				t.Errorf("missing bytes: %v of the Call, %v of the Reply", r.Call.MissingBytes, r.Reply.MissingBytes)
			}
			return nil
		},
	}
	d := dissect.New(h, dissect.Options{Rebuild: true})
	for f := range testkit.Made(w.Frames) {
		if err := d.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Finish(); err != nil || n != 1 {
		t.Fatalf("%d transactions, %v", n, err)
	}
}

// TestPlainNoRDMA: messages of RPC over TCP and UDP are not records of RDMA operations.
func TestPlainNoRDMA(t *testing.T) {
	for _, c := range plainStreams {
		w := synth.New()
		c.play(w, overTCP(w))
		d := dissect.New(dissect.Handler{Operation: func(r *record.RDMAOperation) error {
			t.Errorf("%s: an RDMA operation of %v bytes", c.name, r.Bytes)
			return nil
		}}, dissect.Options{})
		for f := range testkit.Made(w.Frames) {
			if err := d.Frame(f); err != nil {
				t.Fatal(err)
			}
		}
		d.Finish()
	}
}

// TestPlainNoServer: connections to RPC ports that the server refuses, or that nothing answers.
func TestPlainNoServer(t *testing.T) {
	for _, c := range []struct {
		name string
		port uint16
		play func(w *synth.Wire, c *synth.Conn)
		want string
	}{
		{"a refused connection to NFS", 2049, func(_ *synth.Wire, c *synth.Conn) {
			c.Client.TCP(2, nil)
			c.Server.RST()
		}, "TCP 2049 reset 2 packets, last 2; connection-rejected"},
		{"a refused connection to NFS over RDMA on iWARP", 20049, func(_ *synth.Wire, c *synth.Conn) {
			c.Client.TCP(2, nil)
			c.Server.RST()
		}, "TCP 20049 reset 2 packets, last 2; connection-rejected"},
		{"a SYN that nothing answers", 2049, func(w *synth.Wire, c *synth.Conn) {
			f := c.Client.TCP(2, nil)
			w.Advance(time.Second)
			w.Retransmit(f)
			w.Advance(2 * time.Second)
			w.Retransmit(f)
		}, "TCP 2049 open 3 packets, last 3; "},
		{"a SYN that was captured twice", 2049, func(w *synth.Wire, c *synth.Conn) { w.Duplicate(c.Client.TCP(2, nil), 1000) }, ""},
		{"a SYN at the end of the capture", 2049, func(_ *synth.Wire, c *synth.Conn) { c.Client.TCP(2, nil) }, ""},
		{"a SYN to another port", 443, func(w *synth.Wire, c *synth.Conn) {
			f := c.Client.TCP(2, nil)
			w.Advance(time.Second)
			w.Retransmit(f)
		}, ""},
	} {
		w := synth.New()
		c.play(w, w.IWARP(synth.Options{Client: synth.End{Port: 900}, Server: synth.End{Port: c.port}}))
		got, rules := "", ""
		d := dissect.New(dissect.Handler{
			Connection: func(r *record.Connection) error {
				last := slices.IndexFunc(w.Frames, func(f *synth.Frame) bool { return f.Time == int64(r.Last) })
				got += fmt.Sprintf("%s %d %s %d packets, last %d; ", r.Transport, r.Server.Port.Or(0), r.State(), r.Packets, last+1)
				return nil
			},
			Finding: func(f *record.Finding) error {
				rules += f.Rule
				return nil
			},
		}, dissect.Options{})
		for f := range testkit.Made(w.Frames) {
			if err := d.Frame(f); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Finish(); err != nil || got+rules != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.name, got+rules, c.want, err)
		}
	}
}

// TestCallbackConnection: the client of a connection is the client of NFS, also if its server opened the connection for callbacks, as with NFS 4.0.
func TestCallbackConnection(t *testing.T) {
	recall := func(w *synth.Wire, caller, called *synth.Side) {
		call, reply := synth.CBCompound(synth.OpCBRecall()), synth.CompoundReply(synth.ResCBRecall())
		call.XID, reply.XID = 1, 1
		caller.Records(call.Message())
		w.Advance(300 * time.Millisecond)
		w.Retransmit(w.Last())
		called.Records(reply.Message())
		caller.Ack()
	}
	null := func(caller, called *synth.Side) {
		caller.Records(plainCall(9, 0, 0))
		called.Records(plainReply(9, 0))
	}
	for _, c := range []struct {
		name string
		play func(w *synth.Wire, c *synth.Conn)
		want string
	}{
		{"opened by the server", func(w *synth.Wire, c *synth.Conn) {
			c.Open()
			recall(w, c.Client, c.Server)
		}, "backward CB_RECALL opener=server again 0 1; opener=server true 1 RPC ended by server"},
		{"opened by the server before the capture", func(w *synth.Wire, c *synth.Conn) {
			recall(w, c.Client, c.Server)
		}, "backward CB_RECALL opener=server again 0 1; opener=server true 1 RPC ended by server"},
		{"opened by the client, of NFS 4.1", func(w *synth.Wire, c *synth.Conn) {
			c.Open()
			null(c.Client, c.Server)
			recall(w, c.Server, c.Client)
		}, "forward NULL opener=client again 0 0; backward CB_RECALL opener=client again 0 1; opener=client true 2 RPCs ended by client"},
		{"a program with a transient number after NFS", func(w *synth.Wire, c *synth.Conn) {
			c.Open()
			null(c.Client, c.Server)
			recall(w, c.Client, c.Server)
		}, "forward NULL opener=client again 0 0; forward CB_RECALL opener=client again 1 0; opener=client true 2 RPCs ended by client"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := synth.New()
			conn := overTCP(w)
			c.play(w, conn)
			conn.Client.FIN()
			conn.Server.FIN()
			opener := conn.Client.Addr.String()
			end := func(client, server record.Opt[string]) string {
				switch opener {
				case client.Or(""):
					return "opener=client"
				case server.Or(""):
					return "opener=server"
				}
				return "unknown"
			}
			var got []string
			d := dissect.New(dissect.Handler{
				Transaction: func(r *record.Transaction) error {
					again := r.RetransmittedFrom
					got = append(got, fmt.Sprintf("%s %s %s again %d %d", r.Direction, r.Operation.Or(r.ProcedureName.Or("")), end(r.Client, r.Server), again.FromClient, again.FromServer))
					return nil
				},
				Connection: func(r *record.Connection) error {
					ended := r.Ended.Or(record.Ended{})
					got = append(got, fmt.Sprintf("%s %v %s ended by %s", end(r.Client.Address, r.Server.Address), r.ClientKnown, record.Plural(r.RPCs, "RPC"), ended.By.Or("")))
					return nil
				},
			}, dissect.Options{})
			for f := range testkit.Made(w.Frames) {
				if err := d.Frame(f); err != nil {
					t.Fatal(err)
				}
			}
			d.Finish()
			if line := strings.Join(got, "; "); line != c.want {
				t.Errorf("got\n%s\nwant\n%s", line, c.want)
			}
		})
	}
}

// TestRecordedCallbacks: a server of NFSv4.0 over TCP recalls three delegations, two of which NFSv3 waits for. The values are those of a parser
// that shares nothing with this program.
func TestRecordedCallbacks(t *testing.T) {
	var got []string
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if op := r.Operation.Or(""); op == "CB_RECALL" || op == "DELEGRETURN" {
				got = append(got, fmt.Sprintf("%s %s %v %s %s %d %d", r.Direction, op, r.XID, r.Client.Or(""), r.FileHandle.Or(""), r.Call.Packet, r.LatencyNS.Or(0)))
			}
			return nil
		},
		Task: func(r *record.Task) error {
			if r.Tries > 1 {
				got = append(got, fmt.Sprintf("task %s %v %d tries %d %s", r.Operation.Or(""), r.XIDs, r.Tries, r.BlockedNS.Or(0), r.Outcome.Or("")))
			}
			return nil
		},
	}, dissect.Options{Files: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, "../../../testdata/other/lab-tcprecall40.pcap.zst")); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		"backward CB_RECALL 0x2e0d48bb 192.168.77.2 01000101000000006e0842dc0200000000000000 270 15752000",
		"backward CB_RECALL 0x2f0d48bb 192.168.77.2 01000101000000000a8e96ba0300000000000000 289 35533000",
		"backward CB_RECALL 0x300d48bb 192.168.77.2 0100010100000000f7e50ee30400000000000000 303 7750000",
		"forward DELEGRETURN 0x81202b40 192.168.77.2 01000101000000006e0842dc0200000000000000 273 17169000",
		"forward DELEGRETURN 0x82202b40 192.168.77.2 01000101000000000a8e96ba0300000000000000 291 6412000",
		"forward DELEGRETURN 0x84202b40 192.168.77.2 0100010100000000f7e50ee30400000000000000 304 6537000",
		"task SETATTR [0x3a735ca2 0x3b735ca2] 2 tries 5328799000 ok",
		"task WRITE [0x3e735ca2 0x3f735ca2] 2 tries 5269370000 ok",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
