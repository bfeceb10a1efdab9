package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// trouble matches sentences about trouble, which only problems have: a host or the network did something to others, or failed to.
var trouble = regexp.MustCompile(`(?i)\b(client|server|host|sender|receiver|network|switch|link|peer|it|them|%s|%v)\b? (probably |may have |has |had |was |is |were )?` +
	`(restarted|rebooted|crashed|died|drop(s|ped)|gave up|fail(s|ed)|hung|hangs|broke|sent no|slow|gone|down|broken|dead|did not (answer|reply|accept)|never|refused (it|them|the)|rejected (it|them|the))\b` +
	`|^[,;]? ?(did not (answer|reply)|gave up|restarted|crashed)\b|\bnever (answered|completed|replied|returned)|\bno (packet|answer|reply) from\b|\bat fault\b|\baccus|\bblam` +
	`|\bcaused by\b|\bbecause of the (network|server|client)\b|\bthe (network|path|switch|link) (lost|damaged|delayed|dropped)|\bwaited .* for\b|\btoo slow\b|\boverload`)

// notOfCaptures are strings that match and accuse nobody, or are not about a capture, and why.
var notOfCaptures = map[string]string{
	"AT FAULT": "the column of a field of findings, whose messages are the rules'", "at fault: ": "the same field", ", at fault: ": "the same field",
}

// accusers are packages and files that may say such things, and why.
var accusers = map[string]string{
	"internal/diagnose":        "it has the problems",
	"internal/query/fields.go": "it documents fields", "render/explanations.go": "it documents what ladders draw",
}

// sentences returns the string literals of a package's files that match, by their place.
func sentences(t *testing.T, folder string) (list map[string]string) {
	t.Helper()
	list = map[string]string{}
	set := token.NewFileSet()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, is := n.(*ast.Field); is && f.Tag != nil {
				f.Tag = nil
			}
			if member, is := n.(*ast.KeyValueExpr); is {
				if key, is := member.Key.(*ast.Ident); is && key.Name == "doc" { // of a column
					return false
				}
			}
			if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && trouble.MatchString(text) {
					list[set.Position(l.Pos()).String()] = text
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestOnlyProblems: no other package than that of the problems makes sentences about trouble: the list of problems is the same everywhere, and
// nothing contradicts it.
func TestOnlyProblems(t *testing.T) {
	for text, is := range map[string]bool{
		"the server restarted": true, "server was down for %s": true, "%s never answered": true, "the network lost %d packets": true, "client gave up": true, " did not answer": true,
		"the server did not accept %s": true, "no packet from %s for %s": true, "%d RPCs, all answered": false, "lost on the way": false, "the slowest RPCs": false,
	} {
		if trouble.MatchString(text) != is {
			t.Errorf("%q is about trouble: %t, want %t", text, !is, is)
		}
	}
	used := map[string]bool{}
	for _, folder := range []string{"render", "internal", "cmd"} {
		for at, text := range sentences(t, "../../"+folder) {
			place := strings.TrimPrefix(filepath.ToSlash(at), "../../")
			file, _, _ := strings.Cut(place, ":")
			if in := filepath.ToSlash(filepath.Dir(file)); accusers[file] != "" || accusers[in] != "" || notOfCaptures[text] != "" {
				used[file], used[in], used[text] = true, true, true
				continue
			}
			t.Errorf("%s says %q: what is wrong is said by the list of problems alone (internal/diagnose)", place, text)
		}
	}
	for _, list := range []map[string]string{accusers, notOfCaptures} {
		for name := range list {
			if !used[name] {
				t.Errorf("%q has no such sentence any more: remove the exception", name)
			}
		}
	}
}
