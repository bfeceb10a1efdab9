package query

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// recordFields are those of a record that is a struct, by JSON name.
type recordFields struct {
	paths   map[string][]int // index of the field at each level; lists are passed through
	names   []string
	aliases map[string]string
}

// wiresharkTransaction has Wireshark's names for what a transaction record says.
var wiresharkTransaction = map[string]string{
	"rpcordma.xid": "xid", "rpc.xid": "xid", "rpcordma.msg_type": "call.rdma_proc", "rpcordma.version": "call.rdma_vers",
	"rpcordma.flow_control": "call.credits", "rpcordma.position": "read_chunks.position", "rpc.program": "program", "rpc.programversion": "version",
	"rpc.procedure": "procedure", "nfs.opcode": "operations", "nfs.nfsstat4": "nfs_status", "frame.number": "call.packet", "frame.time": "call.time",
	"rpc.time": "latency_ns", "latency": "latency_ns", "infiniband.ieth": "invalidation.handle",
	"handle": "timeline.handle", "rpcordma.rdma_handle": "timeline.handle",
}

// Transactions, Connections and Findings are the fields of those records.
var (
	Transactions Fields = fieldsOf(reflect.TypeFor[record.Transaction](), wiresharkTransaction)
	Connections  Fields = fieldsOf(reflect.TypeFor[record.Connection](), map[string]string{
		"ip.src": "client.address", "ip.dst": "server.address", "infiniband.cm.req.serviceid": "service_id",
	})
	Findings Fields = fieldsOf(reflect.TypeFor[record.Finding](), map[string]string{
		"frame.number": "packet", "rpcordma.xid": "xid", "rpc.xid": "xid",
	})
)

func fieldsOf(t reflect.Type, aliases map[string]string) *recordFields {
	f := &recordFields{paths: map[string][]int{}, aliases: aliases}
	f.add(t, "", nil)
	slices.Sort(f.names)
	return f
}

// add lists the fields of a struct type.
func (f *recordFields) add(t reflect.Type, prefix string, index []int) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || isOpt(t) {
		if isOpt(t) {
			t = t.Field(0).Type
		} else {
			t = t.Elem()
		}
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		tag := jsonName(t.Field(i))
		if tag == "" {
			continue
		}
		path := append(slices.Clone(index), i)
		f.paths[prefix+tag] = path
		f.names = append(f.names, prefix+tag)
		f.add(t.Field(i).Type, prefix+tag+".", path)
	}
}

// opt is what every record.Opt has.
type opt interface{ Pointer() any }

// isOpt says whether a type is a record.Opt.
func isOpt(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(reflect.TypeFor[opt]())
}

// jsonName is a struct field's name in JSON, empty when it is not there.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

func (f *recordFields) Has(path string) bool     { _, ok := f.paths[path]; return ok }
func (f *recordFields) Names() []string          { return f.names }
func (f *recordFields) Alias(name string) string { return f.aliases[name] }

func (f *recordFields) Get(record any, path string) any {
	return lookUp(reflect.ValueOf(record), f.paths[path], plain)
}

func (f *recordFields) Raw(record any, path string) any {
	return lookUp(reflect.ValueOf(record), f.paths[path], reflect.Value.Interface)
}

// lookUp is what an index path leads to: a list when it runs through one, nil
// when there is nothing.
func lookUp(v reflect.Value, index []int, value func(reflect.Value) any) any {
	var found []any
	list := false
	collect(v, index, value, &found, &list)
	switch {
	case list:
		return found
	case len(found) == 0:
		return nil
	}
	return found[0]
}

// collect follows an index path, through pointers, what may be unknown, and
// lists. The record is a pointer, so that all of it has an address.
func collect(v reflect.Value, index []int, value func(reflect.Value) any, found *[]any, list *bool) {
	for {
		if v.Kind() == reflect.Struct {
			o, ok := v.Addr().Interface().(opt)
			if !ok {
				break
			}
			p := o.Pointer()
			if p == nil {
				return
			}
			v = reflect.ValueOf(p)
		}
		if v.Kind() != reflect.Pointer {
			break
		}
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		*list = true
		for i := range v.Len() {
			collect(v.Index(i), index, value, found, list)
		}
		return
	}
	if len(index) == 0 {
		*found = append(*found, value(v))
		return
	}
	collect(v.Field(index[0]), index[1:], value, found, list)
}

// plain turns a value into one of expr's kinds: numbers are ints, hex numbers
// too.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		if t, ok := v.Interface().(record.Time); ok {
			return time.Unix(0, int64(t)).UTC()
		}
		return int(v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int(v.Uint())
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	if v.Kind() == reflect.Struct { // an element of a list, for any(timeline, .event == "nak")
		members := map[string]any{}
		for i := range v.NumField() {
			if tag := jsonName(v.Type().Field(i)); tag != "" {
				members[tag] = lookUp(v.Field(i), nil, plain)
			}
		}
		return members
	}
	return v.Interface()
}

// packetFields are those of a packet record: its own and those of the tables.
type packetFields struct {
	names   []string
	known   map[string]bool
	aliases map[string]string
}

