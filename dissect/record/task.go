package record

import (
	"slices"
	"unsafe"
)

// Outcome is how a task ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"       // the last try succeeded
	OutcomeStatus  Outcome = "status"   // the last try was answered with an error that does not put it off
	OutcomeGivenUp Outcome = "given_up" // the server put the last try off, or did not answer it, and the client did not ask again in time
	OutcomeOpen    Outcome = "open"     // the client may still have asked again when the capture ended, or the last try was still unanswered
)

// Values returns all outcomes.
func (Outcome) Values() []string {
	return Words(OutcomeOK, OutcomeStatus, OutcomeGivenUp, OutcomeOpen)
}

// Task is what an application waited for: a request, and the requests that repeat it because the server put it off. There is a
// record of each task that was put off, or whose Call was sent more than once.
type Task struct {
	CompletedAt  `json:"-"`
	Type         string       `json:"type" doc:"The record's type, always \"task\"." values:"task"`
	Request      int64        `json:"request" doc:"Transaction number (id): the first attempt of the first try."`
	Connection   int          `json:"connection" doc:"Connection number: the connection of the last attempt." alias:"conn"`
	Client       Opt[string]  `json:"client" doc:"Address of the client; null if the capture does not show it." secret:"address"`
	Server       Opt[string]  `json:"server" doc:"Address of the server; null if the capture does not show it." secret:"address"`
	ClientName   string       `json:"client_name,omitzero" doc:"Name of the client; present only if the file of --hosts has its address." secret:"machine"`
	ServerName   string       `json:"server_name,omitzero" doc:"Name of the server; present only if the file of --hosts has its address." secret:"machine"`
	Direction    Direction    `json:"direction" doc:"Direction of the Calls: forward from client to server, backward from server to client." alias:"dir"`
	ProgramName  Opt[string]  `json:"program_name" doc:"Name of the RPC program, such as NFS, MOUNT or NFS_CB." secret:"no"`
	Version      Opt[uint32]  `json:"version" doc:"Version of the RPC program." alias:"rpc.programversion"`
	MinorVersion Opt[uint32]  `json:"minor_version" doc:"Minor version of NFSv4; null if the RPCs are no COMPOUNDs, or were not decoded." alias:"nfs.minorversion"`
	Operation    Opt[string]  `json:"operation" doc:"Name of the operation that a COMPOUND was sent for, or of the procedure of other RPCs." secret:"no"`
	File         Opt[string]  `json:"file" doc:"Path of the file or directory that the last try acted on; null if the capture shows no name." alias:"nfs.full_name" secret:"path"`
	UID          Opt[uint32]  `json:"uid" doc:"User ID in the AUTH_SYS credential of the Calls; null with another credential." alias:"rpc.auth.uid" secret:"id"`
	Principal    Opt[string]  `json:"principal" doc:"Name of the RPCSEC_GSS principal that made the Calls; null without RPCSEC_GSS, and if the capture does not show the name." secret:"user"`
	Tries        int          `json:"tries" doc:"Number of requests: 1 if the client did not ask again."`
	Attempts     int          `json:"attempts" doc:"Number of Calls of all tries: a Call is sent again if its Reply does not come."`
	Outcome      Opt[Outcome] `json:"outcome" doc:"End of the task: ok, status (an error that does not ask to try again), given_up (the client did not ask again in time), open (the capture ended before); null if it was evicted because of the memory limit, or if too little of the last Reply was captured."`
	Status       Opt[string]  `json:"status" doc:"Status of the last Reply, such as NFS4_OK or NFS4ERR_NOENT; null if there is none." secret:"no"`
	Statuses     []string     `json:"statuses" doc:"Statuses of the tries, in order, at most 32 of them: the NFS or RPC status, the code of an RDMA_ERROR, or no_reply." secret:"no"`
	BlockedNS    Opt[int64]   `json:"blocked_ns" doc:"Time from the first packet of the first Call until the last packet of the last Reply was delivered, in nanoseconds, at the capture point (with several, at the client's); null without such a Reply."`
	BlockedMinNS Opt[int64]   `json:"blocked_min_ns" doc:"Shortest such time that the capture allows, in nanoseconds: that to the end of the capture if the task was open then; null unless it was, or it is uncertain which copy of the last Reply was accepted."`
	PauseNS      Opt[int64]   `json:"pause_ns" doc:"Time from the last Reply before the last try to the first Call of that try, in nanoseconds: the client's own pause. Null with a single try, and if no Reply came before it."`
	From         Time         `json:"from" doc:"Time of the first packet of the first Call." alias:"time,frame.time"`
	To           Opt[Time]    `json:"to" doc:"Time of the last packet of the last Reply; null without such a Reply."`
	Packet       int64        `json:"packet" doc:"Packet number: the first packet of the first Call." alias:"frame.number"`
	Point        string       `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	LastPacket   Opt[int64]   `json:"last_packet" doc:"Packet number: the last packet of the last Reply; null without such a Reply."`
	LastPoint    string       `json:"last_packet_point,omitzero" doc:"Name of the capture point whose number last_packet is; present only with several capture points." secret:"point"`
	Requests     []int64      `json:"requests" doc:"Transaction numbers (id) of the first attempts of the tries, in order, at most 32 of them."`
	XIDs         []Hex32      `json:"xids" doc:"XIDs of the tries, in order, at most 32 of them." alias:"xid,rpc.xid"`
}

// MaxTries is the maximum number of tries that the lists of a task have.
const MaxTries = 32

// Clone returns a copy that stays valid after the handler has returned.
func (r *Task) Clone() *Task {
	c := *r
	c.Statuses, c.Requests, c.XIDs = slices.Clone(r.Statuses), slices.Clone(r.Requests), slices.Clone(r.XIDs)
	return &c
}

// CloneBytes returns the number of bytes of memory that a Clone takes.
func (r *Task) CloneBytes() int {
	return int(unsafe.Sizeof(*r) + listBytes(r.Statuses) + listBytes(r.Requests) + listBytes(r.XIDs))
}

// Localize separates the packet numbers of the task from their capture points.
func (r *Task) Localize(points []string) {
	local(&r.Packet, &r.Point, points)
	localOpt(&r.LastPacket, &r.LastPoint, points)
}

// Attempts tells which requests have no Reply in the capture. The attempts of a request end in any order. P is where a request counts.
type Attempts[P any] map[int64]attempted[P]

// attempted is what the attempts of a request that were added came to.
type attempted[P any] struct {
	at       P
	first    bool // the first attempt was added, with which the request counts
	answered bool
}

func (a *attempted[P]) unanswered() bool { return a.first && !a.answered }

// maxAttempted is the maximum number of requests whose attempts are remembered: those of which an attempt got no Reply, or that had several.
const maxAttempted = 1 << 16

// Add takes an attempt, and returns by how much the number of requests without a Reply changes, and where. A request counts where its first
// attempt does.
func (a Attempts[P]) Add(request int64, attempt int, status Status, at P) (where P, by int64) {
	seen, several := a[request]
	if !several && attempt <= 1 && status != NoReply {
		return at, 0
	}
	if seen.unanswered() {
		by = -1
	}
	if attempt <= 1 {
		seen.first, seen.at = true, at
	}
	if seen.answered = seen.answered || status != NoReply; seen.unanswered() {
		by++
	}
	if several || len(a) < maxAttempted {
		a[request] = seen
	}
	return seen.at, by
}
