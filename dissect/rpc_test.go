package dissect_test

import (
	"encoding/json"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestRPC: arguments and results have the names of the protocol, in whatever form they were
// transferred.
func TestRPC(t *testing.T) {
	mem := synth.Mem(0xa1, 8192)
	gss := synth.Getattr3()
	gss.Cred = synth.GSS(oncrpc.ServicePrivacy, 9)
	for name, test := range map[string]struct {
		call  synth.Call
		reply synth.Reply
		want  string
	}{
		"READ of NFSv3": {
			synth.Read3(8192, 5000).Offer(mem), synth.Read3Reply(look.Pattern(5000)),
			`{"call":{"ops":[{"name":"READ","status":null,"fields":{"fh":"` + fh3 + `","offset":8192,"count":5000}}],"error":null},` +
				`"reply":{"ops":[{"name":"READ","status":"NFS3_OK","fields":{"count":5000,"eof":true,"data":{"bytes":5000}}}],"error":null}}`,
		},
		"names from the wire": {
			synth.Compound(synth.OpPutRootFH(), synth.OpLookup("a\x1b\"\xff")), synth.CompoundFailed(2, synth.ResPutRootFH(), synth.ResFailed(15, 2)),
			`{"call":{"ops":[{"name":"PUTROOTFH","status":null,"fields":{}},{"name":"LOOKUP","status":null,"fields":{"name":"a\u001b\"�"}}],"error":null},` +
				`"reply":{"ops":[{"name":"PUTROOTFH","status":"NFS4_OK","fields":{}},{"name":"LOOKUP","status":"NFS4ERR_NOENT","fields":{}}],"error":null}}`,
		},
		"groups and lists": {
			synth.Compound(synth.OpReadDir(4096)).OfferReply(mem), synth.CompoundReply(synth.ResReadDir("one", "two")).Long(),
			`{"call":{"ops":[{"name":"READDIR","status":null,"fields":{"cookie":"0x0000000000000000","cookieverf":"0x0000000000000000","dircount":4096,"maxcount":4096,"attr_request":["change","size"]}}],"error":null},` +
				`"reply":{"ops":[{"name":"READDIR","status":"NFS4_OK","fields":` + listing + `}],"error":null}}`,
		},
		"READ_PLUS": {
			synth.Compound4(2, synth.OpReadPlus(0, 4000)), synth.CompoundReply(synth.ResReadPlus(0, look.Pattern(100))),
			`{"call":{"ops":[{"name":"READ_PLUS","status":null,"fields":{"stateid":"` + stateid + `","offset":0,"count":4000}}],"error":null},` +
				`"reply":{"ops":[{"name":"READ_PLUS","status":"NFS4_OK","fields":{"eof":true,"contents":[{"content":"NFS4_CONTENT_DATA","offset":0,"data":{"bytes":100}}]}}],"error":null}}`,
		},
		"RPCSEC_GSS with privacy": {
			gss, synth.Getattr3Reply(),
			`{"call":{"ops":[],"error":"RPCSEC_GSS with privacy, sequence 9: encrypted"},"reply":{"ops":[],"error":"RPCSEC_GSS with privacy, sequence 9: encrypted"}}`,
		},
		"no program that is known": {synth.Call{Program: 99}, synth.NullReply(), `{"call":null,"reply":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := w.RoCE(synth.Options{})
			c.Connect()
			c.RPC(test.call, test.reply)
			var got []byte
			d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
				var err error
				if got, err = json.Marshal(r.RPC); err != nil {
					t.Error(err)
				}
				return nil
			}}, dissect.Options{RPC: true})
			for f := range testkit.Made(w.Frames) {
				d.Frame(f)
			}
			d.Finish()
			if string(got) != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
}

const (
	fh3     = "612066696c6527732068616e646c652e" // file handle
	stateid = "1:6120737461746569642e2e2e"
	listing = `{"cookieverf":"0x0000000000000001","entries":[{"cookie":"0x0000000000000003","name":"one","attributes":{"change":7,"size":8192}},` +
		`{"cookie":"0x0000000000000004","name":"two","attributes":{"change":7,"size":8192}}],"eof":true}`
)

// TestCutCredential: if the credential of a Call is truncated, no operation is decoded from the
// rest of it.
func TestCutCredential(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"rocev2-callback41.pcap.zst")
	for _, snap := range []int{130, 140, 146} {
		calls := 0
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			if name, _ := r.ProcedureName.Get(); name != "COMPOUND" || r.Call.SendBytes.Or(0) < 140 || r.Call.HeaderBytes.Or(0) != 28 {
				return nil
			}
			if calls++; r.Operations != nil {
				t.Errorf("cut to %d bytes, transaction %d is %v", snap, r.ID, r.Operations)
			}
			return nil
		}}, dissect.Options{})
		for i := range frames {
			f := frames[i]
			f.Data = f.Data[:min(snap, len(f.Data))]
			d.Frame(&f)
		}
		if d.Finish(); calls < 10 {
			t.Errorf("cut to %d bytes: %d Calls", snap, calls)
		}
	}
}

// TestStranger: a Send that is not RPC-over-RDMA has no XID, also if its connection turns out to
// carry RPC-over-RDMA, and one of its packets is retransmitted.
func TestStranger(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Client.Send([]byte("what is no RPC-over-RDMA"))
	c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	again := *w.Frames[0]
	again.Time = w.Frames[len(w.Frames)-1].Time + 1
	var last *record.Packet
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		last = p.Clone()
		return nil
	}}, dissect.Options{})
	for i, f := range append(w.Frames, &again) {
		d.Frame(&capture.Frame{Number: int64(i + 1), Time: f.Time, LinkType: capture.LinkType(f.LinkType), Length: f.Length, Data: f.Data})
	}
	if d.Finish(); last.RDMAOperation != "Send" || last.Marks&record.Retransmitted == 0 || last.XID.Known() {
		t.Errorf("%s, marks %b, XID %v", last.RDMAOperation, last.Marks, last.XID)
	}
}
