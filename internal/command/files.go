package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rdmadump/rdmadump/render"
)

// Regular reports whether a file is a regular file, and not a pipe.
func Regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Sysfs is the folder in which the kernel lists the RDMA devices of each interface.
const Sysfs = "/sys"

// Cause returns an error of a file without the name of the system call and the path, which
// messages give as they were typed.
func Cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// RefuseInput returns an error if the file at path, the value of a flag, is one of the
// captures that are read, or the file that an output goes to, because writing it
// would destroy the capture or the output.
func RefuseInput(flag, path string, captures []string, outputs ...io.Writer) error {
	out, err := os.Stat(path)
	if err != nil {
		return nil // The file does not exist, so it is not a capture.
	}
	is := func(f *os.File) bool {
		info, err := f.Stat()
		return err == nil && info.Mode().IsRegular() && os.SameFile(info, out)
	}
	for _, name := range captures {
		in, err := os.Stat(name)
		if name == "-" && is(os.Stdin) || name != "-" && err == nil && os.SameFile(in, out) {
			return fmt.Errorf("%s %s: this file is one of the captures that are read; choose another name", flag, render.Clean(path))
		}
	}
	for _, w := range outputs {
		if f, isFile := w.(*os.File); isFile && is(f) {
			return fmt.Errorf("%s %s: standard output or standard error goes to this file; choose another name", flag, render.Clean(path))
		}
	}
	return nil
}

// Until returns what open returns, or an error that names what is opened if ctx ends first: to open a FIFO takes until another process
// opens its other end.
func Until[T any](ctx context.Context, what string, open func() (T, error)) (T, error) {
	var opened T
	var err error
	done := make(chan struct{})
	go func() {
		opened, err = open()
		close(done)
	}()
	select {
	case <-done:
		return opened, err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: interrupted before it could be opened", render.Clean(what))
	}
}

// ReadSide returns the content of the file that a flag names, at most most bytes and one more. It returns an error if ctx ends before the end
// of a FIFO.
func ReadSide(ctx context.Context, flag, path string, most int64) ([]byte, error) {
	return Until(ctx, flag+" "+path, func() ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", flag, render.Clean(path), Cause(err))
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, most+1))
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", flag, render.Clean(path), Cause(err))
		}
		return text, nil
	})
}

// SameFile reports whether two paths name the same file, which need not exist yet.
func SameFile(a, b string) bool {
	x, failed := os.Stat(a)
	y, err := os.Stat(b)
	if failed == nil || err == nil {
		return failed == nil && err == nil && os.SameFile(x, y)
	}
	return filepath.Base(a) == filepath.Base(b) && sameFolder(filepath.Dir(a), filepath.Dir(b))
}

// sameFolder reports whether two paths name the same folder, which exists.
func sameFolder(a, b string) bool {
	x, failed := os.Stat(a)
	y, err := os.Stat(b)
	return failed == nil && err == nil && os.SameFile(x, y)
}

// LaterFile is a file that a flag names to be written. It is opened early, and what it contains remains until begin is
// called.
type LaterFile struct {
	*os.File
	flag    string
	created bool // it did not exist
	begun   bool
}

// OpenLater opens the file that a flag names to be written, or creates it.
func OpenLater(flag, path string) (*LaterFile, error) {
	created := true
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		created = false
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, render.Clean(path), Cause(err))
	}
	return &LaterFile{File: f, flag: flag, created: created}, nil
}

// Begin empties the file.
func (l *LaterFile) Begin() error {
	if l.begun = true; !Regular(l.File) {
		return nil
	}
	if err := l.Truncate(0); err != nil {
		return fmt.Errorf("%s %s: %w", l.flag, render.Clean(l.Name()), Cause(err))
	}
	return nil
}

// Close closes the file. It removes the file if it did not exist and nothing was written.
func (l *LaterFile) Close() error {
	err := l.File.Close()
	if l.created && !l.begun {
		os.Remove(l.Name())
	}
	return err
}

// OutFile is an output file. It gets its name only when it is complete.
type OutFile struct {
	io.Writer
	path, Folder string
	file         *os.File // nil for standard output
	temporary    bool     // file has a temporary name
}

// Create creates the output file for path. It returns an error if path is one of
// the inputs, or the file that standard output goes to, or if ctx ends before another process opens a pipe.
func Create(ctx context.Context, path string, inputs []string, stdout io.Writer) (*OutFile, error) {
	if path == "-" {
		return &OutFile{Writer: stdout}, nil
	}
	if err := RefuseInput("-w", path, inputs, stdout); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe or a device
		f, err := Until(ctx, path, func() (*os.File, error) { return os.OpenFile(path, os.O_WRONLY, 0) })
		if err != nil {
			return nil, fmt.Errorf("-w: %w", err)
		}
		return &OutFile{Writer: f, path: path, file: f}, nil
	}
	folder := filepath.Dir(path)
	f, err := os.CreateTemp(folder, ".rdmadump-*")
	if err != nil {
		if failed := (*fs.PathError)(nil); errors.As(err, &failed) { // The temporary file's name would not help.
			err = fmt.Errorf("cannot create a file in %s: %w", folder, failed.Err)
		}
		return nil, fmt.Errorf("-w %s: %w", path, err)
	}
	return &OutFile{Writer: f, path: path, Folder: folder, file: f, temporary: true}, nil
}

// Done closes the file and, if err is nil, gives it its name; otherwise it removes
// the file. err is the error of writing it.
func (f *OutFile) Done(err error) error {
	if f.file == nil {
		return err
	}
	if f.temporary && err == nil {
		err = f.file.Chmod(0o644)
	}
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	switch {
	case !f.temporary:
	case err != nil:
		os.Remove(f.file.Name())
	default:
		err = os.Rename(f.file.Name(), f.path)
	}
	return err
}
