package record

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Direction is the direction of a transaction (RFC 8167).
type Direction string

// The directions.
const (
	Forward  Direction = "forward"  // the client sends the Call
	Backward Direction = "backward" // the server sends the Call
)

// Status is the outcome of a transaction.
type Status string

// The outcomes.
const (
	Complete  Status = "complete"   // the capture contains the Call and the Reply
	Answered  Status = "answered"   // the same, but the Reply does not show whether the RPC succeeded: too little was captured, or its version is unknown
	NoReply   Status = "no_reply"   // the capture does not contain the Reply
	NoCall    Status = "no_call"    // the capture does not contain the Call
	RDMAError Status = "rdma_error" // the responder answered with an RDMA_ERROR message
)

// Statuses lists all outcomes, in the order in which summaries show them.
var Statuses = [...]Status{Complete, Answered, NoReply, NoCall, RDMAError}

// Replied reports whether the capture contains the Call, and a Reply other than an RDMA_ERROR.
func (s Status) Replied() bool { return s == Complete || s == Answered }

// Form is the form in which a Payload stream was transferred.
type Form string

// The forms (RFC 8166 s.3.5).
const (
	Short   Form = "short"   // completely in the Send
	Chunked Form = "chunked" // reduced: data items are in Read or Write chunks
	Long    Form = "long"    // completely in a Position Zero Read chunk, or the Reply chunk
)

// Role is the role of a side in a transaction (RFC 8166 s.2).
type Role string

// The roles.
const (
	Requester Role = "requester" // sends the Call
	Responder Role = "responder" // sends the Reply
)

// GSS is what the RPCSEC_GSS credential of a Call says (RFC 2203 s.5).
type GSS struct {
	Service   Opt[string] `json:"service" doc:"Protection of arguments and results: none (only the header is protected), integrity or privacy (encrypted); null for a Call that creates or destroys a context, and if the credential is not captured." values:"none,integrity,privacy" secret:"no"`
	Procedure string      `json:"procedure" doc:"Procedure of RPCSEC_GSS: data for an RPC; init, continue_init and destroy for a NULL that sets up or destroys a context." values:"data,init,continue_init,destroy,unknown" secret:"no"`
}

// Chunk is one of the three chunk lists of an RPC-over-RDMA header.
type Chunk string

// The lists.
const (
	ReadList  Chunk = "read"
	WriteList Chunk = "write"
	ReplyList Chunk = "reply"
)

