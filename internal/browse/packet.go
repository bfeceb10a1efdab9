package browse

import (
	"fmt"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// packet shows the fields of a packet and its bytes side by side.
type packet struct {
	pane
	packets []*record.Packet
	i       int
	lines   []render.PacketLine
	shown   []int // indexes of the lines that no folded header hides
	m       *Model
	list    *list  // of all packets, if the packet was opened from it; nil for the packets of an RPC
	from    int64  // position of the first of packets in the list
	seen    [2]int // bytes that are on the screen: the first, and that after the last
}

func newPacket(m *Model, packets []*record.Packet, i int) *packet {
	p := &packet{packets: packets, i: i, m: m}
	p.keys = []string{"n N next, previous packet", "Space fold", "/ search"}
	p.drawn = p.tree
	p.on = func(m *Model, k string) bool {
		switch k {
		case "n", "]", "enter", "right", "l":
			p.turn(1)
		case "N", "[":
			p.turn(-1)
		case "r":
			if p.list == nil {
				return false
			}
			m.openRPCOf(p.packets[p.i])
		case "space":
			p.fold(!p.folded(p.header()))
		case "z":
			m.before = k
		default:
			return false
		}
		return true
	}
	return p
}

// turn shows the next packet, or the previous one.
func (p *packet) turn(by int) {
	i := p.i + by
	if i >= 0 && i < len(p.packets) {
		p.i, p.cursor, p.top = i, 0, 0
		if p.redraw(); p.list != nil {
			p.list.cursor = p.from + int64(i)
		}
		return
	}
	switch at := p.from + int64(i); {
	case p.list == nil:
		if p.m.say("the RPC has no more packets"); i == mostPackets {
			p.m.say(fmt.Sprintf("no more than %d packets of an RPC are read; list 7 has all packets", mostPackets))
		}
	case at < 0 || at >= p.list.count():
		p.m.say("the list has no more packets")
	default:
		p.m.openPackets(p.list, at)
	}
}

func (p *packet) status() []part {
	at := p.packets[p.i]
	text := fmt.Sprintf("packet %d", at.Number)
	if v := at.Path; v != nil {
		text = "packet " + ofPoint(record.PacketRef{Packet: at.Number, Point: v.Point})
		for _, seen := range v.Seen {
			if seen.Point != v.Point {
				text += " and " + ofPoint(record.PacketRef{Packet: seen.Packet, Point: seen.Point})
			}
		}
	}
	if p.list != nil {
		text = fmt.Sprintf("%s, %d of %d", text, p.from+int64(p.i)+1, p.list.count())
	} else {
		text = fmt.Sprintf("%s, %d of %s of the RPC", text, p.i+1, p.number())
	}
	parts := append([]part{{text: text}}, p.marks()...)
	return append(parts, part{clean(string(at.Summary)), withoutEnd})
}

// number returns the number of packets of the RPC, of which only the first may have been read.
func (p *packet) number() string {
	if len(p.packets) == mostPackets {
		return fmt.Sprintf("the first %d", mostPackets)
	}
	return fmt.Sprint(len(p.packets))
}

// marks returns the marks of the packet, which the bytes may hide in the first line of its fields.
func (p *packet) marks() (parts []part) {
	for _, mark := range render.Marks(p.packets[p.i]) {
		parts = append(parts, part{text: mark})
	}
	return parts
}

// tree draws the fields of the packet, without those that a folded header hides.
func (p *packet) tree(int) (text []string) {
	p.lines, p.shown = render.PacketLines(p.m.theme, p.m.state.Start, p.packets[p.i]), p.shown[:0]
	hidden := 0 // depth of the folded header that hides the lines below it; 0 for none
	for i, line := range p.lines {
		if hidden > 0 && line.Depth > hidden {
			continue
		}
		hidden = 0
		if p.isHeader(i) {
			mark := "- "
			if p.folded(i) {
				mark, hidden = "+ ", line.Depth
			}
			line.Text = line.Text[:line.Label-len(mark)] + mark + line.Text[line.Label:]
		}
		p.shown, text = append(p.shown, i), append(text, line.Text)
	}
	return text
}

// isHeader reports whether a line has fields below it.
func (p *packet) isHeader(i int) bool {
	return p.lines[i].Depth > 0 && i+1 < len(p.lines) && p.lines[i+1].Depth > p.lines[i].Depth
}

// name returns the labels of a line and of the headers that contain it.
func (p *packet) name(i int) string {
	name := ""
	for depth := p.lines[i].Depth + 1; i >= 0 && depth > 1; i-- {
		if line := p.lines[i]; line.Depth < depth {
			name, depth = strip(line.Text[line.Label:])+"\n"+name, line.Depth
		}
	}
	return name
}

// folded reports whether the lines below a header are hidden. If the user has not folded or opened such a header, those below
// the transport are folded and, in a packet with RPC-over-RDMA, all that come before it. The last header is open.
func (p *packet) folded(i int) bool {
	if i < 0 {
		return false
	}
	if is, known := p.m.folds[p.name(i)]; known {
		return is
	}
	if p.lines[i].Depth > 1 {
		return false
	}
	others := false // a header follows
	for next := i + 1; next < len(p.lines); next++ {
		if p.lines[next].Depth == 1 && p.isHeader(next) {
			if others = true; strip(p.lines[next].Text[p.lines[next].Label:]) == header.RPCRDMA.Label {
				return true
			}
		}
	}
	return others && p.lines[i].Link
}

// header returns the header of the line with the cursor: the line itself, or the closest one that contains it; -1 for none.
func (p *packet) header() int {
	if p.cursor >= int64(len(p.shown)) {
		return -1
	}
	i := p.shown[p.cursor]
	if p.isHeader(i) {
		return i
	}
	for above := i - 1; above > 0; above-- {
		if p.lines[above].Depth < p.lines[i].Depth {
			return above
		}
	}
	return -1
}

// fold hides or shows the lines below the header of the cursor, also in other packets, and moves the cursor to the header.
func (p *packet) fold(hide bool) {
	i := p.header()
	if i < 0 {
		p.m.say("this line is in no header that can be folded")
		return
	}
	p.m.folds[p.name(i)] = hide
	p.goTo(i)
}

// goTo draws the tree anew, and moves the cursor to a line or to the folded header that hides it.
func (p *packet) goTo(i int) {
	p.text = p.tree(p.width)
	p.cursor = 0
	for at, line := range p.shown {
		if line <= i {
			p.cursor = int64(at)
		}
	}
}

// foldAll takes the second key of a command that begins with z: those of vim.
func (p *packet) foldAll(k string) {
	switch k {
	case "a":
		p.fold(!p.folded(p.header()))
	case "o", "c":
		p.fold(k == "c")
	case "R", "M":
		i := p.shown[min(p.cursor, int64(len(p.shown)-1))]
		for n := range p.lines {
			if p.isHeader(n) {
				p.m.folds[p.name(n)] = k == "M"
			}
		}
		p.goTo(i)
	default:
		p.m.say("z is followed by a, o, c, R or M: fold or open, open, fold, open all, fold all")
	}
}

// find moves to the next line that contains a text, or to the previous one, and opens the headers that contain it.
func (p *packet) find(m *Model, text string, back bool) {
	if text != "" {
		p.search = text
	}
	n, step := len(p.lines), 1
	if back {
		step = -1
	}
	if p.search == "" || n == 0 {
		m.say("/ searches first")
		return
	}
	from := p.shown[min(p.cursor, int64(len(p.shown)-1))]
	for i := 1; i <= n; i++ {
		at := ((from+i*step)%n + n) % n
		if !contains(strip(p.lines[at].Text), p.search) {
			continue
		}
		for depth, line := p.lines[at].Depth, at; line > 0 && depth > 1; line-- {
			if above := p.lines[line-1]; above.Depth < depth {
				depth = above.Depth
				m.folds[p.name(line-1)] = false
			}
		}
		p.goTo(at)
		return
	}
	m.say("no line contains " + clean(p.search))
}

// bytesWidth returns the number of columns of a line with this number of bytes.
func bytesWidth(each int) int { return 5 + 3*each + 2 + each }

// leastTree is the width below which the bytes are not at the side of the fields, but below them.
const leastTree = 44

func (p *packet) draw(m *Model, width, height int) (lines []string) {
	each := 16
	if width-bytesWidth(16) < leastTree+20 {
		each = 8
	}
	if width-bytesWidth(each) < leastTree {
		upper := height * 3 / 5
		tree := p.pane.draw(m, width, upper)
		for len(tree) < upper {
			tree = append(tree, "")
		}
		return append(tree, p.bytes(each, height-upper)...)
	}
	left := width - bytesWidth(each) - 1
	tree := p.pane.draw(m, left, height)
	dump := p.bytes(each, height)
	for i := range max(len(tree), len(dump)) {
		line := ""
		if i < len(tree) {
			line = tree[i]
		}
		if line = pad(line, left); i < len(dump) {
			line += " " + dump[i]
		}
		lines = append(lines, line)
	}
	return lines
}

// bytes returns the lines of the packet's bytes that are on the screen: those of the field with the
// cursor are among them.
func (p *packet) bytes(each, height int) []string {
	marked := render.PacketLine{}
	if p.cursor < int64(len(p.shown)) {
		marked = p.lines[p.shown[p.cursor]]
	}
	dump := p.m.dump(p.packets[p.i].Data, marked, each)
	top := 0
	if line := marked.From / each; line >= height {
		top = min(line-height/3, len(dump)-height)
	}
	top = max(top, 0)
	p.seen = [2]int{top * each, min((top+height)*each, len(p.packets[p.i].Data))}
	return dump[top:min(top+height, len(dump))]
}

// extent says which lines of the fields, and which bytes, are on the screen, if they are not all.
func (p *packet) extent() []string {
	texts := p.pane.extent()
	if size := len(p.packets[p.i].Data); p.seen[1]-p.seen[0] < size {
		bytes := fmt.Sprintf("bytes %d to %d of %d", p.seen[0]+1, p.seen[1], size)
		texts = append([]string{strings.Join(append(texts, bytes), ", ")}, texts...)
	}
	return texts
}

// dump returns the lines of a frame's bytes, with the marked ones in reverse or between brackets.
func (m inks) dump(data []byte, marked render.PacketLine, each int) (lines []string) {
	for at := 0; at < len(data); at += each {
		var b, text strings.Builder
		fmt.Fprintf(&b, "%04x ", at)
		for i := at; i < at+each; i++ {
			if i >= len(data) {
				b.WriteString("   ")
				continue
			}
			in := i >= marked.From && i < marked.To
			open := " "
			if !m.colors && in && (i == marked.From || i == at) {
				open = "["
			} else if !m.colors && i == marked.To && i > at && marked.To > marked.From {
				open = "]"
			}
			two := fmt.Sprintf("%02x", data[i])
			c := data[i]
			if c < 0x20 || c >= 0x7f {
				c = '.'
			}
			if in {
				b.WriteString(open + m.styled(reverse, two))
				text.WriteString(m.styled(reverse, string(rune(c))))
			} else {
				b.WriteString(open + two)
				text.WriteByte(c)
			}
		}
		lines = append(lines, b.String()+"  "+text.String())
	}
	return lines
}
