package dissect_test

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
	"github.com/rdmadump/rdmadump/rocev2"
)

// TestErrors compares the 19 wrong messages of rocev2-errors.pcap with the answers that their
// sender saw (rocev2-errors.txt), case by case.
func TestErrors(t *testing.T) {
	t.Run("RoCEv2", func(t *testing.T) { errorCases(t, "rocev2-errors.pcap.zst", nil) })
	t.Run("iWARP", func(t *testing.T) { // Only the message about a refused operation differs.
		errorCases(t, "lab-iwarperrors.pcap.zst", strings.NewReplacer("remote-error-nak", "terminate"))
	})
}

// errorCases has, for each case of the lab's badpeer, the status of its transaction, the answer,
// and the rules that its messages violate.
var errorAnswers = []struct {
	name, status, answer string
	findings             []string
}{
	{"null-nopriv", "complete", "SUCCESS", nil},
	{"null-priv", "complete", "SUCCESS", nil},
	{"vers2", "rdma_error", "ERR_VERS 1-1", []string{"rdma-version", "rdma-error"}},
	{"done", "no_reply", "", []string{"rdma-done", "error-not-answered"}},
	{"msgp", "rdma_error", "ERR_CHUNK", []string{"rdma-msgp", "rdma-error"}},
	{"proc99", "rdma_error", "ERR_CHUNK", []string{"rdma-proc-unknown", "rdma-error"}},
	{"short", "rdma_error", "ERR_CHUNK", []string{"header-truncated", "rdma-error"}},
	{"nomsg-nochunks", "no_reply", "", []string{"nomsg-without-chunk", "error-not-answered"}},
	{"pos-unaligned", "rdma_error", "ERR_CHUNK", []string{"read-position-unaligned", "read-position-invalid", "rdma-error"}},
	{"bad-rkey", "no_reply", "", []string{"read-position-invalid", "remote-error-nak", "connection-lost"}},
	{"too-long", "no_reply", "", []string{"inline-threshold-exceeded", "remote-error-nak", "connection-lost"}},
	{"zero-credits", "complete", "SUCCESS", []string{"credits-requested-zero"}},
	{"xid-mismatch", "complete", "SUCCESS", []string{"xid-mismatch"}}, // RFC 8166 s.4.2.1 allows the responder to ignore the XID of the RPC message
	{"priv-odd-offset", "complete", "SUCCESS", nil},
	{"priv-vers2", "complete", "SUCCESS", nil},
	{"huge-segcount", "rdma_error", "ERR_CHUNK", []string{"header-truncated", "rdma-error"}},
	{"reply-as-call", "no_call", "SUCCESS", []string{"reply-without-call"}},
	{"truncated-list", "rdma_error", "ERR_CHUNK", []string{"header-truncated", "rdma-error"}},
	{"write-bad-rkey", "no_reply", "", []string{"invalidation-not-negotiated", "remote-error-nak", "reply-not-delivered"}},
}

