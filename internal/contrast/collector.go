// Package contrast finds what a set of RPCs has in common that the others do not have: the facts about fields of records that
// separate the two. It reports an association, with counts, and never a cause.
//
// question.go and rpcs.go have the questions that are asked, sample.go keeps the answers, search.go finds the facts that
// separate two sets, chance.go says how unlikely chance makes them, and words.go phrases the result.
package contrast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/query"
)

// Kind is what makes the RPCs of a set bad.
type Kind string

// The kinds of sets.
const (
	NoReply  Kind = "no_reply"
	Status   Kind = "status"
	Slow     Kind = "slow"
	ByRule   Kind = "finding"
	ByFilter Kind = "filter"

	Ended          Kind = "ended" // these are sets of connections
	Retransmitting Kind = "retransmitted"
)

// Values returns all kinds.
func (Kind) Values() []string {
	return record.Words(NoReply, Status, Slow, ByRule, ByFilter, Ended, Retransmitting)
}

// Slowness says which RPCs are slow. One of its fields is set.
type Slowness struct {
	Times      float64 // longer than this many times the median latency of their operation
	NS         int64   // longer than this
	Percentile float64 // longer than this share of all latencies

	// Limits are latencies in nanoseconds by operation, with Title for the RPCs that take longer.
	// Its keys are names of operations, such as READ, or of procedures of other programs, such as MOUNT3 MNT.
	Limits map[string]int64
	Title  string
}

// UsualSlow is the multiple of the median latency of its operation above which an RPC is slow, unless a user says otherwise.
const UsualSlow = 10

// Expression is a filter, as it was typed.
type Expression struct {
	*query.Filter
	Text string
}

// Options say which sets are asked about, and which questions.
type Options struct {
	Kinds       []Kind     // sets to ask about
	Rule        string     // with ByRule: only this rule; empty for each of which there are findings
	Set         Expression // with ByFilter
	Against     Expression // the others; a nil filter for all that could have been in the set
	Slow        Slowness   // with Slow
	Fields      []string   // questions are only about these fields; nil for all
	Explicit    bool       // report empty sets, too
	Obvious     bool       // ask also about what follows from the definition of the set
	Brief       bool       // leave out statuses that are ordinary answers, rules whose findings are notes, files and arguments
	Connections bool       // compare connections instead of RPCs
	Rows        int        // number of RPCs of each kind that are compared; 0 for the usual number

	limits map[string]limit // by operation or procedure; "" for all
}

// limit is the latency in nanoseconds above which RPCs of an operation or procedure are slow, and the filter for these RPCs.
type limit struct {
	ns   int64
	kind string
}

// procedure is a procedure of a program that has no operations: all but those of NFS.
type procedure struct{ program, version, number uint32 }

// kind returns the filter for the RPCs of the procedure.
func (p procedure) kind() string {
	return fmt.Sprintf("program == %d and version == %d and procedure == %d", p.program, p.version, p.number)
}

// maxProcedures is the number of procedures that are distinguished. They come from the wire, so they are limited.
const maxProcedures = 64

// usualRows is the number of RPCs that are compared, if there are more: so many of the bad ones, and so many of all.
const usualRows = 16384

// answerBytes is the memory for the different answers of an RPC, in bytes. Answers beyond that are unknown.
const answerBytes = 4096

// maxSets is the number of sets of one capture. Statuses come from the wire, so they are limited.
const maxSets = 64

// maxArguments is the number of names of arguments that are asked about.
const maxArguments = 64

// target is a set of RPCs that are asked about.
type target struct {
	kind   Kind
	name   string // of the status or rule
	filter string
	scope  int // in Collector.scopes
	held   reservoir
}

// maxEnds is the number of connections of RPCs without a Reply of which the end is kept.
const maxEnds = 65536

// ending is how a connection with RPCs without a Reply ended.
type ending struct {
	client, server string
	at             record.Time // the largest time if it did not end
	lacks          bool        // the capture lacks packets of it
}

// facets are the properties of a row that decide which sets could have it.
type facets struct {
	member  []int // sets that have it
	scopes  uint64
	against bool
}

