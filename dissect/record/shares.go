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
func (Place) Values() []string { return wordsOf(AtClient, AtServer, Between, AtBothEnds, PlaceUnknown) }

// Position is where a capture was taken: at the host with an address or, if Address is not valid, at a place.
type Position struct {
	Place   Place // empty if it is not known
	Address netip.Addr
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
func (Side) Values() []string { return wordsOf(SideClient, SideServer, SideNetwork) }

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
	return wordsOf(ProofCallAck, ProofLaterCall, ProofTimestamp, ProofPosition, ProofBothEnds, ProofRetransmit)
}

// Shares says how much of the latency of a transaction each side took, as far as the capture proves it. The bounds hold for
// everything that can have happened; they are never estimates.
type Shares struct {
	ClientNS   Bounds  `json:"client_ns" doc:"Time that the caller's host took to respond to RDMA Reads. The caller is the client, or, for a Call in backward direction, the NFS server."`
	ServerNS   Bounds  `json:"server_ns" doc:"Time that the side that executed the Call took: its host and adapter, until it had sent the Reply."`
	NetworkNS  Bounds  `json:"network_ns" doc:"Time that packets took on their way between the hosts, with the time until lost packets were retransmitted."`
	ToServerNS Bounds  `json:"to_server_ns" doc:"Part of network_ns that the Call took to the side that executed it."`
	ToClientNS Bounds  `json:"to_client_ns" doc:"Part of network_ns on the way back to the caller."`
	StalledNS  int64   `json:"stalled_ns" doc:"Time until packets were retransmitted, and that RNR NAKs demanded, in nanoseconds, as in waits. It is not subtracted from the shares, because a host may work meanwhile."`
	BusyNS     int64   `json:"busy_ns" doc:"Time in which a sender transmitted for other transactions of the connection (head_of_line), in nanoseconds, as in waits. It is not subtracted from the shares."`
	Point      Place   `json:"point" doc:"Where the capture was taken, as far as that is known: client, server, between (at neither), both_ends (several capture points), unknown. At the server, the latency that is divided begins with the arrival of the Call and ends when the Reply was sent."`
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
	ID   string    `json:"id" doc:"Id of the sentence, whose conditions docs/causes.md lists." secret:"no"`
	Side Opt[Side] `json:"side" doc:"What took the time; null if the capture does not prove it."`
	NS   int64     `json:"ns" doc:"Time that the sentence is about, in nanoseconds: the least that it can have been if side is known, and otherwise the most."`
	Text string    `json:"text" doc:"The sentence, with further facts." secret:"sentence"`
}
