package dissect_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// Without causes and shares, transactions are the same in all else.
func TestNoCause(t *testing.T) {
	read := func(o dissect.Options) (list []*record.Transaction) {
		h := dissect.Handler{Transaction: func(r *record.Transaction) error {
			list = append(list, r.Clone())
			return nil
		}}
		if _, err := dissect.New(h, o).Run(context.Background(), testkit.Open(t, "../testdata/captures/lab-slowserver41.pcap.zst")); err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, o := range []dissect.Options{{}, {Ahead: true}, {Memory: 64 << 10}} {
		all, causes := read(o), 0
		o.NoShares = true
		without := read(o)
		if len(all) != len(without) {
			t.Fatalf("%d transactions with causes, %d without", len(all), len(without))
		}
		for i, r := range all {
			if without[i].Cause.Known() || without[i].Shares.Known() {
				t.Errorf("RPC %d has a cause or shares", i)
			}
			if r.Cause.Known() {
				causes++
			}
			if r.Cause, r.Shares = (record.Opt[record.Cause]{}), (record.Opt[record.Shares]{}); !reflect.DeepEqual(r, without[i]) {
				t.Errorf("RPC %d: %+v, without causes %+v", i, r, without[i])
			}
		}
		if causes == 0 {
			t.Error("no RPC has a cause")
		}
	}
}
