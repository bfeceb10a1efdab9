package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/points"
	"github.com/rdmadump/rdmadump/render"
)

// Capture points are recognized by reading all their packets twice. So the packets of an interface or a pipe are stored in
// a file until the capture ends. All files are opened before the process drops its privileges, and read without opening
// them again.

// standardInput is the name of standard input in messages, and of its capture point.
const standardInput = "standard input"

// isPipe reports whether an input can be read only once.
func isPipe(path string) bool {
	if path == "-" {
		return !regular(os.Stdin)
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// joins reports whether live has several inputs, of which an interface or a pipe is one.
func (l *liveFlags) joins(args []string) bool {
	return l.follow == "" && (l.iface != "" && len(args) > 0 || len(args) > 1 && slices.ContainsFunc(args, isPipe))
}

// liveInput is an interface or a pipe whose packets are stored.
type liveInput struct {
	name    string // of its capture point
	pipe    bool
	open    func(context.Context) (input, error)
	numbers map[int]uint32 // of the interfaces in the stored file, by their indexes in the input
	packets int64
	dropped uint64
}

// pointCapture stores the packets of live inputs until the capture ends, and then provides them together with the files of
// other capture points.
type pointCapture struct {
	*liveFlags
	until  limits
	stderr io.Writer
	live   []*liveInput
	files  []points.File // of all capture points; those without Held are the stored file
	stored *os.File
	where  string // describes the stored file
	named  []string
	remove func()
	end    context.CancelFunc // ends the capture

	finished bool // the stored file is complete

	mu      sync.Mutex
	w       *capture.Writer
	names   []string // of the interfaces in the stored file
	packets int64
	failed  error // nothing can be shown
	broken  error // the capture ended early
}

// runPoints captures packets, and shows them together with those of other capture points when the capture has ended.
func (l *liveFlags) runPoints(cmd *cobra.Command, args []string, r *runner) (err error) {
	c := &pointCapture{liveFlags: l, stderr: r.stderr}
	defer func() { err = errors.Join(err, c.close()) }()
	if c.until, err = l.limits(args); err != nil {
		return err
	}
	if err := c.refuse(args); err != nil {
		return err
	}
	viewing, over, release := phases(cmd.Context())
	defer release()
	if err := c.openInputs(cmd.Context(), args); err != nil {
		return err
	}
	if err := c.openStored(); err != nil {
		return err
	}
	if err := unprivileged(); err != nil && (l.iface != "" || os.Geteuid() == 0) {
		return err
	}
	if err := c.leaveOut(true); err != nil {
		return err
	}
	c.announce(r.view.name)
	c.capture(cmd.Context())
	over()
	if c.failed != nil {
		return c.failed
	}
	c.finish()
	c.report()
	r.openErr = c.leaveOut(false)
	in, joined, err := c.join(viewing, r.settings)
	if err != nil {
		return err
	}
	defer in.Close()
	r.joined, r.typed = joined, c.typedFiles()
	return r.run(viewing, &afterCapture{input: in, live: c})
}

// refuse returns an error for flags that do not fit the inputs.
func (c *pointCapture) refuse(args []string) error {
	if c.write == "-" {
		return errors.New("-w - writes packets in place of a view; with several inputs, name a FILE to save the packets")
	}
	if c.points == "off" {
		if err := c.refuseClock(false); err != nil {
			return err
		}
	}
	for flag, path := range map[string]string{"-w": c.write, "--write-baseline": c.accept} {
		if path != "" {
			if err := refuseInput(flag, path, args); err != nil {
				return err
			}
		}
	}
	return nil
}

// phases returns the context of the view after the capture. The first signal ends the capture and a second one the view; but if
// the capture ended without a signal, which the caller reports by calling over, the first one ends the view.
func phases(capturing context.Context) (viewing context.Context, over, release func()) {
	viewing, cancel := context.WithCancel(context.WithoutCancel(capturing))
	var ended atomic.Bool
	signals := make(chan os.Signal, 4)
	if ownProcess {
		signal.Notify(signals, endSignals()...)
	}
	go func() {
		for first := true; ; first = false {
			select {
			case <-signals:
				if !first || ended.Load() {
					cancel()
					signal.Reset(endSignals()...) // A further one ends the program even if it waits for another one that reads its output.
					return
				}
			case <-viewing.Done():
				return
			}
		}
	}()
	over = func() {
		if capturing.Err() == nil {
			ended.Store(true)
		}
	}
	release = func() {
		signal.Stop(signals)
		cancel()
	}
	return viewing, over, release
}

// openInputs opens the interface, the pipes and the files.
func (c *pointCapture) openInputs(ctx context.Context, args []string) error {
	if c.iface != "" {
		source, err := c.openInterface()
		if err != nil {
			return err
		}
		name := c.iface
		if slices.ContainsFunc(args, func(path string) bool { return filepath.Base(path) == name }) {
			name = "interface " + name
		}
		c.addLive(&liveInput{name: name, open: func(context.Context) (input, error) { return source, nil }})
	}
	var seen []os.FileInfo
	for _, path := range args {
		name, f := standardInput, os.Stdin
		if path != "-" {
			var err error
			if name = path; path == "" {
				return errors.New(`"": the name of a file is empty`)
			}
			if f, err = openBefore(ctx, path); err != nil {
				return fmt.Errorf("%s: %w", printable(path), cause(err))
			}
		}
		info, err := f.Stat()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", printable(name), cause(err))
		case info.IsDir():
			return fmt.Errorf("%s: is a directory", printable(name))
		case slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }):
			if !c.quiet {
				fmt.Fprintf(c.stderr, "rdmadump: %s is named twice and is read only once\n", printable(name))
			}
			continue
		}
		if seen = append(seen, info); info.Mode().IsRegular() {
			c.files = append(c.files, points.File{Path: path, Name: name, Held: f})
			c.named = append(c.named, printable(filepath.Base(name)))
			continue
		}
		c.addLive(&liveInput{name: filepath.Base(name), pipe: true, open: func(ctx context.Context) (input, error) {
			return capture.NewPipe(ctx, printable(name), f)
		}})
	}
	return nil
}

