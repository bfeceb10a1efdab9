package browse

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

var update = flag.Bool("update", false, "write the golden files")

const sample = "../../samples/rocev2-callback41.pcap"

// modelOf returns the Model of a capture that was read.
func modelOf(t testing.TB, path string, look render.Look) *Model {
	t.Helper()
	sum := NewOverview()
	x := index.New(index.Options{Also: sum.Handler()})
	x.Run(context.Background(), testkit.Open(t, path), dissect.Options{Files: true, OtherOperations: true}) // Damaged captures are shown as far as they can be read.
	m := New(Options{
		Index: x, Name: filepath.Base(path), Typed: filepath.Base(path), Look: look, Overview: sum, Group: grouping, Time: flags.ParseTime, Dissect: dissect.Options{Files: true, OtherOperations: true},
		Open: func(context.Context) (Source, error) {
			source, err := capture.Open(path)
			return source, err
		},
		Create: func(path string) (io.WriteCloser, error) { return os.Create(path) },
	})
	t.Cleanup(func() { m.Close(); x.Close() })
	settle(t, m)
	return m
}

// grouping is what the command browse sets Options.Group to.
func grouping(by string) (*analyze.Table, error) {
	g, err := flags.ParseGrouping(by)
	return g.Table(), err
}

// settle waits until all background work has ended.
func settle(t testing.TB, m *Model) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		m.Tick()
		if !m.Busy() {
			m.Tick()
			return
		}
		if time.Now().After(end) {
			t.Fatal("background work does not end")
		}
	}
}

// press presses keys: single characters, and names in angle brackets such as <enter>.
func press(t testing.TB, m *Model, keys string) {
	t.Helper()
	for _, k := range keysOf(keys) {
		m.Key(k)
		settle(t, m)
	}
}

// keysOf returns the names of keys as press takes them.
func keysOf(keys string) []string {
	all := regexp.MustCompile(`<[a-z0-9+]+>|.`).FindAllString(keys, -1)
	for i, k := range all {
		switch {
		case len(k) > 1:
			all[i] = k[1 : len(k)-1]
		case k == " ":
			all[i] = "space"
		}
	}
	return all
}

// plainLook is a terminal without colors that uses UTF-8.
var plainLook = render.Look{Colour: render.NoColour, Unicode: true}

// TestScreens compares screens with golden files.
func TestScreens(t *testing.T) {
	for _, test := range []struct {
		name, path    string
		look          render.Look
		width, height int
		steps         []string
	}{
		{"callback-80x24", sample, plainLook, 80, 24, []string{
			"", "j", "<enter>", "jj", "<enter>", "jjjjj", "n", "q", "q", "2", "<enter>", "<enter>", "&<enter>", "3", "<enter>", "x", "4", "j", "<enter>", "&<enter>", "5", "jj", "<enter>", "&<enter>", "6", "G",
			"+", "<enter>", "?",
		}},
		{"callback-140x40", sample, plainLook, 140, 40, []string{"", "<enter>", "<enter>", "qn", "q", ">>>>>>>>", "z", "jj jj ", "d", "q", "2", "<enter>", "4", "5", "yc", "6"}},
		{"filter-80x24", sample, plainLook, 80, 24, []string{
			"&lat", "<tab>", "<esc>", "&latency > 5ms", "<enter>", "&latency >", "<enter>", "<ctrl+u>dire<tab>", ` == "b`, "<tab>", "<enter>", "yf", "yc", "&<up><up>", "<ctrl+u><enter>", "/read", "<enter>", "n", "N",
			":60<enter>", "yc", "yr", "yx", "yj", "yl", ":sort -latency<enter>", "yc", "e", "E", ":nonsense<enter>",
		}},
		{"lists-120x40", "../../samples/rocev2-errors.pcap", plainLook, 120, 40, []string{"0", "jjjjjjj<enter>", "0q7", "e", "<enter>", " ", "r", "1&<enter>4bw", "wt6", "7&marks != null<enter>"}},
		{"cut-80x24", "../../testdata/captures/derived-cut-callback41.pcap.zst", plainLook, 80, 24, []string{"", "G", "<enter>"}},
		{"iwarp-80x24", "../../testdata/captures/iwarp-nfs41.pcap.zst", plainLook, 80, 24, []string{"", "<enter>", "<enter>", "G"}},
		{"errors-60x12", "../../samples/rocev2-errors.pcap", render.Look{Colour: render.NoColour}, 60, 12, []string{"", "e", "<enter>", "<enter>", "2", "3", "4", "5", "6"}},
		{"ipv6-80x24", "../../testdata/captures/rocev2-ipv6-nfs42.pcap.zst", plainLook, 80, 24, []string{"", "2", "<enter>"}},
		{"colors-80x24", sample, render.Look{Colour: render.Colours16, Unicode: true}, 80, 24, []string{"", "j j", "/read<enter>", "<enter>", "<enter>", "q2", "<enter>", "3"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := modelOf(t, test.path, test.look)
			m.resize(test.width, test.height)
			var b strings.Builder
			for _, keys := range test.steps {
				press(t, m, keys)
				fmt.Fprintf(&b, "======== %s\n", keys)
				for _, line := range m.Lines() {
					b.WriteString(strings.TrimRight(strings.ReplaceAll(line, "\x1b", "^"), " ") + "\n")
				}
				verify(t, m)
			}
			path := filepath.Join("testdata", test.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != string(want) {
				t.Errorf("%s differs from what -update would write:\n%s", path, difference(string(want), got))
			}
		})
	}
}

// difference returns the first lines that differ.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, b[i], a[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(b), len(a))
}

