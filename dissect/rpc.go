package dissect

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// rpcReader decodes rebuilt Payload streams.
type rpcReader struct {
	header      oncrpc.Header
	call, reply nfs.Message
	buffer      []byte
}

// asked holds the parts of a Call that are needed to decode its Reply.
type asked struct {
	program, version, procedure uint32
	gss                         oncrpc.GSS
	silent                      bool // the Reply has no results of the program, or they cannot be decoded
}

// read decodes the Call and the Reply of a transaction.
func (r *rpcReader) read(t *record.Transaction, call, reply *record.Payload) {
	t.Decoded = record.Decoded{}
	a := r.askedBy(t, call, &t.Decoded.Call)
	if a.silent || reply == nil {
		return
	}
	readable := reply.Data[:reply.Readable()]
	if r.header.Decode(readable) != nil || !r.header.Succeeded() {
		return
	}
	if body, plain := a.gss.Service.Plain(readable[r.header.Length:]); plain {
		r.reply.Reply(a.program, a.version, a.procedure, nfs.NewStream(body, nil))
		t.Decoded.Reply.Message = &r.reply
	} else {
		t.Decoded.Reply.Unread = encrypted(a.gss)
	}
}

// askedBy decodes a Call and returns the parts that its Reply needs. If the Call cannot be
// rebuilt, these come from the transaction, unless RPCSEC_GSS may protect the results.
func (r *rpcReader) askedBy(t *record.Transaction, call *record.Payload, out *record.Half) (a asked) {
	var readable []byte
	if call != nil {
		readable = call.Data[:call.Readable()]
	}
	if r.header.Decode(readable) != nil || r.header.Type != oncrpc.Call {
		switch program, known := t.Program.Get(); {
		case known && t.Credential.Or("") != oncrpc.AuthRPCSECGSS.String():
			a.program, a.version, a.procedure = program, t.Version.Or(0), t.Procedure.Or(0)
		case t.Call == nil && len(t.Operations) > 0: // The results were decoded as those of a COMPOUND.
			a.program, a.version, a.procedure = nfs.ProgramNFS, 4, nfs.ProcedureCompound
		}
		a.silent = nfs.ProgramName(a.program) == ""
		return a
	}
	h := &r.header
	a = asked{program: h.Program, version: h.Version, procedure: h.Procedure}
	a.gss, _ = h.Credential.GSS()
	if a.silent = nfs.ProgramName(a.program) == "" || a.gss.Control(); a.silent {
		return a
	}
	if body, plain := a.gss.Service.Plain(readable[h.Length:]); plain {
		r.call.Call(a.program, a.version, a.procedure, nfs.NewStream(body, nil))
		out.Message = &r.call
	} else {
		out.Unread = encrypted(a.gss)
	}
	return a
}

// encrypted returns the reason why a body cannot be decoded.
func encrypted(g oncrpc.GSS) string {
	return fmt.Sprintf("RPCSEC_GSS with privacy, sequence %d: encrypted", g.Sequence)
}

// record returns the JSON form of decoded arguments and results.
func (r *rpcReader) record(d *record.Decoded) *record.RPC {
	return &record.RPC{Call: r.half(&d.Call, false), Reply: r.half(&d.Reply, true)}
}

// half returns the JSON form of a Call or Reply, or nil if there is none.
func (r *rpcReader) half(h *record.Half, results bool) *record.RPCMessage {
	m, decoded := h.Message.(*nfs.Message)
	if !decoded {
		if h.Unread == "" {
			return nil
		}
		return &record.RPCMessage{Ops: []record.RPCOp{}, Error: record.Some(h.Unread)}
	}
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

// object writes the values of a depth as an object, with the values inside them.
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

// value writes the current value, with the values inside it.
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
