package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

const captures = "../testdata/captures/"

// run runs a capture through a dissector.
func run(t testing.TB, name string, h dissect.Handler, o ...dissect.Options) *record.Summary {
	t.Helper()
	options := append(o, dissect.Options{})[0]
	f := open(t, name, &options)
	defer f.Close()
	d := dissect.New(h, options)
	s, err := d.Run(t.Context(), f)
	if err != nil && !strings.Contains(name, "cut") && !strings.HasPrefix(name, mutant) {
		t.Fatal(err)
	}
	return s
}

// The name of a damaged capture is this, and a seed.
const mutant = "mutant-"

// bothEnds is the name of the captures at both ends of a wire, which are read as several points.
const bothEnds = "ends-stormall42"

// open opens a capture, or the captures at both ends, whose points it sets in the options.
func open(t testing.TB, name string, o *dissect.Options) interface {
	capture.Source
	Close() error
} {
	t.Helper()
	if name != bothEnds {
		path := captures + name
		if seed, is := strings.CutPrefix(name, mutant); is {
			n, err := strconv.ParseUint(seed, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			frames, _ := testkit.Frames(t, captures+"rocev2-callback41.pcap.zst")
			others, _ := testkit.Frames(t, captures+"iwarp-nfs41.pcap.zst")
			if n%2 == 1 {
				frames, others = others, frames
			}
			damaged, _ := testkit.Damage(n, frames, others)
			path = filepath.Join(t.TempDir(), "mutant")
			if err := os.WriteFile(path, damaged, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		f, err := capture.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	var files []points.File
	for _, end := range []string{"client", "server"} {
		files = append(files, points.File{Path: captures + name + "-" + end + ".pcap.zst", Name: end})
	}
	plan, err := points.Recognize(t.Context(), files, points.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Points() {
		o.Points = append(o.Points, p.Name)
	}
	return s
}

// golden compares a drawing with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./render -update writes it anew):\n%s", path, got)
	}
}

// lineOf returns a record as a line of JSON. The line of every other packet includes the
// headers below the transport.
func lineOf(r any) []byte {
	if p, ok := r.(*record.Packet); ok {
		return render.AppendPacketJSON(nil, p, p.Number%2 == 0)
	}
	return render.AppendJSON(nil, r)
}

// eachRecord calls visit for the records of every capture, except most packets of long ones,
// for the summaries of these records, and for the interfaces of this machine.
func eachRecord(t *testing.T, visit func(capture, kind string, r any)) {
	names, _ := filepath.Glob(captures + "*.zst")
	for seed := range 24 {
		names = append(names, mutant+strconv.Itoa(seed))
	}
	for _, path := range append(names, bothEnds) {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "lab-loss") { // like rocev2-loss42, and long
			continue
		}
		table := analyze.NewTable(analyze.ByOperation)
		files := analyze.NewFiles(0)
		rates, err := analyze.NewRates(time.Second, "status", func(values []string, r *record.Transaction) []string { return append(values, string(r.Status)) })
		if err != nil {
			t.Fatal(err)
		}
		var credits analyze.CreditTimeline
		var handles analyze.HandleTimeline
		sides := [2]*analyze.Side{analyze.NewSide(analyze.NewTable(analyze.ByOperation)), analyze.NewSide(analyze.NewTable(analyze.ByOperation))}
		operations := analyze.NewOperationTable("kind", func(values []string, r *record.RDMAOperation) []string { return append(values, string(r.Kind)) })
		packets := 0
		overview := analyze.NewCollector()
		var diagnosis diagnose.Collector
		s := run(t, name, dissect.Handler{
			Begin: func(start record.Time) error {
				rates.Begin(start)
				return nil
			},
			Packet: func(p *record.Packet) error {
				if packets++; packets < 400 || p.Number%16 == 0 {
					visit(name, "packet", p)
				}

				return nil
			},
			Transaction: func(r *record.Transaction) error {
				visit(name, "transaction", r)
				table.Add(r)
				overview.Transaction(r)
				diagnosis.Transaction(r)
				sides[r.ID%2].Transaction(r)
				files.Add(r)
				if err := rates.Add(r); err != nil && !strings.HasPrefix(name, mutant) { // whose time may be years
					t.Error(err)
				}
				if r.Connection == 0 {
					credits.Add(r)
					handles.Add(r)
				}

				return nil
			},
			Connection: func(r *record.Connection) error {
				visit(name, "connection", r)
				sides[r.ID%2].Connection(r)
				overview.Connection(r)
				diagnosis.Connection(r)
				return nil
			},
			Operation: func(r *record.RDMAOperation) error {
				if r.ID%16 == 0 || r.Retransmitted > 0 {
					visit(name, "rdma_operation", r)
				}
				operations.Add(r)
				overview.Operation(r)
				return nil
			},
			Task: func(r *record.Task) error {
				diagnosis.Task(r)
				visit(name, "task", r)
				return nil
			},
			Finding: func(r *record.Finding) error {
				visit(name, "finding", r)
				return nil
			},
		}, dissect.Options{Tree: true, Files: true})
		for _, row := range files.Rows() {
			visit(name, "file", row)
		}
		visit(name, "credits", credits.Finish(&record.Connection{}, record.Forward))
		visit(name, "handles", handles.Finish(0, 0))
		for _, row := range table.Rows() {
			visit(name, "stats", row)
		}
		intervals, err := rates.Rows(s.Last.Or(0))
		if err != nil && !strings.HasPrefix(name, mutant) {
			t.Error(err)
		}
		for _, row := range operations.Rows() {
			visit(name, "rdma_stats", row)
		}
		problems := diagnosis.Problems(s)
		for _, problem := range problems {
			visit(name, "problem", problem)
		}
		sides[0].Problems(problems)
		for _, c := range analyze.Compare(sides[0], sides[1]) {
			visit(name, "comparison", c)
		}
		for _, row := range intervals {
			visit(name, "rate", row)
		}
		visit(name, "summary", s)
		visit(name, "overview", overview.Finish(s))
	}
	visit("several points", "point", &record.Point{Type: "point", Name: "a.pcap", Address: record.Some("192.0.2.1"), DriftPPM: record.Some(-90.5), Steps: []record.ClockStep{{Packet: 1}}})
	visit("several points", "network", &record.Network{
		Type: "network", From: "a.pcap", To: "b.pcap", Bytes: record.Some(int64(1)), Delay: record.Some(record.DelayQuantiles{MinNS: 1}), Course: []record.NetworkInterval{{P50NS: record.Some(int64(1))}},
	})
	visit("several points", "lost_packet", &record.LostPacket{Type: "lost_packet", From: "a.pcap", To: "b.pcap", Connection: record.Some(1), XID: record.Some(record.Hex32(1))})
	interfaces, err := capture.Interfaces("/sys")
	if err != nil {
		t.Fatal(err)
	}
	for i := range interfaces {
		visit("this machine", "interface", &interfaces[i])
	}
}

// TestTables draws the tables at several widths.
func TestTables(t *testing.T) {
	for _, width := range []int{0, 80, 140} {
		for _, c := range []string{"rocev2-errors", "rocev2-mixed", "rocev2-callback41"} {
			var transactions, connections bytes.Buffer
			theme := render.NewTheme(false)
			rows, conns := render.NewText(&transactions, theme, width), render.NewText(&connections, theme, width)
			run(t, c+".pcap.zst", dissect.Handler{
				Transaction: func(r *record.Transaction) error {
					rows.Transaction(r)
					return nil
				},
				Connection: func(r *record.Connection) error {
					conns.Connection(r)
					return nil
				},
			})
			rows.Flush()
			conns.Flush()
			for _, b := range []*bytes.Buffer{&transactions, &connections} {
				for line := range strings.Lines(b.String()) {
					if width > 0 && len(strings.TrimRight(line, "\n")) > width {
						t.Errorf("%s at %d columns: a line of %d", c, width, len(line)-1)
					}
				}
			}
			name := c + map[int]string{0: "-pipe", 80: "-80", 140: "-140"}[width]
			golden(t, name+"-transactions.golden", transactions.Bytes())
			golden(t, name+"-connections.golden", connections.Bytes())
		}
	}
}

// TestLadders draws transactions of every kind at two widths.
func TestLadders(t *testing.T) {
	for _, c := range []struct {
		name, capture string
		xids          []string // of the transactions to draw; all when empty
	}{
		{"read-chunks", "rocev2-nfs41", []string{"0x4cc9dbf7", "0x5bc9dbf7"}},
		{"callbacks", "rocev2-callback41", []string{"0xf7d270af", "0x525b31a0"}},
		{"long", "rocev2-long42", []string{"0x1a012e02"}},
		{"loss", "rocev2-loss42", []string{"0x405eb126"}},
		{"errors", "rocev2-errors", nil},
	} {
		for _, width := range []int{80, 132} {
			var b bytes.Buffer
			theme := render.NewTheme(false)
			run(t, c.capture+".pcap.zst", dissect.Handler{Transaction: func(r *record.Transaction) error {
				if len(c.xids) == 0 || slices.Contains(c.xids, r.XID.String()) {
					if err := render.Ladder(&b, theme, width, r, true); err != nil {
						t.Error(err)
					}
				}

				return nil
			}})
			fits(t, c.name, b.String(), width)
			golden(t, fmt.Sprintf("ladder-%s-%d.golden", c.name, width), b.Bytes())
		}
	}
}

// fits checks that the lines of a drawing are not wider than width.
func fits(t *testing.T, name, drawing string, width int) {
	t.Helper()
	for line := range strings.Lines(drawing) {
		if n := len(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%s at %d columns: a line of %d: %s", name, width, n, line)
		}
	}
}

// TestCharts draws credits, handles and statistics of captures at two widths.
func TestCharts(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41.pcap", "rocev2-callback41.pcap", "rocev2-loss42.pcap", "rocev2-nconnect41.pcapng"} {
		for _, width := range []int{80, 132} {
			var b bytes.Buffer
			theme := render.NewTheme(false)
			var forward, backward analyze.CreditTimeline
			var handles analyze.HandleTimeline
			table := analyze.NewTable(analyze.ByOperation)
			var start, end record.Time
			var connection *record.Connection
			run(t, name+".zst", dissect.Handler{
				Transaction: func(r *record.Transaction) error {
					table.Add(r)
					if r.Connection != 1 {
						return nil
					}
					handles.Add(r)
					if r.Direction == record.Backward {
						backward.Add(r)
					} else {
						forward.Add(r)
					}

					return nil
				},
				Connection: func(r *record.Connection) error {
					if r.ID == 1 {
						start, end, connection = r.First, r.Last, r.Clone()
						render.ConnectionDetail(render.Screen{Out: &b, Theme: theme}, r, start)
					}

					return nil
				},
			})
			axis := render.Axis{Start: start, From: start, To: end}
			for _, c := range []*analyze.Credits{forward.Finish(connection, record.Forward), backward.Finish(connection, record.Backward)} {
				if err := render.CreditChart(render.Screen{Out: &b, Theme: theme, Width: width, Height: 8}, c, axis); err != nil {
					t.Error(err)
				}
			}
			if err := render.HandleChart(render.Screen{Out: &b, Theme: theme, Width: width, Height: 12}, handles.Finish(1, end), axis); err != nil {
				t.Error(err)
			}
			if err := render.Stats(&b, theme, width, table.Rows()); err != nil {
				t.Error(err)
			}
			fits(t, name, b.String(), width)
			golden(t, fmt.Sprintf("charts-%s-%d.golden", strings.TrimSuffix(name, filepath.Ext(name)), width), b.Bytes())
		}
	}
}

// TestPackets draws the tree and the bytes of chosen packets.
func TestPackets(t *testing.T) {
	var b bytes.Buffer
	r := render.NewPackets(&b, render.NewTheme(false), 0)
	run(t, "rocev2-callback41.pcap.zst", dissect.Handler{Packet: func(p *record.Packet) error {
		r.Tree, r.Bytes = p.Number == 23 || p.Number == 24 || p.Number == 33, p.Number == 33
		if p.Number < 40 {
			r.Packet(p)
		}

		return nil
	}})
	golden(t, "packets.golden", b.Bytes())
}

// TestHostile: control characters from a packet never reach a terminal unescaped, and JSON is
// always valid UTF-8.
func TestHostile(t *testing.T) {
	p := &record.Packet{Summary: []byte("\x1b[31m\x00\xff\"\\\x7f"), Nodes: []record.Node{{Kind: record.NodeText, Name: "error", Label: "Error", Text: "\x1b]0;title\x07\x80"}}}
	line := render.AppendPacketJSON(nil, p, true)
	var back struct{ Summary, Error string }
	if err := json.Unmarshal(line, &back); err != nil || back.Summary != "\x1b[31m\x00\ufffd\"\\\x7f" || back.Error != "\x1b]0;title\x07\ufffd" {
		t.Errorf("the JSON of text with control characters and bytes that are no UTF-8 is %s (%v)", line, err)
	}
	var b bytes.Buffer
	r := render.NewPackets(&b, render.NewTheme(false), 0)
	r.Tree = true
	r.Packet(p)
	for _, c := range b.Bytes() {
		if c != '\n' && (c < 0x20 || c >= 0x7f) {
			t.Fatalf("byte 0x%02x reaches the terminal: %q", c, b.String())
		}
	}
}

// TestManyHandles: the time to draw a ladder is proportional to the number of handles that a
// Call exposes.
func TestManyHandles(t *testing.T) {
	testkit.Proportional(t, 10_000, func(n int) func() {
		r := &record.Transaction{
			Call: &record.Message{}, Reply: &record.Message{}, LatencyNS: record.Some[int64](1),
			ReadChunks: []record.ReadChunk{{Segments: make([]record.Segment, n)}},
			Timeline:   []record.Event{{Event: record.EventCall}},
		}
		for i := range n {
			handle := record.Hex32(i)
			r.ReadChunks[0].Segments[i].Handle = handle
			r.NotInvalidated = append(r.NotInvalidated, handle)
			r.Timeline = append(r.Timeline, record.Event{Event: record.EventReadDone, Handle: record.Some(handle)})
		}
		r.Timeline = append(r.Timeline, record.Event{Event: record.EventReply})
		return func() {
			var b bytes.Buffer
			if err := render.Ladder(&b, render.NewTheme(false), 80, r, true); err != nil {
				t.Fatal(err)
			}
			if names := bytes.Count(b.Bytes(), []byte("0x0000")); names < n {
				t.Errorf("the ladder of %d handles has %d names, want at least one for each handle", n, names)
			}
		}
	})
}

// TestAnyTimes: a clock that is set in the middle of a capture, times as far apart as
// possible, and a negative latency are drawn like any others.
func TestAnyTimes(t *testing.T) {
	const first, last = record.Time(math.MinInt64), record.Time(math.MaxInt64)
	const year = record.Time(365 * 24 * 3600 * 1e9)
	for name, times := range map[string][]record.Time{
		"equal":           {5, 5, 5},
		"backwards":       {3e9, 2e9, 1e9},
		"584 years":       {first, 0, last},
		"584 years, back": {last, 0, first},
		"534 days":        {0, year, year + 169*24*3600*1e9},
		"before 1970":     {-5 * year, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			credits := &analyze.Credits{PeakInFlight: record.Some(2), Direction: record.Forward}
			handles := &analyze.Handles{ExposureCount: len(times)}
			r := &record.Transaction{Call: &record.Message{Time: times[0]}, LatencyNS: record.Some[int64](math.MinInt64)}
			summary := &record.Summary{First: record.Some(times[0]), Last: record.Some(times[len(times)-1])}
			var b bytes.Buffer
			theme := render.NewTheme(false)
			packets, text := render.NewPackets(&b, theme, 0), render.NewText(&b, theme, 0)
			for i, at := range times {
				credits.Points = append(credits.Points, analyze.CreditPoint{Time: at, InFlight: record.Some(i), Granted: record.Some[uint32](2)})
				credits.Grants = append(credits.Grants, analyze.Grant{Time: at, Granted: 2})
				next := times[(i+1)%len(times)]
				handles.Exposures = append(handles.Exposures, record.Exposure{
					Handle: record.Hex32(i % 2), From: at, To: next, MovedFrom: record.Some(next), MovedTo: record.Some(at), EndedBy: record.ByNobody,
				})
				r.Timeline = append(r.Timeline, record.Event{Time: at, Event: record.EventAck, Of: record.EventCall})
				packets.Packet(&record.Packet{Time: at})
			}
			for _, start := range []record.Time{0, first, last, times[0]} {
				if err := render.CreditChart(render.Screen{Out: &b, Theme: theme, Width: 80, Height: 8}, credits, render.Axis{Start: start}); err != nil {
					t.Error(err)
				}
				if err := render.HandleChart(render.Screen{Out: &b, Theme: theme, Width: 80, Height: 8}, handles, render.Axis{Start: start}); err != nil {
					t.Error(err)
				}
				text.Start(start)
			}
			if err := render.Ladder(&b, theme, 80, r, true); err != nil {
				t.Error(err)
			}
			text.Transaction(r)
			text.Summary(summary, false, 0)
		})
	}
}

