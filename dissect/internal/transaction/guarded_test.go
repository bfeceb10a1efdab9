package transaction_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/floods"
	"github.com/rdmadump/rdmadump/render"
	"github.com/rdmadump/rdmadump/synth"
)

// labels returns the summaries of the Replies on a wire, each with the status in its JSON.
func labels(t *testing.T, w *synth.Wire, o dissect.Options) (said []string) {
	t.Helper()
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		_, text, _ := strings.Cut(string(p.Summary), "| RDMA_MSG")
		if _, text, found := strings.Cut(text, "Reply "); found {
			status := ""
			if line := string(render.AppendPacketJSON(nil, p, true)); strings.Contains(line, `"nfs_status":"`) {
				_, status, _ = strings.Cut(line, `"nfs_status":"`)
				status, _, _ = strings.Cut(status, `"`)
			}
			said = append(said, text+" / "+status)
		}
		return nil
	}}, o)
	if _, err := d.Run(t.Context(), testkit.Source(t, w)); err != nil {
		t.Fatal(err)
	}
	return said
}

// TestGuardedReplies: the status of a packet is that of the COMPOUND, whatever RPCSEC_GSS puts
// before it. If the protection is unknown, there is no status.
func TestGuardedReplies(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // several, for Ahead
	// Sequence numbers 5 to 8 could be the length of a tag of eight bytes that follows a status,
	// and the length of the body could be the status.
	call := func(service oncrpc.Service, sequence uint32) synth.Call {
		c := synth.Compound(synth.OpSequence(sequence), synth.OpLookup("name"))
		c.Cred = synth.GSS(service, sequence)
		if service == oncrpc.ServiceIntegrity {
			c.Args = synth.XDR{}.Word(uint32(4+len(c.Args.Bytes)), sequence).Append(c.Args).String("checksum")
		}
		return c
	}
	reply := func(service oncrpc.Service, sequence uint32) synth.Reply {
		r := synth.CompoundFailed(2, synth.ResSequence(sequence), synth.ResFailed(15, 2))
		r.Verf = oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: []byte("verifier")}
		if service != oncrpc.ServiceNone {
			r.Results = synth.XDR{}.Word(uint32(4+len(r.Results.Bytes)), sequence).Append(r.Results).String("checksum")
		}
		return r
	}
	const noent, nothing = "SUCCESS NFS4ERR_NOENT SEQUENCE+LOOKUP / NFS4ERR_NOENT", "SUCCESS / "
	for name, test := range map[string]struct {
		act  func(c *synth.Conn, w *synth.Wire)
		want []string
	}{
		"integrity": {func(c *synth.Conn, w *synth.Wire) {
			for i := range uint32(6) {
				c.RPC(call(oncrpc.ServiceIntegrity, 4+i), reply(oncrpc.ServiceIntegrity, 4+i))
			}
		}, []string{noent, noent, noent, noent, noent, noent}},
		"none": {func(c *synth.Conn, w *synth.Wire) {
			c.RPC(call(oncrpc.ServiceNone, 5), reply(oncrpc.ServiceNone, 5))
		}, []string{noent}},
		"privacy": {func(c *synth.Conn, w *synth.Wire) {
			c.RPC(call(oncrpc.ServicePrivacy, 5), reply(oncrpc.ServicePrivacy, 5))
		}, []string{nothing}},
		"its Call is not in the capture": {func(c *synth.Conn, w *synth.Wire) {
			c.RPC(synth.Compound(synth.OpSequence(1)), synth.CompoundReply(synth.ResSequence(1)))
			c.Server.Reply(reply(oncrpc.ServiceIntegrity, 5))
		}, []string{"SUCCESS NFS4_OK SEQUENCE / NFS4_OK", nothing}},
		"a context is made": {func(c *synth.Conn, w *synth.Wire) {
			c.RPC(synth.Compound(synth.OpSequence(1)), synth.CompoundReply(synth.ResSequence(1)))
			init := call(oncrpc.ServiceIntegrity, 5)
			init.Cred.Body[7], init.Procedure = 1, 0
			c.RPC(init, reply(oncrpc.ServiceIntegrity, 5))
		}, []string{"SUCCESS NFS4_OK SEQUENCE / NFS4_OK", nothing}},
		"it comes again": {func(c *synth.Conn, w *synth.Wire) {
			c.Client.Call(call(oncrpc.ServiceIntegrity, 5))
			frames := c.Server.Reply(reply(oncrpc.ServiceIntegrity, 5))
			w.Retransmit(frames...)
		}, []string{noent, noent}},
	} {
		for _, o := range []dissect.Options{{}, {Ahead: true}, {Tree: true}} {
			w := synth.New()
			c := floods.RoCE(w)
			test.act(c, w)
			if got := labels(t, w, o); !slices.Equal(got, test.want) {
				t.Errorf("%s, with Ahead %t and Tree %t: the RPCs are shown as %q, want %q", name, o.Ahead, o.Tree, got, test.want)
			}
		}
	}
}

