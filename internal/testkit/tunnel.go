package testkit

import (
	"encoding/binary"
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
)

// Tunnel puts Ethernet frames into the packets of a tunnel.
type Tunnel struct {
	Name    string
	Headers string // names of the headers before the frame
	Tshark  string // what tshark needs to open it, as the value of -d; empty if it opens it by itself
	before  func(payload int) []byte
}

// Tunnels are all tunnels that rdmadump opens.
var Tunnels = []Tunnel{
	{"VXLAN", "ethernet ipv4 udp vxlan", "", overUDP(4789, "08000000 00007b00")},
	{"VXLAN of flannel", "ethernet ipv4 udp vxlan", "udp.port==8472,vxlan", overUDP(8472, "08000000 00000100")},
	{"Geneve", "ethernet ipv4 udp geneve", "", overUDP(6081, "00006558 00007b00")},
	{"Geneve with options", "ethernet ipv4 udp geneve geneve_option geneve_option", "", overUDP(6081, "03006558 00007b00 01020301 00000001 01020400")},
	{"GRE", "ethernet ipv4 gre", "", overIP(47, "00006558")},
	{"GRE with all words", "ethernet ipv4 gre gre_checksum gre_key gre_sequence", "", overIP(47, "b0006558 00000000 00000007 00000001")},
	{"ERSPAN I", "ethernet ipv4 gre", "", overIP(47, "000088be")},
	{"ERSPAN II", "ethernet ipv4 gre gre_sequence erspan", "", overIP(47, "100088be 00000001 10640405 00000012")},
	{"ERSPAN III", "ethernet ipv4 gre gre_sequence erspan", "", overIP(47, "100022eb 00000001 20640005 12345678 00008004")},
	{"ERSPAN III with a subheader", "ethernet ipv4 gre gre_sequence erspan erspan_platform", "", overIP(47, "100022eb 00000001 20640005 12345678 00008005 0c000000 00000001")},
	{"MPLS", "ethernet mpls mpls", "mpls.label==17,pwethnocw", overEthernet(0x8847, "00010040 00011140")},
	{"MPLS with a control word", "ethernet mpls control_word", "mpls.label==17,pwethcw", overEthernet(0x8847, "00011140 00000007")},
}

// Frame returns a frame in the tunnel. Of a frame that was captured in part, the tunnel has as much.
func (t *Tunnel) Frame(f *capture.Frame) capture.Frame {
	wrapped := *f
	before := t.before(f.Length)
	wrapped.Data, wrapped.Length = slices.Concat(before, f.Data), len(before)+f.Length
	return wrapped
}

// mustUnhex returns the bytes of a text with spaces between the digits; the text is one of this file.
func mustUnhex(s string) (b []byte) {
	digits := 0
	for _, r := range s {
		v := byte(0)
		switch {
		case r == ' ':
			continue
		case r >= 'a':
			v = byte(r-'a') + 10
		default:
			v = byte(r - '0')
		}
		if digits++; digits%2 == 1 {
			b = append(b, v<<4)
		} else {
			b[len(b)-1] |= v
		}
	}
	return b
}

// overEthernet returns a function that makes the headers of a tunnel directly on Ethernet.
func overEthernet(kind uint16, header string) func(int) []byte {
	return func(int) []byte {
		head := binary.BigEndian.AppendUint16(mustUnhex("02000000000a 02000000000b"), kind)
		return append(head, mustUnhex(header)...)
	}
}

// overIP returns a function that makes the headers of a tunnel on IPv4.
func overIP(protocol byte, header string) func(int) []byte {
	h := mustUnhex(header)
	return func(payload int) []byte {
		ip := mustUnhex("45000000 00010000 40000000 c6336401 c6336402")
		ip[9] = protocol
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(h)+payload))
		binary.BigEndian.PutUint16(ip[10:], ^link.Fold(link.AddWords(0, ip)))
		return slices.Concat(mustUnhex("02000000000a 02000000000b 0800"), ip, h)
	}
}

// overUDP returns a function that makes the headers of a tunnel on UDP.
func overUDP(port uint16, header string) func(int) []byte {
	h := mustUnhex(header)
	below := overIP(17, "")
	return func(payload int) []byte {
		udp := binary.BigEndian.AppendUint16([]byte{0xc0, 0}, port)
		udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(h)+payload))
		return slices.Concat(below(8+len(h)+payload), udp, []byte{0, 0}, h)
	}
}
