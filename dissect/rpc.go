package dissect

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// rpcReader makes records of rebuilt Payload streams.
type rpcReader struct {
	header  oncrpc.Header
	message nfs.Message
	buffer  []byte
}

// read reads both halves of a transaction.
func (r *rpcReader) read(call, reply *record.Payload) *record.RPC {
	out := &record.RPC{}
	if call == nil {
		return out
	}
	readable := call.Data[:call.Readable()]
	if r.header.Decode(readable) != nil || r.header.Type != oncrpc.Call {
		return out
	}
	program, version, procedure := r.header.Program, r.header.Version, r.header.Procedure
	if nfs.ProgramName(program) == "" {
		return out
	}
	gss, protected := r.header.Credential.GSS()
	secret := &record.RPCMessage{Ops: []record.RPCOp{}, Error: record.Some(fmt.Sprintf("RPCSEC_GSS with privacy, sequence %d: encrypted", gss.Sequence))}
	switch body, plain := gss.Service.Plain(readable[r.header.Length:]); {
	case protected && gss.Procedure != 0: // the context is made or ended: no arguments of the program
	case !plain:
		out.Call = secret
	default:
		r.message.Call(program, version, procedure, nfs.NewStream(body, nil))
		out.Call = r.half(false)
	}
	if reply == nil || protected && gss.Procedure != 0 {
		return out
	}
	readable = reply.Data[:reply.Readable()]
	if r.header.Decode(readable) != nil || !r.header.Succeeded() {
		return out
	}
	body, plain := gss.Service.Plain(readable[r.header.Length:])
	if !plain {
		out.Reply = secret
		return out
	}
	r.message.Reply(program, version, procedure, nfs.NewStream(body, nil))
	out.Reply = r.half(true)
	return out
}

// half is the message at hand.
func (r *rpcReader) half(results bool) *record.RPCMessage {
	m := &r.message
	out := &record.RPCMessage{Ops: make([]record.RPCOp, len(m.Ops))}
	if m.Err != nil {
		out.Error = record.Some(m.Err.Error())
	}
	for i := range m.Ops {
		o := &out.Ops[i]
		o.Name = strings.Clone(m.Ops[i].Name)
		if results && m.Ops[i].HasStatus {
			o.Status = record.Some(m.StatusName(i))
		}
		w := fieldWriter{values: m.In(i), out: r.buffer[:0]}
		w.object(0)
		o.Fields = record.NewRPCFields(w.out)
		r.buffer = w.out
	}
	return out
}

// fieldWriter writes values as JSON.
type fieldWriter struct {
	values []nfs.Value
	at     int
	out    []byte
}

// object writes the values of a depth, and what is in them.
func (w *fieldWriter) object(depth uint8) {
	w.out = append(w.out, '{')
	for first := true; w.at < len(w.values) && w.values[w.at].Depth >= depth; first = false {
		if !first {
			w.out = append(w.out, ',')
		}
		w.out = append(append(append(w.out, '"'), nfs.Key(w.values, w.at)...), '"', ':')
		w.value()
	}
	w.out = append(w.out, '}')
}

// value writes the value at hand, with all that is in it.
func (w *fieldWriter) value() {
	v := &w.values[w.at]
	w.at++
	switch v.Kind {
	case nfs.Group:
		w.object(v.Depth + 1)
	case nfs.List:
		w.out = append(w.out, '[')
		for first := true; w.at < len(w.values) && w.values[w.at].Depth > v.Depth; first = false {
			if !first {
				w.out = append(w.out, ',')
			}
			w.value()
		}
		w.out = append(w.out, ']')
	default:
		w.out = v.AppendJSON(w.out)
	}
}
