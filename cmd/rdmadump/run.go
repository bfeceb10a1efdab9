package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/hugepages"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// input is where frames come from.
type input interface {
	capture.Source
	Progress() (read, total int64)
	Dropped() uint64
	Close() error
}

// runner shows one view of one input.
type runner struct {
	*settings
	stdout, stderr io.Writer
	shown          string       // the inputs, as they were named
	typed          string       // and as a shell takes them
	openErr        error        // of inputs that are left out
	tick           func() error // beside what every runner does now and then
	flush          func() error // when rdmadump fails
	live           bool
}

// otherMemory is what everything may take beside what the dissector keeps: above
// it, the garbage collector works harder.
const otherMemory = 100 << 20

// garbage is by how many percent the heap may grow before it is collected: what is
// live is little, and a collection for every few megabytes costs a tenth of the time.
const garbage = 400

// dissection is what a dissector is told by the flags; it makes the garbage
// collector keep to --memory as well.
func (s *settings) dissection() dissect.Options {
	debug.SetMemoryLimit(s.memory + otherMemory)
	ofPackets := s.view.fields == query.Packets
	return dissect.Options{
		Memory: s.memory, RPC: s.rpc && !ofPackets, Decode: s.decode && !ofPackets || s.ladder, Tree: s.decode && ofPackets,
		Unanswered: record.Time(s.unanswered),
	}
}

// only says what is looked at of packets.
func (s *settings) only(o *dissect.Options) {
	switch {
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

// run shows the view of a source, and works out how to exit.
func (r *runner) run(ctx context.Context, source input) error {
	s := newSink(r.settings, r.stdout, r.stderr, r.shown)
	s.typed, s.ctx = r.typed, ctx
	if !r.quiet {
		for _, note := range r.notes {
			fmt.Fprintf(r.stderr, "rdmadump: --jq: %s\n", note)
		}
	}
	if r.live {
		s.text.Live()
	}
	h, finish := r.view.open(s)
	h.Begin = s.begin
	p := newProgress(source, r.stderr, !r.quiet && terminalWidth(r.stdout) == 0)
	h.Tick = func() error {
		p.update()
		hugepages.Look(r.memory)
		if r.tick != nil {
			s.fail(r.tick())
		}
		if r.live {
			s.flush()
		}
		return s.status()
	}
	o := r.dissection()
	o.XIDs = r.xids
	r.only(&o)
	filtered := r.filter != nil || r.summed != nil
	o.Ahead = (filtered || !r.view.light) && r.count == 0 // of some records, the summary says how far it went for them
	if r.live {
		o.Live, o.Linger = true, liveLinger
	}
	d := dissect.New(h, o)
	box := boxOf(ctx)
	box.packet, box.flush = d.Number, func() error {
		err := s.w.Flush()
		if r.flush != nil {
			err = errors.Join(err, r.flush())
		}
		return err
	}
	summary, err := d.Run(ctx, source)
	p.finish()
	switch {
	case err == errEnough || err != nil && err == s.err:
		err = nil // s knows it
	case err != nil && ctx.Err() != nil:
		if err = nil; !r.live {
			err = errors.New("interrupted")
			summary.InputError = record.Some(err.Error())
		}
	}
	s.summary = summary
	if finish != nil {
		finish()
	}
	s.release()
	return r.finish(s, summary, err)
}

// finish writes the summary and works out the exit status; readErr is what ended
// reading before its end.
func (r *runner) finish(s *sink, summary *record.Summary, readErr error) error {
	switch {
	case s.jq != nil: // it is for the view's own records
	case s.json:
		s.record(summary)
	default:
		s.fail(s.text.Finish())
	}
	s.fail(s.w.Flush())
	if s.err != nil {
		return s.err
	}
	if !s.json && !s.quiet {
		render.NewText(r.stderr, render.NewTheme(r.stderr, coloured(s.color, r.stderr)), 0).Summary(summary)
		if s.shown != "" && s.view != nil && s.view.name != "overview" {
			fmt.Fprintf(r.stderr, "what was slow, and why: rdmadump overview %s\n", s.typed)
		}
	}
	if text := s.noMatch(); text != "" && !s.quiet {
		fmt.Fprintf(r.stderr, "rdmadump: %s\n", text)
	}
	if s.written == 0 && len(s.xids) > 0 && !s.quiet {
		fmt.Fprintf(r.stderr, "rdmadump: nothing with XID %v%s\n", s.xids, s.nearXIDs())
	} else if s.written == 0 && len(s.conns) > 0 && slices.Min(s.conns) >= summary.Connections && !s.quiet {
		fmt.Fprintf(r.stderr, "rdmadump: nothing of connection %v; the input has %d of them, counted from 0\n", s.conns, summary.Connections)
	}
	switch {
	case readErr != nil:
		return &status{exitBroken, fmt.Errorf("%w; what was read before is shown", readErr)}
	case summary.Packets > 0 && summary.UnknownLink == summary.Packets:
		return &status{exitUsage, errors.New("no frame is of a link type that rdmadump reads: Ethernet, Linux cooked, raw IP, ERF or InfiniBand")}
	case r.openErr != nil:
		return &status{code: exitUsage}
	case s.errors > 0:
		return &status{code: exitFound}
	}
	return nil
}

// progress draws how far reading has come, on standard error, when that is a
// terminal and the records go elsewhere.
type progress struct {
	bar    *progressbar.ProgressBar
	source input
	began  time.Time
	w      io.Writer
	total  int64
}

func newProgress(source input, w io.Writer, wanted bool) *progress {
	_, total := source.Progress()
	if !wanted || total == 0 || terminalWidth(w) == 0 {
		return &progress{}
	}
	return &progress{source: source, began: time.Now(), w: w, total: total}
}

// update draws, once reading has taken a second.
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

func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// terminalSize is that of w, 0 when w is no terminal.
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

func terminalWidth(w io.Writer) int {
	width, _ := terminalSize(w)
	return width
}

// coloured says whether to write colours to w, as --color has it.
func coloured(color string, w io.Writer) bool {
	switch color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && terminalWidth(w) > 0
}
