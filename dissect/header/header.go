// Package header describes every header that rdmadump decodes as a table of fields (package field).
// The table gives the name, position and format of each field, and Wireshark's name for it. Trees,
// JSON, filters and schemas are derived from these tables. A test compares the tables with the
// structs that decode the same bytes.
//
// To add a field, add its row. To add a header, add its table, name it in All, and add its bytes to
// the tree in package describe.
package header

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

// byteRow is a field that starts at a byte boundary.
type byteRow struct {
	name, label string
	at, bits    int
	format      field.Format
	alias       string // name of the field in Wireshark
}

type bitRow struct {
	name, label   string
	at, bit, bits int
	format        field.Format
	alias         string
}

func bytes(r byteRow) field.Field {
	return bits(bitRow{r.name, r.label, r.at, 0, r.bits, r.format, r.alias})
}

func bits(r bitRow) field.Field {
	return field.Field{Name: r.name, Label: r.label, Bit: r.at*8 + r.bit, Bits: r.bits, Format: r.format, Alias: r.alias, Key: `"` + r.name + `":`}
}

// named returns f with names for its values.
func named(f field.Field, names func(uint64) string) field.Field {
	f.Names = names
	return f
}

// enum returns a function that looks up the name of a value.
func enum(names map[uint64]string) func(uint64) string {
	return func(v uint64) string { return names[v] }
}

var etherTypes = enum(map[uint64]string{
	0x0800: "IPv4", 0x0806: "ARP", 0x22eb: "ERSPAN III", 0x6558: "Ethernet", 0x8035: "RARP", 0x8100: "802.1Q", 0x86dd: "IPv6", 0x8808: "MAC control",
	0x8847: "MPLS", 0x8848: "MPLS", 0x88a8: "802.1ad", 0x88be: "ERSPAN", 0x8915: "RoCEv1",
})

var protocols = enum(map[uint64]string{1: "ICMP", 4: "IPv4", 6: "TCP", 17: "UDP", 41: "IPv6", 47: "GRE", 58: "ICMPv6"})

