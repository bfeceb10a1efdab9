package rdma_test

import (
	"cmp"
	"flag"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
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

// TestStories: every value of the records of captures is what it was, also if packets are missing, come in another order, or twice.
// scripts/same shows what the values of two builds are.
func TestStories(t *testing.T) {
	told := map[string]map[string]string{}
	for _, story := range stories {
		for seed, damages := range [][]string{nil, {"drop"}, {"reorder"}, {"late", "drop", "duplicate"}} {
			if seed == 0 || !strings.Contains(story, " ") {
				told[story+": "+cmp.Or(strings.Join(damages, ", "), "whole")] = look.Tell(t, story, dissect.Options{}, uint64(seed), damages...)
			}
		}
	}
	look.Compare(t, "testdata/stories.json", *update, told)
}
