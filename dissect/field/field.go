// Package field describes the fields of headers: name, offset, width and format, and how
// their values are read and shown. The tables of fields are in package header.
package field

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
)

// Format selects how the value of a field is shown.
type Format uint8

// The formats. In JSON, hex values are strings of fixed width, addresses and bytes are
// strings, flags are booleans, and all other values are numbers.
const (
	Dec Format = iota
	Hex
	Flag
	IPv4
	IPv6  // 128 bits: an IPv6 address or GID
	MAC   // 48 bits
	Enum  // the name of the value, or its number if it has no name
	Bytes // hex digits; up to the end of the header if Bits is 0
)

// Field is one field of a header.
type Field struct {
	Name   string              // name in JSON and filters, snake_case
	Label  string              // name in text output
	Bit    int                 // offset in bits from the start of the header, most significant bit first
	Bits   int                 // width in bits
	Format Format              // how the value is shown
	Names  func(uint64) string // returns the name of a value, which is shown next to it; JSON adds it as Name + "_name"
	Alias  string              // Wireshark's name of the field
	Key    string              // Name as a JSON key with quotes and colon, made once because every packet needs it
}

// Set is a set of parts of a packet's description. Callers pass it to say which parts
// they need: fields of certain headers, or one of the parts below.
type Set uint64

// The parts that belong to no table of fields. The tables have the other members of a
// Set, one for each header name: see [Header].
const (
	Summary Set = 1 << iota // the packet as one line
	Other                   // values that are in no table: objects, lists and computed values
	Context                 // connection, operation and RPC of the packet, and its marks
	FirstOfTables
)

// Everything is the set of all parts.
const Everything = ^Set(0)

// Has reports whether the set contains any of others.
func (s Set) Has(others Set) bool { return s&others != 0 }

// Header is a header of fixed layout.
type Header struct {
	Name   string // name in JSON, lower case
	Label  string
	Length int // bytes; of a truncated header, the complete fields are shown
	Fields []Field
	Link   bool // it is below the InfiniBand transport or TCP
	Member Set  // its member of a Set, which all headers of the same Name share
}

// Whole reports whether data has all bits of the field. data begins with the header.
func (f *Field) Whole(data []byte) bool { return f.Bit+f.Bits <= len(data)*8 }

// Uint returns the big-endian value of a field of at most 64 bits. The caller must have
// checked that the field is Whole.
func (f *Field) Uint(data []byte) uint64 {
	at, bit := f.Bit/8, f.Bit%8
	if bit == 0 { // most fields consist of whole bytes
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

// Raw returns the bytes of a field that consists of whole bytes. They alias data.
func (f *Field) Raw(data []byte) []byte {
	if f.Bits == 0 {
		return data[min(f.Bit/8, len(data)):]
	}
	return data[f.Bit/8 : (f.Bit+f.Bits)/8]
}

// AppendText appends the value as text; for an Enum it is only the name. The caller must
// have checked that the field is Whole. The name of an Enum may contain any characters.
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

// AppendHex appends v as 0x and the given number of hex digits, at most 16.
func AppendHex(b []byte, v uint64, digits int) []byte {
	const set = "0123456789abcdef"
	b = append(b, "0x0000000000000000"[:2+digits]...)
	for at := len(b) - 1; digits > 0; at, digits = at-1, digits-1 {
		b[at] = set[v&15]
		v >>= 4
	}
	return b
}

// Field returns the field with that name, or nil if the header has none.
func (h *Header) Field(name string) *Field {
	for i := range h.Fields {
		if h.Fields[i].Name == name {
			return &h.Fields[i]
		}
	}
	return nil
}
