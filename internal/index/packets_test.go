package index

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

// TestPacketsSpace: a list of packets reads back what was added, needs few bytes for each packet, keeps to the limit of the
// index and uses the temporary file beyond it, and frees its memory.
func TestPacketsSpace(t *testing.T) {
	x := New(Options{Memory: 1 << 18, Folder: t.TempDir()})
	defer x.Close()
	p := x.Packets()
	packet := func(i int64) *record.Packet {
		r := &record.Packet{
			Number: i + 1, Time: record.Time(1_795_000_000e9 + i*1700), Length: 1090, Src: netip.MustParseAddr("192.168.77.2"), Dst: netip.MustParseAddr("fd00::1%eth0"),
			Transport: "RoCEv2", Connection: record.SomeIf(int(i%4), i%5 > 0), Transaction: record.Some(i / 9), ICRC: record.Good,
			Summary: fmt.Appendf(nil, "RC RDMA WRITE Middle QPN 0x%06x PSN %d", 17+i%4, 9068690+i),
		}
		if i%7 == 0 {
			r.Marks, r.Path, r.SrcLID = record.Retransmitted, &record.Path{Point: "client"}, 3
		}
		return r
	}
	const count = 40_000
	for i := range int64(count) {
		p.add(packet(i))
	}
	s := x.State()
	if used := x.space.used + s.Spilled; used > 25*count || s.Spilled == 0 || x.space.used > 1<<18 || s.SpillErr != nil {
		t.Errorf("%d packets take %d bytes, of which %d are in a file: %v", count, used, s.Spilled, s.SpillErr)
	}
	r := x.Reader()
	defer r.Close()
	for i := int64(0); i < count; i += 997 {
		got, err := r.Packet(p, i)
		if want := packet(i); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("packet %d is %+v, want %+v: %v", i, got, want, err)
		}
	}
	if got, err := r.Packet(p, count); got != nil || err != nil {
		t.Errorf("the packet after the last is %+v: %v", got, err)
	}
	if p.Free(); x.space.used != 0 {
		t.Errorf("after Free, %d bytes are used", x.space.used)
	}
	if got, err := r.Packet(x.Packets(), 0); got != nil || err != nil {
		t.Errorf("the first packet of an empty list is %+v: %v", got, err)
	}
}
