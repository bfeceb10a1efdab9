package export

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Packets writes the packets of a capture as they are, each with a comment that
// says what it is. Interfaces, times and link types stay.
type Packets struct {
	// Wants, if not nil, says which packets to write; an error ends it.
	Wants func(*record.Packet) (bool, error)
	// Rewrite, if not nil, says what to write instead of a frame, as many bytes;
	// then neither names nor descriptions of interfaces are written.
	Rewrite func(*capture.Frame, *record.Packet) ([]byte, error)
	// Report counts them.
	Report PacketsReport

	w          *Writer
	interfaces map[capture.Origin]uint32
}

// PacketsReport counts packets.
type PacketsReport struct {
	Packets, Commented int64
}

// String is a line for people.
func (r *PacketsReport) String() string {
	return fmt.Sprintf("%d packets, %d of them with a comment", r.Packets, r.Commented)
}

// NewPackets begins a file; application is who writes it.
func NewPackets(to io.Writer, application string) *Packets {
	return &Packets{w: NewWriter(to, application), interfaces: map[capture.Origin]uint32{}}
}

// Handler takes what the dissector finds.
func (e *Packets) Handler() dissect.Handler { return dissect.Handler{Frame: e.packet} }

// Flush ends the file.
func (e *Packets) Flush() error {
	return e.w.Flush()
}

func (e *Packets) packet(f *capture.Frame, p *record.Packet) error {
	if e.Wants != nil {
		if wanted, err := e.Wants(p); err != nil || !wanted {
			return err
		}
	}
	from := capture.Origin{LinkType: f.LinkType, Digits: 9}
	if f.From != nil {
		from = *f.From
	}
	number, known := e.interfaces[from]
	if !known {
		described := from
		if e.Rewrite != nil {
			described.Name, described.Description = "", ""
		}
		number = e.w.Interface(&described)
		e.interfaces[from] = number
	}
	data := f.Data
	if e.Rewrite != nil {
		var err error
		if data, err = e.Rewrite(f, p); err != nil {
			return err
		}
	}
	comment := Comment(p)
	if e.Report.Packets++; comment != "" {
		e.Report.Commented++
	}
	return e.w.Packet(number, f.Time, data, f.Length, comment)
}

// Comment says in a line what a packet is: "XID 0x4cc9dbf7, Read chunk 1 segment 2,
// bytes 65536-131071 of 524288, retransmitted". Chunks and segments count from 1. It is
// empty for what is no RDMA.
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

// part says what of an RPC a packet is.
func part(p *record.Packet) string {
	r := &p.Part
	what := p.RDMAOperation
	switch {
	case r.Message == record.EventCall:
		what = "Call"
	case r.Message == record.EventReply:
		what = "Reply"
	case r.Chunk == record.ReplyList:
		what = fmt.Sprintf("Reply chunk segment %d", r.Segment+1)
	case r.Chunk == record.WriteList:
		what = fmt.Sprintf("Write chunk %d segment %d", r.Index+1, r.Segment+1)
	case r.Chunk == record.ReadList:
		what = fmt.Sprintf("Read chunk %d segment %d", r.Index+1, r.Segment+1)
	}
	acknowledges, asks := false, false
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch n.Table {
		case &header.AETH:
			acknowledges = true
		case &header.TCP: // with nothing behind it, but for what fills up a short frame
			recordHeader := len(p.Data) - p.Captured // of ERF
			acknowledges = n.Offset+len(n.Data) >= recordHeader+p.Length || p.Length <= 60
		case &header.RETH, &header.ReadRequest:
			asks = p.RDMAOperation == "RDMA Read"
		}
	}
	switch {
	case asks:
		return "asks for " + what
	case acknowledges && p.Marks&record.Refused != 0:
		return "about " + what
	case acknowledges && r.From == r.To:
		return "acknowledges " + what
	}
	return what
}
