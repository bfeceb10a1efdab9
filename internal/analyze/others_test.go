package analyze

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestUnopened checks the sentences about packets that may hide RDMA or RPC, and what is listed of a capture without RDMA.
func TestUnopened(t *testing.T) {
	s := &record.Summary{OtherProtocols: []record.OtherProtocol{
		{Protocol: "GRE with protocol 0x8949", Packets: 1204, First: 3, Tunnel: true},
		{Protocol: "VXLAN on UDP port 8473", Packets: 1, Tunnel: true, Port: record.Some[uint16](8473)},
		{Protocol: "ARP", Packets: 4},
		{Protocol: record.RPCWithTLS, Packets: 3, First: 9},
	}}
	want := []string{
		"1204 packets of GRE with protocol 0x8949, which rdmadump does not decode, may carry RDMA",
		"1 packet of VXLAN on UDP port 8473 may carry RDMA; --decode-as udp.port==8473,vxlan opens them",
	}
	if got := Unopened(s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Contents(s), "1204 packets of GRE with protocol 0x8949, which rdmadump does not decode, 1 of VXLAN on UDP port 8473 (--decode-as udp.port==8473,vxlan), 4 of ARP, and others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.OtherProtocols = []record.OtherProtocol{{Protocol: record.RPCWithTLS, Packets: 40, First: 9}, {Protocol: "UD datagrams", Packets: 2}, {Protocol: "ARP", Packets: 1}}
	want = []string{
		"40 packets of RPC with TLS (RFC 9289), encrypted from packet 9 on, so that nothing is known about its RPCs",
		"2 UD datagrams besides connection management, which only the list of packets shows",
	}
	if got := Unopened(s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
