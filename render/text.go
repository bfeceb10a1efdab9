package render

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/query"
)

// Text draws records for people. Width is the terminal's, 0 for none.
type Text struct {
	w     io.Writer
	theme *Theme
	width int
	table *table
	cells []cell
	clock clock
	live  bool
}

// Live draws tables that are flushed row by row: their columns get the widths
// that are usual.
func (t *Text) Live() { t.live = true }

// NewText draws on w.
func NewText(w io.Writer, theme *Theme, width int) *Text {
	return &Text{w: w, theme: theme, width: width, clock: clock{form: theme.times}}
}

// Flush writes what is held back to learn the widths of columns.
func (t *Text) Flush() error {
	if t.table == nil {
		return nil
	}
	return t.table.flush()
}

// Start sets the time that others are shown relative to: the capture's first.
// Without it, it is the first that is shown.
func (t *Text) Start(at record.Time) { t.clock.start = record.Some(at) }

// Finish writes what is held back, and what hidden columns would have said.
func (t *Text) Finish() error {
	if err := t.Flush(); err != nil || t.table == nil {
		return err
	}
	return t.table.finish()
}

// at is a time as it is to be shown.
func (t *Text) at(at record.Time) string { return string(t.clock.append(nil, at)) }

// Duration is a duration to three digits or so, as people read it.
func Duration(ns int64) string {
	switch d := time.Duration(ns); {
	case ns < 0:
		return "-" + Duration(-max(ns, -math.MaxInt64)) // the lowest of all has no opposite
	case d < time.Microsecond:
		return strconv.FormatInt(ns, 10) + "ns"
	case d < time.Millisecond:
		return strconv.FormatFloat(float64(ns)/1e3, 'f', 1, 64) + "us"
	case d < time.Second:
		return strconv.FormatFloat(float64(ns)/1e6, 'f', 2, 64) + "ms"
	}
	return strconv.FormatFloat(float64(ns)/1e9, 'f', 3, 64) + "s"
}

