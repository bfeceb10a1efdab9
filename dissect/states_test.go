package dissect_test

import (
	"fmt"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/transaction"
)

// No capture makes a transaction enter a state that may not follow its own, and none has events of a connection after its
// end: every test of this package fails if one does.
func init() {
	transaction.OnIllegalTransition = func(id int64) {
		panic(fmt.Sprintf("transaction %d was to enter a state that may not follow its own", id))
	}
	rdma.OnLateEvent = func() { panic("an event follows the end of its connection") }
}
