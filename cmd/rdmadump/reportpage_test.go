package main

import (
	"bytes"
	"context"
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
				if !strings.Contains(text, "The capture has no RPCs.") {
					t.Error("the page does not say that there are no RPCs")
				}
				return
			}
			same("operations", "Operation", tableOf(t, page, "operation-table"), columns(stats, map[string]string{
				"Operation": "name", "RPCs": "requests", "Failed": "failed", "No reply": "no_reply", "P50": "latency.p50_ns", "P90": "latency.p90_ns", "P99": "latency.p99_ns", "Worst": "latency.max_ns",
			}))
			if !regexp.MustCompile(`stats [^\n<]* --every \S+</code>`).MatchString(text) {
				t.Error("no command for the timeline")
			}

			connections := recordsOf(t, "connections", path)
			want := columns(connections, map[string]string{
				"Conn": "id", "RPCs": "requests", "Credits used": "credits.forward.peak_in_flight", "Packets": "packets", "Repeated": "retransmitted", "Not captured": "not_captured",
				"NAKs": "naks", "Transport": "transport", "Protocol": "upper_layer",
			})
			for i, c := range connections {
				if want[i]["Credits used"] != "" || c["credits"] == nil {
					continue
				}
				want[i]["Credits used"] = "?" // the capture does not show how many Calls were outstanding
				if granted := value(c, "credits.forward.granted"); granted != "" {
					want[i]["Credits used"] += " of " + granted
				}
			}
			same("connections", "Conn", tableOf(t, page, "connection-table"), want)

			compareOverview(t, page, path)
			compareFindings(t, page, recordsOf(t, "check", path))
		})
	}
}

