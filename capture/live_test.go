//go:build linux

package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/bpf"
)

// TestLiveFilter runs the kernel filter on frames. It passes RoCE, TCP and the frames that may
// contain them.
func TestLiveFilter(t *testing.T) {
	vm, err := bpf.NewVM(liveFilter)
	if err != nil {
		t.Fatal(err)
	}
	const eth = "020000000001020000000002"
	ip4 := func(proto, port string) string {
		return eth + "0800 45000030 00010000 40" + proto + "0000 0a000001 0a000002 c000" + port + "001c0000"
	}
	ip6 := func(next, port string) string {
		return eth + "86dd 60000000 001c" + next + "40 fd000000000000000000000000000001 fd000000000000000000000000000002 c000" + port + "001c0000"
	}
	for _, c := range []struct {
		name, frame string
		want        bool
	}{
		{"RoCEv2", ip4("11", "12b7"), true},
		{"RoCEv2 after IPv4 options", eth + "0800 46000034 00010000 40110000 0a000001 0a000002 01010100 c000 12b7 001c0000", true},
		{"RoCEv2 from port 4791", eth + "0800 45000030 00010000 40110000 0a000001 0a000002 12b7 c001 001c0000", true},
		{"RoCEv2 from port 4791 over IPv6", eth + "86dd 60000000 001c1140 fd000000000000000000000000000001 fd000000000000000000000000000002 12b7 c001 001c0000", true},
		{"from port 4789", eth + "0800 45000030 00010000 40110000 0a000001 0a000002 12b5 c001 001c0000", false},
		{"VXLAN", ip4("11", "12b5"), true},
		{"DNS", ip4("11", "0035"), false},
		{"TCP", ip4("06", "4e51"), true},
		{"GRE", ip4("2f", "0000"), true},
		{"ICMP", ip4("01", "0000"), false},
		{"a later fragment", eth + "0800 45000030 00010003 40110000 0a000001 0a000002 c000 0035 001c0000", true},
		{"RoCEv2 over IPv6", ip6("11", "12b7"), true},
		{"VXLAN over IPv6", ip6("11", "12b5"), true},
		{"DNS over IPv6", ip6("11", "0035"), false},
		{"TCP over IPv6", ip6("06", "4e51"), true},
		{"IPv6 extension header", ip6("3c", "0000"), true},
		{"ICMPv6", ip6("3a", "0000"), false},
		{"RoCEv1", eth + "8915 0000", true},
		{"pause", eth + "8808 0101", true},
		{"tagged", eth + "8100 0064 0806", true},
		{"802.1ad", eth + "88a8 0064 8100", true},
		{"ARP", eth + "0806 0001", false},
		{"too short", eth[:10], false},
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(c.frame, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		n, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		if (n > 0) != c.want {
			t.Errorf("%s: passes %t, want %t", c.name, n > 0, c.want)
		}
	}
}

// record returns a little-endian pcap record.
func record(sec uint32, data string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, sec)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

func header() []byte {
	h := make([]byte, 24)
	binary.LittleEndian.PutUint32(h, 0xa1b2c3d4)
	h[4], h[6], h[20] = 2, 4, 1
	return h
}

// TestFollow reads a file while it is written record by record, with partial records, rotation and
// truncation.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring.pcap")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	steps := []func(){
		func() { os.WriteFile(path, append(header(), record(1, "one")...), 0o600) },
		func() { write(t, path, record(2, "two")[:10]) },
		func() { write(t, path, record(2, "two")[10:]) },
		func() { // rotation: another file replaces it
			os.Rename(path, path+".1")
			os.WriteFile(path, append(header(), record(3, "three")...), 0o600)
		},
		func() { os.WriteFile(path, append(header(), record(4, "4")...), 0o600) }, // truncated and written again
	}
	go func() {
		for _, step := range steps {
			time.Sleep(100 * time.Millisecond)
			step()
		}
	}()
	f, err := OpenFollow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{"one", "two", "three", "4"}
	n := 0
	for frame, err := range All(ctx, f) {
		if err != nil || string(frame.Data) != want[n] || frame.Number != int64(n+1) {
			t.Fatalf("frame %d is %d %q, error %v; want %q", n+1, frame.Number, frame.Data, err, want[n])
		}
		if n++; n == len(want) {
			cancel()
		}
	}
	if n != len(want) {
		t.Errorf("%d frames of %d", n, len(want))
	}
	if _, err := OpenFollow(filepath.Dir(path)); !errors.Is(err, ErrFormat) {
		t.Errorf("following a folder: %v", err)
	}
}

// TestFollowRing reads the files that tcpdump -C writes, with and without -W: the oldest first, then each file that
// is begun, also after the ring has wrapped around.
func TestFollowRing(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name  string
		files []string // "NUMBER DATA", in the order in which they are written; the first two exist in the beginning
	}{
		{"-C -W", []string{"1 one", "2 two", "0 three", "1 four", "2 five"}},
		{"-C", []string{" one", "1 two", "2 three"}},
		{"-C -W 100", []string{"98 one", "99 two", "00 three"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ring.pcap")
			if err := os.WriteFile(path+".1", append(header(), record(9, "no file of the ring")...), 0o600); err != nil {
				t.Fatal(err)
			}
			put := func(file string) string {
				number, data, _ := strings.Cut(file, " ")
				os.WriteFile(path+number, append(header(), record(1, data)...), 0o600)
				return path + number
			}
			for i, file := range c.files[:2] {
				os.Chtimes(put(file), old, old.Add(time.Duration(i)*time.Minute))
			}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			go func() {
				for _, file := range c.files[2:] {
					time.Sleep(500 * time.Millisecond)
					put(file)
				}
			}()
			f, err := OpenFollow(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			n := 0
			for frame, err := range All(ctx, f) {
				if err != nil {
					t.Fatal(err)
				}
				_, want, _ := strings.Cut(c.files[n], " ")
				if string(frame.Data) != want || frame.Number != int64(n+1) {
					t.Fatalf("frame %d is %d %q, want %q", n+1, frame.Number, frame.Data, want)
				}
				if n++; n == len(c.files) {
					cancel()
				}
			}
			if n != len(c.files) {
				t.Errorf("%d frames of %d", n, len(c.files))
			}
		})
	}
}

