package testkit

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
)

// damage is a way to damage a capture. The function may change the frames in its first slice, and
// must not change those in the second.
type damage struct {
	name string
	do   func(*rand.Rand, []capture.Frame, []capture.Frame) []capture.Frame
}

var damages = []damage{
	{"flip", flipBits},
	{"flip", flipBits}, // twice as often as others
	{"flip-head", flipHeads},
	{"words", oddWords},
	{"snaplen", cutAll},
	{"cut", cutSome},
	{"duplicate", duplicateSome},
	{"reorder", reorder},
	{"drop", dropSome},
	{"late", joinLate},
	{"splice", spliceFrames},
	{"transplant", transplant},
	{"times", jumpTimes},
	{"link", changeLinks},
	{"lengths", lieLengths},
}

// Damage returns a damaged copy of a capture as a pcapng file, and the names of the damages.
// The result depends only on its arguments. Others are frames of another capture that may be
// mixed in.
func Damage(seed uint64, frames, others []capture.Frame) (file []byte, done string) {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	own := make([]capture.Frame, len(frames))
	for i := range frames {
		own[i] = frames[i]
		own[i].Data = slices.Clone(frames[i].Data)
	}
	var names []string
	if r.IntN(4) > 0 { // otherwise most damaged packets have a bad checksum and are ignored
		names = append(names, "unchecked")
		uncheck(own)
	}
	for range 1 + r.IntN(3) {
		d := &damages[r.IntN(len(damages))]
		names = append(names, d.name)
		own = d.do(r, own, others)
	}
	file = Pcapng(own, uint8([]int{9, 6, 0, 3, 0x80 | 20}[r.IntN(5)]))
	if r.IntN(8) == 0 {
		names = append(names, "file")
		for range 1 + r.IntN(8) {
			file[r.IntN(len(file))] ^= 1 << r.IntN(8)
		}
	}
	if r.IntN(8) == 0 {
		names = append(names, "ends")
		file = file[:r.IntN(len(file))]
	}
	return file, strings.Join(names, ",")
}

// Apply returns a copy of a capture with the damages of these names, one after the other. The result
// depends only on its arguments. Times stay in their order: what changes is which packet has which
// time.
func Apply(seed uint64, frames []capture.Frame, names ...string) []capture.Frame {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	own := slices.Clone(frames)
	for _, name := range names {
		at := slices.IndexFunc(damages, func(d damage) bool { return d.name == name })
		own = damages[at].do(r, own, nil)
	}
	var times []int64
	for i := range own {
		times = append(times, own[i].Time)
	}
	slices.Sort(times)
	for i := range own {
		own[i].Time = times[i]
	}
	return own
}

// uncheck sets every ICRC and TCP checksum to zero, as in a capture taken before the adapter
// fills them in, so that no packet is ignored because of it.
func uncheck(frames []capture.Frame) {
	var l link.Decoder
	for i := range frames {
		switch l.Decode(&frames[i]) {
		case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
			if len(l.Transport) == l.Length && l.Length > 4 {
				clear(l.Transport[l.Length-4:])
			}
		case link.CarriesTCP:
			if len(l.Transport) >= 20 && l.Length == len(l.Transport) {
				clear(l.Transport[16:18])
			}
		}
	}
}

