package record

import (
	"reflect"
	"strings"
	"sync"
)

// Field describes a field of a record. It comes from the tags of the field.
type Field struct {
	Name     string       // in JSON
	Doc      string       // meaning
	Aliases  []string     // other names; "name=path" is a name for a path below the field
	Values   []string     // all values of an enumeration, else nil
	OmitZero bool         // JSON omits the field if it has its zero value
	Opt      bool         // the value may be unknown
	Type     reflect.Type // type of the value, without Opt
	Index    int          // index in the struct
}

// Nullable reports whether the field may be null: it is an Opt, a pointer, or a list whose
// description mentions null.
func (f *Field) Nullable() bool {
	return f.Opt && !f.OmitZero || f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice && strings.Contains(f.Doc, "null")
}

// Enum is an enumeration.
type Enum interface {
	// Values returns all values.
	Values() []string
}

// Words returns values as strings.
func Words[T ~string](values ...T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// Values returns all severities, the most severe first.
func (Severity) Values() []string { return Words(Severities[:]...) }

// Values returns both directions.
func (Direction) Values() []string { return Words(Forward, Backward) }

// Values returns all states.
func (Status) Values() []string { return Words(Statuses[:]...) }

// Values returns all forms.
func (Form) Values() []string { return Words(Short, Chunked, Long) }

// Values returns both roles.
func (Role) Values() []string { return Words(Requester, Responder) }

// Values returns the three lists.
func (Chunk) Values() []string { return Words(ReadList, WriteList, ReplyList) }

// Values returns all events. EventWrite is none: only a NAK or a retransmission refers to it.
func (EventKind) Values() []string {
	return Words(EventCall, EventRead, EventReadDone, EventReadAgain, EventWriteFirst, EventWriteLast, EventReply, EventInvalidate, EventAck, EventNak, EventRetransmit, EventOutOfOrder, EventDamaged, EventLost)
}

// Values returns all results.
func (Check) Values() []string { return Words(Good, Bad, Unchecked) }

// ValuesOf returns the values of an enumeration type, or nil for any other type.
func ValuesOf(t reflect.Type) []string {
	if e, ok := reflect.Zero(t).Interface().(Enum); ok {
		return e.Values()
	}
	return nil
}

// OptOf returns the type of the values of an [Opt] type. It returns false if t is not an Opt
// type.
func OptOf(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	o, ok := reflect.New(t).Interface().(interface {
		Pointer() any
		Elem() reflect.Type
	})
	if !ok {
		return nil, false
	}
	return o.Elem(), true
}

// OptOffsets returns the offset of the value in an [Opt] type, and the offset of the boolean that is true
// if the value is known, for code that reads and writes records without reflection.
func OptOffsets(t reflect.Type) (value, known uintptr) {
	v, _ := t.FieldByName("value")
	k, _ := t.FieldByName("known")
	return v.Offset, k.Offset
}

// FieldsOf returns the fields of a record, or of a struct in a record, that JSON contains. The caller must not change them.
func FieldsOf(t reflect.Type) (fields []Field) {
	if known, ok := structs.Load(t); ok {
		return known.([]Field)
	}
	for i := range t.NumField() {
		s := t.Field(i)
		name, rest, _ := strings.Cut(s.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		f := Field{Name: name, Doc: s.Tag.Get("doc"), OmitZero: rest == "omitzero", Type: s.Type, Index: i}
		if aliases := s.Tag.Get("alias"); aliases != "" {
			f.Aliases = strings.Split(aliases, ",")
		}
		if elem, ok := OptOf(s.Type); ok {
			f.Opt, f.Type = true, elem
		}
		if f.Values = ValuesOf(f.Type); s.Tag.Get("values") != "" { // the field has other values than its type
			f.Values = strings.Split(s.Tag.Get("values"), ",")
		}
		fields = append(fields, f)
	}
	structs.Store(t, fields)
	return fields
}

// structs has the fields of the structs that FieldsOf was called for, because it is called for each record that is read.
var structs sync.Map // of reflect.Type to []Field
