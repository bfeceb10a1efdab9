// Package scrub pseudonymizes the frames of a capture so that they can be shared. It
// replaces file data, names, file handles, credentials and addresses by pseudonyms
// of the same length, and keeps the headers of the RDMA layer. Right checksums are
// right again, and wrong ones are wrong.
//
// Scrubbing takes two runs of a dissector over the same frames. In the first run,
// [Scrubber.Learn] decodes what each byte is, and writes the scrubbed contents of
// each message to a temporary file. In the second run, [Scrubber.Frame] returns the
// scrubbed frames. All bytes that were not decoded as structure are replaced: the
// second run copies nothing from the payload of a frame.
package scrub

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
)

// A Scrubber pseudonymizes the sensitive parts of a capture. It is not safe for
// concurrent use.
type Scrubber struct {
	// Report counts the values that were replaced.
	Report Report

	key     *key
	message message
	file    *os.File
	to      *bufio.Writer // writes to file
	end     int64         // length of file
	err     error

	sends   []place             // by number of the Send
	chunks  map[int64]*overlays // by transaction
	flows   map[int64]*flow
	heads   []byte // headers of FPDUs
	waiting map[int64][]waitingValue
	xids    map[int64]*xids // by transaction
	rpc     map[int]bool    // connections that carry RPC-over-RDMA
	header  rpcrdma.Header

	frame  frame
	cached place // place of plan
	plan   plan
	page   []byte // buffer for the file
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
		n    int64
		noun string
	}{
		{r.Names, "names"},
		{r.Handles, "file handles"},
		{r.Credentials, "credentials and verifiers"},
		{r.IDs, "numbers of users and groups"},
		{r.Opaque, "other opaque values"},
		{r.Addresses, "addresses"},
	} {
		parts = append(parts, fmt.Sprintf("%d %s", p.n, p.noun))
	}
	return fmt.Sprintf("%d packets; replaced: %s, and all data in %d bytes of payload", r.Packets, strings.Join(parts, ", "), r.Payload)
}

// place is an offset in the temporary file plus 1. 0 means that there is none.
type place int64

// plan is the scrubbed contents of a message.
type plan struct {
	out   []byte
	known []bool // for each byte of out, whether it is written; random bytes replace the others
}

// overlay assigns a part of a plan to a segment of memory.
type overlay struct {
	record.StreamSegment
	at   place
	from int64 // offset in the plan
	nth  int   // number in its transaction: a later overlay covers earlier ones
}

// overlays are the overlays of a transaction. In the second run they are sorted, so
// that a packet needs to look only at those that may contain its bytes.
type overlays struct {
	list []overlay
	most int64 // length of the longest overlay, bytes
}

// sort sorts the overlays by handle and offset. Offsets are always compared as signed
// numbers.
func (o *overlays) sort() {
	slices.SortStableFunc(o.list, func(a, b overlay) int {
		return cmp.Or(cmp.Compare(a.Handle, b.Handle), cmp.Compare(int64(a.Offset), int64(b.Offset)))
	})
}

// reaching returns the overlays that may contain some of the bytes [offset, end) of a
// handle's memory, in the order in which they cover each other.
func (o *overlays) reaching(handle uint32, offset, end int64) []overlay {
	first := max(offset, math.MinInt64+o.most) - o.most
	from := sort.Search(len(o.list), func(i int) bool {
		v := &o.list[i]
		return v.Handle > handle || v.Handle == handle && int64(v.Offset) >= first
	})
	to := from
	for to < len(o.list) && o.list[to].Handle == handle && int64(o.list[to].Offset) < end {
		to++
	}
	reaching := o.list[from:to]
	if len(reaching) > 1 {
		reaching = slices.Clone(reaching)
		slices.SortFunc(reaching, func(a, b overlay) int { return cmp.Compare(a.nth, b.nth) })
	}
	return reaching
}

// waitingValue is a string that was moved in a chunk of its own. Its bytes are not
// known yet.
type waitingValue struct {
	reducedValue
	reply bool
}

// flow is one direction of a connection.
type flow struct {
	runs  []run
	fpdus []fpdu
	rpc   bool // the flow has RPC messages
}

// run is a series of packets of one operation.
type run struct {
	at, count int64
	stride    int64 // payload of each packet except the last, bytes
	owner     owner
	offset    int64
}

// owner identifies the bytes of a payload: they belong to a Send, to the memory of a
// transaction, or to nothing known.
type owner struct {
	send        int64
	transaction int64 // 0 if it is unknown
	handle      uint32
}

// fpdu is an FPDU, or an MPA Request or Reply Frame.
type fpdu struct {
	at, count int64
	owner     owner
	offset    int64
	head      int64 // offset of its headers in Scrubber.heads
	length    int32 // length of its headers
	position  int16 // distance to the last marker
	mpa       bool
	markers   bool
	hasCRC    bool
	wrongCRC  uint32
}

