package rdma

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// ignorant is an upper layer that takes nothing.
type ignorant struct{}

func (ignorant) Follow(Link, *budget.Share) Follower      { return ignorant{} }
func (ignorant) ServerPort(uint16) bool                   { return false }
func (ignorant) RPCPort(bool, uint16) PortKind            { return UnknownPort }
func (ignorant) Private(Side, []byte, record.Stamp, bool) {}
func (ignorant) Operation(Event) Standing                 { return Unassigned }
func (ignorant) Moved(*Operation, uint64, []byte, int)    {}
func (ignorant) Refused(*Refusal)                         {}
func (ignorant) Changed(*Operation, record.Stamp)         {}
func (ignorant) Owner(Side, Name) Tag                     { return 0 }
func (ignorant) Join(Link, Side, Side)                    {}
func (ignorant) Closing()                                 {}
func (ignorant) Closed(record.Stamp, *Ending)             {}
func (ignorant) Finish(*record.Connection)                {}
func (ignorant) Describe(*record.Connection)              {}
func (ignorant) Evict(budget.Kind) (evicted bool)         { return false }

// halves returns two connections of one flow each, in opposite directions. The sender of both flows
// is taken to be side 0.
func halves() (t *Tracker, a, b *flow) {
	t = New(ignorant{}, budget.New(1<<30))
	t.now.Packet = 1
	cs := t.connections
	client, server := Address{IP: netip.MustParseAddr("192.0.2.1")}, Address{IP: netip.MustParseAddr("192.0.2.2")}
	flowFrom := func(from, to *Address, qpn uint32) *flow {
		f := cs.attach(cs.open(Setup{}), 0, cs.hosts.ends(from, to), qpn)
		f.seen, f.seq = true, 2
		f.qp.announce(100)
		f.apply(nil, f.order.Begin(100), nil)
		return f
	}
	return t, flowFrom(&client, &server, 1), flowFrom(&server, &client, 2)
}

// TestJoinGaps: the lasting gaps of two halves are those of the connection that they become, each of
// its side. The half with an ID stays.
func TestJoinGaps(t *testing.T) {
	sets := map[rule.Gap]func(*flow){
		rule.Missing: func(f *flow) { f.missing = true },
		rule.Silent:  func(f *flow) { f.silent = true },
		rule.Late:    func(f *flow) { f.lateStart = true },
		rule.Evicted: func(f *flow) { f.conn.evicted = true },
		rule.Closing: func(f *flow) {
			f.conn.close(Ending{How: record.EndDisconnect, By: record.Some(f.side)})
		},
	}
	ofSide := rule.Missing | rule.Silent | rule.Late
	for gap, set := range sets {
		for _, withGap := range []int{0, 1} {
			for _, withID := range []int{0, 1} {
				tracker, a, b := halves()
				both := []*flow{a, b}
				set(both[withGap])
				if got := both[withGap].conn.Gaps(both[withGap].side); got&gap == 0 {
					t.Fatalf("%s is not set", gap.Name())
				}
				both[withID].conn.identify()
				tracker.connections.join(a, b)
				if n := len(a.qp.route.unpaired.flows) + len(b.qp.route.unpaired.flows); n != 0 {
					t.Errorf("%s: %d flows look for their other direction", gap.Name(), n)
				}
				if a.conn != b.conn || a.side == b.side || a.conn.flows[a.side] != a || b.conn.flows[b.side] != b {
					t.Fatalf("%s: sides %d and %d of the connection", gap.Name(), a.side, b.side)
				}
				for i, f := range both {
					want := gap&ofSide == 0 || i == withGap
					if got := f.conn.Gaps(f.side)&gap != 0; got != want {
						t.Errorf("%s in half %d, ID of half %d: half %d has it: %t", gap.Name(), withGap, withID, i, got)
					}
				}
				if gap == rule.Closing && (a.conn.ending.By != record.Some(both[withGap].side) || tracker.connections.closed.Len() != 0) {
					t.Errorf("half %d ended the connection, ID of half %d: by side %v", withGap, withID, a.conn.ending.By)
				}
			}
		}
	}
}

