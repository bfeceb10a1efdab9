package field_test

import (
	"encoding/json"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/field"
)

// TestAppendJSON: only visible characters of a string are printed as they are.
func TestAppendJSON(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"a\"b\\c/<>&", `"a\"b\\c/<>&"`},
		{"\x00\n\x1b[2J", `"\u0000\u000a\u001b[2J"`},
		{"del\x7f", `"del\u007f"`},
		{"c1\u0080\u009b2J\u009f", `"c1\u0080\u009b2J\u009f"`},
		{"\u00a0\u00e9", "\"\u00a0\u00e9\""},
		{"\u00ad\u200e\u202a\u202e\u2066\u2069\ufeff", `"\u00ad\u200e\u202a\u202e\u2066\u2069\ufeff"`},
		{"\u2028\u2029", `"\u2028\u2029"`},
		{"\U000e0001x\U0001f600", `"\udb40\udc01x` + "\U0001f600\""},
		{"\xff\xc3", "\"\ufffd\ufffd\""},
		{"\xe2\x80", "\"\ufffd\ufffd\""},
	} {
		for _, got := range []string{string(field.AppendJSON(nil, c.text)), string(field.AppendJSON(nil, []byte(c.text)))} {
			if got != c.want {
				t.Errorf("%q: %s, want %s", c.text, got, c.want)
			}
		}
	}
}

// FuzzAppendJSON: decoding the JSON gives the original string.
func FuzzAppendJSON(f *testing.F) {
	f.Add("a\u202e\xff\U000e0001\x7f")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(field.AppendJSON(nil, s), &got); err != nil || got != string([]rune(s)) {
			t.Errorf("the JSON of %q is read back as %q, error %v", s, got, err)
		}
	})
}
