package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestMoments checks which time each form of --from means in a capture of 2026-11-21 from 05:38:55 to 05:40:00 UTC.
func TestMoments(t *testing.T) {
	old := time.Local
	defer func() { time.Local = old }()
	date := func(day, hour, minute, second, ns int) record.Time {
		return record.Time(time.Date(2026, 11, day, hour, minute, second, ns, time.UTC).UnixNano())
	}
	first, last := date(21, 5, 38, 55, 0), date(21, 5, 40, 0, 0)
	for _, c := range []struct {
		typed, form string
		zone        int // hours east of UTC
		want        record.Time
	}{
		{"05:39", "", 0, date(21, 5, 39, 0, 0)},
		{"05:39:03.5", "", 0, date(21, 5, 39, 3, 5e8)},
		{"04:00", "", 0, date(21, 4, 0, 0, 0)},
		{"23:00", "", 0, date(21, 23, 0, 0, 0)},
		{"2026-11-21 05:38:55.355563", "", 0, date(21, 5, 38, 55, 355563000)},
		{"2026-11-21T05:38:55.355563", "", 0, date(21, 5, 38, 55, 355563000)},
		{"2026-11-21 05:39", "", 0, date(21, 5, 39, 0, 0)},
		{"2026-11-21T05:38:55.355563000Z", "", 0, date(21, 5, 38, 55, 355563000)},
		{"2026-11-21 06:38:55+01:00", "", 0, date(21, 5, 38, 55, 0)},
		{"2026-11-21T05:38:55 UTC", "", 0, date(21, 5, 38, 55, 0)},
		{"1795239535.355563", "", 0, date(21, 5, 38, 55, 355563000)},
		{"2.5", "", 0, first + 25e8},
		{"1m", "", 0, first + 60e9},
		{"-10s", "", 0, last - 10e9},
		{"-1h", "", 0, last - 3600e9},
		{"06:39", "local", 1, date(21, 5, 39, 0, 0)},
		{"05:39", "utc", -1, date(21, 5, 39, 0, 0)},
		{"05:39", "relative", 8, date(21, 5, 39, 0, 0)}, // In the other zone the capture does not have this time.
	} {
		time.Local = time.FixedZone("here", c.zone*3600)
		m, err := parseMoment(c.typed)
		if err != nil {
			t.Errorf("%s: %v", c.typed, err)
			continue
		}
		s := &Settings{From: m}
		s.Look.time = c.form
		if err := s.Resolve(first, last); err != nil {
			t.Errorf("%s: %v", c.typed, err)
		} else if got := s.From.of(first); got != c.want {
			t.Errorf("%s is %v, want %v", c.typed, got, c.want)
		}
	}
}

// TestAmbiguousMoments checks that a time that may be two times is an error that shows both.
func TestAmbiguousMoments(t *testing.T) {
	old := time.Local
	defer func() { time.Local = old }()
	time.Local = time.FixedZone("here", 3600)
	first := record.Time(time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC).UnixNano())
	for _, c := range []struct {
		typed string
		last  record.Time
		says  []string
	}{
		{"06:30", first + 7200e9, []string{"2026-11-21T06:30:00Z", "2026-11-21T06:30:00+01:00", "--time utc"}},
		{"05:30", first + 2*86400e9, []string{"2026-11-21T05:30:00Z", "2026-11-22T05:30:00Z", "write the day"}},
	} {
		m, err := parseMoment(c.typed)
		if err != nil {
			t.Fatal(err)
		}
		s := &Settings{To: m}
		err = s.Resolve(first, c.last)
		if err == nil {
			t.Errorf("%s: %v, want an error", c.typed, s.To.of(first))
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %s in it", c.typed, err, part)
			}
		}
	}
}

