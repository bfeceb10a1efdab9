package path

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect/internal/order"
	"github.com/rdmadump/rdmadump/dissect/record"
)

// stamp is a packet at a time in microseconds.
func stamp(us int64) record.Stamp {
	return record.Stamp{Time: record.Time(1e9 + us*1000), Packet: us + 1}
}

// TestRoundTrips: only a request that was captured once, and a response with exactly its sequence number, show a round trip.
// Sequence numbers wrap.
func TestRoundTrips(t *testing.T) {
	var w Way
	if w.Trips().Record().Known() || w.Trips().Between(0, 1<<62).Known() {
		t.Error("a way without packets has round trips")
	}
	if ns, measured := w.Answered(0, stamp(1)); ns != 0 || measured {
		t.Errorf("without a request, an answer shows a round trip of %d ns", ns)
	}
	sent := func(seq uint32, us int64) { w.Sent(order.PSNs, seq, stamp(us).Time) }
	answered := func(seq uint32, us, want int64) {
		t.Helper()
		if ns, measured := w.Answered(seq, stamp(us)); ns != want*1000 || measured != (want > 0) {
			t.Errorf("the answer to %d after %d us shows a round trip of %d ns (%t), want %d us", seq, us, ns, measured, want)
		}
	}
	sent(0xfffffe, 0)
	sent(0xffffff, 10)
	sent(0, 20)
	answered(0xfffffe, 100, 100)
	answered(0, 150, 130) // 0xffffff was acknowledged with it
	answered(0xffffff, 160, 0)
	sent(1, 200)
	w.SentAgain(1)
	answered(1, 300, 0)
	sent(2, 400)
	answered(1, 450, 0) // an earlier one
	answered(2, 1400, 1000)
	r := w.Trips().Record().Or(record.RoundTrips{})
	if r.Count != 3 || r.MinNS != 100_000 || r.MaxNS != 1_000_000 || r.MaxPacket != 1401 || r.P50NS < 130_000 || r.P50NS > 146_000 || r.P99NS != 1_000_000 {
		t.Errorf("the round trips are %+v", r)
	}
	recent, known := w.Trips().Between(stamp(120).Time, stamp(2000).Time).Get()
	if want := (record.RecentTrips{Count: 2, MinNS: 130_000, MaxNS: 1_000_000, LastBeforeEndNS: 600_000}); recent != want || !known {
		t.Errorf("the latest round trips are %+v, want %+v", recent, want)
	}
	for seq := range uint32(100) { // more requests than are kept
		sent(10+seq, 3000+int64(seq))
	}
	answered(10, 4000, 0)
	answered(93, 4000, 0)
	answered(94, 4000, 916) // the oldest of the 16 that are kept
	w.SentAgain(108)
	answered(107, 4000, 903)
	answered(108, 4000, 0)
	answered(109, 4000, 901)
	for i := range int64(200) {
		sent(200+uint32(i), 5000+10*i)
		answered(200+uint32(i), 5005+10*i, 5)
	}
	if got := w.Trips().Between(0, 1<<62).Or(record.RecentTrips{}); got.Count != mostRecent || got.MaxNS != 5000 {
		t.Errorf("of many round trips, %+v are kept", got)
	}
}

// TestBuckets: a time is not longer than the end of its bucket, which is at most an eighth longer.
func TestBuckets(t *testing.T) {
	for ns := int64(1); ns < 1<<34; ns = ns*9/8 + 1 {
		if end := below(bucketOf(ns)); end < ns || end > ns+ns/8 {
			t.Errorf("the bucket of %d ends at %d", ns, end)
		}
	}
}

// clocked is a sender whose clock ticks once in a number of microseconds, and which the capture sees.
type clocked struct {
	*testing.T
	way  Way
	tick int64
	id   uint16
}

// segment captures a segment that was sent at a time and took a time, in microseconds. If trip is set, it ends a round trip.
func (c *clocked) segment(sent, took, trip int64) record.Stamp {
	at := stamp(sent + took)
	c.way.See(at, uint32(0xfffffff0+sent/c.tick), c.id) // the clock wraps
	c.id++
	if trip > 0 {
		c.way.Clock().Trip(trip * 1000)
	}
	return at
}

