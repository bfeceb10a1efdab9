package points

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// A capture that lacks, doubles or reorders frames is no evidence about the network or a host. These tests take frames away from
// captures at one, two and three points, and compare what is said of what remains with what was said of all.

// told is what is said of the network and of the hosts.
type told struct {
	points                    int
	counts                    counts
	reordered                 int64
	retransmitted, outOfOrder int64
	packets, lacks            int64
	rules                     map[string]int // findings that are errors or warnings, by rule and side
	problems                  map[string]int // errors and warnings of one side, or of the network
}

// tell reads captures at several points, or at one.
func tell(t testing.TB, ends [][]capture.Frame) (all told) {
	t.Helper()
	folder := t.TempDir()
	var paths []string
	for i, frames := range ends {
		paths = append(paths, writeTo(t, filepath.Join(folder, string(rune('a'+i))+".pcap"), frames))
	}
	s := open(t, Options{Memory: 64 << 20}, paths...)
	defer s.Close()
	var names []string
	for i := range s.Points() {
		names = append(names, s.Points()[i].Name)
	}
	all = told{points: len(names), rules: map[string]int{}, problems: map[string]int{}}
	var problems diagnose.Collector
	h := dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			problems.Transaction(r)
			return nil
		},
		Task: func(r *record.Task) error {
			problems.Task(r)
			return nil
		},
		Operation: func(r *record.RDMAOperation) error {
			problems.Operation(r)
			return nil
		},
		Finding: func(r *record.Finding) error {
			problems.Finding(r)
			if r.Severity != record.Note {
				all.rules[strings.TrimSpace(fmt.Sprint(r.Severity, " ", r.Rule, " ", r.AtFault.Or("")))]++
			}
			return nil
		},
		Connection: func(r *record.Connection) error {
			problems.Connection(r)
			n := r.Counts()
			all.retransmitted, all.outOfOrder, all.lacks, all.packets = all.retransmitted+n.Retransmitted, all.outOfOrder+n.OutOfOrder, all.lacks+n.NotCaptured, all.packets+n.Packets
			return nil
		},
	}
	if len(names) < 2 {
		names = nil
	}
	summary, err := dissect.New(h, dissect.Options{Points: names}).Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	r := result{hops: s.Hops()}
	all.counts = r.counts()
	var network []*record.Network
	for _, h := range s.Hops() {
		all.reordered += h.Reordered
		network = append(network, &record.Network{Packets: h.Packets, Lost: h.Lost, Corrupted: h.Corrupted, Changed: h.Changed, Duplicated: h.Duplicated, Reordered: h.Reordered})
	}
	problems.Network(network)
	for _, p := range problems.Problems(summary) {
		if p.Severity != record.Note && len(p.Places) == 1 && p.Places[0] != record.InCapture {
			all.problems[fmt.Sprint(p.Severity, " ", p.ID, " of ", p.Places[0])]++
		}
	}
	return all
}

// accuses returns what is said of the network or of a host that was not said of the whole captures.
func (s *told) accuses(whole *told) (list []string) {
	more := func(what string, n, before int64) {
		if n > before {
			list = append(list, fmt.Sprintf("%d %s instead of %d", n, what, before))
		}
	}
	more("lost", s.counts.lost, whole.counts.lost)
	more("damaged", s.counts.corrupted, whole.counts.corrupted)
	more("duplicated", s.counts.duplicated, whole.counts.duplicated)
	more("reordered", s.reordered, whole.reordered)
	more("retransmitted", s.retransmitted, whole.retransmitted)
	more("out of order", s.outOfOrder, whole.outOfOrder)
	for _, rule := range slices.Sorted(maps.Keys(s.rules)) {
		more(rule, int64(s.rules[rule]), int64(whole.rules[rule]))
	}
	for _, problem := range slices.Sorted(maps.Keys(s.problems)) {
		more(problem, int64(s.problems[problem]), int64(whole.problems[problem]))
	}
	return list
}

