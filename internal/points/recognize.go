// Package points recognizes captures of the same traffic at several points of the network. It determines
// the offset and the drift of the points' clocks, and finds out which packets were lost, reordered,
// corrupted or duplicated between the points. See [Recognize].
//
// It reads the files twice: first to recognize the points and to compare their clocks, then to match the
// packets.
package points

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
)

// File is a capture file that can be read several times.
type File struct {
	Path string
	Name string // for messages
}

// Point is a place at which packets were captured, with the clock of that place.
type Point struct {
	Name    string
	Address string // of the host at this point; empty if there is none, or several
	Packets int64  // frames that the capture holds
	Link    capture.LinkType
	Snap    uint32 // snapshot length in bytes; 0 if it is not known

	// Offset is how far this clock is ahead of the reference clock at this point's first packet, in nanoseconds.
	Offset int64
	// Drift is what this clock gains, in parts per million, if that is known.
	Drift      float64
	DriftKnown bool
	Known      bool    // Offset and Error are known
	Reference  bool    // it has the reference clock
	Error      int64   // of the offset, in nanoseconds
	DriftError float64 // largest difference from the drifts that the packets allow, in parts per million
	Steps      []Step  // of this clock, compared with the reference

	sources     []*source
	counts      bool  // packets have the numbers in which they come, because they are in several files
	first, last int64 // span of the capture on the reference clock
	gap         int64 // half of the gaps, in nanoseconds
}

// Step is a jump of a clock.
type Step struct {
	Packet int64 // number of the first frame after it
	Time   int64 // of that frame on the reference clock
	By     int64 // nanoseconds; positive if the clock jumped ahead
}

// Plan describes the points of a capture.
type Plan struct {
	Points []Point
	Notes  []string // what a person should know, in full sentences

	files    []File
	sources  []*source
	dirs     directions
	paths    map[int32][]int   // indexes of the points that see the packets of a direction, in their order
	longest  map[int32]int64   // longest delay of a direction in the samples, in nanoseconds
	shortest map[int32]int64   // shortest delay
	between  map[[2]int32]bool // directions and points that are not at the sender of the direction
	trusted  map[[2]int]bool   // pairs of points between which the IP identification does not change
	same     bool              // some files hold the same packets with the same times
	memory   int64
	tunnels  []link.Tunnel
	told     bool      // the user says that the files are points
	unusable *relation // one that makes no points, because the clocks cannot be compared, or are one

	clocks    []*source // those of the files whose clock the caller named
	reference *source   // whose clock is the reference
}

// Joined reports whether the capture has several points, or packets that files have in common.
func (p *Plan) Joined() bool { return len(p.Points) > 1 || p.same || len(p.LeftOut()) > 0 }

// LeftOut returns the names of the files, or of their interfaces, whose packets are not used. They show the same traffic as others, and their
// clocks cannot be compared, so no time of one says anything about the other.
func (p *Plan) LeftOut() (names []string) {
	base := baseNames(p.files)
	for i, src := range p.sources {
		if src.leftOut {
			names = append(names, p.nameOf(base, i))
		}
	}
	return names
}

// leaveOut leaves out sources that show the same traffic as others, if the clocks cannot be compared. Of two such sources the one is
// used that has the reference clock, or more frames of both directions.
func (p *Plan) leaveOut(all []*relation, g groups, root int) {
	joined := slices.Clone(g)
	for _, r := range all {
		if r.usable() {
			joined.join(r.a, r.b)
		}
	}
	weight := func(i int) (n int64) {
		if joined.of(i) == joined.of(root) && len(p.clocks) > 0 {
			return math.MaxInt64
		}
		for j, src := range p.sources {
			if joined.of(j) == joined.of(i) {
				n += src.bothWays()
			}
		}
		return n
	}
	for _, r := range all {
		if r.usable() || !p.substantial(r) || joined.of(r.a) == joined.of(r.b) || p.sources[r.a].leftOut || p.sources[r.b].leftOut {
			continue
		}
		out := r.b
		if weight(r.b) > weight(r.a) {
			out = r.a
		}
		for j, src := range p.sources {
			src.leftOut = src.leftOut || joined.of(j) == joined.of(out)
		}
	}
}

