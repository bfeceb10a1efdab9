package export

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/disk"
	"github.com/rdmadump/rdmadump/internal/link"
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
// RPCTCP writes messages to a temporary file when they are complete, and sorts them on
// disk, because the order of the output is that of their packets. A connection begins with
// its first message, and has no end.
type RPCTCP struct {
	// Wants, if not nil, reports whether a transaction is written; an error ends the
	// export.
	Wants func(*record.Transaction) bool

	file     *disk.File
	messages *disk.Sorter
	live     *wire // nil if messages are written at the end
	report   RPCTCPReport
}

// TempFile holds the messages until they are written in order, usually an
// [os.File].
type TempFile = disk.Raw

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
	s := fmt.Sprintf("%s and %s on %s", record.Plural(r.Calls, "Call"), record.Plural(r.Replies, "Reply"), record.Plural(r.Connections, "connection"))
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.Zeroed, "%d with zeros for file data that was not captured (" + record.Plural(r.ZeroedBytes, "byte") + ")"},
		{r.Truncated, "%d truncated because the rest was not captured"},
		{r.LeftOut, "%d left out because too little was captured"},
		{r.NoRPC, "%d left out because an RDMA_ERROR carries no RPC"},
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
	named        uint32 // bytes before the message in the temporary file, which are those of names
	xid          uint32
	connection   int32
	fromServer   bool
	reply        bool
}

// messageLen is the length of a message in the table of messages.
const messageLen = 58

