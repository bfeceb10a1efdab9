package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Restarts of hosts: what shows them, and what was lost.

// Restart is a restart of a host. Its last packet, last RPC and open RPCs are those of connections that the capture has.
type Restart struct {
	Address string            `json:"address" doc:"Address of the host."`
	Role    record.End        `json:"role" doc:"The side of its connections that the host is."`
	From    record.Time       `json:"from" doc:"Time from which the server did not answer, or had no connection; of a client, time of its last Call before."`
	To      record.Time       `json:"to" doc:"Time at which the server answered or accepted a connection again, or rejected one; of a client, time at which it named itself with another boot verifier."`
	ShownBy string            `json:"shown_by" doc:"What shows the restart, such as a status that a server sends only after one."`
	Packet  record.Opt[int64] `json:"packet" doc:"Packet number: the packet that shows the restart."`

	LastHeard  record.Opt[record.Time] `json:"last_heard" doc:"Time of the last packet of the host before, as far as silences and RPCs show it; null if they show none."`
	LastPacket record.Opt[int64]       `json:"last_packet" doc:"Packet number: the last packet of the host before."`
	LastRPC    record.Opt[LastRPC]     `json:"last_rpc" doc:"Last RPC before: the one that the server answered last, or the one that the client called last; null if the capture has none."`
	Open       int64                   `json:"open_rpcs" doc:"Number of RPCs whose Call was sent before the host was back, and that got no Reply on a connection that the restart ended."`
	Refused    map[string]int64        `json:"state_refused" doc:"Number of Replies of a server, from its restart to its next one, with statuses that show that it had lost the state of clients, or waited for clients to reclaim it, by status; at most 4096 of each are counted."`
}

// LastRPC is the last RPC before a restart.
type LastRPC struct {
	XID    record.Hex32 `json:"xid" doc:"XID of the RPC, as in transactions."`
	Name   string       `json:"name" doc:"Program, and procedure or operation."`
	Time   record.Time  `json:"time" doc:"Time of the Reply of a server, or of the Call of a client."`
	Packet int64        `json:"packet" doc:"Packet number: the Reply of a server, or the Call of a client."`
}

// stateLost has the statuses with which a server refuses state that it does not know: true for those that it sends after a restart,
// and that may show one.
var stateLost = map[string]bool{
	"NFS4ERR_GRACE": true, "NFS4ERR_BADSESSION": true, "NFS4ERR_DEADSESSION": true, "NFS4ERR_STALE_CLIENTID": true, "NFS4ERR_STALE_STATEID": true,
	"NFS4ERR_BAD_STATEID": false, "NFS4ERR_EXPIRED": false, "NFS4ERR_NO_GRACE": false, "NFS4ERR_RECLAIM_BAD": false,
}

// statusOf is a status that a server sent.
type statusOf struct{ server, status string }

// sent has the Replies of a server with a status.
type sent struct {
	first record.Stamp
	times []record.Time // at most maxSent
}

// maxSent is the number of Replies of a server with one status whose times are remembered.
const maxSent = 1 << 12

// lastRPCs has the RPCs of a connection that were the last ones before a restart, if one ended the connection: the one that the client
// called last, and the one that the server answered last.
type lastRPCs struct {
	client, server   string
	called, answered lastRPC
}

// lastRPC is an RPC, and the time and packet of its Call or Reply.
type lastRPC struct {
	at  record.Stamp
	xid record.Hex32
	kind
}

// note remembers an RPC if it is the latest one.
func (l *lastRPC) note(r *record.Transaction, at record.Time, packet int64) {
	if at > l.at.Time {
		*l = lastRPC{record.Stamp{Time: at, Packet: packet}, r.XID, kindOf(r)}
	}
}

// written is a verifier that a server sent in Replies to WRITE and COMMIT.
type written struct {
	verifier record.Hex64
	first    record.Stamp // Reply
	last     record.Time  // of a Reply
}

