package main

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/net/html"

	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/report"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// reportOf returns the parsed page about a capture, and its text.
func reportOf(t testing.TB, args ...string) (page *html.Node, text string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), append([]string{"report", "-w", "-", "-q"}, args...), &out, &errs); code != command.ExitOK && code != command.ExitBroken {
		t.Fatalf("report %q: exit status %d: %s", args, code, &errs)
	}
	page, err := html.Parse(bytes.NewReader(out.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return page, out.String()
}

// recordsOf returns the records that a command prints as JSON, without the summary.
func recordsOf(t testing.TB, args ...string) (list []map[string]any) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), append(args, "-q", "-o", "json"), &out, &errs); code == command.ExitFailed || code == command.ExitUsage && !strings.Contains(errs.String(), "no RDMA") {
		t.Fatalf("%q: exit status %d: %s", args, code, &errs)
	}
	for line := range bytes.Lines(out.Bytes()) {
		var r map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r["type"] != "summary" {
			list = append(list, r)
		}
	}
	return list
}

// overviewOf returns the record of overview, which comes after its problems.
func overviewOf(t testing.TB, args ...string) map[string]any {
	t.Helper()
	for _, r := range recordsOf(t, append([]string{"overview"}, args...)...) {
		if r["type"] == "overview" {
			return r
		}
	}
	t.Fatalf("%q: no overview", args)
	return nil
}

// value returns the member of a record at a path such as "latency.p50_ns", as text; null is "".
func value(r map[string]any, path string) string {
	var v any = r
	for name := range strings.SplitSeq(path, ".") {
		m, is := v.(map[string]any)
		if !is {
			return ""
		}
		v = m[name]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// attribute returns an attribute of an element.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text of an element.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// elements returns the elements with a name.
func elements(n *html.Node, name string) (list []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == name {
			list = append(list, d)
		}
	}
	return list
}

// tableOf returns the rows of the table with an id: for each column the exact value of its cells if
// they have one, and otherwise the text.
func tableOf(t testing.TB, page *html.Node, id string) (rows []map[string]string) {
	t.Helper()
	for _, table := range elements(page, "table") {
		if attribute(table, "id") != id {
			continue
		}
		all := elements(table, "tr")
		var names []string
		for _, th := range elements(all[0], "th") {
			names = append(names, textOf(th))
		}
		for _, tr := range all[1:] {
			row, at := map[string]string{}, 0
			for cell := range tr.ChildNodes() {
				if v := attribute(cell, "data-v"); v != "" {
					row[names[at]] = v
				} else {
					row[names[at]] = strings.TrimSuffix(textOf(cell), "-")
				}
				at++
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// allCaptures returns the captures of the tests.
func allCaptures(t testing.TB) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"../../samples/*.pcap*", "../../testdata/captures/*.zst"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatalf("no captures %s: %v", pattern, err)
		}
		paths = append(paths, list...)
	}
	return paths
}

// TestReportNumbers compares the numbers of the page with those of the commands that the page names.
func TestReportNumbers(t *testing.T) {
	for _, path := range testkit.Short(t, allCaptures(t)) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			page, text := reportOf(t, path)
			same := func(table, key string, rows, records []map[string]string) {
				t.Helper()
				if len(rows) != len(records) {
					t.Errorf("%s: %d rows, want %d", table, len(rows), len(records))
				}
				for i := range min(len(rows), len(records)) {
					for column, want := range records[i] {
						// A column of which all values are empty may be left out.
						if got, known := rows[i][column]; got != want || !known && want != "" {
							t.Errorf("%s, row %d (%s), column %s: %q, want %q", table, i, records[i][key], column, got, want)
						}
					}
				}
			}
			columns := func(list []map[string]any, of map[string]string) (rows []map[string]string) {
				for _, r := range list {
					row := map[string]string{}
					for column, path := range of {
						row[column] = value(r, path)
					}
					rows = append(rows, row)
				}
				return rows
			}

			stats := recordsOf(t, "stats", path)
			if len(stats) == 0 {
				if attributeOf(page, "rpcs", "data-total") != "0" {
					t.Error("the page does not say that there are no RPCs")
				}
				return
			}
			want := columns(stats, map[string]string{
				"Operation": "name", "RPCs": "requests", "Errors": "errors", "Retransmitted": "retransmitted", "P50": "latency.p50_ns", "P90": "latency.p90_ns", "P99": "latency.p99_ns", "Worst": "latency.max_ns", "Sum": "total_ns",
			})
			for i, r := range stats {
				for column, form := range map[string]string{"Call bytes": "call_bytes", "Reply bytes": "reply_bytes"} {
					sum := int64(0)
					for _, part := range []string{"short", "chunked", "long"} {
						n, err := strconv.ParseInt(value(r, form+"."+part), 10, 64)
						if err != nil {
							t.Fatal(err)
						}
						sum += n
					}
					want[i][column] = fmt.Sprint(sum)
				}
			}
			same("operations", "Operation", tableOf(t, page, "operation-table"), want)

			want = columns(recordsOf(t, "stats", path, "--by", "client,machine,uid,principal"), map[string]string{
				"RPCs": "requests", "Errors": "errors", "P50": "latency.p50_ns", "P99": "latency.p99_ns", "Worst": "latency.max_ns", "Sum": "total_ns",
			})
			same("callers", "RPCs", tableOf(t, page, "caller-table"), want)

			every := regexp.MustCompile(`stats [^\n<]* --every (\S+)</code>`).FindStringSubmatch(text)
			if every == nil {
				t.Fatal("no command for the rates")
			}
			want = columns(recordsOf(t, "stats", path, "--every", every[1]), map[string]string{
				"RPCs": "rpcs", "Errors": "errors", "To server": "bytes_to_server", "To client": "bytes_to_client", "P50": "latency.p50_ns", "P99": "latency.p99_ns", "Worst": "latency.max_ns", "Credits": "credits",
			})
			same("rates", "RPCs", tableOf(t, page, "rate-table"), want)

			connections := recordsOf(t, "connections", path)
			want = columns(connections, map[string]string{
				"Conn": "id", "RPCs": "transactions", "In flight": "credits.forward.peak_in_flight", "Packets": "packets", "Retransmitted": "retransmitted", "Out of order": "out_of_order", "Not captured": "not_captured",
				"NAKs": "naks", "RNR NAKs": "rnr_naks", "Transport": "transport", "Protocol": "upper_layer",
			})
			for i, c := range connections {
				if want[i]["In flight"] != "" || c["credits"] == nil {
					continue
				}
				want[i]["In flight"] = "?" // the capture does not show how many Calls were outstanding
				if granted := value(c, "credits.forward.granted"); granted != "" {
					want[i]["In flight"] += " of " + granted
				}
			}
			same("connections", "Conn", tableOf(t, page, "connection-table"), want)

			files := recordsOf(t, "files", path)
			want = columns(files[:min(len(files), 200)], map[string]string{
				"Server": "server", "RPCs": "operations", "Errors": "errors", "Bytes read": "bytes_read", "Bytes written": "bytes_written", "P50": "latency.p50_ns", "P99": "latency.p99_ns",
				"Worst": "latency.max_ns", "Sum": "total_ns", "Former name": "renamed.from",
			})
			same("files", "RPCs", tableOf(t, page, "file-table"), want)

			compareOverview(t, page, path)
			compareFindings(t, page, recordsOf(t, "check", path))
			compareRPCs(t, page, recordsOf(t, "transactions", path))
		})
	}
}

