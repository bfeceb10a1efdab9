package dissect_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/field"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/diagnose"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/synth"
	"github.com/rdmadump/rdmadump/synth/cases"
)

// broken lists the captures in which a side violates a rule.
var broken = []string{"errors", "iwarperrors", "chimera-noreplychunk3", "chimera-overrun42", "chimera-emptysend", "ganesha", "derived-cut"}

// healthy lists the captures in which both sides obey the rules.
func healthy(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, name := range testkit.Glob(t, captures+"*.zst") {
		if !slices.ContainsFunc(broken, func(b string) bool { return strings.Contains(name, b) }) {
			paths = append(paths, captures+name)
		}
	}
	if len(paths) < 20 {
		t.Fatalf("captures: %v", paths)
	}
	return paths
}

// harms lists the damage that a capture, or the network, may cause. None of it is a violation by
// a side. Each function may change the list of frames, but not the bytes of a frame.
var harms = []struct {
	name string
	do   harm
}{
	{"whole", func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f }},
	{"cut to 64 bytes", cutTo(64)},
	{"cut to 96 bytes", cutTo(96)},
	{"cut to 100 bytes", cutTo(100)},
	{"cut to 128 bytes", cutTo(128)},
	{"cut to 256 bytes", cutTo(256)},
	{"joined after 1%", joined(0.01)},
	{"joined after 25%", joined(0.25)},
	{"joined in the middle", joined(0.5)},
	{"joined after 90%", joined(0.9)},
	{"left in the middle", func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f[:len(f)/2] }},
	{"one frame in 100 lost", lost(100)},
	{"one frame in 10 lost", lost(10)},
	{"one frame in 5 lost", lost(5)},
	{"a hundred lost in one place", func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.Delete(f, len(f)/3, min(len(f), len(f)/3+100))
	}},
	{"one way", without(1)},
	{"the other way", without(2)},
	{"doubled", doubled(func(*rand.Rand) bool { return true })},
	{"some doubled", doubled(func(r *rand.Rand) bool { return r.IntN(2) == 0 })},
	{"bits flipped in one frame of 50", flipped(50, 3)},
	{"bits flipped in one frame of 5", flipped(5, 3)},
	{"a bit flipped in one frame of 50 after a hundred", func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		flipped(50, 1)(r, f[min(len(f), 100):])
		return f
	}},
	{"neighbours swapped", func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		for i := 1; i < len(f); i++ {
			if r.IntN(40) == 0 {
				f[i-1], f[i] = f[i], f[i-1]
			}
		}
		return f
	}},
	{"one direction 1 ms late", delayed(1, 1e6, 0)},
	{"the other direction 1 ms late", delayed(2, 1e6, 0)},
	{"one direction 10 ms late", delayed(1, 10e6, 0)},
	{"the other direction 10 ms late", delayed(2, 10e6, 0)},
	{"one direction with jitter of 5 ms", delayed(1, 0, 5e6)},
	{"the other direction with jitter of 5 ms", delayed(2, 0, 5e6)},
	{"displaced by up to five places", displaced},
	{"in batches of 8, one direction after the other", batches(8)},
	{"in batches of 32, one direction after the other", batches(32)},
	{"one direction begins late", oneway(true)},
	{"one direction ends early", oneway(false)},
	{"one frame in ten", func(_ *rand.Rand, f []capture.Frame) (out []capture.Frame) {
		for i := 0; i < len(f); i += 10 {
			out = append(out, f[i])
		}
		return out
	}},
	{"each frame truncated at a length of its own", func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		for i := range f {
			f[i].Data = f[i].Data[:min(len(f[i].Data), 60+r.IntN(240))]
		}
		return f
	}},
	{"corrupted before they are sent again", corrupted(10)},
	{"corrupted, cut to 96", func(r *rand.Rand, f []capture.Frame) []capture.Frame { return cutTo(96)(r, corrupted(10)(r, f)) }},
	{"corrupted, cut to 128", func(r *rand.Rand, f []capture.Frame) []capture.Frame { return cutTo(128)(r, corrupted(10)(r, f)) }},
	{"some lost, some corrupted, cut to 160", func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		return cutTo(160)(r, corrupted(10)(r, lost(100)(r, f)))
	}},
	{"cut to 128, joined, some lost", func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		return lost(50)(r, joined(0.2)(r, cutTo(128)(r, f)))
	}},
}

