package record

import (
	"fmt"
	"strings"
	"unsafe"
)

// Endpoint is one end of a connection.
type Endpoint struct {
	Address Opt[string] `json:"address" doc:"IP address of this end, or its LID on native InfiniBand." secret:"address"`
	Name    string      `json:"name,omitzero" doc:"Name of this end; present only if the file of --hosts has its address." secret:"machine"`
	Port    Opt[uint16] `json:"port" doc:"TCP or UDP port of this end; for RoCE and InfiniBand, the port of the RDMA connection manager, which is not a UDP port."`
	QPN     Opt[Hex24]  `json:"qpn" doc:"Queue pair number of this end; null for iWARP, TCP and UDP, which have none."`
}

// Connection is a connection: a pair of queue pairs, a TCP connection, or the UDP datagrams between two ports, from its first to its
// last packet.
type Connection struct {
	CompletedAt             `json:"-"`
	Type                    string                   `json:"type" doc:"The record's type, always \"connection\"." values:"connection"`
	ID                      int                      `json:"id" doc:"Connection number: connections are counted from 0." alias:"conn,connection"`
	Transport               string                   `json:"transport" doc:"Transport protocol that carries the connection." values:"RoCEv2,RoCEv1,InfiniBand,iWARP,TCP,UDP"`
	Client                  Endpoint                 `json:"client" doc:"The end that opened the connection. NFS 4.0 has callbacks on a TCP connection that the NFS server opens: its client is the NFS client." alias:"ip.src=address"`
	Server                  Endpoint                 `json:"server" doc:"The other end." alias:"ip.dst=address"`
	ClientKnown             bool                     `json:"client_known" doc:"Whether the capture shows which end opened the connection. If it does not, client is the end whose memory was read or written first, and client and server may be the other way round."`
	Established             Opt[Time]                `json:"established" doc:"Time at which the handshake was complete; null if the handshake is not in the capture."`
	Requests                int64                    `json:"cm_requests,omitzero" doc:"Number of requests of the connection manager to open the connection, with retransmissions; present only if there were several."`
	Closed                  Opt[Time]                `json:"closed" doc:"Time at which the connection began to close; null if it was not seen to close."`
	Ended                   Opt[Ended]               `json:"ended" doc:"End of the connection, with its cause and the side that ended it; null if the connection had not ended."`
	Handshake               string                   `json:"handshake" doc:"Whether the capture contains the handshake that opened the connection: seen if it does, missed if not." values:"seen,missed"`
	ServiceID               Opt[Hex64]               `json:"service_id" doc:"Service ID that the client asked for in its connection request." alias:"infiniband.cm.req.serviceid"`
	PrivateData             PrivateDataPair          `json:"private_data" doc:"RPC-over-RDMA private data that each side sent in the handshake (RFC 8797)."`
	InlineThreshold         Opt[InlineThresholds]    `json:"inline_threshold" doc:"Longest Send that each side may transmit, in bytes; null on connections of other upper layers than RPC-over-RDMA, and on rejected ones."`
	RemoteInvalidation      Opt[bool]                `json:"remote_invalidation" doc:"Whether both sides announced support for remote invalidation; null if the handshake is not in the capture, and on connections of other upper layers than RPC-over-RDMA. Linux servers do not announce it, and use it nevertheless if the client announces it."`
	AckTimeoutNS            Opt[int64]               `json:"ack_timeout_ns" doc:"Time after which a queue pair of the connection retransmits what was not acknowledged, as the connection request announced it (Local ACK Timeout), in nanoseconds; an adapter may take up to four times as long. 0 means never; null if the request is not in the capture, and on TCP and UDP."`
	PathMTU                 Opt[int]                 `json:"path_mtu" doc:"Path MTU: the number of bytes of data in a full packet or, if the capture contains none, that which the handshake negotiated."`
	UpperLayer              string                   `json:"upper_layer" doc:"Upper-layer protocol that the connection carries: rpcrdma is RPC over RDMA, and rpc is RPC over TCP or UDP without RDMA." values:"rpcrdma,rpc,nvme,iser,smbdirect,ipoib,rping,perftest,unknown"`
	RPCs                    int64                    `json:"requests" doc:"Number of RPCs: of requests whose first Call was sent on the connection."`
	Transactions            int64                    `json:"attempts" doc:"Number of RPC transactions on the connection: of its Calls, among them those that were sent before, usually on another connection." alias:"attempts"`
	Credits                 Opt[CreditPair]          `json:"credits" doc:"RPC-over-RDMA credits in both directions; null on connections of other upper layers."`
	Invalidation            Opt[InvalidationFigures] `json:"invalidation" doc:"Numbers about the handles that the connection's Replies invalidate; null on connections of other upper layers than RPC-over-RDMA."`
	Packets                 int64                    `json:"packets" doc:"Number of packets that belong to the connection."`
	PacketsBeforePairing    int64                    `json:"packets_before_pairing" doc:"Number of these packets that were captured before it was known which two directions form the connection; packet records have no connection for them."`
	Retransmitted           int64                    `json:"retransmitted" doc:"Number of retransmitted packets."`
	RetransmittedUnassigned int64                    `json:"retransmitted_unassigned" doc:"Number of retransmitted packets that belong to no transaction."`
	OutOfOrder              int64                    `json:"out_of_order" doc:"Number of packets that arrived after a packet with a higher sequence number."`
	NotCaptured             int64                    `json:"not_captured" doc:"Number of packets that the receiver acknowledged but that are missing from the capture."`
	Naks                    int64                    `json:"naks" doc:"Number of NAKs, not counting RNR NAKs."`
	RNRNaks                 int64                    `json:"rnr_naks" doc:"Number of receiver-not-ready (RNR) NAKs."`
	Damaged                 int64                    `json:"damaged" doc:"Number of packets that their receivers drop because their ICRC, CRC or TCP checksum is bad."`
	CongestionMarks         int64                    `json:"ce_marks" doc:"Number of packets with a congestion mark of a switch (CE)."`
	CNPs                    int64                    `json:"cnps" doc:"Number of congestion notification packets (CNP)."`
	Key                     Opt[Hex64]               `json:"connection_key" doc:"Hash of the addresses, ports or queue pair numbers, and first sequence numbers of both ends: every capture of the connection gives the same one, whatever its clock says. Null if the capture does not contain the whole handshake."`
	Path                    ConnectionPath           `json:"path" doc:"What the packets show about their way: round trips, packets that came late or again, where the capture was taken, and congestion."`
	First                   Time                     `json:"first" doc:"Time of the connection's first packet."`
	Last                    Time                     `json:"last" doc:"Time of the connection's last packet."`

	// Selected counts the packets in the time that the option Window of package dissect selects; it is unknown without this
	// option.
	Selected Opt[PacketCounts] `json:"-"`
}

