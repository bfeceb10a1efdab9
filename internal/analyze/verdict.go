package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Place is the place of the trouble that a capture shows.
type Place string

// The places.
const (
	InNetwork       Place = "network"
	InClient        Place = "client"
	InServer        Place = "server"
	InConfiguration Place = "configuration"
	InNothing       Place = "none"
	InUnknown       Place = "unknown"
)

// Values returns all places.
func (Place) Values() []string {
	return []string{string(InNetwork), string(InClient), string(InServer), string(InConfiguration), string(InNothing), string(InUnknown)}
}

// Verdict says where the trouble is and why, as far as the capture proves it.
type Verdict struct {
	Where    Place      `json:"where" doc:"Place of the trouble: network, client, server, configuration, none if the capture shows no trouble, or unknown if it shows trouble and does not prove where the trouble is."`
	Text     string     `json:"text" doc:"The reason, in one sentence."`
	Evidence []Evidence `json:"evidence" doc:"Facts that the verdict is based on, each with the command that shows it; empty if there is no trouble."`
}

// Evidence is a fact that a verdict is based on.
type Evidence struct {
	Fact    string `json:"fact" doc:"Fact that the verdict follows from, as a sentence."`
	Command string `json:"command" doc:"Arguments of rdmadump that show the fact; FILE stands for the capture."`
}

// suspicion collects what the verdict is based on, besides the overview.
type suspicion struct {
	faults    map[faultKey]*fault
	refusals  map[refusalKey]*refusal // attempts to mount that were refused
	served    map[served]record.Time  // latest RPCs that show that the server can be mounted
	disorder  int64                   // RPCs whose times of delivery are unknown or out of order
	slow      delays                  // answers that the server delayed
	fine      bool                    // the clock of the capture has more than whole seconds
	rnr       map[record.End]int64
	repeats   int64 // RPCs whose answer proves that the server had answered them before
	servers   map[string]*presence
	nakEnds   int64 // connections that a NAK ended
	rejected  int64 // connections that the server rejected
	stale     int64 // connections that it rejected because messages were lost
	reason    record.Opt[string]
	start     record.Opt[record.Time]
	lateEnded int64 // connections that ended with outstanding Calls, or not in an orderly way
}

// faultKey is what the findings of a fault have in common.
type faultKey struct {
	rule string
	by   record.End
}

// fault counts the findings that prove which side broke a rule.
type fault struct {
	count   int64
	message string
}

// refusal counts the times that a server refused an operation of mounting.
type refusal struct {
	count  int64
	status string
	first  record.Time
}

// refusalKey says which operation a server refused to a client.
type refusalKey struct{ name, client, server string }

// served identifies RPCs that succeeded: those of an operation of mounting, or, with an empty name, those of
// NFS that a client sends only after mounting.
type served refusalKey

// delays counts the RPCs that the server answered late.
type delays struct {
	count   int64
	longest int64
	name    string // of the RPC with the longest delay
}

// presence is when a server was seen.
type presence struct {
	replies  []int32                 // seconds since the start of the capture in which it sent Replies, mostly increasing
	full     bool                    // there were more
	grace    record.Time             // its latest Reply that says that it restarted
	silent   record.Opt[record.Time] // a client began to retransmit without an answer
	unlike   bool                    // not all of these RPCs are known to have been lost on the way
	rejected record.Opt[record.Time] // its first rejection after that
}

// The limits of the verdict. A fact below them does not explain trouble.
const (
	lateAnswer    = int64(time.Second) // of a server that had the Call
	notableDelay  = lateAnswer / 10    // of a server that had the Call; it explains no trouble
	stalledShare  = 0.05               // of all latencies
	repeatedShare = 0.01               // of all packets
	creditShare   = 0.02               // of all latencies
	refusedShare  = 0.1                // of all RPCs
	maxSeconds    = 1 << 16
)

