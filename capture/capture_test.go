package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
)

// order is a byte order that can also append.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

type frame struct {
	sec, frac uint32
	data      string
	length    int
}

var sample = []frame{{1, 5, "first", 5}, {2, 999999, "second packet", 100}, {2, 999999, "", 0}}

func pcap(o order, magic uint32, link uint32, frames ...frame) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(o.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(o.AppendUint32(b, 65535), link)
	for _, f := range frames {
		b = o.AppendUint32(o.AppendUint32(b, f.sec), f.frac)
		b = o.AppendUint32(o.AppendUint32(b, uint32(len(f.data))), uint32(f.length))
		if magic == 0xa1b2cd34 {
			b = append(b, make([]byte, 8)...)
		}
		b = append(b, f.data...)
	}
	return b
}

func block(o order, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	b := o.AppendUint32(nil, kind)
	b = o.AppendUint32(b, uint32(len(body)+12))
	b = append(b, body...)
	return o.AppendUint32(b, uint32(len(body)+12))
}

func section(o order) []byte {
	b := o.AppendUint32(nil, 0x1a2b3c4d)
	b = o.AppendUint16(o.AppendUint16(b, 1), 0)
	return block(o, 0x0a0d0d0a, o.AppendUint64(b, 1<<64-1))
}

func option(o order, code uint16, value []byte) []byte {
	b := o.AppendUint16(o.AppendUint16(nil, code), uint16(len(value)))
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func iface(o order, link uint16, snap uint32, options ...[]byte) []byte {
	b := o.AppendUint16(o.AppendUint16(nil, link), 0)
	b = o.AppendUint32(b, snap)
	for _, opt := range options {
		b = append(b, opt...)
	}
	return block(o, 1, b)
}

func enhanced(o order, id uint32, ticks uint64, data string, length int) []byte {
	b := o.AppendUint32(nil, id)
	b = o.AppendUint32(o.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = o.AppendUint32(o.AppendUint32(b, uint32(len(data))), uint32(length))
	return block(o, 6, append(b, data...))
}

// list reads all frames, one line each, and returns the error that ended reading.
func list(s capture.Source) (lines []string, err error) {
	return listUntil(context.Background(), s)
}

func listUntil(ctx context.Context, s capture.Source) (lines []string, err error) {
	for f, err := range capture.All(ctx, s) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, fmt.Sprintf("%d %d %v %d %q", f.Number, f.Time, f.LinkType, f.Length, f.Data))
	}
	return lines, nil
}

