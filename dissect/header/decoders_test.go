package header_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

// decoder is the struct that decodes the same bytes as a table.
type decoder struct {
	table *field.Header
	// decode gets random bytes. It may set the bytes that must have a certain value, and returns
	// the decoded struct and the offset at which the table begins.
	decode func(data []byte) (from any, at int, err error)
	// names maps a field of the table to the struct's field, if their names differ in more than
	// case and underscores.
	names map[string]string
	// without gives the reason why a field of the table is not in the struct or has another value
	// there, or why a field of the struct is not in the table.
	without map[string]string
}

// layer returns a decode function for a header of package rocev2.
func layer[T any, P interface {
	*T
	rocev2.Header
}](data []byte) (any, int, error) {
	var v T
	err := rocev2.Decode(data, P(&v))
	return v, 0, err
}

const (
	bothPlaces = "is in the other table of these bytes"
	afterTable = "follows the fixed layout"
	noField    = "is not on the wire"
)

// cmOf returns the decoder of a connection manager message.
func cmOf[T any, P interface {
	*T
	rocev2.Header
}](attribute rocev2.CMAttribute, names map[string]string) decoder {
	return decoder{header.CM[attribute], layer[T, P], names, nil}
}

// path returns the names of the fields of one path in a REQ.
func path(table, in string) map[string]string {
	names := map[string]string{}
	for _, name := range []string{
		"local_lid LocalLID", "remote_lid RemoteLID", "local_gid LocalGID", "remote_gid RemoteGID", "flow_label FlowLabel", "packet_rate PacketRate",
		"traffic_class TrafficClass", "hop_limit HopLimit", "sl SL", "subnet_local SubnetLocal", "ack_timeout LocalACKTimeout",
	} {
		row, member, _ := strings.Cut(name, " ")
		names[table+row] = in + member
	}
	return names
}