// openBefore opens a file. It returns an error if ctx ends first: to open a FIFO that no process writes to takes until one does.
func openBefore(ctx context.Context, path string) (f *os.File, err error) {
	opened := make(chan struct{})
	go func() {
		f, err = os.Open(path)
		close(opened)
	}()
	select {
	case <-opened:
		return f, err
	case <-ctx.Done():
		return nil, errors.New("interrupted before the input could be opened")
	}
}

// addLive adds a live input. The stored file takes the place of the first one among the files.
func (c *pointCapture) addLive(in *liveInput) {
	if len(c.live) == 0 {
		c.files = append(c.files, points.File{OfPoints: true})
	}
	if slices.ContainsFunc(c.live, func(other *liveInput) bool { return other.name == in.name }) {
		in.name = fmt.Sprintf("%s (input %d)", in.name, len(c.live)+1)
	}
	in.numbers = map[int]uint32{}
	c.live = append(c.live, in)
	c.named = append(c.named, printable(in.name))
}

// openStored creates the file that stores packets: that of -w, or a temporary file. If the system allows it, the temporary file
// is removed at once, so that nothing remains of it however the program ends.
func (c *pointCapture) openStored() (err error) {
	name, shown := c.write, printable(c.write)
	if name == "" {
		if c.stored, err = os.CreateTemp("", "rdmadump-*"); err != nil {
			return fmt.Errorf("%w; -w FILE selects another place for the packets", err)
		}
		name, shown = c.stored.Name(), "the temporary file"
		c.where = "a temporary file in " + printable(filepath.Dir(name))
		if os.Remove(name) != nil {
			c.remove = func() { os.Remove(name) }
		}
	} else {
		if c.stored, err = os.Create(name); err != nil {
			return fmt.Errorf("-w %s: %w", name, cause(err))
		}
		if c.where = shown; !regular(c.stored) {
			return fmt.Errorf("-w %s: must be a regular file, because the packets are read again when the capture has ended", shown)
		}
	}
	c.w = capture.NewWriter(c.stored)
	at := slices.IndexFunc(c.files, func(f points.File) bool { return f.Held == nil })
	c.files[at].Path, c.files[at].Name, c.files[at].Held = name, shown, c.stored
	return nil
}

