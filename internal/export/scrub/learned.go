package scrub

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/wiremap"
	"github.com/rdmadump/rdmadump/internal/disk"
)

// The results of the first run are in a temporary file: the plans, and tables that find
// the plan for a packet. All columns of a table are numbers of 8 bytes, and the first ones are
// its key. Memory does not grow with the capture, except by a few bits for each
// connection.

// row appends the columns of a record to b. The bytes of negative numbers are less than
// those of positive ones, so that records are sorted by number.
func row(b []byte, columns ...int64) []byte {
	for _, v := range columns {
		b = be.AppendUint64(b, uint64(v^math.MinInt64))
	}
	return b
}

// column returns column i of a record.
func column(record []byte, i int) int64 { return int64(be.Uint64(record[8*i:])) ^ math.MinInt64 }

// place is an offset in the temporary file plus 1. 0 means that there is none.
type place int64

// plan is the scrubbed contents of a message.
type plan struct {
	out   []byte
	known []bool // for each byte of out, whether it is written; random bytes replace the others
}

// run is a series of packets of one operation.
type run struct {
	at, count int64
	stride    int64 // payload of each packet except the last, bytes
	owner     owner
	offset    int64
	order     int64 // number of runs before it
}

// owner identifies the bytes of a payload: they belong to a Send, to the memory of a
// transaction, or to nothing known.
type owner struct {
	send        int64
	transaction int64 // 0 if it is unknown
	handle      uint32
}

// fpdu is an FPDU, an MPA Request or Reply Frame, or a part of a record of RPC over TCP.
type fpdu struct {
	at, count int64
	owner     owner
	offset    int64
	head      int64 // offset of its headers in the temporary file
	length    int   // length of its headers
	position  int   // distance to the last marker
	mpa       bool
	record    bool
	markers   bool
	hasCRC    bool
	wrongCRC  uint32
}

// The flags of an FPDU in its table.
const (
	isMPA = 1 << iota
	hasMarkers
	hasCRC
	isRecord
)

// overlay assigns a part of a plan to a segment of memory.
type overlay struct {
	wiremap.Segment
	at    place
	from  int64 // offset in the plan
	order int64 // number of overlays before it, which it covers
}

// The columns of the tables.
const (
	sendColumns    = 3 // Send, order, place
	runColumns     = 9 // flow, at, order, count, stride, Send, transaction, handle, offset
	fpduColumns    = 13
	overlayColumns = 8 // transaction, handle, offset, order, length, offset in the plan, place, end of the memory so far
)

// learned holds the results of the first run.
type learned struct {
	file  *disk.File
	order int64 // number of records that were added

	sends, runs, fpdus, overlays, transactions *disk.Sorter

	sendTable, runTable, fpduTable, overlayTable *disk.Table
	// transactionTable has the transactions with a header that was recognized.
	transactionTable *disk.Table

	last     map[int64]*run // the last run of each flow, which may go on
	rpcFlows bitset         // flows that carry RPC messages
	rpc      bitset         // connections that carry RPC-over-RDMA

	buffer  []byte
	page    []byte
	reached []overlay
	cached  place // place of plan
	plan    plan
}

// maxLast limits the number of runs that may go on.
const maxLast = 1 << 12

// bitset is a set of small numbers.
type bitset []uint64

