// Package scrub writes the frames of a capture anew so that they may be shared:
// file data, names, file handles, credentials and addresses are replaced by
// pseudonyms of the same length, and all that the RDMA layer needs stays as it is,
// with checksums that are right, or wrong, as they were.
//
// It takes two runs of a dissector over the same frames. The first, with
// [Scrubber.Learn], finds out what each byte is; what is to stand in the place of
// each message waits in a file. The second, with [Scrubber.Frame], writes. What is
// not known to be structure is replaced: of a payload nothing is ever copied from
// the frame at hand.
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

// Scrubber replaces what is nobody's business. It is not safe for concurrent use.
type Scrubber struct {
	// Report counts what was replaced.
	Report Report

	key     *key
	message message
	spool   *os.File
	to      *bufio.Writer // the spool
	end     int64         // of it
	err     error

	sends   []place             // by number: what stands for them
	chunks  map[int64]*overlays // by transaction: what stands in chunks
	lanes   map[int64]*lane
	heads   []byte // of FPDUs
	waiting map[int64][]waitingValue
	rpc     map[int]bool // connections that carry RPC-over-RDMA
	header  rpcrdma.Header

	frame  frame
	cached place // of plan
	plan   plan
	page   []byte // of the spool
}

// Report counts what was replaced.
type Report struct {
	Packets     int64 // that were written
	Names       int64 // and other strings
	Handles     int64 // file handles
	Credentials int64 // and verifiers
	IDs         int64 // numbers of users and groups
	Opaque      int64 // other values that nobody reads
	Addresses   int64 // of packets
	Payload     int64 // bytes of payload of packets, of which all is replaced that is not known to be structure
}

// String is a line for people.
func (r *Report) String() string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{r.Names, "names"},
		{r.Handles, "file handles"},
		{r.Credentials, "credentials and verifiers"},
		{r.IDs, "numbers of users and groups"},
		{r.Opaque, "other opaque values"},
		{r.Addresses, "addresses"},
	} {
		parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
	}
	return fmt.Sprintf("%d packets; replaced: %s, and what else is no structure in %d bytes of payload", r.Packets, strings.Join(parts, ", "), r.Payload)
}

// place is where something stands in the spool: 0 for nowhere, else one more.
type place int64

// plan is what stands for a message.
type plan struct {
	out   []byte
	known []bool
}

// overlay is what stands for a piece of memory.
type overlay struct {
	record.StreamSegment
	at   place
	from int64 // of the plan
	nth  int   // of its transaction's: a later one covers what came before
}

// overlays are those of a transaction, in the order of the memory once all are
// known: a packet looks at those only that may reach it.
type overlays struct {
	list []overlay
	most int64 // bytes of the longest
}

// sort puts them in order; offsets are compared as signed numbers, everywhere.
func (o *overlays) sort() {
	slices.SortStableFunc(o.list, func(a, b overlay) int {
		return cmp.Or(cmp.Compare(a.Handle, b.Handle), cmp.Compare(int64(a.Offset), int64(b.Offset)))
	})
}

// reaching are the overlays that bytes [offset, end) of a handle's memory may lie in,
// in the order in which they cover each other.
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

// waitingValue is a string that travelled in a chunk: its bytes are known when its
// transaction is.
type waitingValue struct {
	reducedValue
	reply bool
}

// lane is one direction of a connection.
type lane struct {
	runs  []run
	fpdus []fpdu
	rpc   bool // it has RPC messages
}

// run is packets that carry what one operation does.
type run struct {
	at, count int64
	stride    int64 // bytes of each but the last
	owner     owner
	offset    int64
}

// owner says whose bytes a payload carries: those of a Send, of memory of a
// transaction, or nobody's.
type owner struct {
	send        int64
	transaction int64 // 0: unknown
	handle      uint32
}

// fpdu is an FPDU, or an MPA frame.
type fpdu struct {
	at, count int64
	owner     owner
	offset    int64
	head      int64 // in heads
	length    int32 // of head
	position  int16 // among the markers
	mpa       bool
	markers   bool
	hasCRC    bool
	wrongCRC  uint32
}

// New makes a scrubber whose pseudonyms depend on a secret, which may be of any
// length. What it has to remember of messages waits in spool, an empty file.
func New(secret []byte, spool *os.File) *Scrubber {
	s := &Scrubber{key: newKey(secret), spool: spool, to: bufio.NewWriterSize(spool, 1<<16), chunks: map[int64]*overlays{}, lanes: map[int64]*lane{}, waiting: map[int64][]waitingValue{}, rpc: map[int]bool{}}
	s.message = message{key: s.key, report: &s.Report}
	s.frame.s = s
	return s
}

