package iwarp

import "fmt"

// Opcode is an RDMAP opcode (RFC 5040 s.4.1).
type Opcode uint8

// The RDMAP opcodes.
const (
	Write            Opcode = 0
	ReadRequest      Opcode = 1
	ReadResponse     Opcode = 2
	Send             Opcode = 3
	SendInvalidate   Opcode = 4
	SendSE           Opcode = 5
	SendSEInvalidate Opcode = 6
	Terminate        Opcode = 7
)

var opcodeNames = [...]string{
	"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send", "Send with Invalidate", "Send with Solicited Event",
	"Send with Solicited Event and Invalidate", "Terminate",
}

// String returns the name of the opcode, such as "Send with Invalidate".
func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return fmt.Sprintf("reserved (%d)", uint8(o))
}

// IsSend reports whether the opcode is one of the four Sends.
func (o Opcode) IsSend() bool { return o >= Send && o <= SendSEInvalidate }

// Invalidates reports whether the opcode is a Send with an STag to invalidate.
func (o Opcode) Invalidates() bool { return o == SendInvalidate || o == SendSEInvalidate }

// The queues of untagged messages (RFC 5040 s.5.1).
const (
	QueueSend        = 0
	QueueReadRequest = 1
	QueueTerminate   = 2
)

// The lengths of DDP and RDMAP headers in bytes.
const (
	TaggedLen      = 14
	TaggedBit      = 0x80 // in the first byte of a DDP segment
	UntaggedLen    = 18
	ReadRequestLen = 28
	TerminateLen   = 4
)

// Segment is a DDP segment with the control bytes of DDP and RDMAP (RFC 5041 s.4, RFC 5040 s.4.1).
//
//	offset width
//	0      1 bit   T: tagged
//	0.1    1       L: last segment of its message
//	0.2    4       reserved
//	0.6    2       DDP version: 1
//	1      2       RDMAP version: 1
//	1.2    2       reserved
//	1.4    4       RDMAP opcode
//	2      32      STag (tagged); STag to invalidate, or reserved (untagged)
//	6      64      tagged offset (tagged)
//	6      32      queue number (untagged)
//	10     32      message sequence number (untagged)
//	14     32      message offset (untagged)
type Segment struct {
	Tagged       bool
	Last         bool
	ReservedDDP  uint8
	DDPVersion   uint8
	RDMAPVersion uint8
	ReservedMAP  uint8
	Opcode       Opcode
	STag         uint32 // STag of the memory (tagged) or STag to invalidate (untagged)
	Offset       uint64 // offset in the memory (tagged) or in the message (untagged)
	Queue        uint32
	Sequence     uint32
	Payload      []byte // aliases the input
	HeaderLength int    // length of the DDP and RDMAP headers in bytes
}

// Decode decodes a ULPDU. Errors wrap [ErrTruncated].
func (s *Segment) Decode(data []byte) error {
	*s = Segment{}
	if len(data) < 2 {
		return short("DDP control", 2, len(data))
	}
	s.Tagged, s.Last = data[0]&TaggedBit != 0, data[0]&0x40 != 0
	s.ReservedDDP, s.DDPVersion = data[0]>>2&0x0f, data[0]&3
	s.RDMAPVersion, s.ReservedMAP, s.Opcode = data[1]>>6, data[1]>>4&3, Opcode(data[1]&0x0f)
	s.HeaderLength = UntaggedLen
	if s.Tagged {
		s.HeaderLength = TaggedLen
	}
	if len(data) < s.HeaderLength {
		return short("DDP header", s.HeaderLength, len(data))
	}
	s.STag = be.Uint32(data[2:])
	if s.Tagged {
		s.Offset = be.Uint64(data[6:])
	} else {
		s.Queue, s.Sequence, s.Offset = be.Uint32(data[6:]), be.Uint32(data[10:]), uint64(be.Uint32(data[14:]))
	}
	s.Payload = data[s.HeaderLength:]
	return nil
}

