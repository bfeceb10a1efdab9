package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/link"
)

// RPCTCP writes the RPCs of a capture as if TCP had carried them (RFC 5531 s.11):
// with record marking, and with the addresses, times and XIDs of the capture. Both
// directions of an RDMA connection use one TCP connection, whose server port is
// 2049.
//
// A Call has the time of its first packet, a Reply that of its last. The response
// time that other tools compute is therefore the latency that rdmadump reports.
//
// Missing bytes of a reduced data item are replaced by zeros, and a comment on the
// packet says so. If other bytes of a message are missing, the message is truncated
// there, as by a short snapshot length, or it is left out if it does not fit into
// one TCP segment. [RPCTCPReport] counts all of these messages.
//
// RPCTCP writes messages to a temporary file when they are complete, because the
// order of the output is that of their packets. It keeps some 60 bytes per message
// in memory.
type RPCTCP struct {
	// Wants, if not nil, reports whether a transaction is written; an error ends the
	// export.
	Wants func(*record.Transaction) (bool, error)

	file        TempFile
	out         *bufio.Writer
	size        int64 // of file
	messages    []message
	connections map[int]*tcp
	report      RPCTCPReport
	err         error
}

// TempFile holds the messages until they are written in order, usually an
// [os.File].
type TempFile interface {
	io.Writer
	io.ReaderAt
}

// RPCTCPReport counts the connections and messages that were written or left out.
type RPCTCPReport struct {
	Connections int64
	Calls       int64
	Replies     int64
	Zeroed      int64 // Calls and Replies in which zeros replace missing file data
	ZeroedBytes int64 // bytes of these zeros
	Truncated   int64 // Calls and Replies that are written as far as they were captured
	LeftOut     int64 // Calls and Replies that could not be rebuilt
	NoRPC       int64 // RDMA_ERRORs, which have no RPC message
}

// String returns the report as one line of text.
func (r *RPCTCPReport) String() string {
	s := fmt.Sprintf("%d Calls and %d Replies on %d connections", r.Calls, r.Replies, r.Connections)
	if r.Connections == 1 {
		s = strings.TrimSuffix(s, "s")
	}
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.Zeroed, "%d with zeros for file data that was not captured (" + strconv.FormatInt(r.ZeroedBytes, 10) + " bytes)"},
		{r.Truncated, "%d truncated because the rest was not captured"},
		{r.LeftOut, "%d left out because too little was captured"},
		{r.NoRPC, "%d RDMA_ERRORs left out because they carry no RPC"},
	} {
		if part.n > 0 {
			s += "; " + fmt.Sprintf(part.text, part.n)
		}
	}
	return s
}

// message describes a Call or Reply in the temporary file.
type message struct {
	packet, time int64
	id           int64  // of the transaction
	offset       int64  // in the temporary file
	length       uint32 // bytes of the whole message
	captured     uint32 // bytes of the message that can be written
	zeroed       uint32 // bytes of missing file data, replaced by zeros
	connection   int32
	fromServer   bool
	reply        bool
	xid          uint32
}

// tcp is a TCP connection to be written.
type tcp struct {
	record         *record.Connection
	left           int // number of messages that were not written yet
	client, server end
	opened         bool
}

// end is one end of a TCP connection.
type end struct {
	address netip.Addr
	port    uint16
	mac     [6]byte
	next    uint32 // sequence number
}

// NewRPCTCP returns an exporter that keeps messages in an empty temporary file,
// which belongs to the caller.
func NewRPCTCP(file TempFile) *RPCTCP {
	return &RPCTCP{file: file, out: bufio.NewWriterSize(file, 1<<18), connections: map[int]*tcp{}}
}

// Handler returns the handler for a dissector that runs with
// [dissect.Options.Rebuild].
func (e *RPCTCP) Handler() dissect.Handler {
	return dissect.Handler{Payload: e.payload, Connection: e.connection}
}

func (e *RPCTCP) connection(r *record.Connection) error {
	if c := e.connections[r.ID]; c != nil {
		c.record = r.Clone()
	}
	return nil
}

