package dissect_test

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/render"
	"github.com/rdmadump/rdmadump/synth"
)

// ladders returns the lines about operations in the ladders of a wire, and the width of their
// longest line.
func ladders(t *testing.T, w *synth.Wire, width int, o dissect.Options) (said []string, widest int) {
	t.Helper()
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		var b strings.Builder
		if err := render.Ladder(&b, render.NewTheme(false), width, r, true); err != nil {
			t.Error(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			widest = max(widest, len(line))
			if at := strings.Repeat(" ", 21); strings.HasPrefix(line, at) && !strings.Contains(line, "more of these") {
				line, _, _ = strings.Cut(line[len(at):], "  ") // without the bars
				said = append(said, strings.TrimSuffix(line, " |"))
			}
			for _, c := range line {
				if c < ' ' || c >= 0x7f {
					t.Errorf("%q in %q", c, line)
				}
			}
		}
		return nil
	}}, o)
	for f := range testkit.Made(w.Frames) {
		d.Frame(f)
	}
	d.Finish()
	return said, widest
}

// TestLaddersSay: a ladder has one line per operation at the Call and at the Reply, in whatever
// form they were transferred. The lines are safe to print, limited in number, and shortened to
// the width.
func TestLaddersSay(t *testing.T) {
	secret := synth.Getattr3()
	secret.Cred = synth.GSS(oncrpc.ServicePrivacy, 9)
	many := make([]synth.XDR, 30)
	for i := range many {
		many[i] = synth.OpPutRootFH()
	}
	long := synth.Compound(synth.OpReadDir(4096)).OfferReply(synth.Mem(0xa2, 8192))
	for name, test := range map[string]struct {
		width int
		call  synth.Call
		reply synth.Reply
		want  []string
	}{
		"READ": {
			120, synth.Compound(synth.OpSequence(3), synth.OpPutFH(), synth.OpRead(1<<20, 5000)).Offer(synth.Mem(0xa1, 8192)),
			synth.CompoundReply(synth.ResSequence(3), synth.ResPutFH(), synth.ResRead(look.Pattern(5000))),
			[]string{
				"SEQUENCE slotid 0 sequenceid 3 sessionid " + session + " highest_slotid 0 cac~",
				"PUTFH fh " + fh3, "READ offset 1048576 count 5000 stateid " + stateid,
				"SEQUENCE NFS4_OK slotid 0 sequenceid 3 sessionid " + session + " highest_slot~",
				"PUTFH NFS4_OK", "READ NFS4_OK 5000 bytes eof",
			},
		},
		"a Long Reply, with a list": {
			100, long, synth.CompoundReply(synth.ResReadDir("one", "two")).Long(),
			[]string{
				"READDIR cookie 0x0000000000000000 cookieverf 0x0000000000000000 dircount 4~",
				"READDIR NFS4_OK eof cookieverf 0x0000000000000001 2 entries",
			},
		},
		"WRITE that failed": {
			100, synth.Write3(7, look.Pattern(300)).Reduce(0xa1),
			synth.Reply{Results: synth.XDR{}.Word(28, 0, 0)},
			[]string{"WRITE offset 7 count 300 300 bytes fh " + fh3 + " sta~", "WRITE NFS3ERR_NOSPC"},
		},
		"names from the wire": {
			132, synth.Compound(synth.OpLookup("a\x1b[2J\"\xff\u202e" + strings.Repeat("n", 100))), synth.CompoundFailed(2, synth.ResFailed(15, 2)),
			[]string{`LOOKUP name "a\x1b[2J\"\xff\u202ennnnnnnnnnnnnnnnnnnnnnnnnnnnnn".. (110 bytes)`, "LOOKUP NFS4ERR_NOENT"},
		},
		"many operations": {
			80, synth.Compound(many...), synth.CompoundFailed(10070, synth.ResFailed(24, 10070)),
			[]string{
				"PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH", "PUTROOTFH",
				"... 19 more operations", "PUTROOTFH NFS4ERR_TOO_MANY_OPS",
			},
		},
		"a count that lies": {
			132, synth.Compound(synth.XDR{}.Word(55, 0x40000000)), synth.CompoundFailed(10036, synth.ResFailed(55, 10036)),
			[]string{
				"TEST_STATEID 0 stateids", "nfs: TEST_STATEID stateids needs 17179869184 bytes at offset 20, 0 left: truncated", "TEST_STATEID NFS4ERR_BADXDR",
			},
		},
		"RPCSEC_GSS with privacy": {
			100, secret, synth.Getattr3Reply(),
			[]string{"RPCSEC_GSS with privacy, sequence 9: encrypted", "RPCSEC_GSS with privacy, sequence 9: encrypted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := w.RoCE(synth.Options{})
			c.Connect()
			c.RPC(test.call, test.reply)
			got, widest := ladders(t, w, test.width, dissect.Options{Decode: true})
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if widest > test.width {
				t.Errorf("%d wide", widest)
			}
			if got, _ := ladders(t, w, test.width, dissect.Options{Decode: true, XIDs: []record.Hex32{0x77777777}}); got != nil {
				t.Errorf("of another XID: %s", got)
			}
		})
	}
}

// TestReplyAlone: if the Call is not in the capture, the ladder shows the results of a Reply that
// can be decoded as those of a COMPOUND.
func TestReplyAlone(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Compound(synth.OpPutFH()), synth.CompoundReply(synth.ResPutFH()))
	reply := synth.CompoundReply(synth.ResPutFH(), synth.ResWrite(77))
	reply.XID = 0x1234
	c.Server.Reply(reply)
	got, _ := ladders(t, w, 100, dissect.Options{Decode: true})
	want := "PUTFH fh " + fh3 + "\nPUTFH NFS4_OK\nPUTFH NFS4_OK\nWRITE NFS4_OK count 77 committed FILE_SYNC4 verifier 0x1122334455667788"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
