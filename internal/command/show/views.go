package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/render"
)

// opened lists how views show records. A function returns the handler of the records and, unless it is nil, a function that is
// called after the last record.
var opened = map[string]func(s *sink) (h dissect.Handler, finish func()){
	"transactions": transactions, "connections": connections, "packets": packets, "rdma": operations, "tasks": tasks, "network": network,
	"check": findings, "overview": overview, "files": files, "stats": stats, "problems": problems,
}

// open returns the functions of a view.
func open(s *sink) (h dissect.Handler, finish func()) {
	switch s.View {
	case flags.RatesView:
		return rates(s)
	case flags.LostView:
		l := newLostPackets(s)
		return dissect.Handler{Packet: l.packet, Transaction: l.transaction}, l.finish
	case flags.OperationSumsView:
		return operationSums(s)
	}
	return opened[s.View.Name](s)
}

// lead notes which command shows more of the worst record of a screen.
func (s *sink) lead(r any) {
	if s.JSON || s.Columns != nil || s.Quiet || s.width == 0 {
		return
	}
	path, amount, more := "", int64(0), func() []string { return nil }
	conn := func(id int) []string { // Typed repeats --conn and --xid
		if len(s.Conns) == 1 {
			return nil
		}
		return []string{"--conn", strconv.Itoa(id)}
	}
	switch r := r.(type) {
	case *record.Transaction:
		path, amount = "latency_ns", r.LatencyNS.Or(0)
		more = func() []string {
			args := conn(r.Connection)
			if len(s.XIDs) != 1 {
				args = append(args, "--xid", r.XID.String())
			}
			if s.moreIs = "draw the slowest RPC: "; !r.LatencyNS.Known() {
				s.moreIs = "draw the first RPC: "
			}
			if s.Ladder {
				s.moreIs, args = "", append([]string{"packets"}, args...)
			}
			return args
		}
	case *record.RDMAOperation:
		path, amount = "latency_ns", r.LatencyNS.Or(0)
		more = func() []string {
			s.moreIs = "RPC of the slowest operation: "
			return []string{"-Y", fmt.Sprintf("id == %d", r.Transaction.Or(0))}
		}
		if !r.Transaction.Known() {
			return
		}
	case *record.Task:
		path, amount = "blocked_ns", r.BlockedNS.Or(0)
		more = func() []string {
			return []string{"-Y", fmt.Sprintf("request in {%d..%d} and operation == %s", r.Requests[0], r.Requests[len(r.Requests)-1], r.Operation.Or(""))}
		}
		if !r.Operation.Known() || len(r.Requests) == 0 {
			return
		}
	case *record.Connection:
		path, amount = "retransmitted", r.Retransmitted*1000/max(r.Packets, 1)
		more = func() []string { return append([]string{"connections", "--timeline"}, conn(r.ID)...) }
		if s.Timeline && (r.Transactions == 0 || s.From.Set || s.To.Set) { // then there may be none
			return
		}
		if s.Timeline {
			more = func() []string { return append([]string{"--top", "10"}, conn(r.ID)...) }
		}
		if !strings.HasPrefix(r.UpperLayer, "rpc") {
			return
		}
	case *analyze.Stats, *analyze.Rate, *analyze.OperationStats, *analyze.File:
		if s.Filter != nil || s.Summed != nil {
			return
		}
		switch r := r.(type) {
		case *analyze.Rate: // the interval with the slowest RPC
			if r.RPCs == 0 {
				return
			}
			path, amount = "latency.max_ns", r.Latency.Max.Or(0)
			more = func() []string {
				if s.From.Set || s.To.Set {
					return []string{"--top", "10"}
				}
				// The interval has the RPCs that ended in it, and --from those that began.
				from := max(0, r.Start.Sub(s.Start)-r.Latency.Max.Or(0)-int64(time.Millisecond))
				return []string{"--top", "10", "--from", render.Seconds(from, 3), "--to", render.Seconds(r.End.Sub(s.Start), 3)}
			}
		case *analyze.OperationStats:
			more = func() []string { return []string{"rdma", "--top", "10"} }
		case *analyze.File:
			more = func() []string { return []string{"stats", "--by", "file,operation"} }
		default:
			more = func() []string { return []string{"--top", "10"} }
		}
	case *record.Network:
		amount = r.Lost
		more = func() []string {
			if r.Lost > 0 && !s.Lost {
				return []string{"network", "--lost"}
			}
			return []string{"overview"}
		}
	}
	shown := s.Order.Top == 0 || path == "" || s.Order == flags.Order{Path: path, Descending: true, Top: s.Order.Top}
	if shown && (s.more == nil || amount > s.worst) {
		s.more, s.worst = more(), amount
	}
}

