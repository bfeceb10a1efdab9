package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// input is a source of frames.
type input interface {
	capture.Source
	Progress() (read, total int64)
	Dropped() uint64
	Close() error
}

// names are the names of the captures of a run.
type names struct {
	shown string // for messages
	typed string // quoted for a shell
}

// runner shows one view of one input.
type runner struct {
	*settings
	names
	stdout, stderr io.Writer
	openErr        error        // of captures that could not be opened; the others are read
	tick           func() error // called now and then; nil for none
	flush          func() error // called after a panic; nil for none
	live           bool
	refresh        *refresh       // of a live view; nil if its records are shown as they come
	joined         *points.Source // nil if there is one capture point
	lines          *lines         // records in place of a capture; nil for a capture
}

// otherMemory is the number of bytes that the program may use in addition to the state of
// the dissector before the garbage collector works harder.
const otherMemory = 100 << 20

// garbage is the percentage by which the heap may grow before it is collected. Live state
// is small, and a collection every few megabytes would take a tenth of the time.
const garbage = 400

// dissection returns the options of the dissector. It also makes the garbage collector
// observe --memory.
func (s *settings) dissection() dissect.Options {
	if ownProcess { // Tests run several commands at once in one process.
		debug.SetMemoryLimit(int64(s.memory) + otherMemory)
	}
	ofPackets := s.view.fields == query.Packets
	return dissect.Options{
		OtherOperations: s.view.name == "overview",
		Memory:          int64(s.memory), Files: s.files, RPC: s.rpc && !ofPackets, Decode: s.decode && !ofPackets || s.ladder, Tree: s.decode && ofPackets,
		Unanswered: record.Time(s.unanswered), Ports: s.ports, Points: s.atPoints,
	}
}

// only sets which parts of packets have to be described.
func (s *settings) only(o *dissect.Options) {
	switch {
	case s.lost:
		o.Only = render.OnlyLine
	case s.view.fields != query.Packets || s.tree:
		return
	case s.json:
		o.Only = render.OnlyJSON
	case s.columns != nil:
		o.Only = s.columns.Only()
	case len(s.look.columns) > 0:
		o.Only = render.OnlyRow
	default:
		o.Only = render.OnlyLine
	}
	if s.filter != nil {
		for _, path := range s.filter.Paths() {
			o.Only |= header.Where(path)
		}
	}
	if len(s.conns) > 0 || len(s.xids) > 0 {
		o.Only |= header.Where("connection") | header.Where("xid")
	}
}

