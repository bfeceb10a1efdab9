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
	"github.com/rdmadump/rdmadump/internal/points"
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
	index   int
	numbers map[int]uint32 // of the interfaces in the stored file, by their indexes in the input
	origins []storedOrigin
	packets int64
	dropped uint64
}

// storedOrigin is an interface of an input, with its number in the stored file.
type storedOrigin struct {
	capture.Origin
	number uint32
}

// pointCapture stores the packets of live inputs until the capture ends, and then provides them together with the files of
// other capture points.
type pointCapture struct {
	*liveFlags
	until  limits
	stderr io.Writer
	live   []*liveInput
	files  []points.File // of all capture points; those without Held are the stored file
	stored *laterFile
	where  string // describes the stored file
	named  []string
	remove func()
	end    context.CancelFunc // ends the capture

	finished bool // the stored file is complete

	mu      sync.Mutex
	w       *capture.Writer // nil before the capture
	names   []string        // of the interfaces in the stored file
	of      []int           // indexes of the inputs that these interfaces belong to
	packets int64
	panic   error   // of the program; nothing can be shown
	broken  []error // of inputs, and of storing; the packets before them are shown
	partly  bool    // not all packets could be stored
}

// runPoints captures packets, and shows them together with those of other capture points when the capture has ended.
func (l *liveFlags) runPoints(cmd *cobra.Command, args []string, r *runner) (err error) {
	c := &pointCapture{liveFlags: l, stderr: r.stderr}
	defer func() { err = errors.Join(err, c.close()) }()
	if c.until, err = l.limits(args); err != nil {
		return err
	}
	if err := c.refuse(); err != nil {
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
	if r.accepted, err = c.openAccepted(); err != nil {
		return err
	}
	if r.accepted != nil {
		defer r.accepted.Close()
	}
	if err := unprivileged(); err != nil && (l.iface != "" || os.Geteuid() == 0) {
		return err
	}
	if err := c.leaveOut(true); err != nil {
		return err
	}
	if err := c.stored.begin(); err != nil {
		return err
	}
	c.w = capture.NewWriter(c.stored)
	c.announce(c.view)
	c.capture(cmd.Context())
	over()
	if c.panic != nil {
		return c.panic
	}
	c.finish()
	c.report()
	if r.openErr = c.leaveOut(false); len(c.files) == 0 {
		return errors.New(describe(errors.Join(c.broken...)))
	}
	in, joined, err := c.join(viewing, r.settings)
	if err != nil {
		return err
	}
	defer in.Close()
	r.joined, r.typed = joined, c.typedFiles()
	return r.run(viewing, &afterCapture{input: in, live: c})
}

// refuse returns an error for flags that do not fit the inputs.
func (c *pointCapture) refuse() error {
	if c.write == "-" {
		return errors.New("-w - writes packets in place of a view; with several inputs, name a FILE to save the packets")
	}
	if c.points == "off" {
		return c.refuseClock(false)
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
				say(c.stderr, "%s is named twice and is read only once", printable(name))
			}
			continue
		}
		if seen = append(seen, info); info.Mode().IsRegular() {
			c.files = append(c.files, points.File{Path: path, Name: name, Held: f})
			c.named = append(c.named, printable(filepath.Base(name)))
			continue
		}
		point := filepath.Base(name)
		if slices.ContainsFunc(args, func(other string) bool { return other != path && filepath.Base(other) == point }) {
			point = name // The other one has the short name.
		}
		c.addLive(&liveInput{name: point, pipe: true, open: func(ctx context.Context) (input, error) {
			return capture.NewPipe(ctx, printable(name), &waiting{File: f, ctx: ctx, say: func() {
				if !c.quiet {
					say(c.stderr, "waiting for packets of %s: no process has written to it yet", printable(name))
				}
			}})
		}})
	}
	return nil
}

// waitMessage is the time after which a message says that live waits for a process that writes to a pipe.
const waitMessage = time.Second

// waiting is a pipe that possibly no process has opened for writing yet. Its reader waits until ctx ends.
type waiting struct {
	*os.File
	ctx     context.Context
	say     func() // says that it waits
	written bool
}

// Read reads bytes. The first call waits for a process that writes to the pipe.
func (w *waiting) Read(b []byte) (int, error) {
	for began, said := time.Now(), false; !w.written; {
		if w.ctx.Err() != nil {
			return 0, io.EOF
		}
		if w.written = arrived(w.File); !w.written && !said && time.Since(began) > waitMessage {
			said = true
			w.say()
		}
	}
	return w.File.Read(b)
}