// Bytes is a count of bytes as people read it: exact below 10,000.
func Bytes(n int64) string {
	switch {
	case n < 10000:
		return strconv.FormatInt(n, 10)
	case n < 10<<20:
		return strconv.FormatFloat(float64(n)/1024, 'f', 1, 64) + "K"
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + "M"
}

var transactionColumns = []column{
	{name: "#", right: true, rank: 5, usual: 5},
	{name: "TIME", right: true, usual: 11},
	{name: "CONN", right: true, rank: 3},
	{name: "XID"},
	{name: "DIR", rank: 7, usual: 4},
	{name: "PROCEDURE", flex: true, min: 23, usual: 45},
	{name: "CALL", right: true, rank: 1, usual: 6},
	{name: "REPLY", right: true, rank: 1, usual: 6},
	{name: "FORM", rank: 4, usual: 15},
	{name: "READ", right: true, rank: 6, usual: 6},
	{name: "WRITE", right: true, rank: 6, usual: 6},
	{name: "CREDITS", right: true, rank: 8},
	{name: "INVALIDATED", rank: 9, usual: 18},
	{name: "LATENCY", right: true, usual: 8},
	{name: "STATUS"},
}

var directions = map[record.Direction]string{record.Forward: "fwd", record.Backward: "back"}

// Transaction writes a row: the main table.
func (t *Text) Transaction(r *record.Transaction) error {
	status, shade := status(t.theme, r)
	if len(r.Findings) > 0 { // check says what
		status += " !"
	}
	read, written := query.Moved(r)
	procedure := cell{text: Procedure(r)}
	if t.width > 0 {
		procedure.short = shortProcedure(r, t.theme.glyphs.cut)
	}
	t.cells = append(t.cells[:0],
		cell{text: strconv.FormatInt(r.ID, 10), ink: t.theme.dim},
		cell{text: t.at(r.Start())},
		cell{text: strconv.Itoa(r.Connection)},
		cell{text: r.XID.String(), ink: t.theme.key},
		cell{text: directions[r.Direction]},
		procedure,
		cell{text: payload(r.Call)},
		cell{text: payload(r.Reply)},
		cell{text: query.FormOf(r.Call) + ">" + query.FormOf(r.Reply)},
		cell{text: moved(read)},
		cell{text: moved(written)},
		cell{text: credits(r)},
		cell{text: invalidated(r), ink: t.theme.dim},
		cell{text: latency(r)},
		cell{text: status, ink: shade},
	)
	return t.row(transactionColumns)
}

// row writes t.cells as a row of the table that has these columns.
func (t *Text) row(columns []column) error {
	if t.table == nil {
		t.table = newTable(t.w, t.theme, t.width, columns)
		t.table.live = t.live
	}
	return t.table.row(t.cells)
}

// Procedure is what a transaction does: program, version, procedure, and for a
// COMPOUND its operations.
func Procedure(r *record.Transaction) string {
	if !r.Program.Known() {
		if len(r.Operations) > 0 {
			return strings.Join(r.Operations, " ")
		}
		return "-"
	}
	if len(r.Operations) > 0 {
		return r.ProgramVersion() + " " + strings.Join(r.Operations, " ")
	}
	return r.ProgramProcedure()
}

// shortProcedure is Procedure with no more of a COMPOUND than the operation
// that it is for, and marks where the others were.
func shortProcedure(r *record.Transaction, cut string) string {
	operation, known := r.Operation.Get()
	at := slices.Index(r.Operations, operation)
	if !known || at < 0 {
		return Procedure(r)
	}
	if at > 0 {
		operation = cut + operation
	}
	if at < len(r.Operations)-1 {
		operation += cut
	}
	if !r.Program.Known() {
		return operation
	}
	return r.ProgramVersion() + " " + operation
}

// Headings are those of the table of a kind of record: "transactions",
// "connections", "packets", "stats".
func Headings(of string) []string {
	return headings(map[string][]column{"transactions": transactionColumns, "connections": connectionColumns, "packets": packetColumns, "stats": statsColumns}[of])
}

// CheckColumns says whether there are columns of these headings, or parts of them.
func CheckColumns(of string, names []string) error {
	all := Headings(of)
	for _, name := range names {
		found := slices.ContainsFunc(all, func(heading string) bool { return (&column{name: heading}).called(name) })
		if !found && len(all) > 0 {
			return fmt.Errorf("there is no column %s; there are %s", clean(name), strings.Join(all, ", "))
		}
		if !found {
			return fmt.Errorf("%s have no columns to choose from; -e takes fields", of)
		}
	}
	return nil
}

// known is how a value reads where there is one, and otherwise what stands for
// one that is unknown.
func known[T any](o record.Opt[T], unknown string, text func(T) string) string {
	if v, known := o.Get(); known {
		return text(v)
	}
	return unknown
}

func payload(m *record.Message) string {
	if m == nil {
		return "-"
	}
	return known(m.PayloadBytes, "-", Bytes)
}

func moved(n int64) string {
	if n == 0 {
		return ""
	}
	return Bytes(n)
}

// credits is what the Call asked for and the Reply granted.
func credits(r *record.Transaction) string {
	asked, granted := "-", "-"
	if r.Call != nil {
		asked = strconv.FormatUint(uint64(r.Call.Credits), 10)
	}
	if r.Reply != nil {
		granted = strconv.FormatUint(uint64(r.Reply.Credits), 10)
	}
	return asked + "/" + granted
}

// invalidated is the handle that the Reply invalidated, and how many it left.
func invalidated(r *record.Transaction) string {
	left := len(r.NotInvalidated)
	switch i, known := r.Invalidation.Get(); {
	case known && left > 0:
		return fmt.Sprintf("%v, %d left", i.Handle, left)
	case known:
		return i.Handle.String()
	case left > 0:
		return fmt.Sprintf("%d left", left)
	}
	return ""
}

func latency(r *record.Transaction) string {
	return known(r.LatencyNS, "-", Duration)
}

// status is how a transaction ended, and its look.
func status(theme *Theme, r *record.Transaction) (string, ink) {
	word := query.Outcome(r)
	switch {
	case word == "ok":
		return word, theme.good
	case r.Status == record.Complete && r.RPCFailed(), r.Status == record.RDMAError && r.RDMAError.Known():
		return word, theme.bad
	}
	return word, theme.warn
}

var connectionColumns = []column{
	{name: "CONN", right: true},
	{name: "TRANSPORT", rank: 6},
	{name: "CLIENT"},
	{name: "SERVER"},
	{name: "QPN", rank: 7},
	{name: "UPPER", rank: 3},
	{name: "RPCS", right: true, rank: 1},
	{name: "INLINE", right: true, rank: 3},
	{name: "REMOTE-INV", rank: 8},
	{name: "IN-FLIGHT", right: true, rank: 4},
	{name: "PACKETS", right: true, rank: 2},
	{name: "RETR/OOO/MISSED", right: true, rank: 2, quiet: true},
	{name: "NAK/RNR", right: true, rank: 5, quiet: true},
	{name: "CLOSED", flex: true, min: 8, usual: 10},
}

// Connection writes a row.
func (t *Text) Connection(r *record.Connection) error {
	health := t.theme.good
	if r.NotCaptured > 0 {
		health = t.theme.bad
	} else if r.Retransmitted > 0 || r.OutOfOrder > 0 {
		health = t.theme.warn
	}
	closed, shade := r.State(), t.theme.dim
	if r.Ended.Known() && closed != "disconnect" {
		shade = t.theme.bad
	}
	t.cells = append(t.cells[:0],
		cell{text: strconv.Itoa(r.ID)},
		cell{text: r.Transport},
		cell{text: endpoint(r.Client)},
		cell{text: endpoint(r.Server)},
		cell{text: qpns(r)},
		cell{text: r.UpperLayer, ink: t.theme.key},
		cell{text: strconv.FormatInt(r.Transactions, 10)},
		cell{text: fmt.Sprintf("%d/%d", r.InlineThreshold.ClientToServer, r.InlineThreshold.ServerToClient)},
		cell{text: known(r.RemoteInvalidation, "?", yesNo)},
		cell{text: fmt.Sprintf("%s of %s", strconv.Itoa(r.Credits.Forward.PeakInFlight), known(r.Credits.Forward.Granted, "?", number))},
		cell{text: strconv.FormatInt(r.Packets, 10)},
		cell{text: fmt.Sprintf("%d/%d/%d", r.Retransmitted, r.OutOfOrder, r.NotCaptured), ink: health},
		cell{text: fmt.Sprintf("%d/%d", r.Naks, r.RNRNaks)},
		cell{text: closed, ink: shade},
	)
	return t.row(connectionColumns)
}

func endpoint(e record.Endpoint) string {
	s := e.Address.Or("?")
	port, known := e.Port.Get()
	if !known {
		return s
	}
	if strings.Contains(s, ":") {
		s = "[" + s + "]"
	}
	return s + ":" + strconv.Itoa(int(port))
}

// qpns is both queue pairs; iWARP has none.
func qpns(r *record.Connection) string {
	if r.Transport == "iWARP" {
		return ""
	}
	return qpn(r.Client) + ">" + qpn(r.Server)
}

func qpn(e record.Endpoint) string { return known(e.QPN, "?", record.Hex24.String) }

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

func number(v uint32) string { return strconv.FormatUint(uint64(v), 10) }

// plural is a number of things, named in the singular.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Summary writes what there was, and what could not be read.
func (t *Text) Summary(r *record.Summary) error {
	var b strings.Builder
	b.WriteString(plural(r.Packets, "packet"))
	if first, known := r.First.Get(); known {
		fmt.Fprintf(&b, " in %s", Duration(r.Last.Or(first).Sub(first)))
	}
	fmt.Fprintf(&b, ", %d of RDMA; %s; ", r.RDMA, plural(int64(r.Connections), "connection"))
	total := int64(0)
	var parts []string
	for _, s := range record.Statuses {
		if n := r.Transactions[s]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(s), "_", " ")))
		}
	}
	b.WriteString(plural(total, "transaction"))
	if len(parts) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(parts, ", "))
	}
	for _, odd := range []struct {
		n          int64
		noun, what string
	}{
		{r.Findings[record.Error], "error", " found"},
		{r.Findings[record.Warning], "warning", ""},
		{r.NotCaptured, "packet", " missing from the capture"},
		{int64(r.CaptureDrops), "packet", " dropped by the capture"},
		{r.Fragments, "later IP fragment", " not read"},
		{r.Malformed, "packet", " malformed"},
		{r.Truncated, "packet", " cut short"},
		{r.ICRCBad, "bad ICRC", ""},
		{r.UnknownLink, "packet", " of an unknown link type"},
	} {
		if odd.n > 0 {
			b.WriteString("; " + plural(odd.n, odd.noun) + odd.what)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(r.Evicted)) {
		fmt.Fprintf(&b, "; limit reached: %s", what)
	}
	_, err := fmt.Fprintf(t.w, "%s%s%s\n", t.theme.dim.before, b.String(), t.theme.dim.after)
	return err
}

