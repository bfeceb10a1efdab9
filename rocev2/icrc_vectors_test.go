package rocev2_test

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/rocev2"
)

// icrcVectors lists packets with ICRCs that were computed outside of this project. Only the packets
// from the captures in testdata, which the Linux rxe driver sent, cover RoCEv2 over IPv6.
var icrcVectors = []struct {
	name, source string
	packet       string // from the first header that the ICRC covers to the ICRC
}{
	{
		"RoCEv2 over IPv4, CNP of a ConnectX-4 Lx",
		"scapy, test/contrib/roce.uts, \"RoCE CNP captured on ConnectX-4 Lx\"",
		`45c2 003c 718c 4000 4011 9161 0a00 1101 0a00 1201  0000 12b7 0028 0000
		 8100 ffff 4000 0118 0000 0000  0000 0000 0000 0000 0000 0000 0000 0000  82fd 002a`,
	},
	{
		"RoCEv2 over IPv4, UC SEND Only",
		"scapy, test/contrib/roce.uts, \"RoCE layer\"",
		`4501 0040 0478 4000 4011 b4d5 c0a8 0007 c0a8 0007  c000 12b7 002c aca2
		 2460 ffff 0000 00d3 00cf 1710  4630 818b e289 35d9 0e9a 9550 5401 be88 5e50 0000  78f3 53f3`,
	},
	{
		"RoCEv1, RC RDMA WRITE Only of a Mellanox adapter",
		"scapy, test/contrib/roce.uts, \"RoCE v1 RC RDMA WRITE ONLY\"",
		`6020 0000 0028 1b40  0000 0000 0000 0000 0000 ffff 0f00 0002  0000 0000 0000 0000 0000 ffff 0f00 0002
		 0a70 ffff 0000 010a 80a7 88bc  0000 55d4 c072 6000 0000 47b3 0000 0005  0000 0000 0100 0000  e3d8 56bb`,
	},
	{
		"RoCEv1, RC Acknowledge of a Mellanox adapter",
		"scapy, test/contrib/roce.uts, \"RoCE v1 RC ACKNOWLEDGE\"",
		`6020 0000 0014 1b40  0000 0000 0000 0000 0000 ffff 0f00 0002  0000 0000 0000 0000 0000 ffff 0f00 0002
		 1140 ffff 0000 0109 00a7 88c0  0000 0005  25f0 c038`,
	},
	{
		"native InfiniBand without a GRH, RC RDMA WRITE Only",
		"IBTA volume 1, section 7.8, sample packet with ICRC 0x9625B75A; quoted on linux-rdma on 2025-01-29, message 20250129211651.GE2120662@ziepe.ca",
		`7012 375c 000e 17d2
		 0a20 2487 0087 b1b3 000d ec2a  0171 0a1c 015d 4002 38f2 7a05 0000 000e  bb88 4d85 fd5c fba4 728b c069 0ed4 0000  9625 b75a`,
	},
}

// TestICRCVectors compares the ICRCs with values from outside of this project.
//
// A packet with a GRH on a native link is checked with the ICRC of the same GRH and transport in
// RoCEv1: IBTA volume 1, section 7.8.1, excludes the whole LRH from the ICRC of a packet with a GRH
// and replaces it with ones, and annex A16 puts these eight bytes of ones before the GRH of RoCEv1,
// so that both links have the same ICRC.
func TestICRCVectors(t *testing.T) {
	for _, v := range icrcVectors {
		t.Run(v.name, func(t *testing.T) {
			packet, err := hex.DecodeString(strings.Join(strings.Fields(v.packet), ""))
			if err != nil {
				t.Fatal(err)
			}
			end := len(packet) - rocev2.ICRCLen
			want, covered := binary.LittleEndian.Uint32(packet[end:]), packet[:end]
			var c rocev2.ICRC
			check := func(what string, got uint32, ok bool) {
				if !ok || got != want {
					t.Errorf("%s: ICRC 0x%08x, %v, want 0x%08x (%s)", what, got, ok, want, v.source)
				}
			}
			switch {
			case strings.HasPrefix(v.name, "RoCEv2"):
				got, ok := c.RoCEv2(covered[:20], covered[20:28], covered[28:])
				check("RoCEv2", got, ok)
			case strings.HasPrefix(v.name, "RoCEv1"):
				grh, transport := covered[:rocev2.GRHLen], covered[rocev2.GRHLen:]
				got, ok := c.RoCEv1(grh, transport)
				check("RoCEv1", got, ok)
				for _, lrh := range []string{"0003000200160001", "f5ffffffffffffff", "7013375c001a17d2"} {
					header, _ := hex.DecodeString(lrh)
					got, ok := c.Native(header, grh, transport)
					check("native with LRH "+lrh, got, ok)
				}
				// Routers may change these fields of the GRH, and switches the eight reserved bits of the BTH.
				grh[0], grh[1], grh[2], grh[3], grh[7], transport[4] = 0x6f, 1, 2, 3, 4, 5
				got, ok = c.Native(make([]byte, rocev2.LRHLen), grh, transport)
				check("native after a router", got, ok)
			default:
				lrh, transport := covered[:rocev2.LRHLen], covered[rocev2.LRHLen:]
				for vl := range byte(16) {
					lrh[0] = vl<<4 | lrh[0]&0x0f
					got, ok := c.Native(lrh, nil, transport)
					check("native without a GRH", got, ok)
				}
				lrh[1] ^= 0x10 // the SL is covered if there is no GRH
				if got, _ := c.Native(lrh, nil, transport); got == want {
					t.Errorf("the ICRC of a packet without a GRH does not cover the SL")
				}
			}
		})
	}
}
