// Command same compares the outputs of two builds of rdmadump for many captures, as recorded and
// degraded. A change that is to leave the outputs as they are is compared with the build before it:
//
//	scripts/same OLD NEW
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// folders have the captures. Of captures with the same name, the first counts, except of the samples, whose names are those of
// the captures that they are parts of.
var folders = []string{
	"testdata/captures", "samples", "testdata/ends", "testdata/other", "testdata",
}

// variants are the names of the variants of each capture, and the damages that make them. The one without a handshake is made
// by testkit.Handshake.
var variants = []struct {
	name    string
	damages []string
}{
	{"whole", nil},
	{"drop", []string{"drop"}},
	{"reorder", []string{"reorder"}},
	{"drop+reorder+duplicate", []string{"drop", "reorder", "duplicate"}},
	{"late", []string{"late"}}, // begins in the middle
	{noHandshake, nil},
}

const noHandshake = "no-handshake"

// jsonViews are command lines without the captures.
var jsonViews = []string{"transactions -o json", "packets -o json", "rdma -o json", "connections -o json", "check -o json"}

// textViews are compared with -text.
var textViews = []string{
	"transactions --width 150", "transactions -o csv", "transactions --top 5 --width 100", "packets -c 3000", "packets -V -c 100", "packets -x -c 50",
	"rdma", "connections", "connections --timeline", "check", "overview", "overview -o json", "overview -o markdown", "files", "stats",
	"stats -o csv --by client,operation", "stats --every 1s", "stats --every 1s -o csv", "network", "network --lost",
	"-Y latency>1ms --sort bytes", "packets -e number -e bth.psn -e reth.r_key", "--columns xid,latency,operations",
}

// helpLines are the command lines without captures that are compared with -text.
var helpLines = []string{
	"fields", "schema", "help columns", "help filter", "check --rules", "-h", "no-such-command", "--no-such-flag", "-o yaml x", "transactions --timeline x", "x -Y (",
	"completion bash", "completion zsh", "completion fish", "completion powershell", "__complete -o ", "__complete transactions --sort ",
	"__complete packets -Y b", "__complete stats --by ", "__complete check --ignore ", "__complete export --format ",
}

var (
	text     = flag.Bool("text", false, "compare text and CSV, help and the pages of the manual, too")
	more     = flag.String("more", "", "compare the captures of this folder and the folders in it, too")
	only     = flag.String("run", "", "compare only captures whose names match this regular expression")
	mostSeen = flag.Int("most", 40, "print at most this many differences")
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: scripts/same [-text] [-run REGEXP] OLD NEW\nOLD and NEW are two builds of rdmadump; exit status 1 says that an output differs.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	differences, err := compare(flag.Arg(0), flag.Arg(1))
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case differences > 0:
		os.Exit(1)
	}
}

// job is a command line for both builds. Its name is what a difference is reported as.
type job struct {
	name string
	args []string
}

// compare runs both builds, prints the differences, and returns how many there are.
func compare(before, after string) (differences int, err error) {
	var programs [2]string
	for i, path := range []string{before, after} {
		if programs[i], err = filepath.Abs(path); err != nil {
			return 0, err
		}
		if _, err := os.Stat(programs[i]); err != nil {
			return 0, err
		}
	}
	groups, err := captures()
	if err != nil {
		return 0, err
	}
	scratch, err := os.MkdirTemp("", "same")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(scratch)
	jobs := make(chan job)
	var wg sync.WaitGroup
	var mutex sync.Mutex
	compared := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range jobs {
				difference := j.difference(programs)
				mutex.Lock()
				compared++
				if difference != "" {
					if differences++; differences <= *mostSeen {
						fmt.Printf("%s\n%s", j.name, difference)
					}
				}
				mutex.Unlock()
			}
		})
	}
	err = feed(jobs, groups, scratch)
	close(jobs)
	wg.Wait()
	fmt.Printf("%d of %d outputs differ\n", differences, compared)
	return differences, err
}

// feed makes the variants of all captures, and sends a job for each of them and each view.
func feed(jobs chan<- job, groups [][]string, scratch string) error {
	views := jsonViews
	if *text {
		views = slices.Concat(jsonViews, textViews)
		commands := []string{"transactions", "packets", "rdma", "connections", "files", "stats", "rates", "network", "common", "check", "overview", "compare", "browse", "report", "extract", "export", "live", "interfaces", "man", "completion", "version", "help", "schema", "fields"}
		for _, line := range append(helpLines, commands...) {
			args := strings.Fields(line)
			if slices.Contains(commands, line) {
				args = append(args, "--help")
			}
			if strings.HasSuffix(line, " ") {
				args = append(args, "")
			}
			jobs <- job{line, args}
		}
		jobs <- job{"man", []string{"man", "MANUAL"}}
	}
	for _, group := range groups {
		for _, v := range variants {
			var files []string
			for _, path := range group {
				if v.name == "whole" {
					files = append(files, path) // in its own format, compressed or damaged
					continue
				}
				to := filepath.Join(scratch, v.name+"-"+bare(path)+".pcapng")
				if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
					if err := write(v.name, v.damages, path, to); err != nil {
						return err
					}
				}
				files = append(files, to)
			}
			for _, view := range views {
				jobs <- job{strings.Join(group, " ") + ", " + v.name + ", " + view, append(strings.Fields(view), files...)}
			}
		}
	}
	return nil
}