// noneOnTCP lists the harms that a receiver of iWARP does not notice: several flipped bits may
// pass the checksum of TCP, and packets are never swapped after TCP.
var noneOnTCP = []string{"bits flipped in one frame of 5", "neighbours swapped"}

type harm = func(r *rand.Rand, f []capture.Frame) []capture.Frame

func cutTo(snaplen int) harm {
	return func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		for i := range f {
			f[i].Data = f[i].Data[:min(len(f[i].Data), snaplen)]
		}
		return f
	}
}

func joined(share float64) harm {
	return func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f[int(share*float64(len(f))):] }
}

func lost(one int) harm {
	return func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(capture.Frame) bool { return r.IntN(one) == 0 })
	}
}

// without drops the packets from one of the two addresses, which it identifies by the last byte
// of the IPv4 address.
func without(from byte) harm {
	return func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(f capture.Frame) bool { return len(f.Data) > 30 && f.Data[29] == from })
	}
}

// fromHost returns the last byte of the sender's address.
func fromHost(f *capture.Frame) byte {
	switch {
	case len(f.Data) > 38 && string(f.Data[12:14]) == "\x86\xdd":
		return f.Data[37]
	case len(f.Data) > 30:
		return f.Data[29]
	}
	return 0
}

// delayed shows the frames of one sender later than they were, as two taps or two
// receive queues do.
func delayed(from byte, ns, jitter int64) harm {
	return func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		last := int64(0)
		for i := range f {
			if fromHost(&f[i]) == from {
				f[i].Time += ns
				if jitter > 0 {
					f[i].Time += r.Int64N(jitter)
				}
				f[i].Time = max(f[i].Time, last)
				last = f[i].Time
			}
		}
		slices.SortStableFunc(f, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
		return f
	}
}

// found returns the findings of a capture: "RULE of SIDE", or "RULE of " if it is about no side.
func found(frames []capture.Frame) map[string]string {
	found := map[string]string{}
	d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
		found[f.Rule+" of "+string(f.AtFault.Or(""))] = f.Message
		return nil
	}}, dissect.Options{})
	for i := range frames {
		d.Frame(&frames[i])
	}
	d.Finish()
	return found
}

// accusations returns what the findings of a capture say of a side.
func accusations(frames []capture.Frame) map[string]string {
	accused := found(frames)
	maps.DeleteFunc(accused, func(finding, _ string) bool { return strings.HasSuffix(finding, " of ") })
	return accused
}

// accusesNobody reports what the findings of a harmed capture say of a side, and those of the capture before did not say.
func accusesNobody(t *testing.T, before map[string]string, harmed []capture.Frame, format string, args ...any) {
	t.Helper()
	for rule, message := range accusations(harmed) {
		if before[rule] == "" {
			t.Errorf("%s: %s: %s", fmt.Sprintf(format, args...), rule, message)
		}
	}
}

// eachCase calls a function with the frames of each case on each of its transports. Host 1 is the client, and host 2 the
// server. Cases with addresses of their own are left out, because the harms find the sides by the last byte of theirs.
func eachCase(broken bool, do func(name string, frames []capture.Frame)) {
	for _, c := range cases.All() {
		if c.Options.Client.Addr.IsValid() || c.Options.Server.Addr.IsValid() || c.Options.IPv6 {
			continue
		}
		c.Options.Client.Addr, c.Options.Server.Addr = netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("10.2.0.2")
		for _, transport := range []string{cases.RoCE, cases.IWARP} {
			if c.On(transport) {
				do(fmt.Sprintf("%s, %s/%s, broken %t", transport, c.Rule, c.Name, broken), framesOf(c.Wire(transport, broken)))
			}
		}
	}
}

// TestOneDirectionLate: a short healthy connection of which one direction was captured late, all of it or from a packet on,
// has no finding about a side that it does not have in the order in which it was sent, whether all packets of the other
// direction come before it or only the next ones, and whether or not the capture lacks the first packets.
func TestOneDirectionLate(t *testing.T) {
	eachCase(false, func(name string, frames []capture.Frame) {
		inOrder := accusations(slices.Clone(frames))
		for from := range byte(2) {
			accusesNobody(t, inOrder, delayed(from+1, 100e3, 0)(nil, slices.Clone(frames)), "%s, packets of host %d late", name, from+1)
			for first := 0; first < len(frames); first += 4 {
				harmed := slices.Concat(frames[:first], delayed(from+1, 2e3, 0)(nil, slices.Clone(frames[first:])))
				slices.SortStableFunc(harmed, func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) })
				accusesNobody(t, inOrder, harmed, "%s, packets of host %d late from packet %d on", name, from+1, first+1)
			}
		}
	})
}