// substantial reports whether sources have at least a quarter of their packets in common, so that they show the same traffic: a packet that was
// retransmitted may be in two captures of one point, too.
func (p *Plan) substantial(r *relation) bool {
	return 4*r.shared >= min(len(p.sources[r.a].samples), len(p.sources[r.b].samples))
}

// leaveOutCut leaves out sources that captured so few bytes of each packet that none can be recognized, although others captured
// packets in the same direction: each of their packets would count twice.
func (p *Plan) leaveOutCut(all []*relation) {
	for i, src := range p.sources {
		if 2*(src.cut[0]+src.cut[1]) <= src.frames || slices.ContainsFunc(all, func(r *relation) bool { return r.a == i || r.b == i }) {
			continue
		}
		other := slices.IndexFunc(p.sources, func(other *source) bool {
			for _, x := range other.samples {
				if x.dir == src.cutDir {
					return true
				}
			}
			return false
		})
		if other < 0 {
			continue
		}
		src.leftOut = true
		names := baseNames(p.files)
		p.Notes = append(p.Notes, fmt.Sprintf("%s has packets of the same hosts as %s, but too few bytes of each to recognize them: %s is left out; capture at least 128 bytes of each packet", p.nameOf(names, i), p.nameOf(names, other), p.nameOf(names, i)))
	}
}

// bothWays returns the number of frames of a source, of which those of hosts that only send or only receive count as one.
func (src *source) bothWays() int64 {
	if src.oneWay {
		return 1
	}
	return src.frames
}

// Clocks returns the number of points that have files that Options.Clock names.
func (p *Plan) Clocks() int {
	points := map[int]bool{}
	for _, src := range p.clocks {
		points[src.point] = true
	}
	return len(points)
}

// clock converts the times of a source to those of another one.
type clock struct {
	segments []segment
}

// of returns the segment for a frame.
func (c *clock) of(number int64) *segment {
	for i := len(c.segments) - 1; i > 0; i-- {
		if number >= c.segments[i].from {
			return &c.segments[i]
		}
	}
	return &c.segments[0]
}

// at returns the segment for a time of the other clock.
func (c *clock) at(t int64) *segment {
	for i := len(c.segments) - 1; i > 0; i-- {
		if s := &c.segments[i]; s.back(t) >= s.x0 {
			return s
		}
	}
	return &c.segments[0]
}

// back converts a time of the other clock.
func (c *clock) back(t int64) int64 { return c.at(t).back(t) }

// time returns the time of a frame on the reference clock.
func (src *source) time(number, t int64) int64 {
	t = src.settled(number, t)
	for _, c := range src.chain {
		t = c.back(t)
	}
	return t
}

// Options select the reference clock and limit memory.
type Options struct {
	// Points says that the files, or the interfaces of one, are points of the same traffic, however little shows it.
	Points bool

	Clock  []string // paths of the files whose clock is the reference; the first file if there are none
	Memory int64    // in bytes

	Tunnels []link.Tunnel // UDP ports of tunnels, in addition to the known ones
}

