package render

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
)

// column is a column of a table. The table, -o csv, --columns, and the headings that -Y, -e and --sort accept all come
// from this description.
type column struct {
	name   string
	title  string // heading, if it is not the name: what the rows are grouped by
	doc    string // what it shows, in one sentence; empty for those of usualDocs
	fields string // fields that its cells show, as columnFields reads them; empty if they show none
	// total returns the number that its cells show if the field is an object; nil if it is not. -o csv has no such column.
	total func(record any) any
	// cell returns the text of its cells, if filters cannot make it from the first field; nil if they can.
	cell    func(record any) any
	scale   string // range of values that the heading shows after the name
	right   bool   // aligned to the right, because it contains numbers
	flex    bool   // takes the width that the other columns leave
	wrap    bool   // its text continues in further lines, or below the row on a narrow terminal; only for the last column
	min     int    // least width of a column with flex
	whole   bool   // a column with flex has at least the width of its short texts
	at      int    // of tables of sums, whose columns depend on the width alone: the narrowest terminal that has the column; 0 for all
	rank    int    // of lists: columns with the highest rank are hidden first on a narrow terminal; 0 is never hidden
	usual   int    // width in a live table, which cannot wait for rows to learn widths from
	varied  bool   // hidden unless the sample has at least two different texts, not counting empty ones
	differs bool   // hidden on a screen if all texts in the sample are the same
	some    bool   // hidden if all texts in the sample are empty or 0
	wide    bool   // for special questions: hidden unless the user wants all columns, or chose this one
	foot    string // what the heading means, for a line below a table for people, if the column is shown; columns next to each other with the same one share a line
	moment  bool   // its cells are points in time
	signs   []sign // what is explained after foot if a cell has it
	// meaning returns what a text of the cells means, for the list after foot, or nothing; nil for none.
	meaning func(text string) string
}

// sign is a text of cells that does not explain itself.
type sign struct {
	text    string // a part of a cell's text, or shortMark; empty cells have the sign ""
	meaning string // what it stands for, without the sign
}

// These signs stand for the marks of shortened texts and of upper bounds, which depend on the theme.
const (
	shortMark = "{short}"
	boundMark = "{bound}"
)

// bounded explains the mark of upper bounds.
var bounded = sign{boundMark, "at most: Reply retransmitted, accepted copy unknown"}

// alike returns columns with the same foot and signs.
func alike(foot string, signs []sign, columns ...column) []column {
	for i := range columns {
		columns[i].foot, columns[i].signs = foot, signs
	}
	return columns
}

// cell is one field of a row.
type cell struct {
	text  string
	ink   ink
	short string // replaces text if text does not fit
	tail  bool   // if text does not fit, its beginning is left out instead of its end
}

// in returns the cell in an ink, unless it has one.
func (c cell) in(look ink) cell {
	if c.ink == (ink{}) {
		c.ink = look
	}
	return c
}

// sampleRows is the number of rows that a table keeps to learn its widths. Later rows are
// written at once, so that the memory of a table does not depend on its length. lipgloss's
// own table needs all rows at once and lays out 37,000 rows in a second (measured); this
// one lays out some millions.
const sampleRows = 256

// table writes rows in columns that fit the width of a terminal.
type table struct {
	w       io.Writer
	theme   *Theme
	width   int // of the terminal; 0 if there is none, and no text is shortened
	columns []column
	widths  []int // 0: the column is hidden
	order   []int // indexes of the columns, from left to right
	least   int   // least width of the column with flex
	below   bool  // the column that wraps is written below its row
	sample  [][]cell
	drawn   bool
	live    bool
	line    []byte
	hidden  []string        // columns that the width hides
	late    []string        // hidden columns whose cells differed in a later row
	common  []string        // text that all cells of a column had in the sample
	uniform []bool          // the column is hidden for another reason than its width
	meant   []string        // texts of the cells that are explained below the table
	asked   map[string]bool // texts of columns that explain them, which are few
	signed  [][]bool        // which signs of each column a cell has
	filled  []bool          // the column has a cell that is not empty
	by      string          // heading of the column that the rows are sorted by, until the heading line says it
}

