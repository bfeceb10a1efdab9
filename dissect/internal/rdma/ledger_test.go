package rdma

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/rocev2"
)

// stamp is a packet at a time, which is its number, too.
func stamp(n int64) record.Stamp { return record.Stamp{Packet: n, Time: record.Time(n)} }

// sends returns a ledger of side 0 with Sends of one packet each, from PSN 100 on, which the receiver expects next.
func sends(n int) (l *ledger, all []*Operation) {
	l = &ledger{circle: order.PSNs}
	l.receiver.begin(100)
	for i := range n {
		o := &Operation{Kind: Send, done: true, Seq: uint64(i + 1), Last: stamp(int64(i + 1))}
		l.enter(order.One(uint32(100+i)), o)
		all = append(all, o)
	}
	return l, all
}

// TestLedgerFind: each sequence number belongs to its operation, also after others were forgotten, and around the wrap.
func TestLedgerFind(t *testing.T) {
	l, all := sends(40)
	long := &Operation{Kind: Write}
	l.enter(order.Run{From: 150, To: 153}, long)
	if l.enter(order.Run{From: 153, To: 155}, long) || !l.enter(order.Run{From: 160, To: 161}, long) || long.ledgers != 2 {
		t.Errorf("a Write is in %d entries, want 2", long.ledgers)
	}
	for range 3 {
		if o := l.pop(); o.ledgers != 0 {
			t.Errorf("a forgotten operation is in %d ledgers", o.ledgers)
		}
	}
	for psn, want := range map[uint32]*Operation{
		99: nil, 100: nil, 102: nil, 103: all[3], 104: all[4], 120: all[20], 139: all[39], 140: nil, 149: nil, 150: long, 154: long, 155: nil, 159: nil, 160: long, 161: nil,
	} {
		if got := l.at(psn); got != want {
			t.Errorf("PSN %d belongs to %v, want %v", psn, got, want)
		}
	}
	if l.len() != 39 || l.oldest() != all[3] || l.last().op != long || len(l.all()) != 39 {
		t.Errorf("%d entries from %v to %v", l.len(), l.oldest(), l.last().op)
	}
	wraps := &ledger{circle: order.PSNs}
	for i := range uint32(20) {
		wraps.enter(order.One(order.PSNs.Add(1<<24-10, i)), &Operation{Seq: uint64(i)})
	}
	for _, c := range []struct {
		psn  uint32
		want uint64
	}{{1<<24 - 10, 0}, {1<<24 - 1, 9}, {0, 10}, {9, 19}} {
		if o := wraps.at(c.psn); o == nil || o.Seq != c.want {
			t.Errorf("PSN %d belongs to %v, want operation %d", c.psn, o, c.want)
		}
	}
	if wraps.at(10) != nil || wraps.at(1<<24-11) != nil || (&ledger{}).last() != nil || (&ledger{}).at(5) != nil {
		t.Error("an operation is found where there is none")
	}
}

// TestLedgerForgets: the storage of forgotten entries is used again, and the positions in the rest stay.
func TestLedgerForgets(t *testing.T) {
	l, all := sends(8)
	l.entries = slices.Clip(l.entries)
	l.covered(104, stamp(50), func(*Operation) {})
	l.reads = 6
	for range 3 {
		l.pop()
	}
	next := &Operation{Seq: 9}
	l.enter(order.One(108), next)
	if l.head != 0 || l.len() != 6 || l.unacked != 1 || l.reads != 3 || l.oldest() != all[3] || l.at(108) != next {
		t.Errorf("%d entries from %d on, the first that is not acknowledged is %d, Reads from %d on", l.len(), l.head, l.unacked, l.reads)
	}
	l.pop()
	if l.pop(); l.unacked != 2 || l.head != 2 {
		t.Errorf("the first that is not acknowledged is %d, of entries from %d on", l.unacked, l.head)
	}
	for l.len() > 0 {
		l.pop()
	}
	if l.head != 0 || l.unacked != 0 || l.reads != 0 || len(l.entries) != 0 {
		t.Errorf("an empty ledger begins at %d, with %d and %d", l.head, l.unacked, l.reads)
	}
	l.enter(order.One(200), next)
	if l.at(200) != next || l.len() != 1 {
		t.Error("an empty ledger takes no operation")
	}
}

