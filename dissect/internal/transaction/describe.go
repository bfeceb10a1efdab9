package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
)

// Functions for the description of packets: which procedure a Reply answers, and which Sends the
// current packet completed.

// Asked identifies the procedure of a Call, as far as its Reply needs it to be decoded.
type Asked struct {
	Known                       bool
	Program, Version, Procedure uint32
	Service                     oncrpc.Service
	Control                     bool // the Call creates or destroys an RPCSEC_GSS context
}

// Guarded is a Reply whose Call is under RPCSEC_GSS, or is a Call of the server.
type Guarded struct {
	XID   uint32
	Asked Asked
}

// CompletedSend is a complete Send.
type CompletedSend struct {
	Data   []byte // its captured bytes, from the first on
	Length int64  // its length in bytes
	Asked  Asked  // the Call, if this is a Reply
}

// asked returns the procedure of a transaction. A Reply without Call whose results can be decoded
// as those of a COMPOUND is taken for one.
func (x *txn) asked() Asked {
	p := x.procedure
	if !p.known && x.rec.Call == nil && len(x.rec.Operations) > 0 {
		p = x.assumed()
	}
	return Asked{p.known, p.program, p.version, p.procedure, x.gss, x.control}
}

// keepSend keeps a complete Send until the current packet has been described.
func (t *Table) keepSend(m *message) {
	s := CompletedSend{Length: m.Length}
	if x, _ := t.tagged(m.Tag); x != nil {
		s.Asked = x.asked()
	}
	at := len(t.completedData)
	t.completedData = append(t.completedData, m.data...)
	s.Data = t.completedData[at:len(t.completedData):len(t.completedData)] // stays valid when completedData grows
	t.completed = append(t.completed, s)
}

// CompletedSends returns the Sends that were completed since the last call, in order, if Options
// ask for them. They are valid until the next packet.
func (t *Table) CompletedSends() []CompletedSend {
	sends := t.completed
	t.completed, t.completedData = t.completed[:0], t.completedData[:0]
	if cap(t.completedData) > 1<<20 { // the caller keeps the old array
		t.completedData = nil
	}
	return sends
}

// Open returns the procedure of the outstanding Call with this XID. It is unknown if both sides
// have such a Call.
func (t *Table) Open(l rdma.Link, xid uint32) (a Asked) {
	cs := t.stateOf(l)
	if cs == nil {
		return a
	}
	x, other := cs.open[0][xid], cs.open[1][xid]
	if x == nil {
		x, other = other, nil
	}
	if x == nil || other != nil {
		return a
	}
	return x.asked()
}

// AskedBy returns the procedure of the transaction that a tag belongs to.
func (t *Table) AskedBy(tag rdma.Tag) (a Asked) {
	if x, _ := t.tagged(tag); x != nil {
		a = x.asked()
	}
	return a
}

// noteGuarded records a Reply that must not be decoded as NFSv4 results in plain text, because its
// Call is under RPCSEC_GSS or comes from the server.
func (t *Table) noteGuarded(x *txn) {
	if x.gss != 0 || x.procedure.known && nfs.IsCallback(x.procedure.program) {
		t.guarded = append(t.guarded, Guarded{uint32(x.rec.XID), x.asked()})
	}
}

// Guarded returns the Replies under RPCSEC_GSS and to the server's Calls since the last call, if
// Options ask for them, and otherwise the one in o, which may be a retransmission. They are valid
// until the next packet.
func (t *Table) Guarded(o *rdma.Operation) []Guarded {
	if len(t.guarded) == 0 && o != nil && o.Kind == rdma.Send && o.Tag != 0 {
		if x, _ := t.tagged(o.Tag); x != nil {
			t.noteGuarded(x)
		}
	}
	guarded := t.guarded
	t.guarded = t.guarded[:0]
	return guarded
}