// FindingGroup is findings that break one rule, with one side to blame.
type FindingGroup struct {
	First      record.Finding
	Count      int64
	LastPacket record.Opt[int64]
}

// Finding writes what is wrong: severity, rule, where; then what, and how often.
func (t *Text) Finding(g *FindingGroup) error {
	r := &g.First
	var where []string
	if at, known := r.Time.Get(); known {
		where = append(where, t.at(at))
	}
	if packet, known := r.Packet.Get(); known {
		where = append(where, fmt.Sprintf("packet %d", packet))
	}
	if connection, known := r.Connection.Get(); known {
		where = append(where, fmt.Sprintf("connection %d", connection))
	}
	if xid, known := r.XID.Get(); known {
		where = append(where, fmt.Sprintf("XID %v", xid))
	}
	if side, known := r.AtFault.Get(); known {
		where = append(where, "at fault: "+string(side))
	}
	shade := t.theme.severity(r.Severity)
	var b strings.Builder
	fmt.Fprintf(&b, "%s%-7s%s %s%s%s  %s\n", shade.before, r.Severity, shade.after, t.theme.key.before, r.Rule, t.theme.key.after, strings.Join(where, ", "))
	text := fmt.Sprintf("%s (%s)", clean(r.Message), r.Section)
	if g.Count > 1 {
		text += fmt.Sprintf("; x %d", g.Count)
		if packet, known := g.LastPacket.Get(); known {
			text += fmt.Sprintf(", last in packet %d", packet)
		}
	}
	for _, line := range wrapped(text, t.width-8) {
		fmt.Fprintf(&b, "        %s\n", line)
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// wrapped is text in lines of at most so many characters; all of it in one where
// width is none, or too little to read.
func wrapped(text string, width int) (lines []string) {
	if width < narrowest {
		return []string{text}
	}
	return wrap(text, width)
}

// RuleCount is how often a rule was broken, and by whom.
type RuleCount struct {
	Rule                  string
	Severity              record.Severity
	Count, Client, Server int64
}

// Verdict writes the table of rules, and what could not be judged.
func (t *Text) Verdict(rules []RuleCount, unjudged []string) error {
	var b strings.Builder
	if len(rules) > 0 {
		fmt.Fprintf(&b, "\n%-8s %-30s %6s %7s %7s\n", "SEVERITY", "RULE", "COUNT", "CLIENT", "SERVER")
		for _, r := range rules {
			shade := t.theme.severity(r.Severity)
			fmt.Fprintf(&b, "%s%-8s%s %-30s %6d %7d %7d\n", shade.before, r.Severity, shade.after, r.Rule, r.Count, r.Client, r.Server)
		}
	}
	for _, line := range unjudged {
		for i, part := range wrapped(line, t.width-2) {
			if i > 0 {
				b.WriteString("  ")
			}
			b.WriteString(t.theme.dim.before + part + t.theme.dim.after + "\n")
		}
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// IsLive says that rows are flushed one by one.
func (t *Text) IsLive() bool { return t.live }
