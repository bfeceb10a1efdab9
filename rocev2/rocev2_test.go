package rocev2_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/internal/link"
	"github.com/rdmadump/rdmadump/rocev2"
	_ "github.com/rdmadump/rdmadump/rocev2/register"
)

// eachPacket calls visit for the transport packets of every InfiniBand capture.
func eachPacket(t testing.TB, visit func(name string, l *link.Decoder, f *capture.Frame)) {
	t.Helper()
	paths, _ := filepath.Glob("../testdata/captures/*.zst")
	if len(paths) == 0 {
		t.Fatal("no captures")
	}
	for _, path := range paths {
		f, err := capture.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var l link.Decoder
		for frame, err := range capture.All(context.Background(), f) {
			if err != nil {
				break
			}
			switch l.Decode(frame) {
			case link.CarriesRoCEv2, link.CarriesRoCEv1, link.CarriesInfiniBand:
				visit(filepath.Base(path), &l, frame)
			}
		}
		f.Close()
	}
}

// TestOpcodes checks the rows of the opcode table.
func TestOpcodes(t *testing.T) {
	for _, c := range []struct {
		opcode  rocev2.Opcode
		name    string
		headers rocev2.Headers
		length  int
		known   bool
	}{
		{0x00, "RC SEND First", 0, 0, true},
		{0x03, "RC SEND Last with Immediate", rocev2.HasImmDt, 4, true},
		{0x04, "RC SEND Only", 0, 0, true},
		{0x0b, "RC RDMA WRITE Only with Immediate", rocev2.HasRETH | rocev2.HasImmDt, 20, true},
		{0x0c, "RC RDMA READ Request", rocev2.HasRETH, 16, true},
		{0x0d, "RC RDMA READ Response First", rocev2.HasAETH, 4, true},
		{0x0e, "RC RDMA READ Response Middle", 0, 0, true},
		{0x11, "RC Acknowledge", rocev2.HasAETH, 4, true},
		{0x12, "RC ATOMIC Acknowledge", rocev2.HasAETH | rocev2.HasAtomicAckETH, 12, true},
		{0x13, "RC CmpSwap", rocev2.HasAtomicETH, 28, true},
		{0x17, "RC SEND Only with Invalidate", rocev2.HasIETH, 4, true},
		{0x1c, "RC FLUSH", rocev2.HasFETH | rocev2.HasRETH, 20, true},
		{0x1d, "RC ATOMIC WRITE", rocev2.HasRETH, 16, true},
		{0x1f, "reserved (0x1f)", 0, 0, false},
		{0x24, "UC SEND Only", 0, 0, true},
		{0x2c, "reserved (0x2c)", 0, 0, false},
		{0x44, "RD SEND Only", rocev2.HasRDETH | rocev2.HasDETH, 12, true},
		{0x51, "RD Acknowledge", rocev2.HasRDETH | rocev2.HasAETH, 8, true},
		{0x64, "UD SEND Only", rocev2.HasDETH, 8, true},
		{0x65, "UD SEND Only with Immediate", rocev2.HasDETH | rocev2.HasImmDt, 12, true},
		{0x60, "reserved (0x60)", 0, 0, false},
		{0x81, "CNP", 0, 0, true},
		{0xa4, "XRC SEND Only", rocev2.HasXRCETH, 4, true},
		{0xac, "XRC RDMA READ Request", rocev2.HasXRCETH | rocev2.HasRETH, 20, true},
		{0xb1, "XRC Acknowledge", rocev2.HasAETH, 4, true},
		{0xb7, "XRC SEND Only with Invalidate", rocev2.HasXRCETH | rocev2.HasIETH, 8, true},
	} {
		info := c.opcode.Info()
		if c.opcode.String() != c.name || info.Headers != c.headers || info.HeadLen != c.length || info.Known != c.known {
			t.Errorf("0x%02x is %q with headers %b of %d bytes, known %t", uint8(c.opcode), c.opcode, info.Headers, info.HeadLen, info.Known)
		}
	}
}

