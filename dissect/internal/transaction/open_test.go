package transaction

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestOpenCalls: they are found by XID, whether there is one or there are more.
func TestOpenCalls(t *testing.T) {
	call := func(xid uint32) *txn { return &txn{rec: facts{XID: record.Hex32(xid)}} }
	var o openCalls
	a, b, again := call(1), call(2), call(2)
	for _, step := range []struct {
		name string
		do   func()
		len  int
		one  *txn // under XID 1
		two  *txn // under XID 2
		only *txn
	}{
		{"none", func() {}, 0, nil, nil, nil},
		{"the first", func() { o.add(a) }, 1, a, nil, a},
		{"a second", func() { o.add(b) }, 2, a, b, nil},
		{"its XID again", func() { o.add(again) }, 2, a, again, nil},
		{"without who lost its place", func() { o.remove(b) }, 2, a, again, nil},
		{"without the first", func() { o.remove(a) }, 1, nil, again, again},
		{"without the last", func() { o.remove(again) }, 0, nil, nil, nil},
		{"one again", func() { o.add(b) }, 1, nil, b, b},
		{"cleared", func() { o.clear(2) }, 0, nil, nil, nil},
	} {
		step.do()
		n := 0
		for x := range o.all() {
			if o.get(uint32(x.rec.XID)) != x {
				t.Errorf("%s: XID %d is not found", step.name, x.rec.XID)
			}
			n++
		}
		if o.len() != step.len || n != step.len || o.get(1) != step.one || o.get(2) != step.two || o.only() != step.only {
			t.Errorf("%s: %d, %d of them, only %p", step.name, o.len(), n, o.only())
		}
	}
}
