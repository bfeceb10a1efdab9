// Package export hands what a capture holds over to other tools: its RPCs as if
// TCP had carried them, or its own packets with comments, as pcapng files.
package export

import (
	"io"

	"github.com/rdmadump/rdmadump/capture"
)

// Writer writes a pcapng file, with comments beside packets.
type Writer = capture.Writer

// NewWriter begins a file; application is who writes it. An error of writing
// comes with the packets, and with Flush.
func NewWriter(to io.Writer, application string) *Writer {
	w := capture.NewWriter(to)
	w.Begin(application)
	return w
}
