package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/internal/extract"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// extractView describes the flags that extract accepts.
var extractView = &view{name: "extract", fields: query.Transactions, filters: "RPCs (by the fields of transactions)", without: shows}

// newExtract returns the command extract.
func newExtract(stdout, stderr io.Writer) *cobra.Command {
	f := new(flags)
	var folder string
	most := size(extract.DefaultMaxSize)
	cmd := &cobra.Command{
		Use: "extract FILE... -C DIR", Short: "Write the file data of READ and WRITE to files",
		Long: `extract writes the data of READs and WRITEs below the folder DIR. Each NFS file
becomes one file. It has the path that the capture shows (in LOOKUP, OPEN, CREATE,
READDIR, RENAME or MOUNT); if the capture does not show the path, the file is named
after its file handle. extract never writes outside of DIR and never overwrites
files: if a name is taken, it appends a number to the name.

One line per file tells its size and how many bytes the capture does not show;
these bytes read as zeros and take no space on disk. Data beyond --max-size is left
out and counted, because a few packets can claim a file of any size. --xid, --conn,
-Y, --from and --to select the transactions whose data is written.

With -o json, the record of a file has these fields: path, named (the capture shows the
whole path), handle, size, data (bytes that were read or written), holes (ranges that
the capture does not show) and hole_bytes (their bytes), renamed (the name was taken),
error, and scattered (data and hole_bytes are only bounds, because the file has more
ranges than are tracked).`,
		Example: `  rdmadump extract nfs.pcap -C files
  rdmadump extract nfs.pcap -C files -o json | jq 'select(.holes > 0)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.extract(cmd, args, destination{folder, most}, stdout, stderr)
		},
	}
	f.define(cmd.Flags(), extractView)
	cmd.Flags().StringVarP(&folder, "directory", "C", "", "write below this `folder`, which is created if it does not exist")
	cmd.Flags().Var(&most, "max-size", "write at most this `size` of each file, and leave out data, holes and sizes beyond it")
	cmd.MarkFlagRequired("directory")
	return cmd
}

// destination is where extract writes.
type destination struct {
	folder string
	most   size // maximum size of a file
}

func (f *flags) extract(cmd *cobra.Command, paths []string, to destination, stdout, stderr io.Writer) error {
	folder := to.folder
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
	e.Wants, e.MaxSize = r.selects, int64(to.most)
	if err := r.feed(e.Handler(), true); err != nil {
		return err
	}
	var failed error // error of writing to standard output
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
		say(stderr, "%s", &e.Report)
		if e.Report.TooFar > 0 {
			say(stderr, "--max-size is %s; a larger value extracts more", &to.most)
		}
	}
	if r.err == nil && unwritten > 0 {
		return fmt.Errorf("%d files could not be written; their lines say why", unwritten)
	}
	return r.ended()
}

// fileLine returns the line of one file in the text output.
func fileLine(f *extract.File) string {
	s := fmt.Sprintf("%12d  %s", f.Size, printable(f.Path))
	switch {
	case f.Error.Known():
		s += "  not written: " + printable(f.Error.Or(""))
	case f.Holes > 0:
		s += fmt.Sprintf("  %d bytes in %d holes are missing", f.HoleBytes, f.Holes)
	}
	if f.Scattered {
		s += " (upper bound: the file has more ranges than are tracked)"
	}
	return s
}