// verify fails if the screen is not one that a terminal can show: each line fits, there are as many
// lines as the terminal has, and there are no control characters.
func verify(t testing.TB, m *Model) {
	t.Helper()
	lines := m.Lines()
	if len(lines) > m.height || m.width >= leastWidth && m.height >= leastHeight && len(lines) != m.height {
		t.Fatalf("%d lines on a screen of %dx%d", len(lines), m.width, m.height)
	}
	for _, line := range lines {
		if n := wide(line); n > m.width {
			t.Fatalf("a line has %d columns on a screen of %dx%d: %q", n, m.width, m.height, line)
		}
		for _, c := range styles.ReplaceAllString(line, "") {
			if c < 0x20 || c >= 0x7f && c < 0xa0 {
				t.Fatalf("a line has the character %q: %q", c, line)
			}
		}
	}
}

// styles matches the escape sequences that are allowed: styles.
var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestSizes: every screen fits terminals of all sizes.
func TestSizes(t *testing.T) {
	m := modelOf(t, sample, render.Look{Colour: render.Colours16, Unicode: true})
	for _, keys := range []string{"", "<enter>", "<enter>", "2", "<enter>", "3", "<enter>", "3x", "4", "5", "<enter>", "6", "?", "q1 j d", "1&lat<tab>", "<esc>1:q1"} {
		for _, k := range []string{keys} {
			press(t, m, k)
		}
		for _, width := range []int{1, 5, 20, 39, 40, 59, 60, 79, 80, 99, 100, 140, 200, 400} {
			for _, height := range []int{1, 2, 7, 8, 12, 24, 50, 100} {
				m.resize(width, height)
				m.Tick()
				verify(t, m)
			}
		}
		m.resize(80, 24)
	}
}

