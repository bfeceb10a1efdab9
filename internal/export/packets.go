package export

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/wiremap"
)

// Packets writes the packets of a capture unchanged, each with a comment that says
// what it carries. Interfaces, times and link types are preserved.
type Packets struct {
	// Wants, if not nil, reports whether a packet is written; an error ends the
	// export.
	Wants func(*record.Packet) bool
	// Rewrite, if not nil, returns the bytes to write instead of those of a frame, as
	// many as the frame has. In this case names, descriptions and options of interfaces,
	// sections and packets are left out.
	Rewrite func(*capture.Frame, *record.Packet, wiremap.StreamOffset) ([]byte, error)
	// HideXID, if not nil, reports whether the comment must not contain the XID of a
	// packet, because Rewrite replaces it.
	HideXID func(*record.Packet) bool
	// Report counts the packets that were written.
	Report PacketsReport

	w           *Writer
	application string
	sections    []*capture.Section // that have a packet, in the order of the first ones
	named       []int              // numbers of blocks with names that were written, by section
	interfaces  map[origin]uint32
	points      []string // names of the capture points, if there are several
	queue       waitingFrames
}

// origin is an interface of a capture point.
type origin struct {
	capture.Origin
	point int
}

// PacketsReport counts the packets that were written, and those with a comment.
type PacketsReport struct {
	Packets, Commented int64
}

// String returns the report as one line of text.
func (r *PacketsReport) String() string {
	return fmt.Sprintf("%s, %d of them with a comment", record.Plural(r.Packets, "packet"), r.Commented)
}

// NewPackets returns an exporter that writes to the file to, whose section header
// names the application.
func NewPackets(to io.Writer, application string) *Packets {
	return &Packets{w: capture.NewWriter(to), application: application, interfaces: map[origin]uint32{}}
}

// Point is a capture point. It has an interface of its own.
type Point struct {
	Name string
	Link capture.LinkType
	Snap uint32 // snapshot length in bytes; 0 means that frames are not truncated
}

// AtPoints describes the capture points, if there are several. It must be called before the first packet.
func (e *Packets) AtPoints(list []Point) {
	for i, p := range list {
		e.points = append(e.points, p.Name)
		e.describe(origin{capture.Origin{LinkType: p.Link, Digits: 9, Snap: p.Snap}, i})
	}
}

// Handler returns the handler for the dissector.
func (e *Packets) Handler() dissect.Handler { return dissect.Handler{Frame: e.packet} }

// Flush writes all buffered packets.
func (e *Packets) Flush() error {
	if err := e.release(0); err != nil {
		return err
	}
	if err := e.begin(nil); err != nil {
		return err
	}
	for i := range e.sections { // names that the file had after its packets
		if err := e.names(i); err != nil {
			return err
		}
	}
	return e.w.Flush()
}

// begin writes the header of the file if there is none yet, with what the first section of the captures says.
func (e *Packets) begin(first *capture.Section) error {
	options := ""
	if first != nil {
		options = first.Options
	}
	return e.w.Section(e.application, options)
}

// section writes what the section of a frame says, if that is not written yet. Of a later section than the first, these are
// only the names of addresses.
func (e *Packets) section(f *capture.Frame) error {
	s := f.Section
	if s == nil || e.Rewrite != nil || slices.Contains(e.sections, s) {
		return nil
	}
	if err := e.begin(s); err != nil {
		return err
	}
	e.sections, e.named = append(e.sections, s), append(e.named, 0)
	return e.names(len(e.sections) - 1)
}

// names writes the names of addresses of a section that were read since the last call.
func (e *Packets) names(i int) error {
	for _, body := range e.sections[i].Names()[e.named[i]:] {
		if err := e.w.Names(body); err != nil {
			return err
		}
		e.named[i]++
	}
	return nil
}

func (e *Packets) packet(f *capture.Frame, p *record.Packet, at wiremap.StreamOffset) error {
	if f.Seen != nil && f.Seen.Copy == capture.CopySent {
		if err := e.section(f); err != nil {
			return err
		}
		e.queue.wait(f, e.interfaceOf(f))
		return e.release(maxWaiting)
	}
	wanted := e.Wants == nil || e.Wants(p)
	if f.Seen != nil {
		if err := e.copies(f, p, at, wanted); err != nil {
			return err
		}
	}
	if !wanted {
		return e.release(maxWaiting)
	}
	if err := e.section(f); err != nil {
		return err
	}
	data, comment, err := e.content(f, p, at)
	if err != nil {
		return err
	}
	if len(e.queue.frames) == 0 {
		return e.write(e.interfaceOf(f), f, data, comment)
	}
	e.queue.add(f, e.interfaceOf(f), data, comment)
	return e.release(maxWaiting)
}

