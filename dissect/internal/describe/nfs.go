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

// This file adds the parts of a tree below the RPC header: credentials, arguments and results. A
// Send of several packets is described twice: in its first packet, as far as that packet goes, and
// completely in its last packet.

// maxValues is the maximum number of values of one message in a tree.
const maxValues = 1 << 14

// sendPart is the part of a Send in one packet or FPDU.
type sendPart struct {
	data []byte // the captured bytes
	at   int    // offset of data in the frame, -1 if data is not contiguous there
	// bytes of the Send before this part; for InfiniBand it is known only when the Send is complete
	before      int64
	size        int // bytes on the wire
	first, last bool
	plain       bool   // the Send is an RPC message without an RPC-over-RDMA header
	suffix      string // suffix for the names of objects
}

// rpcMessage is a message that is decoded. Byte i of data is at offset base+i of the frame, unless i is
// less than from.
type rpcMessage struct {
	data       []byte
	base, from int
	why        string // why the message may be incomplete; empty if it is complete
	asked      Asked  // the Call that the message answers, if it is a Reply
	first      bool   // the packet contains the first bytes of the message
	plain      bool   // data begins with the RPC header
	suffix     string
}

// after returns t without its first n bytes.
func (t rpcMessage) after(n int) rpcMessage {
	t.data, t.from, t.base = t.data[n:], t.from-n, t.base+n
	return t
}

// offset returns the offset of byte i in the frame, -1 if the frame does not contain it.
func (t *rpcMessage) offset(i int) int {
	if i < t.from {
		return -1
	}
	return t.base + i
}

// describeSend adds the RPC message of a Send.
func (d *Describer) describeSend(p *packet, s sendPart) {
	if s.last {
		for i := range d.in.Said {
			said := &d.in.Said[i]
			before := said.Length - int64(s.size)
			if before < 0 || before > int64(len(said.Data)) || s.first != (before == 0) || !bytes.HasPrefix(said.Data[before:], s.data) {
				continue
			}
			t := rpcMessage{data: said.Data, base: s.at - int(before), from: int(before), asked: said.Asked, first: s.first, plain: s.plain, suffix: s.suffix}
			if s.at < 0 {
				t.base, t.from = 0, len(said.Data)
			}
			if int64(len(said.Data)) < said.Length {
				t.why = "the capture does not contain the whole message"
			}
			said.Length = -1 // so that the Send is described once
			d.describeMessage(p, t)
			return
		}
	}
	if !s.first {
		return
	}
	t := rpcMessage{data: s.data, base: s.at, first: true, plain: s.plain, suffix: s.suffix}
	if s.at < 0 {
		t.base, t.from = 0, len(s.data)
	}
	switch {
	case !s.last:
		t.why = "the message continues in the following packets"
	case len(s.data) < s.size:
		t.why = "the capture does not contain the whole message"
	}
	d.describeMessage(p, t)
}

// describeMessage adds the credential and the body of the RPC message in a Send.
func (d *Describer) describeMessage(p *packet, t rpcMessage) {
	h, r := &d.header, &d.rpc
	if t.plain {
		d.noChunks()
	} else if h.Decode(t.data) != nil || h.Vers != rpcrdma.Version || h.Proc != rpcrdma.Msg {
		return
	}
	t = t.after(h.Length)
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
	body := t.after(head)
	if a.Service != 0 && !d.describeProtection(p, body, a.Service) {
		return
	}
	trailer := 0 // number of bytes at the end of the body that RPCSEC_GSS added
	if protected, ok := a.Service.Protected(body.data); ok && protected.Checksum != nil {
		trailer = len(body.data) - 4 - int(protected.Length+3)&^3
	}
	plain, _ := a.Service.Plain(body.data)
	head += len(body.data) - len(plain)
	body = t.after(head)
	if len(d.pool) == len(p.Messages) {
		d.pool = append(d.pool, &nfs.Message{Limit: maxValues})
	}
	m := d.pool[len(p.Messages)]
	if r.Type == oncrpc.Call {
		before := int64(-1)
		for _, i := range h.ReadOrder {
			if position := int64(h.Reads[i].Position) - int64(head); position > before {
				holes, before = append(holes, nfs.Hole{Position: position}), position
			}
		}
		m.Call(a.Program, a.Version, a.Procedure, nfs.NewStream(plain, holes))
	} else {
		for i := range h.WriteEnds {
			holes = append(holes, nfs.Hole{Position: -1, Length: rpcrdma.Length(h.WriteChunk(i))})
		}
		m.Results(a.Program, a.Version, a.Procedure, plain, holes, t.why == "")
	}
	p.Messages = append(p.Messages, m)
	b := tree{packet: p, m: m, body: body, reply: r.Type == oncrpc.Reply, trailer: trailer}
	for _, item := range m.Items {
		if item.Reduced {
			b.inChunks = append(b.inChunks, chunkItem{item.Position, item.Position - b.out})
			b.out += (item.Length + 3) &^ 3
		}
	}
	b.message()
}

