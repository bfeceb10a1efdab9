package transaction_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
)

// plainHarms are ways in which a capture may lack or change what was sent. n is the index of a frame.
var plainHarms = map[string]func(w *synth.Wire, n int){
	"a frame is missing": func(w *synth.Wire, n int) { w.Drop(w.Frames[n]) },
	"two frames are missing": func(w *synth.Wire, n int) {
		w.Drop(w.Frames[n:min(n+2, len(w.Frames))]...)
	},
	"two frames change places": func(w *synth.Wire, n int) {
		if n+1 < len(w.Frames) {
			w.Swap(w.Frames[n], w.Frames[n+1])
		}
	},
	"a frame is captured twice": func(w *synth.Wire, n int) { w.Duplicate(w.Frames[n], 1000) },
	"a frame is truncated":      func(w *synth.Wire, n int) { w.Frames[n].Truncate(70) },
	"a frame is damaged":        func(w *synth.Wire, n int) { w.Frames[n].Data[len(w.Frames[n].Data)-1] ^= 4 },
	"the capture starts late":   func(w *synth.Wire, n int) { w.Drop(w.Frames[:n]...) },
	"the capture ends early":    func(w *synth.Wire, n int) { w.Drop(w.Frames[n:]...) },
	"frames have 90 bytes":      func(w *synth.Wire, n int) { w.Truncate(60 + n) },
}

// TestPlainNobodyIsAccused: streams of correct implementations have no finding that says that a side violated RPC,
// whatever the capture lacks.
func TestPlainNobodyIsAccused(t *testing.T) {
	accuses := []string{"rpc-record-truncated", "rpc-header-malformed", "reply-without-call", "xid-in-use", "call-not-answered"}
	runs := 0
	for _, c := range plainStreams {
		w := synth.New()
		c.play(w, overTCP(w))
		for name, harm := range plainHarms {
			for n := range w.Frames {
				w := synth.New()
				c.play(w, overTCP(w))
				if n >= len(w.Frames) {
					break
				}
				harm(w, n)
				runs++
				for _, f := range look.At(w).Findings {
					if f.Severity == record.Error || slices.Contains(accuses, f.Rule) {
						t.Errorf("%s is accused after %s at packet %d of a conversation without faults: %s", c.name, name, n, f.Rule)
					}
				}
			}
		}
	}
	if runs < 1000 {
		t.Errorf("only %d runs", runs)
	}
}

// TestPlainHostile: damaged copies of streams make no part of the program crash, and the same copy has the same
// transactions with and without packets.
func TestPlainHostile(t *testing.T) {
	w := synth.New()
	for i, c := range plainStreams {
		c.play(w, w.IWARP(synth.Options{Client: synth.End{Port: uint16(900 + i)}, Server: synth.End{Port: 2049}}))
	}
	var frames []capture.Frame
	for f := range testkit.Made(w.Frames) {
		frames = append(frames, *f)
	}
	copies := uint64(300)
	if testkit.All() {
		copies = 20000
	}
	for seed := range copies {
		file, done := testkit.Damage(seed, frames, frames)
		var all [2][]string
		for i := range all {
			f, err := capture.NewFile("damaged", bytes.NewReader(file))
			if err != nil {
				continue
			}
			h := dissect.Handler{Transaction: func(r *record.Transaction) error {
				all[i] = append(all[i], fmt.Sprint(r.ID, " ", plainLine(r)))
				return nil
			}}
			if i == 1 {
				h.Packet = func(p *record.Packet) error { return nil }
			}
			dissect.New(h, dissect.Options{Tree: i == 1, Decode: i == 1}).Run(t.Context(), f) // a damaged file has an error
			f.Close()
		}
		if !slices.Equal(all[0], all[1]) {
			t.Fatalf("seed %d (%s): with packets %q, without %q", seed, done, all[1], all[0])
		}
	}
}
