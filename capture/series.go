package capture

import (
	"cmp"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
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
	base := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, nameOf(path))
	return filepath.Dir(path) + "/" + base
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
	if !isRegular(path) {
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
	digits := make([]string, len(best))
	for n, i := range best {
		if list := digitsIn(paths[i]); column < len(list) {
			digits[n] = list[column]
		}
	}
	forms := timesIn(digits)
	var present []uint64 // times may be in another order than numbers
	for _, i := range best {
		if column < len(numbers[i]) {
			present = append(present, numbers[i][column])
		}
	}
	slices.Sort(present)
	for n := 1; n < len(best); n++ {
		const largest = 1 << 20 // A larger gap is another number, such as a time.
		by := step(numbers, best[n-1], best[n], column)
		if by <= 1 || by >= largest || len(digits[n]) > len(digits[n-1]) && strings.HasPrefix(digits[n], digits[n-1]) { // tcpdump -C appends its number.
			continue
		}
		last := numbers[best[n]][column]
		above, _ := slices.BinarySearch(present, last-by+1)
		below, _ := slices.BinarySearch(present, last)
		by -= uint64(below - above)
		for _, f := range forms {
			by = min(by, f.between(digits[n-1], digits[n]))
		}
		if by > 1 {
			list = append(list, Absent{best[n-1], best[n], int(by - 1)})
		}
	}
	return list
}

// timeForm is a form in which a name has the time at which its file begins.
type timeForm struct {
	layout string
	unit   time.Duration
}

// timeForms are the forms that have only digits.
var timeForms = []timeForm{
	{"1504", time.Minute},
	{"0405", time.Second},
	{"0102", 24 * time.Hour},
	{"150405", time.Second},
	{"060102", 24 * time.Hour},
	{"20060102", 24 * time.Hour},
	{"01021504", time.Minute},
	{"0102150405", time.Second},
	{"0601021504", time.Minute},
	{"060102150405", time.Second},
	{"200601021504", time.Minute},
	{"20060102150405", time.Second},
}

// timesIn returns the forms of times that all numbers may have. The number after 0959 may be 1000, and no file is missing then.
func timesIn(numbers []string) (forms []timeForm) {
	for _, f := range timeForms {
		if !slices.ContainsFunc(numbers, func(digits string) bool { _, err := time.Parse(f.layout, digits); return err != nil }) {
			forms = append(forms, f)
		}
	}
	return forms
}

// between returns the number of units between two times of a form.
func (f timeForm) between(a, b string) uint64 {
	from, _ := time.Parse(f.layout, a)
	to, _ := time.Parse(f.layout, b)
	return uint64(max(to.Sub(from)/f.unit, 0))
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
