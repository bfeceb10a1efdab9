// Package duckdb runs the queries of docs/export.md on the Parquet tables of rdmadump, and compares the tables with its
// other outputs. It is a separate module, because DuckDB needs cgo and rdmadump does not.
package duckdb

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	_ "github.com/marcboeker/go-duckdb"

	"github.com/rdmadump/rdmadump/synth"
)

var update = flag.Bool("update", false, "write the results of the queries to docs/export.md")

// page is the page with the queries.
const page = "../../docs/export.md"

// query matches a query of the page, and its result.
var query = regexp.MustCompile("(?s)```sql\n(.*?)```\n\n```text\n(.*?)```")

// built builds rdmadump, and returns the path of the program.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rdmadump")
	build := exec.Command("go", "build", "-pgo=off", "-o", path, "./cmd/rdmadump")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
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

// result returns the result of a query as text, a line for each row below the names of the columns.
func result(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		words := make([]string, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case nil:
				words[i] = "NULL"
			case time.Time:
				words[i] = v.UTC().Format("2006-01-02 15:04:05")
			default:
				words[i] = fmt.Sprint(v)
			}
		}
		fmt.Fprintln(w, strings.Join(words, "\t"))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	w.Flush()
	return regexp.MustCompile(` +\n`).ReplaceAllString(text.String(), "\n")
}