func TestFormats(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	micro := "1 1000005000 Ethernet 5 \"first\"\n2 2999999000 Ethernet 100 \"second packet\"\n3 2999999000 Ethernet 0 \"\""
	nano := strings.NewReplacer("1000005000", "1000000005", "2999999000", "2000999999").Replace(micro)
	plain := pcap(le, 0xa1b2c3d4, 1, sample...)
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"little-endian microseconds", plain, micro},
		{"big-endian microseconds", pcap(be, 0xa1b2c3d4, 1, sample...), micro},
		{"little-endian nanoseconds", pcap(le, 0xa1b23c4d, 1, sample...), nano},
		{"big-endian nanoseconds", pcap(be, 0xa1b23c4d, 1, sample...), nano},
		{"records with longer headers", pcap(le, 0xa1b2cd34, 1, sample...), micro},
		{"FCS bits above the link type", pcap(le, 0xa1b2c3d4, 0x14000001, sample...), micro},
		{"gzip", gzipped(plain), micro},
		{"two gzip members", append(gzipped(plain[:60]), gzipped(plain[60:])...), micro},
		{"zstd", zstandard(plain), micro},
		{"no packets", pcap(le, 0xa1b2c3d4, 1), ""},
		{"pcapng", bytes.Join([][]byte{
			section(le), iface(le, 1, 0), enhanced(le, 0, 1000005, "first", 5), block(le, 4, []byte("names")),
			enhanced(le, 0, 2999999, "second packet", 100), enhanced(le, 0, 2999999, "", 0),
		}, nil), micro},
		{"pcapng, several sections and interfaces", bytes.Join([][]byte{
			section(be), iface(be, 113, 0), iface(be, 1, 0, option(be, 9, []byte{9})), enhanced(be, 1, 1000000005, "nano", 4), enhanced(be, 0, 3, "cooked", 6),
			section(le), iface(le, 247, 0, option(le, 9, []byte{0x83}), option(le, 14, le.AppendUint64(nil, 10))), enhanced(le, 0, 12, "eighths", 7),
		}, nil), "1 1000000005 Ethernet 4 \"nano\"\n2 3000 Linux cooked 6 \"cooked\"\n3 11500000000 InfiniBand 7 \"eighths\""},
		{"pcapng, picoseconds, and a negative offset", bytes.Join([][]byte{
			section(le), iface(le, 1, 0, option(le, 9, []byte{12}), option(le, 14, le.AppendUint64(nil, 1<<64-1))), enhanced(le, 0, 5000000001999, "x", 1),
		}, nil), "1 4000000001 Ethernet 1 \"x\""},
		{"pcapng, simple and obsolete packet blocks", bytes.Join([][]byte{
			section(le), iface(le, 1, 6), enhanced(le, 0, 7, "x", 1), block(le, 3, append(le.AppendUint32(nil, 9), "simple"...)),
			block(le, 2, append(le.AppendUint32(le.AppendUint32(le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 0), 0), 9), 3), 3), "old"...)),
		}, nil), "1 7000 Ethernet 1 \"x\"\n2 7000 Ethernet 9 \"simple\"\n3 9000 Ethernet 3 \"old\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := capture.NewFile("x", bytes.NewReader(c.data))
			if err != nil {
				t.Fatal(err)
			}
			lines, err := list(f)
			if got := strings.Join(lines, "\n"); got != c.want || err != nil {
				t.Errorf("error %v\n got %s\nwant %s", err, got, c.want)
			}
		})
	}
}

