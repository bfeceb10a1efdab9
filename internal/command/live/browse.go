package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/browse"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/command/show"
	"github.com/rdmadump/rdmadump/internal/shell"
)

// browsing holds the values of the flags of browse.
type browsing struct {
	liveFlags
	stdout, stderr io.Writer
}

// browsed is what browse shows, and how.
type browsed struct {
	set    *flags.Settings
	names  []string                                                        // of the inputs
	read   func(ctx context.Context, x *browse.Reading, o dissect.Options) // reads the records
	open   func(context.Context) (browse.Source, error)                    // opens the packets once more; nil if that is not possible
	closed string                                                          // says why open is nil
	live   bool
}

// NewBrowse returns the command browse.
func NewBrowse(stdout, stderr io.Writer) *cobra.Command {
	b := &browsing{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use: "browse [flags] FILE... | -i IFACE | --follow FILE | -", Short: "Browse problems, RPCs, connections, files and operations interactively", Args: cobra.ArbitraryArgs,
		Long: `browse shows five lists in the terminal: problems, RPCs, connections, files and operations.
The first rows appear at once, while the rest of the capture is still being read. Enter
opens what the cursor is on: the evidence of a problem, the ladder of an RPC, and then
its packets with all fields and bytes. / searches, : filters in the language of -Y, y
copies the command line that shows the same, and ? lists the keys.

FILE is a capture, or JSON that rdmadump wrote. With -i, --follow or a pipe (-), browse
shows live traffic: lists grow while the cursor stays on its record, and on the last row
it follows the newest one.

The records are kept in memory, compressed. What exceeds a quarter of --memory goes to a
temporary file.

` + command.ExitHelp,
		Example: `  rdmadump browse nfs.pcap
  rdmadump browse nfs.pcap -Y 'latency > 5ms'
  rdmadump browse nfs.pcap --from 10:02 --to 10:03
  rdmadump browse --follow ring.pcap --keep 100000
  ibdump -d mlx5_0 -w - | rdmadump browse -`,
		RunE: func(cmd *cobra.Command, args []string) error { return b.run(cmd, args) },
	}
	b.DefineCommand(cmd, flags.BrowseView)
	return cmd
}

// theTerminal returns the terminal that browse uses. The error says what to do if there is none.
func (b *browsing) theTerminal(stdinIsData bool) (t browse.Terminal, done func(), err error) {
	out, ok := b.stdout.(*os.File)
	if !ok || command.TerminalWidth(out) == 0 {
		return t, nil, errors.New("browse needs a terminal, and standard output is none; rdmadump FILE lists the same RPCs, and -o json writes them for other programs")
	}
	if name := os.Getenv("TERM"); name == "dumb" || name == "" {
		return t, nil, fmt.Errorf("browse needs a terminal that can move the cursor, and TERM is %q; set TERM to the name of your terminal, or use rdmadump FILE, which lists the same RPCs", name)
	}
	t = browse.Terminal{In: os.Stdin, Out: out, Environ: os.Environ()}
	if stdinIsData || command.TerminalWidth(os.Stdin) == 0 {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return t, nil, fmt.Errorf("browse reads keys from the terminal, which cannot be opened: %w", err)
		}
		t.In = tty
		return t, func() { tty.Close() }, nil
	}
	return t, func() {}, nil
}

// run browses captures, records or live traffic.
func (b *browsing) run(cmd *cobra.Command, paths []string) error {
	if err := flags.BrowseView.Check(cmd); err != nil {
		return err
	}
	if b.Interface != "" || b.Follow != "" {
		if err := b.oneSource(paths); err != nil {
			return err
		}
	}
	if b.Keep < 0 {
		return fmt.Errorf("--keep %d: must not be negative", b.Keep)
	}
	set, err := b.Parse(cmd.Context(), flags.BrowseView, true)
	if err != nil {
		return err
	}
	isLive := b.Interface != "" || b.Follow != "" || slices.Equal(paths, []string{"-"}) && !command.Regular(os.Stdin)
	if b.Write != "" && !isLive {
		return errors.New("-w saves live packets; it needs -i INTERFACE or a pipe")
	}
	terminal, done, err := b.theTerminal(slices.Contains(paths, "-"))
	if err != nil {
		return err
	}
	defer done()
	if isLive {
		if err := cmp.Or(refusePoints(cmd), set.RefuseEnd("live packets")); err != nil {
			return err
		}
		return b.runLive(cmd, set, paths, terminal)
	}
	source, l, openErr, err := input.OpenRecords(cmd, &b.Typed, paths, b.stderr)
	if err != nil {
		return err
	}
	what := &browsed{set: set}
	if l != nil {
		defer l.Close()
		if err := cmp.Or(input.RefuseAnalysis(cmd, l), set.RefuseEnd("records")); err != nil {
			return err
		}
		what.names, what.closed = l.Names, "records have no packets; browse the capture to see them"
		what.read = func(ctx context.Context, x *browse.Reading, _ dissect.Options) { x.Finish(l.Read(ctx, x.Handler())) }
	} else {
		what.names = source.Paths()
		what.open, what.closed = reopening(source.Paths())
		in, joined, err := input.Join(cmd.Context(), &b.Typed, source, set, b.stderr)
		if err != nil {
			return err
		}
		defer in.Close()
		if joined != nil {
			what.open = func(ctx context.Context) (browse.Source, error) { return joined.Again(ctx) }
		}
		what.read = func(ctx context.Context, x *browse.Reading, o dissect.Options) {
			if joined != nil {
				x.Network = func() []*record.Network { return input.NetworkRecords(joined) }
			}
			x.Run(ctx, in, o)
		}
	}
	if err = b.show(cmd.Context(), what, terminal); err == nil && openErr != nil {
		err = &command.Status{Code: command.ExitUsage}
	}
	return err
}

