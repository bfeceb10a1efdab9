package memory

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/span"
)

// piece is a segment of these tests. Its owner is its name.
type piece = Segment[string]

// at returns a segment with a handle.
func at(name string, handle uint32, offset uint64, length uint32) *piece {
	return &piece{Target: Target{handle, offset, length}, Owner: &name}
}

// TestFind: the segment that a target names, among segments of its handle and of others.
func TestFind(t *testing.T) {
	var e Exposure[string]
	for _, p := range []*piece{at("low", 1, 100, 50), at("high", 1, 200, 50), at("other", 2, 100, 50), at("top", 3, 1<<64-10, 20)} {
		e.Add(p)
	}
	for _, test := range []struct {
		target Target
		want   string
		exact  bool
	}{
		{Target{1, 100, 50}, "low", true},
		{Target{1, 120, 30}, "low", true},
		{Target{1, 150, 0}, "low", true}, // nothing, at the end
		{Target{1, 120, 31}, "low", false},
		{Target{1, 99, 10}, "high", false}, // the latest with the handle
		{Target{1, 149, 2}, "low", false},
		{Target{1, 150, 1}, "high", false},
		{Target{1, 200, 50}, "high", true},
		{Target{1, 249, 1}, "high", true},
		{Target{1, 250, 1}, "high", false},
		{Target{2, 100, 50}, "other", true},
		{Target{3, 1<<64 - 10, 20}, "top", true},
		{Target{3, 1<<64 - 1, 11}, "top", true},
		{Target{3, 1<<64 - 1, 12}, "top", false},
		{Target{4, 100, 50}, "", false},
	} {
		s, exact := e.Find(test.target)
		name := ""
		if s != nil {
			name = *s.Owner
		}
		if name != test.want || exact != test.exact {
			t.Errorf("%+v: %q %v, want %q %v", test.target, name, exact, test.want, test.exact)
		}
	}
}

// TestLinks: segments of one handle are linked from the latest to the earliest, whichever of them are removed.
func TestLinks(t *testing.T) {
	for _, test := range []struct {
		remove []int
		want   string
	}{
		{nil, "3 2 1 0"},
		{[]int{3}, "2 1 0"},
		{[]int{0}, "3 2 1"},
		{[]int{1, 2}, "3 0"},
		{[]int{3, 3, 2}, "1 0"},
		{[]int{0, 1, 2, 3}, ""},
	} {
		var e Exposure[string]
		var all []*piece
		for i := range 4 {
			all = append(all, at(fmt.Sprint(i), 7, uint64(i)*100, 10))
			e.Add(all[i])
		}
		e.Add(at("another handle", 8, 0, 10))
		for _, i := range test.remove {
			e.Remove(all[i])
		}
		got, back := []byte{}, []byte{}
		var last *piece
		for s := e.Latest(7); s != nil; s = s.Earlier() {
			got, last = append(append(got, *s.Owner...), ' '), s
		}
		for ; last != nil; last = last.prev {
			back = append(append(back, *last.Owner...), ' ')
		}
		slices.Reverse(back)
		if string(bytes.TrimSpace(got)) != test.want || string(bytes.TrimSpace(back)) != test.want {
			t.Errorf("without %v: %q, and %q from the other end, want %q", test.remove, got, back, test.want)
		}
		if e.Latest(8) == nil {
			t.Errorf("without %v: the segment of another handle is gone", test.remove)
		}
	}
}

// TestList: of very many segments with one handle, those are found where an operation begins: at the start of a segment,
// or where the operation before it ended, also after some of them were removed.
func TestList(t *testing.T) {
	var e Exposure[string]
	var all []*piece
	for i := range 3 * LookAt {
		all = append(all, at(fmt.Sprint(i), 9, uint64(i)*1000, 100))
		e.Add(all[i])
	}
	find := func(offset uint64) string {
		s, exact := e.Find(Target{9, offset, 10})
		if !exact {
			t.Errorf("offset %d: not exact", offset)
		}
		if s == nil {
			return ""
		}
		return *s.Owner
	}
	verify := func(when string, offset uint64, want string) {
		t.Helper()
		if got := find(offset); got != want {
			t.Errorf("%s: at %d is %q, want %q", when, offset, got, want)
		}
	}
	e.Reaches(all[1], 1020) // before the handle is listed
	verify("its start", 0, "0")
	verify("the end of what moved before", 1020, "1")
	verify("the start of one that has moved", 1000, "1")
	verify("among the latest", 47*1000+5, "47")
	verify("inside, where nothing ended", 2010, "")
	e.Reaches(all[2], 2010)
	verify("where an operation ended", 2010, "2")
	e.Reaches(all[2], 2030)
	verify("where an earlier operation ended", 2010, "")
	verify("where the last operation ended", 2030, "2")
	verify("its start, after operations", 2000, "2")
	e.Reaches(all[2], 2100)
	verify("the end of the segment", 2100, "")
	e.Reaches(all[3], 3000)
	verify("its start, reached again", 3000, "3")
	e.Reaches(all[4], 4050)
	e.Remove(all[4])
	verify("one that was removed", 4000, "")
	verify("where one that was removed had ended", 4050, "")
	again := at("again", 9, 5000, 100)
	e.Add(again)
	verify("the latest of two with a start", 5000, "again")
	e.Remove(all[5])
	verify("the earlier of two with a start was removed", 5000, "again")
	for i := range 48 {
		if i != 4 && i != 5 {
			e.Remove(all[i])
		}
	}
	if s, exact := e.Find(Target{9, 5050, 10}); s != again || !exact {
		t.Errorf("the only one that is left is not found: %v", s)
	}
	if e.Remove(again); len(e.byHandle)+len(e.byStart) != 0 {
		t.Errorf("%d and %d segments are left", len(e.byHandle), len(e.byStart))
	}
}

