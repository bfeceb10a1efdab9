package record

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Direction is that of a transaction (RFC 8167): who calls.
type Direction string

// The directions.
const (
	Forward  Direction = "forward"  // the client calls
	Backward Direction = "backward" // the server does
)

// Status is how a transaction ended.
type Status string

// The states in which a transaction ends.
const (
	Complete  Status = "complete"
	NoReply   Status = "no_reply"
	NoCall    Status = "no_call"
	RDMAError Status = "rdma_error"
)

// Statuses are all of them, in the order in which summaries show them.
var Statuses = [...]Status{Complete, NoReply, NoCall, RDMAError}

// Form is how a Payload stream travelled.
type Form string

// The forms (RFC 8166 s.3.5).
const (
	Short   Form = "short"   // all of it in the Send
	Chunked Form = "chunked" // reduced: data items in chunks of their own
	Long    Form = "long"    // in a Position Zero Read chunk, or the Reply chunk
)

// Role is one end of a transaction.
type Role string

// The roles.
const (
	Requester Role = "requester" // who calls
	Responder Role = "responder"
)

// Chunk is one of the three lists of chunks.
type Chunk string

// The lists.
const (
	ReadList  Chunk = "read"
	WriteList Chunk = "write"
	ReplyList Chunk = "reply"
)

// Transaction is one RPC: a Call, what it exposed, what moved, its Reply.
type Transaction struct {
	Released       `json:"-"`
	Type           string            `json:"type" doc:"transaction"`
	ID             int64             `json:"id" doc:"counts from 1, in the order of the Calls" alias:"transaction"`
	Connection     int               `json:"connection" doc:"number of its connection" alias:"conn"`
	XID            Hex32             `json:"xid" doc:"transaction ID, as on the wire" alias:"rpcordma.xid,rpc.xid"`
	Direction      Direction         `json:"direction" doc:"who calls: forward is the client, backward the server" alias:"dir"`
	Status         Status            `json:"status" doc:"how it ended"`
	Program        Opt[uint32]       `json:"program" doc:"RPC program number" alias:"rpc.program"`
	ProgramName    Opt[string]       `json:"program_name" doc:"NFS, MOUNT, NFS_CB, ..."`
	Version        Opt[uint32]       `json:"version" doc:"of the RPC program" alias:"rpc.programversion"`
	Procedure      Opt[uint32]       `json:"procedure" doc:"procedure number" alias:"rpc.procedure"`
	ProcedureName  Opt[string]       `json:"procedure_name" doc:"procedure by name"`
	Operations     []string          `json:"operations" doc:"of a COMPOUND, in order; null where there is none" alias:"nfs.opcode"`
	Operation      Opt[string]       `json:"operation" doc:"which of the operations the COMPOUND is for"`
	Credential     Opt[string]       `json:"credential" doc:"flavor of the Call's credential"`
	RPCStatus      Opt[string]       `json:"rpc_status" doc:"accept or reject status of the RPC Reply"`
	NFSStatus      Opt[string]       `json:"nfs_status" doc:"status that the results begin with"`
	Call           *Message          `json:"call" doc:"the Call, null where it was not seen"`
	Reply          *Message          `json:"reply" doc:"the Reply, null where none arrived"`
	ReadChunks     []ReadChunk       `json:"read_chunks" doc:"what the Call exposed to be read; null without Call"`
	WriteChunks    []WriteChunk      `json:"write_chunks" doc:"what the Call exposed to be written; null without Call"`
	ReplyChunk     *WriteChunk       `json:"reply_chunk" doc:"null when none was offered"`
	Invalidation   Opt[Invalidation] `json:"invalidation" doc:"what a Send With Invalidate did"`
	NotInvalidated []Hex32           `json:"not_invalidated" doc:"handles that the Call exposed and its Reply did not invalidate, each once; null without Call"`
	Timeline       []Event           `json:"timeline" doc:"what happened, by packet"`
	LatencyNS      Opt[int64]        `json:"latency_ns" doc:"first packet of the Call to last of the Reply" alias:"latency,rpc.time"`
	Waits          []Wait            `json:"waits" doc:"when it stood still, and why"`
	Phases         Opt[Phases]       `json:"phases" doc:"what the latency is made of"`
	RDMAError      Opt[string]       `json:"rdma_error" doc:"code of an RDMA_ERROR: ERR_VERS, ERR_CHUNK"`
	RDMAErrorRange Opt[VersionRange] `json:"rdma_error_versions" doc:"what an ERR_VERS says is supported"`
	RetransmitOf   Opt[int64]        `json:"retransmit_of" doc:"id of the transaction that this one repeats, on another connection"`
	Retransmitted  int               `json:"retransmitted" doc:"packets of it that were sent again" alias:"retr"`
	Findings       []string          `json:"findings" doc:"rules that it broke, each once"`

	// Decoded is that by value, where it was asked for.
	Decoded Decoded `json:"-"`

	RPC *RPC `json:"rpc,omitzero" doc:"what the Call asks and the Reply says, where that was asked for"`
}

