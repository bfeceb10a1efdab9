package analyze

import (
	"slices"
	"strings"
)

// Others is the name of the row for all groups beyond the limits.
const Others = "others"

// othersKey is the key of the others. No group has it, because values contain no zero bytes.
const othersKey = "\x00"

// maxRows limits the number of groups, because a hostile capture can contain any number of programs and paths, and maxKeyBytes
// the length of their keys.
const (
	maxRows     = 1 << 10
	maxKeyBytes = 1 << 20
)

// grouping has a row for each group of records that have the same values.
type grouping[T any] struct {
	rows     map[string]*T
	newRow   func(name string, group []string) *T // group is nil for the others
	maxRows  int
	keyBytes int64    // bytes of the groups' keys, which may be paths
	maxBytes int64    // maximum of keyBytes
	group    []string // values of the current record
	key      []byte   // the same, with zero bytes between them
}

// newGrouping returns a grouping without rows.
func newGrouping[T any](newRow func(name string, group []string) *T) grouping[T] {
	return grouping[T]{rows: map[string]*T{}, newRow: newRow, maxRows: maxRows, maxBytes: maxKeyBytes}
}

// row returns the row of the group with these values, and adds it if necessary. It returns the row of the others if there are too
// many groups. The values may be appended to g.group[:0], and are not kept.
func (g *grouping[T]) row(values []string) *T {
	g.group, g.key = values, g.key[:0]
	for i, value := range values {
		if i > 0 {
			g.key = append(g.key, 0)
		}
		g.key = append(g.key, value...)
	}
	if row := g.rows[string(g.key)]; row != nil {
		return row
	}
	if len(g.rows) >= g.maxRows || g.keyBytes+int64(len(g.key)) > g.maxBytes {
		if g.rows[othersKey] == nil {
			g.rows[othersKey] = g.newRow(Others, nil)
		}
		return g.rows[othersKey]
	}
	g.keyBytes += int64(len(g.key))
	row := g.newRow(strings.Join(values, ", "), slices.Clone(values))
	g.rows[string(g.key)] = row
	return row
}
