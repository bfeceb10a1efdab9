// Package flags defines the flags of the views: [Table] has a row for each of them, [Typed] their values as they were typed,
// and [Settings] what they mean to one [View].
package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/render"
)

// Typed holds the values of the flags of a view as they were typed. [Settings] holds what
// they mean to one view.
type Typed struct {
	Called map[string]string // names that messages use for captures instead of their paths
	values

	output   string
	Filter   string
	jq       string
	fields   []string
	XIDs     []string
	decodeAs []string
	sort     string
	top      int
	From, To string
	by       string
	failOn   string
	ignore   []string
	baseline string
	Rules    bool
	Explain  string
	rpc      bool
}

// values holds the values of the flags that mean the same to every view.
type values struct {
	Conns      []int
	Count      int64
	Color      string
	Quiet      bool
	Memory     Size
	Tree       bool
	Bytes      bool
	Timeline   bool
	Every      time.Duration // length of the intervals of stats; 0 for one sum
	Accept     string        // file of --write-baseline
	unanswered time.Duration
	Points     string // of --points
	Clock      string // file of --clock; empty for the first
	Lost       bool   // network lists the packets that were lost
	Look       appearance
}

// Size is a flag value: a number of bytes.
type Size int64

// The smallest and the largest value of --memory, and its default.
const (
	leastMemory   Size = 1 << 20
	mostMemory    Size = 1 << 50
	defaultMemory Size = 256 << 20
)

// String returns the size with its unit, such as 256MiB.
func (s *Size) String() string { return strings.ReplaceAll(humanize.IBytes(uint64(*s)), " ", "") }

// Type returns the name of the type; pflag asks for it.
func (s *Size) Type() string { return "size" }

// Set parses a size such as 64MiB or 1GiB, or a plain number of bytes.
func (s *Size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n < uint64(leastMemory) || n > uint64(mostMemory) {
		return fmt.Errorf("a size is a number with KiB, MiB or GiB, such as 64MiB, and must be at least 1MiB")
	}
	*s = Size(n)
	return nil
}

// interval is the value of a flag that is a duration longer than 0.
type interval struct{ *time.Duration }

// String returns the duration, or nothing if the flag was not given.
func (i interval) String() string {
	if i.Duration == nil || *i.Duration == 0 {
		return ""
	}
	return i.Duration.String()
}

// Type returns the name of the type; pflag asks for it.
func (i interval) Type() string { return "interval" }

// Set parses a duration such as 1s.
func (i interval) Set(text string) (err error) {
	if *i.Duration, err = time.ParseDuration(text); err != nil || *i.Duration <= 0 {
		return errors.New("a duration is a number with a unit, such as 1s or 200ms, and must be longer than 0")
	}
	return nil
}

// flagGroup is a heading below which help texts and man pages list flags.
type flagGroup int

// The groups, in the order in which they are listed.
const (
	ofCommand flagGroup = iota // flags that only this command has
	ofView                     // flags that only some views support
	selection
	presentation
	limiting
	ofAll // flags that every command has
)

// GroupTitles are the headings of the groups.
var GroupTitles = [...]string{
	ofCommand: "Flags", ofView: "Flags of the view", selection: "Selection", presentation: "Output", limiting: "Limits", ofAll: "Other",
}

