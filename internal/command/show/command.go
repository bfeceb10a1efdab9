package show

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/render"
)

// viewing is the command of a view.
type viewing struct {
	flags.Typed
	view           *flags.View
	stdout, stderr io.Writer
}

// NewView returns the command of a view.
func NewView(v *flags.View, stdout, stderr io.Writer) *cobra.Command {
	x := &viewing{view: v, stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: v.Name + " [flags] FILE...", Short: v.Short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, paths []string) error { return x.run(cmd, paths) },
	}
	x.Define(cmd.Flags(), v)
	return cmd
}

// run reads captures and shows their records.
func (x *viewing) run(cmd *cobra.Command, paths []string) error {
	f, stdout, stderr := &x.Typed, x.stdout, x.stderr
	if err := x.view.Check(cmd); err != nil {
		return err
	}
	if slices.Equal(f.Look.Columns, []string{"help"}) {
		_, err := io.WriteString(stdout, render.ColumnsShown(x.view.Fields.Of()))
		return err
	}
	set, err := f.Parse(cmd.Context(), x.view, true)
	if err != nil {
		return err
	}
	if f.Rules || f.Explain != "" && x.view.Name != "overview" {
		return f.Explains(x.view, stdout)
	}
	if f.Accept != "" {
		if err := command.RefuseInput("--write-baseline", f.Accept, paths, stdout, stderr); err != nil {
			return err
		}
	}
	given := paths
	paths, remove, err := input.Spooled(cmd, f, paths, stderr)
	defer remove()
	if err != nil {
		return err
	}
	source, records, openErr, err := input.OpenRecords(cmd, f, paths, stderr)
	if err != nil {
		return err
	}
	r := &Runner{Settings: set, Stdout: stdout, Stderr: stderr, openErr: openErr, lines: records}
	if records != nil {
		defer records.Close()
		if err := input.RefuseAnalysis(cmd, records); err != nil {
			return err
		}
		if err := set.RefuseEnd("records"); err != nil {
			return err
		}
		r.Names = input.NamesOf(given, records.Paths, f.Called)
		r.Typed += flags.Selected(cmd.Flags())
		return r.Run(cmd.Context(), nil)
	}
	r.Names = input.NamesOf(given, source.Paths(), f.Called)
	r.Typed += flags.Selected(cmd.Flags())
	in, joined, err := input.Join(cmd.Context(), f, source, set, stderr)
	if err != nil {
		return err
	}
	defer in.Close()
	r.joined = joined
	return r.Run(cmd.Context(), in)
}