// Start is when the transaction was first seen: the Call, or the Reply of one
// without Call.
func (r *Transaction) Start() Time {
	if r.Call != nil {
		return r.Call.Time
	}
	return r.Reply.Time
}

// Waited is how much of one of its waits, ns, is of its latency, or of the time before
// the Call: what came when the Reply was there kept nobody waiting for that. Without a
// Reply it is all of it.
func (r *Transaction) Waited(w *Wait) (ns int64) {
	latency, known := r.LatencyNS.Get()
	if !known || r.Call == nil || w.Reason == OutOfCredits {
		return w.NS
	}
	return max(0, min(w.NS, latency-int64(w.From-r.Call.Time)))
}

// ProgramVersion is the program with its version: "NFS4", "program 99 v1". The
// program has to be known.
func (r *Transaction) ProgramVersion() string {
	version, _ := r.Version.Get()
	if name, known := r.ProgramName.Get(); known {
		return name + strconv.FormatUint(uint64(version), 10)
	}
	return fmt.Sprintf("program %d v%d", r.Program.Or(0), version)
}

// ProgramProcedure is that and the procedure: "NFS4 COMPOUND".
func (r *Transaction) ProgramProcedure() string {
	if name, known := r.ProcedureName.Get(); known {
		return r.ProgramVersion() + " " + name
	}
	return fmt.Sprintf("%s procedure %d", r.ProgramVersion(), r.Procedure.Or(0))
}

// RPCFailed says whether the Reply is one of an RPC that was not executed.
func (r *Transaction) RPCFailed() bool { return r.RPCStatus.Or("SUCCESS") != "SUCCESS" }

// NFSFailed says whether the results begin with a status of error.
func (r *Transaction) NFSFailed() bool { return !strings.HasSuffix(r.NFSStatus.Or("_OK"), "_OK") }

// Failed says whether it did not go well: there are not both a Call and a Reply, or
// the Reply has a status of error.
func (r *Transaction) Failed() bool { return r.Status != Complete || r.RPCFailed() || r.NFSFailed() }

// Segments are the segments that the Call exposed, in the order of its chunk
// lists, each with the name of its list.
func (r *Transaction) Segments() iter.Seq2[Chunk, Segment] {
	return func(yield func(Chunk, Segment) bool) {
		for _, c := range r.ReadChunks {
			for _, s := range c.Segments {
				if !yield(ReadList, s) {
					return
				}
			}
		}
		for _, c := range r.WriteChunks {
			for _, s := range c.Segments {
				if !yield(WriteList, s.segment()) {
					return
				}
			}
		}
		if r.ReplyChunk == nil {
			return
		}
		for _, s := range r.ReplyChunk.Segments {
			if !yield(ReplyList, s.segment()) {
				return
			}
		}
	}
}

// Clone is a copy, without Decoded, that stays good when the handler has returned.
func (r *Transaction) Clone() *Transaction {
	c := *r
	c.Operations = slices.Clone(r.Operations)
	c.Call, c.Reply = clonePointer(r.Call), clonePointer(r.Reply)
	c.ReadChunks = slices.Clone(r.ReadChunks)
	for i := range c.ReadChunks {
		c.ReadChunks[i].Segments = slices.Clone(c.ReadChunks[i].Segments)
	}
	c.WriteChunks = slices.Clone(r.WriteChunks)
	for i := range c.WriteChunks {
		c.WriteChunks[i].Segments = slices.Clone(c.WriteChunks[i].Segments)
	}
	if c.ReplyChunk = clonePointer(r.ReplyChunk); c.ReplyChunk != nil {
		c.ReplyChunk.Segments = slices.Clone(c.ReplyChunk.Segments)
	}
	c.NotInvalidated = slices.Clone(r.NotInvalidated)
	c.Timeline = slices.Clone(r.Timeline)
	c.Waits = slices.Clone(r.Waits)
	c.Findings = slices.Clone(r.Findings)
	c.Decoded = Decoded{}
	return &c
}

