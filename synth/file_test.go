package synth_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/synth"
)

// TestFiles: frames can be read back from a file, with times in its resolution.
func TestFiles(t *testing.T) {
	pcapng := func(o synth.Pcapng) func(*synth.Wire, io.Writer) error {
		return func(w *synth.Wire, to io.Writer) error { return w.WritePcapng(to, o) }
	}
	for name, file := range map[string]struct {
		write func(*synth.Wire, io.Writer) error
		tick  int64 // resolution in nanoseconds
	}{
		"pcap":                    {(*synth.Wire).WritePcap, 0},
		"pcapng":                  {pcapng(synth.Pcapng{}), 999},
		"nanoseconds":             {pcapng(synth.Pcapng{TSResol: 9}), 0},
		"seconds":                 {pcapng(synth.Pcapng{TSResol: 0x80}), 999999999},
		"10^-10, from 2000":       {pcapng(synth.Pcapng{TSResol: 10, TSOffset: 946684800}), 0},
		"2^-30, before 1970":      {pcapng(synth.Pcapng{TSResol: 0x80 | 30, TSOffset: -1000}), 1},
		"milliseconds, from 2023": {pcapng(synth.Pcapng{TSResol: 3, TSOffset: 1700000000}), 999999},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := w.RoCE(synth.Options{})
			c.Connect()
			w.Advance(time.Hour + 123456789)
			c.RPC(synth.Read3(0, 2001).Offer(synth.Mem(0xa1, 2001)), synth.Read3Reply(data(2001)))
			w.Advance(-time.Hour)
			c.Disconnect(c.Client)
			w.Truncate(100)
			var written bytes.Buffer
			if err := file.write(w, &written); err != nil {
				t.Fatal(err)
			}
			f, err := capture.NewFile(name, &written)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			i := 0
			for got, err := range capture.All(t.Context(), f) {
				if err != nil || i == len(w.Frames) {
					t.Fatalf("frame %d of %d: %v", i, len(w.Frames), err)
				}
				want := w.Frames[i]
				if !bytes.Equal(got.Data, want.Data) || got.Length != want.Length || uint16(got.LinkType) != want.LinkType || want.Time-got.Time < 0 || want.Time-got.Time > file.tick {
					t.Errorf("frame %d: got %+v, want %+v", i, *got, *want)
				}
				i++
			}
			if i != len(w.Frames) {
				t.Errorf("%d frames of %d", i, len(w.Frames))
			}
		})
	}
}

// TestLinkTypes: a pcapng file has an interface for each link type; a pcap file cannot have
// several link types.
func TestLinkTypes(t *testing.T) {
	w := synth.New()
	w.RoCE(synth.Options{}).Connect()
	w.RoCE(synth.Options{Link: synth.LinkRaw}).Connect()
	w.Other(228, []byte{0x45})
	var written bytes.Buffer
	if err := w.WritePcapng(&written, synth.Pcapng{}); err != nil {
		t.Fatal(err)
	}
	f, err := capture.NewFile("", &written)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got []string
	for frame, err := range capture.All(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, frame.LinkType.String())
	}
	want := "Ethernet,Ethernet,Ethernet,raw IP,raw IP,raw IP,raw IPv4"
	if strings.Join(got, ",") != want {
		t.Errorf("%q, want %s", got, want)
	}
	if err := w.WritePcap(io.Discard); fmt.Sprint(err) != "synth: frame 4 has link type 101, but a pcap file has only one, 1" {
		t.Error(err)
	}
}

// TestUnrepresentableTimes: times that a format cannot represent are an error and do not wrap.
func TestUnrepresentableTimes(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.REQ()
	for _, o := range []synth.Pcapng{{TSResol: 19}, {TSResol: 20}, {TSResol: 0x80 | 63}, {TSResol: 0x80 | 64}, {TSOffset: 1 << 40}} {
		if err := w.WritePcapng(io.Discard, o); err == nil || !strings.HasPrefix(err.Error(), "synth: frame 1: the file cannot represent the time 1704067200000000000 ns") {
			t.Errorf("with the resolution 0x%02x and the offset %d, the error is %v; want that the time of frame 1 cannot be represented", o.TSResol, o.TSOffset, err)
		}
	}
	w.Now = -1
	c.REP()
	if err := w.WritePcap(io.Discard); fmt.Sprint(err) != "synth: frame 2: a pcap file cannot represent the time -1 ns" {
		t.Error(err)
	}
	w.Frames = slices.Clone(w.Frames[:1])
	w.Frames[0].Time = 1 << 62
	if err := w.WritePcap(io.Discard); fmt.Sprint(err) != "synth: frame 1: a pcap file cannot represent the time 4611686018427387904 ns" {
		t.Error(err)
	}
}
