package record

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// Time is a time in nanoseconds since 1970 UTC. In JSON it has the form of RFC 3339 with
// nanoseconds.
type Time int64

// Sub returns t-u in nanoseconds. If the times are more than 292 years apart, it returns the
// largest or the smallest int64.
func (t Time) Sub(u Time) int64 {
	d := int64(t - u)
	switch {
	case t > u && d < 0:
		return math.MaxInt64
	case t < u && d > 0:
		return math.MinInt64
	}
	return d
}

// Stamp is the time of a packet and its number. Packets are counted from 1; 0 means no
// packet.
type Stamp struct {
	Time   Time
	Packet int64
}

// AppendText appends the time in the form of RFC 3339, always with nine digits, so that times
// sort as strings. It takes a fifth of the time of time.Time.AppendFormat, which matters
// because it is called for each packet.
func (t Time) AppendText(b []byte) ([]byte, error) {
	day, rest := int64(t)/864e11, int64(t)%864e11
	if rest < 0 {
		day, rest = day-1, rest+864e11
	}
	year, month, date := time.Unix(day*86400, 0).UTC().Date()
	seconds, fraction := uint32(rest/1e9), uint32(rest%1e9)
	text := [...]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 28: byte('0' + fraction%10), 29: 'Z'}
	pair := func(at int, v uint32) { text[at], text[at+1] = byte('0'+v/10), byte('0'+v%10) }
	pair(0, uint32(year)/100)
	pair(2, uint32(year)%100)
	pair(5, uint32(month))
	pair(8, uint32(date))
	pair(11, seconds/3600)
	pair(14, seconds/60%60)
	pair(17, seconds%60)
	pair(20, fraction/1e7)
	pair(22, fraction/1e5%100)
	pair(24, fraction/1e3%100)
	pair(26, fraction/10%100)
	return append(b, text[:]...), nil
}

// MarshalText returns the time in the form of RFC 3339.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// String returns the time in the form of RFC 3339.
func (t Time) String() string { b, _ := t.AppendText(nil); return string(b) }

// UnmarshalText parses the output of MarshalText.
func (t *Time) UnmarshalText(text []byte) error {
	v, err := time.Parse(time.RFC3339Nano, string(text))
	*t = Time(v.UnixNano())
	return err
}

// Hex24, Hex32 and Hex64 are numbers that print as hex strings of a fixed width.
type (
	Hex24 uint32
	Hex32 uint32
	Hex64 uint64
)

// AppendText appends 0x and six digits.
func (h Hex24) AppendText(b []byte) ([]byte, error) { return field.AppendHex(b, uint64(h), 6), nil }

// AppendText appends 0x and eight digits.
func (h Hex32) AppendText(b []byte) ([]byte, error) { return field.AppendHex(b, uint64(h), 8), nil }

// AppendText appends 0x and sixteen digits.
func (h Hex64) AppendText(b []byte) ([]byte, error) { return field.AppendHex(b, uint64(h), 16), nil }

// MarshalText returns 0x and six digits.
func (h Hex24) MarshalText() ([]byte, error) { return h.AppendText(nil) }

// MarshalText returns 0x and eight digits.
func (h Hex32) MarshalText() ([]byte, error) { return h.AppendText(nil) }

// MarshalText returns 0x and sixteen digits.
func (h Hex64) MarshalText() ([]byte, error) { return h.AppendText(nil) }

// String returns 0x and six digits.
func (h Hex24) String() string { return string(field.AppendHex(nil, uint64(h), 6)) }

// String returns 0x and eight digits.
func (h Hex32) String() string { return string(field.AppendHex(nil, uint64(h), 8)) }

// String returns 0x and sixteen digits.
func (h Hex64) String() string { return string(field.AppendHex(nil, uint64(h), 16)) }

// parseHex parses a number with this many bits.
func parseHex[T ~uint32 | ~uint64](to *T, text []byte, bits int) error {
	v, err := strconv.ParseUint(string(text), 0, bits)
	*to = T(v)
	return err
}

// UnmarshalText parses the output of MarshalText.
func (h *Hex24) UnmarshalText(text []byte) error { return parseHex(h, text, 24) }

// UnmarshalText parses the output of MarshalText.
func (h *Hex32) UnmarshalText(text []byte) error { return parseHex(h, text, 32) }

// UnmarshalText parses the output of MarshalText.
func (h *Hex64) UnmarshalText(text []byte) error { return parseHex(h, text, 64) }

// ShortHandle returns a short form of a file handle: its CRC-32, which Wireshark shows, too
// (nfs.fh.hash).
func ShortHandle(handle []byte) string {
	return string(field.AppendHex([]byte("fh:"), uint64(crc32.ChecksumIEEE(handle)), 8))
}

// ShortHex is like ShortHandle, for a handle in hex. It returns nothing for an empty handle, and the text itself if it
// is not hex.
func ShortHex(handle string) string {
	b, err := hex.DecodeString(handle)
	if err != nil || len(b) == 0 {
		return handle
	}
	return ShortHandle(b)
}

// ParseHex32 parses a 32-bit number in any form of a Go literal, such as 0x4cc9dbf7.
func ParseHex32(s string) (h Hex32, err error) {
	err = parseHex(&h, []byte(s), 32)
	return h, err
}

// Plural returns a number of things; noun is their name in the singular.
func Plural[N int | int32 | int64 | uint32 | uint64](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Noun(n, noun))
}

// Noun returns the name of n things; noun is their name in the singular.
func Noun[N int | int32 | int64 | uint32 | uint64](n N, noun string) string {
	stem, ends := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
		return noun
	case ends && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	}
	return noun + "s"
}

// Are returns the verb that says what n things are.
func Are[N int | int32 | int64 | uint32 | uint64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Ordinal returns a number such as 2nd.
func Ordinal(n int) string {
	ending := "th"
	if tens := n / 10 % 10; tens != 1 {
		ending = cmp.Or(map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10], ending)
	}
	return strconv.Itoa(n) + ending
}

// Were returns the verb that says what n things were.
func Were[N int | int32 | int64 | uint32 | uint64](n N) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
