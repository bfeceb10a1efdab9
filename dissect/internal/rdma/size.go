package rdma

// What a connection takes of the memory limit. Each part tells how much it takes now, and [Conn.settle] charges the
// difference to the budget: a few packets after one of it, and after each eviction.

// Costs of objects in bytes of the budget: their memory, and their share of maps.
const (
	connCost      = 4096
	flowCost      = 1024
	findingCost   = 512
	opCost        = 360
	entryCost     = 40
	heldCost      = 96
	heldCopyCost  = 136
	damagedCost   = 48
	spanCost      = 16
	recordsCost   = 96
	lifeCost      = 144
	operationCost = 480
	stallCost     = 160
)

// settleAfter is the number of packets after which the connections that they belong to are charged: what they take meanwhile is little.
const settleAfter = 16

// charges are the connections whose memory is to be charged, because they had packets.
type charges struct {
	conns   []*Conn
	packets int
}

// note notes a packet of a connection.
func (s *charges) note(c *Conn) {
	if !c.isNoted {
		c.isNoted = true
		s.conns = append(s.conns, c)
	}
	if s.packets++; s.packets < settleAfter {
		return
	}
	for i, c := range s.conns {
		c.isNoted = false
		c.settle()
		s.conns[i] = nil
	}
	s.conns, s.packets = s.conns[:0], 0
}

// settle charges what the connection takes more than when it was called before, or less. The share of a connection that
// is finished is closed.
func (c *Conn) settle() {
	if c.retired {
		return
	}
	if size := c.size(); size != c.charged {
		c.share.Charge(size - c.charged)
		c.charged = size
	}
}

// takeOver charges what was charged to a connection that became a part of this one, also by its follower.
func (c *Conn) takeOver(bytes, charged int64) {
	c.share.Charge(bytes)
	c.charged += charged
}

// size returns the memory of the connection, without what its follower charges.
func (c *Conn) size() int64 {
	n := connCost + findingCost*int64(len(c.waiting)) + operationCost*int64(len(c.records)) + c.operations
	for f := range c.known {
		n += f.size()
	}
	return n
}

// holds counts memory of operations and of their records; a negative number is freed.
func (c *Conn) holds(bytes int64) { c.operations += bytes }

// size returns the memory of the flow, without its operations.
func (f *flow) size() int64 {
	n := flowCost + entryCost*int64(f.ops.len()) + int64(cap(f.parts.buffer)) + f.half.size() + f.way.Bytes() + f.heldCopies*heldCopyCost
	return n + sizeOfWindow(f.waiting()) + sizeOfWindow(f.absent) + f.sent.Bytes()
}

// sizeOfWindow returns the memory of the items that wait.
func sizeOfWindow(w *window) int64 {
	if w.Empty() {
		return 0
	}
	return int64(w.Bytes()) + heldCost*int64(w.Len())
}

func (q *queuePair) size() int64    { return q.flow.order.Size() + damagedCost*int64(len(q.damaged)) }
func (w *stream) size() int64       { return w.flow.order.Size() + w.frames.size() }
func (m *mpa) size() int64          { return int64(cap(m.partial)) }
func (r *records) size() int64      { return recordsCost }
func (d *datagramFlow) size() int64 { return 0 }
