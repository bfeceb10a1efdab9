package transaction

// queue is first in, first out, in one array that is used again.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(v T) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

func (q *queue[T]) len() int { return len(q.items) - q.head }

func (q *queue[T]) first() T { return q.items[q.head] }

func (q *queue[T]) pop() {
	var zero T
	q.items[q.head] = zero
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}