// Plausible reports whether all fields with restricted values are valid. It distinguishes iWARP
// from other TCP streams when the start of the stream was not captured.
func (s *Segment) Plausible() bool {
	if s.DDPVersion != 1 || s.RDMAPVersion > 1 || s.ReservedDDP != 0 || s.ReservedMAP != 0 {
		return false
	}
	switch {
	case s.Tagged:
		return s.Opcode == Write || s.Opcode == ReadResponse
	case s.Opcode.IsSend():
		return s.Queue == QueueSend && (s.Opcode.Invalidates() || s.STag == 0)
	case s.Opcode == ReadRequest:
		return s.Queue == QueueReadRequest && len(s.Payload) == ReadRequestLen
	}
	return s.Opcode == Terminate && s.Queue == QueueTerminate && len(s.Payload) >= TerminateLen
}

// Append appends the encoded segment to b.
func (s *Segment) Append(b []byte) []byte {
	control := s.ReservedDDP&0x0f<<2 | s.DDPVersion&3
	if s.Tagged {
		control |= TaggedBit
	}
	if s.Last {
		control |= 0x40
	}
	b = append(b, control, s.RDMAPVersion<<6|s.ReservedMAP&3<<4|uint8(s.Opcode)&0x0f)
	b = be.AppendUint32(b, s.STag)
	if s.Tagged {
		b = be.AppendUint64(b, s.Offset)
	} else {
		b = be.AppendUint32(be.AppendUint32(be.AppendUint32(b, s.Queue), s.Sequence), uint32(s.Offset))
	}
	return append(b, s.Payload...)
}

// ReadRequestHeader is the payload of an RDMA Read Request (RFC 5040 s.4.4).
//
//	offset width
//	0      32 bits data sink STag
//	4      64      data sink tagged offset
//	12     32      size of the Read, bytes
//	16     32      data source STag
//	20     64      data source tagged offset
type ReadRequestHeader struct {
	SinkSTag     uint32
	SinkOffset   uint64
	Size         uint32
	SourceSTag   uint32
	SourceOffset uint64
}

// Decode decodes the header. Errors wrap [ErrTruncated].
func (r *ReadRequestHeader) Decode(data []byte) error {
	if len(data) < ReadRequestLen {
		return short("RDMA Read Request", ReadRequestLen, len(data))
	}
	*r = ReadRequestHeader{be.Uint32(data), be.Uint64(data[4:]), be.Uint32(data[12:]), be.Uint32(data[16:]), be.Uint64(data[20:])}
	return nil
}

// Append appends the encoded header to b.
func (r *ReadRequestHeader) Append(b []byte) []byte {
	b = be.AppendUint64(be.AppendUint32(b, r.SinkSTag), r.SinkOffset)
	b = be.AppendUint32(be.AppendUint32(b, r.Size), r.SourceSTag)
	return be.AppendUint64(b, r.SourceOffset)
}

// TerminateHeader is the payload of a Terminate (RFC 5040 s.4.8): the error and the header of the
// segment that caused it.
//
//	offset width
//	0      4 bits  layer: 0 RDMAP, 1 DDP, 2 MPA
//	0.4    4       error type
//	1      8       error code
//	2      1       M: the length of the DDP segment follows
//	2.1    1       D: the DDP header of that segment follows
//	2.2    1       R: the RDMAP header of that segment follows
//	2.3    13      reserved
//	4      16      length of the DDP segment, if M is set
//	6      112/144 DDP header, if D is set
//	...    224     Read Request header, if R is set
type TerminateHeader struct {
	Layer, Type, Code uint8
	HasLength         bool
	HasDDP            bool
	HasRDMAP          bool
	SegmentLength     uint16
	DDP               Segment           // header of the segment that caused the error
	Read              ReadRequestHeader // set if that segment is a Read Request
	// Swapped reports that the control word was decoded with the bits of each byte in reverse
	// order: the layer in the low half of the first byte, and M in bit 0 of the third. Linux's siw
	// writes the word like this on little-endian machines. Decode recognises it by reserved bits
	// that are set although none of the flags is set that the following headers require.
	Swapped bool
}

