package synth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/rocev2"
	_ "github.com/rdmadump/rdmadump/rocev2/register"
	"github.com/rdmadump/rdmadump/synth"
)

// wireLines returns the sender and the headers of frames on Ethernet and IPv4, one line per
// frame. FPDUs must not span segments or have markers.
func wireLines(t *testing.T, c *synth.Conn, frames []*synth.Frame) (lines []string) {
	t.Helper()
	for _, f := range frames {
		line := map[*synth.Side]string{c.Client: "> ", c.Server: "< "}[f.From]
		packet := gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.NoCopy)
		if tcp, ok := packet.TransportLayer().(*layers.TCP); ok {
			line += fmt.Sprintf("TCP %d+%d ack %d", tcp.Seq-c.Client.Seq, len(tcp.Payload), tcp.Ack)
			for rest := tcp.Payload; len(rest) > 2 && !iwarp.IsMPA(rest); {
				size := int(rest[0])<<8 | int(rest[1])
				var s iwarp.Segment
				if err := s.Decode(rest[2 : 2+size]); err != nil {
					t.Fatal(err)
				}
				line += fmt.Sprintf(" [%v STag %x offset %d queue %d MSN %d last %t, %d bytes]", s.Opcode, s.STag, s.Offset, s.Queue, s.Sequence, s.Last, len(s.Payload))
				rest = rest[iwarp.FPDULen(size):]
			}
			lines = append(lines, line)
			continue
		}
		var p rocev2.Packet
		if err := p.Decode(packet.Layer(layers.LayerTypeUDP).LayerPayload(), len(packet.Layer(layers.LayerTypeUDP).LayerPayload())); err != nil {
			t.Fatal(err)
		}
		line += fmt.Sprintf("%v PSN %d", p.Opcode, p.PSN)
		if p.Headers&rocev2.HasRETH != 0 {
			line += fmt.Sprintf(" R_Key %x VA %x length %d", p.RETH.RKey, p.RETH.VirtualAddress, p.RETH.DMALength)
		}
		if p.Headers&rocev2.HasAETH != 0 {
			line += fmt.Sprintf(" %v MSN %d", p.AETH.Syndrome, p.AETH.MSN)
		}
		if p.Headers&rocev2.HasImmDt != 0 {
			line += fmt.Sprintf(" immediate %x", p.ImmDt.Immediate)
		}
		if p.Headers&rocev2.HasIETH != 0 {
			line += fmt.Sprintf(" invalidates %x", p.IETH.RKey)
		}
		if p.SolicitedEvent {
			line += " solicited"
		}
		lines = append(lines, fmt.Sprintf("%s, %d bytes", line, p.PayloadLength))
	}
	return lines
}

