package report

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// many returns a report about n RPCs on one connection, each a millisecond after the one before. Every
// hundredth is slow, and every thousandth has no Reply.
func many(t testing.TB, n int, memory int64) (*Report, *record.Summary) {
	t.Helper()
	p := New(Selector{}, nil, memory)
	if err := p.begin(1e18); err != nil {
		t.Fatal(err)
	}
	last, random := record.Time(1e18), rand.New(rand.NewPCG(1, 1)) // the same in each run
	for i := range n {
		at := record.Time(1e18 + i*1e6)
		r := &record.Transaction{
			ID: int64(i + 1), XID: record.Hex32(random.Uint32()), Direction: record.Forward, Status: record.Complete, Program: record.Some(uint32(100003)), ProgramName: record.Some("NFS"),
			Version: record.Some(uint32(3)), Procedure: record.Some(uint32(6)), ProcedureName: record.Some("READ"), LatencyNS: record.Some(100000 + random.Int64N(90000)),
			Call:  &record.Message{Time: at, Packet: int64(2*i + 1), PayloadBytes: record.Some(int64(100 + i%7)), Credits: record.Some[uint32](32)},
			Reply: &record.Message{Time: at + 100000, Packet: int64(2*i + 2), PayloadBytes: record.Some(random.Int64N(1e6)), Credits: record.Some[uint32](32)},
		}
		if i%100 == 0 {
			r.LatencyNS = record.Some(int64(5e7))
		}
		if i%700 == 5 {
			r.LatencyMinNS = record.Some[int64](1000)
		}
		if i%1000 == 999 {
			r.Status, r.Reply, r.LatencyNS = record.NoReply, nil, record.Opt[int64]{}
		}
		if err := p.transaction(r); err != nil {
			t.Fatal(err)
		}
		last = at + 1e8
	}
	if err := p.connection(&record.Connection{First: 1e18, Last: last, UpperLayer: "rpcrdma", Transactions: int64(n)}); err != nil {
		t.Fatal(err)
	}
	return p, &record.Summary{First: record.Some(record.Time(1e18)), Last: record.Some(last), RDMA: int64(2 * n), Packets: int64(2 * n)}
}

// TestMaxSize: a page with very many RPCs is not larger than allowed, and says what it leaves out.
func TestMaxSize(t *testing.T) {
	p, s := many(t, 200000, 256<<20)
	var b bytes.Buffer
	if err := p.Write(&b, s, About{Typed: "nfs.pcap", MaxSize: LeastMaxSize}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > LeastMaxSize || b.Len() < LeastMaxSize*3/4 {
		t.Errorf("the page has %d bytes, want almost %d", b.Len(), LeastMaxSize)
	}
	if !strings.Contains(b.String(), `id="left-out"`) || !strings.Contains(b.String(), "of 200000: first those with findings and failures, then the slowest.") {
		t.Error("the page does not say what it leaves out")
	}
	list := unpack(t, b.String())
	failed := 0
	for _, x := range list {
		if x[7] == -1 {
			failed++
		}
	}
	if failed != 200 {
		t.Errorf("%d RPCs without a Reply are on the page, want all 200", failed)
	}
}

// TestMemory: with little memory, the page has fewer RPCs, and says so.
func TestMemory(t *testing.T) {
	p, s := many(t, 10000, 1<<20)
	var b bytes.Buffer
	if err := p.Write(&b, s, About{Typed: "nfs.pcap"}); err != nil {
		t.Fatal(err)
	}
	if got := len(unpack(t, b.String())); got != 4096 {
		t.Errorf("%d RPCs, want 4096", got)
	}
	for _, want := range []string{"has 4096 of 10000", "5904 RPCs are not drawn, because the capture has too many."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestProblems: the page begins with the problems, the worst first, and each leads to what the page has about it. Without any it says so.
func TestProblems(t *testing.T) {
	for _, harmed := range []bool{false, true} {
		p := New(Selector{}, nil, 64<<20)
		if err := p.begin(1e18); err != nil {
			t.Fatal(err)
		}
		r := &record.Transaction{
			ID: 1, Attempt: 1, XID: 7, Direction: record.Forward, Status: record.Complete, Client: record.Some("10.0.0.1"), Server: record.Some("10.0.0.9"), LatencyNS: record.Some[int64](5e6),
			Program: record.Some[uint32](100003), ProgramName: record.Some("NFS"), ProcedureName: record.Some("READ"),
			Call: &record.Message{Time: 1e18, Packet: 1}, Reply: &record.Message{Time: 1e18 + 5e6, Packet: 2},
		}
		if harmed {
			r.Status, r.Reply, r.LatencyNS = record.NoReply, nil, record.Opt[int64]{}
		}
		if err := p.transaction(r); err != nil {
			t.Fatal(err)
		}
		if err := p.connection(&record.Connection{First: 1e18, Last: 1e18 + 4e9, UpperLayer: "rpcrdma", Transactions: 1, ClientKnown: true, Packets: 100}); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.Write(&b, &record.Summary{First: record.Some(record.Time(1e18)), Last: record.Some(record.Time(1e18 + 4e9)), RDMA: 200, Packets: 200}, About{Typed: "nfs.pcap"}); err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(b.String(), `<ol class="problems">`)
		said, _, _ = strings.Cut(said, "</ol>")
		want := `<li class="good"><span class="word">OK</span> <div><p>1 RPC, all answered; worst 5.0 ms (READ)</p>`
		if harmed {
			want = `<li class="bad"><span class="word">ERROR</span> <div><p><b>network or server:</b> <a href="#conn-0">READ never answered</a></p>`
		}
		if !strings.HasPrefix(strings.TrimSpace(said), want) {
			t.Errorf("the page begins with\n%s\nwant\n%s", said, want)
		}
	}
}

// unpack decodes the data for the script.
func unpack(t *testing.T, page string) (rows [][13]int64) {
	t.Helper()
	_, data, _ := strings.Cut(page, `id="rows">`)
	data, _, _ = strings.Cut(data, "<")
	b, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data))))
	if err != nil {
		t.Fatal(err)
	}
	unsigned := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			t.Fatal("the data is too short")
		}
		b = b[size:]
		return n
	}
	rows = make([][13]int64, unsigned())
	for range 3 {
		for range unsigned() {
			b = b[unsigned():]
		}
	}
	for column := range 13 {
		for i := range rows {
			n, size := binary.Varint(b)
			if size <= 0 {
				t.Fatal("the data is too short")
			}
			b = b[size:]
			if delta := column == 0 || column == 1 || column == 3 || column == 10; delta && i > 0 {
				n += rows[i-1][column]
			}
			rows[i][column] = n
		}
	}
	if len(b) > 0 {
		t.Errorf("%d bytes follow the data", len(b))
	}
	return rows
}

