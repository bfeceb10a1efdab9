package transaction_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// v4 returns an operation of a COMPOUND; the words and strings are its arguments.
func v4(number uint32, arguments ...any) synth.XDR {
	return fields(synth.XDR{}.Word(number), arguments...)
}

// done returns the results of an operation that succeeded.
func done(number uint32, results ...any) synth.XDR {
	return fields(synth.XDR{}.Word(number, 0), results...)
}

func fields(x synth.XDR, values ...any) synth.XDR {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			x = x.Word(uint32(v))
		case string:
			x = x.String(v)
		case uint64:
			x = x.Hyper(v)
		}
	}
	return x
}

// v3 returns a Call of NFSv3, and v3Reply its Reply.
func v3(procedure uint32, arguments ...any) synth.Call {
	return synth.Call{Procedure: procedure, Args: fields(synth.XDR{}, arguments...)}
}

func v3Reply(results ...any) synth.Reply {
	return synth.Reply{Results: fields(synth.XDR{}, results...)}
}

// The numbers of operations and procedures.
const (
	opCreate, opGetFH, opLink, opLookup, opLookupP, opOpen, opPutFH, opPutRootFH = 6, 10, 11, 15, 16, 18, 22, 24
	opRead, opReadDir, opRemove, opRename, opRestoreFH, opSaveFH, opWrite        = 25, 26, 28, 29, 31, 32, 38

	lookup3, read3, write3, create3, mkdir3, remove3, rename3, link3, readdirplus3 = 3, 6, 7, 8, 9, 12, 14, 15, 17
)

// cinfo is a change_info4 that shows a change of the directory by one operation.
var cinfo = []any{1, uint64(1), uint64(2)}

// open4 returns an OPEN of a name that may create the file, and its results.
func open4(name string, create int, changed bool) (call, reply synth.XDR) {
	arguments := []any{0, 2, 0, uint64(1), "owner", create}
	if create == 1 {
		arguments = append(arguments, 0, 0, 0) // UNCHECKED4 without attributes
	}
	call = v4(opOpen, append(arguments, 0, name)...)
	after := uint64(5)
	if changed {
		after++
	}
	return call, done(opOpen, 1, 2, 3, 4, 1, uint64(5), after, 0, 0, 0)
}

// fileStep is an RPC, and the file, the old path, the handle and the uses that it must have.
type fileStep struct {
	name  string
	call  synth.Call
	reply synth.Reply
	want  string
}

// compound4 returns a step with a COMPOUND.
func compound4(name, want string, calls, replies []synth.XDR) fileStep {
	return fileStep{name, synth.Compound(calls...), synth.CompoundReply(replies...), want}
}

func list(x ...synth.XDR) []synth.XDR { return x }

// shown returns what a record says about files.
func shown(r *record.Transaction) string {
	var uses []string
	for _, u := range r.FileUses {
		if u.Change != "" || u.ReadBytes+u.WrittenBytes > 0 {
			uses = append(uses, fmt.Sprintf("%s %s %d/%d", u.Change, u.File, u.ReadBytes, u.WrittenBytes))
		}
	}
	return fmt.Sprintf("%s|%s|%s|%s", text(r.File), text(r.FileFrom), unhex(r.FileHandle.Or("")), strings.Join(uses, ", "))
}

func unhex(s string) string {
	b, _ := hex.DecodeString(s)
	return string(b)
}

