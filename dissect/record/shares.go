package record

import "net/netip"

// What a capture proves about where the latency of a transaction passed, and the sentence about it.

// Place is where a capture was taken.
type Place string

// The places. A capture is taken at a host if nothing that can lose or delay packets is between both.
const (
	AtClient     Place = "client"
	AtServer     Place = "server"
	Between      Place = "between"   // at neither host
	AtBothEnds   Place = "both_ends" // with several capture points
	PlaceUnknown Place = "unknown"
)

// Values returns all places.
func (Place) Values() []string { return Words(AtClient, AtServer, Between, AtBothEnds, PlaceUnknown) }

// Position is where a capture was taken: at the host with an address or, if Address is not valid, at a place.
type Position struct {
	Place   Place // empty if it is not known
	Address netip.Addr
}

// Of returns the place at which the packets between a client and a server were captured.
func (p Position) Of(client, server netip.Addr) Place {
	switch {
	case !p.Address.IsValid() && p.Place == "":
		return PlaceUnknown
	case !p.Address.IsValid():
		return p.Place
	case p.Address == client:
		return AtClient
	case p.Address == server:
		return AtServer
	}
	return Between
}

// Side is what took the time of a transaction.
type Side string

// The sides.
const (
	SideClient  Side = "client"
	SideServer  Side = "server"
	SideNetwork Side = "network"
)

// Values returns all sides.
func (Side) Values() []string { return Words(SideClient, SideServer, SideNetwork) }

// ProofKind is a way in which a capture proves a part of a latency.
type ProofKind string

// The ways.
const (
	ProofCallAck    ProofKind = "call_ack"
	ProofLaterCall  ProofKind = "later_call"
	ProofTimestamp  ProofKind = "tcp_timestamp"
	ProofPosition   ProofKind = "position"
	ProofBothEnds   ProofKind = "both_ends"
	ProofRetransmit ProofKind = "retransmission"
)

// Values returns all ways.
func (ProofKind) Values() []string {
	return Words(ProofCallAck, ProofLaterCall, ProofTimestamp, ProofPosition, ProofBothEnds, ProofRetransmit)
}

// Shares says how much of the latency of a transaction each side took, as far as the capture proves it. The bounds hold for
// everything that can have happened; they are never estimates.
type Shares struct {
	ClientNS   Bounds  `json:"client_ns" doc:"Time that the caller's host took to respond to RDMA Reads, in nanoseconds. The caller is the client, or, for a Call in backward direction, the NFS server."`
	ServerNS   Bounds  `json:"server_ns" doc:"Time that the side that executed the Call took: its host and adapter, until it had sent the Reply, in nanoseconds."`
	NetworkNS  Bounds  `json:"network_ns" doc:"Time that packets took on their way between the hosts, with the time until lost packets were retransmitted, in nanoseconds."`
	ToServerNS Bounds  `json:"to_server_ns" doc:"Part of network_ns on the way to the side that executed the Call: of the Call, and of the responses to RDMA Reads, in nanoseconds."`
	ToClientNS Bounds  `json:"to_client_ns" doc:"Part of network_ns on the way back to the caller, in nanoseconds."`
	StalledNS  int64   `json:"stalled_ns" doc:"Time until packets were retransmitted, and that RNR NAKs demanded, in nanoseconds, as in waits. It is not subtracted from the shares, because a host may work meanwhile."`
	BusyNS     int64   `json:"busy_ns" doc:"Time in which a sender transmitted for other transactions of the connection (head_of_line), in nanoseconds, as in waits. It is not subtracted from the shares."`
	Point      Place   `json:"position" doc:"Where the capture was taken, as far as that is known: client, server, between (at neither), both_ends (several capture points), unknown. At the server, the latency that is divided begins with the arrival of the Call and ends when the Reply was sent."`
	Proofs     []Proof `json:"proofs" doc:"What bounds the shares, apart from the times of the packets themselves."`
}

// Bounds are the least and the most that a duration can have been.
type Bounds struct {
	Min int64 `json:"min" doc:"Least time, in nanoseconds."`
	Max int64 `json:"max" doc:"Most time, in nanoseconds."`
}

