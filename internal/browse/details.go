package browse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// looked is the message that a second pass has ended.
type looked struct {
	of   context.Context
	show func() tea.Cmd
}

// look returns the command that reads the capture once more. Read returns what then shows the result. It ends when its screen is left.
func (m *Model) look(what string, read func(ctx context.Context, source Source, o dissect.Options) (show func() tea.Cmd)) tea.Cmd {
	if m.options.Open == nil {
		m.message = m.options.Closed
		return nil
	}
	m.leave()
	ctx, cancel := context.WithCancel(m.ctx)
	m.reading = cancel
	m.message = what
	o := m.options.Dissect
	o.Live = false
	return guarded(func() tea.Msg {
		source, err := m.options.Open(ctx)
		if err != nil {
			return looked{ctx, func() tea.Cmd { m.message = render.Clean(err.Error()); return nil }}
		}
		defer source.Close()
		return looked{ctx, read(ctx, source, o)}
	})
}

// errSeen ends a second pass, because everything was seen.
var errSeen = errors.New("seen")

// openLadder shows the ladder of an RPC. If the capture can be read once more, it has the decoded arguments and results, and each line
// opens its packet.
func (m *Model) openLadder(r *record.Transaction) tea.Cmd {
	p := m.ladder(r, nil, func(width int) []render.LadderLine { return render.LadderLines(m.theme, width, r) })
	m.push(p)
	if m.options.Open == nil {
		return nil
	}
	wanted, last, until := map[record.PacketRef]bool{}, int64(0), record.Time(0)
	for _, e := range r.Timeline {
		wanted[e.First()] = true
		last, until = max(last, e.Packet, e.LastPacket.Or(0)), max(until, e.Time)
	}
	for _, message := range []*record.Message{r.Call, r.Reply} {
		if message != nil {
			last, until = max(last, message.LastPacket), max(until, message.Time)
		}
	}
	width := m.width - gutter
	return m.look("reading its packets, and decoded arguments and results", func(ctx context.Context, source Source, o dissect.Options) func() tea.Cmd {
		var drawn []render.LadderLine
		var packets []*record.Packet
		o.Decode, o.Tree, o.XIDs = true, true, []record.Hex32{r.XID}
		seen := false // all packets
		h := dissect.Handler{
			Transaction: func(t *record.Transaction) error {
				if t.ID == r.ID {
					drawn = render.LadderLines(m.theme, width, t)
				}
				if drawn != nil && seen {
					return errSeen
				}
				return nil
			},
			Packet: func(p *record.Packet) error {
				if id, known := p.Transaction.Get(); (known && id == r.ID || p.In(wanted)) && len(packets) < mostPackets {
					packets = append(packets, p.Clone())
				}
				if seen = seen || p.Number >= last && p.Time >= until; seen && drawn != nil {
					return errSeen
				}
				return nil
			},
		}
		if o.Points == nil {
			o.Last = last
		}
		_, err := dissect.New(h, o).Run(ctx, source)
		return func() tea.Cmd {
			if err != nil && err != errSeen && len(packets) == 0 {
				m.message = render.Clean(err.Error())
				return nil
			}
			whole := m.ladder(r, packets, func(at int) []render.LadderLine {
				if drawn != nil && at == width {
					return drawn
				}
				return render.LadderLines(m.theme, at, r)
			})
			if whole.scroll = p.scroll; m.top() == screen(p) {
				m.stack[len(m.stack)-1] = whole
			}
			return nil
		}
	})
}

// mostPackets is the number of packets of an RPC that are kept to be shown.
const mostPackets = 2000

// ladder returns the screen of an RPC with its packets, as far as they were read.
func (m *Model) ladder(r *record.Transaction, packets []*record.Packet, drawn func(width int) []render.LadderLine) *pane {
	p := newPane(m, fmt.Sprintf("RPC %d, %s of connection %d", r.ID, r.XID, r.Connection), func(width int) (lines []line) {
		for _, l := range drawn(width) {
			one := line{text: l.Text}
			switch {
			case l.Event && m.options.Open == nil:
				one.enter = func() tea.Cmd { m.message = m.options.Closed; return nil }
			case l.Event:
				one.opens, one.enter = "its packet", func() tea.Cmd {
					for i, packet := range packets {
						if packet.Is(l.First) {
							m.push(m.packet(fmt.Sprintf("RPC %d", r.ID), packets, i))
							return nil
						}
					}
					m.message = map[bool]string{true: "its packets are still being read", false: "this packet was not found"}[packets == nil]
					return nil
				}
			}
			lines = append(lines, one)
		}
		return lines
	})
	p.run = fmt.Sprintf("%s --conn %d --xid %s", m.options.Typed, r.Connection, r.XID)
	p.turn = func(back bool) tea.Cmd {
		l := m.listed()
		before := l.cursor
		l.cursor += map[bool]int64{true: -1, false: 1}[back]
		l.fit()
		if next, is := l.current().(*record.Transaction); is && l.cursor != before {
			m.stack = m.stack[:len(m.stack)-1]
			return m.openLadder(next)
		}
		m.message = "there are no more RPCs in the list"
		return nil
	}
	return p
}

