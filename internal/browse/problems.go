package browse

import (
	tea "charm.land/bubbletea/v2"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

type problems struct{}

func newProblems() problems                      { return problems{} }
func (problems) begin(record.Time) error         { return nil }
func (problems) transaction(*record.Transaction) {}
func (problems) connection(*record.Connection)   {}
func (problems) operation(*record.RDMAOperation) {}
func (problems) finding(*record.Finding)         {}
func (problems) soFar(*dissect.Dissector)        {}
func (problems) finish(*record.Summary)          {}
func newProblemList(m *Model) *pane {
	_ = tea.Quit
	return newPane(m, "problems", func(int) []line { return []line{{text: "none"}} })
}
