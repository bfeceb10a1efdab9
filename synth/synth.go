// Package synth makes up RDMA storage connections, frame by frame: RoCEv2 over
// IPv4 or IPv6, and iWARP over TCP, carrying RPC-over-RDMA. What it makes is as
// right as a healthy pair of kernels would send it (PSNs, sequence numbers,
// checksums, ICRCs, credits, chunk lists) until it is told otherwise, and
// anything can be told otherwise: that is what it is for. Tests break one rule
// at a time with it, floods are built of it, and whoever writes a tool that
// reads captures can have them as pcap or pcapng.
//
// A [Wire] records frames and holds the clock. A [Conn] on it has two ends, each
// a [Side] that can do what an RDMA requester or responder does:
//
//	w := synth.New()
//	c := w.RoCE(synth.Options{})                 // or w.IWARP
//	c.Connect()
//	c.Client.RPC(synth.Null(), synth.NullReply())
//	c.Disconnect(c.Client)
//	w.WritePcapng(file, synth.Pcapng{})
//
// Three layers can be used together: [Side.RPC] does all that belongs to one
// RPC; [Side.Call], [Side.Pull], [Side.Push] and [Side.Reply] are its steps, with
// a [Call] and a [Reply] whose every field may be wrong; [Side.Send],
// [Side.Read], [Side.Write], [Side.Ack] and their like are the work requests
// below; and [Side.Packet], [Side.Segment], [Side.FPDU] and [Side.TCP] put down
// single packets. A conversation that is written for one transport runs on the
// other.
//
// What cannot be built (an Immediate on iWARP, a CM message on TCP) is a mistake
// in the program that asks for it, and panics. There is no global state, and
// nothing is random: the same program makes the same bytes.
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
