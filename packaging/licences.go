package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// compatible are the licences, by SPDX identifier, of modules that a program under Apache-2.0
// may be linked with. They only require that their own text is included.
var compatible = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "0BSD", "Unlicense"}

// enough is the percentage of a licence file that must be known text. The rest is names and
// years.
const enough = 75

// module describes a module, as go list prints it.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// linked returns the modules whose packages are linked into the program, for all platforms, and
// with tests also the modules that only its tests need.
func linked(root string, tests bool) ([]module, error) {
	var list []module
	for _, t := range targets {
		args := []string{"list", "-deps", "-json=Module"}
		if tests {
			args = append(args, "-test", "./...")
		} else {
			args = append(args, "./cmd/rdmadump")
		}
		cmd := exec.Command("go", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+t.os, "GOARCH="+t.arch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module != nil && !p.Module.Main && !slices.Contains(list, *p.Module) {
				list = append(list, *p.Module)
			}
		}
	}
	slices.SortFunc(list, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// licence returns the texts of a module's licence files, and the SPDX identifiers of its
// licences.
func (m module) licence() (text []byte, names []string, err error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(upper, "LICEN") && !strings.HasPrefix(upper, "COPYING") && !strings.HasPrefix(upper, "NOTICE") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		text = append(append(text, b...), '\n')
		if strings.HasPrefix(upper, "NOTICE") {
			continue // its text must be included, but it is not a licence
		}
		found := licensecheck.Scan(b)
		if found.Percent < enough {
			return nil, nil, fmt.Errorf("%s of %s: only %.0f%% of it is the text of a known licence", e.Name(), m.Path, found.Percent)
		}
		for _, match := range found.Match {
			if !match.IsURL && !slices.Contains(names, match.ID) {
				names = append(names, match.ID)
			}
		}
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("%s has no licence", m.Path)
	}
	return text, names, nil
}

// checkLicences lists the licence of every module that the program or its tests need, and
// returns an error for each one that is not compatible.
func checkLicences(root string, w io.Writer) error {
	list, err := linked(root, true)
	if err != nil {
		return err
	}
	var wrong []error
	for _, m := range list {
		_, names, err := m.licence()
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		fmt.Fprintf(w, "%-40s %-20s %s\n", m.Path, m.Version, strings.Join(names, ", "))
		for _, name := range names {
			if !slices.Contains(compatible, name) {
				wrong = append(wrong, fmt.Errorf("%s is under %s, which is not one of %s", m.Path, name, strings.Join(compatible, ", ")))
			}
		}
	}
	return errors.Join(wrong...)
}

// writeNotices writes the licences of everything that is linked into the program, as these
// licences require.
func writeNotices(root, path string) error {
	list, err := linked(root, false)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("rdmadump is linked with the Go standard library and these modules.\n")
	for _, m := range list {
		text, names, err := m.licence()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n%s\n%s %s (%s)\n\n%s", strings.Repeat("=", 80), m.Path, m.Version, strings.Join(names, ", "), text)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE"))
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%s\nGo (BSD-3-Clause)\n\n%s", strings.Repeat("=", 80), text)
	return os.WriteFile(path, b.Bytes(), 0o644)
}
