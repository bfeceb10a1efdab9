// Package words checks the language of the project.
//
// Every comment, help text and message is a full sentence with a subject and a verb, in plain
// English, with the nouns of the protocol documents and one noun for each thing. A storage
// engineer understands it at first reading. This package checks the part of that rule that a
// program can check: a table of words and phrases that readers had to guess, with the words to
// write instead.
package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const root = "../.."

// banned is a word or phrase, and the words to use instead.
type banned struct {
	pattern string // regular expression, which must match whole words and ignores case
	except  string // if not empty, regular expression of a legitimate use that contains the word
	instead string
}

// words are the banned words. To ban a word, add its row.
var words = []banned{
	// Metaphors that no RFC, no kernel source and no Go package uses.
	{`houses?`, `in-house`, "the project, the source tree, a package"},
	{`rooms?`, `write-chunk-room-for-pad`, "a package; space for bytes"},
	{`walls?|doors?`, `wall[- ](?:clock|time)`, "a package boundary, an interface"},
	{`lanes?`, `PCIe lanes?`, "a stream"},
	{`shelf|shelves`, ``, "an arena, a buffer"},
	{`parcels?`, ``, "a batch"},
	{`letter`, `(?:upper|lower|small|capital|case|first|last|single|ascii)[- ]letter|letter (?:and|or|of|may)\b`, "a record, a message"},
	{`spares?|spools?`, ``, "a pool, a free list, a temporary file"},
	{`hearsay|shaken`, ``, "what is unreliable and why, such as: it came with a bad ICRC"},
	{`strangers?`, ``, "a Send that is not RPC, an unknown host, a newcomer"},
	{`poor`, `poor (?:performance|throughput)`, "incomplete, because state was evicted"},
	{`spoil(?:s|ed|ing)?`, ``, "damaged, has a bad ICRC"},
	{`loose|loosely`, ``, "not assigned, unconfirmed"},
	{`orphans?|orphaned`, ``, "unmatched, without a Call"},
	{`keepers?`, ``, "a transaction that holds data"},
	{`seldom`, ``, "rarely; allocated on first use"},
	{`alone`, `stand-alone`, "only, by itself"},
	{`judge[sd]?|judging|judge?ments?`, `judged only if|not_judged`, "check, checked"},
	{`(?:a|an|the|its|their|no|with|without|by) leave`, ``, "permission, grant"},
	{`habits?`, ``, "policy, usual behavior"},

	// Memory and its limit.
	{`(?:let|lets|letting) go`, ``, "free, drop"},
	{`(?:let|lets|letting) (?:it|them|that|him) go`, ``, "free it, drop it"},
	{`(?:give|gives|given|gave|giving) up`, `(?:client|server|requester|responder|peer|side|adapter|sender|kernel)s? (?:has |have |had )?(?:give|gives|given|gave|giving) up`, "evict (state), stop (retries), drop (privileges)"},
	{`for want of`, ``, "because there is no; because the memory limit was reached"},

	// People and feelings for software.
	{`told`, ``, "reported, passed"},
	{`speaks?|spoken`, ``, "uses, supports"},
	{`blam(?:e|es|ed|ing)`, ``, "at fault, attributed to"},
	{`accus(?:e|es|ed|ing)`, ``, "reports as an error of, attributes to"},
	{`die[sd]?|dying|dead`, ``, "failed, ended, terminated; invalidated (a handle)"},
	{`disobey(?:s|ed)?`, ``, "not honored"},
	{`foreign`, `foreign keys?`, "unknown, another RPC's, not exposed"},
	{`whoever`, ``, "the callers that, the readers that"},
	{`(?:for|to|of|by|from|at) who`, ``, "callers that, users who: name them"},
	{`nobody'?s|nobody (?:knows|asked|looks|wants|sees|has to)`, ``, "name the subject: unknown, unassigned, no caller"},

	// Retransmission, truncation, eviction: one name for each.
	{`(?:sent|sends?|sending) (?:it |them )?again`, ``, "retransmitted, retransmission"},
	{`an? repeat|the repeat|repeats of|repeat of`, ``, "a retransmission"},
	{`cuts?|cutting`, ``, "truncated (a packet), split (data)"},
	{`(?:break|breaks|broke|broken|breaking) off`, ``, "truncated, damaged"},

	// Old-fashioned words for standard notions.
	{`stands? (?:still|here|there|in|on|at|before|after|behind|apart|alone)|stood`, ``, "is; stalled"},
	{`as (?:it|they) stands?`, ``, "unchanged, as captured"},
	{`under ?way`, ``, "in progress, outstanding"},
	{`aside`, ``, "excluding, separately"},
	{`beside`, ``, "next to, in addition to"},
	{`behind`, `behind (?:a|an|the) (?:nat|firewall|switch|router|proxy|load balancer)`, "after"},
	{`dearest`, ``, "most expensive"},
	{`(?:hold|holds|holding|held)\b[^.;:]{0,80}? against`, ``, "compare with, verify against"},
	{`made[- ]up`, ``, "synthetic"},
	{`at hand`, ``, "current, available"},

	// References without a noun.
	{`that one|those of them`, ``, "the noun"},
	{`what is (?:kept|left|there|read|said|asked|sent)`, ``, "the noun, such as: the state, the rest"},
	{`(?:is|are) none of`, ``, "is not one of"},

	// Forms of doc comments.
	{`says (?:whether|if)`, ``, "reports whether"},
	{`is how (?:many|much|long)`, ``, "returns the number of, returns the duration of"},
	{`so many (?:bits|bytes|packets|frames|records|digits|lines)`, ``, "n bytes, that many: name the number"},
}

