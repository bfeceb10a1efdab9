package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Live captures the traffic of a network interface through a Linux packet socket, without cgo. A
// kernel filter passes only RoCE and TCP, times have nanoseconds, and the kernel counts dropped
// packets. The package does not use pcapgo's EthernetHandle because Live needs a larger buffer, a
// timeout that returns records while no packets arrive, and VLAN tags that are restored without a
// copy.
type Live struct {
	fd      int
	name    string
	pool    pool
	block   *block // block that is being filled
	message unix.Msghdr
	data    unix.Iovec
	oob     [256]byte
	gather  time.Duration
	from    unix.RawSockaddrLinklayer // of the current frame
	frames  int64
	dropped uint64
	failed  error
}

const (
	liveFrame   = MaxFrame - vlanTagLen
	liveBuffer  = 64 << 20 // requested size in bytes; the kernel may grant less
	liveTimeout = 25 * time.Millisecond
	liveBlock   = 1 << 20 // bytes of frames in one block
	liveSlot    = vlanTagLen + liveFrame
	vlanTagLen  = 4
)

// OpenLive starts capturing on the interface name.
func OpenLive(name string, o LiveOptions) (*Live, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("no interface %s; the command \"rdmadump interfaces\" lists the interfaces", name)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: no packets arrive before bind
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("capturing on %s: %w: run it as root, or once: setcap cap_net_raw+ep %s", name, ErrNoPermission, executable())
	case err != nil:
		return nil, fmt.Errorf("capturing on %s: %w", name, err)
	}
	l := &Live{fd: fd, name: name, pool: pool{read: liveBlock}}
	l.message.Iov, l.message.Control = &l.data, &l.oob[0]
	l.message.SetIovlen(1)
	l.message.Name = (*byte)(unsafe.Pointer(&l.from))
	if err := l.set(i, o.Promiscuous); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("capturing on %s: %w", name, err)
	}
	return l, nil
}

func executable() string {
	if path, err := os.Executable(); err == nil {
		return path
	}
	return "rdmadump"
}

// set configures the filter, the buffer, the time stamps and the interface.
func (l *Live) set(i *net.Interface, promiscuous bool) error {
	program, err := bpf.Assemble(liveFilter)
	if err != nil {
		return err
	}
	raw := make([]unix.SockFilter, len(program))
	for at, r := range program {
		raw[at] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	if err := unix.SetsockoptSockFprog(l.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(raw)), Filter: &raw[0]}); err != nil {
		return fmt.Errorf("kernel filter: %w", err)
	}
	if unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, liveBuffer) != nil {
		unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, liveBuffer) // the system limits the size of this buffer
	}
	l.gather = liveGatherShort
	if granted, err := unix.GetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil && granted >= liveBuffer {
		l.gather = liveGather
	}
	if err := unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return fmt.Errorf("nanosecond times: %w", err)
	}
	if err := unix.SetsockoptInt(l.fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
		return fmt.Errorf("VLAN tags: %w", err)
	}
	timeout := unix.NsecToTimeval(liveTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(l.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return fmt.Errorf("timeout: %w", err)
	}
	if i.Flags&net.FlagLoopback != 0 { // each frame leaves and arrives; before Linux 4.20 it is seen twice
		unix.SetsockoptInt(l.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	}
	if promiscuous {
		request := &unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_PROMISC}
		if err := unix.SetsockoptPacketMreq(l.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, request); err != nil {
			return fmt.Errorf("promiscuous mode: %w", err)
		}
	}
	all := uint16(unix.ETH_P_ALL)
	return unix.Bind(l.fd, &unix.SockaddrLinklayer{Protocol: all<<8 | all>>8, Ifindex: i.Index})
}

// These values of the filter have no names in package unix.
const (
	liveRoCEv1     = 0x8915 // EtherType
	liveMACControl = 0x8808 // EtherType
	liveRoCEv2     = 4791   // UDP port
	liveVXLAN      = 4789
)

// liveFilter passes RoCEv1, TCP, RoCEv2 in either direction of port 4791, and the frames that may
// contain them: VLAN tags, VXLAN, GRE, IPv6 with extension headers, and IP fragments. It also passes
// MAC control frames, which pause a link.
var liveFilter = []bpf.Instruction{
	bpf.LoadAbsolute{Off: 12, Size: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: liveRoCEv1, SkipTrue: 26},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_8021Q, SkipTrue: 25},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_8021AD, SkipTrue: 24},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: liveMACControl, SkipTrue: 23},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 12},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IP, SkipTrue: 20},
	bpf.LoadAbsolute{Off: 23, Size: 1}, // IPv4: protocol
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 19},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_GRE, SkipTrue: 18},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 16},
	bpf.LoadAbsolute{Off: 20, Size: 2}, // flags and fragment offset
	bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: 15},
	bpf.LoadMemShift{Off: 14},
	bpf.LoadIndirect{Off: 14, Size: 2}, // UDP source port
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: liveRoCEv2, SkipTrue: 12},
	bpf.LoadIndirect{Off: 16, Size: 2}, // UDP destination port
	bpf.Jump{Skip: 7},
	bpf.LoadAbsolute{Off: 20, Size: 1}, // IPv6: next header; this is instruction 18
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 8},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 6},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 6}, // extension headers
	bpf.LoadAbsolute{Off: 54, Size: 2},                                     // UDP source port
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: liveRoCEv2, SkipTrue: 4},
	bpf.LoadAbsolute{Off: 56, Size: 2}, // UDP destination port
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: liveRoCEv2, SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: liveVXLAN, SkipTrue: 1},
	bpf.RetConstant{Val: 0},
	bpf.RetConstant{Val: liveFrame},
}

