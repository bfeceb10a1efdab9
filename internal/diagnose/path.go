package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// refOf returns the packet that shows the end of a connection.
func refOf(c *connection) record.PacketRef {
	e, _ := c.Ended.Get()
	return record.PacketRef{Packet: e.Packet.Or(0), Point: e.Point}
}

// isClient reports whether a host is only a client in the capture.
func (d *diagnosis) isClient(address string) bool {
	return !slices.ContainsFunc(d.connections, func(c *connection) bool { return c.server == address })
}

// timerOf returns the longest announced timer of the connections between two hosts, in nanoseconds.
func (d *diagnosis) timerOf(a, b string) int64 {
	timer := int64(0)
	for _, c := range d.connections {
		if c.are(a, b) {
			timer = max(timer, c.AckTimeoutNS.Or(0))
		}
	}
	if timer == 0 || timer > 10e9 {
		return int64(16e8) / 3
	}
	return timer
}

// absence is a time in which a host did not answer another one.
type absence struct {
	record.Silence
	rpcs    []*rpc // that waited then without any packet of it, if that is what shows the absence
	clipped bool   // the time may be longer
}

// lostThen reports whether the RPCs that show an absence waited for what the network lost meanwhile, and that nothing came late: a machine that
// stands still takes what was sent to it when it goes on.
func (d *diagnosis) lostThen(a *absence) bool {
	away, lost := span{a.From, a.To.Or(0)}, int64(0)
	for _, r := range a.rpcs {
		if r.point != record.AtBothEnds || 10*r.networkMin < 9*r.latency {
			return false
		}
	}
	for _, n := range d.network {
		for i := range n.Course {
			if c := &n.Course[i]; c.Start >= away.from && c.Start <= away.to {
				if lost += c.Lost; 2*c.MaxNS.Or(0) > away.ns() {
					return false
				}
			}
		}
	}
	return lost > 0 && len(a.rpcs) > 0
}

// outage finds times in which a host sent nothing although answers were due, and those in which a server answered none of several Calls.
func outage(d *diagnosis) {
	var p *problem
	var longest absence
	more := 0
	for _, s := range d.absences() {
		away := span{s.From, s.To.Or(d.last)}
		if d.wasAway(s.Address, away) || d.wasAway(s.Peer, away) {
			continue
		}
		if p == nil {
			p = d.begin(record.Error, record.InNetwork, record.InServer)
		} else {
			more++
		}
		if longest.From == 0 || away.ns() > longest.To.Or(d.last).Sub(longest.From) {
			longest = s
		}
		d.away(p, s, away)
	}
	if p == nil {
		return
	}
	p.Places = []record.ProblemPlace{record.InNetwork}
	if lost := longest.Lost.Or(0) > 0 && longest.Arrived == record.Some(int64(0)) || d.lostThen(&longest); !lost && d.isClient(longest.Address) {
		p.Places = []record.ProblemPlace{record.InClient, record.InNetwork}
	} else if !lost {
		p.Places = append(p.Places, record.InServer)
	}
	what, sign := "no packet from "+longest.Address, ""
	switch {
	case longest.rpcs != nil:
		what = longest.Address + " answered nothing"
	case d.summary.CaptureDrops > 0: // or the capture dropped those of this time
		what = "no packet captured from " + longest.Address
	}
	if longest.clipped {
		sign = ">= "
	}
	p.Headline = fmt.Sprintf("%s for %s%s, came back", what, sign, field.Brief(longest.To.Or(d.last).Sub(longest.From)))
	if !longest.To.Known() {
		p.Headline = strings.TrimSuffix(p.Headline, "came back") + "to the end"
		p.Ongoing = true
	}
	if more > 0 {
		p.Headline += fmt.Sprintf(", + %d more", more)
	}
	p.Evidence = nil
	p.proof(record.PacketRef{Packet: longest.Last, Point: longest.Point}, "last packet")
	p.proof(record.PacketRef{Packet: longest.Next.Or(0), Point: longest.NextPoint}, "next packet")
	for _, r := range longest.rpcs {
		p.proof(r.call, r.itsCall())
	}
	lost := 0
	for _, c := range d.connections {
		if c.by.by == p {
			lost++
		}
	}
	if lost > 0 {
		p.Effect = number(lost, "connection") + " lost"
	}
	if r := p.worst(); r != nil && r.of != nil {
		p.Effect = join(p.Effect, "worst: "+taskText(r.of))
		p.Command = ladder(r)
	}
	if len(p.blocked) == 0 {
		p.blocks(longest.From, longest.To.Or(d.last))
	}
}

