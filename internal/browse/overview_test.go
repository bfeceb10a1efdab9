package browse

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// overviewOf returns the lines of the overview of a capture as the command overview writes them.
func overviewOf(t *testing.T, path, filter string, width int) string {
	t.Helper()
	c := analyze.NewCollector()
	var f *query.Filter
	if filter != "" {
		var err error
		if f, err = query.Compile(filter, query.Transactions); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := dissect.New(dissect.Handler{
		Begin: c.Begin,
		Transaction: func(r *record.Transaction) error {
			if f != nil {
				if hit, err := f.Match(r); err != nil || !hit {
					c.UnselectedRPC(r)
					return err
				}
			}
			c.Transaction(r)
			return nil
		},
		Connection: func(r *record.Connection) error { c.Connection(r); return nil },
		Finding:    func(r *record.Finding) error { c.Finding(r); return nil },
		Operation:  func(r *record.RDMAOperation) error { c.Operation(r); return nil },
	}, dissect.Options{OtherOperations: true}).Run(t.Context(), testkit.Open(t, path))
	var b strings.Builder
	o := c.Finish(s)
	if filter != "" {
		o.Selected = "selected: RPCs by the filter. Verdict and health count the packets of whole connections. All other packets are those of the whole capture; credits, and the RPCs above, are those of whole connections."
	}
	if err := render.Overview(render.Screen{Out: &b, Theme: theme(plainLook), Width: width}, o, s, "FILE"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOverview: list 0 is what the command overview writes, for the whole capture and for the RPCs that a filter selects, and
// Enter on each of its lines shows something or says why it does not.
func TestOverview(t *testing.T) {
	for _, path := range []string{sample, storm, lossy, "../../samples/rocev2-errors.pcap", "../../testdata/captures/rocev2-mixed.pcap.zst", "../../testdata/captures/derived-cut-callback41.pcap.zst"} {
		m := modelOf(t, path, plainLook)
		m.resize(102, 40)
		followed := 0
		for _, filter := range []string{"", "latency > 2ms", "id < 0"} {
			press(t, m, "1&"+filter+"<enter>0")
			m.Lines()
			verify(t, m)
			o := m.top().(*overview)
			if got, want := strings.Join(o.pane.text, "\n")+"\n", overviewOf(t, path, filter, 100); got != want {
				t.Errorf("%s with the filter %q: %s", path, filter, difference(want, got))
			}
			for i, line := range o.lines {
				if filter != "" {
					break
				}
				if m.tab == tabRPCs {
					press(t, m, "1&<enter>")
				} else if l, is := m.tabs[m.tab].(*list); is && l.filter != "" {
					press(t, m, "&<enter>")
				}
				press(t, m, "0")
				m.Lines()
				o.cursor = int64(i)
				press(t, m, "<enter>")
				verify(t, m)
				shows := m.top() != screen(o)
				if m.bad || shows != (line.Command != "" && !strings.HasPrefix(line.Command, "rdma ")) {
					t.Errorf("%s: Enter on %q, whose command is %q, shows\n%s", path, strip(line.Text), line.Command, m.Screen())
				}
				if shows {
					followed++
				}
			}
		}
		if followed < 5 {
			t.Errorf("%s: Enter shows more on %d lines", path, followed)
		}
	}
}

// TestOverviewBack: q goes back from what Enter has shown to the overview, step by step, and lists get their filters back.
func TestOverviewBack(t *testing.T) {
	m := modelOf(t, "../../samples/rocev2-errors.pcap", plainLook)
	m.resize(120, 40)
	connections := m.tabs[tabConnections].(*list)
	press(t, m, "2&packets > 7<enter>0")
	m.Lines()
	press(t, m, "/conn 10<enter><enter>")
	if m.tab != tabConnections || connections.filter != "id == 10" || connections.count() != 1 || !strings.Contains(m.Screen(), "q back to overview") {
		t.Fatalf("Enter on the line about connection 10 shows\n%s", m.Screen())
	}
	press(t, m, "<enter><enter>")
	if m.tab != tabRPCs || m.list.filter != "connection == 10" || m.list.count() != 1 {
		t.Fatalf("Enter on the connection shows\n%s", m.Screen())
	}
	press(t, m, "qq")
	if m.tab != tabConnections || m.list.filter != "" || connections.filter != "id == 10" {
		t.Fatalf("q shows\n%s", m.Screen())
	}
	press(t, m, "q")
	if m.tab != tabOverview || connections.filter != "packets > 7" || m.Quit() {
		t.Fatalf("q twice shows\n%s", m.Screen())
	}
	if press(t, m, "/busiest<enter><enter>q"); m.tab != tabOverview || m.Quit() {
		t.Errorf("after the sums, q shows\n%s", m.Screen())
	}
	if press(t, m, "q"); !m.Quit() {
		t.Error("q in the overview does not quit")
	}
}

// TestOverviewLines: each line has the command that is about it: the one below it in its section, or that of its own RPC.
func TestOverviewLines(t *testing.T) {
	m := modelOf(t, "../../samples/rocev2-errors.pcap", plainLook)
	m.resize(122, 60)
	press(t, m, "0")
	m.Lines()
	commands, section := map[string]string{}, ""
	for _, line := range m.top().(*overview).lines {
		if label := strings.TrimSpace(line.Text[:8]); label != "" {
			section = label
			commands[section] = line.Command
		}
		if strings.Contains(line.Text, "0x") && section == "slowest" && !strings.Contains(line.Text, "rdmadump ") && !strings.HasPrefix(line.Command, "FILE -Y 'id == ") {
			t.Errorf("the command of %q is %q", line.Text, line.Command)
		}
	}
	for label, want := range map[string]string{"capture": "connections FILE", "busiest": "stats FILE", "health": "packets FILE -Y 'marks == refused'", "check": "check FILE", "RPCs": "FILE -Y 'status != ok'"} {
		if got, known := commands[label]; !known || got != want {
			t.Errorf("the command of the line %s is %q, want %q, of %q", label, got, want, commands)
		}
	}
}

// TestOverviewSoFar: while packets are being captured, the overview so far has the connections that are still open.
func TestOverviewSoFar(t *testing.T) {
	frames, _ := testkit.Frames(t, sample)
	sum := NewOverview()
	d := dissect.New(sum.Handler(), dissect.Options{Files: true, Live: true, OtherOperations: true})
	for i := range frames[:200] {
		if err := d.Frame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	if sum.Tick(d); sum.soFar() != nil {
		t.Error("there is an overview although nobody looks at it")
	}
	sum.wanted.Store(true)
	sum.Tick(d)
	if now := sum.soFar(); now == nil || now.Connections != 2 || now.of.Packets != 200 || now.RPCs.Complete == 0 {
		t.Errorf("after 200 packets, the overview is %+v", now)
	}
}
