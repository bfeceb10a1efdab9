package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// sysfs is where the kernel tells which RDMA devices are behind which interface.
const sysfs = "/sys"

// liveLinger is how long a live transaction waits for the acknowledgement of its
// Reply: short, since somebody is watching.
const liveLinger = record.Time(40 * time.Millisecond)

// liveFlags are the flags of live.
type liveFlags struct {
	flags
	iface       string
	view        string
	write       string
	follow      string
	stop        []string
	promiscuous bool
	force       bool
}

func newLive(stdout, stderr io.Writer) *cobra.Command {
	l := new(liveFlags)
	cmd := &cobra.Command{
		Use:   "live [-i IFACE | --follow FILE | -]",
		Short: "The same views of live traffic",
		Long: `live shows records as the packets that end them arrive: from a network interface
(-i, Linux), from a file that is still being written (--follow), or from a pipe:

  ibdump -d mlx5_0 -w - | rdmadump live -
  tcpdump -i mlx5_0 -w - | rdmadump live -

The traffic of a hardware RDMA device does not pass its network interface: for
that, use one of the pipes. Ctrl-C ends it with the summary.

Of an interface or a pipe, no packet is read before root, groups and capabilities
are given up: it goes on as the user who called sudo, or as nobody. To capture
without root, once: setcap cap_net_raw+ep rdmadump.

` + exitHelp,
		Example: `  rdmadump live -i eth0 -w kept.pcapng -a duration:60
  rdmadump live -i eth0 --view check
  rdmadump live --follow /var/tmp/ring.pcap -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args, stdout, stderr) },
	}
	f := cmd.Flags()
	f.StringVarP(&l.iface, "interface", "i", "", "capture on this `interface`")
	f.StringVar(&l.view, "view", "transactions", "`view`: "+list(viewNames(), "or"))
	f.StringVarP(&l.write, "write", "w", "", "keep the packets in this `file`, as pcapng; - is standard output, without records")
	f.StringVar(&l.follow, "follow", "", "read this `file` as it is written, through rotation")
	f.StringSliceVarP(&l.stop, "autostop", "a", nil, "stop after duration:SECONDS, filesize:KB or packets:`N`")
	f.BoolVar(&l.promiscuous, "promiscuous", false, "take packets for others, too")
	f.BoolVar(&l.force, "force", false, "capture though a hardware RDMA device is behind the interface")
	l.define(f, views...)
	cmd.RegisterFlagCompletionFunc("view", cobra.FixedCompletions(viewNames(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("interface", func(*cobra.Command, []string, string) (names []string, d cobra.ShellCompDirective) {
		list, _ := capture.Interfaces(sysfs)
		for _, i := range list {
			names = append(names, i.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// limits are what -a says.
type limits struct {
	duration time.Duration
	packets  int64
	bytes    int64
}

// maxLimit is the largest number of -a: of seconds, more than a century.
const maxLimit = 1 << 32

func (l *liveFlags) limits() (limits, error) {
	var out limits
	for _, s := range l.stop {
		what, value, _ := strings.Cut(s, ":")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v > 0 && v <= maxLimit) {
			return out, fmt.Errorf("-a %s: it is duration:SECONDS, filesize:KB or packets:N", s)
		}
		switch what {
		case "duration":
			out.duration = time.Duration(v * float64(time.Second))
		case "packets":
			out.packets = int64(math.Ceil(v))
		case "filesize":
			if l.write == "" {
				return out, fmt.Errorf("-a %s: the size of which file? It goes with -w", s)
			}
			out.bytes = int64(v * 1000)
		default:
			return out, fmt.Errorf("-a %s: it is duration:SECONDS, filesize:KB or packets:N", s)
		}
	}
	return out, nil
}

func (l *liveFlags) run(cmd *cobra.Command, args []string, stdout, stderr io.Writer) error {
	v := viewNamed(l.view)
	if v == nil {
		return oneOf("--view", l.view, viewNames()...)
	}
	if err := v.check(cmd); err != nil {
		return err
	}
	stop, err := l.limits()
	if err != nil {
		return err
	}
	set, err := l.parse(v, false)
	if err != nil {
		return err
	}
	r := &runner{settings: set, stdout: stdout, stderr: stderr, live: true}
	kept, err := l.keeper(r)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if stop.duration > 0 {
		timed, cancel := context.WithTimeout(ctx, stop.duration)
		defer cancel()
		ctx = timed
	}
	source, err := l.open(ctx, args, stderr)
	if err != nil {
		return err
	}
	defer source.Close()
	if kept == nil {
		return r.run(ctx, &limited{input: source, stop: stop})
	}
	r.tick, r.flush = kept.flush, kept.flush
	err = r.run(ctx, &limited{input: source, stop: stop, kept: kept})
	if failed := kept.finish(); err == nil {
		err = failed
	}
	return err
}

// limited ends a source where -a says so, and keeps what it hands out.
type limited struct {
	input
	stop    limits
	kept    *keeper // nil for none
	packets int64
	ended   bool
}

// ReadBatch hands out what is within the limits.
func (l *limited) ReadBatch(ctx context.Context, b *capture.Batch) error {
	if l.ended {
		b.Release()
		return io.EOF
	}
	if err := l.input.ReadBatch(ctx, b); err != nil {
		return err
	}
	for i := range b.Frames {
		l.packets++
		l.ended = l.stop.packets > 0 && l.packets >= l.stop.packets
		if l.kept != nil {
			size, err := l.kept.write(&b.Frames[i])
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

// open opens what live traffic comes from.
func (l *liveFlags) open(ctx context.Context, args []string, stderr io.Writer) (input, error) {
	ways := len(args)
	for _, flag := range []string{l.iface, l.follow} {
		if flag != "" {
			ways++
		}
	}
	if ways != 1 {
		return nil, fmt.Errorf("where from? One of -i INTERFACE, --follow FILE, and - for a pipe; rdmadump interfaces lists the interfaces")
	}
	switch {
	case l.follow != "":
		l.sayWaiting(stderr)
		return capture.OpenFollow(l.follow)
	case l.iface != "":
		if device := capture.Bypass(sysfs, l.iface); device != "" && !l.force {
			return nil, fmt.Errorf(`%s belongs to the hardware RDMA device %s, whose traffic bypasses the kernel: a socket on %s stays silent.
What works, through libpcap's RDMA sniffer or ibdump:
  tcpdump -i %s -w - | rdmadump live -
  ibdump -d %s -w - | rdmadump live -
(--force captures on %s all the same)`, l.iface, device, l.iface, device, device, l.iface)
		}
		live, err := capture.OpenLive(l.iface, capture.LiveOptions{Promiscuous: l.promiscuous})
		if err != nil {
			return nil, err
		}
		if err := unprivileged(); err != nil {
			live.Close()
			return nil, err
		}
		return live, nil
	case args[0] != "-":
		return nil, fmt.Errorf("live %s: live reads a pipe with -, a growing file with --follow %s, and a finished one without live", args[0], args[0])
	}
	if err := unprivileged(); err != nil && os.Geteuid() == 0 {
		return nil, err
	}
	return capture.NewPipe(ctx, "standard input", os.Stdin)
}

// unprivileged gives up the privileges of rdmadump's own process; a test keeps
// those of its.
func unprivileged() error {
	if !ownProcess {
		return nil
	}
	return giveUpPrivileges()
}

// sayWaiting says that the file to follow is not there yet: it may have been
// mistyped.
func (l *liveFlags) sayWaiting(stderr io.Writer) {
	if _, err := os.Stat(l.follow); !errors.Is(err, os.ErrNotExist) || l.quiet {
		return
	}
	var more string
	if folder := filepath.Dir(l.follow); folder != "." {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			more = fmt.Sprintf("; there is no folder %s yet", folder)
		}
	}
	fmt.Fprintf(stderr, "rdmadump: waiting for %s%s\n", l.follow, more)
}

// keeper keeps packets in a pcapng file: the goroutine that reads writes them,
// the one that dissects flushes now and then.
type keeper struct {
	mu   sync.Mutex
	w    *capture.Writer
	file io.Closer
}

// keeper is what -w says, nil for nothing. Packets on standard output go there
// alone.
func (l *liveFlags) keeper(r *runner) (*keeper, error) {
	switch l.write {
	case "":
		return nil, nil
	case "-":
		if terminalWidth(r.stdout) > 0 {
			return nil, errors.New("-w -: packets are nothing for a terminal; give a file, or a pipe")
		}
		k := &keeper{w: capture.NewWriter(r.stdout), file: io.NopCloser(nil)}
		r.stdout = io.Discard
		return k, nil
	}
	f, err := os.Create(l.write)
	if err != nil {
		return nil, fmt.Errorf("-w %s: %w", l.write, err)
	}
	return &keeper{w: capture.NewWriter(f), file: f}, nil
}

// write takes a frame, and tells the size so far.
func (k *keeper) write(f *capture.Frame) (size int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err = k.w.Write(f)
	return k.w.Size(), err
}

func (k *keeper) flush() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.w.Flush()
}

// finish ends the file.
func (k *keeper) finish() error { return errors.Join(k.w.Finish(), k.file.Close()) }

// newInterfaces lists what can be captured on.
func newInterfaces(stdout io.Writer) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "interfaces", Short: "List the interfaces that can be captured on, with the RDMA devices behind them", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := oneOf("-o", output, "text", "json"); err != nil {
				return err
			}
			list, err := capture.Interfaces(sysfs)
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
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`text` or json (one record a line)")
	return cmd
}

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
