package show

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// noMatch returns the message that no record matched -Y, with similar values, or "" if one
// did.
func (s *sink) noMatch() string {
	f := s.Filter
	if f == nil {
		f = s.Summed
	}
	if f == nil || s.written > 0 || s.hits > 0 {
		return ""
	}
	text := fmt.Sprintf("0 of %s match", record.Plural(s.seen, "record"))
	for _, hint := range f.Near() {
		text += "; " + hint
	}
	if s.seen > 0 && slices.Contains(f.Paths(), "operations") && s.View.SumsRPCs() {
		text += "; operations are those of NFSv4, and operation is the one that an RPC of any version was sent for"
	}
	return text
}

// noXID returns the message that no record has an XID of --xid, with similar XIDs.
func (s *sink) noXID() string {
	var wanted []string
	for _, xid := range s.XIDs {
		wanted = append(wanted, xid.String())
	}
	text := "no RPC with XID " + command.List(wanted, "or")
	if values := s.nearXIDs(func(record.Hex32) bool { return true }); len(values) > 0 {
		text += "; similar XIDs: " + strings.Join(values, ", ")
	}
	return text
}

// startXIDs forgets the XIDs of a capture that are similar to those of --xid, before another capture is read.
func (s *sink) startXIDs() {
	s.near = nil
	for _, xid := range s.XIDs {
		s.near = append(s.near, query.Near{Wanted: xid.String()})
	}
}

// nearXIDs returns the XIDs of the capture that are similar to those of --xid that are wanted.
func (s *sink) nearXIDs(wanted func(xid record.Hex32) bool) (values []string) {
	for i, xid := range s.XIDs {
		if wanted(xid) {
			values = append(values, s.near[i].Values()...)
		}
	}
	return values
}

// sink receives the records of one run. It passes them through the filter, the sorter and
// the jq program, and writes them to standard output.
type sink struct {
	flags.Times
	input.Names
	w             *bufio.Writer
	theme         *render.Theme
	width, height int // of the terminal; 0 if there is none
	text          *render.Text
	packets       *render.Packets
	sorter        *sorter   // nil if records are not sorted
	numbered      *numbered // nil if records are shown as they come, or sorted by something else than their numbers
	show          func(any) error
	redraw        func(w io.Writer, f *refresh) error // draws the table of a live view so far; nil if there is none
	kind          reflect.Type                        // of the records in sorter
	buffer        []byte
	written       int64
	offered       int64                     // records that take was called with
	seen, hits    int64                     // records that -Y was applied to; transactions that stats sums up
	more          []string                  // arguments of the command that shows more than this screen; nil for none
	moreIs        string                    // what it shows; empty if the command says it
	worst         int64                     // what the record that more is about has most of, such as its latency
	hint          string                    // about the records that were shown, for standard error
	unpaired      int64                     // packets of --conn that records do not assign to the connection
	near          []query.Near              // XIDs similar to those of --xid
	stopped       bool                      // reading ended because there were enough records
	summary       *record.Summary           // nil until the whole capture is read
	nodes         []record.Node             // of a packet, without those that were decoded only for -Y
	found         map[record.Severity]int64 // findings that check reports; nil in other views
	errors        int64                     // findings that --fail-on counts
	err           error                     // first error of writing, filtering or jq
	ctx           context.Context           // of the run
	interrupted   error                     // of a jq program after a signal; nil if the signal is how the view ends
	joined        *points.Source            // nil if there is one capture point
}

// errEnough ends reading when -c or --top has enough records.
var errEnough = errors.New("enough")

// newSink returns a sink that writes to stdout.
func newSink(set *flags.Settings, stdout io.Writer, captures input.Names) *sink {
	s := &sink{Times: flags.Times{Settings: set}, Names: captures, w: bufio.NewWriterSize(set.Look.Safe(stdout), 1<<16)}
	s.theme, s.width, s.height = set.Look.Of(stdout)
	if o := set.Order; o.Path != "" && (o.Descending || o.Path != "id") {
		s.theme = s.theme.SortedBy(set.View.Fields.Of(), o.Path, !o.Descending)
	}
	s.text = render.NewText(s.w, s.theme, s.width)
	if !set.ShowsFiles(s.width) {
		s.text.WithoutFiles()
	}
	s.packets = render.NewPackets(s.w, s.theme, s.width)
	s.packets.Tree, s.packets.Bytes = set.Tree, set.Bytes
	s.packets.Points(set.AtPoints)
	s.startXIDs()
	s.w.WriteString(set.Heading) // an error comes again with the first record
	if set.Order.Path != "" {
		s.sorter = newSorter(set.Order)
	}
	return s
}

