// Package header has every header that rdmadump reads as a table of fields
// (package field): what it is called, where each field stands, how it is shown,
// Wireshark's name for it. Trees, JSON, filters and schemas all come from these
// tables; a test holds them against the structs that decode the same bytes.
//
// To add a field, add its row; to add a header, add its table, name it in All,
// and hand its bytes to the tree where packets are described.
package header

import (
	"maps"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

// row is a field that starts at a byte, rowAt one that starts at a bit of it.
func row(name, label string, at, bits int, format field.Format, alias string) field.Field {
	return rowAt(name, label, at, 0, bits, format, alias)
}

func rowAt(name, label string, at, bit, bits int, format field.Format, alias string) field.Field {
	return field.Field{Name: name, Label: label, Bit: at*8 + bit, Bits: bits, Format: format, Alias: alias, Key: `"` + name + `":`}
}

// named gives a field names for its values.
func named(f field.Field, names func(uint64) string) field.Field {
	f.Names = names
	return f
}

// enum names values by number.
func enum(names map[uint64]string) func(uint64) string {
	return func(v uint64) string { return names[v] }
}

var etherTypes = enum(map[uint64]string{
	0x0800: "IPv4", 0x0806: "ARP", 0x8100: "802.1Q", 0x86dd: "IPv6", 0x88a8: "802.1ad", 0x8915: "RoCEv1",
})

var protocols = enum(map[uint64]string{1: "ICMP", 4: "IPv4", 6: "TCP", 17: "UDP", 41: "IPv6", 47: "GRE", 58: "ICMPv6"})

// The link and network headers.
var (
	Ethernet = field.Header{Name: "ethernet", Label: "Ethernet", Length: 14, Link: true, Fields: []field.Field{
		row("dst", "Destination", 0, 48, field.MAC, "eth.dst"),
		row("src", "Source", 6, 48, field.MAC, "eth.src"),
		named(row("ethertype", "EtherType", 12, 16, field.Hex, "eth.type"), etherTypes),
	}}
	VLAN = field.Header{Name: "vlan", Label: "VLAN tag", Length: 4, Link: true, Fields: []field.Field{
		rowAt("priority", "Priority", 0, 0, 3, field.Dec, "vlan.priority"),
		rowAt("dei", "Drop eligible", 0, 3, 1, field.Flag, "vlan.dei"),
		rowAt("id", "VLAN ID", 0, 4, 12, field.Dec, "vlan.id"),
		named(row("ethertype", "EtherType", 2, 16, field.Hex, "vlan.etype"), etherTypes),
	}}
	SLL = field.Header{Name: "sll", Label: "Linux cooked", Length: 16, Link: true, Fields: []field.Field{
		row("packet_type", "Packet type", 0, 16, field.Dec, "sll.pkttype"),
		row("arphrd", "Link type", 2, 16, field.Dec, "sll.hatype"),
		row("address_length", "Address length", 4, 16, field.Dec, "sll.halen"),
		row("address", "Address", 6, 64, field.Bytes, "sll.src.other"),
		named(row("ethertype", "EtherType", 14, 16, field.Hex, "sll.etype"), etherTypes),
	}}
	SLL2 = field.Header{Name: "sll2", Label: "Linux cooked v2", Length: 20, Link: true, Fields: []field.Field{
		named(row("ethertype", "EtherType", 0, 16, field.Hex, "sll.etype"), etherTypes),
		row("reserved", "Reserved", 2, 16, field.Hex, ""),
		row("interface", "Interface index", 4, 32, field.Dec, "sll.ifindex"),
		row("arphrd", "Link type", 8, 16, field.Dec, "sll.hatype"),
		row("packet_type", "Packet type", 10, 8, field.Dec, "sll.pkttype"),
		row("address_length", "Address length", 11, 8, field.Dec, "sll.halen"),
		row("address", "Address", 12, 64, field.Bytes, "sll.src.other"),
	}}
	ERF = field.Header{Name: "erf", Label: "Extensible Record Format", Length: 16, Link: true, Fields: []field.Field{
		row("timestamp", "Timestamp", 0, 64, field.Bytes, "erf.ts"),
		rowAt("extended", "Extension headers follow", 8, 0, 1, field.Flag, "erf.ehdr"),
		rowAt("record_type", "Type", 8, 1, 7, field.Dec, "erf.types.type"),
		row("flags", "Flags", 9, 8, field.Hex, "erf.flags"),
		row("record_length", "Record length", 10, 16, field.Dec, "erf.rlen"),
		row("lost", "Loss counter", 12, 16, field.Dec, "erf.lctr"),
		row("wire_length", "Wire length", 14, 16, field.Dec, "erf.wlen"),
	}}
	IPv4 = field.Header{Name: "ipv4", Label: "Internet Protocol 4", Length: 20, Link: true, Fields: []field.Field{
		rowAt("ip_version", "Version", 0, 0, 4, field.Dec, "ip.version"),
		rowAt("header_words", "Header length in words", 0, 4, 4, field.Dec, "ip.hdr_len"),
		rowAt("dscp", "DSCP", 1, 0, 6, field.Dec, "ip.dsfield.dscp"),
		rowAt("ecn", "ECN", 1, 6, 2, field.Dec, "ip.dsfield.ecn"),
		row("total_length", "Total length", 2, 16, field.Dec, "ip.len"),
		row("identification", "Identification", 4, 16, field.Hex, "ip.id"),
		rowAt("reserved", "Reserved", 6, 0, 1, field.Flag, "ip.flags.rb"),
		rowAt("dont_fragment", "Don't fragment", 6, 1, 1, field.Flag, "ip.flags.df"),
		rowAt("more_fragments", "More fragments", 6, 2, 1, field.Flag, "ip.flags.mf"),
		rowAt("fragment_offset", "Fragment offset in 8 bytes", 6, 3, 13, field.Dec, "ip.frag_offset"),
		row("ttl", "Time to live", 8, 8, field.Dec, "ip.ttl"),
		named(row("protocol", "Protocol", 9, 8, field.Dec, "ip.proto"), protocols),
		row("checksum", "Checksum", 10, 16, field.Hex, "ip.checksum"),
		row("src", "Source", 12, 32, field.IPv4, "ip.src"),
		row("dst", "Destination", 16, 32, field.IPv4, "ip.dst"),
	}}
	IPv6 = field.Header{Name: "ipv6", Label: "Internet Protocol 6", Length: 40, Link: true, Fields: []field.Field{
		rowAt("ip_version", "Version", 0, 0, 4, field.Dec, "ipv6.version"),
		rowAt("traffic_class", "Traffic class", 0, 4, 8, field.Hex, "ipv6.tclass"),
		rowAt("flow_label", "Flow label", 1, 4, 20, field.Hex, "ipv6.flow"),
		row("payload_length", "Payload length", 4, 16, field.Dec, "ipv6.plen"),
		named(row("next_header", "Next header", 6, 8, field.Dec, "ipv6.nxt"), protocols),
		row("hop_limit", "Hop limit", 7, 8, field.Dec, "ipv6.hlim"),
		row("src", "Source", 8, 128, field.IPv6, "ipv6.src"),
		row("dst", "Destination", 24, 128, field.IPv6, "ipv6.dst"),
	}}
	UDP = field.Header{Name: "udp", Label: "User Datagram Protocol", Length: 8, Link: true, Fields: []field.Field{
		row("src_port", "Source port", 0, 16, field.Dec, "udp.srcport"),
		row("dst_port", "Destination port", 2, 16, field.Dec, "udp.dstport"),
		row("length", "Length", 4, 16, field.Dec, "udp.length"),
		row("checksum", "Checksum", 6, 16, field.Hex, "udp.checksum"),
	}}
	TCP = field.Header{Name: "tcp", Label: "Transmission Control Protocol", Length: 60, Link: true, Fields: []field.Field{
		row("src_port", "Source port", 0, 16, field.Dec, "tcp.srcport"),
		row("dst_port", "Destination port", 2, 16, field.Dec, "tcp.dstport"),
		row("seq", "Sequence number", 4, 32, field.Dec, "tcp.seq_raw"),
		row("ack", "Acknowledgement number", 8, 32, field.Dec, "tcp.ack_raw"),
		rowAt("header_words", "Header length in words", 12, 0, 4, field.Dec, "tcp.hdr_len"),
		rowAt("urg", "URG", 13, 2, 1, field.Flag, "tcp.flags.urg"),
		rowAt("ack_flag", "ACK", 13, 3, 1, field.Flag, "tcp.flags.ack"),
		rowAt("psh", "PSH", 13, 4, 1, field.Flag, "tcp.flags.push"),
		rowAt("rst", "RST", 13, 5, 1, field.Flag, "tcp.flags.reset"),
		rowAt("syn", "SYN", 13, 6, 1, field.Flag, "tcp.flags.syn"),
		rowAt("fin", "FIN", 13, 7, 1, field.Flag, "tcp.flags.fin"),
		row("window", "Window", 14, 16, field.Dec, "tcp.window_size_value"),
		row("checksum", "Checksum", 16, 16, field.Hex, "tcp.checksum"),
	}}
	VXLAN = field.Header{Name: "vxlan", Label: "VXLAN", Length: 8, Link: true, Fields: []field.Field{
		row("flags", "Flags", 0, 16, field.Hex, "vxlan.flags"),
		row("group", "Group policy", 2, 16, field.Dec, "vxlan.gbp"),
		row("vni", "VNI", 4, 24, field.Dec, "vxlan.vni"),
		row("reserved", "Reserved", 7, 8, field.Hex, "vxlan.reserved8"),
	}}
	GRE = field.Header{Name: "gre", Label: "Generic Routing Encapsulation", Length: 4, Link: true, Fields: []field.Field{
		row("flags", "Flags and version", 0, 16, field.Hex, "gre.flags_and_version"),
		named(row("protocol", "Protocol", 2, 16, field.Hex, "gre.proto"), etherTypes),
	}}
)

// The InfiniBand transport (package rocev2).
var (
	LRH = field.Header{Name: "lrh", Label: "Local Route Header", Length: rocev2.LRHLen, Fields: []field.Field{
		rowAt("vl", "Virtual lane", 0, 0, 4, field.Dec, "infiniband.lrh.vl"),
		rowAt("lver", "Link version", 0, 4, 4, field.Dec, "infiniband.lrh.lver"),
		rowAt("sl", "Service level", 1, 0, 4, field.Dec, "infiniband.lrh.sl"),
		rowAt("reserved2", "Reserved", 1, 4, 2, field.Dec, "infiniband.lrh.reserved2"),
		rowAt("lnh", "Link next header", 1, 6, 2, field.Dec, "infiniband.lrh.lnh"),
		row("dlid", "Destination LID", 2, 16, field.Dec, "infiniband.lrh.dlid"),
		rowAt("reserved5", "Reserved", 4, 0, 5, field.Dec, "infiniband.lrh.reserved5"),
		rowAt("words", "Packet length in words", 4, 5, 11, field.Dec, "infiniband.lrh.pktlen"),
		row("slid", "Source LID", 6, 16, field.Dec, "infiniband.lrh.slid"),
	}}
	GRH = field.Header{Name: "grh", Label: "Global Route Header", Length: rocev2.GRHLen, Fields: []field.Field{
		rowAt("ip_version", "IP version", 0, 0, 4, field.Dec, "infiniband.grh.ipver"),
		rowAt("traffic_class", "Traffic class", 0, 4, 8, field.Hex, "infiniband.grh.tclass"),
		rowAt("flow_label", "Flow label", 1, 4, 20, field.Hex, "infiniband.grh.flowlabel"),
		row("payload_length", "Payload length", 4, 16, field.Dec, "infiniband.grh.paylen"),
		row("next_header", "Next header", 6, 8, field.Hex, "infiniband.grh.nxthdr"),
		row("hop_limit", "Hop limit", 7, 8, field.Dec, "infiniband.grh.hoplmt"),
		row("source_gid", "Source GID", 8, 128, field.IPv6, "infiniband.grh.sgid"),
		row("destination_gid", "Destination GID", 24, 128, field.IPv6, "infiniband.grh.dgid"),
	}}
	BTH = field.Header{Name: "bth", Label: "Base Transport Header", Length: rocev2.BTHLen, Fields: []field.Field{
		named(row("opcode", "Opcode", 0, 8, field.Hex, "infiniband.bth.opcode"), func(v uint64) string { return rocev2.Opcode(v).String() }),
		rowAt("solicited_event", "Solicited event", 1, 0, 1, field.Flag, "infiniband.bth.se"),
		rowAt("mig_req", "MigReq", 1, 1, 1, field.Flag, "infiniband.bth.m"),
		rowAt("pad_count", "Pad count", 1, 2, 2, field.Dec, "infiniband.bth.padcnt"),
		rowAt("tver", "Header version", 1, 4, 4, field.Dec, "infiniband.bth.tver"),
		row("p_key", "P_Key", 2, 16, field.Dec, "infiniband.bth.p_key"),
		rowAt("fecn", "FECN", 4, 0, 1, field.Flag, ""),
		rowAt("becn", "BECN", 4, 1, 1, field.Flag, ""),
		rowAt("reserved6", "Reserved", 4, 2, 6, field.Dec, ""),
		row("dest_qpn", "Destination QPN", 5, 24, field.Hex, "infiniband.bth.destqp"),
		rowAt("ack_req", "AckReq", 8, 0, 1, field.Flag, "infiniband.bth.a"),
		rowAt("reserved7", "Reserved", 8, 1, 7, field.Dec, "infiniband.bth.reserved7"),
		row("psn", "PSN", 9, 24, field.Dec, "infiniband.bth.psn"),
	}}
	RDETH = field.Header{Name: "rdeth", Label: "Reliable Datagram ETH", Length: rocev2.RDETHLen, Fields: []field.Field{
		row("reserved8", "Reserved", 0, 8, field.Dec, "infiniband.rdeth.reserved8"),
		row("ee_context", "End-to-end context", 1, 24, field.Hex, "infiniband.rdeth.eecnxt"),
	}}
	DETH = field.Header{Name: "deth", Label: "Datagram ETH", Length: rocev2.DETHLen, Fields: []field.Field{
		row("q_key", "Q_Key", 0, 32, field.Dec, "infiniband.deth.q_key"),
		row("reserved8", "Reserved", 4, 8, field.Dec, "infiniband.deth.reserved8"),
		row("source_qpn", "Source QPN", 5, 24, field.Hex, "infiniband.deth.srcqp"),
	}}
	XRCETH = field.Header{Name: "xrceth", Label: "XRC ETH", Length: rocev2.XRCETHLen, Fields: []field.Field{
		row("reserved8", "Reserved", 0, 8, field.Dec, ""),
		row("xrcsrq", "XRC shared receive queue", 1, 24, field.Hex, ""),
	}}
	FETH = field.Header{Name: "feth", Label: "FLUSH ETH", Length: rocev2.FETHLen, Fields: []field.Field{
		rowAt("reserved", "Reserved", 0, 0, 26, field.Hex, ""),
		rowAt("selectivity", "Selectivity level", 3, 2, 2, field.Dec, ""),
		rowAt("placement", "Placement type", 3, 4, 4, field.Dec, ""),
	}}
	RETH = field.Header{Name: "reth", Label: "RDMA ETH", Length: rocev2.RETHLen, Fields: []field.Field{
		row("virtual_address", "Virtual address", 0, 64, field.Hex, "infiniband.reth.va"),
		row("r_key", "R_Key", 8, 32, field.Hex, "infiniband.reth.r_key"),
		row("dma_length", "DMA length", 12, 32, field.Dec, "infiniband.reth.dmalen"),
	}}
	AtomicETH = field.Header{Name: "atomiceth", Label: "Atomic ETH", Length: rocev2.AtomicETHLen, Fields: []field.Field{
		row("virtual_address", "Virtual address", 0, 64, field.Hex, "infiniband.atomiceth.va"),
		row("r_key", "R_Key", 8, 32, field.Hex, "infiniband.atomiceth.r_key"),
		row("swap_add", "Swap or add data", 12, 64, field.Hex, "infiniband.atomiceth.swapdt"),
		row("compare", "Compare data", 20, 64, field.Hex, "infiniband.atomiceth.cmpdt"),
	}}
	AETH = field.Header{Name: "aeth", Label: "ACK ETH", Length: rocev2.AETHLen, Fields: []field.Field{
		named(row("syndrome", "Syndrome", 0, 8, field.Dec, "infiniband.aeth.syndrome"), func(v uint64) string { return rocev2.Syndrome(v).String() }),
		row("msn", "MSN", 1, 24, field.Dec, "infiniband.aeth.msn"),
	}}
	AtomicAckETH = field.Header{Name: "atomicacketh", Label: "Atomic ACK ETH", Length: rocev2.AtomicAckETHLen, Fields: []field.Field{
		row("original", "Original remote data", 0, 64, field.Hex, "infiniband.atomicacketh.origremdt"),
	}}
	ImmDt = field.Header{Name: "immdt", Label: "Immediate Data", Length: rocev2.ImmDtLen, Fields: []field.Field{
		row("immediate", "Immediate data", 0, 32, field.Hex, "infiniband.immdt"),
	}}
	IETH = field.Header{Name: "ieth", Label: "Invalidate ETH", Length: rocev2.IETHLen, Fields: []field.Field{
		row("r_key", "R_Key to invalidate", 0, 32, field.Hex, "infiniband.ieth"),
	}}
	MAD = field.Header{Name: "mad", Label: "Management Datagram", Length: rocev2.MADLen, Fields: []field.Field{
		row("base_version", "Base version", 0, 8, field.Dec, "infiniband.mad.baseversion"),
		row("class", "Management class", 1, 8, field.Hex, "infiniband.mad.mgmtclass"),
		row("class_version", "Class version", 2, 8, field.Dec, "infiniband.mad.classversion"),
		row("method", "Method", 3, 8, field.Hex, "infiniband.mad.method"),
		row("status", "Status", 4, 16, field.Hex, "infiniband.mad.status"),
		row("class_specific", "Class specific", 6, 16, field.Hex, "infiniband.mad.classspecific"),
		row("transaction_id", "Transaction ID", 8, 64, field.Hex, "infiniband.mad.transactionid"),
		named(row("attribute", "Attribute", 16, 16, field.Hex, "infiniband.mad.attributeid"), func(v uint64) string { return rocev2.CMAttribute(v).String() }),
		row("reserved", "Reserved", 18, 16, field.Hex, ""),
		row("attribute_modifier", "Attribute modifier", 20, 32, field.Hex, "infiniband.mad.attributemodifier"),
	}}
)

// pathRows is the primary or alternate path of a REQ.
func pathRows(prefix, label, alias string, at int) []field.Field {
	return []field.Field{
		row(prefix+"_local_lid", label+" local LID", at, 16, field.Dec, alias+"locallid"),
		row(prefix+"_remote_lid", label+" remote LID", at+2, 16, field.Dec, alias+"remotelid"),
		row(prefix+"_local_gid", label+" local GID", at+4, 128, field.IPv6, alias+"localgid"),
		row(prefix+"_remote_gid", label+" remote GID", at+20, 128, field.IPv6, alias+"remotegid"),
		rowAt(prefix+"_flow_label", label+" flow label", at+36, 0, 20, field.Hex, alias+"flowlabel"),
		rowAt(prefix+"_packet_rate", label+" packet rate", at+39, 2, 6, field.Dec, alias+"pktrate"),
		row(prefix+"_traffic_class", label+" traffic class", at+40, 8, field.Hex, alias+"tfcclass"),
		row(prefix+"_hop_limit", label+" hop limit", at+41, 8, field.Dec, alias+"hoplim"),
		rowAt(prefix+"_sl", label+" service level", at+42, 0, 4, field.Dec, alias+"sl"),
		rowAt(prefix+"_subnet_local", label+" subnet local", at+42, 4, 1, field.Flag, alias+"subnetlocal"),
		rowAt(prefix+"_ack_timeout", label+" local ACK timeout", at+43, 0, 5, field.Dec, alias+"localacktout"),
	}
}

func join(lists ...[]field.Field) (all []field.Field) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// cm is the table of one message of the connection manager; all stand under the
// name "cm".
func cm(label string, rows ...[]field.Field) *field.Header {
	return &field.Header{Name: "cm", Label: "CM " + label, Length: rocev2.CMSize, Fields: join(rows...)}
}

func commIDs(message string) []field.Field {
	return []field.Field{
		row("local_comm_id", "Local communication ID", 0, 32, field.Hex, "infiniband.cm."+message+".localcommid"),
		row("remote_comm_id", "Remote communication ID", 4, 32, field.Hex, "infiniband.cm."+message+".remotecommid"),
	}
}

// CM has the connection manager's messages by attribute.
var CM = map[rocev2.CMAttribute]*field.Header{
	rocev2.CMReq: cm("REQ", []field.Field{
		row("local_comm_id", "Local communication ID", 0, 32, field.Hex, "infiniband.cm.req"),
		row("vendor_id", "Vendor ID", 5, 24, field.Hex, ""),
		row("service_id", "Service ID", 8, 64, field.Hex, "infiniband.cm.req.serviceid"),
		row("local_ca_guid", "Local CA GUID", 16, 64, field.Hex, "infiniband.cm.req.localcaguid"),
		row("local_q_key", "Local Q_Key", 28, 32, field.Dec, "infiniband.cm.req.localqkey"),
		row("local_qpn", "Local QPN", 32, 24, field.Hex, "infiniband.cm.req.localqpn"),
		row("responder_resources", "Responder resources", 35, 8, field.Dec, "infiniband.cm.req.responderres"),
		row("local_eecn", "Local EECN", 36, 24, field.Hex, "infiniband.cm.req.localeecn"),
		row("initiator_depth", "Initiator depth", 39, 8, field.Dec, "infiniband.cm.req.initdepth"),
		row("remote_eecn", "Remote EECN", 40, 24, field.Hex, "infiniband.cm.req.remoteeecn"),
		rowAt("remote_cm_timeout", "Remote CM response timeout", 43, 0, 5, field.Dec, "infiniband.cm.req.remoteresptout"),
		rowAt("service_type", "Transport service type", 43, 5, 2, field.Dec, "infiniband.cm.req.transpsvctype"),
		rowAt("flow_control", "End-to-end flow control", 43, 7, 1, field.Flag, "infiniband.cm.req.e2eflowctrl"),
		row("starting_psn", "Starting PSN", 44, 24, field.Dec, "infiniband.cm.req.startpsn"),
		rowAt("local_cm_timeout", "Local CM response timeout", 47, 0, 5, field.Dec, "infiniband.cm.req.localresptout"),
		rowAt("retry_count", "Retry count", 47, 5, 3, field.Dec, "infiniband.cm.req.retrcount"),
		row("p_key", "P_Key", 48, 16, field.Dec, "infiniband.cm.req.pkey"),
		named(rowAt("path_mtu", "Path MTU", 50, 0, 4, field.Dec, "infiniband.cm.req.pppmtu"), enum(map[uint64]string{1: "256", 2: "512", 3: "1024", 4: "2048", 5: "4096"})),
		rowAt("rdc_exists", "RDC exists", 50, 4, 1, field.Flag, "infiniband.cm.req.rdcexist"),
		rowAt("rnr_retry_count", "RNR retry count", 50, 5, 3, field.Dec, "infiniband.cm.req.rnrretrcount"),
		rowAt("max_cm_retries", "Max CM retries", 51, 0, 4, field.Dec, "infiniband.cm.req.maxcmretr"),
		rowAt("srq", "SRQ", 51, 4, 1, field.Flag, "infiniband.cm.req.srq"),
		rowAt("extended_transport", "Extended transport type", 51, 5, 3, field.Dec, "infiniband.cm.req.ext_transport"),
	}, pathRows("primary", "Primary", "infiniband.cm.req.prim_", 52), pathRows("alternate", "Alternate", "infiniband.cm.req.alt_", 96),
		[]field.Field{row("private_data", "Private data", 140, 92*8, field.Bytes, "infiniband.cm.req.private")}),
	rocev2.CMMra: cm("MRA", commIDs("mra"), []field.Field{
		rowAt("message_mraed", "Message MRAed", 8, 0, 2, field.Dec, ""),
		rowAt("service_timeout", "Service timeout", 9, 0, 5, field.Dec, ""),
		row("private_data", "Private data", 10, 222*8, field.Bytes, ""),
	}),
	rocev2.CMRej: cm("REJ", commIDs("rej"), []field.Field{
		rowAt("message_rejected", "Message rejected", 8, 0, 2, field.Dec, "infiniband.cm.rej.msgrej"),
		rowAt("info_length", "Reject info length", 9, 0, 7, field.Dec, "infiniband.cm.rej.rejinfolen"),
		named(row("reason", "Reason", 10, 16, field.Dec, "infiniband.cm.rej.reason"), func(v uint64) string { return rocev2.RejectReason(v).String() }),
		row("info", "Additional reject information", 12, 72*8, field.Bytes, "infiniband.cm.rej.ari"),
		row("private_data", "Private data", 84, 148*8, field.Bytes, "infiniband.cm.rej.private"),
	}),
	rocev2.CMRep: cm("REP", []field.Field{
		row("local_comm_id", "Local communication ID", 0, 32, field.Hex, "infiniband.cm.rep"),
		row("remote_comm_id", "Remote communication ID", 4, 32, field.Hex, "infiniband.cm.rep.remotecommid"),
		row("local_q_key", "Local Q_Key", 8, 32, field.Dec, "infiniband.cm.rep.localqkey"),
		row("local_qpn", "Local QPN", 12, 24, field.Hex, "infiniband.cm.rep.localqpn"),
		row("local_eecn", "Local EE context", 16, 24, field.Hex, "infiniband.cm.rep.localeecn"),
		row("starting_psn", "Starting PSN", 20, 24, field.Dec, "infiniband.cm.rep.startpsn"),
		row("responder_resources", "Responder resources", 24, 8, field.Dec, "infiniband.cm.rep.respres"),
		row("initiator_depth", "Initiator depth", 25, 8, field.Dec, "infiniband.cm.rep.initdepth"),
		rowAt("target_ack_delay", "Target ACK delay", 26, 0, 5, field.Dec, "infiniband.cm.rep.tgtackdelay"),
		rowAt("failover_accepted", "Failover accepted", 26, 5, 2, field.Dec, "infiniband.cm.rep.failoveracc"),
		rowAt("flow_control", "End-to-end flow control", 26, 7, 1, field.Flag, "infiniband.cm.rep.e2eflowctrl"),
		rowAt("rnr_retry_count", "RNR retry count", 27, 0, 3, field.Dec, "infiniband.cm.rep.rnrretrcount"),
		rowAt("srq", "SRQ", 27, 3, 1, field.Flag, "infiniband.cm.rep.srq"),
		row("local_ca_guid", "Local CA GUID", 28, 64, field.Hex, "infiniband.cm.rep.localcaguid"),
		row("private_data", "Private data", 36, 196*8, field.Bytes, "infiniband.cm.rep.private"),
	}),
	rocev2.CMRtu: cm("RTU", commIDs("rtu"), []field.Field{row("private_data", "Private data", 8, 224*8, field.Bytes, "infiniband.cm.rtu.private")}),
	rocev2.CMDreq: cm("DREQ", commIDs("dreq"), []field.Field{
		row("remote_qpn", "Remote QPN", 8, 24, field.Hex, "infiniband.cm.req.remoteqpneecn"),
		row("private_data", "Private data", 12, 220*8, field.Bytes, "infiniband.cm.dreq.private"),
	}),
	rocev2.CMDrep: cm("DREP", commIDs("drsp"), []field.Field{row("private_data", "Private data", 8, 224*8, field.Bytes, "infiniband.cm.drsp.private")}),
	rocev2.CMSidrReq: cm("SIDR_REQ", []field.Field{
		row("request_id", "Request ID", 0, 32, field.Hex, ""),
		row("p_key", "P_Key", 4, 16, field.Dec, ""),
		row("service_id", "Service ID", 8, 64, field.Hex, ""),
		row("private_data", "Private data", 16, 216*8, field.Bytes, ""),
	}),
	rocev2.CMSidrRep: cm("SIDR_REP", []field.Field{
		row("request_id", "Request ID", 0, 32, field.Hex, ""),
		row("status", "Status", 4, 8, field.Dec, ""),
		row("info_length", "Info length", 5, 8, field.Dec, ""),
		row("qpn", "QPN", 8, 24, field.Hex, ""),
		row("service_id", "Service ID", 12, 64, field.Hex, ""),
		row("q_key", "Q_Key", 20, 32, field.Dec, ""),
		row("info", "Additional information", 24, 72*8, field.Bytes, ""),
		row("private_data", "Private data", 96, 136*8, field.Bytes, ""),
	}),
	rocev2.CMLap: cm("LAP", commIDs("lap"), []field.Field{
		row("remote_qpn", "Remote QPN", 12, 24, field.Hex, ""),
		rowAt("remote_cm_timeout", "Remote CM response timeout", 15, 0, 5, field.Dec, ""),
		row("local_lid", "Alternate local LID", 20, 16, field.Dec, ""),
		row("remote_lid", "Alternate remote LID", 22, 16, field.Dec, ""),
		row("local_gid", "Alternate local GID", 24, 128, field.IPv6, ""),
		row("remote_gid", "Alternate remote GID", 40, 128, field.IPv6, ""),
		rowAt("flow_label", "Flow label", 56, 0, 20, field.Hex, ""),
		row("traffic_class", "Traffic class", 59, 8, field.Hex, ""),
		row("hop_limit", "Hop limit", 60, 8, field.Dec, ""),
		rowAt("packet_rate", "Packet rate", 61, 2, 6, field.Dec, ""),
		rowAt("sl", "Service level", 62, 0, 4, field.Dec, ""),
		rowAt("subnet_local", "Subnet local", 62, 4, 1, field.Flag, ""),
		rowAt("ack_timeout", "Local ACK timeout", 63, 0, 5, field.Dec, ""),
		row("private_data", "Private data", 64, 168*8, field.Bytes, ""),
	}),
	rocev2.CMApr: cm("APR", commIDs("apr"), []field.Field{
		row("info_length", "Info length", 8, 8, field.Dec, ""),
		row("status", "Status", 9, 8, field.Dec, ""),
		row("info", "Additional information", 12, 72*8, field.Bytes, ""),
		row("private_data", "Private data", 84, 148*8, field.Bytes, ""),
	}),
}

// IPCM and PrivateData stand inside of private data.
var (
	IPCM = field.Header{Name: "ip_cm", Label: "IP CM header", Length: rocev2.IPCMLen, Fields: []field.Field{
		rowAt("major_version", "Major version", 0, 0, 4, field.Dec, "infiniband.cm.req.ip_cm.majv"),
		rowAt("minor_version", "Minor version", 0, 4, 4, field.Dec, "infiniband.cm.req.ip_cm.minv"),
		rowAt("ip_version", "IP version", 1, 0, 4, field.Dec, "infiniband.cm.req.ip_cm.ipv"),
		rowAt("reserved", "Reserved", 1, 4, 4, field.Dec, "infiniband.cm.req.ip_cm.reserved"),
		row("source_port", "Source port", 2, 16, field.Dec, "infiniband.cm.req.ip_cm.sport"),
		row("source", "Source", 4, 128, field.IPv6, "infiniband.cm.req.ip_cm.sip6"),
		row("destination", "Destination", 20, 128, field.IPv6, "infiniband.cm.req.ip_cm.dip6"),
	}}
	PrivateData = field.Header{Name: "rpcrdma_private", Label: "RPC-over-RDMA private data", Length: rpcrdma.PrivateDataLen, Fields: []field.Field{
		row("format", "Format identifier", 0, 32, field.Hex, ""),
		row("version", "Version", 4, 8, field.Dec, ""),
		rowAt("reserved", "Reserved", 5, 0, 7, field.Dec, ""),
		rowAt("remote_invalidation", "Remote invalidation", 5, 7, 1, field.Flag, ""),
		row("send_size_code", "Send size in 1024 bytes, less one", 6, 8, field.Dec, ""),
		row("receive_size_code", "Receive size in 1024 bytes, less one", 7, 8, field.Dec, ""),
	}}
)

// ddpControl is the first byte of every DDP header.
var ddpControl = []field.Field{
	rowAt("tagged", "Tagged", 0, 0, 1, field.Flag, "iwarp_ddp.tagged_flag"),
	rowAt("last", "Last", 0, 1, 1, field.Flag, "iwarp_ddp.last_flag"),
	rowAt("reserved", "Reserved", 0, 2, 4, field.Dec, "iwarp_ddp.rsvd"),
	rowAt("ddp_version", "DDP version", 0, 6, 2, field.Dec, "iwarp_ddp.dv"),
}

// iWARP (package iwarp). DDP and RDMAP share the first two bytes; the table of
// RDMAP starts at the second.
var (
	MPAFrame = field.Header{Name: "mpa", Label: "MPA", Length: iwarp.MPALen, Fields: []field.Field{
		rowAt("markers", "Markers wanted", 16, 0, 1, field.Flag, "iwarp_mpa.marker_flag"),
		rowAt("crc_wanted", "CRC wanted", 16, 1, 1, field.Flag, "iwarp_mpa.crc_flag"),
		rowAt("reject", "Rejected", 16, 2, 1, field.Flag, "iwarp_mpa.rej_flag"),
		rowAt("enhanced", "Enhanced", 16, 3, 1, field.Flag, ""),
		rowAt("reserved", "Reserved", 16, 4, 4, field.Dec, "iwarp_mpa.res"),
		row("revision", "Revision", 17, 8, field.Dec, "iwarp_mpa.rev"),
		row("private_data_length", "Private data length", 18, 16, field.Dec, "iwarp_mpa.pdlength"),
	}}
	DDPTagged = field.Header{Name: "ddp", Label: "DDP", Length: iwarp.TaggedLen, Fields: join(ddpControl, []field.Field{
		row("stag", "STag", 2, 32, field.Hex, "iwarp_ddp.stag"),
		row("tagged_offset", "Tagged offset", 6, 64, field.Hex, "iwarp_ddp.tagged_offset"),
	})}
	DDPUntagged = field.Header{Name: "ddp", Label: "DDP", Length: iwarp.UntaggedLen, Fields: join(ddpControl, []field.Field{
		row("queue", "Queue number", 6, 32, field.Dec, "iwarp_ddp.qn"),
		row("sequence", "Message sequence number", 10, 32, field.Dec, "iwarp_ddp.msn"),
		row("offset", "Message offset", 14, 32, field.Dec, "iwarp_ddp.mo"),
	})}
	RDMAP = field.Header{Name: "rdmap", Label: "RDMAP", Length: 1, Fields: []field.Field{
		rowAt("rdmap_version", "RDMAP version", 0, 0, 2, field.Dec, "iwarp_rdma.version"),
		rowAt("reserved", "Reserved", 0, 2, 2, field.Dec, "iwarp_rdma.rsv"),
		named(rowAt("opcode", "Opcode", 0, 4, 4, field.Hex, "iwarp_rdma.opcode"), func(v uint64) string { return iwarp.Opcode(v).String() }),
	}}
	InvalidateSTag = field.Header{Name: "rdmap", Label: "RDMAP", Length: 4, Fields: []field.Field{
		row("invalidate_stag", "STag to invalidate", 0, 32, field.Hex, "iwarp_rdma.inval_stag"),
	}}
	ReadRequest = field.Header{Name: "rdmap", Label: "RDMAP", Length: iwarp.ReadRequestLen, Fields: []field.Field{
		row("sink_stag", "Data sink STag", 0, 32, field.Hex, "iwarp_rdma.sinkstag"),
		row("sink_offset", "Data sink tagged offset", 4, 64, field.Hex, "iwarp_rdma.sinkto"),
		row("read_size", "Read size", 12, 32, field.Dec, "iwarp_rdma.rdmardsz"),
		row("source_stag", "Data source STag", 16, 32, field.Hex, "iwarp_rdma.srcstag"),
		row("source_offset", "Data source tagged offset", 20, 64, field.Hex, "iwarp_rdma.srcto"),
	}}
	Terminate = field.Header{Name: "rdmap", Label: "RDMAP", Length: iwarp.TerminateLen, Fields: []field.Field{
		rowAt("layer", "Layer", 0, 0, 4, field.Dec, "iwarp_rdma.term_layer"),
		rowAt("error_type", "Error type", 0, 4, 4, field.Dec, "iwarp_rdma.term_etype"),
		row("error_code", "Error code", 1, 8, field.Hex, "iwarp_rdma.term_errcode"),
		rowAt("header_length", "Segment length follows", 2, 0, 1, field.Flag, "iwarp_rdma.term_hdrct_m"),
		rowAt("header_ddp", "DDP header follows", 2, 1, 1, field.Flag, "iwarp_rdma.hdrct_d"),
		rowAt("header_rdmap", "RDMAP header follows", 2, 2, 1, field.Flag, "iwarp_rdma.hdrct_r"),
		rowAt("terminate_reserved", "Reserved", 2, 3, 13, field.Hex, "iwarp_rdma.term_rsvd"),
	}}
)

// RPC-over-RDMA and ONC RPC: the parts of fixed layout.
var (
	RPCRDMA = field.Header{Name: "rpcrdma", Label: "RPC-over-RDMA", Length: rpcrdma.FixedLen, Fields: []field.Field{
		row("xid", "XID", 0, 32, field.Hex, "rpcordma.xid"),
		row("rdma_vers", "Version", 4, 32, field.Dec, "rpcordma.version"),
		row("credits", "Credits", 8, 32, field.Dec, "rpcordma.flow_control"),
		named(row("rdma_proc", "Procedure", 12, 32, field.Enum, "rpcordma.msg_type"), func(v uint64) string { return rpcrdma.Proc(v).String() }),
	}}
	Segment = field.Header{Name: "segment", Label: "Segment", Length: rpcrdma.SegmentLen, Fields: []field.Field{
		row("handle", "Handle", 0, 32, field.Hex, "rpcordma.rdma_handle"),
		row("length", "Length", 4, 32, field.Dec, "rpcordma.rdma_length"),
		row("offset", "Offset", 8, 64, field.Hex, "rpcordma.rdma_offset"),
	}}
	RPC = field.Header{Name: "rpc", Label: "Remote Procedure Call", Length: 8, Fields: []field.Field{
		row("xid", "XID", 0, 32, field.Hex, "rpc.xid"),
		named(row("message_type", "Message type", 4, 32, field.Enum, "rpc.msgtyp"), func(v uint64) string { return oncrpc.MessageType(v).String() }),
	}}
)

// All has every header of fixed layout. Several may have one name: the messages
// of the connection manager, the forms of DDP and RDMAP.
var All = func() []*field.Header {
	all := []*field.Header{
		&TCP, &MPAFrame, &DDPTagged, &DDPUntagged, &RDMAP, &InvalidateSTag, &ReadRequest, &Terminate,
		&Ethernet, &VLAN, &SLL, &SLL2, &ERF, &IPv4, &IPv6, &UDP, &VXLAN, &GRE, &LRH, &GRH, &BTH, &RDETH, &DETH, &XRCETH,
		&FETH, &RETH, &AtomicETH, &AETH, &AtomicAckETH, &ImmDt, &IETH, &MAD, &IPCM, &PrivateData, &RPCRDMA, &Segment, &RPC,
	}
	for _, attribute := range slices.Sorted(maps.Keys(CM)) {
		all = append(all, CM[attribute])
	}
	return all
}()
