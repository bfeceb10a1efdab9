package browse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// choice is what the user means: the record with the cursor, those that are marked, or the list.
type choice struct{ *Model }

// copy copies what the second key after y names.
func (m choice) copy(k string) {
	var text string
	switch k {
	case "r", "y":
		text = m.rowText()
	case "x":
		if r := m.rpc(); r != nil {
			text = r.XID.String()
		}
	case "j":
		if record := m.record(); record != nil {
			text = string(render.AppendJSON(nil, record))
		}
	case "l":
		text = m.ladderText()
	case "f":
		text = m.filterText()
	case "c":
		m.copyCommand()
		return
	default:
		m.say("y copies, followed by r, x, j, l, f or c")
		return
	}
	m.take(text)
}

// take copies a text, and says so.
func (m choice) take(text string) {
	if text == "" {
		m.say("there is nothing of that kind to copy here")
		return
	}
	m.Clipboard = text
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	m.copied = append(m.copied, text)
	shown := clean(strings.TrimSpace(strip(text)))
	if n := strings.Count(text, "\n"); n > 1 {
		shown = fmt.Sprintf("%d lines", n)
	}
	// Whether the terminal supports OSC 52 cannot be known without asking it.
	const hint = "   (if your terminal does not have it now, Y quits and prints it)"
	if message := "copied: " + shown; len(message)+len(hint) <= m.width {
		m.say(message + hint)
	} else {
		m.say(ending(message, m.width))
	}
}

// record returns the record with the cursor, or that of the screen.
func (m choice) record() any {
	switch s := m.top().(type) {
	case *list:
		if s.pass != nil {
			return nil // Rows do not have all fields of packets.
		}
		_, record := s.current()
		return record
	case *ladder:
		if s.rpc == nil {
			return nil
		}
		return s.rpc
	}
	if l := m.ladder(); l != nil {
		return l.rpc
	}
	return nil
}

// ladder returns the ladder that is shown or that the screen belongs to; nil if there is none.
func (m choice) ladder() *ladder {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if l, is := m.stack[i].(*ladder); is && l.rpc != nil {
			return l
		}
	}
	return nil
}

// rpc returns the RPC with the cursor, or that of the screen; nil if there is none.
func (m choice) rpc() *record.Transaction {
	r, _ := m.record().(*record.Transaction)
	return r
}

// rowText returns the row with the cursor, or the text of the screen.
func (m choice) rowText() string {
	switch s := m.top().(type) {
	case *list:
		if s.count() > 0 && s.print != nil {
			return strip(s.row(s.print, s.cursor))
		}
	case interface{ content() string }:
		return s.content()
	}
	return ""
}

// ladderText returns the ladder of the RPC as text.
func (m choice) ladderText() string {
	if l := m.ladder(); l != nil {
		return l.content()
	}
	r := m.rpc()
	if r == nil {
		return ""
	}
	var b strings.Builder
	render.Ladder(&b, m.theme, max(m.width-gutter, 20), r)
	return strip(b.String())
}

// filterText returns the filter of the list or, in other places, a filter that selects the RPC.
func (m choice) filterText() string {
	if l, is := m.top().(*list); is && l.filter != "" {
		return l.filter
	}
	if r := m.rpc(); r != nil {
		return fmt.Sprintf("id == %d", r.ID)
	}
	return ""
}

// copyCommand copies the command line that shows what the screen shows. The command line of an RPC whose
// XID and connection other RPCs have, too, also has its number.
func (m choice) copyCommand() {
	command, r := m.commandLine(), m.rpc()
	if r == nil || !strings.Contains(command, " --xid ") {
		m.take(command)
		return
	}
	from, to := m.state.From, m.state.To
	m.later("looking for RPCs with the same XID", func(ctx context.Context, rows *index.Reader) func() {
		n := 0
		rows.Rows(ctx, from, to, func(_ int64, row *index.Row) bool {
			if row.XID == r.XID && row.Connection == uint32(r.Connection) {
				n++
			}
			return n < 2
		})
		return func() {
			if n > 1 {
				command += fmt.Sprintf(" -Y 'id == %d'", r.ID)
			}
			m.take(command)
		}
	})
}

// commandLine returns the command line that shows what the screen shows.
func (m choice) commandLine() string {
	file := m.options.Typed
	switch s := m.top().(type) {
	case *list:
		command := "rdmadump "
		if s.view != "" {
			command += s.view + " "
		}
		return commandOf(command+file, s)
	case *sums:
		filter := m.list.filter
		if s.selects != nil && s.selects() != "" {
			filter = both(filter, s.selects())
		}
		return sorted(filtering("rdmadump "+s.command(file), filter), &s.sorter, s.kind)
	case *overview:
		return filtering("rdmadump overview "+file, m.list.filter)
	case *packet:
		p := s.packets[s.i]
		filter := fmt.Sprintf("number == %d", p.Number)
		if p.Path != nil { // Each point has a packet with this number.
			filter += " and point == " + strconv.Quote(p.Path.Point)
		}
		return filtering("rdmadump packets -V -x "+file, filter)
	}
	if r := m.rpc(); r != nil {
		return fmt.Sprintf("rdmadump %s --xid %v --conn %d", file, r.XID, r.Connection)
	}
	if p, is := m.top().(*pane); is && p.connection.Known() {
		return fmt.Sprintf("rdmadump connections --timeline %s --conn %d", file, p.connection.Or(0))
	}
	return ""
}

