package nfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// said returns a message as one line, OP{name=value group{...}}, followed by its error.
func said(m *Message) string {
	var b strings.Builder
	for i := range m.Ops {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(m.Ops[i].Name)
		if m.Ops[i].HasStatus && m.Ops[i].Status != 0 {
			b.WriteString("=" + m.StatusName(i))
		}
		depth := 0
		for j := range m.In(i) {
			v := &m.In(i)[j]
			for ; depth > int(v.Depth); depth-- {
				b.WriteByte('}')
			}
			b.WriteByte(' ')
			b.WriteString(v.Name)
			switch {
			case v.Kind == Group || v.Kind == List:
				b.WriteByte('{')
				depth++
			default:
				b.WriteByte('=')
				b.Write(v.AppendText(nil))
			}
		}
		b.WriteString(strings.Repeat("}", depth))
	}
	if m.Err != nil {
		b.WriteString(" ERR " + m.Err.Error())
	}
	if m.Left > 0 {
		fmt.Fprintf(&b, " LEFT %d", m.Left)
	}
	return strings.TrimSpace(b.String())
}

// l returns a 64-bit word.
func l(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// stateid returns a stateid whose seqid differs from the rest of it.
func stateid(seq int) []byte { return bytesOf(seq, []byte("stateid\x00\x00\x00\x00\xff")) }

var (
	fh32   = bytes.Repeat([]byte{0xab}, 32)
	fattr3 = bytesOf(1, 0o644, 1, 1000, 100, l(6), l(4096), 8, 1, l(0xfe01), l(42), 10, 11, 20, 21, 30, 31)
	sattr3 = bytesOf(1, 0o600, 0, 0, 1, l(7), 1, 2, 5, 6)
	wcc    = bytesOf(1, l(5), 1, 2, 3, 4, 0)
	fattr2 = bytesOf(2, 0o755, 3, 4, 5, 6, 512, 0, 8, 9, 10, 11, 12, 13, 14, 15, 16)
)

const (
	fattr3Says = "attributes{ type=NF3REG mode=0644 nlink=1 uid=1000 gid=100 size=6 used=4096 rdev{ specdata1=8 specdata2=1} fsid=0x000000000000fe01 fileid=42" +
		" atime=1970-01-01T00:00:10.000000011Z mtime=1970-01-01T00:00:20.000000021Z ctime=1970-01-01T00:00:30.000000031Z"
	wccSays    = "wcc{ before{ size=5 mtime=1970-01-01T00:00:01.000000002Z ctime=1970-01-01T00:00:03.000000004Z}"
	fattr2Says = "attributes{ type=NFDIR mode=0755 nlink=3 uid=4 gid=5 size=6 blocksize=512 rdev=0 blocks=8 fsid=0x00000009 fileid=10 atime=1970-01-01T00:00:11.000012000Z" +
		" mtime=1970-01-01T00:00:13.000014000Z ctime=1970-01-01T00:00:15.000016000Z"
)

// compoundOf and resultsOf encode a COMPOUND with the arguments or results of one
// operation.
func compoundOf(parts ...any) []byte { return bytesOf(append([]any{"", 1, 1}, parts...)...) }

func resultsOf(status int, parts ...any) []byte {
	return bytesOf(append([]any{status, "", 1}, parts...)...)
}

func TestCallsAndReplies(t *testing.T) {
	for _, c := range []struct {
		program, version, procedure uint32
		reply                       bool
		data                        []byte
		want                        string
	}{
		// NFSv2
		{100003, 2, 0, false, nil, "NULL"},
		{100003, 2, 6, false, bytesOf(fh32, 8192, 4096, 0), "READ fh=" + strings.Repeat("ab", 32) + " offset=8192 count=4096 totalcount=0"},
		{100003, 2, 6, true, bytesOf(0, fattr2, "12345"), "READ " + fattr2Says + "} data=5 bytes"},
		{100003, 2, 8, false, bytesOf(fh32, 0, 512, 0, "123"), "WRITE fh=" + strings.Repeat("ab", 32) + " beginoffset=0 offset=512 totalcount=0 data=3 bytes"},
		{100003, 2, 4, true, bytesOf(2), "LOOKUP=NFSERR_NOENT"},
		{100003, 2, 13, false, bytesOf(fh32, "link", "target", 0o777, 1, 2, 3, 4, 5, 6, 7), "SYMLINK dir_fh=" + strings.Repeat("ab", 32) +
			` name="link" target="target" new_attributes{ mode=0777 uid=1 gid=2 size=3 atime=1970-01-01T00:00:04.000005000Z mtime=1970-01-01T00:00:06.000007000Z}`},
		{
			100003, 2, 16, true, bytesOf(0, 1, 7, "a", 1, 1, 8, "b", 2, 0, 1),
			`READDIR entries{ entries{ fileid=7 name="a" cookie=0x00000001} entries{ fileid=8 name="b" cookie=0x00000002}} eof=true`,
		},

		// NFSv3
		{100003, 3, 1, true, bytesOf(0, fattr3), "GETATTR " + fattr3Says + "}"},
		{100003, 3, 2, false, bytesOf("fh", sattr3, 0), "SETATTR fh=6668 new_attributes{ mode=0600 size=7 set_atime=SET_TO_SERVER_TIME" +
			" set_mtime=SET_TO_CLIENT_TIME mtime=1970-01-01T00:00:05.000000006Z}"},
		{100003, 3, 2, true, bytesOf(1, wcc), "SETATTR=NFS3ERR_PERM " + wccSays + "}"},
		{100003, 3, 3, false, bytesOf("dir", "na\x1b"), `LOOKUP dir_fh=646972 name="na\x1b"`},
		{100003, 3, 3, true, bytesOf(0, "obj", 1, fattr3, 0), "LOOKUP object_fh=6f626a " + fattr3Says + "}"},
		{100003, 3, 3, true, bytesOf(2, 0), "LOOKUP=NFS3ERR_NOENT"},
		{100003, 3, 4, true, bytesOf(0, 0, 0x23), "ACCESS access=READ|LOOKUP|EXECUTE"},
		{100003, 3, 5, true, bytesOf(0, 0, "target"), `READLINK target="target"`},
		{100003, 3, 6, false, bytesOf("fh", l(1<<40), 1<<20), "READ fh=6668 offset=1099511627776 count=1048576"},
		{100003, 3, 6, true, bytesOf(0, 0, 5, 1, "12345"), "READ count=5 eof=true data=5 bytes"},
		{100003, 3, 6, true, bytesOf(70, 1, fattr3), "READ=NFS3ERR_STALE " + fattr3Says + "}"},
		{100003, 3, 7, false, bytesOf("fh", l(4096), 5, 2, "12345"), "WRITE fh=6668 offset=4096 count=5 stable=FILE_SYNC data=5 bytes"},
		{100003, 3, 7, true, bytesOf(0, wcc, 5, 1, l(7)), "WRITE " + wccSays + "} count=5 committed=DATA_SYNC verifier=0x0000000000000007"},
		{100003, 3, 8, false, bytesOf("dir", "new", 2, l(9)), `CREATE dir_fh=646972 name="new" createmode=EXCLUSIVE verifier=0x0000000000000009`},
		{100003, 3, 8, true, bytesOf(0, 1, "obj", 0, 0, 0), "CREATE object_fh=6f626a dir_wcc{}"},
		{100003, 3, 10, false, bytesOf("dir", "link", 0, 0, 1, 0, 0, 0, 0, "target"), `SYMLINK dir_fh=646972 name="link" new_attributes{` +
			` gid=0 set_atime=DONT_CHANGE set_mtime=DONT_CHANGE} target="target"`},
		{
			100003, 3, 11, false, bytesOf("dir", "dev", 3, 0, 0, 0, 0, 0, 0, 8, 1),
			`MKNOD dir_fh=646972 name="dev" type=NF3BLK new_attributes{ set_atime=DONT_CHANGE set_mtime=DONT_CHANGE} specdata1=8 specdata2=1`,
		},
		{100003, 3, 14, false, bytesOf("d1", "old", "d2", "new"), `RENAME dir_fh=6431 name="old" to_dir_fh=6432 to_name="new"`},
		{100003, 3, 17, false, bytesOf("dir", l(3), l(4), 512, 4096), "READDIRPLUS dir_fh=646972 cookie=0x0000000000000003 cookieverf=0x0000000000000004 dircount=512 maxcount=4096"},
		{
			100003, 3, 17, true, bytesOf(0, 0, l(4), 1, l(42), "file", l(1), 1, fattr3, 1, "obj", 1, l(43), "gone", l(2), 0, 0, 0, 1),
			`READDIRPLUS cookieverf=0x0000000000000004 entries{ entries{ fileid=42 name="file" cookie=0x0000000000000001 ` + fattr3Says +
				`} object_fh=6f626a} entries{ fileid=43 name="gone" cookie=0x0000000000000002}} eof=true`,
		},
		{
			100003, 3, 19, true, bytesOf(0, 0, 1, 2, 3, 4, 5, 6, 7, l(8), 0, 1, 0x1b),
			"FSINFO rtmax=1 rtpref=2 rtmult=3 wtmax=4 wtpref=5 wtmult=6 dtpref=7 maxfilesize=8 time_delta{ seconds=0 nseconds=1} properties=LINK|SYMLINK|HOMOGENEOUS|CANSETTIME",
		},
		{100003, 3, 21, false, bytesOf("fh", l(1), 2), "COMMIT fh=6668 offset=1 count=2"},

		// MOUNT, NFSACL, NLM
		{100005, 1, 1, true, bytesOf(0, fh32), "MNT object_fh=" + strings.Repeat("ab", 32)},
		{100005, 3, 1, false, bytesOf("/export"), `MNT path="/export"`},
		{100005, 3, 1, true, bytesOf(0, "root", 2, 1, 390003), "MNT object_fh=726f6f74 flavors{ flavors=AUTH_SYS flavors=KRB5}"},
		{100005, 3, 1, true, bytesOf(13), "MNT=MNT3ERR_ACCES"},
		{
			100005, 3, 5, true, bytesOf(1, "/a", 1, "g1", 1, "g2", 0, 1, "/b", 0, 0),
			`EXPORT exports{ exports{ path="/a" groups{ groups="g1" groups="g2"}} exports{ path="/b" groups{}}}`,
		},
		{
			100227, 3, 1, true, bytesOf(0, 0, 3, 1, 1, 1, 0, 7, 0, 0),
			"GETACL acls{ mask=ACL|ACLCNT acl_count=1 acl{ acl{ tag=0x00000001 id=0 perm=0x00000007}} default_acl_count=0 default_acl{}}",
		},
		{
			100021, 4, 2, false, bytesOf("ck", 1, 1, "host", "fh", "own", 99, l(10), l(20), 0, 3),
			`LOCK cookie=636b block=true exclusive=true caller_name="host" fh=6668 owner=6f776e svid=99 offset=10 length=20 reclaim=false state=3`,
		},
		{
			100021, 4, 1, true, bytesOf("ck", 1, 1, 99, "own", l(10), l(20)),
			"TEST cookie=636b stat=NLM4_DENIED exclusive=true svid=99 owner=6f776e offset=10 length=20",
		},

		// NFSv4
		{100003, 4, 1, false, compoundOf(22, "fh"), "PUTFH fh=6668"},
		{100003, 4, 1, true, resultsOf(0, 10, 0, "fh"), "GETFH object_fh=6668"},
		{
			100003, 4, 1, false, compoundOf(53, bytes.Repeat([]byte{0xcd}, 16), 7, 2, 9, 1),
			"SEQUENCE sessionid=" + strings.Repeat("cd", 16) + " sequenceid=7 slotid=2 highest_slotid=9 cachethis=true",
		},
		{
			100003, 4, 1, true, resultsOf(0, 53, 0, id, 7, 2, 9, 63, 0x2001),
			"SEQUENCE sessionid=" + strings.Repeat("00", 16) + " sequenceid=7 slotid=2 highest_slotid=9 target_highest_slotid=63 status_flags=CB_PATH_DOWN|0x2000",
		},
		{100003, 4, 1, false, compoundOf(25, stateid(3), l(65536), 131072), "READ stateid=3:7374617465696400000000ff offset=65536 count=131072"},
		{100003, 4, 1, false, compoundOf(38, id, l(512), 2, "12345"), "WRITE stateid=0:000000000000000000000000 offset=512 stable=FILE_SYNC4 data=5 bytes"},
		{100003, 4, 1, true, resultsOf(0, 38, 0, 5, 2, l(1)), "WRITE count=5 committed=FILE_SYNC4 verifier=0x0000000000000001"},
		{100003, 4, 1, false, compoundOf(9, 4, 0x0010011a, 0x00a0001a, 0, 16), "GETATTR attr_request=type change size fsid fileid mode numlinks owner time_modify mounted_on_fileid 100"},
		{
			100003, 4, 1, true, resultsOf(0, 9, 0, 2, 0x0010001a, 0x00200012, string(bytesOf(1, l(9), l(6), l(42), 0o640, "root@x", l(1<<33), 5))),
			"GETATTR attributes{ type=NF4REG change=9 size=6 fileid=42 mode=0640 owner=\"root@x\" time_modify=2242-03-16T12:56:32.000000005Z}",
		},
		{ // durations, not points in time: time_delta, dir_notif_delay, dirent_notif_delay
			100003, 4, 1, true, resultsOf(0, 9, 0, 2, 0, 0x03080000, string(bytesOf(l(0), 4000000, l(1), 2, l(3), 4))),
			"GETATTR attributes{ time_delta{ seconds=0 nseconds=4000000} dir_notif_delay{ seconds=1 nseconds=2} dirent_notif_delay{ seconds=3 nseconds=4}}",
		},
		{
			100003, 4, 1, false, compoundOf(18, 0, 0x10002, 0, l(5), "own", 1, 1, 1, 16, string(l(0)), 0, "file"),
			"OPEN seqid=0 share_access=OPEN4_SHARE_ACCESS_WRITE|OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL share_deny=OPEN4_SHARE_DENY_NONE" +
				` open_owner{ clientid=0x0000000000000005 owner=6f776e} opentype=OPEN4_CREATE createmode=GUARDED4 attributes{ size=0} claim=CLAIM_NULL name="file"`,
		},
		{
			100003, 4, 1, true, resultsOf(0, 18, 0, id, 1, l(1), l(2), 4, 0, 3, 2, 1),
			"OPEN stateid=0:000000000000000000000000 cinfo{ atomic=true before=1 after=2} rflags=OPEN4_RESULT_LOCKTYPE_POSIX attrset=" +
				" delegation=OPEN_DELEGATE_NONE_EXT why=WND4_RESOURCE server_will_signal_avail=true",
		},
		{
			100003, 4, 1, true, resultsOf(10010, 12, 10010, l(1), l(2), 2, l(3), "own"),
			"LOCK=NFS4ERR_DENIED denied{ offset=1 length=2 locktype=WRITE_LT owner{ clientid=0x0000000000000003 owner=6f776e}}",
		},
		{100003, 4, 1, true, resultsOf(1, 34, 1, 1, 16), "SETATTR=NFS4ERR_PERM attrset=size"},
		{100003, 4, 1, true, resultsOf(10005, 47, 10005, 99), "GETDEVICEINFO=NFS4ERR_TOOSMALL mincount=99"},
		{100003, 4, 1, true, resultsOf(10044, 10044, 10044), "ILLEGAL=NFS4ERR_OP_ILLEGAL"},
		{100003, 4, 1, true, resultsOf(10004, 99, 10004), "OP_99=NFS4ERR_NOTSUPP"},
		{
			100003, 4, 1, true, resultsOf(0, 26, 0, l(1), 1, l(2), "f", 1, 0x80000, string(bytesOf("handle")), 0, 1),
			`READDIR cookieverf=0x0000000000000001 entries{ entries{ cookie=0x0000000000000002 name="f" attributes{ filehandle=68616e646c65}}} eof=true`,
		},
		{
			100003, 4, 1, true, resultsOf(0, 68, 0, 1, 2, 0, l(0), "data", 1, l(4), l(8)),
			"READ_PLUS eof=true contents{ contents{ content=NFS4_CONTENT_DATA offset=0 data=4 bytes} contents{ content=NFS4_CONTENT_HOLE offset=4 length=8}}",
		},
		{100003, 4, 1, false, compoundOf(73, 1, "user.a", "v"), `SETXATTR option=SETXATTR4_CREATE xattr_name="user.a" xattr_value=76`},
		{
			0x40000000, 1, 1, false, bytesOf("", 1, 7, 2, 11, id, 1, 0, 0, 0, 1, id, 1, 4, 5, 4, id, 1, "fh"),
			"CB_SEQUENCE sessionid=" + strings.Repeat("00", 16) + " sequenceid=1 slotid=0 highest_slotid=0 cachethis=false referring_call_lists{ referring_call_lists{ sessionid=" +
				strings.Repeat("00", 16) + " referring_calls{ referring_calls{ sequenceid=4 slotid=5}}}} CB_RECALL stateid=0:000000000000000000000000 truncate=true fh=6668",
		},

		// Malformed and unknown messages.
		{100003, 3, 6, false, bytesOf("fh", l(0)), "READ fh=6668 offset=0 ERR nfs: READ count needs 4 bytes at offset 16, 0 left: truncated"},
		{100003, 3, 7, false, bytesOf("fh", l(0), 9, 0, 9), "WRITE fh=6668 offset=0 count=9 stable=UNSTABLE ERR nfs: WRITE data needs 12 bytes at offset 28, 0 left: truncated"},
		{100003, 3, 3, true, bytesOf(0, "obj", 7, 0), "LOOKUP object_fh=6f626a ERR nfs: LOOKUP attributes is 7 at offset 12, which the protocol does not define: malformed LEFT 8"},
		{100003, 3, 22, false, nil, "ERR nfs: program 100003 version 3 procedure 22: unknown"},
		{100021, 1, 2, false, bytesOf(1), "ERR nfs: program 100021 version 1 procedure 2: unknown LEFT 4"},
		{100003, 4, 1, false, compoundOf(99, 1), "OP_99 ERR nfs: operation 99 at offset 12: unknown LEFT 4"},
		{100003, 4, 1, false, compoundOf(55, 1<<30), "TEST_STATEID stateids{} ERR nfs: TEST_STATEID stateids needs 17179869184 bytes at offset 20, 0 left: truncated"},
		{100003, 4, 1, false, compoundOf(9, 1<<30), "GETATTR ERR nfs: GETATTR attr_request needs 4294967296 bytes at offset 20, 0 left: truncated"},
		{100003, 4, 1, false, compoundOf(18, 0, 1, 0, l(0), "", 0, 9), "OPEN seqid=0 share_access=OPEN4_SHARE_ACCESS_READ share_deny=OPEN4_SHARE_DENY_NONE" +
			" open_owner{ clientid=0x0000000000000000 owner=} opentype=OPEN4_NOCREATE claim=9 ERR nfs: OPEN claim is 9 at offset 44, which the protocol does not define: malformed LEFT 4"},
		{100003, 4, 1, true, bytesOf(2, "", 2, 15, 2, 16, 0), "LOOKUP=NFS4ERR_NOENT ERR nfs: operation 2 of 2 at offset 20 follows a failed operation: malformed LEFT 8"},
		{
			100003, 4, 1, true, bytesOf(0, "", 2, 9, 0, 1, 0x12, "\x00\x00\x00\x01", 16, 0),
			"GETATTR attributes{ type=NF4REG} LOOKUPP ERR nfs: GETATTR size needs 8 bytes at offset 36, 0 left: truncated",
		},
		{
			100003, 4, 1, true, bytesOf(0, "", 2, 9, 0, 1, 2, "\x00\x00\x00\x01more", 16, 0),
			"GETATTR attributes{ type=NF4REG unread_attributes=6d6f7265} LOOKUPP ERR nfs: attributes of GETATTR has 4 bytes after its last attribute at offset 36: malformed",
		},
		{
			100003, 4, 1, true, bytesOf(0, "", 2, 9, 0, 3, 2, 0, 1<<31, "\x00\x00\x00\x01more", 16, 0), // an attribute that no document defines
			"GETATTR attributes{ type=NF4REG unread_attributes=6d6f7265} LOOKUPP",
		},
		{100003, 3, 0, false, bytesOf(1), "NULL LEFT 4"},
	} {
		var m Message
		if c.reply {
			m.Reply(c.program, c.version, c.procedure, NewStream(c.data, nil))
		} else {
			m.Call(c.program, c.version, c.procedure, NewStream(c.data, nil))
		}
		if got := said(&m); got != c.want {
			t.Errorf("program %d version %d procedure %d, reply %t:\n got %s\nwant %s", c.program, c.version, c.procedure, c.reply, got, c.want)
		}
		if m.Complete != (m.Err == nil) {
			t.Errorf("%s: complete %t", c.want, m.Complete)
		}
	}
}

// TestItems: DDP-eligible items are found, inline and reduced.
func TestItems(t *testing.T) {
	read := func(n int) []byte { return bytesOf(25, 0, 1, n) }
	for _, c := range []struct {
		name                        string
		program, version, procedure uint32
		reply                       bool
		data                        []byte
		holes                       []Hole
		want                        string
	}{
		{"v3 WRITE inline", 100003, 3, 7, false, bytesOf("fh", l(0), 5, 0, "12345"), nil, "data@28+5 eligible"},
		{"v3 WRITE in a Read chunk", 100003, 3, 7, false, bytesOf("fh", l(0), 5, 0, 5), []Hole{{28, 5}}, "data@28+5 eligible reduced by 0"},
		{"v3 WRITE, Position elsewhere", 100003, 3, 7, false, bytesOf("fh", l(0), 5, 0, 5), []Hole{{32, 5}}, "ERR nfs: WRITE data needs 8 bytes at offset 28, 0 left: truncated"},
		{"v3 LOOKUP, name in a Read chunk", 100003, 3, 3, false, bytesOf("fh", 400), []Hole{{12, 400}}, "name@12+400 reduced by 0"},
		{"v3 SYMLINK", 100003, 3, 10, false, bytesOf("fh", "n", 0, 0, 0, 0, 0, 0, 9), []Hole{{44, 9}}, "target@44+9 eligible reduced by 0"},
		{"v2 SYMLINK", 100003, 2, 13, false, bytesOf(fh32, "n", 9, 1, 2, 3, 4, 5, 6, 7, 8), []Hole{{44, 9}}, "target@44+9 eligible reduced by 0"},
		{"v3 READ into a Write chunk", 100003, 3, 6, true, bytesOf(0, 0, 7, 1, 7), []Hole{{-1, 7}}, "data@20+7 eligible reduced by 0"},
		{"v3 READ, pad left", 100003, 3, 6, true, bytesOf(0, 0, 7, 1, 7, []byte{0}), []Hole{{-1, 7}}, "data@20+7 eligible reduced by 0 LEFT 1"},
		{"v3 READ inline, chunk unused", 100003, 3, 6, true, bytesOf(0, 0, 7, 1, "1234567"), nil, "data@20+7 eligible"},
		{"v2 READLINK", 100003, 2, 5, true, bytesOf(0, 9), []Hole{{-1, 9}}, "target@8+9 eligible reduced by 0"},
		{"v3 READDIR is nothing to reduce", 100003, 3, 16, true, bytesOf(0, 0, l(0), 0, 1), []Hole{{-1, 9}}, ""},
		{
			"v4, two READs and a READLINK", 100003, 4, 1, true,
			bytesOf(0, "", 4, read(6), read(0), read(3), 27, 0, 8),
			[]Hole{{-1, 6}, {-1, 3}, {-1, 8}},
			"data@28+6 eligible reduced by 0 data@52+0 eligible data@68+3 eligible reduced by 1 target@84+8 eligible reduced by 2",
		},
		{"v4 CREATE of a link", 100003, 4, 1, false, compoundOf(6, 5, 9, "name", 0, 0), []Hole{{24, 9}}, "target@24+9 eligible reduced by 0"},
		{"v4 SETATTR, attributes in a Read chunk", 100003, 4, 1, false, compoundOf(34, id, 1, 16, 8), []Hole{{44, 8}}, "unread_attributes@44+8 reduced by 0"},
		{"v4 SETXATTR, value in a Read chunk", 100003, 4, 1, false, compoundOf(73, 0, "name", 4096), []Hole{{32, 4096}}, "xattr_value@32+4096 reduced by 0"},
		{
			"READ_PLUS", 100003, 4, 1, true, resultsOf(0, 68, 0, 1, 2, 0, l(0), 100, 0, l(200), "abc"),
			[]Hole{{-1, 100}},
			"data@44+100 READ_PLUS reduced by 0 data@160+3 READ_PLUS",
		},
		{
			"a Position that is passed does not hide the next", 100003, 4, 1, false,
			bytesOf("", 1, 2, 38, id, l(0), 2, 5, 38, id, l(8), 2, 6),
			[]Hole{{20, 4}, {48, 5}, {92, 6}},
			"data@48+5 eligible reduced by 1 data@92+6 eligible reduced by 2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Message
			if c.reply {
				m.Reply(c.program, c.version, c.procedure, NewStream(c.data, c.holes))
			} else {
				m.Call(c.program, c.version, c.procedure, NewStream(c.data, c.holes))
			}
			var got []string
			for _, it := range m.Items {
				s := fmt.Sprintf("%s@%d+%d", it.Name, it.Position, it.Length)
				if it.Eligible {
					s += " eligible"
				}
				if it.ReadPlus {
					s += " READ_PLUS"
				}
				if it.Reduced {
					s += fmt.Sprintf(" reduced by %d", it.Hole)
					if c.holes[it.Hole].Position != it.Position || m.Values[it.Value].Bytes != nil || m.Values[it.Value].Uint != uint64(it.Length) {
						t.Errorf("hole at %d, value %+v", c.holes[it.Hole].Position, m.Values[it.Value])
					}
				}
				got = append(got, s)
			}
			if m.Err != nil {
				got = append(got, "ERR "+m.Err.Error())
			}
			if m.Left > 0 {
				got = append(got, fmt.Sprintf("LEFT %d", m.Left))
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %s\nwant %s", s, c.want)
			}
		})
	}
}

