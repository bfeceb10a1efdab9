package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Times is a format of times.
type Times string

// These are the formats of times.
const (
	Relative Times = "relative" // seconds since the capture's first packet
	Delta    Times = "delta"    // seconds since the previous line
	UTC      Times = "utc"
	Local    Times = "local"
	Epoch    Times = "epoch" // seconds since 1970
)

// timeWords say what times count from.
var timeWords = map[Times]string{Relative: "s since the capture began", Delta: "s since the row before", UTC: "UTC", Local: "local time", Epoch: "s since 1970"}

// AllTimes lists all formats of times.
var AllTimes = []Times{Relative, Delta, UTC, Local, Epoch}

// clock formats the times of one output.
type clock struct {
	form     Times
	start    record.Opt[record.Time]
	previous record.Opt[record.Time]
}

// dateForm is the format of UTC and local times.
const dateForm = "2006-01-02 15:04:05.000000"

// append appends a time, and keeps it for the next time in format Delta.
func (c *clock) append(b []byte, at record.Time) []byte {
	start := c.start.Or(at)
	c.start = record.Some(start)
	previous := c.previous.Or(at)
	c.previous = record.Some(at)
	switch c.form {
	case Delta:
		return strconv.AppendFloat(b, float64(at.Sub(previous))/1e9, 'f', 6, 64)
	case UTC:
		return time.Unix(0, int64(at)).UTC().AppendFormat(b, dateForm)
	case Local:
		return time.Unix(0, int64(at)).Local().AppendFormat(b, dateForm)
	case Epoch:
		return appendMicroseconds(b, int64(at))
	}
	return appendMicroseconds(b, int64(at.Sub(start)))
}

// width returns the usual number of characters of a time.
func (c *clock) width() int {
	switch c.form {
	case UTC, Local:
		return len(dateForm)
	case Epoch:
		return len("1795236796.472413")
	}
	return 11
}

// appendMicroseconds appends seconds with six decimals. They are not rounded, as those of dates are not, so that --from selects the packet
// whose printed time is typed.
func appendMicroseconds(b []byte, ns int64) []byte {
	us := ns / 1000
	if ns < 0 && us*1000 != ns {
		us--
	}
	if us < 0 {
		b, us = append(b, '-'), -us
	}
	b = strconv.AppendInt(b, us/1e6, 10)
	point := len(b)
	b = strconv.AppendInt(b, 1e6+us%1e6, 10) // the leading 1 keeps the zeros after it, and becomes the point
	b[point] = '.'
	return b
}

// Axis is the axis of time that all drawings of one connection share.
type Axis struct {
	Start    record.Time // first packet of the capture, from which relative times count
	From, To record.Time
}

// steps are distances of ticks that people read easily, in seconds.
var steps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400}

// tickDistance returns the distance of ticks, so that a span has at most most ticks. The
// span and the distance are in nanoseconds.
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

// tickLabel returns the label of a tick, with as many digits as the distance needs.
func (t *Theme) tickLabel(a Axis, at record.Time, distance float64) string {
	digits := 0
	for d := distance; d < 1e9 && digits < 9; d *= 10 {
		digits++
	}
	fraction := ""
	if digits > 0 {
		fraction = "." + strings.Repeat("0", digits)
	}
	date := time.Unix(0, int64(at))
	switch t.times {
	case UTC:
		return date.UTC().Format("15:04:05" + fraction)
	case Local:
		return date.Local().Format("15:04:05" + fraction)
	case Epoch:
		return strconv.FormatFloat(float64(at)/1e9, 'f', digits, 64)
	}
	return strconv.FormatFloat(float64(at.Sub(a.Start))/1e9, 'f', digits, 64) + "s"
}

// ticks draws the axis of a chart: a line with ticks, and the times below it.
func (t *Theme) ticks(b *strings.Builder, margin, plot int, a Axis) {
	line, labels := []rune(strings.Repeat(t.glyphs.axis, plot)), []rune(strings.Repeat(" ", plot+12))
	scale := newScale(a.From, a.To, plot)
	distance := tickDistance(float64(scale.span), 1)
	for most := plot / 8; most > 1; most-- { // as many ticks as have enough space for their labels
		d := tickDistance(float64(scale.span), most)
		if space := d / float64(max(scale.span, 1)) * float64(plot); space >= float64(len(t.tickLabel(a, a.To, d))+3) {
			distance = d
			break
		}
	}
	first := a.From
	base := a.Start // relative times count from the start; others from a multiple of the distance
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
