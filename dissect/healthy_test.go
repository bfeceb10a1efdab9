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
// anybody break a rule.
var harms = []struct {
	name string
	do   func(r *rand.Rand, i, n int, f *capture.Frame) (times int)
}{
	{"whole", func(*rand.Rand, int, int, *capture.Frame) int { return 1 }},
	{"cut to 96 bytes", cutTo(96)},
	{"cut to 100 bytes", cutTo(100)},
	{"cut to 128 bytes", cutTo(128)},
	{"joined after 1%", joined(0.01)},
	{"joined after 30%", joined(0.3)},
	{"joined in the middle", joined(0.5)},
	{"joined after 90%", joined(0.9)},
	{"one frame in 100 lost", lost(100)},
	{"one frame in 10 lost", lost(10)},
	{"doubled", func(*rand.Rand, int, int, *capture.Frame) int { return 2 }},
	{"some doubled", func(r *rand.Rand, _, _ int, _ *capture.Frame) int { return 1 + r.IntN(2) }},
	{"bits flipped in one frame of 50", flipped(50)},
	{"bits flipped in one frame of 5", flipped(5)},
	{"cut to 128, joined, some lost", func(r *rand.Rand, i, n int, f *capture.Frame) int {
		cutTo(128)(r, i, n, f)
		return min(joined(0.2)(r, i, n, f), lost(50)(r, i, n, f))
	}},
}

type harm = func(r *rand.Rand, i, n int, f *capture.Frame) int

func cutTo(snaplen int) harm {
	return func(_ *rand.Rand, _, _ int, f *capture.Frame) int {
		f.Data = f.Data[:min(len(f.Data), snaplen)]
		return 1
	}
}

func joined(share float64) harm {
	return func(_ *rand.Rand, i, n int, _ *capture.Frame) int {
		if float64(i) < share*float64(n) {
			return 0
		}
		return 1
	}
}

func lost(one int) harm {
	return func(r *rand.Rand, _, _ int, _ *capture.Frame) int { return min(r.IntN(one), 1) }
}

// flipped damages frames that receivers are seen to drop, by their checksum.
func flipped(one int) harm {
	return func(r *rand.Rand, _, _ int, f *capture.Frame) int {
		if r.IntN(one) == 0 && len(f.Data) == f.Length && len(f.Data) > 60 {
			f.Data = slices.Clone(f.Data)
			for range 1 + r.IntN(3) {
				f.Data[42+r.IntN(len(f.Data)-42)] ^= 1 << r.IntN(8)
			}
		}
		return 1
	}
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
				if strings.Contains(path, "iwarp") && strings.HasSuffix(harm.name, "of 5") {
					continue // where every fifth TCP checksum is wrong, they say nothing
				}
				r := rand.New(rand.NewPCG(uint64(h), 7))
				errors := map[string]int{}
				var first string
				d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
					if f.Severity == record.Error && !(f.Rule == "pad-written" && strings.Contains(path, "ganesha")) { // that server does
						if errors[f.Rule]++; first == "" {
							first = fmt.Sprintf("packet %d: %s", f.Packet.Or(0), f.Message)
						}
					}
					return nil
				}}, dissect.Options{})
				for i := range frames {
					f := frames[i]
					for range harm.do(r, i, len(frames), &f) {
						d.Frame(&f)
					}
				}
				d.Finish()
				if len(errors) > 0 {
					t.Errorf("%s: %v, %s", harm.name, errors, first)
				}
			}
		})
	}
}