// Table lists every flag of the views with its group and its definition. The table
// of the views says which view supports which flag.
var Table = []struct {
	Name   string
	group  flagGroup
	define func(f *Typed, s *pflag.FlagSet)
}{
	{"verbose", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVarP(&f.Tree, "verbose", "V", false, "show the tree of all fields, with their bits and offsets")
	}},
	{"hex", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVarP(&f.Bytes, "hex", "x", false, "show the bytes of each packet")
	}},
	{"timeline", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVar(&f.Timeline, "timeline", false, "draw credits and exposed handles over time")
	}},
	{"by", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.by, "by", "", "group transactions by these `fields`, with commas between them, such as client,operation; program and procedure are possible, too (default operation; with --every, no groups)")
	}},
	{"every", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.Var(interval{&f.Every}, "every", "sum up each interval of this `duration`, such as 1s, counted from the start of the capture, and draw the intervals over time")
	}},
	{"rpc", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVar(&f.rpc, "rpc", false, "add the decoded arguments and results of NFS to JSON records")
	}},
	{"lost", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVar(&f.Lost, "lost", false, "list the packets that were lost between the capture points, too")
	}},
	{"fail-on", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.failOn, "fail-on", "error", "exit with status 1 if there are findings of this `severity` or a worse one: error, warning or note")
	}},
	{"ignore", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.StringSliceVar(&f.ignore, "ignore", nil, "do not report findings of this `rule` (repeat the flag for more)")
	}},
	{"baseline", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.baseline, "baseline", "", "do not report findings that are listed in this `file`, which --write-baseline wrote")
	}},
	{"write-baseline", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Accept, "write-baseline", "", "write the reported findings to this `file`, for use with --baseline")
	}},
	{"rules", ofView, func(f *Typed, s *pflag.FlagSet) { s.BoolVar(&f.Rules, "rules", false, "list all rules and exit") }},
	{"explain", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Explain, "explain", "", "explain this `rule`, its usual causes and what to check, and exit")
	}},
	{"unanswered-after", ofView, func(f *Typed, s *pflag.FlagSet) {
		s.DurationVar(&f.unanswered, "unanswered-after", 30*time.Second, "report a Call if it gets no Reply within this `duration` although later Calls do")
	}},

	{"filter", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringVarP(&f.Filter, "filter", "Y", "", "select the records that match this `expression`; rdmadump help filter explains it")
	}},
	{"xid", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringSliceVar(&f.XIDs, "xid", nil, "select RPCs with this `XID` and their packets, connections and findings (repeat the flag for more)")
	}},
	{"conn", selection, func(f *Typed, s *pflag.FlagSet) {
		s.IntSliceVar(&f.Conns, "conn", nil, "select the connection with this `number`, counted from 0 (repeat the flag for more)")
	}},
	{"from", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.From, "from", "", "select records at or after this `time`: RFC 3339, or seconds since the start of the capture such as 2.5 or 90s")
	}},
	{"to", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.To, "to", "", "select records at or before this `time`, which has the same forms")
	}},

	{"decode-as", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringArrayVar(&f.decodeAs, "decode-as", nil, "say what a TCP or UDP port carries without RDMA, with a `rule` such as tcp.port==4045,rpc or udp.port==2049,other (repeat the flag for more)")
	}},
	{"points", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Points, "points", "auto", "say `when` to recognize captures of the same traffic at several points: auto, or off to merge the files by their own times")
	}},
	{"clock", selection, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Clock, "clock", "", "show times of the clock of this `file` if there are several capture points; the default is the first file")
	}},

	{"output", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVarP(&f.output, "output", "o", "text", "write records in this `format`: text, json (one record per line), csv")
	}},
	{"jq", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.jq, "jq", "", "run this jq `program` on the JSON of each record, but not of the summary, and print its results")
	}},
	{"field", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringSliceVarP(&f.fields, "field", "e", nil, "print only this `field`, with tabs between several (repeat the flag for more)")
	}},
	{"columns", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringSliceVar(&f.Look.Columns, "columns", nil, "show the table columns with these `headings`, with commas between them; rdmadump help columns explains them")
	}},
	{"sort", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.sort, "sort", "", "sort by this `field`; -field puts the largest first")
	}},
	{"time", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Look.time, "time", string(render.Relative), "show times in this `form`: relative to the start of the capture, delta to the previous line, utc, local or epoch")
	}},
	{"color", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Color, "color", "auto", "say `when` to use colors: auto, always or never")
	}},
	{"background", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Look.background, "background", "auto", "use colors for this `kind` of background: auto, dark or light; auto reads $COLORFGBG")
	}},
	{"ascii", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.StringVar(&f.Look.ascii, "ascii", "auto", "say `when` to draw with ASCII characters only: true, false, or auto; auto draws with ASCII characters unless the terminal uses UTF-8")
		s.Lookup("ascii").NoOptDefVal = "true"
	}},
	{"width", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.IntVar(&f.Look.width, "width", 0, "fit tables and drawings into this `number` of columns; the default is $COLUMNS or the width of the terminal")
	}},
	{"wide", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVar(&f.Look.wide, "wide", false, "show all columns of tables, and do not shorten lines")
	}},
	{"quiet", presentation, func(f *Typed, s *pflag.FlagSet) {
		s.BoolVarP(&f.Quiet, "quiet", "q", false, "print no summary, progress or hints on standard error")
	}},

	{"count", limiting, func(f *Typed, s *pflag.FlagSet) {
		s.Int64VarP(&f.Count, "count", "c", 0, "stop after this `number` of records")
	}},
	{"top", limiting, func(f *Typed, s *pflag.FlagSet) {
		s.IntVar(&f.top, "top", 0, "show only this `number` of records, the first ones after sorting")
	}},
	{"memory", limiting, func(f *Typed, s *pflag.FlagSet) {
		f.Memory = defaultMemory
		s.Var(&f.Memory, "memory", "limit the memory for analysis state to this `size` (KiB, MiB, GiB); beyond it, the state of the connection that was unused for the longest time is discarded (evicted), and the summary says so")
	}},
}

