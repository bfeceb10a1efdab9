package synth

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
)

// RPC over TCP and UDP, without RDMA. A connection that [Wire.IWARP] returns can carry it
// after [Conn.Open]: there is no MPA frame then.

// Record returns an RPC message as a record of a TCP stream (RFC 5531 s.11). The fragments
// have the given sizes, and the last one has the rest of the message.
func Record(message XDR, sizes ...int) []byte {
	data, out := message.Inline(), []byte(nil)
	for _, n := range sizes {
		out = append(be.AppendUint32(out, uint32(oncrpc.NewRecordMark(n, false))), data[:n]...)
		data = data[n:]
	}
	return append(be.AppendUint32(out, uint32(oncrpc.NewRecordMark(len(data), true))), data...)
}

// Records appends RPC messages to the TCP stream, each as a record of one fragment.
func (s *Side) Records(messages ...XDR) {
	for _, m := range messages {
		s.Stream(Record(m))
	}
}

// Datagram sends an RPC message as a UDP datagram between the ports of the connection.
func (s *Side) Datagram(message XDR) *Frame {
	w := s.Conn.Wire
	must(gopacket.SerializeLayers(w.buf, gopacket.SerializeOptions{}, gopacket.Payload(message.Inline())))
	w.udp = layers.UDP{SrcPort: layers.UDPPort(s.Port), DstPort: layers.UDPPort(s.Peer.Port)}
	must(w.udp.SerializeTo(w.buf, gopacket.SerializeOptions{FixLengths: true}))
	s.prepend(layers.IPProtocolUDP)
	fixChecksum(w.buf.Bytes())
	return s.emit()
}
