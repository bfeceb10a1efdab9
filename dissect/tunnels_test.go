package dissect_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/render"
)

// recordsOf returns the transactions, connections, findings and RDMA operations of a list of frames, as JSON.
func recordsOf(t *testing.T, frames []capture.Frame) (text string, s *record.Summary) {
	t.Helper()
	var b strings.Builder
	put := func(r any) error {
		b.Write(render.AppendJSON(nil, r))
		b.WriteByte('\n')
		return nil
	}
	d := dissect.New(dissect.Handler{
		Transaction: func(r *record.Transaction) error { return put(r) }, Connection: func(r *record.Connection) error { return put(r) },
		Finding: func(r *record.Finding) error { return put(r) }, Operation: func(r *record.RDMAOperation) error { return put(r) },
	}, dissect.Options{Files: true})
	for i := range frames {
		if err := d.Frame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	s, err := d.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), s
}

// TestTunneledCaptures checks that a capture in any tunnel, and in tunnels of tunnels, has the records that it has without one.
func TestTunneledCaptures(t *testing.T) {
	for _, name := range []string{"rocev2-callback41.pcap.zst", "lab-iwarpdata3.pcap.zst", "derived-rocev1-callback41.pcap.zst"} {
		frames, _ := testkit.Frames(t, filepath.Join(captures, name))
		frames = frames[:min(len(frames), 600)]
		want, plain := recordsOf(t, frames)
		if len(want) < 5000 {
			t.Fatalf("%s has only %d bytes of records", name, len(want))
		}
		wrapped, twice := make([]capture.Frame, len(frames)), make([]capture.Frame, len(frames))
		for i := range testkit.Tunnels {
			tunnel, outer := &testkit.Tunnels[i], &testkit.Tunnels[(i+3)%len(testkit.Tunnels)]
			for j := range frames {
				wrapped[j] = tunnel.Frame(&frames[j])
				twice[j] = outer.Frame(&wrapped[j])
			}
			for _, form := range [][]capture.Frame{wrapped, twice} {
				got, s := recordsOf(t, form)
				if got != want {
					t.Errorf("%s in %s: other records: %s", name, tunnel.Name, firstDifference(strings.Split(want, "\n"), strings.Split(got, "\n")))
				}
				if s.RDMA != plain.RDMA || s.Malformed != plain.Malformed || s.Truncated != plain.Truncated || s.ICRCBad != plain.ICRCBad {
					t.Errorf("%s in %s: %d packets of RDMA, %d malformed, %d truncated; without it %d, %d, %d", name, tunnel.Name, s.RDMA, s.Malformed, s.Truncated, plain.RDMA, plain.Malformed, plain.Truncated)
				}
			}
		}
	}
}

// ipoib returns an Ethernet frame with IP as a datagram of IP over InfiniBand.
func ipoib(f *capture.Frame, global bool) capture.Frame {
	be := binary.BigEndian
	packet := f.Data[14:]
	if total := int(be.Uint16(packet[2:])); total > 0 && packet[0]>>4 == 4 {
		packet = packet[:min(total, len(packet))]
	}
	ud := append([]byte{0x64, 0, 0xff, 0xff, 0, 0, 0, 0x49, 0, 0, 0, 1, 0, 0, 0x0b, 0x1b, 0, 0, 0, 0x4a}, f.Data[12], f.Data[13], 0, 0)
	ud = append(append(ud, packet...), make([]byte, -len(packet)&3)...) // padded to words
	ud[1] = byte(-len(packet)&3) << 4
	ud = append(ud, 1, 2, 3, 4) // ICRC
	lnh := byte(2)
	if global {
		lnh = 3
		grh := make([]byte, 40)
		grh[0], grh[6] = 0x60, 0x1b
		be.PutUint16(grh[4:], uint16(len(ud)))
		ud = append(grh, ud...)
	}
	g := *f
	g.Data = append([]byte{0, lnh, 0, 1, byte((len(ud)/4 + 2) >> 8), byte(len(ud)/4 + 2), 0, 2}, ud...)
	g.Data = append(g.Data, 5, 6) // VCRC
	g.Length, g.LinkType = len(g.Data), capture.LinkInfiniBand
	return g
}

