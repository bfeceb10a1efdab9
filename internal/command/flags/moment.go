package flags

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// moment is the time of --from or --to. A time of day without a zone, or without a day, is resolved when the times of the
// capture are known.
type moment struct {
	Set      bool
	relative bool // at counts from the start of the capture
	fromEnd  bool // at counts from the end of the capture, and is negative
	at       record.Time
	unit     record.Time // of the last decimal that was typed, in nanoseconds; 0 if the time is exact
	clock    time.Time   // the time of a clock whose zone was not typed, as if it were UTC; zero if there is none
	daily    bool        // clock has no day
}

// errRange is the error for a time that nanoseconds since 1970 cannot represent.
var errRange = errors.New("out of range")

// leastEpoch is the least number that is seconds since 1970: smaller ones count from the start of the capture.
const leastEpoch = 1e8

// clockForms are the forms of times without a zone. Fractions of seconds may follow.
var clockForms = []struct {
	form  string
	daily bool
}{
	{"15:04", true},
	{"15:04:05", true},
	{"2006-01-02 15:04:05", false},
	{"2006-01-02T15:04:05", false},
	{"2006-01-02 15:04", false},
	{"2006-01-02T15:04", false},
}

// parseMoment parses a time of --from or --to: seconds from the start of the capture or since 1970, a duration from its start or, if it
// is negative, from its end, or a time of a clock, in any form in which times are printed.
func parseMoment(s string) (moment, error) {
	s = strings.TrimSuffix(strings.TrimSpace(s), " UTC")
	if s == "" {
		return moment{}, nil
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(math.Abs(v*1e9) < math.MaxInt64) { // Not a number is not smaller either.
			return moment{}, errRange
		}
		at := record.Time(v * 1e9)
		if v < 0 {
			return moment{Set: true, fromEnd: true, at: at}, nil
		}
		return moment{Set: true, relative: v < leastEpoch, at: exactly(s, at), unit: unitOf(s)}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		if d < 0 {
			return moment{Set: true, fromEnd: true, at: record.Time(d)}, nil
		}
		m := moment{Set: true, relative: true, at: record.Time(d)}
		if seconds, is := strings.CutSuffix(s, "s"); is {
			m.unit = unitOf(seconds)
		}
		return m, nil
	}
	for _, f := range clockForms {
		if t, err := time.Parse(f.form, s); err == nil {
			if t.Year() != 0 && !inRange(t) {
				return moment{}, errRange
			}
			return moment{Set: true, clock: t, daily: f.daily, unit: unitOf(s)}, nil
		}
	}
	t, err := time.Parse(time.RFC3339Nano, strings.Replace(s, " ", "T", 1))
	if err == nil && !inRange(t) {
		return moment{}, errRange
	}
	return moment{Set: true, at: record.Time(t.UnixNano()), unit: unitOf(s)}, err
}

// fewDecimals is the number of decimals of a second below which a person typed a time that is exact, such as 2.5. Times with more may be
// copies of printed times, which have no further decimals.
const fewDecimals = 3

// unitOf returns the nanoseconds of the last decimal of the seconds of a time; it is 0 if there are fewer than fewDecimals, or so many that there are
// no more.
func unitOf(s string) record.Time {
	_, fraction, _ := strings.Cut(s, ".")
	digits := len(fraction) - len(strings.TrimLeft(fraction, "0123456789"))
	if rest := fraction[digits:]; digits < fewDecimals || digits >= 9 || rest != "" && !strings.ContainsAny(rest[:1], "Z+-") {
		return 0
	}
	unit := record.Time(1e9)
	for range digits {
		unit /= 10
	}
	return unit
}

// inRange reports whether nanoseconds since 1970 can represent a time.
func inRange(t time.Time) bool { return time.Unix(0, t.UnixNano()).Equal(t) }

// exactly returns the nanoseconds of a decimal number of seconds. A floating-point number cannot represent those of a time of today.
func exactly(s string, rounded record.Time) record.Time {
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	digits, bad := strconv.ParseUint((fraction + "000000000")[:9], 10, 64)
	if err != nil || bad != nil {
		return rounded
	}
	return record.Time(seconds*1e9 + int64(digits))
}

// of returns the absolute time of m, which is resolved, in a capture that starts at start.
func (m moment) of(start record.Time) record.Time {
	if !m.relative {
		return m.at
	}
	at := start + m.at
	switch {
	case m.at > 0 && at < start:
		return math.MaxInt64
	case m.at < 0 && at > start:
		return math.MinInt64
	}
	return at
}

// on returns the time that a clock in a zone shows, on a day if its own is not known.
func (m moment) on(day time.Time, zone *time.Location) record.Time {
	w := m.clock
	year, month, date := w.Date()
	if m.daily {
		year, month, date = day.In(zone).Date()
	}
	return record.Time(time.Date(year, month, date, w.Hour(), w.Minute(), w.Second(), w.Nanosecond(), zone).UnixNano())
}

