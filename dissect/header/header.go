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

// The formats of most fields.
const dec, hex = field.Dec, field.Hex

// bytes returns a field that starts at a byte boundary. The alias is its name in Wireshark.
func bytes(name, label string, at, width int, format field.Format, alias string) field.Field {
	return bits(name, label, at, 0, width, format, alias)
}

// bits returns a field that starts at a bit of a byte.
func bits(name, label string, at, bit, width int, format field.Format, alias string) field.Field {
	return field.Field{Name: name, Label: label, Bit: at*8 + bit, Bits: width, Format: format, Alias: alias, Key: `"` + name + `":`}
}

// flag returns a field of one bit.
func flag(name, label string, at, bit int, alias string) field.Field {
	return bits(name, label, at, bit, 1, field.Flag, alias)
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
		bytes("dst", "Destination", 0, 48, field.MAC, "eth.dst"),
		bytes("src", "Source", 6, 48, field.MAC, "eth.src"),
		named(bytes("ethertype", "EtherType", 12, 16, hex, "eth.type"), etherTypes),
	}}
	VLAN = field.Header{Name: "vlan", Label: "VLAN tag", Length: 4, Link: true, Fields: []field.Field{
		bits("priority", "Priority", 0, 0, 3, dec, "vlan.priority"),
		flag("dei", "Drop eligible", 0, 3, "vlan.dei"),
		bits("id", "VLAN ID", 0, 4, 12, dec, "vlan.id"),
		named(bytes("ethertype", "EtherType", 2, 16, hex, "vlan.etype"), etherTypes),
	}}
	PFC = field.Header{Name: "pfc", Label: "Priority flow control", Length: 20, Link: true, Fields: join([]field.Field{
		bytes("opcode", "Opcode", 0, 16, hex, "macc.opcode"),
		bytes("priorities", "Priority enable vector", 2, 16, hex, "macc.cbfc.enbv"),
	}, pauseTimes())}
	Pause = field.Header{Name: "pause", Label: "Pause", Length: 4, Link: true, Fields: []field.Field{
		bytes("opcode", "Opcode", 0, 16, hex, "macc.opcode"),
		bytes("quanta", "Pause time in units of 512 bit times", 2, 16, dec, "macc.pause_time"),
	}}
	SLL = field.Header{Name: "sll", Label: "Linux cooked", Length: 16, Link: true, Fields: []field.Field{
		bytes("packet_type", "Packet type", 0, 16, dec, "sll.pkttype"),
		bytes("arphrd", "Link type", 2, 16, dec, "sll.hatype"),
		bytes("address_length", "Address length", 4, 16, dec, "sll.halen"),
		bytes("address", "Address", 6, 64, field.Bytes, "sll.src.other"),
		named(bytes("ethertype", "EtherType", 14, 16, hex, "sll.etype"), etherTypes),
	}}
	SLL2 = field.Header{Name: "sll2", Label: "Linux cooked v2", Length: 20, Link: true, Fields: []field.Field{
		named(bytes("ethertype", "EtherType", 0, 16, hex, "sll.etype"), etherTypes),
		bytes("reserved", "Reserved", 2, 16, hex, ""),
		bytes("interface", "Interface index", 4, 32, dec, "sll.ifindex"),
		bytes("arphrd", "Link type", 8, 16, dec, "sll.hatype"),
		bytes("packet_type", "Packet type", 10, 8, dec, "sll.pkttype"),
		bytes("address_length", "Address length", 11, 8, dec, "sll.halen"),
		bytes("address", "Address", 12, 64, field.Bytes, "sll.src.other"),
	}}
	ERF = field.Header{Name: "erf", Label: "Extensible Record Format", Length: 16, Link: true, Fields: []field.Field{
		bytes("timestamp", "Timestamp", 0, 64, field.Bytes, "erf.ts"),
		flag("extended", "Extension headers follow", 8, 0, "erf.ehdr"),
		bits("record_type", "Type", 8, 1, 7, dec, "erf.types.type"),
		bytes("flags", "Flags", 9, 8, hex, "erf.flags"),
		bytes("record_length", "Record length", 10, 16, dec, "erf.rlen"),
		bytes("lost", "Loss counter", 12, 16, dec, "erf.lctr"),
		bytes("wire_length", "Wire length", 14, 16, dec, "erf.wlen"),
	}}
	IPv4 = field.Header{Name: "ipv4", Label: "Internet Protocol version 4", Length: 20, Link: true, Fields: []field.Field{
		bits("ip_version", "Version", 0, 0, 4, dec, "ip.version"),
		bits("header_words", "Header length in words of 4 bytes", 0, 4, 4, dec, "ip.hdr_len"),
		bits("dscp", "DSCP", 1, 0, 6, dec, "ip.dsfield.dscp"),
		bits("ecn", "ECN", 1, 6, 2, dec, "ip.dsfield.ecn"),
		bytes("total_length", "Total length", 2, 16, dec, "ip.len"),
		bytes("identification", "Identification", 4, 16, hex, "ip.id"),
		flag("reserved", "Reserved", 6, 0, "ip.flags.rb"),
		flag("dont_fragment", "Don't fragment", 6, 1, "ip.flags.df"),
		flag("more_fragments", "More fragments", 6, 2, "ip.flags.mf"),
		bits("fragment_offset", "Fragment offset in units of 8 bytes", 6, 3, 13, dec, "ip.frag_offset"),
		bytes("ttl", "Time to live", 8, 8, dec, "ip.ttl"),
		named(bytes("protocol", "Protocol", 9, 8, dec, "ip.proto"), protocols),
		bytes("checksum", "Checksum", 10, 16, hex, "ip.checksum"),
		bytes("src", "Source", 12, 32, field.IPv4, "ip.src"),
		bytes("dst", "Destination", 16, 32, field.IPv4, "ip.dst"),
	}}
	IPv6 = field.Header{Name: "ipv6", Label: "Internet Protocol version 6", Length: 40, Link: true, Fields: []field.Field{
		bits("ip_version", "Version", 0, 0, 4, dec, "ipv6.version"),
		bits("traffic_class", "Traffic class", 0, 4, 8, hex, "ipv6.tclass"),
		bits("flow_label", "Flow label", 1, 4, 20, hex, "ipv6.flow"),
		bytes("payload_length", "Payload length", 4, 16, dec, "ipv6.plen"),
		named(bytes("next_header", "Next header", 6, 8, dec, "ipv6.nxt"), protocols),
		bytes("hop_limit", "Hop limit", 7, 8, dec, "ipv6.hlim"),
		bytes("src", "Source", 8, 128, field.IPv6, "ipv6.src"),
		bytes("dst", "Destination", 24, 128, field.IPv6, "ipv6.dst"),
	}}
	UDP = field.Header{Name: "udp", Label: "User Datagram Protocol", Length: 8, Link: true, Fields: []field.Field{
		bytes("src_port", "Source port", 0, 16, dec, "udp.srcport"),
		bytes("dst_port", "Destination port", 2, 16, dec, "udp.dstport"),
		bytes("length", "Length", 4, 16, dec, "udp.length"),
		bytes("checksum", "Checksum", 6, 16, hex, "udp.checksum"),
	}}
	TCP = field.Header{Name: "tcp", Label: "Transmission Control Protocol", Length: 60, Link: true, Fields: []field.Field{
		bytes("src_port", "Source port", 0, 16, dec, "tcp.srcport"),
		bytes("dst_port", "Destination port", 2, 16, dec, "tcp.dstport"),
		bytes("seq", "Raw sequence number", 4, 32, dec, "tcp.seq_raw"),
		bytes("ack", "Raw acknowledgement number", 8, 32, dec, "tcp.ack_raw"),
		bits("header_words", "Header length in words of 4 bytes", 12, 0, 4, dec, "tcp.hdr_len"),
		flag("urg", "URG", 13, 2, "tcp.flags.urg"),
		flag("ack_flag", "ACK", 13, 3, "tcp.flags.ack"),
		flag("psh", "PSH", 13, 4, "tcp.flags.push"),
		flag("rst", "RST", 13, 5, "tcp.flags.reset"),
		flag("syn", "SYN", 13, 6, "tcp.flags.syn"),
		flag("fin", "FIN", 13, 7, "tcp.flags.fin"),
		bytes("window", "Window", 14, 16, dec, "tcp.window_size_value"),
		bytes("checksum", "Checksum", 16, 16, hex, "tcp.checksum"),
	}}
	VXLAN = field.Header{Name: "vxlan", Label: "VXLAN", Length: 8, Link: true, Fields: []field.Field{
		bytes("flags", "Flags", 0, 16, hex, "vxlan.flags"),
		bytes("group", "Group policy", 2, 16, dec, "vxlan.gbp"),
		bytes("vni", "VNI", 4, 24, dec, "vxlan.vni"),
		bytes("reserved", "Reserved", 7, 8, hex, "vxlan.reserved8"),
	}}
	Geneve = field.Header{Name: "geneve", Label: "Geneve", Length: 8, Link: true, Fields: []field.Field{
		bits("version", "Version", 0, 0, 2, dec, "geneve.version"),
		bits("option_words", "Length of the options in words of 4 bytes", 0, 2, 6, dec, ""),
		flag("control", "Control packet", 1, 0, "geneve.flags.oam"),
		flag("critical", "Critical options present", 1, 1, "geneve.flags.critical"),
		bits("reserved6", "Reserved", 1, 2, 6, hex, ""),
		named(bytes("protocol", "Protocol", 2, 16, hex, "geneve.proto_type"), etherTypes),
		bytes("vni", "VNI", 4, 24, dec, "geneve.vni"),
		bytes("reserved8", "Reserved", 7, 8, hex, "geneve.reserved"),
	}}
	GeneveOption = field.Header{Name: "geneve_option", Label: "Geneve option", Length: 4, Link: true, Fields: []field.Field{
		bytes("class", "Class", 0, 16, hex, "geneve.option.class"),
		bytes("option_type", "Type", 2, 8, hex, "geneve.option.type"),
		bits("words", "Length of the data in words of 4 bytes", 3, 3, 5, dec, ""),
	}}
	GRE = field.Header{Name: "gre", Label: "Generic Routing Encapsulation", Length: 4, Link: true, Fields: []field.Field{
		bytes("flags", "Flags and version", 0, 16, hex, "gre.flags_and_version"),
		named(bytes("protocol", "Protocol", 2, 16, hex, "gre.proto"), etherTypes),
	}}
	GREChecksum = field.Header{Name: "gre_checksum", Label: "Checksum of GRE", Length: 4, Link: true, Fields: []field.Field{
		bytes("checksum", "Checksum", 0, 16, hex, "gre.checksum"),
		bytes("reserved", "Reserved", 2, 16, hex, "gre.offset"),
	}}
	GREKey = field.Header{Name: "gre_key", Label: "Key of GRE", Length: 4, Link: true, Fields: []field.Field{
		bytes("key", "Key", 0, 32, hex, "gre.key"),
	}}
	GRESequence = field.Header{Name: "gre_sequence", Label: "Sequence number of GRE", Length: 4, Link: true, Fields: []field.Field{
		bytes("number", "Sequence number", 0, 32, dec, "gre.sequence_number"),
	}}
	ERSPAN2 = field.Header{Name: "erspan", Label: "Encapsulated Remote SPAN, type II", Length: 8, Link: true, Fields: []field.Field{
		bits("version", "Version", 0, 0, 4, dec, "erspan.version"),
		bits("vlan", "VLAN", 0, 4, 12, dec, "erspan.vlan"),
		bits("cos", "Class of service", 2, 0, 3, dec, "erspan.cos"),
		bits("encapsulation", "VLAN encapsulation", 2, 3, 2, dec, "erspan.encap"),
		flag("truncated", "The switch truncated the packet", 2, 5, "erspan.truncated"),
		bits("session", "Session ID", 2, 6, 10, dec, "erspan.spanid"),
		bits("reserved", "Reserved", 4, 0, 12, hex, "erspan.reserved"),
		bits("index", "Index of the port", 5, 4, 20, dec, "erspan.index"),
	}}
	ERSPAN3 = field.Header{Name: "erspan", Label: "Encapsulated Remote SPAN, type III", Length: 12, Link: true, Fields: []field.Field{
		bits("version", "Version", 0, 0, 4, dec, "erspan.version"),
		bits("vlan", "VLAN", 0, 4, 12, dec, "erspan.vlan"),
		bits("cos", "Class of service", 2, 0, 3, dec, "erspan.cos"),
		bits("bad", "Integrity of the packet: 0 good, 1 short, 2 oversized, 3 bad", 2, 3, 2, dec, "erspan.bso"),
		flag("truncated", "The switch truncated the packet", 2, 5, "erspan.truncated"),
		bits("session", "Session ID", 2, 6, 10, dec, "erspan.spanid"),
		bytes("timestamp", "Timestamp", 4, 32, dec, "erspan.timestamp"),
		bytes("security_group", "Security group tag", 8, 16, dec, "erspan.sgt"),
		flag("protocol_data", "The packet is an Ethernet frame", 10, 0, "erspan.p"),
		bits("frame_type", "Frame type", 10, 1, 5, dec, "erspan.ft"),
		bits("hardware", "Hardware ID", 10, 6, 6, dec, "erspan.hw"),
		flag("egress", "Mirrored when it left the switch", 11, 4, "erspan.direction"),
		bits("granularity", "Granularity of the timestamp", 11, 5, 2, dec, "erspan.gra"),
		flag("subheader", "A platform subheader follows", 11, 7, "erspan.o"),
	}}
	ERSPANPlatform = field.Header{Name: "erspan_platform", Label: "Platform subheader of ERSPAN", Length: 8, Link: true, Fields: []field.Field{
		bits("platform", "Platform ID", 0, 0, 6, dec, "erspan.platid"),
		bits("info", "Information of this platform", 0, 6, 58, hex, ""),
	}}
	MPLS = field.Header{Name: "mpls", Label: "MPLS label", Length: 4, Link: true, Fields: []field.Field{
		bits("label", "Label", 0, 0, 20, dec, "mpls.label"),
		bits("traffic_class", "Traffic class", 2, 4, 3, dec, "mpls.exp"),
		flag("bottom", "Bottom of the stack", 2, 7, "mpls.bottom"),
		bytes("ttl", "Time to live", 3, 8, dec, "mpls.ttl"),
	}}
	ControlWord = field.Header{Name: "control_word", Label: "Control word of an Ethernet pseudowire", Length: 4, Link: true, Fields: []field.Field{
		bits("reserved", "Reserved", 0, 4, 12, hex, ""),
		bytes("number", "Sequence number", 2, 16, dec, "pweth.cw.sequence_number"),
	}}
)

