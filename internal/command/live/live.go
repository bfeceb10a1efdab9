// Package live has the commands about live traffic: live, interfaces, and browse, which also shows captures.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/input"
	"github.com/rdmadump/rdmadump/internal/command/show"
	"github.com/rdmadump/rdmadump/internal/shell"
	"github.com/rdmadump/rdmadump/render"
)

// liveFlags are the flags of the commands that read live traffic.
type liveFlags struct{ flags.Typed }

// NewLive returns the command live.
func NewLive(stdout, stderr io.Writer) *cobra.Command {
	l := new(liveFlags)
	cmd := &cobra.Command{
		Use:   "live -i IFACE | - | --follow FILE",
		Short: "Capture live traffic and show it in any of the views",
		Long: `live shows records while packets arrive: from a network interface (-i, Linux only),
from a file that is still being written (--follow), or from a pipe:

  ibdump -d mlx5_0 -w - | rdmadump live -
  tcpdump -i mlx5_0 -w - | rdmadump live -

The traffic of a hardware RDMA device bypasses the network interface, so capture it
with one of the pipes. Ctrl-C ends the capture and prints the summary.

On a terminal, the tables of stats, overview, connections, files and rates are shown in
place and change once a second. With -o json, stats, overview, connections and rates
write a record of type rate for each second (for stats and rates: --every) as soon as it
is over: for each operation, for each connection, or for all RPCs. An RPC that gets no
Reply counts in the second in which its connection ends. The records of the view itself
follow at the end.

With an interface or a pipe, rdmadump drops root, groups and capabilities before it
reads the first packet, and continues as the user who called sudo, or as nobody. With
--follow it keeps the user, who needs only the right to read the file. To capture
without root, run this once: setcap cap_net_raw+ep rdmadump

` + command.ExitHelp,
		Example: `  rdmadump live -i eth0 -w saved.pcapng -a duration:60
  rdmadump live -i eth0 --view check
  rdmadump live --follow /var/tmp/ring.pcap -o json
  rdmadump live --follow /var/tmp/ring.pcap --export tables --partition host=node7`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args, stdout, stderr) },
	}
	l.DefineCommand(cmd, flags.Views...)
	return cmd
}

// limits holds the values of -a; 0 means no limit.
type limits struct {
	duration time.Duration
	packets  int64
	bytes    int64
}

// shownLater says when views show records that need the end of a connection or of the capture.
var shownLater = map[string]string{
	"files": "the table is shown when the capture ends", "stats": "the table is shown when the capture ends", "overview": "the overview is shown when the capture ends",
	"connections": "a connection is shown when it ends",
}

// maxLimit is the largest number that -a accepts. As seconds it is more than a century.
const maxLimit = 1 << 32

// limits parses -a.
func (l *liveFlags) limits() (limits, error) {
	var out limits
	const forms = "must be duration:SECONDS, filesize:KB or packets:NUMBER"
	for _, s := range l.Stop {
		what, value, _ := strings.Cut(s, ":")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v > 0 && v <= maxLimit) {
			return out, fmt.Errorf("-a %s: %s", s, forms)
		}
		switch what {
		case "duration":
			out.duration = time.Duration(v * float64(time.Second))
		case "packets":
			out.packets = int64(math.Ceil(v))
		case "filesize":
			if l.Write == "" {
				return out, fmt.Errorf("-a %s: requires -w, because it limits the size of that file", s)
			}
			out.bytes = int64(v * 1000)
		default:
			return out, fmt.Errorf("-a %s: %s", s, forms)
		}
	}
	return out, nil
}

// refusePoints returns an error if a flag about capture points was given for live traffic.
func refusePoints(cmd *cobra.Command) error {
	for _, flag := range []string{"points", "clock"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("live traffic does not support --%s, because it has one source", flag)
		}
	}
	return nil
}

