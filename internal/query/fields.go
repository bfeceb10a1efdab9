package query

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Field describes a field of a record type.
type Field struct {
	Path    string
	Type    string   // one of number, text, time, duration, hex, bool, address, bytes, object
	List    bool     // the path runs through a list, so there may be several values
	Values  []string // all values of an enumeration, else nil
	Doc     string
	Aliases []string // other names that filters accept for it, Wireshark's among them
	Drawn   bool     // tables and filters have the field, but JSON does not
	Several bool     // JSON has the field only with several capture points
	Omitted bool     // JSON omits the field if it has its zero value

	outcomes func() []string // all values that tables show, if they are known

	shown func(record any) any // returns what tables show for the field, if that differs from its value
	raw   func(record any) any // returns the value in the type in which it prints, if that differs
	nfs   *nfsField            // for fields of NFS arguments and results
}

// Kind returns the type of the field in words, such as "hex list".
func (f *Field) Kind() string {
	if f.List {
		return f.Type + " list"
	}
	return f.Type
}

// recordFields has the fields of a record that is a struct, by JSON name. They are listed
// when they are first used, because most runs do not use them.
type recordFields struct {
	of      string
	once    sync.Once
	make    func()
	byPath  map[string]*Field
	own     map[string]func(record any) any // fields that no tag describes
	paths   map[string][]int                // index of the field at each level; a list has no level of its own
	list    []Field
	names   []string
	aliases map[string]string
}

// Transactions, Connections and Findings are the fields of these record types.
var (
	Transactions Fields = fieldsOf("transactions", reflect.TypeFor[record.Transaction](), func() []drawnField { return slices.Concat(ofTransactions, ofPrograms(), ofTables()) })
	Connections  Fields = fieldsOf("connections", reflect.TypeFor[record.Connection](), func() []drawnField { return slices.Concat(ofConnections, ofProtocols()) })
	Findings     Fields = fieldsOf("findings", reflect.TypeFor[record.Finding](), func() []drawnField { return ofFindings })
)

// New returns the fields of another record type, as its tags describe them; of is the name
// of the type, in the plural. Headings are names that a table gives to fields.
func New[T any](of string, headings ...Heading) Fields {
	return fieldsOf(of, reflect.TypeFor[T](), func() (drawn []drawnField) {
		for _, h := range headings {
			drawn = append(drawn, shown(h.Path, h.Value, h.Name))
		}
		return drawn
	})
}

// A Heading is a column heading that names a field, in lower case with hyphens
// for spaces. Value, if it is not nil, returns what the column shows: the number of
// a field that is an object, or the text of its cells.
type Heading struct {
	Name, Path string
	Value      func(record any) any
}

// Words returns the words that the field can be compared with, as records and tables have them. It returns none if they are
// not known.
func (f *Field) Words() []string {
	if f.outcomes != nil {
		return f.outcomes()
	}
	return f.Values
}

// SortKey returns the value by which records are sorted by a field: what the
// table shows, if the field is an object.
func SortKey(fields Fields, record any, path string) any {
	if f := fields.Field(path); f.Type == "object" && f.shown != nil {
		return f.shown(record)
	}
	return fields.Get(record, path)
}

// Sortable reports whether records can be sorted by a field: an object has no
// order, unless a table shows a number for it.
func Sortable(f *Field) bool { return f.Type != "object" || f.shown != nil }

// fieldsOf returns the fields of a record, as its tags describe them, and those that only
// tables show. If several fields have the same alias, it stands for the outermost, and among
// these for the first.
func fieldsOf(of string, t reflect.Type, drawn func() []drawnField) *recordFields {
	f := &recordFields{of: of}
	f.make = func() {
		f.byPath, f.own, f.paths, f.aliases = map[string]*Field{}, map[string]func(any) any{}, map[string][]int{}, map[string]string{}
		f.add(t, "", nil, false)
		if drawn != nil {
			f.draw(drawn())
		}
		f.arrange()
	}
	return f
}

// made returns f after its fields are listed.
func (f *recordFields) made() *recordFields {
	f.once.Do(f.make)
	return f
}

