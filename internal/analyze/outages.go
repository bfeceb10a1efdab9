package analyze

import (
	"cmp"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// How many connections of a mount were open at the same time, and when a lost one left the client without any.

// Outage is a time in which a client had no connection to a server, after it had lost one.
type Outage struct {
	From             record.Time             `json:"from" doc:"Time at which the connection began to close or, if the capture does not show that, time of its last packet."`
	To               record.Opt[record.Time] `json:"to" doc:"Time at which the next connection was established; null if there was none up to the end of the capture."`
	NS               record.Opt[int64]       `json:"ns" doc:"Time between the two, in nanoseconds."`
	AtMost           bool                    `json:"at_most" doc:"Whether the time is an upper bound, because the handshake of the next connection is not in the capture: to is the time of its first packet."`
	Connection       int                     `json:"connection" doc:"Connection number: the connection that was lost."`
	LastReply        record.Opt[record.Time] `json:"last_reply" doc:"Time at which the last NFS RPC on the connection that was lost was answered; null if it is not known."`
	Next             record.Opt[int]         `json:"next_connection" doc:"Connection number: the next connection; null if there was none."`
	How              record.Ending           `json:"how" doc:"Cause of the end of the connection that was lost."`
	By               record.Opt[record.End]  `json:"by" doc:"The side that ended the connection that was lost; null if the capture does not show it."`
	OutstandingCalls int64                   `json:"outstanding_calls" doc:"Number of Calls that were outstanding at its end and never got a Reply that was accepted."`
	NotAccepted      int64                   `json:"replies_not_accepted" doc:"Number of these Calls whose Reply is in the capture, but was not accepted."`
	Rejected         int                     `json:"rejected" doc:"Number of connections that the server rejected meanwhile."`
	Unanswered       int                     `json:"unanswered" doc:"Number of connection requests that got no answer in the capture meanwhile."`
}

// lifetime is the time of a connection, or of an attempt to open one.
type lifetime struct {
	client, server string // addresses, and the transport
	port           uint16 // of the server
	mount          *Mounted
	id             int
	from, to       record.Time
	seen           bool // its handshake is in the capture
	lost           bool
	end            record.Ended
	rejected       bool
	unanswered     bool
}

// lifetimeOf returns the lifetime of a connection that belongs to a mount, or to none.
func lifetimeOf(r *record.Connection, mount *Mounted) lifetime {
	end, ended := r.Ended.Get()
	end.XIDs = nil
	x := lifetime{
		client: r.Client.Address.Or(""), server: r.Server.Address.Or("") + " " + r.Transport, port: r.Server.Port.Or(0), mount: mount, id: r.ID,
		from: r.Established.Or(r.First), to: r.Closed.Or(r.Last), seen: r.Established.Known(), end: end,
	}
	x.rejected = ended && end.How == record.EndRejected
	x.unanswered = !ended && !r.Established.Known() && r.Handshake == "seen" && r.Transactions == 0
	// If packets are missing, the Replies of outstanding Calls may be among them.
	orderly := end.How == record.EndDisconnect && (end.OutstandingCalls == 0 || r.NotCaptured > 0) && end.By.Or(record.Client) == record.Client
	x.lost = ended && !x.rejected && !orderly
	return x
}

// sameWay reports whether two connections are between the same hosts and the same port of the server.
func (x *lifetime) sameWay(y *lifetime) bool {
	return x.client == y.client && x.server == y.server && x.port == y.port
}

// atOnce returns the largest number of connections of a mount that were open at the same time.
func atOnce(list []lifetime, mount *Mounted) (most int) {
	for i := range list {
		n := 0
		for j := range list {
			if list[i].mount == mount && list[j].mount == mount && list[j].from <= list[i].from && list[i].from < list[j].to {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// outagesOf returns the times in which a mount had no connection after one was lost, in order.
func outagesOf(list []lifetime, mount *Mounted) (all []Outage) {
	for i := range list {
		x := &list[i]
		if x.mount != mount || !x.lost || len(all) == maxOutages {
			continue
		}
		var next *lifetime
		open, attempts := false, []*lifetime{}
		for j := range list {
			y := &list[j]
			switch {
			case j == i || !x.sameWay(y) || y.mount != nil && y.mount != mount:
			case y.rejected || y.unanswered:
				attempts = append(attempts, y)
			case y.from <= x.to && y.to > x.to:
				open = true
			case y.from > x.to && (next == nil || y.from < next.from):
				next = y
			}
		}
		if open {
			continue
		}
		o := Outage{From: x.to, Connection: x.id, How: x.end.How, By: x.end.By, OutstandingCalls: x.end.OutstandingCalls, NotAccepted: x.end.NotAccepted}
		if last := mount.conns[x.id]; last > 0 {
			o.LastReply = record.Some(last)
		}
		if next != nil {
			o.To, o.NS, o.Next, o.AtMost = record.Some(next.from), record.Some(next.from.Sub(x.to)), record.Some(next.id), !next.seen
		}
		for _, y := range attempts {
			if y.from < x.to || next != nil && y.from > next.from {
				continue
			}
			if y.rejected {
				o.Rejected++
			} else {
				o.Unanswered++
			}
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Outage) int { return cmp.Compare(a.From, b.From) })
	return all
}

// maxOutages limits the outages of a mount.
const maxOutages = 64
