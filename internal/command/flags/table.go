package flags

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// row is a flag of the views: all that is known about it. To add a flag, add a row, a member to Typed, and what it means to Settings.
type row struct {
	name, short string
	group       flagGroup
	only, but   string                             // names of commands: of those that take it, or else of those that do not; all do without both
	doc         string                             // what it does; the placeholder of the value is in back quotes
	about       func(doc string, v *View) string   // returns doc with what the flag means to a view; nil if that is doc. v is nil in the help of live
	sets        any                                // a pointer to the value, or a pflag.Value
	byDefault   any                                // nil for the zero value
	alone       string                             // value of the flag without a value; empty if it needs one
	aloneIn     string                             // names of the views in which it needs none; empty for all
	values      func(v *View) []string             // returns all values that a view accepts; nil if they cannot be listed
	complete    func(v *View) cobra.CompletionFunc // returns what offers values to a shell; nil if values does, or nothing
	noInput     bool                               // the command reads no capture with this flag, so that live does not list it
	refusal     map[string]string                  // messages of views that do not take it; others have a general one
	missing     string                             // message of a command that needs it; empty if none does
	empty       string                             // message about an empty value, such as that of a shell variable that is not set; empty if it is accepted
}

// takers reports whether the command with a name takes the flag.
func (r *row) takers(name string) bool {
	if r.only != "" {
		return slices.Contains(strings.Fields(r.only), name)
	}
	return !slices.Contains(strings.Fields(r.but), name)
}

// packetsStay are the messages for flags that would sort packets.
var packetsStay = map[string]string{"packets": "packets does not support --sort and --top: packets stay in the order of the capture"}

// table lists every flag of the views.
var table = viewFlags(new(Typed))

