package claim_test

import (
	"context"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// pairs are recordings at both ends of the same traffic: at the client and at the server. A file in the folder captures has
// the other one in the folder ends.
var pairs = [][2]string{
	{"captures/ends-twoclock42-client", "ends/twoclock42-server"},
	{"captures/ends-stormall42-client", "captures/ends-stormall42-server"},
	{"ends/roce-burst41-client", "ends/roce-burst41-server"},
	{"ends/roce-linkdown3-client", "ends/roce-linkdown3-server"},
	{"ends/roce-oneway41-client", "ends/roce-oneway41-server"},
	{"ends/roce-outage41-client", "ends/roce-outage41-server"},
	{"ends/roce-reorder42-client", "ends/roce-reorder42-server"},
	{"ends/iw-twosided-client", "ends/iw-twosided-server"},
}

// falseTruths are RPCs whose times at both ends are wrong: the copy of the Reply that left the server first was lost, and the
// captures at both ends name the later one.
var falseTruths = map[record.Hex32]bool{0xffd4acd1: true}

// clocks is the largest error of the clocks of a pair, in nanoseconds.
const clocks = 500_000

// rpcKey identifies an RPC in the recordings of both ends.
type rpcKey struct {
	xid       record.Hex32
	direction record.Direction
}

// rpcs returns the RPCs of the frames of a source, without those whose XID was used twice.
func rpcs(t *testing.T, source capture.Source, o dissect.Options) map[rpcKey]*record.Transaction {
	t.Helper()
	list, twice := map[rpcKey]*record.Transaction{}, map[rpcKey]bool{}
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		key := rpcKey{r.XID, r.Direction}
		twice[key] = list[key] != nil
		list[key] = r.Clone()
		return nil
	}}, o)
	if _, err := d.Run(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	for key, is := range twice {
		if is {
			delete(list, key)
		}
	}
	return list
}

// open opens a capture.
func open(t *testing.T, path string) capture.Source {
	t.Helper()
	source, err := capture.OpenAll([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	return source
}

// bothEnds returns the RPCs of a pair, with the times at both ends.
func bothEnds(t *testing.T, paths [2]string) map[rpcKey]*record.Transaction {
	t.Helper()
	source, _ := joined(t, paths[:])
	return rpcs(t, source, dissect.Options{Points: []string{"client", "server"}})
}

// tally counts the RPCs of single files that were compared with both ends.
type tally struct {
	compared, outside int // RPCs, and those of which a time is outside of its bounds
	sided, wrong      int // those whose side is known, and those of which another side took most
	slow, exact       int // at the server's end: RPCs of 1 ms or more, and those with an exact time of the server, or a side
}

// TestEnds compares the sentences and bounds from the file of each end with the times at both ends. What is known of a side holds; and
// it is known so often that silence does not pass for a proof.
func TestEnds(t *testing.T) {
	var n tally
	for _, pair := range pairs {
		paths := [2]string{"../../testdata/" + pair[0] + ".pcap.zst", "../../testdata/" + pair[1] + ".pcap.zst"}
		truth := bothEnds(t, paths)
		for end, place := range []record.Place{record.AtClient, record.AtServer} {
			for _, at := range []record.Place{"", place} {
				for key, r := range rpcs(t, open(t, paths[end]), dissect.Options{At: record.Position{Place: at}}) {
					if b := truth[key]; b != nil && !falseTruths[key.xid] {
						n.compare(t, r, b, place)
					}
				}
			}
		}
	}
	t.Logf("%+v", n)
	if n.compared < 4500 || n.outside*200 > n.compared {
		t.Errorf("%d of %d RPCs have times outside of their bounds, and half a percent of 4500 or more may", n.outside, n.compared)
	}
	if n.sided < 1000 || n.wrong > 0 {
		t.Errorf("%d of %d sides are wrong", n.wrong, n.sided)
	}
	if n.exact*10 < n.slow*9 {
		t.Errorf("%d of %d RPCs have an exact time of the server at its end; nine of ten is the least", n.exact, n.slow)
	}
}

// compare compares an RPC in the file of one end with the times at both ends.
func (n *tally) compare(t *testing.T, r, truth *record.Transaction, end record.Place) {
	shares, known := r.Shares.Get()
	split, split2 := truth.Split.Get()
	if !known || !split2 {
		return
	}
	latency := r.LatencyNS.Or(0)
	network := split.RequestNetworkNS + split.ReplyNetworkNS
	times := map[record.Side]int64{record.SideServer: split.ServerNS, record.SideClient: split.ClientNS, record.SideNetwork: network}
	inside := func(b record.Bounds, ns int64) bool { return b.Min-clocks <= ns && ns <= b.Max+clocks }
	holds := inside(shares.ServerNS, split.ServerNS) && inside(shares.ClientNS, split.ClientNS)
	if end == record.AtClient { // at the server, what passed before the Call arrived is no part of the latency
		holds = holds && inside(shares.NetworkNS, network) && inside(shares.ToServerNS, split.RequestNetworkNS)
	}
	if n.compared++; !holds {
		n.outside++
		t.Logf("%v at the %s (%s): %+v, but both ends show %+v", r.XID, end, shares.Point, shares, split)
	}
	cause := r.Cause.Or(record.Cause{})
	if side, known := cause.Side.Get(); known {
		n.sided++
		if whole := min(latency, truth.LatencyNS.Or(0)); 2*times[side] < whole-4*clocks {
			n.wrong++
			t.Errorf("%v at the %s: %q, but both ends show %+v", r.XID, end, cause.Text, split)
		}
	}
	if shares.Point == record.AtServer && latency >= 1e6 {
		n.slow++
		if b := shares.ServerNS; b.Max-b.Min <= max(latency/20, clocks) || cause.Side.Known() {
			n.exact++
		}
	}
}

// TestTimestamps: in captures of iWARP that were not taken at the server, TCP timestamps prove a part of the server for a fifth
// of the RPCs of 20 ms or more, and most of the latency for some.
func TestTimestamps(t *testing.T) {
	slow, stamped, most := 0, 0, 0
	for _, name := range []string{"ends/iw-twosided-client", "captures/iwarp-nfs41", "captures/lab-iwarpcallback41", "captures/lab-iwarpdata3", "captures/lab-iwarploss41"} {
		for _, r := range rpcs(t, open(t, "../../testdata/"+name+".pcap.zst"), dissect.Options{}) {
			shares := r.Shares.Or(record.Shares{})
			if r.LatencyNS.Or(0) < 20e6 {
				continue
			}
			if slow++; shares.Find(record.ProofTimestamp) != nil {
				stamped++
			}
			if c := r.Cause.Or(record.Cause{}); c.Side == record.Some(record.SideServer) {
				most++
			}
		}
	}
	if t.Logf("%d of %d RPCs, of %d most", stamped, slow, most); slow < 90 || stamped*5 < slow || most < 8 {
		t.Errorf("TCP timestamps prove a part of the server for %d of %d RPCs, and most of the latency for %d", stamped, slow, most)
	}
}
