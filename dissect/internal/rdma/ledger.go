package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// ledger assigns the sequence numbers of a direction to operations: to those in
// progress, and to the latest finished ones, so that a late retransmission or NAK finds
// its operation. It decides which copies of them were delivered; see delivery.go.
type ledger struct {
	circle  order.Circle
	side    Side // of the sender
	ordered bool // the transport delivers what is retransmitted without showing which copy it accepted

	receiver receiver // progress of the receiver of the requests; InfiniBand only

	entries []entry // by sequence number
	head    int     // the first entry in use
	unacked int     // the first entry that the other side has not acknowledged
	reads   int     // iWARP: no entry before it is an outstanding Read
}

// entry assigns a run to an operation. On an iWARP stream, the run may be a response to
// a Read of the other side.
type entry struct {
	order.Run
	op *Operation
}

const (
	keepFinished = 128  // finished entries
	maxEntries   = 4096 // all entries
)

func (l *ledger) len() int { return len(l.entries) - l.head }

// last returns the newest entry, nil if there is none.
func (l *ledger) last() *entry {
	if l.len() == 0 {
		return nil
	}
	return &l.entries[len(l.entries)-1]
}

// oldest returns the operation of the oldest entry.
func (l *ledger) oldest() *Operation { return l.entries[l.head].op }

// all returns the entries, in their order.
func (l *ledger) all() []entry { return l.entries[l.head:] }

// enter assigns sequence numbers to an operation. It returns false if no entry was added for them, because the latest
// entry contains them now.
func (l *ledger) enter(r order.Run, o *Operation) bool {
	if last := l.last(); last != nil && last.op == o && last.To == r.From {
		last.To = r.To
		return false
	}
	l.add(entry{r, o})
	return true
}

// add appends an entry.
func (l *ledger) add(e entry) {
	if l.head > 0 && len(l.entries) == cap(l.entries) {
		n := copy(l.entries, l.entries[l.head:])
		clear(l.entries[n:])
		l.entries = l.entries[:n]
		l.unacked, l.reads = l.unacked-l.head, max(l.reads-l.head, 0)
		l.head = 0
	}
	l.entries = append(l.entries, e)
	e.op.ledgers++
}

// pop removes the oldest entry, and returns its operation.
func (l *ledger) pop() *Operation {
	op := l.entries[l.head].op
	l.entries[l.head] = entry{}
	if l.head++; l.head == len(l.entries) {
		l.entries, l.head, l.unacked, l.reads = l.entries[:0], 0, 0, 0
	}
	l.unacked = max(l.unacked, l.head)
	op.ledgers--
	return op
}

// find returns the index of the entry that contains a sequence number, -1 if there is
// none.
func (l *ledger) find(seq uint32) int {
	lo, hi := l.head, len(l.entries)
	for hi > lo { // most packets belong to the newest entries
		e := &l.entries[hi-1]
		if l.circle.Delta(seq, e.From) >= 0 {
			if l.circle.Delta(seq, e.To) < 0 {
				return hi - 1
			}
			return -1
		}
		if hi--; hi-lo > 8 {
			break
		}
	}
	for lo < hi { // finds the last entry that does not begin after seq
		mid := (lo + hi) / 2
		if l.circle.Delta(seq, l.entries[mid].From) >= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if i := lo - 1; i >= l.head && l.circle.Delta(seq, l.entries[i].From) >= 0 && l.circle.Delta(seq, l.entries[i].To) < 0 {
		return i
	}
	return -1
}

// at returns the operation of a sequence number, nil if there is none.
func (l *ledger) at(seq uint32) *Operation {
	if i := l.find(seq); i >= 0 {
		return l.entries[i].op
	}
	return nil
}

// move makes the operations those of a side of another connection.
func (l *ledger) move(c *Conn, s Side) {
	l.side = s
	for _, e := range l.all() {
		e.op.conn, e.op.Side = c, s
	}
}

// covered decides which copies of the requests before the sequence number next were delivered, because an acknowledgement
// covers them, and passes those that were not acknowledged before to yield, oldest first.
func (l *ledger) covered(next uint32, at record.Stamp, yield func(*Operation)) {
	end := l.unacked
	for end < len(l.entries) && l.circle.Delta(next, l.entries[end].To) >= 0 && !l.entries[end].op.growing() {
		end++
	}
	l.decideCopies(l.unacked, end, at)
	for ; l.unacked < end; l.unacked++ {
		if o := l.entries[l.unacked].op; o.Side == l.side && !o.acked { // otherwise a response to the other side's Read
			yield(o)
		}
	}
}

// extend sets the number of PSNs of a Read.
func (e *entry) extend(n uint32) {
	e.op.count = n
	e.To = order.PSNs.Add(e.From, n)
}
