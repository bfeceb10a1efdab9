package main

import (
	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// overview summarizes a capture on one screen.
func overview(s *sink) (dissect.Handler, func()) {
	c := analyze.NewCollector()
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if s.asked(r) && s.matches(r) {
				c.Transaction(r)
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			if s.wantsConnection(r.ID) && s.overlaps(r.First, r.Last) {
				c.Connection(r)
			}
			return nil
		},
		Finding: func(r *record.Finding) error {
			if s.wantsFinding(r) {
				c.Finding(r)
			}
			return nil
		},
	}
	return h, func() {
		s.emit(c.Finish(), func(r any) error {
			return render.Overview(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, r.(*analyze.Overview), s.summary, s.typed)
		})
	}
}
