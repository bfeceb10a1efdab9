package record

import (
	"reflect"
	"slices"
	"testing"
)

// TestPhaseEnds: each phase ends with the first or the last event of its kind within the latency.
func TestPhaseEnds(t *testing.T) {
	at := func(v ...Time) (ends [PhaseStalled]Opt[Time]) {
		for i, v := range v {
			if v != 0 {
				ends[i] = Some(v)
			}
		}
		return ends
	}
	for name, test := range map[string]struct {
		timeline []Event
		want     [PhaseStalled]Opt[Time]
	}{
		"nothing moves": {nil, at(0, 0, 0, 0, 100)},
		"two Reads, answered in the other order": {[]Event{
			{Event: EventRead, Time: 10},
			{Event: EventRead, Time: 11},
			{Event: EventReadDone, Time: 30},
			{Event: EventReadDone, Time: 20},
		}, at(10, 30, 0, 0, 100)},
		"Reads and Writes overlap": {[]Event{
			{Event: EventRead, Time: 10},
			{Event: EventWriteFirst, Time: 15},
			{Event: EventReadDone, Time: 20},
			{Event: EventWriteLast, Time: 40},
		}, at(10, 20, 15, 40, 100)},
		"the first packet of a Write is missing, and another Write ends after the Reply": {[]Event{
			{Event: EventWriteLast, Time: 40},
			{Event: EventWriteFirst, Time: 101},
			{Event: EventWriteLast, Time: 102},
		}, at(0, 0, 0, 40, 100)},
	} {
		if got := PhaseEnds(test.timeline, 100); got != test.want {
			t.Errorf("%s: the phases end at %v, want %v", name, got, test.want)
		}
	}
}

// TestTransfers: operations with different handles, offsets or kinds are different.
func TestTransfers(t *testing.T) {
	event := func(kind EventKind, handle Hex32, offset Hex64) Event {
		return Event{Event: kind, Handle: Some(handle), Offset: Some(offset)}
	}
	r := &Transaction{Timeline: []Event{
		0: event(EventRead, 1, 0),
		1: event(EventRead, 1, 4096),
		2: event(EventWriteFirst, 1, 0), // to the memory that is being read
		3: event(EventReadAgain, 1, 0),
		4: event(EventReadDone, 1, 4096),
		5: event(EventReadDone, 1, 0),
		6: event(EventWriteFirst, 2, 0), // began again: 9
		7: event(EventWriteLast, 3, 0),  // its first packet is not in the capture
		8: event(EventWriteLast, 1, 0),
		9: event(EventWriteFirst, 2, 0),
	}}
	var got [][2]int
	index := func(e *Event) int {
		return slices.IndexFunc(r.Timeline, func(x Event) bool { return e != nil && reflect.DeepEqual(x, *e) })
	}
	r.Timeline[9].Bytes = Some[int64](1) // so that no two events are equal
	for _, o := range r.Transfers() {
		if last := o.Last; o.IsWrite() != (last != nil && last.Event == EventWriteLast || last == nil && o.First.Event == EventWriteFirst) {
			t.Errorf("%v is not the kind of operation that it should be", o)
		}
		got = append(got, [2]int{index(o.First), index(o.Last)})
	}
	if want := [][2]int{{1, 4}, {0, 5}, {-1, 7}, {2, 8}, {9, -1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the operations have the events %v, want %v", got, want)
	}
}

// TestStalls: waits for credits, and after the Reply, are no stalls, and of others only the part before the Reply counts.
func TestStalls(t *testing.T) {
	r := &Transaction{Call: &Message{Time: 1000}, LatencyNS: Some[int64](500), Waits: []Wait{
		{Reason: CreditLimit, From: 500, To: 1000, NS: 500},
		{Reason: RetransmitTimeout, From: 1100, To: 1200, NS: 100},
		{Reason: HeadOfLine, From: 1450, To: 1600, NS: 150},
		{Reason: RetransmitGap, From: 1500, To: 1700, NS: 200},
	}}
	got := map[WaitReason]int64{}
	for w, ns := range r.Stalls() {
		got[w.Reason] = ns
	}
	if want := map[WaitReason]int64{RetransmitTimeout: 100, HeadOfLine: 50}; !reflect.DeepEqual(got, want) {
		t.Errorf("the stalls are %v, want %v", got, want)
	}
	for range r.Stalls() { // The caller may stop.
		break
	}
}

// TestPacketRef: the number of a packet is a different packet at each capture point.
func TestPacketRef(t *testing.T) {
	client, server := "client", "server"
	e := &Event{Packet: 7, Point: &client, LastPacket: Some[int64](9), LastPoint: &server}
	if first, last := e.First(), e.Last(); first != (PacketRef{7, "client"}) || last != (PacketRef{9, "server"}) {
		t.Errorf("the packets of the event are %v and %v", first, last)
	}
	if last := (&Event{Packet: 7, Point: &client}).Last(); last != (PacketRef{7, "client"}) {
		t.Errorf("the last packet of an event with one packet is %v", last)
	}
	if first := (&Wait{Packets: []int64{3, 4}, Points: []string{"server", "client"}}).First(); first != (PacketRef{3, "server"}) {
		t.Errorf("the first packet of the wait is %v", first)
	}
	if (&Wait{}).First().Known() {
		t.Error("a wait without packets has one")
	}
	p := &Packet{Number: 7, Path: &Path{Point: "client", Seen: []Sighting{{Point: "client", Packet: 7}, {Point: "server", Packet: 9, Time: 5}}}}
	for ref, want := range map[PacketRef]bool{{7, "client"}: true, {9, "server"}: true, {7, "server"}: false, {9, "client"}: false, {7, ""}: false} {
		if p.Is(ref) != want {
			t.Errorf("%v names the packet: %v, want %v", ref, !want, want)
		}
	}
	if alone := (&Packet{Number: 7}); !alone.Is(PacketRef{Packet: 7}) || alone.Is(PacketRef{7, "client"}) || alone.Is(PacketRef{}) {
		t.Error("a packet of the only point has a point")
	}
}

// TestWithin: the part of a stall that is inside the latency ends with the Reply, and a stall before the Call has none.
func TestWithin(t *testing.T) {
	const ms = int64(1e6)
	r := Transaction{Call: &Message{Time: 1000}, LatencyNS: Some(10 * ms), Waits: []Wait{
		{From: Time(1000 + 2*ms), NS: 3 * ms, Reason: RetransmitNak},
		{From: Time(1000 + 4*ms), NS: 500 * ms, Reason: RetransmitTimeout},
		{From: 1, NS: 5 * ms, Reason: CreditLimit},
	}}
	r.FillWaits()
	for i, want := range []int64{3 * ms, 6 * ms, 0} {
		if got := r.Waits[i].WithinNS; got != Some(want) {
			t.Errorf("wait %d: %v ns within the latency, want %d", i, got, want)
		}
	}
	r.LatencyNS = Opt[int64]{}
	if r.FillWaits(); r.Waits[0].WithinNS.Known() {
		t.Errorf("without a latency: %v", r.Waits[0].WithinNS)
	}
}
