package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Rate sums up the transactions of one interval of time.
type Rate struct {
	Type          string            `json:"type" doc:"The record's type, always \"rate\"." values:"rate"`
	Start         record.Time       `json:"start" doc:"Start of the interval; the first interval starts with the capture."`
	End           record.Time       `json:"end" doc:"End of the interval, which is the start of the next one."`
	GroupBy       string            `json:"group_by,omitzero" doc:"What the transactions are grouped by, as in stats; present only if they are grouped."`
	Name          string            `json:"name,omitzero" doc:"Name of the group; present only if the transactions are grouped."`
	Group         []string          `json:"group,omitzero" doc:"Values of what group_by names, in the same order; present only if the transactions are grouped."`
	RPCs          int               `json:"requests" doc:"Number of requests: of what clients asked for once. A request belongs to the interval in which its first attempt was answered, or in which its Call was sent if that had no Reply."`
	Attempts      int               `json:"attempts" doc:"Number of transactions: of Calls of requests, which a client sends again, usually on another connection, if their Reply does not come. Each belongs to the interval of its Reply, or of its Call."`
	Errors        int               `json:"failed" doc:"Number of RPCs that failed: the Call was answered with RDMA_ERROR, or the Reply has an RPC or NFS error status."`
	NoReply       int               `json:"no_reply" doc:"Number of these requests without a Reply (status no_reply of all attempts); they do not count as errors."`
	BytesToServer int64             `json:"bytes_to_server" doc:"Bytes in the Payload streams that clients sent, of the RPCs of the interval."`
	BytesToClient int64             `json:"bytes_to_client" doc:"Bytes in the Payload streams that servers sent, of the RPCs of the interval."`
	BytesRead     int64             `json:"bytes_read" doc:"Number of bytes of files that READs of the interval returned."`
	BytesWritten  int64             `json:"bytes_written" doc:"Number of bytes of files that WRITEs of the interval wrote."`
	BytesPerS     int64             `json:"bytes_per_s" doc:"Mean number of these bytes in a second of the interval."`
	Latency       Quantiles         `json:"latency" doc:"Distribution of the latencies of the RPCs."`
	InFlight      record.Opt[Level] `json:"in_flight" doc:"Number of Calls that were in flight; null if there were too many to count them, and in live records, which are written before all of them are known. A Call without a Reply is in flight until its connection begins to close or, if the capture does not show that, until the last packet of the connection."`
	Credits       record.Opt[int]   `json:"credits" doc:"Number of credits that the last Reply of the interval granted; null without a Reply."`
	Congested     int               `json:"congested" doc:"Number of RPCs during which there were signals of congestion on their connection: a packet that a switch had marked (CE), a congestion notification packet (CNP), or a frame that paused a link."`
	CE            record.Opt[int64] `json:"ce_marks" doc:"Number of packets of connections in the interval that a switch had marked (CE), whether they belong to selected RPCs or not; null if RPCs are grouped, or if records were read that do not have the packets."`
	CNP           record.Opt[int64] `json:"cnps" doc:"Number of congestion notification packets in the interval; null as ce_marks."`
	Pauses        record.Opt[int64] `json:"pauses" doc:"Number of frames in the interval that paused a link; null as ce_marks."`
	RoundTrips    record.Opt[Trips] `json:"round_trips" doc:"Round trips from clients to servers around the RPCs of the interval: those that ended between one second before a Call and its Reply. With --by client,server, they are those of each pair of hosts over time. They do not show where the time of RPCs passed; null if there were none."`
	Retransmitted int               `json:"retransmitted" doc:"Number of retransmitted packets of the RPCs that the interval counts; the packets may be in other intervals."`

	latencies durations
	steps     *[LatencySteps]uint32 // number of latencies in each step; nil for none
	settled   bool                  // Latency is computed
	changes   []change              // of the Calls in flight
	signals   [3]int64              // by their kind
	creditsAt record.Time           // time of Credits
}

// Latencies of an interval are counted in steps of equal lengths on a logarithmic scale, eight for
// each power of ten, from one microsecond to a hundred seconds.
const (
	LatencySteps = 64
	stepsOfTen   = 8
	firstStep    = 1e3 // end of the first step, in nanoseconds, divided by the ratio of two steps
)

// stepOf returns the step of a latency.
func stepOf(ns int64) int {
	return min(max(int(math.Log10(float64(max(ns, 1))/firstStep)*stepsOfTen), 0), LatencySteps-1)
}

// StepStart returns the latency at which a step starts, in nanoseconds.
func StepStart(step int) int64 { return int64(firstStep * math.Pow(10, float64(step)/stepsOfTen)) }