// NeedsSpan reports whether --from or --to depend on when the capture begins and ends, and whether they need its end.
func (s *Settings) NeedsSpan() (needs, end bool) {
	for _, m := range []moment{s.From, s.To} {
		needs, end = needs || m.fromEnd || !m.clock.IsZero(), end || m.fromEnd
	}
	return needs, end
}

// RefuseEnd returns an error if --from or --to count from the end of an input that has no end that is known.
func (s *Settings) RefuseEnd(input string) error {
	if _, end := s.NeedsSpan(); end {
		return fmt.Errorf("--from and --to cannot count from the end of %s; name the time", input)
	}
	return nil
}

// timeOf returns the absolute time of m in a capture that starts at start.
func (s *Settings) timeOf(m moment, start record.Time) record.Time {
	if known, err := m.resolved(start, start, render.Times(s.Look.time)); err == nil { // Otherwise it was resolved.
		m = known
	}
	return m.of(start)
}

// endOf returns the absolute time of m, which is that of --to: the end of the unit that was typed, because a printed time stands for all
// packets in it.
func (s *Settings) endOf(m moment, start record.Time) record.Time {
	at := s.timeOf(m, start)
	if m.unit == 0 || at > math.MaxInt64-m.unit {
		return at
	}
	return at + m.unit - 1
}

// Resolve determines the times of --from and --to in a capture that begins and ends at these times.
func (s *Settings) Resolve(first, last record.Time) error {
	for _, limit := range []struct {
		flag string
		m    *moment
	}{{"--from", &s.From}, {"--to", &s.To}} {
		var err error
		if *limit.m, err = limit.m.resolved(first, last, render.Times(s.Look.time)); err != nil {
			return fmt.Errorf("%s %w", limit.flag, err)
		}
	}
	return nil
}

// momentForms says how a time can be typed.
const momentForms = "must be a time such as 10:02, 10:02:03.5, 2026-11-21 04:55:00 or 2026-11-21T04:55:00Z, seconds since the start of the capture or since 1970, such as 2.5 or 90s, or -1m, which counts from its end"

// resolved returns m without what depends on the end of the capture, or on the zone and the day of a clock.
func (m moment) resolved(first, last record.Time, shown render.Times) (moment, error) {
	switch {
	case m.fromEnd:
		if at := last + m.at; at < last {
			return moment{Set: true, at: at}, nil
		}
		return moment{Set: true, at: math.MinInt64}, nil
	case m.clock.IsZero():
		return m, nil
	}
	zone := time.UTC
	if shown == render.Local {
		zone = time.Local
	}
	at, err := m.within(first, last, zone)
	if err != nil {
		return m, err
	}
	if shown != render.UTC && shown != render.Local {
		other, err := m.within(first, last, time.Local)
		if err == nil && other != at && first <= other && other <= last {
			return m, fmt.Errorf("may be %s or %s; write the first, or select one with --time utc or --time local", reading(at, time.UTC), reading(other, time.Local))
		}
	}
	return moment{Set: true, at: at, unit: m.unit}, nil
}

// within returns the time of a clock in a zone, of the two that are possible if the clock was set back then, the one in the capture; if
// both are in it, that is an error that shows them.
func (m moment) within(first, last record.Time, zone *time.Location) (record.Time, error) {
	at, err := m.dayWithin(first, last, zone)
	if err != nil {
		return at, err
	}
	const shown = "2006-01-02T15:04:05.999999999"
	in := func(at record.Time) bool { return first <= at && at <= last }
	text := time.Unix(0, int64(at)).In(zone).Format(shown)
	for _, other := range []record.Time{at - record.Time(time.Hour), at + record.Time(time.Hour)} {
		switch {
		case time.Unix(0, int64(other)).In(zone).Format(shown) != text || !in(other):
		case in(at):
			return 0, fmt.Errorf("may be %s or %s, because the clock was set back; write the offset, too", reading(min(at, other), zone), reading(max(at, other), zone))
		default:
			return other, nil
		}
	}
	return at, nil
}

// dayWithin returns the time of a clock in a zone. Without a day it is the day on which the capture has this time; if it
// has it on several days, that is an error that shows the first two.
func (m moment) dayWithin(first, last record.Time, zone *time.Location) (record.Time, error) {
	day, end := time.Unix(0, int64(first)).In(zone), time.Unix(0, int64(last)).In(zone)
	at := m.on(day, zone)
	if !m.daily || end.Sub(day) < 0 {
		return at, nil
	}
	next := m.on(day.AddDate(0, 0, 1), zone)
	switch {
	case next > last:
		return at, nil
	case at >= first:
		return 0, fmt.Errorf("may be %s or %s; write the day, too", reading(at, zone), reading(next, zone))
	}
	return next, nil
}

// reading returns a time as it can be typed without a doubt.
func reading(at record.Time, zone *time.Location) string {
	return time.Unix(0, int64(at)).In(zone).Format(time.RFC3339Nano)
}
