package scrub

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/extract"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// These tests read scrubbed captures with tshark and with other commands.

// tshark returns the output of tshark for a capture.
func tshark(t *testing.T, path string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed; on Debian: apt-get install tshark")
	}
	out, err := exec.Command(program, append([]string{"-r", path, "-T", "fields"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// write writes frames to a file and returns its path.
func write(t *testing.T, name string, frames []capture.Frame) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, testkit.Pcapng(frames, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asTCP writes the RPCs of frames as if TCP had carried them, and returns the path of
// the file.
func asTCP(t *testing.T, frames []capture.Frame) (path string) {
	t.Helper()
	messages, err := os.CreateTemp(t.TempDir(), "messages")
	if err != nil {
		t.Fatal(err)
	}
	defer messages.Close()
	e := export.NewRPCTCP(messages)
	dissected(t, frames, e.Handler(), true)
	out, err := os.Create(filepath.Join(t.TempDir(), "rpcs.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := e.Write(out, "test"); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

// TestTshark verifies that tshark decodes the same frames and no more malformed ones,
// and that the scrubbed file contains no names, handles, machine names and addresses
// that tshark finds in the original.
func TestTshark(t *testing.T) {
	var paths []string
	for _, name := range []string{"rocev2-nfs3", "iwarp-nfs41", "lab-krb5", "rocev2-ipv6-nfs42", "derived-ib-callback41", "lab-iwarpcallback41", "rocev2-data42"} {
		paths = append(paths, "../../../testdata/captures/"+filesOf(t, name))
	}
	for _, path := range testkit.Short(t, paths) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			frames, _ := testkit.Frames(t, path)
			out, _ := scrubbed(t, frames, secret)
			before, after := write(t, "before.pcapng", frames), write(t, "after.pcapng", out)
			shape := fields(
				"frame.len", "frame.cap_len", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp", "tcp.seq_raw", "tcp.len",
				"infiniband.cm.req.serviceid", "rpcordma.xid", "rpcordma.rdma_handle", "ip.checksum.status", "_ws.malformed",
			)
			shape = append(shape, "-o", "ip.check_checksum:TRUE")
			want, got := strings.Split(tshark(t, before, shape...), "\n"), strings.Split(tshark(t, after, shape...), "\n")
			if len(got) != len(want) {
				t.Fatalf("%d frames, there were %d", len(got), len(want))
			}
			for i := range want {
				// A token of Kerberos is replaced whole, and a pseudonym is no ASN.1.
				got[i] = strings.TrimSuffix(got[i], "[Malformed Packet: GSS-API]|_ws.malformed")
				if got[i] != want[i] {
					t.Fatalf("frame %d: %q, it was %q", i+1, got[i], want[i])
				}
			}
			secrets := map[string]string{}
			for _, s := range listed(tshark(t, asTCP(t, frames), fields("nfs.name", "nfs.symlink.to", "nfs.readlink.data", "rpc.auth.machinename", "nfs.fattr4_owner")...)) {
				for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '@' }) {
					if len(word) >= 4 {
						secrets[word] = "name"
					}
				}
			}
			for _, s := range listed(tshark(t, asTCP(t, frames), fields("nfs.fhandle")...)) {
				if raw, err := hex.DecodeString(strings.ReplaceAll(s, ":", "")); err == nil && len(raw) >= 4 {
					secrets[string(raw)] = "file handle"
				}
			}
			for _, s := range listed(tshark(t, before, fields("ip.addr", "ipv6.addr", "infiniband.grh.sgid")...)) {
				a, err := netip.ParseAddr(s)
				if err == nil && !a.IsMulticast() && !a.IsUnspecified() && !a.IsLoopback() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
					secrets[s], secrets[string(a.AsSlice())] = "address", "address "+s
				}
			}
			if len(secrets) < 4 {
				t.Fatalf("tshark finds %d names", len(secrets))
			}
			noneOf(t, secrets, out)
		})
	}
}

// fields returns the arguments of tshark that print fields.
func fields(names ...string) (args []string) {
	for _, name := range names {
		args = append(args, "-e", name)
	}
	return append(args, "-E", "occurrence=a", "-E", "aggregator=|")
}

// listed returns the values in the output of tshark.
func listed(out string) []string {
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' || r == '\t' || r == '|' })
}

// filesOf returns the name of the file of a capture.
func filesOf(t *testing.T, name string) string {
	t.Helper()
	found, _ := filepath.Glob("../../../testdata/captures/" + name + ".pcap*")
	if len(found) != 1 {
		t.Fatalf("%d files are called %s, want one: %q", len(found), name, found)
	}
	return filepath.Base(found[0])
}

// TestExtract verifies that as many files with the same sizes and path lengths can be
// extracted from a scrubbed capture.
func TestExtract(t *testing.T) {
	for _, name := range []string{"rocev2-data42", "lab-iwarpdata3", "rocev2-nfs3", "lab-inline16", "rocev2-long42"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frames, _ := testkit.Frames(t, "../../../testdata/captures/"+filesOf(t, name))
			out, _ := scrubbed(t, frames, secret)
			before, after := extracted(t, frames), extracted(t, out)
			if len(before) == 0 || !slices.Equal(before, after) {
				t.Errorf("%d files:\n%s\nthere were %d:\n%s", len(after), strings.Join(after, "\n"), len(before), strings.Join(before, "\n"))
			}
		})
	}
}

// extracted returns a line for each file in frames: its size and the lengths of the
// elements of its path.
func extracted(t *testing.T, frames []capture.Frame) (files []string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	e, err := extract.New(root)
	if err != nil {
		t.Fatal(err)
	}
	dissected(t, frames, e.Handler(), true)
	if err := e.Finish(func(*extract.File) {}); err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(dir, path)
		var lengths []int
		for _, part := range strings.Split(rel, string(filepath.Separator)) {
			lengths = append(lengths, len(part))
		}
		files = append(files, fmt.Sprint(info.Size(), " ", lengths))
		return nil
	})
	slices.Sort(files)
	return files
}
