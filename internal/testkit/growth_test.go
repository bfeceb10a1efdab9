package testkit

import (
	"fmt"
	"strings"
	"testing"
)

// noting is a test that keeps what it reports.
type noting struct {
	testing.TB
	problems []string
}

// Errorf keeps an error.
func (n *noting) Errorf(format string, args ...any) {
	n.problems = append(n.problems, fmt.Sprintf(format, args...))
}

// Helper does nothing.
func (n *noting) Helper() {}

// TestProportional: quadratic work is found, and linear work is not reported.
func TestProportional(t *testing.T) {
	sum := 0
	linear := func(n int) func() {
		return func() {
			for i := range n * 1000 {
				sum += i
			}
		}
	}
	quadratic := func(n int) func() {
		return func() {
			for i := range n * n {
				sum += i
			}
		}
	}
	for name, test := range map[string]struct {
		prepare func(int) func()
		want    int
	}{"linear": {linear, 0}, "quadratic": {quadratic, 1}} {
		found := &noting{TB: t}
		Proportional(found, 2000, test.prepare)
		if len(found.problems) != test.want {
			t.Errorf("%s work has %d problems, want %d: %s", name, len(found.problems), test.want, strings.Join(found.problems, "; "))
		}
	}
}
