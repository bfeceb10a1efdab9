package show

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command/flags"
)

// This file shows records in the order of their numbers. They come in the order in which they ended, which surprises
// readers of a table: its first column has the numbers.

// numbered holds the records that came before one with a smaller number.
type numbered struct {
	next    int64          // number of the next record to show
	waiting map[int64]line // by number; a line with nothing in it stands for a record that is not shown
	bytes   int
	limit   int // of bytes; beyond it, these records and all later ones are sorted at the end
}

// numberedMemory is the limit for the records that wait.
const numberedMemory = 24 << 20

// byNumber lets the sink show records in the order of their numbers, if the view has them and nothing asks for another order.
func (s *sink) byNumber() {
	if s.sorter != nil || s.JSON || s.Ladder || s.Timeline || s.View == flags.OperationSumsView {
		return
	}
	switch s.View.Name {
	case "transactions", "rdma":
		s.numbered = &numbered{next: 1, waiting: map[int64]line{}, limit: numberedMemory}
	case "connections":
		s.numbered = &numbered{waiting: map[int64]line{}, limit: numberedMemory}
	}
}

// numberOf returns the number of a record of the views that byNumber orders.
func numberOf(r any) int64 {
	switch r := r.(type) {
	case *record.Transaction:
		return r.ID
	case *record.RDMAOperation:
		return r.ID
	case *record.Connection:
		return int64(r.ID)
	}
	return 0
}

// hold keeps a record until those with smaller numbers came.
func (s *sink) hold(l line) {
	n := s.numbered
	number := int64(l.key.(int))
	if _, again := n.waiting[number]; again { // Records of several captures, which were read back, may have the same numbers.
		s.sortNumbered()
		if !l.skipped() {
			s.fail(s.sorter.take(l))
		}
		return
	}
	n.waiting[number] = l
	if n.bytes += l.cost(); n.bytes > n.limit {
		s.sortNumbered()
	}
}

// skipped reports whether the line stands for a record that is not shown.
func (l *line) skipped() bool { return l.text == nil && l.record == nil }

// pass goes on after a record that was shown, or that is not shown.
func (s *sink) pass(number int64) {
	n := s.numbered
	switch {
	case n == nil || number < n.next:
		return
	case number > n.next:
		s.hold(line{key: int(number)})
		return
	}
	n.next++
	for l, came := n.waiting[n.next]; came; l, came = n.waiting[n.next] {
		delete(n.waiting, n.next)
		n.bytes -= l.cost()
		if !l.skipped() {
			s.put(l.text, l.record)
		}
		n.next++
	}
}

// sortNumbered leaves the order of the records that wait, and of all that follow, to a sorter.
func (s *sink) sortNumbered() {
	n := s.numbered
	s.numbered, s.sorter = nil, newSorter(flags.Order{Path: "id"})
	for _, l := range n.waiting {
		if !l.skipped() {
			s.fail(s.sorter.take(l))
		}
	}
}
