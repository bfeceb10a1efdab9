// Package queue is what waits its turn: connections whose end is awaited,
// transactions that what is still to come may change; and what waits for its next use.
package queue

// Queue is first in, first out, in one array that is used again. Its zero value is
// empty and ready. It is not safe for use by several goroutines at once.
type Queue[T any] struct {
	items []T
	head  int
}

// Push puts v behind all others.
func (q *Queue[T]) Push(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// Len is how many there are.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// First is the one that has been in longest; there has to be one.
func (q *Queue[T]) First() T { return q.items[q.head] }

// Pop takes the first out; there has to be one.
func (q *Queue[T]) Pop() {
	var zero T
	q.items[q.head] = zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}

// Last takes the last out of a list of what is used again, nil when there is none.
func Last[T any](list *[]*T) *T {
	last := len(*list) - 1
	if last < 0 {
		return nil
	}
	v := (*list)[last]
	*list = (*list)[:last]
	return v
}
