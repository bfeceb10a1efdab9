package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Which clients the trouble of a capture belongs to.

// Client has the trouble of one client.
type Client struct {
	Address       record.Opt[string] `json:"address" doc:"Address of the client; null for connections of which the capture does not show who is the client."`
	Retransmitted Part               `json:"retransmitted" doc:"Retransmitted packets of its connections, in both directions."`
	Naks          Part               `json:"naks" doc:"NAKs on its connections, including RNR NAKs."`
	Failed        Part               `json:"failed" doc:"RPCs that were never answered, or were answered with RDMA_ERROR or an error status, except for ordinary answers such as that a file does not exist."`
	StalledNS     Part               `json:"stalled_ns" doc:"Time for which its RPCs stalled, in nanoseconds; stalls of one RPC that overlap count once."`
}

// Part is a number that belongs to one client.
type Part struct {
	Number int64   `json:"number" doc:"Number for this client."`
	Share  float64 `json:"share" doc:"Share of this number in that of all clients, from 0 to 1; 0 if there is none."`
}

// parts returns all numbers of a client.
func (c *Client) parts() [4]*Part {
	return [...]*Part{&c.Retransmitted, &c.Naks, &c.Failed, &c.StalledNS}
}

// tally counts the trouble of one client.
type tally struct {
	retransmitted, naks int64
	failed              int64 // RPCs with an error status
	errors              int64 // RPCs with RDMA_ERROR, or an error status that is no ordinary answer
	unanswered          int64
	stalledNS           int64
	callbacks, calls    bool // callbacks of NFS 4.0, which the server calls on a connection of its own, and other RPCs
}

// tally returns the counts of a client. If there are too many clients, those that are over share one tally.
func (s *suspicion) tally(client record.Opt[string]) *tally {
	name := client.Or("")
	if s.clients[name] == nil && len(s.clients) >= maxHosts {
		name = ""
	}
	if s.clients[name] == nil {
		s.clients[name] = &tally{}
	}
	return s.clients[name]
}

// transaction adds a transaction.
func (t *tally) transaction(r *record.Transaction) {
	if callsBack(r) {
		t.callbacks = true
	} else {
		t.calls = true
	}
	if r.Failed() && r.Status != record.RDMAError {
		if t.failed++; r.RPCFailed() || !isOrdinary(r.NFSStatus.Or("")) {
			t.errors++
		}
	}
	if r.Status == record.RDMAError {
		t.errors++
	}
	if p, known := r.Phases.Get(); known {
		t.stalledNS += p.WaitNS
	} else if r.Status == record.NoReply {
		t.stalledNS += record.Waited(r.Waits, r.Start(), 1<<63-1, func(w *record.Wait) bool { return w.Reason != record.CreditLimit })
	}
}

// troubled returns the clients with trouble, those with the largest shares of it first.
func (j *facts) troubled() []Client {
	list := []Client{}
	var sums [4]int64
	for name, t := range j.clients {
		c := Client{Address: record.SomeIf(name, name != ""), Retransmitted: Part{Number: t.retransmitted}, Naks: Part{Number: t.naks}, StalledNS: Part{Number: t.stalledNS}}
		c.Failed.Number = t.errors
		if j.oneWay == "" {
			c.Failed.Number += t.unanswered
		}
		all := int64(0)
		for i, p := range c.parts() {
			sums[i] += p.Number
			all += p.Number
		}
		if all > 0 {
			list = append(list, c)
		}
	}
	shares := func(c *Client) (sum float64) {
		for _, p := range c.parts() {
			sum += p.Share
		}
		return sum
	}
	for k := range list {
		for i, p := range list[k].parts() {
			p.Share = float64(p.Number) / float64(max(sums[i], 1))
		}
	}
	slices.SortFunc(list, func(a, b Client) int {
		return cmp.Or(cmp.Compare(shares(&b), shares(&a)), cmp.Compare(a.Address.Or(""), b.Address.Or("")))
	})
	return list[:min(len(list), MaxPairs)]
}

