// Package command has what all commands of rdmadump share: exit statuses, messages, the files that they write, and what
// is known about the terminal. The packages below it are the parts of the command line.
package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// The exit statuses.
const (
	ExitOK     = 0
	ExitFound  = 1  // check found an error, or overview or compare what --fail-on names
	ExitUsage  = 2  // the usage is wrong, the input cannot be read, or check found neither RDMA nor RPC
	ExitBroken = 3  // the input is truncated or damaged
	ExitFailed = 70 // rdmadump itself failed with a panic; EX_SOFTWARE of sysexits.h
)

// ExitHelp describes the exit statuses in help texts.
const ExitHelp = `Exit status: 0 if the command succeeded; 1 if check found an error, overview a
problem or compare a change that exceeds --fail-on; 2 if the usage was wrong, the input
could not be read, or check found neither RDMA nor RPC in it; 3 if the input was
truncated or damaged, so that the results cover only the part before that;
70 if rdmadump itself failed, and standard error says what to report.`

// OwnProcess reports whether the process runs this command and nothing else. In tests it
// is false.
var OwnProcess bool

// Status is an error with an exit status; any other error has ExitUsage. Its err is nil if the message has been printed
// already.
type Status struct {
	Code int
	Err  error
}

// Error returns the message, or "" if it has been printed already.
func (s *Status) Error() string {
	if s.Err == nil {
		return ""
	}
	return s.Err.Error()
}

// Unwrap returns the cause.
func (s *Status) Unwrap() error { return s.Err }

// Broken returns the error of an input that was not read to its end, with its exit status.
func Broken(err error) error { return &Status{Code: ExitBroken, Err: err} }

// Say writes a message of the program, in lines that fit a terminal. It may contain names of files and bytes of captures, so
// what is not printable is escaped.
func Say(stderr io.Writer, format string, args ...any) {
	lines := strings.Split("rdmadump: "+fmt.Sprintf(format, args...), "\n")
	for i, line := range lines {
		lines[i] = render.Folded(render.Clean(line), proseWidth(stderr))
	}
	fmt.Fprintln(stderr, strings.Join(lines, "\n"))
}

// Damaged returns the error for inputs that could not be read to their ends.
func Damaged(err error) error {
	return fmt.Errorf("%s; results cover the packets before that", Describe(err))
}

// fewErrors is the largest number of inputs of which an error has a text.
const fewErrors = 8

// Describe returns the message for an error of one input, or of several.
func Describe(err error) string {
	if several, is := err.(interface{ Unwrap() []error }); is {
		var texts []string
		for _, one := range several.Unwrap() {
			if texts = append(texts, Describe(one)); len(texts) == fewErrors {
				break
			}
		}
		if more := len(several.Unwrap()) - len(texts); more > 0 {
			texts = append(texts, fmt.Sprintf("and %d more", more))
		}
		return strings.Join(texts, "; ")
	}
	broken := (*capture.BrokenError)(nil)
	if !errors.As(err, &broken) {
		return err.Error()
	}
	what, reason := "cannot be read after", broken.Err.Error()
	if errors.Is(broken.Err, io.ErrUnexpectedEOF) {
		what, reason = "is truncated at", strings.TrimSuffix(reason, ": "+io.ErrUnexpectedEOF.Error())
	}
	return fmt.Sprintf("%s %s byte %d, after %s (%s)", broken.Name, what, broken.Offset, record.Plural(broken.Frames, "packet"), reason)
}
