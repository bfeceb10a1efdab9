package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rdmadump/rdmadump/dissect"
)

// options are the flags that every view takes.
type options struct {
	output string
	xids   []string
	conns  []int
	count  int64
	color  string
	quiet  bool
	tree   bool
	bytes  bool

	wantXID []dissect.Hex32
	stdout  io.Writer
	stderr  io.Writer
}

const example = `  rdmadump nfs.pcap                       the RPC transactions of a capture
  rdmadump packets -V nfs.pcap            every field of every header
  rdmadump connections nfs.pcap           handshake, private data, health
  rdmadump check nfs.pcap                 what broke which rule
  rdmadump -o json nfs.pcap | jq 'select(.status == "no_reply")'
  zcat ring.pcap*.gz | rdmadump -         a capture from standard input`

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

Exit status: 0 done; 1 check found an error; 2 wrong usage or unreadable input;
3 the input ended or broke before its end.`,
		Example:       example,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
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
	f.StringSliceVar(&o.xids, "xid", nil, "only the transactions with this `XID` (repeat for more)")
	f.IntSliceVar(&o.conns, "conn", nil, "only the connection with this `number` (repeat for more)")
	f.Int64VarP(&o.count, "count", "c", 0, "stop after `N` records")
	f.StringVar(&o.color, "color", "auto", "colour: `auto`, always or never")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no summary and no progress on standard error")

	for _, v := range []struct {
		use, short string
		view       view
	}{
		{"transactions", "A line an RPC: what was exposed, moved, answered, invalidated", transactionView},
		{"connections", "Handshake, private data, what was negotiated, health", connectionView},
		{"packets", "A line a packet; -V for every field, -x for bytes", packetView},
		{"check", "What broke which rule, with packet and section; exit status 1 when there are errors", findingView},
	} {
		cmd := &cobra.Command{
			Use: v.use + " [flags] FILE...", Short: v.short,
			RunE: func(cmd *cobra.Command, args []string) error { return o.view(cmd, args, v.view) },
		}
		if v.use == "packets" {
			cmd.Flags().BoolVarP(&o.tree, "verbose", "V", false, "the tree of all fields, with bits and offsets")
			cmd.Flags().BoolVarP(&o.bytes, "hex", "x", false, "the bytes of each packet")
		}
		root.AddCommand(cmd)
	}
	return root
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// validate turns the words of the flags into values.
func (o *options) validate() error {
	if !slices.Contains([]string{"text", "json"}, o.output) {
		return fmt.Errorf("-o %s: the outputs are text and json", o.output)
	}
	if !slices.Contains([]string{"auto", "always", "never"}, o.color) {
		return fmt.Errorf("--color %s: it is auto, always or never", o.color)
	}
	if o.count < 0 {
		return fmt.Errorf("-c %d: a number of records is not negative", o.count)
	}
	o.wantXID = nil
	for _, s := range o.xids {
		xid, err := dissect.ParseHex32(strings.TrimSpace(s))
		if err != nil {
			return fmt.Errorf("--xid %s: an XID is a number of 32 bits, such as 0x4cc9dbf7", s)
		}
		o.wantXID = append(o.wantXID, xid)
	}
	return nil
}

// wants says whether a record of a connection and XID was asked for.
func (o *options) wants(conn *int, xid *dissect.Hex32) bool {
	if len(o.conns) > 0 && (conn == nil || !slices.Contains(o.conns, *conn)) {
		return false
	}
	return len(o.wantXID) == 0 || xid != nil && slices.Contains(o.wantXID, *xid)
}

// terminalWidth is that of w, 0 when w is no terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
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