// TestJoinCounts: the connection that two halves become has the sums of what they counted, and
// what either of them knew.
func TestJoinCounts(t *testing.T) {
	for _, withID := range []int{0, 1} {
		tracker, a, b := halves()
		both := []*flow{a, b}
		for i, f := range both {
			n := int64(i + 1)
			counts := record.PacketCounts{Packets: n, Retransmitted: n, OutOfOrder: n, NotCaptured: n, Naks: n, RNRNaks: n, Damaged: n}
			f.conn.record = figures{
				counts: counts, counted: counts, selected: counts, beforePairing: n, unassigned: n,
				first: record.Time(10 * n), last: record.Time(10 * n),
			}
		}
		other := both[1-withID].conn
		other.reported.unfilled, other.mtu = true, 1024
		other.record.congestion(true, record.Stamp{Packet: 7})
		other.record.congestion(false, record.Stamp{Packet: 8})
		other.SetClient(0)
		client := both[1-withID]
		other.waiting = []*record.Finding{{Rule: "one"}}
		kept := both[withID].conn
		kept.record.congestion(false, record.Stamp{Packet: 9})
		var found []*record.Finding
		tracker.Finding = func(f *record.Finding) { found = append(found, f) }
		if withID == 1 {
			kept.identify()
		}
		tracker.connections.join(both[withID], both[1-withID])
		c := a.conn
		if c != kept || b.conn != kept {
			t.Fatal("the wrong connection stays")
		}
		counts := record.PacketCounts{Packets: 3, Retransmitted: 3, OutOfOrder: 3, NotCaptured: 3, Naks: 3, RNRNaks: 3, Damaged: 3}
		want := figures{counts: counts, counted: counts, selected: counts, beforePairing: 3, unassigned: 3, first: 10, last: 20, congested: record.Stamp{Packet: 7}}
		want.counts.CNPs, want.counts.CongestionMarks = 1, 2
		if c.record != want {
			t.Errorf("%+v, want %+v", c.record, want)
		}
		if !c.reported.unfilled || c.mtu != 1024 || c.setup.Client != record.Some(client.side) {
			t.Errorf("unfilled reported: %t, MTU %d, client %v", c.reported.unfilled, c.mtu, c.setup.Client)
		}
		if withID == 0 && (len(found) != 1 || found[0].Rule != "one" || found[0].Connection != c.setup.ID) {
			t.Errorf("findings %+v", found)
		}
	}
}

// TestLateStart: the first packets of a flow are missing unless its first one has the PSN that the handshake announced.
func TestLateStart(t *testing.T) {
	for _, x := range []struct {
		announced bool
		psn       uint32
		want      bool
	}{{true, 100, false}, {true, 103, true}, {false, 100, true}} {
		tracker, other, _ := halves()
		f := tracker.connections.attach(tracker.connections.open(Setup{}), 0, ends{other.src, other.dst}, 9)
		if x.announced {
			f.qp.announce(100)
		}
		f.apply(nil, f.order.Begin(x.psn), nil)
		if got := f.conn.Gaps(0)&rule.Late != 0; got != x.want {
			t.Errorf("announced: %t, begins with PSN %d: late is %t", x.announced, x.psn, got)
		}
	}
}

// owner is a follower that knows a Call and memory of either kind.
type owner struct{ ignorant }

func (owner) Owner(_ Side, n Name) (known Tag) {
	if slices.Contains([]Name{{Kind: Send, Handle: 7}, {Read, 0xa1, 64, 8}, {Write, 0xb1, 64, 8}}, n) {
		known = 1
	}
	return known
}

