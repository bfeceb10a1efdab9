//go:build !unix

package testkit

import "time"

var started = time.Now()

// CPU returns the time since the process started, because processor time is unknown on this system.
func CPU() time.Duration { return time.Since(started) }
