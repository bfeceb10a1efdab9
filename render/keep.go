package render

import (
	"encoding/binary"
	"slices"
)

// Rows of a table can be kept as drawn cells and written later, in another order: that takes less memory and time than
// keeping their records.

// keeping is what a Text needs to write kept rows.
type keeping struct {
	columns []column
	inks    []ink
	to      []byte // gets the cells of the next row
	on      bool   // rows are kept and not written
}

// CanKeep reports whether Keep may be used: a row does not depend on the row before it.
func (t *Text) CanKeep() bool { return t.clock.form != Delta && !t.live }

// Keep appends the row that draw draws to b instead of writing it. It must be a single row of a table with the same columns
// as the other rows.
func (t *Text) Keep(b []byte, draw func() error) ([]byte, error) {
	t.kept.on, t.kept.to = true, b
	err := draw()
	t.kept.on = false
	return t.kept.to, err
}

// Row writes a row that Keep kept.
func (t *Text) Row(kept []byte) error {
	text := string(kept)
	at := 0
	number := func() int {
		n, size := binary.Uvarint(kept[at:])
		at += size
		return int(n)
	}
	word := func() string {
		n := number()
		at += n
		return text[at-n : at]
	}
	t.cells = t.cells[:0]
	for at < len(kept) {
		t.cells = append(t.cells, cell{text: word(), short: word(), ink: t.kept.inks[number()], tail: number() == 1})
	}
	return t.row(t.kept.columns)
}

// keep appends the row of t.cells.
func (t *Text) keep(columns []column) {
	k := &t.kept
	k.columns = columns
	word := func(s string) { k.to = append(binary.AppendUvarint(k.to, uint64(len(s))), s...) }
	for i := range t.cells {
		c := &t.cells[i]
		word(c.text)
		word(c.short)
		at := slices.Index(k.inks, c.ink)
		if at < 0 {
			at, k.inks = len(k.inks), append(k.inks, c.ink)
		}
		k.to = append(binary.AppendUvarint(k.to, uint64(at)), 0)
		if c.tail {
			k.to[len(k.to)-1] = 1
		}
	}
}
