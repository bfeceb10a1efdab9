package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/render"
)

// OnlyFiles copies inputs that are not files to temporary files, because the page contains the
// checksum of each capture. It returns the paths to read and the names of the copies. The caller calls
// remove in any case.
func OnlyFiles(cmd *cobra.Command, given []string) (paths []string, called map[string]string, remove func(), err error) {
	paths, called = slices.Clone(given), map[string]string{}
	remove = func() {
		for path := range called {
			os.Remove(path)
		}
	}
	for i, name := range given {
		info, err := os.Stat(name)
		if name != "-" && (err != nil || info.Mode().IsRegular() || info.IsDir()) {
			continue // openNamed reports files that cannot be opened
		}
		if at := slices.Index(given, name); at < i { // openNamed reports inputs that are named twice
			paths[i] = paths[at]
			continue
		}
		shown := name
		if name == "-" {
			shown = "standard input"
		}
		copied, err := copyInput(cmd.Context(), func() (io.ReadCloser, error) {
			if name == "-" {
				return io.NopCloser(cmd.InOrStdin()), nil
			}
			return os.Open(name)
		})
		if err != nil {
			return nil, nil, remove, fmt.Errorf("%s: %w", render.Clean(shown), err)
		}
		paths[i], called[copied] = copied, shown
	}
	return paths, called, remove, nil
}

// copyInput copies an input that can be read only once to a temporary file and
// returns its path. If ctx is canceled, it removes the file and returns an error.
func copyInput(ctx context.Context, open func() (io.ReadCloser, error)) (path string, err error) {
	out, err := os.CreateTemp("", "rdmadump-*")
	if err != nil {
		return "", err
	}
	copied := make(chan error, 1)
	go func() { // opening and reading a pipe may block forever
		in, err := open()
		if err == nil {
			_, err = io.Copy(out, in)
			in.Close()
		}
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		err = errors.New("interrupted")
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(out.Name())
	}
	return out.Name(), err
}
