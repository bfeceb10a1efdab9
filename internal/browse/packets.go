package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rdmadump/rdmadump/dissect/header"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/index"
	"github.com/rdmadump/rdmadump/internal/query"
	"github.com/rdmadump/rdmadump/render"
)

// packetPass is what the list of packets has in place of records of the index: rows, which another pass over the capture makes
// when the list is looked at for the first time. A filter needs a pass of its own, because rows do not have all fields.
type packetPass struct {
	m   *Model
	all *packetList                // without a filter; nil before the list is looked at
	now atomic.Pointer[packetList] // with the filter of the list, also for jobs
}

// packetList is a list of packets, and the job that fills it.
type packetList struct {
	*index.Packets
	reading *job[struct{}]
}

// newPackets returns the list of packets.
func newPackets(m *Model) *list {
	p := &packetPass{m: m}
	l := newList(m, &source{
		name: "packets", one: "packet", view: "packets", fields: query.Packets, since: "time >= %s", until: "time <= %s",
		time: func(r any) record.Opt[record.Time] { return record.Some(r.(*record.Packet).Time) },
		bounds: func(index.State) (int64, int64) {
			if now := p.now.Load(); now != nil {
				return 0, now.State().Count
			}
			return 0, 0
		},
		get: func(r *index.Reader, n int64) (any, error) {
			if now := p.now.Load(); now != nil {
				if packet, err := r.Packet(now.Packets, n); packet != nil || err != nil {
					return packet, err
				}
			}
			return nil, nil
		},
	})
	l.pass = p
	l.enter = func(int64, any) { m.openPackets(l, l.cursor) }
	l.preview = m.previewPacket
	return l
}

// previewPacket draws the whole line of a packet, of which the list may show only the beginning.
func (m *Model) previewPacket(r any, width int) (lines []string) {
	p := r.(*record.Packet)
	text := fmt.Sprintf("packet %d, %d bytes", p.Number, p.Length)
	if p.Path != nil {
		text = fmt.Sprintf("packet %s, %d bytes", ofPoint(record.PacketRef{Packet: p.Number, Point: p.Path.Point}), p.Length)
	}
	if p.Transport != "" {
		text += ", " + p.Transport
	}
	if id, known := p.Transaction.Get(); known {
		text += fmt.Sprintf(", of RPC %d", id)
	}
	lines = append(lines, text)
	if marks := render.Marks(p); len(marks) > 0 {
		lines = append(lines, m.styled(yellow, strings.Join(marks, " ")))
	}
	return append(lines, render.Wrap(clean(string(p.Summary)), width)...)
}

// update starts to read the packets when the list is looked at.
func (p *packetPass) update(l *list) {
	if p.now.Load() != nil || p.m.options.Open == nil || p.m.top() != screen(l) {
		return
	}
	if err := p.read(l.filter); err != nil {
		p.m.fail(err)
	}
}

// read starts a pass that lists the packets that a filter selects.
func (p *packetPass) read(filter string) error {
	m := p.m
	if old := p.now.Swap(nil); old != p.all {
		old.drop(m)
	}
	if m.options.Open == nil {
		return nil
	}
	if filter == "" && p.all != nil {
		p.now.Store(p.all)
		return nil
	}
	o, selects := m.options.Dissect, func(*record.Packet) (bool, error) { return true, nil }
	o.Live, o.OtherOperations, o.Only = false, true, render.OnlyLine
	if filter != "" {
		f, err := query.Compile(filter, query.Packets)
		if err != nil {
			return err
		}
		for _, path := range f.Paths() {
			o.Only |= header.Where(path)
			o.Tree = o.Tree || query.Decoded(path)
		}
		selects = func(r *record.Packet) (bool, error) { return f.Match(r) }
	}
	list, open := &packetList{Packets: m.options.Index.Packets()}, m.options.Open
	list.reading = start(m, func(ctx context.Context, _ func(struct{})) (none struct{}) {
		source, err := open(ctx)
		if err != nil {
			list.Finish(err)
			return none
		}
		defer source.Close()
		list.Run(ctx, source, o, selects)
		return none
	})
	if p.now.Store(list); filter == "" {
		p.all = list
	}
	return nil
}

