package points

import (
	"slices"

	"github.com/rdmadump/rdmadump/rocev2"
)

// A point is not at a host if the packets that it captured show that something is between them:
//
//   - A host sends its packets in the order of their PSNs. If the first copy of one comes to the point after later packets, then
//     packets were lost or overtaken between the host and the point. Read requests prove nothing: a host requests the rest of a
//     Read once more from a PSN that it has not used before.
//   - A host gives each packet that it sends an IP identification of its own. If a packet is at the point more than once with the
//     same one, and at the next point as well, then the network copied it between the host and the point.
//
// One such packet may be an accident of the capture; few of them are a proof. A point that the packets of some direction
// pass between two other points is not at a host either.

// fewAstray is a number of packets that proves that a point is not at a host.
const fewAstray = 2

// positionFrames is the number of frames of a source that are used: those whose ICRC is verified.
const positionFrames = 20_000

// maxSequences limits the number of sequences of a source.
const maxSequences = 1 << 10

// sequenceKey is a queue pair that receives packets, with requests and responses apart: each have a sequence of PSNs of their own.
type sequenceKey struct {
	flowKey
	requests bool
}

// sequence has the PSNs that came to a point.
type sequence struct {
	seen           psnSet
	first, highest uint32
}

// take takes a packet, and reports whether it came after later packets for the first time.
func (s *sequence) take(psn uint32) (late bool) {
	switch d := rocev2.PSNDelta(psn, s.highest); {
	case d >= flowPSNs/2 || d <= -flowPSNs/2: // The queue pair was used again.
		*s = sequence{first: psn, highest: psn}
	case d > 0:
		s.highest = psn
	default:
		late = !s.seen.has(psn) && rocev2.PSNDelta(psn, s.first) > 0
	}
	s.seen.add(psn)
	return late
}

// position collects the proofs that a source is not at a host.
type position struct {
	sequences map[sequenceKey]*sequence
	late      map[int32]int // by direction: first copies that came after later packets of their sender
}

// add adds the proofs of another file of the same source. Its sequences are not needed any more.
func (p *position) add(other *position) {
	if p.late == nil {
		p.late = map[int32]int{}
	}
	for dir, n := range other.late {
		p.late[dir] += n
	}
}

// note takes a packet that its receiver takes, too.
func (p *position) note(v *sight) {
	info := v.opcode.Info()
	if v.opcode.Transport() != rocev2.RC || info.Kind == rocev2.KindAcknowledge {
		return
	}
	key := sequenceKey{flowKey{v.dir, v.qpn}, info.Request}
	s := p.sequences[key]
	if s == nil {
		if len(p.sequences) >= maxSequences {
			return
		}
		if p.sequences == nil {
			p.sequences, p.late = map[sequenceKey]*sequence{}, map[int32]int{}
		}
		s = &sequence{first: v.psn, highest: v.psn}
		p.sequences[key] = s
	}
	if s.take(v.psn) && info.Kind != rocev2.KindReadRequest {
		p.late[v.dir]++
	}
}

// findBetween determines which points are not at the sender or the receiver of a direction.
func (p *Plan) findBetween() {
	p.between = map[[2]int32]bool{}
	inner := map[int]bool{}
	for _, path := range p.paths {
		for _, point := range path[1 : len(path)-1] {
			inner[point] = true
		}
	}
	for dir, path := range p.paths {
		for _, point := range path {
			late, copied := 0, 0
			if point == path[0] && len(path) > 1 {
				copied = p.copiedBefore(dir, point, path[1])
			}
			for _, src := range p.Points[point].sources {
				late += src.position.late[dir]
			}
			p.between[[2]int32{dir, int32(point)}] = inner[point] || late >= fewAstray || copied >= fewAstray
		}
	}
}

// copiedBefore returns the number of packets of a direction that the first point and the next one captured more than once,
// among those that were sampled. If most copies are at the first point only, its capture made them.
func (p *Plan) copiedBefore(dir int32, first, next int) (copied int) {
	if !p.trusted[[2]int{first, next}] {
		return 0
	}
	all := 0
	for _, a := range p.Points[first].sources {
		for key, x := range a.samples {
			if x.dir != dir || !x.isCopied(a) {
				continue
			}
			if all++; slices.ContainsFunc(p.Points[next].sources, func(b *source) bool {
				y := b.samples[key]
				return y.isCopied(b) && y.id == x.id
			}) {
				copied++
			}
		}
	}
	if 2*copied < all {
		return 0
	}
	return copied
}

// isCopied reports whether a packet was captured twice although its sender sent it once, and the point has no mirror port.
func (p *sample) isCopied(src *source) bool {
	return p.isTwin() && p.id != 0 && !p.varied && !src.mirror[p.dir]
}

// atSender reports whether a point may be at the sender of a direction, and atReceiver whether it may be at the receiver.
func (p *Plan) atSender(dir int32, point int) bool { return !p.between[[2]int32{dir, int32(point)}] }

func (p *Plan) atReceiver(dir int32, point int) bool {
	back := p.dirs.find(p.dirs.list[dir].reversed())
	return back < 0 || !p.between[[2]int32{back, int32(point)}]
}