// viewFlags returns every flag of the views, in the order in which help lists them. They set values of t.
func viewFlags(t *Typed) []row {
	return []row{
		{
			name: "verbose", short: "V", group: ofView, only: "packets",
			doc:  "show the tree of all fields, with their bits and offsets",
			sets: &t.Tree,
		},
		{
			name: "hex", short: "x", group: ofView, only: "packets",
			doc:  "show the bytes of each packet",
			sets: &t.Bytes,
		},
		{
			name: "why", group: ofView, only: "packets",
			doc:  "show the packet with this `number`, with several capture points 12@server, and what decided about it: each fact about the order of requests, and each event of an operation, with the packet that caused it",
			sets: &t.Why,
		},
		{
			name: "timeline", group: ofView, only: "connections",
			doc:  "draw credits and exposed handles over time",
			sets: &t.Timeline,
		},
		{
			name: "by", group: ofView, only: "rdma stats compare",
			doc:   "group transactions by these `fields`, with commas between them, such as client,operation, directory or size; program and procedure are possible, too, and status is what the column STATUS shows (default operation; with --every, no groups)",
			sets:  &t.by,
			about: aboutBy, complete: offerGroups,
		},
		{
			name: "every", group: ofView, only: "stats",
			doc:  "sum up each interval of this `duration`, such as 1s, counted from the start of the capture, and draw the intervals over time",
			sets: interval{&t.Every},
		},
		{
			name: "rpc", group: ofView, only: "transactions packets",
			doc:   "add the decoded arguments and results of NFS to JSON records",
			sets:  &t.rpc,
			about: aboutRPC,
		},
		{
			name: "lost", group: ofView, only: "network",
			doc:  "list the packets that were lost between the capture points, too",
			sets: &t.Lost,
		},
		{
			name: "fail-on", group: ofView, only: "check overview",
			doc:    "exit with status 1 if there is a finding of check, or a problem of overview, of this `severity` or a worse one: error, warning or note; without it, check does for errors",
			sets:   &t.failOn,
			values: fixed(record.Severities[:]...),
		},
		{
			name: "all", group: ofView, only: "check connections transactions",
			doc:  "check: list each finding, and the rules that could not be checked; connections: list also those that are alike; with --xid: draw the whole ladder",
			sets: &t.All,
		},
		{
			name: "ignore", group: ofView, only: "check",
			doc:      "do not report findings of this `rule` (repeat the flag for more)",
			sets:     &t.ignore,
			complete: offerRules,
		},
		{
			name: "baseline", group: ofView, only: "check",
			doc:  "do not report findings that are listed in this `file`, which --write-baseline wrote",
			sets: &t.baseline,
		},
		{
			name: "write-baseline", group: ofView, only: "check",
			doc:  "write the reported findings to this `file`, for use with --baseline",
			sets: &t.Accept,
		},
		{
			name: "rules", group: ofView, only: "check",
			doc:     "list all rules and exit",
			sets:    &t.Rules,
			noInput: true,
		},
		{
			name: "explain", group: ofView, only: "check overview problems",
			doc:   "check and problems: explain this `rule` or kind of problem, its usual causes and what to check, and exit; overview: list what the capture does not decide, too",
			sets:  &t.Explain,
			alone: "all", aloneIn: "overview", complete: offerRules, noInput: true,
		},
		{
			name: "unanswered-after", group: ofView, only: "check",
			doc:  "report a Call if it gets no Reply within this `duration` although later Calls do",
			sets: &t.unanswered, byDefault: 30 * time.Second,
		},

		{
			name: "filter", short: "Y", group: selection,
			doc:   "select the records that match this `expression`; rdmadump help filter explains it",
			sets:  &t.Filter,
			about: aboutFilter, complete: offerPaths,
		},
		{
			name: "xid", group: selection, but: "rdma browse",
			doc:  "select RPCs with this `XID` and their packets, connections and findings (repeat the flag for more)",
			sets: &t.XIDs, empty: xidForms,
		},
		{
			name: "conn", group: selection, but: "browse",
			doc:  "select the connection with this `number`, counted from 0 (repeat the flag for more)",
			sets: &t.Conns,
		},
		{
			name: "from", group: selection,
			doc:  "select records at or after this `time`: 10:02, 10:02:03.5, 2026-11-21 10:02:03 or RFC 3339, seconds since the start of the capture such as 2.5 or 90s, or -1m, which counts from its end",
			sets: &t.From, empty: momentForms,
		},
		{
			name: "to", group: selection,
			doc:  "select records at or before this `time`, which has the same forms; a time with three or more decimals, as rdmadump prints it, includes all of its last decimal",
			sets: &t.To, empty: momentForms,
		},
		{
			name: "decode-as", group: selection,
			doc:  "say what a TCP or UDP port carries, with a `rule` such as tcp.port==4045,rpc, udp.port==2049,other or udp.port==8473,vxlan (repeat the flag for more)",
			sets: (*whole)(&t.decodeAs),
		},
		{
			name: "at", group: selection,
			doc:  "say where the capture was taken: at the host with an `address`, at the client or server, or between them; at a host, the times that this host took are known exactly",
			sets: &t.at, empty: placeForms,
		},
		{
			name: "hosts", group: presentation, but: "browse export extract",
			doc:  "show the names in this `file`, which has the format of /etc/hosts, instead of addresses; JSON has both",
			sets: &t.hosts,
		},
		{
			name: "points", group: selection,
			doc:  "say `whether` the files are captures of the same traffic at several points: auto finds out, on says so where too little shows it, off merges them by their own times",
			sets: &t.Points, byDefault: "auto",
			values: fixed("auto", "on", "off"),
		},
		{
			name: "clock", group: selection,
			doc:  "show times of the clock of this `file`, or of the files in this folder, if there are several capture points; the default is the first file",
			sets: &t.Clock,
		},

		{
			name: "output", short: "o", group: presentation, but: "browse report export",
			doc:  "write records in this `format`: text, json (one record per line)",
			sets: &t.output, byDefault: "text",
			about: aboutOutput, values: outputs,
		},
		{
			name: "jq", group: presentation, but: "browse report export extract",
			doc:  "run this jq `program` on the JSON of each record, but not of the summary, and print its results",
			sets: &t.jq,
		},
		{
			name: "field", short: "e", group: presentation, but: "overview browse report export extract",
			doc:      "print only this `field`, with tabs between several (repeat the flag for more)",
			sets:     &t.fields,
			complete: offerFields,
		},
		{
			name: "columns", group: presentation, only: "transactions connections packets rdma tasks files stats compare",
			doc:      "show the table columns with these `headings`, with commas between them; help lists them, and rdmadump help columns explains them",
			sets:     &t.Look.Columns,
			complete: offerHeadings,
		},
		{
			name: "sort", group: presentation, only: "transactions connections rdma tasks check files stats compare",
			doc:     "sort by this `field`; -field puts the largest first",
			sets:    &t.sort,
			refusal: packetsStay, complete: offerFields,
		},
		{
			name: "time", group: presentation, but: "compare report export extract",
			doc:  "show times in this `form`: relative to the start of the capture, delta to the previous line, utc, local or epoch",
			sets: &t.Look.time, byDefault: string(render.Relative),
			values: fixed(render.AllTimes[:]...),
		},
		{
			name: "color", group: presentation, but: "report export extract",
			doc:  "say `when` to use colors: auto, always or never",
			sets: &t.Look.color, byDefault: "auto",
			values: fixed("auto", "always", "never"),
		},
		{
			name: "ascii", group: presentation, but: "report export extract",
			doc:  "say `when` to draw with ASCII characters only: true, false, or auto; auto draws with ASCII characters unless the terminal uses UTF-8",
			sets: &t.Look.ascii, byDefault: "auto",
			alone: "true", values: fixed("auto", "true", "false"),
		},
		{
			name: "width", group: presentation, but: "browse report export extract",
			doc:  "fit tables and drawings into this `number` of columns; the default is $COLUMNS or the width of the terminal",
			sets: &t.Look.width,
		},
		{
			name: "wide", group: presentation, but: "browse report export extract",
			doc:  "show all columns of tables, and do not shorten lines",
			sets: &t.Look.wide,
		},
		{
			name: "quiet", short: "q", group: presentation,
			doc:   "print no summary, progress or hints on standard error",
			sets:  &t.Quiet,
			about: aboutQuiet,
		},

		{
			name: "count", short: "c", group: limiting, but: "network overview browse report export extract",
			doc:  "stop after this `number` of records of the output",
			sets: &t.Count,
		},
		{
			name: "top", group: limiting, only: "transactions connections rdma tasks check files stats compare",
			doc:   "show only this `number` of records, the first ones after sorting",
			sets:  &t.top,
			about: aboutTop, refusal: packetsStay,
		},
		{
			name: "memory", group: limiting,
			doc:  "limit the memory for analysis state to this `size` (KiB, MiB, GiB); beyond it, the state of the connection that was unused for the longest time is discarded (evicted), and the summary says so",
			sets: &t.Memory, byDefault: defaultMemory,
		},
	}
}

