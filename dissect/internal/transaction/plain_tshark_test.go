package transaction_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// TestPlainTshark compares each RPC over TCP and UDP with tshark: its XID, program, version and procedure, the packets
// that complete its Call and its Reply, and its response time.
func TestPlainTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	total := 0
	paths, err := filepath.Glob(captures + "*.zst")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, name := range testkit.Few(paths) {
		plain := filepath.Join(t.TempDir(), "capture")
		if err := os.WriteFile(plain, testkit.Decompressed(t, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if testkit.All() || len(ownPlain(t, plain)) > 0 { // tshark takes its time
			total += comparePlain(t, tshark, name, plain)
		}
	}
	for _, c := range testkit.Few(plainStreams) {
		if c.tshark != "" {
			continue
		}
		w := synth.New()
		c.play(w, overTCP(w))
		var b bytes.Buffer
		if err := w.WritePcap(&b); err != nil {
			t.Fatal(err)
		}
		plain := filepath.Join(t.TempDir(), "capture")
		if err := os.WriteFile(plain, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		total += comparePlain(t, tshark, c.name, plain)
	}
	if total < 15 || testkit.All() && total < 150 {
		t.Errorf("only %d messages compared", total)
	}
}

// comparePlain compares a capture with tshark, and returns the number of messages.
func comparePlain(t *testing.T, tshark, name, path string) int {
	t.Helper()
	theirs, ours := tsharkPlain(t, tshark, path), ownPlain(t, path)
	for _, line := range slices.Sorted(maps.Keys(theirs)) {
		if ours[line] != theirs[line] {
			t.Errorf("%s: tshark has %d times %s, rdmadump %d times", name, theirs[line], line, ours[line])
		}
	}
	n := 0
	for line, times := range ours {
		if n += times; theirs[line] == 0 {
			t.Errorf("%s: only rdmadump has %s", name, line)
		}
	}
	return n
}

// tsharkPlain returns the messages that tshark finds: a line for each, with the number of times that it has it.
// It does not count retransmissions by RPC.
func tsharkPlain(t *testing.T, tshark, path string) map[string]int {
	t.Helper()
	fields := []string{"frame.number", "rpc.xid", "rpc.msgtyp", "rpc.program", "rpc.programversion", "rpc.procedure", "rpc.time", "rpc.call.dup", "rpc.reply.dup"}
	args := []string{"-r", path, "-2", "-Y", "rpc && !infiniband && !iwarp_ddp", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command(tshark, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && !bytes.Contains(failed.Stderr, []byte("cut short")) && !bytes.Contains(failed.Stderr, []byte("unsupported")) {
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	lines := map[string]int{}
	for _, row := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		if row == "" {
			continue
		}
		column := strings.Split(row, "\t")
		column = append(column, make([]string, len(fields)-len(column))...)
		list := func(i int) []string { return strings.Split(column[i], ",") }
		if column[1] == "" { // a segment that continues a message
			continue
		}
		if column[7]+column[8] != "" && len(list(1)) == 1 {
			continue
		}
		programs, versions, procedures, took := list(3), list(4), list(5), list(6)
		timed := 0
		for i, xid := range list(1) {
			kind := list(2)[i]
			line := fmt.Sprintf("frame %s xid %s type %s program %s.%s.%s", column[0], xid, kind, at(programs, i), versions[i*len(versions)/len(list(1))], at(procedures, i))
			if kind == "1" {
				line += " time " + nanoseconds(at(took, timed))
				timed++
			}
			lines[line]++
		}
	}
	return lines
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// nanoseconds converts seconds with nine digits.
func nanoseconds(s string) string {
	whole, fraction, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole+fraction, 10, 64)
	if err != nil {
		return "unknown"
	}
	return strconv.FormatInt(n, 10)
}

// ownPlain returns the same lines for the transactions of a capture.
func ownPlain(t *testing.T, path string) map[string]int {
	t.Helper()
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := map[string]int{}
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		if r.Transport != "TCP" && r.Transport != "UDP" {
			return nil
		}
		program := ".."
		if number, known := r.Program.Get(); known {
			program = fmt.Sprintf("%d.%d.%d", number, r.Version.Or(0), r.Procedure.Or(0))
		}
		head := func(m *record.Message, kind int) string {
			return fmt.Sprintf("frame %d xid 0x%08x type %d program %s", m.LastPacket, uint32(r.XID), kind, program)
		}
		if r.Call != nil {
			lines[head(r.Call, 0)]++
		}
		if r.Reply != nil {
			took := "unknown"
			if r.Call != nil {
				took = strconv.FormatInt(int64(r.Reply.LastTime-r.Call.LastTime), 10)
			}
			lines[head(r.Reply, 1)+" time "+took]++
		}
		return nil
	}}, dissect.Options{})
	d.Run(context.Background(), f) // a capture may be truncated
	return lines
}
