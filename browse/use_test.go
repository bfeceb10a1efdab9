package browse

import (
	"strings"
	"testing"
)

// The captures of the tests in this file.
const (
	nconnect = "../testdata/captures/rocev2-nconnect41.pcapng.zst"
	lossy    = "../testdata/captures/lab-loss3.pcap.zst"
	storm    = "../testdata/captures/rocev2-storm41.pcap.zst"
)

// secondLine returns the second line of the screen.
func secondLine(m *Model) string { return strip(m.Lines()[1]) }

// TestCountFits: a filter that does not fit is shortened, not the number of the RPCs that it selects.
func TestCountFits(t *testing.T) {
	m := modelOf(t, nconnect, plainLook)
	press(t, m, "&connection == 2 and frame.time_relative >= 8.5 and frame.time_relative < 8.9<enter>")
	for width := leastWidth; width < 120; width++ {
		m.Resize(width, 24)
		if line := secondLine(m); !strings.Contains(line, " of 108, final") || !strings.HasPrefix(line, "& connect") {
			t.Errorf("with %d columns, the second line is %q", width, line)
		}
	}
	m.Resize(80, 24)
	press(t, m, "<<zj ")
	if line := secondLine(m); !strings.Contains(line, " of 108, final") || len(line) > 80 {
		t.Errorf("in a sorted list, the second line is %q", line)
	}
}

// TestFitting: parts that may be shortened are, then the last parts are left out, and no number loses digits.
func TestFitting(t *testing.T) {
	parts := []part{{"& latency > 12345us and id > 5", withoutEnd}, {text: "12 of 345"}, {"/export/a/b/c/file", withoutBeginning}, {text: "67 marked"}}
	for _, test := range []struct {
		width int
		want  string
	}{
		{80, "& latency > 12345us and id > 5   12 of 345   /export/a/b/c/file   67 marked"},
		{70, "& latency > 12345us ...   12 of 345   /export/a/b/c/file   67 marked"},
		{60, "& latency > ...   12 of 345   /export/a/b/c/file   67 marked"},
		{51, "& latency...   12 of 345   .../b/c/file   67 marked"},
		{40, "& latency...   12 of 345   .../b/c/file"},
		{25, "& latency...   12 of 345"},
	} {
		if got := fitting(parts, test.width); got != test.want || wide(got) > test.width {
			t.Errorf("%d columns: %q, want %q", test.width, got, test.want)
		}
	}
}

// TestHeadingSpace: there is a space between the name of a capture and the state of reading.
func TestHeadingSpace(t *testing.T) {
	m := modelOf(t, "../testdata/captures/derived-cut-callback41.pcap.zst", plainLook)
	for width := leastWidth; width < 160; width++ {
		m.Resize(width, 24)
		if line := m.heading(); !strings.HasSuffix(line, " damaged") || wide(line) != width {
			t.Errorf("with %d columns, the first line is %q", width, line)
		}
	}
}
