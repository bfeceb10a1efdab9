package main

import (
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// overview summarizes a capture on one screen.
func overview(s *sink) (dissect.Handler, func()) {
	c := analyze.NewCollector()
	s.redraw = func(w io.Writer, f *refresh) error {
		now := f.summarize()
		o := c.SoFar(now, func(visit func(*record.Connection)) {
			f.open(func(r *record.Connection) {
				if s.wantsConnection(r.ID) && s.overlaps(r.First, r.Last) {
					visit(r)
				}
			})
		})
		o.Selected = s.selection()
		return render.Overview(render.Screen{Out: w, Theme: s.theme, Width: s.width}, o, now, s.typed)
	}
	var ends analyze.Ends
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if s.asked(r) && s.matches(r) {
				c.Transaction(r)
				ends.Add(r)
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			if s.wantsConnection(r.ID) && s.overlaps(r.First, r.Last) {
				c.Connection(r)
			}
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			if s.wantsConnection(r.Connection) && s.within(r.Sent) {
				c.Operation(r)
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
		c.Network(pointRecords(s.joined), networkRecords(s.joined))
		o := c.Finish(s.summary)
		o.Selected = s.selection()
		o.Ends = record.SomeIf(ends, ends.Transactions > 0)
		s.emit(o, func(r any) error {
			return render.Overview(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, r.(*analyze.Overview), s.summary, s.typed)
		})
	}
}

// selection says what of the capture an overview sums up, or nothing if it sums up all of it.
func (s *settings) selection() string {
	var flags []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"--conn", len(s.conns) > 0}, {"--xid", len(s.xids) > 0}, {"--from", s.from.set}, {"--to", s.to.set}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	var parts []string
	if flags != nil {
		parts = append(parts, "RPCs and findings by "+list(flags, "and"))
	}
	if s.filter != nil {
		parts = append(parts, "RPCs by -Y")
	}
	if parts == nil {
		return ""
	}
	return "selected: " + strings.Join(parts, ", ") + ". The lines above are about the whole capture, and health is about whole connections."
}
