package render

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Packets draws packet records: one line for each packet and, if Tree or Bytes is set, the
// tree of all fields and the bytes.
type Packets struct {
	Tree, Bytes bool
	Cut         bool // a line was too long
	w           io.Writer
	theme       *Theme
	width       int // of the terminal, 0 if there is none
	clock       clock
	line, marks []byte
	pair        int  // width of the widest pair of addresses so far
	headed      bool // whether the heading is written
	spans       []span
	shortPoint  func(name string) string
	pointWidth  int // width of the capture points' column; 0 if there is one point
}

// These sets contain the parts of a packet that an output needs.
var (
	OnlyLine = field.Summary | field.Context    // a line of Packets
	OnlyRow  = OnlyLine | header.BTH.Member     // a row of Text
	OnlyJSON = field.Everything &^ header.Links // JSON without the headers below the transport
)

// widestIPv4 is the width of two IPv4 addresses, which are never shortened.
const widestIPv4 = len("192.168.100.100 > 192.168.100.100")

// NewPackets returns a Packets that draws on w for a terminal of this width, or without any
// limit of the width if it is 0.
func NewPackets(w io.Writer, theme *Theme, width int) *Packets {
	return &Packets{w: w, theme: theme, width: width, clock: clock{form: theme.times}, pair: widestIPv4}
}

// appendMarks appends the marks of a packet, such as " [retransmitted]".
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

// Marks returns the marks of a packet as its line shows them, such as "[retransmitted]".
func Marks(p *record.Packet) []string {
	marks := strings.SplitAfter(string(appendMarks(nil, p)), "]")
	for i, mark := range marks {
		marks[i] = strings.TrimPrefix(mark, " ")
	}
	return marks[:len(marks)-1] // nothing follows the last one
}

// PacketLine is a line of a packet's tree, and the bytes of the frame that it is about: those from From, up to To.
type PacketLine struct {
	Text     string
	From, To int  // equal for none
	Depth    int  // in the tree; 0 for the line of the packet
	Label    int  // byte of Text at which the label begins; the two before are spaces
	Link     bool // whether the line begins a header of Ethernet, IP, TCP or another layer below the RDMA transport
}

// span is a line of a tree, with the part of the frame that it is about; line is where the line begins, and label where its
// label does.
type span struct {
	line, label, from, to, depth int
	link                         bool
}

// PacketLines returns the lines of a packet's tree, for callers that show the bytes of a line. Times count from start.
func PacketLines(theme *Theme, start record.Opt[record.Time], p *record.Packet) (lines []PacketLine) {
	r := NewPackets(io.Discard, theme, 0)
	r.Tree, r.clock.start = true, start
	r.Packet(p) // io.Discard takes everything
	at := 0
	for text := range strings.Lines(strings.TrimRight(string(r.line), "\n")) {
		line := PacketLine{Text: strings.TrimSuffix(text, "\n")}
		if len(r.spans) > 0 && r.spans[0].line == at {
			s := r.spans[0]
			line.From, line.To, line.Depth, line.Label, line.Link = s.from, s.to, s.depth, s.label-at, s.link
			r.spans = r.spans[1:]
		}
		lines = append(lines, line)
		at += len(text)
	}
	return lines
}

// Start sets the time that relative times count from: that of the capture's first packet.
// Without a call of Start, times count from the first packet that is drawn.
func (r *Packets) Start(at record.Time) { r.clock.start = record.Some(at) }

// Points sets the names of the capture points, if there are several. Each line then says whose packet number it has.
func (r *Packets) Points(names []string) {
	if len(names) < 2 {
		return
	}
	r.shortPoint, r.pointWidth = record.ShortNames(names), len("POINT")
	for _, name := range names {
		r.pointWidth = min(max(r.pointWidth, wide(clean(r.shortPoint(name)))), widestPoint)
	}
}

// appendPoint appends the name of a packet's capture point.
func (r *Packets) appendPoint(b []byte, p *record.Packet) []byte {
	name := ""
	if p.Path != nil {
		name = r.theme.fit(clean(r.shortPoint(p.Path.Point)), r.pointWidth)
	}
	b = append(b, name...)
	for range r.pointWidth - wide(name) + 1 {
		b = append(b, ' ')
	}
	return b
}

// shorten shortens a line to the width of the terminal. It keeps the marks, which follow the summary
// from at to end, if they fit.
func (r *Packets) shorten(b []byte, at, end int) []byte {
	r.Cut = true
	keep := start(b, max(r.width-1-(len(b)-end), 0))
	if keep <= at || end == len(b) {
		return append(b[:start(b, r.width-1)], r.theme.glyphs.shortened...)
	}
	r.marks = append(r.marks[:0], b[end:]...)
	return append(append(b[:keep], r.theme.glyphs.shortened...), r.marks...)
}