// arrange sorts the fields, and resolves their aliases.
func (f *recordFields) arrange() {
	slices.SortStableFunc(f.list, func(a, b Field) int { return strings.Count(a.Path, ".") - strings.Count(b.Path, ".") })
	for i := range f.list {
		field := &f.list[i]
		if f.of == "findings" && field.Path == "rule" {
			for r := range rule.All {
				field.Values = append(field.Values, rule.All[r].ID)
			}
		}
		f.names = append(f.names, field.Path)
		kept := field.Aliases[:0]
		for _, alias := range field.Aliases {
			alias, below, _ := strings.Cut(alias, "=")
			if f.aliases[alias] != "" || f.paths[alias] != nil {
				continue
			}
			if below != "" {
				f.aliases[alias] = field.Path + "." + below
				continue
			}
			f.aliases[alias] = field.Path
			kept = append(kept, alias)
		}
		field.Aliases = kept
	}
	for alias, path := range f.aliases { // Some aliases are in the tag of an outer field.
		if i := slices.IndexFunc(f.list, func(f Field) bool { return f.Path == path }); !slices.Contains(f.list[i].Aliases, alias) {
			f.list[i].Aliases = append(f.list[i].Aliases, alias)
		}
	}
	slices.SortFunc(f.list, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(f.names)
	for i := range f.list {
		f.byPath[f.list[i].Path] = &f.list[i]
	}
}

// draw adds the fields that tables show and no tag describes, and what tables show for the
// others. A field that has a tag by now is not added.
func (f *recordFields) draw(drawn []drawnField) {
	for _, d := range drawn {
		i := slices.IndexFunc(f.list, func(field Field) bool { return field.Path == d.Path })
		switch {
		case i >= 0:
			f.list[i].Aliases = append(slices.Clone(f.list[i].Aliases), d.Aliases...)
			if d.shown != nil || d.outcomes != nil || d.raw != nil { // Some only add names.
				f.list[i].shown, f.list[i].outcomes, f.list[i].raw = d.shown, d.outcomes, d.raw
			}
		case d.get != nil:
			d.Drawn = true
			f.own[d.Path] = d.get
			f.paths[d.Path] = []int{}
			f.list = append(f.list, d.Field)
		}
	}
}

// add lists the fields of a struct type.
func (f *recordFields) add(t reflect.Type, prefix string, index []int, list bool) {
	for _, field := range record.FieldsOf(t) {
		path, inner, many := append(slices.Clone(index), field.Index), field.Type, list
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			many = many || inner.Kind() == reflect.Slice
			inner = inner.Elem()
		}
		name := prefix + field.Name
		f.paths[name] = path
		values := slices.Clone(field.Values)
		if values == nil {
			values = record.ValuesOf(inner) // of the elements of a list
		}
		f.list = append(f.list, Field{Path: name, Type: word(inner, field.Name), List: many, Values: values, Doc: field.Doc, Aliases: slices.Clone(field.Aliases), Omitted: field.OmitZero})
		if inner.Kind() == reflect.Struct {
			f.add(inner, name+".", path, many)
		}
	}
}

// word returns the name of a type for Field.Type.
func word(t reflect.Type, name string) string {
	switch {
	case t == reflect.TypeFor[record.Time]():
		return "time"
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return "hex"
	case name == "ns" || strings.HasSuffix(name, "_ns"):
		return "duration"
	case name == "address":
		return "address"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return "number"
}

// opt is the interface of every record.Opt.
type opt interface{ Pointer() any }

// These methods implement Fields.

func (f *recordFields) Of() string               { return f.of }
func (f *recordFields) Has(path string) bool     { _, ok := f.made().paths[path]; return ok }
func (f *recordFields) Names() []string          { return f.made().names }
func (f *recordFields) List() []Field            { return f.made().list }
func (f *recordFields) Field(path string) *Field { return f.made().byPath[path] }
func (f *recordFields) Alias(name string) string { return f.made().aliases[name] }

// Get returns the value of a field.
func (f *recordFields) Get(record any, path string) any { return f.getter(path)(record) }

// getter returns a function that does what Get does for one path.
func (f *recordFields) getter(path string) func(any) any {
	if own := f.made().own[path]; own != nil {
		return own
	}
	index := f.paths[path]
	return func(record any) any { return lookUp(reflect.ValueOf(record), index, plain) }
}

// Raw returns the value of a field in its own type.
func (f *recordFields) Raw(record any, path string) any {
	switch field := f.made().byPath[path]; {
	case field.nfs != nil:
		return field.nfs.raw(record)
	case field.raw != nil:
		return field.raw(record)
	}
	if own := f.own[path]; own != nil {
		return own(record)
	}
	return lookUp(reflect.ValueOf(record), f.paths[path], reflect.Value.Interface)
}

// lookUp returns the value at an index path: a list if the path runs through one, nil if
// there is no value.
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

// collect follows an index path through pointers, optional values and lists, and appends the
// values to found. The record must be a pointer, so that its fields have addresses.
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

// plain returns a value as expressions use it: all numbers become ints, hex numbers too.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		if t, ok := v.Interface().(record.Time); ok {
			return timeValue(t)
		}
		return int(v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integer(v.Uint())
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
	if v.Kind() == reflect.Struct { // This is an element of a list, for any(timeline, .event == "nak").
		members := map[string]any{}
		for _, f := range record.FieldsOf(v.Type()) {
			members[f.Name] = lookUp(v.Field(f.Index), nil, plain)
		}
		return members
	}
	return v.Interface()
}

