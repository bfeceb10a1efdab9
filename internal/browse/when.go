package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
)

// leastEpoch is the least number after a colon that is seconds since 1970, as for --from. Smaller ones are those of RPCs and packets.
const leastEpoch = 1e8

// isTime reports whether what was typed after a colon is a time and no command: it begins as a number, and is not the number of an RPC or
// packet.
func isTime(text string) bool {
	if text == "" || !strings.ContainsRune("0123456789-.", rune(text[0])) {
		return false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err != nil || n < 0 || n >= leastEpoch
}

// at passes the time that was typed to a function, which the goroutine of the Model calls.
func (m *Model) at(typed string, then func(at record.Time)) error {
	begin, known := m.state.Start.Get()
	if m.options.Time == nil || !known {
		return errors.New("no packet was read so far")
	}
	summary, shown := m.state.Summary, m.options.Look.Times
	m.later("looking for the time", func(ctx context.Context, r *index.Reader) func() {
		_, end := span(ctx, m.options.Index, nil) // The end of what was read so far.
		if summary != nil {
			end = summary.Last.Or(end)
		}
		at, err := m.options.Time(typed, begin, max(begin, end), shown)
		return func() {
			if err != nil {
				m.fail(err)
				return
			}
			then(at)
		}
	})
	return nil
}

// goToTime puts the cursor on the first record of the list at or after a time or, in the sums by time, on its interval. On other screens
// it shows the list of RPCs.
func (m *Model) goToTime(typed string) error {
	if s, is := m.top().(*sums); is && m.tab == tabRates {
		return m.at(typed, func(at record.Time) {
			m.rates.at, s.of = record.Some(at), -1
			s.update(m)
		})
	}
	l := m.searched()
	if l == nil {
		l = m.list
	}
	return m.at(typed, func(at record.Time) {
		shown, src := l.shown(), l.source
		m.later("looking for the "+l.one, func(ctx context.Context, r *index.Reader) func() {
			first, found := record.Time(math.MaxInt64), int64(-1)
			for n := int64(0); n < shown.count() && ctx.Err() == nil; n++ {
				t, known := src.timeOf(r, shown.at(n)).Get()
				if known && t >= at && (found < 0 || t < first) {
					first, found = t, n
				}
			}
			return func() {
				if found < 0 {
					m.fail(fmt.Errorf("the list has no %s at or after %s", l.one, at))
					return
				}
				if m.stack, m.follow = nil, false; m.searched() != l {
					m.tab = tabRPCs
				}
				l.cursor = found
			}
		})
	})
}

// timeOf returns the time of a record. Of RPCs, it reads only the rows.
func (s *source) timeOf(r *index.Reader, n int64) (t record.Opt[record.Time]) {
	if s == rpcs {
		row, known := r.Row(n)
		return record.SomeIf(row.Time, known)
	}
	rec, err := s.get(r, n)
	if err != nil || rec == nil {
		return t
	}
	return s.time(rec)
}

// limit adds a limit of time to the filter of the list: the filter has the format since or until of its source.
func (m *Model) limit(typed string, until bool) error {
	if typed == "" {
		return errors.New("a time is missing, such as :from 10:02 or :to -1m")
	}
	l := cmp.Or(m.searched(), m.list)
	return m.at(typed, func(at record.Time) {
		form := l.since
		if until {
			form = l.until
		}
		if err := l.setFilter(both(l.filter, fmt.Sprintf(form, at))); err != nil {
			m.fail(err)
		} else if l == m.list {
			m.filtered()
		}
	})
}

// openWindow selects the RPCs of Options.Window as soon as the start of the capture is known.
func (m *Model) openWindow() {
	window := m.options.Window
	begin, known := m.state.Start.Get()
	if window == nil || !known {
		return
	}
	m.options.Window = nil
	from, to := window(begin)
	filter := m.list.filter
	if from != math.MinInt64 {
		filter = both(filter, fmt.Sprintf(rpcs.since, from))
	}
	if to != math.MaxInt64 {
		filter = both(filter, fmt.Sprintf(rpcs.until, to))
	}
	m.Filter(filter)
}
