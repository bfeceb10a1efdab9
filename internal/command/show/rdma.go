package show

import (
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// operations shows a row for each RDMA operation.
func operations(s *sink) (dissect.Handler, func()) {
	show := func(r any) error { return s.text.Operation(r.(*record.RDMAOperation)) }
	return dissect.Handler{Operation: func(r *record.RDMAOperation) error {
		if s.WantsConnection(r.Connection) && s.Within(r.Sent) {
			s.take(r, show)
		} else {
			s.pass(r.ID)
		}
		return s.status()
	}}, nil
}

// operationSums shows a table of sums of RDMA operations after the last record.
func operationSums(s *sink) (dissect.Handler, func()) {
	table := analyze.NewOperationTable(s.By.By, s.By.AppendOperation)
	h := dissect.Handler{Operation: func(r *record.RDMAOperation) error {
		if s.WantsConnection(r.Connection) && s.Within(r.Sent) && (s.Summed == nil || s.matchSummed(r)) {
			table.Add(r)
		}
		return s.status()
	}}
	return h, func() {
		if rows := selected(s, table.Rows()); len(rows) > 0 {
			s.fail(render.OperationSums(s.w, s.theme, s.width, rows))
		}
	}
}