func equalLines(t *testing.T, got []string, want string) {
	t.Helper()
	wanted := strings.Split(strings.ReplaceAll(strings.TrimSpace(want), "\t", ""), "\n")
	if !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// TestRoCE: the packets of every work request on RoCE.
func TestRoCE(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(c *synth.Conn)
		want string
	}{
		"Send": {func(c *synth.Conn) {
			c.Client.Send(data(2050))
			c.Client.Send(nil, synth.Solicited())
			c.Server.Ack()
		}, `
			> RC SEND First PSN 100, 1024 bytes
			> RC SEND Middle PSN 101, 1024 bytes
			> RC SEND Last PSN 102, 2 bytes
			> RC SEND Only PSN 103 solicited, 0 bytes
			< RC Acknowledge PSN 103 ACK MSN 2, 0 bytes`},
		"Send with options": {func(c *synth.Conn) {
			c.Server.Send(data(2050), synth.Invalidate(0xa1), synth.PacketSize(2048))
			c.Server.Send(data(4), synth.Invalidate(0xa1))
			c.Server.Send(data(4), synth.Immediate(7), synth.Over(rocev2.UC))
			c.Server.Send(data(4), synth.AtPSN(5))
			c.Server.Send(data(2050), synth.Packets(1, 2))
			c.Server.Send(nil)
		}, `
			< RC SEND First PSN 16777215, 2048 bytes
			< RC SEND Last with Invalidate PSN 0 invalidates a1, 2 bytes
			< RC SEND Only with Invalidate PSN 1 invalidates a1, 4 bytes
			< UC SEND Only with Immediate PSN 2 immediate 7, 4 bytes
			< RC SEND Only PSN 5, 4 bytes
			< RC SEND Middle PSN 4, 1024 bytes
			< RC SEND Only PSN 6, 0 bytes`},
		"Write": {func(c *synth.Conn) {
			c.Server.Write(0xa1, 0x5000, data(1025), synth.Immediate(9))
			c.Server.Write(0xa1, 0x5000, data(3), synth.Length(4000))
			c.Client.Refuse()
			c.Client.Nak(rocev2.NakPSNSequenceError, synth.AtPSN(8))
			c.Client.NotReady()
		}, `
			< RC RDMA WRITE First PSN 16777215 R_Key a1 VA 5000 length 1025, 1024 bytes
			< RC RDMA WRITE Last with Immediate PSN 0 immediate 9, 1 bytes
			< RC RDMA WRITE Only PSN 1 R_Key a1 VA 5000 length 4000, 3 bytes
			> RC Acknowledge PSN 1 NAK, remote access error MSN 1, 0 bytes
			> RC Acknowledge PSN 8 NAK, PSN sequence error MSN 1, 0 bytes
			> RC Acknowledge PSN 1 RNR NAK, timer code 1 MSN 1, 0 bytes`},
		"Read": {func(c *synth.Conn) {
			c.Server.Read(0xa1, 0x5000, data(2049))
			r := c.Server.ReadRequest(0xa1, 0x6000, 2000)
			r.RespondPackets(data(2000), 0, 1)
			c.Server.ReadRequest(0xa1, 0x6400, 976, synth.AtPSN(r.PSN+1)).Respond(data(976))
			c.Server.CNP()
		}, `
			< RC RDMA READ Request PSN 16777215 R_Key a1 VA 5000 length 2049, 0 bytes
			> RC RDMA READ Response First PSN 16777215 ACK MSN 1, 1024 bytes
			> RC RDMA READ Response Middle PSN 0, 1024 bytes
			> RC RDMA READ Response Last PSN 1 ACK MSN 1, 1 bytes
			< RC RDMA READ Request PSN 2 R_Key a1 VA 6000 length 2000, 0 bytes
			> RC RDMA READ Response First PSN 2 ACK MSN 2, 1024 bytes
			< RC RDMA READ Request PSN 3 R_Key a1 VA 6400 length 976, 0 bytes
			> RC RDMA READ Response Only PSN 3 ACK MSN 2, 976 bytes
			< CNP PSN 0, 16 bytes`},
		"Atomic": {func(c *synth.Conn) {
			c.Client.FetchAdd(0xa1, 0x5000, 1, 7, synth.Over(rocev2.XRC))
			c.Client.Read(0xa1, 0x5000, data(8), synth.Over(rocev2.XRC))
		}, `
			> XRC FetchAdd PSN 100, 0 bytes
			< XRC ATOMIC Acknowledge PSN 100 ACK MSN 1, 0 bytes
			> XRC RDMA READ Request PSN 101 R_Key a1 VA 5000 length 8, 0 bytes
			< XRC RDMA READ Response Only PSN 101 ACK MSN 2, 8 bytes`},
		"Packet": {func(c *synth.Conn) {
			c.Client.Packet(rocev2.Packet{BTH: rocev2.BTH{Opcode: rocev2.OpAtomicWrite, PSN: 3}, RETH: rocev2.RETH{RKey: 1, DMALength: 8}}, data(8))
		}, `
			> RC ATOMIC WRITE PSN 3 R_Key 1 VA 0 length 8, 8 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			w := synth.New()
			c := w.RoCE(synth.Options{Client: synth.End{PSN: 100}, Server: synth.End{PSN: 0xffffff}})
			test.act(c)
			equalLines(t, wireLines(t, c, w.Frames), test.want)
		})
	}
}

// TestIWARP: the segments of every work request on iWARP.
func TestIWARP(t *testing.T) {
	w := synth.New()
	c := w.IWARP(synth.Options{MTU: 1000, Client: synth.End{Seq: 1}, Server: synth.End{Seq: 1}})
	c.Client.Send(data(1001))
	c.Server.Ack()
	c.Server.Send(data(4), synth.Invalidate(0xa1), synth.Solicited())
	c.Client.Send(nil, synth.Solicited())
	c.Server.Write(0xa1, 0x5000, data(1001))
	c.Server.Read(0xa2, 0x6000, data(1001), synth.PacketSize(2000))
	c.Client.Refuse()
	c.Client.Cork()
	c.Client.Send(data(4))
	c.Client.Send(data(4))
	c.Client.Uncork(1 << 16)
	c.Disconnect(c.Client)
	c.Server.Send(nil)
	c.Client.NotReady()
	c.Server.RST()
	equalLines(t, wireLines(t, c, w.Frames), `
		> TCP 0+1024 ack 1 [Send STag 0 offset 0 queue 0 MSN 1 last false, 1000 bytes]
		> TCP 1024+28 ack 1 [Send STag 0 offset 1000 queue 0 MSN 1 last true, 1 bytes]
		< TCP 0+0 ack 1053
		< TCP 0+28 ack 1053 [Send with Solicited Event and Invalidate STag a1 offset 0 queue 0 MSN 1 last true, 4 bytes]
		> TCP 1052+24 ack 29 [Send with Solicited Event STag 0 offset 0 queue 0 MSN 2 last true, 0 bytes]
		< TCP 28+1020 ack 1077 [RDMA Write STag a1 offset 20480 queue 0 MSN 0 last false, 1000 bytes]
		< TCP 1048+24 ack 1077 [RDMA Write STag a1 offset 21480 queue 0 MSN 0 last true, 1 bytes]
		< TCP 1072+52 ack 1077 [RDMA Read Request STag 0 offset 0 queue 1 MSN 1 last true, 28 bytes]
		> TCP 1076+1024 ack 1125 [RDMA Read Response STag 51000001 offset 0 queue 0 MSN 0 last true, 1001 bytes]
		> TCP 2100+76 ack 1125 [Terminate STag 0 offset 0 queue 2 MSN 1 last true, 52 bytes]
		> TCP 2176+56 ack 1125 [Send STag 0 offset 0 queue 0 MSN 3 last true, 4 bytes] [Send STag 0 offset 0 queue 0 MSN 4 last true, 4 bytes]
		> TCP 2232+0 ack 1125
		< TCP 1124+0 ack 2234
		> TCP 2233+0 ack 1126
		< TCP 1125+24 ack 2234 [Send STag 0 offset 0 queue 0 MSN 2 last true, 0 bytes]
		> TCP 2233+48 ack 1150 [Terminate STag 0 offset 0 queue 2 MSN 1 last true, 24 bytes]
		< TCP 1149+0 ack 2282`)
}

// TestTerminate: a Terminate quotes the peer's last operation. The bits of the control word
// can be reversed, as in the Terminates of Linux's siw.
func TestTerminate(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		w := synth.New()
		c := w.IWARP(synth.Options{})
		c.Server.ReadRequest(0xa1, 0x5000, 100)
		sent := c.Client.Terminate(iwarp.TerminateHeader{Layer: 0, Type: 1, Code: 2, HasLength: true, HasDDP: true, Swapped: swapped})
		var s iwarp.Segment
		var h iwarp.TerminateHeader
		if err := s.Decode(sent.Data[14+20+20+2:]); err != nil {
			t.Fatal(err)
		}
		if err := h.Decode(s.Payload); err != nil {
			t.Fatal(err)
		}
		if h.Layer != 0 || h.Type != 1 || h.Code != 2 || h.Swapped != swapped || h.SegmentLength != 46 || h.DDP.Opcode != iwarp.ReadRequest || h.Read.SourceSTag != 0xa1 || h.Read.Size != 100 {
			t.Errorf("the Terminate header is %v with a segment of %d bytes, an opcode %v, source STag %#x and size %d; want layer 0, type 1, code 2, swapped %t, 46 bytes, a Read request, 0xa1, 100", &h, h.SegmentLength, h.DDP.Opcode, h.Read.SourceSTag, h.Read.Size, swapped)
		}
	}
}

// TestNetwork: the methods that imitate the network.
func TestNetwork(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{})
	sent := []*synth.Frame{}
	for range 4 {
		sent = append(sent, c.Client.Send(data(8))...)
	}
	order := func() (order []int) {
		for _, f := range w.Frames {
			order = append(order, slices.Index(sent, f))
		}
		return order
	}
	expect := func(what string, want ...int) {
		t.Helper()
		if got := order(); !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
		if !slices.IsSortedFunc(w.Frames, func(a, b *synth.Frame) int { return int(a.Time - b.Time) }) {
			t.Errorf("%s: times are not in order", what)
		}
	}
	w.Swap(sent[0], sent[1])
	expect("swap", 1, 0, 2, 3)
	w.Delay(sent[1], 2*time.Microsecond)
	expect("delay", 0, 2, 1, 3)
	sent = append(sent, w.Duplicate(sent[0], time.Second))
	expect("duplicate", 0, 2, 1, 3, 4)
	w.Drop(sent[2], sent[3])
	expect("drop", 0, 1, 4)
	w.Advance(time.Minute)
	sent = append(sent, w.Retransmit(sent[1])...)
	expect("again", 0, 1, 4, 5)
	if !slices.Equal(sent[5].Data, sent[1].Data) || sent[5].Time < synth.Epoch+60e9 {
		t.Errorf("repeated: %+v", sent[5])
	}
	c.Server.Ack()
	w.Keep(func(f *synth.Frame) bool { return f.From == c.Server })
	if w.Truncate(20); len(w.Frames) != 1 || len(w.Frames[0].Data) != 20 || w.Frames[0].Length != 62 {
		t.Errorf("cut: %+v", w.Frames[0])
	}
	w.Last().Corrupt(0, 9, -1)
	if d := w.Last().Data; d[0] != 0x02^0x80 || d[1] != 0x40 || d[19]&1 == 0 {
		t.Errorf("corrupted: %x", d)
	}
}

// TestChecksums: the checksums of IP, UDP and TCP are correct for segments of any length, and
// in corrupted TCP segments.
func TestChecksums(t *testing.T) {
	sum := func(sum uint32, b []byte) uint32 {
		for i, v := range b {
			sum += uint32(v) << (8 * (1 - i%2))
		}
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		return sum
	}
	for name, kind := range kinds {
		w := synth.New()
		c := kind.open(w, kind.options)
		healthy(c)
		if strings.HasPrefix(name, "iWARP") {
			c.Client.Cork()
			c.Client.Call(synth.Null())
			for i, f := range c.Client.Uncork(9) {
				if i%2 == 0 {
					f.Corrupt(-1 - i)
				}
			}
		}
		for i, f := range w.Frames {
			first := gopacket.Decoder(layers.LayerTypeEthernet)
			if f.LinkType == synth.LinkRaw {
				first = layers.LayerTypeIPv4
			}
			packet := gopacket.NewPacket(f.Data, first, gopacket.NoCopy)
			ip := packet.NetworkLayer()
			pseudo := ip.LayerContents()[8:]
			protocol := ip.LayerContents()[6]
			if v4, ok := ip.(*layers.IPv4); ok {
				if sum(0, v4.Contents) != 0xffff {
					t.Errorf("%s: frame %d: the sum of the IP header is 0x%x", name, i, sum(0, v4.Contents))
				}
				if v4.Protocol == layers.IPProtocolUDP {
					continue // RoCEv2 over IPv4 has no UDP checksum
				}
				pseudo, protocol = v4.Contents[12:], v4.Contents[9]
			}
			if got := sum(sum(uint32(protocol)+uint32(len(ip.LayerPayload())), pseudo), ip.LayerPayload()); got != 0xffff {
				t.Errorf("%s: frame %d: the sum is 0x%x", name, i, got)
			}
		}
	}
}

// TestConnectionManager: the sender and the communication IDs of each CM message.
func TestConnectionManager(t *testing.T) {
	w := synth.New()
	c := w.RoCE(synth.Options{Client: synth.End{CommID: 7, PrivateData: synth.NoPrivateData()}, Server: synth.End{CommID: 8}})
	c.Connect()
	c.Server.MRA()
	c.Client.MRA()
	c.Server.REJ(28)
	c.Client.REJ(4, func(m *rocev2.REJ) { m.InfoLength = 3 })
	c.Disconnect(c.Server)
	var got []string
	for _, f := range w.Frames {
		packet := gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.NoCopy)
		line := map[*synth.Side]string{c.Client: "> ", c.Server: "< "}[f.From]
		switch m := packet.Layers()[6].(type) {
		case *rocev2.Layer[rocev2.REQ]:
			line += fmt.Sprintf("REQ %d PSN %x service %x", m.Header.LocalCommID, m.Header.StartingPSN, m.Header.ServiceID)
		case *rocev2.Layer[rocev2.REP]:
			line += fmt.Sprintf("REP %d %d PSN %x private data %x", m.Header.LocalCommID, m.Header.RemoteCommID, m.Header.StartingPSN, m.Header.PrivateData[:8])
		case *rocev2.Layer[rocev2.RTU]:
			line += fmt.Sprintf("RTU %d %d", m.Header.LocalCommID, m.Header.RemoteCommID)
		case *rocev2.Layer[rocev2.MRA]:
			line += fmt.Sprintf("MRA %d %d of message %d", m.Header.LocalCommID, m.Header.RemoteCommID, m.Header.Message)
		case *rocev2.Layer[rocev2.REJ]:
			line += fmt.Sprintf("REJ %d %d of message %d: %v, %d", m.Header.LocalCommID, m.Header.RemoteCommID, m.Header.Message, m.Header.Reason, m.Header.InfoLength)
		case *rocev2.Layer[rocev2.DREQ]:
			line += fmt.Sprintf("DREQ %d %d QPN %x", m.Header.LocalCommID, m.Header.RemoteCommID, m.Header.RemoteQPN)
		case *rocev2.Layer[rocev2.DREP]:
			line += fmt.Sprintf("DREP %d %d", m.Header.LocalCommID, m.Header.RemoteCommID)
		default:
			t.Fatalf("a packet of the handshake is no message of the connection manager: %v", packet)
		}
		got = append(got, line)
	}
	equalLines(t, got, `
		> REQ 7 PSN 2000 service 1064e51
		< REP 8 7 PSN 1000 private data f6ab0e1801010303
		> RTU 7 8
		< MRA 8 7 of message 0
		> MRA 7 8 of message 1
		< REJ 0 7 of message 0: consumer reject, 0
		> REJ 7 8 of message 1: timeout, 3
		< DREQ 8 7 QPN 100
		> DREP 7 8`)
}

// TestSink: frames are passed to the Sink and not recorded.
func TestSink(t *testing.T) {
	kept := synth.New()
	healthy(kept.RoCE(synth.Options{}))
	w := synth.New()
	n := 0
	w.Sink = func(f *synth.Frame) {
		if !slices.Equal(f.Data, kept.Frames[n].Data) || f.Time != kept.Frames[n].Time {
			t.Errorf("frame %d differs", n)
		}
		n++
	}
	healthy(w.RoCE(synth.Options{}))
	if n != len(kept.Frames) || len(w.Frames) != 0 {
		t.Errorf("%d frames, %d kept", n, len(w.Frames))
	}
}

// TestDistinct: each connection has its own addresses, ports and IDs.
func TestDistinct(t *testing.T) {
	w := synth.New()
	seen := map[string]bool{}
	for range 60000 {
		c := w.IWARP(synth.Options{})
		seen[fmt.Sprint(c.Client.Addr, c.Client.Port)] = true
		seen[fmt.Sprint(c.Client.QPN)] = true
		seen[fmt.Sprint(c.Server.CommID, c.Server.Port)] = true
	}
	if len(seen) != 3*60000 {
		t.Errorf("60,000 connections have %d different ports, queue pairs and ids; want all of 180,000 to differ", len(seen))
	}
}

// TestPanics: operations that cannot be built panic.
func TestPanics(t *testing.T) {
	for name, act := range map[string]func(roce, iwarp *synth.Conn){
		"synth: iWARP has no NAK":                  func(_, i *synth.Conn) { i.Client.Nak(1) },
		"synth: iWARP has no connection manager":   func(_, i *synth.Conn) { i.REQ() },
		"synth: RoCE has no TCP":                   func(r, _ *synth.Conn) { r.Client.FIN() },
		"synth: iWARP has no Immediate and no PSN": func(_, i *synth.Conn) { i.Client.Send(nil, synth.Immediate(1)) },
		"synth: RoCE has no DDP segments":          func(r, _ *synth.Conn) { r.Client.Segment(iwarp.Segment{}) },
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %s", got, name)
				}
			}()
			w := synth.New()
			act(w.RoCE(synth.Options{}), w.IWARP(synth.Options{}))
		}()
	}
}

// TestAnother: IWARP reports the transport of a connection, and Another uses the same one.
func TestAnother(t *testing.T) {
	for name, kind := range kinds {
		c := kind.open(synth.New(), kind.options)
		again := c.Another(kind.options)
		if want := strings.HasPrefix(name, "iWARP"); c.IWARP() != want || again.IWARP() != want || again.Options.MTU != c.Options.MTU {
			t.Errorf("%s: iWARP %t, another %t with MTU %d, want %t with %d", name, c.IWARP(), again.IWARP(), again.Options.MTU, want, c.Options.MTU)
		}
		if again == c || again.Client.Port == c.Client.Port {
			t.Errorf("%s: another is the same", name)
		}
	}
}