// follow writes the command that shows more than the screen does.
func (s *sink) follow() {
	if s.more != nil && s.Typed != "" && s.written > 0 {
		s.fail(render.Next(render.Screen{Out: s.w, Theme: s.theme}, s.moreIs, s.more, s.captures()))
	}
}

// transactions shows a row for each transaction, or ladder diagrams with --xid.
func transactions(s *sink) (dissect.Handler, func()) {
	show := func(r any) error {
		if s.Ladder {
			return render.Ladder(s.w, s.theme, s.width, r.(*record.Transaction), s.All)
		}
		return s.text.Transaction(r.(*record.Transaction))
	}
	if s.Ladder && len(s.Conns) == 0 && s.sorter == nil && s.Count == 0 && !s.text.IsLive() {
		l := &ladders{sink: s}
		show = l.show
		return dissect.Handler{Transaction: func(r *record.Transaction) error {
			if s.asked(r) {
				s.take(r, show)
			}
			return s.status()
		}}, l.finish
	}
	open := int64(0) // request of the last ladder, if the attempt got no Reply
	return dissect.Handler{Transaction: func(r *record.Transaction) error {
		switch {
		case s.asked(r):
			if s.take(r, show) && s.Ladder && r.Status == record.NoReply {
				open = r.Request
			}
		default:
			if s.pass(r.ID); r.Request == open && s.more != nil {
				s.moreIs, s.more, open = fmt.Sprintf("sent again as RPC ID %d, draw both: ", r.ID), []string{"--conn", strconv.Itoa(r.Connection)}, 0
			}
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
	rows  *sorter               // of the rows, by number; nil if they are not listed
}

// show draws or lists a transaction.
func (l *ladders) show(r any) error {
	t := r.(*record.Transaction)
	if l.rows == nil && len(l.drawn) < fewLadders {
		l.drawn, l.held = append(l.drawn, l.drawLadder(t)), append(l.held, t.Clone())
		return nil
	}
	if l.rows == nil {
		l.rows = newSorter(flags.Order{Path: "id"})
		for _, held := range l.held {
			if err := l.list(held); err != nil {
				return err
			}
		}
		l.drawn, l.held = nil, nil
	}
	return l.list(t)
}

// list adds a transaction to the table. Its rows are in the order of their numbers, unless each of them depends on the one before it.
func (l *ladders) list(t *record.Transaction) error {
	draw := func() error { return l.text.Transaction(t) }
	if !l.text.CanKeep() {
		return draw()
	}
	row, err := l.text.Keep(nil, draw)
	if err != nil {
		return err
	}
	return l.rows.take(line{key: int(t.ID), text: row, bytes: len(row)})
}

// finish writes the ladder diagrams, or says how to draw them.
func (l *ladders) finish() {
	for _, ladder := range l.drawn {
		_, err := l.w.Write(ladder)
		l.fail(err)
	}
	if l.rows != nil {
		defer l.rows.close()
		l.fail(l.rows.each(func(row []byte, _ any) error { return l.text.Row(row) }))
		l.hint = fmt.Sprintf("%d RPCs have this XID; --conn N draws those of one connection, and --top %d the slowest", l.written, fewLadders)
	}
}

// connections shows a row for each connection, or charts with --timeline. With --xid it shows the
// connections that carried a transaction with this XID.
func connections(s *sink) (dissect.Handler, func()) {
	lines := map[int]*timelines{}
	carried := map[int]bool{}
	show := func(r any) error {
		if s.Timeline {
			return render.ConnectionDetail(s.screen(s.w), r.(*record.Connection), s.Start)
		}
		return s.text.Connection(r.(*record.Connection))
	}
	var list *alike
	if s.Order == (flags.Order{Path: "id"}) && s.Count == 0 && !s.All && !s.JSON && s.Columns == nil && len(s.Look.Columns) == 0 {
		list = &alike{sink: s}
		show, s.sorter = list.show, nil
	}
	h := dissect.Handler{Connection: func(r *record.Connection) error {
		t, had := lines[r.ID], carried[r.ID]
		delete(lines, r.ID)
		delete(carried, r.ID)
		if len(s.XIDs) > 0 && !had || !s.WantsConnection(r.ID) || !s.Overlaps(r.First, r.Last) {
			s.pass(int64(r.ID))
			return s.status()
		}
		if s.take(r, show) && s.Timeline && t != nil {
			s.timelines(t, r)
		}
		return s.status()
	}}
	if s.Timeline || len(s.XIDs) > 0 {
		h.Transaction = func(r *record.Transaction) error {
			if s.asked(r) {
				carried[r.Connection] = true
			}
			earlier := s.From.Set && flags.EndOf(r) < s.Since
			if !s.Timeline || !earlier && !s.Overlaps(r.Start(), flags.EndOf(r)) || !s.WantsConnection(r.Connection) {
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
	if s.JSON || s.Columns != nil || s.Timeline || s.Quiet || s.text.IsLive() || len(s.Look.Columns) > 0 {
		return h, list.finish
	}
	return withMounts(s, h, list)
}

// alike collects connections, and draws those that are alike as one row.
type alike struct {
	*sink
	list []*record.Connection
}

// The numbers of connections that are drawn as one row at least, and that wait at most to be drawn.
const (
	leastAlike = 5
	mostAlike  = 4096
)

// show takes a connection.
func (a *alike) show(r any) error {
	if a.list = append(a.list, r.(*record.Connection).Clone()); len(a.list) == mostAlike {
		a.finish()
	}
	return nil
}

// finish draws the rows, in the order of their first connections.
func (a *alike) finish() {
	if a == nil {
		return
	}
	slices.SortFunc(a.list, func(x, y *record.Connection) int { return cmp.Compare(x.ID, y.ID) })
	if !slices.ContainsFunc(a.list, func(r *record.Connection) bool { return strings.HasPrefix(r.UpperLayer, "rpc") }) {
		a.text.WithoutRPCs()
	}
	rows, keys := map[string][]*record.Connection{}, make([]string, len(a.list))
	for i, r := range a.list {
		keys[i] = render.AlikeKey(r)
		rows[keys[i]] = append(rows[keys[i]], r)
	}
	for i, r := range a.list {
		switch row := rows[keys[i]]; {
		case len(row) < leastAlike:
			a.fail(a.text.Connection(r))
		case row[0] == r:
			a.fail(a.text.Connections(row))
		}
	}
	a.list = nil
}

// withMounts adds to the table of connections what clients and servers agreed on.
func withMounts(s *sink, h dissect.Handler, list *alike) (dissect.Handler, func()) {
	var mounts analyze.Mounts
	also := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			if s.WantsConnection(r.Connection) {
				mounts.Transaction(r)
			}
			return nil
		},
		Connection: func(r *record.Connection) error {
			if s.WantsConnection(r.ID) {
				mounts.Connection(r)
			}
			return nil
		},
	}
	h.Transaction, h.Connection = both(also.Transaction, h.Transaction), both(also.Connection, h.Connection)
	return h, func() {
		list.finish()
		s.release()
		s.fail(s.text.Flush())
		for _, m := range mounts.List() {
			if m.Connections > 0 {
				s.fail(render.Labeled(s.w, cmp.Or(s.width, 120), "mounted", render.MountText(record.Named(&m, s.Hosts))))
			}
		}
	}
}

// timelines collects the transactions of a connection.
type timelines struct {
	forward, backward analyze.CreditTimeline
	handles           analyze.HandleTimeline
	trips, repeats    []render.Moment
}

// maxMoments is the number of round trips, and of repeated packets, that are kept of a connection.
const maxMoments = 1 << 16

// The heights of the charts of a connection, so that it has at most 60 lines with all that is listed above them.
const (
	creditLines = 4
	handleLines = 5
)

// add adds a transaction.
func (t *timelines) add(r *record.Transaction) {
	t.credits(r).Add(r)
	t.handles.Add(r)
	if m, known := r.Meanwhile.Get(); known {
		if trips, measured := m.RoundTrips.Get(); measured {
			t.trips = kept(t.trips, render.Moment{Time: r.Start(), N: trips.MaxNS}, func(a, b int64) int64 { return max(a, b) })
		}
	}
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Event == record.EventRetransmit {
			t.repeats = kept(t.repeats, render.Moment{Time: e.Time, N: e.Packets.Or(1)}, func(a, b int64) int64 { return a + b })
		}
	}
}

// kept adds a moment to a list. If it is full, each moment is joined with the next one.
func kept(list []render.Moment, m render.Moment, join func(a, b int64) int64) []render.Moment {
	if len(list) == maxMoments {
		for i := range maxMoments / 2 {
			list[i] = render.Moment{Time: list[2*i].Time, N: join(list[2*i].N, list[2*i+1].N)}
		}
		list = list[:maxMoments/2]
	}
	return append(list, m)
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
	axis := render.Axis{Start: s.Start, From: c.First, To: c.Last}
	if s.From.Set {
		axis.From = max(axis.From, s.Since)
	}
	if s.To.Set {
		axis.To = min(axis.To, s.Until)
	}
	if why := render.NoTimeline(c); why != "" && !s.JSON {
		_, err := fmt.Fprintf(s.w, "%s\n\n", why)
		s.fail(err)
		return
	}
	for _, credits := range []*analyze.Credits{forward, backward} {
		if len(credits.Points) == 0 && credits == backward && !s.JSON {
			continue
		}
		s.emit(credits, func(any) error {
			return render.CreditChart(render.Screen{Out: s.w, Theme: s.theme, Width: s.width, Height: creditLines}, credits, axis)
		})
	}
	s.emit(handles, func(any) error {
		return render.HandleChart(render.Screen{Out: s.w, Theme: s.theme, Width: s.width, Height: handleLines}, handles, axis)
	})
	if !s.JSON {
		s.fail(render.PathChart(s.screen(s.w), t.trips, t.repeats, axis))
	}
}

// packets shows a line for each packet, or its tree or its bytes, or a row if columns are
// selected.
func packets(s *sink) (dissect.Handler, func()) {
	show := func(r any) error { return s.packets.Packet(r.(*record.Packet)) }
	if len(s.Look.Columns) > 0 {
		show = func(r any) error { return s.text.Packet(r.(*record.Packet)) }
	}
	h := dissect.Handler{Packet: func(p *record.Packet) error {
		if s.Wants(p.Connection, p.XID) && s.Within(p.Time) {
			s.take(p, show)
		}
		return s.status()
	}}
	if s.Why.Number != 0 {
		return why(s, show)
	}
	if len(s.Conns) > 0 {
		h.Connection = func(r *record.Connection) error {
			if s.WantsConnection(r.ID) {
				s.unpaired += r.PacketsBeforePairing
			}
			return nil
		}
	}
	return h, func() {
		if s.packets.Cut && !s.Quiet {
			s.moreIs, s.more = "~ = cut; whole lines: ", []string{"packets", "--wide"}
		}
	}
}

// why shows one packet, and below it what decided about it.
func why(s *sink, show func(any) error) (h dissect.Handler, finish func()) {
	wanted, err := s.Why.In(s.AtPoints)
	s.fail(err)
	var lines []string
	last := ""
	h.Packet = func(p *record.Packet) error {
		if p.Is(wanted) {
			s.take(p, show)
		}
		return s.status()
	}
	h.Why = func(by, what, text string) {
		if last != "acked-to" || what != "covered" { // they say the same
			lines = append(lines, render.Folded(render.Clean(fmt.Sprintf("%-9s %-14s %s", by, what, text)), s.width)+"\n")
		}
		last = what
	}
	return h, func() {
		switch {
		case s.written == 0:
			s.fail(fmt.Errorf("--why %v: no packet that is selected has this number", &s.Why))
		case lines == nil:
			lines = []string{"nothing to explain: it is no RDMA request, response or ACK; if a problem names it, then for its time\n"}
		}
		for _, line := range lines {
			_, err := s.w.WriteString(line)
			s.fail(err)
		}
	}
}

// wantsSignal reports whether a packet that shows congestion is selected: by its time and connection. Frames that pause a link have no
// connection.
func (s *sink) wantsSignal(x record.Signal) bool {
	id, known := x.Connection.Get()
	return s.Within(x.Time) && (!known || s.WantsConnection(id))
}

// rates shows a row for each interval of time after the last record.
func rates(s *sink) (dissect.Handler, func()) {
	by := ""
	var values func([]string, *record.Transaction) []string
	if s.By.Given {
		by, values = s.By.By, s.By.Append
	}
	sums, err := analyze.NewRates(s.Every, by, values)
	if err != nil {
		s.fail(fmt.Errorf("--every: %w", err))
		return dissect.Handler{}, func() {}
	}
	started := false
	begin := func() {
		if !started {
			sums.Begin(s.Start)
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
			if begin(); s.WantsConnection(r.ID) {
				sums.Expect(r)
			}
			s.fail(sums.Connection(r))
			return s.status()
		},
		Signal: func(x record.Signal) error {
			if begin(); s.wantsSignal(x) {
				s.fail(sums.Signal(x))
			}
			return s.status()
		},
	}
	return h, func() {
		if s.err != nil || s.summary == nil {
			return
		}
		begin()
		rows, err := sums.Rows(s.summary.Last.Or(s.Start))
		s.fail(err)
		rows = slices.DeleteFunc(rows, func(r *analyze.Rate) bool {
			return r.RPCs == 0 && !s.Overlaps(r.Start, r.End-1) // a Reply may come after --to
		})
		if shown := selected(s, rows); len(shown) > 0 {
			s.fail(render.Rates(s.w, s.theme, s.width, s.Start, shown))
		}
	}
}

// files shows a row for each file after the last record.
func files(s *sink) (dissect.Handler, func()) {
	table := analyze.NewFiles(int64(s.Memory) / 8)
	h, finish := summing(s, table.Add, table.Rows, func(w io.Writer, rows []*analyze.File) error {
		return render.Files(w, s.theme, s.width, s.Start, rows)
	})
	return h, func() { finish() }
}

// stats shows a table of sums after the last record.
func stats(s *sink) (dissect.Handler, func()) {
	table := s.By.Table()
	table.Limit(int64(s.Memory) / 8)
	h, finish := summing(s, table.Add, table.Rows, func(w io.Writer, rows []*analyze.Stats) error {
		return render.Stats(w, s.theme, s.width, rows)
	})
	return h, func() {
		rows := finish()
		if !s.Quiet && !s.JSON && s.Columns == nil {
			for _, text := range s.By.Without(rows) {
				s.fail(render.Labeled(s.w, cmp.Or(s.width, 120), flags.NoValue, text))
			}
		}
	}
}

// summing returns a handler that adds the selected transactions to a table, and a function that draws its rows after the last record,
// and returns those that the flags select.
func summing[R any](s *sink, add func(*record.Transaction), all func() []*R, draw func(io.Writer, []*R) error) (h dissect.Handler, finish func() []*R) {
	s.redraw = func(w io.Writer, _ *refresh) error { return draw(w, all()) }
	h.Transaction = func(r *record.Transaction) error {
		if s.asked(r) && s.sums(r) {
			add(r)
		}
		return s.status()
	}
	return h, func() []*R {
		rows := selected(s, all())
		if len(rows) > 0 || !s.JSON && s.Columns == nil && s.Filter == nil {
			s.fail(draw(s.w, rows))
		}
		return rows
	}
}

// selected returns the rows that the flags select, in their order, for a table. Rows that are no text are written.
func selected[R any](s *sink, all []*R) (rows []*R) {
	for _, r := range all {
		s.take(r, func(r any) error {
			rows = append(rows, r.(*R))
			return nil
		})
	}
	s.release()
	return rows
}
