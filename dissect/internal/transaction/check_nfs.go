package transaction

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmadump/rdmadump/dissect/internal/memory"
	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/rule"
)

// The NFS binding (RFC 8267): which data items may be reduced and how long they are. These checks
// apply to RPCs that have chunks, or whose Reply may be large.

// rpcBody is the decoded arguments of a Call, or the decoded results of a Reply. It uses the memory
// of its table, so it is valid until the next message is decoded.
type rpcBody struct {
	message nfs.Message // decoded without values
	holes   []nfs.Hole  // holes in the message
	bytes   []byte      // bytes from which it was decoded; nil if they cannot be read
	at      int64       // offset of bytes in the Payload stream
	chunks  []int       // of a Reply: the Write chunk of each hole
	scratch []byte
	given   []int64 // positions or lengths
}

// bindingRules is what the rules about data items remember of a transaction.
type bindingRules struct {
	ineligible   bool      // its Call reduces a data item that may not be reduced
	reducible    int32     // number of results that may be reduced; -1 if unknown
	replyTooLong bool      // it was reported that the largest Reply does not fit
	maxReply     int64     // maximum size of the inline part of the Reply in bytes; 0 if unknown
	long         rule.Once // its Long Call was checked
}

// begin notes that the arguments of the Call are not decoded yet.
func (r *bindingRules) begin() { r.reducible = -1 }

// count counts the results of a Call that may be reduced.
func (r *bindingRules) count(m *nfs.Message) {
	r.reducible = 0
	for i := range m.Ops {
		if m.Ops[i].ReducibleResult || m.Ops[i].Name == "READ_PLUS" {
			r.reducible++
		}
	}
}

// largest notes the maximum size of the inline part of the Reply, and tooLong that it was reported as too long.
func (r *bindingRules) largest(bytes int64) { r.maxReply = bytes }
func (r *bindingRules) tooLong()            { r.replyTooLong = true }

// results is the Payload stream of a Reply, and its decoded RPC header; nil if it cannot be decoded.
type results struct {
	payload []byte
	rpc     *oncrpc.Header
	whole   bool // the stream is complete
}

// readArguments decodes the arguments of a Call, and returns them. payload is the inline part of its
// Payload stream. The Positions of the holes are relative to the arguments, or, if the arguments
// cannot be read, as in the Read list.
func (t *Table) readArguments(x *txn, rpc *oncrpc.Header, payload []byte) *rpcBody {
	b := &t.body
	b.at, b.bytes = 0, nil
	b.holes = x.memory.Holes(b.holes[:0])
	body, ok := x.gss.Plain(payload[rpc.Length:])
	if !ok {
		return b
	}
	b.bytes, b.at = body, int64(len(payload)-len(body))
	before := 0 // number of holes in the RPC header
	for i := range b.holes {
		h := &b.holes[i]
		if h.Position -= b.at; h.Position < 0 {
			before++
		}
	}
	b.message.Call(rpc.Program, rpc.Version, rpc.Procedure, nfs.NewStream(body, b.holes[before:]))
	return b
}

// readResults decodes the results of a procedure.
func (t *Table) readResults(program, version, procedure uint32, h *rpcrdma.Header, body []byte) *nfs.Message {
	b := &t.body
	b.holes = b.holes[:0]
	for i := range h.WriteEnds {
		b.holes = append(b.holes, nfs.Hole{Position: -1, Length: rpcrdma.Length(h.WriteChunk(i))})
	}
	b.message.Results(program, version, procedure, body, b.holes, false)
	return &b.message
}

