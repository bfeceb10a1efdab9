package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// promises has what a server said to a client that it still has to do, or that is wrong with their state.
type promises struct {
	copies []copied // answered before they were complete, and not completed yet
	late   int      // copies that were completed late
	worst  int64    // the latest of them, in nanoseconds
	status [len(statusTexts)]saidStatus
	last   record.Time // of the latest Reply in a session
}

// copied is a COPY that the server answered before it was complete.
type copied struct {
	at     record.Time
	packet record.PacketRef
	asked  record.Time // the latest OFFLOAD_STATUS
}

// saidStatus is a status flag of the Replies in a session.
type saidStatus struct {
	first, last record.Time
	packet      record.PacketRef
	replies     int64
}

// statusTexts says what the status flags of Replies in a session mean that tell of trouble (RFC 8881 s.18.46.3), and whose it may be.
var statusTexts = [...]struct {
	flag   uint32
	name   string
	says   string
	places []record.ProblemPlace
}{
	{0x001, "CB_PATH_DOWN", "callbacks do not arrive: the server says that their channel is down", anySide},
	{0x200, "CB_PATH_DOWN_SESSION", "callbacks do not arrive: the server says that their channel is down", anySide},
	{0x400, "BACKCHANNEL_FAULT", "callbacks do not arrive: the server says that their channel is broken", anySide},
	{0x008, "EXPIRED_ALL_STATE_REVOKED", "lease expired: the server revoked all state", anySide},
	{0x010, "EXPIRED_SOME_STATE_REVOKED", "lease expired: the server revoked some state", anySide},
	{0x020, "ADMIN_STATE_REVOKED", "an administrator revoked state", []record.ProblemPlace{record.InServer}},
	{0x040, "RECALLABLE_STATE_REVOKED", "a delegation or layout was not returned; the server revoked it", []record.ProblemPlace{record.InClient, record.InNetwork, record.InServer}},
	{0x080, "LEASE_MOVED", "file systems moved, says the server", []record.ProblemPlace{record.InServer}},
	{0x100, "RESTART_RECLAIM_NEEDED", "restarted: the server asks to reclaim state", []record.ProblemPlace{record.InServer}},
}

// The flags of state that the server revoked, and of callbacks that do not arrive.
const (
	stateRevoked = 0x008 | 0x010 | 0x020 | 0x040
	noCallbacks  = 0x001 | 0x200 | 0x400
)

var anySide = []record.ProblemPlace{record.InClient, record.InNetwork, record.InServer}

// The limits of what is remembered of promises, and the time after which a COPY is late, in nanoseconds.
const (
	maxPromises = 256 // pairs of hosts
	maxCopies   = 64  // of each
	copyLate    = int64(10e9)
)

// promised notes what a server promised to a client.
func (f *facts) promised(r *record.Transaction) {
	key := pairOf(r)
	s := f.promises[key]
	if s == nil && (r.CopyPromised || r.SequenceFlags != 0) {
		s = entry(&f.promises, key, maxPromises)
	}
	if s == nil {
		return
	}
	switch operation := r.Operation.Or(""); {
	case r.Direction == record.Backward:
		if operation == "CB_OFFLOAD" && r.Call != nil && len(s.copies) > 0 {
			if ns := r.Call.Time.Sub(s.copies[0].at); ns >= copyLate {
				s.late, s.worst = s.late+1, max(s.worst, ns)
			}
			s.copies = s.copies[1:]
		}
		return
	case r.Reply == nil:
		return
	case operation == "OFFLOAD_STATUS" && r.Succeeded():
		for i := range s.copies {
			s.copies[i].asked = r.Reply.Time
		}
	case operation == "OFFLOAD_CANCEL" && len(s.copies) > 0:
		s.copies = s.copies[1:]
	}
	if r.CopyPromised && len(s.copies) < maxCopies {
		s.copies = append(s.copies, copied{at: r.Reply.Time, packet: r.Reply.First()})
	}
	if len(r.Operations) == 0 || r.Operations[0] != "SEQUENCE" || r.Status != record.Complete || r.RPCFailed() {
		return
	}
	s.last = max(s.last, r.Reply.Time)
	for i := range s.status {
		if uint32(r.SequenceFlags)&statusTexts[i].flag == 0 {
			continue
		}
		x := &s.status[i]
		if x.replies == 0 || r.Reply.Time < x.first {
			x.first, x.packet = r.Reply.Time, r.Reply.First()
		}
		x.last = max(x.last, r.Reply.Time)
		x.replies++
	}
}