// append appends the message as a record of the table. The key is the order in which
// messages are written: by packet and transaction, and a Call before its Reply if both
// are in one packet.
func (m *message) append(b []byte) []byte {
	for _, v := range []int64{m.packet, m.id} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, flag(m.reply), flag(m.fromServer))
	for _, v := range []int64{m.time, m.offset} {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	for _, v := range []uint32{m.length, m.captured, m.zeroed, m.named, m.xid, uint32(m.connection)} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// flag returns 1 if b is true, and 0 otherwise.
func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// decode reads a record of the table.
func (m *message) decode(b []byte) {
	long := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	word := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	*m = message{
		packet: long(0), id: long(8), reply: b[16] > 0, fromServer: b[17] > 0, time: long(18), offset: long(26),
		length: word(34), captured: word(38), zeroed: word(42), named: word(46), xid: word(50), connection: int32(word(54)),
	}
}

// tcp is a TCP connection to be written.
type tcp struct{ client, server end }

// end is one end of a TCP connection.
type end struct {
	address netip.Addr
	port    uint16
	mac     [6]byte
	next    uint32 // sequence number
}

// NewRPCTCP returns an exporter that keeps messages in an empty temporary file,
// which belongs to the caller.
func NewRPCTCP(temporary TempFile) *RPCTCP {
	file := disk.NewFile(temporary)
	return &RPCTCP{file: file, messages: disk.NewSorter(file, messageLen)}
}

// LiveRPCTCP returns an exporter that writes each RPC when it is complete, for live traffic. It needs no temporary file, and Write is not
// called. The times of the packets are not in order if RPCs overlap.
func LiveRPCTCP(to io.Writer, application string) *RPCTCP {
	return &RPCTCP{file: disk.NewFile(nil), live: newWire(to, application)}
}

// Flush writes what is buffered.
func (e *RPCTCP) Flush() error {
	return cmp.Or(e.live.err, e.live.Flush())
}

// newWire returns what writes the segments of a file.
func newWire(to io.Writer, application string) *wire {
	w := &wire{Writer: newWriter(to, application), ports: newPorts(), live: map[int]*tcp{}}
	w.Interface(&capture.Origin{LinkType: capture.LinkEthernet, Description: "RPCs as if TCP had carried them", Digits: 9})
	return w
}

// Handler returns the handler for a dissector that runs with
// [dissect.Options.Rebuild].
func (e *RPCTCP) Handler() dissect.Handler {
	return dissect.Handler{Payload: e.payload}
}

// err returns the error of the temporary file.
func (e *RPCTCP) err() error {
	if err := e.file.Err(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

func (e *RPCTCP) payload(r *record.Transaction, call, reply *record.Payload) error {
	if e.Wants != nil && !e.Wants(r) {
		return nil
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
	return e.err()
}

// keep writes a message to the temporary file, or at once if the traffic is live.
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
	entry.id, entry.xid, entry.connection = r.ID, uint32(r.XID), int32(r.Connection)
	if names := [...]string{r.Transport, r.Client.Or(""), r.Server.Or("")}; e.live != nil {
		e.live.write(e.live.connection(&entry, names[:]), &entry, func(into []byte) { copy(into, p.Data) })
	} else {
		text := strings.Join(names[:], separator)
		entry.named, entry.offset = uint32(len(text)), e.file.Append([]byte(text))
		e.file.Append(p.Data)
		e.messages.Add(entry.append(nil))
	}
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

// separator is between the transport, the client and the server of a message in the temporary file.
const separator = "\x00"

// Write writes the pcapng file. It is called once, after the dissector has
// finished.
func (e *RPCTCP) Write(to io.Writer, application string) (*RPCTCPReport, error) {
	messages := e.messages.Table(nil)
	w := newWire(to, application)
	var m message
	for i := range messages.Len() {
		m.decode(messages.At(i))
		c := w.live[int(m.connection)]
		if c == nil {
			names := make([]byte, m.named)
			e.file.Read(names, m.offset)
			if e.file.Err() != nil {
				break
			}
			c = w.connection(&m, strings.SplitN(string(names), separator, 3))
		}
		w.write(c, &m, func(to []byte) { e.file.Read(to, m.offset+int64(m.named)) })
		if w.err != nil {
			return nil, w.err
		}
	}
	if err := e.err(); err != nil {
		return nil, err
	}
	if w.err == nil {
		w.err = w.Flush()
	}
	e.report.Connections = w.connections
	return &e.report, w.err
}

// Every message is a record of one fragment (RFC 5531 s.11), which begins with a
// record mark of 4 bytes.
const (
	markLength = 4
	lastMark   = 1 << 31
)

// write writes a message, whose bytes a function reads, as TCP segments.
func (w *wire) write(c *tcp, m *message, read func(into []byte)) {
	w.message = slices.Grow(w.message[:0], markLength+int(m.length))[:markLength+int(m.length)]
	b := w.message
	binary.BigEndian.PutUint32(b, lastMark|m.length)
	read(b[markLength:])
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

// ports assigns ports to clients, so that no two connections have the same addresses and
// ports.
type ports struct {
	used map[pair]bool
	next uint16
}

// pair is the address and the port of a client, and the address of its server.
type pair struct {
	client, server netip.Addr
	port           uint16
}

func newPorts() ports { return ports{used: map[pair]bool{}, next: 49152} }

// maxPorts limits the number of pairs that are remembered. Ports are reused after as many
// connections.
const maxPorts = 1 << 16

// assign returns a port for a client.
func (p *ports) assign(client, server netip.Addr) uint16 {
	if len(p.used) >= maxPorts {
		clear(p.used)
	}
	end := pair{client, server, p.next}
	for ; end.port == 0 || end.port == serverPort || p.used[end]; end.port++ { // 65536 wraps to 0, and on
	}
	p.used[end], p.next = true, end.port+1
	return end.port
}

// connection returns the TCP connection of a message. A new one gets addresses and ports, and begins with a handshake. Names are those of
// its transport, its client and its server.
func (w *wire) connection(m *message, names []string) *tcp {
	id := int(m.connection)
	if c := w.live[id]; c != nil {
		return c
	}
	c := &tcp{
		client: end{address: address(names[1], 1), mac: [6]byte{2, 0, 0, 0, 0, 1}, next: 1 << 28},
		server: end{address: address(names[2], 2), port: serverPort, mac: [6]byte{2, 0, 0, 0, 0, 2}, next: 2 << 28},
	}
	if c.client.address.Is4() != c.server.address.Is4() {
		c.client.address, c.server.address = netip.AddrFrom16(c.client.address.As16()), netip.AddrFrom16(c.server.address.As16())
	}
	c.client.port = w.ports.assign(c.client.address, c.server.address)
	if len(w.live) >= maxPorts { // those that go on begin again
		clear(w.live)
	}
	w.live[id] = c
	w.connections++
	comment := fmt.Sprintf("connection %d of the capture, %s", id, names[0])
	for i, end := range [...]string{"client", "server"} {
		if strings.HasPrefix(names[1+i], "LID") {
			comment += fmt.Sprintf(", %s %s", end, names[1+i])
		}
	}
	options := []byte{2, 4, segmentSize >> 8, segmentSize & 0xff, 1, 3, 3, 14} // maximum segment size, no-operation, window scale
	w.segment(segment{from: &c.client, to: &c.server, at: m.time, flags: link.TCPSYN, options: options, comment: comment})
	w.segment(segment{from: &c.server, to: &c.client, at: m.time, flags: link.TCPSYN | link.TCPACK, options: options})
	w.segment(segment{from: &c.client, to: &c.server, at: m.time, flags: link.TCPACK})
	return c
}

// address returns the IP address of an end, whose address is s. An end without one gets an address
// from the range for benchmarks (RFC 2544), which contains its LID if it has one
// and otherwise number.
func address(s string, number uint16) netip.Addr {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().WithZone("")
	}
	if lid, err := strconv.ParseUint(strings.TrimPrefix(s, "LID "), 10, 16); err == nil {
		return netip.AddrFrom4([4]byte{198, 18, byte(lid >> 8), byte(lid)})
	}
	return netip.AddrFrom4([4]byte{198, 19, byte(number >> 8), byte(number)})
}

// wire writes TCP segments.
type wire struct {
	*Writer
	buffer      []byte
	message     []byte
	ports       ports
	live        map[int]*tcp // the connections, by number
	connections int64
	err         error
}

// segmentSize is the largest payload of a segment, in bytes. It is as large as
// captures show it on hosts whose adapter does the segmentation.
const segmentSize = 1 << 15

// minFrame is the minimum length of an Ethernet frame without its FCS, in bytes.
// Shorter frames are padded.
const minFrame = 60

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
	if err := w.Packet(0, &capture.Frame{Time: s.at, Data: b[:len(b)-s.missing], Length: len(b)}, s.comment); w.err == nil {
		w.err = err
	}
}
