package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Times is how times are shown.
type Times string

// The forms.
const (
	Relative Times = "relative" // seconds since the capture's first packet
	Delta    Times = "delta"    // seconds since the line before
	UTC      Times = "utc"
	Local    Times = "local"
	Epoch    Times = "epoch" // seconds since 1970
)

// AllTimes are all forms.
var AllTimes = []Times{Relative, Delta, UTC, Local, Epoch}

// clock shows times of one output.
type clock struct {
	form     Times
	start    record.Opt[record.Time]
	previous record.Opt[record.Time]
}

// wallForm is how times of day look.
const wallForm = "2006-01-02 15:04:05.000000"

// append appends a time, and remembers it.
func (c *clock) append(b []byte, at record.Time) []byte {
	start := c.start.Or(at)
	c.start = record.Some(start)
	previous := c.previous.Or(at)
	c.previous = record.Some(at)
	switch c.form {
	case Delta:
		return strconv.AppendFloat(b, float64(at.Sub(previous))/1e9, 'f', 6, 64)
	case UTC:
		return time.Unix(0, int64(at)).UTC().AppendFormat(b, wallForm)
	case Local:
		return time.Unix(0, int64(at)).Local().AppendFormat(b, wallForm)
	case Epoch:
		return appendEpoch(b, at)
	}
	return strconv.AppendFloat(b, float64(at.Sub(start))/1e9, 'f', 6, 64)
}

// width is what times of the form take, about.
func (c *clock) width() int {
	switch c.form {
	case UTC, Local:
		return len(wallForm)
	case Epoch:
		return len("1795236796.472413")
	}
	return 11
}

// appendEpoch appends seconds since 1970, to the microsecond.
func appendEpoch(b []byte, at record.Time) []byte {
	us := int64(at) / 1000
	if us < 0 {
		b, us = append(b, '-'), -us
	}
	b = strconv.AppendInt(b, us/1e6, 10)
	return fmt.Appendf(b, ".%06d", us%1e6)
}

// Axis is the axis of time that all drawings of one connection share.
type Axis struct {
	Start    record.Time // of the capture, which relative times count from
	From, To record.Time
}

// steps are the distances of ticks, in seconds, that people read easily.
var steps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400}

// tickDistance is the distance of ticks, so that there are at most so many in a
// span; both in nanoseconds.
func tickDistance(span float64, most int) float64 {
	least := span / float64(max(most, 1))
	scale := 1.0
	for scale < least {
		for _, m := range []float64{2, 5, 10} {
			if scale*m >= least && scale*m < 1e9 {
				return scale * m
			}
		}
		if scale *= 10; scale >= 1e9 {
			break
		}
	}
	if least <= scale && scale < 1e9 {
		return scale
	}
	for _, s := range steps {
		if s*1e9 >= least {
			return s * 1e9
		}
	}
	days := 86400e9
	for days < least {
		days *= 2
	}
	return days
}

// label is what stands below a tick: as many digits as the distance needs.
func (t *Theme) tickLabel(a Axis, at record.Time, distance float64) string {
	digits := 0
	for d := distance; d < 1e9 && digits < 9; d *= 10 {
		digits++
	}
	fraction := ""
	if digits > 0 {
		fraction = "." + strings.Repeat("0", digits)
	}
	wall := time.Unix(0, int64(at))
	switch t.times {
	case UTC:
		return wall.UTC().Format("15:04:05" + fraction)
	case Local:
		return wall.Local().Format("15:04:05" + fraction)
	case Epoch:
		return strconv.FormatFloat(float64(at)/1e9, 'f', digits, 64)
	}
	return strconv.FormatFloat(float64(at.Sub(a.Start))/1e9, 'f', digits, 64) + "s"
}

// ticks draws the axis below a chart: a line with ticks, and the times below.
func (t *Theme) ticks(b *strings.Builder, margin, plot int, a Axis) {
	line, labels := []rune(strings.Repeat(t.glyphs.axis, plot)), []rune(strings.Repeat(" ", plot+12))
	scale := newScale(a.From, a.To, plot)
	distance := tickDistance(float64(scale.span), 1)
	for most := plot / 8; most > 1; most-- { // as many as have room for their labels
		d := tickDistance(float64(scale.span), most)
		if room := d / float64(max(scale.span, 1)) * float64(plot); room >= float64(len(t.tickLabel(a, a.To, d))+3) {
			distance = d
			break
		}
	}
	first := a.From
	base := a.Start // relative times count from there, the others from a whole one
	if t.times != Relative && t.times != Delta && t.times != "" {
		base = 0
	}
	since := float64(first.Sub(base))
	n := int64(since / distance)
	if float64(n)*distance < since {
		n++
	}
	end := 0
	for i := 0; i <= plot; i++ {
		at := record.Time(int64(base) + (n+int64(i))*int64(distance))
		if at > a.To || at < a.From {
			break
		}
		column := scale.column(at)
		line[column] = []rune(t.glyphs.tick)[0]
		label := t.tickLabel(a, at, distance)
		if from := max(column-len(label)/2, 0); from >= end && from+len(label) <= plot {
			copy(labels[from:], []rune(label))
			end = from + len(label) + 1
		}
	}
	fmt.Fprintf(b, "%s%*s%s%s\n%*s%s%s\n", t.dim.before, margin, "", t.glyphs.corner, string(line), margin+1, "", strings.TrimRight(string(labels), " "), t.dim.after)
}