// scope is a filter for the RPCs of which the question of a set can be answered.
type scope struct {
	text   string
	filter *query.Filter
}

// Collector keeps the answers of RPCs to all questions: of all RPCs if they are few, and of a sample otherwise.
type Collector struct {
	options   Options
	fields    query.Fields // of the records that are compared
	columns   []*column
	fixed     int // columns that are not of arguments
	latency   int // column of the latency; -1 for connections
	byName    map[string]int
	targets   []*target
	byKey     map[string]int
	scopes    []scope
	all       reservoir
	total     int64 // RPCs whose Call is in the capture
	without   int64 // RPCs whose Call is not
	unreplied int64 // RPCs whose Call is in the capture, but no Reply
	start     record.Time
	began     bool
	out       answers
	memory    memory
	entries   []uint32
	members   []int
	logs      factorials

	procedures []procedure
	byNumbers  map[procedure]int // place in procedures, and 1 more
	procNames  []string

	ends      map[int]ending // of connections with RPCs without a Reply
	absences  []record.Absence
	endsKnown bool
}

// NewCollector returns a collector.
func NewCollector(o Options) *Collector {
	c := &Collector{options: o, fields: query.Transactions, byName: map[string]int{}, byKey: map[string]int{}, byNumbers: map[procedure]int{}, ends: map[int]ending{}}
	if c.options.Rows == 0 {
		c.options.Rows = usualRows
	}
	c.all.size, c.memory.left = c.options.Rows, int64(c.options.Rows)*answerBytes
	var questions []question
	if o.Connections {
		c.fields, questions = query.Connections, connectionQuestions()
	} else {
		questions = rpcQuestions()
		for i := range maxHandleBytes {
			questions = append(questions, handleByte(i))
		}
		if o.Brief {
			questions = slices.DeleteFunc(questions, func(q question) bool { return q.topic == ofFile })
		}
	}
	for i := range questions {
		c.columns = append(c.columns, newColumn(&questions[i]))
	}
	c.fixed = len(c.columns)
	c.latency = slices.IndexFunc(c.columns, func(c *column) bool { return c.path == "latency_ns" })
	c.scope("")
	if !o.Connections {
		c.scope(answeredScope)
		for _, r := range rule.All { // Which rules have findings is known only later.
			c.scope(r.Scope())
		}
	}
	if o.Explicit && slices.Contains(o.Kinds, NoReply) {
		c.target(NoReply, "", noReplyFilter, "")
	}
	if of := rule.Find(o.Rule); o.Explicit && of != nil {
		c.ofRule(of)
	}
	if slices.Contains(o.Kinds, ByFilter) {
		within := ""
		if !o.Connections {
			within = scopeOf(&o.Set)
		}
		c.target(ByFilter, "", o.Set.Text, within)
	}
	if slices.Contains(o.Kinds, Slow) && o.limits != nil {
		filter, scope := slowFilters(o.limits)
		c.target(Slow, "", filter, scope)
	}
	return c
}

// scopeOf returns the scope of a set that -Y selects: RPCs with a Reply if the filter is only about their outcome.
func scopeOf(e *Expression) string {
	for _, path := range e.Paths() {
		if !slices.Contains([]string{"status", "nfs_status", "rpc_status"}, path) {
			return ""
		}
	}
	if strings.Contains(e.Text, string(record.NoReply)) || strings.Contains(e.Text, "!=") || strings.Contains(e.Text, "not ") {
		return ""
	}
	return answeredScope
}

// The scopes of statuses and latencies.
const (
	answeredScope = "status != no_reply"
	latencyScope  = "latency_ns != null"
)

// noReplyFilter selects the RPCs without a Reply.
const noReplyFilter = "status == no_reply"

// ofRule returns the number of the set of RPCs with findings of a rule.
func (c *Collector) ofRule(r *rule.Rule) int {
	return c.target(ByRule, r.ID, "findings == "+bare(textValue(r.ID)), r.Scope())
}

