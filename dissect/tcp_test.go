package dissect_test

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
)

// dissectFrames returns the transactions of frames as text.
func dissectFrames(frames []capture.Frame) (lines []string, summary *record.Summary) {
	d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
		lines = append(lines, describe(r))
		return nil
	}}, dissect.Options{})
	for i := range frames {
		d.Frame(&frames[i])
	}
	summary, _ = d.Finish()
	return lines, summary
}

func tcpPayload(f *capture.Frame) (payload []byte, headers int) {
	if len(f.Data) < 54 || f.Data[12] != 8 || f.Data[23] != 6 {
		return nil, 0
	}
	total := int(binary.BigEndian.Uint16(f.Data[16:]))
	headers = 34 + int(f.Data[46]>>4)*4
	return f.Data[headers : 14+total], headers
}

// withPayload returns a copy of a TCP frame with another sequence number and payload.
func withPayload(f *capture.Frame, headers int, seq uint32, payload []byte) capture.Frame {
	g := *f
	g.Data = append(slices.Clone(f.Data[:headers]), payload...)
	binary.BigEndian.PutUint16(g.Data[16:], uint16(len(g.Data)-14))
	binary.BigEndian.PutUint32(g.Data[38:], seq)
	binary.BigEndian.PutUint16(g.Data[50:], 0) // The adapter fills in the checksum.
	g.Length = len(g.Data)
	return g
}

// same compares two lists of sorted lines.
func same(t *testing.T, got, want []string) {
	t.Helper()
	got, want = slices.Clone(got), slices.Clone(want)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d transactions, want %d: %s", len(got), len(want), firstDifference(got, want))
	}
}

// TestStream: the transactions are the same if the segments of a TCP stream are split
// differently, repeated, overlapping, and out of order.
func TestStream(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"iwarp-nfs41.pcap.zst")
	want, _ := dissectFrames(frames)
	if len(want) != 317 {
		t.Fatalf("%d transactions", len(want))
	}
	random := rand.New(rand.NewSource(1))
	t.Run("cut anew and overlapping", func(t *testing.T) {
		var out []capture.Frame
		for i := range frames {
			payload, headers := tcpPayload(&frames[i])
			if len(payload) < 40 || string(payload[:3]) == "MPA" {
				out = append(out, frames[i])
				continue
			}
			seq := binary.BigEndian.Uint32(frames[i].Data[38:])
			for at := 0; at < len(payload); {
				n := min(1+random.Intn(700), len(payload)-at)
				from := max(0, at-random.Intn(40)) // Some bytes overlap with the previous segment.
				out = append(out, withPayload(&frames[i], headers, seq+uint32(from), payload[from:at+n]))
				at += n
			}
		}
		got, s := dissectFrames(out)
		same(t, got, want)
		if s.NotCaptured != 0 {
			t.Errorf("%d lost", s.NotCaptured)
		}
	})
	t.Run("out of order and repeated", func(t *testing.T) {
		out := slices.Clone(frames)
		for i := 40; i+4 < len(out); i += 4 { // Only neighbors of one direction are swapped, so that acknowledgements stay after the data that they acknowledge.
			a, _ := tcpPayload(&out[i])
			b, _ := tcpPayload(&out[i+1])
			if len(a) > 0 && len(b) > 0 && out[i].Data[29] == out[i+1].Data[29] {
				out[i], out[i+1] = out[i+1], out[i]
			}
			if len(a) > 0 {
				out = slices.Insert(out, i+3, out[i])
			}
		}
		for i := range out {
			out[i].Number = int64(i + 1)
		}
		got, s := dissectFrames(out)
		if len(got) != len(want) || s.NotCaptured != 0 {
			t.Errorf("%d transactions, want %d; %d lost", len(got), len(want), s.NotCaptured)
		}
	})
	t.Run("without the handshake", func(t *testing.T) {
		var out []capture.Frame
		for i := range frames {
			if payload, _ := tcpPayload(&frames[i]); len(payload) < 3 || string(payload[:3]) != "MPA" {
				out = append(out, frames[i])
			}
		}
		got, _ := dissectFrames(out)
		if len(got) != len(want) {
			t.Errorf("%d transactions, want %d", len(got), len(want))
		}
	})
	t.Run("from the middle", func(t *testing.T) {
		got, s := dissectFrames(frames[600:])
		if s.Transactions["complete"] < 200 || s.Transactions["no_reply"] != 0 || len(got) > s0(s) {
			t.Errorf("transactions %v", s.Transactions)
		}
	})
	t.Run("segments missing", func(t *testing.T) {
		for drop := 100; drop < 400; drop += 9 {
			got, s := dissectFrames(slices.Delete(slices.Clone(frames), drop, drop+1))
			if n := s.Transactions["complete"]; n < 315 || len(got) > 318 {
				t.Errorf("without frame %d: transactions %v, %d lost", drop, s.Transactions, s.NotCaptured)
			}
		}
	})
	t.Run("cut to a snapshot length", func(t *testing.T) {
		out := slices.Clone(frames)
		for i := range out {
			out[i].Data = out[i].Data[:min(len(out[i].Data), 160)]
		}
		_, s := dissectFrames(out)
		if s.Transactions["complete"] != 305 || s.Transactions["answered"] != 12 { // The status of 12 Replies is truncated.
			t.Errorf("transactions %v, want 305 complete and 12 answered", s.Transactions)
		}
	})
}

