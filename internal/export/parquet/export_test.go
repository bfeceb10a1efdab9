package parquet

import (
	"errors"
	"os"
	"testing"
)

// XIDs are the XIDs of a connection.
type XIDs struct{ x xids }

// Use takes a use of an XID.
func (x *XIDs) Use(xid uint32) (int, bool) { return x.x.use(xid) }

// FailRenames makes all renames fail after some that succeed, and returns a function that ends that.
func FailRenames(after int) (end func()) {
	rename = func(from, to string) error {
		if after--; after < 0 {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: errors.New("no space")}
		}
		return os.Rename(from, to)
	}
	return func() { rename = os.Rename }
}

// Lock locks a file, as the process does that writes it.
func Lock(t *testing.T, path string) (unlock func()) {
	f, err := os.Open(path)
	if err != nil || !lock(f) {
		t.Fatal("no lock", err)
	}
	return func() { f.Close() }
}
