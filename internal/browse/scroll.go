package browse

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// scroll is which row has the cursor, and which rows are on the screen.
type scroll struct {
	cursor, top   int64
	count, height int64 // of all rows, and of those on the screen
}

// fit moves the cursor to a row that exists, and the screen to the cursor.
func (s *scroll) fit() {
	s.cursor = min(max(s.cursor, 0), max(s.count-1, 0))
	s.top = max(min(s.top, s.cursor, s.count-s.height), s.cursor-s.height+1, 0)
}

// move takes a key that moves the cursor, and reports whether it is one.
func (s *scroll) move(k tea.KeyPressMsg) bool {
	switch {
	case key.Matches(k, keys.up):
		s.cursor--
	case key.Matches(k, keys.down):
		s.cursor++
	case key.Matches(k, keys.pageUp):
		s.cursor, s.top = s.cursor-s.height, s.top-s.height
	case key.Matches(k, keys.pageDown):
		s.cursor, s.top = s.cursor+s.height, s.top+s.height
	case key.Matches(k, keys.top):
		s.cursor = 0
	case key.Matches(k, keys.bottom):
		s.cursor = s.count - 1
	default:
		return false
	}
	s.fit()
	return true
}

// wheel scrolls by some rows.
func (s *scroll) wheel(by int64) {
	s.cursor, s.top = s.cursor+by, s.top+by
	s.fit()
}

// click puts the cursor on a row of the screen. It reports whether the row had it before.
func (s *scroll) click(row int64) (again bool) {
	at := s.top + row
	if row < 0 || row >= s.height || at >= s.count {
		return false
	}
	again = at == s.cursor
	s.cursor = at
	return again
}
