package parquet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// column is a column of a table whose rows are made from values of type R.
type column[R any] struct {
	name     string
	kind     reflect.Type             // of its values
	optional bool                     // it may be null
	value    func(r *R) reflect.Value // returns no value for null
}

// transactionColumns are the columns of the table transactions: one RPC is a row. A column means the same as the member of
// that name in rdmadump's JSON.
var transactionColumns = slices.Concat(
	fields[record.Transaction](`id connection xid direction status program program_name version procedure procedure_name
		operation credential rpc_status nfs_status`),
	computed("time", (*record.Transaction).Start), // of the Call, or of a Reply without a Call
	computed("packet", firstPacket),
	fields[record.Transaction](`latency_ns
		call_form=call.form call_bytes=call.payload_bytes call_missing_bytes=call.missing_bytes call_credits=call.credits
		reply_form=reply.form reply_bytes=reply.payload_bytes reply_missing_bytes=reply.missing_bytes reply_credits=reply.credits`),
	computed("read_segments", segments(record.ReadList)),
	computed("write_segments", segments(record.WriteList)),
	computed("reply_segments", segments(record.ReplyList)),
	computed("read_moved_bytes", moved(true)), // by RDMA Read
	computed("write_moved_bytes", moved(false)),
	fields[record.Transaction]("invalidated=invalidation.handle retransmitted retransmit_of rdma_error"),
	computed("name", func(r *record.Transaction) string { return analyze.Name(r, analyze.ByOperation) }), // by which stats groups RPCs
	computed("failed", (*record.Transaction).Failed),                                                     // stats counts the RPC as an error
	fields[record.Transaction](`to_read_ns=phases.to_read_ns read_ns=phases.read_ns to_write_ns=phases.to_write_ns
		write_ns=phases.write_ns to_reply_ns=phases.to_reply_ns wait_ns=phases.wait_ns
		findings client server uid gid machine principal`),
	fields[record.Transaction]("file file_from file_handle"), // null unless the option Files of package dissect is set
)

// operation is an operation of a COMPOUND, which is a row of the table operations.
type operation struct {
	of     *record.Transaction
	number int // in the COMPOUND, from 0
}

// operationColumns are the columns of the table operations.
var operationColumns = slices.Concat(
	computed("transaction", func(o *operation) int64 { return o.of.ID }),
	computed("number", func(o *operation) int64 { return int64(o.number) }),
	computed("name", func(o *operation) string { return o.of.Operations[o.number] }),
)

// connectionColumns are the columns of the table connections.
var connectionColumns = fields[record.Connection](`id transport upper_layer
	client_address=client.address client_port=client.port client_qpn=client.qpn
	server_address=server.address server_port=server.port server_qpn=server.qpn
	handshake first last established closed ended_how=ended.how ended_by=ended.by
	transactions packets retransmitted out_of_order not_captured naks rnr_naks`)

// findingColumns are the columns of the table findings.
var findingColumns = fields[record.Finding]("rule severity section at_fault message connection xid packet time")

// various are the columns of texts that differ from row to row. All other texts are stored as indexes of a dictionary.
var various = []string{"message", "file", "file_from", "file_handle"}

// firstPacket returns the number of the transaction's first packet.
func firstPacket(r *record.Transaction) int64 {
	if r.Call != nil {
		return r.Call.Packet
	}
	return r.Reply.Packet
}

// segments returns a function that counts the segments of a chunk list.
func segments(of record.Chunk) func(r *record.Transaction) int64 {
	return func(r *record.Transaction) (n int64) {
		for list := range r.Segments() {
			if list == of {
				n++
			}
		}
		return n
	}
}

// moved returns a function that adds up the bytes that RDMA Read moved, or RDMA Write.
func moved(read bool) func(r *record.Transaction) int64 {
	return func(r *record.Transaction) (n int64) {
		for list, s := range r.Segments() {
			if (list == record.ReadList) == read {
				n += s.MovedBytes
			}
		}
		return n
	}
}

