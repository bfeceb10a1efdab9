// Package record is what comes out of a dissection: packets, connections,
// transactions, findings, and a summary. They are everything that rdmadump ever
// prints.
//
// Records are plain values; what may be unknown is an [Opt]. A record that a
// handler gets is good until the handler returns, since its slices are used
// again: Clone keeps one.
//
// A field's tags are the one place where it is described: json has its name,
// doc what it means, alias the other names that filters accept for it,
// Wireshark's among them. JSON names are a contract: new ones may be added, none
// renamed. Schemas and lists of fields are made from these tags.
package record

import "slices"

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // a MUST was broken
	Warning Severity = "warning" // a SHOULD, or a risk
	Note    Severity = "note"
)

// Severities are all of them, the worst first.
var Severities = [...]Severity{Error, Warning, Note}

// Rank is 0 for the worst, and higher for what is less bad; -1 for what is none.
func (s Severity) Rank() int { return slices.Index(Severities[:], s) }

// Released is the packet that let a record go out: the one with which, or after
// which, nothing could happen to it any more. Records of one dissection can be put
// in order by it, whoever dissected which connection.
type Released struct{ at Stamp }

// Release notes that packet.
func (r *Released) Release(at Stamp) { r.at = at }

// ReleasedAt is that packet; its number is 0 for records that nobody released.
func (r *Released) ReleasedAt() Stamp { return r.at }

// Finding is a rule that was broken.
type Finding struct {
	Released   `json:"-"`
	Type       string      `json:"type" doc:"finding"`
	Rule       string      `json:"rule" doc:"stable id of the rule"`
	Severity   Severity    `json:"severity" doc:"error: a MUST was broken; warning: a SHOULD, or a risk; note"`
	Section    string      `json:"section" doc:"of the document that says so"`
	Blames     Opt[End]    `json:"blames" doc:"which side is accused; null where neither is, or where it is not known which side is the client"`
	Message    string      `json:"message" doc:"what was wrong"`
	Connection Opt[int]    `json:"connection" doc:"number of the connection" alias:"conn"`
	XID        Opt[Hex32]  `json:"xid" doc:"of the RPC" alias:"rpcordma.xid,rpc.xid"`
	Operation  Opt[string] `json:"operation" doc:"what the RPC was, as far as it was known then: NFS3 READ, NFS4 WRITE"`
	Packet     Opt[int64]  `json:"packet" doc:"the packet that shows it" alias:"frame.number"`
	Time       Opt[Time]   `json:"time" doc:"of that packet" alias:"frame.time"`
}

// Clone is a copy that stays good when the handler has returned.
func (r *Finding) Clone() *Finding { c := *r; return &c }

// Summary is the last record: what there was, and what could not be read.
type Summary struct {
	Type                string             `json:"type" doc:"summary"`
	Packets             int64              `json:"packets" doc:"frames read"`
	Bytes               int64              `json:"bytes" doc:"of them, on the wire"`
	First               Opt[Time]          `json:"first" doc:"time of the first packet"`
	Last                Opt[Time]          `json:"last" doc:"time of the last packet"`
	RDMA                int64              `json:"rdma_packets" doc:"that carry RDMA"`
	CM                  int64              `json:"cm_packets" doc:"management datagrams"`
	Other               int64              `json:"other_packets" doc:"of other protocols"`
	Fragments           int64              `json:"fragments" doc:"IP fragments but the first, not read"`
	Malformed           int64              `json:"malformed" doc:"whose headers make no sense"`
	Cut                 int64              `json:"cut" doc:"frames captured in part"`
	UnknownLink         int64              `json:"unknown_link" doc:"frames of a link type that is not read"`
	ICRCBad             int64              `json:"icrc_bad" doc:"packets with a bad ICRC, FPDUs with a bad CRC"`
	Dropped             uint64             `json:"dropped" doc:"packets lost by the capture's own account"`
	PFCPauses           int64              `json:"pfc_pauses" doc:"The number of priority flow control (PFC) frames that pause at least one priority."`
	Connections         int                `json:"connections" doc:"records of connections"`
	Transactions        map[Status]int64   `json:"transactions" doc:"by status"`
	Findings            map[Severity]int64 `json:"findings" doc:"by severity"`
	Lost                int64              `json:"lost" doc:"packets acknowledged but not captured"`
	Limits              map[string]int64   `json:"limits_reached" doc:"what was given up for want of memory, by kind"`
	TimeBackwards       int64              `json:"time_backwards" doc:"how often times ran backwards"`
	TimeBackwardsNS     int64              `json:"time_backwards_ns" doc:"by how much at the most"`
	TimeBackwardsPacket Opt[int64]         `json:"time_backwards_packet" doc:"the first packet that is earlier than the one before it"`
	Broken              Opt[string]        `json:"broken" doc:"where the input broke off, null when it did not"`
}