// TestFiles4 verifies the files of COMPOUNDs: names are learned and forgotten, the current file
// handle is followed, and operations that failed change nothing.
func TestFiles4(t *testing.T) {
	openA, openedA := open4("a", 1, true)
	openB, openedB := open4("a", 1, false)
	root, rooted := v4(opPutRootFH), done(opPutRootFH)
	steps := []fileStep{
		compound4("the root", "/||ROOT|", list(root, v4(opGetFH)), list(rooted, done(opGetFH, "ROOT"))),
		compound4("a handle without a name", "null||H1|", list(v4(opPutFH, "H1"), v4(3, 1)), list(done(opPutFH), done(3, 1, 1))),
		compound4("a directory is created", "/dir||DIR|created /dir 0/0", list(v4(opPutFH, "ROOT"), v4(opCreate, 2, "dir", 0, 0), v4(opGetFH)),
			list(done(opPutFH), done(opCreate, append(cinfo, 0)...), done(opGetFH, "DIR"))),
		compound4("OPEN creates", "/dir/a||A|created /dir/a 0/0", list(v4(opPutFH, "DIR"), openA, v4(opGetFH)), list(done(opPutFH), openedA, done(opGetFH, "A"))),
		compound4("OPEN finds it", "/dir/a||A|", list(v4(opPutFH, "DIR"), openB, v4(opGetFH)), list(done(opPutFH), openedB, done(opGetFH, "A"))),
		compound4("WRITE", "/dir/a||A| /dir/a 0/5", list(v4(opPutFH, "A"), v4(opWrite, 1, 2, 3, 4, uint64(0), 2, "hello")), list(done(opPutFH), done(opWrite, 5, 2, uint64(1)))),
		compound4("READ", "/dir/a||A| /dir/a 3/0", list(v4(opPutFH, "A"), v4(opRead, 1, 2, 3, 4, uint64(0), 99)), list(done(opPutFH), done(opRead, 1, "hel"))),
		compound4("RENAME into the root", "/b|/dir/a|A|renamed /b 0/0", list(v4(opPutFH, "DIR"), v4(opSaveFH), v4(opPutFH, "ROOT"), v4(opRename, "a", "b")),
			list(done(opPutFH), done(opSaveFH), done(opPutFH), done(opRename, append(cinfo, cinfo...)...))),
		compound4("READ after RENAME", "/b||A| /b 3/0", list(v4(opPutFH, "A"), v4(opRead, 1, 2, 3, 4, uint64(0), 99)), list(done(opPutFH), done(opRead, 1, "hel"))),
		compound4("LINK", "/dir/c||A|", list(v4(opPutFH, "A"), v4(opSaveFH), v4(opPutFH, "DIR"), v4(opLink, "c")),
			list(done(opPutFH), done(opSaveFH), done(opPutFH), done(opLink, cinfo...))),
		compound4("REMOVE the old link", "/b||A|removed /b 0/0", list(v4(opPutFH, "ROOT"), v4(opRemove, "b")), list(done(opPutFH), done(opRemove, cinfo...))),
		compound4("the file has its new name", "/dir/c||A| /dir/c 1/0", list(v4(opPutFH, "A"), v4(opRead, 1, 2, 3, 4, uint64(0), 99)), list(done(opPutFH), done(opRead, 1, "h"))),
		compound4("a directory is renamed", "/new|/dir|DIR|renamed /new 0/0", list(v4(opPutFH, "ROOT"), v4(opSaveFH), v4(opRename, "dir", "new")),
			list(done(opPutFH), done(opSaveFH), done(opRename, append(cinfo, cinfo...)...))),
		compound4("the path of its file changes", "/new/c||A|", list(v4(opPutFH, "A"), v4(3, 1)), list(done(opPutFH), done(3, 1, 1))),
		{
			"REMOVE that fails", synth.Compound(v4(opPutFH, "DIR"), v4(opRemove, "c")),
			synth.CompoundFailed(13, done(opPutFH), synth.ResFailed(opRemove, 13)), "/new/c||A|",
		},
		{
			"LOOKUP that fails", synth.Compound(v4(opPutFH, "DIR"), v4(opLookup, "nothing"), v4(opGetFH)),
			synth.CompoundFailed(2, done(opPutFH), synth.ResFailed(opLookup, 2)), "/new/nothing|||",
		},
		{
			"RENAME that fails", synth.Compound(v4(opPutFH, "DIR"), v4(opSaveFH), v4(opPutFH, "ROOT"), v4(opRename, "c", "d")),
			synth.CompoundFailed(13, done(opPutFH), done(opSaveFH), done(opPutFH), synth.ResFailed(opRename, 13)), "/new/c||A|",
		},
		compound4("two LOOKUPs, LOOKUPP and RESTOREFH", "/new||DIR|", list(root, v4(opLookup, "new"), v4(opSaveFH), v4(opLookup, "c"), v4(opLookupP), v4(opRestoreFH), v4(opReadDir, uint64(0), uint64(0), 1, 1, 0)),
			list(rooted, done(opLookup), done(opSaveFH), done(opLookup), done(opLookupP), done(opRestoreFH), done(opReadDir, uint64(0), 0, 1))),
		compound4("READDIR with file handles", "/new||DIR|", list(v4(opPutFH, "DIR"), v4(opReadDir, uint64(0), uint64(0), 1, 1, 1, 1<<19)),
			list(done(opPutFH), done(opReadDir, uint64(0), 1, uint64(7), "listed", 1, 1<<19, "\x00\x00\x00\x01L\x00\x00\x00", 0, 1))),
		compound4("a file that was listed", "/new/listed||L|", list(v4(opPutFH, "L"), v4(3, 1)), list(done(opPutFH), done(3, 1, 1))),
		compound4("below a handle without a name", "fh:0xd4f8b6c1/x||X|", list(v4(opPutFH, "H1"), v4(opLookup, "x"), v4(opGetFH)), list(done(opPutFH), done(opLookup), done(opGetFH, "X"))),
		compound4("two files are removed", "/new/listed||L|removed /new/c 0/0, removed /new/listed 0/0", list(v4(opPutFH, "DIR"), v4(opRemove, "c"), v4(opRemove, "listed")),
			list(done(opPutFH), done(opRemove, cinfo...), done(opRemove, cinfo...))),
		compound4("a name that no file can have", "/%2E%2E%2Fetc||E|", list(v4(opPutFH, "ROOT"), v4(opLookup, "../etc"), v4(opGetFH)), list(done(opPutFH), done(opLookup), done(opGetFH, "E"))),
		compound4("no file", "null|||", list(v4(53, 0)), list(done(53, 0))),
	}
	steps[20].want = record.ShortHandle([]byte("H1")) + "/x||X|"
	steps[22].want = "/..%2Fetc||E|"
	follow(t, steps)
}