// compareOverview compares the problems and the steps of mounts with those of overview.
func compareOverview(t *testing.T, page *html.Node, path string) {
	t.Helper()
	var want, got []string
	var o map[string]any
	for _, r := range recordsOf(t, "overview", path) {
		switch {
		case r["type"] == "overview":
			o = r
		case r["id"] != "quirk":
			text := value(r, "headline") + value(r, "effect")
			for _, word := range r["command"].([]any) {
				text += " " + word.(string)
			}
			want = append(want, text)
		}
	}
	for _, list := range elements(page, "ol") {
		if attribute(list, "class") != "problems" {
			continue
		}
		for _, item := range elements(list, "li") {
			text := ""
			for _, p := range elements(item, "p") {
				switch class := attribute(p, "class"); {
				case class == "command":
					command := shellWords(textOf(p))
					text += " " + strings.Join(command[1:len(command)-1], " ")
				case class == "":
					_, said, found := strings.Cut(textOf(p), ": ")
					if !found || text != "" {
						said = textOf(p)
					}
					text += said
				}
			}
			if attribute(item, "class") != "good" && !strings.HasPrefix(text, "no RPC") {
				got = append(got, text)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	steps, _ := o["mount_steps"].([]any)
	rows := tableOf(t, page, "mount-table")
	if len(rows) != len(steps) {
		t.Fatalf("%d steps of mounts, want %d", len(rows), len(steps))
	}
	for i, row := range rows {
		step := steps[i].(map[string]any)
		for column, path := range map[string]string{"Client": "client", "Server": "server", "Conn": "connection", "Asked": "asked", "Answer": "answer"} {
			if want := value(step, path); row[column] != want {
				t.Errorf("step %d, column %s: %q, want %q", i, column, row[column], want)
			}
		}
		if want := map[string]string{"true": "yes", "false": "no"}[value(step, "ok")]; row["OK"] != want {
			t.Errorf("step %d, column OK: %q, want %q", i, row["OK"], want)
		}
	}
}

// bothEnds are captures of the same traffic at two points.
var bothEnds = []string{"../../testdata/captures/ends-stormall42-client.pcap.zst", "../../testdata/captures/ends-stormall42-server.pcap.zst"}

// TestReportPoints: a page about two capture points has what network and overview say.
func TestReportPoints(t *testing.T) {
	page, text := reportOf(t, bothEnds...)
	examine(t, page, text)
	var points, directions []map[string]any
	for _, r := range recordsOf(t, append([]string{"network"}, bothEnds...)...) {
		if r["type"] == "point" {
			points = append(points, r)
		} else {
			directions = append(directions, r)
		}
	}
	equal := func(table string, records []map[string]any, columns map[string]string) {
		t.Helper()
		rows := tableOf(t, page, table)
		if len(rows) != len(records) || len(rows) == 0 {
			t.Fatalf("%s: %d rows, want %d", table, len(rows), len(records))
		}
		for i, row := range rows {
			for column, path := range columns {
				if want := value(records[i], path); row[column] != want || want == "" {
					t.Errorf("%s, row %d, column %s: %q, want %q", table, i, column, row[column], want)
				}
			}
		}
	}
	equal("point-table", points, map[string]string{"Point": "name", "Address": "address", "Packets": "packets", "Clock ahead": "offset_ns", "Error": "error_ns"})
	equal("network-table", directions, map[string]string{
		"From": "from", "To": "to", "Packets": "packets", "Lost": "lost", "Not captured": "not_captured", "Unknown": "unknown", "Reordered": "reordered", "Damaged": "corrupted",
		"Duplicated": "duplicated", "Mirror copies": "mirror_duplicates", "Shortest": "delay.min_ns", "P50": "delay.p50_ns", "P90": "delay.p90_ns", "P99": "delay.p99_ns", "Worst": "delay.max_ns",
	})
	sums := map[string]int64{}
	for _, r := range recordsOf(t, bothEnds...) {
		for _, part := range []string{"client_ns", "request_network_ns", "reply_network_ns", "server_ns"} {
			ns, _ := strconv.ParseInt(value(r, "split."+part), 10, 64)
			sums[part] += ns
		}
	}
	var ends []map[string]any
	for _, ns := range []int64{sums["client_ns"], sums["request_network_ns"] + sums["reply_network_ns"], sums["server_ns"]} {
		ends = append(ends, map[string]any{"ns": ns})
	}
	spans := map[string][]string{} // Pictures of the whole capture have the same axis.
	for _, div := range elements(page, "div") {
		if name := attribute(div, "data-chart"); name == "network" || name == "rates" {
			spans[attribute(div, "data-from")+" to "+attribute(div, "data-to")] = append(spans[attribute(div, "data-from")+" to "+attribute(div, "data-to")], name)
		}
	}
	for span, names := range spans {
		if len(names) != 2 {
			t.Errorf("axis from %s: %v", span, names)
		}
	}
	equal("place-table", ends, map[string]string{"Sum": "ns"})
	slow := recordsOf(t, append([]string{"transactions", "--top", "10"}, bothEnds...)...)
	equal("split-table", slow, map[string]string{
		"XID": "xid", "Latency": "latency_ns", "Client": "split.client_ns", "Request": "split.request_network_ns", "Server": "split.server_ns", "Sending": "split.server_send_ns", "Reply": "split.reply_network_ns",
	})
}

// TestReportBefore: a comparison on the page has what compare says.
func TestReportBefore(t *testing.T) {
	for _, pair := range [][2]string{
		{"../../testdata/captures/rocev2-nfs41.pcap.zst", "../../testdata/captures/rocev2-loss42.pcap.zst"},
		{"../../samples/rocev2-fewcredits3.pcap.zst", "../../testdata/captures/rocev2-nfs3.pcap.zst"},
		{"../../testdata/captures/lab-nfs40.pcap.zst", "../../samples/rocev2-lostlink41.pcap.zst"},
	} {
		before, after := pair[0], pair[1]
		page, text := reportOf(t, after, "--before", before)
		examine(t, page, text)
		var groups []map[string]any
		var problems, others []string
		for _, r := range recordsOf(t, "compare", before, after) {
			was, is := value(r, "before.problem.headline"), value(r, "after.problem.headline")
			switch note := value(r, "before.problem.severity") == "note" && value(r, "after.problem.severity") == "note"; {
			case r["kind"] == "group":
				groups = append(groups, r)
			case r["kind"] != "problem" || note:
			case was == "":
				problems = append(problems, "came "+is)
			case is == "":
				problems = append(problems, "went "+was)
			default:
				problems = append(problems, "both "+is)
			}
		}
		var out, errs bytes.Buffer
		if code := run(context.Background(), []string{"compare", "-q", before, after}, &out, &errs); code != command.ExitOK {
			t.Fatal(errs.String())
		}
		for line := range strings.Lines(out.String()) {
			if regexp.MustCompile(`^(stalls|proven|parameter) `).MatchString(line) {
				others = append(others, strings.Join(strings.Fields(line), " "))
			}
		}
		rows := tableOf(t, page, "compare-table")
		if len(rows) != len(groups) || len(rows) == 0 {
			t.Fatalf("%s: %d groups, want %d", after, len(rows), len(groups))
		}
		for i, row := range rows {
			for column, path := range map[string]string{
				"Operation": "name", "RPCs before": "before.count", "RPCs after": "after.count", "Errors before": "before.errors", "Errors after": "after.errors",
				"Bytes before": "before.bytes", "Bytes after": "after.bytes", "P50 before": "before.latency.p50_ns", "P50 after": "after.latency.p50_ns", "P90 before": "before.latency.p90_ns",
				"P90 after": "after.latency.p90_ns", "P99 before": "before.latency.p99_ns", "P99 after": "after.latency.p99_ns",
			} {
				if want := value(groups[i], path); row[column] != want {
					t.Errorf("%s, row %d, column %s: %q, want %q", after, i, column, row[column], want)
				}
			}
			for column, path := range map[string]string{"P50 change": "change.p50", "P90 change": "change.p90", "P99 change": "change.p99"} {
				got, _ := strconv.ParseFloat(row[column], 64)
				want, _ := strconv.ParseFloat(value(groups[i], path), 64)
				if got != want || (row[column] == "") != (value(groups[i], path) == "") {
					t.Errorf("%s, row %d, column %s: %q, want %v", after, i, column, row[column], want)
				}
			}
		}
		var changes []string
		for i, row := range tableOf(t, page, "change-table") {
			if i < len(problems) {
				if what, headline, _ := strings.Cut(problems[i], " "); row["What"] != what || !strings.Contains(row["Change"], ": "+headline) {
					t.Errorf("%s: row %d of the changes is %q, want the problem %q", after, i, row, problems[i])
				}
				continue
			}
			changes = append(changes, row["What"]+" "+strings.Join(strings.Fields(row["Change"]), " "))
		}
		if !slices.Equal(changes, others) {
			t.Errorf("%s: changes %q, want %q", after, changes, others)
		}
	}
}

// compareFindings compares the counts of the findings by rule and severity, and the packet of the
// first.
func compareFindings(t *testing.T, page *html.Node, findings []map[string]any) {
	t.Helper()
	got, want := map[string]string{}, map[string]string{}
	counts := map[string]int{}
	for _, f := range findings {
		id := value(f, "rule")
		counts[id+" "+value(f, "severity")]++
		if _, seen := want[id]; !seen {
			want[id] = value(f, "packet")
		}
	}
	for key, n := range counts {
		want[key] = fmt.Sprint(n)
	}
	for _, article := range elements(page, "article") {
		id, is := strings.CutPrefix(attribute(article, "id"), "rule-")
		if !is {
			continue
		}
		got[id] = ""
		for _, span := range elements(article, "span") {
			if severity := attribute(span, "data-severity"); severity != "" {
				got[id+" "+severity] = attribute(span, "data-v")
			}
			if attribute(span, "class") == "packet" {
				got[id] = textOf(span)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) { // maps are printed in the order of their keys
		t.Errorf("findings: %v, want %v", got, want)
	}
}

// compareRPCs compares the table of RPCs. It has at most 500: those with findings and failures, and the
// slowest.
func compareRPCs(t *testing.T, page *html.Node, rpcs []map[string]any) {
	t.Helper()
	byID := map[string]map[string]any{}
	for _, r := range rpcs {
		byID[value(r, "id")] = r
	}
	rows := tableOf(t, page, "rpc-table")
	if want := min(len(rpcs), 500); len(rows) != want {
		t.Errorf("%d RPCs, want %d", len(rows), want)
	}
	for _, row := range rows {
		r := byID[row["#"]]
		if r == nil {
			t.Errorf("no RPC %s", row["#"])
			continue
		}
		delete(byID, row["#"])
		row["Findings"], _, _ = strings.Cut(row["Findings"], "common:") // the sets of RPCs that have something in common
		row["Findings"] = strings.TrimSpace(row["Findings"])
		var rules []string
		for _, id := range r["findings"].([]any) {
			rules = append(rules, id.(string))
		}
		for column, want := range map[string]string{
			"Conn": value(r, "connection"), "XID": value(r, "xid"), "Call bytes": value(r, "call.payload_bytes"), "Reply bytes": value(r, "reply.payload_bytes"), "Latency": value(r, "latency_ns"), "Findings": strings.Join(rules, " "),
		} {
			if row[column] != want {
				t.Errorf("RPC %s, column %s: %q, want %q", row["#"], column, row[column], want)
			}
		}
	}
}

// TestReportPage: the parts of a page are complete, and links lead to places on it.
func TestReportPage(t *testing.T) {
	for _, path := range append(testkit.Short(t, allCaptures(t)), "../../testdata/unknown-link.pcap") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			page, text := reportOf(t, path)
			t.Logf("%d bytes, %v", len(text), time.Since(began).Round(time.Millisecond))
			if again := second(reportOf(t, path)); again != text {
				t.Error("a second page differs")
			}
			if len(text) > 500<<10 {
				t.Errorf("the page has %d bytes", len(text))
			}
			examine(t, page, text)
		})
	}
}

// TestReportUnits: numbers of bytes in sentences and next to pictures have units with a name, such as KiB, and not the K of
// tables.
func TestReportUnits(t *testing.T) {
	_, text := reportOf(t, "../../testdata/captures/rocev2-data42.pcap.zst")
	if mixed := regexp.MustCompile(`[0-9.]+[KM] ?B[ /.,][^<]{0,30}`).FindAllString(text, -1); len(mixed) > 0 {
		t.Errorf("units of bytes are mixed: %q", mixed)
	}
	if !regexp.MustCompile(`[0-9.]+ [KM]iB/s`).MatchString(text) {
		t.Error("no rate of bytes has a unit")
	}
}

// TestReportWithoutRPCs: a page about a capture without RPCs, or about none of them, has no empty tables and pictures, and says
// why. It lists the connections of another upper layer.
func TestReportWithoutRPCs(t *testing.T) {
	for _, test := range []struct {
		args        []string
		says        string
		connections int
	}{
		{[]string{"../../testdata/other/rocev2-nvmeloss.pcap.zst"}, "The capture has no RPCs, so this page has no operations, callers, files, rates and ladder diagrams. Its connections carry nvme; the second command lists", 3},
		{[]string{"../../samples/rocev2-callback41.pcap", "-Y", "latency > 100s"}, "No RPC is selected, so this page has no operations", 2},
	} {
		page, text := reportOf(t, test.args...)
		if !strings.Contains(text, test.says) {
			t.Errorf("%q: the page does not say %q", test.args, test.says)
		}
		for _, id := range []string{"operations", "callers", "files", "rates", "ladders"} {
			if attributeOf(page, id, "id") != "" || strings.Contains(text, `href="#`+id+`"`) {
				t.Errorf("%q: the page has the section %s, or a link to it", test.args, id)
			}
		}
		if n := len(tableOf(t, page, "connection-table")); n != test.connections {
			t.Errorf("%q: %d connections, want %d", test.args, n, test.connections)
		}
		for _, id := range []string{"problems", "capture", "findings", "connections", "rpcs", "guide"} {
			if attributeOf(page, id, "id") != id {
				t.Errorf("%q: there is no %s", test.args, id)
			}
		}
		if strings.Contains(text, "no RPC-over-RDMA private data") && test.args[0] == "../../testdata/other/rocev2-nvmeloss.pcap.zst" {
			t.Errorf("%q: connections of another upper layer are said to lack private data", test.args)
		}
	}
}

// TestReportFilesOfRecords: a page about records lists the files that the records name, with the numbers of stats --by file.
func TestReportFilesOfRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.json")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"export", "-q", "--format", "records", "../../samples/rocev2-slowwrite42.pcap.zst", "-w", path}, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	page, text := reportOf(t, path)
	var want []map[string]string
	for _, r := range recordsOf(t, "stats", path, "--by", "file") {
		if name := value(r, "name"); name != "-" {
			want = append(want, map[string]string{"File": name, "RPCs": value(r, "requests"), "Errors": value(r, "errors"), "P50": value(r, "latency.p50_ns"), "P99": value(r, "latency.p99_ns"), "Worst": value(r, "latency.max_ns"), "Sum": value(r, "total_ns")})
		}
	}
	rows := tableOf(t, page, "named-file-table")
	if len(rows) != len(want) || len(rows) < 2 {
		t.Fatalf("%d files, want %d", len(rows), len(want))
	}
	for i := range want {
		for column, text := range want[i] {
			if rows[i][column] != text {
				t.Errorf("row %d, column %s: %q, want %q", i, column, rows[i][column], text)
			}
		}
	}
	if !strings.Contains(text, "They do not contain how many bytes of each file were read and written") {
		t.Error("the page does not say what records lack")
	}
}

func second(_ *html.Node, text string) string { return text }

// examine verifies what is true of each page.
func examine(t *testing.T, page *html.Node, text string) {
	t.Helper()
	ids := map[string]bool{}
	for n := range page.Descendants() {
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("there are two elements %s", id)
			}
			ids[id] = true
		}
	}
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "href" && !strings.HasPrefix(a.Val, "#"), a.Key == "src", strings.HasPrefix(a.Key, "on"), a.Key == "style":
				t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
			case a.Key == "href" && !ids[a.Val[1:]]:
				t.Errorf("a link leads to %s, which does not exist", a.Val)
			case a.Key == "aria-labelledby":
				for id := range strings.FieldsSeq(a.Val) {
					if !ids[id] {
						t.Errorf("a label is %s, which does not exist", id)
					}
				}
			}
		}
	}
	for name, want := range map[string]int{"h1": 1, "main": 1, "header": 1, "nav": 1, "style": 1} {
		if got := len(elements(page, name)); got != want {
			t.Errorf("%d elements %s, want %d", got, name, want)
		}
	}
	for _, s := range elements(page, "script") {
		if attribute(s, "type") == "" && !strings.Contains(text, "'sha256-") {
			t.Error("a script without a checksum in the policy")
		}
	}
	if n := len(elements(page, "script")); n > 3 {
		t.Errorf("%d scripts, want at most 3: the records, the data and the program", n)
	}
	for _, table := range elements(page, "table") {
		if len(elements(table, "caption")) != 1 {
			t.Error("a table has no caption")
		}
	}
	for _, picture := range elements(page, "svg") {
		if attribute(picture, "aria-hidden") == "true" {
			continue
		}
		if attribute(picture, "role") != "img" || len(elements(picture, "title")) != 1 {
			t.Error("a picture has no title")
		}
	}
	if what := testkit.Printable([]byte(text)); what != "" {
		t.Errorf("the page has %s", what)
	}
	text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")                                               // a name, not an address
	text = regexp.MustCompile(`(?s)<script type="application/octet-stream".*?</script>`).ReplaceAllString(text, "") // any letters
	if bad := regexp.MustCompile(`%![A-Za-z(].*`).FindString(text); bad != "" {
		t.Errorf("the page contains %s", bad)
	}
	for _, word := range []string{"ZgotmplZ", "NaN", "http:", "https:"} {
		if strings.Contains(text, word) {
			t.Errorf("the page contains %s", word)
		}
	}
}