// TestPSNDelta checks that PSNs wrap around at 24 bits.
func TestPSNDelta(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want int32
	}{
		{5, 3, 2},
		{3, 5, -2},
		{7, 7, 0},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{0x7fffff, 0, 1<<23 - 1},
		{0x800000, 0, -1 << 23},
		{0x12000001, 0x34000000, 1}, // only the lower 24 bits count
	} {
		if got := rocev2.PSNDelta(c.a, c.b); got != c.want {
			t.Errorf("0x%x - 0x%x is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestOperation checks that an opcode consists of a service and an operation.
func TestOperation(t *testing.T) {
	if o := rocev2.Opcode(0xb7); o.Transport() != rocev2.XRC || o.Operation() != rocev2.OpSendOnlyInv {
		t.Errorf("0xb7 is operation 0x%02x of %v", o.Operation(), o.Transport())
	}
}

// TestRoundTrip checks that every packet of the captures is encoded to the bytes it was decoded
// from, and that every invariant CRC is right.
func TestRoundTrip(t *testing.T) {
	packets, datagrams := 0, 0
	var p rocev2.Packet
	eachPacket(t, func(name string, l *link.Decoder, f *capture.Frame) {
		if l.Length > len(l.Transport) {
			return // truncated to the snapshot length
		}
		if err := p.DecodeFromBytes(l.Transport, gopacket.NilDecodeFeedback); err != nil {
			t.Fatalf("%s: frame %d: %v", name, f.Number, err)
		}
		got := l.CheckICRC(&p)
		if got == rocev2.ICRCBad && strings.Contains(name, "storm") {
			return // corrupted on purpose
		}
		if got != rocev2.ICRCOk {
			t.Errorf("%s: frame %d: ICRC %v", name, f.Number, got)
		}
		payload := p.Payload
		if p.NextLayerType() == rocev2.LayerTypeMAD {
			datagrams++
			payload = reassembleMAD(t, p.Payload)
		}
		buf := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, &p, gopacket.Payload(payload)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), l.Transport) {
			t.Fatalf("%s: frame %d:\n got %x\nwant %x", name, f.Number, buf.Bytes(), l.Transport)
		}
		packets++
	})
	if packets < 20000 || datagrams < 100 {
		t.Errorf("only %d packets and %d datagrams", packets, datagrams)
	}
}

// reassembleMAD decodes a datagram header by header and encodes it again from the decoded fields.
func reassembleMAD(t *testing.T, data []byte) []byte {
	t.Helper()
	var mad rocev2.MAD
	if err := rocev2.Decode(data, &mad); err != nil {
		t.Fatal(err)
	}
	message := map[rocev2.CMAttribute]rocev2.Header{
		rocev2.CMReq: new(rocev2.REQ), rocev2.CMRep: new(rocev2.REP), rocev2.CMRtu: new(rocev2.RTU),
		rocev2.CMRej: new(rocev2.REJ), rocev2.CMDreq: new(rocev2.DREQ), rocev2.CMDrep: new(rocev2.DREP),
		rocev2.CMMra: new(rocev2.MRA),
	}[mad.Attribute]
	if mad.Class != rocev2.ClassCM || message == nil {
		t.Fatalf("no message for %v", &mad)
	}
	if err := rocev2.Decode(data[rocev2.MADLen:], message); err != nil {
		t.Fatal(err)
	}
	if left := reflect.ValueOf(message).Elem().FieldByName("Reserved"); !left.IsNil() {
		t.Errorf("%v has bits that no field claims: %x", mad.Attribute, left.Bytes())
	}
	if req, ok := message.(*rocev2.REQ); ok && req.ServiceID>>24 == 1 {
		var ip rocev2.IPCM
		if err := rocev2.Decode(req.PrivateData, &ip); err != nil {
			t.Fatal(err)
		}
		req.PrivateData = append(rocev2.Append(nil, &ip), req.PrivateData[rocev2.IPCMLen:]...)
	}
	return rocev2.Append(rocev2.Append(nil, &mad), message)
}

func serialize(t testing.TB, layers ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{}, layers...); err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), buf.Bytes()...)
}

// pattern fills the fields of a layer with different numbers.
func pattern(v reflect.Value, n *uint64) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() {
			continue
		}
		*n = *n*6364136223846793005 + 1442695040888963407
		switch f.Kind() {
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			f.SetUint(*n >> 16 & (1<<f.Type().Bits() - 1))
		case reflect.Bool:
			f.SetBool(*n>>40&1 != 0)
		}
	}
}

