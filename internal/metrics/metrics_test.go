package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/metrics"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// scrape returns the metrics as a program gets them.
func scrape(t testing.TB, m *metrics.Metrics, path string) (status int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

// counted returns the metrics of a capture.
func counted(t testing.TB, path string, clients int) (m *metrics.Metrics, all []*record.Transaction) {
	t.Helper()
	m = metrics.New(clients)
	h := m.Handler()
	taken := h.Transaction
	var d *dissect.Dissector
	h.Transaction = func(r *record.Transaction) error {
		if all = append(all, r.Clone()); len(all) == 1 {
			m.Tick(d) // while connections are open
		}
		return taken(r)
	}
	d = dissect.New(h, dissect.Options{})
	summary, err := d.Run(t.Context(), testkit.Open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.End(summary); err != nil {
		t.Fatal(err)
	}
	return m, all
}

// value matches a line of the metrics.
var value = regexp.MustCompile(`(?m)^(rdmadump_\w+)(\{[^}]*\})? ([0-9.e+-]+)$`)

// sums returns the sum of each metric over its labels.
func sums(text string) map[string]float64 {
	list := map[string]float64{}
	for _, m := range value.FindAllStringSubmatch(text, -1) {
		var v float64
		fmt.Sscan(m[3], &v)
		list[m[1]] += v
	}
	return list
}

// TestCounts: the metrics of a capture are sums of its records.
func TestCounts(t *testing.T) {
	m, all := counted(t, "../../testdata/captures/lab-retries42.pcap.zst", 200)
	var failed, again, unanswered, read, written, stalls, seconds float64
	for _, r := range all {
		if r.Failed() {
			failed++
		}
		if r.Attempt > 1 {
			again++
		}
		if r.Status == record.NoReply {
			unanswered++
		}
		for list, s := range r.Segments() {
			if list == record.ReadList {
				read += float64(s.MovedBytes)
			} else {
				written += float64(s.MovedBytes)
			}
		}
		for _, w := range r.Waits {
			stalls++
			seconds += float64(w.NS) / 1e9
		}
	}
	_, text := scrape(t, m, metrics.Path)
	got := sums(text)
	for name, want := range map[string]float64{
		"rdmadump_rpcs_total": float64(len(all)) - again, "rdmadump_repeated_calls_total": again, "rdmadump_failed_rpcs_total": failed, "rdmadump_calls_without_reply_total": unanswered, "rdmadump_rdma_bytes_total": read + written, "rdmadump_stalls_total": stalls,
	} {
		if got[name] != want {
			t.Errorf("%s is %g, want %g", name, got[name], want)
		}
	}
	if d := got["rdmadump_stalled_seconds_total"] - seconds; d > 1e-6 || d < -1e-6 || stalls == 0 {
		t.Errorf("%g stalls took %g s, want %g s", stalls, got["rdmadump_stalled_seconds_total"], seconds)
	}
	if got["rdmadump_packets_total"] == 0 || got["rdmadump_rpc_latency_seconds_count"] == 0 {
		t.Errorf("no packets or no latencies: %v", got)
	}
	if !strings.Contains(text, `operation="NFS4 WRITE"`) {
		t.Error("no operation is a label")
	}
	if status, text := scrape(t, m, "/"); status != http.StatusNotFound || !strings.Contains(text, metrics.Path) {
		t.Errorf("another path: status %d, %q", status, text)
	}
}

// TestProblems: a problem has a metric while it goes on, and for a minute after; a capture without any has none.
func TestProblems(t *testing.T) {
	for path, want := range map[string]string{
		"../../samples/rocev2-lostlink41.pcap.zst":           `rdmadump_problem{id="capture-gap",place="capture"} 1 rdmadump_problem{id="outage",place="network or server"} 1`,
		"../../testdata/captures/rocev2-callback41.pcap.zst": "",
	} {
		m, _ := counted(t, path, 10)
		_, text := scrape(t, m, metrics.Path)
		var got []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "rdmadump_problem{") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", path, got, want)
		}
	}
}