// TestLedgerCovered: an acknowledgement covers what was not acknowledged before, oldest first, up to a request of which more follows.
func TestLedgerCovered(t *testing.T) {
	l, all := sends(4)
	all[1].acked = true
	all[2].Side = 1 // a response to a Read of the other side
	growing := &Operation{Kind: Write}
	l.enter(order.One(104), growing)
	var seqs []uint64
	note := func(o *Operation) { seqs = append(seqs, o.Seq) }
	l.covered(100, stamp(50), note)
	l.covered(101, stamp(51), note)
	l.covered(105, stamp(52), note)
	if fmt.Sprint(seqs) != "[1 4]" || l.unacked != 4 {
		t.Errorf("the operations %v are acknowledged, up to entry %d", seqs, l.unacked)
	}
	if _, known := growing.Delivered(); known {
		t.Error("a request of which more follows is delivered")
	}
	for i, want := range []bool{true, true, false, true} {
		if _, known := all[i].Delivered(); known != want {
			t.Errorf("delivery of operation %d is known: %t", i, known)
		}
	}
	growing.done = true
	if l.covered(105, stamp(53), note); l.unacked != 5 || len(seqs) != 3 {
		t.Errorf("the end of the Write is not acknowledged: %v, %d", seqs, l.unacked)
	}
}

// TestReceived: a response that was lost shows that the requests before it came, of those of which a copy came in order.
func TestReceived(t *testing.T) {
	l, all := sends(6)
	for _, i := range []int{0, 1, 2, 4, 5} {
		all[i].copies.note(inOrder, stamp(int64(i+1)), 0)
	}
	all[0].acked, all[1].Side = true, 1
	var seqs []uint64
	l.received(105, stamp(50), func(o *Operation) { seqs = append(seqs, o.Seq) })
	l.received(105, stamp(51), func(o *Operation) { seqs = append(seqs, o.Seq) })
	if fmt.Sprint(seqs) != "[3 5]" {
		t.Errorf("the operations %v came, want 3 and 5", seqs)
	}
	all[5].done = false
	if l.received(106, stamp(52), func(*Operation) { t.Error("a request of which more follows came") }); l.unacked != 0 {
		t.Error("a response that was lost acknowledges")
	}
}

// note is a copy of the packet that ends an operation: what its receiver does with it, and when it was captured.
type noted struct {
	arrival
	at int64
}

// TestDelivered: which copy was accepted, from the copies, their times, and the time of the response.
func TestDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		copies []noted
		until  int64
		want   string // the copy, the first that may have been accepted, and whether it is certain
	}{
		"one in order":              {[]noted{{inOrder, 2}}, 9, "2 2 certain"},
		"none":                      {nil, 9, "1 1"},
		"one again":                 {[]noted{{inOrder, 2}, {behind, 4}}, 9, "4 2"},
		"one again, too late":       {[]noted{{inOrder, 2}, {behind, 9}}, 9, "2 2 certain"},
		"only again":                {[]noted{{behind, 4}}, 9, "4 -"},
		"only early":                {[]noted{{ahead, 3}}, 9, "3 3"},
		"early, then in order":      {[]noted{{ahead, 3}, {inOrder, 5}}, 9, "5 5 certain"},
		"in order after the answer": {[]noted{{ahead, 3}, {inOrder, 9}}, 9, "3 3"},
		"early and again":           {[]noted{{ahead, 3}, {behind, 5}}, 9, "5 -"},
		"all after the answer":      {[]noted{{ahead, 10}, {inOrder, 12}}, 9, "12 12 certain"},
	} {
		l, all := sends(1)
		for _, n := range c.copies {
			all[0].copies.note(n.arrival, stamp(n.at), 0)
		}
		l.decideCopies(0, 1, stamp(c.until))
		d, known := all[0].Delivered()
		got := fmt.Sprint(d.At.Packet, " ", d.Earliest.Packet)
		if d.Earliest.Packet == 0 {
			got = fmt.Sprint(d.At.Packet, " -")
		}
		if d.Certain {
			got += " certain"
		}
		if !known || got != c.want {
			t.Errorf("%s: %s, %t, want %s", name, got, known, c.want)
		}
		l.decideCopies(0, 1, stamp(99))
		if again, _ := all[0].Delivered(); again != d {
			t.Errorf("%s: decided twice, first %v, then %v", name, d, again)
		}
	}
	seen, all := sends(1)
	all[0].copies.note(inOrder, stamp(2), 0)
	all[0].copies.note(behind, stamp(4), 0)
	all[0].copies.seen = true
	seen.decideCopies(0, 1, stamp(9))
	if d, _ := all[0].Delivered(); d.At != stamp(2) || !d.Certain {
		t.Errorf("the copy that was captured when it came was accepted, not %v", d)
	}
	slow, all := sends(1)
	all[0].copies.note(inOrder, stamp(2), 0)
	late := record.Stamp{Time: stamp(2).Time + record.Time(slowAck) + 1, Packet: 4}
	all[0].copies.note(behind, late, 0)
	all[0].copies.seen = true
	all[0].sentSeen = true
	slow.decideCopies(0, 1, record.Stamp{Time: late.Time + 1, Packet: 9})
	if d, _ := all[0].Delivered(); d.At != late || d.Earliest != stamp(2) || d.Certain || all[0].SeenAtBoth() {
		t.Errorf("a copy that its receiver did not acknowledge for long was accepted: %v", d)
	}
	stream, all := sends(1)
	stream.ordered = true
	stream.decideCopies(0, 1, stamp(9))
	if d, _ := all[0].Delivered(); d.At != stamp(1) || !d.Certain {
		t.Errorf("a stream: %v, want the packet that completed it", d)
	}
}