// Counts returns Selected or, if it is unknown, the numbers of all packets.
func (r *Connection) Counts() PacketCounts {
	return r.Selected.Or(PacketCounts{
		Packets: r.Packets, Retransmitted: r.Retransmitted, OutOfOrder: r.OutOfOrder, NotCaptured: r.NotCaptured, Naks: r.Naks, RNRNaks: r.RNRNaks,
		Damaged: r.Damaged, CongestionMarks: r.CongestionMarks, CNPs: r.CNPs,
	})
}

// PacketCounts counts the packets of a connection in a span of time.
type PacketCounts struct {
	Packets, Retransmitted, OutOfOrder, NotCaptured, Naks, RNRNaks, Damaged, CongestionMarks, CNPs int64 // as in [Connection]
}

// AddSince adds the packets that were counted between two states of the same counters.
func (c *PacketCounts) AddSince(before, now *PacketCounts) {
	c.Packets += now.Packets - before.Packets
	c.Retransmitted += now.Retransmitted - before.Retransmitted
	c.OutOfOrder += now.OutOfOrder - before.OutOfOrder
	c.NotCaptured += now.NotCaptured - before.NotCaptured
	c.Naks += now.Naks - before.Naks
	c.RNRNaks += now.RNRNaks - before.RNRNaks
	c.Damaged += now.Damaged - before.Damaged
	c.CongestionMarks += now.CongestionMarks - before.CongestionMarks
	c.CNPs += now.CNPs - before.CNPs
}

// Ending is the cause of the end of a connection.
type Ending string

