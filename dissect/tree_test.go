package dissect_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/render"
	"github.com/rdmadump/rdmadump/synth"
)

// trees returns the parts of the packets of a wire below their RPC headers, as JSON and as text.
func trees(t *testing.T, w *synth.Wire) (asJSON []string, text string) {
	t.Helper()
	var out bytes.Buffer
	draw := render.NewPackets(&out, render.NewTheme(false), 0)
	draw.Tree = true
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		draw.Packet(p)
		var members map[string]json.RawMessage
		line := render.AppendPacketJSON(nil, p, true)
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatalf("the JSON of a packet is not valid: %v: %s", err, line)
		}
		for _, key := range []string{"auth_sys", "rpcsec_gss", "gss_body", "nfs", "auth_sys_2", "nfs_2"} {
			if members[key] != nil {
				asJSON = append(asJSON, key+" "+string(members[key]))
			}
		}
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if n.Kind != record.NodeValue || n.Offset < 0 {
				continue
			}
			// The value of a number is the bytes at its offset.
			if n.Offset+n.Length > len(p.Data) {
				t.Errorf("packet %d: %s at %d+%d of %d bytes", p.Number, n.Label, n.Offset, n.Length, len(p.Data))
			} else if b := p.Data[n.Offset:]; n.Name == "offset" && string(n.Data) != fmt.Sprint(binary.BigEndian.Uint64(b)) || n.Name == "count" && string(n.Data) != fmt.Sprint(binary.BigEndian.Uint32(b)) {
				t.Errorf("packet %d: %s %s at %d, where %x stands", p.Number, n.Label, n.Data, n.Offset, b[:n.Length])
			}
		}
		return nil
	}}, dissect.Options{Tree: true})
	for f := range testkit.Made(w.Frames) {
		if err := d.Frame(f); err != nil {
			t.Fatal(err)
		}
	}
	d.Finish()
	return asJSON, out.String()
}

const (
	sysBody   = `auth_sys {"stamp":1,"machine_name":"client","uid":7,"gid":8,"gids":[]}`
	longName  = 1500
	getattr3  = `{"name":"GETATTR","status":"NFS3_OK",`
	session   = "612073657373696f6e2773206e616d65"
	sequenced = `"sessionid":"` + session + `","sequenceid":`
)

