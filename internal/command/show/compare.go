package show

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// comparing holds the flags of compare.
type comparing struct {
	flags.Typed
	limits         []analyze.Limit
	found          map[record.Hex32]*sameXID // RPCs of the current capture, by the XIDs of --xid
	stdout, stderr io.Writer
}

// sameXID counts the RPCs of a capture that have one XID.
type sameXID struct {
	all, selected int
	conns         []int // connections of the selected ones
}

// note counts an RPC.
func (c *comparing) note(s *sink, r *record.Transaction, selected bool) {
	if !slices.Contains(s.XIDs, r.XID) {
		return
	}
	x := c.found[r.XID]
	if x == nil {
		x = new(sameXID)
		c.found[r.XID] = x
	}
	if x.all++; selected {
		x.selected++
		if !slices.Contains(x.conns, r.Connection) {
			x.conns = append(x.conns, r.Connection)
		}
	}
}

// lacks reports whether a capture has no RPC with the XID of a value of --xid.
func (c *comparing) lacks(word string) bool {
	return !slices.ContainsFunc(flags.XIDsOf(word), func(xid record.Hex32) bool { return c.found[xid] != nil })
}

// reasons says why the flags select no RPC of a capture, or not the RPCs that the user may have meant; it returns nothing if that is not known.
func (c *comparing) reasons(s *sink, summary *record.Summary) (list []string) {
	if err := s.MissingConnection(summary); err != nil {
		return []string{err.Error()}
	}
	if text := s.outside(summary); text != "" {
		return []string{text}
	}
	var absent, excluded []string
	for _, word := range c.XIDs {
		all, selected := 0, 0
		for _, xid := range flags.XIDsOf(word) {
			x := c.found[xid]
			if x == nil {
				continue
			}
			all, selected = all+x.all, selected+x.selected
			switch n := record.Plural(int64(x.selected), "RPC"); {
			case x.selected > 1 && len(x.conns) > 1:
				var conns []string
				for _, id := range x.conns {
					conns = append(conns, fmt.Sprint(id))
				}
				list = append(list, fmt.Sprintf("%s have XID %s, on connections %s: select one connection with --conn", n, xid, command.List(conns, "and")))
			case x.selected > 1:
				list = append(list, fmt.Sprintf("%s have XID %s on connection %d", n, xid, x.conns[0]))
			}
		}
		switch word := strings.TrimSpace(word); {
		case all == 0:
			absent = append(absent, word)
		case selected == 0:
			excluded = append(excluded, word)
		}
	}
	if len(excluded) > 0 {
		list = append(list, "its RPC with XID "+command.List(excluded, "and")+" is not selected by the other flags")
	}
	if len(absent) > 0 {
		text := "no RPC has XID " + command.List(absent, "or")
		if near := s.nearXIDs(func(xid record.Hex32) bool { return c.found[xid] == nil }); len(near) > 0 {
			text += "; similar XIDs: " + strings.Join(near, ", ")
		}
		list = append(list, text)
	}
	return list
}

