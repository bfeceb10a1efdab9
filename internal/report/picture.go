package report

import (
	"fmt"
	"html/template"
	"math/bits"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// This file makes the shapes of the pictures. They consist of numbers only; all text around them is
// in the template.

// columnsWide is the width of a picture over time, in columns. A column is the smallest thing that
// the picture shows.
const columnsWide = 1000

// axis maps times to columns.
type axis struct{ from, to record.Time }

// column returns the column of a time. Times outside of the axis are in the first or last column.
func (x axis) column(t record.Time) int {
	if t <= x.from {
		return 0
	}
	if t >= x.to {
		return columnsWide - 1
	}
	high, low := bits.Mul64(uint64(t)-uint64(x.from), columnsWide)
	at, _ := bits.Div64(high, low, uint64(x.to)-uint64(x.from)) // less than columnsWide, since t is less than to
	return int(at)
}

// shape is a part of a picture: all marks of one class.
type shape struct {
	Class string
	Path  template.HTMLAttr // d="..."
}

// tick is a mark of an axis.
type tick struct {
	At    string // position, in percent of the width
	Label string
	Last  bool // so near the right end that the label has to be on the left
}

// strip is one row of a picture over time.
type strip struct {
	Name   string // what it shows, in a few words
	Title  string
	Desc   string // one sentence
	Height int
	Shapes []shape
	Scale  string // what the full height stands for
	Marks  []legend
	ID     string
}

// legend explains a class of shapes.
type legend struct{ Class, Text string }

// path builds the commands of an SVG path from rectangles.
type path struct{ b strings.Builder }

// box adds a rectangle.
func (p *path) box(x, y, w, h int) {
	fmt.Fprintf(&p.b, "M%d %dh%dv%dh-%dz", x, y, w, h, w)
}

// attr returns the path as an attribute.
func (p *path) attr() template.HTMLAttr {
	return template.HTMLAttr(`d="` + p.b.String() + `"`) // numbers and commands only
}

// shapesOf returns the shapes of paths that are not empty.
func shapesOf(classes []string, paths []path) (list []shape) {
	for i := range paths {
		if paths[i].b.Len() > 0 {
			list = append(list, shape{classes[i], paths[i].attr()})
		}
	}
	return list
}

// runs adds a rectangle for each run of columns with the same value that is not 0, in the path of
// the value.
func runs(paths []path, columns []kind, y, h int) {
	for i := 0; i < len(columns); {
		from, value := i, columns[i]
		for i < len(columns) && columns[i] == value {
			i++
		}
		if value != 0 {
			paths[value].box(from, y, i-from, h)
		}
	}
}

// area adds the area below some values, as a step for each run of columns. scale is the value at the
// full height.
func (p *path) area(values []int, scale, height int, only func(i int) bool) {
	for i := 0; i < len(values); {
		from, value := i, values[i]
		keep := only == nil || only(i)
		for i < len(values) && values[i] == value && (only == nil || only(i)) == keep {
			i++
		}
		if h := scaled(value, scale, height); keep && h > 0 {
			p.box(from, height-h, i-from, h)
		}
	}
}

// line adds a line through values, as a step for each run of columns. Columns with a negative value
// have no line.
func (p *path) line(values []int, scale, height int) {
	for i := 0; i < len(values); {
		from, value := i, values[i]
		for i < len(values) && values[i] == value {
			i++
		}
		if value >= 0 {
			fmt.Fprintf(&p.b, "M%d %dh%d", from, min(height-scaled(value, scale, height)+1, height-1), i-from)
		}
	}
}

// scaled returns a value in units of a picture's height. Only 0 has the height 0.
func scaled(value, scale, height int) int {
	if value <= 0 || scale <= 0 {
		return 0
	}
	return min(max(int(float64(value)/float64(scale)*float64(height)+0.5), 1), height)
}

// ticksOf returns the marks of an axis: four to nine, at round numbers of seconds since the start of
// the capture.
func ticksOf(x axis, start record.Time) (list []tick) {
	span := x.to.Sub(x.from)
	if span <= 0 {
		return []tick{{"0", render.Seconds(x.from.Sub(start), 6) + "s", false}}
	}
	step := int64(1)
	for span/step > 8 {
		switch first := strconv.FormatInt(step, 10)[0]; first {
		case '2':
			step = step / 2 * 5
		default:
			step *= 2
		}
	}
	decimals := 0
	for unit := int64(1e9); step < unit; unit /= 10 {
		decimals++
	}
	offset := x.from.Sub(start)
	for at := (offset + step - 1) / step * step; at <= offset+span; at += step {
		place := float64(at-offset) / float64(span) * 100
		list = append(list, tick{strconv.FormatFloat(place, 'f', 2, 64), render.Seconds(int64(at), decimals) + "s", place > 95})
		if at > at+step || len(list) > 20 { // a clock at the end of time
			break
		}
	}
	return list
}
