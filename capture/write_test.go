package capture_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
)

// TestWriter checks that written frames of any link type and time are read back unchanged, and that
// a file without frames is a valid capture.
func TestWriter(t *testing.T) {
	for _, frames := range [][]capture.Frame{
		nil,
		{
			{Time: 1e18, LinkType: capture.LinkEthernet, Length: 100, Data: []byte("cut")},
			{Time: -1, LinkType: capture.LinkEthernet, Length: 6, Data: []byte("before")},
			{Time: 0, LinkType: capture.LinkInfiniBand, Length: 5, Data: []byte("other")},
			{Time: math.MinInt64, LinkType: capture.LinkInfiniBand, Length: 5, Data: []byte("first")},
			{Time: math.MaxInt64, LinkType: capture.LinkEthernet, Length: 4, Data: []byte("last")},
			{Time: 5, LinkType: capture.LinkSLL2, Length: 1, Data: []byte("2")},
			{Time: 5, LinkType: 60000},
			{Time: 6, LinkType: 60000, Length: capture.MaxFrame, Data: pattern(3, capture.MaxFrame)},
		},
	} {
		var b bytes.Buffer
		w := capture.NewWriter(&b)
		for i := range frames {
			if err := w.Write(&frames[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil || w.Size() != int64(b.Len()) {
			t.Errorf("error %v; %d bytes, it counted %d", err, b.Len(), w.Size())
		}
		f, err := capture.NewFile("x", &b)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for got, err := range capture.All(t.Context(), f) {
			if err != nil || i == len(frames) {
				t.Fatalf("frame %d of %d: %v", i+1, len(frames), err)
			}
			want := frames[i]
			i++
			if got.Time != want.Time || got.LinkType != want.LinkType || got.Length != want.Length || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("frame %d at %d, %v, %d of %d bytes; want %d, %v, %d of %d", i, got.Time, got.LinkType, len(got.Data), got.Length,
					want.Time, want.LinkType, len(want.Data), want.Length)
			}
		}
		if i != len(frames) {
			t.Errorf("%d frames of %d", i, len(frames))
		}
		f.Close()
	}
}

// full is a writer that accepts no bytes.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestWriterFails checks that a write error is returned, at the latest by Finish.
func TestWriterFails(t *testing.T) {
	w := capture.NewWriter(full{})
	frame := capture.Frame{LinkType: capture.LinkEthernet, Data: make([]byte, 9000)}
	var err error
	for range 10 {
		err = errors.Join(err, w.Write(&frame))
	}
	if !errors.Is(err, errFull) || !errors.Is(w.Finish(), errFull) {
		t.Error(err)
	}
}

// TestWriterAllocates checks that writing allocates nothing per frame.
func TestWriterAllocates(t *testing.T) {
	w := capture.NewWriter(io.Discard)
	frame := capture.Frame{LinkType: capture.LinkEthernet, Data: make([]byte, 4097)}
	if n := testing.AllocsPerRun(100, func() { w.Write(&frame) }); n != 0 {
		t.Errorf("%.1f allocations", n)
	}
}

// TestWriterInterfaces checks that packets are read back with their interfaces and with times of
// the interface's resolution, including times before 1970, for which each interface is described a
// second time.
func TestWriterInterfaces(t *testing.T) {
	var b bytes.Buffer
	w := capture.NewWriter(&b)
	w.Begin("me")
	origins := []capture.Origin{
		{LinkType: capture.LinkEthernet, Snap: 96, Name: "eth0", Description: "first", Digits: 6},
		{LinkType: capture.LinkRaw, Digits: 0},
		{LinkType: capture.LinkERF, Digits: 9},
	}
	for i := range origins {
		if n := w.Interface(&origins[i]); n != uint32(i) {
			t.Errorf("interface %d is number %d", i, n)
		}
	}
	packets := []struct {
		number     uint32
		time, want int64
		comment    string
	}{
		{0, 1_234_567_891, 1_234_567_000, "a comment"},
		{0, -1_234_567_891, -1_234_568_000, ""}, // rounding down makes negative times earlier
		{2, math.MinInt64, math.MinInt64, "\xff"},
		{1, -1, -1_000_000_000, ""},
		{0, -2000, -2000, strings.Repeat("long ", 5000)},
		{1, 5_900_000_000, 5_000_000_000, ""},
	}
	for _, p := range packets {
		if err := w.Packet(p.number, &capture.Frame{Time: p.time, Data: []byte("data."), Length: 9}, p.comment); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Packet(3, new(capture.Frame), ""); err == nil || !strings.Contains(err.Error(), "no interface 3") {
		t.Errorf("a packet of no interface: %v", err)
	}
	if err := w.Finish(); err != nil || w.Size() != int64(b.Len()) {
		t.Errorf("error %v; %d bytes, it counted %d", err, b.Len(), w.Size())
	}
	if n := bytes.Count(b.Bytes(), []byte("eth0")); n != 2 {
		t.Errorf("eth0 is described %d times, want 2", n)
	}
	f, err := capture.NewFile("x", &b)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	i := 0
	for got, err := range capture.All(t.Context(), f) {
		if err != nil || i == len(packets) {
			t.Fatalf("packet %d of %d: %v", i+1, len(packets), err)
		}
		want := packets[i]
		origins[want.number].Index = got.From.Index // The file may describe an interface twice.
		if i++; got.Time != want.want || *got.From != origins[want.number] || got.Length != 9 || string(got.Data) != "data." {
			t.Errorf("packet %d at %d of %+v, %d %q; want %d of %+v", i, got.Time, *got.From, got.Length, got.Data, want.want, origins[want.number])
		}
	}
	if i != len(packets) {
		t.Errorf("%d packets of %d", i, len(packets))
	}
}