// TestEveryHeader checks that decoding and encoding any bytes gives the same bytes, also for headers
// that are in no capture.
func TestEveryHeader(t *testing.T) {
	for _, c := range []struct {
		header rocev2.Header
		size   int
	}{
		{new(rocev2.LRH), rocev2.LRHLen},
		{new(rocev2.GRH), rocev2.GRHLen},
		{new(rocev2.RDETH), rocev2.RDETHLen},
		{new(rocev2.DETH), rocev2.DETHLen},
		{new(rocev2.XRCETH), rocev2.XRCETHLen},
		{new(rocev2.RETH), rocev2.RETHLen},
		{new(rocev2.AETH), rocev2.AETHLen},
		{new(rocev2.AtomicETH), rocev2.AtomicETHLen},
		{new(rocev2.AtomicAckETH), rocev2.AtomicAckETHLen},
		{new(rocev2.ImmDt), rocev2.ImmDtLen},
		{new(rocev2.IETH), rocev2.IETHLen},
		{new(rocev2.FETH), rocev2.FETHLen},
		{new(rocev2.MAD), rocev2.MADLen},
		{new(rocev2.IPCM), rocev2.IPCMLen},
		{new(rocev2.REQ), rocev2.CMSize},
		{new(rocev2.MRA), rocev2.CMSize},
		{new(rocev2.REJ), rocev2.CMSize},
		{new(rocev2.REP), rocev2.CMSize},
		{new(rocev2.RTU), rocev2.CMSize},
		{new(rocev2.DREQ), rocev2.CMSize},
		{new(rocev2.DREP), rocev2.CMSize},
	} {
		name := reflect.TypeOf(c.header).Elem().Name()
		t.Run(name, func(t *testing.T) {
			data := make([]byte, c.size)
			for i := range data {
				data[i] = byte(i*167 + 13)
			}
			if err := rocev2.Decode(data, c.header); err != nil {
				t.Fatal(err)
			}
			if got := rocev2.Append(nil, c.header); !bytes.Equal(got, data) {
				t.Errorf("\n got %x\nwant %x", got, data)
			}
			for size := range c.size {
				if err := rocev2.Decode(data[:size], c.header); !errors.Is(err, rocev2.ErrTruncated) {
					t.Fatalf("%d bytes: error %v, want one that wraps ErrTruncated", size, err)
				}
			}
			// Encoding and decoding fields gives the same fields.
			v := reflect.New(reflect.TypeOf(c.header).Elem())
			seed := uint64(7)
			pattern(v.Elem(), &seed)
			once := rocev2.Append(nil, v.Interface().(rocev2.Header))
			if err := rocev2.Decode(once, c.header); err != nil {
				t.Fatal(err)
			}
			if twice := rocev2.Append(nil, c.header); !bytes.Equal(once, twice) {
				t.Errorf("\n got %x\nwant %x", twice, once)
			}
		})
	}
}

// TestEveryOpcode checks, for a packet of every opcode, that the headers start at the right offsets
// and that encoding gives the same bytes.
func TestEveryOpcode(t *testing.T) {
	for opcode := range 256 {
		info := rocev2.Opcode(opcode).Info()
		data := make([]byte, rocev2.BTHLen+info.HeadLen+8+rocev2.ICRCLen)
		for i := range data {
			data[i] = byte(i*31 + 7)
		}
		data[0], data[1] = byte(opcode), data[1]&^0x30|0x20 // two bytes of pad
		var p rocev2.Packet
		if err := p.DecodeFromBytes(data, gopacket.NilDecodeFeedback); err != nil {
			t.Errorf("0x%02x: %v", opcode, err)
			continue
		}
		if len(p.Payload) != 6 || len(p.Pad) != 2 || p.PayloadLength != 6 || p.Headers != info.Headers {
			t.Errorf("0x%02x: %d bytes of payload, %d of pad, headers %b", opcode, len(p.Payload), len(p.Pad), p.Headers)
		}
		if got := serialize(t, &p, gopacket.Payload(p.Payload)); !bytes.Equal(got, data) {
			t.Errorf("0x%02x:\n got %x\nwant %x", opcode, got, data)
		}
	}
}

