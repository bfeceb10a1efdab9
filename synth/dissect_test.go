package synth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// dissected returns the dissector's results for a Wire: one line for each transaction, and
// the rules that were violated.
func dissected(w *synth.Wire) (transactions, rules []string, s *record.Summary) {
	d := dissect.New(dissect.Handler{
		Transaction: func(t *record.Transaction) error {
			line := fmt.Sprintf("%v %s %s", t.XID, t.Direction, t.Status)
			if t.Program.Known() {
				line += " " + t.ProgramProcedure()
			}
			for _, o := range t.Operations {
				line += " " + o
			}
			if status, known := t.NFSStatus.Get(); known {
				line += " " + status
			}
			if t.Status == record.Complete {
				line += fmt.Sprintf(" %s %d %s %d", t.Call.Form, size(t.Call), t.Reply.Form, size(t.Reply))
			}
			for list, segment := range t.Segments() {
				line += fmt.Sprintf(" %s=%d", list, segment.MovedBytes)
			}
			if i, known := t.Invalidation.Get(); known {
				line += fmt.Sprintf(" invalidates %v", i.Handle)
			}
			transactions = append(transactions, line)

			return nil
		},
		Finding: func(f *record.Finding) error {
			rules = append(rules, f.Rule+": "+f.Message)
			return nil
		},
	}, dissect.Options{})
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	s, _ = d.Finish()
	slices.Sort(transactions)
	return transactions, rules, s
}

// TestNothingIsWrong: the dissector finds the RPCs of healthy connections, and reports no
// violations, on both transports.
func TestNothingIsWrong(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			healthy(kind.open(w, kind.options))
			transactions, rules, s := dissected(w)
			if got, want := strings.Join(transactions, "\n"), strings.Join(expected, "\n"); got != want {
				t.Errorf("transactions\n%s\nwant\n%s", got, want)
			}
			if len(rules) > 0 || s.NotCaptured != 0 || s.ICRCBad != 0 || s.Malformed != 0 || s.Other != kind.other {
				t.Errorf("findings %q, %d lost, %d bad CRCs, %d malformed, %d others", rules, s.NotCaptured, s.ICRCBad, s.Malformed, s.Other)
			}
		})
	}
}

var expected = []string{
	"0x00000001 forward complete NFS3 NULL short 40 short 24",
	"0x00000002 forward complete NFS3 GETATTR NFS3_OK short 60 short 112",
	"0x00000003 forward complete NFS3 READ NFS3_OK short 72 chunked 5044 write=4096 write=904 invalidates 0x000000a1",
	"0x00000004 forward complete NFS3 WRITE NFS3_OK chunked 3084 short 52 read=3001 invalidates 0x000000a3",
	"0x00000005 forward complete NFS3 READDIR NFS3_OK short 80 long 136 reply=136",
	"0x00000006 forward complete NFS3 SYMLINK NFS3_OK long 104 short 64 read=96 read=6",
	"0x00000007 forward complete NFS3 READLINK NFS3_OK short 60 chunked 44 write=6",
	"0x00000008 forward complete NFS3 READ NFS3_OK short 72 short 144",
	"0x00000009 forward complete NFS4 COMPOUND CREATE_SESSION NFS4_OK short 140 short 124",
	"0x0000000a forward complete NFS4 COMPOUND SEQUENCE PUTFH READ GETATTR NFS4_OK short 156 chunked 2140 write=1998",
	"0x0000000b forward complete NFS4 COMPOUND SEQUENCE PUTFH WRITE GETATTR NFS4_OK chunked 2160 short 148 read=1999",
	"0x0000000c backward complete NFS_CB1 CB_COMPOUND CB_SEQUENCE CB_RECALL NFS4_OK short 140 short 84",
}

// TestRebuilt: items that chunks carried are put back at their positions.
func TestRebuilt(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := kind.open(w, kind.options)
			call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, data(1999)), synth.OpSymlink("name", "target"), synth.OpGetAttr())
			reply := synth.CompoundReply(synth.ResPutFH(), synth.ResRead(data(3333)), synth.ResGetAttr(), synth.ResReadLink("target"))
			call.XID, reply.XID = 7, 7
			c.Connect()
			c.RPC(call.Reduce(0xa1, 0xa2).Long(0xa3).Offer(synth.Mem(0xa4, 1024), synth.Mem(0xa5, 4096)).OfferReply(synth.Mem(0xa6, 4096)), reply.Long())
			var got [2][]byte
			d := dissect.New(dissect.Handler{Payload: func(_ *record.Transaction, call, reply *record.Payload) error {
				got = [2][]byte{slices.Clone(call.Data), slices.Clone(reply.Data)}
				return nil
			}}, dissect.Options{Rebuild: true})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			d.Finish()
			if !slices.Equal(got[0], call.Message().Whole()) || !slices.Equal(got[1], reply.Message().Whole()) {
				t.Errorf("\n got %x\n and %x\nwant %x\n and %x", got[0], got[1], call.Message().Whole(), reply.Message().Whole())
			}
		})
	}
}

