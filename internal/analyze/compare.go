package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// ComparisonKind is what a comparison compares.
type ComparisonKind string

// The kinds, in the order of the comparisons.
const (
	ComparedProblem ComparisonKind = "problem"
	ComparedGroup   ComparisonKind = "group"
	ComparedShare   ComparisonKind = "share"
	ComparedWait    ComparisonKind = "wait"
	ComparedSetting ComparisonKind = "setting"
)

// Values returns all kinds.
func (ComparisonKind) Values() []string {
	return record.Words(ComparedProblem, ComparedGroup, ComparedShare, ComparedWait, ComparedSetting)
}

// Comparison is one thing that two captures have, or only one of them: a problem, a group of RPCs, a reason for
// stalls, or a negotiated value.
type Comparison struct {
	Type        string           `json:"type" doc:"The record's type, always \"comparison\"." values:"comparison"`
	Kind        ComparisonKind   `json:"kind" doc:"What is compared: problem (of the same kind and places; of the same rule for protocol-violation, status for rpc-failed, and part, mounting or not, for slow-rpc), group (RPCs, by operation or by the fields of --by), share (time that the server, the client or the network took of all RPCs, as far as the captures prove it), wait (stalls with one reason), setting (a value that connections negotiated and that changed)."`
	Name        string           `json:"name" doc:"Id of the problem, name of the group, the side that took a share, reason of the stalls, or name of the value."`
	Group       []string         `json:"group,omitzero" doc:"Values of what the RPCs are grouped by; present only for a group, and not for others."`
	Before      Measured         `json:"before" doc:"What the first capture has."`
	After       Measured         `json:"after" doc:"What the second capture has."`
	Change      Changes          `json:"change" doc:"Relative changes, from the first to the second capture: 0.2 is 20 percent more."`
	PValues     PValues          `json:"p_values" doc:"Probability, for each percentile, of a change that is as large as this or larger if only chance decides which RPC is in which capture: the p-value of an exact permutation test."`
	Significant record.Opt[bool] `json:"significant" doc:"Whether the latency changed by more than chance explains: whether a p-value is below 0.001; null if no percentile was tested, because it is no group, has fewer than 30 latencies in one of the captures, or has percentiles that are only upper bounds."`
}

// Measured is what one capture has of something that is compared.
type Measured struct {
	Count   record.Opt[int64]         `json:"count" doc:"Number of RPCs or stalls; null for a problem and a setting."`
	Errors  record.Opt[int64]         `json:"failed" doc:"Number of RPCs that failed: the Call was answered with RDMA_ERROR, or the Reply has an RPC or NFS error status; null unless a group is compared."`
	NoReply record.Opt[int64]         `json:"no_reply" doc:"Number of RPCs without a Reply (status no_reply); null unless a group is compared."`
	Bytes   record.Opt[int64]         `json:"bytes" doc:"Number of bytes in the Payload streams of the Calls and Replies; null unless a group is compared."`
	Latency Quantiles                 `json:"latency" doc:"Distribution of the latency of the group's RPCs; its members are null for other kinds."`
	TotalNS record.Opt[int64]         `json:"total_ns" doc:"Sum of all latencies of a group, or of all stalls of answered RPCs with one reason, in nanoseconds; null for other kinds."`
	Share   record.Opt[float64]       `json:"share" doc:"Share of the stalls in the sum of the latencies of all RPCs, from 0 to 1; null unless a wait is compared."`
	MeanNS  record.Opt[record.Bounds] `json:"mean_ns" doc:"Time that the side can have taken for an RPC on average, in nanoseconds; null unless a share is compared."`
	Exact   record.Opt[int64]         `json:"exact" doc:"Number of RPCs of which the capture proves what each side took, up to a hundredth of the latency; null unless a share is compared."`
	Values  []string                  `json:"values" doc:"Values that the connections of the capture have, sorted; null unless a setting is compared."`
	Problem *record.Problem           `json:"problem" doc:"The problem; null unless a problem is compared, or if the capture does not have it."`
}

// Changes are relative changes. A change from 0 is null.
type Changes struct {
	Count   record.Opt[float64] `json:"count" doc:"Relative change of the number; null if there was nothing before."`
	Bytes   record.Opt[float64] `json:"bytes" doc:"Relative change of the number of bytes; null if there were none before."`
	P50     record.Opt[float64] `json:"p50" doc:"Relative change of the median; null if a capture has no latency."`
	P90     record.Opt[float64] `json:"p90" doc:"Relative change of the 90th percentile; null if a capture has no latency."`
	P99     record.Opt[float64] `json:"p99" doc:"Relative change of the 99th percentile; null if a capture has no latency."`
	TotalNS record.Opt[float64] `json:"total" doc:"Relative change of the sum; null if it was 0 before."`
}