func errorCases(t *testing.T, name string, words *strings.Replacer) {
	var got []string
	repeats := map[int]int64{}
	private := map[int]*record.PrivateData{}
	source := map[int]string{}
	read(t, name, dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			answer := ""
			switch {
			case r.RDMAErrorRange.Known():
				versions := r.RDMAErrorRange.Or(record.VersionRange{})
				answer = fmt.Sprintf("%s %d-%d", r.RDMAError.Or(""), versions.Low, versions.High)
			case r.RDMAError.Known():
				answer = r.RDMAError.Or("")
			case r.RPCStatus.Known():
				answer = r.RPCStatus.Or("")
			}
			if id, known := r.RetransmitOf.Get(); known {
				repeats[r.Connection] = id
			}
			got = append(got, fmt.Sprintf("%02d %v %s %q %s", r.Connection, r.XID, r.Status, answer, strings.Join(r.Findings, ",")))

			return nil
		},
		Connection: func(c *record.Connection) error {
			if p := c.PrivateData.Client; p != nil {
				copied := *p
				private[c.ID] = &copied
			}
			source[c.ID] = fmt.Sprint(c.InlineThreshold.Or(record.InlineThresholds{}))

			return nil
		},
	}, dissect.Options{})
	slices.Sort(got)
	if len(got) != len(errorAnswers) {
		t.Fatalf("%d transactions, want %d:\n%s", len(got), len(errorAnswers), strings.Join(got, "\n"))
	}
	for i, c := range errorAnswers {
		want := fmt.Sprintf("%02d 0xbad04567 %s %q %s", i, c.status, c.answer, strings.Join(c.findings, ","))
		if words != nil {
			want = words.Replace(want)
		}
		if got[i] != want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got[i], want)
		}
	}
	// All have the same XID, but their procedures and lengths differ.
	if len(repeats) > 0 {
		t.Errorf("retransmissions by connection %v, want none", repeats)
	}
	for id, want := range map[int]string{0: "{1024 1024 default}", 1: "{4096 4096 private_data}", 13: "{4096 4096 private_data}", 14: "{1024 1024 default}"} {
		if source[id] != want {
			t.Errorf("%s: thresholds %s, want %s", errorAnswers[id].name, source[id], want)
		}
	}
	if private[0] != nil || private[14] != nil {
		t.Errorf("private data where none is usable: %v, %v", private[0], private[14])
	}
	if p := private[13]; p == nil || *p != (record.PrivateData{Offset: 3, Version: 1, RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 4096}) {
		t.Errorf("priv-odd-offset: private data %v", p)
	}
}

// TestMixed: only the NFS connection has transactions.
func TestMixed(t *testing.T) {
	layers, transactions := map[int]string{}, map[int]int{}
	read(t, "rocev2-mixed.pcap.zst", dissect.Handler{
		Connection: func(c *record.Connection) error {
			layers[c.ID] = c.UpperLayer
			return nil
		},
		Transaction: func(r *record.Transaction) error {
			transactions[r.Connection]++
			return nil
		},
	}, dissect.Options{})
	want := map[int]string{0: "rpcrdma", 1: "rping", 2: "nvme", 3: "nvme", 4: "unknown"}
	if fmt.Sprint(layers) != fmt.Sprint(want) {
		t.Errorf("upper layers %v, want %v", layers, want)
	}
	if len(transactions) != 1 || transactions[0] != 21 {
		t.Errorf("transactions by connection %v, want 21 on connection 0", transactions)
	}
}

// TestLoss: a capture at the client of a lossy network. Packets that were lost before the capture
// point are retransmitted, so that none is missing, and a packet that was captured twice counts
// once.
func TestLoss(t *testing.T) {
	var first record.Connection
	moved := map[string]int64{}
	s := read(t, "rocev2-loss42.pcap.zst", dissect.Handler{
		Connection: func(c *record.Connection) error {
			if c.ID == 0 {
				first = *c
			}

			return nil
		},
		Transaction: func(r *record.Transaction) error {
			for _, c := range r.ReadChunks {
				for _, g := range c.Segments {
					moved["offered"] += int64(g.Length)
					moved["moved"] += g.MovedBytes
				}
			}
			for _, c := range r.WriteChunks {
				for _, g := range c.Segments {
					moved["returned"] += int64(g.ReturnedLength.Or(0))
					moved["written"] += g.MovedBytes
				}
			}

			return nil
		},
	}, dissect.Options{})
	if s.NotCaptured != 0 || s.Transactions["complete"] != 203 {
		t.Errorf("%d lost, transactions %v; want none lost, 203 complete", s.NotCaptured, s.Transactions)
	}
	if moved["offered"] == 0 || moved["offered"] != moved["moved"] || moved["returned"] == 0 || moved["returned"] != moved["written"] {
		t.Errorf("bytes %v: what was offered moved whole, and what was returned was written", moved)
	}
	if first.Retransmitted < 1000 || first.OutOfOrder == 0 {
		t.Errorf("%d retransmitted, %d out of order", first.Retransmitted, first.OutOfOrder)
	}
}

