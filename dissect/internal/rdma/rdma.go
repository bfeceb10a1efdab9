// Package rdma follows RDMA connections: their handshakes, and the operations that
// their packets make, for InfiniBand's transport (RoCE and native InfiniBand) and for
// iWARP alike. PSNs, TCP and FPDUs do not leave this package, and it knows nothing
// about RPC.
//
// A [Tracker] takes packets and TCP segments. connections (connections.go, join.go)
// finds the connection of each and forgets connections that have ended, handshakes
// (cm.go) follows the connection manager, and icrcTrust (icrc.go) decides which packets
// with a bad ICRC are dropped. Package order puts the requests of a flow into the order in which their receiver accepts them, on both
// transports, and flow.go applies the facts that it reports, with packet.go for packets of InfiniBand's transport, and with stream.go
// for TCP segments, whose framer (fpdu.go, rpc.go) finds out what they carry. A flow makes operations of the requests (assembly.go), and its ledger
// decides which captured copy of a request was accepted (ledger.go, delivery.go). Package cause decides why a request was
// retransmitted. Each connection reports its events to a [Follower].
package rdma

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/internal/path"
	"github.com/rdmadump/rdmadump/dissect/internal/sent"
	"github.com/rdmadump/rdmadump/dissect/internal/span"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// Side is one end of a connection: 0 or 1, in the order in which they were found. If
// the handshake was captured, 0 is the client.
type Side uint8

// Other returns the opposite side.
func (s Side) Other() Side { return 1 - s }

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operations.
const (
	Send Kind = iota
	Write
	Read
	Atomic
)

var kindNames = [...]string{"Send", "RDMA Write", "RDMA Read", "Atomic"}

// String returns the name of the kind, such as "RDMA Write".
func (k Kind) String() string { return kindNames[k] }

// Tag identifies the upper-layer object that an operation belongs to. This package does
// not interpret it; 0 means none. It is not a pointer, because the object may be freed
// before the operation is.
type Tag uint64

// Operation is a work request of a requester. Acknowledgements, refusals and
// retransmissions are events of it. An upper layer keeps no pointer to it after the
// method that received the pointer returns.
type Operation struct {
	Tag          Tag    // set by the upper layer
	Number       int64  // position among the operations of all connections, from 1
	Seq          uint64 // position among the requests of Side, from 1
	Side         Side   // the requester
	Kind         Kind
	Broken       bool               // a part of it was not captured
	Cut          bool               // Send, Write: a packet of it was truncated in the capture, so that its checksum cannot be verified
	Announced    bool               // the first packet contained Length
	sentSeen     bool               // with several capture points: the first packet was captured when it left its sender
	notDelivered bool               // see NotDelivered
	done, acked  bool               // done: no more packets of it are expected; acked: the other side received it
	ledgers      int8               // number of ledgers that contain it
	class        uint8              // Send: traffic class of its first packet
	Handle       uint32             // Read, Write, Atomic: handle of the other side's memory
	from         uint32             // InfiniBand: PSN of its first packet
	Offset       uint64             // Read, Write, Atomic: offset in that memory
	Length       int64              // bytes: announced; of a Send or an iWARP Write, the bytes captured so far
	Invalidates  record.Opt[uint32] // Send With Invalidate
	Payload      []byte             // Send: its captured bytes, valid only while it is Done
	Word         record.Opt[uint32] // Send: its first four bytes, big-endian
	Bytes        int64              // bytes that were moved, each counted once
	Packets      int64              // packets that carried it or its response, each counted once
	First, Last  record.Stamp       // the first and the last of these packets
	Again        int64              // Read: bytes that its latest retransmission requests

	conn  *Conn
	size  int32  // InfiniBand Write: bytes of each packet but the last
	Bad   bool   // Send: a packet had a bad ICRC, and was accepted because its sender was not yet known to fill ICRCs in
	count uint32 // number of its PSNs; 0 for a Read of unknown extent
	msn   uint32 // iWARP Send: its message sequence number

	life      *life     // nil if no record is wanted
	copies    copies    // copies of the packet that ends the operation
	*response           // for a Read; may be nil for other operations
	disorder  *disorder // nil if all packets came in order
}

// disorder is the first packet of an operation that came before a packet that it had to
// follow, and the packet that filled the gap. A receiver that requires order drops the
// first one. damaged is an earlier copy of the operation.
type disorder struct {
	early, filled, damaged record.Stamp
	gone                   bool  // the earlier copy was lost between capture points
	index                  int64 // of early in a response; filled follows it in the capture, and precedes it in the response
}

// DSCP returns the differentiated services code point of the first packet of a Send. It is unknown if the transport has no IP header.
func (o *Operation) DSCP() record.Opt[uint8] {
	switch o.conn.setup.Transport {
	case RoCEv1, InfiniBand:
		return record.Opt[uint8]{}
	}
	return record.Some(o.class >> 2)
}

