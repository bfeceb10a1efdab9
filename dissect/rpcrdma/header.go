// Package rpcrdma encodes and decodes the headers of RPC-over-RDMA version 1 (RFC
// 8166) and its connection manager private data (RFC 8797).
package rpcrdma

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Decode errors wrap one of these: ErrTruncated if the message is too short,
// ErrMalformed if a value is not allowed.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
)

// unknownError is the text of an error about an undefined value. It matches ErrMalformed.
type unknownError string

func (e unknownError) Error() string      { return string(e) }
func (unknownError) Is(target error) bool { return target == ErrMalformed }

var be = binary.BigEndian

// Version is the version that this package decodes. Draft is version 2, which it
// decodes if the header has the layout of the remote invalidation draft
// (draft-cel-nfsv4-reminv-design s.5.3).
const (
	Version = 1
	Draft   = 2
)

// FixedLen is the length in bytes of the four words that all versions share.
// SegmentLen is the length in bytes of a plain segment, ReadSegmentLen that of an entry of the
// Read list, with the word before it.
const (
	FixedLen       = 16
	SegmentLen     = 16
	ReadSegmentLen = 4 + 4 + SegmentLen
)

// Proc is the procedure of a header, rdma_proc (RFC 8166 s.4.2.4).
type Proc uint32

// The procedures of version 1.
const (
	Msg   Proc = 0
	NoMsg Proc = 1
	MsgP  Proc = 2
	Done  Proc = 3
	Error Proc = 4
)

var procNames = [...]string{"RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE", "RDMA_ERROR"}

// String returns the name of the procedure, such as "RDMA_MSG".
func (p Proc) String() string {
	if int64(p) < int64(len(procNames)) {
		return procNames[p]
	}
	return fmt.Sprintf("RDMA_PROC_%d", uint32(p))
}

// ErrCode is rdma_err (RFC 8166 s.4.5).
type ErrCode uint32

// The error codes of version 1.
const (
	ErrVers  ErrCode = 1
	ErrChunk ErrCode = 2
)

// String returns the name of the error code, such as "ERR_VERS".
func (e ErrCode) String() string {
	switch e {
	case ErrVers:
		return "ERR_VERS"
	case ErrChunk:
		return "ERR_CHUNK"
	}
	return fmt.Sprintf("ERR_%d", uint32(e))
}

// Segment is a plain RDMA segment (RFC 8166 s.3.4.3). It describes a range of the
// requester's memory.
type Segment struct {
	Handle uint32 // STag, R_key
	Length uint32 // bytes
	Offset uint64 // virtual address or offset of the first byte
}

// Length returns the sum of the lengths of segments, in bytes.
func Length(segments []Segment) (n int64) {
	for i := range segments {
		n += int64(segments[i].Length)
	}
	return n
}

// ReadSegment is an entry of the Read list (RFC 8166 s.3.4.5). Segments with the same
// Position form one Read chunk.
type ReadSegment struct {
	Position uint32 // byte offset in the unreduced Payload stream
	Segment
}

// Header is an RPC-over-RDMA header (RFC 8166 s.4.1.2): four words that all versions
// share, and the fields that version 1 adds. Decode reuses the slices of the Header.
// All words are big-endian.
//
//	offset width
//	0      32 bits rdma_xid
//	4      32      rdma_vers
//	8      32      rdma_credit
//	12     32      rdma_proc
//	16     32, 32  rdma_align, rdma_thresh: RDMA_MSGP only
//	16     lists   Read list, Write list, Reply chunk: MSG, NOMSG, MSGP
//	16     32      rdma_err, then low and high version for ERR_VERS: RDMA_ERROR
//
// Version 2 of the remote invalidation draft has two more words before the lists of
// MSG and NOMSG:
//
//	16     32      rdma_direction: 0 Call, 1 Reply
//	20     32      rdma_inv_handle
type Header struct {
	XID     uint32
	Vers    uint32
	Credits uint32
	Proc    Proc

	Align, Thresh uint32 // bytes, RDMA_MSGP

	IsDraft   bool   // it is version 2 with the layout of the draft
	Direction uint32 // rdma_direction, if IsDraft: 0 Call, 1 Reply
	InvHandle uint32 // rdma_inv_handle, if IsDraft; 0 for none

	Reads     []ReadSegment // the Read list, flat, in wire order
	ReadOrder []int         // indexes of Reads, by Position: segments with the same Position form one chunk wherever they are in the list
	Writes    []Segment     // the segments of all Write chunks, flat
	WriteEnds []int         // for each Write chunk, the index in Writes after its last segment
	Reply     []Segment     // the Reply chunk
	HasReply  bool          // there is a Reply chunk, which may be empty

	Err               ErrCode
	VersLow, VersHigh uint32 // versions that the sender of ERR_VERS supports

	Length int // number of bytes that were decoded; the length of the header if Decode returned no error
}

