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
	"github.com/rdmadump/rdmadump/internal/analyze"
)

// Transaction is a row of the table transactions: one RPC. Unknown values are null.
// A column means the same as the member of that name in rdmadump's JSON.
type Transaction struct {
	ID              int64   `parquet:"id"`
	Connection      int64   `parquet:"connection"`
	XID             uint32  `parquet:"xid"`
	Direction       string  `parquet:"direction,dict"`
	Status          string  `parquet:"status,dict"`
	Program         *uint32 `parquet:"program,optional"`
	ProgramName     *string `parquet:"program_name,optional,dict"`
	Version         *uint32 `parquet:"version,optional"`
	Procedure       *uint32 `parquet:"procedure,optional"`
	ProcedureName   *string `parquet:"procedure_name,optional,dict"`
	Operation       *string `parquet:"operation,optional,dict"`
	Credential      *string `parquet:"credential,optional,dict"`
	RPCStatus       *string `parquet:"rpc_status,optional,dict"`
	NFSStatus       *string `parquet:"nfs_status,optional,dict"`
	Time            int64   `parquet:"time,timestamp(nanosecond)"` // of the Call, or of a Reply without a Call
	Packet          int64   `parquet:"packet"`
	LatencyNS       *int64  `parquet:"latency_ns,optional"`
	CallForm        *string `parquet:"call_form,optional,dict"`
	CallBytes       *int64  `parquet:"call_bytes,optional"` // of the whole Payload stream
	CallMissing     *int64  `parquet:"call_missing_bytes,optional"`
	CallCredits     *uint32 `parquet:"call_credits,optional"`
	ReplyForm       *string `parquet:"reply_form,optional,dict"`
	ReplyBytes      *int64  `parquet:"reply_bytes,optional"`
	ReplyMissing    *int64  `parquet:"reply_missing_bytes,optional"`
	ReplyCredits    *uint32 `parquet:"reply_credits,optional"`
	ReadSegments    int64   `parquet:"read_segments"`
	WriteSegments   int64   `parquet:"write_segments"`
	ReplySegments   int64   `parquet:"reply_segments"`
	ReadMovedBytes  int64   `parquet:"read_moved_bytes"` // moved by RDMA Read
	WriteMovedBytes int64   `parquet:"write_moved_bytes"`
	Invalidated     *uint32 `parquet:"invalidated,optional"` // handle in the Reply's Send With Invalidate
	Retransmitted   int64   `parquet:"retransmitted"`
	RetransmitOf    *int64  `parquet:"retransmit_of,optional"`
	RDMAError       *string `parquet:"rdma_error,optional,dict"`
	Name            string  `parquet:"name,dict"` // program and operation, by which stats groups RPCs
	Failed          bool    `parquet:"failed"`    // stats counts the RPC as an error
	ToReadNS        *int64  `parquet:"to_read_ns,optional"`
	ReadNS          *int64  `parquet:"read_ns,optional"`
	ToWriteNS       *int64  `parquet:"to_write_ns,optional"`
	WriteNS         *int64  `parquet:"write_ns,optional"`
	ToReplyNS       *int64  `parquet:"to_reply_ns,optional"`
	WaitNS          *int64  `parquet:"wait_ns,optional"`
	Findings        string  `parquet:"findings,dict"` // rules, separated by commas
	Client          *string `parquet:"client,optional,dict"`
	Server          *string `parquet:"server,optional,dict"`
	UID             *uint32 `parquet:"uid,optional"`
	GID             *uint32 `parquet:"gid,optional"`
	Machine         *string `parquet:"machine,optional,dict"`
	Principal       *string `parquet:"principal,optional,dict"`
	File            *string `parquet:"file,optional"` // null unless the option Files of package dissect is set, as are the next two
	FileFrom        *string `parquet:"file_from,optional"`
	FileHandle      *string `parquet:"file_handle,optional"`
}

// Operation is a row of the table operations: one operation of a COMPOUND.
type Operation struct {
	Transaction int64  `parquet:"transaction"`
	Number      int64  `parquet:"number"` // in the COMPOUND, from 0
	Name        string `parquet:"name,dict"`
}

