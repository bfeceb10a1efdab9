package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// groupKinds are the values of --by that are not fields of transactions, or whose groups have
// more telling names than the field.
var groupKinds = []string{analyze.ByProgram, analyze.ByProcedure, analyze.ByOperation}

// maxGroupFields is the maximum number of fields of --by.
const maxGroupFields = 8

// grouping is the value of --by: how stats groups transactions.
type grouping struct {
	by    string   // the kinds and paths, with commas
	paths []string // a kind, or the path of a field
	given bool     // --by was given
}

// parseGrouping parses the value of --by: kinds and fields, with commas between them.
func parseGrouping(text string) (g grouping, err error) {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		path := name
		if !slices.Contains(groupKinds, name) {
			if path, err = query.Resolve(name, query.Transactions); err != nil {
				return g, fmt.Errorf("--by %s: %w; it may also be %s", text, err, list(groupKinds, "or"))
			}
		}
		g.paths = append(g.paths, path)
	}
	if len(g.paths) > maxGroupFields {
		return g, fmt.Errorf("--by %s: at most %d fields", text, maxGroupFields)
	}
	g.by = strings.Join(g.paths, ",")
	return g, nil
}

// table returns a table that sums up the groups.
func (g grouping) table() *analyze.Table {
	if len(g.paths) == 1 && slices.Contains(groupKinds, g.paths[0]) {
		return analyze.NewTable(g.by)
	}
	return analyze.NewTableOf(g.by, g.append)
}

// append appends the values of a transaction's group.
func (g grouping) append(values []string, r *record.Transaction) []string {
	for _, path := range g.paths {
		value := ""
		switch {
		case slices.Contains(groupKinds, path):
			value = analyze.Name(r, path)
		case path == "file": // files without a name are different files
			value = string(render.AppendValue(nil, r.FileText()))
		default:
			value = string(render.AppendValue(nil, query.Transactions.Raw(r, path)))
		}
		if value == "" {
			value = "-"
		}
		values = append(values, value)
	}
	return values
}