// slowFilters returns the filter for slow RPCs, and for those of which that can be said.
func slowFilters(limits map[string]limit) (filter, scope string) {
	if limit, all := limits[""]; all {
		return "latency_ns > " + duration(numberValue(limit.ns)), latencyScope
	}
	var names, parts, list []string
	for name := range limits {
		names = append(names, name)
	}
	slices.Sort(names)
	others := ""
	for _, name := range names {
		kind := limits[name].kind
		if kind == "" {
			v := bare(textValue(name))
			list, kind = append(list, v), "operation == "+v
		} else {
			others += " or (" + kind + ")"
		}
		parts = append(parts, kind+" and latency_ns > "+duration(numberValue(limits[name].ns)))
	}
	if names == nil {
		return "latency_ns < 0ns", latencyScope
	}
	scope = "operation in [" + strings.Join(list, ", ") + "]" + others
	if list == nil {
		scope = strings.TrimPrefix(others, " or ")
	}
	if others != "" {
		scope = "(" + scope + ")"
	}
	return strings.Join(parts, " or "), latencyScope + " and " + scope
}

// procedureOf returns the number of the procedure of an RPC without an operation, from 1; 0 if it is not known, or there are too many.
func (c *Collector) procedureOf(r *record.Transaction) int {
	program, known := r.Program.Get()
	version, hasVersion := r.Version.Get()
	number, hasNumber := r.Procedure.Get()
	if r.Operation.Known() || !known || !hasVersion || !hasNumber {
		return 0
	}
	p := procedure{program, version, number}
	if i := c.byNumbers[p]; i > 0 || len(c.procedures) == maxProcedures {
		return i
	}
	c.procedures, c.procNames = append(c.procedures, p), append(c.procNames, r.ProgramProcedure())
	c.byNumbers[p] = len(c.procedures)
	return len(c.procedures)
}

// limitFor returns the limit for the RPCs of an operation, or else of a procedure with a number that is not 0.
func (c *Collector) limitFor(operation string, of int) (limit, bool) {
	if l, all := c.options.limits[""]; all {
		return l, true
	}
	if of > 0 {
		operation = c.procNames[of-1]
	}
	l, has := c.options.limits[operation]
	return l, has
}

// target returns the number of a set, which is new if it was not asked for before. It returns -1 if there are too many.
func (c *Collector) target(kind Kind, name, filter, within string) int {
	key := string(kind) + " " + name
	if i, known := c.byKey[key]; known {
		return i
	}
	if len(c.targets) == maxSets {
		return -1
	}
	t := &target{kind: kind, name: name, filter: filter, scope: c.scope(within)}
	if t.scope < 0 {
		return -1
	}
	c.byKey[key] = len(c.targets)
	c.targets = append(c.targets, t)
	t.held.size = max(c.options.Rows/len(c.targets), 1)
	for _, other := range c.targets { // The sets share the space.
		other.held.shrink(t.held.size, func(r *row) {})
	}
	return len(c.targets) - 1
}

// scope returns the number of a scope; -1 if there are too many. An empty expression is the scope of all RPCs.
func (c *Collector) scope(text string) int {
	if i := slices.IndexFunc(c.scopes, func(s scope) bool { return s.text == text }); i >= 0 {
		return i
	}
	if len(c.scopes) == 64 {
		return -1
	}
	s := scope{text: text}
	if text != "" {
		var err error
		if s.filter, err = query.Compile(text, c.fields); err != nil {
			panic(err) // It is in the tables of this program.
		}
	}
	c.scopes = append(c.scopes, s)
	return len(c.scopes) - 1
}

// Begin sets the time of the first packet.
func (c *Collector) Begin(at record.Time) { c.start, c.began = at, true }

// Add takes an RPC. It keeps nothing of the record.
func (c *Collector) Add(r *record.Transaction) error {
	if r.Call == nil {
		c.without++
		return nil
	}
	if !c.began {
		c.Begin(r.Start())
	}
	if r.Status == record.NoReply {
		c.unreplied++
	}
	if err := c.memberships(r); err != nil {
		return err
	}
	return c.take(r, r.ID, r.Start())
}

