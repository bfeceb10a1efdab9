// Package iwarp decodes and encodes iWARP over TCP: MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and
// RDMAP (RFC 5040). All fields are big-endian except the CRC-32C, which is stored least significant
// byte first.
package iwarp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrTruncated is wrapped by decode errors for an input that is too short, and ErrMalformed by
// decode errors for an invalid value.
var (
	ErrTruncated = errors.New("truncated")
	ErrMalformed = errors.New("malformed")
)

var be = binary.BigEndian

func short(what string, need, have int) error {
	return fmt.Errorf("iwarp: %s needs %d bytes, %d left: %w", what, need, have, ErrTruncated)
}

// Castagnoli is the table of the CRC-32C in MPA (RFC 5044 s.4.4).
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The lengths of MPA structures in bytes.
const (
	MPALen      = 20 // of a request or reply without private data
	maxPrivate  = 512
	LengthLen   = 2
	CRCLen      = 4
	MarkerLen   = 4
	MarkerEvery = 512 // distance of two markers in the TCP stream
)

// The keys of MPA request and reply frames.
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// MPA is an MPA request or reply frame (RFC 5044 s.7.1.1, RFC 6581 s.9).
//
//	offset width
//	0      128 bits key
//	16     1       M: the sender wants markers in the data it receives
//	16.1   1       C: the sender wants CRCs
//	16.2   1       R: the connection is rejected (in a reply)
//	16.3   1       S: enhanced, private data begins with IRD and ORD
//	16.4   4       reserved
//	17     8       revision: 1 or 2
//	18     16      length of the private data, at most 512
//	20     16, 16  IRD and ORD with their flags, if enhanced
type MPA struct {
	Reply       bool
	Markers     bool
	CRC         bool
	Reject      bool
	Enhanced    bool
	Reserved    uint8
	Revision    uint8
	IRD, ORD    uint16 // the whole 16-bit words, including flags
	PrivateData []byte // the consumer's private data after IRD and ORD; aliases the input
	Length      int    // length of the frame in bytes
}

// IsMPA reports whether data starts with the key of a request or reply frame.
func IsMPA(data []byte) bool {
	return len(data) >= len(RequestKey) && (string(data[:len(RequestKey)]) == RequestKey || string(data[:len(ReplyKey)]) == ReplyKey)
}

// Decode decodes a frame. Errors wrap [ErrTruncated] if more of the stream is needed, or
// [ErrMalformed].
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

// Append appends the encoded frame to b.
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

// FPDULen returns the length of an FPDU without markers (length field, ULPDU, pad to four bytes,
// CRC). The argument ulpdu is the length of the ULPDU.
func FPDULen(ulpdu int) int { return (LengthLen+ulpdu+3)&^3 + CRCLen }

// CRCResult is the result of checking an FPDU's CRC.
type CRCResult uint8

// The results of checking a CRC. CRCOff means that the field is zero, because CRCs were not
// negotiated.
const (
	CRCBad CRCResult = iota
	CRCOk
	CRCOff
)

// CheckCRC verifies the CRC at the end of a raw FPDU that includes its markers (RFC 5044 s.4.4).
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

// AppendFPDU appends an FPDU with the given ULPDU and its CRC, without markers.
func AppendFPDU(b, ulpdu []byte) []byte {
	at := len(b)
	b = append(be.AppendUint16(b, uint16(len(ulpdu))), ulpdu...)
	for (len(b)-at)%4 != 0 {
		b = append(b, 0)
	}
	return AppendCRC(b, b[at:])
}

// AppendCRC appends the CRC of an FPDU. The argument covered is everything before the CRC,
// including a marker that precedes the length field.
func AppendCRC(b, covered []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(covered, Castagnoli))
}

// Noted is an FPDU that a TCP segment completed, with the data that is needed to describe it.
type Noted struct {
	// a copy of the first bytes without markers: length field, DDP and RDMAP headers, and the start
	// of a Send
	Head   []byte
	Offset int // offset in the frame, -1 if the FPDU is not contiguous there
	ULPDU  int // length of the ULPDU in bytes
	CRC    CRCResult
}
