package dissect

import "github.com/rdmadump/rdmadump/dissect/record"

// What is under way is kept in the types below, and handed out as the records
// of package record: see convert.go.

// Those that are the same.
type (
	Time             = record.Time
	Hex24            = record.Hex24
	Hex32            = record.Hex32
	Hex64            = record.Hex64
	Segment          = record.Segment
	ReadChunk        = record.ReadChunk
	VersionRange     = record.VersionRange
	PrivateData      = record.PrivateData
	PrivateDataPair  = record.PrivateDataPair
	InlineThresholds = record.InlineThresholds
)

// The directions of a transaction (RFC 8167).
const (
	Forward  = "forward"
	Backward = "backward"
)

// The states in which a transaction ends.
const (
	StatusComplete  = "complete"
	StatusNoReply   = "no_reply"
	StatusNoCall    = "no_call"
	StatusRDMAError = "rdma_error"
)

// Transaction is one RPC: a Call, what it exposed, what moved, its Reply.
type Transaction struct {
	Type          string        `json:"type"`
	ID            int64         `json:"id"` // counts from 1, in the order of the Calls
	Connection    int           `json:"connection"`
	XID           Hex32         `json:"xid"`
	Direction     string        `json:"direction"`
	Status        string        `json:"status"`
	Program       *uint32       `json:"program"`
	ProgramName   *string       `json:"program_name"`
	Version       *uint32       `json:"version"`
	Procedure     *uint32       `json:"procedure"`
	ProcedureName *string       `json:"procedure_name"`
	Operations    []string      `json:"operations"` // NFSv4 only
	Operation     *string       `json:"operation"`  // which of them the COMPOUND is for
	Credential    *string       `json:"credential"` // flavor of the Call's
	RPCStatus     *string       `json:"rpc_status"`
	NFSStatus     *string       `json:"nfs_status"`
	Call          *Message      `json:"call"`
	Reply         *Message      `json:"reply"`
	ReadChunks    []ReadChunk   `json:"read_chunks"`
	WriteChunks   []WriteChunk  `json:"write_chunks"`
	ReplyChunk    *WriteChunk   `json:"reply_chunk"`
	Invalidation  *Invalidation `json:"invalidation"`
	// NotInvalidated lists the handles that the Call exposed and its Reply
	// did not invalidate, each once.
	NotInvalidated []Hex32       `json:"not_invalidated"`
	Timeline       []Event       `json:"timeline"`
	LatencyNS      *int64        `json:"latency_ns"` // first packet of the Call to last of the Reply
	Phases         *Phases       `json:"phases"`     // what the latency is made of
	RDMAError      *string       `json:"rdma_error"` // "ERR_VERS", "ERR_CHUNK"
	RDMAErrorRange *VersionRange `json:"rdma_error_versions"`
	RetransmitOf   *int64        `json:"retransmit_of"` // id of the transaction that this one repeats
	Retransmitted  int           `json:"retransmitted"` // packets of it that were sent again
	Findings       []string      `json:"findings"`      // rules, each once
}

// Phases split the latency into what the wire shows; together they are all of it.
// A phase that did not happen is null.
type Phases struct {
	ToReadNS  *int64 `json:"to_read_ns"`  // Call to first RDMA Read
	ReadNS    *int64 `json:"read_ns"`     // first RDMA Read to the last response
	ToWriteNS *int64 `json:"to_write_ns"` // from there, or the Call, to the first RDMA Write
	WriteNS   *int64 `json:"write_ns"`    // first RDMA Write to the last packet of the last
	ToReplyNS *int64 `json:"to_reply_ns"` // from there, or the Call, to the Reply's last packet
}

// Message is one side of a transaction, as the Send carried it.
type Message struct {
	Time         Time   `json:"time"`        // of its first packet
	Packet       int64  `json:"packet"`      // its first packet
	LastPacket   int64  `json:"last_packet"` // its last
	RDMAVers     uint32 `json:"rdma_vers"`
	RDMAProc     string `json:"rdma_proc"`
	Credits      uint32 `json:"credits"`       // requested by a Call, granted by a Reply
	HeaderBytes  *int   `json:"header_bytes"`  // of the RPC-over-RDMA header
	SendBytes    *int   `json:"send_bytes"`    // of the Send's payload
	PayloadBytes *int64 `json:"payload_bytes"` // of the whole, unreduced Payload stream
	Form         string `json:"form"`          // "short", "chunked", "long"

	lastTime Time
}

