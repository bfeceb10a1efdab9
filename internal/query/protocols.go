package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Names that people know from Wireshark's filters and that stand for no single field of a record:
// protocols, ports in either direction, and times since the start of the capture.

// timeRelative is Wireshark's name for the time since the first packet of the capture, and timeEpoch that for the time since 1970.
const (
	timeRelative = "frame.time_relative"
	timeEpoch    = "frame.time_epoch"
)

// epoch is a time that prints in seconds since 1970, as in tshark. A float64 would not have all of its digits.
type epoch record.Time

// MarshalText returns the number with nanoseconds.
func (e epoch) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%09d", int64(e)/1e9, int64(e)%1e9), nil
}

// seconds is a time in seconds. It prints as in tshark.
type seconds float64

// MarshalText returns the number with nanoseconds.
func (s seconds) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'f', 9, 64), nil
}

// sinceStart returns the time of a packet since the start of the capture.
func sinceStart(p *record.Packet) seconds { return seconds(float64(p.Time.Sub(p.Start)) / 1e9) }

// inJSON has what a jq program has to use in place of a field that only tables and filters have, by record and path.
var inJSON = map[string]map[string]string{
	"transactions": {
		"time": "call.time", "rdma_read_bytes": "the sum of read_chunks[].segments[].moved_bytes",
		"rdma_write_bytes": "the sum of moved_bytes in write_chunks and reply_chunk", "form": "call.form and reply.form",
	},
	"connections": {"qpn": "client.qpn and server.qpn", "tcp.port": "client.port and server.port"},
}

// Objects that a jq program makes, and its variables, may have any names.
var ownName = pattern(`([A-Za-z_][A-Za-z0-9_]*)"?\s*:|\$([A-Za-z_][A-Za-z0-9_]*)`)

// beforeRoot matches what may precede a name of the record itself, and not of an object in it, in a jq program.
var beforeRoot = pattern(`^\s*(?:select\((?:[^()]|\([^()]*\))*\)\s*\|\s*)*(?:[^|()]*[^|()\w\])"])?(?:select\((?:[^()|]*[^()|\w\]"])?)?$`)

// inProgram matches the names and the strings in a jq program.
var inProgram = pattern(`\.\s*"?([A-Za-z_][A-Za-z0-9_]*)|"((?:[^"\\]|\\.)*)"`)

// OnlyInFilters returns a message for each name in a jq program that filters accept for records of this type and JSON
// does not have, such as "conn is called connection in JSON".
func OnlyInFilters(program string, fields Fields) (notes []string) {
	own := map[string]bool{}
	for _, m := range ownName().FindAllStringSubmatch(program, -1) {
		own[m[1]], own[m[2]] = true, true
	}
	names := map[string]bool{} // in JSON
	for _, f := range fields.List() {
		if !f.Drawn {
			names[f.Path[strings.LastIndexByte(f.Path, '.')+1:]] = true
		}
	}
	status, quoted := false, false
	for _, at := range inProgram().FindAllStringSubmatchIndex(program, -1) {
		if at[2] < 0 { // a string
			quoted = quoted || program[at[4]:at[5]] == "ok"
			continue
		}
		name := program[at[2]:at[3]]
		status = status || name == "status"
		ofRecord := fields.Field(name) != nil && fields.Field(name).Drawn && beforeRoot().MatchString(program[:at[0]])
		if names[name] && !ofRecord || own[name] {
			continue
		}
		path := fields.Alias(name)
		if path == "" && fields.Has(name) {
			path = name
		}
		note := ""
		switch drawn := inJSON[fields.Of()][path]; {
		case path == "":
			continue
		case drawn != "":
			note = fmt.Sprintf("only tables and filters have %s; JSON has %s", name, drawn)
		case fields.Field(path).Drawn:
			note = fmt.Sprintf("only filters have %s", name)
		default:
			note = fmt.Sprintf("%s is called %s in JSON", name, path)
		}
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	if status && quoted && fields.Of() == Transactions.Of() {
		notes = append(notes, `only tables and filters have the status "ok"; in JSON, status is "complete", and rpc_status and nfs_status say whether there was an error`)
	}
	return notes
}

// ports returns the ports in all headers of TCP or UDP that a packet has: nil if it has none.
func ports(p *record.Packet, table *field.Header) any {
	var list []any
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Table != table {
			continue
		}
		for _, name := range []string{"src_port", "dst_port"} {
			list = appendField(list, n, name)
		}
	}
	if list == nil {
		return nil
	}
	return list
}

