package rdma

import "github.com/rdmadump/rdmadump/dissect/internal/order"

// ledger assigns the sequence numbers of a direction to operations: to those in
// progress, and to the latest finished ones, so that a late retransmission or NAK finds
// its operation.
type ledger struct {
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
func (l *ledger) find(c order.Circle, seq uint32) int {
	lo, hi := l.head, len(l.entries)
	for hi > lo { // most packets belong to the newest entries
		e := &l.entries[hi-1]
		if c.Delta(seq, e.From) >= 0 {
			if c.Delta(seq, e.To) < 0 {
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
		if c.Delta(seq, l.entries[mid].From) >= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if i := lo - 1; i >= l.head && c.Delta(seq, l.entries[i].From) >= 0 && c.Delta(seq, l.entries[i].To) < 0 {
		return i
	}
	return -1
}

// at returns the operation of a sequence number, nil if there is none.
func (l *ledger) at(c order.Circle, seq uint32) *Operation {
	if i := l.find(c, seq); i >= 0 {
		return l.entries[i].op
	}
	return nil
}
