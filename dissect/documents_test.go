package dissect_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
	"github.com/rdmadump/rdmadump/synth/cases"
)

// documents lists the captures of testdata/documents: situations that were written from the documents by somebody who did
// not know the program, and all findings that they have, each a rule and the side at fault.
var documents = map[string][]string{
	// draft-cel-nfsv4-rpcrdma-bidirection s.2.2.3: how other programs than NFS allow backward Calls is not in its scope.
	"bk-other-program.roce.pcap": nil,
	// draft-cel-nfsv4-reminv-design s.3.3, s.4.4.3: backward RPCs of version 2 may have chunks, and name a handle.
	"bk-v2-chunks-inv.roce.pcap": nil,
	// rfc5666bis s.4.4.4: the count remains in the Payload stream.
	"ch-count-in-chunk-readlink-reply.roce.pcap": {"chunk-length-mismatch server"},
	"ch-count-in-chunk.roce.pcap":                {"read-position-invalid client"},
	// rfc5666bis s.5.3.2: the first eligible result is in the first Write chunk.
	"ch-first-result-inline-second-in-chunk0.roce.pcap": {"write-chunk-unused server"},
	"ch-first-result-inline-two-left.iwarp.pcap":        {"write-chunk-unused server"},
	// rfc5666bis s.5.3.3: the returned Reply chunk has the actual amount of data.
	"ch-long-reply-cut.roce.pcap": {"chunk-length-mismatch server"},
	// rfc5666bis s.4.1, s.5.4.1: the TCP stream shows that the Read Response came before the Call.
	"ch-read-chunk-of-later-call.iwarp.pcap": {"rdma-outside-exposed-memory server", "read-chunk-not-read"},
	// rfc5666bis s.4.4.5: the empty item begins at this Position.
	"ch-zero-write.roce.pcap": {"empty-segment client"},
	// bidirection s.2.2.1: no backchannel was granted, so the client need not have a buffer.
	"cr-rnr-back-after-refusal.roce.pcap": {"backward-unexpected server"},
	// rfc5666bis s.4.3.1, s.5.6.2: the RDMA_DONE took the only buffer that was granted.
	"cr-rnr-call-after-done.roce.pcap": {"error-not-answered server", "rdma-done client"},
	"dec-50-segments.iwarp.pcap":       nil,
	// rfc5666bis s.5.5.1, s.8: a refused version and the fallback are how a version is found.
	"er-v2-cel01-fallback.roce.pcap": {"rdma-error", "rdma-version note"},
	// rfc5666bis s.5.2.2: the Reply to a version 1 Call has version 1.
	"iv-v1-reply-v2.roce.pcap": {"rdma-version server"},
	// reminv-design s.5.3: rdma_direction is the type of the RPC message.
	"iv-v2-direction-wrong.roce.pcap": {"header-malformed client"},
	// IBTA vol. 1 s.9.7.6: what is acknowledged is not sent again, unless the ACK does not arrive or is not accepted.
	"rt-acked-copies.roce.pcap": nil,
	// RFC 5531 s.9: msg_type is 0 or 1, and rpcvers is 2.
	"rp-msgtype2-write-chunk.roce.pcap":      {"rpc-header-malformed client", "rpc-rejected"},
	"rp-rpcvers1-write-chunk.roce.pcap":      {"rpc-header-malformed client", "rpc-rejected"},
	"rp-violation-after-xid-reuse.roce.pcap": {"rdma-outside-exposed-memory server", "write-list-not-copied server", "xid-in-use client"},
}

// malformed lists the documents with an RPC whose Call or Reply cannot be decoded.
var malformed = map[string]string{
	"ch-count-in-chunk-readlink-reply.roce.pcap": "reply",
	"ch-count-in-chunk.roce.pcap":                "call",
	"ch-long-reply-cut.roce.pcap":                "reply",
	"iv-v2-direction-wrong.roce.pcap":            "call",
	"rp-msgtype2-write-chunk.roce.pcap":          "call",
	"rp-rpcvers1-write-chunk.roce.pcap":          "call",
}

// TestAcknowledgedCopies: a stall that ends with a retransmission of what the capture shows acknowledged says so.
func TestAcknowledgedCopies(t *testing.T) {
	count := func(file string) (acknowledged, all int) {
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			for i := range r.Waits {
				if all++; r.Waits[i].Acknowledged {
					acknowledged++
				}
			}
			return nil
		}}, dissect.Options{})
		frames, _ := testkit.Frames(t, file)
		for i := range frames {
			d.Frame(&frames[i])
		}
		d.Finish()
		return acknowledged, all
	}
	if n, all := count("../testdata/documents/rt-acked-copies.roce.pcap"); n != 6 || all != 6 {
		t.Errorf("%d of %d stalls ended with a copy of what was acknowledged, want 6 of 6", n, all)
	}
	if n, all := count("../testdata/captures/rocev2-loss42.pcap.zst"); n != 0 || all == 0 {
		t.Errorf("%d of %d stalls after losses ended with a copy of what was acknowledged, want none", n, all)
	}
}

