package rocev2

import (
	"fmt"
	mathbits "math/bits"
)

// Opcode is the first byte of a BTH. The top three bits are the transport service, the lower five
// the operation (IBTA volume 1, section 9.2).
type Opcode uint8

// Transport is the transport service of an opcode.
type Transport uint8

// The transport services, encoded in the top three bits of an opcode.
const (
	RC  Transport = 0x00
	UC  Transport = 0x20
	RD  Transport = 0x40
	UD  Transport = 0x60
	CNP Transport = 0x80
	XRC Transport = 0xa0
)

// The operations, encoded in the lower five bits of an opcode.
const (
	OpSendFirst         = 0x00
	OpSendMiddle        = 0x01
	OpSendLast          = 0x02
	OpSendLastImm       = 0x03
	OpSendOnly          = 0x04
	OpSendOnlyImm       = 0x05
	OpWriteFirst        = 0x06
	OpWriteMiddle       = 0x07
	OpWriteLast         = 0x08
	OpWriteLastImm      = 0x09
	OpWriteOnly         = 0x0a
	OpWriteOnlyImm      = 0x0b
	OpReadRequest       = 0x0c
	OpReadResponseFirst = 0x0d
	OpReadResponseMid   = 0x0e
	OpReadResponseLast  = 0x0f
	OpReadResponseOnly  = 0x10
	OpAcknowledge       = 0x11
	OpAtomicAcknowledge = 0x12
	OpCompareSwap       = 0x13
	OpFetchAdd          = 0x14
	OpResync            = 0x15
	OpSendLastInv       = 0x16
	OpSendOnlyInv       = 0x17
	OpFlush             = 0x1c
	OpAtomicWrite       = 0x1d
)

// OpcodeCNP is the opcode of the RoCEv2 congestion notification packet (IBTA annex A17.9.3).
const OpcodeCNP Opcode = 0x81

// Headers is a set of extended headers: those that follow a BTH, or those that a [Packet] holds.
// The order of the bits is the order of the headers on the wire.
type Headers uint16

// The extended headers, one bit each.
const (
	HasRDETH Headers = 1 << iota
	HasDETH
	HasXRCETH
	HasFETH
	HasRETH
	HasAtomicETH
	HasAETH
	HasAtomicAckETH
	HasImmDt
	HasIETH
)

// headerBytes lists the length of each header in bytes, in the order of the bits.
var headerBytes = [...]int{4, 8, 4, 4, 16, 28, 4, 8, 4, 4}

// Len returns the total length of the headers in bytes.
func (h Headers) Len() int {
	n := 0
	for ; h != 0; h &= h - 1 {
		n += h.firstLen()
	}
	return n
}

// firstLen returns the length of the first of the headers in bytes.
func (h Headers) firstLen() int { return headerBytes[mathbits.TrailingZeros16(uint16(h))] }

// Kind is the kind of an operation.
type Kind uint8

// The kinds of operation.
const (
	KindReserved Kind = iota
	KindSend
	KindWrite
	KindReadRequest
	KindReadResponse
	KindAcknowledge
	KindAtomic
	KindAtomicAck
	KindFlush
	KindAtomicWrite
	KindResync
	KindCongestion
)

// OpcodeInfo describes an opcode.
type OpcodeInfo struct {
	Name    string  // name in IBTA volume 1, table 38, such as "RC SEND Only"
	Kind    Kind    // kind of the operation
	Headers Headers // the extended headers that follow the BTH
	HeadLen int     // length of Headers in bytes
	First   bool    // the operation begins with this packet
	Last    bool    // the operation ends with this packet
	Request bool    // sent by the requester, with its own PSN
	Known   bool    // the transport service defines this operation
}

// hasPayload reports whether packets of the operation may have a payload. Only a payload is padded.
func (i *OpcodeInfo) hasPayload() bool {
	switch i.Kind {
	case KindReadRequest, KindAcknowledge, KindAtomic, KindAtomicAck, KindFlush, KindResync:
		return false
	}
	return true
}

