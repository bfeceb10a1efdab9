package record_test

import (
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
)

func TestTimeText(t *testing.T) {
	for _, ns := range []int64{0, 1, -1, 1795236900197912000, 1795236900999999999, -86400e9 - 1, 4102444800e9, 951782400e9} {
		want := time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000000Z")
		if got := record.Time(ns).String(); got != want {
			t.Errorf("%d is %s, want %s", ns, got, want)
		}
	}
}