// run captures and shows live traffic.
func (l *liveFlags) run(cmd *cobra.Command, args []string, stdout, stderr io.Writer) error {
	name := l.LiveView
	if name == flags.RateView {
		name, l.Every = "stats", cmp.Or(l.Every, show.RefreshEvery)
	}
	v := flags.ViewNamed(name)
	if v == nil {
		return command.OneOf("--view", l.LiveView, flags.LiveNames()...)
	}
	if err := v.Check(cmd); err != nil {
		return err
	}
	if err := l.refuseOutputs(args, stdout, stderr); err != nil {
		return err
	}
	if err := refusePoints(cmd); err != nil {
		return err
	}
	stop, err := l.limits()
	if err != nil {
		return err
	}
	set, err := l.Parse(cmd.Context(), v, false)
	if err == nil {
		err = set.RefuseEnd("live packets")
	}
	if err != nil {
		return err
	}
	r := &show.Runner{Settings: set, Stdout: stdout, Stderr: stderr, Live: true}
	r.Typed = shell.File(cmp.Or(l.Follow, strings.TrimPrefix(l.Write, "-"), "FILE"))
	saved, err := l.saver(r)
	if err != nil {
		return err
	}
	tables, err := l.tables(cmd, set, cmp.Or(l.Interface, l.Follow, "stdin"), stderr)
	if err != nil {
		return err
	}
	if tables != nil {
		r.Also = append(r.Also, tables)
		if !cmd.Flags().Changed("view") {
			r.Stdout = io.Discard
		}
	}
	if saved != nil {
		defer saved.close()
	}
	ctx, served := context.WithCancel(cmd.Context())
	defer served()
	if err := l.serveMetrics(ctx, cmd, r); err != nil {
		return err
	}
	if stop.duration > 0 {
		timed, cancel := context.WithTimeout(ctx, stop.duration)
		defer cancel()
		ctx = timed
	}
	source, err := l.open(ctx, args, stderr)
	if err == nil && saved != nil {
		err = saved.begin()
	}
	if err != nil {
		return err
	}
	defer source.Close()
	if when := shownLater[v.Name]; when != "" && !l.Quiet && command.TerminalWidth(stdout) == 0 && !set.JSON && set.Columns == nil {
		command.Say(stderr, "%s; Ctrl-C ends the capture", when)
	}
	var packets input.Source = &limited{Source: source, stop: stop, saved: saved}
	if tables != nil {
		packets = tables.of(packets)
	}
	if saved == nil {
		return r.Run(ctx, packets)
	}
	r.Tick, r.Flush = saved.flush, saved.flush
	err = r.Run(ctx, packets)
	if failed := saved.finish(); err == nil {
		err = failed
	}
	return err
}

// limited is a source that ends at the limits of -a. It saves the packets that it returns.
type limited struct {
	input.Source
	stop    limits
	saved   *saver // nil if packets are not saved
	packets int64
	ended   bool
}

// ReadBatch returns the next packets within the limits, and io.EOF at a limit.
func (l *limited) ReadBatch(ctx context.Context, b *capture.Batch) error {
	if l.ended {
		b.Release()
		return l.end(io.EOF)
	}
	if err := l.Source.ReadBatch(ctx, b); err != nil {
		return l.end(err)
	}
	for i := range b.Frames {
		l.packets++
		l.ended = l.stop.packets > 0 && l.packets >= l.stop.packets
		if l.saved != nil {
			size, err := l.saved.write(&b.Frames[i])
			if err != nil {
				b.Release()
				return err
			}
			l.ended = l.ended || l.stop.bytes > 0 && size >= l.stop.bytes
		}
		if l.ended {
			b.Frames = b.Frames[:i+1]
			break
		}
	}
	return nil
}

// end returns the error with which reading ends: that of the packets that could not be stored, if there are any. Otherwise the summary would
// not tell of it.
func (l *limited) end(err error) error {
	if l.saved != nil && err == io.EOF {
		return cmp.Or(l.saved.flush(), err)
	}
	return err
}

// oneSource returns an error if there is more than one source of live traffic.
func (l *liveFlags) oneSource(args []string) error {
	sources := len(args)
	for _, flag := range []string{l.Interface, l.Follow} {
		if flag != "" {
			sources++
		}
	}
	if sources > 1 {
		return errors.New("more than one input: live traffic has one source, an interface, a pipe or a growing file. To compare capture points, save the packets at each of them, such as with tcpdump -w, and then name both files: rdmadump network A B")
	}
	return nil
}

// open opens the source of the live traffic.
func (l *liveFlags) open(ctx context.Context, args []string, stderr io.Writer) (input.Source, error) {
	if err := l.oneSource(args); err != nil {
		return nil, err
	}
	switch {
	case len(args) == 0 && l.Interface == "" && l.Follow == "":
		return nil, errors.New("no input: use -i INTERFACE, --follow FILE, or - for a pipe; rdmadump interfaces lists the interfaces")
	case l.Follow != "":
		l.reportMissing(stderr)
		return capture.OpenFollow(l.Follow)
	case l.Interface != "":
		live, err := l.openInterface()
		if err != nil {
			return nil, err
		}
		if err := unprivileged(); err != nil {
			live.Close()
			return nil, err
		}
		return live, nil
	case args[0] != "-":
		return nil, fmt.Errorf("live %s: live reads a pipe (-) or a growing file (--follow %s); to read a finished capture, leave out the word live", args[0], args[0])
	}
	if err := unprivileged(); err != nil && os.Geteuid() == 0 {
		return nil, err
	}
	return capture.NewPipe(ctx, "standard input", os.Stdin)
}

// openInterface starts capturing on the interface.
func (l *liveFlags) openInterface() (*capture.Live, error) {
	if device := capture.Bypass(command.Sysfs, l.Interface); device != "" && !l.Force {
		return nil, fmt.Errorf(`%s belongs to the hardware RDMA device %s, whose traffic bypasses the kernel: a socket on %s receives none of it.
Use libpcap's RDMA sniffer or ibdump instead:
  tcpdump -i %s -w - | rdmadump live -
  ibdump -d %s -w - | rdmadump live -
(--force captures on %s anyway)`, l.Interface, device, l.Interface, device, device, l.Interface)
	}
	return capture.OpenLive(l.Interface, capture.LiveOptions{Promiscuous: l.Promiscuous})
}