// TestExpect: the map of many segments is made at once, and freed when the last of them is gone.
func TestExpect(t *testing.T) {
	var e Exposure[string]
	if e.Expect(8); e.byHandle != nil {
		t.Error("a map for 8 segments")
	}
	e.Expect(9)
	if e.byHandle == nil {
		t.Error("no map for 9 segments")
	}
	made := e.byHandle
	s := at("", 1, 0, 1)
	e.Add(s)
	if e.Expect(2000); len(made) != 1 {
		t.Error("the map was made again although it has a segment")
	}
	e.Remove(s)
	if e.most = 100; e.byHandle == nil {
		t.Error("a small map is freed")
	}
	if e.Expect(50); len(made) != 0 {
		t.Error("the map was made again although it was large enough")
	}
	for i := range uint32(1<<10 + 1) {
		e.Add(at("", i, 0, 1))
	}
	for i := range uint32(1<<10 + 1) {
		e.Remove(e.Latest(i))
	}
	if e.byHandle != nil || e.most != 0 {
		t.Error("a large map is kept")
	}
}

// TestJoin: the memory of two sides together is found, with its links, whether or not a side has none.
func TestJoin(t *testing.T) {
	for _, test := range []struct{ first, second, want string }{{"", "", ""}, {"ab", "", "ba"}, {"", "ab", "ba"}, {"ab", "cd", "dcba"}} {
		var e, o Exposure[string]
		for i, c := range test.first {
			e.Add(at(string(c), 5, uint64(i)*10, 10))
		}
		for i, c := range test.second {
			o.Add(at(string(c), 5, uint64(i+10)*10, 10))
		}
		e.Join(&o)
		found := map[string]bool{}
		n := 0
		for s := e.Latest(5); s != nil; s = s.Earlier() {
			found[*s.Owner] = true
			if n++; n > 10 {
				t.Fatal("the links do not end")
			}
			if got, exact := e.Find(s.Target); got != s || !exact {
				t.Errorf("%q with %q: %s is not found", test.first, test.second, *s.Owner)
			}
		}
		if n != len(test.want) || len(found) != n {
			t.Errorf("%q with %q: %d segments, want %d", test.first, test.second, n, len(test.want))
		}
	}
}

// TestOverlaps: two segments of one handle have a byte in common.
func TestOverlaps(t *testing.T) {
	for _, test := range []struct {
		a, b *piece
		want bool
	}{
		{at("", 1, 0, 10), at("", 1, 9, 1), true},
		{at("", 1, 0, 10), at("", 1, 10, 1), false},
		{at("", 1, 5, 1), at("", 1, 0, 10), true},
		{at("", 1, 5, 0), at("", 1, 0, 10), false},
		{at("", 1, 0, 10), at("", 1, 5, 0), false},
	} {
		if test.a.Overlaps(test.b) != test.want || test.b.Overlaps(test.a) != test.want {
			t.Errorf("%+v and %+v: not %v", test.a.Target, test.b.Target, test.want)
		}
	}
}