// TestCut checks that every complete header of a truncated packet is decoded.
func TestCut(t *testing.T) {
	data := make([]byte, 100)
	data[0] = 0x0a // RDMA WRITE Only
	binary.BigEndian.PutUint32(data[20:], 0x1234)
	var p rocev2.Packet
	if err := p.Decode(data[:40], 1000); err != nil || p.RETH.RKey != 0x1234 || len(p.Payload) != 12 || p.PayloadLength != 1000-12-16-4 || p.HasICRC {
		t.Errorf("RETH %v, %d of %d bytes of payload, ICRC %t, error %v", &p.RETH, len(p.Payload), p.PayloadLength, p.HasICRC, err)
	}
	if err := p.Decode(data[:20], 1000); !errors.Is(err, rocev2.ErrTruncated) || p.Headers != 0 {
		t.Errorf("headers %b, error %v", p.Headers, err)
	}
	if err := p.Decode(data[:8], 1000); !errors.Is(err, rocev2.ErrTruncated) {
		t.Errorf("error %v", err)
	}
	for _, length := range []int{5, 0, -1} {
		if err := p.Decode(data[:40], length); !errors.Is(err, rocev2.ErrTruncated) {
			t.Errorf("%d bytes on the wire: error %v", length, err)
		}
	}
	if err := p.Decode(data[:30], 30); !errors.Is(err, rocev2.ErrTruncated) {
		t.Errorf("no room for the ICRC: error %v", err)
	}
}

// TestPlausible checks which bytes look like a RoCEv2 packet.
func TestPlausible(t *testing.T) {
	ack := []byte{0x11, 0x40, 0xff, 0xff, 0, 0, 0, 0x11, 0x80, 0, 0xa5, 0x0f, 0x1f, 0, 0, 4, 0, 0, 0, 0}
	edited := func(at int, v byte) []byte {
		b := bytes.Clone(ack)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name   string
		data   []byte
		length int
		want   bool
	}{
		{"acknowledgement", ack, 20, true},
		{"truncated after the BTH", ack[:12], 20, true},
		{"FECN and BECN", edited(4, 0xc0), 20, true},
		{"truncated in the BTH", ack[:11], 20, false},
		{"reserved opcode", edited(0, 0x1f), 20, false},
		{"header version", edited(1, 0x41), 20, false},
		{"reserved bits of byte 4", edited(4, 0x20), 20, false},
		{"reserved bits of byte 8", edited(8, 0x81), 20, false},
		{"too short for the AETH and the ICRC", ack[:16], 16, false},
		{"pad count of an acknowledgement", edited(1, 0x70), 20, true},
		{"pad longer than the payload", append([]byte{0x04, 0x30}, ack[2:]...), 16, false},
		{"length that is no multiple of 4", ack, 21, false},
	} {
		if got := rocev2.Plausible(c.data, c.length); got != c.want {
			t.Errorf("%s: plausible %v, want %v", c.name, got, c.want)
		}
	}
	// All packets of the captures are plausible, except those of which the BTH was corrupted on purpose.
	eachPacket(t, func(name string, l *link.Decoder, f *capture.Frame) {
		var p rocev2.Packet
		if p.Decode(l.Transport, l.Length) != nil || l.CheckICRC(&p) != rocev2.ICRCOk {
			return
		}
		if !rocev2.Plausible(l.Transport, l.Length) {
			t.Errorf("%s: packet %d is not plausible: %v", name, f.Number, &p)
		}
	})
}