// newSuspicion returns an empty suspicion.
func newSuspicion() suspicion {
	return suspicion{
		faults: map[faultKey]*fault{}, refusals: map[refusalKey]*refusal{}, served: map[served]record.Time{}, rnr: map[record.End]int64{}, servers: map[string]*presence{},
	}
}

// server returns the presence of a server; it is nil if there are too many servers.
func (s *suspicion) server(address record.Opt[string]) *presence {
	name, known := address.Get()
	if !known {
		return nil
	}
	if s.servers[name] == nil && len(s.servers) < maxGroups {
		s.servers[name] = &presence{}
	}
	return s.servers[name]
}

// second returns the second of a time since the start of the capture.
func second(t, start record.Time) int32 { return int32(min(t.Sub(start)/1e9, 1<<30)) }

// transaction notes what a transaction proves.
func (s *suspicion) transaction(r *record.Transaction) {
	if start := r.CaptureStart(); !s.start.Known() && start != 0 {
		s.start = record.Some(start)
	}
	if p := s.server(r.Server); p != nil {
		p.transaction(r, s.start.Or(0))
	}
	if status := r.NFSStatus.Or(""); r.RetransmitOf.Known() && status == "NFS4ERR_RETRY_UNCACHED_REP" {
		s.repeats++
	}
	for i := range r.Waits {
		if w := &r.Waits[i]; w.Reason == record.RNRNak {
			side := record.Client
			if w.Waiting == record.Client {
				side = record.Server
			}
			s.rnr[side] += r.Waited(w)
		}
	}
	if ofMounting(r) {
		s.mounting(r)
		return
	}
	if r.Direction == record.Forward {
		s.delay(r)
	}
	if len(s.refusals) > 0 && r.Direction == record.Forward && r.Succeeded() { // Earlier ones say nothing about a refusal.
		s.serves(r, refusalKey{client: r.Client.Or(""), server: r.Server.Or("")})
	}
}

// transaction notes when a server answered, and when it did not.
func (p *presence) transaction(r *record.Transaction, start record.Time) {
	if r.Reply != nil && r.Direction == record.Forward {
		at := second(r.Reply.Time, start)
		if r.NFSStatus.Or("") == "NFS4ERR_GRACE" {
			p.grace = max(p.grace, r.Reply.Time)
		}
		if n := len(p.replies); n == 0 || p.replies[n-1] != at {
			if p.full = p.full || n == maxSeconds; !p.full {
				p.replies = append(p.replies, at)
			}
		}
	}
	if r.Status != record.NoReply || r.Direction != record.Forward {
		return
	}
	for i := range r.Waits {
		if w := &r.Waits[i]; w.Reason == record.RetransmitTimeout && w.Waiting == record.Client {
			p.unlike = p.unlike || !lostOnPath(r)
			if !p.silent.Known() || w.From < p.silent.Or(0) {
				p.silent = record.Some(w.From)
			}
		}
	}
}

// lostOnPath reports whether captures at both ends show that an RPC without Reply lacks it because packets were lost on
// the way: all copies of its Call, or what the server sent for it.
func lostOnPath(r *record.Transaction) bool {
	return r.ReplyLost || r.Call != nil && r.Call.Delivery == record.DeliveryNotDelivered ||
		slices.ContainsFunc(r.Timeline, func(e record.Event) bool { return e.Event == record.EventLost && e.From == record.Responder })
}

// answered reports whether a server may have sent a Reply between two times.
func (p *presence) answered(from, to, start record.Time) bool {
	low, high := second(from, start), second(to, start)
	return p.full || slices.ContainsFunc(p.replies, func(at int32) bool { return at > low && at < high })
}

