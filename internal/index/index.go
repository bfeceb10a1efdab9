// Package index keeps the records of a capture in little memory, so that they can be listed, sorted,
// filtered and drawn in any order after, and while, one pass reads the capture.
//
// For each RPC it keeps a [Row] of 64 bytes, which is enough for orders and charts, and the whole
// record in a compressed block of some hundred bytes. Connections and findings are kept in blocks,
// too. The blocks and rows that exceed a limit go to a temporary file.
//
// One goroutine adds records, which it gets from a [dissect.Dissector] (see [Index.Run]) or from
// elsewhere (see [Index.Handler]). Any number of goroutines may read at the same time; each has a
// [Reader] of its own. RPCs are numbered from 0, in the order in which they became complete, which is
// the order in which rdmadump lists them.
package index

import (
	"context"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Options are the limits of an Index.
type Options struct {
	// Memory is the number of bytes of rows and blocks that stay in memory. What exceeds it goes
	// to a temporary file. 0 means 64 MiB.
	Memory int64
	// Folder is the folder for the temporary file; empty means the system's.
	Folder string
	// Keep is the number of RPCs to keep, the newest ones; up to 4,096 more may be kept. 0 keeps all.
	Keep int64
	// Also gets the records, too, after the index has them.
	Also dissect.Handler
	// Tick is called about forty times a second by Run, between records, while packets are being captured. It is nil if there
	// is nothing to do.
	Tick func(*dissect.Dissector)
}

// defaultMemory is the default of Options.Memory.
const defaultMemory = 64 << 20

// Index holds the records of one capture.
type Index struct {
	options Options
	space   space
	names   *words // of operations and outcomes

	transactions *list[record.Transaction]
	connections  *list[record.Connection]
	findings     *list[record.Finding]
	rows         rows

	mu       sync.Mutex
	start    record.Opt[record.Time]
	summary  *record.Summary
	err      error
	done     bool
	progress func() (read, total int64)
}

// State says how far an Index is.
type State struct {
	From, To    int64                   // numbers of the first RPC that is kept, and of the one after the last
	Connections int64                   // number of connections so far
	Findings    int64                   // number of findings so far
	Start       record.Opt[record.Time] // time of the first packet; unknown before it was read
	Done        bool                    // all of the capture was read, or reading it failed
	Summary     *record.Summary         // nil until Done, and for records without a summary
	Err         error                   // the error that ended reading early
	Read, Total int64                   // bytes of the input; Total is 0 if it is unknown
	Spilled     int64                   // bytes in the temporary file; 0 if there is none
	SpillErr    error                   // the temporary file cannot be written, so records are missing
}

// New returns an empty Index.
func New(o Options) *Index {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	x := &Index{options: o, space: space{limit: o.Memory, folder: o.Folder}, names: newWords()}
	x.rows.space = &x.space
	enc, w := newEncoder(), newWords()
	x.transactions, x.connections, x.findings = newList[record.Transaction](&x.space, w, enc), newList[record.Connection](&x.space, w, enc), newList[record.Finding](&x.space, w, enc)
	return x
}

// newEncoder returns a compressor of blocks.
func newEncoder() *zstd.Encoder {
	enc, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), // valid options
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(64<<10), zstd.WithEncoderCRC(false))
	return enc
}

// Handler returns a handler that adds records. Its functions do not return errors, and must not be
// called at the same time.
func (x *Index) Handler() dissect.Handler {
	also := &x.options.Also
	return dissect.Handler{
		Begin: func(first record.Time) error {
			x.mu.Lock()
			x.start = record.Some(first)
			x.mu.Unlock()
			return passed(also.Begin, first)
		},
		Transaction: func(r *record.Transaction) error {
			row := makeRow(r, x.names)
			x.transactions.add(r)
			x.rows.add(&row) // A row is the promise that there is a record.
			if keep := x.options.Keep; keep > 0 && row.ID > keep {
				_, to := x.rows.bounds()
				x.transactions.forget(x.rows.forget(to - keep))
			}
			return passed(also.Transaction, r)
		},
		Connection: func(r *record.Connection) error {
			x.connections.add(r)
			return passed(also.Connection, r)
		},
		Finding: func(r *record.Finding) error {
			x.findings.add(r)
			return passed(also.Finding, r)
		},
		Operation: also.Operation,
	}
}

// passed passes a record to a function, which may be nil.
func passed[R any](to func(R) error, r R) error {
	if to == nil {
		return nil
	}
	return to(r)
}

// Run dissects a capture and adds its records. It returns when the capture ends, or cannot be read
// further, or ctx ends. The result is also in the State.
func (x *Index) Run(ctx context.Context, source capture.Source, o dissect.Options) (*record.Summary, error) {
	if s, ok := source.(interface{ Progress() (int64, int64) }); ok {
		x.mu.Lock()
		x.progress = s.Progress
		x.mu.Unlock()
	}
	h := x.Handler()
	var d *dissect.Dissector
	if x.options.Tick != nil && o.Live {
		h.Tick = func() error { x.options.Tick(d); return nil }
	}
	d = dissect.New(h, o)
	summary, err := d.Run(ctx, source)
	x.Finish(summary, err)
	return summary, err
}