// split makes captures at several points of one: each next point is about a tenth of a millisecond farther from the client, and has a clock
// of its own.
func split(frames []capture.Frame, points int) (ends [][]capture.Frame) {
	client := clientOf(frames)
	for i := range points {
		list := slices.Clone(frames)
		var latest [2]int64 // by direction: packets of one do not overtake each other
		for j := range list {
			by, way := int64(i)*(100_000+int64(j*7919%5)*1000), 0
			if sourceOf(&list[j]) != client {
				by, way = -by, 1
			}
			list[j].Time = max(list[j].Time+by+[]int64{0, 7e9, -3e9}[i], latest[way])
			latest[way] = list[j].Time
		}
		slices.SortStableFunc(list, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		ends = append(ends, list)
	}
	return ends
}

// sourceOf returns the IP address of the sender of an Ethernet frame.
func sourceOf(f *capture.Frame) string {
	switch {
	case len(f.Data) >= 34 && f.Data[12] == 8 && f.Data[13] == 0:
		return string(f.Data[26:30])
	case len(f.Data) >= 54 && f.Data[12] == 0x86:
		return string(f.Data[22:38])
	}
	return ""
}

// clientOf returns the address of the sender of the first packet of a transport.
func clientOf(frames []capture.Frame) string {
	for i := range frames {
		protocol := 23
		if frames[i].Data[12] == 0x86 {
			protocol = 20
		}
		if of := sourceOf(&frames[i]); of != "" && (frames[i].Data[protocol] == 6 || frames[i].Data[protocol] == 17) {
			return of
		}
	}
	return ""
}

// recordings calls do with the captures of each recording, at one, two and three points.
func recordings(t *testing.T, do func(t *testing.T, ends [][]capture.Frame, whole *told)) {
	run := func(name string, ends func() [][]capture.Frame) {
		t.Run(name, func(t *testing.T) {
			all := ends()
			whole := tell(t, all)
			if whole.points != len(all) {
				t.Errorf("%d points instead of %d", whole.points, len(all))
			}
			do(t, all, &whole)
		})
	}
	for _, name := range []string{"captures/rocev2-callback41", "captures/ends-twoclock42-client", "captures/rocev2-ipv6-nfs42", "captures/iwarp-nfs41", "captures/lab-krb5", "captures/rocev2-nfs41"} {
		for points := 1; points <= 3; points++ {
			run(fmt.Sprintf("%s at %d", filepath.Base(name), points), func() [][]capture.Frame {
				frames := load(t, "../../testdata/"+name+".pcap.zst")
				if !testkit.All() {
					frames = frames[:min(len(frames), 700)]
				}
				return split(frames, points)
			})
		}
	}
	for name, files := range map[string][]string{
		"twoclock42": {twoClient, twoServer}, "stormall42": {stormClient, stormServer}, "twosided": {"iw-twosided-client", "iw-twosided-server"},
		"burst41": {"roce-burst41-client", "roce-burst41-switch", "roce-burst41-server"}, "reorder42": {"roce-reorder42-client", "roce-reorder42-switch", "roce-reorder42-server"},
	} {
		run(name, func() (ends [][]capture.Frame) {
			for _, path := range files {
				if !strings.Contains(path, "/") {
					path = "../../testdata/ends/" + path + ".pcap.zst"
				}
				ends = append(ends, load(t, path))
			}
			return ends
		})
	}
}

// TestFrameRemoved takes single frames away, each from one point.
func TestFrameRemoved(t *testing.T) {
	times := 4
	if testkit.All() {
		times = 220
	}
	recordings(t, func(t *testing.T, ends [][]capture.Frame, whole *told) {
		random := rand.New(rand.NewPCG(54, uint64(len(ends[0]))))
		failed := 0
		for range times {
			at := random.IntN(len(ends))
			i := random.IntN(len(ends[at]))
			less := slices.Clone(ends)
			less[at] = slices.Delete(slices.Clone(ends[at]), i, i+1)
			s := tell(t, less)
			if wrong := s.accuses(whole); len(wrong) > 0 {
				failed++
				t.Errorf("without frame %d of point %d: %s", i+1, at, strings.Join(wrong, "; "))
			}
		}
		t.Logf("%d of %d", failed, times)
	})
}

// TestBlockRemoved: an acknowledgement shows what its sender had at every point that captured it.
func TestBlockRemoved(t *testing.T) {
	ends := split(load(t, "../../testdata/captures/lab-krb5.pcap.zst"), 2)
	whole := tell(t, ends)
	for at := range ends {
		for from := 0; from+150 < len(ends[at]); from += 240 {
			less := slices.Clone(ends)
			less[at] = slices.Delete(slices.Clone(ends[at]), from, from+150)
			s := tell(t, less)
			if wrong := s.accuses(&whole); len(wrong) > 0 {
				t.Errorf("without frames %d to %d of point %d: %s", from+1, from+150, at, strings.Join(wrong, "; "))
			}
		}
	}
}

// TestLossWhereFramesLack: packets that are sent again were not lost where the capture of their receiver lacks others.
func TestLossWhereFramesLack(t *testing.T) {
	ends := [][]capture.Frame{load(t, stormClient), load(t, stormServer)}
	whole := tell(t, ends)
	for _, from := range []int{396, 1188, 1386} {
		less := [][]capture.Frame{slices.Delete(slices.Clone(ends[0]), from, from+150), ends[1]}
		if s := tell(t, less); s.counts.lost > whole.counts.lost || s.counts.notCaptured < 20 {
			t.Errorf("without frames %d to %d: %+v, with them %+v", from+1, from+150, s.counts, whole.counts)
		}
	}
}

// TestLateWhereLargeFramesLack: packets that come late are asked for and sent again. If the capture of their receiver lacks many others, it lacks
// them, too, and nothing was lost.
func TestLateWhereLargeFramesLack(t *testing.T) {
	var ends [][]capture.Frame
	for _, point := range []string{"client", "switch", "server"} {
		ends = append(ends, load(t, "../../testdata/ends/roce-reorder42-"+point+".pcap.zst"))
	}
	whole := tell(t, ends)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		ends[2] = slices.DeleteFunc(load(t, "../../testdata/ends/roce-reorder42-server.pcap.zst"), func(f capture.Frame) bool { return f.Length > 600 && r.IntN(8) > 0 })
		if s := tell(t, ends); s.counts.lost > whole.counts.lost {
			t.Errorf("seed %d: %d lost instead of %d", seed, s.counts.lost, whole.counts.lost)
		}
	}
}

