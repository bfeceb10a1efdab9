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
		{"unicode-80", 80, render.Look{Colour: render.NoColour, Unicode: true}},
		{"unicode-120", 120, render.Look{Colour: render.NoColour, Unicode: true, Times: render.UTC}},
		{"unicode-200", 200, render.Look{Colour: render.NoColour, Unicode: true, Times: render.Epoch}},
		{"true-colour-80", 80, render.Look{Colour: render.TrueColour, Unicode: true}},
		{"256-light-80", 80, render.Look{Colour: render.Colours256, Unicode: true, Light: true}},
		{"ascii-16-120", 120, render.Look{Colour: render.Colours16, Times: render.Delta}},
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
						return render.Ladder(&b, theme, look.width, r)
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

// TestOverviewOfPauses checks that the health line counts PFC pauses if there are any. Without packets of connections, nothing is said to be
// healthy.
func TestOverviewOfPauses(t *testing.T) {
	for _, c := range []struct {
		summary record.Summary
		want    string
	}{
		{record.Summary{Packets: 7, RDMA: 7}, "health    0 packets on connections"},
		{record.Summary{Packets: 8, RDMA: 7, PFCPauses: 1}, "health    0 packets on connections; 1 PFC pause"},
		{record.Summary{Packets: 9, RDMA: 7, CaptureDrops: 3, PFCPauses: 2}, "health    0 packets on connections; 2 PFC pauses"},
	} {
		var b bytes.Buffer
		screen := render.Screen{Out: &b, Theme: render.NewLook(render.Look{Colour: render.NoColour}), Width: 100}
		if err := render.Overview(screen, analyze.NewCollector().Finish(nil), &c.summary, "x.pcap"); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(strings.Split(b.String(), "\n"), c.want) {
			t.Errorf("want the line %q in\n%s", c.want, b.String())
		}
	}
}

// TestOverviewOfPoints: what capture points prove about packets is said. An acknowledgement that was lost harms nothing, and was
// lost nevertheless.
func TestOverviewOfPoints(t *testing.T) {
	for _, c := range []struct {
		name          string
		between       record.Network
		retransmitted int64
		want          []string
		no            string
	}{
		{"whole", record.Network{Packets: 1000}, 0, []string{"health    1000 packets on connections: no retransmission and no NAK in them\n"}, "between the"},
		{
			"lost without harm",
			record.Network{Packets: 1000, Lost: 1},
			0,
			[]string{
				"no fault proven that delayed much: 1 packet lost between the capture points; ",
				"health    1000 packets on connections: no retransmission and no NAK in them\n",
				"1 packet was lost between the capture points; every packet that is known to have passed a capture point is in its capture\n",
			},
			"no loss",
		},
		{
			"lost and damaged",
			record.Network{Packets: 1000, Lost: 80, Corrupted: 2},
			90,
			[]string{
				"80 packets were lost and 2 damaged between the capture points; every packet that is known to have passed a capture point is in its capture\n",
			},
			"missing",
		},
		{
			"not captured",
			record.Network{Packets: 1000, NotCaptured: 7, Lost: 1, Unknown: 3},
			2,
			[]string{
				"1 packet was lost between the capture points; whether 3 packets arrived is not known; the captures are incomplete: 7 packets were not captured at a point to which the network brought them\n",
			},
			"lack",
		},
		{
			"lost in quiet times",
			record.Network{Packets: 1000, Lost: 31, Quiet: []record.QuietTime{{From: 1, To: 2e9, Lost: 30}}},
			2,
			[]string{
				"1 packet was lost between the capture points; 30 packets did not arrive while the capture at the other point has no packet at all; every packet that is known to have passed a capture point is in its capture\n",
			},
			"31 packets",
		},
		{"retransmitted", record.Network{Packets: 1000}, 3, []string{"every packet that is known to have passed a capture point is in its capture\n"}, "lost between"},
	} {
		collector := analyze.NewCollector()
		collector.Network(nil, []*record.Network{&c.between})
		collector.Connection(&record.Connection{Packets: 1000, Retransmitted: c.retransmitted})
		summary := &record.Summary{Packets: 2000, RDMA: 1000}
		var b bytes.Buffer
		screen := render.Screen{Out: &b, Theme: render.NewLook(render.Look{Colour: render.NoColour}), Width: 280}
		if err := render.Overview(screen, collector.Finish(summary), summary, "a.pcap b.pcap"); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: want %q in\n%s", c.name, want, b.String())
			}
		}
		if strings.Contains(b.String(), c.no) {
			t.Errorf("%s: %q is said in\n%s", c.name, c.no, b.String())
		}
	}
}

