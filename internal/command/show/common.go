package show

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/contrast"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// contrastGarbage is the percentage by which the heap may grow before it is collected.
const contrastGarbage = 50

// contrasting holds the flags of common.
type contrasting struct {
	flags.Typed
	stdout, stderr io.Writer
}

// NewCommon returns the command common.
func NewCommon(stdout, stderr io.Writer) *cobra.Command {
	c := &contrasting{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "common [flags] FILE...", Short: "Show what RPCs without a Reply, failed or slow ones have in common",
		Long: `common compares a set of RPCs, such as those without a Reply, with all others, and shows
which facts separate the two: for example that all of them are READDIRPLUS, and none of the
others is. It compares every field of the Calls and how the RPCs were handled: operation, user,
file, sizes, chunks, arguments, connection, order and time. Below each fact is the command that
lists its RPCs.

A fact is shown if at most one of 1,024 random sets of as many RPCs has a fact that
separates it as well, with all fields taken into account that were compared. The RPCs of a
burst often have something in common by chance: if the RPCs come in bursts, a fact must also
be better than that of any of 199 random sets of as many bursts, unless it is true of
all of them and of no other; then common shows how many of these sets are as good. Otherwise
common says that they have nothing in common that the others do not have, and how many RPCs a
fact needed to be true of, so that it would have been found; or that the RPCs are too few to
tell. What a fact is the reason for, the capture does not show: other facts may be true of the
same RPCs, and common names those that it knows of.

A Call that is retransmitted on a later connection is an RPC of its own; common shows how
many different requests a set has. What follows from the trouble is not compared: that an RPC
without a Reply waited, or that it is a retransmission of another one without a Reply.

The set is that of --no-reply, --failed, --slow, --finding or -Y. Without any of them, common
compares each set that the capture has: RPCs without a Reply, with each error status, slow
ones, and those with findings of each rule. A set is compared only with RPCs that could have
been in it: a status with RPCs that have a Reply, slow RPCs with those that have a latency, and
if slow is relative to the operation, with those of operations and procedures that have at least 8
latencies. The first line says how many RPCs are not compared, and why. Slow RPCs are those that
took more than 10 times the median of their operation, if --slow has no limit.

With --connections, it compares connections instead: those that did not end by a disconnect, such
as rejected ones, those with retransmitted packets, or those that -Y selects.

If a capture has more than 16,384 RPCs, or fewer with a small --memory, common compares a
sample of them, and reads the capture once more to count the facts that it found on all of them.

` + command.ExitHelp,
		Example: `  rdmadump common nfs.pcap
  rdmadump common nfs.pcap --no-reply
  rdmadump common nfs.pcap --slow=20ms --from 10 --to 60
  rdmadump common nfs.pcap -Y 'operation == READ and latency > 5ms' --against 'operation == READ'
  rdmadump common nfs.pcap -o json --jq 'select(.verdict == "separated") | .facts[].text'`,
		Args: cobra.ArbitraryArgs,
		RunE: c.run,
	}
	c.Define(cmd.Flags(), flags.CommonView)
	return cmd
}

// run compares sets of the RPCs of captures.
func (c *contrasting) run(cmd *cobra.Command, paths []string) error {
	set, err := c.Parse(flags.CommonView, true)
	if err != nil {
		return err
	}
	options, err := c.options(set)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := slowness(path); err == nil && cmd.Flags().Changed("slow") {
			if _, err := os.Stat(path); err != nil {
				return &command.Status{Code: command.ExitUsage, Err: fmt.Errorf("%s: no such file or directory; --slow takes its limit after an equals sign: --slow=%s", render.Clean(path), path)}
			}
		}
	}
	if len(paths) > 0 { // The capture may be read several times.
		var remove func()
		paths, c.Called, remove, err = input.OnlyFiles(cmd, paths)
		defer remove()
		if err != nil {
			return err
		}
	}
	if command.OwnProcess { // Its own memory is most of what it keeps, so garbage must not be several times as much.
		debug.SetGCPercent(contrastGarbage)
	}
	p := &passes{contrasting: c, cmd: cmd, paths: paths, settings: set}
	sets, err := p.compare(options)
	if err != nil {
		return err
	}
	s := p.sink
	if err := s.MissingConnection(p.summary); err != nil {
		return err
	}
	if !options.Explicit {
		sets = slices.DeleteFunc(sets, func(one *contrast.Set) bool { return one.Bad == 0 })
	}
	switch {
	case s.JSON:
		for _, one := range sets {
			s.emit(one, nil)
		}
	case s.Columns != nil:
		for _, one := range sets {
			for _, row := range one.Rows() {
				s.emit(row, nil)
			}
		}
	default:
		for i := range sets {
			sets[i] = record.Named(sets[i], s.Hosts)
		}
		s.fail(render.Common(render.Screen{Out: s.w, Theme: s.theme, Width: s.width}, sets, s.Typed+flags.Selected(cmd.Flags())))
		if len(sets) == 0 && options.Explicit { // of --failed
			fmt.Fprintln(s.w, "no RPC has an error status")
		} else if len(sets) == 0 {
			fmt.Fprintln(s.w, map[bool]string{false: "no RPC is without a Reply, failed or slow, and none has a finding", true: "every connection ended by a disconnect or is open, and no packet was retransmitted"}[set.OfConnections])
		}
	}
	return p.runner.finish(s, p.summary, p.broken)
}