// drop frees a list that is not needed any more, when nothing adds to it. The list may be nil.
func (l *packetList) drop(m *Model) {
	if l == nil {
		return
	}
	l.reading.stop()
	m.jobs.Go(func() {
		<-l.reading.done
		l.Free()
	})
}

// again reads a capture that has become longer once more.
func (p *packetPass) again(l *list) {
	now := p.now.Load()
	if !p.m.options.Live || now == nil || !now.State().Done {
		return
	}
	if p.now.Store(nil); now != p.all {
		now.drop(p.m)
	}
	p.all.drop(p.m)
	p.all = nil
	p.update(l)
}

// busy reports whether packets are being read.
func (p *packetPass) busy() bool {
	now := p.now.Load()
	return now != nil && !now.State().Done
}

// status says how many packets the list has, and how far the capture is read.
func (p *packetPass) status(filter string) (parts []part) {
	now := p.now.Load()
	if now == nil {
		return []part{{text: "packets"}}
	}
	s := now.State()
	text := record.Plural(s.Count, "packet")
	if filter != "" {
		parts, text = append(parts, part{"& " + clean(filter), withoutEnd}), fmt.Sprintf("%d of %d packets", s.Count, s.Seen)
	}
	switch {
	case s.Err != nil && s.Count > 0:
		text += ", then: " + clean(s.Err.Error())
	case s.Done && p.m.options.Live:
		text += " when they were read; 7 reads them once more"
	case s.Done && filter != "":
		text += ", final"
	case s.Done:
	case s.Total > 0:
		text += fmt.Sprintf(" so far, %d%% read", min(s.Read*100/s.Total, 99))
	default:
		text += " so far"
	}
	return append(parts, part{text: text})
}

// empty says why the list is empty.
func (p *packetPass) empty(filter string) string {
	if p.m.options.Open == nil {
		return p.m.options.Closed
	}
	now := p.now.Load()
	if now == nil {
		return "reading"
	}
	switch s := now.State(); {
	case s.Err != nil && !errors.Is(s.Err, context.Canceled):
		return clean(s.Err.Error())
	case !s.Done && filter != "":
		return "no match so far"
	case !s.Done:
		return "reading"
	case filter != "":
		return "no match; & and Enter show all packets"
	}
	return "the capture has no packets"
}

// The packets that are read at a time to be shown with all fields: those before and after the one that is asked for.
const (
	packetsBefore = 30
	packetsAfter  = 100
)

// openPackets shows the fields of the packet at a position of the list.
func (m *Model) openPackets(l *list, at int64) {
	from, to := max(at-packetsBefore, 0), min(at+packetsAfter, l.count())
	wanted := map[record.PacketRef]bool{}
	look := index.Closer{}
	var shown record.PacketRef
	for n := from; n < to; n++ {
		r, err := l.get(m.reader, n)
		p, is := r.(*record.Packet)
		if err != nil || !is {
			m.fail(cmp.Or(err, errors.New("this packet is not in the list any more")))
			return
		}
		ref := record.PacketRef{Packet: p.Number}
		if p.Path != nil {
			ref.Point = p.Path.Point
		}
		if wanted[ref] = true; n == at {
			shown = ref
		}
		if look.First == 0 || p.Number < look.First {
			look.First = p.Number
		}
		look.Last, look.Until = max(look.Last, p.Number), max(look.Until, p.Time)
	}
	options, open := m.options.Dissect, m.options.Open
	options.Live = false
	m.later("reading the packet", func(ctx context.Context, _ *index.Reader) func() {
		source, err := open(ctx)
		if err != nil {
			return func() { m.fail(err) }
		}
		defer source.Close()
		var packets []*record.Packet
		look.Packet = func(p *record.Packet) {
			if p.In(wanted) {
				packets = append(packets, p.Clone())
			}
		}
		err = look.Look(ctx, source, options)
		return func() {
			i := slices.IndexFunc(packets, func(p *record.Packet) bool { return p.Is(shown) })
			if i < 0 {
				m.fail(cmp.Or(err, errors.New("the packet was not found")))
				return
			}
			if top, is := m.top().(*packet); is && top.list == l {
				m.pop()
			}
			l.cursor = at
			p := newPacket(m, packets, i)
			p.list, p.from = l, at-int64(i)
			p.keys = append(p.keys, "r its RPC")
			m.push(p)
		}
	})
}

