package export

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"encoding/json"
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
// disk, because the order of the output is that of their packets. In memory it keeps
// only the connections that are open.
type RPCTCP struct {
	// Wants, if not nil, reports whether a transaction is written; an error ends the
	// export.
	Wants func(*record.Transaction) bool

	file     *disk.File
	messages *disk.Sorter
	all      *disk.Sorter     // connections
	open     map[int]*pending // connections whose record is still to come
	live     *wire            // nil if messages are written at the end
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
	xid          uint32
	connection   int32
	fromServer   bool
	reply        bool
}

// messageLen is the length of a message in the table of messages.
const messageLen = 54

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
	for _, v := range []uint32{m.length, m.captured, m.zeroed, m.xid, uint32(m.connection)} {
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
		length: word(34), captured: word(38), zeroed: word(42), xid: word(46), connection: int32(word(50)),
	}
}

// pending is a connection whose record is still to come.
type pending struct {
	messages int64
	first    int64 // time of the earliest message
}

// connection has the parts of a connection's record that the output needs. It is in the
// temporary file as JSON.
type connection struct {
	ID             int
	Transport      string
	Client, Server endpoint
	Messages       int64
	Opens, Closes  int64 // ns since 1970
	Closed         bool  // the capture shows how the connection ends
}

// endpoint is one end of a connection.
type endpoint struct {
	Address string
	Port    uint16
	QPN     string
}

