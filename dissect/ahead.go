package dissect

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/internal/describe"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
)

// Handlers may take most of the time. With [Options.Ahead] a goroutine of its own dissects
// frames and collects the records in batches, in order, while Run passes the records of an
// earlier batch to the handlers.

// recordBatches is the number of batches: one that is being filled, one that waits, and one
// whose records the handlers get.
const recordBatches = 3

// fullBytes is the size of the records, in bytes, with which a batch is full. It is small
// compared with the memory limit, which does not include batches.
const fullBytes = 1 << 18

// recordBatch is a batch of records for the handlers.
type recordBatch struct {
	order        []any // pointers to the records, or the time of the first frame
	packets      []packetRef
	transactions []record.Transaction
	operations   []record.RDMAOperation
	signals      []record.Signal
	lists        arena  // contents of the lists in the records
	frames       *batch // frames that are free when the handlers have all records

	last     bool // no batch follows
	panicked *capture.Panic
	number   int64 // number of the frame whose dissection panicked
}

// arena contains the elements of the lists in the records of a batch.
type arena struct {
	words     []string
	messages  []record.Message
	reads     []record.ReadChunk
	writes    []record.WriteChunk
	readSegs  []record.Segment
	writeSegs []record.WriteSegment
	handles   []record.Hex32
	events    []record.Event
	waits     []record.Wait
	proofs    []record.Proof
	fpdus     []iwarp.Noted
	guarded   []describe.Guarded
	records   []describe.Record
	tcp       []link.TCP
	bytes     []byte
	files     []record.FileUse
	size      int // size of all elements and of the records, in bytes
}

// place copies a list into an arena and returns the copy.
func place[T any](s *arena, to *[]T, list []T) []T {
	if len(list) == 0 {
		return list
	}
	s.size += len(list) * int(unsafe.Sizeof(list[0]))
	n := len(*to)
	*to = append(*to, list...)
	return (*to)[n:len(*to):len(*to)]
}

// one copies a single value into an arena and returns a pointer to the copy.
func one[T any](s *arena, to *[]T, v *T) *T {
	if v == nil {
		return nil
	}
	s.size += int(unsafe.Sizeof(*v))
	*to = append(*to, *v)
	return &(*to)[len(*to)-1]
}

// transaction copies everything that a transaction refers to into the arena.
func (s *arena) transaction(r *record.Transaction) {
	r.Operations, r.Findings = place(s, &s.words, r.Operations), place(s, &s.words, r.Findings)
	r.Call, r.Reply = one(s, &s.messages, r.Call), one(s, &s.messages, r.Reply)
	r.ReadChunks, r.WriteChunks = place(s, &s.reads, r.ReadChunks), place(s, &s.writes, r.WriteChunks)
	for i := range r.ReadChunks {
		c := &r.ReadChunks[i]
		c.Segments = place(s, &s.readSegs, c.Segments)
	}
	for i := range r.WriteChunks {
		s.writeChunk(&r.WriteChunks[i])
	}
	if r.ReplyChunk = one(s, &s.writes, r.ReplyChunk); r.ReplyChunk != nil {
		s.writeChunk(r.ReplyChunk)
	}
	r.NotInvalidated = place(s, &s.handles, r.NotInvalidated)
	r.FileUses = place(s, &s.files, r.FileUses)
	r.Timeline, r.Waits = place(s, &s.events, r.Timeline), place(s, &s.waits, r.Waits)
	if v, known := r.Shares.Get(); known {
		v.Proofs = place(s, &s.proofs, v.Proofs)
		r.Shares = record.Some(v)
	}
}

// writeChunk copies the segments of a chunk into the arena.
func (s *arena) writeChunk(c *record.WriteChunk) {
	c.Segments = place(s, &s.writeSegs, c.Segments)
}

// packet copies everything that a packetRef refers to into the arena, except for the frame.
func (s *arena) packet(p *packetRef) {
	in := &p.input
	if in.Transport == rdma.IWARP || in.Transport == rdma.TCPTransport {
		in.TCP = one(s, &s.tcp, in.TCP)
	}
	in.Guarded, in.FPDUs, in.Records = place(s, &s.guarded, in.Guarded), place(s, &s.fpdus, in.FPDUs), place(s, &s.records, in.Records)
	for i := range in.FPDUs {
		f := &in.FPDUs[i]
		f.Head = place(s, &s.bytes, f.Head)
	}
}

// clear empties a batch. It frees an arena that is much larger than usual.
func (p *recordBatch) clear() {
	s := p.lists
	clear(p.order) // they keep memory
	*p = recordBatch{order: p.order[:0], packets: p.packets[:0], transactions: p.transactions[:0], operations: p.operations[:0], signals: p.signals[:0]}
	if s.size > 2*fullBytes {
		return
	}
	p.lists = arena{
		words: s.words[:0], messages: s.messages[:0], reads: s.reads[:0], writes: s.writes[:0], readSegs: s.readSegs[:0], writeSegs: s.writeSegs[:0],
		handles: s.handles[:0], events: s.events[:0], waits: s.waits[:0], proofs: s.proofs[:0], fpdus: s.fpdus[:0], guarded: s.guarded[:0], tcp: s.tcp[:0], bytes: s.bytes[:0], files: s.files[:0], records: s.records[:0],
	}
}

