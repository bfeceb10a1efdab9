package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/internal/report"
)

// lines is an input of JSON lines that rdmadump wrote earlier, in place of captures.
type lines struct {
	*records.Source
	names   []string // of the inputs, for messages
	paths   []string // of the inputs
	spooled []string // temporary files
}

// close removes temporary files.
func (l *lines) close() {
	for _, path := range l.spooled {
		os.Remove(path)
	}
}

// name returns the names of the inputs, for messages.
func (l *lines) name() string { return printable(strings.Join(l.names, " ")) }

// openLines returns the JSON lines among inputs that are no captures. Standard input is copied to
// a temporary file, because records are read twice.
func openLines(ctx context.Context, texts []*capture.TextError) (l *lines, err error) {
	l = &lines{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	var inputs []records.Input
	for _, text := range texts {
		path := text.Path
		l.names, l.paths = append(l.names, text.Name), append(l.paths, path)
		if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
			copied, err := copyInput(ctx, func() (io.ReadCloser, error) { return text, nil })
			if err != nil {
				return l, err
			}
			path, l.spooled = copied, append(l.spooled, copied)
		} else {
			text.Close()
		}
		inputs = append(inputs, records.Input{Name: printable(text.Name), Open: func() (io.ReadCloser, error) { return openText(path) }})
	}
	l.Source, err = records.Scan(ctx, inputs...)
	return l, err
}

// openText opens a file of JSON lines, or a page that contains them, and decompresses it.
func openText(path string) (io.ReadCloser, error) {
	source, err := capture.Open(path)
	if err == nil {
		source.Close()
		return nil, errors.New("the file has become a capture")
	}
	text := (*capture.TextError)(nil)
	if !errors.As(err, &text) {
		return nil, err
	}
	b := bufio.NewReader(text)
	if first, _ := b.Peek(1); !bytes.Equal(first, []byte("<")) {
		return &opened{b, text}, nil
	}
	inside, err := report.Records(b)
	if err != nil {
		text.Close()
		return nil, err
	}
	return &opened{inside, text}, nil
}

// opened is a text that has been opened.
type opened struct {
	io.Reader
	io.Closer
}

// openRecords opens the captures that the command line names, or JSON lines; one of the results is
// nil. See openNamed.
func (f *flags) openRecords(cmd *cobra.Command, paths []string, stderr io.Writer) (source *capture.Merged, l *lines, failed, err error) {
	source, failed, err = f.openNamed(cmd, paths, stderr)
	texts, others := capture.Texts(errors.Join(failed, err))
	if texts == nil {
		return source, nil, failed, err
	}
	if source != nil {
		source.Close()
		return nil, nil, nil, fmt.Errorf("%s has records and %s is a capture; name either captures or records", printable(texts[0].Name), printable(source.Paths()[0]))
	}
	if others != nil {
		return nil, nil, nil, others
	}
	l, err = openLines(cmd.Context(), texts)
	if err != nil {
		return nil, nil, nil, err
	}
	return nil, l, nil, nil
}

// needsPackets returns the error for a command that needs the packets of a capture, if some of its
// inputs are JSON lines; otherwise it returns err. Failed is the error of inputs that could not be
// opened.
func needsPackets(command string, err, failed error) error {
	texts, _ := capture.Texts(errors.Join(err, failed))
	if texts == nil {
		return err
	}
	return fmt.Errorf("%s needs the packets of a capture, and %s is text, such as records that rdmadump wrote as JSON", command, printable(texts[0].Name))
}

// refuseAnalysis returns an error if a flag of the command changes the analysis of packets, which
// is already done for records.
func refuseAnalysis(cmd *cobra.Command, l *lines) error {
	for _, name := range []string{"unanswered-after", "rpc"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s needs the packets of a capture, and %s has records that rdmadump wrote as JSON", name, l.name())
		}
	}
	return nil
}

// written says how many records of a type a capture had, according to its summary.
var written = map[string]func(*record.Summary) int64{
	"transaction": func(s *record.Summary) (n int64) {
		for _, of := range s.Transactions {
			n += of
		}
		return n
	},
	"connection": func(s *record.Summary) int64 { return int64(s.Connections) },
	"finding": func(s *record.Summary) (n int64) {
		for _, of := range s.Findings {
			n += of
		}
		return n
	},
}

// check returns an error if a view needs more than the records have.
func (l *lines) check(set *settings, h *dissect.Handler) error {
	name := set.view.name
	switch {
	case set.view.fields == query.Packets:
		return fmt.Errorf("%s needs the packets of a capture, and %s has records that rdmadump wrote as JSON", name, l.name())
	case name == "files":
		return fmt.Errorf("files needs the packets of a capture, which show how many bytes of each file were read and written, and %s has records that rdmadump wrote as JSON; stats --by file sums them up", l.name())
	case set.decoded:
		return fmt.Errorf("the fields of NFS arguments and results (nfs.) need the packets of a capture, and %s has records that rdmadump wrote as JSON; rpc.call and rpc.reply are in records that were written with --rpc", l.name())
	}
	if name == "check" && l.Count("transaction") == 0 { // It counts the RPCs that stalled, if there are records of them.
		h.Transaction = nil
	}
	for _, need := range []struct {
		kind string
		used bool
	}{{"transaction", h.Transaction != nil}, {"connection", h.Connection != nil}, {"finding", h.Finding != nil}, {"rdma_operation", h.Operation != nil && name == "rdma"}} {
		if !need.used || l.Count(need.kind) > 0 {
			continue
		}
		if s, count := l.Summary(), written[need.kind]; s != nil && (count == nil && s.RDMA == 0 || count != nil && count(s) == 0) {
			continue
		}
		return fmt.Errorf("%s needs %s records, and %s has none (only %s); rdmadump export --format records writes all records of a capture", name, need.kind, l.name(), list(l.Kinds(), "and"))
	}
	if l.Summary() == nil && slices.Contains(needSummary, name) {
		return fmt.Errorf("%s needs the summary, which is the last record that rdmadump writes, and %s has none", name, l.name())
	}
	return nil
}

// needSummary lists the views that cannot do without the summary.
var needSummary = []string{"overview", "check", "stats", "compare", "report"}

// partial returns a message if the input lacks records of its capture, or nothing.
func (l *lines) partial(h *dissect.Handler) string {
	s := l.Summary()
	if s == nil {
		return l.name() + " has no summary record, so it may be incomplete"
	}
	var missing []string
	for _, have := range []struct {
		kind string
		used bool
	}{{"transaction", h.Transaction != nil}, {"connection", h.Connection != nil}, {"finding", h.Finding != nil}} {
		if n, of := l.Count(have.kind), written[have.kind](s); have.used && n < of {
			missing = append(missing, fmt.Sprintf("%d of %s", n, number(of, have.kind)))
		}
	}
	if missing == nil {
		return ""
	}
	return fmt.Sprintf("%s has only %s of its capture", l.name(), list(missing, "and"))
}

// read passes the records to the handlers of a view.
func (l *lines) read(ctx context.Context, h dissect.Handler) (*record.Summary, error) {
	var summary *record.Summary
	if s := l.Summary(); s != nil {
		summary = s
		if first, known := s.First.Get(); known && h.Begin != nil {
			if err := h.Begin(first); err != nil {
				return summary, err
			}
		}
	}
	return summary, l.Run(ctx, records.Handler{Transaction: h.Transaction, Connection: h.Connection, Finding: h.Finding, Operation: h.Operation})
}
