package record_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestState: a connection that ended is not open, even if no packet closed it.
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
