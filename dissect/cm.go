package dissect

import (
	"encoding/binary"

	"github.com/rdmadump/rdmadump/dissect/rpcrdma"
	"github.com/rdmadump/rdmadump/rocev2"
)

var be = binary.BigEndian

// commID names one end's view of a connection, to the connection manager.
type commID struct {
	owner address
	id    uint32
}

// cmMessage is the decoded form of each message, kept so that decoding
// allocates nothing.
type cmMessages struct {
	mad  rocev2.MAD
	req  rocev2.REQ
	ipcm rocev2.IPCM
	rep  rocev2.REP
	rtu  rocev2.RTU
	rej  rocev2.REJ
	dreq rocev2.DREQ
	drep rocev2.DREP

	captured int // bytes of the message
	padded   [rocev2.CMSize]byte
}

// cutCM is how much of a message that the capture cut has to be there to make
// sense of it: its communication IDs and queue pair.
var cutCM = map[rocev2.CMAttribute]int{
	rocev2.CMReq: 35, rocev2.CMRep: 24, rocev2.CMRtu: 8, rocev2.CMRej: 12, rocev2.CMDreq: 11, rocev2.CMDrep: 8,
}

// noFeedback is for decoders whose error says it all.
type noFeedback struct{}

func (noFeedback) SetTruncated() {}

// manage takes a management datagram and returns the connection that it
// concerns, nil when there is none.
func (d *Dissector) manage(p *rocev2.Packet, src, dst address, at stamp) *conn {
	d.summary.CM++
	m := &d.cm
	if m.mad.DecodeFromBytes(p.Payload, noFeedback{}) != nil || m.mad.Class != rocev2.ClassCM {
		return nil
	}
	body := m.mad.Payload
	if m.captured = min(len(body), rocev2.CMSize); m.captured < rocev2.CMSize { // cut: what is not there reads as zero
		m.padded = [rocev2.CMSize]byte{}
		copy(m.padded[:], body)
		body = m.padded[:]
		if m.captured < cutCM[m.mad.Attribute] || cutCM[m.mad.Attribute] == 0 {
			return nil
		}
	}
	switch m.mad.Attribute {
	case rocev2.CMReq:
		if m.req.DecodeFromBytes(body, noFeedback{}) == nil {
			return d.requested(&m.req, src, dst, at)
		}
	case rocev2.CMRep:
		if m.rep.DecodeFromBytes(body, noFeedback{}) == nil {
			return d.accepted(&m.rep, src, dst, at)
		}
	case rocev2.CMRtu:
		if m.rtu.DecodeFromBytes(body, noFeedback{}) == nil {
			if c := d.byID(src, m.rtu.LocalCommID, dst, m.rtu.RemoteCommID); c != nil {
				d.establish(c, at)
				return c
			}
		}
	case rocev2.CMRej:
		if m.rej.DecodeFromBytes(body, noFeedback{}) == nil {
			return d.rejected(&m.rej, src, dst, at)
		}
	case rocev2.CMDreq:
		if m.dreq.DecodeFromBytes(body, noFeedback{}) == nil {
			c := d.byID(src, m.dreq.LocalCommID, dst, m.dreq.RemoteCommID)
			if f := d.flows[flowKey{src, dst, m.dreq.RemoteQPN}]; c == nil && f != nil {
				c = f.conn
			}
			if c != nil {
				d.close(c, "disconnect", at)
			}
			return c
		}
	case rocev2.CMDrep:
		if m.drep.DecodeFromBytes(body, noFeedback{}) == nil {
			if c := d.byID(src, m.drep.LocalCommID, dst, m.drep.RemoteCommID); c != nil {
				d.close(c, "disconnect", at)
				return c
			}
		}
	}
	return nil
}

// byID finds a connection by either end's communication ID.
func (d *Dissector) byID(src address, local uint32, dst address, remote uint32) *conn {
	if c := d.comms[commID{src, local}]; c != nil {
		return c
	}
	if remote == 0 {
		return nil
	}
	return d.comms[commID{dst, remote}]
}