// The link and network headers.
var (
	Ethernet = field.Header{Name: "ethernet", Label: "Ethernet", Length: 14, Link: true, Fields: []field.Field{
		bytes(byteRow{"dst", "Destination", 0, 48, field.MAC, "eth.dst"}),
		bytes(byteRow{"src", "Source", 6, 48, field.MAC, "eth.src"}),
		named(bytes(byteRow{"ethertype", "EtherType", 12, 16, field.Hex, "eth.type"}), etherTypes),
	}}
	VLAN = field.Header{Name: "vlan", Label: "VLAN tag", Length: 4, Link: true, Fields: []field.Field{
		bits(bitRow{"priority", "Priority", 0, 0, 3, field.Dec, "vlan.priority"}),
		bits(bitRow{"dei", "Drop eligible", 0, 3, 1, field.Flag, "vlan.dei"}),
		bits(bitRow{"id", "VLAN ID", 0, 4, 12, field.Dec, "vlan.id"}),
		named(bytes(byteRow{"ethertype", "EtherType", 2, 16, field.Hex, "vlan.etype"}), etherTypes),
	}}
	PFC = field.Header{Name: "pfc", Label: "Priority flow control", Length: 20, Link: true, Fields: join([]field.Field{
		bytes(byteRow{"opcode", "Opcode", 0, 16, field.Hex, "macc.opcode"}),
		bytes(byteRow{"priorities", "Priority enable vector", 2, 16, field.Hex, "macc.cbfc.enbv"}),
	}, pauseTimes())}
	Pause = field.Header{Name: "pause", Label: "Pause", Length: 4, Link: true, Fields: []field.Field{
		bytes(byteRow{"opcode", "Opcode", 0, 16, field.Hex, "macc.opcode"}),
		bytes(byteRow{"quanta", "Pause time in units of 512 bit times", 2, 16, field.Dec, "macc.pause_time"}),
	}}
	SLL = field.Header{Name: "sll", Label: "Linux cooked", Length: 16, Link: true, Fields: []field.Field{
		bytes(byteRow{"packet_type", "Packet type", 0, 16, field.Dec, "sll.pkttype"}),
		bytes(byteRow{"arphrd", "Link type", 2, 16, field.Dec, "sll.hatype"}),
		bytes(byteRow{"address_length", "Address length", 4, 16, field.Dec, "sll.halen"}),
		bytes(byteRow{"address", "Address", 6, 64, field.Bytes, "sll.src.other"}),
		named(bytes(byteRow{"ethertype", "EtherType", 14, 16, field.Hex, "sll.etype"}), etherTypes),
	}}
	SLL2 = field.Header{Name: "sll2", Label: "Linux cooked v2", Length: 20, Link: true, Fields: []field.Field{
		named(bytes(byteRow{"ethertype", "EtherType", 0, 16, field.Hex, "sll.etype"}), etherTypes),
		bytes(byteRow{"reserved", "Reserved", 2, 16, field.Hex, ""}),
		bytes(byteRow{"interface", "Interface index", 4, 32, field.Dec, "sll.ifindex"}),
		bytes(byteRow{"arphrd", "Link type", 8, 16, field.Dec, "sll.hatype"}),
		bytes(byteRow{"packet_type", "Packet type", 10, 8, field.Dec, "sll.pkttype"}),
		bytes(byteRow{"address_length", "Address length", 11, 8, field.Dec, "sll.halen"}),
		bytes(byteRow{"address", "Address", 12, 64, field.Bytes, "sll.src.other"}),
	}}
	ERF = field.Header{Name: "erf", Label: "Extensible Record Format", Length: 16, Link: true, Fields: []field.Field{
		bytes(byteRow{"timestamp", "Timestamp", 0, 64, field.Bytes, "erf.ts"}),
		bits(bitRow{"extended", "Extension headers follow", 8, 0, 1, field.Flag, "erf.ehdr"}),
		bits(bitRow{"record_type", "Type", 8, 1, 7, field.Dec, "erf.types.type"}),
		bytes(byteRow{"flags", "Flags", 9, 8, field.Hex, "erf.flags"}),
		bytes(byteRow{"record_length", "Record length", 10, 16, field.Dec, "erf.rlen"}),
		bytes(byteRow{"lost", "Loss counter", 12, 16, field.Dec, "erf.lctr"}),
		bytes(byteRow{"wire_length", "Wire length", 14, 16, field.Dec, "erf.wlen"}),
	}}
	IPv4 = field.Header{Name: "ipv4", Label: "Internet Protocol version 4", Length: 20, Link: true, Fields: []field.Field{
		bits(bitRow{"ip_version", "Version", 0, 0, 4, field.Dec, "ip.version"}),
		bits(bitRow{"header_words", "Header length in words of 4 bytes", 0, 4, 4, field.Dec, "ip.hdr_len"}),
		bits(bitRow{"dscp", "DSCP", 1, 0, 6, field.Dec, "ip.dsfield.dscp"}),
		bits(bitRow{"ecn", "ECN", 1, 6, 2, field.Dec, "ip.dsfield.ecn"}),
		bytes(byteRow{"total_length", "Total length", 2, 16, field.Dec, "ip.len"}),
		bytes(byteRow{"identification", "Identification", 4, 16, field.Hex, "ip.id"}),
		bits(bitRow{"reserved", "Reserved", 6, 0, 1, field.Flag, "ip.flags.rb"}),
		bits(bitRow{"dont_fragment", "Don't fragment", 6, 1, 1, field.Flag, "ip.flags.df"}),
		bits(bitRow{"more_fragments", "More fragments", 6, 2, 1, field.Flag, "ip.flags.mf"}),
		bits(bitRow{"fragment_offset", "Fragment offset in units of 8 bytes", 6, 3, 13, field.Dec, "ip.frag_offset"}),
		bytes(byteRow{"ttl", "Time to live", 8, 8, field.Dec, "ip.ttl"}),
		named(bytes(byteRow{"protocol", "Protocol", 9, 8, field.Dec, "ip.proto"}), protocols),
		bytes(byteRow{"checksum", "Checksum", 10, 16, field.Hex, "ip.checksum"}),
		bytes(byteRow{"src", "Source", 12, 32, field.IPv4, "ip.src"}),
		bytes(byteRow{"dst", "Destination", 16, 32, field.IPv4, "ip.dst"}),
	}}
	IPv6 = field.Header{Name: "ipv6", Label: "Internet Protocol version 6", Length: 40, Link: true, Fields: []field.Field{
		bits(bitRow{"ip_version", "Version", 0, 0, 4, field.Dec, "ipv6.version"}),
		bits(bitRow{"traffic_class", "Traffic class", 0, 4, 8, field.Hex, "ipv6.tclass"}),
		bits(bitRow{"flow_label", "Flow label", 1, 4, 20, field.Hex, "ipv6.flow"}),
		bytes(byteRow{"payload_length", "Payload length", 4, 16, field.Dec, "ipv6.plen"}),
		named(bytes(byteRow{"next_header", "Next header", 6, 8, field.Dec, "ipv6.nxt"}), protocols),
		bytes(byteRow{"hop_limit", "Hop limit", 7, 8, field.Dec, "ipv6.hlim"}),
		bytes(byteRow{"src", "Source", 8, 128, field.IPv6, "ipv6.src"}),
		bytes(byteRow{"dst", "Destination", 24, 128, field.IPv6, "ipv6.dst"}),
	}}
	UDP = field.Header{Name: "udp", Label: "User Datagram Protocol", Length: 8, Link: true, Fields: []field.Field{
		bytes(byteRow{"src_port", "Source port", 0, 16, field.Dec, "udp.srcport"}),
		bytes(byteRow{"dst_port", "Destination port", 2, 16, field.Dec, "udp.dstport"}),
		bytes(byteRow{"length", "Length", 4, 16, field.Dec, "udp.length"}),
		bytes(byteRow{"checksum", "Checksum", 6, 16, field.Hex, "udp.checksum"}),
	}}
	TCP = field.Header{Name: "tcp", Label: "Transmission Control Protocol", Length: 60, Link: true, Fields: []field.Field{
		bytes(byteRow{"src_port", "Source port", 0, 16, field.Dec, "tcp.srcport"}),
		bytes(byteRow{"dst_port", "Destination port", 2, 16, field.Dec, "tcp.dstport"}),
		bytes(byteRow{"seq", "Raw sequence number", 4, 32, field.Dec, "tcp.seq_raw"}),
		bytes(byteRow{"ack", "Raw acknowledgement number", 8, 32, field.Dec, "tcp.ack_raw"}),
		bits(bitRow{"header_words", "Header length in words of 4 bytes", 12, 0, 4, field.Dec, "tcp.hdr_len"}),
		bits(bitRow{"urg", "URG", 13, 2, 1, field.Flag, "tcp.flags.urg"}),
		bits(bitRow{"ack_flag", "ACK", 13, 3, 1, field.Flag, "tcp.flags.ack"}),
		bits(bitRow{"psh", "PSH", 13, 4, 1, field.Flag, "tcp.flags.push"}),
		bits(bitRow{"rst", "RST", 13, 5, 1, field.Flag, "tcp.flags.reset"}),
		bits(bitRow{"syn", "SYN", 13, 6, 1, field.Flag, "tcp.flags.syn"}),
		bits(bitRow{"fin", "FIN", 13, 7, 1, field.Flag, "tcp.flags.fin"}),
		bytes(byteRow{"window", "Window", 14, 16, field.Dec, "tcp.window_size_value"}),
		bytes(byteRow{"checksum", "Checksum", 16, 16, field.Hex, "tcp.checksum"}),
	}}
	VXLAN = field.Header{Name: "vxlan", Label: "VXLAN", Length: 8, Link: true, Fields: []field.Field{
		bytes(byteRow{"flags", "Flags", 0, 16, field.Hex, "vxlan.flags"}),
		bytes(byteRow{"group", "Group policy", 2, 16, field.Dec, "vxlan.gbp"}),
		bytes(byteRow{"vni", "VNI", 4, 24, field.Dec, "vxlan.vni"}),
		bytes(byteRow{"reserved", "Reserved", 7, 8, field.Hex, "vxlan.reserved8"}),
	}}
	Geneve = field.Header{Name: "geneve", Label: "Geneve", Length: 8, Link: true, Fields: []field.Field{
		bits(bitRow{"version", "Version", 0, 0, 2, field.Dec, "geneve.version"}),
		bits(bitRow{"option_words", "Length of the options in words of 4 bytes", 0, 2, 6, field.Dec, ""}),
		bits(bitRow{"control", "Control packet", 1, 0, 1, field.Flag, "geneve.flags.oam"}),
		bits(bitRow{"critical", "Critical options present", 1, 1, 1, field.Flag, "geneve.flags.critical"}),
		bits(bitRow{"reserved6", "Reserved", 1, 2, 6, field.Hex, ""}),
		named(bytes(byteRow{"protocol", "Protocol", 2, 16, field.Hex, "geneve.proto_type"}), etherTypes),
		bytes(byteRow{"vni", "VNI", 4, 24, field.Dec, "geneve.vni"}),
		bytes(byteRow{"reserved8", "Reserved", 7, 8, field.Hex, "geneve.reserved"}),
	}}
	GeneveOption = field.Header{Name: "geneve_option", Label: "Geneve option", Length: 4, Link: true, Fields: []field.Field{
		bytes(byteRow{"class", "Class", 0, 16, field.Hex, "geneve.option.class"}),
		bytes(byteRow{"option_type", "Type", 2, 8, field.Hex, "geneve.option.type"}),
		bits(bitRow{"words", "Length of the data in words of 4 bytes", 3, 3, 5, field.Dec, ""}),
	}}
	GRE = field.Header{Name: "gre", Label: "Generic Routing Encapsulation", Length: 4, Link: true, Fields: []field.Field{
		bytes(byteRow{"flags", "Flags and version", 0, 16, field.Hex, "gre.flags_and_version"}),
		named(bytes(byteRow{"protocol", "Protocol", 2, 16, field.Hex, "gre.proto"}), etherTypes),
	}}
	GREChecksum = field.Header{Name: "gre_checksum", Label: "Checksum of GRE", Length: 4, Link: true, Fields: []field.Field{
		bytes(byteRow{"checksum", "Checksum", 0, 16, field.Hex, "gre.checksum"}),
		bytes(byteRow{"reserved", "Reserved", 2, 16, field.Hex, "gre.offset"}),
	}}
	GREKey = field.Header{Name: "gre_key", Label: "Key of GRE", Length: 4, Link: true, Fields: []field.Field{
		bytes(byteRow{"key", "Key", 0, 32, field.Hex, "gre.key"}),
	}}
	GRESequence = field.Header{Name: "gre_sequence", Label: "Sequence number of GRE", Length: 4, Link: true, Fields: []field.Field{
		bytes(byteRow{"number", "Sequence number", 0, 32, field.Dec, "gre.sequence_number"}),
	}}
	ERSPAN2 = field.Header{Name: "erspan", Label: "Encapsulated Remote SPAN, type II", Length: 8, Link: true, Fields: []field.Field{
		bits(bitRow{"version", "Version", 0, 0, 4, field.Dec, "erspan.version"}),
		bits(bitRow{"vlan", "VLAN", 0, 4, 12, field.Dec, "erspan.vlan"}),
		bits(bitRow{"cos", "Class of service", 2, 0, 3, field.Dec, "erspan.cos"}),
		bits(bitRow{"encapsulation", "VLAN encapsulation", 2, 3, 2, field.Dec, "erspan.encap"}),
		bits(bitRow{"truncated", "The switch truncated the packet", 2, 5, 1, field.Flag, "erspan.truncated"}),
		bits(bitRow{"session", "Session ID", 2, 6, 10, field.Dec, "erspan.spanid"}),
		bits(bitRow{"reserved", "Reserved", 4, 0, 12, field.Hex, "erspan.reserved"}),
		bits(bitRow{"index", "Index of the port", 5, 4, 20, field.Dec, "erspan.index"}),
	}}
	ERSPAN3 = field.Header{Name: "erspan", Label: "Encapsulated Remote SPAN, type III", Length: 12, Link: true, Fields: []field.Field{
		bits(bitRow{"version", "Version", 0, 0, 4, field.Dec, "erspan.version"}),
		bits(bitRow{"vlan", "VLAN", 0, 4, 12, field.Dec, "erspan.vlan"}),
		bits(bitRow{"cos", "Class of service", 2, 0, 3, field.Dec, "erspan.cos"}),
		bits(bitRow{"bad", "Integrity of the packet: 0 good, 1 short, 2 oversized, 3 bad", 2, 3, 2, field.Dec, "erspan.bso"}),
		bits(bitRow{"truncated", "The switch truncated the packet", 2, 5, 1, field.Flag, "erspan.truncated"}),
		bits(bitRow{"session", "Session ID", 2, 6, 10, field.Dec, "erspan.spanid"}),
		bytes(byteRow{"timestamp", "Timestamp", 4, 32, field.Dec, "erspan.timestamp"}),
		bytes(byteRow{"security_group", "Security group tag", 8, 16, field.Dec, "erspan.sgt"}),
		bits(bitRow{"protocol_data", "The packet is an Ethernet frame", 10, 0, 1, field.Flag, "erspan.p"}),
		bits(bitRow{"frame_type", "Frame type", 10, 1, 5, field.Dec, "erspan.ft"}),
		bits(bitRow{"hardware", "Hardware ID", 10, 6, 6, field.Dec, "erspan.hw"}),
		bits(bitRow{"egress", "Mirrored when it left the switch", 11, 4, 1, field.Flag, "erspan.direction"}),
		bits(bitRow{"granularity", "Granularity of the timestamp", 11, 5, 2, field.Dec, "erspan.gra"}),
		bits(bitRow{"subheader", "A platform subheader follows", 11, 7, 1, field.Flag, "erspan.o"}),
	}}
	ERSPANPlatform = field.Header{Name: "erspan_platform", Label: "Platform subheader of ERSPAN", Length: 8, Link: true, Fields: []field.Field{
		bits(bitRow{"platform", "Platform ID", 0, 0, 6, field.Dec, "erspan.platid"}),
		bits(bitRow{"info", "Information of this platform", 0, 6, 58, field.Hex, ""}),
	}}
	MPLS = field.Header{Name: "mpls", Label: "MPLS label", Length: 4, Link: true, Fields: []field.Field{
		bits(bitRow{"label", "Label", 0, 0, 20, field.Dec, "mpls.label"}),
		bits(bitRow{"traffic_class", "Traffic class", 2, 4, 3, field.Dec, "mpls.exp"}),
		bits(bitRow{"bottom", "Bottom of the stack", 2, 7, 1, field.Flag, "mpls.bottom"}),
		bytes(byteRow{"ttl", "Time to live", 3, 8, field.Dec, "mpls.ttl"}),
	}}
	ControlWord = field.Header{Name: "control_word", Label: "Control word of an Ethernet pseudowire", Length: 4, Link: true, Fields: []field.Field{
		bits(bitRow{"reserved", "Reserved", 0, 4, 12, field.Hex, ""}),
		bytes(byteRow{"number", "Sequence number", 2, 16, field.Dec, "pweth.cw.sequence_number"}),
	}}
)

