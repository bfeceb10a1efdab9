package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// file is a file of a release: its current path, and its name in an archive.
type file struct {
	source, name string
	mode         os.FileMode
}

// maker makes a release.
type maker struct {
	root  string // the checkout
	work  string // a folder for temporary files
	out   string // the folder of the release
	epoch time.Time
}

// common returns the files that the archives and packages of all platforms share: documents,
// samples, man pages and completions. It builds the program for this machine, which writes
// the man pages and completions.
func (r *maker) common() ([]file, error) {
	host := filepath.Join(r.work, "host")
	if err := command(r.root, nil, "go", "build", "-trimpath", "-buildvcs=true", "-o", host, "./cmd/rdmadump"); err != nil {
		return nil, err
	}
	man := filepath.Join(r.work, "man")
	// The program reads the date of the man pages from the environment.
	if err := command(r.root, []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.epoch.Unix())}, host, "man", man); err != nil {
		return nil, err
	}
	var list []file
	pages, err := filepath.Glob(man + "/*.[17]")
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("no man pages: %v", err)
	}
	for _, p := range pages {
		list = append(list, file{p, "man/" + filepath.Base(p), 0o644})
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := exec.Command(host, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion of %s: %w", shell, err)
		}
		path := filepath.Join(r.work, "rdmadump."+shell)
		if err := os.WriteFile(path, script, 0o644); err != nil {
			return nil, err
		}
		list = append(list, file{path, "completions/rdmadump." + shell, 0o644})
	}
	notices := filepath.Join(r.work, "THIRD-PARTY-LICENSES")
	if err := writeNotices(r.root, notices); err != nil {
		return nil, err
	}
	list = append(list, file{notices, "THIRD-PARTY-LICENSES", 0o644})
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		list = append(list, file{filepath.Join(r.root, name), name, 0o644})
	}
	list = append(list, file{filepath.Join(r.root, "packaging/live-capture.md"), "live-capture.md", 0o644})
	for _, pattern := range []string{"samples/*", "docs/*.md", "docs/*.png", "docs/guides/*.md"} {
		found, err := filepath.Glob(filepath.Join(r.root, pattern))
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			list = append(list, file{p, filepath.ToSlash(strings.TrimPrefix(p, r.root+string(filepath.Separator))), 0o644})
		}
	}
	return list, nil
}

// releaseFor writes all files of one platform.
func (r *maker) releaseFor(t target, shared []file) error {
	name := "rdmadump"
	if t.os == "windows" {
		name += ".exe"
	}
	binary := filepath.Join(r.work, t.String(), name)
	err := command(r.root, []string{"GOOS=" + t.os, "GOARCH=" + t.arch},
		"go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary, "./cmd/rdmadump")
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(info.Main.Version, "v")
	if version == "" || version == "(devel)" {
		return fmt.Errorf("the binary has no version: is %s a git checkout?", r.root)
	}
	base := "rdmadump_" + version + "_" + t.String()
	if err := writeSBOM(filepath.Join(r.out, base+".cdx.json"), info, t, r.epoch); err != nil {
		return err
	}
	all := append([]file{{binary, name, 0o755}}, shared...)
	if t.os == "windows" {
		return writeZip(filepath.Join(r.out, base+".zip"), base, all, r.epoch)
	}
	if err := writeTar(filepath.Join(r.out, base+".tar.gz"), base, all, r.epoch); err != nil {
		return err
	}
	if t.os == "linux" {
		return r.writePackages(base, version, t, all)
	}
	return nil
}

// commitTime returns the time of the commit HEAD, which all files of the release get.
func commitTime(root string) (time.Time, error) {
	b, err := exec.Command("git", "-C", root, "log", "-1", "--format=%ct").Output()
	if err != nil {
		return time.Time{}, fmt.Errorf("git log: %w: a release needs a commit", err)
	}
	s, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return time.Unix(s, 0).UTC(), err
}

// command runs a command. Its environment overrides the settings of the user that would change
// the build.
func command(dir string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return nil
}
