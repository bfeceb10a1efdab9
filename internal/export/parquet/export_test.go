package parquet

// XIDs are the XIDs of a connection.
type XIDs struct{ x xids }

// Use takes a use of an XID.
func (x *XIDs) Use(xid uint32) (int, bool) { return x.x.use(xid) }

// Forgotten returns the fields of records that have no column and are not left out.
func Forgotten() []string { return forgotten }
