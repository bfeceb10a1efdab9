package record_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestState: a connection that has ended is not open, though nothing closed it.
func TestState(t *testing.T) {
	for want, c := range map[string]record.Connection{
		"open":       {},
		"disconnect": {Ended: record.Some(record.Ended{How: record.EndDisconnect})},
		"silence":    {Ended: record.Some(record.Ended{How: record.EndSilence})},
	} {
		if got := c.State(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