// mounting notes whether the server refused an operation of mounting. The last operations of a mount say nothing
// about that.
func (s *suspicion) mounting(r *record.Transaction) {
	if r.Reply == nil || r.Direction != record.Forward || !r.Program.Known() || strings.HasPrefix(r.Operation.Or(""), "DESTROY_") || r.ProcedureName.Or("") == "UMNT" {
		return
	}
	key := refusalKey{Name(r, ByOperation), r.Client.Or(""), r.Server.Or("")}
	status := r.NFSStatus.Or("")
	if r.RPCFailed() {
		status = r.RPCStatus.Or("")
	}
	if !r.RPCFailed() && !r.NFSFailed() {
		if r.Status != record.Answered {
			s.serves(r, key)
		}
		return
	}
	if s.refusals[key] == nil && len(s.refusals) < maxStatuses {
		s.refusals[key] = &refusal{status: status, first: r.Start()}
	}
	if f := s.refusals[key]; f != nil {
		f.count++
	}
}

// serves notes that an RPC succeeded. One of NFS other than NULL shows that the server can be mounted, perhaps in
// another version than the one that the client asked for first.
func (s *suspicion) serves(r *record.Transaction, key refusalKey) {
	if _, had := s.served[served(key)]; had || len(s.served) < maxServed {
		s.served[served(key)] = r.Start()
	}
	if key.name = ""; r.ProgramName.Or("") != "NFS" || r.ProcedureName.Or("") == "NULL" {
		return
	}
	if _, had := s.served[served(key)]; had || len(s.served) < maxServed {
		s.served[served(key)] = r.Start()
	}
}

// maxServed limits the number of operations and pairs of hosts.
const maxServed = 1 << 12

// delay notes whether the server had a Call for long. Both times are those of packets that the server
// sent: its acknowledgement of the Call, and the first thing that it did for the Call.
func (s *suspicion) delay(r *record.Transaction) {
	if r.Call == nil || r.Reply == nil || r.Call.Delivery != record.DeliveryCertain || r.Retransmitted > 0 || len(r.Waits) > 0 {
		return
	}
	had, known := r.Call.Delivered.Get()
	accepted, too := r.Reply.Delivered.Get()
	if !known || !too || r.Reply.Delivery != record.DeliveryCertain || accepted < r.Reply.Time || had < r.Call.Time { // The times would not be in order.
		s.disorder++
		return
	}
	began := r.Reply.Time
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Time < began && (e.Event == record.EventRead || e.Event == record.EventWriteFirst) {
			began = e.Time
		}
	}
	ns := began.Sub(had)
	if ns > s.slow.longest && (ns >= lateAnswer || r.Operation.Known()) { // A COMPOUND that is not decoded may be one of mounting.
		s.slow.longest, s.slow.name = ns, Name(r, ByOperation)
	}
	s.fine = s.fine || ns >= notableDelay && had%1e9 != 0
	if ns >= lateAnswer {
		s.slow.count++
	}
}

// lostBefore has the reasons of rejections that follow from messages that were lost before: the server waited in vain
// for the last message of the handshake, or still has the connection that the client has given up.
var lostBefore = map[string]bool{
	"timeout": true, "stale connection": true, "invalid communication ID": true, "invalid communication instance": true,
	"duplicate local communication ID": true, "RNR retry count reject": true,
}

// connection notes how a connection ended.
func (s *suspicion) connection(r *record.Connection) {
	end, ended := r.Ended.Get()
	if !ended {
		return
	}
	switch {
	case end.How == record.EndNak:
		s.nakEnds++
	case end.How == record.EndRejected && end.By.Or(record.Client) == record.Server:
		s.rejected++
		if lostBefore[end.Reason.Or("")] {
			s.stale++
			break
		}
		s.reason = cmp.Or(s.reason, end.Reason)
		if p := s.server(r.Server.Address); p != nil && p.silent.Known() && r.Last > p.silent.Or(0) && (!p.rejected.Known() || r.Last < p.rejected.Or(0)) {
			p.rejected = record.Some(r.Last)
		}
	}
	if end.OutstandingCalls > 0 {
		s.lateEnded++
	}
}