// timeValue returns a time as expressions use it.
func timeValue(t record.Time) time.Time { return time.Unix(0, int64(t)).UTC() }

// integer returns a number as expressions use it: an int, or a uint64 if an int is too small.
func integer(v uint64) any {
	if v > math.MaxInt {
		return v
	}
	return int(v)
}

// packetFields has the fields of packet records: the record's own, those of headers, and
// those of NFS arguments and results. The last are many, so they are listed only when one of
// them, or all, are needed.
type packetFields struct {
	once    sync.Once
	own     map[string]func(*record.Packet) any
	headers byName

	rest  sync.Once
	nfs   byName
	list  []Field // of headers and nfs
	names []string
}

// byName maps paths to fields, and other names to paths.
type byName struct {
	fields  map[string]*Field
	aliases map[string]string
}

// add adds a field. A field that several tables have is added once.
func (n *byName) add(field Field) {
	field.Aliases = append(slices.Clone(field.Aliases), shortNames[field.Path]...)
	for _, alias := range field.Aliases {
		n.aliases[alias] = field.Path
	}
	if same := n.fields[field.Path]; same != nil {
		for _, alias := range field.Aliases {
			if !slices.Contains(same.Aliases, alias) {
				same.Aliases = append(same.Aliases, alias)
			}
		}
		return
	}
	n.fields[field.Path] = &field
}

