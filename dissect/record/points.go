package record

import (
	"slices"
	"strconv"
	"strings"
)

// Point is a capture point: a place in the network at which packets were captured, with the clock of that
// place.
type Point struct {
	Type          string       `json:"type" doc:"The record's type, always \"point\"." values:"point"`
	Name          string       `json:"name" doc:"Name of the capture point: the file, and the interface if the file has several." secret:"point"`
	Address       Opt[string]  `json:"address" doc:"Address of the host at the capture point; null if there is no host at this point." secret:"address"`
	Packets       int64        `json:"packets" doc:"Number of frames that were captured at the point."`
	Matched       Opt[int64]   `json:"matched" doc:"Number of packets that were captured at this point and at the one whose clock is used; null for that one."`
	OffsetNS      Opt[int64]   `json:"offset_ns" doc:"Time by which the clock of this point is ahead of the clock of the first point, at the first packet of this point, in nanoseconds; null if the points have no packets in common."`
	DriftPPM      Opt[float64] `json:"drift_ppm" doc:"Drift of this point's clock: the time that it gains, in microseconds per second of the first point's clock (parts per million); null if the capture shows no drift."`
	ErrorNS       Opt[int64]   `json:"error_ns" doc:"Largest error of the offset between the first and the last packet that both points captured, in nanoseconds: the largest difference from the offsets that the packets of both directions allow; null if offset_ns is."`
	DriftErrorPPM Opt[float64] `json:"drift_error_ppm" doc:"Largest difference from the drift, or from the clock without drift, that the packets allow, in parts per million; null if offset_ns is, and for the clock with which the others are compared."`
	Steps         []ClockStep  `json:"steps" doc:"Jumps of the clock of this point, compared with that of the first point; each has the first packet after it."`
}

// ClockStep is a jump of a clock.
type ClockStep struct {
	Packet int64 `json:"packet" doc:"Packet number: the first packet at this point after the jump."`
	Time   Time  `json:"time" doc:"Time of that packet on the first point's clock."`
	NS     int64 `json:"ns" doc:"Length of the jump, in nanoseconds; it is positive if the clock jumped ahead."`
}

// Network is what happened to the packets of one direction between two capture points.
type Network struct {
	Type             string              `json:"type" doc:"The record's type, always \"network\"." values:"network"`
	From             string              `json:"from" doc:"Name of the capture point that the packets passed first." secret:"point"`
	To               string              `json:"to" doc:"Name of the capture point that the packets passed next." secret:"point"`
	Packets          int64               `json:"packets" doc:"Number of packets that passed the first point on the way to the other one, including retransmissions. Of iWARP and of RPC over TCP, the TCP segments with data count, as captured at the first point."`
	Lost             int64               `json:"lost" doc:"Number of these packets that did not arrive at the other point: they were sent again, or their receiver asked for them again."`
	NotCaptured      int64               `json:"not_captured" doc:"Number of these packets that the capture at the other point does not contain, although their receiver had them."`
	Unknown          int64               `json:"unknown" doc:"Number of these packets that are not at the other point, and of which nothing shows whether the network lost them or that capture lacks them: nobody sent them or asked for them again, or the capture does not cover their time, or lacks other packets."`
	Reordered        int64               `json:"reordered" doc:"Number of packets that arrived after a packet that was sent later to the same queue pair."`
	Corrupted        int64               `json:"corrupted" doc:"Number of packets that arrived damaged."`
	Changed          int64               `json:"changed" doc:"Number of these damaged packets that are TCP segments with another payload than the one that was sent, and a right checksum, so that their receiver took them. Segments that an adapter split between the points, and those without a right checksum at both points, are not compared."`
	Duplicated       int64               `json:"duplicated" doc:"Number of additional copies that arrived, although the packet had been sent once."`
	MirrorDuplicates int64               `json:"mirror_duplicates" doc:"Number of second copies in captures of mirror ports that show each packet twice; they are not counted as packets."`
	Bytes            Opt[int64]          `json:"bytes,omitzero" doc:"Number of bytes that TCP segments of iWARP or of RPC carried; present only if there were any."`
	BytesLost        Opt[int64]          `json:"bytes_lost,omitzero" doc:"Number of bytes of these segments that did not arrive at the other point; present only with TCP."`
	BytesDuplicated  Opt[int64]          `json:"bytes_duplicated,omitzero" doc:"Number of bytes of these segments that arrived more often than they had been sent; present only with TCP."`
	Delay            Opt[DelayQuantiles] `json:"delay" doc:"Distribution of the one-way delays; null if no packet arrived. A constant difference between the delays of both directions cannot be distinguished from the offset of the clocks."`
	Quiet            []QuietTime         `json:"quiet,omitzero" doc:"Times of at least a second in which the capture at the other point has no frame at all, with the packets that were lost in them: the network lost them, or the host at that point was down; present only if there are such packets, at most 64."`
	Course           []NetworkInterval   `json:"course" doc:"The same over time: intervals of equal length, whose number is limited."`
}

