package transaction

import "iter"

// openCalls are the Calls of a side that have no Reply, by XID. Most connections
// have one at a time, and floods of connections one each.
type openCalls struct {
	one  *txn
	many map[uint32]*txn // all of them, once there were two; nil before
}

// len is how many there are.
func (o *openCalls) len() int {
	if o.one != nil {
		return 1
	}
	return len(o.many)
}

// get is the one with an XID, nil when there is none.
func (o *openCalls) get(xid uint32) *txn {
	if x := o.one; x != nil {
		if uint32(x.rec.XID) == xid {
			return x
		}
		return nil
	}
	return o.many[xid]
}

// only is the one that there is, nil where there are more or none.
func (o *openCalls) only() *txn {
	if len(o.many) == 1 {
		for _, x := range o.many {
			return x
		}
	}
	return o.one
}

// add puts one in, in the place of one with the same XID.
func (o *openCalls) add(x *txn) {
	if o.len() == 0 {
		o.one = x
		return
	}
	if o.many == nil {
		o.many = map[uint32]*txn{}
	}
	if first := o.one; first != nil {
		o.one = nil
		o.many[uint32(first.rec.XID)] = first
	}
	o.many[uint32(x.rec.XID)] = x
}

// remove takes one out.
func (o *openCalls) remove(x *txn) {
	if o.one == x {
		o.one = nil
	} else if xid := uint32(x.rec.XID); o.many[xid] == x {
		delete(o.many, xid)
	}
}

// all are they, in no order.
func (o *openCalls) all() iter.Seq[*txn] {
	return func(yield func(*txn) bool) {
		if o.one != nil {
			yield(o.one)
			return
		}
		for _, x := range o.many {
			if !yield(x) {
				return
			}
		}
	}
}

// clear makes it ready for another connection.
func (o *openCalls) clear(most int32) {
	if o.one = nil; most > fewCalls {
		o.many = nil // maps do not shrink
	}
	clear(o.many)
}

// fewCalls is how many open Calls a map is kept for that had no more.
const fewCalls = 8
