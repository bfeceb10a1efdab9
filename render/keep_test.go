package render_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// TestKeep: rows that were kept are written as they would have been drawn then, in any order, and only those that are written
// count for the legend. Rows that depend on the row before cannot be kept.
func TestKeep(t *testing.T) {
	all := []*record.Transaction{
		{Call: &record.Message{}, ID: 1, XID: 7, Operations: []string{"SEQUENCE", "PUTFH", "READ"}, Operation: record.Some("READ"), Status: record.Complete, Client: record.Some("192.0.2.1")},
		{Call: &record.Message{}, ID: 20, XID: 8, Status: record.NoReply, Findings: []string{"call-not-answered"}, File: record.Some("/a/very/long/path/of/a/file\x1b[31m")},
		{Call: &record.Message{}, ID: 300, XID: 9, Status: record.Complete, LatencyNS: record.Some[int64](5e6), Direction: record.Backward},
	}
	for _, look := range []render.Look{{}, {Colour: true, Legend: true}, {Unicode: true, Whole: true}} {
		for _, width := range []int{0, 60, 120} {
			for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1}, {2, 0}} {
				var want, got bytes.Buffer
				drawn := render.NewText(&want, render.NewLook(look), width)
				text := render.NewText(&got, render.NewLook(look), width)
				drawn.Start(0)
				text.Start(0)
				var kept [][]byte
				for _, r := range all {
					row, err := text.Keep([]byte("before"), func() error { return text.Transaction(r) })
					if err != nil || !bytes.HasPrefix(row, []byte("before")) {
						t.Fatalf("keeping a row gives %q, error %v; want it appended", row, err)
					}
					kept = append(kept, row[len("before"):])
				}
				for _, i := range order {
					if err := drawn.Transaction(all[i]); err != nil {
						t.Fatal(err)
					}
					if err := text.Row(kept[i]); err != nil {
						t.Fatal(err)
					}
				}
				if err := drawn.Finish(); err != nil {
					t.Fatal(err)
				}
				if err := text.Finish(); err != nil {
					t.Fatal(err)
				}
				if got.String() != want.String() || !strings.Contains(want.String(), "0x0000000") {
					t.Errorf("with width %d and the order %v, the kept rows are\n%s\nwant\n%s", width, order, &got, &want)
				}
				if marked := strings.Contains(got.String(), "call-not-answered") || strings.Contains(got.String(), "!"); marked != slices.Contains(order, 1) {
					t.Errorf("with width %d and the order %v, a mark of findings is there: %t", width, order, marked)
				}
			}
		}
	}
	if render.NewText(nil, render.NewLook(render.Look{Times: render.Delta}), 0).CanKeep() {
		t.Error("times since the row before can be kept")
	}
}
