// Command rdmadump reads what RDMA storage traffic left on the wire and says
// what the two ends did to each other's memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmadump/rdmadump/capture"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFound  = 1  // check found an error
	exitUsage  = 2  // wrong usage, or unreadable input
	exitBroken = 3  // the input ended or broke before its end
	exitFailed = 70 // rdmadump itself failed: a panic; EX_SOFTWARE of sysexits.h
)

// exitHelp is what the help says of them.
const exitHelp = `Exit status: 0 done; 1 check found an error; 2 wrong usage or unreadable input;
3 the input ended or broke before its end; 70 rdmadump itself failed, and standard
error says at which packet, and what to report.`

func main() { os.Exit(Main()) }

// ownProcess says that the process runs this command and nothing else.
var ownProcess bool

// Main runs the command with the process's own arguments and files.
func Main() int {
	ownProcess = true
	// A closed pipe is an error of the write, and a quiet end.
	signal.Ignore(syscall.SIGPIPE)
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// status is an error that says how to exit. Without a message, what there was
// to say has been said.
type status struct {
	code int
	err  error
}

func (s *status) Error() string {
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

func (s *status) Unwrap() error { return s.err }

// run runs one command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	debug.SetGCPercent(garbage) // before anything is opened
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	return execute(ctx, root, stderr)
}

// execute runs a command, says what went wrong, and works out the exit status.
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
		fmt.Fprintf(stderr, "rdmadump: %s\n", message)
	}
	return code
}
