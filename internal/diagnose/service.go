package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// stale has the reasons of rejections that follow from messages that were lost before, or from the client's own past: the server is there.
var stale = map[string]bool{
	"timeout": true, "stale connection": true, "invalid communication ID": true, "invalid communication instance": true,
	"duplicate local communication ID": true, "RNR retry count reject": true,
}

// hostConns are the connections of a server that carry, or were to carry, RPC-over-RDMA.
type hostConns struct {
	server                       string
	accepted, rejected, requests []*connection // requests were not answered
}

// byServer returns the connections by server.
func (d *diagnosis) byServer() (list []*hostConns) {
	all := map[string]*hostConns{}
	for _, c := range d.connections {
		server := c.server
		if server == "" || c.UpperLayer == "rpc" || !c.ClientKnown {
			continue
		}
		h := all[server]
		if h == nil {
			h = &hostConns{server: server}
			all[server] = h
			list = append(list, h)
		}
		switch end, _ := c.Ended.Get(); {
		case c.rejected() && !stale[end.Reason.Or("")]:
			h.rejected = append(h.rejected, c)
		case c.rejected(), c.UpperLayer != "rpcrdma" && !c.accept:
		case !c.accept && c.Transactions == 0:
			h.requests = append(h.requests, c)
		default:
			h.accepted = append(h.accepted, c)
		}
	}
	return list
}

// serverGone finds servers that had connections, and then refused all to the end of the capture.
func serverGone(d *diagnosis) {
	for _, h := range d.byServer() {
		if len(h.accepted) == 0 || len(h.rejected) == 0 {
			continue
		}
		end := slices.MaxFunc(h.accepted, func(a, b *connection) int { return cmp.Compare(a.endedAt(), b.endedAt()) })
		again := func(c *connection) bool {
			return c.First > end.endedAt() && c.ServiceID == end.ServiceID && c.Server.Port == end.Server.Port
		}
		var refused []*connection
		for _, c := range h.rejected {
			if again(c) {
				refused = append(refused, c)
			}
		}
		if len(refused) == 0 || slices.ContainsFunc(h.accepted, func(c *connection) bool { return c.open() && c.Last > refused[0].First }) {
			continue
		}
		d.gone(h, end, refused, again)
	}
}

// gone makes a problem of a server that refused all connections after the last one.
func (d *diagnosis) gone(h *hostConns, last *connection, refused []*connection, again func(*connection) bool) {
	p := d.begin(record.Error, record.InServer)
	e, ended := last.Ended.Get()
	how := "closed the connection, then "
	switch {
	case !ended:
		how = "" // how the connection ended is not in the capture
	case e.By != record.Some(record.Server):
		how = "lost its last connection, then "
	}
	p.Headline = how + "refused all " + number(len(refused), "reconnect")
	if len(refused) == 1 {
		p.Headline = how + "refused the only reconnect"
	}
	p.Ongoing = true
	from := last.endedAt()
	to, until := d.seenTo(from), "the end of the capture"
	if to < d.last {
		until = "the end of the recording"
	}
	for _, c := range h.accepted {
		end, _ := c.Ended.Get()
		refused := end.How == record.EndNak || end.How == record.EndTerminate // it ended for a message on it
		if c == last || c.endedAt() >= from-2e9 && !refused {
			p.lose(d, c)
		}
	}
	p.timeouts(d, p.isAbout, span{from, to})
	for _, c := range refused {
		p.ends(d, c)
	}
	for _, c := range d.connections { // the client asks rpcbind and mountd, too
		if c.server == h.server && c.UpperLayer == "rpc" && !c.accept && c.First > from && !c.open() {
			p.ends(d, c)
		}
	}
	p.proof(refOf(last), "end of the last connection")
	first, _ := refused[0].Ended.Get()
	p.proof(refOf(refused[0]), "rejected: "+first.Reason.Or("no reason"))
	p.proof(refOf(refused[len(refused)-1]), "rejected again")
	p.Effect = fmt.Sprintf("no service from %s to %s", d.at(from), until)
	if n := p.calls(); n > 0 {
		p.Effect += fmt.Sprintf("; %s in flight", number(n, "Call"))
	}
	unanswered := int64(0)
	for _, c := range h.requests {
		if again(c) {
			unanswered++
		}
	}
	if unanswered > 0 {
		p.Effect += fmt.Sprintf("; %s not answered", number(unanswered, "more request"))
	}
	if len(p.tasks) == 0 {
		p.blocks(refused[0].First, to)
	}
	p.during(from, to)
	d.isAway(h.server, span{from, to})
	p.Command = []string{"connections"}
}

