package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// duration returns a duration with two or three digits and one unit, such as "560 ms". The unit is a part of the word: a value with its unit
// is not to be separated.
func duration(ns int64) string {
	units := [...]struct {
		ns   float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}
	for _, u := range units {
		if v := float64(ns) / u.ns; v >= 0.9995 || u.ns == 1 {
			return digits(v) + " " + u.name
		}
	}
	return "0 ns"
}

// digits returns a number with two or three digits.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return thousands(int64(v + 0.5))
	case v >= 9.995:
		return trimmed(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return trimmed(strconv.FormatFloat(v, 'f', 2, 64))
}

// trimmed returns a number without zeros at its end that say nothing.
func trimmed(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// thousands returns a number with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size returns a number of bytes.
func size(n int64) string {
	switch {
	case n < 10000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1<<20:
		return digits(float64(n)/(1<<10)) + " KiB"
	}
	return digits(float64(n)/(1<<20)) + " MiB"
}

// number returns a number with its noun.
func number(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + plural(noun)
}

// plural returns the plural of a noun.
func plural(noun string) string {
	if strings.HasSuffix(noun, "Reply") {
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
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
		list = append(list, thousands(counts[status])+" "+status)
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
