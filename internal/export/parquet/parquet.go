// Package parquet writes the records of a capture as Parquet tables, for engines
// that query many captures at once: DuckDB, ClickHouse, Spark, Trino.
//
// Each table is a folder with partitions, as in Hive: DIR/v1/transactions/host=a/part-TIME-KEY.parquet. TIME is that of the
// capture's first packet, and KEY the key of the capture, so that captures of many hosts have different names. A file has another
// name until it is complete. The package uses parquet-go because
// it is pure Go, so that rdmadump remains one static binary, and because Grafana's
// Tempo and Loki depend on it and maintain it; arrow-go would add most of Arrow.
package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	framed "github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/diagnose"
)

// Version is the name of the folder with the tables. Another version of the schema, which lacks a column of this one, has another.
const Version = "v1"

// The limits of what is in memory: the number of rows of a row group, and the number of rows that are sorted by time, and of the
// bytes of their texts.
const (
	maxRows   = 128 << 10
	maxSorted = 4 << 10
	maxTexts  = 16 << 20
)

// every is the length of the intervals in the table rates.
const every = 10 * time.Second

// Capture is what an export says about a capture, in addition to its records.
type Capture struct {
	Files   []string        // names of the inputs
	Host    string          // name of the computer that exports it
	Program string          // version of rdmadump
	Options []string        // flags that select records
	Both    bool            // there are captures of both ends
	At      record.Position // where the packets were captured, if that is known
	Memory  int64           // memory for the table of files, in bytes
}

// rowsOfGroup returns the number of rows of a row group, which is in memory until it is complete: the most with the default of
// --memory, and fewer with less memory.
func (c *Capture) rowsOfGroup() int64 {
	const each = 256 // bytes of Memory
	return min(max(c.Memory/each, maxSorted), maxRows)
}

// role returns the place at which the packets of a connection were captured: client, server, between, both, or unknown. The
// addresses are those of its ends, or empty.
func (c *Capture) role(client, server string) string {
	at := ""
	if c.At.Address.IsValid() {
		at = c.At.Address.String()
	}
	switch {
	case c.Both:
		return "both"
	case c.At.Place != "":
		return string(c.At.Place)
	case at != "" && at == client && at != server:
		return string(record.AtClient)
	case at != "" && at == server && at != client:
		return string(record.AtServer)
	}
	return "unknown"
}

// Writer writes the tables of one capture. Begin is called before all other methods.
type Writer struct {
	// Wants, if not nil, reports whether a transaction is written; an error ends the
	// export.
	Wants func(*record.Transaction) bool

	folder    string
	partition string
	replace   bool
	row       row
	used      map[user]*xids
	places    map[int]record.Place // by connection
	byFile    *analyze.Files
	byTime    *analyze.Rates
	diagnosis *diagnose.Collector // of the records that end in the open files
	rolls     int                 // number of files of each table that were begun and are no longer open
	before    written             // what the open files and those before them say
	complete  written             // what the complete files say
	lost      bool                // rows are not written, because files could not be

	tables
}

// tables are the tables of a capture.
type tables struct {
	transactions table[record.Transaction]
	waits        table[record.Wait]
	operations   table[record.RDMAOperation]
	tasks        table[record.Task]
	connections  table[record.Connection]
	findings     table[record.Finding]
	problems     table[record.Problem]
	gaps         table[gap]
	points       table[record.Point]
	files        table[analyze.File]
	rates        table[analyze.Rate]
	captures     table[record.Summary]
}

// part is the file of one table of a capture.
type part interface {
	table() string
	has(name string) bool
	begin(w *Writer, name string) error
	complete() error
	path() string
	temporary() string
	prepare(name string) error
	publish(replace bool) error
	abandon()
	leave()
}

// parts returns the files of all tables.
func (t *tables) parts() []part {
	return []part{&t.transactions, &t.waits, &t.operations, &t.tasks, &t.connections, &t.findings, &t.problems, &t.gaps, &t.points, &t.files, &t.rates, &t.captures}
}

// New returns a writer of tables below a folder. Replace allows Begin to write the tables of a capture anew.
func New(folder string, partition Partition, of Capture, replace bool) *Writer {
	rates, _ := analyze.NewRates(every, "", nil) // the interval is long enough
	return &Writer{
		folder: folder, partition: partition.Path(), replace: replace, row: row{of: &of, role: of.role("", "")},
		used: map[user]*xids{}, places: map[int]record.Place{}, byFile: analyze.NewFiles(of.Memory), byTime: rates, diagnosis: new(diagnose.Collector),
		tables: newTables(),
	}
}

