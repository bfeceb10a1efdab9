package rdma

import (
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/dissect/rule"
	"github.com/rdmadump/rdmadump/rocev2"
)

// The connection manager's handshake: datagrams to queue pair 1.

// commID identifies one side's end of a connection in the connection manager's
// messages.
type commID struct {
	owner *Host
	id    uint32
}

// cmMessages contains a decoder for each message, so that decoding does not allocate.
type cmMessages struct {
	mad  rocev2.MAD
	req  rocev2.REQ
	ipcm rocev2.IPCM
	rep  rocev2.REP
	rtu  rocev2.RTU
	rej  rocev2.REJ
	dreq rocev2.DREQ
	drep rocev2.DREP

	captured int // captured bytes of the message
	padded   [rocev2.CMSize]byte
}

// minCMLength is the number of bytes of a truncated message that are needed: its
// communication IDs and queue pair.
var minCMLength = map[rocev2.CMAttribute]int{
	rocev2.CMReq: 35, rocev2.CMRep: 24, rocev2.CMRtu: 8, rocev2.CMRej: 12, rocev2.CMDreq: 11, rocev2.CMDrep: 8,
}

// Offsets in messages that may be truncated, in bytes.
const (
	startingPSNEnd = 47  // end of a REQ's starting PSN
	ackTimeoutEnd  = 96  // end of a REQ's Local ACK Timeout
	reqPrivate     = 140 // start of a REQ's private data
)

// handshakes takes the messages of the connection manager.
type handshakes struct {
	connections *connections

	comms map[commID]*Conn
	cm    cmMessages
}

// handleMAD takes a management datagram and returns its connection, nil if there is
// none.
func (hs *handshakes) handleMAD(d *Datagram) *Conn {
	m := &hs.cm
	if rocev2.Decode(d.Packet.Payload, &m.mad) != nil || m.mad.Class != rocev2.ClassCM {
		return nil
	}
	body := d.Packet.Payload[rocev2.MADLen:]
	if m.captured = min(len(body), rocev2.CMSize); m.captured < rocev2.CMSize { // truncated: the missing bytes read as zero
		if m.captured < minCMLength[m.mad.Attribute] || minCMLength[m.mad.Attribute] == 0 {
			return nil
		}
		m.padded = [rocev2.CMSize]byte{}
		copy(m.padded[:], body)
		body = m.padded[:]
	}
	switch m.mad.Attribute {
	case rocev2.CMReq:
		if rocev2.Decode(body, &m.req) == nil {
			return hs.handleREQ(&m.req, d)
		}
	case rocev2.CMRep:
		if rocev2.Decode(body, &m.rep) == nil {
			return hs.handleREP(&m.rep, d)
		}
	case rocev2.CMRtu:
		if rocev2.Decode(body, &m.rtu) == nil {
			if c := hs.findByCommID(d, m.rtu.LocalCommID, m.rtu.RemoteCommID); c != nil {
				c.establish(d.At)
				return c
			}
		}
	case rocev2.CMRej:
		if rocev2.Decode(body, &m.rej) == nil {
			return hs.handleREJ(&m.rej, d)
		}
	case rocev2.CMDreq:
		if rocev2.Decode(body, &m.dreq) == nil {
			c := hs.findByCommID(d, m.dreq.LocalCommID, m.dreq.RemoteCommID)
			var e ends
			if f := hs.connections.toward(d, m.dreq.RemoteQPN, &e); c == nil && f != nil {
				c = f.conn
			}
			if c != nil {
				c.close(Ending{How: record.EndDisconnect, By: c.sideOf(hs.connections.hosts.find(&d.Src), m.dreq.LocalCommID), At: d.At})
			}
			return c
		}
	case rocev2.CMDrep:
		if rocev2.Decode(body, &m.drep) == nil {
			c := hs.findByCommID(d, m.drep.LocalCommID, m.drep.RemoteCommID)
			if c != nil { // a DREP answers the other side's DREQ
				by := c.sideOf(hs.connections.hosts.find(&d.Src), m.drep.LocalCommID)
				if s, known := by.Get(); known {
					by = record.Some(s.Other())
				}
				c.close(Ending{How: record.EndDisconnect, By: by, At: d.At})
				c.bothClosed()
			}
			return c
		}
	}
	return nil
}

// sideOf returns the side with a host and a communication ID. The host is nil if it is
// not known.
func (c *Conn) sideOf(a *Host, id uint32) record.Opt[Side] {
	if a == nil {
		return record.Opt[Side]{}
	}
	for s := range Side(2) {
		if c.comms[s] == (commID{a, id}) {
			return record.Some(s)
		}
	}
	for s := range Side(2) {
		if c.Host(s) == a && c.Host(s.Other()) != a {
			return record.Some(s)
		}
	}
	return record.Opt[Side]{}
}

// findByCommID returns the connection with the communication ID of either end.
func (hs *handshakes) findByCommID(d *Datagram, local, remote uint32) *Conn {
	if c := hs.comms[commID{hs.connections.hosts.find(&d.Src), local}]; c != nil {
		return c
	}
	if remote == 0 {
		return nil
	}
	return hs.comms[commID{hs.connections.hosts.find(&d.Dst), remote}]
}

