package export

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/extract"
	"github.com/rdmadump/rdmadump/render"
)

// NewExtract returns the command extract.
func NewExtract(stdout, stderr io.Writer) *cobra.Command {
	f := &flags.Typed{MaxSize: extract.DefaultMaxSize}
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
			return extractTo(cmd, f, args, stdout, stderr)
		},
	}
	f.DefineCommand(cmd, flags.ExtractView)
	return cmd
}

// extractTo reads captures and writes the data of files.
func extractTo(cmd *cobra.Command, f *flags.Typed, paths []string, stdout, stderr io.Writer) error {
	folder := f.Folder
	r, err := open(cmd, f, flags.ExtractView, paths, stderr)
	if err != nil {
		return err
	}
	defer r.Source.Close()
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
	e.Wants, e.MaxSize = r.Selects, int64(f.MaxSize)
	if err := r.Feed(e.Handler(), true); err != nil {
		return err
	}
	var failed error // error of writing to standard output
	unwritten := 0
	err = e.Finish(func(written *extract.File) {
		if written.Error.Known() {
			unwritten++
		}
		line := []byte(fileLine(written) + "\n")
		if r.JSON {
			line = render.AppendJSON(nil, written)
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
	if !r.Quiet && !r.JSON {
		command.Say(stderr, "%s", &e.Report)
		if e.Report.TooFar > 0 {
			command.Say(stderr, "--max-size is %s; a larger value extracts more", &f.MaxSize)
		}
	}
	if r.Err == nil && unwritten > 0 {
		return fmt.Errorf("%s could not be written; lines that say \"not written\" say why", record.Plural(unwritten, "file"))
	}
	return r.Ended()
}

// fileLine returns the line of one file in the text output.
func fileLine(f *extract.File) string {
	s := fmt.Sprintf("%12d  %s", f.Size, render.Clean(f.Path))
	switch {
	case f.Error.Known():
		s += "  not written: " + render.Clean(f.Error.Or(""))
	case f.Holes > 0:
		s += fmt.Sprintf("  %s missing in %s", record.Plural(f.HoleBytes, "byte"), record.Plural(f.Holes, "hole"))
	}
	if f.Scattered {
		s += " (upper bound: the file has more ranges than are tracked)"
	}
	return s
}
