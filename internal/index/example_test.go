package index_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/internal/index"
)

// This example lists the three slowest RPCs of a capture. It looks at all rows, and reads only three
// whole records.
func Example() {
	source, err := capture.Open("../../samples/rocev2-callback41.pcap")
	if err != nil {
		log.Fatal(err)
	}
	defer source.Close()
	ctx := context.Background()
	x := index.New(index.Options{Memory: 64 << 20})
	defer x.Close()
	if _, err := x.Run(ctx, source, dissect.Options{}); err != nil {
		log.Fatal(err)
	}

	reader := x.Reader()
	defer reader.Close()
	type slow struct{ number, latency int64 }
	var all []slow
	from, to := x.Bounds()
	reader.Rows(ctx, from, to, func(n int64, row *index.Row) bool {
		all = append(all, slow{n, row.LatencyNS})
		return true
	})
	slices.SortFunc(all, func(a, b slow) int { return int(b.latency - a.latency) })
	for _, s := range all[:3] {
		t, err := reader.Transaction(s.number)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.XID, t.Operation.Or("?"), t.LatencyNS.Or(0))
	}
	// Output:
	// 0x57a94e54 DESTROY_CLIENTID 124244000
	// 0x41a94e54 RECLAIM_COMPLETE 103043000
	// 0xe9d270af RECLAIM_COMPLETE 98270000
}
