package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// Partition is the folder of a capture in each table: names and values, in the order of the folders. Engines that query the tables
// add them as columns.
type Partition []Level

// Level is one level of a partition.
type Level struct{ Key, Value string }

// validKey matches the keys that every engine takes without quotes.
var validKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// maxName is the length that the name of a folder may have, in bytes.
const maxName = 255

// ParsePartition returns the partition of texts of the form KEY=VALUE.
func ParsePartition(list []string) (p Partition, err error) {
	for _, text := range list {
		name, value, found := strings.Cut(text, "=")
		switch {
		case !found:
			return nil, fmt.Errorf("%q is not of the form KEY=VALUE, such as host=node7", text)
		case !validKey.MatchString(name):
			return nil, fmt.Errorf("the key %q: a key has the form [a-z][a-z0-9_]*", name)
		case isColumn(name):
			return nil, fmt.Errorf("the key %s is a column of the tables; choose another one", name)
		case slices.ContainsFunc(p, func(l Level) bool { return l.Key == name }):
			return nil, fmt.Errorf("the key %s is given twice", name)
		case value == "":
			return nil, fmt.Errorf("the value of %s is empty", name)
		case !utf8.ValidString(value):
			return nil, fmt.Errorf("the value of %s is not UTF-8: %q", name, value)
		}
		level := Level{name, value}
		if n := len(level.folder()); n > maxName {
			return nil, fmt.Errorf("the value of %s is too long: the name of its folder would have %d bytes, and %d are the most", name, n, maxName)
		}
		p = append(p, level)
	}
	return p, nil
}

// isColumn reports whether a table has a column of this name.
func isColumn(name string) bool {
	t := newTables()
	return slices.ContainsFunc(t.parts(), func(p part) bool { return p.has(name) })
}

// ByName returns the partition of a capture that has none of its own: the base name of its file, in which "_" replaces all
// characters that may have a meaning for query engines.
func ByName(name string) Partition {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(name))
	if strings.Trim(name, ".") == "" {
		name = "_"
	}
	return Partition{{"capture", name[:min(len(name), maxName-len("capture="))]}}
}

// folder returns the name of the folder, in which %XX stands for the characters that Hive does not write, and for the bytes of those
// that change how a terminal shows the others.
func (l Level) folder() string {
	var b strings.Builder
	for _, r := range l.Value {
		if unicode.IsPrint(r) && !strings.ContainsRune("\"#%'*/:=?\\{[]^", r) {
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return l.Key + "=" + b.String()
}

// Path returns the path of the partition below the folder of a table.
func (p Partition) Path() string {
	var names []string
	for _, l := range p {
		names = append(names, l.folder())
	}
	return filepath.Join(names...)
}

// fits returns an error if the folder of a table has files that cannot be queried together with those of the writer: other
// partitions, or other files than tables of this version. It removes the files of processes that were killed.
func (w *Writer) fits(table string) error {
	at := filepath.Join(w.folder, Version, table)
	other, err := partitionOf(at)
	if err != nil {
		return err
	}
	names := strings.Split(w.partition, string(filepath.Separator))
	for _, name := range names {
		key, _, _ := strings.Cut(name, "=")
		list, err := entries(at)
		if err != nil {
			return err
		}
		for _, e := range list {
			if other, _, found := strings.Cut(e.Name(), "="); isRead(e) && (!found || other != key || !e.IsDir()) {
				return fmt.Errorf("%s: this is not a partition by %s, as the new one is: engines cannot query both together; use the partitions that the folder has, or another folder", filepath.Join(at, e.Name()), key)
			}
		}
		at = filepath.Join(at, name)
	}
	if other != "" && strings.Count(other, string(filepath.Separator))+1 != len(names) {
		return fmt.Errorf("%s: this partition has another number of keys than the new one: engines cannot query both together; use the keys that the folder has, or another folder", filepath.Join(w.folder, Version, table, other))
	}
	list, err := entries(at)
	if err != nil {
		return err
	}
	removeAbandoned(at, list)
	w.removeUnready(table, list)
	if i := slices.IndexFunc(list, isRead); i >= 0 {
		return ofThisVersion(filepath.Join(at, list[i].Name())) // one file is enough
	}
	return nil
}

// partitionOf returns the partition of the first file of a table, whose folder is at; empty if it has no file in a partition.
func partitionOf(at string) (partition string, err error) {
	err = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist), path == at && err == nil:
			return nil
		case err != nil:
			return err
		case !isRead(e) && e.IsDir():
			return fs.SkipDir
		case !isRead(e) || e.IsDir() || filepath.Dir(path) == at:
			return nil
		}
		partition, err = filepath.Rel(at, filepath.Dir(path))
		return cmp.Or(err, fs.SkipAll)
	})
	return partition, err
}

