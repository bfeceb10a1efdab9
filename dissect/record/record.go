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
type CompletedAt struct{ at Stamp }

// Release notes that packet.
func (r *CompletedAt) Complete(at Stamp) { r.at = at }

// ReleasedAt is that packet; its number is 0 for records that nobody released.
func (r *CompletedAt) Completed() Stamp { return r.at }

// Finding is a rule that was broken.
type Finding struct {
	CompletedAt `json:"-"`
	Type        string      `json:"type" doc:"The record's type, always \"finding\"." values:"finding"`
	Rule        string      `json:"rule" doc:"Stable id of the rule."`
	Severity    Severity    `json:"severity" doc:"Severity of the finding: error for a broken MUST, warning for a broken SHOULD or a risk, note for information."`
	Section     string      `json:"section" doc:"Document and section that state the rule."`
	AtFault     Opt[End]    `json:"at_fault" doc:"The side that broke the rule; null if the capture does not prove which side did." was:"blames"`
	Message     string      `json:"message" doc:"Description of the finding in one sentence."`
	Connection  Opt[int]    `json:"connection" doc:"Number of the connection that the finding is about." alias:"conn"`
	XID         Opt[Hex32]  `json:"xid" doc:"XID of the RPC that the finding is about." alias:"rpcordma.xid,rpc.xid"`
	Operation   Opt[string] `json:"operation" doc:"Program and operation of the RPC, such as NFS4 WRITE, as far as they were known when the finding was made."`
	Packet      Opt[int64]  `json:"packet" doc:"Number of the packet that shows the finding." alias:"frame.number"`
	Time        Opt[Time]   `json:"time" doc:"Time of the packet that shows the finding." alias:"frame.time"`
}

// Clone is a copy that stays good when the handler has returned.
func (r *Finding) Clone() *Finding { c := *r; return &c }

// Summary is the last record: what there was, and what could not be read.
type Summary struct {
	Type                string             `json:"type" doc:"The record's type, always \"summary\"." values:"summary"`
	Packets             int64              `json:"packets" doc:"Number of frames read."`
	Bytes               int64              `json:"bytes" doc:"Number of bytes that the frames had on the wire."`
	First               Opt[Time]          `json:"first" doc:"Time of the first packet."`
	Last                Opt[Time]          `json:"last" doc:"Time of the last packet."`
	RDMA                int64              `json:"rdma_packets" doc:"Number of packets that carry RDMA."`
	CM                  int64              `json:"cm_packets" doc:"Number of connection management datagrams."`
	Other               int64              `json:"other_packets" doc:"Number of packets of other protocols."`
	Fragments           int64              `json:"fragments" doc:"Number of IP fragments that were not read; only first fragments are."`
	Malformed           int64              `json:"malformed" doc:"Number of packets whose headers could not be decoded."`
	Truncated           int64              `json:"truncated" doc:"Number of frames that the capture holds only in part because of its snapshot length." was:"cut"`
	UnknownLink         int64              `json:"unknown_link" doc:"Number of frames with a link type that rdmadump does not read."`
	ICRCBad             int64              `json:"icrc_bad" doc:"Number of packets with a bad ICRC and FPDUs with a bad CRC."`
	CaptureDrops        uint64             `json:"capture_drops" doc:"Number of packets that the capturing program says it dropped." reused:"dropped"`
	PFCPauses           int64              `json:"pfc_pauses" doc:"Number of priority flow control (PFC) frames that pause at least one priority."`
	Connections         int                `json:"connections" doc:"Number of connection records."`
	Transactions        map[Status]int64   `json:"transactions" doc:"Number of transactions, by status."`
	Findings            map[Severity]int64 `json:"findings" doc:"Number of findings, by severity."`
	NotCaptured         int64              `json:"not_captured" doc:"Number of packets that receivers acknowledged but that are missing from the capture." was:"lost"`
	Evicted             map[string]int64   `json:"evicted" doc:"Number of objects that were evicted because the memory limit was reached, by kind." was:"limits_reached"`
	NotJudged           []NotJudged        `json:"not_judged" doc:"Violations that are not reported because something is missing from the capture, by rule and gap."`
	TimeBackwards       int64              `json:"time_backwards" doc:"Number of packets whose time is earlier than that of the packet before."`
	TimeBackwardsNS     int64              `json:"time_backwards_ns" doc:"Largest step back in time, in nanoseconds."`
	TimeBackwardsPacket Opt[int64]         `json:"time_backwards_packet" doc:"Number of the first packet whose time is earlier than that of the packet before."`
	InputError          Opt[string]        `json:"input_error" doc:"Description of where and why reading the input failed; null if all of it was read." was:"broken"`
}

// NotJudged counts violations of a rule that are not reported, because the capture
// does not prove them.
type NotJudged struct {
	Rule   string     `json:"rule" doc:"Id of the rule."`
	Gap    string     `json:"gap" doc:"What is missing from the capture."`
	Count  int64      `json:"count" doc:"Number of violations that are not reported."`
	Packet Opt[int64] `json:"packet" doc:"Number of the packet that shows the first of them."`
}
