package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// options are the flags.
type options struct {
	output   string
	filter   string
	jq       string
	fields   []string
	xids     []string
	conns    []int
	count    int64
	sort     string
	top      int
	from, to string
	color    string
	quiet    bool
	tree     bool // packets
	bytes    bool
	timeline bool // connections
	by       string
	rpc      bool // transactions, as JSON

	wantXID []record.Hex32
	shown   string      // the files, as they were named
	start   record.Time // of the capture
	since   record.Time
	until   record.Time
	stdout  io.Writer
	stderr  io.Writer
}

const example = `  rdmadump nfs.pcap                       the RPC transactions of a capture
  rdmadump nfs.pcap --xid 0x4cc9dbf7      the ladder of one of them
  rdmadump connections nfs.pcap --conn 0 --timeline
                                          credits and handles over time
  rdmadump stats nfs.pcap                 counts, latency and bytes per operation
  rdmadump packets -V nfs.pcap            every field of every header
  rdmadump check nfs.pcap                 what broke which rule
  rdmadump nfs.pcap -Y 'latency > 5ms and "READ" in operations'
  rdmadump nfs.pcap --top 10              the ten slowest
  rdmadump -o json nfs.pcap | jq 'select(.status == "no_reply")'
  rdmadump packets nfs.pcap -e number -e bth.psn -e reth.r_key
  ssh host cat nfs.pcap.zst | rdmadump -  a capture from standard input
  rdmadump live -i eth0                   live, on Linux
  ibdump -d mlx5_0 -w - | rdmadump live - live, of a hardware RDMA device`

// subcommands are the views by name.
var subcommands = []struct {
	use, short string
	view       view
}{
	{"transactions", "A line an RPC; --xid draws its ladder", transactionView},
	{"connections", "Handshake, private data, what was negotiated, health; --timeline draws credits and handles", connectionView},
	{"packets", "A line a packet; -V for every field, -x for bytes", packetView},
	{"check", "What broke which rule, with packet and section; exit status 1 when there are errors", findingView},
	{"overview", "One screen: who, how healthy, what was slow and why, what to look at next", overviewView},
	{"stats", "Per operation: counts, bytes, latency, where the time went", statsView},
}

