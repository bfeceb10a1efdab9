package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Screen is where something is drawn, and how.
type Screen struct {
	Out   io.Writer
	Theme *Theme
	Width int // of the terminal, 0 for none

	Height int // of a chart, in lines, 0 for the usual
}

// Overview draws a capture on one screen; file is what to name in the commands
// that show more, as a shell takes it: see [Shell].
func Overview(to Screen, o *analyze.Overview, s *record.Summary, file string) error {
	if to.Width <= 0 {
		to.Width = 120
	}
	v := overview{theme: to.Theme, width: to.Width, o: o, s: s, file: file}
	v.who()
	v.health()
	v.rpcs()
	v.time()
	v.slowest()
	v.busiest()
	v.memory()
	v.findings()
	_, err := io.WriteString(to.Out, v.b.String())
	return err
}

// overview is what is being drawn.
type overview struct {
	b     strings.Builder
	theme *Theme
	width int
	o     *analyze.Overview
	s     *record.Summary
	file  string
}

// overviewMargin is what stands left of the text: labels, and where boxes can be
// drawn a line.
const overviewMargin = 10

// part is a piece of a row in one ink.
type part struct {
	text string
	ink  ink
}

// margin begins a line; a label begins a section.
func (v *overview) margin(label string) {
	room, side := overviewMargin, ""
	if v.theme.unicode {
		room, side = overviewMargin-2, v.theme.dim.before+v.theme.glyphs.side+v.theme.dim.after+" "
	}
	if label != "" {
		v.b.WriteString(v.theme.key.before + label + v.theme.key.after)
	}
	v.b.WriteString(strings.Repeat(" ", room-len(label)) + side)
}

// row is a line that is not wrapped, but cut to the width with a mark.
func (v *overview) row(label string, parts ...part) {
	v.margin(label)
	total, left := 0, v.width-overviewMargin
	for i := range parts {
		parts[i].text = clean(parts[i].text)
		total += len(parts[i].text)
	}
	cut := total > left
	if cut {
		left--
	}
	var line inked
	for _, p := range parts {
		if n := min(len(p.text), left); n > 0 {
			line.add(p.text[:n], p.ink)
			left -= n
		}
	}
	if cut {
		line.add(v.theme.glyphs.cut, v.theme.dim)
	}
	v.b.WriteString(line.String() + "\n")
}

// line is text that is wrapped.
func (v *overview) line(label, text string, shade ink) {
	for _, line := range wrap(text, v.width-overviewMargin) {
		v.row(label, part{line, shade})
		label = ""
	}
}

