package link_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/rocev2"
)

// TestDecoder checks what each stack of headers carries, where the transport begins, and how long
// it is on the wire.
func TestDecoder(t *testing.T) {
	const (
		eth   = "020000000001 020000000002 "
		ip    = "45000030 00010000 40110000 0a000001 0a000002 "     // 48 bytes, UDP
		udp   = "c000 12b7 001c 0000 "                              // 28 bytes, port 4791
		bth   = "04 00 ffff 00 000011 00 000005 00000000 00000000 " // 20 bytes
		ip6   = "60000000 001c1140 fd000000000000000000000000000001 fd000000000000000000000000000002 "
		grh   = "60000000 00141b40 fe800000000000000000000000000001 fe800000000000000000000000000002 "
		local = "0002 0001 0007 0002 "
		ud    = "64 00 ffff 00 000049 00 000001 00000b1b 00 00004a "
	)
	for _, c := range []struct {
		name    string
		kind    capture.LinkType
		frame   string
		carries link.Carries
		offset  int
		length  int
		headers string
	}{
		{"Ethernet", 1, eth + "0800" + ip + udp + bth, link.CarriesRoCEv2, 42, 20, "ethernet ipv4 udp"},
		{"Ethernet with trailing pad", 1, eth + "0800" + ip + udp + bth + "0000", link.CarriesRoCEv2, 42, 20, "ethernet ipv4 udp"},
		{"VLAN", 1, eth + "8100 0064 0800" + ip + udp + bth, link.CarriesRoCEv2, 46, 20, "ethernet vlan ipv4 udp"},
		{"three tags", 1, eth + "88a8 0064 8100 0065 9100 0066 0800" + ip + udp + bth, link.CarriesRoCEv2, 54, 20, "ethernet vlan vlan vlan ipv4 udp"},
		{"IPv4 options", 1, eth + "0800 46000034 00010000 40110000 0a000001 0a000002 01010100" + udp + bth, link.CarriesRoCEv2, 46, 20, "ethernet ipv4 udp"},
		{"first IPv4 fragment", 1, eth + "0800 45000030 00012000 40110000 0a000001 0a000002 c000 12b7 0400 0000" + bth, link.CarriesRoCEv2, 42, 1016, "ethernet ipv4 udp"},
		{"later IPv4 fragment", 1, eth + "0800 45000030 00010003 40110000 0a000001 0a000002" + udp + bth, link.CarriesFragment, 0, 0, "ethernet ipv4"},
		{"invalid IPv4 header length", 1, eth + "0800 44000030 00010000 40110000 0a000001 0a000002" + udp + bth, link.CarriesMalformed, 0, 0, "ethernet"},
		{"invalid IPv4 length", 1, eth + "0800 45000010 00010000 40110000 0a000001 0a000002" + udp + bth, link.CarriesMalformed, 0, 0, "ethernet ipv4"},
		{"invalid UDP length", 1, eth + "0800" + ip + "c000 12b7 0004 0000" + bth, link.CarriesMalformed, 0, 0, "ethernet ipv4 udp"},
		{"UDP length beyond that of IP", 1, eth + "0800" + ip + "c000 12b7 0020 0000" + bth + "deadbeef", link.CarriesRoCEv2, 42, 20, "ethernet ipv4 udp"},
		{"UDP length beyond that of IPv6", 1, eth + "86dd" + ip6 + "c000 12b7 0020 0000" + bth + "deadbeef", link.CarriesRoCEv2, 62, 20, "ethernet ipv6 udp"},
		{"another UDP port", 1, eth + "0800" + ip + "c000 0035 001c 0000" + bth, link.CarriesUDP, 42, 20, "ethernet ipv4 udp"},
		{"from port 4791", 1, eth + "0800" + ip + "12b7 c000 001c 0000" + bth, link.CarriesRoCEv2, 42, 20, "ethernet ipv4 udp"},
		{"from port 4791 over IPv6", 1, eth + "86dd" + ip6 + "12b7 c000 001c 0000" + bth, link.CarriesRoCEv2, 62, 20, "ethernet ipv6 udp"},
		{"from port 4791, truncated in the BTH", 1, eth + "0800" + ip + "12b7 c000 001c 0000" + bth[:28], link.CarriesUDP, 42, 20, "ethernet ipv4 udp"},
		{"from port 4791, reserved opcode", 1, eth + "0800" + ip + "12b7 c000 001c 0000 1f" + bth[2:], link.CarriesUDP, 42, 20, "ethernet ipv4 udp"},
		{"from port 4791, header version 1", 1, eth + "0800" + ip + "12b7 c000 001c 0000 0401" + bth[5:], link.CarriesUDP, 42, 20, "ethernet ipv4 udp"},
		{"from port 4791, odd length", 1, eth + "0800" + ip + "12b7 c000 001b 0000" + bth, link.CarriesUDP, 42, 19, "ethernet ipv4 udp"},
		{"VXLAN from port 4791", 1, eth + "0800 45000062 00010000 40110000 0a000001 0a000002 12b7 12b5 004e 0000 0800000000000100" + eth + "0800" + ip + udp + bth, link.CarriesRoCEv2, 92, 20, "ethernet ipv4 udp vxlan ethernet ipv4 udp"},
		{"IPv6", 1, eth + "86dd" + ip6 + udp + bth, link.CarriesRoCEv2, 62, 20, "ethernet ipv6 udp"},
		{
			"IPv6 with extension headers", 1, eth + "86dd 60000000 002c0040 fd000000000000000000000000000001 fd000000000000000000000000000002 3c00000000000000 1100000000000000" + udp + bth,
			link.CarriesRoCEv2, 78, 20, "ethernet ipv6 ipv6_extension ipv6_extension udp",
		},
		{
			"later IPv6 fragment", 1, eth + "86dd 60000000 002c2c40 fd000000000000000000000000000001 fd000000000000000000000000000002 1100 0010 00000000" + udp + bth,
			link.CarriesFragment, 0, 0, "ethernet ipv6 ipv6_extension",
		},
		{"RoCEv1", 1, eth + "8915" + grh + bth, link.CarriesRoCEv1, 54, 20, "ethernet grh"},
		{"ARP", 1, eth + "0806" + bth, link.CarriesOther, 0, 0, "ethernet"},
		{"TCP", 1, eth + "0800 45000030 00010000 40060000 0a000001 0a000002" + udp + bth, link.CarriesTCP, 34, 28, "ethernet ipv4"},
		{"Linux cooked", 113, "0000 0001 0006 020000000002 0000 0800" + ip + udp + bth, link.CarriesRoCEv2, 44, 20, "sll ipv4 udp"},
		{"Linux cooked v2", 276, "0800 0000 00000002 0001 00 06 020000000002 0000" + ip + udp + bth, link.CarriesRoCEv2, 48, 20, "sll2 ipv4 udp"},
		{"raw IP", 101, ip + udp + bth, link.CarriesRoCEv2, 28, 20, "ipv4 udp"},
		{"raw IPv6", 229, ip6 + udp + bth, link.CarriesRoCEv2, 48, 20, "ipv6 udp"},
		{"InfiniBand", 247, local + bth + "beef", link.CarriesInfiniBand, 8, 20, "lrh"},
		{"InfiniBand with GRH", 247, "0003 0001 0011 0002" + grh + bth + "beef", link.CarriesInfiniBand, 48, 20, "lrh grh"},
		{"IPoIB, UDP", 247, "0002 0001 0015 0002" + ud + "08000000" + ip + "c000 006f 001c 0000" + bth + "00000000 beef", link.CarriesUDP, 60, 20, "lrh ud ipoib ipv4 udp"},
		{"IPoIB, ARP", 247, "0002 0001 000c 0002" + ud + "08060000" + bth + "00000000 beef", link.CarriesInfiniBand, 8, 40, "lrh"},
		{"IPoIB, cut in its header", 247, "0002 0001 0015 0002" + ud + "0800", link.CarriesInfiniBand, 8, 22, "lrh"},
		{"UD that is no IPoIB", 247, "0002 0001 000c 0002" + ud + "08000001" + bth + "00000000 beef", link.CarriesInfiniBand, 8, 40, "lrh"},
		{"raw InfiniBand", 247, "0000 0001 0007 0002" + bth, link.CarriesOther, 0, 0, "lrh"},
		{"ERF", 197, "0000000000000000 15 04 002e 0000 001e" + local + bth + "beef", link.CarriesInfiniBand, 24, 20, "erf lrh"},
		{"ERF with extension headers", 197, "0000000000000000 95 04 003e 0000 001e 8000000000000000 0000000000000000" + local + bth + "beef", link.CarriesInfiniBand, 40, 20, "erf erf_extension erf_extension lrh"},
		{"ERF Ethernet", 197, "0000000000000000 02 04 0050 0000 003e 0000" + eth + "0800" + ip + udp + bth, link.CarriesRoCEv2, 60, 20, "erf erf_ethernet ethernet ipv4 udp"},
		{
			"VXLAN", 1, eth + "0800 45000062 00010000 40110000 0a000001 0a000002 c000 12b5 004e 0000 0800000000000100" + eth + "0800" + ip + udp + bth,
			link.CarriesRoCEv2, 92, 20, "ethernet ipv4 udp vxlan ethernet ipv4 udp",
		},
		{"GRE", 1, eth + "0800 4500004c 00010000 402f0000 0a000001 0a000002 2000 0800 00000007" + ip + udp + bth, link.CarriesRoCEv2, 70, 20, "ethernet ipv4 gre gre_key ipv4 udp"},
		{"bridged GRE", 1, eth + "0800 45000056 00010000 402f0000 0a000001 0a000002 0000 6558" + eth + "0800" + ip + udp + bth, link.CarriesRoCEv2, 80, 20, "ethernet ipv4 gre ethernet ipv4 udp"},
		{"unsupported link type", 147, bth, link.CarriesUnknownLink, 0, 0, ""},
		{"truncated in the Ethernet header", 1, "020000", link.CarriesMalformed, 0, 0, ""},
		{"truncated in the UDP header", 1, eth + "0800" + ip + "c000 12b7", link.CarriesMalformed, 0, 0, "ethernet ipv4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := testkit.Unhex(t, c.frame)
			var l link.Decoder
			l.Decode(&capture.Frame{LinkType: c.kind, Data: data, Length: len(data)})
			var names []string
			for _, h := range l.Headers() {
				names = append(names, h.Kind.String())
			}
			offset := l.Offset
			if l.Carries != c.carries || offset != c.offset || l.Length != c.length || strings.Join(names, " ") != c.headers {
				t.Errorf("carries %d at %d, %d bytes, after %q; want %d at %d, %d bytes, after %q", l.Carries, offset, l.Length, strings.Join(names, " "), c.carries, c.offset, c.length, c.headers)
			}
		})
	}
}

