package trace

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Perfetto's format: a series of TracePackets in the encoding of Protocol Buffers. Slices, instants
// and counter values are TrackEvents on tracks that TrackDescriptors describe.
// See perfetto.dev/docs/reference/synthetic-track-event.

// The numbers of the fields that are written, by message.
const (
	tracePacket = 1 // of the file

	packetClockSnapshot   = 6
	packetTimestamp       = 8
	packetSequence        = 10
	packetTrackEvent      = 11
	packetInternedData    = 12
	packetSequenceFlags   = 13
	packetTrackDescriptor = 60

	snapshotClock  = 1
	clockID        = 1
	clockTimestamp = 2

	trackUUID        = 1
	trackName        = 2
	trackProcess     = 3
	trackParent      = 5
	trackCounter     = 8
	trackOrdering    = 11
	trackRank        = 12
	trackDescription = 14

	processPID  = 1
	processName = 6

	counterUnit     = 3
	counterShareKey = 7

	eventCategory     = 3
	eventAnnotation   = 4
	eventType         = 9
	eventName         = 10
	eventTrack        = 11
	eventLongCategory = 22
	eventLongName     = 23
	eventValue        = 30
	eventFlow         = 47
	eventFlowEnd      = 48
	eventCorrelation  = 52

	annotationName     = 1
	annotationInt      = 4
	annotationString   = 6
	annotationLongName = 10

	internedCategory   = 1
	internedName       = 2
	internedAnnotation = 3
	internedID         = 1
	internedText       = 2
)

// The values of enumerations that are written.
const (
	clockRealtime = 1
	clockBoottime = 6

	flagCleared = 1 // the sequence begins
	flagNeeds   = 2 // the packet uses what the sequence has interned

	orderExplicit = 3 // by rank

	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	unitTime  = 1
	unitCount = 2
	unitBytes = 3
)

// sequence is the number of the only sequence of packets.
const sequence = 1

// perfetto writes Perfetto's format.
type perfetto struct {
	out      *gzip.Writer
	err      error
	packet   message
	event    message
	interned message
	names    map[internKey]uint64
	next     [internedAnnotation + 1]uint64 // ids, by kind of name
}

// internKey is a name that was written once and has a number.
type internKey struct {
	kind int // internedCategory, internedName or internedAnnotation
	text string
}

// maxInterned is the maximum number of names that have a number. Further names are written each
// time.
const maxInterned = 1 << 16

// newPerfetto begins a trace. The trace's clock is set such that first is its real time.
func newPerfetto(out io.Writer, first record.Time) *perfetto {
	e := &perfetto{out: gzip.NewWriter(out), names: map[internKey]uint64{}}
	var snapshot message
	for _, id := range []uint64{clockRealtime, clockBoottime} {
		var clock message
		clock.number(clockID, id)
		clock.number(clockTimestamp, uint64(first))
		snapshot.message(snapshotClock, clock)
	}
	e.packet.message(packetClockSnapshot, snapshot)
	e.packet.number(packetSequenceFlags, flagCleared)
	e.write(first)
	return e
}

// uuidOf returns the id of a row's track.
func uuidOf(p place) uint64 {
	return processUUID(p.connection) | uint64(p.track+1)<<24 | uint64(p.row)&(1<<24-1)
}

// processUUID returns the id of a connection's track. The capture itself has connection -1.
func processUUID(connection int) uint64 { return uint64(connection+2) << 32 }

// process writes the description of a connection.
func (e *perfetto) process(number int, c connection) {
	var p, d message
	p.number(processPID, uint64(number+1))
	p.text(processName, c.name)
	d.number(trackUUID, processUUID(number))
	d.text(trackName, c.name)
	d.message(trackProcess, p)
	d.number(trackOrdering, orderExplicit)
	d.number(trackRank, uint64(number+1))
	d.text(trackDescription, c.description)
	e.packet.message(packetTrackDescriptor, d)
	e.write(0)
}

// row writes the description of a row. The rows of a track have one name, by which the viewer
// merges them.
func (e *perfetto) row(p place) {
	var d message
	t := tracks[p.track]
	d.number(trackUUID, uuidOf(p))
	d.text(trackName, t.name)
	d.number(trackParent, processUUID(p.connection))
	if t.unit != "" {
		var c message
		switch t.unit {
		case "bytes":
			c.number(counterUnit, unitBytes)
		case "ns":
			c.number(counterUnit, unitTime)
		default:
			c.number(counterUnit, unitCount)
		}
		if t.unit == "credits" {
			c.text(counterShareKey, t.unit) // the limit is reached where the curves touch
		}
		d.message(trackCounter, c)
	}
	d.number(trackRank, uint64(p.track))
	e.packet.message(packetTrackDescriptor, d)
	e.write(0)
}

