package iwarp_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/iwarp"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

func TestMPA(t *testing.T) {
	request := hex.EncodeToString([]byte(iwarp.RequestKey))
	reply := hex.EncodeToString([]byte(iwarp.ReplyKey))
	for _, c := range []struct {
		name, wire string
		want       iwarp.MPA
	}{
		{"plain request", request + "40 01 0000", iwarp.MPA{CRC: true, Revision: 1, PrivateData: []byte{}, Length: 20}},
		{"markers, private data", request + "80 01 0003 616263", iwarp.MPA{Markers: true, Revision: 1, PrivateData: []byte("abc"), Length: 23}},
		{"enhanced reply", reply + "50 02 0006 4010 c008 7879", iwarp.MPA{Reply: true, CRC: true, Enhanced: true, Revision: 2, IRD: 0x4010, ORD: 0xc008, PrivateData: []byte("xy"), Length: 26}},
		{"rejected", reply + "2f 01 0000", iwarp.MPA{Reply: true, Reject: true, Reserved: 15, Revision: 1, PrivateData: []byte{}, Length: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := testkit.Unhex(t, c.wire)
			var m iwarp.MPA
			if err := m.Decode(append(wire, "more"...)); err != nil {
				t.Fatal(err)
			}
			private, want := m.PrivateData, c.want.PrivateData
			m.PrivateData, c.want.PrivateData = nil, nil
			if m.Length != c.want.Length || m.IRD != c.want.IRD || m.ORD != c.want.ORD || m.Reply != c.want.Reply || m.Markers != c.want.Markers ||
				m.CRC != c.want.CRC || m.Reject != c.want.Reject || m.Enhanced != c.want.Enhanced || m.Reserved != c.want.Reserved || !bytes.Equal(private, want) {
				t.Errorf("the MPA frame is decoded as %+v with private data %q; want %+v with %q", m, private, c.want, want)
			}
			m.PrivateData = private
			if got := m.Append(nil); !bytes.Equal(got, wire) {
				t.Errorf("\n got %x\nwant %x", got, wire)
			}
			for n := range wire {
				if err := m.Decode(wire[:n]); !errors.Is(err, iwarp.ErrTruncated) {
					t.Fatalf("%d bytes: error %v", n, err)
				}
			}
		})
	}
	var m iwarp.MPA
	for _, bad := range []string{request + "40 01 0201", request + "50 02 0002 0000", strings.Repeat("00", 20)} {
		if err := m.Decode(append(testkit.Unhex(t, bad), make([]byte, 600)...)); !errors.Is(err, iwarp.ErrMalformed) {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

func TestSegment(t *testing.T) {
	for _, c := range []struct {
		name, wire string
		opcode     iwarp.Opcode
		plausible  bool
	}{
		{"Write", "c1 40 0000abcd 0000000000001000 64617461", iwarp.Write, true},
		{"Read Response", "81 42 0000abcd 0000000000001000", iwarp.ReadResponse, true},
		{"Send", "41 43 00000000 00000000 00000001 00000000 64617461", iwarp.Send, true},
		{"Send with Invalidate", "41 44 0000abcd 00000000 00000001 00000000", iwarp.SendInvalidate, true},
		{"Send with SE and Invalidate", "41 46 0000abcd 00000000 00000001 00000000", iwarp.SendSEInvalidate, true},
		{"Read Request", "41 41 00000000 00000001 00000001 00000000 00000001 0000000000000002 00000003 00000004 0000000000000005", iwarp.ReadRequest, true},
		{"Terminate", "41 47 00000000 00000002 00000001 00000000 11000000", iwarp.Terminate, true},
		{"a Send to a wrong queue", "41 43 00000000 00000001 00000001 00000000", iwarp.Send, false},
		{"a Send with an STag", "41 43 00000001 00000000 00000001 00000000", iwarp.Send, false},
		{"a tagged Send", "c1 43 0000abcd 0000000000001000", iwarp.Send, false},
		{"reserved bits", "45 43 00000000 00000000 00000001 00000000", iwarp.Send, false},
		{"another DDP version", "42 43 00000000 00000000 00000001 00000000", iwarp.Send, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			wire := testkit.Unhex(t, c.wire)
			var s iwarp.Segment
			if err := s.Decode(wire); err != nil {
				t.Fatal(err)
			}
			if s.Opcode != c.opcode || s.Plausible() != c.plausible {
				t.Errorf("%v, plausible %t", s.Opcode, s.Plausible())
			}
			if got := s.Append(nil); !bytes.Equal(got, wire) {
				t.Errorf("\n got %x\nwant %x", got, wire)
			}
			if err := s.Decode(wire[:s.HeaderLength-1]); !errors.Is(err, iwarp.ErrTruncated) {
				t.Errorf("truncated: error %v", err)
			}
		})
	}
}

func TestReadRequest(t *testing.T) {
	wire := testkit.Unhex(t, "00000001 0000000000000002 00000003 00000004 0000000000000005")
	var r iwarp.ReadRequestHeader
	if err := r.Decode(wire); err != nil || r != (iwarp.ReadRequestHeader{SinkSTag: 1, SinkOffset: 2, Size: 3, SourceSTag: 4, SourceOffset: 5}) {
		t.Errorf("the Read request is decoded as %+v, error %v; want the values 1 to 5 in the order of the wire", r, err)
	}
	if got := r.Append(nil); !bytes.Equal(got, wire) {
		t.Errorf("encodes as %x", got)
	}
	if err := r.Decode(wire[:27]); !errors.Is(err, iwarp.ErrTruncated) {
		t.Errorf("truncated: error %v", err)
	}
}

func TestTerminate(t *testing.T) {
	for _, c := range []struct {
		name, wire, want string
		ddp, read        bool
		stag             uint32
		swapped          bool
	}{
		{
			"invalid STag of a Read", "01 00 e000 0030 41 41 00000000 00000001 00000001 00000000 00000001 0000000000000002 00000003 deadbe01 0000000000000005",
			"remote protection error: invalid STag", true, true, 0xdeadbe01, false,
		},
		{"invalid STag of a Write", "11 00 c000 0018 c1 40 deadbe02 0000123400005678", "DDP tagged buffer error: invalid STag", true, false, 0xdeadbe02, false},
		{"no headers", "20 02 0000", "MPA error: CRC", false, false, 0, false},
		{"unknown", "3f ff 0000", "layer 3 type 15 code 255", false, false, 0, false},
		{"truncated headers", "11 00 c000 0018 c1 40 dead", "DDP tagged buffer error: invalid STag", false, false, 0, false},
		{"as siw writes it", "21 02 0300 0590 01 43 00000000 00000000 00000001 00000b20", "DDP untagged buffer error: no buffer available", true, false, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h iwarp.TerminateHeader
			if err := h.Decode(testkit.Unhex(t, c.wire)); err != nil {
				t.Fatal(err)
			}
			stag := h.DDP.STag
			if h.HasRDMAP {
				stag = h.Read.SourceSTag
			}
			if h.String() != c.want || h.HasDDP != c.ddp || h.HasRDMAP != c.read || stag != c.stag || h.Swapped != c.swapped {
				t.Errorf("the Terminate header says %q (DDP header %t, RDMAP header %t, STag %#x, swapped %t); want %q (%t, %t, %#x, %t)", h.String(), h.HasDDP, h.HasRDMAP, stag, h.Swapped, c.want, c.ddp, c.read, c.stag, c.swapped)
			}
		})
	}
}

func TestCRC(t *testing.T) {
	fpdu := iwarp.AppendFPDU(nil, []byte("a ULPDU"))
	if len(fpdu) != iwarp.FPDULen(7) || len(fpdu)%4 != 0 || iwarp.CheckCRC(fpdu) != iwarp.CRCOk {
		t.Errorf("%x: %d bytes", fpdu, len(fpdu))
	}
	fpdu[3] ^= 1
	if iwarp.CheckCRC(fpdu) != iwarp.CRCBad {
		t.Error("a flipped bit goes unnoticed")
	}
	clear(fpdu[len(fpdu)-4:])
	if iwarp.CheckCRC(fpdu) != iwarp.CRCOff {
		t.Error("a zero CRC is not off")
	}
}

// FuzzMPA checks that every decoded MPA frame is encoded to the same bytes.
func FuzzMPA(f *testing.F) {
	f.Add(append([]byte(iwarp.RequestKey), 0x50, 2, 0, 4, 0x40, 1, 0, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m iwarp.MPA
		if m.Decode(data) == nil && !bytes.Equal(m.Append(nil), data[:m.Length]) {
			t.Errorf("\n got %x\nwant %x", m.Append(nil), data[:m.Length])
		}
	})
}

// FuzzSegment checks the same for segments and for the payloads of untagged segments.
func FuzzSegment(f *testing.F) {
	f.Add(testkit.Unhex(f, "41 47 00000000 00000002 00000001 00000000 11 00 c000 0018 c1 40 deadbe02 0000123400005678"))
	f.Add(testkit.Unhex(f, "c1 40 0000abcd 0000000000001000 64617461"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s iwarp.Segment
		if s.Decode(data) != nil {
			return
		}
		if got := s.Append(nil); !bytes.Equal(got, data) {
			t.Errorf("\n got %x\nwant %x", got, data)
		}
		var h iwarp.TerminateHeader
		if h.Decode(s.Payload) == nil {
			_ = h.String()
		}
		var r iwarp.ReadRequestHeader
		if r.Decode(s.Payload) == nil && !bytes.Equal(r.Append(nil), s.Payload[:iwarp.ReadRequestLen]) {
			t.Errorf("Read Request encodes as %x", r.Append(nil))
		}
	})
}