// checkArguments compares the Read list and the Write list of a Call with its arguments, which b
// contains, unless it is nil. payload is the complete Payload stream without the reduced items.
func checkArguments(c checker, rpc *oncrpc.Header, payload []byte, b *rpcBody) {
	x := c.x
	if len(x.memory.Segments) == 0 && x.memory.Writes == 0 && !mayBeLarge(x) {
		return
	}
	if b == nil {
		b = c.cs.table.readArguments(x, rpc, payload)
	}
	c.body = b
	long := x.call.Form == record.Long
	total := int64(len(payload))
	for i := range b.holes {
		if position := b.holes[i].Position + b.at; position > total {
			c.report(rule.PositionInvalid, "a Read chunk is at Position %d, but the Payload stream has only %d bytes before it", position, total)
			if long {
				c.report(rule.LongCallPosition, "a Long Call has segments at Position %d, where no data item begins", position)
			}
			return
		}
		total += (b.holes[i].Length + 3) &^ 3
	}
	gss, isGSS := rpc.Credential.GSS()
	protects := isGSS && (gss.Service == oncrpc.ServiceIntegrity || gss.Service == oncrpc.ServicePrivacy)
	if x.memory.Writes > 0 && isGSS && (protects || gss.Control()) {
		c.report(rule.ReducedUnderGSS, "the Call offers %s, but of its Reply, which %s, nothing may be reduced", record.Plural(x.memory.Writes, "Write chunk"), guardedText(gss))
	}
	if len(b.holes) > 0 {
		first := b.holes[0].Position + b.at
		switch {
		case first < int64(rpc.Length):
			checkHeaderHoles(c, payload)
			return
		case isGSS && gss.Procedure != 0:
			c.report(rule.ReducedUnderGSS, "a Read chunk at Position %d contains part of an RPCSEC_GSS control message", first)
			return
		case protects:
			c.report(rule.ReducedUnderGSS, "a Read chunk is at Position %d of a Call that RPCSEC_GSS protects, of which nothing may be reduced", first)
			return
		}
	}
	if b.bytes == nil || isGSS && gss.Procedure != 0 {
		return
	}
	m := &b.message
	if m.Complete {
		x.checks.binding.count(m)
		if x.memory.Writes > int(x.checks.binding.reducible) {
			c.report(rule.ReducedIneligible, "the Call offers %s, but %s", record.Plural(x.memory.Writes, "Write chunk"), reducibleText(x.checks.binding.reducible))
		}
		c.checkOffered()
	}
	if len(b.holes) > 0 {
		c.checkReduced(long, rpc)
	}
}

// guardedText says why nothing of the Reply to a Call may be reduced.
func guardedText(gss oncrpc.GSS) string {
	if gss.Control() {
		return "is an RPCSEC_GSS control message"
	}
	return "RPCSEC_GSS protects"
}

// reducibleText says how many results of a Call may be reduced.
func reducibleText(n int32) string {
	if n == 0 {
		return "none of its results may be reduced"
	}
	return fmt.Sprintf("only %s may be reduced", record.Plural(n, "result"))
}

// largeResult reports whether a procedure or operation has results that may be large.
func largeResult(name string) bool {
	switch name {
	case "READ", "READDIR", "READDIRPLUS", "READLINK", "GETXATTR", "LISTXATTRS", "READ_PLUS":
		return true
	}
	return false
}

// mayBeLarge reports whether a Call without chunks may have a large Reply.
func mayBeLarge(x *txn) bool {
	p := &x.procedure
	if !p.known || p.program != nfs.ProgramNFS {
		return false
	}
	if p.version < 4 {
		return largeResult(p.name())
	}
	for _, o := range x.rec.Operations {
		if largeResult(o) {
			return true
		}
	}
	return false
}

// checkOffered compares the chunks that a Call offers with the maximum size of its results.
func (c checker) checkOffered() {
	x, m := c.x, &c.body.message
	chunk, large, bounded := 0, int64(0), int64(0)
	readPlus := slices.ContainsFunc(m.Ops, func(o nfs.Op) bool { return o.Name == "READ_PLUS" })
	for i := range m.Ops {
		o := &m.Ops[i]
		count := o.MaxResult
		if o.ReducibleResult && chunk < x.memory.Writes {
			if count > 0 && !readPlus {
				switch offered := x.memory.Offered(memory.WriteChunk, chunk); {
				case offered < count:
					c.report(rule.WriteChunkTooShort, "Write chunk %d has %d bytes, but the %s asks for %d", chunk, offered, o.Name, count)
				case count%4 != 0 && offered == (count+3)&^3:
					c.report(rule.WriteChunkRoomForPad, "Write chunk %d has %d bytes, which includes an XDR pad after the %d bytes that the %s asks for", chunk, offered, count, o.Name)
				}
			}
			chunk++
			continue
		}
		switch {
		case count == nfs.Unbounded && o.Name == "READLINK":
			large += 4096
		case count == nfs.Unbounded:
			large += 1 << 16
		default:
			large += count
			bounded += count
		}
	}
	x.checks.binding.largest(large)
	if bounded > 0 && !(readPlus && x.memory.Writes > 0) {
		c.checkLargest(bounded)
	}
}