// Disorder returns the first packet of the operation that came before a packet that it
// had to follow, and the packet that filled the gap. A receiver that requires order
// drops the early packet. The packet numbers are 0 if all packets came in order.
func (o *Operation) Disorder() (early, filled record.Stamp) {
	if o.disorder != nil {
		early, filled = o.disorder.early, o.disorder.filled
	}
	return early, filled
}

// RequestedAgain returns the latest retransmission of the request of a Read, to which Again belongs.
// The packet number is 0 if there was none.
func (o *Operation) RequestedAgain() (at record.Stamp) {
	if o.response != nil {
		at = o.again
	}
	return at
}

// Damaged returns the first copy of a Send if that copy had a bad ICRC, so that its receiver dropped it, or was lost
// between capture points. The packet number is 0 if there was none. Without several capture points, only the copies of
// a Send in one packet are known.
func (o *Operation) Damaged() (at record.Stamp) {
	if o.disorder != nil {
		at = o.disorder.damaged
	}
	return at
}

// FirstLost reports whether the copy that Damaged returns was lost.
func (o *Operation) FirstLost() bool { return o.disorder != nil && o.disorder.gone }

// NotDelivered reports whether the captures at several points show that no copy of a request came to its receiver in
// order before the connection ended.
func (o *Operation) NotDelivered() bool { return o.notDelivered }

// response is the captured part of a Read's response.
type response struct {
	seen    span.Set     // packets (InfiniBand) or bytes (iWARP) that were captured
	initial [2]span.Span // initial storage of seen
	times   *ReadTimes   // with several capture points
	again   record.Stamp // its latest retransmitted request, which sets Again
	taken   int64        // packets at the beginning of the response, up to the first gap
	latest  int64        // packets up to the last one that came
	early   few          // packets that were captured only before they came to the requester
	sinkAt  uint64       // iWARP: offset of the requester's own memory; sink is its STag
	sink    uint32
	spans   int32 // spans that were charged to the budget
}

// few is a set of numbers that are near each other.
type few struct {
	from int64
	bits uint64
}

// add adds a number that is not below from, below which no number matters any more. It forgets one that is too far from the others.
func (s *few) add(from, n int64) {
	if s.bits == 0 || from-s.from >= 64 {
		*s = few{from: from}
	}
	if n -= s.from; n >= 0 && n < 64 {
		s.bits |= 1 << n
	}
}

func (s *few) has(n int64) bool {
	n -= s.from
	return n >= 0 && n < 64 && s.bits>>n&1 != 0
}

// Whole reports whether a Send was captured from its first packet to its last.
func (o *Operation) Whole() bool { return o.done && !o.Broken }

// Refusal is a NAK or a Terminate. Op is nil if the operation is not known; Kind,
// Handle, Offset and Length are then the values in the refusing packet.
type Refusal struct {
	Op     *Operation
	Later  bool               // Op was not refused itself, but follows the refused operation, so it was not accepted
	Fatal  bool               // the connection ends with it
	Taken  int64              // bytes of Op before the refused packet
	By     Side               // the side that refuses
	Kind   Kind               // kind of the refused operation
	Handle record.Opt[uint32] // unknown for a Send
	Offset uint64
	Length uint32
	At     record.Stamp
	Reason string // "RNR", "remote access error"
	Text   string // text of the finding; empty if no rule is violated

	NotReady bool // no receive buffer was posted
	TooLong  bool // the refused Send may be longer than its receive buffer
}

// Event is something that happened to an operation.
type Event struct {
	What  EventKind
	By    Side // Retransmitted, Damaged, DamagedNak: the sender of the packet
	Op    *Operation
	At    record.Stamp // Acked, Retransmitted, Damaged, DamagedNak: the packet that shows it
	Burst *Burst       // Retransmitted, Damaged: the burst that a request belongs to; nil for a response
	Gone  bool         // Retransmitted: the packet was lost or damaged between capture points; a Lost event says so, too
	Loss  *Loss        // Lost: the packet
}

// EventKind is what happened to an operation.
type EventKind uint8

// What can happen to an operation.
const (
	Began         EventKind = iota // the first packet of a Read, Write or Atomic was accepted
	Done                           // it is complete, or Broken
	Acked                          // the other side received it; on iWARP, it may still be refused
	Retransmitted                  // a packet of it, or of its response, was retransmitted
	Damaged                        // a request of it was retransmitted with a bad ICRC, so the receiver drops it
	Lost                           // a packet of it, or of its response, was lost or damaged between capture points
	DamagedNak                     // a NAK that names it has a bad ICRC, so its receiver drops the NAK
	Abandoned                      // a Read will never be Done
	Arrived                        // it was captured when it came to its receiver, with several capture points, and no acknowledgement came back
)

// Standing says what an operation belongs to.
type Standing uint8

// The standings.
const (
	Unassigned Standing = iota // nothing, or an object that is forgotten
	Open                       // an object that waits for other operations
	Ended                      // an object that waits for nothing
)