// exception allows a word in one place.
type exception struct {
	file string // path in the repository
	text string // text that contains the word, with single spaces
	why  string
}

// exceptions are the legitimate uses that no rule of the table covers. The test fails if an
// exception is no longer needed.
var exceptions = []exception{
	{"dissect/record/connection.go", "so that one invalidation", "the words belong to two clauses"},
}

// passage is a piece of prose: a comment, a page, a string.
type passage struct {
	file string
	line int // of its first line
	text string
}

// lineAt returns the number of the line at an offset in the text.
func (p *passage) lineAt(offset int) int { return p.line + strings.Count(p.text[:offset], "\n") }

// TestWords: comments, documents, help texts and messages use none of the banned words.
func TestWords(t *testing.T) {
	rules := make([]rule, len(words))
	for i, w := range words {
		rules[i] = compiled(w)
	}
	used := make([]bool, len(exceptions))
	passages := 0
	eachPassage(t, func(p passage) {
		passages++
		for i := range rules {
			for _, at := range rules[i].find(p.text) {
				if !excepted(&p, at, used) {
					word := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
					t.Errorf("%s:%d: %q: write instead: %s", p.file, p.lineAt(at[0]), word, words[i].instead)
				}
			}
		}
	})
	if passages < 500 {
		t.Errorf("only %d passages were found", passages)
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("the exception for %q in %s is not needed any more", e.text, e.file)
		}
	}
}

// TestTable: every banned word has a replacement, which is not banned itself.
func TestTable(t *testing.T) {
	for _, w := range words {
		if w.instead == "" {
			t.Errorf("no replacement for %q", w.pattern)
		}
		for _, other := range words {
			rule := compiled(other)
			if at := rule.find(w.instead); at != nil {
				t.Errorf("the replacement %q contains %q, which is banned", w.instead, other.pattern)
			}
		}
	}
	for _, e := range exceptions {
		if e.why == "" {
			t.Errorf("no reason for the exception %q in %s", e.text, e.file)
		}
	}
}

// TestBanned: the rules match whole words across lines, and respect their exceptions.
func TestBanned(t *testing.T) {
	for text, want := range map[string]bool{
		"a room":                          true,
		"the rooms\nof it":                true,
		"write-chunk-room-for-pad":        false,
		"given\nup":                       true,
		"the client gave up":              false,
		"held, packet by packet, against": true,
		"a lower-case letter":             false,
		"in-house":                        false,
		"a houseboat":                     false,
		"mushroom":                        false,
	} {
		found := false
		for _, w := range words {
			rule := compiled(w)
			found = found || rule.find(text) != nil
		}
		if found != want {
			t.Errorf("%q: banned %t, want %t", text, found, want)
		}
	}
}

