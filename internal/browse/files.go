package browse

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/render"
)

// filesMemory is the memory for the table of files, in bytes.
const filesMemory = 32 << 20

// mostFiles is the number of files that are drawn, so that the screen is there within a frame.
const mostFiles = 2_000

// filesRead is the table of files.
type filesRead struct {
	arranged
	own ownNames
	all int64 // number of RPCs that name a file
}

// newFiles returns the screen with the files that RPCs acted on.
func newFiles(m *Model) *sums {
	var table filesRead
	var running *job[filesRead]
	s := newSums(m, fileSums)
	s.name, s.keys, s.fixed = "files", []string{"Enter its RPCs", "& filter"}, 1
	s.usual = "those with the largest sum of latencies first"
	s.command = func(file string) string { return "files " + file }
	s.work = func(s *sums) {
		selected, arrange := s.selection(), s.arrange()
		running = start(m, func(ctx context.Context, _ func(filesRead)) (t filesRead) {
			files := analyze.NewFiles(filesMemory)
			t.own = ownNames{}
			selected.each(ctx, func(r *record.Transaction) error {
				files.Add(r)
				t.own.add(r)
				if r.File.Known() || r.FileHandle.Known() {
					t.all++
				}
				return nil
			})
			t.arranged = arrange(ctx, anyOf(files.Rows()), nil)
			return t
		})
		s.running, s.stop = func() bool { _, ended := running.get(); return !ended }, running.stop
	}
	s.take = func(s *sums) {
		table, _ = running.get()
		s.arranged = table.arranged
		if s.name = "files"; len(table.rows) > 0 {
			s.name = fmt.Sprintf("files: %d", len(table.rows))
		}
	}
	s.names = func(line int64) string {
		if i := s.at(line); i >= 0 {
			return clean(s.rows[i].(*analyze.File).FileText())
		}
		return ""
	}
	s.drawn = func(width int) []string {
		switch {
		case len(table.rows) > 0:
		case table.all > 0:
			return []string{"", "these records do not say what RPCs did to files; browse the capture to see its files"}
		case !m.state.Done:
			return []string{"", "no files so far"}
		default:
			return []string{"", "no RPC names a file"}
		}
		var b bytes.Buffer
		rows := shownRows[*analyze.File](&s.arranged, mostFiles)
		if err := render.Files(&b, s.tables(), width, m.state.Start.Or(rows[0].First), rows); err != nil {
			return []string{err.Error()}
		}
		lines := split(b.String())
		if more := len(table.rows) - len(rows); more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more files; & and a filter select RPCs, and so files", more))
		}
		return lines
	}
	s.on = func(m *Model, k string) bool {
		if k != "enter" && k != "l" && k != "right" {
			return false
		}
		if i := s.at(s.cursor); i >= 0 && s.cursor < mostFiles {
			if filter := table.own.filter(s.rows[i].(*analyze.File)); filter == "" {
				m.say("no filter selects these RPCs")
			} else {
				m.showRPCs(both(m.list.filter, filter), "files")
			}
		}
		return true
	}
	return s
}

// ownNames has the handle by each path, and the path by each handle, or several if there are more.
type ownNames map[string]string

// several is no handle and no path.
const several = "\x00"

// mostNames is the number of names that are remembered.
const mostNames = 1 << 16

// add adds the file of an RPC.
func (o ownNames) add(r *record.Transaction) {
	path, handle := r.File.Or(""), r.FileHandle.Or("")
	if path == "" && handle == "" {
		return
	}
	server := r.Server.Or("")
	for _, pair := range [...][2]string{{"p" + path, server + " " + handle}, {"h" + server + " " + handle, path}} {
		if before, known := o[pair[0]]; known && before != pair[1] {
			o[pair[0]] = several
		} else if !known && len(o) < mostNames {
			o[pair[0]] = pair[1]
		}
	}
}

// filter returns a filter for the RPCs of a file: by its path, if all RPCs that act on it, and no
// others, have this path. It returns nothing for the row that sums up other files.
func (o ownNames) filter(f *analyze.File) string {
	path, handle := f.File.Or(""), f.FileHandle.Or("")
	if f.Others > 0 || path == "" && handle == "" {
		return ""
	}
	server := f.Server.Or("")
	named := "file == " + strconv.Quote(path)
	if path == "" {
		named = "file == null"
	}
	if path != "" && o["p"+path] == server+" "+handle && (handle == "" || o["h"+server+" "+handle] == path) {
		return named
	}
	filter := fmt.Sprintf("%s and file_handle == null and time >= %s and time <= %s", named, f.First, f.Last)
	if handle != "" {
		filter = fmt.Sprintf("file_handle == %q", handle)
		if n, before := f.NoHandle.Get(); before {
			filter = fmt.Sprintf("(%s or file == %q and file_handle == null and time <= %s)", filter, n.Path, n.Last)
		}
	}
	if server != "" {
		filter += fmt.Sprintf(" and server == %q", server)
	}
	return filter
}
