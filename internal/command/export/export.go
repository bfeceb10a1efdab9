// Package export has the commands export and extract, which write what a capture contains to files.
package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/export/parquet"
	"github.com/rdmadump/rdmadump/internal/export/trace"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// exporter writes one kind of file.
type exporter struct {
	fields query.Fields // the fields that -Y may use
	run    func(*Run) (report string, err error)
}

// exporters has the exporter of each of [flags.Formats]; parquet writes several files below a folder.
var exporters = map[string]exporter{
	"rpc-tcp": {query.Transactions, exportRPCTCP},
	"pcapng":  {query.Packets, exportPackets},
	"trace":   {query.Transactions, exportTrace},
	"records": {query.Transactions, exportRecords},
	"parquet": {query.Transactions, nil},
}

// Run is one export.
type Run struct {
	flags.Times
	Ctx    context.Context
	Stderr io.Writer
	Source input.Source
	Joined *points.Source // nil if there is one capture point
	out    io.Writer
	folder string // folder for temporary files; empty for that of the system

	Summary *record.Summary // of the inputs, after they were read
	OpenErr error           // error of inputs that could not be opened and are left out
	Err     error           // error of reading; everything that was read before it is written
}

// open opens the captures of an export. The caller closes its source.
func open(cmd *cobra.Command, f *flags.Typed, v *flags.View, paths []string, stderr io.Writer) (*Run, error) {
	set, err := f.Parse(cmd.Context(), v, true)
	if err != nil {
		return nil, err
	}
	source, openErr, err := input.OpenNamed(cmd, f, paths, stderr)
	if err = input.NeedsPackets(cmd.Name(), err, openErr); err != nil {
		return nil, err
	}
	in, joined, err := input.Join(cmd.Context(), f, source, set, stderr)
	if err != nil {
		return nil, err
	}
	return &Run{Times: flags.Times{Settings: set}, Ctx: cmd.Context(), Stderr: stderr, Source: in, Joined: joined, OpenErr: openErr}, nil
}

// Ended returns the error that the command ends with after the output was written.
func (r *Run) Ended() error {
	switch {
	case r.Err != nil:
		return command.Broken(fmt.Errorf("%w; the output has everything before that", r.Err))
	case r.OpenErr != nil:
		return &command.Status{Code: command.ExitUsage}
	}
	return r.MissingConnection(r.Summary)
}

// exporting holds the flags of export.
type exporting struct {
	flags.Typed
	selecting      []string // the flags that select records, as typed
	scrubbed       scrubbed
	stdout, stderr io.Writer
}

