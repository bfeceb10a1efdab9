package dissect_test

import (
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/rocev2"
)

// middle reports whether a packet is in the middle of an RDMA Write or Read; most packets of a
// busy capture are.
func middle(l *link.Decoder, f *capture.Frame) bool {
	if l.Decode(f) != link.CarriesRoCEv2 || len(l.Transport) < rocev2.BTHLen {
		return false
	}
	return l.Transport[0] == 0x07 || l.Transport[0] == 0x0e // RDMA WRITE Middle, RDMA READ Response Middle
}

// TestAllocations: a data packet of a known connection causes no allocation, and neither does its
// description, complete or partial. If a transaction ends with it, the sentence about that is the only one. The capture has no loss, and its Replies need no Reply chunk:
// a packet out of order, or data that is kept, may need a larger buffer than before.
func TestAllocations(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"rocev2-nconnect41.pcapng.zst")
	transactions, causes, packets, fields := 0, 0, 0, 0
	for _, c := range []struct {
		name    string
		handler dissect.Handler
		only    field.Set
	}{
		{"transactions", dissect.Handler{Transaction: func(r *record.Transaction) error {
			if transactions++; r.Cause.Known() { // its text is a new one
				causes++
			}
			return nil
		}}, 0},
		{"packets", dissect.Handler{Packet: func(*record.Packet) error {
			packets++
			return nil
		}}, 0},
		{"fields", dissect.Handler{Packet: func(p *record.Packet) error {
			if len(p.Nodes) > 1 || len(p.Summary) > 0 {
				t.Errorf("packet %d: %d nodes, summary %q", p.Number, len(p.Nodes), p.Summary)
			}
			fields++
			return nil
		}}, header.BTH.Member},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := dissect.New(c.handler, dissect.Options{Only: c.only})
			var l link.Decoder
			measured := 0
			for i := range frames {
				if !middle(&l, &frames[i]) {
					d.Frame(&frames[i])
					continue
				}
				// The test runs one packet at a time, because over many packets a few allocations
				// would be rounded down to none. AllocsPerRun runs it once before it counts, and
				// a packet that is repeated is another case.
				warmed, before := false, causes
				n := testing.AllocsPerRun(1, func() {
					if warmed {
						d.Frame(&frames[i])
					}
					warmed = true
				})
				if n > float64(causes-before) {
					t.Errorf("packet %d, %v: %v allocations", frames[i].Number, rocev2.Opcode(l.Transport[0]), n)
				}
				measured++
			}
			if s, _ := d.Finish(); s.Packets != int64(len(frames)) || s.NotCaptured != 0 || s.Transactions[record.Complete] != 108 {
				t.Errorf("%d packets of %d, %d lost, transactions %v", s.Packets, len(frames), s.NotCaptured, s.Transactions)
			}
			if measured < 3000 {
				t.Errorf("%d packets measured", measured)
			}
		})
	}
	if transactions != 108 || packets != len(frames) || fields != len(frames) {
		t.Errorf("%d transactions, %d and %d of %d packets", transactions, packets, fields, len(frames))
	}
}
