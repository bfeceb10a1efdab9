package field

import (
	"unicode"
	"unicode/utf8"
)

// isPlain says which bytes of a JSON string need no escape.
var isPlain = func() (is [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// PlainJSON returns the number of bytes at the beginning of s that a JSON string has as they are.
func PlainJSON[T string | []byte](s T) (n int) {
	for n < len(s) && isPlain[s[n]] {
		n++
	}
	return n
}

// AppendJSON appends s as a JSON string that is valid UTF-8 and safe to print: invalid
// bytes become U+FFFD, and characters that control the output are escaped (control
// characters, changes of the text direction, line separators).
func AppendJSON[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	plain := PlainJSON(s)
	b = append(b, s[:plain]...)
	for i := plain; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c < 0x20 || c == 0x7f:
				b = appendEscape(b, rune(c))
			default:
				b = append(b, c)
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if isControl(r) {
			b = appendEscape(b, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
		i += size
	}
	return append(b, '"')
}

// isControl reports whether a character controls the output instead of being visible.
func isControl(r rune) bool {
	return r < 0xa0 || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Cf, r)
}

// appendEscape appends a character as a JSON escape. A character above U+FFFF becomes
// two escapes, its UTF-16 surrogate pair.
func appendEscape(b []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		b = appendEscape(b, 0xd800+r>>10)
		r = 0xdc00 + r&0x3ff
	}
	const set = "0123456789abcdef"
	return append(b, '\\', 'u', set[r>>12&15], set[r>>8&15], set[r>>4&15], set[r&15])
}
