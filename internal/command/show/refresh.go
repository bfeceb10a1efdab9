package show

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/render"
)

// LiveLinger is the time for which a live transaction waits for the acknowledgement of its
// Reply. It is short because a person is watching.
const LiveLinger = record.Time(40 * time.Millisecond)

// refreshed lists the views of live whose tables are shown anew while packets arrive, with the field by
// which their intervals are grouped in JSON; empty for no groups.
var refreshed = map[string]string{"stats": analyze.ByOperation, "overview": "", "connections": "connection", "files": ""}

// RefreshEvery is the time after which live shows a table anew, and the length of its intervals.
const RefreshEvery = time.Second

// intervalGrace is the capture time after the end of an interval, after which it is shown: RPCs become
// complete a while after their Replies.
const intervalGrace = 5 * LiveLinger

// mostKept is the number of connections that have ended, or of intervals, that live keeps to be shown.
const mostKept = 1000

// refresh shows the tables of a view while packets arrive: on a terminal in place, and in JSON as records
// of intervals.
type refresh struct {
	*sink
	view      *flags.View
	now       func() record.Opt[record.Time]
	open      func(visit func(*record.Connection))
	summarize func() *record.Summary
	screen    bool // the output is a terminal
	rates     *analyze.Rates
	started   bool
	shown     time.Time       // when the screen was drawn
	recent    []*analyze.Rate // of the view rates
	out       io.Writer       // the terminal
	saved     *render.Theme   // of the table at the end
}

// newRefresh returns the refresh of a view of live; nil if its records are shown as they come.
func newRefresh(r *Runner, s *sink) *refresh {
	by, is := refreshed[r.View.Name]
	if !r.Live || !is || s.sorter != nil {
		return nil
	}
	table := !r.JSON && r.Columns == nil
	f := &refresh{sink: s, view: r.View, screen: table && command.TerminalWidth(r.Stdout) > 0 && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != "", out: r.Stdout}
	f.saved = s.theme
	if !f.screen && table || r.View != flags.RatesView && !f.screen && !r.JSON || r.View.Name == "files" && !f.screen {
		return nil
	}
	every, grouping := RefreshEvery, flags.Grouping{}
	if r.View == flags.RatesView {
		by, every = "", r.Every
	}
	if r.By.Given {
		by = r.By.By
	}
	if r.View == flags.RatesView || !f.screen {
		var values func([]string, *record.Transaction) []string
		if by != "" {
			grouping, _ = flags.ParseGrouping(by)
			by, values = grouping.By, grouping.Append
		}
		var err error
		if f.rates, err = analyze.NewRates(every, by, values); err != nil {
			s.fail(fmt.Errorf("--every: %w", err))
			return nil
		}
		f.rates.Unattended()
	}
	return f
}

// wrap returns the handler of the view, which also counts the RPCs of intervals.
func (f *refresh) wrap(h dissect.Handler) dissect.Handler {
	if f.rates == nil {
		return h
	}
	inner := h.Transaction
	h.Transaction = func(r *record.Transaction) error {
		if f.asked(r) && (f.Summed == nil || f.Summed.Match(r)) {
			f.add(r)
		}
		if inner == nil || f.view == flags.RatesView {
			return f.status()
		}
		return inner(r)
	}
	if f.view == flags.RatesView {
		h.Connection = nil
		h.Signal = func(x record.Signal) error {
			if f.begin(); f.wantsSignal(x) {
				f.fail(f.rates.Signal(x))
			}
			return f.status()
		}
	}
	return h
}

// add counts an RPC in its interval.
func (f *refresh) add(r *record.Transaction) {
	f.begin()
	if at := r.End(); at > f.rates.Start()+record.Time(mostKept)*record.Time(f.rates.Every()) { // after a long silence
		f.pass(at - record.Time(f.rates.Every()))
	}
	f.fail(f.rates.Add(r))
}

// begin starts the first interval.
func (f *refresh) begin() {
	if !f.started {
		f.rates.Begin(f.Start)
		f.started = true
	}
}

// pass shows the intervals that end at or before a time.
func (f *refresh) pass(until record.Time) { f.intervals(f.rates.Take(until)) }

// intervals shows intervals.
func (f *refresh) intervals(list []*analyze.Rate) {
	for _, r := range list {
		switch {
		case f.view != flags.RatesView:
			f.record(r)
		case f.screen:
			if f.matches(r) {
				f.recent = append(f.recent, r)
				f.recent = f.recent[max(len(f.recent)-mostKept, 0):]
			}
		default:
			f.take(r, nil)
		}
	}
}

