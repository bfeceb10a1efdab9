package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// view describes what a command shows. To add a view, add a row to the table and write its
// function open.
type view struct {
	name, short string
	fields      query.Fields      // fields of its records
	summed      query.Fields      // fields of the transactions that it sums up, for -Y; nil if it sums up none
	filters     string            // what -Y selects, if not the records of the view
	flags       []string          // flags that it supports in addition to commonFlags
	without     []string          // flags of commonFlags that it does not support
	refuses     map[string]string // messages for flags that it does not support; others have a general message
	byUsage     string            // usage of --by, if it does not group transactions
	top         string            // order of --top without --sort
	order       string            // order without both; empty for the order in which records come
	onePage     bool              // it shows one summary and no table of its records, so -o csv has nothing to print
	light       bool              // its handlers take less time than passing records to another goroutine
	// open returns the handler of the records and, unless it is nil, a function that is called
	// after the last record.
	open func(s *sink) (h dissect.Handler, finish func())
}

// packetsStay is the message for flags that would sort packets.
const packetsStay = "packets does not support --sort and --top: packets stay in the order of the capture"

// views lists the views. The first is the default.
var views = []*view{
	{
		name: "transactions", short: "List RPC transactions; --xid draws one as a ladder diagram",
		fields: query.Transactions, flags: []string{"columns", "sort", "top", "rpc"}, top: "-latency_ns", open: transactions,
	},
	{
		name: "connections", short: "List connections: handshake, negotiated values, health; --timeline draws credits and handles",
		fields: query.Connections, flags: []string{"columns", "sort", "top", "timeline"}, top: "-packets", order: "id", open: connections, light: true,
	},
	{
		name: "packets", short: "List packets; -V decodes every field, -x shows bytes",
		fields: query.Packets, flags: []string{"columns", "verbose", "hex", "rpc"}, refuses: map[string]string{"sort": packetsStay, "top": packetsStay}, open: packets,
	},
	{
		name: "rdma", short: "List RDMA operations, of any upper layer; --by sums them up",
		fields: render.OperationFields, flags: operationFlags, without: []string{"xid"}, byUsage: "sum up RDMA operations by these `fields`, with commas between them, such as kind,side; without the flag, they are listed", top: "-latency_ns", open: operations,
	},
	{
		name: "network", short: "Show what happened between capture points: delay, loss, reordering, corruption; --lost lists packets",
		fields: render.NetworkFields, filters: "directions", flags: []string{"lost"}, without: []string{"count"}, open: network, light: true,
	},
	{
		name: "check", short: "Report violations of the protocol; exit with status 1 if there are errors",
		fields: query.Findings, flags: []string{"sort", "top", "fail-on", "ignore", "baseline", "write-baseline", "rules", "explain", "unanswered-after"}, top: "time", open: findings, light: true,
	},
	{
		name: "overview", short: "Summarize a capture on one screen and suggest the next commands",
		fields: query.Transactions, filters: "RPCs (by the fields of transactions)", without: []string{"field", "count"}, open: overview, light: true, onePage: true,
	},
	{
		name: "files", short: "List files: path, reads, writes, latency, who created, renamed or removed it",
		fields: render.FileFields, summed: query.Transactions, filters: "RPCs (by the fields of transactions) or files", flags: []string{"columns", "sort", "top"}, top: "-total_ns", open: files, light: true,
	},
	{
		name: "stats", short: "Sum up transactions by operation or any field (--by): counts, bytes, latency",
		fields: render.StatsFields, summed: query.Transactions, filters: "RPCs (by the fields of transactions) or rows", flags: statsFlags, top: "-total_ns", open: stats, light: true,
	},
}

// statsFlags are the flags of stats.
var statsFlags = []string{"columns", "sort", "top", "by", "every"}

// ratesView is the view of stats with --every: its records are intervals.
var ratesView = &view{
	name: "stats", fields: render.RateFields, summed: query.Transactions, flags: statsFlags, top: "-rpcs", open: rates, light: true,
}

// sumsRPCs reports whether a view shows only RPCs, or sums of them.
func (v *view) sumsRPCs() bool {
	return v.fields == query.Transactions || v.summed == query.Transactions
}

// viewNamed returns the view with a name, or nil if there is none.
func viewNamed(name string) *view {
	if i := slices.IndexFunc(views, func(v *view) bool { return v.name == name }); i >= 0 {
		return views[i]
	}
	return nil
}

// viewNames returns the names of all views.
func viewNames() (names []string) {
	for _, v := range views {
		names = append(names, v.name)
	}
	return names
}

