package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// most is the number of entries of the lists of a problem.
const most = 20

// ranked completes the problems and returns them, the worst first.
func (d *diagnosis) ranked() []*record.Problem {
	for _, p := range d.problems {
		p.complete(d)
	}
	d.causes()
	if d.overlaps != nil {
		d.problems = slices.DeleteFunc(d.problems, func(p *problem) bool {
			from, known := p.From.Get()
			if !known { // what is said of whole connections is not about a part of their time
				return !slices.Contains(p.Places, record.InCapture)
			}
			to := p.To.Or(from)
			if p.Ongoing {
				to = max(to, d.last)
			}
			return !d.overlaps(from, to)
		})
	}
	slices.SortStableFunc(d.problems, worse)
	for i, p := range d.problems {
		p.Rank = i + 1
	}
	list := []*record.Problem{}
	for _, p := range d.problems {
		if p.causedBy != nil && p.causedBy.Rank > 0 {
			p.CausedBy = record.Some(p.causedBy.Rank)
		}
		for _, o := range p.beside {
			if o.Rank > 0 && !slices.Contains(p.Beside, o.Rank) {
				p.Beside = append(p.Beside, o.Rank)
			}
		}
		list = append(list, &p.Problem)
	}
	return list
}

// worse compares two problems by their harm: the severity, the tasks that never ended well, the time in which tasks waited, and the part of all
// latencies. A count of packets or findings is no harm.
func worse(a, b *problem) int {
	return cmp.Or(
		cmp.Compare(a.Severity.Rank(), b.Severity.Rank()),
		cmp.Compare(a.quirk(), b.quirk()),
		cmp.Compare(b.spoils(), a.spoils()),
		cmp.Compare(b.harm().lost, a.harm().lost),
		cmp.Compare(b.harm().ns, a.harm().ns),
		cmp.Compare(b.Share, a.Share),
		cmp.Compare(a.From.Or(1<<62), b.From.Or(1<<62)),
		cmp.Compare(a.ID, b.ID),
	)
}

// quirk returns 1 for what is unusual and harms nobody, which most screens leave out.
func (p *problem) quirk() int {
	if p.ID == record.Quirk {
		return 1
	}
	return 0
}

// spoils returns 1 if what the capture lacks makes most of the others doubtful.
func (p *problem) spoils() int {
	if p.ID == "capture-gap" && p.Severity == record.Error {
		return 1
	}
	return 0
}

// harm is what a problem did.
type harm struct{ lost, ns int64 }

// harm returns what a problem and its consequences did.
func (p *problem) harm() harm {
	if p.doubtful {
		return harm{}
	}
	h := harm{p.lost + p.after.lost, max(p.BlockedNS, p.longer) + p.after.ns}
	if p.ID == "slow-rpc" { // it has no reason: a problem that has one comes first, unless it did far less
		h.ns /= unexplained
	}
	return h
}

// unexplained is how many times longer tasks waited without a reason than with one, if that is to come first.
const unexplained = 4

// causes finds the problems that follow from others: soon after it sent a message that broke a rule, the server went away; after a restart, the server
// was in a grace period.
func (d *diagnosis) causes() {
	for _, p := range d.problems {
		for _, q := range d.problems {
			if p.ID == "grace-period" && q.ID == "server-restarted" && p.causedBy == nil && p.Server == q.Server && p.From.Or(0) >= q.From.Or(0) && p.From.Or(0).Sub(q.To.Or(0)) <= 60e9 {
				p.causedBy = q
				q.after = harm{p.lost, p.BlockedNS}
			}
		}
	}
	for _, p := range d.problems {
		if p.ID != "server-gone" {
			continue
		}
		for _, q := range d.problems {
			near := p.From.Or(0).Sub(q.To.Or(0)) <= 2e9
			if (q.ID == "memory-violation" || q.ID == "inline-overrun") && slices.Equal(p.Places, q.Places) && p.Server == q.Server && near && p.causedBy == nil {
				p.causedBy = q
				q.after = harm{p.lost, p.BlockedNS + 1} // the cause comes first
			}
		}
	}
}

