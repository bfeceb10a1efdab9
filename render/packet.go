package render

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
)

// Packets draws packet records: a line each, and on request the tree of all
// fields and the bytes.
type Packets struct {
	Tree, Bytes bool
	w           io.Writer
	theme       *Theme
	width       int // of the terminal, 0 for none
	clock       clock
	line        []byte
	pair        int  // width of the addresses: that of the widest so far
	headed      bool // the heading is written
}

// What is looked at of packets that are drawn as lines, as rows of a table, and as
// JSON without all headers.
var (
	OnlyLine = field.Summary | field.Context
	OnlyRow  = OnlyLine | header.BTH.Member
	OnlyJSON = field.Everything &^ header.Links
)

// NewPackets draws on w.
func NewPackets(w io.Writer, theme *Theme, width int) *Packets {
	return &Packets{w: w, theme: theme, width: width, clock: clock{form: theme.times}, pair: len("192.168.100.100 > 192.168.100.100")}
}

// appendMarks appends what is odd about a packet, in brackets.
func appendMarks(b []byte, p *record.Packet) []byte {
	if p.ICRC == record.Bad {
		b = append(b, " [bad ICRC]"...)
	}
	for name := range (p.Marks &^ record.BadICRC).Names() {
		b = append(b, " ["...)
		for i := range len(name) {
			c := name[i]
			if c == '_' {
				c = ' '
			}
			b = append(b, c)
		}
		b = append(b, ']')
	}
	return b
}

// Start sets the time that others are shown relative to: the capture's first.
// Without it, it is the first that is shown.
func (r *Packets) Start(at record.Time) { r.clock.start = record.Some(at) }

// Packet writes one packet.
func (r *Packets) Packet(p *record.Packet) error {
	b := r.line[:0]
	b = appendPadded(b, p.Number, 6)
	b = append(b, ' ')
	at := len(b)
	b = r.clock.append(b, p.Time)
	b = padLeft(b, at, r.clock.width())
	b = append(b, ' ')
	at = len(b)
	b = orDash(p.AppendSource(b), len(b))
	b = append(b, " > "...)
	b = orDash(p.AppendDestination(b), len(b))
	r.pair = max(r.pair, len(b)-at)
	b = padRight(b, at, r.pair)
	b = append(b, ' ')
	at = len(b)
	b = append(b, p.Transport...)
	b = padRight(b, at, len("InfiniBand"))
	b = append(b, ' ')
	b = appendPadded(b, int64(p.Length), len("LENGTH"))
	b = append(b, ' ')
	at = len(b)
	if connection, known := p.Connection.Get(); known {
		b = strconv.AppendInt(b, int64(connection), 10)
	} else {
		b = append(b, '-')
	}
	b = padLeft(b, at, len("CONN"))
	b = append(b, ' ')
	b = appendClean(b, p.Summary)
	b = appendMarks(b, p)
	r.line = b
	if err := r.head(); err != nil {
		return err
	}
	if r.width > 0 && len(b) > r.width && !r.Tree && !r.Bytes {
		b = append(b[:r.width-1], r.theme.glyphs.cut...)
	}
	b = append(b, '\n')
	if r.Tree {
		b = r.tree(b, p)
	}
	if r.Bytes {
		b = appendDump(b, p.Data)
	}
	if r.Tree || r.Bytes {
		b = append(b, '\n')
	}
	r.line = b
	_, err := r.w.Write(b)
	return err
}

// packetColumns are those of the table that stands for lines where columns are
// chosen. What else there is to see of a packet, -e prints.
var packetColumns = []column{
	{name: "NUMBER", right: true, usual: 6},
	{name: "TIME", right: true, usual: 11},
	{name: "SOURCE", usual: 15},
	{name: "DESTINATION", usual: 15},
	{name: "TRANSPORT", usual: 6},
	{name: "LENGTH", right: true},
	{name: "CONN", right: true},
	{name: "#", right: true, usual: 5},
	{name: "XID", usual: 10},
	{name: "OPERATION", usual: 10},
	{name: "QPN", usual: 8},
	{name: "PSN", right: true, usual: 8},
	{name: "MARKS", usual: 12},
	{name: "SUMMARY", flex: true, min: 20, usual: 60},
}

