package rdma_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// figures is what a test compares of a capture.
type figures struct {
	latencies []int64
	counts    record.PacketCounts
	summary   record.Summary
}

// seeing dissects frames.
func seeing(t *testing.T, frames []capture.Frame) (s figures) {
	t.Helper()
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			s.latencies = append(s.latencies, r.LatencyNS.Or(-1))
			return nil
		},
		Connection: func(r *record.Connection) error {
			n := r.Counts()
			s.counts.AddSince(&record.PacketCounts{}, &n)
			return nil
		},
	}
	d := dissect.New(h, dissect.Options{})
	for i := range frames {
		frames[i].Number = int64(i + 1)
		if err := d.Frame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s.summary = *sum
	return s
}

// doubledCaptures are captures of a quiet network and of bad ones, over all transports.
var doubledCaptures = []string{"captures/rocev2-nfs41", "captures/rocev2-ipv6-nfs42", "captures/iwarp-nfs41", "captures/rocev2-storm41", "other/rocev2-reboot41", "other/rocev2-nvmeloss"}

// TestDoubled: a capture that has each packet twice shows what it shows once. No other capture has packets twice, whatever was
// retransmitted.
func TestDoubled(t *testing.T) {
	for _, name := range doubledCaptures {
		frames, _ := testkit.Frames(t, "../../../testdata/"+name+".pcap.zst")
		once := seeing(t, frames)
		if once.summary.Doubled != 0 || once.summary.Disordered != 0 {
			t.Errorf("%s: %d second copies, %d packets in disorder", name, once.summary.Doubled, once.summary.Disordered)
		}
		var twice []capture.Frame
		for i, f := range frames {
			twice = append(twice, f)
			f.Time += 5_000 + int64(i%7)*30_000
			twice = append(twice, f)
		}
		slices.SortStableFunc(twice, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		got := seeing(t, twice)
		if got.counts != once.counts || !slices.Equal(got.latencies, once.latencies) {
			t.Errorf("%s: twice: %+v, once: %+v; the latencies are equal: %t", name, got.counts, once.counts, slices.Equal(got.latencies, once.latencies))
		}
		if got.summary.Doubled < int64(len(frames))*9/10 {
			t.Errorf("%s: only %d of %d second copies are recognized", name, got.summary.Doubled, len(frames))
		}
	}
}

// TestDisordered: packets that are not in the order of their times are counted if that concerns the order of one sender.
func TestDisordered(t *testing.T) {
	for _, name := range doubledCaptures[:3] {
		frames, _ := testkit.Frames(t, "../../../testdata/"+name+".pcap.zst")
		for i := 10; i+20 < len(frames); i += 20 { // a packet comes some packets later
			f := frames[i]
			copy(frames[i:], frames[i+1:i+8])
			frames[i+7] = f
		}
		if s := seeing(t, frames).summary; s.Disordered == 0 {
			t.Errorf("%s: %d of %d packets in disorder", name, s.Disordered, s.Packets)
		}
	}
	frames, _ := testkit.Frames(t, "../../../testdata/"+doubledCaptures[0]+".pcap.zst")
	for i := range frames { // as several queues of an adapter have it
		frames[i].Time -= int64(i%2) * 3_000
	}
	if s := seeing(t, frames).summary; s.Disordered != 0 || s.TimeBackwards == 0 {
		t.Errorf("%d of %d steps back in time are in disorder", s.Disordered, s.TimeBackwards)
	}
}
