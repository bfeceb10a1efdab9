package export_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/export"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

const captures = "../../testdata/captures/"

// rpc is one transaction with its messages.
type rpc struct {
	record      *record.Transaction
	call, reply []byte
}

// rpcTCP exports the RPCs of a source as TCP to a file. It returns the path of the
// file and the transactions that were exported.
func rpcTCP(t testing.TB, source capture.Source) (path string, report *export.RPCTCPReport, all []rpc) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "messages"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	e := export.NewRPCTCP(file)
	h := e.Handler()
	taken := h.Payload
	h.Payload = func(r *record.Transaction, call, reply *record.Payload) error {
		x := rpc{record: r.Clone()}
		if call != nil {
			x.call = slices.Clone(call.Data)
		}
		if reply != nil {
			x.reply = slices.Clone(reply.Data)
		}
		all = append(all, x)
		return taken(r, call, reply)
	}
	d := dissect.New(h, dissect.Options{Rebuild: true})
	if _, err := d.Run(t.Context(), source); err != nil {
		t.Log(err) // damaged captures are tested, too
	}
	path = filepath.Join(t.TempDir(), "out.pcapng")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if report, err = e.Write(out, "test"); err != nil {
		t.Fatal(err)
	}
	return path, report, all
}

// received is an RPC message of a TCP stream.
type received struct {
	time    int64 // of its last byte
	message []byte
}

// receive reads a capture of TCP and returns the messages of each stream by "from >
// to". It verifies sequence numbers, acknowledgements, lengths and checksums,
// and that times are in order if they are to be sorted.
func receive(t testing.TB, path string, sorted bool) map[string][]received {
	t.Helper()
	type stream struct {
		next    uint32
		started bool
		held    []byte
	}
	streams, out := map[string]*stream{}, map[string][]received{}
	last := int64(0)
	frames, _ := testkit.Frames(t, path)
	for _, f := range frames {
		p := gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.Default)
		tcp, is := p.TransportLayer().(*layers.TCP)
		if !is || p.ErrorLayer() != nil {
			t.Fatalf("frame %d: %v, %v", f.Number, p, p.ErrorLayer())
		}
		if sorted && f.Time < last {
			t.Errorf("frame %d: time %d after %d", f.Number, f.Time, last)
		}
		last = f.Time
		if f.Length == len(f.Data) {
			checksum(t, &f, p)
		}
		src, dst := p.NetworkLayer().NetworkFlow().Endpoints()
		name := fmt.Sprintf("%v:%d > %v:%d", src, uint16(tcp.SrcPort), dst, uint16(tcp.DstPort))
		back := fmt.Sprintf("%v:%d > %v:%d", dst, uint16(tcp.DstPort), src, uint16(tcp.SrcPort))
		s := streams[name]
		if s == nil {
			s = &stream{}
			streams[name] = s
		}
		if tcp.SYN {
			s.next, s.started = tcp.Seq, true
		}
		if !s.started || s.next != tcp.Seq {
			t.Errorf("frame %d, %s: sequence number %d, want %d", f.Number, name, tcp.Seq, s.next)
		}
		if tcp.ACK && (streams[back] == nil || tcp.Ack != streams[back].next) {
			t.Errorf("frame %d, %s: acknowledges %d", f.Number, name, tcp.Ack)
		}
		n := len(tcp.Payload) + f.Length - len(f.Data)
		s.next = tcp.Seq + uint32(n)
		if tcp.SYN || tcp.FIN {
			s.next++
		}
		s.held = append(s.held, tcp.Payload...)
		for len(s.held) >= 4 {
			mark := binary.BigEndian.Uint32(s.held)
			size := int(mark&^(1<<31)) + 4
			if mark>>31 != 1 {
				t.Fatalf("frame %d: record mark 0x%08x", f.Number, mark)
			}
			if len(s.held) < size && f.Length == len(f.Data) {
				break
			}
			size = min(size, len(s.held))
			out[name] = append(out[name], received{f.Time, slices.Clone(s.held[4:size])})
			s.held = slices.Clone(s.held[size:])
		}
	}
	for name, s := range streams {
		if len(s.held) > 0 {
			t.Errorf("%s ends inside of a record", name)
		}
	}
	return out
}

