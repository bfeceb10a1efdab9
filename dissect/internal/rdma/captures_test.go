package rdma_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

const captures = "../../../testdata/captures/"

// open opens a capture of testdata.
func open(t testing.TB, name string) *capture.File {
	t.Helper()
	return testkit.Open(t, captures+name)
}