// Transaction is one RPC: the Call, the memory that it exposed, the data that moved, and the
// Reply.
type Transaction struct {
	CompletedAt       `json:"-"`
	Type              string            `json:"type" doc:"The record's type, always \"transaction\"." values:"transaction"`
	ID                int64             `json:"id" doc:"Transaction number: transactions are counted from 1, in the order of their Calls." alias:"transaction"`
	Connection        int               `json:"connection" doc:"Connection number: the connection that carried the transaction." alias:"conn"`
	Request           int64             `json:"request" doc:"Transaction number (id) of the first attempt of the request: what the client asked for once. The Calls of a request have the same XID; most requests have a single one."`
	Attempt           int               `json:"attempt" doc:"Number of the attempt, counted from 1: how many times the Call of the request had been sent, on other connections, up to this one."`
	RetryOf           Opt[int64]        `json:"retry_of,omitzero" doc:"Transaction number (id) of the first attempt of the request that this one repeats, because the server had put it off or the session was lost; present only if it repeats one."`
	XID               Hex32             `json:"xid" doc:"Transaction ID (XID) of the RPC." alias:"rpcordma.xid,rpc.xid"`
	Direction         Direction         `json:"direction" doc:"Direction of the Call: forward from client to server, backward from server to client." alias:"dir"`
	Status            Status            `json:"status" doc:"Outcome of the transaction: complete (the capture contains the Call and the Reply, which may have an error status), answered (the same, but the Reply does not show whether the RPC succeeded: too little was captured, or its version is unknown), no_reply, no_call (the Call is not in the capture), rdma_error (the responder answered with an RDMA_ERROR). Filters also accept what the column STATUS shows, and groups of --by have its names: ok (complete, without an error status), malformed (the same, but an error proves that a message cannot be decoded), or the name of an error such as NFS4ERR_NOENT."`
	Program           Opt[uint32]       `json:"program" doc:"RPC program number." alias:"rpc.program"`
	ProgramName       Opt[string]       `json:"program_name" doc:"Name of the RPC program, such as NFS, MOUNT or NFS_CB." secret:"no"`
	Version           Opt[uint32]       `json:"version" doc:"Version of the RPC program." alias:"rpc.programversion"`
	MinorVersion      Opt[uint32]       `json:"minor_version" doc:"Minor version of NFSv4 that the Call states; null if the RPC is not a COMPOUND, or if its Call was not decoded." alias:"nfs.minorversion"`
	Procedure         Opt[uint32]       `json:"procedure" doc:"RPC procedure number." alias:"rpc.procedure"`
	ProcedureName     Opt[string]       `json:"procedure_name" doc:"Name of the RPC procedure." secret:"no"`
	Operations        []string          `json:"operations" doc:"Names of the COMPOUND's operations, in order; null if the RPC is not a COMPOUND." alias:"nfs.opcode" secret:"no"`
	Operation         Opt[string]       `json:"operation" doc:"Name of the operation that a COMPOUND was sent for, or of the procedure of NFSv2 or NFSv3: CREATE, LINK, REMOVE or RENAME if the COMPOUND has one of these, and otherwise its first operation that does more than finding a file or its attributes, such as READ." secret:"no"`
	Credential        Opt[string]       `json:"credential" doc:"Flavor of the Call's credential." secret:"no"`
	GSS               Opt[GSS]          `json:"gss,omitzero" doc:"What the RPCSEC_GSS credential of the Call says; present only with such a credential."`
	RPCStatus         Opt[string]       `json:"rpc_status" doc:"Accept or reject status of the RPC Reply." secret:"no"`
	NFSStatus         Opt[string]       `json:"nfs_status" doc:"NFS status of the whole Reply." secret:"no"`
	Client            Opt[string]       `json:"client" doc:"Address of the client; null if the capture does not show it." secret:"address"`
	Server            Opt[string]       `json:"server" doc:"Address of the server; null if the capture does not show it." secret:"address"`
	ClientName        string            `json:"client_name,omitzero" doc:"Name of the client; present only if the file of --hosts has its address." secret:"machine"`
	ServerName        string            `json:"server_name,omitzero" doc:"Name of the server; present only if the file of --hosts has its address." secret:"machine"`
	UID               Opt[uint32]       `json:"uid" doc:"User ID in the Call's AUTH_SYS credential; null if the Call has another credential or is not in the capture." alias:"rpc.auth.uid" secret:"id"`
	GID               Opt[uint32]       `json:"gid" doc:"Group ID in the Call's AUTH_SYS credential; null if the Call has another credential or is not in the capture." alias:"rpc.auth.gid" secret:"id"`
	Machine           Opt[string]       `json:"machine" doc:"Machine name in the Call's AUTH_SYS credential; null if the Call has another credential or is not in the capture." alias:"rpc.auth.machinename" secret:"machine"`
	ClientOwner       Opt[string]       `json:"client_owner,omitzero" doc:"Client owner in hex, by which an NFSv4 client names itself to the server; present only for EXCHANGE_ID and SETCLIENTID." secret:"handle"`
	BootVerifier      Opt[Hex64]        `json:"boot_verifier,omitzero" doc:"Verifier with which an NFSv4 client names itself to the server: a client that restarts sends another one; present only for EXCHANGE_ID and SETCLIENTID."`
	WriteVerifier     Opt[Hex64]        `json:"write_verifier,omitzero" doc:"Verifier in the results of WRITE and COMMIT: a server that restarts sends another one, and a server may do so after an error of its storage, too; present only for WRITE and COMMIT that succeeded."`
	SequenceFlags     Hex32             `json:"sequence_flags,omitzero" doc:"Status flags in the results of SEQUENCE (RFC 8881 s.18.46.3), such as 0x00000001: the callback channel is down; present only if any is set."`
	CopyPromised      bool              `json:"copy_promised,omitzero" doc:"Whether the server answered a COPY before it was complete, so that a CB_OFFLOAD has to follow; present only then."`
	BytesRead         Opt[int64]        `json:"bytes_read,omitzero" doc:"Number of bytes of files that the results of READ and READ_PLUS returned, without padding; present only for READs whose results were captured."`
	BytesAsked        Opt[int64]        `json:"bytes_requested,omitzero" doc:"Number of bytes of files that the arguments of READ and READ_PLUS ask for (their count); present only for READs whose arguments were captured."`
	BytesWritten      Opt[int64]        `json:"bytes_written,omitzero" doc:"Number of bytes of files that the results of WRITE say were written; present only for WRITEs whose results were captured."`
	Principal         Opt[string]       `json:"principal,omitzero" doc:"Name of the RPCSEC_GSS principal that made the Call; present only if the capture shows it: Kerberos encrypts the name." secret:"user"`
	File              Opt[string]       `json:"file" doc:"Path, after the RPC, of the file or directory that the RPC acted on: for REMOVE the path that it removed, for RENAME the new path. If the capture shows only the last directories of the path, it begins with the short form of the handle of the topmost one, such as fh:0x62d40c52/notes.txt; null if the capture shows no name." alias:"nfs.full_name" secret:"path"`
	FileFrom          Opt[string]       `json:"file_from,omitzero" doc:"Path that the file had before a RENAME that succeeded; present only then." secret:"path"`
	FileHandle        Opt[string]       `json:"file_handle" doc:"Handle in hex of the file or directory that the RPC acted on; null if the capture does not show it." secret:"handle"`
	Transport         string            `json:"transport" doc:"Transport protocol that carried the transaction." values:"RoCEv2,RoCEv1,InfiniBand,iWARP,TCP,UDP"`
	Call              *Message          `json:"call" doc:"The Call; null if the capture does not contain it."`
	Reply             *Message          `json:"reply" doc:"The Reply; null if the capture does not contain one."`
	ReadChunks        []ReadChunk       `json:"read_chunks" doc:"Memory that the Call exposed for the responder to read; null without a Call, and on TCP and UDP."`
	WriteChunks       []WriteChunk      `json:"write_chunks" doc:"Memory that the Call exposed for the responder to write; null without a Call, and on TCP and UDP."`
	ReplyChunk        *WriteChunk       `json:"reply_chunk" doc:"Memory that the Call exposed for a long Reply; null if it offered none."`
	Invalidation      Opt[Invalidation] `json:"invalidation" doc:"The handle that the Reply invalidated; null if it invalidated none."`
	NotInvalidated    []Hex32           `json:"not_invalidated" doc:"Handles that the Call exposed and its Reply did not invalidate, each once; null without a Call, and on TCP and UDP. Handles that the Reply to another RPC invalidated, and handles that persistent_handles counts, are not listed."`
	PersistentHandles int               `json:"persistent_handles,omitzero" doc:"Number of handles that the Call exposed although an earlier Call had exposed them and nothing invalidated them since: the requester registers them persistently. Present only if there are any."`
	Timeline          []Event           `json:"timeline" doc:"Events of the transaction, in the order of their packets."`
	ReplyLost         bool              `json:"reply_lost,omitzero" doc:"Whether a Reply was sent that its receiver never accepted, because it was lost, or refused with a NAK (rule reply-not-delivered); the status is then no_reply, or no_call if the capture does not contain the Call. Present only if so."`
	LatencyNS         Opt[int64]        `json:"latency_ns" doc:"Time from the first packet of the Call to the last packet of the Reply (of the copy that the requester accepted), in nanoseconds. The time of a Call that was sent before on an earlier connection begins there. The time for which the Call waited for credits is not included." alias:"latency,rpc.time"`
	LatencyMinNS      Opt[int64]        `json:"latency_min_ns,omitzero" doc:"Shortest latency that the capture allows, in nanoseconds; present only if it is uncertain which copy of the Reply was accepted, so that latency_ns is only an upper bound."`
	LatencyMinPacket  Opt[int64]        `json:"latency_min_packet,omitzero" doc:"Packet number: the last packet of the copy of the Reply with which latency_min_ns ends; present only if it is known and not the copy with which latency_ns ends."`
	LatencyMinPoint   string            `json:"latency_min_packet_point,omitzero" doc:"Name of the capture point whose number latency_min_packet is; present only with several capture points." secret:"point"`
	BehindReads       Opt[BehindReads]  `json:"behind_reads,omitzero" doc:"Time in which responses to RDMA Reads of the transaction stood behind those of others: RDMA Reads are answered in the order of their requests. Present only if there was such a time."`
	HeldBackBy        Opt[int64]        `json:"held_back_by,omitzero" doc:"Transaction number (id): the transaction whose packets kept the sender busy until the Call was sent; present only if the Call was held back."`
	Waits             []Wait            `json:"waits" doc:"Stalls: times in which the transaction made no progress, each with its reason."`
	Phases            Opt[Phases]       `json:"phases" doc:"Parts that the latency is made of; null without a latency."`
	Split             Opt[Split]        `json:"split,omitzero" doc:"Where the latency passed: at the client, in the network, or at the server; present only with several capture points, and if every part of the transaction was captured at both ends."`
	Shares            Opt[Shares]       `json:"shares" doc:"Parts of the latency that each side took, as far as the capture proves it; null without a latency."`
	Meanwhile         Opt[Meanwhile]    `json:"meanwhile" doc:"What happened on the connection while the transaction lasted; null without a latency, and if only then it was known which two directions form the connection."`
	Cause             Opt[Cause]        `json:"cause" doc:"What took most of the latency, in a sentence; null without a latency, if no part of it is most of it and at least one millisecond, and without a Call."`
	RDMAError         Opt[string]       `json:"rdma_error,omitzero" doc:"Error code of an RDMA_ERROR: ERR_VERS or ERR_CHUNK; present only if there was one." secret:"no"`
	RDMAErrorRange    Opt[VersionRange] `json:"rdma_error_versions,omitzero" doc:"Versions that an ERR_VERS says are supported; present only with one."`
	RetransmitOf      Opt[int64]        `json:"retransmit_of,omitzero" doc:"Transaction number (id): the transaction on an earlier connection that this transaction retransmits; present only if it retransmits one."`
	Retransmitted     int               `json:"retransmitted" doc:"Number of packets of the transaction that were retransmitted." alias:"retr"`
	RetransmittedFrom FromPair          `json:"retransmitted_from,omitzero" doc:"Senders of the packets of the transaction that were retransmitted: from the client, and from the server; present only if there were any."`
	Malformed         Opt[string]       `json:"malformed,omitzero" doc:"The message that an error proves to be malformed, so that its receiver cannot decode it; present only then, and if it is both, it is the call." values:"call,reply" secret:"no"`
	Findings          []string          `json:"findings" doc:"Ids of the rules of all findings about the transaction, each once." secret:"no"`

	// Key is that of the record of the connection.
	Key Opt[Hex64] `json:"-"`
	// Try is the number of the try of what RetryOf repeats, counted from 1; 0 for the first, and if the record was read back.
	Try int `json:"-"`
	// FirstTry is when the first of these was sent, if Try is known.
	FirstTry Time `json:"-"`
	// ReplyLimit is the inline threshold, in bytes, that a Reply exceeded which was not delivered; null if it exceeded none, and if the
	// record was read back.
	ReplyLimit Opt[int64] `json:"-"`
	// FileUses lists the files that the RPC acted on: File, and others that it read, wrote, created, renamed or
	// removed. It is filled in only with the option Files of
	// package dissect, as are File, FileFrom and FileHandle.
	FileUses  []FileUse   `json:"-"`
	Mapping   *Mapping    `json:"mapping,omitzero" doc:"Port for which a Call to rpcbind asks, and the answer; not present in other transactions."`
	MountPath Opt[string] `json:"mount_path,omitzero" doc:"Path that a Call to mountd (MNT or UMNT) names; not present in other transactions." secret:"path"`

	// Decoded holds the decoded arguments and results. It is filled in only with the option
	// Decode of package dissect.
	Decoded Decoded `json:"-" secret:"content"`

	RPC *RPC `json:"rpc,omitzero" doc:"Decoded arguments and results; present only if they were asked for." secret:"content"`
}

