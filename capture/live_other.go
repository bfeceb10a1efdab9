//go:build !linux

package capture

import (
	"context"
	"errors"
	"io"
)

// Live captures live traffic. It is available on Linux only.
type Live struct{}

// OpenLive returns an error, because live capture needs Linux.
func OpenLive(string, LiveOptions) (*Live, error) {
	return nil, errors.New("capturing on an interface needs Linux; pipe a capture in: tcpdump -w - | rdmadump live -")
}

// ReadBatch is never called.
func (*Live) ReadBatch(context.Context, *Batch) error { return io.EOF }

// Dropped is never called.
func (*Live) Dropped() uint64 { return 0 }

// Progress is never called.
func (*Live) Progress() (read, total int64) { return 0, 0 }

// Close does nothing.
func (*Live) Close() error { return nil }