// join merges several maps of names.
func join(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// segment returns a decode function for a DDP segment, tagged or untagged.
func segment(tagged byte) func(data []byte) (any, int, error) {
	return func(data []byte) (any, int, error) {
		data[0] = data[0]&0x7f | tagged
		var s iwarp.Segment
		err := s.Decode(data)
		return s, 0, err
	}
}

// shifted returns a decode function for a table that begins by bytes later.
func shifted(by int, decode func([]byte) (any, int, error)) func([]byte) (any, int, error) {
	return func(data []byte) (any, int, error) { v, _, err := decode(data); return v, by, err }
}

var ofDDP = map[string]string{
	"HeaderLength": noField, "Payload": noField, "RDMAPVersion": bothPlaces, "ReservedMAP": bothPlaces, "Opcode": bothPlaces,
}

var decoders = []decoder{
	{&header.LRH, layer[rocev2.LRH], nil, nil},
	{&header.GRH, layer[rocev2.GRH], map[string]string{"ip_version": "Version"}, nil},
	{&header.BTH, func(data []byte) (any, int, error) {
		var p rocev2.Packet
		p.Decode(data, len(data)) // What follows the BTH is missing.
		return p.BTH, 0, nil
	}, nil, map[string]string{"Pad": afterTable, "ICRC": afterTable}},
	{&header.RDETH, layer[rocev2.RDETH], nil, nil},
	{&header.DETH, layer[rocev2.DETH], nil, nil},
	{&header.XRCETH, layer[rocev2.XRCETH], nil, nil},
	{&header.FETH, layer[rocev2.FETH], nil, map[string]string{
		"reserved": "is part of Flags", "selectivity": "is part of Flags", "placement": "is part of Flags", "Flags": "is the whole word",
	}},
	{&header.RETH, layer[rocev2.RETH], nil, nil},
	{&header.AtomicETH, layer[rocev2.AtomicETH], nil, nil},
	{&header.AETH, layer[rocev2.AETH], nil, nil},
	{&header.AtomicAckETH, layer[rocev2.AtomicAckETH], nil, nil},
	{&header.ImmDt, layer[rocev2.ImmDt], nil, nil},
	{&header.IETH, layer[rocev2.IETH], nil, nil},
	{&header.RecordMark, func(data []byte) (any, int, error) {
		m := oncrpc.RecordMark(binary.BigEndian.Uint32(data))
		last := uint32(0)
		if m.Last() {
			last = 1
		}
		return struct{ LastFragment, FragmentLength uint32 }{last, uint32(m.Length())}, 0, nil
	}, nil, nil},
	{header.MAD(0), layer[rocev2.MAD], map[string]string{"reserved": "Reserved16"}, nil},
	{header.MAD(rocev2.ClassSubn), layer[rocev2.MAD], map[string]string{"reserved": "Reserved16"}, nil},
	{header.MAD(rocev2.ClassSubnDirected), layer[rocev2.MAD], map[string]string{"reserved": "Reserved16"}, nil},
	{header.MAD(rocev2.ClassSubnAdm), layer[rocev2.MAD], map[string]string{"reserved": "Reserved16"}, nil},
	{header.MAD(rocev2.ClassPerf), layer[rocev2.MAD], map[string]string{"reserved": "Reserved16"}, nil},
	{header.MAD(rocev2.ClassCM), layer[rocev2.MAD], map[string]string{"reserved": "Reserved16"}, nil},
	{&header.IPCM, layer[rocev2.IPCM], map[string]string{"reserved": "Reserved4"}, nil},
	{&header.IPCMv4, func(data []byte) (any, int, error) {
		data[1] = data[1]&15 | 4<<4
		var h rocev2.IPCM
		err := rocev2.Decode(data, &h)
		source, destination := h.Addresses()
		return struct {
			MajorVersion, MinorVersion, IPVersion, Reserved uint8
			SourcePort                                      uint16
			Source, Destination                             netip.Addr
		}{h.MajorVersion, h.MinorVersion, h.IPVersion, h.Reserved4, h.SourcePort, source, destination}, 0, err
	}, nil, nil},
	cmOf[rocev2.REQ](rocev2.CMReq, join(path("primary_", "Primary."), path("alternate_", "Alternate."))),
	cmOf[rocev2.MRA](rocev2.CMMra, map[string]string{"message_mraed": "Message"}),
	cmOf[rocev2.REJ](rocev2.CMRej, map[string]string{"message_rejected": "Message"}),
	cmOf[rocev2.REP](rocev2.CMRep, nil),
	cmOf[rocev2.RTU](rocev2.CMRtu, nil),
	cmOf[rocev2.DREQ](rocev2.CMDreq, nil),
	cmOf[rocev2.DREP](rocev2.CMDrep, nil),
	{&header.MPAFrame, func(data []byte) (any, int, error) {
		copy(data, iwarp.RequestKey)
		data[18], data[19] = 0, max(data[19]&0x7f, 4) // a length that the input has and that IRD and ORD fit in
		var m iwarp.MPA
		err := m.Decode(data)
		return m, 0, err
	}, map[string]string{"crc_wanted": "CRC"}, map[string]string{
		"private_data_length": "counts PrivateData, IRD and ORD", "PrivateData": afterTable, "IRD": afterTable, "ORD": afterTable, "Length": noField, "Reply": "is given by the key",
	}},
	{&header.DDPTagged, segment(0x80), map[string]string{"reserved": "ReservedDDP", "tagged_offset": "Offset"}, join(ofDDP, map[string]string{
		"Queue": "is of untagged segments", "Sequence": "is of untagged segments",
	})},
	{&header.DDPUntagged, segment(0), map[string]string{"reserved": "ReservedDDP"}, join(ofDDP, map[string]string{"STag": bothPlaces})},
	{&header.RDMAP, shifted(1, segment(0)), map[string]string{"reserved": "ReservedMAP"}, map[string]string{
		"Tagged": bothPlaces, "Last": bothPlaces, "ReservedDDP": bothPlaces, "DDPVersion": bothPlaces, "STag": bothPlaces, "Offset": bothPlaces, "Queue": bothPlaces,
		"Sequence": bothPlaces, "Payload": noField, "HeaderLength": noField,
	}},
	{&header.InvalidateSTag, shifted(2, segment(0)), map[string]string{"invalidate_stag": "STag"}, map[string]string{
		"Tagged": bothPlaces, "Last": bothPlaces, "ReservedDDP": bothPlaces, "DDPVersion": bothPlaces, "Offset": bothPlaces, "Queue": bothPlaces,
		"Sequence": bothPlaces, "Payload": noField, "HeaderLength": noField, "RDMAPVersion": bothPlaces, "ReservedMAP": bothPlaces, "Opcode": bothPlaces,
	}},
	{&header.ReadRequest, func(data []byte) (any, int, error) {
		var r iwarp.ReadRequestHeader
		err := r.Decode(data)
		return r, 0, err
	}, map[string]string{"read_size": "Size"}, nil},
	{&header.Terminate, func(data []byte) (any, int, error) {
		data[2] |= data[2] & 0x20 << 1 // no RDMAP header without a DDP header
		data[3] |= 1                   // so that it does not look like a word of siw
		var r iwarp.TerminateHeader
		err := r.Decode(data)
		return r, 0, err
	}, map[string]string{"error_type": "Type", "error_code": "Code", "header_length": "HasLength", "header_ddp": "HasDDP", "header_rdmap": "HasRDMAP"}, map[string]string{
		"terminate_reserved": "is not decoded", "SegmentLength": afterTable, "DDP": afterTable, "Read": afterTable, "Swapped": noField,
	}},
	{&header.PrivateData, func(data []byte) (any, int, error) {
		copy(data, []byte{0xf6, 0xab, 0x0e, 0x18, 1})
		p, found, err := rpcrdma.FindPrivateData(data)
		if err == nil && !found {
			err = fmt.Errorf("not found")
		}
		return p, 0, err
	}, nil, map[string]string{
		"format": "is a constant", "send_size_code": "is SendSize in another unit", "receive_size_code": "is ReceiveSize in another unit",
		"Offset": noField, "SendSize": "is in bytes", "ReceiveSize": "is in bytes",
	}},
	{&header.RPCRDMA, func(data []byte) (any, int, error) {
		copy(data[4:], []byte{0, 0, 0, 2}) // of other versions, only this much is decoded
		copy(data[12:], []byte{0, 0, 0})
		if data[15] == 4 { // RDMA_ERROR has more fields in any version
			data[15] = 3
		}
		var h rpcrdma.Header
		err := h.Decode(data)
		return h, 0, err
	}, map[string]string{"rdma_vers": "Vers", "rdma_proc": "Proc"}, map[string]string{
		"Align": afterTable, "Thresh": afterTable, "IsDraft": noField, "Direction": afterTable, "InvHandle": afterTable, "Reads": afterTable, "ReadOrder": afterTable, "Writes": afterTable, "WriteEnds": afterTable, "Reply": afterTable, "HasReply": afterTable, "Err": afterTable,
		"VersLow": afterTable, "VersHigh": afterTable, "Length": noField,
	}},
	{&header.Segment, func(data []byte) (any, int, error) {
		copy(data[4:], []byte{0, 0, 0, 1})
		copy(data[12:], []byte{0, 0, 0, 0, 0, 0, 0, 1}) // RDMA_MSG with an entry in the Read list
		copy(data[40:], make([]byte, 12))               // one entry, no Write list, no Reply chunk
		var h rpcrdma.Header
		if err := h.Decode(data); err != nil {
			return nil, 0, err
		}
		return h.Reads[0].Segment, 24, nil
	}, nil, nil},
	{&header.RPC, func(data []byte) (any, int, error) {
		copy(data[4:], []byte{0, 0, 0, 0})
		var h oncrpc.Header
		h.Decode(data) // the remaining bytes may be invalid
		return h, 0, nil
	}, map[string]string{"message_type": "Type"}, map[string]string{
		"RPCVersion": afterTable, "Program": afterTable, "Version": afterTable, "Procedure": afterTable, "Credential": afterTable, "Verifier": afterTable, "ReplyState": afterTable,
		"AcceptState": afterTable, "RejectState": afterTable, "AuthState": afterTable, "Low": afterTable, "High": afterTable, "Length": noField,
	}},
}

// noDecoder lists the tables that are compared with no struct. Package link and the dissector
// decode only the fields of these headers that they need.
var noDecoder = []*field.Header{
	&header.PFC, &header.Pause, &header.IPoIB,
	&header.Ethernet, &header.VLAN, &header.SLL, &header.SLL2, &header.ERF, &header.IPv4, &header.IPv6, &header.UDP, &header.TCP, &header.VXLAN, &header.GRE,
	&header.Geneve, &header.GeneveOption, &header.GREChecksum, &header.GREKey, &header.GRESequence, &header.ERSPAN2, &header.ERSPAN3, &header.ERSPANPlatform, &header.MPLS,
	&header.ControlWord,
}

// fold returns a name in lower case without underscores.
func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// member returns the struct's field with that name or path, and false if there is none.
func member(v reflect.Value, name string) (reflect.Value, bool) {
	for part := range strings.SplitSeq(name, ".") {
		v = v.FieldByNameFunc(func(s string) bool { return fold(s) == fold(part) })
		if !v.IsValid() {
			return v, false
		}
	}
	return v, true
}

// same reports whether a field of a table has the value of a struct's field.
func same(f *field.Field, data []byte, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool:
		return f.Uint(data) != 0 == v.Bool()
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return f.Uint(data) == v.Uint()
	}
	switch v := v.Interface().(type) {
	case netip.Addr:
		return bytes.Equal(f.Raw(data), v.AsSlice())
	case [16]byte:
		return bytes.Equal(f.Raw(data), v[:])
	case []byte:
		return bytes.Equal(f.Raw(data), v)
	}
	return false
}

