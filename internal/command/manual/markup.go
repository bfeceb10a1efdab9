package manual

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The pages of the manual are written in a subset of Markdown: headings of two levels, paragraphs, terms with their
// meanings (which begin with a colon), examples (which are indented), **strong** and *emphasized* text. They are laid
// out as text for help topics, and as man pages.

// block is a part of a page.
type block struct {
	kind blockKind
	text string // with the marks of Markdown; the lines of an example are separated by line breaks
}

type blockKind int

const (
	heading blockKind = iota
	subheading
	prose // a paragraph
	term
	meaning
	example
)

// blocks returns the parts of a page.
func blocks(page string) (all []block) {
	blank := true // The line before was empty.
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		text := strings.TrimLeft(line, "#")
		definition, defines := strings.CutPrefix(line, ": ")
		last := len(all) - 1
		continues := func(kinds ...blockKind) bool { return !blank && slices.Contains(kinds, all[last].kind) }
		switch {
		case line == "":
		case strings.HasPrefix(line, "# "):
			all = append(all, block{heading, text[1:]})
		case len(text) < len(line) && strings.HasPrefix(text, " "):
			all = append(all, block{subheading, text[1:]})
		case line[0] == ' ' || line[0] == '\t':
			if continues(example) {
				all[last].text += "\n" + line
			} else {
				all = append(all, block{example, line})
			}
		case defines:
			if continues(prose) {
				all[last].kind = term
			}
			all = append(all, block{meaning, definition})
		case continues(prose, meaning):
			all[last].text += " " + line
		default:
			all = append(all, block{prose, line})
		}
		blank = line == ""
	}
	return all
}

// escapeMarkdown returns text in which no character marks emphasis or a link.
func escapeMarkdown(s string) string {
	return strings.NewReplacer(`\`, `\\`, "_", `\_`, "*", `\*`, "<", `\<`).Replace(s)
}

// unmark removes the marks of Markdown from a text.
var unmark = strings.NewReplacer("**", "", `\*`, "*", `\_`, "_", `\<`, "<", `\|`, "|", `\\`, `\`, "*", "")

// readable is the width of help topics if nothing limits it.
const readable = 80

// pageText lays a page out as text, from its description on: headings begin a line, and all else is indented and wrapped.
func pageText(page string, width int) string {
	if width <= 0 || width > readable {
		width = readable
	}
	var b strings.Builder
	write := func(indent, text string) {
		for _, line := range wrapped(unmark.Replace(text), width-len(indent)) {
			b.WriteString(indent + line + "\n")
		}
	}
	_, page, _ = strings.Cut(page, "# DESCRIPTION\n")
	last := heading
	for i, part := range blocks("# DESCRIPTION\n" + page) {
		if i > 0 && part.kind <= term && (last > subheading || part.kind == heading) {
			b.WriteString("\n")
		}
		switch part.kind {
		case heading, subheading:
			b.WriteString(part.text + "\n")
		case meaning:
			write("      ", part.text)
		case example:
			b.WriteString(part.text + "\n")
		default:
			write("  ", part.text)
		}
		last = part.kind
	}
	return b.String()
}

// wrapped returns the words of a text in lines of at most width columns. A longer word has
// a line of its own.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// manPage lays a page out as a man page, in the macros of man(7). Its header names the section and the date of the page.
func manPage(name string, section int, date, page string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, ".nh\n.TH \"%s\" \"%d\" \"%s\" \"rdmadump\" \"%s\"\n", roff(strings.ToUpper(name)), section, date, sectionTitles[section])
	last := heading
	for _, part := range blocks(page) {
		separate := ".PP\n"
		if last <= subheading {
			separate = ""
		}
		switch part.kind {
		case heading:
			fmt.Fprintf(&b, ".SH %s\n", marked(part.text))
		case subheading:
			fmt.Fprintf(&b, ".SS %s\n", marked(part.text))
		case term:
			fmt.Fprintf(&b, ".TP\n%s\n", marked(part.text))
		case meaning:
			fmt.Fprintf(&b, "%s\n", marked(part.text))
		case example:
			fmt.Fprintf(&b, "%s.EX\n", separate)
			for line := range strings.Lines(part.text) {
				fmt.Fprintf(&b, "%s\n", roff(strings.TrimSuffix(line, "\n")))
			}
			b.WriteString(".EE\n")
		default:
			fmt.Fprintf(&b, "%s%s\n", separate, marked(part.text))
		}
		last = part.kind
	}
	return []byte(b.String())
}

// sectionTitles has the titles of the sections of the manual that rdmadump has pages in.
var sectionTitles = map[int]string{1: "User Commands", 7: "Miscellaneous Information"}

// marked returns a text with the marks of Markdown as a line of a man page.
func marked(text string) string {
	var b strings.Builder
	strong, emphasized := false, false
	toggle := func(on *bool, font string) {
		if *on = !*on; !*on {
			font = `\fP`
		}
		b.WriteString(font)
	}
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "**"):
			toggle(&strong, `\fB`)
			i++
		case text[i] == '*':
			toggle(&emphasized, `\fI`)
		case text[i] == '\\' && i+1 < len(text):
			i++
			fallthrough
		default:
			b.WriteString(roffEscapes.Replace(text[i : i+1]))
		}
	}
	return guarded(b.String())
}

// roff returns a text without marks as a line of a man page.
func roff(text string) string { return guarded(roffEscapes.Replace(text)) }

// roffEscapes are the characters that man(7) would read as requests, or would replace by those of printed text. An
// option must be found, and copied, as it is typed.
var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`)

// guarded returns a line that man(7) does not take for a request.
func guarded(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