// FileText returns the path of the file that the transaction acted on, or the short form of its handle if the capture
// shows no name. It is empty if neither is known.
func (r *Transaction) FileText() string {
	if path, known := r.File.Get(); known {
		return path
	}
	return ShortHex(r.FileHandle.Or(""))
}

// Folder returns the folder of the path of the file that the RPC acts on. It is the name itself if only that is known. Paths come
// from the capture, so that they are not those of this computer.
func (r *Transaction) Folder() Opt[string] {
	file, known := r.File.Get()
	switch at := strings.LastIndexByte(file, '/'); {
	case at > 0:
		return Some(file[:at])
	case at == 0:
		return Some("/")
	}
	return SomeIf(file, known)
}

// FileBytes returns the number of bytes of files that the READs and WRITEs of an answered RPC moved. If too little of the results
// was captured, it is that of the data in chunks, with padding.
func (r *Transaction) FileBytes() (read, written int64) {
	if !r.Status.Replied() {
		return 0, 0
	}
	if r.BytesRead.Known() || r.BytesWritten.Known() {
		return r.BytesRead.Or(0), r.BytesWritten.Or(0)
	}
	switch operation := r.Operation.Or(""); {
	case r.RPCFailed() || r.NFSFailed():
	case operation == "READ" || operation == "READ_PLUS":
		for i := range r.WriteChunks {
			for _, s := range r.WriteChunks[i].Segments {
				read += int64(s.ReturnedLength.Or(0))
			}
		}
	case operation == "WRITE":
		for i := range r.ReadChunks {
			for _, s := range r.ReadChunks[i].Segments {
				if r.ReadChunks[i].Position != 0 {
					written += int64(s.Length)
				}
			}
		}
	}
	return read, written
}

