package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// errStored is wrapped by the error for a stored record that cannot be decoded: its temporary file
// was changed by another program.
var errStored = errors.New("index: a stored record is damaged")

// A codec stores the values of one type. It is built once for each type, from the offsets of the
// type's fields. JSON would take five times the space, and twenty times the time to read back.
type codec struct {
	put func(e *encoder, p unsafe.Pointer)
	get func(d *decoder, p unsafe.Pointer)
}

// encoder appends a record to b. Numbers have a variable length. Times are differences from the
// previous time of the record.
type encoder struct {
	b     []byte
	words *words
	time  int64
}

// decoder reads what an encoder appended. After an error, all values are zero.
type decoder struct {
	b     []byte
	words *words
	list  []string // the words so far
	time  int64
	err   error
}

// The limits of words bound its memory.
const (
	maxWords    = 1 << 14
	longestWord = 64
)

// words numbers the strings that many records share, such as the names of operations. Strings that
// it has no space for are stored in each record. One goroutine adds words while others read them.
type words struct {
	mu      sync.RWMutex
	numbers map[string]uint32
	list    []string
	recent  [256]word // words that were looked up, by the address of their bytes
}

// word is a string and its number.
type word struct {
	text   string
	number uint32
}

// newWords returns words with an empty one, which has the number 0.
func newWords() *words { return &words{numbers: map[string]uint32{"": 0}, list: []string{""}} }

// number returns the number of a word, and adds the word if there is space for it. Only one goroutine may
// call it.
func (w *words) number(s string) (n uint32, known bool) {
	// Most strings are constants, so the same bytes come again and again. The address of bytes that
	// recent refers to does not get other contents.
	at := unsafe.StringData(s)
	recent := &w.recent[uint8(uintptr(unsafe.Pointer(at))>>3)^uint8(len(s))]
	if len(recent.text) == len(s) && unsafe.StringData(recent.text) == at {
		return recent.number, true
	}
	if n, known = w.look(s); known {
		*recent = word{s, n}
	}
	return n, known
}

// look returns the number of a word as number does.
func (w *words) look(s string) (n uint32, known bool) {
	if n, known = w.numbers[s]; known || len(s) > longestWord || len(w.numbers) >= maxWords {
		return n, known
	}
	n = uint32(len(w.numbers))
	w.mu.Lock()
	w.numbers[s], w.list = n, append(w.list, s)
	w.mu.Unlock()
	return n, true
}

// all returns the words so far, by number.
func (w *words) all() []string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.list
}