func (s *bitset) add(i int64) {
	for int64(len(*s)) <= i/64 {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

func (s bitset) has(i int64) bool {
	return i >= 0 && i/64 < int64(len(s)) && s[i/64]>>(i%64)&1 != 0
}

func newLearned(raw disk.Raw) *learned {
	f := disk.NewFile(raw)
	return &learned{
		file: f, last: map[int64]*run{},
		sends: disk.NewSorter(f, 8*sendColumns), runs: disk.NewSorter(f, 8*runColumns), fpdus: disk.NewSorter(f, 8*fpduColumns),
		overlays: disk.NewSorter(f, 8*overlayColumns), transactions: disk.NewSorter(f, 8),
	}
}

// add adds a record to a table.
func (s *learned) add(table *disk.Sorter, columns ...int64) {
	s.buffer = row(s.buffer[:0], columns...)
	table.Add(s.buffer)
}

// next returns the number of the next record.
func (s *learned) next() int64 {
	s.order++
	return s.order
}

// addSend records the plan of a Send. A later plan replaces an earlier one.
func (s *learned) addSend(send int64, at place) {
	s.add(s.sends, send, s.next(), int64(at))
}

// addPacket records a packet of a flow. It extends the last run if it can.
func (s *learned) addPacket(flow int64, r run) {
	last := s.last[flow]
	if last != nil && last.owner == r.owner && r.at == last.at+last.count && r.offset == last.offset+last.count*last.stride && r.stride <= last.stride {
		last.count++
		return
	}
	r.order = s.next()
	switch {
	case last != nil:
		s.addRun(flow, last)
	case len(s.last) >= maxLast:
		s.endRuns()
		last = nil
	}
	if last == nil {
		last = new(run)
		s.last[flow] = last
	}
	*last = r
}

func (s *learned) addRun(flow int64, r *run) {
	s.add(s.runs, flow, r.at, r.order, r.count, r.stride, r.owner.send, r.owner.transaction, int64(r.owner.handle), r.offset)
}

// endRuns records all runs that could go on.
func (s *learned) endRuns() {
	for flow, r := range s.last {
		s.addRun(flow, r)
	}
	clear(s.last)
}

// addFPDU records an FPDU and its headers.
func (s *learned) addFPDU(flow int64, f *fpdu, head []byte) {
	flags := int64(0)
	for flag, is := range map[int64]bool{isMPA: f.mpa, hasMarkers: f.markers, hasCRC: f.hasCRC, isRecord: f.record} {
		if is {
			flags |= flag
		}
	}
	at := s.file.Append(head)
	s.add(s.fpdus, flow, f.at, s.next(), f.count, f.owner.send, f.owner.transaction, int64(f.owner.handle), f.offset,
		at, int64(len(head)), int64(f.position), flags, int64(f.wrongCRC))
}

// addOverlay assigns a plan to memory of a transaction.
func (s *learned) addOverlay(transaction int64, segments []wiremap.Segment, at place) {
	from := int64(0)
	for _, g := range segments {
		s.add(s.overlays, transaction, int64(g.Handle), int64(g.Offset), s.next(), g.Length, from, int64(at), 0)
		from += g.Length
	}
}

// finish sorts the tables.
func (s *learned) finish() error {
	s.endRuns()
	s.sendTable = s.sends.Table(nil)
	s.fpduTable = s.fpdus.Table(nil)
	s.transactionTable = s.transactions.Table(nil)
	var transaction, handle, end int64
	s.overlayTable = s.overlays.Table(func(b []byte) {
		if t, h := column(b, 0), column(b, 1); t != transaction || h != handle {
			transaction, handle, end = t, h, math.MinInt64
		}
		end = max(end, after(column(b, 2), column(b, 4)))
		row(b[:8*(overlayColumns-1)], end)
	})
	s.runTable = s.runs.Table(func(b []byte) {
		if flow := column(b, 0); !s.rpcFlows.has(flow) && s.planOf(column(b, 5)) != 0 {
			s.rpcFlows.add(flow)
		}
	})
	return s.file.Flush()
}

// after returns the end of a range, or the largest number if that is too large.
func after(offset, length int64) int64 {
	if length > 0 && offset > math.MaxInt64-length {
		return math.MaxInt64
	}
	return offset + length
}

// planOf returns the place of the plan of a Send, or 0 if there is none.
func (s *learned) planOf(send int64) place {
	if send == 0 {
		return 0
	}
	var key [8]byte
	if i := s.sendTable.Search(row(key[:0], send+1)); i > 0 {
		if b := s.sendTable.At(i - 1); column(b, 0) == send {
			return place(column(b, 2))
		}
	}
	return 0
}

// recognized reports whether a transaction has a message whose header was recognized.
func (s *learned) recognized(transaction int64) bool {
	var key [8]byte
	i := s.transactionTable.Search(row(key[:0], transaction))
	return i < s.transactionTable.Len() && column(s.transactionTable.At(i), 0) == transaction
}

// lookBack is the number of runs or FPDUs before a position that may contain it.
const lookBack = 4

// find returns the run of a flow that contains a packet.
func (s *learned) find(flow, at int64) (r run, found bool) {
	var key [16]byte
	i := s.runTable.Search(row(key[:0], flow, at+1))
	for n := 0; i > 0 && n < lookBack; n++ {
		i--
		b := s.runTable.At(i)
		if column(b, 0) != flow {
			break
		}
		if from, count := column(b, 1), column(b, 3); at >= from && at < from+count {
			return run{
				at: from, count: count, stride: column(b, 4), offset: column(b, 8),
				owner: owner{column(b, 5), column(b, 6), uint32(column(b, 7))},
			}, true
		}
	}
	return run{}, false
}

// firstFPDU returns the index of the first FPDU that may contain a byte of a flow.
func (s *learned) firstFPDU(flow, at int64) int64 {
	var key [16]byte
	i := s.fpduTable.Search(row(key[:0], flow, at+1))
	for n := 0; i > 0 && n < lookBack && column(s.fpduTable.At(i-1), 0) == flow; n++ {
		i--
	}
	return i
}

// fpduAt returns an FPDU of a flow, and false if the index is that of another flow.
func (s *learned) fpduAt(i, flow int64) (f fpdu, same bool) {
	if i >= s.fpduTable.Len() {
		return f, false
	}
	b := s.fpduTable.At(i)
	if column(b, 0) != flow {
		return f, false
	}
	flags := column(b, 11)
	return fpdu{
		at: column(b, 1), count: column(b, 3), owner: owner{column(b, 4), column(b, 5), uint32(column(b, 6))}, offset: column(b, 7),
		head: column(b, 8), length: int(column(b, 9)), position: int(column(b, 10)),
		mpa: flags&isMPA != 0, record: flags&isRecord != 0, markers: flags&hasMarkers != 0, hasCRC: flags&hasCRC != 0, wrongCRC: uint32(column(b, 12)),
	}, true
}

// reaching returns the overlays that contain some of the bytes [offset, end) of a
// handle's memory, in the order in which they cover each other. Offsets are compared as
// signed numbers. The slice is valid until the next call.
func (s *learned) reaching(transaction int64, handle uint32, offset, end int64) []overlay {
	s.reached = s.reached[:0]
	if offset >= end {
		return nil
	}
	var key [24]byte
	for i := s.overlayTable.Search(row(key[:0], transaction, int64(handle), end)); i > 0; i-- {
		b := s.overlayTable.At(i - 1)
		if column(b, 0) != transaction || column(b, 1) != int64(handle) || column(b, 7) <= offset {
			break
		}
		o := overlay{
			Segment: wiremap.Segment{Handle: handle, Offset: uint64(column(b, 2)), Length: column(b, 4)},
			at:      place(column(b, 6)), from: column(b, 5), order: column(b, 3),
		}
		if after(int64(o.Offset), o.Length) > offset {
			s.reached = append(s.reached, o)
		}
	}
	slices.SortFunc(s.reached, func(a, b overlay) int { return cmp.Compare(a.order, b.order) })
	return s.reached
}

// save writes a plan to the temporary file, as runs of known and of unknown bytes. All
// bytes are known if known is nil.
func (s *learned) save(out []byte, known []bool) place {
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
	at := place(s.file.Append(binary.AppendUvarint(nil, uint64(len(b)))) + 1)
	s.file.Append(b)
	return at
}

// load reads a plan from the temporary file into s.plan.
func (s *learned) load(at place) error {
	if s.cached == at {
		return nil
	}
	p := &s.plan
	p.out, p.known, s.cached = p.out[:0], p.known[:0], 0
	var buffer [binary.MaxVarintLen64]byte
	head := buffer[:min(int64(len(buffer)), s.file.Size()-int64(at-1))]
	s.file.Read(head, int64(at-1))
	size, used := binary.Uvarint(head)
	if s.file.Err() == nil && (used <= 0 || size > uint64(s.file.Size())) {
		return fmt.Errorf("scrub: the temporary file is damaged at %d", at-1)
	}
	s.page = slices.Grow(s.page[:0], int(size))[:size]
	b := s.page
	s.file.Read(b, int64(at-1)+int64(used))
	if err := s.file.Err(); err != nil {
		return err
	}
	_, used = binary.Uvarint(b)
	for b = b[max(used, 0):]; len(b) > 0; {
		head, used := binary.Uvarint(b)
		if used <= 0 {
			break
		}
		b = b[used:]
		n, known := int(head>>1), head&1 != 0
		start := len(p.out)
		p.out, p.known = slices.Grow(p.out, n)[:start+n], slices.Grow(p.known, n)[:start+n]
		for i := start; i < start+n; i++ {
			p.known[i] = known
		}
		if known {
			b = b[copy(p.out[start:], b):]
		}
	}
	s.cached = at
	return nil
}
