package nfs

import (
	"regexp"
	"sync"
	"testing"
)

// TestLayoutIsChecked: compiling an invalid row panics.
func TestLayoutIsChecked(t *testing.T) {
	for _, text := range []string{
		"name", "name:", ":u", "name:nothing", "@nothing", "name:(a:u", "name:u}", "name:U{1 a:u | *}", "name:u{1 a:u", "name:nfs_ftype4{NF4NONE | *}",
		"name:u{A a:u}", "a:u)", "name:[]",
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q compiles", text)
				}
			}()
			layout(text)
		}()
	}
}

// TestNamesOfValues: names of values are valid as JSON keys and in filters.
func TestNamesOfValues(t *testing.T) {
	good := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	var check func(where string, items []item)
	check = func(where string, items []item) {
		for i := range items {
			it := &items[i]
			if !good.MatchString(it.name) {
				t.Errorf("%s has the name %q, which is no lower case with underscores", where, it.name)
			}
			if it.least < 4 {
				t.Errorf("%s: %s takes %d bytes at least", where, it.name, it.least) // this size limits counts of arrays
			}
			check(where, it.inner)
			for _, a := range it.arms {
				check(where, a.items)
			}
		}
	}
	tables := [][]operation{operations, callbackOperations, callbackProcedures}
	for _, table := range procedures {
		tables = append(tables, table)
	}
	for _, table := range tables {
		for i := range table {
			op := &table[i]
			c := op.compiled()
			check(op.name, c.args.items)
			check(op.name, c.results.items)
			check(op.name, c.failure.items)
		}
	}
	for number, items := range attributes() {
		if len(items) != 1 {
			t.Errorf("attribute %d is %d items", number, len(items))
		}
		check("attributes", items)
	}
}

// TestTablesAtOnce: several goroutines can compile the rows at the same time, and each
// row is compiled once.
func TestTablesAtOnce(t *testing.T) {
	clear(compiledTypes)
	tables := [][]operation{operations, callbackOperations, nfs2, nfs3, nfsacl2, nfsacl3, nlm4, mount("h", "")}
	for _, rows := range tables {
		for i := range rows {
			rows[i].layouts.Store(nil)
		}
	}
	var all sync.WaitGroup
	for range 20 {
		for _, rows := range tables {
			all.Go(func() {
				got := 0
				for i := range rows {
					op := &rows[i]
					c := op.compiled()
					if c == op.layouts.Load() && (len(c.args.items) > 0) == (op.args != "") && (len(c.results.items) > 0) == (op.results != "") {
						got++
					}
				}
				if got != len(rows) {
					t.Errorf("%d of %d rows", got, len(rows))
				}
			})
		}
	}
	all.Wait()
}