// TestIPoIB checks that RPC over TCP and UDP, and iWARP, have the same records inside IP over InfiniBand, with and without a global route.
func TestIPoIB(t *testing.T) {
	rpcs := 0
	for _, name := range []string{"rocev2-nfs3.pcap.zst", "lab-nfs40.pcap.zst", "lab-iwarpdata3.pcap.zst"} {
		all, _ := testkit.Frames(t, filepath.Join(captures, name))
		var frames, local, global []capture.Frame
		for i := range all {
			var l link.Decoder
			if f := &all[i]; f.LinkType == capture.LinkEthernet && f.Length == len(f.Data) {
				if c := l.Decode(f); c == link.CarriesTCP || c == link.CarriesUDP {
					frames, local, global = append(frames, *f), append(local, ipoib(f, false)), append(global, ipoib(f, true))
				}
			}
		}
		want, plain := recordsOf(t, frames)
		rpcs += strings.Count(want, `"type":"transaction"`)
		for _, form := range [][]capture.Frame{local, global} {
			got, s := recordsOf(t, form)
			if got != want || s.RPC != plain.RPC || s.Malformed != 0 {
				t.Errorf("%s: other records, or %d segments of RPC instead of %d: %s", name, s.RPC, plain.RPC, firstDifference(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		}
	}
	if rpcs < 20 {
		t.Errorf("only %d RPCs", rpcs)
	}
	all, _ := testkit.Frames(t, "../testdata/captures/lab-nfs40.pcap.zst")
	for _, marked := range []bool{false, true} {
		n, of := 0, 0
		d := dissect.New(dissect.Handler{Packet: func(r *record.Packet) error {
			if of++; strings.HasPrefix(string(r.Summary), "IPoIB | TCP ") {
				n++
			}
			return nil
		}}, dissect.Options{})
		for k := range all {
			f, l := all[k], link.Decoder{}
			if l.Decode(&f) != link.CarriesTCP {
				continue
			}
			if marked {
				f = ipoib(&f, false)
			}
			if err := d.Frame(&f); err != nil {
				t.Fatal(err)
			}
		}
		if d.Finish(); of == 0 || n != of && marked || n > 0 && !marked {
			t.Errorf("%d of %d packets are marked, inside IPoIB: %t", n, of, marked)
		}
	}
}

// TestTunnelsTshark checks that tshark finds the same packets of the InfiniBand transport in each tunnel.
func TestTunnelsTshark(t *testing.T) {
	tshark := testkit.Tshark(t)
	frames, _ := testkit.Frames(t, filepath.Join(captures, "rocev2-callback41.pcap.zst"))
	for _, tunnel := range testkit.Few(testkit.Tunnels) {
		wrapped := make([]capture.Frame, len(frames))
		for j := range frames {
			wrapped[j] = tunnel.Frame(&frames[j])
		}
		path := filepath.Join(t.TempDir(), "tunnel.pcapng")
		if err := os.WriteFile(path, testkit.Pcapng(wrapped, 9), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"-r", path, "-T", "fields", "-e", "frame.number", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn", "-Y", "infiniband"}
		if tunnel.Tshark != "" {
			args = append(args, "-d", tunnel.Tshark)
		}
		out, err := exec.Command(tshark, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(string(out)), "\n")
		var got []string
		d := dissect.New(dissect.Handler{Packet: func(p *record.Packet) error {
			if p.Transport != "" {
				values := values(p).values
				got = append(got, fmt.Sprintf("%d\t0x%06x\t%d", p.Number, values["bth.dest_qpn"][0], values["bth.psn"][0]))
			}
			return nil
		}}, dissect.Options{})
		for j := range wrapped {
			wrapped[j].Number = int64(j + 1)
			if err := d.Frame(&wrapped[j]); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) < 200 || len(got) != len(want) {
			t.Errorf("%s: %d packets, tshark has %d", tunnel.Name, len(got), len(want))
			continue
		}
		for j := range got {
			if got[j] != want[j] {
				t.Errorf("%s: %q, tshark says %q", tunnel.Name, got[j], want[j])
				break
			}
		}
	}
}

// TestOtherProtocols checks what the summary says about packets that no view of RPCs shows: encrypted RPC, and other protocols.
func TestOtherProtocols(t *testing.T) {
	const eth, ip = "020000000001 020000000002 ", "45000037 00010000 4006 0000 0a000001 0a000002 "
	frame := func(text string) capture.Frame {
		data := testkit.Unhex(t, text)
		return capture.Frame{LinkType: capture.LinkEthernet, Data: data, Length: len(data), Time: 1e18}
	}
	tcp := func(ports, payload string) capture.Frame {
		return frame(eth + "0800" + ip + ports + "00000001 00000001 5018ffff 0000 0000" + payload)
	}
	frames := []capture.Frame{
		frame(eth + "0806 0001"), tcp("03e8 0801", "16 0301 0200 01000000 0000000000000000"), tcp("0801 03e8", "17 0303 0010 00000000 0000000000000000"),
		tcp("03e8 0801", "80 0000 28 1234 5678 00000000 0000 0002 000000"), tcp("c000 0016", "17 0303 0010 00000000 0000000000000000"), frame(eth + "88b5 0001"),
	}
	for i := range frames {
		frames[i].Number = int64(i + 1)
	}
	_, s := recordsOf(t, frames)
	want := map[string]int64{"ARP": 1, "RPC with TLS": 2, "TCP port 22": 1, "EtherType 0x88b5": 1}
	for _, p := range s.OtherProtocols {
		if n, expected := want[p.Protocol]; expected && n != p.Packets {
			t.Errorf("%d packets of %s, want %d", p.Packets, p.Protocol, n)
		}
		delete(want, p.Protocol)
	}
	if len(want) > 0 {
		t.Errorf("not in the summary: %v; it has %v", want, s.OtherProtocols)
	}
	if s.OtherProtocols[0].Protocol != record.RPCWithTLS || s.OtherProtocols[0].First != 2 {
		t.Errorf("first %+v, want RPC with TLS from packet 2 on", s.OtherProtocols[0])
	}
}

// TestTLSOnOtherPorts: TLS after a message that starts it is encrypted RPC on any port, and the client is the sender of the Call, also if it
// has the lower port. TLS without such a message is another protocol, of the port that a SYN goes to.
func TestTLSOnOtherPorts(t *testing.T) {
	const (
		eth, client, server, head = "020000000001 020000000002 ", "0a000001", "0a000002", "00000001 00000001 50%02xffff 0000 0000"
		call                      = "80000028 0000004d 00000000 00000002 000186a3 00000004 00000000 00000007 00000000 00000000 00000000"
		reply                     = "80000020 0000004d 00000001 00000000 00000000 00000008 53544152 54544c53 00000000"
		data                      = "17 0303 0010 00000000000000000000000000000000"
	)
	segment := func(fromClient bool, flags int, payload string) string {
		from, to, ports := client, server, "0320 5000"
		if !fromClient {
			from, to, ports = server, client, "5000 0320"
		}
		size := 40 + len(strings.ReplaceAll(payload, " ", ""))/2
		return eth + fmt.Sprintf("0800 4500%04x 00010000 4006 0000 %s %s %s ", size, from, to, ports) + fmt.Sprintf(head, flags) + payload
	}
	for name, c := range map[string]struct {
		packets []string
		tls     int64
		other   string // name of the protocol of the SYN
		client  string
	}{
		"the Call":  {[]string{segment(true, 2, ""), segment(true, 0x18, call), segment(true, 0x18, data), segment(false, 0x18, data)}, 2, "TCP port 20480", "10.0.0.1:800"},
		"the Reply": {[]string{segment(false, 0x18, reply), segment(true, 0x18, data), segment(false, 0x18, data)}, 2, "", "10.0.0.1:800"},
		"neither":   {[]string{segment(true, 2, ""), segment(true, 0x18, data), segment(false, 0x18, data)}, 0, "TCP port 20480", ""},
		"no SYN":    {[]string{segment(true, 0x18, data), segment(false, 0x18, data)}, 0, "TCP port 800", ""},
	} {
		var frames []capture.Frame
		for i, text := range c.packets {
			raw := testkit.Unhex(t, text)
			frames = append(frames, capture.Frame{Number: int64(i + 1), LinkType: capture.LinkEthernet, Data: raw, Length: len(raw), Time: 1e18 + int64(i)})
		}
		var first string
		d := dissect.New(dissect.Handler{Connection: func(r *record.Connection) error {
			first = r.Client.Address.Or("") + ":" + fmt.Sprint(r.Client.Port.Or(0))
			return nil
		}}, dissect.Options{})
		for i := range frames {
			if err := d.Frame(&frames[i]); err != nil {
				t.Fatal(err)
			}
		}
		s, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		for _, p := range s.OtherProtocols {
			got[p.Protocol] = p.Packets
		}
		if got[record.RPCWithTLS] != c.tls || c.other != "" && got[c.other] == 0 || first != c.client {
			t.Errorf("%s: %v and client %q, want %d packets of RPC with TLS, %q and client %q", name, got, first, c.tls, c.other, c.client)
		}
	}
}

// TestUnopenedTunnels: the summary says which of the protocols that are not opened are tunnels. A routing protocol is none.
func TestUnopenedTunnels(t *testing.T) {
	const eth, ip = "020000000001 020000000002 ", "0800 4500001c 00010000 40%02x 0000 0a000001 0a000002 %s"
	packet := func(protocol int, payload string) string { return eth + fmt.Sprintf(ip, protocol, payload) }
	for text, want := range map[string]bool{
		packet(2, "1100 0000 00000000"): false, packet(89, "0201 0008 00000000"): false, packet(112, "2101 0000 00000000"): false,
		packet(97, "3000 0000 00000000"): true, packet(137, "00011140 00000000"): true,
		packet(17, "c000 12b6 0008 0000"): true, packet(17, "c000 0035 0008 0000"): false,
		eth + "8864 1100 0001 0000": true, eth + "88b5 0001": false,
	} {
		data := testkit.Unhex(t, text)
		_, s := recordsOf(t, []capture.Frame{{Number: 1, LinkType: capture.LinkEthernet, Data: data, Length: len(data), Time: 1e18}})
		if len(s.OtherProtocols) != 1 || s.OtherProtocols[0].Tunnel != want {
			t.Errorf("%s: %+v, want a tunnel: %t", text, s.OtherProtocols, want)
		}
	}
}
