package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Violations of the protocol, refused mounts and RPCs with an error status.

// harmfulFault is for a side that broke the protocol, so that RPCs failed or connections ended.
func harmfulFault(j *facts) said {
	if !j.harmed() {
		return said{}
	}
	return j.broken(j.failures())
}

// harmed reports whether RPCs or connections failed because of the protocol.
func (j *facts) harmed() bool { return j.failures() != "" }

// failures counts the RPCs and connections that failed because of the protocol. If the capture is incomplete, a Reply that it does
// not contain proves no failure.
func (j *facts) failures() string {
	n, noReply := &j.o.RPCs, int64(0)
	if j.o.Health.NotCaptured == 0 && j.s.Truncated == 0 && j.s.CaptureDrops == 0 && n.NoCall == 0 && j.oneWay == "" {
		noReply = n.NoReply
	}
	var parts []string
	for _, x := range []struct {
		n    int64
		noun string
		text string
	}{{n.RDMAError, "RPC", " answered by RDMA_ERROR"}, {j.nakEnds, "connection", " ended by a NAK"}, {noReply, "RPC", " without a Reply"}} {
		if x.n > 0 {
			parts = append(parts, plural(x.n, x.noun)+x.text)
		}
	}
	return strings.Join(parts, ", ")
}

// harmlessFault is for a side that broke the protocol without visible consequences.
func harmlessFault(j *facts) said {
	if j.harmed() {
		return said{}
	}
	return j.broken("")
}

