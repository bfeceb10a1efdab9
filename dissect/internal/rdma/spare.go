package rdma

import "github.com/rdmadump/rdmadump/dissect/internal/queue"

// Connections that are over, and what they waited in until then.

// waiting is connections whose time is to come. A connection that stands in one is
// not used again.
type waiting struct{ queue.Queue[*Conn] }

func (w *waiting) push(c *Conn) {
	c.waits++
	w.Push(c)
}

// pop takes the first out, which is spare when it is over.
func (w *waiting) pop(s *spare) {
	c := w.First()
	w.Pop()
	if c.waits--; c.retired {
		s.retire(c)
	}
}

// spare is connections and halves that are over, for the next: floods of new
// connections would otherwise be mostly a matter of allocation. What is retired
// while a packet is taken may still be spoken of until the next tick.
type spare struct {
	conns, retired []*Conn
	halves         []*half
}

// maxSpare is how many connections, and halves, are kept for their next use.
const maxSpare = 256

// retire keeps a connection that is over, unless something still waits for it.
func (s *spare) retire(c *Conn) {
	if c.waits == 0 && len(s.conns)+len(s.retired) < maxSpare {
		s.retired = append(s.retired, c)
	}
}

// tick makes what is retired ready for use.
func (s *spare) tick() {
	for _, c := range s.retired {
		for _, h := range c.halves {
			if h != nil && len(s.halves) < maxSpare {
				s.halves = append(s.halves, h)
			}
		}
		c.halves = [2]*half{}
	}
	s.conns = append(s.conns, s.retired...)
	clear(s.retired)
	s.retired = s.retired[:0]
}

// What is made is written to before it is read, nil checks included: the kernel gives
// a page that is read first twice, and interrupts all cores for the second.

// conn is an empty connection, with the follower that it had, to be used again.
func (s *spare) conn() *Conn {
	c := queue.Last(&s.conns)
	if c == nil {
		return &Conn{client: -1}
	}
	follower := c.follower
	*c = Conn{} // in its place, and not made elsewhere and copied
	c.follower, c.client = follower, -1
	return c
}

// half is an empty half of a connection.
func (s *spare) half(c *Conn) *half {
	h := queue.Last(&s.halves)
	if h == nil {
		return &half{conn: c}
	}
	entries := h.ops.entries[:0]
	if cap(entries) > 2*keepOver {
		entries = nil
	}
	*h = half{}
	h.conn, h.ops.entries = c, entries
	return h
}
