package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/export/parquet"
	"github.com/rdmadump/rdmadump/internal/export/trace"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// exporter writes one kind of file.
type exporter struct {
	format, description string
	fields              query.Fields // the fields that -Y may use
	run                 func(*exportRun) (report string, err error)
}

var exporters = []exporter{
	{"rpc-tcp", "the RPCs as if TCP had carried them, for tools that read NFS over TCP", query.Transactions, exportRPCTCP},
	{"pcapng", "the packets, each with a comment that says what it carries", query.Packets, exportPackets},
	{"perfetto", "a trace for the timeline viewer Perfetto", query.Transactions, exportPerfetto},
	{"chrome-trace", "a trace as JSON, for speedscope and other viewers of Chrome's format", query.Transactions, exportChrome},
	{"records", "all records of the capture as JSON lines, for rdmadump and other programs", query.Transactions, exportRecords},
	{"parquet", "tables, for engines that query many captures at once", query.Transactions, nil},
}

// exportRun is one export.
type exportRun struct {
	times
	ctx    context.Context
	stderr io.Writer
	source input
	joined *points.Source // nil if there is one capture point
	out    io.Writer
	folder string // folder for temporary files; empty for that of the system

	onlyRDMA bool // ignore RPC over TCP and UDP

	summary *record.Summary // of the inputs, after they were read
	openErr error           // error of inputs that could not be opened and are left out
	err     error           // error of reading; everything that was read before it is written
}

// openRun opens the captures of an export. The caller closes its source.
func (f *flags) openRun(cmd *cobra.Command, v *view, paths []string, stderr io.Writer) (*exportRun, error) {
	set, err := f.parse(v, true)
	if err != nil {
		return nil, err
	}
	source, openErr, err := f.openNamed(cmd, paths, stderr)
	if err = needsPackets(cmd.Name(), err, openErr); err != nil {
		return nil, err
	}
	in, joined, err := f.join(cmd.Context(), source, set, stderr)
	if err != nil {
		return nil, err
	}
	return &exportRun{times: times{settings: set}, ctx: cmd.Context(), stderr: stderr, source: in, joined: joined, openErr: openErr}, nil
}

// ended returns the error that the command ends with after the output was written.
func (r *exportRun) ended() error {
	switch {
	case r.err != nil:
		return &status{exitBroken, fmt.Errorf("%w; the output has everything before that", r.err)}
	case r.openErr != nil:
		return &status{code: exitUsage}
	}
	return nil
}

// exporting holds the flags of export.
type exporting struct {
	flags
	format, path   string
	scrubbed       scrubbed
	stdout, stderr io.Writer
}

