// Package show runs a view: it passes the records of an input through the filter and the order that the flags ask for, and
// writes them to standard output.
package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/render"
)

// Runner shows one view of one input.
type Runner struct {
	*flags.Settings
	input.Names
	Stdout, Stderr io.Writer
	openErr        error        // of captures that could not be opened; the others are read
	Tick           func() error // called now and then; nil for none
	Flush          func() error // called after a panic; nil for none
	Live           bool
	state          State          // of the run
	refresh        *refresh       // of a live view; nil if its records are shown as they come
	joined         *points.Source // nil if there is one capture point
	lines          *input.Lines   // records in place of a capture; nil for a capture
	Also           []Recipient    // they get the records, too
}

// State is what is known while records come.
type State = interface {
	Summary() *record.Summary            // so far
	Open(visit func(*record.Connection)) // calls visit with the record so far of each open connection
}

// Recipient gets the records of a run, in addition to the view. It does not write to standard output.
type Recipient interface {
	// Handler returns what gets the records.
	Handler() dissect.Handler
	// Tick is called now and then, with the state of the run.
	Tick(State) error
	// End is called after the last record.
	End(*record.Summary) error
}

// also returns a handler that hands records to the other recipients, too.
func (r *Runner) also(h dissect.Handler) dissect.Handler {
	for _, recipient := range r.Also {
		o := recipient.Handler()
		h.Begin = both(h.Begin, o.Begin)
		h.Transaction, h.Connection = both(h.Transaction, o.Transaction), both(h.Connection, o.Connection)
		h.Finding, h.Operation, h.Packet = both(h.Finding, o.Finding), both(h.Operation, o.Operation), both(h.Packet, o.Packet)
		h.Signal, h.Task = both(h.Signal, o.Signal), both(h.Task, o.Task)
	}
	return h
}

// both returns a function that calls two functions, each of which may be nil.
func both[R any](a, b func(R) error) func(R) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(r R) error { return cmp.Or(b(r), a(r)) }
}

// Run shows the view of a source. Its error determines the exit status.
func (r *Runner) Run(ctx context.Context, source input.Source) error {
	s := newSink(r.Settings, r.Stdout, r.Names)
	s.ctx, s.joined = ctx, r.joined
	if !r.Live {
		s.interrupted = command.Broken(errors.New("interrupted"))
	}
	if !r.Quiet {
		for _, note := range r.Notes {
			command.Say(r.Stderr, "--jq: %s", note)
		}
	}
	anew := newRefresh(r, s)
	opens := open
	switch {
	case anew == nil:
	case r.View == flags.RatesView:
		opens = liveRates
	case anew.screen && r.View.Name == "connections" && len(r.XIDs) == 0 && !r.Timeline:
		opens = liveConnections
	}
	if !r.Live {
		s.byNumber()
	}
	h, finish := opens(s)
	if anew != nil && anew.screen && s.redraw == nil {
		anew = nil
	}
	if anew != nil {
		h = anew.wrap(h)
		r.refresh = anew
		defer anew.end()
	}
	if r.Live && (anew == nil || !anew.screen) {
		s.text.Live()
	}
	h.Begin = both(h.Begin, s.begin) // s.begin comes first.
	h = r.also(h)
	if r.lines != nil {
		if err := r.lines.Check(r.Settings, &h); err != nil {
			return err
		}
	}
	p := input.NewProgress(source, r.Stderr, !r.Quiet && command.TerminalWidth(r.Stdout) == 0)
	h.Tick = func() error {
		p.Update()
		if r.Tick != nil {
			if err := r.Tick(); err != nil { // packets cannot be stored: as if the input could not be read
				return err
			}
		}
		if r.refresh != nil && r.refresh.now != nil {
			s.fail(r.refresh.tick())
		}
		for _, o := range r.Also {
			s.fail(o.Tick(r.state))
		}
		if r.Live && !(r.refresh != nil && r.refresh.screen) {
			s.flush()
		}
		return s.status()
	}
	read := r.dissect
	if r.lines != nil {
		read = r.replay
	}
	summary, err := read(ctx, source, s, h)
	p.Finish()
	if refused := (*input.BeginError)(nil); errors.As(err, &refused) {
		return refused
	}
	s.stopped = err == errEnough
	switch {
	case err == errEnough || err != nil && err == s.err:
		err = nil // The sink has it.
	case err != nil && ctx.Err() != nil:
		if err = nil; !r.Live {
			err = errors.New("interrupted")
			if summary != nil {
				summary.InputError = record.Some(err.Error())
			}
		}
	case err != nil && summary != nil && !summary.InputError.Known():
		summary.InputError = record.Some(command.Describe(err))
	}
	for _, o := range r.Also {
		if failed := o.End(summary); err == nil {
			err = failed
		}
	}
	s.summary = summary
	if r.refresh != nil {
		r.refresh.finish(summary)
	}
	if finish != nil {
		finish()
	}
	s.release()
	return r.finish(s, summary, err)
}

