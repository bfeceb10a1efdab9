package rdma

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
)

// hearer is an upper layer that keeps the Sends of all connections.
type hearer struct {
	ignorant
	sends *[][]byte
}

func (h hearer) Follow(Link, *budget.Share) Follower { return h }

func (h hearer) Operation(e Event) Standing {
	if e.What == Done && !e.Op.Broken {
		*h.sends = append(*h.sends, bytes.Clone(e.Op.Payload))
	}
	return Unassigned
}

// heard returns the Sends in a stream that comes in segments of a size, and whether its framing was always known.
func heard(data []byte, size int) (sends [][]byte, framed bool) {
	t := New(hearer{sends: &sends}, budget.New(1<<30))
	var s TCP
	s.Src, s.Dst, s.SrcPort, s.DstPort = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), 900, 2049
	framed = true
	for at := 0; at < len(data); at += len(s.Payload) {
		n := size
		if at == 0 {
			n = 60 // enough to recognize the stream
		}
		s.Payload = data[at:min(at+n, len(data))]
		s.Seq, s.Length, s.Flags, s.At = uint32(at), len(s.Payload), link.TCPACK, record.Stamp{Time: record.Time(at), Packet: int64(at + 1)}
		s.Header = make([]byte, 20)
		t.Segment(&s)
		for _, f := range t.tcp.streams {
			framed = framed && !f.stream.frames.(*records).resync
		}
	}
	t.Close(func() {})
	return sends, framed
}

// call is a record with a Call, with n bytes of arguments.
func callRecord(n int) []byte {
	words := []uint32{uint32(oncrpc.NewRecordMark(40+n, true)), 7, 0, 2, 100003, 3, 1, 0, 0, 0, 0}
	var b []byte
	for _, w := range words {
		b = be.AppendUint32(b, w)
	}
	return append(b, make([]byte, n)...)
}

// FuzzRecords: the messages of a stream do not depend on how TCP divides it into segments.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{}, uint16(1))
	f.Add(append(callRecord(100), callRecord(3000)...), uint16(1))
	f.Add(append(callRecord(0), 0, 0, 0, 4, 0, 0, 0, 9), uint16(3))
	f.Add(append(append(callRecord(8), 0, 0, 0, 12, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0, 0, 0), callRecord(4)...), uint16(5))
	f.Fuzz(func(t *testing.T, rest []byte, size uint16) {
		data := append(callRecord(16), rest...)
		if len(data) > 1<<16 {
			return
		}
		whole, framed := heard(data, len(data))
		parts, framed2 := heard(data, int(size%1000)+1)
		if !framed || !framed2 { // the start of a record is only found at the start of a segment
			return
		}
		if len(whole) == 0 || len(whole) != len(parts) {
			t.Fatalf("%d messages in one segment, %d in segments of %d bytes", len(whole), len(parts), size%1000+1)
		}
		for i := range whole {
			if !bytes.Equal(whole[i], parts[i]) {
				t.Errorf("message %d: %x, and in segments %x", i, whole[i], parts[i])
			}
		}
	})
}

// ported is an upper layer with the ports of servers.
type ported struct{ ignorant }

func (ported) RPCPort(_ bool, port uint16) PortKind {
	return map[uint16]PortKind{2049: RPCPort, 111: RPCPort, 53: OtherPort}[port]
}

// TestSides: which side sends a message without a handshake, and what its ports say.
func TestSides(t *testing.T) {
	tracker := New(ported{}, budget.New(1<<30))
	for _, x := range []struct {
		from, to uint16
		kind     oncrpc.MessageType
		side     Side
		ports    PortKind
	}{
		{900, 2049, oncrpc.Call, 0, RPCPort},
		{2049, 900, oncrpc.Reply, 1, RPCPort},
		{2049, 900, oncrpc.Call, 1, RPCPort}, // a callback
		{900, 2049, oncrpc.Reply, 0, RPCPort},
		{900, 901, oncrpc.Call, 0, UnknownPort},
		{900, 901, oncrpc.Reply, 1, UnknownPort},
		{2049, 111, oncrpc.Call, 0, RPCPort},
		{2049, 111, oncrpc.Reply, 1, RPCPort},
		{900, 53, oncrpc.Call, 0, OtherPort},
	} {
		key := streamKey{srcPort: x.from, dstPort: x.to}
		if side, ports := tracker.sideOf(key, true, x.kind), tracker.portOf(true, key); side != x.side || ports != x.ports {
			t.Errorf("from %d to %d, %v: side %d, ports %d", x.from, x.to, x.kind, side, ports)
		}
	}
}