// viewNamed is the view of a subcommand, nil when there is none.
func viewNamed(name string) *view {
	for i := range subcommands {
		if subcommands[i].use == name {
			return &subcommands[i].view
		}
	}
	return nil
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	o := &options{stdout: stdout, stderr: stderr}
	root := &cobra.Command{
		Use:   "rdmadump [flags] FILE...",
		Short: "Say what two ends of RDMA storage traffic did to each other's memory",
		Long: `rdmadump reads captures of NFS over RDMA and says what the two ends did to each
other: which RPC ran, which memory was exposed for it, who read or wrote that
memory, who held how many credits, which handle was invalidated and by whom.

FILE is a pcap or pcapng capture, plain, gzip or zstd; - is standard input.
Several files are one capture, merged by time. Without a command, the
transactions are shown.

-Y keeps the records that match an expression over their fields, by their JSON
names or Wireshark's: comparison, in [...], matches "regexp", contains, and
durations such as 5ms. --jq runs a jq program on each record.

Exit status: 0 done; 1 check found an error; 2 wrong usage or unreadable input;
3 the input ended or broke before its end.`,
		Example:       example,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.validate()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.view(cmd, args, transactionView)
		},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("rdmadump {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVarP(&o.output, "output", "o", "text", "`text` or json (one record a line)")
	f.StringVarP(&o.filter, "filter", "Y", "", "keep the records that match this `expression`")
	f.StringVar(&o.jq, "jq", "", "run this jq `program` on each record's JSON")
	f.StringSliceVarP(&o.fields, "field", "e", nil, "print only this `field` (repeat for more), tabs between them")
	f.StringSliceVar(&o.xids, "xid", nil, "only the transactions with this `XID` (repeat for more)")
	f.IntSliceVar(&o.conns, "conn", nil, "only the connection with this `number` (repeat for more)")
	f.Int64VarP(&o.count, "count", "c", 0, "stop after `N` records")
	f.StringVar(&o.sort, "sort", "", "sort by this `field`; -field for the largest first")
	f.IntVar(&o.top, "top", 0, "only the first `N` in order; without --sort, the slowest transactions")
	f.StringVar(&o.from, "from", "", "only what is not before this `time`: RFC 3339, or seconds from the start such as 2.5 or 90s")
	f.StringVar(&o.to, "to", "", "only what is not after this `time`")
	f.StringVar(&o.color, "color", "auto", "colour: `auto`, always or never")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no summary and no progress on standard error")

	for _, v := range subcommands {
		cmd := &cobra.Command{
			Use: v.use + " [flags] FILE...", Short: v.short,
			RunE: func(cmd *cobra.Command, args []string) error { return o.view(cmd, args, v.view) },
		}
		switch v.use {
		case "transactions":
			o.rpcFlag(cmd)
		case "packets":
			cmd.Flags().BoolVarP(&o.tree, "verbose", "V", false, "the tree of all fields, with bits and offsets")
			cmd.Flags().BoolVarP(&o.bytes, "hex", "x", false, "the bytes of each packet")
		case "connections":
			cmd.Flags().BoolVar(&o.timeline, "timeline", false, "draw credits and exposed handles over time")
		case "stats":
			cmd.Flags().StringVar(&o.by, "by", analyze.ByOperation, "sum up by program, procedure or `operation`")
		}
		root.AddCommand(cmd)
	}
	root.AddCommand(newLive(o), newInterfaces(o), newMan(root), newSchema(o))
	root.AddCommand(newExport(o), newExtract(o))
	o.rpcFlag(root)
	o.completions(root)
	return root
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// oneOf checks a flag that has a few values.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	last := len(values) - 1
	return fmt.Errorf("%s %s: it is %s or %s", flag, value, strings.Join(values[:last], ", "), values[last])
}

// validate turns the words of the flags into values.
func (o *options) validate() error {
	if err := oneOf("-o", o.output, "text", "json"); err != nil {
		return err
	}
	if err := oneOf("--color", o.color, "auto", "always", "never"); err != nil {
		return err
	}
	if o.by != "" {
		if err := oneOf("--by", o.by, analyze.ByProgram, analyze.ByProcedure, analyze.ByOperation); err != nil {
			return err
		}
	}
	if o.count < 0 || o.top < 0 {
		return fmt.Errorf("-c %d, --top %d: a number of records is not negative", o.count, o.top)
	}
	o.wantXID = nil
	for _, s := range o.xids {
		xid, err := record.ParseHex32(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("--xid %s: an XID is a number of 32 bits, such as 0x4cc9dbf7", s)
		}
		o.wantXID = append(o.wantXID, xid)
	}
	for _, limit := range []struct {
		flag, value string
		to          *record.Time
	}{{"--from", o.from, &o.since}, {"--to", o.to, &o.until}} {
		if limit.value == "" {
			continue
		}
		if _, err := moment(limit.value, 0); err != nil {
			return fmt.Errorf("%s %s: a time is RFC 3339, such as 2026-11-21T04:55:00Z, or seconds from the start, such as 2.5 or 90s", limit.flag, limit.value)
		}
	}
	return nil
}

// moment reads a time, absolute or from the start of the capture.
func moment(s string, start record.Time) (record.Time, error) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return start + record.Time(v*1e9), nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return start + record.Time(d), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return record.Time(t.UnixNano()), err
}

// begin notes when the capture starts, which --from and --to may count from.
func (o *options) begin(at record.Time) {
	o.start = at
	if o.from != "" {
		o.since, _ = moment(o.from, at)
	}
	if o.to != "" {
		o.until, _ = moment(o.to, at)
	}
}

// overlaps says whether --from and --to leave anything of a span of time.
func (o *options) overlaps(first, last record.Time) bool {
	return (o.from == "" || last >= o.since) && (o.to == "" || first <= o.until)
}

// wants says whether a record of a connection and XID was asked for.
func (o *options) wants(conn record.Opt[int], xid record.Opt[record.Hex32]) bool {
	if id, known := conn.Get(); len(o.conns) > 0 && !(known && slices.Contains(o.conns, id)) {
		return false
	}
	id, known := xid.Get()
	return len(o.wantXID) == 0 || known && slices.Contains(o.wantXID, id)
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

// coloured says whether to write colours to w.
func (o *options) coloured(w io.Writer) bool {
	switch o.color {
	case "always":
		return true
	case "never":
		return false
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && terminalWidth(w) > 0
}