// PValues are the p-values of the percentiles.
type PValues struct {
	P50 record.Opt[float64] `json:"p50" doc:"P-value of the change of the median; null if it was not tested."`
	P90 record.Opt[float64] `json:"p90" doc:"P-value of the change of the 90th percentile; null if it was not tested."`
	P99 record.Opt[float64] `json:"p99" doc:"P-value of the change of the 99th percentile; null if it was not tested."`
}

// The limits of the test.
const (
	leastTested  = 30   // latencies in each capture
	significance = 1e-3 // largest p-value, exclusive, of a significant change
)

// Percentile is a percentile that comparisons test.
type Percentile struct {
	Name    string // as --fail-on names it
	percent int
	change  func(*Changes) *record.Opt[float64]
	p       func(*PValues) *record.Opt[float64]
	value   func(*Quantiles) record.Opt[int64]
}

// Percentiles lists the percentiles that comparisons test.
var Percentiles = [...]Percentile{
	{"p50", 50, func(c *Changes) *record.Opt[float64] { return &c.P50 }, func(p *PValues) *record.Opt[float64] { return &p.P50 }, func(q *Quantiles) record.Opt[int64] { return q.P50 }},
	{"p90", 90, func(c *Changes) *record.Opt[float64] { return &c.P90 }, func(p *PValues) *record.Opt[float64] { return &p.P90 }, func(q *Quantiles) record.Opt[int64] { return q.P90 }},
	{"p99", 99, func(c *Changes) *record.Opt[float64] { return &c.P99 }, func(p *PValues) *record.Opt[float64] { return &p.P99 }, func(q *Quantiles) record.Opt[int64] { return q.P99 }},
}

// isBound reports whether the percentile is only an upper bound.
func (p *Percentile) isBound(q *Quantiles) bool {
	ns, known := p.value(q).Get()
	return known && q.AtMost(ns)
}

// Of returns the percentile in both captures, its relative change, whether the change was tested and
// whether it is significant.
func (p *Percentile) Of(c *Comparison) (before, after record.Opt[int64], change record.Opt[float64], significant record.Opt[bool]) {
	value, tested := p.p(&c.PValues).Get()
	return p.value(&c.Before.Latency), p.value(&c.After.Latency), *p.change(&c.Change), record.SomeIf(value < significance, tested)
}

// Side sums up one of the captures that are compared.
type Side struct {
	table    *Table
	waits    waitTable
	totalNS  int64 // of all latencies
	shares   ShareSums
	problems []*record.Problem
	settings map[string]map[string]bool
}

// maxValues is the largest number of values that a setting keeps.
const maxValues = 64

// NewSide returns an empty Side whose RPCs the table sums up.
func NewSide(table *Table) *Side {
	return &Side{table: table, waits: waitTable{}, settings: map[string]map[string]bool{}}
}

// Transaction adds a transaction. It does not keep r.
func (s *Side) Transaction(r *record.Transaction) {
	s.table.Add(r)
	if latency, known := r.LatencyNS.Get(); known {
		s.totalNS += latency
		s.shares.addHosts(r)
		s.waits.add(r)
	}
}

// Problems adds the problems of the capture, the worst first. Quirks harm nobody and are not compared.
func (s *Side) Problems(list []*record.Problem) {
	for _, p := range list {
		if p.Shown() {
			s.problems = append(s.problems, p)
		}
	}
}

// RPCs returns the number of RPCs.
func (s *Side) RPCs() (n int) {
	for _, r := range s.table.rows {
		n += int(r.Requests)
	}
	return n
}