func (e *RPCTCP) payload(r *record.Transaction, call, reply *record.Payload) error {
	if e.Wants != nil {
		if wanted, err := e.Wants(r); err != nil || !wanted {
			return err
		}
	}
	server := r.Direction == record.Backward // the server sends the Call
	if m := r.Call; m != nil {
		e.keep(r, call, message{packet: m.Packet, time: int64(m.Time), fromServer: server})
	}
	if m := r.Reply; m != nil {
		if r.Status == record.RDMAError {
			e.report.NoRPC++
			return nil
		}
		e.keep(r, reply, message{packet: m.LastPacket, time: int64(m.LastTime), fromServer: !server, reply: true})
	}
	return e.err
}

// keep writes a message to the temporary file.
func (e *RPCTCP) keep(r *record.Transaction, p *record.Payload, entry message) {
	if p == nil || len(p.Data) == 0 {
		e.report.LeftOut++
		return
	}
	n := p.Readable()
	if n < int64(len(p.Data)) && (int64(len(p.Data)) > segmentSize-markLength || n < 4) {
		e.report.LeftOut++
		return
	}
	entry.length, entry.captured = uint32(len(p.Data)), uint32(n)
	for _, h := range p.Holes {
		if h.Item && h.From < n {
			entry.zeroed += uint32(h.To - h.From)
		}
	}
	c := e.connections[r.Connection]
	if c == nil {
		c = &tcp{}
		e.connections[r.Connection] = c
	}
	c.left++
	entry.id, entry.xid, entry.connection, entry.offset = r.ID, uint32(r.XID), int32(r.Connection), e.size
	if _, err := e.out.Write(p.Data); err != nil && e.err == nil {
		e.err = err
	}
	e.size += int64(len(p.Data))
	e.messages = append(e.messages, entry)
	switch {
	case entry.reply:
		e.report.Replies++
	default:
		e.report.Calls++
	}
	if entry.zeroed > 0 {
		e.report.Zeroed++
		e.report.ZeroedBytes += int64(entry.zeroed)
	}
	if entry.captured < entry.length {
		e.report.Truncated++
	}
}

// Write writes the pcapng file. It is called once, after the dissector has
// finished.
func (e *RPCTCP) Write(to io.Writer, application string) (*RPCTCPReport, error) {
	if e.err == nil {
		e.err = e.out.Flush()
	}
	if e.err != nil {
		return nil, fmt.Errorf("export: temporary file: %w", e.err)
	}
	slices.SortFunc(e.messages, func(a, b message) int {
		return cmp.Or(cmp.Compare(a.packet, b.packet), cmp.Compare(a.id, b.id), cmp.Compare(a.at(), b.at()))
	})
	w := wire{Writer: NewWriter(to, application)}
	w.Interface(&capture.Origin{LinkType: capture.LinkEthernet, Description: "RPCs as if TCP had carried them", Digits: 9})
	opens := e.connect()
	e.report.Connections = int64(len(opens))
	var closing []*tcp          // connections without further messages, by the time when they close
	until := func(time int64) { // writes the handshakes and ends that are not later than time
		for {
			switch {
			case len(closing) > 0 && closing[0].closes() <= time && (len(opens) == 0 || closing[0].closes() <= opens[0].opens()):
				w.close(closing[0], time)
				closing = closing[1:]
			case len(opens) > 0 && opens[0].opens() <= time:
				w.open(opens[0], time)
				opens = opens[1:]
			default:
				return
			}
		}
	}
	for i := range e.messages {
		m := &e.messages[i]
		c := e.connections[int(m.connection)]
		until(m.time)
		w.open(c, m.time) // the captured handshake may be later than the message
		if err := e.write(&w, c, m); err != nil {
			return nil, err
		}
		if c.left--; c.left == 0 && c.record.Closed.Known() {
			at, _ := slices.BinarySearchFunc(closing, c, func(a, b *tcp) int { return cmp.Compare(a.closes(), b.closes()) })
			closing = slices.Insert(closing, at, c)
		}
	}
	until(math.MaxInt64)
	if w.err == nil {
		w.err = w.Flush()
	}
	return &e.report, w.err
}

// at orders a Call (0) before its Reply (1) if both are in one packet.
func (m *message) at() int {
	if m.reply {
		return 1
	}
	return 0
}

// Every message is a record of one fragment (RFC 5531 s.11), which begins with a
// record mark of 4 bytes.
const (
	markLength = 4
	lastMark   = 1 << 31
)