// The headers of the InfiniBand transport (package rocev2).
var (
	LRH = field.Header{Name: "lrh", Label: "Local Route Header", Length: rocev2.LRHLen, Fields: []field.Field{
		bits(bitRow{"vl", "Virtual lane", 0, 0, 4, field.Dec, "infiniband.lrh.vl"}),
		bits(bitRow{"lver", "Link version", 0, 4, 4, field.Dec, "infiniband.lrh.lver"}),
		bits(bitRow{"sl", "Service level", 1, 0, 4, field.Dec, "infiniband.lrh.sl"}),
		bits(bitRow{"reserved2", "Reserved", 1, 4, 2, field.Dec, "infiniband.lrh.reserved2"}),
		bits(bitRow{"lnh", "Link next header", 1, 6, 2, field.Dec, "infiniband.lrh.lnh"}),
		bytes(byteRow{"dlid", "Destination LID", 2, 16, field.Dec, "infiniband.lrh.dlid"}),
		bits(bitRow{"reserved5", "Reserved", 4, 0, 5, field.Dec, "infiniband.lrh.reserved5"}),
		bits(bitRow{"words", "Packet length in words of 4 bytes", 4, 5, 11, field.Dec, "infiniband.lrh.pktlen"}),
		bytes(byteRow{"slid", "Source LID", 6, 16, field.Dec, "infiniband.lrh.slid"}),
	}}
	GRH = field.Header{Name: "grh", Label: "Global Route Header", Length: rocev2.GRHLen, Fields: []field.Field{
		bits(bitRow{"ip_version", "IP version", 0, 0, 4, field.Dec, "infiniband.grh.ipver"}),
		bits(bitRow{"traffic_class", "Traffic class", 0, 4, 8, field.Hex, "infiniband.grh.tclass"}),
		bits(bitRow{"flow_label", "Flow label", 1, 4, 20, field.Hex, "infiniband.grh.flowlabel"}),
		bytes(byteRow{"payload_length", "Payload length", 4, 16, field.Dec, "infiniband.grh.paylen"}),
		bytes(byteRow{"next_header", "Next header", 6, 8, field.Hex, "infiniband.grh.nxthdr"}),
		bytes(byteRow{"hop_limit", "Hop limit", 7, 8, field.Dec, "infiniband.grh.hoplmt"}),
		bytes(byteRow{"source_gid", "Source GID", 8, 128, field.IPv6, "infiniband.grh.sgid"}),
		bytes(byteRow{"destination_gid", "Destination GID", 24, 128, field.IPv6, "infiniband.grh.dgid"}),
	}}
	BTH = field.Header{Name: "bth", Label: "Base Transport Header", Length: rocev2.BTHLen, Fields: []field.Field{
		named(bytes(byteRow{"opcode", "Opcode", 0, 8, field.Hex, "infiniband.bth.opcode"}), func(v uint64) string { return rocev2.Opcode(v).String() }),
		bits(bitRow{"solicited_event", "Solicited event", 1, 0, 1, field.Flag, "infiniband.bth.se"}),
		bits(bitRow{"mig_req", "MigReq", 1, 1, 1, field.Flag, "infiniband.bth.m"}),
		bits(bitRow{"pad_count", "Pad count", 1, 2, 2, field.Dec, "infiniband.bth.padcnt"}),
		bits(bitRow{"tver", "Header version", 1, 4, 4, field.Dec, "infiniband.bth.tver"}),
		bytes(byteRow{"p_key", "P_Key", 2, 16, field.Dec, "infiniband.bth.p_key"}),
		bits(bitRow{"fecn", "FECN", 4, 0, 1, field.Flag, ""}),
		bits(bitRow{"becn", "BECN", 4, 1, 1, field.Flag, ""}),
		bits(bitRow{"reserved6", "Reserved", 4, 2, 6, field.Dec, ""}),
		bytes(byteRow{"dest_qpn", "Destination QPN", 5, 24, field.Hex, "infiniband.bth.destqp"}),
		bits(bitRow{"ack_req", "AckReq", 8, 0, 1, field.Flag, "infiniband.bth.a"}),
		bits(bitRow{"reserved7", "Reserved", 8, 1, 7, field.Dec, "infiniband.bth.reserved7"}),
		bytes(byteRow{"psn", "PSN", 9, 24, field.Dec, "infiniband.bth.psn"}),
	}}
	RDETH = field.Header{Name: "rdeth", Label: "Reliable Datagram ETH", Length: rocev2.RDETHLen, Fields: []field.Field{
		bytes(byteRow{"reserved8", "Reserved", 0, 8, field.Dec, ""}),
		bytes(byteRow{"ee_context", "End-to-end context", 1, 24, field.Hex, "infiniband.rdeth.eecnxt"}),
	}}
	DETH = field.Header{Name: "deth", Label: "Datagram ETH", Length: rocev2.DETHLen, Fields: []field.Field{
		bytes(byteRow{"q_key", "Q_Key", 0, 32, field.Dec, "infiniband.deth.q_key"}),
		bytes(byteRow{"reserved8", "Reserved", 4, 8, field.Dec, ""}),
		bytes(byteRow{"source_qpn", "Source QPN", 5, 24, field.Hex, "infiniband.deth.srcqp"}),
	}}
	XRCETH = field.Header{Name: "xrceth", Label: "XRC ETH", Length: rocev2.XRCETHLen, Fields: []field.Field{
		bytes(byteRow{"reserved8", "Reserved", 0, 8, field.Dec, ""}),
		bytes(byteRow{"xrcsrq", "XRC shared receive queue", 1, 24, field.Hex, ""}),
	}}
	FETH = field.Header{Name: "feth", Label: "FLUSH ETH", Length: rocev2.FETHLen, Fields: []field.Field{
		bits(bitRow{"reserved", "Reserved", 0, 0, 26, field.Hex, ""}),
		bits(bitRow{"selectivity", "Selectivity level", 3, 2, 2, field.Dec, ""}),
		bits(bitRow{"placement", "Placement type", 3, 4, 4, field.Dec, ""}),
	}}
	RETH = field.Header{Name: "reth", Label: "RDMA ETH", Length: rocev2.RETHLen, Fields: []field.Field{
		bytes(byteRow{"virtual_address", "Virtual address", 0, 64, field.Hex, "infiniband.reth.va"}),
		bytes(byteRow{"r_key", "R_Key", 8, 32, field.Hex, "infiniband.reth.r_key"}),
		bytes(byteRow{"dma_length", "DMA length", 12, 32, field.Dec, "infiniband.reth.dmalen"}),
	}}
	AtomicETH = field.Header{Name: "atomiceth", Label: "Atomic ETH", Length: rocev2.AtomicETHLen, Fields: []field.Field{
		bytes(byteRow{"virtual_address", "Virtual address", 0, 64, field.Hex, "infiniband.reth.va"}),
		bytes(byteRow{"r_key", "R_Key", 8, 32, field.Hex, "infiniband.reth.r_key"}),
		bytes(byteRow{"swap_add", "Swap or add data", 12, 64, field.Hex, "infiniband.atomiceth.swapdt"}),
		bytes(byteRow{"compare", "Compare data", 20, 64, field.Hex, "infiniband.atomiceth.cmpdt"}),
	}}
	AETH = field.Header{Name: "aeth", Label: "ACK ETH", Length: rocev2.AETHLen, Fields: []field.Field{
		named(bytes(byteRow{"syndrome", "Syndrome", 0, 8, field.Dec, "infiniband.aeth.syndrome"}), func(v uint64) string { return rocev2.Syndrome(v).String() }),
		bytes(byteRow{"msn", "MSN", 1, 24, field.Dec, "infiniband.aeth.msn"}),
	}}
	AtomicAckETH = field.Header{Name: "atomicacketh", Label: "Atomic ACK ETH", Length: rocev2.AtomicAckETHLen, Fields: []field.Field{
		bytes(byteRow{"original", "Original remote data", 0, 64, field.Hex, "infiniband.atomicacketh.origremdt"}),
	}}
	ImmDt = field.Header{Name: "immdt", Label: "Immediate Data", Length: rocev2.ImmDtLen, Fields: []field.Field{
		bytes(byteRow{"immediate", "Immediate data", 0, 32, field.Hex, "infiniband.immdt"}),
	}}
	IETH = field.Header{Name: "ieth", Label: "Invalidate ETH", Length: rocev2.IETHLen, Fields: []field.Field{
		bytes(byteRow{"r_key", "R_Key to invalidate", 0, 32, field.Hex, "infiniband.ieth"}),
	}}
	// IPoIB is the header of a datagram of IP over InfiniBand (RFC 4391, section 6).
	IPoIB = field.Header{Name: "ipoib", Label: "IP over InfiniBand", Length: 4, Fields: []field.Field{
		named(bytes(byteRow{"ethertype", "EtherType", 0, 16, field.Hex, "ipoib.type"}), etherTypes),
		bytes(byteRow{"reserved", "Reserved", 2, 16, field.Hex, "ipoib.reserved"}),
	}}
)