// listed returns the list of RPCs that is nearest below the screen.
func (m *Model) listed() *list {
	for _, s := range slices.Backward(m.stack) {
		if l, is := s.(*list); is {
			return l
		}
	}
	return m.tabs[tabRPCs].(*list)
}

// openPackets shows the packets that prove a problem.
func (m *Model) openPackets(evidence []record.ProblemFact) tea.Cmd {
	wanted, last := map[record.PacketRef]bool{}, int64(0)
	for _, e := range evidence {
		wanted[record.PacketRef{Packet: e.Packet, Point: e.Point}] = true
		last = max(last, e.Packet)
	}
	return m.look("reading the packets", func(ctx context.Context, source Source, o dissect.Options) func() tea.Cmd {
		var packets []*record.Packet
		o.Decode, o.Tree = true, true
		if o.Points == nil {
			o.Last = last
		}
		_, err := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			if p.In(wanted) {
				packets = append(packets, p.Clone())
			}
			if len(packets) == len(wanted) {
				return errSeen
			}
			return nil
		}}, o).Run(ctx, source)
		return func() tea.Cmd {
			switch {
			case len(packets) > 0:
				m.push(m.packet("those that prove it", packets, 0))
			case err != nil && err != errSeen:
				m.message = render.Clean(err.Error())
			default:
				m.message = "the packets were not found"
			}
			return nil
		}
	})
}

// packet returns the screen of one of the packets of something: its fields, and its bytes at their side.
func (m *Model) packet(of string, packets []*record.Packet, i int) *pane {
	at := packets[i]
	tree := render.PacketLines(m.theme, m.state.Start, at)
	p := newPane(m, fmt.Sprintf("packet %d, %d of %d of %s", at.Number, i+1, len(packets), of), func(int) (lines []line) {
		for _, l := range tree {
			lines = append(lines, line{text: l.Text})
		}
		return lines
	})
	for i, l := range tree { // The cursor begins at the transport.
		if l.Depth == 1 && !l.Link {
			p.cursor, p.placed = int64(i), true
			break
		}
	}
	p.beside = func(cursor int64, width, height int) []string {
		marked := render.PacketLine{}
		if cursor < int64(len(tree)) {
			marked = tree[cursor]
		}
		return m.dump(at.Data, marked, width, height)
	}
	p.turn = func(back bool) tea.Cmd {
		next := i + map[bool]int{true: -1, false: 1}[back]
		if next < 0 || next >= len(packets) {
			m.message = "there are no more packets of " + of
			return nil
		}
		m.stack[len(m.stack)-1] = m.packet(of, packets, next)
		return nil
	}
	p.run = fmt.Sprintf("packets %s -V -Y %s", m.options.Typed, shell.Word("number == "+strconv.FormatInt(at.Number, 10)))
	return p
}

// dump returns the lines of a frame's bytes that fit, among them the marked ones, which are in reverse or between brackets.
func (m *Model) dump(data []byte, marked render.PacketLine, width, height int) (lines []string) {
	each := 16
	if width < 7+4*each {
		each = 8
	}
	first := 0
	if row := marked.From / each; row >= height {
		first = row - height/3
	}
	reverse := m.ink(lipgloss.NewStyle().Reverse(true))
	for at := first * each; at < len(data) && len(lines) < height; at += each {
		var b, text strings.Builder
		fmt.Fprintf(&b, "%04x ", at)
		for i := at; i < at+each; i++ {
			if i >= len(data) {
				b.WriteString("   ")
				continue
			}
			two, c := fmt.Sprintf("%02x", data[i]), string(rune(data[i]))
			if data[i] < 0x20 || data[i] >= 0x7f {
				c = "."
			}
			open := " "
			if i >= marked.From && i < marked.To {
				if two, c = reverse.Render(two), reverse.Render(c); !m.colours {
					open = "*"
				}
			}
			b.WriteString(open + two)
			text.WriteString(c)
		}
		lines = append(lines, b.String()+"  "+text.String())
	}
	return lines
}

