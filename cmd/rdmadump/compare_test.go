package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/render"
	"github.com/rdmadump/rdmadump/synth"
)

// comparisons returns the records of a comparison, and its exit status.
func comparisons(t *testing.T, args ...string) (list []*analyze.Comparison, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), append([]string{"compare", "-o", "json"}, args...), &out, &errs)
	for line := range bytes.Lines(out.Bytes()) {
		r, err := records.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := r.(*analyze.Comparison); ok { // others say what RPCs have in common
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	return list, code
}

// everyCapture returns the paths of the captures and the samples.
func everyCapture(t *testing.T) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"../../samples/*.pcap*", "../../testdata/captures/*.zst"} {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	if len(paths) < 20 {
		t.Fatalf("only %d captures", len(paths))
	}
	return paths
}

// TestCompareSame: a capture that is compared with itself shows no change.
func TestCompareSame(t *testing.T) {
	for _, path := range everyCapture(t) {
		info, err := os.Stat(path)
		if err != nil || info.Size() > 300<<10 {
			continue
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"stats", "-q", "-e", "requests", path}, &out, &errs); code != command.ExitOK || out.Len() == 0 {
			continue // It is damaged, or has no RPCs.
		}
		list, code := comparisons(t, path, path, "--fail-on", "p50 > +0%", "--fail-on", "p99 < -0%")
		if code != command.ExitOK {
			t.Errorf("%s: exit status %d", path, code)
		}
		for _, c := range list {
			switch c.Kind {
			case analyze.ComparedGroup, analyze.ComparedWait:
			case analyze.ComparedProblem:
				if c.Changed() || !reflect.DeepEqual(c.Before.Problem, c.After.Problem) {
					t.Errorf("%s compared with itself: the problem %s is %+v and %+v", path, c.Name, c.Before.Problem, c.After.Problem)
				}
			case analyze.ComparedShare:
				if c.Proven() != 0 || c.Before.MeanNS != c.After.MeanNS {
					t.Errorf("%s compared with itself: the time of the %s is %+v and %+v", path, c.Name, c.Before, c.After)
				}
			default:
				t.Errorf("%s compared with itself: %q is there as a %s, want only problems, groups, shares and waits", path, c.Name, c.Kind)
			}
			for _, change := range []record.Opt[float64]{c.Change.Count, c.Change.Bytes, c.Change.P50, c.Change.P90, c.Change.P99, c.Change.TotalNS} {
				if change.Or(0) != 0 || c.Significant.Or(false) {
					t.Errorf("%s compared with itself: %q has changed: %+v", path, c.Name, c.Change)
				}
			}
		}
	}
}

// slower writes a capture of 40 WRITEs, 40 READs and 10 NULLs, whose Replies take longer by extra.
func slower(t *testing.T, extra time.Duration) string {
	t.Helper()
	return made(t, func(w *synth.Wire, c *synth.Conn) {
		c.Connect()
		for i := range 90 {
			call, reply := synth.Null(), synth.NullReply()
			switch {
			case i%9 < 4:
				call, reply = synth.Write3(0, make([]byte, 100)), synth.Write3Reply(100)
			case i%9 < 8:
				call, reply = synth.Read3(0, 100), synth.Read3Reply(make([]byte, 100))
			}
			w.Advance(time.Millisecond)
			c.Client.Call(call)
			c.Server.Ack()
			w.Advance(time.Duration(200+i%7*13)*time.Microsecond + extra)
			c.Server.Reply(reply)
			c.Client.Ack()
		}
		c.Disconnect(c.Client)
	})
}

