package record

import (
	"reflect"
	"strings"
)

// Field is a field of a record, as its tags describe it.
type Field struct {
	Name     string       // in JSON
	Doc      string       // what it means
	Aliases  []string     // other names for it; "name=path" stands for a path below it
	Was      []string     // names that it had before the first release; "name=path" likewise
	Reused   string       // such a name that means something else now
	Values   []string     // all that it can be, where it is one of a few
	OmitZero bool         // not there when it has its zero value
	Opt      bool         // it may be unknown
	Type     reflect.Type // of its value, when that is known
	Index    int          // in the struct
}

// Nullable says whether the field may be null: an Opt, a pointer, or a list whose
// description says so.
func (f *Field) Nullable() bool {
	return f.Opt && !f.OmitZero || f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice && strings.Contains(f.Doc, "null")
}

// Enum is a type of few values.
type Enum interface {
	// Values are all of them.
	Values() []string
}

// wordsOf are the values of a type of few, as words.
func wordsOf[T ~string](values ...T) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// Values are all severities, the worst first.
func (Severity) Values() []string { return wordsOf(Severities[:]...) }

// Values are both directions.
func (Direction) Values() []string { return wordsOf(Forward, Backward) }

// Values are all states.
func (Status) Values() []string { return wordsOf(Statuses[:]...) }

// Values are all forms.
func (Form) Values() []string { return wordsOf(Short, Chunked, Long) }

// Values are both roles.
func (Role) Values() []string { return wordsOf(Requester, Responder) }

// Values are the three lists.
func (Chunk) Values() []string { return wordsOf(ReadList, WriteList, ReplyList) }

// Values are all events, and what else a NAK or a repeat may be of.
func (EventKind) Values() []string {
	return wordsOf(EventCall, EventRead, EventReadDone, EventWriteFirst, EventWriteLast, EventReply, EventInvalidate, EventAck, EventNak, EventRetransmit, EventOutOfOrder, EventWrite)
}

// Values are all results.
func (Check) Values() []string { return wordsOf(Good, Bad, Unchecked) }

// ValuesOf are those of a type of few values, nil for any other.
func ValuesOf(t reflect.Type) []string {
	if e, ok := reflect.Zero(t).Interface().(Enum); ok {
		return e.Values()
	}
	return nil
}

// OptOf is the type of which an [Opt] type may hold a value; false when the type
// is none.
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

// FieldsOf are the fields of a record, or of a struct in one, that are in JSON.
func FieldsOf(t reflect.Type) (fields []Field) {
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
		if was := s.Tag.Get("was"); was != "" {
			f.Was = strings.Split(was, ",")
		}
		f.Reused = s.Tag.Get("reused")
		if elem, ok := OptOf(s.Type); ok {
			f.Opt, f.Type = true, elem
		}
		if f.Values = ValuesOf(f.Type); f.Values == nil {
			if values := s.Tag.Get("values"); values != "" {
				f.Values = strings.Split(values, ",")
			}
		}
		fields = append(fields, f)
	}
	return fields
}
