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
	"syscall"
)

// The exit statuses.
const (
	exitOK     = 0
	exitFound  = 1 // check found an error
	exitUsage  = 2 // wrong usage, or unreadable input
	exitBroken = 3 // the input ended or broke before its end
)

func main() { os.Exit(Main()) }

// ownProcess says that the process runs this command and nothing else.
var ownProcess bool

// Main runs the command with the process's own arguments and files.
func Main() int {
	ownProcess = true
	// A closed pipe is an error of the write, and a quiet end.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return exitOK
	}
	code := exitUsage
	var s *status
	if errors.As(err, &s) {
		code = s.code
	}
	if message := err.Error(); message != "" {
		fmt.Fprintf(stderr, "rdmadump: %s\n", message)
	}
	return code
}
