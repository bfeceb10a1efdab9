package browse

import (
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
)

// keys are the keys of all screens. What a screen shows in its last line and what ? lists is made from them.
var keys = struct {
	up, down, pageUp, pageDown, top, bottom                    key.Binding
	enter, back, tab, number, search, next, previous           key.Binding
	filter, sort, copy, help, quit, force, suspend, cancel, ok key.Binding
}{
	up:       bind("Up k", "up", "up", "k"),
	down:     bind("Down j", "down", "down", "j"),
	pageUp:   bind("PgUp b", "page up", "pgup", "b", "ctrl+u"),
	pageDown: bind("PgDn Space", "page down", "pgdown", "space", "ctrl+d"),
	top:      bind("Home g", "first", "home", "g"),
	bottom:   bind("End G", "last; there, new rows are followed", "end", "G"),
	enter:    bind("Enter l", "open what the cursor is on", "enter", "right", "l"),
	back:     bind("Esc h", "back", "esc", "left", "h", "backspace"),
	tab:      bind("Tab", "next tab", "tab"),
	number:   bind("1-5", "Problems, RPCs, Connections, Files, Operations", "1", "2", "3", "4", "5"),
	search:   bind("/", "search the text of this screen", "/"),
	next:     bind("n", "next match; in a ladder or packet the next one", "n"),
	previous: bind("N", "previous match", "N"),
	filter:   bind(":", "filter rows, in the language of -Y", ":"),
	sort:     bind("s", "sort by the next column", "s"),
	copy:     bind("y", "copy the command line of this screen", "y"),
	help:     bind("?", "keys", "?", "f1"),
	quit:     bind("q", "quit", "q"),
	force:    bind("Ctrl-C", "quit", "ctrl+c"),
	suspend:  bind("Ctrl-Z", "suspend", "ctrl+z"),
	cancel:   bind("Esc", "cancel", "esc"),
	ok:       bind("Enter", "ok", "enter"),
}

func bind(name, what string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(name, what))
}

// helpView returns what draws keys, in ASCII.
func (m *Model) helpView() help.Model {
	view := help.New()
	if !m.colours {
		view.Styles = help.Styles{}
	}
	view.ShortSeparator, view.FullSeparator, view.Ellipsis = "  ", "  ", "~"
	return view
}

// newHelp returns the screen that lists the keys.
func newHelp(m *Model, of screen) *pane {
	view := m.helpView()
	p := newPane(m, "keys", func(int) (lines []line) {
		groups := [][]key.Binding{
			of.help(),
			{keys.tab, keys.number, keys.back, keys.quit, keys.suspend},
			{keys.up, keys.down, keys.pageUp, keys.pageDown, keys.top, keys.bottom},
		}
		for i, group := range groups {
			if i > 0 {
				lines = append(lines, line{})
			}
			for _, text := range strings.Split(view.FullHelpView([][]key.Binding{group}), "\n") {
				lines = append(lines, line{text: text})
			}
		}
		return append(lines, line{}, line{text: "A click puts the cursor on a row, and opens it if the cursor is there; the wheel scrolls."})
	})
	return p
}
