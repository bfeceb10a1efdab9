package export

import (
	"slices"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// With several capture points, a packet has a frame at each of them. What a packet carries is known when its last
// frame is dissected. Earlier frames of the packet wait for that, and all frames after them wait, too, so that the
// times in the file are in order.

// waitingFrames are frames that wait, in their order.
type waitingFrames struct {
	frames []*waitingFrame
	of     map[sighting][]*waitingFrame // those whose packet did not come to its last point yet
	bytes  int
}

// waitingFrame is a frame that waits.
type waitingFrame struct {
	frame   capture.Frame
	seen    capture.Seen
	number  uint32 // interface
	data    []byte // bytes to write
	comment string
	known   bool // data and comment are set
	left    bool // the packet is not written
}

// sighting identifies a packet: where it was seen first.
type sighting struct {
	point  int
	number int64
}

// maxWaiting is the number of bytes that may wait. If there are more, the oldest frames are written without a
// comment.
const maxWaiting = 64 << 20

// waitingCost is the memory of a frame that waits, without its bytes.
const waitingCost = 256

// cost returns the number of bytes that count against the limit.
func (w *waitingFrame) cost() int { return len(w.data) + len(w.frame.Options) + waitingCost }

// add adds a frame that can be written.
func (q *waitingFrames) add(f *capture.Frame, number uint32, data []byte, comment string) *waitingFrame {
	w := &waitingFrame{frame: *f, number: number, data: slices.Clone(data), comment: comment, known: true}
	w.frame.Data, w.frame.Options, w.frame.Seen = nil, slices.Clone(f.Options), nil
	q.frames = append(q.frames, w)
	q.bytes += w.cost()
	return w
}

// wait adds a frame of a packet that did not come to its last point yet.
func (q *waitingFrames) wait(f *capture.Frame, number uint32) {
	w := q.add(f, number, f.Data, "")
	w.frame.Data, w.seen, w.known = w.data, *f.Seen, false
	w.frame.Seen = &w.seen
	if q.of == nil {
		q.of = map[sighting][]*waitingFrame{}
	}
	of := sighting{f.Seen.SentPoint, f.Seen.SentNumber}
	q.of[of] = append(q.of[of], w)
}

// copies completes the earlier frames of a packet.
func (e *Packets) copies(f *capture.Frame, p *record.Packet, at wiremap.StreamOffset, wanted bool) error {
	of := sighting{f.Seen.SentPoint, f.Seen.SentNumber}
	list := e.queue.of[of]
	delete(e.queue.of, of)
	for _, w := range list {
		if w.known, w.left = true, !wanted; !wanted {
			continue
		}
		own := w.frame.Number
		w.frame.Number = f.Number // equal packets are rewritten equally
		data, comment, err := e.content(&w.frame, p, at)
		if err != nil {
			return err
		}
		if w.frame.Number, w.comment = own, comment; e.Rewrite != nil {
			w.data = slices.Clone(data)
		}
	}
	return nil
}

// release writes the frames that need not wait any more. If more than most bytes wait, it also writes those that
// do.
func (e *Packets) release(most int) error {
	q := &e.queue
	n := 0
	for ; n < len(q.frames); n++ {
		w := q.frames[n]
		if !w.known {
			if q.bytes <= most {
				break
			}
			if err := e.force(w); err != nil {
				return err
			}
		}
		q.frames[n] = nil
		q.bytes -= w.cost()
		if w.left {
			continue
		}
		if err := e.write(w.number, &w.frame, w.data, w.comment); err != nil {
			return err
		}
	}
	if q.frames = q.frames[n:]; len(q.frames) == 0 {
		q.frames = nil
	}
	return nil
}

// force completes a frame of which nothing else is known.
func (e *Packets) force(w *waitingFrame) (err error) {
	of := sighting{w.seen.SentPoint, w.seen.SentNumber}
	if e.queue.of[of] = slices.DeleteFunc(e.queue.of[of], func(o *waitingFrame) bool { return o == w }); len(e.queue.of[of]) == 0 {
		delete(e.queue.of, of)
	}
	none := &record.Packet{Number: w.frame.Number, Time: record.Time(w.frame.Time)}
	if w.known, w.left = true, e.Wants != nil && !e.Wants(none); w.left {
		return nil
	}
	if e.Rewrite != nil {
		data, err := e.Rewrite(&w.frame, none, wiremap.StreamOffset{})
		w.data = slices.Clone(data)
		return err
	}
	return nil
}
