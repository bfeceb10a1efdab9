package records_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// captures returns the captures of the tests and the samples.
func captures(t testing.TB) (paths []string) {
	t.Helper()
	for _, pattern := range []string{"../../testdata/captures/*.zst", "../../testdata/captures/*.gz", "../../samples/*.pcap*"} {
		found, _ := filepath.Glob(pattern)
		paths = append(paths, found...)
	}
	if len(paths) < 20 {
		t.Fatalf("only %d captures", len(paths))
	}
	return paths
}

// allRecords returns the JSON lines of all records of a capture, and of sums of them.
func allRecords(t testing.TB, path string, decoded bool) (lines [][]byte) {
	t.Helper()
	add := func(r any) error {
		lines = append(lines, bytes.TrimSuffix(render.AppendJSON(nil, r), []byte("\n")))
		return nil
	}
	overview, table, files := analyze.NewCollector(), analyze.NewTable(analyze.ByOperation), analyze.NewFiles(0)
	rates, err := analyze.NewRates(1e8, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	sides := [2]*analyze.Side{analyze.NewSide(analyze.NewTable(analyze.ByOperation)), analyze.NewSide(analyze.NewTable(analyze.ByOperation))}
	operations := analyze.NewOperationTable("kind", func(values []string, r *record.RDMAOperation) []string { return append(values, string(r.Kind)) })
	var credits analyze.CreditTimeline
	var handles analyze.HandleTimeline
	summary, _ := dissect.New(dissect.Handler{
		Begin: func(first record.Time) error { rates.Begin(first); return nil },
		Transaction: func(r *record.Transaction) error {
			overview.Transaction(r)
			sides[r.ID%2].Transaction(r)
			table.Add(r)
			files.Add(r)
			credits.Add(r)
			handles.Add(r)
			rates.Add(r)
			return add(r)
		},
		Task: func(r *record.Task) error { return add(r) },
		Connection: func(r *record.Connection) error {
			overview.Connection(r)
			sides[r.ID%2].Connection(r)
			rates.Connection(r)
			return add(r)
		},
		Operation: func(r *record.RDMAOperation) error {
			operations.Add(r)
			return add(r)
		},
		Finding: func(r *record.Finding) error {
			return add(r)
		},
	}, dissect.Options{RPC: decoded, Files: true}).Run(context.Background(), testkit.Open(t, path))
	for _, r := range table.Rows() {
		add(r)
	}
	for _, r := range files.Rows() {
		add(r)
	}
	last := summary.Last.Or(0)
	if rows, err := rates.Rows(last); err == nil {
		for _, r := range rows {
			add(r)
		}
	}
	for _, r := range operations.Rows() {
		add(r)
	}
	add(credits.Finish(&record.Connection{Last: last, Credits: record.Some(record.CreditPair{Forward: record.Credits{PeakInFlight: record.Some(1)}})}, record.Forward))
	add(handles.Finish(0, last))
	add(overview.Finish(summary))
	sides[0].Problems([]*record.Problem{{Type: "problem", ID: "outage", Places: []record.ProblemPlace{record.InServer}, Evidence: []record.ProblemFact{{Packet: 3}}}})
	for _, r := range analyze.Compare(sides[0], sides[1]) {
		add(r)
	}
	add(summary)
	return lines
}

// TestRoundTrip: the JSON of a record that was read back is the JSON that it was read from.
func TestRoundTrip(t *testing.T) {
	seen := map[string]int{}
	for i, path := range captures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			for _, line := range allRecords(t, path, i%3 == 0) {
				r, err := records.Parse(line)
				if err != nil || r == nil {
					t.Fatalf("%.200s: %v", line, err)
				}
				if again := bytes.TrimSpace(render.AppendJSON(nil, r)); !bytes.Equal(again, line) {
					t.Fatalf("read\n%s\nwrote\n%s", line, again)
				}
				name, _ := records.TypeOf(line)
				seen[name]++
			}
		})
	}
	for _, name := range records.Types() {
		if seen[name] == 0 {
			t.Errorf("no record of the type %s was tested", name)
		}
	}
}