// sizes are the largest numbers of bytes of the classes of READs and WRITEs.
var sizes = []struct {
	most int64
	name string
}{{4 << 10, "up to 4 KiB"}, {16 << 10, "up to 16 KiB"}, {64 << 10, "up to 64 KiB"}, {256 << 10, "up to 256 KiB"}, {1 << 20, "up to 1 MiB"}, {math.MaxInt64, "more than 1 MiB"}}

// SizeClasses returns the names of all classes of READs and WRITEs.
func SizeClasses() (names []string) {
	for _, s := range sizes {
		names = append(names, s.name)
	}
	return names
}

// SizeClass returns the class of a READ or WRITE by the bytes that it moved; it is unknown for other RPCs, and for those that
// failed.
func (r *Transaction) SizeClass() Opt[string] {
	read, written := r.FileBytes()
	for _, s := range sizes {
		if n := read + written; n > 0 && n <= s.most {
			return Some(s.name)
		}
	}
	return Opt[string]{}
}

// FileChange is what an RPC did to the name of a file.
type FileChange string

// The changes. A file that the RPC did not create, rename or remove has none.
const (
	FileCreated FileChange = "created"
	FileRenamed FileChange = "renamed"
	FileRemoved FileChange = "removed"
)

// Values returns all changes.
func (FileChange) Values() []string { return Words(FileCreated, FileRenamed, FileRemoved) }

// FileUse says what an RPC did to one file. A path or handle that the capture does not show is
// empty.
type FileUse struct {
	File         string `secret:"path"` // as in [Transaction], as are the next two
	From         string `secret:"path"`
	Handle       string `secret:"handle"`
	Change       FileChange
	ReadBytes    int64 // bytes of the file that its Reply returned
	WrittenBytes int64 // bytes that its Reply says were written
}

// Start returns the time of the Call, or of the Reply if the capture does not contain the
// Call.
func (r *Transaction) Start() Time {
	if r.Call != nil {
		return r.Call.Time
	}
	return r.Reply.Time
}

// Sent returns the time at which the Call was first sent, perhaps on an earlier connection. It is the beginning of the
// latency. The capture must contain the Call.
func (r *Transaction) Sent() Time { return r.Call.FirstSent.Or(r.Call.Time) }

// End returns the time of the end of the Reply, or of the Call if there is no Reply.
func (r *Transaction) End() Time {
	if latency, answered := r.LatencyNS.Get(); answered && r.Call != nil {
		return r.Sent() + Time(latency)
	}
	if r.Reply != nil {
		return r.Reply.Time
	}
	return r.Start()
}

// Waited returns the part of a wait, in nanoseconds, that delayed the Reply: it excludes the
// time after the Reply had arrived. If there is no Reply, or the wait precedes the Call, it
// returns the whole length.
func (r *Transaction) Waited(w *Wait) (ns int64) {
	latency, known := r.LatencyNS.Get()
	if !known || r.Call == nil || w.Reason == CreditLimit {
		return w.NS
	}
	return max(0, min(w.NS, latency-int64(w.From-r.Sent())))
}

// FillWaits fills in the parts of the waits that are inside the latency.
func (r *Transaction) FillWaits() {
	for i := range r.Waits {
		w := &r.Waits[i]
		within := int64(0)
		if w.Reason != CreditLimit {
			within = r.Waited(w)
		}
		w.WithinNS = SomeIf(within, r.LatencyNS.Known() && r.Call != nil)
	}
}

// NotDecoded stands for the procedure of a transaction whose Call could not be decoded or is not in the capture.
const NotDecoded = "(not decoded)"

// ProgramVersion returns the program with its version, such as "NFS4" or "program 99 v1". The
// program must be known.
func (r *Transaction) ProgramVersion() string {
	version, _ := r.Version.Get()
	if name, known := r.ProgramName.Get(); known {
		return name + strconv.FormatUint(uint64(version), 10)
	}
	return fmt.Sprintf("program %d v%d", r.Program.Or(0), version)
}

