package points

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
)

// Which sources are compared. Of a folder with many files, most pairs have nothing in common.

// joinSeries makes one source of the files of a ring, which a program wrote one after the other: they have one clock, and their frames are
// numbered one after the other.
func (p *Plan) joinSeries() {
	spans, frames := map[string]capture.Span{}, map[int]int64{}
	for _, src := range p.sources {
		path := p.files[src.file].Path
		s, known := spans[path]
		if !known {
			s = capture.Span{First: src.first, Last: src.last}
		}
		spans[path] = capture.Span{First: min(s.First, src.first), Last: max(s.Last, src.last)}
		frames[src.file] += src.frames
	}
	var paths []string
	for _, f := range p.files {
		paths = append(paths, f.Path)
	}
	of := map[int][]*source{}
	for _, src := range p.sources {
		src.pieces = []piece{{file: src.file, first: src.first, last: src.last}}
		of[src.file] = append(of[src.file], src)
	}
	list := capture.SeriesOf(paths, func(path string) (capture.Span, bool) {
		s, known := spans[path]
		return s, known
	})
	switch {
	case p.told && len(list) == 1 && len(list[0].Files) == len(spans):
		list = nil
	case list == nil && !p.told:
		list = p.successive(spans)
	}
	others := p.outside(spans, list)
	for _, series := range list {
		heads, base := map[int]*source{}, int64(0)
		for i, file := range series.Files {
			afterGap := slices.ContainsFunc(series.Missing, func(a capture.Absent) bool { return a.Before == file })
			if i > 0 && fills(others, spans[p.files[series.Files[i-1]].Path], spans[p.files[file].Path]) {
				heads, base = map[int]*source{}, 0
			}
			for _, src := range of[file] {
				src.pieces[0].afterGap = afterGap
				if head := heads[src.origin]; head != nil {
					head.absorb(src, base)
				} else {
					heads[src.origin] = src
					src.pieces[0].base = base
				}
			}
			base += frames[file]
		}
	}
	p.tidy()
}

// outside returns the times of the files that are in no series.
func (p *Plan) outside(spans map[string]capture.Span, list []capture.Series) (times []capture.Span) {
	in := make([]bool, len(p.files))
	for _, series := range list {
		for _, file := range series.Files {
			in[file] = true
		}
	}
	for i, f := range p.files {
		if s, known := spans[f.Path]; known && !in[i] {
			times = append(times, s)
		}
	}
	return times
}

// fills reports whether one of these times is between two files of a series, and takes all of the time between them.
func fills(times []capture.Span, before, after capture.Span) bool {
	from, to := before.Last, after.First
	return slices.ContainsFunc(times, func(s capture.Span) bool {
		return s.First >= from-overlaps && s.First <= from+soon && s.Last >= to-soon && s.Last <= to+overlaps
	})
}

// tidy removes the sources that others have absorbed. The order of the others is that of the files as the user named them, and of their interfaces.
func (p *Plan) tidy() {
	p.sources = slices.DeleteFunc(p.sources, func(src *source) bool { return src.samples == nil })
	slices.SortStableFunc(p.sources, func(a, b *source) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.origin, b.origin)) })
}

// apart reports whether the times of two sources do not overlap, by their own clocks.
func apart(a, b *source) bool { return a.last <= b.first || b.last <= a.first }

// maxHolders limits the sources that are compared because of one packet, which may be in every file of a folder.
const maxHolders = 16

// candidates returns the pairs of sources that have packets in common, if they are not few. Captures whose times do not
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
		a.shares, b.shares = true, true
		if n >= p.fewestShared() && (p.told || !apart(a, b) || 2*n >= min(len(a.samples), len(b.samples))) {
			pairs = append(pairs, pair)
		}
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return pairs
}

// Limits of the times between two files of one capture, in nanoseconds.
const (
	overlaps = 100e6 // by which the frames of two files may be in disorder
	soon     = 10e9  // within which a file begins after the end of the one before
)

// successive returns all files as one series, whatever their names are, if each begins soon after the end of the one before: a capture was
// divided into them. The clocks of two points rarely make that so for several files.
func (p *Plan) successive(spans map[string]capture.Span) []capture.Series {
	const fewest = 3
	var files []int
	for i, f := range p.files {
		if _, has := spans[f.Path]; has {
			files = append(files, i)
		}
	}
	of := func(i int) capture.Span { return spans[p.files[i].Path] }
	slices.SortStableFunc(files, func(a, b int) int {
		return cmp.Or(cmp.Compare(of(a).First, of(b).First), cmp.Compare(of(a).Last, of(b).Last))
	})
	if len(files) < fewest {
		return nil
	}
	for n, i := range files[1:] {
		if by := of(i).First - of(files[n]).Last; by < -overlaps || by > soon {
			return nil
		}
	}
	return []capture.Series{{Files: files}}
}