// TestTrees: the trees of packets show credentials, arguments and results below the RPC headers,
// in every form in which they can be transferred.
func TestTrees(t *testing.T) {
	sys := synth.Getattr3()
	sys.Cred = synth.AuthSys(7, 8)
	gss := func(service oncrpc.Service, args synth.XDR) synth.Call {
		c := synth.Getattr3()
		if args.Bytes != nil {
			c.Args = args
		}
		c.Cred = synth.GSS(service, 9)
		return c
	}
	handle := synth.XDR{}.String("a file's handle.")
	integrity := synth.XDR{}.Word(uint32(4+len(handle.Bytes)), 9).Append(handle).String("checksum")
	context := gss(oncrpc.ServiceNone, synth.XDR{})
	context.Cred.Body[7] = 1 // RPCSEC_GSS_INIT
	context.Procedure = 0
	destroy := gss(oncrpc.ServiceIntegrity, synth.XDR{})
	destroy.Cred.Body[7] = 3 // RPCSEC_GSS_DESTROY
	destroy.Procedure, destroy.Args = 0, synth.XDR{}
	write := synth.Write3(1<<30, look.Pattern(5000))
	for name, test := range map[string]struct {
		options synth.Options
		iwarp   bool
		call    synth.Call
		reply   synth.Reply
		want    []string
	}{
		"AUTH_SYS": {
			call: sys, reply: synth.Getattr3Reply(),
			want: []string{sysBody, `nfs {"ops":[{"name":"GETATTR","fields":{"fh":"` + fh3 + `"}}]}`, `nfs {"ops":[` + getattr3},
		},
		"RPCSEC_GSS with integrity": {
			call: gss(oncrpc.ServiceIntegrity, integrity), reply: synth.Reply{Deny: []uint32{1, 13}},
			want: []string{
				`rpcsec_gss {"version":1,"procedure":"RPCSEC_GSS_DATA","sequence":9,"service":"integrity","handle_bytes":4}`,
				`gss_body {"body_bytes":24,"sequence":9,"checksum_bytes":8}`,
				`nfs {"ops":[{"name":"GETATTR","fields":{"fh":"` + fh3 + `"}}]}`,
			},
		},
		"RPCSEC_GSS with privacy": {
			call: gss(oncrpc.ServicePrivacy, synth.XDR{}), reply: synth.Getattr3Reply(),
			want: []string{
				`rpcsec_gss {"version":1,"procedure":"RPCSEC_GSS_DATA","sequence":9,"service":"privacy","handle_bytes":4}`,
				`gss_body {"unreadable":"RPCSEC_GSS encrypts arguments and results, and only the two peers have the key"}`,
				`gss_body {"unreadable":"RPCSEC_GSS encrypts arguments and results, and only the two peers have the key"}`,
			},
		},
		"RPCSEC_GSS makes a context": {
			call: context, reply: synth.Reply{Deny: []uint32{1, 13}},
			want: []string{`rpcsec_gss {"version":1,"procedure":"RPCSEC_GSS_INIT","sequence":9,"service":"none","handle_bytes":4}`},
		},
		"RPCSEC_GSS ends a context": {
			call: destroy, reply: synth.NullReply(),
			want: []string{`rpcsec_gss {"version":1,"procedure":"RPCSEC_GSS_DESTROY","sequence":9,"service":"integrity","handle_bytes":4}`},
		},
		"a reduced item": {
			call: write.Reduce(0xa1), reply: synth.Write3Reply(5000),
			want: []string{
				`nfs {"ops":[{"name":"WRITE","fields":{"fh":"` + fh3 + `","offset":1073741824,"count":5000,"stable":"FILE_SYNC","data":{"bytes":5000}}}]}`,
				`nfs {"ops":[{"name":"WRITE","status":"NFS3_OK","fields":{"wcc":{},"count":5000,"committed":"FILE_SYNC","verifier":"0x`,
			},
		},
		"what stands behind one": {
			call: synth.Compound(synth.OpSequence(3), synth.OpWrite(7, look.Pattern(4001)), synth.OpRead(1<<40, 12)).Reduce(0xa1), reply: synth.CompoundFailed(10008, synth.ResFailed(53, 10008)),
			want: []string{
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"SEQUENCE","opcode":53,"fields":{` + sequenced + `3,"slotid":0,"highest_slotid":0,"cachethis":true}},` +
					`{"name":"WRITE","opcode":38,"fields":{"stateid":"` + stateid + `","offset":7,"stable":"FILE_SYNC4","data":{"bytes":4001}}},` +
					`{"name":"READ","opcode":25,"fields":{"stateid":"` + stateid + `","offset":1099511627776,"count":12}}]}`,
				`nfs {"status":"NFS4ERR_DELAY","tag":"","ops":[{"name":"SEQUENCE","opcode":53,"status":"NFS4ERR_DELAY","fields":{}}]}`,
			},
		},
		"several packets": {
			options: synth.Options{MTU: 1024},
			call:    synth.Compound(synth.OpLookup(strings.Repeat("n", longName)), synth.OpRead(5, 6)),
			reply:   synth.CompoundFailed(63, synth.ResFailed(15, 63)),
			want: []string{
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"LOOKUP","opcode":15,"fields":{}}],"continues":"the message continues in the following packets"}`,
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"LOOKUP","opcode":15,"fields":{"name":"` + strings.Repeat("n", longName) + `"}},` +
					`{"name":"READ","opcode":25,"fields":{"stateid":"` + stateid + `","offset":5,"count":6}}]}`,
				`nfs {"status":"NFS4ERR_NAMETOOLONG"`,
			},
		},
		"several FPDUs": {
			options: synth.Options{MTU: 700}, iwarp: true,
			call:  synth.Compound(synth.OpLookup(strings.Repeat("n", longName)), synth.OpRead(5, 6)),
			reply: synth.CompoundFailed(63, synth.ResFailed(15, 63)),
			want: []string{
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"LOOKUP","opcode":15,"fields":{}}],"continues":"the message continues in the following packets"}`,
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"LOOKUP","opcode":15,"fields":{"name":"` + strings.Repeat("n", longName) + `"}},`,
				`nfs {"status":"NFS4ERR_NAMETOOLONG"`,
			},
		},
		"an FPDU of more than is noted, with markers": {
			options: synth.Options{Markers: true}, iwarp: true,
			call: synth.Compound(synth.OpLookup(strings.Repeat("n", 900)), synth.OpRead(5, 6)), reply: synth.CompoundFailed(63, synth.ResFailed(15, 63)),
			want: []string{
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"LOOKUP","opcode":15,"fields":{"name":"` + strings.Repeat("n", 900) + `"}},{"name":"READ","opcode":25,"fields":{"stateid":"` + stateid + `","offset":5,"count":6}}]}`,
				`nfs {"status":"NFS4ERR_NAMETOOLONG"`,
			},
		},
		"a count that lies": {
			call: synth.Compound(synth.XDR{}.Word(55, 0x40000000)), reply: synth.CompoundFailed(10036, synth.ResFailed(55, 10036)),
			want: []string{
				`nfs {"tag":"","minorversion":1,"ops":[{"name":"TEST_STATEID","opcode":55,"fields":{"stateids":[]}}],"error":"nfs: TEST_STATEID stateids needs 17179869184 bytes at offset 20, 0 left: truncated"}`,
				`nfs {"status":"NFS4ERR_BADXDR"`,
			},
		},
		"names from the wire": {
			call: synth.Compound(synth.OpLookup("\x1b[2J\"\xff\u202e")), reply: synth.CompoundFailed(2, synth.ResFailed(15, 2)),
			want: []string{`nfs {"tag":"","minorversion":1,"ops":[{"name":"LOOKUP","opcode":15,"fields":{"name":"\u001b[2J\"` + `�\u202e`, `nfs {"status":"NFS4ERR_NOENT"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			conn := w.RoCE
			if test.iwarp {
				conn = w.IWARP
			}
			c := conn(test.options)
			c.Connect()
			c.RPC(test.call, test.reply)
			got, text := trees(t, w)
			if len(got) != len(test.want) {
				t.Fatalf("got %d: %s", len(got), strings.Join(got, "\n"))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("\n got %s\nwant %s", got[i], test.want[i])
				}
			}
			for _, r := range text {
				if r != '\n' && (r < ' ' || r >= 0x7f) {
					t.Errorf("%q in what people see", r)
				}
			}
		})
	}
}

// TestCallbackTrees: a CB_COMPOUND and its Reply, and both when they are retransmitted after the
// Call was answered.
func TestCallbackTrees(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Compound(synth.OpCreateSession(synth.ConnBackChannel)), synth.CompoundReply(synth.ResCreateSession(synth.ConnBackChannel)))
	frames := c.Server.RPC(synth.CBCompound(synth.OpCBSequence(5), synth.OpCBRecall()), synth.CompoundReply(synth.ResCBSequence(5), synth.ResCBRecall()))
	w.Retransmit(frames...)
	got, _ := trees(t, w)
	want := []string{
		`nfs {"tag":"","minorversion":1,"callback_ident":0,"ops":[{"name":"CB_SEQUENCE","opcode":11,"fields":{` + sequenced + `5,"slotid":0,"highest_slotid":0,"cachethis":false,"referring_call_lists":[]}},` +
			`{"name":"CB_RECALL","opcode":4,"fields":{"stateid":"` + stateid + `","truncate":false,"fh":"` + fh3 + `"}}]}`,
		`nfs {"status":"NFS4_OK","tag":"","ops":[{"name":"CB_SEQUENCE","opcode":11,"status":"NFS4_OK","fields":{` + sequenced + `5,"slotid":0,"highest_slotid":0,"target_highest_slotid":0}},` +
			`{"name":"CB_RECALL","opcode":4,"status":"NFS4_OK","fields":{}}]}`,
	}
	if len(got) != 6 || got[2] != want[0] || got[3] != want[1] || got[4] != want[0] || got[5] != want[1] {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

// TestPlaces: a value that is not in one piece in its frame has no offset, and arguments that
// RPCSEC_GSS protects end before the checksum.
func TestPlaces(t *testing.T) {
	var out strings.Builder
	draw := render.NewPackets(&out, render.NewTheme(false), 0)
	draw.Tree = true
	draw.Packet(&record.Packet{Nodes: []record.Node{
		{Kind: record.NodeFields, Offset: -1, Length: 14, Table: &header.DDPTagged, Data: make([]byte, 14)},
		{Kind: record.NodeFields, Offset: 50, Length: 14, Table: &header.DDPTagged, Data: make([]byte, 14)},
	}})
	if text := out.String(); strings.Count(text, "STag: 0x00000000") != 2 || strings.Count(text, " @") != strings.Count(text, " @5")+strings.Count(text, " @6") || !strings.Contains(text, " @52+4") {
		t.Errorf("only a header inside the packet has places, from 50 on, but the tree is\n%s", text)
	}

	w := synth.New()
	r := w.RoCE(synth.Options{})
	r.Connect()
	call := synth.Getattr3()
	call.Args = synth.XDR{}.Word(uint32(4+len(call.Args.Bytes)), 9).Append(call.Args).String("checksum")
	call.Cred = synth.GSS(oncrpc.ServiceIntegrity, 9)
	r.RPC(call, synth.Reply{Deny: []uint32{1, 13}})
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Name == "nfs" && n.Length != 20 {
				t.Errorf("%d bytes of arguments at %d", n.Length, n.Offset)
			}
		}
		return nil
	}}, dissect.Options{Tree: true})
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	d.Finish()
}

// TestTreesChangeNothing: without the option, the records are the same.
func TestTreesChangeNothing(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Read3(8192, 5000).Offer(synth.Mem(0xa1, 8192)), synth.Read3Reply(look.Pattern(5000)))
	for _, tree := range []bool{false, true} {
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			line := render.AppendPacketJSON(nil, p, true)
			if !tree && (p.Messages != nil || bytes.Contains(line, []byte(`"nfs":`))) {
				t.Errorf("a packet without a tree has decoded messages: %s", line)
			}
			return nil
		}}, dissect.Options{Tree: tree})
		for f := range testkit.Made(w.Frames) {
			d.Frame(f)
		}
		d.Finish()
	}
}

// TestVersion2Trees: the tree of a message of the remote invalidation draft has its header and its RPC message, and the
// ladder shows the handle that it names.
func TestVersion2Trees(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		call := synth.Read3(0, 100).Offer(synth.Mem(0xa1, 100))
		call.XID, call.Vers, call.InvHandle = 9, 2, 0xa1
		c.RPC(call, synth.Read3Reply(make([]byte, 100)).Invalidating(0xa1))
		_, text := trees(t, w)
		for _, want := range []string{"Direction: Call", "Direction: Reply", "Handle to invalidate: 0x000000a1", "Write list", "Program: 100003", "Procedure name: READ", "Status: SUCCESS"} {
			if !strings.Contains(text, want) {
				t.Errorf("the tree has no %q:\n%s", want, text)
			}
		}
		var ladder bytes.Buffer
		for _, r := range look.At(w).Transactions {
			render.Ladder(&ladder, render.NewTheme(false), 120, r, true)
		}
		if want := "rdma_inv_handle 0x000000a1"; !strings.Contains(ladder.String(), want) {
			t.Errorf("the ladder has no %q:\n%s", want, ladder.String())
		}
	})
}

// TestHeaderOfTwoPackets: a header that goes on in the next packet of its Send is no error, and one that ends with the Send is.
func TestHeaderOfTwoPackets(t *testing.T) {
	call := synth.Null()
	for i := range uint32(60) { // 24 bytes each in the header
		call.Reads = append(call.Reads, rpcrdma.ReadSegment{Position: 40, Segment: synth.Mem(0x100+i, 8)})
	}
	look.Both(t, synth.Options{MTU: 1024}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.Client.Call(call)
		_, whole := trees(t, w)
		if !strings.Contains(whole, "Continues: in the following packets") || strings.Contains(whole, "Error: ") {
			t.Errorf("the tree of a header of two packets:\n%s", whole)
		}
		c.Client.Send(call.Bytes()[:1000])
		if _, cut := trees(t, w); !strings.Contains(cut, "Error: next word of the Read list truncated") {
			t.Errorf("the tree of a header that ends too soon has no error:\n%s", cut)
		}
	})
}

// TestMismatches: the tree of a Reply that rejects a version has the versions that the responder supports.
func TestMismatches(t *testing.T) {
	look.Both(t, synth.Options{}, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		c.RPC(synth.Getattr3(), synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)})
		c.RPC(synth.Getattr3(), synth.Reply{Deny: []uint32{0, 5, 6}})
		_, text := trees(t, w)
		for _, want := range []string{"Lowest version: 2", "Highest version: 4", "Lowest version: 5", "Highest version: 6"} {
			if !strings.Contains(text, want) {
				t.Errorf("the tree has no %q:\n%s", want, text)
			}
		}
	})
}