// absences returns the times in which a host did not answer, those without any packet of it first.
func (d *diagnosis) absences() (list []absence) {
	for _, s := range d.summary.Silences {
		away := span{s.From, s.To.Or(d.last)}
		if away.ns() < 3*d.timerOf(s.Address, s.Peer) || s.Packets < 3 || d.seenTo(away.from) < away.to {
			continue
		}
		asked, ended := 0, false
		for _, c := range d.connections {
			if !c.are(s.Address, s.Peer) {
				continue
			}
			if c.First >= away.from && c.First <= away.to {
				asked++
			}
			end, over := c.Ended.Get()
			ended = ended || over && c.endedAt() > away.from && c.endedAt() <= away.to+1e9 && (end.How == record.EndRetries || end.How == record.EndSilence || end.OutstandingCalls > 0)
		}
		for _, r := range d.rpcs {
			if r.are(s.Address, s.Peer) && r.sent <= away.to && r.until(d.facts) >= away.to && r.until(d.facts).Sub(r.sent) >= slow {
				asked++
			}
		}
		if asked >= 2 || ended || s.Packets >= 5 && away.ns() >= muteFor {
			list = append(list, absence{Silence: s})
		}
	}
	return append(list, d.mute()...)
}

// mute returns the times in which a server sent nothing for several RPCs that waited, and answered no other one.
func (d *diagnosis) mute() (list []absence) {
	var waiting []*rpc
	for _, r := range d.rpcs {
		if r.mute.ns() >= muteFor && r.slowly.free() && r.outcome.free() && !r.backward && len(waiting) < 256 {
			waiting = append(waiting, r)
		}
	}
	for i, r := range waiting {
		for _, o := range waiting[i+1:] {
			if o.pair != r.pair {
				continue
			}
			both := span{max(r.mute.from, o.mute.from), min(r.mute.to, o.mute.to)}
			away := d.answers[r.pair].longestWithout(both)
			same := slices.IndexFunc(list, func(a absence) bool {
				return a.Address == r.server && a.Peer == r.client && away.touches(span{a.From, a.To.Or(0)})
			})
			switch {
			case away.ns() < muteFor:
			case same < 0:
				s := record.Silence{Address: r.server, Peer: r.client, From: away.from, To: record.Some(away.to), LastTime: away.from}
				list = append(list, absence{Silence: s, rpcs: []*rpc{r, o}, clipped: away != both})
			default:
				a := &list[same]
				a.rpcs = append(a.rpcs, r, o)
			}
		}
	}
	return list
}