// Recognize reads capture files and recognizes points. Of a file that is damaged, it takes the part before the damage,
// and returns no error: the [Source] that [Plan.Open] returns reads the file again, and returns it then.
func Recognize(ctx context.Context, files []File, o Options) (*Plan, error) {
	s := newSampler(o.Memory)
	s.eye.link.Tunnels = o.Tunnels
	for i, f := range files {
		from, err := capture.OpenParts(ctx, []capture.Part{{Path: f.Path, Name: f.Name, Take: func(*capture.Frame) bool { return true }}})
		if err != nil {
			return nil, err
		}
		_ = s.read(ctx, i, from)
		for _, src := range s.sources {
			src.drops = src.drops || src.file == i && from.Dropped() > 0
		}
		from.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	p := &Plan{files: files, sources: s.sources, dirs: s.dirs, memory: o.Memory, tunnels: o.Tunnels, told: o.Points}
	p.joinSeries()
	p.recognize(ctx, o.Clock)
	return p, ctx.Err()
}

// relation is how the captures of two sources compare.
type relation struct {
	a, b     int // indexes of the sources
	shared   int // packets that both captured once
	fitting  int // of these, those that the line fits
	segments []segment
	same     bool           // all times differ by the same
	exact    int64          // that difference
	first    map[int32]bool // directions whose packets a captured first
	longest  map[int32]int64
	shortest map[int32]int64
	sameIDs  bool
	oneWay   bool // there are packets of one direction only
}

// fewShared is the number of common packets that show that two captures are of the same traffic.
const fewShared = 8

// fewestShared returns that number. If the user says that they are, a line between their clocks needs one in each direction.
func (p *Plan) fewestShared() int {
	if p.told {
		return 2
	}
	return fewShared
}

// recognize finds the points.
func (p *Plan) recognize(ctx context.Context, reference []string) {
	all := p.relations()
	all = p.settleSteps(ctx, all)
	if i := slices.IndexFunc(all, func(r *relation) bool { return r.same || !r.usable() }); i >= 0 {
		p.unusable = all[i]
	}
	g := p.group(all)
	root := p.root(reference)
	if len(p.sources) > 0 {
		p.reference = p.sources[root]
	}
	p.leaveOut(all, g, root)
	p.leaveOutCut(all)
	p.span(all, g, root)
	p.place(all, g)
	p.route(all)
	p.findBetween()
	p.describe()
	p.note(all)
	for _, src := range p.sources {
		src.samples = nil
	}
}

// relations compares the sources.
func (p *Plan) relations() (all []*relation) {
	for _, src := range p.sources {
		src.findMirrors()
		src.shares = false
		src.oneWay = !p.hasBothWays(src)
		clear(src.strays)
	}
	for _, c := range p.candidates() {
		if r := p.compare(c[0], c[1]); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// hasBothWays reports whether a source captured the packets of both directions of some pair of hosts.
func (p *Plan) hasBothWays(src *source) bool {
	dirs := map[int32]bool{}
	for _, x := range src.samples {
		dirs[x.dir] = true
	}
	for dir := range dirs {
		if back := p.dirs.find(p.dirs.list[dir].reversed()); back >= 0 && dirs[back] {
			return true
		}
	}
	return false
}

// root returns the index of the source whose clock is the reference, and notes all sources of the files that the caller named.
func (p *Plan) root(reference []string) (root int) {
	for i, src := range p.sources {
		named := func(name string) bool {
			return name == src.name || slices.ContainsFunc(src.pieces, func(part piece) bool {
				f := p.files[part.file]
				return name == f.Path || name == f.Name || name == filepath.Base(f.Path)
			})
		}
		if !slices.ContainsFunc(reference, named) {
			continue
		}
		if p.clocks == nil {
			root = i
		}
		p.clocks = append(p.clocks, src)
	}
	return root
}

// pairsOf returns the packets that two sources captured once each.
func (p *Plan) pairsOf(a, b *source) (pairs []pair) {
	swap := len(a.samples) > len(b.samples)
	few, many := a, b
	if swap {
		few, many = b, a
	}
	for key, x := range few.samples {
		y, both := many.samples[key]
		if !both || x.dir != y.dir || !x.single(few) || !y.single(many) {
			continue
		}
		if swap {
			x, y = y, x
		}
		pairs = append(pairs, pair{x: x.first, d: y.first - x.first, order: y.number, dir: x.dir, sameID: x.id != 0 && x.id == y.id})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.x, b.x)) })
	return pairs
}

// manyOfDirection is a number of packets of a direction of which a point that they pass captures at least a tenth.
const manyOfDirection = 100

// leaveOutStrays removes the directions from a relation whose packets do not pass both sources. A switch sends a packet for an Ethernet
// address that it does not know to all its ports, so that a few packets of a direction may come to a point that the others do not pass.
func (p *Plan) leaveOutStrays(r *relation, pairs []pair) {
	if len(r.segments) == 0 {
		return
	}
	a, b, line := p.sources[r.a], p.sources[r.b], &clock{r.segments}
	from, to := max(a.first, line.of(1).back(b.first)), min(a.settled(math.MaxInt64, a.last), line.of(math.MaxInt64).back(b.settled(math.MaxInt64, b.last))) // by the clock of a
	count := func(src *source, timeOf func(x sample) int64) map[int32]int {
		n := map[int32]int{}
		for _, x := range src.samples {
			if t := timeOf(x); t >= from && t <= to && x.single(src) {
				n[x.dir]++
			}
		}
		return n
	}
	inA := count(a, func(x sample) int64 { return x.first })
	inB := count(b, func(x sample) int64 { return line.of(x.number).back(x.first) })
	common := map[int32]int{}
	for i := range pairs {
		common[pairs[i].dir]++
	}
	for dir := range r.first {
		if most := max(inA[dir], inB[dir]); most < manyOfDirection || 10*common[dir] >= most {
			continue
		}
		if delete(r.first, dir); inA[dir] < inB[dir] {
			a.strays[dir] = true
		} else {
			b.strays[dir] = true
		}
	}
	if len(r.first) == 0 {
		r.segments = nil
	}
}