// maxVerifiers is the number of verifiers of a server that are remembered. A server with more of them shows no restart by them.
const maxVerifiers = 16

// boot is a Call in which an NFSv4 client names itself to a server. It sends another verifier after a restart.
type boot struct {
	client, server, owner string
	verifier              record.Hex64
	connection            int
	at                    record.Time
	packet                int64
}

// purging reports whether a verifier is one with which Linux clients ask the server to forget all their state. They have
// not restarted.
func purging(verifier record.Hex64) bool { return verifier == 1_000_000_001 || verifier == 1<<64-1 }

// writes notes the verifier in a Reply to WRITE or COMMIT.
func (s *suspicion) writes(r *record.Transaction) {
	verifier, known := r.WriteVerifier.Get()
	if !known || r.Reply == nil {
		return
	}
	list, had := s.verifiers[r.Server.Or("")]
	if !had && len(s.verifiers) >= maxHosts || len(list) >= maxVerifiers {
		return
	}
	at := r.Reply.Time
	if i := slices.IndexFunc(list, func(w written) bool { return w.verifier == verifier }); i < 0 {
		s.verifiers[r.Server.Or("")] = append(list, written{verifier, record.Stamp{Time: at, Packet: r.Reply.Packet}, at})
	} else if list[i].last = max(list[i].last, at); at < list[i].first.Time {
		list[i].first = record.Stamp{Time: at, Packet: r.Reply.Packet}
	}
}

// sign is a Reply that a server may have sent because it restarted, after a time.
type sign struct {
	server, shownBy string
	at              record.Stamp
	after           record.Time
}

// signs returns the Replies that may show restarts: those with a status that stateLost says may show one, and the first ones with another verifier,
// if no later Reply has the verifier of those before.
func (s *suspicion) signs() (list []sign) {
	for key, sent := range s.restarted {
		if stateLost[key.status] {
			list = append(list, sign{key.server, key.status, sent.first, 0})
		}
	}
	for server, all := range s.verifiers {
		all = slices.SortedFunc(slices.Values(all), func(a, b written) int { return cmp.Compare(a.first.Time, b.first.Time) })
		for i := 1; i < len(all) && len(all) < maxVerifiers; i++ {
			if all[i-1].last < all[i].first.Time {
				list = append(list, sign{server, anotherVerifier, all[i].first, all[i-1].last})
			}
		}
	}
	return list
}

// anotherVerifier says that a write verifier shows a restart.
const anotherVerifier = "another write verifier"

// clientCall notes what shows later whether a host restarted, and its last RPC before. Among that, there are the Calls with which a client that
// unmounts everything takes leave.
func (s *suspicion) clientCall(r *record.Transaction) {
	if r.Direction != record.Forward || r.Call == nil {
		return
	}
	at := r.Start()
	last := s.last[r.Connection]
	if last == nil && len(s.last) < maxHandshakes {
		last = &lastRPCs{client: r.Client.Or(""), server: r.Server.Or("")}
		s.last[r.Connection] = last
	}
	if last != nil {
		if last.called.note(r, at, r.Call.Packet); r.Reply != nil {
			last.answered.note(r, r.Reply.Time, r.Reply.Packet)
		}
	}
	if verifier, known := r.BootVerifier.Get(); known && len(s.boots) < maxHandshakes {
		s.boots = append(s.boots, boot{r.Client.Or(""), r.Server.Or(""), r.ClientOwner.Or(""), verifier, r.Connection, at, r.Call.Packet})
	}
	if slices.ContainsFunc(r.Operations, func(name string) bool { return name == "DESTROY_SESSION" || name == "DESTROY_CLIENTID" }) {
		s.leaves = appendFew(s.leaves, handshake{client: r.Client.Or(""), server: r.Server.Or(""), at: at})
	}
}