// TestReportHostileName: the name of a capture, and a filter, cannot add elements to the page.
func TestReportHostileName(t *testing.T) {
	sample, err := os.ReadFile("../../samples/rocev2-errors.pcap")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	name := "<script><img onerror=alert(1)>\x1b[31m\u202e.pcap"
	if err := os.WriteFile(name, sample, 0o600); err != nil {
		t.Skip("no such names here: ", err)
	}
	// A slash separates folders, so the end of the script is in the filter.
	page, text := reportOf(t, name, "-Y", `machine != "</script><img src=x onerror=alert(1)>--><style>"`)
	examine(t, page, text)
	if len(elements(page, "img")) > 0 || strings.Contains(text, "<img") {
		t.Error("the page has an image")
	}
	title := textOf(elements(page, "h1")[0])
	if want := `Report of <script><img onerror=alert(1)>\x1b[31m\xe2\x80\xae.pcap`; title != want {
		t.Errorf("the title is %q, want %q", title, want)
	}
}

// TestReportRedact: a redacted page has the same numbers, and nothing that identifies a machine.
func TestReportRedact(t *testing.T) {
	const path = "../../samples/rocev2-callback41.pcap"
	page, text := reportOf(t, path)
	hidden, redacted := reportOf(t, path, "--redact")
	for _, word := range []string{"192.168.77.1", "192.168.77.2", "rocev2-callback41.pcap"} {
		if !strings.Contains(text, word) || strings.Contains(redacted, word) {
			t.Errorf("%s: in the page %t, in the redacted page %t", word, strings.Contains(text, word), strings.Contains(redacted, word))
		}
	}
	examine(t, hidden, redacted)
	for _, id := range []string{"operation-table", "rate-table"} {
		if fmt.Sprint(tableOf(t, page, id)) != fmt.Sprint(tableOf(t, hidden, id)) {
			t.Errorf("%s differs", id)
		}
	}
	if again := second(reportOf(t, path, "--redact")); again != redacted {
		t.Error("a second redacted page differs")
	}

	// With a key, the pseudonyms are those of a scrubbed capture.
	folder := t.TempDir()
	key, scrubbed := filepath.Join(folder, "key"), filepath.Join(folder, "scrubbed.pcapng")
	if err := os.WriteFile(key, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run(context.Background(), []string{"export", "--scrub", "--key", key, path, "-w", scrubbed, "-q"}, os.Stderr, &errs); code != command.ExitOK {
		t.Fatal(errs.String())
	}
	public, _ := reportOf(t, scrubbed)
	keyed, _ := reportOf(t, path, "--redact", "--key", key)
	for _, id := range []string{"connection-table", "caller-table", "file-table"} {
		if got, want := fmt.Sprint(tableOf(t, keyed, id)), fmt.Sprint(tableOf(t, public, id)); got != want {
			t.Errorf("%s:\n%s, in a report about the scrubbed capture\n%s", id, got, want)
		}
	}
}

// secretsOf returns the words of captures that identify people, machines or files.
func secretsOf(t *testing.T, input []string) map[string]bool {
	secrets := map[string]bool{}
	for _, path := range input {
		secrets[filepath.Base(path)] = true
	}
	for _, r := range recordsOf(t, append([]string{"transactions"}, input...)...) {
		for _, path := range []string{"client", "server", "machine", "principal", "file", "file_from", "file_handle", "mount_path"} {
			hideWords(secrets, value(r, path))
		}
	}
	for _, r := range recordsOf(t, append([]string{"connections"}, input...)...) {
		hideWords(secrets, value(r, "client.address"))
		hideWords(secrets, value(r, "server.address"))
	}
	for _, r := range recordsOf(t, append([]string{"files"}, input...)...) {
		for _, path := range []string{"file", "file_handle", "created.file", "renamed.from", "removed.file", "created.principal"} {
			hideWords(secrets, value(r, path))
		}
	}
	return secrets
}

// lacksWords reports an error for each word in a text, and returns how many words it searched for: short ones, and those that are in each
// page, are none.
func lacksWords(t *testing.T, text, own string, words map[string]bool) (searched int) {
	t.Helper()
	for word := range words {
		if len(word) < 4 || strings.Contains(own, word) {
			continue
		}
		searched++
		if at := strings.Index(text, word); at >= 0 {
			t.Errorf("the page contains %q: %q", word, text[max(at-40, 0):min(at+len(word)+40, len(text))])
		}
	}
	return searched
}

// TestReportHidesBefore: a redacted page contains nothing of the capture that it is compared with, either.
func TestReportHidesBefore(t *testing.T) {
	own := sourceOf(t)
	for _, before := range []string{"rocev2-ipv6-nfs42", "iwarp-nfs41", "rocev2-nfs3"} {
		path := "../../testdata/captures/" + before + ".pcap.zst"
		page, text := reportOf(t, "--redact", "../../samples/rocev2-slowwrite42.pcap.zst", "--before", path)
		examine(t, page, text)
		if !strings.Contains(text, "Compared with before") {
			t.Errorf("%s: the page compares nothing", before)
		}
		if searched := lacksWords(t, wordsOf(t, page), own, secretsOf(t, []string{path})); searched < 3 {
			t.Errorf("%s: searched for %d words only", before, searched)
		}
	}
}

// TestReportHides: a redacted page contains nothing of a capture that identifies people, machines or files.
func TestReportHides(t *testing.T) {
	inputs := [][]string{bothEnds}
	for _, path := range testkit.Short(t, allCaptures(t)) {
		inputs = append(inputs, []string{path})
	}
	own := sourceOf(t) // words that are in each page
	for _, input := range inputs {
		t.Run(filepath.Base(input[0]), func(t *testing.T) {
			t.Parallel()
			secrets := secretsOf(t, input)
			plain, _ := reportOf(t, input...)
			page, text := reportOf(t, append([]string{"--redact"}, input...)...)
			examine(t, page, text)
			text = wordsOf(t, page)
			searched := lacksWords(t, text, own, secrets)
			t.Logf("searched for %d of %d words", searched, len(secrets))
			for _, name := range []string{"Client", "Machine", "Principal"} { // also words that are in each page
				hidden := column(t, page, "caller-table", name)
				for _, word := range column(t, plain, "caller-table", name) {
					if word != "" && !strings.HasPrefix(word, "LID ") && slices.Contains(hidden, word) {
						t.Errorf("column %s contains %q", name, word)
					}
				}
			}
			if got, want := len(tableOf(t, page, "file-table")), len(tableOf(t, plain, "file-table")); got != want {
				t.Errorf("%d files, want %d", got, want)
			}
		})
	}
}

// TestReportHidesPoints: a redacted page about records has pseudonyms of capture points, too, as a page about their captures
// has: the names of points are names of files.
func TestReportHidesPoints(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved.jsonl")
	var errs bytes.Buffer
	if code := run(t.Context(), append([]string{"export", "--format", "records", "-q", "-w", saved}, bothEnds...), io.Discard, &errs); code != command.ExitOK {
		t.Fatal(errs.String())
	}
	for name, input := range map[string][]string{"captures": bothEnds, "records": {saved}} {
		page, _ := reportOf(t, append([]string{"--redact"}, input...)...)
		text := wordsOf(t, page)
		for _, path := range append([]string{saved}, bothEnds...) {
			if secret := filepath.Base(path); strings.Contains(text, secret) {
				t.Errorf("%s: the page contains %s", name, secret)
			}
		}
		for _, want := range []string{"RDMA Read, packet 510 of point-2.", "1286 of point-1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page does not contain %q", name, want)
			}
		}
	}
}

