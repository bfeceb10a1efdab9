package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// operationSumsView is the view of rdma with --by: its records are sums.
var operationSumsView = &view{
	name: "rdma", fields: render.OperationSumFields, summed: render.OperationFields, filters: "RDMA operations or rows", flags: operationFlags, without: []string{"xid"}, top: "-bytes", open: operationSums, light: true,
}

// operationFlags are the flags of rdma.
var operationFlags = []string{"columns", "sort", "top", "by"}

// operations shows a row for each RDMA operation.
func operations(s *sink) (dissect.Handler, func()) {
	show := func(r any) error { return s.text.Operation(r.(*record.RDMAOperation)) }
	return dissect.Handler{Operation: func(r *record.RDMAOperation) error {
		if s.wantsConnection(r.Connection) && s.within(r.Sent) {
			s.take(r, show)
		}
		return s.status()
	}}, nil
}

// operationSums shows a table of sums of RDMA operations after the last record.
func operationSums(s *sink) (dissect.Handler, func()) {
	table := analyze.NewOperationTable(s.by.by, s.by.appendOperation)
	h := dissect.Handler{Operation: func(r *record.RDMAOperation) error {
		if s.wantsConnection(r.Connection) && s.within(r.Sent) && (s.summed == nil || s.matchSummed(r)) {
			table.Add(r)
		}
		return s.status()
	}}
	return h, func() {
		var rows []*analyze.OperationStats
		for _, r := range table.Rows() {
			s.take(r, func(r any) error {
				rows = append(rows, r.(*analyze.OperationStats))
				return nil
			})
		}
		s.release()
		if len(rows) > 0 {
			s.fail(render.OperationSums(s.w, s.theme, s.width, rows))
		}
	}
}

// parseOperationGrouping parses the value of --by for RDMA operations: fields, with commas between
// them.
func parseOperationGrouping(text string) (g grouping, err error) {
	for name := range strings.SplitSeq(text, ",") {
		path, err := query.Resolve(strings.TrimSpace(name), render.OperationFields)
		if err != nil {
			return g, fmt.Errorf("--by %s: %w", text, err)
		}
		g.paths = append(g.paths, path)
	}
	if len(g.paths) > maxGroupFields {
		return g, fmt.Errorf("--by %s: at most %d fields", text, maxGroupFields)
	}
	g.by = strings.Join(g.paths, ",")
	return g, nil
}

// onlyOfOperations reports whether the value of --by groups RDMA operations and cannot group
// transactions, such as kind,side.
func onlyOfOperations(by string) bool {
	if _, err := parseGrouping(by); err == nil {
		return false
	}
	_, err := parseOperationGrouping(by)
	return err == nil
}

// appendOperation appends the values of an RDMA operation's group.
func (g grouping) appendOperation(values []string, r *record.RDMAOperation) []string {
	for _, path := range g.paths {
		values = append(values, cmp.Or(string(render.AppendValue(nil, render.OperationFields.Raw(r, path))), "-"))
	}
	return values
}