// The causes.
const (
	EndDisconnect Ending = "disconnect"        // a DREQ, or a FIN from both sides
	EndReset      Ending = "reset"             // an RST
	EndNak        Ending = "nak"               // a NAK that ends the connection
	EndTerminate  Ending = "terminate"         // a Terminate
	EndRejected   Ending = "rejected"          // a REJ, or an MPA reply that rejects the connection
	EndRetries    Ending = "retries_exhausted" // one side closed the connection after retransmissions that were never acknowledged
	EndReused     Ending = "queue_pair_reused" // the queue pair was used for another connection
	EndSilence    Ending = "silence"           // retransmissions were never acknowledged, up to the end of the capture
)

// Values returns all causes.
func (Ending) Values() []string {
	return Words(EndDisconnect, EndReset, EndNak, EndTerminate, EndRejected, EndRetries, EndReused, EndSilence)
}

// EndOfCalls returns the time until which the Calls of the connection that have no Reply are outstanding, and the memory
// that they exposed is exposed: the time at which the connection began to close or, if it was not seen to close, the time
// of its last packet.
func (c *Connection) EndOfCalls() Time { return min(c.Closed.Or(c.Last), c.Last) }

// State returns how the connection ended, or "open" if the capture does not show
// that it ended.
func (c *Connection) State() string {
	if end, ended := c.Ended.Get(); ended {
		return string(end.How)
	}
	return "open"
}

// endWords are the causes in one word.
var endWords = map[Ending]string{
	EndDisconnect: "closed", EndReset: "reset", EndNak: "NAK", EndTerminate: "terminate", EndRejected: "rejected", EndRetries: "retries", EndReused: "reused", EndSilence: "silent",
}

// EndWords returns the side that ended the connection, if it is known, and how, in a word each: "client NAK".
func (c *Connection) EndWords() string {
	end, ended := c.Ended.Get()
	if !ended {
		return "open"
	}
	return strings.TrimSpace(string(end.By.Or("")) + " " + endWords[end.How])
}

// Ended describes the end of a connection: the side that ended it, the cause, and the packet.
type Ended struct {
	By               Opt[End]    `json:"by" doc:"The side that ended the connection; null if the capture does not show it."`
	How              Ending      `json:"how" doc:"Cause of the connection's end: disconnect (a DREQ, or a FIN from both sides), reset (an RST), nak (a NAK that ends the connection), terminate (a Terminate), rejected (a REJ, or an MPA reply that rejects the connection), retries_exhausted (one side closed the connection after retransmissions that were never acknowledged), queue_pair_reused (the queue pair was used for another connection), silence (retransmissions were never acknowledged, up to the end of the capture)."`
	Packet           Opt[int64]  `json:"packet" doc:"Packet number: the packet that shows the end."`
	Point            string      `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	After            Opt[After]  `json:"after" doc:"What went wrong on the connection last, before the packet that ended it; null if nothing did."`
	Reason           Opt[string] `json:"reason" doc:"Reason that a NAK, Terminate or rejection states." secret:"no"`
	Retransmissions  Opt[int64]  `json:"retransmissions" doc:"Number of retransmissions of the request that was never acknowledged."`
	OutstandingCalls int64       `json:"outstanding_calls" doc:"Number of Calls that were outstanding at the end and never got a Reply that was accepted."`
	NotAccepted      int64       `json:"replies_not_accepted" doc:"Number of these Calls whose Reply is in the capture, but was not accepted; the others were in flight at the end."`
	XIDs             []Hex32     `json:"xids" doc:"XIDs of the first few outstanding Calls; null if there were none."`
}

// Trouble is something that goes wrong on a connection before it ends.
type Trouble string

// The kinds of trouble.
const (
	TroubleNak     Trouble = "nak"     // a NAK of a PSN sequence error
	TroubleRNR     Trouble = "rnr_nak" // a receiver had no buffer
	TroubleTimeout Trouble = "timeout" // a sender retransmitted because its timer expired
	TroubleGap     Trouble = "gap"     // a sender retransmitted because of a gap that its peer showed without a NAK
	TroubleUnknown Trouble = "unknown" // a sender retransmitted, and the capture does not show why
)

// Values returns all kinds.
func (Trouble) Values() []string {
	return Words(TroubleNak, TroubleRNR, TroubleTimeout, TroubleGap, TroubleUnknown)
}

// After is what went wrong on a connection last before it ended.
type After struct {
	Event     Trouble   `json:"event" doc:"What went wrong: nak (a NAK of a PSN sequence error), rnr_nak (a receiver had no buffer), timeout (a sender retransmitted because its timer expired), gap (a sender retransmitted because of a gap that its peer showed), unknown (a sender retransmitted for a reason that the capture does not show)."`
	Packet    int64     `json:"packet" doc:"Packet number: the NAK, or the first packet that was retransmitted."`
	Point     string    `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	Time      Time      `json:"time" doc:"Time of this packet."`
	Recovered Opt[bool] `json:"recovered" doc:"Whether the other side accepted afterwards what had been refused or retransmitted; null if the capture does not show it."`
}

