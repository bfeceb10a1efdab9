package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/export"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/command/live"
	"github.com/rdmadump/rdmadump/internal/command/manual"
	"github.com/rdmadump/rdmadump/internal/command/page"
	"github.com/rdmadump/rdmadump/internal/command/show"
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
	root := show.NewView(flags.Views[0], stdout, stderr)
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

` + command.ExitHelp
	root.Example = example
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = command.Version()
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("rdmadump {{.Version}}\n")
	root.SetFlagErrorFunc(flags.Error)
	for _, v := range flags.Views {
		root.AddCommand(show.NewView(v, stdout, stderr))
	}
	root.AddCommand(live.NewBrowse(stdout, stderr), live.NewLive(stdout, stderr), live.NewInterfaces(stdout), live.NewExtcap(stdout), manual.NewMan(root), manual.NewSchema(stdout), export.NewExport(stdout, stderr), page.New(stdout, stderr), export.NewExtract(stdout, stderr), show.NewCompare(stdout, stderr), manual.NewFields(stdout), command.NewVersion(stdout))
	root.InitDefaultHelpCmd()
	manual.Document(root)
	manual.AddHelp(root, stdout)
	for _, cmd := range append(root.Commands(), root) {
		cmd.PreRunE = flags.Missing
		switch {
		case cmd.Name() == "help":
			cmd.Args = known
		case cmd.Args != nil:
			cmd.Args = counted(cmd.Args)
		}
	}
	return root
}

// counted returns a check of a command's arguments whose error gives the usage of the
// command.
func counted(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := bareXIDs(cmd, args); err != nil {
			return err
		}
		if err := check(cmd, args); err != nil {
			return fmt.Errorf("wrong number of arguments (%d); usage: %s", len(args), cmd.UseLine())
		}
		return nil
	}
}

// bareXIDs returns an error if arguments are XIDs and not files, and the command selects RPCs by their XIDs.
func bareXIDs(cmd *cobra.Command, args []string) error {
	var words []string
	for _, word := range args {
		if _, err := record.ParseHex32(word); err != nil || !strings.HasPrefix(word, "0x") {
			continue
		}
		if _, err := os.Stat(word); errors.Is(err, os.ErrNotExist) {
			words = append(words, word)
		}
	}
	if len(words) == 0 || cmd.Flags().Lookup("xid") == nil {
		return nil
	}
	return fmt.Errorf("%s %s; write XIDs as --xid %s", command.List(words, "and"), map[bool]string{true: "is no file", false: "are no files"}[len(words) == 1], strings.Join(words, " --xid "))
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
	if near := input.Similar(found, rest[0]); len(near) > 0 {
		return fmt.Errorf("no command or help topic %s; did you mean %s?", rest[0], command.List(near, "or"))
	}
	return fmt.Errorf("no command or help topic %s; see %s --help", rest[0], found.CommandPath())
}
