package sent

import "github.com/rdmadump/rdmadump/dissect/record"

// ReadTimes are the times of an RDMA Read at both ends, with several capture points. Times that are not known are 0.
type ReadTimes struct {
	Requested record.Time // the first copy of the request left the requester
	Delivered record.Time // the request came to the responder
	Responded record.Time // the first response left the responder
	Done      record.Time // the requester had got all responses, in order
	OneSided  bool        // a part of the Read was not captured at both points

	next int64 // index of the response that the requester expects
}

// Deliver notes when the request came to the responder, if that is not known yet.
func (t *ReadTimes) Deliver(at record.Time) {
	if t.Delivered == 0 {
		t.Delivered = at
	}
}

// Respond notes that a response left the responder, if that was captured. The packet of which the network made a copy
// left earlier.
func (t *ReadTimes) Respond(p *Path) {
	switch sent := p.Sent; {
	case p.Copy:
	case sent.Packet == 0, p.Passing:
		t.OneSided = true
	case t.Responded == 0 || sent.Time < t.Responded:
		t.Responded = sent.Time
	}
}

// Arrive notes that the response with an index came to the requester. Last is set if no response follows it.
func (t *ReadTimes) Arrive(index int64, last, seen bool, at record.Time) {
	t.OneSided = t.OneSided || !seen
	if index == t.next {
		if t.next++; last {
			t.Done = at
		}
	}
}

// ArriveInOrder notes a part of the response in a TCP stream, which arrives in order: when it left the responder, whether
// that was captured, and whether it was captured when it came to the requester.
func (t *ReadTimes) ArriveInOrder(sent, at record.Time, seen, arrived bool) {
	if t.OneSided = t.OneSided || !seen || !arrived; seen && (t.Responded == 0 || sent < t.Responded) {
		t.Responded = sent
	}
	t.Done = at
}

// Expect notes that the requester requested the response from an index on once more.
func (t *ReadTimes) Expect(index int64) {
	if t != nil && index < t.next {
		t.next, t.Done = index, 0
	}
}