// pauseTimes returns the fields for the pause times of the eight priorities in a PFC frame.
func pauseTimes() (fields []field.Field) {
	for i := range 8 {
		n := strconv.Itoa(i)
		fields = append(fields, bytes(byteRow{"quanta_" + n, "Pause time of priority " + n + " in units of 512 bit times", 4 + 2*i, 16, field.Dec, "macc.cbfc.pause_time.c" + n}))
	}
	return fields
}

// madTables lists the tables of the header of management datagrams. The tables differ only in the
// names of the attributes, which depend on the management class.
var madTables = func() map[uint8]*field.Header {
	tables := map[uint8]*field.Header{}
	for _, class := range []uint8{rocev2.ClassCM, rocev2.ClassSubn, rocev2.ClassSubnDirected, rocev2.ClassSubnAdm, rocev2.ClassPerf, 0} {
		tables[class] = &field.Header{Name: "mad", Label: "Management Datagram", Length: rocev2.MADLen, Fields: []field.Field{
			bytes(byteRow{"base_version", "Base version", 0, 8, field.Dec, "infiniband.mad.baseversion"}),
			named(bytes(byteRow{"class", "Management class", 1, 8, field.Hex, "infiniband.mad.mgmtclass"}), func(v uint64) string { return rocev2.ClassName(uint8(v)) }),
			bytes(byteRow{"class_version", "Class version", 2, 8, field.Dec, "infiniband.mad.classversion"}),
			named(bytes(byteRow{"method", "Method", 3, 8, field.Hex, "infiniband.mad.method"}), func(v uint64) string { return rocev2.MethodName(uint8(v)) }),
			bytes(byteRow{"status", "Status", 4, 16, field.Hex, "infiniband.mad.status"}),
			bytes(byteRow{"class_specific", "Class specific", 6, 16, field.Hex, "infiniband.mad.classspecific"}),
			bytes(byteRow{"transaction_id", "Transaction ID", 8, 64, field.Hex, "infiniband.mad.transactionid"}),
			named(bytes(byteRow{"attribute", "Attribute", 16, 16, field.Hex, "infiniband.mad.attributeid"}), func(v uint64) string { return rocev2.AttributeName(class, uint16(v)) }),
			bytes(byteRow{"reserved", "Reserved", 18, 16, field.Hex, ""}),
			bytes(byteRow{"attribute_modifier", "Attribute modifier", 20, 32, field.Hex, "infiniband.mad.attributemodifier"}),
		}}
	}
	return tables
}()