// The headers of the InfiniBand transport (package rocev2).
var (
	LRH = field.Header{Name: "lrh", Label: "Local Route Header", Length: rocev2.LRHLen, Fields: []field.Field{
		bits("vl", "Virtual lane", 0, 0, 4, dec, "infiniband.lrh.vl"),
		bits("lver", "Link version", 0, 4, 4, dec, "infiniband.lrh.lver"),
		bits("sl", "Service level", 1, 0, 4, dec, "infiniband.lrh.sl"),
		bits("reserved2", "Reserved", 1, 4, 2, dec, "infiniband.lrh.reserved2"),
		bits("lnh", "Link next header", 1, 6, 2, dec, "infiniband.lrh.lnh"),
		bytes("dlid", "Destination LID", 2, 16, dec, "infiniband.lrh.dlid"),
		bits("reserved5", "Reserved", 4, 0, 5, dec, "infiniband.lrh.reserved5"),
		bits("words", "Packet length in words of 4 bytes", 4, 5, 11, dec, "infiniband.lrh.pktlen"),
		bytes("slid", "Source LID", 6, 16, dec, "infiniband.lrh.slid"),
	}}
	GRH = field.Header{Name: "grh", Label: "Global Route Header", Length: rocev2.GRHLen, Fields: []field.Field{
		bits("ip_version", "IP version", 0, 0, 4, dec, "infiniband.grh.ipver"),
		bits("traffic_class", "Traffic class", 0, 4, 8, hex, "infiniband.grh.tclass"),
		bits("flow_label", "Flow label", 1, 4, 20, hex, "infiniband.grh.flowlabel"),
		bytes("payload_length", "Payload length", 4, 16, dec, "infiniband.grh.paylen"),
		bytes("next_header", "Next header", 6, 8, hex, "infiniband.grh.nxthdr"),
		bytes("hop_limit", "Hop limit", 7, 8, dec, "infiniband.grh.hoplmt"),
		bytes("source_gid", "Source GID", 8, 128, field.IPv6, "infiniband.grh.sgid"),
		bytes("destination_gid", "Destination GID", 24, 128, field.IPv6, "infiniband.grh.dgid"),
	}}
	BTH = field.Header{Name: "bth", Label: "Base Transport Header", Length: rocev2.BTHLen, Fields: []field.Field{
		named(bytes("opcode", "Opcode", 0, 8, hex, "infiniband.bth.opcode"), func(v uint64) string { return rocev2.Opcode(v).String() }),
		flag("solicited_event", "Solicited event", 1, 0, "infiniband.bth.se"),
		flag("mig_req", "MigReq", 1, 1, "infiniband.bth.m"),
		bits("pad_count", "Pad count", 1, 2, 2, dec, "infiniband.bth.padcnt"),
		bits("tver", "Header version", 1, 4, 4, dec, "infiniband.bth.tver"),
		bytes("p_key", "P_Key", 2, 16, dec, "infiniband.bth.p_key"),
		flag("fecn", "FECN", 4, 0, ""),
		flag("becn", "BECN", 4, 1, ""),
		bits("reserved6", "Reserved", 4, 2, 6, dec, ""),
		bytes("dest_qpn", "Destination QPN", 5, 24, hex, "infiniband.bth.destqp"),
		flag("ack_req", "AckReq", 8, 0, "infiniband.bth.a"),
		bits("reserved7", "Reserved", 8, 1, 7, dec, "infiniband.bth.reserved7"),
		bytes("psn", "PSN", 9, 24, dec, "infiniband.bth.psn"),
	}}
	RDETH = field.Header{Name: "rdeth", Label: "Reliable Datagram ETH", Length: rocev2.RDETHLen, Fields: []field.Field{
		bytes("reserved8", "Reserved", 0, 8, dec, ""),
		bytes("ee_context", "End-to-end context", 1, 24, hex, "infiniband.rdeth.eecnxt"),
	}}
	DETH = field.Header{Name: "deth", Label: "Datagram ETH", Length: rocev2.DETHLen, Fields: []field.Field{
		bytes("q_key", "Q_Key", 0, 32, dec, "infiniband.deth.q_key"),
		bytes("reserved8", "Reserved", 4, 8, dec, ""),
		bytes("source_qpn", "Source QPN", 5, 24, hex, "infiniband.deth.srcqp"),
	}}
	XRCETH = field.Header{Name: "xrceth", Label: "XRC ETH", Length: rocev2.XRCETHLen, Fields: []field.Field{
		bytes("reserved8", "Reserved", 0, 8, dec, ""),
		bytes("xrcsrq", "XRC shared receive queue", 1, 24, hex, ""),
	}}
	FETH = field.Header{Name: "feth", Label: "FLUSH ETH", Length: rocev2.FETHLen, Fields: []field.Field{
		bits("reserved", "Reserved", 0, 0, 26, hex, ""),
		bits("selectivity", "Selectivity level", 3, 2, 2, dec, ""),
		bits("placement", "Placement type", 3, 4, 4, dec, ""),
	}}
	RETH = field.Header{Name: "reth", Label: "RDMA ETH", Length: rocev2.RETHLen, Fields: []field.Field{
		bytes("virtual_address", "Virtual address", 0, 64, hex, "infiniband.reth.va"),
		bytes("r_key", "R_Key", 8, 32, hex, "infiniband.reth.r_key"),
		bytes("dma_length", "DMA length", 12, 32, dec, "infiniband.reth.dmalen"),
	}}
	AtomicETH = field.Header{Name: "atomiceth", Label: "Atomic ETH", Length: rocev2.AtomicETHLen, Fields: []field.Field{
		bytes("virtual_address", "Virtual address", 0, 64, hex, "infiniband.reth.va"),
		bytes("r_key", "R_Key", 8, 32, hex, "infiniband.reth.r_key"),
		bytes("swap_add", "Swap or add data", 12, 64, hex, "infiniband.atomiceth.swapdt"),
		bytes("compare", "Compare data", 20, 64, hex, "infiniband.atomiceth.cmpdt"),
	}}
	AETH = field.Header{Name: "aeth", Label: "ACK ETH", Length: rocev2.AETHLen, Fields: []field.Field{
		named(bytes("syndrome", "Syndrome", 0, 8, dec, "infiniband.aeth.syndrome"), func(v uint64) string { return rocev2.Syndrome(v).String() }),
		bytes("msn", "MSN", 1, 24, dec, "infiniband.aeth.msn"),
	}}
	AtomicAckETH = field.Header{Name: "atomicacketh", Label: "Atomic ACK ETH", Length: rocev2.AtomicAckETHLen, Fields: []field.Field{
		bytes("original", "Original remote data", 0, 64, hex, "infiniband.atomicacketh.origremdt"),
	}}
	ImmDt = field.Header{Name: "immdt", Label: "Immediate Data", Length: rocev2.ImmDtLen, Fields: []field.Field{
		bytes("immediate", "Immediate data", 0, 32, hex, "infiniband.immdt"),
	}}
	IETH = field.Header{Name: "ieth", Label: "Invalidate ETH", Length: rocev2.IETHLen, Fields: []field.Field{
		bytes("r_key", "R_Key to invalidate", 0, 32, hex, "infiniband.ieth"),
	}}
	// IPoIB is the header of a datagram of IP over InfiniBand (RFC 4391, section 6).
	IPoIB = field.Header{Name: "ipoib", Label: "IP over InfiniBand", Length: 4, Fields: []field.Field{
		named(bytes("ethertype", "EtherType", 0, 16, hex, "ipoib.type"), etherTypes),
		bytes("reserved", "Reserved", 2, 16, hex, "ipoib.reserved"),
	}}
)

