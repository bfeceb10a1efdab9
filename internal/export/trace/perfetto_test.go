package trace_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// perfettoTrace is a trace that was read back, in the terms of the format.
type perfettoTrace struct {
	tracks  map[uint64]track
	events  []event // by time
	clocks  map[uint64]uint64
	names   map[[2]uint64]string // by kind and number
	packets int
}

type track struct {
	name, process, description string
	parent                     uint64
	isCounter                  bool
}

type event struct {
	at              uint64
	kind, track, id uint64
	name, category  string
	value           int64
	flows, ends     []uint64
	texts           map[string]string
	numbers         map[string]int64
}

// field is a field of a message.
type field struct {
	number int
	value  uint64 // of a number
	bytes  []byte // of anything else
}

// fields splits a message into its fields.
func fields(t testing.TB, b []byte) (list []field) {
	t.Helper()
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("a key of a field is damaged")
		}
		b = b[n:]
		f := field{number: int(key >> 3)}
		switch key & 7 {
		case 0:
			f.value, n = binary.Uvarint(b)
			if n <= 0 {
				t.Fatalf("field %d: the number is damaged", f.number)
			}
		case 1:
			if len(b) < 8 {
				t.Fatalf("field %d needs 8 bytes, %d left", f.number, len(b))
			}
			f.value, n = binary.LittleEndian.Uint64(b), 8
		case 2:
			length, head := binary.Uvarint(b)
			if head <= 0 || length > uint64(len(b)-head) {
				t.Fatalf("field %d: %d bytes, %d left", f.number, length, len(b)-head)
			}
			f.bytes, n = b[head:head+int(length)], head+int(length)
		default:
			t.Fatalf("field %d has wire type %d", f.number, key&7)
		}
		b = b[n:]
		list = append(list, f)
	}
	return list
}

// readPerfetto reads a trace. It fails if a packet uses what no packet before it defined.
func readPerfetto(t testing.TB, file []byte) *perfettoTrace {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	r := &perfettoTrace{tracks: map[uint64]track{}, clocks: map[uint64]uint64{}, names: map[[2]uint64]string{}}
	for _, p := range fields(t, raw) {
		if p.number != 1 {
			t.Fatalf("the file has a field %d", p.number)
		}
		r.packets++
		r.packet(t, p.bytes)
	}
	slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return r
}

func (r *perfettoTrace) packet(t testing.TB, b []byte) {
	var at, flags, sequence uint64
	var described, happened []byte
	for _, f := range fields(t, b) {
		switch f.number {
		case 6:
			for _, clock := range fields(t, f.bytes) {
				c := fields(t, clock.bytes)
				r.clocks[c[0].value] = c[1].value
			}
		case 8:
			at = f.value
		case 10:
			sequence = f.value
		case 11:
			happened = f.bytes
		case 12:
			for _, entry := range fields(t, f.bytes) {
				c := fields(t, entry.bytes)
				r.names[[2]uint64{uint64(entry.number), c[0].value}] = string(c[1].bytes)
			}
		case 13:
			flags = f.value
		case 60:
			described = f.bytes
		default:
			t.Fatalf("a packet has a field %d", f.number)
		}
	}
	if sequence != 1 || (r.packets == 1) != (flags&1 != 0) {
		t.Fatalf("packet %d: sequence %d, flags %d", r.packets, sequence, flags)
	}
	if described != nil {
		r.describe(t, described)
	}
	if happened != nil {
		r.event(t, at, flags, happened)
	}
}

func (r *perfettoTrace) describe(t testing.TB, b []byte) {
	var d track
	var uuid uint64
	for _, f := range fields(t, b) {
		switch f.number {
		case 1:
			uuid = f.value
		case 2:
			d.name = string(f.bytes)
		case 3:
			for _, p := range fields(t, f.bytes) {
				if p.number == 6 {
					d.process = string(p.bytes)
				}
			}
		case 5:
			d.parent = f.value
		case 8:
			d.isCounter = true
		case 14:
			d.description = string(f.bytes)
		}
	}
	if _, twice := r.tracks[uuid]; twice || uuid == 0 {
		t.Fatalf("track %#x is described twice", uuid)
	}
	if _, known := r.tracks[d.parent]; d.parent != 0 && !known {
		t.Fatalf("track %#x has an unknown parent", uuid)
	}
	r.tracks[uuid] = d
}