// operations describes the operations of RC, from which all opcodes are derived.
var operations = [32]struct {
	name        string
	kind        Kind
	headers     Headers
	first, last bool
	request     bool
}{
	OpSendFirst:         {"SEND First", KindSend, 0, true, false, true},
	OpSendMiddle:        {"SEND Middle", KindSend, 0, false, false, true},
	OpSendLast:          {"SEND Last", KindSend, 0, false, true, true},
	OpSendLastImm:       {"SEND Last with Immediate", KindSend, HasImmDt, false, true, true},
	OpSendOnly:          {"SEND Only", KindSend, 0, true, true, true},
	OpSendOnlyImm:       {"SEND Only with Immediate", KindSend, HasImmDt, true, true, true},
	OpWriteFirst:        {"RDMA WRITE First", KindWrite, HasRETH, true, false, true},
	OpWriteMiddle:       {"RDMA WRITE Middle", KindWrite, 0, false, false, true},
	OpWriteLast:         {"RDMA WRITE Last", KindWrite, 0, false, true, true},
	OpWriteLastImm:      {"RDMA WRITE Last with Immediate", KindWrite, HasImmDt, false, true, true},
	OpWriteOnly:         {"RDMA WRITE Only", KindWrite, HasRETH, true, true, true},
	OpWriteOnlyImm:      {"RDMA WRITE Only with Immediate", KindWrite, HasRETH | HasImmDt, true, true, true},
	OpReadRequest:       {"RDMA READ Request", KindReadRequest, HasRETH, true, true, true},
	OpReadResponseFirst: {"RDMA READ Response First", KindReadResponse, HasAETH, true, false, false},
	OpReadResponseMid:   {"RDMA READ Response Middle", KindReadResponse, 0, false, false, false},
	OpReadResponseLast:  {"RDMA READ Response Last", KindReadResponse, HasAETH, false, true, false},
	OpReadResponseOnly:  {"RDMA READ Response Only", KindReadResponse, HasAETH, true, true, false},
	OpAcknowledge:       {"Acknowledge", KindAcknowledge, HasAETH, true, true, false},
	OpAtomicAcknowledge: {"ATOMIC Acknowledge", KindAtomicAck, HasAETH | HasAtomicAckETH, true, true, false},
	OpCompareSwap:       {"CmpSwap", KindAtomic, HasAtomicETH, true, true, true},
	OpFetchAdd:          {"FetchAdd", KindAtomic, HasAtomicETH, true, true, true},
	OpResync:            {"RESYNC", KindResync, 0, true, true, true},
	OpSendLastInv:       {"SEND Last with Invalidate", KindSend, HasIETH, false, true, true},
	OpSendOnlyInv:       {"SEND Only with Invalidate", KindSend, HasIETH, true, true, true},
	OpFlush:             {"FLUSH", KindFlush, HasFETH | HasRETH, true, true, true},
	OpAtomicWrite:       {"ATOMIC WRITE", KindAtomicWrite, HasRETH, true, true, true},
}

// transports describes how each transport service differs from RC: its name, the operations that it
// supports (one bit each), and the headers that precede those of RC.
var transports = [8]struct {
	name               string
	operations         uint32
	requests, everyone Headers
}{
	RC >> 5:  {"RC", 0x30df_ffff, 0, 0},
	UC >> 5:  {"UC", 0x0000_0fff, 0, 0},
	RD >> 5:  {"RD", 0x003f_ffff, HasDETH, HasRDETH},
	UD >> 5:  {"UD", 0x0000_0030, HasDETH, 0},
	XRC >> 5: {"XRC", 0x30df_ffff, HasXRCETH, 0},
}

// opcodes is computed once, so that looking up an opcode is one array access.
var opcodes = func() (table [256]OpcodeInfo) {
	for i := range table {
		op, service := operations[i&0x1f], transports[i>>5]
		info := &table[i]
		if service.operations>>(i&0x1f)&1 == 0 || op.name == "" {
			info.Name = fmt.Sprintf("reserved (0x%02x)", i)
			continue
		}
		*info = OpcodeInfo{
			Name: service.name + " " + op.name, Kind: op.kind, Headers: op.headers | service.everyone,
			First: op.first, Last: op.last, Request: op.request, Known: true,
		}
		if op.request {
			info.Headers |= service.requests
		}
		info.HeadLen = info.Headers.Len()
	}
	table[OpcodeCNP] = OpcodeInfo{Name: "CNP", Kind: KindCongestion, First: true, Last: true, Known: true}
	return table
}()

// Info returns the description of the opcode. If no transport service defines the opcode, Known is
// false and there are no headers.
func (o Opcode) Info() *OpcodeInfo { return &opcodes[o] }

// Transport returns the transport service of the opcode.
func (o Opcode) Transport() Transport { return Transport(o & 0xe0) }

// Operation returns the lower five bits, one of the Op constants.
func (o Opcode) Operation() uint8 { return uint8(o & 0x1f) }

// String returns the name of the opcode, such as "RC SEND Only".
func (o Opcode) String() string { return opcodes[o].Name }

// String returns the name of the service, such as "RC".
func (t Transport) String() string {
	if t == CNP {
		return "CNP"
	}
	if name := transports[t>>5].name; name != "" {
		return name
	}
	return fmt.Sprintf("reserved (0x%02x)", uint8(t))
}