// WriteChunk returns the segments of Write chunk i.
func (h *Header) WriteChunk(i int) []Segment {
	start := 0
	if i > 0 {
		start = h.WriteEnds[i-1]
	}
	return h.Writes[start:h.WriteEnds[i]]
}

// HasChunks reports whether the header has any chunk.
func (h *Header) HasChunks() bool { return len(h.Reads) > 0 || len(h.WriteEnds) > 0 || h.HasReply }

// PositionZero returns the number of bytes in the Position Zero Read chunk, and whether there is one.
func (h *Header) PositionZero() (bytes int64, ok bool) {
	for i := range h.Reads {
		if r := &h.Reads[i]; r.Position == 0 {
			bytes, ok = bytes+int64(r.Length), true
		}
	}
	return bytes, ok
}

// Understood reports whether the layout of the header after its first four words is
// known.
func (h *Header) Understood() bool { return h.Vers == Version || h.IsDraft }

// Decode decodes the header at the start of a Send's payload. If the header is
// truncated or malformed, h holds the fields before the error, and the error wraps
// [ErrTruncated] or [ErrMalformed] and contains the offset. For versions other than 1,
// only the four fixed words and an RDMA_ERROR are decoded, because they are the same
// in all versions (RFC 8166 s.4.2). Version 2 is decoded completely if the whole header
// has the layout of the draft.
func (h *Header) Decode(data []byte) error {
	h.clear()
	d := decoder{data: data}
	var ok [4]bool
	h.XID, ok[0] = d.word()
	h.Vers, ok[1] = d.word()
	h.Credits, ok[2] = d.word()
	proc, all := d.word()
	h.Proc, h.Length = Proc(proc), d.at
	if !all {
		return fmt.Errorf("RPC-over-RDMA header %w: %d of at least %d bytes", ErrTruncated, len(data), FixedLen)
	}
	defer func() { h.Length = d.at }()
	switch h.Proc {
	case Error:
		return h.decodeError(&d)
	case Msg, NoMsg, MsgP:
		switch {
		case h.Vers == Version:
			return h.decodeLists(&d)
		case h.Vers == Draft && h.Proc != MsgP:
			h.decodeDraft(&d)
		}
	case Done:
	default:
		if h.Vers == Version {
			return unknownError(fmt.Sprintf("unknown rdma_proc %d (version 1 defines 0 to 4)", proc))
		}
	}
	return nil
}

func (h *Header) decodeError(d *decoder) error {
	code, ok := d.word()
	if !ok {
		return d.short("rdma_err", 4)
	}
	h.Err = ErrCode(code)
	switch h.Err {
	case ErrVers:
		if len(d.data)-d.at < 8 {
			return d.short("version range of ERR_VERS", 8)
		}
		h.VersLow, _ = d.word()
		h.VersHigh, _ = d.word()
	case ErrChunk:
	default:
		return unknownError(fmt.Sprintf("unknown rdma_err %d (version 1 defines 1 and 2)", code))
	}
	return nil
}

// clear resets the header but keeps the memory of its slices.
func (h *Header) clear() {
	reads, order, writes, ends, reply := h.Reads[:0], h.ReadOrder[:0], h.Writes[:0], h.WriteEnds[:0], h.Reply[:0]
	*h = Header{} // a statement of its own, so that the compiler clears h in place
	h.Reads, h.ReadOrder, h.Writes, h.WriteEnds, h.Reply = reads, order, writes, ends, reply
}

// decodeDraft decodes version 2 with the layout of the draft. If the header does not have
// that layout, only its four fixed words are set.
func (h *Header) decodeDraft(d *decoder) {
	fixed := *d
	direction, _ := d.word()
	handle, ok := d.word()
	if !ok || direction > 1 || h.decodeLists(d) != nil {
		h.Forget()
		*d = fixed
		return
	}
	h.IsDraft, h.Direction, h.InvHandle = true, direction, handle
}

// Forget clears everything but the four fixed words, because the layout of the rest is not known.
func (h *Header) Forget() {
	xid, vers, credits, proc := h.XID, h.Vers, h.Credits, h.Proc
	h.clear()
	h.XID, h.Vers, h.Credits, h.Proc, h.Length = xid, vers, credits, proc, FixedLen
}

func (h *Header) decodeLists(d *decoder) error {
	if h.Proc == MsgP {
		if len(d.data)-d.at < 8 {
			return d.short("rdma_align and rdma_thresh", 8)
		}
		h.Align, _ = d.word()
		h.Thresh, _ = d.word()
	}
	err := h.decodeReads(d)
	h.orderReads()
	if err != nil {
		return err
	}
	for {
		more, err := d.flag("Write list")
		if err != nil || !more {
			if err != nil {
				return err
			}
			break
		}
		h.Writes, err = d.chunk(h.Writes, "Write chunk")
		h.WriteEnds = append(h.WriteEnds, len(h.Writes))
		if err != nil {
			return err
		}
	}
	more, err := d.flag("Reply chunk")
	if err != nil || !more {
		return err
	}
	h.HasReply = true
	h.Reply, err = d.chunk(h.Reply, "Reply chunk")
	return err
}

