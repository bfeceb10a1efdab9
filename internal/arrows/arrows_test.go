// Package arrows holds the imports of every room against the table of
// docs/architecture.md: an arrow that the table does not have is a design that
// changed without saying so.
package arrows

import (
	"go/ast"
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

// maxParameters is how many parameters a function may have: of more, nobody knows
// at a call which is which.
const maxParameters = 5

// TestParameters: no function has more than maxParameters, but for a variadic one
// behind them.
func TestParameters(t *testing.T) {
	var long []string
	eachFile(t, func(path string, _ bool) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := f.Type.Params.NumFields()
			if list := f.Type.Params.List; n > 0 {
				if _, variadic := list[len(list)-1].Type.(*ast.Ellipsis); variadic {
					n--
				}
			}
			if n > maxParameters {
				name, _ := filepath.Rel(root, path)
				long = append(long, filepath.ToSlash(name)+": "+f.Name.Name)
			}
		}
	})
	if slices.Sort(long); len(long) > 0 {
		t.Errorf("functions of more than %d parameters: %q", maxParameters, long)
	}
}

// eachFile visits the Go files of this module, and of those that stand apart in
// folders of it.
func eachFile(t *testing.T, visit func(path string, apart bool)) {
	t.Helper()
	module := root // whose files these are
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			module = path
		} else if !strings.HasPrefix(path, module+string(filepath.Separator)) {
			module = root
		}
		if strings.HasSuffix(path, ".go") {
			visit(path, module != root)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestArrows: no room imports what the table does not let it, and every room is in
// the table.
func TestArrows(t *testing.T) {
	allowed := table(t)
	seen := map[string]bool{}
	eachFile(t, func(path string, apart bool) {
		if apart || strings.HasSuffix(path, "_test.go") {
			return
		}
		room, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		room = filepath.ToSlash(room)
		may, known := allowed[room]
		if !known {
			if !seen[room] {
				t.Errorf("%s is no room of docs/architecture.md", room)
			}
			seen[room] = true
			return
		}
		seen[room] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if ours, is := strings.CutPrefix(name, module); is && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s (%s), which docs/architecture.md does not let it", room, ours, filepath.Base(path))
			}
		}
	})
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
