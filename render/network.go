package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

var networkColumns = slices.Concat([]column{
	{
		name: "FROM", fields: "from", flex: true, min: 8,
		doc: "Capture point that the packets passed first; the names of points are shown without the part that all names have in common.",
	},
	{name: "TO", fields: "to", flex: true, min: 8, doc: "Capture point that the packets passed next."},
	{
		name: "PACKETS", fields: "packets", right: true, foot: "that passed FROM",
		doc: "Number of packets that passed the first point on the way to the other one, including retransmissions; of TCP, the segments with data.",
	},
	{
		name: "LOST", fields: "lost", right: true, foot: "not arrived, and sent or asked for again",
		doc: "Number of these packets of which nothing arrived at the other point.",
	},
	{
		name: "NOT CAPTURED", fields: "not_captured", right: true, at: 100, foot: "arrived, but that capture lacks it",
		doc: "Number of these packets that the capture at the other point does not contain, although their receiver had them.",
	},
	{
		name: "UNKNOWN", fields: "unknown", right: true, at: 100, foot: "not at the other point: lost, or not captured there",
		doc: "Number of these packets that are not at the other point, and of which nothing shows whether they were lost: nobody sent them again, or the capture of that point lacks packets.",
	},
	{
		name: "REORDERED", fields: "reordered", right: true, foot: "overtaken by a later packet",
		doc: "Number of packets that arrived after a packet that was sent later to the same queue pair. Retransmissions of lost packets are not counted, other than in the column OUT OF ORDER of connections.",
	},
	{
		name: "DAMAGED", fields: "corrupted", right: true, foot: "bad ICRC or checksum, or other contents than sent",
		doc: "Number of packets that arrived damaged: with a bad ICRC, or with headers that are so damaged that only a comparison with the sent packet shows what they were. The rule icrc-bad and the mark bad_icrc are only about packets with a bad ICRC whose headers identify them, so their number is smaller. A TCP segment also counts if its payload is not the one that was sent, although its checksum is right.",
	},
	{
		name: "DUPLICATED", fields: "duplicated", right: true, foot: "sent once, arrived twice",
		doc: "Number of additional copies that arrived, although the packet had been sent once.",
	},
	{
		name: "MIRROR COPIES", fields: "mirror_duplicates", right: true, at: 140, foot: "second copies that a mirror port made",
		doc: "Number of second copies in captures of mirror ports that show each packet twice; they are not counted as packets.",
	},
}, alike(
	"one-way delay", nil,
	column{
		name: "SHORTEST", fields: "delay.min_ns", right: true, at: 140,
		doc: "Shortest one-way delay. It is often equal in both directions, because the clocks are compared under the assumption that the fastest packets of both directions took equally long; it is then also the error of the clocks.",
	},
	column{name: "P50", fields: "delay.p50_ns", right: true, doc: "Median of the one-way delays."},
	column{name: "P90", fields: "delay.p90_ns", right: true, at: 140, doc: "90th percentile of the one-way delays."},
	column{name: "P99", fields: "delay.p99_ns", right: true, at: 140, doc: "99th percentile of the one-way delays."},
	column{name: "WORST", fields: "delay.max_ns", right: true, doc: "Longest one-way delay."},
))