// checkLargest reports a Call whose largest Reply fits neither in a Send nor in the Reply chunk. The
// results may have the given number of bytes, because the arguments say so, and the session limits
// the whole Reply. The headers are not counted, because few responders fill the results to the last
// byte.
func (c checker) checkLargest(largest int64) {
	x := c.x
	if !c.cs.negotiated() {
		return
	}
	limit, offered := int64(inlineThreshold(c.cs, x.side.Other())), x.memory.Offered(memory.ReplyChunk, 0)
	if most, inSession, known := c.responseSize(); known {
		largest = min(largest, int64(most))
	} else if inSession {
		return // the session, which the capture lacks, may limit the Reply
	}
	if offered < largest && largest > limit {
		x.checks.binding.tooLong()
		c.report(rule.ReplyChunkMissing, "the Reply may have %d bytes, but the Call offers a Reply chunk of %d bytes and the inline threshold is %d", largest, offered, limit)
	}
}

// checkReduced compares the Read chunks of a Call with the data items at their Positions. The
// message was decoded before.
func (c checker) checkReduced(long bool, rpc *oncrpc.Header) {
	b := c.body
	m, at := &b.message, b.at
	fits := func() bool { return m.Complete && m.Left == 0 && matched(m) == len(b.holes) }
	if fits() {
		c.checkItems(at, long)
		return
	}
	decode := func(s nfs.Stream) { m.Call(rpc.Program, rpc.Version, rpc.Procedure, s) }
	first, complete := firstUnmatched(m), m.Complete // The arguments were read with nothing at this hole.
	from, to, lacks := m.Lacks()
	if b.padLeft(b.bytes, false, decode) {
		c.report(rule.ReducedPadLeft, "the Payload stream contains the XDR pad of a data item that was reduced")
		c.checkItems(at, long)
		return
	}
	b.given = b.given[:0]
	for i := range b.holes {
		b.given = append(b.given, b.holes[i].Position)
		b.holes[i].Position = -1 // the next item that may be reduced
	}
	decode(nfs.NewStream(b.bytes, b.holes))
	if fits() {
		for i := range b.holes {
			if should := b.holes[i].Position; should != b.given[i] {
				c.invalidPosition(b.given[i]+at, long, fmt.Sprintf("; a data item is missing at %d", should+at))
				return
			}
		}
		return
	}
	total := int64(len(b.bytes))
	for i := range b.holes {
		b.holes[i].Position = b.given[i]
		total += (b.holes[i].Length + 3) &^ 3
	}
	if first == len(b.holes) { // only bytes at the end are too many
		if decode(nfs.NewStream(b.bytes, b.holes)); complete {
			c.checkItems(at, long)
		}
		return
	}
	switch position := b.given[first]; {
	case complete || position <= from: // What comes before the hole is valid, and is followed by something else than a data item.
		c.invalidPosition(position+at, long, "")
	case lacks && position < to && to <= total:
		c.invalidPosition(position+at, long, fmt.Sprintf("; it is inside a data item of %d bytes, which begins at %d", to-from, from+at))
	}
}

func (c checker) invalidPosition(position int64, long bool, why string) {
	c.report(rule.PositionInvalid, "a Read chunk is at Position %d, where no data item begins%s", position, why)
	if long {
		c.report(rule.LongCallPosition, "a Long Call has segments at Position %d, where no data item begins that may be reduced%s", position, why)
	}
}

// maxWrongItems is the maximum number of data items of one Call that are reported.
const maxWrongItems = 16

// checkItems compares each reduced data item with its chunk.
func (c checker) checkItems(at int64, long bool) {
	b := c.body
	m := &b.message
	wrong := 0
	for i := range m.Items {
		item := &m.Items[i]
		if !item.Reduced {
			continue
		}
		if wrong == maxWrongItems {
			return
		}
		op := m.Whose(item)
		if !item.Eligible && !item.ReadPlus {
			wrong++
			c.x.checks.binding.ineligible = true
			c.report(rule.ReducedIneligible, "a Read chunk at Position %d contains %s of %s, which may not be reduced", item.Position+at, item.Name, op)
			if long {
				c.report(rule.LongCallPosition, "a Long Call has segments at Position %d, where no data item begins that may be reduced", item.Position+at)
			}
			continue
		}
		if have := b.holes[item.Hole].Length; have != item.Length && have != (item.Length+3)&^3 {
			wrong++
			c.report(rule.ChunkLengthMismatch, "%s has %d bytes of %s, but its Read chunk has %d bytes", op, item.Length, item.Name, have)
		}
	}
}

