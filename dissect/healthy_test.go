package dissect_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// broken are captures in which somebody did break a rule.
var broken = []string{"errors", "iwarperrors", "chimera-noreplychunk3", "chimera-overrun42", "chimera-emptysend", "ganesha", "derived-cut"}

// healthy lists the captures of two ends that keep to the rules.
func healthy(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{captures + "*.zst", "../../shared/captures/*.pcap*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			name := strings.TrimSuffix(filepath.Base(path), ".zst")
			if !slices.ContainsFunc(broken, func(b string) bool { return strings.Contains(name, b) }) &&
				!slices.ContainsFunc(paths, func(p string) bool { return strings.TrimSuffix(filepath.Base(p), ".zst") == name }) {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) < 20 {
		t.Fatalf("captures: %v", paths)
	}
	return paths
}

// harms are what a capture, or the network, does to frames. None of them makes
// anybody break a rule. Each changes a list that is its own, of frames whose bytes
// are not.
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

// noneOnTCP are harms that iWARP's receivers do not undo either: of several bits that
// flip, TCP's checksum does not see all, and nothing is swapped behind it.
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

// without leaves out what comes from one of the two addresses, by the last byte of
// IPv4's.
func without(from byte) harm {
	return func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(f capture.Frame) bool { return len(f.Data) > 30 && f.Data[29] == from })
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

// flipped turns up to so many bits of a frame, which its receiver is seen to drop by
// its checksum.
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

// corrupted has, before one Send of so many, a copy of which a bit is wrong: its
// receiver drops it. Half a second later it is sent again.
func corrupted(one int) harm {
	const bth = 14 + 20 + 8
	return func(r *rand.Rand, frames []capture.Frame) (out []capture.Frame) {
		late := int64(0)
		for _, f := range frames {
			f.Time += late
			if len(f.Data) > bth+20 && string(f.Data[12:14]) == "\x08\x00" && f.Data[23] == 17 && f.Data[36] == 4791>>8 && f.Data[37] == 4791&0xff &&
				f.Data[bth] <= 4 && f.Data[bth+7] != 1 && r.IntN(one) == 0 { // of queue pair 1, it is a datagram
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

// excused are findings that cannot be told from right ones.
func excused(rule, path, harm string) bool {
	switch rule {
	case "pad-written":
		return strings.Contains(path, "ganesha") // that server does
	case "credit-limit-exceeded": // the Reply that made room for a Call stands behind it
		return harm == "neighbours swapped"
	}
	return false
}

// TestNobodyIsAccused: no capture of two ends that keep to the rules has a finding
// of severity error, however the capture, or the network, treated it.
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
				d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
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
				d.Finish()
				if len(errors) > 0 {
					t.Errorf("%s: %v, %s", harm.name, errors, first)
				}
			}
		})
	}
}
