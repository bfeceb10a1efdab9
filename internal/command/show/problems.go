package show

import (
	"io"
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/render"
)

// problems lists what went wrong in a capture.
func problems(s *sink) (dissect.Handler, func()) {
	h, _, finish := diagnosis(s)
	return h, func() {
		list := finish()
		shown := slices.ContainsFunc(list, (*record.Problem).Shown)
		if !shown && !s.JSON && s.Columns == nil && s.nothing() == nil {
			s.written++
			text := "OK     no problems"
			if s.From.Set || s.To.Set {
				text += " in this time"
			}
			_, err := io.WriteString(s.w, text+"\n")
			s.fail(err)
		}
		for _, p := range list {
			if !p.Shown() && !s.JSON && s.Columns == nil {
				continue // overview --explain has them
			}
			s.take(p, func(r any) error {
				return render.Problems(s.screen(s.w), []*record.Problem{r.(*record.Problem)}, s.captures())
			})
		}
	}
}

// diagnosis returns a handler that collects what problems are found in, of the records that the flags select, and a function that finds them
// after the last record.
func diagnosis(s *sink) (h dissect.Handler, c *diagnose.Collector, finish func() []*record.Problem) {
	c = &diagnose.Collector{}
	if s.From.Set || s.To.Set {
		c.Only(s.Overlaps)
	}
	h = dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if s.asked(r) {
				c.Transaction(r)
			}
			return s.status()
		},
		Task: func(r *record.Task) error {
			c.Task(r)
			return nil
		},
		Connection: func(r *record.Connection) error {
			if s.WantsConnection(r.ID) {
				c.Connection(r)
			}
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			if s.WantsConnection(r.Connection) && s.Within(r.Sent) {
				c.Operation(r)
			}
			return nil
		},
		Finding: func(r *record.Finding) error {
			if s.WantsFinding(r) {
				c.Finding(r)
			}
			return nil
		},
	}
	return h, c, func() []*record.Problem {
		c.Network(input.NetworkRecords(s.joined))
		return c.Problems(s.summary)
	}
}
