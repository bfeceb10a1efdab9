// Package rdma says what the RDMA layer did: connections and their handshakes,
// packets made into operations, for InfiniBand's transport (RoCE, native) and for
// iWARP alike. PSNs, TCP and FPDUs stay in here; it knows nothing of RPC.
//
// The way through it: a [Tracker] takes packets and TCP segments. join.go finds
// the connection of each, cm.go and mpa.go follow the handshakes. packet.go
// (InfiniBand) and stream.go, fpdu.go (iWARP) put them in the order in which the
// receiver takes them, with window.go, and make operations of them in
// operation.go. What happened is told to a [Follower], one per connection.
package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Side is one end of a connection: 0 or 1, as they were found. Where the
// handshake is known, 0 is the client.
type Side uint8

// Other is the end across.
func (s Side) Other() Side { return 1 - s }

// Kind is what an operation does.
type Kind uint8

// The kinds of operation.
const (
	Send Kind = iota
	Write
	Read
	Atomic
)

var kindNames = [...]string{"Send", "RDMA Write", "RDMA Read", "Atomic"}

// String is the name of the kind, "RDMA Write".
func (k Kind) String() string { return kindNames[k] }

// Tag is the note of whoever is above: opaque here, 0 for nobody's. It is no
// pointer, since what it names may be gone first.
type Tag uint64

// Operation is a requester's work request. Acknowledgements, refusals and repeats
// are events of it. It is used again when nothing can happen to it any more; a
// pointer to it is good until the method that gets it returns.
type Operation struct {
	Tag         Tag                // set by whoever is above
	Number      int64              // counts the operations of all connections, from 1
	Seq         uint64             // counts the requests of Side, from 1
	Side        Side               // the requester
	Kind        Kind               //
	Broken      bool               // part of it is not in the capture
	Cut         bool               // Send, Write: the capture has cut packets of it, so that nobody can tell whether their checksums were good
	Announced   bool               // the wire told Length when it began
	done, acked bool               // nothing more of it is expected; the other end has it
	ledgers     int8               // how many ledgers it stands in
	Handle      uint32             // Read, Write, Atomic: of the other side's memory
	from        uint32             // InfiniBand: PSN of its first packet
	Offset      uint64             // Read, Write, Atomic: in that memory
	Length      int64              // bytes: announced; of a Send or an iWARP Write what was seen so far
	Invalidates record.Opt[uint32] // Send With Invalidate
	Payload     []byte             // Send: what was captured of it; good in Done only
	Word        record.Opt[uint32] // Send: its first four bytes, big-endian
	Bytes       int64              // moved, each once
	Packets     int64              // that carried it or its response, each once
	First, Last record.Stamp       // of those packets
	Again       int64              // Read: bytes that the latest repeat asks for

	conn  *Conn
	size  int32  // InfiniBand Write: bytes of each packet but the last
	Bad   bool   // Send: a packet's ICRC was bad, of a sender of whom nobody knew yet whether he fills them in
	count uint32 // PSNs that it takes; 0: a Read of unknown extent
	msn   uint32 // iWARP Send: its message sequence number

	copies    copies    // of the packet that ends it
	*response           // of a Read; others may have none
	disorder  *disorder // nil while all of it came in order
}

// disorder is a packet that came before one that it had to follow, which a receiver
// that keeps order drops, and that one.
type disorder struct{ early, filled record.Stamp }

// Disorder is a packet of an operation that came before one that it had to follow: a
// receiver that keeps order drops it; and that one. They have no number where there
// was none.
func (o *Operation) Disorder() (early, filled record.Stamp) {
	if o.disorder != nil {
		early, filled = o.disorder.early, o.disorder.filled
	}
	return early, filled
}

// response is what a Read's response is held against.
type response struct {
	seen   span.Set     // packets (InfiniBand) or bytes (iWARP) of it
	room   [2]span.Span // what seen begins in
	taken  int64        // packets from the first on without a gap
	sinkAt uint64       // iWARP: STag and offset of the requester's own memory
	sink   uint32
	spans  int32 // that were charged
}

// Whole says that all of a Send has come.
func (o *Operation) Whole() bool { return o.done && !o.Broken }

