package records

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// maxLine is the length of the longest line, in bytes. A transaction with the largest number of
// segments is shorter.
const maxLine = 64 << 20

// Source is the JSON lines of one capture, in one input or several: rdmadump writes the
// transactions and the connections of a capture to different files, for example.
type Source struct {
	inputs  []Input
	kinds   map[string]int64 // number of records, by type
	summary *record.Summary
	read    int64 // number of bytes of all inputs that were read, decompressed
}

// Input is an input of JSON lines. Open is called twice.
type Input struct {
	Name string // for messages
	Open func() (io.ReadCloser, error)
}

// Handler gets the records of a source. A function may be nil. Other gets the records that have
// no function of their own, as a pointer.
type Handler struct {
	Transaction func(*record.Transaction) error
	Connection  func(*record.Connection) error
	Finding     func(*record.Finding) error
	Operation   func(*record.RDMAOperation) error
	Task        func(*record.Task) error
	Other       func(any) error
}

// BrokenError describes where and why reading records failed.
type BrokenError struct {
	Name string // name of the input
	Line int64  // number of the line, counted from 1
	Err  error  // the cause
}

// Error returns a one-line description.
func (e *BrokenError) Error() string { return fmt.Sprintf("%s line %d: %v", e.Name, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// Scan reads the inputs once, to learn which types of records they have and the summary, which is
// the last record of each. The error is a BrokenError if an input is not JSON lines of rdmadump,
// or if the inputs are of different captures. A last line that is incomplete is no error here.
func Scan(ctx context.Context, inputs ...Input) (*Source, error) {
	s := &Source{inputs: inputs, kinds: map[string]int64{}}
	err := s.each(ctx, func(line []byte, _ bool) error {
		name, err := TypeOf(line)
		if err != nil {
			return err
		}
		s.kinds[name]++
		if name != "summary" {
			return nil
		}
		r, err := Parse(line)
		if err != nil {
			return err
		}
		now := r.(*record.Summary)
		if before := s.summary; before != nil && (before.Packets != now.Packets || before.First != now.First) {
			return errors.New("the input has records of another capture")
		}
		s.summary = now
		return nil
	})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return s, err
}

// Summary returns the summary of the capture; nil if no input has one.
func (s *Source) Summary() *record.Summary { return s.summary }

// Count returns the number of records of a type.
func (s *Source) Count(kind string) int64 { return s.kinds[kind] }

// Kinds returns the types of records that the inputs have, sorted.
func (s *Source) Kinds() (names []string) {
	for name := range s.kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Run passes all records to the handler, in their order, until the handler returns an error or
// ctx ends. Records are valid until the handler returns. The error is a BrokenError if a line
// cannot be read; all records before it were passed on.
func (s *Source) Run(ctx context.Context, h Handler) error {
	start := record.Time(0)
	if s.summary != nil {
		start = s.summary.First.Or(0)
	}
	failed := error(nil)
	err := s.each(ctx, func(line []byte, whole bool) error {
		if kind, err := TypeOf(line); err != nil || whole && !h.wants(kind) {
			return err
		}
		r, err := Parse(line)
		if err == nil {
			err = h.take(r, start)
			failed = err
		}
		return err
	})
	if failed != nil {
		return failed
	}
	return err
}

// wants reports whether a function gets the records of a type. Others are not parsed, because that takes time.
func (h *Handler) wants(kind string) bool {
	switch kind {
	case "transaction":
		return h.Transaction != nil
	case "connection":
		return h.Connection != nil
	case "finding":
		return h.Finding != nil
	case "rdma_operation":
		return h.Operation != nil
	}
	return h.Other != nil
}

// take passes a record to its function.
func (h *Handler) take(r any, start record.Time) error {
	switch r := r.(type) {
	case *record.Transaction:
		if h.Transaction != nil {
			r.Complete(completed(r), start)
			return h.Transaction(r)
		}
	case *record.Connection:
		if h.Connection != nil {
			return h.Connection(r)
		}
	case *record.Finding:
		if h.Finding != nil {
			r.Complete(record.Stamp{Time: r.Time.Or(0), Packet: max(r.Packet.Or(1), 1)}, start)
			return h.Finding(r)
		}
	case *record.RDMAOperation:
		if h.Operation != nil {
			r.Complete(record.Stamp{Time: r.Sent, Packet: max(r.LastPacket, 1)}, start)
			return h.Operation(r)
		}
	case *record.Task:
		if h.Task != nil {
			r.Complete(record.Stamp{Time: r.From, Packet: max(r.LastPacket.Or(r.Packet), 1)}, start)
			return h.Task(r)
		}
	case nil:
	default:
		if h.Other != nil {
			return h.Other(r)
		}
	}
	return nil
}

// completed returns the last packet of a transaction that its record shows.
func completed(r *record.Transaction) record.Stamp {
	at := record.Stamp{Time: r.Start(), Packet: 1}
	for i := range r.Timeline {
		if e := &r.Timeline[i]; e.Packet > at.Packet {
			at = record.Stamp{Time: e.Time, Packet: e.Packet}
		}
	}
	return at
}

// each calls visit for each line of all inputs. The last line of an input may not be whole.
func (s *Source) each(ctx context.Context, visit func(line []byte, whole bool) error) error {
	for _, in := range s.inputs {
		r, err := in.Open()
		if err != nil {
			return fmt.Errorf("%s: %w", in.Name, err)
		}
		err = s.lines(ctx, r, in.Name, visit)
		if closed := r.Close(); err == nil && closed != nil {
			err = fmt.Errorf("%s: %w", in.Name, closed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lines calls visit for each line of one input.
func (s *Source) lines(ctx context.Context, r io.Reader, name string, visit func(line []byte, whole bool) error) error {
	b := bufio.NewReaderSize(r, 256<<10)
	var long []byte
	for number := int64(1); ctx.Err() == nil; number++ {
		line, err := b.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			long = append(long[:0], line...)
			for err == bufio.ErrBufferFull && len(long) <= maxLine {
				line, err = b.ReadSlice('\n')
				long = append(long, line...)
			}
			line = long
		}
		if len(line) > maxLine {
			return &BrokenError{name, number, fmt.Errorf("the line is longer than %d bytes: %w", maxLine, ErrFormat)}
		}
		s.read += int64(len(line))
		whole := err == nil
		if err != nil && err != io.EOF {
			return &BrokenError{name, number, err}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if failed := visit(line, whole); failed != nil {
				if !whole && errors.Is(failed, ErrFormat) {
					failed = fmt.Errorf("the line is incomplete: %w", io.ErrUnexpectedEOF)
				}
				return &BrokenError{name, number, failed}
			}
		}
		if !whole {
			return nil
		}
	}
	return context.Cause(ctx)
}