// TestOverviewOfNothing: the overview of a capture without RDMA reports nothing as healthy.
func TestOverviewOfNothing(t *testing.T) {
	var b bytes.Buffer
	screen := render.Screen{Out: &b, Theme: render.NewLook(render.Look{Colour: render.NoColour}), Width: 100}
	if err := render.Overview(screen, analyze.NewCollector().Finish(&record.Summary{Packets: 7}), &record.Summary{Packets: 7}, "ssh.pcap"); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 5 || !strings.HasPrefix(lines[0], "verdict   the capture contains no RDMA") || !strings.HasPrefix(lines[4], "health    no RDMA in the capture") {
		t.Errorf("the overview of a capture without RDMA has these lines, want a verdict first and no RDMA as health last of five: %q", lines)
	}
}

// TestOverviewLooks draws the overview in several looks. Only lines with a command to copy may
// be too wide.
func TestOverviewLooks(t *testing.T) {
	for _, look := range []looks{
		{"unicode-80", 80, render.Look{Colour: render.NoColour, Unicode: true}},
		{"256-80", 80, render.Look{Colour: render.Colours256, Unicode: true}},
		{"ascii-40", 40, render.Look{Colour: render.NoColour}},
	} {
		t.Run(look.name, func(t *testing.T) {
			c := analyze.NewCollector()
			summary := run(t, "rocev2-loss42.pcap.zst", dissect.Handler{
				Transaction: func(r *record.Transaction) error { c.Transaction(r); return nil },
				Connection:  func(r *record.Connection) error { c.Connection(r); return nil },
				Finding:     func(r *record.Finding) error { c.Finding(r); return nil },
			})
			var b bytes.Buffer
			screen := render.Screen{Out: &b, Theme: render.NewLook(look.look), Width: look.width}
			if err := render.Overview(screen, c.Finish(summary), summary, "nfs.pcap"); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				n := utf8.RuneCountInString(strings.TrimRight(escapes.ReplaceAllString(line, ""), "\n"))
				if n > look.width && !strings.Contains(line, " rdmadump ") {
					t.Errorf("a line of %d: %s", n, line)
				}
			}
			golden(t, "overview-"+look.name+".golden", b.Bytes())
		})
	}
}

