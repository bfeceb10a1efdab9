package scrub

import (
	"errors"
	"math"
	"slices"

	"github.com/rdmadump/rdmadump/dissect/nfs"
	"github.com/rdmadump/rdmadump/dissect/oncrpc"
	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// message writes a scrubbed RPC message. It keeps bytes that were decoded as
// structure, writes pseudonyms for sensitive values, and leaves all other bytes
// unknown, so that random bytes replace them.
type message struct {
	key    *key
	report *Report

	in, out []byte
	known   []bool // for each byte of out, whether it is written; random bytes replace the others
	rdma    rpcrdma.Header
	header  oncrpc.Header
	nfs     nfs.Message
	holes   []nfs.Hole
	reduced []reducedValue
	scratch []byte
	deleted []deletion
	isRDMA  bool // the message has a header of RPC-over-RDMA, which was kept
	guessed bool // the Call that the Reply answers is not known
	start   int  // offset of the RPC message
	size    int  // length of the decoded body
}

// reducedValue is a string that was moved in a chunk of its own.
type reducedValue struct {
	position int64 // in the unreduced stream
	length   int64
	hole     int // index
	path     bool
}

// deletion is a range of n bytes that was deleted before decoding.
type deletion struct{ at, n int }

// keep copies the bytes [from, to) of the original message.
func (m *message) keep(from, to int) {
	from, to = max(from, 0), min(to, len(m.in))
	for i := from; i < to; i++ {
		m.out[i], m.known[i] = m.in[i], true
	}
}

// put writes b at an offset.
func (m *message) put(at int, b []byte) {
	for i := range b {
		if at+i >= 0 && at+i < len(m.out) {
			m.out[at+i], m.known[at+i] = b[i], true
		}
	}
}

// drop makes the bytes [from, to) unknown, so that random bytes replace them.
func (m *message) drop(from, to int) {
	for i := max(from, 0); i < min(to, len(m.in)); i++ {
		m.known[i] = false
	}
}

// stream writes the scrubbed header and Payload stream of s to m.out and m.known.
func (m *message) stream(s *wiremap.Message) {
	m.in = append(append(m.in[:0], s.Header...), s.Payload...)
	m.out, m.known = slices.Grow(m.out[:0], len(m.in))[:len(m.in)], slices.Grow(m.known[:0], len(m.in))[:len(m.in)]
	clear(m.known)
	m.reduced = m.reduced[:0]
	if m.isRDMA = len(s.Header) > 0 && m.rpcrdma(len(s.Header)); len(s.Header) > 0 && !m.isRDMA {
		return
	}
	if s.RPC {
		m.rpc(s, len(s.Header))
	}
}

// The largest values that are kept in a header whose contents were not recognized
// completely. A connection can carry messages of other protocols, and bytes of such a
// message do not make numbers as small as these.
const (
	maxVersion = 1<<8 - 1
	maxCount   = 1<<16 - 1
)

// rpcrdma keeps the header of RPC-over-RDMA, which has up to size bytes. It reports
// false, and keeps nothing, if the bytes are not such a header.
func (m *message) rpcrdma(size int) bool {
	h := &m.rdma
	err := h.Decode(m.in)
	whole := err == nil && h.Understood() && h.Proc <= rpcrdma.MsgP
	switch {
	case len(m.in) < 8 || h.Vers > maxVersion && !whole:
		return false
	case len(m.in) < rpcrdma.FixedLen:
		m.keep(0, 8)
		m.keepSmall(8)
		return false
	case whole:
	case h.Credits > maxCount || h.Proc > maxVersion:
		return false
	case h.Proc == rpcrdma.Error:
		m.keep(0, rpcrdma.FixedLen)
		for at := rpcrdma.FixedLen; at < min(size, h.Length); at += 4 { // the error code and the range of versions
			m.keepSmall(at)
		}
		return true
	}
	m.keep(0, min(size, h.Length))
	if errors.Is(err, rpcrdma.ErrMalformed) && h.Proc <= rpcrdma.MsgP && size >= h.Length+4 {
		m.keepSmall(h.Length) // findings quote the wrong word
	}
	if !h.Understood() || h.Proc == rpcrdma.MsgP || h.Proc > rpcrdma.Error {
		m.keepKind()
	}
	return true
}

// keepKind keeps the words that tell whether a message of an unknown version or procedure, or
// an RDMA_MSGP, is a Call or a Reply: the XID of the header again, the type of the RPC message, and the RPC version or
// the state of the Reply.
func (m *message) keepKind() {
	const farthest = 1 << 10 // the dissector does not look farther
	for at := rpcrdma.FixedLen; at+12 <= min(len(m.in), farthest); at += 4 {
		if m.word(at) != m.word(0) {
			continue
		}
		kind, next := oncrpc.MessageType(m.word(at+4)), m.word(at+8)
		if kind == oncrpc.Call && next == 2 || kind == oncrpc.Reply && next <= 1 {
			m.keep(at, at+12)
			return
		}
	}
}

// keepSmall keeps the word at an offset if it is a small number, or is all ones.
func (m *message) keepSmall(at int) {
	if v := m.word(at); v <= maxCount || v == math.MaxUint32 {
		m.keep(at, at+4)
	}
}

// rpc writes the scrubbed RPC message that begins at base. It keeps nothing if the
// bytes are not the beginning of an RPC message.
func (m *message) rpc(s *wiremap.Message, base int) {
	h, p := &m.header, m.in[base:]
	m.start = base
	err := h.Decode(p)
	fits := true
	switch {
	case base >= 4 && len(p) >= 4 && m.word(0) == h.XID:
		m.keep(base, base+4)
		if h.Type > oncrpc.Reply && len(p) >= 8 {
			m.keepSmall(base + 4) // findings quote it
		}
		if len(p) < 12 && h.Type <= oncrpc.Reply {
			m.keep(base, base+8)
		}
	case len(p) < 12:
		return
	}
	switch h.Type {
	case oncrpc.Call:
		if h.RPCVersion > maxVersion || h.Version > maxCount || h.Procedure > maxCount {
			return
		}
		m.keep(base, base+24)
		at := base + 24
		if at, fits = m.auth(at, true); fits {
			_, fits = m.auth(at, false)
		}
	case oncrpc.Reply:
		if h.ReplyState > maxVersion {
			return
		}
		m.keep(base, base+12)
		at := base + 12
		if h.ReplyState == 0 {
			at, fits = m.auth(at, false)
		}
		if fits { // the accept or reject state, and the range of versions or the reason that follows it
			end := at + 4
			if h.ReplyState == 1 || h.AcceptState == 2 {
				end += 8
			}
			for ; at < min(end, base+h.Length); at += 4 {
				m.keepSmall(at)
			}
		}
	}
	if err != nil || !fits || h.Type == oncrpc.Reply && !h.Succeeded() {
		return
	}
	for _, hole := range s.Holes {
		if hole.Position >= 0 && hole.Position < int64(h.Length) {
			m.headerHoles(s, base)
			return
		}
	}
	m.body(s, base, base+h.Length)
}

// headerHoles handles a Call of which a Read chunk holds a part of the RPC header. It
// keeps the words that determine the offset of the verifier.
func (m *message) headerHoles(s *wiremap.Message, base int) {
	m.drop(base+24, len(m.in))
	if !m.keepAuth(base + 24) {
		return
	}
	size := int64(be.Uint32(m.in[base+28:]))
	verifier := 32 + (size+3)&^3
	at := verifier
	for _, hole := range s.Holes {
		if hole.Position >= 32 && hole.Position < verifier {
			at -= (hole.Length + 3) &^ 3
		}
	}
	if at >= 32 && at+8 <= int64(len(m.in)-base) {
		m.keepAuth(base + int(at))
	}
}

// keepAuth keeps the flavor and the length of the credential or verifier at an offset.
// It reports false, and keeps nothing, if they are not valid.
func (m *message) keepAuth(at int) bool {
	flavor, size := m.word(at), m.word(at+4)
	if size > maxCount || flavor > maxCount && (flavor < firstPseudoflavor || flavor > lastPseudoflavor) {
		return false
	}
	m.keep(at, at+8)
	return true
}

// maxAuth is the maximum length of the body of a credential or verifier (RFC 5531
// s.8.2).
const maxAuth = 400

// The range of pseudoflavors, which NFS negotiates (RFC 2623 s.2.2.3, RFC 7530
// s.3.2.1).
const (
	firstPseudoflavor = 390000
	lastPseudoflavor  = 399999
)

// word returns the word at an offset, or 0 if the message ends before it.
func (m *message) word(at int) uint32 {
	if at < 0 || at+4 > len(m.in) {
		return 0
	}
	return be.Uint32(m.in[at:])
}

// auth writes the scrubbed credential or verifier at an offset and returns its end.
// whole is false if it is truncated or too long.
func (m *message) auth(at int, credential bool) (end int, whole bool) {
	if !m.keepAuth(at) {
		return at, false
	}
	size := int(m.word(at + 4))
	body := at + 8
	if end = body + (size+3)&^3; size > maxAuth || body > len(m.in) || end > len(m.in) {
		return at, false
	}
	if size > 0 {
		m.report.Credentials++
	}
	value := m.in[body : body+size]
	m.put(body+size, make([]byte, end-body-size))
	switch flavor := oncrpc.Flavor(m.word(at)); {
	case credential && flavor == oncrpc.AuthSys:
		m.authSys(body, body+size)
	case credential && flavor == oncrpc.AuthRPCSECGSS && size >= 20 && m.word(body) == 1 && m.word(body+4) <= maxVersion && m.word(body+12) <= maxVersion:
		m.keep(body, body+20)
		if n := int(m.word(body + 16)); n <= size-20 {
			m.put(body+20, make([]byte, size-20))
			m.put(body+20, m.key.opaque("context", value[20:20+n]))
		}
	default:
		m.put(body, m.key.token(value))
	}
	return end, true
}

// authSys writes the scrubbed body of AUTH_SYS (RFC 5531 s.14) at bytes [at, end).
func (m *message) authSys(at, end int) {
	if end-at < 8 {
		return
	}
	m.put(at, m.key.opaque("stamp", m.in[at:at+4]))
	m.keep(at+4, at+8)
	n := int(m.word(at + 4))
	at += 8
	if padded := (n + 3) &^ 3; n > 255 || padded+12 > end-at {
		return
	}
	m.put(at, m.key.path(m.in[at:at+n]))
	m.put(at+n, make([]byte, -n&3))
	at += (n + 3) &^ 3
	m.id(at)
	m.id(at + 4)
	m.keep(at+8, at+12)
	for i, n := 0, int(min(m.word(at+8), 16)); i < n && at+16+i*4 <= end; i++ {
		m.id(at + 12 + i*4)
	}
}

// id writes the pseudonym of the number of a user or group.
func (m *message) id(at int) {
	if at+4 <= len(m.in) {
		m.report.IDs++
		m.put(at, be.AppendUint32(nil, m.key.id(m.word(at))))
	}
}

// body writes the scrubbed arguments or results, which begin at an offset.
func (m *message) body(s *wiremap.Message, base, at int) {
	service, end := oncrpc.Service(s.Service), len(m.in)
	if m.header.Type == oncrpc.Call {
		g, isGSS := m.header.Credential.GSS()
		if service = g.Service; isGSS && g.Procedure != 0 {
			m.keepLength(at) // of the token
			return
		}
	}
	if s.Reply && s.Known && s.Procedure == 0 && at < end {
		m.context(at)
		return
	}
	switch service {
	case oncrpc.ServicePrivacy:
		m.keepLength(at)
		return
	case oncrpc.ServiceIntegrity:
		if at+8 > end || !m.keepLength(at) {
			return
		}
		m.keep(at+4, at+8) // the sequence number
		if n := int64(m.word(at)); n >= 4 && n < int64(end-at) {
			end = at + 4 + int((n+3)&^3)
			m.keepLength(end) // of the checksum
			if n := int(m.word(end)); n <= len(m.in)-end-4 && n <= 400 {
				m.put(end+4, m.key.token(m.in[end+4:end+4+n]))
				m.put(end+4+n, make([]byte, -n&3))
			}
		}
		at += 8
	}
	if s.Reply && s.Known && s.Procedure != 0 && (s.Program == nfs.ProgramNFS || s.Program == nfs.ProgramNFSACL) {
		m.keepSmall(at) // the status, which comes first in all versions
	}
	m.holes = m.holes[:0]
	for _, h := range s.Holes {
		if h.Position >= 0 {
			if h.Position -= int64(at - base); h.Position < 0 { // in the RPC header
				continue
			}
		}
		m.holes = append(m.holes, h)
	}
	body := m.in[at:min(max(end, at), len(m.in))]
	if m.read(s, body) {
		m.values(at, int64(at-base))
		m.keepPads(at)
	}
}

// context writes the scrubbed results of a NULL procedure, which has none unless it
// created a context of RPCSEC_GSS: its handle, two statuses, the size of the window,
// and a token (RFC 2203 s.5.2.3.1).
func (m *message) context(at int) {
	size := int(m.word(at))
	status := at + 4 + (size+3)&^3
	token := status + 12
	if size > maxAuth || token+4 > len(m.in) || token+4+int(m.word(token)) > len(m.in) {
		return
	}
	m.keep(at, at+4)
	m.put(at+4, m.key.opaque("context", m.in[at+4:at+4+size]))
	m.put(at+4+size, make([]byte, -size&3))
	m.keep(status, token+4)
}

// keepLength keeps the length of an opaque value. It reports false, and keeps nothing, if
// the length is larger than any message.
func (m *message) keepLength(at int) bool {
	if m.word(at) > maxMessage {
		return false
	}
	m.keep(at, at+4)
	return true
}

// maxMessage is larger than any RPC message that implementations accept, in bytes.
const maxMessage = 1 << 24

// decode decodes a body as the Call or Reply that it is.
func (m *message) decode(s *wiremap.Message, body []byte) {
	stream := nfs.NewStream(body, m.holes)
	h := &m.header
	m.size = len(body)
	switch {
	case h.Type == oncrpc.Call:
		m.nfs.Call(h.Program, h.Version, h.Procedure, stream)
	case s.Known:
		m.nfs.Results(s.Program, s.Version, s.Procedure, body, m.holes, true)
	default:
		m.nfs.Reply(s.Program, s.Version, s.Procedure, stream)
	}
}

// fits reports whether the decoder understood all of the body and found an item for
// every hole.
func (m *message) fits() bool {
	matched, used := 0, 0
	for i := range m.nfs.Items {
		if m.nfs.Items[i].Reduced {
			matched++
		}
	}
	for i := range m.holes {
		if m.holes[i].Length > 0 {
			used++
		}
	}
	return m.nfs.Complete && m.nfs.Left == 0 && matched == used
}

// read decodes a body. If the body does not fit, read tries again without the XDR
// pads of reduced items, which some implementations leave in the body, and then with
// reduced items at other positions than the chunk list says, or a Reply whose results are
// in later Write chunks than they should be, or whose Write chunks are unused although they
// are returned with a length. It reports false if the
// result cannot be trusted.
func (m *message) read(s *wiremap.Message, body []byte) bool {
	call := m.header.Type == oncrpc.Call
	m.guessed = !call && !s.Known
	if !call && !s.Known && !s.NFS4 {
		return false
	}
	m.deleted = m.deleted[:0]
	given := slices.Clone(m.holes)
	m.decode(s, body)
	if !call && !s.Known { // the Call is not known, so the body must decode as a Reply
		return m.nfs.Named && m.nfs.Count > 0
	}
	if m.fits() || len(m.holes) == 0 {
		return true
	}
	m.scratch = append(m.scratch[:0], body...)
	for nth := 0; ; nth++ {
		at, pad := m.padAt(nth)
		if pad == 0 || at+pad > len(m.scratch) {
			break
		}
		m.deleted = append(m.deleted, deletion{at, pad})
		m.scratch = slices.Delete(m.scratch, at, at+pad)
		copy(m.holes, given)
		if m.decode(s, m.scratch); m.nfs.Complete && m.nfs.Left == 0 {
			return true
		}
	}
	m.deleted = m.deleted[:0]
	if call {
		for i := range m.holes {
			m.holes[i].Position = -1
		}
		if m.decode(s, body); m.fits() {
			return true
		}
	}
	if !call {
		if m.readUsed(s, body, given) {
			return true
		}
		m.holes = m.holes[:0]
		if m.decode(s, body); m.fits() {
			return true
		}
	}
	m.holes = append(m.holes[:0], given...)
	m.decode(s, body)
	return true
}

// readUsed decodes the body of a Reply as if the Write chunks that are returned empty were not
// there: a server may have used a later chunk for an earlier result. It reports whether the
// body fits.
func (m *message) readUsed(s *wiremap.Message, body []byte, given []nfs.Hole) bool {
	var chunks []int // the index of each hole's Write chunk
	m.holes = m.holes[:0]
	for i, h := range given {
		if h.Length > 0 {
			m.holes, chunks = append(m.holes, h), append(chunks, i)
		}
	}
	if len(chunks) == len(given) {
		return false
	}
	if m.decode(s, body); !m.fits() {
		return false
	}
	for i := range m.nfs.Items {
		if it := &m.nfs.Items[i]; it.Reduced {
			it.Hole = chunks[it.Hole]
		}
	}
	return true
}

// padAt returns offset and length of the XDR pad of the nth reduced item that has
// one.
func (m *message) padAt(nth int) (at, pad int) {
	moved := int64(0)
	for i := range m.nfs.Items {
		item := &m.nfs.Items[i]
		if !item.Reduced {
			continue
		}
		if pad := -item.Length & 3; pad > 0 {
			if nth == 0 {
				return int(item.Position - moved), int(pad)
			}
			nth--
		}
		moved += (item.Length + 3) &^ 3
	}
	return 0, 0
}

// place converts an offset in the decoded body to one in the original body.
func (m *message) place(at int) int {
	for i := len(m.deleted) - 1; i >= 0; i-- {
		if d := m.deleted[i]; at >= d.at {
			at += d.n
		}
	}
	return at
}

// keepPads writes zeros for the pads that were deleted.
func (m *message) keepPads(base int) {
	for i, d := range m.deleted {
		at := d.at
		for j := i - 1; j >= 0; j-- {
			if at >= m.deleted[j].at {
				at += m.deleted[j].n
			}
		}
		m.put(base+at, make([]byte, d.n))
	}
}

// values keeps the decoded structure of the body at base and writes pseudonyms for
// its values. The body begins inner bytes into the Payload stream.
func (m *message) values(base int, inner int64) {
	n := &m.nfs
	end := m.size - int(n.Left)
	if n.Dropped > 0 { // the contents of dropped values are not known
		end = 0
	}
	broken := len(n.Values)
	if last := len(n.Ops) - 1; last >= 0 && (n.Left > 3 || n.Left > 0 && !n.Complete) { // decoding failed or ended early, so the last operation may be wrong
		if number := n.Ops[last].Number; last > 0 && !m.guessed && (number < 3 || number > maxNumbered) && number != illegal {
			last-- // the number is not that of an operation, so the operation before it was decoded wrongly
		}
		if item, split := m.splitItem(); split && last == len(n.Ops)-1 {
			end = min(end, item)
		} else if data, cut := m.cutWrite(); cut && last == len(n.Ops)-1 {
			end = min(end, data)
		} else {
			broken = n.Ops[last].First
			end = min(end, m.head(last))
		}
	}
	for i := range n.Values[:broken] {
		if v := &n.Values[i]; !tooMuch(n, v) || m.guessed && v.Kind == nfs.Bool { // the message may be a callback that is decoded as something else
			continue
		}
		op := slices.IndexFunc(n.Ops, func(o nfs.Op) bool { return o.First <= i && i < o.Last })
		if op < 0 {
			return // the value is before the first operation
		}
		broken, end = n.Ops[op].First, min(end, m.head(op))
		break
	}
	for i := 0; i < end; i++ {
		at := base + m.place(i)
		m.keep(at, at+1)
	}
	moved, item := int64(0), 0
	for i := range n.Values[:broken] {
		v := &n.Values[i]
		for item < len(n.Items) && n.Items[item].Value >= 0 && n.Items[item].Value < i {
			item++
		}
		at := int(v.At - moved)
		if item < len(n.Items) && n.Items[item].Value == i && n.Items[item].Reduced {
			it := &n.Items[item]
			moved += (it.Length + 3) &^ 3
			if v.Kind != nfs.Data {
				m.reduced = append(m.reduced, reducedValue{it.Position + inner, it.Length, it.Hole, v.Kind == nfs.String})
			}
			continue
		}
		m.value(v, base, at)
	}
}

// head returns the end of the bytes that may be kept of an operation that was not
// decoded completely, as an offset in the decoded body. These are its number and, in
// a Reply, its status.
func (m *message) head(nth int) int {
	n := &m.nfs
	op := &n.Ops[nth]
	at := m.decodedAt(op.At)
	if !nfs.IsCompound(n.Program, n.Version, n.Procedure) || op.Number > maxOperation {
		return at
	}
	if at += 4; op.HasStatus {
		at += 4
	}
	return at
}

// decodedAt converts a position in the unreduced body to an offset in the decoded body.
func (m *message) decodedAt(position int64) int {
	at := position
	for i := range m.nfs.Items {
		if it := &m.nfs.Items[i]; it.Reduced && it.Position <= position {
			at -= (it.Length + 3) &^ 3
		}
	}
	return int(at)
}

// splitItem reports whether the arguments end in a data item of which only the first bytes
// are in the body and a Read chunk has the rest, and returns the offset of these bytes in the
// decoded body. All that precedes them was decoded.
func (m *message) splitItem() (at int, split bool) {
	from, to, lacks := m.nfs.Lacks()
	total := int64(m.size)
	for _, h := range m.holes {
		total += (h.Length + 3) &^ 3
	}
	if !lacks || m.header.Type != oncrpc.Call || to > total {
		return 0, false
	}
	for _, h := range m.holes {
		if from < h.Position && h.Position < to {
			return m.decodedAt(from), true
		}
	}
	return 0, false
}

// cutWrite reports whether the arguments end in the data of a WRITE of which only the first bytes were captured, and returns
// the offset of these bytes in the decoded body. What precedes them tells where in a file the WRITE is, as that of whole ones does.
func (m *message) cutWrite() (at int, cut bool) {
	n := &m.nfs
	from, to, lacks := n.Lacks()
	op := &n.Ops[len(n.Ops)-1]
	if !lacks || m.guessed || m.header.Type != oncrpc.Call || op.Number != opWrite || from != op.At+4+nfs.WriteFixed || to-from > maxWrite {
		return 0, false
	}
	stable := &n.Values[len(n.Values)-1]
	return m.decodedAt(from), stable.Name == "stable" && stable.Uint <= mostStable
}

// WRITE of NFSv4 (RFC 8881 s.18.32).
const (
	opWrite    = 38
	mostStable = 2       // FILE_SYNC4
	maxWrite   = 1 << 24 // bytes of data; more are none
)

// illegal is OP_ILLEGAL, with which a server answers an operation that it does not
// know.
const illegal = 10044

// maxNumbered is above the numbers of all operations that documents define, with
// space for those to come.
const maxNumbered = 127

// maxOperation is above the numbers of all operations. A larger number is not that
// of an operation.
const maxOperation = 1 << 24

// netids lists the network identifiers of protocols, which are kept.
var netids = []string{"tcp", "tcp6", "udp", "udp6", "rdma", "rdma6"}

// value writes the pseudonym of a value if it is sensitive; at is its offset in the
// decoded body.
func (m *message) value(v *nfs.Value, base, at int) {
	var out []byte
	switch v.Kind {
	case nfs.Uint, nfs.Hex:
		switch {
		case v.Name == "uid" || v.Name == "gid" || v.Name == "gids" || v.Name == "id" && v.Len == 4:
			m.report.IDs++
			out = be.AppendUint32(nil, m.key.id(uint32(v.Uint)))
		case v.Name == "cookie":
			wide := be.AppendUint64(nil, m.key.cookie(v.Uint, int(v.Len)*8))
			out = wide[8-v.Len:]
		case v.Name == "stamp":
			out = m.key.opaque("stamp", be.AppendUint32(nil, uint32(v.Uint)))
		}
		m.overwrite(base, at, out)
		return
	case nfs.String:
		switch {
		case v.Name == "netid" && slices.Contains(netids, string(v.Bytes)):
			out = v.Bytes
		case v.Name == "owner" || v.Name == "owner_group" || v.Name == "who":
			out = m.key.owner(v.Bytes)
		case v.Name == "addr":
			out = m.key.universal(v.Bytes)
		default:
			out = m.key.path(v.Bytes)
		}
		m.report.Names++
	case nfs.Handle:
		out = m.key.opaque("handle", v.Bytes)
		m.report.Handles++
	case nfs.Opaque:
		out = m.key.opaque("opaque", v.Bytes)
		m.report.Opaque++
	case nfs.Data:
		at += 4
		if m.header.Type == oncrpc.Call { // A client may repeat the Call, and its data must be the same then.
			m.overwrite(base, at, m.key.data(len(v.Bytes), m.in[m.start:]))
		} else {
			for i := range v.Bytes {
				at := base + m.place(at+i)
				m.drop(at, at+1)
			}
		}
		m.overwrite(base, at+len(v.Bytes), make([]byte, -len(v.Bytes)&3))
		return
	default:
		return
	}
	if v.Len > int64(len(v.Bytes)) { // the value has a length before it and a pad after it
		at += 4
		out = append(out, make([]byte, -len(out)&3)...)
	}
	m.overwrite(base, at, out)
}

// overwrite writes out at an offset of the decoded body.
func (m *message) overwrite(base, at int, out []byte) {
	for i := range out {
		m.put(base+m.place(at+i), out[i:i+1])
	}
}