// fields returns columns of fields of a record. The names of the fields have white space between them. A field of a struct
// within the record has its path in JSON, and the name of the column before it.
func fields[R any](names string) (list []column[R]) {
	for _, word := range strings.Fields(names) {
		name, path, other := strings.Cut(word, "=")
		if !other {
			path = name
		}
		c := column[R]{name: name, kind: reflect.TypeFor[R]()}
		var indexes []int
		for _, part := range strings.Split(path, ".") {
			if c.kind.Kind() == reflect.Pointer {
				c.kind, c.optional = c.kind.Elem(), true
			}
			all := record.FieldsOf(c.kind)
			at := slices.IndexFunc(all, func(f record.Field) bool { return f.Name == part })
			if at < 0 {
				panic(fmt.Sprintf("parquet: %v has no field %s", c.kind, part))
			}
			indexes = append(indexes, all[at].Index)
			c.kind, c.optional = all[at].Type, c.optional || all[at].Opt
		}
		c.value = func(r *R) reflect.Value { return fieldAt(reflect.ValueOf(r), indexes) }
		list = append(list, c)
	}
	return list
}

// fieldAt returns the field with these indexes in a struct and in the structs within it. It returns no value if the field,
// or what contains it, is unknown.
func fieldAt(v reflect.Value, indexes []int) reflect.Value {
	for _, i := range indexes {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if v.IsValid() {
			v = v.Field(i)
		}
		if v.Kind() != reflect.Struct {
			continue
		}
		if opt, is := v.Addr().Interface().(interface{ Pointer() any }); is {
			v = reflect.ValueOf(opt.Pointer()) // of nil, it is no value
		}
	}
	return reflect.Indirect(v)
}

// computed returns a column with values that a function computes.
func computed[R, V any](name string, value func(r *R) V) []column[R] {
	return []column[R]{{name: name, kind: reflect.TypeFor[V](), value: func(r *R) reflect.Value { return reflect.ValueOf(value(r)) }}}
}

// schema returns the schema of a table. The package parquet makes it of the tags of a struct, in the order of its fields.
func schema[R any](name string, columns []column[R]) *parquet.Schema {
	list := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		f := reflect.StructField{Name: fmt.Sprintf("Column%d", i)}
		options := c.name
		if c.optional {
			options += ",optional"
		}
		switch {
		case c.kind == reflect.TypeFor[record.Time]():
			f.Type, options = reflect.TypeFor[int64](), options+",timestamp(nanosecond)"
		case c.kind.Kind() == reflect.Bool:
			f.Type = reflect.TypeFor[bool]()
		case c.kind.Kind() == reflect.String || c.kind.Kind() == reflect.Slice:
			if f.Type = reflect.TypeFor[string](); !slices.Contains(various, c.name) {
				options += ",dict"
			}
		case c.kind.ConvertibleTo(reflect.TypeFor[uint32]()) && c.kind.Bits() <= 32:
			f.Type = reflect.TypeFor[uint32]()
		default:
			f.Type = reflect.TypeFor[int64]()
		}
		if c.optional {
			f.Type = reflect.PointerTo(f.Type)
		}
		f.Tag = reflect.StructTag(fmt.Sprintf("parquet:%q", options))
		list[i] = f
	}
	return parquet.NewSchema(name, parquet.SchemaOf(reflect.New(reflect.StructOf(list)).Interface()))
}

// appendRow appends the values of a row.
func appendRow[R any](row parquet.Row, columns []column[R], r *R) parquet.Row {
	for i := range columns {
		c := &columns[i]
		v, level := c.value(r), 0
		if c.optional && v.IsValid() {
			level = 1
		}
		row = append(row, valueOf(v).Level(0, level, i))
	}
	return row
}

// valueOf returns a value as Parquet stores it: lists of text have commas between their elements.
func valueOf(v reflect.Value) parquet.Value {
	switch v.Kind() {
	case reflect.Invalid:
		return parquet.NullValue()
	case reflect.Bool:
		return parquet.BooleanValue(v.Bool())
	case reflect.String:
		return parquet.ByteArrayValue([]byte(v.String()))
	case reflect.Slice:
		return parquet.ByteArrayValue([]byte(strings.Join(v.Interface().([]string), ",")))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return parquet.Int32Value(int32(v.Uint()))
	}
	return parquet.Int64Value(v.Int())
}
