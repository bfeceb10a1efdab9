// Package render draws records as tables, trees and diagrams for people, and as JSON lines
// for programs. It only words and draws what the records contain: it draws no conclusions.
package render

import (
	"strconv"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// AppendPacketJSON appends a packet record as one line of JSON. The headers below the RDMA
// transport are included only if all is set. It does not use AppendJSON, because the members
// of a packet depend on tables of headers.
func AppendPacketJSON(b []byte, p *record.Packet, all bool) []byte {
	b = append(b, `{"type":"packet","number":`...)
	b = strconv.AppendInt(b, p.Number, 10)
	b = append(b, `,"time":"`...)
	b, _ = p.Time.AppendText(b)
	b = append(b, `","length":`...)
	b = strconv.AppendInt(b, int64(p.Length), 10)
	b = append(b, `,"captured":`...)
	b = strconv.AppendInt(b, int64(p.Captured), 10)
	b = appendAddress(append(b, `,"src":`...), p.AppendSource)
	b = appendAddress(append(b, `,"dst":`...), p.AppendDestination)
	if src, dst := p.Names(); src+dst != "" {
		b = orNull(append(b, `,"src_name":`...), src)
		b = orNull(append(b, `,"dst_name":`...), dst)
	}
	b = append(b, `,"transport":`...)
	b = orNull(b, p.Transport)
	b = append(b, `,"connection":`...)
	if connection, known := p.Connection.Get(); known {
		b = strconv.AppendInt(b, int64(connection), 10)
	} else {
		b = append(b, "null"...)
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; all || n.Table == nil || !n.Table.Link {
			b = appendNode(b, n)
		}
	}
	b = appendContext(b, p)
	b = append(b, `,"icrc":"`...)
	b = append(b, p.ICRC...)
	b = append(b, `","summary":`...)
	b = field.AppendJSON(b, p.Summary)
	return append(b, '}', '\n')
}

// appendContext appends the transaction of a packet, its marks and what it carries.
func appendContext(b []byte, p *record.Packet) []byte {
	b = orNull(append(b, `,"rdma_operation":`...), p.RDMAOperation)
	b = append(b, `,"transaction":`...)
	if id, known := p.Transaction.Get(); known {
		b = strconv.AppendInt(b, id, 10)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"xid":`...)
	if xid, known := p.XID.Get(); known {
		b, _ = xid.AppendText(append(b, '"'))
		b = append(b, '"')
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"marks":[`...)
	for name := range p.Marks.Names() {
		if b[len(b)-1] != '[' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), '"')
	}
	b = orNull(append(b, `],"no_transaction_reason":`...), string(p.NoTransactionReason))
	return appendPath(b, p.Path)
}

// appendPath appends the capture points of a packet, if there are several.
func appendPath(b []byte, p *record.Path) []byte {
	if p == nil {
		return b
	}
	b = field.AppendJSON(append(b, `,"point":`...), p.Point)
	b = append(b, `,"seen":[`...)
	for i, s := range p.Seen {
		if i > 0 {
			b = append(b, ',')
		}
		b = field.AppendJSON(append(b, `{"point":`...), s.Point)
		b = strconv.AppendInt(append(b, `,"packet":`...), s.Packet, 10)
		b, _ = s.Time.AppendText(append(b, `,"time":"`...))
		b = append(b, '"', '}')
	}
	return append(b, ']')
}

// orNull appends a string, or null if it is empty.
func orNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return field.AppendJSON(b, s)
}

// appendNode appends an element of a packet's tree, and the comma before it.
func appendNode(b []byte, n *record.Node) []byte {
	switch n.Kind {
	case record.NodeEndObject:
		return append(b, '}')
	case record.NodeEndList:
		return append(b, ']')
	}
	before := len(b)
	if last := b[len(b)-1]; last != '{' && last != '[' {
		b = append(b, ',')
	}
	if n.Name != "" {
		b = append(append(append(b, '"'), n.Name...), '"', ':')
	}
	switch n.Kind {
	case record.NodeObject:
		return append(b, '{')
	case record.NodeList:
		return append(b, '[')
	case record.NodeText:
		return field.AppendJSON(b, n.Text)
	case record.NodeValue:
		return append(b, n.Data...)
	case record.NodeNumber:
		return strconv.AppendInt(b, n.Number, 10)
	case record.NodeNull:
		return append(b, "null"...)
	case record.NodeHeader:
		return append(appendFields(append(b, '{'), n.Table, n.Data), '}')
	}
	start := len(b)
	if b = appendFields(b, n.Table, n.Data); len(b) == start { // a truncated header may have no complete field
		return b[:before]
	}
	return b
}

// appendFields appends the complete fields of a table as members of an object, with commas
// between them.
func appendFields(b []byte, table *field.Header, data []byte) []byte {
	comma := false
	for i := range table.Fields {
		f := &table.Fields[i]
		if !f.Whole(data) {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = appendField(append(b, f.Key...), f, data)
	}
	return b
}

// appendField appends the value of a table's field, and the name of the value if it has one.
func appendField(b []byte, f *field.Field, data []byte) []byte {
	switch f.Format {
	case field.Enum:
		return field.AppendJSON(b, f.Names(f.Uint(data)))
	case field.Dec, field.Flag:
		b = f.AppendText(b, data)
	default:
		b = append(f.AppendText(append(b, '"'), data), '"')
	}
	if f.Names != nil {
		b = append(append(append(b, ',', '"'), f.Name...), `_name":`...)
		b = field.AppendJSON(b, f.Names(f.Uint(data)))
	}
	return b
}

// appendAddress appends an address as a string, or null if there is none.
func appendAddress(b []byte, address func([]byte) []byte) []byte {
	at := len(b)
	b = append(b, '"')
	if b = address(b); len(b) == at+1 {
		return append(b[:at], "null"...)
	}
	return append(b, '"')
}
