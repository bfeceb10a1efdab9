package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

var (
	hostileCopies = flag.Int("hostile", 200, "`how many` damaged copies of every sample")
	hostileSeed   = flag.Uint64("hostile.seed", 0, "only the copy of this `seed`, through every view")
)

// hostileViews lists command lines. Each damaged copy goes through a few of them, and each
// command line gets many copies.
var hostileViews = []string{
	"transactions",
	"transactions -o json",
	"transactions --xid XID",
	"transactions -Y|latency > 1ms or retransmitted > 0 or status == 'no_reply' or operation matches '[A-Z]'",
	"transactions --top 5 -o json",
	"connections",
	"connections -o json",
	"connections --timeline",
	"connections --timeline -o json",
	"packets -V",
	"packets -V -o json",
	"packets -x -c 100",
	"packets -o json -Y|bth.psn > 5 or reth.dma_length > 100 or summary contains 'RDMA'",
	"packets -Y|not (icrc == 'ok')",
	"check",
	"check -o json",
	"check -o json -Y|severity == 'error'",
	"files",
	"files -o json -Y|file contains '/'",
	"stats -o json --by file,machine",
	"stats",
	"stats -o json --by procedure",
	"transactions --sort time -o json",
	"transactions --from 0.001 --to 10 -e time -e xid -e latency_ns",
	"report -w -",
	"report -w - --scrub",
}

// patience is the time after which a view of such a small capture counts as hanging. It takes milliseconds, and some
// seconds on a busy machine.
const patience = time.Minute

// TestHostile runs every view on damaged copies of every sample: no view panics or hangs, JSON is
// complete, and the output has no control characters. make hostile tries many more copies.
func TestHostile(t *testing.T) {
	paths, err := filepath.Glob("../../samples/*.pcap")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	if more, err := filepath.Glob("../../testdata/captures/lab-iwarpcallback41.pcap.zst"); err == nil {
		paths = append(paths, more...)
	}
	samples := make([][]capture.Frame, len(paths))
	for i, path := range paths {
		samples[i], _ = testkit.Frames(t, path)
		samples[i] = samples[i][:min(len(samples[i]), 400)]
	}
	for i, path := range paths {
		others := samples[(i+1)%len(samples)]
		workers := runtime.GOMAXPROCS(0)
		for n := range workers {
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(path), n), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "damaged.pcapng")
				try := func(seed uint64, views ...string) { // runs views on one damaged copy
					damaged, done := testkit.Damage(seed, samples[i], others)
					if err := os.WriteFile(file, damaged, 0o600); err != nil {
						t.Fatal(err)
					}
					for _, view := range views {
						if problem := unharmed(view, file); problem != "" {
							t.Errorf("%s\n\tgo test ./cmd/rdmadump -run TestHostile -hostile.seed %d (%s)", problem, seed, done)
						}
					}
				}
				if *hostileSeed > 0 {
					if n == 0 {
						try(*hostileSeed, hostileViews...)
					}
					return
				}
				for seed := n; seed < *hostileCopies && !t.Failed(); seed += workers {
					try(uint64(seed+1), hostileViews[seed%len(hostileViews)], hostileViews[(seed*7+5)%len(hostileViews)])
				}
			})
		}
	}
}

// unharmed runs a view of a file. It returns a description of the error in its output, or "" if
// there is none.
func unharmed(view, file string) string {
	line, filter, filtered := strings.Cut(view, "|")
	args := strings.Fields(line)
	if filtered {
		args = append(args, filter)
	}
	if args[len(args)-1] == "XID" { // This is replaced by XIDs of the capture.
		args = args[:len(args)-1]
		var out, errs bytes.Buffer
		run(context.Background(), []string{"transactions", "-e", "xid", "-c", "5", "-q", file}, &out, &errs)
		xids := strings.Fields(out.String())
		if len(xids) == 0 {
			return ""
		}
		args = append(args, strings.Join(xids, ","))
	}
	var out, errs bytes.Buffer
	began := time.Now()
	if code := run(context.Background(), append(args, file), &out, &errs); code == command.ExitFailed {
		return fmt.Sprintf("%s: exit status %d\n%s", view, code, &errs)
	}
	if took := time.Since(began); took > patience {
		return fmt.Sprintf("%s: took %v", view, took)
	}
	if what := testkit.Printable(errs.Bytes()); what != "" {
		return fmt.Sprintf("%s: standard error has %s", view, what)
	}
	if !strings.Contains(view, "-o json") {
		if what := testkit.Printable(out.Bytes()); what != "" {
			return fmt.Sprintf("%s: %s", view, what)
		}
		return ""
	}
	for line := range bytes.Lines(out.Bytes()) {
		if !json.Valid(line) {
			return fmt.Sprintf("%s: not JSON: %.300s", view, line)
		}
	}
	return ""
}

// TestCutCM: a connection management message that is truncated anywhere still gives complete
// JSON.
func TestCutCM(t *testing.T) {
	frames, _ := testkit.Frames(t, "../../samples/rocev2-callback41.pcap")
	file := filepath.Join(t.TempDir(), "cut.pcapng")
	for snaplen := 40; snaplen < 330; snaplen++ {
		cut := slices.Clone(frames[:20])
		for i := range cut {
			cut[i].Data = cut[i].Data[:min(snaplen, len(cut[i].Data))]
		}
		if err := os.WriteFile(file, testkit.Pcapng(cut, 9), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, view := range []string{"packets -o json", "packets -V -o json"} {
			if problem := unharmed(view, file); problem != "" {
				t.Fatalf("%d bytes a packet: %s", snaplen, problem)
			}
		}
	}
}

// FuzzFile runs every view on whole capture files.
func FuzzFile(f *testing.F) {
	for _, pattern := range []string{"../../samples/*.pcap", "../../testdata/captures/*.zst"} {
		paths, _ := filepath.Glob(pattern)
		for i, path := range paths {
			r, err := capture.Open(path)
			if err != nil {
				f.Fatal(err)
			}
			var frames []capture.Frame
			for frame, err := range capture.All(context.Background(), r) {
				if err != nil || len(frames) == 40 {
					break
				}
				kept := *frame
				kept.Data = bytes.Clone(frame.Data[:min(len(frame.Data), 300)])
				frames = append(frames, kept)
			}
			r.Close()
			f.Add(testkit.Pcapng(frames, 9), uint8(i))
			if len(frames) > 20 { // Later frames have Calls and data, not only handshakes.
				f.Add(testkit.Pcapng(frames[20:], 6), uint8(i))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		file := filepath.Join(t.TempDir(), "fuzzed.pcapng")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			if problem := unharmed(hostileViews[(int(which)+7*n)%len(hostileViews)], file); problem != "" {
				t.Fatal(problem)
			}
		}
	})
}