// away claims what a silence explains.
func (d *diagnosis) away(p *problem, s absence, away span) {
	d.isAway(s.Address, away)
	on := map[int]bool{} // connections of the two hosts
	for _, c := range d.connections {
		if !c.are(s.Address, s.Peer) {
			continue
		}
		on[c.ID] = true
		if at := c.endedAt(); !c.open() && at >= away.from && (at <= away.to+2e9 || c.First < away.from && at <= away.to+30e9 && len(d.inFlight(c.ID)) > 0) {
			if end, _ := c.Ended.Get(); end.OutstandingCalls > 0 || end.How == record.EndRetries || end.How == record.EndSilence || end.How == record.EndRejected {
				p.lose(d, c)
			}
		}
	}
	if d.isClient(s.Address) {
		p.about(pair{s.Address, s.Peer})
	} else {
		p.about(pair{s.Peer, s.Address})
	}
	for _, r := range s.rpcs {
		p.tasksOf(r)
	}
	for _, t := range d.tasks {
		first := t.tries[0]
		if first.are(s.Address, s.Peer) && (span{t.from, t.to}).touches(away) && t.to >= away.to && t.blocked() >= slow && t.from >= away.from-2e9 {
			p.task(t)
		}
	}
	for _, r := range d.rpcs {
		for i := range r.waits {
			if w := &r.waits[i]; r.are(s.Address, s.Peer) && (span{w.From, w.To}).touches(away) {
				p.stalled(r, w)
			}
		}
	}
	for _, w := range d.stalls {
		if w.by.free() && on[w.connection] && (span{w.From, w.To}).touches(away) {
			p.operation(w)
		}
	}
	p.timeouts(d, func(connection int) bool { return on[connection] }, span{away.from, away.to + 1e9})
	p.during(away.from, away.to)
}

// operation claims a stall of an RDMA operation of another upper layer.
func (p *problem) operation(s *stall) {
	s.by.take(p)
	p.blocks(s.From, s.From+record.Time(s.ns))
	p.conns[s.connection] += s.ns
}

// timeouts claims the timeouts of connections while a host was away, and those of the Calls that were in flight then.
func (p *problem) timeouts(d *diagnosis, on func(connection int) bool, away span) {
	for _, f := range d.findings {
		if f.Rule != "retransmission-timeout" || !on(f.Connection.Or(-1)) {
			continue
		}
		at, r := f.Time.Or(0), d.byID[f.Transaction.Or(0)]
		if at >= away.from && at <= away.to || r != nil && r.unanswered() && r.outcome.by == p {
			p.finding(f)
		}
	}
}

// retransmissionStorm finds RPCs whose packets were sent over and over.
func retransmissionStorm(d *diagnosis) {
	for _, side := range [...]record.End{record.Client, record.Server} {
		var list []*rpc
		for _, r := range d.rpcs {
			if copies := r.copies(side); r.packets >= 100 && copies >= 3*r.packets {
				list = append(list, r)
			}
		}
		if len(list) == 0 {
			continue
		}
		p := d.begin(record.Warning, record.InNetwork)
		var first, copies int64
		for _, r := range list {
			first, copies = first+r.packets, copies+r.copies(side)
			r.slowly.take(p)
			p.waits(r)
			p.note(r, max(r.least, 0))
			p.waited(r)
			p.blocks(r.sent, r.sent+record.Time(max(r.least, 0)))
			p.during(r.sent, r.until(d.facts))
			for i := range r.waits {
				p.proof(r.waits[i].packets[1], "sent again")
			}
		}
		p.proof(list[0].call, "Call")
		p.Headline = fmt.Sprintf("%s sent %s %s times each on average, in %s", side, number(first, "packet"), strconv.FormatFloat(float64(first+copies)/float64(first), 'f', 1, 64), field.Brief(union(p.blocked)))
		worst := p.worst()
		p.Effect = fmt.Sprintf("%s, worst %s took %s", number(len(list), "RPC"), worst.name(), atMost(worst))
		p.Command = ladder(worst)
		for _, f := range d.findings {
			if f.Rule == "retransmission-timeout" && p.rpcs[d.byID[f.Transaction.Or(0)]] > 0 {
				p.finding(f)
			}
		}
	}
}

// copies returns the number of packets of an RPC that a side sent again.
func (r *rpc) copies(side record.End) int64 {
	if side == record.Client {
		return r.repeated.FromClient
	}
	return r.repeated.FromServer
}

// damages are the rules about packets that were damaged or changed on their way, and what a packet of each shows.
var damages = map[string]string{"icrc-bad": "bad ICRC", "mpa-crc-bad": "bad CRC", "changed-on-path": "changed"}

