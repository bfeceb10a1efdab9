package query_test

import (
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// decoded counts the transactions or packets of a wire that match.
func decoded(t *testing.T, w *synth.Wire, source string, fields query.Fields) (n int) {
	t.Helper()
	filter, err := query.Compile(source, fields)
	if err != nil {
		t.Error(err)
		return -1
	}
	match := func(r any) error {
		if filter.Match(r) {
			n++
		}
		return nil
	}
	h, o := dissect.Handler{}, dissect.Options{}
	if fields == query.Packets {
		o.Tree = true
		h.Packet = func(p *record.Packet) error { return match(p) }
	} else {
		o.Decode = true
		h.Transaction = func(r *record.Transaction) error { return match(r) }
	}
	d := dissect.New(h, o)
	for f := range testkit.Made(w.Frames) {
		if err := d.Frame(f); err != nil {
			t.Errorf("%s: dissecting a frame fails: %v", source, err)
		}
	}
	if _, err := d.Finish(); err != nil {
		t.Errorf("%s: dissecting fails: %v", source, err)
	}
	return n
}

// TestNFS: expressions can use arguments and results, by the names of package nfs and of
// Wireshark, in the forms in which people write values. For transactions this includes data in
// chunks; for packets it covers their Sends.
func TestNFS(t *testing.T) {
	const (
		handle  = "612066696c6527732068616e646c652e"
		session = "612073657373696f6e2773206e616d65"
		other   = "6120737461746569642e2e2e"
	)
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	data := []byte(strings.Repeat("d", 5000))
	c.RPC(synth.Compound(synth.OpSequence(3), synth.OpPutFH(), synth.OpRead(1<<30, 5000)).Offer(synth.Mem(0xa1, 8192)),
		synth.CompoundReply(synth.ResSequence(3), synth.ResPutFH(), synth.ResRead(data)))
	c.RPC(synth.Compound(synth.OpPutRootFH(), synth.OpLookup("caf\xc3\xa9"), synth.OpGetAttr()), synth.CompoundFailed(2, synth.ResPutRootFH(), synth.ResFailed(15, 2)))
	c.RPC(synth.Compound(synth.OpReadDir(4096)).OfferReply(synth.Mem(0xa2, 8192)), synth.CompoundReply(synth.ResReadDir("one", "two")).Long())
	c.RPC(synth.Write3(8192, data).Reduce(0xa3), synth.Write3Reply(5000))
	c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	for _, test := range []struct {
		source                string
		transactions, packets int
	}{
		{`nfs.offset >= 1GiB`, 1, 1},
		{`nfs.offset4 == 1073741824`, 1, 1},
		{`nfs.offset < 1GiB`, 1, 1},
		{`nfs.offset3 in [8KiB, 16KiB]`, 1, 1},
		{`nfs.offset in {8000..9000}`, 1, 1},
		{`nfs.count == 5000`, 2, 3},
		{`nfs.count4 > 4999 and nfs.eof`, 1, 0}, // Each packet has only the arguments or only the results.
		{`nfs.data == 5000`, 2, 2},
		{`nfs.name == "one"`, 1, 0}, // The value is in a Reply chunk and not in a Send.
		{`nfs.name == one`, 1, 0},
		{`nfs.readdir.entry3.name in [one, three]`, 1, 0},
		{`nfs.name matches "^caf"`, 1, 1},
		{`nfs.name == "café"`, 1, 1},
		{`nfs.name != one`, 1, -1}, // three have no name
		{`not (nfs.name == one)`, 4, -1},
		{`nfs.entries >= 2`, 1, 0},
		{`nfs.fh == 0x` + handle, 3, 3},
		{`nfs.fh == ` + handle, 3, 3},
		{`nfs.fh == "` + strings.ToUpper(handle) + `"`, 3, 3},
		{`nfs.fh == 61:20:66:69:6c:65:27:73:20:68:61:6e:64:6c:65:2e`, 3, 3},
		{`nfs.fhandle startsWith "61206669"`, 3, 3},
		{`nfs.fh == 6120`, 0, 0},
		{`nfs.stateid == 1:` + other, 1, 1},
		{`nfs.stateid == "1:` + other + `"`, 1, 1},
		{`nfs.stateid == 00000001` + other, 1, 1},
		{`nfs.stateid == ` + other, 1, 1},
		{`nfs.stateid == 2:` + other, 0, 0},
		{`nfs.stateid.other == ` + other + ` and nfs.stateid.seqid == 1`, 1, 1},
		{`nfs.sessionid == ` + session, 1, 2},
		{`nfs.session_id4 == 0x` + session, 1, 2},
		{`nfs.slotid == 0`, 1, 2},
		{`nfs.sequenceid == 3 and nfs.seqid == 3`, 1, 2},
		{`nfs.high_slotid == 7`, 1, 1},
		{`nfs.status == NFS4ERR_NOENT`, 1, 1},
		{`nfs.status == nfs4err_noent`, 1, 1},
		{`nfs.status == 2`, 1, 1},
		{`nfs.status != 0`, 0, -1},
		{`nfs.status > 0`, 1, 1},
		{`nfs.status in [NFS4ERR_NOENT, NFS3ERR_IO]`, 1, 1},
		{`nfs.status matches "NOENT$"`, 1, 1},
		{`nfs.opcode == 25`, 1, 2},
		{`nfs.opcode == READ`, 1, 2},
		{`nfs.opcode in [9, 15]`, 1, 2},
		{`nfs.opcode == GETATTR`, 1, 1}, // The GETATTR of NFSv3 does not match.
		{`nfs.operation == GETATTR`, 2, 3},
		{`"WRITE" in nfs.operation`, 1, 2},
		{`nfs.stable == FILE_SYNC`, 1, 1},
		{`nfs.stable_how4 == 2`, 1, 1},
		{`nfs.committed == file_sync`, 1, 1},
		{`nfs.eof == true`, 2, 1},
		{`nfs.cachethis == yes`, 1, 1},
		{`nfs.attr_request == size`, 2, 2},
		{`nfs.minorversion == 1`, 3, 3},
		{`nfs.cookieverf == 0x0000000000000001`, 1, 0},
		{`nfs.verifier == 0x1122334455667788 or nfs.size == 8192`, 3, -1},
		{`nfs.mtime < 1990-01-01T00:00:00Z`, 1, -1},
		{`nfs.mode == 0o644`, 1, -1},
		{`nfs.mode == 0644`, 1, -1},
		{`nfs.error`, 0, 0},
		{`nfs.offset == null and nfs.count == null`, 3, -1},
		{`nfs.data and nfs.count == nfs.data`, 2, -1},
		// The status of any operation has the name that Wireshark uses, in every view.
		{`nfs.nfsstat4 == 2`, 1, 1},
		{`nfs.nfsstat3 == 2`, 1, 1},
		{`nfs.nfsstat3 == NFS4ERR_NOENT`, 1, 1},
		{`nfs.nfsstat4 == "NFS4ERR_NOENT"`, 1, 1},
		{`nfs.nfsstat4 == 0`, 5, -1}, // This includes the status of PUTROOTFH.
		{`nfs.nfsstat4 in [2, 13]`, 1, 1},
	} {
		if got := decoded(t, w, test.source, query.Transactions); got != test.transactions {
			t.Errorf("%s: %d transactions, want %d", test.source, got, test.transactions)
		}
		if test.packets < 0 {
			continue
		}
		if got := decoded(t, w, test.source, query.Packets); got != test.packets {
			t.Errorf("%s: %d packets, want %d", test.source, got, test.packets)
		}
	}
}

// TestRenamed: a filter for a name finds the RENAME that created it.
func TestRenamed(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Call{Program: 100003, Version: 3, Procedure: 14, Args: synth.XDR{}.String("d1").String("old").String("d2").String("new")}, synth.Getattr3Reply())
	for source, want := range map[string]int{`nfs.name == "new"`: 1, `nfs.name == "old" and nfs.to_name == "new"`: 1, `nfs.to_name == "old"`: 0} {
		for _, fields := range []query.Fields{query.Transactions, query.Packets} {
			if got := decoded(t, w, source, fields); got != want {
				t.Errorf("%s: %d of %s", source, got, fields.Of())
			}
		}
	}
}