// TestBad checks that errors say what is wrong at which offset, and that the frames before the
// damage are read.
func TestBad(t *testing.T) {
	le := binary.LittleEndian
	plain := pcap(le, 0xa1b2c3d4, 1, sample...)
	ng := bytes.Join([][]byte{section(le), iface(le, 1, 0), enhanced(le, 0, 1, "first", 5), enhanced(le, 0, 2, "second", 6)}, nil)
	lie := bytes.Clone(plain)
	le.PutUint32(lie[24+16+5+8:], 1<<30)
	zipped := gzipped(plain)
	for _, c := range []struct {
		name   string
		data   []byte
		open   string // error of opening
		frames int
		broken string // error of reading
	}{
		{"empty", nil, "x: the input is empty: not a capture file", 0, ""},
		{"three bytes", []byte("abc"), "x: the input has only 3 bytes: not a capture file", 0, ""},
		{"another file type", []byte("\x7fELF and more"), "x: the input starts with 7f454c46, which is not pcap, pcapng, gzip or zstd: not a capture file", 0, ""},
		{"truncated header", plain[:20], "x: pcap header needs 24 bytes, 20 available: unexpected EOF", 0, ""},
		{"unsupported pcap version", append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 9, 0, 4, 0}, plain[8:]...), "x: unsupported pcap version 9.4, only version 2 is supported: not a capture file", 0, ""},
		{"truncated record", plain[:24+16+5+16+4], "", 1, "x: reading failed at byte 45, after 1 packets: record needs 29 bytes, 20 available: unexpected EOF"},
		{"truncated record header", plain[:24+16+5+7], "", 1, "x: reading failed at byte 45, after 1 packets: record header needs 16 bytes, 7 available: unexpected EOF"},
		{"zeros at the end", append(bytes.Clone(plain), make([]byte, 4096)...), "", 3, "x: reading failed at byte 90, after 3 packets: record header is all zeros"},
		{"invalid length", lie, "", 1, "x: reading failed at byte 45, after 1 packets: record claims 1073741824 captured bytes, the limit is 262144"},
		{"garbage after gzip", append(slices.Clip(zipped), "garbage after the data"...), "", 3, "x: reading failed at byte 90, after 3 packets: record header: what follows the gzip data is no gzip data"},
		{"a byte after gzip", append(slices.Clip(zipped), 0), "", 3, "what follows the gzip data is no gzip data"},
		{"a gzip header of nothing", append(slices.Clip(zipped), "\x1f\x8bgarbage after the data"...), "", 3, "what follows the gzip data is no gzip data"},
		{"a gzip header that is cut", append(slices.Clip(zipped), zipped[:3]...), "", 3, "unexpected EOF"},
		{"a byte after many empty members of gzip", append(append(slices.Clip(zipped), bytes.Repeat(gzipped(nil), 300)...), 0), "", 3, "what follows the gzip data is no gzip data"},
		{"truncated gzip", zipped[:len(zipped)-12], "", -1, "unexpected EOF"},
		{"truncated pcapng", ng[:len(ng)-6], "", 1, "x: reading failed at byte 88, after 1 packets: block of type 6 needs 40 bytes, 34 available: unexpected EOF"},
		{"pcapng, no such interface", bytes.Join([][]byte{section(le), iface(le, 1, 0), enhanced(le, 3, 1, "x", 1)}, nil), "", 0, "x: reading failed at byte 48, after 0 packets: packet block names interface 3, the section has 1"},
		{"pcapng, invalid length", append(bytes.Clone(ng), 6, 0, 0, 0, 13, 0, 0, 0), "", 2, "x: reading failed at byte 128, after 2 packets: block of type 6 claims 13 bytes"},
		{"pcapng, lengths that differ", append(bytes.Clone(ng[:len(ng)-4]), 0, 0, 0, 0), "", 1, "x: reading failed at byte 88, after 1 packets: block of type 6 has length 40 at its start and 0 at its end"},
		{"pcapng, frame too long", bytes.Join([][]byte{section(le), iface(le, 1, 0), enhanced(le, 0, 1, strings.Repeat("x", capture.MaxFrame+4), 1)}, nil), "", 0, "x: reading failed at byte 48, after 0 packets: packet block claims 262148 captured bytes, the limit is 262144"},
		{"pcapng, simple frame too long", bytes.Join([][]byte{section(le), iface(le, 1, 0), block(le, 3, append(le.AppendUint32(nil, 1<<20), make([]byte, capture.MaxFrame+4)...))}, nil), "", 0, "x: reading failed at byte 48, after 0 packets: packet block claims 262148 captured bytes, the limit is 262144"},
		{"pcapng, bad byte order", append(bytes.Clone(ng[:8]), 1, 2, 3, 4), "x: pcapng section header has byte-order magic 01020304: not a capture file", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := capture.NewFile("x", bytes.NewReader(c.data))
			if c.open != "" {
				if err == nil || err.Error() != c.open {
					t.Errorf("error %v, want %s", err, c.open)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			lines, err := list(f)
			if c.frames >= 0 && len(lines) != c.frames {
				t.Errorf("%d frames, want %d", len(lines), c.frames)
			}
			var broken *capture.BrokenError
			if err == nil || !strings.Contains(err.Error(), c.broken) || !errors.As(err, &broken) {
				t.Errorf("error %v, want %s", err, c.broken)
			}
		})
	}
}

