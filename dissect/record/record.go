// Package record defines the results of a dissection: packets, connections, transactions,
// findings and a summary. Everything that rdmadump prints is one of these records, or a sum
// of them.
//
// Records are plain values; a value that may be unknown is an [Opt]. A record is valid until
// the handler that gets it returns, because its slices are used again. Clone returns a copy
// that stays valid.
//
// The tags of a field are the only place that describes it: json is its name, doc its
// meaning, and alias the other names that filters accept, such as Wireshark's. The tag secret says
// whom or what a text identifies; see [Secret]. JSON names are a contract: names may be added, but
// not changed. Schemas and lists of fields are made from these tags.
package record

import "slices"

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the protocol was violated, or an RPC failed because of the protocol or the transport
	Warning Severity = "warning" // a risk, a recommendation that was not followed, or lost performance
	Note    Severity = "note"    // worth knowing; it harms nobody
)

// Severities lists all severities, the most severe first.
var Severities = [...]Severity{Error, Warning, Note}

// Rank returns 0 for the most severe severity, a higher number for a less severe one, and -1
// for an unknown one.
func (s Severity) Rank() int { return slices.Index(Severities[:], s) }

// CompletedAt holds the packet with which a record became complete, so that nothing later
// could change it. The records of one capture can be sorted by it, even if several
// dissectors read its connections. It also holds the time of the capture's first packet.
type CompletedAt struct {
	at    Stamp
	start Time
}

// Complete sets the packet with which the record became complete, and the time of the capture's
// first packet.
func (r *CompletedAt) Complete(at Stamp, start Time) { r.at, r.start = at, start }

// CaptureStart returns the time of the capture's first packet. It is 0 if the record is not
// complete.
func (r *CompletedAt) CaptureStart() Time { return r.start }

// Completed returns the packet with which the record became complete. Its number is 0 if the
// record is not complete.
func (r *CompletedAt) Completed() Stamp { return r.at }

