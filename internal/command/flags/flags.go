// Package flags defines the flags of the commands: the tables have a row for each of them, [Typed] their values as they were typed,
// and [Settings] what they mean to one [View].
package flags

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/shell"
)

// Typed holds the values of the flags of a view as they were typed. [Settings] holds what
// they mean to one view.
type Typed struct {
	Called map[string]string // names that messages use for captures instead of their paths
	Unread error             // of folders below those that the command line names
	plain

	output   string
	Filter   string
	jq       string
	fields   []string
	XIDs     []string
	decodeAs []string
	at       string
	hosts    string // file
	sort     string
	top      int
	From, To string
	by       []string
	failOn   string
	ignore   []string
	baseline string
	Rules    bool
	Explain  string
	rpc      bool
	Points   string
	Clock    string // empty for the first file

	// These are of commands that are no views.
	Interface      string
	LiveView       string // of --view
	Follow         string
	Stop           []string // of -a
	Promiscuous    bool
	Force          bool
	Keep           int64
	Write          string // of -w
	Format         string
	Export         string
	Metrics        string // address
	MetricsClients int
	Roll           time.Duration
	Partition      []string
	Replace        bool
	Scrub          bool
	Key            string
	Folder         string // of -C
	MaxSize        Size
	Limits         []string // of --fail-on of compare
}

