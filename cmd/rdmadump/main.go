// Command rdmadump analyzes captures of NFS over RDMA: it reconstructs each RPC with the
// memory that it exposed and the data that moved, and reports violations of the protocol.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/render"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFound  = 1  // check found an error, or compare a change that exceeds --fail-on
	exitUsage  = 2  // the usage is wrong, the input cannot be read, or check found neither RDMA nor RPC
	exitBroken = 3  // the input is truncated or damaged
	exitFailed = 70 // rdmadump itself failed with a panic; EX_SOFTWARE of sysexits.h
)

// exitHelp describes the exit statuses in help texts.
const exitHelp = `Exit status: 0 if the command succeeded; 1 if check found an error, or compare
a change that exceeds --fail-on; 2 if the usage was wrong, the input could not be read,
or check found neither RDMA nor RPC in it; 3 if the input was truncated or damaged, so
that the results cover only the part before that; 70 if rdmadump itself failed, and
standard error says what to report.`

func main() { os.Exit(Main()) }

// ownProcess reports whether the process runs this command and nothing else. In tests it
// is false.
var ownProcess bool

// Main runs the command with the arguments and the standard files of the process, and
// returns the exit status.
func Main() int {
	ownProcess = true
	debug.SetGCPercent(garbage) // before any capture is opened
	// Writing to a closed pipe then returns an error, and the command ends quietly.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// endSignals returns the signals that end the command.
func endSignals() []os.Signal {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// status is an error with an exit status. Its err is nil if the message has been printed
// already.
type status struct {
	code int
	err  error
}

// Error returns the message, or "" if it has been printed already.
func (s *status) Error() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

// Unwrap returns the cause.
func (s *status) Unwrap() error { return s.err }

// run runs one command line and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		complete(root)
	}
	root.SetArgs(args)
	return execute(ctx, root, stderr)
}

// say writes a message of the program. It may contain names of files and bytes of captures, so what is not printable is
// escaped.
func say(stderr io.Writer, format string, args ...any) {
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for i, line := range lines {
		lines[i] = render.Clean(line)
	}
	fmt.Fprintf(stderr, "rdmadump: %s\n", strings.Join(lines, "\n"))
}

// execute runs a command, prints the error if it fails, and returns the exit status.
func execute(ctx context.Context, root *cobra.Command, stderr io.Writer) (code int) {
	box := new(blackBox)
	defer func() {
		if v := recover(); v != nil {
			code = box.report(stderr, root.Version, v, debug.Stack())
		}
	}()
	err := root.ExecuteContext(context.WithValue(ctx, blackBoxKey{}, box))
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return exitOK
	}
	var failed *capture.Panic
	if errors.As(err, &failed) {
		return box.report(stderr, root.Version, failed, nil)
	}
	code = exitUsage
	var s *status
	if errors.As(err, &s) {
		code = s.code
	}
	if message := err.Error(); message != "" {
		say(stderr, "%s", message)
	}
	return code
}
