package transaction

import (
	"cmp"
	"errors"

	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// Negotiation: the parameters that both sides announce in their private data (RFC 8797).

// negotiation is what the sides of a connection announced.
type negotiation struct {
	private              [2]*record.PrivateData // by side; nil if it is unusable
	seen                 [2]bool                // the private data was captured completely
	badICRC              [2]bool                // it came in a packet with a bad ICRC
	changed              [2]bool                // a retransmission of it has other contents
	newer                [2]bool                // it has another version than 1
	invalidationReported rule.Once              // remote invalidation without negotiation was reported: a responder does it in every Reply
}

// take takes the private data of a side, which is nil if it is unusable, and returns false if it is a copy.
func (n *negotiation) take(s rdma.Side, private *record.PrivateData, badICRC bool) bool {
	if n.seen[s] && (badICRC || !n.badICRC[s]) { // a copy of a message that may have been accepted
		n.changed[s] = n.changed[s] || badICRC == n.badICRC[s] && !equalPrivateData(private, n.private[s])
		return false
	}
	n.private[s], n.seen[s], n.badICRC[s] = private, true, badICRC
	return true
}

// join merges what was announced on another connection; moved maps its sides to the sides of this connection.
func (n *negotiation) join(o *negotiation, moved func(rdma.Side) rdma.Side) {
	n.invalidationReported = n.invalidationReported || o.invalidationReported
	for s := range rdma.Side(2) {
		at := moved(s)
		n.private[at] = cmp.Or(n.private[at], o.private[s])
		n.seen[at], n.changed[at], n.badICRC[at] = n.seen[at] || o.seen[s], n.changed[at] || o.changed[s], n.badICRC[at] || o.badICRC[s]
		n.newer[at] = n.newer[at] || o.newer[s]
	}
}

// Private decodes the private data of a side (RFC 8797).
func (cs *connState) Private(s rdma.Side, data []byte, at record.Stamp, badICRC bool) {
	cs.lookUpService()
	found, ok, err := rpcrdma.FindPrivateData(data)
	var private *record.PrivateData
	if ok {
		private = &record.PrivateData{
			Offset: found.Offset, Version: found.Version, RemoteInvalidation: found.RemoteInvalidation, SendSize: found.SendSize, ReceiveSize: found.ReceiveSize,
		}
	}
	if !cs.agreed.take(s, private, badICRC) {
		return
	}
	cs.agreed.newer[s] = errors.Is(err, rpcrdma.ErrMalformed)
	switch {
	case ok:
		checkPrivate(cs, s, found, at)
		if cs.upper.Private(data) {
			cs.recognized()
		}
	case err != nil:
		cs.report(violation{rule: rule.PrivateDataUnusable, where: rdma.Where{At: at, AtFault: record.Some(s)}}, "%v; the default inline thresholds apply", err)
	}
}

// equalPrivateData reports whether two announcements are equal, or both absent.
func equalPrivateData(a, b *record.PrivateData) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// thresholds returns the inline thresholds of the connection.
func thresholds(cs *connState) record.InlineThresholds {
	client := cs.link.Setup().Opener()
	t := record.InlineThresholds{ClientToServer: inlineThreshold(cs, client), ServerToClient: inlineThreshold(cs, client.Other()), Source: "private_data"}
	if cs.stated(0) == nil || cs.stated(1) == nil {
		t.Source = "default"
	}
	return t
}

// inlineThreshold returns the inline threshold in bytes for messages that a side sends (RFC 8797
// s.4.2, s.5.1). A side without private data counts as one that announces 1024 twice.
func inlineThreshold(cs *connState, s rdma.Side) int {
	sends, takes := rpcrdma.DefaultInline, rpcrdma.DefaultInline
	if p := cs.stated(s); p != nil {
		sends = p.SendSize
	}
	if p := cs.stated(s.Other()); p != nil {
		takes = p.ReceiveSize
	}
	return min(sends, takes)
}

// receiveSize returns the length in bytes of the longest Send that a side accepts, and whether the
// side announced it.
func receiveSize(cs *connState, s rdma.Side) (size int64, stated bool) {
	if p := cs.stated(s); p != nil {
		return int64(p.ReceiveSize), true
	}
	return rpcrdma.DefaultInline, false
}

// negotiated reports whether the handshake and both sides' private data were captured. Only then is
// it known what the sides agreed on.
func (cs *connState) negotiated() bool {
	return cs.link.Setup().Handshake && cs.receivedPrivate(0) && cs.receivedPrivate(1)
}

// receivedPrivate reports whether the private data of a side was captured as its receiver took it. A
// receiver drops a message with a bad ICRC, if the sender has shown that it fills ICRCs in. If the sender repeated the
// message with other private data, it is unknown which of them was accepted. If both sides use a version that this program does not
// know, what they agreed on is in its document (RFC 8797 s.6).
func (cs *connState) receivedPrivate(s rdma.Side) bool {
	a := &cs.agreed
	return a.seen[s] && !(a.newer[0] && a.newer[1]) && !a.changed[s] && !(a.badICRC[s] && cs.fillsICRC(s))
}

// fillsICRC reports whether a side has shown that it fills ICRCs in.
func (cs *connState) fillsICRC(s rdma.Side) bool {
	h := cs.link.Host(s)
	return h != nil && h.FillsICRC
}

// stated returns the private data of a side, or nil if it is unknown or came with a bad ICRC.
func (cs *connState) stated(s rdma.Side) *record.PrivateData {
	if !cs.receivedPrivate(s) {
		return nil
	}
	return cs.agreed.private[s]
}

// remoteInvalidation returns whether both sides support remote invalidation, if that is known.
func remoteInvalidation(cs *connState) record.Opt[bool] {
	if !cs.negotiated() {
		return record.Opt[bool]{}
	}
	return record.Some(supportsInvalidation(cs, 0) && supportsInvalidation(cs, 1))
}

// supportsInvalidation reports whether a side announced support for remote invalidation.
func supportsInvalidation(cs *connState, s rdma.Side) bool {
	p := cs.stated(s)
	return p != nil && p.RemoteInvalidation
}
