package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/internal/command"
)

// TestTracePoints: a trace of two capture points says at which point each packet was captured, where the time of an RPC
// passed, which file it acted on, and what happened to packets between the points.
func TestTracePoints(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), append([]string{"export", "--format", "trace", "-q", "-w", "-"}, bothEnds...), &out, &errs); code != command.ExitOK {
		t.Fatal(errs.String())
	}
	var file struct {
		TraceEvents []struct {
			Phase string         `json:"ph"`
			PID   int            `json:"pid"`
			Name  string         `json:"name"`
			Args  map[string]any `json:"args"`
		}
	}
	d := json.NewDecoder(&out)
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	names, lost, longest, last := map[int]string{}, map[string]int64{}, map[string]int64{}, map[string]string{}
	rpcs, found := 0, false
	for _, e := range file.TraceEvents {
		switch {
		case e.Phase == "M" && e.Name == "process_name":
			names[e.PID] = fmt.Sprint(e.Args["name"])
		case e.Phase == "C" && strings.HasPrefix(names[e.PID], "network "):
			n, err := e.Args["value"].(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			if e.Name == "packets lost" {
				lost[names[e.PID]] += n
			} else if e.Name == "longest one-way delay" {
				longest[names[e.PID]] = max(longest[names[e.PID]], n)
			}
			last[names[e.PID]+e.Name] = fmt.Sprint(n)
		case e.Phase == "B" && e.Args["call_point"] != nil:
			rpcs++
			if e.Args["call_point"] != "ends-stormall42-client.pcap.zst" && e.Args["call_point"] != "ends-stormall42-server.pcap.zst" {
				t.Errorf("a Call was captured at %v", e.Args["call_point"])
			}
			if e.Args["xid"] != "0x3e2c34fc" {
				continue
			}
			found = true
			for key, want := range map[string]string{
				"client_ns": "0", "request_network_ns": "1419408", "server_ns": "15487019", "reply_network_ns": "710017573", "file": "/big", "machine": "client",
			} {
				if got := fmt.Sprint(e.Args[key]); got != want {
					t.Errorf("argument %s is %q, want %q", key, got, want)
				}
			}
		}
	}
	if rpcs == 0 || !found {
		t.Errorf("%d RPCs have a capture point; 0x3e2c34fc: %t", rpcs, found)
	}
	directions := 0
	for _, r := range recordsOf(t, append([]string{"network"}, bothEnds...)...) {
		if r["type"] != "network" {
			continue
		}
		directions++
		name := "network " + value(r, "from") + " > " + value(r, "to")
		if got, want := fmt.Sprint(lost[name], longest[name]), value(r, "lost")+" "+value(r, "delay.max_ns"); got != want {
			t.Errorf("%s: lost packets and longest delay %s, want %s", name, got, want)
		}
		for _, counter := range []string{"packets lost", "longest one-way delay"} {
			if last[name+counter] != "0" {
				t.Errorf("%s: the counter %q ends with %s", name, counter, last[name+counter])
			}
		}
	}
	if directions != 2 || len(lost) != 2 {
		t.Errorf("%d directions, %d of them in the trace; want 2", directions, len(lost))
	}
}

// TestTracePlain: RPC over TCP has slices, too, in a process of its own.
func TestTracePlain(t *testing.T) {
	const path = "../../testdata/captures/rocev2-nfs3.pcap.zst"
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"export", "--format", "trace", "-q", "-w", "-", path, "-Y", `transport == "TCP"`}, &out, &errs); code != command.ExitOK {
		t.Fatal(errs.String())
	}
	want := len(recordsOf(t, path, "-Y", `transport == "TCP"`))
	var file struct {
		TraceEvents []struct{ Ph, Cat, Name string }
	}
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, e := range file.TraceEvents {
		if e.Cat == "complete" && (e.Ph == "B" || e.Ph == "i") {
			got++
		}
	}
	if got != want || want == 0 {
		t.Errorf("%d RPCs over TCP are in the trace, want %d", got, want)
	}
}

// TestTraceSpeedscope: speedscope imports the JSON of Chrome's tracing of every capture without a complaint, and shows all
// tracks that have slices.
func TestTraceSpeedscope(t *testing.T) {
	script := browserScript(t, "speedscope.mjs", "speedscope")
	traces := t.TempDir()
	var args []string
	tracks := map[string]int{}
	for i, path := range allCaptures(t) {
		trace := filepath.Join(traces, fmt.Sprintf("trace-%d.json", i))
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"export", "-q", "--format", "trace", path, "-w", trace}, &out, &errs); code != 0 && code != command.ExitBroken {
			t.Fatalf("%s: exit status %d: %s", path, code, &errs)
		}
		b, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		var content struct{ TraceEvents []map[string]any }
		if err := json.Unmarshal(b, &content); err != nil {
			if err := json.Unmarshal(b, &content.TraceEvents); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		seen := map[string]bool{}
		for _, e := range content.TraceEvents {
			if e["ph"] == "B" {
				seen[fmt.Sprint(e["pid"], e["tid"])] = true
			}
		}
		if len(seen) == 0 {
			continue // speedscope refuses a trace without slices.
		}
		tracks[trace] = len(seen)
		args = append(args, trace)
	}
	opened := 0
	for _, line := range script(20*time.Minute, args...) {
		var v struct {
			File     string
			Messages []string
			Profiles int
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		opened++
		if v.Profiles != tracks[v.File] || len(v.Messages) > 0 {
			t.Errorf("%s: speedscope shows %d tracks, want %d, and says %q", filepath.Base(v.File), v.Profiles, tracks[v.File], v.Messages)
		}
	}
	if opened != len(tracks) || opened == 0 {
		t.Errorf("%d traces, want %d", opened, len(tracks))
	}
}
