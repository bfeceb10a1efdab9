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

// unhealthy are the captures in which somebody does wrong.
var unhealthy = []string{"rocev2-errors", "lab-iwarperrors"}

// damages are what can happen to a capture of healthy traffic.
var damages = map[string]func(r *rand.Rand, f []capture.Frame) []capture.Frame{
	"whole":          func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f },
	"from a quarter": func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f[len(f)/4:] },
	"from the half":  func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f[len(f)/2:] },
	"to the half":    func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return f[:len(f)/2] },
	"without one of 100": func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(capture.Frame) bool { return r.IntN(100) == 0 })
	},
	"without one of 5": func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(capture.Frame) bool { return r.IntN(5) == 0 })
	},
	"without a hundred in the middle": func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		at := len(f) / 3
		return slices.Delete(f, at, min(len(f), at+100))
	},
	"one way": func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(f capture.Frame) bool { return len(f.Data) > 30 && f.Data[29] == 1 })
	},
	"the other way": func(_ *rand.Rand, f []capture.Frame) []capture.Frame {
		return slices.DeleteFunc(f, func(f capture.Frame) bool { return len(f.Data) > 30 && f.Data[29] == 2 })
	},
	"cut to 64":  func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return snapped(f, 64) },
	"cut to 96":  func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return snapped(f, 96) },
	"cut to 256": func(_ *rand.Rand, f []capture.Frame) []capture.Frame { return snapped(f, 256) },
	"each twice": func(_ *rand.Rand, f []capture.Frame) (out []capture.Frame) {
		for _, g := range f {
			out = append(out, g, g)
		}
		return out
	},
	"a bit of one in 50 turned": func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		for i := range f {
			if r.IntN(50) == 0 && len(f[i].Data) > 46 {
				f[i].Data = slices.Clone(f[i].Data)
				f[i].Data[42+r.IntN(len(f[i].Data)-42)] ^= 1 << r.IntN(8)
			}
		}
		return f
	},
	"neighbours swapped": func(r *rand.Rand, f []capture.Frame) []capture.Frame {
		for i := 1; i < len(f); i++ {
			if r.IntN(40) == 0 {
				f[i-1], f[i] = f[i], f[i-1]
			}
		}
		return f
	},
}

func snapped(f []capture.Frame, n int) []capture.Frame {
	for i := range f {
		f[i].Data = f[i].Data[:min(n, len(f[i].Data))]
	}
	return f
}

// TestHealthy: no rule says error of healthy traffic, whatever the capture has
// missed of it.
func TestHealthy(t *testing.T) {
	files, _ := filepath.Glob(captures + "*.zst")
	for _, path := range files {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		if slices.Contains(unhealthy, name) || strings.HasPrefix(name, "derived-") {
			continue
		}
		if testing.Short() && name != "rocev2-nfs41" {
			continue
		}
		frames, _ := testkit.Frames(t, path)
		for damage, do := range damages {
			if strings.HasPrefix(name, "iwarp") || strings.Contains(name, "iwarp") {
				if damage == "a bit of one in 50 turned" || damage == "neighbours swapped" {
					continue // what is turned after its checksum was right, or swapped, TCP never hands on so
				}
			}
			t.Run(name+"/"+damage, func(t *testing.T) {
				var bad []string
				d := dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
					if f.Severity == record.Error && len(bad) < 5 {
						bad = append(bad, fmt.Sprintf("%s packet %d: %s", f.Rule, f.Packet.Or(0), f.Message))
					}
					return nil
				}}, dissect.Options{})
				all := do(rand.New(rand.NewPCG(1, 2)), slices.Clone(frames))
				for i := range all {
					d.Frame(&all[i])
				}
				d.Finish()
				for _, line := range bad {
					t.Error(line)
				}
			})
		}
	}
}