// TestDecoders compares tables and structs on random bytes. Each field of a table must have the
// value of the struct's field, and neither may lack a field of the other without a reason.
func TestDecoders(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tested := map[*field.Header]bool{}
	for _, c := range decoders {
		tested[c.table] = true
		t.Run(c.table.Label, func(t *testing.T) {
			for range 200 {
				data := make([]byte, 256)
				for i := range data {
					data[i] = byte(random.Uint32())
				}
				decoded, at, err := c.decode(data)
				if err != nil {
					t.Fatal(err)
				}
				v := reflect.ValueOf(decoded)
				seen := map[string]bool{}
				for i := range c.table.Fields {
					f := &c.table.Fields[i]
					name := c.names[f.Name]
					if name == "" {
						name = f.Name
					}
					m, found := member(v, name)
					if c.without[f.Name] != "" {
						if found {
							t.Fatalf("%s is in the struct, but is listed as missing: %s", f.Name, c.without[f.Name])
						}
						continue
					}
					if !found {
						t.Fatalf("%s is not in the struct, and no reason is given", f.Name)
					}
					seen[fold(name)] = true
					if !same(f, data[at:], m) {
						t.Fatalf("%s is %s in the table and %v in the struct; bytes %x", f.Name, f.AppendText(nil, data[at:]), m, data[at:at+c.table.Length])
					}
				}
				for i := range v.NumField() {
					f := v.Type().Field(i)
					if f.Anonymous || f.Type == reflect.TypeFor[rocev2.Path]() { // fields that all layers share, or that have rows of their own
						continue
					}
					if !seen[fold(f.Name)] && c.without[f.Name] == "" {
						t.Fatalf("the struct's %s is in no table, and no reason is given", f.Name)
					}
				}
			}
		})
	}
	for _, h := range header.All {
		if !tested[h] && !slices.Contains(noDecoder, h) {
			t.Errorf("%s is compared with no struct, and no reason is given", h.Label)
		}
	}
}
