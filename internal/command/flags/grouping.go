package flags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// groupKinds are the values of --by that are not fields of transactions, or whose groups have
// more telling names than the field.
var groupKinds = []string{analyze.ByProgram, analyze.ByProcedure, analyze.ByOperation}

// bySize is the short name of the field size_class in --by.
const bySize = "size"

// byStatus is the field whose groups are named as the column STATUS is, such as ok or NFS4ERR_NOENT.
const byStatus = "status"

// maxGroupFields is the maximum number of fields of --by.
const maxGroupFields = 8

// Grouping is the value of --by: how stats groups transactions.
type Grouping struct {
	By    string   // the kinds and paths, with commas
	paths []string // a kind, or the path of a field
	Given bool     // --by was given
}

// ParseGrouping parses the value of --by: kinds and fields of transactions, with commas between them.
func ParseGrouping(text string) (Grouping, error) {
	return grouping(text, func(name string) (string, error) {
		if slices.Contains(groupKinds, name) || name == bySize {
			return name, nil
		}
		path, err := query.Resolve(name, query.Transactions)
		if err != nil {
			err = fmt.Errorf("%w; it may also be %s, or another field that rdmadump fields transactions lists", err, command.List(append(slices.Clone(groupKinds), bySize), "or"))
		}
		if path == "cause" { // Sentences differ in their numbers.
			path = "cause.id"
		}
		return path, err
	})
}

// parseOperationGrouping parses the value of --by for RDMA operations: fields, with commas between them.
func parseOperationGrouping(text string) (Grouping, error) {
	return grouping(text, func(name string) (string, error) { return query.Resolve(name, render.OperationFields) })
}

// grouping parses names with commas between them.
func grouping(text string, resolve func(name string) (path string, err error)) (g Grouping, err error) {
	for name := range strings.SplitSeq(text, ",") {
		path, err := resolve(strings.TrimSpace(name))
		if err != nil {
			return g, fmt.Errorf("--by %s: %w", text, err)
		}
		g.paths = append(g.paths, path)
	}
	if len(g.paths) > maxGroupFields {
		return g, fmt.Errorf("--by %s: at most %d fields", text, maxGroupFields)
	}
	g.By = strings.Join(g.paths, ",")
	return g, nil
}

// Table returns a table that sums up the groups.
func (g Grouping) Table() *analyze.Table {
	if len(g.paths) == 1 && slices.Contains(groupKinds, g.paths[0]) {
		return analyze.NewTable(g.By)
	}
	return analyze.NewTableOf(g.By, g.Append)
}

// Append appends the values of a transaction's group.
func (g Grouping) Append(values []string, r *record.Transaction) []string {
	for _, path := range g.paths {
		value := ""
		switch {
		case slices.Contains(groupKinds, path):
			value = analyze.Name(r, path)
		case path == bySize:
			value = r.SizeClass().Or("")
		case path == byStatus:
			value = query.Outcome(r)
		case path == "file": // files without a name are different files
			value = string(render.AppendValue(nil, r.FileText()))
		case path == "cause.id":
			value = r.Cause.Or(record.Cause{ID: claim.None}).ID
		default:
			value = string(render.AppendValue(nil, query.Transactions.Raw(r, path)))
		}
		if value == "" {
			value = NoValue
		}
		values = append(values, value)
	}
	return values
}

// NoValue is the name of the group of the transactions that lack a field.
const NoValue = "-"

// Without says what the groups lack that are named [NoValue], with a line for each field.
func (g Grouping) Without(rows []*analyze.Stats) (lines []string) {
	for i, path := range g.paths {
		if slices.ContainsFunc(rows, func(s *analyze.Stats) bool { return i < len(s.Group) && s.Group[i] == NoValue }) {
			if path == bySize {
				path = "size_class"
			}
			lines = append(lines, fmt.Sprintf("RPCs without %s. %s", path, query.Transactions.Field(path).Doc))
		}
	}
	return lines
}

// AppendOperation appends the values of an RDMA operation's group.
func (g Grouping) AppendOperation(values []string, r *record.RDMAOperation) []string {
	for _, path := range g.paths {
		values = append(values, cmp.Or(string(render.AppendValue(nil, render.OperationFields.Raw(r, path))), NoValue))
	}
	return values
}
