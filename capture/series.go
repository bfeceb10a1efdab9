package capture

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Series are files that a program wrote one after the other, as tcpdump -C or dumpcap -b do: their names differ only in
// numbers, and their times do not overlap.
type Series struct {
	Files   []int    // indexes of the files in the order of their times; those without frames come last
	Missing []Absent // files that seem to be missing
}

// Absent are files of a series that are missing between two others.
type Absent struct {
	After, Before int // indexes of the files before and after
	Count         int // number of missing files, by the numbers in the names
}

// MissingFiles are files of a series that are missing between two others, whose names these are.
type MissingFiles struct {
	After, Before string
	Count         int
}

// borders is the longest overlap of the times of two files of a series, in nanoseconds: packets that several queues of an adapter
// received at the same time are not always written in order.
const borders = 100e6

// SeriesOf returns the series among files, whose spans are those that a function returns, such as [SpanOf]. Files that belong to none
// are not in the result.
func SeriesOf(paths []string, span func(path string) (Span, bool)) (list []Series) {
	families := map[string][]int{}
	var order []string
	for i, path := range paths {
		name := familyOf(path)
		if families[name] == nil {
			order = append(order, name)
		}
		families[name] = append(families[name], i)
	}
	for _, name := range order {
		if files := families[name]; len(files) > 1 {
			if s, is := seriesOf(paths, files, span); is {
				list = append(list, s)
			}
		}
	}
	return list
}

// nameOf returns the last element of a path without the ending of a compressed file: the older files of a ring may be compressed.
func nameOf(path string) string {
	base := filepath.Base(path)
	for _, ending := range []string{".gz", ".zst"} {
		base = strings.TrimSuffix(base, ending)
	}
	return base
}

// familyOf returns the path without the numbers in its last element. The first file of tcpdump -C has none.
func familyOf(path string) string {
	folder, base := filepath.Dir(path), nameOf(path)
	var b strings.Builder
	digits := false
	for _, r := range base {
		if is := r >= '0' && r <= '9'; !is {
			b.WriteRune(r)
			digits = false
		} else if !digits {
			digits = true
		}
	}
	return folder + "/" + b.String()
}

// digitsIn returns the numbers in the last element of a path as they are written.
func digitsIn(path string) []string {
	return strings.FieldsFunc(nameOf(path), func(r rune) bool { return r < '0' || r > '9' })
}

// numbersIn returns the numbers in the last element of a path.
func numbersIn(path string) (numbers []uint64) {
	for _, digits := range digitsIn(path) {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			n = 0
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// seriesOf returns the series of files with similar names, and whether they are one. Files without frames have no times, but
// belong to it: a program that begins a file every few seconds writes them while nothing happens.
func seriesOf(paths []string, files []int, spanOf func(string) (Span, bool)) (s Series, is bool) {
	spans := map[int]Span{}
	var empty []int
	for _, i := range files {
		span, known := spanOf(paths[i])
		switch {
		case known:
			spans[i] = span
			s.Files = append(s.Files, i)
		case isEmpty(paths[i]):
			empty = append(empty, i)
		default:
			return s, false
		}
	}
	slices.SortStableFunc(s.Files, func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].First, spans[b].First), cmp.Compare(spans[a].Last, spans[b].Last))
	})
	for n := 1; n < len(s.Files); n++ {
		if spans[s.Files[n]].First < spans[s.Files[n-1]].Last-borders {
			return s, false
		}
	}
	s.Missing = absent(paths, s.Files, empty)
	s.Files = append(s.Files, empty...)
	return s, len(s.Files) > len(empty)
}

// isEmpty reports whether a file is a capture without frames.
func isEmpty(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // Opening a pipe would wait.
		return false
	}
	f, err := Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var b Batch
	return f.ReadBatch(context.Background(), &b) == io.EOF && len(b.Frames) == 0
}

// absent returns the files that are missing in a series, by the numbers in the names. The number that counts is the one that
// increases by 1 most often; a ring with a limited number of files starts again. Files are in the order of their times, and do not
// contain the empty ones.
func absent(paths []string, files, empty []int) (list []Absent) {
	numbers, columns := map[int][]uint64{}, 0
	for _, i := range slices.Concat(files, empty) {
		numbers[i] = numbersIn(paths[i])
		columns = max(columns, len(numbers[i]))
	}
	var best []int // files with the empty ones between them
	column, most := 0, 0
	for c := range columns {
		chain := withEmpty(numbers, files, empty, c)
		steps := 0
		for n := 1; n < len(chain); n++ {
			if step(numbers, chain[n-1], chain[n], c) == 1 {
				steps++
			}
		}
		if steps > most {
			column, most, best = c, steps, chain
		}
	}
	if 2*most < len(best)-1 {
		return nil
	}
	for n := 1; n < len(best); n++ {
		const largest = 1 << 20 // A larger gap is another number, such as a time.
		if by := step(numbers, best[n-1], best[n], column); by > 1 && by < largest && !jumps(digitsIn(paths[best[n-1]])[column], digitsIn(paths[best[n]])[column]) {
			list = append(list, Absent{best[n-1], best[n], int(by - 1)})
		}
	}
	return list
}

// jumps reports whether no number may be missing between two numbers: tcpdump -C appended its own number to one that the name ended
// with, or the numbers may be times, of which the latter begins a minute, an hour, a day, a month or a year, such as 0959 and 1000.
func jumps(a, b string) bool {
	if len(b) > len(a) && strings.HasPrefix(b, a) {
		return true
	}
	n := len(a) - 2
	return n > 0 && len(b) == len(a) && (b[n:] == "00" || b[n:] == "01") &&
		slices.Contains([]string{"12", "23", "28", "29", "30", "31", "59"}, a[n:])
}

// step returns by how much a number in the names of two files increases; it is 0 if it decreases or a name lacks it.
func step(numbers map[int][]uint64, from, to, column int) uint64 {
	if a, b := numbers[from], numbers[to]; column < len(a) && column < len(b) && b[column] > a[column] {
		return b[column] - a[column]
	}
	return 0
}

// withEmpty returns files with each empty file between the two whose numbers in a column are below and above its own.
func withEmpty(numbers map[int][]uint64, files, empty []int, column int) (chain []int) {
	empty = slices.DeleteFunc(slices.Clone(empty), func(i int) bool { return column >= len(numbers[i]) })
	slices.SortFunc(empty, func(a, b int) int { return cmp.Compare(numbers[a][column], numbers[b][column]) })
	for n, i := range files {
		if n > 0 && step(numbers, files[n-1], i, column) > 1 {
			at, _ := slices.BinarySearchFunc(empty, numbers[files[n-1]][column]+1, func(i int, number uint64) int { return cmp.Compare(numbers[i][column], number) })
			for ; at < len(empty) && numbers[empty[at]][column] < numbers[i][column]; at++ {
				chain = append(chain, empty[at])
			}
		}
		chain = append(chain, i)
	}
	return chain
}
