package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/export"
	"github.com/rdmadump/rdmadump/query"
)

// exporter writes one kind of file.
type exporter struct {
	to, what string
	fields   query.Fields // that -Y may ask for
	run      func(*exportRun) (report string, err error)
}

var exporters = []exporter{
	{"rpc-tcp", "the RPCs as if TCP had carried them, for tools that read NFS over TCP", query.Transactions, exportRPCTCP},
	{"pcapng", "the packets, each with a comment that says what it is", query.Packets, exportPackets},
}

// exportRun is one export.
type exportRun struct {
	*settings
	times
	ctx    context.Context
	stderr io.Writer
	source input
	out    io.Writer
	folder string // where files that wait may stand; empty for the system's
	err    error  // of reading: what was read before is written
}

// newExport hands a capture over to other tools.
func newExport(stdout, stderr io.Writer) *cobra.Command {
	f := new(flags)
	var to, path string
	cmd := &cobra.Command{
		Use: "export --to KIND FILE... -w OUT", Short: "Hand a capture over to other tools",
		Long: `export writes what a capture holds in a form that other tools read. KIND is

  rpc-tcp   a pcapng file with the same RPCs as if TCP had carried them: record
            marking, the same addresses, times and XIDs, server port 2049, both
            directions. Wireshark and every tool that reads NFS over TCP open it.
  pcapng    the packets as they are, each with a comment that says what it is,
            such as "XID 0x4cc9dbf7, Read chunk 1 segment 2, bytes 65536-131071
            of 524288, repeated". Interfaces and times stay.

--xid, --conn and -Y choose what is written. OUT - is standard output.`,
		Example: `  rdmadump export --to rpc-tcp nfs.pcap -w rpcs.pcapng
  rdmadump export --to rpc-tcp nfs.pcap -w - | tshark -r - -z rpc,srt,100003,4
  rdmadump export --to pcapng nfs.pcap --xid 0x4cc9dbf7 -w one.pcapng`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for i := range exporters {
				if exporters[i].to == to {
					return f.export(cmd, args, &exporters[i], path, stdout, stderr)
				}
			}
			return oneOf("--to", to, exportNames()...)
		},
	}
	f.define(cmd.Flags(), exportView(query.Transactions))
	cmd.Flags().StringVar(&to, "to", "", "what to write: "+listOf(exportNames()))
	cmd.Flags().StringVarP(&path, "write", "w", "", "write to this `file`; - is standard output")
	cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(exportNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.MarkFlagRequired("to")
	cmd.MarkFlagRequired("write")
	return cmd
}

// listOf is names with commas between them, the first in backquotes, as a flag's
// help shows its value.
func listOf(names []string) (s string) {
	for i, name := range names {
		if i == 0 {
			s = "`" + name + "`"
			continue
		}
		s += ", " + name
	}
	return s
}

func exportNames() (names []string) {
	for i := range exporters {
		names = append(names, exporters[i].to)
	}
	return names
}

// exportView says which flags exports take.
func exportView(fields query.Fields) *view {
	return &view{name: "export", fields: fields, without: []string{"output", "jq", "field", "count", "color", "to"}}
}

// export reads captures and writes a file.
func (f *flags) export(cmd *cobra.Command, paths []string, kind *exporter, path string, stdout, stderr io.Writer) error {
	if len(paths) == 0 {
		return fmt.Errorf("no capture named: give a FILE, or - for standard input; see %s --help", cmd.CommandPath())
	}
	set, err := f.parse(exportView(kind.fields), true)
	if err != nil {
		return err
	}
	r := &exportRun{settings: set, times: times{settings: set}, ctx: cmd.Context(), stderr: stderr}
	source, openErr := capture.OpenAll(paths)
	if source == nil {
		return openErr
	}
	defer source.Close()
	if openErr != nil {
		fmt.Fprintf(stderr, "rdmadump: %v; the other files are read\n", openErr)
	}
	r.source = source
	out, err := create(path, paths, stdout)
	if err != nil {
		return err
	}
	r.out, r.folder = out, out.folder
	report, err := kind.run(r)
	if err = out.done(err); err != nil {
		return err
	}
	if !f.quiet {
		fmt.Fprintf(stderr, "rdmadump: %s: %s\n", path, report)
	}
	switch {
	case r.err != nil:
		return &status{exitBroken, fmt.Errorf("%w; what was read before is written", r.err)}
	case openErr != nil:
		return &status{code: exitUsage}
	}
	return nil
}