// interfaceOf returns the interface of a frame in the output.
func (e *Packets) interfaceOf(f *capture.Frame) uint32 {
	from := origin{Origin: capture.Origin{LinkType: f.LinkType, Digits: 9}}
	if f.From != nil {
		from.Origin = *f.From
	}
	if f.Seen != nil { // The times are those of another clock.
		from = origin{capture.Origin{LinkType: f.LinkType, Digits: 9, Snap: from.Snap}, f.Seen.Point}
	}
	number, known := e.interfaces[from]
	if !known {
		number = e.describe(from)
	}
	return number
}

// describe adds an interface.
func (e *Packets) describe(from origin) uint32 {
	described := from.Origin
	if from.point < len(e.points) {
		described.Name = e.points[from.point]
	}
	if e.Rewrite != nil {
		described.Name, described.Description, described.Options = "", "", ""
	}
	e.begin(nil)
	number := e.w.Interface(&described)
	e.interfaces[from] = number
	return number
}

// content returns the bytes and the comment of a frame.
func (e *Packets) content(f *capture.Frame, p *record.Packet, at wiremap.StreamOffset) (data []byte, comment string, err error) {
	data = f.Data
	if e.Rewrite != nil {
		if data, err = e.Rewrite(f, p, at); err != nil {
			return nil, "", err
		}
	}
	if e.HideXID != nil && p.XID.Known() && e.HideXID(p) {
		hidden := *p
		hidden.XID = record.Opt[record.Hex32]{}
		p = &hidden
	}
	comment = Comment(p)
	if p.Path != nil && p.Path.LostTo != "" && e.Rewrite == nil {
		comment += ", did not arrive at " + p.Path.LostTo
	}
	return data, comment, nil
}

// write writes a packet.
func (e *Packets) write(number uint32, f *capture.Frame, data []byte, comment string) error {
	if e.Report.Packets++; comment != "" {
		e.Report.Commented++
	}
	written := capture.Frame{Time: f.Time, Data: data, Length: f.Length}
	if e.Rewrite == nil {
		written.Options, written.Section = f.Options, f.Section
	}
	return e.w.Packet(number, &written, comment)
}

// Comment returns one line that describes a packet, such as "XID 0x4cc9dbf7, Read
// chunk 1 segment 2, bytes 65536-131071 of 524288, retransmitted". Chunks and segments
// are numbered from 1. The comment is empty if the packet is not an RDMA packet.
func Comment(p *record.Packet) string {
	if p.Transport == "" {
		return ""
	}
	var parts []string
	if id, known := p.Connection.Get(); known {
		parts = append(parts, "connection "+strconv.Itoa(id))
	}
	if xid, known := p.XID.Get(); known {
		parts = append(parts, "XID "+xid.String())
	}
	if id, known := p.Transaction.Get(); known {
		parts = append(parts, "transaction "+strconv.FormatInt(id, 10))
	} else if p.NoTransactionReason != "" && !p.XID.Known() {
		parts = append(parts, "of no RPC: "+strings.ReplaceAll(string(p.NoTransactionReason), "_", " "))
	}
	if p.RDMAOperation != "" {
		parts = append(parts, part(p))
	}
	if r := &p.Part; r.To > r.From {
		parts = append(parts, fmt.Sprintf("bytes %d-%d of %d", r.From, r.To-1, r.Length))
	}
	for mark := range p.Marks.Names() {
		parts = append(parts, strings.ReplaceAll(mark, "_", " "))
	}
	return strings.Join(parts, ", ")
}

// part returns the part of an RPC that a packet carries, requests or acknowledges.
func part(p *record.Packet) string {
	r := &p.Part
	name := p.RDMAOperation
	switch {
	case r.Message == record.EventCall:
		name = "Call"
	case r.Message == record.EventReply:
		name = "Reply"
	case r.Chunk == record.ReplyList:
		name = fmt.Sprintf("Reply chunk segment %d", r.Segment+1)
	case r.Chunk == record.WriteList:
		name = fmt.Sprintf("Write chunk %d segment %d", r.Index+1, r.Segment+1)
	case r.Chunk == record.ReadList:
		name = fmt.Sprintf("Read chunk %d segment %d", r.Index+1, r.Segment+1)
	}
	acknowledges, asks := false, false
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch n.Table {
		case &header.AETH:
			acknowledges = true
		case &header.TCP: // a segment without payload; a short frame may have padding
			recordHeader := len(p.Data) - p.Captured // of ERF
			acknowledges = n.Offset+len(n.Data) >= recordHeader+p.Length || p.Length <= 60
		case &header.RETH, &header.ReadRequest:
			asks = p.RDMAOperation == "RDMA Read"
		}
	}
	switch {
	case asks:
		return "requests " + name
	case acknowledges && p.Marks&record.Refused != 0:
		return "NAK for " + name
	case acknowledges && r.From == r.To:
		return "acknowledges " + name
	}
	return name
}
