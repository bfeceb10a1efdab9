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
	Time     int64  // nanoseconds since 1970 UTC
	LinkType uint16 // as in tcpdump's registry: 1 is Ethernet, 101 raw IP
	Length   int    // bytes on the wire; Data may hold fewer
	Data     []byte // what was captured; the frame's own
	From     *Side  // who sent it; nil when nobody did
}

// The link types that a connection can be put on.
const (
	LinkEthernet uint16 = 1
	LinkRaw      uint16 = 101
)

// Epoch is when the clock of a new Wire starts: 2024-01-01 00:00:00 UTC.
const Epoch = int64(1704067200e9)

// Wire is what a capture sees: frames, in order, and a clock. [New] makes one.
type Wire struct {
	// Frames is what was sent, in order. Whoever edits it directly makes a new
	// slice: what [Side.Send] and its like return are parts of this one.
	Frames []*Frame
	// Now is the time of the next frame, Step how far each moves it.
	Now  int64
	Step time.Duration
	// Sink takes the frames in place of Frames, when it is set: for floods that
	// nobody wants in memory. The frame is the sink's until it returns.
	Sink func(*Frame)

	conns  int    // opened so far: each has numbers of its own
	xid    uint32 // given to the last Call that had none
	arena  []byte // frames are cut from it
	pool   []Frame
	reused Frame // what Sink gets

	// Room to build frames in, so that a flood does not allocate for each.
	buf     gopacket.SerializeBuffer
	packet  rocev2.Packet
	ip4     layers.IPv4
	ip6     layers.IPv6
	udp     layers.UDP
	tcp     layers.TCP
	segment []byte
}

// New returns an empty Wire whose clock stands at [Epoch] and moves by a
// microsecond a frame.
func New() *Wire {
	return &Wire{Now: Epoch, Step: time.Microsecond, buf: gopacket.NewSerializeBufferExpectedSize(128, 9000)}
}

// Advance moves the clock, back when d is negative.
func (w *Wire) Advance(d time.Duration) { w.Now += int64(d) }

// add records what was built, and returns it; nil when there is a Sink.
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

// keep copies bytes into the arena.
func (w *Wire) keep(data []byte) []byte {
	if len(w.arena) < len(data) {
		w.arena = make([]byte, max(1<<18, len(data)))
	}
	kept := w.arena[:len(data):len(data)]
	w.arena = w.arena[len(data):]
	copy(kept, data)
	return kept
}

// since is what was recorded from a mark on; its own slice as far as appending
// goes.
func (w *Wire) since(mark int) []*Frame { return slices.Clip(w.Frames[mark:]) }

// Last is the frame that was recorded last.
func (w *Wire) Last() *Frame { return w.Frames[len(w.Frames)-1] }

// Other records a frame that belongs to no connection, which it copies.
func (w *Wire) Other(link uint16, data []byte) *Frame { return w.add(link, data, nil) }

// What the network and the capture do to frames. All but Again work on what was
// recorded, and leave the clock alone.

// Again sends frames once more, now, as a retransmission does: byte for byte.
func (w *Wire) Again(frames ...*Frame) []*Frame {
	mark := len(w.Frames)
	for _, f := range frames {
		w.add(f.LinkType, f.Data, f.From)
	}
	return w.since(mark)
}

// Drop takes frames off the wire.
func (w *Wire) Drop(frames ...*Frame) {
	w.Keep(func(f *Frame) bool { return !slices.Contains(frames, f) })
}

// Keep takes all frames off the wire but those that a function wants: of one
// side, for a capture that saw one direction only.
func (w *Wire) Keep(wanted func(*Frame) bool) {
	kept := make([]*Frame, 0, len(w.Frames))
	for _, f := range w.Frames {
		if wanted(f) {
			kept = append(kept, f)
		}
	}
	w.Frames = kept
}

// Duplicate puts a copy of a frame on the wire some time after it, between the
// frames of that time.
func (w *Wire) Duplicate(f *Frame, later time.Duration) *Frame {
	c := *f
	c.Data = w.keep(f.Data)
	w.insert(&c, f.Time+int64(later))
	return &c
}

// Delay moves a frame to a later time, between the frames of that time.
func (w *Wire) Delay(f *Frame, by time.Duration) {
	w.Drop(f)
	w.insert(f, f.Time+int64(by))
}

// insert puts a frame behind the last that is no later.
func (w *Wire) insert(f *Frame, at int64) {
	i := len(w.Frames)
	for i > 0 && w.Frames[i-1].Time > at {
		i--
	}
	f.Time = at
	w.Frames = slices.Insert(slices.Clone(w.Frames), i, f)
}

// Swap exchanges two frames; each takes the other's place and time.
func (w *Wire) Swap(a, b *Frame) {
	w.Frames = slices.Clone(w.Frames)
	i, j := slices.Index(w.Frames, a), slices.Index(w.Frames, b)
	w.Frames[i], w.Frames[j] = b, a
	a.Time, b.Time = b.Time, a.Time
}

// Cut cuts all frames to a snapshot length.
func (w *Wire) Cut(snaplen int) {
	for _, f := range w.Frames {
		f.Cut(snaplen)
	}
}

// Cut leaves at most snaplen bytes of the frame in the capture.
func (f *Frame) Cut(snaplen int) { f.Data = f.Data[:min(len(f.Data), snaplen)] }

// Corrupt flips bits of the frame, counted from its first, or backwards from its
// last, which is -1 and part of the ICRC, or of the last FPDU's CRC. Of TCP, the
// checksums are made right again: CRCs are there for what those miss.
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
