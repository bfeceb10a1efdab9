package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// commitOf copies the checkout, including changes that are not committed, and commits the
// copy. The commit does not depend on the time or the place.
func commitOf(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("../.git"); err != nil {
		t.Skip("a release needs a git checkout: ", err)
	}
	list, err := exec.Command("git", "-C", "..", "ls-files", "-z", "-co", "--exclude-standard").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, name := range strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // deleted, but not yet in a commit
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "-A"},
		{"-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "x"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return root
}

// TestRelease makes a release for one platform twice, from one commit in two folders, compares
// the two, and then uses the release as users do.
func TestRelease(t *testing.T) {
	var outs []string
	var names []string
	for range 2 {
		out := filepath.Join(t.TempDir(), "dist")
		var err error
		if names, err = release(commitOf(t), out, []target{{"linux", "amd64"}}); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	base := "rdmadump_0.0.0-20260102030405-"
	var kinds []string
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(outs[0], name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(outs[1], name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is not the same in two builds of one commit", name)
		}
		if strings.HasPrefix(name, base) {
			_, kind, _ := strings.Cut(name[len(base):], "_linux_amd64")
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	if want := []string{".cdx.json", ".deb", ".rpm", ".tar.gz"}; !slices.Equal(kinds, want) {
		t.Fatalf("the release has %v, not %v of %s...", kinds, want, base)
	}
	the := func(kind string) string {
		found, err := filepath.Glob(outs[0] + "/*" + kind)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", kind, found, err)
		}
		return found[0]
	}
	t.Run("checksums", func(t *testing.T) {
		cmd := exec.Command(tool(t, "sha256sum"), "-c", "SHA256SUMS")
		cmd.Dir = outs[0]
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 4 {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("sbom", func(t *testing.T) { testSBOM(t, the(".cdx.json")) })
	t.Run("tar", func(t *testing.T) {
		root := t.TempDir()
		output(t, tool(t, "tar"), "-xzf", the(".tar.gz"), "-C", root, "--strip-components=1")
		testProgram(t, filepath.Join(root, "rdmadump"), filepath.Join(root, "samples"))
	})
	t.Run("deb", func(t *testing.T) {
		root := t.TempDir()
		output(t, tool(t, "dpkg"), "-x", the(".deb"), root)
		testProgram(t, root+"/usr/bin/rdmadump", root+"/usr/share/doc/rdmadump/samples")
		testSystem(t, root, root+"/usr/share/zsh/vendor-completions/_rdmadump")
		control := output(t, "dpkg", "-f", the(".deb"))
		if !regexp.MustCompile(`(?s)Package: rdmadump\nVersion: 0\.0\.0~20260102030405.*\nArchitecture: amd64\n`).MatchString(control) ||
			!strings.Contains(control, "CAP_NET_RAW") || strings.Contains(control, "Depends:") {
			t.Errorf("the control file:\n%s", control)
		}
	})
	t.Run("deb installed", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("dpkg --root needs root")
		}
		root := t.TempDir()
		for _, d := range []string{"/var/lib/dpkg/info", "/var/lib/dpkg/updates"} {
			if err := os.MkdirAll(root+d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(root+"/var/lib/dpkg/status", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		output(t, tool(t, "dpkg"), "--root="+root, "--force-not-root", "--force-script-chrootless", "--force-architecture", "-i", the(".deb"))
		if got := output(t, "dpkg", "--root="+root, "-s", "rdmadump"); !strings.Contains(got, "Status: install ok installed") {
			t.Errorf("dpkg says\n%s", got)
		}
		testProgram(t, root+"/usr/bin/rdmadump", root+"/usr/share/doc/rdmadump/samples")
		output(t, "dpkg", "--root="+root, "--force-not-root", "--force-script-chrootless", "-P", "rdmadump")
		if _, err := os.Stat(root + "/usr/bin/rdmadump"); !os.IsNotExist(err) {
			t.Errorf("purged, and still there: %v", err)
		}
	})
	t.Run("rpm", func(t *testing.T) {
		rpm := tool(t, "rpm")
		list := output(t, rpm, "-qlp", the(".rpm"))
		for _, want := range []string{
			"/usr/bin/rdmadump", "/usr/share/man/man1/rdmadump.1.gz", "/usr/share/man/man7/rdmadump-filter.7.gz", "/usr/share/zsh/site-functions/_rdmadump",
			"/usr/share/bash-completion/completions/rdmadump", "/usr/share/fish/vendor_completions.d/rdmadump.fish",
			"/usr/share/doc/rdmadump/live-capture.md", "/usr/share/doc/rdmadump/THIRD-PARTY-LICENSES",
		} {
			if !strings.Contains("\n"+list, "\n"+want+"\n") {
				t.Errorf("no %s in\n%s", want, list)
			}
		}
		if got := output(t, rpm, "-qp", "--qf", "%{NAME} %{ARCH} %{LICENSE} %{BUILDHOST} %{BUILDTIME}", the(".rpm")); got != "rdmadump x86_64 Apache-2.0 localhost 1767323045" {
			t.Errorf("rpm says %s", got)
		}
	})
}

// tool returns the path of a program, or skips the test if it is not installed.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.Bytes())
	}
	return string(out)
}

// testProgram runs a program on the samples of its release.
func testProgram(t *testing.T, path, samples string) {
	t.Helper()
	var v struct {
		Version, Commit, Time string
		Modified              bool
	}
	if err := json.Unmarshal([]byte(output(t, path, "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(v.Version, "v0.0.0-20260102030405-") || len(v.Commit) != 40 || v.Time != "2026-01-02T03:04:05Z" || v.Modified {
		t.Errorf("it says it is %+v", v)
	}
	got := output(t, path, "-q", "--jq", "select(.type == \"transaction\") | .xid", samples+"/rocev2-callback41.pcap")
	if n := strings.Count(got, "\n"); n != 64 {
		t.Errorf("%d transactions, not 64:\n%s", n, got)
	}
}

// testSystem reads the man page and uses the completions of an installed tree.
func testSystem(t *testing.T, root, zsh string) {
	t.Run("man", func(t *testing.T) {
		man := tool(t, "man")
		cmd := exec.Command(man, "-l", root+"/usr/share/man/man1/rdmadump.1.gz")
		cmd.Env = append(os.Environ(), "MANWIDTH=100", "MANPAGER=cat", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text := regexp.MustCompile(`.\x08`).ReplaceAllString(string(out), "")
		for _, want := range []string{"rdmadump - ", "Exit status", "rdmadump-live(1)", "Jan 2026"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
	env := append(os.Environ(), "PATH="+root+"/usr/bin:"+os.Getenv("PATH"))
	for _, shell := range []struct{ name, script string }{
		{"bash", fmt.Sprintf(`. /usr/share/bash-completion/bash_completion 2>/dev/null || { echo skip; exit; }
. %s/usr/share/bash-completion/completions/rdmadump
COMP_WORDS=(rdmadump trans) COMP_CWORD=1 COMP_LINE='rdmadump trans' COMP_POINT=14 COMP_TYPE=9
__start_rdmadump; echo "${COMPREPLY[@]}"`, root)},
		{"zsh", fmt.Sprintf(`autoload -Uz compinit && compinit -u -D
compadd() { :; }
_describe() { for i in "${completions[@]}"; do echo $i; done }
source %s
whence _rdmadump >/dev/null && words=(rdmadump trans) CURRENT=2 _rdmadump`, zsh)},
		{"fish", fmt.Sprintf("source %s/usr/share/fish/vendor_completions.d/rdmadump.fish; complete -C 'rdmadump trans'", root)},
	} {
		t.Run(shell.name, func(t *testing.T) {
			cmd := exec.Command(tool(t, shell.name), "-c", shell.script)
			cmd.Env = append(env, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if strings.TrimSpace(string(out)) == "skip" {
				t.Skip("bash-completion is not installed")
			}
			if err != nil || !strings.Contains(string(out), "transactions") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func testSBOM(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BomFormat string
		Metadata  struct {
			Timestamp string
			Component struct{ Name string }
		}
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(b, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BomFormat != "CycloneDX" || bom.Metadata.Component.Name != "github.com/rdmadump/rdmadump" || bom.Metadata.Timestamp != "2026-01-02T03:04:05Z" {
		t.Errorf("it begins %+v", bom.Metadata)
	}
	gopacket := slices.IndexFunc(bom.Components, func(c struct{ Name, Version, Purl string }) bool { return c.Name == "github.com/google/gopacket" })
	if gopacket < 0 || bom.Components[gopacket].Purl != "pkg:golang/github.com/google/gopacket@v1.1.19" {
		t.Errorf("no gopacket in %+v", bom.Components)
	}
}

// TestLicences: the licence of everything that the program or its tests need is compatible
// with Apache-2.0, and dependencies.md explains it.
func TestLicences(t *testing.T) {
	var list bytes.Buffer
	if err := checkLicences("..", &list); err != nil {
		t.Fatalf("%v\n%s", err, &list)
	}
	if !regexp.MustCompile(`(?m)^github.com/google/gopacket +v1\.1\.19 +BSD-3-Clause$`).MatchString(list.String()) {
		t.Errorf("gopacket is not in\n%s", &list)
	}
	if err := checkLicences(t.TempDir(), io.Discard); err == nil {
		t.Error("no error where there is no module")
	}
}

// TestLicenceRefused: an incompatible licence is an error that names the licence and its
// module. An unknown text is not a licence.
func TestLicenceRefused(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"All rights reserved; ask first.", "only 0% of it is the text of a known licence"},
		{"", "only 0% of it is the text of a known licence"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/LICENSE", []byte(row.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := (module{Path: "example.org/x", Dir: dir}).licence(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v", row.text, err)
		}
	}
	if _, _, err := (module{Path: "example.org/x", Dir: t.TempDir()}).licence(); err == nil || err.Error() != "example.org/x has no licence" {
		t.Errorf("no file: %v", err)
	}
}

// TestDependenciesExplained: docs/dependencies.md has exactly one row for each direct
// dependency in go.mod and packaging/go.mod.
func TestDependenciesExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllSubmatch(page, -1) {
		explained = append(explained, string(row[1]))
	}
	slices.Sort(explained)
	var direct []string
	for _, root := range []string{"..", "."} {
		cmd := exec.Command("go", "list", "-m", "-f", "{{if not (or .Main .Indirect)}}{{.Path}}{{end}}", "all")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		direct = append(direct, strings.Fields(string(out))...)
	}
	for _, tool := range []string{"honnef.co/go/tools", "mvdan.cc/gofumpt", "gotest.tools/gotestsum"} { // in go.mod, the modules of tools are marked as indirect
		direct = append(direct, tool)
	}
	slices.Sort(direct)
	direct = slices.Compact(direct)
	if !slices.Equal(explained, direct) {
		t.Errorf("docs/dependencies.md explains\n%v\ngo.mod and packaging/go.mod ask for\n%v", explained, direct)
	}
}
