package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/render"
)

// This file compares the capture with an earlier one.

// Earlier is the capture that the page compares with.
type Earlier struct {
	File  File
	Typed string // its name, quoted for a shell
}

// CompareWith makes the page compare the capture with another one. The handler takes the records of that, and finish has to be called with its
// summary after the last.
func (p *Report) CompareWith(selects Selector) (h dissect.Handler, finish func(*record.Summary)) {
	newSide := func() *analyze.Side { return analyze.NewSide(analyze.NewTable(analyze.ByOperation)) }
	p.before, p.after = newSide(), newSide()
	var d diagnose.Collector
	d.Only(selects.Overlaps)
	h = dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			wanted, err := selects.Transaction(r)
			if wanted {
				p.before.Transaction(r)
				d.Transaction(r)
			}
			return err
		},
		Task: func(r *record.Task) error {
			d.Task(r)
			return nil
		},
		Connection: func(r *record.Connection) error {
			if selects.Connection(r) {
				p.before.Connection(r)
				d.Connection(r)
			}
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			if selects.Operation(r) {
				d.Operation(r)
			}
			return nil
		},
		Finding: func(r *record.Finding) error {
			if selects.Finding(r) {
				d.Finding(r)
			}
			return nil
		},
	}
	return h, func(s *record.Summary) {
		list := d.Problems(s)
		for i := range list {
			list[i] = hidden(p, list[i])
		}
		p.before.Problems(list)
	}
}

// comparison renders what changed since the earlier capture.
func (v *page) comparison() {
	if v.before == nil || v.about.Before == nil {
		return
	}
	e := v.about.Before
	s := section{ID: "before", Name: "Compared with before", Commands: []string{render.Clean(strings.Join(append([]string{"rdmadump compare", e.Typed, v.about.Typed}, v.about.Selection...), " "))}}
	s.Text = fmt.Sprintf("Before: %s, %d bytes", render.Clean(e.File.Name), e.File.Size)
	if e.File.SHA256 != "" {
		s.Text += ", SHA-256 " + e.File.SHA256
	}
	s.Text += fmt.Sprintf("; %s. After: this capture, %s. A change with ! is more than chance explains (p < 0.001 in an exact permutation test); ? marks changes that were not tested, because there were fewer than 30 latencies before or after.",
		record.Plural(int64(v.before.RPCs()), "RPC"), record.Plural(int64(v.after.RPCs()), "RPC"))
	groups := table{ID: "compare-table", Caption: "Operations before and after, by the sum of their latencies", Columns: []column{
		{"Operation", "Program and operation", false},
		{"RPCs before", "Number of RPCs in the earlier capture", true},
		{"RPCs after", "Number of RPCs in this capture", true},
		{"Errors before", "Number of RPCs that failed in the earlier capture", true},
		{"Errors after", "Number of RPCs that failed in this capture", true},
		{"No reply before", "Number of RPCs without a Reply (status no_reply) in the earlier capture", true},
		{"No reply after", "Number of RPCs without a Reply (status no_reply) in this capture", true},
		{"Bytes before", "Bytes of Calls and Replies in the earlier capture", true},
		{"Bytes after", "Bytes of Calls and Replies in this capture", true},
	}}
	for _, p := range analyze.Percentiles {
		name := map[string]string{"p50": "P50", "p90": "P90", "p99": "P99"}[p.Name]
		groups.Columns = append(groups.Columns, column{name + " before", "Percentile of the latencies in the earlier capture", true}, column{name + " after", "Percentile of the latencies in this capture", true},
			column{name + " change", "Relative change", true})
	}
	v.after.Problems(v.worst)
	others := table{ID: "change-table", Caption: "Problems that came or went, stalls, and parameters that changed", Columns: []column{{"What", "What is compared", false}, {"Change", "What was before, and what is after", false}}}
	for _, c := range analyze.Compare(v.before, v.after) {
		switch label, text := render.ComparisonText(c); {
		case c.Kind == analyze.ComparedGroup:
			groups.Rows = append(groups.Rows, compared(c))
		case label != "":
			others.Rows = append(others.Rows, []cell{{Text: label, Head: true}, {Text: render.Clean(text), Class: "path"}})
		}
	}
	if n := len(groups.Rows) - maxOperations; n > 0 {
		v.omit("The comparison shows %d operations; %s are left out. %s lists them.", maxOperations, record.Plural(int64(n), "operation"), s.Commands[0])
		groups.Rows = groups.Rows[:maxOperations]
	}
	groups.dropEmpty("No reply before", "No reply after")
	s.Tables = []table{others, groups}
	v.part("before", "section", s)
}

// compared returns the row of a group.
func compared(c *analyze.Comparison) []cell {
	amount := func(n record.Opt[int64], text func(int64) string) cell { return number(n.Or(0), text(n.Or(0))) }
	plain := func(n int64) string { return fmt.Sprint(n) }
	b, a := &c.Before, &c.After
	row := []cell{
		{Text: render.Clean(c.Name), Head: true},
		amount(b.Count, plain), amount(a.Count, plain), amount(b.Errors, plain), amount(a.Errors, plain), amount(b.NoReply, plain), amount(a.NoReply, plain), amount(b.Bytes, render.Bytes), amount(a.Bytes, render.Bytes),
	}
	for i := range analyze.Percentiles {
		before, after, change, significant := analyze.Percentiles[i].Of(c)
		moved := cell{Text: unknown}
		if share, known := change.Get(); known {
			moved = cell{Text: render.Change(share), Value: strconv.FormatFloat(share, 'g', -1, 64)}
			switch is, tested := significant.Get(); {
			case before == after:
			case !tested:
				moved.Text += "?"
			case is && share > 0:
				moved.Text, moved.Class = moved.Text+"!", "bad"
			case is:
				moved.Text, moved.Class = moved.Text+"!", "good"
			}
		}
		row = append(row, quantile(b.Latency, before), quantile(a.Latency, after), moved)
	}
	return row
}
