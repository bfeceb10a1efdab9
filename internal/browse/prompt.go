package browse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
)

// prompt is a line that the user types.
type prompt struct {
	kind     string // texts of the same kind have a common history
	label    string
	text     []rune
	at       int                                       // position of the cursor in text
	done     func(text string) error                   // takes the text
	check    func(text string) error                   // nil if any text is right
	complete func(word string, before string) []string // nil for no completion
	past     int                                       // number of earlier texts that Up went back
	offers   []string                                  // completions that the last line shows
}

// longestText is the number of characters that can be typed.
const longestText = 4096

func newPrompt(kind, label, text string, done func(string) error) *prompt {
	return &prompt{kind: kind, label: label, text: []rune(text), at: len([]rune(text)), done: done}
}

// insert inserts text at the cursor, without its control characters.
func (p *prompt) insert(s string) {
	for _, r := range s {
		if unicode.IsPrint(r) && len(p.text) < longestText {
			p.text = slices.Insert(p.text, p.at, r)
			p.at++
		}
	}
	p.offers = nil
}

// key takes a key.
func (p *prompt) key(m *Model, k string) {
	p.offers = nil
	switch k {
	case "enter":
		text := string(p.text)
		if err := p.done(text); err != nil {
			m.fail(reason(err))
			p.at = len(p.text)
			return
		}
		if past := m.past[p.kind]; text != "" && (len(past) == 0 || past[len(past)-1] != text) {
			m.past[p.kind] = append(past, text)
		}
		if m.prompt == p {
			m.prompt = nil
		}
		m.top().update(m)
	case "esc":
		m.prompt = nil
	case "backspace":
		if p.at > 0 {
			p.at--
			p.text = slices.Delete(p.text, p.at, p.at+1)
		} else if len(p.text) == 0 {
			m.prompt = nil
		}
	case "delete", "ctrl+d":
		if p.at < len(p.text) {
			p.text = slices.Delete(p.text, p.at, p.at+1)
		}
	case "left", "ctrl+b":
		p.at = max(p.at-1, 0)
	case "right", "ctrl+f":
		p.at = min(p.at+1, len(p.text))
	case "home", "ctrl+a":
		p.at = 0
	case "end", "ctrl+e":
		p.at = len(p.text)
	case "ctrl+u":
		p.text, p.at = p.text[p.at:], 0
	case "ctrl+k":
		p.text = p.text[:p.at]
	case "ctrl+w":
		from := p.at
		for from > 0 && p.text[from-1] == ' ' {
			from--
		}
		for from > 0 && p.text[from-1] != ' ' {
			from--
		}
		p.text, p.at = slices.Delete(p.text, from, p.at), from
	case "up", "ctrl+p":
		p.recall(m, p.past+1)
	case "down", "ctrl+n":
		p.recall(m, p.past-1)
	case "tab":
		p.tab()
	case "space":
		p.insert(" ")
	default:
		if len([]rune(k)) == 1 {
			p.insert(k)
		}
	}
}

// recall shows an earlier text.
func (p *prompt) recall(m *Model, past int) {
	texts := m.past[p.kind]
	if past < 0 || past > len(texts) {
		return
	}
	p.past, p.text = past, nil
	if past > 0 {
		p.text = []rune(texts[len(texts)-past])
	}
	p.at = len(p.text)
}

