package credits

import (
	"testing"

	"github.com/rdmadump/rdmadump/dissect/record"
)

const ms = record.Time(1e6)

// TestLimit: a side may have as many Calls outstanding as it was granted and asked for. A lower grant counts one round trip
// after it was delivered.
func TestLimit(t *testing.T) {
	unknown := -1
	for _, tt := range []struct {
		name      string
		handshake bool
		do        func(*Allowance)
		want      int
	}{
		{"before the first Reply", true, func(*Allowance) {}, 1},
		{"without the handshake", false, func(*Allowance) {}, unknown},
		{"granted", false, func(a *Allowance) { a.Take(32, 1) }, 32},
		{"granted more than it asked for", true, func(a *Allowance) { a.Request(8); a.Take(32, 1) }, 8},
		{"it asked for none", true, func(a *Allowance) { a.Request(0); a.Take(32, 1) }, 1},
		{"more", true, func(a *Allowance) { a.Take(8, 1); a.Take(32, 2) }, 32},
		{"less, not delivered", true, func(a *Allowance) { a.Take(32, 1); a.Take(8, 2); a.Learn(900 * ms) }, 32},
		{"less, delivered just now", true, func(a *Allowance) { a.Take(32, 1); a.Take(8, 2); a.Deliver(2, 10*ms, 13*ms); a.Learn(15 * ms) }, 32},
		{"less, one round trip later", true, func(a *Allowance) { a.Take(32, 1); a.Take(8, 2); a.Deliver(2, 10*ms, 13*ms); a.Learn(16 * ms) }, 8},
		{"less, and a short round trip", true, func(a *Allowance) { a.Take(32, 1); a.Take(8, 2); a.Deliver(2, 10*ms, 10*ms); a.Learn(11*ms - 1) }, 32},
		{"less, an earlier Send was delivered", true, func(a *Allowance) { a.Take(32, 1); a.Take(8, 2); a.Deliver(1, 1*ms, 2*ms); a.Learn(900 * ms) }, 32},
		{"less, delivered twice", true, func(a *Allowance) {
			a.Take(32, 1)
			a.Take(8, 2)
			a.Deliver(2, 10*ms, 13*ms)
			a.Deliver(3, 10*ms, 80*ms)
			a.Learn(16 * ms)
		}, 8},
		{"less twice", true, func(a *Allowance) {
			a.Take(32, 1)
			a.Take(8, 2)
			a.Deliver(2, 1*ms, 2*ms)
			a.Take(4, 3)
			a.Learn(900 * ms)
		}, 32},
		{"the same lower grant twice", true, func(a *Allowance) {
			a.Take(32, 1)
			a.Take(8, 2)
			a.Deliver(2, 1*ms, 2*ms)
			a.Take(8, 3)
			a.Learn(900 * ms)
		}, 8},
		{"less, and more again", true, func(a *Allowance) {
			a.Take(32, 1)
			a.Take(8, 2)
			a.Deliver(2, 1*ms, 2*ms)
			a.Take(32, 3)
			a.Learn(900 * ms)
		}, 32},
		{"a Reply without its credits", true, func(a *Allowance) { a.Take(32, 1); a.Lose() }, unknown},
		{"a Reply after it", true, func(a *Allowance) { a.Lose(); a.Take(4, 2) }, 4},
		{"of two connections", true, func(a *Allowance) {
			var b Allowance
			b.Request(9)
			b.Take(16, 3)
			a.Join(&b)
		}, 9},
		{"of two connections, one of which lost a Reply", true, func(a *Allowance) {
			var b Allowance
			b.Lose()
			a.Join(&b)
		}, unknown},
	} {
		var a Allowance
		tt.do(&a)
		n, known := a.Limit(tt.handshake)
		if got := int(n); known != (tt.want != unknown) || known && got != tt.want {
			t.Errorf("%s: %d, known: %t, want %d", tt.name, got, known, tt.want)
		}
	}
}

// TestPromises: a number of Calls is promised if no grant, in force or on its way, is below it.
func TestPromises(t *testing.T) {
	var a Allowance
	if !a.Promises(100) {
		t.Error("nothing was granted, so that nothing is below 100")
	}
	a.Take(32, 1)
	a.Take(8, 2)
	for calls, want := range map[uint32]bool{1: true, 8: true, 9: false, 32: false} {
		if a.Promises(calls) != want {
			t.Errorf("%d Calls: promised %t", calls, !want)
		}
	}
}

// TestDones: open RDMA_DONEs are counted, also of a connection that became a part of another one.
func TestDones(t *testing.T) {
	var a, b Allowance
	a.Begin()
	a.Begin()
	a.End()
	b.Begin()
	if a.Join(&b); a.Dones() != 2 {
		t.Errorf("%d open, want 2", a.Dones())
	}
}

// TestPeak: the peak is proven unless more Calls may have been outstanding where nothing is proven.
func TestPeak(t *testing.T) {
	var p, o Peak
	p.Count(3, true)
	p.Count(2, true)
	p.Count(3, false)
	if n, proven := p.Proven(); n != 3 || !proven {
		t.Errorf("%d, proven: %t", n, proven)
	}
	o.Count(4, false)
	p.Join(o)
	if _, proven := p.Proven(); proven {
		t.Error("the peak is proven, although 4 Calls may have been outstanding")
	}
}

// TestUsage: all credits are in use from the Call that takes the last one to the next Reply. A Call within a millisecond after that
// Reply follows the freed credit, a later one does not. Calls without a Reply are in flight until the end.
func TestUsage(t *testing.T) {
	var u Usage
	u.Sent(10*ms, 1, 0) // before the first grant
	u.Answered(12*ms, 0)
	u.Sent(20*ms, 1, 2)
	u.Sent(21*ms, 2, 2)
	u.Answered(25*ms, 1) // 4 ms all in use
	u.Sent(25*ms+1000, 2, 2)
	u.Answered(27*ms+1000, 1) // 2 ms
	u.Sent(29*ms, 2, 2)       // which comes too late to follow
	if got, want := u.At(30*ms), (record.CreditUsage{InFlightNS: 12e6, AllInUse: 3, AllInUseNS: 7e6, LongestNS: 4e6, Followed: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if again := u.At(30 * ms); again.AllInUseNS != 7e6 {
		t.Error("At changes what it reports")
	}
	u.Answered(30*ms, 1)
	u.Answered(31*ms, 0)
	var o Usage
	o.Join(&u)
	if got, want := o.At(90*ms), (record.CreditUsage{InFlightNS: 13e6, AllInUse: 3, AllInUseNS: 7e6, LongestNS: 4e6, Followed: 1}); got != want {
		t.Errorf("joined: %+v, want %+v", got, want)
	}
}