// TestMaxResult: a Call tells the maximum size of its results, or that there is none.
func TestMaxResult(t *testing.T) {
	for _, c := range []struct {
		version, procedure uint32
		data               []byte
		want               int64
		reducible          bool
	}{
		{2, 6, bytesOf(fh32, 0, 4096, 0), 4096, true},
		{2, 5, bytesOf(fh32), Unbounded, true},
		{3, 1, bytesOf("fh"), 0, false},
		{3, 6, bytesOf("fh", l(0), 1<<20), 1 << 20, true},
		{3, 16, bytesOf("fh", l(0), l(0), 8192), 8192, false},
		{3, 17, bytesOf("fh", l(0), l(0), 512, 32768), 32768, false},
		{3, 7, bytesOf("fh", l(0), 4, 0, "data"), 0, false},
		{4, 1, compoundOf(25, id, l(0), 1<<19), 1 << 19, true},
		{4, 1, compoundOf(26, l(0), l(0), 512, 65536, 0), 65536, false},
		{4, 1, compoundOf(27), Unbounded, true},
		{4, 1, compoundOf(72, "user.a"), Unbounded, false},
		{4, 1, compoundOf(74, l(0), 1024), 1024, false},
		{4, 1, compoundOf(68, id, l(0), 1<<18), 1 << 18, false},
	} {
		var m Message
		m.Call(ProgramNFS, c.version, c.procedure, NewStream(c.data, nil))
		if o := m.Ops[0]; !m.Complete || o.MaxResult != c.want || o.ReducibleResult != c.reducible {
			t.Errorf("version %d %s: %d, reducible %t, want %d: %v", c.version, o.Name, o.MaxResult, o.ReducibleResult, c.want, m.Err)
		}
	}
}

