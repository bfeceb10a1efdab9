package flags

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
)

// commandTable lists the flags of commands that are no views.
var commandTable = commandFlags(new(Typed))

// commandFlags returns the flags of commands that are no views, in the order in which help lists them. They set values of t. Several
// commands may have a flag with one name and different meanings; then each meaning has a row.
func commandFlags(t *Typed) []row {
	return []row{
		{
			name: "interface", short: "i", only: "live browse",
			doc:      "capture packets on this `interface`",
			sets:     &t.Interface,
			complete: offerInterfaces,
		},
		{
			name: "view", only: "live",
			doc:  "show this `view`: " + command.List(LiveNames(), "or") + "; rates has a row for each second",
			sets: &t.LiveView, byDefault: Views[0].Name,
			values: fixed(LiveNames()...),
		},
		{
			name: "write", short: "w", only: "live",
			doc:  "save the packets to this pcapng `file`; with -, write them to standard output instead of records",
			sets: &t.Write,
		},
		{
			name: "follow", only: "live",
			doc:  "read this `file` while it is being written, also when it is rotated, or the ring of files that tcpdump -C writes with this name",
			sets: &t.Follow,
		},
		{
			name: "follow", only: "browse",
			doc:  "read this `file` while it is being written, also when it is rotated",
			sets: &t.Follow,
		},
		{
			name: "write", short: "w", only: "browse",
			doc:  "save the packets of an interface or a pipe to this pcapng `file`, so that those of an RPC can be shown",
			sets: &t.Write,
		},
		{
			name: "autostop", short: "a", only: "live",
			doc:  "stop at this `limit`: duration:SECONDS, filesize:KB or packets:NUMBER",
			sets: &t.Stop,
		},
		{
			name: "keep", only: "browse",
			doc:  "limit the list to this `number` of RPCs, the newest ones; 0 means no limit",
			sets: &t.Keep,
		},
		{
			name: "promiscuous", only: "live browse",
			doc:  "capture packets for other hosts, too (promiscuous mode)",
			sets: &t.Promiscuous,
		},
		{
			name: "force", only: "live browse",
			doc:  "capture although the interface belongs to a hardware RDMA device",
			sets: &t.Force,
		},

		{
			name: "format", only: "export",
			doc:      "write this `format`: " + strings.Join(FormatNames(), ", "),
			sets:     &t.Format,
			complete: offerFormats,
		},
		{
			name: "write", short: "w", only: "export report",
			doc:     "write to this `file`; - is standard output",
			sets:    &t.Write,
			missing: "-w OUT is missing: name the file to write, or - for standard output",
		},
		{
			name: "export", only: "live",
			doc:  "write Parquet tables below this `folder`, as export --format parquet does, and show nothing unless --view says what",
			sets: &t.Export,
		},
		{
			name: "metrics", only: "live",
			doc:  "serve metrics for Prometheus (OpenMetrics) at this `address`: PORT on loopback, or HOST:PORT",
			sets: &t.Metrics,
		},
		{
			name: "metrics-clients", only: "live",
			doc:  "with --metrics: give this `number` of clients a label of their own; all others are one",
			sets: &t.MetricsClients, byDefault: 200,
		},
		{
			name: "roll", only: "live",
			doc:  "with --export: complete the files of the tables after this `duration`, and begin others",
			sets: &t.Roll, byDefault: 5 * time.Minute,
		},
		{
			name: "partition", only: "live",
			doc:  "with --export: write the tables to this `partition`, of the form KEY=VALUE,..., such as host=node7",
			sets: &t.Partition,
		},
		{
			name: "replace", only: "live",
			doc:  "with --export: replace files that an earlier run wrote of the same packets",
			sets: &t.Replace,
		},
		{
			name: "partition", only: "export",
			doc:  "write the tables of --format parquet to this `partition`, of the form KEY=VALUE,..., such as host=node7; the default is capture=NAME",
			sets: &t.Partition,
		},
		{
			name: "replace", only: "export",
			doc:  "write the tables of --format parquet anew if there are tables of this capture",
			sets: &t.Replace,
		},
		{
			name: "scrub", only: "export report",
			doc:  "write what can be shared: pseudonyms replace data, names, paths, handles, credentials and addresses",
			sets: &t.Scrub,
		},
		{
			name: "key", only: "export report",
			doc:  "with --scrub: derive pseudonyms from the contents of this `file`, so that several captures and pages get the same; without it, those of export are random, and those of report depend on the captures",
			sets: &t.Key,
		},

		{
			name: "directory", short: "C", only: "extract",
			doc:     "write below this `folder`, which is created if it does not exist",
			sets:    &t.Folder,
			missing: "-C DIR is missing: name the folder to write to",
		},
		{
			name: "max-size", only: "extract",
			doc:  "write at most this `size` of each file, and leave out data, holes and sizes beyond it",
			sets: &t.MaxSize,
		},

		{
			name: "fail-on", only: "compare",
			doc:  "exit with status 1 if a percentile of a group with at least 30 latencies in both captures changed significantly and by more than this `limit`, such as 'p99 > +20%' or 'p50 > +1ms', an increase by more than 1 ms (repeat the flag for more)",
			sets: &t.Limits,
		},
	}
}

