package browse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// source describes the records of a list.
type source struct {
	name   string // in messages, in the plural
	one    string // in messages, in the singular
	view   string // command that lists the records
	fields query.Fields
	bounds func(s index.State) (from, to int64)
	get    func(r *index.Reader, n int64) (any, error)
	each   func(ctx context.Context, r *index.Reader, span [2]int64, visit func(n int64, record any) bool) error
	draw   func(t *render.Text, record any) error
	orders []order

	since, until string // filters for the records at or after, and at or before, a time
	time         func(record any) record.Opt[record.Time]
}

// order is an order in which a list can be shown.
type order struct {
	heading    string                    // of the column
	path       string                    // field
	descending bool                      // the largest value is first, unless the user reverses the order
	row        func(r *index.Row) int64  // key, or null, if rows have it
	name       func(r *index.Row) uint16 // key, if it is a name that rows have
}

// null is the key of a record whose value is unknown. It comes last in any order.
const null = math.MinInt64

// bytesOf returns the key of a number of bytes.
func bytesOf(n uint32) int64 {
	if n == index.UnknownBytes {
		return null
	}
	return int64(n)
}

var rpcs = &source{
	name: "RPCs", one: "RPC", view: "", fields: query.Transactions,
	since: "(end_time >= %s or reply == null)", until: "time <= %s",
	time:   func(r any) record.Opt[record.Time] { return record.Some(r.(*record.Transaction).Start()) },
	bounds: func(s index.State) (int64, int64) { return s.From, s.To },
	get: func(r *index.Reader, n int64) (any, error) {
		t, err := r.Transaction(n)
		if t == nil {
			return nil, err
		}
		return t, err
	},
	each: func(ctx context.Context, r *index.Reader, span [2]int64, visit func(int64, any) bool) error {
		return r.Each(ctx, span[0], span[1], func(n int64, t *record.Transaction) bool { return visit(n, t) })
	},
	draw: func(t *render.Text, r any) error { return t.Transaction(r.(*record.Transaction)) },
	orders: []order{
		{heading: "#", path: "id", row: func(r *index.Row) int64 { return r.ID }},
		{heading: "TIME", path: "time", row: func(r *index.Row) int64 { return int64(r.Time) }},
		{heading: "CONN", path: "connection", row: func(r *index.Row) int64 { return int64(r.Connection) }},
		{heading: "XID", path: "xid", row: func(r *index.Row) int64 { return int64(r.XID) }},
		{heading: "PROCEDURE", path: "operation", name: func(r *index.Row) uint16 { return r.Operation }},
		{heading: "CALL BYTES", path: "call.payload_bytes", descending: true, row: func(r *index.Row) int64 { return bytesOf(r.CallBytes) }},
		{heading: "REPLY BYTES", path: "reply.payload_bytes", descending: true, row: func(r *index.Row) int64 { return bytesOf(r.ReplyBytes) }},
		{heading: "LATENCY", path: "latency_ns", descending: true, row: func(r *index.Row) int64 {
			if r.LatencyNS == index.Unknown {
				return null
			}
			return r.LatencyNS
		}},
		{heading: "STATUS", path: "status", name: func(r *index.Row) uint16 { return r.Status }},
	},
}

var connections = &source{
	name: "connections", one: "connection", view: "connections", fields: query.Connections, since: "last >= %s", until: "first <= %s",
	time:   func(r any) record.Opt[record.Time] { return record.Some(r.(*record.Connection).First) },
	bounds: func(s index.State) (int64, int64) { return 0, s.Connections },
	get: func(r *index.Reader, n int64) (any, error) {
		c, err := r.Connection(n)
		if c == nil {
			return nil, err
		}
		return c, err
	},
	each: func(ctx context.Context, r *index.Reader, span [2]int64, visit func(int64, any) bool) error {
		return r.EachConnection(ctx, span[0], span[1], func(n int64, c *record.Connection) bool { return visit(n, c) })
	},
	draw: func(t *render.Text, r any) error { return t.Connection(r.(*record.Connection)) },
	orders: []order{
		{heading: "CONN", path: "id"},
		{heading: "RPCS", path: "transactions", descending: true},
		{heading: "PACKETS", path: "packets", descending: true},
		{heading: "RETRANSMITTED", path: "retransmitted", descending: true},
	},
}

var findings = &source{
	name: "findings", one: "finding", view: "check", fields: query.Findings,
	since: "(time >= %s or time == null)", until: "(time <= %s or time == null)",
	time:   func(r any) record.Opt[record.Time] { return r.(*record.Finding).Time },
	bounds: func(s index.State) (int64, int64) { return 0, s.Findings },
	get: func(r *index.Reader, n int64) (any, error) {
		f, err := r.Finding(n)
		if f == nil {
			return nil, err
		}
		return f, err
	},
	each: func(ctx context.Context, r *index.Reader, span [2]int64, visit func(int64, any) bool) error {
		return r.EachFinding(ctx, span[0], span[1], func(n int64, f *record.Finding) bool { return visit(n, f) })
	},
	draw: func(t *render.Text, r any) error { return t.FindingRow(r.(*record.Finding)) },
	orders: []order{
		{heading: "SEVERITY", path: "severity"},
		{heading: "TIME", path: "time"},
		{heading: "RULE", path: "rule"},
	},
}

