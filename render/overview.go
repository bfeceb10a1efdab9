package render

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/claim"
)

// Screen is an output for drawings.
type Screen struct {
	Out   io.Writer
	Theme *Theme
	Width int // of the terminal, 0 if there is none

	Height int // of a chart, in lines; 0 for the default
}

// Overview draws the summary of a capture. The commands that it suggests contain file,
// which must be quoted for a shell: see [Shell].
func Overview(to Screen, o *analyze.Overview, s *record.Summary, file string) error {
	if to.Width <= 0 {
		to.Width = 120
	}
	v := overview{theme: to.Theme, width: to.Width, o: o, s: s, file: file}
	v.draw()
	_, err := io.WriteString(to.Out, v.b.String())
	return err
}

// OverviewLine is a line of an overview, and the arguments of rdmadump that show more about it: FILE stands for the capture. They
// are empty if there are none.
type OverviewLine struct{ Text, Command string }

// OverviewLines returns the lines of Overview.
func OverviewLines(theme *Theme, width int, o *analyze.Overview, s *record.Summary, file string) (lines []OverviewLine) {
	v := overview{theme: theme, width: width, o: o, s: s, file: file}
	v.draw()
	at := 0
	for text := range strings.Lines(v.b.String()) {
		line := OverviewLine{Text: strings.TrimSuffix(text, "\n")}
		for len(v.topics) > 0 && v.topics[0].to <= at {
			v.topics = v.topics[1:]
		}
		if len(v.topics) > 0 && v.topics[0].from <= at {
			line.Command = v.topics[0].command
		}
		lines = append(lines, line)
		at += len(text)
	}
	return lines
}

// OverviewMarkdown writes the same as Markdown: an item of a list for each label, with its lines and commands below it. It is for
// summaries of jobs, issues and other pages.
func OverviewMarkdown(to io.Writer, o *analyze.Overview, s *record.Summary, file string) error {
	v := overview{theme: NewTheme(false), width: math.MaxInt32, o: o, s: s, file: file, markdown: true}
	v.draw()
	_, err := io.WriteString(to, v.b.String())
	return err
}

// draw draws all sections.
func (v *overview) draw() {
	v.verdict()
	v.capture()
	v.points()
	v.mountSteps()
	v.health()
	v.traffic()
	v.mounted()
	v.rpcs()
	v.throughput()
	v.time()
	v.slowest()
	v.busiest()
	v.credits()
	v.handles()
	v.findings()
}

// overview is the drawing in progress.
type overview struct {
	b     strings.Builder
	theme *Theme
	width int
	o     *analyze.Overview
	s     *record.Summary
	file  string

	markdown bool
	section  int     // where the last section begins
	topics   []topic // in the order of the drawing
}

// topic is a part of the drawing, and the command that shows more about it.
type topic struct {
	from, to int
	command  string
}

// about says that a command shows more about the lines of the last section that no command is about.
func (v *overview) about(command string) {
	from := v.section
	if n := len(v.topics); n > 0 {
		from = max(from, v.topics[n-1].to)
	}
	v.topics = append(v.topics, topic{from, v.b.Len(), command})
}

// overviewMargin is the width of the labels on the left, including a vertical line on
// terminals that can draw one.
const overviewMargin = 10

// part is a piece of a row in one ink.
type part struct {
	text string
	ink  ink
}

// margin begins a line; a label begins a section.
func (v *overview) margin(label string) {
	if v.markdown {
		v.b.WriteString("  - ")
		return
	}
	if label != "" {
		v.section = v.b.Len()
	}
	width, side := overviewMargin, ""
	if v.theme.unicode {
		width, side = overviewMargin-2, v.theme.dim.of(v.theme.glyphs.side)+" "
	}
	if label != "" {
		v.b.WriteString(v.theme.key.of(label))
	}
	v.b.WriteString(strings.Repeat(" ", width-len(label)) + side)
}

// row writes a line that is not wrapped. If the line is too long, it is shortened and ends
// with a mark.
func (v *overview) row(label string, parts ...part) {
	if v.markdown {
		v.item(label, parts)
		return
	}
	v.margin(label)
	total, left := 0, v.width-overviewMargin
	for i := range parts {
		parts[i].text = clean(parts[i].text)
		total += wide(parts[i].text)
	}
	shortened := total > left
	if shortened {
		left--
	}
	var line inked
	for _, p := range parts {
		n := start(p.text, left)
		if n > 0 {
			line.add(p.text[:n], p.ink)
		}
		if left -= wide(p.text[:n]); n < len(p.text) {
			break
		}
	}
	if shortened {
		line.add(v.theme.glyphs.shortened, v.theme.dim)
	}
	v.b.WriteString(line.String() + "\n")
}

// item writes a line as Markdown.
func (v *overview) item(label string, parts []part) {
	if label != "" {
		fmt.Fprintf(&v.b, "- **%s**\n", markdown(label))
	}
	v.margin("")
	for i, p := range parts {
		text := markdown(clean(p.text))
		if i == 0 {
			text = strings.TrimLeft(text, " ")
		}
		v.b.WriteString(text)
	}
	v.b.WriteString("\n")
}

// noLinks escapes what becomes a link in GitHub's Markdown without any mark.
var noLinks = strings.NewReplacer("://", `:\//`, "www.", `www\.`)

// markdown returns a text in which nothing means something to Markdown or HTML.
func markdown(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_{}[]()#+!|~>@", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return noLinks.Replace(b.String())
}

// line writes text that is wrapped.
func (v *overview) line(label, text string, shade ink) {
	for _, line := range Wrap(text, v.width-overviewMargin) {
		v.row(label, part{line, shade})
		label = ""
	}
}