// transactions shows a row for each transaction, or ladder diagrams with --xid.
func transactions(s *sink) (dissect.Handler, func()) {
	show := func(r any) error {
		if s.ladder {
			return render.Ladder(s.w, s.theme, s.width, r.(*record.Transaction))
		}
		return s.text.Transaction(r.(*record.Transaction))
	}
	if s.ladder && len(s.conns) == 0 && s.sorter == nil && s.count == 0 && !s.text.IsLive() {
		l := &ladders{sink: s}
		show = l.show
		return dissect.Handler{Transaction: func(r *record.Transaction) error {
			if s.asked(r) {
				s.take(r, show)
			}
			return s.status()
		}}, l.finish
	}
	return dissect.Handler{Transaction: func(r *record.Transaction) error {
		if s.asked(r) {
			s.take(r, show)
		}
		return s.status()
	}}, nil
}

// fewLadders is the largest number of ladder diagrams that --xid draws if the connection is not chosen.
const fewLadders = 3

// ladders draws the RPCs with the XIDs of --xid, or lists them if they are many: an XID is only unique on its
// connection, and an RPC that is retransmitted on new connections keeps its XID.
type ladders struct {
	*sink
	drawn [][]byte
	held  []*record.Transaction // as many as drawn
	rows  bool                  // they are listed
}

// show draws or lists a transaction.
func (l *ladders) show(r any) error {
	t := r.(*record.Transaction)
	if !l.rows && len(l.drawn) < fewLadders {
		l.drawn, l.held = append(l.drawn, l.drawLadder(t)), append(l.held, t.Clone())
		return nil
	}
	if !l.rows {
		l.rows = true
		for _, held := range l.held {
			if err := l.text.Transaction(held); err != nil {
				return err
			}
		}
		l.drawn, l.held = nil, nil
	}
	return l.text.Transaction(t)
}

// finish writes the ladder diagrams, or says how to draw them.
func (l *ladders) finish() {
	for _, ladder := range l.drawn {
		_, err := l.w.Write(ladder)
		l.fail(err)
	}
	if l.rows {
		l.hint = fmt.Sprintf("%d RPCs have this XID; --conn N draws those of one connection, and --top %d the slowest", l.written, fewLadders)
	}
}

// connections shows a row for each connection, or charts with --timeline. With --xid it shows the
// connections that carried a transaction with this XID.
func connections(s *sink) (dissect.Handler, func()) {
	lines := map[int]*timelines{}
	carried := map[int]bool{}
	show := func(r any) error {
		if s.timeline {
			return render.ConnectionDetail(s.w, s.theme, r.(*record.Connection), s.start)
		}
		return s.text.Connection(r.(*record.Connection))
	}
	h := dissect.Handler{Connection: func(r *record.Connection) error {
		t, had := lines[r.ID], carried[r.ID]
		delete(lines, r.ID)
		delete(carried, r.ID)
		if len(s.xids) > 0 && !had || !s.wantsConnection(r.ID) || !s.overlaps(r.First, r.Last) {
			return nil
		}
		if s.take(r, show) && s.timeline && t != nil {
			s.timelines(t, r)
		}
		return s.status()
	}}
	if s.timeline || len(s.xids) > 0 {
		h.Transaction = func(r *record.Transaction) error {
			if s.asked(r) {
				carried[r.Connection] = true
			}
			earlier := s.from.set && endOf(r) < s.since
			if !s.timeline || !earlier && !s.overlaps(r.Start(), endOf(r)) || !s.wantsConnection(r.Connection) {
				return nil
			}
			t := lines[r.Connection]
			if t == nil {
				t = &timelines{}
				lines[r.Connection] = t
			}
			if earlier {
				t.credits(r).Earlier(r)
			} else {
				t.add(r)
			}
			return nil
		}
	}
	return h, nil
}

// endOf returns the time at which a transaction ended. Without a Reply it lasts to the end of its connection.
func endOf(r *record.Transaction) record.Time {
	if r.Reply == nil {
		return math.MaxInt64
	}
	return r.Reply.Time
}

// timelines collects the transactions of a connection.
type timelines struct {
	forward, backward analyze.CreditTimeline
	handles           analyze.HandleTimeline
}

// add adds a transaction.
func (t *timelines) add(r *record.Transaction) {
	t.credits(r).Add(r)
	t.handles.Add(r)
}

// credits returns the timeline of the credits that a transaction uses.
func (t *timelines) credits(r *record.Transaction) *analyze.CreditTimeline {
	if r.Direction == record.Backward {
		return &t.backward
	}
	return &t.forward
}

