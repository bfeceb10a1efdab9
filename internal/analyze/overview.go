package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Overview summarizes a capture: its connections, how well the transport worked, and how
// the RPCs spent their time.
type Overview struct {
	Type            string                 `json:"type" doc:"The record's type, always \"overview\"." values:"overview"`
	Groups          []Group                `json:"groups" doc:"Groups of connections between the same two ends with the same transport and upper layer."`
	Health          Health                 `json:"health" doc:"Retransmissions, losses and NAKs on all connections."`
	RPCs            RPCs                   `json:"rpcs" doc:"Number of requests and attempts, and what became of them."`
	Operations      []*Operation           `json:"operations" doc:"Sums of the requests by operation, those with the largest sums of latencies first; the requests of mounting, unmounting and recovery are one row."`
	Timeline        Course                 `json:"timeline" doc:"Number of requests over time."`
	Time            Where                  `json:"time" doc:"Parts that the time of all transactions is made of."`
	MountSteps      []Step                 `json:"mount_steps" doc:"Steps of mounts and unmounts in the order of their time: the questions to rpcbind, the RPCs to mountd, the connections for RPC over RDMA, and the first RPC of NFS on each connection: at most 64 that the server granted, and 64 others; null if the capture contains no RPC to rpcbind or mountd."`
	MountStepsTotal int64                  `json:"mount_steps_total" doc:"Number of steps of mounts and unmounts, with those that mount_steps leaves out."`
	Throughput      record.Opt[Throughput] `json:"throughput" doc:"File data that READ and WRITE moved; null if the capture shows none."`
	Mounted         []Mounted              `json:"mounted" doc:"What clients and servers agreed on, by pair of client and server: at most 64."`
	Credits         []CreditUse            `json:"credits" doc:"Connections that used all their credits or were granted few; null if there is none."`
	CreditsEnough   record.Opt[CreditUse]  `json:"credits_enough" doc:"The connection that came closest to using all its credits, of those that never did: so many credits were enough for its Calls. Null if there is none."`
	Traffic         []Traffic              `json:"traffic" doc:"Sums of the connections of other upper layers than RPC-over-RDMA, by upper layer."`
	Connections     int                    `json:"connections" doc:"Number of connection records."`

	Points  []*record.Point   `json:"points,omitzero" doc:"Capture points; present only if there are several."`
	Network []*record.Network `json:"network,omitzero" doc:"What happened to packets between the capture points; present only if there are several."`

	Hosts []HostName `json:"hosts,omitzero" doc:"Names of the hosts of connections; present only if the file of --hosts has any of them."`

	// Selected says what of the capture is summed up; it is empty for the whole capture.
	Selected string `json:"-"`
}

// HostName is the name of a host.
type HostName struct {
	Address string `json:"address" doc:"Address of the host." secret:"address"`
	Name    string `json:"name" doc:"Name of the host." secret:"machine"`
}

// Group sums up the connections between two ends that have the same transport and upper
// layer.
type Group struct {
	Client       record.Opt[string] `json:"client" doc:"Address of the client."`
	Server       record.Opt[string] `json:"server" doc:"Address and port of the server."`
	Transport    string             `json:"transport" doc:"Transport protocol that carries the connections."`
	UpperLayer   string             `json:"upper_layer" doc:"Upper-layer protocol that the connections carry."`
	Connections  int                `json:"connections" doc:"Number of connections in the group."`
	Transactions int64              `json:"attempts" doc:"Number of RPC transactions on the connections."`
	Handshakes   int                `json:"handshakes" doc:"Number of connections whose handshake is in the capture."`
	ClientsKnown int                `json:"clients_known" doc:"Number of connections of which the capture shows which end is the client."`
}

