package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestHosts: the file of --hosts has the format of /etc/hosts. A line that is wrong is an error that names it, and what is shown of it
// has no control characters.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		text  string
		in    string
		out   string
		wrong string
	}{
		{"10.0.0.1 nfs1 alias # 10.0.0.2 comment\r\n\n\t10.0.0.2\tclient\n", "10.0.0.1 > 10.0.0.2:2049, 10.0.0.1.", "nfs1 > client:2049, nfs1.", ""},
		{"10.0.0.1 nfs1\n10.0.0.1 nfs2\n", "(10.0.0.1)", "(nfs1)", ""},
		{"10.0.0.1 nfs1\n10.0.0.2 nfs1\n", "10.0.0.1", "nfs1(10.0.0.1)", ""},
		{"\ufefffd00::1 six\n::ffff:10.0.0.9 four\n", "[fd00::1]:20049 10.0.0.9", "[six]:20049 four", ""},
		{"10.0.0.1 nfs1\n", "/backup-10.0.0.1 110.0.0.1 10.0.0.10 v10.0.0.1 10.0.0.1/24", "/backup-10.0.0.1 110.0.0.1 10.0.0.10 v10.0.0.1 10.0.0.1/24", ""},
		{"", "10.0.0.1", "10.0.0.1", ""},
		{"10.0.0.1 a\n10.0.0 b\n", "", "", `:2: 10.0.0 is no address`},
		{"10.0.0.1\n", "", "", `:1: no name follows the address`},
		{"10.0.0.1 a\n10.0.0.2 10.0.0.1\n", "", "", `:2: the name 10.0.0.1 is an address`},
		{"10.0.0.1 a\x1b[2J\n", "", "", `:1: the name a\x1b[2J has characters that cannot be printed`},
		{"10.0.0.1 a\xff\n", "", "", `:1: the name a\xff has characters that cannot be printed`},
		{"10.0.0.1 a\u202eb\n", "", "", `:1: the name a\xe2\x80\xaeb has characters that cannot be printed`},
		{"10.0.0.1 " + strings.Repeat("a", 256) + "\n", "", "", ":1: a name is longer than 255 bytes"},
		{strings.Repeat("#", mostHosts+1), "", "", "the file is longer than 4 MiB"},
	} {
		path := filepath.Join(t.TempDir(), "hosts")
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		h, err := parseHosts(t.Context(), path)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.ContainsFunc(err.Error(), func(c rune) bool { return c == utf8.RuneError || !unicode.IsPrint(c) }) {
				t.Errorf("%.40q: %v, want %s", c.text, err, c.wrong)
			}
			continue
		}
		if got := h.In(c.in); err != nil || got != c.out {
			t.Errorf("%.40q: %q, %v, want %q", c.text, got, err, c.out)
		}
	}
}

// TestPacketOfOnePoint: files that are one capture point may have its name.
func TestPacketOfOnePoint(t *testing.T) {
	for _, points := range [][]string{nil, {"a.pcap"}} {
		if ref, err := (&Packet{Number: 3}).In(points); err != nil || ref.Packet != 3 || ref.Point != "" {
			t.Errorf("%q: %+v, %v", points, ref, err)
		}
	}
}