func TestSentinels(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want error
	}{
		{compoundOf(22, 99), ErrTruncated},
		{compoundOf(99), ErrUnknown},
		{compoundOf(12, 1, 0, l(0), l(0), 2), ErrMalformed},
		{bytesOf("", 1, 5000, bytes.Repeat(bytesOf(24), 5000)), ErrMalformed},
	} {
		var m Message
		if m.Call(ProgramNFS, 4, 1, NewStream(c.data, nil)); !errors.Is(m.Err, c.want) {
			t.Errorf("%v, want %v", m.Err, c.want)
		}
	}
}

// TestLacks: an item that is not there to its end has the length that its count says, without padding.
func TestLacks(t *testing.T) {
	lookup := bytesOf("fh", "a name of 21 bytes...")
	for _, c := range []struct {
		data     []byte
		from, to int64
		lacks    bool
	}{
		{lookup[:20], 12, 33, true},
		{lookup[:33], 12, 33, true}, // only the padding is missing
		{lookup[:10], 8, 12, true},
		{lookup, 36, 36, false},
	} {
		var m Message
		m.Call(ProgramNFS, 3, 3, NewStream(c.data, nil))
		if from, to, lacks := m.Lacks(); from != c.from || to != c.to || lacks != c.lacks {
			t.Errorf("of %d bytes: %d to %d, %t, want %d to %d, %t", len(c.data), from, to, lacks, c.from, c.to, c.lacks)
		}
	}
}