// goBackTo puts the cursor on a packet again, when the list shows all packets and has them.
func (p *packetPass) goBackTo(l *list, r any) {
	if packet, is := r.(*record.Packet); is && p.all != nil && p.all.State().Done {
		l.to = p.all.State().Count
		p.m.goToPacket(l, packet.Number)
	}
}

// openRPCOf shows the RPC of a packet.
func (m *Model) openRPCOf(p *record.Packet) {
	id, known := p.Transaction.Get()
	if !known {
		m.say(fmt.Sprintf("packet %d belongs to no RPC", p.Number))
		return
	}
	m.openRPC(id)
}

// goToPacket puts the cursor on the first packet of the list with a number, or with a larger one if the list does not have it.
func (m *Model) goToPacket(l *list, number int64) {
	count := l.count()
	m.later("looking for the packet", func(ctx context.Context, r *index.Reader) func() {
		at := int64(-1)
		for n := range count {
			rec, err := l.get(r, n)
			if p, is := rec.(*record.Packet); err == nil && is && p.Number >= number {
				at = n
				break
			}
			if n%4096 == 0 && ctx.Err() != nil {
				break
			}
		}
		return func() {
			if at < 0 {
				m.fail(fmt.Errorf("the list has no packet %d and none after it", number))
				return
			}
			m.stack, l.cursor, m.follow = nil, at, false
		}
	})
}

// nextMarked moves to the next packet of the list, or the previous one, that has a mark such as [retransmitted].
func (m *Model) nextMarked(l *list, back bool) {
	step, cursor, count := int64(1), l.cursor, l.count()
	if back {
		step = -1
	}
	m.later("looking for a packet with a mark", func(ctx context.Context, r *index.Reader) func() {
		found := int64(-1)
		for n := cursor + step; n >= 0 && n < count && (n%4096 != 0 || ctx.Err() == nil); n += step {
			if rec, _ := l.get(r, n); rec != nil && len(render.Marks(rec.(*record.Packet))) > 0 {
				found = n
				break
			}
		}
		return func() {
			if found < 0 {
				m.say(map[bool]string{false: "no later packet has a mark", true: "no earlier packet has a mark"}[back])
				return
			}
			l.cursor, m.follow = found, false
		}
	})
}

// packetPrinter draws the rows of the list of packets as the command packets does.
type packetPrinter struct {
	*render.Packets
	out strings.Builder
}

// newPacketPrinter returns a printer for a width.
func newPacketPrinter(m *Model, theme *render.Theme, width int) *packetPrinter {
	p := &packetPrinter{}
	p.Packets = render.NewPackets(&p.out, theme, width)
	p.Points(m.options.Dissect.Points)
	if at, known := m.state.Start.Get(); known {
		p.Start(at)
	}
	return p
}

// draw returns the line of a packet.
func (p *packetPrinter) draw(r *record.Packet) string {
	p.out.Reset()
	p.Packet(r) // A strings.Builder takes everything.
	lines := strings.Split(strings.TrimSuffix(p.out.String(), "\n"), "\n")
	return lines[len(lines)-1] // The first packet has the heading above it.
}
