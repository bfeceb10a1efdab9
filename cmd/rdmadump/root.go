package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/render"
)

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

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := viewCommand(views[0], stdout, stderr)
	root.Use, root.Short = "rdmadump [flags] FILE...", "Say what two ends of RDMA storage traffic did to each other's memory"
	root.Long = `rdmadump reads captures of NFS over RDMA and says what the two ends did to each
other: which RPC ran, which memory was exposed for it, who read or wrote that
memory, who held how many credits, which handle was invalidated and by whom.

FILE is a pcap or pcapng capture, plain, gzip or zstd; - is standard input.
Several files are one capture, merged by time. Without a command, the
transactions are shown.

-Y keeps the records that match an expression over their fields, by their JSON
names or Wireshark's: comparison, in [...], matches "regexp", contains, and
durations such as 5ms. --jq runs a jq program on each record.

` + exitHelp
	root.Example = example
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version()
	root.SuggestionsMinimumDistance = 3
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("rdmadump {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	for _, v := range views {
		root.AddCommand(viewCommand(v, stdout, stderr))
	}
	root.AddCommand(newLive(stdout, stderr), newInterfaces(stdout), newMan(root), newSchema(stdout), newExport(stdout, stderr), newExtract(stdout, stderr), newFields(stdout), newVersion(stdout))
	root.InitDefaultHelpCmd()
	for _, cmd := range append(root.Commands(), root) {
		completions(cmd)
		if cmd.Name() == "help" {
			cmd.Args = known
		} else if cmd.Args != nil {
			cmd.Args = shown(cmd.Args)
		}
	}
	document(root)
	return root
}

// viewCommand is the command of a view.
func viewCommand(v *view, stdout, stderr io.Writer) *cobra.Command {
	f := new(flags)
	cmd := &cobra.Command{
		Use: v.name + " [flags] FILE...", Short: v.short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, paths []string) error { return f.show(cmd, v, paths, stdout, stderr) },
	}
	f.define(cmd.Flags(), v)
	return cmd
}

// show reads captures and shows their records.
func (f *flags) show(cmd *cobra.Command, v *view, paths []string, stdout, stderr io.Writer) error {
	if err := v.check(cmd); err != nil {
		return err
	}
	set, err := f.parse(v, true)
	if err != nil {
		return err
	}
	if f.rules || f.explain != "" {
		return f.explains(stdout)
	}
	source, openErr, err := f.openNamed(cmd, paths, stderr)
	if err != nil {
		return err
	}
	defer source.Close()
	typed := make([]string, len(paths))
	for i, path := range paths {
		typed[i] = render.Shell(path)
	}
	r := &runner{
		settings: set, stdout: stdout, stderr: stderr, openErr: openErr,
		shown: strings.Join(paths, " "), typed: strings.Join(typed, " "),
	}
	return r.run(cmd.Context(), source)
}

// openNamed opens the captures that the command line names. What of them could not
// be opened while others could is told, and is left: it is for the exit status.
func (f *flags) openNamed(cmd *cobra.Command, paths []string, stderr io.Writer) (source *capture.Merged, left, err error) {
	if len(paths) == 0 {
		return nil, nil, fmt.Errorf("no capture named: give a FILE, or - for standard input; see %s --help", cmd.CommandPath())
	}
	if err := mistyped(cmd, paths[0]); err != nil {
		return nil, nil, err
	}
	if source, left = openUntil(cmd.Context(), paths, f.called); source == nil {
		return nil, nil, left
	}
	if left != nil {
		fmt.Fprintf(stderr, "rdmadump: %v; the other files are read\n", left)
	}
	for _, path := range source.Repeated() {
		if !f.quiet {
			fmt.Fprintf(stderr, "rdmadump: %s is named twice, and read once\n", printable(path))
		}
	}
	return source, left, nil
}

// openUntil opens captures, and returns an error if ctx ends first: to open a FIFO that
// no process writes to takes until one does.
func openUntil(ctx context.Context, paths []string, names map[string]string) (*capture.Merged, error) {
	var source *capture.Merged
	var err error
	opened := make(chan struct{})
	go func() {
		source, err = capture.OpenAllAs(paths, names)
		close(opened)
	}()
	select {
	case <-opened:
		return source, err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: interrupted before the input could be opened", printable(strings.Join(paths, " ")))
	}
}

// shown adds to what is wrong with a command's arguments what it takes.
func shown(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// known refuses the help of a command that there is not.
func known(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return nil
	}
	if near := found.SuggestionsFor(rest[0]); len(near) > 0 {
		return fmt.Errorf("no command %s; did you mean %s?", rest[0], list(near, "or"))
	}
	return fmt.Errorf("no command %s; see %s --help", rest[0], found.CommandPath())
}

// mistyped says that the first argument is neither a file nor a command, but
// nearly a command.
func mistyped(cmd *cobra.Command, name string) error {
	if cmd.HasParent() || name == "-" {
		return nil
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("no command or file %s; did you mean %s?", name, list(near, "or"))
	}
	return nil
}
