// Package input opens what the command line names: captures, several capture points of the same traffic, or JSON lines that
// rdmadump wrote.
package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// First is a source that calls a function for its first frame.
type First struct {
	Source
	Begin func(first *capture.Frame) error
	begun bool
}

// BeginError is the error of the function that [First] calls, which is no error of the input.
type BeginError struct{ Err error }

func (e *BeginError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the function.
func (e *BeginError) Unwrap() error { return e.Err }

// ReadBatch returns the next packets, or a BeginError.
func (s *First) ReadBatch(ctx context.Context, b *capture.Batch) error {
	if err := s.Source.ReadBatch(ctx, b); err != nil || s.begun || len(b.Frames) == 0 {
		return err
	}
	s.begun = true
	if err := s.Begin(&b.Frames[0]); err != nil {
		b.Release()
		return &BeginError{err}
	}
	return nil
}

// None calls the function without a frame, if the source had none. It is called after the source has ended.
func (s *First) None() error {
	if s.begun {
		return nil
	}
	s.begun = true
	return s.Begin(nil)
}

// fewNames is the largest number of names that suggested commands repeat.
const fewNames = 3

// NamesOf returns the names of the inputs, of which given are those on the command line, and paths those that are read. Suggested
// commands have folders as they were typed, leave out files that cannot be read, and do not repeat many names. Called has the names of
// copies.
func NamesOf(given, paths []string, called map[string]string) Names {
	folders := slices.ContainsFunc(given, isFolder)
	if folders {
		paths = slices.DeleteFunc(slices.Clone(given), func(path string) bool { return !isFolder(path) && !slices.Contains(paths, path) })
	}
	var shown, typed []string
	piped := false
	for _, path := range paths {
		copied := called[path]
		shown = append(shown, cmp.Or(copied, path))
		if copied != "" || isPipe(path) {
			typed, piped = append(typed, saved), true
			continue
		}
		typed = append(typed, shell.File(path))
	}
	names := Names{Shown: strings.Join(shown, " "), Typed: strings.Join(typed, " "), Piped: piped}
	if len(paths) > fewNames {
		names.Typed = "FILE..."
	}
	if len(shown) > 0 {
		names.Title = filepath.Base(shown[0])
	}
	switch n := len(shown); {
	case n == 2:
		names.Title += " + 1"
	case n > 2:
		names.Title += fmt.Sprintf(", %d files", n)
	}
	return names
}

// saved is what suggested commands have instead of an input that can be read only once.
const saved = "FILE"

// isFolder reports whether a path is that of a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Expand replaces each folder by the captures in it. Folders in it that cannot be read become f.Unread.
func Expand(f *flags.Typed, given []string) (paths []string, err error) {
	if !slices.ContainsFunc(given, isFolder) {
		return given, nil
	}
	for _, path := range given {
		if !isFolder(path) {
			paths = append(paths, path)
			continue
		}
		files, err := capture.In(path)
		if files == nil {
			return nil, err
		}
		f.Unread = errors.Join(f.Unread, err)
		paths = append(paths, files...)
	}
	return paths, nil
}

// OpenNamed opens the captures that the command line names. If some cannot be opened, it
// reports them on standard error, opens the others, and returns the error as failed, from
// which the caller determines the exit status.
func OpenNamed(cmd *cobra.Command, f *flags.Typed, paths []string, stderr io.Writer) (source *capture.Merged, failed, err error) {
	if len(paths) == 0 {
		return nil, nil, fmt.Errorf("no input: name a FILE, or use - for standard input; see %s --help", cmd.CommandPath())
	}
	for i, path := range paths {
		if err := mistyped(cmd, path, i > 0); err != nil {
			return nil, nil, err
		}
	}
	f.Memory.Observe()
	if paths, err = Expand(f, paths); err != nil {
		return nil, nil, err
	}
	if source, failed = OpenUntil(cmd.Context(), paths, f.Called); source == nil {
		return nil, nil, failed
	}
	failed = errors.Join(f.Unread, failed)
	if texts, _ := capture.Texts(failed); failed != nil && texts == nil {
		command.Say(stderr, "%s; rdmadump reads the other files", strings.Join(few(strings.Split(failed.Error(), "\n")), "\n"))
	}
	if repeated := source.Repeated(); len(repeated) > 0 && !f.Quiet {
		for _, path := range repeated[:min(len(repeated), fewLines)] {
			command.Say(stderr, "%s is named twice and is read only once", render.Clean(path))
		}
		if more := len(repeated) - fewLines; more > 0 {
			command.Say(stderr, "%s %s named twice and read only once", record.Plural(more, "more file"), record.Are(more))
		}
	}
	return source, failed, nil
}

// fewLines is the largest number of files of which each has a message of its own.
const fewLines = 8

// few returns the first lines, and the number of the others.
func few(lines []string) []string {
	if more := len(lines) - fewLines; more > 1 {
		return append(lines[:fewLines:fewLines], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// OpenUntil opens captures, and returns an error if ctx ends first.
func OpenUntil(ctx context.Context, paths []string, names map[string]string) (*capture.Merged, error) {
	return command.Until(ctx, strings.Join(paths, " "), func() (*capture.Merged, error) { return capture.OpenAllAs(paths, names) })
}

// mistyped returns an error if an argument is no file, but a command, or looks like one: it is similar to the name of one, or a word without a
// dot or a slash. Later arguments only are commands, or paths on the server.
func mistyped(cmd *cobra.Command, name string, later bool) error {
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) || name == "-" {
		return nil
	}
	switch is := func(c *cobra.Command) bool { return c.Name() == name }; {
	case later && slices.ContainsFunc(cmd.Root().Commands(), is):
		return fmt.Errorf("%[1]s is not a file; the command comes first: rdmadump %[1]s FILE", name)
	case later && cmd.Name() == "files":
		return fmt.Errorf("there is no capture %s; a file on the server is selected by a filter: rdmadump files FILE -Y 'file == %[1]q'", render.Clean(name))
	case later || cmd.HasParent():
		return nil
	}
	if near := Similar(cmd, name); len(near) > 0 {
		return fmt.Errorf("%s is neither a command nor a file; did you mean %s?", render.Clean(name), command.List(near, "or"))
	}
	if !strings.ContainsAny(name, "./\\") {
		return fmt.Errorf("%s is neither a command nor a file; see rdmadump --help", render.Clean(name))
	}
	return nil
}

// Similar returns the commands below cmd whose names begin with name, or differ from it in
// at most a third of its letters.
func Similar(cmd *cobra.Command, name string) []string {
	cmd.SuggestionsMinimumDistance = len(name) / 3
	return cmd.SuggestionsFor(name)
}

// Source is a source of frames.
type Source interface {
	capture.Source
	Progress() (read, total int64)
	Dropped() uint64
	Close() error
}

// Names are the names of the captures of a run.
type Names struct {
	Shown string // for messages
	Title string // for titles: the name of the first file, without folders
	Typed string // quoted for a shell
	Piped bool   // an input can be read only once; Typed has FILE instead
}
