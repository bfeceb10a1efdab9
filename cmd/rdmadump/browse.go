package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/browse"
	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/export"
	"github.com/rdmadump/rdmadump/index"
	"github.com/rdmadump/rdmadump/query"
	"github.com/rdmadump/rdmadump/render"
)

// browsing holds the values of the flags of browse.
type browsing struct {
	flags
	stdout, stderr io.Writer
}

// browseView describes the flags that browse supports.
var browseView = &view{
	name: "browse", fields: query.Transactions, filters: "RPCs (by the fields of transactions)",
	without: []string{"output", "jq", "field", "xid", "conn", "count", "from", "to", "width", "wide"},
}

func newBrowse(stdout, stderr io.Writer) *cobra.Command {
	b := &browsing{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "browse [flags] FILE...", Short: "Show RPCs, connections, findings and sums interactively: search, filter, open ladders and packets", Args: cobra.ArbitraryArgs,
		Long: `browse shows lists of RPCs, connections, findings and sums in the terminal. The first
rows appear at once, while the rest of the capture is still being read. Enter opens the
ladder diagram of an RPC, and then its packets with all fields and bytes. / searches,
& filters in the language of -Y, y copies, s saves, and ? explains all keys.

The records are kept in memory, compressed. What exceeds a quarter of --memory goes to a
temporary file, and the first line says so.

` + exitHelp,
		Example: `  rdmadump browse nfs.pcap
  rdmadump browse nfs.pcap -Y 'latency > 5ms'`,
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args) },
	}
	b.define(cmd.Flags(), browseView)
	return cmd
}

// theTerminal returns the terminal that browse uses. The error says what to do if there is none.
func (b *browsing) theTerminal(stdinIsData bool) (t browse.Terminal, done func(), err error) {
	out, ok := b.stdout.(*os.File)
	if !ok || terminalWidth(out) == 0 {
		return t, nil, errors.New("browse needs a terminal, and standard output is none; rdmadump FILE lists the same RPCs, and -o json writes them for other programs")
	}
	if name := os.Getenv("TERM"); name == "dumb" || name == "" {
		return t, nil, fmt.Errorf("browse needs a terminal that can move the cursor, and TERM is %q; set TERM to the name of your terminal, or use rdmadump FILE, which lists the same RPCs", name)
	}
	t = browse.Terminal{In: os.Stdin, Out: out, Environ: os.Environ()}
	if stdinIsData || terminalWidth(os.Stdin) == 0 {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return t, nil, fmt.Errorf("browse reads keys from the terminal, which cannot be opened: %w", err)
		}
		t.In = tty
		return t, func() { tty.Close() }, nil
	}
	return t, func() {}, nil
}

// run browses captures.
func (b *browsing) run(cmd *cobra.Command, paths []string) error {
	if err := browseView.check(cmd); err != nil {
		return err
	}
	set, err := b.parse(browseView, true)
	if err != nil {
		return err
	}
	terminal, done, err := b.theTerminal(slices.Contains(paths, "-"))
	if err != nil {
		return &status{exitUsage, err}
	}
	defer done()
	source, openErr, err := b.openNamed(cmd, paths, b.stderr)
	if err != nil {
		return err
	}
	defer source.Close()
	err = b.show(cmd.Context(), set, source, terminal)
	if err == nil && openErr != nil {
		err = &status{code: exitUsage}
	}
	return err
}

// show browses a source.
func (b *browsing) show(ctx context.Context, set *settings, source *capture.Merged, terminal browse.Terminal) error {
	o := set.dissection()
	debug.SetGCPercent(browseGarbage)
	x := index.New(index.Options{Memory: int64(set.memory) / 4})
	defer x.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make(chan struct{})
	var failed *capture.Panic
	go func() {
		defer close(read)
		defer func() {
			if v := recover(); v != nil {
				failed = &capture.Panic{Value: v, Stack: debug.Stack()}
				cancel()
			}
		}()
		x.Run(ctx, source, o)
	}()
	var typed []string
	for _, path := range source.Paths() {
		typed = append(typed, render.Shell(path))
	}
	options := browse.Options{
		Index: x, Name: strings.Join(source.Paths(), " "), Typed: strings.Join(typed, " "), Look: b.look.drawing(colored(b.color, b.stdout)), Dissect: o,
		Create: func(path string) (io.WriteCloser, error) { return createSaved(path, source.Paths()) },
	}
	if again, closed := reopening(source.Paths()); closed == "" {
		options.Open = again
		options.SavePackets = func(ctx context.Context, path string, ids map[int64]bool) (string, error) {
			return savePackets(ctx, path, source.Paths(), o, ids)
		}
	} else {
		options.Closed = closed
	}
	m := browse.New(options)
	if b.filter != "" {
		m.Filter(b.filter)
	}
	err := browse.Run(ctx, m, terminal)
	cancel()
	<-read
	m.Close()
	if failed != nil {
		return failed
	}
	if text := m.Printed(); text != "" {
		io.WriteString(b.stdout, text)
	}
	if state := x.State(); err == nil && state.Err != nil && !errors.Is(state.Err, context.Canceled) {
		return &status{exitBroken, damaged(state.Err)}
	}
	return err
}

// browseGarbage is the percentage by which the heap of browse may grow before it is collected. Its
// live memory is larger than that of other commands.
const browseGarbage = 60

// drawing returns the look of drawings on a terminal.
func (l *appearance) drawing(colored bool) render.Look {
	return render.Look{
		Colour: min(colors(colored), render.Colours16), Light: l.light(), Unicode: l.ascii == "false" || l.ascii == "auto" && utf8Terminal(),
		Times: render.Times(l.time),
	}
}

// reopening returns a function that opens captures once more, or says why they cannot be opened.
func reopening(paths []string) (open func(context.Context) (browse.Source, error), closed string) {
	for _, path := range paths {
		if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
			return nil, "packets are not shown, because a pipe cannot be read twice; save the capture to a file first"
		}
	}
	return func(ctx context.Context) (browse.Source, error) { return openUntil(ctx, paths, nil) }, ""
}

// createSaved creates a file that the user saves to. It gets its name only when it is complete.
func createSaved(path string, inputs []string) (io.WriteCloser, error) {
	f, err := create(path, inputs, nil)
	if err != nil {
		return nil, err
	}
	return savedFile{f}, nil
}

// savedFile is an outFile that Close completes.
type savedFile struct{ *outFile }

// Close gives the file its name.
func (f savedFile) Close() error { return f.done(nil) }

// savePackets writes the packets of RPCs to a pcapng file.
func savePackets(ctx context.Context, path string, paths []string, o dissect.Options, ids map[int64]bool) (string, error) {
	source, err := openUntil(ctx, paths, nil)
	if err != nil {
		return "", err
	}
	defer source.Close()
	out, err := create(path, paths, nil)
	if err != nil {
		return "", err
	}
	e := export.NewPackets(out, "rdmadump "+version())
	e.Wants = func(p *record.Packet) (bool, error) {
		id, known := p.Transaction.Get()
		return known && ids[id], nil
	}
	o.Live = false
	if _, err = dissect.New(e.Handler(), o).Run(ctx, source); errors.As(err, new(*capture.BrokenError)) {
		err = nil // Everything before was saved.
	}
	if err == nil {
		err = e.Flush()
	}
	if err = out.done(err); err != nil {
		return "", err
	}
	return e.Report.String(), nil
}
