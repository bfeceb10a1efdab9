package hugepages

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hasAsked is set after TestAsk has run. In a second run, the runtime would return the
// same block, whose pages were already accessed.
var hasAsked bool

// TestAsk: the heap grows into memory for which the kernel was asked for huge pages, and
// asking itself uses no memory.
func TestAsk(t *testing.T) {
	if hasAsked {
		t.Skip("a process can ask only once")
	}
	hasAsked = true
	const bytes = 64 << 20
	before := resident(t)
	if !ask(bytes) {
		t.Skip("the kernel grants no huge pages, or the process may not map that much")
	}
	runtime.GC() // collect again, as a running program will
	if took := resident(t) - before; took > bytes/4 {
		t.Errorf("asking took %d bytes of memory", took)
	}
	small := make([]*[4096]byte, bytes/2/4096)
	for i := range small {
		small[i] = new([4096]byte)
	}
	advised := 0
	maps := smaps(t)
	for _, s := range small {
		if at := uintptr(unsafe.Pointer(s)); maps.huge(at) {
			advised++
		}
	}
	if advised < len(small)*3/4 {
		t.Errorf("%d of %d objects are in memory for which huge pages were requested, want most", advised, len(small))
	}
}

// TestLimit: nothing is asked for if the process may not map that much, because the
// runtime would terminate it.
func TestLimit(t *testing.T) {
	if ask(1 << 46) {
		t.Error("64 TiB were granted")
	}
}

// TestLook: huge pages are asked for once, when the heap has become large.
func TestLook(t *testing.T) {
	runtime.GC() // collect the garbage of earlier tests
	if Look(1 << 20); asked.Load() {
		t.Error("asked for a small heap")
	}
	large := make([]byte, 2*enough)
	if Look(0); asked.Load() {
		t.Error("asked for nothing")
	}
	if Look(1 << 20); !asked.Swap(false) {
		t.Error("did not ask for a large heap")
	}
	runtime.KeepAlive(large)
}

// resident returns the resident memory of this process in bytes.
func resident(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(raw))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * unix.Getpagesize()
}

// mapping is a range of addresses, and whether huge pages were requested for it.
type mapping struct {
	from, to uint64
	huge     bool
}

type mappings []mapping

func (m mappings) huge(at uintptr) bool {
	for _, r := range m {
		if uint64(at) >= r.from && uint64(at) < r.to {
			return r.huge
		}
	}
	return false
}

func smaps(t *testing.T) (m mappings) {
	t.Helper()
	flags := false
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		fields := strings.Fields(s.Text())
		if low, high, ok := strings.Cut(fields[0], "-"); ok {
			from, err := strconv.ParseUint(low, 16, 64)
			to, err2 := strconv.ParseUint(high, 16, 64)
			if err == nil && err2 == nil {
				m = append(m, mapping{from: from, to: to})
			}
		} else if fields[0] == "VmFlags:" {
			flags = true
			m[len(m)-1].huge = strings.Contains(s.Text(), " hg")
		}
	}
	if !flags {
		t.Skip("this kernel does not report the flags of mappings")
	}
	return m
}