// TestGuardedFPDUs: the same for iWARP, where a segment may contain several Replies.
func TestGuardedFPDUs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // several, for Ahead
	call := synth.Compound(synth.OpSequence(5))
	call.Cred = synth.GSS(oncrpc.ServiceIntegrity, 5)
	call.Args = synth.XDR{}.Word(uint32(4+len(call.Args.Bytes)), 5).Append(call.Args).String("checksum")
	reply := synth.CompoundReply(synth.ResSequence(5))
	reply.Verf = oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: []byte("verifier")}
	reply.Results = synth.XDR{}.Word(uint32(4+len(reply.Results.Bytes)), 5).Append(reply.Results).String("checksum")
	w := synth.New()
	c := w.IWARP(synth.Options{})
	c.Connect()
	c.RPC(call, reply)
	c.RPC(call, reply)
	for _, ahead := range []bool{false, true} {
		if got := labels(t, w, dissect.Options{Ahead: ahead}); len(got) != 2 || got[0] != "SUCCESS NFS4_OK SEQUENCE / NFS4_OK" || got[1] != got[0] {
			t.Errorf("two RPCs with a verifier and a checksum, with Ahead %t, are shown as %q", ahead, got)
		}
	}
}

// TestCutCalls: a Call that is truncated in its credential has no operations, and no credential
// unless it was decoded.
func TestCutCalls(t *testing.T) {
	w := synth.New()
	c := floods.RoCE(w)
	call := synth.Compound(synth.OpSequence(1))
	call.Cred = synth.AuthSys(7, 8)
	frames := c.Client.Call(call)
	whole := frames[0].Data
	rpc := strings.Index(string(whole), string([]byte{0, 0, 0, 2, 0, 1, 0x86, 0xa3})) - 8
	for cut, want := range map[int]string{
		rpc + 24: "<nil> <nil> <nil>", rpc + 28: "AUTH_SYS <nil> <nil>", rpc + 40: "AUTH_SYS <nil> <nil>", rpc + 64: "AUTH_SYS AUTH_NONE <nil>", len(whole) - 4: "AUTH_SYS AUTH_NONE [SEQUENCE]",
	} {
		frames[0].Data = whole[:cut]
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			if !strings.Contains(string(p.Summary), " Call ") {
				return nil
			}
			var members struct {
				RPC map[string]any `json:"rpc"`
			}
			if err := json.Unmarshal(render.AppendPacketJSON(nil, p, true), &members); err != nil {
				t.Error(err)
			}
			if got := fmt.Sprint(members.RPC["credential"], " ", members.RPC["verifier"], " ", members.RPC["operations"]); got != want {
				t.Errorf("%d bytes of RPC: %s, not %s: %s", cut-rpc, got, want, p.Summary)
			}
			if strings.Contains(string(p.Summary), "OP_") {
				t.Errorf("%d bytes of RPC: %s", cut-rpc, p.Summary)
			}
			return nil
		}}, dissect.Options{})
		for f := range testkit.Made(w.Frames) {
			d.Frame(f)
		}
		d.Finish()
	}
}
