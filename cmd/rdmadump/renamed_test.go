package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/query"
)

// typesOfRecords maps the type of a JSON record to its fields.
func typesOfRecords() map[string]query.Fields {
	types := map[string]query.Fields{}
	names := map[string]string{
		"transactions": "transaction", "connections": "connection", "packets": "packet", "check": "finding", "files": "file", "rates": "rate", "rdma": "rdma_operation", "rdma-sums": "rdma_stats", "compare": "comparison", "points": "point", "lost-packets": "lost_packet",
	}
	for _, list := range fieldLists {
		types[cmp.Or(names[list.view], list.view)] = list.fields
	}
	return types
}

// TestNoOldNames: no record of any view has an old name as a key, or an old value.
func TestNoOldNames(t *testing.T) {
	types := typesOfRecords()
	seen := map[string]bool{}
	samples, err := filepath.Glob("../../samples/*.pcap*")
	if err != nil || len(samples) == 0 {
		t.Fatal("no samples", err)
	}
	const ends = "../../testdata/captures/ends-stormall42-"
	args := map[string][]string{ends + "client.pcap.zst": {"network " + ends + "server.pcap.zst", "network --lost " + ends + "server.pcap.zst", "transactions " + ends + "server.pcap.zst"}}
	for _, sample := range samples {
		args[sample] = []string{
			"transactions", "connections --timeline", "packets --rpc -c 500", "check", "stats", "files", "stats --every 1s", "overview", "rdma", "rdma --by kind", "compare " + sample,
		}
	}
	for sample, commands := range args {
		for _, args := range commands {
			var out bytes.Buffer
			run(t.Context(), append(strings.Fields(args), "-o", "json", sample), &out, io.Discard)
			for line := range bytes.Lines(out.Bytes()) {
				var r map[string]any
				if err := json.Unmarshal(line, &r); err != nil {
					t.Fatal(err)
				}
				kind := r["type"].(string)
				fields := types[kind]
				if fields == nil {
					t.Fatalf("unknown record type %s", kind)
				}
				seen[kind] = true
				renamed := fields.Renamed()
				eachValue(r, "", func(path string, value any) {
					if now := renamed[path]; now != "" && !fields.Has(path) {
						t.Errorf("%s %s: a %s has the old name %s of %s", args, sample, kind, path, now)
					}
					text, isText := value.(string)
					if !isText || strings.HasPrefix(path, "nfs.") || strings.HasPrefix(path, "rpc.") {
						return
					}
					if now := rule.Renamed[text]; now != "" {
						t.Errorf("%s %s: %s %s has the old name of the rule %s", args, sample, kind, path, now)
					}
					if query.RenamedValue(path, text) != "" {
						t.Errorf("%s %s: %s %s has the old value %q", args, sample, kind, path, text)
					}
				})
			}
		}
	}
	for kind := range types {
		if !seen[kind] {
			t.Errorf("no record of type %s was seen", kind)
		}
	}
}

// eachValue calls visit for each member of a JSON value, with its path. The elements of a
// list have the path of the list.
func eachValue(value any, path string, visit func(path string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			below := key
			if path != "" {
				below = path + "." + key
			}
			visit(below, member)
			eachValue(member, below, visit)
		}
	case []any:
		for _, element := range v {
			if _, isText := element.(string); isText {
				visit(path, element)
			}
			eachValue(element, path, visit)
		}
	}
}

// oldWords returns the old names that can be recognized in text, because they are not words
// of English: old names of fields, values, rules, flags and headings.
func oldWords() (words []string) {
	current := map[string]bool{}
	for _, fields := range typesOfRecords() {
		for _, name := range fields.Names() {
			current[name[strings.LastIndexByte(name, '.')+1:]] = true
		}
	}
	for _, fields := range typesOfRecords() {
		for old := range fields.Renamed() {
			if old = old[strings.LastIndexByte(old, '.')+1:]; !current[old] && (strings.Contains(old, "_") || old == "nobodys" || old == "blames") {
				words = append(words, old)
			}
		}
	}
	for old := range rule.Renamed {
		words = append(words, old)
	}
	for old := range oldFlags {
		words = append(words, "--"+old)
	}
	return append(words, "64K-INLINE", "RETR/OOO/LOST", "LATENCIES", "READ/WRITE/WAIT/REST")
}

// TestNoOldNamesInHelp: no help text and no man page has an old name.
func TestNoOldNamesInHelp(t *testing.T) {
	root, folder := newRoot(io.Discard, io.Discard), t.TempDir()
	if err := writeManual(root, folder); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	eachCommand(root, func(cmd *cobra.Command) { texts["help of "+cmd.CommandPath()] = cmd.Long + string(usage(cmd, 0)) })
	for _, topic := range topics {
		texts["help "+topic.name] = topic.page()
	}
	pages, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts[page.Name()] = strings.ReplaceAll(string(text), `\-`, "-")
	}
	words := oldWords()
	if len(words) < 20 {
		t.Errorf("only %d old names", len(words))
	}
	for name, text := range texts {
		for _, word := range words {
			if found := regexp.MustCompile(`(?:^|[^\w-])` + regexp.QuoteMeta(word) + `(?:[^\w-]|$)`).FindString(text); found != "" {
				t.Errorf("%s: %q", name, found)
			}
		}
	}
}

