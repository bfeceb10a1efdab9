package rdma

import (
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/budget"
)

// upper is an upper layer that follows nothing.
type upper struct{ UpperLayer }

func (upper) Follow(*Conn, *budget.Share) Follower { return nil }

// TestGaps: sequence numbers that the capture lacks may be those of first copies, until they are captured.
func TestGaps(t *testing.T) {
	tracker := New(upper{}, budget.New(1<<20))
	f := &flow{conn: tracker.connections.newConn()}
	f.qp = &queuePair{flow: f}
	f.begin(100)
	f.noteGap(0, gap{run{110, 115}, true})
	f.noteGap(1, gap{run{120, 121}, true})
	for _, s := range []struct {
		psn           uint32
		late, counted bool
	}{
		{105, false, false},
		{112, true, true},
		{112, false, false}, // the second copy
		{110, true, true},
		{111, true, true},
		{114, true, true},
		{113, true, true},
		{113, false, false},
		{120, true, true},
		{120, false, false},
		{98, true, false}, // before the first
		{98, false, false},
		{99, true, false},
		{97, true, false},
		{97, false, false},
	} {
		if late, counted := f.comesLate(psns, psnRun(s.psn), false); late != s.late || counted != s.counted {
			t.Errorf("PSN %d: late %t, counted %t; gaps %v", s.psn, late, counted, f.gaps)
		}
	}
	if len(f.gaps) > 0 || f.from != 97 {
		t.Errorf("%v, from %d", f.gaps, f.from)
	}
	for range 2 { // an operation that stays unknown
		if late, _ := f.comesLate(psns, psnRun(90), true); !late {
			t.Error("the second copy of a Read Request shows that its responses were captured")
		}
	}
	f.qp.acked, f.qp.hasAck = 95, true
	if late, _ := f.comesLate(psns, psnRun(94), false); late {
		t.Error("94 was acknowledged before")
	}
	for i := range uint32(2 * maxGaps) {
		f.noteGap(len(f.gaps), gap{run{1000 + 10*i, 1005 + 10*i}, true})
	}
	if len(f.gaps) != maxGaps || f.gaps[0] != (gap{run{1000, 1000 + 10*maxGaps + 5}, true}) {
		t.Errorf("%d gaps, the first is %v", len(f.gaps), f.gaps[0])
	}
	f.comesLate(psns, psnRun(1000+10*(2*maxGaps-1)+2), false) // it divides the last gap
	if !slices.IsSortedFunc(f.gaps, func(a, b gap) int { return int(psns.delta(a.from, b.from)) }) || len(f.gaps) != maxGaps {
		t.Errorf("gaps are not in order: %v", f.gaps)
	}
	if f.forget(psns, 97+1<<22+1); f.from != 97+1<<21+1 || len(f.gaps) > 0 {
		t.Errorf("from %d, gaps %v after many PSNs", f.from, f.gaps)
	}
}