// Connection is a row of the table connections.
type Connection struct {
	ID            int64   `parquet:"id"`
	Transport     string  `parquet:"transport,dict"`
	UpperLayer    string  `parquet:"upper_layer,dict"`
	ClientAddress *string `parquet:"client_address,optional,dict"`
	ClientPort    *uint32 `parquet:"client_port,optional"`
	ClientQPN     *uint32 `parquet:"client_qpn,optional"`
	ServerAddress *string `parquet:"server_address,optional,dict"`
	ServerPort    *uint32 `parquet:"server_port,optional"`
	ServerQPN     *uint32 `parquet:"server_qpn,optional"`
	Handshake     string  `parquet:"handshake,dict"`
	First         int64   `parquet:"first,timestamp(nanosecond)"`
	Last          int64   `parquet:"last,timestamp(nanosecond)"`
	Established   *int64  `parquet:"established,optional,timestamp(nanosecond)"`
	Closed        *int64  `parquet:"closed,optional,timestamp(nanosecond)"`
	EndedHow      *string `parquet:"ended_how,optional,dict"`
	EndedBy       *string `parquet:"ended_by,optional,dict"`
	Transactions  int64   `parquet:"transactions"`
	Packets       int64   `parquet:"packets"`
	Retransmitted int64   `parquet:"retransmitted"`
	OutOfOrder    int64   `parquet:"out_of_order"`
	NotCaptured   int64   `parquet:"not_captured"`
	Naks          int64   `parquet:"naks"`
	RNRNaks       int64   `parquet:"rnr_naks"`
}

// Finding is a row of the table findings.
type Finding struct {
	Rule       string  `parquet:"rule,dict"`
	Severity   string  `parquet:"severity,dict"`
	Section    string  `parquet:"section,dict"`
	AtFault    *string `parquet:"at_fault,optional,dict"`
	Message    string  `parquet:"message"`
	Connection *int64  `parquet:"connection,optional"`
	XID        *uint32 `parquet:"xid,optional"`
	Packet     *int64  `parquet:"packet,optional"`
	Time       *int64  `parquet:"time,optional,timestamp(nanosecond)"`
}

// The limits of a row group, which is in memory until it is complete: the number of rows, and the number of
// bytes in the paths of files, which may be long.
const (
	maxRows  = 1 << 15
	maxPaths = 16 << 20
)

// table writes one table.
type table[T any] struct {
	file   *os.File
	writer *parquet.GenericWriter[T]
	row    [1]T
	rows   int64
}

// Writer writes the tables of one capture.
type Writer struct {
	// Wants, if not nil, reports whether a transaction is written; an error ends the
	// export.
	Wants func(*record.Transaction) (bool, error)

	transactions table[Transaction]
	operations   table[Operation]
	connections  table[Connection]
	findings     table[Finding]
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
	w := &Writer{}
	err := errors.Join(
		w.transactions.create(folder, "transactions", capture), w.operations.create(folder, "operations", capture),
		w.connections.create(folder, "connections", capture), w.findings.create(folder, "findings", capture))
	if err != nil {
		w.Abandon()
		return nil, err
	}
	return w, nil
}

