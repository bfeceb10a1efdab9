package capture

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// LinkType identifies the first header of a frame. The numbers are those of tcpdump's registry.
type LinkType uint16

// The supported link types.
const (
	LinkEthernet   LinkType = 1
	LinkRaw        LinkType = 101
	LinkRawBSD     LinkType = 12
	LinkSLL        LinkType = 113
	LinkERF        LinkType = 197
	LinkIPv4       LinkType = 228
	LinkIPv6       LinkType = 229
	LinkInfiniBand LinkType = 247
	LinkSLL2       LinkType = 276
)

var linkNames = map[LinkType]string{
	LinkEthernet: "Ethernet", LinkRaw: "raw IP", LinkRawBSD: "raw IP", LinkSLL: "Linux cooked", LinkERF: "ERF",
	LinkIPv4: "raw IPv4", LinkIPv6: "raw IPv6", LinkInfiniBand: "InfiniBand", LinkSLL2: "Linux cooked v2",
}

// String returns the name of the link type, or its number if the type is unknown.
func (t LinkType) String() string {
	if name, known := linkNames[t]; known {
		return name
	}
	return fmt.Sprintf("link type %d", uint16(t))
}

// setERFTime sets the time of an ERF frame from the ERF header, whose time stamp has a resolution of
// 2^-32 seconds. The time of the capture file's record is derived from it, and usually has
// microseconds only. The time stamp consists of the seconds since 1970 in the upper 32 bits and the
// fraction of the second in the lower 32 bits, in little-endian byte order. A time stamp of 0 means
// that the header was not filled in; the frame then keeps its time.
func (f *Frame) setERFTime() {
	if f.LinkType != LinkERF || len(f.Data) < 8 {
		return
	}
	if stamp := binary.LittleEndian.Uint64(f.Data); stamp != 0 {
		fraction, _ := bits.Mul64(stamp<<32, 1e9)
		f.Time = int64(stamp>>32)*1e9 + int64(fraction)
	}
}