// TestLimit: values beyond the limit are counted, and the message is decoded to its end.
func TestLimit(t *testing.T) {
	m := Message{Limit: 10}
	m.Reply(ProgramNFS, 4, 1, NewStream(resultsOf(0, 55, 0, 100, make([]byte, 400)), nil))
	if len(m.Values) != 10 || m.Dropped != 92 || !m.Complete || m.Left != 0 { // 10 includes the tag and the list
		t.Errorf("%d values, %d dropped: %v", len(m.Values), m.Dropped, m.Err)
	}
	if m.Call(ProgramNFS, 3, 6, NewStream(bytesOf("fh", l(0), 9), nil)); len(m.Values) != 3 || m.Dropped != 0 || m.Limit != 10 {
		t.Errorf("%d values, %d dropped", len(m.Values), m.Dropped)
	}
}

func TestFind(t *testing.T) {
	var m Message
	m.Call(ProgramNFS, 4, 1, NewStream(bytesOf("", 1, 2, 22, "fh", 25, id, l(77), 9), nil))
	if v := m.Find(1, "offset"); v == nil || v.Uint != 77 || v.At != 44 || v.Len != 8 {
		t.Errorf("the offset of operation 1 is %+v; want 77 in 8 bytes at 44", v)
	}
	if v := m.Find(0, "offset"); v != nil {
		t.Errorf("operation 0 has no offset, but Find returns %+v", v)
	}
	if v := m.Find(0, "fh"); v == nil || string(v.Bytes) != "fh" || v.At != 16 || v.Len != 8 {
		t.Errorf("the file handle of operation 0 is %+v; want fh in 8 bytes at 16", v)
	}
	m.Call(ProgramNFS, 4, 1, NewStream(compoundOf(9, 2, 0x12, 2), nil))
	if got := slices.Collect(Attributes(m.Find(0, "attr_request").Bytes)); !slices.Equal(got, []uint32{1, 4, 33}) {
		t.Errorf("attributes %v", got)
	}
	if AttributeName(33) != "mode" || AttributeName(9999) != "" {
		t.Error("names of attributes")
	}
}