// Refusal is a NAK or a Terminate. Op is nil when the operation is not known (any
// more): Kind, Handle, Offset, Length are then what the wire says of it.
type Refusal struct {
	Op     *Operation
	Later  bool               // not blamed: it came behind what is, so nobody took it
	Fatal  bool               // the connection does not survive it
	Taken  int64              // bytes of Op's that came before the packet that is refused
	By     Side               // who refuses
	Kind   Kind               // what it refuses
	Handle record.Opt[uint32] // unknown of a Send
	Offset uint64
	Length uint32
	At     record.Stamp
	Reason string // "RNR", "remote access error"
	Text   string // what a finding says of it; empty when no rule is broken

	NotReady bool // no receive buffer was posted
	TooLong  bool // what is refused may be longer than its receive buffer
}

// UpperLayer is what operations are for.
type UpperLayer interface {
	// Follow is asked for every connection, half-seen ones too. It is never nil.
	Follow(c *Conn) Follower
	// ServerPort is a guess at who serves, where the handshake is missing.
	ServerPort(port uint16) bool
}

// Follower is told what happens on one connection, in the order in which the
// receiver takes it, each thing once. All state of it is that connection's. It
// keeps no pointer and no slice that it gets.
type Follower interface {
	// Private is what a side said of itself as the connection was made, whole.
	// It is not called when that is not in the capture.
	Private(s Side, data []byte, at record.Stamp)
	// Began tells of a Read, Write or Atomic. It may set o.Tag.
	Began(o *Operation)
	// Moved tells of n bytes, of which data was captured, at an offset of the
	// memory that o names. It is called only for an o with a Tag.
	Moved(o *Operation, offset uint64, data []byte, n int)
	// Done tells that o is whole, or Broken. It may set o.Tag.
	Done(o *Operation)
	// Acked tells that the other side has received o. What is not final may
	// still be refused.
	Acked(o *Operation, at record.Stamp, final bool)
	// Repeated reports that a packet of o, or of its response, was retransmitted,
	// and returns whether o belongs to something. b is the burst that a
	// retransmitted request belongs to, nil for a response.
	Repeated(o *Operation, by Side, at record.Stamp, b *Burst) (taken bool)
	// Refused tells of what is blamed, then of all that is Later, by Seq.
	Refused(r *Refusal)
	// Abandoned tells that a Read will never be Done, and asks whether what is
	// missing of its response is lost from the capture.
	Abandoned(o *Operation) (lost bool)

	// Knows says whether a Call of s with this XID is open (Send), or this is
	// memory of s, all of it.
	Knows(s Side, k Kind, xidOrHandle uint32, offset uint64, length uint32) bool
	// Whose is the tag of what exposes memory of s at an offset; 0 for none.
	Whose(s Side, handle uint32, offset uint64) Tag
	// Join takes over what f, of an undecided connection, had. Its side from is
	// now to.
	Join(f Follower, from, to Side)

	// Closing tells that a side, or nobody known, has begun to end the
	// connection. What still comes belongs to it.
	Closing(at record.Stamp)
	// Closed tells that nothing will come any more.
	Closed(at record.Stamp)
	// Finish fills in the follower's part of the record, nil when nobody wants it. It
	// is the last call.
	Finish(r *record.Connection)
	// Evict lets go of the oldest of a kind, and says whether there was one.
	Evict(k budget.Kind) bool
}

// Address is one end of a link: an IP address or GID, or on native InfiniBand a
// LID, or both.
type Address struct {
	IP  netip.Addr
	LID uint16
}

// String is the IP address, or the LID.
func (a Address) String() string { return string(record.AppendAddress(nil, a.IP, a.LID)) }

// Happened says what the packet at hand was.
type PacketVerdict struct {
	Conn *Conn      // nil for none
	Op   *Operation // nil for none
	Tag  Tag        // what it is for, where there is no Op yet
	Mark record.Marks

	// What it moves, or asks to be moved, of the memory that Op names: bytes
	// [From, To), empty where that is not known, or nothing.
	From, To uint64

	Place record.Place // of its payload
}
