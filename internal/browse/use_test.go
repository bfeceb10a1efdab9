package browse

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// The captures of the tests in this file.
const (
	nconnect = "../../testdata/captures/rocev2-nconnect41.pcapng.zst"
	lossy    = "../../testdata/captures/lab-loss3.pcap.zst"
	storm    = "../../testdata/captures/rocev2-storm41.pcap.zst"
)

// secondLine returns the second line of the screen.
func secondLine(m *Model) string { return strip(m.Lines()[1]) }

// TestCountFits: a filter that does not fit is shortened, not the number of the RPCs that it selects.
func TestCountFits(t *testing.T) {
	m := modelOf(t, nconnect, plainLook)
	press(t, m, "&connection == 2 and frame.time_relative >= 8.5 and frame.time_relative < 8.9<enter>")
	for width := leastWidth; width < 120; width++ {
		m.resize(width, 24)
		if line := secondLine(m); !strings.Contains(line, " of 108, final") || !strings.HasPrefix(line, "& connect") {
			t.Errorf("with %d columns, the second line is %q", width, line)
		}
	}
	m.resize(80, 24)
	press(t, m, "<<zj ")
	if line := secondLine(m); !strings.Contains(line, " of 108, final") || len(line) > 80 {
		t.Errorf("in a sorted list, the second line is %q", line)
	}
}

// TestFitting: parts that may be shortened are, then the last parts are left out, and no number loses digits.
func TestFitting(t *testing.T) {
	parts := []part{{"& latency > 12345us and id > 5", withoutEnd}, {text: "12 of 345"}, {"/export/a/b/c/file", withoutBeginning}, {text: "67 marked"}}
	for _, test := range []struct {
		width int
		want  string
	}{
		{80, "& latency > 12345us and id > 5   12 of 345   /export/a/b/c/file   67 marked"},
		{70, "& latency > 12345us ...   12 of 345   /export/a/b/c/file   67 marked"},
		{60, "& latency > ...   12 of 345   /export/a/b/c/file   67 marked"},
		{51, "& latency...   12 of 345   .../b/c/file   67 marked"},
		{40, "& latency...   12 of 345   .../b/c/file"},
		{25, "& latency...   12 of 345"},
	} {
		if got := fitting(parts, test.width); got != test.want || wide(got) > test.width {
			t.Errorf("%d columns: %q, want %q", test.width, got, test.want)
		}
	}
}

// TestHeadingSpace: there is a space between the name of a capture and the state of reading.
func TestHeadingSpace(t *testing.T) {
	m := modelOf(t, "../../testdata/captures/derived-cut-callback41.pcap.zst", plainLook)
	for width := leastWidth; width < 160; width++ {
		m.resize(width, 24)
		line, below := m.heading()
		if below != "" { // There is no space next to the names of the tabs.
			line = m.status(below)
		}
		if !strings.HasSuffix(line, " damaged") || wide(line) != width {
			t.Errorf("with %d columns, the first line is %q", width, line)
		}
	}
}

// TestFilterError: the text of an error is complete, names what helps in browse, and after it Ctrl-U removes the whole
// filter.
func TestFilterError(t *testing.T) {
	m := modelOf(t, nconnect, plainLook)
	for _, width := range []int{60, 80, 120} {
		m.resize(width, 24)
		for _, filter := range []string{"time > 7", "conn == 2 and time >= 7s"} {
			press(t, m, "&"+filter+"<enter>")
			screen := strings.Join(strings.Fields(m.Screen()), " ")
			for _, want := range []string{"time is a time, such as 2026-", "frame.time_relative has the seconds since the start, as in frame.time_relative > 7.5"} {
				if !strings.Contains(screen, want) {
					t.Errorf("with %d columns, the screen after & %s does not say %q:\n%s", width, filter, want, m.Screen())
				}
			}
			if strings.Contains(screen, "--from") {
				t.Errorf("the error names flags, which browse does not have:\n%s", m.Screen())
			}
			verify(t, m)
			press(t, m, "<ctrl+u>id == 5<enter>")
			if m.prompt != nil || m.list.filter != "id == 5" {
				t.Errorf("after an error, Ctrl-U and a new filter, the filter is %q", m.list.filter)
			}
		}
	}
	press(t, m, "&frame.time_relative > 7.5<enter>")
	if m.list.filter != "frame.time_relative > 7.5" || m.list.count() == 0 {
		t.Errorf("the filter that the error names selects %d RPCs", m.list.count())
	}
}

