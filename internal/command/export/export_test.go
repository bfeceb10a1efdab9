package export

import (
	"maps"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/internal/command/flags"
)

// TestFormats: each format that --format lists has an exporter, and there are no others.
func TestFormats(t *testing.T) {
	if have, want := slices.Sorted(maps.Keys(exporters)), slices.Sorted(slices.Values(flags.FormatNames())); !slices.Equal(have, want) {
		t.Errorf("there are exporters for %q, and --format lists %q", have, want)
	}
}