// inexact lists the findings about no side that a truncated copy may have and the whole capture has not, because the copy
// lacks what excuses them, or what a more exact finding needs. They hold of what was captured.
var inexact = []string{
	"capture-incomplete of ",     // A packet without its headers takes no part in the sequence numbers.
	"connection-lost of ",        // The Call in flight was broken, so that its loss is no finding of its own.
	"rdma-error of ",             // A whole one is discarded, or is known to have a wrong XID.
	"retransmission-timeout of ", // The handshake announced a timeout that excuses it.
}

// mistaken maps rules to those that the same side broke, if what was captured of its message fits both.
var mistaken = map[string]string{
	"unused-chunk-length":   "reduced-ineligible-item", // Which item may be in the chunk was not captured.
	"nomsg-without-chunk":   "backward-not-msg",        // Whether the message is a Call or a Reply was not captured.
	"reply-without-call":    "header-malformed",        // The same: only rdma_direction was.
	"credit-limit-exceeded": "reply-without-call",      // The same: a stray Reply takes a buffer as a Call does.
}

// TestTruncated: a connection of which all packets, or those of one side, were truncated has no finding that it does not
// have as a whole, about the same side or, if it was about a side, about none. All snapshot lengths are tested with -all.
func TestTruncated(t *testing.T) {
	lengths := []int{40, 54, 58, 64, 66, 70, 74, 78, 80, 86, 90, 96, 98, 100, 102, 106, 110, 122, 126, 128, 150}
	if testkit.All() {
		lengths = nil
		for length := 40; length <= 160; length++ {
			lengths = append(lengths, length)
		}
	}
	check := func(name string, frames []capture.Frame, lengths ...int) {
		whole := found(frames)
		for _, length := range lengths {
			for from := range byte(3) { // 0: both sides
				harmed := slices.Clone(frames)
				for i := range harmed {
					if f := &harmed[i]; from == 0 || fromHost(f) == from {
						f.Data = f.Data[:min(len(f.Data), length)]
					}
				}
				for finding, message := range found(harmed) {
					rule, side, _ := strings.Cut(finding, " of ")
					switch {
					case whole[finding] != "", slices.Contains(inexact, finding):
					case side == "" && whole[rule+" of client"]+whole[rule+" of server"] != "":
					case mistaken[rule] != "" && whole[mistaken[rule]+" of "+side] != "":
					default:
						t.Errorf("%s, host %d cut to %d bytes: %s: %s", name, from, length, finding, message)
					}
				}
			}
		}
	}
	for _, broken := range []bool{false, true} {
		eachCase(broken, func(name string, frames []capture.Frame) { check(name, frames, lengths...) })
	}
	for i, name := range testkit.Glob(t, captures+"*.zst") {
		if strings.Contains(name, "derived-cut") {
			continue // The file is damaged.
		}
		frames, _ := testkit.Frames(t, captures+name)
		if testkit.All() {
			check(name, frames, lengths...)
		} else {
			check(name, frames[:min(len(frames), 3000)], 66+i, 86+i)
		}
	}
}

// TestSameXIDLate: if each Call of a connection has the same XID, a Reply that was captured in another order than it was
// sent is compared with no other Call.
func TestSameXIDLate(t *testing.T) {
	o := synth.Options{Client: synth.End{Addr: netip.MustParseAddr("10.1.0.1")}, Server: synth.End{Addr: netip.MustParseAddr("10.2.0.2")}}
	look.Both(t, o, func(t *testing.T, w *synth.Wire, c *synth.Conn) {
		c.Connect()
		for i := range uint32(4) {
			call := synth.Read3(0, 4096).Offer(synth.Mem(0xa1+i, 4096))
			call.XID = 77
			c.RPC(call, synth.Read3Reply(make([]byte, 4096)).To(call).Invalidating(0xa1+i))
		}
		frames := framesOf(w)
		for first := range frames {
			for from := range byte(2) {
				for _, us := range []int64{2, 5, 8, 20} {
					accusesNobody(t, nil, delayed(from+1, us*1e3, 0)(nil, slices.Clone(frames[first:])), "without the first %d packets, those of host %d %d us late", first, from+1, us)
				}
			}
		}
	})
}

// framesOf returns the frames of a Wire.
func framesOf(w *synth.Wire) (frames []capture.Frame) {
	for f := range testkit.Made(w.Frames) {
		frames = append(frames, *f)
	}
	return frames
}

