package transaction

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestOpenCalls: a Call that was replaced by a Call with the same XID is not removed twice,
// and only returns a Call only if no other is outstanding.
func TestOpenCalls(t *testing.T) {
	call := func(xid uint32) *txn { return &txn{rec: story{XID: record.Hex32(xid)}} }
	var o openCalls
	a, b, replacement := call(1), call(2), call(2)
	for _, step := range []struct {
		name string
		do   func()
		len  int
		one  *txn // with XID 1
		two  *txn // with XID 2
		only *txn
	}{
		{"none", func() {}, 0, nil, nil, nil},
		{"the first", func() { o.add(a) }, 1, a, nil, a},
		{"a second", func() { o.add(b) }, 2, a, b, nil},
		{"another with the XID of the second", func() { o.add(replacement) }, 2, a, replacement, nil},
		{"the second, which was replaced, is removed", func() { o.remove(b) }, 2, a, replacement, nil},
		{"the first is removed", func() { o.remove(a) }, 1, nil, replacement, replacement},
		{"the last is removed", func() { o.remove(replacement) }, 0, nil, nil, nil},
	} {
		step.do()
		if len(o) != step.len || o[1] != step.one || o[2] != step.two || o.only() != step.only {
			t.Errorf("%s: %d Calls, only %p", step.name, len(o), o.only())
		}
	}
}