// once returns the label for the first row of a section, and no label for the others.
func once(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

// suggest writes a command that shows more.
func (v *overview) suggest(command string) {
	v.margin("")
	text := "rdmadump " + strings.ReplaceAll(command, "FILE", v.file)
	if v.markdown {
		fence := "`"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&v.b, "%s %s %s\n", fence, text, fence)
		return
	}
	v.b.WriteString(v.theme.dim.of(v.theme.glyphs.right+" "+text) + "\n")
	v.about(command)
}

// verdict writes where the trouble is.
func (v *overview) verdict() {
	d := &v.o.Verdict
	shade := v.theme.bad
	switch d.Where {
	case analyze.Clear:
		shade = v.theme.good
	case analyze.Unproven, analyze.InConfiguration:
		shade = v.theme.warn
	}
	if d.Faultless() {
		shade = v.theme.warn
	}
	v.line("verdict", d.Line, shade)
	if len(d.Evidence) > 0 {
		v.suggest(d.Evidence[0].Command)
	}
}

// capture writes what the capture contains.
func (v *overview) capture() {
	s := v.s
	text := record.Plural(s.Packets, "packet") + ", " + carried(s)
	if first, known := s.First.Get(); known {
		text += ", from " + first.String()[:19] + " UTC"
		if long := s.Last.Or(first).Sub(first); long >= 0 { // otherwise the clock was set back
			text += ", " + Duration(long)
		}
	}
	v.line("capture", text, ink{})
	for i, g := range v.o.Groups {
		if i == 4 {
			v.row("", part{"and " + MorePairs(len(v.o.Groups), i) + " of client and server", v.theme.dim})
			break
		}
		text := fmt.Sprintf("%s > %s  %s, %s: %s, %s", g.Client.Or("?"), g.Server.Or("?"), g.Transport, upperLayer(g.UpperLayer), record.Plural(int64(g.Connections), "connection"), record.Plural(g.Transactions, "RPC"))
		if missed := g.Connections - g.Handshakes; missed > 0 {
			text += fmt.Sprintf(", %d without a captured handshake", missed)
		}
		if unknown := g.Connections - g.ClientsKnown; unknown > 0 {
			text += fmt.Sprintf(", %d of which it is not known who is the client", unknown)
		}
		v.row("", part{text, ink{}})
	}
	if len(v.o.Capture) > 0 {
		v.line("", strings.Join(v.o.Capture, "; "), v.theme.warn)
	}
	if v.o.Selected != "" {
		v.line("", v.o.Selected, v.theme.warn)
	}
	if s.TimeBackwards > 0 {
		text := fmt.Sprintf("time stamps go backwards %s, by up to %s, first at packet %d", record.Plural(s.TimeBackwards, "time"), Duration(s.TimeBackwardsNS), s.TimeBackwardsPacket.Or(0))
		v.row("", part{text, v.theme.warn})
	}
	for _, sentence := range analyze.Unopened(s) {
		v.line("", sentence, v.theme.warn)
	}
	if problem, known := s.InputError.Get(); known {
		v.row("", part{"the input is damaged: " + problem, v.theme.warn})
	}
	v.suggest("connections FILE")
}

// maxMounted limits the mounts that an overview lists.
const maxMounted = 4

// mounted writes what clients and servers agreed on.
func (v *overview) mounted() {
	for i, m := range v.o.Mounted {
		if i == maxMounted {
			v.row("", part{"and " + MorePairs(len(v.o.Mounted), i) + " of client, server and version", v.theme.dim})
			break
		}
		v.line(once(i, "mounted"), MountText(&m), ink{})
		for _, text := range OutageTexts(&m, v.s.First.Or(0)) {
			v.line("", text, v.theme.warn)
		}
		v.about("connections FILE")
	}
}

// MorePairs says how many pairs of a list are not shown. An overview knows a limited number of pairs.
func MorePairs(of, shown int) string {
	text := record.Plural(int64(of-shown), "more pair")
	if of == analyze.MaxPairs {
		text = "at least " + text
	}
	return text
}

// ends returns the two ends of an RPC or a step, as far as they differ between those of the capture, and spaces after them.
func (v *overview) ends(client, server record.Opt[string]) string {
	clients, servers := map[string]bool{}, map[string]bool{}
	for _, g := range v.o.Groups {
		if g.Transactions > 0 {
			clients[g.Client.Or("")], servers[g.Server.Or("")] = true, true
		}
	}
	text := ""
	if len(clients) > 1 {
		text = client.Or("?")
	}
	if len(servers) > 1 {
		text += " > " + server.Or("?")
	}
	if text != "" {
		text = strings.TrimPrefix(text, " ") + "  "
	}
	return text
}

// MountText says what a client and a server agreed on.
func MountText(m *analyze.Mounted) string {
	text := fmt.Sprintf("%s > %s  NFS %s", m.Client.Or("?"), m.Server.Or("?"), m.NFSVersion)
	if m.Security != "" {
		text += ", " + m.Security
	}
	text += ", " + record.Plural(int64(m.Connections), "connection")
	switch {
	case m.Connections < 2 || m.AtOnce == 0:
	case m.AtOnce == 1:
		text += " one after another"
	case m.AtOnce == m.Connections:
		text += " at the same time"
	default:
		text += fmt.Sprintf(", at most %d at the same time", m.AtOnce)
	}
	if mtu, known := m.MTU.Get(); known {
		text += fmt.Sprintf(", MTU %d", mtu)
	}
	read, returned := m.ReadBytesMax.Get()
	if returned {
		text += ", largest READ " + Size(read)
	}
	switch asked, known := m.ReadCountMax.Get(); {
	case known && !returned:
		text += ", READs asked for at most " + Size(asked)
	case known && asked != read:
		text += " (asked for at most " + Size(asked) + ")"
	}
	if n, known := m.WriteBytesMax.Get(); known {
		text += ", largest WRITE " + Size(n)
	}
	if t, known := m.InlineThresholds.Get(); known {
		text += fmt.Sprintf(", inline %d to the server and %d to the client", t.ClientToServer, t.ServerToClient)
	}
	if n, known := m.Credits.Get(); known {
		text += ", " + record.Plural(int64(n), "credit")
	}
	return text
}