// DefineCommand defines the flags that a command has itself, and those that any of these views supports.
func (f *Typed) DefineCommand(cmd *cobra.Command, of ...*View) {
	f.Define(cmd.Flags(), of...)
	for _, r := range commandFlags(f) {
		if !r.takers(cmd.Name()) {
			continue
		}
		r.define(cmd.Flags(), nil)
		if r.missing != "" {
			cobra.MarkFlagRequired(cmd.Flags(), r.name)
		}
	}
}

// Missing returns an error if a flag was not given that the command cannot do without. It has to be called before cobra looks
// for such flags, because its message says less.
func Missing(cmd *cobra.Command, _ []string) error {
	for _, r := range commandTable {
		if r.missing != "" && r.takers(cmd.Name()) && !cmd.Flags().Changed(r.name) {
			return fmt.Errorf("%s; see %s --help", r.missing, cmd.CommandPath())
		}
	}
	return nil
}

// RateView is the name that live has for stats with --every.
const RateView = "rates"

// LiveNames returns the names of the views of live.
func LiveNames() (names []string) {
	for _, v := range Views {
		names = append(names, v.Name)
	}
	return append(names, RateView)
}

// Formats lists what export writes: the value of --format, and what it means.
var Formats = []struct{ Name, Description string }{
	{"rpc-tcp", "the RPCs as if TCP had carried them, for tools that read NFS over TCP"},
	{"pcapng", "the packets, each with a comment that says what it carries"},
	{"trace", "a trace as JSON, for the timeline viewers Perfetto and speedscope"},
	{"records", "all records of the capture as JSON lines, for rdmadump and other programs"},
	{"parquet", "tables, for engines that query many captures at once"},
}

// FormatNames returns the values of --format.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// offerFormats offers the values of --format with their descriptions.
func offerFormats(*View) cobra.CompletionFunc {
	return offered(func() (formats []string) {
		for _, f := range Formats {
			formats = append(formats, cobra.CompletionWithDesc(f.Name, f.Description))
		}
		return formats
	})
}

// offerInterfaces offers the network interfaces of this machine.
func offerInterfaces(*View) cobra.CompletionFunc {
	return offered(func() (names []string) {
		list, _ := capture.Interfaces(command.Sysfs)
		for _, i := range list {
			names = append(names, i.Name)
		}
		return names
	})
}

// mostSide is the longest file of --key and --baseline in bytes.
const mostSide = 64 << 20

// Secret returns the contents of the file of --key, or nil without the flag, which belongs to --scrub.
func (f *Typed) Secret(cmd *cobra.Command) ([]byte, error) {
	switch {
	case !cmd.Flags().Changed("key"):
		return nil, nil
	case !f.Scrub:
		return nil, errors.New("--key can only be used with --scrub")
	case f.Key == "":
		return nil, errors.New(`--key "": the name of the file is empty`)
	}
	secret, err := command.ReadSide(cmd.Context(), "--key", f.Key, mostSide)
	switch {
	case err != nil:
		return nil, err
	case len(secret) > mostSide:
		return nil, fmt.Errorf("--key %s: the file is longer than 64 MiB", f.Key)
	case len(secret) == 0:
		return nil, fmt.Errorf("--key %s: the file is empty", f.Key)
	case command.SameFile(f.Key, f.Write):
		return nil, fmt.Errorf("-w %s: the file is that of --key", f.Write)
	}
	return secret, nil
}
