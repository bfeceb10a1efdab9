package extract

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect/files"
)

// pathOf returns the path of a file as elements that are safe to use as file names. If
// the capture does not show the whole path, named is false and the path begins
// with a label for the topmost known handle.
func pathOf(f *files.File) (elements []string, named bool) {
	names, top, named := f.Elements()
	if !named {
		elements = append(elements, label(top))
	}
	for _, name := range names {
		elements = append(elements, element(name))
	}
	return elements, named
}

// label returns the name of a file or directory of which only the handle is known.
func label(handle string) string {
	if handle == "" {
		return "unknown"
	}
	if len(handle) <= 64 {
		return "fh-" + hex.EncodeToString([]byte(handle))
	}
	sum := sha256.Sum256([]byte(handle))
	return "fh-" + hex.EncodeToString(sum[:16])
}

// isOwn reports whether a name could be that of the staging folder, on a file system that
// ignores case, too.
func isOwn(name string) bool {
	return len(name) >= len(ownPrefix) && strings.EqualFold(name[:len(ownPrefix)], ownPrefix)
}

// element turns a name from the wire into a file name. It writes separators,
// line breaks, control characters and invalid UTF-8 as %XX, and also the names that have a
// special meaning, such as "..".
func element(name string) string {
	if strings.Trim(name, ".") == "" { // "", ".", ".."
		return strings.Repeat("%2E", len(name)) + map[bool]string{true: "%"}[name == ""]
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size <= 1 || r == '/' || r == '\\' || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || i == 0 && isOwn(name) {
			for _, c := range []byte(name[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	if s := b.String(); len(s) <= 240 { // most file systems take 255
		return s
	}
	sum := sha256.Sum256([]byte(name))
	s := b.String()[:200]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "~" + hex.EncodeToString(sum[:8])
}
