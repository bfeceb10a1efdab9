// Package metrics counts the records of live traffic, for Prometheus and other programs that read OpenMetrics.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/query"
)

// maxValues is the number of values of every other label. What comes later is "other", so that traffic cannot make labels without end.
const maxValues = 200

// maxSeries is the number of combinations of server, client and operation that are counted apart, and of those with a status, because
// a few hundred values of each have millions of combinations.
const maxSeries = 20000

// series are combinations of labels.
type series map[[4]string]bool

// admits reports whether a combination is counted apart: it is one already, or there are fewer than the limit.
func (s series) admits(values ...string) bool {
	key := [4]string{}
	copy(key[:], values)
	if !s[key] && len(s) == maxSeries {
		return false
	}
	s[key] = true
	return true
}

// other is the value of a label for everything that has none of its own.
const other = "other"

// label gives values to a label, as many as are allowed.
type label struct {
	most   int
	values map[string]bool
}

// of returns a value, or "other" if there are too many.
func (l *label) of(value string) string {
	switch {
	case value == "":
		return "unknown"
	case l.values[value]:
		return value
	case len(l.values) == l.most:
		return other
	}
	if l.values == nil {
		l.values = map[string]bool{}
	}
	l.values[value] = true
	return value
}

// Metrics counts the records of live traffic. Its methods other than ServeHTTP are called by one goroutine.
type Metrics struct {
	registry                                  *prometheus.Registry
	server, client, operation, status, reason label
	combined, failures                        series
	handler                                   http.Handler

	rpcs, failed, noReply, again, bytes, rdma, retransmitted, stalls, stalled, findings *prometheus.CounterVec
	latency                                                                             *prometheus.HistogramVec
	packets, dropped, marks, cnps, pauses, lost, ended                                  prometheus.Counter
	credits, outstanding                                                                *prometheus.GaugeVec
	connections                                                                         prometheus.Gauge

	diagnosis diagnose.Collector
	problems  *prometheus.GaugeVec
	now       map[[2]string]bool // problems that are shown
	searched  time.Time          // when problems were searched for
	next      time.Time          // when the state of connections is taken again
	before    record.Summary     // its counters, when they were taken
	shown     map[*prometheus.GaugeVec]map[string]float64
	peaks     peaks    // of connections that ended
	marked    [2]int64 // congestion marks and notification packets that were counted
	closed    [2]int64 // those of connections that ended
}

// New returns metrics in which this number of clients has a label of its own.
func New(clients int) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(), server: label{most: maxValues}, client: label{most: clients}, operation: label{most: maxValues},
		status: label{most: maxValues}, reason: label{most: maxValues}, combined: series{}, failures: series{}, shown: map[*prometheus.GaugeVec]map[string]float64{},
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxRequests})
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "rdmadump", Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	one := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "rdmadump", Name: name, Help: help})
		m.registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "rdmadump", Name: name, Help: help}, labels)
		m.registry.MustRegister(g)
		return g
	}
	m.rpcs = vec("rpcs_total", "RPCs, each when its first Call is answered or its connection has ended.", "server", "client", "operation")
	m.failed = vec("failed_rpcs_total", "RPCs that were answered with an error, by status.", "server", "client", "operation", "status")
	m.noReply = vec("calls_without_reply_total", "Calls whose Reply was not captured; the client may send them again.", "server", "client", "operation")
	m.again = vec("repeated_calls_total", "Calls that clients sent again for an RPC, usually on another connection.", "server", "client", "operation")
	m.bytes = vec("payload_bytes_total", "Bytes of RPC messages, by the direction in which they went.", "server", "client", "direction")
	m.rdma = vec("rdma_bytes_total", "Bytes that RDMA Reads and RDMA Writes moved for RPCs.", "server", "client", "kind")
	m.retransmitted = vec("retransmitted_packets_total", "Retransmitted packets of RPCs.", "server", "client")
	m.stalls = vec("stalls_total", "Times in which an RPC made no progress, by reason.", "server", "reason")
	m.stalled = vec("stalled_seconds_total", "Time in which RPCs made no progress, by reason; stalls of several RPCs at once are added up.", "server", "reason")
	m.findings = vec("findings_total", "What check reports, by rule.", "rule", "severity")
	m.latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "rdmadump", Name: "rpc_latency_seconds", Help: "Time from the Call to the Reply. If it is uncertain which copy of the Reply was accepted, the longest time.",
		Buckets:                     []float64{50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.2, 0.5, 1, 2, 5, 10},
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, []string{"server", "operation"})
	m.registry.MustRegister(m.latency)
	m.packets = one("packets_total", "Packets that were read.")
	m.dropped = one("dropped_packets_total", "Packets that the capture dropped, so that the other numbers are too small.")
	m.lost = one("not_captured_packets_total", "Packets that their receivers acknowledged and the capture does not contain.")
	m.marks = one("congestion_marks_total", "Packets with a congestion mark of a switch (CE).")
	m.cnps = one("congestion_notifications_total", "Congestion notification packets (CNP).")
	m.pauses = one("pause_frames_total", "Priority flow control frames that pause at least one priority.")
	m.ended = one("connections_ended_total", "Connections that ended, or of which no packets came for long.")
	m.problems = gauge("problem", "1 for each kind and place of problems of the severity error or warning that go on, or ended less than a minute ago.", "id", "place")
	m.diagnosis.Endless()
	m.credits = gauge("credits_granted", "Credits that servers granted last, over all open connections.", "server")
	m.outstanding = gauge("peak_outstanding_calls", "Largest number of Calls in flight of a connection that is open, or ended less than a minute ago.", "server")
	connections := gauge("connections_open", "Open connections.")
	m.connections = connections.WithLabelValues()
	return m
}

