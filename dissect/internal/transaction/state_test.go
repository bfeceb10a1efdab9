package transaction

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestStates: a transaction enters only the states that may follow its own, and every life of a
// transaction leads to emitted.
func TestStates(t *testing.T) {
	refused := 0
	defer func(before func(int64)) { OnIllegalTransition = before }(OnIllegalTransition)
	OnIllegalTransition = func(int64) { refused++ }
	for from := range state(states) {
		for to := range state(states) {
			legal := false
			for _, next := range transitions[from] {
				legal = legal || next == to
			}
			x := txn{state: from}
			before := refused
			x.enter(to)
			if want := map[bool]state{true: to, false: from}[legal]; x.state != want || (refused > before) == legal {
				t.Errorf("from %d to %d: the state is %d, %d illegal transitions", from, to, x.state, refused-before)
			}
		}
	}
	for _, path := range [][]state{
		{outstanding, unanswered, emitted},
		{outstanding, awaitingDelivery, accepted, emitted},
		{outstanding, awaitingDelivery, retracted, emitted},
		{outstanding, awaitingDelivery, accepted, lost, emitted},
		{awaitingDelivery, emitted}, // a Reply without Call
	} {
		var x txn
		for _, to := range path {
			if x.enter(to); x.state != to {
				t.Errorf("%v: state %d is not entered", path, to)
			}
		}
	}
}

// TestRefute: connections are counted by the place that they refute, and by how it was known.
func TestRefute(t *testing.T) {
	var table Table
	client, server := record.Some(record.AtClient), record.Some(record.AtServer)
	for _, f := range []record.PointFacts{
		{Refuted: client, How: record.Some("option")}, {Refuted: client, How: record.Some("interface")}, {Refuted: server, How: record.Some("option")}, {Refuted: client, How: record.Some("interface")},
	} {
		table.refute(f)
	}
	want := []record.RefutedPosition{{Place: record.AtClient, How: "option", Connections: 1}, {Place: record.AtClient, How: "interface", Connections: 2}, {Place: record.AtServer, How: "option", Connections: 1}}
	if !slices.Equal(table.Refuted, want) {
		t.Errorf("%+v, want %+v", table.Refuted, want)
	}
}
