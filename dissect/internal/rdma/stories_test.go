package rdma_test

import (
	"cmp"
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
)

var update = flag.Bool("update", false, "rewrite testdata/stories.json")

// stories are captures whose records TestStories compares: as they are, and damaged. Those of several points are joined.
var stories = []string{
	"captures/rocev2-errors", "captures/lab-iwarperrors", "captures/rocev2-callback41", "captures/lab-iwarpcallback41", "captures/lab-iwarploss41",
	"captures/ends-stormall42-client", "captures/lab-krb5", "captures/derived-snaplen128-callback41", "other/lab-tcprecall40", "other/rocev2-noid-nak", "other/rocev2-netdup", "other/rocev2-nvmeloss", "ends/roce-linkdown3-client",
	"captures/ends-stormall42-client captures/ends-stormall42-server",
	"ends/roce-burst41-client ends/roce-burst41-switch ends/roce-burst41-server",
	"ends/roce-reorder42-client ends/roce-reorder42-server", "ends/roce-linkdown3-client ends/roce-linkdown3-server", "ends/iw-twosided-client ends/iw-twosided-server",
}

// tell returns the digests of what is said of a story.
func tell(t *testing.T, story string, seed uint64, damages ...string) map[string]string {
	t.Helper()
	names := strings.Fields(story)
	if len(names) == 1 {
		frames, _ := testkit.Frames(t, "../../../testdata/"+story+".pcap.zst")
		s, d := look.Collect(dissect.Options{})
		for _, f := range testkit.Apply(seed, frames, damages...) {
			d.Frame(&f)
		}
		s.Summary, _ = d.Finish()
		return s.Digests()
	}
	var files []points.File
	for _, name := range names {
		files = append(files, points.File{Path: "../../../testdata/" + name + ".pcap.zst", Name: name})
	}
	plan, err := points.Recognize(t.Context(), files, points.Options{Memory: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	source, err := plan.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	s, d := look.Collect(dissect.Options{Points: names})
	if s.Summary, err = d.Run(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return s.Digests()
}

// TestStories: every value of the records of captures is what it was, also if packets are missing, come in another order, or twice.
// scripts/same shows what the values of two builds are.
func TestStories(t *testing.T) {
	told := map[string]map[string]string{}
	for _, story := range stories {
		for seed, damages := range [][]string{nil, {"drop"}, {"reorder"}, {"late", "drop", "duplicate"}} {
			if seed == 0 || !strings.Contains(story, " ") {
				told[story+": "+cmp.Or(strings.Join(damages, ", "), "whole")] = tell(t, story, uint64(seed), damages...)
			}
		}
	}
	look.Compare(t, "testdata/stories.json", *update, told)
}
