package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// ordinary has the statuses of answers that are no fault of anybody.
var ordinary = set(`
	NFS4ERR_NOENT NFS3ERR_NOENT NFS4ERR_ACCESS NFS3ERR_ACCES NFS3ERR_ACCESS NFS4ERR_EXIST NFS3ERR_EXIST NFS4ERR_PERM NFS3ERR_PERM
	NFS4ERR_NOTEMPTY NFS3ERR_NOTEMPTY NFS4ERR_NOTSUPP NFS3ERR_NOTSUPP NFS4ERR_ATTRNOTSUPP NFS4ERR_NOXATTR NFS4ERR_NOTDIR NFS4ERR_ISDIR
	NFS4ERR_SYMLINK NFS4ERR_LOCKED NFS4ERR_DENIED NFS4ERR_SAME NFS4ERR_NOT_SAME NFS4ERR_LAYOUTUNAVAILABLE NFS4ERR_UNION_NOTSUPP
	NFS4ERR_COMPLETE_ALREADY`)

// gracePeriod finds tasks that a server put off because it waits for clients to reclaim their state.
func gracePeriod(d *diagnosis) {
	d.delay(d.delayedTasks(inGrace), inGrace, func(worst *task) string {
		return fmt.Sprintf("in grace period: %s waited %s", worst.tries[0].name(), field.Brief(worst.blocked()))
	})
}

// putOffOtherwise finds tasks that a server put off for another reason.
func putOffOtherwise(d *diagnosis) {
	all := func(*rpc) bool { return true }
	d.delay(d.delayedTasks(all), all, func(worst *task) string {
		return fmt.Sprintf("answered %s to %s, which waited %s", worst.tries[0].failure, worst.tries[0].name(), field.Brief(worst.blocked()))
	})
}

// recall finds tasks that waited until a client returned a delegation of the same file. A server asks for it at once: a Call of long before had
// another reason to wait, such as one of before the delegation was granted.
func recall(d *diagnosis) {
	for i := range d.recalls {
		x := &d.recalls[i]
		var list []*task
		for _, t := range d.tasks {
			first := t.tries[0]
			same := x.file != "" && x.file == first.file || x.handle != "" && x.handle == first.handle
			if same && x.server == first.server && t.to >= x.at && t.from >= x.at-1e9 && t.from <= x.at+1e9 && (x.returned == 0 || t.to >= x.returned && t.from < x.returned) && first.operation != "DELEGRETURN" && first.outcome.free() && first.slowly.free() &&
				(delayed[first.failure] || first.latency >= slow || first.unanswered() && x.returned == 0) {
				list = append(list, t)
			}
		}
		if len(list) == 0 {
			continue
		}
		p := d.begin(record.Note, record.InClient)
		worst := list[0]
		for _, t := range list {
			if p.task(t); t.blocked() > worst.blocked() {
				worst = t
			}
		}
		p.severe(union(p.blocked))
		p.Headline = fmt.Sprintf("held a delegation of %s; %s waited %s", cmp.Or(x.file, "a file"), worst.tries[0].operation, field.Brief(worst.blocked()))
		p.Effect = "not returned"
		if x.returned > 0 {
			p.Effect = "returned after " + field.Brief(x.returned.Sub(x.at))
		}
		p.hosts[0] = map[string]bool{x.client: true} // the one that holds it, not those that waited
		p.proof(x.packet, "CB_RECALL")
		p.proof(x.back, "DELEGRETURN")
	}
}

// severe sets the severity by the time in which tasks waited.
func (p *problem) severe(ns int64) {
	switch {
	case ns >= 30e9:
		p.Severity = record.Error
	case ns >= 1e9:
		p.Severity = record.Warning
	}
}

// delayedTasks returns the tasks that a server put off and that nothing explains, of which one try is so.
func (d *diagnosis) delayedTasks(so func(*rpc) bool) (list []*task) {
	for _, t := range d.tasks {
		if first := t.tries[0]; putOff[first.failure] && !noTask[first.operation] && first.outcome.free() && slices.ContainsFunc(t.tries, so) {
			list = append(list, t)
		}
	}
	return list
}