// situation is what two hosts do, all findings that it has, as in documents, and the outcomes of its RPCs.
type situation struct {
	name     string
	outcomes string
	want     []string
	does     func(c *synth.Conn)
}

// answer sends a Call with an XID, what the server does for it, and a Reply as it is.
func answer(c *synth.Conn, call synth.Call, reply synth.Reply) {
	c.Client.Call(call)
	c.Server.Ack()
	c.Server.Pull(call)
	c.Server.Push(reply)
	c.Server.Reply(reply)
	c.Client.Ack()
}

// backchannel creates a session whose callbacks use the connection.
func backchannel(c *synth.Conn) {
	c.RPC(synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(synth.ConnBackChannel)))
}

// callback lets the server send a callback, and the client send Replies.
func callback(c *synth.Conn, call synth.Call, replies ...synth.Reply) {
	c.Server.Call(call)
	c.Client.Ack()
	for _, r := range replies {
		c.Client.Reply(r)
	}
	c.Server.Ack()
}

// part returns a part of a requester's memory.
func part(handle, from, length uint32) rpcrdma.Segment {
	s := synth.Mem(handle, length)
	s.Offset += uint64(from)
	return s
}

var (
	recalled      = synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall())
	recalledReply = synth.CompoundReply(synth.ResCBSequence(1), synth.ResCBRecall())
	getattr2      = synth.Call{XID: 7, Vers: 2, Version: 3, Procedure: 1, Args: synth.Getattr3().Args}
)

