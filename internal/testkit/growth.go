package testkit

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Growing four times as large, work that is proportional to its size takes four times as long, and work that is
// quadratic takes 16 times as long.
const (
	times      = 4
	mostGrowth = 10
)

// Proportional fails the test unless the processor time of some work is proportional to its size. It compares a size with
// one that is four times as large, and so depends neither on the speed of the machine nor on what else runs there:
// the least of several measurements counts. Prepare makes what the work needs, which is not measured, and work must take some milliseconds for the
// size n.
func Proportional(t testing.TB, n int, prepare func(n int) (work func())) {
	t.Helper()
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range 5 {
		few, many = min(few, cost(prepare(n))), min(many, cost(prepare(times*n)))
		if many <= mostGrowth*few {
			return
		}
	}
	t.Errorf("the work on %d things takes %v of processor time, and the work on %d things %v, which is %.1f times as long; want at most %d times, as work takes that is proportional",
		n, few, times*n, many, float64(many)/float64(few), mostGrowth)
}

// cost returns the processor time of some work, without garbage collection, which only large work needs.
func cost(work func()) time.Duration {
	runtime.GC() // of what was there before
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	began := CPU()
	work()
	return CPU() - began
}