// TestLackAfterGap: a packet that came after a gap is sent again, too, whether it was lost or the capture lacks it: next to others that came
// after the gap, before the packet that was asked for came late, or of several copies the first. What is sent again does not come out of order.
func TestLackAfterGap(t *testing.T) {
	ends := func(name string, points ...string) (list [][]capture.Frame) {
		for _, point := range points {
			list = append(list, load(t, "../../testdata/ends/roce-"+name+"-"+point+".pcap.zst"))
		}
		return list
	}
	for name, c := range map[string]struct {
		ends   [][]capture.Frame
		frames [][2]int // point and number
	}{
		"burst41":    {ends("burst41", "client", "switch", "server"), [][2]int{{0, 598}, {0, 608}, {0, 621}, {0, 622}, {0, 966}, {0, 971}}},
		"reorder42":  {ends("reorder42", "client", "switch", "server"), [][2]int{{0, 316}, {0, 599}, {0, 869}, {0, 908}, {2, 285}, {2, 707}}},
		"stormall42": {[][]capture.Frame{load(t, stormClient), load(t, stormServer)}, [][2]int{{0, 395}, {0, 471}, {0, 1241}, {0, 1258}, {0, 1259}}},
		"twoclock42": {split(load(t, twoClient), 2), [][2]int{{1, 502}}},
	} {
		whole := tell(t, c.ends)
		for _, frame := range c.frames {
			less := slices.Clone(c.ends)
			less[frame[0]] = slices.Delete(slices.Clone(less[frame[0]]), frame[1]-1, frame[1])
			s := tell(t, less)
			if wrong := s.accuses(&whole); len(wrong) > 0 {
				t.Errorf("%s without frame %d of point %d: %s", name, frame[1], frame[0], strings.Join(wrong, "; "))
			}
		}
	}
}