// TestTabValues: Tab after status == offers what the column STATUS shows, and every word that it offers has its quotes.
func TestTabValues(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	m.resize(120, 40)
	for _, test := range []struct {
		keys, text string
		offers     []string
	}{
		{"&status ==<tab>", `status =="`, []string{`"ok"`, `"no_reply"`, `"NFS4ERR_...`, `"NFS3ERR_...`}},
		{"<tab>", `status =="`, []string{`"ok"`, `"no_reply"`, `"NFS4ERR_...`}},
		{"NFS4ERR_G<tab>", `status =="NFS4ERR_GRACE"`, nil},
		{"<ctrl+u>status == NFS4ERR_BAD<tab>", `status == "NFS4ERR_BAD`, []string{`"NFS4ERR_BADHANDLE"`, `"NFS4ERR_BADTYPE"`}},
		{"<tab>", `status == "NFS4ERR_BAD`, []string{`"NFS4ERR_BADHANDLE"`, `"NFS4ERR_BADTYPE"`}},
		{"<ctrl+u>status != o<tab>", `status != "ok"`, nil},
	} {
		press(t, m, test.keys)
		if got := string(m.prompt.text); got != test.text {
			t.Errorf("%s: the text is %s, want %s", test.keys, got, test.text)
		}
		for _, want := range test.offers {
			if !slices.Contains(m.prompt.offers, want) {
				t.Errorf("%s offers %q, without %s", test.keys, m.prompt.offers, want)
			}
		}
		for _, offer := range m.prompt.offers {
			if !strings.HasPrefix(offer, `"`) || !strings.HasSuffix(offer, `"`) && !strings.HasSuffix(offer, "...") {
				t.Errorf("%s offers %s", test.keys, offer)
			}
		}
		verify(t, m)
	}
}

// TestCopiedCommand: the command line that y c copies in a list shows that list, also one without filter and order; with
// an RPC it shows this RPC.
func TestCopiedCommand(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	for _, test := range []struct{ keys, want string }{
		{"yc", "rdmadump " + m.options.Typed},
		{"jyc", "rdmadump " + m.options.Typed},
		{"&id == 3<enter>yc", "rdmadump " + m.options.Typed + " -Y 'id == 3'"},
		{"<enter>yc", "rdmadump " + m.options.Typed + " --xid 0x3fa94e54 --conn 0"},
		{"q&<enter>:sort -latency<enter>yc", "rdmadump " + m.options.Typed + " --sort -latency_ns"},
		{"2yc", "rdmadump connections " + m.options.Typed},
		{"3yc", "rdmadump check " + m.options.Typed},
	} {
		press(t, m, test.keys)
		if m.Clipboard != test.want {
			t.Errorf("%s copies %q, want %q", test.keys, m.Clipboard, test.want)
		}
	}
}

// TestPreview: the lines below a short list have all rows that the list does not need. If they do not have enough, dots say
// so.
func TestPreview(t *testing.T) {
	m := modelOf(t, lossy, plainLook)
	press(t, m, ":sort -latency<enter>")
	_, slowest := m.list.current()
	all := m.previewRPC(slowest, m.width-gutter)
	if len(all) <= previewLines {
		t.Fatalf("the text of the slowest RPC has only %d lines", len(all))
	}
	lines := m.Lines()
	if last := lines[m.height-2]; !strings.HasSuffix(last, " ...") {
		t.Errorf("the last line of a preview that goes on is %q", last)
	}
	press(t, m, "&latency > 1s<enter>")
	lines = m.Lines()
	if m.list.count() != 1 {
		t.Fatalf("%d RPCs took longer than a second, want 1", m.list.count())
	}
	for i, want := range all {
		if got := lines[5+i]; got != "  "+want {
			t.Errorf("line %d of the preview is %q, want %q", i, got, want)
		}
	}
}

// TestPacketMarks: the second line has the marks of a packet.
func TestPacketMarks(t *testing.T) {
	m := modelOf(t, lossy, plainLook)
	press(t, m, ":sort -latency<enter><enter><enter>")
	seen := 0
	for p := m.top().(*packet); p.i < len(p.packets)-1; p.turn(1) {
		for name := range p.packets[p.i].Marks.Names() {
			seen++
			if want := "[" + strings.ReplaceAll(name, "_", " ") + "]"; !strings.Contains(secondLine(m), want) {
				t.Errorf("packet %d: the second line is %q, without %s", p.packets[p.i].Number, secondLine(m), want)
			}
		}
	}
	if seen == 0 {
		t.Error("no packet has a mark")
	}
}

// TestNextOfList: n and N in an RPC go to the next one, or the one before, of the list from which it was opened.
func TestNextOfList(t *testing.T) {
	m := modelOf(t, storm, plainLook)
	press(t, m, "3&rule == retransmission-timeout<enter>")
	found := m.tabs[tabFindings].(*list)
	var want []int64
	for i := range found.count() {
		_, r := found.current()
		want = append(want, r.(*record.Finding).Transaction.Or(-1))
		found.cursor = i + 1
	}
	if len(want) != 3 || slices.Index(want, -1) >= 0 {
		t.Fatalf("the findings are of the RPCs %v, want three", want)
	}
	press(t, m, "g<enter>")
	for i, keys := range []string{"", "n", "n", "n", "N", "N", "N"} {
		press(t, m, keys)
		at := []int{0, 1, 2, 2, 1, 0, 0}[i]
		l, is := m.top().(*ladder)
		if !is || l.rpc.ID != want[at] {
			t.Fatalf("after %d keys, the screen is %q, want that of RPC %d", i, secondLine(m), want[at])
		}
		if say := fmt.Sprintf("finding %d of 3", at+1); !strings.Contains(secondLine(m), say) {
			t.Errorf("the second line is %q, without %s", secondLine(m), say)
		}
	}
	if line := m.lastLines()[0]; line != "there are no more findings in the list" {
		t.Errorf("before the first finding, the last line is %q", line)
	}
	press(t, m, "nq")
	if m.top() != screen(found) || found.cursor != 1 {
		t.Errorf("q shows %q with the cursor in row %d", secondLine(m), found.cursor)
	}
	// The findings of connections have no RPC, and their rules are explained.
	press(t, m, "&<enter>gx")
	for i := range found.count() {
		_, r := found.current()
		if got, rule := m.top().title(), r.(*record.Finding).Rule; found.cursor != i || got != "finding "+rule {
			t.Fatalf("n shows %q, want finding %s", got, rule)
		}
		press(t, m, "n")
	}
	press(t, m, "1&latency > 5ms<enter>g<enter>n")
	if l := m.top().(*ladder); l.n != m.list.numbers[1] {
		t.Errorf("in a filtered list, n shows the RPC with number %d, want %d", l.n, m.list.numbers[1])
	}
}