func (r *perfettoTrace) event(t testing.TB, at, flags uint64, b []byte) {
	e := event{at: at, texts: map[string]string{}, numbers: map[string]int64{}}
	name := func(kind int, id uint64) string {
		s, known := r.names[[2]uint64{uint64(kind), id}]
		if !known {
			t.Fatalf("name %d of kind %d is not defined", id, kind)
		}
		return s
	}
	for _, f := range fields(t, b) {
		switch f.number {
		case 3:
			e.category = name(1, f.value)
		case 22:
			e.category = string(f.bytes)
		case 4:
			key, text, number := "", "", int64(0)
			isText := false
			for _, a := range fields(t, f.bytes) {
				switch a.number {
				case 1:
					key = name(3, a.value)
				case 10:
					key = string(a.bytes)
				case 4:
					number = int64(a.value)
				case 6:
					text, isText = string(a.bytes), true
				}
			}
			if isText {
				e.texts[key] = text
			} else {
				e.numbers[key] = number
			}
		case 9:
			e.kind = f.value
		case 10:
			e.name = name(2, f.value)
		case 23:
			e.name = string(f.bytes)
		case 11:
			e.track = f.value
		case 30:
			e.value = int64(f.value)
		case 47:
			e.flows = append(e.flows, f.value)
		case 48:
			e.ends = append(e.ends, f.value)
		case 52:
			e.id = f.value
		default:
			t.Fatalf("an event has a field %d", f.number)
		}
	}
	if flags&2 == 0 {
		t.Fatal("an event does not say that it needs interned names")
	}
	if _, known := r.tracks[e.track]; !known {
		t.Fatalf("an event is on the unknown track %#x", e.track)
	}
	r.events = append(r.events, e)
}

// check checks what a viewer relies on: slices begin and end in pairs and nest, flows have two ends,
// and sums of changes return to zero.
func (r *perfettoTrace) check(t testing.TB) {
	t.Helper()
	open := map[uint64][]event{}
	flows := map[uint64]int{}
	level := map[uint64]int64{}
	for _, e := range r.events {
		d := r.tracks[e.track]
		if d.isCounter != (e.kind == 4) {
			t.Fatalf("track %q has an event of kind %d", d.name, e.kind)
		}
		for _, f := range append(slices.Clone(e.flows), e.ends...) {
			flows[f]++
		}
		switch e.kind {
		case 1:
			open[e.track] = append(open[e.track], e)
		case 2:
			last := len(open[e.track]) - 1
			if last < 0 {
				t.Fatalf("track %q: an end without a beginning at %d", d.name, e.at)
			}
			if e.at <= open[e.track][last].at {
				t.Fatalf("track %q: a slice ends at %d and begins at %d", d.name, e.at, open[e.track][last].at)
			}
			open[e.track] = open[e.track][:last]
		case 4:
			level[e.track] = e.value
		}
		if e.kind == 1 && len(open[e.track]) > 2 {
			t.Fatalf("track %q: slices overlap at %d", d.name, e.at)
		}
		if n := len(open[e.track]); e.kind == 1 && n == 2 && e.category != "phase" {
			t.Fatalf("track %q: slice %q overlaps another at %d", d.name, e.name, e.at)
		}
	}
	for id, list := range open {
		if len(list) > 0 {
			t.Errorf("track %q: slice %q does not end", r.tracks[id].name, list[0].name)
		}
	}
	for id, n := range flows {
		if n < 2 {
			t.Errorf("flow %d has one end", id)
		}
	}
	for id, v := range level {
		if name := r.tracks[id].name; v != 0 && name != "credits granted" {
			t.Errorf("the counter %q ends with %d", name, v)
		}
	}
}

// TestProtoc: the compiler of Protocol Buffers, with a schema of the fields that are written, reads
// the same packets as the reader of the tests.
func TestProtoc(t *testing.T) {
	protoc, err := exec.LookPath("protoc")
	if err != nil {
		t.Skip("protoc is not installed: apt-get install protobuf-compiler")
	}
	file := write(t, "../../../samples/rocev2-slowwrite42.pcap.zst", perfettoFormat)
	z, _ := gzip.NewReader(bytes.NewReader(file))
	cmd := exec.Command(protoc, "--decode=rdmadump.test.Trace", "--proto_path=testdata", "testdata/trace.proto")
	cmd.Stdin = z
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("protoc: %v", err)
	}
	text := string(out)
	for i, line := range strings.Split(text, "\n") {
		if name, _, found := strings.Cut(strings.TrimSpace(line), ":"); found && strings.Trim(name, "0123456789") == "" {
			t.Fatalf("line %d: the schema lacks a field: %s", i+1, line)
		}
	}
	ours := readPerfetto(t, file)
	if got := strings.Count(text, "\npacket {") + 1; got != ours.packets {
		t.Errorf("protoc reads %d packets, the test %d", got, ours.packets)
	}
	begins := 0
	for _, e := range ours.events {
		if e.kind == 1 {
			begins++
		}
	}
	if got := strings.Count(text, "type: TYPE_SLICE_BEGIN"); got != begins || begins == 0 {
		t.Errorf("protoc reads %d beginnings, the test %d", got, begins)
	}
}