// options returns what is compared.
func (c *contrasting) options(set *flags.Settings) (o contrast.Options, err error) {
	o.Obvious, o.Connections = set.Obvious, set.OfConnections
	fields := query.Transactions
	if o.Connections {
		fields = query.Connections
		for flag, given := range map[string]bool{"no-reply": set.NoReply, "failed": set.Failed, "slow": set.Slow != "", "finding": set.Finding != ""} {
			if given {
				return o, fmt.Errorf("--%s cannot be combined with --connections: it selects RPCs; -Y selects connections", flag)
			}
		}
	}
	for _, name := range set.Compared {
		path, err := query.Resolve(strings.TrimSpace(name), fields)
		if err != nil {
			return o, fmt.Errorf("--fields %s: %w", name, err)
		}
		o.Fields = append(o.Fields, path)
	}
	if set.Against != "" {
		if o.Against.Filter, err = query.Compile(set.Against, fields); err != nil {
			return o, query.OfFlag("--against", err)
		}
		o.Against.Text = set.Against
	}
	if set.Summed != nil {
		o.Kinds, o.Set = append(o.Kinds, contrast.ByFilter), contrast.Expression{Filter: set.Summed, Text: c.Filter}
	} else if set.Filter != nil {
		return o, errors.New("-Y selects the set of RPCs, by the fields of transactions")
	}
	if set.NoReply {
		o.Kinds = append(o.Kinds, contrast.NoReply)
	}
	if set.Failed {
		o.Kinds = append(o.Kinds, contrast.Status)
	}
	if set.Finding != "" {
		if _, err := flags.FindRule("--finding", set.Finding); err != nil {
			return o, err
		}
		o.Kinds, o.Rule = append(o.Kinds, contrast.ByRule), set.Finding
	}
	o.Slow.Times = contrast.UsualSlow
	if set.Slow != "" {
		o.Kinds = append(o.Kinds, contrast.Slow)
		if o.Slow, err = slowness(set.Slow); err != nil {
			return o, err
		}
	}
	o.Explicit = o.Kinds != nil
	if o.Kinds == nil && o.Connections {
		o.Kinds = []contrast.Kind{contrast.Ended, contrast.Retransmitting}
	}
	if o.Kinds == nil {
		o.Kinds = []contrast.Kind{contrast.NoReply, contrast.Status, contrast.Slow, contrast.ByRule}
	}
	// A row takes at most about as many bytes as this, twice if it is one of a set.
	const rowBytes = 6144
	o.Rows = int(min(max(int64(set.Memory)/4/rowBytes, 256), 16384))
	return o, nil
}

// slowness parses the limit of --slow.
func slowness(text string) (s contrast.Slowness, err error) {
	wrong := fmt.Errorf("--slow %s: must be a duration such as 20ms, a percentile such as p90, or a multiple of the median such as 10x", text)
	switch {
	case strings.HasSuffix(text, "x"):
		s.Times, err = strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
		if err != nil || !(s.Times > 0) || s.Times > 1e9 {
			return s, wrong
		}
	case strings.HasPrefix(text, "p"):
		s.Percentile, err = strconv.ParseFloat(text[1:], 64)
		if s.Percentile /= 100; err != nil || !(s.Percentile > 0 && s.Percentile < 1) {
			return s, wrong
		}
	default:
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return s, wrong
		}
		s.NS = int64(d)
	}
	return s, nil
}

