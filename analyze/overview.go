package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Overview is a capture on one screen: who, how healthy, what was slow and why.
type Overview struct {
	Type        string        `json:"type" doc:"overview"`
	Groups      []Group       `json:"groups" doc:"connections between the same two ends, with the same transport and upper layer"`
	Health      Health        `json:"health" doc:"what the transport went through"`
	RPCs        RPCs          `json:"rpcs" doc:"transactions"`
	Time        Where         `json:"time" doc:"where the time of all transactions went"`
	Slowest     []Slow        `json:"slowest" doc:"transactions with the longest latency"`
	Busiest     []*Stats      `json:"busiest" doc:"operations that took most time together"`
	Credits     []CreditUse   `json:"credits" doc:"connections whose credits were all in use, or that were granted few"`
	Handles     Invalidations `json:"handles" doc:"what became of exposed handles"`
	Findings    []RuleCount   `json:"findings" doc:"by rule, the worst first"`
	Ended       []EndCount    `json:"ended" doc:"how connections ended, other than by a disconnect that broke nothing"`
	Connections int           `json:"connections" doc:"records of connections"`
}

// Group is connections that are alike.
type Group struct {
	Client       record.Opt[string] `json:"client" doc:"address"`
	Server       record.Opt[string] `json:"server" doc:"address and port"`
	Transport    string             `json:"transport" doc:"what carries them"`
	UpperLayer   string             `json:"upper_layer" doc:"what they carry"`
	Connections  int                `json:"connections" doc:"how many"`
	Transactions int64              `json:"transactions" doc:"RPCs on them"`
	Handshakes   int                `json:"handshakes" doc:"of how many the handshake is in the capture"`
}

// Health is what all connections together went through.
type Health struct {
	Packets       int64 `json:"packets" doc:"of all connections"`
	Retransmitted int64 `json:"retransmitted" doc:"sent again"`
	OutOfOrder    int64 `json:"out_of_order" doc:"that came after a later one"`
	Lost          int64 `json:"lost" doc:"acknowledged but not captured"`
	Naks          int64 `json:"naks" doc:"RNR aside"`
	RNRNaks       int64 `json:"rnr_naks" doc:"receiver not ready"`
}

// RPCs counts transactions.
type RPCs struct {
	Complete  int64 `json:"complete" doc:"with Call and Reply"`
	NoReply   int64 `json:"no_reply" doc:"without Reply"`
	NoCall    int64 `json:"no_call" doc:"whose Call was not seen"`
	RDMAError int64 `json:"rdma_error" doc:"answered by RDMA_ERROR"`
	Failed    int64 `json:"failed" doc:"with a status of error"`
	Backward  int64 `json:"backward" doc:"that the server called"`
	Again     int64 `json:"again" doc:"that repeat one of another connection"`
}

// Where is where time went, in nanoseconds.
type Where struct {
	TotalNS   int64       `json:"total_ns" doc:"all latencies together"`
	Phases    PhaseSums   `json:"phases" doc:"what they are made of"`
	Waits     []WaitCount `json:"waits" doc:"by reason, the longest first"`
	CreditsNS int64       `json:"credits_ns" doc:"before Calls, with all credits in use"`
}

// WaitCount is the waits of one reason.
type WaitCount struct {
	Reason record.WaitReason `json:"reason" doc:"what was waited for"`
	Count  int64             `json:"count" doc:"how often"`
	NS     int64             `json:"ns" doc:"how long together"`
}

// Slow is a transaction that took long.
type Slow struct {
	Transaction *record.Transaction `json:"transaction" doc:"the record"`
}

// CreditUse is how far a connection used its credits.
type CreditUse struct {
	Connection int                `json:"connection" doc:"its number"`
	Granted    record.Opt[uint32] `json:"granted" doc:"by the last Reply"`
	Peak       int                `json:"peak_in_flight" doc:"most Calls at once"`
}