func (h *Header) decodeReads(d *decoder) error {
	for {
		more, err := d.flag("Read list")
		if err != nil || !more {
			return err
		}
		if len(d.data)-d.at < 4+SegmentLen {
			return d.short(fmt.Sprintf("Read list entry %d", len(h.Reads)), 4+SegmentLen)
		}
		position, _ := d.word()
		h.Reads = append(h.Reads, ReadSegment{position, d.segment()})
	}
}

// orderReads sets ReadOrder. The Read list is usually in the order of the Positions.
func (h *Header) orderReads() {
	inOrder := true
	for i := range h.Reads {
		h.ReadOrder = append(h.ReadOrder, i)
		inOrder = inOrder && (i == 0 || h.Reads[i-1].Position <= h.Reads[i].Position)
	}
	if !inOrder {
		slices.SortStableFunc(h.ReadOrder, func(i, j int) int { return cmp.Compare(h.Reads[i].Position, h.Reads[j].Position) })
	}
}

// decoder is a cursor over a header.
type decoder struct {
	data []byte
	at   int
}

func (d *decoder) word() (uint32, bool) {
	if len(d.data)-d.at < 4 {
		return 0, false
	}
	d.at += 4
	return be.Uint32(d.data[d.at-4:]), true
}

func (d *decoder) short(what string, need int) error {
	return fmt.Errorf("%s %w: %d of %d bytes at offset %d", what, ErrTruncated, len(d.data)-d.at, need, d.at)
}

// flag reads the word that precedes XDR optional-data, and reports whether data follows.
func (d *decoder) flag(list string) (bool, error) {
	v, ok := d.word()
	switch {
	case !ok:
		return false, d.short("next word of the "+list, 4)
	case v > 1:
		d.at -= 4
		return false, fmt.Errorf("%w %s: 0x%08x at offset %d is neither 0 nor 1", ErrMalformed, list, v, d.at)
	}
	return v == 1, nil
}

func (d *decoder) segment() Segment {
	b := d.data[d.at : d.at+SegmentLen]
	d.at += SegmentLen
	return Segment{Handle: be.Uint32(b), Length: be.Uint32(b[4:]), Offset: be.Uint64(b[8:])}
}

// chunk decodes a counted array of segments and appends them to to. If the array is
// truncated, it appends the complete segments and returns an error.
func (d *decoder) chunk(to []Segment, what string) ([]Segment, error) {
	count, ok := d.word()
	if !ok {
		return to, d.short("segment count of the "+what, 4)
	}
	at := d.at - 4
	for i := range int(count) {
		if len(d.data)-d.at < SegmentLen {
			return to, fmt.Errorf("%s %w: %d of %d segments at offset %d", what, ErrTruncated, i, count, at)
		}
		to = append(to, d.segment())
	}
	return to, nil
}

// Append appends the header in wire format.
func (h *Header) Append(b []byte) []byte {
	b = be.AppendUint32(b, h.XID)
	b = be.AppendUint32(b, h.Vers)
	b = be.AppendUint32(b, h.Credits)
	b = be.AppendUint32(b, uint32(h.Proc))
	switch h.Proc {
	case Error:
		b = be.AppendUint32(b, uint32(h.Err))
		if h.Err == ErrVers {
			b = be.AppendUint32(be.AppendUint32(b, h.VersLow), h.VersHigh)
		}
		return b
	case Msg, NoMsg, MsgP:
	default:
		return b
	}
	if !h.Understood() {
		return b
	}
	if h.IsDraft {
		b = be.AppendUint32(be.AppendUint32(b, h.Direction), h.InvHandle)
	}
	if h.Proc == MsgP {
		b = be.AppendUint32(be.AppendUint32(b, h.Align), h.Thresh)
	}
	for _, s := range h.Reads {
		b = be.AppendUint32(be.AppendUint32(b, 1), s.Position)
		b = appendSegment(b, s.Segment)
	}
	b = be.AppendUint32(b, 0)
	for i := range h.WriteEnds {
		b = appendChunk(be.AppendUint32(b, 1), h.WriteChunk(i))
	}
	b = be.AppendUint32(b, 0)
	if !h.HasReply {
		return be.AppendUint32(b, 0)
	}
	return appendChunk(be.AppendUint32(b, 1), h.Reply)
}

func appendChunk(b []byte, segments []Segment) []byte {
	b = be.AppendUint32(b, uint32(len(segments)))
	for _, s := range segments {
		b = appendSegment(b, s)
	}
	return b
}

func appendSegment(b []byte, s Segment) []byte {
	return be.AppendUint64(be.AppendUint32(be.AppendUint32(b, s.Handle), s.Length), s.Offset)
}