// commandOf adds the filter and the order of a list to a command line.
func commandOf(command string, l *list) string {
	return sorted(filtering(command, l.filter), &l.sorter, l.source)
}

// sorted adds an order to a command line.
func sorted(command string, o *sorter, src *source) string {
	if o.by < 0 {
		return command
	}
	sign := ""
	if o.descending {
		sign = "-"
	}
	return command + " --sort " + sign + src.orders[o.by].path
}

// filtering adds a filter to a command line.
func filtering(command, filter string) string {
	if filter == "" {
		return command
	}
	return command + " -Y " + shell.File(filter)
}

// promptSave lets the user type the name of a file.
func (m choice) promptSave() {
	of, what := m.chosen()
	if of == nil {
		m.say("there are no RPCs to save")
		return
	}
	m.prompt = newPrompt("save", fmt.Sprintf("save %s to FILE.pcapng, .json, .txt: ", what), "", m.save)
}

// chosen returns the RPCs that the user means, and what they are: those that are marked, or the one
// of the screen, or those of the list. They are nil if there are none.
func (m choice) chosen() (of iter.Seq[int64], what string) {
	l := m.list
	shown := l.shown()
	all := func(yield func(int64) bool) {
		for i := range shown.count() {
			if !yield(shown.at(i)) {
				return
			}
		}
	}
	switch r := m.ladder(); {
	case r != nil:
		return func(yield func(int64) bool) { yield(r.n) }, "this RPC"
	case len(l.marked) > 0:
		marked := maps.Clone(l.marked)
		return func(yield func(int64) bool) {
			// The order is that of the list. The filter may hide some, which come last.
			for n := range all {
				if !marked[n] {
					continue
				}
				if delete(marked, n); !yield(n) {
					return
				}
			}
			for _, n := range slices.Sorted(maps.Keys(marked)) {
				if !yield(n) {
					return
				}
			}
		}, fmt.Sprintf("the %d marked", len(marked))
	case shown.count() == 0:
		return nil, ""
	}
	return all, fmt.Sprintf("the list (%d)", shown.count())
}

// save writes the chosen RPCs to a file, whose ending selects the format.
func (m choice) save(path string) error {
	path = strings.TrimSpace(path)
	if path == "" {
		return nil
	}
	if m.saving != nil {
		return errors.New("a file is still being saved")
	}
	numbers, _ := m.chosen()
	if numbers == nil {
		return errors.New("there are no RPCs to save")
	}
	var write func(ctx context.Context) (string, error)
	switch filepath.Ext(path) {
	case ".pcapng":
		if m.options.SavePackets == nil {
			return errors.New(m.options.Closed)
		}
		x := m.options.Index
		write = func(ctx context.Context) (string, error) {
			r := x.Reader()
			defer r.Close()
			ids := map[int64]bool{}
			for n := range numbers {
				if row, known := r.Row(n); known {
					ids[row.ID] = true
				}
			}
			return m.options.SavePackets(ctx, path, ids)
		}
	case ".json", ".jsonl", ".ndjson":
		write = m.saver(path, numbers, nil)
	case ".txt":
		write = m.saver(path, numbers, theme(render.Look{Colour: render.NoColour}))
	default:
		return errors.New("the ending of the name selects the format: .pcapng, .json or .txt")
	}
	m.saving = start(m.Model, func(ctx context.Context, _ func(string)) string {
		report, err := write(ctx)
		if err != nil {
			return "not saved: " + clean(err.Error())
		}
		return clean(path) + ": " + report
	})
	return nil
}

// saver returns a function that writes RPCs as JSON lines or, with a theme, as ladders.
func (m choice) saver(path string, numbers iter.Seq[int64], look *render.Theme) func(context.Context) (string, error) {
	x, create := m.options.Index, m.options.Create
	return func(ctx context.Context) (report string, err error) {
		out, err := create(path)
		if err != nil {
			return "", err
		}
		defer func() {
			if closed := out.Close(); err == nil {
				err = closed
			}
		}()
		r := x.Reader()
		defer r.Close()
		var line []byte
		written := 0
		for n := range numbers {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			t, err := r.Transaction(n)
			switch {
			case err != nil:
				return "", err
			case t == nil:
				continue
			case look == nil:
				line = render.AppendJSON(line[:0], t)
				_, err = out.Write(line)
			default:
				err = render.Ladder(out, look, 100, t)
			}
			if err != nil {
				return "", err
			}
			written++
		}
		return fmt.Sprintf("%d RPCs", written), nil
	}
}