// longestLease is the time after which a server may have forgotten a client that did not renew its lease, in nanoseconds: the shortest usual lease.
// A server that lost state after a longer time has perhaps not restarted.
const shortestLease = int64(30e9)

// restart is a time in which a server was away and lost state.
type restart struct {
	span
	shown *stateLost
}

// serverRestarted finds servers that lost all their connections, and the state of their clients with them.
func serverRestarted(d *diagnosis) {
	for _, h := range d.byServer() {
		slices.SortFunc(h.accepted, func(a, b *connection) int { return cmp.Compare(a.First, b.First) })
		var list []restart
		for _, c := range h.accepted {
			up, known := c.Established.Get()
			if !known {
				continue
			}
			var down record.Time
			alive := false
			for _, before := range h.accepted {
				if at := before.Established.Or(before.First); at < up && before != c {
					alive = alive || before.open() || before.endedAt() > up
					down = max(down, d.lastHeard(before))
				}
			}
			if down == 0 || alive || len(list) > 0 && up.Sub(list[len(list)-1].to) < 2e9 {
				continue
			}
			if shown := d.lostState(h, span{down, up}); shown != nil && d.seenTo(down) >= up {
				list = append(list, restart{span{down, up}, shown})
			}
		}
		for i, r := range list {
			next := record.Time(1<<63 - 1)
			if i+1 < len(list) {
				next = list[i+1].from
			}
			d.restarted(h, r.span, next, r.shown)
		}
	}
}

// lastHeard returns the time at which a connection was alive last: its end, or the last packet of the server before a silence that lasted until then.
func (d *diagnosis) lastHeard(c *connection) record.Time {
	at := c.endedAt()
	for i := range d.summary.Silences {
		if s := &d.summary.Silences[i]; s.Address == c.server && s.Peer == c.client && s.From <= at && s.To.Or(d.last) >= at && s.LastTime >= c.First {
			return s.LastTime
		}
	}
	return at
}

// lostState returns what shows that a server lost state while it was away, or nil.
func (d *diagnosis) lostState(h *hostConns, away span) *stateLost {
	s := d.servers[h.server]
	if s == nil {
		return nil
	}
	refused := slices.ContainsFunc(h.rejected, func(c *connection) bool { return c.First >= away.from && c.First <= away.to })
	if !refused && away.ns() > shortestLease {
		return nil
	}
	near := func(at record.Time) bool { return at >= away.to && at.Sub(away.to) <= 60e9 }
	for i := range s.lost {
		x := &s.lost[i]
		if near(x.at) && (x.status != "NFS4ERR_GRACE" || refused) {
			return x
		}
	}
	for _, v := range s.verifiers {
		if near(v.first) && len(s.verifiers) > 1 && !slices.ContainsFunc(s.verifiers, func(o verifier) bool { return o.value != v.value && o.first < v.first && o.last > away.from }) &&
			slices.ContainsFunc(s.verifiers, func(o verifier) bool { return o.value != v.value && o.last < away.to }) {
			return &stateLost{v.first, "another write verifier", v.packet, ""}
		}
	}
	return nil
}

// restarted makes a problem of a restart. Next is the time of the next one.
func (d *diagnosis) restarted(h *hostConns, away span, next record.Time, shown *stateLost) {
	p := d.begin(record.Error, record.InServer)
	p.Headline = fmt.Sprintf("restarted: no service for %s, %s", field.Brief(away.ns()), d.span(away.from, away.to))
	for _, c := range h.accepted {
		if at := c.endedAt(); c.First < away.from && at >= away.from && at <= away.to && !c.open() {
			p.lose(d, c)
			p.proof(refOf(c), "end of connection "+text(c.ID))
		}
	}
	p.timeouts(d, p.isAbout, away)
	refused := 0
	for _, c := range d.connections {
		if c.server == h.server && c.First >= away.from && c.First <= away.to+2e9 && c.rejected() {
			p.ends(d, c)
			refused++
		}
	}
	d.recovery(p, h.server, away, next)
	p.proof(shown.packet, shown.status)
	waited := 0 // others came after it, for the recovery
	for t := range p.tasks {
		if away.touches(span{t.from, t.to}) {
			waited++
		}
	}
	if waited > 0 {
		p.Effect = number(waited, "operation") + " blocked"
	}
	if refused > 0 {
		p.Effect = join(p.Effect, number(refused, "connection")+" refused meanwhile")
	}
	if len(p.blocked) == 0 {
		p.blocked = append(p.blocked, away)
	}
	p.during(away.from, away.to)
	p.Command = []string{"connections"}
	d.isAway(h.server, away)
}

