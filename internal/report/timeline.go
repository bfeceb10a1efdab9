package report

import (
	"fmt"
	"html/template"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// timeline is what happened over the time of the capture: several rows with one axis, and a band for each problem.
type timeline struct {
	Wide    int // columns
	Strips  []strip
	Bands   []band
	Ticks   []tick
	Zero    string // time of day at 0s
	Note    string // what is not drawn; empty for nothing
	Command string // shows the RPCs of the intervals in a terminal
}

// strip is one row of the timeline.
type strip struct {
	Name   string
	Desc   string // what the full height stands for
	Height int
	Layers []layer
}

// layer is the area below some values.
type layer struct {
	Class, Name string
	Path        template.HTMLAttr // d="..."
}

// band is the time of a problem. Positions are in percent of the width.
type band struct {
	Class, Left, Width, Title string
	Rank                      int
}

// tick is a mark of the axis.
type tick struct {
	At    string // position, in percent of the width
	Label string
	Last  bool // so near the right end that the label has to be on the left
}

// bars is a histogram in a cell.
type bars struct {
	Title         string
	Width, Height int
	Path          template.HTMLAttr
}

// columnsWide is the width of the timeline, in columns. A column is the smallest thing that it shows.
const columnsWide = 1000

// stripHigh is the height of a row, and maxBands the number of problems with a band.
const (
	stripHigh = 48
	maxBands  = 24
)

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

// spread gives the value of each interval the columns of its time. A column of several intervals has the largest value.
func (x axis) spread(rows []*analyze.Rate, value func(*analyze.Rate) int) []int {
	columns := make([]int, columnsWide)
	for _, r := range rows {
		for at := x.column(r.Start); at <= x.column(r.End-1); at++ {
			columns[at] = max(columns[at], value(r))
		}
	}
	return columns
}

// ticks returns the marks of the axis: four to nine, at round numbers of seconds since the start of the capture.
func (x axis) ticks() (list []tick) {
	span := x.to.Sub(x.from)
	if span <= 0 {
		return []tick{{"0", "0s", false}}
	}
	step := int64(1)
	for span/step > 8 {
		if strconv.FormatInt(step, 10)[0] == '2' {
			step = step / 2 * 5
		} else {
			step *= 2
		}
	}
	decimals := 0
	for unit := int64(1e9); step < unit; unit /= 10 {
		decimals++
	}
	for at := int64(0); at >= 0 && at <= span; at += step {
		place := float64(at) / float64(span) * 100
		list = append(list, tick{strconv.FormatFloat(place, 'f', 2, 64), render.Seconds(at, decimals) + "s", place > 95})
	}
	return list
}

// area returns the area below some values as the path of an SVG, with a step for each run of columns. Most is the value at the full
// height.
func area(values []int, most, height int) template.HTMLAttr {
	var b strings.Builder
	for i := 0; i < len(values); {
		from, value := i, values[i]
		for i < len(values) && values[i] == value {
			i++
		}
		if h := scaled(value, most, height); h > 0 {
			box(&b, from, height-h, i-from, h)
		}
	}
	return template.HTMLAttr(`d="` + b.String() + `"`) // numbers and commands only
}

// box adds a rectangle to a path.
func box(b *strings.Builder, x, y, w, h int) { fmt.Fprintf(b, "M%d %dh%dv%dh-%dz", x, y, w, h, w) }

// scaled returns a value in units of a picture's height. Only 0 has the height 0.
func scaled(value, most, height int) int {
	if value <= 0 || most <= 0 {
		return 0
	}
	return min(max(int(float64(value)/float64(most)*float64(height)+0.5), 1), height)
}

// drawTimeline makes the timeline.
func (v *page) drawTimeline(s *record.Summary, worst []*record.Problem) {
	p := v.from
	x := axis{p.start, max(s.Last.Or(p.start), p.start+1)}
	rows, err := p.rates.Rows(x.to)
	v.note(err)
	every := p.rates.Every().String()
	t := &timeline{Wide: columnsWide, Ticks: x.ticks(), Zero: clock(p.start), Command: v.Run("stats", "FILE", "--every", every)}
	each := render.Duration(x.to.Sub(x.from) / columnsWide)
	draw := func(name, within string, layers ...[]int) {
		most := slices.Max(layers[0])
		if most == 0 {
			return
		}
		s := strip{Name: name, Desc: fmt.Sprintf("at most %d in %s", most, within), Height: stripHigh}
		for i, l := range layers {
			if slices.Max(l) > 0 {
				s.Layers = append(s.Layers, layer{[]string{"all", "failed"}[i], []string{"all", "failed or unanswered"}[i], area(l, most, stripHigh)})
			}
		}
		t.Strips = append(t.Strips, s)
	}
	draw("RPCs", every, x.spread(rows, func(r *analyze.Rate) int { return r.RPCs }), x.spread(rows, func(r *analyze.Rate) int { return r.Errors + r.NoReply }))
	draw("Stalled RPCs", each, x.levels(p.stalls))
	repeats := make([]int, columnsWide)
	for _, at := range p.repeats {
		repeats[x.column(at)]++
	}
	draw("Repeated packets", each, repeats)
	for _, w := range worst {
		from, timed := w.From.Get()
		if !timed || len(t.Bands) == maxBands {
			continue
		}
		left, right := x.column(from), x.column(w.To.Or(from))
		percent := func(columns int) string { return strconv.FormatFloat(float64(columns)*100/columnsWide, 'f', 1, 64) }
		t.Bands = append(t.Bands, band{classes[w.Severity], percent(left), percent(right - left + 1), render.PlaceText(w, len(v.About.Points) > 1) + render.Clean(w.Headline), w.Rank})
	}
	if p.unmarked > 0 {
		t.Note = fmt.Sprintf("%d stalls and repeated packets are not drawn: there are too many.", p.unmarked)
	}
	v.Timeline = t
}

// levels returns the number of spans that touch the time of each column.
func (x axis) levels(spans []span) []int {
	steps := make([]int, columnsWide+1)
	for _, s := range spans {
		steps[x.column(s.from)]++
		steps[x.column(s.to)+1]--
	}
	now := 0
	for i, by := range steps {
		now += by
		steps[i] = now
	}
	return steps[:columnsWide]
}

// The sizes of a histogram in a cell.
const (
	histogramSteps = 32
	histogramHigh  = 24
)

// histogram draws the latencies of an operation. It returns nil if none is known.
func histogram(s *analyze.Stats, low, high int64) *bars {
	counts := s.Histogram(low, high, histogramSteps)
	most := slices.Max(counts)
	if most == 0 {
		return nil
	}
	var b strings.Builder
	for i, n := range counts {
		if h := scaled(n, most, histogramHigh); h > 0 {
			box(&b, i*4, histogramHigh-h, 3, h)
		}
	}
	title := fmt.Sprintf("%s: latencies, at most %s in one of %d steps", render.Clean(s.Name), record.Plural(int64(most), "RPC"), histogramSteps)
	return &bars{title, histogramSteps * 4, histogramHigh, template.HTMLAttr(`d="` + b.String() + `"`)}
}