// TestWayBack: the bound of the way back holds, and there is none if ticks are not milliseconds, if a segment may be missing,
// if the clock was not compared before, and for another segment.
func TestWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		tick  int64
		skip  uint16 // identifications before the last segment
		late  bool   // the proof needs segments that came before the gap
		known bool
	}{
		"milliseconds": {tick: 1000, known: true}, "ten milliseconds": {tick: 10_000}, "microseconds": {tick: 1},
		"a lost segment": {tick: 1000, skip: 1}, "a lost segment before": {tick: 1000, skip: 1, late: true, known: true},
	} {
		s := &clocked{T: t, tick: c.tick, id: 0xfffe}
		for i := range int64(1000) {
			s.segment(i*1000, 200, 400)
		}
		s.id += c.skip
		if c.late {
			for i := range int64(300) {
				s.segment(1_100_000+i*1000, 200, 0)
			}
		}
		const sent, took = 1_500_000, 30_000
		at := s.segment(sent, took, 0)
		ns, known := s.way.Clock().WayBack(at, stamp(1_450_000-250_000*int64(c.skip)+300_000*map[bool]int64{true: 1}[c.late]).Time)
		if known != c.known {
			t.Errorf("%s: a bound is known: %t, want %t", name, known, c.known)
		}
		// A round trip of 400 us ended with segments that took 200 us. Both clocks have a step of a millisecond, and may differ by another one.
		if want := int64(took+200)*1000 + 2e6; known && ns != want {
			t.Errorf("%s: the way back took %d ns at most, want %d, and %d us in truth", name, ns, want, took)
		}
		if _, known := s.way.Clock().WayBack(stamp(sent), 0); known {
			t.Errorf("%s: a bound is known for a segment that is not the current one", name)
		}
	}
	for tick, want := range map[int64]bool{1400: true, 1600: false, 700: true, 650: false} { // a tick in microseconds, and whether it may be a millisecond
		s := &clocked{T: t, tick: tick}
		var at record.Stamp
		for i := range int64(1000) {
			at = s.segment(i*1000, 200, 400)
		}
		if _, known := s.way.Clock().WayBack(at, stamp(10_000).Time); known != want {
			t.Errorf("with ticks of %d us, a bound is known: %t", tick, known)
		}
	}
	s := &clocked{T: t, tick: 1000}
	if at := s.segment(0, 10, 20); true {
		if _, known := s.way.Clock().WayBack(at, 0); known {
			t.Error("one segment bounds its own way")
		}
	}
	odd := &clocked{T: t, tick: 1000}
	var at record.Stamp
	for i := range int64(1000) {
		odd.id += uint16(i%5) * 7 // a counter of all connections
		at = odd.segment(i*1000, 200, 400)
	}
	if _, known := odd.way.Clock().WayBack(at, at.Time+1); known {
		t.Error("identifications that are not counted by connection show whether a segment is missing")
	}
}

// TestCompared: the clock was compared in the last ten seconds, and the shortest way counts.
func TestCompared(t *testing.T) {
	for _, c := range []struct {
		name  string
		trips [][2]int64 // seconds, and the round trip in microseconds that ends then
		last  int64      // the segment whose way is bounded, in seconds
		want  int64      // in microseconds, without the steps of the clocks; 0 if no bound is known
	}{
		{"in the same second", [][2]int64{{2, 400}}, 2, 400},
		{"nine seconds before", [][2]int64{{2, 400}}, 11, 400},
		{"ten seconds before", [][2]int64{{2, 400}}, 12, 0},
		{"the shortest of one second", [][2]int64{{2, 500}, {2, 400}, {2, 600}}, 3, 400},
		{"the shortest of several", [][2]int64{{2, 500}, {3, 400}, {4, 600}}, 5, 400},
		{"the shortest that is not too old", [][2]int64{{2, 400}, {4, 600}, {5, 500}}, 12, 500},
		{"another one in its place", [][2]int64{{2, 400}, {12, 600}}, 13, 600},
	} {
		s := &clocked{T: t, tick: 1000}
		s.segment(0, 0, 0)
		for _, trip := range c.trips {
			s.segment(trip[0]*1e6, 0, trip[1])
		}
		for range 10 { // many identifications in order
			s.segment(c.last*1e6, 0, 0)
		}
		at := s.segment(c.last*1e6, 0, 0)
		if ns, known := s.way.Clock().WayBack(at, 1); known != (c.want > 0) || known && ns != c.want*1000+2e6 {
			t.Errorf("%s: the way back took %d ns at most (%t), want %d us", c.name, ns, known, c.want)
		}
	}
}

// TestSince: what is known of the frames that paused links between two counts: whose ports sent them, and for how long.
func TestSince(t *testing.T) {
	before := PauseCounts{10, [2]int64{4, 3}, [2]int64{100, 1000}}
	for _, c := range []struct {
		now    PauseCounts
		frames int64
		port   record.PausePort
		ns     record.Bounds
	}{
		{PauseCounts{10, [2]int64{4, 3}, [2]int64{100, 1000}}, 0, "", record.Bounds{}},
		{PauseCounts{10, [2]int64{4, 3}, [2]int64{100, 1007}}, 0, "", record.Bounds{Max: 7}},
		{PauseCounts{12, [2]int64{6, 3}, [2]int64{102, 1000}}, 2, record.PausedByClient, record.Bounds{Min: 2}},
		{PauseCounts{12, [2]int64{4, 5}, [2]int64{102, 1007}}, 2, record.PausedByServer, record.Bounds{Min: 2, Max: 7}},
		{PauseCounts{12, [2]int64{4, 3}, [2]int64{102, 1007}}, 2, record.PausedByOther, record.Bounds{Min: 2, Max: 7}},
		{PauseCounts{12, [2]int64{5, 4}, [2]int64{102, 1007}}, 2, record.PausedBySeveral, record.Bounds{Min: 2, Max: 7}},
		{PauseCounts{12, [2]int64{5, 3}, [2]int64{102, 1007}}, 2, record.PausedBySeveral, record.Bounds{Min: 2, Max: 7}},
	} {
		frames, port, ns := c.now.since(&before)
		if frames != c.frames || port.Or("") != c.port || ns.Or(record.Bounds{}) != c.ns || ns.Known() != (c.ns.Max > 0 || frames > 0) {
			t.Errorf("%v: %d frames of %v, %v", c.now, frames, port, ns)
		}
	}
	if list, ns := new(Pauses).Summary(1); list == nil || len(list) != 0 || ns.Known() {
		t.Errorf("without frames: %v, %v", list, ns)
	}
	var p Pauses
	for i, host := range []string{"10.0.0.3", "10.0.0.2", "10.0.0.1", "10.0.0.1"} {
		p.Take(&Pause{Enabled: 1, Quanta: [8]uint16{1000}}, netip.MustParseAddr(host), stamp(int64(100*i)).Time)
	}
	p.Take(&Pause{Enabled: 1, Quanta: [8]uint16{1000}}, netip.Addr{}, stamp(400).Time)
	list, ns := p.Summary(stamp(1000).Time)
	got := ""
	for _, host := range list {
		got += fmt.Sprintf("%s %d, ", host.Address.Or("none"), host.Frames)
	}
	if want := "10.0.0.1 2, none 1, 10.0.0.2 1, 10.0.0.3 1, "; got != want || ns != record.Some(record.Bounds{Min: 5 * 1280, Max: 5 * 51200}) {
		t.Errorf("pauses of %q for %v, want %q", got, ns, want)
	}
}

// TestPosition: two late packets show that the capture was not taken at their sender, and round trips which side is nearer.
func TestPosition(t *testing.T) {
	trips := func(us int64) *RoundTrips {
		var w Way
		for i := range int64(fewTrips) {
			w.Sent(order.PSNs, uint32(i), stamp(i*1000).Time)
			w.Answered(uint32(i), stamp(i*1000+us))
		}
		return w.Trips()
	}
	if got := Nearer(trips(300), trips(50)); got != record.Some(record.Client) {
		t.Errorf("nearer is %v, want the client", got)
	}
	if got := Nearer(trips(100), trips(50)); got.Known() {
		t.Errorf("nearer is %v, and round trips are similar", got)
	}
	w := Ways{FromClient: new(Way), FromServer: new(Way), Pauses: PauseCounts{frames: 5}, PausesBefore: 2}
	w.FromServer.Late++
	if got := w.Record(); len(got.Point.NotAt) != 0 || got.Late.FromServer != 1 || got.Congestion.PauseFrames != 3 || got.Congestion.ECN != record.ECNOff {
		t.Errorf("one late packet: %+v", got)
	}
	before := w.Counts()
	w.FromServer.Late++
	w.FromServer.Packet(26<<2|3, true, false)
	w.FromServer.Packet(48<<2, false, true)
	w.Pauses = PauseCounts{6, [2]int64{0, 1}, [2]int64{10, 400}}
	if got := w.Record(); len(got.Point.NotAt) != 1 || got.Point.NotAt[0] != record.Server || got.Congestion.ECN != record.ECNPartly || len(got.Congestion.DSCP) != 1 || got.Congestion.DSCP[0] != 26 {
		t.Errorf("two late packets, and a marked one: %+v", got)
	}
	got, known := w.Meanwhile(&before, w.FromClient, 0, 1<<62).Get()
	if want := (record.Meanwhile{CEToClient: 1, CNPFromServer: 1, Pauses: 1, PausePort: record.Some(record.PausedByServer), PausedNS: record.Some(record.Bounds{Min: 10, Max: 400}), ECN: record.ECNPartly}); got != want || !known || !got.Congested() {
		t.Errorf("meanwhile %+v, want %+v", got, want)
	}
	if w.Meanwhile(new(Counts), w.FromClient, 0, 1).Known() {
		t.Error("what happened is known, although nothing was counted before")
	}
}

// TestPauses: the time for which links were paused has the bounds of fast and slow links; pauses that overlap count once, and a frame
// with a time of 0 ends them.
func TestPauses(t *testing.T) {
	const us = int64(1000)
	host, port, other := netip.MustParseAddr("10.0.0.1"), [6]byte{1}, [6]byte{2}
	frame := func(port [6]byte, priority int, quanta uint16) *Pause {
		f := &Pause{Port: port, Enabled: 1 << priority}
		f.Quanta[priority] = quanta
		return f
	}
	type sent struct {
		at    int64 // in microseconds
		frame *Pause
		host  netip.Addr
	}
	var none netip.Addr
	for _, c := range []struct {
		name        string
		sent        []sent
		frames, own int64
		least, most int64 // in nanoseconds
	}{
		{"one", []sent{{10, frame(port, 3, 1000), host}}, 1, 1, 1280, 51200},
		{"one that is not over", []sent{{990, frame(port, 3, 1000), host}}, 1, 1, 1280, 10 * us},
		{"two that overlap", []sent{{10, frame(port, 3, 1000), host}, {20, frame(port, 3, 1000), host}}, 2, 2, 2560, 61200},
		{"two classes at once", []sent{{10, frame(port, 3, 1000), host}, {10, frame(port, 5, 2000), host}}, 2, 2, 2560, 102400},
		{"two ports", []sent{{10, frame(port, 3, 1000), host}, {20, frame(other, 3, 1000), none}}, 2, 1, 2560, 61200},
		{"an end", []sent{{10, frame(port, 3, 1000), host}, {30, frame(port, 3, 0), host}}, 1, 1, 1280, 20 * us},
		{"an end of another class", []sent{{10, frame(port, 3, 1000), host}, {30, frame(port, 5, 0), host}}, 1, 1, 1280, 51200},
		{"an end of another port", []sent{{10, frame(port, 3, 1000), host}, {30, frame(other, 3, 0), none}}, 1, 1, 1280, 51200},
		{"a frame of an earlier time", []sent{{10, frame(port, 3, 1000), host}, {5, frame(port, 5, 1000), host}}, 2, 2, 1280, 51200},
		{"before", []sent{{-40, frame(port, 3, 1000), host}}, 0, 0, 0, 11200},
	} {
		var p Pauses
		var before PauseCounts
		begun := false
		begin := func() {
			if !begun {
				before, begun = p.Counts(host, none, stamp(1000).Time), true
			}
		}
		for _, s := range c.sent {
			if s.at >= 0 {
				begin()
			}
			p.Take(s.frame, s.host, stamp(1000+s.at).Time)
		}
		begin()
		after := p.Counts(host, netip.MustParseAddr("10.0.0.9"), stamp(2000).Time)
		frames, port, ns := after.since(&before)
		want := record.PausedBySeveral
		if c.own == c.frames {
			want = record.PausedByClient
		}
		if b := ns.Or(record.Bounds{}); frames != c.frames || b.Max != c.most || b.Min != c.least || port != record.SomeIf(want, c.frames > 0) {
			t.Errorf("%s: %d frames of %v, %+v, want %d, %d to %d", c.name, frames, port, b, c.frames, c.least, c.most)
		}
	}
	var p Pauses
	for i := range 10 * maxPaused {
		p.Take(frame([6]byte{byte(i), byte(i >> 8)}, 3, 0xffff), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), stamp(1).Time)
	}
	if len(p.until) > maxPaused || len(p.of) > maxPaused || p.Frames != 10*maxPaused {
		t.Errorf("%d ports, %d hosts, %d frames", len(p.until), len(p.of), p.Frames)
	}
}

// TestTimestamp: the option is found behind others, and not behind the end of the list or an option of a wrong length.
func TestTimestamp(t *testing.T) {
	at := func(before ...byte) []byte { return append(before, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9) }
	for _, c := range []struct {
		list []byte
		want uint32 // 0 if there is none
	}{
		{nil, 0},
		{at(), 7},
		{at(1), 7},
		{at(1, 1), 7},
		{at(5, 10, 0, 0, 0, 3, 0, 0, 0, 4), 7},
		{at(3, 2), 7},
		{at(0), 0},
		{at(3, 1), 0},
		{at(3, 0), 0},
		{at(3, 13), 0},
		{[]byte{8, 9, 0, 0, 0, 7, 0, 0, 0}, 0},
		{[]byte{8, 10, 0, 0, 0, 7, 0, 0, 0}, 0},
		{[]byte{8}, 0},
		{[]byte{0}, 0},
	} {
		if value, known := Timestamp(c.list); value != c.want || known != (c.want != 0) {
			t.Errorf("% x: the timestamp is %d (%t), want %d", c.list, value, known, c.want)
		}
	}
}

// FuzzTimestamp: options of a TCP header that end anywhere, or have any length, have a timestamp or none.
func FuzzTimestamp(f *testing.F) {
	f.Add([]byte{1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9})
	f.Add([]byte{8, 10, 0, 0})
	f.Add([]byte{5, 0, 8, 10})
	f.Fuzz(func(t *testing.T, options []byte) {
		if value, known := Timestamp(options); known {
			at := -1
			for i := range options[:max(0, len(options)-9)] {
				if options[i] == 8 && options[i+1] == 10 && binary.BigEndian.Uint32(options[i+2:]) == value {
					at = i
				}
			}
			if at < 0 {
				t.Errorf("%x has no timestamp of %d", options, value)
			}
		}
	})
}

// TestWays: what a connection's packets show, and what they show during an RPC.
func TestWays(t *testing.T) {
	w := Ways{FromClient: new(Way), FromServer: new(Way)}
	const capable, marked = 0x68 | 2, 0x68 | 3
	if got := w.Record().Congestion.ECN; got != record.ECNOff {
		t.Errorf("without packets, ECN is %s", got)
	}
	w.FromClient.Packet(capable, false, false)
	w.FromClient.Packet(marked, true, false)
	if got := w.Record().Congestion.ECN; got != record.ECNPartly {
		t.Errorf("with packets of one side, ECN is %s", got)
	}
	w.FromServer.Packet(capable, false, false)
	w.FromServer.Packet(0xc0, false, true)
	w.FromServer.Packet(marked, true, false)
	since := w.Counts()
	for range 2 {
		w.FromClient.Packet(marked, true, false)
	}
	for range 3 {
		w.FromServer.Packet(marked, true, false)
	}
	for range 4 {
		w.FromClient.Packet(0xc0, false, true)
	}
	for range 5 {
		w.FromServer.Packet(0xc0, false, true)
	}
	for i, us := range []int64{100, 1_500_000, 2_500_000, 3_500_000} { // more than a second before, within it, during, and after
		w.FromClient.Sent(order.PSNs, uint32(i), stamp(us-50).Time)
		w.FromClient.Answered(uint32(i), stamp(us))
	}
	m := w.Meanwhile(&since, w.FromClient, stamp(2_000_000).Time, stamp(3_000_000).Time).Or(record.Meanwhile{})
	if m.CEToServer != 2 || m.CEToClient != 3 || m.CNPFromClient != 4 || m.CNPFromServer != 5 || m.ECN != record.ECNOn || m.RoundTrips.Or(record.RecentTrips{}).Count != 2 {
		t.Errorf("during the RPC there were %+v", m)
	}
	if w.Meanwhile(new(Counts), w.FromClient, 0, 1).Known() {
		t.Error("signals that were not counted are known")
	}
	w.FromServer.Late++
	if p := w.Record(); len(p.Point.NotAt) != 0 {
		t.Errorf("a packet that came late shows that the capture is not at %v", p.Point.NotAt)
	}
	w.FromServer.Late++
	w.FromServer.Repeated++
	w.FromClient.Again, w.FromClient.Bursts, w.FromServer.Bursts = 7, 2, 1
	p := w.Record()
	if p.Late != (record.FromPair{FromServer: 2}) || p.Repeated != (record.FromPair{FromServer: 1}) || p.RetransmittedFrom != (record.FromPair{FromClient: 7}) || p.Bursts != 3 {
		t.Errorf("the packets are %+v", p)
	}
	c := p.Congestion
	if c.CEToServer != 3 || c.CEToClient != 4 || c.CNPFromClient != 4 || c.CNPFromServer != 6 || !slices.Equal(c.DSCP, []int{0x68 >> 2}) {
		t.Errorf("the congestion is %+v", c)
	}
	if !slices.Equal(p.Point.NotAt, []record.End{record.Server}) {
		t.Errorf("packets that came late show that the capture is not at %v", p.Point.NotAt)
	}
	w.FromServer.See(stamp(0), 1, 1)
	if w.FromClient.Bytes() != tripsCost || w.FromServer.Bytes() != clockCost || new(Way).Bytes() != 0 {
		t.Errorf("%d and %d bytes are charged", w.FromClient.Bytes(), w.FromServer.Bytes())
	}
}