// entries returns what a folder has; a folder that does not exist has nothing.
func entries(folder string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// isRead reports whether engines read a file or a folder: they ignore names such as _SUCCESS and those that begin with a dot.
func isRead(e fs.DirEntry) bool { return e.Name()[0] != '.' && e.Name()[0] != '_' }

// The names of files that are not complete begin and end like this, with a number between.
const temporaryBegins, temporaryEnds = ".part-", ".tmp"

// abandonedAfter is the time after which a file is abandoned that no process holds a lock on. A process locks a file when it has
// created it, and closes it before it gives the file its name.
const abandonedAfter = time.Minute

// removeAbandoned removes the files that processes began in a folder and never completed, because they were killed.
func removeAbandoned(folder string, list []fs.DirEntry) {
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), temporaryBegins) || !strings.HasSuffix(e.Name(), temporaryEnds) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		path := filepath.Join(folder, e.Name())
		if f, err := os.Open(path); err == nil {
			if lock(f) {
				os.Remove(path)
			}
			f.Close()
		}
	}
}

// A complete file has a name like this until the files of all tables of the capture are complete: that of the file, and a number.
const readyEnds = ".ready"

// readyName returns the name that a file has until those of all tables are complete. The temporary file has a number.
func readyName(name, temporary string) string {
	number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(temporary), temporaryBegins), temporaryEnds)
	return "." + name + "." + number + readyEnds
}

// nameOfReady returns the name that a file gets after that of readyName; empty if the name is no such one.
func nameOfReady(ready string) string {
	name, number := strings.TrimSuffix(ready, readyEnds), ""
	if i := strings.LastIndexByte(name, '.'); i > 0 && name != ready {
		name, number = name[:i], name[i+1:]
	}
	if number == "" || !strings.HasPrefix(name, temporaryBegins) || !strings.HasSuffix(name, ".parquet") {
		return ""
	}
	return name[1:]
}

// recover completes what processes that were killed had begun to publish in the partition. The files of all tables are complete before
// the first of them gets its name, and the last table is the last to be prepared and to get it: if its file is ready, all are.
func (w *Writer) recover() error {
	parts := w.parts()
	at := func(p part) string { return filepath.Join(w.folder, Version, p.table(), w.partition) }
	folder := at(parts[len(parts)-1])
	list, err := entries(folder)
	if err != nil {
		return err
	}
	for _, e := range list {
		name := nameOfReady(e.Name())
		if name == "" || !e.Type().IsRegular() {
			continue
		}
		f, err := os.Open(filepath.Join(folder, e.Name()))
		if err != nil {
			continue // its process has completed it
		}
		if lock(f) {
			for _, p := range parts {
				from := filepath.Join(at(p), e.Name())
				if err = rename(from, filepath.Join(at(p), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					f.Close()
					return err
				}
				os.Remove(from) // if both names are links to one file, Rename leaves both
			}
		}
		f.Close()
	}
	return nil
}

// removeUnready removes the files of a table that processes completed that were killed before those of the other tables were complete.
func (w *Writer) removeUnready(table string, list []fs.DirEntry) {
	for _, e := range list {
		if nameOfReady(e.Name()) == "" || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		if _, err := os.Lstat(filepath.Join(w.folder, Version, w.captures.name, w.partition, e.Name())); errors.Is(err, fs.ErrNotExist) {
			os.Remove(filepath.Join(w.folder, Version, table, w.partition, e.Name()))
		}
	}
}

// ofThisVersion returns an error if a file is not one of a table that this program writes.
func ofThisVersion(path string) error {
	info, err := os.Stat(path) // first, because to open a FIFO would take until somebody writes to it
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: this is not a file of a table; use another folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	table, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: this is not a file of a table: %v; use another folder", path, err)
	}
	if version, _ := table.Lookup(metadata); version != Version {
		return fmt.Errorf("%s: this table has not the schema %s of rdmadump; use another folder", path, Version)
	}
	return nil
}