// Steps returns the number of latencies in each step; it is nil if there are none.
func (s *Rate) Steps() *[LatencySteps]uint32 { return s.steps }

// Idle reports whether nothing happened in the interval: no RPC, none in flight, and no sign of congestion.
func (r *Rate) Idle() bool {
	return r.RPCs == 0 && r.InFlight.Or(Level{}).Peak == 0 && r.CE.Or(0)+r.CNP.Or(0)+r.Pauses.Or(0) == 0
}

// Trips are the round trips of an interval.
type Trips struct {
	MinNS int64 `json:"min_ns" doc:"Shortest round trip, in nanoseconds."`
	MaxNS int64 `json:"max_ns" doc:"Longest round trip, in nanoseconds."`
}

// trips adds round trips to an interval.
func (s *Rate) trips(shortest, longest int64) {
	t := s.RoundTrips.Or(Trips{shortest, longest})
	s.RoundTrips = record.Some(Trips{min(t.MinNS, shortest), max(t.MaxNS, longest)})
}

// Level describes a number that changed during an interval.
type Level struct {
	Mean float64 `json:"mean" doc:"Mean number over the time of the interval."`
	Peak int     `json:"peak" doc:"Largest number at one time of the interval."`
}

// change is a point of time at which a Call was sent, or its Reply delivered.
type change struct {
	at record.Time
	by int8 // 1 or -1
}

// The limits of Rates bound its memory.
const (
	maxIntervals  = 1 << 17              // of all groups
	maxChanges    = 1 << 22              // of all intervals: 64 MB
	settleAfter   = record.Time(30e9)    // by then, the records of all Replies of an interval have come
	minimumWindow = 1 * time.Microsecond // the shortest interval
)

// Rates sums up transactions by intervals of time, and also by groups.
type Rates struct {
	grouping[rates]
	by       string
	values   func(values []string, r *record.Transaction) []string // nil for one group
	every    record.Time
	start    record.Time
	open     map[int][]openCall // Calls without Reply, by connection
	attempts record.Attempts[attemptAt]
	latest   record.Time // the latest time so far
	clock    record.Time // time of the latest record
	settled  int         // intervals before this one have settled latencies
	total    int64       // number of intervals of all groups
	changes  int         // of all intervals
	overflow bool        // there were more than maxChanges
	signals  int64       // that Signal got
	expected int64       // that the connections have
	most     int64       // number of intervals after which they become longer; 0 for intervals of a fixed length
	exact    int         // number of single latencies, if the length is not fixed
}

// rates are the intervals of one group.
type rates struct {
	name      string
	group     []string
	intervals []Rate // from the start of the capture
}

// openCall is a Call without Reply. It is in flight until [record.Connection.EndOfCalls].
type openCall struct {
	group *rates
	at    record.Time
}

// attemptAt is the group and the time of an attempt, which is in the interval of that time.
type attemptAt struct {
	group *rates
	at    record.Time
}

// errTooManyIntervals is the error for intervals that are too short for the length of a capture.
var errTooManyIntervals = errors.New("too many intervals")

// NewRates returns empty rates with intervals of this length. If values is not nil, it appends the
// values by which a transaction is grouped, and by says what they are.
func NewRates(every time.Duration, by string, values func([]string, *record.Transaction) []string) (*Rates, error) {
	if every < minimumWindow {
		return nil, fmt.Errorf("%v is shorter than %v", every, minimumWindow)
	}
	return newRates(record.Time(every), by, values), nil
}

func newRates(every record.Time, by string, values func([]string, *record.Transaction) []string) *Rates {
	return &Rates{every: every, by: by, values: values, open: map[int][]openCall{}, attempts: record.Attempts[attemptAt]{}, grouping: newGrouping(func(name string, group []string) *rates {
		return &rates{name: name, group: group}
	})}
}

// lengths are the lengths that intervals may have if a capture determines them. Each is a multiple of
// the one before.
var lengths = []time.Duration{
	10 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	time.Second, 2 * time.Second, 10 * time.Second, 20 * time.Second, time.Minute, 2 * time.Minute, 10 * time.Minute, 20 * time.Minute,
	time.Hour, 2 * time.Hour, 12 * time.Hour, 24 * time.Hour, 240 * time.Hour, 2400 * time.Hour, 24000 * time.Hour, 240000 * time.Hour, 2400000 * time.Hour,
}