// TestERFTimes checks that the time of an ERF record is that of its own header, which is finer than
// the time of a classic pcap record. The header has seconds and 2^-32 seconds, little-endian.
func TestERFTimes(t *testing.T) {
	le := binary.LittleEndian
	erf := func(stamp uint64) string {
		return string(le.AppendUint64(nil, stamp)) + "\x15\x04\x00\x12\x00\x00\x00\x02ab"
	}
	stamps := []string{
		erf(0x6b0129fc656eefeb), // .3962240174..., as tshark shows it
		erf(0x6b0129fcffffffff), // rounded down
		erf(0),                  // an unused header
		"\x01\x02\x03",          // truncated
	}
	want := []int64{1795238396_396224017, 1795238396_999999999, 1795238396_396221000, 1795238396_396221000}
	var frames []frame
	ng := bytes.Join([][]byte{section(le), iface(le, uint16(capture.LinkERF), 0)}, nil)
	for _, data := range stamps {
		frames = append(frames, frame{1795238396, 396221, data, len(data)})
		ng = append(ng, enhanced(le, 0, 1795238396_396221, data, len(data))...)
	}
	for name, file := range map[string][]byte{"pcap": pcap(le, 0xa1b2c3d4, uint32(capture.LinkERF), frames...), "pcapng": ng} {
		f, err := capture.NewFile("x", bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for x, err := range capture.All(context.Background(), f) {
			if err != nil {
				t.Fatal(err)
			}
			if x.Time != want[n] || x.From.Digits != 9 {
				t.Errorf("%s: frame %d at %d with %d digits, want %d", name, x.Number, x.Time, x.From.Digits, want[n])
			}
			n++
		}
		if n != len(want) {
			t.Errorf("%s: %d frames", name, n)
		}
	}
}

// TestMerge checks that several files are read as one capture, ordered by time.
func TestMerge(t *testing.T) {
	dir, le := t.TempDir(), binary.LittleEndian
	var paths []string
	for i, frames := range [][]frame{{{1, 0, "a", 1}, {4, 0, "d", 1}}, {{2, 0, "b", 1}, {3, 0, "c", 1}}, {{5, 0, "e", 1}}} {
		path := filepath.Join(dir, fmt.Sprint(i, ".pcap"))
		if err := os.WriteFile(path, pcap(le, 0xa1b2c3d4, 1, frames...), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	m, err := capture.OpenAll(append(paths, filepath.Join(dir, "missing")))
	if m == nil || err == nil || !strings.HasSuffix(err.Error(), "missing: no such file or directory") {
		t.Fatalf("error %v", err)
	}
	defer m.Close()
	lines, err := list(m)
	want := `1 1000000000 Ethernet 1 "a",2 2000000000 Ethernet 1 "b",3 3000000000 Ethernet 1 "c",4 4000000000 Ethernet 1 "d",5 5000000000 Ethernet 1 "e"`
	if got := strings.Join(lines, ","); got != want || err != nil {
		t.Errorf("error %v\n got %s\nwant %s", err, got, want)
	}
	if read, total := m.Progress(); read != total || total != 3*24+5*17 {
		t.Errorf("progress %d of %d", read, total)
	}
	if _, err := capture.Open(dir); !errors.Is(err, capture.ErrFormat) {
		t.Errorf("opening a folder: %v", err)
	}
}

// TestDrops checks the number of dropped packets that the capture file reports.
func TestDrops(t *testing.T) {
	le := binary.LittleEndian
	const ifDrop, osDrop, before = 5, 7, 4
	stats := func(code uint16, n uint64) []byte { return option(le, code, le.AppendUint64(nil, n)) }
	packet := func(options ...[]byte) []byte {
		b := le.AppendUint32(make([]byte, 12), 4)
		return block(le, 6, append(append(le.AppendUint32(b, 4), "data"...), bytes.Join(options, nil)...))
	}
	statistics := func(options ...[]byte) []byte {
		return block(le, 5, append(make([]byte, 12), bytes.Join(options, nil)...))
	}
	for _, c := range []struct {
		name   string
		blocks [][]byte
		want   uint64
	}{
		{"statistics count from the start", [][]byte{statistics(stats(ifDrop, 3)), statistics(stats(ifDrop, 7))}, 7},
		{"the interface and the system", [][]byte{statistics(stats(ifDrop, 3), stats(osDrop, 4))}, 7},
		{"packets count those before them", [][]byte{packet(stats(before, 2)), packet(), packet(stats(before, 5))}, 7},
		{"packets and statistics", [][]byte{packet(stats(before, 2)), statistics(stats(ifDrop, 3), stats(osDrop, 4)), packet(stats(before, 4))}, 7},
		{"unknown or impossible", [][]byte{statistics(stats(ifDrop, 1<<64-1), stats(osDrop, 1<<63)), packet(stats(before, 1<<64-1)), packet(stats(before, 2))}, 2},
	} {
		f, err := capture.NewFile("x", bytes.NewReader(bytes.Join(append([][]byte{section(le), iface(le, 1, 0)}, c.blocks...), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list(f); err != nil || f.Dropped() != c.want {
			t.Errorf("%s: error %v, %d dropped, want %d", c.name, err, f.Dropped(), c.want)
		}
	}
}