// CallsAtEnd says how many Calls were in flight when connections ended, and how many had a Reply that was not accepted. These are
// a part of the outstanding Calls. A finding of connection-lost counts the Calls in flight.
func CallsAtEnd(outstanding, notAccepted int64) string {
	switch inFlight := outstanding - notAccepted; {
	case notAccepted == 0:
		return Plural(inFlight, "Call") + " in flight"
	case inFlight == 0:
		return Plural(notAccepted, "Call") + " whose Reply was not accepted"
	default:
		return fmt.Sprintf("%s in flight and %d whose Reply was not accepted", Plural(inFlight, "Call"), notAccepted)
	}
}

// Clone returns a copy that stays valid after the handler has returned.
func (r *Connection) Clone() *Connection {
	c := *r
	c.PrivateData = PrivateDataPair{clonePointer(r.PrivateData.Client), clonePointer(r.PrivateData.Server)}
	return &c
}

// CloneBytes returns the number of bytes of memory that a Clone takes.
func (r *Connection) CloneBytes() int {
	end, _ := r.Ended.Get()
	return int(unsafe.Sizeof(*r)+2*unsafe.Sizeof(PrivateData{})) + 4*len(end.XIDs)
}

// PrivateDataPair is the private data of both sides (RFC 8797).
type PrivateDataPair struct {
	Client *PrivateData `json:"client" doc:"Private data that the client sent; null if it sent none that is usable."`
	Server *PrivateData `json:"server" doc:"Private data that the server sent; null if it sent none that is usable."`
}

// PrivateData is the RPC-over-RDMA private data of one side (RFC 8797 s.4).
type PrivateData struct {
	Offset             int   `json:"offset" doc:"Position of the RFC 8797 message in the consumer's private data, in bytes."`
	Version            uint8 `json:"version" doc:"Version of the private data format."`
	RemoteInvalidation bool  `json:"remote_invalidation" doc:"Whether this side supports remote invalidation (the R bit)."`
	SendSize           int   `json:"send_size" doc:"Longest Send that this side transmits, in bytes."`
	ReceiveSize        int   `json:"receive_size" doc:"Longest Send that this side can receive, in bytes."`
}

// InlineThresholds are the inline thresholds that apply to the connection.
type InlineThresholds struct {
	ClientToServer int    `json:"client_to_server" doc:"Longest Send from the client to the server, in bytes."`
	ServerToClient int    `json:"server_to_client" doc:"Longest Send from the server to the client, in bytes."`
	Source         string `json:"source" doc:"Whether the thresholds come from private data or are the defaults." values:"private_data,default"`
}

// CreditPair holds the credits of both directions.
type CreditPair struct {
	Forward  Credits `json:"forward" doc:"Credits for the client's Calls."`
	Backward Credits `json:"backward" doc:"Credits for the server's Calls (backward direction)."`
}

// Credits holds the credits of one direction.
type Credits struct {
	Requested    Opt[uint32] `json:"requested" doc:"Number of credits that the latest Call requested."`
	Granted      Opt[uint32] `json:"granted" doc:"Number of credits that the latest Reply granted."`
	PeakInFlight Opt[int]    `json:"peak_in_flight" doc:"Largest number of Calls that were outstanding at once; null if the capture does not prove it, for example because it may lack a Reply."`

	Usage Opt[CreditUsage] `json:"usage" doc:"For how long Calls were in flight, and all credits in use; null as peak_in_flight, and without credits."`
}

