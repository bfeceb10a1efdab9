package extract

import (
	"os"
	"syscall"
)

// Modes of fallocate(2).
const (
	keepSize  = 0x1
	punchHole = 0x2
)

// punch makes the bytes [from, to) of a file zeros and frees their blocks. It returns
// an error if the file system cannot do that.
func punch(f *os.File, from, to int64) error {
	return syscall.Fallocate(int(f.Fd()), keepSize|punchHole, from, to-from)
}
