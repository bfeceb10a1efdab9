package points

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
)

// Which sources are compared. Of a folder with many files, most pairs have nothing in common.

// findSeries finds out which files one program wrote one after the other. They are one point.
func (p *Plan) findSeries() {
	spans := map[string]capture.Span{}
	for _, src := range p.sources {
		path := p.files[src.file].Path
		s, known := spans[path]
		if !known {
			s = capture.Span{First: src.first, Last: src.last}
		}
		spans[path] = capture.Span{First: min(s.First, src.first), Last: max(s.Last, src.last)}
	}
	var paths []string
	p.series = make([]int, len(p.files))
	for i, f := range p.files {
		paths = append(paths, f.Path)
		p.series[i] = -1
	}
	span := func(path string) (capture.Span, bool) {
		s, known := spans[path]
		return s, known
	}
	for n, s := range capture.SeriesOf(paths, span) {
		for _, i := range s.Files {
			p.series[i] = n
		}
	}
}

// inSeries reports whether two sources are files of one series.
func (p *Plan) inSeries(a, b *source) bool {
	return a.file != b.file && p.series[a.file] >= 0 && p.series[a.file] == p.series[b.file]
}

// maxHolders limits the sources that are compared because of one packet, which may be in every file of a folder.
const maxHolders = 16

// candidates returns the pairs of sources that have packets in common, except those of one series. Captures whose times do not
// overlap may be of two clocks, but then they have most packets in common.
func (p *Plan) candidates() (pairs [][2]int) {
	type holder struct {
		key    uint64
		source int
	}
	var all []holder
	for i, src := range p.sources {
		for key := range src.samples {
			all = append(all, holder{key, i})
		}
	}
	slices.SortFunc(all, func(a, b holder) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.source, b.source)) })
	shared := map[[2]int]int{}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].key == all[from].key {
			to++
		}
		for i := from; i < to; i++ {
			for j := i + 1; j < min(to, i+maxHolders); j++ {
				shared[[2]int{all[i].source, all[j].source}]++
			}
		}
		from = to
	}
	for pair, n := range shared {
		a, b := p.sources[pair[0]], p.sources[pair[1]]
		apart := a.last < b.first || b.last < a.first
		if n >= fewShared && !p.inSeries(a, b) && (!apart || 2*n >= min(len(a.samples), len(b.samples))) {
			pairs = append(pairs, pair)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return pairs
}