// TestFiles3 verifies the files of NFSv3.
func TestFiles3(t *testing.T) {
	d := record.ShortHandle([]byte("D"))
	changed, unchanged := []any{1, uint64(0), 5, 0, 5, 0}, []any{0}
	after := make([]any, 0, 22) // fattr3
	after = append(after, 1)
	for i := range 21 {
		after = append(after, i)
	}
	created := append(append([]any{0, 1, "F", 0}, changed...), after...)
	follow(t, []fileStep{
		{"LOOKUP", v3(lookup3, "D", "f"), v3Reply(0, "F", 0, 0), d + "/f||F|"},
		{"LOOKUP of the directory above", v3(lookup3, "D", ".."), v3Reply(0, "UP", 0, 0), "null||UP|"},
		{"READ", v3(read3, "F", uint64(0), 5), v3Reply(0, 0, 3, 1, "abc"), d + "/f||F| " + d + "/f 3/0"},
		{"WRITE", v3(write3, "F", uint64(0), 4, 2, "abcd"), v3Reply(0, 0, 0, 4, 2, uint64(9)), d + "/f||F| " + d + "/f 0/4"},
		{"WRITE that fails", v3(write3, "F", uint64(0), 4, 2, "abcd"), v3Reply(28, 0, 0), d + "/f||F|"},
		{"REMOVE", v3(remove3, "D", "f"), v3Reply(0, 0, 0), d + "/f||F|removed " + d + "/f 0/0"},
		{"REMOVE of an unknown file", v3(remove3, "D", "g"), v3Reply(0, 0, 0), d + "/g||" + "|removed " + d + "/g 0/0"},
		{"CREATE of a new file", v3(create3, "D", "f", 0, 0, 0, 0, 0, 0, 0), v3Reply(created...), d + "/f||F|created " + d + "/f 0/0"},
		{"CREATE of any file", v3(create3, "D", "f", 0, 0, 0, 0, 0, 0, 0), v3Reply(append([]any{0, 1, "F", 0}, append(unchanged, 0)...)...), d + "/f||F|"},
		{"GUARDED CREATE", v3(create3, "D", "k", 1, 0, 0, 0, 0, 0, 0), v3Reply(0, 1, "K", 0, 0, 0), d + "/k||K|created " + d + "/k 0/0"},
		{"MKDIR without a handle", v3(mkdir3, "D", "sub", 0, 0, 0, 0, 0, 0), v3Reply(0, 0, 0, 0, 0), d + "/sub|||created " + d + "/sub 0/0"},
		{"LOOKUP of it", v3(lookup3, "D", "sub"), v3Reply(0, "S", 0, 0), d + "/sub||S|"},
		{"RENAME", v3(rename3, "D", "f", "S", "g"), v3Reply(0, 0, 0, 0, 0), d + "/sub/g|" + d + "/f|F|renamed " + d + "/sub/g 0/0"},
		{"LINK", v3(link3, "F", "D", "l"), v3Reply(0, 0, 0, 0), d + "/l||F|"},
		{"READDIRPLUS", v3(readdirplus3, "D", uint64(0), uint64(0), 1, 1), v3Reply(0, 0, uint64(0), 1, uint64(1), ".", uint64(1), 0, 1, "D", 1, uint64(1), "p", uint64(2), 0, 1, "P", 0, 1), "null||D|"},
		{"a file that was listed", v3(read3, "P", uint64(0), 5), v3Reply(0, 0, 0, 1, ""), d + "/p||P|"},
		{"MOUNT", synth.Call{Program: 100005, Procedure: 1, Args: fields(synth.XDR{}, "/export")}, v3Reply(0, "D", 0), "/export||D|"},
		{"paths begin with the export", v3(lookup3, "S", "g"), v3Reply(0, "F", 0, 0), "/export/sub/g||F|"},
		{"NULL", v3(0), v3Reply(), "null|||"},
	})
}

