package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Hosts that were silent, or restarted.

// silent is for hosts that did not answer. A silence in which a host restarted is said already, and one in which its capture has no
// packet at all.
func silent(j *facts) said {
	quiet := SumNetwork(j.o.Network).Quiet
	list := slices.DeleteFunc(slices.Clone(j.silences), func(x record.Silence) bool {
		return x.Lost.Or(0) == x.Packets && slices.ContainsFunc(quiet, func(t record.QuietTime) bool { return t.From <= x.To.Or(j.end) && t.To >= x.From }) || slices.ContainsFunc(j.restarts, func(r Restart) bool {
			return r.Address == x.Address && x.From >= r.From && x.To.Or(j.end) <= r.To
		})
	})
	if len(list) == 0 {
		return said{}
	}
	longest := slices.MaxFunc(list, func(a, b record.Silence) int {
		return cmp.Compare(a.To.Or(j.end).Sub(a.From), b.To.Or(j.end).Sub(b.From))
	})
	until := "the end of the capture"
	if to, ended := longest.To.Get(); ended {
		until = j.at(to)
	}
	if len(list) > 1 {
		until += fmt.Sprintf(" (the longest of %d silences)", len(list))
	}
	text := fmt.Sprintf("no packet from %s was captured between %s and %s, although %s of %s needed an answer", longest.Address, j.at(longest.From), until, plural(longest.Packets, "packet"), longest.Peer)
	host, possible := j.roleOf(longest.Address), []Place{InNetwork, InServer, InClient}
	if host != "" {
		possible = []Place{InNetwork, host}
	}
	where, lacks := Unproven, j.s.CaptureDrops > 0 || j.o.Health.NotCaptured > 0
	name := string(cmp.Or(host, "host"))
	switch lost, arrived := longest.Lost.Or(0), longest.Arrived.Or(0); {
	case lost == longest.Packets:
		where, lacks, text = InNetwork, false, text+", and all of them were lost between the capture points"
	case arrived == longest.Packets && !lacks:
		text += fmt.Sprintf(", and all of them came to the capture point at %s; the %s, or what is between it and this point", longest.Address, name)
	case lost+arrived > 0:
		text += fmt.Sprintf(" (%d came to the capture point at %s, and %d %s lost before); the network or the %s", arrived, longest.Address, lost, record.Were(lost), name)
	default:
		text += fmt.Sprintf("; the network lost packets, or the %s sent none", name)
	}
	if lacks {
		text += ", or the capture lacks them"
	}
	return said{where, possible, text, []Evidence{
		{"Packets of " + longest.Peer + " got no answer", fmt.Sprintf("packets FILE --from %s --to %s", since(longest.From, j), since(longest.To.Or(j.end), j))},
	}}
}

// since returns a time as an argument of --from and --to.
func since(t record.Time, j *facts) string {
	return fmt.Sprintf("%.6f", float64(t.Sub(j.s.First.Or(t)))/1e9)
}

// roleOf returns which end of connections a host is; it is empty if the host is both, or none. Connections for the callbacks of NFS
// 4.0, and others of RPC without RDMA, do not count besides connections of RDMA.
func (j *facts) roleOf(address string) Place {
	server, client := false, false
	plain := !slices.ContainsFunc(j.o.Groups, func(g Group) bool { return g.UpperLayer != "rpc" })
	for i := range j.o.Groups {
		if g := &j.o.Groups[i]; g.ClientsKnown > 0 && (plain || g.UpperLayer != "rpc") {
			server, client = server || g.Server.Or("") == address, client || g.Client.Or("") == address
		}
	}
	switch {
	case server && !client:
		return InServer
	case client && !server:
		return InClient
	}
	return ""
}

// serverRestarted is for a server that restarted.
func serverRestarted(j *facts) said {
	list := j.restartsOf(record.Server)
	if len(list) == 0 {
		return said{}
	}
	r := list[0]
	all := ""
	if len(list) > 1 {
		all = fmt.Sprintf("; %s of servers in all", plural(int64(len(list)), "restart"))
	}
	text := fmt.Sprintf("the server %s restarted between %s and %s (%s in packet %d%s)", r.Address, j.at(r.From), j.at(r.To), r.ShownBy, r.Packet.Or(0), all)
	command := "FILE -Y 'status == " + r.ShownBy + "'"
	if r.ShownBy == anotherVerifier {
		command = "FILE -Y 'write_verifier != null' -e number,time,operation,write_verifier"
	}
	if n := j.repairs.repaired; n > 0 {
		text += ": " + j.acceptedLater()
	}
	text += j.before(&r)
	return said{InServer, nil, text, []Evidence{{"Replies that a server sends only after a restart", command}}}
}

// restartsOf returns the restarts of clients, or those of servers.
func (j *facts) restartsOf(role record.End) []Restart {
	return slices.DeleteFunc(slices.Clone(j.restarts), func(r Restart) bool { return r.Role != role })
}

// clientRestarted is for a client that named itself to a server with another verifier.
func clientRestarted(j *facts) said {
	list := j.restartsOf(record.Client)
	if len(list) == 0 {
		return said{}
	}
	r := list[0]
	text := fmt.Sprintf("the client %s restarted between %s and %s: it named itself with the same owner and another boot verifier (packet %d)", r.Address, j.at(r.From), j.at(r.To), r.Packet.Or(0))
	if len(list) > 1 {
		text += fmt.Sprintf("; %s of clients in all", plural(int64(len(list)), "restart"))
	}
	text += j.before(&r)
	return said{InClient, nil, text, []Evidence{{"the same owner with another verifier", "FILE -Y 'boot_verifier != null' --json"}}}
}

// before says what a host had done before its restart, and what it had lost.
func (j *facts) before(r *Restart) (text string) {
	if at, known := r.LastHeard.Get(); known {
		text += fmt.Sprintf("; it was last heard of at %s (packet %d)", j.at(at), r.LastPacket.Or(0))
	}
	if last, known := r.LastRPC.Get(); known {
		what := "the last RPC that it answered before"
		if r.Role == record.Client {
			what = "its last RPC before"
		}
		text += fmt.Sprintf("; %s was %s, XID %v", what, last.Name, last.XID)
	}
	if r.Open > 0 {
		text += fmt.Sprintf("; %s %s in flight", plural(r.Open, "RPC"), map[bool]string{true: "was", false: "were"}[r.Open == 1])
	}
	if len(r.Refused) == 0 {
		return text
	}
	var parts []string
	for _, status := range slices.SortedFunc(maps.Keys(r.Refused), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Refused[b], r.Refused[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Refused[status], status))
	}
	return text + "; afterwards it answered with " + strings.Join(parts, ", ")
}
