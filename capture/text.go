package capture

import (
	"errors"
	"fmt"
	"io"
)

// TextError is the error for an input that starts as JSON or HTML does, and so is not a capture. It
// wraps [ErrFormat].
type TextError struct {
	Name string // name of the input
	Path string // path of the input; "-" means standard input
	text *File
}

// Error returns a one-line description.
func (e *TextError) Error() string {
	return fmt.Sprintf("%s: the input is text, such as JSON lines: %v", e.Name, ErrFormat)
}

// Unwrap returns ErrFormat.
func (*TextError) Unwrap() error { return ErrFormat }

// Read reads the text from its start, decompressed.
func (e *TextError) Read(p []byte) (int, error) {
	s := e.text.stream
	have, err := s.peek(1)
	if len(have) == 0 {
		return 0, err
	}
	n := copy(p, s.unread())
	s.discard(n)
	return n, nil
}

// Close ends reading and closes the input.
func (e *TextError) Close() error { return e.text.Close() }

// Texts returns the inputs that are text among the errors of [OpenAllAs], and the other errors.
func Texts(failed error) (texts []*TextError, others error) {
	if joined, is := failed.(interface{ Unwrap() []error }); is {
		for _, one := range joined.Unwrap() {
			found, rest := Texts(one)
			texts, others = append(texts, found...), errors.Join(others, rest)
		}
		return texts, others
	}
	if text := (*TextError)(nil); errors.As(failed, &text) {
		return []*TextError{text}, nil
	}
	return nil, failed
}

var _ io.ReadCloser = (*TextError)(nil)