// whole is the value of a flag whose values may contain commas.
type whole []string

// words is the value of a flag that is a list of words.
type words interface {
	pflag.Value
	pflag.SliceValue
}

// oneLine is a list of words. The package pflag reads it as CSV, and would ignore all lines but the first.
type oneLine struct {
	words
	empty string // see row
}

// Set parses a list of words.
func (l oneLine) Set(text string) error {
	if strings.ContainsAny(text, "\r\n") {
		return errors.New("a line break is not allowed")
	}
	if l.empty != "" && strings.TrimSpace(text) == "" {
		return errors.New(l.empty)
	}
	return l.words.Set(text)
}

// filled is the value of a flag that must not be empty. Without this, an empty value would select everything.
type filled struct {
	pflag.Value
	message string
}

// Set parses a value.
func (v filled) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New(v.message)
	}
	return v.Value.Set(text)
}

// define defines the flag, with the usage that it has for a view, or for several if v is nil.
func (r *row) define(s *pflag.FlagSet, v *View) {
	usage := r.doc
	if r.about != nil {
		usage = r.about(usage, v)
	}
	switch to := r.sets.(type) {
	case *bool:
		s.BoolVarP(to, r.name, r.short, false, usage)
	case *int:
		number, _ := r.byDefault.(int)
		s.IntVarP(to, r.name, r.short, number, usage)
	case *int64:
		s.Int64VarP(to, r.name, r.short, 0, usage)
	case *string:
		word, _ := r.byDefault.(string)
		s.StringVarP(to, r.name, r.short, word, usage)
		if f := s.Lookup(r.name); r.empty != "" {
			f.Value = filled{f.Value, r.empty}
		}
	case *[]string:
		s.StringSliceVarP(to, r.name, r.short, nil, usage)
		f := s.Lookup(r.name)
		f.Value = oneLine{f.Value.(words), r.empty}
	case *whole:
		s.StringArrayVarP((*[]string)(to), r.name, r.short, nil, usage)
	case *[]int:
		s.IntSliceVarP(to, r.name, r.short, nil, usage)
	case *time.Duration:
		s.DurationVarP(to, r.name, r.short, r.byDefault.(time.Duration), usage)
	case *Size:
		if r.byDefault != nil { // The others have a size already.
			*to = r.byDefault.(Size)
		}
		s.VarP(to, r.name, r.short, usage)
	case pflag.Value:
		s.VarP(to, r.name, r.short, usage)
	}
	if r.alone != "" && (r.aloneIn == "" || v != nil && slices.Contains(strings.Fields(r.aloneIn), v.Name)) {
		s.Lookup(r.name).NoOptDefVal = r.alone
	}
	s.Lookup(r.name).Hidden = v == nil && r.noInput
}