// newExport returns the command export.
func newExport(stdout, stderr io.Writer) *cobra.Command {
	x := &exporting{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "export {--format FORMAT | --scrub} FILE... -w OUT", Short: "Convert a capture for other tools, or scrub it for sharing",
		Long: `export writes a capture in a form that other tools read. FORMAT is one of

  rpc-tcp   the same RPCs, converted to NFS over TCP, in a pcapng file: with record
            marking, the same addresses, times and XIDs, server port 2049, and both
            directions. Wireshark and every tool that reads NFS over TCP can open
            it.
  pcapng    the packets, unchanged, each with a comment that says what it carries,
            such as "XID 0x4cc9dbf7, Read chunk 1 segment 2, bytes 65536-131071
            of 524288, retransmitted". Interfaces and times are preserved.
  records   all records of the capture as JSON lines: transactions, findings,
            connections, RDMA operations and the summary. -Y and --xid select
            transactions, without RDMA operations. Every command that reads records accepts
            the file in place of the capture, and so does compare.
  parquet   Parquet tables below the folder OUT: transactions, operations,
            connections and findings. Each table has a folder for this capture
            (capture=NAME), so that several captures can be exported to one OUT
            and queried together.

  perfetto  a trace for the timeline viewer at ui.perfetto.dev, which also opens
            kernel traces next to it, on the same clock. Each connection is a process
            with its RPCs and RDMA operations as slices, credits, exposed memory and
            transferred bytes as counters, and retransmissions and findings as
            instants. With captures of several points, the delays and losses between
            them are counters, too.
  chrome-trace
            the same as JSON in Chrome's format, which speedscope reads, too.

--scrub writes a pcapng file that can be shared. It replaces file data, names, file
handles, credentials, and IP and MAC addresses by pseudonyms of the same length. It
keeps the headers of the RDMA layer. Correct checksums are calculated again; wrong
ones stay wrong. The file shows the same transactions over RDMA, timelines and
findings. Packets that are not RDMA become zeros after their headers, those of RPC
over TCP and UDP, too. A value has the same pseudonym everywhere in the file; with
--key, it also has the same pseudonym in other captures that are scrubbed with this
key. Keep the key secret. The captures are read twice. Sizes, times, counts and the
numeric values of NFS are not replaced.

--xid, --conn, --from, --to and -Y select what is written: RPCs, or packets with
--format pcapng and --scrub. With OUT -, export writes to standard output.`,
		Example: `  rdmadump export --format rpc-tcp nfs.pcap -w rpcs.pcapng
  rdmadump export --format rpc-tcp nfs.pcap -w - | tshark -r - -z rpc,srt,100003,4
  rdmadump export --format records nfs.pcap -w - | zstd > nfs.json.zst
  rdmadump export --format pcapng nfs.pcap --xid 0x4cc9dbf7 -w one.pcapng
  rdmadump export --format perfetto nfs.pcap -w nfs.perfetto.gz
  rdmadump export --scrub nfs.pcap -w public.pcapng`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := x.scrubbed.kind(x.format, cmd.Flags().Changed("key"))
			if err != nil {
				return err
			}
			if kind != nil {
				return x.scrub(cmd, kind, args)
			}
			for i := range exporters {
				if exporters[i].format == x.format {
					return x.export(cmd, &exporters[i], args)
				}
			}
			return oneOf("--format", x.format, exportNames()...)
		},
	}
	x.define(cmd.Flags(), exportView(query.Transactions))
	cmd.Flags().StringVar(&x.format, "format", "", "write this `format`: "+strings.Join(exportNames(), ", "))
	cmd.Flags().StringVarP(&x.path, "write", "w", "", "write to this `file`; - is standard output")
	x.scrubbed.define(cmd)
	cmd.MarkFlagRequired("write")
	return cmd
}

// exportNames returns the names of all exporters.
func exportNames() (names []string) {
	for i := range exporters {
		names = append(names, exporters[i].format)
	}
	return names
}

// shows lists the flags that only change what is shown. Commands that show nothing
// do not accept them.
var shows = []string{"jq", "field", "count", "color", "width", "wide", "time", "ascii", "background"}

// exportView describes the flags that export accepts.
func exportView(fields query.Fields) *view {
	return &view{name: "export", fields: fields, filters: "RPCs (by the fields of transactions), or with --format pcapng and --scrub the packets,", without: append([]string{"output"}, shows...)}
}

// export reads captures and writes one kind of file.
func (x *exporting) export(cmd *cobra.Command, kind *exporter, paths []string) error {
	r, err := x.openRun(cmd, exportView(kind.fields), paths, x.stderr)
	if err != nil {
		return err
	}
	defer r.source.Close()
	if kind.run == nil {
		if x.path == "-" {
			return &status{exitUsage, errors.New("--write -: the tables are several files, below a folder; name the folder")}
		}
		return r.parquet(paths[0], x.path)
	}
	out, err := create(x.path, paths, x.stdout)
	if err != nil {
		return err
	}
	r.out, r.folder = out, out.folder
	report, err := kind.run(r)
	if err = out.done(err); err != nil {
		return err
	}
	if !x.quiet {
		say(x.stderr, "%s: %s", x.path, report)
	}
	return r.ended()
}

