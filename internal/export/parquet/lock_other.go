//go:build !unix || solaris || aix

package parquet

import "os"

// lock reports that files cannot be locked on this system.
func lock(*os.File) bool { return false }
