package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/synth"
)

// nasty are names that would harm a terminal, a table or another program if they were written as they are.
var nasty = []string{
	"\x1b[31mred\x1b[0m", "\x1b]0;title\a", "\x9b31m", "a\tb", "a\nb", "a\r\nb", "\x00", "zero\x00zero", "\xff\xfe", "a,b", `"quoted"`, `a"b,c`, "'x'; rm -rf $HOME", "$(reboot)",
	"=1+1", "..", ".", "", "a/b", "../../etc/passwd", "\u202egpj", "ü", "日本語", "e\u0301", "\u009b31m", "\u2066a\u2069", "\u00ad", "\x7f", "\\x1b", " ", "-", "others", "null", strings.Repeat("x", 255), strings.Repeat("\xe2\x80\xa8", 300),
}

// named3 makes a connection on which files with nasty names are looked up, created, renamed and removed, by users of
// machines with nasty names.
func named3(_ *synth.Wire, c *synth.Conn) {
	c.Connect()
	args := func(values ...string) (x synth.XDR) {
		for _, v := range values {
			x = x.String(v)
		}
		return x
	}
	for i, name := range nasty {
		handle := fmt.Sprintf("handle %d", i)
		cred := oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: synth.XDR{}.Word(7).String(name[:min(len(name), 255)]).Word(uint32(i), 100, 0).Inline()}
		for _, rpc := range []struct {
			procedure     uint32
			args, results synth.XDR
		}{
			{3, args("D", name), synth.XDR{}.Word(0).String(handle).Word(0, 0)},
			{8, args("D", name+"2").Word(1, 0, 0, 0, 0, 0, 0), synth.XDR{}.Word(0, 1).String(handle+"2").Word(0, 0, 0)},
			{6, args(handle + "2").Hyper(0).Word(5), synth.XDR{}.Word(0, 0, 5, 1).String("hello")},
			{14, args("D", name+"2", "D", name+"3"), synth.XDR{}.Word(0, 0, 0, 0, 0)},
			{12, args("D", name+"3"), synth.XDR{}.Word(0, 0, 0)},
		} {
			c.RPC(synth.Call{Version: 3, Procedure: rpc.procedure, Cred: cred, Args: rpc.args}, synth.Reply{Results: rpc.results})
		}
	}
	c.Disconnect(c.Client)
}

// TestNastyNames: names from the wire do no harm, in any view and format.
func TestNastyNames(t *testing.T) {
	path, twice := made(t, named3), made(t, func(w *synth.Wire, c *synth.Conn) { // the same groups, with other counts
		named3(w, c)
		again := w.RoCE(synth.Options{})
		again.Connect()
		named3(w, again)
	})
	show := func(args ...string) []byte {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), append(args, "-q", path), &out, &errs); code != command.ExitOK || out.Len() == 0 {
			t.Fatalf("%v: exit status %d, %d bytes: %s", args, code, out.Len(), &errs)
		}
		return out.Bytes()
	}
	for _, view := range []string{
		"files", "transactions --wide", "stats --by file", "stats --by machine,file,operation", "stats --every 1s --by file", "overview", "stats --by machine",
		"compare " + path, "compare --by file,machine " + twice, "rdma",
	} {
		args := strings.Fields(view)
		text := string(show(args...))
		for _, r := range text {
			if !unicode.IsPrint(r) && r != '\n' || r == utf8.RuneError {
				t.Errorf("%s shows %q", view, r)
				break
			}
		}
		if strings.Contains(view, "file") && !strings.Contains(view, "every") && (!strings.Contains(text, "日本語") || !strings.Contains(text, `\xe2\x81\xa6a`)) {
			t.Errorf("%s shows no UTF-8, or the direction of text: %s", view, text)
		}
		for line := range bytes.Lines(show(append(args, "-o", "json")...)) {
			if !json.Valid(line) || !utf8.Valid(line) || bytes.ContainsAny(line[:len(line)-1], "\x1b\x00\r\t\x7f") {
				t.Errorf("%s: not safe JSON: %q", view, line)
			}
		}
		if args[0] == "overview" {
			continue
		}
		table := show(append(args, "-o", "csv")...)
		if rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll(); err != nil || len(rows) < 2 || len(rows) != bytes.Count(table, []byte("\n")) { // The reader demands that all rows have as many fields.
			t.Errorf("%s: %d rows of CSV: %v", view, len(rows), err)
		}
	}
	for line := range bytes.Lines(show("files", "-e", "file", "-e", "renamed.from", "-e", "rpcs")) {
		if bytes.Count(line, []byte("\t")) != 2 {
			t.Errorf("not three fields: %q", line)
		}
	}
	// Each of these names is one file, which was created, read, renamed and removed by the user of its number.
	var files, removed int
	for line := range bytes.Lines(show("files", "-o", "json", "-Y", "removed != null")) {
		var f struct {
			Type    string
			Read    int `json:"bytes_read"`
			Created struct{ UID int }
			Renamed struct {
				UID  int
				From *string
			}
			Removed struct{ UID int }
		}
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		if f.Type != "file" {
			continue
		}
		files++
		if f.Read == 5 && f.Renamed.From != nil && f.Created.UID == f.Renamed.UID && f.Created.UID == f.Removed.UID {
			removed++
		}
	}
	if files != len(nasty) || removed != files {
		t.Errorf("%d files were removed, %d of them are right, want %d", files, removed, len(nasty))
	}
}