func newTable(w io.Writer, theme *Theme, width int, columns []column) *table {
	t := &table{w: w, theme: theme, width: width, columns: columns, signed: make([][]bool, len(columns)), filled: make([]bool, len(columns)), by: theme.by}
	for i, c := range columns {
		t.signed[i] = make([]bool, len(c.signs))
	}
	return t
}

// row adds a row. The table keeps a copy of the cells while it learns the widths.
func (t *table) row(cells []cell) error {
	if t.theme.sheet != nil {
		t.theme.sheet(t.columns, cells)
		return nil
	}
	if t.drawn {
		return t.write(cells)
	}
	t.sample = append(t.sample, slices.Clone(cells))
	if len(t.sample) >= sampleRows {
		return t.flush()
	}
	return nil
}

// flush writes the heading and the rows of the sample.
func (t *table) flush() error {
	if t.drawn || len(t.sample) == 0 {
		return nil
	}
	t.drawn = true
	t.layOut()
	t.note()
	heads := make([]cell, len(t.columns))
	for i, c := range t.columns {
		heads[i] = cell{text: c.heading(), ink: t.theme.header}
	}
	t.sayOrder(heads)
	if err := t.write(heads); err != nil {
		return err
	}
	for _, cells := range t.sample {
		if err := t.write(cells); err != nil {
			return err
		}
	}
	t.sample = nil
	return nil
}

// sayOrder says in the heading line what the rows are sorted by, if its first column has names and space; else it is said below the table.
func (t *table) sayOrder(heads []cell) {
	shown := slices.DeleteFunc(slices.Clone(t.order), func(i int) bool { return t.widths[i] == 0 })
	if t.by == "" || t.width == 0 || len(t.sample) < 2 || len(shown) == 0 {
		t.by = ""
		return
	}
	used := len(shown) - 1
	for _, i := range shown {
		used += t.widths[i]
	}
	i := shown[0]
	text := heads[i].text + " (by " + t.by + ")"
	if over := max(0, wide(text)-t.widths[i]); !t.columns[i].right && used+over <= t.width {
		t.widths[i] += over
		heads[i].text, t.by = text, ""
	}
}

// explain notes that a text of a column is to be explained below the table, if the column explains its texts.
func (t *table) explain(i int, text string) {
	meaning := t.columns[i].meaning
	if meaning == nil || t.asked[text] {
		return
	}
	if t.asked == nil {
		t.asked = map[string]bool{}
	}
	t.asked[strings.Clone(text)] = true
	if m := meaning(text); m != "" {
		t.meant = append(t.meant, text+" ("+m+")")
	}
}

// noteText notes what a text of a column needs below the table.
func (t *table) noteText(i int, text string) {
	if text == t.columns[i].heading() {
		return
	}
	t.filled[i] = t.filled[i] || !isEmpty(text)
	for n, s := range t.columns[i].signs {
		switch {
		case t.signed[i][n]:
		case s.text == "":
			t.signed[i][n] = text == ""
		default:
			t.signed[i][n] = strings.Contains(text, t.drawnSign(s))
		}
	}
}

// drawnSign returns a sign as cells have it.
func (t *table) drawnSign(s sign) string {
	switch s.text {
	case shortMark:
		return t.theme.glyphs.shortened
	case boundMark:
		return strings.TrimSpace(t.theme.atMost())
	}
	return s.text
}