// TestWayBack: q, h and Esc in the list that Enter opened return to the list before, with its filter and its cursor, and the
// last line says so.
func TestWayBack(t *testing.T) {
	for _, key := range []string{"q", "h", "<esc>"} {
		for _, test := range []struct{ open, name string }{
			{"4 jj", "stats"}, {"5 jjj", "files"}, {"6 Gkkk", "rates"}, {"2 <enter>", "connection 0"},
		} {
			m := modelOf(t, storm, plainLook)
			press(t, m, "&latency < 1s<enter>jjj")
			for _, keys := range strings.Fields(test.open) {
				press(t, m, keys)
				m.Lines() // Rows exist when they are drawn.
			}
			before := m.Screen()
			press(t, m, "<enter>")
			if m.top() != screen(m.list) || !strings.HasPrefix(m.list.filter, "(latency < 1s) and ") && test.name != "connection 0" {
				t.Fatalf("%s: Enter shows %q", test.open, secondLine(m))
			}
			for _, keys := range []string{"", "5", "61", "<enter>q", "3"} { // The filter holds in all lists, and so does the way back.
				press(t, m, keys)
				if line := m.lastLines()[0]; !strings.Contains(line, "q back to "+test.name) {
					t.Errorf("%s, Enter, %s: the last line is %q", test.open, keys, line)
				}
			}
			press(t, m, key)
			if got := m.Screen(); got != before {
				t.Errorf("%s, Enter, %s shows\n%s\nwant\n%s", test.open, key, got, before)
			}
			press(t, m, "1")
			if n, _ := m.list.current(); m.list.filter != "latency < 1s" || n != m.list.numbers[3] {
				t.Errorf("after %s, the filter is %q and the RPC is %d", key, m.list.filter, n)
			}
			if press(t, m, "q"); !m.Quit() {
				t.Errorf("q does not quit after the list was left with %s", key)
			}
		}
	}
	m := modelOf(t, storm, plainLook)
	if press(t, m, "5j<enter>4<enter>qq"); m.Quit() || m.tab != tabFiles || m.list.filter != "" {
		t.Errorf("two steps back show tab %d with the filter %q", m.tab, m.list.filter)
	}
	if press(t, m, "<enter>&<enter>q"); !m.Quit() {
		t.Error("q does not quit after the user removed the filter")
	}
}

// TestSumsSorted: files, sums by operation and sums by time are sorted by their columns as by --sort, and Enter opens the
// RPCs of the row that is shown.
func TestSumsSorted(t *testing.T) {
	for _, test := range []struct {
		tab, command string
		kind         *source
	}{
		{"5", "files ", fileSums}, {"4", "stats ", operationSums}, {"6", "stats ", intervalSums},
	} {
		m := modelOf(t, lossy, plainLook)
		m.resize(400, 100)
		press(t, m, test.tab)
		s := m.top().(*sums)
		m.Lines()
		press(t, m, "z")
		if got := m.lastLines()[0]; got != sortsFirst {
			t.Errorf("%s: z without an order says %q", test.command, got)
		}
		seen := map[string]bool{}
		for {
			press(t, m, ">")
			if s.by < 0 {
				break
			}
			by := s.kind.orders[s.by]
			seen[by.heading] = true
			for range 2 {
				sign, way := "", "smallest first"
				if s.descending {
					sign, way = "-", "largest first"
				}
				if line, want := secondLine(m), "sorted by "+by.heading+", "+way; !strings.Contains(line, want) {
					t.Errorf("%s: the second line is %q, without %q", test.command, line, want)
				}
				for i := range int64(s.arranged.count() - 1) {
					a, b := query.SortKey(s.kind.fields, s.rows[s.at(i)], by.path), query.SortKey(s.kind.fields, s.rows[s.at(i+1)], by.path)
					if c := query.Order(a, b); a != nil && b != nil && (c > 0 && !s.descending || c < 0 && s.descending) || a == nil && b != nil {
						t.Errorf("%s: sorted by %s%s, row %d is %v and the next %v", test.command, sign, by.path, i, a, b)
					}
				}
				press(t, m, "yc")
				if !strings.HasPrefix(m.Clipboard, "rdmadump "+test.command+m.options.Typed) || !strings.HasSuffix(m.Clipboard, " --sort "+sign+by.path) {
					t.Errorf("%s: y c copies %q", test.command, m.Clipboard)
				}
				press(t, m, "z")
			}
		}
		heading := strip(m.Lines()[2])
		for _, by := range test.kind.orders {
			if seen[by.heading] != isColumn(heading, by.heading) {
				t.Errorf("%s: > sorts by %s: %v; the heading is %q", test.command, by.heading, seen[by.heading], heading)
			}
		}
		if len(seen) < 4 {
			t.Errorf("%s: > sorts only by %v", test.command, seen)
		}
	}
	m := modelOf(t, lossy, plainLook)
	m.Key("4") // and at once, before there are rows
	m.Key(">")
	if press(t, m, ">"); !strings.Contains(secondLine(m), "sorted by RPCS, largest first") {
		t.Errorf("after 4 > >, the second line is %q", secondLine(m))
	}
	press(t, m, "5:sort -read<enter>")
	row := m.Lines()[3]
	if press(t, m, "j<enter>"); m.list.count() == 0 || !strings.Contains(row, "/export/big") {
		t.Errorf("the file with the most bytes read is %q", row)
	}
	press(t, m, "q<")
	most := 0
	press(t, m, "6:sort -rpcs<enter>")
	for _, r := range m.rates.rows {
		most = max(most, r.RPCs)
	}
	m.Lines()
	if press(t, m, "<enter>"); m.list.count() != int64(most) {
		t.Errorf("the interval with the most RPCs has %d, want %d", m.list.count(), most)
	}
}

