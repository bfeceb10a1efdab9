package scrub

import (
	"bytes"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

// Of management datagrams (MADs), the fields of the connection manager's messages
// are kept, and the common header of all others.

// datagram writes the scrubbed datagram at bytes [at, end) of the frame.
func (w *frame) datagram(at, end int) {
	in := w.in[at:end]
	out := w.out[at:end]
	var m rocev2.MAD
	if len(in) < rocev2.MADLen || in[0] != baseVersion {
		return
	}
	copy(out, in[:rocev2.MADLen])
	m.Class, m.Attribute = in[1], rocev2.CMAttribute(be.Uint16(in[16:]))
	t := header.CM[m.Attribute]
	if m.Class != rocev2.ClassCM || t == nil {
		w.s.Report.Payload += int64(len(in) - rocev2.MADLen)
		return
	}
	in, out = in[rocev2.MADLen:], out[rocev2.MADLen:]
	clear(out[:min(len(out), rocev2.CMSize)]) // bytes that belong to no field
	isIP := m.Attribute == rocev2.CMReq && len(in) >= 16 && be.Uint64(in[8:])>>24 == 1
	for i := range t.Fields {
		f := &t.Fields[i]
		from := f.Bit / 8
		if f.Format == field.Bytes {
			if from < len(in) {
				part := in[from:min(len(in), from+f.Bits/8)]
				w.consumer(out[from:], part, f.Name, isIP)
			}
			continue
		}
		if !f.Whole(in) {
			continue
		}
		switch {
		case f.Format == field.IPv6:
			w.s.key.ip(out[from:], f.Raw(in))
			w.s.Report.Addresses++
		case f.Name == "local_ca_guid":
			copy(out[from:], w.s.key.guid(f.Raw(in)))
			w.s.Report.Addresses++
		default:
			keepBits(out, in, f.Bit, f.Bits)
		}
	}
}

// baseVersion is the only version of the common header (IBTA volume 1, section 13.4.3).
const baseVersion = 1

// keepBits copies n bits from in to out, beginning at a bit.
func keepBits(out, in []byte, bit, n int) {
	for i := bit; i < bit+n; i++ {
		mask := byte(0x80 >> (i % 8))
		out[i/8] = out[i/8]&^mask | in[i/8]&mask
	}
}

// consumer writes the private data or reject information of a message.
func (w *frame) consumer(out, in []byte, name string, isIP bool) {
	if name != "private_data" {
		if !zero(in) {
			copy(out, w.s.key.opaque("reject information", in))
		}
		return
	}
	if isIP && len(in) >= rocev2.IPCMLen {
		copy(out, in[:4])
		for _, at := range []int{4, 20} {
			w.s.Report.Addresses++
			if in[1]>>4 == 4 { // the last four bytes
				clear(out[at : at+12])
				w.s.key.ip(out[at+12:], in[at+12:at+16])
			} else {
				w.s.key.ip(out[at:], in[at:at+16])
			}
		}
		out, in = out[rocev2.IPCMLen:], in[rocev2.IPCMLen:]
	}
	w.s.key.private(out, in)
}

// private writes scrubbed private data. It keeps the message of RFC 8797 and the
// zeros at the end.
func (k *key) private(out, in []byte) {
	last := len(bytes.TrimRight(in, "\x00"))
	copy(out, in)
	copy(out, k.opaque("private data", in[:last]))
	magic := be.AppendUint32(nil, rpcrdma.PrivateDataMagic)
	p, found, err := rpcrdma.FindPrivateData(in)
	at := p.Offset
	if !found && err != nil {
		at, found = bytes.Index(in, magic), true
	}
	if found {
		copy(out[at:], in[at:min(len(in), at+rpcrdma.PrivateDataLen)])
	}
}