// plain holds the flags that mean what was typed, to every view: numbers, switches, a path, and the look of the output,
// which depends on the terminal. Both [Typed] and [Settings] have them.
type plain struct {
	Conns      []int
	Count      int64
	Quiet      bool
	Memory     Size
	Tree       bool
	Bytes      bool
	Timeline   bool
	Every      time.Duration // length of the intervals of stats; 0 for one sum
	Accept     string        // file of --write-baseline
	unanswered time.Duration
	All        bool   // check lists each finding, connections each connection; a ladder is not folded
	Why        Packet // the packet that packets explains
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

// Packet names a packet: its number in the capture of a point, which is left out if there is only one capture. The number is 0 if no
// packet is named.
type Packet struct {
	Point  string
	Number int64
}

// String returns the name, such as 12 or 12@server.
func (p *Packet) String() string {
	switch {
	case p.Number == 0:
		return ""
	case p.Point == "":
		return strconv.FormatInt(p.Number, 10)
	}
	return fmt.Sprintf("%d@%s", p.Number, p.Point)
}

// Type returns the name of the type; pflag asks for it.
func (p *Packet) Type() string { return "packet" }

// Set parses a name.
func (p *Packet) Set(text string) (err error) {
	number, point, _ := strings.Cut(text, "@")
	if p.Number, err = strconv.ParseInt(number, 10, 64); err != nil || p.Number < 1 {
		return errors.New("must be the number of a packet, counted from 1, or 12@server with several capture points")
	}
	p.Point = point
	return nil
}

// In returns the packet in captures at several points, if there is more than one: the point of the packet is the name of one of them, or what is
// shown of that.
func (p *Packet) In(points []string) (record.PacketRef, error) {
	short := record.ShortNames(points)
	at := func(name string) string { return shell.Word((&Packet{short(name), p.Number}).String()) }
	i := slices.IndexFunc(points, func(name string) bool { return p.Point == name || p.Point == short(name) })
	switch {
	case len(points) < 2 && p.Point == "":
		return record.PacketRef{Packet: p.Number}, nil
	case len(points) < 2:
		return record.PacketRef{}, fmt.Errorf("--why %v: there is only one capture point, so give only the number, %d", p, p.Number)
	case i < 0:
		return record.PacketRef{}, fmt.Errorf("--why %v: name the capture point, too: --why %s or --why %s", p, at(points[0]), at(points[1]))
	}
	return record.PacketRef{Packet: p.Number, Point: points[i]}, nil
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

// takes reports whether a view supports a flag.
func (v *View) takes(flag string) bool {
	r := rowOf(flag)
	return r != nil && r.takers(v.Name)
}

// isViewFlag reports whether any view supports a flag.
func isViewFlag(flag string) bool {
	return slices.ContainsFunc(Views, func(v *View) bool { return v.takes(flag) })
}

// Define defines the flags that any of these views supports.
func (f *Typed) Define(s *pflag.FlagSet, of ...*View) {
	s.SortFlags = false // Help lists the flags in the order of the table.
	var one *View
	if len(of) == 1 {
		one = of[0]
	}
	for _, r := range viewFlags(f) {
		if slices.ContainsFunc(of, func(v *View) bool { return r.takers(v.Name) }) {
			r.define(s, one)
		}
	}
}

// groupOf returns the group of a flag of any command.
func groupOf(f *pflag.Flag) flagGroup {
	if r := rowOf(f.Name); r != nil {
		return r.group
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
	if why := rowOf(flag).refusal[v.Name]; why != "" {
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
		if err == nil && isViewFlag(f.Name) && !v.takes(f.Name) {
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
	{"field", "why", "the explanation of a packet is text"},
	{"output", "why", "the explanation of a packet is text"},
	{"jq", "why", "the explanation of a packet is text"},
	{"columns", "verbose", "--columns shows a table, --verbose a tree for each packet"},
	{"columns", "hex", "a table does not contain the bytes of the packets"},
	{"jq", "hex", "JSON does not contain the bytes of the packets"},
	{"field", "jq", "the jq program selects the fields"},
}

// foreignFlags has the flags that only other programs or commands have, and what to type instead.
var foreignFlags = map[string]string{
	"r": "name the capture without a flag, such as rdmadump FILE",
	"w": "rdmadump export --format pcapng FILE -w OUT writes packets, and -Y, --conn and --xid select them",
	"n": "names are never looked up, so leave it out; --hosts FILE shows those of a file",
	"t": "--time selects the form of times: relative, delta, utc, local or epoch",
	"R": "-Y EXPRESSION selects records; there is only one pass",
	"T": "leave out -T fields, because -e FIELD prints fields; -o json prints JSON, and packets -V all fields of each packet",
	"d": "--decode-as says what a port carries, such as --decode-as udp.port==8473,vxlan",
	"2": "nothing needs a second pass, so leave it out",
	"i": "rdmadump live -i INTERFACE captures on an interface",
	"V": "rdmadump packets -V FILE shows the tree of all fields",
	"z": "rdmadump stats, overview and connections sum up a capture",
}

// Error returns a clear error for a flag that could not be parsed: one that another
// view supports, or a value that is not valid.
func Error(cmd *cobra.Command, err error) error {
	unknown, invalid := (*pflag.NotExistError)(nil), (*pflag.InvalidValueError)(nil)
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if instead := foreignFlags[name]; instead != "" && unknown.GetSpecifiedShortnames() != "" {
			return fmt.Errorf("there is no flag -%s here; %s", name, instead)
		}
		if err := unknownFlag(cmd, name); err != nil {
			return err
		}
		switch {
		case unknown.GetSpecifiedShortnames() == "":
			name = "--" + name
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
	for _, r := range table {
		if name == r.name || r.short != "" && name == r.short {
			return v.refused(r.name)
		}
	}
	for _, fields := range []query.Fields{v.summed, v.Fields} {
		if fields == nil || len(name) == 1 {
			continue
		}
		if path, err := query.Resolve(name, fields); err == nil {
			return fmt.Errorf("there is no flag --%s; -Y '%s == ...' selects by this field", name, path)
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
	value := e.GetValue()
	if strings.TrimSpace(value) == "" {
		value = "'" + value + "'"
	}
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "intSlice": "a whole number", "uint64": "a whole number",
		"bool": "true or false", "duration": "a duration, such as 30s or 5m",
	}[f.Value.Type()]
	if want == "" {
		return fmt.Errorf("%s %s: %w", name, value, e.Unwrap())
	}
	return fmt.Errorf("%s %s: must be %s", name, value, want)
}

// Words returns the flags that were given and are wanted, as words of a command line that are not yet quoted.
func Words(set *pflag.FlagSet, wanted func(name string) bool) (words []string) {
	set.Visit(func(f *pflag.Flag) {
		if !wanted(f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, several := f.Value.(pflag.SliceValue); several {
			values = list.GetSlice()
		}
		for _, value := range values {
			switch isBool := f.Value.Type() == "bool"; {
			case isBool && value == "true":
				words = append(words, "--"+f.Name)
			case !isBool && !strings.HasPrefix(value, "-"):
				words = append(words, "--"+f.Name, value)
			default:
				words = append(words, "--"+f.Name+"="+value)
			}
		}
	})
	return words
}

// Selected returns, for a shell, the flags that were given and select what a command is about, each with a space before it.
func Selected(set *pflag.FlagSet) (text string) {
	for _, word := range Words(set, Selects) {
		text += " " + shell.Word(word)
	}
	return text
}

// Selects reports whether the flag with a name selects what all views are about, or says how to read the capture.
func Selects(name string) bool {
	return name != "filter" && slices.ContainsFunc(table, func(r row) bool { return r.name == name && r.group == selection })
}
