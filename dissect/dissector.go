// Package dissect turns frames into records: connections, transactions,
// findings, packets, and a summary. See [Dissector].
//
// The way through it: dissector.go takes frames; flow.go and cm.go find and follow
// connections; rc.go makes operations of the packets of a reliable connection,
// tcp.go and rdmap.go of an iWARP stream; message.go tells Calls from Replies;
// transaction.go, memory.go and payload.go put transactions together, finish.go
// their records; check.go and rules.go say what was wrong; details.go describes
// packets; record.go is what comes out.
package dissect

import (
	"io"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Handler takes the records, in the order in which they are complete. Fields
// may be nil. A record is valid until the function returns.
type Handler struct {
	Packet      func(*record.Packet)
	Connection  func(*record.Connection)
	Transaction func(*record.Transaction)
	Finding     func(*record.Finding)
	// Payload gets the rebuilt Payload streams of a transaction, just before
	// its record; either is nil when it cannot be rebuilt whole. It needs
	// [Options.Rebuild].
	Payload func(t *record.Transaction, call, reply []byte)
}

// Options say what to keep.
type Options struct {
	// Rebuild keeps all data that moves, to rebuild Calls and Replies whole.
	Rebuild bool
	// Linger is how long a completed transaction waits for the acknowledgement
	// of its Reply, or for the NAK that takes it back; 0 is a second.
	Linger Time
}

func (o *Options) linger() Time {
	if o.Linger == 0 {
		return lingerReply
	}
	return o.Linger
}

// Dissector reads frames, one after the other, and hands out records. It is not
// safe for concurrent use. Its memory depends on what is open: connections,
// transactions without Reply, gaps; each is bounded.
type Dissector struct {
	handler Handler
	options Options
	summary record.Summary

	link    link.Decoder
	packet  rocev2.Packet
	late    rocev2.Packet // a held packet, decoded again
	cm      cmMessages
	header  rpcrdma.Header
	rpc     oncrpc.Header
	longRPC oncrpc.Header // of a Long Call
	sent    message

	compound nfs.Compound
	scratch  []byte

	flows   map[flowKey]*flow
	recent  [8]*flow // by hash of the key: spares most look-ups
	comms   map[commID]*conn
	conns   int // handed out as ids
	retired int // records handed out
	live    []*conn
	closed  queue[*conn] // waiting for stragglers, oldest first

	ending     queue[*txn] // waiting for their acknowledgement, oldest first
	unanswered map[unansweredKey]int64
	free       []*txn
	freeReads  []*read
	buffers    [][]byte
	closing    []*txn
	lastTxn    int64
	kept       int

	now       stamp
	details   details
	converter converter

	mpaFrame   iwarp.MPA
	ddpSegment iwarp.Segment
	unmarked   []byte // an FPDU without its markers
}

// New returns a Dissector that hands its records to h.
func New(h Handler, o Options) *Dissector {
	return &Dissector{
		handler: h, options: o,
		summary: record.Summary{
			Type: "summary", Transactions: map[record.Status]int64{}, Findings: map[record.Severity]int64{}, Limits: map[string]int64{},
		},
		flows: map[flowKey]*flow{}, comms: map[commID]*conn{}, unanswered: map[unansweredKey]int64{},
	}
}

// How long, in capture time, a record waits for what may still belong to it.
const (
	lingerReply = Time(1e9) // for the acknowledgement of the Reply, or its NAK
	lingerClose = Time(5e9) // for stragglers of a closed connection
	maxEnding   = 1 << 12   // transactions that wait at once
)

// Run reads a source to its end and finishes. It returns what broke the input,
// nil when nothing did.
func (d *Dissector) Run(s capture.Source) error {
	var f capture.Frame
	for {
		if err := s.Next(&f); err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		d.Frame(&f)
	}
}

// Frame takes the next frame. It copies what it keeps.
func (d *Dissector) Frame(f *capture.Frame) {
	s := &d.summary
	s.Packets++
	s.Bytes += int64(f.Length)
	d.now = stamp{Time(f.Time), f.Number}
	if !s.First.Known() {
		s.First = record.Some(d.now.time)
	}
	s.Last = record.Some(d.now.time)
	if len(f.Data) < f.Length {
		s.Cut++
	}
	d.frame(f)
	d.expire(d.now.time)
}

// expire hands out what has waited long enough.
func (d *Dissector) expire(now Time) {
	for d.ending.len() > 0 {
		t := d.ending.first()
		if !t.emitted && t.ended.time+d.options.linger() > now && d.ending.len() < maxEnding {
			break
		}
		d.ending.pop()
		d.emit(t)
		d.release(t)
	}
	for d.closed.len() > 0 && d.closed.first().closedAt+lingerClose < now {
		d.retire(d.closed.first())
		d.closed.pop()
	}
}

// Idle hands out what has waited long enough when no packet comes; now is the
// time on the clock that the capture uses.
func (d *Dissector) Idle(now Time) { d.expire(now) }

// Finish hands out everything that is still open and returns the summary. The
// Dissector is not to be used any more.
func (d *Dissector) Finish() *record.Summary {
	for _, c := range slices.Clone(d.live) {
		if !c.closed {
			d.flush(c, d.now)
		}
	}
	for ; d.ending.len() > 0; d.ending.pop() {
		d.emit(d.ending.first())
		d.release(d.ending.first())
	}
	for len(d.live) > 0 {
		d.retire(d.live[0])
	}
	d.summary.Connections = d.retired
	return &d.summary
}

// Summary is the summary so far.
func (d *Dissector) Summary() *record.Summary {
	d.summary.Connections = d.retired + len(d.live)
	return &d.summary
}

// frame takes one frame through link and transport.
func (d *Dissector) frame(f *capture.Frame) {
	s := &d.summary
	icrc := rocev2.ICRCUnchecked
	var c *conn
	var err error
	carries := d.link.Decode(f)
	switch carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
		s.RDMA++
		if err = d.packet.Decode(d.link.Transport, d.link.Length); err != nil {
			s.Malformed++
			break
		}
		if icrc = d.link.CheckICRC(&d.packet); icrc == rocev2.ICRCBad {
			s.ICRCBad++
		}
		c = d.transport(carries, icrc)
	case link.CarriesTCP:
		if c = d.tcp(d.now); c != nil {
			s.RDMA++
		} else {
			s.Other++
		}
	case link.CarriesFragment:
		s.Fragments++
	case link.CarriesMalformed:
		s.Malformed++
	case link.CarriesUnknownLink:
		s.UnknownLink++
	default:
		s.Other++
	}
	if d.handler.Packet != nil {
		d.handler.Packet(&d.describe(f, carries, icrc, c, err).Packet)
		d.details.notes = d.details.notes[:0]
	}
}