// database returns a database, which is in memory.
func database(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestPage: the queries in docs/export.md have the results that the page shows.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	rdmadump, folder := built(t), t.TempDir()
	for host, capture := range map[string]string{"client": "ends/roce-burst41-client", "server": "ends/roce-burst41-server", "node3": "captures/lab-iwarpdata3"} {
		name := filepath.Join(folder, host+".pcap")
		if err := os.WriteFile(name, run(t, "zstd", "-dc", "../../testdata/"+capture+".pcap.zst"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(rdmadump, "export", "--format", "parquet", host+".pcap", "-w", "tables", "--partition", "host="+host)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	fleet(t, rdmadump, folder)
	db, queries := database(t), 0
	after := query.ReplaceAllStringFunc(string(text), func(both string) string {
		m := query.FindStringSubmatch(both)
		queries++
		got := result(t, db, regexp.MustCompile("'(tables|fleet)/").ReplaceAllString(m[1], "'"+folder+"/$1/"))
		if got != m[2] && !*update {
			t.Errorf("the query\n%sreturns\n%s, the page shows\n%s", m[1], got, m[2])
		}
		return "```sql\n" + m[1] + "```\n\n```text\n" + got + "```"
	})
	if queries != 12 {
		t.Errorf("the page has %d queries with results, want 12", queries)
	}
	if *update {
		if err := os.WriteFile(page, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fleet exports the captures of three clients and their server, whose answers do not come to two of the clients for a while.
func fleet(t *testing.T, rdmadump, folder string) {
	t.Helper()
	server, all := netip.MustParseAddr("10.0.0.1"), synth.New()
	write := func(host string, w *synth.Wire) {
		path := filepath.Join(folder, host+".pcapng")
		f, err := os.Create(path)
		if err == nil {
			err = errors.Join(w.WritePcapng(f), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		run(t, rdmadump, "export", "--format", "parquet", path, "-w", filepath.Join(folder, "fleet"), "--partition", "host="+host, "-q")
	}
	asks := func(w *synth.Wire, client byte, waits time.Duration) {
		conns := uint32(0)
		connect := func() *synth.Conn {
			conns++
			c := w.RoCE(synth.Options{
				Client: synth.End{Addr: netip.AddrFrom4([4]byte{10, 0, 0, client}), QPN: conns<<8 + uint32(client), Port: 50000 + uint16(client), CommID: conns<<8 + uint32(client)},
				Server: synth.End{Addr: server, QPN: 0x1000 + conns<<8 + uint32(client), CommID: 0x1000 + conns<<8 + uint32(client)},
			})
			c.Connect()
			return c
		}
		c := connect()
		file := []synth.Call{synth.Getattr3(), synth.Read3(0, 16)}
		replies := []synth.Reply{synth.Getattr3Reply(), synth.Read3Reply(make([]byte, 16))}
		for round := range 6 {
			calls := slices.Clone(file)
			var sent []*synth.Frame
			for i := range calls {
				calls[i].XID = uint32(client)<<16 + uint32(round*2+i+1)
				sent = append(sent, c.Client.Call(calls[i])...)
			}
			if round == 3 && waits > 0 {
				for at := time.Duration(0); at < waits; at += 2 * time.Second {
					w.Advance(2 * time.Second)
					w.Retransmit(sent...)
				}
				c = connect() // and the client asks again
				for i := range calls {
					c.Client.Call(calls[i])
				}
			}
			c.Server.Ack()
			for i := range calls {
				replies[i].XID = calls[i].XID
				w.Advance(300 * time.Microsecond)
				c.Server.Reply(replies[i])
			}
			c.Client.Ack()
			w.Advance(time.Second)
		}
		c.Disconnect(c.Client)
	}
	for i, waits := range []time.Duration{12 * time.Second, 8 * time.Second, 0} {
		w := synth.New()
		asks(w, byte(11+i), waits)
		write(fmt.Sprintf("client%d", i+1), w)
		asks(all, byte(11+i), 0) // the server's capture has the Calls when they came at last
	}
	write("server", all)
}

// row has the statistics of one operation.
type row struct {
	Name                                   string
	Count, Complete, Failed, Retransmitted int64
	TotalNS                                int64
	P50, P90, P99, Max                     sql.NullInt64
	CallBytes, ReplyBytes                  int64
}

// TestStats: the first query of the page computes the same values as stats, and the other tables have as many rows as their views.
func TestStats(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Replace(query.FindStringSubmatch(string(text))[1], " LIMIT 5", "", 1)
	rdmadump, folder := built(t), t.TempDir()
	for _, name := range []string{"rocev2-data42.pcap.zst", "rocev2-errors.pcap.zst", "lab-retries42.pcap.zst", "lab-iwarpdata3.pcap.zst", "rocev2-callback41.pcap.zst"} {
		path, _ := filepath.Abs("../../testdata/captures/" + name)
		tables := filepath.Join(folder, name)
		run(t, rdmadump, "export", "--format", "parquet", path, "-w", tables, "-q")
		want := statsOf(t, rdmadump, path)
		if len(want) == 0 {
			t.Fatalf("%s: stats has no rows", name)
		}
		db := database(t)
		rows, err := db.Query(strings.ReplaceAll(first, "'tables/", "'"+tables+"/"))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for ; rows.Next(); got++ {
			var r row
			if err := rows.Scan(&r.Name, &r.Count, &r.Complete, &r.Failed, &r.Retransmitted, &r.TotalNS, &r.P50, &r.P90, &r.P99, &r.Max, &r.CallBytes, &r.ReplyBytes); err != nil {
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
		for table, view := range map[string][]string{
			"connections": {"connections"}, "findings": {"check"}, "files": {"files"}, "rdma_operations": {"rdma"}, "tasks": {"tasks"}, "problems": {"problems"}, "captures": {"overview"}, "points": nil,
		} {
			lines := 0
			if view != nil {
				lines = recordsOf(t, rdmadump, append(view, path)...)
			}
			rows := result(t, db, fmt.Sprintf("SELECT count(*) AS n FROM read_parquet('%s/v1/%s/**/*.parquet', hive_partitioning = true)", tables, table))
			if want := fmt.Sprintf("n\n%d\n", lines); rows != want {
				t.Errorf("%s: the table %s has %q rows, the view %q", name, table, rows, want)
			}
		}
	}
}

// recordsOf returns the number of records that a view writes, but for summaries.
func recordsOf(t *testing.T, rdmadump string, args ...string) (n int) {
	t.Helper()
	cmd := exec.Command(rdmadump, append(slices.Clone(args), "-o", "json", "-q")...)
	out, _ := cmd.Output() // check ends with 1 if it reports anything
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var r struct{ Type string }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %v: %s", args, err, line)
		}
		if r.Type != "summary" && (r.Type != "problem" || args[0] == "problems") {
			n++
		}
	}
	return n
}

// statsOf returns the rows of stats.
func statsOf(t *testing.T, rdmadump, path string) map[string]row {
	t.Helper()
	type forms struct{ Short, Chunked, Long int64 }
	list := map[string]row{}
	lines := json.NewDecoder(bytes.NewReader(run(t, rdmadump, "stats", path, "-o", "json", "-q")))
	for {
		var s struct {
			Type, Name                      string
			Complete, Failed, Retransmitted int64
			Count                           int64 `json:"attempts"`
			TotalNS                         int64 `json:"total_ns"`
			CallBytes                       forms `json:"call_bytes"`
			ReplyBytes                      forms `json:"reply_bytes"`
			Latency                         struct {
				P50 *int64 `json:"p50_ns"`
				P90 *int64 `json:"p90_ns"`
				P99 *int64 `json:"p99_ns"`
				Max *int64 `json:"max_ns"`
			}
		}
		if lines.Decode(&s) != nil {
			return list
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
		list[s.Name] = row{
			s.Name, s.Count, s.Complete, s.Failed, s.Retransmitted, s.TotalNS,
			null(s.Latency.P50), null(s.Latency.P90), null(s.Latency.P99), null(s.Latency.Max), all(s.CallBytes), all(s.ReplyBytes),
		}
	}
}

// TestBothEnds: the captures of both ends, exported apart, are joined by rpc_key: each RPC that both have, once, whatever the
// clocks say.
func TestBothEnds(t *testing.T) {
	rdmadump, db := built(t), database(t)
	for pair, least := range map[string]int{"roce-oneway41": 203, "iw-twosided": 250, "roce-outage41": 250, "roce-linkdown3": 18} {
		folder := t.TempDir()
		for _, end := range []string{"client", "server"} {
			path := "../../testdata/ends/" + pair + "-" + end + ".pcap.zst"
			run(t, rdmadump, "export", "--format", "parquet", path, "-w", folder, "--partition", "host="+end, "-q")
		}
		var rows, keys, wrong, client, server int
		both := fmt.Sprintf(`FROM read_parquet('%[1]s/v1/transactions/host=client/*.parquet') c
			JOIN read_parquet('%[1]s/v1/transactions/host=server/*.parquet') s USING (rpc_key)`, folder)
		err := db.QueryRow(`SELECT count(*), count(DISTINCT rpc_key), count(*) FILTER (c.xid <> s.xid OR c.name <> s.name AND c.program IS NOT NULL AND s.program IS NOT NULL) `+both).Scan(&rows, &keys, &wrong)
		if err != nil {
			t.Fatal(err)
		}
		count := fmt.Sprintf(`SELECT (SELECT count(*) FROM read_parquet('%[1]s/v1/transactions/host=client/*.parquet')), (SELECT count(*) FROM read_parquet('%[1]s/v1/transactions/host=server/*.parquet'))`, folder)
		if err := db.QueryRow(count).Scan(&client, &server); err != nil {
			t.Fatal(err)
		}
		if rows != keys || wrong != 0 || rows < least || rows < min(client, server) {
			t.Errorf("%s: %d RPCs joined by %d keys, %d of them wrong; the client's capture has %d, the server's %d", pair, rows, keys, wrong, client, server)
		}
	}
}

// TestKilled: an export that is killed, at any time, leaves only files that can be read.
func TestKilled(t *testing.T) {
	rdmadump, folder, db := built(t), t.TempDir(), database(t)
	path, left := "../../testdata/captures/lab-retries42.pcap.zst", 0
	began := time.Now()
	run(t, rdmadump, "export", "--format", "parquet", path, "-w", folder, "--partition", "host=whole", "-q")
	whole := time.Since(began)
	for i := range 100 {
		cmd := exec.Command(rdmadump, "export", "--format", "parquet", path, "-w", folder, "--partition", fmt.Sprintf("host=%d", i), "-q")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i) / 80)
		cmd.Process.Kill()
		cmd.Wait()
		if list, _ := filepath.Glob(filepath.Join(folder, "v1", "*", fmt.Sprintf("host=%d", i), ".part-*")); len(list) > 0 {
			left++
		}
	}
	if left == 0 {
		t.Error("no run was killed while it wrote")
	}
	for _, table := range []string{"transactions", "waits", "rdma_operations", "tasks", "connections", "findings", "problems", "gaps", "points", "files", "rates", "captures"} {
		var rows, files int
		query := fmt.Sprintf("SELECT count(*), count(DISTINCT filename) FROM read_parquet('%s/v1/%s/**/*.parquet', hive_partitioning = true, filename = true)", folder, table)
		if err := db.QueryRow(query).Scan(&rows, &files); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

// TestOtherReader: another reader, which shares no code with the writer, finds the same columns, rows and values as DuckDB.
func TestOtherReader(t *testing.T) {
	if _, err := os.Stat("../browser/node_modules/hyparquet"); err != nil {
		t.Skip("npm ci was not run in test/browser")
	}
	rdmadump, folder, db := built(t), t.TempDir(), database(t)
	run(t, rdmadump, "export", "--format", "parquet", "../../testdata/captures/lab-retries42.pcap.zst", "-w", folder, "-q")
	for _, table := range []string{"transactions", "waits", "rdma_operations", "tasks", "connections", "findings", "problems", "gaps", "points", "files", "rates", "captures"} {
		paths, err := filepath.Glob(filepath.Join(folder, "v1", table, "*", "*.parquet"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s has the files %q, %v", table, paths, err)
		}
		path, _ := filepath.Abs(paths[0])
		node := exec.Command("node", "parquet.mjs", path)
		node.Dir = "../browser"
		var stderr bytes.Buffer
		node.Stderr = &stderr
		out, err := node.Output()
		if err != nil {
			t.Errorf("%s: %v: %s", table, err, stderr.String())
			continue
		}
		var got struct {
			Rows    int
			Columns []string
			First   map[string]any
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		var rows int
		from := fmt.Sprintf(" FROM read_parquet('%s', hive_partitioning = false)", path)
		if err := db.QueryRow("SELECT count(*)" + from).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		list, err := db.Query("SELECT *" + from + " LIMIT 0")
		if err != nil {
			t.Fatal(err)
		}
		columns, err := list.Columns()
		list.Close()
		if err != nil || got.Rows != rows || !slices.Equal(got.Columns, columns) {
			t.Errorf("%s: %d rows and the columns %q, DuckDB has %d and %q, %v", table, got.Rows, got.Columns, rows, columns, err)
		}
		if table != "transactions" {
			continue
		}
		var key, name string
		var xid int64
		if err := db.QueryRow("SELECT rpc_key, name, xid"+from+" LIMIT 1").Scan(&key, &name, &xid); err != nil {
			t.Fatal(err)
		}
		if got.First["rpc_key"] != key || got.First["name"] != name || fmt.Sprint(got.First["xid"]) != fmt.Sprint(xid) && fmt.Sprint(int64(got.First["xid"].(float64))) != fmt.Sprint(xid) {
			t.Errorf("the first row is %v, DuckDB has %s, %s, %d", got.First, key, name, xid)
		}
	}
}