// TestProofs: no output gives a host, or the network, a time that something else may have taken. Only captures at both
// ends prove such a time, and the sentence says so. That it took at most a time is no accusation, and a line that begins
// with "proven:" adds up what such sentences say.
func TestProofs(t *testing.T) {
	unpacker, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacker.Close()
	outputs, named := 0, 0
	for _, pattern := range []string{"cmd/*/testdata/golden/*", "cmd/rdmadump/testdata/report.html", "render/testdata/*", "internal/browse/testdata/*.golden", "*.md", "docs/*.md", "docs/guides/*.md"} {
		list, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(list) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(list), err)
		}
		for _, file := range list {
			b, err := os.ReadFile(file)
			if err == nil && strings.HasSuffix(file, ".zst") {
				b, err = unpacker.DecodeAll(b, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			outputs++
			text := string(b)
			for _, sentence := range unproven(text) {
				t.Errorf("%s: no proof for %q", file, sentence)
			}
			named += len(took.FindAllString(text, -1))
		}
	}
	if outputs < 80 || named < 100 {
		t.Errorf("only %d outputs with %d times of a host or the network were found", outputs, named)
	}
	for text, want := range map[string]bool{
		"ok\nThe server took 124.24ms to send its\nReply; the capture shows no loss.": true,
		"The network took 5ms.": true,
		"The server took 5ms (captured at the server, as --at says).":                false,
		"The server took 5ms (as --at says).":                                        true,
		"The\nclient\ntook 5.00ms. It was seen (seen at both ends).":                 true,
		"The server took 17.65ms\n(seen at both ends); the captures show no loss.":   false,
		"The server took at least 94.67ms of 138.48ms (its TCP timestamps).":         false,
		"The client took 61.99ms to answer RDMA Reads (captured at the client).":     false,
		"The server or the network took 5.00ms; no ACK of the Call was captured.":    false,
		"The server, or the way back, took at least 5.00ms of 6.00ms: the Call had.": false,
		"The client, or the network, took 5.00ms to answer RDMA Reads.":              false,
		"proven: the server took at most 86%, the client took at most 14%":           false,
		"proven: the server took 19% to 83%,\nthe client took 0%":                    false,
		"proven: nothing. The server took 19% to 83%":                                true,
	} {
		if got := unproven(text); len(got) > 0 != want {
			t.Errorf("%q: without proof %q, want %t", text, got, want)
		}
	}
}

var (
	took  = regexp.MustCompile(`\btook\s`)
	proof = regexp.MustCompile(`\((seen at both ends|captured at the (client|server)(, as --at says)?|its TCP timestamps|it had the Call of XID [^)]*)\)`)
	sums  = regexp.MustCompile(`proven: [^.>]*$`)
	taker = regexp.MustCompile(`(?i)( or)? the (server|client|network)$`)
)

// unproven returns the sentences of an output that give a host or the network a time and have no proof.
func unproven(text string) (list []string) {
	for at := 0; ; {
		next := took.FindStringIndex(text[at:])
		if next == nil {
			return list
		}
		// Sentences are wrapped, and a number has a dot without a space after it.
		before := strings.Join(strings.Fields(text[max(0, at+next[0]-160):at+next[0]]), " ")
		after := strings.Join(strings.Fields(text[at+next[0]:min(len(text), at+next[0]+400)]), " ")
		sentence, _, _ := strings.Cut(after, ". ")
		at += next[1]
		who := taker.FindStringSubmatch(" " + before)
		if who != nil && who[1] == "" && !strings.HasPrefix(sentence, "at most ") && !sums.MatchString(before) && !proof.MatchString(sentence) {
			list = append(list, who[0]+" "+sentence)
		}
	}
}

// rule is the compiled form of a row of words.
type rule struct{ pattern, except *regexp.Regexp }

func compiled(w banned) rule {
	// A space in a pattern matches a line break too, and a word may be capitalized.
	compile := func(s string) *regexp.Regexp { return regexp.MustCompile("(?i)" + strings.ReplaceAll(s, " ", `\s+`)) }
	r := rule{pattern: compile(`\b(?:` + w.pattern + `)\b`)}
	if w.except != "" {
		r.except = compile(w.except)
	}
	return r
}

