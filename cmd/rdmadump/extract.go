package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/extract"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// extractView says which flags extract takes.
var extractView = &view{name: "extract", fields: query.Transactions, without: shows}

// newExtract writes file data of READ and WRITE to files.
func newExtract(stdout, stderr io.Writer) *cobra.Command {
	f := new(flags)
	var folder string
	cmd := &cobra.Command{
		Use: "extract FILE... -C DIR", Short: "Write the file data of READ and WRITE to files",
		Long: `extract writes the data that READs and WRITEs carried below the folder DIR, a file
for each NFS file: by its path where the capture shows it (LOOKUP, OPEN, CREATE,
READDIR, RENAME, MOUNT), by its file handle otherwise. It never writes outside of
DIR, nor over what is there: a name that is taken gets a number behind it.

A line for each file says how long it is, and what of it the capture does not
show: that is zeros. --xid, --conn, -Y, --from and --to choose whose data to take.`,
		Example: `  rdmadump extract nfs.pcap -C files
  rdmadump extract nfs.pcap -C files -o json | jq 'select(.holes > 0)'`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.extract(cmd, args, folder, stdout, stderr) },
	}
	f.define(cmd.Flags(), extractView)
	cmd.Flags().StringVarP(&folder, "directory", "C", "", "write below this `folder`, which is made when it is not there")
	cmd.MarkFlagRequired("directory")
	return cmd
}

func (f *flags) extract(cmd *cobra.Command, paths []string, folder string, stdout, stderr io.Writer) error {
	r, err := f.openRun(cmd, extractView, paths, stderr)
	if err != nil {
		return err
	}
	defer r.source.Close()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("-C %s: %w", folder, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("-C %s: %w", folder, err)
	}
	defer root.Close()
	e, err := extract.New(root)
	if err != nil {
		return fmt.Errorf("-C %s: %w", folder, err)
	}
	defer e.Abandon()
	e.Wants = r.asked
	if err := r.feed(e.Handler(), true); err != nil {
		return err
	}
	var failed error // of standard output
	unwritten := 0
	err = e.Finish(func(f *extract.File) {
		if f.Error.Known() {
			unwritten++
		}
		line := []byte(fileLine(f) + "\n")
		if r.json {
			line = render.AppendJSON(nil, f)
		}
		if _, err := stdout.Write(line); err != nil && failed == nil {
			failed = err
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if !r.quiet && !r.json {
		fmt.Fprintf(stderr, "rdmadump: %s\n", &e.Report)
	}
	if r.err == nil && unwritten > 0 {
		return fmt.Errorf("%d files could not be written", unwritten)
	}
	return r.ended()
}

// fileLine is a line for people.
func fileLine(f *extract.File) string {
	s := fmt.Sprintf("%12d  %s", f.Size, printable(f.Path))
	switch {
	case f.Error.Known():
		s += "  not written: " + printable(f.Error.Or(""))
	case f.Holes > 0:
		s += fmt.Sprintf("  with %d bytes missing in %d holes", f.HoleBytes, f.Holes)
	}
	if f.Scattered {
		s += ", or fewer: it is in more ranges than are counted"
	}
	return s
}
