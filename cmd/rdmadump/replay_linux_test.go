package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmadump/rdmadump/capture"
)

// replay sends the frames of a capture out of an interface. With two interfaces, the frames of the host that sent the first
// one go out of the first interface, and those of other hosts out of the second one.
func replay(args []string) int {
	f, err := capture.Open(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var out []int
	for _, name := range args[1:] {
		i, err := net.InterfaceByName(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		out = append(out, i.Index)
	}
	var host []byte // MAC address
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
		source, at := frame.Data[6:12], 0
		if host == nil {
			host = bytes.Clone(source)
		}
		if len(out) > 1 && !bytes.Equal(source, host) {
			at = 1
		}
		if err := unix.Sendto(fd, frame.Data, 0, &unix.SockaddrLinklayer{Ifindex: out[at]}); err != nil {
			fmt.Fprintf(os.Stderr, "frame %d of %d bytes: %v\n", frame.Number, len(frame.Data), err)
			return 1
		}
		if n++; n%64 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return 0
}
