package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// Problem writes a problem.
func Problem(w io.Writer, p *record.Problem) error {
	var places []string
	for _, place := range p.Places {
		places = append(places, string(place))
	}
	_, err := fmt.Fprintf(w, "%d %-5s  %s: %s\n", p.Rank, map[record.Severity]string{record.Error: "ERROR", record.Warning: "WARN", record.Note: "note"}[p.Severity],
		strings.Join(places, " or "), clean(p.Headline))
	if err == nil && p.Effect != "" {
		_, err = fmt.Fprintf(w, "         %s\n", clean(p.Effect))
	}
	return err
}