// shownOutages limits the outages of a mount that are described.
const shownOutages = 4

// leastUnanswered is the least time between the last Reply of a connection and its end for which the drawing has that Reply.
const leastUnanswered = int64(100 * time.Millisecond)

// OutageTexts says when a client had no connection after it had lost one; times count from the start of the capture.
func OutageTexts(m *analyze.Mounted, start record.Time) (list []string) {
	at := func(t record.Time) string { return fmt.Sprintf("%.2fs", float64(t.Sub(start))/1e9) }
	for i, o := range m.Outages {
		if i == shownOutages {
			list = append(list, fmt.Sprintf("%s > %s: and %s without a connection", m.Client.Or("?"), m.Server.Or("?"), record.Plural(int64(len(m.Outages)-i), "more time")))
			break
		}
		text := fmt.Sprintf("%s > %s: no connection in the capture ", m.Client.Or("?"), m.Server.Or("?"))
		if to, known := o.To.Get(); known {
			long := Duration(o.NS.Or(0))
			if o.AtMost {
				long = "at most " + long
			}
			text += fmt.Sprintf("between %s and %s (%s)", at(o.From), at(to), long)
		} else {
			text += fmt.Sprintf("from %s to the end of the capture", at(o.From))
		}
		text += fmt.Sprintf(": connection %d ended: %s", o.Connection, EndingText(o.How, o.By))
		if o.OutstandingCalls > 0 {
			text += ", with " + record.CallsAtEnd(o.OutstandingCalls, o.NotAccepted)
		}
		if last, known := o.LastReply.Get(); known && o.From.Sub(last) >= leastUnanswered {
			text += "; the last RPC on it was answered at " + at(last)
		}
		if o.Rejected > 0 {
			text += fmt.Sprintf("; %s rejected", record.Plural(int64(o.Rejected), "connection"))
		}
		if o.Unanswered > 0 {
			text += fmt.Sprintf("; %s without an answer in the capture", record.Plural(int64(o.Unanswered), "connection request"))
		}
		if next, known := o.Next.Get(); known {
			text += fmt.Sprintf("; then connection %d", next)
		}
		list = append(list, text)
	}
	return list
}

// throughput writes how much file data was moved, and how fast.
func (v *overview) throughput() {
	t, known := v.o.Throughput.Get()
	if !known {
		return
	}
	text := fmt.Sprintf("%s read and %s written", Size(t.BytesRead), Size(t.BytesWritten))
	if t.MeanBytesPerS > t.PeakBytesPerS { // All of it was within about a second: a rate would be more than what was moved.
		text += " within " + Duration(int64(float64(t.BytesRead+t.BytesWritten)*1e9/float64(t.MeanBytesPerS)))
	} else {
		text += fmt.Sprintf(": %s/s from the first to the last, %s in the busiest second", Size(t.MeanBytesPerS), Size(t.PeakBytesPerS))
		if first, known := v.s.First.Get(); known && t.PeakAt > first {
			text += fmt.Sprintf(", which begins at %s", Duration(t.PeakAt.Sub(first)))
		}
	}
	if client, known := t.BusiestClient.Get(); known && t.BusiestBytes < t.BytesRead+t.BytesWritten {
		text += fmt.Sprintf("; %s moved %s of it", client, Size(t.BusiestBytes))
	}
	v.line("data", text, ink{})
	v.suggest("stats FILE --every 1s")
	if len(v.o.Limit) > 0 {
		v.line("limit", strings.Join(v.o.Limit, "; "), ink{})
		v.suggest("stats FILE --wide")
	}
}

// count is a number of things, and the words after the number.
type count struct {
	n     int64
	words string
}