// leaveOut checks that the files are captures, and returns the error of the first one that is none. Before the capture, an empty
// file counts as one that is still written. After the capture, files that are no captures are reported and left out.
func (c *pointCapture) leaveOut(before bool) (failed error) {
	kept := c.files[:0:0]
	for _, f := range c.files {
		info, err := f.Held.Stat()
		if err == nil && !f.OfPoints && (!before || info.Size() > 0) {
			var opened *capture.File
			if opened, err = capture.OpenHeld(printable(f.Name), f.Held); err == nil {
				opened.Close()
			}
		}
		if err == nil {
			kept = append(kept, f)
			continue
		}
		failed = err
		if before {
			return needsPackets("live", err, nil)
		}
		fmt.Fprintf(c.stderr, "rdmadump: %v; rdmadump reads the other inputs\n", err)
	}
	c.files = kept
	return failed
}

// announce says on standard error what happens until the capture ends.
func (c *pointCapture) announce(view string) {
	if c.quiet {
		return
	}
	var names, pipes []string
	ends := []string{"Ctrl-C"}
	for _, in := range c.live {
		names = append(names, printable(in.name))
		if in.pipe {
			pipes = append(pipes, printable(in.name))
		}
	}
	if len(c.stop) > 0 {
		ends = append(ends, "a limit of -a")
	}
	if pipes != nil {
		ends = append(ends, "the end of "+list(pipes, "and"))
	}
	fmt.Fprintf(c.stderr, "rdmadump: capturing packets of %s; they are stored in %s\n", list(names, "and"), c.where)
	fmt.Fprintf(c.stderr, "rdmadump: %s ends the capture; then rdmadump shows the view %s of all capture points (%s)\n", list(ends, "or"), view, strings.Join(c.named, ", "))
}

// flushEvery is the time after which packets are in the stored file at the latest.
const flushEvery = time.Second

// capture stores packets until ctx ends, a limit is reached, all pipes have ended, or an input fails.
func (c *pointCapture) capture(ctx context.Context) {
	ctx, c.end = context.WithCancel(ctx)
	defer c.end()
	if c.until.duration > 0 {
		timed, cancel := context.WithTimeout(ctx, c.until.duration)
		defer cancel()
		ctx = timed
	}
	pipes := 0
	ended := make(chan *liveInput)
	for _, in := range c.live {
		if in.pipe {
			pipes++
		}
		go func() {
			c.read(ctx, in)
			ended <- in
		}()
	}
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	for left := len(c.live); left > 0; {
		select {
		case in := <-ended:
			left--
			if in.pipe {
				pipes--
			}
			if !in.pipe || pipes == 0 {
				c.end()
			}
		case <-flush.C:
			c.mu.Lock()
			err := c.w.Flush()
			c.mu.Unlock()
			if err != nil {
				c.fail(nil, c.unwritten(err))
			}
		}
	}
}

// unwritten returns the error for packets that could not be stored.
func (c *pointCapture) unwritten(err error) error {
	return fmt.Errorf("storing packets in %s failed: %w", c.where, cause(err))
}

// finish completes the stored file.
func (c *pointCapture) finish() {
	if c.finished = true; c.w != nil {
		if err := c.w.Finish(); err != nil {
			c.fail(nil, c.unwritten(err))
		}
	}
}

// fail notes an error, and ends the capture. Broken is an error after which the packets before it are shown.
func (c *pointCapture) fail(failed, broken error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, failed)
	if c.broken == nil || broken == nil || c.broken.Error() != broken.Error() {
		c.broken = errors.Join(c.broken, broken)
	}
	c.end()
}

// read stores the packets of an input.
func (c *pointCapture) read(ctx context.Context, in *liveInput) {
	defer func() {
		if v := recover(); v != nil {
			c.fail(&capture.Panic{Value: v, Stack: debug.Stack()}, nil)
		}
	}()
	source, err := in.open(ctx)
	if err != nil {
		if ctx.Err() == nil { // otherwise the capture ended before the first packet
			c.fail(needsPackets("live", err, nil), nil)
		}
		return
	}
	defer source.Close()
	var b capture.Batch
	defer b.Release()
	for {
		if err = source.ReadBatch(ctx, &b); err != nil {
			break
		}
		if err = c.store(in, &b); err != nil {
			break
		}
	}
	in.dropped = source.Dropped()
	if err != io.EOF {
		c.fail(nil, err)
	}
}

// store stores the packets of a batch. It returns io.EOF at a limit.
func (c *pointCapture) store(in *liveInput, b *capture.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Frames {
		if c.reached() {
			c.end()
			return io.EOF
		}
		f := &b.Frames[i]
		if err := c.w.Packet(c.number(in, f), f.Time, f.Data, f.Length, ""); err != nil {
			return c.unwritten(err)
		}
		c.packets++
		in.packets++
	}
	if c.reached() {
		c.end()
	}
	return nil
}

