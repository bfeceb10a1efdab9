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
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/render"
)

// sysfs is where the kernel tells which RDMA devices are behind which interface.
const sysfs = "/sys"

// liveLinger is how long a live transaction waits for the acknowledgement of its
// Reply: short, since somebody is watching.
const liveLinger = record.Time(40 * time.Millisecond)

// flushEvery is how long a record may wait in a buffer.
const flushEvery = 25 * time.Millisecond

// liveOptions are the flags of live.
type liveOptions struct {
	*options
	iface       string
	view        string
	write       string
	follow      string
	stop        []string
	promiscuous bool
	anyway      bool
}

func newLive(o *options) *cobra.Command {
	l := &liveOptions{options: o}
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
		RunE: l.run,
	}
	f := cmd.Flags()
	f.StringVarP(&l.iface, "interface", "i", "", "capture on this `interface`")
	f.StringVar(&l.view, "view", "transactions", "`view`: transactions, connections, packets, check or stats")
	f.StringVarP(&l.write, "write", "w", "", "keep the packets in this `file`, as pcapng; - is standard output, without records")
	f.StringVar(&l.follow, "follow", "", "read this `file` as it is written, through rotation")
	f.StringSliceVarP(&l.stop, "autostop", "a", nil, "stop after duration:SECONDS, filesize:KB or packets:`N`")
	f.BoolVar(&l.promiscuous, "promiscuous", false, "take packets for others, too")
	f.BoolVar(&l.anyway, "anyway", false, "capture though a hardware RDMA device is behind the interface")
	f.BoolVarP(&o.tree, "verbose", "V", false, "packets: the tree of all fields")
	f.BoolVarP(&o.bytes, "hex", "x", false, "packets: the bytes of each packet")
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

