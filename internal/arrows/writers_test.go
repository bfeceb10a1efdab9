package arrows

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostWriters has the maximum numbers for packages that follow connections. They may only fall: readers of a
// type have to know all functions that change it.
var mostWriters = map[string]struct {
	foreign int            // functions that write a field of a type of which they are no method, over all types
	types   map[string]int // of them, those of one type
	takes   map[string]int // functions that have a pointer to a type as a parameter
}{
	"rdma":        {foreign: 73, types: map[string]int{"Conn": 3, "Operation": 0, "flow": 0, "queuePair": 6, "stream": 0, "ledger": 2}, takes: map[string]int{"flow": 14}},
	"transaction": {foreign: 104, types: map[string]int{"txn": 16}},
	"memory":      {foreign: 12, types: map[string]int{"Regions": 0}},
	"order":       {foreign: 0},
	"cause":       {foreign: 0},
	"sent":        {foreign: 0},
	"credits":     {foreign: 0},
	"upper":       {foreign: 0},
}

// TestWriters: functions that change a type are methods of it. The test counts those that are not.
func TestWriters(t *testing.T) {
	for name, most := range mostWriters {
		w := writersOf(t, filepath.Join(root, "dissect", "internal", name))
		total := 0
		for _, by := range w.foreign {
			total += len(by)
		}
		check := func(what string, n, most int) {
			switch {
			case n > most:
				t.Errorf("%s: %d %s, and %d are the most: make them methods of the type, or have them call one", name, n, what, most)
			case n < most:
				t.Logf("%s: %d %s, and the table says %d: lower it", name, n, what, most)
			}
		}
		check("functions write a field of a type of which they are no method", total, most.foreign)
		for of, n := range most.types {
			check("functions that are no method of "+of+" write a field of it", len(w.foreign[of]), n)
		}
		for of, n := range most.takes {
			check("functions take a *"+of, w.takes[of], n)
		}
		if w.own == 0 {
			t.Errorf("%s: no method writes a field of its type", name)
		}
	}
}

// writers counts the functions of a package that write fields.
type writers struct {
	info    *types.Info
	pkg     *types.Package
	foreign map[string]map[string]bool // by type, the functions that are no methods of it
	takes   map[string]int             // by type
	own     int                        // methods that write a field of their type

	receiver, function string // the current function
}

// noImports imports nothing: only types of the package itself are of interest.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// writersOf counts the functions of the package in a folder.
func writersOf(t *testing.T, folder string) *writers {
	t.Helper()
	w := &writers{foreign: map[string]map[string]bool{}, takes: map[string]int{}}
	w.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if name := e.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(fset, filepath.Join(folder, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	w.pkg, _ = config.Check(folder, fset, files, w.info)
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				w.declaration(d)
			}
		}
	}
	return w
}

// named returns the name of a struct type of the package, or of a pointer to one; otherwise it is empty.
func (w *writers) named(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() == w.pkg {
		if _, ok := n.Underlying().(*types.Struct); ok {
			return n.Obj().Name()
		}
	}
	return ""
}

// declaration counts a function.
func (w *writers) declaration(d *ast.FuncDecl) {
	w.receiver = ""
	if d.Recv != nil {
		w.receiver = w.named(w.info.TypeOf(d.Recv.List[0].Type))
	}
	w.function = w.receiver + "." + d.Name.Name
	var taken []string
	for _, p := range d.Type.Params.List {
		if t, ok := w.info.TypeOf(p.Type).(*types.Pointer); ok {
			if name := w.named(t); name != "" && name != w.receiver && !slices.Contains(taken, name) {
				taken = append(taken, name)
				w.takes[name]++
			}
		}
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if n.Tok != token.DEFINE {
					w.write(e)
				}
			}
		case *ast.IncDecStmt:
			w.write(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND { // what has the address may write
				if e, ok := n.X.(*ast.SelectorExpr); ok && w.basic(e) {
					w.write(e)
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (f.Name == "delete" || f.Name == "clear" || f.Name == "copy") {
				w.write(n.Args[0])
			}
		}
		return true
	})
}

// basic reports whether an expression is a number, text or a truth value.
func (w *writers) basic(e ast.Expr) bool {
	t := w.info.TypeOf(e)
	if t == nil {
		return false
	}
	_, is := t.Underlying().(*types.Basic)
	return is
}

// write counts the current function for each struct that an assignment to an expression changes.
func (w *writers) write(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		w.write(e.X)
	case *ast.IndexExpr:
		w.write(e.X)
	case *ast.SliceExpr:
		w.write(e.X)
	case *ast.StarExpr:
		w.count(w.named(w.info.TypeOf(e))) // the whole struct
		w.write(e.X)
	case *ast.SelectorExpr:
		s := w.info.Selections[e]
		if s == nil || s.Kind() != types.FieldVal {
			return
		}
		of := s.Recv()
		for i, index := range s.Index() { // through embedded fields to the one that is written
			holder := w.named(of)
			if p, ok := of.(*types.Pointer); ok {
				of = p.Elem()
			}
			fields, ok := of.Underlying().(*types.Struct)
			if !ok {
				return
			}
			of = fields.Field(index).Type()
			if _, pointer := of.Underlying().(*types.Pointer); i == len(s.Index())-1 || !pointer {
				w.count(holder)
			}
		}
		if t := w.info.TypeOf(e.X); t != nil {
			if _, pointer := t.Underlying().(*types.Pointer); !pointer { // the struct that contains the field is written, too
				w.write(e.X)
			}
		}
	}
}

// count counts the current function as one that writes a type.
func (w *writers) count(of string) {
	switch {
	case of == "":
	case of == w.receiver:
		w.own++
	default:
		if w.foreign[of] == nil {
			w.foreign[of] = map[string]bool{}
		}
		w.foreign[of][w.function] = true
	}
}