// dissect passes the records of a capture to the handlers of a view.
func (r *Runner) dissect(ctx context.Context, source input.Source, s *sink, h dissect.Handler) (*record.Summary, error) {
	o := r.Dissection()
	o.XIDs = r.XIDs
	o.Why, _ = r.Why.In(r.AtPoints) // packets says what is wrong with it
	o.Files = r.ShowsFiles(s.width) || len(r.Also) > 0
	if len(r.Also) == 0 {
		o.Unused = r.Unused
	}
	r.Only(&o)
	filtered := r.Filter != nil || r.Summed != nil
	o.Ahead = (filtered || !r.View.Light) && r.Count == 0 // With -c, the summary counts only the packets that were needed.
	if r.Live {
		o.Live, o.Linger = true, LiveLinger
	}
	d := dissect.New(r.Naming(h), o)
	r.state = d
	if r.refresh != nil {
		r.refresh.now, r.refresh.open, r.refresh.summarize = d.Now, d.Open, d.Summary
	}
	box := command.BoxOf(ctx)
	box.Packet, box.Flush = d.Number, func() error {
		err := s.w.Flush()
		if r.Flush != nil {
			err = errors.Join(err, r.Flush())
		}
		return err
	}
	return d.Run(ctx, source)
}

// replay passes records that were read back to the handlers of a view.
func (r *Runner) replay(ctx context.Context, _ input.Source, s *sink, h dissect.Handler) (*record.Summary, error) {
	command.BoxOf(ctx).Flush = s.w.Flush
	s.hint = r.lines.Partial(&h)
	return r.lines.Read(ctx, r.Naming(h))
}

// finish writes the summary and returns the error that determines the exit status. readErr
// is the error that ended reading early, or nil.
func (r *Runner) finish(s *sink, summary *record.Summary, readErr error) error {
	switch {
	case s.JQ != nil: // The program is for the view's own records.
	case summary == nil && s.JSON: // The input was records without one.
	case s.JSON:
		s.count(summary)
		s.record(summary)
	default:
		s.fail(s.text.Finish())
		s.follow()
	}
	s.fail(s.w.Flush())
	if s.err != nil {
		return s.err
	}
	if summary == nil {
		summary = &record.Summary{}
	} else if !s.JSON && !s.Quiet {
		s.count(summary)
		shown := *summary
		if s.found != nil {
			shown.Findings = nil // The view counts them.
		}
		text := render.NewText(r.Stderr, render.NewTheme(s.Look.Colored(r.Stderr)), cmp.Or(s.width, command.TerminalWidth(r.Stderr)))
		text.Selected(s.selection(summary))
		var hints []string
		if late := s.text.Late(); len(late) > 0 {
			hints = append(hints, "hidden, but not the same in all rows: "+strings.Join(late, ", ")+" (--wide)")
		}
		if s.nothing() == nil && s.outside(summary) == "" {
			hints = append(hints, r.next(s, summary)...)
		}
		text.Summary(&shown, command.TerminalWidth(r.Stdout) == 0 || s.View.Name == "overview", len(input.PointRecords(s.joined)), hints...)
	}
	if s.unpaired > 0 && !s.Quiet {
		command.Say(r.Stderr, "without %s of --conn from before the two directions were known to belong together; bth.dest_qpn finds them", record.Plural(s.unpaired, "packet"))
	}
	if s.hint != "" && !s.Quiet {
		command.Say(r.Stderr, "%s", s.hint)
	}
	if text := s.noMatch(); text != "" && !s.Quiet {
		command.Say(r.Stderr, "%s", text)
	}
	if text := s.outside(summary); text != "" && !s.Quiet {
		command.Say(r.Stderr, "%s", text)
	} else if err := s.nothing(); err != nil && readErr == nil && r.openErr == nil {
		return err
	}
	return r.status(s, summary, readErr)
}

