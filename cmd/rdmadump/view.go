package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/render"
)

// sink is where the records of a view go.
type sink struct {
	o       *options
	w       *bufio.Writer
	text    *render.Text
	packets *render.Packets
	buffer  []byte
	written int64
	errors  int64 // findings that are errors
	err     error // of writing
}

// view says which records a command shows, and how.
type view func(s *sink) dissect.Handler

func transactionView(s *sink) dissect.Handler {
	return dissect.Handler{Transaction: func(r *dissect.Transaction) {
		if s.o.wants(&r.Connection, &r.XID) {
			s.show(r, func() error { return s.text.Transaction(r) })
		}
	}}
}

func connectionView(s *sink) dissect.Handler {
	return dissect.Handler{Connection: func(r *dissect.Connection) {
		if s.o.wants(&r.ID, nil) {
			s.show(r, func() error { return s.text.Connection(r) })
		}
	}}
}

func findingView(s *sink) dissect.Handler {
	return dissect.Handler{Finding: func(r *dissect.Finding) {
		if s.o.wants(r.Connection, r.XID) {
			if r.Severity == "error" {
				s.errors++
			}
			s.show(r, func() error { return s.text.Finding(r) })
		}
	}}
}

func packetView(s *sink) dissect.Handler {
	return dissect.Handler{Packet: func(p *dissect.Packet) {
		conn := &p.Connection
		if p.Connection < 0 {
			conn = nil
		}
		if !s.o.wants(conn, p.XID()) || s.done() {
			return
		}
		s.written++
		if s.o.output == "json" {
			s.buffer = render.AppendPacketJSON(s.buffer[:0], p, s.o.tree)
			s.write(s.buffer)
			return
		}
		s.fail(s.packets.Packet(p))
	}}
}

// show writes a record that is not a packet.
func (s *sink) show(record any, text func() error) {
	if s.done() {
		return
	}
	s.written++
	if s.o.output == "json" {
		s.json(record)
		return
	}
	s.fail(text())
}

func (s *sink) json(record any) {
	var err error
	s.buffer, err = render.AppendJSON(s.buffer[:0], record)
	s.fail(err)
	s.write(s.buffer)
}

func (s *sink) write(b []byte) {
	_, err := s.w.Write(b)
	s.fail(err)
}

func (s *sink) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// done says that no more records are wanted.
func (s *sink) done() bool {
	return s.err != nil || s.o.count > 0 && s.written >= s.o.count
}

// view reads captures and shows their records.
func (o *options) view(cmd *cobra.Command, paths []string, v view) error {
	if len(paths) == 0 {
		return fmt.Errorf("no capture named: give a FILE, or - for standard input; see %s --help", cmd.CommandPath())
	}
	source, openErr := capture.OpenAll(paths)
	if source == nil {
		return openErr
	}
	defer source.Close()
	if openErr != nil {
		fmt.Fprintf(o.stderr, "rdmadump: %v; the other files are read\n", openErr)
	}
	s := &sink{o: o, w: bufio.NewWriterSize(o.stdout, 1<<16)}
	width, theme := terminalWidth(o.stdout), render.NewTheme(o.stdout, o.coloured(o.stdout))
	s.text = render.NewText(s.w, theme, width)
	s.packets = render.NewPackets(s.w, theme, width)
	s.packets.Tree, s.packets.Bytes = o.tree, o.bytes

	d := dissect.New(v(s), dissect.Options{})
	readErr := o.read(cmd.Context(), d, source, s)
	summary := d.Summary()
	if !s.done() {
		summary = d.Finish()
	}
	summary.Dropped = source.Dropped()
	if readErr != nil {
		message := readErr.Error()
		summary.Broken = &message
	}
	return o.finish(s, summary, openErr, readErr)
}

// read feeds the dissector until the source ends, breaks, or nothing more is
// wanted.
func (o *options) read(ctx context.Context, d *dissect.Dissector, source *capture.Merged, s *sink) error {
	p := o.progress(source)
	defer p.finish()
	var f capture.Frame
	for n := 0; !s.done(); n++ {
		if n&0xfff == 0 {
			if ctx.Err() != nil {
				return fmt.Errorf("interrupted after %d packets", n)
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
			s.text.Start(dissect.Time(f.Time))
			s.packets.Start(dissect.Time(f.Time))
		}
		d.Frame(&f)
	}
	return nil
}

// finish writes the summary and works out the exit status.
func (o *options) finish(s *sink, summary *dissect.Summary, openErr, readErr error) error {
	if o.output == "json" {
		s.json(summary)
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
	source *capture.Merged
	began  time.Time
	o      *options
	total  int64
}

func (o *options) progress(source *capture.Merged) *progress {
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
			progressbar.OptionSetWriter(p.o.stderr), progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetDescription("reading"), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth())
	}
	read, _ := p.source.Progress()
	p.bar.Set64(read)
}

func (p *progress) finish() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
