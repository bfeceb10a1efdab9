// Package ports knows which TCP and UDP ports carry RPC.
package ports

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// The ports of RPC servers: those that are registered, those that rpcbind named in its
// answers, and those that the user named.

// Port is what the user said about a port.
type Port struct {
	UDP, RPC bool // RPC is false if the port does not carry RPC
	Number   uint16
}

// registered are the ports of rpcbind, NFS and mountd. Other programs have different
// ports on each server.
var registered = [...]uint16{111, 2049, 20048}

// Ports is what is known of each port of TCP, and of UDP.
type Ports [2][1 << 16]rdma.PortKind

// New returns the registered ports, and those that the user named.
func New(named []Port) *Ports {
	p := new(Ports)
	for _, port := range registered {
		p.carriesRPC(false, port)
		p.carriesRPC(true, port)
	}
	for _, n := range named {
		if n.RPC {
			p.carriesRPC(n.UDP, n.Number)
		} else {
			*p.of(n.UDP, n.Number) = rdma.OtherPort
		}
	}
	return p
}

// of returns what is known of a port.
func (p *Ports) of(udp bool, port uint16) *rdma.PortKind {
	if udp {
		return &p[1][port]
	}
	return &p[0][port]
}

// carriesRPC notes that a port carries RPC, unless the user said that it does not.
func (p *Ports) carriesRPC(udp bool, port uint16) {
	if kind := p.of(udp, port); *kind != rdma.OtherPort {
		*kind = rdma.RPCPort
	}
}

// RPCPort returns what a TCP or UDP port is used for.
func (p *Ports) RPCPort(udp bool, port uint16) rdma.PortKind { return *p.of(udp, port) }

// Learn notes that a port is one of an RPC server.
func (p *Ports) Learn(m nfs.Mapping) {
	if m.Port != 0 && (m.TCP() || m.UDP()) {
		p.carriesRPC(m.UDP(), m.Port)
	}
}