// TestWireLength checks that the length of a packet excludes the record header of ERF.
func TestWireLength(t *testing.T) {
	const (
		lrh = "0002 0001 0007 0002 "
		bth = "04 00 ffff 00 000011 00 000005 00000000 00000000 "
	)
	for _, c := range []struct {
		name, frame      string
		kind             capture.LinkType
		length           int // of the frame
		packet, captured int
	}{
		{"InfiniBand", lrh + bth + "beef", 247, 30, 30, 30},
		{"ERF", "0000000000000000 15 04 002e 0000 001e" + lrh + bth + "beef", 197, 46, 30, 30},
		{"ERF, truncated", "0000000000000000 15 04 002e 0000 001e" + lrh + bth[:35], 197, 46, 30, 22},
		{"ERF, padded to eight bytes", "0000000000000000 15 04 0030 0000 001e" + lrh + bth + "beef 0000", 197, 48, 30, 30},
		{"ERF with an extension header", "0000000000000000 95 04 0036 0000 001e 0000000000000000" + lrh + bth + "beef", 197, 54, 30, 30},
		{"ERF Ethernet", "0000000000000000 02 04 0020 0000 000e 0000 020000000001 020000000002 88cc", 197, 32, 14, 14},
		{"ERF of an unknown type", "0000000000000000 30 04 0014 0000 0004 01020304", 197, 20, 4, 4},
		{"truncated in the ERF header", "0000000000000000 15 04", 197, 46, 46, 10},
	} {
		data := testkit.Unhex(t, c.frame)
		var l link.Decoder
		l.Decode(&capture.Frame{LinkType: c.kind, Data: data, Length: c.length})
		if l.WireLength != c.packet || l.Captured != c.captured {
			t.Errorf("%s: %d bytes, %d captured; want %d, %d captured", c.name, l.WireLength, l.Captured, c.packet, c.captured)
		}
	}
}