// NewFittingRates returns empty rates whose intervals have the shortest of some lengths with which a
// capture has at most this number of intervals; it must be at least 2. Rows returns the same as with
// a fixed interval of that length.
func NewFittingRates(most int) *Rates {
	t := newRates(record.Time(lengths[0]), "", nil)
	t.most = int64(max(most, 2))
	return t
}

// Fitting returns the shortest length of intervals, of those that are round numbers and at least every, with which the
// time at, counted from the start of the capture, is in one of the first most intervals.
func Fitting(every time.Duration, at record.Time, most int) time.Duration {
	for _, length := range lengths {
		if length >= every && int64(max(at, 0)/record.Time(length)) < int64(most) {
			return length
		}
	}
	return max(every, lengths[len(lengths)-1])
}

// Every returns the length of the intervals.
func (t *Rates) Every() time.Duration { return time.Duration(t.every) }

// lengthen merges intervals until the interval of a time is among the first t.most.
func (t *Rates) lengthen(at record.Time) {
	longer := record.Time(Fitting(t.Every(), at-t.start, int(t.most)))
	factor := int(longer / t.every)
	t.every = longer
	for _, g := range t.rows {
		merged := g.intervals[:0]
		for i := range g.intervals {
			if i%factor == 0 {
				merged = append(merged, g.intervals[i])
			} else {
				merged[len(merged)-1].merge(&g.intervals[i])
			}
		}
		t.total -= int64(len(g.intervals) - len(merged))
		clear(g.intervals[len(merged):])
		g.intervals = merged
	}
}

// merge adds the next interval to an interval.
func (s *Rate) merge(x *Rate) {
	s.RPCs += x.RPCs
	s.Attempts += x.Attempts
	s.Errors += x.Errors
	s.NoReply += x.NoReply
	s.BytesToServer += x.BytesToServer
	s.BytesToClient += x.BytesToClient
	s.BytesRead += x.BytesRead
	s.BytesWritten += x.BytesWritten
	s.Retransmitted += x.Retransmitted
	s.Congested += x.Congested
	for i, n := range x.signals {
		s.signals[i] += n
	}
	if t, measured := x.RoundTrips.Get(); measured {
		s.trips(t.MinNS, t.MaxNS)
	}
	s.latencies.merge(&x.latencies)
	if s.steps == nil {
		s.steps = x.steps
	} else if x.steps != nil {
		for i, n := range x.steps {
			s.steps[i] += n
		}
	}
	s.changes = append(s.changes, x.changes...)
	if x.Credits.Known() {
		s.Credits, s.creditsAt = x.Credits, x.creditsAt
	}
}

// limit replaces the single latencies of the interval with the most of them by counts, if all
// intervals have too many.
func (t *Rates) limit() {
	if t.exact++; t.exact <= maxExact {
		return
	}
	var most *Rate
	for _, g := range t.rows {
		for i := range g.intervals {
			if s := &g.intervals[i]; most == nil || len(s.latencies.exact) > len(most.latencies.exact) {
				most = s
			}
		}
	}
	t.exact -= len(most.latencies.exact)
	most.latencies.coarsen()
}

// Unattended makes Rates leave InFlight unknown, for callers that take intervals with Take before the Calls
// without Reply are known.
func (t *Rates) Unattended() { t.overflow = true }

// Start returns the start of the first interval that is left.
func (t *Rates) Start() record.Time { return t.start }

// Latest returns the latest time of a transaction.
func (t *Rates) Latest() record.Time { return t.latest }

// Take removes the intervals that end at or before a time, and returns those with transactions, and also
// the others if transactions are not grouped. Transactions of these intervals that are added later count
// in the first interval that is left. It returns no more than maxTaken intervals without transactions.
func (t *Rates) Take(until record.Time) (rows []*Rate) {
	n := int64(max(until-t.start, 0) / t.every)
	if t.values == nil {
		t.row(nil)
	}
	for _, g := range t.rows {
		empty := 0
		have := min(n, int64(len(g.intervals)))
		for i := range n {
			s := &Rate{}
			if i < have {
				s = &g.intervals[i]
			}
			if s.Attempts == 0 {
				if empty++; t.values != nil || empty > maxTaken {
					if i >= have {
						break
					}
					continue
				}
			}
			r := *s
			r.settle()
			r.changes = nil
			r.describe(t, g, t.start+record.Time(i)*t.every)
			rows = append(rows, &r)
		}
		g.intervals = slices.Clone(g.intervals[have:])
		t.total -= have
	}
	t.start += record.Time(n) * t.every
	t.settled = max(t.settled-int(n), 0)
	sortRates(rows)
	return rows
}