// shortenPair shortens the addresses of a packet, which begin at a byte of a line, to the end of each if they would leave too little of
// the summary.
func (r *Packets) shortenPair(b []byte, at int) []byte {
	const between = " > "
	after := len("CONN ")
	if !r.narrow() {
		after += len("InfiniBand LENGTH ")
	}
	most := max((r.width-at-after)/2, widestIPv4) // as much as the summary has
	if r.width == 0 || r.Tree || r.Bytes || len(b)-at <= most {
		return b
	}
	from, to, _ := strings.Cut(string(b[at:]), between)
	half := (most - len(between)) / 2
	from = endOf(from, max(half, most-len(between)-wide(to)), r.theme.glyphs.shortened)
	to = endOf(to, most-len(between)-wide(from), r.theme.glyphs.shortened)
	return append(append(append(b[:at], from...), between...), to...)
}

// narrowLine is the width below which lines leave out columns, because too little would be left of the summary.
const narrowLine = 110

// narrow reports whether lines leave out the transport and the length.
func (r *Packets) narrow() bool { return r.width > 0 && r.width < narrowLine && !r.Tree && !r.Bytes }

// Packet writes one packet.
func (r *Packets) Packet(p *record.Packet) error {
	b := r.line[:0]
	r.spans = r.spans[:0]
	b = appendPadded(b, p.Number, 6)
	b = append(b, ' ')
	if r.pointWidth > 0 {
		b = r.appendPoint(b, p)
	}
	at := len(b)
	b = r.clock.append(b, p.Time)
	b = padLeft(b, at, r.clock.width())
	b = append(b, ' ')
	at = len(b)
	if b = p.AppendShown(b, p.AppendSource); len(b) > at || r.width == 0 {
		b = append(orDash(b, at), " > "...)
		b = orDash(p.AppendShown(b, p.AppendDestination), len(b))
	}
	b = r.shortenPair(b, at)
	shown := utf8.RuneCount(b[at:])
	r.pair = max(r.pair, shown)
	b = padRight(b, at, r.pair+len(b)-at-shown)
	b = append(b, ' ')
	if !r.narrow() {
		at = len(b)
		if b = append(b, p.Transport...); r.width == 0 {
			b = orDash(b, at)
		}
		b = padRight(b, at, len("InfiniBand"))
		b = append(b, ' ')
		b = appendPadded(b, int64(p.Length), len("LENGTH"))
		b = append(b, ' ')
	}
	at = len(b)
	if connection, known := p.Connection.Get(); known {
		b = strconv.AppendInt(b, int64(connection), 10)
	} else if r.width == 0 {
		b = append(b, '-')
	}
	b = padLeft(b, at, len("CONN"))
	b = append(b, ' ')
	b = appendClean(b, p.Summary)
	summary := len(b)
	b = appendMarks(b, p)
	r.line = b
	if err := r.head(); err != nil {
		return err
	}
	if r.width > 0 && len(b) > r.width && !r.Tree && !r.Bytes && start(b, r.width) < len(b) {
		b = r.shorten(b, at, summary)
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

// packetColumns are the columns of the table that replaces the lines of Packets if the user
// chooses columns. The flag -e prints all other fields.
var packetColumns = []column{
	{name: "PACKET", fields: "number", right: true, usual: 6, doc: "Number of the packet in the capture, counted from 1."},
	{
		name: "POINT", fields: "point", some: true,
		doc: "Capture point whose number the packet has, without what the names of all points have in common; shown only with several points.",
	},
	{name: "TIME", fields: "time", right: true, usual: 11, moment: true, doc: "Time of the packet; the flag --time selects the format."},
	{name: "SOURCE", fields: "src", usual: 15, doc: "Address of the sender."},
	{name: "DESTINATION", fields: "dst", usual: 15, doc: "Address of the receiver."},
	{
		name: "TRANSPORT", fields: "transport", usual: 6,
		doc: "Protocol that carries the RDMA traffic; - if the packet carries neither RDMA nor RPC.",
	},
	{name: "LENGTH", fields: "length", right: true, doc: "Length of the packet on the wire, in bytes."},
	{name: "CONN", fields: "connection", right: true},
	{name: "RPC ID", fields: "transaction", right: true, usual: 6, doc: "Number of the RPC that the packet belongs to."},
	{name: "XID", fields: "xid", usual: 10, doc: "Transaction ID of the RPC that the packet belongs to."},
	{name: "OPERATION", fields: "rdma_operation", usual: 10, doc: "RDMA operation that the packet is part of."},
	{name: "QPN", fields: "bth.dest_qpn", usual: 8, doc: "Number of the destination queue pair."},
	{name: "PSN", fields: "bth.psn", right: true, usual: 8, doc: "Packet sequence number."},
	{name: "MARKS", fields: "marks", usual: 12, doc: "What is unusual about the packet, such as retransmitted or out_of_order."},
	{name: "SUMMARY", fields: "summary", flex: true, min: 20, usual: 60, doc: "Opcode and most important fields of the packet."},
}

// These fields of headers have a column.
var (
	columnQPN = sync.OnceValue(func() *chosen { return packetField("bth.dest_qpn") })
	columnPSN = sync.OnceValue(func() *chosen { return packetField("bth.psn") })
)

// Packet writes a row of the table of packets.
func (t *Text) Packet(p *record.Packet) error {
	id := func(v int64) string { return strconv.FormatInt(v, 10) }
	marks, point := slices.Collect(p.Marks.Names()), ""
	if p.Path != nil {
		point = p.Path.Point
	}
	t.cells = append(t.cells[:0],
		cell{text: id(p.Number), ink: t.theme.dim},
		cell{text: clean(point)},
		cell{text: t.at(p.Time)},
		cell{text: string(orDash(p.AppendShown(nil, p.AppendSource), 0))},
		cell{text: string(orDash(p.AppendShown(nil, p.AppendDestination), 0))},
		cell{text: cmp.Or(p.Transport, "-")},
		cell{text: strconv.Itoa(p.Length)},
		cell{text: known(p.Connection, "-", strconv.Itoa)},
		cell{text: known(p.Transaction, "-", id)},
		cell{text: known(p.XID, "-", record.Hex32.String), ink: t.theme.key},
		cell{text: cmp.Or(clean(p.RDMAOperation), "-")},
		cell{text: string(orDash(columnQPN().appendRows(nil, p), 0))},
		cell{text: string(orDash(columnPSN().appendRows(nil, p), 0))},
		cell{text: strings.Join(marks, ","), ink: t.theme.warn},
		cell{text: string(appendClean(nil, p.Summary))},
	)
	return t.row(packetColumns)
}

// WithoutDecoded returns a packet's tree without credentials, arguments and results, for
// outputs that do not show them although a filter needed them. It reuses the memory of to.
func WithoutDecoded(to, nodes []record.Node) []record.Node {
	to = to[:0]
	depth, dropped := 0, false
	for _, n := range nodes {
		if depth == 0 {
			name := n.Name
			if bare := strings.TrimRight(name, "0123456789"); bare != name { // in a TCP segment with several FPDUs
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

// head writes the heading once, with the widths of the first packet's line.
func (r *Packets) head() error {
	if r.headed || r.Tree || r.Bytes {
		return nil
	}
	r.headed = true
	_, err := io.WriteString(r.w, r.Heading()+"\n")
	return err
}

// Heading returns the heading of the lines, with the widths of the lines so far.
func (r *Packets) Heading() string {
	heads := fmt.Sprintf("%6s ", "PACKET")
	if r.pointWidth > 0 {
		heads += fmt.Sprintf("%-*s ", r.pointWidth, "POINT")
	}
	heads += fmt.Sprintf("%*s %-*s ", r.clock.width(), "TIME", r.pair, "SOURCE > DESTINATION")
	if r.narrow() {
		heads += "CONN SUMMARY"
	} else {
		heads += fmt.Sprintf("%-*s LENGTH CONN SUMMARY", len("InfiniBand"), "TRANSPORT")
	}
	if r.width > 0 {
		heads = r.theme.fit(heads, r.width)
	}
	return r.theme.header.of(heads)
}

// padRight appends spaces until b has width bytes from at on.
func padRight(b []byte, at, width int) []byte {
	for len(b)-at < width {
		b = append(b, ' ')
	}
	return b
}

// appendPadded appends a number, aligned to the right.
func appendPadded(b []byte, v int64, width int) []byte {
	at := len(b)
	return padLeft(strconv.AppendInt(b, v, 10), at, width)
}

// padLeft inserts spaces at at until b has width bytes from there on.
func padLeft(b []byte, at, width int) []byte {
	text := len(b)
	if b = padRight(b, at, width); len(b) > text {
		n := len(b) - text
		copy(b[at+n:], b[at:text])
		for i := range n {
			b[at+i] = ' '
		}
	}
	return b
}

// orDash appends a dash if b has only before bytes, because a value was missing.
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
			continue // only for JSON
		}
		b = r.margin(b, n.Offset, n.Length, depth)
		switch n.Kind {
		case record.NodeObject, record.NodeList, record.NodeHeader:
			r.spans[len(r.spans)-1].link = n.Kind == record.NodeHeader && n.Table.Link
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
	return append(r.margin(b, -1, 0, 1), fmt.Sprintf("ICRC: %v\n", p.ICRC)...)
}

// fields writes the fields of a table that are whole.
func (r *Packets) fields(b []byte, n *record.Node, depth int) []byte {
	for i := range n.Table.Fields {
		f := &n.Table.Fields[i]
		if !f.Whole(n.Data) {
			continue
		}
		at := n.Offset
		if at >= 0 { // a header that is not contiguous in the frame has no offset
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

// margin writes the offset and length of a node in the frame, in bytes, and indents to its
// depth.
func (r *Packets) margin(b []byte, offset, length, depth int) []byte {
	line := len(b)
	b = append(b, r.theme.dim.before...)
	at, s := len(b), span{line: line, depth: depth}
	if offset >= 0 && length > 0 {
		s.from, s.to = offset, offset+length
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
	s.label = len(b)
	r.spans = append(r.spans, s)
	return b
}

// appendBits draws the bits of a field that is not a whole number of bytes, in the format of
// Wireshark: ".1.. .... = ".
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

// appendValue appends a field's value and the name of the value, if it has one.
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

// appendDump appends bytes in the format of tcpdump -X: offset, hex, ASCII.
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
