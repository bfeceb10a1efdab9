package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/show"
	"github.com/rdmadump/rdmadump/internal/export"
)

// ExtcapName is the name under which Wireshark calls the program, as a capture source (extcap(4)).
const ExtcapName = "rdmadump-extcap"

// extcapInterface is the name of the interface that Wireshark shows.
const extcapInterface = "rdmadump"

// noFilter is the answer to a capture filter, and forWireshark that to a person.
const (
	noFilter     = "a capture filter is not supported: use a display filter"
	forWireshark = "this command is for Wireshark, which passes --extcap-interface; see https://www.wireshark.org/docs/man-pages/extcap.html"
)

// linkEthernet is the link type of the packets that Wireshark gets.
const linkEthernet = 1

// extcap holds the flags with which Wireshark calls the program.
type extcap struct {
	interfaces, dlts, config, capture bool
	iface, fifo, file, live           string
	version, filter, reload           string
	stdout                            io.Writer
}

// NewExtcap returns the command that Wireshark calls to list the interface "RPC over RDMA" and to capture from it: it delivers the RPCs of
// a capture or of a network interface as if TCP had carried them. Users do not call it.
func NewExtcap(stdout io.Writer) *cobra.Command {
	x := &extcap{stdout: stdout}
	cmd := &cobra.Command{
		Use: "extcap", Hidden: true, Short: "Capture for Wireshark: list the interface, its options, and its packets", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return x.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.BoolVar(&x.interfaces, "extcap-interfaces", false, "list the interface")
	f.BoolVar(&x.dlts, "extcap-dlts", false, "list the link types of the interface")
	f.BoolVar(&x.config, "extcap-config", false, "list the options of the interface")
	f.BoolVar(&x.capture, "capture", false, "capture")
	f.StringVar(&x.iface, "extcap-interface", "", "select the interface with this `name`")
	f.StringVar(&x.fifo, "fifo", "", "write packets to this `file`")
	f.StringVar(&x.file, "file", "", "read this capture `file`")
	f.StringVar(&x.live, "live", "", "capture on this network `interface`")
	f.StringVar(&x.version, "extcap-version", "", "accept the `version` of Wireshark")
	f.StringVar(&x.filter, "extcap-capture-filter", "", "refuse this capture `filter`")
	f.StringVar(&x.reload, "extcap-reload-option", "", "list the values of this `option` again")
	return cmd
}

// run does what Wireshark asks for.
func (x *extcap) run(ctx context.Context) error {
	switch {
	case x.interfaces:
	case x.iface == "":
		return errors.New(forWireshark)
	case x.iface != extcapInterface:
		return fmt.Errorf("--extcap-interface %q: the interface is %s", x.iface, extcapInterface)
	}
	switch {
	case x.interfaces:
		fmt.Fprintf(x.stdout, "extcap {version=%s}{help=https://github.com/rdmadump/rdmadump}\n", command.Version())
		fmt.Fprintf(x.stdout, "interface {value=%s}{display=RPC over RDMA}\n", extcapInterface)
	case x.dlts:
		fmt.Fprintf(x.stdout, "dlt {number=%d}{name=EN10MB}{display=Ethernet}\n", linkEthernet)
	case x.config:
		return x.options()
	case x.capture && x.filter != "":
		return errors.New(noFilter)
	case x.capture:
		return x.deliver(ctx)
	case x.filter != "": // Wireshark asks whether it is valid, and takes what is printed for what is wrong with it.
		fmt.Fprintln(x.stdout, noFilter)
	default:
		return errors.New(forWireshark)
	}
	return nil
}

// options lists the options of the interface.
func (x *extcap) options() error {
	fmt.Fprintln(x.stdout, "arg {number=0}{call=--file}{display=Capture file}{tooltip=A capture of RoCE or iWARP, whose RPCs are shown as NFS over TCP}{type=fileselect}{mustexist=true}{group=Source}")
	fmt.Fprintln(x.stdout, "arg {number=1}{call=--live}{display=Network interface}{tooltip=Used if no file is chosen}{type=selector}{group=Source}")
	fmt.Fprintln(x.stdout, "value {arg=1}{value=}{display=None}{default=true}")
	list, err := capture.Interfaces(command.Sysfs)
	if err != nil {
		return err
	}
	for i := range list {
		name := strings.Map(func(r rune) rune { // these have a meaning
			if r == '{' || r == '}' || r == '\\' || r < ' ' {
				return '_'
			}
			return r
		}, list[i].Name)
		fmt.Fprintf(x.stdout, "value {arg=1}{value=%s}{display=%s}\n", name, name)
	}
	return nil
}

// deliver writes the RPCs of the source to Wireshark.
func (x *extcap) deliver(ctx context.Context) error {
	if x.fifo == "" {
		return errors.New("--fifo is missing: it names the file to which packets are written")
	}
	if x.file == "" && x.live == "" {
		return errors.New("no source: choose a capture file or a network interface in the options of the interface")
	}
	out, err := command.Until(ctx, "--fifo "+x.fifo, func() (*os.File, error) { return os.OpenFile(x.fifo, os.O_WRONLY, 0) })
	if err != nil {
		return err
	}
	defer out.Close()
	if x.file == "" {
		return x.stream(ctx, out)
	}
	source, err := capture.Open(x.file)
	if err != nil {
		return err
	}
	defer source.Close()
	temporary, err := os.CreateTemp("", "rdmadump-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	defer temporary.Close()
	e := export.NewRPCTCP(temporary)
	if _, err := dissect.New(e.Handler(), dissect.Options{Rebuild: true}).Run(ctx, source); err != nil && !errors.As(err, new(*capture.BrokenError)) {
		return err
	}
	buffered := bufio.NewWriter(out)
	if _, err := e.Write(buffered, ExtcapName+" "+command.Version()); err != nil {
		return err
	}
	return buffered.Flush()
}

// stream writes RPCs when they are complete, until Wireshark ends the program.
func (x *extcap) stream(ctx context.Context, out io.Writer) error {
	source, err := capture.OpenLive(x.live, capture.LiveOptions{})
	if err != nil {
		return err
	}
	defer source.Close()
	if err := unprivileged(); err != nil {
		return err
	}
	e := export.LiveRPCTCP(out, ExtcapName+" "+command.Version())
	h := e.Handler()
	h.Tick = e.Flush
	_, err = dissect.New(h, dissect.Options{Rebuild: true, Live: true, Linger: show.LiveLinger}).Run(ctx, source)
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, e.Flush())
}
