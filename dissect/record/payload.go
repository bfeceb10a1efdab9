package record

// Payload is the Payload stream of a Call or Reply, rebuilt: what was reduced is
// back where it was taken out, with XDR's round-up.
type Payload struct {
	Data  []byte // with zeros where something is missing
	Holes []Hole // what is missing, in order
}

// Hole is a range of a Payload stream that is not there: the capture does not
// have it, or there was no room to keep it.
type Hole struct {
	From, To int64 // bytes from the start of the stream
	Item     bool  // it lies in a reduced data item: where everything else stands is known
}

// Missing is how many bytes are not there.
func (p *Payload) Missing() (n int64) {
	for _, h := range p.Holes {
		n += h.To - h.From
	}
	return n
}

// Readable is the length of what stands before the first hole that is in no data
// item: what comes behind cannot be read as XDR.
func (p *Payload) Readable() int64 {
	for _, h := range p.Holes {
		if !h.Item {
			return h.From
		}
	}
	return int64(len(p.Data))
}