// outFile is an output file. It gets its name only when it is complete.
type outFile struct {
	io.Writer
	path, folder string
	file         *os.File // nil for standard output
	temporary    bool     // file has a temporary name
}

// create creates the output file for path. It returns an error if path is one of
// the inputs, or the file that standard output goes to.
func create(path string, inputs []string, stdout io.Writer) (*outFile, error) {
	if path == "-" {
		return &outFile{Writer: stdout}, nil
	}
	if err := refuseInput("-w", path, inputs, stdout); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe or a device
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("-w: %w", err)
		}
		return &outFile{Writer: f, path: path, file: f}, nil
	}
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, ".rdmadump-*")
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) { // The temporary file's name would not help.
			err = fmt.Errorf("cannot create a file in %s: %w", folder, failed.Err)
		}
		return nil, fmt.Errorf("-w %s: %w", path, err)
	}
	return &outFile{Writer: f, path: path, folder: folder, file: f, temporary: true}, nil
}

// done closes the file and, if err is nil, gives it its name; otherwise it removes
// the file. err is the error of writing it.
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

// feed runs a dissector over the source. If rebuild is true, the dissector rebuilds
// Payload streams.
func (r *exportRun) feed(h dissect.Handler, rebuild bool) error {
	p := newProgress(r.source, r.stderr, !r.quiet)
	defer p.finish()
	r.beginWith(&h)
	h.Tick = func() error {
		p.update()
		return nil
	}
	o := r.dissection()
	o.Rebuild, o.OnlyRDMA = rebuild, r.onlyRDMA
	d := dissect.New(h, o)
	boxOf(r.ctx).packet = d.Number
	summary, err := d.Run(r.ctx, r.source)
	r.summary = summary
	return r.readUntil(err)
}

// beginWith makes a handler set the time of the first frame.
func (r *exportRun) beginWith(h *dissect.Handler) {
	begin := h.Begin
	h.Begin = func(first record.Time) error {
		if begin != nil {
			return errors.Join(r.begin(first), begin(first))
		}
		return r.begin(first)
	}
}

// readUntil keeps the error that ended reading early, if everything before it can be written, and
// returns any other error.
func (r *exportRun) readUntil(err error) error {
	var broken *capture.BrokenError
	switch {
	case errors.As(err, &broken):
		r.err = err
	case err != nil && r.ctx.Err() != nil:
		r.err = errors.New("interrupted")
	case err != nil:
		return err
	}
	return nil
}

// selects reports whether the flags select a transaction. The error is that of the
// filter.
func (r *exportRun) selects(t *record.Transaction) (bool, error) {
	return r.selectsRecord(record.Some(t.Connection), record.Some(t.XID), t.Start(), t)
}

// selectsRecord reports whether --conn, --xid, --from, --to and -Y select a record.
func (r *exportRun) selectsRecord(conn record.Opt[int], xid record.Opt[record.Hex32], at record.Time, rec any) (bool, error) {
	if !r.wants(conn, xid) || !r.within(at) {
		return false, nil
	}
	if r.filter == nil {
		return true, nil
	}
	return r.filter.Match(rec)
}

// exportRPCTCP writes RPCs as if TCP had carried them.
func exportRPCTCP(r *exportRun) (string, error) {
	messages, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(messages.Name())
	defer messages.Close()
	e := export.NewRPCTCP(messages)
	e.Wants = r.selects
	if err := r.feed(e.Handler(), true); err != nil {
		return "", err
	}
	report, err := e.Write(r.out, "rdmadump "+version())
	if err != nil {
		return "", err
	}
	return report.String(), nil
}

// exportTrace writes RPCs as a trace, in the format that write encodes.
func exportTrace(r *exportRun, write func(*trace.Writer, io.Writer) (trace.Report, error)) (string, error) {
	items, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(items.Name())
	defer items.Close()
	w := trace.New(items)
	w.Wants = r.selects
	w.WantsFinding = r.wantsFinding
	r.files = true
	if err := r.feed(w.Handler(), false); err != nil {
		return "", err
	}
	if err := w.Network(networkRecords(r.joined)); err != nil {
		return "", err
	}
	report, err := write(w, r.out)
	if err != nil {
		return "", err
	}
	return report.String(), nil
}

