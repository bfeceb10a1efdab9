package browse

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// slowest is the longest time from a key to the screen with which the test passes. The goal is a frame at 60 Hz, 16 ms, and
// the test prints what each key takes. Garbage collections and other work of a machine add up to twice as much again, so
// the test only fails if a key looks at all RPCs, which takes hundreds of milliseconds.
const slowest = 64 * time.Millisecond

// TestMillion: with a million RPCs, each key is answered within a frame. What takes longer goes on in the
// background, and no update of the screen takes longer than a frame, either.
func TestMillion(t *testing.T) {
	if !testkit.All() {
		t.Skip("runs with -all")
	}
	m := million(t)
	for _, test := range []struct{ name, before, keys string }{
		{"line", "", "j"},
		{"page", "", "<pgdown>"},
		{"end", "g", "G"},
		{"start", "G", "g"},
		{"problem, none", "g", "e"},
		{"number of an RPC", "g", ":987654<enter>"},
		{"number of no RPC", "g", ":2000000<enter>"},
		{"ladder", "g", "j<enter>"},
		{"next ladder", "q1g<enter>", "n"},
		{"command line", "q1g", "yc"},
		{"mark and compare", "1gU jjj ", "d"},
		{"unmark", "q1", "U"},
		{"filter", "1", "&latency > 2ms<enter>"},
		{"end, filtered", "g", "G"},
		{"sort, filtered", "", ":sort status<enter>"},
		{"no filter", "", "&<enter>"},
		{"filter, one match", ":sort<enter>", "&id == 900000<enter>"},
		{"no filter, from one match", "", "&<enter>"},
		{"search, at the end", "g", "/0x00104a3f<enter>"},
		{"search, nothing", "g", "/nothing at all<enter>"},
		{"sort by #", ":sort<enter>", ":sort id<enter>"},
		{"sort by TIME", "", ":sort -time<enter>"},
		{"sort by XID", "", ":sort xid<enter>"},
		{"sort by PROCEDURE", "", ":sort operation<enter>"},
		{"sort by LATENCY", "", ":sort -latency<enter>"},
		{"page, sorted", "g", "<pgdown>"},
		{"reverse", "", "z"},
		{"sort by STATUS", "", ":sort status<enter>"},
		{"sort by file", "", ":sort file<enter>"},
		{"no order", "", ":sort<enter>"},
		{"connections", "1", "2"},
		{"connection", "2", "<enter>"},
		{"findings", "q", "3"},
		{"findings, end", "3", "G"},
		{"findings, sorted", "3", ">"},
		{"RPC of the last finding", "3:sort<enter>G", "<enter>"},
		{"stats", "q1&<enter>", "4"},
		{"files", "1&<enter>", "5"},
		{"files, end", "5", "G"},
		{"RPCs of a file", "5gjj", "<enter>"},
		{"rates", "1&<enter>", "6"},
		{"zoom", "60", "+"},
		{"save the list", "1&<enter>", "s"},
		{"back", "2", "1"},
	} {
		var longest, all time.Duration
		for range 2 {
			if m.prompt != nil {
				press(t, m, "<esc>")
			}
			press(t, m, test.before)
			took, until := pressed(t, m, test.keys)
			longest, all = max(longest, took), max(all, until)
		}
		t.Logf("%-26s %8.2f ms   complete with %8.1f ms", test.name, longest.Seconds()*1000, all.Seconds()*1000)
		if longest > slowest {
			t.Errorf("%s: %q takes %v until the screen, want at most %v", test.name, test.keys, longest, slowest)
		}
	}
}

// pressed presses keys, and returns the longest CPU time of one of them, and of the updates that follow,
// and the CPU time of all threads until background work has ended. Other programs do not count.
func pressed(t testing.TB, m *Model, keys string) (longest, all time.Duration) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	names := keysOf(keys)
	for i, k := range names {
		before, began := used(t, unix.RUSAGE_SELF), used(t, unix.RUSAGE_THREAD)
		m.Key(k)
		m.Lines()
		longest = max(longest, used(t, unix.RUSAGE_THREAD)-began)
		for m.Busy() {
			if spent := used(t, unix.RUSAGE_SELF) - before; spent > time.Minute {
				t.Fatalf("%q: background work has not ended after %v of processor time", keys, spent)
			}
			time.Sleep(5 * time.Millisecond)
			began := used(t, unix.RUSAGE_THREAD)
			m.Tick()
			m.Lines()
			longest = max(longest, used(t, unix.RUSAGE_THREAD)-began)
		}
		if i == len(names)-1 {
			all = used(t, unix.RUSAGE_SELF) - before
		}
	}
	return longest, all
}

// used returns the CPU time of this thread, or of the process.
func used(t testing.TB, who int) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
