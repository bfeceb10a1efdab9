package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// view is what a command shows: which fields its records have, and who takes
// the records as they come. Finish, if any, writes what comes at the end.
type view struct {
	fields query.Fields
	sort   string // what --top sorts by when --sort does not say
	order  string // what to sort by otherwise, once all is read; empty for as they come
	open   func(s *sink) (h dissect.Handler, finish func())
}

// transactionView is a row a transaction, or with --xid its ladder.
var transactionView = view{query.Transactions, "-latency_ns", "", func(s *sink) (dissect.Handler, func()) {
	return dissect.Handler{Transaction: func(r *record.Transaction) {
		if s.asked(r) {
			s.show(r, func(r any) error {
				if len(s.o.wantXID) > 0 {
					return render.Ladder(s.w, s.theme, s.width, r.(*record.Transaction))
				}
				return s.text.Transaction(r.(*record.Transaction))
			})
		}
	}}, nil
}}

// connectionView is a row a connection, or with --timeline its charts.
var connectionView = view{query.Connections, "-packets", "id", func(s *sink) (dissect.Handler, func()) {
	lines := map[int]*timelines{}
	h := dissect.Handler{Connection: func(r *record.Connection) {
		t := lines[r.ID]
		delete(lines, r.ID)
		if !s.wants(record.Some(r.ID), record.Opt[record.Hex32]{}) || !s.o.overlaps(r.First, r.Last) {
			return
		}
		s.show(r, func(r any) error {
			if s.o.timeline {
				return render.ConnectionDetail(s.w, s.theme, r.(*record.Connection), s.o.start)
			}
			return s.text.Connection(r.(*record.Connection))
		})
		if s.o.timeline && t != nil {
			s.timelines(t, r)
		}
	}}
	if s.o.timeline {
		h.Transaction = func(r *record.Transaction) {
			if !s.wants(record.Some(r.Connection), record.Opt[record.Hex32]{}) || !s.within(r.Start()) {
				return
			}
			t := lines[r.Connection]
			if t == nil {
				t = &timelines{}
				lines[r.Connection] = t
			}
			t.add(r)
		}
	}
	return h, nil
}}

// timelines is what a connection's transactions are collected in.
type timelines struct {
	forward, backward analyze.CreditTimeline
	handles           analyze.HandleTimeline
}

func (t *timelines) add(r *record.Transaction) {
	if r.Direction == record.Backward {
		t.backward.Add(r)
	} else {
		t.forward.Add(r)
	}
	t.handles.Add(r)
}

// timelines draws the charts of a connection.
func (s *sink) timelines(t *timelines, c *record.Connection) {
	forward, backward := t.forward.Finish(c.ID, record.Forward, c.Last), t.backward.Finish(c.ID, record.Backward, c.Last)
	handles := t.handles.Finish(c.ID, c.Last)
	height := max(s.height/3, 4)
	for _, credits := range []*analyze.Credits{forward, backward} {
		if len(credits.Points) == 0 && credits == backward && s.o.output != "json" {
			continue
		}
		s.emit(credits, func(any) error {
			return render.CreditChart(s.w, s.theme, s.width, height, credits, s.o.start)
		})
	}
	s.emit(handles, func(any) error {
		return render.HandleChart(s.w, s.theme, s.width, height*2, handles, s.o.start)
	})
}

// findingView is a line a finding.
var findingView = view{query.Findings, "time", "", func(s *sink) (dissect.Handler, func()) {
	return dissect.Handler{Finding: func(r *record.Finding) {
		if at, known := r.Time.Get(); !s.wants(r.Connection, r.XID) || known && !s.within(at) {
			return
		}
		if s.show(r, func(r any) error { return s.text.Finding(r.(*record.Finding)) }) && r.Severity == record.Error {
			s.errors++
		}
	}}, nil
}}

// packetView is a line a packet, or its tree, or its bytes.
var packetView = view{query.Packets, "number", "", func(s *sink) (dissect.Handler, func()) {
	return dissect.Handler{Packet: func(p *record.Packet) {
		if s.done() {
			return
		}
		if len(s.o.wantXID)+len(s.o.conns) > 0 && !s.wants(p.Connection, p.XID) || !s.within(p.Time) {
			return
		}
		s.show(p, func(r any) error { return s.packets.Packet(r.(*record.Packet)) })
	}}, nil
}}

