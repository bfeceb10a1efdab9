package record_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// filled returns the JSON of a value in which each list has one element, nothing is unknown, and each capture point is
// "here". It counts the points.
func filled(t reflect.Type, name string, points *int) any {
	if inner, is := record.OptOf(t); is {
		return filled(inner, name, points)
	}
	switch {
	case name == "rpc": // has arguments and results, and no points
		return nil
	case t.Kind() == reflect.Pointer:
		return filled(t.Elem(), name, points)
	case t.Kind() == reflect.Slice:
		return []any{filled(t.Elem(), name, points)}
	case t.Kind() == reflect.Struct:
		all := map[string]any{}
		for _, f := range record.FieldsOf(t) {
			all[f.Name] = filled(t.Field(f.Index).Type, f.Name, points)
		}
		return all
	case t.Kind() == reflect.String && (name == "point" || name == "points" || strings.HasSuffix(name, "_point")):
		*points++
		return "here"
	}
	return reflect.Zero(t).Interface()
}

// TestRenamePoints: a record has new names for all of its capture points, and its copies keep the old ones. If this test
// fails because a field is new, RenamePoints and Localize must know the field: otherwise a page with pseudonyms shows
// the names of files.
func TestRenamePoints(t *testing.T) {
	for _, c := range []struct {
		record interface{ RenamePoints(func(string) string) }
		copied any // shares lists and messages with the record
		points int
	}{
		{new(record.Transaction), new(record.Transaction), 13},
		{new(record.Finding), new(record.Finding), 1},
		{new(record.Connection), new(record.Connection), 1},
		{new(record.Summary), new(record.Summary), 1},
	} {
		kind, points := reflect.TypeOf(c.record).Elem(), 0
		text, err := json.Marshal(filled(kind, "", &points))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, c.record); err != nil {
			t.Fatal(err)
		}
		reflect.ValueOf(c.copied).Elem().Set(reflect.ValueOf(c.record).Elem())
		before := asJSON(t, c.record)
		if n := strings.Count(before, `"here"`); points != c.points || n != points {
			t.Errorf("%v: %d fields with capture points, %d of them filled; want %d", kind, points, n, c.points)
		}
		c.record.RenamePoints(func(name string) string { return "not " + name })
		if got, want := asJSON(t, c.record), strings.ReplaceAll(before, `"here"`, `"not here"`); got != want {
			t.Errorf("%v:\n got %s\nwant %s", kind, got, want)
		}
		if got := asJSON(t, c.copied); got != before {
			t.Errorf("%v: a copy is\n%s\nwant\n%s", kind, got, before)
		}
		c.record = reflect.New(kind).Interface().(interface{ RenamePoints(func(string) string) })
		if transaction, is := c.record.(*record.Transaction); is {
			transaction.Timeline, transaction.Waits = make([]record.Event, 1), make([]record.Wait, 1)
		}
		before = asJSON(t, c.record)
		c.record.RenamePoints(func(name string) string { return "not " + name })
		if got := asJSON(t, c.record); got != before {
			t.Errorf("%v without capture points becomes\n%s\nwant\n%s", kind, got, before)
		}
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
