package record

import (
	"iter"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// Check is the result of verifying a checksum.
type Check string

// The results.
const (
	Unchecked Check = "unchecked" // the packet is truncated, or has no such checksum
	Good      Check = "ok"
	Bad       Check = "bad"
)

// Packet is the description of one frame. Its nodes refer to the bytes of the frame.
type Packet struct {
	Number     int64
	Time       Time
	Start      Time // of the capture: the time of its first packet
	Length     int  // on the wire, in bytes
	Captured   int  // in the capture, in bytes
	Src, Dst   netip.Addr
	SrcLID     uint16 // only on native InfiniBand
	DstLID     uint16
	Hosts      *Hosts   // names of addresses; nil if there are none
	Transport  string   // empty if the packet carries no RDMA
	Connection Opt[int] // also unknown if the two directions are not yet known to be one connection
	ICRC       Check
	StoredICRC Opt[Hex32] // the invariant CRC in the packet, as a big-endian number; null if it was not captured

	// These are the RDMA operation that the packet is part of, and the RPC that the
	// operation belongs to. If the packet belongs to no RPC, Transaction is unknown and
	// NoTransactionReason gives the reason.
	RDMAOperation       string // "Send", "RDMA Read"
	Transaction         Opt[int64]
	XID                 Opt[Hex32]
	Program             Opt[uint32] // of the RPC; unknown if the capture does not contain the Call
	Part                Part        // of the RPC
	Marks               Marks
	Path                *Path // nil unless there are several capture points
	NoTransactionReason UnassignedReason

	Summary []byte
	Data    []byte // the frame
	Nodes   []Node // headers and their fields, in wire order; see [Node]

	// Messages are the arguments and results in the packet, if they were asked for,
	// without reduced data items. They are valid until the handler returns.
	Messages []Content
}

// Clone returns a copy without Messages that stays valid after the handler has returned.
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

// AppendSource appends the source address, or a LID such as "LID 2" on an InfiniBand link
// without addresses. It appends nothing if the packet has neither.
func (p *Packet) AppendSource(b []byte) []byte { return AppendAddress(b, p.Src, p.SrcLID) }

// AppendDestination appends the destination address or LID, as AppendSource does for the
// source.
func (p *Packet) AppendDestination(b []byte) []byte { return AppendAddress(b, p.Dst, p.DstLID) }

// Names returns the names of the sender and of the receiver, each empty if it has none.
func (p *Packet) Names() (src, dst string) {
	if p.Hosts == nil {
		return "", ""
	}
	return p.Hosts.Name(string(p.AppendSource(nil))), p.Hosts.Name(string(p.AppendDestination(nil)))
}

// AppendShown appends what texts show of an address that AppendSource or AppendDestination appends: the name if it has one.
func (p *Packet) AppendShown(b []byte, address func([]byte) []byte) []byte {
	if p.Hosts == nil {
		return address(b)
	}
	return append(b, p.Hosts.Shown(string(address(nil)))...)
}

// AppendAddress appends an IP address, or the LID if there is no IP address.
func AppendAddress(b []byte, ip netip.Addr, lid uint16) []byte {
	switch {
	case ip.IsValid():
		return ip.AppendTo(b)
	case lid != 0:
		return strconv.AppendUint(append(b, "LID "...), uint64(lid), 10)
	}
	return b
}

// NodeKind is the kind of a node of a packet's tree.
type NodeKind uint8

// The kinds of nodes. Objects and lists contain the nodes that follow, up to their end.
const (
	NodeObject NodeKind = iota
	NodeList
	NodeEndObject
	NodeEndList
	NodeHeader // an object with the fields of Table; Data has their bytes
	NodeFields // the fields of Table in the enclosing object; Data has their bytes
	NodeText   // a text, in Text
	NodeNumber // a number, in Number
	NodeNull
	NodeValue // a value, as Text for people and in Data as JSON
)

// Node is an element of a packet's tree. The nodes are in depth-first order.
type Node struct {
	Kind   NodeKind
	Name   string // JSON key; empty for an element of a list
	Label  string // name for people; empty if the node is only in JSON
	Offset int    // in the frame, in bytes; -1 if the node has no place in the frame
	Length int    // in bytes
	Table  *field.Header
	Data   []byte // bytes of the fields; JSON for a NodeValue
	Text   string
	Number int64
}

// Part is the part of an RPC that a packet carries, requests or acknowledges.
type Part struct {
	Message EventKind // call or reply for a Send, empty for a chunk
	Chunk   Chunk     // list that contains the chunk; empty if it is unknown
	Index   int       // index of the chunk in its list
	Segment int       // index of the segment in its chunk

	// The part is the bytes [From, To) of the chunk, which has Length bytes. From and To
	// are equal if the packet does not show which bytes.
	From, To, Length int64
}

// Marks is a set of unusual properties of a packet.
type Marks uint16

// The marks.
const (
	Retransmitted Marks = 1 << iota // the packet, or its payload, was sent before
	OutOfOrder                      // the packet was captured after a later one
	AfterGap                        // an earlier packet was missing; a receiver that requires order drops the packet
	Refused                         // the packet is a NAK or Terminate
	BadICRC                         // the ICRC, or the CRC of an FPDU in the packet, is bad
	BadChecksum                     // the TCP checksum is bad
	Late                            // the payload had been counted as missing from the capture
	LostOnPath                      // the packet was lost between the capture points
	DamagedOnPath                   // the packet was damaged between the capture points, so that its receiver dropped it
	Duplicated                      // a copy that no sender sent: the network made it, as several capture points show, or the capture has packets twice
	ChangedOnPath                   // the payload was changed between the capture points, and the TCP checksum with it, so that its receiver took the segment
)

var markNames = [...]string{"retransmitted", "out_of_order", "after_gap", "refused", "bad_icrc", "bad_checksum", "late", "lost_on_path", "damaged_on_path", "duplicated", "changed_on_path"}

// Names returns the names of the marks in the set.
func (m Marks) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for ; m != 0; m &= m - 1 {
			if !yield(markNames[bits.TrailingZeros(uint(m))]) {
				return
			}
		}
	}
}

// Values returns the names of all marks.
func (Marks) Values() []string { return markNames[:] }

// UnassignedReason is the reason why a packet belongs to no transaction.
type UnassignedReason string

// The reasons.
const (
	NotRDMA             UnassignedReason = "not_rdma"          // the packet carries no RDMA, or is malformed
	Handshake           UnassignedReason = "handshake"         // connection management, or a TCP segment without data
	ReceiverDropped     UnassignedReason = "receiver_dropped"  // the receiver dropped the packet
	OtherUpperLayer     UnassignedReason = "other_upper_layer" // the connection does not carry RPC-over-RDMA
	UnknownOperation    UnassignedReason = "unknown_operation" // the RDMA operation is not in the capture, or its state was evicted
	NoTransaction       UnassignedReason = "no_transaction"    // the RDMA operation belongs to no known RPC
	FinishedTransaction UnassignedReason = "finished"          // the record of the RPC was already complete
)

// Values returns all reasons.
func (UnassignedReason) Values() []string {
	return Words(NotRDMA, Handshake, ReceiverDropped, OtherUpperLayer, UnknownOperation, NoTransaction, FinishedTransaction)
}
