package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// number returns a number with its noun.
func number[N int | int64 | uint32](n N, noun string) string {
	return field.Count(int64(n)) + " " + record.Noun(int64(n), noun)
}

// at returns a time as seconds since the start of the capture.
func (d *diagnosis) at(t record.Time) string {
	return fmt.Sprintf("%.2f s", float64(t.Sub(d.first))/1e9)
}

// span returns two times.
func (d *diagnosis) span(from, to record.Time) string { return d.at(from) + " to " + d.at(to) }

// counted returns the statuses of a set and how often each occurs, the most frequent first.
func counted(counts map[string]int64) string {
	var list []string
	for _, status := range byCount(counts) {
		list = append(list, field.Count(counts[status])+" "+status)
	}
	if len(list) > 3 {
		list = append(list[:3], "...")
	}
	return strings.Join(list, ", ")
}

// text returns a number for a command.
func text[N int | int64 | uint32](n N) string { return strconv.FormatInt(int64(n), 10) }

// set returns the set of the words of a text.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(words) {
		all[word] = true
	}
	return all
}

// checks returns the command that lists the findings of a rule.
func checks(rule string) []string { return []string{"check", "-Y", "rule == " + rule} }

// ladder returns the command that draws an attempt.
func ladder(r *rpc) []string {
	return []string{"--conn", text(r.connection), "--xid", r.xid.String()}
}