// MAD returns the table of the header of management datagrams of a class.
func MAD(class uint8) *field.Header {
	if table := madTables[class]; table != nil {
		return table
	}
	return madTables[0]
}

// pathRows returns the fields of the primary or alternate path in a REQ.
func pathRows(prefix, label, alias string, at int) []field.Field {
	return []field.Field{
		bytes(byteRow{prefix + "_local_lid", label + " local LID", at, 16, field.Dec, alias + "locallid"}),
		bytes(byteRow{prefix + "_remote_lid", label + " remote LID", at + 2, 16, field.Dec, alias + "remotelid"}),
		bytes(byteRow{prefix + "_local_gid", label + " local GID", at + 4, 128, field.IPv6, alias + "localgid"}),
		bytes(byteRow{prefix + "_remote_gid", label + " remote GID", at + 20, 128, field.IPv6, alias + "remotegid"}),
		bits(bitRow{prefix + "_flow_label", label + " flow label", at + 36, 0, 20, field.Hex, alias + "flowlabel"}),
		bits(bitRow{prefix + "_packet_rate", label + " packet rate", at + 39, 2, 6, field.Dec, alias + "pktrate"}),
		bytes(byteRow{prefix + "_traffic_class", label + " traffic class", at + 40, 8, field.Hex, alias + "tfcclass"}),
		bytes(byteRow{prefix + "_hop_limit", label + " hop limit", at + 41, 8, field.Dec, alias + "hoplim"}),
		bits(bitRow{prefix + "_sl", label + " service level", at + 42, 0, 4, field.Dec, alias + "sl"}),
		bits(bitRow{prefix + "_subnet_local", label + " subnet local", at + 42, 4, 1, field.Flag, alias + "subnetlocal"}),
		bits(bitRow{prefix + "_ack_timeout", label + " local ACK timeout", at + 43, 0, 5, field.Dec, alias + "localacktout"}),
	}
}

func join(lists ...[]field.Field) (all []field.Field) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// cm returns the table of one message of the connection manager. All these tables have the name
// "cm".
func cm(label string, rows ...[]field.Field) *field.Header {
	return &field.Header{Name: "cm", Label: "CM " + label, Length: rocev2.CMSize, Fields: join(rows...)}
}

// commIDs returns the fields of the communication IDs. The argument message is the part of Wireshark's
// names that stands for the message, "" if Wireshark does not name the fields of the message.
func commIDs(message string) []field.Field {
	local, remote := "", ""
	if message != "" {
		local, remote = "infiniband.cm."+message+".localcommid", "infiniband.cm."+message+".remotecommid"
	}
	return []field.Field{
		bytes(byteRow{"local_comm_id", "Local communication ID", 0, 32, field.Hex, local}),
		bytes(byteRow{"remote_comm_id", "Remote communication ID", 4, 32, field.Hex, remote}),
	}
}

