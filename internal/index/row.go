package index

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Row is what lists, orders and charts need to know of an RPC. Numbers of bytes that do not fit are
// one less than UnknownBytes.
type Row struct {
	ID         int64
	Time       record.Time // of the Call, or of the Reply if the capture has no Call
	LatencyNS  int64       // Unknown if the RPC has no latency
	Packet     int64       // first packet of the RPC
	XID        record.Hex32
	Connection uint32
	CallBytes  uint32 // of the Call's Payload stream, or UnknownBytes
	ReplyBytes uint32
	ReadBytes  uint32 // moved by RDMA Reads
	WriteBytes uint32
	Operation  uint16 // field operation of the RPC, see [Index.Names]
	Status     uint16 // field status of the RPC, see [Index.Names]
	Outcome    uint16 // how the RPC ended, see [Index.Names]
	Marks      Marks
}

// These are the values of a Row for an RPC that has no latency, or no known number of bytes.
const (
	Unknown      = -1
	UnknownBytes = math.MaxUint32
)

// Marks are properties of an RPC that a Row has.
type Marks uint8

// The marks.
const (
	Failed        Marks = 1 << iota // a message is missing, or the Reply has an error status
	HasFindings                     // there are findings about the RPC
	Backward                        // the server sent the Call
	Retransmitted                   // packets of the RPC were retransmitted
	Unnamed                         // there was no space for the name of the Operation, the Status or the Outcome
)

// rowBytes is the size of a stored row.
const rowBytes = 64

// capped returns a number of bytes as a uint32.
func capped(n int64) uint32 { return uint32(min(max(n, 0), UnknownBytes-1)) }

// payload returns the length of a Payload stream.
func payload(m *record.Message) uint32 {
	if m != nil {
		if n, known := m.PayloadBytes.Get(); known {
			return capped(n)
		}
	}
	return UnknownBytes
}

// makeRow returns the row of a transaction.
func makeRow(r *record.Transaction, w *words) (row Row) {
	read, written := query.Moved(r)
	row = Row{
		ID: r.ID, Time: r.Start(), LatencyNS: r.LatencyNS.Or(Unknown), XID: r.XID, Connection: uint32(r.Connection),
		CallBytes: payload(r.Call), ReplyBytes: payload(r.Reply), ReadBytes: capped(read), WriteBytes: capped(written),
	}
	if r.Call != nil {
		row.Packet = r.Call.Packet
	} else {
		row.Packet = r.Reply.Packet
	}
	unnamed := false
	number := func(name string) uint16 {
		n, known := w.number(name)
		unnamed = unnamed || !known
		return uint16(n)
	}
	row.Operation, row.Status, row.Outcome = number(r.Operation.Or("")), number(string(r.Status)), number(query.Outcome(r))
	for _, m := range [...]struct {
		is   bool
		mark Marks
	}{{r.Failed() || !r.Status.Replied(), Failed}, {len(r.Findings) > 0, HasFindings}, {r.Direction == record.Backward, Backward}, {r.Retransmitted > 0, Retransmitted}, {unnamed, Unnamed}} {
		if m.is {
			row.Marks |= m.mark
		}
	}
	return row
}

// append appends the row in a fixed number of bytes.
func (r *Row) append(b []byte) []byte {
	o := binary.LittleEndian
	b = o.AppendUint64(b, uint64(r.ID))
	b = o.AppendUint64(b, uint64(r.Time))
	b = o.AppendUint64(b, uint64(r.LatencyNS))
	b = o.AppendUint64(b, uint64(r.Packet))
	for _, v := range [...]uint32{uint32(r.XID), r.Connection, r.CallBytes, r.ReplyBytes, r.ReadBytes, r.WriteBytes} {
		b = o.AppendUint32(b, v)
	}
	for _, v := range [...]uint16{r.Operation, r.Status, r.Outcome} {
		b = o.AppendUint16(b, v)
	}
	return append(b, byte(r.Marks), 0)
}

// parse sets the row from the bytes that append appended.
func (r *Row) parse(b []byte) {
	_ = b[rowBytes-1]
	o := binary.LittleEndian
	r.ID, r.Time, r.LatencyNS, r.Packet = int64(o.Uint64(b)), record.Time(o.Uint64(b[8:])), int64(o.Uint64(b[16:])), int64(o.Uint64(b[24:]))
	r.XID, r.Connection, r.CallBytes, r.ReplyBytes = record.Hex32(o.Uint32(b[32:])), o.Uint32(b[36:]), o.Uint32(b[40:]), o.Uint32(b[44:])
	r.ReadBytes, r.WriteBytes, r.Operation, r.Status = o.Uint32(b[48:]), o.Uint32(b[52:]), o.Uint16(b[56:]), o.Uint16(b[58:])
	r.Outcome, r.Marks = o.Uint16(b[60:]), Marks(b[62])
}

// perChunk is the number of rows that are stored together.
const perChunk = 4096

// rows is the list of all rows. One goroutine adds rows while others read them.
type rows struct {
	space *space
	mu    sync.RWMutex
	first int64 // number of the first row that is kept; a multiple of perChunk
	full  []piece
	last  []byte
}

// bounds returns the numbers of the first row and of the one after the last.
func (l *rows) bounds() (from, to int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.first, l.first + int64(len(l.full))*perChunk + int64(len(l.last)/rowBytes)
}

// add adds a row.
func (l *rows) add(r *Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make([]byte, 0, perChunk*rowBytes)
	}
	if l.last = r.append(l.last); len(l.last) == cap(l.last) {
		l.full = append(l.full, l.space.keep(l.last))
		l.last = l.last[:0]
	}
}

// forget forgets the rows before number n, in whole chunks. It returns the number of the first row
// that is kept.
func (l *rows) forget(n int64) (first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	chunks := min(int((n-l.first)/perChunk), len(l.full))
	if chunks <= 0 {
		return l.first
	}
	for _, p := range l.full[:chunks] {
		l.space.free(p)
	}
	l.full = append([]piece(nil), l.full[chunks:]...)
	l.first += int64(chunks) * perChunk
	return l.first
}

// chunk returns the bytes of the rows from number n to the end of its chunk, in memory that stays
// valid. It returns nothing if the rows are not kept any more, or not there yet.
func (l *rows) chunk(n int64) ([]byte, error) {
	l.mu.RLock()
	i, at := (n-l.first)/perChunk, (n-l.first)%perChunk*rowBytes
	if n < l.first || i > int64(len(l.full)) || i == int64(len(l.full)) && at >= int64(len(l.last)) {
		l.mu.RUnlock()
		return nil, nil
	}
	if i == int64(len(l.full)) {
		b := append([]byte(nil), l.last[at:]...)
		l.mu.RUnlock()
		return b, nil
	}
	p := l.full[i]
	l.mu.RUnlock()
	b, err := l.space.load(p, nil)
	if err != nil || int64(len(b)) <= at {
		return nil, err
	}
	return b[at:], nil
}