// TestPause checks pause frames of the link and of priorities.
func TestPause(t *testing.T) {
	const head = "0180c2000001 020000000002 8808 "
	for _, c := range []struct {
		name, frame, protocol string
		paused                uint8
		headers               string
	}{
		{"PFC of priorities 3 and 4", head + "0101 0018 0000 0000 0000 ffff 0001 0000 0000 0000", "PFC pause", 0x18, "ethernet pfc"},
		{"PFC that ends the pause of priority 4", head + "0101 0018 0000 0000 0000 ffff 0000 0000 0000 0000", "PFC pause", 0x08, "ethernet pfc"},
		{"PFC that ends all pauses", head + "0101 0018 0000 0000 0000 0000 0000 0000 0000 0000", "PFC pause end", 0, "ethernet pfc"},
		{"PFC with the time of a priority that is not enabled", head + "0101 0001 0000 ffff 0000 0000 0000 0000 0000 0000", "PFC pause end", 0, "ethernet pfc"},
		{"truncated PFC", head + "0101 0018 0000", "PFC", 0, "ethernet"},
		{"pause", head + "0001 ffff", "Ethernet pause", 0xff, "ethernet pause"},
		{"end of a pause", head + "0001 0000", "Ethernet pause end", 0, "ethernet pause"},
		{"another opcode", head + "0002 0000", "MAC control", 0, "ethernet"},
	} {
		data := testkit.Unhex(t, c.frame)
		var l link.Decoder
		carries := l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: data, Length: len(data)})
		var names []string
		for _, h := range l.Headers() {
			names = append(names, h.Kind.String())
		}
		if carries != link.CarriesOther || l.Protocol != c.protocol || l.Paused != c.paused || strings.Join(names, " ") != c.headers {
			t.Errorf("%s: carries %d, %q, paused %08b, headers %q", c.name, carries, l.Protocol, l.Paused, names)
		}
	}
}