// Decode decodes the payload. If the headers after the control word are truncated, their fields are
// zero and their flags are cleared. The error wraps [ErrTruncated].
func (t *TerminateHeader) Decode(data []byte) error {
	*t = TerminateHeader{}
	if len(data) < TerminateLen {
		return short("Terminate", TerminateLen, len(data))
	}
	t.Layer, t.Type, t.Code = data[0]>>4, data[0]&15, data[1]
	t.HasLength, t.HasDDP, t.HasRDMAP = data[2]&0x80 != 0, data[2]&0x40 != 0, data[2]&0x20 != 0
	rest := data[TerminateLen:]
	if flags := data[2]; len(rest) > 0 && flags&0xe0 == 0 && flags&0x07 != 0 && flags&^0x07 == 0 && data[3] == 0 {
		t.Swapped = true
		t.Layer, t.Type = data[0]&15, data[0]>>4
		t.HasLength, t.HasDDP, t.HasRDMAP = flags&1 != 0, flags&2 != 0, flags&4 != 0
	}
	if t.HasLength = t.HasLength && len(rest) >= 2; t.HasLength {
		t.SegmentLength, rest = be.Uint16(rest), rest[2:]
	}
	if t.HasDDP {
		if t.HasDDP = t.DDP.Decode(rest) == nil; t.HasDDP {
			rest = t.DDP.Payload
			t.DDP.Payload = nil
		}
	}
	t.HasRDMAP = t.HasRDMAP && t.HasDDP && t.Read.Decode(rest) == nil
	return nil
}

// terminations maps layer, type and code to a description of the error (RFC 5040 s.4.8, RFC 5041
// s.8.2, RFC 5044 s.8).
var terminations = map[[3]uint8]string{
	{0, 0, 0}: "local catastrophic error",
	{0, 1, 0}: "remote protection error: invalid STag", {0, 1, 1}: "remote protection error: base or bounds violation",
	{0, 1, 2}: "remote protection error: access rights violation", {0, 1, 3}: "remote protection error: STag not associated with the stream",
	{0, 1, 4}: "remote protection error: offset wrap", {0, 1, 9}: "remote protection error: STag cannot be invalidated",
	{0, 1, 0xff}: "remote protection error: unspecified",
	{0, 2, 5}:    "remote operation error: invalid RDMAP version", {0, 2, 6}: "remote operation error: unexpected opcode",
	{0, 2, 7}: "remote operation error: catastrophic, localized to the stream", {0, 2, 8}: "remote operation error: catastrophic, global",
	{0, 2, 9}: "remote operation error: STag cannot be invalidated", {0, 2, 0xff}: "remote operation error: unspecified",
	{1, 0, 0}: "DDP local catastrophic error",
	{1, 1, 0}: "DDP tagged buffer error: invalid STag", {1, 1, 1}: "DDP tagged buffer error: base or bounds violation",
	{1, 1, 2}: "DDP tagged buffer error: STag not associated with the stream", {1, 1, 3}: "DDP tagged buffer error: offset wrap",
	{1, 1, 4}: "DDP tagged buffer error: invalid DDP version",
	{1, 2, 1}: "DDP untagged buffer error: invalid queue number", {1, 2, 2}: "DDP untagged buffer error: no buffer available",
	{1, 2, 3}: "DDP untagged buffer error: sequence number out of range", {1, 2, 4}: "DDP untagged buffer error: invalid message offset",
	{1, 2, 5}: "DDP untagged buffer error: message too long for the buffer", {1, 2, 6}: "DDP untagged buffer error: invalid DDP version",
	{2, 0, 1}: "MPA error: TCP connection closed or lost", {2, 0, 2}: "MPA error: CRC", {2, 0, 3}: "MPA error: marker and length disagree",
	{2, 0, 4}: "MPA error: invalid request or reply frame",
}

// String returns a description of the error.
func (t *TerminateHeader) String() string {
	if words, known := terminations[[3]uint8{t.Layer, t.Type, t.Code}]; known {
		return words
	}
	return fmt.Sprintf("layer %d type %d code %d", t.Layer, t.Type, t.Code)
}