// counted joins the counts that are not zero. It adds percentages of total, if they are at
// least 0.1%; with a total of 0, it adds none. The line has to say what the total is of.
func counted(total int64, counts []count) string {
	var list []string
	for _, c := range counts {
		if c.n == 0 {
			continue
		}
		text := strconv.FormatInt(c.n, 10) + " " + c.words
		if c.n*1000 >= total && c.n <= total {
			text += fmt.Sprintf(" (%.1f%%)", float64(c.n)*100/float64(total))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// health writes how well the transport worked.
func (v *overview) health() {
	h := &v.o.Health
	trouble := counted(h.Packets, []count{
		{h.Retransmitted, "retransmitted"}, {h.OutOfOrder, "out of order"}, {h.Naks, record.Noun(h.Naks, "NAK")}, {h.RNRNaks, record.Noun(h.RNRNaks, "RNR NAK")},
	})
	if n := h.Damaged; n > 0 && v.o.Selected != "" {
		trouble = strings.TrimPrefix(trouble+"; "+record.Plural(n, "packet")+" with a bad checksum", "; ")
	} else if v.s.ICRCBad > 0 && v.o.Selected == "" {
		trouble = strings.TrimPrefix(trouble+"; "+v.badICRCs(), "; ")
	}
	missing := counted(0, []count{
		{h.NotCaptured, record.Noun(h.NotCaptured, "packet") + " not captured"},
		{int64(v.s.CaptureDrops), record.Noun(int64(v.s.CaptureDrops), "packet") + " dropped by the capture tool"},
		{v.s.Truncated, record.Noun(v.s.Truncated, "packet") + " truncated"},
	})
	packets := record.Plural(h.Packets, "packet") + " on connections"
	between := v.between()
	pauses := "" // which are not among the packets of connections
	if v.s.PFCPauses > 0 {
		pauses = "; " + record.Plural(v.s.PFCPauses, "PFC pause")
	}
	switch {
	case v.o.Verdict.Unordered && v.s.RDMA+v.s.RPC > 0:
		v.line("health", packets+", not in the order of their times, so nothing is said about losses and order"+pauses, v.theme.warn)
		missing = ""
	case v.s.RDMA+v.s.RPC == 0:
		text := "no RDMA in the capture: neither RoCE, nor iWARP, nor native InfiniBand"
		if slices.ContainsFunc(v.s.OtherProtocols, func(p record.OtherProtocol) bool { return p.Tunnel }) {
			text = "no RDMA known in the capture: neither RoCE, nor iWARP, nor native InfiniBand in the tunnels that rdmadump opens (VXLAN, Geneve, GRE, ERSPAN, MPLS)"
		}
		v.line("health", text, v.theme.warn)
	case trouble != "":
		v.line("health", packets+": "+trouble+pauses, v.theme.warn)
		if marks := v.marks(); len(marks) == 1 {
			v.suggest("packets FILE -Y 'marks == " + marks[0] + "'")
		} else if len(marks) > 1 {
			v.suggest("packets FILE -Y 'marks in {" + strings.Join(marks, ", ") + "}'")
		}
	case h.Packets == 0:
		v.line("health", packets+pauses, v.theme.dim)
	case v.oneWay():
		v.line("health", packets+": what the other side sent is not in the capture, so nothing is said about their order"+pauses, v.theme.warn)
	case missing != "" || between != "" || h.StartsNotCaptured+h.EndsNotCaptured > 0 || len(v.s.Absences) > 0: // It does not show what the rest contains.
		v.line("health", packets+": no retransmission and no NAK in them"+pauses, v.theme.good)
	case pauses != "":
		v.line("health", "every packet once, in order; no NAK, no loss"+pauses, v.theme.warn)
	default:
		v.line("health", "every packet once, in order; no NAK, no loss", v.theme.good)
	}
	switch { // a property of the capture, not of the network
	case missing != "":
		v.line("", "the capture is incomplete: "+missing, v.theme.dim)
	case between != "":
		v.line("", between, v.theme.dim)
	case trouble != "" && v.s.Malformed == 0 && len(v.s.Absences) == 0 && !v.o.Verdict.Unordered && !v.oneWay():
		text := "no packet is known to be missing from the capture"
		if len(v.o.Network) > 0 {
			text = noCaptureLacks
		}
		v.line("", text, v.theme.dim)
	}
	if n := h.UnansweredRequests; n > 0 {
		v.line("", record.Plural(n, "connection request")+" without an answer in the capture", v.theme.warn)
		v.suggest("connections FILE -Y 'established == null and ended == null'")
	}
	for i, e := range v.o.Ended {
		if i == 3 {
			break
		}
		text := record.Plural(e.Count, "connection") + " ended"
		if e.OutstandingCalls > 0 {
			text += " with " + record.CallsAtEnd(e.OutstandingCalls, e.NotAccepted)
			if list := outstanding(e.OutstandingCalls, e.XIDs[:min(len(e.XIDs), 1)]); list != "" {
				text += " (" + list + ")"
			}
		}
		v.line("", text+": "+EndingText(e.How, e.By), v.theme.bad)
		if e.Count == 1 {
			v.suggest(fmt.Sprintf("connections FILE --conn %d", e.First))
			continue
		}
		v.suggest("connections FILE -Y '" + EndingFilter(e.How, e.By) + "'")
	}
}

// traffic writes what the connections of other upper layers did.
func (v *overview) traffic() {
	for i := range v.o.Traffic {
		t := &v.o.Traffic[i]
		var kinds []string
		for _, k := range t.Kinds {
			kinds = append(kinds, fmt.Sprintf("%s of the %s (%s)", record.Plural(k.Count, operationNames[k.Kind]), k.Side, Size(k.Bytes)))
		}
		label := t.UpperLayer
		if len(label) >= overviewMargin-2 { // A longer label would leave no space.
			label = label[:overviewMargin-3]
		}
		text := record.Plural(int64(t.Connections), "connection")
		if t.UpperLayer == "unknown" {
			label, text = "other", text+" of an unknown upper layer"
		}
		if kinds != nil {
			text += ": " + strings.Join(kinds, ", ")
		}
		v.line(label, text, ink{})
		trouble := counted(t.Packets, []count{{t.Retransmitted, "retransmitted"}, {t.Naks, record.Noun(t.Naks, "NAK")}, {t.RNRNaks, record.Noun(t.RNRNaks, "RNR NAK")}})
		if trouble != "" {
			trouble = record.Plural(t.Packets, "packet") + ": " + trouble + "; "
		}
		if t.Stalled > 0 {
			trouble += fmt.Sprintf("%s stalled for %s", record.Plural(t.Stalled, "operation"), Duration(t.TotalNS))
			if t.Stalled > 1 {
				trouble += fmt.Sprintf(" in total, the longest for %s", Duration(t.LongestNS))
			}
			if t.StalledNS < t.TotalNS {
				trouble += fmt.Sprintf("; stalls overlap, so operations were stalled during %s of the capture", Duration(t.StalledNS))
			}
			v.line("", trouble, v.theme.warn)
			v.suggest("rdma FILE -Y 'stalled > 0' --sort -stalled")
			continue
		}
		if trouble != "" {
			v.line("", strings.TrimSuffix(trouble, "; "), v.theme.warn)
		}
		v.suggest("rdma FILE --by connection,kind,side")
	}
}

// badICRCs returns the number of packets with a bad checksum. It is about all packets of the
// capture, because a packet with a bad checksum need not belong to a connection.
func (v *overview) badICRCs() string {
	noun := "ICRC"
	if !slices.ContainsFunc(v.o.Groups, func(g analyze.Group) bool { return g.Transport != "iWARP" }) && len(v.o.Groups) > 0 {
		noun = "CRC"
	}
	text := fmt.Sprintf("%s with a bad %s in the capture", record.Plural(v.s.ICRCBad, "packet"), noun)
	if n := v.s.ICRCBadUnassigned; n > 0 {
		text += fmt.Sprintf(" (%d on no connection)", n)
	}
	if damaged := analyze.SumNetwork(v.o.Network).Corrupted; damaged > v.s.ICRCBad {
		text += fmt.Sprintf("; the %d damaged packets include others, whose headers were damaged", damaged)
	}
	return text
}

// noCaptureLacks says that nothing shows that a capture at one of several points is incomplete.
const noCaptureLacks = "every packet that is known to have passed a capture point is in its capture"

// between says what several capture points prove about packets that are missing, or damaged, at one of them. It is empty if none is.
func (v *overview) between() string {
	n := analyze.SumNetwork(v.o.Network)
	was := func(n int64) string {
		if n == 1 {
			return "1 packet was"
		}
		return fmt.Sprintf("%d packets were", n)
	}
	where := " between the capture points"
	if v.o.Selected != "" {
		where += " during the whole capture"
	}
	var parts []string
	switch {
	case n.Lost > 0 && n.Corrupted > 0:
		parts = []string{fmt.Sprintf("%s lost and %d damaged", was(n.Lost), n.Corrupted) + where}
	case n.Lost > 0:
		parts = []string{was(n.Lost) + " lost" + where}
	case n.Corrupted > 0:
		parts = []string{was(n.Corrupted) + " damaged" + where}
	}
	if n.Changed > 0 {
		parts = append(parts, record.Plural(n.Changed, "TCP segment")+" changed between the capture points with right checksums, so that receivers took what nobody sent")
	}
	if lost := n.InQuiet(); lost > 0 {
		parts = append(parts, record.Plural(lost, "packet")+" did not arrive while the capture at the other point has no packet at all")
	}
	if n.Unknown > 0 {
		parts = append(parts, "whether "+record.Plural(n.Unknown, "packet")+" arrived is not known")
	}
	switch {
	case n.NotCaptured > 0:
		parts = append(parts, "the captures are incomplete: "+was(n.NotCaptured)+" not captured at a point to which the network brought them")
	case len(parts) > 0:
		parts = append(parts, noCaptureLacks)
	}
	return strings.Join(parts, "; ")
}

// marks returns the marks of the packets that health is about.
func (v *overview) marks() (marks []string) {
	h, bad := &v.o.Health, v.s.ICRCBad
	if v.o.Selected != "" {
		bad = v.o.Health.Damaged
	}
	for _, x := range []struct {
		n    int64
		mark string
	}{{h.Retransmitted, "retransmitted"}, {h.OutOfOrder, "out_of_order"}, {h.Naks + h.RNRNaks, "refused"}, {bad, "bad_icrc"}} {
		if x.n > 0 {
			marks = append(marks, x.mark)
		}
	}
	return marks
}

// rpcs writes the outcomes of the transactions.
func (v *overview) rpcs() {
	r := &v.o.RPCs
	total := v.o.RPCs.Total()
	text := record.Plural(total, "RPC")
	shade := v.theme.good
	if total == 0 {
		return
	}
	if total == r.Complete && r.Failed == 0 {
		text += ", all answered"
	}
	for _, n := range []struct {
		n       int64
		words   string
		unusual bool
	}{
		{r.NoReply, map[bool]string{true: "whose Replies are not in the capture", false: unanswered}[v.oneWay()], !v.oneWay()},
		{r.RDMAError, "answered by RDMA_ERROR", true},
		{r.NoCall, map[bool]string{true: "Reply", false: "Replies"}[r.NoCall == 1] + " without a Call in the capture", false},
		{r.Failed, withError, false},
		{r.Answered, "whose success is unknown because " + map[bool]string{true: "its Reply was", false: "their Replies were"}[r.Answered == 1] + " captured too short", false},
		{r.RetransmittedOnNewConnection, "retransmitted on a new connection", true},
		{r.Backward, "called by the server", false},
	} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.words)
			if again := v.o.Verdict.Counts.AnsweredAgain; n.words == unanswered && again > 0 {
				which := fmt.Sprintf("%d of them", again)
				if again == n.n {
					which = "which"
				}
				text += " (" + which + " got one on a later connection)"
			}
			if n.n == r.Failed && n.words == withError {
				text += statusWords(r)
			}
			if n.unusual {
				shade = v.theme.warn
			}
		}
	}
	v.line("RPCs", text, shade)
	switch others := r.RDMAError + r.Failed; {
	case r.NoReply+r.RDMAError == 0 && len(r.Statuses) == 1:
		v.suggest("FILE -Y 'status == " + r.Statuses[0].Status + "'")
	case r.NoReply > 0 && others == 0:
		v.suggest("FILE -Y 'status == no_reply'")
	case r.NoReply+others > 0:
		v.suggest("FILE -Y 'status != ok'")
	}
}

