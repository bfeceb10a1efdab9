package rdma

// ledger remembers which operation each sequence number of a direction belongs
// to: those under way, and for a while those that are over, so that a late repeat
// or NAK finds them.
type ledger struct {
	entries []entry // in the order of their sequence numbers
	head    int     // the first that is in use
	unacked int     // the first that the other end has not acknowledged
	reads   int     // iWARP: no Read before it is under way
}

// run is sequence numbers, [from, to).
type run struct{ from, to uint32 }

// entry is a run that is one operation's. On an iWARP stream that may be a Read of
// the other side, to which these are responses.
type entry struct {
	run
	op *Operation
}

const (
	keepFinished = 128  // entries that are over
	maxEntries   = 4096 // entries in all
)

func (l *ledger) len() int { return len(l.entries) - l.head }

// last is the newest entry, nil when there is none.
func (l *ledger) last() *entry {
	if l.len() == 0 {
		return nil
	}
	return &l.entries[len(l.entries)-1]
}

// add appends an entry; what it displaces is returned, to be let go.
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

// pop takes the oldest entry out.
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

// find is the index of the entry that a sequence number belongs to, -1 for none.
func (l *ledger) find(c circle, seq uint32) int {
	lo, hi := l.head, len(l.entries)
	for hi > lo { // most are of the newest
		e := &l.entries[hi-1]
		if c.delta(seq, e.from) >= 0 {
			if c.delta(seq, e.to) < 0 {
				return hi - 1
			}
			return -1
		}
		if hi--; hi-lo > 8 {
			break
		}
	}
	for lo < hi { // the last that does not begin behind seq
		mid := (lo + hi) / 2
		if c.delta(seq, l.entries[mid].from) >= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if i := lo - 1; i >= l.head && c.delta(seq, l.entries[i].from) >= 0 && c.delta(seq, l.entries[i].to) < 0 {
		return i
	}
	return -1
}

// at is the operation that a sequence number belongs to, nil for none.
func (l *ledger) at(c circle, seq uint32) *Operation {
	if i := l.find(c, seq); i >= 0 {
		return l.entries[i].op
	}
	return nil
}