// wiresharkProtocols maps headers to the protocols that Wireshark's filters know for them.
var wiresharkProtocols = map[string]string{
	header.Ethernet.Name: "eth", header.IPv4.Name: "ip", header.BTH.Name: "infiniband", header.RPCRDMA.Name: "rpcordma",
	header.MPAFrame.Name: "iwarp_mpa", header.DDPTagged.Name: "iwarp_ddp_rdmap",
}

// program is an RPC program whose name is a condition in Wireshark's filters.
type program struct {
	name, doc string
	number    uint32
}

var programs = []program{
	{"nfs", "NFS", nfs.ProgramNFS},
	{"mount", "the MOUNT protocol", nfs.ProgramMount},
	{"nlm", "the Network Lock Manager", nfs.ProgramNLM},
	{"nfsacl", "NFSACL", nfs.ProgramNFSACL},
	{"portmap", "rpcbind, which Wireshark calls portmap", nfs.ProgramRPCBind},
}

// in reports whether a packet is part of a Send with a message of the program.
func (p *program) in(r *record.Packet) bool {
	return r.Program.Or(0) == p.number && ofMessage(r)
}

// ofMessage reports whether a packet is part of a Send with a Call or a Reply. An acknowledgement of the Send is not.
func ofMessage(r *record.Packet) bool {
	return r.Part.Message != "" && !slices.ContainsFunc(r.Nodes, func(n record.Node) bool { return n.Table == &header.AETH })
}

// ofPrograms returns the fields of transactions that say which program and which protocols they belong to.
func ofPrograms() (list []drawnField) {
	for _, p := range programs {
		list = append(list, added(p.name, "bool", "Whether the transaction belongs to "+p.doc+".", func(r *record.Transaction) any {
			return r.Program.Or(0) == p.number
		}))
	}
	list = append(list, onTransport("transaction", func(r *record.Transaction) string { return r.Transport })...)
	return append(list, momentOf(func(r *record.Transaction) (record.Time, record.Time, bool) { return r.Start(), r.CaptureStart(), true },
		"that of the transaction", "the Call, or of the Reply if the capture does not contain the Call")...)
}

// protocol is a protocol below RPC whose name is a condition in Wireshark's filters.
type protocol struct {
	name, doc  string
	transports []string // transports that use it
}

// infinibandTransports are the transports with the headers of InfiniBand.
var infinibandTransports = []string{"RoCEv2", "RoCEv1", "InfiniBand"}

var protocols = []protocol{
	{"rpcordma", "RPC-over-RDMA", append([]string{"iWARP"}, infinibandTransports...)},
	{"infiniband", "InfiniBand or RoCE", infinibandTransports},
	{"iwarp_mpa", "iWARP", []string{"iWARP"}},
	{"iwarp_ddp_rdmap", "iWARP", []string{"iWARP"}},
	{"tcp", "TCP", []string{"iWARP", "TCP"}},
	{"udp", "UDP", []string{"RoCEv2", "UDP"}},
}

// portRoCE is the destination port of RoCEv2.
const portRoCE = 4791

