package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/capture"
)

// replay sends the frames of a capture out of an interface.
func replay(args []string) int {
	f, err := capture.Open(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	i, err := net.InterfaceByName(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n := 0
	for frame, err := range capture.All(context.Background(), f) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if err := unix.Sendto(fd, frame.Data, 0, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
			fmt.Fprintf(os.Stderr, "frame %d of %d bytes: %v\n", frame.Number, len(frame.Data), err)
			return 1
		}
		if n++; n%64 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return 0
}