// pauseTimes returns the fields for the pause times of the eight priorities in a PFC frame.
func pauseTimes() (fields []field.Field) {
	for i := range 8 {
		n := strconv.Itoa(i)
		fields = append(fields, bytes("quanta_"+n, "Pause time of priority "+n+" in units of 512 bit times", 4+2*i, 16, dec, "macc.cbfc.pause_time.c"+n))
	}
	return fields
}

// madTables lists the tables of the header of management datagrams. The tables differ only in the
// names of the attributes, which depend on the management class.
var madTables = func() map[uint8]*field.Header {
	tables := map[uint8]*field.Header{}
	for _, class := range []uint8{rocev2.ClassCM, rocev2.ClassSubn, rocev2.ClassSubnDirected, rocev2.ClassSubnAdm, rocev2.ClassPerf, 0} {
		tables[class] = &field.Header{Name: "mad", Label: "Management Datagram", Length: rocev2.MADLen, Fields: []field.Field{
			bytes("base_version", "Base version", 0, 8, dec, "infiniband.mad.baseversion"),
			named(bytes("class", "Management class", 1, 8, hex, "infiniband.mad.mgmtclass"), func(v uint64) string { return rocev2.ClassName(uint8(v)) }),
			bytes("class_version", "Class version", 2, 8, dec, "infiniband.mad.classversion"),
			named(bytes("method", "Method", 3, 8, hex, "infiniband.mad.method"), func(v uint64) string { return rocev2.MethodName(uint8(v)) }),
			bytes("status", "Status", 4, 16, hex, "infiniband.mad.status"),
			bytes("class_specific", "Class specific", 6, 16, hex, "infiniband.mad.classspecific"),
			bytes("transaction_id", "Transaction ID", 8, 64, hex, "infiniband.mad.transactionid"),
			named(bytes("attribute", "Attribute", 16, 16, hex, "infiniband.mad.attributeid"), func(v uint64) string { return rocev2.AttributeName(class, uint16(v)) }),
			bytes("reserved", "Reserved", 18, 16, hex, ""),
			bytes("attribute_modifier", "Attribute modifier", 20, 32, hex, "infiniband.mad.attributemodifier"),
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
		bytes(prefix+"_local_lid", label+" local LID", at, 16, dec, alias+"locallid"),
		bytes(prefix+"_remote_lid", label+" remote LID", at+2, 16, dec, alias+"remotelid"),
		bytes(prefix+"_local_gid", label+" local GID", at+4, 128, field.IPv6, alias+"localgid"),
		bytes(prefix+"_remote_gid", label+" remote GID", at+20, 128, field.IPv6, alias+"remotegid"),
		bits(prefix+"_flow_label", label+" flow label", at+36, 0, 20, hex, alias+"flowlabel"),
		bits(prefix+"_packet_rate", label+" packet rate", at+39, 2, 6, dec, alias+"pktrate"),
		bytes(prefix+"_traffic_class", label+" traffic class", at+40, 8, hex, alias+"tfcclass"),
		bytes(prefix+"_hop_limit", label+" hop limit", at+41, 8, dec, alias+"hoplim"),
		bits(prefix+"_sl", label+" service level", at+42, 0, 4, dec, alias+"sl"),
		flag(prefix+"_subnet_local", label+" subnet local", at+42, 4, alias+"subnetlocal"),
		bits(prefix+"_ack_timeout", label+" local ACK timeout", at+43, 0, 5, dec, alias+"localacktout"),
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
		bytes("local_comm_id", "Local communication ID", 0, 32, hex, local),
		bytes("remote_comm_id", "Remote communication ID", 4, 32, hex, remote),
	}
}

// CM maps each attribute ID of the connection manager to the table of its message.
var CM = map[rocev2.CMAttribute]*field.Header{
	rocev2.CMReq: cm("REQ", []field.Field{
		bytes("local_comm_id", "Local communication ID", 0, 32, hex, "infiniband.cm.req"),
		bytes("vendor_id", "Vendor ID", 5, 24, hex, ""),
		bytes("service_id", "Service ID", 8, 64, hex, "infiniband.cm.req.serviceid"),
		bytes("local_ca_guid", "Local CA GUID", 16, 64, hex, "infiniband.cm.req.localcaguid"),
		bytes("local_q_key", "Local Q_Key", 28, 32, dec, "infiniband.cm.req.localqkey"),
		bytes("local_qpn", "Local QPN", 32, 24, hex, "infiniband.cm.req.localqpn"),
		bytes("responder_resources", "Responder resources", 35, 8, dec, "infiniband.cm.req.responderres"),
		bytes("local_eecn", "Local EECN", 36, 24, hex, "infiniband.cm.req.localeecn"),
		bytes("initiator_depth", "Initiator depth", 39, 8, dec, "infiniband.cm.req.initdepth"),
		bytes("remote_eecn", "Remote EECN", 40, 24, hex, "infiniband.cm.req.remoteeecn"),
		bits("remote_cm_timeout", "Remote CM response timeout", 43, 0, 5, dec, "infiniband.cm.req.remoteresptout"),
		bits("service_type", "Transport service type", 43, 5, 2, dec, "infiniband.cm.req.transpsvctype"),
		flag("flow_control", "End-to-end flow control", 43, 7, "infiniband.cm.req.e2eflowctrl"),
		bytes("starting_psn", "Starting PSN", 44, 24, dec, "infiniband.cm.req.startpsn"),
		bits("local_cm_timeout", "Local CM response timeout", 47, 0, 5, dec, "infiniband.cm.req.localresptout"),
		bits("retry_count", "Retry count", 47, 5, 3, dec, "infiniband.cm.req.retrcount"),
		bytes("p_key", "P_Key", 48, 16, dec, "infiniband.cm.req.pkey"),
		named(bits("path_mtu", "Path MTU", 50, 0, 4, dec, "infiniband.cm.req.pppmtu"), enum(map[uint64]string{1: "256", 2: "512", 3: "1024", 4: "2048", 5: "4096"})),
		flag("rdc_exists", "RDC exists", 50, 4, "infiniband.cm.req.rdcexist"),
		bits("rnr_retry_count", "RNR retry count", 50, 5, 3, dec, "infiniband.cm.req.rnrretrcount"),
		bits("max_cm_retries", "Max CM retries", 51, 0, 4, dec, "infiniband.cm.req.maxcmretr"),
		flag("srq", "SRQ", 51, 4, "infiniband.cm.req.srq"),
		bits("extended_transport", "Extended transport type", 51, 5, 3, dec, "infiniband.cm.req.ext_transport"),
	}, pathRows("primary", "Primary", "infiniband.cm.req.prim_", 52), pathRows("alternate", "Alternate", "infiniband.cm.req.alt_", 96),
		[]field.Field{bytes("private_data", "Private data", 140, 92*8, field.Bytes, "")}),
	rocev2.CMMra: cm("MRA", commIDs(""), []field.Field{
		bits("message_mraed", "Message MRAed", 8, 0, 2, dec, ""),
		bits("service_timeout", "Service timeout", 9, 0, 5, dec, ""),
		bytes("private_data", "Private data", 10, 222*8, field.Bytes, ""),
	}),
	rocev2.CMRej: cm("REJ", commIDs("rej"), []field.Field{
		bits("message_rejected", "Message rejected", 8, 0, 2, dec, "infiniband.cm.rej.msgrej"),
		bits("info_length", "Reject info length", 9, 0, 7, dec, "infiniband.cm.rej.rejinfolen"),
		named(bytes("reason", "Reason", 10, 16, dec, "infiniband.cm.rej.reason"), func(v uint64) string { return rocev2.RejectReason(v).String() }),
		bytes("info", "Additional reject information", 12, 72*8, field.Bytes, "infiniband.cm.rej.ari"),
		bytes("private_data", "Private data", 84, 148*8, field.Bytes, "infiniband.cm.rej.private"),
	}),
	rocev2.CMRep: cm("REP", []field.Field{
		bytes("local_comm_id", "Local communication ID", 0, 32, hex, "infiniband.cm.rep"),
		bytes("remote_comm_id", "Remote communication ID", 4, 32, hex, "infiniband.cm.rep.remotecommid"),
		bytes("local_q_key", "Local Q_Key", 8, 32, dec, "infiniband.cm.rep.localqkey"),
		bytes("local_qpn", "Local QPN", 12, 24, hex, "infiniband.cm.rep.localqpn"),
		bytes("local_eecn", "Local EE context", 16, 24, hex, "infiniband.cm.rep.localeecn"),
		bytes("starting_psn", "Starting PSN", 20, 24, dec, "infiniband.cm.rep.startpsn"),
		bytes("responder_resources", "Responder resources", 24, 8, dec, "infiniband.cm.rep.respres"),
		bytes("initiator_depth", "Initiator depth", 25, 8, dec, "infiniband.cm.rep.initdepth"),
		bits("target_ack_delay", "Target ACK delay", 26, 0, 5, dec, "infiniband.cm.rep.tgtackdelay"),
		bits("failover_accepted", "Failover accepted", 26, 5, 2, dec, "infiniband.cm.rep.failoveracc"),
		flag("flow_control", "End-to-end flow control", 26, 7, "infiniband.cm.rep.e2eflowctrl"),
		bits("rnr_retry_count", "RNR retry count", 27, 0, 3, dec, "infiniband.cm.rep.rnrretrcount"),
		flag("srq", "SRQ", 27, 3, "infiniband.cm.rep.srq"),
		bytes("local_ca_guid", "Local CA GUID", 28, 64, hex, "infiniband.cm.rep.localcaguid"),
		bytes("private_data", "Private data", 36, 196*8, field.Bytes, "infiniband.cm.rep.private"),
	}),
	rocev2.CMRtu: cm("RTU", commIDs("rtu"), []field.Field{bytes("private_data", "Private data", 8, 224*8, field.Bytes, "infiniband.cm.rtu.private")}),
	rocev2.CMDreq: cm("DREQ", commIDs("dreq"), []field.Field{
		bytes("remote_qpn", "Remote QPN", 8, 24, hex, "infiniband.cm.req.remoteqpneecn"),
		bytes("private_data", "Private data", 12, 220*8, field.Bytes, "infiniband.cm.dreq.private"),
	}),
	rocev2.CMDrep: cm("DREP", commIDs("drsp"), []field.Field{bytes("private_data", "Private data", 8, 224*8, field.Bytes, "infiniband.cm.drsp.private")}),
}

// ipCM lists the fields of the IP CM header before its addresses.
var ipCM = []field.Field{
	bits("major_version", "Major version", 0, 0, 4, dec, "infiniband.cm.req.ip_cm.majv"),
	bits("minor_version", "Minor version", 0, 4, 4, dec, "infiniband.cm.req.ip_cm.minv"),
	bits("ip_version", "IP version", 1, 0, 4, dec, "infiniband.cm.req.ip_cm.ipv"),
	bits("reserved", "Reserved", 1, 4, 4, dec, "infiniband.cm.req.ip_cm.reserved"),
	bytes("source_port", "Source port", 2, 16, dec, "infiniband.cm.req.ip_cm.sport"),
}

// IPCM and PrivateData are in the private data of connection manager messages and MPA frames.
var (
	IPCM = field.Header{Name: "ip_cm", Label: "IP CM header", Length: rocev2.IPCMLen, Fields: join(ipCM, []field.Field{
		bytes("source", "Source", 4, 128, field.IPv6, "infiniband.cm.req.ip_cm.sip6"),
		bytes("destination", "Destination", 20, 128, field.IPv6, "infiniband.cm.req.ip_cm.dip6"),
	})}
	// IPCMv4 is the form of IPCM for IP version 4.
	IPCMv4 = field.Header{Name: "ip_cm", Label: "IP CM header", Length: rocev2.IPCMLen, Fields: join(ipCM, []field.Field{
		bytes("source", "Source", 16, 32, field.IPv4, "infiniband.cm.req.ip_cm.sip4"),
		bytes("destination", "Destination", 32, 32, field.IPv4, "infiniband.cm.req.ip_cm.dip4"),
	})}
	PrivateData = field.Header{Name: "rpcrdma_private", Label: "RPC-over-RDMA private data", Length: rpcrdma.PrivateDataLen, Fields: []field.Field{
		bytes("format", "Format identifier", 0, 32, hex, ""),
		bytes("version", "Version", 4, 8, dec, ""),
		bits("reserved", "Reserved", 5, 0, 7, dec, ""),
		flag("remote_invalidation", "Remote invalidation", 5, 7, ""),
		bytes("send_size_code", "Send size in units of 1024 bytes, minus 1", 6, 8, dec, ""),
		bytes("receive_size_code", "Receive size in units of 1024 bytes, minus 1", 7, 8, dec, ""),
	}}
)

// ddpControl lists the fields in the first byte of every DDP header.
var ddpControl = []field.Field{
	flag("tagged", "Tagged", 0, 0, "iwarp_ddp.tagged_flag"),
	flag("last", "Last", 0, 1, "iwarp_ddp.last_flag"),
	bits("reserved", "Reserved", 0, 2, 4, dec, "iwarp_ddp.rsvd"),
	bits("ddp_version", "DDP version", 0, 6, 2, dec, "iwarp_ddp.dv"),
}

// The headers of iWARP (package iwarp). DDP has the first control byte and RDMAP the second, so the
// table of RDMAP starts at the second byte.
var (
	MPAFrame = field.Header{Name: "mpa", Label: "MPA", Length: iwarp.MPALen, Fields: []field.Field{
		flag("markers", "Markers wanted", 16, 0, "iwarp_mpa.marker_flag"),
		flag("crc_wanted", "CRC wanted", 16, 1, "iwarp_mpa.crc_flag"),
		flag("reject", "Rejected", 16, 2, "iwarp_mpa.rej_flag"),
		flag("enhanced", "Enhanced", 16, 3, ""),
		bits("reserved", "Reserved", 16, 4, 4, dec, ""),
		bytes("revision", "Revision", 17, 8, dec, "iwarp_mpa.rev"),
		bytes("private_data_length", "Private data length", 18, 16, dec, "iwarp_mpa.pdlength"),
	}}
	DDPTagged = field.Header{Name: "ddp", Label: "DDP", Length: iwarp.TaggedLen, Fields: join(ddpControl, []field.Field{
		bytes("stag", "STag", 2, 32, hex, "iwarp_ddp.stag"),
		bytes("tagged_offset", "Tagged offset", 6, 64, hex, "iwarp_ddp.tagged_offset"),
	})}
	DDPUntagged = field.Header{Name: "ddp", Label: "DDP", Length: iwarp.UntaggedLen, Fields: join(ddpControl, []field.Field{
		bytes("queue", "Queue number", 6, 32, dec, "iwarp_ddp.qn"),
		bytes("sequence", "Message sequence number", 10, 32, dec, "iwarp_ddp.msn"),
		bytes("offset", "Message offset", 14, 32, dec, "iwarp_ddp.mo"),
	})}
	RDMAP = field.Header{Name: "rdmap", Label: "RDMAP", Length: 1, Fields: []field.Field{
		bits("rdmap_version", "RDMAP version", 0, 0, 2, dec, "iwarp_rdma.version"),
		bits("reserved", "Reserved", 0, 2, 2, dec, "iwarp_rdma.rsv"),
		named(bits("opcode", "Opcode", 0, 4, 4, hex, "iwarp_rdma.opcode"), func(v uint64) string { return iwarp.Opcode(v).String() }),
	}}
	InvalidateSTag = field.Header{Name: "rdmap", Label: "RDMAP", Length: 4, Fields: []field.Field{
		bytes("invalidate_stag", "STag to invalidate", 0, 32, hex, "iwarp_rdma.inval_stag"),
	}}
	ReadRequest = field.Header{Name: "rdmap", Label: "RDMAP", Length: iwarp.ReadRequestLen, Fields: []field.Field{
		bytes("sink_stag", "Data sink STag", 0, 32, hex, "iwarp_rdma.sinkstag"),
		bytes("sink_offset", "Data sink tagged offset", 4, 64, hex, "iwarp_rdma.sinkto"),
		bytes("read_size", "Read size", 12, 32, dec, "iwarp_rdma.rdmardsz"),
		bytes("source_stag", "Data source STag", 16, 32, hex, "iwarp_rdma.srcstag"),
		bytes("source_offset", "Data source tagged offset", 20, 64, hex, "iwarp_rdma.srcto"),
	}}
	Terminate = field.Header{Name: "rdmap", Label: "RDMAP", Length: iwarp.TerminateLen, Fields: []field.Field{
		bits("layer", "Layer", 0, 0, 4, dec, "iwarp_rdma.term_layer"),
		bits("error_type", "Error type", 0, 4, 4, dec, ""),
		bytes("error_code", "Error code", 1, 8, hex, ""),
		flag("header_length", "Segment length follows", 2, 0, "iwarp_rdma.term_hdrct_m"),
		flag("header_ddp", "DDP header follows", 2, 1, "iwarp_rdma.hdrct_d"),
		flag("header_rdmap", "RDMAP header follows", 2, 2, "iwarp_rdma.hdrct_r"),
		bits("terminate_reserved", "Reserved", 2, 3, 13, hex, "iwarp_rdma.term_rsvd"),
	}}
)

// The parts of RPC-over-RDMA and ONC RPC with a fixed layout.
var (
	RPCRDMA = field.Header{Name: "rpcrdma", Label: "RPC-over-RDMA", Length: rpcrdma.FixedLen, Fields: []field.Field{
		bytes("xid", "XID", 0, 32, hex, "rpcordma.xid"),
		bytes("rdma_vers", "Version", 4, 32, dec, "rpcordma.version"),
		bytes("credits", "Credits", 8, 32, dec, "rpcordma.flow_control"),
		named(bytes("rdma_proc", "Procedure", 12, 32, field.Enum, "rpcordma.msg_type"), func(v uint64) string { return rpcrdma.Proc(v).String() }),
	}}
	Segment = field.Header{Name: "segment", Label: "Segment", Length: rpcrdma.SegmentLen, Fields: []field.Field{
		bytes("handle", "Handle", 0, 32, hex, "rpcordma.rdma_handle"),
		bytes("length", "Length", 4, 32, dec, "rpcordma.rdma_length"),
		bytes("offset", "Offset", 8, 64, hex, "rpcordma.rdma_offset"),
	}}
	RecordMark = field.Header{Name: "rpc_record", Label: "RPC record mark", Length: oncrpc.RecordMarkLen, Fields: []field.Field{
		bits("last_fragment", "Last fragment", 0, 0, 1, dec, "rpc.lastfrag"),
		bits("fragment_length", "Fragment length", 0, 1, 31, dec, "rpc.fraglen"),
	}}
	RPC = field.Header{Name: "rpc", Label: "Remote Procedure Call", Length: 8, Fields: []field.Field{
		bytes("xid", "XID", 0, 32, hex, "rpc.xid"),
		named(bytes("message_type", "Message type", 4, 32, field.Enum, "rpc.msgtyp"), func(v uint64) string { return oncrpc.MessageType(v).String() }),
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
