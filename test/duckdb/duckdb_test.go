// Package duckdb compares the Parquet tables of rdmadump with the results of its stats view,
// by DuckDB. It is a separate module, because DuckDB needs cgo and rdmadump does not.
package duckdb

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/marcboeker/go-duckdb"
)

// row has the statistics of one operation.
type row struct {
	Name                                   string
	Count, Complete, Errors, Retransmitted int64
	TotalNS                                int64
	P50, P90, P99, Max                     sql.NullInt64
	CallBytes, ReplyBytes                  int64
}

// TestStats: the query in docs/export.md computes the same values as stats.
func TestStats(t *testing.T) {
	page, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	_, query, found := strings.Cut(string(page), "```sql\n")
	query, _, ended := strings.Cut(query, "```")
	if !found || !ended {
		t.Fatal("no query in docs/export.md")
	}
	folder := t.TempDir()
	rdmadump := filepath.Join(folder, "rdmadump")
	build := exec.Command("go", "build", "-o", rdmadump, "./cmd/rdmadump")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	captures := []string{"rocev2-data42.pcap.zst", "rocev2-errors.pcap.zst", "lab-retries42.pcap.zst", "lab-iwarpdata3.pcap.zst", "rocev2-callback41.pcap.zst"}
	for _, name := range captures {
		path, _ := filepath.Abs("../../testdata/captures/" + name)
		tables := filepath.Join(folder, name)
		run(t, rdmadump, "export", "--to", "parquet", path, "-w", tables, "-q")
		want := map[string]row{}
		lines := json.NewDecoder(bytes.NewReader(run(t, rdmadump, "stats", path, "-o", "json", "-q")))
		type forms struct{ Short, Chunked, Long int64 }
		for {
			var s struct {
				Type, Name                             string
				Count, Complete, Errors, Retransmitted int64
				TotalNS                                int64 `json:"total_ns"`
				CallBytes                              forms `json:"call_bytes"`
				ReplyBytes                             forms `json:"reply_bytes"`
				Latency                                struct {
					P50 *int64 `json:"p50_ns"`
					P90 *int64 `json:"p90_ns"`
					P99 *int64 `json:"p99_ns"`
					Max *int64 `json:"max_ns"`
				}
			}
			if lines.Decode(&s) != nil {
				break
			}
			if s.Type != "stats" {
				continue
			}
			null := func(p *int64) (n sql.NullInt64) {
				if p != nil {
					n = sql.NullInt64{Int64: *p, Valid: true}
				}
				return n
			}
			all := func(f forms) int64 { return f.Short + f.Chunked + f.Long }
			want[s.Name] = row{
				s.Name, s.Count, s.Complete, s.Errors, s.Retransmitted, s.TotalNS,
				null(s.Latency.P50), null(s.Latency.P90), null(s.Latency.P99), null(s.Latency.Max), all(s.CallBytes), all(s.ReplyBytes),
			}
		}
		if len(want) == 0 {
			t.Fatalf("%s: stats has %d rows", name, len(want))
		}
		db, err := sql.Open("duckdb", "")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		rows, err := db.Query(strings.ReplaceAll(query, "'tables/", "'"+tables+"/"))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for ; rows.Next(); got++ {
			var r row
			if err := rows.Scan(&r.Name, &r.Count, &r.Complete, &r.Errors, &r.Retransmitted, &r.TotalNS, &r.P50, &r.P90, &r.P99, &r.Max, &r.CallBytes, &r.ReplyBytes); err != nil {
				t.Fatal(err)
			}
			if r != want[r.Name] {
				t.Errorf("%s: DuckDB returns %+v, stats %+v", name, r, want[r.Name])
			}
		}
		if err := rows.Err(); err != nil || got != len(want) {
			t.Errorf("%s: %d rows, want %d, %v", name, got, len(want), err)
		}
		rows.Close()
	}
}

// run returns the standard output of a command, which must succeed.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, stderr.String())
	}
	return out
}
