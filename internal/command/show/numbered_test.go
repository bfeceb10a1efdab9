package show

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// TestNumbered: records are shown in the order of their numbers, as soon as all before them came, also if so many wait that
// they go to a file, and if some are not shown or have the number of another one.
func TestNumbered(t *testing.T) {
	for name, c := range map[string]struct {
		come    []int64
		skip    int64 // number of a record that is not shown
		count   int64 // as -c; 0 for all
		limit   int
		written string // before the end
		want    string
	}{
		"in order":     {[]int64{1, 2, 3}, 0, 0, 1 << 20, "1 2 3", "1 2 3"},
		"a late one":   {[]int64{2, 3, 1, 5, 4}, 0, 0, 1 << 20, "1 2 3 4 5", "1 2 3 4 5"},
		"one missing":  {[]int64{1, 4, 3, 5}, 0, 0, 1 << 20, "1", "1 3 4 5"},
		"one skipped":  {[]int64{3, 4, 2, 1}, 2, 0, 1 << 20, "1 3 4", "1 3 4"},
		"first two":    {[]int64{2, 3, 1, 4}, 0, 2, 1 << 20, "1 2", "1 2"},
		"no memory":    {[]int64{1, 9, 8, 7, 6, 5, 4, 3, 2}, 0, 0, 300, "1", "1 2 3 4 5 6 7 8 9"},
		"two captures": {[]int64{1, 2, 1, 5, 5, 4}, 0, 0, 1 << 20, "1 2 1", "1 2 1 4 5 5"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			columns, err := render.NewColumns([]string{"id"}, query.Transactions)
			if err != nil {
				t.Fatal(err)
			}
			set := &flags.Settings{View: flags.Views[0], Columns: columns}
			set.Count = c.count
			s := &sink{Times: flags.Times{Settings: set}, w: bufio.NewWriter(&b)}
			s.byNumber()
			s.numbered.limit = c.limit
			for _, id := range c.come {
				if r := (&record.Transaction{ID: id}); id == c.skip {
					s.pass(id)
				} else {
					s.take(r, func(any) error { return fmt.Errorf("drawn as a table") })
				}
			}
			s.w.Flush()
			if got := strings.Join(strings.Fields(b.String()), " "); got != c.written {
				t.Errorf("before the end, there are %s, want %s", got, c.written)
			}
			s.release()
			s.w.Flush()
			if got := strings.Join(strings.Fields(b.String()), " "); got != c.want || s.err != nil {
				t.Errorf("shown %s, want %s; error %v", got, c.want, s.err)
			}
		})
	}
}

// TestListedInOrder: if --xid lists RPCs, because it selects more than it draws, they are in the order of their numbers.
func TestListedInOrder(t *testing.T) {
	var b bytes.Buffer
	set := &flags.Settings{View: flags.Views[0], Ladder: true}
	s := &sink{Times: flags.Times{Settings: set}, w: bufio.NewWriter(&b), theme: render.NewTheme(false)}
	s.text = render.NewText(s.w, s.theme, 0)
	l := &ladders{sink: s}
	for _, id := range []int64{5, 2, 9, 1, 7} {
		s.take(&record.Transaction{ID: id, Call: &record.Message{}}, l.show)
	}
	l.finish()
	s.fail(s.text.Finish())
	s.w.Flush()
	var ids []string
	for row := range strings.Lines(b.String()) {
		ids = append(ids, strings.TrimSpace(row[:len("RPC ID")]))
	}
	if got := strings.Join(ids, " "); got != "RPC ID 1 2 5 7 9" || s.err != nil || s.written != 5 {
		t.Errorf("listed %s of %d, want RPC ID 1 2 5 7 9 of 5; error %v", got, s.written, s.err)
	}
}