// Packets are the fields of packet records.
var Packets Fields = func() *packetFields {
	f := &packetFields{known: map[string]bool{}, aliases: map[string]string{
		"frame.number": "number", "frame.len": "length", "frame.cap_len": "captured", "frame.time": "time", "ip.src": "src", "ip.dst": "dst",
		"ipv6.src": "src", "ipv6.dst": "dst", "infiniband.invariant.crc": "icrc", "xid": "rpcrdma.xid", "credits": "rpcrdma.credits",
		"rpc.programversion": "rpc.version", "rpc.msgtyp": "rpc.message_type",
	}}
	add := func(name string) {
		if !f.known[name] {
			f.known[name] = true
			f.names = append(f.names, name)
		}
	}
	for _, name := range []string{"type", "number", "time", "length", "captured", "src", "dst", "transport", "connection", "icrc", "summary", "payload_bytes"} {
		add(name)
	}
	for _, h := range header.All {
		add(h.Name)
		for i := range h.Fields {
			row := &h.Fields[i]
			add(h.Name + "." + row.Name)
			if row.Names != nil && row.Format != field.Enum {
				add(h.Name + "." + row.Name + "_name")
			}
			if row.Alias != "" {
				f.aliases[row.Alias] = h.Name + "." + row.Name
			}
		}
	}
	for _, name := range []string{
		"cm.message", "mpa.frame", "mpa.ird", "mpa.ord", "mpa.ulpdu_length", "mpa.crc", "rdmap.error", "rpcrdma.header_bytes", "rpcrdma.rdma_err", "rpcrdma.error", "rpcrdma.vers_low", "rpcrdma.vers_high", "rpcrdma.position",
		"rpc.rpc_vers", "rpc.program", "rpc.program_name", "rpc.version", "rpc.procedure", "rpc.procedure_name", "rpc.credential", "rpc.verifier",
		"rpc.rpc_status", "rpc.nfs_status", "rpc.operations", "error",
	} {
		add(name)
	}
	slices.Sort(f.names)
	return f
}()

func (f *packetFields) Has(path string) bool     { return f.known[path] }
func (f *packetFields) Names() []string          { return f.names }
func (f *packetFields) Alias(name string) string { return f.aliases[name] }

func (f *packetFields) Raw(record any, path string) any { return f.Get(record, path) }

func (f *packetFields) Get(r any, path string) any {
	p := r.(*record.Packet)
	switch path {
	case "type":
		return "packet"
	case "number":
		return int(p.Number)
	case "time":
		return time.Unix(0, int64(p.Time)).UTC()
	case "length":
		return p.Length
	case "captured":
		return p.Captured
	case "src":
		return address(p.AppendSource(nil))
	case "dst":
		return address(p.AppendDestination(nil))
	case "transport":
		if p.Transport == "" {
			return nil
		}
		return p.Transport
	case "connection":
		return p.Connection.Any()
	case "icrc":
		return string(p.ICRC)
	case "summary":
		return string(p.Summary)
	}
	first, rest, nested := strings.Cut(path, ".")
	return fromTree(p, first, rest, nested)
}

func address(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	return string(text)
}

// fromTree looks a field up in the packet's tree: all that have its name, in a
// list when there are several.
func fromTree(p *record.Packet, object, name string, nested bool) any {
	var found []any
	inside, depth := 0, 0 // depth at which the wanted header was opened
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch n.Kind {
		case record.NodeObject, record.NodeList:
			depth++
			if depth == 1 && n.Name == object {
				if !nested {
					return true
				}
				inside = depth
			}
			continue
		case record.NodeEndObject, record.NodeEndList:
			if depth == inside {
				inside = 0
			}
			depth--
			continue
		}
		switch {
		case n.Table != nil && n.Table.Name == object && (n.Kind == record.NodeHeader || inside > 0):
			if !nested {
				return true
			}
			found = appendField(found, n, name)
		case n.Kind == record.NodeFields && inside > 0:
			found = appendField(found, n, name)
		case !nested && depth == 0 && n.Name == object, nested && inside > 0 && n.Name == name, nested && inside > 0 && n.Name == "" && n.Kind == record.NodeText && name == "operations":
			switch n.Kind {
			case record.NodeText:
				found = append(found, n.Text)
			case record.NodeNumber:
				found = append(found, int(n.Number))
			}
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	}
	return found
}

func appendField(found []any, n *record.Node, name string) []any {
	row := n.Table.Field(name)
	if row == nil {
		if base, ok := strings.CutSuffix(name, "_name"); ok {
			if row = n.Table.Field(base); row != nil && row.Names != nil && row.Whole(n.Data) {
				return append(found, row.Names(row.Uint(n.Data)))
			}
		}
		return found
	}
	if !row.Whole(n.Data) {
		return found
	}
	switch row.Format {
	case field.Dec, field.Hex:
		return append(found, int(row.Uint(n.Data)))
	case field.Flag:
		return append(found, row.Uint(n.Data) != 0)
	}
	return append(found, string(row.AppendText(nil, n.Data)))
}