// TestStrayPad checks that a pad count in a packet without a payload is accepted and reported.
func TestStrayPad(t *testing.T) {
	ack := []byte{0x11, 0x70, 0xff, 0xff, 0, 0, 0, 0x11, 0, 0, 0xa5, 0x0f, 0x1f, 0, 0, 4, 0xde, 0xad, 0xbe, 0xef}
	var p rocev2.Packet
	if err := p.Decode(ack, len(ack)); err != nil {
		t.Fatal(err)
	}
	if !p.StrayPad() || p.PadCount != 3 || len(p.Pad) != 0 || len(p.Payload) != 0 || p.PayloadLength != 0 || !p.HasICRC || p.ICRC != 0xefbeadde || p.AETH.MSN != 4 {
		t.Errorf("stray pad %v of %d, %d bytes of pad, payload %d of %d, ICRC %v 0x%08x, MSN %d", p.StrayPad(), p.PadCount, len(p.Pad), len(p.Payload), p.PayloadLength, p.HasICRC, p.ICRC, p.AETH.MSN)
	}
	buf := gopacket.NewSerializeBuffer()
	if err := p.SerializeTo(buf, gopacket.SerializeOptions{}); err != nil || !bytes.Equal(buf.Bytes(), ack) {
		t.Errorf("encoded to %x, error %v", buf.Bytes(), err)
	}
	if got := gopacket.NewPacket(ack, rocev2.LayerTypeBTH, gopacket.Default); got.ErrorLayer() != nil || got.Layer(rocev2.LayerTypeAETH) == nil {
		t.Errorf("gopacket: %v", got)
	}
	// Two bytes that may be pad precede the ICRC.
	long := slices.Concat(ack[:16], []byte{0, 0}, ack[16:])
	if err := p.Decode(long, len(long)); err != nil || len(p.Pad) != 2 || p.PayloadLength != 0 || p.ICRC != 0xefbeadde {
		t.Errorf("%d bytes of pad, payload %d, ICRC 0x%08x, error %v", len(p.Pad), p.PayloadLength, p.ICRC, err)
	}
	// The pad of an operation with a payload must fit.
	send := append([]byte{0x04, 0x30}, ack[2:16]...)
	if err := p.Decode(send, len(send)); !errors.Is(err, rocev2.ErrTruncated) {
		t.Errorf("SEND with a pad but no payload: error %v", err)
	}
}

// TestMADNames checks the names of management datagrams.
func TestMADNames(t *testing.T) {
	for _, c := range []struct {
		class, method uint8
		attribute     rocev2.CMAttribute
		want          string
	}{
		{rocev2.ClassSubnAdm, 0x01, 0x0035, "SubnAdmGet(PathRecord)"},
		{rocev2.ClassSubnAdm, 0x92, 0x0011, "SubnAdmGetTableResp(NodeRecord)"},
		{rocev2.ClassSubnAdm, 0x02, 0x0038, "SubnAdmSet(MCMemberRecord)"},
		{rocev2.ClassSubn, 0x81, 0x0015, "SubnGetResp(PortInfo)"},
		{rocev2.ClassSubnDirected, 0x01, 0x0011, "SubnGet(NodeInfo)"},
		{rocev2.ClassPerf, 0x01, 0x0012, "PerfGet(PortCounters)"},
		{rocev2.ClassCM, 0x03, rocev2.CMReq, "ComMgtSend(REQ)"},
		{rocev2.ClassPerf, 0x44, 0x9999, "Perf method 0x44(attribute 0x9999)"},
		{0x30, 0x01, 0x0011, "class 0x30 Get(attribute 0x0011)"},
	} {
		m := rocev2.MAD{Class: c.class, Method: c.method, Attribute: c.attribute}
		if got := m.Name(); got != c.want {
			t.Errorf("name %q, want %q", got, c.want)
		}
	}
}

// TestGopacket checks that a program can decode a frame with only gopacket.
func TestGopacket(t *testing.T) {
	seen := map[gopacket.LayerType]int{}
	eachPacket(t, func(name string, l *link.Decoder, f *capture.Frame) {
		if name != "rocev2-callback41.pcap.zst" && name != "derived-rocev1-callback41.pcap.zst" {
			return
		}
		p := gopacket.NewPacket(f.Data, layers.LayerTypeEthernet, gopacket.Default)
		if e := p.ErrorLayer(); e != nil {
			t.Fatalf("%s: frame %d: %v", name, f.Number, e.Error())
		}
		for _, layer := range p.Layers() {
			seen[layer.LayerType()]++
		}
	})
	for layer, want := range map[gopacket.LayerType]int{
		rocev2.LayerTypeBTH: 592, rocev2.LayerTypeGRH: 296, rocev2.LayerTypeREQ: 4, rocev2.LayerTypeIPCM: 4, rocev2.LayerTypeREP: 4,
		rocev2.LayerTypeRTU: 4, rocev2.LayerTypeDREQ: 4, rocev2.LayerTypeDREP: 4, rocev2.LayerTypeMAD: 20, rocev2.LayerTypeDETH: 20,
	} {
		if seen[layer] != want {
			t.Errorf("%d layers %v, want %d", seen[layer], layer, want)
		}
	}
	if seen[rocev2.LayerTypeRETH] == 0 || seen[rocev2.LayerTypeIETH] == 0 || seen[rocev2.LayerTypeAETH] == 0 {
		t.Errorf("layers %v", seen)
	}
}