// timelines draws the charts of a connection.
func (s *sink) timelines(t *timelines, c *record.Connection) {
	end := c.EndOfCalls()
	forward, backward := t.forward.Finish(c, record.Forward), t.backward.Finish(c, record.Backward)
	handles := t.handles.Finish(c.ID, end)
	height := max(s.height/3, 4)
	axis := render.Axis{Start: s.start, From: c.First, To: c.Last}
	if s.from.set {
		axis.From = max(axis.From, s.since)
	}
	if s.to.set {
		axis.To = min(axis.To, s.until)
	}
	if why := render.NoTimeline(c); why != "" && !s.json {
		_, err := fmt.Fprintf(s.w, "%s\n\n", why)
		s.fail(err)
		return
	}
	for _, credits := range []*analyze.Credits{forward, backward} {
		if len(credits.Points) == 0 && credits == backward && !s.json {
			continue
		}
		s.emit(credits, func(any) error {
			return render.CreditChart(render.Screen{Out: s.w, Theme: s.theme, Width: s.width, Height: height}, credits, axis)
		})
	}
	s.emit(handles, func(any) error {
		return render.HandleChart(render.Screen{Out: s.w, Theme: s.theme, Width: s.width, Height: height * 2}, handles, axis)
	})
}

// packets shows a line for each packet, or its tree or its bytes, or a row if columns are
// selected.
func packets(s *sink) (dissect.Handler, func()) {
	show := func(r any) error { return s.packets.Packet(r.(*record.Packet)) }
	if len(s.look.columns) > 0 {
		show = func(r any) error { return s.text.Packet(r.(*record.Packet)) }
	}
	h := dissect.Handler{Packet: func(p *record.Packet) error {
		if s.wants(p.Connection, p.XID) && s.within(p.Time) {
			s.take(p, show)
		}
		return s.status()
	}}
	if len(s.conns) > 0 {
		h.Connection = func(r *record.Connection) error {
			if s.wantsConnection(r.ID) {
				s.unpaired += r.PacketsBeforePairing
			}
			return nil
		}
	}
	return h, nil
}

// rates shows a row for each interval of time after the last record.
func rates(s *sink) (dissect.Handler, func()) {
	by := ""
	var values func([]string, *record.Transaction) []string
	if s.by.given {
		by, values = s.by.by, s.by.append
	}
	sums, err := analyze.NewRates(s.every, by, values)
	if err != nil {
		s.fail(fmt.Errorf("--every: %w", err))
		return dissect.Handler{}, func() {}
	}
	started := false
	begin := func() {
		if !started {
			sums.Begin(s.start)
			started = true
		}
	}
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if begin(); s.asked(r) && s.sums(r) {
				s.fail(sums.Add(r))
			}
			return s.status()
		},
		Connection: func(r *record.Connection) error {
			begin()
			s.fail(sums.Connection(r))
			return s.status()
		},
	}
	return h, func() {
		if s.err != nil || s.summary == nil {
			return
		}
		begin()
		rows, err := sums.Rows(s.summary.Last.Or(s.start))
		s.fail(err)
		var shown []*analyze.Rate
		for _, r := range rows {
			if r.RPCs == 0 && !s.overlaps(r.Start, r.End-1) { // A Reply may come after --to.
				continue
			}
			s.take(r, func(r any) error {
				shown = append(shown, r.(*analyze.Rate))
				return nil
			})
		}
		s.release()
		if len(shown) > 0 {
			s.fail(render.Rates(s.w, s.theme, s.width, s.start, shown))
		}
	}
}

// files shows a row for each file after the last record.
func files(s *sink) (dissect.Handler, func()) {
	table := analyze.NewFiles(int64(s.memory) / 8)
	s.redraw = func(w io.Writer, _ *refresh) error { return render.Files(w, s.theme, s.width, s.start, table.Rows()) }
	h := dissect.Handler{Transaction: func(r *record.Transaction) error {
		if s.asked(r) && s.sums(r) {
			table.Add(r)
		}
		return s.status()
	}}
	return h, func() {
		var rows []*analyze.File
		show := func(r any) error {
			rows = append(rows, r.(*analyze.File))
			return nil
		}
		for _, r := range table.Rows() {
			s.take(r, show)
		}
		s.release()
		if len(rows) > 0 || !s.json && s.columns == nil && s.filter == nil {
			s.fail(render.Files(s.w, s.theme, s.width, s.start, rows))
		}
	}
}

// stats shows a table of sums after the last record.
func stats(s *sink) (dissect.Handler, func()) {
	table := s.by.table()
	table.Limit(int64(s.memory) / 8)
	s.redraw = func(w io.Writer, _ *refresh) error { return render.Stats(w, s.theme, s.width, table.Rows()) }
	h := dissect.Handler{Transaction: func(r *record.Transaction) error {
		if s.asked(r) && s.sums(r) {
			table.Add(r)
		}
		return s.status()
	}}
	return h, func() {
		var rows []*analyze.Stats
		show := func(r any) error {
			rows = append(rows, r.(*analyze.Stats))
			return nil
		}
		for _, r := range table.Rows() {
			s.take(r, show)
		}
		s.release()
		if len(rows) > 0 || !s.json && s.columns == nil && s.filter == nil {
			s.fail(render.Stats(s.w, s.theme, s.width, rows))
		}
	}
}