// ProgramProcedure returns the program, its version and the procedure, such as
// "NFS4 COMPOUND". The program must be known.
func (r *Transaction) ProgramProcedure() string {
	if name, known := r.ProcedureName.Get(); known {
		return r.ProgramVersion() + " " + name
	}
	return fmt.Sprintf("%s procedure %d", r.ProgramVersion(), r.Procedure.Or(0))
}

// RPCFailed reports whether the Reply says that the RPC was not executed.
func (r *Transaction) RPCFailed() bool { return r.RPCStatus.Or("SUCCESS") != "SUCCESS" }

// NFSFailed reports whether the results begin with an error status.
func (r *Transaction) NFSFailed() bool { return !strings.HasSuffix(r.NFSStatus.Or("_OK"), "_OK") }

// Failed reports whether the responder answered with an error: with an RDMA_ERROR, or with an RPC or NFS error status. An RPC
// without a Reply that was accepted may have succeeded. All views count these RPCs as errors.
func (r *Transaction) Failed() bool {
	return r.Status == RDMAError || r.Status != NoReply && (r.RPCFailed() || r.NFSFailed())
}

// mounting has the operations and procedures with which a client mounts, unmounts and recovers. They wait for what the server does only
// then, so they would hide the reads and writes among the slowest.
var mounting = []string{
	"EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION", "DESTROY_CLIENTID", "RECLAIM_COMPLETE", "SECINFO_NO_NAME", "BIND_CONN_TO_SESSION", "SETCLIENTID",
	"SETCLIENTID_CONFIRM", "NULL", "FSINFO", "PATHCONF", "SECINFO", "CB_NULL",
}

// OfMounting reports whether a transaction belongs to mounting, unmounting or recovery.
func (r *Transaction) OfMounting() bool {
	program := r.ProgramName.Or("")
	return program == "MOUNT" || program == "PORTMAP" || slices.Contains(mounting, r.Operation.Or(r.ProcedureName.Or("")))
}

// Succeeded reports whether the Reply shows no error status, and enough of it was captured to show one.
func (r *Transaction) Succeeded() bool { return r.Status == Complete && !r.Failed() }

// Segments returns the segments that the Call exposed, in the order of its chunk lists, each
// with the name of its list.
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

// Clone returns a copy without Decoded that stays valid after the handler has returned.
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
	if s, known := c.Shares.Get(); known {
		s.Proofs = slices.Clone(s.Proofs)
		c.Shares = Some(s)
	}
	c.Findings, c.FileUses = slices.Clone(r.Findings), slices.Clone(r.FileUses)
	c.Mapping = clonePointer(r.Mapping)
	c.Decoded = Decoded{}
	return &c
}

// CloneBytes returns the number of bytes of memory that a Clone takes.
func (r *Transaction) CloneBytes() int {
	n := unsafe.Sizeof(*r) + 2*unsafe.Sizeof(Message{}) + listBytes(r.Operations) + listBytes(r.ReadChunks) + listBytes(r.WriteChunks) +
		listBytes(r.NotInvalidated) + listBytes(r.Timeline) + listBytes(r.Waits) + listBytes(r.Findings) + listBytes(r.FileUses)
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
		n += listBytes(r.Waits[i].Packets) + listBytes(r.Waits[i].Lost)
	}
	n += listBytes(r.Shares.Or(Shares{}).Proofs) + uintptr(len(r.Cause.Or(Cause{}).Text))
	return int(n)
}

// listBytes returns the number of bytes of a list, without the lists in its elements.
func listBytes[T any](list []T) uintptr {
	var one T
	return uintptr(len(list)) * unsafe.Sizeof(one)
}

// clonePointer returns a pointer to a copy of *p, or nil if p is nil.
func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// Mapping is a question to rpcbind for the port of a program (RFC 1833).
type Mapping struct {
	Program     uint32      `json:"program" doc:"RPC program number: the program for whose port the Call asks."`
	ProgramName Opt[string] `json:"program_name" doc:"Name of that program, such as NFS or MOUNT; null if it has no known name." secret:"no"`
	Version     uint32      `json:"version" doc:"Version of that program."`
	Protocol    string      `json:"protocol" doc:"Protocol that the client wants to use: TCP, UDP, or a netid such as tcp6 or rdma." secret:"content"`
	Port        Opt[uint16] `json:"port" doc:"Port in the Reply, 0 if the program is not registered; null if the capture does not contain the port."`
}

// Phases divides the latency into the parts that the packets show. Their sum is the latency.
// A phase that did not occur is null.
type Phases struct {
	ToReadNS  Opt[int64] `json:"to_read_ns" doc:"Time from the Call to the first RDMA Read, without stalls, in nanoseconds."`
	ReadNS    Opt[int64] `json:"read_ns" doc:"Time from the first RDMA Read to the last Read response, without stalls, in nanoseconds."`
	ToWriteNS Opt[int64] `json:"to_write_ns" doc:"Time from the Call, or from the last Read response, to the first RDMA Write, without stalls, in nanoseconds."`
	WriteNS   Opt[int64] `json:"write_ns" doc:"Time from the first RDMA Write to the last packet of the last RDMA Write, without stalls, in nanoseconds."`
	WaitNS    int64      `json:"stalled_ns" doc:"Part of the latency in which the transaction stalled, in nanoseconds; no other phase includes it. Waiting for credits is not part of the latency."`
	ToReplyNS Opt[int64] `json:"to_reply_ns" doc:"Time from the previous phase, or from the Call, to the last packet of the Reply, without stalls, in nanoseconds."`
}

