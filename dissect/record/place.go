package record

import "github.com/rdmadump/rdmadump/dissect/nfs"

// What follows says where everything stands, for those who rewrite packets: of
// two runs over the same frames with the same options it is the same.

// Place is where the payload of a packet stands among all that one direction of
// a connection sends.
type Place struct {
	// Lane counts the directions of connections from 1, requests and responses of
	// InfiniBand's transport apart; it is 0 where nobody knows the direction.
	Lane int64
	// At counts the packets of a lane of InfiniBand's transport by their PSNs, and
	// the bytes of a TCP stream. It goes on where these wrap, and may be negative.
	At int64
	// Dropped says that the receiver drops the packet, for its ICRC: nobody knows
	// what of it is as it was sent.
	Dropped bool
}

// Carried tells what a packet of InfiniBand's transport, or an FPDU, was taken
// to carry by its receiver. Its slice is good until the handler returns.
type Carried struct {
	Place
	Count int64 // of the lane: 1 packet, or the bytes of the FPDU with its markers

	// What its payload is: bytes of a Send, from Offset on, or of memory of a
	// transaction, at Offset under Handle. Send counts the operations of all
	// connections from 1; it is 0, and Transaction unknown, where it is neither.
	Send        int64
	Transaction Opt[int64]
	Handle      uint32
	Offset      uint64
	Bytes       int // on the wire

	// Of a TCP stream: what was captured of an FPDU, markers taken out, its
	// length first; or, where MPA is set, of an MPA request or reply.
	Frame    []byte
	MPA      bool
	Markers  bool
	Position int    // of its first byte, modulo the distance of markers
	HasCRC   bool   // all of it is there, and its CRC is not zero
	WrongCRC uint32 // its CRC exclusive-or the right one
}

// Stream is an RPC message as it was read: reduced, in a Send or in a chunk; or,
// where Item is set, a name that was taken out of one that came before, such as the
// target of a symbolic link. Its slices are good until the handler returns.
type Stream struct {
	Send     int64           // the [Carried] Send that holds it, 0: it stands in a chunk
	Header   []byte          // of a Send: its RPC-over-RDMA header, as far as that was read
	Segments []StreamSegment // of a chunk: the memory that it came through
	Payload  []byte          // what follows, as far as it is there in one piece
	RPC      bool            // that begins with the header of an RPC message

	Transaction                 Opt[int64]
	Reply                       bool
	Known                       bool // what the Call asks for: the three that follow
	Program, Version, Procedure uint32
	NFS4                        bool       // what is not known is taken for a COMPOUND
	Service                     uint32     // of RPCSEC_GSS, that the Call asked for; 0 for none
	Holes                       []nfs.Hole // Positions are in the unreduced stream; -1 of a Write chunk: only its protocol knows

	Item     bool
	Position int64 // of an item of a Call, in the unreduced stream
	Hole     int   // of an item of a Reply: which Write chunk
}

// StreamSegment is a piece of memory that a stream came through.
type StreamSegment struct {
	Handle uint32
	Offset uint64
	Length int64 // bytes of the stream
}
