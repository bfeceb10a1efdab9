// Package look has what a dissector says of connections that tests make, and of captures.
package look

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/points"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// Seen has all records.
type Seen struct {
	Connections  []*record.Connection
	Transactions []*record.Transaction
	Findings     []*record.Finding
	Operations   []*record.RDMAOperation
	Tasks        []*record.Task
	Packets      []*record.Packet
	Summary      *record.Summary
}

// Collect returns a dissector, and what will have all its records.
func Collect(o dissect.Options) (*Seen, *dissect.Dissector) {
	s := &Seen{}
	return s, dissect.New(dissect.Handler{
		Connection: func(r *record.Connection) error {
			s.Connections = append(s.Connections, r.Clone())
			return nil
		},
		Transaction: func(r *record.Transaction) error {
			s.Transactions = append(s.Transactions, r.Clone())
			return nil
		},
		Finding: func(r *record.Finding) error {
			f := *r
			s.Findings = append(s.Findings, &f)
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			s.Operations = append(s.Operations, r.Clone())
			return nil
		},
		Task: func(r *record.Task) error {
			s.Tasks = append(s.Tasks, r.Clone())
			return nil
		},
		Packet: func(r *record.Packet) error {
			p := r.Clone()
			p.Nodes = nil
			s.Packets = append(s.Packets, p)
			return nil
		},
	}, o)
}

// At returns what is said of a wire, and With the same with options.
func At(w *synth.Wire) *Seen { return With(w, dissect.Options{}) }

func With(w *synth.Wire, o dissect.Options) *Seen {
	s, d := Collect(o)
	s.Summary = pour(w.Frames, d)
	return s
}

// Pour dissects frames.
func Pour(frames []*synth.Frame, h dissect.Handler, o dissect.Options) *record.Summary {
	return pour(frames, dissect.New(h, o))
}

func pour(frames []*synth.Frame, d *dissect.Dissector) *record.Summary {
	for f := range testkit.Made(frames) {
		d.Frame(f)
	}
	s, _ := d.Finish()
	return s
}

// Pattern returns file data without repeated parts.
func Pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8)*31 + byte(i) | 1
	}
	return b
}

// Rules returns the rule ids of the findings, in order.
func (s *Seen) Rules() string {
	var ids []string
	for _, f := range s.Findings {
		ids = append(ids, f.Rule)
	}
	return strings.Join(ids, " ")
}

// Transports opens a connection of each transport.
var Transports = map[string]func(*synth.Wire, synth.Options) *synth.Conn{"RoCE": (*synth.Wire).RoCE, "iWARP": (*synth.Wire).IWARP}

// Both runs a test on a connection of each transport.
func Both(t *testing.T, o synth.Options, test func(t *testing.T, w *synth.Wire, c *synth.Conn)) {
	for name, open := range Transports {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			test(t, w, open(w, o))
		})
	}
}

// AtBothEnds returns what is said of a wire if captures at both ends have it, without the frames that were lost on the way, and of some of which it
// was damaged. The client sends the first frame. What arrives, arrives after 100 us. The transactions have the order of their ids.
func AtBothEnds(t *testing.T, w *synth.Wire, lost map[*synth.Frame]bool, damaged ...*synth.Frame) *Seen {
	t.Helper()
	s, d := Collect(dissect.Options{Points: []string{"client.pcap", "server.pcap"}})
	client := [4]byte(w.Frames[0].Data[26:30])
	for i, f := range w.Frames {
		point := 1
		if [4]byte(f.Data[26:30]) == client {
			point = 0
		}
		at, n := f.Time, int64(i+1)
		v := &capture.Seen{Point: point, Sent: at, SentPoint: point, SentNumber: n, ArrivedPoint: 1 - point, Fate: capture.FateLost}
		if !lost[f] {
			at += 1e5
			v.Fate, v.Point, v.Arrived, v.ArrivedNumber = capture.FateDelivered, 1-point, at, n
		}
		if slices.Contains(damaged, f) {
			v.Fate, v.BadChecksum = capture.FateCorrupted, true
		}
		if err := d.Frame(&capture.Frame{Time: at, Number: n, LinkType: 1, Length: f.Length, Data: f.Data, Seen: v}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.Summary, err = d.Finish(); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(s.Transactions, func(a, b *record.Transaction) int { return int(a.ID - b.ID) })
	return s
}

// Digests returns a digest of all records of a kind, by kind, as they are in JSON.
func (s *Seen) Digests() map[string]string {
	digests := map[string]string{}
	for kind, records := range map[string]any{"connections": s.Connections, "transactions": s.Transactions, "findings": s.Findings, "operations": s.Operations, "packets": s.Packets, "tasks": s.Tasks, "summary": s.Summary} {
		text, err := json.Marshal(records)
		if err != nil {
			panic(err)
		}
		digests[kind] = fmt.Sprintf("%.6x", sha256.Sum256(text))
	}
	return digests
}

// Tell returns the digests of what is said of a story: of a capture of testdata, also damaged, or of captures that are joined.
func Tell(t *testing.T, story string, o dissect.Options, seed uint64, damages ...string) map[string]string {
	t.Helper()
	names := strings.Fields(story)
	if len(names) == 1 {
		frames, _ := testkit.Frames(t, "../../../testdata/"+story+".pcap.zst")
		s, d := Collect(o)
		for _, f := range testkit.Apply(seed, frames, damages...) {
			d.Frame(&f)
		}
		s.Summary, _ = d.Finish()
		return s.Digests()
	}
	var files []points.File
	for _, name := range names {
		files = append(files, points.File{Path: "../../../testdata/" + name + ".pcap.zst", Name: name})
	}
	plan, err := points.Recognize(t.Context(), files, points.Options{Memory: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	source, err := plan.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	o.Points = names
	s, d := Collect(o)
	if s.Summary, err = d.Run(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return s.Digests()
}

// Compare compares digests by story and kind with those in a file, or writes the file.
func Compare(t *testing.T, file string, update bool, told map[string]map[string]string) {
	t.Helper()
	text, err := json.MarshalIndent(told, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if update {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	} else {
		text, err = os.ReadFile(file)
	}
	var want map[string]map[string]string
	if err := cmp.Or(err, json.Unmarshal(text, &want)); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		for kind, digest := range told[name] {
			if want[name][kind] != digest {
				t.Errorf("%s: %s are others (-update writes %s)", name, kind, file)
			}
		}
	}
	if len(want) != len(told) {
		t.Errorf("%s has %d stories, want %d", file, len(want), len(told))
	}
}

// File returns what is said of a capture, and Records a part of that.
func File(t *testing.T, path string) *Seen {
	t.Helper()
	s, d := Collect(dissect.Options{})
	var err error
	if s.Summary, err = d.Run(t.Context(), testkit.Open(t, path)); err != nil {
		t.Fatal(err)
	}
	return s
}

func Records(t *testing.T, path string) (transactions []*record.Transaction, connections []*record.Connection) {
	t.Helper()
	s := File(t, path)
	return s.Transactions, s.Connections
}
