package render

import (
	"cmp"
	"io"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

var filesColumns = slices.Concat([]column{
	{
		name: "FILE", fields: "file file_handle", flex: true, min: 20, foot: pathFoot, signs: slices.Concat(pathSigns, []sign{{" = ", "a = b: names that one file had"}, {"(no handle)", "= none captured"}}),
		doc: "Path of the file or directory after the last RPC that acted on it; fh: and a number is the short form of a file handle whose path the capture does not show. In a narrow column, ~ replaces the beginning of a long path. The row others sums up the files for which the memory limit leaves no space.",
	},
	{name: "SERVER", fields: "server", at: 140, doc: "Address of the server."},
	{name: "RPCS", fields: "rpcs=requests", right: true, doc: "Number of RPCs that acted on the file: of what clients asked for once."},
	attemptsColumn(""),
	{
		name: "FAILED", fields: "failed", right: true, foot: failedFoot,
		doc: "Number of these RPCs that were answered with an error: RDMA_ERROR, or a Reply with an RPC or NFS error status.",
	},
	{
		name: "NO REPLY", fields: "no_reply", right: true,
		doc: "Number of these RPCs without a Reply (status no_reply). They are no errors: the Reply may have been sent later, or not captured.",
	},
	{name: "READ", fields: "bytes_read", right: true, doc: "Number of bytes that READ returned."},
	{name: "WRITTEN", fields: "bytes_written", right: true, doc: "Number of bytes that WRITE wrote, according to its Replies."},
}, alike(
	sumFoot, latencySigns,
	column{name: "P50", fields: "latency.p50_ns", right: true, at: 100},
	column{name: "P90", fields: "latency.p90_ns", right: true, at: 180},
	column{name: "P99", fields: "latency.p99_ns", right: true, wide: true},
	column{name: "WORST", fields: "latency.max_ns", right: true},
	column{name: "SUM", fields: "total_ns", right: true},
), []column{
	{
		name: "CREATED", fields: "created.time created.client created.uid", at: 180, foot: changedFoot,
		doc: "Time, user ID and client of the RPC that created the file, such as 6.12 1000@192.0.2.1. It is empty if the capture does not prove that an RPC created the file.",
	},
	{
		name: "RENAMED", fields: "renamed.time renamed.client renamed.uid", at: 200, foot: changedFoot,
		doc: "Time, user ID and client of the last RPC that renamed the file.",
	},
	{name: "FORMER NAME", fields: "renamed.from", wide: true, doc: "Path of the file before it was renamed."},
	{
		name: "REMOVED", fields: "removed.time removed.client removed.uid", at: 140, foot: changedFoot,
		doc: "Time, user ID and client of the last RPC that removed a name of the file.",
	},
})

// changedFoot explains the cells about changes of a file's name.
const changedFoot = "when, and user ID@client"

// Files writes the table of files. start is the start of the capture.
func Files(w io.Writer, theme *Theme, width int, start record.Time, rows []*analyze.File) error {
	t := newTable(w, theme, width, filesColumns)
	t.by = cmp.Or(t.by, "SUM")
	c := clock{form: theme.times, start: record.Some(start)}
	named := map[string]int{}
	for _, f := range rows {
		named[f.File.Or("")]++
	}
	for _, f := range rows {
		path := clean(f.FileText())
		switch {
		case f.FirstName != "" && f.FirstName != path:
			path = clean(f.FirstName) + " = " + path
		case f.File.Known() && !f.FileHandle.Known() && f.Others == 0 && named[f.File.Or("")] > 1:
			path += " (no handle)"
		}
		p50, p90, p99, worst := theme.quantiles(&f.Latency)
		if err := t.row([]cell{
			{text: path, ink: theme.key, tail: true},
			{text: f.Server.Or("")},
			theme.number(int64(f.Operations)),
			theme.number(int64(f.Attempts)),
			theme.number(int64(f.Errors)),
			theme.number(int64(f.NoReply)),
			theme.bytes(f.BytesRead),
			theme.bytes(f.BytesWritten),
			p50, p90, p99, worst, theme.sum(&f.Latency, f.TotalNS),
			changed(&c, f.Created),
			changed(&c, f.Renamed),
			{text: clean(f.Renamed.Or(analyze.FileChange{}).From.Or(""))},
			changed(&c, f.Removed),
		}); err != nil {
			return err
		}
	}
	return t.end()
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
