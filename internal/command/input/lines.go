package input

import (
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
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/internal/records"
	"github.com/rdmadump/rdmadump/render"
)

// Lines is an input of JSON lines that rdmadump wrote earlier, in place of captures.
type Lines struct {
	*records.Source
	Names   []string // of the inputs, for messages
	Paths   []string // of the inputs
	spooled []string // temporary files
}

// Close removes temporary files.
func (l *Lines) Close() {
	for _, path := range l.spooled {
		os.Remove(path)
	}
}

// name returns the names of the inputs, for messages.
func (l *Lines) name() string { return render.Clean(strings.Join(l.Names, " ")) }

// openLines returns the JSON lines among inputs that are no captures. Standard input is copied to
// a temporary file, because records are read twice.
func openLines(ctx context.Context, texts []*capture.TextError) (l *Lines, err error) {
	l = &Lines{}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	var inputs []records.Input
	for _, text := range texts {
		path := text.Path
		l.Names, l.Paths = append(l.Names, text.Name), append(l.Paths, path)
		if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
			copied, err := copyInput(ctx, func() (io.ReadCloser, error) { return text, nil })
			if err != nil {
				return l, err
			}
			path, l.spooled = copied, append(l.spooled, copied)
		} else {
			text.Close()
		}
		inputs = append(inputs, records.Input{Name: render.Clean(text.Name), Open: func() (io.ReadCloser, error) { return openText(path) }})
	}
	l.Source, err = records.Scan(ctx, inputs...)
	return l, err
}

// openText opens a file of JSON lines, and decompresses it.
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
	return text, nil
}

// OpenRecords opens the captures that the command line names, or JSON lines; one of the results is
// nil. See openNamed.
func OpenRecords(cmd *cobra.Command, f *flags.Typed, paths []string, stderr io.Writer) (source *capture.Merged, l *Lines, failed, err error) {
	source, failed, err = OpenNamed(cmd, f, paths, stderr)
	texts, others := capture.Texts(errors.Join(failed, err))
	if texts == nil {
		return source, nil, failed, err
	}
	if source != nil {
		source.Close()
		return nil, nil, nil, fmt.Errorf("%s has records and %s is a capture; name either captures or records", render.Clean(texts[0].Name), render.Clean(source.Paths()[0]))
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

// NeedsPackets returns the error for a command that needs the packets of a capture, if some of its
// inputs are JSON lines; otherwise it returns err. Failed is the error of inputs that could not be
// opened.
func NeedsPackets(name string, err, failed error) error {
	texts, _ := capture.Texts(errors.Join(err, failed))
	if texts == nil {
		return err
	}
	return fmt.Errorf("%s needs the packets of a capture, and %s is text, such as records that rdmadump wrote as JSON", name, render.Clean(texts[0].Name))
}

// RefuseAnalysis returns an error if a flag of the command changes the analysis of packets, which
// is already done for records.
func RefuseAnalysis(cmd *cobra.Command, l *Lines) error {
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

// Check returns an error if a view needs more than the records have.
func (l *Lines) Check(set *flags.Settings, h *dissect.Handler) error {
	name := set.View.Name
	switch {
	case set.View.Fields == query.Packets:
		return fmt.Errorf("%s needs the packets of a capture, and %s has records that rdmadump wrote as JSON", name, l.name())
	case name == "files":
		return fmt.Errorf("files needs the packets of a capture, which show how many bytes of each file were read and written, and %s has records that rdmadump wrote as JSON; stats --by file sums them up", l.name())
	case set.Decoded:
		return fmt.Errorf("the fields of NFS arguments and results (nfs.) need the packets of a capture, and %s has records that rdmadump wrote as JSON; rpc.call and rpc.reply are in records that were written with --rpc", l.name())
	}
	if name == "check" && l.Count("transaction") == 0 { // It counts the RPCs that stalled, if there are records of them.
		h.Transaction = nil
	}
	for _, need := range []struct {
		kind string
		used bool
	}{{"transaction", h.Transaction != nil}, {"connection", h.Connection != nil}, {"finding", h.Finding != nil}, {"rdma_operation", h.Operation != nil && name == "rdma"}, {"task", h.Task != nil && name == "tasks"}} {
		if !need.used || l.Count(need.kind) > 0 {
			continue
		}
		if s, count := l.Summary(), written[need.kind]; s != nil && (count == nil && s.RDMA == 0 || count != nil && count(s) == 0) {
			continue
		}
		return fmt.Errorf("%s needs %s records, and %s has none (only %s); rdmadump export --format records writes all records of a capture", name, need.kind, l.name(), command.List(few(l.Kinds()), "and"))
	}
	if l.Summary() == nil && slices.Contains(needSummary, name) {
		return fmt.Errorf("%s needs the summary, which is the last record that rdmadump writes, and %s has none", name, l.name())
	}
	return nil
}

// needSummary lists the views that cannot do without the summary.
var needSummary = []string{"overview", "problems", "check", "stats", "compare", "report"}

// Partial returns a message if the input lacks records of its capture, or nothing.
func (l *Lines) Partial(h *dissect.Handler) string {
	s := l.Summary()
	if s == nil {
		return l.name() + " has no summary record, so it may be incomplete"
	}
	var missing []string
	for _, have := range []struct {
		kind, noun string
		used       bool
	}{{"transaction", "RPC", h.Transaction != nil}, {"connection", "connection", h.Connection != nil}, {"finding", "finding", h.Finding != nil}} {
		if n, of := l.Count(have.kind), written[have.kind](s); have.used && n < of {
			missing = append(missing, fmt.Sprintf("%d of %s", n, record.Plural(of, have.noun)))
		}
	}
	if missing == nil {
		return ""
	}
	return fmt.Sprintf("%s has only %s of its capture", l.name(), command.List(missing, "and"))
}

// Read passes the records to the handlers of a view.
func (l *Lines) Read(ctx context.Context, h dissect.Handler) (*record.Summary, error) {
	var summary *record.Summary
	if s := l.Summary(); s != nil {
		summary = s
		if first, known := s.First.Get(); known && h.Begin != nil {
			if err := h.Begin(first); err != nil {
				return summary, err
			}
		}
	}
	return summary, l.Run(ctx, records.Handler{Transaction: h.Transaction, Connection: h.Connection, Finding: h.Finding, Operation: h.Operation, Task: h.Task})
}