// TestDropsSaid: what a capture lacks that says it dropped packets is no loss, even if it was asked for or sent again. Losses on the way to the other
// point remain.
func TestDropsSaid(t *testing.T) {
	const client, server = "../../testdata/ends/roce-burst41-client.pcap.zst", "../../testdata/ends/roce-burst41-server.pcap.zst"
	var file bytes.Buffer
	w := capture.NewWriter(&file)
	number := w.Interface(&capture.Origin{LinkType: capture.LinkEthernet, Digits: 9})
	for _, f := range load(t, server) {
		if err := w.Packet(number, &f, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server.pcapng")
	write := func() (to, from *Hop) {
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		hops := run(t, client, path).hops
		return hops[0], hops[1]
	}
	to, from := write()
	file.Write([]byte{5, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0}) // the system dropped 2
	saidTo, saidFrom := write()
	if to.Lost == 0 || saidTo.Lost != 0 || saidTo.Unknown != to.Lost+to.Unknown || saidTo.Corrupted != to.Corrupted || saidTo.Duplicated != to.Duplicated {
		t.Errorf("to the point: %+v; without the drops %+v", saidTo, to)
	}
	if from.Lost == 0 || saidFrom.Lost != from.Lost || saidFrom.Unknown != from.Unknown {
		t.Errorf("from the point: %+v; without the drops %+v", saidFrom, from)
	}
}

// TestCopiesWhereMiddleLacks: a copy that the network made is not sent again because the point in between lacks it.
func TestCopiesWhereMiddleLacks(t *testing.T) {
	var ends [][]capture.Frame
	for _, point := range []string{"client", "switch", "server"} {
		ends = append(ends, load(t, "../../testdata/ends/roce-burst41-"+point+".pcap.zst"))
	}
	whole := tell(t, ends)
	for _, from := range []int{188, 564, 940} {
		s := tell(t, [][]capture.Frame{ends[0], slices.Delete(slices.Clone(ends[1]), from, from+150), ends[2]})
		if s.retransmitted > whole.retransmitted || s.counts.duplicated > whole.counts.duplicated {
			t.Errorf("without frames %d to %d: %+v, with them %+v", from+1, from+150, s, whole)
		}
	}
}

// TestCopyWhereSenderLacks: two frames of one packet, as its identification says, are no retransmission because the sender's capture lacks it.
func TestCopyWhereSenderLacks(t *testing.T) {
	ends := [][]capture.Frame{load(t, stormClient), load(t, stormServer)}
	whole, client := tell(t, ends), ends[0]
	for _, frame := range []int{150, 953} {
		ends[0] = slices.Delete(slices.Clone(client), frame-1, frame)
		if s := tell(t, ends); s.retransmitted > whole.retransmitted || s.counts.duplicated > whole.counts.duplicated {
			t.Errorf("without frame %d: %+v, with it %+v", frame, s, whole)
		}
	}
}

// TestCopyOfSegmentRemoved: a segment that was sent twice, because its acknowledgement came late, was neither lost nor copied by the network if
// one capture lacks one of the two: the receiver says that it got it twice, or the copy that came has another header than the one that was sent.
func TestCopyOfSegmentRemoved(t *testing.T) {
	ends := split(load(t, "../../testdata/captures/iwarp-nfs41.pcap.zst"), 2)
	whole := tell(t, ends)
	for _, frame := range []struct{ point, number int }{{0, 34}, {0, 40}, {0, 1960}, {1, 1239}, {1, 1960}, {1, 1976}, {1, 2015}} {
		less := slices.Clone(ends)
		less[frame.point] = slices.Delete(slices.Clone(ends[frame.point]), frame.number-1, frame.number)
		s := tell(t, less)
		if wrong := s.accuses(&whole); len(wrong) > 0 {
			t.Errorf("without frame %d of point %d: %s", frame.number, frame.point, strings.Join(wrong, "; "))
		}
	}
}

// TestAcknowledgedOnTheWay: a Reply that the points before the client's have, and that the client acknowledged, was captured there or not, but came.
func TestAcknowledgedOnTheWay(t *testing.T) {
	ends := split(load(t, "../../testdata/captures/rocev2-callback41.pcap.zst"), 3)
	whole := tell(t, ends)
	ends[0] = slices.Delete(ends[0], 141, 142)
	s := tell(t, ends)
	if wrong := s.accuses(&whole); len(wrong) > 0 || s.counts.notCaptured != 1 {
		t.Errorf("%+v: %s", s.counts, strings.Join(wrong, "; "))
	}
}

// TestBothDouble: captures at a switch and at the server that each have some frames twice do not show that the network copied them before the
// server's point, but for the few frames that both have twice.
func TestBothDouble(t *testing.T) {
	var ends [][]capture.Frame
	for _, point := range []string{"client", "switch", "server"} {
		ends = append(ends, load(t, "../../testdata/ends/roce-burst41-"+point+".pcap.zst"))
	}
	whole := tell(t, ends)
	for i := range ends[1:] {
		r := rand.New(rand.NewPCG(20, uint64(i)))
		var doubled []capture.Frame
		for _, f := range ends[i+1] {
			if doubled = append(doubled, f); r.IntN(10) == 0 {
				doubled = append(doubled, f)
			}
		}
		ends[i+1] = doubled
	}
	if s := tell(t, ends); s.counts.lost > whole.counts.lost+2 || s.counts.duplicated > whole.counts.duplicated+2 {
		t.Errorf("%+v, without second frames %+v", s.counts, whole.counts)
	}
}

// harm is a way in which captures differ from what passed their points.
type harm struct {
	name string
	do   func(r *rand.Rand, frames []capture.Frame) []capture.Frame
}

var harms = []harm{
	{"lacks frames", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		share := []float64{0.01, 0.05, 0.2, 0.4}[r.IntN(4)]
		return slices.DeleteFunc(frames, func(capture.Frame) bool { return r.Float64() < share })
	}},
	{"lacks a block", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		from := r.IntN(len(frames))
		return slices.Delete(frames, from, min(len(frames), from+1+r.IntN(len(frames)/3)))
	}},
	{"lacks large frames", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(frames, func(f capture.Frame) bool { return f.Length > 600 && r.IntN(8) > 0 })
	}},
	{"has frames twice", func(r *rand.Rand, frames []capture.Frame) (out []capture.Frame) {
		for _, f := range frames {
			if out = append(out, f); r.IntN(10) == 0 {
				out = append(out, f)
			}
		}
		return out
	}},
	{"is a mirror of both directions", func(_ *rand.Rand, frames []capture.Frame) (out []capture.Frame) {
		for i, f := range frames {
			out = append(out, f)
			f.Time += int64(i%40) * 1000
			out = append(out, f)
		}
		slices.SortStableFunc(out, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		return out
	}},
	{"has one direction", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		of, is := clientOf(frames), r.IntN(2) == 0
		return slices.DeleteFunc(frames, func(f capture.Frame) bool { return (sourceOf(&f) == of) == is })
	}},
	{"has one direction from its middle on", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		of, is, from := clientOf(frames), r.IntN(2) == 0, frames[r.IntN(len(frames))].Time
		return slices.DeleteFunc(frames, func(f capture.Frame) bool { return f.Time >= from && (sourceOf(&f) == of) == is })
	}},
	{"has a clock that steps", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		from, by := r.IntN(len(frames)), []int64{3e6, -3e6, 500e6, -500e6, 8e9, -8e9}[r.IntN(6)]
		for i := range frames[from:] {
			frames[from+i].Time += by
		}
		return frames
	}},
	{"has jitter", func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		for i := range frames {
			frames[i].Time += r.Int64N(3000)
		}
		slices.SortStableFunc(frames, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		return frames
	}},
	{"has merged segments", func(_ *rand.Rand, frames []capture.Frame) []capture.Frame { return merged(frames) }},
}