// tcp is a TCP connection to be written.
type tcp struct {
	connection
	left           int64 // number of messages that were not written yet
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
func NewRPCTCP(temporary TempFile) *RPCTCP {
	file := disk.NewFile(temporary)
	return &RPCTCP{file: file, messages: disk.NewSorter(file, messageLen), all: disk.NewSorter(file, connectionLen), open: map[int]*pending{}}
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

// now writes a message of live traffic.
func (e *RPCTCP) now(r *record.Transaction, m *message, data []byte) {
	w := e.live
	c := w.live[r.Connection]
	if c == nil {
		c = &tcp{connection: connection{ID: r.Connection, Transport: r.Transport, Client: endpoint{Address: r.Client.Or("")}, Server: endpoint{Address: r.Server.Or("")}, Opens: m.time}}
		w.connect(c)
	}
	w.open(c, m.time)
	w.write(c, m, func(into []byte) { copy(into, data) })
}

// Handler returns the handler for a dissector that runs with
// [dissect.Options.Rebuild].
func (e *RPCTCP) Handler() dissect.Handler {
	return dissect.Handler{Payload: e.payload, Connection: func(r *record.Connection) error {
		e.connection(r)
		return e.err()
	}}
}

// err returns the error of the temporary file.
func (e *RPCTCP) err() error {
	if err := e.file.Err(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// connectionLen is the length of a record in the table of connections: the time when the
// connection is opened, its number, and offset and length of the rest. Times before 1970
// come first.
const connectionLen = 32

// connection writes a connection with messages to the temporary file.
func (e *RPCTCP) connection(r *record.Connection) {
	if e.live != nil {
		if c := e.live.live[r.ID]; c != nil {
			c.Closes = int64(r.Closed.Or(r.Last))
			e.live.close(c, c.Closes)
			delete(e.live.live, r.ID)
		}
		return
	}
	p := e.open[r.ID]
	if p == nil {
		return
	}
	delete(e.open, r.ID)
	c := connection{
		ID: r.ID, Transport: r.Transport, Client: ofEndpoint(r.Client), Server: ofEndpoint(r.Server), Messages: p.messages,
		Opens: int64(r.Established.Or(r.First)), Closes: int64(r.Closed.Or(r.Last)), Closed: r.Closed.Known(),
	}
	b, _ := json.Marshal(&c) // a struct of numbers and strings
	at := e.file.Append(b)
	var key []byte
	for _, v := range []int64{min(c.Opens, p.first) ^ math.MinInt64, int64(c.ID), at, int64(len(b))} {
		key = binary.BigEndian.AppendUint64(key, uint64(v))
	}
	e.all.Add(key)
}

// ofEndpoint returns the parts of r that the output needs.
func ofEndpoint(r record.Endpoint) endpoint {
	out := endpoint{Address: r.Address.Or(""), Port: r.Port.Or(0)}
	if qpn, known := r.QPN.Get(); known {
		out.QPN = fmt.Sprint(qpn)
	}
	return out
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
	if e.live != nil {
		e.now(r, &entry, p.Data)
	} else {
		c := e.open[r.Connection]
		if c == nil {
			c = &pending{first: entry.time}
			e.open[r.Connection] = c
		}
		c.messages++
		c.first = min(c.first, entry.time)
		entry.offset = e.file.Append(p.Data)
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

// Write writes the pcapng file. It is called once, after the dissector has
// finished.
func (e *RPCTCP) Write(to io.Writer, application string) (*RPCTCPReport, error) {
	for id := range e.open { // connections without a record
		e.connection(&record.Connection{ID: id, First: record.Time(e.open[id].first)})
	}
	messages, connections := e.messages.Table(nil), e.all.Table(nil)
	e.report.Connections = connections.Len()
	w := newWire(to, application)
	next := int64(0) // connection
	// until writes the handshakes and ends that are not later than time.
	until := func(time int64) {
		for e.file.Err() == nil {
			opens := int64(math.MaxInt64)
			if next < connections.Len() {
				opens = int64(binary.BigEndian.Uint64(connections.At(next))) ^ math.MinInt64
			}
			switch {
			case len(w.closing) > 0 && w.closing[0].Closes <= min(time, opens):
				w.close(heap.Pop(&w.closing).(*tcp), time)
			case next < connections.Len() && opens <= time:
				c := e.load(connections.At(next))
				w.connect(c)
				if next++; c.Opens <= time {
					w.open(c, time)
				}
			default:
				return
			}
		}
	}
	var m message
	for i := range messages.Len() {
		m.decode(messages.At(i))
		until(m.time)
		c := w.live[int(m.connection)]
		if e.file.Err() != nil {
			break
		}
		if c == nil { // its records are later than its messages
			c = &tcp{connection: connection{ID: int(m.connection), Opens: m.time}, left: math.MaxInt64}
			w.connect(c)
		}
		w.open(c, m.time) // the captured handshake may be later than the message
		w.write(c, &m, func(to []byte) { e.file.Read(to, m.offset) })
		if w.err != nil {
			return nil, w.err
		}
		if c.left--; c.left == 0 {
			delete(w.live, c.ID)
			if c.Closed {
				heap.Push(&w.closing, c)
			}
		}
	}
	until(math.MaxInt64)
	if err := e.err(); err != nil {
		return nil, err
	}
	if w.err == nil {
		w.err = w.Flush()
	}
	return &e.report, w.err
}

// load reads a connection from the temporary file.
func (e *RPCTCP) load(record []byte) *tcp {
	at, n := int64(binary.BigEndian.Uint64(record[16:])), int64(binary.BigEndian.Uint64(record[24:]))
	b := make([]byte, n)
	e.file.Read(b, at)
	c := new(tcp)
	json.Unmarshal(b, &c.connection) // after an error of reading, b has zeros
	c.left = c.Messages
	return c
}

// closing are the connections without further messages, the first to close first.
type closing []*tcp

func (c closing) Len() int { return len(c) }
func (c closing) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[i].Closes, c[j].Closes), cmp.Compare(c[i].ID, c[j].ID)) < 0
}
func (c closing) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push is that of [heap.Interface].
func (c *closing) Push(x any) { *c = append(*c, x.(*tcp)) }

// Pop is that of [heap.Interface].
func (c *closing) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	(*c)[last] = nil
	*c = (*c)[:last]
	return x
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

// assign returns the port of a client: its own one, unless that is taken.
func (p *ports) assign(client, server netip.Addr, port uint16) uint16 {
	if len(p.used) >= maxPorts {
		clear(p.used)
	}
	end := pair{client, server, port}
	for end.port == 0 || end.port == serverPort || p.used[end] {
		end.port = p.next
		p.next++ // 65536 wraps to 0, and on
	}
	p.used[end] = true
	return end.port
}

// connect assigns addresses and ports to a connection.
func (w *wire) connect(c *tcp) {
	if before := w.live[c.ID]; before != nil { // it had messages after its record
		before.left += c.left
		return
	}
	c.client = end{address: address(c.Client.Address, 1), mac: [6]byte{2, 0, 0, 0, 0, 1}, next: 1 << 28}
	c.server = end{address: address(c.Server.Address, 2), port: serverPort, mac: [6]byte{2, 0, 0, 0, 0, 2}, next: 2 << 28}
	if c.client.address.Is4() != c.server.address.Is4() {
		c.client.address, c.server.address = netip.AddrFrom16(c.client.address.As16()), netip.AddrFrom16(c.server.address.As16())
	}
	c.client.port = w.ports.assign(c.client.address, c.server.address, c.Client.Port)
	w.live[c.ID] = c
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

// name returns the comment on the first packet of a connection.
func (c *connection) name() string {
	s := fmt.Sprintf("connection %d of the capture", c.ID)
	if c.Transport != "" {
		s += ", " + c.Transport
	}
	for _, end := range []struct {
		name string
		endpoint
	}{{"client", c.Client}, {"server", c.Server}} {
		if strings.HasPrefix(end.Address, "LID") {
			s += fmt.Sprintf(", %s %s", end.name, end.Address)
		}
		if end.QPN != "" {
			s += fmt.Sprintf(", %s QP %s", end.name, end.QPN)
		}
	}
	return s
}

// wire writes TCP segments.
type wire struct {
	*Writer
	buffer  []byte
	message []byte
	ports   ports
	live    map[int]*tcp // connections with messages that were not written yet
	closing closing
	err     error
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
	at := min(c.Opens, latest)
	options := []byte{2, 4, segmentSize >> 8, segmentSize & 0xff, 1, 3, 3, 14} // maximum segment size, no-operation, window scale
	w.segment(segment{from: &c.client, to: &c.server, at: at, flags: link.TCPSYN, options: options, comment: c.name()})
	w.segment(segment{from: &c.server, to: &c.client, at: at, flags: link.TCPSYN | link.TCPACK, options: options})
	w.segment(segment{from: &c.client, to: &c.server, at: at, flags: link.TCPACK})
}

// close writes the end of a connection, with a time not after latest.
func (w *wire) close(c *tcp, latest int64) {
	at := min(c.Closes, latest)
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
	if err := w.Packet(0, &capture.Frame{Time: s.at, Data: b[:len(b)-s.missing], Length: len(b)}, s.comment); w.err == nil {
		w.err = err
	}
}