// unprivileged drops the privileges of the process. A test process keeps its own.
func unprivileged() error {
	if !command.OwnProcess {
		return nil
	}
	return dropPrivileges()
}

// reportMissing prints a message if the file to follow does not exist yet, because its name
// may have been mistyped.
func (l *liveFlags) reportMissing(stderr io.Writer) {
	if _, err := os.Stat(l.Follow); !errors.Is(err, os.ErrNotExist) || l.Quiet {
		return
	}
	if first := capture.Ring(l.Follow); first != l.Follow {
		command.Say(stderr, "%s does not exist, but a ring of files does; reading it from its oldest file, %s", l.Follow, first)
		return
	}
	var more string
	if folder := filepath.Dir(l.Follow); folder != "." {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			more = fmt.Sprintf("; the folder %s does not exist yet", folder)
		}
	}
	command.Say(stderr, "waiting for %s to be created%s", l.Follow, more)
}

// saver writes packets to a pcapng file. The reading goroutine writes packets, and the
// dissecting goroutine flushes them now and then.
type saver struct {
	mu   sync.Mutex
	w    *capture.Writer
	file *command.LaterFile // nil for standard output
}

// saver returns the saver for -w, or nil if -w was not given. If it writes to standard
// output, no records are written there.
func (l *liveFlags) saver(r *show.Runner) (*saver, error) {
	switch l.Write {
	case "":
		return nil, nil
	case "-":
		if command.TerminalWidth(r.Stdout) > 0 {
			return nil, errors.New("-w -: packets cannot be written to a terminal; use a file or a pipe")
		}
		k := &saver{w: capture.NewWriter(r.Stdout)}
		r.Stdout = io.Discard
		return k, nil
	}
	f, err := command.OpenLater("-w", l.Write)
	if err != nil {
		return nil, err
	}
	return &saver{w: capture.NewWriter(f), file: f}, nil
}

// begin empties the file. It is called after the source was opened, and before packets are written.
func (k *saver) begin() error {
	if k.file == nil {
		return nil
	}
	return k.file.Begin()
}

// close closes the file, if that has not happened yet.
func (k *saver) close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}

// refuseOutputs returns an error if a file that is to be written is an input, another file that is to be written, or the file
// that standard output or standard error goes to.
func (l *liveFlags) refuseOutputs(args []string, stdout, stderr io.Writer) error {
	inputs := args
	if l.Follow != "" {
		inputs = append(slices.Clone(args), l.Follow)
	}
	if l.Write != "" && l.Write != "-" {
		if err := command.RefuseInput("-w", l.Write, inputs, stdout, stderr); err != nil {
			return err
		}
	}
	switch {
	case l.Accept == "":
		return nil
	case l.Write != "" && l.Write != "-" && command.SameFile(l.Write, l.Accept):
		return fmt.Errorf("--write-baseline %s: this is the file of -w; choose another name", render.Clean(l.Accept))
	}
	return command.RefuseInput("--write-baseline", l.Accept, inputs, stdout, stderr)
}

// write writes a frame and returns the size of the file so far, in bytes.
func (k *saver) write(f *capture.Frame) (size int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err = k.w.Write(f)
	return k.w.Size(), err
}

// flush writes buffered packets to the file.
func (k *saver) flush() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.w.Flush()
}

// finish completes and closes the file.
func (k *saver) finish() error { return errors.Join(k.w.Finish(), k.close()) }

// NewInterfaces returns the command that lists network interfaces.
func NewInterfaces(stdout io.Writer) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "interfaces", Short: "List the network interfaces of this machine and their RDMA devices", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := command.OneOf("-o", output, "text", "json"); err != nil {
				return err
			}
			list, err := capture.Interfaces(command.Sysfs)
			if err != nil {
				return err
			}
			if output == "json" {
				for i := range list {
					if _, err := stdout.Write(render.AppendJSON(nil, &list[i])); err != nil {
						return err
					}
				}
				return nil
			}
			return printInterfaces(stdout, list)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "write this `format`: text or json (one record per line)")
	return cmd
}

// printInterfaces writes interfaces as text.
func printInterfaces(w io.Writer, list []capture.Interface) error {
	for _, i := range list {
		state := "down"
		if i.Up {
			state = "up"
		}
		line := fmt.Sprintf("%-16s %-4s mtu %-6d %s", i.Name, state, i.MTU, strings.Join(i.Address, " "))
		for _, d := range i.RDMA {
			if d.Hardware {
				line += fmt.Sprintf("\n  RDMA device %s, hardware: use tcpdump -i %s -w - | rdmadump live -", d.Name, d.Name)
			} else {
				line += fmt.Sprintf("\n  RDMA device %s, software: rdmadump live -i %s", d.Name, i.Name)
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}