// onTransport returns the fields that say which protocols carried a record.
func onTransport[T any](what string, transport func(T) string) (list []drawnField) {
	for _, p := range protocols {
		list = append(list, added(p.name, "bool", "Whether the "+what+" was carried by "+p.doc+".", func(r T) any {
			return slices.Contains(p.transports, transport(r))
		}))
	}
	return append(list, drawnField{Field{
		Path: "udp.port", Type: "number", List: true, Doc: "UDP port of RoCEv2, which is 4791 at the receiver; the other port may be different for each packet, so rdmadump packets filters by it.",
	}, func(r any) any {
		if transport(r.(T)) == "RoCEv2" {
			return []any{portRoCE}
		}
		return []any{}
	}})
}

// ofProtocols returns the fields of connections that Wireshark's filters have for packets.
func ofProtocols() []drawnField {
	list := onTransport("connection", func(r *record.Connection) string { return r.Transport })
	i := slices.IndexFunc(list, func(f drawnField) bool { return f.Path == "rpcordma" })
	list[i] = added("rpcordma", "bool", "Whether the connection carried RPC-over-RDMA.", func(r *record.Connection) any { return r.UpperLayer == "rpcrdma" })
	list = append(list, drawnField{Field{Path: "tcp.port", Type: "number", List: true, Doc: "TCP ports of both ends; empty if the connection does not use TCP."}, func(r any) any {
		c := r.(*record.Connection)
		if !slices.Contains(protocols[4].transports, c.Transport) {
			return []any{}
		}
		return portsOf(c)
	}})
	return append(list, momentOf(func(r *record.Connection) (record.Time, record.Time, bool) { return r.First, r.CaptureStart(), true }, "that of the connection", "the first packet")...)
}

// portsOf returns the ports of both ends of a connection.
func portsOf(c *record.Connection) any {
	list := []any{}
	for _, e := range []record.Endpoint{c.Client, c.Server} {
		if port, known := e.Port.Get(); known {
			list = append(list, int(port))
		}
	}
	return list
}

// momentOf returns the fields with the time of a record, in seconds since the start of the capture and since 1970. to and of say
// which packet the time is of.
func momentOf[T any](when func(T) (at, start record.Time, known bool), to, of string) []drawnField {
	field := func(path, doc string, value func(at, start record.Time) (raw any, number float64)) drawnField {
		return drawnField{Field{Path: path, Type: "number", Doc: doc, raw: func(r any) any {
			if at, start, known := when(r.(T)); known {
				raw, _ := value(at, start)
				return raw
			}
			return nil
		}}, func(r any) any {
			if at, start, known := when(r.(T)); known {
				_, number := value(at, start)
				return number
			}
			return nil
		}}
	}
	return []drawnField{
		field(timeRelative, "Time from the first packet of the capture to "+to+", in seconds.", func(at, start record.Time) (any, float64) {
			s := float64(at.Sub(start)) / 1e9
			return seconds(s), s
		}),
		field(timeEpoch, "Time of "+of+", in seconds since 1970.", func(at, _ record.Time) (any, float64) { return epoch(at), float64(at) / 1e9 }),
	}
}

// ofFindings are the fields of findings that Wireshark's filters have for packets.
var ofFindings = append(momentOf(func(r *record.Finding) (record.Time, record.Time, bool) {
	at, known := r.Time.Get()
	return at, r.CaptureStart(), known
}, "the one that shows the finding", "the packet that shows the finding"), []drawnField{
	{Field{Path: "ip.addr", Type: "address", List: true, Doc: "Addresses of both ends of the connection."}, func(r any) any {
		f := r.(*record.Finding)
		return []any{f.Client.Any(), f.Server.Any()}
	}},
	shown[*record.Finding]("at_fault", nil, "at-fault"),
}...)

// ends returns the addresses that the Call of a transaction came from and went to.
func ends(r *record.Transaction) (from, to record.Opt[string]) {
	if r.Direction == record.Backward {
		return r.Server, r.Client
	}
	return r.Client, r.Server
}

// isPlain reports whether a transport is that of RPC over TCP or UDP.
func isPlain(transport string) bool { return transport == "TCP" || transport == "UDP" }
