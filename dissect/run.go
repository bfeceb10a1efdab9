package dissect

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// tickEvery is how often [Handler.Tick] is called.
const tickEvery = 25 * time.Millisecond

// Run reads a source until it ends or breaks, ctx ends, or a handler returns an
// error. It hands out everything, also what is still open at the end, and returns
// the summary; the Dissector is not to be used any more then.
//
// The error is nil at the source's end. It is the source's own when that broke,
// a [capture.BrokenError], and ctx's cause when that ended: what was read before
// has been handed out all the same, and of a broken source the summary says so.
// Any other is what a handler returned, as it is; nothing was handed out since,
// and the summary is of what was read until then.
//
// Handlers are called by the goroutine that calls Run. The source is read, and its
// frames are taken apart, by another one, and [Options.Ahead] allows for a third;
// they have ended when Run returns.
func (d *Dissector) Run(ctx context.Context, source capture.Source) (*record.Summary, error) {
	cores := runtime.GOMAXPROCS(0)
	reading, cancel := context.WithCancel(ctx)
	r := newReader(reading, source, cores > 1, d.shown())
	defer r.wait()
	defer cancel()
	if o := &d.options; o.Ahead && cores > 1 && !o.Live && !o.Rebuild && !o.Decode && !o.Tree && d.handler.Carried == nil && d.handler.Stream == nil {
		return d.runAhead(ctx, r, source)
	}
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		var b *batch
		select {
		case b = <-r.ready:
		case <-ctx.Done():
			return d.end(source, context.Cause(ctx))
		case <-ticker.C:
			if err := d.tick(len(r.ready) == 0); err != nil {
				return d.Summary(), err
			}
			continue
		}
		d.read = time.Now()
		if err := d.batch(b, r.decodes, &d.number); err != nil {
			return d.Summary(), err
		}
		switch {
		case b.err != nil && ctx.Err() != nil:
			return d.end(source, context.Cause(ctx))
		case b.err != nil:
			return d.end(source, b.err)
		}
		r.free <- b
	}
}

// batch takes the frames of a batch; number is kept at that of the one at hand.
func (d *Dissector) batch(b *batch, decoded bool, number *int64) error {
	for i := range b.Frames {
		l := &d.layers
		*number = b.Frames[i].Number
		switch {
		case !decoded:
			l.decode(&b.Frames[i], &d.link)
		case i == len(b.layers): // taking it apart failed
			panic(b.panicked)
		default:
			l = &b.layers[i]
		}
		if err := d.take(&b.Frames[i], l); err != nil {
			return err
		}
	}
	if b.panicked != nil {
		panic(b.panicked)
	}
	return nil
}

// end hands out what is left when a source has ended for a reason.
func (d *Dissector) end(source capture.Source, reason error) (*record.Summary, error) {
	s, err := d.Finish()
	if err != nil {
		return s, err
	}
	if source, ok := source.(interface{ Dropped() uint64 }); ok {
		s.CaptureDrops = source.Dropped()
	}
	if reason == io.EOF {
		return s, nil
	}
	if broken := (*capture.BrokenError)(nil); errors.As(reason, &broken) {
		s.InputError = record.Some(reason.Error())
	}
	return s, reason
}

// tick lets others do something, and on a live capture, of which nothing waits,
// goes on with the time.
func (d *Dissector) tick(idle bool) error {
	if d.options.Live && idle && d.summary.Last.Known() {
		if err := d.Idle(d.clock.last + record.Time(time.Since(d.read))); err != nil {
			return err
		}
	}
	if d.handler.Tick == nil {
		return nil
	}
	return d.handler.Tick()
}

// layers is what a frame says without regard to others.
type layers struct {
	carries  link.Carries
	offset   int           // of the transport in the frame
	length   int           // bytes of the packet on the wire
	paused   uint8         // priorities that the frame pauses
	err      error         // of decoding packet
	datagram rdma.Datagram // what it is to the tracker; of TCP, where it goes and what was captured
	packet   rocev2.Packet // of RoCE and InfiniBand
	link     *link.Decoder // all of its headers, for who shows them; else that of some frame
}

func (l *layers) decode(f *capture.Frame, k *link.Decoder) {
	l.link, l.carries = k, k.Decode(f)
	l.offset, l.length, l.paused = k.Offset, k.WireLength, k.Paused
	d := &l.datagram
	d.Raw, d.Length, d.At = k.Transport, k.Length, stamp(f)
	d.Src, d.Dst = rdma.Address{IP: k.Src, LID: k.SrcLID}, rdma.Address{IP: k.Dst, LID: k.DstLID}
	switch l.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		d.Packet, d.Transport = &l.packet, transportName(l.carries)
		if l.err = l.packet.Decode(d.Raw, d.Length); l.err == nil {
			d.ICRC, d.Congested = k.CheckICRC(&l.packet), k.Congested()
			d.Identification = k.Identification()
			d.Ready()
		}
	}
}

// stamp is where a frame stands.
func stamp(f *capture.Frame) record.Stamp {
	return record.Stamp{Time: record.Time(f.Time), Packet: f.Number}
}

// batch is a batch of frames on its way from the reader.
type batch struct {
	capture.Batch
	layers   []layers       // of the frames, where the reader decodes them
	links    []link.Decoder // one for each that is shown, else one for all
	icrc     rocev2.ICRC
	err      error // what came instead of frames
	panicked *capture.Panic
}

// fill reads the next frames and, where the reader is to, takes them apart.
func (b *batch) fill(ctx context.Context, source capture.Source, r *reader) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *capture.Panic:
			b.panicked = v
		default:
			b.panicked = &capture.Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	b.layers = b.layers[:0]
	if b.err = source.ReadBatch(ctx, &b.Batch); b.err != nil || !r.decodes {
		return
	}
	if cap(b.layers) < len(b.Frames) {
		b.layers = make([]layers, 0, cap(b.Frames))
		b.links = make([]link.Decoder, 1)
		if r.shows {
			b.links = make([]link.Decoder, cap(b.Frames))
		}
		for i := range b.links {
			b.links[i].ICRC = &b.icrc
		}
	}
	for i := range b.Frames {
		b.layers[:i+1][i].decode(&b.Frames[i], &b.links[min(i, len(b.links)-1)])
		b.layers = b.layers[:i+1]
	}
}

// inFlight is how many batches there are: one that is read, one that waits, one
// that is dissected, and as many of which the handlers are told.
const inFlight = 3 + parcels

// reader fills batches in a goroutine of its own, until one holds an error.
type reader struct {
	ready, free chan *batch
	done        chan struct{}
	decodes     bool // it takes frames apart, too
	shows       bool // somebody is shown all of their headers
}

func newReader(ctx context.Context, source capture.Source, decodes, shows bool) *reader {
	r := &reader{ready: make(chan *batch, inFlight), free: make(chan *batch, inFlight), done: make(chan struct{}), decodes: decodes, shows: shows}
	for range inFlight {
		r.free <- new(batch)
	}
	go func() {
		defer close(r.done)
		for {
			select {
			case <-ctx.Done():
				return
			case b := <-r.free:
				b.fill(ctx, source, r)
				r.ready <- b
				if b.err != nil || b.panicked != nil {
					return
				}
			}
		}
	}()
	return r
}

// wait waits until the source is not read any more.
func (r *reader) wait() { <-r.done }
