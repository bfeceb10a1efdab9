// Package arrows holds the imports of every room against the table of
// docs/architecture.md: an arrow that the table does not have is a design that
// changed without saying so.
package arrows

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/rdmadump/rdmadump/"
)

// TestArrows: no room imports what the table does not let it, and every room is in
// the table.
func TestArrows(t *testing.T) {
	allowed := table(t)
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir // a module of its own
			}
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		room, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		room = filepath.ToSlash(room)
		may, known := allowed[room]
		if !known {
			if !seen[room] {
				t.Errorf("%s is no room of docs/architecture.md", room)
			}
			seen[room] = true
			return nil
		}
		seen[room] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if ours, is := strings.CutPrefix(name, module); is && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s (%s), which docs/architecture.md does not let it", room, ours, filepath.Base(path))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 20 {
		t.Errorf("only %d rooms were found", len(seen))
	}
}

// table reads what each room may import.
func table(t *testing.T) map[string][]string {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([a-z0-9/]+)`")
	rooms := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || !strings.HasPrefix(strings.TrimSpace(columns[1]), "`") {
			continue
		}
		var may []string
		for _, m := range quoted.FindAllStringSubmatch(columns[3], -1) {
			may = append(may, m[1])
		}
		rooms[quoted.FindStringSubmatch(columns[1])[1]] = may
	}
	return rooms
}
