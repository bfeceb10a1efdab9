package render_test

import (
	"bytes"
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// standard returns the JSON of a value from encoding/json, as a line.
func standard(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestEncoderCaptures: the lines of all records are identical to those of encoding/json.
func TestEncoderCaptures(t *testing.T) {
	records, failed := 0, 0
	eachRecord(t, func(capture, kind string, r any) {
		if kind == "packet" || failed > 3 || strings.HasPrefix(capture, mutant) { // TestEncoder has bytes that are no text, which encoding/json escapes
			return
		}
		records++
		if got, want := string(render.AppendJSON(nil, r)), standard(t, r); got != want {
			failed++
			t.Errorf("%s: %s\n got %swant %s", capture, kind, got, want)
		}
	})
	if records < 3500 {
		t.Errorf("%d records", records)
	}
}

// escaped is text that needs escapes.
type escaped string

func (e escaped) AppendText(b []byte) ([]byte, error)   { return append(b, e...), nil }
func (e escaped) MarshalText() (text []byte, err error) { return e.AppendText(nil) }

// TestEncoder: every kind of field, with and without a value.
func TestEncoder(t *testing.T) {
	type inner struct {
		Handle record.Hex32             `json:"handle"`
		Text   record.Opt[escaped]      `json:"text"`
		Low    record.Opt[record.Hex24] `json:"low,omitzero"`
	}
	type all struct {
		Bool     bool                     `json:"bool"`
		Int      int                      `json:"int"`
		Int8     int8                     `json:"int8"`
		Uint64   uint64                   `json:"uint64"`
		Float    float64                  `json:"float"`
		String   string                   `json:"string"`
		Status   record.Status            `json:"status"`
		Left     string                   `json:"left,omitzero"`
		Time     record.Time              `json:"time"`
		Address  netip.Addr               `json:"address"`
		OptInt   record.Opt[int]          `json:"opt_int"`
		OptZero  record.Opt[uint32]       `json:"opt_zero,omitzero"`
		OptBool  record.Opt[bool]         `json:"opt_bool"`
		OptFloat record.Opt[float64]      `json:"opt_float"`
		OptText  record.Opt[string]       `json:"opt_text"`
		OptHex   record.Opt[record.Hex24] `json:"opt_hex"`
		OptIn    record.Opt[inner]        `json:"opt_in"`
		Pointer  *inner                   `json:"pointer"`
		List     []inner                  `json:"list" doc:"null without"`
		Words    []string                 `json:"words" doc:"null without"`
		Array    [2]record.Hex64          `json:"array"`
		Map      map[record.Status]int64  `json:"map"`
		Not      string                   `json:"-"`
		Bare     string
		hidden   int
	}
	full := inner{Handle: 0xa34, Text: record.Some(escaped("x")), Low: record.Some(record.Hex24(0))}
	for name, v := range map[string]*all{
		"nothing": {},
		"all": {
			Bool: true, Int: -5, Int8: -128, Uint64: math.MaxUint64, Float: 1.5, String: "a<b>&c", Status: record.Complete, Left: "x", Time: -1,
			Address: netip.MustParseAddr("fe80::1"), OptInt: record.Some(0), OptZero: record.Some[uint32](0), OptBool: record.Some(false),
			OptFloat: record.Some(0.25), OptText: record.Some(""), OptHex: record.Some(record.Hex24(7)), OptIn: record.Some(full), Pointer: &full,
			List: []inner{full, {}}, Words: []string{"a", "b"}, Array: [2]record.Hex64{1, 2}, Map: map[record.Status]int64{"b": 2, "a": 1, "": 0}, Not: "x", hidden: 1,
		},
		"empty":         {List: []inner{}, Words: []string{}, Map: map[record.Status]int64{}},
		"small numbers": {Float: 1e-9, OptFloat: record.Some(-1e-7)},
		"large numbers": {Float: 1e21, OptFloat: record.Some(123456789012345680000.0), Int: math.MinInt64},
	} {
		want := strings.Replace(standard(t, v), `,"Bare":""`, "", 1) // a field without a tag is not part of a record
		if got := string(render.AppendJSON(nil, v)); got != want {
			t.Errorf("%s:\n got %swant %s", name, got, want)
		}
	}
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"no fields":         {&struct{ S string }{}, "{}"},
		"a string with all": {&all{String: "\x1b[31m\x00\xff\"\\\x7f"}, `"string":"\u001b[31m\u0000` + "\ufffd" + `\"\\\u007f"`},
		"text with all":     {&inner{Text: record.Some(escaped("\x1b\xff\"\u00e9"))}, `"text":"\u001b` + "\ufffd" + `\"` + "\u00e9" + `"`},
		"an empty list": {&struct {
			L []int `json:"l"`
		}{}, `{"l":[]}`},
		"no number": {&all{Float: math.NaN(), OptFloat: record.Some(math.Inf(-1))}, `"float":null`},
	} {
		if got := render.AppendJSON(nil, c.v); !bytes.Contains(got, []byte(c.want)) || !json.Valid(got) {
			t.Errorf("%s: %s has no %s", name, got, c.want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("JSON of a channel")
		}
	}()
	render.AppendJSON(nil, &struct {
		C chan int `json:"c"`
	}{})
}

// TestEncoderAllocations: AppendJSON does not allocate.
func TestEncoderAllocations(t *testing.T) {
	var records []any
	run(t, "rocev2-errors.pcap.zst", dissect.Handler{
		Transaction: func(r *record.Transaction) error {
			records = append(records, r.Clone())
			return nil
		},
		Connection: func(r *record.Connection) error {
			records = append(records, r.Clone())
			return nil
		},
		Finding: func(r *record.Finding) error {
			records = append(records, r.Clone())
			return nil
		},
	})
	var line []byte
	n := testing.AllocsPerRun(10, func() {
		for _, r := range records {
			line = render.AppendJSON(line[:0], r)
		}
	})
	if n != 0 || len(records) < 50 {
		t.Errorf("%v allocations for %d records", n, len(records))
	}
}