// checkHeaderHoles checks Read chunks that begin in the RPC header.
func checkHeaderHoles(c checker, payload []byte) {
	x, b := c.x, &c.cs.table.body
	b.holes = x.memory.Holes(b.holes[:0])
	if len(b.holes) == 0 || len(payload) < 32 {
		return
	}
	holes := b.holes[:min(len(b.holes), 4)] // the header has no more items
	flavor, size := be.Uint32(payload[24:]), int64(be.Uint32(payload[28:]))
	if size > 400 {
		return
	}
	verifier := 32 + (size+3)&^3 // Position of the flavor of the verifier
	var verifierFlavor uint32
	verifierSize := int64(-1)
	inline := verifier
	for _, h := range holes {
		if h.Position >= 32 && h.Position < verifier {
			inline -= (h.Length + 3) &^ 3
		}
	}
	if inline >= 32 && inline+8 <= int64(len(payload)) {
		verifierFlavor, verifierSize = be.Uint32(payload[inline:]), int64(be.Uint32(payload[inline+4:]))
	}
	end := verifier + 8
	if verifierSize > 0 && verifierSize <= 400 {
		end += (verifierSize + 3) &^ 3
	}
	for _, h := range holes {
		inCredential := h.Position >= 32 && h.Position < verifier
		inVerifier := h.Position >= verifier+8 && h.Position < end
		switch gss := uint32(oncrpc.AuthRPCSECGSS); {
		case h.Position >= end:
		case inCredential && flavor == gss || inVerifier && verifierFlavor == gss:
			c.report(rule.ReducedUnderGSS, "a Read chunk is at Position %d, inside an RPCSEC_GSS credential or verifier", h.Position)
		case h.Position == 32 && size > 0 || h.Position == verifier+8 && inVerifier || h.Position == 40 && flavor == uint32(oncrpc.AuthSys):
			x.checks.binding.ineligible = true
			c.report(rule.ReducedIneligible, "a Read chunk at Position %d contains part of the RPC header, which may not be reduced", h.Position)
		default:
			c.invalidPosition(h.Position, x.call.Form == record.Long, ", inside the RPC header")
		}
	}
}

// checkResults compares the Write chunks of a Reply with its results.
func checkResults(c checker, m *message) {
	x, b, rpc := c.x, &c.cs.table.body, m.results.rpc
	c.body = b
	if !m.results.whole || rpc == nil || x.rec.Call == nil {
		return
	}
	if !rpc.Succeeded() {
		for i := range m.header.WriteEnds {
			if n := rpcrdma.Length(m.header.WriteChunk(i)); n > 0 {
				c.unusedLength(i, n, "a Reply that has no results")
				break
			}
		}
		return
	}
	if !x.procedure.known {
		return
	}
	if x.checks.binding.ineligible && succeeded(x) {
		c.report(rule.ReducedIneligible, "the responder answered with success, although the Call reduces a data item that may not be reduced")
	}
	p, body := &x.procedure, m.results.payload[rpc.Length:]
	r := &b.message
	written, returned := x.memory.Written(memory.ReplyChunk, 0), rpcrdma.Length(m.header.Reply)
	if m.header.Proc == rpcrdma.NoMsg && written > returned && x.gss == 0 {
		c.cs.table.readResults(p.program, p.version, p.procedure, m.header, body)
		if errors.Is(r.Err, nfs.ErrTruncated) {
			const text = "the Reply returns %d bytes of the Reply chunk, which end within the results, although %d bytes were written there"
			c.report(rule.ChunkLengthMismatch, text, returned, written)
			return
		}
	}
	if x.memory.Writes == 0 || len(m.header.WriteEnds) != x.memory.Writes {
		return
	}
	b.holes, b.chunks = b.holes[:0], b.chunks[:0]
	for i := range m.header.WriteEnds {
		if size := rpcrdma.Length(m.header.WriteChunk(i)); size > 0 {
			b.holes, b.chunks = append(b.holes, nfs.Hole{Position: -1, Length: size}), append(b.chunks, i)
		}
	}
	if x.control || x.gss == oncrpc.ServiceIntegrity || x.gss == oncrpc.ServicePrivacy {
		if len(b.holes) > 0 {
			c.report(rule.ReducedUnderGSS, "a Write chunk returns %d bytes of a Reply that RPCSEC_GSS protects, of which nothing may be reduced", b.holes[0].Length)
		}
		return
	}
	if len(b.holes) > 0 && x.checks.binding.reducible == 0 {
		c.report(rule.ReducedIneligible, "a Write chunk returns %d bytes, although no result of this Call may be reduced", b.holes[0].Length)
		return
	}
	r.Results(p.program, p.version, p.procedure, body, b.holes, true)
	if !r.Complete || r.Left != 0 || matched(r) != len(b.holes) {
		if c.checkUnmatched(body) {
			return
		}
		decode := func(s nfs.Stream) { r.Reply(p.program, p.version, p.procedure, s) }
		if len(b.holes) == 0 {
			return
		}
		if !b.padLeft(body, true, decode) {
			c.checkCounts(body, decode)
			return
		}
		c.report(rule.ReducedPadLeft, "the Payload stream contains the XDR pad of a data item that was reduced")
	}
	c.checkReturned()
}