// TestUnreadable: nfs.error gives the reason why encrypted data cannot be decoded.
func TestUnreadable(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	call := synth.Getattr3()
	call.Cred = synth.GSS(oncrpc.ServicePrivacy, 9)
	c.RPC(call, synth.Getattr3Reply())
	c.RPC(synth.Getattr3(), synth.Getattr3Reply())
	const source = `nfs.error contains "encrypt"`
	if got := decoded(t, w, source, query.Transactions); got != 1 {
		t.Errorf("%d transactions", got)
	}
	if got := decoded(t, w, source, query.Packets); got != 2 {
		t.Errorf("%d packets", got)
	}
}

// TestNFSFields: every name of package nfs is a field with a description, and no other name is.
func TestNFSFields(t *testing.T) {
	for _, fields := range []query.Fields{query.Transactions, query.Packets} {
		n := 0
		for _, name := range nfs.Names() {
			if f := fields.Field("nfs." + name.Name); f != nil {
				n++
				if f.Doc == "" || f.Type == "" || !f.List || !f.Drawn || !query.Decoded(f.Path) {
					t.Errorf("%s has the type %q and the description %q, list %t, drawn %t; want all of these", f.Path, f.Type, f.Doc, f.List, f.Drawn)
				}
			} else if name.Kinds[0] != nfs.Group || len(name.Kinds) > 1 {
				t.Errorf("no field nfs.%s of %s", name.Name, fields.Of())
			}
		}
		if n < 330 {
			t.Errorf("%d fields of %s", n, fields.Of())
		}
	}
	for _, c := range []struct{ source, message string }{
		{`nfs.ofset > 5`, "unknown field \"nfs.ofset\"; similar: nfs.offset"},
		{`nfs.offset == foo`, "nfs.offset cannot be foo: it is a number, such as 42 or 1GiB"},
		{`nfs.offset > 5ms`, "nfs.offset cannot be 5ms: it is a number"},
		{`nfs.stable == FILE_SINK`, "nfs.stable cannot be FILE_SINK: it is a number or a name; similar: FILE_SYNC"},
		{`nfs.status == NFS4ERR_NOENTRY`, "similar: NFS4ERR_NOENT"},
		{`nfs.status == NOENT`, "similar: NFSERR_NOENT, NFS3ERR_NOENT, NFS4ERR_NOENT"},
		{`nfs.fh == 8f3`, "8f3 is not a number"},
		{`nfs.fh == xyz`, "nfs.fh cannot be xyz: it is bytes in hex, such as 0x8f3a2c"},
		{`nfs.fh > 8f3a`, "nfs.fh can be compared with ==, !=, in and the operators for text, not with >"},
		{`nfs.stateid == 8f3a`, "nfs.stateid cannot be 8f3a: it is 16 bytes in hex, or the last 12 of them"},
		{`nfs.mtime > 5s`, "nfs.mtime cannot be 5s: it is a time"},
		{`nfs.eof == maybe`, "nfs.eof cannot be maybe: it is true or false"},
		{`nfs.name matches "("`, "invalid regular expression"},
		{`xid == 8f3a2c`, "8f3a2c is not a number"},
		{`xid == 61:20:66`, "bytes in hex are not a number"},
		{`latency > 99999999999999999999`, "is too large; numbers have 64 bits"},
	} {
		if _, err := query.Compile(c.source, query.Transactions); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: the error is %v, want %q", c.source, err, c.message)
		}
	}
}