// TestRebuild rebuilds Calls and Replies, and compares the file data in them with the data that
// the client wrote and read (rocev2-data42.md5).
func TestRebuild(t *testing.T) {
	sums, err := os.ReadFile(captures + "rocev2-data42.md5")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // names by checksum
	for line := range strings.Lines(string(sums)) {
		f := strings.Fields(line)
		want[f[0]] = f[1]
	}
	written, readBack := map[string][]byte{}, map[string][]byte{}
	read(t, "rocev2-data42.pcap.zst", dissect.Handler{
		Payload: func(r *record.Transaction, c, a *record.Payload) error {
			if c == nil || a == nil || len(c.Holes)+len(a.Holes) > 0 {
				t.Errorf("%v: not rebuilt whole", r.XID)
				return nil
			}
			call, reply := c.Data, a.Data
			if record.Some(int64(len(call))) != r.Call.PayloadBytes || record.Some(int64(len(reply))) != r.Reply.PayloadBytes {
				t.Errorf("%v: rebuilt %d and %d bytes, the record says %d and %d", r.XID, len(call), len(reply), r.Call.PayloadBytes.Or(-1), r.Reply.PayloadBytes.Or(-1))
			}
			switch {
			case slices.Contains(r.Operations, "WRITE"):
				handle, offset, data := writeArguments(t, call)
				place(written, handle, offset, data)
			case slices.Contains(r.Operations, "READ_PLUS"), slices.Contains(r.Operations, "READ"):
				handle, offset, data := readResults(t, r, call, reply)
				place(readBack, handle, offset, data)
			}

			return nil
		},
	}, dissect.Options{Rebuild: true})
	for what, files := range map[string]map[string][]byte{"written": written, "read": readBack} {
		found := map[string]bool{}
		for _, data := range files {
			sum := md5.Sum(data)
			found[want[hex.EncodeToString(sum[:])]] = true
		}
		for sum, name := range want {
			if !found[name] {
				t.Errorf("%s: no file with the data of %s (md5 %s) among %d files", what, name, sum, len(files))
			}
		}
	}
}

func place(files map[string][]byte, handle string, offset uint64, data []byte) {
	need := int(offset) + len(data)
	if have := files[handle]; len(have) < need {
		files[handle] = append(have, make([]byte, need-len(have))...)
	}
	copy(files[handle][offset:], data)
}

// xdr reads the two layouts that the test needs, without the code under test.
type xdr struct {
	t    *testing.T
	data []byte
}

func (x *xdr) word() uint32 {
	if len(x.data) < 4 {
		x.t.Fatal("XDR ends early")
	}
	v := binary.BigEndian.Uint32(x.data)
	x.data = x.data[4:]
	return v
}

func (x *xdr) skip(n int) { x.data = x.data[n:] }

func (x *xdr) opaque() []byte {
	n := int(x.word())
	v := x.data[:n]
	x.data = x.data[(n+3)&^3:]
	return v
}

func (x *xdr) long() uint64 { return uint64(x.word())<<32 | uint64(x.word()) }

// callHead skips the RPC header, tag, minor version and count of a COMPOUND that begins with
// SEQUENCE and PUTFH, and returns the file handle.
func callHead(t *testing.T, call []byte) (*xdr, string) {
	x := &xdr{t, call}
	x.skip(24)
	x.word()
	x.opaque()
	x.word()
	x.opaque()
	x.opaque() // tag
	x.skip(8)
	if op := x.word(); op != 53 {
		t.Fatalf("operation %d, want SEQUENCE", op)
	}
	x.skip(32)
	if op := x.word(); op != 22 {
		t.Fatalf("operation %d, want PUTFH", op)
	}
	return x, string(x.opaque())
}

func writeArguments(t *testing.T, call []byte) (string, uint64, []byte) {
	x, handle := callHead(t, call)
	if op := x.word(); op != 38 {
		t.Fatalf("operation %d, want WRITE", op)
	}
	x.skip(16)
	offset := x.long()
	x.word()
	return handle, offset, x.opaque()
}