// retransmits reports whether the packets that two sources have in common may be those that senders retransmitted, to a later file of the same
// point: the later source begins soon after the end of the other, or, if many packets are common, at once, has other packets, too, and no line
// between their clocks explains the times. Two clocks rarely differ by just as much as a capture lasts. Clocks cannot be compared by few packets of one direction in any case.
func (p *Plan) retransmits(r *relation) bool {
	const soon, atOnce = 10e9, 100e6
	x, y := p.sources[r.a], p.sources[r.b]
	if !apart(x, y) {
		return false
	}
	few, later := r.shared < manyOfDirection, max(x.first, y.first)-min(x.last, y.last)
	mostly := 2*r.shared >= min(len(x.samples), len(y.samples)) // of the packets that one of them has
	return few && (r.oneWay || later < soon && !mostly) || later < atOnce && 10*r.fitting < 9*r.shared && 10*r.shared < 9*min(len(x.samples), len(y.samples))
}

// fittedPairs limits the number of pairs to which lines are fitted.
const fittedPairs = 1 << 15

// compare returns how two sources compare, or nil if they have no packets in common.
func (p *Plan) compare(a, b int) *relation {
	pairs := p.pairsOf(p.sources[a], p.sources[b])
	if len(pairs) < p.fewestShared() {
		return nil
	}
	r := &relation{a: a, b: b, shared: len(pairs), first: map[int32]bool{}, longest: map[int32]int64{}, shortest: map[int32]int64{}}
	equal, ids := 0, 0
	for i := range pairs {
		if pairs[i].d == pairs[len(pairs)/2].d {
			equal++
		}
		if pairs[i].sameID {
			ids++
		}
	}
	r.sameIDs = ids*100 >= len(pairs)*98 && p.varies(a)
	if equal == len(pairs) && (equal >= fewShared || pairs[0].d == 0) {
		r.same, r.exact = true, pairs[0].d
		r.segments = []segment{{line: line{x0: pairs[0].x, x1: pairs[0].x, offset: float64(r.exact)}}}
		r.fitting = len(pairs)
		return r
	}
	if len(pairs) >= fewPairs {
		pairs = clusters(pairs)
	}
	if len(pairs) < p.fewestShared() || 2*len(pairs) < r.shared {
		return nil
	}
	p.arrange(r, pairs)
	if !p.told && p.retransmits(r) {
		return nil
	}
	p.leaveOutStrays(r, pairs)
	return r
}

// varies reports whether the IP identification of a source is not constant.
func (p *Plan) varies(a int) bool {
	values := map[uint16]bool{}
	for _, x := range p.sources[a].samples {
		if values[x.id] = true; len(values) > 3 {
			return true
		}
	}
	return false
}

// arrange determines which source captured the packets of each direction first, and the line between their
// clocks.
func (p *Plan) arrange(r *relation, pairs []pair) {
	count := map[int32]int{}
	for i := range pairs {
		count[pairs[i].dir]++
	}
	// Directions of two hosts belong together: packets of one are above the line, those of the other below.
	type couple struct {
		dirs [2]int32
		n    int
	}
	var couples []couple
	for dir, n := range count {
		back := p.dirs.find(p.dirs.list[dir].reversed())
		if back >= 0 && back < dir && count[back] > 0 {
			continue
		}
		c := couple{dirs: [2]int32{dir, -1}}
		if back >= 0 && count[back] > 0 && back != dir {
			c.dirs[1] = back
			c.n = min(n, count[back])
		}
		couples = append(couples, c)
	}
	slices.SortFunc(couples, func(x, y couple) int { return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(x.dirs[0], y.dirs[0])) })
	if couples[0].n == 0 {
		r.oneWay = true
		return
	}
	resolution := p.sources[r.a].resolution + p.sources[r.b].resolution
	above := map[int32]bool{}
	var segments []segment
	for i, c := range couples {
		if i == 0 {
			segments = p.orient(pairs, above, c.dirs, resolution)
			continue
		}
		// The line is known, roughly: the medians of further directions show their order.
		middle := medianDelay(pairs, segments, c.dirs[0])
		above[c.dirs[0]] = middle >= 0
		if c.dirs[1] >= 0 {
			above[c.dirs[1]] = middle < 0
		}
	}
	if len(couples) > 1 {
		f := newFitter(thin(withSides(pairs, above, nil), fittedPairs), resolution)
		if more := f.segments(); len(more) > 0 && len(more) <= len(segments) {
			segments = more
		}
	}
	if len(segments) == 0 || len(segments) > maxSegments {
		return
	}
	r.segments, r.first = segments, above
	c := clock{segments}
	for _, q := range withSides(pairs, above, nil) {
		delay := float64(q.d) - c.of(q.order).at(q.x)
		if !q.above {
			delay = -delay
		}
		if delay >= -float64(resolution)-c.of(q.order).gap {
			r.fitting++
			r.longest[q.dir] = max(r.longest[q.dir], int64(delay))
			if least, known := r.shortest[q.dir]; !known || int64(delay) < least {
				r.shortest[q.dir] = int64(delay)
			}
		}
	}
}

