package render

import (
	"io"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var filesColumns = []column{
	{name: "FILE", fields: "file file_handle", flex: true, min: 20, signs: []sign{{shortMark, "stands for the beginning of the path"}}},
	{name: "SERVER", fields: "server", rank: 6, varied: true},
	{name: "RPCS", former: "OPS", fields: "rpcs=operations", right: true},
	attemptsColumn,
	{name: "ERRORS", former: "ERR", fields: "errors", right: true, rank: 3, quiet: true},
	{name: "NO REPLY", fields: "no_reply", right: true, quiet: true, some: true},
	{name: "BYTES READ", former: "READ", fields: "bytes_read", right: true, rank: 1},
	{name: "BYTES WRITTEN", former: "WRITTEN", fields: "bytes_written", right: true, rank: 1},
	{name: "P50", fields: "latency.p50_ns", right: true, rank: 5},
	{name: "P99", fields: "p90=latency.p90_ns p99=latency.p99_ns", right: true, rank: 4},
	{name: "WORST", fields: "latency.max_ns", right: true, rank: 2},
	{name: "CREATED", fields: "created.time created.client created.uid", rank: 4, some: true, foot: changedFoot},
	{name: "RENAMED", fields: "renamed.time renamed.client renamed.uid", rank: 3, some: true, foot: changedFoot},
	{name: "FORMER NAME", fields: "renamed.from", rank: 5, some: true},
	{name: "REMOVED", fields: "removed.time removed.client removed.uid", rank: 1, some: true, foot: changedFoot},
}

// changedFoot explains the columns that say who changed the name of a file.
const changedFoot = "Times of changes are followed by user ID@address of the client"

// Files writes the table of files. start is the start of the capture.
func Files(w io.Writer, theme *Theme, width int, start record.Time, rows []*analyze.File) error {
	t := newTable(w, theme, width, filesColumns)
	c := clock{form: theme.times, start: record.Some(start)}
	bounds := 0
	for _, f := range rows {
		bounds += f.Latency.UpperBounds
		path := clean(f.FileText())
		if err := t.row([]cell{
			{text: path, ink: theme.key, tail: true},
			{text: f.Server.Or("")},
			{text: strconv.Itoa(f.Operations)},
			{text: attempts(int64(f.Operations), int64(f.Attempts))},
			{text: strconv.Itoa(f.Errors)},
			{text: strconv.Itoa(f.NoReply)},
			{text: moved(f.BytesRead)},
			{text: moved(f.BytesWritten)},
			{text: about(&f.Latency, f.Latency.P50)},
			{text: about(&f.Latency, f.Latency.P99)},
			{text: maximum(&f.Latency, f.Latency.Max)},
			changed(&c, f.Created),
			changed(&c, f.Renamed),
			{text: clean(f.Renamed.Or(analyze.FileChange{}).From.Or(""))},
			changed(&c, f.Removed),
		}); err != nil {
			return err
		}
	}
	return t.end(bounds)
}

// changed returns when the name of a file was changed, and by whom, such as "6.120393 0@192.168.77.2".
func changed(c *clock, change record.Opt[analyze.FileChange]) (out cell) {
	if v, known := change.Get(); known {
		out.text = string(c.append(nil, v.Time)) + " " + userOf(&v) + "@" + v.Client.Or("?")
	}
	return out
}

// userOf returns the principal or the user ID of a change, or a question mark if the capture shows neither.
func userOf(c *analyze.FileChange) string {
	if name, is := c.Principal.Get(); is {
		return clean(name)
	}
	return known(c.UID, "?", number)
}

// endOf returns the end of a text that is longer than a number of characters, with the mark in front of it.
func endOf(text string, most int, mark string) string {
	over := wide(text) - most
	if over <= 0 {
		return text
	}
	for over++; over > 0 && text != ""; { // one more for the mark
		r, size := firstRune(text)
		text, over = text[size:], over-RuneWidth(r)
	}
	return mark + text
}