// CreditUsage says for how long Calls of a side were in flight, and for how long as many as credits were granted.
type CreditUsage struct {
	InFlightNS int64 `json:"in_flight_ns" doc:"Time in which at least one Call was in flight, in nanoseconds."`
	AllInUse   int64 `json:"all_in_use" doc:"Number of times that all granted credits came into use."`
	AllInUseNS int64 `json:"all_in_use_ns" doc:"Time in which all granted credits were in use, in nanoseconds: each time from the Call that took the last credit to the next Reply, or to the end of the connection."`
	LongestNS  int64 `json:"longest_ns" doc:"Longest of these times, in nanoseconds."`
	Followed   int64 `json:"calls_after_credit" doc:"Number of these times after which the next Call was sent within 1 ms of the Reply that freed a credit. Such a Call may have waited for the credit, which no capture shows."`
}

// InvalidationStyle is the side that chooses which handle a Reply invalidates
// (draft-cel-nfsv4-reminv-design s.2.3).
type InvalidationStyle string

// The styles.
const (
	InvalidationNone InvalidationStyle = "none"
	RespondersChoice InvalidationStyle = "responder"
	RequestersChoice InvalidationStyle = "requester"
	FixedProtocol    InvalidationStyle = "fixed"
)

// Values returns all styles.
func (InvalidationStyle) Values() []string {
	return Words(InvalidationNone, RespondersChoice, RequestersChoice, FixedProtocol)
}

// HandleChoice is the handle of a Call that a responder chooses to invalidate.
type HandleChoice string

// The choices.
const (
	ChoiceOnly    HandleChoice = "only"    // no Call had more than one handle
	ChoiceSingle  HandleChoice = "single"  // the responder invalidates only if the Call has one handle
	ChoiceFirst   HandleChoice = "first"   // the first in the order of the chunk lists
	ChoiceLast    HandleChoice = "last"    // the last in the order of the chunk lists
	ChoiceLargest HandleChoice = "largest" // the handle of the segment with the most bytes
	ChoiceMixed   HandleChoice = "mixed"   // no choice fits all Replies
)

// Values returns all choices.
func (HandleChoice) Values() []string {
	return Words(ChoiceOnly, ChoiceSingle, ChoiceFirst, ChoiceLast, ChoiceLargest, ChoiceMixed)
}

// InvalidationFigures counts how the Replies of a connection invalidate handles, in both
// directions.
type InvalidationFigures struct {
	Style                    InvalidationStyle `json:"style" doc:"The side that chooses which handle a Reply invalidates; fixed if every Reply invalidates the only handle of its Call, or the Read handle if the Call exposes Write handles, too, as a protocol may prescribe."`
	HandleChoice             Opt[HandleChoice] `json:"handle_choice" doc:"Handle of a Call that the responder chooses to invalidate: only (no Call had more than one handle), single (the responder invalidates only if the Call has one handle), first or last (in the order of the chunk lists), largest (the handle of the segment with the most bytes), mixed (no choice fits all Replies); null if the responder does not choose."`
	ChunkReplies             int64             `json:"chunk_replies" doc:"Number of Replies to Calls that exposed handles."`
	InvalidatingReplies      int64             `json:"invalidating_replies" doc:"Number of Replies that answered a Call with exposed handles and were sent With Invalidate."`
	ForeignReadChunkHandles  int64             `json:"foreign_read_chunk_handles" doc:"Number of Replies, with or without chunks, that invalidated a handle from another RPC's Read chunk."`
	LocalInvalidations       int64             `json:"local_invalidations" doc:"Number of handles that the requester has to invalidate itself, because no Reply did. A handle that is registered persistently is counted once."`
	MultiHandleReplies       int64             `json:"multi_handle_replies" doc:"Number of Replies whose Calls exposed more than one handle, so that one invalidation was not enough."`
	MultiHandleInvalidations int64             `json:"multi_handle_invalidations" doc:"Number of Calls of which Replies invalidated more than one handle."`
	MixedRegistrationCalls   int64             `json:"mixed_registration_calls" doc:"Number of Calls that exposed both persistently and dynamically registered handles. Their requester cannot leave the choice to the responder."`
	MixedDirectionCalls      int64             `json:"mixed_direction_calls" doc:"Number of Calls that exposed handles both for reading and for writing."`
}
