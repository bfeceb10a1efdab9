package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// maxConcluded limits the groups that a conclusion names.
const maxConcluded = 3

// Conclusion says in one sentence what changed between two captures: latencies that changed by more than chance explains, failed RPCs,
// stalls, and rules that only one of the captures violates.
func Conclusion(list []*Comparison) string {
	type change struct {
		text string
		size float64
	}
	var slower, faster []change
	var failed, unanswered, found [2]int64
	var stalls [2]float64
	tested := false
	var proven []string
	for _, c := range list {
		switch c.Kind {
		case ComparedGroup:
			failed[0] += c.Before.Errors.Or(0)
			failed[1] += c.After.Errors.Or(0)
			unanswered[0] += c.Before.NoReply.Or(0)
			unanswered[1] += c.After.NoReply.Or(0)
			tested = tested || c.Significant.Known()
			largest := change{}
			for i := range Percentiles {
				if before, after, by, significant := Percentiles[i].Of(c); significant.Or(false) && math.Abs(by.Or(0)) > math.Abs(largest.size) {
					largest = change{fmt.Sprintf("%s (%s %s > %s, %s)", c.Name, Percentiles[i].Name, field.Duration(before.Or(0)), field.Duration(after.Or(0)), field.Change(by.Or(0))), by.Or(0)}
				}
			}
			if largest.size > 0 {
				slower = append(slower, largest)
			} else if largest.size < 0 {
				faster = append(faster, largest)
			}
		case ComparedShare:
			switch name := "the " + c.Name; c.Proven() {
			case 1:
				proven = append(proven, name+" provably took longer for an RPC")
			case -1:
				proven = append(proven, name+" provably took less time for an RPC")
			}
		case ComparedWait:
			stalls[0] += c.Before.Share.Or(0)
			stalls[1] += c.After.Share.Or(0)
		case ComparedFinding:
			if c.Before.Count.Or(0) > 0 {
				found[0]++
			} else {
				found[1]++
			}
		}
	}
	names := func(list []change) string {
		slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(math.Abs(b.size), math.Abs(a.size)) })
		var words []string
		for i, one := range list {
			if i == maxConcluded {
				words = append(words, fmt.Sprintf("and %d more", len(list)-i))
				break
			}
			words = append(words, one.text)
		}
		return strings.Join(words, ", ")
	}
	var parts []string
	switch {
	case len(slower)+len(faster) > 0:
		if len(slower) > 0 {
			parts = append(parts, "slower by more than chance explains: "+names(slower))
		}
		if len(faster) > 0 {
			parts = append(parts, "faster by more than chance explains: "+names(faster))
		}
	case tested:
		parts = append(parts, "no latency that was tested changed by more than chance explains")
	default:
		parts = append(parts, "no change of a latency was tested, because no group has 30 latencies in both captures")
	}
	parts = append(parts, proven...)
	if failed[0] != failed[1] {
		parts = append(parts, fmt.Sprintf("failed RPCs: %d before, %d after", failed[0], failed[1]))
	}
	if unanswered[0] != unanswered[1] {
		parts = append(parts, fmt.Sprintf("RPCs without a Reply in the capture: %d before, %d after", unanswered[0], unanswered[1]))
	}
	if math.Abs(stalls[0]-stalls[1]) >= 0.01 {
		parts = append(parts, fmt.Sprintf("RPCs stalled for %.0f%% of all latencies before, %.0f%% after", min(stalls[0], 1)*100, min(stalls[1], 1)*100))
	}
	if found[0] > 0 {
		parts = append(parts, plural(found[0], "rule")+" of check with findings only before")
	}
	if found[1] > 0 {
		parts = append(parts, plural(found[1], "rule")+" of check with findings only after")
	}
	return strings.Join(parts, "; ")
}