// requested takes a REQ: a connection begins.
func (d *Dissector) requested(r *rocev2.REQ, src, dst address, at stamp) *conn {
	key := commID{src, r.LocalCommID}
	if old := d.comms[key]; old != nil {
		if f := old.flows[1]; !old.closed && f != nil && f.key.qpn == r.LocalQPN {
			return old // sent again
		}
	}
	c := d.newConn(at)
	c.handshake, c.client, c.requester = true, 0, r.LocalCommID
	c.mtu = r.MTU()
	d.comms[key] = c
	d.attach(c, 1, flowKey{dst, src, r.LocalQPN}, at)
	c.starting, c.startingKnown = r.StartingPSN, d.cm.captured >= 47
	c.storage.service = Hex64(r.ServiceID)
	c.record.ServiceID = &c.storage.service

	private := r.PrivateData
	if r.ServiceID>>24 == 1 { // the RDMA IP CM service (IBTA annex A11)
		port := uint16(r.ServiceID)
		c.storage.ports[1] = port
		c.record.Server.Port = &c.storage.ports[1]
		c.record.UpperLayer = serviceUpperLayers[port]
		if d.cm.captured >= 140+rocev2.IPCMLen && d.cm.ipcm.DecodeFromBytes(private, noFeedback{}) == nil {
			c.storage.ports[0] = d.cm.ipcm.SourcePort
			c.record.Client.Port = &c.storage.ports[0]
			private = d.cm.ipcm.Payload
		}
	}
	d.cmPrivateData(c, 0, private, at)
	return c
}

// cmPrivateData takes the private data of a REQ or REP, when the capture has all
// of it.
func (d *Dissector) cmPrivateData(c *conn, side int, data []byte, at stamp) {
	if d.cm.captured == rocev2.CMSize {
		d.privateData(c, side, data, at)
	}
	d.decideUpperLayer(c)
}

// privateData notes what a side says of itself (RFC 8797).
func (d *Dissector) privateData(c *conn, side int, data []byte, at stamp) {
	c.told[side] = true
	found, ok, err := rpcrdma.FindPrivateData(data)
	switch {
	case ok:
		c.private[side] = &found
		if c.record.UpperLayer == "" {
			c.record.UpperLayer = upperRPC
		}
	case err != nil:
		d.find(rulePrivateData, c, nil, nil, at, "%v; the defaults hold", err)
	}
}

// decideUpperLayer settles what the Sends of a connection are, as far as the
// handshake tells.
func (d *Dissector) decideUpperLayer(c *conn) {
	c.isRPC = c.record.UpperLayer == upperRPC
	c.undecided = c.record.UpperLayer == ""
}

// accepted takes a REP: both queue pairs are known.
func (d *Dissector) accepted(r *rocev2.REP, src, dst address, at stamp) *conn {
	c := d.comms[commID{dst, r.RemoteCommID}]
	if c == nil || c.closed || c.flows[1] == nil || c.flows[1].key.src != src {
		// The REQ is not in the capture.
		if known := d.comms[commID{src, r.LocalCommID}]; known != nil && !known.closed {
			return known
		}
		c = d.newConn(at)
		c.handshake, c.client = true, 0
		d.comms[commID{dst, r.RemoteCommID}] = c
		c.requester = r.RemoteCommID
	} else if f := c.flows[0]; f != nil && f.key.qpn == r.LocalQPN {
		return c // sent again
	}
	c.responder = r.LocalCommID
	d.comms[commID{src, r.LocalCommID}] = c
	f := d.attach(c, 0, flowKey{dst, src, r.LocalQPN}, at)
	// The PSN that each side names is the one that the other starts with (IBTA
	// volume 1, section 12.7.31).
	f.announced, f.expect = true, r.StartingPSN
	if back := c.flows[1]; back != nil && c.startingKnown {
		back.announced, back.expect = true, c.starting
	}
	d.cmPrivateData(c, 1, r.PrivateData, at)
	return c
}

// establish notes when a connection came up.
func (d *Dissector) establish(c *conn, at stamp) {
	if c.record.Established == nil && !c.closed {
		c.storage.established = at.time
		c.record.Established = &c.storage.established
	}
}

// rejected takes a REJ.
func (d *Dissector) rejected(r *rocev2.REJ, src, dst address, at stamp) *conn {
	c := d.byID(src, r.LocalCommID, dst, r.RemoteCommID)
	if c == nil || c.closed {
		return c
	}
	d.find(ruleRejected, c, nil, nil, at, "the connection was rejected: %v", r.Reason)
	d.close(c, "rejected: "+r.Reason.String(), at)
	return c
}

// close ends a connection. Its record goes out a little later, with the
// stragglers counted.
func (d *Dissector) close(c *conn, reason string, at stamp) {
	if c.closed {
		return
	}
	d.flush(c, at)
	c.closed, c.closedAt = true, at.time
	c.storage.closed = at.time
	c.record.Closed = &c.storage.closed
	if c.record.CloseReason == nil {
		c.storage.reason = reason
		c.record.CloseReason = &c.storage.reason
	}
	d.closed.push(c)
}
