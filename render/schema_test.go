package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/query"
)

// This file generates the schemas of the records: from the tags of their fields and, for
// packets, from the tables of headers. The schemas are stored as files, so that people can
// read and link them and the program can embed them.

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(m.key)
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemas lists the records that have a schema, with their type; the type of packets is nil.
var schemas = []struct {
	name, description string
	of                reflect.Type
}{
	{"comparison", "What two captures have of the same thing, and how it changed", reflect.TypeFor[analyze.Comparison]()},
	{"connection", "A queue pair's, or an iWARP stream's, life", reflect.TypeFor[record.Connection]()},
	{"credits", "The credits of one direction of a connection over time", reflect.TypeFor[analyze.Credits]()},
	{"file", "A file or directory, and the RPCs that acted on it", reflect.TypeFor[analyze.File]()},
	{"finding", "A rule that was broken", reflect.TypeFor[record.Finding]()},
	{"handles", "Which handles a connection exposed, for how long, and who invalidated them", reflect.TypeFor[analyze.Handles]()},
	{"interface", "A network interface that can be captured on", reflect.TypeFor[capture.Interface]()},
	{"lost_packet", "A packet that was lost between two capture points", reflect.TypeFor[record.LostPacket]()},
	{"network", "What happened to the packets of one direction between two capture points", reflect.TypeFor[record.Network]()},
	{"overview", "A summary of a capture: what its connections carried, and where the time went", reflect.TypeFor[analyze.Overview]()},
	{"packet", "One frame, one object a header under its lower-case name; where there are several, the second is name_2", nil},
	{"point", "A capture point: a place in the network with its clock", reflect.TypeFor[record.Point]()},
	{"problem", "What went wrong: what happened, what it cost, where it comes from, and which command shows it", reflect.TypeFor[record.Problem]()},
	{"rate", "Sums of the transactions of one interval of time", reflect.TypeFor[analyze.Rate]()},
	{"rdma_operation", "One RDMA operation of any upper layer: a Send, an RDMA Write, an RDMA Read or an Atomic", reflect.TypeFor[record.RDMAOperation]()},
	{"rdma_stats", "Sums of the RDMA operations of one group", reflect.TypeFor[analyze.OperationStats]()},
	{"stats", "Sums of the transactions of one program, procedure or operation", reflect.TypeFor[analyze.Stats]()},
	{"summary", "The last record: what there was, and what could not be read", reflect.TypeFor[record.Summary]()},
	{"task", "What an application waited for: a request, and the requests that repeat it", reflect.TypeFor[record.Task]()},
	{"transaction", "One RPC: its Call, the memory that it exposed, what moved, its Reply", reflect.TypeFor[record.Transaction]()},
}

// TestSchemaFiles: the files contain the generated schemas. The flag -update writes them.
func TestSchemaFiles(t *testing.T) {
	written, _ := filepath.Glob("schema/*.json")
	if len(written) != len(schemas) && !*update {
		t.Errorf("%d files for %d records", len(written), len(schemas))
	}
	for _, s := range schemas {
		made := object{
			{"$schema", "https://json-schema.org/draft/2020-12/schema"},
			{"$id", "urn:rdmadump:1:" + s.name},
			{"title", s.name},
			{"description", s.description},
		}
		defs := definitions{byName: map[string]reflect.Type{}}
		var body object
		if s.of == nil {
			body = packetSchema(&defs)
		} else {
			body = defs.structOf(s.of)
		}
		if len(defs.list) > 0 {
			made = append(made, member{"$defs", defs.list})
		}
		raw, err := json.Marshal(append(made, body...))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
		path := "schema/" + s.name + ".json"
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if file, err := os.ReadFile(path); err != nil || !bytes.Equal(file, out.Bytes()) {
			t.Errorf("%s is not what the records say (go test ./render -update writes it anew): %v", path, err)
		}
	}
}

