package points

// ring has the frames that are not forgotten yet. Their positions count from the first frame of all.
type ring struct {
	entries    []entry // the length is a power of two
	head, tail uint64  // positions of the oldest frame, and of the next one
}

// push adds a frame. The entry is valid until the next call.
func (r *ring) push() (at uint64, e *entry) {
	if n := uint64(len(r.entries)); r.tail-r.head == n {
		grown := make([]entry, max(2*n, 1024))
		for i := r.head; i < r.tail; i++ {
			grown[i&uint64(len(grown)-1)] = r.entries[i&(n-1)]
		}
		r.entries = grown
	}
	at = r.tail
	r.tail++
	return at, r.at(at)
}

// at returns the entry of a position.
func (r *ring) at(i uint64) *entry { return &r.entries[i&uint64(len(r.entries)-1)] }

// has reports whether a position is not forgotten.
func (r *ring) has(i uint64) bool { return i >= r.head && i < r.tail }

func (r *ring) len() int { return int(r.tail - r.head) }

// queue is a first-in-first-out queue.
type queue[T any] struct {
	items []T
	head  int
}

func (q *queue[T]) push(v T) {
	if q.head > 1024 && 2*q.head >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

func (q *queue[T]) len() int  { return len(q.items) - q.head }
func (q *queue[T]) first() *T { return &q.items[q.head] }

func (q *queue[T]) pop() T {
	v := q.items[q.head]
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return v
}