// within reports whether part is a slice of the same memory as whole.
func within(part, whole []byte) bool {
	from, to := uintptr(unsafe.Pointer(&whole[0])), uintptr(unsafe.Pointer(&part[0]))
	return to >= from && to+uintptr(cap(part)) <= from+uintptr(len(whole))
}

// sameWalk compares decoding with values to decoding without. They may only differ in
// attributes: malformed ones are an error only if values are decoded.
func sameWalk(t *testing.T, m, quiet *Message) {
	t.Helper()
	failed := quiet.stream.failed // at the first of several items that are skipped in one step
	if m.Complete && !quiet.Complete || m.stream.failed != failed || m.Left != quiet.Left && !failed {
		t.Fatalf("%v, %d left; without values %v, %d left", m.Err, m.Left, quiet.Err, quiet.Left)
	}
	if m.Status != quiet.Status || m.HasStatus != quiet.HasStatus || m.Count != quiet.Count || m.Named != quiet.Named || m.MinorVersion != quiet.MinorVersion {
		t.Fatalf("status %d, %d operations; without values %d, %d", m.Status, m.Count, quiet.Status, quiet.Count)
	}
	if len(m.Ops) != len(quiet.Ops) || len(m.Items) != len(quiet.Items) || len(quiet.Values) != 0 || quiet.Dropped != 0 {
		t.Fatalf("%d operations, %d items; without values %d, %d", len(m.Ops), len(m.Items), len(quiet.Ops), len(quiet.Items))
	}
	for i, o := range m.Ops {
		if failed && i == len(m.Ops)-1 {
			o.End = quiet.Ops[i].End
		}
		if o.First, o.Last = 0, 0; o != quiet.Ops[i] {
			t.Fatalf("%+v, without values %+v", o, quiet.Ops[i])
		}
	}
	for i, it := range m.Items {
		if it.Value = -1; it != quiet.Items[i] {
			t.Fatalf("%+v, without values %+v", it, quiet.Items[i])
		}
	}
	if quiet.Err != nil && quiet.Err != ErrTruncated && quiet.Err != ErrMalformed && quiet.Err != ErrUnknown {
		t.Fatalf("without values: %v", quiet.Err)
	}
}

