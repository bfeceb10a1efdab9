package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// atServer returns the frames of a healthy capture at a client as the server's point has them: 200 us from the client, by a
// clock that is 2 s ahead.
func atServer(frames []capture.Frame) (list []capture.Frame) {
	for _, f := range frames {
		if f.Time += 2e9; fromClient(&f) {
			f.Time += 200e3
		} else {
			f.Time -= 200e3
		}
		list = append(list, f)
	}
	byTime(list)
	return list
}

// fromClient reports whether the client of the laboratory sent a frame with IPv4.
func fromClient(f *capture.Frame) bool { return f.Data[29] == 2 }

func byTime(list []capture.Frame) {
	slices.SortStableFunc(list, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
}

// repeated returns frames of which some are captured twice.
func repeated(frames []capture.Frame, after int64, some func(i int) bool) (list []capture.Frame) {
	for i, f := range frames {
		list = append(list, f)
		if some(i) {
			f.Time += after
			list = append(list, f)
		}
	}
	byTime(list)
	return list
}

// cutTo returns frames of which a number of bytes was captured.
func cutTo(frames []capture.Frame, n int) (list []capture.Frame) {
	for _, f := range frames {
		f.Data = f.Data[:min(n, len(f.Data))]
		list = append(list, f)
	}
	return list
}

// tagged returns frames with a VLAN tag.
func tagged(frames []capture.Frame) (list []capture.Frame) {
	for _, f := range frames {
		f.Data, f.Length = slices.Concat(f.Data[:12], []byte{0x81, 0, 0, 5}, f.Data[12:]), f.Length+4
		list = append(list, f)
	}
	return list
}

// step returns what sets a clock from a frame on.
func step(from int, by int64) func([]capture.Frame) []capture.Frame {
	return func(f []capture.Frame) []capture.Frame {
		f = slices.Clone(f)
		for i := from; i < len(f); i++ {
			f[i].Time += by
		}
		return f
	}
}

// TestHarmedEnd: if the capture at one end has less than it could, or has it wrongly, both ends show what the other end shows
// by itself: the same RPCs with the same latencies. Nothing is an error, and nothing was retransmitted, lost or damaged.
func TestHarmedEnd(t *testing.T) {
	client, _ := testkit.Frames(t, "../../testdata/captures/rocev2-nfs41.pcap.zst")
	dir := t.TempDir()
	write := func(name string, frames []capture.Frame) string {
		path := filepath.Join(dir, name+".pcapng")
		if err := os.WriteFile(path, testkit.Pcapng(frames, 9), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	type rpc struct{ xid, status, latency, upperBound, retransmitted string }
	rpcs := func(files ...string) (list []rpc) {
		for _, r := range recordsOf(t, files...) {
			list = append(list, rpc{value(r, "xid"), value(r, "status"), value(r, "latency_ns"), value(r, "latency_min_ns"), value(r, "retransmitted")})
		}
		slices.SortFunc(list, func(a, b rpc) int { return cmp.Compare(a.xid, b.xid) })
		return list
	}
	first := write("client", client)
	want := rpcs(first)
	random := rand.New(rand.NewPCG(1, 2))
	few := func(int) bool { return random.IntN(50) == 0 }
	for _, c := range []struct {
		name string
		harm func(frames []capture.Frame) []capture.Frame
	}{
		{"none", func(f []capture.Frame) []capture.Frame { return f }},
		{"snapshot length 64", func(f []capture.Frame) []capture.Frame { return cutTo(f, 64) }},
		{"snapshot length 58", func(f []capture.Frame) []capture.Frame { return cutTo(f, 58) }},
		{"snapshot length 96", func(f []capture.Frame) []capture.Frame { return cutTo(f, 96) }},
		{"a VLAN, and a snapshot length of 58", func(f []capture.Frame) []capture.Frame { return cutTo(tagged(f), 58) }},
		{"only the first half", func(f []capture.Frame) []capture.Frame { return f[:len(f)/2] }},
		{"only the second half", func(f []capture.Frame) []capture.Frame { return f[len(f)/2:] }},
		{"all twice", func(f []capture.Frame) []capture.Frame { return repeated(f, 20e3, func(int) bool { return true }) }},
		{"some twice", func(f []capture.Frame) []capture.Frame { return repeated(f, 20e3, few) }},
		{"only what the client sent", func(f []capture.Frame) []capture.Frame {
			return slices.DeleteFunc(slices.Clone(f), func(f capture.Frame) bool { return !fromClient(&f) })
		}},
		{"only what the server sent", func(f []capture.Frame) []capture.Frame {
			return slices.DeleteFunc(slices.Clone(f), func(f capture.Frame) bool { return fromClient(&f) })
		}},
		{"some dropped by the capture", func(f []capture.Frame) []capture.Frame {
			return slices.DeleteFunc(slices.Clone(f), func(capture.Frame) bool { return few(0) })
		}},
		{"a clock that steps by 0.5 s before packet 1201", step(1200, 5e8)},
		{"a clock that steps by 0.5 s before packet 1202", step(1201, 5e8)},
		{"a clock that steps by 0.5 s before packet 1203", step(1202, 5e8)},
		{"a clock that steps by 0.5 s before packet 1204", step(1203, 5e8)},
		{"a clock that steps by 0.5 s before packet 1212", step(1211, 5e8)},
		{"a clock that is set back by 0.5 s before packet 1202", step(1201, -5e8)},
		{"a clock that steps by 4 ms before packet 1202", step(1201, 4e6)},
		{"a clock that drifts by 50 ppm", func(f []capture.Frame) []capture.Frame {
			f = slices.Clone(f)
			for i := range f {
				f[i].Time += (f[i].Time - f[0].Time) / 20_000
			}
			return f
		}},
		{"ICRCs that are filled in later", func(f []capture.Frame) []capture.Frame {
			f = slices.Clone(f)
			for i := range f {
				if d := f[i].Data; len(d) > 58 && d[23] == 17 && len(d) == f[i].Length {
					f[i].Data = append(slices.Clone(d[:len(d)-4]), 0, 0, 0, 0)
				}
			}
			return f
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := []string{first, write(strings.ReplaceAll(c.name, " ", "-"), c.harm(atServer(client)))}
			if got := rpcs(files...); !slices.Equal(got, want) {
				n := 0
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						if n++; n < 4 {
							t.Errorf("got %+v, want %+v", got[i], want[i])
						}
					}
				}
				t.Errorf("%d RPCs, %d of them changed; the client's capture has %d", len(got), n, len(want))
			}
			if marked := recordsOf(t, append([]string{"packets", "-Y", "marks in {after_gap, out_of_order, late, retransmitted, lost_on_path, damaged_on_path}"}, files...)...); len(marked) > 0 {
				t.Errorf("%d packets are marked, such as packet %s of %s: %v", len(marked), value(marked[0], "number"), value(marked[0], "point"), marked[0]["marks"])
			}
			for _, r := range recordsOf(t, append([]string{"check"}, files...)...) {
				if r["type"] == "finding" && value(r, "severity") != "note" {
					t.Errorf("finding %s: %s", value(r, "rule"), value(r, "message"))
				}
			}
			o := overviewOf(t, files...)
			for _, count := range []string{"retransmitted", "out_of_order", "damaged", "naks"} {
				if n := value(o, "health."+count); n != "0" {
					t.Errorf("%s packets are %s", n, count)
				}
			}
			for _, p := range recordsOf(t, append([]string{"problems"}, files...)...) {
				if places := fmt.Sprint(p["places"]); p["severity"] != "note" && (places == "[client]" || places == "[network]") {
					t.Errorf("%s %s: %s", value(p, "id"), places, value(p, "headline"))
				}
			}
			for _, r := range recordsOf(t, append([]string{"network"}, files...)...) {
				for _, count := range []string{"lost", "corrupted", "reordered"} {
					if n := value(r, count); r["type"] == "network" && n != "0" {
						t.Errorf("%s packets from %s are %s", n, value(r, "from"), count)
					}
				}
			}
		})
	}
}

// TestCutSegments: if the capture at one end has only the first bytes of each TCP segment, both ends show the same
// RPCs, in all their fields, as if both captures had whole segments.
func TestCutSegments(t *testing.T) {
	ends := []string{"client", "server"}
	var whole [2][]capture.Frame
	for i, end := range ends {
		whole[i], _ = testkit.Frames(t, "../../testdata/ends/iw-twosided-"+end+".pcap.zst")
	}
	show := func(frames [2][]capture.Frame) []map[string]any {
		dir := t.TempDir()
		var files []string
		for i, end := range ends {
			path := filepath.Join(dir, end+".pcapng")
			if err := os.WriteFile(path, testkit.Pcapng(frames[i], 9), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, path)
		}
		return recordsOf(t, files...)
	}
	want := show(whole)
	for i, end := range ends {
		cut := whole
		cut[i] = cutTo(cut[i], 96)
		got := show(cut)
		if len(got) != len(want) || len(want) < 250 {
			t.Fatalf("with a snapshot length of 96 at the %s there are %d RPCs, otherwise %d", end, len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("with a snapshot length of 96 at the %s an RPC is\n%v\nand otherwise\n%v", end, got[i], want[i])
			}
		}
	}
}

// TestChangedSegments: if the network changes what TCP segments carry, and their checksums with it, both ends prove it. The sender
// of a segment is at fault for nothing that the change explains.
func TestChangedSegments(t *testing.T) {
	client, _ := testkit.Frames(t, "../../testdata/ends/iw-twosided-client.pcap.zst")
	const (
		tcp      = 14 + 20
		checksum = tcp + 16
		readList = tcp + 32 + 2 + 18 + 16 // after the TCP options of a timestamp, and the headers of MPA, DDP and RDMAP
	)
	changed := 0
	for i := range client {
		d := client[i].Data
		if fromClient(&client[i]) || len(d) != client[i].Length || len(d) < readList+12 || d[23] != 6 || d[tcp+12]>>4 != 8 {
			continue
		}
		isSend := d[readList-16-17]&0x0f == 3 || d[readList-16-17]&0x0f == 4
		version := binary.BigEndian.Uint32(d[readList-12:])
		if oneFPDU := int(binary.BigEndian.Uint16(d[tcp+32:]))+6 <= len(d)-tcp-32; !oneFPDU || !isSend || version != 1 {
			continue
		}
		if changed++; changed > 3 {
			break
		}
		client[i].Data = slices.Clone(d)
		client[i].Data[readList+3] ^= 2
		sum := uint32(^binary.BigEndian.Uint16(d[checksum:])) + uint32(^binary.BigEndian.Uint16(d[readList+2:])) + uint32(binary.BigEndian.Uint16(client[i].Data[readList+2:]))
		sum = sum&0xffff + sum>>16
		binary.BigEndian.PutUint16(client[i].Data[checksum:], ^uint16(sum&0xffff+sum>>16))
	}
	path := filepath.Join(t.TempDir(), "client.pcapng")
	if err := os.WriteFile(path, testkit.Pcapng(client, 9), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{path, "../../testdata/ends/iw-twosided-server.pcap.zst"}
	malformed := recordsOf(t, append([]string{"check", "-Y", "rule == header-malformed"}, files...)...)
	for _, r := range malformed {
		if r["type"] == "finding" && value(r, "at_fault") != "" {
			t.Errorf("at fault is the %s: %s", value(r, "at_fault"), value(r, "message"))
		}
	}
	marked := recordsOf(t, append([]string{"packets", "-Y", "marks == changed_on_path"}, files...)...)
	if len(malformed) < 3 || len(marked) != 3 {
		t.Errorf("%d findings and %d marked packets, want 3", len(malformed), len(marked))
	}
	for _, r := range recordsOf(t, append([]string{"network"}, files...)...) {
		if want := map[bool]string{true: "3", false: "0"}[strings.HasPrefix(value(r, "to"), "client")]; r["type"] == "network" && (value(r, "changed") != want || value(r, "corrupted") != want) {
			t.Errorf("to %s, %s are changed and %s damaged", value(r, "to"), value(r, "changed"), value(r, "corrupted"))
		}
	}
	if got := problemsOf(t, files...); got != "corruption network, retransmission network" {
		t.Errorf("%q", got)
	}
}
