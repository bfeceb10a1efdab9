package render

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
)

var taskColumns = []column{
	{name: "RPC", fields: "request", right: true, rank: 4, usual: 5, foot: "RPC: number of its first RPC"},
	{name: "TIME", fields: "from", right: true, usual: 11},
	{name: "CONN", fields: "connection", right: true, rank: 3},
	{name: "OPERATION", fields: "operation", usual: 10},
	{name: "FILE", fields: "file", flex: true, min: 12, usual: 20},
	{name: "TRIES", fields: "tries", right: true, usual: 3},
	{name: "ATTEMPTS", fields: "attempts", right: true, rank: 2, usual: 3, foot: "TRIES: requests of the client; ATTEMPTS: Calls that it sent for them"},
	{name: "BLOCKED", fields: "blocked_ns", right: true, usual: 8, foot: "BLOCKED: from the first Call until the last Reply was there", signs: []sign{{"-", "without a Reply"}}},
	{name: "PAUSE", fields: "pause_ns", right: true, rank: 1, usual: 8, foot: "PAUSE: of the client, before the last try"},
	{name: "FIRST STATUS", fields: "statuses", rank: 5, usual: 14},
	{name: "STATUS", fields: "status", usual: 10},
	{name: "OUTCOME", fields: "outcome", usual: 8},
}

// Task writes a row of the table of tasks.
func (t *Text) Task(r *record.Task) error {
	shade := t.theme.good
	if outcome := r.Outcome.Or(""); outcome != record.OutcomeOK {
		shade = t.theme.warn
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
		cell{text: known(r.BlockedNS, "-", Duration), ink: t.theme.warn},
		cell{text: known(r.PauseNS, "", Duration)},
		cell{text: first},
		cell{text: r.Status.Or("no_reply")},
		cell{text: string(r.Outcome.Or("?")), ink: shade},
	)
	return t.row(taskColumns)
}
