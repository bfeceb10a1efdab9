package parquet

// XIDs are the XIDs of a connection.
type XIDs struct{ x xids }

// Use takes a use of an XID.
func (x *XIDs) Use(xid uint32) (int, bool) { return x.x.use(xid) }
