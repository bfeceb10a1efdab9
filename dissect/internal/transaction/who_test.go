package transaction_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// authSys returns an AUTH_SYS credential.
func authSys(machine string, uid, gid uint32) oncrpc.Auth {
	return oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: synth.XDR{}.Word(7).String(machine).Word(uid, gid, 0).Inline()}
}

// TestWho: a transaction has the identity in its AUTH_SYS credential, and a finding has the
// addresses of its connection. What the capture does not show is null.
func TestWho(t *testing.T) {
	w := synth.New()
	conn := w.RoCE(synth.Options{})
	conn.Connect()
	for _, c := range []oncrpc.Auth{authSys("build7", 1000, 100), authSys("build7", 0, 0), authSys("", 1001, 100), {}, {Flavor: oncrpc.AuthSys, Body: []byte{1}}} {
		call := synth.Getattr3()
		call.Cred = c
		conn.RPC(call, synth.Getattr3Reply())
	}
	s := look.At(w)
	want := []string{"build7 1000 100", "build7 0 0", " 1001 100", "null null null", "null null null"}
	for i, r := range s.Transactions {
		got := fmt.Sprintf("%v %v %v", text(r.Machine), text(r.UID), text(r.GID))
		if got != want[i] || r.Principal.Known() {
			t.Errorf("transaction %d is of %q, want %q", i, got, want[i])
		}
	}
	if len(s.Transactions) != len(want) {
		t.Errorf("%d transactions", len(s.Transactions))
	}

	w = synth.New()
	conn = w.RoCE(synth.Options{})
	conn.Connect()
	conn.RPC(synth.Getattr3(), synth.Reply{Credits: synth.Zero, Results: synth.Getattr3Reply().Results})
	s = look.At(w)
	for _, f := range s.Findings {
		if c := s.Connections[0]; f.Client != c.Client.Address || f.Server != c.Server.Address || !f.Client.Known() {
			t.Errorf("%s is between %v and %v, want %v and %v", f.Rule, text(f.Client), text(f.Server), text(c.Client.Address), text(c.Server.Address))
		}
	}
	if len(s.Findings) == 0 {
		t.Error("there is no finding")
	}
}

// TestClientOwner: a transaction has the owner and the verifier with which an NFSv4 client names itself, and no other
// transaction has them. An owner that is empty, too long or not whole is unknown.
func TestClientOwner(t *testing.T) {
	const verifier = 0x18e9f672ab2fa448
	exchange := synth.XDR{}.Word(42).Hyper(verifier).String("owner").Word(0, 0, 0)
	w := synth.New()
	conn := w.RoCE(synth.Options{})
	conn.Connect()
	for _, c := range []synth.Call{
		synth.Compound(exchange),
		synth.Compound4(0, synth.OpPutRootFH(), synth.XDR{}.Word(35).Hyper(verifier+1).String("id").Word(0x40000000).String("rdma").String("").Word(1)),
		synth.Compound(synth.OpPutRootFH(), synth.OpGetAttr()),
		synth.Compound(synth.XDR{}.Word(42).Hyper(verifier).String("").Word(0, 0, 0)),
		synth.Compound(synth.XDR{}.Word(42).Hyper(verifier).String(strings.Repeat("x", 1025)).Word(0, 0, 0)),
		synth.Compound(synth.XDR{}.Word(42).Hyper(verifier).Word(9)),
		synth.Compound(synth.XDR{}.Word(42, 7)),
		synth.Getattr3(),
	} {
		conn.RPC(c, synth.CompoundReply())
	}
	s := look.At(w)
	want := []string{
		"6f776e6572 0x18e9f672ab2fa448", "6964 0x18e9f672ab2fa449", "null null", "null null", "null null", "null null", "null null", "null null",
	}
	if len(s.Transactions) != len(want) {
		t.Fatalf("%d transactions", len(s.Transactions))
	}
	for i, r := range s.Transactions {
		if got := text(r.ClientOwner) + " " + text(r.BootVerifier); got != want[i] {
			t.Errorf("transaction %d names the client %s, want %s", i, got, want[i])
		}
	}
}

// TestWriteVerifier: the results of WRITE have a verifier, in versions 3 and 4, and those of others have none.
func TestWriteVerifier(t *testing.T) {
	w := synth.New()
	conn := w.RoCE(synth.Options{})
	conn.Connect()
	conn.RPC(synth.Write3(0, make([]byte, 9)), synth.Write3Reply(9))
	conn.RPC(synth.Getattr3(), synth.Getattr3Reply())
	conn.RPC(synth.Compound(synth.OpPutRootFH(), synth.OpWrite(0, make([]byte, 9)), synth.OpGetAttr()), synth.CompoundReply(synth.ResPutRootFH(), synth.ResWrite(9), synth.ResGetAttr()))
	conn.RPC(synth.Compound(synth.OpPutRootFH(), synth.OpWrite(0, make([]byte, 9))), synth.CompoundReply(synth.ResPutRootFH()))
	s := look.At(w)
	for i, want := range []string{"0x1122334455667788", "null", "0x1122334455667788", "null"} {
		if got := text(s.Transactions[i].WriteVerifier); got != want {
			t.Errorf("transaction %d: verifier %s, want %s", i, got, want)
		}
	}
}

// text returns a value as text, or "null".
func text[T any](v record.Opt[T]) string {
	if !v.Known() {
		return "null"
	}
	return fmt.Sprint(v.Any())
}
