package export_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// commented exports the packets of a source and returns the pcapng file.
func commented(t testing.TB, source capture.Source) ([]byte, export.PacketsReport) {
	t.Helper()
	var out bytes.Buffer
	e := export.NewPackets(&out, "test")
	if _, err := dissect.New(e.Handler(), dissect.Options{}).Run(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	if err := e.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), e.Report
}

// comments returns the comment of each packet of a pcapng file. It reads the file
// with code of its own, not with that of the project.
func comments(t testing.TB, file []byte) (all []string) {
	t.Helper()
	le := binary.LittleEndian
	for len(file) > 0 {
		size := le.Uint32(file[4:])
		if size%4 != 0 || le.Uint32(file[size-4:]) != size {
			t.Fatalf("a block of %d bytes ends with %d", size, le.Uint32(file[size-4:]))
		}
		block := file[:size-4]
		if file = file[size:]; le.Uint32(block) != 6 {
			continue
		}
		comment := ""
		for o := block[28+(le.Uint32(block[20:])+3)&^3:]; len(o) >= 4 && le.Uint16(o) != 0; o = o[4+(le.Uint16(o[2:])+3)&^3:] {
			if le.Uint16(o) == 1 {
				comment = string(o[4 : 4+le.Uint16(o[2:])])
			}
		}
		all = append(all, comment)
	}
	return all
}

// TestPackets verifies that packets, times, link types and interfaces are
// preserved.
func TestPackets(t *testing.T) {
	for _, name := range []string{"rocev2-nconnect41.pcapng.zst", "lab-iwarpcallback41.pcap.zst", "derived-ib-erf-callback41.pcap.zst", "derived-snaplen128-callback41.pcap.zst"} {
		file, report := commented(t, testkit.Open(t, captures+name))
		want, _ := testkit.Frames(t, captures+name)
		if report.Packets != int64(len(want)) {
			t.Errorf("%s: %d packets, want %d", name, report.Packets, len(want))
		}
		path := filepath.Join(t.TempDir(), "again")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		again, _ := testkit.Frames(t, path)
		for i := range want {
			w, got := &want[i], &again[i]
			if got.Time != w.Time || got.Length != w.Length || got.LinkType != w.LinkType || !bytes.Equal(got.Data, w.Data) || len(again) != len(want) || *got.From != *w.From {
				t.Fatalf("%s: packet %d: %+v %+v, want %+v %+v", name, i+1, *got, got.From, *w, w.From)
			}
		}
	}
}

