package points

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/rocev2"
)

const (
	stormClient = "../../testdata/captures/ends-stormall42-client.pcap.zst"
	stormServer = "../../testdata/captures/ends-stormall42-server.pcap.zst"
	twoClient   = "../../testdata/captures/ends-twoclock42-client.pcap.zst"
	twoServer   = "../../testdata/ends/twoclock42-server.pcap.zst"
)

// load returns the frames of a capture.
func load(t testing.TB, path string) []capture.Frame {
	frames, _ := testkit.Frames(t, path)
	return frames
}

// write writes frames as a pcap file with nanoseconds, and returns its path.
func write(t testing.TB, name string, frames []capture.Frame) string {
	t.Helper()
	return writeTo(t, filepath.Join(t.TempDir(), name), frames)
}

// writeRing writes frames as a ring of files with n frames each, and returns their paths.
func writeRing(t testing.TB, name string, frames []capture.Frame, n int) (paths []string) {
	t.Helper()
	folder := t.TempDir()
	for part := range slices.Chunk(frames, n) {
		paths = append(paths, writeTo(t, filepath.Join(folder, fmt.Sprintf("%s%05d.pcap", name, len(paths))), part))
	}
	return paths
}

func writeTo(t testing.TB, path string, frames []capture.Frame) string {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b23c4d)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0)
	for _, f := range frames {
		b = le.AppendUint32(b, uint32(f.Time/1e9))
		b = le.AppendUint32(b, uint32(f.Time%1e9))
		b = le.AppendUint32(b, uint32(len(f.Data)))
		b = le.AppendUint32(b, uint32(f.Length))
		b = append(b, f.Data...)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// edited returns changed copies of frames.
func edited(frames []capture.Frame, change func(i int, f *capture.Frame)) []capture.Frame {
	var list []capture.Frame
	for i, f := range frames {
		f.Data = slices.Clone(f.Data)
		change(i, &f)
		list = append(list, f)
	}
	return list
}

// result is what was found in several files.
type result struct {
	*Plan
	hops   []*Hop
	frames []capture.Frame // without data
	at     int64           // memory of the largest number of frames that were remembered
}

// run recognizes points and matches their packets.
func run(t testing.TB, paths ...string) *result {
	t.Helper()
	return runWith(t, Options{Memory: 64 << 20}, paths...)
}

// open recognizes points, and opens the source of their packets.
func open(t testing.TB, o Options, paths ...string) *Source {
	t.Helper()
	var files []File
	for _, path := range paths {
		files = append(files, File{Path: path, Name: path})
	}
	p, err := Recognize(t.Context(), files, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func runWith(t testing.TB, o Options, paths ...string) *result {
	t.Helper()
	s := open(t, o, paths...)
	r := &result{Plan: s.plan, hops: s.Hops()}
	for f, err := range capture.All(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		kept := *f
		kept.Data = nil
		r.frames = append(r.frames, kept)
	}
	r.at = int64(len(s.matcher.ring.entries))
	return r
}

// counts are the sums over all directions.
type counts struct{ lost, notCaptured, corrupted, duplicated, mirrored, unknown int64 }

func (r *result) counts() (c counts) {
	for _, h := range r.hops {
		c.lost += h.Lost
		c.notCaptured += h.NotCaptured
		c.corrupted += h.Corrupted
		c.duplicated += h.Duplicated
		c.mirrored += h.MirrorDuplicates
		c.unknown += h.Unknown
	}
	return c
}

// Of the packets that the network lost in stormall42, nothing shows of three that their receivers missed them: two acknowledgements before
// later ones, and a response that the requester, which had missed an earlier one, would have dropped.
const stormLost, stormUnknown = 5, 3

// want compares the counts. Missing are the packets that did not arrive, whether something shows that they were lost or not.
func (r *result) want(t *testing.T, missing, corrupted, duplicated int64) {
	t.Helper()
	if c := r.counts(); c != (counts{lost: missing - c.unknown, unknown: c.unknown, corrupted: corrupted, duplicated: duplicated}) || c.unknown > stormUnknown {
		t.Errorf("%+v; want %d lost or unknown, %d corrupted, %d duplicated", c, missing, corrupted, duplicated)
	}
	for _, h := range r.hops {
		sumsUp(t, h)
	}
}

// network returns the offset of the IP header of a RoCEv2 frame with Ethernet and IPv4, or false for another frame.
func network(f *capture.Frame) (at int, is bool) {
	return 14, len(f.Data) > 62 && f.Data[12] == 8 && f.Data[13] == 0 && f.Data[23] == 17 && be.Uint16(f.Data[36:]) == rocev2.UDPPort
}

// TestPairs: the losses of two pairs of captures are those that a comparison byte by byte found.
func TestPairs(t *testing.T) {
	storm := run(t, stormClient, stormServer)
	if storm.want(t, 8, 10, 13); storm.counts().lost != stormLost {
		t.Errorf("%+v; want %d lost", storm.counts(), stormLost)
	}
	two := run(t, twoClient, twoServer)
	if two.want(t, 18, 0, 0); two.counts().lost != 18 {
		t.Errorf("%+v; want 18 lost", two.counts())
	}
	if p := &storm.Points[1]; len(storm.Points) != 2 || p.Address != "192.168.77.1" || storm.Points[0].Address != "192.168.77.2" || p.DriftKnown || len(p.Steps) > 0 {
		t.Errorf("points %+v", storm.Points)
	}
	if p := &two.Points[1]; p.DriftKnown || p.Offset < 1387e6 || p.Offset > 1388e6 || len(p.Steps) > 0 {
		t.Errorf("points %+v", two.Points)
	}
	var sent, packets int64
	for _, h := range storm.hops {
		sent += h.Packets
	}
	for _, f := range storm.frames {
		if (f.Seen.Fate != capture.FateUnknown || f.Seen.SentNumber != 0) && f.Seen.Fate != capture.FateDuplicated {
			packets++
		}
	}
	if sent != packets {
		t.Errorf("%d packets were sent, and the merged capture has %d", sent, packets)
	}
}

// TestSwitch: a point between two ends has its own counts for each hop, the order of a hop does not depend on the other hops,
// and clocks are compared by flat lines first. The counts are those of the switch's log: it harms frames after it captured
// them, so frames are in order before it. Of the frames that are late after it, the log has 15 and 18.
func TestSwitch(t *testing.T) {
	type hop struct {
		from, to                             string
		packets, lost, reordered, duplicated int64 // lost, or of unknown fate
	}
	for _, c := range []struct {
		name   string
		points []string
		offset []int64 // of the clocks, in nanoseconds
		error  int64   // of these offsets
		want   []hop
	}{
		{"linkdown3", []string{"client", "server"}, []int64{0, -585_440_000}, 100_000, []hop{
			{"client", "server", 131, 0, 0, 0}, {"server", "client", 48, 0, 0, 0},
		}},
		{"linkdown3", []string{"client", "switch", "server"}, []int64{0, 288_200_000, -585_440_000}, 100_000, []hop{
			{"client", "switch", 131, 0, 0, 0},
			{"switch", "client", 48, 0, 0, 0},
			{"switch", "server", 131, 0, 0, 0},
			{"server", "switch", 48, 0, 0, 0},
		}},
		{"linkdown3", []string{"switch", "server"}, []int64{0, -873_640_000}, 200_000, []hop{
			{"switch", "server", 131, 0, 0, 0}, {"server", "switch", 48, 0, 0, 0},
		}},
		{"burst41", []string{"client", "switch", "server"}, []int64{0, 1_216_834_000, 205_700_000}, 100_000, []hop{
			{"client", "switch", 643, 14, 0, 3},
			{"switch", "client", 850, 31, 0, 12},
			{"switch", "server", 632, 13, 0, 8},
			{"server", "switch", 867, 24, 0, 7},
		}},
		{"burst41", []string{"client", "switch"}, []int64{0, 1_216_834_000}, 100_000, []hop{
			{"client", "switch", 643, 14, 0, 3}, {"switch", "client", 850, 31, 0, 12},
		}},
		{"burst41", []string{"switch", "server"}, []int64{0, -1_011_134_000}, 100_000, []hop{
			{"switch", "server", 632, 13, 0, 8}, {"server", "switch", 867, 24, 0, 7},
		}},
		{"reorder42", []string{"client", "switch"}, []int64{0, 524_862_000}, 100_000, []hop{
			{"client", "switch", 869, 0, 0, 26}, {"switch", "client", 1032, 0, 18, 14},
		}},
		{"reorder42", []string{"switch", "server"}, []int64{0, -1_075_919_000}, 100_000, []hop{
			{"switch", "server", 895, 0, 16, 18}, {"server", "switch", 1011, 0, 0, 21},
		}},
		{"reorder42", []string{"client", "server"}, []int64{0, -551_068_000}, 100_000, []hop{
			{"client", "server", 869, 0, 16, 44}, {"server", "client", 1011, 0, 18, 35},
		}},
		{"reorder42", []string{"server", "switch", "client"}, []int64{0, 1_075_919_000, 551_068_000}, 100_000, []hop{
			{"server", "switch", 1011, 0, 0, 21},
			{"switch", "server", 895, 0, 16, 18},
			{"switch", "client", 1032, 0, 18, 14},
			{"client", "switch", 869, 0, 0, 26},
		}},
	} {
		t.Run(c.name+" "+strings.Join(c.points, " "), func(t *testing.T) {
			var paths []string
			for _, point := range c.points {
				paths = append(paths, "../../testdata/ends/roce-"+c.name+"-"+point+".pcap.zst")
			}
			r := run(t, paths...)
			if len(r.Points) != len(c.points) || len(r.hops) != len(c.want) {
				t.Fatalf("%d points and %d hops, want %d and %d: %q", len(r.Points), len(r.hops), len(c.points), len(c.want), r.Notes)
			}
			for i := range r.Points {
				p := &r.Points[i]
				if p.DriftKnown || len(p.Steps) > 0 {
					t.Errorf("the clock of the %s is said to drift by %.1f ppm, with the steps %+v; it does neither", c.points[i], p.Drift, p.Steps)
				}
				if d := p.Offset - c.offset[i]; d > c.error || -d > c.error {
					t.Errorf("the clock of the %s is ahead by %d ns, want %d", c.points[i], p.Offset, c.offset[i])
				}
			}
			for i := range r.Points {
				if between := r.Points[i].Address == ""; between != (c.points[i] == "switch") && c.name == "reorder42" {
					t.Errorf("the %s is said to be at %q", c.points[i], r.Points[i].Address)
				}
			}
			for _, want := range c.want {
				i := slices.IndexFunc(r.hops, func(h *Hop) bool { return c.points[h.From] == want.from && c.points[h.To] == want.to })
				if i < 0 {
					t.Errorf("no packets pass from %s to %s", want.from, want.to)
					continue
				}
				h := r.hops[i]
				sumsUp(t, h)
				if got := (hop{want.from, want.to, h.Packets, h.Lost + h.Unknown, h.Reordered, h.Duplicated}); got != want || h.NotCaptured+h.Corrupted+h.MirrorDuplicates != 0 {
					t.Errorf("got %+v, %d not captured, %d corrupted, %d copies of a mirror; want %+v", got, h.NotCaptured, h.Corrupted, h.MirrorDuplicates, want)
				}
			}
		})
	}
}

// TestDamagedBeforeSwitch: a packet that was damaged before a point between the ends is damaged, and not lost, whether its frame went
// no farther or came to the receiver, and wherever the damage is.
func TestDamagedBeforeSwitch(t *testing.T) {
	files := []string{"client", "switch", "server"}
	var all [3][]capture.Frame
	var paths []string
	for i, name := range files {
		paths = append(paths, "../../testdata/ends/roce-burst41-"+name+".pcap.zst")
		all[i] = load(t, paths[i])
	}
	base := run(t, paths...)
	for name, at := range map[string]int{
		"Ethernet destination": 5, "EtherType": 12, "version of IP": 14, "type of service": 15, "total length": 17, "identification": 19, "hop limit": 22, "protocol": 23, "source address": 27,
		"destination address": 32, "source port": 34, "destination port": 37, "UDP length": 39, "opcode": 42, "queue pair": 47, "PSN": 52,
	} {
		for _, reach := range []int{1, 2} {
			frames := [3][]capture.Frame{slices.Clone(all[0]), slices.Clone(all[1]), slices.Clone(all[2])}
			damaged := int64(0)
			for _, f := range base.frames {
				if f.Seen.Fate != capture.FateLost || f.Seen.SentPoint == 1 || f.Seen.ArrivedPoint != 1 {
					continue
				}
				damaged++
				copied := all[f.Seen.SentPoint][f.Seen.SentNumber-1]
				copied.Data = slices.Clone(copied.Data)
				if copied.Data[at] ^= 4; at < 6 {
					copied.Data[at-1] ^= byte(damaged)
				}
				for _, to := range []int{1, 2 - f.Seen.SentPoint}[:reach] {
					copied.Time = f.Seen.Sent + base.Points[to].Offset + 200_000
					if to != 1 {
						copied.Time += 200_000
					}
					frames[to] = append(frames[to], copied)
				}
			}
			for i := range frames {
				slices.SortStableFunc(frames[i], func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
			}
			r := run(t, write(t, "client.pcap", frames[0]), write(t, "switch.pcap", frames[1]), write(t, "server.pcap", frames[2]))
			whole := base.counts()
			n := r.counts()
			if want := (counts{lost: whole.lost + whole.unknown - n.unknown - damaged, corrupted: damaged, duplicated: 30, unknown: n.unknown}); n != want || n.unknown > whole.unknown+1 || damaged != 28 || whole.lost+whole.unknown != 82 || len(r.Points) != 3 {
				t.Errorf("%s, frames at %d points after the damage: %+v, want %+v", name, reach, n, want)
			}
			for dir, path := range r.paths { // What a damaged header made a host drop did not vanish between the point and the host.
				if len(path) == 3 && !(r.atSender(dir, path[0]) && r.atReceiver(dir, path[2])) {
					t.Errorf("%s, frames at %d points after the damage: %d or %d is said not to be at a host", name, reach, path[0], path[2])
				}
			}
		}
	}
}

// TestDamagedBeforeFirstPoint: a frame whose header was damaged before both points did not arrive at its receiver, which drops it.
func TestDamagedBeforeFirstPoint(t *testing.T) {
	var all [2][]capture.Frame
	for i, name := range []string{"switch", "server"} {
		all[i] = load(t, "../../testdata/ends/roce-burst41-"+name+".pcap.zst")
	}
	for name, at := range map[string]int{"none": -1, "Ethernet destination": 4, "type of service": 15, "hop limit": 22} {
		damaged := map[[2]uint32]bool{} // by queue pair and PSN
		n := 0
		var paths []string
		for i, file := range []string{"switch.pcap", "server.pcap"} {
			paths = append(paths, write(t, file, edited(all[i], func(number int, f *capture.Frame) {
				ip, is := network(f)
				if !is || f.Data[ip+19] != 1 || f.Data[42] != 4 { // Calls to the server
					return
				}
				if key := [2]uint32{be.Uint32(f.Data[46:]), be.Uint32(f.Data[50:]) & rocev2.PSNMask}; key[1]%16 == 5 && at >= 0 {
					if f.Data[at] ^= byte(number%250 + 1); i == 1 {
						damaged[key] = true
					}
				}
			})))
		}
		for _, f := range run(t, paths...).frames {
			if f.Seen != nil && f.Seen.SentPoint == 0 && f.Seen.SentNumber != 0 && f.Seen.ArrivedPoint == 1 && f.Seen.ArrivedNumber != 0 && f.Seen.ArrivedBetween {
				n++
			}
		}
		if n != len(damaged) || at >= 0 && n == 0 {
			t.Errorf("%s: %d packets are said not to have arrived, want %d", name, n, len(damaged))
		}
	}
}

// TestRings: the files of a ring are one source, so that rings show what whole files show, with the same numbers of packets.
func TestRings(t *testing.T) {
	client, server := load(t, stormClient), load(t, stormServer)
	whole := run(t, stormClient, stormServer)
	for _, n := range []int{40, 300, 1000} {
		rings := [2][]string{writeRing(t, "client", client, n), writeRing(t, "server", server, n)}
		for name, paths := range map[string][]string{
			"both":             slices.Concat(rings[0], rings[1]),
			"client":           append(slices.Clone(rings[0]), stormServer),
			"server":           append([]string{stormClient}, rings[1]...),
			"in another order": slices.Concat(reversed(rings[0]), reversed(rings[1])),
		} {
			r := run(t, paths...)
			if r.want(t, 8, 10, 13); len(r.Points) != 2 || len(r.frames) != len(whole.frames) {
				t.Fatalf("%d frames a file, %s: %d points, %d packets, want 2 and %d", n, name, len(r.Points), len(r.frames), len(whole.frames))
			}
			for i, f := range r.frames {
				w := whole.frames[i]
				if f.Number != w.Number || f.Time != w.Time || (f.Seen == nil) != (w.Seen == nil) || f.Seen != nil && *f.Seen != *w.Seen {
					t.Fatalf("%d frames a file, %s: packet %d at %d, %+v, want %d at %d, %+v", n, name, f.Number, f.Time, f.Seen, w.Number, w.Time, w.Seen)
				}
			}
		}
	}
}

// TestDivided: a capture at a point that was divided into two files shows what the whole one shows, whatever the names of the files are, except
// that each part shows less of its clock.
// What a pause between the two files would have is not lost.
func TestDivided(t *testing.T) {
	for name, c := range map[string]struct{ client, server string }{"storm": {stormClient, stormServer}, "two clocks": {twoClient, twoServer}} {
		client, server := load(t, c.client), load(t, c.server)
		clientPath, serverPath := write(t, "client.pcap", client), write(t, "server.pcap", server)
		whole := run(t, clientPath, serverPath)
		sum := whole.counts()
		cut := func(name string, frames []capture.Frame, at, pause int) []string {
			folder := t.TempDir()
			return []string{writeTo(t, filepath.Join(folder, name+"-late.pcap"), frames[at+pause:]), writeTo(t, filepath.Join(folder, name+"-early.pcap"), frames[:at])}
		}
		for _, part := range []int{2, 4, 5} {
			a, b := cut("client", client, len(client)*3/part/2, 0), cut("server", server, len(server)/part, 0)
			for what, paths := range map[string][]string{
				"both":             slices.Concat(a, b),
				"client":           append(slices.Clone(a), serverPath),
				"server":           append([]string{clientPath}, b...),
				"in another order": {a[1], b[0], a[0], b[1]},
			} {
				r := run(t, paths...)
				if got := r.counts(); got != sum || len(r.Points) != 2 || len(r.frames) != len(whole.frames) {
					t.Errorf("%s, %s at 1/%d: %+v at %d points, %d packets; want %+v at 2, %d", name, what, part, got, len(r.Points), len(r.frames), sum, len(whole.frames))
					continue
				}
				if x, y := &r.Points[1], &whole.Points[1]; math.Abs(float64(x.Offset-y.Offset)) > float64(x.Error+y.Error) {
					t.Errorf("%s, %s at 1/%d: offset %d, error %d; want %d, error %d", name, what, part, x.Offset, x.Error, y.Offset, y.Error)
				}
			}
			r := run(t, append(cut("server", server, len(server)/part, 60), clientPath)...)
			if got := r.counts(); got.lost > sum.lost || got.unknown < 8 || len(r.Points) != 2 {
				t.Errorf("%s, a pause at 1/%d: %+v at %d points; want at most %d lost, and at least 8 of unknown fate", name, part, got, len(r.Points), sum.lost)
			}
		}
	}
}

func reversed(paths []string) []string {
	paths = slices.Clone(paths)
	slices.Reverse(paths)
	return paths
}

// TestRingWithGap: what a missing file of a ring would have is not lost.
func TestRingWithGap(t *testing.T) {
	whole := run(t, stormClient, stormServer).counts()
	for missing := 1; missing < 5; missing++ {
		files := writeRing(t, "server", load(t, stormServer), 250)
		r := run(t, append([]string{stormClient}, slices.Delete(files, missing, missing+1)...)...)
		if c := r.counts(); c.lost > whole.lost || c.notCaptured > whole.notCaptured || c.unknown == 0 || len(r.Points) != 2 {
			t.Errorf("without file %d: %+v at %d points", missing, c, len(r.Points))
		}
	}
}

// TestRingAndCopy: a file of a ring that is there twice changes nothing, and each packet has a number of its own.
func TestRingAndCopy(t *testing.T) {
	client := load(t, stormClient)
	files := writeRing(t, "client", client, 300)
	r := run(t, append(files, writeTo(t, filepath.Join(t.TempDir(), "copy.pcap"), client[600:900]), stormServer)...)
	if r.want(t, 8, 10, 13); len(r.Points) != 2 {
		t.Errorf("%d points", len(r.Points))
	}
	last := int64(0)
	for _, f := range r.frames {
		if f.Seen.Point == 0 && f.Seen.ArrivedNumber == 0 && f.Seen.SentNumber != 0 {
			if f.Number <= last {
				t.Fatalf("packet %d comes after packet %d", f.Number, last)
			}
			last = f.Number
		}
	}
}

// another returns a copy of a frame as if another client had exchanged it with the server.
func another(t *testing.T, f capture.Frame) capture.Frame {
	f.Data = slices.Clone(f.Data)
	for _, at := range []int{26, 30} {
		if at += 3; f.Data[at] != 1 { // not the server
			f.Data[at] = 9
		}
	}
	f.Data[24], f.Data[25], f.Data[40], f.Data[41] = 0, 0, 0, 0
	sum := uint32(0)
	for at := 14; at < 34; at += 2 {
		sum += uint32(be.Uint16(f.Data[at:]))
	}
	be.PutUint16(f.Data[24:], ^uint16(sum+sum>>16))
	var d link.Decoder
	d.Decode(&f)
	icrc, known := d.ComputeICRC()
	if !known {
		t.Fatal("a frame without ICRC")
	}
	binary.LittleEndian.PutUint32(f.Data[len(f.Data)-4:], icrc)
	return f
}

// TestStrays: a few packets of other hosts that a switch sent to all its ports do not make a point one that the others pass.
func TestStrays(t *testing.T) {
	var all [2][]capture.Frame
	for i, path := range []string{stormClient, stormServer} {
		all[i] = load(t, path)
	}
	offset := run(t, stormClient, stormServer).Points[1].Offset
	server := slices.Clone(all[1])
	client := slices.Clone(all[0])
	strays := map[int64]bool{}
	for i, f := range all[1] {
		var d link.Decoder
		d.Decode(&f)
		if icrc, known := d.ComputeICRC(); !known || d.Carries != link.CarriesRoCEv2 || icrc != binary.LittleEndian.Uint32(f.Data[len(f.Data)-4:]) {
			continue
		}
		other := another(t, f)
		if server = append(server, other); i%60 == 10 {
			other.Time += 20_000 - offset
			client = append(client, other)
			strays[other.Time] = true
		}
	}
	for _, frames := range [][]capture.Frame{client, server} {
		slices.SortStableFunc(frames, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
	}
	r := run(t, write(t, "client.pcap", client), write(t, "server.pcap", server))
	r.want(t, 8, 10, 13)
	for _, f := range r.frames {
		if f.Seen.Point == 0 && strays[f.Time] {
			t.Errorf("packet %d of another host is shown at both points", f.Number)
		}
	}
}

// TestOtherGateway: an Ethernet address to which successive packets go is not a damaged one, however few packets go there.
func TestOtherGateway(t *testing.T) {
	for _, from := range []int{20, 800, 1560} {
		run(t, stormClient, write(t, "server.pcap", edited(load(t, stormServer), func(i int, f *capture.Frame) {
			if i >= from && i < from+20 {
				f.Data[5] ^= 3
			}
		}))).want(t, 8, 10, 13)
	}
}

// TestRepairNotCaptured: if the copy that repaired a loss is missing at its receiver, it was not captured there, because the receiver
// acknowledged it. The first copy remains lost.
func TestRepairNotCaptured(t *testing.T) {
	paths := []string{"../../testdata/ends/roce-burst41-client.pcap.zst", "../../testdata/ends/roce-burst41-server.pcap.zst"}
	ends := [2][]capture.Frame{load(t, paths[0]), load(t, paths[1])}
	lost := map[uint64]bool{}
	all := run(t, paths...)
	repaired, unproven, again, frames, whole := 0, 0, int64(0), all.frames, all.counts()
	for i, f := range frames {
		v := f.Seen
		if v.Fate == capture.FateLost {
			at := ends[v.SentPoint][v.SentNumber-1].Data
			lost[v.Key] = rocev2.Opcode(at[42]).Info().Request && at[42] != 0x64
		}
		if v.Fate != capture.FateDelivered || !lost[v.Key] || slices.ContainsFunc(frames[i+1:], func(o capture.Frame) bool { return o.Seen.Key == v.Key }) {
			continue // Its receiver did not accept this copy, or the network copied it.
		}
		repaired++
		with := ends
		with[v.ArrivedPoint] = slices.Delete(slices.Clone(with[v.ArrivedPoint]), int(v.ArrivedNumber-1), int(v.ArrivedNumber))
		got := run(t, write(t, "client.pcap", with[0]), write(t, "server.pcap", with[1])).counts()
		switch {
		case got.lost+got.unknown+got.notCaptured != 83 || got.duplicated != 30 || got.lost < whole.lost || got.notCaptured > 1:
			t.Errorf("without packet %d of point %d: %+v, with it %+v", v.ArrivedNumber, v.ArrivedPoint, got, whole)
		case got.notCaptured == 0: // Nothing acknowledges it before its connection ends.
			unproven++
			again += got.lost - whole.lost // and its sender repeated it
		}
	}
	if repaired < 20 || unproven != 8 || again > 1 {
		t.Errorf("%d losses were repaired, and %d of the repairs were not acknowledged, want 8; %d of these are lost", repaired, unproven, again)
	}
}

// TestFewNotCaptured: if a capture lacks some packets, that it lacks another one proves no more: what was lost is never said to be not
// captured.
func TestFewNotCaptured(t *testing.T) {
	paths := []string{"../../testdata/ends/roce-burst41-client.pcap.zst", "../../testdata/ends/roce-burst41-server.pcap.zst"}
	ends := [2][]capture.Frame{load(t, paths[0]), load(t, paths[1])}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		removed, with := int64(0), ends
		for point := range with {
			with[point] = slices.Clone(with[point])
			for range 12 {
				i := random.IntN(len(with[point]))
				if d := with[point][i].Data; d[23] == 17 && be.Uint16(d[36:]) == rocev2.UDPPort && int(d[29]) == 1+point && d[42] != 0x64 && d[42] != 0x11 { // came from the other end
					with[point] = slices.Delete(with[point], i, i+1)
					removed++
				}
			}
		}
		got := run(t, write(t, "client.pcap", with[0]), write(t, "server.pcap", with[1])).counts()
		if got.notCaptured > removed || got.notCaptured < removed/2 || got.lost > 82+removed/2 || got.lost+got.notCaptured+got.unknown > 82+removed {
			t.Errorf("%d packets removed: %+v", removed, got)
		}
	}
}

// TestFileTwice: files that are given several times count once, whichever point they belong to and in whatever order.
func TestFileTwice(t *testing.T) {
	want := run(t, stormClient, stormServer).counts()
	for _, paths := range [][]string{
		{stormClient, stormClient, stormServer},
		{stormClient, stormClient, stormClient, stormServer},
		{stormServer, stormClient, stormClient, stormServer, stormServer, stormClient, stormServer},
	} {
		r := run(t, paths...)
		if got := r.counts(); got != want || len(r.Points) != 2 {
			t.Errorf("%d files: %d points, %+v; want 2 points, %+v", len(paths), len(r.Points), got, want)
		}
	}
}

// TestDoubled: if one point has some of its packets twice, none of them is lost. Of a packet that came from the other end, the
// network may have made the second copy; one of a packet that the host sent is the capture's, unless the network copied this packet, too.
func TestDoubled(t *testing.T) {
	for _, c := range []struct {
		client, server            string
		lost, corrupted, repeated int64
	}{{stormClient, stormServer, 8, 10, 13}, {twoClient, twoServer, 18, 0, 0}} {
		for _, after := range []int64{5e3, 900e3} {
			var frames []capture.Frame
			doubled, sent := 0, 0
			for i, f := range load(t, c.server) {
				frames = append(frames, f)
				if at, is := network(&f); is && i%20 == 0 {
					doubled++
					if f.Data[at+15] == 1 { // from 192.168.77.1
						sent++
					}
					f.Time += after
					frames = append(frames, f)
				}
			}
			slices.SortStableFunc(frames, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
			got := run(t, c.client, write(t, "doubled.pcap", frames)).counts()
			want := counts{lost: c.lost, corrupted: c.corrupted, duplicated: c.repeated + int64(doubled-sent), mirrored: int64(sent)}
			if got.lost+got.unknown != want.lost || got.notCaptured != 0 || got.mirrored > want.mirrored || got.mirrored < want.mirrored-1 || got.duplicated > want.duplicated+1 || got.duplicated < want.duplicated-1 {
				t.Errorf("%d of %d doubled packets were sent by the server, copies %d ns later: %+v, want %+v", sent, doubled, after, got, want)
			}
		}
	}
}

// TestWindows: parts of captures are compared as the whole captures are: no point is taken for the other one, and no drift is
// seen. A part may have packets in two clumps, or few packets of one direction.
func TestWindows(t *testing.T) {
	parts := 0
	for _, name := range []string{"roce-linkdown3", "roce-burst41", "roce-reorder42", "roce-outage41", "roce-oneway41"} {
		ends := [2][]capture.Frame{load(t, "../../testdata/ends/"+name+"-client.pcap.zst"), load(t, "../../testdata/ends/"+name+"-server.pcap.zst")}
		whole := run(t, write(t, "client.pcap", ends[0]), write(t, "server.pcap", ends[1]))
		offset := whole.Points[1].Offset
		first, last := ends[0][0].Time, ends[0][len(ends[0])-1].Time
		for from := first; from < last; from += 1e9 {
			for _, length := range []int64{2e9, 10e9} {
				var paths []string
				for i, frames := range ends {
					start := from + int64(i)*offset
					lo, _ := slices.BinarySearchFunc(frames, start, func(f capture.Frame, t int64) int { return cmp.Compare(f.Time, t) })
					hi, _ := slices.BinarySearchFunc(frames, start+length, func(f capture.Frame, t int64) int { return cmp.Compare(f.Time, t) })
					paths = append(paths, write(t, strconv.Itoa(i)+".pcap", frames[lo:max(lo, hi)]))
				}
				r := run(t, paths...)
				if len(r.Points) != 2 {
					continue
				}
				parts++
				p := &r.Points[1]
				if d := p.Offset - offset; p.DriftKnown || len(p.Steps) > 0 || d > p.Error+100e3 || -d > p.Error+100e3 {
					t.Errorf("%s, %d s from second %d on: the clock is ahead by %d ns (error %d, drift %.1f ppm known %v, steps %+v), want %d",
						name, length/1e9, (from-first)/1e9, p.Offset, p.Error, p.Drift, p.DriftKnown, p.Steps, offset)
				}
				for j, address := range []string{"192.168.77.2", "192.168.77.1"} {
					if got := r.Points[j].Address; got != address {
						t.Errorf("%s, %d s from second %d on: point %d is at %s, want %s", name, length/1e9, (from-first)/1e9, j, got, address)
					}
				}
			}
		}
	}
	if parts < 100 {
		t.Errorf("only %d parts have two points", parts)
	}
}

// TestChangedOnTheWay: counts do not depend on what one point did not capture, or what routers changed.
func TestChangedOnTheWay(t *testing.T) {
	client, server := load(t, stormClient), load(t, stormServer)
	noID := func(_ int, f *capture.Frame) {
		if at, is := network(f); is {
			ip := f.Data[at:]
			var icrc rocev2.ICRC
			end := len(ip) - 4
			old, ok := icrc.RoCEv2(ip[:20], ip[20:28], ip[28:end])
			good := ok && old == binary.LittleEndian.Uint32(ip[end:])
			if ip[4], ip[5] = 0, 0; good {
				if err := rocev2.FixICRC(ip); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	noICRC := func(_ int, f *capture.Frame) {
		if _, is := network(f); is {
			clear(f.Data[len(f.Data)-4:])
		}
	}
	short := func(_ int, f *capture.Frame) { f.Data = f.Data[:min(len(f.Data), 128)] }
	routed := func(i int, f *capture.Frame) {
		if at, is := network(f); is {
			f.Data[at+1] = 3
			f.Data[at+8]--
			be.PutUint16(f.Data[at+10:], uint16(i))
			f.Data[at+28+4] |= 0x80
		}
		f.Data = slices.Insert(f.Data, 12, 0x81, 0, 0, 7)
		f.Length += 4
	}
	nothing := func(int, *capture.Frame) {}
	for _, c := range []struct {
		name               string
		atClient, atServer func(int, *capture.Frame)
		corrupted          int64
	}{
		{"no identification at either", noID, noID, 10},
		{"no identification at one", nothing, noID, 10},
		{"no ICRC at the client", noICRC, nothing, 8},
		{"no ICRC at the server", nothing, noICRC, 7},
		{"no ICRC at either", noICRC, noICRC, 7},
		{"short at the client", short, nothing, 10},
		{"short at the server", nothing, short, 7},
		{"routed", nothing, routed, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, write(t, "client.pcap", edited(client, c.atClient)), write(t, "server.pcap", edited(server, c.atServer)))
			got := r.counts()
			if got.lost+got.unknown != 8 || got.notCaptured != 0 || got.duplicated != 13 || got.corrupted < 7 || got.corrupted > 10 {
				t.Errorf("%+v; want 8 lost, 7 to 10 corrupted, 13 duplicated", got)
			}
		})
	}
}

// skewed returns frames with another clock, which is ahead by a time at the first frame, and gains.
func skewed(frames []capture.Frame, ahead int64, ppm float64) []capture.Frame {
	first := frames[0].Time
	return edited(frames, func(_ int, f *capture.Frame) {
		f.Time = first + int64(math.Round(float64(f.Time-first)*(1+ppm/1e6))) + ahead
	})
}

// TestSkew: a shift and a drift that were added to a clock are found. The offset between the two points differs by exactly
// these, along the whole capture and within a microsecond, also if the capture does not prove the drift of the plain
// clock.
func TestSkew(t *testing.T) {
	for _, c := range []struct {
		ahead int64
		ppm   float64
	}{{-6250e6, -90}, {6250e6, -90}, {375e5, 180}, {1e12, 0}, {-5, 40}} {
		for _, pair := range [][2]string{{stormClient, stormServer}, {twoClient, twoServer}} {
			server := load(t, pair[1])
			path := write(t, "skew.pcap", skewed(server, c.ahead, c.ppm))
			if c.ppm != 0 {
				p := run(t, write(t, "plain.pcap", server), path).Points[1]
				if d := p.Offset - c.ahead; d < -1000 || d > 1000 || math.Abs(p.Drift-c.ppm) > 0.03 || !p.DriftKnown {
					t.Errorf("%s: ahead by %d, %v ppm: found %d, %v ppm", pair[1], c.ahead, c.ppm, p.Offset, p.Drift)
				}
			}
			plain, r := run(t, pair[0], pair[1]), run(t, pair[0], path)
			if plain.counts() != r.counts() {
				t.Errorf("%s: ahead by %d, %v ppm: %+v, without it %+v", pair[1], c.ahead, c.ppm, r.counts(), plain.counts())
			}
			if d := r.Points[1].Offset - plain.Points[1].Offset - c.ahead; d > 1000 || -d > 1000 {
				t.Errorf("%s: ahead by %d, %v ppm: the offset differs by %d", pair[1], c.ahead, c.ppm, d)
			}
			for _, f := range server {
				skewed := server[0].Time + int64(math.Round(float64(f.Time-server[0].Time)*(1+c.ppm/1e6))) + c.ahead
				if d := r.sources[1].time(f.Number, skewed) - plain.sources[1].time(f.Number, f.Time); d > 1000 || d < -1000 {
					t.Fatalf("%s: ahead by %d, %v ppm: the corrected time of packet %d differs by %d", pair[1], c.ahead, c.ppm, f.Number, d)
				}
			}
			if d := r.Points[1].Error - plain.Points[1].Error; d > 1000 || d < -1000 {
				t.Errorf("%s: ahead by %d, %v ppm: the error differs by %d", pair[1], c.ahead, c.ppm, d)
			}
			if p := &r.Points[1]; p.DriftKnown && math.Abs(p.Drift-c.ppm) > p.DriftError {
				t.Errorf("%s: ahead by %d, %v ppm: drift %v with an error of %v", pair[1], c.ahead, c.ppm, p.Drift, p.DriftError)
			}
			back := run(t, path, pair[0])
			if plain.counts() != back.counts() {
				t.Errorf("%s: ahead by %d, %v ppm, as the reference: %+v", pair[1], c.ahead, c.ppm, back.counts())
			}
			if got := runWith(t, Options{Clock: []string{path}, Memory: 64 << 20}, pair[0], path); got.Points[1].Offset != 0 || got.Points[0].Offset == 0 {
				t.Errorf("the reference clock is not the second file: %+v", got.Points)
			}
		}
	}
}

// TestNotPoints: files that are not two points are not joined, and the program says why.
func TestNotPoints(t *testing.T) {
	client, server := load(t, stormClient), load(t, stormServer)
	var third []capture.Frame
	for i := 0; i < len(client); i += 3 {
		third = append(third, client[i])
	}
	one := write(t, "one.pcap", client)
	var oneWay []capture.Frame
	for _, f := range server {
		if at, is := network(&f); is && f.Data[at+15] == 1 {
			oneWay = append(oneWay, f)
		}
	}
	for _, c := range []struct {
		name, path, note string
		frames           int
	}{
		{"same", write(t, "same.pcap", client), "same times", len(client)},
		{"third", write(t, "third.pcap", third), "same times", len(client)},
		{"shifted", write(t, "shifted.pcap", skewed(client, 5e9, 0)), "exactly 5s", len(client)},
		{"unrelated", twoServer, "no packets in common", len(client) + len(load(t, twoServer))},
		{"one way", write(t, "way.pcap", oneWay), "only one direction", len(client)},
		{"few", write(t, "few.pcap", server[600:606]), "the files have too few packets in common, so they are merged by time as one capture; --points on takes them for capture points", len(client) + 6},
	} {
		r := run(t, one, c.path)
		if len(r.Points) != 1 || !r.Points[0].Known || len(r.hops) != 0 || len(r.frames) != c.frames || !strings.Contains(strings.Join(r.Notes, "\n"), c.note) {
			t.Errorf("%s: %d points, %d frames, %q; want 1 point, %d frames, %q", c.name, len(r.Points), len(r.frames), r.Notes, c.frames, c.note)
		}
	}
}

// TestPointsTold: files are points if the user says so, however few packets they have in common, whatever their names and times are; and the
// program says what is wrong if they have none.
func TestPointsTold(t *testing.T) {
	client, server := load(t, stormClient), load(t, stormServer)
	folder := t.TempDir()
	in := func(name string, frames []capture.Frame) string {
		return writeTo(t, filepath.Join(folder, name), frames)
	}
	for _, c := range []struct {
		name, path, other, says string
	}{
		{"few packets", stormClient, write(t, "few.pcap", server[600:606]), "as --points says: ends-stormall42-client.pcap.zst and few.pcap have >= "},
		{"other times", in("first.pcap", client[200:500]), in("second.pcap", skewed(server[400:900], 60e9, 0)), "as --points says: first.pcap and second.pcap have >= "},
		{"named as a ring", in("r_00001_20261122081414.pcap", client[:700]), in("r_00002_20261122081434.pcap", skewed(server[500:], 30e9, 0)), "in common"},
		{"same times", in("one.pcap", client), in("same.pcap", client), "one.pcap and same.pcap have packets in common with the same times, so they are not two capture points; name the files of all points"},
		{"same times of few packets", stormClient, in("part.pcap", client[600:606]), "with the same times, so they are not two capture points"},
		{"a constant difference", stormClient, in("shift.pcap", skewed(client, 5e9, 0)), "whose times differ by exactly 5s, so they are not two capture points"},
		{"unrelated", stormClient, "../../testdata/captures/rocev2-nfs3.pcap.zst", "ends-stormall42-client.pcap.zst (1584 packets), rocev2-nfs3.pcap.zst (2757 packets) have no packets in common; "},
		{"one direction", stormClient, write(t, "way.pcap", slices.DeleteFunc(slices.Clone(server), func(f capture.Frame) bool {
			at, is := network(&f)
			return !is || f.Data[at+15] != 1
		})), "these are packets of only one direction, so their clocks cannot be compared; capture both directions at both points, "},
		{"one file", stormClient, "", "ends-stormall42-client.pcap.zst has the packets of one interface; name the files of all points"},
	} {
		paths := slices.DeleteFunc([]string{c.path, c.other}, func(path string) bool { return path == "" })
		if auto := open(t, Options{Memory: 64 << 20}, paths...); len(auto.Points()) > 1 {
			t.Errorf("%s: %d points without the user's word: %q", c.name, len(auto.Points()), auto.plan.Notes)
		}
		r := runWith(t, Options{Memory: 64 << 20, Points: true}, paths...)
		said := strings.Join(r.Notes, "\n")
		if len(r.Points) < 2 {
			said = r.Unmatched()
		}
		if joins := strings.HasPrefix(c.says, "as") || c.says == "in common"; (len(r.Points) == 2) != joins || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d points: %s; want %s", c.name, len(r.Points), said, c.says)
		}
	}
}

// TestMatched: each point knows how many packets it has in common with the reference, whether their way passes the points in between or not.
func TestMatched(t *testing.T) {
	ends := split(load(t, "../../testdata/captures/rocev2-callback41.pcap.zst"), 3)
	known := int64(0) // of a path
	for lacks := range 3 {
		less := slices.Clone(ends)
		if lacks > 0 {
			less[lacks] = slices.Delete(slices.Clone(ends[lacks]), 50, 60)
		}
		var paths []string
		for i, frames := range less {
			paths = append(paths, write(t, string(rune('a'+i))+".pcap", frames))
		}
		s := open(t, Options{Memory: 64 << 20}, paths...)
		for _, err := range capture.All(t.Context(), s) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got := [3]int64{s.Matched(0), s.Matched(1), s.Matched(2)}
		if known = max(known, got[0]); lacks == 0 && (known < 290 || got != [3]int64{known, known, known}) {
			t.Errorf("%v packets in common of %d", got, len(ends[0]))
		}
		want := [3]int64{known, known, known}
		if want[lacks] -= 10; lacks > 0 && got != want {
			t.Errorf("without ten frames of point %d: %v packets in common, want %v", lacks, got, want)
		}
	}
}

// TestPartOfTheTime: a packet that a point could not capture was not lost.
func TestPartOfTheTime(t *testing.T) {
	for _, pair := range [][2]string{{stormClient, stormServer}, {twoClient, twoServer}} {
		whole := run(t, pair[0], pair[1])
		client, server := load(t, pair[0]), load(t, pair[1])
		r := run(t, write(t, "a.pcap", client[len(client)/2:]), write(t, "b.pcap", server[:len(server)*3/4]))
		in := counts{}
		from, to := client[len(client)/2].Time, r.Points[1].last
		for _, f := range whole.frames {
			if f.Seen.Fate == capture.FateLost && f.Time >= from && f.Time < to {
				in.lost++
			}
		}
		if got := r.counts(); got.lost > in.lost || got.notCaptured > 0 {
			t.Errorf("%s: %+v; at most %d were lost in that time", pair[0], got, in.lost)
		}
	}
}

// TestNotCaptured: packets that the capture at the receiver lacks were not lost.
func TestNotCaptured(t *testing.T) {
	client, server := load(t, twoClient), load(t, twoServer)
	random := rand.New(rand.NewPCG(1, 2))
	var kept []capture.Frame
	requests := 0
	for _, f := range server {
		if at, is := network(&f); is && f.Data[at+15] == 2 && rocev2.Opcode(f.Data[at+28]).Info().Request && random.IntN(10) == 0 {
			requests++
			continue
		}
		kept = append(kept, f)
	}
	got := run(t, write(t, "client.pcap", client), write(t, "server.pcap", kept)).counts()
	if got.lost+got.unknown < 18 || got.lost+got.unknown > 20 || got.notCaptured < int64(requests)*9/10 {
		t.Errorf("%+v; want 18 to 20 lost, or unknown because the capture is incomplete, and %d not captured", got, requests)
	}
}

// TestIncomplete: if the capture at a point dropped packets, at random or in bursts, the packets that it lacks are not
// captured. Only packets that their sender sent once more are lost.
func TestIncomplete(t *testing.T) {
	for _, pair := range [][2]string{{stormClient, stormServer}, {twoClient, twoServer}} {
		whole := run(t, pair[0], pair[1]).counts()
		truth := whole.lost
		for _, burst := range []int{1, 20, 100} {
			for _, share := range []float64{0.1, 0.3, 0.7} {
				for side := range 2 {
					random := rand.New(rand.NewPCG(uint64(side), uint64(burst)))
					ends := [2][]capture.Frame{load(t, pair[0]), load(t, pair[1])}
					var kept []capture.Frame
					for list := range slices.Chunk(ends[side], burst) {
						if len(kept) == 0 || len(list) < burst || random.Float64() >= share {
							kept = append(kept, list...)
						}
					}
					dropped := int64(len(ends[side]) - len(kept))
					ends[side] = kept
					p := run(t, write(t, "client.pcap", ends[0]), write(t, "server.pcap", ends[1]))
					got := p.counts()
					if len(p.Points) == 2 && (got.lost+got.corrupted > truth+whole.corrupted+2 || got.notCaptured+got.unknown < dropped/3 || got.notCaptured > dropped) {
						t.Errorf("%s: end %d dropped %d packets, %v of them in bursts of %d: %+v; %d were lost", pair[0], side, dropped, share, burst, got, truth)
					}
					if share == 0.1 && burst == 1 && got.lost+got.unknown < whole.lost+whole.unknown-2 {
						t.Errorf("%s: end %d dropped %d packets: only %d lost or unknown, of %d losses", pair[0], side, dropped, got.lost+got.unknown, whole.lost+whole.unknown)
					}
				}
			}
		}
	}
}

// TestResponseLostAgain: a second copy of a response is lost after the first one arrived. Nothing shows that the
// second one arrived, too.
func TestResponseLostAgain(t *testing.T) {
	client, server := load(t, twoClient), load(t, twoServer)
	var with []capture.Frame
	copied := 0
	for i, f := range client {
		with = append(with, f)
		if at, is := network(&f); is && f.Data[at+15] == 2 && i%9 == 0 && rocev2.Opcode(f.Data[at+28]).Info().Kind == rocev2.KindReadResponse {
			f.Time += 500e3
			f.Data = slices.Clone(f.Data)
			sum, id := be.Uint16(f.Data[at+10:]), be.Uint16(f.Data[at+4:])
			be.PutUint16(f.Data[at+4:], ^id) // A host gives each packet that it sends an identification of its own.
			changed := uint32(^sum) + uint32(^id) + uint32(^id)
			be.PutUint16(f.Data[at+10:], ^uint16(changed%0xffff))
			if err := rocev2.FixICRC(f.Data[at:]); err != nil {
				t.Fatal(err)
			}
			copied++
			with = append(with, f)
		}
	}
	if copied < 5 {
		t.Fatalf("%d responses", copied)
	}
	slices.SortStableFunc(with, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
	if got := run(t, write(t, "client.pcap", with), write(t, "server.pcap", server)).counts(); got.lost+got.unknown != 18+int64(copied) || got.notCaptured > 0 {
		t.Errorf("%+v; want %d lost, or unknown", got, 18+copied)
	}
}

// TestQuiet: packets that are lost while the capture at the other point has no frame at all are counted apart, with that time. One
// frame in each half of a second shows that the host there was up.
func TestQuiet(t *testing.T) {
	const start = int64(1.7e18)
	for _, up := range []bool{false, true} {
		w := &traffic{random: rand.New(rand.NewPCG(3, 1)), seconds: 20, gap: 20e6, base: 50e3, queue: 50e3}
		w.make()
		down := func(f capture.Frame) bool { return f.Time >= start+8e9 && f.Time < start+12e9 }
		var hello []capture.Frame
		if up {
			for at := start + 8e9; at < start+12e9; at += 5e8 {
				data := make([]byte, 60) // no packet of RDMA
				hello = append(hello, capture.Frame{Time: at, Length: len(data), Data: data})
			}
		}
		w.client = slices.DeleteFunc(w.client, func(f capture.Frame) bool { return down(f) && f.Data[14+15] != 1 })
		var again, came []capture.Frame // The client repeats the requests that were not answered, and then they come.
		for _, f := range w.client {
			if down(f) && rocev2.Opcode(f.Data[42]).Info().Request {
				f.Time += 4e9
				again = append(again, f)
				f.Time += 60e3
				came = append(came, f)
			}
		}
		after := func(f capture.Frame) bool { return f.Time >= start+12e9 }
		w.client = append(slices.DeleteFunc(w.client, after), again...)
		slices.SortStableFunc(w.client, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		w.server = append(append(slices.DeleteFunc(slices.DeleteFunc(w.server, down), after), hello...), came...)
		slices.SortStableFunc(w.server, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
		r := run(t, write(t, "client.pcap", w.client), write(t, "server.pcap", w.server))
		h := r.hops[slices.IndexFunc(r.hops, func(h *Hop) bool { return h.From == 0 })]
		list := h.Quiet()
		if h.Lost < 50 || len(list) == 0 != up || !up && (len(list) != 1 || list[0].Lost != h.Lost || list[0].From < start+79e8 || list[0].From > start+8e9 || list[0].To < start+12e9) {
			t.Errorf("the server is up: %t: %d lost, quiet %+v", up, h.Lost, list)
		}
	}
}

// TestDisorder: frames that are not in the order of their times in a file are not lost. If the disorder is too large,
// nothing is known about packets that have no counterpart.
func TestDisorder(t *testing.T) {
	server := load(t, stormServer)
	random := rand.New(rand.NewPCG(3, 4))
	near := slices.Clone(server)
	for i := 0; i+8 < len(near); i += 8 {
		if near[i+8].Time-near[i].Time < 3e9 {
			random.Shuffle(8, func(a, b int) { near[i+a], near[i+b] = near[i+b], near[i+a] })
		}
	}
	if got := run(t, stormClient, write(t, "near.pcap", near)).counts(); got.lost+got.unknown != 8 || got.notCaptured > 0 {
		t.Errorf("%+v; want 8 lost", got)
	}
	random.Shuffle(len(server), func(a, b int) { server[a], server[b] = server[b], server[a] })
	if got := run(t, stormClient, write(t, "far.pcap", server)).counts(); got.lost > 0 {
		t.Errorf("%+v; want none that are known to be lost", got)
	}
}

// TestMirror: a mirror port of both directions shows each packet twice, and network duplicates remain.
func TestMirror(t *testing.T) {
	var twice []capture.Frame
	for i, f := range load(t, stormServer) {
		twice = append(twice, f)
		f.Time += int64(i%40) * 1000
		twice = append(twice, f)
	}
	slices.SortStableFunc(twice, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
	got := run(t, stormClient, write(t, "mirror.pcap", twice)).counts()
	if got.lost+got.unknown != 8 || got.duplicated != 13 || got.corrupted < 7 || got.corrupted > 10 || got.mirrored < 1545 || got.mirrored > 1560 {
		t.Errorf("%+v; want 8 lost, 7 to 10 corrupted, 13 duplicated, and about 1550 mirror duplicates", got)
	}
}

// TestSteps: a clock that steps is found at the packet after the step.
func TestSteps(t *testing.T) {
	for _, by := range []int64{3e6, -3e6, 50e6, -2e9, 3600e9} {
		for _, at := range []int{300, 700, 1200} {
			server := edited(load(t, stormServer), func(i int, f *capture.Frame) {
				if i >= at {
					f.Time += by
				}
			})
			path := write(t, "step.pcap", server)
			r := run(t, stormClient, path)
			if len(r.Points) != 2 {
				t.Errorf("a step of %d at packet %d: %q", by, at+1, r.Notes)
				continue
			}
			steps := r.Points[1].Steps
			// The packets at the step are not necessarily in both captures.
			if len(steps) != 1 || steps[0].Packet < int64(at)-8 || steps[0].Packet > int64(at)+8 || steps[0].By < by-3e6 || steps[0].By > by+3e6 {
				t.Errorf("a step of %d at packet %d: found %+v", by, at+1, steps)
			}
			r.want(t, 8, 10, 13)
		}
	}
}

// TestStepsOfReference: a step of the clock whose times are shown takes no time between two packets.
func TestStepsOfReference(t *testing.T) {
	times := func(files ...string) (r *result, at map[int64]int64) {
		r, at = run(t, files...), map[int64]int64{}
		for _, f := range r.frames {
			if f.Seen != nil && f.Seen.SentPoint == 0 && f.Seen.SentNumber != 0 {
				at[f.Seen.SentNumber] = f.Time
			}
		}
		return r, at
	}
	_, want := times(stormClient, stormServer)
	for _, by := range []int64{8e9, -8e9, 500e6, -500e6, 50e6} {
		for _, from := range []int{301, 702, 1203} {
			r, got := times(write(t, "step.pcap", edited(load(t, stormClient), func(i int, f *capture.Frame) {
				if i >= from {
					f.Time += by
				}
			})), stormServer)
			steps := r.Points[0].Steps
			if len(r.Points[1].Steps) > 0 || len(steps) != 1 || steps[0].Packet < int64(from)-8 || steps[0].Packet > int64(from)+8 || steps[0].By < by-3e6 || steps[0].By > by+3e6 {
				t.Errorf("a step of %d at packet %d: found %+v and %+v", by, from+1, steps, r.Points[1].Steps)
			}
			for number, at := range want {
				if d := got[number] - at; d > 3e6 || -d > 3e6 {
					t.Fatalf("a step of %d at packet %d: packet %d is moved by %d ns", by, from+1, number, d)
				}
			}
			r.want(t, 8, 10, 13)
		}
	}
}

// traffic makes frames of two hosts at two points: requests at a rate, answers to them, and delays.
type traffic struct {
	random         *rand.Rand
	seconds        float64
	gap            float64 // mean time between requests in nanoseconds
	base           float64 // least delay in nanoseconds
	queue          float64 // mean of the additional delay in nanoseconds
	slower         float64 // additional delay of requests in nanoseconds
	offset, ppm    float64 // of the clock of the server
	host           byte    // last byte of the client's address; 0 means 1
	client, server []capture.Frame
}

// packet returns a RoCEv2 frame.
func packet(request bool, psn uint32, identification uint16, size int) []byte {
	src, dst, opcode := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), byte(4)
	if !request {
		src, dst, opcode = dst, src, 0x11
		size = 4
	}
	b := make([]byte, 14, 14+20+8+12+size+4)
	b[12] = 8
	total := 20 + 8 + 12 + size + 4
	ip := make([]byte, total)
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	be.PutUint16(ip[2:], uint16(total))
	be.PutUint16(ip[4:], identification)
	a, c := src.As4(), dst.As4()
	copy(ip[12:], a[:])
	copy(ip[16:], c[:])
	be.PutUint16(ip[20:], 50000)
	be.PutUint16(ip[22:], rocev2.UDPPort)
	be.PutUint16(ip[24:], uint16(total-20))
	ip[28] = opcode
	be.PutUint32(ip[32:], 0x12)
	be.PutUint32(ip[36:], psn&rocev2.PSNMask)
	if err := rocev2.FixICRC(ip); err != nil {
		panic(err)
	}
	return append(b, ip...)
}

// make makes the frames.
func (w *traffic) make() {
	const start = 1.7e18
	psn := uint32(0)
	atServer := func(t float64) int64 { return int64(start) + int64(w.offset+t*(1+w.ppm/1e6)) }
	for t := 0.0; t < w.seconds*1e9; t += w.random.ExpFloat64() * w.gap {
		psn++
		ask, answer := packet(true, psn, uint16(psn), 64), packet(false, psn, uint16(psn), 0)
		arrives := t + w.base + w.slower + w.random.ExpFloat64()*w.queue
		leaves := arrives + 20e3
		back := leaves + w.base + w.random.ExpFloat64()*w.queue
		add := func(list *[]capture.Frame, at int64, data []byte) {
			*list = append(*list, capture.Frame{Time: at, Length: len(data), Data: data})
		}
		add(&w.client, int64(start)+int64(t), ask)
		add(&w.server, atServer(arrives), ask)
		add(&w.server, atServer(leaves), answer)
		add(&w.client, int64(start)+int64(back), answer)
	}
	for _, list := range []*[]capture.Frame{&w.client, &w.server} {
		slices.SortStableFunc(*list, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
		for i := range *list {
			ip := (*list)[i].Data[14:]
			if at := 15 + 4*int(ip[28]>>4&1); w.host != 0 && ip[at] != w.host {
				ip[at] = w.host
				if err := rocev2.FixICRC(ip); err != nil {
					panic(err)
				}
			}
		}
	}
}

// run returns the points of the traffic.
func (w *traffic) run(t *testing.T) *result {
	w.make()
	return run(t, write(t, "client.pcap", w.client), write(t, "server.pcap", w.server))
}

// TestClocks: the error of the offset is small, and within the error that is reported.
func TestClocks(t *testing.T) {
	outside, all := 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := &traffic{
			random: random, seconds: math.Pow(60, random.Float64()), gap: 5e6 * (0.2 + random.Float64()), base: 50e3, queue: 20e3 + random.Float64()*300e3,
			offset: (random.Float64() - 0.5) * 1e10, ppm: random.Float64() * 120,
		}
		if seed%4 == 0 {
			w.ppm = 0
		}
		r := w.run(t)
		if len(r.Points) != 2 {
			t.Errorf("seed %d: %d points", seed, len(r.Points))
			continue
		}
		src, p := r.sources[1], &r.Points[1]
		worst := 0.0
		for i := range 101 {
			at := float64(i) * w.seconds * 1e7
			got := src.time(math.MaxInt64, int64(1.7e18)+int64(w.offset+at*(1+w.ppm/1e6))) - int64(1.7e18)
			worst = max(worst, math.Abs(float64(got)-at))
			if all++; math.Abs(float64(got)-at) > float64(p.Error) {
				outside++
			}
		}
		if w.seconds >= 10 && worst > 30e3 {
			t.Errorf("seed %d: %.1f s, %.0f ppm, queues of %.0f us: the offset is wrong by up to %.1f us; error told %d", seed, w.seconds, w.ppm, w.queue/1e3, worst/1e3, p.Error)
		}
		if c := r.counts(); c != (counts{unknown: c.unknown}) || c.unknown > 4 {
			t.Errorf("seed %d: %+v", seed, c)
		}
	}
	if outside*100 > all {
		t.Errorf("the offset is outside of the told error in %d of %d cases", outside, all)
	}
	outside, all = 0, 0
	for seed := range uint64(20) { // Queues are much longer than the shortest delay, so few packets show the clocks.
		random := rand.New(rand.NewPCG(seed, 9))
		w := &traffic{random: random, seconds: 3, gap: 2e7, base: 5e3, queue: 1e6, offset: 1e9, ppm: 40 * float64(seed%3)}
		r := w.run(t)
		if len(r.Points) != 2 {
			t.Errorf("seed %d: %d points", seed, len(r.Points))
			continue
		}
		for i := range 101 {
			at := float64(i) * w.seconds * 1e7
			got := r.sources[1].time(math.MaxInt64, int64(1.7e18)+int64(w.offset+at*(1+w.ppm/1e6))) - int64(1.7e18)
			if all++; math.Abs(float64(got)-at) > float64(r.Points[1].Error) {
				outside++
			}
		}
		if p := &r.Points[1]; p.DriftKnown && math.Abs(p.Drift-w.ppm) > p.DriftError {
			t.Errorf("seed %d: drift %v instead of %v, and the error that is told is %v", seed, p.Drift, w.ppm, p.DriftError)
		}
	}
	if outside*100 > all {
		t.Errorf("with long queues, the offset is outside of the told error in %d of %d cases", outside, all)
	}
	w := &traffic{random: rand.New(rand.NewPCG(1, 1)), seconds: 10, gap: 3e6, base: 50e3, queue: 50e3, slower: 5e6}
	if p := w.run(t).Points[1]; p.Error < 2.5e6 || p.Error > 2.7e6 || len(p.Steps) > 0 {
		t.Errorf("with 5 ms in one direction: %+v", p)
	}
}

// TestLine: a slope that is not proven ends far from the pairs, and both directions of a conversion agree.
func TestLine(t *testing.T) {
	for _, drifts := range []bool{true, false} {
		l := line{x0: 1e9, x1: 2e9, offset: 5000, slope: 1e-4, drifts: drifts}
		for _, c := range []struct{ x, drifting, not int64 }{{-10e9, -1_095_000, -195_000}, {0, -95_000, -95_000}, {1e9, 5000, 5000}, {15e8, 55_000, 55_000}, {100e9, 9_905_000, 305_000}} {
			want := c.not
			if drifts {
				want = c.drifting
			}
			if got := int64(math.Round(l.at(c.x))); got != want {
				t.Errorf("proven %v: the offset at %d is %d, want %d", drifts, c.x, got, want)
			}
			if got := l.back(c.x + want); got != c.x {
				t.Errorf("proven %v: the time for %d is %d", drifts, c.x, got)
			}
		}
	}
}

// TestIdentical: packets that do not differ cost as much as others.
func TestIdentical(t *testing.T) {
	const n = 200_000
	data := packet(true, 1, 0, 8)
	w := &traffic{random: rand.New(rand.NewPCG(1, 1)), seconds: 1, gap: 5e6, base: 50e3, queue: 50e3}
	w.make()
	for i := range n {
		at := int64(1.7e18) + int64(i)*5000
		w.client = append(w.client, capture.Frame{Time: at, Length: len(data), Data: data})
		w.server = append(w.server, capture.Frame{Time: at + 60e3, Length: len(data), Data: data})
	}
	for _, list := range []*[]capture.Frame{&w.client, &w.server} {
		slices.SortStableFunc(*list, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
	}
	r := runWith(t, Options{Memory: 8 << 20}, write(t, "client.pcap", w.client), write(t, "server.pcap", w.server))
	if c := r.counts(); c.lost != 0 || c.duplicated != 0 || c.notCaptured != 0 || r.at*entryBytes > 16<<20 {
		t.Errorf("%+v, %d entries", c, r.at)
	}
}

// TestThree: two clients and a server, files of a ring, and a point on the way lose nothing.
func TestThree(t *testing.T) {
	one := &traffic{random: rand.New(rand.NewPCG(1, 1)), seconds: 6, gap: 4e6, base: 50e3, queue: 50e3, offset: 3e9, ppm: 30}
	two := &traffic{random: rand.New(rand.NewPCG(2, 1)), seconds: 9, gap: 3e6, base: 50e3, queue: 50e3, offset: 3e9, ppm: 30, host: 7}
	one.make()
	two.make()
	two.client = skewed(two.client, -4e9, 0)
	server := slices.Concat(one.server, two.server)
	slices.SortStableFunc(server, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
	half := len(one.client) / 2
	a, b, s := write(t, "a.pcap", one.client), write(t, "b.pcap", two.client), write(t, "server.pcap", server)
	middle := skewed(one.server, 77e9, -50) // on the way from the first client, without a delay to the server
	for _, c := range []struct {
		name   string
		paths  []string
		points int
	}{
		{"two clients", []string{a, b, s}, 3},
		{"the server first", []string{s, b, a}, 3},
		{"one client of two", []string{b, s}, 2},
		{"a ring", []string{write(t, "a1.pcap", one.client[:half]), write(t, "a2.pcap", one.client[half:]), s}, 2},
		{"two rings", []string{
			write(t, "a1.pcap", one.client[:half]), write(t, "a2.pcap", one.client[half:]),
			write(t, "s1.pcap", server[:len(server)/3]), write(t, "s2.pcap", server[len(server)/3:]),
		}, 2},
		{"three in a row", []string{a, write(t, "middle.pcap", middle), s}, 3},
	} {
		r := run(t, c.paths...)
		n := r.counts()
		if len(r.Points) != c.points || n != (counts{unknown: n.unknown}) || n.unknown > 8 {
			t.Errorf("%s: %d points, %+v, %q", c.name, len(r.Points), n, r.Notes)
		}
		want := len(one.client)
		if strings.Contains(c.name, "server") || strings.Contains(c.name, "two clients") {
			want += len(two.client)
		} else if len(c.paths) == 2 {
			want = len(server)
		} else {
			want = len(server)
			if c.points == 3 {
				want = len(server)
			}
		}
		if d := len(r.frames) - want; d < 0 || d > 8 {
			t.Errorf("%s: %d frames, want about %d", c.name, len(r.frames), want)
		}
		for i := range r.frames[1:] {
			if r.frames[i+1].Time < r.frames[i].Time {
				t.Errorf("%s: frame %d is before the one before", c.name, i+2)
				break
			}
		}
	}
}

// FuzzPoints: any two files give some result.
func FuzzPoints(f *testing.F) {
	client, server := load(f, stormClient)[:200], load(f, stormServer)[:200]
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		one, _ := testkit.Damage(a, client, server)
		two, _ := testkit.Damage(b, server, client)
		var paths []File
		for i, file := range [][]byte{one, two} {
			path := filepath.Join(t.TempDir(), string(rune('a'+i)))
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, File{Path: path, Name: path})
		}
		p, err := Recognize(t.Context(), paths, Options{Memory: 1 << 20})
		if err != nil {
			return
		}
		s, err := p.Open(t.Context())
		if err != nil {
			return
		}
		defer s.Close()
		n := int64(0)
		for _, err := range capture.All(t.Context(), s) {
			if err != nil {
				break
			}
			n++
		}
		total := int64(0)
		for i := range p.Points {
			total += p.Points[i].Packets
		}
		for _, h := range s.Hops() {
			if h.Lost < 0 || h.Lost+h.NotCaptured+h.Unknown > h.Packets {
				t.Errorf("of %d packets, %d are lost, %d not captured and %d unknown: more than there are, or fewer than none", h.Packets, h.Lost, h.NotCaptured, h.Unknown)
			}
			sumsUp(t, h)
		}
		if n > total {
			t.Errorf("%d frames of %d", n, total)
		}
	})
}

// TestMergedSegments: TCP segments that a host merged are matched by their bytes.
func TestMergedSegments(t *testing.T) {
	wire := load(t, "../../testdata/captures/iwarp-nfs41.pcap.zst")
	var server []capture.Frame
	for _, f := range wire { // as the other end sees it, 80 us away
		if len(f.Data) > 34 && f.Data[29] == 2 {
			f.Time += 80e3
		} else {
			f.Time -= 80e3
		}
		f.Time += 3e9
		server = append(server, f)
	}
	slices.SortStableFunc(server, func(a, b capture.Frame) int { return int(a.Time - b.Time) })
	for _, c := range []struct {
		name           string
		client, server []capture.Frame
	}{
		{"plain", wire, server},
		{"at the client", merged(wire), server},
		{"at the server", wire, merged(server)},
		{"at both", merged(wire), merged(server)},
		{"from its middle", wire[len(wire)/2:], server},
		{"without its end", wire, server[:len(server)*2/3]},
	} {
		r := run(t, write(t, "client.pcap", c.client), write(t, "server.pcap", c.server))
		if len(r.hops) != 2 {
			t.Errorf("%s: %d directions, %q", c.name, len(r.hops), r.Notes)
			continue
		}
		for _, h := range r.hops {
			if h.Bytes < 20e3 || h.Lost > 0 || h.BytesLost > 0 || h.NotCaptured > 0 || h.BytesDuplicated > 0 || h.Duplicated > 0 {
				t.Errorf("%s: from %d to %d: %d bytes, lost %d (%d bytes), duplicated %d (%d bytes), not captured %d", c.name, h.From, h.To, h.Bytes, h.Lost, h.BytesLost, h.Duplicated, h.BytesDuplicated, h.NotCaptured)
			}
		}
	}
}

// TestCopiesOfSegments: of two copies of a segment that are on the way at the same time, the one arrives that has the arrival's
// IP identification. The Reply in packet 1784 of both ends was retransmitted 39 ms later, before it came to the client.
func TestCopiesOfSegments(t *testing.T) {
	const client, server = "../../testdata/ends/iw-twosided-client.pcap.zst", "../../testdata/ends/iw-twosided-server.pcap.zst"
	files := [][]capture.Frame{load(t, client), load(t, server)}
	r := run(t, client, server)
	compared, sent := 0, map[int64]int64{}
	for _, f := range r.frames {
		v := f.Seen
		if v.SentNumber == 0 || v.ArrivedNumber == 0 {
			continue
		}
		a, b := files[v.SentPoint][v.SentNumber-1].Data, files[v.ArrivedPoint][v.ArrivedNumber-1].Data
		if v.SentPoint == 1 {
			sent[v.ArrivedNumber] = v.SentNumber
		}
		if a[23] != 6 || len(a) != len(b) || a[18] == 0 && a[19] == 0 {
			continue
		}
		if compared++; a[18] != b[18] || a[19] != b[19] {
			t.Errorf("packet %d of point %d came as packet %d of point %d, which has another IP identification", v.SentNumber, v.SentPoint, v.ArrivedNumber, v.ArrivedPoint)
		}
	}
	if compared < 1000 || sent[1784] != 1784 || sent[1788] != 1785 {
		t.Errorf("%d packets compared; packets 1784 and 1788 of the client are packets %d and %d of the server, want 1784 and 1785", compared, sent[1784], sent[1788])
	}
}

// TestDoubledSegments: the network doubled segments of the server before a switch, and other ones of the client after it. They
// are duplicates of that hop, however many points there are, and no copy is a packet that its sender retransmitted.
func TestDoubledSegments(t *testing.T) {
	wire := load(t, "../../testdata/captures/iwarp-nfs41.pcap.zst")
	fromServer := func(f *capture.Frame) bool { return f.Data[29] == 1 } // 192.168.77.1
	doubled := map[bool]map[int]bool{true: {}, false: {}}
	for i := 100; i < len(wire); i += 20 {
		if f := &wire[i]; f.Length > 100 && f.Data[23] == 6 && len(doubled[fromServer(f)]) < 20 {
			doubled[fromServer(f)][i] = true
		}
	}
	if len(doubled[true]) < 10 || len(doubled[false]) < 10 {
		t.Fatalf("%d segments of the server and %d of the client", len(doubled[true]), len(doubled[false]))
	}
	// at returns the capture of a point that frames of the client reach after some time, and those of the server that much before
	// they reach the client. It has copies of the frames that are doubled at a point before it.
	at := func(name string, offset, later int64, copies ...map[int]bool) string {
		var list []capture.Frame
		for i, f := range edited(wire, func(_ int, f *capture.Frame) {
			if f.Time += offset - later; !fromServer(f) {
				f.Time += 2 * later
			}
		}) {
			list = append(list, f)
			for _, c := range copies {
				if c[i] {
					f.Time += 300e3
					list = append(list, f)
				}
			}
		}
		slices.SortStableFunc(list, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		return write(t, name, list)
	}
	client := at("client.pcap", 0, 0, doubled[true])
	between := at("switch.pcap", 1e9, 40e3, doubled[true])
	server := at("server.pcap", 3e9, 80e3, doubled[false])
	for _, c := range []struct {
		paths  []string
		copies int
		hops   []int64 // duplicates of each hop to the server, then of each hop to the client
	}{
		{[]string{client, between, server}, len(doubled[true]) + len(doubled[false]), []int64{0, int64(len(doubled[false])), 0, int64(len(doubled[true]))}},
		{[]string{client, between}, len(doubled[true]), []int64{0, 0}},
		{[]string{between, server}, len(doubled[true]) + len(doubled[false]), []int64{int64(len(doubled[false])), int64(len(doubled[true]))}},
	} {
		r := run(t, c.paths...)
		var got []int64
		for _, dir := range []bool{false, true} {
			for _, h := range r.hops {
				if back := h.From > h.To; back == dir {
					got = append(got, h.Duplicated)
				}
				if h.MirrorDuplicates+h.Lost > 0 {
					t.Errorf("%d points, from %d to %d: %d duplicates of a mirror, %d lost", len(c.paths), h.From, h.To, h.MirrorDuplicates, h.Lost)
				}
			}
		}
		copies := 0
		for _, f := range r.frames {
			if f.Seen.Duplicate || f.Seen.Fate == capture.FateDuplicated {
				copies++
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.hops) || copies != c.copies {
			t.Errorf("%d points: duplicates %v, want %v; %d copies, want %d", len(c.paths), got, c.hops, copies, c.copies)
		}
	}
}

// TestDamagedSegment: the frame as it was sent stands for a segment that was damaged on the way, because its receiver drops it.
func TestDamagedSegment(t *testing.T) {
	wire := load(t, "../../testdata/captures/iwarp-nfs41.pcap.zst")
	at := slices.IndexFunc(wire[len(wire)/2:], func(f capture.Frame) bool { return f.Length > 200 && f.Data[23] == 6 && f.Data[29] == 2 }) + len(wire)/2
	server := edited(wire, func(i int, f *capture.Frame) {
		if f.Time += 3e9 + 80e3; f.Data[29] != 2 {
			f.Time -= 160e3
		}
		if i == at {
			f.Data[61] ^= 1 // the TCP timestamp
		}
	})
	number := wire[at].Number
	slices.SortStableFunc(server, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
	r := run(t, write(t, "client.pcap", wire), write(t, "server.pcap", server))
	damaged := 0
	for _, f := range r.frames {
		if v := f.Seen; v.Fate == capture.FateCorrupted {
			damaged++
			if v.Point != 0 || f.Number != number || v.SentNumber != number || v.ArrivedNumber != 0 {
				t.Errorf("packet %d of point %d was damaged, sent as packet %d, arrived as %d; want packet %d of point 0, not arrived", f.Number, v.Point, v.SentNumber, v.ArrivedNumber, number)
			}
		}
	}
	if c := r.counts(); damaged != 1 || c.corrupted != 1 || c.lost != 0 {
		t.Errorf("%d damaged packets, %+v; want one, and none lost", damaged, c)
	}
}

// merged merges the segments of a TCP connection that follow each other within 2 ms, as a host does that uses TSO
// and GRO.
func merged(frames []capture.Frame) []capture.Frame {
	type last struct {
		at   int // index in list
		next uint32
		ack  uint32
	}
	var list []capture.Frame
	open := map[string]*last{}
	for _, f := range frames {
		if len(f.Data) < 54 || f.Data[12] != 8 || f.Data[13] != 0 || f.Data[23] != 6 {
			list = append(list, f)
			continue
		}
		tcp := 14 + int(f.Data[14]&15)*4
		data := tcp + int(f.Data[tcp+12]>>4)*4
		payload := f.Data[data : 14+int(be.Uint16(f.Data[16:]))]
		key := string(f.Data[26:34]) + string(f.Data[tcp:tcp+4])
		back := string(f.Data[30:34]) + string(f.Data[26:30]) + string(f.Data[tcp+2:tcp+4]) + string(f.Data[tcp:tcp+2])
		seq, ack := be.Uint32(f.Data[tcp+4:]), be.Uint32(f.Data[tcp+8:])
		if o := open[key]; o != nil && len(payload) > 0 && seq == o.next && ack == o.ack && f.Time-list[o.at].Time < 2e6 && len(list[o.at].Data)+len(payload) < 60000 {
			g := &list[o.at]
			g.Data = append(slices.Clone(g.Data[:14+int(be.Uint16(g.Data[16:]))]), payload...)
			be.PutUint16(g.Data[16:], uint16(len(g.Data)-14))
			g.Length = len(g.Data)
			o.next += uint32(len(payload))
			continue
		}
		list = append(list, f)
		delete(open, key)
		delete(open, back)
		if len(payload) > 0 && f.Data[tcp+13]&7 == 0 {
			open[key] = &last{len(list) - 1, seq + uint32(len(payload)), ack}
		}
	}
	return list
}

// BenchmarkIdentical measures the cost of packets that do not differ.
func BenchmarkIdentical(b *testing.B) {
	p := &Plan{memory: 64 << 20, paths: map[int32][]int{0: {0, 1}}, longest: map[int32]int64{0: 1e6}, shortest: map[int32]int64{0: 50e3}}
	p.sources = []*source{{point: 0, spans: []capture.Span{{Last: math.MaxInt64}}}, {point: 1, spans: []capture.Span{{Last: math.MaxInt64}}}}
	p.Points = []Point{{sources: p.sources[:1]}, {sources: p.sources[1:]}}
	data := packet(true, 1, 0, 1024)
	f := capture.Frame{LinkType: capture.LinkEthernet, Length: len(data), Data: data}
	var e eye
	e.dirs = &p.dirs
	e.look(&f, new(sight), false)
	m := newMatcher(p)
	for i := range b.N {
		for j, src := range p.sources {
			if f.Time = int64(i) * 1000; j == 0 || i >= 60 {
				m.add(src, &f)
			}
		}
		for m.ring.head < m.ring.tail && m.decided(m.ring.head) {
			m.ring.head++
		}
	}
	if n := m.ring.len(); n > 1000 || m.hops[0].Lost > 0 || m.hops[0].Duplicated > 0 {
		b.Errorf("%d entries, %+v", m.ring.len(), *m.hops[0])
	}
}

// TestInterfaces: two interfaces of one pcapng file with different clocks are two points.
func TestInterfaces(t *testing.T) {
	var file strings.Builder
	w := capture.NewWriter(&file)
	client, server := load(t, stormClient), skewed(load(t, stormServer), 2e9, 50)
	var numbers [2]uint32
	for i, name := range []string{"left", "right"} {
		numbers[i] = w.Interface(&capture.Origin{LinkType: capture.LinkEthernet, Name: name, Digits: 9})
	}
	for i, at := 0, 0; i < len(client) || at < len(server); {
		f, from := &capture.Frame{}, uint32(0)
		if i < len(client) && (at == len(server) || client[i].Time < server[at].Time) {
			f, i = &client[i], i+1
		} else {
			f, from, at = &server[at], 1, at+1
		}
		if err := w.Packet(numbers[from], f, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "both.pcapng")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, path)
	r.want(t, 8, 10, 13)
	if len(r.Points) != 2 || r.Points[1].Name != "both.pcapng (right)" {
		t.Errorf("the interfaces of one file are %d points, want two, the second called both.pcapng (right)", len(r.Points))
	}
	f, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := f.Interfaces(); n < 1 || n > 2 {
		t.Errorf("%d interfaces before the first packet", n)
	}
}

// TestBetterCopy: of a packet at two points, the frame counts that has more of it. A point whose frames are truncated, or
// have no ICRCs because its adapter fills them in later, takes nothing away from the other point.
func TestBetterCopy(t *testing.T) {
	want := run(t, twoClient, twoServer)
	for _, c := range []struct {
		name   string
		change func(i int, f *capture.Frame)
	}{
		{"truncated to 128 bytes", func(_ int, f *capture.Frame) { f.Data = f.Data[:min(len(f.Data), 128)] }},
		{"without ICRCs", func(_ int, f *capture.Frame) {
			if _, is := network(f); is && len(f.Data) == f.Length {
				clear(f.Data[len(f.Data)-rocev2.ICRCLen:])
			}
		}},
	} {
		for side := range 2 {
			ends := [2]string{twoClient, twoServer}
			ends[side] = write(t, "harmed.pcap", edited(load(t, ends[side]), c.change))
			s, whole, unchecked := open(t, Options{Memory: 64 << 20}, ends[:]...), 0, 0
			frames := 0
			for f, err := range capture.All(t.Context(), s) {
				if err != nil {
					t.Fatal(err)
				}
				frames++
				if f.Seen.Fate == capture.FateDelivered && len(f.Data) == f.Length {
					whole++
				}
				if f.Seen.Fate == capture.FateDelivered && f.Seen.Unchecked {
					unchecked++
				}
			}
			delivered := 0
			for _, f := range want.frames {
				if f.Seen.Fate == capture.FateDelivered {
					delivered++
				}
			}
			if frames != len(want.frames) || whole < delivered-2 || unchecked > 2 {
				t.Errorf("end %d is %s: %d frames, %d of %d delivered ones are whole, %d cannot be checked; want %d frames, all of them whole and checked", side, c.name, frames, whole, delivered, unchecked, len(want.frames))
			}
		}
	}
}

// sumsUp checks that the course over time has each packet that was lost or damaged.
func sumsUp(t *testing.T, h *Hop) {
	t.Helper()
	lost, damaged := int64(0), int64(0)
	for _, i := range h.Course() {
		lost, damaged = lost+i.Lost, damaged+i.Damaged
	}
	if lost != h.Lost || damaged != h.Corrupted {
		t.Errorf("over time, %d packets are lost and %d damaged; in total %d and %d", lost, damaged, h.Lost, h.Corrupted)
	}
}

// TestClocksOfPairs: clocks are compared only with those that packets join to them.
func TestClocksOfPairs(t *testing.T) {
	client, twoFirst := load(t, stormClient), load(t, twoClient)[0].Time
	var parts [2][]capture.Frame // packets with even and with odd PSNs, as if two clients sent them
	for _, f := range client {
		odd := 0
		if at, is := network(&f); is {
			odd = int(f.Data[at+20+8+11] & 1)
		}
		parts[odd] = append(parts[odd], f)
	}
	later := client[0].Time - twoFirst
	for _, c := range []struct {
		name  string
		files []string
		known []bool
	}{
		{
			"two clients of one server",
			[]string{write(t, "c1.pcap", parts[0]), write(t, "c2.pcap", parts[1]), stormServer},
			[]bool{true, true, true},
		},
		{
			"two pairs",
			[]string{stormClient, stormServer, write(t, "c2.pcap", skewed(load(t, twoClient), later, 0)), write(t, "s2.pcap", skewed(load(t, twoServer), later, 0))},
			[]bool{true, true, false, false},
		},
	} {
		r := run(t, c.files...)
		var known []bool
		for i := range r.Points {
			known = append(known, r.Points[i].Known)
		}
		if !slices.Equal(known, c.known) {
			t.Errorf("%s: clocks known %v, want %v", c.name, known, c.known)
		}
	}
}

// TestSenderCapturesTCP: if the capture at the sender of TCP segments lacks some of them, or has some twice, the network neither made copies
// nor lost any.
func TestSenderCapturesTCP(t *testing.T) {
	const pair = "../../testdata/ends/iw-twosided-"
	client := load(t, pair+"client.pcap.zst")
	want := run(t, pair+"client.pcap.zst", pair+"server.pcap.zst").counts()
	random := rand.New(rand.NewPCG(5, 6))
	var fewer, twice []capture.Frame
	for _, f := range client {
		twice = append(twice, f)
		if sent := f.Data[29] == 2; sent && random.IntN(20) == 0 {
			f.Time += 2000
			twice = append(twice, f)
			continue
		}
		fewer = append(fewer, f)
	}
	for name, frames := range map[string][]capture.Frame{"fewer": fewer, "twice": twice} {
		got := run(t, write(t, name+".pcap", frames), pair+"server.pcap.zst").counts()
		if got.duplicated > want.duplicated+1 || got.lost != want.lost { // A retransmission that the capture lacks looks like a copy.
			t.Errorf("%s: %d lost and %d duplicated, want %d and %d", name, got.lost, got.duplicated, want.lost, want.duplicated)
		}
	}
}

// TestNameOutsideSeries: a file between two files of a series, whose name does not belong to it, is a part of the same capture.
func TestNameOutsideSeries(t *testing.T) {
	want := run(t, stormClient, stormServer).counts()
	server := load(t, stormServer)
	n, folder := len(server)/3, t.TempDir()
	var files []string
	for i, name := range []string{"server1.pcap", "server2 (1).pcap", "server3.pcap"} {
		files = append(files, writeTo(t, filepath.Join(folder, name), server[i*n:max((i+1)*n, len(server)*(i/2))]))
	}
	r := run(t, append(files, stormClient)...)
	if got := r.counts(); got != want || len(r.Points) != 2 {
		t.Errorf("%d points, %+v; want 2, %+v: %q", len(r.Points), got, want, r.Notes)
	}
}

// TestGapOfReceiver: acknowledgements that were sent next to packets that the capture at their receiver lacks are not said to be lost.
func TestGapOfReceiver(t *testing.T) {
	const pair = "../../testdata/ends/roce-linkdown3-"
	server := load(t, pair+"server.pcap.zst")
	for from := 20; from+12 < len(server); from += 16 {
		gap := slices.Delete(slices.Clone(server), from, from+12)
		if got := run(t, pair+"client.pcap.zst", write(t, "gap.pcap", gap)).counts(); got.notCaptured > 1 && got.lost > 1 {
			t.Errorf("without packets %d to %d: %+v", from+1, from+12, got)
		}
	}
}
