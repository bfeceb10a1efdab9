package shell_test

import (
	"os/exec"
	"testing"

	"github.com/rdmadump/rdmadump/internal/shell"
)

// TestShell: a shell reads the original name, runs nothing, and the text is safe for a
// terminal.
func TestShell(t *testing.T) {
	for file, want := range map[string]string{
		"nfs.pcap":                "nfs.pcap",
		"/tmp/a-b_c,d:1@2%3+.zst": "/tmp/a-b_c,d:1@2%3+.zst",
		"-":                       "-",
		"-q.pcap":                 "./-q.pcap",
		"":                        "''",
		"a b":                     "'a b'",
		"a b'c$(id).pcap":         `'a b'\''c$(id).pcap'`,
		"~root":                   "'~root'",
		"*?[a]":                   "'*?[a]'",
		"caf\u00e9":               "caf\u00e9",
		"\x1b[2J'1\n\\":           `$'\033[2J\'1\012\\'`,
		"\u202e":                  `$'\342\200\256'`,
		"\xff7":                   `$'\3777'`,
	} {
		got := shell.File(file)
		if got != want {
			t.Errorf("%q: %s, want %s", file, got, want)
		}
		if bash, err := exec.LookPath("bash"); err == nil && file != "-q.pcap" {
			out, err := exec.Command(bash, "-c", "printf %s "+got).Output()
			if err != nil || string(out) != file {
				t.Errorf("%s is %q in a shell, not %q: %v", got, out, file, err)
			}
		}
	}
}