// compareOverview compares the problems and the steps of mounts with those of overview.
func compareOverview(t *testing.T, page *html.Node, path string) {
	t.Helper()
	var want, got []string
	for _, r := range recordsOf(t, "problems", path) {
		if r["id"] != "quirk" {
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
}

// bothEnds are captures of the same traffic at two points.
var bothEnds = []string{"../../testdata/captures/ends-stormall42-client.pcap.zst", "../../testdata/captures/ends-stormall42-server.pcap.zst"}

// TestReportPoints: a page about two capture points has what network and overview say.
func TestReportPoints(t *testing.T) {
	page, text := reportOf(t, bothEnds...)
	examine(t, page, text)
	var directions []map[string]any
	for _, r := range recordsOf(t, append([]string{"network"}, bothEnds...)...) {
		if r["type"] != "point" {
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
	equal("network-table", directions, map[string]string{
		"From": "from", "To": "to", "Packets": "packets", "Lost": "lost", "Not captured": "not_captured", "Unknown": "unknown", "Reordered": "reordered", "Damaged": "corrupted",
		"Duplicated": "duplicated", "P50": "delay.p50_ns", "P99": "delay.p99_ns", "Worst": "delay.max_ns",
	})
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
		if first := regexp.MustCompile(`; packet (\d+)`).FindStringSubmatch(textOf(article)); first != nil {
			got[id] = first[1]
		} else {
			got[id] = ""
		}
		for _, span := range elements(article, "span") {
			if severity := attribute(span, "data-severity"); severity != "" {
				got[id+" "+severity] = attribute(span, "data-v")
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) { // maps are printed in the order of their keys
		t.Errorf("findings: %v, want %v", got, want)
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
			if len(text) > 200<<10 {
				t.Errorf("the page has %d bytes", len(text))
			}
			examine(t, page, text)
		})
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
		{[]string{"../../testdata/other/rocev2-nvmeloss.pcap.zst"}, "The capture has no RPCs.", 3},
		{[]string{"../../samples/rocev2-callback41.pcap", "-Y", "latency > 100s"}, "No RPC is selected.", 2},
	} {
		page, text := reportOf(t, test.args...)
		if !strings.Contains(text, test.says) {
			t.Errorf("%q: the page does not say %q", test.args, test.says)
		}
		for _, id := range []string{"operation-table", "timeline", "ladders"} {
			if attributeOf(page, id, "id") != "" || strings.Contains(text, `href="#`+id+`"`) {
				t.Errorf("%q: the page has the section %s, or a link to it", test.args, id)
			}
		}
		if n := len(tableOf(t, page, "connection-table")); n != test.connections {
			t.Errorf("%q: %d connections, want %d", test.args, n, test.connections)
		}
		for _, id := range []string{"problems", "operations", "connections", "findings", "undecided", "capture"} {
			if attributeOf(page, id, "id") != id {
				t.Errorf("%q: there is no %s", test.args, id)
			}
		}
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
	for name, want := range map[string]int{"h1": 1, "main": 1, "header": 1, "style": 1, "script": 0} {
		if got := len(elements(page, name)); got != want {
			t.Errorf("%d elements %s, want %d", got, name, want)
		}
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

// TestReportScrub: a scrubbed page has the same numbers, and nothing that identifies a machine.
func TestReportScrub(t *testing.T) {
	const path = "../../samples/rocev2-callback41.pcap"
	page, text := reportOf(t, path)
	hidden, scrubbed := reportOf(t, path, "--scrub")
	for _, word := range []string{"192.168.77.1", "192.168.77.2", "rocev2-callback41.pcap"} {
		if !strings.Contains(text, word) || strings.Contains(scrubbed, word) {
			t.Errorf("%s: in the page %t, in the scrubbed page %t", word, strings.Contains(text, word), strings.Contains(scrubbed, word))
		}
	}
	examine(t, hidden, scrubbed)
	for _, id := range []string{"operation-table"} {
		if fmt.Sprint(tableOf(t, page, id)) != fmt.Sprint(tableOf(t, hidden, id)) {
			t.Errorf("%s differs", id)
		}
	}
	if again := second(reportOf(t, path, "--scrub")); again != scrubbed {
		t.Error("a second scrubbed page differs")
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
	keyed, _ := reportOf(t, path, "--scrub", "--key", key)
	for _, id := range []string{"connection-table", "operation-table"} {
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

// TestReportHides: a scrubbed page contains nothing of a capture that identifies people, machines or files.
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
			page, text := reportOf(t, append([]string{"--scrub"}, input...)...)
			examine(t, page, text)
			text = wordsOf(page)
			searched := lacksWords(t, text, own, secrets)
			t.Logf("searched for %d of %d words", searched, len(secrets))
		})
	}
}

// TestReportHidesPoints: a scrubbed page about records has pseudonyms of capture points, too, as a page about their captures
// has: the names of points are names of files.
func TestReportHidesPoints(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "saved.jsonl")
	var errs bytes.Buffer
	if code := run(t.Context(), append([]string{"export", "--format", "records", "-q", "-w", saved}, bothEnds...), io.Discard, &errs); code != command.ExitOK {
		t.Fatal(errs.String())
	}
	for name, input := range map[string][]string{"captures": bothEnds, "records": {saved}} {
		page, _ := reportOf(t, append([]string{"--scrub"}, input...)...)
		text := wordsOf(page)
		for _, path := range append([]string{saved}, bothEnds...) {
			if secret := filepath.Base(path); strings.Contains(text, secret) {
				t.Errorf("%s: the page contains %s", name, secret)
			}
		}
		for _, want := range []string{"118 of point-1 sent again", "1286 of point-1"} {
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
	for _, name := range []string{"page.html", "page.go", "timeline.go"} { // A page without RPCs lacks most tables.
		source, err := os.ReadFile("../../internal/report/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(source)
	}
	for _, r := range rule.All {
		text += r.Markdown()
	}
	return text + wordsOf(page)
}

// wordsOf returns the text of a page, and of its attributes.
func wordsOf(page *html.Node) string {
	var b strings.Builder
	for n := range page.Descendants() {
		for _, a := range n.Attr {
			b.WriteString(a.Val + "\n")
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data + "\n")
		}
	}
	return b.String()
}

// TestReportHostileFiles: names of files, machines and exports that are pieces of HTML stay text.
func TestReportHostileFiles(t *testing.T) {
	const name = "</td></script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e\""
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	call := synth.Symlink3(name, name)
	c.Client.Call(call)
	c.Server.Ack()
	w.Advance(2 * time.Second) // a problem names the file
	c.Server.Reply(synth.Reply{Results: synth.XDR{}.Word(0, 1).String("its own handle..").Word(0, 0, 0)}.To(call))
	c.Client.Ack()
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
	want := regexp.MustCompile(`/<%2Ftd><%2Fscript><script>alert\(1\)<%2Fscript><img src=x onerror=alert\(2\)>\\x1b\[31m\\xe2\\x80\\xae`)
	if !want.MatchString(wordsOf(page)) {
		t.Errorf("the page does not name the file: %s", wordsOf(page))
	}
	hidden, text := reportOf(t, "--scrub", path)
	if examine(t, hidden, text); strings.Contains(wordsOf(hidden), "alert(") {
		t.Error("the scrubbed page contains the name of the file")
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
	for _, part := range []string{`(?s)<style>.*?</style>`, `content="default-src[^"]*"`, `rdmadump \(devel\)[^.]*`} {
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

// TestReportBrowser opens pages in a browser, which has no complaint, shows all parts, and prints them on the long side of the paper.
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
			_, text := reportOf(t, filepath.Join("../..", name))
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
			shown, err := html.Parse(strings.NewReader(dom))
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"problems", "timeline", "operations", "ladders", "connections", "findings", "undecided", "capture"} {
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
	File                           string
	Requests, Messages, Violations []string
	Sections, Hidden, Pictures     int
	Wide                           int // pixels that a screen of 360 needs
	Details                        int // height of what a printed page shows of the explanation of a rule
}

// TestReportBrowsers opens reports of all kinds in Chromium: in light and dark, printed and on a narrow screen. Nothing is loaded, the
// console is empty, and axe-core finds no serious problem.
func TestReportBrowsers(t *testing.T) {
	script := browserScript(t, "pages.mjs", "playwright-core")
	folder := t.TempDir()
	inputs := [][]string{
		{"../../samples/rocev2-slowwrite42.pcap.zst"},
		{"../../samples/rocev2-errors.pcap"},
		bothEnds,
		{"../../testdata/captures/rocev2-nfs3.pcap.zst", "--scrub"},
		{"../../testdata/unknown-link.pcap"},
	}
	var args []string
	for i, input := range inputs {
		path := filepath.Join(folder, fmt.Sprintf("page-%d.html", i))
		if err := os.WriteFile(path, []byte(second(reportOf(t, input...))), 0o600); err != nil {
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
		for what, list := range map[string][]string{"requests": v.Requests, "messages": v.Messages, "violations": v.Violations} {
			if len(list) > 0 {
				t.Errorf("%s: %s %q", name, what, list)
			}
		}
		sections, pictures := 8, 2
		if name == "page-4.html" { // without RPCs
			sections, pictures = 6, 0
		}
		if v.Hidden > 0 || v.Sections < sections || v.Pictures < pictures || v.Wide > 360 {
			t.Errorf("%s: %d sections, %d hidden, %d pictures, %d pixels wide on a screen of 360", name, v.Sections, v.Hidden, v.Pictures, v.Wide)
		}
		if name == "page-1.html" && v.Details == 0 {
			t.Errorf("%s: a printed page does not explain the rules", name)
		}
	}
	if seen != len(inputs) {
		t.Errorf("%d pages, want %d", seen, len(inputs))
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