// fuzzMessage decodes one input as every procedure, and checks the properties that the
// result has for any input.
func fuzzMessage(t *testing.T, data []byte, at int64, reply bool) {
	var m Message
	quiet := Message{Limit: -1}
	decode := func(program, version, procedure uint32, holes []Hole) {
		again := slices.Clone(holes)
		if reply {
			m.Reply(program, version, procedure, NewStream(data, holes))
			quiet.Reply(program, version, procedure, NewStream(data, again))
		} else {
			m.Call(program, version, procedure, NewStream(data, holes))
			quiet.Call(program, version, procedure, NewStream(data, again))
		}
		sameWalk(t, &m, &quiet)
		if !slices.Equal(holes, again) {
			t.Fatalf("holes %v, without values %v", holes, again)
		}
		moved := int64(0)
		for _, it := range m.Items {
			if it.Reduced {
				moved += (it.Length + 3) &^ 3
			}
		}
		if m.Left < 0 || m.Left > int64(len(data)) || m.Complete != (m.Err == nil) {
			t.Fatalf("%d of %d bytes left, complete %t: %v", m.Left, len(data), m.Complete, m.Err)
		}
		if len(m.Values) > len(data)+64 || len(m.Ops) > len(data)/4+1 || len(m.Items) > len(data)/4+1 {
			t.Fatalf("%d values, %d operations, %d items of %d bytes", len(m.Values), len(m.Ops), len(m.Items), len(data))
		}
		for i := range m.Ops {
			o := &m.Ops[i]
			if o.First > o.Last || o.Last > len(m.Values) || o.At > o.End || o.End > int64(len(data))+moved {
				t.Fatalf("operation %+v", *o)
			}
		}
		for i := range m.Items {
			it := &m.Items[i]
			if it.Op < -1 || it.Op >= len(m.Ops) || it.Op < 0 && !IsCompound(program, version, procedure) || it.Value < -1 || it.Value >= len(m.Values) || it.Hole < -1 || it.Hole >= len(holes) || m.Whose(it) == "" {
				t.Fatalf("a data item refers to operations, values or holes that do not exist, or has no name: %+v", *it)
			}
		}
		for i := range m.Values {
			v := &m.Values[i]
			if v.At < 0 || v.Len < 0 || v.At+v.Len > int64(len(data))+moved || v.Name == "" {
				t.Fatalf("a value lies outside of the message, or has no name: %+v", *v)
			}
			if n := len(v.Bytes); n > 0 && (!within(v.Bytes, data) || int64(n) > v.Len) {
				t.Fatalf("%+v is not of the input", *v)
			}
			if text := v.String(); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("the text of a value has control characters: %q", text)
			}
		}
	}
	for program, versions := range map[uint32][]uint32{ProgramNFS: {2, 3, 4}, ProgramMount: {1, 3}, ProgramNFSACL: {2, 3}, ProgramNLM: {4}, ProgramRPCBind: {2, 3, 4}, ProgramStatus: {1}, ProgramCallback: {1}} {
		for _, version := range versions {
			for procedure := range uint32(len(procedureTable(program, version))) {
				decode(program, version, procedure, []Hole{{Position: at, Length: 100}, {Position: -1, Length: 1}})
			}
		}
	}
}