// SetBack begins anew at a time if the clock of the capture was set back to it, which is so if it is more than an interval before
// the first interval that is left: otherwise, that interval would count everything until the clock reaches it again. SetBack removes
// the intervals until then, and returns them as Take does.
func (t *Rates) SetBack(now record.Time) (rows []*Rate) {
	if now < t.start-t.every {
		rows = t.Take(t.latest + t.every)
		t.Begin(now)
	}
	return rows
}

// maxTaken is the number of intervals without transactions that Take returns.
const maxTaken = 600

// describe sets the fields that name an interval.
func (s *Rate) describe(t *Rates, g *rates, start record.Time) {
	s.Type, s.Start, s.End = "rate", start, start+t.every
	s.BytesPerS = int64(float64(s.BytesRead+s.BytesWritten) * 1e9 / float64(t.every))
	if t.values != nil {
		s.GroupBy, s.Name, s.Group = t.by, g.name, g.group
	} else if t.signals > 0 || t.expected == 0 {
		s.CE, s.CNP, s.Pauses = record.Some(s.signals[record.SignalCE]), record.Some(s.signals[record.SignalCNP]), record.Some(s.signals[record.SignalPause])
	}
}

// Signal counts a packet that shows congestion.
func (t *Rates) Signal(x record.Signal) error {
	if t.values != nil {
		return nil
	}
	s, err := t.interval(t.row(nil), x.Time)
	if err != nil {
		return err
	}
	t.signals++
	s.signals[x.Kind]++
	return nil
}

// Expect notes the signals of congestion of a connection. If Signal got none although connections had some, their times are not known.
func (t *Rates) Expect(r *record.Connection) {
	t.expected += r.CongestionMarks + r.CNPs + r.Path.Congestion.PauseFrames
}

// sortRates sorts intervals by time and group.
func sortRates(rows []*Rate) {
	slices.SortStableFunc(rows, func(a, b *Rate) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Name, b.Name)) })
}

// Begin sets the time at which the first interval starts.
func (t *Rates) Begin(start record.Time) { t.start, t.latest, t.clock = start, start, start }

// interval returns the interval of a group that contains a time. Times before the start of the
// capture, which a clock that was set back causes, belong to the first interval.
func (t *Rates) interval(g *rates, at record.Time) (*Rate, error) {
	i := int64(max(at-t.start, 0) / t.every)
	if t.most > 0 && i >= t.most {
		t.lengthen(at)
		i = int64(max(at-t.start, 0) / t.every)
	}
	if more := i + 1 - int64(len(g.intervals)); more > 0 {
		if more > maxIntervals-t.total {
			return nil, fmt.Errorf("%w: intervals of %s would be more than %d; use longer ones", errTooManyIntervals, field.Duration(int64(t.every)), maxIntervals)
		}
		t.total += more
		g.intervals = slices.Grow(g.intervals, int(more))[:i+1]
	}
	t.latest = max(t.latest, at)
	return &g.intervals[i], nil
}

// groupOf returns the group of a transaction.
func (t *Rates) groupOf(r *record.Transaction) *rates {
	if t.values == nil {
		return t.row(nil)
	}
	return t.row(t.values(t.group[:0], r))
}

// Add adds a transaction to the interval of its end. It does not keep r.
func (t *Rates) Add(r *record.Transaction) error {
	g, at := t.groupOf(r), r.End()
	latency, answered := r.LatencyNS.Get()
	s, err := t.interval(g, at)
	if err != nil {
		return err
	}
	if s.Attempts++; r.Attempt <= 1 {
		s.RPCs++
	}
	if r.Failed() {
		s.Errors++
	}
	if first, n := t.attempts.Add(r.Request, r.Attempt, r.Status, attemptAt{g, at}); n != 0 && first.at >= t.start {
		of, err := t.interval(first.group, first.at)
		if err != nil {
			return err
		}
		of.NoReply += int(n)
	}
	s.Retransmitted += r.Retransmitted
	m := r.Meanwhile.Or(record.Meanwhile{})
	if m.Congested() {
		s.Congested++
	}
	if t, measured := m.RoundTrips.Get(); measured && r.Direction == record.Forward {
		s.trips(t.MinNS, t.MaxNS)
	}
	to, from := &s.BytesToServer, &s.BytesToClient
	if r.Direction == record.Backward {
		to, from = from, to
	}
	*to += payloadBytes(r.Call)
	*from += payloadBytes(r.Reply)
	read, written := r.FileBytes()
	s.BytesRead += read
	s.BytesWritten += written
	if answered {
		s.add(latency)
		s.Latency.bound(r)
		if t.most > 0 {
			t.limit()
		}
	}
	if r.Reply != nil && (!s.Credits.Known() || at >= s.creditsAt) {
		if granted, known := r.Reply.Credits.Get(); known {
			s.Credits, s.creditsAt = record.Some(int(granted)), at
		}
	}
	if t.clock = max(t.clock, at); t.most == 0 {
		t.settle(int(max(t.clock-t.start-settleAfter, 0) / t.every))
	}
	return t.inFlight(g, r)
}