// TestPack: the script gets the values of the rows.
func TestPack(t *testing.T) {
	p, s := many(t, 3000, 256<<20)
	var b bytes.Buffer
	if err := p.Write(&b, s, About{Typed: "nfs.pcap"}); err != nil {
		t.Fatal(err)
	}
	list := unpack(t, b.String())
	if len(list) != 3000 {
		t.Fatalf("%d RPCs, want 3000", len(list))
	}
	for i, got := range list {
		x := p.rows.list[i]
		want := [13]int64{x.id, x.start - 1e18, int64(x.conn), int64(x.xid), int64(x.name), int64(x.status), int64(x.rules), x.latency, x.call, x.reply, x.packet, 0, 0}
		if i%700 == 5 {
			want[12] = 1 // the latency is an upper bound
		}
		if got != want {
			t.Fatalf("RPC %d: %v, want %v", i, got, want)
		}
	}
}

// TestAxis: every time has a column, and the columns are in the order of times.
func TestAxis(t *testing.T) {
	for _, x := range []axis{{0, 1}, {0, 1000}, {-1 << 62, 1 << 62}, {math.MinInt64, math.MaxInt64}, {5, 5}} {
		before := 0
		for _, at := range []record.Time{math.MinInt64, -1 << 62, -1, 0, 1, 4, 5, 6, 500, 999, 1 << 40, 1 << 62, math.MaxInt64} {
			c := x.column(at)
			if c < before || c >= columnsWide {
				t.Errorf("axis %v: time %d has column %d, and the time before it has %d", x, at, c, before)
			}
			before = c
		}
		if n := len(ticksOf(x, 0)); n > 21 {
			t.Errorf("axis %v: %d marks", x, n)
		}
	}
}

// TestTicks: the marks of an axis are at round numbers. The label of a mark at the right end, which has a < here, is on its left.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		x    axis
		want string
	}{
		{axis{0, 18.487e9}, "0s 5s 10s 15s"},
		{axis{0, 25.04e9}, "0s 5s 10s 15s 20s 25s<"},
		{axis{8.5e9, 18.5e9}, "10s 12s 14s 16s 18s"},
		{axis{0, 1e6}, "0.0000s 0.0002s 0.0004s 0.0006s 0.0008s 0.0010s<"},
		{axis{0, 7}, "0.000000000s 0.000000001s 0.000000002s 0.000000003s 0.000000004s 0.000000005s 0.000000006s 0.000000007s<"},
	} {
		var got []string
		for _, x := range ticksOf(c.x, 0) {
			got = append(got, x.Label+map[bool]string{true: "<"}[x.Last])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %q, want %q", c.x, strings.Join(got, " "), c.want)
		}
	}
}