// situations are written from the documents, like those of documents.
var situations = []situation{
	// rfc5666bis s.4.4.5, s.5.3.1: segments are grouped by their Position, in any order of the chunks.
	{"Read chunks interleaved, the later Position first", "NFS4 WRITE ok", nil, func(c *synth.Conn) {
		call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, make([]byte, 2000)), synth.OpWrite(2000, make([]byte, 1000))).Reduce(0xa1, 0xa2)
		first, second := call.Reads[0], call.Reads[0]
		first.Segment, second.Segment = part(0xa1, 0, 1000), part(0xa1, 1000, 1000)
		call.Reads = []rpcrdma.ReadSegment{call.Reads[1], first, second}
		c.RPC(call, synth.CompoundReply(synth.ResPutFH(), synth.ResWrite(2000), synth.ResWrite(1000)))
	}},
	// s.4.5.3: only the segments of the Position Zero Read chunk have Position 0.
	{"a Long Call whose segments alternate with those of its data", "NFS4 WRITE ok", nil, func(c *synth.Conn) {
		call := synth.Compound(synth.OpPutFH(), synth.OpWrite(0, make([]byte, 1500)), synth.OpGetAttr()).Reduce(0xa1)
		first, second, size := call.Reads[0], call.Reads[0], uint32(len(call.Message().Inline()))
		first.Segment, second.Segment = part(0xa1, 0, 700), part(0xa1, 700, 800)
		call.Proc = rpcrdma.NoMsg
		begin, middle, end := part(0xa0, 0, 50), part(0xa0, 50, 10), part(0xa0, 60, size-60)
		call.Reads = []rpcrdma.ReadSegment{{Segment: begin}, first, {Segment: middle}, second, {Segment: end}}
		c.RPC(call, synth.CompoundReply(synth.ResPutFH(), synth.ResWrite(1500), synth.ResGetAttr()))
	}},
	// s.4.4.6: data may be written before the operation fails.
	{"a READ that failed after data was written", "NFS3 READ NFS3ERR_IO", nil, func(c *synth.Conn) {
		call := synth.Read3(0, 4000).Offer(synth.Mem(0xb1, 4000))
		call.XID = 7
		c.Client.Call(call)
		c.Server.Ack()
		c.Server.Write(0xb1, synth.Mem(0xb1, 0).Offset, make([]byte, 1000))
		c.Server.Reply(synth.Failed(5, 0).To(call))
		c.Client.Ack()
	}},
	// s.5.2.4: the Reply chunk of an RDMA_NOMSG holds the RPC message.
	{"a Long Reply of no bytes", "NFS3 READDIR malformed", []string{"nomsg-without-chunk server"}, func(c *synth.Conn) {
		call := synth.Readdir3(8192).OfferReply(synth.Mem(0xb1, 8192))
		call.XID = 7
		reply := synth.Readdir3Reply("a").Long().To(call)
		reply.ReplyChunk[0].Length = 0
		answer(c, call, reply)
	}},
	// s.8: what another version contains is not known.
	{"version 4 on both sides", "(not decoded) answered", nil, func(c *synth.Conn) {
		c.RPC(synth.Call{Vers: 4}, synth.NullReply())
	}},
	// s.5.2.2; s.5.5: an RDMA_ERROR may come from a requester.
	{
		"a Reply of version 9, which the client refuses",
		"NFS3 NULL answered, (not decoded) no_call",
		[]string{"rdma-error", "rdma-version server"},
		func(c *synth.Conn) {
			answer(c, synth.Call{XID: 7}, synth.Reply{XID: 7, Vers: 9})
			c.Client.Reply(synth.Reply{XID: 7, Vers: 9, Proc: rpcrdma.Error, Err: rpcrdma.ErrVers, Low: 1, High: 1})
			c.Server.Ack()
		},
	},
	// s.5.5.1: ERR_VERS is for a version that the receiver does not support, and s.5.5.2: ERR_CHUNK for one that it does.
	{
		"version 2, answered and then refused",
		"NFS3 NULL ok, NFS3 GETATTR ERR_VERS",
		[]string{"error-wrong-code server", "rdma-error"},
		func(c *synth.Conn) {
			c.RPC(synth.Call{Vers: 2}, synth.NullReply())
			answer(c, getattr2, synth.ErrVers(1, 1).To(getattr2))
		},
	},
	{
		"version 2, and then a procedure that the server does not know",
		"NFS3 NULL ok, (not decoded) ERR_CHUNK",
		[]string{"rdma-error"},
		func(c *synth.Conn) {
			c.RPC(synth.Call{Vers: 2}, synth.NullReply())
			call := getattr2
			call.Proc = 9
			answer(c, call, synth.ErrChunk().To(call))
		},
	},
	// reminv-design s.5.3: rdma_inv_handle is one of the handles of its own Call.
	{
		"version 2, to invalidate the handle of another Call",
		"NFS3 NULL ok, NFS3 READ ok, NFS3 READ ok",
		[]string{"inv-handle-unknown client"},
		func(c *synth.Conn) {
			c.RPC(synth.Null(), synth.NullReply())
			a, b := synth.Read3(0, 1000).Offer(synth.Mem(0xb1, 1000)), synth.Read3(1000, 1000).Offer(synth.Mem(0xb2, 1000))
			a.XID, a.Vers, b.XID, b.Vers, b.InvHandle = 7, 2, 8, 2, 0xb1
			ra, rb := synth.Read3Reply(make([]byte, 1000)).To(a), synth.Read3Reply(make([]byte, 1000)).To(b)
			c.Client.Call(a)
			c.Client.Call(b)
			c.Server.Ack()
			c.Server.Push(ra)
			c.Server.Push(rb)
			c.Server.Reply(rb.Invalidating(0xb1))
			c.Server.Reply(ra)
			c.Client.Ack()
		},
	},
	// bidirection s.2.2.3: the client has sent a CREATE_SESSION.
	{"a callback before the Reply to CREATE_SESSION", "NFS4 CREATE_SESSION ok, NFS_CB1 CB_NULL ok", nil, func(c *synth.Conn) {
		call := synth.Compound(synth.OpCreateSession(synth.ConnBackChannel))
		call.XID = 7
		c.Client.Call(call)
		c.Server.Ack()
		c.Server.RPC(synth.CBNull(), synth.NullReply())
		c.Server.Reply(synth.CompoundReply(synth.ResCreateSession(synth.ConnBackChannel)).To(call))
		c.Client.Ack()
	}},
	// s.2.4, s.2.5: neither a backward Call nor its Reply has chunks.
	{
		"a callback with an empty Reply chunk",
		"NFS4 CREATE_SESSION ok, NFS_CB1 CB_RECALL ok",
		[]string{"backward-with-chunks server", "reduced-ineligible-item server"},
		func(c *synth.Conn) {
			backchannel(c)
			callback(c, recalled.OfferReply(), recalledReply)
		},
	},
	// s.1.3: a REPLY reports the results of a CALL.
	{
		"a callback that the client answers twice",
		"NFS4 CREATE_SESSION ok, NFS_CB1 CB_RECALL ok, CB_RECALL no_call",
		[]string{"reply-without-call client"},
		func(c *synth.Conn) {
			backchannel(c)
			callback(c, recalled, recalledReply, recalledReply)
		},
	},
	// s.2.3: such a message is neither a Call nor a Reply.
	{
		"a message of the server that is too short",
		"NFS4 CREATE_SESSION ok, (not decoded) no_call",
		[]string{"header-truncated server"},
		func(c *synth.Conn) {
			backchannel(c)
			c.Server.Send(synth.XDR{}.Word(0x77, 1, 32, 0).Bytes)
			c.Client.Ack()
			c.Disconnect(c.Client)
		},
	},
	// s.2.1.2: the receiver of a Call above the credits may return an error.
	{
		"a callback above the credits, which the client rejects",
		"NFS4 CREATE_SESSION ok, NFS_CB1 CB_NULL ok, NFS_CB1 CB_RECALL ok, NFS_CB1 CB_RECALL ERR_CHUNK",
		[]string{"credit-limit-exceeded server", "rdma-error"},
		func(c *synth.Conn) {
			backchannel(c)
			c.Server.RPC(synth.CBNull(), synth.Reply{Credits: 1})
			a, b := recalled, recalled
			a.XID, b.XID = 0x71, 0x72
			c.Server.Call(a)
			rejection, reply := synth.ErrChunk().To(b), recalledReply.To(a)
			rejection.Credits, reply.Credits = 1, 1
			callback(c, b, rejection, reply)
		},
	},
	// s.2.4: the XIDs of the two directions are apart.
	{
		"one XID in both directions, with a Write chunk",
		"NFS4 CREATE_SESSION ok, NFS3 READ ok, NFS_CB1 CB_RECALL ok", nil, func(c *synth.Conn) {
			backchannel(c)
			call, back := synth.Read3(0, 1000).Offer(synth.Mem(0xb1, 1000)), recalled
			call.XID, back.XID = 0x77, 0x77
			reply := synth.Read3Reply(make([]byte, 1000)).To(call)
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Push(reply)
			c.Server.Call(back)
			c.Client.Ack()
			c.Server.Reply(reply)
			c.Client.Reply(recalledReply.To(back))
			c.Server.Ack()
			c.Client.Ack()
		},
	},
}