// checksum compares the checksums of IP and TCP with those that gopacket computes.
func checksum(t testing.TB, f *capture.Frame, p gopacket.Packet) {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	tcp := p.TransportLayer().(*layers.TCP)
	tcp.SetNetworkLayerForChecksum(p.NetworkLayer())
	var again []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		again = append(again, l.(gopacket.SerializableLayer))
	}
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, again...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), f.Data[:len(b.Bytes())]) {
		t.Errorf("frame %d: lengths or checksums are wrong\n got %x\nwant %x", f.Number, f.Data[:60], b.Bytes()[:60])
	}
}

// compareRPCs compares the messages in a capture of TCP with those of transactions.
func compareRPCs(t testing.TB, path string, all []rpc) {
	t.Helper()
	var want, got []string
	note := func(list *[]string, server bool, time int64, message []byte) {
		from := "client"
		if server {
			from = "server"
		}
		*list = append(*list, fmt.Sprintf("%s %d %x", from, time, message))
	}
	for _, x := range all {
		server := x.record.Direction == record.Backward
		if x.call != nil {
			note(&want, server, int64(x.record.Call.Time), x.call)
		}
		if x.reply != nil {
			note(&want, !server, int64(x.record.Reply.LastTime), x.reply)
		}
	}
	for name, list := range receive(t, path, true) {
		for _, h := range list {
			note(&got, strings.Contains(name, ":2049 >"), h.time, h.message)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d messages, want %d", len(got), len(want))
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf(" got %.200s\nwant %.200s", got[i], want[i])
			}
		}
	}
}

// TestRPCTCP verifies that the TCP connections carry the RPCs of the capture, from
// both transports and in both directions.
func TestRPCTCP(t *testing.T) {
	for name, want := range map[string]struct{ calls, replies, connections int64 }{
		"rocev2-data42.pcap.zst":         {107, 107, 2},
		"rocev2-ipv6-nfs42.pcap.zst":     {323, 323, 2},
		"rocev2-long42.pcap.zst":         {102, 102, 3},
		"rocev2-nconnect41.pcapng.zst":   {108, 108, 4},
		"lab-iwarpcallback41.pcap.zst":   {63, 63, 2},
		"lab-krb5.pcap.zst":              {155, 155, 18}, // with the RPCs that TCP carried in the capture, too
		"derived-ib-callback41.pcap.zst": {64, 64, 2},
	} {
		t.Run(name, func(t *testing.T) {
			path, report, all := rpcTCP(t, testkit.Open(t, captures+name))
			if (*report != export.RPCTCPReport{Connections: want.connections, Calls: want.calls, Replies: want.replies}) {
				t.Errorf("the report is %q, want %d Calls and %d Replies on %d connections", report.String(), want.calls, want.replies, want.connections)
			}
			compareRPCs(t, path, all)
			compareRead(t, path, all)
		})
	}
}