// settings lists the values that connections negotiate. A function returns "" if the capture does
// not show the value.
var settings = []struct {
	name string
	of   func(*record.Connection) string
}{
	{"transport", func(c *record.Connection) string { return c.Transport }},
	{"path_mtu", func(c *record.Connection) string { return known(c.PathMTU, strconv.Itoa) }},
	{"inline_threshold.client_to_server", func(c *record.Connection) string {
		return known(c.InlineThreshold, func(t record.InlineThresholds) string { return strconv.Itoa(t.ClientToServer) })
	}},
	{"inline_threshold.server_to_client", func(c *record.Connection) string {
		return known(c.InlineThreshold, func(t record.InlineThresholds) string { return strconv.Itoa(t.ServerToClient) })
	}},
	{"inline_threshold.source", func(c *record.Connection) string { return c.InlineThreshold.Or(record.InlineThresholds{}).Source }},
	{"remote_invalidation", func(c *record.Connection) string { return known(c.RemoteInvalidation, strconv.FormatBool) }},
	{"credits.forward.requested", func(c *record.Connection) string {
		return known(c.Credits.Or(record.CreditPair{}).Forward.Requested, number)
	}},
	{"credits.forward.granted", func(c *record.Connection) string {
		return known(c.Credits.Or(record.CreditPair{}).Forward.Granted, number)
	}},
	{"credits.backward.requested", func(c *record.Connection) string {
		return known(c.Credits.Or(record.CreditPair{}).Backward.Requested, number)
	}},
	{"credits.backward.granted", func(c *record.Connection) string {
		return known(c.Credits.Or(record.CreditPair{}).Backward.Granted, number)
	}},
}

// known returns the text of a value, or "" if it is unknown.
func known[T any](o record.Opt[T], text func(T) string) string {
	v, is := o.Get()
	if !is {
		return ""
	}
	return text(v)
}

// number returns a number as text.
func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// Connection adds a connection. It does not keep r.
func (s *Side) Connection(r *record.Connection) {
	if r.UpperLayer != "rpcrdma" {
		return
	}
	for i := range settings {
		value := settings[i].of(r)
		if value == "" {
			continue
		}
		values := s.settings[settings[i].name]
		if values == nil {
			values = map[string]bool{}
			s.settings[settings[i].name] = values
		}
		if len(values) < maxValues {
			values[value] = true
		}
	}
}

// Compare compares two captures. It returns the problems that came, that went, and that both have; all groups of RPCs, those that only one has
// first; the shares of the sides, all reasons for stalls, with their numbers before and after, and the settings that differ. The sides must not
// be used afterwards.
func Compare(before, after *Side) (list []*Comparison) {
	list = problems(before, after)
	list = append(list, groups(before, after)...)
	list = append(list, shares(before, after)...)
	list = append(list, waits(before, after)...)
	return append(list, changedSettings(before, after)...)
}

// Only reports whether only the second capture has what is compared, or only the first.
func (c *Comparison) Only() (came, went bool) {
	switch c.Kind {
	case ComparedProblem:
		return c.Before.Problem == nil, c.After.Problem == nil
	case ComparedGroup:
		return c.Before.Count.Or(0) == 0, c.After.Count.Or(0) == 0
	}
	return false, false
}

// Changed reports whether both captures do not have the same.
func (c *Comparison) Changed() bool {
	b, a := &c.Before, &c.After
	switch came, went := c.Only(); {
	case came || went || c.Kind == ComparedSetting:
		return true
	case c.Kind == ComparedProblem:
		return b.Problem.Rank != a.Problem.Rank || b.Problem.Severity != a.Problem.Severity || b.Problem.Headline != a.Problem.Headline || b.Problem.BlockedNS != a.Problem.BlockedNS
	case c.Kind == ComparedShare:
		return c.Proven() != 0
	}
	for i := range Percentiles {
		if of := Percentiles[i].value; of(&b.Latency) != of(&a.Latency) {
			return true
		}
	}
	return b.Count != a.Count || b.Errors != a.Errors || b.NoReply != a.NoReply || b.Bytes != a.Bytes || b.TotalNS != a.TotalNS
}

// problems pairs the problems of both captures.
func problems(before, after *Side) (list []*Comparison) {
	var came, both []*Comparison
	left := slices.Clone(before.problems)
	for _, p := range after.problems {
		c := &Comparison{Type: "comparison", Kind: ComparedProblem, Name: p.ID, After: Measured{Problem: p}}
		i := slices.IndexFunc(left, func(q *record.Problem) bool { return sameProblem(q) == sameProblem(p) })
		if i < 0 {
			came = append(came, c)
			continue
		}
		c.Before.Problem = left[i]
		left = slices.Delete(left, i, i+1)
		both = append(both, c)
	}
	list = came
	for _, p := range left {
		list = append(list, &Comparison{Type: "comparison", Kind: ComparedProblem, Name: p.ID, Before: Measured{Problem: p}})
	}
	return append(list, both...)
}