// ownFields lists the fields of packets that are not in a header.
var ownFields = []struct {
	Field
	get func(*record.Packet) any
}{
	{Field{Path: "type", Type: "text", Doc: "The record's type, always \"packet\"."}, func(*record.Packet) any { return "packet" }},
	{Field{Path: "number", Type: "number", Doc: "Number of the packet, counted from 1 over all files, or, with several capture points, at its point.", Aliases: []string{"frame.number", "packet"}}, func(p *record.Packet) any { return int(p.Number) }},
	{Field{Path: "point", Type: "text", Several: true, Doc: "Name of the capture point whose number the packet has; present only with several capture points."}, func(p *record.Packet) any {
		if p.Path == nil {
			return nil
		}
		return p.Path.Point
	}},
	{Field{Path: "seen.point", Type: "text", List: true, Several: true, Doc: "Names of the capture points that captured the packet, in the order in which it passed them; present only with several capture points."}, func(p *record.Packet) any {
		return seen(p, func(s *record.Sighting) any { return s.Point })
	}},
	{Field{Path: "seen.packet", Type: "number", List: true, Several: true, Doc: "Numbers of the packet at these points."}, func(p *record.Packet) any {
		return seen(p, func(s *record.Sighting) any { return int(s.Packet) })
	}},
	{Field{Path: "seen.time", Type: "time", List: true, Several: true, Doc: "Times at which the packet was captured there, on the first point's clock."}, func(p *record.Packet) any {
		return seen(p, func(s *record.Sighting) any { return timeValue(s.Time) })
	}},
	{Field{Path: "time", Type: "time", Doc: "Time at which the packet was captured.", Aliases: []string{"frame.time"}}, func(p *record.Packet) any { return timeValue(p.Time) }},
	{Field{Path: "length", Type: "number", Doc: "Length of the packet on the wire, in bytes.", Aliases: []string{"frame.len"}}, func(p *record.Packet) any { return p.Length }},
	{Field{Path: "captured", Type: "number", Doc: "Number of bytes of the packet in the capture.", Aliases: []string{"frame.cap_len"}}, func(p *record.Packet) any { return p.Captured }},
	{Field{Path: "src", Type: "address", Doc: "Source IP address or GID, or LID on native InfiniBand; null if the packet has none.", Aliases: []string{"source"}}, func(p *record.Packet) any { return textOrNil(p.AppendSource(nil)) }},
	{Field{Path: "dst", Type: "address", Doc: "Destination IP address or GID, or LID on native InfiniBand; null if the packet has none.", Aliases: []string{"destination"}}, func(p *record.Packet) any { return textOrNil(p.AppendDestination(nil)) }},
	{Field{Path: "ip.addr", Type: "address", List: true, Drawn: true, Doc: "Source and destination addresses."}, func(p *record.Packet) any {
		return []any{textOrNil(p.AppendSource(nil)), textOrNil(p.AppendDestination(nil))}
	}},
	{
		Field{Path: "transport", Type: "text", Values: []string{"RoCEv2", "RoCEv1", "InfiniBand", "iWARP", "TCP", "UDP"}, Doc: "Transport protocol of the packet; null if the packet carries no RDMA."},
		func(p *record.Packet) any { return textOrNil([]byte(p.Transport)) },
	},
	{Field{Path: "connection", Type: "number", Doc: "Number of the packet's connection; null if it belongs to none.", Aliases: []string{"conn"}}, func(p *record.Packet) any { return p.Connection.Any() }},
	{
		Field{Path: "rdma_operation", Type: "text", Values: []string{"Send", "RDMA Write", "RDMA Read", "Atomic"}, Doc: "RDMA operation that the packet is part of, which is not an NFS operation; null if it is part of none.", Aliases: []string{"operation"}},
		func(p *record.Packet) any { return textOrNil([]byte(p.RDMAOperation)) },
	},
	{Field{Path: "transaction", Type: "number", Doc: "Number (id) of the transaction that the packet belongs to; null if it belongs to none.", Aliases: []string{"rpc-id"}}, func(p *record.Packet) any { return number(p.Transaction) }},
	{Field{Path: "xid", Type: "hex", Doc: "XID of the RPC that the packet belongs to; null if it belongs to none."}, func(p *record.Packet) any { return number(p.XID) }},
	{
		Field{Path: "marks", Type: "text", List: true, Values: record.Marks(0).Values(), Doc: "Unusual properties of the packet: retransmitted, out_of_order (captured after a later packet), after_gap (an earlier packet had not been accepted), refused (the packet is a NAK or Terminate that rejects a request), bad_icrc (the ICRC, or the CRC of an FPDU, is bad), bad_checksum (the TCP checksum is bad), late (the payload had been counted as missing from the capture), lost_on_path or damaged_on_path (with several capture points: it was lost between them, or damaged so that its receiver dropped it), duplicated (a second copy that no sender sent: the network made it, as several capture points show, or the capture has packets twice), changed_on_path (with several capture points: the payload of a TCP segment was changed between them, and its checksum with it, so that its receiver took it)."},
		func(p *record.Packet) any {
			marks := []any{}
			for name := range p.Marks.Names() {
				marks = append(marks, name)
			}
			return marks
		},
	},
	{
		Field{Path: "no_transaction_reason", Type: "text", Values: record.UnassignedReason("").Values(), Doc: "Reason why the packet belongs to no RPC: not_rdma (it carries no RDMA, or is malformed), handshake (connection management, or a TCP segment without data), receiver_dropped (the receiver dropped it), other_upper_layer (the connection does not carry RPC-over-RDMA), unknown_operation (the RDMA operation is not in the capture, or its state was discarded at the memory limit), no_transaction (the RDMA operation belongs to no known RPC), finished (the RPC was already complete); null if it belongs to one."},
		func(p *record.Packet) any { return textOrNil([]byte(p.NoTransactionReason)) },
	},
	{
		Field{Path: "icrc", Type: "text", Values: record.Check("").Values(), Doc: "The result of checking the invariant CRC: ok, bad, or unchecked (the packet is truncated or has no ICRC)."},
		func(p *record.Packet) any { return string(p.ICRC) },
	},
	{
		Field{Path: timeRelative, Type: "number", Drawn: true, Doc: "Time since the first packet of the capture, in seconds.", raw: func(r any) any { return sinceStart(r.(*record.Packet)) }},
		func(p *record.Packet) any { return float64(sinceStart(p)) },
	},
	{
		Field{Path: timeEpoch, Type: "number", Drawn: true, Doc: "Time at which the packet was captured, in seconds since 1970.", raw: func(r any) any { return epoch(r.(*record.Packet).Time) }},
		func(p *record.Packet) any { return float64(p.Time) / 1e9 },
	},
	{
		Field{Path: "tcp.port", Type: "number", List: true, Drawn: true, Doc: "Source and destination ports of TCP."},
		func(p *record.Packet) any { return ports(p, &header.TCP) },
	},
	{
		Field{Path: "udp.port", Type: "number", List: true, Drawn: true, Doc: "Source and destination ports of UDP."},
		func(p *record.Packet) any { return ports(p, &header.UDP) },
	},
	{
		Field{Path: "infiniband.invariant.crc", Type: "hex", Drawn: true, Doc: "The invariant CRC, with the first byte on the wire as the most significant one. The result of checking it is icrc."},
		func(p *record.Packet) any { return number(p.StoredICRC) },
	},
	{Field{Path: "summary", Type: "text", Doc: "Summary of the packet in one line.", Aliases: []string{"info"}}, func(p *record.Packet) any { return string(p.Summary) }},
}

