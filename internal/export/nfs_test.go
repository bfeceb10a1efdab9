package export_test

import (
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// sameInTshark lists values of arguments and results that tshark has as fields.
// tshark leaves out the stateid in the results of CLOSE, which has no meaning (RFC
// 7530 s.16.2.5, RFC 8881 s.18.2.4), and has another field for the counts of COPY
// and CLONE.
var sameInTshark = []struct {
	name   string
	fields []string
	text   func(op string, v *nfs.Value) (string, bool)
}{
	{"offset", []string{"nfs.offset3", "nfs.offset4"}, func(_ string, v *nfs.Value) (string, bool) {
		return v.String(), slices.Contains([]string{"offset", "src_offset", "dst_offset", "last_write_offset"}, v.Name)
	}},
	{"count", []string{"nfs.count3", "nfs.count4"}, func(op string, v *nfs.Value) (string, bool) {
		return v.String(), v.Name == "count" && op != "COPY" && op != "CLONE"
	}},
	{"slotid", []string{"nfs.slotid"}, func(_ string, v *nfs.Value) (string, bool) { return v.String(), v.Name == "slotid" }},
	{"name", []string{"nfs.name", "nfs.pathname.component", "nfs.readdir.entry3.name", "nfs.readdirplus.entry.name"}, func(_ string, v *nfs.Value) (string, bool) {
		return string(v.Bytes), v.Name == "name" || v.Name == "to_name"
	}},
	{"session", []string{"nfs.session_id4"}, func(_ string, v *nfs.Value) (string, bool) { return v.String(), v.Kind == nfs.Session }},
	{"stateid", []string{"nfs.stateid.other"}, func(op string, v *nfs.Value) (string, bool) {
		return hex.EncodeToString(v.Bytes[min(4, len(v.Bytes)):]), isStateid(op, v)
	}},
	{"seqid of a stateid", []string{"nfs.stateid.seqid"}, func(op string, v *nfs.Value) (string, bool) {
		return strconv.FormatUint(v.Uint, 10), isStateid(op, v)
	}},
	{"file handle", []string{"nfs.fhandle"}, func(_ string, v *nfs.Value) (string, bool) { return v.String(), v.Kind == nfs.Handle && v.Uint > 0 }},
	{"stable", []string{"nfs.stable_how4", "nfs.write.stable", "nfs.write.committed"}, func(_ string, v *nfs.Value) (string, bool) {
		return strconv.FormatUint(v.Uint, 10), v.Name == "stable" || v.Name == "committed"
	}},
}

// isStateid reports whether a value is a stateid that tshark shows.
func isStateid(op string, v *nfs.Value) bool { return v.Kind == nfs.Stateid && op != closed }

// closed is the name of CLOSE in a Reply.
const closed = "CLOSE of a Reply"

// inTshark returns the values of a message: a list for each entry of sameInTshark,
// and a last list with the numbers of its operations.
func inTshark(m *nfs.Message) []string {
	lists := make([][]string, len(sameInTshark)+1)
	for op := range m.Ops {
		if nfs.IsCompound(m.Program, m.Version, m.Procedure) {
			lists[len(sameInTshark)] = append(lists[len(sameInTshark)], strconv.Itoa(int(m.Ops[op].Number)))
		}
		name := m.Ops[op].Name
		if name == "CLOSE" && m.Ops[op].HasStatus {
			name = closed
		}
		for i := range m.In(op) {
			for n, s := range sameInTshark {
				if text, is := s.text(name, &m.In(op)[i]); is {
					lists[n] = append(lists[n], text)
				}
			}
		}
	}
	joined := make([]string, len(lists))
	for n := range lists {
		slices.Sort(lists[n])
		joined[n] = strings.Join(lists[n], ";")
	}
	return joined
}

// TestNFSTshark verifies that tshark finds the same operations, offsets, counts,
// slots, names, sessions, stateids and file handles in each Call and Reply.
func TestNFSTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	paths, _ := filepath.Glob(captures + "*.zst")
	for _, path := range testkit.Short(t, paths) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".zst"), func(t *testing.T) {
			t.Parallel()
			out, _, all := rpcTCP(t, testkit.Open(t, path))
			want := map[string][]string{} // for each Call and Reply, a list for each entry of sameInTshark
			var m nfs.Message
			note := func(x *rpc, kind string) {
				want[fmt.Sprint(x.record.XID, " ", x.record.Connection, " ", x.record.Direction, " ", kind)] = inTshark(&m)
			}
			for i := range all {
				x := &all[i]
				var c, r oncrpc.Header
				if x.record.Call == nil || x.record.Status != record.Complete || c.Decode(x.call) != nil || r.Decode(x.reply) != nil || c.Program != nfs.ProgramNFS ||
					x.record.Call.MissingBytes.Or(1) > 0 || x.record.Reply.MissingBytes.Or(1) > 0 {
					continue
				}
				if _, secret := c.Credential.GSS(); secret {
					continue
				}
				m.Call(c.Program, c.Version, c.Procedure, nfs.NewStream(x.call[c.Length:], nil))
				note(x, "0")
				if r.Succeeded() {
					m.Reply(c.Program, c.Version, c.Procedure, nfs.NewStream(x.reply[r.Length:], nil))
					note(x, "1")
				}
			}
			args := []string{"-r", out, "-T", "fields", "-Y", "nfs || frame.comment", "-E", "occurrence=a", "-E", "aggregator=;"}
			columns := []string{"tcp.stream", "frame.comment", "rpc.msgtyp", "rpc.xid", "tcp.srcport"}
			for _, s := range sameInTshark {
				columns = append(columns, s.fields...)
			}
			columns = append(columns, "nfs.opcode")
			for _, c := range columns {
				args = append(args, "-e", c)
			}
			shown, err := exec.Command(tshark, args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			streams, compared := map[string]string{}, 0
			for line := range strings.Lines(string(shown)) {
				row := strings.Split(strings.TrimRight(line, "\n"), "\t")
				if id, is := strings.CutPrefix(row[1], "connection "); is {
					streams[row[0]], _, _ = strings.Cut(id, " ")
				}
				if row[2] != "0" && row[2] != "1" { // the packet has no RPC message, or several
					continue
				}
				direction := "forward"
				if (row[4] == "2049") == (row[2] == "0") {
					direction = "backward"
				}
				lists := want[row[3]+" "+streams[row[0]]+" "+direction+" "+row[2]]
				if lists == nil {
					continue
				}
				compared++
				at := 5
				for i := range lists {
					name, fields := "operation", []string{"nfs.opcode"}
					if i < len(sameInTshark) {
						name, fields = sameInTshark[i].name, sameInTshark[i].fields
					}
					var list []string
					for range fields {
						if row[at] != "" {
							list = append(list, strings.Split(row[at], ";")...)
						}
						at++
					}
					slices.Sort(list)
					if got := strings.Join(list, ";"); got != lists[i] {
						t.Errorf("%s %s of message type %s: %s\n  tshark %s\n    ours %s", row[3], direction, row[2], name, got, lists[i])
					}
				}
			}
			if compared == 0 && len(want) > 0 {
				t.Error("nothing was compared")
			}
			t.Logf("%d messages compared", compared)
		})
	}
}
