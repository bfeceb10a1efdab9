package record

import (
	"iter"
	"net/netip"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// Check says what came of holding a packet against its checksum.
type Check string

// The results.
const (
	Unchecked Check = "unchecked" // cut, or of a kind that has none
	Good      Check = "ok"
	Bad       Check = "bad"
)

// Packet is one frame, described. Its nodes alias the frame.
type Packet struct {
	Number     int64
	Time       Time
	Length     int // bytes on the wire
	Captured   int // bytes in the capture
	Src, Dst   netip.Addr
	SrcLID     uint16 // native InfiniBand
	DstLID     uint16
	Transport  string   // empty when the packet carries no RDMA
	Connection Opt[int] // null also of one that is not yet known to be one connection
	ICRC       Check
	StoredICRC Opt[Hex32] // the invariant CRC in the packet, as a big-endian number; null if it was not captured

	// Whose the packet is: what the RDMA layer did with it, and the RPC that
	// was for. Operation is empty and Transaction unknown where it is nobody's;
	// Nobodys says why.
	RDMAOperation       string // "Send", "RDMA Read"
	Transaction         Opt[int64]
	XID                 Opt[Hex32]
	Part                Part // of the RPC
	Marks               Marks
	Place               Place // of its payload
	NoTransactionReason UnassignedReason

	Summary []byte
	Data    []byte // the frame
	Nodes   []Node // headers and their fields, in wire order; see [Node]

	// Messages are the arguments and results that it has, where they were asked
	// for; what is reduced is not in them. They are good until the handler returns.
	Messages []*nfs.Message
}

// Clone is a copy, without Messages, that stays good when the handler has returned.
func (p *Packet) Clone() *Packet {
	c := *p
	c.Summary = slices.Clone(p.Summary)
	c.Data = slices.Clone(p.Data)
	c.Messages = nil
	c.Nodes = slices.Clone(p.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].Data = slices.Clone(c.Nodes[i].Data)
	}
	return &c
}

// AppendSource and AppendDestination append an end's address, "LID 2" on an
// InfiniBand link without one; nothing when it has none.
func (p *Packet) AppendSource(b []byte) []byte      { return AppendAddress(b, p.Src, p.SrcLID) }
func (p *Packet) AppendDestination(b []byte) []byte { return AppendAddress(b, p.Dst, p.DstLID) }

// AppendAddress appends an IP address, or a LID where there is none.
func AppendAddress(b []byte, ip netip.Addr, lid uint16) []byte {
	switch {
	case ip.IsValid():
		return ip.AppendTo(b)
	case lid != 0:
		return strconv.AppendUint(append(b, "LID "...), uint64(lid), 10)
	}
	return b
}

// NodeKind says what a node of a packet's tree is.
type NodeKind uint8

// The kinds of node: objects and lists enclose what follows, up to their end.
const (
	NodeObject NodeKind = iota
	NodeList
	NodeEndObject
	NodeEndList
	NodeHeader // an object whose fields are a table's: Table and Data say all
	NodeFields // the fields of a table, in the object that is open
	NodeText   // Text
	NodeNumber // Number
	NodeNull
	NodeValue // Text for people, Data as JSON
)

// Node is an element of a packet's tree, in the order of a walk through it.
type Node struct {
	Kind   NodeKind
	Name   string // JSON key; empty in a list
	Label  string // for people; empty when it is not for them
	Offset int    // in the frame, bytes; -1 when the node is none of its bytes
	Length int    // bytes
	Table  *field.Header
	Data   []byte // the bytes of the table; of a NodeValue, JSON
	Text   string
	Number int64
}

// Part says what of an RPC a packet carries, asks for or acknowledges.
type Part struct {
	Message EventKind // call or reply, of a Send; else it is of a chunk
	Chunk   Chunk     // the list; empty when it is not known
	Index   int       // of the chunk in its list
	Segment int       // in its chunk

	// Bytes [From, To) of the chunk, of Length that it has; empty where the packet
	// says nothing of them.
	From, To, Length int64
}

// Marks say what is odd about a packet: a set.
type Marks uint16

// The marks.
const (
	Retransmitted Marks = 1 << iota // it, or what it carries, was sent before
	OutOfOrder                      // it came after a later one
	AfterGap                        // one before it was missing: a receiver that keeps order drops it
	Refused                         // it is a NAK or Terminate
	BadICRC                         // its ICRC, or the CRC of an FPDU in it, is bad
	BadChecksum                     // its TCP checksum is bad
	Late                            // what it carries was given up as lost
)

var markNames = [...]string{"retransmitted", "out_of_order", "after_gap", "refused", "bad_icrc", "bad_checksum", "late"}

// Names are the marks in the set.
func (m Marks) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, name := range markNames {
			if m>>i&1 != 0 && !yield(name) {
				return
			}
		}
	}
}

// Values are all marks.
func (Marks) Values() []string { return markNames[:] }

// Nobodys says why a packet belongs to no transaction.
type UnassignedReason string

// The reasons.
const (
	NotRDMA             UnassignedReason = "not_rdma"          // it carries no RDMA, or no sense
	Handshake           UnassignedReason = "handshake"         // connection management, or a bare acknowledgement of TCP
	ReceiverDropped     UnassignedReason = "receiver_dropped"  // its receiver dropped it
	OtherUpperLayer     UnassignedReason = "other_upper_layer" // its connection carries no RPC-over-RDMA
	UnknownOperation    UnassignedReason = "unknown_operation" // what it is part of is not in the capture, or not any more
	NoTransaction       UnassignedReason = "no_transaction"    // what it is part of is for no RPC that is known
	FinishedTransaction UnassignedReason = "finished"          // the record of its RPC has gone out
)

// Values are all reasons.
func (UnassignedReason) Values() []string {
	return wordsOf(NotRDMA, Handshake, ReceiverDropped, OtherUpperLayer, UnknownOperation, NoTransaction, FinishedTransaction)
}
