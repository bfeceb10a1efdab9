// Package queue has a first-in, first-out queue, and a list of objects for reuse.
package queue

// Queue is a first-in, first-out queue whose array is reused. The zero value is an empty
// queue. It is not safe for concurrent use.
type Queue[T any] struct {
	items []T
	head  int
}

// Push appends v.
func (q *Queue[T]) Push(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// First returns the oldest element. The queue must not be empty.
func (q *Queue[T]) First() T { return q.items[q.head] }

// Pop removes the oldest element. The queue must not be empty.
func (q *Queue[T]) Pop() {
	var zero T
	q.items[q.head] = zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}