// promiseBroken finds asynchronous COPYs that a server never completed, and what it reports to be wrong with callbacks and state.
func promiseBroken(d *diagnosis) {
	for _, key := range sortedKeys(d.promises) {
		s := d.promises[key]
		broken := d.neverCompleted(key, s)
		for i, x := range s.status {
			beside := broken != nil && statusTexts[i].flag&noCallbacks != 0
			if x.replies == 0 || x.last.Sub(x.first) < 1e9 && !beside {
				continue // servers report it for a moment after mounting
			}
			p := d.begin(record.Note, statusTexts[i].places...)
			p.about(key)
			p.Headline = statusTexts[i].says
			p.Effect = fmt.Sprintf("%s of %s, %s", number(x.replies, "Reply"), statusTexts[i].name, d.span(x.first, x.last))
			p.proof(x.packet, statusTexts[i].name)
			p.during(x.first, x.last)
			p.Command = []string{"--top", "20", "-Y", "sequence_flags > 0"}
			if beside {
				p.Severity, p.beside = record.Warning, []*problem{broken}
			}
			if x.last == s.last {
				p.Severity, p.Ongoing = record.Warning, true
				if statusTexts[i].flag&stateRevoked != 0 {
					p.longer = x.last.Sub(x.first) // the client works without its state
				}
			}
		}
	}
}

// neverCompleted makes a problem of the COPYs of a server that were not completed, and returns it unless they were only late.
func (d *diagnosis) neverCompleted(key pair, s *promises) *problem {
	backchannel := slices.ContainsFunc(d.connections, func(c *connection) bool {
		return c.pair == key && d.lacks(c)
	})
	var open []copied
	for _, c := range s.copies {
		if d.last.Sub(max(c.at, c.asked)) >= copyLate && !backchannel {
			open = append(open, c)
		}
	}
	switch {
	case len(open) > 0:
		p := d.begin(record.Warning, record.InNetwork, record.InServer)
		p.about(key)
		p.Headline = fmt.Sprintf("never completed a COPY of %s (no CB_OFFLOAD)", field.Brief(d.last.Sub(open[0].at)))
		if len(open) > 1 {
			p.Headline = fmt.Sprintf("never completed %s, the oldest of %s (no CB_OFFLOAD)", number(len(open), "COPY"), field.Brief(d.last.Sub(open[0].at)))
		}
		p.Effect = "the application waits to the end of the capture"
		p.lost, p.Ongoing = int64(len(open)), true
		for _, c := range open {
			p.proof(c.packet, "COPY answered as asynchronous")
			p.blocks(c.at, d.last)
			p.during(c.at, d.last)
		}
		p.Command = []string{"--top", "20", "-Y", "operation == COPY"}
		return p
	case s.late > 0:
		p := d.begin(record.Note, record.InServer)
		p.about(key)
		p.Headline = fmt.Sprintf("completed %s after up to %s", number(int64(s.late), "COPY"), field.Brief(s.worst))
		p.Command = []string{"--top", "20", "-Y", "operation == CB_OFFLOAD"}
	}
	return nil
}

// told has the rules whose notes other kinds count.
var told = map[string]bool{"capture-incomplete": true, "congestion": true, "memory-limit-reached": true}

// quirks finds what is unusual and harms nobody: the notes of rules, and connection requests that were rejected without harm.
func quirks(d *diagnosis) {
	for _, n := range d.notes {
		if told[n.first.Rule] {
			continue
		}
		places := placeOf(n.first.AtFault)
		if d.gap != nil && n.first.Rule == "reply-without-call" {
			places = append(places, record.InCapture)
		}
		p := d.begin(record.Note, places...)
		p.Headline = cmp.Or(deeds[n.first.Rule], n.first.Rule+" applies") + " " + times(n.count)
		p.proof(n.first.ref(), fact(&n.first))
		p.rules[n.first.Rule] = n.count
		p.about(pair{n.first.Client.Or(""), n.first.Server.Or("")})
		p.during(n.first.Time.Or(0), n.first.Time.Or(0))
		p.Command = checks(n.first.Rule)
	}
	servers := map[string][]*connection{}
	for _, c := range d.connections {
		if server := c.server; c.rejected() && c.by.free() {
			servers[server] = append(servers[server], c)
		}
	}
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		free := servers[server]
		p := d.begin(record.Note, record.InServer)
		p.Headline = "rejected " + number(len(free), "connection")
		for _, c := range free {
			p.ends(d, c)
			p.during(c.First, c.Last)
			p.proof(refOf(c), "rejected")
		}
		p.Command = []string{"connections"}
	}
}
