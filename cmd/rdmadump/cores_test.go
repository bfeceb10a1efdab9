package main

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestCores: the output does not depend on the number of cores. The test is not parallel, because
// it sets the number of cores of the whole process.
func TestCores(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/captures/*.zst")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, path := range testkit.Short(t, paths) {
		for _, view := range goldenViews {
			args := append(strings.Fields(view.args), path)
			switch view.name {
			case "ladder.txt":
				continue
			case "fields.json", "fields.txt":
				args = append(args, "-c", fieldsSome)
			}
			runtime.GOMAXPROCS(1)
			one, status := runGolden(args...)
			runtime.GOMAXPROCS(4)
			if four, other := runGolden(args...); !bytes.Equal(one, four) || status != other || len(one) == 0 && view.name != "check.txt" && !strings.HasPrefix(view.name, "files") {
				t.Errorf("rdmadump %s: %d bytes and status %d on one core, %d and %d on four", strings.Join(args, " "), len(one), status, len(four), other)
			}
		}
	}
}

// TestEverythingOn: a view that leaves out causes and shares of RPCs prints what it prints if its filter makes it compute them, on one
// core and on four, with and without eviction (that of the capture of iWARP).
func TestEverythingOn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const everything = "(cause or not cause) and (shares or not shares)"
	for _, name := range []string{"rocev2-nfs41", "iwarp-nfs41", "rocev2-loss42", "lab-slowserver41"} {
		path := "../../testdata/captures/" + name + ".pcap.zst"
		for _, view := range []string{"stats", "stats --by client,operation", "stats --every 1s", "files", "transactions -e id -e latency_ns -e status -e meanwhile -e findings"} {
			for _, memory := range []string{"256MiB", "1MiB"} {
				args := append(strings.Fields(view), "-q", "--memory", memory, path)
				for _, cores := range []int{1, 4} {
					runtime.GOMAXPROCS(cores)
					some, status := runGolden(args...)
					all, other := runGolden(append([]string{args[0], "-Y", everything}, args[1:]...)...)
					if !bytes.Equal(some, all) || status != other || len(some) == 0 {
						t.Errorf("rdmadump %s: %d bytes and status %d on %d cores, with everything %d and %d", strings.Join(args, " "), len(some), status, cores, len(all), other)
					}
				}
			}
		}
	}
}
