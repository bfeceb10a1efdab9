package index_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/points"
)

// TestCloserPoints: the packets of an RPC at two capture points are found, although both files have packets with the
// same numbers.
func TestCloserPoints(t *testing.T) {
	const ends = "../../testdata/captures/ends-stormall42-"
	plan, err := points.Recognize(t.Context(), []points.File{{Path: ends + "client.pcap.zst", Name: "client"}, {Path: ends + "server.pcap.zst", Name: "server"}}, points.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := func() *points.Source {
		source, err := plan.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { source.Close() })
		return source
	}
	o := dissect.Options{Points: []string{"client", "server"}}
	var rpc *record.Transaction
	if _, err := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		if r.XID == 0xc02599c4 {
			rpc = r.Clone()
		}
		return nil
	}}, o).Run(t.Context(), open()); err != nil || rpc == nil {
		t.Fatal(rpc, err)
	}
	at := map[string]int{}
	c := index.Closer{
		ID: rpc.ID, XIDs: []record.Hex32{rpc.XID}, First: 430, Last: 458, Until: rpc.Timeline[len(rpc.Timeline)-1].Time,
		Transaction: func(*record.Transaction) {},
		Packet: func(p *record.Packet) {
			if p.Transaction == record.Some(rpc.ID) {
				at[p.Path.Point]++
			}
		},
	}
	if err := c.Look(t.Context(), open(), o); err != nil {
		t.Fatal(err)
	}
	if at["client"] < 10 || at["server"] < 3 {
		t.Errorf("packets by point: %v", at)
	}
}