func (t *table[T]) create(folder, name, capture string) error {
	folder = filepath.Join(folder, name, "capture="+Partition(capture))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(folder, "part-0.parquet"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	t.file = file
	t.writer = parquet.NewGenericWriter[T](file, parquet.MaxRowsPerRowGroup(maxRows), parquet.Compression(&parquet.Zstd))
	return nil
}

func (t *table[T]) write() error {
	t.rows++
	_, err := t.writer.Write(t.row[:])
	return err
}

func (t *table[T]) close() error {
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

// null returns a pointer to the value, or nil if it is unknown.
func null[T any](o record.Opt[T]) *T {
	if v, known := o.Get(); known {
		return &v
	}
	return nil
}

// as returns a pointer to the value converted to another type, or nil if it is
// unknown.
func as[To, From ~int | ~int64 | ~uint16 | ~uint32](o record.Opt[From]) *To {
	if v, known := o.Get(); known {
		to := To(v)
		return &to
	}
	return nil
}

// word returns an enumeration's value, or nil if it is unknown.
func word[T ~string](o record.Opt[T]) *string {
	if v, known := o.Get(); known {
		text := string(v)
		return &text
	}
	return nil
}

func (w *Writer) transaction(r *record.Transaction) error {
	if w.Wants != nil {
		if wanted, err := w.Wants(r); err != nil || !wanted {
			return err
		}
	}
	t := Transaction{
		ID: r.ID, Connection: int64(r.Connection), XID: uint32(r.XID), Direction: string(r.Direction), Status: string(r.Status),
		Program: null(r.Program), ProgramName: null(r.ProgramName), Version: null(r.Version), Procedure: null(r.Procedure),
		ProcedureName: null(r.ProcedureName), Operation: null(r.Operation), Credential: null(r.Credential),
		RPCStatus: null(r.RPCStatus), NFSStatus: null(r.NFSStatus), Time: int64(r.Start()), LatencyNS: null(r.LatencyNS),
		Retransmitted: int64(r.Retransmitted), RetransmitOf: null(r.RetransmitOf), RDMAError: null(r.RDMAError),
		Findings: strings.Join(r.Findings, ","),
		Name:     analyze.Name(r, analyze.ByOperation), Failed: r.Failed(),
		Client: null(r.Client), Server: null(r.Server), UID: null(r.UID), GID: null(r.GID), Machine: null(r.Machine), Principal: null(r.Principal),
		File: null(r.File), FileFrom: null(r.FileFrom), FileHandle: null(r.FileHandle),
	}
	if i, known := r.Invalidation.Get(); known {
		handle := uint32(i.Handle)
		t.Invalidated = &handle
	}
	if m := r.Reply; m != nil {
		form := string(m.Form)
		t.ReplyForm, t.ReplyBytes, t.ReplyMissing, t.ReplyCredits, t.Packet = &form, null(m.PayloadBytes), null(m.MissingBytes), null(m.Credits), m.Packet
	}
	if m := r.Call; m != nil {
		form := string(m.Form)
		t.CallForm, t.CallBytes, t.CallMissing, t.CallCredits, t.Packet = &form, null(m.PayloadBytes), null(m.MissingBytes), null(m.Credits), m.Packet
	}
	for list, s := range r.Segments() {
		switch list {
		case record.ReadList:
			t.ReadSegments++
			t.ReadMovedBytes += s.MovedBytes
			continue
		case record.WriteList:
			t.WriteSegments++
		default:
			t.ReplySegments++
		}
		t.WriteMovedBytes += s.MovedBytes
	}
	if p, known := r.Phases.Get(); known {
		t.ToReadNS, t.ReadNS, t.ToWriteNS, t.WriteNS, t.ToReplyNS, t.WaitNS = null(p.ToReadNS), null(p.ReadNS), null(p.ToWriteNS), null(p.WriteNS), null(p.ToReplyNS), &p.WaitNS
	}
	w.transactions.row[0] = t
	if err := w.transactions.write(); err != nil {
		return err
	}
	if w.paths += len(r.File.Or("")) + len(r.FileFrom.Or("")) + len(r.FileHandle.Or("")); w.paths > maxPaths {
		w.paths = 0
		if err := w.transactions.writer.Flush(); err != nil {
			return err
		}
	}
	for i, name := range r.Operations {
		w.operations.row[0] = Operation{r.ID, int64(i), name}
		if err := w.operations.write(); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) connection(r *record.Connection) error {
	var how, by *string
	if end, ended := r.Ended.Get(); ended {
		how, by = (*string)(&end.How), word(end.By)
	}
	w.connections.row[0] = Connection{
		ID: int64(r.ID), Transport: r.Transport, UpperLayer: r.UpperLayer, Handshake: r.Handshake,
		ClientAddress: null(r.Client.Address), ClientPort: as[uint32](r.Client.Port), ClientQPN: as[uint32](r.Client.QPN),
		ServerAddress: null(r.Server.Address), ServerPort: as[uint32](r.Server.Port), ServerQPN: as[uint32](r.Server.QPN),
		First: int64(r.First), Last: int64(r.Last), Established: as[int64](r.Established), Closed: as[int64](r.Closed),
		EndedHow: how, EndedBy: by, Transactions: r.Transactions, Packets: r.Packets, Retransmitted: r.Retransmitted,
		OutOfOrder: r.OutOfOrder, NotCaptured: r.NotCaptured, Naks: r.Naks, RNRNaks: r.RNRNaks,
	}
	return w.connections.write()
}

func (w *Writer) finding(r *record.Finding) error {
	w.findings.row[0] = Finding{
		Rule: r.Rule, Severity: string(r.Severity), Section: r.Section, AtFault: word(r.AtFault), Message: r.Message,
		Connection: as[int64](r.Connection), XID: as[uint32](r.XID), Packet: null(r.Packet), Time: as[int64](r.Time),
	}
	return w.findings.write()
}