// CM maps each attribute ID of the connection manager to the table of its message.
var CM = map[rocev2.CMAttribute]*field.Header{
	rocev2.CMReq: cm("REQ", []field.Field{
		bytes(byteRow{"local_comm_id", "Local communication ID", 0, 32, field.Hex, "infiniband.cm.req"}),
		bytes(byteRow{"vendor_id", "Vendor ID", 5, 24, field.Hex, ""}),
		bytes(byteRow{"service_id", "Service ID", 8, 64, field.Hex, "infiniband.cm.req.serviceid"}),
		bytes(byteRow{"local_ca_guid", "Local CA GUID", 16, 64, field.Hex, "infiniband.cm.req.localcaguid"}),
		bytes(byteRow{"local_q_key", "Local Q_Key", 28, 32, field.Dec, "infiniband.cm.req.localqkey"}),
		bytes(byteRow{"local_qpn", "Local QPN", 32, 24, field.Hex, "infiniband.cm.req.localqpn"}),
		bytes(byteRow{"responder_resources", "Responder resources", 35, 8, field.Dec, "infiniband.cm.req.responderres"}),
		bytes(byteRow{"local_eecn", "Local EECN", 36, 24, field.Hex, "infiniband.cm.req.localeecn"}),
		bytes(byteRow{"initiator_depth", "Initiator depth", 39, 8, field.Dec, "infiniband.cm.req.initdepth"}),
		bytes(byteRow{"remote_eecn", "Remote EECN", 40, 24, field.Hex, "infiniband.cm.req.remoteeecn"}),
		bits(bitRow{"remote_cm_timeout", "Remote CM response timeout", 43, 0, 5, field.Dec, "infiniband.cm.req.remoteresptout"}),
		bits(bitRow{"service_type", "Transport service type", 43, 5, 2, field.Dec, "infiniband.cm.req.transpsvctype"}),
		bits(bitRow{"flow_control", "End-to-end flow control", 43, 7, 1, field.Flag, "infiniband.cm.req.e2eflowctrl"}),
		bytes(byteRow{"starting_psn", "Starting PSN", 44, 24, field.Dec, "infiniband.cm.req.startpsn"}),
		bits(bitRow{"local_cm_timeout", "Local CM response timeout", 47, 0, 5, field.Dec, "infiniband.cm.req.localresptout"}),
		bits(bitRow{"retry_count", "Retry count", 47, 5, 3, field.Dec, "infiniband.cm.req.retrcount"}),
		bytes(byteRow{"p_key", "P_Key", 48, 16, field.Dec, "infiniband.cm.req.pkey"}),
		named(bits(bitRow{"path_mtu", "Path MTU", 50, 0, 4, field.Dec, "infiniband.cm.req.pppmtu"}), enum(map[uint64]string{1: "256", 2: "512", 3: "1024", 4: "2048", 5: "4096"})),
		bits(bitRow{"rdc_exists", "RDC exists", 50, 4, 1, field.Flag, "infiniband.cm.req.rdcexist"}),
		bits(bitRow{"rnr_retry_count", "RNR retry count", 50, 5, 3, field.Dec, "infiniband.cm.req.rnrretrcount"}),
		bits(bitRow{"max_cm_retries", "Max CM retries", 51, 0, 4, field.Dec, "infiniband.cm.req.maxcmretr"}),
		bits(bitRow{"srq", "SRQ", 51, 4, 1, field.Flag, "infiniband.cm.req.srq"}),
		bits(bitRow{"extended_transport", "Extended transport type", 51, 5, 3, field.Dec, "infiniband.cm.req.ext_transport"}),
	}, pathRows("primary", "Primary", "infiniband.cm.req.prim_", 52), pathRows("alternate", "Alternate", "infiniband.cm.req.alt_", 96),
		[]field.Field{bytes(byteRow{"private_data", "Private data", 140, 92 * 8, field.Bytes, ""})}),
	rocev2.CMMra: cm("MRA", commIDs(""), []field.Field{
		bits(bitRow{"message_mraed", "Message MRAed", 8, 0, 2, field.Dec, ""}),
		bits(bitRow{"service_timeout", "Service timeout", 9, 0, 5, field.Dec, ""}),
		bytes(byteRow{"private_data", "Private data", 10, 222 * 8, field.Bytes, ""}),
	}),
	rocev2.CMRej: cm("REJ", commIDs("rej"), []field.Field{
		bits(bitRow{"message_rejected", "Message rejected", 8, 0, 2, field.Dec, "infiniband.cm.rej.msgrej"}),
		bits(bitRow{"info_length", "Reject info length", 9, 0, 7, field.Dec, "infiniband.cm.rej.rejinfolen"}),
		named(bytes(byteRow{"reason", "Reason", 10, 16, field.Dec, "infiniband.cm.rej.reason"}), func(v uint64) string { return rocev2.RejectReason(v).String() }),
		bytes(byteRow{"info", "Additional reject information", 12, 72 * 8, field.Bytes, "infiniband.cm.rej.ari"}),
		bytes(byteRow{"private_data", "Private data", 84, 148 * 8, field.Bytes, "infiniband.cm.rej.private"}),
	}),
	rocev2.CMRep: cm("REP", []field.Field{
		bytes(byteRow{"local_comm_id", "Local communication ID", 0, 32, field.Hex, "infiniband.cm.rep"}),
		bytes(byteRow{"remote_comm_id", "Remote communication ID", 4, 32, field.Hex, "infiniband.cm.rep.remotecommid"}),
		bytes(byteRow{"local_q_key", "Local Q_Key", 8, 32, field.Dec, "infiniband.cm.rep.localqkey"}),
		bytes(byteRow{"local_qpn", "Local QPN", 12, 24, field.Hex, "infiniband.cm.rep.localqpn"}),
		bytes(byteRow{"local_eecn", "Local EE context", 16, 24, field.Hex, "infiniband.cm.rep.localeecn"}),
		bytes(byteRow{"starting_psn", "Starting PSN", 20, 24, field.Dec, "infiniband.cm.rep.startpsn"}),
		bytes(byteRow{"responder_resources", "Responder resources", 24, 8, field.Dec, "infiniband.cm.rep.respres"}),
		bytes(byteRow{"initiator_depth", "Initiator depth", 25, 8, field.Dec, "infiniband.cm.rep.initdepth"}),
		bits(bitRow{"target_ack_delay", "Target ACK delay", 26, 0, 5, field.Dec, "infiniband.cm.rep.tgtackdelay"}),
		bits(bitRow{"failover_accepted", "Failover accepted", 26, 5, 2, field.Dec, "infiniband.cm.rep.failoveracc"}),
		bits(bitRow{"flow_control", "End-to-end flow control", 26, 7, 1, field.Flag, "infiniband.cm.rep.e2eflowctrl"}),
		bits(bitRow{"rnr_retry_count", "RNR retry count", 27, 0, 3, field.Dec, "infiniband.cm.rep.rnrretrcount"}),
		bits(bitRow{"srq", "SRQ", 27, 3, 1, field.Flag, "infiniband.cm.rep.srq"}),
		bytes(byteRow{"local_ca_guid", "Local CA GUID", 28, 64, field.Hex, "infiniband.cm.rep.localcaguid"}),
		bytes(byteRow{"private_data", "Private data", 36, 196 * 8, field.Bytes, "infiniband.cm.rep.private"}),
	}),
	rocev2.CMRtu: cm("RTU", commIDs("rtu"), []field.Field{bytes(byteRow{"private_data", "Private data", 8, 224 * 8, field.Bytes, "infiniband.cm.rtu.private"})}),
	rocev2.CMDreq: cm("DREQ", commIDs("dreq"), []field.Field{
		bytes(byteRow{"remote_qpn", "Remote QPN", 8, 24, field.Hex, "infiniband.cm.req.remoteqpneecn"}),
		bytes(byteRow{"private_data", "Private data", 12, 220 * 8, field.Bytes, "infiniband.cm.dreq.private"}),
	}),
	rocev2.CMDrep: cm("DREP", commIDs("drsp"), []field.Field{bytes(byteRow{"private_data", "Private data", 8, 224 * 8, field.Bytes, "infiniband.cm.drsp.private"})}),
	rocev2.CMSidrReq: cm("SIDR_REQ", []field.Field{
		bytes(byteRow{"request_id", "Request ID", 0, 32, field.Hex, ""}),
		bytes(byteRow{"p_key", "P_Key", 4, 16, field.Dec, ""}),
		bytes(byteRow{"service_id", "Service ID", 8, 64, field.Hex, ""}),
		bytes(byteRow{"private_data", "Private data", 16, 216 * 8, field.Bytes, ""}),
	}),
	rocev2.CMSidrRep: cm("SIDR_REP", []field.Field{
		bytes(byteRow{"request_id", "Request ID", 0, 32, field.Hex, ""}),
		bytes(byteRow{"status", "Status", 4, 8, field.Dec, ""}),
		bytes(byteRow{"info_length", "Info length", 5, 8, field.Dec, ""}),
		bytes(byteRow{"qpn", "QPN", 8, 24, field.Hex, ""}),
		bytes(byteRow{"service_id", "Service ID", 12, 64, field.Hex, ""}),
		bytes(byteRow{"q_key", "Q_Key", 20, 32, field.Dec, ""}),
		bytes(byteRow{"info", "Additional information", 24, 72 * 8, field.Bytes, ""}),
		bytes(byteRow{"private_data", "Private data", 96, 136 * 8, field.Bytes, ""}),
	}),
	rocev2.CMLap: cm("LAP", commIDs(""), []field.Field{
		bytes(byteRow{"remote_qpn", "Remote QPN", 12, 24, field.Hex, ""}),
		bits(bitRow{"remote_cm_timeout", "Remote CM response timeout", 15, 0, 5, field.Dec, ""}),
		bytes(byteRow{"local_lid", "Alternate local LID", 20, 16, field.Dec, ""}),
		bytes(byteRow{"remote_lid", "Alternate remote LID", 22, 16, field.Dec, ""}),
		bytes(byteRow{"local_gid", "Alternate local GID", 24, 128, field.IPv6, ""}),
		bytes(byteRow{"remote_gid", "Alternate remote GID", 40, 128, field.IPv6, ""}),
		bits(bitRow{"flow_label", "Flow label", 56, 0, 20, field.Hex, ""}),
		bytes(byteRow{"traffic_class", "Traffic class", 59, 8, field.Hex, ""}),
		bytes(byteRow{"hop_limit", "Hop limit", 60, 8, field.Dec, ""}),
		bits(bitRow{"packet_rate", "Packet rate", 61, 2, 6, field.Dec, ""}),
		bits(bitRow{"sl", "Service level", 62, 0, 4, field.Dec, ""}),
		bits(bitRow{"subnet_local", "Subnet local", 62, 4, 1, field.Flag, ""}),
		bits(bitRow{"ack_timeout", "Local ACK timeout", 63, 0, 5, field.Dec, ""}),
		bytes(byteRow{"private_data", "Private data", 64, 168 * 8, field.Bytes, ""}),
	}),
	rocev2.CMApr: cm("APR", commIDs(""), []field.Field{
		bytes(byteRow{"info_length", "Info length", 8, 8, field.Dec, ""}),
		bytes(byteRow{"status", "Status", 9, 8, field.Dec, ""}),
		bytes(byteRow{"info", "Additional information", 12, 72 * 8, field.Bytes, ""}),
		bytes(byteRow{"private_data", "Private data", 84, 148 * 8, field.Bytes, ""}),
	}),
}

