// Package scrub pseudonymizes the frames of a capture so that they can be shared. It
// replaces file data, names, file handles, credentials and addresses by pseudonyms
// of the same length, and keeps the headers of the RDMA layer. Right checksums are
// right again, and wrong ones are wrong.
//
// Scrubbing takes two runs of a dissector over the same frames. In the first run,
// [Scrubber.Learn] finds the meaning of each byte, and writes the scrubbed contents of
// each message to a temporary file. In the second run, [Scrubber.Frame] returns the
// scrubbed frames. All bytes that were not decoded as structure are replaced: the
// second run copies nothing from the payload of a frame.
package scrub

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/link"
)

// A Scrubber pseudonymizes the sensitive parts of a capture. It is not safe for
// concurrent use.
type Scrubber struct {
	// Report counts the values that were replaced.
	Report Report

	*learned
	key     *key
	message message
	err     error

	waiting map[int64][]waitingValue // by transaction
	xids    map[int64]*xids          // by transaction
	header  rpcrdma.Header
	frame   frame
}

// Report counts the values that were replaced.
type Report struct {
	Packets     int64 // packets that were written
	Names       int64 // names and other strings
	Handles     int64 // file handles
	Credentials int64 // credentials and verifiers
	IDs         int64 // numbers of users and groups
	Opaque      int64 // other opaque values
	Addresses   int64 // addresses in packet headers
	Payload     int64 // bytes of payload of packets; all that are not structure are replaced
}

// String returns the report as one line of text.
func (r *Report) String() string {
	var parts []string
	for _, p := range []struct {
		n         int64
		one, many string
	}{
		{r.Names, "name", "names"},
		{r.Handles, "file handle", "file handles"},
		{r.Credentials, "credential or verifier", "credentials and verifiers"},
		{r.IDs, "number of a user or group", "numbers of users and groups"},
		{r.Opaque, "other opaque value", "other opaque values"},
		{r.Addresses, "address", "addresses"},
	} {
		noun := p.many
		if p.n == 1 {
			noun = p.one
		}
		parts = append(parts, fmt.Sprintf("%d %s", p.n, noun))
	}
	return fmt.Sprintf("%s; replaced: %s, and all data in %s of payload", record.Plural(r.Packets, "packet"), strings.Join(parts, ", "), record.Plural(r.Payload, "byte"))
}

// waitingValue is a string that was moved in a chunk of its own. Its bytes are not
// known yet.
type waitingValue struct {
	reducedValue
	reply bool
}

// New returns a Scrubber whose pseudonyms depend on a secret of any length. It keeps
// the scrubbed messages in file, which must be empty and belongs to the caller.
func New(secret []byte, file *os.File, tunnels ...link.Tunnel) *Scrubber {
	s := &Scrubber{learned: newLearned(file), key: newKey(secret), waiting: map[int64][]waitingValue{}, xids: map[int64]*xids{}}
	s.message = message{key: s.key, report: &s.Report}
	s.frame.s, s.frame.link.Tunnels, s.frame.check.Tunnels = s, tunnels, tunnels
	return s
}

// maxOpen limits the number of transactions whose state is in memory.
const maxOpen = 1 << 16

// Learn returns the handler for the first run.
func (s *Scrubber) Learn() dissect.Handler {
	return dissect.Handler{Observer: learner{s}, Transaction: func(t *record.Transaction) error {
		delete(s.waiting, t.ID)
		delete(s.xids, t.ID)
		return s.failed()
	}, Connection: func(c *record.Connection) error {
		if c.UpperLayer == "rpcrdma" {
			s.rpc.add(int64(c.ID))
		}
		return s.failed()
	}}
}

// failed returns the first error.
func (s *Scrubber) failed() error {
	if err := s.file.Err(); err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	return s.err
}

// learner learns what packets and messages contain.
type learner struct{ *Scrubber }