// Handler returns what counts records.
func (m *Metrics) Handler() dissect.Handler {
	return dissect.Handler{Transaction: m.transaction, Finding: m.finding, Connection: m.connection, Task: m.task, Operation: m.operationOf}
}

// transaction counts an RPC.
func (m *Metrics) transaction(r *record.Transaction) error {
	server, client := m.server.of(r.Server.Or("")), m.client.of(r.Client.Or(""))
	operation := m.operation.of(analyze.Name(r, analyze.ByOperation))
	if !m.combined.admits(server, client, operation) {
		server, client, operation = other, other, other
	}
	m.diagnosis.Transaction(r)
	if r.Attempt <= 1 {
		m.rpcs.WithLabelValues(server, client, operation).Inc()
	} else {
		m.again.WithLabelValues(server, client, operation).Inc()
	}
	if r.Failed() {
		status := m.status.of(query.Outcome(r))
		if !m.failures.admits(server, client, operation, status) {
			status = other
		}
		m.failed.WithLabelValues(server, client, operation, status).Inc()
	}
	if r.Status == record.NoReply {
		m.noReply.WithLabelValues(server, client, operation).Inc()
	}
	if ns, known := r.LatencyNS.Get(); known {
		m.latency.WithLabelValues(server, operation).Observe(float64(ns) / 1e9)
	}
	toServer, toClient := r.Call, r.Reply
	if r.Direction == record.Backward {
		toServer, toClient = toClient, toServer
	}
	for direction, message := range map[string]*record.Message{"to_server": toServer, "to_client": toClient} {
		if message != nil {
			m.bytes.WithLabelValues(server, client, direction).Add(float64(message.PayloadBytes.Or(0)))
		}
	}
	for list, s := range r.Segments() {
		kind := "write"
		if list == record.ReadList {
			kind = "read"
		}
		m.rdma.WithLabelValues(server, client, kind).Add(float64(s.MovedBytes))
	}
	m.retransmitted.WithLabelValues(server, client).Add(float64(r.Retransmitted))
	for i := range r.Waits {
		w := &r.Waits[i]
		reason := m.reason.of(string(w.Reason))
		m.stalls.WithLabelValues(server, reason).Inc()
		m.stalled.WithLabelValues(server, reason).Add(float64(max(w.NS, 0)) / 1e9)
	}
	return nil
}

// task passes a task on to the search for problems.
func (m *Metrics) task(r *record.Task) error {
	m.diagnosis.Task(r)
	return nil
}

// operationOf passes an RDMA operation on to the search for problems.
func (m *Metrics) operationOf(r *record.RDMAOperation) error {
	m.diagnosis.Operation(r)
	return nil
}

// finding counts a finding.
func (m *Metrics) finding(r *record.Finding) error {
	m.diagnosis.Finding(r)
	m.findings.WithLabelValues(r.Rule, string(r.Severity)).Inc()
	return nil
}

// connection counts a connection that ended.
func (m *Metrics) connection(r *record.Connection) error {
	m.diagnosis.Connection(r)
	m.ended.Inc()
	m.closed[0], m.closed[1] = m.closed[0]+r.CongestionMarks, m.closed[1]+r.CNPs
	if credits, known := r.Credits.Get(); known {
		m.peaks.add(m.server.of(r.Server.Address.Or("")), float64(credits.Forward.PeakInFlight.Or(0)), time.Now())
	}
	return nil
}

// keepPeaks is the least time for which the largest number of Calls in flight of a connection that has ended is shown, so that programs
// see it that ask at least so often. It does not depend on who asks when.
const keepPeaks = time.Minute

// peaks has the largest values of the current interval of this length, and of the one before.
type peaks struct {
	ends        time.Time // of the current interval
	now, before map[string]float64
}

// turn begins another interval if the current one is over.
func (p *peaks) turn(now time.Time) {
	if now.Before(p.ends) {
		return
	}
	p.before, p.now = p.now, map[string]float64{}
	if now.After(p.ends.Add(keepPeaks)) {
		p.before = nil
	}
	p.ends = now.Add(keepPeaks)
}