// QuietTime is a time in which the capture of a point has no frame.
type QuietTime struct {
	From Time  `json:"from" doc:"Time of the last frame before, on the first point's clock."`
	To   Time  `json:"to" doc:"Time of the next frame."`
	Lost int64 `json:"lost" doc:"Number of packets that were sent to the point in this time and did not arrive; lost counts them, too."`
}

// InQuiet returns the number of lost packets of which it is not known whether the network lost them: those of quiet times.
func (n *Network) InQuiet() (lost int64) {
	for _, t := range n.Quiet {
		lost += t.Lost
	}
	return lost
}

// DelayQuantiles is a distribution of delays.
type DelayQuantiles struct {
	MinNS int64 `json:"min_ns" doc:"Shortest delay, in nanoseconds."`
	P50NS int64 `json:"p50_ns" doc:"Median of the delays, in nanoseconds."`
	P90NS int64 `json:"p90_ns" doc:"Delay that 90% of the packets did not exceed, in nanoseconds."`
	P99NS int64 `json:"p99_ns" doc:"Delay that 99% of the packets did not exceed, in nanoseconds."`
	MaxNS int64 `json:"max_ns" doc:"Longest delay, in nanoseconds."`
}

// NetworkInterval is what happened between two capture points in an interval of time.
type NetworkInterval struct {
	Start     Time       `json:"start" doc:"Start of the interval, which ends when the next one starts."`
	Packets   int64      `json:"packets" doc:"Number of packets that were sent in the interval."`
	Lost      int64      `json:"lost" doc:"Number of these packets that were lost."`
	Corrupted int64      `json:"corrupted" doc:"Number of these packets that arrived damaged."`
	P50NS     Opt[int64] `json:"p50_ns" doc:"Median of the delays, about, in nanoseconds; null if no packet arrived."`
	MaxNS     Opt[int64] `json:"max_ns" doc:"Longest delay, in nanoseconds; null if no packet arrived."`
}

// LostPacket is a packet that was lost between two capture points.
type LostPacket struct {
	Type       string      `json:"type" doc:"The record's type, always \"lost_packet\"." values:"lost_packet"`
	From       string      `json:"from" doc:"Name of the capture point that the packet passed." secret:"point"`
	To         string      `json:"to" doc:"Name of the capture point at which the packet did not arrive." secret:"point"`
	Packet     int64       `json:"packet" doc:"Packet number: the packet at the point that it passed."`
	Time       Time        `json:"time" doc:"Time at which the packet passed the point, on the first point's clock."`
	Connection Opt[int]    `json:"connection" doc:"Connection number: the connection that the packet belongs to."`
	XID        Opt[Hex32]  `json:"xid" doc:"XID of the RPC that the packet belongs to; null if it is not known."`
	Operation  Opt[string] `json:"rdma_operation" doc:"RDMA operation that the packet belongs to; null if it is not known." secret:"no"`
	Summary    string      `json:"summary" doc:"Description of the packet in one line." secret:"content"`
}