// The fields of headers that columns show.
var columnQPN, columnPSN = packetField("bth.dest_qpn"), packetField("bth.psn")

// Packet writes a row of the table of packets.
func (t *Text) Packet(p *record.Packet) error {
	id := func(v int64) string { return strconv.FormatInt(v, 10) }
	marks := slices.Collect(p.Marks.Names())
	t.cells = append(t.cells[:0],
		cell{text: id(p.Number), ink: t.theme.dim},
		cell{text: t.at(p.Time)},
		cell{text: string(orDash(p.AppendSource(nil), 0))},
		cell{text: string(orDash(p.AppendDestination(nil), 0))},
		cell{text: p.Transport},
		cell{text: strconv.Itoa(p.Length)},
		cell{text: known(p.Connection, "-", strconv.Itoa)},
		cell{text: known(p.Transaction, "-", id)},
		cell{text: known(p.XID, "-", record.Hex32.String), ink: t.theme.key},
		cell{text: cmp.Or(clean(p.RDMAOperation), "-")},
		cell{text: string(orDash(columnQPN.appendRows(nil, p), 0))},
		cell{text: string(orDash(columnPSN.appendRows(nil, p), 0))},
		cell{text: strings.Join(marks, ","), ink: t.theme.warn},
		cell{text: string(appendClean(nil, p.Summary))},
	)
	return t.row(packetColumns)
}

// WithoutDecoded is what a packet's tree has where nobody asks for credentials,
// arguments and results, though they were decoded for a filter. It is kept in to.
func WithoutDecoded(to, nodes []record.Node) []record.Node {
	to = to[:0]
	depth, dropped := 0, false
	for _, n := range nodes {
		if depth == 0 {
			name := n.Name
			if bare := strings.TrimRight(name, "0123456789"); bare != name { // of a segment with several FPDUs
				name = strings.TrimSuffix(bare, "_")
			}
			dropped = n.Kind == record.NodeObject && query.Decoded(name+".")
		}
		switch n.Kind {
		case record.NodeObject, record.NodeList:
			depth++
		case record.NodeEndObject, record.NodeEndList:
			depth--
		}
		if !dropped {
			to = append(to, n)
		}
	}
	return to
}

// head writes the heading, once, as wide as the first packet's line.
func (r *Packets) head() error {
	if r.headed || r.Tree || r.Bytes {
		return nil
	}
	r.headed = true
	heads := fmt.Sprintf("%6s %*s %-*s %-*s LENGTH CONN SUMMARY", "NUMBER", r.clock.width(), "TIME", r.pair, "SOURCE > DESTINATION", len("InfiniBand"), "TRANSPORT")
	if r.width > 0 {
		heads = r.theme.fit(heads, r.width)
	}
	_, err := fmt.Fprintf(r.w, "%s%s%s\n", r.theme.header.before, heads, r.theme.header.after)
	return err
}

// padRight puts spaces behind what stands from at on, up to a width.
func padRight(b []byte, at, width int) []byte {
	for len(b)-at < width {
		b = append(b, ' ')
	}
	return b
}

func appendPadded(b []byte, v int64, width int) []byte {
	at := len(b)
	return padLeft(strconv.AppendInt(b, v, 10), at, width)
}

// padLeft puts spaces before what stands from at on, up to a width.
func padLeft(b []byte, at, width int) []byte {
	for len(b)-at < width {
		b = append(b, 0)
		copy(b[at+1:], b[at:])
		b[at] = ' '
	}
	return b
}

// orDash appends a dash where nothing was appended behind the length before.
func orDash(b []byte, before int) []byte {
	if len(b) == before {
		return append(b, '-')
	}
	return b
}