// flipBits flips bits anywhere, between one in 10,000 and one in 10.
func flipBits(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	every := []int{10000, 3000, 1000, 300, 100, 10}[r.IntN(6)]
	for i := range frames {
		data := frames[i].Data
		for bit := r.IntN(2 * every); bit < 8*len(data); bit += 1 + r.IntN(2*every) {
			data[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
	return frames
}

// flipHeads flips bits only in the headers after the link's headers: BTH, RETH,
// RPC-over-RDMA.
func flipHeads(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	for i := range frames {
		if data := frames[i].Data; r.IntN(8) == 0 && len(data) > 42 {
			for range 1 + r.IntN(4) {
				data[42+r.IntN(min(100, len(data)-42))] ^= 1 << r.IntN(8)
			}
		}
	}
	return frames
}

// oddWords writes extreme numbers to the positions of lengths, counts and offsets.
func oddWords(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	words := []uint32{0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 0xfffffffc, 0x00ffffff, 0xffff, 0x10000, 4096, 1 << 30}
	for i := range frames {
		if data := frames[i].Data; r.IntN(10) == 0 && len(data) > 64 {
			at := 42 + 4*r.IntN((len(data)-42)/4-1)
			binary.BigEndian.PutUint32(data[at:], words[r.IntN(len(words))])
		}
	}
	return frames
}

func cutAll(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	n := 14 + r.IntN(200)
	for i := range frames {
		frames[i].Data = frames[i].Data[:min(n, len(frames[i].Data))]
	}
	return frames
}

func cutSome(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	for i := range frames {
		if n := len(frames[i].Data); n > 0 && r.IntN(5) == 0 {
			frames[i].Data = frames[i].Data[:r.IntN(n)]
		}
	}
	return frames
}

func duplicateSome(r *rand.Rand, frames, _ []capture.Frame) (out []capture.Frame) {
	one := 1 + r.IntN(20)
	for i := range frames {
		out = append(out, frames[i])
		if r.IntN(one) == 0 {
			out = append(out, frames[r.IntN(i+1)])
		}
	}
	return out
}

func reorder(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	distance := 1 + r.IntN(1<<r.IntN(10))
	for range len(frames) / (1 + r.IntN(20)) {
		i := r.IntN(len(frames))
		j := min(i+r.IntN(distance+1), len(frames)-1)
		frames[i], frames[j] = frames[j], frames[i]
	}
	return frames
}

func dropSome(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	one := 2 + r.IntN(30)
	return slices.DeleteFunc(frames, func(capture.Frame) bool { return r.IntN(one) == 0 })
}

func joinLate(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	return frames[r.IntN(len(frames)+1):]
}

// spliceFrames inserts frames of another capture.
func spliceFrames(r *rand.Rand, frames, others []capture.Frame) (out []capture.Frame) {
	if len(others) == 0 {
		return frames
	}
	from := others[r.IntN(len(others)):]
	for i := range frames {
		out = append(out, frames[i])
		if i < len(from) && r.IntN(2) == 0 {
			f := from[i]
			f.Time, f.Data = frames[i].Time, slices.Clone(f.Data)
			out = append(out, f)
		}
	}
	return out
}

// transplant copies bytes of one frame to another.
func transplant(r *rand.Rand, frames, others []capture.Frame) []capture.Frame {
	for range 1 + len(frames)/10 {
		if len(frames) == 0 {
			break
		}
		to, from := frames[r.IntN(len(frames))].Data, frames[r.IntN(len(frames))].Data
		if len(others) > 0 && r.IntN(3) == 0 {
			from = others[r.IntN(len(others))].Data
		}
		if len(to) == 0 || len(from) == 0 {
			continue
		}
		at := r.IntN(min(len(to), len(from)))
		copy(to[at:], from[at:][:r.IntN(len(from)-at+1)])
	}
	return frames
}

func jumpTimes(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	jumps := []int64{-1, -1e9, 1e9, 3600e9, -86400e9 * 365 * 20, 86400e9 * 365 * 100, 1<<63 - 1, -1 << 63, 0}
	by := int64(0)
	for i := range frames {
		if r.IntN(20) == 0 {
			by = jumps[r.IntN(len(jumps))]
		}
		frames[i].Time = max(frames[i].Time+by, 0)
	}
	return frames
}

func changeLinks(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	kinds := []capture.LinkType{
		capture.LinkEthernet, capture.LinkRaw, capture.LinkRawBSD, capture.LinkIPv4, capture.LinkIPv6,
		capture.LinkSLL, capture.LinkSLL2, capture.LinkERF, capture.LinkInfiniBand, 147,
	}
	for i := range frames {
		if r.IntN(6) == 0 {
			frames[i].LinkType = kinds[r.IntN(len(kinds))]
			if n := len(frames[i].Data); n > 14 && r.IntN(2) == 0 { // without its Ethernet header, so that the frame may begin with IP
				frames[i].Data, frames[i].Length = frames[i].Data[14:], frames[i].Length-14
			}
		}
	}
	return frames
}

func lieLengths(r *rand.Rand, frames, _ []capture.Frame) []capture.Frame {
	lengths := []int{0, 1, 1500, 1 << 16, 1 << 20, 1<<32 - 1}
	for i := range frames {
		if r.IntN(6) == 0 {
			frames[i].Length = lengths[r.IntN(len(lengths))]
		}
	}
	return frames
}

// Pcapng returns frames as a pcapng file with an interface for each link type. resolution is
// the value of the option if_tsresol.
func Pcapng(frames []capture.Frame, resolution uint8) []byte {
	le := binary.LittleEndian
	var out []byte
	block := func(kind uint32, body []byte) {
		body = append(body, make([]byte, -len(body)&3)...)
		out = le.AppendUint32(out, kind)
		out = le.AppendUint32(out, uint32(len(body)+12))
		out = append(out, body...)
		out = le.AppendUint32(out, uint32(len(body)+12))
	}
	section := le.AppendUint32(nil, 0x1a2b3c4d)
	section = le.AppendUint16(le.AppendUint16(section, 1), 0)
	block(0x0a0d0d0a, le.AppendUint64(section, 1<<64-1))
	interfaces := map[capture.LinkType]uint32{}
	for i := range frames {
		f := &frames[i]
		id, known := interfaces[f.LinkType]
		if !known {
			id = uint32(len(interfaces))
			interfaces[f.LinkType] = id
			body := le.AppendUint16(nil, uint16(f.LinkType))
			body = append(body, 0, 0, 0, 0, 0, 0)
			block(1, append(body, 9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0))
		}
		at := uint64(f.Time)
		switch {
		case resolution >= 0x80:
			at = at/1e9<<(resolution&0x7f) | at%1e9<<(resolution&0x7f)/1e9
		default:
			for n := resolution; n < 9; n++ {
				at /= 10
			}
		}
		body := le.AppendUint32(nil, id)
		body = le.AppendUint32(le.AppendUint32(body, uint32(at>>32)), uint32(at))
		body = le.AppendUint32(le.AppendUint32(body, uint32(len(f.Data))), uint32(f.Length))
		block(6, append(body, f.Data...))
	}
	return out
}

// Printable returns a description of the first character of a text that must not be printed
// to a terminal, such as a control character other than tab and newline. It returns "" if
// there is none.
func Printable(text []byte) string {
	for i, c := range string(text) {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 || c == '\ufffd' {
			return fmt.Sprintf("%q at byte %d of the output", c, i)
		}
	}
	return ""
}