// NewCompare returns the command compare.
func NewCompare(stdout, stderr io.Writer) *cobra.Command {
	c := &comparing{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "compare [flags] BEFORE AFTER", Short: "Compare two captures, or two RPCs of one: problems, latency, counts, negotiated values",
		Long: `compare shows what changed between two captures, such as one from before and one from
after an update of the server: first the problems that came and that went; then the
operations, or values of the fields of --by, that only one capture has; for each of the
others the number of RPCs, their bytes and the percentiles of their latency; and the
stalls and the values that connections negotiated, if they changed. BEFORE and AFTER are captures, or JSON lines that rdmadump
wrote earlier (export --format records).

With one FILE, compare says how much longer one of two RPCs took than the other, and in
which parts of its latency, and draws both. --xid, --conn and -Y select the two.

A change of a percentile is marked with * if chance does not explain it. compare uses
an exact permutation test: if only chance decided which RPC is in which capture, a
change as large as this or larger would have a probability below 0.001. The test needs
no random numbers, so that the same captures always give the same result. It is made
for groups with at least 30 latencies in both captures; ? marks changes of smaller
groups. The test takes RPCs as independent of each other: a single stall of the
network that delays many RPCs at once can be significant, too, so look at the stalls.
If the groups of a capture have more than 2,097,152 latencies in total, the largest
groups are kept as histograms, whose percentiles have an error of up to 1 percent.

With --fail-on, compare exits with status 1 if a percentile of any group changed
significantly, and by more than the limit. A limit is about the change, not about the
percentile itself: --fail-on 'p99 > +20%' is an increase by more than 20 percent,
'p50 > +1ms' (or 'p50 > 1ms') an increase by more than 1 ms, and 'p90 < -5%' a
decrease by more than 5 percent.

` + command.ExitHelp,
		Example: `  rdmadump compare before.pcap after.pcap
  rdmadump compare nfs.pcap --xid 0x56d184c5 --xid 0x59d184c5
  rdmadump compare before.json after.pcap --by client,operation --top 10
  rdmadump compare before.pcap after.pcap -Y 'operation == READ' --fail-on 'p99 > +20%'
  rdmadump compare before.pcap after.pcap -o json --jq 'select(.significant) | .name'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: c.run,
	}
	c.DefineCommand(cmd, flags.CompareView)
	return cmd
}

// run compares two captures.
func (c *comparing) run(cmd *cobra.Command, paths []string) error {
	set, err := c.Parse(cmd.Context(), flags.CompareView, true)
	if err != nil {
		return err
	}
	for _, text := range c.Limits {
		limit, err := analyze.ParseLimit(text)
		if err != nil {
			return fmt.Errorf("--fail-on %s: %w", text, err)
		}
		c.limits = append(c.limits, limit)
	}
	if len(paths) == 2 && paths[0] == "-" && paths[1] == "-" {
		return errors.New("standard input can be BEFORE or AFTER, but not both")
	}
	s := newSink(set, c.stdout, input.Names{})
	s.ctx = cmd.Context()
	if len(paths) == 1 {
		return c.pair(cmd, s, paths[0])
	}
	var sides [2]*analyze.Side
	var captures [2]render.Captures
	var broken error
	first, same := map[record.Hex32]bool{}, 0 // XIDs of BEFORE, and how many AFTER has, too
	for i, path := range paths {
		sides[i], captures[i] = analyze.NewSide(set.By.Table()), render.Captures{Title: path, Typed: shell.File(path)}
		h, problems := c.handler(s, sides[i])
		h.Transaction = both(h.Transaction, func(r *record.Transaction) error {
			switch {
			case i == 1 && first[r.XID]:
				delete(first, r.XID)
				same++
			case i == 0 && len(first) < 1000:
				first[r.XID] = true
			}
			return nil
		})
		summary, err := c.read(cmd, s, path, h)
		if summary == nil {
			return err
		}
		s.summary = summary
		sides[i].Problems(problems())
		broken = errors.Join(broken, err)
		if sides[i].RPCs() == 0 && s.err == nil {
			text := render.Clean(path) + " has no RPC to compare"
			if list := c.reasons(s, summary); len(list) > 0 {
				text += ": " + strings.Join(list, "; ")
			} else if hasRPCs(summary) {
				text += ": the flags select none of those that it has"
			}
			return errors.New(text)
		}
		if !s.JSON && s.Columns == nil {
			text := fmt.Sprintf("%s: %s on %s", render.Clean(path), record.Plural(sides[i].RPCs(), "RPC"), span(summary))
			lines := []string{text}
			if s.width > 0 {
				lines = render.Wrap(text, s.width-8)
			}
			fmt.Fprintf(s.w, "%-8s%s\n", [...]string{"before", "after"}[i], strings.Join(lines, "\n        "))
		}
	}
	if same > len(first) && !c.Quiet {
		command.Say(c.stderr, "the captures have the same RPCs; if they were taken at two points, rdmadump network %s %s shows what happened between the points", captures[0].Typed, captures[1].Typed)
	}
	c.show(s, analyze.Compare(sides[0], sides[1]), captures)
	s.fail(s.w.Flush())
	switch {
	case s.err != nil:
		return s.err
	case broken != nil:
		return command.Broken(broken)
	case s.errors > 0:
		return &command.Status{Code: command.ExitFound}
	}
	return nil
}

// span says how much a capture has.
func span(s *record.Summary) string {
	first, _ := s.First.Get()
	return record.Plural(s.Connections, "connection") + ", " + render.Duration(s.Last.Or(first).Sub(first))
}

// pair compares two RPCs of one capture.
func (c *comparing) pair(cmd *cobra.Command, s *sink, path string) error {
	const usage = "compare needs two captures, BEFORE and AFTER, or one and the XIDs of two RPCs in it, such as --xid 0x56d184c5 --xid 0x59d184c5"
	switch {
	case len(s.XIDs) == 0 && len(s.Conns) == 0 && s.Summed == nil:
		return errors.New(usage)
	case s.JSON || s.Columns != nil || s.By.Given || s.Order != (flags.Order{}) || s.Count > 0 || len(c.limits) > 0:
		return errors.New("two RPCs of one capture are compared in words: -o, --jq, -e, --columns, --by, --sort, --top, -c and --fail-on need two captures; transactions -o json has the records of the two")
	}
	s.Ladder, s.Files = true, true
	var both []*record.Transaction
	var ladders []byte
	count := 0
	summary, err := c.read(cmd, s, path, dissect.Handler{Begin: s.begin, Transaction: func(r *record.Transaction) error {
		wanted := s.asked(r) && s.sums(r)
		if c.note(s, r, wanted); !wanted {
			return s.err
		}
		if count++; len(both) < 2 {
			both, ladders = append(both, r.Clone()), append(ladders, s.drawLadder(r)...)
		}
		return s.err
	}})
	switch {
	case summary == nil:
		return err
	case s.err != nil:
		return s.err
	case count != 2 || slices.ContainsFunc(c.XIDs, c.lacks): // Two RPCs may have one XID.
		which := fmt.Sprintf("%s of %s %s selected", record.Plural(int64(count), "RPC"), render.Clean(path), map[bool]string{true: "is", false: "are"}[count == 1])
		list := c.reasons(s, summary)
		if len(list) == 0 {
			list = append(list, usage)
		}
		if count > 0 {
			list = append(list, "-Y 'id == 3 or id == 9' selects RPCs by their numbers (#)")
		}
		return fmt.Errorf("%s; %s", which, strings.Join(list, "; "))
	}
	text := []string{render.Difference(both[0], both[1])}
	if s.width > 0 {
		text = render.Wrap(text[0], s.width)
	}
	fmt.Fprintf(s.w, "%s\n\n", strings.Join(text, "\n"))
	s.w.Write(ladders)
	s.fail(s.w.Flush())
	if s.err == nil && err != nil {
		return command.Broken(err)
	}
	return s.err
}

// read passes the records of one of the captures to a handler. Its error is of the damage of a capture if there is a summary.
func (c *comparing) read(cmd *cobra.Command, s *sink, path string, h dissect.Handler) (*record.Summary, error) {
	c.Unread, c.found = nil, map[record.Hex32]*sameXID{} // of the other side
	s.startXIDs()
	source, lines, failed, err := input.OpenRecords(cmd, &c.Typed, []string{path}, c.stderr)
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	r := &Runner{Settings: s.Settings, Stdout: c.stdout, Stderr: c.stderr, lines: lines}
	if lines == nil {
		in, joined, err := input.Join(cmd.Context(), &c.Typed, source, s.Settings, c.stderr)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		r.joined = joined
		p := input.NewProgress(in, c.stderr, !c.Quiet)
		defer p.Finish()
		h.Tick = func() error {
			p.Update()
			return s.err
		}
		return ended(s, func() (*record.Summary, error) { return r.dissect(s.ctx, in, s, h) })
	}
	defer lines.Close()
	if err := lines.Check(s.Settings, &h); err != nil {
		return nil, err
	}
	if text := lines.Partial(&h); text != "" && !c.Quiet {
		command.Say(c.stderr, "%s", text)
	}
	return ended(s, func() (*record.Summary, error) { return lines.Read(s.ctx, s.Naming(h)) })
}

// handler returns the handler that sums up one of the captures, and a function that finds its problems at the end.
func (c *comparing) handler(s *sink, side *analyze.Side) (h dissect.Handler, problems func() []*record.Problem) {
	h, _, problems = diagnosis(s)
	h.Begin = s.begin
	h.Transaction = both(h.Transaction, func(r *record.Transaction) error {
		wanted := s.asked(r) && s.sums(r)
		if c.note(s, r, wanted); wanted {
			side.Transaction(r)
		}
		return s.err
	})
	h.Connection = both(h.Connection, func(r *record.Connection) error {
		if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
			side.Connection(r)
		}
		return nil
	})
	return h, problems
}

// ended reads a capture and returns its summary, and an error if its end was not reached. There is
// no summary if the command cannot go on.
func ended(s *sink, read func() (*record.Summary, error)) (*record.Summary, error) {
	summary, err := read()
	switch {
	case s.ctx.Err() != nil:
		return nil, command.Broken(errors.New("interrupted"))
	case err != nil && err == s.err:
		return nil, err
	case err != nil:
		return summary, command.Damaged(err)
	}
	return summary, nil
}

// show writes the comparisons, and on standard error which of them exceed a limit.
func (c *comparing) show(s *sink, list []*analyze.Comparison, of [2]render.Captures) {
	var shown []*analyze.Comparison
	for _, one := range list {
		if one.Kind == analyze.ComparedProblem && !s.JSON && s.Columns == nil { // They are first, whatever the order of the groups.
			if s.matches(one) {
				shown = append(shown, s.named(one).(*analyze.Comparison))
			}
			continue
		}
		s.take(one, func(r any) error {
			shown = append(shown, r.(*analyze.Comparison))
			return nil
		})
	}
	s.release()
	if !s.JSON && s.Columns == nil {
		var judged []string
		for i := range c.limits {
			judged = append(judged, c.limits[i].Name())
		}
		s.fail(render.Compare(s.screen(s.w), shown, of, s.By.By, judged))
	}
	tested := false
	for _, one := range list {
		tested = tested || one.Significant.Known()
		for i := range c.limits {
			if c.limits[i].Exceeded(one) {
				s.errors++
				before, after := c.limits[i].Values(one)
				command.Say(c.stderr, "%s of %s changed from %s to %s, by more than --fail-on %s", c.limits[i].Name(), render.Clean(one.Name), render.Duration(before), render.Duration(after), strings.TrimSpace(c.Limits[i]))
			}
		}
	}
	if len(c.limits) > 0 && !tested {
		command.Say(c.stderr, "--fail-on tested nothing, because no group has 30 latencies in both captures")
	}
}
