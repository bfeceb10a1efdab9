package browse

import (
	"runtime/debug"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rdmadump/rdmadump/capture"
)

// job is work on many records: a filter, a search, a sort. It is done in slices, each a command of package tea, so that the screen
// shows what was found so far and stays alive. The Model looks at the results only between two slices.
type job struct {
	slice   func() (more bool) // works for about sliceTime
	found   func() tea.Cmd     // shows the results so far; nil for nothing
	stopped bool
	ended   bool
}

// sliceTime is how long a slice works.
const sliceTime = 25 * time.Millisecond

// sliced is the message that a slice has ended.
type sliced struct {
	of   *job
	more bool
}

// run returns the command that does the next slice.
func (j *job) run() tea.Cmd {
	return guarded(func() tea.Msg { return sliced{j, j.slice()} })
}

// failed is the message of a command that panicked.
type failed struct{ panic *capture.Panic }

// guarded returns a command whose panic becomes a message.
func guarded(work func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = failed{&capture.Panic{Value: v, Stack: debug.Stack()}}
			}
		}()
		return work()
	}
}

// stop ends a job whose result is not needed any more. The job may be nil.
func (j *job) stop() {
	if j != nil {
		j.stopped = true
	}
}

// running reports whether a job has not ended. The job may be nil.
func (j *job) running() bool { return j != nil && !j.stopped && !j.ended }

// visiting returns a slice that visits the numbers from next up to what end returns, until visit returns false. An error ends it.
func visiting(next *int64, end func() int64, visit func(n int64) (goOn bool)) func() bool {
	return func() bool {
		until, to := time.Now().Add(sliceTime), end()
		for ; *next < to; *next++ {
			if !visit(*next) {
				return false
			}
			if *next%16 == 0 && time.Now().After(until) {
				*next++
				return true
			}
		}
		return false
	}
}
