package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/itchyny/gojq"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// sink is where the records of one run go: through the filter, the order and the
// jq program, to standard output.
type sink struct {
	times
	w             *bufio.Writer
	theme         *render.Theme
	width, height int // of the terminal, 0 for none
	text          *render.Text
	packets       *render.Packets
	sorter        *sorter // nil for records as they come
	show          func(any) error
	kind          reflect.Type // of the records that wait in sorter
	buffer        []byte
	written       int64
	seen, hits    int64           // records that -Y looked at, transactions that stats sums up
	near          []query.Near    // to the XIDs of --xid
	summary       *record.Summary // once all is read
	shown         string          // the inputs, as they were named
	typed         string          // and as a shell takes them
	nodes         []record.Node   // of a packet, without what was decoded for -Y
	errors        int64           // findings that are errors
	err           error           // of writing, filtering, jq
	ctx           context.Context // of the run
}

// errEnough ends reading when no more records are wanted.
var errEnough = errors.New("enough")

func newSink(set *settings, stdout, notes io.Writer, shown string) *sink {
	s := &sink{times: times{settings: set}, shown: shown, w: bufio.NewWriterSize(stdout, 1<<16)}
	s.theme, s.width, s.height = set.look.of(stdout, notes, coloured(set.color, stdout))
	s.text = render.NewText(s.w, s.theme, s.width)
	s.packets = render.NewPackets(s.w, s.theme, s.width)
	s.packets.Tree, s.packets.Bytes = set.tree, set.bytes
	for _, xid := range set.xids {
		s.near = append(s.near, query.Near{Wanted: xid.String()})
	}
	if set.order.path != "" {
		s.sorter = newSorter(set.order)
	}
	return s
}

// begin notes the time of the capture's first packet.
func (s *sink) begin(at record.Time) error {
	s.text.Start(at)
	s.packets.Start(at)
	return s.times.begin(at)
}

// asked says whether --conn, --xid, --from and --to let a transaction pass.
func (s *sink) asked(r *record.Transaction) bool {
	for i := range s.near {
		s.near[i].See(r.XID.String())
	}
	return s.wants(record.Some(r.Connection), record.Some(r.XID)) && s.within(r.Start())
}

// sums says whether -Y lets a transaction be summed up.
func (s *sink) sums(r *record.Transaction) bool {
	if s.summed == nil {
		return true
	}
	hit := s.match(s.summed, r)
	if hit {
		s.hits++
	}
	return hit
}

// matches says whether -Y lets a record of the view pass.
func (s *sink) matches(record any) bool { return s.filter == nil || s.match(s.filter, record) }

func (s *sink) match(f *query.Filter, record any) bool {
	s.seen++
	hit, err := f.Match(record)
	s.fail(err)
	return hit
}

// take shows a record through text, or holds it to be put in order; false when
// the filter does not let it pass.
func (s *sink) take(record any, text func(any) error) bool {
	if s.done() || !s.matches(record) {
		return false
	}
	if s.sorter == nil {
		s.emit(record, text)
		return true
	}
	key := query.SortKey(s.view.fields, record, s.sorter.path)
	if s.sorter.hopeless(key) {
		return true
	}
	switch {
	case s.columns != nil:
		s.buffer = s.columns.Append(s.buffer[:0], record)
	case s.ladder: // what it draws is gone with the record
		s.buffer = s.drawLadder(record)
	default: // tables are drawn of the records, once they are in order
		s.show, s.kind = text, reflect.TypeOf(record).Elem()
		if kept, bytes := cloned(record); kept != nil && !s.json {
			s.fail(s.sorter.keep(key, kept, bytes))
			return true
		}
		s.buffer = render.AppendJSON(s.buffer[:0], record)
	}
	s.fail(s.sorter.add(key, s.buffer))
	return true
}

// cloned is a copy of a record that has one, nil of others, and how many bytes that
// takes.
func cloned(r any) (kept any, bytes int) {
	switch r := r.(type) {
	case *record.Connection:
		return r.Clone(), r.Bytes()
	case *record.Transaction:
		if r.RPC == nil {
			return r.Clone(), r.Bytes()
		}
	}
	return nil, 0
}

// drawLadder is the ladder of a transaction.
func (s *sink) drawLadder(r any) []byte {
	var b bytes.Buffer
	s.fail(render.Ladder(&b, s.theme, s.width, r.(*record.Transaction)))
	return b.Bytes()
}

// emit writes a record.
func (s *sink) emit(record any, text func(any) error) {
	s.written++
	switch {
	case s.json:
		s.record(record)
	case s.columns != nil:
		_, err := s.w.Write(s.columns.Append(s.room(), record))
		s.fail(err)
	default:
		s.fail(text(record))
	}
}

// record writes a record as JSON.
func (s *sink) record(r any) {
	if p, ok := r.(*record.Packet); ok {
		if s.decode && !s.tree && !s.rpc {
			s.nodes = render.WithoutDecoded(s.nodes, p.Nodes)
			p.Nodes, s.nodes = s.nodes, p.Nodes
			defer func() { p.Nodes, s.nodes = s.nodes, p.Nodes }()
		}
		s.line(render.AppendPacketJSON(s.room(), p, s.tree))
	} else {
		s.line(render.AppendJSON(s.room(), r))
	}
}

// lineRoom is more than most lines take.
const lineRoom = 4 << 10

// room is where a line can be put together, so that writing it need not copy it.
func (s *sink) room() []byte {
	if s.w.Available() < lineRoom {
		s.fail(s.w.Flush())
	}
	return s.w.AvailableBuffer()
}

// line writes a line of JSON, or what the jq program makes of it.
func (s *sink) line(line []byte) {
	if s.jq == nil {
		_, err := s.w.Write(line)
		s.fail(err)
		return
	}
	var input any
	if err := json.Unmarshal(line, &input); err != nil {
		s.fail(err)
		return
	}
	results := s.jq.RunWithContext(s.ctx, input)
	for s.err == nil { // a program may have results without end
		v, more := results.Next()
		if !more || s.ctx.Err() != nil {
			return
		}
		if err, failed := v.(error); failed {
			s.fail(fmt.Errorf("--jq %s: %w", s.program, err))
			return
		}
		out, err := gojq.Marshal(v)
		s.fail(err)
		s.w.Write(out)
		s.fail(s.w.WriteByte('\n'))
	}
}

// release shows what was held, in order.
func (s *sink) release() {
	if s.sorter == nil {
		return
	}
	sorter := s.sorter
	s.sorter = nil
	defer sorter.close()
	err := sorter.each(func(text []byte, kept any) error {
		switch {
		case s.done():
		case s.json:
			s.written++
			s.line(text)
		case s.columns != nil || s.ladder:
			s.written++
			_, err := s.w.Write(text)
			s.fail(err)
		default:
			if kept == nil {
				kept = reflect.New(s.kind).Interface()
				s.fail(json.Unmarshal(text, kept))
			}
			s.emit(kept, s.show)
		}
		return s.status()
	})
	if err != errEnough {
		s.fail(err)
	}
}

func (s *sink) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// done says that no more records are wanted.
func (s *sink) done() bool {
	return s.err != nil || s.count > 0 && s.written >= s.count
}

// status is what a handler returns: what failed, or that it is enough.
func (s *sink) status() error {
	if s.err == nil && s.done() {
		return errEnough
	}
	return s.err
}

// flush lets out what waits in buffers: somebody is watching.
func (s *sink) flush() error {
	s.fail(s.text.Flush())
	s.fail(s.w.Flush())
	return s.err
}
