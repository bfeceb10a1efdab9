package dissect

import (
	"fmt"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Captures at several points: the frames have capture.Seen, and records name the point of each packet number.

// longestWay is longer than a network holds a packet, in nanoseconds: the machine that captured it later stood still, and when it came is not known.
const longestWay = int64(1e9)

// pathOf returns what the points show of the packet of a frame. What a point between two hosts captured has not arrived, and
// when it was sent is not known; of a packet that was lost afterwards, only this point shows that it was sent.
func pathOf(f *capture.Frame) (p rdma.Path) {
	v := f.Seen
	if v == nil {
		return p
	}
	p.Joined, p.Copy = true, v.Duplicate || v.Fate == capture.FateDuplicated
	p.Arrived = v.ArrivedNumber != 0 && !v.ArrivedBetween && (v.SentNumber == 0 || v.Arrived-v.Sent < longestWay)
	p.Lost = v.Fate == capture.FateLost || v.Fate == capture.FateCorrupted && !p.Arrived
	p.Gone, p.BadChecksum, p.Changed = v.Fate == capture.FateLost, v.BadChecksum, v.Changed
	p.Missing = v.Fate == capture.FateMissing
	p.Early = v.ArrivedNumber == 0 && v.SentNumber != 0 && !p.Lost && !p.Missing
	if p.Passing = v.SentBetween && p.Undelivered(); v.SentNumber != 0 && !v.Changed && (!v.SentBetween || p.Undelivered()) { // What was changed is not what left its sender.
		p.Sent = record.Stamp{Time: record.Time(v.Sent), Packet: record.NumberAt(v.SentPoint, v.SentNumber)}
	}
	if v.SentBetween && v.SentNumber != 0 {
		p.Passed = record.Time(v.Sent)
	}
	return p
}

// seen returns the points that captured the packet of a frame.
func (d *Dissector) seen(f *capture.Frame) *record.Path {
	v, name := f.Seen, d.point
	p := &record.Path{Point: name(v.Point), Key: v.Key}
	if v.SentNumber != 0 {
		p.Seen = append(p.Seen, record.Sighting{Point: name(v.SentPoint), Packet: v.SentNumber, Time: record.Time(v.Sent)})
	}
	if v.ArrivedNumber != 0 {
		p.Seen = append(p.Seen, record.Sighting{Point: name(v.ArrivedPoint), Packet: v.ArrivedNumber, Time: record.Time(v.Arrived)})
	}
	if p.Seen == nil {
		p.Seen = []record.Sighting{{Point: p.Point, Packet: f.Number, Time: record.Time(f.Time)}}
	}
	if v.Fate == capture.FateLost {
		p.LostTo = name(v.ArrivedPoint)
	}
	return p
}

// point returns the name of a capture point.
func (d *Dissector) point(i int) string {
	if i >= 0 && i < len(d.options.Points) {
		return d.options.Points[i]
	}
	return ""
}

// explain makes the packet that a frame stands for the one that is explained, if a point captured it as [Options.Why].
func (d *Dissector) explain(f *capture.Frame) {
	is := func(point int, number int64) bool {
		return d.options.Why == record.PacketRef{Packet: number, Point: d.point(point)}
	}
	if v := f.Seen; is(v.Point, f.Number) || is(v.SentPoint, v.SentNumber) || is(v.ArrivedPoint, v.ArrivedNumber) {
		d.tracker.Why.Packet = stamp(f).Packet
	}
}

// nameOf returns the name of a packet in an explanation: its number, after the capture point if there are several.
func (d *Dissector) nameOf(packet int64) string {
	number, point := record.SplitNumber(packet)
	if name := d.point(point); name != "" {
		return fmt.Sprintf("#%d@%s", number, record.ShortNames(d.options.Points)(name))
	}
	return fmt.Sprintf("#%d", number)
}

// localize separates packet numbers from capture points in a record.
func localize(r any, points []string) {
	if r, is := r.(interface{ Localize(points []string) }); is {
		r.Localize(points)
	}
}
