package ports

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// TestPorts: the registered ports carry RPC, and those that the user and rpcbind named, with their protocol. The user may also say
// that a port does not.
func TestPorts(t *testing.T) {
	p := New([]Port{{RPC: true, Number: 4000}, {UDP: true, RPC: true, Number: 4001}, {Number: 2049}, {UDP: true, Number: 111}})
	for _, m := range []nfs.Mapping{
		{Protocol: "tcp", Port: 65535}, {Protocol: "udp", Port: 64}, {Protocol: "tcp", Port: 0}, {Protocol: "rdma", Port: 20049}, {Protocol: "tcp", Port: 2049},
	} {
		p.Learn(m)
	}
	const unknown, rpc, other = rdma.UnknownPort, rdma.RPCPort, rdma.OtherPort
	for port, want := range map[uint16][2]rdma.PortKind{
		111: {rpc, other}, 2049: {other, rpc}, 20048: {rpc, rpc}, 4000: {rpc, unknown}, 4001: {unknown, rpc},
		65535: {rpc, unknown}, 64: {unknown, rpc}, 0: {unknown, unknown}, 20049: {unknown, unknown}, 47: {unknown, unknown}, 4064: {unknown, unknown},
	} {
		for i, udp := range []bool{false, true} {
			if got := p.RPCPort(udp, port); got != want[i] {
				t.Errorf("port %d, UDP %t: %d, want %d", port, udp, got, want[i])
			}
		}
	}
}
