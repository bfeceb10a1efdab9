package link_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

const (
	innerEth = "020000000001 020000000002 "
	innerIP  = "45000030 00010000 4011 66ba 0a000001 0a000002 " // 48 bytes, UDP, with the right checksum
	innerUDP = "c000 12b7 001c 0000 "
	innerBTH = "04 00 ffff 00 000011 00 000005 00000000 00000000 "
	inner    = innerEth + "0800" + innerIP + innerUDP + innerBTH
	outer    = "02000000000a 02000000000b 0800 45000200 00010000 40"
	toGRE    = outer + "2f0000 c6336401 c6336402 "
	toUDP    = outer + "110000 c6336401 c6336402 c000 "
)

// names returns the names of the headers that were decoded.
func names(l *link.Decoder) string {
	var list []string
	for _, h := range l.Headers() {
		list = append(list, h.Kind.String())
	}
	return strings.Join(list, " ")
}

// TestTunnels checks which headers the frames of each kind of tunnel have, and the names of the protocols that are not opened.
func TestTunnels(t *testing.T) {
	const ethernet = " ethernet ipv4 udp"
	for _, c := range []struct {
		name, frame string
		carries     link.Carries
		headers     string
		protocol    string
		number      uint16
	}{
		{"ERSPAN II with a VLAN tag inside", toGRE + "100088be 00000001 10640405 00000012" + innerEth + "8100 0064 0800" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet ipv4 gre gre_sequence erspan ethernet vlan ipv4 udp", "UDP", 0},
		{"ERSPAN I with a sequence number", toGRE + "100088be 00000001" + inner, link.CarriesRoCEv2, "ethernet ipv4 gre gre_sequence" + ethernet, "UDP", 0},
		{"ERSPAN II without a sequence number", toGRE + "000088be 10640405 00000012" + inner, link.CarriesRoCEv2, "ethernet ipv4 gre erspan" + ethernet, "UDP", 0},
		{"ERSPAN III of an IP packet", toGRE + "100022eb 00000001 20640005 12345678 00008804" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet ipv4 gre gre_sequence erspan ipv4 udp", "UDP", 0},
		{"ERSPAN III with another frame type", toGRE + "100022eb 00000001 20640005 12345678 00008c04" + inner, link.CarriesOther, "ethernet ipv4 gre gre_sequence erspan", "ERSPAN with frame type", 3},
		{"ERSPAN of another version", toGRE + "100088be 00000001 30640405 00000012" + innerBTH, link.CarriesOther, "ethernet ipv4 gre gre_sequence", "ERSPAN version", 3},
		{"ERSPAN II in Ethernet over MPLS", "02000000000a 02000000000b 8847 00011140" + toGRE[:31] + "4500020000010000402f 2464 c6336401 c6336402 100088be 00000001 10640405 00000012" + inner, link.CarriesRoCEv2, "ethernet mpls ethernet ipv4 gre gre_sequence erspan" + ethernet, "UDP", 0},
		{"truncated in ERSPAN", toGRE + "100088be 00000001 1064", link.CarriesMalformed, "ethernet ipv4 gre gre_sequence", "", 0},
		{"truncated after ERSPAN", toGRE + "100088be 00000001 10640405 00000012", link.CarriesMalformed, "ethernet ipv4 gre gre_sequence erspan", "", 0},
		{"truncated in the subheader", toGRE + "100022eb 00000001 20640005 12345678 00008005 0c00", link.CarriesMalformed, "ethernet ipv4 gre gre_sequence erspan", "", 0},
		{"GRE of another protocol", toGRE + "00008949" + inner, link.CarriesOther, "ethernet ipv4 gre", "GRE with protocol", 0x8949},
		{"GRE of protocol 0", toGRE + "00000000" + inner, link.CarriesOther, "ethernet ipv4 gre", "GRE with protocol", 0},
		{"GRE of a protocol below the EtherTypes", toGRE + "00000026" + inner, link.CarriesOther, "ethernet ipv4 gre", "GRE with protocol", 0x26},
		{"Geneve of protocol 0", toUDP + "17c1 0100 0000 00000000 00007b00" + inner, link.CarriesOther, "ethernet ipv4 udp geneve", "Geneve with protocol", 0},
		{"ERSPAN of version 0", toGRE + "100088be 00000001 00640405 00000012" + inner, link.CarriesOther, "ethernet ipv4 gre gre_sequence", "ERSPAN version", 0},
		{"ERSPAN of version 0 without a sequence number", toGRE + "000088be 00640405 00000012" + inner, link.CarriesOther, "ethernet ipv4 gre", "ERSPAN version", 0},
		{"GRE of version 1", toGRE + "2001880b 00000000" + inner, link.CarriesOther, "ethernet ipv4 gre", "GRE with protocol", 0x880b},
		{"GRE with routing", toGRE + "40000800 00000000" + innerIP, link.CarriesOther, "ethernet ipv4 gre", "GRE with protocol", 0x0800},
		{"GRE with MPLS", toGRE + "00008847 00011140" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet ipv4 gre mpls ipv4 udp", "UDP", 0},
		{"truncated in the GRE key", toGRE + "20000800 0000", link.CarriesMalformed, "ethernet ipv4 gre", "", 0},
		{"Geneve with IPv4", toUDP + "17c1 0100 0000 00000800 00007b00" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet ipv4 udp geneve ipv4 udp", "UDP", 0},
		{"Geneve of another version", toUDP + "17c1 0100 0000 40006558 00007b00" + inner, link.CarriesOther, "ethernet ipv4 udp", "Geneve version", 1},
		{"Geneve with another protocol", toUDP + "17c1 0100 0000 00008949 00007b00" + inner, link.CarriesOther, "ethernet ipv4 udp geneve", "Geneve with protocol", 0x8949},
		{"Geneve with an option beyond the options", toUDP + "17c1 0100 0000 01006558 00007b00 0102031f" + inner, link.CarriesRoCEv2, "ethernet ipv4 udp geneve" + ethernet, "UDP", 0},
		{"Geneve with more options than are listed", toUDP + "17c1 0100 0000 08006558 00007b00" + strings.Repeat("01020300", 8) + inner, link.CarriesRoCEv2, "ethernet ipv4 udp geneve" + strings.Repeat(" geneve_option", 6) + ethernet, "UDP", 0},
		{"Geneve with options beyond the frame", toUDP + "17c1 0100 0000 3f006558 00007b00", link.CarriesMalformed, "ethernet ipv4 udp", "UDP", 0},
		{"MPLS with IPv4", "02000000000a 02000000000b 8847 00011140" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet mpls ipv4 udp", "UDP", 0},
		{"MPLS with IPv6", "02000000000a 02000000000b 8847 00011140 60000000 001c1140 fd000000000000000000000000000001 fd000000000000000000000000000002" + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet mpls ipv6 udp", "UDP", 0},
		{"MPLS with an address that looks like IPv4", "02000000000a 02000000000b 8847 00011140 450000000001 020000000002 0800" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet mpls" + ethernet, "UDP", 0},
		{"MPLS with an address that looks like IPv6", "02000000000a 02000000000b 8847 00011140 600000000001 020000000002 0800" + innerIP + innerUDP + innerBTH, link.CarriesRoCEv2, "ethernet mpls" + ethernet, "UDP", 0},
		{"MPLS with something else", "02000000000a 02000000000b 8847 00011140 1000002100000000", link.CarriesOther, "ethernet mpls", "MPLS", 0},
		{"MPLS without a bottom", "02000000000a 02000000000b 8847 " + strings.Repeat("00011040", 40), link.CarriesMalformed, "ethernet" + strings.Repeat(" mpls", 23), "", 0},
		{"VXLAN with a group policy on port 8472", toUDP + "2118 0100 0000 88000064 00000100" + inner, link.CarriesRoCEv2, "ethernet ipv4 udp vxlan ethernet ipv4 udp", "UDP", 0},
		{"port 8472 without VXLAN", toUDP + "2118 0100 0000 08000000 00000101" + inner, link.CarriesUDP, "ethernet ipv4 udp", "UDP", 0},
		{"port 8472 with something else inside", toUDP + "2118 0100 0000 08000000 00000100" + innerEth + "0800 46" + innerIP[2:], link.CarriesUDP, "ethernet ipv4 udp", "UDP", 0},
		{"another port", toUDP + "2119 0100 0000 08000000 00000100" + inner, link.CarriesUDP, "ethernet ipv4 udp", link.VXLANPort, 0x2119},
		{"an unknown EtherType", innerEth + "88b5 0000", link.CarriesOther, "ethernet", "EtherType", 0x88b5},
		{"a length instead of an EtherType", innerEth + "0026 4242", link.CarriesOther, "ethernet", "LLC", 0},
		{"an unknown protocol of IP", innerEth + "0800 45000030 00010000 4059 0000 0a000001 0a000002", link.CarriesOther, "ethernet ipv4", "IP protocol", 89},
	} {
		data := testkit.Unhex(t, c.frame)
		var l link.Decoder
		l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: data, Length: len(data)})
		if l.Carries != c.carries || names(&l) != c.headers || l.Protocol != c.protocol || l.Number != c.number {
			t.Errorf("%s: carries %d after %q, %q %#x; want %d after %q, %q %#x", c.name, l.Carries, names(&l), l.Protocol, l.Number, c.carries, c.headers, c.protocol, c.number)
		}
	}
}

// TestTunnelPorts checks that the caller can name ports of tunnels.
func TestTunnelPorts(t *testing.T) {
	data := testkit.Unhex(t, toUDP+"2119 0100 0000 08000000 00000100"+inner)
	other := testkit.Unhex(t, toUDP+"211a 0100 0000 00006558 00000100"+inner)
	l := link.Decoder{Tunnels: []link.Tunnel{{Port: 0x2119}, {Port: 0x211a, Geneve: true}}}
	for _, c := range []struct {
		data []byte
		want string
	}{{data, "ethernet ipv4 udp vxlan ethernet ipv4 udp"}, {other, "ethernet ipv4 udp geneve ethernet ipv4 udp"}} {
		if l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: c.data, Length: len(c.data)}); l.Carries != link.CarriesRoCEv2 || names(&l) != c.want {
			t.Errorf("carries %d after %q, want %q", l.Carries, names(&l), c.want)
		}
	}
}

// TestCutByMirror checks that a packet that a switch mirrored in part has its own length, and is truncated.
func TestCutByMirror(t *testing.T) {
	const beginning = innerEth + "0800 45000430 00010000 4011 62ba 0a000001 0a000002 c000 12b7 041c 0000" + innerBTH
	const tcp = innerEth + "0800 45000430 00010000 4006 62c5 0a000001 0a000002 c000 4e2c 00000001 00000001 50100000 00000000"
	for _, c := range []struct {
		name, frame string
		length      int
	}{
		{"ERSPAN I", outer[:35] + "0062 00010000 402f0000 c6336401 c6336402 000088be" + beginning, 1044},
		{"ERSPAN II", outer[:35] + "006e 00010000 402f0000 c6336401 c6336402 100088be 00000001 10640405 00000012" + beginning, 1044},
		{"a TCP segment in ERSPAN I", outer[:35] + "005a 00010000 402f0000 c6336401 c6336402 000088be" + tcp, 1052},
		{"VXLAN", outer[:35] + "006a 00010000 40110000 c6336401 c6336402 c000 12b5 0056 0000 08000000 00007b00" + beginning, 1044},
		{"a TCP segment in VXLAN", outer[:35] + "0062 00010000 40110000 c6336401 c6336402 c000 12b5 004e 0000 08000000 00007b00" + tcp, 1052},
		{"no tunnel", beginning, 1044},
		{"a TCP segment without a tunnel", tcp, 1052},
		{"the first fragment of VXLAN", outer[:35] + "006a 00012000 40110000 c6336401 c6336402 c000 12b5 0500 0000 08000000 00007b00" + beginning, 1044},
	} {
		data := testkit.Unhex(t, c.frame)
		var l link.Decoder
		l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: data, Length: len(data)})
		if l.Length != c.length || len(l.Transport) != 20 || !l.Truncated() {
			t.Errorf("%s: %d bytes, %d captured, truncated %v, after %q; want %d, 20", c.name, l.Length, len(l.Transport), l.Truncated(), names(&l), c.length)
		}
	}
}

// TestDamagedLength checks that a length beyond the frame which the header's checksum does not prove does not make a packet truncated.
func TestDamagedLength(t *testing.T) {
	data := testkit.Unhex(t, innerEth+"0800 45000430 00010000 4011 62bb 0a000001 0a000002 c000 12b7 041c 0000"+innerBTH)
	var l link.Decoder
	l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: data, Length: len(data)})
	if l.Truncated() {
		t.Error("the packet is truncated")
	}
}

