// Package synth makes synthetic RDMA storage connections, frame by frame: RoCEv2 over
// IPv4 or IPv6, and iWARP over TCP, carrying RPC-over-RDMA. By default, everything in
// the frames is what two healthy kernels would send: PSNs, sequence numbers,
// checksums, ICRCs, credits and chunk lists. A caller can change each of these. Tests
// violate one rule at a time with package synth, and make floods of connections.
// Authors of programs that read captures can write the frames as pcap or pcapng.
//
// A [Wire] records frames and has a clock. A [Conn] on it has two ends, each a [Side]
// that sends what an RDMA requester or responder sends:
//
//	w := synth.New()
//	c := w.RoCE(synth.Options{})                 // or w.IWARP
//	c.Connect()
//	c.Client.RPC(synth.Null(), synth.NullReply())
//	c.Disconnect(c.Client)
//	w.WritePcapng(file)
//
// Callers can combine the methods of several layers. [Side.RPC] sends everything that
// belongs to one RPC. [Side.Call], [Side.Pull], [Side.Push] and [Side.Reply] are its
// steps, with a [Call] and a [Reply] in which every field can be set. [Side.Send],
// [Side.Read], [Side.Write], [Side.Ack] and similar methods are the work requests
// below. [Side.Packet], [Side.Segment], [Side.FPDU] and [Side.TCP] send single packets.
// A conversation that is written for one transport also runs on the other.
//
// A method panics if the transport cannot send what the caller asks for (an Immediate on
// iWARP, a CM message on TCP). The package has no global state and uses no random
// numbers: the same program makes the same bytes.
package synth

import (
	"slices"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/rocev2"
)

// Frame is one frame on the wire.
type Frame struct {
	Time     int64  // nanoseconds since 1970-01-01 00:00 UTC
	LinkType uint16 // number in tcpdump's registry: 1 is Ethernet, 101 is raw IP
	Length   int    // bytes on the wire; Data is shorter if the frame is truncated
	Data     []byte // the captured bytes, which no other frame shares
	From     *Side  // the sender; nil for a frame of [Wire.Other]
}

// The link types that a connection can use.
const (
	LinkEthernet uint16 = 1
	LinkRaw      uint16 = 101
)

// Epoch is when the clock of a new Wire starts: 2024-01-01 00:00:00 UTC.
const Epoch = int64(1704067200e9)

// Wire records frames in order and has a clock. [New] makes one.
type Wire struct {
	// Frames are the recorded frames, in order. Code that changes this slice must make a
	// new one, because [Side.Send] and similar methods return parts of it.
	Frames []*Frame
	// Now is the time of the next frame, and Step is added to it for each frame.
	Now  int64
	Step time.Duration
	// Sink, if not nil, receives the frames, which are not recorded. Floods use it to save
	// memory. The frame is valid until Sink returns.
	Sink func(*Frame)
	// Established, if not nil, is called at the end of [Conn.Connect]. It can send the first
	// messages of each connection.
	Established func(*Conn)

	conns  int    // number of connections so far; it makes their addresses and QPNs distinct
	xid    uint32 // the last XID that was chosen for a Call
	arena  []byte // memory for the data of frames
	pool   []Frame
	reused Frame // the frame that is passed to Sink

	// Memory for building frames, so that a flood does not allocate for each frame.
	buf     gopacket.SerializeBuffer
	packet  rocev2.Packet
	ip4     layers.IPv4
	ip6     layers.IPv6
	udp     layers.UDP
	tcp     layers.TCP
	segment []byte
}

// New returns an empty Wire. Its clock starts at [Epoch] and advances by one microsecond
// for each frame.
func New() *Wire {
	return &Wire{Now: Epoch, Step: time.Microsecond, buf: gopacket.NewSerializeBufferExpectedSize(128, 9000)}
}

// Advance advances the clock, or sets it back if d is negative.
func (w *Wire) Advance(d time.Duration) { w.Now += int64(d) }

// add records a frame and returns it, or nil if there is a Sink.
func (w *Wire) add(link uint16, data []byte, from *Side) *Frame {
	f := &w.reused
	if w.Sink == nil {
		if len(w.pool) == 0 {
			w.pool = make([]Frame, 256)
		}
		f, w.pool = &w.pool[0], w.pool[1:]
		data = w.keep(data)
		w.Frames = append(w.Frames, f)
	}
	*f = Frame{w.Now, link, len(data), data, from}
	w.Now += int64(w.Step)
	if w.Sink != nil {
		w.Sink(f)
	}
	return f
}