// End is one end of a connection.
type End string

// The ends.
const (
	Client End = "client"
	Server End = "server"
)

// Values returns both ends.
func (End) Values() []string { return Words(Client, Server) }

// WaitReason is the reason for which a transaction waited.
type WaitReason string

// The reasons.
const (
	RetransmitTimeout WaitReason = "retransmit_timeout" // no progress until one side retransmitted after its timeout
	RetransmitGap     WaitReason = "retransmit_gap"     // a packet was missing, and was retransmitted because later packets showed the gap
	RetransmitUnknown WaitReason = "retransmit_unknown" // one side retransmitted, and the capture does not show why
	RetransmitNak     WaitReason = "retransmit_nak"     // a packet was missing, and was retransmitted because of a NAK
	RNRNak            WaitReason = "rnr_nak"            // the receiver was not ready, because no receive buffer was posted
	HeadOfLine        WaitReason = "head_of_line"       // another transaction of the connection was being sent
	NewConnection     WaitReason = "new_connection"     // the Call was retransmitted on a new connection
	CreditLimit       WaitReason = "credit_limit"       // all credits were in use before the Call was sent; not part of the latency
)

// Values are all reasons.
func (WaitReason) Values() []string {
	return Words(RetransmitTimeout, RetransmitGap, RetransmitNak, RetransmitUnknown, RNRNak, HeadOfLine, NewConnection, CreditLimit)
}

// Wait is a time in which a transaction made no progress, for a reason that the capture
// shows.
type Wait struct {
	From                Time       `json:"from" doc:"Time of the last packet before the stall."`
	To                  Time       `json:"to" doc:"Time of the first packet after the stall."`
	NS                  int64      `json:"ns" doc:"Length of the stall, in nanoseconds."`
	WithinNS            Opt[int64] `json:"within_ns" doc:"Part of the stall that is inside the latency of the transaction, in nanoseconds; null if there is no latency, and for RDMA operations."`
	Reason              WaitReason `json:"reason" doc:"Reason for the stall: retransmit_timeout (a sender retransmitted after its timer expired), retransmit_gap (a sender retransmitted because later packets showed that a packet was missing), retransmit_nak (a sender retransmitted as a NAK requested), retransmit_unknown (a sender retransmitted, and the capture does not show why), rnr_nak (the receiver had no buffer), head_of_line (the sender was transmitting for another transaction), new_connection (the Call, or its Reply, was lost on an earlier connection, and the Call was retransmitted; only with several capture points), credit_limit (before the Call, all credits were in use; this time is not part of the latency)."`
	Waiting             End        `json:"waiting" doc:"The side that stalled: it waited before it transmitted its next packet."`
	Packets             []int64    `json:"packets" doc:"Numbers of the packets that show the stall."`
	Points              []string   `json:"points,omitzero" doc:"Names of the capture points whose numbers packets has, in the same order; present only with several capture points." secret:"point"`
	Event               EventKind  `json:"event,omitzero" doc:"What was retransmitted at the end of the stall." values:"call,read_request,write,reply"`
	Bytes               Opt[int64] `json:"bytes,omitzero" doc:"Number of bytes of an RDMA Read that were requested again."`
	Acknowledged        bool       `json:"acknowledged,omitzero" doc:"Whether the capture has an acknowledgement of what was retransmitted, from before the stall ended: the acknowledgement was lost after the capture point, or the sender did not accept it. Present only if so, with the reasons retransmit_timeout and retransmit_unknown and one capture point."`
	NakPacket           Opt[int64] `json:"nak_packet,omitzero" doc:"Packet number: the NAK that requested the retransmission. With the reason retransmit_timeout, the sender did not react to it, or did not receive it."`
	NakPoint            string     `json:"nak_packet_point,omitzero" doc:"Name of the capture point whose number nak_packet is; present only with several capture points." secret:"point"`
	OutOfOrderPacket    Opt[int64] `json:"out_of_order_packet,omitzero" doc:"Packet number: the packet that came after a gap in the sequence numbers, which gap_packet closed."`
	OutOfOrderPoint     string     `json:"out_of_order_packet_point,omitzero" doc:"Name of the capture point whose number out_of_order_packet is; present only with several capture points." secret:"point"`
	GapFilledBy         Opt[int64] `json:"gap_packet,omitzero" doc:"Packet number: the packet that closed the gap in the sequence numbers."`
	GapFilledPoint      string     `json:"gap_packet_point,omitzero" doc:"Name of the capture point whose number gap_packet is; present only with several capture points." secret:"point"`
	BurstPacket         Opt[int64] `json:"burst_packet,omitzero" doc:"Packet number: the first packet that the sender retransmitted when the stall ended. Stalls of several RPCs with the same packet ended with the same timeout or NAK."`
	BurstPoint          string     `json:"burst_packet_point,omitzero" doc:"Name of the capture point whose number burst_packet is; present only with several capture points." secret:"point"`
	BlockingTransaction Opt[int64] `json:"blocking_transaction,omitzero" doc:"Transaction number (id): with the reason head_of_line, the transaction that the sender was transmitting for; with another reason, the transaction whose packet the sender retransmitted first. It is not present if that is this transaction."`
	BlockingXID         Opt[Hex32] `json:"blocking_xid,omitzero" doc:"XID of blocking_transaction."`
	Lost                []LostRef  `json:"lost,omitzero" doc:"Packets that were lost or damaged between the capture points before the stall ended, and that explain it: of this transaction, or of others, whose packets the sender had to retransmit first; present only with several capture points."`
}

