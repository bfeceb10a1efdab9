package transaction

import (
	"github.com/rdmadump/rdmadump/dissect/internal/rdma"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
)

// For who describes packets: which procedure a Reply answers, and the Sends that
// the packet at hand ended.

// Asked is what a Call asked for, as far as its Reply needs it to be read.
type Asked struct {
	Known                       bool
	Program, Version, Procedure uint32
	Service                     oncrpc.Service
	Control                     bool // RPCSEC_GSS makes or ends a context with it
}

// Guarded is what a Reply answers whose Call is under RPCSEC_GSS, or the server's.
type Guarded struct {
	XID   uint32
	Asked Asked
}

// Said is a Send that is whole.
type CompletedSend struct {
	Data   []byte // what was captured of it, from its start
	Length int64  // bytes that it had
	Asked  Asked  // of a Reply: its Call
}

// asked is what a transaction is about. A Reply without Call whose results read as
// those of a COMPOUND is taken as one.
func (x *txn) asked() Asked {
	p := x.procedure
	if !p.known && x.rec.Call == nil && len(x.rec.Operations) > 0 {
		p = procedure{known: true, program: nfs.ProgramNFS, version: 4, procedure: nfs.ProcedureCompound}
	}
	return Asked{p.known, p.program, p.version, p.procedure, x.gss, x.control}
}

// say keeps a Send that is whole until the packet at hand has been described.
func (t *Table) keepSend(m *message) {
	s := CompletedSend{Length: m.Length}
	if x, _ := t.tagged(m.Tag); x != nil {
		s.Asked = x.asked()
	}
	at := len(t.completedData)
	t.completedData = append(t.completedData, m.data...)
	s.Data = t.completedData[at:len(t.completedData):len(t.completedData)] // stays where it is when words moves on
	t.completed = append(t.completed, s)
}

// Said are the Sends that became whole since it was asked last, in order, where
// Options want them. They are good until the next packet.
func (t *Table) CompletedSends() []CompletedSend {
	said := t.completed
	t.completed, t.completedData = t.completed[:0], t.completedData[:0]
	if cap(t.completedData) > 1<<20 { // what is handed out stays its own
		t.completedData = nil
	}
	return said
}

// Open is what the Call of a connection asked that has this XID and no Reply yet.
// It is not known when both sides have one.
func Open(c *rdma.Conn, xid uint32) (a Asked) {
	cs, ok := c.Follower().(*connState)
	if !ok {
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

// AskedBy is what the Call asked that a tag belongs to.
func (t *Table) AskedBy(tag rdma.Tag) (a Asked) {
	if x, _ := t.tagged(tag); x != nil {
		a = x.asked()
	}
	return a
}

// guards notes that a Reply has come that is not to be read as results of NFSv4
// in plain: its Call is under RPCSEC_GSS, or the server's.
func (t *Table) noteGuarded(x *txn) {
	if x.gss != 0 || x.procedure.known && nfs.IsCallback(x.procedure.program) {
		t.guarded = append(t.guarded, Guarded{uint32(x.rec.XID), x.asked()})
	}
}

// Guarded are the Replies under RPCSEC_GSS, and to the server's Calls, that came since it was asked last, where
// Options want them, and that of o, which may be one that comes again. They are good
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