// TestClocksSetBack checks a time that the clock shows twice, because it was set back on 2026-11-01 at 06:00 UTC.
func TestClocksSetBack(t *testing.T) {
	old := time.Local
	defer func() { time.Local = old }()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip(err)
	}
	time.Local = zone
	at := func(hour, minute int) record.Time {
		return record.Time(time.Date(2026, 11, 1, hour, minute, 0, 0, time.UTC).UnixNano())
	}
	for _, c := range []struct {
		first, last record.Time
		want        record.Time // 0 for an error
	}{
		{at(5, 0), at(5, 50), at(5, 30)},
		{at(6, 10), at(7, 0), at(6, 30)},
		{at(5, 0), at(7, 0), 0},
	} {
		m, err := parseMoment("01:30")
		if err != nil {
			t.Fatal(err)
		}
		s := &Settings{From: m}
		s.Look.time = "local"
		switch err := s.Resolve(c.first, c.last); {
		case c.want == 0:
			if err == nil || !strings.Contains(err.Error(), "2026-11-01T01:30:00-04:00 or 2026-11-01T01:30:00-05:00") {
				t.Errorf("error %v, want both readings", err)
			}
		case err != nil || s.From.of(c.first) != c.want:
			t.Errorf("%v, error %v, want %v", s.From.of(c.first), err, c.want)
		}
	}
}

// TestTimesOfLive: of an input whose end is not known, a time of a clock is that of its first day, in the zone in which times are shown, and no
// time counts from the end.
func TestTimesOfLive(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	time.Local = time.FixedZone("here", 3600)
	first := record.Time(time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC).UnixNano())
	for form, want := range map[string]record.Time{"relative": first + 1800e9, "local": first - 1800e9} {
		s := &Settings{}
		if s.Look.time = form; s.timeOf(momentOf(t, "05:30"), first) != want {
			t.Errorf("with --time %s, 05:30 is %v, want %v", form, s.timeOf(momentOf(t, "05:30"), first), want)
		}
	}
	for typed, fails := range map[string]bool{"-1m": true, "1m": false, "05:30": false} {
		if err := (&Settings{To: momentOf(t, typed)}).RefuseEnd("live packets"); (err != nil) != fails {
			t.Errorf("--to %s: %v", typed, err)
		}
	}
}

// momentOf returns a time of --from.
func momentOf(t *testing.T, typed string) moment {
	m, err := parseMoment(typed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPrintedMoments checks that --from and --to of a printed time select the packet whose time was printed.
func TestPrintedMoments(t *testing.T) {
	first := record.Time(time.Date(2026, 11, 21, 5, 0, 0, 999_999_100, time.UTC).UnixNano())
	for _, c := range []struct {
		typed    string
		from, to record.Time // after the first packet, in nanoseconds
	}{
		{"2.000001", 2_000_001_000, 2_000_001_999},
		{"2.000001s", 2_000_001_000, 2_000_001_999},
		{"2.5", 2_500_000_000, 2_500_000_000},
		{"2.123", 2_123_000_000, 2_123_999_999},
		{"2.000001234", 2_000_001_234, 2_000_001_234},
		{"3", 3_000_000_000, 3_000_000_000},
		{"1500ms", 1_500_000_000, 1_500_000_000},
		{"2026-11-21 05:00:03.000001", 2_000_001_900, 2_000_002_899},
		{"2026-11-21T05:00:03.000001Z", 2_000_001_900, 2_000_002_899},
		{"2026-11-21 06:00:03.000001+01:00", 2_000_001_900, 2_000_002_899},
		{"2026-11-21T05:00:03.000001234Z", 2_000_002_134, 2_000_002_134},
		{"05:00:03.000001", 2_000_001_900, 2_000_002_899},
		{"05:00:03", 2_000_000_900, 2_000_000_900},
	} {
		s := &Settings{From: momentOf(t, c.typed), To: momentOf(t, c.typed)}
		s.Look.time = "utc"
		if err := s.Resolve(first, first+10e9); err != nil {
			t.Fatal(err)
		}
		times := Times{Settings: s}
		if err := times.Begin(first); err != nil {
			t.Fatal(err)
		}
		if from, to := times.Since-first, times.Until-first; from != c.from || to != c.to {
			t.Errorf("%s selects %d to %d, want %d to %d", c.typed, from, to, c.from, c.to)
		}
		if from, to := s.window()(first); from != times.Since || to != times.Until {
			t.Errorf("%s counts packets from %d to %d, want %d to %d", c.typed, from, to, times.Since, times.Until)
		}
	}
}