// TestBroken: connections that violate one rule each. A case is for both transports unless
// its name contains one.
func TestBroken(t *testing.T) {
	mem := synth.Mem(0xa1, 4096)
	for name, act := range map[string]func(w *synth.Wire, c *synth.Conn){
		"": func(_ *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Read3(0, 4096).Offer(mem), synth.Read3Reply(data(4096)).Invalidating(mem.Handle))
		},
		"credits-granted-zero": func(_ *synth.Wire, c *synth.Conn) { c.RPC(synth.Null(), synth.Reply{Credits: synth.Zero}) },
		"credit-limit-exceeded": func(_ *synth.Wire, c *synth.Conn) {
			c.Client.Call(synth.Null())
			c.Client.Call(synth.Null())
			c.Server.Ack() // the capture has packets of the server
		},
		"rdma-version": func(_ *synth.Wire, c *synth.Conn) {
			c.Client.Call(synth.Call{Vers: 3})
			c.Server.Ack() // the capture has packets of the server, and no answer of the same version
		},
		"rdma-error": func(_ *synth.Wire, c *synth.Conn) { c.RPC(synth.Null(), synth.ErrChunk()) },
		"header-truncated": func(_ *synth.Wire, c *synth.Conn) {
			c.Client.Send(synth.Null().Offer(mem).Bytes()[:40])
		},
		"inline-threshold-exceeded": func(_ *synth.Wire, c *synth.Conn) { c.RPC(synth.Write3(0, data(4096)), synth.Write3Reply(4096)) },
		"xid-mismatch":              func(_ *synth.Wire, c *synth.Conn) { c.Client.Call(synth.Call{XID: 7, RPCXID: 8}) },
		"read-position-unaligned": func(_ *synth.Wire, c *synth.Conn) {
			call := synth.Write3(0, data(4096)).Reduce(mem.Handle)
			call.Reads[0].Position++
			c.Client.Call(call)
		},
		"write-list-not-copied": func(_ *synth.Wire, c *synth.Conn) {
			call := synth.Read3(0, 4096).Offer(mem)
			reply := synth.Read3Reply(data(4096)).To(call)
			c.Client.Call(call)
			c.Server.Push(reply)
			reply.Writes = nil
			c.Server.Reply(reply)
		},
		"returned-length-exceeds-chunk": func(_ *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Read3(0, 4096).Offer(synth.Mem(0xa1, 4000)), synth.Read3Reply(data(4096)))
		},
		"returned-bytes-not-seen": func(_ *synth.Wire, c *synth.Conn) {
			call := synth.Read3(0, 4096).Offer(mem)
			c.Client.Call(call)
			c.Server.Reply(synth.Read3Reply(data(4096)).To(call))
		},
		"invalidated-unexposed-handle": func(_ *synth.Wire, c *synth.Conn) { c.RPC(synth.Null(), synth.NullReply().Invalidating(9)) },
		"rdma-outside-exposed-memory": func(_ *synth.Wire, c *synth.Conn) {
			c.Client.Call(synth.Null())
			c.Server.Read(0xa1, 0, data(2000))
		},
		"connection-rejected": func(_ *synth.Wire, c *synth.Conn) { c.Another(synth.Options{}).Reject() },
		"RoCE remote-error-nak": func(_ *synth.Wire, c *synth.Conn) {
			c.Client.Call(synth.Read3(0, 4096).Offer(mem))
			c.Server.Write(mem.Handle, mem.Offset, data(4096))
			c.Client.Refuse()
		},
		"iWARP terminate": func(_ *synth.Wire, c *synth.Conn) {
			c.Client.Call(synth.Read3(0, 4096).Offer(mem))
			c.Server.Write(mem.Handle, mem.Offset, data(4096))
			c.Client.Refuse()
		},
		"RoCE icrc-bad": func(w *synth.Wire, c *synth.Conn) {
			call := c.Client.Call(synth.Null())
			w.Retransmit(call...)
			call[0].Corrupt(-1)
			c.Server.Reply(synth.NullReply())
		},
		"iWARP mpa-crc-bad": func(_ *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			c.Client.Call(synth.Null())[0].Corrupt(-1)
		},
		"RoCE capture-incomplete": func(w *synth.Wire, c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			w.Drop(c.Client.Call(synth.Null())...)
			c.Server.Ack()
		},
	} {
		for transport, open := range map[string]func(*synth.Wire, synth.Options) *synth.Conn{"RoCE ": (*synth.Wire).RoCE, "iWARP ": (*synth.Wire).IWARP} {
			rule, only := strings.CutPrefix(name, transport)
			if !only && strings.Contains(rule, " ") {
				continue
			}
			t.Run(transport+rule, func(t *testing.T) {
				w := synth.New()
				c := open(w, synth.Options{})
				c.Connect()
				act(w, c)
				_, rules, _ := dissected(w)
				if rule == "" && len(rules) > 0 || rule != "" && !slices.ContainsFunc(rules, func(r string) bool { return strings.HasPrefix(r, rule+":") }) {
					t.Errorf("findings %q", rules)
				}
			})
		}
	}
}

// size returns the size of the Payload stream, or -1 if it is unknown.
func size(m *record.Message) int64 { return m.PayloadBytes.Or(-1) }
