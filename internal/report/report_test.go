package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// many returns a report about n RPCs, of which each seventh hundredth has no Reply, and the summary of their capture.
func many(t *testing.T, n int) (*Report, *record.Summary) {
	t.Helper()
	p := New(Selector{}, nil)
	if err := p.begin(1e18); err != nil {
		t.Fatal(err)
	}
	last := record.Time(1e18)
	for i := range n {
		at := 1e18 + record.Time(i)*1e6
		r := &record.Transaction{
			ID: int64(i + 1), Request: int64(i + 1), Attempt: 1, XID: record.Hex32(i), Direction: record.Forward, Status: record.Complete, LatencyNS: record.Some(int64(1e5 + i%1000)),
			Program: record.Some[uint32](100003), ProgramName: record.Some("NFS"), ProcedureName: record.Some("READ"), Client: record.Some("10.0.0.1"), Server: record.Some("10.0.0.9"),
			Call: &record.Message{Time: at, Packet: int64(2*i + 1)}, Reply: &record.Message{Time: at + 1e5, LastTime: at + 1e5, Packet: int64(2*i + 2)},
		}
		if i%700 == 0 {
			r.Status, r.Reply, r.LatencyNS = record.NoReply, nil, record.Opt[int64]{}
		}
		if err := p.transaction(r); err != nil {
			t.Fatal(err)
		}
		last = at + 1e5
	}
	if err := p.connection(&record.Connection{First: 1e18, Last: last, UpperLayer: "rpcrdma", Transactions: int64(n), ClientKnown: true, Packets: int64(2 * n)}); err != nil {
		t.Fatal(err)
	}
	return p, &record.Summary{First: record.Some(record.Time(1e18)), Last: record.Some(last), RDMA: int64(2 * n), Packets: int64(2 * n)}
}

// TestSize: a page about ten thousand RPCs is small enough for a ticket, and its problems lead to diagrams of their RPCs.
func TestSize(t *testing.T) {
	p, s := many(t, 10000)
	var b bytes.Buffer
	if err := p.Write(&b, s, About{Typed: "nfs.pcap"}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if len(page) > 300<<10 || strings.Count(page, `class="ladder"`) == 0 {
		t.Errorf("the page has %d bytes and %d diagrams", len(page), strings.Count(page, `class="ladder"`))
	}
	if !strings.Contains(page, `<a href="#rpc-`) {
		t.Error("no problem leads to a diagram")
	}
}

// TestProblems: the page begins with the problems, the worst first, and each leads to what the page has about it. Without any it says so.
func TestProblems(t *testing.T) {
	for n, want := range map[int]string{
		1: `<li class="bad"><span class="word">1 ERROR</span> <div><p><b>network or server:</b> <a href="#rpc-1">READ never answered</a></p>`,
		0: `<li class="good"><span class="word">OK</span> <div><p>no RPC; 1 connection</p>`,
	} {
		p, s := many(t, n)
		s.Connections, s.Last = 1, record.Some(record.Time(1e18+4e9))
		var b bytes.Buffer
		if err := p.Write(&b, s, About{Typed: "nfs.pcap"}); err != nil {
			t.Fatal(err)
		}
		_, said, _ := strings.Cut(b.String(), `<ol class="problems">`)
		said, _, _ = strings.Cut(said, "</ol>")
		if !strings.HasPrefix(strings.TrimSpace(said), want) {
			t.Errorf("the page about %d RPCs begins with\n%s\nwant\n%s", n, said, want)
		}
	}
}

// TestLeftOut: a page with very many connections says what it leaves out.
func TestLeftOut(t *testing.T) {
	p, s := many(t, 100)
	for i := range 300 {
		if err := p.connection(&record.Connection{ID: i + 1, First: 1e18, Last: 1e18 + 1, UpperLayer: "rpcrdma"}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := p.Write(&b, s, About{Typed: "nfs.pcap"}); err != nil {
		t.Fatal(err)
	}
	if page := b.String(); strings.Count(page, `id="conn-`) != maxConnections || !strings.Contains(page, "<li>101 connections: rdmadump connections nfs.pcap</li>") {
		t.Errorf("%d connections, and the page does not say how many are left out", strings.Count(page, `id="conn-`))
	}
}

// TestKept: the slowest RPCs are kept, the slowest first; of equal ones, the first stay.
func TestKept(t *testing.T) {
	p := New(Selector{}, nil)
	for i := range 3 * maxSlow {
		p.keep(&record.Transaction{ID: int64(i), Status: record.Complete, LatencyNS: record.Some(int64(i % maxSlow))})
	}
	want := fmt.Sprint([]int64{maxSlow - 1, 2*maxSlow - 1, 3*maxSlow - 1, maxSlow - 2})
	if got := fmt.Sprint([]int64{p.slow[0].ID, p.slow[1].ID, p.slow[2].ID, p.slow[3].ID}); got != want || len(p.slow) != maxSlow {
		t.Errorf("%d are kept, first %s, want %s", len(p.slow), got, want)
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
		if n := len(x.ticks()); n > 21 {
			t.Errorf("axis %v: %d marks", x, n)
		}
	}
}

// TestTicks: the marks of an axis are at round numbers. The label of a mark at the right end, which has a < here, is on its left.
func TestTicks(t *testing.T) {
	for span, want := range map[record.Time]string{
		18.487e9: "0s 5s 10s 15s",
		25.04e9:  "0s 5s 10s 15s 20s 25s<",
		1e6:      "0.0000s 0.0002s 0.0004s 0.0006s 0.0008s 0.0010s<",
		7:        "0.000000000s 0.000000001s 0.000000002s 0.000000003s 0.000000004s 0.000000005s 0.000000006s 0.000000007s<",
	} {
		var got []string
		for _, x := range (axis{8.5e9, 8.5e9 + span}).ticks() {
			got = append(got, x.Label+map[bool]string{true: "<"}[x.Last])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%d: %q, want %q", span, strings.Join(got, " "), want)
		}
	}
}

// TestColumns: an interval is as wide as its time is on the axis, which may end before the last interval does, and a span is in each
// column that it touches.
func TestColumns(t *testing.T) {
	rows := []*analyze.Rate{{Start: 0, End: 1e8, RPCs: 1}, {Start: 1e8, End: 2e8, RPCs: 5}, {Start: 2e8, End: 3e8, RPCs: 3}}
	columns := (axis{0, 2.5e8}).spread(rows, func(r *analyze.Rate) int { return r.RPCs })
	for at, want := range map[int]int{0: 1, 399: 1, 400: 5, 799: 5, 800: 3, 999: 3} {
		if columns[at] != want {
			t.Errorf("column %d: %d, want %d", at, columns[at], want)
		}
	}
	touched := (axis{0, 1000}).levels([]span{{10, 500}, {20, 20}, {400, 2000}})
	for at, want := range map[int]int{0: 0, 9: 0, 10: 1, 20: 2, 21: 1, 399: 1, 400: 2, 500: 2, 501: 1, 999: 1} {
		if touched[at] != want {
			t.Errorf("column %d: %d spans, want %d", at, touched[at], want)
		}
	}
}