func (e *encoder) int(v int64)   { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

// string appends an even number for a word, or an odd number with the length of the bytes that
// follow.
func (e *encoder) string(s string) {
	if n, known := e.words.number(s); known {
		e.uint(uint64(n) << 1)
		return
	}
	e.uint(uint64(len(s))<<1 | 1)
	e.b = append(e.b, s...)
}

// fail keeps the first error.
func (d *decoder) fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %w", errStored, io.ErrUnexpectedEOF)
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string {
	v := d.uint()
	if v&1 == 0 {
		if v >>= 1; v >= uint64(len(d.list)) {
			d.list = d.words.all()
		}
		if v >= uint64(len(d.list)) {
			d.fail()
			return ""
		}
		return d.list[v]
	}
	if v >>= 1; v > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	s := string(d.b[:v])
	d.b = d.b[v:]
	return s
}

// codecs has the codecs that were built, by type.
var codecs sync.Map // map[reflect.Type]codec

// codecOf returns the codec of a type. It panics if the type cannot be stored.
func codecOf(t reflect.Type) codec {
	if known, ok := codecs.Load(t); ok {
		return known.(codec)
	}
	c := newCodec(t)
	codecs.Store(t, c)
	return c
}

// add appends a record to e.
func add[T any](e *encoder, r *T) {
	e.time = 0
	codecOf(reflect.TypeFor[T]()).put(e, unsafe.Pointer(r))
	runtime.KeepAlive(r)
}

// read reads a record that add appended.
func read[T any](d *decoder, b []byte) (*T, error) {
	r := new(T)
	d.b, d.time, d.err = b, 0, nil
	codecOf(reflect.TypeFor[T]()).get(d, unsafe.Pointer(r))
	return r, d.err
}

func newCodec(t reflect.Type) codec {
	if t == reflect.TypeFor[record.Time]() {
		return codec{
			func(e *encoder, p unsafe.Pointer) {
				at := *(*int64)(p)
				e.int(at - e.time) // it may wrap, and then wraps back
				e.time = at
			},
			func(d *decoder, p unsafe.Pointer) { d.time += d.int(); *(*int64)(p) = d.time },
		}
	}
	if t == reflect.TypeFor[netip.Addr]() {
		return codec{
			func(e *encoder, p unsafe.Pointer) {
				var b [32]byte
				text, _ := (*netip.Addr)(p).AppendBinary(b[:0]) // It never fails.
				e.string(string(text))
			},
			func(d *decoder, p unsafe.Pointer) {
				if (*netip.Addr)(p).UnmarshalBinary([]byte(d.string())) != nil {
					d.fail()
				}
			},
		}
	}
	if _, is := record.OptOf(t); is {
		return optCodec(t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return unsigned[uint8]()
	case reflect.Int:
		return signed[int]()
	case reflect.Int8:
		return signed[int8]()
	case reflect.Int16:
		return signed[int16]()
	case reflect.Int32:
		return signed[int32]()
	case reflect.Int64:
		return signed[int64]()
	case reflect.Uint8:
		return unsigned[uint8]()
	case reflect.Uint16:
		return unsigned[uint16]()
	case reflect.Uint32:
		return unsigned[uint32]()
	case reflect.Uint64, reflect.Uint:
		return unsigned[uint64]()
	case reflect.Float64:
		return codec{
			func(e *encoder, p unsafe.Pointer) { e.uint(math.Float64bits(*(*float64)(p))) },
			func(d *decoder, p unsafe.Pointer) { *(*float64)(p) = math.Float64frombits(d.uint()) },
		}
	case reflect.String:
		return codec{
			func(e *encoder, p unsafe.Pointer) { e.string(*(*string)(p)) },
			func(d *decoder, p unsafe.Pointer) { *(*string)(p) = d.string() },
		}
	case reflect.Pointer:
		return pointerCodec(t)
	case reflect.Slice:
		return listCodec(t)
	case reflect.Struct:
		return structCodec(t)
	}
	panic(fmt.Sprintf("index: a %v cannot be stored", t))
}

func signed[T int | int8 | int16 | int32 | int64]() codec {
	return codec{
		func(e *encoder, p unsafe.Pointer) { e.int(int64(*(*T)(p))) },
		func(d *decoder, p unsafe.Pointer) { *(*T)(p) = T(d.int()) },
	}
}

// unsigned returns the codec of an unsigned number. A bool is a number of one byte.
func unsigned[T uint8 | uint16 | uint32 | uint64]() codec {
	return codec{
		func(e *encoder, p unsafe.Pointer) { e.uint(uint64(*(*T)(p))) },
		func(d *decoder, p unsafe.Pointer) { *(*T)(p) = T(d.uint()) },
	}
}

// optCodec returns the codec of an Opt: a byte that tells if the value is known, and the value.
func optCodec(t reflect.Type) codec {
	value, _ := t.FieldByName("value")
	known, found := t.FieldByName("known")
	if !found || known.Type.Kind() != reflect.Bool {
		panic(fmt.Sprintf("index: %v has no field known", t))
	}
	c := codecOf(value.Type)
	return codec{
		func(e *encoder, p unsafe.Pointer) {
			if !*(*bool)(unsafe.Add(p, known.Offset)) {
				e.b = append(e.b, 0)
				return
			}
			e.b = append(e.b, 1)
			c.put(e, unsafe.Add(p, value.Offset))
		},
		func(d *decoder, p unsafe.Pointer) {
			if d.uint() == 1 {
				*(*bool)(unsafe.Add(p, known.Offset)) = true
				c.get(d, unsafe.Add(p, value.Offset))
			}
		},
	}
}

func pointerCodec(t reflect.Type) codec {
	c := codecOf(t.Elem())
	return codec{
		func(e *encoder, p unsafe.Pointer) {
			if to := *(*unsafe.Pointer)(p); to == nil {
				e.b = append(e.b, 0)
			} else {
				e.b = append(e.b, 1)
				c.put(e, to)
			}
		},
		func(d *decoder, p unsafe.Pointer) {
			if d.uint() == 1 {
				v := reflect.New(t.Elem())
				c.get(d, v.UnsafePointer())
				*(*unsafe.Pointer)(p) = v.UnsafePointer()
			}
		},
	}
}

// listCodec returns the codec of a slice: its length plus one, or 0 if it is nil, and the elements.
func listCodec(t reflect.Type) codec {
	c, size := codecOf(t.Elem()), t.Elem().Size()
	return codec{
		func(e *encoder, p unsafe.Pointer) {
			v := reflect.NewAt(t, p).Elem()
			if v.IsNil() {
				e.b = append(e.b, 0)
				return
			}
			n, first := v.Len(), v.UnsafePointer()
			e.uint(uint64(n) + 1)
			for i := range n {
				c.put(e, unsafe.Add(first, uintptr(i)*size))
			}
		},
		func(d *decoder, p unsafe.Pointer) {
			v := d.uint()
			if v == 0 {
				return
			}
			if v--; v > uint64(len(d.b)) { // An element takes at least one byte.
				d.fail()
				return
			}
			list := reflect.MakeSlice(t, int(v), int(v))
			reflect.NewAt(t, p).Elem().Set(list)
			first := list.UnsafePointer()
			for i := range int(v) {
				c.get(d, unsafe.Add(first, uintptr(i)*size))
			}
		},
	}
}

// structCodec returns the codec of a struct: its fields in their order. It leaves out the fields that
// a record has only if arguments and results are decoded.
func structCodec(t reflect.Type) codec {
	type member struct {
		codec
		offset uintptr
	}
	var members []member
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == reflect.TypeFor[record.Decoded]() || f.Type == reflect.TypeFor[*record.RPC]() {
			continue
		}
		members = append(members, member{codecOf(f.Type), f.Offset})
	}
	return codec{
		func(e *encoder, p unsafe.Pointer) {
			for i := range members {
				members[i].put(e, unsafe.Add(p, members[i].offset))
			}
		},
		func(d *decoder, p unsafe.Pointer) {
			for i := range members {
				members[i].get(d, unsafe.Add(p, members[i].offset))
			}
		},
	}
}