// Choices lists the flags that accept only a few values, with the values that a view
// accepts.
var Choices = []struct {
	Flag, as string
	value    func(f *Typed) string
	Values   func(v *View) []string
}{
	{"output", "-o", func(f *Typed) string { return f.output }, outputs},
	{"points", "--points", func(f *Typed) string { return f.Points }, fixed("auto", "off")},
	{"color", "--color", func(f *Typed) string { return f.Color }, fixed("auto", "always", "never")},
	{"fail-on", "--fail-on", func(f *Typed) string { return f.failOn }, fixed(record.Severities[:]...)},
	{"time", "--time", func(f *Typed) string { return f.Look.time }, fixed(render.AllTimes[:]...)},
	{"ascii", "--ascii", func(f *Typed) string { return f.Look.ascii }, fixed("auto", "true", "false")},
	{"background", "--background", func(f *Typed) string { return f.Look.background }, fixed("auto", "dark", "light")},
}

// fixed returns a function that returns the same values for every view.
func fixed[T ~string](values ...T) func(*View) []string {
	var words []string
	for _, v := range values {
		words = append(words, string(v))
	}
	return func(*View) []string { return words }
}

// outputs returns the values of -o that a view accepts.
func outputs(v *View) []string {
	if v.takes("fail-on") {
		return []string{"text", "json", "csv", "sarif", "junit"}
	}
	if v.onePage {
		return []string{"text", "json"}
	}
	return []string{"text", "json", "csv"}
}

// CommonFlags are supported by every view, except by those that list them in without.
var CommonFlags = []string{"output", "filter", "jq", "field", "xid", "conn", "count", "from", "to", "color", "quiet", "memory", "decode-as", "points", "clock", "width", "wide", "time", "ascii", "background"}

// takes reports whether a view supports a flag.
func (v *View) takes(flag string) bool {
	return slices.Contains(CommonFlags, flag) && !slices.Contains(v.Without, flag) || slices.Contains(v.Flags, flag)
}

// IsViewFlag reports whether any view supports a flag.
func IsViewFlag(flag string) bool {
	return slices.ContainsFunc(Views, func(v *View) bool { return v.takes(flag) })
}

// Define defines the flags that any of these views supports.
func (f *Typed) Define(s *pflag.FlagSet, of ...*View) {
	s.SortFlags = false // Help lists the flags in the order of the table.
	for _, row := range Table {
		if slices.ContainsFunc(of, func(v *View) bool { return v.takes(row.Name) }) {
			row.define(f, s)
		}
	}
	if len(of) == 1 {
		of[0].specify(s)
		return
	}
	if output := s.Lookup("output"); output != nil {
		output.Usage += "; check also supports sarif and junit"
	}
	for _, name := range []string{"rules", "explain"} { // They need no capture.
		if flag := s.Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
}

// specify says in the usage of flags what they mean to one view.
func (v *View) specify(s *pflag.FlagSet) {
	say := func(flag, more string) {
		if f := s.Lookup(flag); f != nil {
			f.Usage += more
		}
	}
	if v.takes("top") {
		field, largest := strings.CutPrefix(v.top, "-")
		say("top", "; without --sort, they are sorted by "+field)
		if largest {
			say("top", ", the largest first")
		}
	}
	if v.takes("fail-on") {
		say("output", ", sarif or junit")
		say("quiet", ", and neither the table of rules nor what was not checked")
	}
	if v.Name == "packets" {
		say("rpc", ", those that the Send of the packet carries")
	}
	if v.Name == "stats" {
		say("by", "; fields that only RDMA operations have, such as kind,side, sum up RDMA operations")
	}
	if by := s.Lookup("by"); by != nil && v.byUsage != "" {
		by.Usage = v.byUsage
	}
	if filter := s.Lookup("filter"); filter != nil && v.filters != "" {
		filter.Usage = strings.Replace(filter.Usage, "select the records that", "select the "+v.filters+" that", 1)
	}
}

// groupOf returns the group of a flag of any command.
func groupOf(f *pflag.Flag) flagGroup {
	for _, row := range Table {
		if row.Name == f.Name {
			return row.group
		}
	}
	if f.Name == "help" || f.Name == "version" {
		return ofAll
	}
	return ofCommand
}

// Grouped returns the flags of a command by group. They are in the order in which they
// were defined.
func Grouped(cmd *cobra.Command) (groups [len(GroupTitles)]*pflag.FlagSet) {
	for i := range groups {
		groups[i] = new(pflag.FlagSet)
		groups[i].SortFlags = false
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			groups[groupOf(f)].AddFlag(f)
		}
	})
	if !groups[ofCommand].HasFlags() { // A command that is a view does not need two groups.
		groups[ofCommand], groups[ofView] = groups[ofView], groups[ofCommand]
	}
	return groups
}