// TestBefore1970 verifies that times of a wrong clock are preserved in both formats.
func TestBefore1970(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.Client.Call(synth.Null())
	c.Server.Reply(synth.NullReply())
	shift := w.Frames[0].Time + 50e9
	for _, f := range w.Frames {
		f.Time -= shift
	}
	var in bytes.Buffer
	out := capture.NewWriter(&in)
	for _, f := range w.Frames {
		if err := out.Write(&capture.Frame{Time: f.Time, LinkType: capture.LinkType(f.LinkType), Length: f.Length, Data: f.Data}); err != nil {
			t.Fatal(err)
		}
	}
	out.Finish()
	source := func() capture.Source {
		f, err := capture.NewFile("wire", bytes.NewReader(in.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	packets, _ := commented(t, source())
	path := filepath.Join(t.TempDir(), "packets")
	if err := os.WriteFile(path, packets, 0o600); err != nil {
		t.Fatal(err)
	}
	again, _ := testkit.Frames(t, path)
	for i := range again {
		if again[i].Time != w.Frames[i].Time {
			t.Errorf("packet %d at %d ns, want %d", i+1, again[i].Time, w.Frames[i].Time)
		}
	}
	if len(again) != len(w.Frames) {
		t.Errorf("%d packets, want %d", len(again), len(w.Frames))
	}
	path, report, _ := rpcTCP(t, source())
	if report.Calls != 1 || report.Replies != 1 {
		t.Errorf("exporting the export gives %q, want one Call and one Reply", report.String())
	}
	as, _ := testkit.Frames(t, path)
	if len(as) == 0 || as[0].Time >= 0 {
		t.Errorf("%d packets of TCP, at %d first", len(as), as[0].Time)
	}
}

// TestPacketComments verifies the comment of each packet on both transports.
func TestPacketComments(t *testing.T) {
	for name, test := range map[string]struct {
		open func(*synth.Wire, synth.Options) *synth.Conn
		want []string // without the handshake
	}{
		"RoCE": {(*synth.Wire).RoCE, []string{
			"Call", "acknowledges Call",
			"requests Read chunk 1 segment 1, bytes 0-1999 of 3000", "Read chunk 1 segment 1, bytes 0-1023 of 3000", "Read chunk 1 segment 1, bytes 1024-1999 of 3000",
			"requests Read chunk 1 segment 2, bytes 2000-2999 of 3000", "Read chunk 1 segment 2, bytes 2000-2999 of 3000",
			"Write chunk 2 segment 1, bytes 0-1023 of 2000", "Write chunk 2 segment 1, bytes 1024-1499 of 2000",
			"Write chunk 2 segment 1, bytes 1024-1499 of 2000, retransmitted",
			"Reply", "acknowledges Reply",
		}},
		"iWARP": {(*synth.Wire).IWARP, []string{
			"Call", "acknowledges Call",
			"requests Read chunk 1 segment 1, bytes 0-1999 of 3000", "Read chunk 1 segment 1, bytes 0-1399 of 3000", "Read chunk 1 segment 1, bytes 1400-1999 of 3000",
			"requests Read chunk 1 segment 2, bytes 2000-2999 of 3000", "Read chunk 1 segment 2, bytes 2000-2999 of 3000",
			"Write chunk 2 segment 1, bytes 0-1399 of 2000", "Write chunk 2 segment 1, bytes 1400-1499 of 2000",
			"Write chunk 2 segment 1, retransmitted", // retransmitted bytes of TCP
			"Reply",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := test.open(w, synth.Options{})
			c.Connect()
			before := len(w.Frames)
			call := synth.Write3(0, make([]byte, 3000)).Reduce(0xa1)
			second := call.Reads[0]
			second.Handle, second.Length, second.Offset = 0xa2, 1000, 1<<40
			call.Reads[0].Length = 2000
			call.Reads = append(call.Reads, second)
			call = call.Offer(synth.Mem(0xb1, 100)).Offer(synth.Mem(0xb2, 2000))
			c.Client.Call(call)
			c.Server.Ack()
			c.Server.Read(0xa1, call.Reads[0].Offset, make([]byte, 2000))
			c.Server.Read(0xa2, second.Offset, make([]byte, 1000))
			frames := c.Server.Write(0xb2, call.Writes[1][0].Offset, make([]byte, 1500))
			w.Retransmit(frames[len(frames)-1])
			c.Server.Reply(synth.Write3Reply(3000).To(call))
			if name == "RoCE" { // an acknowledgement of TCP does not belong to one message
				c.Client.Ack()
			}
			file, _ := commented(t, testkit.Source(t, w))
			got := comments(t, file)[before:]
			want := slices.Clone(test.want)
			for i := range want {
				want[i] = "connection 0, XID 0x00000001, transaction 1, " + want[i]
			}
			if !slices.Equal(got, want) {
				t.Errorf("comments\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// TestPacketsTshark verifies that tshark reads the same comments.
func TestPacketsTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	file, report := commented(t, testkit.Open(t, captures+"rocev2-loss42.pcap.zst"))
	cmd := exec.Command(tshark, "-r", "-", "-Y", "frame.comment", "-T", "fields", "-e", "frame.comment")
	cmd.Stdin = bytes.NewReader(file)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range comments(t, file) {
		if c != "" {
			want = append(want, c)
		}
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) || int64(len(got)) != report.Commented {
		t.Errorf("%d comments, want %d of %+v", len(got), len(want), report)
	}
}

// TestPacketsKeepOptions: comments, options and names of addresses of a pcapng file are exported. A file whose packets are
// rewritten has none of them.
func TestPacketsKeepOptions(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	c.RPC(synth.Null(), synth.NullReply())
	option := func(code byte, text string) string {
		return string([]byte{code, 0, byte(len(text)), 0}) + text + strings.Repeat("\x00", -len(text)&3)
	}
	var input bytes.Buffer
	in := capture.NewWriter(&input)
	in.Section("dumpcap", option(1, "a comment of the file"))
	in.Names("\x01\x00\x0b\x00\xc0\x00\x02\x01server\x00\x00\x00\x00\x00\x00")
	number := in.Interface(&capture.Origin{LinkType: capture.LinkEthernet, Name: "eth0", Digits: 9, Options: option(11, "\x00port 4791")})
	for i := range w.Frames {
		f := capture.Frame{Time: w.Frames[i].Time, Data: w.Frames[i].Data, Length: len(w.Frames[i].Data)}
		if err := in.Packet(number, &f, "note of the user"); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	for _, rewritten := range []bool{false, true} {
		source, err := capture.NewFile("x", bytes.NewReader(input.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		e := export.NewPackets(&out, "test")
		if rewritten {
			e.Rewrite = func(f *capture.Frame, _ *record.Packet, _ wiremap.StreamOffset) ([]byte, error) { return f.Data, nil }
		}
		if _, err := dissect.New(e.Handler(), dissect.Options{}).Run(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
		want := 1
		if rewritten {
			want = 0
		}
		for text, n := range map[string]int{"a comment of the file": want, "server": want, "port 4791": want, "note of the user": want * len(w.Frames), "dumpcap": 0, "test": 1} {
			if got := bytes.Count(out.Bytes(), []byte(text)); got != n {
				t.Errorf("with rewritten packets %t, the exported file has %q %d times, want %d", rewritten, text, got, n)
			}
		}
	}
}