// footOf returns the line that explains the headings of some columns with the same foot, and the signs that their cells have. It returns
// nothing if there is nothing to explain, because all cells are empty.
func (t *table) footOf(list []int) string {
	first, last := &t.columns[list[0]], &t.columns[list[len(list)-1]]
	if !slices.ContainsFunc(list, func(i int) bool { return t.filled[i] || slices.Contains(t.signed[i], true) }) {
		return ""
	}
	var parts []string
	if first.foot != "" {
		parts = append(parts, first.foot)
	}
	if first.moment {
		parts = append(parts, timeWords[cmp.Or(t.theme.times, Relative)])
	}
	for n, s := range first.signs {
		if !slices.ContainsFunc(list, func(i int) bool { return t.signed[i][n] }) {
			continue
		}
		text := s.meaning
		if name, _, _ := strings.Cut(text, " = "); name == text { // it does not begin with the sign in words
			text = cmp.Or(t.drawnSign(s), "empty") + " " + text
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "; ")
	if first.meaning != nil && len(t.meant) > 0 {
		text = strings.TrimSpace(text + " " + strings.Join(t.meant, ", "))
	}
	if text == "" || first.meaning != nil && len(t.meant) == 0 {
		return ""
	}
	heading := cmp.Or(first.title, first.name)
	switch len(list) {
	case 1:
	case 2:
		heading += ", " + last.name
	default:
		heading += " to " + last.name
	}
	return heading + ": " + text
}

// feet returns the lines below a table that explain the headings of its columns and name the hidden ones, if people read the table.
func (t *table) feet() string {
	if t.width == 0 && !t.theme.legend || !t.drawn {
		return ""
	}
	var b strings.Builder
	if t.by != "" {
		b.WriteString(t.theme.dim.of("rows: by "+t.by) + "\n")
	}
	shown := slices.DeleteFunc(slices.Clone(t.order), func(i int) bool { return t.widths[i] == 0 })
	for len(shown) > 0 {
		n := 1
		for foot := t.columns[shown[0]].foot; foot != "" && n < len(shown) && t.columns[shown[n]].foot == foot; {
			n++
		}
		if foot := t.footOf(shown[:n]); foot != "" {
			b.WriteString(t.theme.dim.of(Folded(foot, t.width)) + "\n")
		}
		shown = shown[n:]
	}
	var parts []string
	if t.theme.legend {
		parts = append(parts, columnsExplained)
	}
	switch names := slices.Concat(t.late, t.hidden); {
	case len(names) > 0 && t.theme.hidden == nil:
		parts = append(parts, "hidden (--wide): "+strings.Join(names, ", "))
	case t.theme.legend && !t.theme.whole && len(t.theme.columns) == 0 && slices.ContainsFunc(t.columns, func(c column) bool { return c.wide || t.width > 0 && c.at > t.width }):
		parts = append(parts, "more columns: --wide")
	}
	if text := strings.Join(parts, "   "); text != "" {
		b.WriteString(t.theme.dim.of(t.theme.fit(text, cmp.Or(t.width, math.MaxInt32))) + "\n")
	}
	return b.String()
}

// note lists the columns that the width hides.
func (t *table) note() {
	for i, c := range t.columns {
		if len(t.theme.columns) == 0 && t.widths[i] == 0 && !c.wide && !t.uniform[i] {
			t.hidden = append(t.hidden, c.name)
		}
	}
	if t.theme.hidden != nil && len(t.hidden) > 0 {
		t.theme.hidden(t.hidden)
	}
}

// WithHidden returns a copy of the theme. Tables that are drawn with it pass the names of the columns that they leave out because
// of their width to a function.
func (t *Theme) WithHidden(take func(names []string)) *Theme {
	c := *t
	c.hidden = take
	return &c
}

// same reports whether all cells of a column in the sample have the same text, and returns
// that text.
func (t *table) same(i int) (text string, same bool) {
	for n, cells := range t.sample {
		if n == 0 {
			text = cells[i].text
		} else if cells[i].text != text {
			return "", false
		}
	}
	return text, len(t.sample) > 1 || isEmpty(text)
}

// only returns the only text of a column in the sample, apart from empty ones. It returns false if there are
// several.
func (t *table) only(i int) (text string, is bool) {
	for _, cells := range t.sample {
		if own := cells[i].text; own != "" && text == "" {
			text = own
		} else if own != "" && own != text {
			return "", false
		}
	}
	return text, true
}

// isEmpty reports whether a cell contains no information, but only zeros, dashes or spaces.
func isEmpty(text string) bool { return strings.Trim(text, "0/-?%. ") == "" }

// layOut gives each column the width of its widest cell, hides columns until the others fit,
// and gives the remaining width to the column with flex. It first hides columns with the
// same text in every row, then those with the highest rank. A hidden column is shown after all if it fits into the width that the others leave.
func (t *table) layOut() {
	t.widths = make([]int, len(t.columns))
	t.common, t.uniform = make([]string, len(t.columns)), make([]bool, len(t.columns))
	ranks := make([]int, len(t.columns))
	flex := -1
	for i, c := range t.columns {
		t.order = append(t.order, i)
		t.widths[i] = len(c.heading())
		if t.live {
			t.widths[i] = max(t.widths[i], c.usual)
		}
		for _, cells := range t.sample {
			t.widths[i] = max(t.widths[i], wide(cells[i].text))
		}
		if c.flex {
			flex = i
			t.least = c.min
			for _, cells := range t.sample {
				if c.whole {
					t.least = max(t.least, wide(cells[i].short))
				}
			}
		}
		if ranks[i] = max(2*c.rank, c.at); c.wide {
			ranks[i] += 4000
		}
		text, same := t.same(i)
		t.common[i] = text
		switch {
		case c.rank > 0 && isEmpty(text) && same:
			ranks[i] += 2000
		case c.rank > 0 && same:
			ranks[i] += 1000
		}
	}
	t.choose()
	t.omit()
	if t.width == 0 {
		return
	}
	var hidden []int // columns that do not fit, in the order in which they were hidden
	full := slices.Clone(t.widths)
	for {
		need, worst, same := -1, -1, 0 // same is the width of the columns with the same text in every row
		for i, c := range t.columns {
			if t.widths[i] == 0 || t.below && c.wrap {
				continue
			}
			if need++; i == flex {
				need += min(t.widths[i], t.least)
			} else {
				need += t.widths[i]
			}
			if ranks[i] > 0 && len(t.theme.columns) == 0 && (worst < 0 || ranks[i] >= ranks[worst]) {
				worst = i
			}
			if ranks[i] >= 1000 && i != flex {
				same += t.widths[i] + 1
			}
		}
		if need > t.width && flex >= 0 && t.columns[flex].wrap { // below its row, instead of hiding more columns
			t.below = true
			flex = -1
			continue
		}
		if need <= t.width || worst < 0 {
			if flex >= 0 {
				room := max(t.least, t.width-need+min(t.widths[flex], t.least))
				if all := t.widths[flex]; all > room && worst >= 0 && ranks[worst] >= 1000 && all <= room+same && t.columns[flex].whole {
					t.widths[worst] = 0 // Columns with the same text in every row say less than the rest of these texts.
					hidden = append(hidden, worst)
					continue
				}
				t.widths[flex] = min(t.widths[flex], room)
				need += t.widths[flex] - min(full[flex], t.least)
			}
			for _, i := range slices.Backward(hidden) { // A wide column may have been hidden after a narrow one, which fits without it.
				if more := full[i] + 1; need+more <= t.width {
					t.widths[i], need = full[i], need+more
				}
			}
			t.narrow(need - t.width)
			return
		}
		t.widths[worst] = 0
		hidden = append(hidden, worst)
	}
}

// leastText is the least width to which [table.narrow] shortens the texts of a column.
const leastText = 20

// narrow shortens the texts of the columns that are never hidden, such as long names of hosts, if the table is too wide without the columns that
// can be hidden. The widest column is shortened first. If the user chose the columns, their texts stay whole.
func (t *table) narrow(over int) {
	for ; over > 0 && len(t.theme.columns) == 0; over-- {
		widest := -1
		for i, c := range t.columns {
			if !c.right && !c.flex && !c.wrap && t.widths[i] > max(leastText, len(c.heading())) && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// choose selects the columns that the user chose, in that order.
func (t *table) choose() {
	if len(t.theme.columns) == 0 {
		return
	}
	t.order = nil
	for _, name := range t.theme.columns {
		named := slices.ContainsFunc(t.columns, func(c column) bool { return strings.EqualFold(c.name, name) })
		for i, c := range t.columns {
			if (strings.EqualFold(c.name, name) || !named && c.called(name)) && !slices.Contains(t.order, i) {
				t.order = append(t.order, i)
			}
		}
	}
	for i := range t.columns {
		if !slices.Contains(t.order, i) {
			t.widths[i] = 0
		}
	}
}

// omit hides the columns for special questions and wider terminals, and those that are only shown if they have texts, or if their texts differ.
// It hides none if the user chose the columns.
func (t *table) omit() {
	if len(t.theme.columns) > 0 {
		return
	}
	for i, c := range t.columns {
		text, uniform := t.only(i)
		switch {
		case c.wide:
			t.uniform[i] = !t.theme.whole
		case c.at > t.width && t.width > 0:
			t.uniform[i] = true
		case c.varied:
			t.uniform[i] = uniform
		case c.some:
			t.uniform[i] = uniform && isZero(text)
		}
		if _, same := t.same(i); c.differs && same && t.width > 0 && !t.live && t.theme.hidden == nil {
			text, t.uniform[i] = t.common[i], true
		}
		if t.uniform[i] {
			t.common[i], t.widths[i] = text, 0
		}
	}
}

// isZero reports whether a column that is shown only if it has texts may be hidden in spite of this one.
func isZero(text string) bool { return text == "" || text == none }

// heading returns the text at the top of the column.
func (c *column) heading() string {
	return strings.TrimSpace(cmp.Or(c.title, c.name) + " " + c.scale)
}

// called reports whether a name is the name of the column, or one of the names between its slashes.
func (c *column) called(name string) bool {
	is := func(heading string) bool { return strings.EqualFold(name, heading) }
	return is(c.name) || slices.ContainsFunc(strings.Split(c.name, "/"), is)
}

// write writes one row.
func (t *table) write(cells []cell) error {
	b := t.line[:0]
	pending, at := 0, 0 // number of spaces before the next cell, and its position in the line
	var rest []string   // further lines of the cell that wraps
	indent, over := 0, 0
	for _, i := range t.order {
		c := &t.columns[i]
		width := t.widths[i]
		if width == 0 {
			t.missed(i, cells[i].text)
			continue
		}
		text := cells[i].text
		t.explain(i, text)
		if c.flex { // gives width to numbers that are longer than those of the sample
			least := min(width, t.least)
			width, over = max(width-over, least), max(over-(width-least), 0)
		}
		if c.wrap && t.width > 0 {
			if t.below {
				if text != c.heading() {
					rest, indent = Wrap(text, max(t.width-4, 20)), 4
				}
				continue
			}
			if lines := Wrap(text, width); len(lines) > 1 {
				text, rest, indent = lines[0], lines[1:], at
			}
		}
		switch {
		case t.width == 0 || wide(text) <= width:
		case c.right: // a shortened number would be a different number
			over += wide(text) - width
		default:
			if cells[i].short != "" {
				text = cells[i].short
			}
			if cells[i].tail {
				text = endOf(text, width, t.theme.glyphs.shortened)
			}
			text = t.theme.fit(text, width)
		}
		t.noteText(i, text)
		pad := max(width-wide(text), 0)
		given := min(over, pad) // to a number on the left that is longer than those of the sample
		pad, over = pad-given, over-given
		at += width + 1
		if c.right {
			pending, pad = pending+pad, 0
		}
		if text != "" {
			for ; pending > 0; pending-- {
				b = append(b, ' ')
			}
			b = append(b, cells[i].ink.before...)
			b = append(b, text...)
			b = append(b, cells[i].ink.after...)
		}
		pending += pad + 1
	}
	b = append(b, '\n')
	for _, line := range rest {
		b = append(b, strings.Repeat(" ", indent)...)
		b = append(append(b, line...), '\n')
	}
	t.line = b
	_, err := t.w.Write(b)
	return err
}

// missed notes that a hidden column has a different text than in the sample.
func (t *table) missed(i int, text string) {
	c := &t.columns[i]
	if len(t.theme.columns) > 0 || len(t.sample) > 0 || text == t.common[i] || slices.Contains(t.late, c.name) {
		return
	}
	switch {
	case c.wide, c.at > 0, t.uniform[i] && isZero(text):
	case t.uniform[i] && t.common[i] == "" && c.varied:
		t.common[i] = text
	case t.uniform[i]:
		t.late = append(t.late, c.name)
	}
}

// fit shortens text to a width and ends it with a mark.
func (t *Theme) fit(text string, width int) string {
	if wide(text) <= width {
		return text
	}
	return text[:start(text, max(width-1, 0))] + t.glyphs.shortened
}