// TestFilters: the filters of the rows of stats, files and rates select as many RPCs as the rows count. The list shows
// each copy of an RPC that was retransmitted on another connection, of which the row of a file counts one, and the Calls of the server
// about a file, which the row does not count.
func TestFilters(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/captures/*.pcap*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range testkit.Short(t, append(paths, sample, "../../samples/rocev2-errors.pcap")) {
		m := modelOf(t, path, plainLook)
		table, files, own := analyze.NewTable(analyze.ByOperation), analyze.NewFiles(filesMemory), ownNames{}
		r, copies := m.options.Index.Reader(), map[string]int{}
		r.Each(t.Context(), 0, m.state.To, func(_ int64, rpc *record.Transaction) bool {
			if table.Add(rpc); rpc.RetransmitOf.Known() || rpc.Direction == record.Backward {
				copies[rpc.FileText()]++
			}
			files.Add(rpc)
			own.add(rpc)
			return true
		})
		r.Close()
		verify := func(name, filter string, want int) {
			if filter == "" {
				t.Errorf("%s: there is no filter for %s", path, name)
				return
			}
			if err := m.list.setFilter(filter); err != nil {
				t.Errorf("%s: the filter %s is refused: %v", path, filter, err)
				return
			}
			settle(t, m)
			if got := m.list.count(); got != int64(want) {
				t.Errorf("%s: %s: %s selects %d RPCs, want %d", path, name, filter, got, want)
			}
		}
		for _, row := range table.Rows() {
			verify(row.Name, filterOf(row.Name), row.Count)
		}
		for _, row := range files.Rows() {
			verify(row.FileText(), own.filter(row), row.Operations+copies[row.FileText()])
		}
		if m.state.To == 0 {
			continue
		}
		press(t, m, "&<enter>6")
		rates := slices.Clone(m.rates.rows)
		for i, row := range rates {
			m.rates.rows = rates
			verify(fmt.Sprintf("interval %d", i), m.rates.filter(i), row.RPCs)
		}
	}
}

// TestRowFilters: filters that need only rows select the same RPCs as those that are applied to whole records.
func TestRowFilters(t *testing.T) {
	for _, path := range []string{sample, "../../samples/rocev2-errors.pcap", "../../testdata/captures/iwarp-nfs41.pcap.zst", "../../testdata/captures/derived-cut-callback41.pcap.zst"} {
		m := modelOf(t, path, plainLook)
		r := m.options.Index.Reader()
		defer r.Close()
		first, _ := m.options.Index.Reader().Transaction(m.state.To / 2)
		selected := 0
		for _, expression := range []string{
			"latency > 1ms", "latency == null", "latency != null", "id >= 10", fmt.Sprintf("xid == %v", first.XID), "connection == 0", `operation == "WRITE"`, "operation == null",
			`operation != "WRITE" and latency < 2ms`, `direction == "backward"`, fmt.Sprintf("time >= %s", first.Start()), "conn == 1 or not (latency > 1ms)", `operation matches "^[A-M]"`,
		} {
			f, err := query.Compile(expression, query.Transactions)
			if err != nil {
				t.Errorf("%s does not compile: %v", expression, err)
				continue
			}
			if i := slices.IndexFunc(f.Paths(), func(path string) bool { return !slices.Contains(rowPaths, path) }); i >= 0 {
				t.Errorf("%s needs %s, which rows do not have", expression, f.Paths()[i])
			}
			var want []int64
			r.Each(t.Context(), 0, m.state.To, func(n int64, rpc *record.Transaction) bool {
				if hit, _ := f.Match(rpc); hit {
					want = append(want, n)
				}
				return true
			})
			if err := m.list.setFilter(expression); err != nil {
				t.Fatal(err)
			}
			settle(t, m)
			if got := slices.Sorted(slices.Values(m.list.numbers)); !slices.Equal(got, want) {
				t.Errorf("%s: %s selects %v, want %v", path, expression, got, want)
			}
			selected += len(want)
		}
		if selected == 0 {
			t.Errorf("%s: no filter selects an RPC", path)
		}
	}
}

// TestPaneSearch: files are found by their whole names, which the second line shows, and n goes on. Also in the help.
func TestPaneSearch(t *testing.T) {
	m := modelOf(t, "../../testdata/captures/rocev2-nfs3.pcap.zst", plainLook)
	press(t, m, "5")
	m.Lines()
	press(t, m, "/reply_chunk_1<enter>")
	first := m.status("")
	press(t, m, "n")
	if second := m.status(""); first == second || !strings.Contains(first, "reply_chunk_1") || !strings.Contains(second, "reply_chunk_1") {
		t.Errorf("/ finds %q, and then n %q", first, second)
	}
	press(t, m, "N")
	if back := m.status(""); back != first {
		t.Errorf("N finds %q, want %q", back, first)
	}
	press(t, m, "/no such file<enter>")
	if line := m.lastLines()[0]; !strings.Contains(line, "no line contains no such file") {
		t.Errorf("a text that is not there: %q", line)
	}
	press(t, m, "?")
	m.Lines()
	press(t, m, "/clipboard<enter>")
	if screen := m.Screen(); !strings.Contains(screen, "> ") || !strings.Contains(screen, "clipboard of the terminal") {
		t.Errorf("the help shows\n%s", screen)
	}
	for _, line := range strings.Split(helpText, "\n") {
		if len(line) > 78 {
			t.Errorf("a line of the help has %d columns: %s", len(line), line)
		}
	}
	press(t, m, "q3x")
	if screen := m.Screen(); m.state.Findings > 0 && !strings.Contains(screen, "Usual causes:") {
		t.Errorf("x does not explain the rule:\n%s", screen)
	}
}

// TestInCommon: the key c says what the RPCs of the filter have in common, as the command common does.
func TestInCommon(t *testing.T) {
	m := modelOf(t, "../../testdata/captures/rocev2-chimera-noreplychunk3.pcap.zst", plainLook)
	press(t, m, "&status == no_reply<enter>")
	settle(t, m)
	press(t, m, "c")
	settle(t, m)
	m.Lines()
	for _, want := range []string{"30 of 130 RPCs: that match status == no_reply", "all 30 are READDIRPLUS; none of the 100 others is", `-Y 'operation == READDIR`} {
		if screen := m.Screen(); !strings.Contains(screen, want) {
			t.Errorf("the key c does not say %q:\n%s", want, screen)
		}
	}
}

// TestDecodedFilter: a filter on arguments and results, which are not kept, is an error and does not
// select nothing.
func TestDecodedFilter(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	for _, filter := range []string{`nfs.access == 1`, `nfs.name == "x"`} {
		if err := m.list.setFilter(filter); err == nil || !strings.Contains(err.Error(), "browse does not keep") {
			t.Errorf("the filter %s, on what browse does not keep, gives the error %v", filter, err)
		}
		if m.list.count() != 64 {
			t.Errorf("the list has %d RPCs after a filter with an error", m.list.count())
		}
	}
}

// TestSorted: a list that is sorted by its rows has the order in which whole records are sorted.
func TestSorted(t *testing.T) {
	for _, path := range []string{sample, "../../samples/rocev2-errors.pcap", "../../testdata/captures/iwarp-nfs41.pcap.zst"} {
		m := modelOf(t, path, plainLook)
		var numbers []int64
		for n := range m.state.To {
			numbers = append(numbers, n)
		}
		for _, by := range rpcs.orders {
			for _, descending := range []bool{false, true} {
				got, err := (&sorting{source: rpcs, x: m.options.Index, by: by, descending: descending, numbers: numbers}).sorted(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				plain := by
				plain.row, plain.name = nil, nil
				want, err := (&sorting{source: rpcs, x: m.options.Index, by: plain, descending: descending, numbers: numbers}).sorted(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: sorted by %s (descending: %v) is\n%v\nwant\n%v", path, by.path, descending, got, want)
				}
			}
		}
	}
}

// TestUsualOrder: RPCs come in the order of their numbers, as on the command line, although the index has them as they ended,
// also if a filter selects them and after another order; the cursor stays on its record.
func TestUsualOrder(t *testing.T) {
	m := modelOf(t, "../../testdata/captures/lab-loss3.pcap.zst", plainLook)
	check := func(keys string, most int64) {
		t.Helper()
		press(t, m, keys)
		var ids []int64
		for i := range m.list.count() {
			r, _ := m.list.get(m.reader, m.list.at(i))
			ids = append(ids, r.(*record.Transaction).ID)
		}
		if int64(len(ids)) == 0 || int64(len(ids)) > most || !slices.IsSorted(ids) {
			t.Errorf("%q: the RPCs come in the order %d, want at most %d in the order of their numbers", keys, ids, most)
		}
		if s := fitting(m.list.status(), 1000); strings.Contains(s, "sorted") {
			t.Errorf("%q: the usual order is described: %s", keys, s)
		}
	}
	check("1", 205)
	if m.list.count() != 205 {
		t.Errorf("the list has %d RPCs, want 205", m.list.count())
	}
	check("&latency > 1ms<enter>", 204)
	press(t, m, ":sort -latency<enter>jjj")
	_, before := m.list.current()
	check(":sort<enter>", 204)
	check("&<enter>", 205)
	if _, after := m.list.current(); after.(*record.Transaction).ID != before.(*record.Transaction).ID {
		t.Errorf("the cursor went from RPC %d to RPC %d when the order changed", before.(*record.Transaction).ID, after.(*record.Transaction).ID)
	}
}

// TestPackets: the fields of every packet of an RPC are those of packets -V.
func TestPackets(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	trees := map[int64]string{}
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		var b bytes.Buffer
		r := render.NewPackets(&b, m.theme, 0)
		r.Tree = true
		r.Start(m.state.Start.Or(0))
		r.Packet(p)
		trees[p.Number] = b.String()
		return nil
	}}, dissect.Options{Tree: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, sample)); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for n := range m.state.To {
		l := newLadder(m, n)
		m.push(l)
		settle(t, m)
		for i, p := range l.packets {
			open := newPacket(m, l.packets, i)
			open.tree(80)
			open.foldAll("R")
			for n, line := range open.lines {
				if open.isHeader(n) {
					if mark := open.text[n][line.Label-2 : line.Label]; mark != "- " {
						t.Errorf("packet %d: an open header has the mark %q", p.Number, mark)
					}
					open.text[n] = open.text[n][:line.Label-2] + "  " + open.text[n][line.Label:]
				}
			}
			got := strings.Join(open.text, "\n")
			if want := strings.Join(split(trees[p.Number]), "\n"); got != want {
				t.Fatalf("packet %d is\n%s\nwant\n%s", p.Number, got, want)
			}
			for _, line := range render.PacketLines(m.theme, m.state.Start, p) {
				from, length := 0, 0
				fmt.Sscanf(line.Text, " @%d+%d", &from, &length)
				if line.From != from || line.To != from+length {
					t.Errorf("packet %d: the line %q is said to be about the bytes from %d to %d", p.Number, line.Text, line.From, line.To)
				}
			}
			seen++
		}
		if len(l.packets) == 0 {
			t.Errorf("RPC %d has no packets", l.rpc.ID)
		}
		m.pop()
	}
	if seen < 150 {
		t.Errorf("only %d packets were shown", seen)
	}
}

// TestSave: saved files have the chosen RPCs.
func TestSave(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	folder := t.TempDir()
	press(t, m, " jjj ")
	m.Key("s")
	m.Text(filepath.Join(folder, "marked.json"))
	press(t, m, "<enter>")
	b, err := os.ReadFile(filepath.Join(folder, "marked.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, n := range []int64{0, 3} {
		r, _ := m.reader.Transaction(n)
		want = render.AppendJSON(want, r)
	}
	if string(b) != string(want) {
		t.Errorf("the file has\n%s\nwant\n%s", b, want)
	}
	press(t, m, "U&latency > 5ms<enter>")
	m.Key("s")
	m.Text(filepath.Join(folder, "list.txt"))
	press(t, m, "<enter>")
	b, err = os.ReadFile(filepath.Join(folder, "list.txt"))
	if n := strings.Count(string(b), "XID 0x"); err != nil || n != 12 {
		t.Errorf("the file has %d ladders, want 12: %v", n, err)
	}
	for _, name := range []string{"x.pcapng", "x.doc", filepath.Join(folder, "no", "x.json")} {
		m.Key("s")
		m.Text(name)
		press(t, m, "<enter>")
		if last := m.Lines()[m.height-1]; !strings.Contains(last, "not saved") && !m.bad {
			t.Errorf("saving %s is no error: %s", name, last)
		}
		m.Key("esc")
	}
}

// TestLive: while records come, the cursor stays on its record, and a filter counts until the end.
func TestLive(t *testing.T) {
	x := index.New(index.Options{Keep: 5000})
	defer x.Close()
	h := x.Handler()
	var all []*record.Transaction
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		all = append(all, r.Clone())
		return nil
	}}, dissect.Options{})
	if _, err := d.Run(t.Context(), testkit.Open(t, sample)); err != nil {
		t.Fatal(err)
	}
	h.Begin(all[0].Start())
	next := 0
	add := func(n int) {
		for range n {
			r := all[next%len(all)]
			next++
			r.ID = int64(next)
			h.Transaction(r)
		}
	}
	m := New(Options{Index: x, Look: plainLook, Live: true, Closed: "not here"})
	defer m.Close()
	tick := func() {
		for range 10 {
			time.Sleep(10 * time.Millisecond)
			m.Tick()
		}
	}
	add(10)
	tick()
	for range 5 {
		m.Key("j")
	}
	add(8000)
	tick()
	m.Key("G")
	id := func() int64 {
		_, r := m.list.current()
		if r == nil {
			return 0
		}
		return r.(*record.Transaction).ID
	}
	if got := id(); got != 8010 {
		t.Errorf("the last RPC is %d, want 8010", got)
	}
	m.Key("k")
	add(2000)
	tick()
	if got := id(); got != 8009 {
		t.Errorf("the cursor is on RPC %d, want 8009, because it stays on its record", got)
	}
	verify(t, m)
	m.Key("F")
	add(100)
	tick()
	if got := id(); got != 10110 {
		t.Errorf("the cursor is on RPC %d, want the newest, 10110", got)
	}
	for _, k := range "&latency > 5ms" {
		if k == ' ' {
			m.Key("space")
		} else {
			m.Key(string(k))
		}
	}
	m.Key("enter")
	tick()
	if s := fitting(m.list.status(), 1000); !strings.Contains(s, "so far (reading)") {
		t.Errorf("the count of the filter is called %q", s)
	}
	add(20_000)
	x.Finish(&record.Summary{}, nil)
	settle(t, m)
	if s := fitting(m.list.status(), 1000); !strings.Contains(s, "final") {
		t.Errorf("the count of the filter is called %q", s)
	}
	from, to := x.Bounds()
	for n := range m.list.numbers {
		if n := m.list.numbers[n]; n < from || n >= to {
			t.Fatalf("the list has RPC %d, but %d to %d are kept", n, from, to)
		}
	}
	verify(t, m)
}

// FuzzKeys: no keys and no sizes make the Model panic or draw a line that is too long, also with
// damaged captures, and with records that rdmadump wrote.
func FuzzKeys(f *testing.F) {
	for i, keys := range []string{
		"jjkG\r\r\rqq", "&lat\t > 5ms\r", "/read\rnN", "2\r\r3\rx4\r5+\r", "  d", "ycyjyl", ":57\r", ">>>z<", "?qqq", "s\x1b", "e\rnNnN\rnN",
		"5jj\r\r\rjjjnNqq5G\r&\r", "5&lat > 1ms\r5\ryc5yr", "j j djjkGgyl\\qU d", "G\rjjjj\rjjjjjjnnNN\x06\x04yryjq", "sx.json\rs/x.txt\r s\x7f.pcapng\r", ":sort -file\r:sort x\r:filter id > 3\r:save y\r:0\r:q\r",
		"6G+++\r60-\r6yc", "&nfs.name == 1\r\x1b&)\r\x7f\x7f\r", "/\r//\rnN/zzzz\r\x1bn", "3x\x1b>>z:sort rule\r/rule\rn", "2>>z/19\r\ryrycq&id == 1\r", "FGgF\\ yfyxyyZ\x1bZZ",
		"0jjj\rq7Ger\rq", "7:30\r\r zMzRza/x\rNNr", "4bbB\r4:by uid,size\r\r", "0jjjjjjj\r\rqq0&latency > 1ms\r0\r", "twt7&marks != null\r&\rEe", "7\rnnnnqq70/a\r\r",
	} {
		f.Add(uint8(i), uint16(40+i*16), uint16(8+i*3), keys)
		f.Add(uint8(128+i), uint16(70+i*8), uint16(12+i*2), keys)
	}
	frames, _ := testkit.Frames(f, sample)
	var lines bytes.Buffer
	for _, path := range []string{sample, "../../samples/rocev2-errors.pcap"} {
		write := func(r any) error {
			lines.Write(render.AppendJSON(nil, r))
			return nil
		}
		dissect.New(dissect.Handler{
			Transaction: func(r *record.Transaction) error { return write(r) },
			Connection:  func(r *record.Connection) error { return write(r) },
			Finding:     func(r *record.Finding) error { return write(r) },
		}, dissect.Options{}).Run(f.Context(), testkit.Open(f, path))
	}
	f.Fuzz(func(t *testing.T, seed uint8, width, height uint16, keys string) {
		if len(keys) > 64 {
			return
		}
		o := Options{Name: "damaged", Typed: "damaged", Look: plainLook, Create: func(string) (io.WriteCloser, error) { return nil, io.ErrShortWrite }}
		o.Overview, o.Group = NewOverview(), grouping
		o.Index = index.New(index.Options{Also: o.Overview.Handler()})
		defer o.Index.Close()
		if seed < 128 {
			data, _ := testkit.Damage(uint64(seed), frames, frames)
			o.Open = func(context.Context) (Source, error) { return capture.NewFile("damaged", bytes.NewReader(data)) }
			o.SavePackets = func(context.Context, string, map[int64]bool) (string, error) { return "", io.ErrShortWrite }
			if source, err := o.Open(t.Context()); err == nil {
				o.Index.Run(t.Context(), source, dissect.Options{Files: true})
				source.Close()
			} else {
				o.Index.Finish(nil, err)
			}
		} else { // Lines are missing, and one is damaged.
			all := bytes.SplitAfter(lines.Bytes(), []byte("\n"))
			from := int(seed) * len(all) / 256
			data := bytes.Join(slices.Delete(slices.Clone(all), from, min(from+int(seed-128)%16, len(all))), nil)
			data = data[:len(data)-int(seed)%3*100]
			o.Closed = "records have no packets"
			h := o.Index.Handler()
			source, err := records.Scan(t.Context(), records.Input{Name: "damaged", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }})
			if err == nil {
				err = source.Run(t.Context(), records.Handler{Transaction: h.Transaction, Connection: h.Connection, Finding: h.Finding})
			}
			o.Index.Finish(nil, err)
		}
		m := New(o)
		defer m.Close()
		m.resize(int(width%300), int(height%100))
		names := map[rune]string{'\r': "enter", '\t': "tab", 0x1b: "esc", ' ': "space", 0x7f: "backspace", 4: "ctrl+d", 6: "pgdown"}
		for _, c := range keys {
			k := names[c]
			if k == "" {
				k = string(c)
			}
			m.Key(k)
			m.Tick()
			verify(t, m)
			if width%2 == 0 { // The screens that follow from a key are complete before the next one.
				settle(t, m)
				verify(t, m)
			}
		}
		settle(t, m)
		verify(t, m)
	})
}

// BenchmarkKey measures the time from a key to the screen that it leads to, with a million RPCs.
func BenchmarkKey(b *testing.B) {
	m := million(b)
	for _, test := range []struct{ name, before, keys string }{
		{"line", "", "jjkj"},
		{"page", "g", "<pgdown>"},
		{"ends", "", "Gg"},
		{"problem", "g", "e"},
		{"ladder", "g", "j<enter>q"},
		{"next ladder", "g<enter>", "n"},
		{"page, filtered", "q&latency > 5ms<enter>g", "<pgdown>"},
		{"page, sorted", "&<enter>:sort -latency<enter>g", "<pgdown>"},
	} {
		b.Run(test.name, func(b *testing.B) {
			press(b, m, test.before)
			keys := keysOf(test.keys)
			var longest time.Duration
			b.ResetTimer()
			for i := range b.N {
				began := time.Now()
				m.Key(keys[i%len(keys)])
				m.Lines()
				longest = max(longest, time.Since(began))
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
		})
	}
}

// TestFilesOfRecords: records that rdmadump wrote do not have the uses of files, and the list of files says so.
func TestFilesOfRecords(t *testing.T) {
	x := index.New(index.Options{})
	defer x.Close()
	h := x.Handler()
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		c := r.Clone()
		c.FileUses = nil
		return h.Transaction(c)
	}}, dissect.Options{Files: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, sample)); err != nil {
		t.Fatal(err)
	}
	x.Finish(nil, nil)
	m := New(Options{Index: x, Look: plainLook})
	defer m.Close()
	press(t, m, "5")
	if screen := m.Screen(); !strings.Contains(screen, "these records do not say what RPCs did to files") {
		t.Errorf("the list of files is\n%s", screen)
	}
}

// modelOfPoints returns the Model of captures at two points, and the source of their packets.
func modelOfPoints(t *testing.T, name string) (*Model, func() *points.Source) {
	t.Helper()
	path := func(point string) string { return filepath.Join("../../testdata/ends", name+"-"+point+".pcap.zst") }
	plan, err := points.Recognize(t.Context(), []points.File{{Path: path("client"), Name: "client"}, {Path: path("server"), Name: "server"}}, points.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := func() *points.Source {
		source, err := plan.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	x := index.New(index.Options{})
	o := dissect.Options{Points: []string{"client", "server"}}
	source := open()
	defer source.Close()
	if _, err := x.Run(t.Context(), source, o); err != nil {
		t.Fatal(err)
	}
	m := New(Options{Index: x, Name: name, Look: plainLook, Dissect: o, Open: func(context.Context) (Source, error) { return open(), nil }})
	t.Cleanup(func() { m.Close(); x.Close() })
	settle(t, m)
	return m, open
}

// TestPacketOfLine: with captures at both ends, each line of a ladder opens its packet, at the point whose number it has.
func TestPacketOfLine(t *testing.T) {
	m, open := modelOfPoints(t, "roce-outage41")
	frames := map[record.PacketRef]string{}
	d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
		for _, s := range p.Path.Seen {
			frames[record.PacketRef{Packet: s.Packet, Point: s.Point}] = string(p.Data)
		}
		return nil
	}}, dissect.Options{Points: []string{"client", "server"}, Tree: true})
	source := open()
	defer source.Close()
	if _, err := d.Run(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	opened := map[string]int{}
	for n := range m.state.To {
		if opened["client"] >= 20 && opened["server"] >= 20 {
			break
		}
		l := newLadder(m, n)
		if len(l.rpc.Timeline) < 8 { // Only RPCs with losses have lines of both points that are interesting.
			continue
		}
		m.push(l)
		settle(t, m)
		m.Lines()
		lines := slices.Clone(l.lines)
		for i, line := range lines {
			if !line.Event {
				continue
			}
			if !regexp.MustCompile(fmt.Sprintf(`\b%d\b`, line.First.Packet)).MatchString(line.Text) {
				t.Errorf("RPC %d: the line %q is said to be about packet %d", l.rpc.ID, line.Text, line.First.Packet)
			}
			l.cursor = int64(i)
			press(t, m, "<enter>")
			p, is := m.top().(*packet)
			if !is {
				t.Fatalf("RPC %d: the line %q opens no packet: %s", l.rpc.ID, line.Text, m.message)
			}
			if got, want := string(p.packets[p.i].Data), frames[line.First]; got != want {
				t.Errorf("RPC %d: the line %q, of packet %d of %s, opens %q", l.rpc.ID, line.Text, line.First.Packet, line.First.Point, p.status()[0].text)
			}
			if want := fmt.Sprintf("%d of %s", line.First.Packet, line.First.Point); !strings.Contains(p.status()[0].text, want) {
				t.Errorf("RPC %d: the line %q opens %q, want %q in it", l.rpc.ID, line.Text, p.status()[0].text, want)
			}
			if want := fmt.Sprintf("number == %d and point == %q", p.packets[p.i].Number, p.packets[p.i].Path.Point); !strings.Contains((choice{m}).commandLine(), want) {
				t.Errorf("the command that shows the packet is %s, want %s in it", (choice{m}).commandLine(), want)
			}
			opened[line.First.Point]++
			press(t, m, "q")
		}
		m.pop()
	}
	if opened["client"] < 20 || opened["server"] < 20 {
		t.Errorf("packets opened: %v; want 20 of each point", opened)
	}
}