// TestLayers decodes a whole frame with gopacket, and encodes it again from its layers. Each layer
// has the fields of its header and the bytes that follow it.
func TestLayers(t *testing.T) {
	eth := &layers.Ethernet{SrcMAC: []byte{2, 0, 0, 0, 0, 1}, DstMAC: []byte{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: 49152, DstPort: rocev2.UDPPort}
	sent := &rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x0b, PKey: 0xffff, DestQPN: 17, PSN: 5}, Headers: rocev2.HasRETH | rocev2.HasImmDt}
	sent.RETH, sent.ImmDt = rocev2.RETH{VirtualAddress: 0x1122334455667788, RKey: 0xabc, DMALength: 7}, rocev2.ImmDt{Immediate: 0xdeadbeef}
	frame := serializeFixed(t, eth, ip, udp, sent, gopacket.Payload("seven b"))
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	if e := p.ErrorLayer(); e != nil {
		t.Fatal(e.Error())
	}
	bth := p.Layer(rocev2.LayerTypeBTH).(*rocev2.Packet)
	reth := p.Layer(rocev2.LayerTypeRETH).(*rocev2.Layer[rocev2.RETH])
	immdt := p.Layer(rocev2.LayerTypeImmDt).(*rocev2.Layer[rocev2.ImmDt])
	if bth.PSN != 5 || bth.DestQPN != 17 || string(bth.Payload) != "seven b" || bth.PadCount != 1 || len(bth.LayerContents()) != rocev2.BTHLen {
		t.Errorf("BTH %+v", bth)
	}
	if reth.Header != sent.RETH || len(reth.LayerContents()) != rocev2.RETHLen || len(reth.LayerPayload()) != rocev2.ImmDtLen+7 {
		t.Errorf("RETH %+v", reth)
	}
	if immdt.Header != sent.ImmDt || string(immdt.LayerPayload()) != "seven b" || string(p.ApplicationLayer().Payload()) != "seven b" {
		t.Errorf("ImmDt %+v", immdt)
	}
	if got, want := immdt.String(), "ImmDt immediate 0xdeadbeef"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := serialize(t, reth, immdt, gopacket.Payload("seven b")); !bytes.Equal(got, frame[14+20+8+rocev2.BTHLen:len(frame)-1-rocev2.ICRCLen]) {
		t.Errorf("RETH, ImmDt and payload are encoded to %x", got)
	}

	grh := &rocev2.Layer[rocev2.GRH]{Header: rocev2.GRH{
		Version: 6, NextHeader: rocev2.NextHeaderIBA, HopLimit: 9, SourceGID: netip.MustParseAddr("fe80::1"), DestinationGID: netip.MustParseAddr("fe80::2"),
	}}
	v1 := serializeFixed(t, &layers.Ethernet{SrcMAC: eth.SrcMAC, DstMAC: eth.DstMAC, EthernetType: rocev2.EtherTypeRoCEv1}, grh, sent, gopacket.Payload("seven b"))
	p = gopacket.NewPacket(v1, layers.LayerTypeEthernet, gopacket.Default)
	got := p.Layer(rocev2.LayerTypeGRH).(*rocev2.Layer[rocev2.GRH]).Header
	if got != grh.Header || got.PayloadLength != rocev2.BTHLen+rocev2.RETHLen+rocev2.ImmDtLen+8+rocev2.ICRCLen || p.Layer(rocev2.LayerTypeRETH) == nil {
		t.Errorf("GRH %+v, %v", got, p)
	}
}