// Name is what a packet names on the other side: the outstanding Call with an XID, or a
// range of memory.
type Name struct {
	Kind   Kind   // Send for a Call
	Handle uint32 // of the memory, or the XID
	Offset uint64
	Length uint32
}

// UpperLayer is the protocol that uses the operations.
type UpperLayer interface {
	// Follow returns the follower of a new connection, never nil, which may charge its
	// memory to share. It may set the tag of l. It is also called for connections of which only one direction was
	// captured.
	Follow(l Link, share *budget.Share) Follower
	// ServerPort reports whether a port is likely to be a server's. It is used if the
	// handshake was not captured.
	ServerPort(port uint16) bool
	// RPCPort returns what a TCP or UDP port is used for.
	RPCPort(udp bool, port uint16) PortKind
}

// Link is a connection, as far as an upper layer may ask about it. Everything that it asks is here; a [Conn] implements it.
type Link interface {
	// Tag returns what SetTag set: it identifies what the upper layer knows of the connection. 0 means nothing.
	Tag() Tag
	SetTag(Tag)

	Setup() *Setup
	Host(Side) *Host

	// What the capture has of the connection.
	Gaps(Side) rule.Gap
	Complete() bool
	Lacks() bool
	Acknowledges(Side) bool
	SeveralPoints() bool

	// What happened on the way of its packets.
	WayOf(Side) *path.Way
	Ways() path.Ways
	Counts() path.Counts
	LossesBefore(Side, sent.Before) []Loss
	LostOperation(Side, *Loss) *Operation

	// Accepted decides which copies of a side's requests were accepted; no other question changes the answers of later ones.
	Accepted(s Side, seq uint64, at record.Stamp) (d Delivery, known bool)
	Unanswered(s Side, seq uint64) (o *Operation, latest record.Stamp)

	// What the upper layer tells the connection.
	Report(r *rule.Rule, where Where, format string, args ...any)
	SetClient(Side)
	WantSends(bool)
	Disorder()
	Decide() int
}

// Follower receives the events of one connection, each once, in the order in which the
// receiver accepts the operations. Its state belongs to this connection only. It keeps
// no pointer and no slice that it receives.
type Follower interface {
	// Private passes the complete private data of a side's handshake message. It is not
	// called if the capture does not have all of it. badICRC is set if the packet has a bad
	// ICRC.
	Private(s Side, data []byte, at record.Stamp, badICRC bool)
	// Operation takes an event of an operation, and returns what the operation belongs
	// to. If the operation Began or is Done, Operation may set its Tag.
	Operation(e Event) Standing
	// Moved reports n bytes, of which data was captured, at an offset of the memory
	// that o names. It is called only if o has a Tag.
	Moved(o *Operation, offset uint64, data []byte, n int)
	// Refused reports the refused operation, and then all Later operations in the order
	// of their Seq.
	Refused(r *Refusal)
	// Changed reports that the network changed a TCP segment, and its checksum with it. o is nil if it belongs to no
	// known operation.
	Changed(o *Operation, at record.Stamp)
	// Owner returns the tag of the object of a side that has a name, 0 for none.
	Owner(s Side, n Name) Tag

	// Join takes over the state of the follower of old, a connection without an ID. The
	// side from of old is the side to of this connection.
	Join(old Link, from, to Side)
	// Closing reports that a side, or an unknown one, began to end the connection.
	// Later packets still belong to it.
	Closing()
	// Closed reports that no more events follow, and how the connection ended; how is nil
	// if it did not.
	Closed(at record.Stamp, how *Ending)
	// Finish fills in the follower's part of the record, which is nil if no record is
	// wanted. It is the last call.
	Finish(r *record.Connection)
	// Describe fills in the follower's part of the record of a connection that is still open.
	Describe(r *record.Connection)
	// Evict frees the oldest object of a kind, and reports whether there was one.
	Evict(k budget.Kind) bool
}

// Address is one end of a link: an IP address or GID, on native InfiniBand a LID, or
// both.
type Address struct {
	IP  netip.Addr
	LID uint16
}

// String returns the IP address, or the LID if there is no IP address.
func (a Address) String() string { return string(record.AppendAddress(nil, a.IP, a.LID)) }

// PacketVerdict is the result of taking a packet: its connection, its operation, and
// how the receiver treated it.
type PacketVerdict struct {
	Conn *Conn      // nil if the packet belongs to no connection
	Op   *Operation // nil if the packet belongs to no known operation
	Tag  Tag        // the tag of the packet's memory, if Op is nil
	Mark record.Marks

	// From and To are the range [From, To) of the memory that Op names, which the
	// packet moves or requests. The range is empty if it is not known, or if the packet
	// moves nothing.
	From, To uint64

	Offset wiremap.StreamOffset // of its payload; see [Tracker.Offsets]
	// Records are the record marks of RPC over TCP in the segment, valid until the next
	// segment; see [Tracker.KeepFPDUs].
	Records []RecordAt

	FPDUs []iwarp.Noted // iWARP: the FPDUs that the segment completes, valid until the next segment; see [Tracker.KeepFPDUs]
}