// ipCM lists the fields of the IP CM header before its addresses.
var ipCM = []field.Field{
	bits(bitRow{"major_version", "Major version", 0, 0, 4, field.Dec, "infiniband.cm.req.ip_cm.majv"}),
	bits(bitRow{"minor_version", "Minor version", 0, 4, 4, field.Dec, "infiniband.cm.req.ip_cm.minv"}),
	bits(bitRow{"ip_version", "IP version", 1, 0, 4, field.Dec, "infiniband.cm.req.ip_cm.ipv"}),
	bits(bitRow{"reserved", "Reserved", 1, 4, 4, field.Dec, "infiniband.cm.req.ip_cm.reserved"}),
	bytes(byteRow{"source_port", "Source port", 2, 16, field.Dec, "infiniband.cm.req.ip_cm.sport"}),
}

// IPCM and PrivateData are in the private data of connection manager messages and MPA frames.
var (
	IPCM = field.Header{Name: "ip_cm", Label: "IP CM header", Length: rocev2.IPCMLen, Fields: join(ipCM, []field.Field{
		bytes(byteRow{"source", "Source", 4, 128, field.IPv6, "infiniband.cm.req.ip_cm.sip6"}),
		bytes(byteRow{"destination", "Destination", 20, 128, field.IPv6, "infiniband.cm.req.ip_cm.dip6"}),
	})}
	// IPCMv4 is the form of IPCM for IP version 4.
	IPCMv4 = field.Header{Name: "ip_cm", Label: "IP CM header", Length: rocev2.IPCMLen, Fields: join(ipCM, []field.Field{
		bytes(byteRow{"source", "Source", 16, 32, field.IPv4, "infiniband.cm.req.ip_cm.sip4"}),
		bytes(byteRow{"destination", "Destination", 32, 32, field.IPv4, "infiniband.cm.req.ip_cm.dip4"}),
	})}
	PrivateData = field.Header{Name: "rpcrdma_private", Label: "RPC-over-RDMA private data", Length: rpcrdma.PrivateDataLen, Fields: []field.Field{
		bytes(byteRow{"format", "Format identifier", 0, 32, field.Hex, ""}),
		bytes(byteRow{"version", "Version", 4, 8, field.Dec, ""}),
		bits(bitRow{"reserved", "Reserved", 5, 0, 7, field.Dec, ""}),
		bits(bitRow{"remote_invalidation", "Remote invalidation", 5, 7, 1, field.Flag, ""}),
		bytes(byteRow{"send_size_code", "Send size in units of 1024 bytes, minus 1", 6, 8, field.Dec, ""}),
		bytes(byteRow{"receive_size_code", "Receive size in units of 1024 bytes, minus 1", 7, 8, field.Dec, ""}),
	}}
)

// ddpControl lists the fields in the first byte of every DDP header.
var ddpControl = []field.Field{
	bits(bitRow{"tagged", "Tagged", 0, 0, 1, field.Flag, "iwarp_ddp.tagged_flag"}),
	bits(bitRow{"last", "Last", 0, 1, 1, field.Flag, "iwarp_ddp.last_flag"}),
	bits(bitRow{"reserved", "Reserved", 0, 2, 4, field.Dec, "iwarp_ddp.rsvd"}),
	bits(bitRow{"ddp_version", "DDP version", 0, 6, 2, field.Dec, "iwarp_ddp.dv"}),
}

// The headers of iWARP (package iwarp). DDP has the first control byte and RDMAP the second, so the
// table of RDMAP starts at the second byte.
var (
	MPAFrame = field.Header{Name: "mpa", Label: "MPA", Length: iwarp.MPALen, Fields: []field.Field{
		bits(bitRow{"markers", "Markers wanted", 16, 0, 1, field.Flag, "iwarp_mpa.marker_flag"}),
		bits(bitRow{"crc_wanted", "CRC wanted", 16, 1, 1, field.Flag, "iwarp_mpa.crc_flag"}),
		bits(bitRow{"reject", "Rejected", 16, 2, 1, field.Flag, "iwarp_mpa.rej_flag"}),
		bits(bitRow{"enhanced", "Enhanced", 16, 3, 1, field.Flag, ""}),
		bits(bitRow{"reserved", "Reserved", 16, 4, 4, field.Dec, ""}),
		bytes(byteRow{"revision", "Revision", 17, 8, field.Dec, "iwarp_mpa.rev"}),
		bytes(byteRow{"private_data_length", "Private data length", 18, 16, field.Dec, "iwarp_mpa.pdlength"}),
	}}
	DDPTagged = field.Header{Name: "ddp", Label: "DDP", Length: iwarp.TaggedLen, Fields: join(ddpControl, []field.Field{
		bytes(byteRow{"stag", "STag", 2, 32, field.Hex, "iwarp_ddp.stag"}),
		bytes(byteRow{"tagged_offset", "Tagged offset", 6, 64, field.Hex, "iwarp_ddp.tagged_offset"}),
	})}
	DDPUntagged = field.Header{Name: "ddp", Label: "DDP", Length: iwarp.UntaggedLen, Fields: join(ddpControl, []field.Field{
		bytes(byteRow{"queue", "Queue number", 6, 32, field.Dec, "iwarp_ddp.qn"}),
		bytes(byteRow{"sequence", "Message sequence number", 10, 32, field.Dec, "iwarp_ddp.msn"}),
		bytes(byteRow{"offset", "Message offset", 14, 32, field.Dec, "iwarp_ddp.mo"}),
	})}
	RDMAP = field.Header{Name: "rdmap", Label: "RDMAP", Length: 1, Fields: []field.Field{
		bits(bitRow{"rdmap_version", "RDMAP version", 0, 0, 2, field.Dec, "iwarp_rdma.version"}),
		bits(bitRow{"reserved", "Reserved", 0, 2, 2, field.Dec, "iwarp_rdma.rsv"}),
		named(bits(bitRow{"opcode", "Opcode", 0, 4, 4, field.Hex, "iwarp_rdma.opcode"}), func(v uint64) string { return iwarp.Opcode(v).String() }),
	}}
	InvalidateSTag = field.Header{Name: "rdmap", Label: "RDMAP", Length: 4, Fields: []field.Field{
		bytes(byteRow{"invalidate_stag", "STag to invalidate", 0, 32, field.Hex, "iwarp_rdma.inval_stag"}),
	}}
	ReadRequest = field.Header{Name: "rdmap", Label: "RDMAP", Length: iwarp.ReadRequestLen, Fields: []field.Field{
		bytes(byteRow{"sink_stag", "Data sink STag", 0, 32, field.Hex, "iwarp_rdma.sinkstag"}),
		bytes(byteRow{"sink_offset", "Data sink tagged offset", 4, 64, field.Hex, "iwarp_rdma.sinkto"}),
		bytes(byteRow{"read_size", "Read size", 12, 32, field.Dec, "iwarp_rdma.rdmardsz"}),
		bytes(byteRow{"source_stag", "Data source STag", 16, 32, field.Hex, "iwarp_rdma.srcstag"}),
		bytes(byteRow{"source_offset", "Data source tagged offset", 20, 64, field.Hex, "iwarp_rdma.srcto"}),
	}}
	Terminate = field.Header{Name: "rdmap", Label: "RDMAP", Length: iwarp.TerminateLen, Fields: []field.Field{
		bits(bitRow{"layer", "Layer", 0, 0, 4, field.Dec, "iwarp_rdma.term_layer"}),
		bits(bitRow{"error_type", "Error type", 0, 4, 4, field.Dec, ""}),
		bytes(byteRow{"error_code", "Error code", 1, 8, field.Hex, ""}),
		bits(bitRow{"header_length", "Segment length follows", 2, 0, 1, field.Flag, "iwarp_rdma.term_hdrct_m"}),
		bits(bitRow{"header_ddp", "DDP header follows", 2, 1, 1, field.Flag, "iwarp_rdma.hdrct_d"}),
		bits(bitRow{"header_rdmap", "RDMAP header follows", 2, 2, 1, field.Flag, "iwarp_rdma.hdrct_r"}),
		bits(bitRow{"terminate_reserved", "Reserved", 2, 3, 13, field.Hex, "iwarp_rdma.term_rsvd"}),
	}}
)

