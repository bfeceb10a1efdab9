package record_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// shareable are the records that programs show to others.
var shareable = []any{
	record.Transaction{},
	record.Connection{},
	record.Finding{},
	record.Summary{},
	record.Point{},
	record.Network{},
	record.LostPacket{},
	record.RDMAOperation{},
	record.Task{},
	record.Sighting{},
}

// TestSecretTags: the tags of records tell of each text if it identifies somebody. If this test fails because a field is new,
// give the field the tag secret: without it, a page with pseudonyms leaves the text out.
func TestSecretTags(t *testing.T) {
	known := []record.Secret{
		record.SecretAddress, record.SecretSenders, record.SecretMachine, record.SecretUser, record.SecretID, record.SecretPath,
		record.SecretHandle, record.SecretPoint, record.SecretSentence, record.SecretContent, record.SecretNo,
	}
	texts := 0
	var visit func(kind reflect.Type, field reflect.StructField, of string)
	visit = func(kind reflect.Type, field reflect.StructField, of string) {
		if inner, opt := record.OptOf(kind); opt {
			kind = inner
		}
		tag, tagged := field.Tag.Lookup("secret")
		if tagged && !slices.Contains(known, record.Secret(tag)) {
			t.Errorf("%s.%s: there is no tag secret:%q", of, field.Name, tag)
		}
		switch {
		case record.Secret(tag) == record.SecretContent: // left out, with everything in it
		case kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Array:
			visit(kind.Elem(), field, of)
		case kind.Kind() == reflect.Map:
			visit(kind.Key(), field, of)
			visit(kind.Elem(), field, of)
		case kind.Kind() == reflect.Struct:
			for i := range kind.NumField() {
				if f := kind.Field(i); f.IsExported() {
					visit(f.Type, f, kind.Name())
				}
			}
		case (kind.Kind() == reflect.String || kind.Kind() == reflect.Interface || kind.Kind() == reflect.Uint8 && field.Type.Kind() == reflect.Slice) &&
			record.ValuesOf(kind) == nil && field.Tag.Get("values") == "":
			if texts++; !tagged {
				t.Errorf("%s.%s is a text without the tag secret, so it is not known whether it identifies somebody", of, field.Name)
			}
		}
	}
	for _, r := range shareable {
		visit(reflect.TypeOf(r), reflect.StructField{}, "")
	}
	if texts < 60 {
		t.Errorf("the test found only %d fields of text", texts)
	}
}

// filled returns the JSON of a value in which each list has one element, nothing is unknown, and each text that may
// have any value is "plain". It counts the fields with each tag.
func filled(t reflect.Type, f reflect.StructField, tags map[string]int) any {
	if inner, is := record.OptOf(t); is {
		return filled(inner, f, tags)
	}
	tag := f.Tag.Get("secret")
	switch {
	case tag == "content":
		return nil
	case t.Kind() == reflect.Pointer:
		return filled(t.Elem(), f, tags)
	case t.Kind() == reflect.Slice:
		return []any{filled(t.Elem(), f, tags)}
	case t.Kind() == reflect.Struct:
		all := map[string]any{}
		for _, inside := range record.FieldsOf(t) {
			f := t.Field(inside.Index)
			all[inside.Name] = filled(f.Type, f, tags)
		}
		return all
	case tag == "senders": // a list of addresses
		tags[tag]++
		return "plain address"
	case t.Kind() == reflect.String && tag != "":
		tags[tag]++
		return "plain " + tag
	case tag == "id":
		tags[tag]++
		return 1000
	}
	return reflect.Zero(t).Interface()
}

// marked replaces a text by one that names the tag, and the number 1000 by 7.
type marked struct{}

func (marked) Text(what record.Secret, text string) string {
	return fmt.Sprintf("hidden %s of %s", what, strings.TrimPrefix(text, "plain "))
}
func (marked) ID(id uint32) uint32 { return id / 1000 * 7 }

// TestHidden: a hidden record has pseudonyms wherever a tag demands it, in lists and pointers, too, and the record
// that it was made from is as before.
func TestHidden(t *testing.T) {
	hidden(t, map[string]int{"address": 2, "id": 2, "machine": 3, "user": 1, "path": 3, "handle": 2, "point": 15, "no": 17, "sentence": 1}, new(record.Transaction))
	hidden(t, map[string]int{"address": 2, "machine": 2, "point": 2, "no": 2}, new(record.Connection))
	hidden(t, map[string]int{"address": 2, "machine": 2, "point": 1, "no": 4}, new(record.Finding))
	hidden(t, map[string]int{"address": 5, "point": 8, "no": 3, "senders": 1, "sentence": 1}, new(record.Summary))
	hidden(t, map[string]int{"point": 1, "address": 1}, new(record.Point))
	hidden(t, map[string]int{"point": 2}, new(record.Network))
	hidden(t, map[string]int{"address": 2, "machine": 2, "point": 6}, new(record.RDMAOperation))
	hidden(t, map[string]int{"address": 2, "id": 1, "machine": 2, "user": 1, "path": 1, "point": 2, "no": 4}, new(record.Task))
}

