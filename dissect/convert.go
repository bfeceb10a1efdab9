package dissect

import "github.com/rdmadump/rdmadump/dissect/record"

// some is what a pointer points at, where it points at anything.
func some[T any](p *T) record.Opt[T] {
	if p == nil {
		return record.Opt[T]{}
	}
	return record.Some(*p)
}

// as is some of another type.
func as[To ~string](p *string) record.Opt[To] {
	if p == nil {
		return record.Opt[To]{}
	}
	return record.Some(To(*p))
}

// converter has the storage of the record that is handed out.
type converter struct {
	transaction record.Transaction
	call, reply record.Message
	replyChunk  record.WriteChunk
	writes      []record.WriteSegment
}

// toMessage fills in a message, nil for nil.
func toMessage(to *record.Message, m *Message) *record.Message {
	if m == nil {
		return nil
	}
	*to = record.Message{
		Time: m.Time, Packet: m.Packet, LastPacket: m.LastPacket, RDMAVers: m.RDMAVers, RDMAProc: m.RDMAProc, Credits: m.Credits,
		HeaderBytes: some(m.HeaderBytes), SendBytes: some(m.SendBytes), PayloadBytes: some(m.PayloadBytes), Form: record.Form(m.Form), LastTime: m.lastTime,
	}
	return to
}

// segments are those of a Write chunk.
func (c *converter) segments(from []WriteSegment) []record.WriteSegment {
	first := len(c.writes)
	for _, s := range from {
		c.writes = append(c.writes, record.WriteSegment{
			Handle: s.Handle, Length: s.Length, Offset: s.Offset, ReturnedLength: some(s.ReturnedLength), MovedBytes: s.MovedBytes,
		})
	}
	if from == nil {
		return nil
	}
	return c.writes[first:len(c.writes):len(c.writes)]
}

// record is the record of a transaction, good until the next.
func (c *converter) record(r *Transaction) *record.Transaction {
	to := &c.transaction
	timeline, writeChunks := to.Timeline[:0], to.WriteChunks[:0]
	c.writes = c.writes[:0]
	*to = record.Transaction{
		Type: r.Type, ID: r.ID, Connection: r.Connection, XID: r.XID, Direction: record.Direction(r.Direction), Status: record.Status(r.Status),
		Program: some(r.Program), ProgramName: some(r.ProgramName), Version: some(r.Version), Procedure: some(r.Procedure),
		ProcedureName: some(r.ProcedureName), Operations: r.Operations, Operation: some(r.Operation), Credential: some(r.Credential),
		RPCStatus: some(r.RPCStatus), NFSStatus: some(r.NFSStatus), Call: toMessage(&c.call, r.Call), Reply: toMessage(&c.reply, r.Reply),
		ReadChunks: r.ReadChunks, NotInvalidated: r.NotInvalidated, LatencyNS: some(r.LatencyNS), RDMAError: some(r.RDMAError),
		RDMAErrorRange: some(r.RDMAErrorRange), RetransmitOf: some(r.RetransmitOf), Retransmitted: r.Retransmitted, Findings: r.Findings,
	}
	if r.WriteChunks != nil {
		if writeChunks == nil {
			writeChunks = []record.WriteChunk{}
		}
		for _, w := range r.WriteChunks {
			writeChunks = append(writeChunks, record.WriteChunk{Segments: c.segments(w.Segments)})
		}
		to.WriteChunks = writeChunks
	}
	if r.ReplyChunk != nil {
		c.replyChunk.Segments = c.segments(r.ReplyChunk.Segments)
		to.ReplyChunk = &c.replyChunk
	}
	if i := r.Invalidation; i != nil {
		to.Invalidation = record.Some(record.Invalidation{
			Handle: i.Handle, Packet: i.Packet, Chunk: as[record.Chunk](i.Chunk), Index: some(i.Index), Segment: some(i.Segment),
		})
	}
	if p := r.Phases; p != nil {
		to.Phases = record.Some(record.Phases{
			ToReadNS: some(p.ToReadNS), ReadNS: some(p.ReadNS), ToWriteNS: some(p.ToWriteNS), WriteNS: some(p.WriteNS), ToReplyNS: some(p.ToReplyNS),
		})
	}
	for i := range r.Timeline {
		e := &r.Timeline[i]
		timeline = append(timeline, record.Event{
			Time: e.Time, Packet: e.Packet, Event: record.EventKind(e.Event), From: record.Role(e.From), Handle: some(e.Handle), Offset: some(e.Offset),
			Bytes: some(e.Bytes), Packets: some(e.Packets), LastPacket: some(e.LastPacket), Of: record.EventKind(e.Of), Reason: e.Reason,
		})
	}
	to.Timeline = timeline
	return to
}

func toEndpoint(e Endpoint) record.Endpoint {
	return record.Endpoint{Address: some(e.Address), Port: some(e.Port), QPN: some(e.QPN)}
}

func toCredits(c Credits) record.Credits {
	return record.Credits{Requested: some(c.Requested), Granted: some(c.Granted), PeakInFlight: c.PeakInFlight}
}

// toConnection is the record of a connection.
func toConnection(r *Connection) *record.Connection {
	return &record.Connection{
		Type: r.Type, ID: r.ID, Transport: r.Transport, Client: toEndpoint(r.Client), Server: toEndpoint(r.Server), Established: some(r.Established),
		Closed: some(r.Closed), CloseReason: some(r.CloseReason), Handshake: r.Handshake, ServiceID: some(r.ServiceID), PrivateData: r.PrivateData,
		InlineThreshold: r.InlineThreshold, RemoteInvalidation: some(r.RemoteInvalidation), PathMTU: some(r.PathMTU), UpperLayer: r.UpperLayer,
		Transactions: r.Transactions, Credits: record.CreditPair{Forward: toCredits(r.Credits.Forward), Backward: toCredits(r.Credits.Backward)},
		Packets: r.Packets, Retransmitted: r.Retransmitted, OutOfOrder: r.OutOfOrder, Lost: r.Lost, Naks: r.Naks, RNRNaks: r.RNRNaks,
		First: r.First, Last: r.Last,
	}
}