// TestFits: which packets show that they belong to the connection of a flow in the opposite direction, whose next request has PSN 100.
func TestFits(t *testing.T) {
	acksAt := func(psn uint32) func(*flow) {
		return func(f *flow) { f.qp.acksSeen, f.qp.lastAck = true, psn }
	}
	read := func(f *flow) { f.names(Read, target{handle: 1, length: 8}, true, order.One(105), f.conn.tracker.now) }
	started := func(f *flow) { f.order = order.Order[held]{Circle: order.PSNs}; f.qp.announce(100) }
	call := []byte{0, 0, 0, 7}
	for _, x := range []struct {
		name   string
		set    func(*flow)
		opcode rocev2.Opcode
		psn    uint32
		reth   rocev2.RETH
		data   []byte
		want   bool
	}{
		{name: "acknowledges the latest request", opcode: rocev2.OpAcknowledge, psn: 99, want: true},
		{name: "acknowledges one that was not sent", opcode: rocev2.OpAcknowledge, psn: 100},
		{name: "acknowledges an old one", opcode: rocev2.OpAcknowledge, psn: 101 - order.Near + 1<<24, want: true},
		{name: "acknowledges one that is too old", opcode: rocev2.OpAcknowledge, psn: 100 - order.Near + 1<<24},
		{name: "the connection is closing", set: func(f *flow) { f.conn.closing = true }, opcode: rocev2.OpAcknowledge, psn: 99},
		{name: "responds to a Read ahead", set: read, opcode: rocev2.OpReadResponseOnly, psn: 105, want: true},
		{name: "responds to no Read", set: read, opcode: rocev2.OpReadResponseOnly, psn: 106},
		{name: "acknowledges a Read ahead", set: read, opcode: rocev2.OpAcknowledge, psn: 105},
		{name: "first acknowledgement after a handshake", set: started, opcode: rocev2.OpAcknowledge, psn: 100, want: true},
		{name: "last of the first ones", set: started, opcode: rocev2.OpAcknowledge, psn: 100 + maxFirst - 1, want: true},
		{name: "none of the first ones", set: started, opcode: rocev2.OpAcknowledge, psn: 100 + maxFirst},
		{name: "before the handshake's PSN", set: started, opcode: rocev2.OpAcknowledge, psn: 99},
		{name: "XID of a Call", opcode: rocev2.OpSendOnly, data: call, want: true},
		{name: "another XID", opcode: rocev2.OpSendOnly, data: []byte{0, 0, 0, 8}},
		{name: "not the first packet", opcode: rocev2.OpSendLast, data: call},
		{name: "too short for an XID", opcode: rocev2.OpSendOnly, data: call[:3]},
		{name: "reads known memory", opcode: rocev2.OpReadRequest, reth: rocev2.RETH{RKey: 0xa1, VirtualAddress: 64, DMALength: 8}, want: true},
		{name: "reads memory that is to be written", opcode: rocev2.OpReadRequest, reth: rocev2.RETH{RKey: 0xb1, VirtualAddress: 64, DMALength: 8}},
		{name: "writes known memory", opcode: rocev2.OpWriteOnly, reth: rocev2.RETH{RKey: 0xb1, VirtualAddress: 64, DMALength: 8}, want: true},
		{name: "writes other memory", opcode: rocev2.OpWriteOnly, reth: rocev2.RETH{RKey: 0xc1, VirtualAddress: 64, DMALength: 8}},
		{name: "names no memory", opcode: rocev2.OpWriteLast, reth: rocev2.RETH{RKey: 0xb1, VirtualAddress: 64, DMALength: 8}},
		{name: "follows an acknowledgement", set: acksAt(50), opcode: rocev2.OpWriteLast, psn: 51, want: true},
		{name: "was acknowledged", set: acksAt(50), opcode: rocev2.OpWriteLast, psn: 50},
		{name: "far beyond an acknowledgement", set: acksAt(50), opcode: rocev2.OpWriteLast, psn: 50 + order.Near},
	} {
		_, f, _ := halves()
		f.conn.follower = owner{}
		if x.set != nil {
			x.set(f)
		}
		info := x.opcode.Info()
		p := &rocev2.Packet{Headers: info.Headers, RETH: x.reth, Payload: x.data}
		p.Opcode, p.PSN = x.opcode, x.psn&rocev2.PSNMask
		if got := f.fits(p, info); got != x.want {
			t.Errorf("%s: %t", x.name, got)
		}
	}
}