// exportPerfetto writes a trace in Perfetto's format.
func exportPerfetto(r *exportRun) (string, error) { return exportTrace(r, (*trace.Writer).Perfetto) }

// exportChrome writes a trace in Chrome's format.
func exportChrome(r *exportRun) (string, error) { return exportTrace(r, (*trace.Writer).Chrome) }

// exportRecords writes the records of the capture as JSON lines.
func exportRecords(r *exportRun) (string, error) {
	out := bufio.NewWriterSize(r.out, 1<<16)
	var line []byte
	r.files = true
	counts := map[string]int64{}
	write := func(kind string, record any) error {
		counts[kind]++
		line = render.AppendJSON(line[:0], record)
		_, err := out.Write(line)
		return err
	}
	err := r.feed(dissect.Handler{
		Transaction: func(t *record.Transaction) error {
			if wanted, err := r.selects(t); !wanted || err != nil {
				return err
			}
			return write("transaction", t)
		},
		Connection: func(c *record.Connection) error {
			if !r.wantsConnection(c.ID) || !r.overlaps(c.First, c.Last) {
				return nil
			}
			return write("connection", c)
		},
		Finding: func(f *record.Finding) error {
			if !r.wantsFinding(f) {
				return nil
			}
			return write("finding", f)
		},
		Operation: func(o *record.RDMAOperation) error {
			if !r.wantsConnection(o.Connection) || !r.within(o.Sent) || len(r.xids) > 0 || r.filter != nil {
				return nil
			}
			return write("rdma_operation", o)
		},
	}, false)
	if err != nil {
		return "", err
	}
	if err := write("summary", r.summary); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %s, %s", number(counts["transaction"], "transaction"), number(counts["connection"], "connection"), number(counts["finding"], "finding")), out.Flush()
}

// exportPackets writes packets with comments.
func exportPackets(r *exportRun) (string, error) {
	e := export.NewPackets(r.out, "rdmadump "+version())
	e.Wants = r.wantsPacket
	r.withCopies(e)
	if err := r.feed(e.Handler(), false); err != nil {
		return "", err
	}
	return e.Report.String(), e.Flush()
}

// withCopies makes an exporter write the frames of all capture points.
func (r *exportRun) withCopies(e *export.Packets) {
	if r.joined == nil {
		return
	}
	r.joined.WithCopies()
	var list []export.Point
	for _, p := range r.joined.Points() {
		list = append(list, export.Point{Name: p.Name, Link: p.Link, Snap: p.Snap})
	}
	e.AtPoints(list)
}

// wantsPacket reports whether the flags select a packet.
func (r *exportRun) wantsPacket(p *record.Packet) (bool, error) {
	if !r.wants(p.Connection, p.XID) || !r.within(p.Time) {
		return false, nil
	}
	if r.filter == nil {
		return true, nil
	}
	return r.filter.Match(p)
}

// parquet writes tables below a folder; name is the name of the capture.
func (r *exportRun) parquet(name, folder string) error {
	if name == "-" {
		name = "stdin"
	}
	w, err := parquet.Create(folder, name)
	if err != nil {
		return fmt.Errorf("-w: %w", err)
	}
	w.Wants, r.files = r.selects, true
	if err := r.feed(w.Handler(), false); err != nil {
		w.Abandon()
		return err
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("-w %s: %w", folder, err)
	}
	if rows := w.Rows(); !r.quiet {
		say(r.stderr, "%s: %d transactions, %d operations, %d connections, %d findings in capture=%s",
			folder, rows.Transactions, rows.Operations, rows.Connections, rows.Findings, parquet.Partition(name))
	}
	return r.ended()
}
