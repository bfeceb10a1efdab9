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

// portSet is a set of ports.
type portSet [1 << 16 / 64]uint64

func (s *portSet) add(port uint16)      { s[port/64] |= 1 << (port % 64) }
func (s *portSet) has(port uint16) bool { return s[port/64]>>(port%64)&1 != 0 }

// Ports are the known ports, of TCP and of UDP.
type Ports struct{ rpc, other [2]portSet }

// New returns the registered ports, and those that the user named.
func New(named []Port) *Ports {
	p := new(Ports)
	for _, port := range registered {
		p.rpc[0].add(port)
		p.rpc[1].add(port)
	}
	for _, n := range named {
		if n.RPC {
			p.rpc[protocol(n.UDP)].add(n.Number)
		} else {
			p.other[protocol(n.UDP)].add(n.Number)
		}
	}
	return p
}

// protocol returns the index of TCP or UDP.
func protocol(udp bool) int {
	if udp {
		return 1
	}
	return 0
}

// RPCPort returns what a TCP or UDP port is used for.
func (p *Ports) RPCPort(udp bool, port uint16) rdma.PortKind {
	switch at := protocol(udp); {
	case p.other[at].has(port):
		return rdma.OtherPort
	case p.rpc[at].has(port):
		return rdma.RPCPort
	}
	return rdma.UnknownPort
}

// Learn notes that a port is one of an RPC server.
func (p *Ports) Learn(m nfs.Mapping) {
	if m.Port == 0 || !m.TCP() && !m.UDP() {
		return
	}
	p.rpc[protocol(m.UDP())].add(m.Port)
}
