package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

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

// drawn returns a table of the page with columns of a table that rdmadump prints in text. A pick is the heading there, the
// heading here after an equals sign if it is not the same in small letters, and the explanation of the heading after a
// colon if that of the text is not true of the page. The first column names the rows.
func drawn(id, caption string, s *render.Sheet, picks ...string) table {
	t := table{ID: id, Caption: caption, Rows: make([][]cell, len(s.Rows))}
	for i, pick := range picks {
		pick, explain, _ := strings.Cut(pick, ": ")
		name, heading, other := strings.Cut(pick, "=")
		if !other {
			heading = name[:1] + strings.ToLower(name[1:])
		}
		at := slices.IndexFunc(s.Columns, func(c render.SheetColumn) bool { return c.Name == name })
		if at < 0 {
			panic("report: no table has the column " + name)
		}
		t.Columns = append(t.Columns, column{heading, cmp.Or(explain, s.Columns[at].Explain), s.Columns[at].Number})
		for j, row := range s.Rows {
			c := cell{Text: render.Clean(row[at].Text), Value: row[at].Value, Head: i == 0}
			if c.Text == "" { // not shown in text
				c.Text = cmp.Or(c.Value, unknown)
			}
			t.Rows[j] = append(t.Rows[j], c)
		}
	}
	return t
}

// column returns the index of the column with a heading.
func (t *table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c column) bool { return c.Name == name })
}

// insert inserts a column in front of the column with an index.
func (t *table) insert(at int, c column, cells func(row int) cell) {
	t.Columns = slices.Insert(t.Columns, at, c)
	for i := range t.Rows {
		t.Rows[i] = slices.Insert(t.Rows[i], at, cells(i))
	}
}

// append adds a column on the right.
func (t *table) append(c column, cells func(row int) cell) { t.insert(len(t.Columns), c, cells) }

// dropEmpty removes the columns with these headings that say nothing, or 0, in every row, so that the page needs less width.
func (t *table) dropEmpty(names ...string) {
	for _, name := range names {
		at := t.column(name)
		if len(t.Rows) == 0 || slices.ContainsFunc(t.Rows, func(row []cell) bool { return row[at].Text != unknown && row[at].Text != "0" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, at, at+1)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], at, at+1)
		}
	}
}

// insertSum inserts the column with the sums of latencies, which follows that with the longest latency.
func (t *table) insertSum(cells func(row int) cell) {
	t.insert(t.column("Worst")+1, column{"Sum", "Sum of all latencies", true}, cells)
}

// sheet returns the table that rdmadump prints of records. A table of the text cannot fail, because nothing is written.
func sheet[R any](v *page, of string, records []R, draw func(theme *render.Theme) error) *render.Sheet {
	s, err := render.SheetOf(of, records, draw)
	if err != nil && v.err == nil {
		v.err = err
	}
	return s
}

// statsSheet returns the table that stats prints.
func statsSheet(v *page, rows []*analyze.Stats) *render.Sheet {
	return sheet(v, "stats", rows, func(theme *render.Theme) error { return render.Stats(io.Discard, theme, 0, rows) })
}

// count returns the cell of a number.
func count(n int64) cell { return number(n, fmt.Sprint(n)) }

// text returns the cell of a text that may be unknown.
func text(v record.Opt[string]) cell {
	if s, known := v.Get(); known && s != "" {
		return cell{Text: render.Clean(s)}
	}
	return cell{Text: unknown}
}

// instant returns the cell of a time, in seconds since the start of the capture.
func instant(t, start record.Time) cell {
	return cell{Text: render.Seconds(t.Sub(start), 6), Value: fmt.Sprint(int64(t))}
}

// part returns the caption of a table, which says so if the table has only some of its rows.
func part(caption string, rows, of int) string {
	if rows == of {
		return caption
	}
	return fmt.Sprintf("%s: %d of %d", caption, rows, of)
}

// mounts renders the steps of mounts.
func (v *page) mounts() {
	t := table{ID: "mount-table", Caption: "Steps of mounts, in the order of their times", Zero: clock(v.start), Columns: []column{
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
		conn, answer, granted := count(int64(s.Connection)), cell{Text: render.Clean(s.Answer)}, cell{Text: unknown}
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
		t.Rows = append(t.Rows, []cell{instant(s.Time, v.start), text(s.Client), text(s.Server), conn, {Text: render.Clean(s.Asked), Class: "path"}, answer, granted})
	}
	of := int(v.o.MountStepsTotal)
	t.Caption = part(t.Caption, len(t.Rows), of)
	if n := of - len(t.Rows); n > 0 {
		v.omit("The table of mounts shows the first steps that were granted and the first that were not; %s are left out.", record.Plural(int64(n), "step"))
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
	of := len(rows)
	if of == 0 {
		s.Text = "The records name no file."
		v.part("files", "section", s)
		return
	}
	s.Text = "The input is records of rdmadump, which name the file of each RPC. They do not contain how many bytes of each file were read and written, and who created, renamed and removed it."
	if n := len(rows) - maxFiles; n > 0 {
		v.omit("The table of files shows the %d with the largest sums of latencies; %s are left out. %s lists them.", maxFiles, record.Plural(int64(n), "file"), s.Commands[0])
		rows = rows[:maxFiles]
	}
	t := drawn("named-file-table", part("Files, by the sum of the latencies of the RPCs that name them", len(rows), of), statsSheet(v, rows), "NAME=File: Path in the records, or the short form of the file handle if they have none", "RPCS=RPCs", "ERRORS", "NO REPLY", "P50", "P99", "WORST")
	t.dropEmpty("No reply")
	for i := range t.Rows {
		t.Rows[i][0].Class = "path"
	}
	t.insertSum(func(i int) cell { return total(rows[i].Latency, rows[i].TotalNS) })
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
	rows := v.files.Rows()
	of := len(rows)
	if n := len(rows) - maxFiles; n > 0 {
		v.omit("The table of files shows the %d with the largest sums of latencies; %s are left out. %s lists them.", maxFiles, record.Plural(int64(n), "file"), s.Commands[0])
		rows = rows[:maxFiles]
	}
	t := drawn("file-table", part("Files, by the sum of the latencies of the RPCs that acted on them", len(rows), of),
		sheet(v, "files", rows, func(theme *render.Theme) error { return render.Files(io.Discard, theme, 0, v.start, rows) }),
		"FILE: Path after the last RPC, or the short form of the file handle if the capture shows no name", "SERVER: Address of the server", "RPCS=RPCs", "ERRORS", "NO REPLY", "BYTES READ", "BYTES WRITTEN", "P50", "P99", "WORST", "CREATED", "RENAMED", "FORMER NAME", "REMOVED")
	former := t.column("Former name")
	for i := range t.Rows {
		t.Rows[i][0].Class, t.Rows[i][former].Class = "path", "path"
	}
	t.insertSum(func(i int) cell { return total(rows[i].Latency, rows[i].TotalNS) })
	t.dropEmpty("No reply", "Created", "Renamed", "Former name", "Removed")
	if t.column("Created")+t.column("Renamed")+t.column("Removed") > -3 {
		t.Zero = clock(v.start)
	}
	s.Tables = []table{t}
	if len(t.Rows) == 0 {
		s.Text = "The capture shows no RPC that acted on a file."
	}
	v.part("files", "section", s)
}