// NewExport returns the command export.
func NewExport(stdout, stderr io.Writer) *cobra.Command {
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
            connections, RDMA operations, tasks and the summary. -Y and --xid select
            transactions, without RDMA operations and tasks. Every command that reads records accepts
            the file in place of the capture, and so does compare.
  parquet   Parquet tables below the folder OUT/v1: transactions, waits, findings,
            problems, tasks, rdma_operations, connections, gaps, points, files, rates
            and captures.
            Each table has a folder for this capture (capture=NAME, or that of
            --partition), so that the captures of many hosts can be exported to one
            OUT and queried together.

  trace     a trace for timeline viewers, as JSON in Chrome's format, which Perfetto
            (also next to a trace of the kernel) and speedscope open. Each connection is a process
            with its RPCs and RDMA operations as slices, credits, exposed memory and
            transferred bytes as counters, and retransmissions and findings as
            instants. With captures of several points, the delays and losses between
            them are counters, too.

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
  rdmadump export --format parquet nfs.pcap -w tables --partition host=node7
  rdmadump export --format trace nfs.pcap -w nfs.trace.json
  rdmadump export --scrub nfs.pcap -w public.pcapng`,
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := x.Secret(cmd)
			switch {
			case err != nil:
				return err
			case x.Scrub:
				return x.scrub(cmd, secret, args)
			case x.Format == "":
				return errors.New("say what to write: --format FORMAT or --scrub; see rdmadump export --help")
			}
			for _, name := range []string{"partition", "replace"} {
				if cmd.Flags().Changed(name) && x.Format != "parquet" {
					return fmt.Errorf("--%s: only --format parquet writes tables", name)
				}
			}
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if slices.Contains([]string{"xid", "conn", "from", "to", "filter"}, f.Name) {
					x.selecting = append(x.selecting, "--"+f.Name+"="+f.Value.String())
				}
			})
			if kind, known := exporters[x.Format]; known {
				return x.export(cmd, kind, args)
			}
			return command.OneOf("--format", x.Format, flags.FormatNames()...)
		},
	}
	x.DefineCommand(cmd, flags.ExportView(query.Transactions))
	return cmd
}

// export reads captures and writes one kind of file.
func (x *exporting) export(cmd *cobra.Command, kind exporter, paths []string) error {
	paths, err := input.Expand(&x.Typed, paths)
	if err != nil {
		return err
	}
	r, err := open(cmd, &x.Typed, flags.ExportView(kind.fields), paths, x.stderr)
	if err != nil {
		return err
	}
	defer r.Source.Close()
	if kind.run == nil {
		if x.Write == "-" || x.Write == "" {
			return fmt.Errorf("--write %s: the tables are several files, below a folder; name the folder", shell.File(x.Write))
		}
		return x.parquet(r, paths)
	}
	out, err := command.Create(cmd.Context(), x.Write, paths, x.stdout)
	if err != nil {
		return err
	}
	r.out, r.folder = out, out.Folder
	report, err := kind.run(r)
	if err = out.Done(err); err != nil {
		return err
	}
	if !x.Quiet {
		command.Say(x.stderr, "%s: %s", x.Write, report)
	}
	return r.Ended()
}

// Feed runs a dissector over the source. If rebuild is true, the dissector rebuilds
// Payload streams.
func (r *Run) Feed(h dissect.Handler, rebuild bool) error {
	p := input.NewProgress(r.Source, r.Stderr, !r.Quiet)
	defer p.Finish()
	r.BeginWith(&h)
	h.Tick = func() error {
		p.Update()
		return nil
	}
	o := r.Dissection()
	o.Rebuild = rebuild
	d := dissect.New(h, o)
	command.BoxOf(r.Ctx).Packet = d.Number
	summary, err := d.Run(r.Ctx, r.Source)
	r.Summary = summary
	return r.ReadUntil(err)
}

// BeginWith makes a handler set the time of the first frame.
func (r *Run) BeginWith(h *dissect.Handler) {
	begin := h.Begin
	h.Begin = func(first record.Time) error {
		if begin != nil {
			return errors.Join(r.Begin(first), begin(first))
		}
		return r.Begin(first)
	}
}

// ReadUntil keeps the error that ended reading early, if everything before it can be written, and
// returns any other error.
func (r *Run) ReadUntil(err error) error {
	var broken *capture.BrokenError
	switch {
	case errors.As(err, &broken):
		r.Err = err
	case err != nil && r.Ctx.Err() != nil:
		r.Err = errors.New("interrupted")
	case err != nil:
		return err
	}
	return nil
}

// Selects reports whether --conn, --xid, --from, --to and -Y select a transaction.
func (r *Run) Selects(t *record.Transaction) bool {
	return r.Wants(record.Some(t.Connection), record.Some(t.XID)) && r.Within(t.Start()) && (r.Filter == nil || r.Filter.Match(t))
}

// exportRPCTCP writes RPCs as if TCP had carried them.
func exportRPCTCP(r *Run) (string, error) {
	messages, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(messages.Name())
	defer messages.Close()
	e := export.NewRPCTCP(messages)
	e.Wants = r.Selects
	if err := r.Feed(e.Handler(), true); err != nil {
		return "", err
	}
	report, err := e.Write(r.out, "rdmadump "+command.Version())
	if err != nil {
		return "", err
	}
	return report.String(), nil
}

// exportTrace writes RPCs as a trace for timeline viewers.
func exportTrace(r *Run) (string, error) {
	items, err := os.CreateTemp(r.folder, ".rdmadump-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(items.Name())
	defer items.Close()
	w := trace.New(items)
	w.Wants = r.Selects
	w.WantsFinding = r.WantsFinding
	r.Files = true
	if err := r.Feed(w.Handler(), false); err != nil {
		return "", err
	}
	if err := w.Network(input.NetworkRecords(r.Joined)); err != nil {
		return "", err
	}
	report, err := w.Write(r.out)
	if err != nil {
		return "", err
	}
	return report.String(), nil
}

// exportRecords writes the records of the capture as JSON lines.
func exportRecords(r *Run) (string, error) {
	out := bufio.NewWriterSize(r.out, 1<<16)
	var line []byte
	r.Files = true
	counts := map[string]int64{}
	write := func(kind string, record any) error {
		counts[kind]++
		line = render.AppendJSON(line[:0], record)
		_, err := out.Write(line)
		return err
	}
	err := r.Feed(dissect.Handler{
		Transaction: func(t *record.Transaction) error {
			if !r.Selects(t) {
				return nil
			}
			return write("transaction", t)
		},
		Connection: func(c *record.Connection) error {
			if !r.WantsConnection(c.ID) || !r.Overlaps(c.First, c.Last) {
				return nil
			}
			return write("connection", c)
		},
		Finding: func(f *record.Finding) error {
			if !r.WantsFinding(f) {
				return nil
			}
			return write("finding", f)
		},
		Operation: func(o *record.RDMAOperation) error {
			if !r.WantsConnection(o.Connection) || !r.Within(o.Sent) || len(r.XIDs) > 0 || r.Filter != nil {
				return nil
			}
			return write("rdma_operation", o)
		},
		Task: func(o *record.Task) error {
			if !r.WantsTask(o) || !r.Within(o.From) || r.Filter != nil {
				return nil
			}
			return write("task", o)
		},
	}, false)
	if err != nil {
		return "", err
	}
	if err := write("summary", r.Summary); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %s, %s", record.Plural(counts["transaction"], "transaction"), record.Plural(counts["connection"], "connection"), record.Plural(counts["finding"], "finding")), out.Flush()
}

// exportPackets writes packets with comments.
func exportPackets(r *Run) (string, error) {
	e := export.NewPackets(r.out, "rdmadump "+command.Version())
	e.Wants = r.wantsPacket
	r.withCopies(e)
	if err := r.Feed(e.Handler(), false); err != nil {
		return "", err
	}
	return e.Report.String(), e.Flush()
}

// withCopies makes an exporter write the frames of all capture points.
func (r *Run) withCopies(e *export.Packets) {
	if r.Joined == nil {
		return
	}
	r.Joined.WithCopies()
	var list []export.Point
	for _, p := range r.Joined.Points() {
		list = append(list, export.Point{Name: p.Name, Link: p.Link, Snap: p.Snap})
	}
	e.AtPoints(list)
}

// wantsPacket reports whether the flags select a packet.
func (r *Run) wantsPacket(p *record.Packet) bool {
	return r.Wants(p.Connection, p.XID) && r.Within(p.Time) && (r.Filter == nil || r.Filter.Match(p))
}

// parquet writes tables below a folder. The partition is that of --partition, or else the name of the first file.
func (x *exporting) parquet(r *Run, paths []string) error {
	partition, err := parquet.ParsePartition(x.Partition)
	if err != nil {
		return fmt.Errorf("--partition: %w", err)
	}
	if len(partition) == 0 {
		name := paths[0]
		if name == "-" {
			name = "stdin"
		}
		partition = parquet.ByName(name)
	}
	of := parquet.Capture{Files: paths, Program: command.Version(), Options: x.selecting, Both: r.Joined != nil, At: r.Dissection().At, Memory: int64(r.Memory) / 8}
	of.Host, _ = os.Hostname()
	w := parquet.New(x.Write, partition, of, x.Replace)
	w.Wants, r.Files = r.Selects, true
	first := &input.First{Source: r.Source, Begin: w.Begin}
	r.Source = first
	if err := r.Feed(w.Handler(), false); err != nil {
		w.Abandon()
		return tablesExist(err)
	}
	if err := first.None(); err != nil {
		return tablesExist(err)
	}
	if err := w.Finish(r.Summary, input.PointRecords(r.Joined), input.NetworkRecords(r.Joined)); err != nil {
		w.Abandon()
		return fmt.Errorf("-w %s: %w", x.Write, err)
	}
	if err := w.Close(); err != nil {
		return tablesExist(err)
	}
	if transactions, operations, connections, findings := w.Rows(); !r.Quiet {
		command.Say(r.Stderr, "%s: %d transactions, %d operations, %d connections, %d findings in %s", x.Write, transactions, operations, connections, findings, w.Name())
	}
	return r.Ended()
}

// tablesExist returns the error of an export, with what to do if the capture has tables already.
func tablesExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("-w: %w: the tables have this capture; --replace writes it anew", err)
	}
	return fmt.Errorf("-w: %w", err)
}