// openBefore opens a file. It returns an error if ctx ends first, because to open a file may take long.
func openBefore(ctx context.Context, path string) (f *os.File, err error) {
	opened := make(chan struct{})
	go func() {
		f, err = openPipe(path)
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
	in.name, in.index = printable(in.name), len(c.live)
	if len(c.live) == 0 {
		c.files = append(c.files, points.File{OfPoints: true})
	}
	if slices.ContainsFunc(c.live, func(other *liveInput) bool { return other.name == in.name }) {
		in.name = fmt.Sprintf("%s (input %d)", in.name, len(c.live)+1)
	}
	in.numbers = map[int]uint32{}
	c.live = append(c.live, in)
	c.named = append(c.named, in.name)
}

// openStored opens the file that stores packets: that of -w, or a temporary file. If the system allows it, the temporary file
// is removed at once, so that nothing remains of it however the program ends. The file of -w keeps its contents until the
// inputs have been checked.
func (c *pointCapture) openStored() (err error) {
	name, shown := c.write, printable(c.write)
	if name == "" {
		f, err := os.CreateTemp("", "rdmadump-*")
		if err != nil {
			return fmt.Errorf("%w; -w FILE selects another place for the packets", err)
		}
		c.stored = &laterFile{File: f, flag: "the temporary file"}
		name, shown = c.stored.Name(), "the temporary file"
		c.where = "a temporary file in " + printable(filepath.Dir(name))
		if os.Remove(name) != nil {
			c.remove = func() { os.Remove(name) }
		}
	} else {
		if c.stored, err = openLater("-w", name); err != nil {
			return err
		}
		if c.where = shown; !regular(c.stored.File) {
			return fmt.Errorf("-w %s: must be a regular file, because the packets are read again when the capture has ended", shown)
		}
	}
	at := slices.IndexFunc(c.files, func(f points.File) bool { return f.Held == nil })
	c.files[at].Path, c.files[at].Name, c.files[at].Held = name, shown, c.stored.File
	return nil
}

// leaveOut checks that the files are captures, and returns the error of the first one that is none. Before the capture, a file
// that is empty or ends in its header counts as one that is still written. After the capture, files that are no captures are
// reported and left out, and so is the stored file if errors, which are reported at the end, left no packets in it.
func (c *pointCapture) leaveOut(before bool) (failed error) {
	kept := c.files[:0:0]
	for _, f := range c.files {
		if before && f.OfPoints {
			kept = append(kept, f)
			continue
		}
		info, err := f.Held.Stat()
		if err == nil && (!before || info.Size() > 0) {
			var opened *capture.File
			if opened, err = capture.OpenHeld(printable(f.Name), f.Held); err == nil {
				opened.Close()
			}
		}
		stillWritten := before && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF))
		switch {
		case f.OfPoints && len(c.broken) > 0 && (err != nil || c.packets == 0):
		case err == nil || stillWritten:
			kept = append(kept, f)
		case before:
			return needsPackets("live", err, nil)
		default:
			failed = err
			say(c.stderr, "%v; rdmadump reads the other inputs", err)
		}
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
		names = append(names, in.name)
		if in.pipe {
			pipes = append(pipes, in.name)
		}
	}
	if len(c.stop) > 0 {
		ends = append(ends, "a limit of -a")
	}
	if pipes != nil {
		ends = append(ends, "the end of "+list(pipes, "and"))
	}
	say(c.stderr, "capturing packets of %s; they are stored in %s", list(names, "and"), c.where)
	say(c.stderr, "%s ends the capture; then rdmadump shows the view %s of all capture points (%s)", list(ends, "or"), view, strings.Join(c.named, ", "))
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
				c.unstored(err)
			}
		}
	}
}

// unstored notes the error of storing packets, and ends the capture.
func (c *pointCapture) unstored(err error) {
	c.fail(fmt.Errorf("storing packets in %s failed: %w", c.where, cause(err)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partly = true
	c.end()
}

// finish completes the stored file.
func (c *pointCapture) finish() {
	if c.finished = true; c.w != nil {
		if err := c.w.Finish(); err != nil {
			c.unstored(err)
		}
	}
}

// fail notes an error. The packets before it are shown.
func (c *pointCapture) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.broken, func(other error) bool { return other.Error() == err.Error() }) {
		c.broken = append(c.broken, err)
	}
}