// setCommID sets the communication ID of a side, in place of an earlier one.
func (hs *handshakes) setCommID(c *Conn, s Side, id commID) {
	if c.comms[s] != id {
		hs.removeCommID(c, s)
		id.owner.Hold()
	}
	c.comms[s] = id
	hs.comms[id] = c
}

// removeCommID removes the communication ID of a side, if it has one.
func (hs *handshakes) removeCommID(c *Conn, s Side) {
	id := c.comms[s]
	if id.owner == nil {
		return
	}
	if hs.comms[id] == c {
		delete(hs.comms, id)
	}
	id.owner.LetGo()
}

// handleREQ takes a REQ, which begins a connection.
func (hs *handshakes) handleREQ(r *rocev2.REQ, d *Datagram) *Conn {
	id := commID{hs.connections.hosts.get(&d.Src), r.LocalCommID}
	if old := hs.comms[id]; old != nil {
		if f := old.flows[1]; !old.closing && f != nil && f.qp.qpn == r.LocalQPN {
			_, private := hs.setupOf(r)
			hs.reportPrivateData(old, 0, private, d)
			old.reasked++
			return old // a retransmission
		}
	}
	setup, private := hs.setupOf(r)
	c := hs.connections.open(setup)
	c.asks(r, hs.cm.captured)
	hs.setCommID(c, 0, id)
	hs.connections.attach(c, 1, ends{hs.connections.hosts.get(&d.Dst), id.owner}, r.LocalQPN)
	hs.reportPrivateData(c, 0, private, d)
	return c
}

// setupOf returns the setup of the connection that a REQ begins, and the private data of its upper layer.
func (hs *handshakes) setupOf(r *rocev2.REQ) (s Setup, private []byte) {
	s, private = Setup{Handshake: true, Client: record.Some(Side(0)), ServiceID: record.Some(record.Hex64(r.ServiceID))}, r.PrivateData
	if hs.cm.captured >= ackTimeoutEnd {
		s.ResponseWithin = responseWithin(r.Primary.LocalACKTimeout)
	}
	if r.ServiceID>>24 == 1 { // the RDMA IP CM service (IBTA annex A11)
		s.Service = record.Some(uint16(r.ServiceID))
		s.ports[1] = s.Service
		if hs.cm.captured >= reqPrivate+rocev2.IPCMLen && rocev2.Decode(private, &hs.cm.ipcm) == nil {
			s.ports[0] = record.Some(hs.cm.ipcm.SourcePort)
			private = private[rocev2.IPCMLen:]
		}
	}
	return s, private
}

// asks notes what the REQ asks for, of which a number of bytes was captured.
func (c *Conn) asks(r *rocev2.REQ, captured int) {
	c.mtu = r.MTU()
	c.asked = c.mtu
	if captured >= ackTimeoutEnd {
		c.timer = record.Some(localTimer(r.Primary.LocalACKTimeout))
	}
	c.starting = record.SomeIf(r.StartingPSN, captured >= startingPSNEnd)
}

// reportPrivateData reports the private data of a REQ or REP if the message was
// captured completely.
func (hs *handshakes) reportPrivateData(c *Conn, s Side, data []byte, d *Datagram) {
	if hs.cm.captured == rocev2.CMSize {
		c.follower.Private(s, data, d.At, d.ICRC == rocev2.ICRCBad)
	}
}

// handleREP takes a REP. Both queue pairs are then known.
func (hs *handshakes) handleREP(r *rocev2.REP, d *Datagram) *Conn {
	e := hs.connections.hosts.ends(&d.Src, &d.Dst)
	from, to := e.src, e.dst
	c := hs.comms[commID{to, r.RemoteCommID}]
	if c == nil || c.closing || c.flows[1] == nil || c.flows[1].src != from {
		// The REQ was not captured.
		if known := hs.comms[commID{from, r.LocalCommID}]; known != nil && !known.closing {
			return known
		}
		c = hs.connections.open(Setup{Handshake: true, Client: record.Some(Side(0))})
		hs.setCommID(c, 0, commID{to, r.RemoteCommID})
	} else if f := c.flows[0]; f != nil && f.qp.qpn == r.LocalQPN {
		hs.reportPrivateData(c, 1, r.PrivateData, d)
		return c // a retransmission
	}
	hs.setCommID(c, 1, commID{from, r.LocalCommID})
	f := hs.connections.attach(c, 0, ends{to, from}, r.LocalQPN)
	// The PSN in the message of a side is the first PSN of the other side (IBTA volume
	// 1, section 12.7.31).
	f.qp.announce(r.StartingPSN)
	if starting, known := c.starting.Get(); known && c.flows[1] != nil {
		c.flows[1].qp.announce(starting)
		c.setKey(starting, r.StartingPSN)
	}
	hs.reportPrivateData(c, 1, r.PrivateData, d)
	return c
}

// handleREJ takes a REJ.
func (hs *handshakes) handleREJ(r *rocev2.REJ, d *Datagram) *Conn {
	c := hs.findByCommID(d, r.LocalCommID, r.RemoteCommID)
	if c == nil || c.closing {
		return c
	}
	c.Report(rule.ConnectionRejected, Where{At: d.At}, "the connection was rejected: %v", r.Reason)
	c.close(Ending{How: record.EndRejected, By: c.sideOf(hs.connections.hosts.find(&d.Src), r.LocalCommID), At: d.At, Reason: r.Reason.String()})
	c.bothClosed()
	return c
}
