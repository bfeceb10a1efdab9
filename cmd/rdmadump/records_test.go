package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// TestErrorsAreOneNumber: an RPC counts as an error if its Reply is an error, and as one without a Reply if the capture has none,
// in every view that counts them.
func TestErrorsAreOneNumber(t *testing.T) {
	for _, test := range []struct {
		file            string
		errors, noReply int // noReply: of transactions
		unanswered      int // of requests
	}{
		{"rocev2-errors", 7, 5, 5},
		{"lab-retries42", 4, 7, 3},
		{"rocev2-nfs3", 2, 0, 0},
	} {
		path := "../../testdata/captures/" + test.file + ".pcap.zst"
		attempts, requests := fmt.Sprint(test.errors, test.noReply), fmt.Sprint(test.errors, test.unanswered)
		sum := func(list []map[string]any, errors, noReply string) string {
			var sums [2]int
			for _, r := range list {
				for i, name := range []string{errors, noReply} {
					n, _ := strconv.Atoi(value(r, name))
					sums[i] += n
				}
			}
			return fmt.Sprint(sums[0], sums[1])
		}
		var counts [2]int
		for _, r := range recordsOf(t, "transactions", path) {
			status, rpc, nfs := value(r, "status"), value(r, "rpc_status"), value(r, "nfs_status")
			if status == "rdma_error" || rpc != "" && rpc != "SUCCESS" || nfs != "" && !strings.HasSuffix(nfs, "_OK") {
				counts[0]++
			}
			if status == "no_reply" {
				counts[1]++
			}
		}
		overview := recordsOf(t, "overview", path)
		for _, r := range overview {
			rpcs, is := r["rpcs"].(map[string]any)
			if !is { // a problem
				continue
			}
			failed, _ := strconv.Atoi(value(rpcs, "failed"))
			refused, _ := strconv.Atoi(value(rpcs, "rdma_error"))
			rpcs["failed"] = failed + refused
		}
		for name, sums := range map[string][2]string{ // what is counted, and what is right
			"transactions":          {fmt.Sprint(counts[0], counts[1]), attempts},
			"overview, attempts":    {sum(overview, "rpcs.failed", "rpcs.no_reply"), attempts},
			"overview":              {sum(overview, "rpcs.failed", "rpcs.unanswered"), requests},
			"stats":                 {sum(recordsOf(t, "stats", path), "failed", "no_reply"), requests},
			"stats --by nfs_status": {sum(recordsOf(t, "stats", path, "--by", "nfs_status"), "failed", "no_reply"), requests},
			"stats --every 1s":      {sum(recordsOf(t, "stats", path, "--every", "1s"), "failed", "no_reply"), requests},
			"compare, before":       {sum(recordsOf(t, "compare", path, "../../testdata/captures/rocev2-nfs41.pcap.zst"), "before.failed", "before.no_reply"), requests},
		} {
			if sums[0] != sums[1] {
				t.Errorf("%s, %s: errors and RPCs without a Reply are %s, want %s", test.file, name, sums[0], sums[1])
			}
		}
	}
}