// LostRef is a packet that was lost or damaged between capture points.
type LostRef struct {
	Packet  int64      `json:"packet" doc:"Packet number: the packet that was lost, at the point that its sender is at, or the damaged packet."`
	Point   string     `json:"point,omitzero" doc:"Name of the capture point whose number packet is." secret:"point"`
	Time    Time       `json:"time" doc:"Time at which that point captured the packet."`
	Event   EventKind  `json:"event,omitzero" doc:"What the packet belonged to; not present if that is not known." values:"call,read_request,read_done,write,reply,nak"`
	Damaged bool       `json:"damaged" doc:"Whether the packet came to its receiver, but damaged."`
	XID     Opt[Hex32] `json:"xid" doc:"XID of the transaction to which the packet belonged; null if that is not known."`
}

// BehindReads is the time in which responses to RDMA Reads of a transaction stood behind those of others. It is no wait:
// the packets of both may have been sent at full speed.
type BehindReads struct {
	From        Time  `json:"from" doc:"Time of the first of these requests."`
	NS          int64 `json:"ns" doc:"Time from requests of RDMA Reads until the first copies of the responses to those that other transactions had requested before were complete, each moment counted once, in nanoseconds. Copies that were sent again came later: waits has that time."`
	Transaction int64 `json:"transaction" doc:"Transaction number (id): the other transaction for which the longest part was."`
	XID         Hex32 `json:"xid" doc:"XID of that transaction."`
}

// VersionRange is the range of versions in an ERR_VERS.
type VersionRange struct {
	Low  uint32 `json:"low" doc:"Lowest supported version."`
	High uint32 `json:"high" doc:"Highest supported version."`
}

// Delivery is the evidence that a capture contains about the delivery of a message.
type Delivery string

// The kinds of delivery.
const (
	DeliveryCertain      Delivery = "certain"       // the copy that was accepted is known
	DeliveryUncertain    Delivery = "uncertain"     // one of several copies was accepted
	DeliveryUnknown      Delivery = "unknown"       // the capture shows no response
	DeliveryNotDelivered Delivery = "not_delivered" // no copy was accepted before the connection ended
)

// Values returns all kinds of delivery.
func (Delivery) Values() []string {
	return Words(DeliveryCertain, DeliveryUncertain, DeliveryUnknown, DeliveryNotDelivered)
}

// Message is the Call or the Reply of a transaction.
type Message struct {
	Time         Time        `json:"time" doc:"Time of the message's first packet. Of a Call, it is the first copy, even if its receiver accepted a later one." alias:"frame.time"`
	Packet       int64       `json:"packet" doc:"Packet number: the first packet of the message." alias:"frame.number"`
	LastPacket   int64       `json:"last_packet" doc:"Packet number: the last packet of the message."`
	Point        *string     `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	LastPoint    *string     `json:"last_packet_point,omitzero" doc:"Name of the capture point whose number last_packet is; present only with several capture points." secret:"point"`
	RDMAVers     Opt[uint32] `json:"rdma_vers" doc:"Version in the RPC-over-RDMA header; null if there is no such header, as on TCP and UDP." alias:"rpcordma.version"`
	RDMAProc     Opt[string] `json:"rdma_proc" doc:"Procedure in the RPC-over-RDMA header, such as RDMA_MSG or RDMA_NOMSG; null if there is no such header, as on TCP and UDP." alias:"rpcordma.msg_type" secret:"no"`
	Credits      Opt[uint32] `json:"credits" doc:"Number of credits that the message requests (Call) or grants (Reply); null on TCP and UDP, which have none." alias:"rpcordma.flow_control"`
	HeaderBytes  Opt[int]    `json:"header_bytes" doc:"Length of the RPC-over-RDMA header, in bytes."`
	SendBytes    Opt[int]    `json:"send_bytes" doc:"Length of the Send's payload, in bytes; on TCP and UDP, the length of the RPC message."`
	PayloadBytes Opt[int64]  `json:"payload_bytes" doc:"Length of the complete, unreduced Payload stream, in bytes."`
	MissingBytes Opt[int64]  `json:"missing_bytes" doc:"Number of bytes of the Payload stream that are missing from the capture; null if payload_bytes is null."`
	InvHandle    Opt[Hex32]  `json:"inv_handle,omitzero" doc:"The field rdma_inv_handle of the header: in a Call, the handle that the Reply may invalidate; a Reply repeats it (draft-cel-nfsv4-reminv-design; the header of RFC 8166 has no such field). 0x00000000 means none."`
	Delivered    Opt[Time]   `json:"delivered" doc:"Time at which the receiver accepted the message; null if the capture does not show it."`
	Delivery     Delivery    `json:"delivery" doc:"Whether the capture shows which copy of the message was accepted: certain (it does), uncertain (one of several copies was accepted), unknown (the capture shows no response to the message), not_delivered (no copy was accepted before the connection ended)."`
	FirstSent    Opt[Time]   `json:"first_sent,omitzero" doc:"Time of the first copy of a Reply, if a later copy was accepted; time at which a Call was first sent, if that was on an earlier connection; not present otherwise."`
	DSCP         Opt[uint8]  `json:"dscp" doc:"Differentiated services code point in the IP header of the packet with which the message's Send begins, or of the first packet of the message on TCP and UDP; in a tunnel, that of the innermost IP header. It is null on RoCEv1 and InfiniBand, which have no IP header."`
	Form         Form        `json:"form" doc:"Form in which the Payload stream was transferred: in the Send (short), reduced by chunks (chunked), or in a chunk of its own (long). Messages on TCP and UDP are short."`

	LastTime Time `json:"-"` // time of the last packet
}

// Segment is a segment of memory that a Call exposed for reading.
type Segment struct {
	Handle     Hex32  `json:"handle" doc:"Handle (STag or R_key) of the segment."`
	Length     uint32 `json:"length" doc:"Length of the segment as the Call offered it, in bytes." alias:"rpcordma.rdma_length"`
	Offset     Hex64  `json:"offset" doc:"Virtual address of the segment's first byte." alias:"rpcordma.rdma_offset"`
	MovedBytes int64  `json:"moved_bytes" doc:"Number of bytes of the segment that the capture shows being transferred."`
}

// ReadChunk is a Read chunk: the segments with one Position.
type ReadChunk struct {
	Position uint32    `json:"position" doc:"Position of the chunk in the Payload stream, in bytes." alias:"rpcordma.position"`
	Segments []Segment `json:"segments" doc:"Segments of the chunk, in order."`
}

// WriteChunk is a Write chunk or Reply chunk.
type WriteChunk struct {
	Segments []WriteSegment `json:"segments" doc:"Segments of the chunk, in order."`
}

// WriteSegment is a segment of memory that a Call exposed for writing.
type WriteSegment struct {
	Handle         Hex32       `json:"handle" doc:"Handle (STag or R_key) of the segment."`
	Length         uint32      `json:"length" doc:"Length of the segment as the Call offered it, in bytes."`
	Offset         Hex64       `json:"offset" doc:"Virtual address of the segment's first byte."`
	ReturnedLength Opt[uint32] `json:"returned_length" doc:"Number of bytes that the Reply says were written to the segment; null if no Reply says so."`
	MovedBytes     int64       `json:"moved_bytes" doc:"Number of bytes of the segment that the capture shows being transferred."`
}

// segment returns the segment without the length that the Reply returned.
func (s WriteSegment) segment() Segment {
	return Segment{s.Handle, s.Length, s.Offset, s.MovedBytes}
}

// Invalidation is the effect of a Send With Invalidate. Chunk, Index and Segment are null if
// the Call did not expose the handle.
type Invalidation struct {
	Handle  Hex32      `json:"handle" doc:"Handle that the Send With Invalidate named." alias:"infiniband.ieth"`
	Packet  int64      `json:"packet" doc:"Packet number: the packet that carried the invalidation."`
	Point   string     `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	Chunk   Opt[Chunk] `json:"chunk" doc:"Chunk list that contains the handle; null if the Call did not expose the handle."`
	Index   Opt[int]   `json:"index" doc:"Index of the handle's chunk in its list, counted from 0; null if the Call did not expose the handle."`
	Segment Opt[int]   `json:"segment" doc:"Index of the handle's segment in its chunk, counted from 0; null if the Call did not expose the handle."`
}