// Network writes the capture points, a row for each direction between them, and the course of its delays and losses.
// start is the start of the capture.
func Network(s Screen, start record.Time, points []*record.Point, list []*record.Network) error {
	for _, p := range points {
		if err := s.text("  ", pointLine(p)); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(s.Out)
	names := make([]string, 0, len(points))
	for _, p := range points {
		names = append(names, p.Name)
	}
	short := record.ShortNames(names)
	columns := slices.Clone(networkColumns)
	if uncertain := clockError(points); uncertain > 0 {
		for i := range columns {
			if strings.HasPrefix(columns[i].fields, "delay.") {
				columns[i].foot += ", +-" + field.Brief(uncertain)
			}
		}
	}
	t := newTable(s.Out, s.Theme, s.Width, columns)
	for _, n := range list {
		d, measured := n.Delay.Get()
		delay := func(least, ns int64) cell {
			if !measured || n.Packets-n.Lost < least {
				return cell{}
			}
			return cell{text: field.Brief(ns)}
		}
		count := s.Theme.number
		if err := t.row([]cell{
			{text: clean(short(n.From)), ink: s.Theme.key, tail: true},
			{text: clean(short(n.To)), ink: s.Theme.key, tail: true},
			count(n.Packets), count(n.Lost), count(n.NotCaptured), count(n.Unknown), count(n.Reordered),
			count(n.Corrupted), count(n.Duplicated), count(n.MirrorDuplicates), delay(1, d.MinNS), delay(leastP50, d.P50NS), delay(leastP90, d.P90NS), delay(leastP99, d.P99NS), delay(1, d.MaxNS),
		}); err != nil {
			return err
		}
	}
	if err := t.end(); err != nil {
		return err
	}
	for _, n := range list {
		if lost := n.InQuiet(); lost > 0 {
			text := fmt.Sprintf("%d of the %s lost on the way to %s %s sent while the capture there has no packet at all: perhaps only not captured.", lost, record.Plural(n.Lost, "packet"), clean(short(n.To)), record.Were(lost))
			if err := s.text("", text); err != nil {
				return err
			}
		}
	}
	var all record.NetworkInterval // the largest values, so that the directions have the same scale
	courses := s.courses(list)
	for _, course := range courses {
		for _, i := range course {
			all.MaxNS, all.Lost, all.Corrupted = record.Some(max(all.MaxNS.Or(1), i.MaxNS.Or(0))), max(all.Lost, i.Lost), max(all.Corrupted, i.Corrupted)
		}
	}
	for i, n := range list {
		if err := s.course(start, n, short, courses[i], &all); err != nil {
			return err
		}
	}
	return nil
}

// The columns in front of the characters of a course, and after them.
const (
	courseMargin = 18 // the name of the row
	courseScale  = 17 // the largest value, such as "| # = 1.23 s"
)

// courses returns the intervals of each direction, as far as it has a course. All directions have the same intervals, so that what
// is below each other happened at the same time; they are so long that they fit the width.
func (s Screen) courses(list []*record.Network) [][]record.NetworkInterval {
	var length, from, to record.Time
	for _, n := range list {
		if len(n.Course) > 1 {
			own := n.Course[1].Start - n.Course[0].Start
			end := n.Course[len(n.Course)-1].Start + own
			if length == 0 {
				from, to = n.Course[0].Start, end
			}
			length, from, to = max(length, own), min(from, n.Course[0].Start), max(to, end)
		}
	}
	courses := make([][]record.NetworkInterval, len(list))
	if length <= 0 {
		return courses
	}
	cells := int((to - from + length - 1) / length)
	if room := max(s.Width-courseMargin-courseScale, 10); s.Width > 0 && cells > room {
		length *= record.Time((cells + room - 1) / room)
		cells = int((to - from + length - 1) / length)
	}
	for i, n := range list {
		if len(n.Course) < 2 {
			continue
		}
		course := make([]record.NetworkInterval, cells)
		for k := range course {
			course[k].Start = from + length*record.Time(k)
		}
		for _, p := range n.Course {
			sum := &course[min(int((p.Start-from)/length), cells-1)]
			sum.Lost, sum.Corrupted = sum.Lost+p.Lost, sum.Corrupted+p.Corrupted
			if p.MaxNS.Known() {
				sum.MaxNS = record.Some(max(sum.MaxNS.Or(0), p.MaxNS.Or(0)))
			}
		}
		courses[i] = course
	}
	return courses
}

// text writes a text in lines that fit the width. Lines after the first begin with an indent.
func (s Screen) text(indent, text string) error {
	lines := wrapped(text, s.Width-len(indent))
	_, err := io.WriteString(s.Out, strings.Join(lines, "\n"+indent)+"\n")
	return err
}

// clockError returns the largest error of the clocks of capture points.
func clockError(points []*record.Point) (ns int64) {
	for _, p := range points {
		ns = max(ns, p.ErrorNS.Or(0))
	}
	return ns
}

// pointLine describes a capture point.
func pointLine(p *record.Point) string {
	line := clean(p.Name)
	if address, known := p.Address.Get(); known {
		line += " at " + clean(address)
	}
	line += ": " + record.Plural(p.Packets, "packet")
	switch offset, known := p.OffsetNS.Get(); {
	case !known:
		line += "; no packets join it to the first point, so its times are not those of that clock"
	case offset != 0 || p.ErrorNS.Or(0) != 0:
		line += ", clock " + clockOffset(p)
	default:
		line += ", its clock is used"
	}
	for _, step := range p.Steps {
		line += fmt.Sprintf(", step of %s at packet %d", signed(step.NS), step.Packet)
	}
	return line
}

// signed returns a duration with its sign.
func signed(ns int64) string {
	if ns < 0 {
		return "-" + Duration(-ns)
	}
	return "+" + Duration(ns)
}

// clockOffset says how far the clock of a capture point is ahead of the clock whose times are shown, or behind it.
func clockOffset(p *record.Point) string {
	offset := p.OffsetNS.Or(0)
	how := "ahead"
	if offset < 0 {
		offset, how = -offset, "behind"
	}
	drift := "no drift"
	if v, known := p.DriftPPM.Get(); known {
		drift = fmt.Sprintf("drift %+.1f ppm", v)
		if e, known := p.DriftErrorPPM.Get(); known {
			drift = fmt.Sprintf("drift %+.1f +-%.1f ppm", v, e)
		}
	}
	return fmt.Sprintf("%s %s (+-%s, %s)", Duration(offset), how, field.Brief(p.ErrorNS.Or(0)), drift)
}

// course draws the delays, the losses and the damaged packets of a direction over time. The darkest character stands for the
// largest value of all directions.
func (s Screen) course(start record.Time, n *record.Network, short func(string) string, course []record.NetworkInterval, all *record.NetworkInterval) error {
	levels := s.Theme.levels()
	if len(course) < 2 {
		return nil
	}
	width := course[1].Start.Sub(course[0].Start)
	fmt.Fprintln(s.Out)
	err := s.text("  ", fmt.Sprintf("%s to %s, %s a character%s", clean(short(n.From)), clean(short(n.To)), field.Brief(width), s.Theme.scale(", ")))
	for _, row := range []struct {
		name  string
		value func(*record.NetworkInterval) int64
		text  func(int64) string
	}{
		{"longest delay", func(i *record.NetworkInterval) int64 { return i.MaxNS.Or(0) }, field.Brief},
		{"lost packets", func(i *record.NetworkInterval) int64 { return i.Lost }, whole},
		{"damaged packets", func(i *record.NetworkInterval) int64 { return i.Corrupted }, whole},
	} {
		of := row.value(all)
		if of == 0 || err != nil {
			continue
		}
		var b strings.Builder
		for i := range course {
			level := 0
			if v := row.value(&course[i]); v > 0 {
				level = 1 + int(v*int64(len(levels)-2)/of)
			}
			b.WriteString(levels[min(level, len(levels)-1)])
		}
		_, err = fmt.Fprintf(s.Out, "  %-15s|%s| %s %s\n", row.name, b.String(), s.Theme.full(), row.text(of))
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	from := course[0].Start
	s.Theme.ticks(&b, courseMargin-1, len(course), Axis{start, from, from + record.Time(width)*record.Time(len(course))})
	_, err = io.WriteString(s.Out, b.String())
	return err
}

// whole returns a number.
func whole(n int64) string { return fmt.Sprint(n) }

var lostColumns = []column{
	{name: "TIME", fields: "time", right: true, moment: true},
	{name: "PACKET", fields: "packet", right: true},
	{name: "SEEN AT", fields: "from to", flex: true, min: 8},
	{name: "CONN", fields: "connection", right: true},
	{name: "XID", fields: "xid"},
	{name: "INFO", fields: "rdma_operation summary", flex: true, min: 20},
}

// LostPackets writes a row for each packet that was lost.
func LostPackets(w io.Writer, theme *Theme, width int, start record.Time, list []*record.LostPacket) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	names := make([]string, 0, 2*len(list))
	for _, r := range list {
		names = append(names, r.From, r.To)
	}
	short := record.ShortNames(names)
	t := newTable(w, theme, width, lostColumns)
	c := clock{form: theme.times, start: record.Some(start)}
	for _, r := range list {
		if err := t.row([]cell{
			{text: string(c.append(nil, r.Time))},
			{text: fmt.Sprint(r.Packet)},
			{text: clean(short(r.From)), ink: theme.key},
			{text: known(r.Connection, "?", func(n int) string { return fmt.Sprint(n) })},
			{text: known(r.XID, "-", func(x record.Hex32) string { return x.String() })},
			{text: clean(r.Summary)},
		}); err != nil {
			return err
		}
	}
	return t.flush()
}