// These are the rows of the sums. They are no records of the index, so only their fields and orders are known.
var (
	fileSums = &source{fields: render.FileFields, orders: []order{
		{heading: "FILE", path: "file"},
		{heading: "SERVER", path: "server"},
		{heading: "RPCS", path: "operations", descending: true},
		{heading: "ERRORS", path: "errors", descending: true},
		{heading: "BYTES READ", path: "bytes_read", descending: true},
		{heading: "BYTES WRITTEN", path: "bytes_written", descending: true},
		{heading: "P50", path: "latency.p50_ns", descending: true},
		{heading: "P99", path: "latency.p99_ns", descending: true},
		{heading: "WORST", path: "latency.max_ns", descending: true},
		{heading: "CREATED", path: "created.time"},
		{heading: "RENAMED", path: "renamed.time"},
		{heading: "FORMER NAME", path: "renamed.from"},
		{heading: "REMOVED", path: "removed.time"},
	}}
	operationSums = &source{fields: render.StatsFields, orders: []order{
		{heading: "NAME", path: "name"},
		{heading: "RPCS", path: "count", descending: true},
		{heading: "ERRORS", path: "errors", descending: true},
		{heading: "RETRANSMITTED", path: "retransmitted", descending: true},
		{heading: "BYTES", path: "bytes", descending: true},
		{heading: "P50", path: "latency.p50_ns", descending: true},
		{heading: "P99", path: "latency.p99_ns", descending: true},
		{heading: "WORST", path: "latency.max_ns", descending: true},
	}}
	intervalSums = &source{fields: render.RateFields, orders: []order{
		{heading: "TIME", path: "start"},
		{heading: "RPCS", path: "rpcs", descending: true},
		{heading: "ERRORS", path: "errors", descending: true},
		{heading: "RETRANSMITTED", path: "retransmitted", descending: true},
		{heading: "TO SERVER", path: "bytes_to_server", descending: true},
		{heading: "TO CLIENT", path: "bytes_to_client", descending: true},
		{heading: "DATA PER S", path: "bytes_per_s", descending: true},
		{heading: "P50", path: "latency.p50_ns", descending: true},
		{heading: "P99", path: "latency.p99_ns", descending: true},
		{heading: "WORST", path: "latency.max_ns", descending: true},
		{heading: "IN FLIGHT", path: "in_flight.peak", descending: true},
		{heading: "CREDITS", path: "credits", descending: true},
	}}
)

// printer draws the rows of a table. The widths of its columns are those that its first rows need, as
// on the command line.
type printer struct {
	text    *render.Text
	packets *packetPrinter // draws packets; nil for other records
	out     bytes.Buffer
	heading string
	draw    func(t *render.Text, record any) error
	sample  int      // number of rows from which the widths are
	hidden  []string // headings of the columns that do not fit
}

// sampleRows is the number of rows from which the command line learns the widths of columns.
const sampleRows = 256

// newPrinter returns a printer whose columns fit the first records and the width.
func newPrinter(m *Model, src *source, width int) *printer {
	p := &printer{draw: src.draw}
	hide := func(names []string) { p.hidden = names }
	if src.draw == nil {
		p.packets = newPacketPrinter(m, m.theme.WithHidden(hide), width)
		return p
	}
	p.text = render.NewText(&p.out, m.tables.WithHidden(hide), width)
	if at, known := m.state.Start.Get(); known {
		p.text.Start(at)
	}
	return p
}

// learn takes a record of the sample.
func (p *printer) learn(r any) {
	if p.sample >= sampleRows {
		return
	}
	if p.sample++; p.packets != nil {
		p.line(r)
	} else {
		p.draw(p.text, r)
	}
}

// start lays out the columns.
func (p *printer) start() {
	if p.packets != nil {
		p.heading = p.packets.Heading()
		return
	}
	p.text.Flush()
	p.heading, _, _ = strings.Cut(p.out.String(), "\n")
}

// line returns the row of a record.
func (p *printer) line(r any) string {
	if p.packets != nil {
		return p.packets.draw(r.(*record.Packet))
	}
	p.out.Reset()
	if err := p.draw(p.text, r); err != nil {
		return err.Error()
	}
	line, _, _ := strings.Cut(p.out.String(), "\n")
	return line
}

// hidden says which columns of a table do not fit, so that a narrow table is not taken for all that there is.
func hidden(names []string) []part {
	if len(names) == 0 {
		return nil
	}
	return []part{{fmt.Sprintf("%d %s hidden: %s", len(names), record.Noun(int64(len(names)), "column"), strings.Join(names, ", ")), withoutEndFirst}}
}

// theme returns the theme of the drawings, for output to no terminal of its own.
func theme(look render.Look) *render.Theme {
	look.Notes = io.Discard
	return render.NewLook(look)
}