// TestOldNames: an old name of a field stands for the field in expressions, columns and
// sorting, of each record type. A name that means something else now gives an error with the
// new name. In a jq program, each gives a warning.
func TestOldNames(t *testing.T) {
	reused := []string{"by", "of", "dropped", "exposures"}
	n := 0
	for kind, fields := range typesOfRecords() {
		if kind == "rdma_operation" {
			continue // Its waits are those of transactions.
		}
		for old, now := range fields.Renamed() {
			n++
			last := old[strings.LastIndexByte(old, '.')+1:]
			got, err := query.Resolve(old, fields)
			switch {
			case fields.Has(old): // It is a current field, too.
				if got != old || err != nil {
					t.Errorf("%s: %s is %s, %v", kind, old, got, err)
				}
			case slices.Contains(reused, last):
				if want := fmt.Sprintf("%s is now called %s", old, now); err == nil || err.Error() != want {
					t.Errorf("%s: %s: %v, want %s", kind, old, err, want)
				}
			case got != now || err != nil:
				t.Errorf("%s: %s is %s, %v; want %s", kind, old, got, err, now)
			default:
				if _, err := query.Compile(old+" != null", fields); err != nil {
					t.Errorf("%s: %v", kind, err)
				}
			}
			if notes := query.RenamedIn("."+last, fields); len(notes) == 0 && !slices.ContainsFunc(fields.Names(), func(name string) bool { return name == last || strings.HasSuffix(name, "."+last) }) {
				t.Errorf("%s: .%s in a jq program gives no warning", kind, last)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d old names", n)
	}
	for _, c := range []struct {
		fields       query.Fields
		source, want string
	}{
		{query.Packets, "marks == repeated", `repeated is now called "retransmitted"`},
		{query.Packets, "no_transaction_reason == dropped", `dropped is now called "receiver_dropped"`},
		{query.Transactions, `waits.reason == "behind another transaction"`, `is now called "head_of_line"`},
		{query.Transactions, `any(waits, .reason == "RNR")`, `"RNR" is now called "rnr_nak"`},
		{query.Transactions, `"limit-reached" in findings`, `"limit-reached" is now called "memory-limit-reached"`},
		{query.Findings, "rule == inv-handle-foreign", `inv-handle-foreign is now called "inv-handle-unknown"`},
		{query.Findings, "rule in [xid-mismatch, reply-refused]", `reply-refused is now called "reply-not-delivered"`},
		{query.Transactions, "any(waits, .of == nak)", "waits.of is now called waits.event"},
	} {
		if _, err := query.Compile(c.source, c.fields); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.source, err, c.want)
		}
	}
	for _, c := range []struct {
		fields        query.Fields
		program, want string
	}{
		{query.Connections, ".lost", "lost is now called not_captured"},
		{query.Connections, ".close_reason", "close_reason is now called ended.how"},
		{query.Packets, `select(.mark[] == "repeated")`, `mark is now called marks, "repeated" is now called "retransmitted"`},
		{query.Findings, `select(.rule == "garbage-args") | .blames`, `"garbage-args" is now called "rpc-rejected", blames is now called at_fault`},
		{query.Transactions, `select(.findings[] == "reply-refused")`, `"reply-refused" is now called "reply-not-delivered"`},
		{query.Transactions, ".latency_ns", ""},
	} {
		if got := strings.Join(query.RenamedIn(c.program, c.fields), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", c.program, got, c.want)
		}
	}
}

// TestChangelog: the tables of the changelog have every name that changed, with the name
// that replaced it.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			n := len(cells) - 1
			rows[strings.TrimSpace(cells[n-3])+"|"+firstCode(cells[n-2])+"|"+firstCode(cells[n-1])] = true
		}
	}
	has := func(what, old, now string) bool {
		for row := range rows {
			cells := strings.Split(row, "|")
			if strings.HasPrefix(cells[0], what) && cells[1] == old && cells[2] == now {
				return true
			}
		}
		return false
	}
	last := func(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
	for kind, fields := range typesOfRecords() {
		if kind == "rdma_operation" {
			continue // Its waits are those of transactions.
		}
		for old, now := range fields.Renamed() {
			if kind == "overview" && (strings.HasPrefix(old, "slowest") || strings.HasPrefix(old, "busiest")) {
				continue // These are transactions and stats.
			}
			if last(old) == last(now) {
				continue // The object that contains the field was renamed.
			}
			what, name := kind, last(now)
			if parent, _, nested := strings.Cut(old, "."); nested {
				what = kind + ", in `" + parent + "`"
			}
			if strings.Count(old, ".") != strings.Count(now, ".") {
				name = now
			}
			if !has(what, last(old), name) {
				t.Errorf("CHANGELOG.md does not say that %s of a %s is now %s", old, kind, now)
			}
		}
	}
	for old, now := range rule.Renamed {
		if !has("", old, now) {
			t.Errorf("CHANGELOG.md does not say that the rule %s is now %s", old, now)
		}
	}
	for old, flag := range oldFlags {
		if !strings.Contains(string(text), fmt.Sprintf("| `%s` | `--%s` |", flag.command, old)) {
			t.Errorf("CHANGELOG.md does not mention the old flag --%s of %s", old, flag.command)
		}
	}
	for path, values := range query.RenamedValues() {
		if path == "rule" || path == "findings" {
			continue // They are in the table of rules.
		}
		for old, now := range values {
			if !has("`"+path+"` of ", old, now) {
				t.Errorf("CHANGELOG.md does not say that the value %s of %s is now %s", old, path, now)
			}
		}
	}
}

// firstCode returns the first text in back quotes of a table cell.
func firstCode(cell string) string {
	parts := strings.SplitN(cell, "`", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}