// checkUnmatched reports a Write chunk that is returned with a length although no result is in it,
// because the operation failed, or because its result is in the Send. It returns whether there is
// such a chunk. The results in body were decoded before.
func (c checker) checkUnmatched(body []byte) bool {
	b, p := c.body, &c.x.procedure
	r := &b.message
	if len(b.holes) == 0 || slices.ContainsFunc(r.Ops, func(o nfs.Op) bool { return o.Name == "READ_PLUS" }) {
		return false
	}
	if r.Complete && r.Left == 0 {
		hole := firstUnmatched(r)
		c.unusedLength(b.chunks[hole], b.holes[hole].Length, "a Reply whose results are complete without it")
		return true
	}
	for i := range b.holes {
		b.holes[i].Position = -1
	}
	if r.Reply(p.program, p.version, p.procedure, nfs.NewStream(body, nil)); r.Complete && r.Left == 0 {
		c.unusedLength(b.chunks[0], b.holes[0].Length, "a Reply whose results are in the Send")
		b.holes, b.chunks = b.holes[:0], b.chunks[:0]
		c.checkReturned()
		return true
	}
	r.Reply(p.program, p.version, p.procedure, nfs.NewStream(body, b.holes))
	return false
}

// checkCounts reports a Write chunk that contains not only a data item, but also the count before it, because the results can
// be decoded only if the count is put into the Payload stream.
func (c checker) checkCounts(body []byte, decode func(nfs.Stream)) {
	b := c.body
	r := &b.message
	for hole := range min(len(b.holes), maxCounts) {
		length := b.holes[hole].Length
		again := func(body []byte) {
			for i := range b.holes {
				b.holes[i].Position = -1
			}
			decode(nfs.NewStream(body, b.holes))
		}
		again(body)
		at, moved := int64(-1), int64(0)
		for i := range r.Items {
			switch item := &r.Items[i]; {
			case !item.Reduced:
			case item.Hole < hole:
				moved += (item.Length + 3) &^ 3
			case item.Hole == hole:
				at = item.Position - 4 - moved
			}
		}
		if from, _, lacks := r.Lacks(); at < 0 && lacks && firstUnmatched(r) == hole {
			at = from - moved
		}
		if length <= 4 || at < 0 || at > int64(len(body)) {
			continue
		}
		b.scratch = append(b.scratch[:0], body...)
		b.scratch = slices.Insert(b.scratch, int(at), be.AppendUint32(nil, uint32(length-4))...)
		b.holes[hole].Length -= 4
		if again(b.scratch); r.Complete && r.Left == 0 && matched(r) == len(b.holes) {
			name := r.Items[slices.IndexFunc(r.Items, func(i nfs.Item) bool { return i.Reduced && i.Hole == hole })].Name
			const text = "Write chunk %d returns %d bytes: the count of %s is in the chunk, and not in the Send"
			c.report(rule.ChunkLengthMismatch, text, b.chunks[hole], length, name)
			return
		}
		b.holes[hole].Length += 4
	}
}