// Invalidations is what became of the handles of Calls that were answered.
type Invalidations struct {
	Exposed    int64               `json:"exposed" doc:"handles of answered Calls"`
	ByServer   int64               `json:"by_responder" doc:"that the responder invalidated"`
	Left       int64               `json:"left" doc:"to the requester"`
	Negotiated record.Opt[bool]    `json:"negotiated" doc:"whether all connections with a handshake agreed to it"`
	Share      record.Opt[float64] `json:"share" doc:"of the exposed that the responder invalidated"`
}

// RuleCount is the findings of one rule.
type RuleCount struct {
	Rule     string            `json:"rule" doc:"its id"`
	Severity record.Severity   `json:"severity" doc:"how bad"`
	Count    int64             `json:"count" doc:"how often"`
	Packet   record.Opt[int64] `json:"packet" doc:"the first"`
	Message  string            `json:"message" doc:"of the first"`
}

// EndCount is connections that ended in one way.
type EndCount struct {
	How   record.Ending          `json:"how" doc:"the way"`
	By    record.Opt[record.End] `json:"by" doc:"who ended them"`
	Count int64                  `json:"count" doc:"how many connections"`
	Died  int64                  `json:"died" doc:"Calls that died with them"`
	First int                    `json:"connection" doc:"the first of them"`
	XIDs  []record.Hex32         `json:"xids" doc:"of the first; null without"`
}

// How much an overview shows.
const (
	slowest   = 5
	busiest   = 5
	maxGroups = 64
	maxUses   = 64
)

// Collector makes an overview of the records of a capture.
type Collector struct {
	o     Overview
	table *Table
	waits map[record.WaitReason]*WaitCount
	rules map[string]*RuleCount
	ends  map[endKey]*EndCount
}

type endKey struct {
	how record.Ending
	by  record.End
}

// NewCollector starts one.
func NewCollector() *Collector {
	return &Collector{
		table: NewTable(ByOperation), waits: map[record.WaitReason]*WaitCount{}, rules: map[string]*RuleCount{}, ends: map[endKey]*EndCount{},
	}
}

// Transaction takes a transaction.
func (c *Collector) Transaction(r *record.Transaction) {
	o := &c.o
	switch r.Status {
	case record.Complete:
		o.RPCs.Complete++
	case record.NoReply:
		o.RPCs.NoReply++
	case record.NoCall:
		o.RPCs.NoCall++
	case record.RDMAError:
		o.RPCs.RDMAError++
	}
	if r.RPCFailed() || r.NFSFailed() {
		o.RPCs.Failed++
	}
	if r.Direction == record.Backward {
		o.RPCs.Backward++
	}
	if r.RetransmitOf.Known() {
		o.RPCs.Again++
	}
	c.table.Add(r)
	for i := range r.Waits {
		w := &r.Waits[i]
		ns := r.Waited(w)
		if ns == 0 {
			continue
		}
		sum := c.waits[w.Reason]
		if sum == nil {
			sum = &WaitCount{Reason: w.Reason}
			c.waits[w.Reason] = sum
		}
		sum.Count++
		sum.NS += ns
	}
	o.Time.TotalNS += r.LatencyNS.Or(0)
	if p, known := r.Phases.Get(); known {
		o.Time.Phases.add(p)
	}
	if r.Call != nil && r.LatencyNS.Known() {
		o.Handles.Left += int64(len(r.NotInvalidated))
		o.Handles.Exposed += int64(len(r.NotInvalidated))
		if i, known := r.Invalidation.Get(); known && i.Chunk.Known() {
			o.Handles.ByServer++
			o.Handles.Exposed++
		}
	}
	c.slow(r)
}

