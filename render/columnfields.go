package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
)

// tableColumns has the columns of each table, by the name of its records in the plural.
var tableColumns = map[string][]column{
	"transactions": transactionColumns, "connections": connectionColumns, "packets": packetColumns, "findings": findingColumns,
	"rdma_operations": operationColumns, "rdma_stats": operationSumColumns, "tasks": taskColumns, "stats": statsColumns, "rates": ratesColumns,
	"files": filesColumns, "comparisons": compareColumns, "network": networkColumns, "lost packets": lostColumns,
}

// The fields of records that have tables, with the headings of these tables as other names.
var (
	OperationFields    = fieldsWith[record.RDMAOperation]("rdma_operations")
	OperationSumFields = fieldsWith[analyze.OperationStats]("rdma_stats")
	TaskFields         = fieldsWith[record.Task]("tasks")
	StatsFields        = fieldsWith[analyze.Stats]("stats")
	RateFields         = fieldsWith[analyze.Rate]("rates")
	FileFields         = fieldsWith[analyze.File]("files")
	ComparisonFields   = fieldsWith[analyze.Comparison]("comparisons")
	NetworkFields      = fieldsWith[record.Network]("network")
	ProblemFields      = fieldsWith[record.Problem]("problems")
	LostPacketFields   = fieldsWith[record.LostPacket]("lost packets")
)

// fieldsWith returns the fields of a type of record, with the headings of its table as other names.
func fieldsWith[T any](of string) query.Fields {
	var headings []query.Heading
	for _, c := range tableColumns[of] {
		for _, f := range c.columnFields() {
			if f.name != "" && f.name != f.path {
				headings = append(headings, query.Heading{Name: f.name, Path: f.path, Value: c.total})
			}
		}
		if list := c.columnFields(); c.cell != nil {
			headings = append(headings, query.Heading{Name: nameOf(c.name), Path: list[0].path, Value: c.cell})
		}
	}
	return query.New[T](of, headings...)
}

// SortedBy returns a copy of the theme for tables whose records, named in the plural, are sorted by a field.
func (t *Theme) SortedBy(of, path string, ascending bool) *Theme {
	c := *t
	c.by = path
	for _, column := range slices.Backward(tableColumns[of]) {
		if slices.ContainsFunc(column.columnFields(), func(f columnField) bool { return f.path == path }) {
			c.by = column.name
		}
	}
	if ascending {
		c.by += ", ascending"
	}
	return &c
}

// columnField is a field that a column shows.
type columnField struct {
	name string // what filters, -e and --sort call the field after the column; empty if that is only its path
	path string
}

// columnFields returns the fields of a column. In c.fields, they have spaces between them, and may have a name and an
// equals sign in front of them. If none has, the heading is a name of the first field, in lower case and with hyphens
// for spaces.
func (c *column) columnFields() (list []columnField) {
	for _, word := range strings.Fields(c.fields) {
		name, path, named := strings.Cut(word, "=")
		switch {
		case named:
		case len(list) == 0 && !strings.Contains(c.fields, "="):
			name, path = nameOf(c.name), word
		default:
			name, path = "", word
		}
		list = append(list, columnField{name, path})
	}
	return list
}

// nameOf returns what filters, -e and --sort call a heading.
func nameOf(heading string) string { return strings.ToLower(strings.ReplaceAll(heading, " ", "-")) }

// CSVFields returns the fields that -o csv prints of a type of record, named in the plural: those that its table shows.
// Problems have no table; it returns nil for other records without one.
func CSVFields(of string) (paths []string) {
	if of == "problems" { // they have no table
		return []string{
			"rank", "severity", "id", "places", "headline", "effect", "from", "to", "ongoing", "blocked_ns", "tasks",
			"requests_failed", "requests_unanswered", "client", "server", "connections", "xids",
		}
	}
	for _, c := range tableColumns[of] {
		if c.total != nil {
			continue
		}
		for _, f := range c.columnFields() {
			if !slices.Contains(paths, f.path) {
				paths = append(paths, f.path)
			}
		}
	}
	return paths
}

// Headings returns the headings of the table of a type of record, in the plural, such as
// "transactions".
func Headings(of string) []string { return headings(tableColumns[of]) }

// headings returns the names of columns.
func headings(columns []column) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// ColumnsShown says which columns the table of these records, named in the plural, shows and which it does not, one list
// on each line.
func ColumnsShown(of string) string {
	var usual, depends, wide []string
	terminals := map[int][]string{}
	for _, c := range tableColumns[of] {
		switch {
		case c.wide:
			wide = append(wide, c.name)
		case c.some || c.varied:
			depends = append(depends, c.name)
		case c.at > 0:
			terminals[c.at] = append(terminals[c.at], c.name)
		default:
			usual = append(usual, c.name)
		}
	}
	var b strings.Builder
	type list struct {
		what  string
		names []string
	}
	lists := []list{{"shown", usual}}
	for _, width := range slices.Sorted(maps.Keys(terminals)) {
		lists = append(lists, list{fmt.Sprintf("shown from %d columns on", width), terminals[width]})
	}
	for _, l := range append(lists, list{"shown if they say something, or with --columns", depends}, list{"shown only with --wide or --columns", wide}) {
		if len(l.names) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", l.what, strings.Join(l.names, ", "))
		}
	}
	return b.String()
}

// GroupHeading returns the heading of the names of groups, from the fields that they are grouped by.
func GroupHeading(by string) string {
	return strings.ToUpper(strings.NewReplacer(",", ", ", "_", " ").Replace(strings.TrimSuffix(by, ".id")))
}

// CheckColumns returns an error unless the table of these records has columns with all these
// headings, or with headings that contain them between slashes.
func CheckColumns(of string, names []string) error {
	all := Headings(of)
	for _, name := range names {
		found := slices.ContainsFunc(tableColumns[of], func(c column) bool { return c.called(name) })
		if !found && len(all) > 0 {
			return fmt.Errorf("there is no column %s; there are %s; --columns help says which of them are usually hidden", clean(name), strings.Join(all, ", "))
		}
		if !found {
			return fmt.Errorf("%s have no columns to choose from; -e takes fields", of)
		}
	}
	return nil
}
