//go:build !unix

package dissect_test

import "time"

var started = time.Now()

// cpu returns the time since the process started, because processor time is unknown on this
// system.
func cpu() time.Duration { return time.Since(started) }
