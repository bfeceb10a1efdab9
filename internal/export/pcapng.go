// Package export writes pcapng files for other tools: the RPCs of a capture as if
// TCP had carried them, or its packets with comments.
package export

import (
	"io"

	"github.com/rdmadump/rdmadump/capture"
)

// Writer writes a pcapng file whose packets may have comments.
type Writer = capture.Writer

// newWriter returns a Writer and writes the section header, which names the
// application. The methods that write packets, and Flush, return write errors.
func newWriter(to io.Writer, application string) *Writer {
	w := capture.NewWriter(to)
	w.Begin(application)
	return w
}