// run shows the view of a source. Its error determines the exit status.
func (r *runner) run(ctx context.Context, source input) error {
	s := newSink(r.settings, r.stdout, r.stderr, r.names)
	s.ctx, s.joined = ctx, r.joined
	if !r.quiet {
		for _, note := range r.notes {
			say(r.stderr, "--jq: %s", note)
		}
	}
	anew := newRefresh(r, s)
	open := r.view.open
	switch {
	case anew == nil:
	case r.view == ratesView:
		open = liveRates
	case anew.screen && r.view.name == "connections" && len(r.xids) == 0 && !r.timeline:
		open = liveConnections
	}
	h, finish := open(s)
	if anew != nil && anew.screen && s.redraw == nil {
		anew = nil
	}
	if anew != nil {
		h = anew.wrap(h)
		r.refresh = anew
		defer anew.end()
	}
	if r.live && (anew == nil || !anew.screen) {
		s.text.Live()
	}
	h.Begin = s.begin
	if r.lines != nil {
		if err := r.lines.check(r.settings, &h); err != nil {
			return err
		}
	}
	p := newProgress(source, r.stderr, !r.quiet && terminalWidth(r.stdout) == 0)
	h.Tick = func() error {
		p.update()
		if r.tick != nil {
			s.fail(r.tick())
		}
		if r.refresh != nil && r.refresh.now != nil {
			s.fail(r.refresh.tick())
		}
		if r.live && !(r.refresh != nil && r.refresh.screen) {
			s.flush()
		}
		return s.status()
	}
	read := r.dissect
	if r.lines != nil {
		read = r.replay
	}
	summary, err := read(ctx, source, s, h)
	p.finish()
	switch {
	case err == errEnough || err != nil && err == s.err:
		err = nil // The sink has it.
	case err != nil && ctx.Err() != nil:
		if err = nil; !r.live {
			err = errors.New("interrupted")
			if summary != nil {
				summary.InputError = record.Some(err.Error())
			}
		}
	case err != nil && summary != nil && !summary.InputError.Known():
		summary.InputError = record.Some(describe(err))
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
func (r *runner) dissect(ctx context.Context, source input, s *sink, h dissect.Handler) (*record.Summary, error) {
	o := r.dissection()
	o.XIDs = r.xids
	o.Files = r.showsFiles(s.width)
	r.only(&o)
	filtered := r.filter != nil || r.summed != nil
	o.Ahead = (filtered || !r.view.light) && r.count == 0 // With -c, the summary counts only the packets that were needed.
	if r.live {
		o.Live, o.Linger = true, liveLinger
	}
	d := dissect.New(h, o)
	if r.refresh != nil {
		r.refresh.now, r.refresh.open, r.refresh.summarize = d.Now, d.Open, d.Summary
	}
	box := boxOf(ctx)
	box.packet, box.flush = d.Number, func() error {
		err := s.w.Flush()
		if r.flush != nil {
			err = errors.Join(err, r.flush())
		}
		return err
	}
	return d.Run(ctx, source)
}

// replay passes records that were read back to the handlers of a view.
func (r *runner) replay(ctx context.Context, _ input, s *sink, h dissect.Handler) (*record.Summary, error) {
	boxOf(ctx).flush = s.w.Flush
	s.hint = r.lines.partial(&h)
	return r.lines.read(ctx, h)
}

// finish writes the summary and returns the error that determines the exit status. readErr
// is the error that ended reading early, or nil.
func (r *runner) finish(s *sink, summary *record.Summary, readErr error) error {
	switch {
	case s.jq != nil: // The program is for the view's own records.
	case summary == nil && s.json: // The input was records without one.
	case s.json:
		s.record(summary)
	default:
		s.fail(s.text.Finish())
	}
	s.fail(s.w.Flush())
	if s.err != nil {
		return s.err
	}
	if summary == nil {
		summary = &record.Summary{}
	} else if !s.json && !s.quiet {
		shown := *summary
		if s.found != nil {
			shown.Findings = s.found // without those that --ignore, --baseline or a filter left out
		}
		render.NewText(r.stderr, render.NewTheme(r.stderr, colored(s.color, r.stderr)), 0).Summary(&shown)
		switch {
		case s.shown == "" || s.view == nil || s.view.name == "overview" || r.lines != nil:
		case hasRPCs(summary):
			fmt.Fprintf(r.stderr, "to see which RPCs were slow and why: rdmadump overview %s\n", s.typed)
		case summary.RDMA+summary.RPC == 0 && s.view.sumsRPCs():
			fmt.Fprintf(r.stderr, "the capture contains neither RDMA nor RPC: rdmadump packets %s lists what it has\n", s.typed)
		case summary.RDMA > 0 && s.view.sumsRPCs():
			fmt.Fprintf(r.stderr, "the capture contains RDMA but no RPC: rdmadump overview %s shows what it carries, rdmadump connections and packets list it\n", s.typed)
		}
	}
	if s.unpaired > 0 && !s.quiet {
		say(r.stderr, "without %s of --conn from before the two directions were known to belong together; bth.dest_qpn finds them", number(s.unpaired, "packet"))
	}
	if s.hint != "" && !s.quiet {
		say(r.stderr, "%s", s.hint)
	}
	if text := s.noMatch(); text != "" && !s.quiet {
		say(r.stderr, "%s", text)
	}
	if text := s.afterEnd(summary); text != "" && !s.quiet {
		say(r.stderr, "%s", text)
	} else if s.written == 0 && len(s.xids) > 0 && !s.quiet {
		say(r.stderr, "%s", s.noXID())
	} else if s.written == 0 && len(s.conns) > 0 && slices.Min(s.conns) >= summary.Connections && !s.quiet {
		say(r.stderr, "%s", noConnection(s.conns, summary.Connections))
	}
	switch {
	case readErr != nil:
		return &status{exitBroken, damaged(readErr)}
	case summary.Packets > 0 && summary.UnknownLink == summary.Packets:
		return &status{exitUsage, errors.New("no frame has a supported link type (Ethernet, Linux cooked, raw IP, ERF or InfiniBand)")}
	case r.openErr != nil:
		return &status{code: exitUsage}
	case s.found != nil && summary.RDMA+summary.RPC == 0:
		return &status{exitUsage, errors.New("the capture contains neither RDMA nor RPC, so nothing was checked")}
	case s.errors > 0:
		return &status{code: exitFound}
	}
	return nil
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

// afterEnd returns the message for a time of --from that is after the last packet. It returns
// nothing for other times.
func (s *sink) afterEnd(summary *record.Summary) string {
	first, known := summary.First.Get()
	last := summary.Last.Or(first)
	if !s.from.set || !known || s.count > 0 || last >= s.since {
		return ""
	}
	return fmt.Sprintf("no packet is at or after --from; the capture ends at %s, after %.3fs", last, float64(last.Sub(first))/1e9)
}

// damaged returns the error for inputs that could not be read to their ends.
func damaged(err error) error {
	return fmt.Errorf("%s; results cover the packets before that", describe(err))
}

// describe returns the message for an error of one input, or of several.
func describe(err error) string {
	if several, is := err.(interface{ Unwrap() []error }); is {
		var texts []string
		for _, one := range several.Unwrap() {
			texts = append(texts, describe(one))
		}
		return strings.Join(texts, "; ")
	}
	broken := (*capture.BrokenError)(nil)
	if !errors.As(err, &broken) {
		return err.Error()
	}
	what, reason := "cannot be read after", broken.Err.Error()
	if errors.Is(broken.Err, io.ErrUnexpectedEOF) {
		what, reason = "is truncated at", strings.TrimSuffix(reason, ": "+io.ErrUnexpectedEOF.Error())
	}
	return fmt.Sprintf("%s %s byte %d, after %s (%s)", broken.Name, what, broken.Offset, number(broken.Frames, "packet"), reason)
}

// number returns a number with its noun, such as "1 packet" or "2 packets".
func number[T int | int64](n T, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// noConnection returns the message for connections that a capture with n connections does
// not have.
func noConnection(ids []int, n int) string {
	var words []string
	for _, id := range ids {
		words = append(words, fmt.Sprint(id))
	}
	has := fmt.Sprintf("the capture has %d connections, numbers 0 to %d", n, n-1)
	switch n {
	case 0:
		has = "the capture has no connections"
	case 1:
		has = "the capture has one connection, number 0"
	}
	return fmt.Sprintf("no connection %s (%s)", list(words, "or"), has)
}

// progress draws a progress bar on standard error, if that is a terminal and the records
// go elsewhere.
type progress struct {
	bar    *progressbar.ProgressBar
	source input
	began  time.Time
	w      io.Writer
	total  int64
}

// newProgress returns the progress of a source; it draws nothing if it is not wanted, or if there
// is no source.
func newProgress(source input, w io.Writer, wanted bool) *progress {
	if source == nil {
		return &progress{}
	}
	_, total := source.Progress()
	if !wanted || total == 0 || terminalWidth(w) == 0 {
		return &progress{}
	}
	return &progress{source: source, began: time.Now(), w: w, total: total}
}

// update draws the progress bar if reading has taken a second.
func (p *progress) update() {
	if p.source == nil || time.Since(p.began) < time.Second {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("reading"),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(false))
	}
	read, _ := p.source.Progress()
	p.bar.Set64(read)
}

// finish removes the progress bar.
func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// terminalSize returns the width and height of w in columns and lines, or 0 if w is not a
// terminal.
func terminalSize(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80, 24
	}
	return width, height
}

// terminalWidth returns the width of w in columns, or 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	width, _ := terminalSize(w)
	return width
}

// colored reports whether to write colors to w, according to --color.
func colored(color string, w io.Writer) bool {
	switch color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && terminalWidth(w) > 0
}
