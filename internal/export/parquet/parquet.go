// Package parquet writes the records of a capture as Parquet tables, for engines
// that query many captures at once: DuckDB, ClickHouse, Spark, Trino.
//
// A table is a folder, and each capture is a partition of it, as in Hive:
// DIR/transactions/capture=NAME/part-0.parquet. The package uses parquet-go because
// it is pure Go, so that rdmadump remains one static binary, and because Grafana's
// Tempo and Loki depend on it and maintain it; arrow-go would add most of Arrow.
package parquet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// The limits of a row group, which is in memory until it is complete: the number of rows, and the number of
// bytes in the paths of files, which may be long.
const (
	maxRows  = 1 << 15
	maxPaths = 16 << 20
)

// table writes one table, whose rows are made from values of type R.
type table[R any] struct {
	name    string // of one row, in the schema
	columns []column[R]
	file    *os.File
	writer  *parquet.GenericWriter[any]
	row     parquet.Row
	rows    int64
}

// Writer writes the tables of one capture.
type Writer struct {
	// Wants, if not nil, reports whether a transaction is written; an error ends the
	// export.
	Wants func(*record.Transaction) (bool, error)

	transactions table[record.Transaction]
	operations   table[operation]
	connections  table[record.Connection]
	findings     table[record.Finding]
	paths        int // bytes of the paths in the row group of transactions
}

// Rows counts the rows of each table.
type Rows struct{ Transactions, Operations, Connections, Findings int64 }

// Partition returns the name of a capture's partition: the base name of its file,
// in which "_" replaces all characters that may have a meaning for query engines.
func Partition(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, filepath.Base(name))
	if strings.Trim(name, ".") == "" {
		name = "_"
	}
	return name
}

// Create creates the tables of a capture below a folder. It returns an error that
// matches [io/fs.ErrExist] if the partition exists, which is never overwritten.
func Create(folder, capture string) (*Writer, error) {
	w := &Writer{
		transactions: table[record.Transaction]{name: "Transaction", columns: transactionColumns}, operations: table[operation]{name: "Operation", columns: operationColumns},
		connections: table[record.Connection]{name: "Connection", columns: connectionColumns}, findings: table[record.Finding]{name: "Finding", columns: findingColumns},
	}
	err := errors.Join(
		w.transactions.create(folder, "transactions", capture), w.operations.create(folder, "operations", capture),
		w.connections.create(folder, "connections", capture), w.findings.create(folder, "findings", capture))
	if err != nil {
		w.Abandon()
		return nil, err
	}
	return w, nil
}

// create creates the file of a table.
func (t *table[R]) create(folder, name, capture string) error {
	folder = filepath.Join(folder, name, "capture="+Partition(capture))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, "part-0.parquet"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	t.file = file
	t.writer = parquet.NewGenericWriter[any](file, schema(t.name, t.columns), parquet.MaxRowsPerRowGroup(maxRows), parquet.Compression(&parquet.Zstd))
	return nil
}

// write writes the row of a value.
func (t *table[R]) write(r *R) error {
	t.rows++
	t.row = appendRow(t.row[:0], t.columns, r)
	_, err := t.writer.WriteRows([]parquet.Row{t.row})
	return err
}

// close completes the file.
func (t *table[R]) close() error {
	if t.file == nil {
		return nil
	}
	err := errors.Join(t.writer.Close(), t.file.Close())
	t.file = nil
	return err
}

// Close completes the tables.
func (w *Writer) Close() error {
	return errors.Join(w.transactions.close(), w.operations.close(), w.connections.close(), w.findings.close())
}

// Abandon removes the tables.
func (w *Writer) Abandon() {
	for _, f := range []*os.File{w.transactions.file, w.operations.file, w.connections.file, w.findings.file} {
		if f != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}
}

// Rows returns the number of rows that were written so far.
func (w *Writer) Rows() Rows {
	return Rows{w.transactions.rows, w.operations.rows, w.connections.rows, w.findings.rows}
}

// Handler returns the handler for the dissector.
func (w *Writer) Handler() dissect.Handler {
	return dissect.Handler{Transaction: w.transaction, Connection: w.connection, Finding: w.finding}
}

// transaction adds a transaction, and the operations of a COMPOUND.
func (w *Writer) transaction(r *record.Transaction) error {
	if w.Wants != nil {
		if wanted, err := w.Wants(r); err != nil || !wanted {
			return err
		}
	}
	if err := w.transactions.write(r); err != nil {
		return err
	}
	if w.paths += len(r.File.Or("")) + len(r.FileFrom.Or("")) + len(r.FileHandle.Or("")); w.paths > maxPaths {
		w.paths = 0
		if err := w.transactions.writer.Flush(); err != nil {
			return err
		}
	}
	for i := range r.Operations {
		if err := w.operations.write(&operation{r, i}); err != nil {
			return err
		}
	}
	return nil
}

// connection adds a connection.
func (w *Writer) connection(r *record.Connection) error { return w.connections.write(r) }

// finding adds a finding.
func (w *Writer) finding(r *record.Finding) error { return w.findings.write(r) }
