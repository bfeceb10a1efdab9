package nfs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/nfs"
)

// TestNames: each name of the tables is listed once, with all its kinds and operations.
func TestNames(t *testing.T) {
	names := map[string]nfs.Named{}
	for _, n := range nfs.Names() {
		if _, twice := names[n.Name]; twice || n.Name == "" || len(n.Kinds) == 0 || len(n.Of) == 0 {
			t.Errorf("the name %q is listed twice, or without kinds (%v) or operations (%v)", n.Name, n.Kinds, n.Of)
		}
		names[n.Name] = n
	}
	for name, want := range map[string]string{
		"offset":       "[uint] 29 of ALLOCATE CANCEL CANCEL_MSG CB_LAYOUTRECALL",
		"sessionid":    "[session] 5 of BIND_CONN_TO_SESSION CB_SEQUENCE CREATE_SESSION DESTROY_SESSION",
		"cinfo":        "[group] 6 of CREATE LINK OPEN REMOVE",
		"owner":        "[string opaque group] 25 of CANCEL CANCEL_MSG CB_NOTIFY_LOCK DUMP",
		"minorversion": "[uint] 2 of CB_COMPOUND COMPOUND",
		"entries":      "[list group] 4 of GETADDRLIST READDIR READDIRPLUS attributes",
	} {
		n := names[name]
		if got := fmt.Sprintf("%v %d of %s", n.Kinds, len(n.Of), strings.Join(n.Of[:min(len(n.Of), 4)], " ")); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if words := names["committed"].Words; !slices.Equal(words, []string{"DATA_SYNC", "DATA_SYNC4", "FILE_SYNC", "FILE_SYNC4", "UNSTABLE", "UNSTABLE4"}) {
		t.Errorf("committed is one of %q", words)
	}
	for words, want := range map[string][]string{"NFS3ERR_JUKEBOX": nfs.StatusWords(3), "NFS4ERR_DELAY": nfs.StatusWords(4), "MNT3ERR_ACCES": nfs.MountStatusWords(), "CB_RECALL": nfs.OperationWords()} {
		if !slices.Contains(want, words) {
			t.Errorf("no %s in %q", words, want)
		}
	}
}
