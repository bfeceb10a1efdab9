package describe

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// What a tree has below the RPC header when it is asked for: credentials,
// arguments and results. A Send that takes several packets is described where it
// begins, as far as its first packet goes, and where it ends, all of it.

// maxValues bounds the values of one message in a tree.
const maxValues = 1 << 14

// piece is what a packet, or FPDU, has of a Send.
type piece struct {
	data        []byte // what is at hand of it
	at          int    // where that stands in the frame, -1 for not in one piece
	before      int64  // bytes of the Send before it; of InfiniBand only the end of the Send tells
	size        int    // bytes that it had on the wire
	first, last bool
	suffix      string // of the names of objects
}

// text is a message that is read: data, of which byte i stands at base+i of the
// frame when it is not before from.
type text struct {
	data       []byte
	base, from int
	why        string // why the message may not be whole; empty when it is
	asked      Asked  // of a Reply
	first      bool   // it is its beginning that the packet has
	suffix     string
}

// behind is the text without its first n bytes.
func (t text) behind(n int) text {
	t.data, t.from, t.base = t.data[n:], t.from-n, t.base+n
	return t
}

// offset is where byte i stands in the frame, -1 for nowhere.
func (t *text) offset(i int) int {
	if i < t.from {
		return -1
	}
	return t.base + i
}

// describeSend adds what a piece of a Send says.
func (d *Describer) describeSend(p *packet, s piece) {
	if s.last {
		for i := range d.in.Said {
			said := &d.in.Said[i]
			before := said.Length - int64(s.size)
			if before < 0 || before > int64(len(said.Data)) || s.first != (before == 0) || !bytes.HasPrefix(said.Data[before:], s.data) {
				continue
			}
			t := text{data: said.Data, base: s.at - int(before), from: int(before), asked: said.Asked, first: s.first, suffix: s.suffix}
			if s.at < 0 {
				t.base, t.from = 0, len(said.Data)
			}
			if int64(len(said.Data)) < said.Length {
				t.why = "the capture does not have all of it"
			}
			said.Length = -1 // it is told
			d.describeText(p, t)
			return
		}
	}
	if !s.first {
		return
	}
	t := text{data: s.data, base: s.at, first: true, suffix: s.suffix}
	if s.at < 0 {
		t.base, t.from = 0, len(s.data)
	}
	switch {
	case !s.last:
		t.why = "in the packets that follow"
	case len(s.data) < s.size:
		t.why = "the capture does not have all of it"
	}
	d.describeText(p, t)
}

// describeText adds what the RPC message in a Send says.
func (d *Describer) describeText(p *packet, t text) {
	h, r := &d.header, &d.rpc
	if h.Decode(t.data) != nil || h.Vers != rpcrdma.Version || h.Proc != rpcrdma.Msg {
		return
	}
	t = t.behind(h.Length)
	if err := r.Decode(t.data); r.Type == oncrpc.Call && t.first {
		d.describeCredential(p, t)
		if err != nil {
			return
		}
	} else if err != nil {
		return
	}
	a := t.asked
	holes := []nfs.Hole{}
	if r.Type == oncrpc.Call {
		gss, _ := r.Credential.GSS()
		a = Asked{true, r.Program, r.Version, r.Procedure, gss.Service, gss.Control()}
	} else if !a.Known {
		a = d.in.Asked(r.XID)
	}
	if !a.Known || a.Control || nfs.ProgramName(a.Program) == "" || r.Type == oncrpc.Reply && !r.Succeeded() {
		return
	}
	head := r.Length
	body := t.behind(head)
	if a.Service != 0 && !d.describeProtection(p, body, a.Service) {
		return
	}
	behind := 0 // of the body, what RPCSEC_GSS put there
	if protected, ok := a.Service.Protected(body.data); ok && protected.Checksum != nil {
		behind = len(body.data) - 4 - int(protected.Length+3)&^3
	}
	plain, _ := a.Service.Plain(body.data)
	head += len(body.data) - len(plain)
	body = t.behind(head)
	if len(d.pool) == len(p.Messages) {
		d.pool = append(d.pool, &nfs.Message{Limit: maxValues})
	}
	m := d.pool[len(p.Messages)]
	if r.Type == oncrpc.Call {
		for i, s := range h.Reads {
			if position := int64(s.Position) - int64(head); position >= 0 && (i == 0 || s.Position != h.Reads[i-1].Position) {
				holes = append(holes, nfs.Hole{Position: position})
			}
		}
		m.Call(a.Program, a.Version, a.Procedure, nfs.NewStream(plain, holes))
	} else {
		for i := range h.WriteEnds {
			holes = append(holes, nfs.Hole{Position: -1, Length: rpcrdma.Length(h.WriteChunk(i))})
		}
		m.Reply(a.Program, a.Version, a.Procedure, nfs.NewStream(plain, holes))
	}
	p.Messages = append(p.Messages, m)
	b := tree{packet: p, m: m, t: body, reply: r.Type == oncrpc.Reply, behind: behind}
	for _, item := range m.Items {
		if item.Reduced {
			b.moved = append(b.moved, moved{item.Position, item.Position - b.out})
			b.out += (item.Length + 3) &^ 3
		}
	}
	b.message()
}

