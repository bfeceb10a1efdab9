package capture

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// In returns the paths of the captures in a folder and in the folders below it, in the order of their names. It recognizes them by
// their content, and leaves out hidden files and folders, and symbolic links to folders in the folder. If folders below it cannot be read,
// In returns the other captures together with the joined errors. The error wraps [ErrFormat] if there are no captures.
func In(folder string) (paths []string, err error) { return in(folder, filepath.WalkDir) }

// in is In with a function that walks through a folder.
func in(folder string, walk func(root string, visit fs.WalkDirFunc) error) (paths []string, err error) {
	var unread error
	root := strings.TrimRight(folder, string(filepath.Separator)) + string(filepath.Separator) // so that a link to a folder is followed
	err = walk(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && (path == root || e == nil):
			return err
		case path != root && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case err != nil:
			if reason := (*fs.PathError)(nil); errors.As(err, &reason) {
				err = reason.Err
			}
			unread = errors.Join(unread, fmt.Errorf("%s: the folder cannot be read: %w", path, err))
			return fs.SkipDir
		case !e.IsDir() && isCapture(path):
			paths = append(paths, path)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(paths) == 0 && unread != nil:
		return nil, unread
	case len(paths) == 0:
		return nil, fmt.Errorf("%s: the folder contains no capture: %w", folder, ErrFormat)
	case len(paths) > math.MaxUint16:
		return nil, fmt.Errorf("%s: the folder contains %d captures, at most %d can be read at once", folder, len(paths), math.MaxUint16)
	}
	return paths, unread
}

// isCapture reports whether a file begins as a capture does, perhaps compressed.
func isCapture(path string) bool {
	if !isRegular(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return true // The function that reads the file reports why it cannot be opened.
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return false
	}
	head := magic[:]
	if isGzip(head) || isZstd(head) {
		if head = headOf(path, len(head)); len(head) < len(magic) {
			return false
		}
	}
	return pcapOrder(head) != unknownOrder || string(head) == "\n\r\r\n"
}