// maxSegments limits the number of steps of a clock. If more lines are needed, the times are not those of
// two clocks.
const maxSegments = 32

// orient finds out which of two directions is above the line. The simplest explanation counts, in either order: a flat line,
// then a drift, then a clock that stepped as few times as possible. With the right order the gap is wider.
func (p *Plan) orient(pairs []pair, above map[int32]bool, dirs [2]int32, resolution int64) []segment {
	var fitters [2]*fitter
	var sides [2]map[int32]bool
	for i, first := range []bool{true, false} {
		sides[i] = map[int32]bool{dirs[0]: first, dirs[1]: !first}
		fitters[i] = newFitter(thin(withSides(pairs, sides[i], dirs[:]), fittedPairs), resolution)
	}
	explain := func(segments func(f *fitter) []segment) (best []segment) {
		widest := math.Inf(-1)
		for i, f := range fitters {
			list := segments(f)
			if len(list) == 0 {
				continue
			}
			gap := math.Inf(1)
			for _, s := range list {
				gap = min(gap, s.gap)
			}
			if best == nil || len(list) < len(best) || len(list) == len(best) && gap > widest {
				best, widest = list, gap
				maps.Copy(above, sides[i])
			}
		}
		return best
	}
	for _, a := range attempts(len(fitters[0].pairs)) {
		if list := explain(func(f *fitter) []segment { return f.whole(a) }); list != nil {
			return list
		}
	}
	return explain((*fitter).stepped)
}

// withSides returns the pairs of some directions, or of all, with their sides.
func withSides(pairs []pair, above map[int32]bool, dirs []int32) (list []pair) {
	for _, q := range pairs {
		if dirs == nil || slices.Contains(dirs, q.dir) {
			q.above = above[q.dir]
			list = append(list, q)
		}
	}
	return list
}

// medianDelay returns the median of the differences of a direction from the line.
func medianDelay(pairs []pair, segments []segment, dir int32) float64 {
	if len(segments) == 0 {
		return 0
	}
	c := clock{segments}
	var delays []float64
	for i := range pairs {
		if q := &pairs[i]; q.dir == dir {
			delays = append(delays, float64(q.d)-c.of(q.order).at(q.x))
		}
	}
	slices.Sort(delays)
	return delays[len(delays)/2]
}

// usable reports whether the relation joins its sources: the lines between their clocks explain nine of ten packets that both have.
func (r *relation) usable() bool { return len(r.segments) > 0 && 10*r.fitting >= 9*r.shared }

