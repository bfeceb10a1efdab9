package points

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// groups assigns sources to points. Usually each source is a point. Interfaces of
// one host that share the packets of a connection are one point; so are files with the same packets.
type groups []int

func (g groups) of(i int) int {
	for g[i] != i {
		i = g[i]
	}
	return i
}

// join makes one group of two.
func (g groups) join(a, b int) {
	a, b = g.of(a), g.of(b)
	g[max(a, b)] = min(a, b)
}

// group finds the sources that are one point.
func (p *Plan) group(all []*relation) groups {
	g := make(groups, len(p.sources))
	for i := range g {
		g[i] = i
	}
	related := map[[2]int]bool{}
	for _, r := range all {
		related[[2]int{r.a, r.b}] = true
		if r.same {
			g.join(r.a, r.b)
			p.same = true
		}
	}
	near := p.near(all)
	for a := range p.sources {
		for b := a + 1; b < len(p.sources); b++ {
			x, y := p.sources[a], p.sources[b]
			if !related[[2]int{a, b}] && overlap(near[a], near[b]) && (x.last <= y.first || y.last <= x.first || x.file == y.file) {
				g.join(a, b)
			}
		}
	}
	return g
}

// near returns for each source the directions whose packets it captured before another source.
func (p *Plan) near(all []*relation) []map[int32]bool {
	near := make([]map[int32]bool, len(p.sources))
	for i := range near {
		near[i] = map[int32]bool{}
	}
	for _, r := range all {
		if r.usable() {
			for dir, first := range r.first {
				if first {
					near[r.a][dir] = true
				} else {
					near[r.b][dir] = true
				}
			}
		}
	}
	return near
}

// overlap reports whether two sets have an element in common.
func overlap(a, b map[int32]bool) bool {
	for k := range a {
		if b[k] {
			return true
		}
	}
	return false
}

// place makes points of the groups of sources. Files that have nothing in common are one point, as if they
// were one capture.
func (p *Plan) place(all []*relation, g groups) {
	connected := map[int]bool{}
	for _, r := range all {
		if r.usable() && !r.same {
			connected[g.of(r.a)], connected[g.of(r.b)] = true, true
		}
	}
	names := baseNames(p.files)
	at := map[int]int{}
	for i, src := range p.sources {
		if src.leftOut {
			continue
		}
		root := g.of(i)
		if !connected[root] {
			root = -1
			if len(connected) > 0 { // Next to real points, each other file has a name of its own.
				root = i
			}
		}
		n, known := at[root]
		if !known {
			n = len(p.Points)
			at[root] = n
			p.Points = append(p.Points, Point{Name: p.firstNameOf(names, i), Link: src.link, Snap: src.snap, first: math.MaxInt64, last: math.MinInt64})
		}
		point := &p.Points[n]
		point.sources = append(point.sources, src)
		point.Packets += src.frames
		src.point = n
	}
	for i := range p.Points {
		point := &p.Points[i]
		more := -1
		for _, src := range point.sources {
			more += len(src.pieces)
			point.counts = point.counts || src.file != point.sources[0].file
		}
		if more > 0 {
			point.Name += fmt.Sprintf(" and %d more", more)
		}
	}
}

// route determines the points that see the packets of each direction, in their order.
func (p *Plan) route(all []*relation) {
	score := map[int32]map[int]int{}
	p.paths, p.longest, p.shortest, p.trusted = map[int32][]int{}, map[int32]int64{}, map[int32]int64{}, map[[2]int]bool{}
	for _, r := range all {
		if !r.usable() || r.same {
			continue
		}
		a, b := p.sources[r.a].point, p.sources[r.b].point
		for dir, first := range r.first {
			if score[dir] == nil {
				score[dir] = map[int]int{}
			}
			if first {
				score[dir][a]--
				score[dir][b]++
			} else {
				score[dir][a]++
				score[dir][b]--
			}
			p.longest[dir] = max(p.longest[dir], r.longest[dir])
			if least, known := p.shortest[dir]; !known || r.shortest[dir] < least {
				p.shortest[dir] = r.shortest[dir]
			}
		}
		trusted, known := p.trusted[[2]int{a, b}]
		p.trusted[[2]int{a, b}] = r.sameIDs && (trusted || !known)
		p.trusted[[2]int{b, a}] = p.trusted[[2]int{a, b}]
	}
	for dir, of := range score {
		var path []int
		for point := range of {
			path = append(path, point)
		}
		slices.SortFunc(path, func(a, b int) int { return cmp.Or(cmp.Compare(of[a], of[b]), cmp.Compare(a, b)) })
		if len(path) > 1 {
			p.paths[dir] = path
		}
	}
}