// recovery claims the tasks that a server put off because it had lost the state of clients, and those that waited meanwhile.
func (d *diagnosis) recovery(p *problem, server string, away span, next record.Time) {
	for _, t := range d.tasks {
		first := t.tries[0]
		if first.server != server || t.from >= next || slices.ContainsFunc(t.tries, inGrace) {
			continue
		}
		waited := t.from <= away.to && t.to >= away.from && first.sent >= away.from-1e9 && t.blocked() >= slow
		lost := t.from >= away.from && t.from.Sub(away.to) <= 120e9 && stateStatuses[first.failure]
		if waited || lost || slices.ContainsFunc(t.tries, func(r *rpc) bool {
			return r.before != nil && r.sent <= away.to && r.until(d.facts) >= away.from && r.sent >= away.from-5e9
		}) {
			p.task(t)
		}
	}
}

// mountFailed finds clients that could not mount: a step was refused, and no request for a file followed.
func mountFailed(d *diagnosis) {
	seen := map[pair]*problem{}
	for _, r := range d.rpcs {
		if r.backward || !r.mounting || r.failure == "" || putOff[r.failure] || r.status == record.RDMAError || r.operation == "NFSACL NULL" ||
			d.mounted(r.pair).latest > r.sent || !mountStep(r) {
			continue
		}
		p := seen[r.pair]
		if p == nil {
			p = d.begin(record.Error, record.InServer)
			seen[r.pair] = p
			p.Headline = fmt.Sprintf("refused %s: %s", r.name(), r.failure)
			if r.failure == "NFS4ERR_MINOR_VERS_MISMATCH" || r.failure == "PROG_MISMATCH" {
				p.Headline = fmt.Sprintf("refused NFS %s: %s", r.version, r.failure)
			}
			p.Effect = "the client did not mount"
			p.proof(r.reply, r.failure)
		}
		p.all(r)
		p.waited(r)
		p.lost++
		p.during(r.sent, r.end)
	}
	d.noExport()
	d.noConnection()
}

// wantedKey is a pair of hosts, with RDMA or without.
type wantedKey struct {
	pair
	plain bool
}

// wanted are the connections that a client asked a server for: with RDMA, or to ports of NFS without.
type wanted struct {
	wantedKey
	accepted          bool // the server accepted one
	refused           []*connection
	stale, unanswered []*connection
}

// portsOfNFS are the ports on which servers listen for NFS, without RDMA and with it. Clients ask on others, too, where nobody need listen.
var portsOfNFS = map[uint16]bool{2049: true, 20049: true}

// askedFor returns the connections that clients asked servers for.
func (d *diagnosis) askedFor() (list []*wanted) {
	known := map[wantedKey]*wanted{}
	for _, c := range d.connections {
		plain := c.UpperLayer == "rpc"
		if !c.ClientKnown || c.server == "" || plain && !portsOfNFS[c.Server.Port.Or(0)] || !plain && c.UpperLayer != "rpcrdma" && !c.rejected() {
			continue
		}
		key := wantedKey{c.pair, plain}
		w := known[key]
		if w == nil {
			w = &wanted{wantedKey: key}
			known[key], list = w, append(list, w)
		}
		end, _ := c.Ended.Get()
		switch {
		case c.rejected() && stale[end.Reason.Or("")]:
			w.stale = append(w.stale, c)
		case c.rejected():
			w.refused = append(w.refused, c)
		case c.asks() > 0:
			w.unanswered = append(w.unanswered, c)
		default:
			w.accepted = true
		}
	}
	return list
}

// The requests of connections without an answer, and the time in nanoseconds from the first to the last of them, from which nobody answered: a
// capture that ends soon after a request shows nothing, and a single answer may be lost.
const (
	leastAsked   = 3
	leastAskedNS = int64(2e9)
)