// Health sums up retransmissions, losses and NAKs of all connections, in the time that the overview is about.
type Health struct {
	Packets       int64 `json:"packets" doc:"Number of packets of all connections."`
	Retransmitted int64 `json:"retransmitted" doc:"Number of retransmitted packets."`
	OutOfOrder    int64 `json:"out_of_order" doc:"Number of packets that arrived after a packet with a higher sequence number."`
	NotCaptured   int64 `json:"not_captured" doc:"Number of packets that receivers acknowledged but that are missing from the capture."`
	Naks          int64 `json:"naks" doc:"Number of NAKs, not counting RNR NAKs."`
	RNRNaks       int64 `json:"rnr_naks" doc:"Number of receiver-not-ready (RNR) NAKs."`
	Damaged       int64 `json:"damaged" doc:"Number of packets that their receivers drop because of a bad checksum, whether they belong to a connection or not."`

	CongestionMarks int64 `json:"ce_marks" doc:"Number of packets with a congestion mark of a switch (CE)."`
	CNPs            int64 `json:"cnps" doc:"Number of congestion notification packets (CNP)."`
	Pauses          int64 `json:"pauses" doc:"Number of priority flow control (PFC) frames that pause at least one priority, on any connection."`

	StartsNotCaptured int64 `json:"starts_not_captured" doc:"Number of connections whose handshake is not in the capture, or not in the time that the overview is about; UDP has no handshakes."`
	EndsNotCaptured   int64 `json:"ends_not_captured" doc:"Number of connections whose end is not in the capture, or not in the time that the overview is about; UDP has none."`

	UnansweredRequests int64 `json:"cm_unanswered" doc:"Number of connection requests of the connection manager, or of MPA, that got no answer in the capture."`
}

// RPCs counts transactions by their outcome.
type RPCs struct {
	Requests   int64 `json:"requests" doc:"Number of requests: of what clients asked for once."`
	Attempts   int64 `json:"attempts" doc:"Number of Calls of these requests: a client sends a Call again on another connection if its Reply does not come."`
	Unanswered int64 `json:"unanswered" doc:"Number of requests without a Reply in the capture."`

	Complete                     int64         `json:"complete" doc:"Number of transactions with both a Call and a Reply, of which answered is a part."`
	Answered                     int64         `json:"answered" doc:"Number of these transactions of whose Reply too little was captured to say whether the RPC succeeded."`
	NoReply                      int64         `json:"no_reply" doc:"Number of transactions without a Reply."`
	NoCall                       int64         `json:"no_call" doc:"Number of Replies whose Call is not in the capture."`
	RDMAError                    int64         `json:"rdma_error" doc:"Number of transactions that an RDMA_ERROR answered."`
	Failed                       int64         `json:"failed" doc:"Number of transactions with an RPC or NFS error status."`
	Backward                     int64         `json:"backward" doc:"Number of transactions in the backward direction, called by the server."`
	Statuses                     []StatusCount `json:"statuses" doc:"Number of transactions by RPC or NFS error status, the most frequent first; null if none failed."`
	RetransmittedOnNewConnection int64         `json:"retransmitted_on_new_connection" doc:"Number of transactions that retransmit one of an earlier connection."`
}

// Where breaks down the time of RPCs. RPCs with a Reply and RPCs without one are counted
// apart, because only a Reply gives an RPC a latency.
type Where struct {
	Answered    int64       `json:"answered" doc:"Number of RPCs with a latency, which total_ns, phases and waits are about."`
	TotalNS     int64       `json:"total_ns" doc:"Sum of the latencies of all answered RPCs, in nanoseconds."`
	UpperBounds int64       `json:"upper_bounds" doc:"Number of these latencies that are upper bounds, because it is uncertain which copy of a Reply was accepted. The sums count the upper bounds."`
	Phases      PhaseSums   `json:"phases" doc:"Parts that the sum of all latencies is made of."`
	Shares      ShareSums   `json:"shares" doc:"Parts of the sum of all latencies that each host and the network took, as far as the capture proves it. The server is the caller of Calls in backward direction."`
	Waits       []WaitCount `json:"waits" doc:"Stalls of answered RPCs by reason, the longest first; null if there is none."`
	CreditsNS   int64       `json:"credits_ns" doc:"Time in which at least one Call of an answered RPC waited for a credit before it was sent, in nanoseconds."`
	Unanswered  Unanswered  `json:"unanswered" doc:"RPCs that got no Reply, and how long they made no progress."`
}