// millisecond checks that the comparison shows that every latency is exactly 1 ms longer, and nothing
// else.
func millisecond(t *testing.T, list []*analyze.Comparison) {
	t.Helper()
	tested := 0
	for _, c := range list {
		if c.Kind == analyze.ComparedWait && c.Change.TotalNS.Or(0) == 0 || c.Kind == analyze.ComparedShare && c.Proven() == 0 {
			continue
		}
		if came, went := c.Only(); c.Kind == analyze.ComparedProblem && !came && !went { // Tasks of both captures waited, 1 ms longer.
			continue
		}
		if c.Kind != analyze.ComparedGroup || c.Change.Count.Or(1) != 0 || c.Change.Bytes.Or(1) != 0 || c.Before.Errors != c.After.Errors {
			t.Errorf("another change: %+v", c)
		}
		for i := range analyze.Percentiles {
			before, after, change, significant := analyze.Percentiles[i].Of(c)
			if !before.Known() {
				continue
			}
			if d := after.Or(0) - before.Or(0); d != 1e6 {
				t.Errorf("%s: %d ns more", c.Name, d)
			}
			if want := 1e6 / float64(before.Or(1)); math.Abs(change.Or(0)-want) > 1e-9 {
				t.Errorf("%s: %v, want %v", c.Name, change, want)
			}
			if enough := c.Before.Count.Or(0) >= 30; significant.Known() != enough || c.Significant.Known() != enough {
				t.Errorf("%s: %d RPCs, tested %v", c.Name, c.Before.Count.Or(0), significant)
			}
			if significant.Or(false) {
				tested++
			}
		}
	}
	if tested < 3 {
		t.Errorf("%d significant changes", tested)
	}
}

// TestCompareShifted: if every Reply comes 1 ms later, compare reports exactly that, for packets and
// for records.
func TestCompareShifted(t *testing.T) {
	before, after := slower(t, 0), slower(t, time.Millisecond)
	list, code := comparisons(t, before, after, "--fail-on", "p99 > +20%")
	if code != command.ExitFound {
		t.Errorf("exit status %d", code)
	}
	millisecond(t, list)
	for limit, want := range map[string]int{"p50 > 999us": command.ExitFound, "p50 > 1ms": command.ExitOK, "p90>+5000%": command.ExitOK, "p99 < -1%": command.ExitOK} {
		if _, code := comparisons(t, before, after, "--fail-on", limit); code != want {
			t.Errorf("--fail-on %s: exit status %d, want %d", limit, code, want)
		}
	}
	if _, code := comparisons(t, after, before, "--fail-on", "p50 < -50%"); code != command.ExitFound {
		t.Errorf("a decrease: exit status %d", code)
	}

	from, to := filepath.Join(t.TempDir(), "before.json"), filepath.Join(t.TempDir(), "after.json")
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"export", "--format", "records", "../../testdata/captures/rocev2-ipv6-nfs42.pcap.zst", "-w", from}, &errs, &errs); code != command.ExitOK {
		t.Fatalf("exporting records ends with status %d: %s", code, &errs)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var shifted []byte
	for line := range bytes.Lines(text) {
		r, err := records.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if r, is := r.(*record.Transaction); is {
			if latency, known := r.LatencyNS.Get(); known {
				r.LatencyNS = record.Some(latency + 1e6)
				r.Reply.Time += 1e6
			}
		}
		shifted = render.AppendJSON(shifted, r)
	}
	if err := os.WriteFile(to, shifted, 0o600); err != nil {
		t.Fatal(err)
	}
	list, _ = comparisons(t, from, to)
	millisecond(t, list)
}

// TestCompareText: JSON has the members that the contract names.
func TestCompareText(t *testing.T) {
	var out, errs bytes.Buffer
	run(t.Context(), []string{"compare", "-o", "json", slower(t, 0), slower(t, time.Millisecond)}, &out, &errs)
	var first map[string]any
	if err := json.Unmarshal(bytes.SplitN(out.Bytes(), []byte("\n"), 2)[0], &first); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"type", "kind", "name", "before", "after", "change", "significant"} {
		if first[name] == nil {
			t.Errorf("no %s in %s", name, out.Bytes())
		}
	}
}