// TestSchemas validates every record of every capture against its schema.
func TestSchemas(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	schemas := map[string]*jsonschema.Schema{}
	files := os.DirFS("schema") // which TestSchemaFiles may have written
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := fs.ReadFile(files, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(e.Name(), doc); err != nil {
			t.Fatal(err)
		}
		schema, err := compiler.Compile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		schemas[strings.TrimSuffix(e.Name(), ".json")] = schema
	}
	counts := map[string]int{}
	failed := map[string]int{}
	eachRecord(t, func(capture, kind string, r any) {
		line := lineOf(r)
		counts[kind]++
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err == nil {
			if got := doc.(map[string]any)["type"]; got != kind {
				t.Errorf("type %v, want %s", got, kind)
			}
			err = schemas[kind].Validate(doc)
		}
		if err != nil && failed[capture] < 3 {
			failed[capture]++
			t.Errorf("%s: %s: %v\n%s", capture, kind, err, line)
		}
	})
	for kind := range schemas {
		if counts[kind] == 0 {
			t.Errorf("no %s was checked", kind)
		}
	}
}

// definitions are the named structs of a schema.
type definitions struct {
	list   object
	byName map[string]reflect.Type
}

// reference returns a reference to the definition of a struct, and adds the definition if
// there is none yet.
func (d *definitions) reference(t reflect.Type) object {
	name := ""
	for i, c := range t.Name() { // WriteSegment becomes write_segment
		if i > 0 && c >= 'A' && c <= 'Z' {
			name += "_"
		}
		name += strings.ToLower(string(c))
	}
	switch d.byName[name] {
	case nil:
		d.byName[name] = t
		at := len(d.list)
		d.list = append(d.list, member{name, nil})
		d.list[at].value = d.structOf(t)
	case t:
	default:
		panic("two definitions " + name)
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// structOf returns the schema of a struct. It requires all fields except those that may be
// left out, and allows no others.
func (d *definitions) structOf(t reflect.Type) object {
	var properties object
	required := []string{}
	for _, f := range record.FieldsOf(t) {
		if f.Doc == "" {
			panic(t.Name() + "." + f.Name + " has no description")
		}
		if f.Name == "type" {
			properties = append(properties, member{f.Name, object{{"const", f.Values[0]}}})
		} else {
			properties = append(properties, member{f.Name, append(d.value(&f), member{"description", f.Doc})})
		}
		if !f.OmitZero {
			required = append(required, f.Name)
		}
	}
	return closed(properties, required)
}

// closed returns the schema of an object that allows no other members.
func closed(properties object, required []string) object {
	o := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		o = append(o, member{"required", required})
	}
	return append(o, member{"additionalProperties", false})
}

// value returns the schema of a field's value.
func (d *definitions) value(f *record.Field) object {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(f.Values) > 0 {
		values := []any{}
		for _, v := range f.Values {
			values = append(values, v)
		}
		if f.Nullable() {
			values = append(values, nil)
		}
		return object{{"enum", values}}
	}
	s := d.typeOf(t, f.Name)
	if !f.Nullable() {
		return s
	}
	if s[0].key == "type" {
		s[0].value = []any{s[0].value, "null"}
		return s
	}
	return object{{"anyOf", []any{s, object{{"type", "null"}}}}}
}

// These patterns are the formats of texts.
const timePattern = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$`

func hexPattern(digits int) string { return fmt.Sprintf("^0x[0-9a-f]{%d}$", digits) }

var patterns = map[reflect.Type]string{
	reflect.TypeFor[record.Time]():  timePattern,
	reflect.TypeFor[record.Hex24](): hexPattern(6),
	reflect.TypeFor[record.Hex32](): hexPattern(8),
	reflect.TypeFor[record.Hex64](): hexPattern(16),
}

var (
	text   = object{{"type", "string"}}
	number = object{{"type", "integer"}, {"minimum", 0}}
	truth  = object{{"type", "boolean"}}
)

// typeOf returns the schema of a type. Counts are not negative; durations may be negative if
// a clock was set.
func (d *definitions) typeOf(t reflect.Type, name string) object {
	if pattern := patterns[t]; pattern != "" {
		return object{{"type", "string"}, {"pattern", pattern}}
	}
	if values := record.ValuesOf(t); values != nil {
		return object{{"enum", values}}
	}
	if t == reflect.TypeFor[record.RPCFields]() { // its members depend on the operation
		return object{{"type", "object"}}
	}
	switch t.Kind() {
	case reflect.String:
		return slices.Clone(text)
	case reflect.Bool:
		return slices.Clone(truth)
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if name == "ns" || strings.HasSuffix(name, "_ns") {
			return object{{"type", "integer"}}
		}
		return slices.Clone(number)
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Pointer: // in a list, none of which is null
		return d.typeOf(t.Elem(), name)
	case reflect.Slice:
		return object{{"type", "array"}, {"items", d.typeOf(t.Elem(), "")}}
	case reflect.Map:
		o := object{{"type", "object"}}
		if values := record.ValuesOf(t.Key()); values != nil {
			o = append(o, member{"propertyNames", object{{"enum", values}}})
		}
		return append(o, member{"additionalProperties", d.typeOf(t.Elem(), "")})
	case reflect.Struct:
		return d.reference(t)
	}
	panic(fmt.Sprintf("no schema for %v", t))
}

// packetSchema returns the schema of packets: their own fields, and one object for each
// header. No field of a header is required, because a truncated header has only its complete
// fields.
func packetSchema(d *definitions) object {
	headers := map[string]object{}
	var names []string
	in := func(name string) {
		if _, known := headers[name]; !known {
			headers[name] = object{}
			names = append(names, name)
		}
	}
	add := func(name, key string, schema object, doc string) {
		in(name)
		if !slices.ContainsFunc(headers[name], func(m member) bool { return m.key == key }) { // the messages of the CM have many fields in common
			headers[name] = append(headers[name], member{key, append(slices.Clone(schema), member{"description", doc})})
		}
	}
	for _, h := range header.All {
		for i := range h.Fields {
			f := &h.Fields[i]
			add(h.Name, f.Name, formatSchema(f), f.Label)
			if f.Names != nil && f.Format != field.Enum {
				add(h.Name, f.Name+"_name", text, f.Label+" by name")
			}
		}
	}
	var properties object
	required := []string{}
	for _, f := range query.Packets.List() {
		if f.Drawn || strings.Contains(f.Path, ".") || f.Type == "object" || slices.ContainsFunc(header.Extras, func(x header.Extra) bool { return x.Object == "" && x.Name == f.Path }) {
			continue
		}
		if !f.Several {
			required = append(required, f.Path)
		}
		properties = append(properties, member{f.Path, append(ownSchema(&f), member{"description", f.Doc})})
	}
	properties = append(properties, member{"seen", object{
		{"type", "array"},
		{"items", d.reference(reflect.TypeFor[record.Sighting]())},
		{"description", "The capture points that captured the packet, in the order in which it passed them; present only with several capture points."},
	}})
	for _, of := range [...]string{"sender", "receiver"} {
		properties = append(properties, member{map[string]string{"sender": "src_name", "receiver": "dst_name"}[of], object{
			{"type", []string{"string", "null"}},
			{"description", "Name of the " + of + "; present only if the file of --hosts has the address of the sender or of the receiver, and null if it does not have this one."},
		}})
	}
	for _, x := range header.Extras {
		schema := map[header.Kind]object{
			header.Text: text, header.Number: number, header.TextOrNull: {{"type", []string{"string", "null"}}},
			header.TextList: {{"type", "array"}, {"items", text}}, header.NumberList: {{"type", "array"}, {"items", number}},
		}[x.Kind]
		if x.Object == "" {
			properties = append(properties, member{x.Name, append(slices.Clone(schema), member{"description", x.Doc})})
		} else {
			add(x.Object, x.Name, schema, x.Doc)
		}
	}
	segments := object{{"type", "array"}, {"items", object{{"$ref", "#/$defs/segment"}}}}
	chunk := closed(object{{"segments", segments}}, []string{"segments"})
	readChunk := closed(object{{"position", number}, {"segments", segments}}, []string{"position", "segments"})
	add("rpcrdma", "read_chunks", object{{"type", "array"}, {"items", readChunk}}, "the Read list")
	add("rpcrdma", "write_chunks", object{{"type", "array"}, {"items", chunk}}, "the Write list")
	add("rpcrdma", "reply_chunk", object{{"anyOf", []any{chunk, object{{"type", "null"}}}}}, "the Reply chunk, null without")
	for _, inner := range []string{"ip_cm", "rpcrdma_private"} { // headers within private data
		add("cm", inner, object{{"$ref", "#/$defs/" + inner}}, "in its private data")
	}
	add("mpa", "rpcrdma_private", object{{"$ref", "#/$defs/rpcrdma_private"}}, "in its private data")
	operation := closed(object{{"name", text}, {"opcode", number}, {"status", text}, {"fields", object{{"type", "object"}}}}, []string{"name", "fields"})
	for _, m := range []struct {
		key    string
		schema object
		doc    string
	}{
		{"status", text, "of the results of a COMPOUND"},
		{"tag", text, "of a COMPOUND"},
		{"minorversion", number, "of the arguments of a COMPOUND"},
		{"callback_ident", number, "of the arguments of a CB_COMPOUND"},
		{"ops", object{{"type", "array"}, {"items", operation}}, "operations of a COMPOUND in order, or the one procedure, with arguments or results by name"},
		{"continues", text, "where the rest is"},
		{"error", text, "why something of it could not be read"},
		{"dropped", number, "values that were too many to show"},
	} {
		add("nfs", m.key, m.schema, m.doc)
	}
	for _, bare := range []string{"erf_extension", "erf_ethernet", "ipv6_extension"} { // headers without a table
		in(bare)
	}
	var again object
	for _, name := range names {
		d.list = append(d.list, member{name, closed(headers[name], nil)})
		if name != "segment" {
			properties = append(properties, member{name, object{{"$ref", "#/$defs/" + name}}})
			again = append(again, member{"^" + name + "_[0-9]+$", object{{"$ref", "#/$defs/" + name}}})
		}
	}
	return object{
		{"type", "object"},
		{"properties", properties},
		{"patternProperties", again},
		{"required", required},
		{"additionalProperties", false},
	}
}

// formatSchema returns the schema of a table's field.
func formatSchema(f *field.Field) object {
	switch f.Format {
	case field.Dec:
		return number
	case field.Flag:
		return truth
	case field.Hex:
		return object{{"type", "string"}, {"pattern", hexPattern((f.Bits + 3) / 4)}}
	case field.MAC:
		return object{{"type", "string"}, {"pattern", "^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"}}
	case field.Bytes:
		return object{{"type", "string"}, {"pattern", "^([0-9a-f]{2})*$"}}
	}
	return text
}

// ownSchema returns the schema of a packet's own field.
func ownSchema(f *query.Field) object {
	nullable := strings.Contains(f.Doc, "null")
	if f.List {
		one := *f
		one.List = false
		return object{{"type", "array"}, {"items", ownSchema(&one)}}
	}
	switch {
	case f.Path == "type":
		return object{{"const", "packet"}}
	case f.Values != nil:
		values := []any{}
		for _, v := range f.Values {
			values = append(values, v)
		}
		if nullable {
			values = append(values, nil)
		}
		return object{{"enum", values}}
	}
	kind := map[string]string{"number": "integer"}[f.Type]
	if kind == "" {
		kind = "string"
	}
	o := object{{"type", kind}}
	if nullable {
		o[0].value = []string{kind, "null"}
	}
	switch f.Type {
	case "number":
		o = append(o, member{"minimum", 0})
	case "time":
		o = append(o, member{"pattern", timePattern})
	}
	return o
}
