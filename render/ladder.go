package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// ladderBars is how many handles get a bar of their own beside the ladder.
const ladderBars = 8

// ladderFold is how many lines of one kind in a row are drawn before the rest
// fold into one.
const ladderFold = 3

// rung is one line of a ladder.
type rung struct {
	at      record.Time
	packets string // "104" or "104-231"
	toRight bool
	double  bool // RDMA, not a message
	text    string
	ink     ink
	pause   bool           // nothing is sent
	kind    string         // lines of one kind fold
	marks   map[int]byte   // bars: what to draw at this line
	handle  []record.Hex32 // whose bars are touched
	says    []string       // what stands below it
}

// Ladder draws one transaction: requester left, responder right, time down, a
// line an operation, and beside it a bar for each handle that the Call exposed.
func Ladder(w io.Writer, theme *Theme, width int, r *record.Transaction) error {
	if width <= 0 {
		width = 100
	}
	width = min(width, 132)
	bars := analyze.Exposures(r, lastTime(r))
	var b strings.Builder
	heading(&b, theme, width, r)
	rungs := foldRungs(makeRungs(theme, r, bars))
	numbers := 6
	for i := range rungs {
		numbers = max(numbers, len(rungs[i].packets))
	}
	shown := min(len(bars), ladderBars)
	beside := 0
	if shown > 0 {
		beside = shown*2 + 1
	}
	stamp, stamps := theme.ladderTimes(r)
	arrow := max(width-stamps-1-numbers-1-beside-1, 40)
	fmt.Fprintf(&b, "%s%*s %*s %-*s%s\n", theme.dim.before, stamps, "TIME", numbers, "PACKET", arrow, "requester"+strings.Repeat(" ", max(0, arrow-18))+"responder", barHeads(shown)+theme.dim.after)
	open := make([]bool, shown)
	for i := range rungs {
		g := &rungs[i]
		fmt.Fprintf(&b, "%*s %*s %s%s%s", stamps, stamp(g.at), numbers, g.packets, g.ink.before, theme.arrowLine(g, arrow), g.ink.after)
		b.WriteString(theme.barCells(g, bars[:shown], open))
		b.WriteByte('\n')
		for _, line := range g.says {
			line = strings.Repeat(" ", stamps+numbers+5) + theme.fit(line, arrow-3)
			line += strings.Repeat(" ", max(stamps+numbers+2+arrow-wide(line), 0)) + theme.barCells(&rung{}, bars[:shown], open)
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	legend(&b, theme, bars)
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// ladderTimes is how a ladder shows times, and how wide they are: since the Call
// or the line before, or as the others are shown.
func (t *Theme) ladderTimes(r *record.Transaction) (stamp func(record.Time) string, width int) {
	previous := r.Start()
	switch t.times {
	case Delta:
		return func(at record.Time) string {
			d := at.Sub(previous)
			previous = at
			return Duration(d)
		}, 10
	case UTC, Local, Epoch:
		c := clock{form: t.times}
		return func(at record.Time) string { return string(c.append(nil, at)) }, c.width()
	}
	return func(at record.Time) string { return Duration(at.Sub(previous)) }, 10
}

func lastTime(r *record.Transaction) record.Time {
	if n := len(r.Timeline); n > 0 {
		return r.Timeline[n-1].Time
	}
	return r.Start()
}

// heading says what the transaction is.
func heading(b *strings.Builder, theme *Theme, width int, r *record.Transaction) {
	procedure := Procedure(r)
	title := fmt.Sprintf("XID %v  connection %d  %s  ", r.XID, r.Connection, r.Direction)
	if len(title)+len(procedure) > width {
		fmt.Fprintf(b, "%s%s%s\n", theme.key.before, strings.TrimRight(title, " "), theme.key.after)
		for _, line := range wrap(procedure, width-2) {
			fmt.Fprintf(b, "  %s\n", line)
		}
	} else {
		fmt.Fprintf(b, "%s%s%s%s\n", theme.key.before, title, procedure, theme.key.after)
	}
	word, shade := status(theme, r)
	took := ""
	if latency, known := r.LatencyNS.Get(); known {
		took = " after " + Duration(latency)
	}
	if p := phases(r); p != "" {
		took += ": " + p
	}
	lines := wrap(took, max(width-len(word)-1, narrowest))
	fmt.Fprintf(b, "%s%s%s", shade.before, word, shade.after)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\n ")
		}
		b.WriteString(" " + strings.TrimLeft(line, " "))
	}
	b.WriteByte('\n')
	for _, sentence := range Explain(r) {
		for _, line := range wrap(sentence, width) {
			fmt.Fprintf(b, "%s%s%s\n", theme.warn.before, line, theme.warn.after)
		}
	}
	if len(r.Findings) > 0 {
		fmt.Fprintf(b, "%sfindings: %s%s\n", theme.bad.before, strings.Join(r.Findings, ", "), theme.bad.after)
	}
	if id, known := r.RetransmitOf.Get(); known {
		fmt.Fprintf(b, "%sretransmission of transaction %d%s\n", theme.warn.before, id, theme.warn.after)
	}
}

// phases says what the latency is made of.
func phases(r *record.Transaction) string {
	p := r.Phases.Or(record.Phases{})
	if !p.ReadNS.Known() && !p.WriteNS.Known() && p.WaitNS == 0 {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		name string
		ns   record.Opt[int64]
	}{
		{"to Read", p.ToReadNS},
		{"Reads", p.ReadNS},
		{"to Write", p.ToWriteNS},
		{"Writes", p.WriteNS},
		{"to Reply", p.ToReplyNS},
		{"waits", record.SomeIf(p.WaitNS, p.WaitNS > 0)},
	} {
		if ns, known := p.ns.Get(); known {
			parts = append(parts, p.name+" "+Duration(ns))
		}
	}
	return strings.Join(parts, ", ")
}

// makeRungs words the events.
func makeRungs(theme *Theme, r *record.Transaction, bars []analyze.Exposure) []rung {
	var rungs []rung
	var writeFirst *record.Event
	for i := range r.Timeline {
		e := &r.Timeline[i]
		g := rung{at: e.Time, packets: fmt.Sprint(e.Packet), toRight: e.From == record.Requester, kind: string(e.Event) + string(e.From)}
		handle, size := e.Handle.Or(0), Bytes(e.Bytes.Or(0))
		switch e.Event {
		case record.EventCall:
			g.text, g.ink, g.kind = messageText("Call", r.Call), theme.key, ""
			if r.Call.LastPacket != r.Call.Packet {
				g.packets = fmt.Sprintf("%d-%d", r.Call.Packet, r.Call.LastPacket)
			}
			g.says = operationLines(r.Decoded.Call)
			for _, x := range bars {
				g.mark(x.Handle, '+')
			}
		case record.EventReply:
			m := r.Reply
			g.text, g.ink, g.kind = "Reply, refused", theme.bad, ""
			if m != nil {
				g.text, g.ink, g.says = messageText("Reply", m), theme.key, operationLines(r.Decoded.Reply)
				if m.LastPacket != m.Packet {
					g.packets = fmt.Sprintf("%d-%d", m.Packet, m.LastPacket)
				}
			}
			if !r.Invalidation.Known() && m != nil {
				for _, handle := range r.NotInvalidated {
					g.mark(handle, 'o')
				}
			}
		case record.EventInvalidate:
			g.text, g.ink, g.kind = fmt.Sprintf("Send With Invalidate %v", handle), theme.key, ""
			g.mark(handle, 'x')
			for _, handle := range r.NotInvalidated {
				g.mark(handle, 'o')
			}
		case record.EventRead:
			g.text, g.double = fmt.Sprintf("RDMA Read of %s B %v", size, handle), true
			g.mark(handle, '|')
		case record.EventReadDone:
			g.text, g.double = fmt.Sprintf("%s B of %v, %s", size, handle, packets(e)), true
			g.toRight = true // the data goes the other way than the request
			g.mark(handle, '#')
		case record.EventWriteFirst:
			writeFirst = e
			continue
		case record.EventWriteLast:
			g.text, g.double = fmt.Sprintf("RDMA Write of %s B %v, %s", size, handle, packets(e)), true
			if writeFirst != nil && writeFirst.Offset == e.Offset {
				if g.at = writeFirst.Time; writeFirst.Packet != e.Packet {
					g.packets = fmt.Sprintf("%d-%d", writeFirst.Packet, e.Packet)
				}
			}
			writeFirst = nil
			g.mark(handle, '#')
		case record.EventAck:
			g.text, g.ink = "ack of the "+title(e.Of), theme.dim
		case record.EventNak:
			g.text, g.ink, g.kind = fmt.Sprintf("NAK of the %s: %s", title(e.Of), e.Reason), theme.bad, ""
		case record.EventRetransmit:
			g.text, g.ink = fmt.Sprintf("%s again: %s", title(e.Of), packets(e)), theme.warn
			if last := e.LastPacket.Or(e.Packet); last != e.Packet {
				g.packets = fmt.Sprintf("%d-%d", e.Packet, last)
			}
		case record.EventOutOfOrder:
			g.text, g.ink, g.kind = fmt.Sprintf("%s, before what it has to follow", title(e.Of)), theme.warn, ""
			if filled, known := e.LastPacket.Get(); known {
				g.text = fmt.Sprintf("%s, before packet %d, which it has to follow", title(e.Of), filled)
			}
		}
		rungs = append(rungs, g)
	}
	rungs = withPauses(rungs, theme, r)
	if writeFirst != nil { // its end was not seen
		rungs = append(rungs, rung{
			at: writeFirst.Time, packets: fmt.Sprint(writeFirst.Packet), double: true, ink: theme.warn,
			text: fmt.Sprintf("RDMA Write to %v, unfinished", writeFirst.Handle.Or(0)),
		})
	}
	return rungs
}

// withPauses puts the waits in their places.
func withPauses(rungs []rung, theme *Theme, r *record.Transaction) []rung {
	for i := range r.Waits {
		wait := &r.Waits[i]
		if wait.Reason == record.CreditLimit { // before the Call
			continue
		}
		at := slices.IndexFunc(rungs, func(g rung) bool { return g.at >= wait.To })
		if at < 0 {
			at = len(rungs)
		}
		rungs = slices.Insert(rungs, at, rung{at: wait.From, pause: true, ink: theme.warn, text: pauseText(wait), packets: ""})
	}
	return rungs
}

func (g *rung) mark(handle record.Hex32, c byte) {
	if g.marks == nil {
		g.marks = map[int]byte{}
	}
	g.marks[len(g.handle)] = c
	g.handle = append(g.handle, handle)
}

// title is an event's name as a word: "read_request" is an RDMA Read.
func title(of record.EventKind) string {
	switch of {
	case record.EventCall:
		return "Call"
	case record.EventReply:
		return "Reply"
	case record.EventRead:
		return "RDMA Read"
	case record.EventReadDone:
		return "Read data"
	case record.EventWrite:
		return "RDMA Write"
	}
	return string(of)
}

// packets says how many packets an event took.
func packets(e *record.Event) string {
	return plural(e.Packets.Or(1), "packet")
}

func messageText(name string, m *record.Message) string {
	s := fmt.Sprintf("%s %s %s", name, m.RDMAProc, m.Form)
	if n, known := m.SendBytes.Get(); known {
		s += fmt.Sprintf(", Send %s B", Bytes(int64(n)))
	}
	if n, known := m.PayloadBytes.Get(); known {
		s += fmt.Sprintf(", payload %s B", Bytes(n))
	}
	return s
}

// foldRungs folds long runs of lines of one kind into one line that says how
// many.
func foldRungs(rungs []rung) []rung {
	var out []rung
	for i := 0; i < len(rungs); {
		j := i
		for j < len(rungs) && rungs[j].kind != "" && rungs[j].kind == rungs[i].kind {
			j++
		}
		if j-i <= ladderFold+1 {
			j = max(j, i+1)
			out = append(out, rungs[i:j]...)
			i = j
			continue
		}
		out = append(out, rungs[i:i+ladderFold]...)
		folded := rungs[i+ladderFold]
		folded.text = fmt.Sprintf("... %d more of these, to packet %s", j-i-ladderFold, rungs[j-1].packets)
		folded.marks, folded.handle = nil, nil
		for _, g := range rungs[i+ladderFold : j] {
			for n, handle := range g.handle {
				folded.mark(handle, g.marks[n])
			}
		}
		out = append(out, folded)
		i = j
	}
	return out
}

// arrowLine draws an arrow of a width with the text in it.
func (t *Theme) arrowLine(g *rung, width int) string {
	c := t.glyphs
	if g.pause {
		text := clean(g.text)
		text = text[:min(len(text), width-2)]
		left := (width - 2 - len(text)) / 2
		return c.pause + strings.Repeat(" ", left) + text + strings.Repeat(" ", width-2-len(text)-left) + c.pause
	}
	line := c.line
	if g.double {
		line = c.double
	}
	text := t.fit(clean(g.text), width-8)
	left := max((width-wide(text)-6)/2, 1)
	right := max(width-wide(text)-6-left, 1)
	if g.toRight {
		return c.side + strings.Repeat(line, left) + " " + text + " " + strings.Repeat(line, right) + c.right + c.side
	}
	return c.side + c.left + strings.Repeat(line, left) + " " + text + " " + strings.Repeat(line, right) + c.side
}

func barHeads(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(' ')
		b.WriteByte(byte('a' + i))
	}
	return b.String()
}

