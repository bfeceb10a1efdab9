package record

// Payload is the rebuilt Payload stream of a Call or Reply. Reduced data items are back in
// their places, with XDR padding.
type Payload struct {
	Data  []byte // missing bytes are zero
	Holes []Hole // ranges of missing bytes, in order
}

// Hole is a range of missing bytes in a Payload stream. The capture does not contain them, or
// they were not kept because of the memory limit.
type Hole struct {
	From, To int64 // from the start of the stream, in bytes
	Item     bool  // the hole is in a reduced data item, so the places of all other bytes are known
}

// Missing returns the number of missing bytes.
func (p *Payload) Missing() (n int64) {
	for _, h := range p.Holes {
		n += h.To - h.From
	}
	return n
}

// Readable returns the number of bytes before the first hole that is not in a data item. The
// bytes after it cannot be decoded as XDR.
func (p *Payload) Readable() int64 {
	for _, h := range p.Holes {
		if !h.Item {
			return h.From
		}
	}
	return int64(len(p.Data))
}