// read stores the packets of an input.
func (c *pointCapture) read(ctx context.Context, in *liveInput) {
	defer func() {
		if v := recover(); v != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.panic = &capture.Panic{Value: v, Stack: debug.Stack()}
			c.end()
		}
	}()
	source, err := in.open(ctx)
	if err != nil {
		if ctx.Err() == nil { // otherwise the capture ended before the first packet
			err = needsPackets("live", err, nil)
			c.fail(err)
			c.mu.Lock()
			defer c.mu.Unlock()
			say(c.stderr, "%v; rdmadump leaves this input out", err)
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
		if failed := c.store(in, &b); failed != nil {
			c.unstored(failed)
		}
	}
	in.dropped = source.Dropped()
	if err != io.EOF {
		c.fail(err)
	}
}

// store stores the packets of a batch, until a limit is reached. Then it ends the capture.
func (c *pointCapture) store(in *liveInput, b *capture.Batch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Frames {
		if c.reached() {
			c.end()
			return nil
		}
		f := &b.Frames[i]
		if err := c.w.Packet(c.number(in, f), f.Time, f.Data, f.Length, ""); err != nil {
			return err
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
	n, known = in.earlier(&origin)
	if !known {
		name := in.name
		if len(in.origins) > 0 {
			name = fmt.Sprintf("%s (%s)", in.name, printable(origin.Name))
			if origin.Name == "" || len(name) > maxName || slices.Contains(c.names, name) {
				name = fmt.Sprintf("%s (interface %d)", in.name, origin.Index)
			}
		}
		stored := origin
		stored.Name = name
		n = c.w.Interface(&stored)
		c.names = append(c.names, name)
		c.of = append(c.of, in.index)
		in.origins = append(in.origins, storedOrigin{origin, n})
	}
	in.numbers[origin.Index] = n
	return n
}

// maxName limits the name of a capture point in bytes.
const maxName = 256

// earlier returns the number of the interface that an earlier section of the input described, if it is the same one: it has the
// same name, or the same place in its section if it has no name, or if other interfaces have that name.
func (in *liveInput) earlier(o *capture.Origin) (number uint32, known bool) {
	var alike []storedOrigin
	for _, other := range in.origins {
		if other.Name == o.Name && other.LinkType == o.LinkType && other.Digits == o.Digits && other.Section < o.Section {
			alike = append(alike, other)
		}
	}
	for _, other := range alike {
		if other.InSection == o.InSection || len(alike) == 1 && o.Name != "" {
			return other.number, true
		}
	}
	return 0, false
}

// report says how many packets were captured.
func (c *pointCapture) report() {
	if c.quiet {
		return
	}
	var parts []string
	for _, in := range c.live {
		parts = append(parts, fmt.Sprintf("%s of %s", number(in.packets, "packet"), in.name))
	}
	missing := ""
	if c.partly {
		missing = "; not all of them could be stored"
	}
	say(c.stderr, "the capture has ended with %s%s", list(parts, "and"), missing)
}

// join returns the source of all capture points, or the merged packets if there is only one point.
func (c *pointCapture) join(ctx context.Context, s *settings) (input, *points.Source, error) {
	if c.points != "off" {
		joined, err := c.pointsOf(ctx, c.files, c.stderr)
		if err != nil && ctx.Err() == nil && c.clock != "" { // The capture cannot be repeated, so it is shown nevertheless.
			say(c.stderr, "%v", err)
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
		for _, in := range c.live { // Each input has an order of its own.
			parts = append(parts, capture.Part{Path: f.Path, Name: f.Name, Held: f.Held, Take: func(f *capture.Frame) bool { return c.inputOf(f) == in.index }})
		}
	}
	merged, err := capture.OpenParts(ctx, parts)
	if err != nil {
		return nil, nil, err
	}
	merged.CountAcross()
	return merged, nil, nil
}

// inputOf returns the index of the input that a stored packet belongs to. Interfaces have the numbers that number gave them,
// except that an interface with times before 1970 is described twice: then the order of packets may differ, but none is left out.
func (c *pointCapture) inputOf(f *capture.Frame) int {
	if len(c.of) == 0 || f.From == nil {
		return 0
	}
	return c.of[min(f.From.Index, len(c.of)-1)]
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
	if c.stored != nil {
		c.stored.Close()
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
	if err != nil && ctx.Err() == nil && len(a.live.broken) > 0 { // What could not be stored may also have damaged the stored file.
		return errors.Join(a.live.broken...)
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
