package points

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/rdmadump/rdmadump/capture"
	"github.com/rdmadump/rdmadump/synth"
)

// exchanges are RPCs over TCP or UDP, in pairs of a Call and its Reply.
func exchanges(n int, udp bool) []*synth.Frame {
	w := synth.New()
	c := w.IWARP(synth.Options{Client: synth.End{Port: 900}, Server: synth.End{Port: 2049}})
	if !udp {
		c.Open()
	}
	for xid := range uint32(n) {
		call := synth.Call{XID: xid, Procedure: 1, Cred: synth.AuthSys(1, 2), Args: synth.XDR{}.Opaque(bytes.Repeat([]byte("x"), 300))}.Message()
		reply := synth.Reply{XID: xid, Results: synth.XDR{}.Word(0).Opaque(bytes.Repeat([]byte("y"), 80))}.Message()
		if udp {
			c.Client.Datagram(call)
			w.Advance(3 * time.Millisecond)
			c.Server.Datagram(reply)
		} else {
			c.Client.Records(call)
			w.Advance(3 * time.Millisecond)
			c.Server.Records(reply)
		}
		w.Advance(20 * time.Millisecond)
	}
	return w.Frames
}

// TestRPC: datagrams and segments of RPC that were lost, corrupted or duplicated between the points are counted.
// Lost ones are sent once more.
func TestRPC(t *testing.T) {
	for _, udp := range []bool{true, false} {
		var client, server []capture.Frame
		var lost, corrupted, duplicated int64
		side := synth.Frame{}
		for i, f := range exchanges(200, udp) {
			if i == 0 {
				side.From = f.From
			}
			from, to := &client, &server
			if f.From != side.From {
				from, to = to, from
			}
			frame := capture.Frame{Time: f.Time, LinkType: 1, Length: f.Length, Data: f.Data}
			*from = append(*from, frame)
			arrive := func(delay int64) {
				there := frame
				there.Time += delay
				*to = append(*to, there)
			}
			switch again := frame; {
			case i > 20 && i%13 == 0 || i > 20 && i%29 == 0:
				if i%13 == 0 {
					lost++
				} else {
					corrupted++
					good := frame.Data
					frame.Data = slices.Clone(good)
					frame.Data[len(good)-5] ^= 0x10
					arrive(150e3)
					frame.Data = good
				}
				again.Time += 2e6 // before its receiver answers
				*from = append(*from, again)
				frame = again
				arrive(200e3)
			case i > 20 && i%31 == 0:
				duplicated++
				arrive(150e3)
				arrive(400e3)
			default:
				arrive(100e3 + int64(i%7)*10e3)
			}
		}
		byTime := func(a, b capture.Frame) int { return cmp.Compare(a.Time, b.Time) }
		slices.SortStableFunc(client, byTime)
		slices.SortStableFunc(server, byTime)
		for i := range server {
			server[i].Time += 5e9 // its clock is ahead
		}
		r := run(t, write(t, "client.pcap", client), write(t, "server.pcap", server))
		if lost == 0 || corrupted == 0 || duplicated == 0 {
			t.Fatal(lost, corrupted, duplicated)
		}
		r.want(t, lost, corrupted, duplicated)
		if len(r.Points) != 2 || r.Points[1].Offset < 5e9-60e3 || r.Points[1].Offset > 5e9+60e3 {
			t.Errorf("points %+v; want a clock that is 5 s ahead", r.Points)
		}
		for _, f := range r.frames {
			if v := f.Seen; v != nil && v.Fate == capture.FateLost && v.ArrivedNumber != 0 {
				t.Errorf("packet %d was lost and arrived", f.Number)
			}
		}
	}
}