// TestMarks: NAKs are named only where there are any, and those that no timeline has are counted.
func TestMarks(t *testing.T) {
	for _, c := range []struct {
		marks      []mark
		naks       int64
		name, desc string
	}{
		{[]mark{{at: 1}}, 0, "Retransmissions", "The timelines of the RPCs have 1 retransmission, each of one or more packets."},
		{[]mark{{at: 1}, {at: 2}}, 3, "Retransmissions", "The timelines of the RPCs have 2 retransmissions, each of one or more packets. The connection has 3 NAKs; those that are in no timeline are not drawn."},
		{[]mark{{at: 1}, {2, true}}, 1, "Retransmissions and NAKs", "The timelines of the RPCs have 1 retransmission, each of one or more packets, and 1 NAK."},
	} {
		view := &cardView{Chart: &chart{}}
		(&page{}).drawMarks(view, axis{0, 10}, &record.Connection{Naks: c.naks}, &card{marks: c.marks})
		s := view.Chart.Strips[0]
		if s.Name != c.name || s.Desc != c.desc || len(s.Marks) != 1+strings.Count(c.name, "NAK") {
			t.Errorf("%v: %q, %q, %v", c.marks, s.Name, s.Desc, s.Marks)
		}
	}
}

// TestSpread: an interval is as wide as its time is on the axis, which may end before the last interval does.
func TestSpread(t *testing.T) {
	rows := []*analyze.Rate{{Start: 0, End: 1e8}, {Start: 1e8, End: 2e8}, {Start: 2e8, End: 3e8}}
	columns := spread(axis{0, 2.5e8}, rows, []int{1, 5, 3})
	for at, want := range map[int]int{0: 1, 399: 1, 400: 5, 799: 5, 800: 3, 999: 3} {
		if columns[at] != want {
			t.Errorf("column %d: %d, want %d", at, columns[at], want)
		}
	}
}

// TestSlots: RPCs that are in flight at once have different slots, and a slot is used again when it is
// free.
func TestSlots(t *testing.T) {
	spans := []span{{from: 0, to: 10}, {from: 2, to: 4}, {from: 4, to: 6}, {from: 5, to: 4}, {from: 12, to: 13}}
	var got []string
	used, none := slots(spans, 20, func(slot int, s *span, to record.Time) { got = append(got, fmt.Sprintf("%d:%d-%d", slot, s.from, to)) })
	if want := "0:0-10 1:2-4 1:4-6 2:5-20 0:12-13"; strings.Join(got, " ") != want || used != 3 || none != 0 {
		t.Errorf("%v, %d used, %d without; want %s, 3 used", got, used, none, want)
	}
	var all []span
	for range maxSlots + 5 {
		all = append(all, span{from: 0, to: 10})
	}
	if used, none := slots(all, 20, func(int, *span, record.Time) {}); used != maxSlots || none != 5 {
		t.Errorf("%d used, %d without; want %d and 5", used, none, maxSlots)
	}
}

// TestLevels: a picture shows the smallest and the largest number in each column.
func TestLevels(t *testing.T) {
	columns := levels(axis{0, 1000}, func(put func(from, to record.Time)) {
		put(10, 500)
		put(20, 20)
		put(400, 2000)
	})
	for at, want := range map[int]level{0: {0, 0}, 9: {0, 0}, 10: {0, 1}, 11: {1, 1}, 20: {1, 2}, 399: {1, 1}, 400: {1, 2}, 450: {2, 2}, 500: {1, 2}, 501: {1, 1}, 998: {1, 1}} {
		if columns[at] != want {
			t.Errorf("column %d: %v, want %v", at, columns[at], want)
		}
	}
}

// TestRecords: the records in a page are those of the RPCs with diagrams, of the connections and of the
// findings.
func TestRecords(t *testing.T) {
	p, s := many(t, 3000, 256<<20)
	if err := p.finding(&record.Finding{Type: "finding", Rule: "call-not-answered", Severity: record.Warning, Message: `</script> id="records">`, Connection: record.Some(0)}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b, s, About{Typed: `x" id="records">.pcap`}); err != nil {
		t.Fatal(err)
	}
	lines, err := Records(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for line := range bytes.Lines(text) {
		var r struct{ Type string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		got[r.Type]++
	}
	// The ten slowest transactions, the connection and the summary of this test have no type.
	if want := "map[:12 finding:1]"; fmt.Sprint(got) != want {
		t.Errorf("records %v, want %s", got, want)
	}
}

// FuzzRecords: any page can be read.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`<html><script id="records">H4sIAAAAAAAA/6tWKqksSFWyUkrLzEvJzEtXqgUAfKe1EBEAAAA=</script>`))
	f.Add([]byte(`<script id="records">H4sI</script>`))
	f.Add([]byte(`<script id="records">`))
	f.Fuzz(func(t *testing.T, page []byte) {
		lines, err := Records(bytes.NewReader(page))
		if err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, lines, 1<<20); err == nil && len(page) < 900 { // Deflate packs at most 1032 to 1.
			t.Error("a short page has very many records")
		}
	})
}