// write writes a message as TCP segments.
func (e *RPCTCP) write(w *wire, c *tcp, m *message) error {
	b := make([]byte, markLength+int(m.length))
	binary.BigEndian.PutUint32(b, lastMark|m.length)
	if _, err := e.file.ReadAt(b[markLength:], m.offset); err != nil {
		return fmt.Errorf("export: temporary file: %w", err)
	}
	from, to := &c.client, &c.server
	if m.fromServer {
		from, to = to, from
	}
	comment := m.comment()
	for captured := markLength + int(m.captured); len(b) > 0; comment = "" {
		n, flags := min(len(b), segmentSize), uint8(link.TCPACK)
		if n == len(b) {
			flags |= link.TCPPSH
		}
		w.segment(segment{
			from: from, to: to, at: m.time, flags: flags,
			data: b[:n], missing: n - min(captured, n), comment: comment,
		})
		b, captured = b[n:], max(captured-n, 0)
	}
	return w.err
}

// comment returns a comment that says how many bytes are missing; it is empty if
// the message is complete.
func (m *message) comment() string {
	name := "Call"
	if m.reply {
		name = "Reply"
	}
	switch {
	case m.captured < m.length:
		return fmt.Sprintf("%s with XID 0x%08x: packet %d of the capture has only %d of its %d bytes", name, m.xid, m.packet, m.captured, m.length)
	case m.zeroed > 0:
		return fmt.Sprintf("%s with XID 0x%08x: the capture lacks %d bytes of its file data, which are replaced by zeros", name, m.xid, m.zeroed)
	}
	return ""
}

// serverPort is the port of NFS over TCP.
const serverPort = 2049

// connect assigns addresses and ports to the connections, and returns them by the
// time when they open.
func (e *RPCTCP) connect() []*tcp {
	type pair struct {
		client, server netip.Addr
		port           uint16
	}
	used, next := map[pair]bool{}, uint16(49152)
	var all []*tcp
	for id, c := range e.connections {
		if c.record == nil {
			c.record = &record.Connection{ID: id}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *tcp) int { return cmp.Compare(a.record.ID, b.record.ID) })
	for _, c := range all {
		client, server := c.record.Client, c.record.Server
		c.client = end{address: address(client, 1), port: client.Port.Or(0), mac: [6]byte{2, 0, 0, 0, 0, 1}, next: 1 << 28}
		c.server = end{address: address(server, 2), port: serverPort, mac: [6]byte{2, 0, 0, 0, 0, 2}, next: 2 << 28}
		if c.client.address.Is4() != c.server.address.Is4() {
			c.client.address, c.server.address = netip.AddrFrom16(c.client.address.As16()), netip.AddrFrom16(c.server.address.As16())
		}
		p := pair{c.client.address, c.server.address, c.client.port}
		for tries := 0; p.port == 0 || p.port == serverPort || used[p]; tries++ {
			if p.port = next; tries == 1<<16 { // all ports are taken, so they are reused
				clear(used)
			}
			next++ // 65536 wraps to 0, and on
		}
		used[p] = true
		c.client.port = p.port
	}
	slices.SortStableFunc(all, func(a, b *tcp) int { return cmp.Compare(a.opens(), b.opens()) })
	return all
}

// address returns the IP address of an end. An end without one gets an address
// from the range for benchmarks (RFC 2544), which contains its LID if it has one
// and otherwise number.
func address(e record.Endpoint, number uint16) netip.Addr {
	s := e.Address.Or("")
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().WithZone("")
	}
	if lid, err := strconv.ParseUint(strings.TrimPrefix(s, "LID "), 10, 16); err == nil {
		return netip.AddrFrom4([4]byte{198, 18, byte(lid >> 8), byte(lid)})
	}
	return netip.AddrFrom4([4]byte{198, 19, byte(number >> 8), byte(number)})
}

// opens returns the time when the connection is established, in ns since 1970.
func (c *tcp) opens() int64 {
	if at, known := c.record.Established.Get(); known {
		return int64(at)
	}
	return int64(c.record.First)
}

// closes returns the time when the connection ends, in ns since 1970.
func (c *tcp) closes() int64 { return int64(c.record.Closed.Or(c.record.Last)) }

// name returns the comment on the first packet of a connection.
func (c *tcp) name() string {
	r := c.record
	s := fmt.Sprintf("connection %d of the capture", r.ID)
	if r.Transport != "" {
		s += ", " + r.Transport
	}
	for _, end := range []struct {
		name     string
		endpoint record.Endpoint
	}{{"client", r.Client}, {"server", r.Server}} {
		if a := end.endpoint.Address.Or(""); strings.HasPrefix(a, "LID") {
			s += fmt.Sprintf(", %s %s", end.name, a)
		}
		if qpn, known := end.endpoint.QPN.Get(); known {
			s += fmt.Sprintf(", %s QP %v", end.name, qpn)
		}
	}
	return s
}

