package render

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

var findingColumns = []column{
	{name: "SEVERITY", fields: "severity"},
	{name: "TIME", fields: "time", right: true, usual: 11},
	{name: "PACKET", fields: "packet", right: true, rank: 3},
	{name: "POINT", fields: "point", some: true, rank: 3},
	{name: "CONN", fields: "connection client server", right: true, rank: 2},
	{name: "XID", fields: "xid operation", rank: 1},
	{name: "AT FAULT", fields: "at_fault", rank: 4},
	{name: "RULE", fields: "rule"},
	{name: "MESSAGE", fields: "message section", flex: true, min: 20, usual: 60},
}

// FindingRow writes a row of the table of findings, which has a row for each finding.
func (t *Text) FindingRow(r *record.Finding) error {
	id := func(v int64) string { return strconv.FormatInt(v, 10) }
	t.cells = append(t.cells[:0],
		cell{text: string(r.Severity), ink: t.theme.severity(r.Severity)},
		cell{text: known(r.Time, "-", t.at)},
		cell{text: known(r.Packet, "-", id)},
		cell{text: clean(r.Point)},
		cell{text: known(r.Connection, "-", strconv.Itoa)},
		cell{text: known(r.XID, "-", record.Hex32.String), ink: t.theme.key},
		cell{text: known(r.AtFault, "-", func(e record.End) string { return string(e) })},
		cell{text: r.Rule},
		cell{text: clean(r.Message)},
	)
	return t.row(findingColumns)
}