// Payload records the contents of a packet or FPDU.
func (s learner) Payload(c *wiremap.Payload) {
	o := owner{send: c.Send, transaction: c.Transaction.Or(0), handle: c.Handle}
	switch {
	case c.Record:
		s.addFPDU(c.StreamID, &fpdu{at: c.At, count: c.Count, owner: o, offset: int64(c.Offset), record: true}, c.Frame)
	case c.Frame != nil:
		s.fpdu(c, o)
	case o.send != 0 || o.transaction != 0:
		s.addPacket(c.StreamID, run{at: c.At, count: 1, stride: int64(c.Bytes), owner: o, offset: int64(c.Offset)})
	}
}

// fpdu records an FPDU and those of its bytes that are structure.
func (s *Scrubber) fpdu(c *wiremap.Payload, o owner) {
	f := fpdu{
		at: c.At, count: c.Count, owner: o, offset: int64(c.Offset), position: c.Position, mpa: c.MPA,
		markers: c.Markers, hasCRC: c.HasCRC, wrongCRC: c.WrongCRC,
	}
	if c.MPA {
		s.addFPDU(c.StreamID, &f, s.mpa(c.Frame))
	} else {
		s.addFPDU(c.StreamID, &f, c.Frame[:structure(c)])
	}
}

// structure returns the number of bytes of an FPDU that are headers.
func structure(c *wiremap.Payload) int {
	b := c.Frame
	if len(b) < iwarp.LengthLen {
		return 0
	}
	ulpdu := b[iwarp.LengthLen:]
	ulpdu = ulpdu[:min(len(ulpdu), int(be.Uint16(b)))]
	var d iwarp.Segment
	if (!c.HasCRC || c.WrongCRC != 0) && !plausible(ulpdu, int(be.Uint16(b))) {
		return iwarp.LengthLen
	}
	if d.Decode(ulpdu) != nil {
		return iwarp.LengthLen + min(len(ulpdu), 2)
	}
	n := iwarp.LengthLen + d.HeaderLength
	switch {
	case d.Tagged:
	case d.Opcode == iwarp.ReadRequest:
		n += min(len(d.Payload), iwarp.ReadRequestLen)
	case d.Opcode == iwarp.Terminate:
		n += terminate(d.Payload)
	}
	return n
}

// plausible reports whether the captured part of a ULPDU can belong to a valid one.
func plausible(ulpdu []byte, length int) bool {
	var d iwarp.Segment
	whole := append(ulpdu[:len(ulpdu):len(ulpdu)], make([]byte, max(length-len(ulpdu), 0))...)
	return d.Decode(whole) == nil && d.Plausible()
}

// terminate returns the number of bytes of a Terminate message that are headers: its
// own, and those that it quotes (RFC 5040 s.4.8).
func terminate(b []byte) int {
	var t iwarp.TerminateHeader
	if t.Decode(b) != nil {
		return 0
	}
	n := iwarp.TerminateLen
	if t.HasDDP {
		if n += iwarp.LengthLen + iwarp.UntaggedLen; t.DDP.Tagged {
			n += iwarp.TaggedLen - iwarp.UntaggedLen
		}
	}
	if t.HasRDMAP {
		n += iwarp.ReadRequestLen
	}
	return min(n, len(b))
}

// mpa returns an MPA Request or Reply Frame with scrubbed private data.
func (s *Scrubber) mpa(b []byte) []byte {
	var m iwarp.MPA
	if m.Decode(b) != nil {
		return b[:min(len(b), iwarp.MPALen)]
	}
	out := slices.Clone(b[:m.Length])
	own := out[len(out)-len(m.PrivateData):]
	s.key.private(own, m.PrivateData)
	return out
}

// Message scrubs a message and records where its bytes are.
func (s learner) Message(r *wiremap.Message) {
	if r.Item {
		s.item(r)
		return
	}
	m := &s.Scrubber.message
	m.stream(r)
	if len(m.in) == 0 {
		return
	}
	at := s.save(m.out, m.known)
	if r.Send != 0 {
		s.addSend(r.Send, at)
	}
	id, known := r.Transaction.Get()
	if !known {
		return
	}
	s.addOverlay(id, r.Segments, at)
	switch {
	case r.Send == 0:
	case len(r.Header) == 0: // TCP or UDP
		if m.known[0] {
			s.add(s.transactions, id)
		}
	case len(m.in) >= 4:
		s.xid(id, r.Send)
	}
	if len(s.waiting) >= maxOpen {
		clear(s.waiting)
	}
	for _, v := range m.reduced {
		if len(s.waiting[id]) < 64 {
			s.waiting[id] = append(s.waiting[id], waitingValue{v, r.Reply})
		}
	}
}