// number returns an optional number as expressions use it.
func number[T ~int64 | ~uint32](v record.Opt[T]) any {
	if n, known := v.Get(); known {
		return int(n)
	}
	return nil
}

// shortNames maps fields to names that are clear without the name of the header.
var shortNames = map[string][]string{"rpcrdma.credits": {"credits"}, "bth.dest_qpn": {"qpn"}, "bth.psn": {"psn"}}

// seen returns a value for each capture point that captured a packet, if there are several points.
func seen(p *record.Packet, value func(*record.Sighting) any) any {
	if p.Path == nil {
		return nil
	}
	list := make([]any, 0, len(p.Path.Seen))
	for i := range p.Path.Seen {
		list = append(list, value(&p.Path.Seen[i]))
	}
	return list
}

// Packets are the fields of packet records.
var Packets Fields = new(packetFields)

// with returns the part of the fields that a field of this name belongs to.
func (f *packetFields) with(name string) *byName {
	if InTables(name) {
		return &f.all().nfs
	}
	return &f.made().headers
}

// all returns f after all of its fields are listed.
func (f *packetFields) all() *packetFields {
	f.rest.Do(func() {
		f.nfs = byName{map[string]*Field{}, map[string]string{}}
		for _, field := range nfsFields() {
			f.nfs.add(field)
		}
		for _, n := range []*byName{&f.made().headers, &f.nfs} {
			for _, field := range n.fields {
				f.list = append(f.list, *field)
				f.names = append(f.names, field.Path)
			}
		}
		slices.Sort(f.names)
		slices.SortFunc(f.list, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	})
	return f
}

// made returns f after its fields are listed, except for those of NFS.
func (f *packetFields) made() *packetFields {
	f.once.Do(f.make)
	return f
}

// make lists the fields, except for those of NFS.
func (f *packetFields) make() {
	f.own, f.headers = map[string]func(*record.Packet) any{}, byName{map[string]*Field{}, map[string]string{}}
	add := f.headers.add
	for _, own := range ownFields {
		f.own[own.Path] = own.get
		add(own.Field)
	}
	for _, p := range programs {
		f.own[p.name] = func(r *record.Packet) any { return p.in(r) }
		add(Field{Path: p.name, Type: "bool", Drawn: true, Doc: "Whether the packet is part of a Send with a Call or Reply of " + p.doc + "."})
	}
	for _, h := range header.All {
		object := Field{Path: h.Name, Type: "object", Doc: aboutHeader(h)}
		if slices.Contains(wiresharkHeaders, h.Name) {
			object.Aliases = []string{"infiniband." + h.Name}
		}
		if name := wiresharkProtocols[h.Name]; name != "" {
			object.Aliases = append(object.Aliases, name)
		}
		add(object)
		for i := range h.Fields {
			row := &h.Fields[i]
			name := Field{Path: h.Name + "." + row.Name, Type: formatWords[row.Format], Doc: aboutRow(h, row)}
			if row.Alias != "" && header.Wireshark()[row.Alias] == nil {
				name.Aliases = []string{row.Alias}
			}
			add(name)
			if row.Names != nil && row.Format != field.Enum {
				add(Field{Path: name.Path + "_name", Type: "text", Doc: strings.TrimSuffix(aboutRow(h, row), ".") + ", by name."})
				f.headers.fields[name.Path].shown = func(r any) any { // bth.opcode == "RC SEND Only"
					return fromTree(r.(*record.Packet), h.Name, row.Name+"_name", true)
				}
			}
		}
	}
	for _, x := range header.Extras {
		name := Field{Path: strings.TrimPrefix(x.Object+"."+x.Name, "."), Type: "text", List: x.Kind == header.TextList, Doc: x.Doc}
		switch x.Kind {
		case header.NumberList:
			name.Type, name.List = "number", true
		case header.Number:
			name.Type = "number"
		}
		if x.Alias != "" {
			name.Aliases = []string{x.Alias}
		}
		name.outcomes = namesInRPC[name.Path]
		add(name)
	}
	f.own["rpc.program"] = func(p *record.Packet) any { // tshark has it in Replies, too
		if own := fromTree(p, header.RPC.Name, "program", true); own != nil || !ofMessage(p) {
			return own
		}
		return number(p.Program)
	}
	add(Field{Path: "rpcrdma.position", Type: "number", List: true, Doc: "Positions of the message's Read chunks in the Payload stream, in bytes.", Aliases: []string{"rpcordma.position"}})
	for name, sources := range header.Wireshark() {
		first := sources[0]
		add(Field{Path: name, Type: formatWords[first.Field.Format], Drawn: true, Doc: aboutSource(&first), Aliases: []string{name}})
		f.own[name] = func(p *record.Packet) any { return fromSources(p, sources) }
	}
}

// namesInRPC has the functions that return all values of fields of RPC headers.
var namesInRPC = map[string]func() []string{
	"rpc.program_name": nfs.ProgramWords, "rpc.procedure_name": nfs.ProcedureWords, "rpc.nfs_status": nfsStatuses, "rpc.operations": nfs.OperationWords,
}

// headerWords has the usual short names of headers, by the name of the table, if they are not the
// name of the table in capital letters.
var headerWords = map[string]string{
	header.Ethernet.Name: "Ethernet", header.IPv4.Name: "IPv4", header.IPv6.Name: "IPv6", header.Pause.Name: "Pause",
	header.AtomicETH.Name: "AtomicETH", header.AtomicAckETH.Name: "AtomicAckETH", header.ImmDt.Name: "ImmDt", header.IPoIB.Name: "IPoIB",
	header.IPCM.Name: "IP CM", header.PrivateData.Name: "RPC-over-RDMA private data", header.RPCRDMA.Name: "RPC-over-RDMA",
	header.Segment.Name: "RPC-over-RDMA segment", header.RPC.Name: "RPC",
}

// shortHeader returns the usual short name of a header, such as BTH.
func shortHeader(h *field.Header) string {
	if word := headerWords[h.Name]; word != "" {
		return word
	}
	return strings.ToUpper(h.Name)
}

// messagesCM is the name of the tables of all messages of the connection manager.
const messagesCM = "cm"

// aboutHeader returns the description of a header.
func aboutHeader(h *field.Header) string {
	short := shortHeader(h)
	switch {
	case h.Name == messagesCM:
		return "The fields of a message of the InfiniBand connection manager (CM)."
	case strings.EqualFold(short, h.Label) || headerWords[h.Name] != "":
		return fmt.Sprintf("The fields of the header %s.", short)
	}
	return fmt.Sprintf("The fields of the header %s (%s).", short, h.Label)
}

// aboutRow returns the description of a field of a header. For a field of the connection manager, it
// names the messages that have the field.
func aboutRow(h *field.Header, row *field.Field) string {
	if h.Name != messagesCM {
		return fmt.Sprintf("%s: %s.", shortHeader(h), row.Label)
	}
	var messages []string
	for _, other := range header.All {
		if other.Name == messagesCM && slices.ContainsFunc(other.Fields, func(f field.Field) bool { return f.Name == row.Name }) {
			messages = append(messages, strings.TrimPrefix(other.Label, "CM "))
		}
	}
	return fmt.Sprintf("CM %s: %s.", strings.Join(messages, ", "), row.Label)
}

// aboutSource returns the description of a field that only Wireshark names. In a message of the
// connection manager, the name is only for that message.
func aboutSource(s *header.Source) string {
	if s.Table.Name == messagesCM {
		return fmt.Sprintf("%s: %s.", s.Table.Label, s.Field.Label)
	}
	return aboutRow(s.Table, s.Field)
}

// wiresharkHeaders lists the headers that Wireshark also names, with the prefix "infiniband.".
var wiresharkHeaders = []string{"lrh", "grh", "bth", "rdeth", "deth", "reth", "aeth", "atomiceth", "atomicacketh", "mad"}

// fromSources returns the values of a field of Wireshark's: nil if the packet has none, a list if it
// has several.
func fromSources(p *record.Packet, sources []header.Source) any {
	var found []any
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Table == nil {
			continue
		}
		for _, s := range sources {
			if s.Table == n.Table && s.Field.Whole(n.Data) && (s.When == nil || s.When(n.Data)) {
				found = appendValue(found, s.Field, n.Data)
			}
		}
	}
	return oneOrList(found)
}