// describeCredential adds the bodies of the credentials that are known.
func (d *Describer) describeCredential(p *packet, t text) {
	c := d.rpc.Credential
	at := t.offset(32) // of the body: behind XID, type, version, program, version, procedure, flavor, length
	word := func(n int) int { return within(at, n) }
	if s, ok := c.Sys(); ok {
		machine := 8 + (len(s.Machine)+3)&^3
		p.open(record.NodeObject, "auth_sys"+t.suffix, "AUTH_SYS credential", at, len(c.Body))
		p.number("stamp", "Stamp", int64(s.Stamp), word(0), 4)
		p.text("machine_name", "Machine name", string(s.Machine), word(4), machine-4)
		p.number("uid", "UID", int64(s.UID), word(machine), 4)
		p.number("gid", "GID", int64(s.GID), word(machine+4), 4)
		p.open(record.NodeList, "gids", "Auxiliary GIDs", word(machine+8), 4+4*len(s.GIDs))
		for i, gid := range s.GIDs {
			p.number("", "GID", int64(gid), word(machine+12+4*i), 4)
		}
		p.closeList()
		p.close()
	}
	if g, ok := c.GSS(); ok {
		p.open(record.NodeObject, "rpcsec_gss"+t.suffix, "RPCSEC_GSS credential", at, len(c.Body))
		p.number("version", "Version", int64(g.Version), word(0), 4)
		p.text("procedure", "Procedure", g.ProcedureName(), word(4), 4)
		p.number("sequence", "Sequence number", int64(g.Sequence), word(8), 4)
		p.text("service", "Service", g.Service.String(), word(12), 4)
		if handle := c.Handle(); handle != nil {
			p.number("handle_bytes", "Handle bytes", int64(len(handle)), word(16), 4+len(handle))
		}
		p.close()
	}
}

// unreadable is why there is nothing below.
const unreadable = "RPCSEC_GSS encrypts arguments and results: only the two ends have the key"

// describeProtection adds what RPCSEC_GSS puts around a body; false when the body
// cannot be read.
func (d *Describer) describeProtection(p *packet, body text, service oncrpc.Service) bool {
	if service == oncrpc.ServiceNone {
		return true
	}
	p.open(record.NodeObject, "gss_body"+body.suffix, "Body protected by RPCSEC_GSS: "+service.String(), body.offset(0), len(body.data))
	defer p.close()
	if service == oncrpc.ServicePrivacy {
		p.text("unreadable", "Unreadable", unreadable, -1, 0)
		return false
	}
	b, ok := service.Protected(body.data)
	if !ok {
		return service != oncrpc.ServiceIntegrity
	}
	p.number("body_bytes", "Bytes", int64(b.Length), body.offset(0), 4)
	p.number("sequence", "Sequence number", int64(b.Sequence), body.offset(4), 4)
	if b.Checksum != nil {
		at := 4 + int(b.Length+3)&^3
		p.number("checksum_bytes", "Checksum bytes", int64(len(b.Checksum)), body.offset(at), 4+len(b.Checksum))
	}
	return true
}

// tree is a message that becomes nodes.
type tree struct {
	*packet
	m      *nfs.Message
	t      text // the body, reduced as it is
	behind int  // bytes of it that are none of the message
	reply  bool
	moved  []moved     // what is not in t, in its order
	out    int64       // bytes of that, rounded up
	values []nfs.Value // of the operation at hand
	at     int         // in values
}