// newTables returns the tables of a capture, without rows.
func newTables() tables {
	return tables{
		transactions: table[record.Transaction]{name: "transactions", columns: transactionColumns(), at: func(r *record.Transaction) record.Time { return r.Start() }},
		waits:        table[record.Wait]{name: "waits", columns: waitColumns(), at: func(r *record.Wait) record.Time { return r.From }},
		operations:   table[record.RDMAOperation]{name: "rdma_operations", columns: operationColumns(), at: func(r *record.RDMAOperation) record.Time { return r.Sent }},
		tasks:        table[record.Task]{name: "tasks", columns: taskColumns(), at: func(r *record.Task) record.Time { return r.From }},
		connections:  table[record.Connection]{name: "connections", columns: connectionColumns(), at: func(r *record.Connection) record.Time { return r.First }},
		findings:     table[record.Finding]{name: "findings", columns: slices.Concat(ofConnection[record.Finding](), fields[record.Finding]("client_name server_name")), at: func(r *record.Finding) record.Time { return r.Time.Or(0) }},
		problems:     table[record.Problem]{name: "problems", columns: problemColumns(), at: func(r *record.Problem) record.Time { return r.From.Or(0) }},
		gaps:         table[gap]{name: "gaps", columns: slices.Concat(ofConnection[gap](), fields[gap]("")), at: func(r *gap) record.Time { return r.From.Or(0) }},
		points:       table[record.Point]{name: "points", columns: pointColumns(), at: func(*record.Point) record.Time { return 0 }},
		files:        table[analyze.File]{name: "files", columns: slices.Concat(of[analyze.File](), fields[analyze.File]("")), at: func(r *analyze.File) record.Time { return r.First }},
		rates:        table[analyze.Rate]{name: "rates", columns: rateColumns(), at: func(r *analyze.Rate) record.Time { return r.Start }},
		captures:     table[record.Summary]{name: "captures", columns: captureColumns(), at: func(r *record.Summary) record.Time { return r.First.Or(0) }},
	}
}

// Begin begins to write the tables of the capture that begins with a frame, or of an empty capture if it is nil. It returns an error
// that matches [io/fs.ErrExist] if the capture has tables already, unless they are to be replaced.
func (w *Writer) Begin(first *framed.Frame) error {
	at := time.Unix(0, 0)
	if first == nil {
		w.row.capture = key("empty", w.row.of.Host, w.row.of.Files)
	} else {
		at = first.Timestamp()
		w.row.capture = key("capture", first.Time, first.Length, first.Data)
	}
	if err := w.recover(); err != nil {
		return err
	}
	for _, p := range w.parts() {
		if err := w.fits(p.table()); err != nil {
			return err
		}
	}
	return w.create(at, w.row.capture)
}

// Roll completes the files that it writes, with the summary of the capture so far, and begins others, whose names have a time. What is
// not complete yet goes into the files in which it ends. The summary may be reused after the call.
func (w *Writer) Roll(s *record.Summary, at time.Time) error {
	if err := w.finish(s, nil, true); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return w.next(at)
}

// next begins the files after those that are complete or lost.
func (w *Writer) next(at time.Time) error {
	w.rolls++
	w.byFile = analyze.NewFiles(w.row.of.Memory)
	return w.create(at, key("part", w.row.capture, w.rolls, at.UnixNano()))
}

// Lose abandons the files that it writes, because writing them failed. Until Resume, no row is written. What the complete files say
// about the capture as a whole stays as it is, so that the next files say what came since then.
func (w *Writer) Lose() {
	w.Abandon()
	w.lost, w.before = true, w.complete
}

// Resume begins new files after Lose, with a row in the table gaps for the time of which nothing was written. The summary is that of
// the capture so far, and may be reused after the call.
func (w *Writer) Resume(s *record.Summary, at time.Time) error {
	if err := w.next(at); err != nil {
		return err
	}
	w.lost = false
	w.byTime.Take(s.Last.Or(0)) // these RPCs have no rows in other tables, either
	w.row.connection, w.row.rpc, w.row.role = record.Opt[string]{}, record.Opt[string]{}, w.row.of.role("", "")
	return w.gaps.write(&gap{Kind: gapNotWritten, From: record.SomeIf(w.before.Last.Or(s.First.Or(0)), s.First.Known()), To: s.Last, Packets: record.Some(s.Packets - w.before.Packets)}, &w.row)
}

