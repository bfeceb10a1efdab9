package main

import (
	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// overviewView is a capture on one screen.
var overviewView = view{query.Transactions, "", "", func(s *sink) (dissect.Handler, func()) {
	c := analyze.NewCollector()
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) {
			if s.wants(record.Some(r.Connection), record.Some(r.XID)) && s.within(r.Start()) && s.matches(r) {
				c.Transaction(r)
			}
		},
		Connection: func(r *record.Connection) {
			if s.o.wants(record.Some(r.ID), record.Opt[record.Hex32]{}) && s.o.overlaps(r.First, r.Last) {
				c.Connection(r)
			}
		},
		Finding: func(r *record.Finding) {
			if at, known := r.Time.Get(); s.o.wants(r.Connection, r.XID) && (!known || s.within(at)) {
				c.Finding(r)
			}
		},
	}
	return h, func() {
		s.emit(c.Finish(), func(r any) error {
			return render.Overview(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, r.(*analyze.Overview), s.summary, s.o.shown)
		})
	}
}}