// find returns the ranges of text that are banned.
func (r *rule) find(text string) (found [][]int) {
	for _, at := range r.pattern.FindAllStringIndex(text, -1) {
		if r.except == nil || !within(at, r.except, text) {
			found = append(found, at)
		}
	}
	return found
}

// within reports whether a range is part of a match of pattern.
func within(at []int, pattern *regexp.Regexp, text string) bool {
	return slices.ContainsFunc(pattern.FindAllStringIndex(text, -1), func(e []int) bool { return e[0] <= at[0] && at[1] <= e[1] })
}

// excepted reports whether an exception allows a range of a passage, and marks it as used.
func excepted(p *passage, at []int, used []bool) bool {
	for i, e := range exceptions {
		text := compiled(banned{pattern: regexp.QuoteMeta(e.text)}).pattern
		if e.file == p.file && within(at, text, p.text) {
			used[i] = true
			return true
		}
	}
	return false
}

// eachPassage calls visit for each passage of all files.
func eachPassage(t *testing.T, visit func(passage)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch base := entry.Name(); {
		case entry.IsDir():
			if strings.HasPrefix(base, ".") && name != "." || base == "testdata" || base == "dist" || base == "bin" || base == "node_modules" {
				return fs.SkipDir
			}
			return nil
		case name == "internal/words/words_test.go": // this file quotes the words
			return nil
		case strings.HasSuffix(base, ".go"):
			return eachInGo(file, name, visit)
		case strings.HasSuffix(base, ".md"):
			return page(file, name, visit)
		case strings.HasPrefix(name, "scripts/"):
			return script(file, name, visit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eachInGo calls visit for the comments of a Go file and, except in tests, for its strings.
func eachInGo(file, name string, visit func(passage)) error {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range parsed.Comments {
		// The marks of a comment become spaces, so that phrases match across lines.
		var text strings.Builder
		for i, c := range group.List {
			if i > 0 {
				text.WriteString(strings.Repeat("\n", set.Position(c.Pos()).Line-set.Position(group.List[i-1].End()).Line))
			}
			text.WriteString(strings.NewReplacer("//", "", "/*", "", "*/", "").Replace(c.Text))
		}
		visit(passage{name, set.Position(group.Pos()).Line, text.String()})
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	var failed error
	ast.Inspect(parsed, func(n ast.Node) bool {
		if pair, is := n.(*ast.KeyValueExpr); is {
			if key, is := pair.Key.(*ast.Ident); is && key.Name == "Quote" {
				return false // a quotation from an RFC
			}
		}
		literal, is := n.(*ast.BasicLit)
		if !is || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			failed = fmt.Errorf("%s: %w", set.Position(literal.Pos()), err)
		}
		// Only prose matters: help texts, messages, the documentation in tags.
		if strings.Count(text, " ") >= 2 {
			if !strings.HasPrefix(literal.Value, "`") {
				text = strings.ReplaceAll(text, "\n", " ") // it is on one line of the file
			}
			visit(passage{name, set.Position(literal.Pos()).Line, text})
		}
		return true
	})
	return failed
}

var (
	quote  = regexp.MustCompile(`(?m)^ *> .*$`) // RFCs use their own words
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline = regexp.MustCompile("`[^`\n]*`")
	indent = regexp.MustCompile(`(?m)^    .*$`)
)

// page calls visit for a Markdown page without its code and its quotations.
func page(file, name string, visit func(passage)) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := string(b)
	for _, code := range []*regexp.Regexp{quote, fence, inline, indent} {
		text = code.ReplaceAllStringFunc(text, func(s string) string { return "_" + strings.Repeat("\n", strings.Count(s, "\n")) })
	}
	visit(passage{name, 1, text})
	return nil
}

// script calls visit for each comment line of a shell script.
func script(file, name string, visit func(passage)) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(b), "\n") {
		if _, comment, found := strings.Cut(line, "# "); found {
			visit(passage{name, i + 1, comment})
		}
	}
	return nil
}