// outFile is a file that is there when it is complete, and not before.
type outFile struct {
	io.Writer
	path, folder string
	file         *os.File // nil: standard output
	temporary    bool
}

// create begins a file at path, which must be none of inputs.
func create(path string, inputs []string, stdout io.Writer) (*outFile, error) {
	if path == "-" {
		return &outFile{Writer: stdout}, nil
	}
	info, err := os.Stat(path)
	if err == nil {
		for _, in := range inputs {
			if same, err := os.Stat(in); err == nil && os.SameFile(info, same) {
				return nil, fmt.Errorf("-w %s: it is one of the captures that are read", path)
			}
		}
		if !info.Mode().IsRegular() { // a pipe, a device
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return nil, fmt.Errorf("-w: %w", err)
			}
			return &outFile{Writer: f, path: path, file: f}, nil
		}
	}
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, ".rdmadump-*")
	if err != nil {
		return nil, fmt.Errorf("-w %s: %w", path, err)
	}
	return &outFile{Writer: f, path: path, folder: folder, file: f, temporary: true}, nil
}

// done ends it; err is what went wrong while it was written.
func (f *outFile) done(err error) error {
	if f.file == nil {
		return err
	}
	if f.temporary && err == nil {
		err = f.file.Chmod(0o644)
	}
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	switch {
	case !f.temporary:
	case err != nil:
		os.Remove(f.file.Name())
	default:
		err = os.Rename(f.file.Name(), f.path)
	}
	return err
}

// feed runs a dissector over the source.
func (r *exportRun) feed(h dissect.Handler, o dissect.Options) (*record.Summary, error) {
	p := newProgress(r.source, r.stderr, !r.quiet)
	defer p.finish()
	h.Begin = r.begin
	h.Tick = func() error {
		p.update()
		return nil
	}
	o.Memory = r.memory
	d := dissect.New(h, o)
	boxOf(r.ctx).packet = d.Number
	summary, err := d.Run(r.ctx, r.source)
	var broken *capture.BrokenError
	switch {
	case errors.As(err, &broken):
		r.err = err
	case err != nil && r.ctx.Err() != nil:
		r.err = errors.New("interrupted")
	case err != nil:
		return nil, err
	}
	return summary, nil
}

// asked says whether a transaction is to be exported; an error of the filter
// stays.
func (r *exportRun) asked(failed *error) func(*record.Transaction) bool {
	return func(t *record.Transaction) bool {
		if !r.wants(record.Some(t.Connection), record.Some(t.XID)) || !r.within(t.Start()) {
			return false
		}
		if r.filter == nil {
			return true
		}
		hit, err := r.filter.Match(t)
		if err != nil && *failed == nil {
			*failed = err
		}
		return hit
	}
}

// exportRPCTCP writes RPCs as if TCP had carried them.
func exportRPCTCP(r *exportRun) (string, error) {
	spool, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	var failed error
	e := export.NewRPCTCP(spool)
	e.Wants = r.asked(&failed)
	if _, err := r.feed(e.Handler(), dissect.Options{Rebuild: true}); err != nil {
		return "", err
	}
	if failed != nil {
		return "", failed
	}
	report, err := e.Write(r.out, "rdmadump "+version())
	if err != nil {
		return "", err
	}
	return report.String(), nil
}

// exportPackets writes packets with comments.
func exportPackets(r *exportRun) (string, error) {
	e := export.NewPackets(r.out, "rdmadump "+version())
	e.Wants = func(p *record.Packet) (bool, error) {
		if !r.wants(p.Connection, p.XID) || !r.within(p.Time) {
			return false, nil
		}
		if r.filter == nil {
			return true, nil
		}
		return r.filter.Match(p)
	}
	if _, err := r.feed(e.Handler(), dissect.Options{}); err != nil {
		return "", err
	}
	return e.Report.String(), e.Flush()
}