func readResults(t *testing.T, r *record.Transaction, call, reply []byte) (string, uint64, []byte) {
	x, handle := callHead(t, call)
	x.word()
	x.skip(16)
	offset := x.long()
	x = &xdr{t, reply}
	x.skip(12)
	x.word()
	x.opaque()
	x.skip(4) // accept state
	x.skip(4) // status
	x.opaque()
	x.skip(4)
	x.skip(8 + 36) // SEQUENCE
	x.skip(8)      // PUTFH
	op := x.word()
	x.skip(8) // status, eof
	if op == 25 {
		return handle, offset, x.opaque()
	}
	var data []byte
	for range x.word() { // READ_PLUS segments
		switch kind := x.word(); kind {
		case 0:
			at := x.long()
			content := x.opaque()
			if at != offset+uint64(len(data)) {
				t.Fatalf("%v: segment at %d", r.XID, at)
			}
			data = append(data, content...)
		case 1:
			x.long()
			data = append(data, make([]byte, x.long())...)
		}
	}
	return handle, offset, data
}

// The derived captures give the same transactions as the capture that they were made from.
func TestDerived(t *testing.T) {
	raw, want := transactions(t, "rocev2-callback41.pcap.zst", nil)
	if len(raw) != 64 {
		t.Fatalf("%d transactions in the original, want 64", len(raw))
	}
	for _, name := range []string{"ib", "ib-erf", "qinq", "rocev1", "sll2", "snaplen128"} {
		t.Run(name, func(t *testing.T) {
			_, got := transactions(t, "derived-"+name+"-callback41.pcap.zst", nil)
			if name == "snaplen128" { // The contents of the truncated parts are unknown.
				for i := range got {
					got[i], want[i] = shared(got[i]), shared(want[i])
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%d transactions, want %d", len(got), len(want))
			}
			answered := 0
			for i := range want {
				if name == "snaplen128" && strings.Contains(got[i], " answered ") { // The status of the Reply is in a truncated part.
					answered++
					want[i] = strings.Replace(want[i], " complete ", " answered ", 1)
				}
				if got[i] != want[i] {
					t.Errorf("transaction %d:\n got %s\nwant %s", i, got[i], want[i])
				}
			}
			if name == "snaplen128" && answered != 4 {
				t.Errorf("%d Replies are said to be answers of an unknown status, want 4", answered)
			}
		})
	}
}

// shared matches the part of a line that a capture with a snapshot length of 128 bytes still
// shows.
func shared(line string) string { return line[:strings.Index(line, " | ")] }

// transactions dissects a capture without the frames for which drop returns true, and returns
// each transaction as a line.
func transactions(t *testing.T, name string, drop func(*capture.Frame) bool) (ids []int64, lines []string) {
	t.Helper()
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		ids = append(ids, r.ID)
		lines = append(lines, describe(r))

		return nil
	}}, dissect.Options{})
	frames, _ := testkit.Frames(t, captures+name)
	for i := range frames {
		if drop == nil || !drop(&frames[i]) {
			d.Frame(&frames[i])
		}
	}
	d.Finish()
	return ids, lines
}

func describe(r *record.Transaction) string {
	k := keep(r)
	return fmt.Sprintf("%v %s %s %s read %s write %s reply %s returned %s invalidated %s left %v credits %d %d forms %s %s payload %d | %s %v %s",
		r.XID, r.Direction, k.status, k.rdmaProc, k.read, k.write, k.reply, k.returned, k.invalidated, k.left,
		k.requested, k.granted, k.callForm, k.replyForm, k.payload, k.procedure, r.Operations, strings.Join(r.Findings, ","))
}

