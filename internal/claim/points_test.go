package claim_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// recordings are captures of the same traffic at several points: at the client, at the server, and perhaps at a switch between
// them.
var recordings = map[string][]string{
	"twoclock42": {"captures/ends-twoclock42-client", "ends/twoclock42-server"},
	"stormall42": {"captures/ends-stormall42-client", "captures/ends-stormall42-server"},
	"burst41":    {"ends/roce-burst41-client", "ends/roce-burst41-server", "ends/roce-burst41-switch"},
	"linkdown3":  {"ends/roce-linkdown3-client", "ends/roce-linkdown3-server", "ends/roce-linkdown3-switch"},
	"oneway41":   {"ends/roce-oneway41-client", "ends/roce-oneway41-server"},
	"outage41":   {"ends/roce-outage41-client", "ends/roce-outage41-server"},
	"reorder42":  {"ends/roce-reorder42-client", "ends/roce-reorder42-server", "ends/roce-reorder42-switch"},
	"twosided":   {"ends/iw-twosided-client", "ends/iw-twosided-server"},
}

// combinations returns all sets of the points of a recording: files by the first letters of their points, in the order client,
// switch, server.
func combinations(files []string) map[string][]string {
	list := map[string][]string{}
	for set := 1; set < 1<<len(files); set++ {
		name, paths := "", []string(nil)
		for _, i := range []int{0, 2, 1} {
			if i < len(files) && set>>i&1 != 0 {
				name += []string{"c", "s", "w"}[i]
				paths = append(paths, "../../testdata/"+files[i]+".pcap.zst")
			}
		}
		list[name] = paths
	}
	return list
}

// shown is what captures show.
type shown struct {
	rpcs     []*record.Transaction
	findings []*record.Finding
}

// show returns what captures show together.
func show(t *testing.T, paths []string) (all shown) {
	t.Helper()
	var source capture.Source
	var names []string
	if len(paths) == 1 {
		source = open(t, paths[0])
	} else {
		source, names = joined(t, paths)
	}
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			all.rpcs = append(all.rpcs, r.Clone())
			return nil
		},
		Finding: func(r *record.Finding) error {
			all.findings = append(all.findings, r.Clone())
			return nil
		},
	}, dissect.Options{Points: names})
	if _, err := d.Run(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	return all
}

// joined opens captures at several points as one capture, and returns the names of the points.
func joined(t *testing.T, paths []string) (source capture.Source, names []string) {
	t.Helper()
	var files []points.File
	for _, path := range paths {
		files = append(files, points.File{Path: path, Name: filepath.Base(path)})
	}
	plan, err := points.Recognize(t.Context(), files, points.Options{Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, p := range s.Points() {
		names = append(names, p.Name)
	}
	return s, names
}

// TestStallsInside: the stalls of an RPC lie between its Call and its Reply, at any points. Only that of a Call that waits for a
// credit comes before it.
func TestStallsInside(t *testing.T) {
	rpcs, stalls := 0, 0
	all := map[string][]string{}
	for name, files := range recordings {
		all[name] = files
	}
	captures, err := filepath.Glob("../../testdata/captures/*.pcap.zst")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range testkit.Short(t, captures) {
		if strings.Contains(path, "derived-cut") { // it ends within a packet
			continue
		}
		name := strings.SplitN(filepath.Base(path), ".", 2)[0]
		all[name] = []string{"captures/" + strings.TrimSuffix(filepath.Base(path), ".pcap.zst")}
	}
	for recording, files := range all {
		for at, paths := range combinations(files) {
			for _, r := range show(t, paths).rpcs {
				latency, known := r.LatencyNS.Get()
				if !known {
					continue
				}
				rpcs++
				begin := r.Call.FirstSent.Or(r.Call.Time)
				end := begin + record.Time(latency)
				for _, w := range r.Waits {
					if w.Reason == record.CreditLimit {
						continue
					}
					if stalls++; w.From < begin || w.To > end || w.NS > latency {
						t.Errorf("%s %s %v: %d ns of %s from %d to %d of a latency of %d ns", recording, at, r.XID, w.NS, w.Reason, w.From-begin, w.To-begin, latency)
					}
				}
			}
		}
	}
	if rpcs < 7000 || stalls < 700 {
		t.Errorf("%d stalls of %d RPCs, want 700 of 7000", stalls, rpcs)
	}
}

// TestMorePoints: another point takes no finding away. It may show that a finding begins with another RPC.
func TestMorePoints(t *testing.T) {
	timeouts := 0
	for recording, files := range recordings {
		found := map[string]map[string]int{}
		for at, paths := range combinations(files) {
			found[at] = map[string]int{}
			for _, f := range show(t, paths).findings {
				found[at][f.Rule]++
			}
			timeouts += found[at]["retransmission-timeout"]
		}
		for few, rules := range found {
			for many := range found {
				if strings.ContainsFunc(few, func(point rune) bool { return !strings.ContainsRune(many, point) }) {
					continue
				}
				for rule, n := range rules {
					if with := found[many][rule]; with < n {
						t.Errorf("%s: %s is found %d times at %s, and %d times at %s", recording, rule, n, few, with, many)
					}
				}
			}
		}
	}
	if timeouts < 40 {
		t.Errorf("%d timeouts, want 40", timeouts)
	}
}
