package synth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/synth"
)

// dissected is what the dissector makes of a wire: a line for each transaction,
// and the rules that were broken.
func dissected(w *synth.Wire) (transactions, rules []string, s *dissect.Summary) {
	d := dissect.New(dissect.Handler{
		Transaction: func(t *dissect.Transaction) {
			line := fmt.Sprintf("%v %s %s", t.XID, t.Direction, t.Status)
			if t.Program != nil {
				line += " " + t.ProgramProcedure()
			}
			for _, o := range t.Operations {
				line += " " + o
			}
			if t.NFSStatus != nil {
				line += " " + *t.NFSStatus
			}
			if t.Call != nil && t.Reply != nil {
				line += fmt.Sprintf(" %s %d %s %d", t.Call.Form, *t.Call.PayloadBytes, t.Reply.Form, *t.Reply.PayloadBytes)
			}
			for list, segment := range t.Segments() {
				line += fmt.Sprintf(" %s=%d", list, segment.MovedBytes)
			}
			if t.Invalidation != nil {
				line += fmt.Sprintf(" invalidates %v", t.Invalidation.Handle)
			}
			transactions = append(transactions, line)
		},
		Finding: func(f *dissect.Finding) { rules = append(rules, f.Rule+": "+f.Message) },
	}, dissect.Options{})
	for i, f := range w.Frames {
		d.Frame(&capture.Frame{Number: int64(i + 1), Time: f.Time, LinkType: capture.LinkType(f.LinkType), Length: f.Length, Data: f.Data})
	}
	s = d.Finish()
	slices.Sort(transactions)
	return transactions, rules, s
}

// TestNothingIsWrong: the dissector sees in healthy connections what was put
// there, and nothing to complain of, over either transport.
func TestNothingIsWrong(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			healthy(kind.open(w, kind.options))
			transactions, rules, s := dissected(w)
			if got, want := strings.Join(transactions, "\n"), strings.Join(expected, "\n"); got != want {
				t.Errorf("transactions\n%s\nwant\n%s", got, want)
			}
			if len(rules) > 0 || s.Lost != 0 || s.ICRCBad != 0 || s.Malformed != 0 || s.Other != kind.other {
				t.Errorf("findings %q, %d lost, %d bad CRCs, %d malformed, %d others", rules, s.Lost, s.ICRCBad, s.Malformed, s.Other)
			}
		})
	}
}

var expected = []string{"0x00000001 forward complete NFS3 NULL short 40 short 24"}
