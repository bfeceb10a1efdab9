package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// StepKind is the kind of a step of a mount.
type StepKind string

// The kinds of steps.
const (
	StepPort    StepKind = "rpcbind"         // the client asks rpcbind for the port of a program
	StepPath    StepKind = "mountd"          // the client mounts or unmounts a path
	StepRDMA    StepKind = "rdma_connection" // the client opens a connection for RPC over RDMA
	StepRefused StepKind = "tcp_refused"     // the server refuses a TCP connection to an RPC port
	StepSilent  StepKind = "tcp_unanswered"  // nothing answers a TCP connection to an RPC port
	StepNFS     StepKind = "nfs"             // the first RPC of NFS on a connection
)

// Values returns all kinds.
func (StepKind) Values() []string {
	return record.Words(StepPort, StepPath, StepRDMA, StepRefused, StepSilent, StepNFS)
}

// Step is a step of a mount, from the question for the port of mountd to the first RPC of NFS.
type Step struct {
	Time        record.Time        `json:"time" doc:"Time at which the step began."`
	Kind        StepKind           `json:"kind" doc:"Kind of the step: rpcbind (the client asks for the port of a program), mountd (the client mounts or unmounts a path), rdma_connection (the client opens a connection for RPC over RDMA), tcp_refused (the server refuses a TCP connection to an RPC port), tcp_unanswered (nothing answers a TCP connection to an RPC port), nfs (the first RPC of NFS on a connection)."`
	Client      record.Opt[string] `json:"client" doc:"Address of the client."`
	Server      record.Opt[string] `json:"server" doc:"Address of the server."`
	Connection  int                `json:"connection" doc:"Connection number: the connection of the step."`
	Transaction record.Opt[int64]  `json:"transaction" doc:"Transaction number (id): the RPC of the step; null for a step without an RPC."`
	OK          record.Opt[bool]   `json:"ok" doc:"Whether the server granted what the client asked for; null if the capture does not show the answer."`
	Asked       string             `json:"asked" doc:"What the client asked for, in words."`
	Answer      string             `json:"answer" doc:"What the server answered, in words."`
}

// maxSteps is the maximum number of steps that an overview has of those that were granted, and of the others.
const maxSteps = 64

// steps collects the steps of mounts.
type steps struct {
	rpcs, connections keptSteps
	first             map[int]bool // connections whose first RPC of NFS is a step
	tells             bool         // there is a step that only RPC over TCP or UDP shows
}

// keptSteps has the first steps of one kind of record. Those that were granted and the others have a limit each, because a mount
// that failed is reported however many succeeded before it.
type keptSteps struct {
	granted, others []Step
	total           int64
}

// add counts a step, and keeps it unless the limit is reached.
func (k *keptSteps) add(s *Step) {
	list := &k.others
	if s.OK.Or(false) {
		list = &k.granted
	}
	if len(*list) < maxSteps {
		*list = append(*list, *s)
	}
	k.total++
}

// transaction adds the step of a transaction, if it is one.
func (s *steps) transaction(r *record.Transaction) {
	step, is := mountStep(r)
	if !is && r.ProgramName.Or("") == "NFS" && !s.first[r.Connection] && len(s.first) < maxMountedConns {
		if s.first == nil {
			s.first = map[int]bool{}
		}
		s.first[r.Connection] = true
		step, is = Step{Kind: StepNFS, Asked: r.ProgramVersion() + " " + r.Operation.Or(r.ProcedureName.Or("RPC")) + " over " + r.Transport, Answer: outcome(r)}, true
	}
	if !is {
		return
	}
	step.Time, step.Client, step.Server, step.Connection, step.Transaction = r.Start(), r.Client, r.Server, r.Connection, record.Some(r.ID)
	unread := r.Mapping != nil && !r.Mapping.Port.Known() && r.Status.Replied() && !r.Failed()
	if r.Status == record.Complete && !unread {
		step.OK = record.Some(step.OK.Or(true) && !r.Failed())
	} else {
		step.OK = record.Opt[bool]{}
	}
	s.tells = s.tells || step.Kind != StepNFS
	s.rpcs.add(&step)
}

