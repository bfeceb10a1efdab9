package synth_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// inline calls every NFS helper, without chunks.
func inline(c *synth.Conn) {
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	c.RPC(synth.Readlink3(), synth.Readlink3Reply("target"))
	c.RPC(synth.Read3(0, 777), synth.Read3Reply(data(777)))
	c.RPC(synth.Read3(0, 777), synth.Failed(5, 0))
	c.RPC(synth.Write3(0, data(777)), synth.Write3Reply(777))
	c.RPC(synth.Symlink3("name", "target"), synth.Symlink3Reply())
	c.RPC(synth.Readdir3(4096), synth.Readdir3Reply("one", "two"))
	c.RPC(synth.Readdirplus3(4096), synth.Readdirplus3Reply("one", "two"))
	c.RPC(synth.Readlink2(), synth.Readlink2Reply("target"))
	c.RPC(synth.Read2(0, 777), synth.Read2Reply(data(777)))
	c.RPC(synth.Write2(0, data(777)), synth.Write2Reply())
	c.RPC(synth.Symlink2("name", "target"), synth.Symlink2Reply())
	c.RPC(synth.Call{Version: 9, Cred: synth.AuthSys(1, 2)}, synth.Reply{Accept: 2, Results: synth.XDR{}.Word(2, 4)})
	c.RPC(synth.Null(), synth.Reply{Deny: []uint32{1, 5}})
	c.RPC(
		synth.Compound(synth.OpSequence(1), synth.OpCreateSession(synth.ConnBackChannel), synth.OpBindConn(7)),
		synth.CompoundReply(synth.ResSequence(1), synth.ResCreateSession(synth.ConnBackChannel), synth.ResBindConn(3)))
	c.RPC(
		synth.Compound4(2, synth.OpPutFH(), synth.OpPutRootFH(), synth.OpLookup("name"), synth.OpGetAttr(), synth.OpRead(0, 99),
			synth.OpWrite(0, data(99)), synth.OpReadLink(), synth.OpSymlink("name", "target"), synth.OpReadDir(4096), synth.OpReadPlus(0, 99)),
		synth.CompoundReply(synth.ResPutFH(), synth.ResPutRootFH(), synth.ResLookup(), synth.ResGetAttr(), synth.ResRead(data(99)),
			synth.ResWrite(99), synth.ResReadLink("target"), synth.ResCreate(), synth.ResReadDir("one", "two"), synth.ResReadPlus(0, data(99))))
	c.RPC(synth.Compound(synth.OpPutFH()), synth.CompoundFailed(10001, synth.ResFailed(22, 10001)))
	c.Server.RPC(synth.CBNull(), synth.NullReply())
	c.Server.RPC(synth.CBCompound(synth.OpCBSequence(1), synth.OpCBRecall()), synth.CompoundReply(synth.ResCBSequence(1), synth.ResCBRecall()))
	c.Disconnect(c.Server)
}

// TestTshark compares healthy connections with tshark: every checksum is correct (tshark
// does not check ICRCs), Replies belong to their Calls, and nothing is malformed. The RPCs
// with chunks are excluded, because tshark 4.0 does not insert data from Write chunks, not
// even in real captures, and concatenates all Read chunks.
func TestTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	chunks := []string{"0x00000003", "0x00000006", "0x00000007", "0x0000000a"} // three READs or READLINKs, one Long Call
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			healthy(kind.open(w, kind.options))
			inline(kind.open(w, kind.options))
			path := filepath.Join(t.TempDir(), "synth.pcapng")
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.WritePcapng(file); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(tshark, "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
				"-T", "fields", "-E", "separator=|", "-e", "frame.number", "-e", "rpc.xid", "-e", "_ws.malformed", "-e", "_ws.expert.severity",
				"-e", "_ws.expert.message", "-e", "ip.checksum.status", "-e", "udp.checksum.status", "-e", "tcp.checksum.status", "-e", "rpc.repframe")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) != len(w.Frames) {
				t.Fatalf("tshark sees %d frames of %d", len(lines), len(w.Frames))
			}
			answered := 0
			for _, line := range lines {
				f := strings.Split(line, "|")
				if xid, _, _ := strings.Cut(f[1], ","); slices.Contains(chunks, xid) {
					continue
				}
				const severityError = "8388608"
				if f[2] != "" || strings.Contains(f[3], severityError) {
					t.Errorf("frame %s, XID %s: malformed %q, %s", f[0], f[1], f[2], f[4])
				}
				for _, status := range f[5:8] {
					if strings.Contains(status, "0") { // 0 is bad, 1 is good, 2 is not checked
						t.Errorf("frame %s: checksum is bad: %s", f[0], line)
					}
				}
				if f[8] != "" {
					answered++
				}
			}
			if answered != 28 {
				t.Errorf("%d Calls have a Reply", answered)
			}
		})
	}
}
