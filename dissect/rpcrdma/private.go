package rpcrdma

import (
	"bytes"
	"fmt"
)

// PrivateDataLen is the length of the private data message in bytes, PrivateDataMagic
// its format identifier. DefaultInline is the inline threshold in bytes of a peer that
// sends no such message (RFC 8797 s.4, RFC 8166 s.3.3.3).
const (
	PrivateDataLen   = 8
	PrivateDataMagic = 0xf6ab0e18
	DefaultInline    = 1024
)

var privateMagic = be.AppendUint32(nil, PrivateDataMagic)

// PrivateData has the parameters that a peer announces when a connection is made (RFC
// 8797 s.4).
//
//	offset width
//	0      32 bits format identifier 0xf6ab0e18
//	4      8       version: 1
//	5      7       reserved, ignored
//	5.7    1       R: remote invalidation is supported
//	6      8       send size: value+1 units of 1024 bytes
//	7      8       receive size: value+1 units of 1024 bytes
type PrivateData struct {
	Offset             int // bytes before the format identifier
	Version            uint8
	Reserved           uint8 // 7 bits, which a conforming sender sets to 0
	RemoteInvalidation bool
	SendSize           int // bytes
	ReceiveSize        int // bytes
}

// FindPrivateData searches the private data of the consumer for the message, at any
// alignment (RFC 8797 s.5.2). The message is found only if its version is 1 and it has
// all eight bytes. If the format identifier does not occur, found is false and err is
// nil. If it occurs but no message is valid, err describes the first invalid one.
func FindPrivateData(data []byte) (p PrivateData, found bool, err error) {
	for at := 0; ; at++ {
		i := bytes.Index(data[at:], privateMagic)
		if i < 0 {
			return PrivateData{}, false, err
		}
		at += i
		b := data[at:]
		switch {
		case len(b) < PrivateDataLen:
			if err == nil {
				err = fmt.Errorf("private data %w: %d of %d bytes at offset %d", ErrTruncated, len(b), PrivateDataLen, at)
			}
		case b[4] != 1:
			if err == nil {
				err = unknownError(fmt.Sprintf("private data has unknown version %d (version 1 is defined)", b[4]))
			}
		default:
			return PrivateData{
				Offset: at, Version: b[4], Reserved: b[5] >> 1, RemoteInvalidation: b[5]&1 != 0,
				SendSize: (int(b[6]) + 1) * 1024, ReceiveSize: (int(b[7]) + 1) * 1024,
			}, true, nil
		}
	}
}

// Append appends the message in wire format, without the Offset bytes before it.
func (p PrivateData) Append(b []byte) []byte {
	r := p.Reserved << 1
	if p.RemoteInvalidation {
		r |= 1
	}
	return append(append(b, privateMagic...), p.Version, r, byte(p.SendSize/1024-1), byte(p.ReceiveSize/1024-1))
}
