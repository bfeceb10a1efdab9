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

const example = `  rdmadump overview nfs.pcap              summarize a capture on one screen
  rdmadump nfs.pcap                       list its RPCs
  rdmadump nfs.pcap --top 10              list the ten slowest RPCs
  rdmadump nfs.pcap --xid 0x4cc9dbf7      draw one RPC as a ladder diagram
  rdmadump nfs.pcap -Y 'latency > 5ms and "READ" in operations'
                                          list RPCs that match an expression
  rdmadump connections nfs.pcap --conn 0 --timeline
                                          draw credits and handles over time
  rdmadump stats nfs.pcap                 sum up counts, bytes and latency per operation
  rdmadump compare before.pcap after.pcap show what changed
  rdmadump packets -V nfs.pcap            decode every field of every header
  rdmadump packets nfs.pcap -e number -e bth.psn -e reth.r_key
                                          print some fields of each packet
  rdmadump check nfs.pcap                 report violations of the protocol
  rdmadump -o json nfs.pcap | jq 'select(.status == "no_reply")'
  ssh host cat nfs.pcap.zst | rdmadump -  read a capture from standard input
  rdmadump live -i eth0                   capture on an interface (Linux)
  ibdump -d mlx5_0 -w - | rdmadump live - capture on a hardware RDMA device`

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	root := viewCommand(views[0], stdout, stderr)
	root.Use, root.Short = "rdmadump [flags] FILE...", "Analyze captures of NFS over RDMA"
	root.Long = `rdmadump is a command-line analyzer for captures of NFS over RDMA. It reconstructs
each RPC: the memory that the RPC exposed, which side read or wrote that memory,
the credits that were in use, and the handle that was invalidated. It also reports
violations of the protocol.

FILE is a pcap or pcapng capture, uncompressed or compressed with gzip or zstd;
- is standard input. Several files are merged by time and treated as one capture.
In place of captures, FILE may have JSON lines that rdmadump wrote earlier (-o json,
or export --format records); commands that need the packets say so.
Without a command, rdmadump lists the RPC transactions.

` + exitHelp
	root.Example = example
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("rdmadump {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	for _, v := range views {
		root.AddCommand(viewCommand(v, stdout, stderr))
	}
	root.AddCommand(newBrowse(stdout, stderr), newLive(stdout, stderr), newInterfaces(stdout), newMan(root), newSchema(stdout), newExport(stdout, stderr), newReport(stdout, stderr), newExtract(stdout, stderr), newCompare(stdout, stderr), newFields(stdout), newVersion(stdout))
	root.InitDefaultHelpCmd()
	document(root)
	addHelp(root, stdout)
	for _, cmd := range append(root.Commands(), root) {
		switch {
		case cmd.Name() == "export", cmd.Name() == "extract", cmd.Name() == "report":
			cmd.PreRunE = required
		case cmd.Name() == "help":
			cmd.Args = known
		case cmd.Args != nil:
			cmd.Args = counted(cmd.Args)
		}
	}
	return root
}

// viewCommand returns the command of a view.
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
	if f.accept != "" {
		if err := refuseInput("--write-baseline", f.accept, paths, stdout, stderr); err != nil {
			return err
		}
	}
	paths, remove, err := f.spooled(cmd, paths, stderr)
	defer remove()
	if err != nil {
		return err
	}
	source, records, openErr, err := f.openRecords(cmd, paths, stderr)
	if err != nil {
		return err
	}
	r := &runner{settings: set, stdout: stdout, stderr: stderr, openErr: openErr, lines: records}
	if records != nil {
		defer records.close()
		if err := refuseAnalysis(cmd, records); err != nil {
			return err
		}
		r.names = namesOf(records.paths)
		return r.run(cmd.Context(), nil)
	}
	r.names = namesOf(source.Paths())
	in, joined, err := f.join(cmd.Context(), source, set, stderr)
	if err != nil {
		return err
	}
	defer in.Close()
	r.joined = joined
	return r.run(cmd.Context(), in)
}

// namesOf returns the names of the inputs. Suggested commands leave out files that cannot be read.
func namesOf(paths []string) names {
	var typed []string
	for _, path := range paths {
		typed = append(typed, render.Shell(path))
	}
	return names{shown: strings.Join(paths, " "), typed: strings.Join(typed, " ")}
}

// openNamed opens the captures that the command line names. If some cannot be opened, it
// reports them on standard error, opens the others, and returns the error as failed, from
// which the caller determines the exit status.
func (f *flags) openNamed(cmd *cobra.Command, paths []string, stderr io.Writer) (source *capture.Merged, failed, err error) {
	if len(paths) == 0 {
		return nil, nil, fmt.Errorf("no input: name a FILE, or use - for standard input; see %s --help", cmd.CommandPath())
	}
	if err := mistyped(cmd, paths[0]); err != nil {
		return nil, nil, err
	}
	if source, failed = openUntil(cmd.Context(), paths, f.called); source == nil {
		return nil, nil, failed
	}
	if texts, _ := capture.Texts(failed); failed != nil && texts == nil {
		say(stderr, "%v; rdmadump reads the other files", failed)
	}
	for _, path := range source.Repeated() {
		if !f.quiet {
			say(stderr, "%s is named twice and is read only once", printable(path))
		}
	}
	return source, failed, nil
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

// counted returns a check of a command's arguments whose error gives the usage of the
// command.
func counted(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("wrong number of arguments (%d); usage: %s", len(args), cmd.UseLine())
		}
		return nil
	}
}

// outputFlags gives the messages about flags that name the output of a command.
var outputFlags = map[string]string{
	"write":     "-w OUT is missing: name the file to write, or - for standard output",
	"directory": "-C DIR is missing: name the folder to write to",
}

// required returns an error if the flag that names the output is missing. It is called before
// cobra looks for required flags.
func required(cmd *cobra.Command, _ []string) error {
	for name, message := range outputFlags {
		if f := cmd.Flags().Lookup(name); f != nil && !f.Changed {
			return fmt.Errorf("%s; see %s --help", message, cmd.CommandPath())
		}
	}
	return nil
}

// known returns an error if help was asked for a command or topic that does not exist.
func known(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	switch {
	case err != nil:
		return err
	case len(rest) == 0:
		return nil
	}
	if near := similar(found, rest[0]); len(near) > 0 {
		return fmt.Errorf("no command or help topic %s; did you mean %s?", rest[0], list(near, "or"))
	}
	return fmt.Errorf("no command or help topic %s; see %s --help", rest[0], found.CommandPath())
}

// mistyped returns an error if the first argument is neither a file nor a command, but looks
// like a command: it is similar to the name of one, or a word without a dot or a slash.
func mistyped(cmd *cobra.Command, name string) error {
	if cmd.HasParent() || name == "-" {
		return nil
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if near := similar(cmd, name); len(near) > 0 {
		return fmt.Errorf("%s is neither a command nor a file; did you mean %s?", printable(name), list(near, "or"))
	}
	if !strings.ContainsAny(name, "./\\") {
		return fmt.Errorf("%s is neither a command nor a file; see rdmadump --help", printable(name))
	}
	return nil
}

// similar returns the commands below cmd whose names begin with name, or differ from it in
// at most a third of its letters.
func similar(cmd *cobra.Command, name string) []string {
	cmd.SuggestionsMinimumDistance = len(name) / 3
	return cmd.SuggestionsFor(name)
}