// TestNoHandshake: if the handshake is not in the capture, the same transactions are found from
// the other traffic.
func TestNoHandshake(t *testing.T) {
	for _, name := range []string{"rocev2-nconnect41.pcapng.zst", "rocev2-callback41.pcap.zst", "rocev2-loss42.pcap.zst", "rocev2-mixed.pcap.zst"} {
		t.Run(name, func(t *testing.T) {
			_, want := transactions(t, name, nil)
			_, got := transactions(t, name, testkit.Handshake)
			findings := func(lines []string) {
				for i := range lines { // These violations are only known from the handshake.
					lines[i] = strings.Replace(lines[i], "invalidation-not-negotiated", "", 1)
				}
				slices.Sort(lines)
			}
			findings(want)
			findings(got)
			if !slices.Equal(got, want) {
				t.Errorf("%d transactions, want %d; first that differs: %s", len(got), len(want), firstDifference(got, want))
			}
		})
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "\n got " + a[i] + "\nwant " + b[i]
		}
	}
	return ""
}

// TestMiddle: a capture that starts in the middle of the traffic has Replies without Calls, and
// all other transactions are right.
func TestMiddle(t *testing.T) {
	_, want := transactions(t, "rocev2-nfs41.pcap.zst", nil)
	skip := int64(1000)
	_, got := transactions(t, "rocev2-nfs41.pcap.zst", func(f *capture.Frame) bool { return f.Number <= skip })
	same := 0
	for _, line := range got {
		if slices.Contains(want, line) {
			same++
		}
	}
	if same < 180 || len(got)-same > 2 {
		t.Errorf("%d of %d transactions are as in the whole capture", same, len(got))
	}
}

// TestHoles: packets that are missing from the capture leave holes that are reported, and the
// missing bytes are not invented.
func TestHoles(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"rocev2-nfs41.pcap.zst")
	var lost, complete, answered, noReply, noCall int64
	for start := 30; start < 2500; start += 13 { // Each run drops one frame.
		d := dissect.New(dissect.Handler{}, dissect.Options{})
		for i := range frames {
			if i != start {
				d.Frame(&frames[i])
			}
		}
		s, _ := d.Finish()
		lost += s.NotCaptured
		complete += s.Transactions["complete"]
		answered += s.Transactions["answered"] // a part of the Reply is missing
		noReply += s.Transactions["no_reply"]
		noCall += s.Transactions["no_call"]
		if s.NotCaptured > 1 {
			t.Errorf("without frame %d: %d packets are said to be lost", start, s.NotCaptured)
		}
		if total := s.Transactions["complete"] + s.Transactions["answered"] + max(s.Transactions["no_reply"], s.Transactions["no_call"]); total != 319 {
			t.Errorf("without frame %d: the transactions %v are not 319", start, s.Transactions)
		}
	}
	if lost == 0 || noReply == 0 || noCall == 0 || answered == 0 || answered > 20 {
		t.Errorf("%d lost, %d complete, %d without Reply, %d without Call", lost, complete, noReply, noCall)
	}
}

// TestTwice: a capture that contains every packet twice, such as that of a mirror port for both
// directions, gives the same result, because each packet counts once.
func TestTwice(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41.pcap.zst", "rocev2-callback41.pcap.zst", "rocev2-long42.pcap.zst", "iwarp-nfs41.pcap.zst"} {
		frames, _ := testkit.Frames(t, captures+name)
		want, _ := dissectFrames(frames)
		var twice []capture.Frame
		for i := range frames {
			twice = append(twice, frames[i], frames[i])
		}
		for i := range twice {
			twice[i].Number = int64(i + 1)
		}
		got, s := dissectFrames(twice)
		same(t, got, want)
		if s.NotCaptured != 0 || s.Transactions["complete"] != int64(len(want)) {
			t.Errorf("%s: %d lost, transactions %v", name, s.NotCaptured, s.Transactions)
		}
	}
}

