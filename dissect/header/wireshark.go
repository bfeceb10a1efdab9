package header

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Source is a place in a header at which a field of Wireshark's is.
type Source struct {
	Table *field.Header
	Field *field.Field
	When  func(header []byte) bool // whether the header has the field; nil if it always has
}

// views lists fields of Wireshark's that are parts of the fields in the tables, or several of them.
// Filters and columns can use them, but trees and JSON do not show them.
func views() []Source {
	req, aeth := CM[rocev2.CMReq], &AETH
	ipService := func(h []byte) bool { return len(h) >= 16 && binary.BigEndian.Uint64(h[8:])>>24 == 1 }
	mapped := func(at int) func([]byte) bool { // an IPv4 address that is mapped in a GID
		return func(h []byte) bool {
			return binary.BigEndian.Uint64(h[at:]) == 0 && binary.BigEndian.Uint32(h[at+8:]) == 0xffff
		}
	}
	syndrome := func(kind byte) func([]byte) bool { return func(h []byte) bool { return h[0]>>5&3 == kind } }
	layer := func(layer byte) func([]byte) bool { return func(h []byte) bool { return h[0]>>4 == layer } }
	of := func(table *field.Header, when func([]byte) bool, f field.Field) Source {
		return Source{table, &f, when}
	}
	return []Source{
		of(req, ipService, bytes("", "Prefix of the service ID", 8, 40, field.Bytes, "infiniband.cm.req.serviceid.prefix")),
		of(req, ipService, bytes("", "Protocol of the service ID", 13, 8, dec, "infiniband.cm.req.serviceid.protocol")),
		of(req, ipService, bytes("", "Destination port of the service ID", 14, 16, dec, "infiniband.cm.req.serviceid.dport")),
		of(req, func(h []byte) bool { return !ipService(h) }, bytes("", "Private data", 140, 92*8, field.Bytes, "infiniband.cm.req.private")),
		of(req, ipService, bytes("", "IP CM header", 140, rocev2.IPCMLen*8, field.Bytes, "infiniband.cm.req.ip_cm")),
		of(req, ipService, bytes("", "Private data after the IP CM header", 140+rocev2.IPCMLen, (92-rocev2.IPCMLen)*8, field.Bytes, "infiniband.cm.req.ip_cm.private")),
		of(req, mapped(56), bytes("", "Primary local GID, IPv4", 68, 32, field.IPv4, "infiniband.cm.req.prim_localgid_ipv4")),
		of(req, mapped(72), bytes("", "Primary remote GID, IPv4", 84, 32, field.IPv4, "infiniband.cm.req.prim_remotegid_ipv4")),
		of(aeth, nil, bits("", "Reserved bit of the syndrome", 0, 0, 1, dec, "infiniband.aeth.syndrome.reserved")),
		of(aeth, nil, bits("", "Kind of the syndrome: 0 ACK, 1 RNR NAK, 3 NAK", 0, 1, 2, dec, "infiniband.aeth.syndrome.opcode")),
		of(aeth, syndrome(0), bits("", "Credit count of an ACK", 0, 3, 5, dec, "infiniband.aeth.syndrome.credit_count")),
		of(aeth, syndrome(1), bits("", "Timer of an RNR NAK", 0, 3, 5, dec, "infiniband.aeth.syndrome.timer")),
		of(aeth, syndrome(2), bits("", "Value of a reserved syndrome", 0, 3, 5, dec, "infiniband.aeth.syndrome.reserved_value")),
		of(aeth, syndrome(3), bits("", "Error code of a NAK", 0, 3, 5, dec, "infiniband.aeth.syndrome.error_code")),
		of(&MPAFrame, nil, bits("", "Reserved bits of RFC 5044", 16, 3, 5, dec, "iwarp_mpa.res")),
		of(&Terminate, layer(0), bits("", "Error type of RDMAP", 0, 4, 4, dec, "iwarp_rdma.term_etype_rdma")),
		of(&Terminate, layer(1), bits("", "Error type of DDP", 0, 4, 4, dec, "iwarp_rdma.term_etype_ddp")),
		of(&Terminate, layer(2), bits("", "Error type of MPA", 0, 4, 4, dec, "iwarp_rdma.term_etype_llp")),
		of(&Terminate, layer(0), bytes("", "Error code of RDMAP", 1, 8, hex, "iwarp_rdma.term_errcode_rdma")),
		of(&Terminate, func(h []byte) bool { return h[0] == 0x11 }, bytes("", "Error code of a DDP tagged buffer", 1, 8, hex, "iwarp_rdma.term_errcode_ddp_tagged")),
		of(&Terminate, func(h []byte) bool { return h[0] == 0x12 }, bytes("", "Error code of a DDP untagged buffer", 1, 8, hex, "iwarp_rdma.term_errcode_ddp_untagged")),
		of(&Terminate, func(h []byte) bool { return h[0] == 0x20 }, bytes("", "Error code of MPA", 1, 8, hex, "iwarp_rdma.term_errcode_llp")),
		of(&Terminate, func(h []byte) bool { return h[0]>>4 > 2 }, bits("", "Error type of an undefined layer", 0, 4, 4, dec, "iwarp_rdma.term_etype")),
		of(&Terminate, func(h []byte) bool { return h[0]>>4 > 0 && h[0] != 0x11 && h[0] != 0x12 && h[0] != 0x20 }, bytes("", "Error code of an undefined layer or error type", 1, 8, hex, "iwarp_rdma.term_errcode")),
	}
}

// Wireshark maps the names of Wireshark's fields that do not correspond to exactly one path to their
// sources. The name of such a field is a path of its own in filters. For all other rows of tables, the
// name is an alias of the row's path.
//
// A path may be in several tables, such as cm.local_qpn in those of REQ and REP, while Wireshark names
// the fields of each message. A name may also be in several headers, such as sll.etype.
var Wireshark = sync.OnceValue(func() map[string][]Source {
	paths, names := map[string]map[string]bool{}, map[string]map[string]bool{} // the names of each path, and the paths of each name
	sources := map[string][]Source{}
	note := func(m map[string]map[string]bool, key, value string) {
		if m[key] == nil {
			m[key] = map[string]bool{}
		}
		m[key][value] = true
	}
	for _, h := range All {
		for i := range h.Fields {
			f := &h.Fields[i]
			path := h.Name + "." + f.Name
			note(paths, path, f.Alias)
			if f.Alias != "" {
				note(names, f.Alias, path)
				sources[f.Alias] = append(sources[f.Alias], Source{Table: h, Field: f})
			}
		}
	}
	maps.DeleteFunc(sources, func(name string, _ []Source) bool {
		path := slices.Collect(maps.Keys(names[name]))
		return len(path) == 1 && len(paths[path[0]]) == 1
	})
	for _, view := range views() {
		sources[view.Field.Alias] = append(sources[view.Field.Alias], view)
	}
	return sources
})
