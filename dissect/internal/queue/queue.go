// Package queue has a first-in, first-out queue, and a list of objects for reuse.
package queue

// FreeList keeps objects that are no longer used, so that the next ones need no allocation. The zero
// value is empty. It is not safe for concurrent use.
type FreeList[T any] struct{ objects []*T }

// Take returns an object that was kept, with the contents that it had, or nil if there is none.
func (s *FreeList[T]) Take() *T {
	n := len(s.objects) - 1
	if n < 0 {
		return nil
	}
	v := s.objects[n]
	s.objects = s.objects[:n]
	return v
}

// Keep keeps an object unless there are limit objects already. Nothing may refer to it any more.
func (s *FreeList[T]) Keep(v *T, limit int) {
	if len(s.objects) < limit {
		s.objects = append(s.objects, v)
	}
}

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
