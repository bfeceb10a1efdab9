package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// maxOthers limits the protocols that a sentence names.
const maxOthers = 3

// fewRecords is a number of TLS records that data in the middle of a stream does not imitate by chance.
const fewRecords = 4

// Unopened returns a sentence for each protocol of the capture that may hide RDMA, or that only the list of packets shows: at most
// three.
func Unopened(s *record.Summary) (sentences []string) {
	for i := range s.OtherProtocols {
		p := &s.OtherProtocols[i]
		packets := record.Plural(p.Packets, "packet")
		switch port, asked := p.Port.Get(); {
		case asked:
			sentences = append(sentences, fmt.Sprintf("%s of %s may carry RDMA; --decode-as udp.port==%d,vxlan opens them", packets, p.Protocol, port))
		case p.Tunnel:
			sentences = append(sentences, fmt.Sprintf("%s of %s, which rdmadump does not decode, may carry RDMA", packets, p.Protocol))
		case p.Protocol == record.RPCWithTLS && p.Packets >= fewRecords:
			sentences = append(sentences, fmt.Sprintf("%s of RPC with TLS (RFC 9289), encrypted from packet %d on, so that nothing is known about its RPCs", packets, p.First))
		case p.Protocol == "UD datagrams":
			sentences = append(sentences, record.Plural(p.Packets, "UD datagram")+" besides connection management, which only the list of packets shows")
		}
	}
	return sentences[:min(len(sentences), maxOthers)]
}

// Contents returns what a capture without RDMA contains instead, such as "12 packets of ARP, 4 of TCP port 22"; empty if nothing is
// known about its packets.
func Contents(s *record.Summary) string {
	var parts []string
	for i, p := range s.OtherProtocols {
		if i == maxOthers {
			parts = append(parts, "and others")
			break
		}
		text := fmt.Sprintf("%d of %s", p.Packets, p.Protocol)
		if i == 0 {
			text = record.Plural(p.Packets, "packet") + " of " + p.Protocol
		}
		if port, asked := p.Port.Get(); asked {
			text += fmt.Sprintf(" (--decode-as udp.port==%d,vxlan)", port)
		} else if p.Tunnel && !slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(s, "does not decode") }) {
			text += ", which rdmadump does not decode"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
