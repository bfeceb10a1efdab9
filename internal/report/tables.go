package report

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// section is a section of the page that consists of tables, pictures and the commands that show the same.
type section struct {
	ID, Name, Text string
	Charts         []*chart
	Tables         []table
	Commands       []string
}

// count returns the cell of a number.
func count(n int64) cell { return number(n, fmt.Sprint(n)) }

// text returns the cell of a text that may be unknown.
func text(v record.Opt[string]) cell {
	if s, known := v.Get(); known && s != "" {
		return cell{Text: printable(s)}
	}
	return cell{Text: unknown}
}

// instant returns the cell of a time, in seconds since the start of the capture.
func instant(t, start record.Time) cell {
	return cell{Text: seconds(t.Sub(start)), Value: fmt.Sprint(int64(t))}
}

// mounts renders the steps of mounts.
func (v *page) mounts() {
	t := table{ID: "mount-table", Caption: "Steps of mounts, in the order of their times", Columns: []column{
		{"Time", "Start of the step, in seconds since the start of the capture", true},
		{"Client", "Address of the client", false},
		{"Server", "Address of the server", false},
		{"Conn", "Number of the connection", true},
		{"Asked", "What the client asked for", false},
		{"Answer", "What the server answered", false},
		{"OK", "Whether the server granted it; a dash if the capture does not show the answer", false},
	}}
	for i := range v.o.MountSteps {
		s := &v.o.MountSteps[i]
		conn, answer, granted := count(int64(s.Connection)), cell{Text: printable(s.Answer)}, cell{Text: unknown}
		if v.known[s.Connection] {
			conn.Link = connAnchor(s.Connection)
		}
		if ok, known := s.OK.Get(); known && ok {
			granted.Text = "yes"
		} else if known {
			granted.Text, answer.Class = "no", "bad"
		} else {
			answer.Class = "bad"
		}
		t.Rows = append(t.Rows, []cell{instant(s.Time, v.start), text(s.Client), text(s.Server), conn, {Text: printable(s.Asked), Class: "path"}, answer, granted})
	}
	if t.Rows != nil {
		v.part("mounts", "section", section{ID: "mounts", Name: "Mounts", Tables: []table{t}, Commands: []string{v.run("overview", "FILE"), v.run("FILE", "-Y", "portmap || mount")}})
	}
}

// maxFiles is the number of rows of the table of files.
const maxFiles = 200

// namedFiles renders the table of the files that records name.
func (v *page) namedFiles() {
	s := section{ID: "files", Name: "Files", Commands: []string{v.run("stats", "FILE", "--by", fileField)}}
	rows := v.named.Rows()
	if len(rows) == 0 {
		s.Text = "The records name no file."
		v.part("files", "section", s)
		return
	}
	s.Text = "The input is records of rdmadump, which name the file of each RPC. They do not contain how many bytes of each file were read and written, and who created, renamed and removed it."
	t := table{ID: "named-file-table", Caption: "Files, by the sum of the latencies of the RPCs that name them", Columns: []column{
		{"File", "Path in the records, or the short form of the file handle if they have none", false},
		{"RPCs", "Number of RPCs that name the file", true},
		{"Errors", "Number of these RPCs that failed", true},
		{"P50", "Median of the latencies", true},
		{"P99", "99th percentile of the latencies", true},
		{"Worst", "Longest latency", true},
		{"Sum", "Sum of all latencies", true},
	}}
	if n := len(rows) - maxFiles; n > 0 {
		v.omit("The table of files shows the %d with the largest sums of latencies; %s are left out. %s lists them.", maxFiles, plural(int64(n), "file"), s.Commands[0])
		rows = rows[:maxFiles]
	}
	for _, f := range rows {
		name := analyze.Others
		if f.Group != nil {
			name = f.Group[0]
		}
		t.Rows = append(t.Rows, []cell{
			{Text: printable(name), Head: true, Class: "path"},
			count(int64(f.Count)), count(int64(f.Errors)),
			quantile(f.Latency, f.Latency.P50), quantile(f.Latency, f.Latency.P99), longest(f.Latency, f.Latency.Max), total(f.Latency, f.TotalNS),
		})
	}
	s.Tables = []table{t}
	v.part("files", "section", s)
}

// filesTable renders the table of files.
func (v *page) filesTable() {
	if v.about.Records != "" {
		v.namedFiles()
		return
	}
	s := section{ID: "files", Name: "Files", Commands: []string{v.run("files", "FILE")}}
	t := table{ID: "file-table", Caption: "Files, by the sum of the latencies of the RPCs that acted on them", Columns: []column{
		{"File", "Path after the last RPC, or the short form of the file handle if the capture shows no name", false},
		{"Server", "Address of the server", false},
		{"RPCs", "Number of RPCs that acted on the file", true},
		{"Errors", "Number of these RPCs that failed", true},
		{"Read", "Bytes of the file that Replies to READ returned", true},
		{"Written", "Bytes that were written to the file, according to the Replies to WRITE", true},
		{"P50", "Median of the latencies", true},
		{"P99", "99th percentile of the latencies", true},
		{"Worst", "Longest latency", true},
		{"Sum", "Sum of all latencies", true},
		{"Created", "Time in seconds since the start of the capture, user and client", false},
		{"Renamed", "Time of the last RENAME, user and client", false},
		{"Former name", "Path before the last RENAME", false},
		{"Removed", "Time of the last REMOVE or RMDIR, user and client", false},
	}}
	rows := v.files.Rows()
	if n := len(rows) - maxFiles; n > 0 {
		v.omit("The table of files shows the %d with the largest sums of latencies; %s are left out. %s lists them.", maxFiles, plural(int64(n), "file"), s.Commands[0])
		rows = rows[:maxFiles]
	}
	for _, f := range rows {
		former := text(f.Renamed.Or(analyze.FileChange{}).From)
		former.Class = "path"
		t.Rows = append(t.Rows, []cell{
			{Text: printable(f.FileText()), Head: true, Class: "path"},
			text(f.Server), count(int64(f.Operations)), count(int64(f.Errors)),
			number(f.BytesRead, render.Bytes(f.BytesRead)), number(f.BytesWritten, render.Bytes(f.BytesWritten)),
			quantile(f.Latency, f.Latency.P50), quantile(f.Latency, f.Latency.P99), longest(f.Latency, f.Latency.Max), total(f.Latency, f.TotalNS),
			changed(f.Created, v.start), changed(f.Renamed, v.start), former, changed(f.Removed, v.start),
		})
	}
	s.Tables = []table{t}
	if t.Rows == nil {
		s.Text = "The capture shows no RPC that acted on a file."
	}
	v.part("files", "section", s)
}

// changed returns the cell of a change of a file's name: its time, user and client.
func changed(change record.Opt[analyze.FileChange], start record.Time) cell {
	c, known := change.Get()
	if !known {
		return cell{Text: unknown}
	}
	user := "?"
	if name, is := c.Principal.Get(); is {
		user = printable(name)
	} else if uid, is := c.UID.Get(); is {
		user = fmt.Sprint(uid)
	}
	return cell{Text: fmt.Sprintf("%s %s@%s", seconds(c.Time.Sub(start)), user, printable(c.Client.Or("?"))), Value: fmt.Sprint(int64(c.Time))}
}
