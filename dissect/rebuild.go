package dissect

// Rebuilding puts a Payload stream together again: what the Send carried, or
// the chunk that carried all of it, and every reduced data item back where it
// was taken out, rounded up to XDR's four bytes.

// rebuild hands the Payload streams of a transaction out; nil stands for one of
// which something is missing.
func (d *Dissector) rebuild(t *txn) {
	d.handler.Payload(d.converter.record(&t.rec), t.rebuildCall(), t.rebuildReply())
}

func (t *txn) rebuildCall() []byte {
	if t.rec.Call == nil || t.rec.Program == nil {
		return nil
	}
	out := append([]byte(nil), t.callBody...)
	for i := range t.segments {
		s := &t.segments[i]
		if s.kind != readChunk || s.index != 0 {
			continue
		}
		data, whole := t.chunkData(readChunk, s.chunk, false)
		if !whole || int64(s.position) > int64(len(out)) {
			return nil
		}
		if s.position == 0 {
			out = data
			continue
		}
		out = insert(out, int(s.position), data)
	}
	return out
}

func (t *txn) rebuildReply() []byte {
	if t.rec.Reply == nil || t.rec.RPCStatus == nil {
		return nil
	}
	out := append([]byte(nil), t.reply...)
	hole := 0
	for chunk := range t.writes {
		data, whole := t.chunkData(writeChunk, chunk, true)
		if !whole {
			return nil
		}
		if len(data) == 0 {
			continue
		}
		at := len(out) // outside of COMPOUND, the reducible item comes last
		if hole < len(t.holes) && t.isCompound() {
			if at = int(t.holes[hole].Position) + t.replyBody; t.holes[hole].Position < 0 || at > len(out) {
				return nil
			}
			hole++
		}
		out = insert(out, at, data)
	}
	return out
}

// chunkData is the data of one chunk, and whether all of it was seen.
func (t *txn) chunkData(kind chunkKind, chunk int, returned bool) ([]byte, bool) {
	want := int64(0)
	for i := range t.segments {
		if s := &t.segments[i]; s.kind == kind && s.chunk == chunk {
			if returned {
				want += int64(s.returned)
			} else {
				want += int64(s.length)
			}
		}
	}
	data := t.gather(nil, kind, chunk, returned)
	return data, int64(len(data)) == want
}

// insert puts a data item, padded, into a stream.
func insert(stream []byte, at int, item []byte) []byte {
	padded := append(append([]byte(nil), item...), make([]byte, -len(item)&3)...)
	return append(stream[:at:at], append(padded, stream[at:]...)...)
}