// EventKind is the kind of an event.
type EventKind string

// The events of a timeline.
const (
	EventCall       EventKind = "call"
	EventRead       EventKind = "read_request"
	EventReadDone   EventKind = "read_done"
	EventReadAgain  EventKind = "read_again" // a complete response, of which the requester requested the end or everything again
	EventWriteFirst EventKind = "write_first"
	EventWriteLast  EventKind = "write_last"
	EventReply      EventKind = "reply"
	EventInvalidate EventKind = "invalidate"
	EventAck        EventKind = "ack"
	EventNak        EventKind = "nak"
	EventRetransmit EventKind = "retransmit"
	EventOutOfOrder EventKind = "out_of_order" // a packet came before a packet that it had to follow
	EventDamaged    EventKind = "bad_icrc"     // a packet has a bad ICRC, so its receiver drops it
	EventLost       EventKind = "lost"         // a packet was lost between capture points
)

// EventWrite is the kind of operation that a NAK or retransmission refers to if it is an RDMA
// Write.
const EventWrite EventKind = "write"

// Event is a step of a timeline. The kind of the event determines which optional fields are
// present.
type Event struct {
	Time       Time       `json:"time" doc:"Time of the event."`
	Packet     int64      `json:"packet" doc:"Packet number: the packet that shows the event."`
	Point      *string    `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	Event      EventKind  `json:"event" doc:"Kind of the event."`
	From       Role       `json:"from" doc:"The role of the side that caused the event."`
	Handle     Opt[Hex32] `json:"handle,omitzero" doc:"Handle of the memory that the event is about." alias:"handle,rpcordma.rdma_handle"`
	Offset     Opt[Hex64] `json:"offset,omitzero" doc:"Virtual address in the memory that the event is about."`
	Bytes      Opt[int64] `json:"bytes,omitzero" doc:"Number of bytes that the event moved or requested. Of the event read_again, the number of bytes at the end of the RDMA Read response that were requested again."`
	Packets    Opt[int64] `json:"packets,omitzero" doc:"Number of packets that the event took."`
	LastPacket Opt[int64] `json:"last_packet,omitzero" doc:"Packet number: the last packet of the event."`
	LastPoint  *string    `json:"last_packet_point,omitzero" doc:"Name of the capture point whose number last_packet is; present only with several capture points." secret:"point"`
	Of         EventKind  `json:"of,omitzero" doc:"The kind of operation that was acknowledged, rejected, retransmitted, damaged or out of order." values:"call,read_request,read_done,write,reply,nak,ack"`
	Reason     string     `json:"reason,omitzero" doc:"Reason that a NAK states; of the event bad_icrc, what shows the damage if it is no ICRC: bad TCP checksum, bad UDP checksum, or damaged on the way if only the comparison with the packet that was sent shows it." secret:"no"`
}