// Unanswered sums up the RPCs that got no Reply.
type Unanswered struct {
	RPCs      int64       `json:"rpcs" doc:"Number of RPCs that got no Reply."`
	Stalled   int64       `json:"stalled" doc:"Number of RPCs without a Reply that stalled at least once."`
	StalledNS int64       `json:"stalled_ns" doc:"Time in which at least one RPC without a Reply stalled, in nanoseconds; stalls that overlap count once."`
	Waits     []WaitCount `json:"waits" doc:"Stalls of RPCs without a Reply by reason, the longest first; null if there is none."`
}

// WaitCount sums up the waits with one reason.
type WaitCount struct {
	Reason  record.WaitReason `json:"reason" doc:"Reason for the stalls."`
	RPCs    int64             `json:"rpcs" doc:"Number of RPCs that stalled for this reason."`
	Count   int64             `json:"count" doc:"Number of stalls with this reason."`
	TotalNS int64             `json:"total_ns" doc:"Sum of these stalls over all RPCs, in nanoseconds; stalls of one RPC that overlap count once."`
	NS      int64             `json:"ns" doc:"Time in which at least one RPC stalled for this reason, in nanoseconds; stalls that overlap count once."`
}

// CreditUse is a connection that used all credits that it was granted.
type CreditUse struct {
	Connection int                `json:"connection" doc:"Connection number, as in the table of connections."`
	Granted    record.Opt[uint32] `json:"granted" doc:"Number of credits that the latest Reply granted."`
	Peak       int                `json:"peak_in_flight" doc:"Largest number of Calls that were outstanding at once."`

	Usage record.Opt[record.CreditUsage] `json:"usage" doc:"For how long Calls were in flight, and all credits in use, as in credits of the connection."`
}

// MaxPairs is the maximum number of pairs of hosts that an overview has.
const MaxPairs = 64

// maxUses limits the connections whose use of credits an overview lists.
const maxUses = 64

// Collector makes an overview from the records of a capture.
type Collector struct {
	o          Overview
	answered   waitTable        // waits of RPCs with a latency
	unanswered waitTable        // waits of RPCs without a Reply
	stalled    outages          // all waits of unanswered
	statuses   map[string]int64 // of transactions that failed
	requests   requests
	traffic    traffic
	steps      steps
	throughput throughput
	mounts     Mounts
	overlaps   func(from, to record.Time) bool // of the span of time that the overview is about
}

// NewCollector returns an empty Collector.
func NewCollector() *Collector {
	return &Collector{
		answered: waitTable{}, unanswered: waitTable{}, statuses: map[string]int64{}, requests: newRequests(),
		overlaps: func(_, _ record.Time) bool { return true }, traffic: traffic{open: map[int]*Traffic{}, all: map[string]*Traffic{}},
	}
}

// Begin sets the time of the first packet, from which seconds count, as those of [Rates] do. Without it, the first RPC is the start.
func (c *Collector) Begin(at record.Time) error {
	c.throughput.begin, c.throughput.begun = at, true
	c.o.Timeline.From = at
	return nil
}

// Only says which span of time the overview is about: overlaps reports whether another one overlaps it; nil for the whole capture. It must be called before
// the first record.
func (c *Collector) Only(overlaps func(from, to record.Time) bool) {
	if overlaps != nil {
		c.overlaps = overlaps
	}
}

// Transaction adds a transaction. It does not keep r.
func (c *Collector) Transaction(r *record.Transaction) {
	o := &c.o
	switch r.Status {
	case record.Complete, record.Answered:
		if o.RPCs.Complete++; r.Status == record.Answered {
			o.RPCs.Answered++
		}
	case record.NoReply:
		o.RPCs.NoReply++
	case record.NoCall:
		o.RPCs.NoCall++
	case record.RDMAError:
		o.RPCs.RDMAError++
	}
	if r.Failed() && r.Status != record.RDMAError {
		o.RPCs.Failed++
		c.failed(r)
	}
	if r.Direction == record.Backward && r.Status != record.NoCall { // a Reply does not prove that the server sent a Call
		o.RPCs.Backward++
	}
	if r.RetransmitOf.Known() {
		o.RPCs.RetransmittedOnNewConnection++
	}
	c.requests.add(r)
	if r.Attempt <= 1 {
		o.Timeline.add(r.Start())
	}
	c.waits(r)
	o.Time.Shares.addHosts(r)
	if latency, known := r.LatencyNS.Get(); known {
		o.Time.Answered++
		o.Time.TotalNS += latency
		if r.LatencyMinNS.Known() {
			o.Time.UpperBounds++
		}
	}
	if p, known := r.Phases.Get(); known {
		o.Time.Phases.add(p)
	}
	c.throughput.add(r)
	c.mounts.Transaction(r)
	c.steps.transaction(r)
}

