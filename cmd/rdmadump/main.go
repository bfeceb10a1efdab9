// Command rdmadump analyzes captures of NFS over RDMA: it reconstructs each RPC with the
// memory that it exposed and the data that moved, and reports violations of the protocol.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/command"
	"github.com/rdmadump/rdmadump/internal/command/flags"
	"github.com/rdmadump/rdmadump/internal/command/live"
)

func main() { os.Exit(Main()) }

// Main runs the command with the arguments and the standard files of the process, and
// returns the exit status.
func Main() int {
	command.OwnProcess = true
	debug.SetGCPercent(garbage) // before any capture is opened
	// Writing to a closed pipe then returns an error, and the command ends quietly.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	args := os.Args[1:]
	if strings.HasPrefix(filepath.Base(os.Args[0]), live.ExtcapName) { // a link to the program
		args = append([]string{"extcap"}, args...)
	}
	return run(ctx, args, os.Stdout, os.Stderr)
}

// endSignals returns the signals that end the command.
func endSignals() []os.Signal {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// run runs one command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		for _, cmd := range append(root.Commands(), root) {
			flags.Complete(cmd)
		}
	}
	root.SetArgs(args)
	return execute(ctx, root, stderr)
}

// execute runs a command, prints the error if it fails, and returns the exit status.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) (code int) {
	box := new(command.BlackBox)
	defer func() {
		if v := recover(); v != nil {
			code = box.Report(stderr, root.Version, v, debug.Stack())
		}
	}()
	err := root.ExecuteContext(context.WithValue(ctx, command.BlackBoxKey{}, box))
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return command.ExitOK
	}
	var failed *capture.Panic
	if errors.As(err, &failed) {
		return box.Report(stderr, root.Version, failed, nil)
	}
	code = command.ExitUsage
	var s *command.Status
	if errors.As(err, &s) {
		code = s.Code
	}
	if message := err.Error(); message != "" {
		command.Say(stderr, "%s", message)
	}
	return code
}

// garbage is the percentage by which the heap may grow before it is collected. Live state
// is small, and a collection every few megabytes would take a tenth of the time.
const garbage = 400