func s0(s *record.Summary) (n int) {
	for _, v := range s.Transactions {
		n += int(v)
	}
	return n
}

// TestMarkers: the transactions are the same if the streams have markers and CRCs (RFC 5044
// s.4.3, s.4.4). No recorded capture has them, so the test frames the streams again.
func TestMarkers(t *testing.T) {
	frames, _ := testkit.Frames(t, captures+"iwarp-nfs41.pcap.zst")
	want, _ := dissectFrames(frames)
	type stream struct {
		seq, next uint32 // in the new stream; in the original stream
		position  int
		rest      []byte // an incomplete FPDU of the original stream
	}
	streams := map[uint16]*stream{}
	var out []capture.Frame
	for i := range frames {
		payload, headers := tcpPayload(&frames[i])
		if headers == 0 {
			out = append(out, frames[i])
			continue
		}
		port := binary.BigEndian.Uint16(frames[i].Data[34:]) ^ binary.BigEndian.Uint16(frames[i].Data[36:])<<1
		seq := binary.BigEndian.Uint32(frames[i].Data[38:])
		if len(payload) >= 20 && string(payload[:3]) == "MPA" {
			framed := slices.Clone(payload)
			framed[16] |= 0xc0 // This requests markers and CRCs.
			streams[port] = &stream{seq: seq + uint32(len(payload)), next: seq + uint32(len(payload))}
			out = append(out, withPayload(&frames[i], headers, seq, framed))
			continue
		}
		s := streams[port]
		if s == nil || len(payload) == 0 || seq != s.next { // Data that was sent twice is left out.
			if len(payload) == 0 {
				g := withPayload(&frames[i], headers, 0, nil)
				g.Data[47] &^= 0x10 // Acknowledgements are removed, because their numbers are those of the original stream.
				if s != nil {
					binary.BigEndian.PutUint32(g.Data[38:], s.seq)
				}
				out = append(out, g)
			}
			continue
		}
		s.next += uint32(len(payload))
		s.rest = append(s.rest, payload...)
		var framed []byte
		for len(s.rest) >= 2 {
			size := (2+int(binary.BigEndian.Uint16(s.rest))+3)&^3 + 4
			if len(s.rest) < size {
				break
			}
			framed = append(framed, mark(s.rest[:size-4], &s.position)...)
			s.rest = s.rest[size:]
		}
		if len(framed) > 0 {
			g := withPayload(&frames[i], headers, s.seq, framed)
			g.Data[47] &^= 0x10
			s.seq += uint32(len(framed))
			out = append(out, g)
		}
	}
	got, s := dissectFrames(out)
	same(t, got, want)
	if s.ICRCBad != 0 || s.Findings["note"] != 1 || s.Findings["warning"] != 0 {
		t.Errorf("%d bad CRCs, findings %v", s.ICRCBad, s.Findings)
	}
}

// mark adds markers and a CRC to an FPDU that has no CRC.
func mark(fpdu []byte, position *int) []byte {
	var out []byte
	begin := 0
	put := func(b byte) {
		if *position == 0 {
			out = binary.BigEndian.AppendUint16(append(out, 0, 0), uint16(len(out)-begin))
			*position = 4
		}
		out = append(out, b)
		*position = (*position + 1) % 512
	}
	for _, b := range fpdu {
		put(b)
	}
	if *position == 0 { // A marker may precede the CRC, which covers it.
		out = binary.BigEndian.AppendUint16(append(out, 0, 0), uint16(len(out)))
		*position = 4
	}
	crc := crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli))
	for _, b := range binary.LittleEndian.AppendUint32(nil, crc) {
		put(b)
	}
	return out
}