// describeCredential adds the bodies of AUTH_SYS and RPCSEC_GSS credentials.
func (d *Describer) describeCredential(p *packet, t rpcMessage) {
	c := d.rpc.Credential
	// The body of the credential follows XID, type, RPC version, program, version, procedure,
	// flavor and length.
	at := t.offset(32)
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

// unreadable is the reason why encrypted arguments and results are not shown.
const unreadable = "RPCSEC_GSS encrypts arguments and results, and only the two peers have the key"

// describeProtection adds the fields that RPCSEC_GSS adds to a body. It returns false if the body
// cannot be decoded.
func (d *Describer) describeProtection(p *packet, body rpcMessage, service oncrpc.Service) bool {
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

// tree adds a decoded message as nodes.
type tree struct {
	*packet
	m        *nfs.Message
	body     rpcMessage // the body, without the data items in chunks
	trailer  int        // number of bytes at the end of the body that are not part of the message
	reply    bool
	inChunks []chunkItem // data items that are in chunks, in the order of the message
	out      int64       // total length of these items, rounded up to XDR words
	values   []nfs.Value // values of the current operation
	at       int         // index of the next value in values
}

// message adds the whole message.
func (t *tree) message() {
	m := t.m
	t.open(record.NodeObject, "nfs"+t.body.suffix, messageLabel(m), t.body.offset(0), max(len(t.body.data)-t.trailer, 0))
	if t.reply && m.HasStatus && nfs.IsCompound(m.Program, m.Version, m.Procedure) {
		t.text("status", "Status", nfs.StatusName(4, m.Status), t.body.offset(0), 4)
	}
	before := len(m.Values) // number of values of the COMPOUND itself, before its operations
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
	case m.Err != nil && t.body.why != "" && errors.Is(m.Err, nfs.ErrTruncated):
		t.packet.text("continues", "Continues", t.body.why, -1, 0)
	case m.Err != nil:
		t.packet.text("error", "Error", m.Err.Error(), -1, 0)
	}
	if m.Dropped > 0 {
		t.number("dropped", "Values not shown", int64(m.Dropped), -1, 0)
	}
	t.close()
}

// messageLabel returns a description of the message, such as "NFS4 COMPOUND arguments".
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
	t.open(record.NodeObject, "", o.Name, t.body.offset(from), to-from)
	t.packet.text("name", "", o.Name, -1, 0)
	compound := nfs.IsCompound(t.m.Program, t.m.Version, t.m.Procedure)
	at := from
	if compound {
		t.number("opcode", "Number", int64(o.Number), t.body.offset(at), 4)
		at += 4
	}
	label := "Arguments"
	if t.reply {
		label = "Results"
	}
	if t.reply && o.HasStatus {
		t.packet.text("status", "Status", t.m.StatusName(i), t.body.offset(at), 4)
		at += 4
	}
	t.values, t.at = t.m.In(i), 0
	if len(t.values) == 0 {
		label = ""
	}
	t.open(record.NodeObject, "fields", label, t.body.offset(at), to-at)
	t.group(0)
	t.close()
	t.close()
}

// chunkItem is a data item that was transferred in a chunk. The field from is its offset in the
// unreduced stream, and to the offset in the reduced stream at which it is missing.
type chunkItem struct{ from, to int64 }

// place converts an offset of the unreduced stream to an offset of the reduced stream.
func (t *tree) place(at int64) int {
	n, _ := slices.BinarySearchFunc(t.inChunks, at, func(m chunkItem, at int64) int { return cmp.Compare(m.from, at) })
	switch {
	case n == 0:
		return int(at)
	case n == len(t.inChunks):
		return int(at - t.out)
	}
	return int(at - (t.inChunks[n].from - t.inChunks[n].to))
}

// group adds the values of a depth and the values nested in them.
func (t *tree) group(depth uint8) {
	for t.at < len(t.values) && t.values[t.at].Depth >= depth {
		t.value(nfs.Key(t.values, t.at))
	}
}

// value adds the current value and the values nested in it.
func (t *tree) value(key string) {
	v := &t.values[t.at]
	from, to := t.place(v.At), t.place(v.At+v.Len)
	offset, length := t.body.offset(from), to-from
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

// valueText returns the text of a value. It appends the number to a name, and tells if the value was
// transferred in a chunk.
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