func TestUnits(t *testing.T) {
	for ns, want := range map[int64]string{math.MinInt64: "-106751d23h47m16s", math.MaxInt64: "106751d23h47m16s", 61234567890: "61.235 s", 486445553 * 1e6: "5d15h7m25s", 86399e9: "23h59m59s", 86400e9: "1d0s", 0: "0 ns", 999: "999 ns", 1500: "1.5 us", 2345678: "2.35 ms", 1234567890: "1.235 s", -1500: "-1.5 us"} {
		if got := render.Duration(ns); got != want {
			t.Errorf("%d ns are %s, want %s", ns, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 9999: "9999 B", 10000: "9.8 KiB", 1 << 20: "1.0 MiB", 2048 << 10: "2.0 MiB", 20 << 20: "20 MiB", 20 << 30: "20 GiB"} {
		if got := render.Size(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
}

// TestBrief: numbers of screens have two or three digits and one unit.
func TestBrief(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0 ns", 999: "999 ns", 1500: "1.5 us", 99_960: "100 us", 999_600: "1.0 ms", 2_600_000: "2.6 ms", 9_960_000: "10 ms", 560_300_000: "560 ms", 999_700_000: "1.00 s",
		1_222_000_000: "1.22 s", 9_997_000_000: "10.0 s", 33_000_000_000: "33.0 s", 99_960_000_000: "100 s", 127e9: "127 s", 599e9: "599 s", 660e9: "660 s", 1800e9: "30.0 min", -1500: "-1.5 us",
	} {
		if got := field.Brief(ns); got != want {
			t.Errorf("%d ns are %s, want %s", ns, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 9999: "9999 B", 10000: "9.8 KiB", 517 << 10: "517 KiB", 1000 << 10: "1.0 MiB", 1 << 20: "1.0 MiB", 20 << 30: "20 GiB"} {
		if got := field.Size(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1038: "1,038", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := field.Count(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// TestSameEachTime: a record with maps gives the same line and the same text every time, so
// that the outputs of two runs can be compared.
func TestSameEachTime(t *testing.T) {
	summary := &record.Summary{
		Transactions: map[record.Status]int64{record.Complete: 3, record.NoReply: 1, record.NoCall: 2, record.RDMAError: 4},
		Findings:     map[record.Severity]int64{record.Warning: 1, record.Error: 2, record.Note: 3},
		Evicted:      map[string]int64{"transactions": 1, "connections": 2, "chunk data kept": 3},
	}
	for range 20 {
		line := render.AppendJSON(nil, summary)
		for _, want := range []string{
			`"transactions":{"complete":3,"no_call":2,"no_reply":1,"rdma_error":4}`,
			`"findings":{"error":2,"note":3,"warning":1}`,
			`"evicted":{"chunk data kept":3,"connections":2,"transactions":1}`,
		} {
			if !strings.Contains(string(line), want) {
				t.Fatalf("no %s in %s", want, line)
			}
		}
		var text bytes.Buffer
		if err := render.NewText(&text, render.NewTheme(false), 0).Summary(summary, true, 0); err != nil {
			t.Fatal(err)
		}
		if want := "memory limit reached: chunk data kept; memory limit reached: connections; memory limit reached: transactions\n"; !strings.HasSuffix(text.String(), want) {
			t.Fatalf("%q does not end in %q", text.String(), want)
		}
	}
}

// TestMarks: the marks of a packet have the words of its line, and a packet without marks has none.
func TestMarks(t *testing.T) {
	p := &record.Packet{Marks: record.Retransmitted | record.BadICRC | record.DamagedOnPath, ICRC: record.Bad}
	if got, want := render.Marks(p), []string{"[bad ICRC]", "[retransmitted]", "[damaged on path]"}; !slices.Equal(got, want) {
		t.Errorf("the marks are %q, want %q", got, want)
	}
	if got := render.Marks(&record.Packet{}); len(got) != 0 {
		t.Errorf("the marks of a packet without any are %q", got)
	}
}

// TestUncertainLatency: a latency that is an upper bound is printed as one, and the ladder says when the Reply came if an
// earlier copy of it was accepted.
func TestUncertainLatency(t *testing.T) {
	some := record.Some[int64]
	r := &record.Transaction{
		XID: 1, Direction: record.Forward, Status: record.Complete, LatencyNS: some(548_540_000), LatencyMinNS: some(2_260_000), LatencyMinPacket: some(271),
		Call: &record.Message{Time: 1e9, Packet: 270, LastPacket: 270}, Reply: &record.Message{Packet: 273, LastPacket: 273, Delivery: record.DeliveryUncertain},
		Phases: record.Some(record.Phases{ToReplyNS: some(2_260_000), WaitNS: 546_280_000}),
		Waits: []record.Wait{{
			From: 1e9 + 2_260_000, To: 1e9 + 548_540_000, NS: 546_280_000, Reason: record.RetransmitTimeout, Waiting: record.Server, Event: record.EventReply, Packets: []int64{271, 273},
		}},
	}
	ladder := func() string {
		var out bytes.Buffer
		r.Cause = claim.Of(r)
		if err := render.Ladder(&out, render.NewTheme(false), 132, r, true); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	check := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
	if got := render.Latency(r); got != "<= 549 ms" {
		t.Errorf("the latency is %q", got)
	}
	check(ladder(), "ok after <= 548.54 ms cause The Reply was accepted after 2.26 ms, or after 548.54 ms if its first copy (packet 271) was lost. "+
		"If that copy was lost, there was no progress for 546.28 ms, until the server retransmitted the Reply, in packet 273, when its timer expired")
	r.Timeline = []record.Event{{Event: record.EventDamaged, Of: record.EventReply, Packet: 269}}
	check(ladder(), "if its earlier copy (packet 271) was lost")
	r.Timeline, r.LatencyMinPacket = nil, record.Opt[int64]{}
	check(ladder(), "ok after <= 548.54 ms cause The Reply was accepted after 2.26 ms to 548.54 ms; the capture does not prove when it, and the packets before it, were accepted. time <= 100% stalled TIME PACKET")
	r.LatencyMinNS = record.Opt[int64]{}
	if got := render.Latency(r); got != "549 ms" {
		t.Errorf("the latency is %q", got)
	}
	check(ladder(), "For 546.28 ms of 548.54 ms there was no progress")
}

// TestCompareBounds: percentiles that are upper bounds have a space before their mark, and are not tested.
func TestCompareBounds(t *testing.T) {
	side := func(least record.Opt[int64]) *analyze.Side {
		s := analyze.NewSide(analyze.NewTable(analyze.ByOperation))
		for i := range int64(40) {
			latency := 1_000_000 + i
			r := &record.Transaction{
				Status: record.Complete, ProgramName: record.Some("NFS"), Program: record.Some[uint32](100003), Version: record.Some[uint32](3), Procedure: record.Some[uint32](6),
				ProcedureName: record.Some("READ"), Call: &record.Message{}, Reply: &record.Message{}, LatencyNS: record.Some(latency),
			}
			if least.Known() {
				r.LatencyNS, r.LatencyMinNS = record.Some(latency*3), least
			}
			s.Transaction(r)
		}
		return s
	}
	for _, c := range []struct {
		least record.Opt[int64]
		want  string
	}{
		{record.Some[int64](5), "1.0 ms -> <= 3.0 ms +200%?"},
		{record.Opt[int64]{}, ""},
	} {
		var out bytes.Buffer
		list := analyze.Compare(side(record.Opt[int64]{}), side(c.least))
		if err := render.Compare(render.Screen{Out: &out, Theme: render.NewTheme(false), Width: 200}, list, [2]render.Captures{}, "operation", nil); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			if got, want := out.String(), "no change 40 RPCs, all latencies, stalls and negotiated values\n"; got != want {
				t.Errorf("equal captures: %q, want %q", got, want)
			}
			continue
		}
		_, row, _ := strings.Cut(out.String(), "\n")
		row, _, _ = strings.Cut(row, "\n")
		if strings.Count(row, c.want) != 2 {
			t.Errorf("the row %q does not contain %q for two percentiles", row, c.want)
		}
	}
}

// TestLongAddresses: two long addresses leave half of the rest of a line to the summary.
func TestLongAddresses(t *testing.T) {
	p := &record.Packet{
		Number: 1, Src: netip.MustParseAddr("2001:db8:1234:5678:5054:ff:fe77:2"), Dst: netip.MustParseAddr("2001:db8:1234:5678:5054:ff:fe77:1"),
		Transport: "RoCEv2", Summary: []byte("RC SEND Only QPN 0x000011"),
	}
	for width, want := range map[int]string{
		0:   "2001:db8:1234:5678:5054:ff:fe77:2 > 2001:db8:1234:5678:5054:ff:fe77:1 RoCEv2 ",
		90:  "~5054:ff:fe77:2 > ~5054:ff:fe77:1      RC SEND Only QPN 0x000011\n",
		120: " ~78:5054:ff:fe77:2 > ~78:5054:ff:fe77:1 RoCEv2 ",
		240: "2001:db8:1234:5678:5054:ff:fe77:2 > 2001:db8:1234:5678:5054:ff:fe77:1 RoCEv2 ",
	} {
		var b strings.Builder
		if err := render.NewPackets(&b, render.NewTheme(false), width).Packet(p); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("with %d columns:\n%swant %q", width, b.String(), want)
		}
	}
}
