package parquet

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// column is a column of a table whose rows are made from values of type R.
type column[R any] struct {
	name     string
	kind     reflect.Type                         // of its values, or of the elements of its lists
	optional bool                                 // it may be null
	list     bool                                 // its values are lists
	value    func(r *R, about *row) reflect.Value // returns no value for null
}

// fields returns a column for each field of a record and of the structs within it, but for those that are left out. A column has the
// path of the field in JSON, with "_" in place of ".".
func fields[R any](leftOut string) []column[R] {
	return fieldsBelow[R](reflect.TypeFor[R](), column[R]{}, nil, strings.Fields(leftOut+" type"))
}

// fieldsBelow returns the columns for the fields of a struct within a record, which is a pointer or an Opt if its column is optional.
func fieldsBelow[R any](of reflect.Type, within column[R], indexes []int, leftOut []string) (list []column[R]) {
	for _, f := range record.FieldsOf(of) {
		c := column[R]{name: f.Name, kind: f.Type, optional: within.optional || f.Opt}
		if within.name != "" {
			c.name = within.name + "_" + f.Name
		}
		if slices.Contains(leftOut, c.name) {
			continue
		}
		path := append(slices.Clone(indexes), f.Index)
		if c.kind.Kind() == reflect.Pointer {
			c.kind, c.optional = c.kind.Elem(), true
		}
		if c.kind.Kind() == reflect.Struct {
			list = append(list, fieldsBelow(c.kind, c, path, leftOut)...)
			continue
		}
		if c.kind.Kind() == reflect.Slice {
			c.kind, c.list, c.optional = c.kind.Elem(), true, c.optional || f.Nullable()
		}
		c.optional = c.optional || f.OmitZero
		if !storable(c.kind) {
			panic(fmt.Sprintf("%v: values of %s cannot be stored in one column: name it among those that are left out, and store it elsewhere", reflect.TypeFor[R](), c.name))
		}
		omits := f.OmitZero
		c.value = func(r *R, _ *row) reflect.Value {
			v := fieldAt(reflect.ValueOf(r), path)
			if omits && v.IsValid() && v.IsZero() || v.IsValid() && v.Kind() == reflect.Slice && v.IsNil() {
				return reflect.Value{}
			}
			return v
		}
		list = append(list, c)
	}
	return list
}

// storable reports whether values of a type can be stored in one column.
func storable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float64:
		return true
	}
	return t.ConvertibleTo(reflect.TypeFor[int64]())
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

// computed returns a column with values that a function computes. The column is optional if they are of type Opt.
func computed[R, V any](name string, value func(r *R, about *row) V) []column[R] {
	c := column[R]{name: name, kind: reflect.TypeFor[V]()}
	if elem, is := record.OptOf(c.kind); is {
		c.kind, c.optional = elem, true
	}
	if c.kind.Kind() == reflect.Slice {
		c.kind, c.list = c.kind.Elem(), true
	}
	optional := c.optional
	c.value = func(r *R, about *row) reflect.Value {
		v := value(r, about)
		if optional {
			return reflect.Indirect(reflect.ValueOf(any(&v).(interface{ Pointer() any }).Pointer()))
		}
		return reflect.ValueOf(v)
	}
	return []column[R]{c}
}

// various are the columns of texts that differ from row to row. All other texts are stored as indexes of a dictionary.
var various = []string{"message", "file", "file_from", "file_handle", "rpc_key"}

// schema returns the schema of a table. The package parquet makes it of the tags of a struct, in the order of its fields.
func schema[R any](name string, columns []column[R]) *parquet.Schema {
	list := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		f := reflect.StructField{Name: fmt.Sprintf("Column%d", i)}
		options, element := c.name, ""
		switch kind := c.kind; {
		case kind == reflect.TypeFor[record.Time]():
			f.Type, element = reflect.TypeFor[int64](), ",timestamp(nanosecond)"
		case kind.Kind() == reflect.Bool:
			f.Type = reflect.TypeFor[bool]()
		case kind.Kind() == reflect.Float64:
			f.Type = reflect.TypeFor[float64]()
		case kind.Kind() == reflect.String:
			if f.Type = reflect.TypeFor[string](); !slices.Contains(various, c.name) {
				element = ",dict"
			}
		case kind.ConvertibleTo(reflect.TypeFor[uint32]()) && kind.Bits() <= 32:
			f.Type = reflect.TypeFor[uint32]()
		default:
			f.Type = reflect.TypeFor[int64]()
		}
		if c.list {
			f.Type, options = reflect.SliceOf(f.Type), options+",list"
		}
		if c.optional {
			options += ",optional"
			if !c.list {
				f.Type = reflect.PointerTo(f.Type)
			}
		}
		if !c.list {
			options += element
		}
		f.Tag = reflect.StructTag(fmt.Sprintf("parquet:%q", options))
		list[i] = f
	}
	return parquet.NewSchema(name, parquet.SchemaOf(reflect.New(reflect.StructOf(list)).Interface()))
}

// texts holds the texts of the rows that are not written yet.
type texts struct {
	block []byte
	bytes int // of all texts
}

// keep returns a copy of a text, in which U+FFFD stands for bytes that are no UTF-8, as in JSON: engines refuse files with such bytes,
// and names on the wire may have any.
func (t *texts) keep(s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	if len(s) > cap(t.block)-len(t.block) {
		t.block = make([]byte, 0, max(1<<16, len(s)))
	}
	at := len(t.block)
	t.bytes += len(s)
	t.block = append(t.block, s...)
	return t.block[at:len(t.block):len(t.block)]
}

// appendRow appends the values of a row.
func appendRow[R any](to parquet.Row, columns []column[R], r *R, about *row, kept *texts) parquet.Row {
	for i := range columns {
		c := &columns[i]
		v, level := c.value(r, about), 0
		if c.optional && v.IsValid() {
			level = 1
		}
		if !c.list || !v.IsValid() || v.Len() == 0 {
			if c.list {
				v = reflect.Value{}
			}
			to = append(to, valueOf(v, kept).Level(0, level, i))
			continue
		}
		for n := range v.Len() {
			to = append(to, valueOf(v.Index(n), kept).Level(min(n, 1), level+1, i))
		}
	}
	return to
}

// valueOf returns a value as Parquet stores it.
func valueOf(v reflect.Value, kept *texts) parquet.Value {
	switch v.Kind() {
	case reflect.Invalid:
		return parquet.NullValue()
	case reflect.Bool:
		return parquet.BooleanValue(v.Bool())
	case reflect.String:
		return parquet.ByteArrayValue(kept.keep(v.String()))
	case reflect.Float64:
		return parquet.DoubleValue(v.Float())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return parquet.Int32Value(int32(v.Uint()))
	case reflect.Uint64:
		return parquet.Int64Value(int64(v.Uint()))
	}
	return parquet.Int64Value(v.Int())
}