// displaced moves some frames back by up to five places; times stay in order.
func displaced(r *rand.Rand, f []capture.Frame) []capture.Frame {
	at := make([]int, len(f))
	order := make([]int, len(f))
	for i := range f {
		order[i] = i
		if at[i] = i; r.IntN(8) == 0 {
			at[i] += r.IntN(6)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return at[a] - at[b] })
	out := make([]capture.Frame, len(f))
	for i, from := range order {
		out[i] = f[from]
		out[i].Time = f[i].Time
	}
	return out
}

// batches shows n frames at a time, those of one sender before all others.
func batches(n int) harm {
	return func(_ *rand.Rand, f []capture.Frame) (out []capture.Frame) {
		for batch := range slices.Chunk(f, n) {
			times := make([]int64, len(batch))
			for i := range batch {
				times[i] = batch[i].Time
			}
			sorted := slices.Clone(batch)
			slices.SortStableFunc(sorted, func(a, b capture.Frame) int { return int(fromHost(&a)&1) - int(fromHost(&b)&1) })
			for i := range sorted {
				sorted[i].Time = times[i]
			}
			out = append(out, sorted...)
		}
		return out
	}
}

// oneway lacks the beginning, or the end, of one direction.
func oneway(late bool) harm {
	return func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		from, at := byte(1+r.IntN(2)), r.IntN(len(f))
		i := -1
		return slices.DeleteFunc(f, func(f capture.Frame) bool {
			i++
			return fromHost(&f) == from && (i < at) == late
		})
	}
}

func doubled(which func(*rand.Rand) bool) harm {
	return func(r *rand.Rand, f []capture.Frame) (out []capture.Frame) {
		for i := range f {
			if out = append(out, f[i]); which(r) {
				out = append(out, f[i])
			}
		}
		return out
	}
}

// flipped flips at most a number of bits of a frame. The receiver drops the frame because of its
// checksum.
func flipped(one, most int) harm {
	return func(r *rand.Rand, frames []capture.Frame) []capture.Frame {
		for i := range frames {
			f := &frames[i]
			if r.IntN(one) == 0 && len(f.Data) == f.Length && len(f.Data) > 60 {
				f.Data = slices.Clone(f.Data)
				for range 1 + r.IntN(most) {
					f.Data[42+r.IntN(len(f.Data)-42)] ^= 1 << r.IntN(8)
				}
			}
		}
		return frames
	}
}

// corrupted inserts, before some of the Sends, a copy with a wrong bit, which the receiver drops.
// The Send is retransmitted half a second later.
func corrupted(one int) harm {
	const bth = 14 + 20 + 8
	return func(r *rand.Rand, frames []capture.Frame) (out []capture.Frame) {
		late := int64(0)
		for _, f := range frames {
			f.Time += late
			if len(f.Data) > bth+20 && string(f.Data[12:14]) == "\x08\x00" && f.Data[23] == 17 && f.Data[36] == 4791>>8 && f.Data[37] == 4791&0xff &&
				f.Data[bth] <= 4 && f.Data[bth+7] != 1 && r.IntN(one) == 0 { // A packet of queue pair 1 is a datagram.
				first := f
				first.Data = slices.Clone(f.Data)
				first.Data[bth+12+r.IntN(min(len(f.Data)-4, bth+100)-bth-12)] ^= 1 << r.IntN(8)
				out = append(out, first)
				late += 500e6
				f.Time += 500e6
			}
			out = append(out, f)
		}
		return out
	}
}

// excused reports whether a finding cannot be distinguished from a right one.
func excused(rule, path, harm string) bool {
	switch rule {
	case "pad-written":
		return strings.Contains(path, "ganesha") // That server violates the rule.
	}
	return false
}

// deserved are problems that these captures do have, with the kernel's word for them: servers that were started shortly before, and one whose
// disk is slow.
var deserved = map[string]bool{
	"grace-period ends-twoclock42-client.pcap.zst": true, "grace-period lab-nfs40.pcap.zst": true, "slow-server lab-slowserver41.pcap.zst": true,
}

// unprovable are problems that a capture cannot refute: all answers of a batch come late, or after the end of their connection, and only the ICRC,
// which is cut off, would show that a message is damaged.
var unprovable = map[string]bool{
	"in batches of 32, one direction after the other: connection-lost": true, "some lost, some corrupted, cut to 160: protocol-violation": true,
	"in batches of 8, one direction after the other: slow-server": true, "in batches of 32, one direction after the other: slow-server": true,
}

