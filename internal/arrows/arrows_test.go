// Package arrows compares the imports of every package with the table in
// docs/architecture.md. The imports are the arrows between the packages: a new one
// changes the design, so the table must change with it.
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

// eachFile calls visit for the Go files of this module, and of the separate modules in its
// folders.
func eachFile(t *testing.T, visit func(path string, separate bool)) {
	t.Helper()
	module := root // the folder of the module that the current file belongs to
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata" || entry.Name() == "node_modules") {
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

// TestArrows: packages import only packages that the table allows, and every package is in
// the table.
func TestArrows(t *testing.T) {
	allowed := table(t)
	seen := map[string]bool{}
	eachFile(t, func(path string, separate bool) {
		if separate || strings.HasSuffix(path, "_test.go") {
			return
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		pkg = filepath.ToSlash(pkg)
		may, known := allowed[pkg]
		if !known {
			if !seen[pkg] {
				t.Errorf("%s is not in the table of docs/architecture.md", pkg)
			}
			seen[pkg] = true
			return
		}
		seen[pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if ours, is := strings.CutPrefix(name, module); is && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s (%s), which the table of docs/architecture.md does not allow", pkg, ours, filepath.Base(path))
			}
		}
	})
	if len(seen) < 20 {
		t.Errorf("only %d packages were found", len(seen))
	}
}

// table returns the imports that docs/architecture.md allows for each package.
func table(t *testing.T) map[string][]string {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([a-z0-9/]+)`")
	packages := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 || !strings.HasPrefix(strings.TrimSpace(columns[1]), "`") {
			continue
		}
		var may []string
		for _, m := range quoted.FindAllStringSubmatch(columns[3], -1) {
			may = append(may, m[1])
		}
		packages[quoted.FindStringSubmatch(columns[1])[1]] = may
	}
	return packages
}