// corruption finds packets that were damaged on their way.
func corruption(d *diagnosis) {
	var damaged, refused int64
	for _, c := range d.connections {
		damaged += c.Counts().Damaged
		if c.Damaged > 0 {
			refused += c.Naks + c.Path.Bursts
		}
	}
	var list []*finding
	changed := int64(0)
	for _, f := range d.findings {
		if f.by.free() && damages[f.Rule] != "" {
			list = append(list, f)
			if f.Rule == "changed-on-path" {
				changed++
			}
		}
	}
	if len(list) == 0 {
		return
	}
	p := d.begin(record.Warning, record.InNetwork)
	n := max(damaged, int64(len(list))-changed)
	p.Headline = fmt.Sprintf("damaged %s (bad checksum)", number(n, "packet"))
	if changed > 0 {
		p.Severity, p.Headline = record.Error, fmt.Sprintf("changed %s, which the receiver took", number(changed, "TCP payload"))
	}
	for _, c := range d.connections {
		if c.Counts().Damaged > 0 {
			p.about(c.pair)
		}
	}
	hit := map[record.Opt[int]]bool{}
	for _, f := range list {
		hit[f.Connection] = true
		p.finding(f)
		p.proof(f.ref(), damages[f.Rule])
	}
	for _, f := range d.findings { // what was changed cannot be decoded
		if changed > 0 && f.Rule == "header-malformed" && !f.AtFault.Known() && hit[f.Connection] {
			p.finding(f)
		}
	}
	if damaged >= 5 && 2*damaged >= refused {
		for _, r := range d.rpcs {
			c := d.byNumber[r.connection]
			for i := range r.waits {
				if w := &r.waits[i]; c != nil && c.Damaged > 0 && w.retransmission() {
					p.stalled(r, w)
				}
			}
		}
	}
	p.Command = checks(list[0].Rule)
}

// lostKey is what lost connections have in common.
type lostKey struct {
	by  record.End
	how record.Ending
}

// connectionLost finds connections that ended with Calls in flight.
func connectionLost(d *diagnosis) {
	groups := map[lostKey][]*connection{}
	var keys []lostKey
	for _, c := range d.connections {
		end, ended := c.Ended.Get()
		if !ended || !c.by.free() || c.rejected() {
			continue
		}
		open := d.inFlight(c.ID)
		told := d.find(func(f *finding) bool { return f.on(c) && aboutEnd[f.Rule] && f.by.free() }) != nil
		open = slices.DeleteFunc(open, func(r *rpc) bool { return !r.outcome.free() })
		if !told || d.lacks(c) && end.How == record.EndDisconnect {
			continue
		}
		if end.How == record.EndDisconnect && len(open) > 0 && c.endedAt().Sub(open[0].sent) >= 10e9 {
			continue // the Call was not answered, and the end is the consequence
		}
		key := lostKey{by: end.By.Or(""), how: end.How}
		if groups[key] == nil {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], c)
	}
	for _, key := range keys {
		d.lostConnections(key, groups[key])
	}
}