// broken returns the sentence about the side whose errors the findings prove.
func (j *facts) broken(consequence string) said {
	keys := slices.SortedFunc(maps.Keys(j.faults), func(a, b faultKey) int {
		return cmp.Or(cmp.Compare(j.faults[b].count, j.faults[a].count), cmp.Compare(a.rule, b.rule), cmp.Compare(a.by, b.by))
	})
	if len(keys) == 0 {
		return said{}
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
	where := Unproven
	switch {
	case count[record.Server] > count[record.Client]:
		where = InServer
	case count[record.Client] > count[record.Server]:
		where = InClient
	}
	first := slices.IndexFunc(keys, func(k faultKey) bool { return where == Unproven || string(k.by) == string(where) })
	f := j.faults[keys[first]]
	text := f.message
	if where != Unproven {
		n := count[record.End(where)]
		text = fmt.Sprintf("%s of the protocol (%s): %s", plural(n, "violation"), keys[first].rule, text)
		if n > f.count {
			text = fmt.Sprintf("%s of the protocol, most often %s: %s", plural(n, "violation"), keys[first].rule, f.message)
		}
	} else {
		text = fmt.Sprintf("both sides violate the protocol, %s each, such as %s: %s", plural(count[record.Server], "time"), keys[first].rule, text)
	}
	if hosts := slices.Sorted(maps.Keys(f.hosts)); j.severalClients() && len(hosts) > 0 && hosts[0] != "" {
		text += " (" + strings.Join(hosts[:min(len(hosts), 3)], ", ")
		if len(hosts) > 3 {
			text += " and " + plural(int64(len(hosts)-3), "other")
		}
		text += ")"
	}
	if consequence != "" {
		text += "; " + consequence
	}
	return said{where, []Place{InClient, InServer}, text, evidence}
}

// refusalReasons explains the statuses of a refused mount.
var refusalReasons = map[string]string{
	"NFS4ERR_MINOR_VERS_MISMATCH": "the server does not serve the minor version that the client asks for",
	"PROG_MISMATCH":               "the server does not serve this version of the program",
	"PROG_UNAVAIL":                "the server does not serve this program",
}

// mountRefused is for a server that refuses to be mounted.
func mountRefused(j *facts) said {
	var keys []mountKey
	for key, r := range j.refusals {
		any := mountKey{client: key.client, server: key.server}
		if !strings.HasPrefix(key.name, "NFSACL") && j.served[key] <= r.first && j.served[any] <= r.first {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return said{}
	}
	slices.SortFunc(keys, func(a, b mountKey) int {
		return cmp.Or(cmp.Compare(j.refusals[b].count, j.refusals[a].count), cmp.Compare(a.name, b.name), cmp.Compare(a.client, b.client), cmp.Compare(a.server, b.server))
	})
	name, r := keys[0].name, j.refusals[keys[0]]
	text := fmt.Sprintf("%s refused with %s", name, r.status)
	if j.severalClients() && keys[0].client != "" {
		text += " (client " + keys[0].client + ")"
	}
	if why := refusalReasons[r.status]; why != "" {
		text += ": " + why
	}
	return said{InServer, nil, text, []Evidence{{fmt.Sprintf("%s with %s", plural(r.count, name+" Reply"), r.status), "FILE -Y 'status == " + r.status + "'"}}}
}

// failed counts the RPCs with an error status.
func failed(j *facts) said {
	n := &j.o.RPCs
	if n.Failed == 0 {
		return said{}
	}
	const shown = 4
	var parts []string
	for _, s := range n.Statuses[:min(len(n.Statuses), shown)] {
		parts = append(parts, fmt.Sprintf("%d %s", s.Count, s.Status))
	}
	if len(n.Statuses) > shown {
		parts = append(parts, "and others")
	}
	command := "FILE -Y 'status != ok'"
	if len(n.Statuses) == 1 {
		command = "FILE -Y 'status == " + n.Statuses[0].Status + "'"
		if n.NoCall > 0 && strings.HasPrefix(n.Statuses[0].Status, "NFS") { // The status of a Reply without a Call is no_call.
			command = "FILE -Y 'nfs_status == " + n.Statuses[0].Status + "'"
		}
	}
	return said{
		Unproven, nil, fmt.Sprintf("%d of %s %s (%s)%s", n.Failed, plural(j.o.RPCs.Total(), "RPC"), became(n.Statuses), strings.Join(parts, ", "), j.which(func(t *tally) int64 { return t.failed })),
		[]Evidence{{plural(n.Failed, "RPC") + " with an error status", command}},
	}
}

// putOff are the statuses with which a server asks the client to send the RPC again later.
var putOff = map[string]bool{"GRACE": true, "DELAY": true, "JUKEBOX": true, "LAYOUTTRYLATER": true}

// became says what became of RPCs with error statuses.
func became(statuses []StatusCount) string {
	isPutOff := func(s StatusCount) bool { _, name, _ := strings.Cut(s.Status, "ERR_"); return putOff[name] }
	switch off := slices.ContainsFunc(statuses, isPutOff); {
	case !off:
		return "failed"
	case slices.ContainsFunc(statuses, func(s StatusCount) bool { return !isPutOff(s) }):
		return "failed or were put off"
	}
	return "put off"
}

// ordinaryStatuses are the statuses with which a server answers questions about files as it should.
var ordinaryStatuses = map[string]bool{"NOENT": true, "EXIST": true, "NOTDIR": true, "ISDIR": true, "NOTEMPTY": true, "NOTSUPP": true, "NOXATTR": true}

// isOrdinary reports whether a status is an ordinary answer.
func isOrdinary(status string) bool {
	_, name, _ := strings.Cut(status, "ERR_")
	return ordinaryStatuses[name]
}

// ordinary reports whether all RPCs with an error status have one that is an ordinary answer.
func (j *facts) ordinary() bool {
	return !slices.ContainsFunc(j.o.RPCs.Statuses, func(s StatusCount) bool { return !isOrdinary(s.Status) })
}

// errorsFound counts the errors of the protocol that do not prove by themselves which side is at fault.
func errorsFound(j *facts) said {
	proven := map[string]bool{changedOnPath: true} // which changed counts
	for k := range j.faults {
		proven[k.rule] = true
	}
	n := int64(0)
	var rules []string
	for _, f := range j.o.Findings {
		if f.Severity == record.Error && !proven[f.Rule] {
			n += f.Count
			rules = append(rules, f.Rule)
		}
	}
	if n == 0 {
		return said{}
	}
	return said{Unproven, nil, fmt.Sprintf("%s without proof of which side is at fault (%s)", plural(n, "error"), strings.Join(rules[:min(len(rules), 3)], ", ")), []Evidence{{plural(n, "finding") + " of severity error", "check FILE -Y 'severity == error'"}}}
}