// oneWay reports whether only packets of one direction are in the capture.
func (v *overview) oneWay() bool {
	return v.s.OnlyFrom() != ""
}

// The words for transactions that failed, and for those that the capture has no Reply to.
const (
	withError  = "with an error status"
	unanswered = "without Reply"
)

// statusWords returns the most frequent error statuses in brackets: a single status may be the whole story.
func statusWords(r *analyze.RPCs) string {
	const most = 3
	var words []string
	for i, s := range r.Statuses {
		switch {
		case len(r.Statuses) == 1:
			words = append(words, clean(s.Status))
		case i < most:
			words = append(words, fmt.Sprintf("%d %s", s.Count, clean(s.Status)))
		case i == most:
			words = append(words, "and others")
		}
	}
	if words == nil {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// time writes how the RPCs spent their time. Each line is about one population: the RPCs
// that were answered, or those that were not.
func (v *overview) time() {
	t := &v.o.Time
	label := "time"
	if t.TotalNS > 0 {
		v.answered(label)
		label = ""
	}
	if u := &t.Unanswered; u.Stalled > 0 {
		text := fmt.Sprintf("unanswered RPCs (%d): %d stalled for %s", u.RPCs, u.Stalled, Duration(u.StalledNS))
		if side, known := u.GaveUp.Get(); known {
			text += map[record.End]string{
				record.Client: " until the client gave up retransmitting",
				record.Server: " until the server gave up retransmitting",
			}[side]
		}
		if u.Stalled > 1 {
			text += " (stalls that overlap count once)"
		}
		v.line(label, text, v.theme.warn)
		label = ""
	}
	switch {
	case len(t.Waits) > 0 || t.Unanswered.Stalled > 0:
		v.suggest("FILE -Y 'waits.ns > 0'")
	case label == "":
		v.suggest("stats FILE")
	}
}

// answered writes the parts of the latency of the answered RPCs.
func (v *overview) answered(label string) {
	t := &v.o.Time
	type inkedPhase struct {
		phase
		ink ink
	}
	phases := []inkedPhase{
		{phase{record.PhaseStalled.String(), t.Phases.WaitNS}, v.theme.warn},
	}
	lengths := t.Phases.List()
	for i, look := range []ink{v.theme.exposed, v.theme.moved, v.theme.exposed, v.theme.moved, v.theme.good} {
		phases = append(phases, inkedPhase{phase{record.Phase(i).String(), lengths[i]}, look})
	}
	slices.SortStableFunc(phases, func(a, b inkedPhase) int { return cmp.Compare(b.ns, a.ns) })
	other := t.TotalNS
	for _, x := range phases {
		other -= x.ns
	}
	phases = append(phases, inkedPhase{phase{"other", max(other, 0)}, v.theme.dim})
	var sums []int64
	for _, x := range phases {
		sums = append(sums, x.ns)
	}
	var words []string
	var bar inked
	passed, drawn := int64(0), 0
	for i, percent := range analyze.Percents(sums) {
		x := &phases[i]
		if percent > 0 {
			word := fmt.Sprintf("%d%% %s", percent, x.name)
			if until := t.StalledByRetransmission(); i < len(phases)-1 && x.name == "stalled" && until > 0 && until < x.ns {
				word += fmt.Sprintf(" (%.0f%% until a retransmission)", float64(until)*100/float64(t.TotalNS))
			}
			words = append(words, word)
		}
		passed += percent
		shade := v.theme.glyphs.shades[min(i, len(v.theme.glyphs.shades)-1)]
		for to := int(min(passed, 100)) * min(v.width-overviewMargin, 50) / 100; drawn < to; drawn++ {
			bar.add(shade, x.ink)
		}
	}
	total := Duration(t.TotalNS)
	if t.UpperBounds > 0 {
		total = fmt.Sprintf("%s%s (%d of %d %s)", AtMost, total, t.UpperBounds, t.Answered, boundsAre(t.UpperBounds))
	}
	v.line(label, fmt.Sprintf("latencies of %d answered RPCs add up to %s: %s", t.Answered, total, strings.Join(words, ", ")), ink{})
	if v.theme.unicode && drawn > 0 && !v.markdown {
		v.margin("")
		v.b.WriteString(bar.String() + "\n")
	}
	if proven := ProvenParts(&t.Shares); proven != "" {
		v.line("", "proven shares of these latencies: "+proven, ink{})
	}
	rpcs := int64(0) // counted once for each reason
	for _, w := range t.Waits {
		if w.Reason != record.CreditLimit {
			rpcs += w.RPCs
		}
		took := Duration(w.TotalNS)
		if w.Count > 1 {
			took += " in total"
		}
		text := fmt.Sprintf("%s stalled for %s: %s", record.Plural(w.RPCs, "RPC"), took, WaitText(w.Reason))
		if n, known := w.Timeouts.Get(); known && w.Count > 1 {
			text += " (" + timeouts(n, w.TimeoutRPCs, w.RPCs) + ")"
		}
		if w.Reason == record.CreditLimit { // before the Call: not part of the latency
			text = fmt.Sprintf("%s followed a freed credit within 100ms; until then, all credits were in use for %s", record.Plural(w.RPCs, "Call"), took)
		}
		v.line("", text, v.theme.warn)
	}
	if rpcs > t.Stalled {
		v.line("", fmt.Sprintf("%s stalled, some for several reasons", record.Plural(t.Stalled, "RPC")), v.theme.dim)
	}
}

// ProvenParts returns in words how much of the latencies each side took, as far as the capture proves it. It leaves out a side
// that may have taken nothing or more than half, and is empty if that is true of all.
func ProvenParts(s *analyze.ShareSums) string {
	if s.LatencyNS == 0 {
		return ""
	}
	var parts []string
	for i, x := range s.Sides() {
		percent := s.Percents(s.LatencyNS)[i]
		least := fmt.Sprintf("%d%% to ", percent.Min)
		switch {
		case percent.Min == percent.Max:
			least = ""
		case percent.Min == 0 && x.NS.Max > s.LatencyNS/2:
			continue
		case percent.Min == 0:
			least = "at most "
		}
		parts = append(parts, fmt.Sprintf("%s %s%d%%", x.Side, least, percent.Max))
	}
	text := strings.Join(parts, ", ")
	switch {
	case text == "" || s.Exact == 0:
	case s.Exact < s.RPCs:
		text += fmt.Sprintf("; known exactly for %d of %s", s.Exact, record.Plural(s.RPCs, "RPC"))
	default:
		text += "; known exactly for all RPCs"
	}
	return text
}

// upperLayer returns the words for the upper layer of a group of connections.
func upperLayer(name string) string {
	if name == "unknown" {
		return "unknown upper layer"
	}
	return name
}

// timeouts says how many RPCs each of n timeouts stalled; rpcs are the largest numbers. stalled is
// the number of RPCs that they stalled, each counted once.
func timeouts(n int64, rpcs []int64, stalled int64) string {
	text := record.Plural(n, "timeout")
	if n == 1 || rpcs[0] == 1 {
		return text
	}
	if n > int64(len(rpcs)) {
		return fmt.Sprintf("%s, each stalled at most %s", text, record.Plural(rpcs[0], "RPC"))
	}
	var each []string
	all := int64(0)
	for _, count := range rpcs {
		each = append(each, fmt.Sprint(count))
		all += count
	}
	text = fmt.Sprintf("%s, which stalled %s and %s RPCs", text, strings.Join(each[:n-1], ", "), each[n-1])
	if all > stalled {
		text += ", some of them more than once"
	}
	return text
}

// shownSteps is the maximum number of steps of mounts that are shown. If there are more, the first ones that failed
// are among those that are shown.
const shownSteps = 8

// mountSteps writes the steps of mounts in their order.
func (v *overview) mountSteps() {
	list := v.o.MountSteps
	shown := 0
	for i := range list {
		s := &list[i]
		failed := !s.OK.Or(false)
		if shown >= shownSteps && !failed || shown >= 2*shownSteps {
			continue
		}
		shade := ink{}
		if failed {
			shade = v.theme.bad
		}
		at := Duration(int64(s.Time - v.s.First.Or(s.Time)))
		v.row(once(shown, "mounting"), part{fmt.Sprintf("%9s  ", at), v.theme.dim}, part{v.ends(s.Client, s.Server) + s.Asked + ": ", ink{}}, part{s.Answer, shade})
		shown++
	}
	if left := v.o.MountStepsTotal - int64(shown); left > 0 {
		v.row("", part{fmt.Sprintf("and %s", record.Plural(left, "more step")), v.theme.dim})
	}
	if len(list) > 0 {
		v.suggest(`FILE -Y 'portmap || mount'`)
	}
}

// slowest writes the RPCs with the longest latency, and the cause of each.
func (v *overview) slowest() {
	length := 0
	for i := range v.o.Slowest {
		length = max(length, len(Latency(v.o.Slowest[i].Transaction)))
	}
	for i, slow := range v.o.Slowest {
		v.slow(once(i, "slowest"), &slow, length, "")
	}
	v.whereNext()
	v.ladderOf(v.o.Slowest)
	if list := v.o.SlowestMounting; len(list) > 0 { // They would hide the others.
		v.slow("setup", &list[0], length, " (slowest of mounting and recovery, which are not listed above)")
		if len(v.o.Slowest) == 0 {
			v.ladderOf(list)
		}
	}
}

// whereNext says how to distinguish the server from the network, if most of the time of the slowest RPCs needs that.
func (v *overview) whereNext() {
	all, unknown := int64(0), int64(0)
	for i := range v.o.Slowest {
		r := v.o.Slowest[i].Transaction
		c := r.Cause.Or(record.Cause{})
		if all += c.NS; strings.HasPrefix(c.ID, "server-or-") && r.Shares.Or(record.Shares{}).Point == record.PlaceUnknown {
			unknown += c.NS
		}
	}
	if 2*unknown > all {
		v.line("", "To distinguish the server from the network, capture at the server, too, or say --at server if this is the server's capture.", v.theme.dim)
	}
}

// ladderOf suggests the command that draws the first of a list of RPCs.
func (v *overview) ladderOf(list []analyze.Slow) {
	if len(list) > 0 {
		r := list[0].Transaction
		v.suggest(fmt.Sprintf("FILE --conn %d --xid %v", r.Connection, r.XID))
	}
}

// slow writes one of the slowest RPCs, and what it was a part of, unless that is empty. Its latency takes at least length characters.
func (v *overview) slow(label string, s *analyze.Slow, length int, of string) {
	r := s.Transaction
	text := shortProcedure(r, "") + of
	if s.Count > 1 {
		text += fmt.Sprintf(" (sent on several connections, slowest of at least %d answered)", s.Count)
	}
	if cause := cmp.Or(claim.Brief(r), longestPart(r)); cause != "" {
		text += ": " + cause + otherStalls(r)
	}
	v.rest(label, text, part{fmt.Sprintf("%*s  ", max(length, 8), Latency(r)), ink{}}, part{r.XID.String(), v.theme.key}, part{"  " + v.ends(r.Client, r.Server), ink{}})
	v.about(fmt.Sprintf("FILE -Y 'id == %d'", r.ID))
}

// otherStalls says how long an RPC stalled, if its cause is only the longest of several stalls. It returns nothing for other RPCs.
func otherStalls(r *record.Transaction) string {
	c, n := r.Cause.Or(record.Cause{}), int64(0)
	for range r.Stalls() {
		n++
	}
	rest := r.Phases.Or(record.Phases{}).WaitNS - c.NS
	if n < 2 || rest <= 0 || !strings.HasPrefix(c.ID, "stalled-") && c.ID != "busy" && c.ID != "receiver" {
		return ""
	}
	return fmt.Sprintf(", and %s in %s", Duration(rest), record.Plural(n-1, "other stall"))
}

// rest writes parts and, after them, a text that is wrapped: its further lines begin below its first one, or further left on a
// narrow screen.
func (v *overview) rest(label, text string, parts ...part) {
	const narrow = 50
	at, width := 0, v.width-overviewMargin
	for _, p := range parts {
		at += wide(p.text)
	}
	lines := Wrap(text, max(width-at, narrowest))
	v.row(label, append(parts, part{lines[0], ink{}})...)
	if width-at < narrow || at > width/4 {
		at = 4
	}
	for _, line := range Wrap(strings.Join(lines[1:], " "), max(width-at, narrowest)) {
		if line != "" {
			v.row("", part{strings.Repeat(" ", at) + line, ink{}})
		}
	}
}

// busiest writes the operations with the largest sum of latencies.
func (v *overview) busiest() {
	rows := v.o.Busiest
	if len(rows) == 0 {
		rows = v.o.BusiestMounting
	}
	for i, s := range rows {
		if i == 3 || s.TotalNS == 0 {
			break
		}
		name := s.Name
		if s.Timed() < s.Count {
			name += fmt.Sprintf(" (%d with latency)", s.Timed())
		}
		total := Duration(s.TotalNS)
		if s.Latency.UpperBounds > 0 {
			total = AtMost + total
		}
		text := fmt.Sprintf("%d x %s, p50 %s, worst %s", s.Count, name, about(&s.Latency, s.Latency.P50), maximum(&s.Latency, s.Latency.Max))
		v.rest(once(i, "busiest"), text, part{fmt.Sprintf("%8s of latency  ", total), ink{}})
		v.about("stats FILE")
	}
}

// credits writes whether a connection used all the credits that it was granted.
func (v *overview) credits() {
	if v.o.RPCs.Total() == 0 || v.oneWay() { // Without Calls or Replies it is not known how many credits were in use.
		return
	}
	if len(v.o.Credits) == 0 {
		enough, known := v.o.CreditsEnough.Get()
		switch {
		case v.o.CreditsUnknown > 0:
		case known:
			v.line("credits", fmt.Sprintf("never all in use: %d %s enough, because at most %s of connection %d %s in flight at once", enough.Granted.Or(0), record.Were(enough.Granted.Or(0)), record.Plural(enough.Peak, "Call"), enough.Connection, record.Were(enough.Peak)), ink{})
		default:
			v.line("credits", "never all in use", ink{})
		}
		return
	}
	c := v.o.Credits[0]
	text := fmt.Sprintf("%s of connection %d %s in use at once (at most %s in flight)", record.Every(c.Granted.Or(0), "credit"), c.Connection, record.Were(c.Granted.Or(0)), record.Plural(c.Peak, "Call"))
	if n := len(v.o.Credits) - 1; n > 0 {
		text += fmt.Sprintf(", and those of %s", record.Plural(int64(n), "other connection"))
	}
	v.line("credits", text, v.theme.warn)
	if u, known := c.Usage.Get(); known && u.AllInUse > 0 {
		v.line("", fmt.Sprintf("connection %d: %s", c.Connection, CreditUsageText(&u)), ink{})
		v.line("", fmt.Sprintf("only with more than %d, one would be free at any time; how many would be enough is not in the capture", c.Peak), ink{})
	}
	v.suggest(fmt.Sprintf("connections FILE --conn %d --timeline", c.Connection))
}

// CreditUsageText says how often and for how long all credits were in use, and how often a Call followed a freed credit.
func CreditUsageText(u *record.CreditUsage) string {
	text := fmt.Sprintf("all in use %s, for %s of the %s with Calls in flight (%.0f%%)", timesText(u.AllInUse), Duration(u.AllInUseNS), Duration(u.InFlightNS), float64(u.AllInUseNS)*100/float64(max(u.InFlightNS, 1)))
	if u.AllInUse > 1 {
		text += fmt.Sprintf(", at most %s at a time", Duration(u.LongestNS))
	}
	followed := timesText(u.Followed) + " a"
	if u.Followed == 0 {
		followed = "no"
	}
	return text + "; " + followed + " Call followed within 1ms of the Reply that freed one"
}

// timesText says how often something happened.
func timesText(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// handles writes which side had to invalidate the handles of answered Calls.
func (v *overview) handles() {
	h := &v.o.Handles
	if h.Exposed == 0 {
		return
	}
	text := fmt.Sprintf("%s of answered Calls: %d invalidated remotely (%d%%), %d %s local invalidation",
		record.Plural(h.Exposed, "registered handle"), h.ByServer, int(h.Share.Or(0)*100+0.5), h.LocalInvalidations, needs(h.LocalInvalidations))
	if agreed, known := h.Negotiated.Get(); known && !agreed && h.ByServer > 0 {
		if h.OnlyClients {
			text += ". Send With Invalidate was used although only the client announced support (normal for Linux servers)."
		} else {
			text += ". Send With Invalidate was used although it was not negotiated."
		}
	}
	v.line("handles", text, ink{})
}

// needs returns the verb for a number of things.
func needs(n int64) string {
	if n == 1 {
		return "needs"
	}
	return "need"
}

// findings writes the rules with findings.
func (v *overview) findings() {
	if len(v.o.Findings) == 0 {
		if v.s.RDMA+v.s.RPC > 0 {
			v.line("check", "no findings", v.theme.good)
		}
		return
	}
	for i, f := range v.o.Findings {
		if i == 6 {
			v.row("", part{"and " + record.Plural(int64(len(v.o.Findings)-i), "more rule"), v.theme.dim})
			break
		}
		v.rest(once(i, "check"), f.Message, part{fmt.Sprintf("%-7s", f.Severity), v.theme.severity(f.Severity)}, part{fmt.Sprintf(" %d x ", f.Count), ink{}},
			part{f.Rule, v.theme.key}, part{map[bool]string{true: ": ", false: ", first: "}[f.Count == 1], ink{}})
	}
	v.suggest("check FILE")
}
