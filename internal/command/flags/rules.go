package flags

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/render"
)

// baseline is the set of findings that are not reported because they are known. Each is
// the id of a rule and an operation, separated by a tab. A baseline file has one per line.
type baseline map[string]bool

// parseKnown parses --ignore and reads the file of --baseline.
func (s *Settings) parseKnown(ctx context.Context, f *Typed) error {
	s.Ignored = map[string]bool{}
	for _, id := range f.ignore {
		if _, err := FindRule("--ignore", id); err != nil {
			return err
		}
		s.Ignored[id] = true
	}
	if f.baseline == "" {
		return nil
	}
	text, err := command.ReadSide(ctx, "--baseline", f.baseline, mostSide)
	switch {
	case err != nil:
		return err
	case len(text) > mostSide:
		return fmt.Errorf("--baseline %s: the file is longer than 64 MiB", f.baseline)
	}
	s.Known = baseline{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, _, _ := strings.Cut(line, "\t")
		if rule.Find(id) == nil {
			return fmt.Errorf("--baseline %s: unknown rule %.40q; --write-baseline writes such files, and rdmadump check --rules lists all rules", f.baseline, render.Clean(id))
		}
		s.Known[line] = true
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("--baseline %s: not a file that --write-baseline wrote (%w)", f.baseline, command.Cause(err))
	}
	return nil
}

// FindRule returns the rule with this id; flag is the flag that the id was given to.
func FindRule(flag, id string) (*rule.Rule, error) {
	if r := rule.Find(id); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("%s %s: unknown rule; see rdmadump check --rules", flag, id)
}

// severities lists the severities that findings of a rule can have.
func severities(r *rule.Rule) string {
	var words []string
	for _, s := range r.Severities() {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// Explains lists the rules, or explains the rule or, for the view of problems, the kind of problem of --explain.
func (f *Typed) Explains(v *View, w io.Writer) error {
	if v.Name == "problems" {
		page := diagnose.Page(f.Explain)
		if page == "" {
			return fmt.Errorf("--explain %.40s: unknown kind of problem; there are %s", render.Clean(f.Explain), strings.Join(diagnose.IDs(), ", "))
		}
		_, err := io.WriteString(w, page)
		return err
	}
	if f.Explain == "" {
		for _, r := range rule.All {
			if _, err := fmt.Fprintf(w, "%-30s %-14s %s\n", r.ID, severities(r), r.Title()); err != nil {
				return err
			}
		}
		return nil
	}
	r, err := FindRule("--explain", f.Explain)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, r.Markdown())
	return err
}