// TestPSNWrap: the transactions are the same if PSNs wrap in the middle.
func TestPSNWrap(t *testing.T) {
	_, want := transactions(t, "rocev2-nfs41.pcap.zst", nil)
	frames, _ := testkit.Frames(t, captures+"rocev2-nfs41.pcap.zst")
	shift := map[byte]uint32{}
	var got []string
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		got = append(got, describe(r))
		return nil
	}}, dissect.Options{})
	for i := range frames {
		f := frames[i].Data
		if len(f) < 58 || f[12] != 8 || f[23] != 17 || f[36] != 0x12 || f[37] != 0xb7 || f[42] == 0x64 {
			d.Frame(&frames[i])
			continue
		}
		// Requests of the client and responses of the server share PSNs, and so do requests of
		// the server and responses of the client. Each pair has one shift.
		request := f[42] < 0x0d || f[42] > 0x12
		key := f[29]
		if !request {
			key = f[33]
		}
		psn := binary.BigEndian.Uint32(f[50:]) & 0xffffff
		if _, known := shift[key]; !known {
			shift[key] = 0xffffff - 200 - psn
		}
		top := f[50]
		binary.BigEndian.PutUint32(f[50:], (psn+shift[key])&0xffffff)
		f[50] = top
		if err := rocev2.FixICRC(f[14:]); err != nil {
			t.Fatal(err)
		}
		d.Frame(&frames[i])
	}
	s, _ := d.Finish()
	if s.NotCaptured != 0 || s.ICRCBad != 0 {
		t.Errorf("%d lost, %d ICRCs bad", s.NotCaptured, s.ICRCBad)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d transactions, want %d: %s", len(got), len(want), firstDifference(got, want))
	}
}

// TestBackward: Calls of the server are distinguished from Calls of the client.
func TestBackward(t *testing.T) {
	var got []string
	read(t, "rocev2-callback41.pcap.zst", dissect.Handler{Transaction: func(r *record.Transaction) error {
		if r.Direction == record.Backward {
			got = append(got, fmt.Sprintf("%s %v %d/%d", r.ProgramName.Or(""), r.Operations, r.Call.Credits.Or(0), r.Reply.Credits.Or(0)))
		}

		return nil
	}}, dissect.Options{})
	want := []string{
		"NFS_CB [CB_SEQUENCE CB_RECALL] 2/16", "NFS_CB [CB_SEQUENCE CB_RECALL] 2/16", "NFS_CB [CB_SEQUENCE CB_RECALL] 2/16",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("backward transactions:\n%s", strings.Join(got, "\n"))
	}
}

// TestLongCall: a Call in a Position Zero Read chunk is decoded like any other Call.
func TestLongCall(t *testing.T) {
	var ops []string
	read(t, "rocev2-long42.pcap.zst", dissect.Handler{Transaction: func(r *record.Transaction) error {
		if r.Call.Form == "long" {
			ops = append(ops, fmt.Sprintf("%s %s %s %s", r.Operations, r.RPCStatus.Or(""), r.NFSStatus.Or(""), r.Operation.Or("")))
		}

		return nil
	}}, dissect.Options{})
	if !slices.Equal(ops, []string{"[SEQUENCE PUTFH SETXATTR GETATTR] SUCCESS NFS4_OK SETXATTR"}) {
		t.Errorf("Long Calls: %q", ops)
	}
}

