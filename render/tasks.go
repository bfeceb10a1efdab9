package render

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

var taskColumns = []column{
	{name: "FIRST RPC ID", fields: "request", right: true, rank: 4, usual: 5},
	{name: "TIME", fields: "from", right: true, usual: 11, foot: "of the first Call", moment: true},
	{name: "CONN", fields: "connection", right: true, rank: 3},
	{name: "OPERATION", fields: "operation", usual: 10},
	{name: "FILE", fields: "file", flex: true, min: 12, usual: 20},
	{name: "TRIES", fields: "tries", right: true, usual: 3, foot: "times that the client asked"},
	{name: "CALLS", fields: "attempts", right: true, rank: 2, usual: 3, foot: "of all tries, with those sent again"},
	{name: "BLOCKED", fields: "blocked_ns", right: true, usual: 8, foot: "from the first Call to the last Reply", signs: []sign{{"-", "= no Reply"}}},
	{name: "LAST PAUSE", fields: "pause_ns", right: true, rank: 1, usual: 8, foot: "of the client, before the last try"},
	{name: "FIRST STATUS", fields: "statuses", rank: 5, usual: 14},
	{name: "LAST STATUS", fields: "status", usual: 10},
	{name: "ENDED", fields: "outcome", usual: 8},
}

// Task writes a row of the table of tasks.
func (t *Text) Task(r *record.Task) error {
	shade := t.theme.good
	if outcome := r.Outcome.Or(""); outcome != record.OutcomeOK {
		shade = t.theme.warn
	}
	blocked := known(r.BlockedNS, "-", field.Brief)
	if ns, least := r.BlockedMinNS.Get(); least && r.Outcome == record.Some(record.OutcomeOpen) {
		blocked = ">= " + field.Brief(ns)
	}
	first := ""
	if len(r.Statuses) > 0 {
		first = r.Statuses[0]
	}
	t.cells = append(t.cells[:0],
		cell{text: strconv.FormatInt(r.Request, 10), ink: t.theme.dim},
		cell{text: t.at(r.From)},
		cell{text: strconv.Itoa(r.Connection)},
		cell{text: r.Operation.Or(""), ink: t.theme.key},
		cell{text: clean(r.File.Or(""))},
		cell{text: strconv.Itoa(r.Tries)},
		cell{text: strconv.Itoa(r.Attempts)},
		cell{text: blocked, ink: t.theme.warn},
		cell{text: known(r.PauseNS, "", field.Brief)},
		cell{text: first},
		cell{text: r.Status.Or("no_reply")},
		cell{text: string(r.Outcome.Or("?")), ink: shade},
	)
	return t.row(taskColumns)
}
