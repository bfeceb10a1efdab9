package rdma_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/internal/testkit/look"
	"github.com/rdmadump/rdmadump/rocev2"
)

// wire makes RoCEv2 frames between a client, 10.0.0.1, and a server, 10.0.0.2.
type wire struct {
	t      *testing.T
	d      *dissect.Dissector
	number int64
}

// send sends a packet from the client or the server at a time in milliseconds.
func (w *wire) send(fromServer bool, at int64, p *rocev2.Packet, payload []byte) {
	w.t.Helper()
	src, dst := net.IP{10, 0, 0, 1}, net.IP{10, 0, 0, 2}
	if fromServer {
		src, dst = dst, src
	}
	p.PKey, p.Headers = 0xffff, p.Opcode.Info().Headers
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true},
		&layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: src, DstIP: dst},
		&layers.UDP{SrcPort: 49152, DstPort: rocev2.UDPPort}, p, gopacket.Payload(payload)); err != nil {
		w.t.Fatal(err)
	}
	if err := rocev2.FixICRC(buf.Bytes()); err != nil {
		w.t.Fatal(err)
	}
	w.number++
	w.d.Frame(&capture.Frame{Number: w.number, Time: at * 1e6, LinkType: capture.LinkRaw, Length: len(buf.Bytes()), Data: buf.Bytes()})
}

// cm sends a message of the connection manager.
func (w *wire) cm(fromServer bool, at int64, attribute rocev2.CMAttribute, message rocev2.Header) {
	w.t.Helper()
	mad := rocev2.MAD{BaseVersion: 1, Class: rocev2.ClassCM, ClassVersion: 2, Method: 3, Attribute: attribute}
	w.send(fromServer, at, &rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x64, DestQPN: 1}, DETH: rocev2.DETH{QKey: 0x80010000, SourceQPN: 1}},
		rocev2.Append(rocev2.Append(nil, &mad), message))
}

func request(id, qpn, psn uint32) *rocev2.REQ {
	return &rocev2.REQ{LocalCommID: id, ServiceID: 0x0000000001064e51, LocalQPN: qpn, StartingPSN: psn, PathMTU: 3}
}

// null returns a NULL Call, or the Reply to it, without chunks.
func null(xid uint32, reply bool) []byte {
	b := []byte{}
	word := func(v ...uint32) {
		for _, v := range v {
			b = append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
	}
	word(xid, 1, 32, 0, 0, 0, 0, xid)
	if reply {
		word(1, 0, 0, 0, 0)
	} else {
		word(0, 2, 100003, 3, 0, 0, 0, 0, 0)
	}
	return b
}

// message sends a Call of the client or a Reply of the server.
func (w *wire) message(fromServer bool, at int64, qpn, psn, xid uint32) {
	w.t.Helper()
	w.send(fromServer, at, &rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x04, DestQPN: qpn, PSN: psn}}, null(xid, fromServer))
}

// newWire returns a wire whose connections and transactions are collected as text, one per line.
func newWire(t *testing.T) (*wire, *[]string) {
	lines := &[]string{}
	w := &wire{t: t, d: dissect.New(dissect.Handler{
		Connection: func(c *record.Connection) error {
			reason := c.State()
			if end, _ := c.Ended.Get(); end.Reason.Known() {
				reason += ": " + end.Reason.Or("")
			}
			*lines = append(*lines, fmt.Sprintf("connection %d %s established %t, %d transactions, %s", c.ID, c.Handshake, c.Established.Known(), c.Transactions, reason))

			return nil
		},
		Transaction: func(r *record.Transaction) error {
			line := fmt.Sprintf("transaction %v on %d %s", r.XID, r.Connection, r.Status)
			if id, known := r.RetransmitOf.Get(); known {
				line += fmt.Sprintf(" repeats %d", id)
			}
			*lines = append(*lines, line)

			return nil
		},
	}, dissect.Options{})}
	return w, lines
}

func expect(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	slices.Sort(*got)
	slices.Sort(want)
	if !slices.Equal(*got, want) {
		t.Errorf("\n got %q\nwant %q", *got, want)
	}
}

// TestReject: the server rejects a connection.
func TestReject(t *testing.T) {
	w, lines := newWire(t)
	w.cm(false, 0, rocev2.CMReq, request(7, 17, 100))
	w.cm(true, 1, rocev2.CMMra, &rocev2.MRA{LocalCommID: 9, RemoteCommID: 7})
	w.cm(true, 2, rocev2.CMRej, &rocev2.REJ{LocalCommID: 0, RemoteCommID: 7, Reason: 28})
	w.cm(true, 3, rocev2.CMRej, &rocev2.REJ{LocalCommID: 0, RemoteCommID: 7, Reason: 28}) // a retransmission
	w.d.Finish()
	expect(t, lines, "connection 0 seen established false, 0 transactions, rejected: consumer reject")
}