// The parts of RPC-over-RDMA and ONC RPC with a fixed layout.
var (
	RPCRDMA = field.Header{Name: "rpcrdma", Label: "RPC-over-RDMA", Length: rpcrdma.FixedLen, Fields: []field.Field{
		bytes(byteRow{"xid", "XID", 0, 32, field.Hex, "rpcordma.xid"}),
		bytes(byteRow{"rdma_vers", "Version", 4, 32, field.Dec, "rpcordma.version"}),
		bytes(byteRow{"credits", "Credits", 8, 32, field.Dec, "rpcordma.flow_control"}),
		named(bytes(byteRow{"rdma_proc", "Procedure", 12, 32, field.Enum, "rpcordma.msg_type"}), func(v uint64) string { return rpcrdma.Proc(v).String() }),
	}}
	Segment = field.Header{Name: "segment", Label: "Segment", Length: rpcrdma.SegmentLen, Fields: []field.Field{
		bytes(byteRow{"handle", "Handle", 0, 32, field.Hex, "rpcordma.rdma_handle"}),
		bytes(byteRow{"length", "Length", 4, 32, field.Dec, "rpcordma.rdma_length"}),
		bytes(byteRow{"offset", "Offset", 8, 64, field.Hex, "rpcordma.rdma_offset"}),
	}}
	RecordMark = field.Header{Name: "rpc_record", Label: "RPC record mark", Length: oncrpc.RecordMarkLen, Fields: []field.Field{
		bits(bitRow{"last_fragment", "Last fragment", 0, 0, 1, field.Dec, "rpc.lastfrag"}),
		bits(bitRow{"fragment_length", "Fragment length", 0, 1, 31, field.Dec, "rpc.fraglen"}),
	}}
	RPC = field.Header{Name: "rpc", Label: "Remote Procedure Call", Length: 8, Fields: []field.Field{
		bytes(byteRow{"xid", "XID", 0, 32, field.Hex, "rpc.xid"}),
		named(bytes(byteRow{"message_type", "Message type", 4, 32, field.Enum, "rpc.msgtyp"}), func(v uint64) string { return oncrpc.MessageType(v).String() }),
	}}
)

// All lists every header of fixed layout. The messages of the connection manager share one name, as
// do the forms of DDP and of RDMAP. Headers with the same name share one member of [field.Set].
var All = func() []*field.Header {
	all := []*field.Header{
		&TCP, &RecordMark, &MPAFrame, &DDPTagged, &DDPUntagged, &RDMAP, &InvalidateSTag, &ReadRequest, &Terminate,
		&Ethernet, &VLAN, &PFC, &Pause, &SLL, &SLL2, &ERF, &IPv4, &IPv6, &UDP, &VXLAN, &Geneve, &GeneveOption, &GRE, &GREChecksum,
		&GREKey, &GRESequence, &ERSPAN2, &ERSPAN3, &ERSPANPlatform, &MPLS, &ControlWord, &LRH, &GRH, &BTH, &RDETH, &DETH, &XRCETH,
		&FETH, &RETH, &AtomicETH, &AETH, &AtomicAckETH, &ImmDt, &IETH, &IPoIB, &IPCM, &IPCMv4, &PrivateData, &RPCRDMA, &Segment, &RPC,
	}
	for _, class := range slices.Sorted(maps.Keys(madTables)) {
		all = append(all, madTables[class])
	}
	for _, attribute := range slices.Sorted(maps.Keys(CM)) {
		all = append(all, CM[attribute])
	}
	next := field.FirstOfTables
	for i, h := range all {
		if same := slices.IndexFunc(all[:i], func(other *field.Header) bool { return other.Name == h.Name }); same >= 0 {
			h.Member = all[same].Member
			continue
		}
		h.Member, next = next, next<<1
	}
	return all
}()

// Links is the set of the headers below the InfiniBand transport or TCP.
var Links = func() (links field.Set) {
	for _, h := range All {
		if h.Link {
			links |= h.Member
		}
	}
	return links
}()

// Where returns the parts of a packet's description that contain the field with the given JSON
// path, such as "bth.psn" or "summary".
func Where(path string) field.Set {
	switch path {
	case "summary":
		return field.Summary
	case "connection", "rdma_operation", "transaction", "xid", "marks", "no_transaction_reason":
		return field.Context
	case "nfs", "mount", "nlm", "nfsacl", "portmap":
		return field.Context | AETH.Member
	case "rpc.program": // of a Reply that of its Call
		return field.Context | AETH.Member | RPC.Member | field.Other
	}
	if sources := Wireshark()[path]; sources != nil {
		var members field.Set
		for _, source := range sources {
			members |= source.Table.Member | field.Other
		}
		return members
	}
	name, _, _ := strings.Cut(path, ".")
	for _, h := range All {
		if h.Name == name {
			return h.Member | field.Other // the nodes at which the header begins and ends
		}
	}
	return field.Other
}
