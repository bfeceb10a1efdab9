package capture

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Series are files that a program wrote one after the other, as tcpdump -C or dumpcap -b do: their names differ only in
// numbers, and their times do not overlap.
type Series struct {
	Files   []int    // indexes of the files in the order of their times
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

// familyOf returns the path without the numbers in its last element. The first file of tcpdump -C has none.
func familyOf(path string) string {
	folder, base := filepath.Split(path)
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
	return filepath.Clean(folder) + "/" + b.String()
}

// numbersIn returns the numbers in the last element of a path.
func numbersIn(path string) (numbers []uint64) {
	for _, digits := range strings.FieldsFunc(filepath.Base(path), func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			n = 0
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// seriesOf returns the series of files with similar names, and whether they are one.
func seriesOf(paths []string, files []int, spanOf func(string) (Span, bool)) (s Series, is bool) {
	spans := map[int]Span{}
	for _, i := range files {
		span, known := spanOf(paths[i])
		if !known {
			return s, false
		}
		spans[i] = span
	}
	s.Files = slices.Clone(files)
	slices.SortStableFunc(s.Files, func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].First, spans[b].First), cmp.Compare(spans[a].Last, spans[b].Last))
	})
	for n := 1; n < len(s.Files); n++ {
		if spans[s.Files[n]].First < spans[s.Files[n-1]].Last-borders {
			return s, false
		}
	}
	s.Missing = absent(paths, s.Files)
	return s, true
}

// absent returns the files that are missing in a series, by the numbers in the names. The number that counts is the one that
// increases by 1 most often; a ring with a limited number of files starts again.
func absent(paths []string, files []int) (list []Absent) {
	numbers := make([][]uint64, len(files))
	for n, i := range files {
		numbers[n] = numbersIn(paths[i])
	}
	column, best := -1, 0
	columns := 0
	for _, list := range numbers {
		columns = max(columns, len(list))
	}
	for c := range columns {
		steps := 0
		for n := 1; n < len(numbers); n++ {
			if c < len(numbers[n]) && c < len(numbers[n-1]) && numbers[n][c] == numbers[n-1][c]+1 {
				steps++
			}
		}
		if steps > best {
			column, best = c, steps
		}
	}
	for n := 1; column >= 0 && 2*best >= len(files)-1 && n < len(files); n++ {
		if column >= len(numbers[n]) || column >= len(numbers[n-1]) {
			continue
		}
		const most = 1 << 20 // A larger gap is another number, such as a time.
		if step := numbers[n][column] - numbers[n-1][column]; numbers[n][column] > numbers[n-1][column] && step > 1 && step < most {
			list = append(list, Absent{files[n-1], files[n], int(step - 1)})
		}
	}
	return list
}