// tree writes every field with its bits and its offset in the frame.
func (r *Packets) tree(b []byte, p *record.Packet) []byte {
	depth := 1
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch n.Kind {
		case record.NodeEndObject, record.NodeEndList:
			depth--
			continue
		case record.NodeFields:
			b = r.fields(b, n, depth)
			continue
		}
		if n.Label == "" && n.Name != "" {
			if n.Kind == record.NodeObject {
				depth++
			}
			continue // of JSON alone
		}
		b = r.margin(b, n.Offset, n.Length, depth)
		switch n.Kind {
		case record.NodeObject, record.NodeList, record.NodeHeader:
			b = append(b, r.theme.key.before...)
			b = append(b, n.Label...)
			b = append(b, r.theme.key.after...)
			if n.Kind != record.NodeHeader {
				depth++
			}
		case record.NodeText, record.NodeValue:
			b = append(append(b, n.Label...), ": "...)
			b = append(b, clean(n.Text)...)
		case record.NodeNumber:
			b = append(append(b, n.Label...), ": "...)
			b = strconv.AppendInt(b, n.Number, 10)
		case record.NodeNull:
			b = append(append(b, n.Label...), ": none"...)
		}
		b = append(b, '\n')
		if n.Kind == record.NodeHeader {
			b = r.fields(b, n, depth+1)
		}
	}
	return append(b, fmt.Sprintf("%16sICRC: %v\n", "", p.ICRC)...)
}

// fields writes the fields of a table that are whole.
func (r *Packets) fields(b []byte, n *record.Node, depth int) []byte {
	for i := range n.Table.Fields {
		f := &n.Table.Fields[i]
		if !f.Whole(n.Data) {
			continue
		}
		at := n.Offset
		if at >= 0 { // what does not stand in the frame in one piece has no offset
			at += f.Bit / 8
		}
		b = r.margin(b, at, (f.Bit%8+f.Bits+7)/8, depth)
		b = appendBits(b, f, n.Data)
		b = append(append(b, f.Label...), ": "...)
		b = appendValue(b, f, n.Data)
		b = append(b, '\n')
	}
	return b
}

// margin writes where in the frame a node stands, offset and length in bytes,
// and indents to its depth.
func (r *Packets) margin(b []byte, offset, length, depth int) []byte {
	b = append(b, r.theme.dim.before...)
	at := len(b)
	if offset >= 0 && length > 0 {
		b = append(b, " @"...)
		b = strconv.AppendInt(b, int64(offset), 10)
		b = append(b, '+')
		b = strconv.AppendInt(b, int64(length), 10)
	}
	for len(b)-at < 14 {
		b = append(b, ' ')
	}
	b = append(b, r.theme.dim.after...)
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

// appendBits draws the bits of a field that is no whole number of bytes, as
// Wireshark does: ".1.. .... = ".
func appendBits(b []byte, f *field.Field, data []byte) []byte {
	if f.Bit%8 == 0 && f.Bits%8 == 0 {
		return b
	}
	first, last := f.Bit/8*8, (f.Bit+f.Bits+7)/8*8
	for i := first; i < last; i++ {
		switch {
		case i < f.Bit || i >= f.Bit+f.Bits:
			b = append(b, '.')
		case data[i/8]>>(7-i%8)&1 != 0:
			b = append(b, '1')
		default:
			b = append(b, '0')
		}
		if i%4 == 3 {
			b = append(b, ' ')
		}
	}
	return append(b, "= "...)
}

// appendValue writes a field's value, and its name beside it.
func appendValue(b []byte, f *field.Field, data []byte) []byte {
	b = appendPlain(b, f, data)
	if f.Names != nil && f.Format != field.Enum {
		if name := f.Names(f.Uint(data)); name != "" {
			b = append(append(append(b, " ("...), clean(name)...), ')')
		}
	}
	return b
}

// appendPlain appends a field's value as text that is safe for a terminal.
func appendPlain(b []byte, f *field.Field, data []byte) []byte {
	if f.Format == field.Enum {
		return append(b, clean(f.Names(f.Uint(data)))...)
	}
	return f.AppendText(b, data)
}

// appendDump writes bytes as tcpdump -X does: offset, hex, ASCII.
func appendDump(b, data []byte) []byte {
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		b = append(b, fmt.Sprintf("    %04x  ", at)...)
		for i := range 16 {
			if i < len(row) {
				b = hex.AppendEncode(b, row[i:i+1])
			} else {
				b = append(b, "  "...)
			}
			if b = append(b, ' '); i == 7 {
				b = append(b, ' ')
			}
		}
		b = append(b, ' ')
		for _, c := range row {
			if c < 0x20 || c >= 0x7f {
				c = '.'
			}
			b = append(b, c)
		}
		b = append(b, '\n')
	}
	return b
}
