package dissect

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// The records are everything that the program ever prints. A record that is
// handed out is the dissector's own and is valid until the handler returns:
// whoever keeps one copies what it needs.
//
// JSON names are a contract: new ones may be added, none renamed. A nil pointer
// or slice is null: unknown. Schemas for all of them are in render/schema.

// Time is nanoseconds since 1970 UTC; in JSON it is RFC 3339 with nanoseconds.
type Time int64

// AppendText is the RFC 3339 form, always with nine digits, so that times sort
// as strings. It does what time.Time.AppendFormat does in a fifth of the time:
// there is one for each packet.
func (t Time) AppendText(b []byte) ([]byte, error) {
	day, rest := int64(t)/864e11, int64(t)%864e11
	if rest < 0 {
		day, rest = day-1, rest+864e11
	}
	year, month, date := time.Unix(day*86400, 0).UTC().Date()
	seconds := rest / 1e9
	b = appendDigits(b, int64(year), 4)
	b = appendDigits(append(b, '-'), int64(month), 2)
	b = appendDigits(append(b, '-'), int64(date), 2)
	b = appendDigits(append(b, 'T'), seconds/3600, 2)
	b = appendDigits(append(b, ':'), seconds/60%60, 2)
	b = appendDigits(append(b, ':'), seconds%60, 2)
	b = appendDigits(append(b, '.'), rest%1e9, 9)
	return append(b, 'Z'), nil
}