// TestDeliveredInOrder: an operation is delivered after those before it, and bounds the copies of those.
func TestDeliveredInOrder(t *testing.T) {
	said := func(all []*Operation) string {
		var list []string
		for _, o := range all {
			d, _ := o.Delivered()
			list = append(list, fmt.Sprint(d.At.Packet, "@", int64(d.At.Time)))
		}
		return strings.Join(list, " ")
	}
	l, all := sends(3)
	for i, at := range []int64{2, 3, 4} {
		all[i].copies.note(inOrder, stamp(at), 0)
	}
	all[0].copies.note(behind, stamp(8), 0)
	l.decideCopies(0, 3, stamp(9))
	if got := said(all); got != "2@2 3@3 4@4" {
		t.Errorf("a copy after a later operation was in order: %s", got)
	}
	l, all = sends(3)
	all[0].copies.note(behind, stamp(8), 0)
	all[1].copies.note(ahead, stamp(3), 0)
	all[2].Side = 1
	l.decideCopies(0, 3, stamp(9))
	if got := said(all); got != "8@8 3@8 0@0" {
		t.Errorf("an early copy is delivered with the one before it: %s", got)
	}
	l, all = sends(4)
	for i, n := range []noted{{inOrder, 8}, {ahead, 3}, {ahead, 4}, {ahead, 9}} {
		all[i].copies.note(n.arrival, stamp(n.at), 0)
	}
	l.decideCopies(0, 1, stamp(9))
	l.decideCopies(1, 2, stamp(9))
	l.decideCopies(2, 4, stamp(10))
	if got := said(all); got != "8@8 3@8 4@8 9@9" {
		t.Errorf("operations that are decided later: %s", got)
	}
	l, all = sends(2)
	all[0].copies.note(inOrder, stamp(7), 0)
	all[1].copies.note(inOrder, stamp(3), 0)
	all[1].copies.note(behind, stamp(8), 0)
	l.decideCopies(0, 1, stamp(9))
	l.decideCopies(1, 2, stamp(9))
	if d, _ := all[1].Delivered(); d.At != stamp(8) || d.Earliest.Packet != 3 || d.Earliest.Time != 7 {
		t.Errorf("an operation was accepted before the one before it: %v", d)
	}
	l, all = sends(2)
	all[0].copies.note(inOrder, stamp(2), 0)
	all[1].copies.note(inOrder, stamp(3), 0)
	if d, known := l.acceptedUpTo(2, stamp(5)); !known || d.At != stamp(3) {
		t.Errorf("the upper layer shows that operation 2 was accepted: %v, %t", d, known)
	}
	if _, known := l.acceptedUpTo(0, stamp(5)); known {
		t.Error("no operation was accepted, but its delivery is known")
	}
	if _, known := l.acceptedUpTo(7, stamp(5)); known {
		t.Error("an operation that is not there was accepted")
	}
}

