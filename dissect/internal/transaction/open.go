package transaction

import "github.com/rdmadump/rdmadump/dissect/record"

// openCalls are the Calls of a side that have no Reply yet, by XID.
type openCalls map[uint32]*txn

// only returns the outstanding Call if there is exactly one, and nil otherwise.
func (o openCalls) only() *txn {
	if len(o) == 1 {
		for _, x := range o {
			return x
		}
	}
	return nil
}

// has reports whether a Call with this XID is outstanding.
func (o openCalls) has(xid record.Opt[uint32]) bool {
	id, known := xid.Get()
	return known && o[id] != nil
}

// add adds a Call, which replaces a Call with the same XID.
func (o *openCalls) add(x *txn) {
	if *o == nil {
		*o = openCalls{}
	}
	(*o)[uint32(x.rec.XID)] = x
}

// remove removes a Call if no other Call has replaced it.
func (o openCalls) remove(x *txn) {
	if xid := uint32(x.rec.XID); o[xid] == x {
		delete(o, xid)
	}
}
