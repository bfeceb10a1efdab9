package rpcrdma

import (
	"bytes"
	"fmt"
)

// PrivateDataLen is the length of the message in bytes, PrivateDataMagic its
// format identifier, DefaultInline the inline threshold in bytes of a peer that
// sends none (RFC 8797 s.4, RFC 8166 s.3.3.3).
const (
	PrivateDataLen   = 8
	PrivateDataMagic = 0xf6ab0e18
	DefaultInline    = 1024
)

var privateMagic = be.AppendUint32(nil, PrivateDataMagic)

// PrivateData is what a peer says of itself as a connection is made (RFC 8797
// s.4).
//
//	offset width
//	0      32 bits format identifier 0xf6ab0e18
//	4      8       version: 1
//	5      7       reserved, ignored
//	5.7    1       R: remote invalidation is supported
//	6      8       send size, in 1024 bytes less one
//	7      8       receive size, in 1024 bytes less one
type PrivateData struct {
	Offset             int // bytes before the format identifier
	Version            uint8
	Reserved           uint8 // 7 bits, 0 unless the sender is wrong
	RemoteInvalidation bool
	SendSize           int // bytes
	ReceiveSize        int // bytes
}

// FindPrivateData searches the consumer's private data for the message, at any
// alignment (RFC 8797 s.5.2). It is found only when its version is 1 and all
// eight bytes are there; found is false and err nil when the identifier is
// nowhere, and err says what is wrong with the first one when none is sound.
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
				err = fmt.Errorf("rpcrdma: private data needs %d bytes at offset %d, %d left: %w", PrivateDataLen, at, len(b), ErrTruncated)
			}
		case b[4] != 1:
			if err == nil {
				err = fmt.Errorf("rpcrdma: private data at offset %d has version %d, only 1 is known: %w", at, b[4], ErrMalformed)
			}
		default:
			return PrivateData{
				Offset: at, Version: b[4], Reserved: b[5] >> 1, RemoteInvalidation: b[5]&1 != 0,
				SendSize: (int(b[6]) + 1) * 1024, ReceiveSize: (int(b[7]) + 1) * 1024,
			}, true, nil
		}
	}
}

// Append appends the message as it stands on the wire, without what Offset
// counts before it.
func (p PrivateData) Append(b []byte) []byte {
	r := p.Reserved << 1
	if p.RemoteInvalidation {
		r |= 1
	}
	return append(append(b, privateMagic...), p.Version, r, byte(p.SendSize/1024-1), byte(p.ReceiveSize/1024-1))
}