// add takes a value.
func (p *peaks) add(server string, value float64, now time.Time) {
	p.turn(now)
	p.now[server] = max(p.now[server], value)
}

// addTo adds the values of both intervals to those of open connections.
func (p *peaks) addTo(values map[string]float64, now time.Time) {
	p.turn(now)
	for _, list := range []map[string]float64{p.now, p.before} {
		for server, v := range list {
			values[server] = max(values[server], v)
		}
	}
}

// show sets a gauge to these values. A program that asks meanwhile sees values of before or these, but never none.
func (m *Metrics) show(gauge *prometheus.GaugeVec, values map[string]float64) {
	for server, v := range values {
		gauge.WithLabelValues(server).Set(v)
	}
	for server := range m.shown[gauge] {
		if _, still := values[server]; !still {
			gauge.DeleteLabelValues(server)
		}
	}
	m.shown[gauge] = values
}

// State is what a dissector knows while it runs.
type State = interface {
	Summary() *record.Summary
	Open(visit func(*record.Connection))
}

// searchEvery is the time after which problems are searched for again.
const searchEvery = 5 * time.Second

// search shows the problems that go on, or ended a short time ago.
func (m *Metrics) search(s *record.Summary, open func(func(*record.Connection))) {
	before := m.now
	m.now = map[[2]string]bool{}
	for _, p := range m.diagnosis.SoFar(s, open) {
		if p.Severity == record.Note {
			continue
		}
		place := p.Place()
		m.now[[2]string{p.ID, place}] = true
		m.problems.WithLabelValues(p.ID, place).Set(1)
	}
	for is := range before {
		if !m.now[is] {
			m.problems.DeleteLabelValues(is[0], is[1])
		}
	}
}

// stateEvery is the time after which the state of connections is taken again.
const stateEvery = time.Second

// Tick takes the counters of the summary and the state of the open connections, once a second.
func (m *Metrics) Tick(s State) error {
	now := time.Now()
	if now.Before(m.next) {
		return nil
	}
	m.next = now.Add(stateEvery)
	if now.Sub(m.searched) >= searchEvery {
		m.searched = now
		m.search(s.Summary(), s.Open)
	}
	granted, peak, open, marked := map[string]float64{}, map[string]float64{}, 0, m.closed
	s.Open(func(c *record.Connection) {
		open++
		marked[0], marked[1] = marked[0]+c.CongestionMarks, marked[1]+c.CNPs
		if credits, known := c.Credits.Get(); known {
			server := m.server.of(c.Server.Address.Or(""))
			granted[server] += float64(credits.Forward.Granted.Or(0))
			peak[server] = max(peak[server], float64(credits.Forward.PeakInFlight.Or(0)))
		}
	})
	m.connections.Set(float64(open))
	m.peaks.addTo(peak, now)
	m.show(m.credits, granted)
	m.show(m.outstanding, peak)
	m.marks.Add(float64(max(marked[0]-m.marked[0], 0)))
	m.cnps.Add(float64(max(marked[1]-m.marked[1], 0)))
	m.marked = [2]int64{max(marked[0], m.marked[0]), max(marked[1], m.marked[1])}
	m.count(s.Summary())
	return nil
}

// count adds what came since the summary was taken last.
func (m *Metrics) count(s *record.Summary) {
	b := &m.before
	m.packets.Add(float64(max(s.Packets-b.Packets, 0)))
	m.lost.Add(float64(max(s.NotCaptured-b.NotCaptured, 0)))
	m.pauses.Add(float64(max(s.PFCPauses-b.PFCPauses, 0)))
	if s.CaptureDrops > b.CaptureDrops {
		m.dropped.Add(float64(s.CaptureDrops - b.CaptureDrops))
	}
	m.before = record.Summary{Packets: s.Packets, NotCaptured: s.NotCaptured, PFCPauses: s.PFCPauses, CaptureDrops: s.CaptureDrops}
}

// End counts what the last summary has, and shows the problems at the end.
func (m *Metrics) End(s *record.Summary) error {
	if s != nil {
		m.count(s)
		m.search(s, func(func(*record.Connection)) {})
	}
	return nil
}

// Path is the path of the metrics.
const Path = "/metrics"

// The limits of the server, which protect the capture from those who ask.
const (
	maxRequests    = 4
	maxConnections = 32
	patience       = 10 * time.Second
	maxHeader      = 16 << 10
)

// ServeHTTP answers a request for the metrics.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != Path {
		http.Error(w, "the metrics are at "+Path, http.StatusNotFound)
		return
	}
	m.handler.ServeHTTP(w, r)
}

// Registry returns the registry of the metrics.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Listen listens at an address of the form HOST:PORT, or PORT on loopback.
func Listen(address string) (net.Listener, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return nil, fmt.Errorf("%q is not of the form PORT or HOST:PORT", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// Serve answers requests until ctx ends.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: m, ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience, MaxHeaderBytes: maxHeader}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(netutil.LimitListener(l, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