// TestExpire: for how long connections wait for their ID, and for late packets.
func TestExpire(t *testing.T) {
	identified := func(c *Conn) bool { return c.setup.ID.Known() }
	retired := func(c *Conn) bool { return c.retired }
	for _, x := range []struct {
		name  string
		set   func(*Conn)
		waits record.Time // no longer
		over  func(*Conn) bool
	}{
		{"without an ID", func(c *Conn) { c.tracker.connections.undecided.Push(c) }, decideAfter - 1, identified},
		{"closing", func(c *Conn) { c.close(Ending{How: record.EndReset}) }, lingerClose, retired},
		{"closed", func(c *Conn) { c.bothClosed() }, lingerClosed, retired},
	} {
		tracker := New(ignorant{}, budget.New(1<<30))
		tracker.Clock = 5
		c := tracker.connections.open(Setup{})
		x.set(c)
		var over []bool
		for _, at := range []record.Time{0, x.waits, x.waits + 1} {
			tracker.Clock = 5 + at
			tracker.Tick()
			over = append(over, x.over(c))
		}
		if !slices.Equal(over, []bool{false, false, true}) {
			t.Errorf("%s: over at once, and after %d and %d ns: %t", x.name, x.waits, x.waits+1, over)
		}
	}
}

// TestAcceptsICRC: a packet with a bad ICRC is dropped if its sender fills ICRCs in. That of a host which is not known may come from one
// whose address is damaged.
func TestAcceptsICRC(t *testing.T) {
	tracker := New(ignorant{}, budget.New(1<<30))
	for _, x := range []struct {
		src, dst byte
		icrc     rocev2.ICRCResult
		want     bool
	}{
		{1, 2, rocev2.ICRCBad, true},
		{1, 2, rocev2.ICRCUnchecked, true},
		{1, 2, rocev2.ICRCOk, true},
		{1, 2, rocev2.ICRCBad, false},
		{2, 1, rocev2.ICRCBad, true}, // this one fills none in
		{3, 2, rocev2.ICRCBad, false},
		{2, 1, rocev2.ICRCOk, true},
		{2, 1, rocev2.ICRCBad, false},
	} {
		address := func(last byte) Address { return Address{IP: netip.AddrFrom4([4]byte{192, 0, 2, last})} }
		d, cur := &Datagram{Src: address(x.src), Dst: address(x.dst), ICRC: x.icrc}, new(currentPacket)
		if got := tracker.icrcs.accepts(d, new(ends), cur); got != x.want || (cur.Mark&record.BadICRC != 0) != (x.icrc == rocev2.ICRCBad) {
			t.Errorf("from %d to %d, %v: accepted %t, marks %v", x.src, x.dst, x.icrc, got, cur.Mark)
		}
	}
}

// TestAcknowledgedAlone: what an acknowledgement that was captured before its connection was known says of a request with PSN 105.
func TestAcknowledgedAlone(t *testing.T) {
	for _, x := range []struct {
		psn               uint32
		at                int64
		disorder, awaited bool
	}{
		{105, 9, false, true}, // the request was captured at 7, and those before it were not
		{105, 6, true, false},
		{104, 6, false, true},
		{99, 9, false, false},
	} {
		tracker, a, b := halves()
		a.operate(Send, order.One(105), stamp(7))
		b.qp.acksSeen, b.qp.lastAck, b.qp.lastAckAt = true, x.psn, stamp(x.at)
		tracker.connections.join(a, b)
		if c, awaits := a.conn, a.order.Awaits(); c.unordered != x.disorder || awaits != x.awaited {
			t.Errorf("acknowledges %d at %d: disorder %t, requests before it are awaited: %t", x.psn, x.at, c.unordered, awaits)
		}
	}
}