// Clock takes the time of the latest packet of a capture that goes on. If the clock of the capture was set back, the table rates has
// intervals from there on.
func (w *Writer) Clock(now record.Time) error {
	rows := w.byTime.SetBack(now)
	if rows == nil {
		return nil
	}
	w.byTime.Unattended()
	return writeAll(&w.rates, rows, &row{of: w.row.of, capture: w.row.capture, role: w.row.of.role("", "")})
}

// Lost reports whether rows are not written, because of Lose.
func (w *Writer) Lost() bool { return w.lost }

// create creates the files of all tables.
func (w *Writer) create(at time.Time, key string) error {
	name := fmt.Sprintf("part-%s-%s.parquet", at.UTC().Format("20060102T150405Z"), key)
	for _, p := range w.parts() {
		if err := p.begin(w, name); err != nil {
			w.Abandon()
			return err
		}
	}
	return nil
}

// Name returns the name that the files of the capture have in all tables, with their partition.
func (w *Writer) Name() string {
	return filepath.Join(w.partition, filepath.Base(w.transactions.path()))
}

// table writes one table, whose rows are made from values of type R.
type table[R any] struct {
	name    string
	columns []column[R]
	at      func(*R) record.Time // by which rows are sorted

	final  string // path of the complete file
	now    string // path of the file until it is complete; empty if there is none
	file   *os.File
	writer *parquet.GenericWriter[any]
	sorted []sortable
	texts  texts
	rows   int64
	first  record.Time // of the rows in the file; both are 0 if no row has a time
	last   record.Time
}

// sortable is a row that is not written yet.
type sortable struct {
	at  record.Time
	row parquet.Row
}

func (t *table[R]) table() string     { return t.name }
func (t *table[R]) path() string      { return t.final }
func (t *table[R]) temporary() string { return t.now }

// has reports whether the table has a column.
func (t *table[R]) has(name string) bool {
	return slices.ContainsFunc(t.columns, func(c column[R]) bool { return c.name == name })
}

// begin creates the file of a table, under another name than its own.
func (t *table[R]) begin(w *Writer, name string) error {
	folder := filepath.Join(w.folder, Version, t.name, w.partition)
	t.final = filepath.Join(folder, name)
	if _, err := os.Lstat(t.final); err == nil && !w.replace {
		return &fs.PathError{Op: "create", Path: t.final, Err: fs.ErrExist}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, temporaryBegins+"*"+temporaryEnds) // engines read neither names that begin with a dot nor others than *.parquet
	if err != nil {
		return err
	}
	lock(file) // without a lock, the file stays if the process is killed
	t.file, t.now, t.first, t.last = file, file.Name(), 0, 0
	t.writer = parquet.NewGenericWriter[any](file, schema(t.name, t.columns), parquet.MaxRowsPerRowGroup(w.row.of.rowsOfGroup()), parquet.Compression(&parquet.Zstd),
		parquet.KeyValueMetadata(metadata, Version), parquet.KeyValueMetadata("rdmadump.program", w.row.of.Program),
		parquet.KeyValueMetadata("rdmadump.options", strings.ToValidUTF8(strings.Join(w.row.of.Options, " "), "\ufffd")), parquet.KeyValueMetadata("rdmadump.capture", w.row.capture))
	return nil
}

// metadata is the key under which the files say which version of the schema they have.
const metadata = "rdmadump.schema"

// write writes the row of a value. Without a file, the row is lost.
func (t *table[R]) write(r *R, about *row) error {
	if t.file == nil {
		return nil
	}
	n := len(t.sorted)
	if n == cap(t.sorted) {
		t.sorted = slices.Grow(t.sorted, 1)
	}
	t.sorted = t.sorted[:n+1]
	s := &t.sorted[n]
	s.at, s.row = t.at(r), appendRow(s.row[:0], t.columns, r, about, &t.texts)
	t.rows++
	if s.at != 0 {
		if t.last = max(t.last, s.at); t.first == 0 || s.at < t.first {
			t.first = s.at
		}
	}
	if len(t.sorted) == maxSorted || t.texts.bytes > maxTexts {
		return t.flush()
	}
	return nil
}