// serializeFixed encodes layers, of which it computes the lengths.
func serializeFixed(t *testing.T, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, all...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestFix checks that SerializeTo computes the lengths and FixICRC the ICRC of a packet.
func TestFix(t *testing.T) {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: []byte{10, 0, 0, 1}, DstIP: []byte{10, 0, 0, 2}}
	udp := &layers.UDP{SrcPort: 49152, DstPort: rocev2.UDPPort}
	bth := &rocev2.Packet{BTH: rocev2.BTH{Opcode: 0x04, PKey: 0xffff, DestQPN: 17, PSN: 5}}
	buf := gopacket.NewSerializeBuffer()
	err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, ip, udp, bth, gopacket.Payload("seven b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := rocev2.FixICRC(buf.Bytes()); err != nil {
		t.Fatal(err)
	}
	var l link.Decoder
	var p rocev2.Packet
	frame := &capture.Frame{LinkType: capture.LinkRaw, Data: buf.Bytes(), Length: len(buf.Bytes())}
	if l.Decode(frame) != link.CarriesRoCEv2 || p.Decode(l.Transport, l.Length) != nil {
		t.Fatal("not decoded")
	}
	if string(p.Payload) != "seven b" || p.PadCount != 1 || l.CheckICRC(&p) != rocev2.ICRCOk {
		t.Errorf("payload %q, pad %d, ICRC %v", p.Payload, p.PadCount, l.CheckICRC(&p))
	}
	buf.Bytes()[len(buf.Bytes())-6] ^= 1
	if l.Decode(frame); p.Decode(l.Transport, l.Length) != nil || l.CheckICRC(&p) != rocev2.ICRCBad {
		t.Error("a flipped bit goes unnoticed")
	}
}

// icrcKinds lists, for each kind of packet, the headers that the ICRC covers and a simple
// implementation: one CRC over the masked packet.
var icrcKinds = []struct {
	name    string
	headers int // number of header bytes, some of which are masked
	masked  []int
	ones    int // number of bytes of ones that replace an absent LRH
	sum     func(c *rocev2.ICRC, headers, transport []byte) (uint32, bool)
}{
	{"IPv4", 28, []int{1, 8, 10, 11, 26, 27}, 8, func(c *rocev2.ICRC, h, t []byte) (uint32, bool) { return c.RoCEv2(h[:20], h[20:], t) }},
	{"IPv4 with options", 68, []int{1, 8, 10, 11, 66, 67}, 8, func(c *rocev2.ICRC, h, t []byte) (uint32, bool) { return c.RoCEv2(h[:60], h[60:], t) }},
	{"IPv6", 48, []int{1, 2, 3, 7, 46, 47}, 8, func(c *rocev2.ICRC, h, t []byte) (uint32, bool) { return c.RoCEv2(h[:40], h[40:], t) }},
	{"RoCEv1", 40, []int{1, 2, 3, 7}, 8, (*rocev2.ICRC).RoCEv1},
	{"native", 8, nil, 0, func(c *rocev2.ICRC, h, t []byte) (uint32, bool) { return c.Native(h, nil, t) }},
	{"native, global", 48, []int{0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 15}, 0, func(c *rocev2.ICRC, h, t []byte) (uint32, bool) { return c.Native(h[:8], h[8:], t) }},
}

// TestICRCLengths checks the ICRCs of packets of every length, computed with the same buffer.
func TestICRCLengths(t *testing.T) {
	data := make([]byte, 4200)
	for i := range data {
		data[i] = byte(i*i>>3 ^ i*7)
	}
	var c rocev2.ICRC
	for _, k := range icrcKinds {
		headers := bytes.Clone(data[100 : 100+k.headers])
		switch k.name {
		case "IPv4", "IPv4 with options":
			headers[0] = 0x45
		case "IPv6":
			headers[0] = 0x60
		}
		for size := len(data); size >= rocev2.BTHLen; size-- {
			got, ok := k.sum(&c, headers, data[:size])
			book := slices.Concat(bytes.Repeat([]byte{0xff}, k.ones), headers, data[:size])
			for _, at := range append(k.masked, k.headers+4) {
				book[k.ones+at] = 0xff
			}
			switch k.name {
			case "IPv6":
				book[k.ones] |= 0x0f
			case "RoCEv1":
				book[k.ones] |= 0x0f
			case "native, global":
				book[8] |= 0x0f
			}
			if k.ones == 0 {
				book[0] |= 0xf0
			}
			if want := crc32.ChecksumIEEE(book); !ok || got != want {
				t.Fatalf("%s, %d bytes: 0x%08x, %v, want 0x%08x", k.name, size, got, ok, want)
			}
		}
	}
}