// TestTwiceWhereOthersLack: frames that two points have twice, where the sender's lacks them or the way is long, are no retransmissions.
func TestTwiceWhereOthersLack(t *testing.T) {
	twice := func(seed uint64, frames []capture.Frame) []capture.Frame {
		return harms[3].do(rand.New(rand.NewPCG(seed, 1)), frames)
	}
	for name, ends := range map[string][][]capture.Frame{
		"ipv6":       split(load(t, "../../testdata/captures/rocev2-ipv6-nfs42.pcap.zst"), 3),
		"stormall42": {load(t, stormClient), load(t, stormServer)},
	} {
		whole := tell(t, ends)
		for seed := range uint64(3) {
			harmed := slices.Clone(ends)
			for i := range ends[1:] {
				harmed[i+1] = twice(seed+uint64(i), ends[i+1])
			}
			if len(ends) > 2 {
				harmed[0] = slices.Delete(slices.Clone(ends[0]), 700, 1500)
			}
			if s := tell(t, harmed); s.retransmitted > whole.retransmitted {
				t.Errorf("%s: %d packets sent again instead of %d", name, s.retransmitted, whole.retransmitted)
			}
		}
	}
}

// TestArrivesBeforeSent: packets that come before they were sent show that a clock stepped, and are not sent again.
func TestArrivesBeforeSent(t *testing.T) {
	ends := split(load(t, "../../testdata/captures/rocev2-callback41.pcap.zst"), 2)
	client, from := clientOf(ends[0]), len(ends[0])*9/10
	for i := range ends[0][from:] {
		ends[0][from+i].Time += 500e6
	}
	ends[1] = slices.DeleteFunc(ends[1], func(f capture.Frame) bool { return f.Number > int64(from) && sourceOf(&f) != client })
	if s := tell(t, ends); s.points != 2 || s.counts.lost+s.retransmitted > 0 {
		t.Errorf("%+v", s)
	}
}

