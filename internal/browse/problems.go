package browse

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// newProblemList returns the screen with what went wrong, the worst first.
func newProblemList(m *Model) *pane {
	p := newPane(m, "problems", nil)
	p.run = "problems " + m.options.Typed
	p.again = func() {}
	p.draw = func(width int) (lines []line) {
		problems, known := m.options.Reading.found()
		switch {
		case !known && m.options.Live:
			return []line{{text: "the problems are known when the capture ends"}}
		case !known:
			return []line{{text: "reading"}}
		case len(problems) == 0:
			return []line{{text: "no problem was found"}}
		}
		files := render.Captures{Typed: m.options.Typed}
		for _, one := range problems {
			var b strings.Builder
			render.Problems(render.Screen{Out: &b, Theme: m.theme, Width: width}, []*record.Problem{one}, files)
			open, opens := m.evidence(one)
			for _, text := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
				lines = append(lines, line{text: text, opens: opens, enter: open, run: strings.TrimPrefix(files.Command(one.Command), "rdmadump ")})
			}
		}
		return lines
	}
	return p
}

// evidence returns what shows the evidence of a problem: the ladder of its worst RPC, or the packets that prove it, or its worst connection.
func (m *Model) evidence(p *record.Problem) (open func() tea.Cmd, opens string) {
	switch {
	case len(p.Requests) > 0 && !slices.Contains(p.Places, record.InCapture): // an RPC shows nothing about what the capture lacks
		return func() tea.Cmd {
			read := m.options.Reading.rpcs.reader()
			defer read.close()
			r, err := read.get(m.options.Reading.position(p.Requests[0]))
			if t, is := r.(*record.Transaction); is && err == nil {
				return m.openLadder(t)
			}
			m.message = "the RPC is not kept any more"
			return nil
		}, "the ladder of its worst RPC"
	case len(p.Evidence) > 0 && m.options.Open != nil:
		return func() tea.Cmd { return m.openPackets(p.Evidence) }, "the packets that prove it"
	case len(p.Connections) > 0:
		return func() tea.Cmd {
			read := m.options.Reading.connections.reader()
			defer read.close()
			from, to := read.bounds()
			for n := from; n < to; n++ {
				if c, err := read.get(n); err == nil && c.(*record.Connection).ID == p.Connections[0] {
					return m.openConnection(c.(*record.Connection))
				}
			}
			m.message = "the connection is not kept any more"
			return nil
		}, "its worst connection"
	}
	return nil, ""
}