// flush writes the rows that are in memory.
func (t *table[R]) flush() error {
	slices.SortStableFunc(t.sorted, func(a, b sortable) int { return cmp.Compare(a.at, b.at) })
	rows := make([]parquet.Row, len(t.sorted))
	for i := range t.sorted {
		rows[i] = t.sorted[i].row
	}
	_, err := t.writer.WriteRows(rows)
	t.sorted, t.texts = t.sorted[:0], texts{}
	return err
}

// complete writes everything that is missing in the file, and closes it.
func (t *table[R]) complete() error {
	if t.first != 0 {
		t.writer.SetKeyValueMetadata("rdmadump.first", t.first.String())
		t.writer.SetKeyValueMetadata("rdmadump.last", t.last.String())
	}
	err := errors.Join(t.flush(), t.writer.Close(), t.file.Chmod(0o644), t.file.Close())
	t.sorted = nil
	return err
}

// prepare gives the file, which is complete, the name that it has until the files of all tables are.
func (t *table[R]) prepare(name string) error {
	to := filepath.Join(filepath.Dir(t.final), name)
	err := rename(t.now, to)
	if err == nil {
		t.now = to
	}
	return err
}

// rename is [os.Rename]; tests make it fail.
var rename = os.Rename

// publish gives the file its name.
func (t *table[R]) publish(replace bool) error {
	if replace {
		return rename(t.now, t.final)
	}
	switch err := os.Link(t.now, t.final); { // unlike Rename, Link never replaces the file of another process
	case err == nil:
		return os.Remove(t.now)
	case errors.Is(err, fs.ErrExist):
		return &fs.PathError{Op: "create", Path: t.final, Err: fs.ErrExist}
	}
	if _, err := os.Lstat(t.final); err == nil { // the file system has no links
		return &fs.PathError{Op: "create", Path: t.final, Err: fs.ErrExist}
	}
	return rename(t.now, t.final)
}

// abandon removes the file, if it has not its name.
func (t *table[R]) abandon() {
	if t.now != "" {
		t.file.Close()
		os.Remove(t.now)
	}
	t.leave()
}

// leave forgets the file.
func (t *table[R]) leave() { t.file, t.now, t.sorted, t.texts = nil, "", nil, texts{} }

// Close completes the tables. Their files get their names when all of them are complete; see recover for what happens if that is
// interrupted.
func (w *Writer) Close() error {
	parts := w.parts()
	for _, p := range parts {
		if err := p.complete(); err != nil {
			w.Abandon()
			return err
		}
	}
	last := parts[len(parts)-1]
	name := readyName(filepath.Base(last.path()), last.temporary())
	held, err := os.Open(last.temporary())
	if err == nil {
		defer held.Close()
		if !lock(held) { // this system cannot rename an open file either
			held.Close()
		}
		err = w.recover() // an older file of this name must not replace the new one later
	}
	for i := 0; err == nil && i < len(parts); i++ {
		err = parts[i].prepare(name)
	}
	if err != nil {
		w.Abandon()
		return err
	}
	for i, p := range parts {
		switch err := p.publish(w.replace); {
		case err != nil && w.replace:
			for _, p := range parts {
				p.leave()
			}
			return &partlyError{err}
		case err != nil:
			w.Abandon()
			for _, published := range parts[:i] {
				os.Remove(published.path())
			}
			return err
		}
	}
	for _, p := range parts {
		p.leave()
	}
	w.complete = w.before
	return nil
}

// partlyError is the error of files that could not get their names although others of the same capture have theirs. It does not match
// errors of files, because nothing is lost.
type partlyError struct{ err error }

func (e *partlyError) Error() string {
	return e.err.Error() + "; some tables have the new files, and others still the old ones: the next run that writes to this partition completes them"
}

// Abandon removes what was written and has not its name.
func (w *Writer) Abandon() {
	for _, p := range slices.Backward(w.parts()) { // without the last, recover completes nothing
		p.abandon()
	}
}

// Rows returns the number of rows that were written so far, by table.
func (w *Writer) Rows() (transactions, operations, connections, findings int64) {
	return w.transactions.rows, w.operations.rows, w.connections.rows, w.findings.rows
}