// waits sums up the waits of a transaction.
func (c *Collector) waits(r *record.Transaction) {
	if r.LatencyNS.Known() {
		c.answered.add(r)
		return
	}
	if r.Status != record.NoReply {
		return
	}
	u := &c.o.Time.Unanswered
	u.RPCs++
	if !c.unanswered.add(r) {
		return
	}
	u.Stalled++
	for i := range r.Waits {
		c.stalled.add(r.Waits[i].From, r.Waits[i].From+record.Time(r.Waited(&r.Waits[i])))
	}
}

// Connection adds a connection. The transactions of a connection must be added before it.
func (c *Collector) Connection(r *record.Connection) {
	o, h := &c.o, &c.o.Health
	o.Connections++
	h.add(r)
	if unanswered(r) {
		h.UnansweredRequests++
	} else {
		c.seen(r)
	}
	c.traffic.connection(r)
	c.group(r)
	c.mounts.Connection(r)
	c.steps.connection(r)
	use := r.Credits.Or(record.CreditPair{}).Forward
	if granted, known := use.Granted.Get(); known && use.PeakInFlight.Known() && use.PeakInFlight.Or(0) >= int(granted) && len(o.Credits) < maxUses {
		o.Credits = append(o.Credits, CreditUse{r.ID, use.Granted, use.PeakInFlight.Or(0), use.Usage})
	} else if enough, had := o.CreditsEnough.Get(); known && use.PeakInFlight.Or(0) > 0 && use.PeakInFlight.Or(0) < int(granted) && (!had || use.PeakInFlight.Or(0)*int(enough.Granted.Or(0)) > enough.Peak*int(granted)) {
		o.CreditsEnough = record.Some(CreditUse{r.ID, use.Granted, use.PeakInFlight.Or(0), use.Usage})
	}
}

// SoFar returns the overview of what was added so far. Open calls its argument with the connections that are
// still open, which count in groups and health. The Collector may be used afterwards.
func (c *Collector) SoFar(s *record.Summary, open func(func(*record.Connection))) *Overview {
	now := *c
	now.o.Groups = slices.Clone(c.o.Groups)
	open(func(r *record.Connection) {
		now.o.Connections++
		now.o.Health.add(r)
		now.group(r)
	})
	return now.Finish(s)
}

// add adds a connection.
func (h *Health) add(r *record.Connection) {
	n := r.Counts()
	h.Packets += n.Packets
	h.Retransmitted += n.Retransmitted
	h.OutOfOrder += n.OutOfOrder
	h.NotCaptured += n.NotCaptured
	h.Naks += n.Naks
	h.RNRNaks += n.RNRNaks
	h.Damaged += n.Damaged
	h.CongestionMarks += n.CongestionMarks
	h.CNPs += n.CNPs
}

// seen counts whether the beginning and the end of a connection are in the capture, and in the time that the overview is
// about.
func (c *Collector) seen(r *record.Connection) {
	if r.Transport == "UDP" {
		return
	}
	h := &c.o.Health
	if r.Handshake != "seen" || !c.overlaps(r.First, r.First) {
		h.StartsNotCaptured++
	}
	at := r.Closed.Or(r.Last)
	if end, ended := r.Ended.Get(); !ended || end.How == record.EndSilence || !c.overlaps(at, at) {
		h.EndsNotCaptured++
	}
}

// unanswered reports whether a connection is only a request to open one, which got no answer in the
// capture.
func unanswered(r *record.Connection) bool {
	return r.ServiceID.Known() && !r.Server.QPN.Known() && !r.Established.Known() && !r.Ended.Known()
}