// TestTunneledFrames checks that the frames of a capture have the same transport in each tunnel.
func TestTunneledFrames(t *testing.T) {
	frames, _ := testkit.Frames(t, "../../testdata/captures/rocev2-callback41.pcap.zst")
	var plain, tunneled link.Decoder
	for i := range testkit.Tunnels {
		tunnel := &testkit.Tunnels[i]
		for j := range frames {
			f := tunnel.Frame(&frames[j])
			plain.Decode(&frames[j])
			tunneled.Decode(&f)
			want := tunnel.Headers + " " + names(&plain)
			if names(&tunneled) != want || tunneled.Carries != plain.Carries || string(tunneled.Transport) != string(plain.Transport) || tunneled.Length != plain.Length || tunneled.Src != plain.Src {
				t.Fatalf("%s, frame %d: %d bytes (carries %d) after %q, want %d bytes (carries %d) after %q", tunnel.Name, frames[j].Number, tunneled.Length, tunneled.Carries, names(&tunneled), plain.Length, plain.Carries, want)
			}
		}
	}
}

// FuzzTunnels checks that whatever a tunnel holds, positions are within the frame, and the number of headers is bounded.
func FuzzTunnels(f *testing.F) {
	file, err := capture.Open(filepath.Join("..", "..", "testdata", "captures", "rocev2-callback41.pcap.zst"))
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	for frame, err := range capture.All(context.Background(), file) {
		if err != nil || frame.Number > 4 {
			break
		}
		for i := range testkit.Tunnels {
			once := testkit.Tunnels[i].Frame(frame)
			twice := testkit.Tunnels[(i+5)%len(testkit.Tunnels)].Frame(&once)
			f.Add(twice.Data, 0)
			f.Add(once.Data, 20)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, missing int) {
		l := link.Decoder{Tunnels: []link.Tunnel{{Port: 4790}, {Port: 6082, Geneve: true}}}
		l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: data, Length: len(data) + max(missing, 0)%1500})
		if len(l.Headers()) > 24 {
			t.Errorf("%d headers", len(l.Headers()))
		}
		for _, h := range l.Headers() {
			if h.Offset < 0 || h.Offset+h.Length > len(data) {
				t.Errorf("header %v is outside of %d bytes", h, len(data))
			}
		}
		if l.Offset+len(l.Transport) > len(data) || l.Length < len(l.Transport) {
			t.Errorf("transport at %d, %d of %d bytes, in a frame of %d", l.Offset, len(l.Transport), l.Length, len(data))
		}
	})
}

// TestProtocolNames checks how protocols are named that are not decoded.
func TestProtocolNames(t *testing.T) {
	for _, c := range []struct {
		name   string
		number uint16
		want   string
	}{
		{"GRE with protocol", 0, "GRE with protocol 0x0000"},
		{"Geneve with protocol", 0x26, "Geneve with protocol 0x0026"},
		{"GRE with protocol", 0x8949, "GRE with protocol 0x8949"},
		{"ERSPAN version", 0, "ERSPAN version 0"},
		{"IP protocol", 89, "IP protocol 89"},
		{"TCP port", 2049, "TCP port 2049"},
		{"ARP", 0, "ARP"},
	} {
		if got := string(link.AppendProtocol(nil, c.name, c.number)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
