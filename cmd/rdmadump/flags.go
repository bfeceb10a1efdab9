package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/analyze"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// flags are what was typed; [settings] are what it means.
type flags struct {
	called map[string]string // captures that have other names in messages than their paths

	output     string
	filter     string
	jq         string
	fields     []string
	xids       []string
	conns      []int
	count      int64
	sort       string
	top        int
	from, to   string
	color      string
	quiet      bool
	memory     size
	tree       bool
	bytes      bool
	timeline   bool
	by         string
	failOn     string
	ignore     []string
	baseline   string
	accept     string
	rules      bool
	explain    string
	unanswered time.Duration
	rpc        bool
	look       appearance
}

// size is a flag of so many bytes.
type size int64

// The least and the most that --memory takes, and what it is by default.
const (
	leastMemory   size = 1 << 20
	mostMemory    size = 1 << 50
	defaultMemory size = 256 << 20
)

func (s *size) String() string { return strings.ReplaceAll(humanize.IBytes(uint64(*s)), " ", "") }

func (s *size) Type() string { return "size" }

// Set reads 64MiB, 1GiB, or plain bytes.
func (s *size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n < uint64(leastMemory) || n > uint64(mostMemory) {
		return fmt.Errorf("a size is a number with KiB, MiB or GiB, such as 64MiB, and 1MiB at least")
	}
	*s = size(n)
	return nil
}

// flagTable has every flag of the views: how it is defined. Which views take it
// is said by the views.
var flagTable = []struct {
	name   string
	define func(f *flags, s *pflag.FlagSet)
}{
	{"output", func(f *flags, s *pflag.FlagSet) {
		s.StringVarP(&f.output, "output", "o", "text", "`text` or json (one record a line); of check also sarif, junit")
	}},
	{"filter", func(f *flags, s *pflag.FlagSet) {
		s.StringVarP(&f.filter, "filter", "Y", "", "keep the records that match this `expression`")
	}},
	{"jq", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.jq, "jq", "", "run this jq `program` on each record's JSON")
	}},
	{"field", func(f *flags, s *pflag.FlagSet) {
		s.StringSliceVarP(&f.fields, "field", "e", nil, "print only this `field` (repeat for more), tabs between them")
	}},
	{"xid", func(f *flags, s *pflag.FlagSet) {
		s.StringSliceVar(&f.xids, "xid", nil, "only what belongs to the transactions with this `XID` (repeat for more)")
	}},
	{"conn", func(f *flags, s *pflag.FlagSet) {
		s.IntSliceVar(&f.conns, "conn", nil, "only the connection with this `number` (repeat for more)")
	}},
	{"count", func(f *flags, s *pflag.FlagSet) { s.Int64VarP(&f.count, "count", "c", 0, "stop after `N` records") }},
	{"sort", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.sort, "sort", "", "sort by this `field`; -field for the largest first")
	}},
	{"top", func(f *flags, s *pflag.FlagSet) {
		s.IntVar(&f.top, "top", 0, "only the first `N` in order; without --sort, of transactions the slowest")
	}},
	{"from", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.from, "from", "", "only what is not before this `time`: RFC 3339, or seconds from the start such as 2.5 or 90s")
	}},
	{"to", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.to, "to", "", "only what is not after this `time`")
	}},
	{"color", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.color, "color", "auto", "colour: `auto`, always or never")
	}},
	{"width", func(f *flags, s *pflag.FlagSet) {
		s.IntVar(&f.look.width, "width", 0, "tables and drawings take this `number` of columns; else $COLUMNS, or what the terminal has")
	}},
	{"wide", func(f *flags, s *pflag.FlagSet) {
		s.BoolVar(&f.look.wide, "wide", false, "all columns of tables, and whole lines")
	}},
	{"columns", func(f *flags, s *pflag.FlagSet) {
		s.StringSliceVar(&f.look.columns, "columns", nil, "the table's columns by their `headings`: CONN,LATENCY,STATUS")
	}},
	{"time", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.look.time, "time", string(render.Relative), "times `relative` to the capture's start, delta to the line before, utc, local or epoch")
	}},
	{"ascii", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.look.ascii, "ascii", "auto", "draw with ASCII: true or false; `auto` does so unless on a terminal with UTF-8")
		s.Lookup("ascii").NoOptDefVal = "true"
	}},
	{"background", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.look.background, "background", "auto", "colours for a dark or light background; `auto` reads $COLORFGBG")
	}},
	{"quiet", func(f *flags, s *pflag.FlagSet) {
		s.BoolVarP(&f.quiet, "quiet", "q", false, "no summary and no progress on standard error")
	}},
	{"memory", func(f *flags, s *pflag.FlagSet) {
		f.memory = defaultMemory
		s.Var(&f.memory, "memory", "what is kept may take this `size`: KiB, MiB, GiB; the summary tells what was given up beyond it")
	}},
	{"verbose", func(f *flags, s *pflag.FlagSet) {
		s.BoolVarP(&f.tree, "verbose", "V", false, "the tree of all fields, with bits and offsets")
	}},
	{"hex", func(f *flags, s *pflag.FlagSet) {
		s.BoolVarP(&f.bytes, "hex", "x", false, "the bytes of each packet")
	}},
	{"timeline", func(f *flags, s *pflag.FlagSet) {
		s.BoolVar(&f.timeline, "timeline", false, "draw credits and exposed handles over time")
	}},
	{"rpc", func(f *flags, s *pflag.FlagSet) {
		s.BoolVar(&f.rpc, "rpc", false, "in JSON: what each Call asks and its Reply says, by name; of packets, as far as they carry it")
	}},
	{"by", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.by, "by", analyze.ByOperation, "sum up by program, procedure or `operation`")
	}},
	{"fail-on", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.failOn, "fail-on", "error", "exit status 1 from this `severity` on: error, warning or note")
	}},
	{"ignore", func(f *flags, s *pflag.FlagSet) {
		s.StringSliceVar(&f.ignore, "ignore", nil, "no findings of this `rule` (repeat for more)")
	}},
	{"baseline", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.baseline, "baseline", "", "no findings that this `file` knows, by rule and operation")
	}},
	{"write-baseline", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.accept, "write-baseline", "", "write what was found to this `file`, for --baseline")
	}},
	{"rules", func(f *flags, s *pflag.FlagSet) { s.BoolVar(&f.rules, "rules", false, "list the rules") }},
	{"explain", func(f *flags, s *pflag.FlagSet) {
		s.StringVar(&f.explain, "explain", "", "say what this `rule` means, what causes it, what to look at")
	}},
	{"unanswered-after", func(f *flags, s *pflag.FlagSet) {
		s.DurationVar(&f.unanswered, "unanswered-after", 30*time.Second, "report a Call that got no Reply within this `duration` although later Calls did")
	}},
}

