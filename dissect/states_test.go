package dissect_test

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/transaction"
)

// No capture makes a transaction enter a state that may not follow its own: every test of this
// package fails if one does.
func init() {
	transaction.OnIllegalTransition = func(id int64) {
		panic(fmt.Sprintf("transaction %d was to enter a state that may not follow its own", id))
	}
}
