package dissect_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestFilesTshark compares the names of files with those that tshark learns from the same RPCs. tshark
// also learns from MOUNT over TCP that the root of a mount is /export, keeps the first name of a file
// with several links, and knows fewer names of NFSv4.
func TestFilesTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	for _, name := range testkit.Few([]string{"rocev2-nfs3", "rocev2-nfs41", "rocev2-data42", "iwarp-nfs41", "lab-nfs40"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := filepath.Join(t.TempDir(), "capture")
			if err := os.WriteFile(plain, testkit.Decompressed(t, captures+name+".pcap.zst"), 0o600); err != nil {
				t.Fatal(err)
			}
			compareNames(t, tshark, plain)
		})
	}
}

func compareNames(t *testing.T, tshark, capture string) {
	out, err := exec.Command(tshark, "-r", capture, "-2", "-o", "nfs.file_name_snooping:TRUE", "-o", "nfs.file_full_name_snooping:TRUE",
		"-Y", "nfs && rpc.msgtyp==0", "-T", "fields", "-e", "rpc.xid", "-e", "nfs.name", "-e", "nfs.full_name").Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		xid, _, _ := strings.Cut(fields[0], ",")
		names := append(strings.Split(fields[1], ","), path.Base(fields[2]))
		theirs[xid] = slices.DeleteFunc(names, func(n string) bool { return n == "" || n == "." || strings.HasSuffix(n, ":/export") || n == "export" })
	}
	same, linked := 0, ""
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		ours, xid := path.Base(r.File.Or("")), r.XID.String()
		names := theirs[xid]
		if r.Operation.Or("") == "LINK" {
			linked = ours
		}
		switch {
		case r.Direction != record.Forward || len(names) == 0:
		case slices.Contains(names, ours):
			same++
		case ours == linked:
		default:
			t.Errorf("%s %s acts on %s, tshark says %v", xid, r.Operation.Or(""), r.FileText(), names)
		}
		return nil
	}}, dissect.Options{Files: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, capture)); err != nil {
		t.Fatal(err)
	}
	if same < 60 {
		t.Errorf("only %d names were compared", same)
	}
}