// begin sets the time of the capture's first packet.
func (s *sink) begin(at record.Time) error {
	s.text.Start(at)
	s.packets.Start(at)
	if err := s.Times.Begin(at); err != nil {
		s.fail(&input.BeginError{Err: err})
	}
	return s.err
}

// asked reports whether --conn, --xid, --from and --to select a transaction.
func (s *sink) asked(r *record.Transaction) bool {
	for i := range s.near {
		s.near[i].See(r.XID.String())
	}
	return s.Wants(record.Some(r.Connection), record.Some(r.XID)) && s.Within(r.Start())
}

// sums reports whether -Y selects a transaction to be summed up.
func (s *sink) sums(r *record.Transaction) bool {
	if s.Summed == nil {
		return true
	}
	return s.matchSummed(r)
}

// matchSummed reports whether -Y selects a record to be summed up.
func (s *sink) matchSummed(record any) bool {
	hit := s.match(s.Summed, record)
	if hit {
		s.hits++
	}
	return hit
}

// matches reports whether -Y selects a record of the view.
func (s *sink) matches(record any) bool { return s.Filter == nil || s.match(s.Filter, record) }

// match reports whether a filter selects a record.
func (s *sink) match(f *query.Filter, record any) bool {
	s.seen++
	return f.Match(record)
}

// take shows a record, as text with the function text, or keeps it to be sorted. It returns
// false if the filter does not select the record.
func (s *sink) take(record any, text func(any) error) bool {
	if s.done() {
		return false
	}
	if s.offered++; !s.matches(record) {
		s.pass(numberOf(record))
		return false
	}
	s.lead(record)
	var key any
	switch {
	case s.numbered != nil && numberOf(record) > s.numbered.next:
		key = int(numberOf(record))
	case s.sorter == nil:
		s.emit(record, text)
		s.pass(numberOf(record))
		return true
	default:
		if key = query.SortKey(s.View.Fields, record, s.sorter.Path); s.sorter.hopeless(key) {
			return true
		}
	}
	l := line{key: sortKey(key)}
	switch {
	case s.Columns != nil:
		s.buffer = s.Columns.Append(s.buffer[:0], record)
	case s.Ladder: // Decoded arguments are good only until the handler returns.
		s.buffer = s.drawLadder(record)
	case s.keepsRows(record):
		var err error
		s.buffer, err = s.text.Keep(s.buffer[:0], func() error { return text(s.named(record)) })
		s.fail(err)
	default: // The columns of a table depend on all records, so tables are drawn after sorting.
		s.show, s.kind = text, reflect.TypeOf(record).Elem()
		if kept, bytes := cloned(record); kept != nil && !s.JSON {
			l.record, l.bytes = kept, bytes
			break
		}
		s.buffer = render.AppendJSON(s.buffer[:0], record)
	}
	if l.record == nil {
		l.text, l.bytes = slices.Clone(s.buffer), len(s.buffer)
	}
	if s.sorter != nil {
		s.fail(s.sorter.take(l))
	} else {
		s.hold(l)
	}
	return true
}

// keepsRows reports whether the drawn row of a record is sorted instead of the record: rows take less memory, and there are
// many of these records.
func (s *sink) keepsRows(r any) bool {
	switch r.(type) {
	case *record.Transaction, *record.RDMAOperation, *record.Task:
		return !s.JSON && s.text.CanKeep()
	}
	return false
}

// cloned returns a copy of a record and the number of bytes of the copy. It returns nil for
// records that cannot be copied completely.
func cloned(r any) (kept any, bytes int) {
	switch r := r.(type) {
	case *record.Connection:
		return r.Clone(), r.CloneBytes()
	case *analyze.Stats: // The table keeps it anyway, and JSON does not have the latencies of its histogram.
		return r, 0
	case *analyze.Rate:
		return r, 0
	case *analyze.Comparison:
		return r, 0
	case *analyze.OperationStats:
		return r, 0
	case *record.RDMAOperation:
		return r.Clone(), r.CloneBytes()
	case *analyze.File:
		return r, 0
	case *record.Task:
		return r.Clone(), r.CloneBytes()
	case *record.Transaction:
		if r.RPC == nil {
			return r.Clone(), r.CloneBytes()
		}
	}
	return nil, 0
}

