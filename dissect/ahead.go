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
	"github.com/rdmadump/rdmadump/link"
)

// Handlers may be most of the work. With [Options.Ahead] the dissector puts what it
// would hand out into parcels, in order, and Run hands it out of these, while
// the next batch is dissected.

// parcels is how many there are: one that is filled, one that waits, and one that
// is handed out.
const parcels = 3

// A parcel is full when its records take so many bytes: little beside what the
// budget may be, since parcels are none of it.
const fullBytes = 1 << 18

// parcel is records on their way to the handlers.
type parcel struct {
	order        []letter
	sights       []sight
	transactions []record.Transaction
	connections  []*record.Connection
	findings     []*record.Finding
	began        record.Time
	shelf        shelf
	frames       *batch // that nobody needs any more when all is handed out

	last     bool // nothing follows it
	panicked *capture.Panic
	number   int64 // of the frame that panicked
}

// letter is one record of a parcel: the next of its kind.
type letter uint8

const (
	toBegin letter = iota
	toPacket
	toTransaction
	toConnection
	toFinding
)

// shelf is what the lists of a parcel's records stand in.
type shelf struct {
	words     []string
	messages  []record.Message
	reads     []record.ReadChunk
	writes    []record.WriteChunk
	readSegs  []record.Segment
	writeSegs []record.WriteSegment
	handles   []record.Hex32
	events    []record.Event
	waits     []record.Wait
	fpdus     []iwarp.Noted
	guarded   []describe.Guarded
	tcp       []link.TCP
	bytes     []byte
	size      int // bytes of all that, and of the records
}

// place copies a list to where it stays.
func place[T any](s *shelf, to *[]T, list []T) []T {
	if len(list) == 0 {
		return list
	}
	s.size += len(list) * int(unsafe.Sizeof(list[0]))
	n := len(*to)
	*to = append(*to, list...)
	return (*to)[n:len(*to):len(*to)]
}

// one is place of a single value.
func one[T any](s *shelf, to *[]T, v *T) *T {
	if v == nil {
		return nil
	}
	s.size += int(unsafe.Sizeof(*v))
	*to = append(*to, *v)
	return &(*to)[len(*to)-1]
}

// transaction makes a copy of a transaction stand alone.
func (s *shelf) transaction(r *record.Transaction) {
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
	r.Timeline, r.Waits = place(s, &s.events, r.Timeline), place(s, &s.waits, r.Waits)
}

func (s *shelf) writeChunk(c *record.WriteChunk) {
	c.Segments = place(s, &s.writeSegs, c.Segments)
}

// sight makes a copy of a sight stand alone; the frame stays where it is.
func (s *shelf) sight(p *sight) {
	in := &p.input
	if in.Transport == rdma.IWARP {
		in.TCP = one(s, &s.tcp, in.TCP)
	}
	in.Guarded, in.FPDUs = place(s, &s.guarded, in.Guarded), place(s, &s.fpdus, in.FPDUs)
	for i := range in.FPDUs {
		f := &in.FPDUs[i]
		f.Head = place(s, &s.bytes, f.Head)
	}
}

// clear empties a parcel, and lets go of room that is seldom needed.
func (p *parcel) clear() {
	s := p.shelf
	*p = parcel{
		order: p.order[:0], sights: p.sights[:0], transactions: p.transactions[:0], connections: p.connections[:0], findings: p.findings[:0],
	}
	if s.size > 2*fullBytes {
		return
	}
	p.shelf = shelf{
		words: s.words[:0], messages: s.messages[:0], reads: s.reads[:0], writes: s.writes[:0], readSegs: s.readSegs[:0], writeSegs: s.writeSegs[:0],
		handles: s.handles[:0], events: s.events[:0], waits: s.waits[:0], fpdus: s.fpdus[:0], guarded: s.guarded[:0], tcp: s.tcp[:0], bytes: s.bytes[:0],
	}
}

// ahead is what a dissector that goes ahead fills its parcels with.
type ahead struct {
	parcel      *parcel
	ready, free chan *parcel
	stop        chan struct{} // is closed when a handler has failed
	done        chan struct{} // is closed when nothing is dissected any more
	number      int64         // of the frame that is being dissected

	summary *record.Summary
	err     error // that ended reading
}

// errStopped is what a handler has failed, to the dissector.
var errStopped = errors.New("stopped")

// put adds a record to the parcel at hand; it copies what changes.
func (a *ahead) put(r any) error {
	p := a.parcel
	switch r := r.(type) {
	case *sight:
		p.shelf.size += int(unsafe.Sizeof(*r))
		p.sights = append(p.sights, *r)
		p.shelf.sight(&p.sights[len(p.sights)-1])
		p.order = append(p.order, toPacket)
	case *record.Transaction:
		p.shelf.size += int(unsafe.Sizeof(*r))
		p.transactions = append(p.transactions, *r)
		p.shelf.transaction(&p.transactions[len(p.transactions)-1])
		p.order = append(p.order, toTransaction)
	case *record.Connection:
		p.shelf.size += int(unsafe.Sizeof(*r))
		p.connections = append(p.connections, r.Clone())
		p.order = append(p.order, toConnection)
	case *record.Finding:
		p.shelf.size += int(unsafe.Sizeof(*r)) + len(r.Message)
		p.findings = append(p.findings, r)
		p.order = append(p.order, toFinding)
	case record.Time:
		p.began = r
		p.order = append(p.order, toBegin)
	}
	if p.shelf.size < fullBytes {
		return nil
	}
	return a.send(nil)
}

// send hands the parcel over, with the batch that is done, and takes an empty one.
func (a *ahead) send(b *batch) error {
	a.parcel.frames = b
	select {
	case a.ready <- a.parcel:
	case <-a.stop:
		return errStopped
	}
	select {
	case a.parcel = <-a.free:
		return nil
	case <-a.stop:
		return errStopped
	}
}

// runAhead is Run with a goroutine that dissects.
func (d *Dissector) runAhead(ctx context.Context, r *reader, source capture.Source) (*record.Summary, error) {
	a := &ahead{
		parcel: new(parcel), ready: make(chan *parcel, parcels), free: make(chan *parcel, parcels),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for range parcels - 1 {
		a.free <- new(parcel)
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
	defer end() // also of a handler that panics
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

// dissectAll fills parcels until the source ends, ctx does, or a handler fails.
func (d *Dissector) dissectAll(ctx context.Context, r *reader, source capture.Source) {
	a := d.ahead
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *capture.Panic:
			a.parcel.panicked = v
		default:
			a.parcel.panicked = &capture.Panic{Value: v, Stack: debug.Stack()}
		}
		a.parcel.last, a.parcel.number = true, a.number
		select {
		case a.ready <- a.parcel:
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

// hand hands out what is in a parcel.
func (d *Dissector) hand(p *parcel) (err error) {
	sights, transactions, connections, findings := p.sights, p.transactions, p.connections, p.findings
	for _, to := range p.order {
		switch to {
		case toBegin:
			err = d.handler.Begin(p.began)
		case toPacket:
			s := &sights[0]
			sights = sights[1:]
			d.number = s.input.Frame.Number
			err = d.packet(s)
		case toTransaction:
			r := &transactions[0]
			transactions = transactions[1:]
			d.number = r.Completed().Packet
			err = d.handler.Transaction(r)
		case toConnection:
			r := connections[0]
			connections = connections[1:]
			d.number = r.Completed().Packet
			err = d.handler.Connection(r)
		case toFinding:
			r := findings[0]
			findings = findings[1:]
			d.number = r.Completed().Packet
			err = d.handler.Finding(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