// runLive browses live traffic.
func (b *browsing) runLive(cmd *cobra.Command, set *flags.Settings, args []string, terminal browse.Terminal) error {
	if b.Write == "-" || b.Write != "" && b.Follow != "" {
		return errors.New("-w saves the packets of an interface or a pipe to a FILE")
	}
	if err := b.refuseOutputs(args, b.stdout, b.stderr); err != nil {
		return err
	}
	saved, err := b.saver(&show.Runner{Stdout: b.stdout})
	if err != nil {
		return err
	}
	var again *os.File // of the saved packets, opened before the right to is dropped
	if saved != nil {
		if again, err = os.Open(b.Write); err != nil {
			return err
		}
		defer again.Close()
		defer saved.close()
	}
	source, err := b.liveFlags.open(cmd.Context(), args, b.stderr)
	if err == nil && saved != nil {
		err = saved.begin()
	}
	if err != nil {
		return err
	}
	defer source.Close()
	what := &browsed{set: set, live: true, names: []string{b.Interface + b.Follow}}
	if len(args) > 0 {
		what.names = args
	}
	what.read = func(ctx context.Context, x *browse.Reading, o dissect.Options) {
		o.Live, o.Linger = true, show.LiveLinger
		x.Run(ctx, &limited{Source: source, saved: saved}, o)
	}
	what.closed = "packets are not kept; -w FILE saves them, and then they can be shown"
	switch {
	case saved != nil:
		what.open = func(context.Context) (browse.Source, error) {
			if err := saved.flush(); err != nil {
				return nil, err
			}
			info, err := again.Stat()
			if err != nil {
				return nil, err
			}
			return capture.NewFile(b.Write, io.NewSectionReader(again, 0, info.Size()))
		}
	case b.Follow != "":
		what.closed = "the packets of this file cannot be shown, because it was replaced by another one"
		if first, err := os.Stat(b.Follow); err == nil && capture.Ring(b.Follow) == b.Follow {
			what.open = func(ctx context.Context) (browse.Source, error) {
				if now, err := os.Stat(b.Follow); err != nil || !os.SameFile(first, now) {
					return nil, errors.New(what.closed)
				}
				return input.OpenUntil(ctx, []string{b.Follow}, nil)
			}
		}
	}
	err = b.show(cmd.Context(), what, terminal)
	if saved != nil {
		if failed := saved.finish(); err == nil {
			err = failed
		}
	}
	return err
}

// show browses what read reads.
func (b *browsing) show(ctx context.Context, what *browsed, terminal browse.Terminal) error {
	set := what.set
	o := set.Dissection()
	o.Files, o.Ahead, o.OtherOperations = true, true, true
	if command.OwnProcess {
		debug.SetGCPercent(browseGarbage)
	}
	records := browse.NewReading(int64(set.Memory)/4, b.Keep)
	defer records.Close()
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
		what.read(ctx, records, o)
	}()
	var typed []string
	for _, path := range what.names {
		typed = append(typed, shell.File(path))
	}
	err := browse.Run(ctx, browse.New(ctx, browse.Options{
		Reading: records, Name: strings.Join(what.names, " "), Typed: strings.Join(typed, " "), Look: set.Look.Drawing(b.stdout), Dissect: o,
		Open: what.open, Closed: what.closed, Live: what.live, Filter: b.Filter,
	}), terminal)
	cancel()
	<-read
	if failed != nil {
		return failed
	}
	if broken := records.Err(); err == nil && broken != nil && !errors.Is(broken, context.Canceled) && !what.live {
		return command.Broken(command.Damaged(broken))
	}
	return err
}

// browseGarbage is the percentage by which the heap of browse may grow before it is collected. Its
// live memory is larger than that of other commands.
const browseGarbage = 100

// reopening returns a function that opens captures once more, or says why they cannot be opened.
func reopening(paths []string) (open func(context.Context) (browse.Source, error), closed string) {
	for _, path := range paths {
		if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
			return nil, "packets are not shown, because a pipe cannot be read twice; save the capture to a file first"
		}
	}
	return func(ctx context.Context) (browse.Source, error) { return input.OpenUntil(ctx, paths, nil) }, ""
}