// follow compares the files of RPCs with those of the steps.
func follow(t *testing.T, steps []fileStep) {
	t.Helper()
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	for _, s := range steps {
		c.RPC(s.call, s.reply)
	}
	got := look.With(w, dissect.Options{Files: true}).Transactions
	if len(got) != len(steps) {
		t.Fatalf("%d transactions", len(got))
	}
	for i, s := range steps {
		if g := strings.ReplaceAll(shown(got[i]), "|null|", "||"); g != s.want {
			t.Errorf("%s:\n%s, want\n%s", s.name, g, s.want)
		}
	}
	for _, r := range look.With(w, dissect.Options{}).Transactions {
		if r.File.Known() || r.FileHandle.Known() || r.FileUses != nil {
			t.Fatalf("without the option Files: %s", shown(r))
		}
	}
}

// TestFilesChanged verifies what NFSv3 clients do to names: silly renames, links, RENAME onto a file, directories that
// are renamed, handles that are used again, and exports that are mounted twice or lie in another one.
func TestFilesChanged(t *testing.T) {
	mount := func(path, handle, want string) fileStep {
		return fileStep{"MOUNT " + path, synth.Call{Program: 100005, Procedure: 1, Args: fields(synth.XDR{}, path)}, v3Reply(0, handle, 0), want}
	}
	read := func(handle, path string) fileStep {
		return fileStep{"READ " + path, v3(read3, handle, uint64(0), 5), v3Reply(0, 0, 3, 1, "abc"), path + "||" + handle + "| " + path + " 3/0"}
	}
	rename := func(from, name, to, newName, want string) fileStep {
		return fileStep{"RENAME " + name, v3(rename3, from, name, to, newName), v3Reply(0, 0, 0, 0, 0), want}
	}
	remove := func(directory, name, want string) fileStep {
		return fileStep{"REMOVE " + name, v3(remove3, directory, name), v3Reply(0, 0, 0), want}
	}
	lookup := func(directory, name, handle, path string) fileStep {
		return fileStep{"LOOKUP " + name, v3(lookup3, directory, name), v3Reply(0, handle, 0, 0), path + "||" + handle + "|"}
	}
	follow(t, []fileStep{
		mount("/export", "R", "/export||R|"),
		lookup("R", "dir", "D", "/export/dir"),
		lookup("D", "open", "O", "/export/dir/open"),
		rename("D", "open", "D", ".nfs0001", "/export/dir/.nfs0001|/export/dir/open|O|renamed /export/dir/.nfs0001 0/0"),
		read("O", "/export/dir/.nfs0001"),
		remove("D", ".nfs0001", "/export/dir/.nfs0001||O|removed /export/dir/.nfs0001 0/0"),
		lookup("D", "a", "A", "/export/dir/a"),
		lookup("D", "b", "B", "/export/dir/b"),
		rename("D", "a", "D", "b", "/export/dir/b|/export/dir/a|A|renamed /export/dir/b 0/0"),
		read("A", "/export/dir/b"),
		remove("D", "b", "/export/dir/b||A|removed /export/dir/b 0/0"),
		{"CREATE with a handle that was used before", v3(create3, "D", "new", 1, 0, 0, 0, 0, 0, 0), v3Reply(0, 1, "A", 0, 0, 0), "/export/dir/new||A|created /export/dir/new 0/0"},
		rename("R", "dir", "R", "moved", "/export/moved|/export/dir|D|renamed /export/moved 0/0"),
		read("A", "/export/moved/new"),
		mount("/export", "R", "/export||R|"),
		read("A", "/export/moved/new"),
		mount("/export/moved", "D", "/export/moved||D|"),
		read("A", "/export/moved/new"),
		{"LINK", v3(link3, "A", "R", "link"), v3Reply(0, 0, 0, 0), "/export/link||A|"},
		remove("D", "new", "/export/moved/new||A|removed /export/moved/new 0/0"),
		read("A", "/export/link"),
		remove("R", "link", "/export/link||A|removed /export/link 0/0"),
		remove("R", "never seen", "/export/never seen|||removed /export/never seen 0/0"),
	})
}

