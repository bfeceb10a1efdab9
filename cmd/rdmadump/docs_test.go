package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/command"
)

// pages lists the pages whose commands are tested.
var pages = []string{
	"README.md", "CONTRIBUTING.md", "SECURITY.md", "samples/README.md", "docs/*.md", "docs/guides/*.md", "docs/rules/*.md", "docs/problems/*.md",
	"packaging/*.md",
}

// needsInstalling lists the programs that a page may use although they may not be installed.
var needsInstalling = []string{"jq", "tshark", "md5sum"}

// TestDocs runs the commands in the pages.
//
// In a block marked console, a line that begins with "$ " is a command, and the lines after it
// are its whole output; a line "..." stands for any lines. Make golden updates the output around
// the "...". Commands that the output suggests ("...: rdmadump ...") must work, too.
//
// Commands of this program in any other code are also run, with a sample instead of nfs.pcap, and
// must succeed. If a command would capture, needs a terminal or names no file, only its flags
// must exist.
func TestDocs(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell: ", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range pages {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		for _, path := range paths {
			name, _ := filepath.Rel(root, path)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				p := &docPage{sh: sh, dir: workplace(t, root)}
				lines := p.run(t, strings.Split(string(text), "\n"))
				if got := strings.Join(lines, "\n"); *update && got != string(text) {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// workplace returns a folder with the files that the commands of the pages use.
func workplace(t *testing.T, root string) string {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "samples"), filepath.Join(dir, "samples")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	sample, err := os.ReadFile(filepath.Join(root, "samples/rocev2-callback41.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "testdata/captures/rocev2-data42.pcap.zst"))
	if err != nil {
		t.Fatal(err)
	}
	nvme, err := os.ReadFile(filepath.Join(root, "testdata/other/rocev2-nvmeloss.pcap.zst"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadFile(filepath.Join(root, "testdata/captures/rocev2-nfs41.pcap.zst"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"nfs.pcap": data, "files.pcap": names, "nvme.pcap": nvme, "node3.pcap": data, "before.pcap": sample, "after.pcap": sample}
	for _, end := range []string{"client", "server"} {
		if files[end+".pcap"], err = os.ReadFile(filepath.Join(root, "testdata/captures/ends-stormall42-"+end+".pcap.zst")); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// docPage runs the commands of one page.
type docPage struct {
	sh, dir string
}

// run returns the lines that the page should have.
func (p *docPage) run(t *testing.T, lines []string) (out []string) {
	var fence, command string
	var want []string
	settle := func() {
		if command != "" {
			out = append(out, p.console(t, command, want)...)
		}
		command, want = "", nil
	}
	for i, line := range lines {
		mark, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && fence == "":
			if fence = mark; fence == "" {
				t.Errorf("line %d: say what the block is: console, sh, text, ...", i+1)
				fence = "text"
			}
		case isFence:
			settle()
			fence = ""
		case fence == "console" && strings.HasPrefix(line, "$ "):
			settle()
			command = strings.TrimPrefix(line, "$ ")
			continue
		case fence == "console" && command != "":
			want = append(want, line)
			continue
		case fence == "sh":
			p.script(t, i+1, line)
		case fence == "" && strings.HasPrefix(line, "    "):
			p.code(t, i+1, line)
		case fence == "":
			for _, span := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
				p.code(t, i+1, span[1])
			}
		}
		out = append(out, line)
	}
	return out
}

// console runs a command line and compares its output with the page. It returns the lines that
// the page should have, including the command.
func (p *docPage) console(t *testing.T, typed string, want []string) []string {
	stay := append([]string{"$ " + typed}, want...)
	if lacking(t, typed) {
		return stay
	}
	printed, code, err := p.shell(typed, nil)
	if err != nil || code == command.ExitUsage || code == command.ExitFailed {
		t.Errorf("$ %s\n%s\nexit status %d, %v", typed, printed, code, err)
		return stay
	}
	for _, advice := range regexp.MustCompile(`(?m)^ +.*: (rdmadump .*)$`).FindAllStringSubmatch(printed, -1) {
		p.code(t, 0, advice[1])
	}
	got := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	if printed == "" {
		got = nil
	}
	if matches(got, want) {
		return stay
	}
	if *update {
		return append([]string{"$ " + typed}, elide(got, want)...)
	}
	t.Errorf("$ %s\nprints\n%s\nand not, as the page says,\n%s\n(make golden writes it anew)", typed, strings.Join(got, "\n"), strings.Join(want, "\n"))
	return stay
}

// lacking reports whether a command line uses a program that is not installed. If so, it skips a
// subtest with the name of the program.
func lacking(t *testing.T, command string) bool {
	for _, name := range needsInstalling {
		if !regexp.MustCompile(`(^|[|;&] *)` + name + ` `).MatchString(command) {
			continue
		}
		if _, err := exec.LookPath(name); err != nil {
			t.Run(name, func(t *testing.T) { t.Skipf("%s is not installed, for: %s", name, command) })
			return true
		}
	}
	return false
}

// whole matches the lines of blocks marked sh that can be run unchanged, and needsWorld those
// that need more than files.
var (
	whole      = regexp.MustCompile(`^(rdmadump|tshark|md5sum|head) `)
	needsWorld = regexp.MustCompile(`rdmadump (live|browse)|wireshark|(^|[ =])[A-Z]{3,}( |$)`)
)

// script runs a line of a block marked sh.
func (p *docPage) script(t *testing.T, number int, line string) {
	if !whole.MatchString(line) || needsWorld.MatchString(line) {
		p.code(t, number, line)
		return
	}
	if lacking(t, line) {
		return
	}
	if printed, code, err := p.shell(line, nil); err != nil || code != command.ExitOK && code != command.ExitFound {
		t.Errorf("line %d: %s\n%s\nexit status %d, %v", number, line, printed, code, err)
	}
}

// shell runs a line and returns its standard output and standard error together.
func (p *docPage) shell(line string, stdin io.Reader) (printed string, code int, err error) {
	cmd := exec.Command(p.sh, "-c", line)
	cmd.Dir = p.dir
	cmd.Stdin = stdin
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC", "TERM=dumb")
	b, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return string(b), failed.ExitCode(), nil
	}
	return string(b), 0, err
}

// matches reports whether the lines got match the lines want, in which "..." stands for any
// lines.
func matches(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matches(got[i:], want[1:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && got[0] == want[0] && matches(got[1:], want[1:])
}

// elide replaces lines of the output by "..." as the page did before: with one "...", it keeps as
// many lines before and after it as the page has.
func elide(got, want []string) []string {
	i := slices.Index(want, "...")
	if i < 0 {
		return got
	}
	after := len(want) - i - 1
	if len(got) <= i+after {
		return got
	}
	return slices.Concat(got[:i], []string{"..."}, got[len(got)-after:])
}

var (
	ours        = regexp.MustCompile(`^(?:sudo )?rdmadump(?: |$)`)
	placeholder = regexp.MustCompile(`(^|[ =])([A-Z]{2,}|N|FILE\.\.\.|\.\.\.)( |$)`)
	interactive = regexp.MustCompile(`^rdmadump (live|browse)`)
	segments    = regexp.MustCompile(`'[^']*'|"[^"]*"|\||&&`)
	named       = regexp.MustCompile(`\.pcap|rdmadump (version|schema|interfaces|help|completion)|(^| )-( |$)`)
)

// code runs the commands of this program in a line of code.
func (p *docPage) code(t *testing.T, number int, line string) {
	line, _, _ = strings.Cut(line, " #")
	var bars []int
	for _, at := range segments.FindAllStringIndex(line, -1) {
		if line[at[0]] == '|' || line[at[0]] == '&' {
			bars = append(bars, at[0])
		}
	}
	bars = append(bars, len(line))
	from := 0
	for _, to := range bars {
		s := strings.TrimSpace(strings.Trim(line[from:to], "|&"))
		from = to
		if !ours.MatchString(s) {
			continue
		}
		s = strings.TrimPrefix(s, "sudo ")
		if placeholder.MatchString(s) || interactive.MatchString(s) || !named.MatchString(s) {
			if err := parses(strings.Fields(strings.ReplaceAll(s+" ", " N ", " 1 "))[1:]); err != nil {
				t.Errorf("line %d: %s: %v", number, s, err)
			}
			continue
		}
		sample, err := os.ReadFile(filepath.Join(p.dir, "nfs.pcap"))
		if err != nil {
			t.Fatal(err)
		}
		printed, code, err := p.shell(s, bytes.NewReader(sample))
		if err != nil || code != command.ExitOK && code != command.ExitFound {
			t.Errorf("line %d: %s\n%s\nexit status %d, %v", number, s, printed, code, err)
		}
	}
}

// parses returns an error unless the command and its flags exist.
func parses(args []string) error {
	root := newRoot(io.Discard, io.Discard)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root && len(rest) > 0 && regexp.MustCompile(`^[a-z]+$`).MatchString(rest[0]) {
		return fmt.Errorf("there is no command %s", rest[0])
	}
	if n := len(rest); n > 0 && len(rest[n-1]) == 2 && cmd.Flags().ShorthandLookup(rest[n-1][1:]) != nil {
		return nil // The page only mentions a flag that needs a value, such as -e.
	}
	return cmd.ParseFlags(slices.DeleteFunc(rest, func(s string) bool { return s == "..." }))
}

func TestMatches(t *testing.T) {
	for _, row := range []struct {
		got, want string
		match     bool
		elided    string
	}{
		{"a b c", "a b c", true, "a b c"},
		{"a b c", "a b d", false, "a b c"},
		{"a b c", "a b", false, "a b c"},
		{"a b c", "a ...", true, "a ..."},
		{"a b c d", "a ... d", true, "a ... d"},
		{"a b c e", "a ... d", false, "a ... e"},
		{"x b c e", "a ... e", false, "x ... e"},
		{"a", "a ...", true, "a"},
		{"a", "... a ...", true, "a"},
	} {
		got, want := strings.Fields(row.got), strings.Fields(row.want)
		if m := matches(got, want); m != row.match {
			t.Errorf("%s against %s: %v", row.got, row.want, m)
		}
		if e := strings.Join(elide(got, want), " "); e != row.elided {
			t.Errorf("%s as %s: %s", row.got, row.want, e)
		}
	}
}
