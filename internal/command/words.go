package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// List joins words with commas, and the last two with a conjunction.
func List(words []string, conjunction string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

// OneOf returns an error if the value of a flag is not one of a few.
func OneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	noun := map[string]string{"-o": "format", "--format": "format", "--view": "view", "--fail-on": "severity"}[flag]
	return fmt.Errorf("%s %s: unknown %s (want %s)", flag, value, cmp.Or(noun, "value"), List(values, "or"))
}
