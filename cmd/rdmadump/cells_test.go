package main

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// TestCells: -Y takes every heading and every value that a table prints, in quotes, and selects the rows that print it; --sort takes every heading. A
// value that no field has is refused, and the error says what to write instead.
func TestCells(t *testing.T) {
	captures := [][]string{
		{"../../samples/rocev2-errors.pcap"},
		{"../../testdata/captures/lab-iwarperrors.pcap.zst"},
		{"../../testdata/stories/rec/s06-recallheld/client.pcap.zst"},
		{"../../testdata/ends/roce-linkdown3-client.pcap.zst", "../../testdata/ends/roce-linkdown3-server.pcap.zst"},
	}
	views := map[string]string{
		"transactions": "transactions", "connections": "connections", "packets": "packets --to 8", "rdma_operations": "rdma", "rdma_stats": "rdma --by kind",
		"tasks": "tasks", "stats": "stats", "rates": "stats --every 1s", "files": "files",
	}
	summed := map[string]query.Fields{"stats": query.Transactions, "rates": query.Transactions, "files": query.Transactions, "rdma_stats": render.OperationFields}
	drawn := []string{"RPCS BAR", "LATENCY MAP"}
	instead := regexp.MustCompile(`frame\.time_relative|--from and --to|such as \w+\.\w+|use one of its fields`) // what errors say
	tried := 0
	for of, view := range views {
		for _, heading := range render.Headings(of) {
			name := strings.ToLower(strings.ReplaceAll(heading, " ", "-"))
			grouped := heading == "NAME" // Tables have what they are grouped by in place of it.
			if ofSummed := summed[of]; ofSummed != nil {
				if _, err := query.Resolve(name, ofSummed); err == nil && !grouped || slices.Contains(drawn, heading) {
					continue // The filter selects what is summed up.
				}
			}
			for _, files := range captures {
				count := func(more ...string) (cells map[string]int, wrong string) {
					var out, errs bytes.Buffer
					code := run(t.Context(), slices.Concat(strings.Fields(view), []string{"-q", "--columns", heading}, more, files), &out, &errs)
					if code == command.ExitUsage || code == command.ExitFailed {
						return nil, errs.String()
					}
					cells = map[string]int{}
					head, rows, _ := strings.Cut(out.String(), "\n")
					if head = strings.TrimSpace(head); grouped && head != "" {
						name = strings.ToLower(head)
					}
					for row := range strings.Lines(rows) {
						cells[strings.TrimSpace(row)]++
					}
					delete(cells, "")
					return cells, ""
				}
				printed, wrong := count()
				if wrong != "" {
					t.Fatalf("%s: %s", view, wrong)
				}
				if len(printed) == 0 {
					continue
				}
				tried++
				var tests []string
				values := slices.Sorted(maps.Keys(printed))
				values = values[:min(len(values), 12)]
				for _, v := range values {
					tests = append(tests, name+" == '"+strings.ReplaceAll(v, "'", `\'`)+"'")
				}
				args := []string{"-Y", strings.Join(tests, " or ")}
				if of != "packets" { // which stay in their order
					args = append(args, "--sort", name)
				}
				selected, wrong := count(args...)
				if wrong != "" && !instead.MatchString(wrong) {
					t.Errorf("%s: %s", view, wrong)
				}
				if of == "rates" { // It has no empty intervals at its ends, unless a filter selects intervals.
					delete(printed, "0")
					delete(selected, "0")
				}
				for v, n := range selected {
					if n > printed[v] {
						t.Errorf("%s: %s selects %d rows with %s, of %d", view, args, n, v, printed[v])
					}
				}
				for i, v := range values {
					if wrong == "" && selected[v] < printed[v] {
						t.Errorf("%s %v: %s selects %d of %d rows", view, files, tests[i], selected[v], printed[v])
					}
				}
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d columns", tried)
	}
}
