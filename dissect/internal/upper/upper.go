// Package upper recognizes which protocol uses a connection: by the service that its client connected to, by the private
// data of its handshake, or by its messages. It follows none of them.
package upper

import (
	"cmp"
	"errors"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The protocols that others follow, as they are named in records.
const (
	RPCRDMA = "rpcrdma"
	RPC     = "rpc" // over TCP or UDP
)

// unknown is the name of a protocol that was not recognized.
const unknown = "unknown"

// Protocols has the storage that the recognition of all connections shares.
type Protocols struct {
	header rpcrdma.Header
	rpc    oncrpc.Header
}

// protocol is what shows that a connection carries a protocol.
type protocol struct {
	name    string
	ports   []uint16                                           // of its service IDs in the TCP space (IANA's service names)
	service func(id uint64) bool                               // nil if it has no other service IDs
	private func(data []byte) bool                             // private data of a handshake; nil if it shows nothing
	message func(p *Protocols, data []byte, length int64) bool // a Send of a length, of which data was captured; nil if it shows nothing
}

var protocols = [...]protocol{
	{name: RPCRDMA, ports: []uint16{20049}, private: isPrivateData, message: (*Protocols).isRPCRDMA},
	{name: "nvme", ports: []uint16{4420}},
	{name: "iser", ports: []uint16{3260}},
	{name: "smbdirect", ports: []uint16{5445, 445}},
	{name: "rping", ports: []uint16{7174}},
	{name: "perftest", ports: []uint16{18515}},
	{name: "ipoib", service: rocev2.IsIPoIB}, // the connected mode of IP over InfiniBand
}

// ServerPort reports whether a port is that of a known protocol.
func ServerPort(port uint16) bool { return byPort(port) != "" }

// byPort returns the protocol of a port, an empty name if it is not known.
func byPort(port uint16) string {
	for i := range protocols {
		if slices.Contains(protocols[i].ports, port) {
			return protocols[i].name
		}
	}
	return ""
}

// state is how far the recognition of a connection is.
type state uint8

const (
	searching state = iota // the next message may show the protocol
	recognized
	stopped // too many messages showed nothing; private data may still show the protocol
)

// Recognizer recognizes the protocol of one connection.
type Recognizer struct {
	of     *Protocols
	name   string // empty unless the protocol is recognized
	state  state
	isRPC  bool
	others int32 // messages that showed nothing
}

// New returns the recognizer of a connection.
func (p *Protocols) New() Recognizer { return Recognizer{of: p} }

// Name returns the name of the protocol in records.
func (r *Recognizer) Name() string { return cmp.Or(r.name, unknown) }

// Is reports whether a protocol is that of the connection.
func (r *Recognizer) Is(name string) bool { return r.name == name }

// IsRPC reports whether the connection carries RPC, over RDMA or without it.
func (r *Recognizer) IsRPC() bool { return r.isRPC }

// Searches reports whether the next message may show the protocol.
func (r *Recognizer) Searches() bool { return r.state == searching }

// Unread reports whether there were messages that showed nothing, which may have been some of the protocol.
func (r *Recognizer) Unread() bool { return r.others > 0 }

// found sets the protocol.
func (r *Recognizer) found(name string) bool {
	r.name, r.state, r.isRPC = name, recognized, name == RPCRDMA || name == RPC
	return true
}

// Service takes what is known of the service, unless the protocol is known: plain is set if RPC was recognized without RDMA,
// port is that of the TCP space, 0 if there is none. It reports whether that shows the protocol.
func (r *Recognizer) Service(plain bool, port uint16, service record.Opt[record.Hex64]) bool {
	if r.state != searching {
		return false
	}
	if plain {
		return r.found(RPC)
	}
	if id, known := service.Get(); known {
		for i := range protocols {
			if p := &protocols[i]; p.service != nil && p.service(uint64(id)) {
				return r.found(p.name)
			}
		}
	}
	if name := byPort(port); name != "" {
		return r.found(name)
	}
	return false
}

// Private takes the private data of a handshake, unless the protocol is known. It reports whether that shows the protocol.
func (r *Recognizer) Private(data []byte) bool {
	if r.state == recognized {
		return false
	}
	for i := range protocols {
		if p := &protocols[i]; p.private != nil && p.private(data) {
			return r.found(p.name)
		}
	}
	return false
}

// most is the number of messages without a known protocol after which those of a connection are no longer looked at.
const most = 64

// Message takes a Send of a length, of which data was captured, while it searches. It reports whether the search is over.
func (r *Recognizer) Message(data []byte, length int64) bool {
	for i := range protocols {
		if p := &protocols[i]; p.message != nil && p.message(r.of, data, length) {
			return r.found(p.name)
		}
	}
	if r.others++; r.others < most {
		return false
	}
	r.state = stopped
	return true
}

// Join takes over what another connection, which became a part of this one, has shown. It reports whether that shows the
// protocol. What carries RPC for one direction does so for both.
func (r *Recognizer) Join(o *Recognizer) bool {
	r.others += o.others
	switch {
	case o.isRPC && !r.isRPC:
		return r.found(RPCRDMA)
	case r.name == "" && o.name != "":
		return r.found(o.name)
	}
	return false
}

// isPrivateData reports whether data has the private data of RPC-over-RDMA (RFC 8797).
func isPrivateData(data []byte) bool {
	_, found, _ := rpcrdma.FindPrivateData(data)
	return found
}

// isRPCRDMA reports whether a Send is an RPC-over-RDMA message. It is strict: it checks every word that can be wrong.
func (p *Protocols) isRPCRDMA(data []byte, length int64) bool {
	h, rpc := &p.header, &p.rpc
	if h.Decode(data) != nil || h.Vers != rpcrdma.Version || h.XID == 0 || h.Credits > 1<<16 {
		return false
	}
	switch h.Proc {
	case rpcrdma.Msg:
		err := rpc.Decode(data[h.Length:])
		if err != nil && !(errors.Is(err, oncrpc.ErrTruncated) && int64(len(data)) < length) || rpc.Length < 12 || rpc.XID != h.XID {
			return false
		}
		return rpc.Type == oncrpc.Reply || rpc.RPCVersion == 2
	case rpcrdma.NoMsg:
		return h.HasChunks() && length == int64(h.Length)
	case rpcrdma.Error:
		return length == int64(h.Length)
	}
	return false
}