// TestTrailer checks that an Ethernet trailer or FCS after the IP packet is not part of the
// transport, whatever the UDP length is, and that the ICRC is the last four bytes of the IP packet.
func TestTrailer(t *testing.T) {
	for _, c := range []struct {
		name      string
		udpLength string
		fragment  string
		length    int // of the transport on the wire
		captured  int
		icrc      rocev2.ICRCResult
	}{
		{"honest", "0020", "0000", 24, 24, rocev2.ICRCOk},
		{"too long by the FCS", "0024", "0000", 24, 24, rocev2.ICRCOk},
		{"much too long", "ffff", "0000", 24, 24, rocev2.ICRCOk},
		{"first fragment", "0400", "2000", 1016, 24, rocev2.ICRCUnchecked},
	} {
		t.Run(c.name, func(t *testing.T) {
			packet := testkit.Unhex(t, "45000034 0001"+c.fragment+" 40110000 0a000001 0a000002"+
				"c000 12b7"+c.udpLength+"0000 04 00 ffff 00 000011 00 000005 00000000 00000000 00000000")
			if err := rocev2.FixICRC(packet); err != nil {
				t.Fatal(err)
			}
			frame := slices.Concat(make([]byte, 12), []byte{8, 0}, packet, testkit.Unhex(t, "000000000000deadbeef"))
			var l link.Decoder
			var p rocev2.Packet
			l.Decode(&capture.Frame{LinkType: capture.LinkEthernet, Data: frame, Length: len(frame)})
			if err := p.Decode(l.Transport, l.Length); err != nil {
				t.Fatal(err)
			}
			if got := l.CheckICRC(&p); l.Length != c.length || len(l.Transport) != c.captured || got != c.icrc {
				t.Errorf("transport of %d bytes, %d captured, ICRC %v; want %d, %d, %v", l.Length, len(l.Transport), got, c.length, c.captured, c.icrc)
			}
		})
	}
}