// Handler returns the handler for the dissector.
func (w *Writer) Handler() dissect.Handler {
	return dissect.Handler{
		Begin:       func(first record.Time) error { w.byTime.Begin(first); return nil },
		Transaction: w.transaction, Connection: w.connection, Finding: w.finding, Operation: w.operation, Task: w.task,
		Signal: func(x record.Signal) error { return w.rate(x.Time, func() error { return w.byTime.Signal(x) }) },
	}
}

// about returns what the rows about a connection say in addition to their records.
func (w *Writer) about(connection int, known record.Opt[record.Hex64], client, server record.Opt[string]) *row {
	if place, known := w.places[connection]; known {
		w.row.role = string(place)
	} else {
		w.row.role = w.row.of.role(client.Or(""), server.Or(""))
	}
	text, certain := w.connectionKey(connection, known)
	w.row.connection, w.row.certain = record.Some(text), certain
	w.row.rpc, w.row.transaction, w.row.operation = record.Opt[string]{}, record.Opt[int64]{}, record.Opt[int64]{}
	return &w.row
}

// place notes where the packets of a connection were captured, as far as the capture itself says or refutes it.
func (w *Writer) place(connection int, at record.Place) {
	if !w.row.of.Both && w.places[connection] != at {
		w.places[connection] = at
	}
}

// transaction adds a transaction.
func (w *Writer) transaction(r *record.Transaction) error {
	if shares, known := r.Shares.Get(); known {
		w.place(r.Connection, shares.Point)
	}
	about := w.about(r.Connection, r.Key, r.Client, r.Server)
	about.rpc = w.rpcKey(r) // it counts all uses of the XID
	w.diagnosis.Transaction(r)
	if w.lost || w.Wants != nil && !w.Wants(r) {
		return nil
	}
	w.byFile.Add(r)
	if err := w.rate(r.End(), func() error { return w.byTime.Add(r) }); err != nil {
		return err
	}
	if err := w.transactions.write(r, about); err != nil {
		return err
	}
	about.transaction = record.Some(r.ID)
	return w.stalls(r.Waits)
}

// rate adds something of a time to the intervals of the table rates. If the capture has too many of them, because it lasts for weeks
// or because a clock was set, those before this time are written, and it is not known how many Calls were in flight.
func (w *Writer) rate(at record.Time, add func() error) error {
	if w.lost || add() == nil {
		return nil
	}
	w.byTime.Unattended()
	if err := writeAll(&w.rates, w.byTime.Take(at), &row{of: w.row.of, capture: w.row.capture, role: w.row.of.role("", "")}); err != nil {
		return err
	}
	return add()
}

// stalls adds the stalls of a transaction or of an RDMA operation.
func (w *Writer) stalls(list []record.Wait) error {
	for i := range list {
		if err := w.waits.write(&list[i], &w.row); err != nil {
			return err
		}
	}
	return nil
}

// operation adds an RDMA operation.
func (w *Writer) operation(r *record.RDMAOperation) error {
	w.diagnosis.Operation(r)
	about := w.about(r.Connection, r.Key, r.Client, r.Server)
	if err := w.operations.write(r, about); err != nil || r.Transaction.Known() {
		return err
	}
	about.operation = record.Some(r.ID)
	return w.stalls(r.Waits)
}

// task adds a task.
func (w *Writer) task(r *record.Task) error {
	w.diagnosis.Task(r)
	return w.tasks.write(r, w.about(r.Connection, record.Opt[record.Hex64]{}, r.Client, r.Server))
}

// connection adds a connection, and what the capture lacks of it.
func (w *Writer) connection(r *record.Connection) error {
	if p := &r.Path.Point; p.At.Known() || p.Refuted.Known() {
		w.place(r.ID, p.At.Or(record.PlaceUnknown))
	}
	about := w.about(r.ID, r.Key, r.Client.Address, r.Server.Address)
	for _, d := range []record.Direction{record.Forward, record.Backward} {
		delete(w.used, user{r.ID, d})
	}
	delete(w.places, r.ID)
	w.diagnosis.Connection(r)
	w.byTime.Expect(r)
	if w.byTime.Connection(r) != nil { // as in rate
		w.byTime.Unattended()
	}
	id, first, last := record.Some(r.ID), record.Some(r.First), record.Some(r.Last)
	lacks := []struct {
		is bool
		gap
	}{
		{r.NotCaptured > 0, gap{Kind: gapPackets, From: first, To: last, Packets: record.Some(r.NotCaptured)}},
		{r.Handshake == "missed" && r.Transport != "UDP", gap{Kind: gapBeginning, To: first}},
		{!r.Ended.Known() && r.Transport != "UDP", gap{Kind: gapEnd, From: last}},
	}
	for i := range lacks {
		if lacks[i].Connection = id; lacks[i].is {
			if err := w.gaps.write(&lacks[i].gap, about); err != nil {
				return err
			}
		}
	}
	return w.connections.write(r, about)
}

