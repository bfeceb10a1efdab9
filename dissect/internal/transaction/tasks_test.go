package transaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// TestTasks: a request repeats an earlier one that was put off, and nothing else: not what another process asks for later, not polls.
func TestTasks(t *testing.T) {
	const delay, denied, jukebox = 10008, 10010, 10008
	const ms, s = time.Millisecond, time.Second
	type wire struct {
		*synth.Wire
		*synth.Conn
	}
	read4 := func() synth.Call { return synth.Compound4(0, synth.OpPutFH(), synth.OpRead(0, 8)) }
	putOff := func() synth.Reply { return synth.CompoundFailed(delay, synth.ResPutFH(), synth.ResFailed(25, delay)) }
	granted := func() synth.Reply { return synth.CompoundReply(synth.ResPutFH(), synth.ResRead(make([]byte, 8))) }
	answered := func(w *synth.Wire) int64 { return w.Frames[len(w.Frames)-2].Time } // by the Reply of the last RPC
	lock := func() synth.Call {
		return synth.Compound4(0, synth.OpPutFH(), synth.XDR{}.Word(12, 4, 0).Hyper(0, 8).Bool(false).Fixed(make([]byte, 16)).Word(1))
	}
	for _, test := range []struct {
		name string
		does func(w wire)
		want []string
	}{
		{"put off twice", func(w wire) {
			w.RPC(read4(), putOff())
			w.Advance(100 * ms)
			w.RPC(read4(), putOff())
			w.Advance(200 * ms)
			w.RPC(read4(), granted())
		}, []string{"3 tries 3 attempts ok NFS4ERR_DELAY,NFS4ERR_DELAY,NFS4_OK"}},
		{"NFSv3", func(w wire) {
			w.RPC(synth.Getattr3(), synth.Failed(jukebox))
			w.Advance(5 * s)
			w.RPC(synth.Getattr3(), synth.Getattr3Reply())
		}, []string{"2 tries 2 attempts ok NFS3ERR_JUKEBOX,NFS3_OK"}},
		{"another process asks after 5 s, when it was granted", func(w wire) {
			w.RPC(read4(), putOff())
			w.Advance(100 * ms)
			w.RPC(read4(), granted())
			w.Advance(5 * s)
			w.RPC(read4(), granted())
		}, []string{"2 tries 2 attempts ok NFS4ERR_DELAY,NFS4_OK"}},
		{"another process asks 20 s after it was given up", func(w wire) {
			w.RPC(read4(), putOff())
			w.Advance(100 * ms)
			w.RPC(read4(), putOff())
			w.Advance(20 * s)
			w.RPC(read4(), granted())
		}, []string{"2 tries 2 attempts given_up NFS4ERR_DELAY,NFS4ERR_DELAY"}},
		{"another process asks 31 s after the Reply, and 1 ns", func(w wire) {
			w.RPC(read4(), putOff())
			w.Now = answered(w.Wire) + int64(31*s) + 1
			w.RPC(read4(), granted())
		}, []string{"1 tries 1 attempts given_up NFS4ERR_DELAY"}},
		{"31 s after the Reply", func(w wire) {
			w.RPC(read4(), putOff())
			w.Now = answered(w.Wire) + int64(31*s)
			w.RPC(read4(), granted())
		}, []string{"2 tries 2 attempts ok NFS4ERR_DELAY,NFS4_OK"}},
		{"two requests that are given up, the later one later", func(w wire) {
			w.RPC(read4(), putOff())
			w.Advance(20 * s)
			w.RPC(synth.Compound4(0, synth.OpPutFH(), synth.OpRead(8, 8)), putOff())
			for range 2 {
				w.Advance(20 * s)
				w.RPC(synth.Getattr3(), synth.Getattr3Reply())
			}
		}, []string{"1 tries 1 attempts given_up NFS4ERR_DELAY", "1 tries 1 attempts given_up NFS4ERR_DELAY"}},
		{"another offset", func(w wire) {
			w.RPC(read4(), putOff())
			w.Advance(100 * ms)
			w.RPC(synth.Compound4(0, synth.OpPutFH(), synth.OpRead(8, 8)), granted())
		}, []string{"1 tries 1 attempts open NFS4ERR_DELAY"}},
		{"two processes at once", func(w wire) {
			for _, reply := range []func() synth.Reply{putOff, granted} {
				one, other := read4(), read4()
				one.XID, other.XID = uint32(w.Now), uint32(w.Now)+1
				w.Client.Call(one)
				w.Client.Call(other)
				w.Server.Ack()
				w.Server.Reply(reply().To(one))
				w.Server.Reply(reply().To(other))
				w.Client.Ack()
				w.Advance(100 * ms)
			}
		}, []string{"2 tries 2 attempts ok NFS4ERR_DELAY,NFS4_OK", "2 tries 2 attempts ok NFS4ERR_DELAY,NFS4_OK"}},
		{"polls", func(w wire) {
			for range 4 {
				w.RPC(synth.Getattr3(), synth.Getattr3Reply())
				w.RPC(lock(), synth.CompoundFailed(denied, synth.ResPutFH(), synth.XDR{}.Word(12, denied).Hyper(0, 8).Word(2).Hyper(1).String("o")))
				w.Advance(s)
			}
		}, nil},
		{"a soft mount that asks again without a Reply", func(w wire) {
			w.Client.Call(read4())
			w.Server.Ack()
			w.Advance(30 * s)
			w.Disconnect(w.Client)
			again := w.Another(synth.Options{})
			again.Connect()
			again.RPC(read4(), granted())
		}, nil},
		{"another attempt, before the end of the old connection", func(w wire) {
			call := read4()
			call.XID = 0x7001
			w.Client.Call(call)
			w.Server.Ack()
			w.Advance(s)
			again := w.Another(synth.Options{})
			again.Connect()
			again.RPC(call, granted())
			w.Disconnect(w.Client)
		}, []string{"1 tries 2 attempts ok NFS4_OK"}},
		{"both Replies refused, and never sent again", func(w wire) {
			call := read4()
			call.XID = 0x7001
			for _, c := range []*synth.Conn{w.Conn, w.Another(synth.Options{})} {
				if c != w.Conn {
					c.Connect()
				}
				c.Client.Call(call)
				c.Server.Ack()
				c.Server.Reply(granted().To(call))
				c.Client.Refuse()
				w.Disconnect(c.Client)
			}
		}, []string{"1 tries 2 attempts open no_reply"}},
		{"callbacks that are put off", func(w wire) {
			w.RPC(synth.Null(), synth.NullReply())
			for range 2 {
				w.Server.RPC(synth.CBCompound(synth.OpPutFH()), synth.CompoundFailed(delay, synth.ResFailed(22, delay)))
				w.Advance(100 * ms)
			}
		}, nil},
		{"callbacks of two connections, whose XIDs both begin at 0", func(w wire) {
			again := w.Another(synth.Options{})
			again.Connect()
			for _, c := range []*synth.Conn{w.Conn, again} {
				call := synth.Compound4(1, synth.OpPutFH())
				call.Program, call.XID = 0x40000000, 0
				c.Server.Call(call)
				c.Client.Ack()
			}
		}, nil},
		{"encrypted", func(w wire) {
			for range 2 {
				call := read4()
				call.Cred = oncrpc.Auth{Flavor: oncrpc.AuthRPCSECGSS, Body: synth.XDR{}.Word(1, 0, 1, 3).Opaque([]byte{1, 2, 3, 4}).Bytes}
				w.RPC(call, putOff())
				w.Advance(100 * ms)
			}
		}, nil},
		{"arguments that are cut", func(w wire) {
			for range 2 {
				from := len(w.Frames)
				w.RPC(read4(), putOff())
				call := w.Frames[from]
				call.Data = call.Data[:len(call.Data)-12] // the ICRC, and a part of the last operation
				w.Advance(100 * ms)
			}
		}, nil},
		{"the XID of a request that was answered, used again", func(w wire) {
			for range 2 {
				call := synth.Getattr3()
				call.XID = 0x7001
				w.RPC(call, synth.Getattr3Reply())
				w.Advance(s)
			}
		}, nil},
		{"a chain without an end", func(w wire) {
			for range 3 * record.MaxTries {
				w.RPC(read4(), putOff())
				w.Advance(100 * ms)
			}
		}, []string{fmt.Sprintf("%d tries %[1]d attempts open %s", 3*record.MaxTries, strings.Repeat("NFS4ERR_DELAY,", record.MaxTries)[:14*record.MaxTries-1])}},
		{"the same XID for something else", func(w wire) {
			call := read4()
			call.XID = 0x7001
			w.Client.Call(call)
			w.Server.Ack()
			w.Disconnect(w.Client)
			again := w.Another(synth.Options{})
			again.Connect()
			other := synth.Compound4(0, synth.OpPutFH(), synth.OpRead(8, 8))
			other.XID = call.XID
			again.RPC(other, granted())
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := synth.New()
			c := w.RoCE(synth.Options{})
			c.Connect()
			test.does(wire{w, c})
			var got []string
			for _, r := range look.At(w).Tasks {
				if end := record.Time(w.Frames[len(w.Frames)-1].Time); r.Outcome == record.Some(record.OutcomeOpen) && r.BlockedMinNS != record.Some(end.Sub(r.From)) {
					t.Errorf("the task was open at the end, and blocked for at least %v", r.BlockedMinNS)
				}
				got = append(got, fmt.Sprintf("%d tries %d attempts %s %s", r.Tries, r.Attempts, r.Outcome.Or("?"), strings.Join(r.Statuses, ",")))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("tasks\n%q\nwant\n%q", got, test.want)
			}
		})
	}
}