// isWord reports whether a character can be in the name of a field.
func isWord(r rune) bool {
	return r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// tab completes the word before the cursor as far as all completions agree, or offers them.
func (p *prompt) tab() {
	if p.complete == nil {
		return
	}
	from := p.at
	for from > 0 && isWord(p.text[from-1]) {
		from--
	}
	word := string(p.text[from:p.at])
	all := p.complete(word, string(p.text[:from]))
	if len(all) == 0 {
		return
	}
	common := all[0]
	for _, s := range all {
		for !strings.HasPrefix(s, common) {
			common = common[:len(common)-1]
		}
	}
	if len(common) > len(word) {
		p.text = slices.Replace(p.text, from, p.at, []rune(common)...)
		p.at = from + len(common)
	}
	if len(all) > 1 {
		quote := ""
		if strings.HasSuffix(string(p.text[:from]), `"`) && !strings.HasPrefix(common, `"`) {
			quote = `"` // which was typed
		}
		for _, s := range grouped(all, len(common)) {
			p.offers = append(p.offers, quote+s)
		}
	}
}

// leastGroup is the number of completions with a common beginning that are offered as one.
const leastGroup = 4

// grouped returns completions or, if they are many, one for all that begin alike up to an underscore after the part that
// all of them have in common.
func grouped(all []string, common int) (offers []string) {
	if len(all) <= mostOffers {
		return all
	}
	head := func(s string) string { return s[:common+strings.IndexByte(s[common:], '_')+1] }
	sizes := map[string]int{}
	for _, s := range all {
		sizes[head(s)]++
	}
	for _, s := range all {
		if h := head(s); len(h) > common && sizes[h] >= leastGroup {
			s = h + "..."
		}
		if !slices.Contains(offers, s) {
			offers = append(offers, s)
		}
	}
	return offers
}

// lines returns the prompt with its cursor, and what is wrong with the text or how it can continue: in the same line or,
// if it does not fit there, in lines above.
func (p *prompt) lines(m *Model) []string {
	wrong := ""
	if p.check != nil && len(p.text) > 0 {
		if err := p.check(string(p.text)); err != nil {
			wrong = clean(reason(err).Error())
		}
	}
	// A long text scrolls, so that the cursor is always visible.
	from := max(p.at-m.width*2/3, 0)
	before, after := visible(p.text[from:p.at]), visible(p.text[p.at:])
	under := " "
	if after != "" {
		under, after = after[:1], after[1:]
	}
	cursor := "_"
	if m.colors {
		cursor = reverse + under + plain
	} else if after != "" || under != " " {
		cursor = "_" + under
	}
	label, note, style := p.label, "", red
	switch {
	case m.bad && m.message != "":
		note = m.message
	case len(p.offers) > 0:
		note, style = strings.Join(p.offers, " "), dim
	case wrong != "":
		label, note = m.styled(red, p.label), wrong
	}
	line := label + before + cursor + after
	if note == "" {
		return []string{line}
	}
	if wide(line)+2+wide(note) <= m.width {
		return []string{line + "  " + m.styled(style, note)}
	}
	return append(m.wrapped(style, note, m.width, m.height/3), line)
}

// visible returns typed text as it is shown: characters that may take two columns are replaced.
func visible(text []rune) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f {
			return '?'
		}
		return r
	}, string(text))
}

// reason returns an error of a filter with its place instead of a mark under it.
func reason(err error) error {
	at := (*query.Error)(nil)
	if !errors.As(err, &at) {
		return err
	}
	if at.From == 0 {
		return errors.New(at.Message)
	}
	return fmt.Errorf("%s (at column %d)", at.Message, at.From+1)
}

// promptFilter lets the user type the filter of the list.
func (m *Model) promptFilter() {
	l := m.searched()
	if l == nil {
		l = m.list // Sums are those of the RPCs that the filter selects.
	}
	p := newPrompt("filter "+l.name, "& ", "", func(text string) error {
		err := l.setFilter(strings.TrimSpace(text))
		if err == nil && l == m.list {
			m.filtered()
		}
		return err
	})
	p.check = l.check
	p.complete = func(word, before string) []string { return complete(l.fields, word, before) }
	m.prompt = p
}

// filtered makes the sums anew after the user has set a filter. Without a filter, no list of RPCs is one that was opened from
// another list.
func (m *Model) filtered() {
	if m.list.filter == "" {
		m.origin = nil
	}
	m.restartSums()
}

// mostOffers is the number of completions that are offered.
const mostOffers = 40