// FuzzDecoder checks that the positions of all decoded headers are within the frame.
func FuzzDecoder(f *testing.F) {
	paths, _ := filepath.Glob("../../testdata/captures/*callback41*.zst")
	for _, path := range paths {
		file, err := capture.Open(path)
		if err != nil {
			f.Fatal(err)
		}
		for frame, err := range capture.All(context.Background(), file) {
			if err != nil || frame.Number > 40 {
				break
			}
			f.Add(uint16(frame.LinkType), bytes.Clone(frame.Data))
		}
		file.Close()
	}
	f.Fuzz(func(t *testing.T, linkType uint16, data []byte) {
		var l link.Decoder
		frame := capture.Frame{LinkType: capture.LinkType(linkType), Data: data, Length: len(data)}
		l.Decode(&frame)
		if s := new(link.TCP); s.Decode(l.Transport, l.Length, l.Offset) {
			s.ReportsGap()
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

// TestICRC checks the ICRC of a packet with a GRH on a native link. The GRH, the transport and the
// ICRC are those of a Mellanox adapter (scapy, test/contrib/roce.uts, "RoCE v1 RC ACKNOWLEDGE"). A
// native link adds only the LRH, which the ICRC of a packet with a GRH does not cover.
func TestICRC(t *testing.T) {
	const packet = `6020 0000 0014 1b40  0000 0000 0000 0000 0000 ffff 0f00 0002  0000 0000 0000 0000 0000 ffff 0f00 0002
		1140 ffff 0000 0109 00a7 88c0  0000 0005  25f0 c038`
	for _, c := range []struct {
		name string
		kind capture.LinkType
		head string
		want rocev2.ICRCResult
	}{
		{"RoCEv1", capture.LinkEthernet, "7cfe90753cd8 7cfe90753cd8 8915", rocev2.ICRCOk},
		{"native", capture.LinkInfiniBand, "0003 0002 0011 0001", rocev2.ICRCOk},
		{"native, other lane and LIDs", capture.LinkInfiniBand, "5073 0102 0011 0304", rocev2.ICRCOk},
	} {
		raw, err := hex.DecodeString(strings.Join(strings.Fields(c.head+packet), ""))
		if err != nil {
			t.Fatal(err)
		}
		var d link.Decoder
		var p rocev2.Packet
		check := func() rocev2.ICRCResult {
			d.Decode(&capture.Frame{LinkType: c.kind, Length: len(raw), Data: raw})
			if err := p.Decode(d.Transport, d.Length); err != nil {
				t.Fatalf("%s: the packet cannot be decoded: %v", c.name, err)
			}
			return d.CheckICRC(&p)
		}
		if got := check(); got != c.want {
			t.Errorf("%s: ICRC %v, want %v", c.name, got, c.want)
		}
		raw[len(raw)-5] ^= 1 // the last byte of the AETH
		if got := check(); got != rocev2.ICRCBad {
			t.Errorf("%s, corrupted: ICRC %v", c.name, got)
		}
	}
}

// TestReportsGap: a segment reports a gap if a block of its selective acknowledgements is beyond what it acknowledges.
func TestReportsGap(t *testing.T) {
	block := func(from, to uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, from), to)
	}
	for _, c := range []struct {
		name    string
		options []byte
		want    bool
	}{
		{"none", nil, false},
		{"timestamps", []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, false},
		{"a later block", append([]byte{1, 1, 5, 10}, block(2000, 3000)...), true},
		{"after timestamps", append([]byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10}, block(2000, 3000)...), true},
		{"bytes that came twice", append([]byte{1, 1, 5, 10}, block(100, 200)...), false},
		{"bytes that came twice, and a later block", append(append([]byte{1, 1, 5, 18}, block(100, 200)...), block(2000, 3000)...), true},
		{"an option that is too long", []byte{5, 18, 0, 0, 8, 0, 0, 0, 9, 0}, false},
		{"an option without a length", []byte{1, 1, 1, 5}, false},
		{"an option of length 0", []byte{5, 0, 0, 0}, false},
		{"the end of the list", append([]byte{0, 0, 5, 10}, block(2000, 3000)...), false},
	} {
		data := make([]byte, 20, 60)
		binary.BigEndian.PutUint32(data[8:], 1000)
		data = append(data, c.options...)
		for len(data)%4 != 0 {
			data = append(data, 0)
		}
		data[12] = byte(len(data) / 4 << 4)
		var s link.TCP
		if !s.Decode(data, len(data), 0) || s.ReportsGap() != c.want {
			t.Errorf("%s: %t, want %t", c.name, s.ReportsGap(), c.want)
		}
	}
}