// nothing returns the error that --xid or --conn names something that the capture does not have. It returns nil for an XID if there
// was something, or if other flags select, too.
func (s *sink) nothing() error {
	if err := s.MissingConnection(s.summary); err != nil {
		return err
	}
	if s.written > 0 || s.Filter != nil || s.Summed != nil || s.found != nil || s.From.Set || s.To.Set || len(s.XIDs) == 0 {
		return nil
	}
	return errors.New(s.noXID())
}

// selecting reports whether flags select records of the view one by one.
func (s *sink) selecting() bool {
	return s.View != nil && s.written >= 0 && (s.Filter != nil || len(s.XIDs) > 0 || len(s.Conns) > 0 || s.From.Set || s.To.Set || s.Order.Top > 0) && s.Summed == nil && s.View.Name != "overview"
}

// count notes in the summary how many records the flags select.
func (s *sink) count(summary *record.Summary) {
	summary.Selected = record.SomeIf(s.written, s.selecting())
}

// noRows says why a view has no rows, of those that a capture may have none for.
var noRows = map[string]string{"files": "no captured RPC names a file", "tasks": "no captured request was put off or repeated"}

// selection says how many records are shown of how many, if flags select some, or why there are none. It returns nothing if they select all.
func (s *sink) selection(summary *record.Summary) string {
	total, noun := int64(-1), "record"
	if empty := noRows[s.View.Name]; empty != "" && s.written == 0 && !s.selecting() {
		return empty
	}
	switch s.View.Name {
	case "rdma":
		total, noun = s.offered, "RDMA operation"
	case "tasks":
		total, noun = s.offered, "task"
	case "transactions":
		total, noun = 0, "RPC"
		for _, n := range summary.Transactions {
			total += n
		}
		if summary.Requests > 0 && total > summary.Requests {
			noun = "attempt"
		}
	case "packets":
		total, noun = summary.Packets, "packet"
	case "connections":
		total, noun = int64(summary.Connections), "connection"
	}
	switch {
	case !s.selecting() && !s.stopped, s.Timeline: // A connection has several records with --timeline.
		return ""
	case s.stopped: // How many more there are is not known.
		return "the first " + record.Plural(s.written, noun)
	case total < s.written:
		return record.Plural(s.written, noun)
	}
	return fmt.Sprintf("%d of %s", s.written, record.Plural(total, noun))
}

// next returns what shows more of a capture without RPCs than the view does.
func (r *Runner) next(s *sink, summary *record.Summary) []string {
	switch {
	case s.Shown == "" || s.View == nil || !s.View.SumsRPCs() || s.View.Name == "overview" || r.lines != nil || hasRPCs(summary):
	case summary.RDMA+summary.RPC == 0:
		return []string{"neither RDMA nor RPC" + contents(summary) + ": rdmadump packets " + s.Typed}
	case summary.RDMA > 0:
		return []string{"more: rdmadump overview " + s.Typed}
	}
	return nil
}

// status returns the exit status, as an error; it is nil if all went well.
func (r *Runner) status(s *sink, summary *record.Summary, readErr error) error {
	switch {
	case readErr != nil:
		return command.Broken(command.Damaged(readErr))
	case summary.Packets > 0 && summary.UnknownLink == summary.Packets:
		return errors.New("no frame has a supported link type (Ethernet, Linux cooked, raw IP, ERF or InfiniBand)")
	case r.openErr != nil:
		return &command.Status{Code: command.ExitUsage}
	case s.found != nil && summary.RDMA+summary.RPC == 0:
		return errors.New("the capture contains neither RDMA nor RPC" + contents(summary) + ", so nothing was checked")
	case s.errors > 0:
		return &command.Status{Code: command.ExitFound}
	}
	return nil
}

// contents returns what a capture has instead of RDMA and RPC, as the end of a sentence.
func contents(s *record.Summary) string {
	if list := analyze.Contents(s); list != "" {
		return " that rdmadump knows (" + list + ")"
	}
	return ""
}

// hasRPCs reports whether the capture contains RPCs.
func hasRPCs(s *record.Summary) bool {
	for _, n := range s.Transactions {
		if n > 0 {
			return true
		}
	}
	return false
}

// outside returns the message that the whole capture is before or after the times of --from and --to. It returns nothing if it is not.
func (s *sink) outside(summary *record.Summary) string {
	first, known := summary.First.Get()
	last := summary.Last.Or(first)
	if !known || s.Count > 0 || s.Overlaps(first, last) {
		return ""
	}
	return fmt.Sprintf("no packet is in the time of --from and --to; the capture is from %s to %s, %s", first, last, render.Duration(last.Sub(first)))
}
