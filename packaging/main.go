// Command packaging makes a release of rdmadump from a checkout: for each platform an archive
// and a software bill of materials, for Linux .deb and .rpm packages, and checksums. Two runs
// on one commit give the same bytes: all times are the time of the commit, and the files do
// not depend on the user, the machine or the folder.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// target is a platform.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "_" + t.arch }

// targets are the platforms of a release.
var targets = []target{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
}

func main() {
	root := flag.String("root", "..", "checkout to build from, a `folder`")
	out := flag.String("o", "../dist", "write the release to this `folder`, whose contents are deleted first")
	only := flag.String("only", "", "build only for this `platform`, such as linux_amd64")
	licences := flag.Bool("licences", false, "only check the licences of the program's dependencies")
	flag.Parse()
	if err := run(*root, *out, *only, *licences); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(root, out, only string, licences bool) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if licences {
		return checkLicences(root, os.Stdout)
	}
	list := slices.Clone(targets)
	if only != "" {
		list = slices.DeleteFunc(list, func(t target) bool { return t.String() != only })
		if len(list) == 0 {
			return fmt.Errorf("unknown platform %s; the platforms are %v", only, targets)
		}
	}
	names, err := release(root, out, list)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(names, "\n"))
	return nil
}

// release makes the release for some platforms, and returns the names of the files in out.
func release(root, out string, list []target) ([]string, error) {
	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "rdmadump-dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	r := maker{root: root, work: work, out: out}
	if r.epoch, err = commitTime(root); err != nil {
		return nil, err
	}
	shared, err := r.common()
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if err := r.releaseFor(t, shared); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
	}
	return checksums(out)
}

// checksums writes SHA256SUMS in the format of sha256sum -c, and returns the names of all files.
func checksums(out string) ([]string, error) {
	const sums = "SHA256SUMS"
	entries, err := os.ReadDir(out)
	if err != nil {
		return nil, err
	}
	var names []string
	var text strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(b), e.Name())
		names = append(names, e.Name())
	}
	return append(names, sums), os.WriteFile(filepath.Join(out, sums), []byte(text.String()), 0o644)
}