// drawLadder returns the ladder diagram of a transaction.
func (s *sink) drawLadder(r any) []byte {
	var b bytes.Buffer
	s.fail(render.Ladder(&b, s.theme, s.width, s.named(r).(*record.Transaction), s.All))
	return b.Bytes()
}

// emit writes a record in the format of the output.
func (s *sink) emit(record any, text func(any) error) {
	s.written++
	switch {
	case s.JSON:
		s.record(record)
	case s.Columns != nil:
		_, err := s.w.Write(s.Columns.Append(s.space(), record))
		s.fail(err)
	default:
		s.fail(text(s.named(record)))
	}
}

// named returns a record for a text: the names of --hosts replace addresses. Packets have both.
func (s *sink) named(r any) any {
	if _, is := r.(*record.Packet); is {
		return r
	}
	return s.Hosts.Named(r)
}

// record writes a record as JSON.
func (s *sink) record(r any) {
	if p, ok := r.(*record.Packet); ok {
		if s.Decode && !s.Tree && !s.RPC {
			s.nodes = render.WithoutDecoded(s.nodes, p.Nodes)
			p.Nodes, s.nodes = s.nodes, p.Nodes
			defer func() { p.Nodes, s.nodes = s.nodes, p.Nodes }()
		}
		s.line(render.AppendPacketJSON(s.space(), p, s.Tree))
	} else {
		s.line(render.AppendJSON(s.space(), r))
	}
}

// lineBytes is longer than most lines.
const lineBytes = 4 << 10

// space returns an empty slice in the buffer of the output. A line that is appended to it
// is written without being copied.
func (s *sink) space() []byte {
	if s.w.Available() < lineBytes {
		s.fail(s.w.Flush())
	}
	return s.w.AvailableBuffer()
}

// line writes a line of JSON, or the results of the jq program for it.
func (s *sink) line(line []byte) {
	if s.JQ == nil {
		_, err := s.w.Write(line)
		s.fail(err)
		return
	}
	var input any
	if err := json.Unmarshal(line, &input); err != nil {
		s.fail(err)
		return
	}
	results := s.JQ.RunWithContext(s.ctx, input)
	for s.err == nil { // A program may return results forever.
		v, more := results.Next()
		if s.ctx.Err() != nil { // A single step may take seconds, but no further one is begun.
			s.fail(s.interrupted)
			return
		}
		if !more {
			return
		}
		if err, failed := v.(error); failed {
			s.fail(fmt.Errorf("--jq %s: %w", s.Program, err))
			return
		}
		out, err := gojq.Marshal(v)
		s.fail(err)
		s.w.Write(out)
		s.fail(s.w.WriteByte('\n'))
	}
}

// release shows the sorted records.
func (s *sink) release() {
	if s.numbered != nil {
		s.sortNumbered()
	}
	if s.sorter == nil {
		return
	}
	sorter := s.sorter
	s.sorter = nil
	defer sorter.close()
	err := sorter.each(func(text []byte, kept any) error {
		s.put(text, kept)
		return s.status()
	})
	if err != errEnough {
		s.fail(err)
	}
}

// put shows a record that take kept.
func (s *sink) put(text []byte, kept any) {
	switch {
	case s.done():
	case s.JSON:
		s.written++
		s.line(text)
	case s.Columns != nil || s.Ladder:
		s.written++
		_, err := s.w.Write(text)
		s.fail(err)
	case s.show == nil:
		s.written++
		s.fail(s.text.Row(text))
	default:
		if kept == nil {
			kept = reflect.New(s.kind).Interface()
			s.fail(json.Unmarshal(text, kept))
		}
		s.emit(kept, s.show)
	}
}

// fail keeps the first error.
func (s *sink) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// done reports whether no more records are to be shown.
func (s *sink) done() bool {
	return s.err != nil || s.Count > 0 && s.written >= s.Count
}

// status returns the error that a handler returns: the first error, or errEnough if no more
// records are to be shown.
func (s *sink) status() error {
	if s.err == nil && s.done() {
		return errEnough
	}
	return s.err
}

// flush writes buffered output, because a person is watching live traffic.
func (s *sink) flush() error {
	s.fail(s.text.Flush())
	s.fail(s.w.Flush())
	return s.err
}