// once is a label for the first row of a section, and none for the others.
func once(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

// more says which command shows more.
func (v *overview) more(command string) {
	v.margin("")
	fmt.Fprintf(&v.b, "%s%s rdmadump %s%s\n", v.theme.dim.before, v.theme.glyphs.right, strings.ReplaceAll(command, "FILE", v.file), v.theme.dim.after)
}

// who is in the capture.
func (v *overview) who() {
	s := v.s
	text := plural(s.Packets, "packet") + ", " + strconv.FormatInt(s.RDMA, 10) + " of RDMA"
	if first, known := s.First.Get(); known {
		text += ", from " + first.String()[:19] + " UTC, " + Duration(s.Last.Or(first).Sub(first))
	}
	v.line("capture", text, ink{})
	for i, g := range v.o.Groups {
		if i == 4 {
			v.row("", part{fmt.Sprintf("and %s more", plural(int64(len(v.o.Groups)-i), "pair")), v.theme.dim})
			break
		}
		text := fmt.Sprintf("%s > %s  %s, %s: %s, %s", g.Client.Or("?"), g.Server.Or("?"), g.Transport, g.UpperLayer, plural(int64(g.Connections), "connection"), plural(g.Transactions, "RPC"))
		if missed := g.Connections - g.Handshakes; missed > 0 {
			text += fmt.Sprintf(", %s without handshake", plural(int64(missed), "one"))
		}
		v.row("", part{text, ink{}})
	}
	if s.TimeBackwards > 0 {
		text := fmt.Sprintf("times ran backwards %s, by up to %s, first at packet %d", plural(s.TimeBackwards, "time"), Duration(s.TimeBackwardsNS), s.TimeBackwardsPacket.Or(0))
		v.row("", part{text, v.theme.warn})
	}
	if broken, known := s.InputError.Get(); known {
		v.row("", part{"the capture broke off: " + broken, v.theme.warn})
	}
	v.more("connections FILE")
}

// health is what the transport went through.
func (v *overview) health() {
	h := &v.o.Health
	var odd []string
	for _, n := range []struct {
		n    int64
		what string
	}{
		{h.Retransmitted, "sent again"},
		{h.OutOfOrder, "out of order"},
		{h.Naks, "NAKs"},
		{h.RNRNaks, "RNR NAKs"},
		{v.s.ICRCBad, "with a bad checksum"},
		{h.NotCaptured, "missing from the capture"},
		{int64(v.s.CaptureDrops), "dropped by the capture"},
		{v.s.Truncated, "cut short"},
	} {
		if n.n > 0 {
			text := strconv.FormatInt(n.n, 10) + " " + n.what
			if n.n*1000 >= h.Packets && n.n <= h.Packets {
				text += fmt.Sprintf(" (%.1f%%)", float64(n.n)*100/float64(h.Packets))
			}
			odd = append(odd, text)
		}
	}
	pauses := "" // which are not among the packets of connections
	if v.s.PFCPauses > 0 {
		pauses = "; " + plural(v.s.PFCPauses, "PFC pause")
	}
	switch {
	case v.s.RDMA == 0:
		v.line("health", "nothing of RDMA is in it: neither RoCE, nor iWARP, nor native InfiniBand", v.theme.warn)
	case len(odd) == 0 && pauses == "":
		v.line("health", "every packet once, in order; no NAK, no loss", v.theme.good)
	case len(odd) == 0:
		v.line("health", "every packet once, in order; no NAK, no loss"+pauses, v.theme.warn)
	default:
		v.line("health", "of "+plural(h.Packets, "packet")+": "+strings.Join(odd, ", ")+pauses, v.theme.warn)
		if h.Retransmitted > 0 {
			v.more("packets FILE -Y 'marks == \"retransmitted\"'")
		}
	}
	for i, e := range v.o.Ended {
		if i == 3 {
			break
		}
		text := fmt.Sprintf("%s ended by %s", plural(e.Count, "connection"), strings.ReplaceAll(string(e.How), "_", " "))
		if by, known := e.By.Get(); known {
			text += " of the " + string(by)
		}
		if e.OutstandingCalls > 0 {
			text += fmt.Sprintf("; %s died", plural(e.OutstandingCalls, "RPC"))
			if len(e.XIDs) > 0 {
				text += fmt.Sprintf(", %v first", e.XIDs[0])
			}
		}
		v.row("", part{text, v.theme.bad})
		v.more(fmt.Sprintf("connections FILE --conn %d", e.First))
	}
}

// rpcs is what became of transactions.
func (v *overview) rpcs() {
	r := &v.o.RPCs
	total := r.Complete + r.NoReply + r.NoCall + r.RDMAError
	text := plural(total, "RPC")
	shade := v.theme.good
	if total == 0 {
		return
	}
	if total == r.Complete && r.Failed == 0 {
		text += ", all answered"
	}
	for _, n := range []struct {
		n    int64
		what string
		bad  bool
	}{
		{r.NoReply, "without Reply", true},
		{r.RDMAError, "answered by RDMA_ERROR", true},
		{r.NoCall, "whose Call is not in the capture", false},
		{r.Failed, "with a status of error", false},
		{r.RetransmittedOnNewConnection, "repeated on another connection", true},
		{r.Backward, "called by the server", false},
	} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
			if n.bad {
				shade = v.theme.warn
			}
		}
	}
	v.line("RPCs", text, shade)
	switch {
	case r.NoReply > 0:
		v.more("FILE -Y 'status == no_reply'")
	case r.RDMAError > 0:
		v.more("FILE -Y 'status == rdma_error'")
	}
}