// TestShownColumns: > and < sort only by columns that the screen has.
func TestShownColumns(t *testing.T) {
	m := modelOf(t, lossy, plainLook)
	for _, width := range []int{60, 80, 120, 250} {
		m.resize(width, 24)
		for _, k := range []string{">", "<"} {
			n := 0
			for press(t, m, k); m.list.by >= 0; press(t, m, k) {
				n++
				if by := m.list.orders[m.list.by].heading; !isColumn(m.Lines()[2], by) {
					t.Errorf("with %d columns, %s sorts by %s, which is not in %q", width, k, by, m.Lines()[2])
				}
			}
			if n < 4 {
				t.Errorf("with %d columns, %s sorts by %d columns", width, k, n)
			}
		}
	}
}

// TestZoomStays: the time of the line with the cursor stays there when intervals become shorter and longer.
func TestZoomStays(t *testing.T) {
	m := modelOf(t, nconnect, plainLook)
	press(t, m, "6")
	m.Lines()
	z, s := m.rates, m.top().(*sums)
	peak := slices.MaxFunc(z.rows, func(a, b *analyze.Rate) int { return a.RPCs - b.RPCs })
	s.cursor = int64(slices.Index(z.rows, peak))
	press(t, m, "-")
	if z.rows[s.at(s.cursor)] != peak || m.lastLines()[0] != "this is all of the capture" {
		t.Errorf("- at all of the capture moves the cursor to line %d and says %q", s.cursor, m.lastLines()[0])
	}
	var lengths []time.Duration
	for _, k := range []string{"+", "+", "+", "-", "-", "-", "+", "+", "0", ":sort -rpcs<enter>", "+", "-"} {
		press(t, m, k)
		m.Lines()
		if strings.HasPrefix(k, ":") && s.at(s.cursor) != slices.Index(z.rows, slices.MaxFunc(z.rows, func(a, b *analyze.Rate) int { return a.RPCs - b.RPCs })) {
			t.Errorf("after %s, the cursor is in line %d", k, s.cursor)
		}
		lengths = append(lengths, z.shown)
		if row := z.rows[s.at(s.cursor)]; row.Start > peak.Start || row.End <= peak.Start {
			t.Errorf("after %s, the line with the cursor is from %v to %v, and does not have %v", k, row.Start, row.End, peak.Start)
		}
	}
	if lengths[0] <= lengths[1] || lengths[1] <= lengths[2] || lengths[3] != lengths[1] || lengths[4] != lengths[0] || lengths[5] != lengths[8] {
		t.Errorf("the lengths of the intervals were %v", lengths)
	}
}

// TestComparison: two marked RPCs are side by side from 120 columns on, each complete, and the first line has the difference
// of their latencies and of the parts of them.
func TestComparison(t *testing.T) {
	for _, test := range []struct {
		path, keys, first string
		least             int // columns with which they are side by side
	}{
		{sample, "&write > 0<enter> j d", "RPC 3 (0x3fa94e54) took 19.52ms less than RPC 2", 119},
		{lossy, "&operation == WRITE<enter>:sort -latency<enter> j d", "RPC 25 (0xb897019f) took 812.19ms longer than RPC 15", 140},
	} {
		m := modelOf(t, test.path, plainLook)
		press(t, m, test.keys)
		for _, width := range []int{60, 80, 119, 120, 130, 140, 180} {
			m.resize(width, 60)
			lines, most := m.Lines(), 0
			if want := "> " + test.first; !strings.HasPrefix(lines[2], want) {
				t.Errorf("with %d columns, the first line is %q, want %q", width, lines[2], want)
			}
			for _, line := range lines {
				most = max(most, strings.Count(line, "XID 0x"))
			}
			if (most == 2) != (width >= test.least) {
				t.Errorf("with %d columns, the ladders are:\n%s", width, m.Screen())
			}
			verify(t, m)
		}
	}
	m := modelOf(t, lossy, plainLook)
	press(t, m, "&operation == WRITE<enter>:sort -latency<enter>")
	sum := func(r *record.Transaction) (ns int64) {
		for _, p := range render.Phases(r) {
			ns += p.NS
		}
		return ns
	}
	var two []*record.Transaction
	for i := range 2 {
		r, err := m.reader.Transaction(m.list.at(int64(i)))
		if err != nil || sum(r) != r.LatencyNS.Or(0) {
			t.Fatalf("the phases of an RPC are %d ns in sum, and its latency is %d: %v", sum(r), r.LatencyNS.Or(0), err)
		}
		two = append(two, r)
	}
	same := render.Difference(two[0], two[0])
	if want := fmt.Sprintf("RPC %d (%s) took as long as RPC %[1]d (%[2]s).", two[0].ID, two[0].XID); same != want {
		t.Errorf("an RPC and itself: %q, want %q", same, want)
	}
	if forth, back := render.Difference(two[0], two[1]), render.Difference(two[1], two[0]); !strings.Contains(forth, " less than ") || !strings.Contains(back, " longer than ") {
		t.Errorf("the differences are %q and %q", forth, back)
	}
}