// add adds a latency to an interval.
func (s *Rate) add(latency int64) {
	if s.steps == nil {
		s.steps = new([LatencySteps]uint32)
	}
	s.steps[stepOf(latency)]++
	if s.settled {
		s.Latency.Max, s.Latency.Estimated = record.Some(max(s.Latency.Max.Or(latency), latency)), true
	} else {
		s.latencies.add(latency)
	}
}

// settle computes the latencies of the intervals before i, and frees their values.
func (t *Rates) settle(i int) {
	if i <= t.settled {
		return
	}
	for _, g := range t.rows {
		for n := t.settled; n < min(i, len(g.intervals)); n++ {
			g.intervals[n].settle()
		}
	}
	t.settled = i
}

// settle computes the latencies of an interval, and frees their values.
func (s *Rate) settle() {
	if !s.settled {
		s.Latency, s.latencies, s.settled = s.Latency.withBounds(s.latencies.quantiles()), durations{}, true
	}
}

// inFlight notes when the Call of a transaction was sent and its Reply delivered.
func (t *Rates) inFlight(g *rates, r *record.Transaction) error {
	if r.Call == nil || t.overflow {
		return nil
	}
	if !r.LatencyNS.Known() {
		if t.changes++; t.changes > maxChanges {
			t.overflow = true
			return nil
		}
		t.open[r.Connection] = append(t.open[r.Connection], openCall{g, r.Call.Time})
		return nil
	}
	return t.flight(g, r.Call.Time, r.End())
}

// flight notes that a Call was in flight from one time to another.
func (t *Rates) flight(g *rates, from, to record.Time) error {
	if to <= from {
		return nil
	}
	if t.changes += 2; t.changes > maxChanges || t.overflow {
		t.overflow = true
		return nil
	}
	for _, c := range [...]change{{from, 1}, {to, -1}} {
		s, err := t.interval(g, c.at)
		if err != nil {
			return err
		}
		s.changes = append(s.changes, c)
	}
	return nil
}

// Connection ends the Calls of a connection that have no Reply.
func (t *Rates) Connection(c *record.Connection) error {
	calls := t.open[c.ID]
	delete(t.open, c.ID)
	for _, call := range calls {
		t.changes-- // it was counted once already
		if err := t.flight(call.group, call.at, c.EndOfCalls()); err != nil {
			return err
		}
	}
	return nil
}

// Rows returns the intervals in the order of time, and those of one interval in the order of their
// names. They reach until the end of the capture.
func (t *Rates) Rows(end record.Time) ([]*Rate, error) {
	for _, calls := range t.open { // their connections had no record
		for _, call := range calls {
			if err := t.flight(call.group, call.at, end); err != nil {
				return nil, err
			}
		}
	}
	if t.values == nil {
		t.row(nil)
	}
	end = max(end, t.latest)
	var rows []*Rate
	for _, g := range t.rows {
		if _, err := t.interval(g, end); err != nil {
			return nil, err
		}
		level := 0
		for i := range g.intervals {
			s := &g.intervals[i]
			s.settle()
			s.describe(t, g, t.start+record.Time(i)*t.every)
			if !t.overflow {
				s.InFlight = record.Some(s.level(&level))
			}
			rows = append(rows, s)
		}
	}
	sortRates(rows)
	return rows, nil
}

// level returns how many Calls were in flight in an interval. Level is the number at its start, and
// then at its end. A Reply that is delivered when a Call is sent comes first.
func (s *Rate) level(level *int) Level {
	slices.SortFunc(s.changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	peak, at, sum := *level, s.Start, 0.0
	for _, c := range s.changes {
		now := max(c.at, s.Start)
		sum += float64(*level) * float64(now-at)
		at = now
		*level += int(c.by)
		peak = max(peak, *level)
	}
	sum += float64(*level) * float64(s.End-at)
	s.changes = nil
	return Level{Mean: sum / float64(s.End-s.Start), Peak: peak}
}

// payloadBytes returns the length of a message's Payload stream, or 0 if it is unknown.
func payloadBytes(m *record.Message) int64 {
	if m == nil {
		return 0
	}
	return m.PayloadBytes.Or(0)
}