// hideWords adds a text and, of a path, its names. LIDs of InfiniBand are numbers within a subnet, and stay.
func hideWords(to map[string]bool, text string) {
	if strings.HasPrefix(text, "LID ") {
		return
	}
	to[text] = true
	for name := range strings.SplitSeq(text, "/") {
		to[name] = true
	}
}

// sourceOf returns the text of a page that is about nothing, and of all rules.
func sourceOf(t *testing.T) string {
	t.Helper()
	page, text := reportOf(t, "../../testdata/unknown-link.pcap")
	for _, name := range []string{"page.html", "page.go", "charts.go", "tables.go"} { // A page without RPCs lacks most tables.
		source, err := os.ReadFile("../../internal/report/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(source)
	}
	for _, r := range rule.All {
		text += r.Markdown()
	}
	return text + wordsOf(t, page)
}

// wordsOf returns the text of a page with the words that the script gets.
func wordsOf(t *testing.T, page *html.Node) string {
	t.Helper()
	var b strings.Builder
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			b.WriteString(a.Val + "\n")
		}
		switch {
		case n.Type != html.TextNode:
		case n.Parent.Data == "script" && attribute(n.Parent, "id") == "rows":
			words, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(n.Data))))
			if err != nil {
				t.Fatal(err)
			}
			b.Write(words)
		default:
			b.WriteString(n.Data + "\n")
		}
	}
	return b.String()
}