// passes reads the same captures several times.
type passes struct {
	*contrasting
	cmd      *cobra.Command
	paths    []string
	settings *flags.Settings
	sink     *sink
	runner   *Runner
	summary  *record.Summary
	broken   error // damage of the captures
}

// compare reads the captures as often as needed and returns the comparisons.
func (p *passes) compare(o contrast.Options) ([]*contrast.Set, error) {
	collector := contrast.NewCollector(o)
	if err := p.pass(collector.Begin, collector); err != nil {
		return nil, err
	}
	if again := collector.Again(); again != nil {
		collector = again
		if err := p.pass(collector.Begin, collector); err != nil {
			return nil, err
		}
	}
	sets := collector.Sets()
	if !collector.Sampled() {
		return sets, nil
	}
	recount, err := collector.NewRecount(sets)
	if err != nil {
		return nil, err
	}
	if err := p.pass(func(record.Time) {}, recount); err != nil {
		return nil, err
	}
	recount.Finish()
	return sets, nil
}

// taker takes what is compared.
type taker interface {
	Add(r *record.Transaction) error
	AddConnection(r *record.Connection) error
}

// pass reads the captures once.
func (p *passes) pass(begin func(record.Time), to taker) error {
	source, lines, failed, err := input.OpenRecords(p.cmd, &p.Typed, p.paths, p.stderr)
	if err != nil {
		return err
	}
	first := p.sink == nil
	set := *p.settings
	set.Decode, set.Files = lines == nil, lines == nil
	r := &Runner{Settings: &set, Stdout: p.stdout, Stderr: p.stderr, openErr: failed, lines: lines}
	if lines != nil {
		defer lines.Close()
		r.Names = input.NamesOf(p.paths, lines.Paths, p.Called)
	} else {
		r.Names = input.NamesOf(p.paths, source.Paths(), p.Called)
	}
	s := newSink(&set, p.stdout, p.stderr, r.Names)
	s.ctx = p.cmd.Context()
	h := dissect.Handler{
		Begin: func(at record.Time) error {
			begin(at)
			return s.begin(at)
		},
		Transaction: func(t *record.Transaction) error {
			if s.asked(t) {
				s.seen++
				s.written++
				s.fail(to.Add(t))
			}
			return s.err
		},
	}
	if set.OfConnections {
		h.Transaction, set.Decode, set.Files = nil, false, false
		h.Connection = func(r *record.Connection) error {
			if s.WantsConnection(r.ID) && s.Overlaps(r.First, r.Last) {
				s.written++
				s.fail(to.AddConnection(r))
			}
			return s.err
		}
	}
	collector, collects := to.(*contrast.Collector)
	if collects && lines == nil && !set.OfConnections { // JSON lines may have no connections.
		h.Connection = func(r *record.Connection) error {
			collector.Ended(r)
			return nil
		}
	}
	var summary *record.Summary
	if lines != nil {
		if err := lines.Check(&set, &h); err != nil {
			return err
		}
		if text := lines.Partial(&h); text != "" && first && !p.Quiet {
			command.Say(p.stderr, "%s", text)
		}
		summary, err = ended(s, func() (*record.Summary, error) { return lines.Read(s.ctx, s.Naming(h)) })
	} else {
		in, joined, err2 := input.Join(s.ctx, &p.Typed, source, &set, p.stderr)
		if err2 != nil {
			return err2
		}
		defer in.Close()
		r.joined, s.joined = joined, joined
		progress := input.NewProgress(in, p.stderr, !p.Quiet && command.TerminalWidth(p.stdout) == 0)
		h.Tick = func() error {
			progress.Update()
			return s.err
		}
		summary, err = ended(s, func() (*record.Summary, error) { return r.dissect(s.ctx, in, s, h) })
		progress.Finish()
	}
	if err != nil && (summary == nil || s.err != nil) {
		return err
	}
	if collects && lines == nil && summary != nil {
		collector.Absences(summary.Absences)
	}
	p.sink, p.runner, p.summary, p.broken = s, r, summary, err
	s.summary = summary
	return nil
}