// severalClients reports whether a capture has several clients, as far as their addresses are known. A server that is a client
// only because it sends callbacks does not count.
func (j *facts) severalClients() bool {
	n := 0
	for name, t := range j.clients {
		if name != "" && (t.calls || !t.callbacks) {
			n++
		}
	}
	return n > 1
}

// which says to which clients a number belongs, if the capture has several.
func (j *facts) which(of func(t *tally) int64) string {
	type entry struct {
		name string
		n    int64
	}
	var list []entry
	for name, t := range j.clients {
		if n := of(t); n > 0 {
			list = append(list, entry{cmp.Or(name, "an unknown client"), n})
		}
	}
	if !j.severalClients() || len(list) == 0 {
		return ""
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	if len(list) == 1 {
		return ", all of client " + list[0].name
	}
	const shown = 3
	var parts []string
	for _, x := range list[:min(len(list), shown)] {
		parts = append(parts, fmt.Sprintf("%d of client %s", x.n, x.name))
	}
	if more := list[len(parts):]; len(more) > 0 {
		n := int64(0)
		for _, x := range more {
			n += x.n
		}
		parts = append(parts, fmt.Sprintf("%d of %s", n, plural(int64(len(more)), "other")))
	}
	return ": " + strings.Join(parts, ", ")
}

// Clients says how much of the trouble each client has, for views that have no overview.
type Clients struct{ suspicion suspicion }

// NewClients returns a Clients without any client. Overlaps is as in [Collector.Only], or nil.
func NewClients(overlaps func(from, to record.Time) bool) *Clients {
	c := &Clients{newSuspicion()}
	c.suspicion.span = overlaps
	return c
}

// Transaction adds a transaction. It does not keep r.
func (c *Clients) Transaction(r *record.Transaction) { c.suspicion.transaction(r) }

// Connection adds a connection. The transactions of a connection must be added before it.
func (c *Clients) Connection(r *record.Connection) { c.suspicion.connection(r) }

// Several reports whether there are several clients, as far as their addresses are known.
func (c *Clients) Several() bool { return (&facts{suspicion: &c.suspicion}).severalClients() }

// Sentence returns how much of the trouble each client has, or nothing if there are not several clients with trouble. The summary
// may be nil.
func (c *Clients) Sentence(s *record.Summary) string {
	if s == nil {
		s = &record.Summary{}
	}
	j := &facts{suspicion: &c.suspicion, s: s, oneWay: s.OnlyFrom()}
	c.suspicion.outcomes(s.Absences)
	return j.worst(j.troubled())
}

// shownClients is the number of clients that the sentence about clients names.
const shownClients = 3

// worst says how much of the trouble each client has, if there are several: first the client that has most of it.
func (j *facts) worst(list []Client) string {
	if !j.severalClients() || len(list) == 0 {
		return ""
	}
	var sums [4]int64
	for i := range list {
		for k, p := range list[i].parts() {
			sums[k] += p.Number
		}
	}
	var texts []string
	for i := range list[:min(len(list), shownClients)] {
		var parts []string
		for k, p := range list[i].parts() {
			if p.Number > 0 {
				parts = append(parts, ofAll(p.Number, sums[k], troubles[k]))
			}
		}
		if n := len(parts) - 1; n > 0 {
			parts = []string{strings.Join(parts[:n], ", ") + " and " + parts[n]}
		}
		texts = append(texts, list[i].Address.Or("an unknown one")+" has "+parts[0])
	}
	if more := len(list) - len(texts); more > 0 {
		texts = append(texts, plural(int64(more), "other")+" the rest")
	}
	return "By client, the most affected first: " + strings.Join(texts, "; ")
}

// troubles has the nouns of the parts of a Client; an empty one stands for a time.
var troubles = [4]string{"retransmission", "NAK", "unusual failure", ""}

// ofAll returns a number of things and the number of all, or times.
func ofAll(n, all int64, noun string) string {
	switch {
	case noun == "" && n == all:
		return "all of the stalls (" + field.Duration(n) + ")"
	case noun == "":
		return field.Duration(n) + " of " + field.Duration(all) + " of stalls"
	case n == all && n == 1:
		return "the only " + noun
	case n == all:
		return "all " + plural(n, noun)
	}
	return fmt.Sprintf("%d of %s", n, plural(all, noun))
}