// maxCounts is the maximum number of chunks of a Reply in which a count is searched.
const maxCounts = 4

func (c checker) unusedLength(chunk int, length int64, by string) {
	c.report(rule.UnusedChunkLength, "Write chunk %d is returned with %d bytes by %s; an unused chunk has to be returned with the length 0", chunk, length, by)
}

// succeeded reports whether the status of a Reply is success, or unknown.
func succeeded(x *txn) bool {
	status, known := x.nfsStatus.Get()
	return !known || strings.HasSuffix(status, "_OK")
}

// checkReturned compares the decoded results of a Reply with its Write chunks.
func (c checker) checkReturned() {
	x, b := c.x, c.body
	m := &b.message
	empty := 0                         // number of results without bytes, each of which may have used a chunk
	unused, skipped, last := 0, -1, -1 // number of chunks that return empty, the latest of them, and the last chunk that contains a result
	reported := false
	var stays *nfs.Item      // the first result that may be reduced, and is in the Send
	passes := func(to int) { // the chunks before another one
		for chunk := last + 1; chunk < to; chunk++ {
			if x.memory.Offered(memory.WriteChunk, chunk) > 0 {
				unused, skipped = unused+1, chunk
			}
		}
	}
	for i := range m.Items {
		item := &m.Items[i]
		switch {
		case item.Length == 0: // data that may be reduced, or a segment of READ_PLUS
			empty++
		case !item.Reduced && item.Eligible && stays == nil:
			stays = item
		case item.Reduced:
			c.checkResult(item)
			chunk := b.chunks[item.Hole]
			if offered := x.memory.Offered(memory.WriteChunk, chunk); stays != nil && !reported && stays.Length <= offered {
				const text = "%d bytes of %s are in the Send, although Write chunk %d with %d bytes contains a later result, and results use Write chunks in order"
				c.report(rule.WriteChunkUnused, text, stays.Length, stays.Name, chunk, offered)
				reported = true
			}
			if passes(chunk); unused > empty && !reported { // A later result cannot have used an earlier chunk.
				c.report(rule.WriteChunkUnused, "Write chunk %d returns empty, although chunk %d contains a result, and results use Write chunks in order", skipped, chunk)
				reported = true
			}
			last = chunk
		}
	}
	if passes(x.memory.Writes); unused <= empty || reported {
		return
	}
	most := int64(0) // size of the largest chunk after the last used chunk
	for chunk := last + 1; chunk < x.memory.Writes; chunk++ {
		most = max(most, x.memory.Offered(memory.WriteChunk, chunk))
	}
	for i := range m.Items {
		item := &m.Items[i]
		if item.Reduced || !item.Eligible || item.Length == 0 || item.Length > most {
			continue
		}
		for chunk := last + 1; chunk < x.memory.Writes; chunk++ {
			if offered := x.memory.Offered(memory.WriteChunk, chunk); offered >= item.Length {
				c.report(rule.WriteChunkUnused, "%d bytes of %s are in the Send, although Write chunk %d with %d bytes is unused", item.Length, item.Name, chunk, offered)
				return
			}
		}
	}
}

// checkResult compares one result with the chunk that contains it.
func (c checker) checkResult(item *nfs.Item) {
	x, b := c.x, c.body
	chunk, returned := b.chunks[item.Hole], b.holes[item.Hole].Length
	padded := (item.Length + 3) &^ 3
	written := x.memory.Written(memory.WriteChunk, chunk)
	switch {
	case returned > item.Length && returned <= padded:
		c.report(rule.PadWritten, "%s has %d bytes, but Write chunk %d returns %d, including the XDR pad, which must not be written", item.Name, item.Length, chunk, returned)
	case returned != item.Length:
		c.report(rule.ChunkLengthMismatch, "%s has %d bytes, but Write chunk %d returns %d", item.Name, item.Length, chunk, returned)
	case written > item.Length && written <= padded && !x.checks.memory.shared:
		c.report(rule.PadWritten, "%s has %d bytes, but %d were written to Write chunk %d, including the XDR pad, which must not be written", item.Name, item.Length, written, chunk)
	}
}