// finding notes a finding of severity error that proves which side is at fault.
func (s *suspicion) finding(r *record.Finding) {
	by, known := r.AtFault.Get()
	if !known || r.Severity != record.Error {
		return
	}
	key := faultKey{r.Rule, by}
	if s.faults[key] == nil {
		s.faults[key] = &fault{message: r.Message}
	}
	s.faults[key].count++
}

// facts is what a verdict is decided from.
type facts struct {
	*suspicion
	o *Overview
	s *record.Summary
}

// decisions lists what may be the trouble, the most certain and most severe first. The first
// function that returns a verdict decides. A function returns nil if the capture does not prove what
// the function is about.
var decisions = []func(j *facts) *Verdict{
	noRDMA, harmfulFault, mountRefused, silentServer, noConnection, lostPackets, noBuffers, lateServer, unexplained, staleConnection, fewCredits, harmlessFault, failing, cutOff,
}

// verdict decides where the trouble is. The summary may be nil.
func (c *Collector) verdict(s *record.Summary) Verdict {
	if s == nil {
		s = &record.Summary{RDMA: 1}
	}
	j := &facts{&c.suspicion, &c.o, s}
	for _, decide := range decisions {
		if v := decide(j); v != nil {
			return *v
		}
	}
	text := "no loss, no error and no long wait seen"
	if d := &c.suspicion.slow; d.longest >= notableDelay && c.suspicion.fine {
		text = fmt.Sprintf("no loss and no error seen; the server had a Call for up to %s before it answered or moved data (%s)", seconds(d.longest), d.name)
	}
	if c.o.Health.NotCaptured > 0 || s.Truncated > 0 || s.CaptureDrops > 0 {
		text += ", but the capture is incomplete"
	}
	return Verdict{Where: InNothing, Text: text, Evidence: []Evidence{}}
}

// noRDMA is for a capture of something else.
func noRDMA(j *facts) *Verdict {
	if j.s.RDMA > 0 {
		return nil
	}
	if j.s.RPC > 0 {
		return &Verdict{InUnknown, "the capture contains RPC over TCP or UDP, and no RDMA, which verdicts are about", []Evidence{
			{"the RPCs that took longest, and why", "--top 5 FILE"}, {"latencies by operation", "stats FILE"}, {"violations of RPC and NFS", "check FILE"},
		}}
	}
	return &Verdict{InUnknown, "the capture contains no RDMA", []Evidence{{plural(j.s.Packets, "packet") + ", none of RDMA", "packets FILE"}}}
}

// harmfulFault is for a side that broke the protocol, so that RPCs failed or connections ended. If the capture is
// incomplete, a Reply that it does not contain proves no failure.
func harmfulFault(j *facts) *Verdict {
	failed := j.o.RPCs.RDMAError + j.nakEnds
	if !j.incomplete() {
		failed += j.o.RPCs.NoReply + j.lateEnded
	}
	if failed == 0 {
		return nil
	}
	return j.broken("RPCs or connections failed")
}

// incomplete reports whether packets are missing from the capture, or parts of them.
func (j *facts) incomplete() bool {
	return j.o.Health.NotCaptured > 0 || j.s.Truncated > 0 || j.s.CaptureDrops > 0 || j.o.RPCs.NoCall > 0
}

// harmlessFault is for a side that broke the protocol without visible consequences.
func harmlessFault(j *facts) *Verdict { return j.broken("") }