// TestEndOfCalls: in the pictures of a connection, a Call without a Reply is outstanding, and its memory exposed, until the
// connection begins to close, as in the numbers of the command line. Packets may follow.
func TestEndOfCalls(t *testing.T) {
	p := New(Selector{}, nil, 256<<20)
	if err := p.begin(0); err != nil {
		t.Fatal(err)
	}
	for i, latency := range []record.Opt[int64]{record.Some[int64](1e6), {}} {
		r := &record.Transaction{
			ID: int64(i + 1), XID: record.Hex32(i), Direction: record.Forward, Status: record.NoReply, LatencyNS: latency,
			Call:       &record.Message{Time: record.Time(i * 10e6), Packet: int64(2*i + 1), Credits: record.Some[uint32](32)},
			ReadChunks: []record.ReadChunk{{Segments: []record.Segment{{Handle: record.Hex32(i), Length: 4096}}}},
		}
		if latency.Known() {
			r.Status, r.Reply = record.Complete, &record.Message{Time: 1e6, LastTime: 1e6, Packet: 2, Credits: record.Some[uint32](1)}
		}
		if err := p.transaction(r); err != nil {
			t.Fatal(err)
		}
	}
	use := record.Credits{Granted: record.Some[uint32](1), PeakInFlight: record.Some(1)}
	c := &record.Connection{Closed: record.Some[record.Time](30e6), Last: 1e9, UpperLayer: "rpcrdma", Transactions: 2, Credits: record.Some(record.CreditPair{Forward: use})}
	if err := p.connection(c); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b, &record.Summary{First: record.Some[record.Time](0), Last: record.Some[record.Time](1e9), RDMA: 4, Packets: 4}, About{Typed: "nfs.pcap"}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"All were in use 1 time, for 20.00ms.", "2 exposures of 2 handles, at most 1 at once, the longest for 20.00ms;"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for title, want := range map[string]string{ // A column is a millisecond.
		"RPCs in flight over time":  `"M10 0h21v15h-21z"/>`,
		"Exposed handles over time": `"M11 0h19v48h-19z"/>`,
	} {
		_, plot, _ := strings.Cut(page, ">"+title+"</title>")
		if plot, _, _ = strings.Cut(plot, "</svg>"); !strings.HasSuffix(plot, want) {
			t.Errorf("%s: the picture is %s, want %s at its end", title, plot, want)
		}
	}
}

// TestManyClients: the page says how many mounts and steps of mounts it leaves out.
func TestManyClients(t *testing.T) {
	p := New(Selector{}, nil, 64<<20)
	if err := p.begin(1e18); err != nil {
		t.Fatal(err)
	}
	for i := range 80 {
		for _, program := range []string{"MOUNT", "NFS"} {
			at := record.Time(1e18 + i*1e6)
			r := &record.Transaction{
				ID: int64(i + 1), Connection: i, Direction: record.Forward, Status: record.Complete, Client: record.Some(fmt.Sprintf("10.0.0.%d", i)), Server: record.Some("10.9.9.9"),
				ProgramName: record.Some(program), Version: record.Some(uint32(3)), Procedure: record.Some(uint32(1)), Call: &record.Message{Time: at, Packet: 1}, Reply: &record.Message{Time: at, Packet: 2},
			}
			if program == "NFS" {
				r.Program = record.Some(uint32(100003))
			} else if r.MountPath = record.Some("/export"); i == 79 {
				r.NFSStatus = record.Some("MNT3ERR_ACCES")
			}
			if err := p.transaction(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if err := p.Write(&b, &record.Summary{Packets: 320, First: record.Some[record.Time](1e18), Last: record.Some[record.Time](1e18 + 1e9)}, About{Typed: "nfs.pcap"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Steps of mounts, in the order of their times: 65 of 160", "MNT3ERR_ACCES", "the first that were not; 95 steps are left out.", "and at least 56 more pairs of client, server and version",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not on the page", want)
		}
	}
}