// New returns a Scrubber whose pseudonyms depend on a secret of any length. It keeps
// the scrubbed messages in file, which must be empty and belongs to the caller.
func New(secret []byte, file *os.File) *Scrubber {
	s := &Scrubber{key: newKey(secret), file: file, to: bufio.NewWriterSize(file, 1<<16), chunks: map[int64]*overlays{}, flows: map[int64]*flow{}, waiting: map[int64][]waitingValue{}, xids: map[int64]*xids{}, rpc: map[int]bool{}}
	s.message = message{key: s.key, report: &s.Report}
	s.frame.s = s
	return s
}

// Learn returns the handler for the first run.
func (s *Scrubber) Learn() dissect.Handler {
	return dissect.Handler{Carried: s.carried, Stream: s.stream, Transaction: func(t *record.Transaction) error {
		delete(s.waiting, t.ID)
		delete(s.xids, t.ID)
		return s.err
	}, Connection: func(c *record.Connection) error {
		if c.UpperLayer == "rpcrdma" {
			s.rpc[c.ID] = true
		}
		return s.err
	}}
}

// flow returns a direction of a connection and creates it if it is new.
func (s *Scrubber) flow(id int64) *flow {
	l := s.flows[id]
	if l == nil {
		l = new(flow)
		s.flows[id] = l
	}
	return l
}

// carried records what a packet or FPDU carries.
func (s *Scrubber) carried(c *record.Carried) {
	l := s.flow(c.Lane)
	o := owner{send: c.Send, transaction: c.Transaction.Or(0), handle: c.Handle}
	if c.Frame != nil {
		s.fpdu(l, c, o)
		return
	}
	if o.send == 0 && o.transaction == 0 {
		return
	}
	if n := len(l.runs); n > 0 {
		last := &l.runs[n-1]
		if last.owner == o && c.At == last.at+last.count && int64(c.Offset) == last.offset+last.count*last.stride && int64(c.Bytes) <= last.stride {
			last.count++
			return
		}
	}
	l.runs = append(l.runs, run{at: c.At, count: 1, stride: int64(c.Bytes), owner: o, offset: int64(c.Offset)})
}

// fpdu records an FPDU and those of its bytes that are structure.
func (s *Scrubber) fpdu(l *flow, c *record.Carried, o owner) {
	f := fpdu{
		at: c.At, count: c.Count, owner: o, offset: int64(c.Offset), head: int64(len(s.heads)), position: int16(c.Position), mpa: c.MPA,
		markers: c.Markers, hasCRC: c.HasCRC, wrongCRC: c.WrongCRC,
	}
	if c.MPA {
		s.heads = append(s.heads, s.mpa(c.Frame)...)
	} else {
		s.heads = append(s.heads, c.Frame[:structure(c)]...)
	}
	f.length = int32(int64(len(s.heads)) - f.head)
	l.fpdus = append(l.fpdus, f)
}