// WriteChunk is a Write chunk or Reply chunk.
type WriteChunk struct {
	Segments []WriteSegment `json:"segments"`
}

// WriteSegment is a segment that the responder fills.
type WriteSegment struct {
	Handle         Hex32   `json:"handle"`
	Length         uint32  `json:"length"`
	Offset         Hex64   `json:"offset"`
	ReturnedLength *uint32 `json:"returned_length"` // null without a Reply that reports it
	MovedBytes     int64   `json:"moved_bytes"`
}

// Invalidation is what a Send With Invalidate did. Chunk and Segment are null
// when the handle is none that the Call exposed.
type Invalidation struct {
	Handle  Hex32   `json:"handle"`
	Packet  int64   `json:"packet"`
	Chunk   *string `json:"chunk"` // "read", "write", "reply"
	Index   *int    `json:"index"` // of the chunk in its list
	Segment *int    `json:"segment"`
}

// Event is a step of a timeline. Which of the optional fields are there depends
// on the event.
type Event struct {
	Time       Time   `json:"time"`
	Packet     int64  `json:"packet"`
	Event      string `json:"event"`
	From       string `json:"from"` // "requester" or "responder"
	Handle     *Hex32 `json:"handle,omitempty"`
	Offset     *Hex64 `json:"offset,omitempty"`
	Bytes      *int64 `json:"bytes,omitempty"`
	Packets    *int64 `json:"packets,omitempty"`
	LastPacket *int64 `json:"last_packet,omitempty"`
	Of         string `json:"of,omitempty"`     // ack, nak, retransmit: of what
	Reason     string `json:"reason,omitempty"` // nak
}

// The events of a timeline.
const (
	EventCall       = "call"
	EventRead       = "read_request"
	EventReadDone   = "read_done"
	EventWriteFirst = "write_first"
	EventWriteLast  = "write_last"
	EventReply      = "reply"
	EventInvalidate = "invalidate"
	EventAck        = "ack"
	EventNak        = "nak"
	EventRetransmit = "retransmit"
)

// Endpoint is one end of a connection.
type Endpoint struct {
	Address *string `json:"address"`
	Port    *uint16 `json:"port"`
	QPN     *Hex24  `json:"qpn"`
}

// Connection is a queue pair's, or a TCP stream's, life.
type Connection struct {
	Type               string           `json:"type"`
	ID                 int              `json:"id"` // counts from 0
	Transport          string           `json:"transport"`
	Client             Endpoint         `json:"client"`
	Server             Endpoint         `json:"server"`
	Established        *Time            `json:"established"`
	Closed             *Time            `json:"closed"`
	CloseReason        *string          `json:"close_reason"`
	Handshake          string           `json:"handshake"` // "seen", "missed"
	ServiceID          *Hex64           `json:"service_id"`
	PrivateData        PrivateDataPair  `json:"private_data"`
	InlineThreshold    InlineThresholds `json:"inline_threshold"`
	RemoteInvalidation *bool            `json:"remote_invalidation"`
	PathMTU            *int             `json:"path_mtu"` // bytes
	UpperLayer         string           `json:"upper_layer"`
	Transactions       int64            `json:"transactions"`
	Credits            CreditPair       `json:"credits"`
	Packets            int64            `json:"packets"`
	Retransmitted      int64            `json:"retransmitted"` // packets whose PSN was seen before
	OutOfOrder         int64            `json:"out_of_order"`  // packets that came after a later one
	Lost               int64            `json:"lost"`          // packets acknowledged but not captured
	Naks               int64            `json:"naks"`
	RNRNaks            int64            `json:"rnr_naks"`
	First              Time             `json:"first"` // its first packet
	Last               Time             `json:"last"`
}

// CreditPair is the credits of both directions.
type CreditPair struct {
	Forward  Credits `json:"forward"`
	Backward Credits `json:"backward"`
}

// Credits of one direction.
type Credits struct {
	Requested    *uint32 `json:"requested"` // by the last Call
	Granted      *uint32 `json:"granted"`   // by the last Reply
	PeakInFlight int     `json:"peak_in_flight"`
}
