package transaction_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/internal/transaction"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth/cases"
)

const captures = "../../../testdata/captures/"

// No capture makes a transaction enter a state that may not follow its own, and none has events of a connection after its
// end: every test of this package fails if one does.
func init() {
	transaction.OnIllegalTransition = func(id int64) {
		panic(fmt.Sprintf("transaction %d was to enter a state that may not follow its own", id))
	}
	rdma.OnLateEvent = func() { panic("an event follows the end of its connection") }
}

var update = flag.Bool("update", false, "rewrite testdata/stories.json")

// TestStories: every value of the records of each case, by its rule, and of small captures is what it was. TestCases of package dissect
// says which findings are right, and scripts/same shows what the values of two builds are.
func TestStories(t *testing.T) {
	told := map[string]map[string]string{}
	all := map[string]*look.Seen{}
	for _, c := range cases.All() {
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			for _, broken := range []bool{true, false} {
				if !c.On(transport) {
					continue
				}
				seen := look.At(c.Wire(transport, broken))
				if all[c.Rule] == nil {
					all[c.Rule] = &look.Seen{}
				}
				s := all[c.Rule]
				s.Connections = append(s.Connections, seen.Connections...)
				s.Transactions = append(s.Transactions, seen.Transactions...)
				s.Findings = append(s.Findings, seen.Findings...)
				s.Packets = append(s.Packets, seen.Packets...)
				s.Tasks = append(s.Tasks, seen.Tasks...)
			}
		}
	}
	for name, s := range all {
		told[name] = s.Digests()
	}
	for _, name := range []string{
		"captures/rocev2-errors", "captures/lab-krb5", "captures/lab-nfs40", "captures/lab-iwarpcallback41", "captures/rocev2-storm41", "other/rocev2-reboot41",
		"captures/derived-snaplen128-callback41", "captures/lab-slowserver41", "captures/lab-inline16", "captures/rocev2-mixed", "other/lab-tcprecall40",
	} {
		told[name] = look.Tell(t, name, dissect.Options{}, 0)
		told[name+", damaged"] = look.Tell(t, name, dissect.Options{Rebuild: true, Files: true}, 1, "late", "drop", "duplicate")
	}
	for _, name := range []string{"captures/ends-stormall42-client captures/ends-stormall42-server", "ends/iw-twosided-client ends/iw-twosided-server"} {
		told[name] = look.Tell(t, name, dissect.Options{Files: true}, 0)
	}
	look.Compare(t, "testdata/stories.json", *update, told)
}