// These are the times that ReadBatch gives further frames to arrive after the first one. Without them, most batches would
// have one frame, and passing them on costs more than the frames. The kernel keeps the frames until then: if it granted
// the whole buffer, those of the longer time fit into it at 100 Gbit/s.
const (
	liveGather      = 5 * time.Millisecond
	liveGatherShort = 2 * time.Millisecond
)

// ReadBatch waits for a frame and also returns the frames that come shortly after it. See [Source].
func (l *Live) ReadBatch(ctx context.Context, b *Batch) error {
	b.begin()
	if l.block == nil || len(l.block.buf)-l.block.end < liveSlot {
		if l.block != nil {
			l.block.release()
		}
		l.block = l.pool.get()
		l.block.end = 0
	}
	gathered := false
	for l.failed == nil && len(b.Frames) < maxBatch && len(l.block.buf)-l.block.end >= liveSlot {
		n := len(b.Frames)
		if n == 0 && ctx.Err() != nil {
			return io.EOF
		}
		wait := 0
		if n > 0 {
			wait = unix.MSG_DONTWAIT
		}
		err := l.receive(&b.Frames[:n+1][n], wait)
		switch {
		case err == nil:
			b.Frames = b.Frames[:n+1]
			continue
		case err != unix.EAGAIN && err != unix.EINTR:
			if err == unix.ENETDOWN {
				err = errors.New("the interface went down or was removed")
			}
			l.failed = &BrokenError{Name: l.name, Frames: l.frames, Err: err}
			continue
		case n == 0:
			continue
		case !gathered:
			gathered = true
			time.Sleep(l.gather)
			continue
		}
		break
	}
	if len(b.Frames) == 0 {
		return l.failed
	}
	b.hold(l.block)
	return nil
}

// receive reads one frame. It calls recvmsg directly because unix.Recvmsg allocates.
func (l *Live) receive(f *Frame, flags int) error {
	space := l.block.buf[l.block.end:][:liveSlot]
	l.data.Base = &space[vlanTagLen]
	l.data.SetLen(liveFrame)
	l.message.SetControllen(len(l.oob))
	l.message.Namelen = unix.SizeofSockaddrLinklayer
	got, _, errno := unix.Syscall(unix.SYS_RECVMSG, uintptr(l.fd), uintptr(unsafe.Pointer(&l.message)), uintptr(flags|unix.MSG_TRUNC))
	if errno != 0 {
		return errno
	}
	length := int(got)
	data := space[vlanTagLen:][:min(length, liveFrame)]
	l.block.end += vlanTagLen + len(data)
	f.Time = time.Now().UnixNano()
	if tag, tagged := l.ancillary(l.oob[:l.message.Controllen], f); tagged && len(data) >= 12 { // restore the VLAN tag that the kernel removed
		copy(space, data[:12])
		data, length = space[:vlanTagLen+len(data)], length+vlanTagLen
		binary.BigEndian.PutUint32(data[12:], tag)
	}
	l.frames++
	f.Options, f.Section, f.Heading = nil, nil, liveHeading(l.from.Pkttype)
	f.Number, f.LinkType, f.Data, f.Length = l.frames, LinkEthernet, data[:len(data):len(data)], length
	return nil
}

// liveHeading returns whether the computer received or sent a frame, by the packet type that the kernel gives.
func liveHeading(kind uint8) Heading {
	switch kind {
	case unix.PACKET_HOST, unix.PACKET_OTHERHOST:
		return Received
	case unix.PACKET_OUTGOING:
		return Sent
	}
	return HeadingUnknown
}

// ancillary decodes the time and the VLAN tag that the kernel delivers as control messages. The tag
// is returned as on the wire, TPID before TCI.
func (l *Live) ancillary(oob []byte, f *Frame) (tag uint32, tagged bool) {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return tag, tagged
		}
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})):
			f.Time = (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		case h.Level == unix.SOL_PACKET && h.Type == unix.PACKET_AUXDATA && len(data) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})):
			aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&data[0]))
			if aux.Status&unix.TP_STATUS_VLAN_VALID != 0 {
				tpid := uint32(unix.ETH_P_8021Q)
				if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
					tpid = uint32(aux.Vlan_tpid)
				}
				tag, tagged = tpid<<16|uint32(aux.Vlan_tci), true
			}
		}
		oob = rest
	}
	return tag, tagged
}

// Dropped returns the number of packets that the kernel dropped because the buffer was full.
func (l *Live) Dropped() uint64 {
	if stats, err := unix.GetsockoptTpacketStats(l.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		l.dropped += uint64(stats.Drops) // reading the kernel's counter resets it
	}
	return l.dropped
}

// Progress returns 0, 0, because a live capture has no end.
func (l *Live) Progress() (read, total int64) { return 0, 0 }

// Close ends the capture.
func (l *Live) Close() error { return unix.Close(l.fd) }
