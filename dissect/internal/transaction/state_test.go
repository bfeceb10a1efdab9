package transaction

import "testing"

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
