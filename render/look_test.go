package render_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// looks is a look and a width to draw with.
type looks struct {
	name  string
	width int
	look  render.Look
}

// TestLooks draws a connection's charts, a ladder and the table of statistics with block and
// braille characters, in colour, and with other formats of times.
func TestLooks(t *testing.T) {
	for _, look := range []looks{
		{"unicode-80", 80, render.Look{Unicode: true}},
		{"unicode-120", 120, render.Look{Unicode: true, Times: render.UTC}},
		{"unicode-200", 200, render.Look{Unicode: true, Times: render.Epoch}},
		{"colour-80", 80, render.Look{Colour: true, Unicode: true}},
		{"ascii-colour-120", 120, render.Look{Colour: true, Times: render.Delta}},
	} {
		t.Run(look.name, func(t *testing.T) {
			var b bytes.Buffer
			theme := render.NewLook(look.look)
			var forward analyze.CreditTimeline
			var handles analyze.HandleTimeline
			table := analyze.NewTable(analyze.ByOperation)
			var axis render.Axis
			counted := record.Credits{PeakInFlight: record.Some(2)}
			text := render.NewText(&b, theme, look.width)
			run(t, "rocev2-loss42.pcap.zst", dissect.Handler{
				Transaction: func(r *record.Transaction) error {
					table.Add(r)
					if r.Connection != 0 {
						return nil
					}
					forward.Add(r)
					handles.Add(r)
					if r.XID == 0x4a5eb126 {
						if err := text.Transaction(r); err != nil {
							return err
						}
						return render.Ladder(&b, theme, look.width, r, true)
					}
					return nil
				},
				Connection: func(r *record.Connection) error {
					if r.ID == 0 {
						axis = render.Axis{Start: r.First, From: r.First, To: r.Last}
					}
					return nil
				},
			})
			for _, draw := range []func() error{
				text.Flush,
				func() error {
					return render.CreditChart(render.Screen{Out: &b, Theme: theme, Width: look.width, Height: 8}, forward.Finish(&record.Connection{Last: axis.To, Credits: record.Some(record.CreditPair{Forward: counted})}, record.Forward), axis)
				},
				func() error {
					return render.HandleChart(render.Screen{Out: &b, Theme: theme, Width: look.width, Height: 12}, handles.Finish(0, axis.To), axis)
				},
				func() error { return render.Stats(&b, theme, look.width, table.Rows()) },
			} {
				if err := draw(); err != nil {
					t.Error(err)
				}
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(escapes.ReplaceAllString(line, ""), "\n")); n > look.width {
					t.Errorf("a line of %d: %s", n, line)
				}
			}
			golden(t, "look-"+look.name+".golden", b.Bytes())
		})
	}
}