// Finish notes that all records were added. Err is the error that ended reading early, or nil.
func (x *Index) Finish(summary *record.Summary, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.summary, x.err, x.done = summary, err, true
	if summary != nil && !x.start.Known() {
		x.start = summary.First
	}
}

// State returns how far the Index is.
func (x *Index) State() State {
	x.mu.Lock()
	s := State{Start: x.start, Done: x.done, Summary: x.summary, Err: x.err}
	progress := x.progress
	x.mu.Unlock()
	if progress != nil {
		s.Read, s.Total = progress()
	}
	s.From, s.To = x.Bounds()
	_, s.Connections = x.connections.bounds()
	_, s.Findings = x.findings.bounds()
	s.Spilled, s.SpillErr = x.space.spilled()
	return s
}

// Bounds returns the numbers of the first RPC that is kept, and of the one after the last.
func (x *Index) Bounds() (from, to int64) { return x.rows.bounds() }

// Names returns the texts so far that the Operation, Status and Outcome of a Row stand for, by number.
func (x *Index) Names() []string { return slices.Clip(x.names.all()) }

// Close removes the temporary file. Nothing may be read afterwards.
func (x *Index) Close() error {
	x.transactions.enc.Close()
	return x.space.close()
}

// Reader reads the records of an Index. It keeps the block that it read last, so that reading
// neighbours is fast. Only one goroutine may use it.
type Reader struct {
	x            *Index
	transactions *reader[record.Transaction]
	connections  *reader[record.Connection]
	findings     *reader[record.Finding]
	packets      *reader[packetRow] // of the list that was read last; nil for none
	chunk        []byte             // rows from number at on
	at           int64
}

// Reader returns a new Reader.
func (x *Index) Reader() *Reader {
	return &Reader{x: x, transactions: x.transactions.reader(), connections: x.connections.reader(), findings: x.findings.reader(), at: -1}
}

// Names returns what Names of the Index returns.
func (r *Reader) Names() []string { return r.x.Names() }

// Close frees the memory of the Reader.
func (r *Reader) Close() {
	r.transactions.close()
	r.connections.close()
	r.findings.close()
	if r.packets != nil {
		r.packets.close()
	}
}

// Transaction returns the record of an RPC, which stays valid. It is nil if the RPC is not kept any
// more, or not there yet.
func (r *Reader) Transaction(n int64) (*record.Transaction, error) { return r.transactions.get(n) }

// Connection returns the record of a connection, by its place in the order of their ends.
func (r *Reader) Connection(n int64) (*record.Connection, error) { return r.connections.get(n) }

// Finding returns a finding, by its place in the order in which they were found.
func (r *Reader) Finding(n int64) (*record.Finding, error) { return r.findings.get(n) }

// Row returns the row of an RPC. It reports false if the RPC is not kept any more, or not there yet.
func (r *Reader) Row(n int64) (row Row, known bool) {
	at := (n - r.at) * rowBytes
	if r.at < 0 || n < r.at || at >= int64(len(r.chunk)) {
		from := max(n-n%perChunk, 0)
		first, _ := r.x.Bounds()
		if n < first {
			return row, false
		}
		chunk, err := r.x.rows.chunk(from)
		if err != nil {
			return row, false
		}
		r.chunk, r.at, at = chunk, from, (n-from)*rowBytes
	}
	if n < 0 || at >= int64(len(r.chunk)) {
		return row, false
	}
	row.parse(r.chunk[at:])
	return row, true
}

// Rows calls visit for the rows [from, to) that are kept, until visit returns false or ctx ends.
func (r *Reader) Rows(ctx context.Context, from, to int64, visit func(n int64, row *Row) bool) error {
	var row Row
	first, end := r.x.Bounds()
	for n := max(from, first); n < min(to, end); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		chunk, err := r.x.rows.chunk(n)
		if err != nil {
			return err
		}
		if chunk == nil {
			n++ // forgotten meanwhile
			continue
		}
		for ; len(chunk) >= rowBytes && n < to; n++ {
			row.parse(chunk)
			chunk = chunk[rowBytes:]
			if !visit(n, &row) {
				return nil
			}
		}
	}
	return nil
}

// Each calls visit for the RPCs [from, to) that are kept, until visit returns false or ctx ends.
func (r *Reader) Each(ctx context.Context, from, to int64, visit func(n int64, t *record.Transaction) bool) error {
	return each(ctx, r.transactions, [2]int64{from, to}, visit)
}

// EachFinding calls visit for the findings [from, to), until visit returns false or ctx ends.
func (r *Reader) EachFinding(ctx context.Context, from, to int64, visit func(n int64, f *record.Finding) bool) error {
	return each(ctx, r.findings, [2]int64{from, to}, visit)
}

// EachConnection calls visit for the connections [from, to), until visit returns false or ctx ends.
func (r *Reader) EachConnection(ctx context.Context, from, to int64, visit func(n int64, c *record.Connection) bool) error {
	return each(ctx, r.connections, [2]int64{from, to}, visit)
}

// each calls visit for a span of the records of a list.
func each[T any](ctx context.Context, r *reader[T], span [2]int64, visit func(int64, *T) bool) error {
	first, end := r.bounds()
	for n := max(span[0], first); n < min(span[1], end); n++ {
		if n%perBlock == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t, err := r.get(n)
		if err != nil {
			return err
		}
		if t != nil && !visit(n, t) {
			return nil
		}
	}
	return nil
}