// delay makes a problem of tasks that were put off, of which one try is so.
func (d *diagnosis) delay(tasks []*task, so func(*rpc) bool, says func(worst *task) string) {
	if len(tasks) == 0 {
		return
	}
	p := d.begin(record.Note, record.InServer)
	for _, t := range tasks {
		p.task(t)
	}
	worst := slices.MaxFunc(tasks, func(a, b *task) int { return int(a.blocked() - b.blocked()) })
	p.severe(union(p.blocked))
	why := worst.tries[slices.IndexFunc(worst.tries, so)]
	status := why.failure
	if p.Headline = says(worst); !delayed[status] || d.gap != nil && !inGrace(why) { // Something that the capture does not show came before it, or may have.
		p.Places = []record.ProblemPlace{record.InClient, record.InNetwork, record.InServer}
	}
	refused := int64(0)
	for _, r := range worst.tries {
		if putOff[r.failure] {
			refused++
		}
	}
	end := worst.tries[len(worst.tries)-1]
	switch {
	case end.failure == "" && !end.unanswered():
		p.Effect = fmt.Sprintf("%s refused, the %s ok", number(refused, "try"), record.Ordinal(len(worst.tries)))
		if pause := worst.pauses(); pause >= 1e9 {
			p.Effect += fmt.Sprintf("; %s of it the client's pause", field.Brief(pause))
		}
	case worst.gaveUp:
		p.Effect = fmt.Sprintf("%s refused, not tried again", number(refused, "try"))
	default:
		p.Effect = fmt.Sprintf("%s refused", number(refused, "try"))
	}
	if n := len(tasks) - 1; n > 0 {
		p.Effect += fmt.Sprintf("; %s waited", number(n, "other operation"))
	}
	p.proof(why.reply, status)
	if refused > 1 {
		p.proof(worst.tries[refused-1].reply, worst.tries[refused-1].failure)
	}
	if end.failure == "" && !end.unanswered() {
		p.proof(end.reply, "ok")
	}
	p.Command = having(status)
}

// serious has the statuses that say that something is wrong with the server, its storage, or a message.
var serious = set(`
	NFS4ERR_IO NFS3ERR_IO NFS4ERR_NXIO NFS3ERR_NXIO NFS4ERR_NOSPC NFS3ERR_NOSPC NFS4ERR_STALE NFS3ERR_STALE NFS4ERR_SERVERFAULT
	NFS3ERR_SERVERFAULT NFS4ERR_RESOURCE GARBAGE_ARGS SYSTEM_ERR RPCSEC_GSS_CREDPROBLEM RPCSEC_GSS_CTXPROBLEM`)

// having returns the command that lists the RPCs that were answered with one of some statuses, of which the first are named.
func having(statuses ...string) []string {
	var parts []string
	for _, status := range statuses[:min(len(statuses), 3)] {
		parts = append(parts, "status == "+status)
	}
	return []string{"--top", "20", "-Y", strings.Join(parts, " or ")}
}

// executedTwice finds requests that are not idempotent, and whose second attempt was answered as if the first one had been executed.
func executedTwice(d *diagnosis) {
	for _, r := range d.rpcs {
		if r.before == nil || !r.before.delivered && !r.before.replyLost {
			continue
		}
		gone := r.failure == "NFS4ERR_NOENT" || r.failure == "NFS3ERR_NOENT"
		there := r.failure == "NFS4ERR_EXIST" || r.failure == "NFS3ERR_EXIST"
		if !(gone && (r.operation == "REMOVE" || r.operation == "RMDIR" || r.operation == "RENAME") || there && (r.operation == "CREATE" || r.operation == "MKDIR" || r.operation == "SYMLINK" || r.operation == "LINK" || r.operation == "MKNOD")) {
			continue
		}
		p := d.begin(record.Note, record.InServer)
		p.Headline = fmt.Sprintf("probably executed %s twice", r.name())
		p.Effect = "the repeated Call was answered " + r.failure
		p.note(r, 0)
		for o := r.before; o != nil; o = o.before {
			if by := o.outcome.by; by != nil && by != p && !slices.Contains(p.beside, by) {
				p.beside = append(p.beside, by)
			}
		}
		r.outcome.take(p)
		p.proof(r.before.call, "first Call, delivered")
		p.proof(r.reply, r.failure)
		p.during(r.before.sent, r.end)
	}
}