// complete fills in what follows from the claims.
func (p *problem) complete(d *diagnosis) {
	p.BlockedNS, p.Tasks = union(p.blocked), int64(len(p.tasks))
	var sum int64
	for _, ns := range p.rpcs {
		sum += ns
	}
	if all := max(d.totals.latency, sum); all > 0 {
		p.Share = float64(sum) / float64(all)
	}
	for i, to := range [...]*record.Opt[string]{&p.Client, &p.Server} {
		if len(p.hosts[i]) == 1 {
			for name := range p.hosts[i] {
				*to = record.Some(name)
			}
		}
	}
	d.others(p)
	list := slices.SortedFunc(maps.Keys(p.rpcs), func(a, b *rpc) int { return cmp.Or(cmp.Compare(p.rpcs[b], p.rpcs[a]), cmp.Compare(a.id, b.id)) })
	p.Requests, p.XIDs = []int64{}, []record.Hex32{}
	for _, r := range list {
		if id := r.first().id; len(p.Requests) < most && !slices.Contains(p.Requests, id) {
			p.Requests, p.XIDs = append(p.Requests, id), append(p.XIDs, r.xid)
		}
	}
	p.Connections = slices.SortedFunc(maps.Keys(p.conns), func(a, b int) int { return cmp.Or(cmp.Compare(p.conns[b], p.conns[a]), cmp.Compare(a, b)) })
	p.Connections = append([]int{}, p.Connections[:min(len(p.Connections), most)]...)
	p.Rules = append([]string{}, byCount(p.rules)[:min(len(p.rules), most)]...)
	if p.Evidence == nil {
		p.Evidence = []record.ProblemFact{}
	}
	p.Beside = []int{}
	if p.Command == nil {
		p.Command = p.command()
	}
}

// others says which of several clients and servers a problem is about.
func (d *diagnosis) others(p *problem) {
	var only []string
	if slices.Contains(p.Places, record.InCapture) {
		return // what it lacks may be anybody's
	}
	for i, what := range [...]string{"client", "server"} {
		some := slices.Sorted(maps.Keys(p.hosts[i]))
		unknown := slices.ContainsFunc(some, func(host string) bool { return !d.hosts[i][host] })
		switch n, all := len(some), len(d.hosts[i]); {
		case n == 0 || n >= all || unknown:
		case n == 1:
			only = append(only, fmt.Sprintf("%s %s of %d", what, some[0], all))
		case n <= 3:
			only = append(only, fmt.Sprintf("%ss %s of %d", what, strings.Join(some, ", "), all))
		default:
			only = append(only, fmt.Sprintf("%d of %d %ss", n, all, what))
		}
	}
	if p.Only.Known() {
		only = append(only, p.Only.Or(""))
	}
	if only != nil {
		p.Only = record.Some(strings.Join(only, ", "))
	}
}

// command returns the command that shows a problem that names none.
func (p *problem) command() []string {
	switch {
	case len(p.Requests) > 0 && len(p.rpcs) == 1:
		return ladder(p.worst())
	case len(p.Rules) > 0:
		return checks(p.Rules[max(0, slices.IndexFunc(p.Rules, func(rule string) bool { return !slices.Contains(afterRules, rule) }))])
	case len(p.Requests) > 0:
		return ladder(p.worst())
	case len(p.Connections) == 1:
		return []string{"connections", "--conn", text(p.Connections[0])}
	}
	return []string{"connections"}
}

// worst returns the attempt that the problem cost most.
func (p *problem) worst() (worst *rpc) {
	for r, ns := range p.rpcs {
		if worst == nil || ns > p.rpcs[worst] || ns == p.rpcs[worst] && r.id < worst.id {
			worst = r
		}
	}
	return worst
}
