package contrast

import (
	"github.com/rdmadump/rdmadump/dissect/record"
)

// connection returns a question about a field of a connection.
func connection(path string, a about, each func(r *record.Connection, out *answers)) question {
	return question{path: path, about: a, each: func(r any, out *answers) { each(r.(*record.Connection), out) }}
}

// connectionQuestions returns the questions about connections. What the handshake and the packets after it show follows from how
// a connection ended: one that was rejected has no path MTU.
func connectionQuestions() []question {
	size := func(path, words string, get func(p *record.PrivateData) int64) question {
		return connection(path, ofCall, func(r *record.Connection, out *answers) {
			if p := r.PrivateData.Client; p != nil {
				out.add(numberValue(get(p)))
			}
		}).named("announce "+words+" of %s bytes", 10, asksValue)
	}
	count := func(path, some string, rank int, of func(r *record.Connection) int64) question {
		return connection(path, ofHandling, func(r *record.Connection, out *answers) { out.add(numberValue(of(r))) }).
			named("", rank, 0).sized("had more than %s "+some, "had at most %s "+some, plainNumber).counting("had "+some, "had no "+some)
	}
	return []question{
		connection("client.address", ofCall, func(r *record.Connection, out *answers) { optionalText(r.Client.Address, out) }).
			named("come from %s", 0, asksValue|asksNot|asksSet),
		connection("server.address", ofCall, func(r *record.Connection, out *answers) { optionalText(r.Server.Address, out) }).
			named("go to %s", 1, asksValue|asksNot),
		connection("server.port", ofCall, func(r *record.Connection, out *answers) { optional(r.Server.Port, out) }).
			named("go to the port %s", 2, asksValue|asksNot),
		connection("client.port", ofCall, func(r *record.Connection, out *answers) { optional(r.Client.Port, out) }).
			named("come from the port %s", 9, asksValue).sized("come from a port above %s", "come from a port up to %s", plainNumber),
		connection("transport", ofCall, func(r *record.Connection, out *answers) { out.text(r.Transport) }).named("use %s", 3, asksValue|asksNot),
		connection("upper_layer", ofCall, func(r *record.Connection, out *answers) { out.text(r.UpperLayer) }).
			named("carry %s", 4, asksValue|asksNot).from(ofReply),
		connection("handshake", ofCall, func(r *record.Connection, out *answers) { out.flag(r.Handshake == "seen") }).
			whether("have a handshake in the capture", "have no handshake in the capture", "handshake == seen", 5),
		connection("private_data.client", ofCall, func(r *record.Connection, out *answers) { out.flag(r.PrivateData.Client != nil) }).
			whether("have usable private data of the client", "have no usable private data of the client", "private_data.client.version != null", 6),
		size("private_data.client.send_size", "a send size of the client", func(p *record.PrivateData) int64 { return int64(p.SendSize) }),
		size("private_data.client.receive_size", "a receive size of the client", func(p *record.PrivateData) int64 { return int64(p.ReceiveSize) }),
		connection("private_data.server", ofHandling, func(r *record.Connection, out *answers) { out.flag(r.PrivateData.Server != nil) }).
			whether("have usable private data of the server", "have no usable private data of the server", "private_data.server.version != null", 11).from(ofReply),
		connection("path_mtu", ofHandling, func(r *record.Connection, out *answers) { optional(r.PathMTU, out) }).
			named("have a path MTU of %s bytes", 12, asksValue).from(ofReply),
		count("retransmitted", "retransmitted packets", 13, func(r *record.Connection) int64 { return r.Retransmitted }).from(ofStalls),
		count("out_of_order", "packets out of order", 14, func(r *record.Connection) int64 { return r.OutOfOrder }).from(ofStalls),
		count("naks", "NAKs", 15, func(r *record.Connection) int64 { return r.Naks }).from(ofStalls),
		count("rnr_naks", "RNR NAKs", 16, func(r *record.Connection) int64 { return r.RNRNaks }).from(ofStalls),
		count("damaged", "damaged packets", 17, func(r *record.Connection) int64 { return r.Damaged }),
		count("congestion_marks", "packets with a congestion mark", 18, func(r *record.Connection) int64 { return r.CongestionMarks }),
		count("transactions", "RPCs", 19, func(r *record.Connection) int64 { return r.Transactions }).from(ofReply),
		count("packets", "packets", 20, func(r *record.Connection) int64 { return r.Packets }).from(ofReply),
		connection("ended.how", ofOutcome, func(r *record.Connection, out *answers) { out.text(r.State()) }).named("ended: %s", 21, 0).from(ofStatus),
	}
}

// AddConnection takes a connection, if the options ask for connections.
func (c *Collector) AddConnection(r *record.Connection) error {
	if !c.began {
		c.Begin(r.First)
	}
	c.members = c.members[:0]
	for _, kind := range c.options.Kinds {
		switch kind {
		case Ended:
			if end, ended := r.Ended.Get(); ended && end.How != record.EndDisconnect {
				c.join(c.target(Ended, string(end.How), "ended.how == "+string(end.How), ""))
			}
		case Retransmitting:
			if r.Retransmitted > 0 {
				c.join(c.target(Retransmitting, "", "retransmitted > 0", ""))
			}
		case ByFilter:
			if err := c.joinByFilter(r); err != nil {
				return err
			}
		}
	}
	return c.take(r, int64(r.ID), r.First)
}
