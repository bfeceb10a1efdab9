package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// sink is where the records of a view go: through the filter, the order and the
// jq program, to standard output.
type sink struct {
	o             *options
	w             *bufio.Writer
	theme         *render.Theme
	width, height int // of the terminal, 0 for none
	text          *render.Text
	packets       *render.Packets
	filter        *query.Filter
	jq            *gojq.Code
	columns       *render.Columns
	fields        query.Fields
	sortPath      string
	descending    bool
	held          []held
	buffer        []byte
	written       int64
	summary       *record.Summary
	errors        int64 // findings that are errors
	err           error // of writing, filtering, jq
}

// held is a record that waits for its place in the order.
type held struct {
	key    any
	record any // a copy
	show   func(any) error
}

func newSink(o *options, v view) (*sink, error) {
	s := &sink{o: o, w: bufio.NewWriterSize(o.stdout, 1<<16), fields: v.fields}
	s.theme = render.NewTheme(o.stdout, o.coloured(o.stdout))
	s.width, s.height = terminalSize(o.stdout)
	s.text = render.NewText(s.w, s.theme, s.width)
	s.packets = render.NewPackets(s.w, s.theme, s.width)
	s.packets.Tree, s.packets.Bytes = o.tree, o.bytes
	var err error
	if o.filter != "" {
		if s.filter, err = query.Compile(o.filter, v.fields); err != nil {
			return nil, err
		}
	}
	if o.jq != "" {
		o.output = "json"
		program, err := gojq.Parse(o.jq)
		if err == nil {
			s.jq, err = gojq.Compile(program)
		}
		if err != nil {
			return nil, fmt.Errorf("--jq %s: %w", o.jq, err)
		}
	}
	if len(o.fields) > 0 {
		if o.output == "json" {
			return nil, fmt.Errorf("-e goes with text; of JSON, --jq picks fields")
		}
		if s.columns, err = render.NewColumns(o.fields, v.fields); err != nil {
			return nil, fmt.Errorf("-e: %w", err)
		}
	}
	order := o.sort
	if order == "" && o.top > 0 {
		order = v.sort
	}
	if order != "" {
		name, descending := strings.CutPrefix(order, "-")
		s.descending = descending
		if s.sortPath, err = query.Resolve(name, v.fields); err != nil {
			return nil, fmt.Errorf("--sort %s: %w", order, err)
		}
		if v.fields == query.Packets {
			return nil, fmt.Errorf("--sort and --top do not go with packets, which stay in the order of the capture")
		}
	}
	return s, nil
}

// begin notes the time of the capture's first packet.
func (s *sink) begin(at record.Time) {
	s.o.begin(at)
	s.text.Start(at)
	s.packets.Start(at)
}

// wants says whether --conn and --xid let a record pass.
func (s *sink) wants(conn record.Opt[int], xid record.Opt[record.Hex32]) bool {
	return s.o.wants(conn, xid)
}

// asked says whether --conn, --xid, --from and --to let a transaction pass.
func (s *sink) asked(r *record.Transaction) bool {
	return s.wants(record.Some(r.Connection), record.Some(r.XID)) && s.within(r.Start())
}

// within says whether --from and --to let a time pass.
func (s *sink) within(t record.Time) bool { return s.o.overlaps(t, t) }

// matches says whether -Y lets a record pass.
func (s *sink) matches(record any) bool {
	if s.filter == nil {
		return true
	}
	hit, err := s.filter.Match(record)
	if err != nil {
		s.fail(err)
	}
	return hit
}

// show shows a record, or holds it to be put in order; false when the filter
// does not let it pass.
func (s *sink) show(record any, text func(any) error) bool {
	if s.done() || !s.matches(record) {
		return false
	}
	if s.sortPath != "" {
		s.hold(record, text)
		return true
	}
	s.emit(record, text)
	return true
}

// emit writes a record.
func (s *sink) emit(record any, text func(any) error) {
	s.written++
	switch {
	case s.o.output == "json":
		s.record(record)
	case s.columns != nil:
		s.buffer = s.columns.Append(s.buffer[:0], record)
		_, err := s.w.Write(s.buffer)
		s.fail(err)
	default:
		s.fail(text(record))
	}
}

// record writes a record as JSON.
func (s *sink) record(r any) {
	if p, ok := r.(*record.Packet); ok {
		s.buffer = render.AppendPacketJSON(s.buffer[:0], p, s.o.tree)
	} else {
		s.buffer = render.AppendJSON(s.buffer[:0], r)
	}
	s.line(s.buffer)
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
	results := s.jq.Run(input)
	for {
		v, more := results.Next()
		if !more {
			return
		}
		if err, failed := v.(error); failed {
			s.fail(fmt.Errorf("--jq %s: %w", s.o.jq, err))
			return
		}
		out, err := gojq.Marshal(v)
		s.fail(err)
		s.w.Write(out)
		s.fail(s.w.WriteByte('\n'))
	}
}

// clone is a copy of a record that stays good when its handler has returned.
func clone(r any) any {
	switch r := r.(type) {
	case *record.Transaction:
		return r.Clone()
	case *record.Connection:
		return r.Clone()
	case *record.Finding:
		return r.Clone()
	}
	return r // one that was made for us
}

// hold keeps a record until the end. With --top only the best are kept.
func (s *sink) hold(record any, text func(any) error) {
	h := held{key: s.fields.Get(record, s.sortPath), record: clone(record), show: text}
	if n := len(s.held); s.o.top > 0 && n >= 2*s.o.top { // now and then, let go of those that have no chance
		s.order()
	}
	s.held = append(s.held, h)
}

// order puts what is held in order; those that are alike stay as they came, and
// null comes last either way.
func (s *sink) order() {
	slices.SortStableFunc(s.held, func(a, b held) int {
		if s.descending && a.key != nil && b.key != nil {
			return query.Order(b.key, a.key)
		}
		return query.Order(a.key, b.key)
	})
	if s.o.top > 0 && len(s.held) > s.o.top {
		clear(s.held[s.o.top:])
		s.held = s.held[:s.o.top]
	}
}

// release shows what was held, in order.
func (s *sink) release() {
	s.order()
	for _, h := range s.held {
		if s.done() {
			return
		}
		s.emit(h.record, h.show)
	}
}

func (s *sink) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// done says that no more records are wanted.
func (s *sink) done() bool {
	return s.err != nil || s.o.count > 0 && s.written >= s.o.count
}

// flush lets out what waits in buffers: somebody is watching.
func (s *sink) flush() {
	s.fail(s.text.Flush())
	s.fail(s.w.Flush())
}