// rpcFailed finds requests that were answered with an error, as far as no earlier kind explains it.
func rpcFailed(d *diagnosis) {
	groups, more := map[string][]*rpc{}, ""
	for _, r := range d.rpcs {
		if !r.failed() || !r.outcome.free() || r.again != nil {
			if r.failed() {
				more = "more "
			}
			continue
		}
		status := failureText(r)
		if serious[status] && !r.backward {
			groups[status] = append(groups[status], r)
		} else {
			groups[""] = append(groups[""], r)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(groups)) {
		list := groups[status]
		counts, operations := map[string]int64{}, map[string]int64{}
		p := d.begin(record.Note, record.InRPC)
		for _, r := range list {
			counts[failureText(r)]++
			operations[r.operation]++
			r.outcome.take(p)
			p.note(r, 0)
			p.during(r.sent, r.end)
		}
		p.Failed = int64(len(list))
		p.Headline = fmt.Sprintf("%s %sfailed: %s", field.Count(p.Failed), more, counted(counts))
		p.Command = having(byCount(counts)...)
		if status == "" {
			continue
		}
		p.Severity, p.Places = record.Warning, []record.ProblemPlace{record.InServer}
		name := byCount(operations)[0]
		p.Headline = fmt.Sprintf("answered %s to %s %s", status, name, times(operations[name]))
		if n := p.Failed - operations[name]; n > 0 {
			p.Effect = fmt.Sprintf("and to %s of other operations", field.Count(n))
		}
		p.proof(list[0].reply, status)
		p.Command = having(status)
	}
	for _, f := range d.findings {
		r := d.byID[f.Transaction.Or(0)]
		if f.Rule == "rpc-rejected" && f.by.free() && r != nil && r.outcome.by != nil {
			r.outcome.by.finding(f)
		}
	}
}

// unanswered finds the requests that were never answered, as far as no earlier kind explains it, and the Replies may not be among the packets that the
// capture lacks. Callbacks are for the client to answer.
func unanswered(d *diagnosis) {
	var late []*rpc             // of the last second
	var never, closed [2][]*rpc // of both directions; closed are those whose caller closed the connection within a second
	for _, r := range d.rpcs {
		if !r.unanswered() || r.again != nil || !r.outcome.free() {
			continue
		}
		c, way, caller := d.byNumber[r.connection], 0, record.Client
		if r.backward {
			way, caller = 1, record.Server
		}
		switch {
		case d.gap != nil && c != nil && d.lacks(c):
			d.gap.all(r)
		case d.last.Sub(r.sent) <= 1e9 && (c == nil || c.open()):
			late = append(late, r)
		case c != nil && c.closedBy(caller) && c.endedAt().Sub(r.sent) <= 1e9:
			if d.summary.Truncated > 0 && (c.Transport == "iWARP" || c.Transport == "TCP") { // A Reply may be behind the captured bytes of a segment.
				continue
			}
			closed[way] = append(closed[way], r)
		default:
			never[way] = append(never[way], r)
		}
	}
	d.answeredAgain()
	for way, places := range [...][2]record.ProblemPlace{{record.InServer, record.InClient}, {record.InClient, record.InServer}} {
		if list := never[way]; len(list) > 0 {
			d.neverAnswered(d.begin(record.Error, places[0], record.InNetwork), list)
		}
		if list := closed[way]; len(list) > 0 {
			p := d.begin(record.Note, places[1])
			for _, r := range list {
				p.all(r)
				p.ends(d, d.byNumber[r.connection])
			}
			p.Headline = fmt.Sprintf("closed a connection <= 1 s after %s, before the Reply", list[0].name())
			p.proof(list[0].call, "Call")
		}
	}
	if len(late) > 0 {
		p := d.begin(record.Note, record.InCapture)
		p.doubtful = true
		for _, r := range late {
			p.all(r)
		}
		p.Headline = fmt.Sprintf("ends less than 1 s after %s without a Reply", number(len(late), "Call"))
	}
}

// answeredAgain finds Calls that got no Reply, so that the client closed the connection and sent them again on another one.
func (d *diagnosis) answeredAgain() {
	var p *problem
	var worst *rpc
	for _, c := range d.connections {
		end, _ := c.Ended.Get()
		if end.How != record.EndDisconnect || !c.by.free() {
			continue
		}
		for _, r := range d.inFlight(c.ID) {
			if r.again == nil || !r.outcome.free() || c.endedAt().Sub(r.sent) < 10e9 {
				continue
			}
			if p == nil {
				p = d.begin(record.Warning, record.InNetwork, record.InServer)
			}
			if p.ends(d, c); r.of != nil {
				p.task(r.of)
			}
			if p.proof(r.call, "Call, not answered"); worst == nil || r.sent < worst.sent {
				worst = r
			}
			p.proof(r.again.call, "sent again on another connection")
		}
	}
	if p == nil {
		return
	}
	p.Headline = fmt.Sprintf("%s not answered, and sent again on another connection", number(len(p.rpcs), "Call"))
	if union(p.blocked) >= 30e9 {
		p.Severity = record.Error
	}
	if worst.of != nil {
		p.Effect = taskText(worst.of)
	}
	p.Command = ladder(worst)
}

// neverAnswered describes requests that were never answered.
func (d *diagnosis) neverAnswered(p *problem, never []*rpc) {
	on, acked := map[int]int64{}, 0
	for _, r := range never {
		p.tasksOf(r)
		on[r.connection]++
		if r.delivered {
			acked++
		}
	}
	n, by := int64(len(never))+d.droppedRPCs, record.Server
	if never[0].backward {
		n, by = int64(len(never)), record.Client
	}
	p.Headline = number(n, "RPC") + " never answered"
	if n == 1 {
		p.Headline = never[0].name() + " never answered"
	}
	if len(on) == 1 && n > 1 {
		p.Headline += fmt.Sprintf(", all on connection %d", never[0].connection)
	}
	if c := never[0].connection; len(on) == 1 && d.othersLived(c, never[0].sent) {
		p.Only = record.Some(fmt.Sprintf("connection %d alone: others went on being answered", c))
	}
	p.Effect = fmt.Sprintf("%s, from %s", number(n, "Call"), d.span(never[0].sent, never[len(never)-1].sent))
	if acked > 0 {
		p.Effect += fmt.Sprintf("; the %s's adapter acknowledged %d of them", by, acked)
	}
	for _, c := range d.connections {
		if end, ended := c.Ended.Get(); ended && on[c.ID] > 0 && c.by.free() && end.How != record.EndRejected {
			p.ends(d, c)
		}
	}
	for _, f := range d.findings {
		if r := d.byID[f.Transaction.Or(0)]; f.Rule == "call-not-answered" && r != nil && r.outcome.by == p {
			p.finding(f)
		}
	}
	p.proof(never[0].call, "Call, never answered")
	if last := never[len(never)-1]; last != never[0] {
		p.proof(last.call, "the last of them")
	}
}

// othersLived reports whether other connections of the hosts of a connection had packets after a time.
func (d *diagnosis) othersLived(on int, after record.Time) bool {
	c := d.byNumber[on]
	return c != nil && slices.ContainsFunc(d.connections, func(o *connection) bool {
		return o.ID != c.ID && o.ofRPC() && o.pair == c.pair && o.Transactions > 0 && o.Last > after && !o.rejected()
	})
}