// message adds all of it.
func (t *tree) message() {
	m := t.m
	t.open(record.NodeObject, "nfs"+t.t.suffix, messageLabel(m), t.t.offset(0), max(len(t.t.data)-t.behind, 0))
	if t.reply && m.HasStatus && nfs.IsCompound(m.Program, m.Version, m.Procedure) {
		t.text("status", "Status", nfs.StatusName(4, m.Status), t.t.offset(0), 4)
	}
	before := len(m.Values) // of a COMPOUND itself
	if len(m.Ops) > 0 {
		before = m.Ops[0].First
	}
	t.values, t.at = m.Values[:before], 0
	t.group(0)
	t.open(record.NodeList, "ops", "Operations", -1, 0)
	for i := range m.Ops {
		t.operation(i)
	}
	t.closeList()
	switch {
	case m.Err != nil && t.t.why != "" && errors.Is(m.Err, nfs.ErrTruncated):
		t.packet.text("continues", "Continues", t.t.why, -1, 0)
	case m.Err != nil:
		t.packet.text("error", "Error", m.Err.Error(), -1, 0)
	}
	if m.Dropped > 0 {
		t.number("dropped", "Values that are not shown", int64(m.Dropped), -1, 0)
	}
	t.close()
}

// messageLabel is what a message is: "NFS4 COMPOUND arguments".
func messageLabel(m *nfs.Message) string {
	name := m.Name
	if name == "" {
		name = "procedure " + strconv.FormatUint(uint64(m.Procedure), 10)
	}
	return fmt.Sprintf("%s%d %s", nfs.ProgramName(m.Program), m.Version, name)
}

// operation adds one operation.
func (t *tree) operation(i int) {
	o := &t.m.Ops[i]
	from, to := t.place(o.At), t.place(o.End)
	t.open(record.NodeObject, "", o.Name, t.t.offset(from), to-from)
	t.packet.text("name", "", o.Name, -1, 0)
	compound := nfs.IsCompound(t.m.Program, t.m.Version, t.m.Procedure)
	at := from
	if compound {
		t.number("opcode", "Number", int64(o.Number), t.t.offset(at), 4)
		at += 4
	}
	label := "Arguments"
	if t.reply {
		label = "Results"
	}
	if t.reply && o.HasStatus {
		t.packet.text("status", "Status", t.m.StatusName(i), t.t.offset(at), 4)
		at += 4
	}
	t.values, t.at = t.m.In(i), 0
	if len(t.values) == 0 {
		label = ""
	}
	t.open(record.NodeObject, "fields", label, t.t.offset(at), to-at)
	t.group(0)
	t.close()
	t.close()
}

// moved is a data item that travelled in a chunk: where it would stand in the
// unreduced stream, and where that is in the reduced one.
type moved struct{ from, to int64 }

// place is where something stands in the reduced stream that stands at an offset
// of the unreduced one.
func (t *tree) place(at int64) int {
	n, _ := slices.BinarySearchFunc(t.moved, at, func(m moved, at int64) int { return cmp.Compare(m.from, at) })
	switch {
	case n == 0:
		return int(at)
	case n == len(t.moved):
		return int(at - t.out)
	}
	return int(at - (t.moved[n].from - t.moved[n].to))
}

// group adds the values of a depth, and what is in them.
func (t *tree) group(depth uint8) {
	for t.at < len(t.values) && t.values[t.at].Depth >= depth {
		t.value(nfs.Key(t.values, t.at))
	}
}

// value adds the value at hand, with all that is in it.
func (t *tree) value(key string) {
	v := &t.values[t.at]
	from, to := t.place(v.At), t.place(v.At+v.Len)
	offset, length := t.t.offset(from), to-from
	label := key
	if key == "" {
		label = v.Name
	}
	t.at++
	switch v.Kind {
	case nfs.Group:
		t.open(record.NodeObject, key, label, offset, length)
		t.group(v.Depth + 1)
		t.close()
	case nfs.List:
		t.open(record.NodeList, key, label, offset, length)
		for t.at < len(t.values) && t.values[t.at].Depth > v.Depth {
			t.value("")
		}
		t.closeList()
	default:
		t.add(record.Node{
			Kind: record.NodeValue, Name: key, Label: label, Offset: offset, Length: length, Text: valueText(v), Data: v.AppendJSON(nil),
		})
	}
}

// valueText is a value for people: with its number where it has a name, and of
// what travelled in a chunk, that it did.
func valueText(v *nfs.Value) string {
	switch v.Kind {
	case nfs.Enum:
		if v.Text != "" {
			return v.Text + " (" + strconv.FormatUint(v.Uint, 10) + ")"
		}
	case nfs.Flags:
		if v.Uint != 0 {
			return v.String() + " (" + string(field.AppendHex(nil, v.Uint, int(v.Len)*2)) + ")"
		}
	case nfs.String, nfs.Data, nfs.Opaque, nfs.Handle:
		if v.Bytes == nil && v.Uint > 0 {
			return v.String() + ", in a chunk"
		}
	}
	return v.String()
}