func (l *liveOptions) limits() (limits, error) {
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

// clock tells the time on the capture's clock while no packet comes.
type clock struct {
	captured record.Time // of the last packet
	read     time.Time   // when that was read
}

func (c *clock) now() record.Time {
	if c.read.IsZero() {
		return 0
	}
	now := c.captured + record.Time(time.Since(c.read))
	if now < c.captured { // beyond what a Time can tell
		return math.MaxInt64
	}
	return now
}

func (l *liveOptions) run(cmd *cobra.Command, args []string) error {
	chosen := viewNamed(l.view)
	if chosen == nil {
		return fmt.Errorf("--view %s: the views are transactions, connections, packets, check and stats", l.view)
	}
	stop, err := l.limits()
	if err != nil {
		return err
	}
	kept, err := l.toStandardOutput()
	if err != nil {
		return err
	}
	s, err := newSink(l.options, *chosen)
	if err != nil {
		return err
	}
	if l.write != "" && kept == nil {
		if kept, err = newKeeper(l.write); err != nil {
			return err
		}
	}
	s.text.Live()
	h, finish := chosen.open(s)
	d := dissect.New(h, dissect.Options{Linger: liveLinger})
	var at clock
	idle := func() {
		if now := at.now(); now != 0 {
			d.Idle(now)
		}
		s.flush()
		if kept != nil {
			s.fail(kept.Flush())
		}
	}
	ctx := cmd.Context()
	if stop.duration > 0 {
		timed, cancel := context.WithTimeout(ctx, stop.duration)
		defer cancel()
		ctx = timed
	}
	cmd.SetContext(ctx)
	source, err := l.open(cmd, args, idle)
	if err != nil {
		return err
	}
	defer source.Close()
	var number int64 // of the packet that is being dissected
	box := boxOf(ctx)
	box.packet = func() int64 { return number }
	box.flush = func() error {
		err := s.w.Flush()
		if kept != nil {
			err = errors.Join(err, kept.Flush())
		}
		return err
	}
	flushed := time.Now()
	readErr := l.read(ctx, d, source, s, func(f *capture.Frame) (bool, error) {
		number = f.Number
		at.captured, at.read = record.Time(f.Time), time.Now()
		if at.read.Sub(flushed) > flushEvery {
			s.flush()
			if kept != nil {
				s.fail(kept.Flush())
			}
			flushed = at.read
		}
		if kept != nil {
			if err := kept.Write(f); err != nil {
				return false, err
			}
			if stop.bytes > 0 && kept.Size() >= stop.bytes {
				return false, nil
			}
		}
		return stop.packets == 0 || f.Number < stop.packets, nil
	})
	if kept != nil {
		if err := kept.finish(); readErr == nil {
			readErr = err
		}
	}
	return l.end(d, s, source, finish, nil, readErr)
}

// open opens what live traffic comes from.
func (l *liveOptions) open(cmd *cobra.Command, args []string, idle func()) (input, error) {
	ways := len(args)
	for _, flag := range []string{l.iface, l.follow} {
		if flag != "" {
			ways++
		}
	}
	if ways != 1 {
		return nil, fmt.Errorf("where from? One of -i INTERFACE, --follow FILE, and - for a pipe; rdmadump interfaces lists the interfaces")
	}
	ctx := cmd.Context()
	switch {
	case l.follow != "":
		l.sayWaiting()
		return capture.OpenFollow(ctx, l.follow, idle)
	case l.iface != "":
		if device := capture.Bypass(sysfs, l.iface); device != "" && !l.anyway {
			return nil, fmt.Errorf(`%s belongs to the hardware RDMA device %s, whose traffic bypasses the kernel: a socket on %s stays silent.
What works, through libpcap's RDMA sniffer or ibdump:
  tcpdump -i %s -w - | rdmadump live -
  ibdump -d %s -w - | rdmadump live -
(--anyway captures on %s all the same)`, l.iface, device, l.iface, device, device, l.iface)
		}
		live, err := capture.OpenLive(ctx, l.iface, capture.LiveOptions{Promiscuous: l.promiscuous, Idle: idle})
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
	return capture.NewPipe(ctx, "standard input", os.Stdin, idle)
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
func (l *liveOptions) sayWaiting() {
	if _, err := os.Stat(l.follow); !errors.Is(err, os.ErrNotExist) || l.quiet {
		return
	}
	var more string
	if folder := filepath.Dir(l.follow); folder != "." {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			more = fmt.Sprintf("; there is no folder %s yet", folder)
		}
	}
	fmt.Fprintf(l.stderr, "rdmadump: waiting for %s%s\n", l.follow, more)
}

// keeper keeps packets in a pcapng file.
type keeper struct {
	*capture.Writer
	file io.Closer
}

func newKeeper(path string) (*keeper, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("-w %s: %w", path, err)
	}
	return &keeper{capture.NewWriter(f), f}, nil
}

// toStandardOutput keeps packets there when -w says so: then nothing else goes
// there.
func (l *liveOptions) toStandardOutput() (*keeper, error) {
	if l.write != "-" {
		return nil, nil
	}
	if terminalWidth(l.stdout) > 0 {
		return nil, errors.New("-w -: packets are nothing for a terminal; give a file, or a pipe")
	}
	k := &keeper{capture.NewWriter(l.stdout), io.NopCloser(nil)}
	l.stdout = io.Discard
	return k, nil
}

// finish ends the file.
func (k *keeper) finish() error { return errors.Join(k.Finish(), k.file.Close()) }

// newInterfaces lists what can be captured on.
func newInterfaces(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "interfaces", Short: "List the interfaces that can be captured on, with the RDMA devices behind them", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := capture.Interfaces(sysfs)
			if err != nil {
				return err
			}
			if o.output == "json" {
				for i := range list {
					if _, err := o.stdout.Write(render.AppendJSON(nil, &list[i])); err != nil {
						return err
					}
				}
				return nil
			}
			return printInterfaces(o.stdout, list)
		},
	}
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