// wire writes TCP segments.
type wire struct {
	*Writer
	buffer []byte
	err    error
}

// segmentSize is the largest payload of a segment, in bytes. It is as large as
// captures show it on hosts whose adapter does the segmentation.
const segmentSize = 1 << 15

// minFrame is the minimum length of an Ethernet frame without its FCS, in bytes.
// Shorter frames are padded.
const minFrame = 60

// open writes the handshake of a connection, with a time not after latest.
func (w *wire) open(c *tcp, latest int64) {
	if c.opened {
		return
	}
	c.opened = true
	at := min(c.opens(), latest)
	options := []byte{2, 4, segmentSize >> 8, segmentSize & 0xff, 1, 3, 3, 14} // maximum segment size, no-operation, window scale
	w.segment(segment{from: &c.client, to: &c.server, at: at, flags: link.TCPSYN, options: options, comment: c.name()})
	w.segment(segment{from: &c.server, to: &c.client, at: at, flags: link.TCPSYN | link.TCPACK, options: options})
	w.segment(segment{from: &c.client, to: &c.server, at: at, flags: link.TCPACK})
}

// close writes the end of a connection, with a time not after latest.
func (w *wire) close(c *tcp, latest int64) {
	at := min(c.closes(), latest)
	w.segment(segment{from: &c.client, to: &c.server, at: at, flags: link.TCPACK | link.TCPFIN})
	w.segment(segment{from: &c.server, to: &c.client, at: at, flags: link.TCPACK | link.TCPFIN})
	w.segment(segment{from: &c.client, to: &c.server, at: at, flags: link.TCPACK})
}

// segment describes a TCP segment to be written.
type segment struct {
	from, to *end
	at       int64 // nanoseconds since 1970
	flags    uint8
	options  []byte // the length is a multiple of 4
	data     []byte
	missing  int // number of bytes at the end of data that were not captured
	comment  string
}

// segment writes a segment with its Ethernet and IP headers.
func (w *wire) segment(s segment) {
	from, to := s.from, s.to
	seq, ack := from.next, uint32(0)
	if s.flags&link.TCPACK != 0 {
		ack = to.next
	}
	from.next += uint32(len(s.data))
	if s.flags&(link.TCPSYN|link.TCPFIN) != 0 {
		from.next++
	}
	header := 20 + len(s.options)
	size := header + len(s.data)
	src, dst := from.address.AsSlice(), to.address.AsSlice()
	b := append(append(w.buffer[:0], to.mac[:]...), from.mac[:]...)
	if from.address.Is4() {
		b = binary.BigEndian.AppendUint16(b, 0x0800)
		at := len(b)
		b = binary.BigEndian.AppendUint16(append(b, 0x45, 0), uint16(20+size))
		b = append(b, 0, 0, 0x40, 0, 64, 6, 0, 0) // identification, don't fragment, TTL, TCP, checksum
		b = append(append(b, src...), dst...)
		binary.BigEndian.PutUint16(b[at+10:], ^link.Fold(link.AddWords(0, b[at:])))
	} else {
		b = binary.BigEndian.AppendUint16(b, 0x86dd)
		b = binary.BigEndian.AppendUint16(append(b, 0x60, 0, 0, 0), uint16(size))
		b = append(b, 6, 64) // TCP, hop limit
		b = append(append(b, src...), dst...)
	}
	at := len(b)
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, from.port), to.port)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, seq), ack)
	b = append(b, uint8(header/4)<<4, s.flags, 0xff, 0xff, 0, 0, 0, 0) // window, checksum, urgent pointer
	b = append(append(b, s.options...), s.data...)
	sum := link.AddWords(link.AddWords(6+uint64(size), src), dst)
	binary.BigEndian.PutUint16(b[at+16:], ^link.Fold(link.AddWords(sum, b[at:])))
	b = append(b, make([]byte, max(minFrame-len(b), 0))...)
	w.buffer = b
	if err := w.Packet(0, s.at, b[:len(b)-s.missing], len(b), s.comment); w.err == nil {
		w.err = err
	}
}