// TestSituations: what the documents say of a situation is what is found in it, on both transports.
func TestSituations(t *testing.T) {
	for _, s := range situations {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			t.Run(transport+"/"+s.name, func(t *testing.T) {
				w := synth.New()
				open := w.RoCE
				if transport == cases.IWARP {
					open = w.IWARP
				}
				c := open(synth.Options{})
				c.Connect()
				s.does(c)
				outcomes := map[int64]string{}
				all := judged(t, testkit.Made(w.Frames), s.want, func(r *record.Transaction) {
					outcomes[r.ID] = query.Deed(r) + " " + query.Outcome(r)
				})
				var got []string
				for _, id := range slices.Sorted(maps.Keys(outcomes)) {
					got = append(got, outcomes[id])
				}
				if text := strings.Join(got, ", "); text != s.outcomes {
					t.Errorf("outcomes are %q, want %q:%s", text, s.outcomes, lines(all))
				}
			})
		}
	}
}

// judged compares the findings in frames with those that are wanted, and returns them. It calls each for each transaction.
func judged(t *testing.T, frames iter.Seq[*capture.Frame], want []string, each func(*record.Transaction)) (all []record.Finding) {
	t.Helper()
	d := dissect.New(dissect.Handler{
		Finding:     func(f *record.Finding) error { all = append(all, *f); return nil },
		Transaction: func(r *record.Transaction) error { each(r); return nil },
	}, dissect.Options{})
	for f := range frames {
		d.Frame(f)
	}
	d.Finish()
	var got []string
	for _, f := range all {
		text := f.Rule
		if side, known := f.AtFault.Get(); known {
			text += " " + string(side)
		}
		if f.Rule == "rdma-version" && f.Severity == record.Note {
			text += " note"
		}
		got = append(got, text)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q:%s", got, want, lines(all))
	}
	return all
}

// TestDiscardedError: an RDMA_ERROR that cannot be decoded is discarded, so that it says nothing about the Reply that follows
// (RFC 8166 s.4.5).
func TestDiscardedError(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.Client.Call(synth.Call{XID: 5})
		c.Server.Reply(synth.Reply{XID: 5, Proc: rpcrdma.Error, Err: 7})
		c.Client.Ack()
		c.Server.Reply(synth.Reply{XID: 5})
		c.Client.Ack()
		r := look.At(w).Transactions[0]
		if r.Status != record.Complete || r.Malformed.Known() || !slices.Equal(r.Findings, []string{"header-malformed"}) {
			t.Errorf("status %s, malformed %q, findings %q", r.Status, r.Malformed.Or(""), r.Findings)
		}
	})
}

// TestDocuments: what the documents say of a situation is what is found in it.
func TestDocuments(t *testing.T) {
	for name, want := range documents {
		t.Run(name, func(t *testing.T) {
			var broken string
			frames, _ := testkit.Frames(t, "../testdata/documents/"+name)
			judged(t, func(yield func(*capture.Frame) bool) {
				for i := 0; i < len(frames) && yield(&frames[i]); i++ {
				}
			}, want, func(r *record.Transaction) { broken += r.Malformed.Or("") })
			if broken != malformed[name] {
				t.Errorf("malformed is %q, want %q", broken, malformed[name])
			}
		})
	}
}