// lostConnections makes a problem of connections that were lost in the same way.
func (d *diagnosis) lostConnections(key lostKey, list []*connection) {
	var places []record.ProblemPlace
	who := "" // the place says who closed it
	switch {
	case key.how == record.EndRetries || key.how == record.EndSilence:
		places = []record.ProblemPlace{record.InNetwork, record.InServer}
		if key.by == record.Server {
			places[1] = record.InClient
		}
		who = string(key.by) + " "
	case key.by == record.Client || key.how == record.EndReused:
		places = []record.ProblemPlace{record.InClient}
	case key.by == record.Server:
		places = []record.ProblemPlace{record.InServer}
	default:
		places = []record.ProblemPlace{record.InClient, record.InServer}
	}
	p := d.begin(record.Warning, places...)
	var lives []int64
	var after []string
	for _, c := range list {
		p.lose(d, c)
		end, _ := c.Ended.Get()
		last := end.After.Or(record.After{})
		if c.endedAt().Sub(last.Time) > 5e9 {
			last.Event = ""
		}
		if said := afterText[last.Event]; !slices.Contains(after, said) {
			after = append(after, said)
		}
		lives = append(lives, c.endedAt().Sub(c.Established.Or(c.First)))
		p.proof(refOf(c), "end of connection "+text(c.ID))
		p.during(c.endedAt(), c.endedAt())
		for _, f := range d.findings {
			if f.on(c) && (f.Rule == "call-not-answered" || f.Rule == "retransmission-timeout" && key.how == record.EndRetries) {
				p.finding(f)
			}
		}
		for _, r := range d.rpcs {
			for i := range r.waits {
				if w := &r.waits[i]; r.connection == c.ID && r.outcome.by == p || w.Reason == record.NewConnection && r.before != nil && r.before.connection == c.ID {
					w.by.take(p)
				}
			}
		}
	}
	if key.how == record.EndDisconnect && (slices.Contains(after, afterText[""]) || d.summary.Truncated > 0) && d.mayLackReplies() {
		p.Places = append([]record.ProblemPlace{record.InCapture}, places...)
	}
	if p.lost > 0 || union(p.blocked) >= 1e9 {
		p.Severity = record.Error
	}
	total := 0
	for _, c := range d.connections {
		if c.accept && c.UpperLayer == list[0].UpperLayer {
			total++
		}
	}
	what := fmt.Sprintf("closed %d of %s", len(list), number(int64(max(total, len(list))), "connection"))
	if len(list) == 1 {
		what = fmt.Sprintf("closed connection %d", list[0].ID)
	}
	if key.how == record.EndReset {
		what = "reset" + what[len("closed"):]
	} else if who != "" {
		after = []string{" after retries without an answer"}
	}
	p.Headline = who + what + strings.Join(after, " or")
	slices.Sort(lives)
	if n := p.calls(); n > 0 {
		p.Effect = number(n, "Call") + " in flight"
	}
	if len(list) > 3 {
		p.Effect = join(p.Effect, "median life "+field.Brief(lives[len(lives)/2]))
	}
	p.tellWorst("worst: ")
}

// afterText says what came before the end of a connection.
var afterText = map[record.Trouble]string{
	"": " with Calls in flight", record.TroubleNak: " after a NAK", record.TroubleRNR: " after an RNR NAK", record.TroubleTimeout: " after a retransmission timeout",
	record.TroubleGap: " after a loss", record.TroubleUnknown: " after a retransmission",
}

