// Package field has the types of a table of fields: name, place, width, form,
// and how a value is read and shown. The tables are in package header.
package field

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
)

// Format is how a field's value is shown.
type Format uint8

// The formats. In JSON, hex values are strings of fixed width and all others
// numbers; flags are booleans, addresses and bytes are strings.
const (
	Dec Format = iota
	Hex
	Flag
	IPv4
	IPv6  // 128 bits: an IPv6 address or GID
	MAC   // 48 bits
	Enum  // the value's name; the number where it has none
	Bytes // hex digits, to the end of the header when Bits is 0
)

// Field is one field of a header.
type Field struct {
	Name   string              // in JSON and filters, snake_case
	Label  string              // for people
	Bit    int                 // offset in bits from the start of the header, most significant bit first
	Bits   int                 // width
	Format Format              // how to show it
	Names  func(uint64) string // what a value is called, shown beside it; JSON adds it as Name + "_name"
	Alias  string              // Wireshark's name for it
	Key    string              // Name as a JSON key, quotes and colon included: made once, used for every packet
}

// Set says what of a packet's description is wanted, or what a field stands in: the
// fields of tables, and what else there is.
type Set uint64

// The members that are no table's. The others are each of a table's name: see
// [Header].
const (
	Summary Set = 1 << iota // the packet in a line
	Loose                   // what is in no table: objects, lists, values that are worked out
	Whose                   // connection, operation and RPC, and what is odd about the packet
	FirstOfTables
)

// Everything is all that can be said of a packet.
const Everything = ^Set(0)

// Has says whether any of others is in the set.
func (s Set) Has(others Set) bool { return s&others != 0 }

// Header is a header of fixed layout.
type Header struct {
	Name   string // in JSON, lower case
	Label  string
	Length int // bytes; a cut header is shown as far as its fields are whole
	Fields []Field
	Link   bool // below the InfiniBand transport or TCP
	Member Set  // what it is in a Set; those of one name are the same
}

// Whole says whether data has all of the field.
func (f *Field) Whole(data []byte) bool { return f.Bit+f.Bits <= len(data)*8 }

// Uint reads a field of at most 64 bits; the caller has made sure that it is
// whole.
func (f *Field) Uint(data []byte) uint64 {
	at, bit := f.Bit/8, f.Bit%8
	if bit == 0 { // most are whole bytes
		switch f.Bits {
		case 8:
			return uint64(data[at])
		case 16:
			return uint64(binary.BigEndian.Uint16(data[at:]))
		case 24:
			return uint64(data[at])<<16 | uint64(binary.BigEndian.Uint16(data[at+1:]))
		case 32:
			return uint64(binary.BigEndian.Uint32(data[at:]))
		case 64:
			return binary.BigEndian.Uint64(data[at:])
		}
	}
	var v uint64
	for end := f.Bit + f.Bits; at*8 < end; at++ {
		v = v<<8 | uint64(data[at])
	}
	v >>= at*8 - f.Bit - f.Bits
	if f.Bits < 64 {
		v &= 1<<f.Bits - 1
	}
	return v
}

// Raw is the bytes of a field that is made of whole bytes.
func (f *Field) Raw(data []byte) []byte {
	if f.Bits == 0 {
		return data[min(f.Bit/8, len(data)):]
	}
	return data[f.Bit/8 : (f.Bit+f.Bits)/8]
}

// AppendText appends the value as text, without the name beside it; the caller
// has made sure that it is whole. Names of an Enum may hold anything.
func (f *Field) AppendText(b, data []byte) []byte {
	switch f.Format {
	case Dec:
		return strconv.AppendUint(b, f.Uint(data), 10)
	case Flag:
		return strconv.AppendBool(b, f.Uint(data) != 0)
	case Enum:
		return append(b, f.Names(f.Uint(data))...)
	case Hex:
		return AppendHex(b, f.Uint(data), (f.Bits+3)/4)
	case IPv4:
		return netip.AddrFrom4([4]byte(f.Raw(data))).AppendTo(b)
	case IPv6:
		return netip.AddrFrom16([16]byte(f.Raw(data))).AppendTo(b)
	case MAC:
		for i, octet := range f.Raw(data) {
			if i > 0 {
				b = append(b, ':')
			}
			b = hex.AppendEncode(b, []byte{octet})
		}
		return b
	}
	return hex.AppendEncode(b, f.Raw(data))
}

// AppendHex appends v as 0x and so many hex digits.
func AppendHex(b []byte, v uint64, digits int) []byte {
	const set = "0123456789abcdef"
	b = append(b, "0x0000000000000000"[:2+digits]...)
	for at := len(b) - 1; digits > 0; at, digits = at-1, digits-1 {
		b[at] = set[v&15]
		v >>= 4
	}
	return b
}

// Field returns the field of that name, nil when the header has none.
func (h *Header) Field(name string) *Field {
	for i := range h.Fields {
		if h.Fields[i].Name == name {
			return &h.Fields[i]
		}
	}
	return nil
}