// statsView is a table of sums, at the end.
var statsView = view{query.Transactions, "", "", func(s *sink) (dissect.Handler, func()) {
	table := analyze.NewTable(s.o.by)
	h := dissect.Handler{Transaction: func(r *record.Transaction) {
		if s.asked(r) && s.matches(r) {
			table.Add(r)
		}
	}}
	return h, func() {
		rows := table.Rows()
		if s.o.top > 0 {
			rows = rows[:min(s.o.top, len(rows))]
		}
		if s.o.output != "json" {
			s.fail(render.Stats(s.w, s.theme, s.width, rows))
			return
		}
		for _, r := range rows {
			s.emit(r, nil)
		}
	}
}}

// input is where frames come from.
type input interface {
	capture.Source
	Progress() (read, total int64)
	Dropped() uint64
	Close() error
}

// view reads captures and shows their records.
func (o *options) view(cmd *cobra.Command, paths []string, v view) error {
	if len(paths) == 0 {
		return fmt.Errorf("no capture named: give a FILE, or - for standard input; see %s --help", cmd.CommandPath())
	}
	if o.sort == "" && o.top == 0 && o.count == 0 && !o.timeline {
		o.sort = v.order
	}
	s, err := newSink(o, v)
	if err != nil {
		return err
	}
	source, openErr := capture.OpenAll(paths)
	if source == nil {
		return openErr
	}
	defer source.Close()
	if openErr != nil {
		fmt.Fprintf(o.stderr, "rdmadump: %v; the other files are read\n", openErr)
	}
	o.shown = strings.Join(paths, " ")
	h, finish := v.open(s)
	d := dissect.New(h, dissect.Options{RPC: o.readsRPC()})
	readErr := o.read(cmd.Context(), d, source, s, nil)
	if readErr == nil && cmd.Context().Err() != nil {
		readErr = errors.New("interrupted")
	}
	return o.end(d, s, source, finish, openErr, readErr)
}

// end shows what is left when reading is over.
func (o *options) end(d *dissect.Dissector, s *sink, source input, finish func(), openErr, readErr error) error {
	summary := d.Summary()
	if !s.done() {
		summary = d.Finish()
	}
	summary.Dropped = source.Dropped()
	if readErr != nil {
		summary.Broken = record.Some(readErr.Error())
	}
	s.summary = summary
	if finish != nil {
		finish()
	}
	s.release()
	return o.finish(s, summary, openErr, readErr)
}

// read feeds the dissector until the source ends, breaks, or nothing more is
// wanted. Each, if any, sees every frame before that and may end it all.
func (o *options) read(ctx context.Context, d *dissect.Dissector, source input, s *sink, each func(*capture.Frame) (more bool, err error)) error {
	p := o.progress(source)
	defer p.finish()
	var f capture.Frame
	for n := 0; !s.done(); n++ {
		if n&0xfff == 0 {
			if ctx.Err() != nil {
				return nil
			}
			p.update()
		}
		if err := source.Next(&f); err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		if n == 0 {
			s.begin(record.Time(f.Time))
		}
		more := true
		if each != nil {
			var err error
			if more, err = each(&f); err != nil {
				return err
			}
		}
		d.Frame(&f)
		if !more {
			return nil
		}
	}
	return nil
}

// finish writes the summary and works out the exit status.
func (o *options) finish(s *sink, summary *record.Summary, openErr, readErr error) error {
	if o.output == "json" {
		s.record(summary)
	} else {
		s.fail(s.text.Flush())
	}
	s.fail(s.w.Flush())
	if s.err != nil {
		return s.err
	}
	if o.output != "json" && !o.quiet {
		render.NewText(o.stderr, render.NewTheme(o.stderr, o.coloured(o.stderr)), 0).Summary(summary)
	}
	if s.written == 0 && len(o.xids) > 0 && !o.quiet {
		fmt.Fprintf(o.stderr, "rdmadump: nothing with XID %v\n", o.wantXID)
	}
	switch {
	case readErr != nil:
		return &status{exitBroken, fmt.Errorf("%w; what was read before is shown", readErr)}
	case summary.Packets > 0 && summary.UnknownLink == summary.Packets:
		return &status{exitUsage, errors.New("no frame is of a link type that rdmadump reads: Ethernet, Linux cooked, raw IP, ERF or InfiniBand")}
	case openErr != nil:
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
	o      *options
	total  int64
}

func (o *options) progress(source input) *progress {
	_, total := source.Progress()
	if o.quiet || total == 0 || terminalWidth(o.stderr) == 0 || terminalWidth(o.stdout) > 0 {
		return &progress{}
	}
	return &progress{source: source, began: time.Now(), o: o, total: total}
}

// update draws, once reading has taken a second.
func (p *progress) update() {
	if p.source == nil || time.Since(p.began) < time.Second {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(p.total,
			progressbar.OptionSetWriter(p.o.stderr), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("reading"),
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