// TestNobodyIsAccused: no capture of two sides that obey the rules has a finding of severity
// error, and no problem is at one of the sides, whatever the capture or the network did to the frames, but for those that it deserves.
func TestNobodyIsAccused(t *testing.T) {
	for _, path := range healthy(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			frames, _ := testkit.Frames(t, path)
			const most = 12000
			frames = frames[:min(len(frames), most)]
			for h, harm := range harms {
				if strings.Contains(path, "iwarp") && slices.Contains(noneOnTCP, harm.name) {
					continue
				}
				r := rand.New(rand.NewPCG(uint64(h), 7))
				errors := map[string]int{}
				var first string
				var diagnosis diagnose.Collector
				d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
					diagnosis.Transaction(r)
					return nil
				}, Task: func(r *record.Task) error {
					diagnosis.Task(r)
					return nil
				}, Connection: func(r *record.Connection) error {
					diagnosis.Connection(r)
					return nil
				}, Finding: func(f *record.Finding) error {
					if !excused(f.Rule, path, harm.name) {
						diagnosis.Finding(f)
					}
					if f.Severity == record.Error && !excused(f.Rule, path, harm.name) {
						if errors[f.Rule]++; first == "" {
							first = fmt.Sprintf("packet %d: %s", f.Packet.Or(0), f.Message)
						}
					}
					return nil
				}}, dissect.Options{})
				harmed := harm.do(r, slices.Clone(frames))
				for i := range harmed {
					d.Frame(&harmed[i])
				}
				summary, _ := d.Finish()
				for _, p := range diagnosis.Problems(summary) {
					if p.Severity != record.Note && !unprovable[harm.name+": "+p.ID] && !deserved[p.ID+" "+filepath.Base(path)] && (slices.Equal(p.Places, []record.ProblemPlace{record.InClient}) || slices.Equal(p.Places, []record.ProblemPlace{record.InServer})) {
						t.Errorf("%s: %s %s: %s", harm.name, p.ID, p.Places[0], p.Headline)
					}
				}
				if len(errors) > 0 {
					t.Errorf("%s: a healthy capture has these errors: %v, the first: %s", harm.name, errors, first)
				}
			}
		})
	}
}

// TestFirstReplyTruncated: nobody is reported if the first Reply of each connection was captured in part. Its credits are
// what the requester goes by from then on.
func TestFirstReplyTruncated(t *testing.T) {
	const most = 3000 // frames
	several := 0      // connections with several outstanding Calls
	for _, path := range healthy(t) {
		if strings.Contains(path, "iwarp") {
			continue // The header of the first Reply is in the middle of a segment that other messages share.
		}
		frames, _ := testkit.Frames(t, path)
		frames = frames[:min(len(frames), most)]
		firsts := map[int]int64{}
		find := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
			if at := r.Reply; at != nil && r.Direction == record.Forward && (firsts[r.Connection] == 0 || firsts[r.Connection] > at.Packet) {
				firsts[r.Connection] = at.Packet
			}
			return nil
		}, Connection: func(r *record.Connection) error {
			if c, known := r.Credits.Get(); known && c.Forward.PeakInFlight.Or(0) > 1 {
				several++
			}
			return nil
		}}, dissect.Options{})
		for i := range frames {
			find.Frame(&frames[i])
		}
		find.Finish()
		for length := 54; length <= 90; length += 4 {
			d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
				if f.Severity == record.Error && !excused(f.Rule, path, "") {
					t.Errorf("%s: the first Reply has %d bytes: packet %d: %s: %s", filepath.Base(path), length, f.Packet.Or(0), f.Rule, f.Message)
				}
				return nil
			}}, dissect.Options{})
			for i := range frames {
				f := frames[i]
				for _, first := range firsts {
					if f.Number == first {
						f.Data = f.Data[:min(len(f.Data), length)]
					}
				}
				d.Frame(&f)
			}
			d.Finish()
		}
	}
	if several == 0 {
		t.Error("no connection has several outstanding Calls")
	}
}