// TestNames: the names of the metrics follow the rules of Prometheus.
func TestNames(t *testing.T) {
	m, _ := counted(t, "../../testdata/captures/lab-retries42.pcap.zst", 200)
	problems, err := testutil.GatherAndLint(m.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestBoundedLabels: a million clients, servers and operations have some hundreds of labels.
func TestBoundedLabels(t *testing.T) {
	m := metrics.New(10)
	take := m.Handler().Transaction
	for i := range uint32(5000) {
		r := &record.Transaction{
			Client: record.Some(fmt.Sprintf("10.0.%d.%d", i>>8, i&255)), Server: record.Some(fmt.Sprintf("10.1.%d.%d", i>>8, i&255)), Program: record.Some(i), Version: record.Some(i),
			Procedure: record.Some(i), Call: &record.Message{}, LatencyNS: record.Some(int64(i)), RPCStatus: record.Some(fmt.Sprint("status ", i)), Status: record.Complete,
		}
		if err := take(r); err != nil {
			t.Fatal(err)
		}
	}
	_, text := scrape(t, m, metrics.Path)
	if got := sums(text)["rdmadump_rpcs_total"]; got != 5000 {
		t.Errorf("%g RPCs, want 5000", got)
	}
	clients := map[string]bool{}
	for _, c := range regexp.MustCompile(`client="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		clients[c[1]] = true
	}
	if lines := strings.Count(text, "\n"); len(clients) != 11 || lines > 20000 {
		t.Errorf("%d clients in %d lines, want 10 and other", len(clients), lines)
	}
}

// TestBoundedSeries: a few hundred values of each label do not have combinations without end, and each RPC is counted.
func TestBoundedSeries(t *testing.T) {
	m := metrics.New(200)
	take := m.Handler().Transaction
	const rpcs = 60000
	for i := range uint32(rpcs) {
		r := &record.Transaction{
			Server: record.Some(fmt.Sprint("10.1.0.", i%190)), Client: record.Some(fmt.Sprint("10.0.0.", i/190%190)), Program: record.Some(i / 36100),
			Version: record.Some(uint32(1)), Call: &record.Message{}, Status: record.RDMAError,
		}
		if err := take(r); err != nil {
			t.Fatal(err)
		}
	}
	_, text := scrape(t, m, metrics.Path)
	got := sums(text)
	if got["rdmadump_rpcs_total"] != rpcs || got["rdmadump_failed_rpcs_total"] != rpcs {
		t.Errorf("%g RPCs, of which %g failed; want %d", got["rdmadump_rpcs_total"], got["rdmadump_failed_rpcs_total"], rpcs)
	}
	if n := strings.Count(text, "\nrdmadump_rpcs_total{"); n != 20001 {
		t.Errorf("%d combinations of server, client and operation, want 20000 and one for all others", n)
	}
	if !strings.Contains(text, `rdmadump_rpcs_total{client="other",operation="other",server="other"} 40000`) {
		t.Error("the other 40000 RPCs are not counted together")
	}
}

// slow is a client that does not read its answer.
type slow struct {
	*httptest.ResponseRecorder
	began, end chan struct{}
}

func (s *slow) Write(b []byte) (int, error) {
	select {
	case s.began <- struct{}{}:
	case <-s.end:
	}
	<-s.end
	return len(b), nil
}

// TestSlowClients: clients that do not read their answers take the memory of four answers, and no more connections than some.
func TestSlowClients(t *testing.T) {
	m := metrics.New(10)
	began, end := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			m.ServeHTTP(&slow{httptest.NewRecorder(), began, end}, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
		})
		<-began
	}
	if status, _ := scrape(t, m, metrics.Path); status != http.StatusServiceUnavailable {
		t.Errorf("the fifth client at once gets the status %d", status)
	}
	close(end)
	all.Wait()
	if status, _ := scrape(t, m, metrics.Path); status != http.StatusOK {
		t.Errorf("after the others have their answers, a client gets the status %d", status)
	}

	var accepted atomic.Int64
	l := &endless{accepted: &accepted}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- m.Serve(ctx, l) }()
	for accepted.Load() < 32 {
		runtime.Gosched()
	}
	time.Sleep(50 * time.Millisecond)
	if n := accepted.Load(); n != 32 {
		t.Errorf("%d connections are open, want at most 32", n)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// endless is a listener to which clients connect all the time.
type endless struct{ accepted *atomic.Int64 }

func (l *endless) Accept() (net.Conn, error) {
	if l.accepted.Add(1) > 100 {
		return nil, net.ErrClosed
	}
	_, server := net.Pipe()
	return server, nil
}

func (l *endless) Close() error   { return nil }
func (l *endless) Addr() net.Addr { return &net.TCPAddr{} }

// TestBoard: the queries of the board for Grafana name metrics that exist.
func TestBoard(t *testing.T) {
	data, err := os.ReadFile("../../docs/grafana/rdmadump.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	m, _ := counted(t, "../../testdata/captures/lab-retries42.pcap.zst", 200)
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	for _, f := range families {
		exist[f.GetName()], exist[f.GetName()+"_bucket"], exist[f.GetName()+"_count"], exist[f.GetName()+"_sum"] = true, true, true, true
	}
	for name := range map[string]bool{"rdmadump_failed_rpcs_total": true, "rdmadump_calls_without_reply_total": true, "rdmadump_findings_total": true} { // this capture may have none of these
		exist[name] = true
	}
	queries := 0
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			queries++
			for _, name := range regexp.MustCompile(`rdmadump_\w+`).FindAllString(q.Expr, -1) {
				if !exist[name] {
					t.Errorf("%s: the query %s names %s, which does not exist", p.Title, q.Expr, name)
				}
			}
		}
	}
	if queries < 8 {
		t.Errorf("the board has %d queries", queries)
	}
}

// TestListen: without a host, the address is one of loopback.
func TestListen(t *testing.T) {
	for _, address := range []string{"0", ":0", "127.0.0.1:0"} {
		l, err := metrics.Listen(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().String(); !strings.HasPrefix(got, "127.0.0.1:") {
			t.Errorf("%s listens at %s", address, got)
		}
		l.Close()
	}
	for _, address := range []string{"a:b:c", "127.0.0.1:x", "99999", "", ":", "127.0.0.1:", "::1"} {
		if l, err := metrics.Listen(address); err == nil {
			t.Errorf("%s listens at %v", address, l.Addr())
		}
	}
}

// TestHeap: the memory for metrics does not grow with the number of RPCs and scrapes, once every label has been seen.
func TestHeap(t *testing.T) {
	rpcs, scrapes := 200_000, 100
	if testkit.All() {
		rpcs, scrapes = 10_000_000, 500
	}
	m := metrics.New(200)
	take := m.Handler().Transaction
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	var early uint64
	r := &record.Transaction{Program: record.Some[uint32](100003), Version: record.Some[uint32](4), Call: &record.Message{}, Reply: &record.Message{}, Status: record.Complete}
	operations := []string{"READ", "WRITE", "OPEN", "CLOSE", "GETATTR"}
	for i := range rpcs {
		r.Client, r.Server = record.Some(fmt.Sprintf("10.0.%d.%d", i/7>>8&3, i/7&255)), record.Some(fmt.Sprintf("10.1.0.%d", i%5))
		r.Operation, r.LatencyNS = record.Some(operations[i%len(operations)]), record.Some(int64(i%1_000_000)*1000)
		if err := take(r); err != nil {
			t.Fatal(err)
		}
		if i%(rpcs/scrapes) == 0 {
			scrape(t, m, metrics.Path)
		}
		if i == 50*(rpcs/scrapes) {
			early = heap()
		}
	}
	if late := heap(); late > early+early/10 {
		t.Errorf("%d bytes of heap after %d RPCs and %d scrapes, want at most 1.1 times the %d bytes after 50 scrapes", late, rpcs, scrapes, early)
	}
}

// openly is a state in which no connection is open.
type openly struct{}

func (openly) Summary() *record.Summary        { return new(record.Summary) }
func (openly) Open(func(r *record.Connection)) {}

// TestPeaks: the largest number of Calls in flight of a connection that was open between two scrapes is seen by every program that asks
// within a minute, and not by those that ask more than two minutes later. It does not become smaller because another program has asked.
func TestPeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(10)
		peak := func() float64 {
			if err := m.Tick(openly{}); err != nil {
				t.Fatal(err)
			}
			_, text := scrape(t, m, metrics.Path)
			return sums(text)["rdmadump_peak_outstanding_calls"]
		}
		for _, wait := range []time.Duration{0, 30 * time.Second, 50 * time.Second} {
			time.Sleep(wait)
			c := &record.Connection{Server: record.Endpoint{Address: record.Some("192.0.2.1")}}
			var credits record.CreditPair
			credits.Forward.PeakInFlight = record.Some(17)
			c.Credits = record.Some(credits)
			if err := m.Handler().Connection(c); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if got := peak(); got != 17 {
					t.Errorf("up to a minute later, the peak is %g", got)
				}
				time.Sleep(14 * time.Second)
			}
			time.Sleep(time.Minute)
			if got := peak(); got != 0 {
				t.Errorf("more than two minutes later, the peak is %g", got)
			}
		}
	})
}

// TestGaugesStay: a program that asks while the gauges are set sees them.
func TestGaugesStay(t *testing.T) {
	m := metrics.New(10)
	var credits record.CreditPair
	credits.Forward.PeakInFlight = record.Some(17)
	c := &record.Connection{Server: record.Endpoint{Address: record.Some("192.0.2.1")}, Credits: record.Some(credits)}
	if err := errors.Join(m.Handler().Connection(c), m.Tick(openly{})); err != nil {
		t.Fatal(err)
	}
	var asked sync.WaitGroup
	asked.Go(func() {
		for range 200 {
			if _, text := scrape(t, m, metrics.Path); sums(text)["rdmadump_peak_outstanding_calls"] != 17 {
				t.Error("the gauge has no value")
				return
			}
		}
	})
	for range 200 {
		metrics.Again(m)
		if err := m.Tick(openly{}); err != nil {
			t.Fatal(err)
		}
	}
	asked.Wait()
}