// column returns the values of a column of a table.
func column(t *testing.T, page *html.Node, table, name string) (list []string) {
	t.Helper()
	for _, row := range tableOf(t, page, table) {
		list = append(list, row[name])
	}
	return list
}

// TestReportHostileFiles: names of files, machines and exports that are pieces of HTML stay text.
func TestReportHostileFiles(t *testing.T) {
	const name = "</td></script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e\""
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	call := synth.Symlink3(name, name)
	c.RPC(call, synth.Reply{Results: synth.XDR{}.Word(0, 1).String("its own handle..").Word(0, 0, 0)}.To(call))
	path := filepath.Join(t.TempDir(), "hostile.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WritePcap(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	page, text := reportOf(t, path)
	examine(t, page, text)
	if len(elements(page, "img")) > 0 || strings.Contains(text, "<img") || strings.Contains(text, "<script>alert") {
		t.Error("the name of a file is an element of the page")
	}
	want := regexp.MustCompile(`^fh:0x[0-9a-f]{8}/<%2Ftd><%2Fscript><script>alert\(1\)<%2Fscript><img src=x onerror=alert\(2\)>\\x1b\[31m\\xe2\\x80\\xae"$`)
	if names := column(t, page, "file-table", "File"); !slices.ContainsFunc(names, want.MatchString) {
		t.Errorf("the files are %q", names)
	}
	hidden, text := reportOf(t, "--redact", path)
	if examine(t, hidden, text); strings.Contains(wordsOf(t, hidden), "alert(") {
		t.Error("the redacted page contains the name of the file")
	}
}

// TestReportSize: a page is not larger than --max-size, and says what it leaves out.
func TestReportSize(t *testing.T) {
	const path = "../../testdata/captures/rocev2-nfs41.pcap.zst"
	_, text := reportOf(t, path, "--max-size", "1MiB")
	if len(text) > report.LeastMaxSize {
		t.Errorf("%d bytes", len(text))
	}
	if strings.Contains(text, `id="left-out"`) {
		t.Error("something was left out of a page that is small enough")
	}
}

// TestReportDamaged: a truncated capture has a page about everything before the damage, and the page
// says so.
func TestReportDamaged(t *testing.T) {
	sample, err := os.ReadFile("../../samples/rocev2-callback41.pcap")
	if err != nil {
		t.Fatal(err)
	}
	path, out := filepath.Join(t.TempDir(), "damaged.pcap"), filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, sample[:30000], 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run(context.Background(), []string{"report", path, "-w", out}, os.Stderr, &errs); code != command.ExitBroken || !strings.Contains(errs.String(), "the output has everything before that") {
		t.Errorf("exit status %d, want %d: %s", code, command.ExitBroken, &errs)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ends in the middle of a packet", "damaged.pcap is truncated at byte 29992"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestReportGolden compares a small page, without its style, script and data.
func TestReportGolden(t *testing.T) {
	const golden = "testdata/report.html"
	t.Chdir("../..") // so that the name of the capture is the same everywhere
	_, text := reportOf(t, "samples/rocev2-slowwrite42.pcap.zst", "--conn", "0", "--from", "3", "--to", "4")
	for _, part := range []string{`(?s)<style>.*?</style>`, `(?s)<script.*?</script>`, `content="default-src[^"]*"`, `rdmadump \(devel\)[^.]*`} {
		text = regexp.MustCompile(part).ReplaceAllString(text, "...")
	}
	path := filepath.Join("cmd/rdmadump", golden)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s", diff.Diff(golden, want, "now", []byte(text)))
	}
}

// TestReportBrowser opens pages in a browser: the script runs, reports no error, and decodes all RPCs.
func TestReportBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		t.Skip("no browser is installed; on Debian: apt-get install chromium")
	}
	for _, name := range []string{"samples/rocev2-slowwrite42.pcap.zst", "samples/rocev2-errors.pcap", "testdata/captures/rocev2-storm41.pcap.zst"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			page, text := reportOf(t, filepath.Join("../..", name))
			path := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			dump := func(flags ...string) (string, string) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--virtual-time-budget=5000"}, flags...)
				cmd := exec.CommandContext(ctx, browser, append(args, "--dump-dom", "file://"+path)...)
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				if err := cmd.Run(); err != nil {
					t.Skipf("the browser does not run here: %v: %.300s", err, &errs)
				}
				return out.String(), errs.String()
			}
			dom, messages := dump()
			if strings.Contains(messages, "CONSOLE") {
				t.Errorf("the console is not empty: %s", messages)
			}
			total := attributeOf(page, "rpcs", "data-total")
			if !strings.Contains(dom, `data-ready="`+total+`"`) {
				t.Errorf("the script did not decode %s RPCs", total)
			}
			shown, err := html.Parse(strings.NewReader(dom))
			if err != nil {
				t.Fatal(err)
			}
			if rows := tableOf(t, shown, "rpc-table"); len(rows) == 0 || len(rows) > 200 {
				t.Errorf("the script shows %d RPCs", len(rows))
			} else {
				var before []string
				for _, table := range elements(page, "table") {
					if attribute(table, "id") == "rpc-table" {
						for _, tr := range elements(table, "tr") {
							before = append(before, textOf(tr))
						}
					}
				}
				for _, table := range elements(shown, "table") {
					if attribute(table, "id") != "rpc-table" {
						continue
					}
					for _, tr := range elements(table, "tr") {
						if row := textOf(tr); len(before) <= 500 && !slices.Contains(before, row) {
							t.Errorf("the script shows a row that the page does not have: %s", row)
						}
					}
				}
			}
			for _, id := range []string{"findings", "operations", "rates", "connections", "ladders", "rpcs"} {
				if attributeOf(shown, id, "id") != id {
					t.Errorf("there is no %s", id)
				}
			}
			printed := filepath.Join(t.TempDir(), "report.pdf")
			dump("--print-to-pdf=" + printed)
			pdf, err := os.ReadFile(printed)
			if err != nil {
				t.Fatal(err)
			}
			boxes := regexp.MustCompile(`/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]`).FindAllSubmatch(pdf, -1)
			if len(boxes) == 0 {
				t.Fatal("nothing is printed")
			}
			for i, box := range boxes {
				wide, _ := strconv.ParseFloat(string(box[1]), 64)
				high, _ := strconv.ParseFloat(string(box[2]), 64)
				if wide <= high {
					t.Fatalf("page %d is printed with %s x %s points: the tables need the long side of the paper", i+1, box[1], box[2])
				}
			}
		})
	}
}