// shown returns the flag as messages name it.
func (r *row) shown() string {
	if r.short != "" {
		return "-" + r.short
	}
	return "--" + r.name
}

// rowOf returns the row of a flag, or nil if it is no flag of the views.
func rowOf(flag string) *row {
	if i := slices.IndexFunc(table, func(r row) bool { return r.name == flag }); i >= 0 {
		return &table[i]
	}
	return nil
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
	switch {
	case v.Name == checks:
		return []string{"text", "json", "csv", "sarif", "junit"}
	case v.Name == "overview":
		return []string{"text", "json", "markdown"}
	case v.onePage:
		return []string{"text", "json"}
	}
	return []string{"text", "json", "csv"}
}

// checks is the name of the view that has severities, and formats of its own.
const checks = "check"

func aboutOutput(doc string, v *View) string {
	switch {
	case v == nil:
		return doc + " or csv; check also supports sarif and junit"
	case v.Name == checks:
		return doc + ", csv, sarif or junit"
	case v.onePage:
		return doc + " or markdown"
	}
	return doc + " or csv"
}

func aboutQuiet(doc string, v *View) string {
	if v != nil && v.Name == checks {
		return doc + ", and neither the table of rules nor what was not checked"
	}
	return doc
}

func aboutTop(doc string, v *View) string {
	if v == nil {
		return doc
	}
	field, largest := strings.CutPrefix(v.top, "-")
	if doc += "; without --sort, they are sorted by " + field; largest {
		doc += ", the largest first"
	}
	return doc
}

func aboutRPC(doc string, v *View) string {
	if v != nil && v.Name == "packets" {
		return doc + ", those that the Send of the packet carries"
	}
	return doc
}

func aboutBy(doc string, v *View) string {
	switch {
	case v == nil:
		return doc
	case v.byUsage != "":
		return v.byUsage
	}
	return doc
}

func aboutFilter(doc string, v *View) string {
	if v == nil || v.filters == "" {
		return doc
	}
	return strings.Replace(doc, "select the records that", "select the "+v.filters+" that", 1)
}