// TestRepeatsWhereSenderLacks: a packet that closes a gap is not out of order where no capture shows that it was sent before those behind the gap.
func TestRepeatsWhereSenderLacks(t *testing.T) {
	var ends [][]capture.Frame
	for _, point := range []string{"client", "switch", "server"} {
		ends = append(ends, load(t, "../../testdata/ends/roce-burst41-"+point+".pcap.zst"))
	}
	whole := tell(t, ends)
	ends[2] = slices.DeleteFunc(ends[2], func(f capture.Frame) bool { return sourceOf(&f) != clientOf(ends[0]) })
	client := ends[0]
	for from := 100; from < len(client)-400; from += 200 {
		ends[0] = slices.Delete(slices.Clone(client), from, from+300)
		if s := tell(t, ends); s.outOfOrder > whole.outOfOrder {
			t.Errorf("without frames %d to %d: %d out of order instead of %d", from+1, from+300, s.outOfOrder, whole.outOfOrder)
		}
	}
}

// TestFramesHarmed takes sets of frames away, doubles frames, and changes times, at each point in a way of its own.
func TestFramesHarmed(t *testing.T) {
	if !testkit.All() {
		t.Skip("sets of frames: go test ./internal/points -run TestFramesHarmed -all")
	}
	const seeds = 25
	recordings(t, func(t *testing.T, ends [][]capture.Frame, whole *told) {
		failed := 0
		for seed := range uint64(seeds) {
			random := rand.New(rand.NewPCG(seed, uint64(len(ends[0]))))
			harmed, names := make([][]capture.Frame, len(ends)), []string(nil)
			for i, frames := range ends {
				if harmed[i] = slices.Clone(frames); i > 0 && random.IntN(3) == 0 {
					continue
				}
				h := &harms[random.IntN(len(harms))]
				if harmed[i] = h.do(random, harmed[i]); len(harmed[i]) == 0 {
					harmed[i] = slices.Clone(frames[:1])
				}
				names = append(names, fmt.Sprintf("point %d %s", i, h.name))
			}
			s := tell(t, harmed)
			wrong := s.accuses(whole)
			for i := 0; i < len(ends) && s.points < 2 && len(wrong) > 0; i++ { // Files were left out: the others may say what they say alone.
				alone := tell(t, ends[i:i+1])
				wrong = s.accuses(&alone)
			}
			if len(wrong) > 0 {
				failed++
				t.Errorf("seed %d: %s (%d points): %s", seed, strings.Join(names, ", "), s.points, strings.Join(wrong, "; "))
			}
		}
		t.Logf("%d of %d", failed, seeds)
	})
}

// TestDoubledWithoutIdentification: IPv6 has no identification that tells copies apart. A frame that its sender's capture has twice is one
// packet: the second copy comes before any answer to the first one could.
func TestDoubledWithoutIdentification(t *testing.T) {
	ends := split(load(t, "../../testdata/captures/rocev2-ipv6-nfs42.pcap.zst")[:700], 2)
	for _, after := range []int64{0, 5e3} {
		for point := range ends {
			both, doubled := slices.Clone(ends), 0
			both[point] = nil
			for i, f := range ends[point] {
				both[point] = append(both[point], f)
				if i%10 == 0 && (sourceOf(&f) == clientOf(ends[0])) == (point == 0) {
					f.Time += after
					both[point] = append(both[point], f)
					doubled++
				}
			}
			slices.SortStableFunc(both[point], func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
			if s := tell(t, both); s.counts.lost+s.counts.unknown+s.counts.duplicated+s.retransmitted > 0 || s.counts.mirrored < int64(doubled)/2 {
				t.Errorf("%d packets are doubled at point %d, %d ns later: %+v", doubled, point, after, s)
			}
		}
	}
}