// compareRead compares the RPCs that rdmadump finds in an exported file with those that were exported: the
// connection, XID, operations, status, lengths and whole messages.
func compareRead(t *testing.T, path string, all []rpc) {
	t.Helper()
	line := func(r *record.Transaction, call, reply []byte) string {
		return fmt.Sprintf("%v %s %s %v %s %s %x %x", r.XID, r.Status, r.ProcedureName.Or(""), r.Operations, r.RPCStatus.Or(""), r.NFSStatus.Or(""), sha256.Sum256(call), sha256.Sum256(reply))
	}
	data := func(p *record.Payload) []byte {
		if p == nil {
			return nil
		}
		return p.Data
	}
	want, got := []string{}, []string{}
	for _, x := range all {
		want = append(want, line(x.record, x.call, x.reply))
	}
	d := dissect.New(dissect.Handler{
		Payload: func(r *record.Transaction, call, reply *record.Payload) error {
			if r.Transport != "TCP" {
				t.Errorf("transaction %d has the transport %s", r.ID, r.Transport)
			}
			got = append(got, line(r, data(call), data(reply)))
			return nil
		},
		Finding: func(f *record.Finding) error {
			t.Errorf("the exported RPCs have a finding: %s: %s", f.Rule, f.Message)
			return nil
		},
	}, dissect.Options{Rebuild: true})
	if _, err := d.Run(t.Context(), testkit.Open(t, path)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLiveRPCTCP: RPCs that are written when they are complete are the same messages, of the same connections, as those that are sorted.
func TestLiveRPCTCP(t *testing.T) {
	messages := func(path string) (list []string) {
		for _, all := range receive(t, path, false) {
			for _, m := range all {
				list = append(list, fmt.Sprintf("%d %x", m.time, m.message))
			}
		}
		slices.Sort(list)
		return list
	}
	for _, name := range []string{"rocev2-callback41", "lab-iwarpdata3", "rocev2-long42"} {
		sorted, report, _ := rpcTCP(t, testkit.Open(t, captures+name+".pcap.zst"))
		path := filepath.Join(t.TempDir(), "live.pcapng")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		e := export.LiveRPCTCP(out, "test")
		_, err = dissect.New(e.Handler(), dissect.Options{Rebuild: true}).Run(t.Context(), testkit.Open(t, captures+name+".pcap.zst"))
		if err := errors.Join(err, e.Flush(), out.Close()); err != nil {
			t.Fatal(err)
		}
		got, want := messages(path), messages(sorted)
		if !slices.Equal(got, want) || int64(len(got)) != report.Calls+report.Replies {
			t.Errorf("%s: %d messages of live traffic, want the same %d as from the file", name, len(got), len(want))
		}
	}
}

// TestRPCTCPHoles verifies that zeros replace missing file data, that a message of
// which other bytes are missing is truncated there, and that it is left out if it
// needs two segments.
func TestRPCTCPHoles(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	mem := synth.Mem(0xa1, 1<<16)
	call, reply := synth.Read3(0, 40000).Offer(mem), synth.Read3Reply(bytes.Repeat([]byte("data"), 10000))
	c.Client.Call(call)
	w.Drop(c.Server.Push(reply.To(call))[3])
	c.Server.Reply(reply.To(call))
	c.Client.Ack()
	for _, f := range c.RPC(synth.Write3(0, make([]byte, 400)), synth.Write3Reply(400)) {
		f.Truncate(150) // of the Call; the Reply is shorter
	}
	path, report, _ := rpcTCP(t, testkit.Source(t, w))
	if want := (export.RPCTCPReport{Connections: 1, Calls: 2, Replies: 2, Zeroed: 1, ZeroedBytes: 1024, Truncated: 1}); *report != want {
		t.Errorf("the report is %q, want %q", report.String(), want.String())
	}
	var sizes []int
	for name, list := range receive(t, path, true) {
		if strings.HasSuffix(name, ":2049") {
			for _, h := range list {
				sizes = append(sizes, len(h.message))
			}
			continue
		}
		data := list[0].message[44:]
		want := bytes.Repeat([]byte("data"), 10000)
		clear(want[3*1024 : 4*1024])
		if !bytes.Equal(data, want) {
			t.Errorf("the data of the READ is not the captured data with zeros for the rest")
		}
	}
	if !slices.Equal(sizes, []int{72, 150 - 82}) {
		t.Errorf("Calls of %d bytes, want 72 and 68", sizes)
	}
}

// TestRPCTCPTshark verifies that tshark decodes every RPC, finds nothing malformed,
// and finds the same response times and file data.
func TestRPCTCPTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	paths, _ := filepath.Glob(captures + "*.zst")
	if len(paths) < 20 {
		t.Fatalf("%d captures", len(paths))
	}
	for _, path := range testkit.Short(t, paths) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".zst"), func(t *testing.T) {
			t.Parallel()
			out, report, all := rpcTCP(t, testkit.Open(t, path))
			compareTshark(t, tshark, out, report, all)
		})
	}
}

// tsharkFields are the fields that compareTshark needs.
var tsharkFields = []string{
	"frame.number", "frame.comment", "_ws.malformed", "_ws.expert.severity", "_ws.expert.message", "tcp.checksum.status",
	"tcp.stream", "tcp.srcport", "rpc.msgtyp", "rpc.xid", "rpc.time", "nfs.data",
}

// severityError is the severity "error" of tshark, as a number.
const severityError = "8388608"

