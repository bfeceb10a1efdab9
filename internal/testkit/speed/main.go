//go:build unix

// Command speed compares the processor time and the memory that two builds of rdmadump take. See scripts/speed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmadump/rdmadump/capture"
)

// kinds are captures that are repeated, each time a minute later, until they are long enough to be measured. A repetition is what a client
// does that mounts again: with the handshake, its connections begin anew.
var kinds = []struct {
	name, path string
	times      int
}{
	{"RoCE", "testdata/captures/rocev2-nfs41.pcap.zst", 40},
	{"iWARP", "testdata/captures/iwarp-nfs41.pcap.zst", 30},
	{"lossy", "testdata/captures/rocev2-loss42.pcap.zst", 8},
}

var views = []string{
	"stats", "check", "packets", "transactions", "overview", "packets -o json", "transactions -o json",
	"packets -e infiniband.bth.opcode -e infiniband.bth.destqp -e infiniband.bth.psn -e infiniband.reth.va -e infiniband.reth.r_key" +
		" -e infiniband.reth.dmalen -e infiniband.aeth.syndrome -e rpcordma.xid -e rpcordma.flow_control -e rpcordma.msg_type" +
		" -e rpcordma.rdma_handle -e rpcordma.rdma_length -e rpcordma.rdma_offset",
}

var (
	pairs    = flag.Int("pairs", 5, "run both builds so many times in turn")
	only     = flag.String("run", "", "measure only the views whose command lines match this regular expression")
	folder   = flag.String("make", "", "only write the captures that are measured to this folder")
	mostSlow = flag.Float64("most", 1.05, "the largest ratio of processor time that is no error")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: scripts/speed [-pairs N] [-run REGEXP] [-most RATIO] OLD NEW CAPTURE ...\n"+
			"OLD and NEW are builds of rdmadump; exit status 1 says that NEW takes more processor time.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *folder != "" {
		for _, k := range kinds {
			if err := repeat(k.path, k.times, filepath.Join(*folder, k.name)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
		}
		return
	}
	if flag.NArg() < 3 {
		flag.Usage()
		os.Exit(2)
	}
	slower, err := compare(flag.Arg(0), flag.Arg(1), flag.Args()[2:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case slower:
		os.Exit(1)
	}
}

func compare(before, after string, captures []string) (slower bool, err error) {
	selected, err := regexp.Compile(*only)
	if err != nil {
		return false, err
	}
	fmt.Printf("%-7s %-34s %8s %8s %6s %8s %8s %6s\n", "capture", "view", "old ms", "new ms", "ratio", "old MB", "new MB", "ratio")
	for _, path := range captures {
		for _, view := range views {
			if !selected.MatchString(view) {
				continue
			}
			var times, peaks [2][]float64
			var ratios []float64
			for range *pairs {
				for n, program := range [2]string{before, after} {
					took, peak, err := run(program, view, path)
					if err != nil {
						return false, err
					}
					times[n], peaks[n] = append(times[n], took), append(peaks[n], peak)
				}
				ratios = append(ratios, times[1][len(ratios)]/times[0][len(ratios)])
			}
			ratio, peak := median(ratios), [2]float64{median(peaks[0]), median(peaks[1])}
			mark := ""
			if ratio > *mostSlow {
				slower, mark = true, "  slower"
			}
			shown, _, _ := strings.Cut(view, " -e")
			if shown != view {
				shown += fmt.Sprintf(" -e, %d fields", strings.Count(view, " -e"))
			}
			fmt.Printf("%-7s %-34s %8.0f %8.0f %6.2f %8.0f %8.0f %6.2f%s\n",
				filepath.Base(path), shown, median(times[0]), median(times[1]), ratio, peak[0], peak[1], peak[1]/peak[0], mark)
		}
	}
	return slower, nil
}

// run returns the processor time of a view in milliseconds, and its largest resident memory in megabytes.
func run(program, view, path string) (took, peak float64, err error) {
	cmd := exec.Command(program, append(strings.Fields(view), "-q", path)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 { // 1 says that a view found something
		return 0, 0, fmt.Errorf("%s: %w", cmd, err)
	}
	state := cmd.ProcessState
	usage, _ := state.SysUsage().(*syscall.Rusage)
	return float64(state.UserTime()+state.SystemTime()) / float64(time.Millisecond), float64(usage.Maxrss) / 1000, nil // Linux: kilobytes
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return (values[len(values)/2] + values[(len(values)-1)/2]) / 2
}

// repeat writes a capture several times into a file. It is done in a process of its own: what a process takes before it starts another,
// Linux counts as the memory of that, too.
func repeat(from string, times int, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer file.Close()
	w := capture.NewWriter(file)
	for n := range times {
		f, err := capture.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		for frame, err := range capture.All(context.Background(), f) {
			if err != nil {
				return err
			}
			frame.Time += int64(n) * int64(time.Minute)
			if err := w.Write(frame); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
