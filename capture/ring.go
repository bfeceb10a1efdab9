package capture

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tcpdump -C writes several files: NAME and NAME1, NAME2 and so on, or, with -W, NAME0 to the last number and then
// NAME0 again. A ring is the set of these files.

// ringPoll is the interval at which a folder is searched for the next file of a ring.
const ringPoll = 200 * time.Millisecond

// ringFile is a file of a ring.
type ringFile struct {
	path    string
	number  int // -1 for the name without a number
	info    os.FileInfo
	changed time.Time
}

// compare orders files by the time at which they were last changed.
func (f *ringFile) compare(other *ringFile) int {
	return cmp.Or(f.changed.Compare(other.changed), cmp.Compare(f.number, other.number))
}

// ring returns the files of the ring of a name that exist, in no particular order.
func ring(name string) (files []ringFile) {
	folder, base := filepath.Split(name)
	entries, err := os.ReadDir(filepath.Join(folder, "."))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), base)
		number := -1
		if v, err := strconv.ParseUint(digits, 10, 31); err == nil {
			number = int(v)
		}
		if !ok || digits != "" && number < 0 {
			continue
		}
		path := folder + e.Name()
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, ringFile{path, number, info, info.ModTime()})
		}
	}
	return files
}

// Ring returns the path of the oldest file of a ring, for a capture to whose name tcpdump -C added numbers. It returns
// the name itself if that exists, or if there are no such files.
func Ring(name string) string {
	if _, err := os.Stat(name); err == nil {
		return name
	}
	first := ringFile{path: name}
	for _, f := range ring(name) {
		if first.info == nil || f.compare(&first) < 0 {
			first = f
		}
	}
	return first.path
}

// after returns the path of the file of a ring that its writer began after a file, or "" if there is none, because the
// writer still writes that file.
func after(name string, file os.FileInfo) string {
	files := ring(name)
	var current, next *ringFile
	for i := range files {
		if os.SameFile(files[i].info, file) {
			current = &files[i]
		}
	}
	if current == nil {
		return ""
	}
	for i := range files {
		if f := &files[i]; f.compare(current) > 0 && (next == nil || f.compare(next) < 0) {
			next = f
		}
	}
	if next == nil {
		return ""
	}
	return next.path
}
