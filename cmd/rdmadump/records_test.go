package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// rewrite applies change to every string and number of a decoded JSON value, and removes every member
// of its objects, one at a time, and calls visit after each change. It undoes the change afterwards.
func rewrite(v any, change func(any) any, visit func()) {
	each := func(old any, set func(any)) {
		switch old.(type) {
		case string, float64:
			set(change(old))
			visit()
			set(old)
		default:
			rewrite(old, change, visit)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, old := range v {
			each(old, func(now any) { v[key] = now })
			delete(v, key)
			visit()
			v[key] = old
		}
	case []any:
		for i, old := range v {
			each(old, func(now any) { v[i] = now })
		}
	}
}

// TestHostileRecords: records that somebody made to do harm, and those that lack a field as if an earlier
// version had written them, neither make a view panic nor reach the terminal raw.
func TestHostileRecords(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"export", "--format", "records", "../../testdata/captures/rocev2-loss42.pcap.zst", "-w", "-", "-q"}, &out, &errs); code != command.ExitOK {
		t.Fatalf("exporting records ends with status %d: %s", code, &errs)
	}
	seen, kept := map[string]int{}, []byte(nil)
	var changed [][]byte
	for line := range bytes.Lines(out.Bytes()) {
		name, err := records.TypeOf(line)
		if err != nil {
			t.Fatal(err)
		}
		if seen[name]++; name != "summary" && seen[name]%40 != 1 {
			continue
		}
		kept = append(kept, line...)
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		rewrite(v, func(old any) any {
			if _, number := old.(float64); number {
				return -7
			}
			return "\x1b[2J\u009b" + fmt.Sprint(old)
		}, func() {
			made, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := records.Parse(made); err == nil {
				changed = append(changed, made)
			}
		})
	}
	if len(changed) < 100 {
		t.Fatalf("only %d records are changed", len(changed))
	}
	file := filepath.Join(t.TempDir(), "hostile.json")
	for i, line := range changed {
		if name, _ := records.TypeOf(line); name == "summary" { // another summary would be of another capture
			line = append(line, '\n')
		} else {
			line = append(append(line, '\n'), kept...)
		}
		if err := os.WriteFile(file, line, 0o600); err != nil {
			t.Fatal(err)
		}
		views := []string{"transactions", "transactions --xid XID", "connections --timeline", "check", "overview", "stats --every 1s", "transactions --columns CONN,STATUS -Y|latency > 1ms"}
		if !testkit.All() {
			views = views[i%len(views):][:1]
		}
		for _, view := range views {
			if problem := unharmed(view, file); problem != "" {
				t.Fatalf("%d: %s\n%.300s", i, problem, line)
			}
		}
	}
}
