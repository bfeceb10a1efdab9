// Package arrows compares the imports of every package with the table in
// docs/architecture.md. The imports are the arrows between the packages: a new one
// changes the design, so the table must change with it.
package arrows

import (
	"bytes"
	"fmt"
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

// maxParameters is the maximum number of parameters of a function. With more parameters,
// readers of a call cannot tell which argument is which.
const maxParameters = 5

// TestParameters: no function has more than maxParameters parameters, not counting a
// variadic one.
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
		t.Errorf("functions with more than %d parameters: %q", maxParameters, long)
	}
}

// maxPaths is the maximum number of paths through a function: one, and one more for each condition, loop and case. Nobody
// can keep more of them in mind.
const maxPaths = 40

// TestPaths: no function has more than maxPaths paths.
func TestPaths(t *testing.T) {
	var long []string
	functions := 0
	eachFile(t, func(path string, _ bool) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			functions++
			name, _ := filepath.Rel(root, path)
			name = filepath.ToSlash(name) + ": " + f.Name.Name
			if n := paths(f); n > maxPaths {
				long = append(long, fmt.Sprintf("%s has %d", name, n))
			}
		}
	})
	if slices.Sort(long); len(long) > 0 {
		t.Errorf("functions with more than %d paths, which should be several functions: %q", maxPaths, long)
	}
	if functions < 1000 {
		t.Errorf("the test found only %d functions", functions)
	}
}

// paths returns the number of paths through a function, as gocyclo counts them.
func paths(f *ast.FuncDecl) int {
	n := 1
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil { // not the default
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// maxLines is the maximum number of lines of a package without its tests.
const maxLines = 8000

// TestLines: no package has more than maxLines lines.
func TestLines(t *testing.T) {
	lines := map[string]int{}
	eachFile(t, func(path string, _ bool) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		lines[filepath.ToSlash(folder)] += bytes.Count(text, []byte("\n"))
	})
	for folder, n := range lines {
		if n > maxLines {
			t.Errorf("the package %s has %d lines, which is more than %d: split it by responsibility", folder, n, maxLines)
		}
	}
	if len(lines) < 40 {
		t.Errorf("the test found only %d packages", len(lines))
	}
}

// Limits of the interface between rdma and the protocol above it. Readers of one of the two
// packages have to know the whole interface.
const (
	maxFollower = 12 // methods of rdma.Follower
	maxLink     = 20 // methods of rdma.Link
)

// TestFollower: the interface between rdma and the protocol above it stays small, and nothing
// bypasses it with a type assertion, or with a function of rdma that takes a connection.
func TestFollower(t *testing.T) {
	follower, link := 0, 0
	asked, methods := map[string]bool{"Evict": true}, map[string]bool{} // the memory limit calls Evict
	eachFile(t, func(path string, separate bool) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		if folder != "dissect" && !strings.HasPrefix(folder, "dissect/internal/") || strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && folder == "dissect/internal/rdma" && n.Name.Name == "Follower" {
					follower = i.Methods.NumFields()
				} else if ok && folder == "dissect/internal/rdma" && n.Name.Name == "Link" {
					link = i.Methods.NumFields()
					for _, m := range i.Methods.List {
						asked[m.Names[0].Name] = true
					}
				}
			case *ast.FuncDecl:
				if folder != "dissect/internal/rdma" || !n.Name.IsExported() {
					break
				}
				if n.Recv != nil && receiver(n.Recv.List[0].Type) == "Conn" {
					methods[n.Name.Name] = true
				}
				for _, p := range n.Type.Params.List {
					if n.Recv == nil && receiver(p.Type) == "Conn" {
						t.Errorf("rdma.%s takes a connection: make it a method of rdma.Link", n.Name.Name)
					}
				}
			case *ast.TypeAssertExpr:
				if e, ok := n.Type.(*ast.StarExpr); ok && receiver(e) == "connState" {
					t.Errorf("%s gets the state of a connection with a type assertion", name)
				}
			}
			return true
		})
	})
	if follower == 0 || follower > maxFollower {
		t.Errorf("rdma.Follower has %d methods, and %d are the most", follower, maxFollower)
	}
	if link == 0 || link > maxLink {
		t.Errorf("rdma.Link has %d methods, and %d are the most", link, maxLink)
	}
	for name := range methods {
		if !asked[name] {
			t.Errorf("rdma.Conn.%s is exported, and no method of rdma.Link", name)
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

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
