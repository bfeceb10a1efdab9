package rdma_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/rocev2"
	"github.com/rdmadump/rdmadump/synth"
)

// TestNeverAcknowledged: the record of an RPC whose Reply is never acknowledged is passed on after
// four times the timeout of the handshake, or after 4 s if that is less, whether the time advances
// with packets or a live source is silent. A wait of less than a second is a second, as for all
// records. Its delivery is unknown then.
func TestNeverAcknowledged(t *testing.T) {
	for timeout, want := range map[uint8]time.Duration{ // the timer is 4.096 us * 2^timeout
		14: time.Second, 17: 4 * (4096 << 17), 18: 4 * time.Second, 0: 4 * time.Second,
	} {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%t", timeout, live), func(t *testing.T) {
				w := synth.New()
				c := w.RoCE(synth.Options{ManualAck: true})
				c.REQ(func(m *rocev2.REQ) { m.Primary.LocalACKTimeout = timeout })
				c.REP()
				c.RTU()
				c.Client.Call(synth.Null())
				c.Server.Reply(synth.NullReply())
				replied := record.Time(w.Last().Time)
				var passed []*record.Transaction
				d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
					passed = append(passed, r.Clone())
					return nil
				}}, dissect.Options{Live: live})
				for f := range testkit.Made(w.Frames) {
					d.Frame(f)
				}
				// advance lets time pass until a time after the Reply.
				other := w.RoCE(synth.Options{})
				advance := func(after time.Duration) {
					now := replied + record.Time(after)
					if live {
						d.Idle(now)
						return
					}
					w.Now = int64(now)
					mark := len(w.Frames)
					other.REQ()
					for f := range testkit.Made(w.Frames[mark:]) {
						d.Frame(f)
					}
				}
				for _, after := range []time.Duration{want / 2, want - 10*time.Millisecond} {
					if advance(after); len(passed) > 0 {
						t.Fatalf("passed on before %v", after)
					}
				}
				if advance(want + 10*time.Millisecond); len(passed) != 1 {
					t.Fatalf("%d records after %v", len(passed), want)
				}
				r := passed[0]
				if r.Status != record.Complete || r.Reply.Delivery != record.DeliveryUnknown || r.ReplyLost {
					t.Errorf("%s, delivery %s, lost: %t", r.Status, r.Reply.Delivery, r.ReplyLost)
				}
			})
		}
	}
}

// TestWaitingRecords: the number of records that wait is limited, however many Replies nobody
// acknowledges at one time.
func TestWaitingRecords(t *testing.T) {
	const most, more = 1 << 12, 500 // at most that many records wait
	w := synth.New()
	w.Step = 0
	passed := 0
	d := dissect.New(dissect.Handler{Transaction: func(*record.Transaction) error {
		passed++
		return nil
	}}, dissect.Options{})
	number := int64(0)
	w.Sink = func(f *synth.Frame) {
		number++
		for frame := range testkit.Made([]*synth.Frame{f}) {
			frame.Number = number
			d.Frame(frame)
		}
	}
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	for range most + more {
		c.Client.Call(synth.Null())
		c.Server.Reply(synth.NullReply())
	}
	if passed < more || passed > 2*more {
		t.Errorf("%d of %d records were passed on, want %d", passed, most+more, more)
	}
}

// TestRolledBack: a NAK shows that the receiver dropped a Call that the capture has in order, so
// that its retransmission is the copy that was accepted.
func TestRolledBack(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{ManualAck: true})
	c.Connect()
	call := c.Client.Call(synth.Null())
	w.Advance(time.Millisecond)
	c.Server.Nak(0)
	w.Advance(10 * time.Millisecond)
	again := w.Retransmit(call...)
	w.Advance(time.Millisecond)
	c.Server.Ack()
	c.Server.Reply(synth.NullReply())
	c.Client.Ack()
	for _, r := range look.At(w).Transactions {
		if got := r.Call.Delivered.Or(0); got != record.Time(again[0].Time) || r.Call.Delivery != record.DeliveryCertain {
			t.Errorf("the Call was accepted %v after it was sent, %s", time.Duration(got-r.Call.Time), r.Call.Delivery)
		}
	}
}

// TestBusy: an RPC waits for the transfer of another one while the sender transmits that without a pause, or pauses inside an RDMA
// Write. If it pauses before a Reply, it may have worked, or something else may have delayed it.
func TestBusy(t *testing.T) {
	const pause, size = 40 * time.Millisecond, 16 << 10
	for name, c := range map[string]struct {
		inside, before time.Duration // pauses inside the Write, and before the Reply
		waits          bool
	}{
		"no pause":                 {0, 0, false},
		"a pause before the Reply": {0, pause, false},
		"a pause inside the Write": {pause, 0, true},
	} {
		w := synth.New()
		conn := w.RoCE(synth.Options{ManualAck: true})
		conn.Connect()
		var calls []synth.Call
		for xid := range uint32(2) {
			call := synth.Read3(0, size).Offer(synth.Mem(0xa1+xid, size))
			call.XID = 1 + xid
			conn.Client.Call(call)
			calls = append(calls, call)
		}
		for i, call := range calls {
			frames := conn.Server.Write(0xa1+uint32(i), call.Writes[0][0].Offset, make([]byte, size), synth.PacketSize(1024))
			if i == 0 {
				for _, f := range frames[len(frames)/2:] {
					f.Time += int64(c.inside)
				}
				w.Advance(c.inside + c.before)
			}
			conn.Server.Reply(synth.Read3Reply(make([]byte, size)).To(call))
		}
		for _, r := range look.At(w).Transactions {
			waited := time.Duration(0)
			for i := range r.Waits {
				if r.Waits[i].Reason == record.HeadOfLine {
					waited += time.Duration(r.Waits[i].NS)
				}
			}
			if want := c.waits && r.XID == 2; (waited >= pause) != want {
				t.Errorf("%s: the RPC %d waited for %v for the transfers of the other", name, r.XID, waited)
			}
		}
	}
}