func write(t *testing.T, path string, data []byte) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	f.Write(data)
}

// TestRDMADevices reads a directory tree with the layout of sysfs: a software device names its
// parent, a hardware device lists its interfaces.
func TestRDMADevices(t *testing.T) {
	sys := t.TempDir()
	files := map[string]string{
		"class/infiniband/rxe0/parent":                           "eth0\n",
		"class/infiniband/rxe0/ports/1/link_layer":               "Ethernet\n",
		"class/infiniband/mlx5_0/device/net/ens1f0/mtu":          "1500\n",
		"class/infiniband/mlx5_0/ports/1/link_layer":             "Ethernet\n",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0":      "ens1f0\n",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1":      "ens1f0.100\n",
		"class/infiniband/mlx5_1/device/vendor":                  "0x15b3\n",
		"class/infiniband/mlx5_1/ports/1/link_layer":             "InfiniBand\n",
		"class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0":      "ib0\n",
		"class/infiniband/siw0/parent":                           "eth0\n",
		"class/infiniband/siw0/ports/1/gid_attrs/ndevs/0":        "eth0\n",
		"class/infiniband/unrelated/ports/1/gid_attrs/ndevs/not": "\n",
	}
	for name, content := range files {
		path := filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := rdmaDevices(sys)
	if len(got) != 4 || len(got["eth0"]) != 2 || got["eth0"][0] != (Device{"rxe0", "Ethernet", false}) || got["ens1f0.100"][0] != (Device{"mlx5_0", "Ethernet", true}) ||
		got["ib0"][0] != (Device{"mlx5_1", "InfiniBand", true}) {
		t.Errorf("the interfaces have these RDMA devices: %v; want eth0 with rxe0 and another, ens1f0.100 with the hardware device mlx5_0, ib0 with mlx5_1, and one more", got)
	}
	for name, want := range map[string]string{"eth0": "", "ens1f0": "mlx5_0", "ens1f0.100": "mlx5_0", "ib0": "mlx5_1", "lo": ""} {
		if got := Bypass(sys, name); got != want {
			t.Errorf("RDMA devices of %s: %q, want %q", name, got, want)
		}
	}
}

// TestLiveHeading: the packet type of a frame shows that the computer sent it, or received it.
func TestLiveHeading(t *testing.T) {
	for kind, want := range map[uint8]Heading{0: Received, 1: HeadingUnknown, 3: Received, 4: Sent, 7: HeadingUnknown} {
		if got := liveHeading(kind); got != want {
			t.Errorf("packet type %d: %d, want %d", kind, got, want)
		}
	}
}

// TestLive captures on the loopback interface with several batches in use. Every datagram must
// appear once, and reading must end with the context.
func TestLive(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("capturing on an interface needs root")
	}
	defer PoisonReleased()()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	l, err := OpenLive("lo", LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0") // not connected, so that the missing receiver causes no error
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4791}
	const datagrams, size = 3000, 1000
	mark := []byte("rdmadump " + conn.LocalAddr().String())
	go func() {
		for i := range datagrams {
			conn.WriteTo(append(binary.BigEndian.AppendUint32(bytes.Clone(mark), uint32(i)), make([]byte, size)...), to)
			if i%50 == 0 {
				time.Sleep(3 * time.Millisecond)
			}
		}
		time.Sleep(200 * time.Millisecond)
		cancel()
	}()
	var flight [3]Batch
	seen, number, largest := map[uint32]bool{}, int64(0), 0
	look := func(b *Batch) {
		largest = max(largest, len(b.Frames))
		for _, f := range b.Frames {
			if number++; f.Number != number || time.Since(f.Timestamp()).Abs() > time.Minute {
				t.Fatalf("frame %d at %v follows %d", f.Number, f.Timestamp(), number-1)
			}
			_, ours, found := bytes.Cut(f.Data, mark) // there may be other traffic
			if !found {
				continue
			}
			n := binary.BigEndian.Uint32(ours) // out of order if the sender moves to another processor
			if seen[n] || len(ours) != 4+size || f.Length != len(f.Data) {
				t.Fatalf("datagram %d of %d bytes, seen before: %t", n, len(ours), seen[n])
			}
			if seen[n] = true; f.Heading != Received { // The interface ignores frames that it sends to itself.
				t.Fatalf("datagram %d heads %d", n, f.Heading)
			}
		}
		b.Release()
	}
	at := 0
	for ; err == nil; at++ {
		look(&flight[at%len(flight)])
		err = l.ReadBatch(ctx, &flight[at%len(flight)])
	}
	for i := range flight {
		look(&flight[(at+i)%len(flight)])
	}
	if err != io.EOF || len(seen) != datagrams {
		t.Errorf("%d datagrams of %d, error %v", len(seen), datagrams, err)
	}
	if dropped := l.Dropped(); dropped != 0 {
		t.Errorf("%d dropped", dropped)
	}
	t.Logf("the largest batch had %d frames", largest)
}