// retransmission finds RPCs that waited until packets were sent again.
func retransmission(d *diagnosis) {
	type stalledRPC struct {
		r *rpc
		w *wait
	}
	var list []stalledRPC
	var repeated, packets, bursts int64
	var from record.FromPair
	var hit []*connection
	ofAbsences, copiesOf := map[record.Opt[int]]int64{}, map[int]record.FromPair{} // by connection: timeouts, and packets of RPCs, while a host was away
	for _, f := range d.findings {
		if f.Rule == "retransmission-timeout" && f.by.by.isAbsence() {
			ofAbsences[f.Connection]++
		}
	}
	for _, r := range d.rpcs {
		if r.outcome.by.isAbsence() || r.slowly.by.isAbsence() {
			n := copiesOf[r.connection]
			copiesOf[r.connection] = record.FromPair{FromClient: n.FromClient + r.repeated.FromClient, FromServer: n.FromServer + r.repeated.FromServer}
		}
	}
	for _, c := range d.connections {
		ofAbsence := ofAbsences[record.Some(c.ID)]
		storm := slices.ContainsFunc(d.problems, func(p *problem) bool { return p.ID == "retransmission-storm" && p.isAbout(c.ID) })
		if storm || ofAbsence > 0 && ofAbsence == c.Path.Bursts {
			continue
		}
		n, sent, other := c.Counts(), c.Path.RetransmittedFrom, copiesOf[c.ID]
		n.Retransmitted = max(0, n.Retransmitted-other.FromClient-other.FromServer)
		if n.Retransmitted > 0 {
			hit = append(hit, c)
		}
		repeated, packets, bursts = repeated+n.Retransmitted, packets+n.Packets, bursts+c.Path.Bursts
		from.FromClient, from.FromServer = from.FromClient+sent.FromClient-other.FromClient, from.FromServer+sent.FromServer-other.FromServer
	}
	for _, r := range d.rpcs {
		for i := range r.waits {
			if w := &r.waits[i]; w.by.free() && (w.retransmission() || w.Reason == record.RNRNak) {
				list = append(list, stalledRPC{r, w})
			}
		}
	}
	var other []*stall
	for _, s := range d.stalls {
		if s.by.free() {
			other = append(other, s)
		}
	}
	told := d.find(func(f *finding) bool { return f.by.free() && f.Rule == "retransmission-timeout" }) != nil
	if repeated == 0 && len(list) == 0 && len(other) == 0 && !told {
		return
	}
	p := d.begin(record.Note, record.InNetwork)
	for _, c := range hit {
		p.about(c.pair)
	}
	var timers []stalledRPC
	var ofTimers []span
	var all, acked int64
	long := false // an RPC that took at least 100 ms, as the capture proves, had packets of its own repeated
	for _, x := range list {
		p.stalled(x.r, x.w)
		if all += x.w.ns; x.w.Acknowledged {
			acked++
		}
		long = long || x.r.least >= slow && x.w.ns >= 1e6 && x.w.ns*2 >= x.r.latency
		if x.w.Reason == record.RetransmitTimeout {
			timers, ofTimers = append(timers, x), append(ofTimers, span{x.w.From, x.w.From + record.Time(x.w.ns)})
		}
		p.proof(x.w.packets[1], "sent again")
	}
	for _, s := range other {
		p.operation(s)
		p.during(s.From, s.To)
		p.proof(s.packets[1], "sent again")
	}
	for _, f := range d.findings {
		if f.by.free() && f.Rule == "retransmission-timeout" {
			p.finding(f)
			p.proof(f.ref(), "sent again after a timer")
		}
	}
	ns := union(p.blocked)
	if ns >= slow || long || repeated*100 >= packets && repeated >= 20 && bursts >= 5 {
		p.Severity = record.Warning
	}
	slices.SortFunc(timers, func(a, b stalledRPC) int { return cmp.Compare(b.w.ns, a.w.ns) })
	lost, more, points := d.lostBetween()
	switch {
	case len(timers) > 0 && 10*sumOfTwo(timers, func(x stalledRPC) int64 { return x.w.ns }) >= 6*all && timers[0].w.ns >= 10e6:
		worst := timers[0]
		sign := "" // which copy of the Reply was accepted is perhaps not known, and so whether the RPC waited for it
		if worst.r.least >= 0 && worst.r.least < worst.w.ns {
			sign = "<= "
		}
		p.Headline = fmt.Sprintf("%s waited %s%s for a retransmission timer", worst.r.name(), sign, field.Brief(worst.w.ns))
		p.Command = ladder(worst.r)
		p.Evidence = nil
		p.proof(worst.w.packets[0], "last packet before")
		p.proof(worst.w.packets[1], "sent again")
	case points && lost > 0:
		if p.Headline = "lost " + number(lost, "packet"); more {
			p.Headline = "lost at least " + number(lost, "packet")
		}
	case points && !more:
		p.Headline = fmt.Sprintf("%d of %s repeated, none lost", repeated, number(packets, "packet"))
	case acked > 0 && acked == int64(len(list)):
		for _, x := range list { // it may not have accepted the ACKs
			p.Places = append(p.Places, record.ProblemPlace(x.w.Waiting))
		}
		slices.Sort(p.Places)
		p.Places = slices.Compact(p.Places)
		p.Headline = fmt.Sprintf("%s of %s repeated, though acknowledged", field.Count(repeated), number(packets, "packet"))
	default:
		p.Headline = fmt.Sprintf("%s of %s repeated", field.Count(repeated), number(packets, "packet"))
		switch {
		case slices.ContainsFunc(hit, func(c *connection) bool { return !c.ClientKnown }):
		case from.FromClient > 0 && from.FromServer > 0:
			p.Headline += fmt.Sprintf(", %s by the client", field.Count(from.FromClient))
		case from.FromClient > 0:
			p.Headline += " by the client"
		case from.FromServer > 0:
			p.Headline += " by the server"
		}
	}
	if points && lost == 0 { // what came was perhaps acknowledged late
		p.Places = append(p.Places, record.InClient, record.InServer)
		slices.Sort(p.Places)
	}
	if all > 0 {
		p.Effect = "RPCs waited " + wallTime(p.blocked)
		if timed := union(ofTimers); timed > 0 && timed < ns { // otherwise the headline says so
			p.Effect += fmt.Sprintf(", %s of it for timers", field.Brief(timed))
		} else if timed > 0 && !strings.HasSuffix(p.Headline, "timer") {
			p.Effect += ", all of it for timers"
		}
		p.tellWorst("worst: ")
	} else if len(other) > 0 {
		p.Effect = "RDMA operations waited " + wallTime(p.blocked)
		p.Command = []string{"rdma", "-Y", "stalled_ns > 0"}
	}
}