// sameProblem returns what two problems have in common that are the same before and after: the id and the places, and what a kind has a problem for each of:
// the rule, the status, mounting.
func sameProblem(p *record.Problem) string {
	kind := p.ID + " " + p.Place()
	switch p.ID {
	case "protocol-violation":
		kind += " " + strings.Join(p.Rules, " ")
	case "slow-rpc":
		if strings.HasPrefix(p.Headline, "mount") {
			kind += " mounting"
		}
	case "rpc-failed":
		for word := range strings.FieldsSeq(p.Headline) {
			if word != "once" && word != "twice" && word != "times" && word != "more" && (word[0] < '0' || word[0] > '9') {
				kind += " " + word
			}
		}
	}
	return kind
}

// groups compares the groups of RPCs: those of only one capture first, then those with the longest total latency of both.
func groups(before, after *Side) (list []*Comparison) {
	rows := func(s *Side) map[string]*Stats {
		s.table.Rows() // computes the quantiles
		return s.table.rows
	}
	a, b := rows(before), rows(after)
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if a[key] == nil {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		list = append(list, group(a[key], b[key]))
	}
	slices.SortFunc(list, func(x, y *Comparison) int {
		total := func(c *Comparison) int64 { return c.Before.TotalNS.Or(0) + c.After.TotalNS.Or(0) }
		only := func(c *Comparison) int {
			if came, went := c.Only(); came || went {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(only(x), only(y)), cmp.Compare(total(y), total(x)), cmp.Compare(x.Name, y.Name))
	})
	return list
}

// group compares the RPCs of a group; a or b is nil if a capture has none.
func group(a, b *Stats) *Comparison {
	some := cmp.Or(a, b)
	c := &Comparison{Type: "comparison", Kind: ComparedGroup, Name: some.Name, Group: some.Group, Before: measured(a), After: measured(b)}
	c.Change = Changes{
		Count: relative(c.Before.Count, c.After.Count), Bytes: relative(c.Before.Bytes, c.After.Bytes),
		TotalNS: relative(c.Before.TotalNS, c.After.TotalNS),
	}
	var pooled *samples
	if a != nil && b != nil && a.latencies.count() >= leastTested && b.latencies.count() >= leastTested {
		pooled = pool(&a.latencies, &b.latencies)
	}
	for i := range Percentiles {
		p := &Percentiles[i]
		*p.change(&c.Change) = relative(p.value(&c.Before.Latency), p.value(&c.After.Latency))
		if pooled != nil && !p.isBound(&c.Before.Latency) && !p.isBound(&c.After.Latency) {
			chance := pooled.chance(p.percent)
			*p.p(&c.PValues) = record.Some(chance)
			c.Significant = record.Some(c.Significant.Or(false) || chance < significance)
		}
	}
	return c
}

// measured returns the sums of a group; s is nil if the capture has none of its RPCs.
func measured(s *Stats) Measured {
	if s == nil {
		zero := record.Some[int64](0)
		return Measured{Count: zero, Errors: zero, NoReply: zero, Bytes: zero, TotalNS: zero}
	}
	return Measured{
		Count: record.Some(s.Requests), Errors: record.Some(int64(s.Errors)), NoReply: record.Some(s.NoReply), Bytes: record.Some(s.Bytes),
		Latency: s.Latency, TotalNS: record.Some(s.TotalNS),
	}
}

// relative returns the relative change of a number.
func relative(before, after record.Opt[int64]) record.Opt[float64] {
	a, known := before.Get()
	b, too := after.Get()
	return record.SomeIf(float64(b)/float64(max(a, 1))-1, known && too && a > 0)
}

// shares compares what each side took for an RPC on average.
func shares(before, after *Side) (list []*Comparison) {
	if before.shares.RPCs == 0 || after.shares.RPCs == 0 {
		return nil
	}
	measured := func(sums *ShareSums, b record.Bounds) Measured {
		return Measured{
			Count: record.Some(sums.RPCs), Exact: record.Some(sums.Exact), MeanNS: record.Some(record.Bounds{Min: b.Min / sums.RPCs, Max: (b.Max + sums.RPCs - 1) / sums.RPCs}),
		}
	}
	a, b := before.shares.Sides(), after.shares.Sides()
	for i := range a {
		list = append(list, &Comparison{
			Type: "comparison", Kind: ComparedShare, Name: string(a[i].Side), Before: measured(&before.shares, a[i].NS), After: measured(&after.shares, b[i].NS),
		})
	}
	return list
}

// Proven returns how a side's time for an RPC changed on average, as the captures prove: 1 if it became longer, -1 if it became
// shorter, and 0 if its bounds before and after overlap.
func (c *Comparison) Proven() int {
	switch before, after := c.Before.MeanNS.Or(record.Bounds{}), c.After.MeanNS.Or(record.Bounds{}); {
	case c.Kind != ComparedShare:
	case after.Min > before.Max:
		return 1
	case after.Max < before.Min:
		return -1
	}
	return 0
}

// waits compares the stalls of answered RPCs by their reason.
func waits(before, after *Side) (list []*Comparison) {
	side := func(s *Side, reason record.WaitReason) Measured {
		sum := s.waits[reason]
		if sum == nil {
			sum = &waitSum{}
		}
		return Measured{
			Count: record.Some(sum.count), TotalNS: record.Some(sum.ns),
			Share: record.SomeIf(float64(sum.ns)/float64(max(s.totalNS, 1)), s.totalNS > 0 && reason != record.CreditLimit),
		}
	}
	for _, value := range record.WaitReason("").Values() {
		reason := record.WaitReason(value)
		if before.waits[reason] == nil && after.waits[reason] == nil {
			continue
		}
		c := &Comparison{Type: "comparison", Kind: ComparedWait, Name: value, Before: side(before, reason), After: side(after, reason)}
		c.Change = Changes{Count: relative(c.Before.Count, c.After.Count), TotalNS: relative(c.Before.TotalNS, c.After.TotalNS)}
		list = append(list, c)
	}
	return list
}

// changedSettings lists the settings whose values differ.
func changedSettings(before, after *Side) (list []*Comparison) {
	for i := range settings {
		name := settings[i].name
		a, b := before.settings[name], after.settings[name]
		if len(a) == 0 || len(b) == 0 || maps.Equal(a, b) { // A capture without the value does not show that it changed.
			continue
		}
		c := &Comparison{Type: "comparison", Kind: ComparedSetting, Name: name}
		c.Before.Values, c.After.Values = slices.SortedFunc(maps.Keys(a), byNumber), slices.SortedFunc(maps.Keys(b), byNumber)
		list = append(list, c)
	}
	return list
}

// byNumber compares numbers as text, and other texts.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// Limit is the largest change of a percentile that a comparison may show, as --fail-on gives it.
type Limit struct {
	percentile *Percentile
	less       bool    // the limit is for a decrease
	share      float64 // relative change; used if ns is 0
	ns         int64   // absolute change
}

// ParseLimit parses a limit, such as "p99 > +20%", "p50 > 1ms" or "p50 < -5%".
func ParseLimit(text string) (l Limit, err error) {
	wrong := fmt.Errorf("must be p50, p90 or p99, > or <, and a change, such as 'p99 > +20%%' or 'p50 > +1ms'")
	name, value, found := strings.Cut(text, ">")
	if !found {
		if name, value, found = strings.Cut(text, "<"); !found {
			return l, wrong
		}
		l.less = true
	}
	i := slices.IndexFunc(Percentiles[:], func(p Percentile) bool { return p.Name == strings.ToLower(strings.TrimSpace(name)) })
	if i < 0 {
		return l, wrong
	}
	l.percentile = &Percentiles[i]
	value = strings.ReplaceAll(value, " ", "")
	sign := byte('+')
	if l.less {
		sign = '-'
	}
	if value == "" || value[0] != sign && (l.less || value[0] == '-') {
		return l, fmt.Errorf("a change with %s begins with %c", map[bool]string{true: "<", false: ">"}[l.less], sign)
	}
	value = strings.TrimLeft(value, "+-")
	if number, is := strings.CutSuffix(value, "%"); is {
		l.share, err = strconv.ParseFloat(number, 64)
		if err != nil || !(l.share >= 0 && l.share < 1e12) {
			return l, wrong
		}
		l.share /= 100
		return l, nil
	}
	d, err := time.ParseDuration(value)
	if l.ns = int64(d); err != nil || d < 0 {
		return l, wrong
	}
	return l, nil
}

// Exceeded reports whether the latency of a group changed significantly, and by more than the limit.
func (l *Limit) Exceeded(c *Comparison) bool {
	before, after, change, significant := l.percentile.Of(c)
	if !significant.Or(false) {
		return false
	}
	share, ns := change.Or(0), after.Or(0)-before.Or(0)
	if l.less {
		share, ns = -share, -ns
	}
	if l.ns > 0 {
		return ns > l.ns
	}
	return share > l.share
}

// Values returns the percentile before and after, in nanoseconds.
func (l *Limit) Values(c *Comparison) (before, after int64) {
	a, b, _, _ := l.percentile.Of(c)
	return a.Or(0), b.Or(0)
}

// Name returns the name of the percentile.
func (l *Limit) Name() string { return l.percentile.Name }