// restarts returns the restarts that the capture shows: a server was silent, rejected connections or lost all its
// connections, and then sent a status that it had not sent before, and that a server sends after a restart. A server also
// sends most of these statuses when the lease of a client has expired. Then only rejected connections, on a port on which it
// accepted connections before, show that it had stopped serving. The same holds for another write verifier, which a server also sends after an error of its
// storage, and which each of its file systems may have of its own.
func (s *suspicion) restarts(silences []record.Silence) (list []Restart) {
	for _, sign := range s.signs() {
		r := Restart{Address: sign.server, Role: record.Server, ShownBy: sign.shownBy, Packet: record.Some(sign.at.Packet)}
		found := false
		note := func(from, to record.Time) {
			if from >= sign.after && to <= sign.at.Time && (!found || to.Sub(from) > r.To.Sub(r.From)) { // A restart takes longer than other interruptions.
				r.From, r.To, found = from, to, true
			}
		}
		for _, x := range silences {
			if to, ended := x.To.Get(); ended && x.Address == sign.server {
				note(x.From, to)
			}
		}
		if !found {
			s.interrupted(sign.server, sign.at.Time, note)
		}
		if found && (sign.shownBy == "NFS4ERR_GRACE" || s.stopped(sign.server, r.From, sign.at.Time)) {
			list = append(list, r)
		}
	}
	list = append(list, s.clientRestarts()...)
	slices.SortFunc(list, func(a, b Restart) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Role, b.Role), cmp.Compare(a.From, b.From), cmp.Compare(b.To, a.To), cmp.Compare(a.Packet.Or(0), b.Packet.Or(0)))
	})
	list = slices.CompactFunc(list, func(a, b Restart) bool { return a.Address == b.Address && a.Role == b.Role && b.From <= a.To })
	closed := map[int]record.Time{} // by connection
	for _, h := range s.closed {
		closed[h.connection] = h.at
	}
	for i := range list {
		next := record.Time(1<<63 - 1)
		if i+1 < len(list) && list[i+1].Address == list[i].Address && list[i+1].Role == list[i].Role {
			next = list[i+1].From
		}
		s.before(&list[i], silences)
		s.lost(&list[i], next, closed)
	}
	return list
}

// before fills in what the host had done last before a restart.
func (s *suspicion) before(r *Restart, silences []record.Silence) {
	hear := func(at record.Stamp) {
		if at.Time > r.LastHeard.Or(0) {
			r.LastHeard, r.LastPacket = record.Some(at.Time), record.Some(at.Packet)
		}
	}
	var last lastRPC
	for _, x := range s.last {
		host, own := x.server, &x.answered
		if r.Role == record.Client {
			host, own = x.client, &x.called
		}
		if host == r.Address && own.at.Time <= r.From && own.at.Time > last.at.Time {
			last = *own
		}
	}
	if last.at.Time > 0 {
		r.LastRPC = record.Some(LastRPC{last.xid, last.name(ByOperation), last.at.Time, last.at.Packet})
		hear(last.at)
	}
	for _, x := range silences {
		if x.Address == r.Address && x.From <= r.To && x.LastTime <= r.From {
			hear(record.Stamp{Time: x.LastTime, Packet: x.Last})
		}
	}
}

// lost fills in what a host had lost; next is the beginning of its next restart, and closed has the ends of connections.
func (s *suspicion) lost(r *Restart, next record.Time, closed map[int]record.Time) {
	for _, p := range s.pending {
		host := p.server
		if r.Role == record.Client {
			host = p.client
		}
		at, ended := closed[p.connection]
		if host == r.Address && p.start <= r.To && (!ended || at >= r.From) {
			r.Open++
		}
	}
	r.Refused = map[string]int64{}
	for key, sent := range s.restarted {
		if r.Role == record.Client || key.server != r.Address {
			continue
		}
		for _, at := range sent.times {
			if at >= r.To && at < next {
				r.Refused[key.status]++
			}
		}
	}
}