// hidden verifies what Hidden makes of one type of record.
func hidden[T any](t *testing.T, want map[string]int, r *T) {
	t.Helper()
	kind, tags := reflect.TypeFor[T](), map[string]int{}
	text, err := json.Marshal(filled(kind, reflect.StructField{}, tags))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, r); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(tags) != fmt.Sprint(want) {
		t.Errorf("%v has fields with the tags %v, want %v", kind, tags, want)
	}
	before := asJSON(t, r)
	expected := strings.NewReplacer(`"plain no"`, `"plain no"`, `"plain `, `"hidden X of `, `:1000`, `:7`).Replace(before)
	for tag := range tags {
		expected = strings.ReplaceAll(expected, "hidden X of "+tag+`"`, "hidden "+tag+" of "+tag+`"`)
	}
	if got := asJSON(t, record.Hidden(r, marked{})); got != expected {
		t.Errorf("%v with pseudonyms is\n%s\nwant\n%s", kind, got, expected)
	}
	if got := asJSON(t, r); got != before {
		t.Errorf("%v was\n%s\nand is after a copy of it was hidden\n%s", kind, before, got)
	}
	empty := new(T)
	if got, want := asJSON(t, record.Hidden(empty, marked{})), asJSON(t, empty); got != want {
		t.Errorf("%v without values becomes\n%s\nwant\n%s", kind, got, want)
	}
}

// TestHiddenFiles: the files that an RPC acted on, which are in no JSON, are hidden, and decoded arguments are left out.
func TestHiddenFiles(t *testing.T) {
	r := &record.Transaction{
		FileUses: []record.FileUse{{File: "a", From: "", Handle: "01", Change: record.FileRenamed, ReadBytes: 5}},
		Decoded:  record.Decoded{Call: record.Half{Unread: "secret"}}, RPC: &record.RPC{},
	}
	got := record.Hidden(r, marked{})
	if want := (record.FileUse{File: "hidden path of a", Handle: "hidden handle of 01", Change: record.FileRenamed, ReadBytes: 5}); got.FileUses[0] != want {
		t.Errorf("the file is %+v, want %+v", got.FileUses[0], want)
	}
	if got.RPC != nil || got.Decoded.Call.Unread != "" {
		t.Errorf("arguments are in the hidden record: %v, %+v", got.RPC, got.Decoded)
	}
	if r.FileUses[0].File != "a" || r.RPC == nil {
		t.Errorf("the record was changed: %+v", r)
	}
}

// TestHiddenByDefault: text without a tag is left out, in whatever type it is.
func TestHiddenByDefault(t *testing.T) {
	type part struct{ Text string }
	type untagged struct {
		Text    string
		List    []string
		Bytes   []byte
		Map     map[string]int
		Any     any
		Opt     record.Opt[string]
		Pointer *part
		Parts   []part
		Status  record.Status
		Number  int64
	}
	got := record.Hidden(&untagged{
		"secret", []string{"secret"}, []byte("secret"), map[string]int{"secret": 1}, "secret", record.Some("secret"), &part{"secret"}, []part{{"secret"}}, record.Complete, 5,
	}, marked{})
	want := untagged{Pointer: &part{}, Parts: []part{{}}, Status: record.Complete, Number: 5}
	if asJSON(t, got) != asJSON(t, want) {
		t.Errorf("a record with text without tags becomes\n%s\nwant\n%s", asJSON(t, got), asJSON(t, want))
	}
}

// asJSON returns a value as JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestNamed: names replace addresses in a copy for texts, and nowhere else.
func TestNamed(t *testing.T) {
	h := record.NewHosts()
	h.Add(netip.MustParseAddr("10.0.0.1"), "nfs1")
	h.Add(netip.MustParseAddr("10.0.0.2"), "both")
	h.Add(netip.MustParseAddr("10.0.0.3"), "both")
	r := &record.Transaction{
		Client: record.Some("10.0.0.2"), Server: record.Some("10.0.0.1"), Machine: record.Some("10.0.0.1"), File: record.Some("10.0.0.1"),
		Cause: record.Some(record.Cause{ID: "10.0.0.1", Text: "The way to 10.0.0.1."}),
	}
	named := record.Named(r, h)
	want := &record.Transaction{
		Client: record.Some("both(10.0.0.2)"), Server: record.Some("nfs1"), Machine: record.Some("10.0.0.1"), File: record.Some("10.0.0.1"),
		Cause: record.Some(record.Cause{ID: "10.0.0.1", Text: "The way to nfs1."}),
	}
	if got, want := asJSON(t, named), asJSON(t, want); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if record.Named(r, nil) != r {
		t.Error("a record is copied without names")
	}
}