// tick shows what has happened, if it is time to.
func (f *refresh) tick() error {
	now, known := f.now().Get()
	if !known {
		return f.err
	}
	if f.rates != nil {
		f.begin()
		f.intervals(f.rates.SetBack(now))
		f.pass(now - intervalGrace)
	}
	if f.screen && time.Since(f.shown) >= RefreshEvery {
		f.draw(now)
	}
	return f.err
}

// These are the escape sequences that live writes around and between tables.
const (
	screenOn  = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, without a cursor; a long line does not continue in the next one
	screenOff = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	screenTop = "\x1b[H"
	lineRest  = "\x1b[K"
	pageRest  = "\x1b[J"
)

// draw shows the table in place of the previous one.
func (f *refresh) draw(now record.Time) {
	f.theme, f.width, f.height = f.Look.Of(f.out)
	var table bytes.Buffer
	f.fail(f.redraw(&table, f))
	lines := strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
	if room := max(f.height-2, 1); len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("%d more lines", len(lines)-room+1))
	}
	var b bytes.Buffer
	if f.shown.IsZero() {
		b.WriteString(screenOn)
	}
	f.shown = time.Now()
	s := f.summarize()
	fmt.Fprintf(&b, "%s%s after %.1fs, %s; Ctrl-C ends the capture%s\r\n", screenTop, record.Plural(s.Packets, "packet"), float64(max(now.Sub(s.First.Or(now)), 0))/1e9, record.Plural(s.Connections, "connection"), lineRest)
	for _, line := range lines {
		b.WriteString(line + lineRest + "\r\n")
	}
	b.WriteString(pageRest)
	_, err := f.out.Write(b.Bytes())
	f.fail(err)
}

// end removes the table from the terminal, which then shows what it did before.
func (f *refresh) end() {
	if f != nil && f.screen && !f.shown.IsZero() {
		io.WriteString(f.out, screenOff)
		f.shown, f.theme = time.Time{}, f.saved
	}
}

// finish shows the last intervals.
func (f *refresh) finish(s *record.Summary) {
	f.end()
	if f.rates == nil || s == nil {
		return
	}
	f.begin()
	last := s.Last.Or(f.Start)
	f.intervals(f.rates.SetBack(last))
	f.pass(last + record.Time(f.rates.Every()))
	if f.view == flags.RatesView && f.screen && len(f.recent) > 0 {
		f.written += int64(len(f.recent))
		f.fail(render.Rates(f.w, f.theme, f.width, f.Start, f.recent))
	}
}

// liveRates is the view rates of live.
func liveRates(s *sink) (dissect.Handler, func()) {
	s.redraw = func(w io.Writer, f *refresh) error {
		if len(f.recent) == 0 {
			return nil
		}
		rows := f.recent[max(len(f.recent)-max(f.height-4, 1), 0):]
		return render.Rates(w, f.theme, f.width, f.Start, rows)
	}
	return dissect.Handler{Transaction: func(*record.Transaction) error { return nil }}, nil
}

// liveConnections is the view connections of live on a terminal.
func liveConnections(s *sink) (dissect.Handler, func()) {
	var ended []*record.Connection
	selected := func(r *record.Connection) bool {
		return s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) && s.matches(r)
	}
	s.redraw = func(w io.Writer, f *refresh) error {
		rows := slices.Clone(ended)
		f.open(func(r *record.Connection) {
			if selected(r) {
				rows = append(rows, r.Clone())
			}
		})
		slices.SortFunc(rows, func(a, b *record.Connection) int { return cmp.Compare(a.ID, b.ID) })
		t := render.NewText(w, s.theme, s.width)
		t.Start(s.Start)
		for _, r := range rows[max(len(rows)-max(f.height-3, 1), 0):] {
			if err := t.Connection(r); err != nil {
				return err
			}
		}
		return t.Flush()
	}
	h := dissect.Handler{Connection: func(r *record.Connection) error {
		if selected(r) {
			ended = append(ended, r.Clone())
			ended = ended[max(len(ended)-mostKept, 0):]
		}
		return s.status()
	}}
	return h, func() {
		slices.SortFunc(ended, func(a, b *record.Connection) int { return cmp.Compare(a.ID, b.ID) })
		for _, r := range ended {
			s.emit(r, func(r any) error { return s.text.Connection(r.(*record.Connection)) })
		}
	}
}