// TestRollBack: what a NAK refuses was not accepted, unless the receiver accepted it after it had sent the NAK.
func TestRollBack(t *testing.T) {
	for name, c := range map[string]struct {
		psn      uint32
		sent     record.Time
		accepted string // which of the operations at PSN 100 to 103 have a copy in order after that
		next     uint32
	}{
		"the second":         {101, 0, "true false false true", 101},
		"the first":          {100, 0, "false false false true", 100},
		"what is next":       {103, 0, "true true true true", 103},
		"what was not sent":  {110, 0, "true true true true", 110},
		"what came after it": {101, 2, "true true true true", 103},
		"what came before":   {101, 9, "true false false true", 101},
	} {
		l, all := sends(4)
		for i, o := range all {
			o.copies.note(inOrder, stamp(int64(i+1)), 0)
			o.copies.note(behind, stamp(20), 0)
		}
		all[3].copies.decided = true
		l.receiver.next = 103
		l.rollBack(c.psn, c.sent)
		var got []bool
		for _, o := range all {
			got = append(got, o.copies.at[inOrder].Packet != 0)
			if gone := o.copies.at[inOrder].Packet == 0; gone && (o.copies.at[ahead] != o.Last || o.copies.at[behind].Packet != 0) {
				t.Errorf("%s: the refused copy is %v, another %v", name, o.copies.at[ahead], o.copies.at[behind])
			}
		}
		if text := strings.Trim(fmt.Sprint(got), "[]"); text != c.accepted || l.receiver.next != c.next {
			t.Errorf("%s: %s, and %d is next; want %s, %d", name, text, l.receiver.next, c.accepted, c.next)
		}
	}
	l, all := sends(1)
	all[0].copies.note(inOrder, stamp(1), 0)
	l.receiver = receiver{next: 101}
	if l.rollBack(100, 0); all[0].copies.at[inOrder].Packet == 0 || l.receiver.next != 101 {
		t.Error("a receiver of which nothing is known was rolled back")
	}
	var r receiver
	if r.acceptedTo(7); r.next != 0 {
		t.Error("an acknowledgement shows what a receiver accepts that is not known")
	}
	r.begin(5)
	r.acceptedTo(7)
	if r.acceptedTo(6); r.next != 7 || r.takes(order.One(6)) != behind || r.takes(order.One(8)) != ahead || r.next != 7 || r.takes(order.Run{From: 7, To: 9}) != inOrder || r.next != 9 {
		t.Errorf("the receiver expects %d", r.next)
	}
}

// TestSentLast: only the packet that ends an operation, and the request of a Read, is its copy.
func TestSentLast(t *testing.T) {
	for name, c := range map[string]struct {
		op   Operation
		run  order.Run
		psn  uint32
		want bool
	}{
		"the end":            {Operation{Kind: Write}, order.Run{From: 100, To: 103}, 102, true},
		"the middle":         {Operation{Kind: Write}, order.Run{From: 100, To: 103}, 101, false},
		"a Read":             {Operation{Kind: Read}, order.Run{From: 100, To: 103}, 100, true},
		"the rest of a Read": {Operation{Kind: Read}, order.Run{From: 100, To: 103}, 101, false},
		"of the other side":  {Operation{Kind: Send, Side: 1}, order.One(100), 100, false},
	} {
		for _, turn := range []arrival{inOrder, ahead} {
			l, o := &ledger{circle: order.PSNs}, c.op
			l.enter(c.run, &o)
			l.sentLast(c.psn, turn, stamp(5), 7, true)
			is := o.copies.newest == stamp(5) && o.copies.print == 7
			if is != c.want || (o.copies.at[inOrder] == stamp(5)) != (c.want && turn == inOrder) || o.copies.seen != (c.want && turn == inOrder) {
				t.Errorf("%s, arrival %d: %+v", name, turn, o.copies)
			}
		}
	}
	(&ledger{}).sentLast(100, inOrder, stamp(5), 7, true)
}