// time is where the time of all went.
func (v *overview) time() {
	t := &v.o.Time
	if t.TotalNS == 0 {
		return
	}
	p := &t.Phases
	type phase struct {
		ns   int64
		name string
		ink  ink
	}
	phases := []phase{
		{p.WaitNS, "waiting", v.theme.warn},
		{p.ToReadNS, "to first RDMA Reads", v.theme.exposed},
		{p.ReadNS, "RDMA Reads", v.theme.moved},
		{p.ToWriteNS, "to first RDMA Writes", v.theme.exposed},
		{p.WriteNS, "RDMA Writes", v.theme.moved},
		{p.ToReplyNS, "to Replies", v.theme.good},
	}
	slices.SortStableFunc(phases, func(a, b phase) int { return cmp.Compare(b.ns, a.ns) })
	var words []string
	var bar inked
	passed, drawn := int64(0), 0
	for i, x := range phases {
		percent := x.ns * 100 / t.TotalNS
		if percent > 0 {
			words = append(words, fmt.Sprintf("%d%% %s", percent, x.name))
		}
		passed += percent
		shade := v.theme.glyphs.shades[min(i, len(v.theme.glyphs.shades)-1)]
		for to := int(min(passed, 100)) * min(v.width-overviewMargin, 50) / 100; drawn < to; drawn++ {
			bar.add(shade, x.ink)
		}
	}
	v.line("time", fmt.Sprintf("%s of all RPCs together: %s", Duration(t.TotalNS), strings.Join(words, ", ")), ink{})
	if v.theme.unicode && drawn > 0 {
		v.margin("")
		v.b.WriteString(bar.String() + "\n")
	}
	for i, w := range t.Waits {
		if i == 4 {
			break
		}
		v.row("", part{fmt.Sprintf("%s %s: %s", Duration(w.NS), plural(w.Count, "wait"), waitText(w.Reason)), v.theme.warn})
	}
	v.more("stats FILE")
}

// slowest is what took longest, and why.
func (v *overview) slowest() {
	for i, slow := range v.o.Slowest {
		r := slow.Transaction
		text := "  " + shortProcedure(r, "")
		if cause := Cause(r); cause != "" {
			text += ": " + cause
		}
		v.row(once(i, "slowest"), part{fmt.Sprintf("%8s  ", Duration(r.LatencyNS.Or(0))), ink{}}, part{r.XID.String(), v.theme.key}, part{text, ink{}})
	}
	if len(v.o.Slowest) > 0 {
		v.more(fmt.Sprintf("FILE --xid %v", v.o.Slowest[0].Transaction.XID))
	}
}

// busiest is what took most time together.
func (v *overview) busiest() {
	for i, s := range v.o.Busiest {
		if i == 3 || s.TotalNS == 0 {
			break
		}
		text := fmt.Sprintf("%8s  %d x %s, p50 %s, worst %s", Duration(s.TotalNS), s.Count, s.Name, quantile(s.Latency.P50), quantile(s.Latency.Max))
		v.row(once(i, "busiest"), part{text, ink{}})
	}
}

// memory is credits and invalidation.
func (v *overview) memory() {
	if v.s.RDMA == 0 {
		return
	}
	if len(v.o.Credits) == 0 {
		v.line("credits", "never all in use", ink{})
	} else {
		c := v.o.Credits[0]
		text := fmt.Sprintf("all %d of connection %d were in use (%d Calls in flight at most)", c.Granted.Or(0), c.Connection, c.Peak)
		if n := len(v.o.Credits) - 1; n > 0 {
			text += fmt.Sprintf(", and those of %s", plural(int64(n), "other connection"))
		}
		v.line("credits", text, v.theme.warn)
		v.more(fmt.Sprintf("connections FILE --conn %d --timeline", c.Connection))
	}
	h := &v.o.Handles
	if h.Exposed == 0 {
		return
	}
	text := fmt.Sprintf("%s exposed by answered Calls: %d%% invalidated by the responder, %d left to the requester", plural(h.Exposed, "handle"), int(h.Share.Or(0)*100+0.5), h.LocalInvalidations)
	if agreed, known := h.Negotiated.Get(); known && !agreed && h.ByServer > 0 {
		text += "; remote invalidation was not negotiated, and used all the same"
	}
	v.line("handles", text, ink{})
}

// findings is what broke rules.
func (v *overview) findings() {
	if len(v.o.Findings) == 0 {
		if v.s.RDMA > 0 {
			v.line("check", "no rule broken", v.theme.good)
		}
		return
	}
	for i, f := range v.o.Findings {
		if i == 6 {
			v.row("", part{fmt.Sprintf("and %s more", plural(int64(len(v.o.Findings)-i), "rule")), v.theme.dim})
			break
		}
		v.row(once(i, "check"), part{fmt.Sprintf("%-7s", f.Severity), v.theme.severity(f.Severity)}, part{fmt.Sprintf(" %d x ", f.Count), ink{}},
			part{f.Rule, v.theme.key}, part{": " + f.Message, ink{}})
	}
	v.more("check FILE")
}
