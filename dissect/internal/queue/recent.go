package queue

import "slices"

// Recent remembers the last 64 XIDs that were added. A nil Recent has none.
type Recent struct {
	xids [64]uint32
	n    int
}

// Add adds an XID.
func (r *Recent) Add(xid uint32) {
	r.xids[r.n%len(r.xids)] = xid
	r.n++
}

// Has reports whether an XID is among them.
func (r *Recent) Has(xid uint32) bool {
	if r == nil {
		return false
	}
	return slices.Contains(r.xids[:min(r.n, len(r.xids))], xid)
}
