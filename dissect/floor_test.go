package dissect_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/synth/cases"
)

// floors has, for each of the harms, the number of rules of which a violation is still reported. A
// program that reports nothing is silent, but is of no use.
var floors = map[string]int{
	"whole":                           78,
	"cut to 64 bytes":                 4,
	"cut to 96 bytes":                 31,
	"cut to 100 bytes":                34,
	"cut to 128 bytes":                65,
	"cut to 256 bytes":                77,
	"joined after 1%":                 78,
	"joined after 25%":                76,
	"joined in the middle":            54,
	"joined after 90%":                12,
	"left in the middle":              17,
	"one frame in 100 lost":           78,
	"one frame in 10 lost":            78,
	"one frame in 5 lost":             38,
	"a hundred lost in one place":     6,
	"one way":                         13,
	"the other way":                   35,
	"doubled":                         78,
	"some doubled":                    78,
	"bits flipped in one frame of 50": 78,
	"bits flipped in one frame of 5":  70,
	"a bit flipped in one frame of 50 after a hundred": 78,
	"neighbours swapped":                              78,
	"one direction 1 ms late":                         38,
	"the other direction 1 ms late":                   65,
	"one direction 10 ms late":                        38,
	"the other direction 10 ms late":                  65,
	"one direction with jitter of 5 ms":               38,
	"the other direction with jitter of 5 ms":         65,
	"displaced by up to five places":                  76,
	"in batches of 8, one direction after the other":  38,
	"in batches of 32, one direction after the other": 37,
	"one direction begins late":                       73,
	"one direction ends early":                        36,
	"one frame in ten":                                4,
	"each frame truncated at a length of its own":     63,
	"corrupted before they are sent again":            78,
	"corrupted, cut to 96":                            31,
	"corrupted, cut to 128":                           65,
	"some lost, some corrupted, cut to 160":           73,
	"cut to 128, joined, some lost":                   59,
}

// TestFloors counts, for each harm, the rules that report the violation in one of their cases in
// spite of it.
func TestFloors(t *testing.T) {
	for h, harm := range harms {
		rules := map[string]bool{}
		for _, c := range cases.All() {
			if c.Options.Client.Addr.IsValid() || c.Options.Server.Addr.IsValid() || c.Options.IPv6 {
				continue // The harms find the sides by the last byte of their addresses.
			}
			c.Options.Client.Addr, c.Options.Server.Addr = netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.2")
			for _, transport := range []string{cases.RoCE, cases.IWARP} {
				if !c.On(transport) || rules[c.Rule] {
					continue
				}
				var frames []capture.Frame
				for i, f := range c.Wire(transport, true).Frames {
					frames = append(frames, capture.Frame{Number: int64(i + 1), Time: f.Time, LinkType: capture.LinkType(f.LinkType), Length: f.Length, Data: f.Data})
				}
				var found []record.Finding
				d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error { found = append(found, *f); return nil }}, dissect.Options{})
				for _, f := range harm.do(rand.New(rand.NewPCG(uint64(h), 7)), slices.Clone(frames)) {
					d.Frame(&f)
				}
				d.Finish()
				if caught(&c, found) {
					rules[c.Rule] = true
				}
			}
		}
		if floor, known := floors[harm.name]; !known || len(rules) < floor {
			t.Errorf("%q: %d, want %d or more", harm.name, len(rules), floor)
		}
	}
}