// TestCopied: a further copy of a request is one of its sender, or the network's, and the receiver may expect it.
func TestCopied(t *testing.T) {
	for name, c := range map[string]struct {
		kind    Kind
		psn     uint32 // of the copy; the request has the PSNs 100 to 102
		next    uint32 // the PSN that the receiver expects
		print   uint32
		path    Path
		want    string // the PSN after it, and what is noted
		expects uint32
	}{
		"the end again":           {Write, 102, 103, 8, Path{}, "103 again", 103},
		"the middle again":        {Write, 101, 103, 8, Path{}, "102", 103},
		"the end is next":         {Write, 102, 102, 8, Path{}, "103 accepted", 103},
		"the middle is next":      {Write, 101, 101, 8, Path{}, "102", 102},
		"the end too early":       {Write, 102, 101, 8, Path{}, "103 early", 101},
		"a Read":                  {Read, 100, 103, 8, Path{}, "103 again", 103},
		"a Read is next":          {Read, 100, 100, 8, Path{}, "103 accepted", 103},
		"the network's":           {Write, 102, 103, 7, Path{}, "103 network", 103},
		"the network's at an end": {Write, 102, 103, 8, Path{Joined: true, Copy: true}, "103", 103},
		"the network's, but next": {Write, 102, 102, 8, Path{Joined: true, Copy: true, Arrived: true}, "103 accepted seen", 103},
		"at both ends":            {Write, 102, 102, 7, Path{Joined: true, Arrived: true}, "103 accepted seen", 103},
		"not seen when it came":   {Write, 102, 102, 8, Path{Joined: true}, "103 accepted", 103},
		"of an unknown request":   {Write, 110, 110, 8, Path{}, "111 unknown", 111},
		"of a request before it":  {Write, 90, 103, 8, Path{}, "91 unknown", 103},
	} {
		l := &ledger{circle: order.PSNs}
		l.receiver.begin(c.next)
		o := &Operation{Kind: c.kind}
		l.enter(order.Run{From: 100, To: 103}, o)
		o.copies.print, o.copies.newest = 7, stamp(1)
		got, to, _, network := l.copied(&Datagram{Packet: &rocev2.Packet{BTH: rocev2.BTH{PSN: c.psn}}, At: stamp(4), print: c.print, Path: c.path})
		text := fmt.Sprint(to)
		for _, is := range []struct {
			set  bool
			text string
		}{
			{got == nil, " unknown"},
			{network, " network"},
			{o.copies.at[inOrder] == stamp(4), " accepted"},
			{o.copies.at[ahead] == stamp(4), " early"},
			{o.copies.at[behind] == stamp(4), " again"},
			{o.copies.seen, " seen"},
		} {
			if is.set {
				text += is.text
			}
		}
		if text != c.want || l.receiver.next != c.expects {
			t.Errorf("%s: %s, then %d, want %s, then %d", name, text, l.receiver.next, c.want, c.expects)
		}
	}
	l, all := sends(3)
	all[0].copies.seen = true
	l.receiver.next = 103
	l.copied(&Datagram{Packet: &rocev2.Packet{BTH: rocev2.BTH{PSN: 100}}, At: stamp(9), print: 5})
	if !all[0].copies.seen {
		t.Error("a later copy hides that the first one was captured when it came")
	}
	l.copiedTo(101, 103, stamp(7))
	if all[0].copies.at[behind] == stamp(7) || all[1].copies.at[behind] != stamp(7) || all[2].copies.at[behind] != stamp(7) {
		t.Errorf("a segment ends operations 2 and 3: %v %v %v", all[0].copies.at[behind], all[1].copies.at[behind], all[2].copies.at[behind])
	}
	if l.copiedTo(100, 101, stamp(8)); all[0].copies.at[behind] != stamp(8) || all[1].copies.at[behind] == stamp(8) {
		t.Error("a segment ends operation 1")
	}
	l.copiedTo(50, 60, stamp(8)) // it is before all of them
}