// TestFileBytes: the bytes that transactions say they moved are those of their files, without padding and headers, in every capture.
// Results that were not captured say nothing.
func TestFileBytes(t *testing.T) {
	paths, err := filepath.Glob(captures + "*.pcap*")
	if err != nil {
		t.Fatal(err)
	}
	inline := 0
	for _, path := range testkit.Short(t, paths) {
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			if !r.BytesRead.Known() && !r.BytesWritten.Known() {
				return nil
			}
			var read, written int64
			for _, u := range r.FileUses {
				read, written = read+u.ReadBytes, written+u.WrittenBytes
			}
			if read != r.BytesRead.Or(0) || written != r.BytesWritten.Or(0) {
				t.Errorf("%s: %s with XID %v read %v and wrote %v bytes; its files %d and %d", path, r.Operation.Or(""), r.XID, r.BytesRead, r.BytesWritten, read, written)
			}
			if read+written > 0 && len(r.WriteChunks)+len(r.ReadChunks) == 0 {
				inline++
			}
			return nil
		}}, dissect.Options{Files: true})
		if _, err := d.Run(t.Context(), testkit.Open(t, path)); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(path, err)
		}
	}
	if inline < 2 {
		t.Errorf("%d RPCs moved bytes without chunks; want more", inline)
	}
}

// TestFilesServers: equal handles of two servers are different files.
func TestFilesServers(t *testing.T) {
	w := synth.New()
	for i, name := range []string{"one", "two"} {
		c := w.RoCE(synth.Options{Server: synth.End{Addr: netip.AddrFrom4([4]byte{10, 0, 9, byte(i + 1)})}})
		c.Connect()
		c.RPC(v3(lookup3, "D", name), v3Reply(0, "F", 0, 0))
		c.RPC(v3(read3, "F", uint64(0), 5), v3Reply(0, 0, 3, 1, "abc"))
		c.RPC(v3(remove3, "D", name), v3Reply(0, 0, 0))
	}
	var got []string
	for _, r := range look.With(w, dissect.Options{Files: true}).Transactions {
		got = append(got, r.Server.Or("")+" "+strings.TrimPrefix(r.File.Or(""), record.ShortHandle([]byte("D"))))
	}
	want := "10.0.9.1 /one,10.0.9.1 /one,10.0.9.1 /one,10.0.9.2 /two,10.0.9.2 /two,10.0.9.2 /two"
	if strings.Join(got, ",") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestFilesRecalled: a Call of the server names the file whose delegation it wants back.
func TestFilesRecalled(t *testing.T) {
	var got []string
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		if slices.Contains(r.Operations, "CB_RECALL") {
			got = append(got, r.File.Or("none"))
		}
		return nil
	}}, dissect.Options{Files: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, captures+"rocev2-callback41.pcap.zst")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/deleg1", "/deleg2", "/deleg3"}; !slices.Equal(got, want) {
		t.Errorf("recalled %q, want %q", got, want)
	}
}
