package capture

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// annotated returns a pcapng file with options of a section, an interface and a packet, and names of addresses before and after
// the packet.
func annotated(order binary.AppendByteOrder) []byte {
	option := func(b []byte, code uint16, value []byte) []byte {
		b = order.AppendUint16(order.AppendUint16(b, code), uint16(len(value)))
		return append(append(b, value...), make([]byte, -len(value)&3)...)
	}
	var file []byte
	block := func(kind uint32, body []byte) {
		size := uint32(len(body) + 12)
		file = order.AppendUint32(append(order.AppendUint32(order.AppendUint32(file, kind), size), body...), size)
	}
	names := func(name string) {
		b := option(nil, 1, append([]byte{192, 0, 2, 1}, name...))
		block(4, option(option(option(b, 0, nil), 2, []byte("resolver")), 0, nil))
	}
	section := order.AppendUint64(order.AppendUint16(order.AppendUint16(order.AppendUint32(nil, sectionMagic), 1), 0), 1<<64-1)
	block(blockSection, option(option(option(option(section, 1, []byte("why it was captured")), 2, []byte("a machine")), 4, []byte("dumpcap")), 0, nil))
	face := order.AppendUint32(order.AppendUint16(order.AppendUint16(nil, 1), 0), 96)
	face = option(option(option(face, 2, []byte("eth0")), 8, order.AppendUint64(nil, 1e9)), 10, order.AppendUint32(nil, 7))
	block(1, option(option(option(face, 11, []byte("\x00port 20049")), 9, []byte{9}), 0, nil))
	names("before")
	packet := order.AppendUint32(order.AppendUint32(order.AppendUint32(nil, 0), 0), 5)
	packet = append(order.AppendUint32(order.AppendUint32(packet, 5), 60), "bytes\x00\x00\x00"...)
	packet = option(option(option(packet, 1, []byte("look here")), 2, order.AppendUint32(nil, 2)), 2988, append(order.AppendUint32(nil, 32473), "own"...))
	block(6, option(packet, 0, nil))
	names("after")
	return file
}

// TestOptions: what a pcapng file says in addition to its packets is written as it was read, from both byte orders; a Writer adds the
// name of its program, and its own comment.
func TestOptions(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		source, err := NewFile("x", bytes.NewReader(annotated(order)))
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		if err := source.ReadBatch(t.Context(), &b); err != nil || len(b.Frames) != 1 {
			t.Fatalf("there are %d packets, want 1; error %v", len(b.Frames), err)
		}
		f := &b.Frames[0]
		var out bytes.Buffer
		w := NewWriter(&out)
		if err := w.Section("rdmadump", f.Section.Options); err != nil {
			t.Fatal(err)
		}
		if err := w.Packet(w.Interface(f.From), f, "of an RPC"); err != nil {
			t.Fatal(err)
		}
		source.ReadBatch(t.Context(), new(Batch)) // to the end
		all := f.Section.Names()
		if len(all) != 2 {
			t.Fatalf("there are %d blocks with names, want 2", len(all))
		}
		for _, body := range all {
			if err := w.Names(body); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		for what, want := range map[string]string{
			"comment of the section": "\x01\x00\x13\x00why it was captured\x00\x02\x00\x09\x00a machine\x00\x00\x00\x04\x00\x08\x00rdmadump\x00\x00\x00\x00",
			"interface":              "\x02\x00\x04\x00eth0\x08\x00\x08\x00\x00\xca\x9a\x3b\x00\x00\x00\x00\x0b\x00\x0b\x00\x00port 20049\x00\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00",
			"packet":                 "bytes\x00\x00\x00\x01\x00\x09\x00look here\x00\x00\x00\x02\x00\x04\x00\x02\x00\x00\x00\xac\x0b\x07\x00\xd9\x7e\x00\x00own\x00\x01\x00\x09\x00of an RPC\x00\x00\x00\x00\x00\x00\x00",
			"names":                  "\x04\x00\x00\x00\x30\x00\x00\x00\x01\x00\x0a\x00\xc0\x00\x02\x01before\x00\x00\x00\x00\x00\x00\x02\x00\x08\x00resolver\x00\x00\x00\x00",
			"names after the packet": "\x01\x00\x09\x00\xc0\x00\x02\x01after\x00\x00\x00\x00\x00\x00\x00",
		} {
			if !bytes.Contains(out.Bytes(), []byte(want)) {
				t.Errorf("from %s, the %s is not\n%x in\n%x", order, what, want, out.Bytes())
			}
		}
		source.Close()
	}
}
