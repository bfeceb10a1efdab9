package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/points"
)

// joinedMemory is the part of --memory that finding capture points may use.
const joinedMemory = 4

// standardInput is the name of standard input in messages, and of its capture point.
const standardInput = "standard input"

// isPipe reports whether an input can be read only once.
func isPipe(path string) bool {
	if path == "-" {
		return !regular(os.Stdin)
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// join recognizes files of several capture points. It returns the source to read: if there are several points, the one
// that has the packets of all of them, which is then joined, too; otherwise the merged files. The caller closes it. An
// error closes the merged files.
func (f *flags) join(ctx context.Context, merged *capture.Merged, s *settings, stderr io.Writer) (in input, joined *points.Source, err error) {
	joined, err = f.recognize(ctx, merged, s.view.name == "network", stderr)
	if s.atPoints = pointNames(joined); joined == nil && err == nil {
		return merged, nil, nil
	}
	merged.Close()
	return joined, joined, err
}

// spooled copies inputs that can be read only once to temporary files if there are several inputs, because points are
// recognized by reading all of them twice. The caller calls remove in any case.
func (f *flags) spooled(cmd *cobra.Command, paths []string, stderr io.Writer) (files []string, remove func(), err error) {
	pipe := slices.IndexFunc(paths, isPipe)
	if len(paths) < 2 || pipe < 0 || f.points == "off" {
		return paths, func() {}, nil
	}
	if name := paths[pipe]; !f.quiet {
		if name == "-" {
			name = standardInput
		}
		say(stderr, "%s is stored in a temporary file until it ends, to compare capture points; --points off reads it at once", printable(name))
	}
	files, f.called, remove, err = onlyFiles(cmd, paths)
	return files, remove, err
}

// recognize returns the source of several capture points. It returns nil if the files are one capture. It looks for
// points in a single file only if the file describes several interfaces, unless always is set.
func (f *flags) recognize(ctx context.Context, source *capture.Merged, always bool, stderr io.Writer) (*points.Source, error) {
	if f.points == "off" || !always && !source.MayHavePoints() {
		return nil, f.refuseClock(false)
	}
	var files []points.File
	for _, path := range source.Paths() {
		info, err := os.Stat(path)
		if path == "-" || err != nil || !info.Mode().IsRegular() {
			if len(source.Paths()) > 1 && !f.quiet {
				say(stderr, "%s can be read only once, so the files are merged by their own times; save it to a file to compare capture points", printable(path))
			}
			return nil, f.refuseClock(false)
		}
		name := path
		if other, is := f.called[path]; is {
			name = other
		}
		files = append(files, points.File{Path: path, Name: name})
	}
	plan, err := points.Recognize(ctx, files, points.Options{Clock: f.clock, Memory: int64(f.memory) / joinedMemory})
	if err != nil {
		return nil, err
	}
	if !f.quiet {
		for _, note := range plan.Notes {
			say(stderr, "%s", printable(note))
		}
	}
	if !plan.Joined() {
		return nil, f.refuseClock(false)
	}
	if err := f.refuseClock(plan.ClockKnown()); err != nil {
		return nil, err
	}
	return plan.Open(ctx)
}

// refuseClock returns an error if --clock names a file that is not a capture point.
func (f *flags) refuseClock(known bool) error {
	if f.clock == "" || known {
		return nil
	}
	return fmt.Errorf("--clock %s: this is not one of several capture points; name one of the files", printable(f.clock))
}

// pointNames returns the names of the capture points; it is nil if there is only one.
func pointNames(s *points.Source) (names []string) {
	if s == nil {
		return nil
	}
	for _, p := range s.Points() {
		names = append(names, p.Name)
	}
	return names
}