// reached reports whether a limit is reached.
func (c *pointCapture) reached() bool {
	return c.until.packets > 0 && c.packets >= c.until.packets || c.until.bytes > 0 && c.w.Size() >= c.until.bytes
}

// number returns the number of the interface in the stored file that a packet of an input belongs to.
func (c *pointCapture) number(in *liveInput, f *capture.Frame) uint32 {
	origin := capture.Origin{LinkType: f.LinkType, Digits: 9}
	if f.From != nil {
		origin = *f.From
	}
	n, known := in.numbers[origin.Index]
	if known {
		return n
	}
	name := in.name
	if len(in.numbers) > 0 {
		if name = fmt.Sprintf("%s (%s)", in.name, origin.Name); origin.Name == "" || slices.Contains(c.names, name) {
			name = fmt.Sprintf("%s (interface %d)", in.name, origin.Index)
		}
	}
	origin.Name = name
	n = c.w.Interface(&origin)
	in.numbers[origin.Index] = n
	c.names = append(c.names, name)
	return n
}

// report says how many packets were captured.
func (c *pointCapture) report() {
	if c.quiet {
		return
	}
	var parts []string
	for _, in := range c.live {
		parts = append(parts, fmt.Sprintf("%s of %s", number(in.packets, "packet"), printable(in.name)))
	}
	fmt.Fprintf(c.stderr, "rdmadump: the capture has ended with %s\n", list(parts, "and"))
}

// join returns the source of all capture points, or the merged packets if there is only one point.
func (c *pointCapture) join(ctx context.Context, s *settings) (input, *points.Source, error) {
	if c.points != "off" {
		joined, err := c.pointsOf(ctx, c.files, c.stderr)
		if err != nil && ctx.Err() == nil && c.clock != "" { // The capture cannot be repeated, so it is shown nevertheless.
			fmt.Fprintf(c.stderr, "rdmadump: %v\n", err)
			c.clock = ""
			joined, err = c.pointsOf(ctx, c.files, c.stderr)
		}
		if s.atPoints = pointNames(joined); joined != nil {
			return joined, joined, nil
		}
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	var parts []capture.Part
	for _, f := range c.files {
		if !f.OfPoints {
			parts = append(parts, capture.Part{Path: f.Path, Name: f.Name, Held: f.Held, Take: func(*capture.Frame) bool { return true }})
			continue
		}
		for _, name := range c.names {
			parts = append(parts, capture.Part{Path: f.Path, Name: f.Name, Held: f.Held, Take: func(f *capture.Frame) bool { return f.From != nil && f.From.Name == name }})
		}
	}
	merged, err := capture.OpenParts(ctx, parts)
	if err != nil {
		return nil, nil, err
	}
	merged.CountAcross()
	return merged, nil, nil
}

// typedFiles returns the files that show the same capture again, for suggested commands.
func (c *pointCapture) typedFiles() string {
	var words []string
	for _, f := range c.files {
		switch {
		case !f.OfPoints && f.Path != "-":
			words = append(words, render.Shell(f.Path))
		case f.OfPoints && c.write != "":
			words = append(words, render.Shell(c.write))
		default:
			words = append(words, "FILE")
		}
	}
	return strings.Join(words, " ")
}

// close closes the files, and completes the stored one.
func (c *pointCapture) close() error {
	var err error
	if c.w != nil && !c.finished {
		err = c.w.Finish()
	}
	for _, f := range c.files {
		if f.Held != nil && f.Held != os.Stdin {
			f.Held.Close()
		}
	}
	if c.remove != nil {
		c.remove()
	}
	return err
}

// afterCapture is the source of all packets after the capture has ended.
type afterCapture struct {
	input
	live *pointCapture
}

// ReadBatch returns the next packets, and at their end the error that ended the capture early.
func (a *afterCapture) ReadBatch(ctx context.Context, b *capture.Batch) error {
	err := a.input.ReadBatch(ctx, b)
	if err != nil && ctx.Err() == nil && a.live.broken != nil { // What could not be stored may also have damaged the stored file.
		return a.live.broken
	}
	return err
}

// Dropped returns the number of packets that the files and the kernel report as dropped.
func (a *afterCapture) Dropped() uint64 {
	n := a.input.Dropped()
	for _, in := range a.live.live {
		n += in.dropped
	}
	return n
}