// TestDuplicates: which copies only the network can have made.
func TestDuplicates(t *testing.T) {
	for name, c := range map[string]struct {
		d    Datagram
		want bool
	}{
		"at once":                 {Datagram{print: 7, At: record.Stamp{Time: 100 + copyWithin}}, true},
		"later":                   {Datagram{print: 7, At: record.Stamp{Time: 101 + copyWithin}}, false},
		"later, the same IP ID":   {Datagram{print: 7, Identification: 1, At: record.Stamp{Time: 101 + copyWithin}}, true},
		"other bytes":             {Datagram{print: 8, At: record.Stamp{Time: 100}}, false},
		"truncated":               {Datagram{At: record.Stamp{Time: 100}}, false},
		"with two points":         {Datagram{print: 7, At: record.Stamp{Time: 100}, Path: Path{Joined: true}}, false},
		"a copy, with two points": {Datagram{print: 8, Path: Path{Joined: true, Copy: true}}, true},
	} {
		if got := c.d.duplicates(7, 100); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	none := Datagram{At: record.Stamp{Time: 100}}
	if none.duplicates(0, 100) {
		t.Error("two packets without a captured ICRC are the same")
	}
}

// TestCut: an RDMA Write is cut if the capture lacks the end of one of its packets.
func TestCut(t *testing.T) {
	for cut := -1; cut < 3; cut++ {
		_, f, _ := halves()
		for i, opcode := range []rocev2.Opcode{rocev2.OpWriteFirst, rocev2.OpWriteMiddle, rocev2.OpWriteLast} {
			p := &rocev2.Packet{RETH: rocev2.RETH{RKey: 1, DMALength: 30}, Payload: make([]byte, 10), PayloadLength: 10, HasICRC: i != cut}
			p.Opcode, p.PSN = opcode, 100+uint32(i)
			f.writePacket(p, order.One(p.PSN), new(currentPacket))
		}
		if o := f.ops.at(102); o.Cut != (cut >= 0) || o.Bytes != 30 {
			t.Errorf("without the end of packet %d: cut is %t, %d bytes", cut, o.Cut, o.Bytes)
		}
	}
}

// TestDamagedSends: a Send in one packet is the damaged one if it has its size, and its PSN, or the PSN that was expected instead of a
// PSN with one other bit. It is taken once, and the first copy of several counts.
func TestDamagedSends(t *testing.T) {
	for _, x := range []struct {
		psn  uint32
		size int
		want int64 // the packet; 0 if it is none of them
	}{{100, 64, 4}, {100, 60, 0}, {101, 64, 6}, {102, 64, 0}, {101 ^ 8 ^ 16, 64, 0}, {101 ^ 16, 64, 6}} {
		_, f, _ := halves()
		for i, psn := range []uint32{100, 100, 101 ^ 16} {
			p := &rocev2.Packet{PayloadLength: 64}
			if p.Opcode, p.PSN = rocev2.OpSendOnly, psn; i == 2 {
				f.order.Take(order.Request{PSN: 100}, 0)
			}
			f.qp.keepDamaged(&Datagram{Packet: p, At: stamp(int64(4 + i))})
		}
		part := part{size: x.size, Run: order.One(x.psn)}
		first, found := f.qp.takeDamaged(part)
		if again, twice := f.qp.takeDamaged(part); found != (x.want > 0) || first.Packet != x.want || twice {
			t.Errorf("PSN %d, %d bytes: packet %d, %t; then %d, %t", x.psn, x.size, first.Packet, found, again.Packet, twice)
		}
		if f.qp.broken != record.Some[uint32](100) {
			t.Errorf("the PSN that was expected and came damaged: %v", f.qp.broken)
		}
	}
}

// TestNamed: which operation of a flow a Terminate names, by a handle and an offset, or by the number of a message.
func TestNamed(t *testing.T) {
	_, f, other := halves()
	w := f.names(Write, target{1, 1000, 50}, true, order.Run{From: 100, To: 101}, stamp(1))
	first, second := f.operate(Send, order.One(101), stamp(2)), f.operate(Send, order.One(102), stamp(3))
	first.msn, second.msn = 1, 2
	response := other.operate(Send, order.One(103), stamp(4))
	response.Side, response.msn = 1, 3
	f.ops.enter(order.One(103), response)
	for _, x := range []struct {
		kind   Kind
		handle uint32
		offset uint64
		want   *Operation
	}{{Write, 1, 1000, w}, {Write, 1, 1050, w}, {Write, 1, 1051, nil}, {Write, 1, 999, nil}, {Write, 2, 1000, nil}, {Read, 1, 1000, nil}} {
		r := &Refusal{Kind: x.kind, Handle: record.Some(x.handle), Offset: x.offset}
		if got := f.operationNamed(r); got != x.want {
			t.Errorf("%s of handle %d at %d: %v", x.kind, x.handle, x.offset, got)
		}
	}
	if f.operationNamed(new(Refusal)) != nil {
		t.Error("no handle names no operation")
	}
	for msn, want := range []*Operation{nil, first, second, nil} {
		if got := f.sendNumbered(uint32(msn)); got != want {
			t.Errorf("message %d: %v", msn, got)
		}
	}
}
