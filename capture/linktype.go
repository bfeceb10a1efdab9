package capture

import "fmt"

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