// Ended takes the end of a connection, after its RPCs. It decides which RPCs without a Reply may have one that the capture lacks.
func (c *Collector) Ended(r *record.Connection) {
	e, asked := c.ends[r.ID]
	if !asked {
		return
	}
	e.lacks = r.NotCaptured > 0
	if r.Ended.Known() {
		e.at = r.Closed.Or(r.Last)
	}
	c.ends[r.ID] = e
}

// Absences takes the times in which packets are missing from the capture, after all connections.
func (c *Collector) Absences(list []record.Absence) { c.absences, c.endsKnown = list, true }

// mayHaveReply reports whether the capture may lack the Reply to an RPC without one: it lacks packets of the connection, or of
// its hosts between the Call and the end of the connection.
func (c *Collector) mayHaveReply(r *row) bool {
	e := c.ends[r.conn]
	return e.lacks || slices.ContainsFunc(c.absences, func(a record.Absence) bool {
		return int64(a.To) > r.time && a.From < e.at && (a.Address == e.client && a.Peer == e.server || a.Address == e.server && a.Peer == e.client)
	})
}

// take keeps the answers of a subject with this number and time, if it is wanted.
func (c *Collector) take(r any, id int64, at record.Time) error {
	c.total++
	hash := mix(id)
	wanted := c.all.wants(hash)
	if c.all.seen++; c.options.Brief && c.all.seen == 4*int64(c.options.Rows) { // A long capture is slow enough without a large sample.
		c.all.shrink(max(c.options.Rows/4, 1), func(r *row) { r.sampled = false })
	}
	for _, i := range c.members {
		t := c.targets[i]
		t.held.seen++
		wanted = wanted || t.held.wants(hash)
	}
	if !wanted {
		return nil
	}
	one, err := c.answer(r, id, at)
	if err != nil {
		return err
	}
	if c.all.wants(hash) {
		one.sampled = true
		c.all.hold(one, func(r *row) { r.sampled = false })
	}
	for _, i := range one.facets.member {
		if t := c.targets[i]; t.held.wants(hash) {
			one.sets = append(one.sets, i)
			t.held.hold(one, func(r *row) { r.sets = slices.DeleteFunc(r.sets, func(n int) bool { return n == i }) })
		}
	}
	return nil
}

