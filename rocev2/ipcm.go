package rocev2

import (
	"fmt"
	"net/netip"
)

// IPCMLen is the length of the IP CM header in bytes.
const IPCMLen = 36

// IPCM is the header of the RDMA IP CM service. It precedes the consumer's private data in a REQ
// (IBTA annex A11).
//
//	offset width
//	0      4 bits  major version: 0
//	0.4    4       minor version: 0
//	1      4       IP version: 4 or 6
//	1.4    4       reserved
//	2      16      source port
//	4      128     source address; IPv4 in the last 4 bytes
//	20     128     destination address; IPv4 in the last 4 bytes
//
// Decode returns an error that wraps [ErrTruncated] for fewer than 36 bytes.
type IPCM struct {
	MajorVersion, MinorVersion uint8
	IPVersion                  uint8
	Reserved4                  uint8
	SourcePort                 uint16
	Source, Destination        [16]byte
}

func (*IPCM) layout() layout { return layout{LayerTypeIPCM, IPCMLen} }

func (h *IPCM) decode(data []byte) {
	h.MajorVersion, h.MinorVersion = data[0]>>4, data[0]&15
	h.IPVersion, h.Reserved4 = data[1]>>4, data[1]&15
	h.SourcePort = be.Uint16(data[2:])
	h.Source, h.Destination = [16]byte(data[4:20]), [16]byte(data[20:36])
}

func (h *IPCM) encode(data []byte) {
	data[0] = h.MajorVersion<<4 | h.MinorVersion&15
	data[1] = h.IPVersion<<4 | h.Reserved4&15
	be.PutUint16(data[2:], h.SourcePort)
	copy(data[4:], h.Source[:])
	copy(data[20:], h.Destination[:])
}

// Addresses returns the source and the destination address in the form of the IP version.
func (h *IPCM) Addresses() (source, destination netip.Addr) {
	if h.IPVersion == 4 {
		return netip.AddrFrom4([4]byte(h.Source[12:])), netip.AddrFrom4([4]byte(h.Destination[12:]))
	}
	return netip.AddrFrom16(h.Source), netip.AddrFrom16(h.Destination)
}

// String returns a one-line description.
func (h *IPCM) String() string {
	source, destination := h.Addresses()
	return fmt.Sprintf("IP CM %v port %d > %v", source, h.SourcePort, destination)
}