// FuzzDissector dissects frames with any content: nothing panics, and the packet counts of JSON
// are consistent.
func FuzzDissector(f *testing.F) {
	for _, name := range []string{"rocev2-errors.pcap.zst", "rocev2-callback41.pcap.zst", "derived-ib-erf-callback41.pcap.zst", "lab-iwarperrors.pcap.zst"} {
		frames, _ := testkit.Frames(f, captures+name)
		var all []byte
		for i := range min(len(frames), 80) {
			all = binary.BigEndian.AppendUint16(all, uint16(len(frames[i].Data)))
			all = append(all, frames[i].Data...)
		}
		f.Add(uint16(frames[0].LinkType), all)
	}
	f.Fuzz(func(t *testing.T, link uint16, stream []byte) {
		packets := 0
		// The records are drawn, too, because any record must be drawable.
		theme := render.NewTheme(false)
		text, tree := render.NewText(io.Discard, theme, 80), render.NewPackets(io.Discard, theme, 80)
		conns := render.NewText(io.Discard, theme, 80)
		tree.Tree = true
		var line []byte
		valid := func(line []byte) {
			if !json.Valid(line) {
				t.Errorf("not JSON: %s", line)
			}
		}
		d := dissect.New(dissect.Handler{
			Packet: func(p *record.Packet) error {
				packets++
				tree.Packet(p)
				line = render.AppendPacketJSON(line[:0], p, true)
				valid(line)

				return nil
			},
			Transaction: func(r *record.Transaction) error {
				text.Transaction(r)
				render.Ladder(io.Discard, theme, 80, r, true)
				line = render.AppendJSON(line[:0], r)
				valid(line)

				return nil
			},
			Connection: func(r *record.Connection) error {
				conns.Connection(r)
				return nil
			},
			Finding: func(r *record.Finding) error {
				text.Finding(r)
				return nil
			},
			Payload: func(*record.Transaction, *record.Payload, *record.Payload) error { return nil },
		}, dissect.Options{Rebuild: true, RPC: true, Tree: len(stream)%2 == 0})
		n := 0
		for r := bytes.NewBuffer(stream); r.Len() > 2; n++ {
			size := int(binary.BigEndian.Uint16(r.Next(2)))
			data := r.Next(size)
			d.Frame(&capture.Frame{Number: int64(n + 1), Time: int64(n) * 1e6, LinkType: capture.LinkType(link), Length: len(data), Data: data})
		}
		if s, _ := d.Finish(); s.Packets != int64(n) || packets != n {
			t.Errorf("%d frames, %d in the summary, %d described", n, s.Packets, packets)
		}
	})
}

// TestSomePackets: the arguments and results in a packet are the same if the packets before it are not
// described, whose Sends are then not kept.
func TestSomePackets(t *testing.T) {
	const sample = "../samples/rocev2-callback41.pcap"
	messages := func(first, last int64) map[int64]int {
		counts := map[int64]int{}
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			counts[p.Number] = len(p.Messages)
			return nil
		}}, dissect.Options{Tree: true, First: first, Last: last})
		if _, err := d.Run(t.Context(), testkit.Open(t, sample)); err != nil {
			t.Fatal(err)
		}
		return counts
	}
	all, some := messages(0, 0), 0
	for n := int64(200); n < 240; n++ {
		got := messages(n, n)
		if len(got) != 1 || got[n] != all[n] {
			t.Errorf("packet %d has %d messages, want %d", n, got[n], all[n])
		}
		some += all[n]
	}
	if some == 0 {
		t.Error("no packet has messages")
	}
}

// TestUnrecorded: a long time before the first packet of another file may be that between two recordings; of files that were recorded at the same
// time it is not.
func TestUnrecorded(t *testing.T) {
	const second = int64(1e9)
	for name, c := range map[string]struct {
		inputs []uint16
		times  []int64 // in seconds
		want   int
	}{
		"two recordings":                        {[]uint16{0, 0, 1, 1}, []int64{0, 20, 90, 100}, 1},
		"in the other order":                    {[]uint16{1, 1, 0, 0}, []int64{0, 20, 90, 100}, 1},
		"three":                                 {[]uint16{0, 1, 2}, []int64{0, 100, 300}, 2},
		"one file":                              {[]uint16{0, 0, 0}, []int64{0, 20, 200}, 0},
		"less than a minute":                    {[]uint16{0, 0, 1}, []int64{0, 20, 79}, 0},
		"less than was captured":                {[]uint16{0, 0, 1}, []int64{0, 100, 190}, 0},
		"a silence of hosts in two files":       {[]uint16{0, 1, 0, 1}, []int64{0, 1, 2, 90}, 0},
		"the first file again, after a silence": {[]uint16{0, 1, 0}, []int64{0, 1, 90}, 0},
	} {
		d := dissect.New(dissect.Handler{}, dissect.Options{})
		for i, at := range c.times {
			d.Frame(&capture.Frame{Number: int64(i) + 1, Time: 1e18 + at*second, LinkType: capture.LinkEthernet, Input: c.inputs[i], Length: 60, Data: make([]byte, 60)})
		}
		d.Finish()
		if got := d.Summary().Unrecorded; len(got) != c.want || c.want == 1 && (int64(got[0].From) != 1e18+20*second || int64(got[0].To) != 1e18+90*second) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