// TestTransfer: which bytes of a segment moved, which were captured, and which are kept.
func TestTransfer(t *testing.T) {
	var storage Transfers
	s := at("", 1, 1000, 100)
	if still := s.Transferred(); still != &noTransfer || still.Moved() != 0 || len(still.Prefix(10)) != 0 || still.Full() {
		t.Errorf("nothing moved: %+v", still)
	}
	if _, any := s.Transferred().End(); any {
		t.Error("nothing moved, but it has an end")
	}
	if c := s.Move(&storage, 1000, []byte("abcd"), 4); c != (Cost{}) || s.Keeps() || len(s.Transferred().data) != 0 {
		t.Errorf("data that is not kept: %+v", c)
	}
	s.Release(&storage)
	s.Keep(50)
	for _, step := range []struct {
		name      string
		offset    uint64
		data      string
		n         int
		cost      Cost
		moved     int64
		truncated int64
		prefix    string
		end       int64
	}{
		{"the beginning", 1000, "abcd", 4, Cost{0, 5, false}, 4, 0, "abcd", 4},
		{"again", 1000, "ABCD", 4, Cost{}, 4, 0, "ABCD", 4},
		{"with a hole before", 1008, "ijkl", 4, Cost{1, 10, false}, 8, 0, "ABCD", 12},
		{"the hole, truncated", 1004, "ef", 4, Cost{1, 0, false}, 12, 2, "ABCDef", 12},
		{"the hole again, whole", 1004, "EFGH", 4, Cost{}, 12, 2, "ABCDEFGHijkl", 12},
		{"beyond what is kept", 1048, "wxyz", 4, Cost{2, 0, false}, 16, 2, "ABCDEFGHijkl", 52},
	} {
		c := s.Move(&storage, step.offset, []byte(step.data), step.n)
		m := s.Transferred()
		end, _ := m.End()
		if c != step.cost || m.Moved() != step.moved || m.Truncated() != step.truncated || string(m.Prefix(99)) != step.prefix || end != step.end {
			t.Errorf("%s: %+v, %d bytes, %d truncated, %q, to %d; want %+v", step.name, c, m.Moved(), m.Truncated(), m.Prefix(99), end, step)
		}
	}
	if got := s.Transferred().Prefix(3); string(got) != "ABC" {
		t.Errorf("the first 3 bytes are %q", got)
	}
	ranges, data := s.Transferred().Kept(nil)
	if !slices.Equal(ranges, span.Set{{Lo: 0, Hi: 12}}) || string(data) != "ABCDEFGHijkl" {
		t.Errorf("%v of %q are kept", ranges, data)
	}
	s.Keep(0)
	if m := s.Transferred(); s.Keeps() || m.data != nil || m.Moved() != 16 {
		t.Errorf("after the data was freed: %+v", m)
	}
	m := s.transfer
	s.Release(&storage)
	s.Release(&storage)
	other := at("", 2, 0, 10)
	if other.Move(&storage, 0, nil, 2); other.transfer != m || other.Transferred().Moved() != 2 || other.Transferred().Truncated() != 2 {
		t.Errorf("the storage is not used again, or not empty: %+v", other.Transferred())
	}
}

// TestUnmove: what a receiver refused did not move.
func TestUnmove(t *testing.T) {
	for _, test := range []struct {
		from, to uint64
		left     int64
	}{
		{1000, 1100, 0},
		{1010, 1020, 90},
		{900, 1010, 90},
		{1090, 2000, 90},
		{900, 1000, 100},
		{1100, 1200, 100},
		{1050, 1000, 100}, // after the end of the address space
	} {
		var storage Transfers
		s := at("", 1, 1000, 100)
		s.Unmove(1000, 1100)
		s.Move(&storage, 1000, nil, 100)
		if s.Unmove(test.from, test.to); s.Transferred().Moved() != test.left {
			t.Errorf("without [%d, %d), %d bytes moved, want %d", test.from, test.to, s.Transferred().Moved(), test.left)
		}
	}
}

// TestLimits: of very many ranges, not all are remembered; then no data is kept. Large storage is not used again.
func TestLimits(t *testing.T) {
	var storage Transfers
	s := at("", 1, 0, 1<<31)
	s.Keep(MaxLong)
	for i := range uint64(span.Max) {
		if c := s.Move(&storage, 2*i, []byte("ab")[:1], 1); c.Lost || s.Transferred().Full() != (i == span.Max-1) {
			t.Fatalf("range %d: %+v, full %v", i, c, s.Transferred().Full())
		}
	}
	if c := s.Move(&storage, 4*span.Max, []byte("a"), 1); !c.Lost {
		t.Errorf("one more range: %+v", c)
	}
	s = at("", 1, 0, 1<<31)
	s.Keep(MaxLong)
	for i := range uint64(span.Max) {
		if s.Move(&storage, 2*i, nil, 1); s.Keeps() != (i < span.Max-1) {
			t.Fatalf("after %d ranges without data, it is kept: %v", i+1, s.Keeps())
		}
	}
	for _, size := range []int{maxTransferData, 4 * maxTransferData} {
		s := at("", 1, 0, 1<<31)
		s.Keep(MaxLong)
		s.Move(&Transfers{}, 0, make([]byte, size), size)
		m := s.transfer
		s.Release(&storage)
		if kept := cap(m.data) > 0; kept != (size <= maxTransferData) {
			t.Errorf("storage of %d bytes is used again: %v", size, kept)
		}
	}
}

// TestStorage: storage that is used again shows nothing of what it held, and data may grow from its middle.
func TestStorage(t *testing.T) {
	var storage Transfers
	first := at("", 1, 0, 100)
	first.Keep(MaxLong)
	first.Move(&storage, 0, []byte("secretsecret"), 12)
	first.Release(&storage)
	s := at("", 1, 0, 100)
	s.Keep(MaxLong)
	s.Move(&storage, 4, []byte("abcd"), 4)
	if _, data := s.Transferred().Kept(nil); string(data) != "\x00\x00\x00\x00abcd" {
		t.Errorf("the data is %q", data)
	}
	s.Move(&storage, 6, []byte("CDEF"), 4)
	if _, data := s.Transferred().Kept(nil); string(data) != "\x00\x00\x00\x00abCDEF" {
		t.Errorf("the data is %q", data)
	}
}