// write writes a variant of a capture. Of a damaged capture it writes the frames before the damage.
func write(variant string, damages []string, from, to string) error {
	f, err := capture.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	var frames []capture.Frame
	for frame, err := range capture.All(context.Background(), f) {
		if broken := (*capture.BrokenError)(nil); errors.As(err, &broken) {
			break
		} else if err != nil {
			return err
		}
		if variant == noHandshake && testkit.Handshake(frame) {
			continue
		}
		kept := *frame
		kept.Data = slices.Clone(frame.Data)
		frames = append(frames, kept)
	}
	seed := fnv.New64()
	seed.Write([]byte(filepath.Base(to)))
	if len(damages) > 0 {
		frames = testkit.Apply(seed.Sum64(), frames, damages...)
	}
	return os.WriteFile(to, testkit.Pcapng(frames, 9), 0o600)
}

// point is the end of the name of a capture that was taken at the same time at other points.
var point = regexp.MustCompile(`[-.](client|server|switch)$`)

// captures returns the captures, and after each group of captures of the same traffic all of them together.
func captures() (groups [][]string, err error) {
	selected, err := regexp.Compile(*only)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	points := map[string][]string{}
	all := slices.Clone(folders)
	if *more != "" {
		all = append(all, *more)
		below, err := os.ReadDir(*more)
		if err != nil {
			return nil, err
		}
		for _, entry := range below {
			if entry.IsDir() {
				all = append(all, filepath.Join(*more, entry.Name()))
			}
		}
	}
	for _, folder := range all {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := bare(entry.Name())
			if !strings.Contains(entry.Name(), ".pcap") || seen[name] && folder != "samples" || !selected.MatchString(name) {
				continue
			}
			seen[name] = true
			path := filepath.Join(folder, entry.Name())
			groups = append(groups, []string{path})
			if whose := point.ReplaceAllString(name, ""); whose != name {
				whose = strings.NewReplacer("ends-", "", "rocev2-", "").Replace(whose)
				points[whose] = append(points[whose], path)
			}
		}
	}
	if len(groups) == 0 {
		return nil, errors.New("no captures: run this in the project's folder")
	}
	for _, paths := range points {
		if len(paths) > 1 {
			groups = append(groups, paths)
		}
	}
	slices.SortStableFunc(groups, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return groups, nil
}

// bare returns the name of a capture without its folder and the ends of its name that tell its format.
func bare(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".pcap")
	return name
}

// difference runs a command line with both builds, and describes the first difference. It returns "" if there is none.
func (j *job) difference(programs [2]string) string {
	var outputs [2][]byte
	for i, program := range programs {
		folder, err := os.MkdirTemp("", "same-man")
		if err != nil {
			return err.Error() + "\n"
		}
		defer os.RemoveAll(folder)
		args := slices.Clone(j.args)
		if len(args) > 1 && args[1] == "MANUAL" {
			args[1] = folder
		}
		var out, errs bytes.Buffer
		cmd := exec.Command(program, args...)
		cmd.Stdout, cmd.Stderr = &out, &errs
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		err = cmd.Run()
		outputs[i] = fmt.Appendf(out.Bytes(), "\nstandard error: %s\n%v\n", &errs, err)
		pages, _ := filepath.Glob(filepath.Join(folder, "*"))
		for _, page := range pages {
			content, err := os.ReadFile(page)
			outputs[i] = fmt.Appendf(outputs[i], "%s\n%s%v\n", filepath.Base(page), content, err)
		}
		outputs[i] = bytes.ReplaceAll(outputs[i], []byte(folder), []byte("FOLDER"))
	}
	return firstDifference(outputs[0], outputs[1])
}

// firstDifference returns the first line that differs in two texts, as both have it, around the first byte that differs.
func firstDifference(before, after []byte) string {
	if bytes.Equal(before, after) {
		return ""
	}
	at := 0
	for at < min(len(before), len(after)) && before[at] == after[at] {
		at++
	}
	const around = 100
	excerpt := func(text []byte) string {
		start := max(bytes.LastIndexByte(text[:at], '\n')+1, at-around)
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		return fmt.Sprintf("%q", text[start:min(end, at+around)])
	}
	return fmt.Sprintf("  line %d\n  - %s\n  + %s\n", bytes.Count(before[:at], []byte("\n"))+1, excerpt(before), excerpt(after))
}
