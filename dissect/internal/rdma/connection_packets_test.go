package rdma_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestPacketsOfConnections: each connection record counts the packets whose records name the connection, and those
// that were captured before its two directions were known to belong together. The captures are taken as recorded,
// without handshakes, from their middle on, and with one direction delayed.
func TestPacketsOfConnections(t *testing.T) {
	early := int64(0)
	for _, path := range testkit.Glob(t, captures+"*.zst") {
		if strings.Contains(path, "cut") {
			continue // testkit.Frames needs a whole file.
		}
		frames, _ := testkit.Frames(t, captures+path)
		for _, change := range []struct {
			name string
			of   func([]capture.Frame) []capture.Frame
		}{
			{"as recorded", func(f []capture.Frame) []capture.Frame { return f }},
			{"without handshakes", func(f []capture.Frame) []capture.Frame {
				return slices.DeleteFunc(f, func(f capture.Frame) bool { return testkit.Handshake(&f) })
			}},
			{"second half", func(f []capture.Frame) []capture.Frame { return f[len(f)/2:] }},
			{"second half, one direction delayed", func(f []capture.Frame) []capture.Frame {
				f = f[len(f)/2:]
				for i := range f {
					if len(f[i].Data) > 0 && f[i].Data[len(f[i].Data)*3/10]&1 != 0 { // any rule that tells some packets from others
						f[i].Time += 20e6
					}
				}
				slices.SortStableFunc(f, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
				return f
			}},
		} {
			shown, counted := map[int]int64{}, map[int]int64{}
			d := dissect.New(dissect.Handler{
				Packet: func(p *record.Packet) error {
					if id, known := p.Connection.Get(); known {
						shown[id]++
					}
					return nil
				},
				Connection: func(c *record.Connection) error {
					counted[c.ID] = c.Packets - c.PacketsBeforePairing
					early += c.PacketsBeforePairing
					return nil
				},
			}, dissect.Options{})
			for i, f := range change.of(slices.Clone(frames)) {
				f.Number = int64(i + 1)
				if err := d.Frame(&f); err != nil {
					t.Fatal(err)
				}
			}
			d.Finish()
			for id := range max(len(shown), len(counted)) {
				if shown[id] != counted[id] {
					t.Errorf("%s, %s: connection %d counts %d packets, and %d packets name it", path, change.name, id, counted[id], shown[id])
				}
			}
		}
	}
	if early == 0 {
		t.Error("no connection has packets from before its pairing, so nothing of them was tested")
	}
}