// TestOverviewOfManyClients: steps of mounts and the slowest RPCs say whose they are if the capture has several clients, and what
// an overview leaves out is counted.
func TestOverviewOfManyClients(t *testing.T) {
	o := analyze.NewCollector().Finish(&record.Summary{})
	for i := range analyze.MaxPairs {
		o.Groups = append(o.Groups, analyze.Group{Client: record.Some(fmt.Sprintf("10.0.0.%d", i+1)), Server: record.Some("10.9.9.9"), Transactions: 1})
	}
	o.MountSteps = []analyze.Step{
		{Time: 1e9, Client: record.Some("10.0.0.1"), Server: record.Some("10.9.9.9"), OK: record.Some(true), Asked: "MNT /export", Answer: "MNT3_OK"},
		{Time: 2e9, Client: record.Some("10.0.0.2"), Server: record.Some("10.9.9.9"), OK: record.Some(false), Asked: "MNT /export", Answer: "MNT3ERR_ACCES"},
	}
	o.MountStepsTotal = 90
	o.Slowest = []analyze.Slow{{Transaction: &record.Transaction{
		Client: record.Some("10.0.0.3"), Server: record.Some("10.9.9.9"), Call: &record.Message{Time: 1e9}, LatencyNS: record.Some[int64](5e6),
	}}}
	var b bytes.Buffer
	screen := render.Screen{Out: &b, Theme: render.NewLook(render.Look{Colour: render.NoColour}), Width: 100}
	if err := render.Overview(screen, o, &record.Summary{First: record.Some[record.Time](1e9)}, "nfs.pcap"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"and at least 60 more pairs of client and server\n", "0ns  10.0.0.1  MNT /export: MNT3_OK\n", "1.000s  10.0.0.2  MNT /export: MNT3ERR_ACCES\n", "and 88 more steps\n", "5.00ms  0x00000000  10.0.0.3  (not decoded)",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

// TestNumbersAreWhole: a number is not shortened if it is wider than those that the table
// learned from. The column with flex becomes narrower instead.
func TestNumbersAreWhole(t *testing.T) {
	var b bytes.Buffer
	text := render.NewText(&b, render.NewLook(render.Look{Colour: render.NoColour, Columns: []string{"NUMBER", "TIME", "SUMMARY", "LENGTH"}}), 50)
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

// TestHidden: hidden columns are listed. Columns with the same text in all rows are hidden
// first, and columns that show problems last.
func TestHidden(t *testing.T) {
	row := func(id int, retransmitted, naks int64) *record.Connection {
		return &record.Connection{
			ID: id, Transport: "RoCEv2", UpperLayer: "rpcrdma", Transactions: int64(id), Packets: int64(id),
			Client: record.Endpoint{Address: record.Some("192.168.100.100")}, Server: record.Endpoint{Address: record.Some("192.168.100.101")},
			Retransmitted: retransmitted, Naks: naks,
		}
	}
	for name, c := range map[string]struct {
		rows         []*record.Connection
		heads, notes string
	}{
		"healthy":         {[]*record.Connection{row(1, 0, 0), row(2, 0, 0)}, "CONN CLIENT          SERVER          RPCS PACKETS CLOSED", "3 columns hidden: TRANSPORT, PROTOCOL, IN FLIGHT (--wide "},
		"retransmissions": {[]*record.Connection{row(1, 0, 0), row(2, 9, 0)}, "CONN CLIENT          SERVER          RETRANSMITTED CLOSED", "5 columns hidden: TRANSPORT, PROTOCOL, RPCS, IN FLIGHT, PACKETS "},
		"one NAK":         {[]*record.Connection{row(7, 0, 1)}, "CONN CLIENT          SERVER          RPCS NAKS CLOSED", "IN FLIGHT, PACKETS (--wide "},
		"too late":        {append(many(300, row), row(301, 5, 0)), "CONN CLIENT          SERVER          RPCS PACKETS CLOSED", "not the same in all rows: RETRANSMITTED"},
	} {
		t.Run(name, func(t *testing.T) {
			var b, notes bytes.Buffer
			text := render.NewText(&b, render.NewLook(render.Look{Colour: render.NoColour, Notes: &notes}), 60)
			for _, r := range c.rows {
				text.Connection(r)
			}
			text.Finish()
			heads, _, _ := strings.Cut(b.String(), "\n")
			if heads != c.heads {
				t.Errorf("shown\n%s\nwant\n%s", heads, c.heads)
			}
			if !strings.Contains(strings.ReplaceAll(notes.String(), "\n", " "), c.notes) {
				t.Errorf("said: %s, want %s", notes.String(), c.notes)
			}
		})
	}
}

func many(n int, row func(int, int64, int64) *record.Connection) (rows []*record.Connection) {
	for i := range n {
		rows = append(rows, row(i, 0, 0))
	}
	return rows
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
		text := render.NewText(&b, render.NewLook(render.Look{Colour: render.NoColour, Times: form}), 0)
		for _, at := range []record.Time{first, second} {
			text.Finding(&render.FindingGroup{First: record.Finding{Rule: "a-rule", Severity: record.Error, Time: record.Some(at)}, Count: 1})
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
		"a finding":   {[]*record.Transaction{row(), row("xid-mismatch")}, true, "\nSTATUS: ! marks RPCs with findings, which rdmadump check lists\ncolumns explained: rdmadump help columns   more columns: --wide\n"},
		"no findings": {[]*record.Transaction{row()}, true, "\ncolumns explained: rdmadump help columns   more columns: --wide\n"},
		"no rows":     {nil, true, ""},
		"a pipe":      {[]*record.Transaction{row("xid-mismatch")}, false, "ok !\n"},
	} {
		var b bytes.Buffer
		text := render.NewText(&b, render.NewLook(render.Look{Colour: render.NoColour, Legend: c.legend}), 0)
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
// network, and retransmitted packets are a warning. Columns without any of them are not shown.
func TestNotCaptured(t *testing.T) {
	for _, c := range []struct {
		retransmitted, missed int64
	}{{0, 1038}, {3, 1038}, {0, 0}} {
		var b bytes.Buffer
		text := render.NewText(&b, render.NewLook(render.Look{Colour: render.Colours16}), 0)
		text.Connection(&record.Connection{Retransmitted: c.retransmitted, NotCaptured: c.missed})
		text.Finish()
		for heading, want := range map[string]string{"RETRANSMITTED": fmt.Sprintf("\x1b[33m%d\x1b", c.retransmitted), "NOT CAPTURED": fmt.Sprintf("\x1b[2m%d\x1b", c.missed)} {
			shown := c.retransmitted > 0
			if heading == "NOT CAPTURED" {
				shown = c.missed > 0
			}
			if strings.Contains(b.String(), heading) != shown || strings.Contains(b.String(), want) != shown {
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
		screen := render.Screen{Out: &b, Theme: render.NewLook(render.Look{Colour: render.NoColour}), Width: 200}
		if err := render.Network(screen, 0, []*record.Point{{Name: "client"}, {Name: "server"}}, []*record.Network{n}); err != nil {
			t.Fatal(err)
		}
		const want = "Of 22 packets lost on the way to server, 18 were sent while its capture has no packet at all: the network lost them, or the host there was down.\n"
		if strings.Contains(b.String(), want) != (lost > 0) {
			t.Errorf("%d lost in a quiet time:\n%s", lost, b.String())
		}
	}
}
