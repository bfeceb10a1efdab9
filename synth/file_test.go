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

// TestFiles: frames can be read back from a file.
func TestFiles(t *testing.T) {
	for name, write := range map[string]func(*synth.Wire, io.Writer) error{
		"pcap":   (*synth.Wire).WritePcap,
		"pcapng": (*synth.Wire).WritePcapng,
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
			if err := write(w, &written); err != nil {
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
				if !bytes.Equal(got.Data, want.Data) || got.Length != want.Length || uint16(got.LinkType) != want.LinkType || got.Time != want.Time {
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
	if err := w.WritePcapng(&written); err != nil {
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

// TestUnrepresentableTimes: times that a pcap file cannot represent are an error and do not wrap.
func TestUnrepresentableTimes(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.REQ()
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