// Bytes is how much memory a Clone takes.
func (r *Transaction) Bytes() int {
	n := unsafe.Sizeof(*r) + 2*unsafe.Sizeof(Message{}) + listBytes(r.Operations) + listBytes(r.ReadChunks) + listBytes(r.WriteChunks) +
		listBytes(r.NotInvalidated) + listBytes(r.Timeline) + listBytes(r.Waits) + listBytes(r.Findings)
	for i := range r.ReadChunks {
		n += listBytes(r.ReadChunks[i].Segments)
	}
	for i := range r.WriteChunks {
		n += listBytes(r.WriteChunks[i].Segments)
	}
	if c := r.ReplyChunk; c != nil {
		n += unsafe.Sizeof(*c) + listBytes(c.Segments)
	}
	for i := range r.Waits {
		n += listBytes(r.Waits[i].Packets)
	}
	return int(n)
}

func listBytes[T any](list []T) uintptr {
	var one T
	return uintptr(len(list)) * unsafe.Sizeof(one)
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Phases split the latency into what the wire shows; together they are all of it.
// A phase that did not happen is null.
type Phases struct {
	ToReadNS  Opt[int64] `json:"to_read_ns" doc:"Call to first RDMA Read"`
	ReadNS    Opt[int64] `json:"read_ns" doc:"first RDMA Read to the last response"`
	ToWriteNS Opt[int64] `json:"to_write_ns" doc:"from there, or the Call, to the first RDMA Write"`
	WriteNS   Opt[int64] `json:"write_ns" doc:"first RDMA Write to the last packet of the last"`
	WaitNS    int64      `json:"wait_ns" doc:"what of the latency it waited; the other phases are without that"`
	ToReplyNS Opt[int64] `json:"to_reply_ns" doc:"from there, or the Call, to the Reply's last packet"`
}

// End is one end of a connection.
type End string

// The ends.
const (
	Client End = "client"
	Server End = "server"
)

// Values are both ends.
func (End) Values() []string { return wordsOf(Client, Server) }

// WaitReason says what a transaction waited for.
type WaitReason string

// The reasons.
const (
	RepeatAfterTimeout WaitReason = "repeat after timeout" // nothing came, until one side repeated something
	RepeatAfterGap     WaitReason = "repeat after gap"     // what followed showed that something was missing
	RepeatAfterNak     WaitReason = "repeat after NAK"     // a packet was missing, and asked for
	ReceiverNotReady   WaitReason = "RNR"                  // no receive buffer was posted
	BehindAnother      WaitReason = "behind another transaction"
	OutOfCredits       WaitReason = "out of credits" // before the Call was sent: not part of the latency
)

// Values are all reasons.
func (WaitReason) Values() []string {
	return wordsOf(RepeatAfterTimeout, RepeatAfterGap, RepeatAfterNak, ReceiverNotReady, BehindAnother, OutOfCredits)
}

// Wait is a time in which a transaction stood still, for a reason that the capture
// shows.
type Wait struct {
	From    Time       `json:"from" doc:"last packet before it"`
	To      Time       `json:"to" doc:"first packet after it"`
	NS      int64      `json:"ns" doc:"how long"`
	Reason  WaitReason `json:"reason" doc:"what it waited for"`
	Waiting End        `json:"waiting" doc:"who waited"`
	Packets []int64    `json:"packets" doc:"that show it"`
	Of      EventKind  `json:"of,omitzero" doc:"what was repeated"`
	Bytes   Opt[int64] `json:"bytes,omitzero" doc:"of an RDMA Read that were asked for again"`
	Early   Opt[int64] `json:"early,omitzero" doc:"packet that came before one that it had to follow"`
	Filled  Opt[int64] `json:"filled,omitzero" doc:"that one"`
	Behind  Opt[int64] `json:"behind,omitzero" doc:"id of the transaction that the wire was busy with"`
}

// VersionRange is what an ERR_VERS says.
type VersionRange struct {
	Low  uint32 `json:"low" doc:"lowest version"`
	High uint32 `json:"high" doc:"highest version"`
}

// Message is one side of a transaction, as the Send carried it.
type Message struct {
	Time         Time       `json:"time" doc:"of its first packet" alias:"frame.time"`
	Packet       int64      `json:"packet" doc:"its first packet" alias:"frame.number"`
	LastPacket   int64      `json:"last_packet" doc:"its last packet"`
	RDMAVers     uint32     `json:"rdma_vers" doc:"version in the RPC-over-RDMA header" alias:"rpcordma.version"`
	RDMAProc     string     `json:"rdma_proc" doc:"RDMA_MSG, RDMA_NOMSG, ..." alias:"rpcordma.msg_type"`
	Credits      uint32     `json:"credits" doc:"requested by a Call, granted by a Reply" alias:"rpcordma.flow_control"`
	HeaderBytes  Opt[int]   `json:"header_bytes" doc:"of the RPC-over-RDMA header"`
	SendBytes    Opt[int]   `json:"send_bytes" doc:"of the Send's payload"`
	PayloadBytes Opt[int64] `json:"payload_bytes" doc:"of the whole, unreduced Payload stream"`
	MissingBytes Opt[int64] `json:"missing_bytes" doc:"how many of these are not in the capture, though they were sent or offered; null where payload_bytes is"`
	InvHandle    Opt[Hex32] `json:"inv_handle,omitzero" doc:"rdma_inv_handle of version two: the handle that the Reply may invalidate, 0 for none"`
	Form         Form       `json:"form" doc:"how the Payload stream travelled"`

	LastTime Time `json:"-"` // of its last packet
}

// Segment is a piece of memory that a Call exposed for reading.
type Segment struct {
	Handle     Hex32  `json:"handle" doc:"STag, R_key"`
	Length     uint32 `json:"length" doc:"bytes, as offered" alias:"rpcordma.rdma_length"`
	Offset     Hex64  `json:"offset" doc:"virtual address of the first byte" alias:"rpcordma.rdma_offset"`
	MovedBytes int64  `json:"moved_bytes" doc:"bytes that were seen to move"`
}

// ReadChunk is the segments of one Position.
type ReadChunk struct {
	Position uint32    `json:"position" doc:"where it belongs in the Payload stream, bytes" alias:"rpcordma.position"`
	Segments []Segment `json:"segments" doc:"its segments"`
}

// WriteChunk is a Write chunk or Reply chunk.
type WriteChunk struct {
	Segments []WriteSegment `json:"segments" doc:"its segments"`
}

// WriteSegment is a segment that the responder fills.
type WriteSegment struct {
	Handle         Hex32       `json:"handle" doc:"STag, R_key"`
	Length         uint32      `json:"length" doc:"bytes, as offered"`
	Offset         Hex64       `json:"offset" doc:"virtual address of the first byte"`
	ReturnedLength Opt[uint32] `json:"returned_length" doc:"bytes, as the Reply reports; null without a Reply that does"`
	MovedBytes     int64       `json:"moved_bytes" doc:"bytes that were seen to move"`
}

// segment is it without what only a Reply tells.
func (s WriteSegment) segment() Segment {
	return Segment{s.Handle, s.Length, s.Offset, s.MovedBytes}
}

// Invalidation is what a Send With Invalidate did. Chunk, Index and Segment are
// null when the handle is none that the Call exposed.
type Invalidation struct {
	Handle  Hex32      `json:"handle" doc:"the handle that it named" alias:"infiniband.ieth"`
	Packet  int64      `json:"packet" doc:"the packet that said so"`
	Chunk   Opt[Chunk] `json:"chunk" doc:"the list that the handle stands in"`
	Index   Opt[int]   `json:"index" doc:"of the chunk in its list"`
	Segment Opt[int]   `json:"segment" doc:"of the segment in its chunk"`
}

// EventKind says what happened.
type EventKind string

// The events of a timeline.
const (
	EventCall       EventKind = "call"
	EventRead       EventKind = "read_request"
	EventReadDone   EventKind = "read_done"
	EventWriteFirst EventKind = "write_first"
	EventWriteLast  EventKind = "write_last"
	EventReply      EventKind = "reply"
	EventInvalidate EventKind = "invalidate"
	EventAck        EventKind = "ack"
	EventNak        EventKind = "nak"
	EventRetransmit EventKind = "retransmit"
	EventOutOfOrder EventKind = "out_of_order" // a packet came before one that it had to follow
)

// EventWrite is what a NAK or a repeat is of, where it is of an RDMA Write.
const EventWrite EventKind = "write"

// Event is a step of a timeline. Which of the optional fields are there depends
// on the event.
type Event struct {
	Time       Time       `json:"time" doc:"when"`
	Packet     int64      `json:"packet" doc:"the packet that shows it"`
	Event      EventKind  `json:"event" doc:"what happened"`
	From       Role       `json:"from" doc:"who did it"`
	Handle     Opt[Hex32] `json:"handle,omitzero" doc:"of the memory it is about" alias:"handle,rpcordma.rdma_handle"`
	Offset     Opt[Hex64] `json:"offset,omitzero" doc:"in that memory"`
	Bytes      Opt[int64] `json:"bytes,omitzero" doc:"that it moved, or is to move"`
	Packets    Opt[int64] `json:"packets,omitzero" doc:"that it took"`
	LastPacket Opt[int64] `json:"last_packet,omitzero" doc:"the last of them"`
	Of         EventKind  `json:"of,omitzero" doc:"ack, nak, retransmit, out_of_order: of what"`
	Reason     string     `json:"reason,omitzero" doc:"nak: why"`
}