// describe sets the addresses and the clocks of the points.
func (p *Plan) describe() {
	weight := make([]map[string]int, len(p.Points))
	for dir, path := range p.paths {
		if !p.atSender(dir, path[0]) {
			continue
		}
		n := 0
		for _, src := range p.Points[path[0]].sources {
			for _, x := range src.samples {
				if x.dir == dir {
					n++
				}
			}
		}
		e := p.dirs.list[dir]
		address := fmt.Sprintf("LID %d", e.srcLID)
		if e.src.IsValid() {
			address = e.src.String()
		}
		if weight[path[0]] == nil {
			weight[path[0]] = map[string]int{}
		}
		weight[path[0]][address] += n
	}
	for i := range p.Points {
		point := &p.Points[i]
		point.Reference = slices.Contains(point.sources, p.reference)
		for address, n := range weight[i] {
			if most := weight[i][point.Address]; n > most || n == most && address < point.Address {
				point.Address = address
			}
		}
		for j, src := range point.sources {
			src.cover()
			point.first, point.last = min(point.first, src.spans[0].First), max(point.last, src.spans[len(src.spans)-1].Last)
			if j == 0 {
				point.Known = src.root == p.reference
				point.clock(src)
			}
		}
	}
}

// clock describes the clock of a source, compared with the reference.
func (point *Point) clock(src *source) {
	point.Offset = src.began - src.time(1, src.began)
	for _, j := range src.jumps {
		point.Steps = append(point.Steps, Step{Packet: j.from, Time: src.time(j.from, j.time), By: j.by})
	}
	slices.SortFunc(point.Steps, func(a, b Step) int { return cmp.Compare(a.Packet, b.Packet) })
	factor, drifts := 1.0, false
	for _, c := range src.chain {
		widest, wrong := 0.0, 0.0
		for i := range c.segments {
			s := &c.segments[i]
			widest, wrong = max(widest, s.gap), max(wrong, s.error)
			if i == 0 && s.drifts {
				factor *= 1 + s.slope
				drifts = true
			}
		}
		point.gap += int64(math.Ceil(widest / 2))
		point.Error += int64(math.Ceil(max(wrong, widest/2)))
		point.DriftError += c.segments[0].slopeError * 1e6
	}
	point.Drift, point.DriftKnown = (factor-1)*1e6, drifts
}

// fewNames returns the first names of a list, and the number of the others.
func fewNames(names []string) string {
	const few = 5
	if more := len(names) - few; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), more)
	}
	return strings.Join(names, ", ")
}

// note describes for a person what was recognized.
func (p *Plan) note(all []*relation) {
	names := baseNames(p.files)
	if len(p.files) > 1 && len(p.Points) > 1 {
		p.Notes = append([]string{p.reason(all)}, p.Notes...)
	}
	var lone []string
	used, common, hint := 0, "no", ""
	for i, src := range p.sources {
		if !src.leftOut {
			used++
		}
		related := slices.ContainsFunc(all, func(r *relation) bool { return (r.a == i || r.b == i) && r.usable() })
		if name := p.nameOf(names, i); !related && !src.leftOut && !slices.Contains(lone, name) && p.Points[src.point].sources != nil {
			if lone = append(lone, name); src.shares {
				common = "too few"
			}
		}
	}
	for _, r := range all {
		a, b := p.nameOf(names, r.a), p.nameOf(names, r.b)
		switch {
		case r.same:
			p.Notes = append(p.Notes, fmt.Sprintf("%s and %s have packets in common %s: these packets count once, and the files are not two capture points", a, b, r.times()))
		case p.sources[r.a].leftOut != p.sources[r.b].leftOut:
			out := b
			if p.sources[r.a].leftOut {
				out = a
			}
			p.Notes = append(p.Notes, fmt.Sprintf("%s and %s have packets in common, but %s: %s is left out; capture both directions at both points, or read the files with --points off to merge them by their own times", a, b, r.why(), out))
		}
	}
	if common != "no" && !p.told {
		hint = "; --points on takes them for capture points"
	}
	if len(lone) == used && len(lone) > 1 && len(p.Notes) == 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("the files have %s packets in common, so they are merged by time as one capture%s", common, hint))
	} else if len(lone) > 0 && len(lone) < used {
		p.Notes = append(p.Notes, fmt.Sprintf("these files have %s packets in common with the others, so they are merged by their own clocks: %s%s", common, fewNames(lone), hint))
	}
}