// span connects sources to the reference clock, along the relations whose lines hold for the most packets: a third source shows
// which of two clocks stepped. Groups of sources that have no relation to it keep their own clock.
func (p *Plan) span(all []*relation, g groups, root int) {
	slices.SortStableFunc(all, func(x, y *relation) int {
		return cmp.Compare(y.fitting/max(len(y.segments), 1), x.fitting/max(len(x.segments), 1))
	})
	joined := map[int]bool{}
	connect := func(from int) {
		joined[from] = true
		if src := p.sources[from]; src.root == nil {
			src.root = src
		}
		for grown := true; grown; {
			grown = false
			for _, r := range all {
				if !r.usable() || joined[r.a] == joined[r.b] {
					continue
				}
				known, other, c := r.a, r.b, &clock{r.segments}
				if joined[r.b] {
					known, other, c = r.b, r.a, r.inverse()
				}
				p.sources[other].chain = append([]*clock{c}, p.sources[known].chain...)
				p.sources[other].root = p.sources[known].root
				joined[other], grown = true, true
				break
			}
		}
	}
	for next := root; len(p.sources) > 0 && next >= 0; {
		connect(next)
		next = -1
		known := map[int]int{} // by group: a source whose clock is known
		for i := range p.sources {
			if joined[i] {
				known[g.of(i)] = i
			}
		}
		for i := range p.sources {
			if joined[i] {
				continue
			}
			if next < 0 {
				next = i
			}
			if j, is := known[g.of(i)]; is { // It has the clock of a source of the same point.
				p.sources[i].chain, p.sources[i].root, next = p.sources[j].chain, p.sources[j].root, i
				break
			}
		}
	}
}

// jump is a step of the clock of a source.
type jump struct {
	from int64 // number of the first frame after it
	time int64 // of that frame, by the clock of the source
	by   int64 // nanoseconds; positive if the clock jumped ahead
}

// settled returns the time of a frame as if the clock of its source had never jumped.
func (src *source) settled(number, t int64) int64 {
	for _, j := range src.jumps {
		if number >= j.from {
			t -= j.by
		}
	}
	return t
}

// settleSteps finds out which of two clocks stepped, and lets the times of that source go on as if it had not: no time that a
// clock skipped passed between two packets. It returns the relations of the settled times.
func (p *Plan) settleSteps(ctx context.Context, all []*relation) []*relation {
	for range maxSegments {
		var stepped *source
		for _, r := range all {
			if stepped = p.settleStep(ctx, all, r); stepped != nil {
				break
			}
		}
		if stepped == nil {
			break
		}
		var next []*relation
		for _, r := range all {
			if p.sources[r.a] == stepped || p.sources[r.b] == stepped {
				r = p.compare(r.a, r.b)
			}
			if r != nil {
				next = append(next, r)
			}
		}
		all = next
	}
	return all
}

// settleStep settles one step of the clocks of a relation, and returns the source whose clock stepped, or nil.
func (p *Plan) settleStep(ctx context.Context, all []*relation, r *relation) *source {
	if !r.usable() {
		return nil
	}
	for i := 1; i < len(r.segments); i++ {
		s, by := &r.segments[i], r.step(i)
		if math.Abs(by) <= r.segments[i-1].gap+s.gap+float64(p.sources[r.b].resolution) {
			continue
		}
		if !p.firstStepped(all, r, i) {
			return p.settle(ctx, r.b, s, by)
		}
		if q := p.compare(r.b, r.a); q != nil { // with the numbers of the frames of a
			for j := 1; j < len(q.segments); j++ {
				if of := q.step(j); math.Abs(of+by) < math.Abs(by)/8 {
					return p.settle(ctx, r.a, &q.segments[j], of)
				}
			}
		}
	}
	return nil
}

// step returns by how much the clock of b jumps before a segment.
func (r *relation) step(i int) float64 {
	s := &r.segments[i]
	return s.at(s.x0) - r.segments[i-1].at(s.x0)
}

// settle lets the times of a source go on as if its clock had not jumped before a segment. The jump is before the frame among those that
// are no samples before which the times differ by it, and by as little as possible more.
func (p *Plan) settle(ctx context.Context, i int, s *segment, by float64) *source {
	src := p.sources[i]
	j := jump{by: int64(by)}
	j.from, j.time = p.stepBetween(ctx, src, s.after, s.from, j.by-int64(s.gap)-src.resolution)
	src.jumps = append(src.jumps, j)
	for key, x := range src.samples {
		if x.number >= j.from {
			x.first -= j.by
			if x.second != 0 {
				x.second -= j.by
			}
			src.samples[key] = x
		}
	}
	return src
}