// broken returns the verdict about the side whose errors the findings prove.
func (j *facts) broken(consequence string) *Verdict {
	keys := slices.SortedFunc(maps.Keys(j.faults), func(a, b faultKey) int {
		return cmp.Or(cmp.Compare(j.faults[b].count, j.faults[a].count), cmp.Compare(a.rule, b.rule), cmp.Compare(a.by, b.by))
	})
	if len(keys) == 0 {
		return nil
	}
	count := map[record.End]int64{}
	var evidence []Evidence
	for _, k := range keys {
		f := j.faults[k]
		count[k.by] += f.count
		if len(evidence) < 4 {
			evidence = append(evidence, Evidence{fmt.Sprintf("%s of the %s: %s", k.rule, k.by, plural(f.count, "finding")), "check FILE -Y 'rule == " + k.rule + "'"})
		}
	}
	where := InUnknown
	switch {
	case count[record.Server] > count[record.Client]:
		where = InServer
	case count[record.Client] > count[record.Server]:
		where = InClient
	}
	first := slices.IndexFunc(keys, func(k faultKey) bool { return where == InUnknown || string(k.by) == string(where) })
	f := j.faults[keys[first]]
	text := f.message
	if where != InUnknown {
		n := count[record.End(where)]
		text = fmt.Sprintf("%s of the protocol (%s): %s", plural(n, "violation"), keys[first].rule, text)
		if n > f.count {
			text = fmt.Sprintf("%s of the protocol, most often %s: %s", plural(n, "violation"), keys[first].rule, f.message)
		}
	} else {
		text = fmt.Sprintf("both sides violate the protocol, %s each, such as %s: %s", plural(count[record.Server], "time"), keys[first].rule, text)
	}
	if consequence != "" {
		text += "; " + consequence
	}
	return &Verdict{where, text, evidence}
}

// refusalReasons explains the statuses of a refused mount.
var refusalReasons = map[string]string{
	"NFS4ERR_MINOR_VERS_MISMATCH": "the server does not serve the minor version that the client asks for",
	"PROG_MISMATCH":               "the server does not serve this version of the program",
	"PROG_UNAVAIL":                "the server does not serve this program",
}