// With several capture points, each point numbers its packets. While a capture is dissected, the number of a
// packet contains the point, so that equal numbers of different points differ. The records that handlers get have
// both separately.

const (
	pointShift = 48
	numberMask = 1<<pointShift - 1
)

// NumberAt returns the number of a packet with its capture point.
func NumberAt(point int, number int64) int64 { return int64(point+1)<<pointShift | number&numberMask }

// SplitNumber returns the number of a packet at its capture point, and the index of the point, which is -1 if there
// is only one.
func SplitNumber(n int64) (number int64, point int) { return n & numberMask, int(n>>pointShift) - 1 }

// ShortNames returns a function that leaves out what the names of all capture points have in common at both ends.
func ShortNames(points []string) func(name string) string {
	if len(points) < 2 {
		return func(name string) string { return name }
	}
	head, tail := shared(points)
	return func(name string) string { return name[head : len(name)-tail] }
}

// shared returns the lengths of what the names of all points begin and end with, up to a dot, hyphen, underscore, space or
// slash.
func shared(points []string) (head, tail int) {
	const borders = "-._ /"
	first := points[0]
	for i := range len(first) {
		if slices.ContainsFunc(points, func(p string) bool { return i >= len(p)-1 || p[i] != first[i] }) {
			break
		}
		if strings.IndexByte(borders, first[i]) >= 0 {
			head = i + 1
		}
	}
	for i := 1; i <= len(first); i++ {
		if slices.ContainsFunc(points, func(p string) bool {
			return i >= len(p)-head || p[len(p)-i] != first[len(first)-i]
		}) {
			break
		}
		if strings.IndexByte(borders, first[len(first)-i]) >= 0 {
			tail = i
		}
	}
	return head, tail
}

// Before reports whether a packet came before another one: in the same capture, or by their times.
func (s Stamp) Before(o Stamp) bool {
	if s.Packet>>pointShift == o.Packet>>pointShift || s.Packet == 0 || o.Packet == 0 || s.Time == o.Time {
		return s.Packet < o.Packet
	}
	return s.Time < o.Time
}

// Fill takes the connection and the RPC of a packet, if they are known.
func (r *LostPacket) Fill(p *Packet) {
	if p.Connection.Known() {
		r.Connection = p.Connection
	}
	if p.XID.Known() {
		r.XID = p.XID
	}
	if p.RDMAOperation != "" {
		r.Operation = Some(p.RDMAOperation)
	}
}

// Path is where a packet was seen, if there are several capture points.
type Path struct {
	Point  string     // name of the point that captured the frame
	LostTo string     // name of the point at which the packet did not arrive; empty for other packets
	Key    uint64     // equal for retransmissions of the packet; 0 if it has none
	Seen   []Sighting // the points that captured the packet, in the order in which it passed them
}

// Sighting is a packet at a capture point.
type Sighting struct {
	Point  string `json:"point" doc:"Name of the capture point." secret:"point"`
	Packet int64  `json:"packet" doc:"Packet number: the packet at this point."`
	Time   Time   `json:"time" doc:"Time at which the packet was captured there, on the first point's clock."`
}

// local separates a packet number from its capture point.
func local(n *int64, point *string, points []string) {
	if name := localShared(n, points); name != nil {
		*point = *name
	}
}

// localShared is local for records of which there are many: the result is the name of the point, or nil.
func localShared(n *int64, points []string) *string {
	number, i := SplitNumber(*n)
	if *n = number; i >= 0 && i < len(points) {
		return &points[i]
	}
	return nil
}

// localOpt is local for a number that may be unknown.
func localOpt(n *Opt[int64], point *string, points []string) {
	if v, known := n.Get(); known {
		local(&v, point, points)
		*n = Some(v)
	}
}

