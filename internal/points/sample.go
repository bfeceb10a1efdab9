package points

import (
	"context"
	"io"
	"math"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The first pass reads all files, and remembers the times of some packets: those whose keys have certain
// bits that are zero. Points sample the same packets, because they have the same keys.

// twinsWithin is the maximum time between the two copies of a packet in the capture of a mirror port of
// both directions, in nanoseconds.
const twinsWithin = 1e6

// sample is a packet at one source.
type sample struct {
	first, second int64 // times of the first two copies; second is 0 if there is one
	number        int64 // number of the first frame
	dir           int32
	copies        int32
	id            uint16
	varied        bool // the copies do not have the same IP identification
}

// sampleBytes is the memory that a sample takes in its map.
const sampleBytes = 96

// piece is one file of a source.
type piece struct {
	file        int
	base        int64 // number of frames in the files of the source before it
	first, last int64 // times of its earliest and its latest frame
	afterGap    bool  // frames between the file before and this one may be missing
}

// source is one interface of one file, or of the files of a series. It has its own clock.
type source struct {
	file         int     // index of the first file
	pieces       []piece // its files, in the order of their times
	origin       int     // index of the interface in the file
	name         string
	link         capture.LinkType
	snap         uint32
	samples      map[uint64]sample
	began        int64          // time of the first frame
	first, last  int64          // times of the earliest and the latest frame
	spans        []capture.Span // times on the reference clock that the files cover
	point        int            // index of the point
	frames       int64
	network      int       // usual offset of the network header, in bytes
	v6           bool      // the usual network header is that of IPv6
	resolution   int64     // of times, in nanoseconds
	disorder     int64     // longest time by which a frame is earlier than one before it, in nanoseconds
	icrcs        int       // verified ICRCs
	badICRCs     int       // the number of bad ones
	unchecked    bool      // ICRCs prove nothing, because most of them are bad
	cut          [2]int64  // packets that have no key because too few of their bytes were captured; see kindOfCut
	ipSums       checksums // of IPv4 headers
	udpSums      checksums // of RoCEv2 packets
	cutDir       int32     // direction of the latest one
	destinations map[int32]destination
	mirror       map[int32]bool // directions whose packets appear twice
	strays       map[int32]bool // directions of which a few packets came to the source, although the others do not pass it
	jumps        []jump         // of its clock: the samples have settled times
	chain        []*clock       // to the clock of the root, in this order
	root         *source        // the source whose clock it has: the reference, or another one if it shares no packets with those of the reference
	position     position
	oneWay       bool // it has no pair of hosts of which both send
	leftOut      bool // its packets are not used
	drops        bool // its file says that packets were dropped
	shares       bool // it has packets in common with another source, however few
}

// and returns the sample with the copies of a later file.
func (p sample) and(later sample) sample {
	if p.copies == 1 {
		p.second, p.varied = later.first, p.id != later.id
	}
	p.copies += later.copies
	return p
}

// absorb adds a source that continues this one, after a number of frames. The other source is not used afterwards: it has no samples any more.
func (src *source) absorb(other *source, base int64) {
	src.file = min(src.file, other.file)
	for _, next := range other.pieces {
		next.base += base
		src.pieces = append(src.pieces, next)
	}
	for key, x := range other.samples {
		x.number += base
		if before, known := src.samples[key]; known {
			x = before.and(x)
		}
		src.samples[key] = x
	}
	src.frames += other.frames
	src.first, src.last = min(src.first, other.first), max(src.last, other.last)
	if src.network < 0 {
		src.network, src.v6 = other.network, other.v6
	}
	src.resolution, src.disorder = max(src.resolution, other.resolution), max(src.disorder, other.disorder)
	src.drops = src.drops || other.drops
	src.icrcs += other.icrcs
	src.badICRCs += other.badICRCs
	src.unchecked = 2*src.badICRCs > src.icrcs
	src.ipSums.verified += other.ipSums.verified
	src.ipSums.bad += other.ipSums.bad
	src.udpSums.verified += other.udpSums.verified
	src.udpSums.bad += other.udpSums.bad
	for i, n := range other.cut {
		if src.cut[i] += n; n > 0 {
			src.cutDir = other.cutDir
		}
	}
	for dir, to := range other.destinations {
		if d := src.destinations[dir]; d.usual == to.usual {
			to.same, to.others, to.several = to.same+d.same, to.others+d.others, to.several || d.several
			src.destinations[dir] = to
		} else if d.same+d.others == 0 {
			src.destinations[dir] = to
		} else {
			d.several = true
			src.destinations[dir] = d
		}
	}
	src.position.add(&other.position)
	other.samples = nil
}

// cover sets the times on the reference clock that the files cover. Between two files of a series nothing is missing, unless a
// file is, or there is a pause.
func (src *source) cover() {
	for i, f := range src.pieces {
		number := int64(math.MaxInt64) // of its last frame
		if i+1 < len(src.pieces) {
			number = src.pieces[i+1].base
		}
		first, last := src.time(f.base+1, f.first), src.time(number, f.last)
		if n := len(src.spans); n > 0 && !f.afterGap && f.first-src.pieces[i-1].last < leastQuiet {
			src.spans[n-1].Last = max(src.spans[n-1].Last, last)
		} else {
			src.spans = append(src.spans, capture.Span{First: first, Last: last})
		}
	}
}

// checksums are those of a source, of one kind.
type checksums struct{ verified, bad int }

// add counts a checksum that was verified.
func (c *checksums) add(r rocev2.ICRCResult) {
	if r != rocev2.ICRCUnchecked {
		if c.verified++; r == rocev2.ICRCBad {
			c.bad++
		}
	}
}

// of returns the result for one checksum. If more than a tenth is bad, checksums prove nothing: a device or a program
// changed headers without correcting them.
func (c *checksums) of(r rocev2.ICRCResult) rocev2.ICRCResult {
	if 10*c.bad > c.verified {
		return rocev2.ICRCUnchecked
	}
	return r
}

// sampler collects the samples of all sources.
type sampler struct {
	dirs    directions
	eye     eye
	sources []*source
	index   map[[2]int]*source
	mask    uint64 // keys with any of these bits are not sampled
	count   int
	limit   int // maximum number of samples
	seen    sight
}

// maxInterfaces limits the number of interfaces of a file that may be points. Further interfaces of a file
// count as its first.
const maxInterfaces = 8

func newSampler(memory int64) *sampler {
	s := &sampler{index: map[[2]int]*source{}, limit: int(max(memory/2/sampleBytes, 1<<10))}
	s.eye.dirs = &s.dirs
	return s
}

// of returns the source of a frame of a file.
func (s *sampler) of(file int, f *capture.Frame) *source {
	origin := 0
	if f.From != nil {
		origin = f.From.Index
	}
	at := [2]int{file, origin}
	src := s.index[at]
	if src == nil {
		if first, n := s.sourcesOf(file); n >= maxInterfaces {
			s.index[at] = first
			return first
		}
		src = &source{
			file: file, origin: origin, link: f.LinkType, samples: map[uint64]sample{}, began: f.Time, first: f.Time, last: f.Time, resolution: 1000,
			mirror: map[int32]bool{}, strays: map[int32]bool{}, destinations: map[int32]destination{}, network: -1,
		}
		if f.From != nil {
			src.name, src.snap = f.From.Name, f.From.Snap
			src.resolution = 1
			for i := f.From.Digits; i < 9; i++ {
				src.resolution *= 10
			}
		}
		s.index[at] = src
		s.sources = append(s.sources, src)
	}
	return src
}

// sourcesOf returns the first source of a file, and the number of its sources.
func (s *sampler) sourcesOf(file int) (first *source, n int) {
	for i := len(s.sources) - 1; i >= 0 && s.sources[i].file == file; i-- {
		first = s.sources[i]
		n++
	}
	return first, n
}

// verified is the number of UDP checksums of a source that are verified to find out whether they prove anything.
const verified = 2000

// add takes a frame of a file.
func (s *sampler) add(file int, f *capture.Frame) {
	src := s.of(file, f)
	src.frames++
	src.disorder = max(src.disorder, src.last-f.Time)
	src.first, src.last = min(src.first, f.Time), max(src.last, f.Time)
	v := &s.seen
	s.eye.look(f, v, src.icrcs < positionFrames)
	if v.icrc != rocev2.ICRCUnchecked {
		if src.icrcs++; v.icrc == rocev2.ICRCBad {
			src.badICRCs++
		}
		src.unchecked = 2*src.badICRCs > src.icrcs
	}
	src.ipSums.add(v.ip)
	if src.udpSums.verified < verified {
		src.udpSums.add(s.eye.checkUDP(v))
	}
	if src.network < 0 && v.network >= 0 && v.key != 0 {
		src.network, src.v6 = v.network, v.v6
	}
	if v.icrc == rocev2.ICRCOk && src.icrcs < positionFrames && s.isTaken(src, f, v) {
		src.position.note(v)
	}
	if v.cut {
		src.cut[kindOfCut(v.opcode)]++
		src.cutDir = v.dir
	}
	if v.key == 0 || v.dir < 0 || v.key&s.mask != 0 {
		return
	}
	if to, has := ethernetDestination(f); has {
		src.destinations[v.dir] = src.destinations[v.dir].with(to)
	}
	p, known := src.samples[v.key]
	switch {
	case !known:
		p = sample{first: f.Time, number: f.Number, dir: v.dir, id: v.id}
		s.count++
	case p.copies == 1:
		p.second = f.Time
		p.varied = p.id != v.id
	}
	p.copies++
	src.samples[v.key] = p
	for s.count > s.limit {
		s.thin()
	}
}

// isTaken reports whether the receiver of a RoCE packet with a good ICRC takes it. It drops packets whose Ethernet address,
// IPv4 header or UDP header was damaged in a part that the ICRC does not cover.
func (s *sampler) isTaken(src *source, f *capture.Frame, v *sight) bool {
	switch v.carries {
	case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
	default:
		return false
	}
	if to, has := ethernetDestination(f); has && src.destinations[v.dir].isDamaged(to) {
		return false
	}
	return src.ipSums.of(v.ip) != rocev2.ICRCBad && src.udpSums.of(s.eye.checkUDP(v)) != rocev2.ICRCBad
}

// thin samples half as many keys as before.
func (s *sampler) thin() {
	s.mask = s.mask<<1 | 1
	s.count = 0
	for _, src := range s.sources {
		for key := range src.samples {
			if key&s.mask != 0 {
				delete(src.samples, key)
			}
		}
		s.count += len(src.samples)
	}
}

// read samples a whole file. A file that is damaged counts up to the damage.
func (s *sampler) read(ctx context.Context, file int, from capture.Source) error {
	defer func() {
		for i := len(s.sources) - 1; i >= 0 && s.sources[i].file == file; i-- {
			s.sources[i].position.sequences = nil // No frame follows.
		}
	}()
	for f, err := range capture.All(ctx, from) {
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		s.add(file, f)
	}
	return ctx.Err()
}

// fewTwins is a number of packets that is too small to recognize a mirror port.
const fewTwins = 8

// findMirrors determines the directions of which a source shows each packet twice.
func (src *source) findMirrors() {
	type counts struct{ all, twins int }
	of := map[int32]*counts{}
	for _, p := range src.samples {
		c := of[p.dir]
		if c == nil {
			c = &counts{}
			of[p.dir] = c
		}
		if c.all++; p.isTwin() {
			c.twins++
		}
	}
	mirror := false
	for _, c := range of {
		mirror = mirror || c.all >= fewTwins && 2*c.twins > c.all
	}
	for dir, c := range of {
		src.mirror[dir] = mirror && 4*c.twins > c.all
	}
}

// isTwin reports whether the first two copies are as close as those of a mirror port.
func (p *sample) isTwin() bool {
	gap := p.second - p.first
	return p.copies > 1 && gap >= 0 && gap <= twinsWithin
}

// single reports whether the packet was captured only once at the source, except for the second copy of a
// mirror port.
func (p *sample) single(src *source) bool {
	return p.copies == 1 || p.copies == 2 && src.mirror[p.dir] && p.isTwin()
}