// TestParse: what is not a record is an error, and what later versions may write is none.
func TestParse(t *testing.T) {
	const call = `"call":{"time":"2026-11-21T00:00:00.000000001Z","form":"short","delivery":"certain"}`
	for _, c := range []struct{ name, line, want string }{
		{"a record", `{"type":"transaction","status":"complete","direction":"forward","transport":"RoCEv2",` + call + `}`, ""},
		{"a field of a later version", `{"type":"summary","packets":3,"later":[1]}`, ""},
		{"a field of a later version that has other fields in it", `{"type":"summary","later":{"packets":[3,{"x":"\\\"}"}]},"packets":3}`, ""},
		{"damage in a field of a later version", `{"type":"summary","packets":3,"later":[1}}`, "invalid character '}' after array element"},
		{"a field twice", `{"type":"summary","packets":"3","packets":3}`, "summary: packets must not be of the type string"},
		{"a field that an earlier version did not have", `{"type":"connection","id":1,"transport":"RoCEv2","path":{}}`, ""},
		{"a negative number for a count", `{"type":"transaction","program":-1,` + call + `}`, "transaction: program must not be of the type number -1"},
		{"a number with a fraction", `{"type":"summary","packets":3.5}`, "summary: packets must not be of the type number 3.5"},
		{"a number that begins with 0", `{"type":"summary","packets":03}`, "invalid character '3' after object key:value pair"},
		{"a day that does not exist", `{"type":"summary","first":"2026-02-30T00:00:00.000000000Z"}`, "day out of range"},
		{"control characters", `{"type":"transaction","client":"\u009b2J",` + call + `}`, "transaction: client: the text contains control characters"},
		{"a type of a later version", `{"type":"later","packets":3}`, ""},
		{"spaces and another order", `{ "packets": 3, "type" : "summary" }`, ""},
		{"no Call and no Reply", `{"type":"transaction","status":"complete"}`, "transaction: it has neither a Call nor a Reply"},
		{"a Call in the timeline alone", `{"type":"transaction","reply":{},"timeline":[{"event":"call"}]}`, "transaction: its timeline has a Call, and the record has none"},
		{"a latency without a Reply", `{"type":"transaction","latency_ns":1,` + call + `}`, "transaction: it has a latency without a Call or without a Reply"},
		{"a wrong enumeration", `{"type":"transaction","status":"\u001b[2J","direction":"forward",` + call + `}`, `transaction: status: unknown value "\x1b[2J"`},
		{"a wrong enumeration in a list", `{"type":"transaction","status":"complete","direction":"forward","transport":"RoCEv2",` + call + `,"waits":[{"waiting":"client","reason":"x"}]}`, `transaction: waits: reason: unknown value "x"`},
		{"a wrong type", `{"type":"summary","packets":"3"}`, "summary: packets must not be of the type string"},
		{"a number that is too large", `{"type":"summary","packets":1e99}`, "summary: packets must not be of the type number 1e99"},
		{"no type", `{"packets":3}`, "the field type is missing"},
		{"no object", `[1]`, "the record must not be of the type array"},
		{"half a line", `{"type":"summary","packets":3`, "unexpected end of JSON input"},
	} {
		_, err := records.Parse([]byte(c.line))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s is refused: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, records.ErrFormat)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// text returns an input that reads a text.
func text(name, s string) records.Input {
	return records.Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }}
}

// TestScan: a source knows its records and its summary before they are read, and says what is
// wrong with its inputs.
func TestScan(t *testing.T) {
	const (
		finding = `{"type":"finding","rule":"r","severity":"note","packet":7}` + "\n"
		one     = `{"type":"summary","packets":3,"first":"2026-11-21T00:00:01.000000000Z"}` + "\n"
		other   = `{"type":"summary","packets":4,"first":"2026-11-21T00:00:01.000000000Z"}` + "\n"
	)
	source, err := records.Scan(t.Context(), text("a", finding+finding+one), text("b", "\n"+finding+one))
	if err != nil || source.Count("finding") != 3 || source.Summary().Packets != 3 {
		t.Fatalf("scanning two inputs with three findings and one summary each fails or counts wrong: %v", err)
	}
	n, start := 0, record.Time(0)
	err = source.Run(t.Context(), records.Handler{Finding: func(r *record.Finding) error {
		n, start = n+1, r.CaptureStart()
		return nil
	}})
	if err != nil || n != 3 || start.String() != "2026-11-21T00:00:01.000000000Z" {
		t.Errorf("%d findings, start %v, %v", n, start, err)
	}
	if _, err := records.Scan(t.Context(), text("a", finding+one), text("b", finding+other)); err == nil || err.Error() != "b line 2: the input has records of another capture" {
		t.Errorf("two captures: %v", err)
	}
	if _, err := records.Scan(t.Context(), text("a", finding+"x\n")); err == nil || !strings.HasPrefix(err.Error(), "a line 2: ") {
		t.Errorf("damage: %v", err)
	}
	source, err = records.Scan(t.Context(), text("a", finding+finding[:20]))
	if err != nil || source.Summary() != nil {
		t.Errorf("half a line: %v", err)
	}
	if err := source.Run(t.Context(), records.Handler{}); err == nil || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a line: %v", err)
	}
	enough := errors.New("enough")
	if err := source.Run(t.Context(), records.Handler{Finding: func(*record.Finding) error { return enough }}); err != enough {
		t.Errorf("the handler's error: %v", err)
	}
}

// FuzzParse: no line makes Parse panic, and what it returns is written and read again without a change.
func FuzzParse(f *testing.F) {
	for _, line := range allRecords(f, "../../samples/rocev2-callback41.pcap", true) {
		if len(line) < 8<<10 {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := records.Parse(line)
		if err != nil || r == nil {
			return
		}
		once := render.AppendJSON(nil, r)
		again, err := records.Parse(once)
		if err != nil {
			t.Fatalf("a record that was read is written as %s, which is refused: %v", once, err)
		}
		if twice := render.AppendJSON(nil, again); !bytes.Equal(once, twice) {
			t.Fatalf("%s\n%s", once, twice)
		}
	})
}

// BenchmarkParse reports the bytes of JSON that are read back per second.
func BenchmarkParse(b *testing.B) {
	var lines [][]byte
	size := 0
	for _, line := range allRecords(b, "../../samples/rocev2-callback41.pcap", false) {
		if bytes.HasPrefix(line, []byte(`{"type":"transaction"`)) {
			lines, size = append(lines, line), size+len(line)
		}
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, line := range lines {
			if _, err := records.Parse(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestNullAfterSpace: a null after a space makes a number unknown, as without the space.
func TestNullAfterSpace(t *testing.T) {
	for _, null := range []string{"null", " null", "\tnull"} {
		line := []byte(`{"type":"comparison","kind":"group","name":"NFS4 READ","p_values":{"p50":null,"p90":` + null + `,"p99":0.5}}`)
		r, err := records.Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		values := r.(*analyze.Comparison).PValues
		if values.P90.Known() || values.P99.Or(0) != 0.5 {
			t.Errorf("%s is read as %+v", line, values)
		}
	}
}
