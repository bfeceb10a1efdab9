package render

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Columns writes chosen fields of records, one line for each record, in the format of
// tshark -T fields: tabs between fields, commas between the values of a list, and nothing
// for null.
type Columns struct {
	fields query.Fields
	list   []chosen
	csv    bool
}

// CSV makes Columns write the format of RFC 4180 with line feeds: commas between the fields, and
// quotes where they are needed. It returns the line with the names of the fields.
func (c *Columns) CSV() string {
	c.csv = true
	var names []string
	for _, col := range c.list {
		names = append(names, col.path)
	}
	return strings.Join(names, ",") + "\n"
}

// end appends what follows a field that begins at from: a tab, or, in CSV, a comma. In CSV, it
// also adds quotes to the field if it needs them.
func (c *Columns) end(b []byte, from int) []byte {
	if !c.csv {
		return append(b, '\t')
	}
	if text := b[from:]; bytes.ContainsAny(text, ",\"") {
		quoted := `"` + strings.ReplaceAll(string(text), `"`, `""`) + `"`
		b = append(b[:from], quoted...)
	}
	return append(b, ',')
}

// chosen is one chosen field. The last members are only for packets.
type chosen struct {
	path  string
	group int                                 // number of the value of a group that it is; 0 for the field
	in    field.Set                           // tables of headers that have the field
	rows  []header.Source                     // rows of these tables
	own   func([]byte, *record.Packet) []byte // appends a field that is in no table
}

// NewColumns returns Columns for fields that are given by their JSON or Wireshark names.
func NewColumns(names []string, fields query.Fields) (*Columns, error) {
	c := &Columns{fields: fields}
	for _, name := range names {
		path, err := query.Resolve(name, fields)
		if err != nil {
			return nil, err
		}
		col := chosen{path: path}
		if fields == query.Packets {
			col = *packetField(path)
		}
		c.list = append(c.list, col)
	}
	return c, nil
}

// Only returns the parts of a packet that the columns need.
func (c *Columns) Only() (only field.Set) {
	for _, col := range c.list {
		if only |= col.in; col.in == 0 {
			only |= header.Where(col.path)
		}
	}
	return only
}

// packetField returns the field of packets with this path.
func packetField(path string) *chosen {
	col := &chosen{path: path, own: ownColumns[path], rows: header.Wireshark()[path]}
	for _, row := range col.rows {
		col.in |= row.Table.Member
	}
	for _, h := range header.All {
		for i := range h.Fields {
			if h.Name+"."+h.Fields[i].Name == path {
				col.in |= h.Member
				col.rows = append(col.rows, header.Source{Table: h, Field: &h.Fields[i]})
			}
		}
	}
	return col
}

// ownColumns append the most frequently used fields that are members of a packet record.
var ownColumns = map[string]func([]byte, *record.Packet) []byte{
	"number":                func(b []byte, p *record.Packet) []byte { return strconv.AppendInt(b, p.Number, 10) },
	"time":                  func(b []byte, p *record.Packet) []byte { b, _ = p.Time.AppendText(b); return b },
	"length":                func(b []byte, p *record.Packet) []byte { return strconv.AppendInt(b, int64(p.Length), 10) },
	"captured":              func(b []byte, p *record.Packet) []byte { return strconv.AppendInt(b, int64(p.Captured), 10) },
	"src":                   func(b []byte, p *record.Packet) []byte { return p.AppendSource(b) },
	"dst":                   func(b []byte, p *record.Packet) []byte { return p.AppendDestination(b) },
	"transport":             func(b []byte, p *record.Packet) []byte { return append(b, p.Transport...) },
	"rdma_operation":        func(b []byte, p *record.Packet) []byte { return append(b, p.RDMAOperation...) },
	"no_transaction_reason": func(b []byte, p *record.Packet) []byte { return append(b, p.NoTransactionReason...) },
	"icrc":                  func(b []byte, p *record.Packet) []byte { return append(b, p.ICRC...) },
	"connection":            func(b []byte, p *record.Packet) []byte { return appendKnown(b, p.Connection) },
	"transaction": func(b []byte, p *record.Packet) []byte {
		return appendKnown(b, p.Transaction)
	},
	"xid": func(b []byte, p *record.Packet) []byte {
		if xid, known := p.XID.Get(); known {
			b, _ = xid.AppendText(b)
		}
		return b
	},
}

// appendKnown appends a number, or nothing if it is unknown.
func appendKnown[T int | int64](b []byte, v record.Opt[T]) []byte {
	if n, known := v.Get(); known {
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// Append appends the line of a record.
func (c *Columns) Append(b []byte, r any) []byte {
	if p, ok := r.(*record.Packet); ok {
		return c.packet(b, p)
	}
	for i := range c.list {
		from := len(b)
		if n := c.list[i].group; n == 0 {
			b = appendAny(b, c.fields.Raw(r, c.list[i].path))
		} else if values, ok := c.fields.Raw(r, "group").([]any); ok && n <= len(values) { // "others" has none
			b = appendAny(b, values[n-1])
		}
		b = c.end(b, from)
	}
	b[len(b)-1] = '\n' // in place of the last separator
	return b
}

// SplitGroups adds a column for each value that rows are grouped by, after the first one. Names are those of the values.
func (c *Columns) SplitGroups(names []string) {
	for i, name := range names {
		c.list = slices.Insert(c.list, 1+i, chosen{path: name, group: i + 1})
	}
}

// packet appends the line of a packet. It skips fields of headers that the packet does not
// have without a search, because most packets have few of all possible headers.
func (c *Columns) packet(b []byte, p *record.Packet) []byte {
	var has field.Set
	for i := range p.Nodes {
		if table := p.Nodes[i].Table; table != nil {
			has |= table.Member
		}
	}
	for i := range c.list {
		from := len(b)
		switch col := &c.list[i]; {
		case col.in.Has(has):
			b = col.appendRows(b, p)
		case col.in != 0:
		case col.own != nil:
			b = col.own(b, p)
		default:
			b = appendAny(b, c.fields.Raw(p, col.path))
		}
		b = c.end(b, from)
	}
	b[len(b)-1] = '\n' // in place of the last separator
	return b
}

// appendRows appends the values of a field in all headers of a packet. It does not allocate,
// because it runs for each packet.
func (col *chosen) appendRows(b []byte, p *record.Packet) []byte {
	before := len(b)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Table == nil {
			continue
		}
		for k := range col.rows {
			row := &col.rows[k]
			if row.Table != n.Table || !row.Field.Whole(n.Data) || row.When != nil && !row.When(n.Data) {
				continue
			}
			if len(b) > before {
				b = append(b, ',')
			}
			b = appendPlain(b, row.Field, n.Data)
		}
	}
	return b
}

// AppendValue appends a value of a field as -e prints it: commas between the values of a list,
// nothing for null, and no bytes that a terminal would interpret.
func AppendValue(b []byte, v any) []byte { return appendAny(b, v) }

// appendAny appends a value of any type as text that is safe for a terminal.
func appendAny(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return b
	case time.Time: // in packets
		return append(b, record.Time(v.UnixNano()).String()...)
	case []any:
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendAny(b, element)
		}
		return b
	case encoding.TextMarshaler: // hex numbers, and times in other records
		if text, err := v.MarshalText(); err == nil {
			return append(b, text...)
		}
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendClean(b, v)
	}
	if query.IsObject(v) {
		p := reflect.New(reflect.TypeOf(v))
		p.Elem().Set(reflect.ValueOf(v))
		b = AppendJSON(b, p.Interface())
		return b[:len(b)-1] // without the end of line
	}
	return appendClean(b, fmt.Sprint(v))
}