// ahead is the state that the dissecting goroutine and Run share.
type ahead struct {
	current     *recordBatch // the batch that is being filled
	ready, free chan *recordBatch
	stop        chan struct{} // closed when a handler has failed
	done        chan struct{} // closed when the dissecting goroutine has ended
	number      int64         // number of the frame that is being dissected

	summary *record.Summary
	err     error // the error that ended reading
}

// errStopped ends the dissecting goroutine when a handler has failed.
var errStopped = errors.New("stopped")

// keep copies a record into a list of the batch, and returns the copy. A copy stays where it is if its list grows.
func keep[T any](p *recordBatch, to *[]T, r *T) *T {
	kept := one(&p.lists, to, r)
	p.order = append(p.order, kept)
	return kept
}

// put adds a record to the current batch. It copies the parts of the record that the
// dissector will change.
func (a *ahead) put(r any) error {
	p := a.current
	switch r := r.(type) {
	case *packetRef:
		p.lists.packet(keep(p, &p.packets, r))
	case *record.Transaction:
		p.lists.transaction(keep(p, &p.transactions, r))
	case *record.RDMAOperation:
		o := keep(p, &p.operations, r)
		o.Waits = place(&p.lists, &p.lists.waits, o.Waits)
	case *record.Connection:
		p.lists.size += int(unsafe.Sizeof(*r))
		p.order = append(p.order, r.Clone())
	case *record.Finding:
		p.lists.size += int(unsafe.Sizeof(*r)) + len(r.Message)
		p.order = append(p.order, r)
	case *record.Task:
		p.lists.size += r.CloneBytes()
		p.order = append(p.order, r) // it does not change any more
	case record.Time:
		p.order = append(p.order, r)
	}
	return a.sendFull()
}

// signal adds a packet that shows congestion to the current batch.
func (a *ahead) signal(s record.Signal) error {
	keep(a.current, &a.current.signals, &s)
	return a.sendFull()
}

// sendFull passes the current batch to Run if it is full.
func (a *ahead) sendFull() error {
	if a.current.lists.size < fullBytes {
		return nil
	}
	return a.send(nil)
}

// send passes the current batch to Run, with a batch of frames that is dissected completely,
// and takes an empty one.
func (a *ahead) send(b *batch) error {
	a.current.frames = b
	select {
	case a.ready <- a.current:
	case <-a.stop:
		return errStopped
	}
	select {
	case a.current = <-a.free:
		return nil
	case <-a.stop:
		return errStopped
	}
}

// runAhead does the work of Run with a separate goroutine that dissects.
func (d *Dissector) runAhead(ctx context.Context, r *reader, source capture.Source) (*record.Summary, error) {
	a := &ahead{
		current: new(recordBatch), ready: make(chan *recordBatch, recordBatches), free: make(chan *recordBatch, recordBatches),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range recordBatches - 1 {
		a.free <- new(recordBatch)
	}
	d.ahead = a
	go func() {
		defer close(a.done)
		d.dissectAll(ctx, r, source)
	}()
	end := sync.OnceFunc(func() {
		close(a.stop)
		<-a.done
	})
	defer end() // also if a handler panics
	failed := func(err error) (*record.Summary, error) {
		end()
		return d.Summary(), err
	}
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := d.tick(false); err != nil {
				return failed(err)
			}
		case p := <-a.ready:
			if err := d.hand(p); err != nil {
				return failed(err)
			}
			if p.last {
				<-a.done
				if p.panicked != nil {
					d.number = p.number
					panic(p.panicked)
				}
				return a.summary, a.err
			}
			if p.frames != nil {
				r.free <- p.frames
			}
			p.clear()
			a.free <- p
		}
	}
}

// dissectAll fills batches until the source or ctx ends, or a handler fails.
func (d *Dissector) dissectAll(ctx context.Context, r *reader, source capture.Source) {
	a := d.ahead
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *capture.Panic:
			a.current.panicked = v
		default:
			a.current.panicked = &capture.Panic{Value: v, Stack: debug.Stack()}
		}
		a.current.last, a.current.number = true, a.number
		select {
		case a.ready <- a.current:
		case <-a.stop:
		}
	}()
	for {
		select {
		case b := <-r.ready:
			if d.batch(b, r.decodes, &a.number) != nil {
				return
			}
			if b.err != nil {
				reason := b.err
				if ctx.Err() != nil {
					reason = context.Cause(ctx)
				}
				a.summary, a.err = d.end(source, reason)
				return
			}
			if d.err = a.send(b); d.err != nil {
				return
			}
		case <-ctx.Done():
			a.summary, a.err = d.end(source, context.Cause(ctx))
			return
		case <-a.stop:
			return
		}
	}
}

// hand passes the records of a batch to the handlers.
func (d *Dissector) hand(p *recordBatch) (err error) {
	for _, r := range p.order {
		switch r := r.(type) {
		case record.Time:
			err = d.handler.Begin(r)
		case *packetRef:
			d.number = r.input.Frame.Number
			err = d.packet(r)
		case *record.Transaction:
			d.number = r.Completed().Packet
			err = d.handler.Transaction(r)
		case *record.Connection:
			d.number = r.Completed().Packet
			err = d.handler.Connection(r)
		case *record.Finding:
			d.number = r.Completed().Packet
			err = d.handler.Finding(r)
		case *record.RDMAOperation:
			d.number = r.Completed().Packet
			err = d.handler.Operation(r)
		case *record.Task:
			d.number = r.Completed().Packet
			err = d.handler.Task(r)
		case *record.Signal:
			err = d.handler.Signal(*r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