// slice writes a slice and its parts.
func (e *perfetto) slice(p place, s *item) {
	e.head(p, typeBegin, s.name, s.category)
	e.details(s)
	if len(s.parts) < 2 {
		e.flows(eventFlow, s.flows)
	}
	e.emit(s.start)
	at := s.start
	for i, part := range s.parts {
		e.head(p, typeBegin, part.name, "phase")
		switch last := len(s.parts) - 1; {
		case last > 0 && i == 0:
			e.flows(eventFlow, s.flows)
		case last > 0 && i == last:
			e.flows(eventFlowEnd, s.flows)
		}
		e.emit(at)
		at = part.end
		e.end(p, at)
	}
	e.end(p, s.end)
}

// instant writes an instant.
func (e *perfetto) instant(p place, s *item) {
	e.head(p, typeInstant, s.name, s.category)
	e.details(s)
	e.flows(eventFlow, s.flows)
	e.emit(s.start)
}

// head begins an event.
func (e *perfetto) head(p place, kind uint64, name, category string) {
	e.event.number(eventType, kind)
	e.event.number(eventTrack, uuidOf(p))
	e.name(&e.event, internedCategory, eventCategory, eventLongCategory, category)
	e.name(&e.event, internedName, eventName, eventLongName, name)
}

// details adds the arguments of an item to the event, and what it belongs to.
func (e *perfetto) details(s *item) {
	if s.id != 0 {
		e.event.number(eventCorrelation, uint64(s.id))
	}
	for _, a := range s.args {
		var m message
		e.name(&m, internedAnnotation, annotationName, annotationLongName, a.key)
		if a.text != "" {
			m.text(annotationString, a.text)
		} else {
			m.number(annotationInt, uint64(a.n))
		}
		e.event.message(eventAnnotation, m)
	}
}

// flows adds flows to the event.
func (e *perfetto) flows(field int, ids []uint64) {
	for _, id := range ids {
		e.event.fixed64(field, id)
	}
}

// end writes the end of a slice.
func (e *perfetto) end(p place, at record.Time) {
	e.event.number(eventType, typeEnd)
	e.event.number(eventTrack, uuidOf(p))
	e.emit(at)
}

// count writes a counter's value.
func (e *perfetto) count(p place, at record.Time, value int64) {
	e.event.number(eventType, typeCounter)
	e.event.number(eventTrack, uuidOf(p))
	e.event.number(eventValue, uint64(value))
	e.emit(at)
}

// name writes a name as its number. A new name gets a number, which the packet defines.
func (e *perfetto) name(to *message, kind, field, long int, text string) {
	k := internKey{kind, text}
	id, known := e.names[k]
	switch {
	case known:
	case len(e.names) >= maxInterned || len(text) > 256:
		to.text(long, text)
		return
	default:
		e.next[kind]++
		id = e.next[kind]
		e.names[k] = id
		var m message
		m.number(internedID, id)
		m.text(internedText, text)
		e.interned.message(kind, m)
	}
	to.number(field, id)
}

// emit writes the event as a packet.
func (e *perfetto) emit(at record.Time) {
	if len(e.interned) > 0 {
		e.packet.message(packetInternedData, e.interned)
	}
	e.packet.message(packetTrackEvent, e.event)
	e.packet.number(packetSequenceFlags, flagNeeds)
	e.event, e.interned = e.event[:0], e.interned[:0]
	e.write(at)
}

// write writes the packet. A time of 0 is left out.
func (e *perfetto) write(at record.Time) {
	if at != 0 {
		e.packet.number(packetTimestamp, uint64(at))
	}
	e.packet.number(packetSequence, sequence)
	head := binary.AppendUvarint([]byte{tracePacket<<3 | wireBytes}, uint64(len(e.packet)))
	for _, b := range [][]byte{head, e.packet} {
		if e.err == nil {
			_, e.err = e.out.Write(b)
		}
	}
	e.packet = e.packet[:0]
}

// finish writes the end of the file.
func (e *perfetto) finish() error {
	if e.err != nil {
		return e.err
	}
	return e.out.Close()
}

// The wire types of Protocol Buffers.
const (
	wireNumber  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

// message is a message of Protocol Buffers.
type message []byte

func (m *message) key(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(wire)) }

func (m *message) number(field int, v uint64) {
	m.key(field, wireNumber)
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) fixed64(field int, v uint64) {
	m.key(field, wireFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) text(field int, s string) {
	m.message(field, message(strings.ToValidUTF8(s, "\ufffd")))
}

func (m *message) message(field int, v message) {
	m.key(field, wireBytes)
	*m = binary.AppendUvarint(*m, uint64(len(v)))
	*m = append(*m, v...)
}