// Learn is what the first run hands its records to.
func (s *Scrubber) Learn() dissect.Handler {
	return dissect.Handler{Carried: s.carried, Stream: s.stream, Transaction: func(t *record.Transaction) error {
		delete(s.waiting, t.ID)
		return s.err
	}, Connection: func(c *record.Connection) error {
		if c.UpperLayer == "rpcrdma" {
			s.rpc[c.ID] = true
		}
		return s.err
	}}
}

// lane finds a direction.
func (s *Scrubber) lane(id int64) *lane {
	l := s.lanes[id]
	if l == nil {
		l = new(lane)
		s.lanes[id] = l
	}
	return l
}

// carried notes what a packet or FPDU carries.
func (s *Scrubber) carried(c *record.Carried) {
	l := s.lane(c.Lane)
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

// fpdu notes an FPDU, with as much of it as is structure.
func (s *Scrubber) fpdu(l *lane, c *record.Carried, o owner) {
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

// structure is how many bytes of an FPDU are headers.
func structure(c *record.Carried) int {
	b := c.Frame
	if len(b) < iwarp.LengthLen {
		return 0
	}
	ulpdu := b[iwarp.LengthLen:]
	ulpdu = ulpdu[:min(len(ulpdu), int(be.Uint16(b)))]
	var d iwarp.Segment
	if d.Decode(ulpdu) != nil {
		return iwarp.LengthLen + min(len(ulpdu), 2)
	}
	if (!c.HasCRC || c.WrongCRC != 0) && !plausible(ulpdu, int(be.Uint16(b))) {
		return iwarp.LengthLen
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

// plausible says that a ULPDU, of which the captured part is there, can be one.
func plausible(ulpdu []byte, length int) bool {
	var d iwarp.Segment
	whole := append(ulpdu[:len(ulpdu):len(ulpdu)], make([]byte, max(length-len(ulpdu), 0))...)
	return d.Decode(whole) == nil && d.Plausible()
}

// terminate is how many bytes of a Terminate are headers: its own, and those that
// it quotes (RFC 5040 s.4.8).
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

// mpa is an MPA request or reply with other private data.
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

// stream writes a message anew.
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
	for _, v := range m.reduced {
		if len(s.waiting[id]) < 64 {
			s.waiting[id] = append(s.waiting[id], waitingValue{v, r.Reply})
		}
	}
}

// item puts a pseudonym for a string that came in a chunk of its own.
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

// overlay notes what stands for memory of a transaction.
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

// save writes what stands for something to the spool, in runs of known bytes and
// of others; all are known where known is nil.
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

// load reads it back.
func (s *Scrubber) load(to *plan, at place) error {
	to.out, to.known = to.out[:0], to.known[:0]
	var room [512]byte
	n, err := s.spool.ReadAt(room[:], int64(at-1))
	if err != nil && err != io.EOF {
		return err
	}
	size, head := binary.Uvarint(room[:n])
	if head <= 0 || size > uint64(s.end) {
		return fmt.Errorf("scrub: the temporary file is damaged at %d", at-1)
	}
	b := room[head:n]
	if uint64(len(b)) < size {
		b = slices.Grow(s.page[:0], int(size))[:size]
		s.page = b
		if _, err := s.spool.ReadAt(b, int64(at-1)+int64(head)); err != nil {
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

// Learned ends the first run.
func (s *Scrubber) Learned() error {
	if err := s.to.Flush(); s.err == nil {
		s.err = err
	}
	for _, o := range s.chunks {
		o.sort()
	}
	for _, l := range s.lanes {
		for i := range l.runs {
			send := l.runs[i].owner.send
			l.rpc = l.rpc || send > 0 && send < int64(len(s.sends)) && s.sends[send] != 0
		}
		slices.SortStableFunc(l.runs, func(a, b run) int { return cmp.Compare(a.at, b.at) })
		slices.SortStableFunc(l.fpdus, func(a, b fpdu) int { return cmp.Compare(a.at, b.at) })
	}
	return s.err
}

// content writes bytes of what an owner has, from an offset on. It has no owner
// for what nobody knows: then lane says whose bytes they are.
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

// copy writes what is known of a plan in the spool, from an offset on.
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

// find is the run that has a packet of a lane, nil for none.
func (l *lane) find(at int64) *run {
	i := sort.Search(len(l.runs), func(i int) bool { return l.runs[i].at > at })
	for n := 0; i > 0 && n < lookBack; n++ {
		i--
		if r := &l.runs[i]; at >= r.at && at < r.at+r.count {
			return r
		}
	}
	return nil
}

// lookBack is how many are looked at for one that reaches so far.
const lookBack = 4

// from is the index of the first FPDU that may reach a byte of a lane.
func (l *lane) from(at int64) int {
	i := sort.Search(len(l.fpdus), func(i int) bool { return l.fpdus[i].at > at })
	return max(i-lookBack, 0)
}