// Proof is a fact that bounds the shares of a latency.
type Proof struct {
	Proof  ProofKind  `json:"proof" doc:"Kind of proof: call_ack (an acknowledgement bounds the way of the Call), later_call (the other side had a Call that came ns after this one before it answered this one: packets carry sequence numbers in the order in which they are sent), tcp_timestamp (the sender's clock in its TCP segments bounds the way back), position (the capture was taken at the host), both_ends (several capture points), retransmission (a packet was lost or damaged, or its sender retransmitted it)."`
	How    string     `json:"how,omitzero" doc:"Source of the place: option (--at: the user says so) or interface (the capture says which packets its computer sent); present only with position." values:"option,interface"`
	Packet Opt[int64] `json:"packet,omitzero" doc:"Packet number: the packet that proves it."`
	Point  string     `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	XID    Opt[Hex32] `json:"xid,omitzero" doc:"XID of the transaction whose Call came later; present only with later_call."`
	NS     Opt[int64] `json:"ns,omitzero" doc:"Bound that follows, in nanoseconds: the most that a way took or, with later_call, the time from this Call to the later one."`
}

// Find returns the proof of a kind, or nil if there is none.
func (s *Shares) Find(kind ProofKind) *Proof {
	for i := range s.Proofs {
		if s.Proofs[i].Proof == kind {
			return &s.Proofs[i]
		}
	}
	return nil
}

// Cause is what took most of the latency of a transaction, as far as the capture proves it.
type Cause struct {
	ID   string    `json:"id" doc:"Id of the sentence; docs/causes.md says what a capture has to prove for each id." secret:"no"`
	Side Opt[Side] `json:"side" doc:"What took the time; null if the capture does not prove it. The network includes the adapters of the hosts, unless there are captures at both ends."`
	NS   int64     `json:"ns" doc:"Time that the sentence is about, in nanoseconds: the least that it can have been if side is known, and otherwise the most."`
	Text string    `json:"text" doc:"The sentence, with further facts." secret:"sentence"`
}

// Meanwhile is what happened on the connection while a transaction lasted.
type Meanwhile struct {
	RoundTrips    Opt[RecentTrips] `json:"round_trips" doc:"Round trips from the caller to the other side that ended between one second before the Call and the Reply, but the latest 64 at most; null if there were none. They do not show where the time of the transaction passed."`
	CEToClient    int64            `json:"ce_to_client,omitzero" doc:"Number of packets to the client that a switch had marked (CE) before they came to the capture point, from the Call to the Reply; present only if there were any."`
	CEToServer    int64            `json:"ce_to_server,omitzero" doc:"Number of packets to the server that a switch had marked (CE) before they came to the capture point, from the Call to the Reply; present only if there were any."`
	CNPFromClient int64            `json:"cnps_from_client,omitzero" doc:"Number of congestion notification packets (CNP) of the client, from the Call to the Reply: packets on the way to the client had been marked. Present only if there were any."`
	CNPFromServer int64            `json:"cnps_from_server,omitzero" doc:"Number of congestion notification packets (CNP) of the server, from the Call to the Reply: packets on the way to the server had been marked. Present only if there were any."`
	Pauses        int64            `json:"pauses,omitzero" doc:"Number of frames that paused a link (priority flow control, or pause frames of Ethernet) from the Call to the Reply. The link is the one at the capture point. Present only if there were any."`
	PausePort     Opt[PausePort]   `json:"pause_port,omitzero" doc:"Port that sent these frames: client or server (the port of this host, which could not receive more), other (a port that is not known to be that of one of them, such as a switch's), or several of them; present only with such frames."`
	PausedNS      Opt[Bounds]      `json:"paused_ns,omitzero" doc:"Time from the Call to the Reply for which a link was paused, in nanoseconds; present only if it was. The least time is that of a link of 400 Gbit/s, the most that of one of 10 Gbit/s, because the frames have the times in units of the link's speed."`
	ECN           ECN              `json:"ecn" doc:"Whether the packets of the connection can be marked: on (those of both sides), partly, or off. Without ECN, the absence of marks proves nothing."`
}

// PausePort is whose port sent frames that paused a link.
type PausePort string

// The ports.
const (
	PausedByClient  PausePort = "client"
	PausedByServer  PausePort = "server"
	PausedByOther   PausePort = "other"
	PausedBySeveral PausePort = "several"
)

// Values returns all ports.
func (PausePort) Values() []string {
	return Words(PausedByClient, PausedByServer, PausedByOther, PausedBySeveral)
}

// Signal is a packet that shows congestion. It is no record of its own.
type Signal struct {
	Time       Time
	Kind       SignalKind
	Connection Opt[int] // unknown for frames that pause a link, and before the connection has an ID
}

// SignalKind is what a Signal is.
type SignalKind uint8

// The kinds.
const (
	SignalCE    SignalKind = iota // a packet of a connection that a switch marked
	SignalCNP                     // a congestion notification packet
	SignalPause                   // a frame that pauses a link
)

// RecentTrips are round trips before the end of a transaction.
type RecentTrips struct {
	Count           int64 `json:"count" doc:"Number of round trips."`
	MinNS           int64 `json:"min_ns" doc:"Shortest round trip, in nanoseconds."`
	MaxNS           int64 `json:"max_ns" doc:"Longest round trip, in nanoseconds."`
	LastBeforeEndNS int64 `json:"last_before_end_ns" doc:"Time from the end of the latest round trip to the Reply, in nanoseconds."`
}

// ECN reports whether switches can mark the packets of a connection (RFC 3168).
type ECN string

// The values of ECN.
const (
	ECNOn     ECN = "on"
	ECNPartly ECN = "partly"
	ECNOff    ECN = "off"
)

// Values returns all values.
func (ECN) Values() []string { return Words(ECNOn, ECNPartly, ECNOff) }

// Congested reports whether the meanwhile of a transaction has signals of congestion.
func (m *Meanwhile) Congested() bool {
	return m.CEToClient+m.CEToServer+m.CNPFromClient+m.CNPFromServer > 0 || m.WasPaused()
}

// WasPaused reports whether a link was paused, perhaps by frames that came before the Call.
func (m *Meanwhile) WasPaused() bool { return m.Pauses > 0 || m.PausedNS.Or(Bounds{}).Max > 0 }

// ConnectionPath is what the packets of a connection show about their way.
type ConnectionPath struct {
	RoundTrips RoundTripPair  `json:"round_trips" doc:"Times from packets of one side to the responses of the other side, at the capture point. They are facts: they do not show where the time of a transaction passed."`
	Late       FromPair       `json:"late" doc:"Packets whose first copy was captured after later packets of the same side: they were lost or overtaken before they came to the capture point, which is then not at this side." alias:"late"`
	Repeated   FromPair       `json:"repeated" doc:"Packets that had passed the capture point, and came again."`
	Point      PointFacts     `json:"position" doc:"Where the capture was taken, as far as it is known."`
	Congestion PathCongestion `json:"congestion" doc:"Signals of congestion."`

	RetransmittedFrom FromPair `json:"retransmitted_from" doc:"Senders of the retransmitted packets."`
	Bursts            int64    `json:"bursts" doc:"Number of separate events of retransmission: packets of one sender that were retransmitted together, because of one timeout, NAK or gap, are one event."`
}

// RoundTripPair has the round trips to both sides.
type RoundTripPair struct {
	ToServer Opt[RoundTrips] `json:"to_server" doc:"Round trips of the client's requests to the server; null if none was measured."`
	ToClient Opt[RoundTrips] `json:"to_client" doc:"Round trips of the server's requests to the client; null if none was measured."`
}

// RoundTrips is a distribution of round trips.
type RoundTrips struct {
	Count     int64 `json:"count" doc:"Number of round trips: packets that were captured once, and were answered by a response with exactly their sequence number."`
	MinNS     int64 `json:"min_ns" doc:"Shortest round trip, in nanoseconds."`
	P50NS     int64 `json:"p50_ns" doc:"Time that about half of the round trips did not exceed, in nanoseconds; it may be up to 12% larger than the median."`
	P99NS     int64 `json:"p99_ns" doc:"Time that about 99% of the round trips did not exceed, in nanoseconds; it may be up to 12% larger than the percentile."`
	MaxNS     int64 `json:"max_ns" doc:"Longest round trip, in nanoseconds."`
	MaxPacket int64 `json:"max_packet" doc:"Packet number: the response that ended the longest round trip."`
}

// FromPair counts packets by their sender.
type FromPair struct {
	FromClient int64 `json:"client" doc:"Number of packets of the client."`
	FromServer int64 `json:"server" doc:"Number of packets of the server."`
}

// PointFacts says where a capture was taken.
type PointFacts struct {
	At  Opt[Place]  `json:"at" doc:"Place of the capture; null if it is not known."`
	How Opt[string] `json:"how" doc:"Source of the place: option (--at), interface (the capture says which packets its computer sent), or both_ends (several capture points); null if it is not known." values:"option,interface,both_ends" secret:"no"`

	Refuted Opt[Place] `json:"refuted" doc:"Place that the option or the interface named, although the capture was not taken there: packets of that side came late. Null if there is none."`
	NotAt   []End      `json:"not_at" doc:"Sides at which the capture was not taken, because packets of them came late."`
	Nearer  Opt[End]   `json:"nearer" doc:"Side to which round trips were at least three times shorter than to the other one, both the shortest and most of them; null if there is none. It is a hint and no proof."`
}

// PathCongestion counts signals of congestion.
type PathCongestion struct {
	ECN           ECN   `json:"ecn" doc:"Whether the packets can be marked: on (those of both sides), partly, or off. Without ECN, the absence of marks proves nothing."`
	CEToServer    int64 `json:"ce_to_server" doc:"Number of packets to the server that a switch had marked (CE) before they came to the capture point."`
	CEToClient    int64 `json:"ce_to_client" doc:"Number of packets to the client that a switch had marked (CE) before they came to the capture point."`
	CNPFromClient int64 `json:"cnps_from_client" doc:"Number of congestion notification packets (CNP) of the client: packets on the way to the client had been marked."`
	CNPFromServer int64 `json:"cnps_from_server" doc:"Number of congestion notification packets (CNP) of the server: packets on the way to the server had been marked."`
	PauseFrames   int64 `json:"pauses" doc:"Number of frames in the capture, while the connection lasted, that paused a link (priority flow control, or pause frames of Ethernet)."`
	DSCP          []int `json:"dscp" doc:"Differentiated services code points of the packets, but at most four of each side; congestion notification packets are not among them."`
}
