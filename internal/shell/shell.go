// Package shell writes words in the form that a POSIX shell accepts.
package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// File returns a file name in the form that a POSIX shell accepts, and that is safe to
// print. It quotes the name if necessary, and puts "./" before a dash that would begin a flag.
func File(file string) string {
	if len(file) > 1 && file[0] == '-' { // the name "-" is standard input
		file = "./" + file
	}
	return Word(file)
}

// Word is like [File] for a word that is no file name: a dash stays.
func Word(word string) string {
	plain, odd := word != "", !utf8.ValidString(word)
	for _, r := range word {
		odd = odd || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029
		plain = plain && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./,:=@%+", r))
	}
	switch {
	case odd:
		b := []byte("$'")
		const set = "01234567"
		for i := range len(word) {
			switch c := word[i]; {
			case c == '\'' || c == '\\':
				b = append(b, '\\', c)
			case c < 0x20 || c >= 0x7f:
				b = append(b, '\\', set[c>>6], set[c>>3&7], set[c&7]) // three digits, because the next character may be a digit
			default:
				b = append(b, c)
			}
		}
		return string(append(b, '\''))
	case plain:
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
