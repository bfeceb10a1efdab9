package render

import (
	"encoding"
	"fmt"
	"strconv"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
)

// Columns writes chosen fields of records, a line a record: tabs between fields,
// commas between the values of a list, nothing for null, as tshark -T fields
// does.
type Columns struct {
	fields query.Fields
	list   []chosen

	// of packets:
	tables []wanted // those that have fields which were chosen
	cells  [][]byte // what they say of each column, for the packet at hand
}

// wanted is a table with the rows of it that are wanted.
type wanted struct {
	table *field.Header
	rows  []wantedRow
}

type wantedRow struct {
	column int
	row    *field.Field
}

// chosen is one field. In packets, rows are what the tables call so, and own is
// how to append one that is in no table.
type chosen struct {
	path string
	rows []tableRow
	own  func([]byte, *record.Packet) []byte
}

type tableRow struct {
	table *field.Header
	row   *field.Field
}

// NewColumns resolves the names of fields, JSON's or Wireshark's.
func NewColumns(names []string, fields query.Fields) (*Columns, error) {
	c := &Columns{fields: fields}
	for i, name := range names {
		path, err := query.Resolve(name, fields)
		if err != nil {
			return nil, err
		}
		col := chosen{path: path}
		if fields == query.Packets {
			col = packetField(path)
		}
		c.list = append(c.list, col)
		for _, r := range col.rows {
			c.want(i, r)
		}
	}
	c.cells = make([][]byte, len(c.list))
	return c, nil
}

// want notes that a row of a table belongs in a column.
func (c *Columns) want(column int, r tableRow) {
	row := wantedRow{column, r.row}
	for i := range c.tables {
		if w := &c.tables[i]; w.table == r.table {
			w.rows = append(w.rows, row)
			return
		}
	}
	c.tables = append(c.tables, wanted{r.table, []wantedRow{row}})
}

// packetField is a field of packets.
func packetField(path string) chosen {
	col := chosen{path: path, own: ownColumns[path]}
	for _, h := range header.All {
		for i := range h.Fields {
			if h.Name+"."+h.Fields[i].Name == path {
				col.rows = append(col.rows, tableRow{h, &h.Fields[i]})
			}
		}
	}
	return col
}

// ownColumns append fields of a packet's own, for what is asked for most.
var ownColumns = map[string]func([]byte, *record.Packet) []byte{
	"number":     func(b []byte, p *record.Packet) []byte { return strconv.AppendInt(b, p.Number, 10) },
	"time":       func(b []byte, p *record.Packet) []byte { b, _ = p.Time.AppendText(b); return b },
	"length":     func(b []byte, p *record.Packet) []byte { return strconv.AppendInt(b, int64(p.Length), 10) },
	"captured":   func(b []byte, p *record.Packet) []byte { return strconv.AppendInt(b, int64(p.Captured), 10) },
	"src":        func(b []byte, p *record.Packet) []byte { return p.AppendSource(b) },
	"dst":        func(b []byte, p *record.Packet) []byte { return p.AppendDestination(b) },
	"transport":  func(b []byte, p *record.Packet) []byte { return append(b, p.Transport...) },
	"operation":  func(b []byte, p *record.Packet) []byte { return append(b, p.Operation...) },
	"nobodys":    func(b []byte, p *record.Packet) []byte { return append(b, p.Nobodys...) },
	"icrc":       func(b []byte, p *record.Packet) []byte { return append(b, p.ICRC...) },
	"connection": func(b []byte, p *record.Packet) []byte { return appendKnown(b, p.Connection) },
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

// appendKnown appends a number, nothing when it is not known.
func appendKnown[T int | int64](b []byte, v record.Opt[T]) []byte {
	if n, known := v.Get(); known {
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return b
}

// Append appends the line of a record.
func (c *Columns) Append(b []byte, r any) []byte {
	packet, _ := r.(*record.Packet)
	if packet != nil {
		c.look(packet)
	}
	for i := range c.list {
		if i > 0 {
			b = append(b, '\t')
		}
		switch col := &c.list[i]; {
		case packet != nil && col.rows != nil:
			b = append(b, c.cells[i]...)
		case packet != nil && col.own != nil:
			b = col.own(b, packet)
		default:
			b = appendAny(b, c.fields.Raw(r, col.path))
		}
	}
	return append(b, '\n')
}

// look fills the cells of a packet, in one walk through its tree: there is a line
// for each packet.
func (c *Columns) look(p *record.Packet) {
	for i := range c.cells {
		c.cells[i] = c.cells[i][:0]
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Table == nil {
			continue
		}
		for j := range c.tables {
			w := &c.tables[j]
			if w.table != n.Table {
				continue
			}
			for _, r := range w.rows {
				if !r.row.Whole(n.Data) {
					continue
				}
				b := c.cells[r.column]
				if len(b) > 0 {
					b = append(b, ',')
				}
				c.cells[r.column] = appendPlain(b, r.row, n.Data)
			}
			break
		}
	}
}

// appendRows appends what a packet's tables have of a field, without boxing the
// values: there is a line for each packet.
func (col *chosen) appendRows(b []byte, p *record.Packet) []byte {
	first := true
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Table == nil {
			continue
		}
		for _, r := range col.rows {
			if r.table != n.Table || !r.row.Whole(n.Data) {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendPlain(b, r.row, n.Data)
		}
	}
	return b
}

// appendAny appends a value of any kind, safe for a terminal.
func appendAny(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return b
	case time.Time: // of packets
		return append(b, record.Time(v.UnixNano()).String()...)
	case []any:
		for i, element := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendAny(b, element)
		}
		return b
	case encoding.TextMarshaler: // hex numbers, times of records
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
	return appendClean(b, fmt.Sprint(v))
}
