package dissect

// iwarpStream is one direction of a TCP connection that carries iWARP.
type iwarpStream struct{}

// tcpTracker follows TCP connections that are iWARP, or may be.
type tcpTracker struct{}

func (t *tcpTracker) segment(d *Dissector) *conn { return nil }