// TestReuse: a queue pair number that is used again belongs to a new connection, and a Call that
// is retransmitted on it is recognized. A Call whose transaction is complete is not repeated.
func TestReuse(t *testing.T) {
	w, lines := newWire(t)
	for i, at := range []int64{0, 1000} { // Both ends use the same numbers twice.
		id := uint32(7 + i)
		w.cm(false, at, rocev2.CMReq, request(id, 17, 500))
		w.cm(false, at+1, rocev2.CMReq, request(id, 17, 500)) // This is a retransmission and not another connection.
		w.cm(true, at+2, rocev2.CMRep, &rocev2.REP{LocalCommID: 90 + id, RemoteCommID: id, LocalQPN: 17, StartingPSN: 0xffffff})
		w.cm(false, at+3, rocev2.CMRtu, &rocev2.RTU{LocalCommID: id, RemoteCommID: 90 + id})
		w.message(false, at+4, 17, 0xffffff, 1) // This is the PSN that the server announced; the next one wraps.
		w.message(true, at+5, 17, 500, 1)
		w.message(false, at+6, 17, 0, 2) // The first connection has no Reply to it.
		if i == 1 {
			w.message(true, at+7, 17, 501, 2)
			w.cm(true, at+8, rocev2.CMDreq, &rocev2.DREQ{LocalCommID: 90 + id, RemoteCommID: id, RemoteQPN: 17})
			w.cm(false, at+9, rocev2.CMDrep, &rocev2.DREP{LocalCommID: id, RemoteCommID: 90 + id})
		}
	}
	w.d.Finish()
	expect(t, lines,
		"transaction 0x00000001 on 0 complete", "transaction 0x00000002 on 0 no_reply",
		"connection 0 seen established true, 2 transactions, queue_pair_reused",
		"transaction 0x00000001 on 1 complete", "transaction 0x00000002 on 1 complete repeats 2",
		"connection 1 seen established true, 2 transactions, disconnect")
}

// TestHalfHandshake: the connection is found although the REQ or the REP is not in the capture.
func TestHalfHandshake(t *testing.T) {
	for _, missing := range []string{"REQ", "REP"} {
		t.Run(missing, func(t *testing.T) {
			w, lines := newWire(t)
			if missing != "REQ" {
				w.cm(false, 0, rocev2.CMReq, request(7, 17, 500))
			}
			for at := int64(2); at < 4 && missing != "REP"; at++ { // it is sent twice
				w.cm(true, at, rocev2.CMRep, &rocev2.REP{LocalCommID: 97, RemoteCommID: 7, LocalQPN: 18, StartingPSN: 900})
			}
			w.message(false, 4, 18, 900, 1)
			w.send(true, 5, &rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x11, DestQPN: 17, PSN: 900}, AETH: rocev2.AETH{Syndrome: 31}}, nil)
			w.message(true, 6, 17, 500, 1)
			w.d.Finish()
			found := 0
			for _, line := range *lines {
				if line == "transaction 0x00000001 on 0 complete" {
					found++
				}
			}
			if len(*lines) != 2 || found != 1 {
				t.Errorf("the lines are %q; want the complete RPC of connection 0 and another one", *lines)
			}
		})
	}
}

// TestServices: which packets belong to connections.
func TestServices(t *testing.T) {
	for opcode, want := range map[rocev2.Opcode]int{
		rocev2.OpSendOnly: 1, 0x1f: 0 /* reserved */, 0x24: 1 /* UC */, 0x44: 0 /* RD */, 0x64: 0, /* UD */
	} {
		w := &wire{t: t, d: dissect.New(dissect.Handler{}, dissect.Options{})}
		w.send(false, 0, &rocev2.Packet{BTH: rocev2.BTH{Opcode: opcode, DestQPN: 18, PSN: 900}}, null(1, false))
		if s, _ := w.d.Finish(); s.Connections != want {
			t.Errorf("opcode %#x: %d connections, want %d", uint8(opcode), s.Connections, want)
		}
	}
}

// TestCreditLimit: more outstanding Calls than granted credits violate a rule, and a grant of no
// credits does.
func TestCreditLimit(t *testing.T) {
	var rules []string
	w := &wire{t: t, d: dissect.New(dissect.Handler{Finding: func(f *record.Finding) error {
		rules = append(rules, fmt.Sprintf("%s %v", f.Rule, f.XID.Or(0)))
		return nil
	}}, dissect.Options{})}
	w.cm(false, 0, rocev2.CMReq, request(7, 17, 500))
	w.cm(true, 1, rocev2.CMRep, &rocev2.REP{LocalCommID: 97, RemoteCommID: 7, LocalQPN: 18, StartingPSN: 0})
	w.message(false, 2, 18, 0, 1)
	w.message(false, 3, 18, 1, 2)  // Before the first Reply there is one credit.
	w.message(true, 4, 17, 500, 1) // This Reply grants 32 credits.
	for i := range uint32(32) {
		w.message(false, 5, 18, 2+i, 3+i)
	}
	zero := null(2, true)
	zero[11] = 0
	w.send(true, 6, &rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x04, DestQPN: 17, PSN: 501}}, zero)
	w.d.Finish()
	want := []string{"credit-limit-exceeded 0x00000002", "credits-granted-zero 0x00000002", "credit-limit-exceeded 0x00000022"}
	if !slices.Equal(rules, want) {
		t.Errorf("findings %q, want %q", rules, want)
	}
}

// TestPrivateDataBadICRC: the private data in a REQ with a bad ICRC is ignored once its sender has shown
// that it fills in ICRCs. Before that, the ICRC says nothing.
func TestPrivateDataBadICRC(t *testing.T) {
	frames, _ := testkit.Frames(t, "../../../samples/rocev2-callback41.pcap")
	broken := false
	s, d := look.Collect(dissect.Options{})
	for i := range frames {
		if at := bytes.Index(frames[i].Data, []byte{0xf6, 0xab, 0x0e, 0x18}); at >= 0 && !broken {
			frames[i].Data = bytes.Clone(frames[i].Data)
			frames[i].Data[at+5] ^= 1 // This flips the R bit of the private data (RFC 8797 s.4).
			broken = true
		}
		d.Frame(&frames[i])
	}
	d.Finish()
	for _, f := range s.Findings {
		if f.Severity == record.Error {
			t.Errorf("reserved bits are no error, but there is one: %s: %s", f.Rule, f.Message)
		}
	}
	if c := s.Connections[0]; !broken || c.RemoteInvalidation.Known() || c.PrivateData.Client != nil || c.PrivateData.Server == nil {
		t.Errorf("private data %+v", c.PrivateData)
	}
}
