package render_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// TestVariedColumns: the columns that say who made a Call are shown if they have at least two
// different values, or if the user chose them.
func TestVariedColumns(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns []string
		rows    int
		uids    []uint32
		want    string // a heading and the note at the end
	}{
		{"one user", nil, 10, []uint32{7}, ""},
		{"nobody", nil, 10, nil, ""},
		{"two users", nil, 10, []uint32{7, 8}, "UID"},
		{"chosen", []string{"xid", "uid"}, 10, []uint32{7}, "UID"},
		{"a later row differs", nil, 300, []uint32{7}, "note"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			text := render.NewText(&b, render.NewLook(render.Look{Columns: c.columns}), 0)
			for i := range c.rows {
				r := &record.Transaction{Status: record.Complete, Direction: record.Forward, Call: &record.Message{}, Machine: record.Some("one\x1b[2J")}
				if len(c.uids) > 0 {
					r.UID = record.Some(c.uids[i%len(c.uids)])
				}
				if i == 290 {
					r.UID = record.Some[uint32](9)
				}
				if err := text.Transaction(r); err != nil {
					t.Fatal(err)
				}
			}
			text.Finish()
			heading, _, _ := strings.Cut(b.String(), "\n")
			if got := strings.Contains(heading, "UID"); got != (c.want == "UID") || strings.Contains(heading, "MACHINE") {
				t.Errorf("the heading is %q", heading)
			}
			if got := slices.Equal(text.Late(), []string{"UID"}); got != (c.want == "note") {
				t.Errorf("the table says that UID is hidden: %t", got)
			}
		})
	}
}