// xids holds the XID of a transaction, and its Sends that are truncated after their XID.
type xids struct {
	xid       uint32
	known     bool
	truncated []int64 // numbers of Sends
}

// xid keeps the XID of a Send of a transaction that is truncated to fewer than 8 bytes,
// if another Send of the transaction has the same XID in a header that was recognized.
// The bytes of such a Send do not show by themselves that it is RPC-over-RDMA.
func (s *Scrubber) xid(id, send int64) {
	m, x := &s.message, s.xids[id]
	if x == nil {
		if len(s.xids) >= maxOpen {
			clear(s.xids)
		}
		x = new(xids)
		s.xids[id] = x
	}
	switch xid := m.word(0); {
	case m.isRDMA:
		if !x.known {
			s.add(s.transactions, id)
		}
		x.xid, x.known = xid, true
	case len(m.in) < 8 && (!x.known || x.xid == xid) && len(x.truncated) < 64:
		x.xid = xid
		x.truncated = append(x.truncated, send)
	}
	if x.known && len(x.truncated) > 0 {
		at := s.save(be.AppendUint32(nil, x.xid), nil)
		for _, send := range x.truncated {
			s.addSend(send, at)
		}
		x.truncated = x.truncated[:0]
	}
}

// item writes the pseudonym of a string that was moved in a chunk of its own.
func (s *Scrubber) item(r *wiremap.Message) {
	id := r.Transaction.Or(0)
	for _, w := range s.waiting[id] {
		if w.reply != r.Reply || w.reply && w.hole != r.Hole || !w.reply && w.position != r.Position || w.length > int64(len(r.Payload)) {
			continue
		}
		value := r.Payload[:w.length]
		if w.path {
			value = s.key.path(value)
			s.Report.Names++
		} else {
			value = s.key.opaque("opaque", value)
			s.Report.Opaque++
		}
		s.addOverlay(id, r.Segments, s.save(value, nil))
	}
}

// Learned completes the first run.
func (s *Scrubber) Learned() error {
	if err := s.finish(); err != nil {
		return fmt.Errorf("scrub: %w", err)
	}
	return s.err
}

// content writes scrubbed bytes of an owner, beginning at an offset. If the owner is
// not known, it writes bytes of the stream otherwise.
func (s *Scrubber) content(to []byte, o owner, offset int64, otherwise stream) {
	switch {
	case o.send != 0:
		s.key.fill(to, stream{"send", o.send, 0}, offset)
		if at := s.planOf(o.send); at != 0 {
			s.copy(to, at, offset)
		}
	case o.transaction != 0:
		s.key.fill(to, stream{"memory", o.transaction, int64(o.handle)}, offset)
		for _, v := range s.reaching(o.transaction, o.handle, offset, offset+int64(len(to))) {
			lo, hi := max(int64(v.Offset), offset), min(after(int64(v.Offset), v.Length), offset+int64(len(to)))
			if lo < hi {
				s.copy(to[lo-offset:hi-offset], v.at, v.from+lo-int64(v.Offset))
			}
		}
	default:
		s.key.fill(to, otherwise, offset)
	}
}

// copy writes the known bytes of a plan, beginning at an offset.
func (s *Scrubber) copy(to []byte, at place, offset int64) {
	if err := s.load(at); err != nil && s.err == nil {
		s.err = err
	}
	p := &s.plan
	if offset < 0 || offset > int64(len(p.out)) {
		return
	}
	out, known := p.out[offset:], p.known[offset:]
	for i := range to[:min(len(to), len(out))] {
		if known[i] {
			to[i] = out[i]
		}
	}
}
