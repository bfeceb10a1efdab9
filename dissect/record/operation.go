package record

import (
	"slices"
	"unsafe"
)

// OperationKind is the kind of an RDMA operation.
type OperationKind string

// The kinds.
const (
	SendOperation   OperationKind = "send"
	WriteOperation  OperationKind = "rdma_write"
	ReadOperation   OperationKind = "rdma_read"
	AtomicOperation OperationKind = "atomic"
)

// Values returns all kinds.
func (OperationKind) Values() []string {
	return Words(SendOperation, WriteOperation, ReadOperation, AtomicOperation)
}

// OperationStatus is what the capture shows of the end of an RDMA operation.
type OperationStatus string

// The ends.
const (
	OperationComplete   OperationStatus = "complete"   // all of it was captured
	OperationIncomplete OperationStatus = "incomplete" // a part of it was not captured
	OperationRefused    OperationStatus = "refused"    // a NAK or a Terminate refused it, or one before it, and the connection ended

	OperationUnacknowledged OperationStatus = "not_acknowledged" // it was retransmitted, and never acknowledged, although others were
)

// Values returns all ends.
func (OperationStatus) Values() []string {
	return Words(OperationComplete, OperationIncomplete, OperationRefused, OperationUnacknowledged)
}

// RDMAOperation is one operation of the RDMA layer, of any upper layer: a Send, an RDMA Write, an
// RDMA Read or an Atomic.
type RDMAOperation struct {
	CompletedAt       `json:"-"`
	Type              string          `json:"type" doc:"The record's type, always \"rdma_operation\"." values:"rdma_operation"`
	ID                int64           `json:"id" doc:"Operation number: RDMA operations are counted from 1, in the order of their first packets."`
	Connection        int             `json:"connection" doc:"Connection number: the connection that carried the operation." alias:"conn"`
	Client            Opt[string]     `json:"client" doc:"Address of the client; null if the capture does not show it." secret:"address"`
	Server            Opt[string]     `json:"server" doc:"Address of the server; null if the capture does not show it." secret:"address"`
	ClientName        string          `json:"client_name,omitzero" doc:"Name of the client; present only if the file of --hosts has its address." secret:"machine"`
	ServerName        string          `json:"server_name,omitzero" doc:"Name of the server; present only if the file of --hosts has its address." secret:"machine"`
	Kind              OperationKind   `json:"kind" doc:"Kind of the operation: send, rdma_write, rdma_read or atomic."`
	Side              End             `json:"side" doc:"The side that requested the operation; the client is the end that opened the connection."`
	Status            OperationStatus `json:"status" doc:"What the capture shows of the end of the operation: complete (all of it), incomplete (a part is missing), refused (a NAK or a Terminate refused it, or one before it, and the connection ended), not_acknowledged (it was retransmitted, and never acknowledged, although others were)."`
	Handle            Opt[Hex32]      `json:"handle" doc:"Handle (R_key or STag) of the memory of the other side; null for a Send."`
	Offset            Opt[Hex64]      `json:"offset" doc:"Offset in that memory; null for a Send."`
	Invalidates       Opt[Hex32]      `json:"invalidates" doc:"Handle that a Send With Invalidate invalidates; null for other operations."`
	Bytes             int64           `json:"bytes" doc:"Number of bytes that the capture shows being moved, each counted once."`
	Requested         Opt[int64]      `json:"bytes_requested" doc:"Number of bytes that the request announced; null for a Send, and for an RDMA Write that does not say it."`
	Packets           int64           `json:"packets" doc:"Number of packets that carried the operation or its response, without retransmissions."`
	Packet            int64           `json:"packet" doc:"Packet number: the first packet of the operation." alias:"frame.number"`
	LastPacket        int64           `json:"last_packet" doc:"Packet number: the last packet of the operation, or of its response."`
	Sent              Time            `json:"sent" doc:"Time of the operation's first packet." alias:"time,frame.time"`
	Delivered         Opt[Time]       `json:"delivered" doc:"Time at which the receiver accepted the operation; null if the capture does not show it. A response to an RDMA Read or an Atomic is delivered with its last packet."`
	Acknowledged      Opt[Time]       `json:"acknowledged" doc:"Time of the packet that acknowledged the operation, or that completed the response to it; null if the capture does not show it."`
	LatencyNS         Opt[int64]      `json:"latency_ns" doc:"Time from the operation's first packet to the acknowledgement, in nanoseconds." alias:"latency"`
	Retransmitted     int64           `json:"retransmitted" doc:"Number of packets of the operation, or of its response, that were retransmitted." alias:"retr"`
	RetransmittedFrom FromPair        `json:"retransmitted_from,omitzero" doc:"Senders of these packets; the client is the end that opened the connection; present only if there were any."`
	StalledNS         int64           `json:"stalled_ns" doc:"Sum of the stalls, in nanoseconds."`
	Waits             []Wait          `json:"waits" doc:"Stalls: times in which the operation made no progress until a retransmission, each with its reason."`
	Transaction       Opt[int64]      `json:"transaction" doc:"Transaction number (id): the RPC that the operation belongs to; null on connections of other upper layers, and if the operation belongs to none."`

	Key    Opt[Hex64] `json:"-"` // that of the record of the connection
	AtMost bool       `json:"-"` // LatencyNS is an upper bound: packets are missing before the acknowledgement
}

// Clone returns a copy that stays valid after the handler has returned.
func (r *RDMAOperation) Clone() *RDMAOperation {
	c := *r
	c.Waits = slices.Clone(r.Waits)
	return &c
}

// CloneBytes returns the number of bytes of memory that a Clone takes.
func (r *RDMAOperation) CloneBytes() int {
	n := unsafe.Sizeof(*r) + listBytes(r.Waits)
	for i := range r.Waits {
		n += listBytes(r.Waits[i].Packets)
	}
	return int(n)
}
