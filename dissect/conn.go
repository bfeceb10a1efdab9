package dissect

import (
	"net/netip"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

// address is one end of a link: an IP address or GID, or on native InfiniBand a
// LID, or both.
type address struct {
	ip  netip.Addr
	lid uint16
}

// flowKey names the packets of one direction: a packet says only which queue
// pair it goes to.
type flowKey struct {
	src, dst address
	qpn      uint32 // the destination's; for TCP the ports
}

// flow is one direction of a connection: the packets that one end sends. Its
// requests (Sends, Writes, Read Requests) have PSNs of its own; its responses
// carry the PSNs of the other direction's requests.
type flow struct {
	key       flowKey
	conn      *conn
	side      int // index in conn.flows, and of the sender everywhere
	started   bool
	announced bool   // the handshake told the PSN that it starts with
	expect    uint32 // the PSN of the next request
	loose     bool   // expect is a lower bound: a READ of unknown extent came last
	acked     uint32 // the last PSN that the other end acknowledged
	hasAck    bool
	// acksSeen and lastAck are the PSN of the last acknowledgement that this
	// end sent while the other direction was unknown.
	acksSeen bool
	lastAck  uint32

	orphans   int32  // responses to a request that was not seen, in one run
	orphanPSN uint32 // the first of them

	held      []heldPacket // requests that came early, by PSN
	heldBytes int

	send     sendState
	write    writeState
	reads    []*read   // RDMA Reads that this end asked for, oldest first
	awaiting []pending // Sends that the other end has not acknowledged

	iwarp *iwarpStream // TCP only
	tries int          // how often the other direction was looked for
}

// heldPacket is a copy of a request that waits for those before it.
type heldPacket struct {
	psn    uint32
	stamp  stamp
	data   []byte // transport packet
	length int
}

// stamp says when and where a packet was seen.
type stamp struct {
	time   Time
	packet int64
}

// sendState is the Send that is being put together.
type sendState struct {
	active bool
	first  stamp
	buffer []byte // what was captured of it, from its start
	length int    // bytes on the wire so far
	cut    bool   // buffer ends before length does
}

// writeState is the RDMA Write that is going on.
type writeState struct {
	active  bool
	psn     uint32
	handle  uint32
	offset  uint64
	length  uint32
	moved   int64
	packets int64
	first   stamp
	segment segmentRef // what of the peer's memory it fills
}

// read is an RDMA Read under way.
type read struct {
	psn     uint32
	count   uint32 // packets of its responses; 0 when the path MTU is unknown
	handle  uint32
	offset  uint64
	length  uint32
	seen    spans // packets (InfiniBand) or bytes (iWARP) of the response
	moved   int64
	packets int64
	first   stamp
	segment segmentRef
	sink    uint32 // iWARP: STag and offset of the requester's own memory
	sinkAt  uint64
}

// pending is a Send whose acknowledgement is awaited.
type pending struct {
	psn  uint32
	txn  txnRef
	what string // EventCall or EventReply
}

// The limits of what one connection may hold. Reaching one is reported.
const (
	maxHeld        = 1024
	maxHeldBytes   = 4 << 20
	maxSend        = 1 << 20 // longer Sends are counted, not kept
	maxReads       = 4096
	maxAwaiting    = 4096
	maxConnections = 1 << 16
	maxOpen        = 1 << 16 // transactions of one connection
)

// conn is a connection: two flows and what goes on between them.
type conn struct {
	record Connection
	id     int
	flows  [2]*flow
	client int // which side is the client, -1 when nobody knows yet

	mtu            int
	isRPC          bool
	nfs4           bool // NFSv4 was seen on it
	undecided      bool // the upper layer is to be found out from the Sends
	strangers      int  // Sends that were no RPC-over-RDMA, while undecided
	handshake      bool
	goodICRC       bool
	closed         bool
	closedAt       Time
	private        [2]*rpcrdma.PrivateData // by side
	requester      uint32                  // CM communication IDs of both ends
	responder      uint32
	told           [2]bool // the private data of the side is in the capture, whole
	startingKnown  bool
	starting       uint32 // the PSN that the server starts with
	invalidateTold bool   // that it invalidates without leave was reported
	clientMarkers  bool   // iWARP: the client wants markers

	open    [2]map[uint32]*txn     // Calls without Reply, by side of the caller
	exposed [2]map[uint32]*segment // exposed memory by handle, by side of its owner

	requested, granted [2]*uint32 // credits, by side of the caller
	peak               [2]int

	storage struct { // what the record's pointers point at
		established, closed          Time
		reason                       string
		service                      Hex64
		addresses                    [2]string
		ports                        [2]uint16
		qpns                         [2]Hex24
		remote                       bool
		mtu                          int
		clientPrivate, serverPrivate PrivateData
		credits                      [4]uint32
	}
}

// other is the side across.
func other(side int) int { return 1 - side }

// peer is the flow in the other direction, nil when it was never seen.
func (f *flow) peer() *flow { return f.conn.flows[other(f.side)] }

// direction is that of Calls sent by a side.
func (c *conn) direction(side int) string {
	if c.client >= 0 && side != c.client {
		return Backward
	}
	return Forward
}

// clientSide is the client's side, or the first to be seen.
func (c *conn) clientSide() int { return max(c.client, 0) }

// thresholds works out the inline thresholds in force (RFC 8797 s.4.2, s.5.1):
// a side that says nothing counts as one that says 1024 twice.
func (c *conn) thresholds() InlineThresholds {
	client, server := c.private[c.clientSide()], c.private[other(c.clientSide())]
	t := InlineThresholds{Source: "private_data"}
	if client == nil || server == nil {
		t.Source = "default"
	}
	silent := &rpcrdma.PrivateData{SendSize: rpcrdma.DefaultInline, ReceiveSize: rpcrdma.DefaultInline}
	if client == nil {
		client = silent
	}
	if server == nil {
		server = silent
	}
	t.ClientToServer = min(client.SendSize, server.ReceiveSize)
	t.ServerToClient = min(server.SendSize, client.ReceiveSize)
	return t
}

// negotiated says that the handshake is in the capture, private data and all:
// only then is it known what was agreed to.
func (c *conn) negotiated() bool { return c.handshake && c.told[0] && c.told[1] }

// remoteInvalidation says whether both sides agreed to it; nil when that is not
// known.
func (c *conn) remoteInvalidation() *bool {
	if !c.negotiated() {
		return nil
	}
	c.storage.remote = c.private[0] != nil && c.private[1] != nil && c.private[0].RemoteInvalidation && c.private[1].RemoteInvalidation
	return &c.storage.remote
}

// serviceUpperLayers tells an upper layer by the TCP-space port of its service
// ID (IANA's service names).
var serviceUpperLayers = map[uint16]string{20049: upperRPC, 4420: "nvme", 3260: "iser", 5445: "smbdirect", 445: "smbdirect"}

const (
	upperRPC     = "rpcrdma"
	upperUnknown = "unknown"
)

// finish completes the record.
func (c *conn) finish() *Connection {
	r, s := &c.record, &c.storage
	r.Type, r.ID = "connection", c.id
	client := c.clientSide()
	r.Client, r.Server = c.endpoint(client, r.Client), c.endpoint(other(client), r.Server)
	r.Handshake = "missed"
	if c.handshake {
		r.Handshake = "seen"
	}
	r.PrivateData = PrivateDataPair{
		Client: private(c.private[client], &s.clientPrivate), Server: private(c.private[other(client)], &s.serverPrivate),
	}
	r.InlineThreshold = c.thresholds()
	r.RemoteInvalidation = c.remoteInvalidation()
	if r.PathMTU = nil; c.mtu != 0 {
		s.mtu = c.mtu
		r.PathMTU = &s.mtu
	}
	r.UpperLayer = cmpOr(r.UpperLayer, upperUnknown)
	r.Credits = CreditPair{
		Forward:  Credits{c.requested[client], c.granted[client], c.peak[client]},
		Backward: Credits{c.requested[other(client)], c.granted[other(client)], c.peak[other(client)]},
	}
	return r
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// endpoint fills in what the flows know of one side.
func (c *conn) endpoint(side int, e Endpoint) Endpoint {
	a, qpn, known := c.sideAddress(side)
	if a.ip.IsValid() || a.lid != 0 {
		c.storage.addresses[side] = a.String()
		e.Address = &c.storage.addresses[side]
	}
	if known {
		if c.record.Transport == transportIWARP {
			e.QPN = nil
		} else {
			c.storage.qpns[side] = Hex24(qpn)
			e.QPN = &c.storage.qpns[side]
		}
	}
	return e
}

// sideAddress is the address of a side, and its queue pair, which the packets
// of the other side name.
func (c *conn) sideAddress(side int) (a address, qpn uint32, known bool) {
	if f := c.flows[side]; f != nil {
		a = f.key.src
	}
	if f := c.flows[other(side)]; f != nil {
		return f.key.dst, f.key.qpn, true
	}
	return a, 0, false
}

// String is the IP address, or the LID.
func (a address) String() string {
	if a.ip.IsValid() {
		return a.ip.String()
	}
	return "LID " + itoa(int64(a.lid))
}

func private(p *rpcrdma.PrivateData, to *PrivateData) *PrivateData {
	if p == nil {
		return nil
	}
	*to = PrivateData(*p)
	return to
}

// packetsFor is how many packets carry n bytes: at least one.
func packetsFor(n uint32, mtu int) uint32 {
	return max(1, (n+uint32(mtu)-1)/uint32(mtu))
}

// holds says whether the PSN is one of the read's responses.
func (r *read) holds(psn uint32, mtu int) bool {
	count := r.count
	if count == 0 { // as many as the smallest path MTU would need
		count = packetsFor(r.length, 256)
		if mtu != 0 {
			count = packetsFor(r.length, mtu)
		}
	}
	d := rocev2.PSNDelta(psn, r.psn)
	return d >= 0 && uint32(d) < count
}
