package transaction_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/internal/transaction"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// TestShared: the values that transactions without Reply, and segments in which nothing moved,
// share stay unchanged, whatever a capture contains.
func TestShared(t *testing.T) {
	paths, err := filepath.Glob("../../../samples/*.pcap*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	look := func(source io.Reader) {
		f, err := capture.NewFile("damaged", source)
		if err != nil {
			return // damaged beyond reading
		}
		defer f.Close()
		d := dissect.New(dissect.Handler{Transaction: func(*record.Transaction) error { return nil }}, dissect.Options{Memory: 4 << 20})
		d.Run(context.Background(), f)
	}
	for _, path := range paths {
		frames, _ := testkit.Frames(t, path)
		for seed := range uint64(60) {
			file, _ := testkit.Damage(seed, frames, frames)
			look(bytes.NewReader(file))
		}
		if v := reflect.ValueOf(transaction.NoAnswer).Elem(); !v.IsZero() {
			t.Fatalf("%s: the answer of those without one is %+v", path, v)
		}
		if v := reflect.ValueOf(transaction.Still).Elem(); !v.IsZero() {
			t.Fatalf("%s: what moved where nothing does is %+v", path, v)
		}
	}
}

// TestReuse: the records of transactions do not depend on the storage that transactions before them
// left, whatever a capture contains.
func TestReuse(t *testing.T) {
	usual := *transaction.MaxUnused
	defer func() { *transaction.MaxUnused = usual }()
	records := func(limit int, source io.Reader) []byte {
		*transaction.MaxUnused = limit
		f, err := capture.NewFile("damaged", source)
		if err != nil {
			return nil // damaged beyond reading
		}
		defer f.Close()
		var out bytes.Buffer
		each := json.NewEncoder(&out)
		d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error { return each.Encode(r) }}, dissect.Options{Memory: 4 << 20})
		d.Run(context.Background(), f)
		return out.Bytes()
	}
	paths, err := filepath.Glob("../../../samples/*.pcap*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, path := range paths {
		frames, _ := testkit.Frames(t, path)
		for seed := range uint64(20) {
			file, _ := testkit.Damage(seed, frames, frames)
			with, without := records(usual, bytes.NewReader(file)), records(0, bytes.NewReader(file))
			if !bytes.Equal(with, without) {
				t.Fatalf("%s, damage %d: the records differ if storage is used again", path, seed)
			}
		}
	}
}