// BenchmarkICRC computes the ICRCs of packets of typical lengths: acknowledgements, Sends, and data
// at the two usual MTUs.
func BenchmarkREQ(b *testing.B) {
	data := make([]byte, rocev2.CMSize)
	for i := range data {
		data[i] = byte(i * 7)
	}
	var r rocev2.REQ
	b.ReportAllocs()
	for b.Loop() {
		if err := rocev2.Decode(data, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkICRC(b *testing.B) {
	data := make([]byte, 5000)
	data[0] = 0x45
	for _, size := range []int{16, 252, 260, 1036, 1040, 4108} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var c rocev2.ICRC
			b.SetBytes(int64(size))
			for b.Loop() {
				c.RoCEv2(data[:20], data[20:28], data[28:28+size])
			}
		})
	}
}

// TestVCRC checks the variant CRCs of native packets in the captures.
func TestVCRC(t *testing.T) {
	f, err := capture.Open("../testdata/captures/derived-ib-callback41.pcap.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for frame, err := range capture.All(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		end := len(frame.Data) - rocev2.VCRCLen
		if got, want := rocev2.VCRC(frame.Data[:end]), binary.LittleEndian.Uint16(frame.Data[end:]); got != want {
			t.Fatalf("frame %d: VCRC 0x%04x, want 0x%04x", frame.Number, got, want)
		}
	}
	if n != 296 {
		t.Errorf("%d packets", n)
	}
}

// seed adds the first packets of each kind of capture to a fuzz corpus.
func seed(f *testing.F, add func([]byte)) {
	kinds := map[byte]int{}
	eachPacket(f, func(_ string, l *link.Decoder, _ *capture.Frame) {
		if op := l.Transport[0]; kinds[op] < 3 {
			kinds[op]++
			add(bytes.Clone(l.Transport))
		}
	})
}

// FuzzPacket checks that every packet that is decoded completely is encoded to the same bytes.
func FuzzPacket(f *testing.F) {
	seed(f, func(b []byte) { f.Add(b, len(b)) })
	f.Fuzz(func(t *testing.T, data []byte, length int) {
		var p rocev2.Packet
		if p.Decode(data, length); p.DecodeFromBytes(data, gopacket.NilDecodeFeedback) != nil {
			return
		}
		if got := serialize(t, &p, gopacket.Payload(p.Payload)); !bytes.Equal(got, data) {
			t.Errorf("\n got %x\nwant %x", got, data)
		}
		gopacket.NewPacket(data, rocev2.LayerTypeBTH, gopacket.NoCopy).Layers()
	})
}

// FuzzMAD checks the same for management datagrams.
func FuzzMAD(f *testing.F) {
	eachPacket(f, func(_ string, l *link.Decoder, _ *capture.Frame) {
		if l.Transport[0] == 0x64 && len(l.Transport) > 24 {
			f.Add(bytes.Clone(l.Transport[20 : len(l.Transport)-4]))
		}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := gopacket.NewPacket(data, rocev2.LayerTypeMAD, gopacket.NoCopy)
		for _, layer := range p.Layers() {
			if s, ok := layer.(gopacket.SerializableLayer); ok && layer.LayerType() != gopacket.LayerTypePayload {
				if got := serialize(t, s); !bytes.HasPrefix(got, layer.LayerContents()) {
					t.Errorf("%v:\n got %x\nwant %x", layer.LayerType(), got, layer.LayerContents())
				}
			}
		}
	})
}

// FuzzHeaders checks the same for LRH and GRH with the bytes after them.
func FuzzHeaders(f *testing.F) {
	f.Add(make([]byte, 60))
	f.Fuzz(func(t *testing.T, data []byte) {
		gopacket.NewPacket(data, rocev2.LayerTypeLRH, gopacket.NoCopy).Layers()
		gopacket.NewPacket(data, rocev2.LayerTypeGRH, gopacket.NoCopy).Layers()
		rocev2.FixICRC(data)
	})
}