// firstStepped reports whether the clock of a, and not that of b, stepped before a segment. A third source shows it. Otherwise, times that
// go back do; or the clock jumped ahead that shows so long without packets, if the other shows much less than the jump.
func (p *Plan) firstStepped(all []*relation, r *relation, i int) bool {
	s, by := &r.segments[i], r.step(i)
	other := s.x0 + int64(s.offset)
	if a, b := p.isSteady(all, r, r.a, s.x0), p.isSteady(all, r, r.b, other); a != b {
		return b
	}
	var before, after pair
	for _, q := range p.pairsOf(p.sources[r.a], p.sources[r.b]) {
		switch {
		case q.order <= s.after && math.Abs(float64(q.d)-r.segments[i-1].at(q.x)) < math.Abs(by)/2:
			before = q
		case q.order >= s.from && math.Abs(float64(q.d)-s.at(q.x)) < math.Abs(by)/2 && after.order == 0:
			after = q
		}
	}
	atFirst := after.x - before.x
	atOther := atFirst + after.d - before.d
	if by > 0 {
		return float64(atFirst) < -s.gap
	}
	return float64(atOther) >= -s.gap && float64(atOther) < -by/10
}

// isSteady reports whether a relation with a third source shows that a clock did not step at a time of its own.
func (p *Plan) isSteady(all []*relation, except *relation, i int, t int64) bool {
	return slices.ContainsFunc(all, func(r *relation) bool {
		if r == except || r.a != i && r.b != i || !r.usable() || len(r.segments) > 1 {
			return false
		}
		s := &r.segments[0]
		from, to := s.x0, s.x1
		if r.b == i {
			from, to = from+int64(s.offset), to+int64(s.at(to))
		}
		return from < t && t < to
	})
}

// stepBetween returns the number of the frame of a source that is in the range (after, upTo] and comes least, and at least by a
// time, later than the one before it by the clock of the source, and its time; if there is none, it returns those of upTo.
func (p *Plan) stepBetween(ctx context.Context, src *source, after, upTo, by int64) (number, at int64) {
	part := src.pieces[0]
	for _, next := range src.pieces {
		if next.base < upTo {
			part = next
		}
	}
	file := p.files[part.file]
	from, err := capture.OpenParts(ctx, []capture.Part{{Path: file.Path, Name: file.Name, Take: func(f *capture.Frame) bool {
		n := part.base + f.Number
		return n >= after && n <= upTo && (f.From == nil || f.From.Index == src.origin)
	}}})
	if err != nil { // It was read before. The source that reads it again reports the error.
		return upTo, 0
	}
	defer from.Close()
	number, before, least := upTo, int64(0), int64(math.MaxInt64)
	for f, err := range capture.All(ctx, from) {
		if err != nil {
			break
		}
		n := part.base + f.Number
		if d := f.Time - before - by; n > after && (d >= 0 && d < least || at == 0 && n == upTo) {
			number, at, least = n, f.Time, d
		}
		if before = f.Time; n >= upTo {
			break
		}
	}
	return number, at
}

// inverse returns the clock of a relation that converts times of a to those of b.
func (r *relation) inverse() *clock {
	c := &clock{}
	for _, s := range r.segments {
		l := s.line
		l.offset, l.x0, l.x1 = -s.offset, s.x0+int64(math.Round(s.offset)), s.x1+int64(math.Round(s.at(s.x1)))
		l.slope = 1/(1+s.slope) - 1
		c.segments = append(c.segments, segment{line: l})
	}
	return c
}

// baseNames returns the shortest names of files that distinguish them.
func baseNames(files []File) []string {
	names := make([]string, len(files))
	count := map[string]int{}
	for i, f := range files {
		names[i] = filepath.Base(f.Name)
		count[names[i]]++
	}
	for i, f := range files {
		if count[names[i]] > 1 {
			names[i] = f.Name
		}
	}
	return names
}

// nameOf returns the name of a source.
func (p *Plan) nameOf(names []string, i int) string {
	name := p.firstNameOf(names, i)
	if n := len(p.sources[i].pieces); n > 1 {
		name += fmt.Sprintf(" and %d more", n-1)
	}
	return name
}

// firstNameOf returns the name of a source, or of its first file if it has several.
func (p *Plan) firstNameOf(names []string, i int) string {
	src := p.sources[i]
	several := slices.ContainsFunc(p.sources, func(other *source) bool { return other != src && other.file == src.file })
	switch {
	case !several:
		return names[src.file]
	case src.name != "" && !slices.ContainsFunc(p.sources, func(other *source) bool { return other != src && other.file == src.file && other.name == src.name }):
		return fmt.Sprintf("%s (%s)", names[src.file], src.name)
	}
	return fmt.Sprintf("%s (interface %d)", names[src.file], src.origin)
}