// TestFraming: the size of an FPDU in a stream, whose markers are 4 bytes each before position 0 and after each 508 bytes, and what is
// left of it without them.
func TestFraming(t *testing.T) {
	for _, x := range []struct{ ulpdu, position, plain, marked int }{ // position is -1 without markers; plain is without the CRC
		{0, -1, 8, 8},
		{1, -1, 8, 8},
		{2, -1, 8, 8},
		{3, -1, 12, 12},
		{600, -1, 608, 608},
		{20, 0, 28, 32},
		{20, 4, 28, 28},
		{20, 484, 28, 28},
		{20, 488, 28, 32},
		{20, 510, 28, 32},
		{502, 0, 508, 512},
		{506, 0, 512, 520},
		{600, 4, 608, 612},
		{1200, 500, 1208, 1220},
	} {
		markers, position := x.position >= 0, max(x.position, 0)
		head := be.AppendUint16(nil, uint16(x.ulpdu))
		if markers && position == 0 {
			head = append(make([]byte, 4), head...)
		}
		if got, none := fpduSize(head, markers, position), fpduSize(head[:len(head)-1], markers, position); got != x.marked || none != 0 {
			t.Errorf("%d bytes at %d take %d, want %d; and %d without their length", x.ulpdu, x.position, got, x.marked, none)
		}
		if raw := make([]byte, x.marked); markers && len(withoutMarkers(nil, raw, position)) != x.plain {
			t.Errorf("%d bytes at %d are %d without markers, want %d", x.marked, x.position, len(withoutMarkers(nil, raw, position)), x.plain)
		}
	}
	for data, want := range map[string]bool{
		"": false, "\x00\x12": false, "\x00\x12\x41\x43" + string(make([]byte, 16)): true, "\x00\x11\x41\x43" + string(make([]byte, 16)): false, "\x00\x12\x41\x43" + string(make([]byte, 15)): false,
	} {
		if got := plausibleHeader([]byte(data)); got != want {
			t.Errorf("%x begins with headers: %t", data, got)
		}
	}
}

// TestStartsMessage: a record begins with a Call of RPC version 2, or with a Reply that was accepted or denied. The third word may be wrong
// if the record ends with its segment.
func TestStartsMessage(t *testing.T) {
	for _, x := range []struct {
		kind, third    uint32
		want, atTheEnd bool
	}{{0, 2, true, true}, {0, 1, false, true}, {0, 3, false, true}, {1, 0, true, true}, {1, 1, true, true}, {1, 2, false, true}, {2, 0, false, false}} {
		data := be.AppendUint32(be.AppendUint32([]byte{9, 9, 9, 9}, x.kind), x.third)
		if got, atTheEnd := startsMessage(data, false), startsMessage(data, true); got != x.want || atTheEnd != x.atTheEnd || !startsMessage(data[:11], false) {
			t.Errorf("type %d, third word %d: %t, and %t at the end of a segment", x.kind, x.third, got, atTheEnd)
		}
	}
}

// TestNotRPC: nothing is kept about TCP streams that do not carry RPC, except for a limited number of handshakes.
func TestNotRPC(t *testing.T) {
	var sends [][]byte
	tracker := New(hearer{sends: &sends}, budget.New(1<<30))
	var s TCP
	s.Src, s.Dst, s.DstPort = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), 443
	s.Header = make([]byte, 20)
	for i := range 1 << 17 {
		s.SrcPort, s.Flags, s.Payload, s.Length = uint16(i), link.TCPSYN, nil, 0
		tracker.Segment(&s)
		s.Flags, s.Payload, s.Length = link.TCPACK, make([]byte, 1000), 1000
		tracker.Segment(&s)
	}
	if n := len(tracker.tcp.opened.young) + len(tracker.tcp.opened.old); n > 2*maxOpened {
		t.Errorf("%d handshakes are kept", n)
	}
	if tracker.Connections() != 0 || len(tracker.tcp.streams) != 0 {
		t.Errorf("%d connections, %d streams", tracker.Connections(), len(tracker.tcp.streams))
	}
}

// TestSegmentAllocations: a segment in the middle of a message causes no allocation, and neither do its acknowledgement and
// a second copy of both.
func TestSegmentAllocations(t *testing.T) {
	tracker := New(ignorant{}, budget.New(1<<30))
	const size = 1000
	var replyRecord []byte
	for _, w := range []uint32{uint32(oncrpc.NewRecordMark(24, true)), 7, 1, 0, 0, 0, 0} {
		replyRecord = be.AppendUint32(replyRecord, w)
	}
	sides := [2]TCP{}
	for i := range sides {
		sides[i].Header = make([]byte, 20)
	}
	sides[0].Src, sides[0].Dst, sides[0].SrcPort, sides[0].DstPort = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), 900, 2049
	sides[1].Src, sides[1].Dst, sides[1].SrcPort, sides[1].DstPort = sides[0].Dst, sides[0].Src, 2049, 900
	send := func(from int, data []byte) {
		s := &sides[from]
		s.Payload, s.Length, s.Flags, s.Ack = data, len(data), link.TCPACK, sides[1-from].Seq
		s.At.Packet++
		if _, known := tracker.Segment(s); !known {
			t.Fatalf("segment %d from side %d belongs to no connection", s.At.Packet, from)
		}
		s.Seq += uint32(len(data))
	}
	send(0, callRecord(8)[:52])
	send(1, replyRecord)
	send(0, callRecord(1 << 19)[:size])
	tracker.connections.conns.next.WantSends(false)
	data := make([]byte, size)
	if n := testing.AllocsPerRun(200, func() {
		send(0, data)
		send(1, nil)
		sides[0].Seq -= size
		send(0, data)
		send(1, nil)
	}); n > 0 {
		t.Errorf("two segments and their acknowledgements cause %v allocations", n)
	}
}
