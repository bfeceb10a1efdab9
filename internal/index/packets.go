package index

import (
	"context"
	"net/netip"
	"sync"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// Packets lists the packets of a capture, as one pass reads them: what a line of a packet shows, in compressed blocks of some
// 20 bytes for each packet. The blocks are in the memory of the Index, and those that exceed its limit in its temporary file.
type Packets struct {
	rows *list[packetRow]

	mu       sync.Mutex
	progress func() (read, total int64)
	seen     int64 // number of packets that were read
	done     bool
	err      error
}

// packetRow is what Packets keeps of a packet.
type packetRow struct {
	Number         int64
	Time           record.Time
	Length         int
	Src, Dst       netip.Addr
	SrcLID, DstLID uint16
	Transport      string
	Connection     record.Opt[int]
	Transaction    record.Opt[int64]
	ICRC           record.Check
	Marks          record.Marks
	Point          string
	Summary        string
}

// PacketsState says how far Packets are.
type PacketsState struct {
	Count       int64 // number of packets in the list
	Seen        int64 // number of packets that were read
	Done        bool  // all of the capture was read, or reading it failed
	Err         error // the error that ended reading early
	Read, Total int64 // bytes of the input; Total is 0 if it is unknown
}

// Packets returns an empty list of packets.
func (x *Index) Packets() *Packets {
	return &Packets{rows: newList[packetRow](&x.space, newWords(), newEncoder())}
}

// Run dissects a capture and adds the packets that are selected. It returns when the capture ends, or cannot be read further,
// or ctx ends. The result is in the State.
func (p *Packets) Run(ctx context.Context, source capture.Source, o dissect.Options, selects func(*record.Packet) (bool, error)) {
	if s, ok := source.(interface{ Progress() (int64, int64) }); ok {
		p.mu.Lock()
		p.progress = s.Progress
		p.mu.Unlock()
	}
	_, err := dissect.New(dissect.Handler{Packet: func(r *record.Packet) error {
		hit, err := selects(r)
		if err != nil {
			return err
		}
		if hit {
			p.add(r)
		}
		p.mu.Lock()
		p.seen++
		p.mu.Unlock()
		return nil
	}}, o).Run(ctx, source)
	p.Finish(err)
}

// Finish notes that nothing more is added. Err is the error that ended reading early, or nil.
func (p *Packets) Finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.err = true, err
}

// add adds a packet.
func (p *Packets) add(r *record.Packet) {
	row := packetRow{
		r.Number, r.Time, r.Length, r.Src, r.Dst, r.SrcLID, r.DstLID, r.Transport, r.Connection, r.Transaction, r.ICRC, r.Marks, "", string(r.Summary),
	}
	if r.Path != nil {
		row.Point = r.Path.Point
	}
	p.rows.add(&row)
}

// State returns how far the list is.
func (p *Packets) State() PacketsState {
	p.mu.Lock()
	s := PacketsState{Seen: p.seen, Done: p.done, Err: p.err}
	progress := p.progress
	p.mu.Unlock()
	if progress != nil {
		s.Read, s.Total = progress()
	}
	_, s.Count = p.rows.bounds()
	return s
}

// Free frees the memory of the list. Nothing may be added or read afterwards.
func (p *Packets) Free() {
	_, to := p.rows.bounds()
	p.rows.forget(to)
	p.rows.enc.Close()
}

// Packet returns a packet of a list, by its place in the list, with what its line shows. It is nil if it is not there yet.
func (r *Reader) Packet(p *Packets, n int64) (*record.Packet, error) {
	if r.packets == nil || r.packets.list != p.rows {
		if r.packets != nil {
			r.packets.close()
		}
		r.packets = p.rows.reader()
	}
	row, err := r.packets.get(n)
	if row == nil {
		return nil, err
	}
	out := &record.Packet{
		Number: row.Number, Time: row.Time, Length: row.Length, Src: row.Src, Dst: row.Dst, SrcLID: row.SrcLID, DstLID: row.DstLID,
		Transport: row.Transport, Connection: row.Connection, Transaction: row.Transaction, ICRC: row.ICRC, Marks: row.Marks, Summary: []byte(row.Summary),
	}
	if row.Point != "" {
		out.Path = &record.Path{Point: row.Point}
	}
	return out, err
}