// keep copies data into the arena.
func (w *Wire) keep(data []byte) []byte {
	if len(w.arena) < len(data) {
		w.arena = make([]byte, max(1<<18, len(data)))
	}
	kept := w.arena[:len(data):len(data)]
	w.arena = w.arena[len(data):]
	copy(kept, data)
	return kept
}

// since returns the frames from index mark on. Appending to the returned slice does not
// change the Wire.
func (w *Wire) since(mark int) []*Frame { return slices.Clip(w.Frames[mark:]) }

// Last returns the frame that was recorded last.
func (w *Wire) Last() *Frame { return w.Frames[len(w.Frames)-1] }

// Other records a copy of data as a frame that belongs to no connection.
func (w *Wire) Other(link uint16, data []byte) *Frame { return w.add(link, data, nil) }

// The methods below imitate the network and the capture. All except Retransmit change recorded
// frames and do not advance the clock.

// Retransmit records copies of frames at the current time, like a retransmission.
func (w *Wire) Retransmit(frames ...*Frame) []*Frame {
	mark := len(w.Frames)
	for _, f := range frames {
		w.add(f.LinkType, f.Data, f.From)
	}
	return w.since(mark)
}

// Drop removes frames.
func (w *Wire) Drop(frames ...*Frame) {
	w.Keep(func(f *Frame) bool { return !slices.Contains(frames, f) })
}

// Keep removes all frames for which wanted returns false. Keeping the frames of one side
// imitates a capture of one direction.
func (w *Wire) Keep(wanted func(*Frame) bool) {
	kept := make([]*Frame, 0, len(w.Frames))
	for _, f := range w.Frames {
		if wanted(f) {
			kept = append(kept, f)
		}
	}
	w.Frames = kept
}

// Duplicate inserts a copy of a frame at the given duration after it, in the order of
// time.
func (w *Wire) Duplicate(f *Frame, later time.Duration) *Frame {
	c := *f
	c.Data = w.keep(f.Data)
	w.insert(&c, f.Time+int64(later))
	return &c
}

// Delay moves a frame to a later time, in the order of time.
func (w *Wire) Delay(f *Frame, by time.Duration) {
	w.Drop(f)
	w.insert(f, f.Time+int64(by))
}

// insert inserts a frame after the last frame that is not later.
func (w *Wire) insert(f *Frame, at int64) {
	i := len(w.Frames)
	for i > 0 && w.Frames[i-1].Time > at {
		i--
	}
	f.Time = at
	w.Frames = slices.Insert(slices.Clone(w.Frames), i, f)
}

// Swap exchanges the positions and times of two frames.
func (w *Wire) Swap(a, b *Frame) {
	w.Frames = slices.Clone(w.Frames)
	i, j := slices.Index(w.Frames, a), slices.Index(w.Frames, b)
	w.Frames[i], w.Frames[j] = b, a
	a.Time, b.Time = b.Time, a.Time
}

// Truncate truncates all frames to a snapshot length in bytes.
func (w *Wire) Truncate(snaplen int) {
	for _, f := range w.Frames {
		f.Truncate(snaplen)
	}
}

// Truncate truncates the captured data of the frame to at most snaplen bytes.
func (f *Frame) Truncate(snaplen int) { f.Data = f.Data[:min(len(f.Data), snaplen)] }

// Corrupt flips bits of the frame. Bit 0 is the first; negative numbers count from the
// end, and bit -1 is part of the ICRC, or of the last FPDU's CRC. In a TCP segment, the
// checksums are corrected, because the CRCs exist for errors that checksums miss.
func (f *Frame) Corrupt(bits ...int) {
	for _, bit := range bits {
		if bit < 0 {
			bit += 8 * len(f.Data)
		}
		f.Data[bit/8] ^= 0x80 >> (bit % 8)
	}
	if f.From != nil && f.From.Conn.iwarp && len(f.Data) == f.Length {
		fixChecksum(f.Data[len(f.From.link):])
	}
}
