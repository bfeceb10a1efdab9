package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
)

// currentPacket is the packet that the tracker takes, and the verdict on it so far.
type currentPacket struct {
	now       record.Stamp
	heldStamp record.Stamp // when the held packet that is now accepted was captured; packet number 0 if the current one was not held
	verdict   PacketVerdict
}

// mark adds marks to the verdict on the current packet. The first operation that is
// named stays.
func (cur *currentPacket) mark(o *Operation, m record.Marks) {
	if cur.verdict.Op == nil {
		cur.verdict.Op = o
	}
	cur.verdict.Mark |= m
}

// noteBytes notes the bytes of the operation's memory that the current packet moves or
// requests. Several adjacent ranges become one; otherwise the first counts.
func (cur *currentPacket) noteBytes(o *Operation, from uint64, n int64) {
	p := &cur.verdict
	switch {
	case p.Op != nil && p.Op != o || n <= 0:
	case p.From == p.To:
		p.From, p.To = from, from+uint64(n)
	case p.To == from:
		p.To += uint64(n)
	}
}

// acceptedBadICRC reports whether the current packet has a bad ICRC and was accepted
// nevertheless.
func (cur *currentPacket) acceptedBadICRC() bool { return cur.verdict.Mark&record.BadICRC != 0 }