// choices are the flags that have a few values, each with those that a view takes.
var choices = []struct {
	flag, as string
	value    func(f *flags) string
	values   func(v *view) []string
}{
	{"output", "-o", func(f *flags) string { return f.output }, outputs},
	{"color", "--color", func(f *flags) string { return f.color }, fixed("auto", "always", "never")},
	{"fail-on", "--fail-on", func(f *flags) string { return f.failOn }, fixed(record.Severities[:]...)},
	{"by", "--by", func(f *flags) string { return f.by }, fixed(analyze.ByProgram, analyze.ByProcedure, analyze.ByOperation)},
	{"time", "--time", func(f *flags) string { return f.look.time }, fixed(render.AllTimes[:]...)},
	{"ascii", "--ascii", func(f *flags) string { return f.look.ascii }, fixed("auto", "true", "false")},
	{"background", "--background", func(f *flags) string { return f.look.background }, fixed("auto", "dark", "light")},
}

// fixed are values that do not depend on the view.
func fixed[T ~string](values ...T) func(*view) []string {
	var words []string
	for _, v := range values {
		words = append(words, string(v))
	}
	return func(*view) []string { return words }
}

// outputs are the values of -o that a view takes.
func outputs(v *view) []string {
	if v.takes("fail-on") {
		return []string{"text", "json", "sarif", "junit"}
	}
	return []string{"text", "json"}
}

// commonFlags are taken by every view.
var commonFlags = []string{"output", "filter", "jq", "field", "xid", "conn", "count", "from", "to", "color", "quiet", "memory", "width", "wide", "time", "ascii", "background"}

// takes says whether a view takes a flag.
func (v *view) takes(flag string) bool {
	return slices.Contains(commonFlags, flag) && !slices.Contains(v.without, flag) || slices.Contains(v.flags, flag)
}

// isViewFlag says whether any view takes a flag.
func isViewFlag(flag string) bool {
	return slices.ContainsFunc(views, func(v *view) bool { return v.takes(flag) })
}

// define defines the flags that any of these views takes.
func (f *flags) define(s *pflag.FlagSet, of ...*view) {
	for _, row := range flagTable {
		if slices.ContainsFunc(of, func(v *view) bool { return v.takes(row.name) }) {
			row.define(f, s)
		}
	}
}

// refused is the error of a flag that a view does not take.
func (v *view) refused(flag string) error {
	if why := v.refuses[flag]; why != "" {
		return errors.New(why)
	}
	var takers []string
	for _, other := range views {
		if other.takes(flag) {
			takers = append(takers, other.name)
		}
	}
	return fmt.Errorf("--%s goes with %s, not with %s", flag, list(takers, "and"), v.name)
}

// check says which of the flags that were given a view does not take.
func (v *view) check(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && isViewFlag(f.Name) && !v.takes(f.Name) {
			err = v.refused(f.Name)
		}
	})
	if err != nil {
		return err
	}
	for _, c := range conflicts {
		if cmd.Flags().Changed(c.flag) && cmd.Flags().Changed(c.with) {
			return fmt.Errorf("--%s does not go with --%s: %s", c.flag, c.with, c.why)
		}
	}
	return nil
}

// conflicts are flags of one view that exclude each other.
var conflicts = []struct{ flag, with, why string }{
	{"sort", "timeline", "drawings come as the connections end"},
	{"top", "timeline", "drawings come as the connections end"},
	{"field", "timeline", "it draws"},
	{"field", "verbose", "one prints some fields, the other all"},
	{"field", "hex", "fields are printed without the packets' bytes"},
	{"columns", "verbose", "one is a row a packet, the other a tree"},
	{"columns", "hex", "a row has no bytes of packets"},
	{"jq", "hex", "JSON has no bytes of packets"},
	{"field", "jq", "jq picks fields itself"},
}

// flagError words the error of a flag that the command does not know, but another
// does.
func flagError(cmd *cobra.Command, err error) error {
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		v := viewNamed(cmd.Name())
		if cmd.Parent() == nil {
			v = views[0]
		}
		for _, row := range flagTable {
			var all pflag.FlagSet
			row.define(new(flags), &all)
			f := all.Lookup(row.name)
			if v != nil && (row.name == unknown.GetSpecifiedName() || f.Shorthand != "" && f.Shorthand == unknown.GetSpecifiedName()) {
				return v.refused(row.name)
			}
		}
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// list is words with commas, and one before the last.
func list(words []string, before string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + before + " " + words[last]
}

// oneOf checks a flag that has a few values.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("%s %s: it is %s", flag, value, list(values, "or"))
}
