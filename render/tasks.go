package render

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

var taskColumns = []column{
	{
		name: "FIRST RPC ID", fields: "request", right: true, rank: 4, usual: 5,
		doc: "Number of the first RPC of the task; the column RPC ID of the transactions has the same numbers.",
	},
	{
		name: "TIME", fields: "from", right: true, usual: 11, foot: "of the first Call", moment: true,
		doc: "Time of the first packet of the first Call; the flag --time selects the format.",
	},
	{name: "CONN", fields: "connection", right: true, rank: 3, doc: "Number of the connection of the last Call."},
	{name: "OPERATION", fields: "operation", usual: 10, doc: "Operation that the application waited for."},
	{
		name: "FILE", fields: "file", flex: true, min: 12, usual: 20,
		doc: "Path of the file or directory that the last try acted on; empty if the capture shows no name.",
	},
	{
		name: "TRIES", fields: "tries", right: true, usual: 3, foot: "times that the client asked",
		doc: "Number of requests: the client asks again, with a new request, if the server puts it off.",
	},
	{
		name: "CALLS", fields: "attempts", right: true, rank: 2, usual: 3, foot: "of all tries, with those sent again",
		doc: "Number of Calls of all tries: a Call is sent again, on a new connection, if its Reply does not come.",
	},
	{
		name: "BLOCKED", fields: "blocked_ns", right: true, usual: 8, foot: "from the first Call to the last Reply", signs: []sign{{"-", "= no Reply"}},
		doc: "Time from the first packet of the first Call until the last packet of the last Reply was delivered; - without a Reply, >= up to the end of the capture if the task was open then.",
	},
	{
		name: "LAST PAUSE", fields: "pause_ns", right: true, rank: 1, usual: 8, foot: "of the client, before the last try",
		doc: "Time from the last Reply before the last try to the first Call of that try: the client's own pause; empty with a single try.",
	},
	{name: "FIRST STATUS", fields: "statuses", rank: 5, usual: 14, doc: "Status of the first try; no_reply if there was no Reply."},
	{name: "LAST STATUS", fields: "status", usual: 10, doc: "Status of the last try; no_reply if there was no Reply."},
	{
		name: "ENDED", fields: "outcome", usual: 8,
		doc: "How the task ended: ok, status (another error), given_up (the client did not ask again in time), open (the capture ended before); ? if it is not known.",
	},
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