// TestRetransmittedInParts: a part of a capture, from any packet to any other, marks no packet as retransmitted that the
// whole capture does not mark. A healthy capture has none in any part. Connections count the packets that are marked.
func TestRetransmittedInParts(t *testing.T) {
	const most = 8000 // frames
	marked := func(frames []capture.Frame) (packets map[int64]bool, counted int64) {
		packets = map[int64]bool{}
		d := dissect.New(dissect.Handler{
			Packet: func(p *record.Packet) error {
				if p.Marks&record.Retransmitted != 0 {
					packets[frames[p.Number-1].Number] = true
				}
				return nil
			},
			Connection: func(c *record.Connection) error {
				counted += c.Retransmitted
				return nil
			},
		}, dissect.Options{Only: field.Context})
		for i := range frames {
			f := frames[i]
			f.Number = int64(i + 1)
			d.Frame(&f)
		}
		d.Finish()
		return packets, counted
	}
	silent := 0 // captures without a retransmission
	for _, path := range healthy(t) {
		frames, _ := testkit.Frames(t, path)
		if !testkit.All() {
			frames = frames[:min(len(frames), most)]
		}
		whole, counted := marked(frames)
		if int64(len(whole)) != counted {
			t.Errorf("%s: %d packets are marked, and connections count %d", filepath.Base(path), len(whole), counted)
		}
		if counted == 0 {
			silent++
		}
		for i := 1; i < 20; i++ {
			from := i * len(frames) / 20
			for _, to := range []int{len(frames), min(len(frames), from+len(frames)/3)} {
				part, counted := marked(frames[from:to])
				if int64(len(part)) != counted {
					t.Errorf("%s, packets %d to %d: %d packets are marked, and connections count %d", filepath.Base(path), from+1, to, len(part), counted)
				}
				wrong := 0
				for n := range part {
					if !whole[n] {
						wrong++
					}
				}
				if wrong > 0 {
					t.Errorf("%s, packets %d to %d: %d packets are marked as retransmitted that the whole capture does not mark", filepath.Base(path), from+1, to, wrong)
				}
			}
		}
	}
	if silent < 10 {
		t.Errorf("only %d captures have no retransmission", silent)
	}
}

// TestCreditsUsed: of captures that lack packets, nothing is said about credits in use that the whole capture does not
// show: neither a peak of outstanding Calls nor a wait for credits.
func TestCreditsUsed(t *testing.T) {
	type use struct {
		peaks map[string]record.CreditPair // by the addresses and ports of the connection
		waits map[int64]bool               // Calls, by their packets, that waited for credits
	}
	uses := func(frames []capture.Frame) use {
		u := use{map[string]record.CreditPair{}, map[int64]bool{}}
		d := dissect.New(dissect.Handler{
			Connection: func(r *record.Connection) error {
				u.peaks[fmt.Sprintf("%v %v", r.Client, r.Server)] = r.Credits.Or(record.CreditPair{})
				return nil
			},
			Transaction: func(r *record.Transaction) error {
				for i := range r.Waits {
					if r.Waits[i].Reason == record.CreditLimit {
						u.waits[r.Call.Packet] = true
					}
				}
				return nil
			},
		}, dissect.Options{})
		for i := range frames {
			d.Frame(&frames[i])
		}
		d.Finish()
		return u
	}
	known, lacking := 0, 0
	for _, path := range testkit.Short(t, healthy(t)) {
		if strings.Contains(path, "snaplen") {
			continue
		}
		frames, _ := testkit.Frames(t, path)
		whole := uses(frames)
		for seed, damage := range []harm{lost(1000), lost(100), lost(30), lost(10), lost(3), without(1), without(2), joined(0.5)} {
			part := uses(damage(rand.New(rand.NewPCG(uint64(seed), 1)), slices.Clone(frames)))
			for connection, pair := range part.peaks {
				full := whole.peaks[connection]
				for _, is := range [][2]record.Opt[int]{{pair.Forward.PeakInFlight, full.Forward.PeakInFlight}, {pair.Backward.PeakInFlight, full.Backward.PeakInFlight}} {
					n, proven := is[0].Get()
					if lacking++; !proven {
						continue
					}
					known, lacking = known+1, lacking-1
					if was, shown := is[1].Get(); shown && n != was {
						t.Errorf("%s, damage %d: at most %d Calls were outstanding on %s, but %d in the whole capture", path, seed, n, connection, was)
					}
				}
			}
			for packet := range part.waits {
				if !whole.waits[packet] {
					t.Errorf("%s, damage %d: the Call in packet %d waited for credits, but not in the whole capture", path, seed, packet)
				}
			}
		}
	}
	if known < 20 || lacking < 20 {
		t.Errorf("%d peaks are known, %d are not", known, lacking)
	}
}