// stateRejected notes a Reply with a status of stateLost.
func (s *suspicion) stateRejected(r *record.Transaction) {
	status := r.NFSStatus.Or("")
	if _, lost := stateLost[status]; !lost || r.Direction != record.Forward || r.Reply == nil {
		return
	}
	key, at := statusOf{r.Server.Or(""), status}, record.Stamp{Time: r.Reply.Time, Packet: r.Reply.Packet}
	x := s.restarted[key]
	if x == nil {
		if len(s.restarted) >= maxHosts {
			return
		}
		x = &sent{first: at}
		s.restarted[key] = x
	}
	if at.Time < x.first.Time {
		x.first = at
	}
	if len(x.times) < maxSent {
		x.times = append(x.times, at.Time)
	}
}

// clientRestarts returns the restarts of clients that the capture shows: a client named itself with the same owner and
// another verifier, although it had not taken leave of the server. A client that unmounts everything and whose NFS module is
// loaded again has another verifier, too. If a verifier is used again later, or a connection of the time before is, two
// clients have the same owner.
func (s *suspicion) clientRestarts() (list []Restart) {
	if max(len(s.boots), len(s.last), len(s.leaves)) >= maxHandshakes {
		return nil // What would clear a client may be missing.
	}
	boots := slices.Clone(s.boots)
	slices.SortFunc(boots, func(a, b boot) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.packet, b.packet)) })
	latest := map[[3]string]int{} // by client, server and owner
	for i, b := range boots {
		key := [3]string{b.client, b.server, b.owner}
		before, had := latest[key]
		if latest[key] = i; !had || b.client == "" {
			continue
		}
		if from, restarted := s.restartBetween(boots, before, i); restarted {
			list = append(list, Restart{
				Address: b.client, Role: record.Client, From: from, To: b.at, ShownBy: "another boot verifier", Packet: record.Some(b.packet),
			})
		}
	}
	return list
}

// restartBetween reports whether a client restarted between two Calls in which it named itself, and returns the time of its
// last Call before.
func (s *suspicion) restartBetween(boots []boot, before, after int) (from record.Time, restarted bool) {
	a, b := boots[before], boots[after]
	if a.verifier == b.verifier || purging(a.verifier) || purging(b.verifier) {
		return 0, false
	}
	for i, x := range boots {
		switch {
		case x.client != b.client || x.server != b.server || x.owner != b.owner:
		case i < after && x.verifier == b.verifier, i > after && x.verifier == a.verifier, i < after && x.connection == b.connection:
			return 0, false
		case x.verifier == a.verifier:
			if last := s.last[x.connection]; last != nil {
				from = max(from, last.called.at.Time)
			}
		}
	}
	gone := from < b.at && !slices.ContainsFunc(s.leaves, func(h handshake) bool {
		return h.client == b.client && h.server == b.server && h.at > a.at && h.at <= b.at
	})
	return from, gone
}

// stopped reports whether a server rejected a connection between two times, on a port on which it had accepted one before.
func (s *suspicion) stopped(server string, from, to record.Time) bool {
	return slices.ContainsFunc(s.rejected, func(h handshake) bool {
		return h.server == server && h.at >= from && h.at <= to &&
			slices.ContainsFunc(s.accepted, func(a handshake) bool { return a.server == server && a.port == h.port && a.at < h.at })
	})
}

// interrupted notes the time in which a server that was not silent had no connections, or rejected some: from the end of a
// connection until the next one was accepted.
func (s *suspicion) interrupted(server string, before record.Time, note func(from, to record.Time)) {
	for _, end := range s.closed {
		if end.server != server || end.at > before {
			continue
		}
		from, to := end.at, record.Time(0)
		for _, a := range s.accepted {
			if a.server == server && a.at >= from && (to == 0 || a.at < to) {
				to = a.at
			}
		}
		for _, h := range s.rejected {
			if h.server == server && h.at >= from && (to == 0 || h.at < to) {
				to = h.at
			}
		}
		if to != 0 {
			note(from, to)
		}
	}
}
