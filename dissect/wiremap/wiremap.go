// Package wiremap describes where payload, messages and memory are in the packets of a capture, for
// programs that rewrite packets. Two runs over the same frames with the same options give the same
// values.
package wiremap

import (
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Observer receives what packets and messages contain. What it receives is valid until the method
// returns.
type Observer interface {
	// Payload receives the description of the payload of each packet and FPDU, once.
	Payload(p *Payload)
	// Message receives the messages of Calls and Replies as they are decoded.
	Message(m *Message)
}

// StreamOffset is the position of a packet's payload in the data that a direction of a connection sends.
type StreamOffset struct {
	// StreamID is the number of the direction. The directions of all connections are counted
	// from 1; with the InfiniBand transport, requests and responses count as two. It is 0 if
	// the direction is unknown.
	StreamID int64
	// At is the position in the direction: a PSN with the InfiniBand transport, or a byte of a
	// TCP stream, or the number of a UDP datagram. It continues when sequence numbers wrap, and it may be negative.
	At int64
	// Dropped reports whether the receiver drops the packet because of its ICRC, so that any
	// of its bytes may differ from those that were sent.
	Dropped bool
}

// Payload describes the payload of a packet of the InfiniBand transport, of an FPDU, of a part of a
// record of RPC over TCP, or of a UDP datagram, as its receiver interprets it.
type Payload struct {
	StreamOffset
	Count int64 // size in units of At: 1 packet or datagram, or the bytes of the FPDU with its markers, or of the part of a record

	// The payload is part of a Send, from Offset on, or of the memory of a transaction, at
	// Offset under Handle. Send is the number of the operation; the operations of all
	// connections are counted from 1. Send is 0 and Transaction is unknown if the payload is
	// neither.
	Send        int64
	Transaction record.Opt[int64]
	Handle      uint32
	Offset      uint64
	Bytes       int // on the wire

	// These are for TCP streams. Frame is the captured part of an FPDU without markers,
	// beginning with its length; or, if MPA is set, of an MPA request or reply.
	// If Record is set, the payload is a part of a record of RPC over TCP, or, with Frame, a record mark.
	Frame    []byte
	MPA      bool
	Record   bool
	Markers  bool
	Position int    // of the first byte, modulo the distance between markers
	HasCRC   bool   // the FPDU is complete, and its CRC is not zero
	WrongCRC uint32 // the CRC in the FPDU, exclusive-or the right one
}

// Message is an RPC message in the form in which it was transferred: reduced, in a Send or in a
// chunk. If Item is set, it is instead a name that was reduced from an earlier message, such
// as the target of a symbolic link.
type Message struct {
	Send     int64     // Send of [Payload] that contains the message; 0 if a chunk does
	Header   []byte    // RPC-over-RDMA header of the Send, as far as it was decoded; none on TCP and UDP
	Segments []Segment // memory of the chunk that contains the message
	Payload  []byte    // bytes after the header, up to the first missing one
	RPC      bool      // Payload begins with the header of an RPC message

	Transaction                 record.Opt[int64]
	Reply                       bool
	Known                       bool // the next three fields, which identify the procedure of the Call, are known
	Program, Version, Procedure uint32
	NFS4                        bool       // a message of an unknown procedure is decoded as the COMPOUND that these fields say
	Service                     uint32     // service of RPCSEC_GSS that the Call uses; 0 for none
	Holes                       []nfs.Hole // reduced items; positions are in the unreduced stream, and -1 for a Write chunk, whose position only the upper protocol defines

	Item     bool
	Position int64 // for an item of a Call, in the unreduced stream
	Hole     int   // for an item of a Reply, the index of its Write chunk
}

// Segment is a segment of memory through which a part of a stream was transferred.
type Segment struct {
	Handle uint32
	Offset uint64
	Length int64 // number of bytes of the stream
}
