package synth_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/synth"
)

// TestMessages: the payloads of Sends, word by word.
func TestMessages(t *testing.T) {
	call := synth.Call{XID: 7}.Offer(synth.Mem(0xa1, 16))
	for name, test := range map[string]struct {
		got  []byte
		want string
	}{
		"NULL": {
			synth.Call{XID: 7}.Bytes(),
			"00000007 00000001 00000020 00000000 00000000 00000000 00000000" +
				"00000007 00000000 00000002 000186a3 00000003 00000000 00000000 00000000 00000000 00000000",
		},
		"zeros and a tail": {
			synth.Call{XID: 7, Vers: synth.Zero, Credits: synth.Zero, Proc: rpcrdma.Done, Tail: []byte{1}}.Bytes(),
			"00000007 00000000 00000000 00000003 01",
		},
		"its Reply": {
			synth.NullReply().To(call).Bytes(),
			"00000007 00000001 00000020 00000000 00000000 00000001 00000001 000000a1 00000000 00000000a1000000 00000000 00000000" +
				"00000007 00000001 00000000 00000000 00000000 00000000",
		},
		"another version": {
			synth.Call{XID: 7, Vers: 3, RPC: &synth.XDR{}, ReplyChunk: synth.Chunk()}.Offer().Bytes(),
			"00000007 00000003 00000020 00000000 00000000 00000001 00000000 00000000 00000001 00000000",
		},
		"version two of the draft": {
			synth.Reply{RPC: &synth.XDR{}}.To(synth.Call{XID: 7, Vers: 2, InvHandle: 0xa1}).Bytes(),
			"00000007 00000002 00000020 00000000 00000001 000000a1 00000000 00000000 00000000",
		},
		"ERR_VERS": {synth.ErrVers(1, 2).To(call).Bytes(), "00000007 00000001 00000020 00000004 00000001 00000001 00000002"},
		"denied": {
			synth.Reply{XID: 7, Deny: []uint32{1, 5}}.Message().Whole(),
			"00000007 00000001 00000001 00000001 00000005",
		},
		"GARBAGE_ARGS": {
			synth.Reply{XID: 7, Accept: 4}.Message().Whole(),
			"00000007 00000001 00000000 00000000 00000000 00000004",
		},
		"RPCSEC_GSS": {
			synth.Call{XID: 7, Cred: synth.GSS(oncrpc.ServicePrivacy, 9)}.Message().Whole()[24:],
			"00000006 00000018 00000001 00000000 00000009 00000003 00000004 01020304 00000000 00000000",
		},
	} {
		want, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(test.want), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(test.got, want) {
			t.Errorf("%s:\n got %x\nwant %x", name, test.got, want)
		}
	}
}

// TestItems: the positions of data items, and the bytes that remain without them.
func TestItems(t *testing.T) {
	x := synth.XDR{}.Word(1).Data([]byte("abcde")).Append(synth.XDR{}.Word(2).Data([]byte("f")), synth.XDR{}.String("g"))
	inline := func(want string) {
		t.Helper()
		if got := hex.EncodeToString(x.Inline()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	inline("00000001" + "00000005" + "6162636465000000" + "00000002" + "00000001" + "66000000" + "00000001" + "67000000")
	if x.Position(0) != 8 || x.Position(1) != 24 {
		t.Errorf("Positions %d and %d", x.Position(0), x.Position(1))
	}
	x.Items[0].Reduced = true
	inline("00000001" + "00000005" + "00000002" + "00000001" + "66000000" + "00000001" + "67000000")
	x.Items[0].KeepPad = true
	inline("00000001" + "00000005" + "000000" + "00000002" + "00000001" + "66000000" + "00000001" + "67000000")
	if x.Position(1) != 24 || len(x.Whole()) != 36 {
		t.Errorf("Position %d, %d bytes", x.Position(1), len(x.Whole()))
	}
}

// TestReturned: the returned lengths of chunks.
func TestReturned(t *testing.T) {
	call := synth.Read3(0, 10).Offer(synth.Mem(1, 4), synth.Mem(2, 4), synth.Mem(3, 4)).Offer(synth.Mem(4, 4)).OfferReply(synth.Mem(5, 400))
	lengths := func(r synth.Reply) (n []uint32) {
		for _, chunk := range append(r.Writes, r.ReplyChunk) {
			for _, s := range chunk {
				n = append(n, s.Length)
			}
		}
		return n
	}
	for name, test := range map[string]struct {
		reply synth.Reply
		want  [5]uint32
	}{
		"fits":      {synth.Read3Reply(data(10)), [5]uint32{4, 4, 2, 0, 0}},
		"too long":  {synth.Read3Reply(data(14)), [5]uint32{4, 4, 6, 0, 0}},
		"failed":    {synth.Failed(5, 0), [5]uint32{}},
		"long":      {synth.Read3Reply(data(3)).Long(), [5]uint32{3, 0, 0, 0, 44}},
		"ERR_CHUNK": {synth.ErrChunk(), [5]uint32{}},
	} {
		r := test.reply.To(call)
		if got := lengths(r); len(got) != 0 && [5]uint32(got) != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if call.Writes[0][0].Length != 4 {
		t.Error("the Call was changed")
	}
}