// visit is what test/browser/pages.mjs finds on a page.
type visit struct {
	File                                  string
	Requests, Messages, Violations        []string
	Sections, Hidden, PlainPictures, RPCs int
	PlainRows, Wide                       int
	Ready, Heap, Filter                   float64
	Spoken, Zoomed                        string
	Caption, PrintedHeading               string
}

// TestReportBrowsers opens reports of all kinds in Chromium: with scripts off and on, in light and dark, printed and on a
// narrow screen. Nothing is loaded, the console is empty, and axe-core finds no serious problem.
func TestReportBrowsers(t *testing.T) {
	script := browserScript(t, "pages.mjs", "playwright-core")
	pages := t.TempDir()
	var args []string
	totals := map[string]string{}
	for _, input := range [][]string{
		{"../../samples/rocev2-slowwrite42.pcap.zst"},
		{"../../samples/rocev2-errors.pcap"},
		bothEnds,
		{"../../testdata/captures/rocev2-nfs3.pcap.zst", "--redact"},
		{"../../testdata/captures/rocev2-loss42.pcap.zst", "--before", "../../testdata/captures/rocev2-nfs41.pcap.zst"},
		{"../../testdata/unknown-link.pcap"},
	} {
		page, text := reportOf(t, input...)
		path := filepath.Join(pages, fmt.Sprintf("page-%d.html", len(totals)))
		totals[path] = attributeOf(page, "rpcs", "data-total")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	seen := 0
	for _, line := range script(30*time.Minute, args...) {
		var v visit
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		seen++
		name := filepath.Base(v.File)
		t.Logf("%s: ready after %.0f ms, filter %.0f ms, heap %.0f MB", name, v.Ready, v.Filter, v.Heap/1e6)
		for what, list := range map[string][]string{"requests": v.Requests, "messages": v.Messages, "violations": v.Violations} {
			if len(list) > 0 {
				t.Errorf("%s: %s %q", name, what, list)
			}
		}
		if v.Hidden > 0 || v.Sections < 6 || v.RPCs > 0 && v.Sections < 9 || v.Wide > 360 || fmt.Sprint(v.RPCs) != totals[v.File] {
			t.Errorf("%s: %d sections, %d hidden, %d of %s RPCs, %d pixels wide on a screen of 360", name, v.Sections, v.Hidden, v.RPCs, totals[v.File], v.Wide)
		}
		caption := "RPCs: " + totals[v.File]
		if v.RPCs > 200 {
			caption = "RPCs: the first 200 of " + totals[v.File]
		}
		if v.RPCs > 0 && v.Caption != caption {
			t.Errorf("%s: the caption of the table is %q, want %q", name, v.Caption, caption)
		}
		if v.RPCs > 0 && v.PrintedHeading != "contents" {
			t.Errorf("%s: a printed heading has a button, so that Chromium does not repeat it on the next page: display is %q", name, v.PrintedHeading)
		}
		if v.RPCs > 0 && (v.PlainPictures == 0 || v.PlainRows == 0 || v.Spoken == "" || v.Zoomed == "") {
			t.Errorf("%s: without scripts %d pictures and %d rows; the keyboard says %q and zooms to %q", name, v.PlainPictures, v.PlainRows, v.Spoken, v.Zoomed)
		}
	}
	if seen != len(totals) {
		t.Errorf("%d pages, want %d", seen, len(totals))
	}
}

// TestReportFirefox: Firefox draws a page.
func TestReportFirefox(t *testing.T) {
	if !testkit.All() {
		t.Skip("make hostile runs this test")
	}
	firefox, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Skip("firefox-esr is not installed: apt-get install firefox-esr")
	}
	_, text := reportOf(t, bothEnds...)
	folder := t.TempDir()
	page, shot := filepath.Join(folder, "report.html"), filepath.Join(folder, "shot.png")
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, firefox, "--headless", "--profile", folder, "--window-size", "1000,2000", "--screenshot", shot, "file://"+page)
	cmd.Env = append(os.Environ(), "HOME="+folder, "MOZ_CRASHREPORTER_DISABLE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %.1000s", err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	size, colors := picture.Bounds(), map[color.Color]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			colors[picture.At(x, y)]++
		}
	}
	if size.Dx() < 1000 || size.Dy() < 2000 || len(colors) < 30 {
		t.Errorf("the picture has %v and %d colors", size, len(colors))
	}
}

// attributeOf returns an attribute of the element with an id.
func attributeOf(page *html.Node, id, name string) string {
	for n := range page.Descendants() {
		if attribute(n, "id") == id {
			return attribute(n, name)
		}
	}
	return ""
}