// appendDigits appends v with leading zeros.
func appendDigits(b []byte, v int64, digits int) []byte {
	b = append(b, "000000000"[:digits]...)
	for i := len(b) - 1; v > 0 && digits > 0; i, digits = i-1, digits-1 {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// MarshalText is the RFC 3339 form.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// String is the RFC 3339 form.
func (t Time) String() string { b, _ := t.AppendText(nil); return string(b) }

// Hex8 to Hex64 are numbers that print as hex strings of a fixed width.
type (
	Hex8  uint8
	Hex24 uint32
	Hex32 uint32
	Hex64 uint64
)

// MarshalText is 0x and two digits.
func (h Hex8) MarshalText() ([]byte, error) { return field.AppendHex(nil, uint64(h), 2), nil }

// MarshalText is 0x and six digits.
func (h Hex24) MarshalText() ([]byte, error) { return field.AppendHex(nil, uint64(h), 6), nil }

// MarshalText is 0x and eight digits.
func (h Hex32) MarshalText() ([]byte, error) { return field.AppendHex(nil, uint64(h), 8), nil }

// MarshalText is 0x and sixteen digits.
func (h Hex64) MarshalText() ([]byte, error) { return field.AppendHex(nil, uint64(h), 16), nil }

// String is 0x and two digits.
func (h Hex8) String() string { return string(field.AppendHex(nil, uint64(h), 2)) }

// String is 0x and six digits.
func (h Hex24) String() string { return string(field.AppendHex(nil, uint64(h), 6)) }

// String is 0x and eight digits.
func (h Hex32) String() string { return string(field.AppendHex(nil, uint64(h), 8)) }

// String is 0x and sixteen digits.
func (h Hex64) String() string { return string(field.AppendHex(nil, uint64(h), 16)) }

// parseHex reads what MarshalText wrote.
func parseHex[T ~uint32 | ~uint64](to *T, text []byte, bits int) error {
	v, err := strconv.ParseUint(string(text), 0, bits)
	*to = T(v)
	return err
}

// UnmarshalText reads what MarshalText wrote.
func (h *Hex24) UnmarshalText(text []byte) error { return parseHex(h, text, 24) }

// UnmarshalText reads what MarshalText wrote.
func (h *Hex32) UnmarshalText(text []byte) error { return parseHex(h, text, 32) }

// UnmarshalText reads what MarshalText wrote.
func (h *Hex64) UnmarshalText(text []byte) error { return parseHex(h, text, 64) }

// UnmarshalText reads what MarshalText wrote.
func (t *Time) UnmarshalText(text []byte) error {
	v, err := time.Parse(time.RFC3339Nano, string(text))
	*t = Time(v.UnixNano())
	return err
}

// ParseHex32 reads what Hex32 prints, or any other form of a 32-bit number.
func ParseHex32(s string) (h Hex32, err error) {
	err = parseHex(&h, []byte(s), 32)
	return h, err
}

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

// Start is when the transaction was first seen: the Call, or the Reply of one
// without Call.
func (r *Transaction) Start() Time {
	if r.Call != nil {
		return r.Call.Time
	}
	return r.Reply.Time
}

// ProgramVersion is the program with its version: "NFS4", "program 99 v1". The
// program has to be known.
func (r *Transaction) ProgramVersion() string {
	if r.ProgramName == nil {
		return fmt.Sprintf("program %d v%d", *r.Program, *r.Version)
	}
	return *r.ProgramName + strconv.FormatUint(uint64(*r.Version), 10)
}

// ProgramProcedure is that and the procedure: "NFS4 COMPOUND".
func (r *Transaction) ProgramProcedure() string {
	if r.ProcedureName == nil {
		return fmt.Sprintf("%s procedure %d", r.ProgramVersion(), *r.Procedure)
	}
	return r.ProgramVersion() + " " + *r.ProcedureName
}

// RPCFailed says whether the Reply is one of an RPC that was not executed.
func (r *Transaction) RPCFailed() bool { return r.RPCStatus != nil && *r.RPCStatus != "SUCCESS" }

// NFSFailed says whether the results begin with a status of error.
func (r *Transaction) NFSFailed() bool {
	return r.NFSStatus != nil && !strings.HasSuffix(*r.NFSStatus, "_OK")
}

// Segments are the segments that the Call exposed, in the order of its chunk
// lists, each with the name of its list: "read", "write" or "reply".
func (r *Transaction) Segments() iter.Seq2[string, Segment] {
	return func(yield func(string, Segment) bool) {
		for _, c := range r.ReadChunks {
			for _, s := range c.Segments {
				if !yield(chunkNames[readChunk], s) {
					return
				}
			}
		}
		for _, c := range r.WriteChunks {
			for _, s := range c.Segments {
				if !yield(chunkNames[writeChunk], s.segment()) {
					return
				}
			}
		}
		if r.ReplyChunk == nil {
			return
		}
		for _, s := range r.ReplyChunk.Segments {
			if !yield(chunkNames[replyChunk], s.segment()) {
				return
			}
		}
	}
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

// VersionRange is what an ERR_VERS says.
type VersionRange struct {
	Low  uint32 `json:"low"`
	High uint32 `json:"high"`
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

// Segment is a piece of memory that a Call exposed for reading.
type Segment struct {
	Handle     Hex32  `json:"handle"`
	Length     uint32 `json:"length"` // as offered, bytes
	Offset     Hex64  `json:"offset"`
	MovedBytes int64  `json:"moved_bytes"` // seen to move
}

// ReadChunk is the segments of one Position.
type ReadChunk struct {
	Position uint32    `json:"position"`
	Segments []Segment `json:"segments"`
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

// segment is it without what only a Reply tells.
func (s WriteSegment) segment() Segment {
	return Segment{s.Handle, s.Length, s.Offset, s.MovedBytes}
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

// PrivateDataPair is what both sides said (RFC 8797).
type PrivateDataPair struct {
	Client *PrivateData `json:"client"`
	Server *PrivateData `json:"server"`
}

// PrivateData is one side's, sizes in bytes; Offset counts from the start of
// the consumer's private data.
type PrivateData struct {
	Offset             int   `json:"offset"`
	Version            uint8 `json:"version"`
	RemoteInvalidation bool  `json:"remote_invalidation"`
	SendSize           int   `json:"send_size"`
	ReceiveSize        int   `json:"receive_size"`
}

// InlineThresholds are those in force, in bytes.
type InlineThresholds struct {
	ClientToServer int    `json:"client_to_server"`
	ServerToClient int    `json:"server_to_client"`
	Source         string `json:"source"` // "private_data" or "default"
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

// Finding is a rule that was broken.
type Finding struct {
	Type       string `json:"type"`
	Rule       string `json:"rule"`
	Severity   string `json:"severity"` // "error", "warning", "note"
	Section    string `json:"section"`
	Message    string `json:"message"`
	Connection *int   `json:"connection"`
	XID        *Hex32 `json:"xid"`
	Packet     *int64 `json:"packet"`
	Time       *Time  `json:"time"`
}

// Summary is the last record: what there was, and what could not be read.
type Summary struct {
	Type         string           `json:"type"`
	Packets      int64            `json:"packets"`
	Bytes        int64            `json:"bytes"`
	First        *Time            `json:"first"`
	Last         *Time            `json:"last"`
	RDMA         int64            `json:"rdma_packets"`
	CM           int64            `json:"cm_packets"`
	Other        int64            `json:"other_packets"`
	Fragments    int64            `json:"fragments"`
	Malformed    int64            `json:"malformed"`
	Cut          int64            `json:"cut"` // frames captured in part
	UnknownLink  int64            `json:"unknown_link"`
	ICRCBad      int64            `json:"icrc_bad"`
	Dropped      uint64           `json:"dropped"` // by the capture's own account
	Connections  int              `json:"connections"`
	Transactions map[string]int64 `json:"transactions"` // by status
	Findings     map[string]int64 `json:"findings"`     // by severity
	Lost         int64            `json:"lost"`
	Limits       map[string]int64 `json:"limits_reached"`
	Broken       *string          `json:"broken"` // where the input broke off
}