// noConnection finds clients that asked for connections and got none, to the end of the capture.
func (d *diagnosis) noConnection() {
	for _, w := range d.askedFor() {
		if w.accepted || w.plain && d.mounted(w.pair).latest > 0 {
			continue
		}
		places, what, list := []record.ProblemPlace{record.InServer}, "", w.refused
		var asked int64
		if len(list) == 0 {
			list = append(w.stale, w.unanswered...)
			if len(list) == 0 {
				continue
			}
			slices.SortFunc(list, func(a, b *connection) int { return cmp.Compare(a.First, b.First) })
			last := list[0].Last
			for _, c := range list {
				asked, last = asked+max(c.asks(), 1), max(last, c.Last)
			}
			if asked < leastAsked || last.Sub(list[0].First) < leastAskedNS {
				continue
			}
		}
		end, _ := list[0].Ended.Get()
		reason := end.Reason.Or("no reason given")
		switch {
		case len(w.refused) == 1:
			what = "refused the only connection: " + reason
		case len(w.refused) > 1:
			what = fmt.Sprintf("refused all %s: %s", number(len(list), "connection"), reason)
		case len(w.unanswered) == 0:
			places, what = append(places, record.InClient), fmt.Sprintf("refused all %s: %s", number(len(list), "connection"), reason)
		default:
			places, what = append(places, record.InNetwork), fmt.Sprintf("%s answered none of %s", w.server, number(asked, "connection request"))
		}
		if !list[0].by.free() {
			continue
		}
		p := d.begin(record.Error, places...)
		p.Headline, p.Effect, p.Ongoing = what, "the client got no RDMA connection", len(w.refused) == 0
		if w.plain {
			p.Effect = "the client got no connection"
		}
		for _, c := range list {
			if p.ends(d, c); c.rejected() {
				p.proof(refOf(c), "rejected")
			}
			p.during(c.First, c.Last)
		}
		if p.lost++; p.Ongoing {
			p.Effect += " in " + field.Brief(d.last.Sub(list[0].First))
			p.blocks(list[0].First, d.last)
			p.during(list[0].First, d.last)
		}
		p.Command = []string{"connections"}
	}
}

// noExport finds clients that did not find what they were to mount: the last name that they looked up was not there, or not for them, they left at once,
// and had never asked for anything but names and attributes.
func (d *diagnosis) noExport() {
	last := map[pair]*rpc{}
	for _, r := range d.rpcs {
		if r.operation == "LOOKUP" && !r.backward && r.outcome.free() && !d.mounted(r.pair).used {
			last[r.pair] = r
		}
	}
	for _, key := range sortedKeys(last) {
		r := last[key]
		leaves := slices.ContainsFunc(d.leaves, func(l leave) bool {
			return l.pair == key && l.at > r.sent && l.at.Sub(r.end) <= 5e9
		})
		if !leaves || !ordinary[r.failure] || d.mounted(key).latest > r.sent {
			continue
		}
		p := d.begin(record.Error, record.InConfig, record.InServer)
		p.Headline = fmt.Sprintf("no %s to mount: %s", cmp.Or(r.file, "export"), r.failure)
		p.Effect = "the client did not mount"
		p.proof(r.reply, r.failure)
		p.all(r)
		p.lost++
		p.during(r.sent, r.end)
		p.Command = ladder(r)
	}
}

// mountStep reports whether an RPC is a step without which a client cannot mount.
func mountStep(r *rpc) bool {
	switch r.operation {
	case "EXCHANGE_ID", "CREATE_SESSION", "SETCLIENTID", "SETCLIENTID_CONFIRM", "NULL", "MOUNT MNT", "MOUNT NULL", "FSINFO":
		return true
	}
	return false
}

// clientRestarted finds clients that named themselves with another verifier, although they had not taken leave.
func clientRestarted(d *diagnosis) {
	if len(d.boots) >= maxFindings {
		return
	}
	boots := slices.Clone(d.boots)
	slices.SortFunc(boots, func(a, b boot) int { return cmp.Compare(a.at, b.at) })
	latest := map[[3]string]int{}
	for i, b := range boots {
		key := [3]string{b.client, b.server, b.owner}
		before, had := latest[key]
		latest[key] = i
		if !had || b.client == "" || boots[before].verifier == b.verifier || purging(boots[before].verifier) || purging(b.verifier) {
			continue
		}
		d.rebooted(boots, before, i)
	}
}

// rebooted makes a problem of two boots of a client, unless something excludes that it restarted between.
func (d *diagnosis) rebooted(boots []boot, before, after int) {
	a, b := boots[before], boots[after]
	for i, x := range boots {
		if x.pair == b.pair && x.owner == b.owner &&
			(i < after && x.verifier == b.verifier || i > after && x.verifier == a.verifier || i < after && x.connection == b.connection) {
			return // two clients have the same owner
		}
	}
	left := slices.ContainsFunc(d.leaves, func(l leave) bool {
		return l.pair == b.pair && l.at > a.at && l.at <= b.at
	})
	from := a.at
	var earlier []*connection
	for _, c := range d.connections {
		if c.pair == b.pair && c.First < b.at && c.ID != b.connection {
			earlier = append(earlier, c)
			from = max(from, min(d.calledLast[c.ID], b.at))
		}
	}
	for _, c := range earlier { // it left if it closed its last connection in order
		end, ended := c.Ended.Get()
		inOrder := ended && (end.How == record.EndDisconnect || end.How == record.EndReset) && end.By.Or(record.Client) == record.Client
		left = left || inOrder && c.endedAt() >= from && c.endedAt() <= b.at && !d.stale(c)
	}
	if left || d.seenTo(from) < b.at {
		return
	}
	p := d.begin(record.Error, record.InClient)
	p.Headline = fmt.Sprintf("restarted: no Calls for %s, %s", field.Brief(b.at.Sub(from)), d.span(from, b.at))
	p.Effect = "named itself with the same owner and another boot verifier"
	p.proof(a.packet, "first boot verifier")
	p.proof(b.packet, "another boot verifier")
	p.about(b.pair)
	p.blocks(from, b.at)
	p.during(from, b.at)
	for _, c := range d.connections {
		if c.pair == b.pair && c.First < b.at && c.ID != b.connection {
			if c.rejected() || c.Last >= from {
				p.lose(d, c)
			}
		}
	}
	p.Command = []string{"connections"}
}