// barCells draws the bars at one line: what happened to each handle, or that it
// is still exposed.
func (t *Theme) barCells(g *rung, bars []analyze.Exposure, open []bool) string {
	var line inked
	for i := range bars {
		c := byte(' ')
		if open[i] {
			c = '|'
		}
		for n, handle := range g.handle {
			if handle == bars[i].Handle {
				c = g.marks[n]
				open[i] = c != 'x' && c != 'o'
			}
		}
		line.add(" ", ink{})
		look := ink{}
		if t.unicode && c != ' ' {
			look = t.exposed
			if c == '#' {
				look = t.moved
			}
		}
		line.add(t.mark(c), look)
	}
	return line.String()
}

// mark is how a mark of a bar is drawn.
func (t *Theme) mark(c byte) string {
	if drawn := t.glyphs.marks[c]; drawn != "" {
		return drawn
	}
	return string(rune(c))
}

// legend says which handle each bar is and how it ended.
func legend(b *strings.Builder, theme *Theme, bars []analyze.Exposure) {
	if len(bars) == 0 {
		return
	}
	fmt.Fprintf(b, "%s%s exposed  %s data moved  %s invalidated by the responder  %s left to the requester%s\n",
		theme.dim.before, theme.mark('+'), theme.mark('#'), theme.mark('x'), theme.mark('o'), theme.dim.after)
	for i, x := range bars {
		name := " "
		if i < ladderBars {
			name = string(rune('a' + i))
		}
		end := map[string]string{
			analyze.ByResponder: "invalidated by the responder", analyze.ByRequester: "left to the requester", analyze.ByNobody: "no Reply",
		}[x.EndedBy]
		fmt.Fprintf(b, "  %s %v %s, %s B moved, %s, %s\n", name, x.Handle, x.Chunk, Bytes(x.MovedBytes), Duration(x.To.Sub(x.From)), end)
	}
}

// narrowest is the least width that text is wrapped to where there is a choice.
const narrowest = 20

// wrap breaks text at spaces into lines of at most width, and words that are
// longer. A width that leaves no room is taken as one that leaves some.
func wrap(text string, width int) (lines []string) {
	width = max(width, 1)
	line := ""
	for _, word := range strings.Fields(text) {
		for len(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			lines, word = append(lines, word[:width]), word[width:]
		}
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
