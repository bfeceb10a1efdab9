// Package records reads back the JSON lines that rdmadump wrote: each line becomes the record
// that it was made from.
//
// The lines are input like any other: a line may be damaged, or made to do harm. [Parse] returns
// an error for a line that no version of rdmadump writes, so that the code that draws records
// can rely on what every record has: a transaction has a Call or a Reply, and an enumeration has
// one of its values, or is empty if the line lacks it. Fields that this version does not know are
// ignored, because later versions add fields; fields that an earlier version did not have are absent.
//
// To add a record type, add a row to the table types.
package records

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"

	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// ErrFormat is wrapped by the error for a line that is not a record.
var ErrFormat = errors.New("not a record of rdmadump")

// types has the Go type of each type of record that can be read back. Packets are missing: their
// JSON depends on the headers that they have, and the views of packets need the packets.
var types = map[string]reflect.Type{
	"transaction":    reflect.TypeFor[record.Transaction](),
	"connection":     reflect.TypeFor[record.Connection](),
	"rdma_operation": reflect.TypeFor[record.RDMAOperation](),
	"rdma_stats":     reflect.TypeFor[analyze.OperationStats](),
	"task":           reflect.TypeFor[record.Task](),
	"finding":        reflect.TypeFor[record.Finding](),
	"summary":        reflect.TypeFor[record.Summary](),
	"comparison":     reflect.TypeFor[analyze.Comparison](),
	"overview":       reflect.TypeFor[analyze.Overview](),
	"stats":          reflect.TypeFor[analyze.Stats](),
	"file":           reflect.TypeFor[analyze.File](),
	"rate":           reflect.TypeFor[analyze.Rate](),
	"credits":        reflect.TypeFor[analyze.Credits](),
	"handles":        reflect.TypeFor[analyze.Handles](),
}

// Types returns the types of records that Parse reads, sorted.
func Types() (names []string) {
	for name := range types {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Parse returns the record of a line of JSON: a pointer to it. The error wraps ErrFormat if
// rdmadump does not write such a line. A packet, and a record of a type that only later versions
// write, is nil without an error.
func Parse(line []byte) (any, error) {
	name, err := TypeOf(line)
	if err != nil {
		return nil, err
	}
	t := types[name]
	if t == nil {
		return nil, nil
	}
	v := reflect.New(t)
	if err := json.Unmarshal(line, v.Interface()); err != nil {
		return nil, fmt.Errorf("%s: %w (%w)", name, explain(err), ErrFormat)
	}
	if err := check(v); err != nil {
		return nil, fmt.Errorf("%s: %w (%w)", name, err, ErrFormat)
	}
	return v.Interface(), nil
}

// explain returns an error of encoding/json without the names of Go's types.
func explain(err error) error {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s must not be of the type %s", cmp.Or(wrong.Field, "the record"), wrong.Value)
	}
	return err
}

// typeStart is how every record starts.
var typeStart = []byte(`{"type":"`)

// TypeOf returns the type of the record of a line, without parsing all of it if rdmadump wrote
// it as it is.
func TypeOf(line []byte) (string, error) {
	if rest, is := bytes.CutPrefix(line, typeStart); is {
		if name, _, ends := bytes.Cut(rest[:min(len(rest), 64)], []byte{'"'}); ends {
			return string(name), nil
		}
	}
	var head struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return "", fmt.Errorf("%w (%w)", explain(err), ErrFormat)
	}
	if head.Type == nil {
		return "", fmt.Errorf("the field type is missing: %w", ErrFormat)
	}
	return *head.Type, nil
}
