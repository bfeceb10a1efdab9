package show

import (
	"io"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/render"
)

// overview summarizes a capture on one screen.
func overview(s *sink) (dissect.Handler, func()) {
	c := analyze.NewCollector()
	c.Overlaps = s.Overlaps
	s.redraw = func(w io.Writer, f *refresh) error {
		now := f.summarize()
		o := c.SoFar(now, func(visit func(*record.Connection)) {
			f.open(func(r *record.Connection) {
				if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
					visit(r)
				}
			})
		})
		o.Selected = s.Selection()
		return render.Overview(render.Screen{Out: w, Theme: s.theme, Width: s.width}, o, now, s.Typed)
	}
	var ends analyze.Ends
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if s.asked(r) && s.matches(r) {
				c.Transaction(r)
				ends.Add(r)
			} else {
				c.UnselectedRPC(r)
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
				c.Connection(r)
			} else {
				c.Unselected(r)
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
	return h, func() {
		c.Network(input.PointRecords(s.joined), input.NetworkRecords(s.joined))
		o := c.Finish(s.summary)
		o.Selected = s.Selection()
		o.Ends = record.SomeIf(ends, ends.Transactions > 0)
		s.emit(o, func(r any) error {
			return render.Overview(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, r.(*analyze.Overview), s.summary, s.Typed)
		})
	}
}