// times says how the times of the same packets differ.
func (r *relation) times() string {
	if r.exact == 0 {
		return "with the same times"
	}
	return "whose times differ by exactly " + span(r.exact)
}

// why says why a relation joins nothing.
func (r *relation) why() string {
	if r.oneWay {
		return "these are packets of only one direction, so their clocks cannot be compared"
	}
	return "no offset between their clocks explains the times of these packets"
}

// reason says which files are points of the same traffic, and how many packets show it.
func (p *Plan) reason(all []*relation) string {
	common := make([]map[int]int, len(p.Points)) // the packets that a point shares with others
	for i := range common {
		common[i] = map[int]int{}
	}
	for _, r := range all {
		if a, b := p.sources[r.a], p.sources[r.b]; r.usable() && !r.same && !a.leftOut && !b.leftOut {
			common[a.point][b.point] += r.shared
			common[b.point][a.point] += r.shared
		}
	}
	first := slices.IndexFunc(p.Points, func(point Point) bool { return point.Reference })
	if first < 0 || len(common[first]) == 0 {
		first = slices.IndexFunc(common, func(with map[int]int) bool { return len(with) > 0 })
	}
	var pairs []string
	for i, with := range common {
		if i == first || len(with) == 0 {
			continue
		}
		best := first
		for j := range p.Points {
			if with[first] == 0 && with[j] > with[best] {
				best = j
			}
		}
		pair := fmt.Sprintf("%s and %s %d", p.Points[best].Name, p.Points[i].Name, with[best])
		if pairs == nil {
			pair = fmt.Sprintf("%s and %s have >= %d packets in common", p.Points[best].Name, p.Points[i].Name, with[best])
		}
		pairs = append(pairs, pair)
	}
	says := ""
	if p.told {
		says = ", as --points says"
	}
	return fmt.Sprintf("several points of the same traffic%s: %s; their clocks are compared", says, fewNames(pairs))
}

// Unmatched says why there are not several points, although the user says so, and what to do.
func (p *Plan) Unmatched() string {
	names := baseNames(p.files)
	switch r := p.unusable; {
	case len(p.sources) < 2:
		return fmt.Sprintf("%s has the packets of one interface; name the files of all points", fewNames(names))
	case r != nil && r.same:
		return fmt.Sprintf("%s and %s have packets in common %s, so they are not two capture points; name the files of all points", p.nameOf(names, r.a), p.nameOf(names, r.b), r.times())
	case r != nil:
		return fmt.Sprintf("%s and %s have packets in common, but %s; capture both directions at both points, or leave --points out", p.nameOf(names, r.a), p.nameOf(names, r.b), r.why())
	}
	var of []string
	common := "no"
	for i, src := range p.sources {
		if src.shares {
			common = "too few"
		}
		of = append(of, fmt.Sprintf("%s (%d packets)", p.nameOf(names, i), src.frames))
	}
	return fmt.Sprintf("%s have %s packets in common; they must show the same connections at the same time, with at least 128 bytes of each packet, and nothing between them may change addresses; without --points they are read as one capture", fewNames(of), common)
}

// span returns a duration as people read it.
func span(ns int64) string {
	d := time.Duration(ns)
	switch a := d.Abs(); {
	case a >= 10*time.Second:
		d = d.Round(time.Millisecond)
	case a >= time.Second:
		d = d.Round(100 * time.Microsecond)
	case a >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return strings.ReplaceAll(d.String(), "µ", "u")
}