// checkFits reports a Reply that did not fit, although the requester could have known that.
func checkFits(c checker, m *message) {
	x := c.x
	if !c.cs.negotiated() || x.rec.Call == nil || x.memory.Incomplete || x.checks.binding.replyTooLong {
		return
	}
	limit := int64(inlineThreshold(c.cs, m.side))
	offered := x.memory.Offered(memory.ReplyChunk, 0)
	requester := c.attributedTo(x.side)
	switch {
	case m.header.Proc == rpcrdma.Error:
		if m.header.Err == rpcrdma.ErrChunk && x.checks.header.broken == nil && x.checks.binding.maxReply > limit && offered < x.checks.binding.maxReply {
			requester.report(rule.ReplyChunkMissing, "the responder answered ERR_CHUNK: the Reply may have at least %d bytes, but the Call offers a Reply chunk of %d bytes and the inline threshold is %d", x.checks.binding.maxReply, offered, limit)
		}
	case m.whole && m.Length > limit && m.header.Proc == rpcrdma.Msg && x.checks.binding.maxReply > limit && offered < m.Length-int64(m.header.Length):
		requester.report(rule.ReplyChunkMissing, "the Reply has %d bytes, but the Call offers a Reply chunk of %d bytes and the inline threshold is %d", m.Length-int64(m.header.Length), offered, limit)
	}
}

// padLeft reports whether a message can be decoded if the XDR pads of the reduced items are
// removed. If so, b.message holds the decoded message.
func (b *rpcBody) padLeft(body []byte, results bool, decode func(nfs.Stream)) bool {
	m := &b.message
	b.scratch = append(b.scratch[:0], body...)
	tries := 4 + padWork/(len(body)+1) // each decodes the whole message
	for done := 0; done < tries; done++ {
		at, pad := b.padAt(done)
		if pad == 0 || at+pad > int64(len(b.scratch)) {
			return false
		}
		b.scratch = slices.Delete(b.scratch, int(at), int(at+pad))
		for i := range b.holes {
			if results {
				b.holes[i].Position = -1
			}
		}
		decode(nfs.NewStream(b.scratch, b.holes))
		if m.Complete && m.Left == 0 {
			return true
		}
	}
	return false
}

// padWork limits the number of bytes that are decoded to find such pads: all pads in messages of
// some KiB, and the first four in long messages.
const padWork = 1 << 18

// padAt returns the offset and length of the pad of the nth reduced item that has a pad, or 0 if
// there is none.
func (b *rpcBody) padAt(nth int) (at, pad int64) {
	moved := int64(0)
	for i := range b.message.Items {
		item := &b.message.Items[i]
		if !item.Reduced {
			continue
		}
		if pad := -item.Length & 3; pad > 0 {
			if nth == 0 {
				return item.Position - moved, pad
			}
			nth--
		}
		moved += (item.Length + 3) &^ 3
	}
	return 0, 0
}

// matched returns the number of holes that have an item.
func matched(m *nfs.Message) (n int) {
	for i := range m.Items {
		if m.Items[i].Reduced {
			n++
		}
	}
	return n
}

// firstUnmatched returns the first hole without an item. Items are in the order of their holes.
func firstUnmatched(m *nfs.Message) (hole int) {
	for i := range m.Items {
		if m.Items[i].Reduced {
			if m.Items[i].Hole != hole {
				return hole
			}
			hole++
		}
	}
	return hole
}

// checkLongCall checks the RPC message of a Long Call after all of it has moved. err is the error
// of its RPC header, and b contains its arguments, unless it is nil.
func checkLongCall(x *txn, rpc *oncrpc.Header, err error, payload []byte, b *rpcBody) {
	if int64(len(payload)) != x.memory.Offered(memory.ReadChunk, 0) || len(payload) == 0 || x.memory.Segments[0].Position != 0 {
		return
	}
	if !x.checks.binding.long.First() {
		return
	}
	c := x.checker(record.Stamp{Time: x.call.Time, Packet: x.call.Packet}).attributedTo(x.side)
	checkLong(c, rpc, err, true, oncrpc.Call)
	if err == nil && rpc.Type == oncrpc.Call && !x.memory.Incomplete {
		checkArguments(c, rpc, payload, b)
	}
}
