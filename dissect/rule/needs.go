package rule

import "strings"

// Which violations a capture proves: the reasons why a capture may not show everything are a set of gaps. Each rule declares which
// gaps prevent its findings, and what a finding waits for.
//
// To add a gap, add its constant and its row in the table, and set it when the packets show it: in
// package rdma if it is about packets, in package transaction if it is about messages.

// Gap is a set of reasons why a capture may not show everything that happened.
type Gap uint16

// The gaps. A lasting gap never closes; a passing gap may close.
const (
	Missing        Gap = 1 << iota // of a side, lasting
	Awaited                        // of a side, passing
	Silent                         // of a side, lasting
	Late                           // of a side, lasting
	Evicted                        // of a connection, lasting
	NoHandshake                    // of a connection, lasting
	NoPrivateData                  // of a side, lasting
	Unordered                      // of a connection, or of the capture if two connections have it; lasting
	HalfRead                       // of a side, lasting: a message that was not decoded can never excuse a finding later
	TruncatedAgain                 // of a connection, lasting
	XIDReused                      // of a side, lasting
	Closing                        // of a connection, lasting
	NoXID                          // of a side, lasting: a message was captured without its XID, so that HalfRead is set, too
)

// Passing contains the gaps that may close.
const Passing = Awaited

// gaps describes each gap: its name in JSON, and the condition that a capture has to meet so that
// the gap does not prevent findings. SIDE and ANY are replaced by the side that the gap is about, or
// by "both sides" and "either side".
var gaps = []struct {
	gap       Gap
	name      string
	necessary string
}{
	{NoHandshake, "no_handshake", "the capture contains the handshake"},
	{NoPrivateData, "no_private_data", "the capture contains the private data from SIDE"},
	{Late, "late", "the capture contains the first packets of SIDE"},
	{Silent, "silent", "the packets from SIDE do not stop while the opposite direction goes on"},
	{Missing, "missing", "no packet from SIDE is missing from the capture"},
	{Awaited, "awaited", "no packet from ANY was acknowledged before it was captured"},
	{HalfRead, "half_read", "no outstanding message from ANY was captured only in part"},
	{NoXID, "no_xid", "the capture contains the XID of every message from SIDE"},
	{Evicted, "evicted", "no state of the connection was evicted at the memory limit"},
	{TruncatedAgain, "truncated_again", "no truncated packet was retransmitted or rejected with a NAK"},
	{XIDReused, "xid_reused", "no XID was used again while its Call was in flight"},
	{Unordered, "unordered", "the packets are in an order that is possible, and so are those of all other connections but one"},
	{Closing, "closing", "neither side has begun to close the connection"},
}

// Name returns the name of the first gap in a set.
func (g Gap) Name() string {
	for _, row := range gaps {
		if g&row.gap != 0 {
			return row.name
		}
	}
	return ""
}

// Named returns the gap with a name, or 0.
func Named(name string) Gap {
	for _, row := range gaps {
		if row.name == name {
			return row.gap
		}
	}
	return 0
}

// Lasting returns the gaps of a set that never close.
func (g Gap) Lasting() Gap { return g &^ Passing }

// Needs says which gaps prevent a finding. Own is the side that would be at fault,
// Other the one whose unseen packet would excuse it.
type Needs struct {
	Own, Other, Connection Gap
}

// Sides are the gaps of a connection as a rule sees them.
type Sides struct {
	Own, Other Gap // gaps of the connection and of the capture are in both
}

// Blocks returns the gaps that prevent a finding.
func (n Needs) Blocks(s Sides) Gap {
	return n.Own&s.Own | n.Other&s.Other | n.Connection&(s.Own|s.Other)
}

// Without returns the needs except for some gaps.
func (n Needs) Without(g Gap) Needs { return Needs{n.Own &^ g, n.Other &^ g, n.Connection &^ g} }

// connection contains the gaps that belong to no side.
const connection = Evicted | NoHandshake | Unordered | TruncatedAgain | Closing

// Necessary returns the conditions that a capture has to meet, a clause for each gap. own and other
// are the names of the two sides.
func (n Needs) Necessary(own, other string) (clauses []string) {
	for _, row := range gaps {
		all := n.Own | n.Other | n.Connection
		if row.gap&all == 0 {
			continue
		}
		side, either := "", ""
		switch here := n.Connection | n.Own&n.Other; {
		case row.gap&connection != 0:
		case row.gap&here != 0:
			side, either = "both sides", "either side"
		case row.gap&n.Own != 0:
			side, either = own, own
		default:
			side, either = other, other
		}
		clauses = append(clauses, strings.NewReplacer("SIDE", side, "ANY", either).Replace(row.necessary))
	}
	return clauses
}

// Until is what a finding waits for after its violation was captured, at most until its RPC is over, and its record is handed out, or
// its connection.
type Until uint8

// What a finding waits for.
const (
	Now       Until = iota // at once
	Delivered              // when the Send that shows it was delivered, if its checksum cannot be verified; else at once
	Next                   // after the next complete message of the other side
	Answered               // after the answer to the Call that shows it
	FellBack               // after a Call of a version that the other side listed, or the end
)

// Once is set when something is reported that is reported at most once.
type Once bool

// First reports whether it was not reported before.
func (o *Once) First() bool {
	before := *o
	*o = true
	return !bool(before)
}