// structure returns the number of bytes of an FPDU that are headers.
func structure(c *record.Carried) int {
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

// stream scrubs a message and records where its bytes are.
func (s *Scrubber) stream(r *record.Stream) {
	if r.Item {
		s.item(r)
		return
	}
	m := &s.message
	m.stream(r)
	if len(m.in) == 0 {
		return
	}
	at := s.save(m.out, m.known)
	if r.Send != 0 {
		for int64(len(s.sends)) <= r.Send {
			s.sends = append(s.sends, make([]place, max(len(s.sends), 64))...)
		}
		s.sends[r.Send] = at
	}
	id, known := r.Transaction.Get()
	if !known {
		return
	}
	s.overlay(id, r.Segments, at)
	if r.Send != 0 && len(m.in) >= 4 {
		s.xid(id, r.Send)
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
// The bytes of such a Send alone do not show that it is RPC-over-RDMA.
func (s *Scrubber) xid(id, send int64) {
	m, x := &s.message, s.xids[id]
	if x == nil {
		x = new(xids)
		s.xids[id] = x
	}
	switch xid := m.word(0); {
	case m.isRDMA:
		x.xid, x.known = xid, true
	case len(m.in) < 8 && (!x.known || x.xid == xid) && len(x.truncated) < 64:
		x.xid = xid
		x.truncated = append(x.truncated, send)
	}
	if x.known && len(x.truncated) > 0 {
		at := s.save(be.AppendUint32(nil, x.xid), nil)
		for _, send := range x.truncated {
			s.sends[send] = at
		}
		x.truncated = x.truncated[:0]
	}
}

// item writes the pseudonym of a string that was moved in a chunk of its own.
func (s *Scrubber) item(r *record.Stream) {
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
		s.overlay(id, r.Segments, s.save(value, nil))
	}
}

// overlay assigns a plan to memory of a transaction.
func (s *Scrubber) overlay(id int64, segments []record.StreamSegment, at place) {
	if len(segments) == 0 {
		return
	}
	o := s.chunks[id]
	if o == nil {
		o = new(overlays)
		s.chunks[id] = o
	}
	from := int64(0)
	for _, g := range segments {
		o.list = append(o.list, overlay{g, at, from, len(o.list)})
		o.most = max(o.most, g.Length)
		from += g.Length
	}
}

// save writes a plan to the temporary file, as runs of known and of unknown bytes. All
// bytes are known if known is nil.
func (s *Scrubber) save(out []byte, known []bool) (at place) {
	b := binary.AppendUvarint(s.page[:0], uint64(len(out)))
	for i := 0; i < len(out); {
		is, n := known == nil || known[i], i
		for n < len(out) && (known == nil || known[n] == is) {
			n++
		}
		head := uint64(n-i) << 1
		if is {
			head |= 1
		}
		if b = binary.AppendUvarint(b, head); is {
			b = append(b, out[i:n]...)
		}
		i = n
	}
	s.page = b
	at = place(s.end + 1)
	b = binary.AppendUvarint(nil, uint64(len(s.page)))
	s.end += int64(len(b) + len(s.page))
	if _, err := s.to.Write(b); err != nil && s.err == nil {
		s.err = err
	}
	if _, err := s.to.Write(s.page); err != nil && s.err == nil {
		s.err = err
	}
	return at
}

// load reads a plan from the temporary file.
func (s *Scrubber) load(to *plan, at place) error {
	to.out, to.known = to.out[:0], to.known[:0]
	var buffer [512]byte
	n, err := s.file.ReadAt(buffer[:], int64(at-1))
	if err != nil && err != io.EOF {
		return err
	}
	size, head := binary.Uvarint(buffer[:n])
	if head <= 0 || size > uint64(s.end) {
		return fmt.Errorf("scrub: the temporary file is damaged at %d", at-1)
	}
	b := buffer[head:n]
	if uint64(len(b)) < size {
		b = slices.Grow(s.page[:0], int(size))[:size]
		s.page = b
		if _, err := s.file.ReadAt(b, int64(at-1)+int64(head)); err != nil {
			return err
		}
	}
	b = b[:size]
	_, used := binary.Uvarint(b)
	for b = b[max(used, 0):]; len(b) > 0; {
		head, used := binary.Uvarint(b)
		if used <= 0 {
			break
		}
		b = b[used:]
		n, known := int(head>>1), head&1 != 0
		start := len(to.out)
		to.out, to.known = slices.Grow(to.out, n)[:start+n], slices.Grow(to.known, n)[:start+n]
		for i := start; i < start+n; i++ {
			to.known[i] = known
		}
		if known {
			b = b[copy(to.out[start:], b):]
		}
	}
	return nil
}

// Learned completes the first run.
func (s *Scrubber) Learned() error {
	if err := s.to.Flush(); s.err == nil {
		s.err = err
	}
	for _, o := range s.chunks {
		o.sort()
	}
	for _, l := range s.flows {
		for i := range l.runs {
			send := l.runs[i].owner.send
			l.rpc = l.rpc || send > 0 && send < int64(len(s.sends)) && s.sends[send] != 0
		}
		slices.SortStableFunc(l.runs, func(a, b run) int { return cmp.Compare(a.at, b.at) })
		slices.SortStableFunc(l.fpdus, func(a, b fpdu) int { return cmp.Compare(a.at, b.at) })
	}
	return s.err
}

// content writes scrubbed bytes of an owner, beginning at an offset. If the owner is
// not known, it writes bytes of the stream otherwise.
func (s *Scrubber) content(to []byte, o owner, offset int64, otherwise stream) {
	switch {
	case o.send != 0:
		s.key.fill(to, stream{"send", o.send, 0}, offset)
		if o.send >= int64(len(s.sends)) || s.sends[o.send] == 0 {
			return
		}
		s.copy(to, s.sends[o.send], offset)
	case o.transaction != 0:
		s.key.fill(to, stream{"memory", o.transaction, int64(o.handle)}, offset)
		chunks := s.chunks[o.transaction]
		if chunks == nil {
			return
		}
		for _, v := range chunks.reaching(o.handle, offset, offset+int64(len(to))) {
			lo, hi := max(int64(v.Offset), offset), min(int64(v.Offset)+v.Length, offset+int64(len(to)))
			if lo >= hi {
				continue
			}
			s.copy(to[lo-offset:hi-offset], v.at, v.from+lo-int64(v.Offset))
		}
	default:
		s.key.fill(to, otherwise, offset)
	}
}

// copy writes the known bytes of a plan, beginning at an offset.
func (s *Scrubber) copy(to []byte, at place, offset int64) {
	p := &s.plan
	if s.cached != at {
		if err := s.load(p, at); err != nil && s.err == nil {
			s.err = err
		}
		s.cached = at
	}
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

// find returns the run that contains a packet, or nil if there is none.
func (l *flow) find(at int64) *run {
	i := sort.Search(len(l.runs), func(i int) bool { return l.runs[i].at > at })
	for n := 0; i > 0 && n < lookBack; n++ {
		i--
		if r := &l.runs[i]; at >= r.at && at < r.at+r.count {
			return r
		}
	}
	return nil
}

// lookBack is the number of runs or FPDUs before a position that may contain it.
const lookBack = 4

// from returns the index of the first FPDU that may contain a byte.
func (l *flow) from(at int64) int {
	i := sort.Search(len(l.fpdus), func(i int) bool { return l.fpdus[i].at > at })
	return max(i-lookBack, 0)
}
