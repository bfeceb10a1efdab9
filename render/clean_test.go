package render

import (
	"testing"
)

// TestClean: printable characters stay UTF-8; all others are escaped, byte by byte.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                "plain",
		"\u00fc \u65e5":        "\u00fc \u65e5",
		"e\u0301":              "e\u0301",
		"\ufffd":               "\ufffd",
		"\xff\xfc":             `\xff\xfc`,
		"\xc3":                 `\xc3`,
		"\x1b[31m\x7f":         `\x1b[31m\x7f`,
		"\u009b31m":            `\xc2\x9b31m`,
		"\u202egpj":            `\xe2\x80\xaegpj`,
		"\u2066a\u2069":        `\xe2\x81\xa6a\xe2\x81\xa9`,
		"a\u200bb\u2028\u00a0": `a\xe2\x80\x8bb\xe2\x80\xa8\xc2\xa0`,
		"\ue000":               `\xee\x80\x80`,
		"":                     "",
	} {
		if got := Clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
		if got := string(appendClean(nil, []byte(text))); got != want {
			t.Errorf("appendClean(%q) = %q, want %q", text, got, want)
		}
	}
	if got := ASCII("a\u00fc"); got != `a\xc3\xbc` {
		t.Errorf("ASCII: %q", got)
	}
}

// FuzzClean: the result is always valid and visible.
func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if out := Clean(s); Clean(out) != out {
			t.Errorf("%q becomes %q, which changes again", s, out)
		}
	})
}

// TestWidths: texts are shortened to columns, between characters.
func TestWidths(t *testing.T) {
	theme := &Theme{glyphs: asciiGlyphs}
	for _, x := range []struct {
		text      string
		width     int
		head, end string
	}{
		{"abcdef", 4, "abc~", "~def"},
		{"\u00fcbcdef", 4, "\u00fcbc~", "~def"},
		{"\u65e5\u672c\u8a9e", 4, "\u65e5~", "~\u8a9e"},
		{"\u65e5\u672c\u8a9e", 6, "\u65e5\u672c\u8a9e", "\u65e5\u672c\u8a9e"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301", "e\u0301e\u0301"},
	} {
		if got := theme.fit(x.text, x.width); got != x.head {
			t.Errorf("fit(%q, %d) = %q, want %q", x.text, x.width, got, x.head)
		}
		if got := endOf(x.text, x.width, "~"); got != x.end {
			t.Errorf("endOf(%q, %d) = %q, want %q", x.text, x.width, got, x.end)
		}
		for _, line := range Wrap(x.text+" "+x.text, x.width) {
			if wide(line) > x.width {
				t.Errorf("Wrap(%q, %d): %q", x.text, x.width, line)
			}
		}
	}
}

// TestFindingHosts: a group of findings says whose they are, those with the most findings first.
func TestFindingHosts(t *testing.T) {
	for want, hosts := range map[string]map[string]int64{
		"": nil, "3x a": {"a": 3}, "2x b, 1x a": {"a": 1, "b": 2}, "7x d, 2x b, 1 more": {"a": 1, "b": 2, "d": 7},
	} {
		if got := (&FindingGroup{Hosts: hosts}).hosts(); got != want {
			t.Errorf("%v: %q, want %q", hosts, got, want)
		}
	}
}