// oneOrList returns nil for no value, the value itself if there is one, and the list otherwise.
func oneOrList(found []any) any {
	switch len(found) {
	case 0:
		return nil
	case 1:
		return found[0]
	}
	return found
}

// formatWords maps the formats of header fields to the names of types.
var formatWords = [...]string{
	field.Dec: "number", field.Hex: "hex", field.Flag: "bool", field.IPv4: "address", field.IPv6: "address", field.MAC: "address", field.Enum: "text", field.Bytes: "bytes",
}

// These methods implement Fields.

func (f *packetFields) Of() string               { return "packets" }
func (f *packetFields) Has(path string) bool     { return f.Field(path) != nil }
func (f *packetFields) Field(path string) *Field { return f.with(path).fields[path] }
func (f *packetFields) Names() []string          { return f.all().names }
func (f *packetFields) List() []Field            { return f.all().list }
func (f *packetFields) Alias(name string) string { return f.with(name).aliases[name] }

// Raw returns the value of a field in its own type.
func (f *packetFields) Raw(record any, path string) any {
	switch field := f.Field(path); {
	case field.nfs != nil:
		return field.nfs.raw(record)
	case field.raw != nil:
		return field.raw(record)
	}
	return f.Get(record, path)
}

// Get returns the value of a field.
func (f *packetFields) Get(r any, path string) any { return f.getter(path)(r) }