// mountRefused is for a server that refuses to be mounted.
func mountRefused(j *facts) *Verdict {
	var keys []refusalKey
	for key, r := range j.refusals {
		any := refusalKey{client: key.client, server: key.server}
		if !strings.HasPrefix(key.name, "NFSACL") && j.served[served(key)] <= r.first && j.served[served(any)] <= r.first {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.SortFunc(keys, func(a, b refusalKey) int {
		return cmp.Or(cmp.Compare(j.refusals[b].count, j.refusals[a].count), cmp.Compare(a.name, b.name), cmp.Compare(a.client, b.client), cmp.Compare(a.server, b.server))
	})
	name, r := keys[0].name, j.refusals[keys[0]]
	text := fmt.Sprintf("%s refused with %s", name, r.status)
	if why := refusalReasons[r.status]; why != "" {
		text += ": " + why
	}
	return &Verdict{InServer, text, []Evidence{{fmt.Sprintf("%s with %s", plural(r.count, name+" Reply"), r.status), "FILE -Y 'status == " + r.status + "'"}}}
}

// silentServer is for a server that did not answer, and rejected connections afterwards: it had
// stopped serving. Without that rejection, the network may be the reason.
func silentServer(j *facts) *Verdict {
	for _, address := range slices.Sorted(maps.Keys(j.servers)) {
		p := j.servers[address]
		from, silent := p.silent.Get()
		if !silent || j.o.Network != nil && !p.unlike { // Captures at both ends show that the network lost them.
			continue
		}
		start := j.start.Or(from)
		to, rejected := p.rejected.Get()
		since := fmt.Sprintf("silent from %.2fs", float64(from.Sub(start))/1e9)
		evidence := []Evidence{{"Calls were retransmitted without an answer", "FILE -Y 'status == no_reply and waits.ns > 0'"}}
		switch {
		case rejected && !p.answered(from, to, start):
			evidence = append(evidence, Evidence{plural(j.rejected, "connection") + " rejected by the server", "connections FILE -Y 'ended.how == rejected'"})
			text := fmt.Sprintf("%s for %.0fs, then rejects connections", since, float64(to.Sub(from))/1e9)
			if p.grace > to {
				text += "; it had restarted, as its later Replies with NFS4ERR_GRACE show"
				evidence = append(evidence, Evidence{"Replies that the server sends only after a restart", "FILE -Y 'status == NFS4ERR_GRACE'"})
			}
			return &Verdict{InServer, text, evidence}
		case j.repeats > 0: // The server had executed the RPCs, so the Replies were lost.
			evidence = append(evidence, Evidence{plural(j.repeats, "RPC") + " that the server had answered before", "FILE -Y 'status == NFS4ERR_RETRY_UNCACHED_REP'"})
			return &Verdict{InNetwork, "Replies were lost: the client retransmitted Calls that the server had answered, and got no acknowledgement", evidence}
		}
		return &Verdict{InUnknown, "the server or the network: " + since + "; the capture does not prove which of the two stopped", evidence}
	}
	return nil
}

// noConnection is for connections that were never opened.
func noConnection(j *facts) *Verdict {
	n := j.o.Health.UnansweredRequests
	switch {
	case j.rejected > j.stale:
		text := "the server rejected " + plural(j.rejected, "connection")
		if reason, known := j.reason.Get(); known {
			text += ": " + reason
		}
		return &Verdict{InServer, text, []Evidence{{plural(j.rejected, "connection") + " rejected by the server", "connections FILE -Y 'ended.how == rejected'"}}}
	case n > 0:
		return &Verdict{
			InUnknown, "the server or the network: " + plural(n, "connection request") + " without an answer in the capture",
			[]Evidence{{plural(n, "connection request") + " without an answer", "connections FILE -Y 'established == null and ended == null'"}},
		}
	}
	return nil
}

// staleConnection is for connections that the server rejected because earlier messages were lost. It does not say
// who lost them.
func staleConnection(j *facts) *Verdict {
	if j.stale == 0 {
		return nil
	}
	return &Verdict{
		InUnknown, "the server rejected " + plural(j.stale, "connection") + ", which follows from the loss of earlier messages",
		[]Evidence{{plural(j.rejected, "connection") + " rejected by the server", "connections FILE -Y 'ended.how == rejected'"}},
	}
}

// impact returns the share of the latencies that RPCs stalled because of retransmissions, and whether
// retransmissions mattered.
func (j *facts) impact() (share float64, matters bool) {
	stalled := j.o.Time.StalledByRetransmission()
	share = float64(stalled) / float64(max(j.o.Time.TotalNS, 1))
	h := &j.o.Health
	if slices.ContainsFunc(j.o.Traffic, func(t Traffic) bool { return t.Stalled > 0 }) {
		return share, true
	}
	return share, share >= stalledShare && stalled > 0 || j.o.Time.Unanswered.Stalled > 0 || float64(h.Retransmitted) >= repeatedShare*float64(h.Packets) && h.Retransmitted > 1
}

// lostPackets is for a network that lost, reordered or corrupted packets. A retransmission does not
// prove that: only a bad checksum, a gap that the capture or a NAK shows, or a lost Reply does.
func lostPackets(j *facts) *Verdict {
	h := &j.o.Health
	share, matters := j.impact()
	sequence := h.Naks - min(h.Naks, j.nakEnds)
	n := sumNetwork(j.o.Network)
	seen := n.Lost+n.Corrupted > 0
	if !matters || !seen && j.s.ICRCBad+h.OutOfOrder+sequence == 0 || h.Retransmitted == 0 {
		return nil
	}
	if j.o.Network != nil && !seen && n.Unknown == 0 { // All packets arrived.
		return nil
	}
	var facts []string
	var evidence []Evidence
	if seen {
		fact := fmt.Sprintf("%s lost and %d damaged between the capture points", plural(n.Lost, "packet"), n.Corrupted)
		switch {
		case n.Corrupted == 0:
			fact = plural(n.Lost, "packet") + " lost between the capture points"
		case n.Lost == 0:
			fact = plural(n.Corrupted, "packet") + " damaged between the capture points"
		}
		facts, evidence = append(facts, fact), append(evidence, Evidence{fact, "network FILE --lost"})
	}
	add := func(n int64, fact, mark string) {
		if n > 0 {
			facts = append(facts, fact)
			evidence = append(evidence, Evidence{fact, "packets FILE -Y 'marks == " + mark + "'"})
		}
	}
	percent := float64(h.Retransmitted) * 100 / float64(max(h.Packets, 1))
	add(h.Retransmitted, fmt.Sprintf("%.*f%% of packets retransmitted", map[bool]int{true: 1, false: 0}[percent < 10], percent), "retransmitted")
	if !seen || j.s.ICRCBad > n.Corrupted { // Damaged packets with a bad ICRC are among those that arrived damaged.
		add(j.s.ICRCBad, plural(j.s.ICRCBad, "bad ICRC"), "bad_icrc")
	}
	add(h.OutOfOrder, plural(h.OutOfOrder, "packet")+" out of order", "out_of_order")
	add(sequence, plural(sequence, "NAK"), "refused")
	text := strings.Join(facts, ", ")
	if share >= stalledShare {
		text += fmt.Sprintf("; retransmissions stalled RPCs for %.0f%% of their latency", share*100)
		evidence = append(evidence, Evidence{"RPCs stalled until a retransmission", "FILE -Y 'waits.reason contains retransmit'"})
	}
	for _, t := range j.o.Traffic {
		if t.Stalled > 0 {
			text += fmt.Sprintf("; %s of %s stalled for %s", plural(t.Stalled, "RDMA operation"), t.UpperLayer, seconds(t.TotalNS))
			if t.Stalled > 1 {
				text += " in total"
			}
			evidence = append(evidence, Evidence{"RDMA operations stalled until a retransmission", "rdma FILE -Y 'stalled > 0' --sort -stalled"})
		}
	}
	if len(j.faults) == 0 {
		text += "; no fault of either end seen"
	}
	return &Verdict{InNetwork, text, evidence}
}

// sumNetwork sums up what happened between capture points.
func sumNetwork(list []*record.Network) (sum record.Network) {
	for _, n := range list {
		sum.Lost += n.Lost
		sum.Corrupted += n.Corrupted
		sum.Unknown += n.Unknown
	}
	return sum
}

// noBuffers is for a side that has no receive buffers.
func noBuffers(j *facts) *Verdict {
	if j.o.Health.RNRNaks == 0 {
		return nil
	}
	for _, side := range []record.End{record.Server, record.Client} {
		if ns := j.rnr[side]; float64(ns) >= stalledShare*float64(max(j.o.Time.TotalNS, 1)) && ns > 0 {
			return &Verdict{
				Place(side), fmt.Sprintf("it had no receive buffers: %s, and RPCs stalled for %s", plural(j.o.Health.RNRNaks, "RNR NAK"), seconds(ns)),
				[]Evidence{{plural(j.o.Health.RNRNaks, "RNR NAK"), "FILE -Y 'waits.reason == rnr_nak'"}},
			}
		}
	}
	return nil
}

// lateServer is for a server that had Calls for long before it answered.
func lateServer(j *facts) *Verdict {
	h := &j.o.Health
	if j.slow.count == 0 || !j.fine || j.disorder > j.slow.count || h.Retransmitted+h.OutOfOrder+h.NotCaptured+j.s.ICRCBad+j.s.TimeBackwards > 0 {
		return nil
	}
	return &Verdict{
		InServer, fmt.Sprintf("%s answered after more than 1s although the server had the Call and nothing stalled, the slowest %s after %s", plural(j.slow.count, "RPC"), j.slow.name, seconds(j.slow.longest)),
		[]Evidence{{plural(j.slow.count, "RPC") + " answered late", "FILE -Y 'latency > 1s' --top 5"}},
	}
}

// unexplained is for retransmissions without proof of loss.
func unexplained(j *facts) *Verdict {
	share, matters := j.impact()
	if !matters || j.o.Health.Retransmitted == 0 {
		return nil
	}
	n := plural(j.o.Health.Retransmitted, "packet")
	text := n + " retransmitted; the capture does not show why"
	if share >= stalledShare {
		text = fmt.Sprintf("%s retransmitted, which stalled RPCs for %.0f%% of their latency; the capture does not show why", n, share*100)
	}
	return &Verdict{InUnknown, text, []Evidence{{n + " retransmitted", "packets FILE -Y 'marks == retransmitted'"}}}
}

// fewCredits is for Calls that waited for credits. If Calls and Replies are missing, or not in the order in which they
// were sent, it is not known how many Calls were outstanding.
func fewCredits(j *facts) *Verdict {
	n := &j.o.RPCs
	i := slices.IndexFunc(j.o.Credits, func(c CreditUse) bool { return c.Peak <= int(c.Granted.Or(0)) })
	if i < 0 || j.o.Time.CreditsNS == 0 || float64(j.o.Time.CreditsNS) < creditShare*float64(j.o.Time.TotalNS) || 10*(n.NoReply+n.NoCall) > n.Complete {
		return nil
	}
	c := j.o.Credits[i]
	return &Verdict{
		InConfiguration, fmt.Sprintf("few credits: all %d of connection %d were in use, and Calls waited for %s", c.Granted.Or(0), c.Connection, seconds(j.o.Time.CreditsNS)),
		[]Evidence{{"all credits in use", fmt.Sprintf("connections FILE --conn %d --timeline", c.Connection)}, {"Calls waited for a credit", "FILE -Y 'waits.reason == credit_limit'"}},
	}
}

// failures are the statuses that say where the trouble is, if many RPCs fail with them.
var failures = map[string]Place{
	"IO": InServer, "SERVERFAULT": InServer, "NOSPC": InServer, "DQUOT": InServer,
	"STALE": InUnknown, "DELAY": InUnknown, "JUKEBOX": InUnknown, // because of a file that anybody removed, or of a client that keeps a delegation
	"ACCESS": InConfiguration, "ACCES": InConfiguration, "PERM": InConfiguration, "WRONGSEC": InConfiguration, "ROFS": InConfiguration,
	"MSG_DENIED": InConfiguration, "AUTH_ERROR": InConfiguration,
}

// failing is for RPCs that fail with the same error.
func failing(j *facts) *Verdict {
	for _, s := range j.o.RPCs.Statuses {
		_, name, _ := strings.Cut(s.Status, "ERR_")
		where, known := failures[cmp.Or(name, s.Status)]
		if total := j.o.RPCs.Complete; known && float64(s.Count) >= refusedShare*float64(total) {
			return &Verdict{where, fmt.Sprintf("%d of %s failed with %s", s.Count, plural(total, "RPC"), s.Status), []Evidence{{plural(s.Count, "RPC") + " with " + s.Status, "FILE -Y 'status == " + s.Status + "'"}}}
		}
	}
	return nil
}

// cutOff is for connections that ended with outstanding Calls, for a reason that the capture does
// not show.
func cutOff(j *facts) *Verdict {
	if j.lateEnded == 0 {
		return nil
	}
	return &Verdict{
		InUnknown, plural(j.lateEnded, "connection") + " ended with outstanding Calls",
		[]Evidence{{plural(j.lateEnded, "connection") + " ended with outstanding Calls", "connections FILE -Y 'ended.outstanding_calls > 0'"}},
	}
}

// plural returns a number with its noun.
func plural(n int64, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "Reply"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// seconds returns a duration in words, with the same precision as tables.
func seconds(ns int64) string {
	precision := 10 * time.Microsecond
	if ns >= int64(time.Second) {
		precision = time.Millisecond
	}
	return time.Duration(ns).Round(precision).String()
}