// sumOfTwo returns the sum of the first two.
func sumOfTwo[T any](list []T, ns func(T) int64) (sum int64) {
	for _, x := range list[:min(2, len(list))] {
		sum += ns(x)
	}
	return sum
}

// lostBetween returns how many packets were lost between capture points, whether others perhaps were, and whether there are several points.
func (d *diagnosis) lostBetween() (lost int64, more, points bool) {
	for _, n := range d.network {
		lost, more = lost+n.Lost, more || n.Unknown > 0
	}
	return lost, more, len(d.network) > 0
}

// congestion finds marks of congestion.
func congestion(d *diagnosis) {
	var marks, cnps, packets int64
	for _, c := range d.connections {
		n := c.Counts()
		if n.CongestionMarks+n.CNPs > 0 {
			marks, cnps, packets = marks+n.CongestionMarks, cnps+n.CNPs, packets+n.Packets
		}
	}
	if marks+cnps < 2 { // a single mark is how a link says that it is well used
		return
	}
	p := d.begin(record.Note, record.InNetwork)
	p.Headline = fmt.Sprintf("%s of %s marked (CE), %s", field.Count(marks), number(packets, "packet"), number(cnps, "CNP"))
	for _, c := range d.connections {
		if n := c.Counts(); n.CongestionMarks+n.CNPs > 0 {
			p.conns[c.ID] = n.CongestionMarks + n.CNPs
			p.about(c.pair)
		}
	}
	for _, r := range d.rpcs {
		if r.congested && r.latency >= slow && r.slowly.free() && r.of != nil {
			p.Severity = record.Warning
			r.slowly.take(p)
			p.note(r, r.least)
			p.tasks[r.of] = true
			p.blocks(r.sent, r.sent+record.Time(r.least))
		}
	}
	if r := p.worst(); r != nil && r.of != nil {
		p.Effect = fmt.Sprintf("%s meanwhile, worst: %s", number(len(p.rpcs), "slow RPC"), taskText(r.of))
	} else {
		p.Command = []string{"connections", "-Y", "ce_marks > 0 or cnps > 0"}
	}
	for _, f := range d.findings {
		if f.Rule == "congestion" {
			p.finding(f)
		}
	}
}