// drawn draws an overview, and checks that it is at most 24 lines, and that no line but a command is wider than the screen.
func drawn(t *testing.T, story render.Story, width int, look render.Look) string {
	t.Helper()
	var b bytes.Buffer
	screen := render.Screen{Out: &b, Theme: render.NewLook(look), Width: width}
	if err := render.Overview(screen, story, render.Captures{Title: "nfs.pcap", Typed: "'/data/nfs and more.pcap'"}); err != nil {
		t.Fatal(err)
	}
	text := escapes.ReplaceAllString(b.String(), "")
	if n := strings.Count(text, "\n"); n > render.OverviewHeight {
		t.Errorf("%d lines at %d columns:\n%s", n, width, text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if command := strings.Contains(line, ": rdmadump "); !command && render.Width(line) > width || command && !strings.HasSuffix(line, " '/data/nfs and more.pcap'") {
			t.Errorf("at %d columns: %q", width, line)
		}
	}
	return text
}

// manyProblems are more problems than a screen has room for.
func manyProblems(n int, severity record.Severity) (list []*record.Problem) {
	for i := range n {
		list = append(list, &record.Problem{
			Rank: i + 1, ID: "outage", Severity: severity, Places: []record.ProblemPlace{record.InNetwork, record.InServer},
			Headline: fmt.Sprintf("headline of problem %d \x1b[31m", i+1), Effect: strings.Repeat("effect of it ", 20),
			From: record.Some(record.Time(i+1) * 1e9), To: record.Some(record.Time(i+3) * 1e9),
			Evidence: []record.ProblemFact{{Packet: 1492, Fact: "Reply 2348 B"}, {Packet: 1495, Fact: "NAK"}, {Packet: 1496, Fact: "DREQ"}, {Packet: 1500, Fact: "the fourth"}},
			Command:  []string{"check", "-Y", fmt.Sprintf("rule == r%d", i+1)},
		})
	}
	return list
}

// TestOverviewFits: however much there is to say, the screen has the rank, places, headline and command of the first problems.
func TestOverviewFits(t *testing.T) {
	summary := &record.Summary{Packets: 900, RDMA: 900, First: record.Some[record.Time](0), Last: record.Some[record.Time](20e9)}
	c := analyze.NewCollector()
	c.Begin(0)
	for i := range 40 {
		at := record.Time(i) * 5e8
		c.Transaction(&record.Transaction{
			ID: int64(i + 1), Request: int64(i + 1), Attempt: 1, Status: record.Complete, Operation: record.Some(fmt.Sprintf("OPERATION_NUMBER_%d", i)),
			Call: &record.Message{Time: at}, Reply: &record.Message{Time: at + 3e6}, LatencyNS: record.Some[int64](3e6),
			Phases: record.Some(record.Phases{ToReplyNS: record.Some[int64](3e6)}),
		})
	}
	o := c.Finish(summary)
	for i := range analyze.MaxPairs {
		o.Groups = append(o.Groups, analyze.Group{Client: record.Some(fmt.Sprintf("10.0.0.%d", i+1)), Server: record.Some("10.9.9.9"), Transport: "RoCEv2", UpperLayer: "rpcrdma", Transactions: 1, Connections: 1})
	}
	for _, width := range []int{80, 100, 160} {
		for _, n := range []int{0, 1, 2, 3, 4, 12} {
			for _, look := range []render.Look{{}, {Colour: true, Unicode: true}} {
				list := slices.Concat(manyProblems(n, record.Error), manyProblems(5, record.Note))
				text := drawn(t, render.Story{Overview: o, Problems: list, Summary: summary}, width, look)
				for i := range min(n, 3) {
					if want := fmt.Sprintf("%d ERROR  network or server: headline of problem %d \\x1b[31m\n", i+1, i+1); !strings.Contains(text, want) {
						t.Errorf("%d problems at %d columns: no %q in\n%s", n, width, want, text)
					}
					if want := fmt.Sprintf("         findings: rdmadump check -Y 'rule == r%d' ", i+1); i < 2 && !strings.Contains(text, want) {
						t.Errorf("%d problems at %d columns: no %q in\n%s", n, width, want, text)
					}
				}
				for _, want := range []string{"\nOPERATION ", "\nSUM       120 ms over RPCs = 100% waiting for Reply\n", ">= 64 clients > 10.9.9.9", "40 RPCs", "\nRPCs      "} {
					if !strings.Contains(text, want) {
						t.Errorf("%d problems at %d columns: no %q in\n%s", n, width, want, text)
					}
				}
				if more := fmt.Sprintf("+ %d more: rdmadump problems ", n-3); n == 12 && !strings.Contains(text, more) {
					t.Errorf("no %q in\n%s", more, text)
				}
				if strings.Contains(text, "the fourth") || n > 0 && strings.Contains(text, "  OK  ") {
					t.Errorf("%d problems at %d columns:\n%s", n, width, text)
				}
			}
		}
	}
}

// TestOverviewOfNothing: a capture without RPCs and connections has nothing that could be OK.
func TestOverviewOfNothing(t *testing.T) {
	summary := &record.Summary{Packets: 7, OtherProtocols: []record.OtherProtocol{{Protocol: "ARP", Packets: 7}}}
	text := drawn(t, render.Story{Overview: analyze.NewCollector().Finish(summary), Summary: summary}, 100, render.Look{})
	if !strings.Contains(text, "no RPC and no connection") && !strings.Contains(text, "no RDMA") || strings.Contains(text, "OK") {
		t.Error(text)
	}
}

// TestUnfinishedOperations: at 100 columns, the list and the overview say how much was asked for if less was moved.
func TestUnfinishedOperations(t *testing.T) {
	var b bytes.Buffer
	text := render.NewText(&b, render.NewTheme(false), 100)
	c := analyze.NewCollector()
	for id, moved := range []int64{1024, 16384, 8192, 0, 0, 0} {
		r := &record.RDMAOperation{
			ID: int64(id), Kind: record.ReadOperation, Side: record.Server, Handle: record.Some(record.Hex32(id)), Bytes: moved,
			Requested: record.Some(max(moved, 16384)), Status: record.OperationIncomplete, StalledNS: 3_759_031_000,
		}
		if id == 0 {
			r.Requested, r.StalledNS = record.Opt[int64]{}, 0
		}
		text.Operation(r)
		c.Operation(r)
	}
	text.Finish()
	for _, want := range []string{" 1024 ", " 16 KiB ", " 8192 B of 16 KiB ", " 0 B of 16 KiB "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	summary := &record.Summary{Packets: 72}
	c.Connection(&record.Connection{UpperLayer: "unknown", Transport: "RoCEv2", Packets: 72, Retransmitted: 28})
	shown := drawn(t, render.Story{Overview: c.Finish(summary), Summary: summary}, 100, render.Look{})
	if want := "6 RDMA Reads of the server (25 KiB of 81 KiB), "; !strings.Contains(shown, want) {
		t.Errorf("no %q in\n%s", want, shown)
	}
}

// TestNumbersAreWhole: a number is not shortened if it is wider than those that the table
// learned from. The column with flex becomes narrower instead.
func TestNumbersAreWhole(t *testing.T) {
	var b bytes.Buffer
	text := render.NewText(&b, render.NewLook(render.Look{Columns: []string{"PACKET", "TIME", "SUMMARY", "LENGTH"}}), 50)
	for i := range 300 {
		p := record.Packet{Number: int64(i + 1), Length: 60, Summary: []byte(strings.Repeat("summary ", 9))}
		if i == 299 {
			p.Number, p.Time, p.Length = 123456789, 98765*1e9, 262144
		}
		if err := text.Packet(&p); err != nil {
			t.Fatal(err)
		}
	}
	text.Finish()
	lines := strings.Split(b.String(), "\n")
	for i, want := range map[int]string{
		1:   "     1 0.000000 summary summary summary su~     60",
		300: "123456789 98765.000000 summary summary sum~ 262144",
	} {
		if lines[i] != want {
			t.Errorf("line %d: %q, want %q", i, lines[i], want)
		}
	}
}

// TestHidden: which columns a table of sums has depends on its width alone, and a list names the hidden columns whose texts differ only in a late row.
func TestHidden(t *testing.T) {
	connection := func(id int, retransmitted, naks int64) func(*render.Text) {
		return func(text *render.Text) {
			text.Connection(&record.Connection{
				ID: id, Transport: "RoCEv2", UpperLayer: "rpcrdma", RPCs: int64(id), Transactions: int64(id), Packets: int64(id),
				Client: record.Endpoint{Address: record.Some("192.168.100.100")}, Server: record.Endpoint{Address: record.Some("192.168.100.101")},
				Retransmitted: retransmitted, Naks: naks,
			})
		}
	}
	rpc := func(client string) func(*render.Text) {
		return func(text *render.Text) {
			text.Transaction(&record.Transaction{Client: record.Some(client), Call: &record.Message{}, Reply: &record.Message{}})
		}
	}
	const stands = "CONN CLIENT          SERVER          RPCS ATTEMPTS REPEATED NAKS CLOSED"
	for name, c := range map[string]struct {
		rows         []func(*render.Text)
		heads, notes string
	}{
		"healthy":         {[]func(*render.Text){connection(1, 0, 0), connection(2, 0, 0)}, stands, ""},
		"retransmissions": {[]func(*render.Text){connection(1, 0, 0), connection(2, 9, 0)}, stands, ""},
		"one NAK":         {[]func(*render.Text){connection(7, 0, 1)}, stands, ""},
		"none":            {[]func(*render.Text){connection(0, 0, 0)}, stands, ""},
		"too late":        {append(slices.Repeat([]func(*render.Text){rpc("192.0.2.1")}, 300), rpc("192.0.2.2")), "", "hidden (--wide): CLIENT"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			text := render.NewText(&b, render.NewTheme(false), 80)
			for _, row := range c.rows {
				row(text)
			}
			text.Finish()
			if heads, _, _ := strings.Cut(b.String(), "\n"); heads != c.heads && c.heads != "" {
				t.Errorf("shown\n%s\nwant\n%s", heads, c.heads)
			}
			if said := b.String(); !strings.Contains(said, c.notes) || c.notes == "" && strings.Contains(said, "hidden") {
				t.Errorf("said: %s, want %s", said, c.notes)
			}
		})
	}
}

// TestTimes: the same time in each of the formats.
func TestTimes(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	time.Local = time.FixedZone("", 9*3600)
	const first, second = record.Time(1795236900197912345), record.Time(1795236901297912345)
	for form, want := range map[render.Times]string{
		render.Relative: "1.100000", render.Delta: "1.100000", render.UTC: "2026-11-21 04:55:01.297912",
		render.Local: "2026-11-21 13:55:01.297912", render.Epoch: "1795236901.297912",
	} {
		var b bytes.Buffer
		text := render.NewText(&b, render.NewLook(render.Look{Times: form}), 0)
		for _, at := range []record.Time{first, second} {
			text.Finding(&record.Finding{Rule: "a-rule", Severity: record.Error, Time: record.Some(at)})
		}
		text.Flush()
		lines := strings.Split(b.String(), "\n")
		if !strings.Contains(lines[2], "  "+want) {
			t.Errorf("%s: %s, want %s", form, lines[2], want)
		}
	}
	if fmt.Sprint(render.AllTimes) != "[relative delta utc local epoch]" {
		t.Error(render.AllTimes)
	}
}

// TestLegend: on a terminal, a line below a table explains the mark of findings if a row has it, and in a pipe there is none.
func TestLegend(t *testing.T) {
	row := func(findings ...string) *record.Transaction {
		return &record.Transaction{Status: record.Complete, Call: &record.Message{}, Reply: &record.Message{}, Findings: findings}
	}
	for name, c := range map[string]struct {
		rows   []*record.Transaction
		legend bool
		want   string
	}{
		"a finding":   {[]*record.Transaction{row(), row("xid-mismatch")}, true, "\nSTATUS: ! = findings of rdmadump check\nheadings: rdmadump help columns   more columns: --wide\n"},
		"no findings": {[]*record.Transaction{row()}, true, "\nheadings: rdmadump help columns   more columns: --wide\n"},
		"no rows":     {nil, true, ""},
		"a pipe":      {[]*record.Transaction{row("xid-mismatch")}, false, "ok !\n"},
	} {
		var b bytes.Buffer
		text := render.NewText(&b, render.NewLook(render.Look{Legend: c.legend}), 0)
		for _, r := range c.rows {
			if err := text.Transaction(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := text.Finish(); err != nil || !strings.HasSuffix(b.String(), c.want) || c.want == "" && b.Len() > 0 {
			t.Errorf("%s: %v, %q does not end in %q", name, err, b.String(), c.want)
		}
	}
}

// TestNotCaptured: packets that the capture lacks are dim, because they say nothing about the
// network, and retransmitted packets are a warning. None of them is a dim sign.
func TestNotCaptured(t *testing.T) {
	for _, c := range []struct {
		retransmitted, missed int64
	}{{0, 1038}, {3, 1038}, {0, 0}} {
		var b bytes.Buffer
		text := render.NewText(&b, render.NewLook(render.Look{Colour: true}), 0)
		text.Connection(&record.Connection{Retransmitted: c.retransmitted, NotCaptured: c.missed})
		text.Finish()
		for heading, want := range map[string]string{"REPEATED": fmt.Sprintf("\x1b[33m%d\x1b", c.retransmitted), "NOT CAPTURED": fmt.Sprintf("\x1b[2m%d\x1b", c.missed)} {
			shown := c.retransmitted > 0
			if heading == "NOT CAPTURED" {
				shown = c.missed > 0
			}
			if !shown {
				want = "\x1b[2m0\x1b"
			}
			if !strings.Contains(b.String(), heading) || !strings.Contains(b.String(), want) {
				t.Errorf("%q: the column %s with %q is wanted: %t", b.String(), heading, want, shown)
			}
		}
	}
}

// TestQuietTimes: the view of the network says which of the lost packets a host that was down explains.
func TestQuietTimes(t *testing.T) {
	for _, lost := range []int64{0, 18} {
		n := &record.Network{From: "client", To: "server", Packets: 1106, Lost: 22}
		if lost > 0 {
			n.Quiet = []record.QuietTime{{From: 1, To: 2e9, Lost: lost}}
		}
		var b bytes.Buffer
		screen := render.Screen{Out: &b, Theme: render.NewTheme(false), Width: 200}
		if err := render.Network(screen, 0, []*record.Point{{Name: "client"}, {Name: "server"}}, []*record.Network{n}); err != nil {
			t.Fatal(err)
		}
		const want = "18 of the 22 packets lost on the way to server were sent while the capture there has no packet at all: perhaps only not captured.\n"
		if strings.Contains(b.String(), want) != (lost > 0) {
			t.Errorf("%d lost in a quiet time:\n%s", lost, b.String())
		}
	}
}
