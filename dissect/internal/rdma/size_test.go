package rdma

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestSettle: each kind of state costs its memory, once, and what was evicted is free. The share of a connection that became
// a part of another one moves there, with what its follower charged.
func TestSettle(t *testing.T) {
	tracker, a, b := halves()
	tracker.Finding = func(*record.Finding) {}
	c := a.conn
	costs := func(f *flow, what string, want int64) {
		t.Helper()
		before := f.conn.share.Bytes()
		for range 2 { // the second time, nothing is new
			f.conn.settle()
		}
		if got := f.conn.share.Bytes() - before; got != want {
			t.Errorf("%s costs %d bytes, want %d", what, got, want)
		}
	}
	if n := c.share.Bytes(); n != connCost {
		t.Errorf("a new connection costs %d bytes", n)
	}
	costs(a, "a flow", flowCost)
	a.order.Take(order.Request{PSN: 105}, 0)
	a.order.Hold(300, held{data: make([]byte, 300)}, 0)
	costs(a, "a request that waits", heldCost+300)
	a.waiting().At(0).keep(a, heldCopy{}, nil)
	costs(a, "a retransmission of it", heldCopyCost)
	o := a.names(Read, target{handle: 1, length: 8}, true, order.One(100), tracker.now)
	costs(a, "a Read", opCost+entryCost)
	for i := range int64(4) {
		o.markSeen(10*i, 10*i+1)
	}
	costs(a, "a response with four ranges", 2*spanCost)
	a.qp.damaged = make([]damagedSend, 2)
	costs(a, "two damaged Sends", 2*damagedCost)
	c.Report(ruleLost, Where{}, "one")
	costs(a, "a finding that waits for the ID", findingCost)
	c.passOperation(new(record.RDMAOperation), 0)
	costs(a, "a record of an operation that waits for it", operationCost)
	a.way.Sent(order.PSNs, 7, 1)
	a.parts.add(make([]byte, 100), 100, true, tracker.buffers)
	before := c.share.Bytes()
	c.settle()
	if got := c.share.Bytes() - before - a.way.Bytes(); a.way.Bytes() == 0 || got != int64(cap(a.parts.buffer)) || got < 100 {
		t.Errorf("a round trip, and a Send of 100 bytes, cost %d bytes", c.share.Bytes()-before)
	}

	tracker.Operation = func(*record.RDMAOperation) {}
	before = c.share.Bytes()
	if c.identify(); c.share.Bytes() != before-findingCost-operationCost {
		t.Errorf("with its ID, the connection costs %d bytes, and %d without", c.share.Bytes(), before)
	}

	b.conn.settle()
	b.conn.share.Charge(1000) // its follower
	c.passOperation(new(record.RDMAOperation), 0)
	costs(a, "a record that is passed on", 0)
	b.names(Read, target{handle: 1, length: 8}, true, order.One(100), tracker.now)
	costs(b, "a Read with a record", opCost+entryCost+lifeCost)
	sum := c.share.Bytes() + b.conn.share.Bytes()
	joined := b.conn
	tracker.connections.join(a, b)
	c.settle()
	if c != a.conn || c != b.conn || c.share.Bytes() != sum-connCost || joined.share.Bytes() != 0 {
		t.Errorf("two connections that cost %d bytes cost %d and %d as one", sum, c.share.Bytes(), joined.share.Bytes())
	}

	last := a.conn.share.Bytes()
	for {
		kind, evicted := a.conn.Evict()
		now := a.conn.share.Bytes()
		if !evicted || now >= last && kind != budget.HeldPackets { // what waited becomes operations
			t.Fatalf("an eviction of %v leaves %d of %d bytes", kind, now, last)
		}
		if last = now; kind == budget.Connections {
			break
		}
	}
	if last != 0 {
		t.Errorf("an evicted connection costs %d bytes", last)
	}
}