// memberships determines which sets have an RPC.
func (c *Collector) memberships(r *record.Transaction) error {
	c.members = c.members[:0]
	for _, kind := range c.options.Kinds {
		switch kind {
		case NoReply:
			if r.Status == record.NoReply {
				c.join(c.target(NoReply, "", noReplyFilter, ""))
				if _, known := c.ends[r.Connection]; !known && len(c.ends) < maxEnds {
					c.ends[r.Connection] = ending{client: r.Client.Or(""), server: r.Server.Or(""), at: math.MaxInt64}
				}
			}
		case Status:
			if name := query.Outcome(r); r.Reply != nil && r.Failed() && !(c.options.Brief && ordinary[name]) {
				c.join(c.target(Status, name, "status == "+bare(textValue(name)), answeredScope))
			}
		case ByRule:
			for _, id := range r.Findings {
				if c.options.Rule != "" && c.options.Rule != id {
					continue
				}
				if of := rule.Find(id); of != nil && !(c.options.Brief && of.Severity == record.Note) {
					c.join(c.ofRule(of))
				}
			}
		case Slow:
			latency, known := r.LatencyNS.Get()
			if limit, has := c.limitFor(r.Operation.Or(""), c.procedureOf(r)); known && has && latency > limit.ns {
				c.join(c.byKey[string(Slow)+" "])
			}
		case ByFilter:
			if err := c.joinByFilter(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// join adds a set, which target returned, to those that have a subject.
func (c *Collector) join(set int) {
	if set >= 0 {
		c.members = append(c.members, set)
	}
}

// joinByFilter adds the set that a filter selects, if it selects a subject.
func (c *Collector) joinByFilter(r any) error {
	hit, err := c.options.Set.Match(r)
	if hit {
		c.join(c.byKey[string(ByFilter)+" "])
	}
	return err
}

// ordinary has the statuses that are answers to ordinary questions: that a file does not exist is no trouble.
var ordinary = map[string]bool{}

func init() {
	for _, name := range []string{"NOENT", "EXIST", "NOTEMPTY", "NOTDIR", "ISDIR", "ACCESS", "ACCES", "PERM", "SAME", "NOT_SAME", "NOXATTR", "COMPLETE_ALREADY", "DENIED"} {
		for _, version := range []string{"NFS", "NFS3", "NFS4"} {
			ordinary[version+"ERR_"+name] = true
		}
	}
}

// answer returns a row with the answers of a subject to all questions.
func (c *Collector) answer(r any, id int64, at record.Time) (*row, error) {
	one := &row{id: id, time: int64(at), hash: mix(id)}
	one.facets.member = slices.Clone(c.members)
	c.entries = c.entries[:0]
	for _, col := range c.columns[:c.fixed] {
		c.out.values = c.out.values[:0]
		col.each(r, &c.out)
		c.entries = append(c.entries, col.enter(c.out.values, &c.memory))
	}
	if t, is := r.(*record.Transaction); is {
		one.of, one.conn, one.procedure = t.RetransmitOf.Or(0), t.Connection, int32(c.procedureOf(t))
		c.arguments(t)
	}
	one.entries = slices.Clone(c.entries)
	for i := range c.scopes {
		hit, err := c.within(i, r)
		if err != nil {
			return nil, err
		}
		if hit {
			one.facets.scopes |= 1 << i
		}
	}
	one.facets.against = true
	if c.options.Against.Filter != nil {
		hit, err := c.options.Against.Match(r)
		if err != nil {
			return nil, err
		}
		one.facets.against = hit
	}
	return one, nil
}

// within reports whether a scope has an RPC.
func (c *Collector) within(scope int, r any) (bool, error) {
	if c.scopes[scope].filter == nil {
		return true, nil
	}
	return c.scopes[scope].filter.Match(r)
}

// arguments appends the entries of the arguments of an RPC.
func (c *Collector) arguments(r *record.Transaction) {
	type list struct {
		column int
		values []value
	}
	var lists []list
	argumentsOf(r.Decoded.Call.Message, func(name string, v value) {
		at := c.argumentColumn(name)
		if at < 0 {
			return
		}
		for i := range lists {
			if lists[i].column == at {
				if !slices.Contains(lists[i].values, v) {
					lists[i].values = append(lists[i].values, v)
				}
				return
			}
		}
		lists = append(lists, list{at, []value{v}})
	})
	argumentsOf(r.Decoded.Reply.Message, func(name string, _ value) {
		if at := c.argumentColumn(name); at >= 0 { // Filters find the value in the Reply, too.
			c.columns[at].replies = true
		}
	})
	for _, l := range lists {
		if len(l.values) > 1 { // A value that is too long is not asked about; the others are.
			l.values = slices.DeleteFunc(l.values, func(v value) bool { return v.kind == unknown })
		}
		for len(c.entries) <= l.column {
			c.entries = append(c.entries, 0)
		}
		c.entries[l.column] = c.columns[l.column].enter(l.values, &c.memory)
	}
}

// argumentColumn returns the number of the column of an argument; -1 if it has none.
func (c *Collector) argumentColumn(name string) int {
	if name == "to_name" {
		name = "name"
	}
	if at, known := c.byName[name]; known {
		return at
	}
	at := -1
	q := argument(name)
	if f := query.Transactions.Field(q.path); f != nil && !slices.Contains(merged, name) && len(c.columns)-c.fixed < maxArguments {
		at = len(c.columns)
		c.columns = append(c.columns, newColumn(&q))
	}
	c.byName[name] = at
	return at
}

// merged lists the names of arguments that stand for several fields in filters.
var merged = []string{"operation", "opcode", "status", "seqid", "sequenceid", "open_seqid", "stateid", "fhandle", "error"}

// Sampled reports whether not all RPCs are kept, or not all of their answers.
func (c *Collector) Sampled() bool {
	return c.memory.left <= 0 || c.all.seen > int64(len(c.all.rows)) || slices.ContainsFunc(c.targets, func(t *target) bool { return t.held.seen > int64(len(t.held.rows)) })
}

// leastLatencies is the number of latencies that an operation or procedure needs, so that any of them can be slow.
const leastLatencies = 8

// limitsOf returns the latencies above which RPCs are slow, as the RPCs so far show it.
func (c *Collector) limitsOf(slow Slowness) map[string]limit {
	if slow.NS > 0 {
		return map[string]limit{"": {ns: slow.NS}}
	}
	limits := map[string]limit{}
	if slow.Limits != nil {
		for name, ns := range slow.Limits {
			limits[name] = limit{ns: ns, kind: c.kindOf(name)}
		}
		return limits
	}
	byName := map[string][]int64{}
	for _, r := range c.all.rows {
		name, latency, known := c.latencyOf(r)
		if slow.Times == 0 {
			name = ""
		}
		if known && (name != "" || slow.Times == 0) {
			byName[name] = append(byName[name], latency)
		}
	}
	for name, list := range byName {
		if len(list) < leastLatencies {
			continue
		}
		slices.Sort(list)
		ns := int64(0)
		if slow.Percentile > 0 {
			ns = list[min(int(slow.Percentile*float64(len(list))), len(list)-1)]
		} else {
			ns = math.MaxInt64
			if limit := slow.Times * float64(list[len(list)/2]); limit < math.MaxInt64/2 {
				ns = int64(limit)
			}
		}
		limits[name] = limit{ns: ns, kind: c.kindOf(name)}
	}
	return limits
}

// kindOf returns the filter for the RPCs of a procedure; empty for an operation.
func (c *Collector) kindOf(name string) string {
	if i := slices.Index(c.procNames, name); i >= 0 {
		return c.procedures[i].kind()
	}
	return ""
}

// latencyOf returns the operation or procedure of a row, which is empty if it is unknown, and its latency.
func (c *Collector) latencyOf(r *row) (name string, ns int64, known bool) {
	latency, operation := c.columns[c.latency], c.columns[0]
	if r.procedure > 0 {
		name = c.procNames[r.procedure-1]
	} else if of := operation.entries[r.entries[0]].values; len(of) > 0 {
		name = operation.values[of[0]].text
	}
	entry := latency.entries[r.entries[c.latency]].values
	if len(entry) == 0 {
		return name, 0, false
	}
	return name, latency.values[entry[0]].number, true
}

// Again returns a collector that must take the same RPCs once more, because only now is it known which RPCs are slow. It
// returns nil if the RPCs that were kept are enough.
func (c *Collector) Again() *Collector {
	if !slices.Contains(c.options.Kinds, Slow) || c.options.limits != nil {
		return nil
	}
	limits := c.limitsOf(c.options.Slow)
	if c.Sampled() {
		o := c.options
		o.limits = limits
		return NewCollector(o)
	}
	c.options.limits = limits
	c.markSlow()
	return nil
}

// SetSlow says which RPCs are slow, after they were taken.
func (c *Collector) SetSlow(s Slowness) { c.options.Slow = s }

// markSlow adds the set of slow RPCs, if all RPCs are kept.
func (c *Collector) markSlow() {
	filter, within := slowFilters(c.options.limits)
	i := c.target(Slow, "", filter, within)
	if i < 0 {
		return
	}
	for _, r := range c.all.rows {
		name, latency, known := c.latencyOf(r)
		limit, has := c.limitFor(name, 0)
		if !known || !has {
			continue
		}
		r.facets.scopes |= 1 << c.targets[i].scope
		if latency > limit.ns {
			r.facets.member, r.sets = append(r.facets.member, i), append(r.sets, i)
			c.targets[i].held.rows, c.targets[i].held.seen = append(c.targets[i].held.rows, r), c.targets[i].held.seen+1
		}
	}
}

// sorted returns all rows that are kept, in the order of time.
func (c *Collector) sorted() []*row {
	rows := slices.Clone(c.all.rows)
	for _, t := range c.targets {
		for _, r := range t.held.rows {
			if !r.sampled {
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.id, b.id)) })
	return slices.Compact(rows)
}