// stale reports whether the disconnect of a connection only follows a rejected connection of the same client: the old connection was closed when the
// client came again.
func (d *diagnosis) stale(c *connection) bool {
	return slices.ContainsFunc(d.connections, func(o *connection) bool {
		end, _ := o.Ended.Get()
		return o.rejected() && end.Reason.Or("") == "stale connection" && o.Client.Address == c.Client.Address && c.endedAt() >= o.First
	})
}

// purging reports whether a verifier is one with which Linux clients ask the server to forget all their state. They have not restarted.
func purging(verifier record.Hex64) bool { return verifier == 1_000_000_001 || verifier == 1<<64-1 }

// givesUpAfter is the age from which an open Call whose memory its client refuses was given up, in nanoseconds: of a younger one the client had perhaps
// never exposed the memory rightly, unless it goes on without that Call.
const givesUpAfter = int64(1e9)

// refusesOwn returns the finding of a NAK with which the client of a connection refused an access to the memory of a Call in flight as the Call had
// exposed it, and that Call; nil if there is none. Only the client can have withdrawn that memory, or exposed it wrongly.
func (d *diagnosis) refusesOwn(c *connection) (nak *finding, of *rpc) {
	if end, _ := c.Ended.Get(); d.lacks(c) || end.By.Or(record.Client) != record.Client || d.violated(c.ID) {
		return nil, nil
	}
	nak = d.find(func(f *finding) bool {
		r := d.byID[f.Transaction.Or(0)]
		return f.Rule == "remote-error-nak" && f.on(c) && f.by.free() && !f.AtFault.Known() && strings.Contains(f.Message, "remote access error") &&
			r != nil && r.connection == c.ID && r.exposed && r.unanswered()
	})
	if nak != nil {
		of = d.byID[nak.Transaction.Or(0)]
	}
	return nak, of
}

// wentOn reports whether a client sent Calls on a connection that it opened after the end of another, and did not repeat one of the old Calls.
func (d *diagnosis) wentOn(ended *connection, old *rpc) bool {
	return old.again == nil && slices.ContainsFunc(d.connections, func(c *connection) bool {
		return c.First > ended.endedAt() && c.pair == old.pair && d.calledLast[c.ID] > 0
	})
}

// clientGaveUp finds clients that withdrew the memory of open Calls and closed the connection.
func clientGaveUp(d *diagnosis) {
	var p *problem
	counts := map[string]int64{}
	for _, c := range d.connections {
		end, ended := c.Ended.Get()
		calls := d.inFlight(c.ID)
		if !ended || !c.by.free() || end.How == record.EndRejected {
			continue
		}
		nak, of := d.refusesOwn(c)
		old := func(r *rpc) bool { return r.exposed && c.endedAt().Sub(r.sent) >= givesUpAfter }
		if nak == nil || !slices.ContainsFunc(calls, old) && !d.wentOn(c, of) {
			continue
		}
		if p == nil {
			p = d.begin(record.Warning, record.InClient)
		}
		for _, r := range calls {
			if r.of != nil && r.outcome.free() {
				r.of.gaveUp = true
				counts[r.operation]++
				p.task(r.of)
			}
		}
		p.ends(d, c)
		p.finding(nak)
		p.proof(nak.ref(), "client refused (NAK) an access to memory that its Call offered")
	}
	if p == nil {
		return
	}
	names := byCount(counts)
	p.Headline = "gave up its RPCs and closed the connection"
	if len(names) > 0 {
		p.Headline = fmt.Sprintf("gave up %s and closed the connection", number(counts[names[0]], names[0]))
	}
	p.Effect = fmt.Sprintf("%s given up", number(len(p.tasks), "operation"))
}
