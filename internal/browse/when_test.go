package browse

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// idOf returns the number of the RPC with the cursor.
func idOf(m *Model) int64 {
	_, r := m.list.current()
	if t, is := r.(*record.Transaction); is {
		return t.ID
	}
	return 0
}

// TestGoToTime: after a colon, a time in any form of --from goes to the first RPC, packet or interval at or after it.
func TestGoToTime(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	time.Local = time.FixedZone("here", 9*3600)
	m := modelOf(t, sample, plainLook)
	m.resize(120, 40)
	for _, test := range []struct {
		typed string
		want  int64
	}{
		{"8.6", 30},
		{"8.6s", 30},
		{"05:19:58.3", 31},
		{"05:20", 42},
		{"2026-11-21 05:19:58.345678", 32},
		{"2026-11-21T05:19:58.3Z", 31},
		{"2026-11-21T14:19:58.3+09:00", 31},
		{"1795238398.4", 33},
		{"1795238399", 42},
		{"-1s", 60},
		{"7", 7},
		{"7s", 6},
	} {
		press(t, m, "g:"+test.typed+"<enter>")
		if got := idOf(m); m.prompt != nil || got != test.want {
			t.Errorf("%s: RPC %d, want %d; %s", test.typed, got, test.want, m.message)
		}
		press(t, m, "<esc>")
	}
	press(t, m, "t<esc>t<esc>g:14:19:58.3<enter>") // Times are those of this computer.
	if got := idOf(m); got != 31 {
		t.Errorf("RPC %d, want 31; %s", got, m.message)
	}
	press(t, m, "7:8.6<enter>")
	l := m.searched()
	_, r := l.current()
	if p, is := r.(*record.Packet); !is || float64(p.Time-m.state.Start.Or(0))/1e9 < 8.6 || float64(p.Time-m.state.Start.Or(0))/1e9 > 8.62 {
		t.Errorf("the packet is %+v", r)
	}
	press(t, m, "6:29s<enter>")
	if s := m.top().(*sums); m.rates.rows[s.at(s.cursor)].End-m.state.Start.Or(0) <= 29e9 || m.rates.rows[s.at(s.cursor)].Start-m.state.Start.Or(0) > 29e9 {
		t.Errorf("the interval begins at %v", m.rates.rows[s.at(s.cursor)].Start)
	}
	for typed, want := range map[string]string{
		"9999": "there is no RPC with the number 9999", "99s": "the list has no RPC at or after 2026-11-21T05:21:28", "10:02:99": "10:02:99: must be a time such as 10:02,",
	} {
		press(t, m, "1:"+typed+"<enter>")
		if !strings.HasPrefix(m.message, want) {
			t.Errorf("%s: %q, want %q", typed, m.message, want)
		}
		press(t, m, "<esc>")
	}
}

// TestTimesOfTwoZones: a time that the capture has in two zones is an error with both, as for --from, unless t says which zone is meant.
func TestTimesOfTwoZones(t *testing.T) {
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	time.Local = time.FixedZone("here", 5)
	m := modelOf(t, sample, plainLook)
	m.resize(200, 40)
	const want = "05:20:00 may be 2026-11-21T05:20:00Z or 2026-11-21T05:20:00+00:00"
	if press(t, m, ":05:20:00<enter>"); !strings.HasPrefix(m.message, want) {
		t.Errorf("%q, want %q", m.message, want)
	}
	if press(t, m, "<esc>t:05:20:00<enter>"); idOf(m) != 42 {
		t.Errorf("RPC %d, want 42; %s", idOf(m), m.message)
	}
}

// TestLimits: from and to select the records of a time in every list.
func TestLimits(t *testing.T) {
	m := modelOf(t, sample, plainLook)
	press(t, m, ":from 8.6<enter>:to 05:19:58.31<enter>")
	if m.list.count() != 2 || idOf(m) != 30 {
		t.Errorf("%q selects %d RPCs, first %d; %s", m.list.filter, m.list.count(), idOf(m), m.message)
	}
	press(t, m, "2:from 29<enter>")
	if l := m.searched(); l.count() != 1 {
		t.Errorf("%q selects %d connections; %s", l.filter, l.count(), m.message)
	}
	press(t, m, "7:to 8<enter>")
	if l := m.searched(); l.count() == 0 || l.count() >= l.pass.all.State().Count {
		t.Errorf("%q selects %d packets; %s", l.filter, l.count(), m.message)
	}
	press(t, m, ":from<enter>")
	if !strings.HasPrefix(m.message, "a time is missing") {
		t.Errorf("%q", m.message)
	}
	o := m.options
	o.Window = func(start record.Time) (from, to record.Time) { return start + 86e8, math.MaxInt64 }
	other := New(o)
	defer other.Close()
	settle(t, other)
	if other.list.count() != 35 {
		t.Errorf("%q selects %d RPCs, want 35", other.list.filter, other.list.count())
	}
}