// finding adds a finding.
func (w *Writer) finding(r *record.Finding) error {
	w.diagnosis.Finding(r)
	id, known := r.Connection.Get()
	about := w.about(id, r.Key, r.Client, r.Server)
	if !known {
		about.connection, about.role = record.Opt[string]{}, w.row.of.role(r.Client.Or(""), r.Server.Or(""))
	}
	return w.findings.write(r, about)
}

// Finish adds what is known at the end of the capture: its summary, its problems, its capture points, and the rows that sum up transactions.
// Network is what happened to packets between the capture points.
func (w *Writer) Finish(s *record.Summary, points []*record.Point, network []*record.Network) error {
	w.diagnosis.Network(network)
	return w.finish(s, points, false)
}

// finish does so. If the capture goes on, its latest interval is left for later.
func (w *Writer) finish(s *record.Summary, points []*record.Point, live bool) error {
	w.row.connection, w.row.rpc, w.row.role = record.Opt[string]{}, record.Opt[string]{}, w.row.of.role("", "")
	var rates []*analyze.Rate
	if last := s.Last.Or(0); live {
		rates = w.byTime.Take(last)
	} else if list, err := w.byTime.Rows(last); err == nil {
		rates = list
	} else { // as in rate
		rates = w.byTime.Take(max(last, w.byTime.Latest()) + record.Time(every))
	}
	s = w.before.take(s, live)
	diagnosis := w.diagnosis
	w.diagnosis = new(diagnose.Collector)
	for _, p := range diagnosis.Problems(s) {
		about := &row{of: w.row.of, capture: w.row.capture, role: w.row.of.role(p.Client.Or(""), p.Server.Or(""))}
		if err := w.problems.write(p, about); err != nil {
			return err
		}
	}
	return errors.Join(writeAll(&w.rates, rates, &w.row), writeAll(&w.files, w.byFile.Rows(), &w.row), writeAll(&w.points, points, &w.row),
		writeAll(&w.gaps, gapsOf(s), &w.row), w.captures.write(s, &w.row))
}

// writeAll writes rows.
func writeAll[R any](t *table[R], list []*R, about *row) error {
	for _, r := range list {
		if err := t.write(r, about); err != nil {
			return err
		}
	}
	return nil
}

// gapsOf returns what a whole capture lacks.
func gapsOf(s *record.Summary) (list []*gap) {
	add := func(is bool, g gap) {
		if is {
			list = append(list, &g)
		}
	}
	evicted := int64(0)
	for _, n := range s.Evicted {
		evicted += n
	}
	add(s.CaptureDrops > 0, gap{Kind: gapDrops, From: s.First, To: s.Last, Packets: record.Some(int64(s.CaptureDrops))})
	add(s.Truncated > 0, gap{Kind: gapTruncated, From: s.First, To: s.Last, Packets: record.Some(s.Truncated)})
	add(evicted > 0, gap{Kind: gapRemembered, From: s.First, To: s.Last})
	add(s.InputError.Known() || s.EndsInPacket.Known(), gap{Kind: gapBroken, From: s.Last})
	add(s.OnlyFrom() != "", gap{Kind: gapDirection, From: s.First, To: s.Last, Address: s.Directions})
	for range s.MissingFiles {
		add(true, gap{Kind: gapFiles})
	}
	for i := range s.Absences {
		a := &s.Absences[i]
		add(true, gap{Kind: gapAbsence, From: record.Some(a.From), To: record.Some(a.To), Packets: a.Packets, Address: record.Some(a.Address)})
	}
	for _, u := range s.Unrecorded {
		add(true, gap{Kind: gapUnrecorded, From: record.Some(u.From), To: record.Some(u.To)})
	}
	for i := range s.Silences {
		h := &s.Silences[i]
		add(true, gap{Kind: gapSilence, From: record.Some(h.From), To: h.To, Packets: record.Some(h.Packets), Address: record.Some(h.Address)})
	}
	return list
}
