package render_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

const captures = "../testdata/captures/"

// run runs a capture through a dissector.
func run(t testing.TB, name string, h dissect.Handler) *dissect.Summary {
	t.Helper()
	f, err := capture.Open(captures + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := dissect.New(h, dissect.Options{})
	if err := d.Run(f); err != nil && !strings.Contains(name, "cut") {
		t.Fatal(err)
	}
	return d.Finish()
}

// golden holds what was drawn against a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test ./render -update writes it anew):\n%s", path, got)
	}
}

// TestSchemas holds every record of every capture against its schema.
func TestSchemas(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	schemas := map[string]*jsonschema.Schema{}
	entries, err := render.Schemas.ReadDir("schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := render.Schemas.ReadFile("schema/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource(e.Name(), doc); err != nil {
			t.Fatal(err)
		}
		schema, err := compiler.Compile(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		schemas[strings.TrimSuffix(e.Name(), ".json")] = schema
	}
	names, _ := filepath.Glob(captures + "*.zst")
	counts := map[string]int{}
	for _, path := range names {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "lab-loss") { // like rocev2-loss42, and long
			continue
		}
		failed := 0
		check := func(kind string, line []byte) {
			counts[kind]++
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
			if err == nil {
				if got := doc.(map[string]any)["type"]; got != kind {
					t.Errorf("type %v, want %s", got, kind)
				}
				err = schemas[kind].Validate(doc)
			}
			if err != nil && failed < 3 {
				failed++
				t.Errorf("%s: %s: %v\n%s", name, kind, err, line)
			}
		}
		record := func(kind string, r any) {
			line, err := render.AppendJSON(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			check(kind, line)
		}
		packets := 0
		s := run(t, name, dissect.Handler{
			Packet: func(p *dissect.Packet) {
				if packets++; packets < 400 || p.Number%16 == 0 {
					check("packet", render.AppendPacketJSON(nil, p, p.Number%2 == 0))
				}
			},
			Transaction: func(r *dissect.Transaction) { record("transaction", r) },
			Connection:  func(r *dissect.Connection) { record("connection", r) },
			Finding:     func(r *dissect.Finding) { record("finding", r) },
		})
		record("summary", s)
	}
	for kind := range schemas {
		if counts[kind] == 0 {
			t.Errorf("no %s was checked", kind)
		}
	}
}

// TestJSONForms: the appended JSON is what encoding/json makes of the record.
func TestJSONForms(t *testing.T) {
	run(t, "rocev2-errors.pcap.zst", dissect.Handler{Transaction: func(r *dissect.Transaction) {
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := render.AppendJSON(nil, r)
		if err != nil || strings.TrimSuffix(string(got), "\n") != string(want) {
			t.Errorf("error %v\n got %swant %s", err, got, want)
		}
	}})
}

// TestTables draws the tables at several widths.
func TestTables(t *testing.T) {
	for _, width := range []int{0, 80, 140} {
		for _, c := range []string{"rocev2-errors", "rocev2-mixed", "rocev2-callback41"} {
			var transactions, connections bytes.Buffer
			theme := render.NewTheme(&transactions, false)
			rows, conns := render.NewText(&transactions, theme, width), render.NewText(&connections, theme, width)
			run(t, c+".pcap.zst", dissect.Handler{
				Transaction: func(r *dissect.Transaction) { rows.Transaction(r) },
				Connection:  func(r *dissect.Connection) { conns.Connection(r) },
			})
			rows.Flush()
			conns.Flush()
			for _, b := range []*bytes.Buffer{&transactions, &connections} {
				for line := range strings.Lines(b.String()) {
					if width > 0 && len(strings.TrimRight(line, "\n")) > width {
						t.Errorf("%s at %d columns: a line of %d", c, width, len(line)-1)
					}
				}
			}
			name := c + map[int]string{0: "-pipe", 80: "-80", 140: "-140"}[width]
			golden(t, name+"-transactions.golden", transactions.Bytes())
			golden(t, name+"-connections.golden", connections.Bytes())
		}
	}
}

// TestPackets draws the tree and the bytes of chosen packets.
func TestPackets(t *testing.T) {
	var b bytes.Buffer
	r := render.NewPackets(&b, render.NewTheme(&b, false), 0)
	run(t, "rocev2-callback41.pcap.zst", dissect.Handler{Packet: func(p *dissect.Packet) {
		r.Tree, r.Bytes = p.Number == 23 || p.Number == 24 || p.Number == 33, p.Number == 33
		if p.Number < 40 {
			r.Packet(p)
		}
	}})
	golden(t, "packets.golden", b.Bytes())
}

// TestHostile: what a packet says never reaches a terminal raw, and JSON is
// always valid UTF-8.
func TestHostile(t *testing.T) {
	p := &dissect.Packet{Connection: -1, Summary: []byte("\x1b[31m\x00\xff\"\\\x7f"), Nodes: []dissect.Node{{Kind: dissect.NodeText, Name: "error", Label: "Error", Text: "\x1b]0;title\x07\x80"}}}
	line := render.AppendPacketJSON(nil, p, true)
	var back struct{ Summary, Error string }
	if err := json.Unmarshal(line, &back); err != nil || back.Summary != "\x1b[31m\x00\ufffd\"\\\x7f" || back.Error != "\x1b]0;title\x07\ufffd" {
		t.Errorf("%v: %q", err, line)
	}
	var b bytes.Buffer
	r := render.NewPackets(&b, render.NewTheme(&b, false), 0)
	r.Tree = true
	r.Packet(p)
	for _, c := range b.Bytes() {
		if c != '\n' && (c < 0x20 || c >= 0x7f) {
			t.Fatalf("byte 0x%02x reaches the terminal: %q", c, b.String())
		}
	}
}

func TestUnits(t *testing.T) {
	for ns, want := range map[int64]string{0: "0ns", 999: "999ns", 1500: "1.5us", 2345678: "2.35ms", 1234567890: "1.235s", -1500: "-1.5us"} {
		if got := render.Duration(ns); got != want {
			t.Errorf("%d ns are %s, want %s", ns, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 9999: "9999", 10000: "9.8K", 1 << 20: "1024.0K", 20 << 20: "20.0M"} {
		if got := render.Bytes(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
}