// TestRatesInFlight: a Call without a Reply is in flight until its connection closes, as in stats --every, and not until
// the end of the capture.
func TestRatesInFlight(t *testing.T) {
	const path = "../../samples/rocev2-lostlink41.pcap.zst"
	m := modelOf(t, path, plainLook)
	press(t, m, "6")
	want, err := analyze.NewRates(m.rates.shown, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := dissect.New(dissect.Handler{
		Begin:       func(first record.Time) error { want.Begin(first); return nil },
		Transaction: want.Add, Connection: want.Connection,
	}, dissect.Options{}).Run(t.Context(), testkit.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := want.Rows(s.Last.Or(0))
	before := slices.IndexFunc(rows, func(r *analyze.Rate) bool { return r.RPCs > 0 })
	if err != nil || before != 5 || len(rows) != before+len(m.rates.rows) {
		t.Fatalf("%d intervals, want %d after %d without RPCs: %v", len(m.rates.rows), len(rows)-before, before, err)
	}
	for _, row := range rows[:before] {
		if row.InFlight != record.Some(analyze.Level{}) {
			t.Errorf("before the first RPC, %+v are in flight", row.InFlight)
		}
	}
	rows = rows[before:]
	for i, row := range m.rates.rows {
		if row.InFlight != rows[i].InFlight || row.Start != rows[i].Start {
			t.Errorf("interval %d from %v: %+v are in flight, want %+v from %v", i, row.Start, row.InFlight, rows[i].InFlight, rows[i].Start)
		}
	}
	if last, known := rows[len(rows)-1].InFlight.Get(); !known || last.Peak != 3 {
		t.Errorf("in the last interval, %+v are in flight, want a peak of the 3 Calls of the last connection", last)
	}
}

// TestMarkStays: Space marks the RPC of the cursor, which stays where it is, and takes the mark away again.
func TestMarkStays(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	for _, test := range []struct {
		keys   string
		cursor int64
		marked int
	}{{"jj ", 2, 1}, {" ", 2, 0}, {" j ", 3, 2}} {
		press(t, m, test.keys)
		if m.list.cursor != test.cursor || len(m.list.marked) != test.marked {
			t.Errorf("after %q, the cursor is at %d and %d RPCs are marked, want %d and %d", test.keys, m.list.cursor, len(m.list.marked), test.cursor, test.marked)
		}
	}
}

// TestFirstInterval: the intervals begin with the first RPC that the filter selects, at a multiple of their length since
// the start of the capture, and the second line has the time of day of the one with the cursor.
func TestFirstInterval(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	for _, test := range []struct {
		filter, first, row string
		rpcs               int
	}{
		{"", "2026-11-21T05:19:56.140067Z   intervals of 500ms", ">  6.500000    4", 64},
		{"frame.time_relative > 20", "2026-11-21T05:20:10.240067Z   intervals of 200ms", "> 20.600000    1", 22},
		{"frame.time_relative > 100", "", "", 0},
	} {
		press(t, m, "1&"+test.filter+"<enter>6g")
		screen, sum := m.Screen(), 0
		for _, r := range m.rates.rows {
			sum += r.RPCs
		}
		if sum != test.rpcs || test.rpcs > 0 && (!strings.Contains(screen, test.first) || !strings.Contains(screen, "\n"+test.row)) {
			t.Errorf("with the filter %q, the intervals have %d RPCs, want %d:\n%s", test.filter, sum, test.rpcs, screen)
		}
	}
}

// TestTimesOfDay: t shows the times of all lists and ladders as times of day, then in the zone of the computer, and then as
// seconds again. Decoded arguments stay in the ladder.
func TestTimesOfDay(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	m.resize(140, 40)
	seconds := m.Screen()
	press(t, m, "<enter>")
	ladder := m.Screen()
	press(t, m, "qt")
	if screen := m.Screen(); !strings.Contains(screen, ">  1 2026-11-21 05:19:56.422064 ") || !strings.Contains(screen, "UTC") {
		t.Errorf("after t, the list shows\n%s", screen)
	}
	press(t, m, "<enter>")
	if screen := m.Screen(); !strings.Contains(screen, "2026-11-21 05:19:56.4") {
		t.Errorf("after t, the ladder shows\n%s", screen)
	}
	press(t, m, "tt")
	if screen := m.Screen(); !strings.HasPrefix(screen, strings.Join(strings.Split(ladder, "\n")[:39], "\n")) {
		t.Errorf("after t three times, the ladder shows\n%s\nwant\n%s", screen, ladder)
	}
	press(t, m, "qtt")
	local := time.Unix(0, int64(m.state.Start.Or(0))).Format("2006-01-02 15:04:")
	if screen := m.Screen(); !strings.Contains(screen, ">  1 "+local) {
		t.Errorf("after t twice, the list shows\n%s", screen)
	}
	if press(t, m, "t"); strings.Split(m.Screen(), "\n")[3] != strings.Split(seconds, "\n")[3] {
		t.Errorf("after t three times, the list shows\n%s", m.Screen())
	}
}

// fieldsOf returns the labels of the lines of a packet that are shown, without values.
func fieldsOf(m *Model) (labels []string) {
	m.Lines() // A key only notes that the text is to be drawn anew.
	p := m.top().(*packet)
	for i, n := range p.shown {
		label, _, _ := strings.Cut(strip(p.text[i])[max(p.lines[n].Label-2, 0):], ":")
		if _, name, bits := strings.Cut(label, " = "); bits {
			label = name
		}
		labels = append(labels, strings.TrimSpace(label))
	}
	return labels
}

// TestFolds: the headers below the transport are folded and all others open, the folds stay in other packets, and a text
// that is searched is found in folded headers.
func TestFolds(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	m.resize(140, 60)
	press(t, m, "j<enter><enter>")
	m.Lines()
	all := fieldsOf(m)
	if got := all[1:6]; !slices.Equal(got, []string{"+ Ethernet", "+ Internet Protocol version 4", "+ User Datagram Protocol", "+ Base Transport Header", "- RPC-over-RDMA"}) {
		t.Fatalf("the first fields are %q", got)
	}
	if all[6] != "XID" || all[8] != "Credits" {
		t.Errorf("RPC-over-RDMA is not open: %q", all)
	}
	press(t, m, "jj ") // opens IP
	if got := fieldsOf(m); got[2] != "- Internet Protocol version 4" || got[4] != "Header length in words of 4 bytes" || len(got) != len(all)+15 {
		t.Errorf("after Space on IP, the fields are %q", got)
	}
	press(t, m, "jjj ") // closes it from one of its fields
	if got := fieldsOf(m); !slices.Equal(got, all) || m.top().(*packet).cursor != 2 {
		t.Errorf("after Space on a field of IP, the cursor is at %d, and the fields are %q", m.top().(*packet).cursor, got)
	}
	if press(t, m, "n"); fieldsOf(m)[4] != "- Base Transport Header" {
		t.Errorf("the transport of an acknowledgement is folded: %q", fieldsOf(m))
	}
	press(t, m, "jjjjzc") // folds the transport, also in other packets
	if press(t, m, "nN"); fieldsOf(m)[4] != "+ Base Transport Header" {
		t.Errorf("after zc and n, the fields are %q", fieldsOf(m))
	}
	press(t, m, "N/don't fragment<enter>")
	p := m.top().(*packet)
	if got := fieldsOf(m); got[p.cursor] != "Don't fragment" || got[2] != "- Internet Protocol version 4" {
		t.Errorf("/ puts the cursor on %q", got[p.cursor])
	}
	if line := m.top().(*packet).lines[p.shown[p.cursor]]; line.From != 20 || line.To != 21 {
		t.Errorf("the bytes of the field are [%d, %d), want [20, 21)", line.From, line.To)
	}
	press(t, m, "zM")
	if got := fieldsOf(m); len(got) != 11 || got[len(got)-1] != "ICRC" || got[p.cursor] != "+ Internet Protocol version 4" {
		t.Errorf("after zM, the cursor is on %q of %q", got[p.cursor], got)
	}
	if press(t, m, "zR"); len(fieldsOf(m)) != len(p.lines) {
		t.Errorf("after zR, %d of %d lines are shown", len(fieldsOf(m)), len(p.lines))
	}
	if press(t, m, "zx"); !strings.Contains(m.Screen(), "z is followed by a, o, c, R or M") {
		t.Errorf("after zx:\n%s", m.Screen())
	}
	press(t, m, "g ")
	if !strings.Contains(m.Screen(), "this line is in no header") {
		t.Errorf("after Space on the line of the packet:\n%s", m.Screen())
	}
}

// TestWide: w shows the columns for special questions, and then the usual ones again.
func TestWide(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	m.resize(220, 40)
	for _, keys := range []string{"1", "4"} {
		press(t, m, keys)
		usual := strings.Fields(strings.Split(m.Screen(), "\n")[2])
		press(t, m, "w")
		all := strings.Fields(strings.Split(m.Screen(), "\n")[2])
		if len(all) <= len(usual) || !strings.Contains(m.Screen(), "all columns") {
			t.Errorf("w in list %s shows the columns %q, and without %q", keys, all, usual)
		}
		verify(t, m)
		if press(t, m, "w"); !slices.Equal(strings.Fields(strings.Split(m.Screen(), "\n")[2]), usual) {
			t.Errorf("after w twice, list %s is\n%s", keys, m.Screen())
		}
		for width := 80; width < 240; width += 20 { // Columns are hidden, and not shortened.
			m.resize(width, 40)
			press(t, m, keys+"w")
			m.Lines()
			drawn := ""
			if s, is := m.top().(*sums); is {
				drawn = s.content()
			} else {
				drawn = m.list.print.heading + "\n" + m.list.row(m.list.print, 0)
			}
			for _, line := range strings.Split(drawn, "\n") {
				if wide(line) > width-gutter {
					t.Errorf("w in list %s with %d columns draws a line with %d: %s", keys, width, wide(line), line)
					break
				}
			}
			press(t, m, "w")
		}
		m.resize(220, 40)
	}
}

// TestFirstPackets: if more packets belong to an RPC than are read, the screen says so.
func TestFirstPackets(t *testing.T) {
	if few, many := (&packet{packets: make([]*record.Packet, 6)}).number(), (&packet{packets: make([]*record.Packet, mostPackets)}).number(); few != "6" || many != "the first 2000" {
		t.Errorf("the numbers of packets are %q and %q", few, many)
	}
}

// TestGroupings: the sums of list 4 by any fields have a row for each group, and the filter of a row selects as many RPCs as
// the row counts.
func TestGroupings(t *testing.T) {
	for _, test := range []struct {
		path    string
		by      string
		rows    int
		without int // rows that no filter selects
	}{
		{sample, "client", 1, 0},
		{sample, "server", 1, 0},
		{sample, "directory", 2, 0},
		{sample, "size", 2, 0},
		{sample, "file", 5, 0},
		{sample, "client,operation", 16, 0},
		{sample, "uid", 2, 0},
		{sample, "direction,status", 2, 0},
		{storm, "client", 1, 0},
		{lossy, "size", 5, 0},
		{lossy, "directory,size", 9, 0},
		{lossy, "file", 40, 0},
		{"../../testdata/captures/rocev2-nfs3.pcap.zst", "directory", 4, 0},
		{"../../testdata/captures/rocev2-nfs3.pcap.zst", "file", 70, 0},
		{"../../samples/rocev2-errors.pcap", "client,file", 1, 0},
	} {
		m := modelOf(t, test.path, plainLook)
		m.resize(100, 40)
		press(t, m, ":by "+test.by+"<enter>")
		m.Lines()
		verify(t, m)
		s := m.tabs[tabStats].(*sums)
		rows, without, all := slices.Clone(s.rows), 0, int64(0)
		for _, r := range rows {
			row := r.(*analyze.Stats)
			filter := groupFilter(row)
			if all += int64(row.Count); filter == "" {
				without++
				continue
			}
			if err := m.list.setFilter(filter); err != nil {
				t.Fatalf("%s: the filter %s of %s is refused: %v", test.path, filter, row.Name, err)
			}
			if settle(t, m); m.list.count() != int64(row.Count) {
				t.Errorf("%s: %s selects %d RPCs, want the %d of %s", test.path, filter, m.list.count(), row.Count, row.Name)
			}
		}
		if len(rows) != test.rows || without != test.without || all != m.state.To {
			t.Errorf("%s by %s: %d rows with %d of %d RPCs, %d of them without a filter", test.path, test.by, len(rows), all, m.state.To, without)
		}
	}
	m := modelOf(t, sample, plainLook)
	m.resize(100, 40)
	for _, test := range []struct{ keys, title, command string }{
		{"4", "sums by operation", "stats FILE"},
		{"b", "sums by client", "stats FILE --by client"},
		{"bbb", "sums by directory", "stats FILE --by directory"},
		{"bb", "sums by operation", "stats FILE"},
		{"B", "sums by size", "stats FILE --by size"},
		{":by uid, operation<enter>", "sums by uid, operation", "stats FILE --by uid,operation"},
		{"b", "sums by operation", "stats FILE"},
	} {
		press(t, m, test.keys+"yc")
		want := "rdmadump " + strings.ReplaceAll(test.command, "FILE", m.options.Typed) + "\n"
		if got := m.copied[len(m.copied)-1]; got != want || !strings.HasPrefix(secondLine(m), test.title) {
			t.Errorf("after %q, yc copies %q, want %q, and the second line is %q", test.keys, got, want, secondLine(m))
		}
	}
	press(t, m, "Bj<enter>")
	if m.tab != tabRPCs || m.list.filter == "" || m.list.count() == 0 || m.list.count() == m.state.To {
		t.Errorf("Enter shows %d RPCs with the filter %q", m.list.count(), m.list.filter)
	}
	if press(t, m, ":by color<enter>"); !strings.Contains(m.Screen(), "unknown field") {
		t.Errorf("an unknown field:\n%s", m.Screen())
	}
}

// TestSumsStopped: sums that are made anew before the ones before are ready have each RPC once. The jobs of a table that is
// not wanted any more go on for a while.
func TestSumsStopped(t *testing.T) {
	m := modelOf(t, lossy, plainLook)
	m.resize(100, 40)
	for range 20 {
		for _, k := range keysOf("4&<enter>&<enter>5&<enter>6&<enter>4bB&<enter>") {
			m.Key(k)
		}
		settle(t, m)
		all := int64(0)
		for _, r := range m.tabs[tabStats].(*sums).rows {
			all += int64(r.(*analyze.Stats).Count)
		}
		if all != m.state.To {
			t.Fatalf("the sums have %d RPCs, want %d", all, m.state.To)
		}
	}
}

// TestConnectionWrapped: the facts about a connection are whole on a narrow screen, and a line that is shortened has a mark at its end.
func TestConnectionWrapped(t *testing.T) {
	m := modelOf(t, "../../testdata/captures/ends-stormall42-client.pcap.zst", plainLook)
	m.resize(60, 60)
	press(t, m, "2<enter>")
	screen := strings.Join(strings.Fields(m.Screen()), " ")
	for _, want := range []string{"after the start", "invalidation yes", "invalidation no"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on the screen:\n%s", want, m.Screen())
		}
	}
	verify(t, m)
	p := &pane{text: []string{"a line that fits", "a line of several words that does not fit"}}
	if lines := p.draw(m, 26, 5); lines[1] != "  a line of several words…" || lines[0] != "> a line that fits" {
		t.Errorf("the lines are %q", lines)
	}
}

// TestWithoutRPCs: a capture without RPCs has no intervals, and its only packet is one packet.
func TestWithoutRPCs(t *testing.T) {
	m := modelOf(t, "../../testdata/unknown-link.pcap", plainLook)
	press(t, m, "6")
	if screen := m.Screen(); !strings.Contains(screen, "no RPCs so far") || strings.Contains(screen, "1970") {
		t.Errorf("the rates are\n%s", screen)
	}
	verify(t, m)
	press(t, m, "<enter>+-0<enter>7")
	if screen := m.Screen(); !strings.Contains(screen, "\n1 packet ") && !strings.Contains(screen, "\n1 packet\n") {
		t.Errorf("the packets are\n%s", screen)
	}
}

// TestSigns: what does not fit the screen is named in the second line: hidden columns, lines of a text, fields and bytes of a packet.
func TestSigns(t *testing.T) {
	m := modelOf(t, lossy, plainLook)
	for _, test := range []struct {
		width, height int
		keys, want    string
	}{
		{80, 24, "2", " columns hidden: "},
		{80, 24, "1", " columns hidden: "},
		{80, 24, "7", "2 columns hidden: TRANSPORT, LENGTH"},
		{80, 24, "?", fmt.Sprintf("lines 1 to 21 of %d", strings.Count(helpText, "\n")+1)},
		{80, 24, "<ctrl+f><ctrl+f>", "lines 21 to 41 of "},
		{140, 100, "", ""},
		{80, 24, "q1:sort -latency<enter><enter><enter>", "lines 1 to 12 of "},
		{140, 40, "", "lines 1 to 37 of "},
		{200, 12, "G", "lines 41 to 49 of 49, bytes 1 to 144 of 222"},
	} {
		m.resize(test.width, test.height)
		press(t, m, test.keys)
		screen := m.Screen()
		if line := secondLine(m); !strings.Contains(line, test.want) || test.want == "" && strings.Contains(line, "lines ") {
			t.Errorf("%q at %dx%d: the second line is %q, want %q\n%s", test.keys, test.width, test.height, line, test.want, screen)
		}
	}
}

// TestLadderHeading: the heading of a ladder's columns stays when the ladder is scrolled, and Space in a ladder marks its RPC and takes the
// mark away.
func TestLadderHeading(t *testing.T) {
	m := modelOf(t, lossy, plainLook)
	m.resize(80, 10)
	press(t, m, ":sort -latency<enter><enter>g")
	m.Lines()
	for range m.top().(*ladder).count() {
		lines, l := m.Lines(), m.top().(*ladder)
		if heading := strings.Contains(lines[2], " TIME "); l.top > int64(l.pinned) && !heading {
			t.Fatalf("line %d of the ladder is at the top, below %q", l.top, lines[2])
		}
		if !slices.ContainsFunc(lines[2:], func(line string) bool { return strings.HasPrefix(line, ">") }) {
			t.Fatalf("the line with the cursor, %d, is not on the screen:\n%s", l.cursor, m.Screen())
		}
		press(t, m, "j")
	}
	if l := m.top().(*ladder); l.pinned == 0 || l.top <= int64(l.pinned) {
		t.Fatalf("the ladder with the heading in line %d is too short", l.pinned)
	}
	for _, test := range []struct {
		keys   string
		marked int
	}{{" ", 1}, {" ", 0}, {" U", 0}} {
		if press(t, m, test.keys); len(m.list.marked) != test.marked {
			t.Errorf("after %q in the ladder, %d RPCs are marked, want %d", test.keys, len(m.list.marked), test.marked)
		}
	}
}

// TestTabNames: on a screen of 80 columns, the lists keep their names while something is said about reading.
func TestTabNames(t *testing.T) {
	m := modelOf(t, "../../testdata/captures/derived-cut-callback41.pcap.zst", plainLook)
	lines := m.Lines()
	if want := "0:overview [1:47 RPCs] 2:2 conns 3:1 findings 4:stats 5:files 6:rates 7:packets"; strings.TrimRight(lines[0], " ") != want || !strings.HasPrefix(lines[1], "47 RPCs   ../../testdata") || !strings.HasSuffix(lines[1], " damaged") || wide(lines[1]) != 80 {
		t.Errorf("the first lines are %q", lines[:2])
	}
}