// TestUnanswered: the latest copy of a request that its receiver may have accepted, and has not acknowledged.
func TestUnanswered(t *testing.T) {
	for _, x := range []struct {
		name string
		set  func(f *flow, o *Operation)
		want int64 // packet
	}{
		{"no copy in order", func(*flow, *Operation) {}, 7},
		{"one in order", func(_ *flow, o *Operation) { o.copies.at[inOrder] = stamp(5) }, 5},
		{"one in order, and one behind", func(_ *flow, o *Operation) { o.copies.at[inOrder], o.copies.at[behind] = stamp(5), stamp(6) }, 6},
		{"a NAK before it", func(f *flow, _ *Operation) { f.refusedAt(104, false, &Datagram{At: stamp(8)}) }, 0},
		{"a NAK of it", func(f *flow, _ *Operation) { f.refusedAt(105, false, &Datagram{At: stamp(8)}) }, 0},
		{"a NAK after it", func(f *flow, _ *Operation) { f.refusedAt(106, false, &Datagram{At: stamp(8)}) }, 7},
	} {
		_, f, _ := halves()
		o := f.operate(Send, order.One(105), stamp(7))
		x.set(f, o)
		if got, latest := f.conn.Unanswered(f.side, o.Seq); got != o || latest.Packet != x.want {
			t.Errorf("%s: %v, packet %d", x.name, got, latest.Packet)
		}
		if got, _ := f.conn.Unanswered(f.side, o.Seq+1); got != nil {
			t.Errorf("%s: %v is another one", x.name, got)
		}
	}
}

// refused is a follower that counts refusals.
type refused struct {
	ignorant
	n *int
}

func (r refused) Refused(*Refusal) { *r.n++ }

// TestRefusals: at most 16 fatal refusals of a direction are reported, and all others.
func TestRefusals(t *testing.T) {
	for fatal, want := range map[bool]int{true: maxRefusals, false: 40} {
		_, f, _ := halves()
		got := 0
		f.conn.follower = refused{n: &got}
		for i := range 40 {
			f.refuse(&Refusal{Fatal: fatal, By: 1, At: stamp(int64(i + 2))}, 100)
		}
		if got != want {
			t.Errorf("fatal %t: %d refusals", fatal, got)
		}
	}
}

// TestSilent: a side is silent that sends nothing while the other one sends many requests that ask for a response.
func TestSilent(t *testing.T) {
	tracker, a, b := halves()
	tracker.connections.join(a, b)
	b.notePacket(false)
	for n := 1; n <= silentAfter; n++ {
		if a.notePacket(true); b.silent != (n == silentAfter) {
			t.Errorf("after %d requests, silent: %t", n, b.silent)
		}
	}
}

// TestRetiring: what Retired says of connections: whether they are an unanswered request to open one, and have an end.
func TestRetiring(t *testing.T) {
	for _, x := range []struct {
		name         string
		set          func(*Conn)
		asked, ended bool
	}{
		{"request", func(*Conn) {}, true, false},
		{"answered", func(c *Conn) { c.establish(stamp(1)) }, false, false},
		{"rejected", func(c *Conn) { c.close(Ending{How: record.EndRejected}) }, false, true},
		{"evicted", func(c *Conn) { c.evicted = true }, true, true},
		{"without a handshake", func(c *Conn) { c.setup.ServiceID = record.Opt[record.Hex64]{} }, false, false},
	} {
		tracker := New(ignorant{}, budget.New(1<<30))
		var got []Retired
		tracker.Retired = func(r Retired) { got = append(got, r) }
		x.set(tracker.connections.open(Setup{ServiceID: record.Some[record.Hex64](1)}))
		if tracker.Finish(); len(got) != 1 || got[0].Asked != x.asked || got[0].Ended != x.ended {
			t.Errorf("%s: %+v", x.name, got)
		}
	}
}

// describing is a follower that describes its connection.
type describing struct{ ignorant }

func (describing) Follow(Link, *budget.Share) Follower { return describing{} }
func (describing) Describe(r *record.Connection)       { r.Transactions = 7 }

// TestOpen: Open passes the record so far of a connection that has an ID, with what its follower says, and none of others.
func TestOpen(t *testing.T) {
	tracker := New(describing{}, budget.New(1<<30))
	for _, known := range []bool{true, false, true} {
		if c := tracker.connections.open(Setup{}); known {
			c.identify()
		}
	}
	var got []string
	tracker.Open(func(r *record.Connection) { got = append(got, fmt.Sprint(r.ID, r.Transactions)) })
	if !slices.Equal(got, []string{"0 7", "1 7"}) {
		t.Errorf("open connections, with their RPCs: %q", got)
	}
}

