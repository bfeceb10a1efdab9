// Package trace writes the RPCs of a capture as a trace for timeline viewers: the JSON of Chrome's tracing, which Perfetto and
// speedscope read.
//
// Each connection is a process. Its RPCs and RDMA operations are slices in rows, so that slices of
// one row do not overlap; credits, exposed memory and transferred bytes are counters; events of the
// transport and findings are instants. With several capture points, the delays and losses of each
// direction between them are counters of a process of their own. All times are those of the capture.
//
// model.go makes items of records, store.go keeps them in a temporary file until they can be written
// in the order of their times, and chrome.go encodes them.
package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/disk"
)

// TempFile holds the items until they are written in order, usually an [os.File].
type TempFile = disk.Raw

// The numbers of RPCs above which a trace has fewer details: a viewer keeps all of it in memory.
const (
	maxDetailed = 300_000   // with all details
	maxRPCs     = 2_000_000 // with RPCs, counters and findings
)

// Report counts what was written.
type Report struct {
	RPCs, Operations, Instants, Flows int64
	Connections                       int
	// Reduced is set if RDMA operations, exposed handles and flows were left out because there are
	// too many RPCs for a viewer.
	Reduced bool
}

// String returns the report as one line of text.
func (r *Report) String() string {
	s := fmt.Sprintf("%s, %s and %s on %s", record.Plural(r.RPCs, "RPC"), record.Plural(r.Operations, "RDMA operation"), record.Plural(r.Instants, "event"), record.Plural(r.Connections, "connection"))
	if r.Reduced {
		s += fmt.Sprintf("; RDMA operations and handles are left out because there are more than %d RPCs: select fewer with --from, --to or -Y", maxDetailed)
	}
	return s
}

// Writer collects the records of a capture and writes them as a trace.
type Writer struct {
	// Wants, if not nil, reports whether a transaction is written. WantsFinding does the same for
	// findings. An error ends the export.
	Wants        func(*record.Transaction) bool
	WantsFinding func(*record.Finding) bool

	store       *store
	connections map[int]connection
	last        record.Time // of any record
	rpcs        int64
}

// maxConnections is the maximum number of connections whose descriptions are kept. The others have
// only a number.
const maxConnections = 1 << 16

// connection is the description of a connection.
type connection struct {
	name, description string
	end               record.Time // until which its Calls without a Reply are outstanding
}

// New returns a Writer that keeps items in an empty temporary file, which belongs to the caller.
func New(temporary TempFile) *Writer {
	return &Writer{store: newStore(temporary), connections: map[int]connection{}}
}

// Handler returns the handler for a dissector.
func (w *Writer) Handler() dissect.Handler {
	return dissect.Handler{Transaction: w.transaction, Connection: w.connection, Finding: w.finding}
}

// transaction adds the items of a transaction.
func (w *Writer) transaction(r *record.Transaction) error {
	if w.Wants != nil && !w.Wants(r) {
		return nil
	}
	if w.rpcs++; w.rpcs > maxRPCs {
		return fmt.Errorf("trace: there are more than %d RPCs, which no viewer shows; select fewer with --from, --to or -Y", maxRPCs)
	}
	add(w.store, r)
	w.last = max(w.last, ending(r))
	return w.store.err()
}

// connection keeps the description of a connection.
func (w *Writer) connection(r *record.Connection) error {
	w.last = max(w.last, r.Last)
	if len(w.connections) < maxConnections {
		w.connections[r.ID] = connection{name: connectionName(r), description: connectionDescription(r), end: r.EndOfCalls()}
	}
	return nil
}

// networks is the number of the first process that shows what happened between two capture points.
const networks = 1 << 24

// Network adds what happened between the capture points. It must be called before the trace is written.
func (w *Writer) Network(list []*record.Network) error {
	for i, r := range list {
		number := networks + i
		w.connections[number] = connection{
			name:        "network " + r.From + " > " + r.To,
			description: fmt.Sprintf("%s, %d lost, %d reordered, %d corrupted, %d duplicated", record.Plural(r.Packets, "packet"), r.Lost, r.Reordered, r.Corrupted, r.Duplicated),
		}
		addNetwork(w.store, number, r)
	}
	return w.store.err()
}

// finding adds a finding as an instant.
func (w *Writer) finding(r *record.Finding) error {
	if w.WantsFinding != nil && !w.WantsFinding(r) {
		return nil
	}
	addFinding(w.store, r)
	return w.store.err()
}

// place is a row of a track of a connection.
type place struct {
	connection int
	track      track
	row        int
}

// Write writes the trace, with items in the order in which they begin.
func (w *Writer) Write(to io.Writer) (report Report, err error) {
	w.store.sorted, w.store.counted = w.store.order.Table(nil), w.store.changes.Table(nil) // Nothing is added from here on.
	buffered := bufio.NewWriterSize(to, 1<<16)
	out := newChrome(buffered, w.store.first())
	report.RPCs, report.Reduced = w.rpcs, w.rpcs > maxDetailed
	known := map[int]bool{}
	process := func(number int) {
		if !known[number] {
			known[number] = true
			if number < networks {
				report.Connections++
			}
			out.process(number, w.describe(number))
		}
	}
	taken := map[place]*rows{}
	w.store.items(func(s *item) {
		t := tracks[s.track]
		if report.Reduced && t.detail {
			return
		}
		process(s.connection)
		if s.end == stillOpen {
			s.end = max(w.describe(s.connection).end, s.start)
		}
		p := place{connection: s.connection, track: s.track}
		if taken[p] == nil {
			taken[p] = &rows{}
		}
		row, fresh := 0, taken[p].used == 0
		if t.kind == slices {
			row, fresh = taken[p].take(s.start, s.end)
		} else if fresh {
			taken[p].used = 1
		}
		if p.row = row; fresh {
			out.row(p)
		}
		if report.Reduced {
			s.flows = nil
		}
		report.add(s)
		if t.kind == slices && s.end > s.start {
			out.slice(p, s)
		} else {
			out.instant(p, s)
		}
	})
	w.store.counts(func(number int) record.Time { return w.describe(number).end }, func(p place, at record.Time, value int64, fresh bool) {
		if report.Reduced && tracks[p.track].detail {
			return
		}
		process(p.connection)
		if fresh {
			out.row(p)
		}
		out.count(p, at, value)
	})
	if err := w.store.err(); err != nil {
		return report, err
	}
	if err := out.finish(); err != nil {
		return report, err
	}
	return report, buffered.Flush()
}

// add counts an item.
func (r *Report) add(s *item) {
	r.Flows += int64(len(s.flows))
	switch {
	case s.track == reads || s.track == writes:
		r.Operations++
	case tracks[s.track].kind == instants:
		r.Instants++
	}
}

// describe returns the description of a connection.
func (w *Writer) describe(number int) connection {
	c, known := w.connections[number]
	if !known {
		c = connection{name: fmt.Sprintf("conn %d", number), end: w.last}
		if number < 0 {
			c.name = "capture"
		}
	}
	return c
}

// stillOpen is the end of a slice that lasts until its connection ends.
const stillOpen = record.Time(math.MaxInt64)