// getter returns a function that does what Get does for one path.
func (f *packetFields) getter(path string) func(any) any {
	if own := f.made().own[path]; own != nil {
		return func(r any) any { return own(r.(*record.Packet)) }
	}
	if n := f.Field(path).nfs; n != nil {
		return n.plain
	}
	object, name, nested := strings.Cut(path, ".")
	return func(r any) any { return fromTree(r.(*record.Packet), object, name, nested) }
}

// textOrNil returns text, or nil if it is empty.
func textOrNil(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	return string(text)
}

// fromTree returns the value of a field in a packet's tree. If there are several fields with
// this name, it returns a list of their values.
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
		case !nested && depth == 0 && n.Name == object, nested && inside > 0 && n.Name == name, nested && inside > 0 && n.Name == "" && (n.Kind == record.NodeText && name == "operations" || n.Kind == record.NodeNumber && name == "gids"):
			switch n.Kind {
			case record.NodeText:
				found = append(found, n.Text)
			case record.NodeNumber:
				found = append(found, int(n.Number))
			}
		}
	}
	return oneOrList(found)
}

// appendField appends the value of a field of a node.
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
	return appendValue(found, row, n.Data)
}

// appendValue appends the value of a field. The caller has checked that data contains the whole field.
func appendValue(found []any, row *field.Field, data []byte) []any {
	switch row.Format {
	case field.Dec, field.Hex:
		return append(found, integer(row.Uint(data)))
	case field.Flag:
		return append(found, row.Uint(data) != 0)
	}
	return append(found, string(row.AppendText(nil, data)))
}

// Wireshark returns the names of the field in Wireshark: those of its aliases that begin with
// a protocol.
func (f *Field) Wireshark() (names []string) {
	for _, alias := range f.Aliases {
		if strings.Contains(alias, ".") {
			names = append(names, alias)
		}
	}
	return names
}