// tsharkRows returns the fields of each frame of a file, by name. The values of a field are separated by semicolons.
func tsharkRows(t *testing.T, tshark, path string) (rows []map[string]string) {
	t.Helper()
	args := []string{"-r", path, "-o", "tcp.check_checksum:true", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"}
	for _, name := range tsharkFields {
		args = append(args, "-e", name)
	}
	out, err := exec.Command(tshark, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		row := map[string]string{}
		for i, value := range strings.Split(strings.TrimRight(line, "\n"), "\t") {
			row[tsharkFields[i]] = value
		}
		rows = append(rows, row)
	}
	return rows
}

// compareTshark compares the RPCs that tshark finds in a file with transactions.
func compareTshark(t *testing.T, tshark, path string, report *export.RPCTCPReport, all []rpc) {
	rows := tsharkRows(t, tshark, path)
	for _, row := range rows {
		if row["_ws.malformed"] != "" || slices.Contains(strings.Split(row["_ws.expert.severity"], ";"), severityError) || row["tcp.checksum.status"] == "0" {
			t.Errorf("frame %s: %s", row["frame.number"], row["_ws.expert.message"])
		}
	}
	// The keys are XID, connection and direction. tshark does not decode Replies
	// without a Call.
	type answered struct {
		latency int64
		data    string
	}
	want, withoutCall := map[string]answered{}, int64(0)
	var call, reply nfs.Message
	for _, x := range all {
		a := answered{latency: x.record.LatencyNS.Or(-1)}
		if c := x.record.Call; c != nil {
			a.latency -= int64(c.Time - x.record.Sent()) // the time since a copy on an earlier connection
		}
		var c, r oncrpc.Header
		if x.record.Status == record.NoCall {
			withoutCall++
		}
		if x.record.Call == nil || x.record.Status != record.Complete || c.Decode(x.call) != nil || r.Decode(x.reply) != nil {
			continue
		}
		if _, secret := c.Credential.GSS(); !secret && r.Succeeded() {
			call.Call(c.Program, c.Version, c.Procedure, nfs.NewStream(x.call[c.Length:], nil))
			reply.Reply(c.Program, c.Version, c.Procedure, nfs.NewStream(x.reply[r.Length:], nil))
			a.data = fileData(&call) + fileData(&reply)
		}
		want[x.record.XID.String()+" "+fmt.Sprint(x.record.Connection)+" "+string(x.record.Direction)] = a
	}
	streams := map[string]string{} // number of the connection, by tshark's number
	for _, row := range rows {
		if id, is := strings.CutPrefix(row["frame.comment"], "connection "); is {
			streams[row["tcp.stream"]], _, _ = strings.Cut(id, " ")
		}
	}
	calls, replies, compared := int64(0), int64(0), 0
	got := map[string]string{} // file data in hex
	for _, row := range rows {
		types, xids := strings.Split(row["rpc.msgtyp"], ";"), strings.Split(row["rpc.xid"], ";")
		for i, kind := range types {
			if kind == "" {
				continue
			}
			server := row["tcp.srcport"] == "2049"
			direction := "forward"
			if server == (kind == "0") {
				direction = "backward"
			}
			key := xids[min(i, len(xids)-1)] + " " + streams[row["tcp.stream"]] + " " + direction
			if data := strings.ReplaceAll(row["nfs.data"], ";", ""); len(types) == 1 {
				got[key] += data
			}
			if kind == "0" {
				calls++
				continue
			}
			replies++
			w, known := want[key]
			if seconds, err := strconv.ParseFloat(row["rpc.time"], 64); known && len(types) == 1 && err == nil {
				if compared++; int64(seconds*1e9+0.5) != w.latency {
					t.Errorf("%s: response time %s s, want %d ns", key, row["rpc.time"], w.latency)
				}
				if w.data != "" && got[key] != w.data { // without file data, tshark may show another opaque value
					t.Errorf("%s: %d hex digits of file data, want %d", key, len(got[key]), len(w.data))
				}
			}
		}
	}
	if calls != report.Calls || replies < report.Replies-withoutCall-report.Truncated {
		t.Errorf("tshark reads %d Calls and %d Replies; %v, %d without Call", calls, replies, report, withoutCall)
	}
	t.Logf("%d Replies compared", compared)
}

// fileData returns the data of READ and WRITE in hex.
func fileData(m *nfs.Message) (s string) {
	for i := range m.Values {
		if v := &m.Values[i]; v.Kind == nfs.Data {
			s += hex.EncodeToString(v.Bytes)
		}
	}
	return s
}