// strict is a follower that fails if it receives an event after Closed.
type strict struct {
	ignorant
	t      *testing.T
	closed *int
}

func (s strict) Follow(Link, *budget.Share) Follower { return s }

func (s strict) Operation(e Event) Standing {
	if *s.closed > 0 {
		s.t.Errorf("event %d after Closed", e.What)
	}
	return Unassigned
}

func (s strict) Refused(*Refusal) {
	if *s.closed > 0 {
		s.t.Error("Refused after Closed")
	}
}

func (s strict) Closed(record.Stamp, *Ending) { *s.closed++ }

// closing returns a tracker with a connection on which a Read is in progress, and a function that starts another one with
// the same queue pair. Closed counts the connections whose follower knows that they have ended.
func closing(t *testing.T) (tr *Tracker, again func(), closed *int) {
	closed = new(int)
	tr = New(strict{t: t, closed: closed}, budget.New(1<<30))
	tr.now.Packet = 1
	cs := tr.connections
	client, server := Address{IP: netip.MustParseAddr("192.0.2.1")}, Address{IP: netip.MustParseAddr("192.0.2.2")}
	again = func() { cs.attach(cs.open(Setup{}), 0, cs.hosts.ends(&client, &server), 1) }
	again()
	f := tr.connections.conns.next.flows[0]
	f.names(Read, target{handle: 1, length: 8}, true, order.One(5), tr.now) // it will never be complete
	return tr, again, closed
}

// TestClosedOnce: a follower receives Closed once, and no event after it, although a connection is closed and then
// finished at the end of a capture.
func TestClosedOnce(t *testing.T) {
	tr, _, closed := closing(t)
	tr.Close(func() {})
	tr.Finish()
	if *closed != 1 {
		t.Errorf("Closed was called %d times", *closed)
	}
}

// TestEndsAfterPacket: a connection whose queue pair is used again has its ID before the next one, takes no more packets, and
// ends at the end of the packet. It is finished once.
func TestEndsAfterPacket(t *testing.T) {
	tr, again, closed := closing(t)
	var records []int
	tr.Connection = func(r *record.Connection) { records = append(records, r.ID) }
	first := tr.connections.conns.next
	again()
	second := tr.connections.conns.prev
	if *closed != 0 || first.retired || !first.closing || first.setup.ID != record.Some(0) || second.setup.ID.Known() {
		t.Errorf("before the end of the packet, %d ended, retired: %t, closing: %t, IDs %v and %v", *closed, first.retired, first.closing, first.setup.ID, second.setup.ID)
	}
	if tr.connections.queues[queueKey{first.flows[0].qp.route, 1}] != second.flows[0] {
		t.Error("the queue pair is not that of the second connection")
	}
	tr.settle(new(currentPacket))
	tr.settle(new(currentPacket))
	if *closed != 1 || !first.retired || second.retired || len(records) != 1 || records[0] != 0 {
		t.Errorf("%d ended, retired: %t and %t, records %v", *closed, first.retired, second.retired, records)
	}
	if tr.connections.queues[queueKey{second.flows[0].qp.route, 1}] != second.flows[0] {
		t.Error("the end of the first connection took the queue pair from the second one")
	}
	if kind, _ := second.Evict(); kind != budget.Connections || len(records) != 2 || records[1] != 1 {
		t.Errorf("evicted %v without an ID: records %v", kind, records)
	}
}

// TestLateEvents: nothing that comes after the end of a connection reaches its follower.
func TestLateEvents(t *testing.T) {
	tr, _, closed := closing(t)
	tr.Close(func() {})
	late := 0
	OnLateEvent = func() { late++ }
	defer func() { OnLateEvent = nil }()
	f := tr.connections.conns.next.follower
	f.Private(0, nil, tr.now, false)
	f.Moved(nil, 0, nil, 0)
	f.Refused(nil)
	f.Closing()
	f.Closed(tr.now, nil)
	if f.Operation(Event{}) != Unassigned || late != 6 || *closed != 1 {
		t.Errorf("%d events were late, Closed was called %d times", late, *closed)
	}
}
