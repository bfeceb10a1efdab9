package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

// full accepts some bytes and then no more, as a pipe does after its reader has gone.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("nobody reads")
	}
	return len(b), nil
}

// TestEndlessJQ: a jq program with endless results stops when their reader has gone, and one that
// runs forever without results stops when the command is interrupted.
func TestEndlessJQ(t *testing.T) {
	const capture = "../../samples/rocev2-callback41.pcap"
	for program, patience := range map[string]time.Duration{"repeat(1)": time.Minute, "def f: f; f": 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		done := make(chan int, 1)
		go func() { done <- run(ctx, []string{"-q", "--jq", program, capture}, &full{1 << 20}, io.Discard) }()
		select {
		case status := <-done:
			if status == 0 || patience == time.Minute && ctx.Err() != nil {
				t.Errorf("%s: status %d, %v", program, status, ctx.Err())
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s goes on", program)
		}
		cancel()
	}
}
