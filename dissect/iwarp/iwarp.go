// Package iwarp holds the wire formats of iWARP over TCP: MPA (RFC 5044, RFC
// 6581), DDP (RFC 5041) and RDMAP (RFC 5040). All fields are big-endian but the
// CRC-32C, which is stored least significant byte first.
package iwarp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrTruncated is wrapped by decode errors that ran out of bytes, ErrMalformed
// by those that met a value that cannot be.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
)

var be = binary.BigEndian

func short(what string, need, have int) error {
	return fmt.Errorf("iwarp: %s needs %d bytes, %d left: %w", what, need, have, ErrTruncated)
}

// Castagnoli is the table of MPA's CRC (RFC 5044 s.4.4).
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The lengths of MPA in bytes.
const (
	MPALen      = 20 // of a request or reply, without private data
	maxPrivate  = 512
	LengthLen   = 2
	CRCLen      = 4
	MarkerLen   = 4
	MarkerEvery = 512 // bytes of TCP stream from one marker to the next
)

// The keys of MPA requests and replies.
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// MPA is an MPA request or reply frame (RFC 5044 s.7.1.1, RFC 6581 s.9).
//
//	offset width
//	0      128 bits key
//	16     1       M: the sender wants markers in what it receives
//	16.1   1       C: CRC
//	16.2   1       R: rejected, in a reply
//	16.3   1       S: enhanced, private data begins with IRD and ORD
//	16.4   4       reserved
//	17     8       revision: 1 or 2
//	18     16      length of the private data, at most 512
//	20     16, 16  IRD and ORD, with their flags, when enhanced
type MPA struct {
	Reply       bool
	Markers     bool
	CRC         bool
	Reject      bool
	Enhanced    bool
	Reserved    uint8
	Revision    uint8
	IRD, ORD    uint16 // the whole words, flags included
	PrivateData []byte // the consumer's, behind IRD and ORD; aliases the input
	Length      int    // bytes of the frame
}

// IsMPA says whether a stream starts with the key of a request or reply.
func IsMPA(data []byte) bool {
	return len(data) >= len(RequestKey) && (string(data[:len(RequestKey)]) == RequestKey || string(data[:len(ReplyKey)]) == ReplyKey)
}

// Decode reads a frame. Errors wrap [ErrTruncated], when more of the stream is
// needed, or [ErrMalformed].
func (m *MPA) Decode(data []byte) error {
	*m = MPA{}
	if len(data) < MPALen {
		return short("MPA frame", MPALen, len(data))
	}
	if !IsMPA(data) {
		return fmt.Errorf("iwarp: no MPA key: %w", ErrMalformed)
	}
	m.Reply = string(data[:len(ReplyKey)]) == ReplyKey
	flags := data[16]
	m.Markers, m.CRC, m.Reject, m.Enhanced = flags&0x80 != 0, flags&0x40 != 0, flags&0x20 != 0, flags&0x10 != 0
	m.Reserved, m.Revision = flags&0x0f, data[17]
	size := int(be.Uint16(data[18:]))
	if size > maxPrivate {
		return fmt.Errorf("iwarp: MPA frame claims %d bytes of private data, the limit is %d: %w", size, maxPrivate, ErrMalformed)
	}
	if len(data) < MPALen+size {
		return short("MPA private data", size, len(data)-MPALen)
	}
	m.Length = MPALen + size
	m.PrivateData = data[MPALen:m.Length]
	if m.Enhanced && m.Revision >= 2 {
		if size < 4 {
			return fmt.Errorf("iwarp: enhanced MPA frame has %d bytes of private data, IRD and ORD take 4: %w", size, ErrMalformed)
		}
		m.IRD, m.ORD = be.Uint16(m.PrivateData), be.Uint16(m.PrivateData[2:])
		m.PrivateData = m.PrivateData[4:]
	}
	return nil
}

// Append appends the frame as it stands on the wire.
func (m *MPA) Append(b []byte) []byte {
	key := RequestKey
	if m.Reply {
		key = ReplyKey
	}
	b = append(b, key...)
	flags := m.Reserved & 0x0f
	for _, f := range []struct {
		set bool
		bit uint8
	}{{m.Markers, 0x80}, {m.CRC, 0x40}, {m.Reject, 0x20}, {m.Enhanced, 0x10}} {
		if f.set {
			flags |= f.bit
		}
	}
	size := len(m.PrivateData)
	enhanced := m.Enhanced && m.Revision >= 2
	if enhanced {
		size += 4
	}
	b = be.AppendUint16(append(b, flags, m.Revision), uint16(size))
	if enhanced {
		b = be.AppendUint16(be.AppendUint16(b, m.IRD), m.ORD)
	}
	return append(b, m.PrivateData...)
}

// FPDULen is how many bytes an FPDU takes without markers, given the length of
// its ULPDU: length, ULPDU, pad to four bytes, CRC.
func FPDULen(ulpdu int) int { return (LengthLen+ulpdu+3)&^3 + CRCLen }

// CRCResult says what came of checking an FPDU's CRC.
type CRCResult uint8

// The results. Off means that the field is zero: CRCs were not agreed to.
const (
	CRCBad CRCResult = iota
	CRCOk
	CRCOff
)

// CheckCRC checks the CRC at the end of a raw FPDU, markers and all (RFC 5044
// s.4.4).
func CheckCRC(fpdu []byte) CRCResult {
	if len(fpdu) < CRCLen {
		return CRCBad
	}
	at := len(fpdu) - CRCLen
	stored := binary.LittleEndian.Uint32(fpdu[at:])
	switch stored {
	case crc32.Checksum(fpdu[:at], Castagnoli):
		return CRCOk
	case 0:
		return CRCOff
	}
	return CRCBad
}

// AppendFPDU appends a ULPDU as an FPDU with its CRC, without markers.
func AppendFPDU(b, ulpdu []byte) []byte {
	at := len(b)
	b = append(be.AppendUint16(b, uint16(len(ulpdu))), ulpdu...)
	for (len(b)-at)%4 != 0 {
		b = append(b, 0)
	}
	return AppendCRC(b, b[at:])
}

// AppendCRC appends the CRC of an FPDU of which covered is what it covers: all
// before it, with a marker that stands before its length.
func AppendCRC(b, covered []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(covered, Castagnoli))
}

// Noted is an FPDU that a TCP segment completed, as far as those who show it need
// it.
type Noted struct {
	Head   []byte // a copy of its beginning, markers taken out: length, DDP and RDMAP headers, and what a Send starts with
	Offset int    // in the frame, -1 when it does not stand there in one piece
	ULPDU  int    // bytes
	CRC    CRCResult
}