// group adds a connection to its group.
func (c *Collector) group(r *record.Connection) {
	g := Group{Client: r.Client.Address, Server: r.Server.Address, Transport: r.Transport, UpperLayer: r.UpperLayer}
	i := slices.IndexFunc(c.o.Groups, func(x Group) bool {
		return x.Client == g.Client && x.Server == g.Server && x.Transport == g.Transport && x.UpperLayer == g.UpperLayer
	})
	if i < 0 {
		if i = len(c.o.Groups); i == MaxPairs {
			return
		}
		c.o.Groups = append(c.o.Groups, g)
	}
	to := &c.o.Groups[i]
	to.Connections++
	to.Transactions += r.Transactions
	if r.Handshake == "seen" {
		to.Handshakes++
	}
	if r.ClientKnown {
		to.ClientsKnown++
	}
}

// Operation adds an RDMA operation. The operations of a connection must be added before it; those of
// RPC-over-RDMA are not needed. It does not keep r.
func (c *Collector) Operation(r *record.RDMAOperation) { c.traffic.operation(r) }

// Network takes what happened to packets between the capture points. It must be called before Finish.
func (c *Collector) Network(points []*record.Point, list []*record.Network) {
	c.o.Points, c.o.Network = points, list
}

// Finish returns the overview. The summary is that of the capture, or nil if there is none. The
// Collector must not be used afterwards.
func (c *Collector) Finish(s *record.Summary) *Overview {
	o := &c.o
	o.Type = "overview"
	o.Time.Waits = c.answered.counts()
	if sum := c.answered[record.CreditLimit]; sum != nil {
		o.Time.CreditsNS = sum.outages.total()
	}
	o.Throughput, o.Mounted = c.throughput.finish(o.Time.CreditsNS), c.mounts.List()
	u := &o.Time.Unanswered
	u.Waits, u.StalledNS = c.unanswered.counts(), c.stalled.total()
	slices.SortFunc(o.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Transactions, a.Transactions), cmp.Compare(b.Connections, a.Connections))
	})
	slices.SortStableFunc(o.Credits, func(a, b CreditUse) int {
		return cmp.Compare(b.Usage.Or(record.CreditUsage{}).AllInUseNS, a.Usage.Or(record.CreditUsage{}).AllInUseNS)
	})
	o.RPCs.Statuses = c.statusCounts()
	o.Operations = c.requests.list()
	o.RPCs.Attempts = o.RPCs.Complete + o.RPCs.NoReply + o.RPCs.NoCall + o.RPCs.RDMAError
	o.RPCs.Requests, o.RPCs.Unanswered = 0, 0
	for _, row := range o.Operations {
		o.RPCs.Requests += row.Requests
		o.RPCs.Unanswered += row.NoReply
	}
	o.MountSteps, o.MountStepsTotal = c.steps.list()
	o.Traffic = c.traffic.finish()
	if s != nil {
		o.Health.Damaged += s.SelectedDamaged.Or(s.ICRCBadUnassigned)
		o.Health.Pauses = s.SelectedPauses.Or(s.PFCPauses)
	}
	return o
}

// StatusCount counts the transactions that ended with one error status.
type StatusCount struct {
	Status string `json:"status" doc:"RPC or NFS status, as in the field rpc_status or nfs_status of transactions."`
	Count  int64  `json:"count" doc:"Number of transactions with this status."`
}

// maxStatuses limits the number of statuses, because a hostile capture can contain any number of them.
const maxStatuses = 64

// failed counts the status of a transaction that failed.
func (c *Collector) failed(r *record.Transaction) {
	status := r.NFSStatus.Or("")
	if r.RPCFailed() {
		status = r.RPCStatus.Or("")
	}
	if c.statuses[status] > 0 || len(c.statuses) < maxStatuses {
		c.statuses[status]++
	}
}

// statusCounts returns the statuses, the most frequent first.
func (c *Collector) statusCounts() (list []StatusCount) {
	for status, n := range c.statuses {
		list = append(list, StatusCount{status, n})
	}
	slices.SortFunc(list, func(a, b StatusCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status))
	})
	return list
}