// Localize separates the packet numbers of the record from their capture points.
func (r *Transaction) Localize(points []string) {
	r.Call, r.Reply = r.Call.localized(points), r.Reply.localized(points)
	localOpt(&r.LatencyMinPacket, &r.LatencyMinPoint, points)
	if i, known := r.Invalidation.Get(); known {
		local(&i.Packet, &i.Point, points)
		r.Invalidation = Some(i)
	}
	for i := range r.Timeline {
		e := &r.Timeline[i]
		e.Point = localShared(&e.Packet, points)
		if last, known := e.LastPacket.Get(); known {
			e.LastPoint = localShared(&last, points)
			e.LastPacket = Some(last)
		}
	}
	for i := range r.Waits {
		w := &r.Waits[i]
		w.Points = make([]string, len(w.Packets))
		list := make([]int64, len(w.Packets))
		for j := range w.Packets {
			list[j] = w.Packets[j]
			local(&list[j], &w.Points[j], points)
		}
		w.Packets = list
		localOpt(&w.NakPacket, &w.NakPoint, points)
		localOpt(&w.OutOfOrderPacket, &w.OutOfOrderPoint, points)
		localOpt(&w.GapFilledBy, &w.GapFilledPoint, points)
		localOpt(&w.BurstPacket, &w.BurstPoint, points)
		for j := range w.Lost {
			local(&w.Lost[j].Packet, &w.Lost[j].Point, points)
		}
	}
	if s, known := r.Shares.Get(); known {
		for i := range s.Proofs {
			localOpt(&s.Proofs[i].Packet, &s.Proofs[i].Point, points)
		}
	}
}

// localized returns a copy of a message with packet numbers of capture points.
func (m *Message) localized(points []string) *Message {
	if m == nil {
		return nil
	}
	c := *m
	c.Point, c.LastPoint = localShared(&c.Packet, points), localShared(&c.LastPacket, points)
	return &c
}

// Localize separates the packet number of the finding from its capture point.
func (r *Finding) Localize(points []string) { localOpt(&r.Packet, &r.Point, points) }

// Localize separates the packet number of the connection's end from its capture point.
func (r *Connection) Localize(points []string) {
	if e, known := r.Ended.Get(); known {
		localOpt(&e.Packet, &e.Point, points)
		if a, known := e.After.Get(); known {
			local(&a.Packet, &a.Point, points)
			e.After = Some(a)
		}
		r.Ended = Some(e)
	}
}

// Localize separates the packet numbers of the summary from their capture points.
func (r *Summary) Localize(points []string) {
	for i := range r.NotJudged {
		localOpt(&r.NotJudged[i].Packet, &r.NotJudged[i].Point, points)
	}
	for i := range r.OtherProtocols {
		local(&r.OtherProtocols[i].First, &r.OtherProtocols[i].Point, points)
	}
	for i := range r.Silences {
		s := &r.Silences[i]
		local(&s.Last, &s.Point, points)
		localOpt(&s.Next, &s.NextPoint, points)
	}
}

// PacketText returns a packet number as it is in its capture, for messages.
func PacketText(n int64) string {
	number, _ := SplitNumber(n)
	return strconv.FormatInt(number, 10)
}

// Split divides the latency of a transaction by the places at which the time passed. The sum of its parts, without
// ServerSendNS, is the latency. For a Call in backward direction, the caller is the NFS server.
type Split struct {
	ClientNS         int64 `json:"client_ns" doc:"Time that the caller's host took to respond to RDMA Reads, in nanoseconds. The caller is the client, or, for a Call in backward direction, the NFS server."`
	RequestNetworkNS int64 `json:"request_network_ns" doc:"Time that the Call, and the responses to RDMA Reads, took from the caller to the other side, in nanoseconds, with the time until lost packets were retransmitted."`
	ServerNS         int64 `json:"server_ns" doc:"Time that passed at the side that executed the Call, in nanoseconds."`
	ReplyNetworkNS   int64 `json:"reply_network_ns" doc:"Time that the Reply, and the requests of RDMA Reads, took to the caller, in nanoseconds, with the time until lost packets were retransmitted."`
	ServerSendNS     int64 `json:"server_send_ns" doc:"Part of server_ns from the first RDMA Write to the Reply, in nanoseconds: the time that the host and its adapter took to transmit."`
}
