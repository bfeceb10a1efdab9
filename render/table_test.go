package render

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestLayout: a narrow column that was hidden before a wide one is shown if it fits without the wide one, and lines below a table
// explain the columns that it shows.
func TestLayout(t *testing.T) {
	columns := []column{
		{name: "NAME", flex: true, min: 4},
		{name: "NARROW", rank: 2, foot: "a number"},
		{name: "A WIDE COLUMN", rank: 1, foot: "another number"},
		{name: "CAUSE", meaning: func(text string) string { return map[string]string{"server-proven": "server"}[text] }},
		{name: "SPECIAL", wide: true},
	}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "NAME NARROW A WIDE COLUMN CAUSE\nx    1      2             server-proven\nx    3      4             server-proven\n"},
		{30, "NAME NARROW CAUSE\nx    1      server-proven\nx    3      server-proven\nNARROW: a number\nCAUSE: server-proven (server)\nhidden (--wide): A WIDE COLUMN\n"},
		{60, "NAME NARROW A WIDE COLUMN CAUSE\nx    1      2             server-proven\nx    3      4             server-proven\n" +
			"NARROW: a number\nA WIDE COLUMN: another number\nCAUSE: server-proven (server)\n"},
	} {
		var b strings.Builder
		table := newTable(&b, NewTheme(false), c.width, columns)
		for _, row := range [][2]string{{"1", "2"}, {"3", "4"}} {
			if err := table.row([]cell{{text: "x"}, {text: row[0]}, {text: row[1]}, {text: "server-proven"}, {}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.end(); err != nil || b.String() != c.want {
			t.Errorf("width %d: %v\n%s\nwant\n%s", c.width, err, b.String(), c.want)
		}
	}
}

// TestSigns: below a table, only those signs of a column are explained that a cell has, as the cells show them, and a column
// whose cells are all zero or empty is not explained.
func TestSigns(t *testing.T) {
	columns := []column{
		{name: "NAME", flex: true, min: 4, signs: []sign{{shortMark, "stands for the rest"}}},
		{name: "STALL", foot: "a time", signs: []sign{{"?", "if not known"}, {"", "if there was none"}}},
	}
	for _, c := range []struct {
		rows [2]string // texts of the columns, with a comma between them
		want string
	}{
		{[2]string{"name,0", "x,-"}, ""},
		{[2]string{"name,1ms", "x,2ms"}, "STALL: a time\n"},
		{[2]string{"name,1ms", "x,"}, "STALL: a time; empty if there was none\n"},
		{[2]string{"name,?", "a long name,?"}, "NAME: \u2026 stands for the rest\nSTALL: a time; ? if not known\n"},
	} {
		var b strings.Builder
		table := newTable(&b, NewLook(Look{Unicode: true}), 12, columns)
		for _, row := range c.rows {
			name, stall, _ := strings.Cut(row, ",")
			if err := table.row([]cell{{text: name}, {text: stall}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
		table.width = 100 // of the lines below the table
		if got := table.feet(); got != c.want {
			t.Errorf("%q:\n%s\nwant %q and not %q", c.rows, b.String(), c.want, got)
		}
	}
}

// TestLongNames: if names of hosts are wider than the table may be, the names are shortened to their ends, which have the port, also if
// each character is two columns wide.
func TestLongNames(t *testing.T) {
	columns := []column{{name: "CONN", right: true}, {name: "CLIENT"}, {name: "SERVER"}, {name: "RPCS", rank: 1, right: true}, {name: "CLOSED", flex: true, min: 8}}
	for _, c := range []struct{ client, server, want string }{
		{strings.Repeat("存", 80) + ":1", strings.Repeat("x", 80) + ":20049", "CONN CLIENT                    SERVER                     CLOSED\n   0 ~存存存存存存存存存存存:1 ~xxxxxxxxxxxxxxxxxxx:20049 open\n"},
		{"host:1", strings.Repeat("存", 80) + ":20049", "CONN CLIENT SERVER                                        CLOSED\n   0 host:1 ~存存存存存存存存存存存存存存存存存存存:20049 open\n"},
	} {
		var b strings.Builder
		table := newTable(&b, NewTheme(false).WithHidden(func([]string) {}), 64, columns)
		if err := table.row([]cell{{text: "0"}, {text: c.client, tail: true}, {text: c.server, tail: true}, {text: "7"}, {text: "open"}}); err != nil {
			t.Fatal(err)
		}
		if err := table.end(); err != nil || b.String() != c.want {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), c.want)
		}
		for line := range strings.Lines(b.String()) {
			if n := wide(strings.TrimSuffix(line, "\n")); n > 64 {
				t.Errorf("%q is %d wide", line, n)
			}
		}
	}
}

// TestCourses: all directions have the same intervals, and what happened is in the interval of its time.
func TestCourses(t *testing.T) {
	one := &record.Network{Course: []record.NetworkInterval{{Start: 100, Lost: 1}, {Start: 110, Lost: 2}, {Start: 120, Lost: 4}}}
	late := &record.Network{Course: []record.NetworkInterval{{Start: 140, Lost: 8}, {Start: 160, Lost: 16, MaxNS: record.Some[int64](3)}}}
	short := &record.Network{Course: []record.NetworkInterval{{Start: 90, Lost: 32}}}
	courses := Screen{}.courses([]*record.Network{one, late, short})
	var got [2][]int64
	for i := range got {
		for k, p := range courses[i] {
			if p.Start != record.Time(100+20*k) {
				t.Errorf("interval %d of direction %d starts at %d", k, i, p.Start)
			}
			got[i] = append(got[i], p.Lost)
		}
	}
	if want := [2][]int64{{3, 4, 0, 0}, {0, 0, 8, 16}}; len(got[0]) != 4 || [4]int64(got[0]) != [4]int64(want[0]) || [4]int64(got[1]) != [4]int64(want[1]) || courses[2] != nil {
		t.Errorf("%v, want %v", got, want)
	}
	narrow := Screen{Width: courseMargin + courseScale + 2}.courses([]*record.Network{one, late})
	if n := len(narrow[0]); n != 4 { // at least 10 characters are taken to fit
		t.Errorf("%d intervals", n)
	}
}

// TestLongAddresses: long addresses are shortened to their ends, so that the summary is visible.
func TestLongAddresses(t *testing.T) {
	for _, c := range []struct{ pair, want string }{
		{"192.168.100.100 > 192.168.100.101", "192.168.100.100 > 192.168.100.101"},
		{"fd77::1 > fe80::5054:ff:fe77:1", "fd77::1 > fe80::5054:ff:fe77:1"},
		{":: > 2001:db8:1111:2222:3333:4444:5555:6666", ":: > ~111:2222:3333:4444:5555:6666"},
		{"2001:db8:1111:2222:3333:4444:5555:6666 > 2001:db8:1111:2222:3333:4444:5555:7777", "~4444:5555:6666 > ~:4444:5555:7777"},
	} {
		p := NewPackets(nil, NewTheme(false), 80)
		if got := string(p.shortenPair([]byte("     1 "+c.pair), 7)); got != "     1 "+c.want {
			t.Errorf("%s: %q, want %q", c.pair, got[7:], c.want)
		}
	}
}
