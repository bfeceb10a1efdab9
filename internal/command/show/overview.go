package show

import (
	"cmp"
	"io"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/render"
)

// overview draws the problems and the sums of a capture on one screen.
func overview(s *sink) (dissect.Handler, func()) {
	c := analyze.NewCollector()
	c.Only(s.Overlaps)
	names := map[analyze.HostName]bool{}
	checked := newResults(s)
	sums := dissect.Handler{
		Begin: c.Begin,
		Transaction: func(r *record.Transaction) error {
			if s.asked(r) && s.matches(r) {
				c.Transaction(r)
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			for _, end := range [...]record.Endpoint{r.Client, r.Server} {
				if end.Name != "" {
					names[analyze.HostName{Address: end.Address.Or(""), Name: end.Name}] = true
				}
			}
			if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
				c.Connection(r)
				checked.connection(r)
			}
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			if s.WantsConnection(r.Connection) && s.Within(r.Sent) {
				c.Operation(r)
			}
			return nil
		},
	}
	h, problems, diagnosed := diagnosis(s)
	s.redraw = func(w io.Writer, f *refresh) error {
		problems.Endless()
		now := f.summarize()
		open := func(visit func(*record.Connection)) {
			f.open(func(r *record.Connection) {
				if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
					visit(r)
				}
			})
		}
		o := c.SoFar(now, open)
		o.Selected = s.Selection()
		story := s.story(o, problems.SoFar(now, open), now)
		story.Live = true
		return render.Overview(s.screen(w), story, s.captures())
	}
	h.Begin = sums.Begin
	h.Transaction, h.Connection, h.Operation = both(sums.Transaction, h.Transaction), both(sums.Connection, h.Connection), both(sums.Operation, h.Operation)
	return h, func() {
		c.Network(input.PointRecords(s.joined), input.NetworkRecords(s.joined))
		o, list := c.Finish(s.summary), diagnosed()
		o.Selected = s.Selection()
		o.Hosts = slices.SortedFunc(maps.Keys(names), func(a, b analyze.HostName) int { return cmp.Compare(a.Address, b.Address) })
		if o.RPCs.Attempts == 0 && s.nothing() != nil {
			return
		}
		s.failed(list)
		story := s.story(o, list, s.summary)
		switch {
		case s.Report == "markdown":
			s.written++
			s.fail(render.OverviewMarkdown(s.w, story, s.captures()))
		case s.JSON || s.Columns != nil:
			for _, p := range list {
				s.emit(p, nil)
			}
			s.emit(o, nil)
		default:
			s.written++
			s.fail(render.Overview(s.screen(s.w), story, s.captures()))
			if s.Explain {
				s.fail(render.Undecided(s.screen(s.w), story, checked.unchecked(s.summary), s.captures()))
			}
		}
	}
}

// failed counts the problems for which the exit status says that something was found.
func (s *sink) failed(list []*record.Problem) {
	for _, p := range list {
		if s.FailOn != "" && p.Severity.Rank() <= s.FailOn.Rank() {
			s.errors++
		}
	}
}

// story returns what the screen of an overview draws, with the names of hosts.
func (s *sink) story(o *analyze.Overview, problems []*record.Problem, of *record.Summary) render.Story {
	story := render.Story{Overview: record.Named(o, s.Hosts), Summary: record.Named(of, s.Hosts), Window: s.From.Set || s.To.Set}
	for _, p := range problems {
		story.Problems = append(story.Problems, record.Named(p, s.Hosts))
	}
	return story
}

// screen is the terminal, or what is as wide, for what is written to w.
func (s *sink) screen(w io.Writer) render.Screen {
	return render.Screen{Out: w, Theme: s.theme, Width: s.width}
}

// captures names the captures of a screen.
func (s *sink) captures() render.Captures { return render.Captures{Title: s.Title, Typed: s.Typed} }