// Finding is the violation of a rule.
type Finding struct {
	CompletedAt `json:"-"`
	Type        string      `json:"type" doc:"The record's type, always \"finding\"." values:"finding"`
	Rule        string      `json:"rule" doc:"Stable id of the rule." secret:"no"`
	Severity    Severity    `json:"severity" doc:"Severity of the finding: error (the protocol was violated, or an RPC failed because of the protocol or the transport), warning (a risk, a recommendation that was not followed, or lost performance), note (worth knowing; it harms nobody)."`
	Section     string      `json:"section" doc:"Document and section that state the rule." secret:"no"`
	AtFault     Opt[End]    `json:"at_fault" doc:"The side that the finding is attributed to; null if neither side is at fault, or if the capture does not prove which side is."`
	Message     string      `json:"message" doc:"Description of the finding in one sentence." secret:"no"`
	Connection  Opt[int]    `json:"connection" doc:"Connection number: the connection that the finding is about." alias:"conn"`
	Client      Opt[string] `json:"client" doc:"Address of the connection's client; null if the finding is about no connection, or if the capture does not show it." secret:"address"`
	Server      Opt[string] `json:"server" doc:"Address of the connection's server; null if the finding is about no connection, or if the capture does not show it." secret:"address"`
	ClientName  string      `json:"client_name,omitzero" doc:"Name of the client; present only if the file of --hosts has its address." secret:"machine"`
	ServerName  string      `json:"server_name,omitzero" doc:"Name of the server; present only if the file of --hosts has its address." secret:"machine"`
	XID         Opt[Hex32]  `json:"xid" doc:"XID of the RPC that the finding is about." alias:"rpcordma.xid,rpc.xid"`
	Transaction Opt[int64]  `json:"transaction" doc:"Id of the transaction that the finding is about: that of the RPC with this XID; null if the finding is about no transaction. A later RPC may have the same XID."`
	Operation   Opt[string] `json:"operation" doc:"Program and operation of the RPC, such as NFS4 WRITE, as far as they were known when the finding was made." secret:"no"`
	Packet      Opt[int64]  `json:"packet" doc:"Packet number: the packet that shows the finding." alias:"frame.number"`
	Point       string      `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
	Time        Opt[Time]   `json:"time" doc:"Time of the packet that shows the finding." alias:"frame.time"`

	Key Opt[Hex64] `json:"-"` // that of the record of the connection
}

// Clone returns a copy that stays valid after the handler has returned.
func (r *Finding) Clone() *Finding { c := *r; return &c }

// Unrecorded is a time of which no file has packets.
type Unrecorded struct {
	From Time `json:"from" doc:"Time of the last packet before it."`
	To   Time `json:"to" doc:"Time of the first packet after it."`
}

// Summary is the last record. It counts the packets and records of the capture, and the
// packets that could not be read.
type Summary struct {
	Type                string             `json:"type" doc:"The record's type, always \"summary\"." values:"summary"`
	Packets             int64              `json:"packets" doc:"Number of frames read."`
	Bytes               int64              `json:"bytes" doc:"Number of bytes that the frames had on the wire."`
	First               Opt[Time]          `json:"first" doc:"Time of the first packet."`
	Last                Opt[Time]          `json:"last" doc:"Time of the last packet."`
	RDMA                int64              `json:"rdma_packets" doc:"Number of packets that carry RDMA."`
	RPC                 int64              `json:"rpc_packets" doc:"Number of packets that carry RPC over TCP or UDP, without RDMA."`
	CM                  int64              `json:"cm_packets" doc:"Number of connection management datagrams."`
	Other               int64              `json:"other_packets" doc:"Number of packets of other protocols."`
	Fragments           int64              `json:"fragments" doc:"Number of IP fragments that were not read, because only the first fragment of a datagram is read."`
	Malformed           int64              `json:"malformed" doc:"Number of packets whose headers could not be decoded."`
	Truncated           int64              `json:"truncated" doc:"Number of frames that the capture holds only in part because of its snapshot length."`
	SnapshotLength      Opt[int64]         `json:"snapshot_length" doc:"Largest number of bytes that the capture holds of a frame that it truncated; null if it truncated none."`
	UnknownLink         int64              `json:"unknown_link" doc:"Number of frames with a link type that rdmadump does not read."`
	ICRCBad             int64              `json:"icrc_bad" doc:"Number of packets with a bad ICRC and FPDUs with a bad CRC, whether they belong to a connection or not."`
	ICRCBadUnassigned   int64              `json:"icrc_bad_unassigned" doc:"Number of packets with a bad ICRC that belong to no connection, because any part of them may be damaged. The rule icrc-bad does not count them."`
	CaptureDrops        uint64             `json:"capture_drops" doc:"Number of packets that the capturing program says it dropped."`
	LeftOut             []string           `json:"left_out" doc:"Names of capture points whose packets are not used, because they show the same traffic as others and their clocks cannot be compared." secret:"point"`
	PFCPauses           int64              `json:"pauses" doc:"Number of frames that pause at least one priority of a link: of priority flow control (PFC), or pause frames of Ethernet."`
	PausePorts          []PausePorts       `json:"pause_ports" doc:"Numbers of these frames by the host whose port sent them, at most 256 hosts."`
	PausedNS            Opt[Bounds]        `json:"paused_ns" doc:"Time for which links were paused, in nanoseconds: the least on links of 400 Gbit/s, and the most on links of 10 Gbit/s. Pauses that overlap count once. Null without such frames."`
	Connections         int                `json:"connections" doc:"Number of connection records."`
	Requests            int64              `json:"requests" doc:"Number of requests: of what clients asked for once, even if they sent the Call again on another connection."`
	Unanswered          int64              `json:"unanswered" doc:"Number of requests without a Reply in the capture."`
	Transactions        map[Status]int64   `json:"transactions" doc:"Number of transactions, by status."`
	Findings            map[Severity]int64 `json:"findings" doc:"Number of findings, by severity."`
	NotCaptured         int64              `json:"not_captured" doc:"Number of packets that receivers acknowledged but that are missing from the capture."`
	Evicted             map[string]int64   `json:"evicted" doc:"Number of objects that were evicted because the memory limit was reached, by kind." secret:"no"`
	NotJudged           []NotJudged        `json:"not_judged" doc:"Violations that are not reported because something is missing from the capture, by rule and gap; rdmadump check lists them as not reported."`
	TimeBackwards       int64              `json:"time_backwards" doc:"Number of packets whose time is earlier than that of the packet before."`
	TimeBackwardsNS     int64              `json:"time_backwards_ns" doc:"Largest step back in time, in nanoseconds."`
	TimeBackwardsPacket Opt[int64]         `json:"time_backwards_packet" doc:"Packet number: the first packet whose time is earlier than that of the packet before."`
	Selected            Opt[int64]         `json:"selected" doc:"Number of records of the view that the flags select; null if no flag selects any."`
	Disordered          int64              `json:"disordered" doc:"Number of packets that come after a later packet of the same sender in the input, and have an earlier time: the packets are not in the order in which they were captured."`
	Directions          Opt[string]        `json:"directions" doc:"Whether the capture contains packets of connections from both ends (both); otherwise the addresses of the only hosts whose packets it contains. Null without packets of connections." secret:"senders"`
	Silences            []Silence          `json:"silences" doc:"Times in which a host sent no packet to another one although several packets of the other one asked for an answer; at most 64. A host of which the capture has no earlier packet is not listed, because its packets are perhaps not captured."`
	Unrecorded          []Unrecorded       `json:"unrecorded,omitzero" doc:"Times between two files that are at least a minute, and longer than what was captured before, so that they may be those between two recordings, in which nothing is known; at most 64. Present only if there are any."`
	MissingFiles        []MissingFiles     `json:"missing_files" doc:"Files that are missing between two files of a ring, by the numbers in their names. Files are a ring if their names differ only in numbers and their times do not overlap."`
	OtherProtocols      []OtherProtocol    `json:"other_protocols" doc:"Packets that are in no connection and no RPC, by protocol; the one with the most packets is first. At most 64 protocols are distinguished."`
	Doubled             int64              `json:"mirror_duplicates" doc:"Number of packets that are second copies, because the capture has packets twice, as a mirror of both ports of a switch has them. They belong to no connection, and nothing else counts them."`
	Absences            []Absence          `json:"missing_packets" doc:"Times in which packets of two hosts passed that are missing from the capture, such as those of a missing file of a ring; at most 64."`
	StartsNotCaptured   int64              `json:"starts_not_captured" doc:"Number of connections whose handshake is not in the capture; UDP has no handshakes."`
	EndsNotCaptured     int64              `json:"ends_not_captured" doc:"Number of connections whose end is not in the capture; UDP has none."`
	PositionRefuted     []RefutedPosition  `json:"position_refuted" doc:"Places that --at or the capture's interface named, although the capture was not taken there: packets of that side came late. Nothing is concluded from such a place."`
	InputError          Opt[string]        `json:"input_error" doc:"Description of where and why reading the input failed; null if all of it was read." secret:"sentence"`

	EndsInPacket Opt[int64]  `json:"input_cut_at" doc:"Position in the input, in bytes, at which it ends in the middle of a packet; null if it does not."`
	EndsInFile   Opt[string] `json:"input_cut_file" doc:"Name of the file that ends in the middle of a packet, if packets of other files were read, too; otherwise null." secret:"point"`
	OneWay       int64       `json:"one_way_pairs" doc:"Number of pairs of hosts of which only one sent packets of connections that are in the capture."`

	// SelectedDamaged counts the damaged packets that belong to no connection, and SelectedPauses the packets of PFCPauses,
	// in the time that the option Window of package dissect selects. They are unknown without this option.
	SelectedDamaged Opt[int64] `json:"-"`
	SelectedPauses  Opt[int64] `json:"-"`
}

// RefutedPosition is a place at which a capture was not taken, although it seemed so.
type RefutedPosition struct {
	Place       Place  `json:"place" doc:"Place that was named: client or server."`
	How         string `json:"how" doc:"Source of the place: option (--at) or interface (the capture says which packets its computer sent)." values:"option,interface"`
	Connections int64  `json:"connections" doc:"Number of connections whose packets refute it."`
}

// PausePorts counts the frames of the ports of a host that paused a link. A port pauses the port at the other end of its link, because it cannot
// receive more.
type PausePorts struct {
	Address Opt[string] `json:"address" doc:"Address of the host; null for ports of no host that the capture shows, such as a switch's." secret:"address"`
	Frames  int64       `json:"frames" doc:"Number of frames."`
}

// MissingFiles are files of a ring of capture files that were not read.
type MissingFiles struct {
	After  string `json:"after" doc:"Name of the file after which files are missing." secret:"point"`
	Before string `json:"before" doc:"Name of the file before which files are missing." secret:"point"`
	Count  int64  `json:"count" doc:"Number of missing files."`
}

// RPCWithTLS is the Protocol of packets with encrypted RPC (RFC 9289).
const RPCWithTLS = "RPC with TLS"

// OtherProtocol counts packets of a protocol that is not analyzed.
type OtherProtocol struct {
	Protocol string `json:"protocol" doc:"Name of the protocol, such as ARP, TCP port 22, GRE with protocol 0x8949 or UD datagrams. Of two ports, that of the server is named, or the lower one if the capture does not show which it is." secret:"no"`
	Packets  int64  `json:"packets" doc:"Number of packets of this protocol."`
	First    int64  `json:"first_packet" doc:"Packet number: the first packet of this protocol."`
	Point    string `json:"first_packet_point,omitzero" doc:"Name of the capture point whose number first_packet is; present only with several capture points." secret:"point"`
	Tunnel   bool   `json:"tunnel" doc:"Whether the packets may be those of a tunnel that rdmadump did not open, so that they may carry RDMA."`

	Port Opt[uint16] `json:"port" doc:"UDP port whose datagrams look like VXLAN, for --decode-as; null for other protocols."`
}

// BothDirections is the value of [Summary.Directions] for a capture with packets of both ends.
const BothDirections = "both"

// OnlyFrom returns the addresses of the only hosts whose packets are in the capture, or nothing if packets of both ends are.
func (r *Summary) OnlyFrom() string {
	if direction := r.Directions.Or(BothDirections); direction != BothDirections {
		return direction
	}
	return ""
}

// Silence is a time in which a host sent no packet to another one, although packets asked it for an answer.
type Silence struct {
	Address   string     `json:"address" doc:"Address of the host that was silent." secret:"address"`
	Peer      string     `json:"peer" doc:"Address of the host that it did not answer." secret:"address"`
	From      Time       `json:"from" doc:"Time of the first packet that asked for an answer and got none."`
	To        Opt[Time]  `json:"to" doc:"Time of the next packet of the silent host; null if the capture contains none."`
	Packets   int64      `json:"packets" doc:"Number of packets that asked for an answer in this time."`
	Lost      Opt[int64] `json:"lost,omitzero" doc:"Number of these packets that were lost between capture points; present only with several capture points."`
	Arrived   Opt[int64] `json:"arrived,omitzero" doc:"Number of these packets that came to a capture point that may be at the silent host; present only with several capture points."`
	Last      int64      `json:"last_packet" doc:"Packet number: the last packet of the silent host before."`
	LastTime  Time       `json:"last_time" doc:"Time of this packet."`
	Point     string     `json:"last_packet_point,omitzero" doc:"Name of the capture point whose number last_packet is; present only with several capture points." secret:"point"`
	Next      Opt[int64] `json:"next_packet" doc:"Packet number: the next packet of the silent host; null if the capture contains none."`
	NextPoint string     `json:"next_packet_point,omitzero" doc:"Name of the capture point whose number next_packet is; present only with several capture points." secret:"point"`
}

// Absence is a time in which packets of two hosts passed that are missing from the capture.
type Absence struct {
	Address string     `json:"address" doc:"Address of one of the hosts." secret:"address"`
	Peer    string     `json:"peer" doc:"Address of the other host." secret:"address"`
	From    Time       `json:"from" doc:"Time after which the packets passed: that of the latest captured packet before them."`
	To      Time       `json:"to" doc:"Time before which the packets passed: that of the packet that shows that they are missing."`
	Packets Opt[int64] `json:"packets" doc:"Number of the packets, as far as sequence numbers show it; null if packets are only perhaps missing, because a connection does not end in the capture, and the next packet of the hosts belongs to a connection whose handshake is not in the capture."`
}

// NotJudged counts violations of a rule that are not reported, because the capture
// does not prove them.
type NotJudged struct {
	Rule   string     `json:"rule" doc:"Id of the rule." secret:"no"`
	Gap    string     `json:"gap" doc:"What is missing from the capture." secret:"no"`
	Count  int64      `json:"count" doc:"Number of violations that are not reported."`
	Packet Opt[int64] `json:"packet" doc:"Packet number: the packet that shows the first of them."`
	Point  string     `json:"point,omitzero" doc:"Name of the capture point whose number packet is; present only with several capture points." secret:"point"`
}
