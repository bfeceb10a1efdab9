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

// again says that a test has asked: a block of the same size would be the same.
var again bool

// TestAsk: what the heap grows into after it was asked for is memory for which the
// kernel was asked for huge pages, and takes none of it before.
func TestAsk(t *testing.T) {
	if again {
		t.Skip("a process can only be asked once")
	}
	again = true
	const bytes = 64 << 20
	before := resident(t)
	if !ask(bytes) {
		t.Skip("the kernel has no huge pages for who asks, or maps no more")
	}
	runtime.GC() // as the next collection will
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
		t.Errorf("%d of %d objects are where the kernel was asked for huge pages, want most", advised, len(small))
	}
}

// TestLimit: what a process may not map is not asked for: the runtime would end it.
func TestLimit(t *testing.T) {
	if ask(1 << 46) {
		t.Error("64 TiB were to be had")
	}
}

// TestLook: a heap is looked at until it is large, and then asked for once.
func TestLook(t *testing.T) {
	runtime.GC() // of what others have left
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

// resident is how many bytes of memory this process takes.
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

// mapping is one range of addresses, and whether huge pages were asked for there.
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
		t.Skip("this kernel does not say where huge pages were asked for")
	}
	return m
}
