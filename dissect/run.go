package dissect

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// tickEvery is the interval between two calls of [Handler.Tick].
const tickEvery = 25 * time.Millisecond

// Run reads a source until it ends or fails, ctx ends, or a handler returns an error. It passes
// all records to the handlers, also those that are still incomplete at the end, and returns the
// summary. The Dissector must not be used afterwards.
//
// The error is nil at the end of the source. It is a [capture.BrokenError] if reading the
// source failed, and the cause of ctx if ctx ended; in both cases the handlers have got all
// records of the frames that were read, and the summary of a source that failed has the error.
// Any other error is that of a handler, unchanged; no handler was called after it, and the
// summary counts the frames that were read until then.
//
// Handlers are called by the goroutine that calls Run. Another goroutine reads the source and
// decodes the headers of its frames, and [Options.Ahead] allows a third one. They have ended
// when Run returns.
func (d *Dissector) Run(ctx context.Context, source capture.Source) (*record.Summary, error) {
	cores := runtime.GOMAXPROCS(0)
	reading, cancel := context.WithCancel(ctx)
	o := &d.options
	if counts, is := source.(interface{ Dropped() uint64 }); is && o.Live {
		d.drops = counts.Dropped
	}
	ahead := o.Ahead && cores > 1 && !o.Live && !o.Rebuild && !o.Decode && !o.Tree && d.handler.Observer == nil && d.handler.Why == nil
	r := newReader(reading, source, reader{decodes: cores > 1, shows: d.shown(), ahead: ahead, tunnels: o.Tunnels})
	defer r.wait()
	defer cancel()
	if ahead {
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

// batch dissects the frames of a batch, and sets number to that of the current frame.
func (d *Dissector) batch(b *batch, decoded bool, number *int64) error {
	for i := range b.Frames {
		l := &d.layers
		*number = b.Frames[i].Number
		switch {
		case !decoded:
			l.decode(&b.Frames[i], &d.link)
		case i == len(b.layers): // Decoding this frame failed.
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

// end completes all open records after a source has ended. Reason is the error with which it
// ended.
func (d *Dissector) end(source capture.Source, reason error) (*record.Summary, error) {
	s, err := d.Finish()
	if err != nil {
		return s, err
	}
	if source, ok := source.(interface{ Dropped() uint64 }); ok {
		s.CaptureDrops = source.Dropped()
	}
	if source, ok := source.(interface{ MissingFiles() []capture.MissingFiles }); ok {
		for _, m := range source.MissingFiles() {
			s.MissingFiles = append(s.MissingFiles, record.MissingFiles{After: filepath.Base(m.After), Before: filepath.Base(m.Before), Count: int64(m.Count)})
		}
	}
	if source, ok := source.(interface{ LeftOut() []string }); ok {
		s.LeftOut = append(s.LeftOut, source.LeftOut()...)
	}
	if reason == io.EOF {
		return s, nil
	}
	if broken := (*capture.BrokenError)(nil); errors.As(reason, &broken) {
		s.InputError = record.Some(reason.Error())
		s.EndsInPacket = record.SomeIf(broken.Offset, errors.Is(broken.Err, io.ErrUnexpectedEOF))
		s.EndsInFile = record.SomeIf(broken.Name, s.EndsInPacket.Known() && broken.Frames < s.Packets)
	}
	return s, reason
}

// tick calls the handler's Tick. If the capture is live and idle, because no frames wait, it
// advances the time.
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

// layers holds the decoded headers of a frame, which do not depend on other frames.
type layers struct {
	carries          link.Carries
	offset           int           // offset of the transport header in the frame, in bytes
	length           int           // length of the packet on the wire, in bytes
	pause            path.Pause    // what the frame pauses; of all other frames, only the port that sent it
	protocol         string        // of a frame that carries no transport
	protocolNumber   uint16        // of a protocol whose name is not known
	truncated        bool          // a tunnel has only the beginning of the packet
	srcPort, dstPort uint16        // TCP and UDP
	plausible        bool          // UDP: the datagram may carry RPC
	badUDP           bool          // UDP: the receiver drops the datagram because of its checksum
	err              error         // error of decoding packet
	datagram         rdma.Datagram // input of the tracker; for TCP, only the addresses and the captured bytes
	packet           rocev2.Packet // for RoCE and InfiniBand
	link             *link.Decoder // headers of this frame if packets are shown, else of any frame
}

// decode decodes the headers of a frame, with k for the headers below the transport.
func (l *layers) decode(f *capture.Frame, k *link.Decoder) {
	l.link, l.carries = k, k.Decode(f)
	l.offset, l.length, l.pause.Port = k.Offset, k.WireLength, k.SrcMAC
	if l.pause.Enabled = k.PauseEnabled; l.pause.Enabled != 0 {
		l.pause.Quanta = k.PauseQuanta
	}
	l.protocol, l.protocolNumber, l.truncated, l.srcPort, l.dstPort = k.Protocol, k.Number, k.Truncated(), k.SrcPort, k.DstPort
	d := &l.datagram
	d.Raw, d.Length, d.At = k.Transport, k.Length, stamp(f)
	if f.Seen != nil || d.Path.Joined {
		d.Path = pathOf(f)
	}
	d.Src, d.Dst = rdma.Address{IP: k.Src, LID: k.SrcLID}, rdma.Address{IP: k.Dst, LID: k.DstLID}
	d.Identification = k.Identification()
	switch l.carries {
	case link.CarriesUDP:
		l.badUDP, d.Class = false, k.TrafficClass()
		if _, l.plausible = oncrpc.Plausible(d.Raw, d.Length, len(d.Raw) < d.Length); l.plausible {
			right, known := k.UDPChecksum()
			l.badUDP = known && !right
		}
	case link.CarriesTCP:
		d.Identification, d.Class = k.Identification(), k.TrafficClass()
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		d.Packet, d.Transport = &l.packet, transportName(l.carries)
		if l.err = l.packet.Decode(d.Raw, d.Length); l.err == nil {
			// The ICRC of RoCEv2 does not cover the byte with FECN, which switches do not change: they mark the IP header (IBTA vol. 1 annex A17).
			d.ICRC, d.Congested = k.CheckICRC(&l.packet), k.Congested() || l.packet.BTH.FECN && l.carries != link.CarriesRoCEv2
			d.Class = k.TrafficClass()
			if f.Seen != nil && f.Seen.Unchecked {
				d.ICRC = rocev2.ICRCUnchecked
			}
			d.Ready()
		}
	}
}

// stamp returns the time and the number of a frame.
func stamp(f *capture.Frame) record.Stamp {
	if f.Seen != nil {
		return record.Stamp{Time: record.Time(f.Time), Packet: record.NumberAt(f.Seen.Point, f.Number)}
	}
	return record.Stamp{Time: record.Time(f.Time), Packet: f.Number}
}

// batch is a batch of frames on its way from the reader.
type batch struct {
	capture.Batch
	layers   []layers       // headers of the frames, if the reader decodes them
	links    []link.Decoder // one for each frame if packets are shown, else one for all
	icrc     rocev2.ICRC
	err      error // error with which reading frames ended
	panicked *capture.Panic
}

// fill reads the next frames and decodes their headers, if the reader does that.
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
			b.links[i].ICRC, b.links[i].Tunnels = &b.icrc, r.tunnels
		}
	}
	for i := range b.Frames {
		b.layers[:i+1][i].decode(&b.Frames[i], &b.links[min(i, len(b.links)-1)])
		b.layers = b.layers[:i+1]
	}
}

// inFlight is the number of batches of frames: one that is being read, one that waits, and one that
// is being dissected. If it dissects ahead of the handlers, there are also those whose records are in batches for them.
const inFlight = 3

// reader fills batches in a goroutine of its own, until one holds an error.
type reader struct {
	ready, free chan *batch
	done        chan struct{}
	decodes     bool // it decodes the headers of frames, too
	shows       bool // a handler gets packets, so the headers of each frame are kept
	ahead       bool // frames are dissected ahead of the handlers
	tunnels     []Tunnel
}

// newReader starts to read a source, as the other fields of r say.
func newReader(ctx context.Context, source capture.Source, r reader) *reader {
	n := inFlight
	if r.ahead {
		n += recordBatches
	}
	r.ready, r.free, r.done = make(chan *batch, n), make(chan *batch, n), make(chan struct{})
	for range n {
		r.free <- new(batch)
	}
	go func(r *reader) {
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
	}(&r)
	return &r
}

// wait waits until the goroutine that reads the source has ended.
func (r *reader) wait() { <-r.done }