// mountStep returns the step of an RPC to rpcbind or mountd.
func mountStep(r *record.Transaction) (step Step, is bool) {
	if m := r.Mapping; m != nil {
		name := m.ProgramName.Or(fmt.Sprintf("program %d", m.Program))
		step = Step{Kind: StepPort, Asked: fmt.Sprintf("port of %s version %d over %s", name, m.Version, m.Protocol), Answer: outcome(r)}
		if port, known := m.Port.Get(); known && r.Status.Replied() && !r.Failed() {
			if step.Answer = fmt.Sprintf("port %d", port); port == 0 {
				step.Answer = "not registered"
			}
			step.OK = record.Some(port != 0)
		} else if r.Status == record.Complete && !r.Failed() {
			step.Answer = "the answer contains no port"
		}
		return step, true
	}
	if path, known := r.MountPath.Get(); known {
		return Step{Kind: StepPath, Asked: r.ProcedureName.Or("MOUNT") + " " + path, Answer: outcome(r)}, true
	}
	return step, false
}

// outcome returns the outcome of an RPC in words.
func outcome(r *record.Transaction) string {
	switch {
	case r.Status == record.NoReply:
		return "no Reply"
	case r.Status != record.Complete:
		return strings.ReplaceAll(string(r.Status), "_", " ")
	case r.RPCFailed():
		return r.RPCStatus.Or("")
	}
	return r.NFSStatus.Or("ok")
}

// connection adds the step of a connection, if it is one.
func (s *steps) connection(r *record.Connection) {
	plain := r.Transport == "TCP" || r.Transport == "UDP"
	end, ended := r.Ended.Get()
	refused := ended && (end.How == record.EndRejected || plain && end.How == record.EndReset && !r.Established.Known())
	unanswered := plain && !ended && !r.Established.Known() && r.Transactions == 0
	port := r.Server.Port.Or(0)
	if r.Handshake != "seen" || plain && !refused && !unanswered || !plain && r.UpperLayer != "rpcrdma" && port != rdmaPort {
		return
	}
	step := Step{Time: r.First, Kind: StepRDMA, Client: r.Client.Address, Server: r.Server.Address, Connection: r.ID}
	step.Asked = fmt.Sprintf("%s connection to port %d", r.Transport, port)
	switch {
	case refused:
		step.OK, step.Answer = record.Some(false), "refused"
		if reason, known := end.Reason.Get(); known && !plain {
			step.Answer = "rejected: " + reason
		}
	case r.Established.Known():
		step.OK, step.Answer = record.Some(true), "accepted"
		if r.Requests > 1 {
			step.Answer = fmt.Sprintf("accepted after %d requests, %s after the first", r.Requests, field.Duration(r.Established.Or(r.First).Sub(r.First)))
		}
	default:
		step.Answer = "no answer"
	}
	if plain {
		if step.Kind, s.tells = StepRefused, true; unanswered {
			step.Kind = StepSilent
		}
	}
	s.connections.add(&step)
}

// rdmaPort is the port of NFS over RDMA.
const rdmaPort = 20049

// list returns the steps in the order of their time, and how many there were, or nil if the capture shows nothing of a mount
// but RDMA.
func (s *steps) list() (list []Step, total int64) {
	if !s.tells {
		return nil, 0
	}
	list = append(firstSteps(s.rpcs.granted, s.connections.granted), firstSteps(s.rpcs.others, s.connections.others)...)
	sortSteps(list)
	return list, s.rpcs.total + s.connections.total
}

// firstSteps returns the first steps of two lists.
func firstSteps(a, b []Step) []Step {
	all := slices.Concat(a, b)
	sortSteps(all)
	return all[:min(len(all), maxSteps)]
}

// sortSteps sorts steps by their time.
func sortSteps(list []Step) {
	slices.SortStableFunc(list, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Connection, b.Connection))
	})
}