// refused returns the error for a flag that a view does not support.
func (v *View) refused(flag string) error {
	if why := v.refuses[flag]; why != "" {
		return errors.New(why)
	}
	var takers []string
	for _, other := range Views {
		if other.takes(flag) {
			takers = append(takers, other.Name)
		}
	}
	return fmt.Errorf("%s does not support --%s; only %s", v.Name, flag, supporters(takers))
}

// supporters returns the end of a sentence about the views that support a flag.
func supporters(views []string) string {
	if len(views) == 1 {
		return views[0] + " does"
	}
	return command.List(views, "and") + " do"
}

// Check returns an error if a flag was given that a view does not support, or if two
// flags were given that exclude each other.
func (v *View) Check(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && IsViewFlag(f.Name) && !v.takes(f.Name) {
			err = v.refused(f.Name)
		}
	})
	if err != nil {
		return err
	}
	for _, c := range conflicts {
		if cmd.Flags().Changed(c.flag) && cmd.Flags().Changed(c.with) {
			return fmt.Errorf("--%s cannot be combined with --%s: %s", c.flag, c.with, c.why)
		}
	}
	return nil
}

// conflicts lists the flags of one view that exclude each other.
var conflicts = []struct{ flag, with, why string }{
	{"sort", "timeline", "timelines are drawn in the order in which the connections end"},
	{"top", "timeline", "timelines are drawn in the order in which the connections end"},
	{"field", "timeline", "a timeline is a drawing"},
	{"field", "verbose", "--field prints some fields, --verbose all of them"},
	{"field", "hex", "fields are printed without the bytes of the packets"},
	{"columns", "verbose", "--columns shows a table, --verbose a tree for each packet"},
	{"columns", "hex", "a table does not contain the bytes of the packets"},
	{"jq", "hex", "JSON does not contain the bytes of the packets"},
	{"field", "jq", "the jq program selects the fields"},
}

// Error returns a clear error for a flag that could not be parsed: one that another
// view supports, or a value that is not valid.
func Error(cmd *cobra.Command, err error) error {
	unknown, invalid := (*pflag.NotExistError)(nil), (*pflag.InvalidValueError)(nil)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if err := unknownFlag(cmd, name); err != nil {
			return err
		}
		switch {
		case unknown.GetSpecifiedShortnames() == "":
			name = "--" + name
		case name == "r":
			return errors.New("there is no flag -r; name the capture without a flag, such as rdmadump FILE")
		default:
			name = "-" + name
		}
		return fmt.Errorf("unknown flag %s; see %s --help", name, cmd.CommandPath())
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// unknownFlag returns the error for a flag that a command does not have, if there is more
// to say than that.
func unknownFlag(cmd *cobra.Command, name string) error {
	v := ViewNamed(cmd.Name())
	if cmd.Parent() == nil {
		v = Views[0]
	}
	if v == nil {
		return nil
	}
	for _, row := range Table {
		var all pflag.FlagSet
		row.define(new(Typed), &all)
		if f := all.Lookup(row.Name); row.Name == name || f.Shorthand != "" && f.Shorthand == name {
			return v.refused(row.Name)
		}
	}
	return nil
}

// invalidValue returns the error for a value that a flag does not accept.
func invalidValue(e *pflag.InvalidValueError) error {
	f := e.GetFlag()
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "intSlice": "a whole number", "uint64": "a whole number",
		"bool": "true or false", "duration": "a duration, such as 30s or 5m",
	}[f.Value.Type()]
	if want == "" {
		return fmt.Errorf("%s %s: %w", name, e.GetValue(), e.Unwrap())
	}
	return fmt.Errorf("%s %s: must be %s", name, e.GetValue(), want)
}
