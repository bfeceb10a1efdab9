//go:build !unix

package dissect_test

import "time"

var started = time.Now()

// cpu is how long the process runs: nothing better is known here.
func cpu() time.Duration { return time.Since(started) }
