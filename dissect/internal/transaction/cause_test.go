package transaction_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// Without the fields that are not used, transactions are the same in all else.
func TestUnused(t *testing.T) {
	read := func(o dissect.Options) (list []*record.Transaction) {
		h := dissect.Handler{Transaction: func(r *record.Transaction) error {
			list = append(list, r.Clone())
			return nil
		}}
		if _, err := dissect.New(h, o).Run(context.Background(), testkit.Open(t, captures+"lab-slowserver41.pcap.zst")); err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, o := range []dissect.Options{{}, {Ahead: true}, {Memory: 64 << 10}} {
		all, causes := read(o), 0
		o.Unused = dissect.Shares | dissect.Retries
		without := read(o)
		if len(all) != len(without) {
			t.Fatalf("%d transactions with causes, %d without", len(all), len(without))
		}
		for i, r := range all {
			if without[i].Cause.Known() || without[i].Shares.Known() || without[i].Meanwhile.Known() || without[i].RetryOf.Known() {
				t.Errorf("RPC %d has fields that are not used", i)
			}
			if r.Cause.Known() {
				causes++
			}
			r.Cause, r.Shares, r.Meanwhile, r.RetryOf = record.Opt[record.Cause]{}, record.Opt[record.Shares]{}, record.Opt[record.Meanwhile]{}, record.Opt[int64]{}
			if !reflect.DeepEqual(r, without[i]) {
				t.Errorf("RPC %d: %+v, without the fields %+v", i, r, without[i])
			}
		}
		if causes == 0 {
			t.Error("no RPC has a cause")
		}
	}
}