// slow keeps those with the longest latency, the longest first.
func (c *Collector) slow(r *record.Transaction) {
	latency, known := r.LatencyNS.Get()
	list := c.o.Slowest
	if !known || len(list) == slowest && latency <= list[slowest-1].Transaction.LatencyNS.Or(0) {
		return
	}
	at, _ := slices.BinarySearchFunc(list, latency, func(s Slow, ns int64) int { return cmp.Compare(ns, s.Transaction.LatencyNS.Or(0)) })
	for at < len(list) && list[at].Transaction.LatencyNS.Or(0) == latency { // of alike ones the first stays first
		at++
	}
	list = slices.Insert(list, at, Slow{r.Clone()})
	c.o.Slowest = list[:min(len(list), slowest)]
}

// Connection takes a connection.
func (c *Collector) Connection(r *record.Connection) {
	o, h := &c.o, &c.o.Health
	o.Connections++
	h.Packets += r.Packets
	h.Retransmitted += r.Retransmitted
	h.OutOfOrder += r.OutOfOrder
	h.Lost += r.Lost
	h.Naks += r.Naks
	h.RNRNaks += r.RNRNaks
	c.group(r)
	if end, ended := r.Ended.Get(); ended && (end.How != record.EndDisconnect || end.Died > 0) {
		k := endKey{end.How, end.By.Or("")}
		if c.ends[k] == nil {
			c.ends[k] = &EndCount{How: end.How, By: end.By, First: r.ID, XIDs: slices.Clone(end.XIDs)}
		}
		c.ends[k].Count++
		c.ends[k].Died += end.Died
	}
	use := r.Credits.Forward
	if granted, known := use.Granted.Get(); known && use.PeakInFlight >= int(granted) && len(o.Credits) < maxUses {
		o.Credits = append(o.Credits, CreditUse{r.ID, use.Granted, use.PeakInFlight})
	}
	if agreed, known := r.RemoteInvalidation.Get(); known && r.UpperLayer == "rpcrdma" {
		o.Handles.Negotiated = record.Some(agreed && o.Handles.Negotiated.Or(true))
	}
}

func (c *Collector) group(r *record.Connection) {
	g := Group{Client: r.Client.Address, Server: r.Server.Address, Transport: r.Transport, UpperLayer: r.UpperLayer}
	i := slices.IndexFunc(c.o.Groups, func(x Group) bool {
		return x.Client == g.Client && x.Server == g.Server && x.Transport == g.Transport && x.UpperLayer == g.UpperLayer
	})
	if i < 0 {
		if i = len(c.o.Groups); i == maxGroups {
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
}

// Finding takes a finding.
func (c *Collector) Finding(r *record.Finding) {
	sum := c.rules[r.Rule]
	if sum == nil {
		sum = &RuleCount{Rule: r.Rule, Severity: r.Severity, Packet: r.Packet, Message: r.Message}
		c.rules[r.Rule] = sum
	}
	sum.Count++
}

// Finish is the overview.
func (c *Collector) Finish() *Overview {
	o := &c.o
	o.Type = "overview"
	for _, w := range c.waits {
		if w.Reason == record.OutOfCredits {
			o.Time.CreditsNS = w.NS
		}
		o.Time.Waits = append(o.Time.Waits, *w)
	}
	slices.SortFunc(o.Time.Waits, func(a, b WaitCount) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Reason, b.Reason)) })
	for _, r := range c.rules {
		o.Findings = append(o.Findings, *r)
	}
	slices.SortFunc(o.Findings, func(a, b RuleCount) int {
		return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Rule, b.Rule))
	})
	for _, e := range c.ends {
		o.Ended = append(o.Ended, *e)
	}
	slices.SortFunc(o.Ended, func(a, b EndCount) int { return cmp.Or(cmp.Compare(b.Died, a.Died), cmp.Compare(a.First, b.First)) })
	slices.SortFunc(o.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Transactions, a.Transactions), cmp.Compare(b.Connections, a.Connections))
	})
	o.Busiest = c.table.Rows()
	o.Busiest = o.Busiest[:min(len(o.Busiest), busiest)]
	o.Handles.Share = share(int(o.Handles.ByServer), int(o.Handles.Exposed))
	return o
}
