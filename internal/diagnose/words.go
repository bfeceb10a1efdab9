package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// number returns a number with its noun.
func number(n int64, noun string) string { return field.Count(n) + " " + record.Noun(n, noun) }

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
func text(n int64) string { return strconv.FormatInt(n, 10) }

// ladder returns the command that draws an attempt.
func ladder(r *rpc) []string {
	return []string{"--conn", text(int64(r.connection)), "--xid", r.xid.String()}
}