// openConnection shows what the sides of a connection agreed on, and what became of it.
func (m *Model) openConnection(c *record.Connection) tea.Cmd {
	filter := fmt.Sprintf("connection == %d", c.ID)
	p := newPane(m, fmt.Sprintf("connection %d", c.ID), func(width int) (lines []line) {
		var b bytes.Buffer
		render.ConnectionDetail(render.Screen{Out: &b, Theme: m.theme, Width: width}, c, m.state.Start.Or(c.First))
		for _, text := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
			lines = append(lines, line{text: text, opens: "its RPCs", enter: func() tea.Cmd { return m.showRPCs(filter) }})
		}
		return lines
	})
	p.run = fmt.Sprintf("connections %s --conn %d --timeline", m.options.Typed, c.ID)
	m.push(p)
	return nil
}

// newFiles returns the screen with the files that RPCs acted on.
func newFiles(m *Model) *pane {
	return newSums(m, "files", "files ", render.FileFields, m.options.Reading.fileRows, func(b *bytes.Buffer, width int, rows []*analyze.File) error {
		return render.Files(b, m.theme, width, m.state.Start.Or(0), rows)
	}, fileFilter)
}

// mostSums is the number of rows that are drawn, so that the screen is there within a frame.
const mostSums = 2000

// newSums returns a screen with a table of sums, whose rows open the RPCs that a filter selects.
func newSums[R any](m *Model, title, run string, fields query.Fields, all func() []*R, draw func(b *bytes.Buffer, width int, rows []*R) error, filter func(*R) string) *pane {
	rows := all()
	p := newPane(m, title, nil)
	p.fields, p.fixed, p.run = fields, 1, run+m.options.Typed
	p.again = func() { rows = all() }
	p.draw = func(width int) (lines []line) {
		var drawn []*R
		for _, r := range rows {
			if p.keeps(r) && len(drawn) < mostSums {
				drawn = append(drawn, r)
			}
		}
		if len(drawn) == 0 {
			return []line{{text: map[bool]string{true: "no RPC is in this table", false: "reading"}[m.state.Done]}, {}}
		}
		var b bytes.Buffer
		if err := draw(&b, width, drawn); err != nil {
			return []line{{text: render.Clean(err.Error())}}
		}
		for i, text := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
			one := line{text: text}
			if i > 0 && i <= len(drawn) {
				if f := filter(drawn[i-1]); f != "" {
					one.opens, one.enter = "its RPCs", func() tea.Cmd { return m.showRPCs(f) }
				}
			}
			lines = append(lines, one)
		}
		return lines
	}
	return p
}

// fileFilter returns a filter for the RPCs that act on a file; nothing for the row that sums up others.
func fileFilter(f *analyze.File) string {
	switch path, handle := f.File.Or(""), f.FileHandle.Or(""); {
	case f.Others > 0 || path == "" && handle == "":
		return ""
	case path != "":
		return "file == " + strconv.Quote(path)
	default:
		return "file_handle == " + strconv.Quote(handle)
	}
}

// newOperations returns the screen with the sums by operation.
func newOperations(m *Model) *pane {
	return newSums(m, "operations, by the sum of their latencies", "stats ", render.StatsFields, m.options.Reading.operationRows, func(b *bytes.Buffer, width int, rows []*analyze.Stats) error {
		return render.Stats(b, m.theme, width, rows)
	}, func(s *analyze.Stats) string { return operationFilter(s.Name) })
}

// named is the name of an operation, or of a procedure without operations: NFS4 OPEN, MOUNT3 MNT.
var named = regexp.MustCompile(`^([A-Z_]+)(\d+) (\w+)$`)

// operationFilter returns a filter for the RPCs of an operation; nothing for those that have no name.
func operationFilter(name string) string {
	f := named.FindStringSubmatch(name)
	if f == nil {
		return ""
	}
	for _, test := range []string{"operation == %[1]q", "operation == null and procedure_name == %[1]q"} {
		test = fmt.Sprintf("program_name == %q and version == %s and ", f[1], f[2]) + fmt.Sprintf(test, f[3])
		if _, err := query.Compile(test, query.Transactions); err == nil { // The language knows the names of operations.
			return test
		}
	}
	return ""
}