func FuzzCall(f *testing.F) {
	forward, callback := samples()
	for number, s := range forward {
		f.Add(compoundOf(number, s.args), int64(-1))
	}
	for number, s := range callback {
		f.Add(bytesOf("", 1, 7, 1, number, s.args), int64(-1))
	}
	f.Add(compoundOf(18, 0, 0x10002, 0, l(5), "own", 1, 1, 1, 16, string(l(0)), 0, "file"), int64(-1))
	f.Add(bytesOf("fh", l(0), 5, 0, 5), int64(28))
	f.Add(bytesOf("dir", "link", 0, 0, 1, 0, 0, 0, 0, "target"), int64(44))
	f.Add(bytesOf("", 1, 7, 2, 11, id, 1, 0, 0, 0, 1, id, 1, 4, 5, 4, id, 1, "fh"), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, at int64) { fuzzMessage(t, data, at, false) })
}

func FuzzReply(f *testing.F) {
	forward, callback := samples()
	for number, s := range forward {
		f.Add(resultsOf(0, number, 0, s.results), int64(-1))
	}
	for number, s := range callback {
		f.Add(resultsOf(0, number, 0, s.results), int64(-1))
	}
	f.Add(resultsOf(0, 26, 0, l(1), 1, l(2), "f", 1, 0x80000, string(bytesOf("handle")), 0, 1), int64(-1))
	f.Add(bytesOf(0, 0, l(4), 1, l(42), "file", l(1), 1, fattr3, 1, "obj", 1, l(43), "gone", l(2), 0, 0, 0, 1), int64(0))
	f.Add(resultsOf(0, 68, 0, 1, 2, 0, l(0), 100, 0, l(200), "abc"), int64(-1))
	f.Add(resultsOf(0, 9, 0, 3, 2, 0, 1<<31, "\x00\x00\x00\x01more"), int64(16))
	f.Fuzz(func(t *testing.T, data []byte, at int64) { fuzzMessage(t, data, at, true) })
}