// complete returns the words with which an expression can continue: names of fields, or values after
// a comparison. Before is the expression before the word.
func complete(fields query.Fields, word, before string) (all []string) {
	before = strings.TrimRight(before, " ")
	quoted := strings.HasSuffix(before, `"`)
	before = strings.TrimRight(strings.TrimSuffix(before, `"`), " ")
	for _, operator := range []string{"==", "!=", " in"} {
		rest, is := strings.CutSuffix(before, operator)
		if !is {
			continue
		}
		rest = strings.TrimRight(rest, " ")
		from := len(rest)
		for from > 0 && isWord(rune(rest[from-1])) {
			from--
		}
		path, err := query.Resolve(rest[from:], fields)
		if err != nil {
			return nil
		}
		for _, v := range fields.Field(path).Words() {
			if strings.HasPrefix(v, word) {
				if !quoted {
					v = strconv.Quote(v)
				} else {
					v += `"`
				}
				all = append(all, v)
			}
		}
		return all
	}
	if quoted {
		return nil
	}
	offer := func(name string) {
		if strings.HasPrefix(name, word) && len(all) < mostOffers && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, f := range fields.List() {
		offer(f.Path)
		for _, alias := range f.Aliases {
			offer(alias)
		}
	}
	for _, name := range []string{"and", "or", "not", "in", "matches", "contains"} {
		if word != "" && strings.HasPrefix(name, word) {
			all = append(all, name)
		}
	}
	return all
}

// command takes what was typed after a colon.
func (m *Model) command(text string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	if text = strings.TrimSpace(text); isTime(text) {
		return m.goToTime(text)
	}
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		l, packets := m.tabs[m.tab].(*list)
		if packets && l.pass != nil && (len(m.stack) == 0 || choice{m}.ladder() == nil) {
			m.goToPacket(l, n)
		} else {
			m.goTo(n)
		}
		return nil
	}
	switch word {
	case "":
	case "q", "quit":
		m.quit = true
	case "filter":
		if err := m.list.setFilter(rest); err != nil {
			return err
		}
		m.filtered()
	case "from", "to":
		return m.limit(rest, word == "to")
	case "sort":
		return m.sortBy(rest)
	case "by":
		if err := m.tabs[tabStats].(*sums).groupBy(strings.ReplaceAll(rest, " ", "")); err != nil {
			return err
		}
		m.tab, m.stack = tabStats, nil
	case "save", "w":
		return choice{m}.save(rest)
	case "help":
		m.push(newHelp())
	default:
		return fmt.Errorf("unknown command %s; there are the number of an RPC (in the list of packets, of a packet), a time, from TIME, to TIME, filter EXPR, sort FIELD, by FIELDS, save FILE, help, quit", clean(word))
	}
	return nil
}

// goTo puts the cursor on the RPC with a transaction number.
func (m *Model) goTo(id int64) {
	from, to := m.state.From, m.state.To
	m.later("looking for the RPC", func(ctx context.Context, r *index.Reader) func() {
		var n int64 = -1
		r.Rows(ctx, from, to, rowWithID(id, &n))
		return func() {
			if n < 0 {
				m.fail(fmt.Errorf("there is no RPC with the number %d", id))
				return
			}
			m.tab, m.stack, m.follow = tabRPCs, nil, false
			if !m.list.place(n) {
				m.fail(fmt.Errorf("the filter does not select RPC %d", id))
			}
		}
	})
}

// sortBy sorts the list that is shown by any field; on other screens, the list of RPCs.
func (m *Model) sortBy(name string) error {
	if l := m.searched(); l != nil && l.pass != nil {
		return errors.New("packets are in the order of the capture; rdmadump packets --sort sorts them")
	}
	kind, set := &m.list.source, m.list.setOrder
	switch s := m.top().(type) {
	case *list:
		kind, set = &s.source, s.setOrder
	case *sums:
		kind, set = &s.kind, s.setOrder
	}
	src, by, descending, err := (*kind).orderOf(name)
	if err != nil {
		return err
	}
	*kind = src
	set(by, descending)
	return nil
}
