//go:build !linux

package extract

import (
	"errors"
	"os"
)

// punch returns an error, because only Linux can free blocks inside of a file.
func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }
