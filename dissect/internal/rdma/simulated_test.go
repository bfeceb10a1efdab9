package rdma_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rdmadump/rdmadump/dissect"
	"github.com/rdmadump/rdmadump/dissect/record"
	"github.com/rdmadump/rdmadump/internal/testkit"
	"github.com/rdmadump/rdmadump/synth"
)

// network is a simulated network between a client and a server. Each way keeps packets in order.
type network struct {
	jitter   float64 // mean of a further delay of each packet, in nanoseconds
	stops    float64 // mean time between two times in which a way stops; 0 for none
	longest  float64 // of these times
	oneWay   bool    // only the way back stops
	random   *rand.Rand
	until    [2]int64 // by way: it stops until then
	next     [2]int64 // and stops again then
	arrivals [2]int64 // the latest arrival
}

// arrival returns when a packet that is sent at a time arrives.
func (n *network) arrival(way int, sent int64) int64 {
	const delay = 50_000
	at := sent + delay + int64(n.random.ExpFloat64()*n.jitter)
	for n.stops > 0 && at >= n.next[way] && !(n.oneWay && way == 0) {
		n.until[way] = n.next[way] + int64(5e6+n.random.Float64()*n.longest)
		n.next[way] = n.until[way] + int64(n.random.ExpFloat64()*n.stops) + 1
	}
	n.arrivals[way] = max(at, n.until[way], n.arrivals[way]+1000)
	return n.arrivals[way]
}

// simulated is an RPC and its true times.
type simulated struct {
	xid                           uint32
	sent, arrived, left, answered int64
}

// simulate makes RPCs, of which at most a number are in flight, and returns the frames that a capture at the client or at the server has.
func simulate(n *network, inFlight int, atServer bool) (rpcs map[record.Hex32]*simulated, frames []*synth.Frame) {
	const count = 120
	w := synth.New()
	c := w.RoCE(synth.Options{})
	c.Connect()
	rpcs = map[record.Hex32]*simulated{}
	type event struct {
		at   int64
		do   func()
		tick int
	}
	var queue []event
	ticks := 0
	plan := func(at int64, do func()) {
		ticks++
		queue = append(queue, event{at, do, ticks})
	}
	// The frames get the times at which they pass the capture point.
	capture := func(list []*synth.Frame, sent, arrived int64, byServer bool) {
		for _, f := range list {
			if f.Time = sent; byServer != atServer {
				f.Time = arrived
			}
		}
	}
	xid := uint32(0)
	var call func(at int64)
	call = func(at int64) {
		if xid++; xid > count {
			return
		}
		r := &simulated{xid: xid, sent: at, arrived: n.arrival(0, at)}
		rpcs[record.Hex32(xid)] = r
		request := synth.Getattr3()
		request.XID = r.xid
		psn := c.Client.NextPSN
		capture(c.Client.Call(request), r.sent, r.arrived, false)
		plan(r.arrived, func() {
			capture([]*synth.Frame{c.Server.Ack(synth.AtPSN(psn))}, r.arrived, n.arrival(1, r.arrived), true)
		})
		left := r.arrived + int64(200_000+n.random.ExpFloat64()*8e6)
		plan(left, func() {
			r.left, r.answered = left, n.arrival(1, left)
			reply := synth.Getattr3Reply()
			reply.XID = r.xid
			psn := c.Server.NextPSN
			capture(c.Server.Reply(reply), r.left, r.answered, true)
			plan(r.answered, func() {
				capture([]*synth.Frame{c.Client.Ack(synth.AtPSN(psn))}, r.answered, n.arrival(0, r.answered), false)
				call(r.answered + int64(n.random.ExpFloat64()*100_000))
			})
		})
	}
	start := w.Now
	for i := range inFlight {
		plan(start+int64(i)*20_000, func() { call(start + int64(i)*20_000) })
	}
	for len(queue) > 0 {
		slices.SortFunc(queue, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tick, b.tick)) })
		next := queue[0]
		queue = queue[1:]
		next.do()
	}
	frames = slices.Clone(w.Frames)
	slices.SortStableFunc(frames, func(a, b *synth.Frame) int { return cmp.Compare(a.Time, b.Time) })
	return rpcs, frames
}

// TestSimulatedNetworks: in simulated networks, steady ones and others that delay packets or stop for up to 400 ms, the true time of the
// server and of both ways is within the bounds of each RPC, and no side is named that did not take the time. A capture at the server names
// the server for nearly all RPCs that it took most of, and the order of sequence numbers proves some at the client.
func TestSimulatedNetworks(t *testing.T) {
	named := map[string]int{}
	for _, kind := range []network{
		{},
		{jitter: 200e3},
		{jitter: 2e6},
		{stops: 100e6, longest: 20e6},
		{stops: 300e6, longest: 400e6},
		{stops: 300e6, longest: 400e6, oneWay: true},
	} {
		for _, inFlight := range []int{1, 4, 16} {
			for _, atServer := range []bool{false, true} {
				n := kind
				n.random = rand.New(rand.NewPCG(7, uint64(inFlight)))
				n.next = [2]int64{synth.Epoch + 20e6, synth.Epoch + 30e6}
				rpcs, frames := simulate(&n, inFlight, atServer)
				place := "client"
				o := dissect.Options{}
				if atServer {
					place, o.At = "server", record.Position{Place: record.AtServer}
				}
				seen := 0
				d := dissect.New(dissect.Handler{Transaction: func(r *record.Transaction) error {
					x, s := rpcs[r.XID], r.Shares.Or(record.Shares{})
					if seen++; x == nil || !r.LatencyNS.Known() {
						t.Errorf("%+v, %d in flight, %s: XID %v has no latency", kind, inFlight, place, r.XID)
						return nil
					}
					server, there, back := x.left-x.arrived, x.arrived-x.sent, x.answered-x.left
					if atServer { // The ways are no part of what this capture shows.
						there, back = 0, 0
					}
					c := r.Cause.Or(record.Cause{})
					switch side, known := c.Side.Get(); {
					case s.ServerNS.Min > server || s.ServerNS.Max < server, s.ToServerNS.Max < there, s.ToClientNS.Max < back, s.NetworkNS.Max < there+back:
						t.Errorf("%+v, %d in flight, %s: XID %v: server %d, ways %d and %d: %+v", kind, inFlight, place, r.XID, server, there, back, s)
					case known && (side != record.SideServer || c.NS > server):
						t.Errorf("%+v, %d in flight, %s: XID %v: %s; the server took %d, the ways %d and %d", kind, inFlight, place, r.XID, c.Text, server, there, back)
					case server >= 1e6 && 2*server >= r.LatencyNS.Or(0):
						named[place]++
						if known {
							named[place+" proven"]++
						}
					}
					return nil
				}}, o)
				for f := range testkit.Made(frames) {
					d.Frame(f)
				}
				d.Finish()
				if seen != len(rpcs) {
					t.Errorf("%+v, %d in flight, %s: %d RPCs, want %d", kind, inFlight, place, seen, len(rpcs))
				}
			}
		}
	}
	if named["client"] < 1000 || named["server proven"]*10 < named["server"]*9 || named["client proven"]*20 < named["client"] {
		t.Errorf("too little is proven: %v", named)
	}
}
